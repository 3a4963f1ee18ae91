"""How well a structure fits data: a sum over families, each looked at once.

A family is a node and its parents.  Scores are costs in nats, as the textbook has them:
penalty times parameters, less the log-likelihood (Zhou, eq. 7.28 to 7.31); less is better.

Secret: how families are counted, and that their costs are kept.
"""

from collections.abc import Sequence
from math import comb, log, prod

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import UsageError
from nbspam.models.network.graphs import Parents

AIC, BIC, MDL, LIKELIHOOD = "aic", "bic", "mdl", "likelihood"
SCORES = (AIC, BIC, MDL, LIKELIHOOD)
# The largest table of one family, in cells of 8 bytes.
MAX_CELLS = 1 << 26


def family_counts(
    codes: Integers,
    cardinality: Sequence[int],
    child: int,
    parents: tuple[int, ...],
    weight: Floats | None = None,
) -> Floats:
    """Return how often each value stands beside each of the parents' values.

    codes: (n_rows, n_columns) from 0, below 0 where missing: rows in which some of the
    family is missing do not count; weight: of each row, 1 unless given.  Shape (values
    of the parents multiplied, the last parent's changing fastest, values of the child).
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
    """Return the shape of a family's table; raises UsageError if it is beyond memory."""
    rows = prod(cardinality[p] for p in parents)
    cells = rows * cardinality[child]
    if cells > MAX_CELLS:
        raise UsageError(
            f"network: a table of {len(parents)} parents would need {_bytes(cells * 8)},"
            f" more than {_bytes(MAX_CELLS * 8)}; give a smaller --max-parents"
        )
    return rows, cardinality[child]


def check_max_parents(cardinality: Sequence[int], max_parents: int) -> None:
    """Raise UsageError unless the largest family of so many parents fits in memory."""
    largest = sorted(range(len(cardinality)), key=lambda i: -cardinality[i])
    check_family(cardinality, largest[0], tuple(largest[1 : max_parents + 1]))


def _bytes(n: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min((n.bit_length() - 1) // 10, len(units) - 1)
    return f"{n / 1024**power:.3g} {units[power]}"


class FamilyScores:
    """The cost of every family of some data, counted when first asked for."""

    def __init__(
        self,
        codes: Integers,
        cardinality: Sequence[int],
        score: str = BIC,
        weight: Floats | None = None,
    ) -> None:
        if score not in SCORES:
            raise UsageError(f"score: {score!r} is none of {', '.join(SCORES)}")
        # Column by column in memory: a family reads few columns and all rows.
        self._codes = np.asfortranarray(codes)
        self.cardinality = tuple(cardinality)
        self.score = score
        self._weight = weight
        # How many rows there are, by weight.
        self.n_rows = float(len(codes) if weight is None else weight.sum())
        self._kept: dict[tuple[int, tuple[int, ...]], float] = {}

    def log_likelihood(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the log-likelihood of a column given others, nats, at its maximum.

        Of rows in which all is known, scaled up to all rows: else a parent would gain
        by being missing.
        """
        counts = family_counts(self._codes, self.cardinality, child, parents, self._weight)
        total = counts.sum(axis=1)
        known = total.sum()
        scale = self.n_rows / known if known > 0 else 0.0
        return float(_sum_n_log_n(counts) - _sum_n_log_n(total)) * scale

    def family(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the cost of a node with these parents (ascending), nats."""
        key = child, parents
        if key not in self._kept:
            penalty = self._penalty(child, parents)
            self._kept[key] = penalty - self.log_likelihood(child, parents)
        return self._kept[key]

    def total(self, parents: Parents) -> float:
        """Return the cost of a whole structure, nats: the sum over its families."""
        return sum(self.family(child, of) for child, of in enumerate(parents))

    def _penalty(self, child: int, parents: tuple[int, ...]) -> float:
        if self.score == LIKELIHOOD:
            return 0.0
        size = prod(self.cardinality[p] for p in parents) * (self.cardinality[child] - 1)
        if self.score == AIC:
            return float(size)
        cost = 0.5 * log(max(self.n_rows, 1.0)) * size
        if self.score == MDL:
            # And the arrows themselves: how many parents, and which (Friedman &
            # Goldszmidt 1996, section 2).
            n = len(self.cardinality)
            cost += log(n) + log(comb(n - 1, len(parents)))
        return cost


def _sum_n_log_n(counts: Floats) -> float:
    seen = counts[counts > 0]
    return float(seen @ np.log(seen))
