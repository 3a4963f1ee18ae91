"""Scores of models in which each column depends on the class and at most one other column.

Secret: how one matrix product gives the scores for all possible parents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nbspam.models.columns.levels import Levels
    from nbspam.models.columns.pairs import Encoding, ValueTables
    from nbspam.models.inputs import Array, Codes

# Nats per column that stand for minus infinity, which would make a product NaN.  No other
# columns can outweigh it, because a share of a count is above exp(-50).
_IMPOSSIBLE = 100.0


@dataclass(frozen=True, eq=False)
class Tree:
    """The column that each column depends on: parents, (n_columns,), -1 for none.

    A column that is its own parent has probability 1, and so adds nothing.
    """

    parents: Codes
    levels: Levels

    @cached_property
    def missing(self) -> int:
        """The code of a parent whose value is missing."""
        return int(self.levels.n.max())

    def table(self, given: Array) -> Array:
        """Return log P(value given class, parent's code), shape (missing + 1, D + 1), nats.

        given: as in ValueTables; the tree uses only few of its entries.
        """
        levels = self.levels
        parent = self.parents[levels.column]
        code = np.arange(self.missing + 1)[:, None]
        place = levels.start[parent] + np.minimum(code, levels.n[parent] - 1)
        known = (parent >= 0) & (code < self.missing)
        rows = np.where(known, place, levels.total)
        table = np.zeros((len(code), levels.total + 1))
        table[:, :-1] = given[rows, np.arange(levels.total)]
        return table

    def places(self, cells: Codes) -> Codes:
        """Return the positions of a row's factors in the flat table, (n_docs, n_columns).

        cells: (n_docs, n_columns), the indices of the values.
        """
        of_parent = cells[:, self.parents]
        # A root reads some other column as its parent; all rows of its table are equal.
        known = of_parent < self.levels.total
        code = np.where(known, of_parent - self.levels.start[self.parents], self.missing)
        return np.asarray(code * (self.levels.total + 1) + cells)


@dataclass(frozen=True, eq=False)
class ParentScores:
    """The SPODEs of one class: log P(class, row) with each value as the super-parent.

    D: the number of values.  constant: (D + 1,); weight: (n_events, D + 1); lowest: a score
    below it stands for -inf, None if there is no such score.
    """

    constant: Array
    weight: Array
    lowest: float | None

    @classmethod
    def of(cls, table: ValueTables, encoding: Encoding) -> ParentScores:
        """Return the scores that follow from the tables of one class."""
        impossible = -_IMPOSSIBLE * len(encoding.levels.n)
        given = table.given[:, : encoding.levels.total]
        lowest = None
        if np.isneginf(given.min(initial=0.0)):
            given, lowest = np.maximum(given, impossible), impossible / 2
        constant, weight = encoding.linear(given)
        return cls(constant + table.parent, weight, lowest)

    def scores(self, events: Any) -> Array:
        """Return the scores of all parents in nats, shape (n_docs, D + 1).

        events: (n_docs, n_events).  The last column is the score of naive Bayes.
        """
        scores = np.asarray(events @ self.weight)
        scores += self.constant
        if self.lowest is not None:
            # A share is at least 1 / n > exp(-50), so only impossible rows are this low.
            scores[scores < self.lowest] = -np.inf
        return scores

    def by_parent(self, events: Any, cells: Codes) -> Array:
        """Return the score with the value of each column as parent, (n_docs, n_columns)."""
        return np.take_along_axis(self.scores(events), cells, axis=1)
