"""Scores of structures: how well a graph fits data, as a sum over families.

A family is a node and its parents.  Scores are costs in nats, lower is better: a penalty
for each parameter minus the log-likelihood (Zhou, eq. 7.28 to 7.31).

Secret: how families are counted, and that their costs are cached.
"""

from collections.abc import Sequence
from math import comb, log, prod

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import UsageError
from nbspam.models.network.graphs import Parents

AIC, BIC, MDL, LIKELIHOOD = "aic", "bic", "mdl", "likelihood"
SCORES = (AIC, BIC, MDL, LIKELIHOOD)
MAX_CELLS = 1 << 26  # of the largest table of one family; 8 bytes each


def family_counts(
    codes: Integers,
    cardinality: Sequence[int],
    child: int,
    parents: tuple[int, ...],
    weight: Floats | None = None,
) -> Floats:
    """Return how often each value of the child occurs with each combination of its parents'.

    codes: (n_rows, n_columns) from 0, below 0 where missing; a row in which a member of the
    family is missing is not counted.  weight: (n_rows,), 1 unless given.  Returns one row
    for each combination of the parents' values (the last parent's changes fastest), one
    column for each value of the child.  Raises UsageError beyond MAX_CELLS.
    """
    rows, values = check_family(cardinality, child, parents)
    cell = np.zeros(len(codes), np.int64)
    missing = np.zeros(len(codes), bool)
    for node in (*parents, child):
        column = codes[:, node]
        missing |= column < 0
        cell *= cardinality[node]
        cell += column
    cell[missing] = rows * values
    counts = np.bincount(cell, weight, rows * values + 1)[:-1]
    return np.asarray(counts.reshape(rows, values), dtype=np.float64)


def check_family(
    cardinality: Sequence[int], child: int, parents: tuple[int, ...]
) -> tuple[int, int]:
    """Return the shape of a family's table; raises UsageError beyond MAX_CELLS."""
    rows = prod(cardinality[p] for p in parents)
    cells = rows * cardinality[child]
    if cells > MAX_CELLS:
        raise UsageError(
            f"network: a table of {len(parents)} parents would need {_bytes(cells * 8)},"
            f" more than {_bytes(MAX_CELLS * 8)}; give a smaller --max-parents"
        )
    return rows, cardinality[child]


def check_max_parents(cardinality: Sequence[int], max_parents: int) -> None:
    """Raise UsageError if the largest family with max_parents parents exceeds MAX_CELLS."""
    largest = sorted(range(len(cardinality)), key=lambda i: -cardinality[i])
    check_family(cardinality, largest[0], tuple(largest[1 : max_parents + 1]))


def _bytes(n: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min((n.bit_length() - 1) // 10, len(units) - 1)
    return f"{n / 1024**power:.3g} {units[power]}"


class FamilyScores:
    """The costs of families on given data, computed when first asked for."""

    def __init__(
        self,
        codes: Integers,
        cardinality: Sequence[int],
        score: str = BIC,
        weight: Floats | None = None,
    ) -> None:
        if score not in SCORES:
            raise UsageError(f"criterion: {score!r} is unknown; choose from {', '.join(SCORES)}")
        # Column by column in memory, because a family reads few columns and all rows.
        self._codes = np.asfortranarray(codes)
        self.cardinality = tuple(cardinality)
        self.score = score
        self._weight = weight
        # The number of rows, or the sum of their weights.
        self.n_rows = float(len(codes) if weight is None else weight.sum())
        self._kept: dict[tuple[int, tuple[int, ...]], float] = {}

    def log_likelihood(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the maximum log-likelihood of a column given its parents, nats.

        It is computed from the rows without missing values and scaled up to all rows;
        otherwise a column with missing values would seem a better parent.
        """
        counts = family_counts(self._codes, self.cardinality, child, parents, self._weight)
        total = counts.sum(axis=1)
        known = total.sum()
        scale = self.n_rows / known if known > 0 else 0.0
        return float(_sum_n_log_n(counts) - _sum_n_log_n(total)) * scale

    def family(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the cost of a node with these parents, nats; parents: ascending."""
        key = child, parents
        if key not in self._kept:
            penalty = self._penalty(child, parents)
            self._kept[key] = penalty - self.log_likelihood(child, parents)
        return self._kept[key]

    def total(self, parents: Parents) -> float:
        """Return the cost of a whole structure, nats: the sum over its families."""
        return sum(self.family(child, nodes) for child, nodes in enumerate(parents))

    def _penalty(self, child: int, parents: tuple[int, ...]) -> float:
        if self.score == LIKELIHOOD:
            return 0.0
        size = prod(self.cardinality[p] for p in parents) * (self.cardinality[child] - 1)
        if self.score == AIC:
            return float(size)
        cost = 0.5 * log(max(self.n_rows, 1.0)) * size
        if self.score == MDL:
            # MDL also encodes the arrows: how many parents, and which ones (Friedman &
            # Goldszmidt 1996, section 2).
            n = len(self.cardinality)
            cost += log(n) + log(comb(n - 1, len(parents)))
        return cost


def _sum_n_log_n(counts: Floats) -> float:
    seen = counts[counts > 0]
    return float(seen @ np.log(seen))
