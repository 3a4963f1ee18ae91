"""Scores of models in which every column depends on at most one other, and the class.

Secret: how the scores of all possible parents come out of one matrix product.
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

# What an impossible value costs, nats a column, where infinity would make a product NaN:
# more than all other columns can make up for, as a share of a count is above exp(-50).
_IMPOSSIBLE = 100.0


@dataclass(frozen=True, eq=False)
class Tree:
    """Which column each depends on: parents (n_columns,), -1 for none.

    A column may be its own parent: then it is certain, and adds nothing.
    """

    parents: Codes
    levels: Levels

    @cached_property
    def nothing(self) -> int:
        """The code of a parent of which nothing is known."""
        return int(self.levels.n.max())

    def table(self, given: Array) -> Array:
        """Return log P(value given class, parent's code), shape (nothing + 1, D + 1), nats.

        given: as in ValueTables, of which the tree needs but few.
        """
        levels = self.levels
        parent = self.parents[levels.column]
        code = np.arange(self.nothing + 1)[:, None]
        place = levels.start[parent] + np.minimum(code, levels.n[parent] - 1)
        known = (parent >= 0) & (code < self.nothing)
        rows = np.where(known, place, levels.total)
        table = np.zeros((len(code), levels.total + 1))
        table[:, :-1] = given[rows, np.arange(levels.total)]
        return table

    def places(self, cells: Codes) -> Codes:
        """Return where in a table a row's factors stand, shape (n_docs, n_columns).

        cells: (n_docs, n_columns), the places of the values.
        """
        of_parent = cells[:, self.parents]
        # Whatever code a root's parent gets: all rows of its table are alike.
        known = of_parent < self.levels.total
        code = np.where(known, of_parent - self.levels.start[self.parents], self.nothing)
        return np.asarray(code * (self.levels.total + 1) + cells)


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
