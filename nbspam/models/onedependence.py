"""Scores of models in which every column depends on at most one other, and the class.

Secret: how the scores of all possible parents come out of one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nbspam.models.inputs import Array, Codes
    from nbspam.models.pairs import Encoding, ValueTables

# What an impossible value costs, nats a column, where infinity would make a product NaN:
# more than all other columns can make up for, as a share of a count is above exp(-50).
_IMPOSSIBLE = 100.0


def sum_given(table: ValueTables, parents: Codes, cells: Codes) -> Array:
    """Return the sum of log P(value given class, its parent) over a row's values, (n_docs,).

    parents, cells: (n_docs, n_columns), broadcast, the places of the values.
    """
    place = parents * table.given.shape[1] + cells
    return np.asarray(table.given.ravel().take(place).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ParentScores:
    """The SPODEs of one class: log P(class, row) as if any value were the super-parent.

    constant: (D + 1,); weight: (n_events, D + 1); lowest: below it a score stands for
    -inf, None if none does.
    """

    constant: Array
    weight: Array
    lowest: float | None

    @classmethod
    def of(cls, table: ValueTables, encoding: Encoding) -> ParentScores:
        """Return the scores that tables of pairs of values make."""
        impossible = -_IMPOSSIBLE * len(encoding.levels.n)
        given = table.given[:, : encoding.levels.total]
        lowest = None
        if np.isneginf(given.min(initial=0.0)):
            given, lowest = np.maximum(given, impossible), impossible / 2
        constant, weight = encoding.linear(given)
        return cls(constant + table.parent, weight, lowest)

    def scores(self, events: Any) -> Array:
        """Return the scores of all parents, shape (n_docs, D + 1), nats; the last is NB's."""
        scores = np.asarray(events @ self.weight)
        scores += self.constant
        if self.lowest is not None:
            # A share is at least 1 / n > exp(-50), so that only impossible rows are as low.
            scores[scores < self.lowest] = -np.inf
        return scores

    def by_parent(self, events: Any, cells: Codes) -> Array:
        """Return the score with the value of each column as parent, (n_docs, n_columns)."""
        return np.take_along_axis(self.scores(events), cells, axis=1)
