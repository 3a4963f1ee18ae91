"""Models that keep the distinct rows and the weight of each, because any counts may be asked for.

Rows are added and subtracted like counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import Statistics
from nbspam.models.columns import BinaryByDefault, Levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbspam.models.base import Array, Codes, Sums

_NEGLIGIBLE = 1e-9  # a row of less weight is a rounding error


class DistinctRows(Statistics):
    """Distinct rows, sorted, and the weight of each.

    rows_: (n_distinct, n_columns + 1) codes, -1 where missing, the index of the class last;
    row_count_: (n_distinct,).
    """

    def plus(self, other: Statistics, sign: int = 1) -> DistinctRows:
        """Return the rows of both, or with sign -1 those that are left."""
        classes = np.union1d(self.classes, other.classes)
        mine, theirs = (
            Statistics(part.classes, {"class_count_": part.sums["class_count_"]})
            for part in (self, other)
        )
        renamed = []
        for part in (self, other):  # class indices refer to the classes of both
            rows = part.sums["rows_"].copy()
            rows[:, -1] = np.searchsorted(classes, part.classes)[rows[:, -1]]
            renamed.append(rows)
        rows = np.concatenate(renamed)
        weight = np.concatenate([self.sums["row_count_"], sign * other.sums["row_count_"]])
        class_count = mine.plus(theirs, sign).sums["class_count_"]
        return DistinctRows(classes, {"class_count_": class_count, **different_rows(rows, weight)})

    def seen(self) -> DistinctRows:
        """Return these statistics without the classes of which nothing is left."""
        kept = self.sums["class_count_"] > 0
        rows = self.sums["rows_"].copy()
        rows[:, -1] = (np.cumsum(kept) - 1)[rows[:, -1]]
        sums = {**self.sums, "class_count_": self.sums["class_count_"][kept], "rows_": rows}
        return DistinctRows(self.classes[kept], sums)

    def clipped(self) -> Statistics:
        """Return these statistics with rounding errors below zero replaced by zero."""
        rows, weight = self.sums["rows_"], np.maximum(self.sums["row_count_"], 0.0)
        class_count = np.maximum(self.sums["class_count_"], 0.0)
        return DistinctRows(
            self.classes, {"class_count_": class_count, **different_rows(rows, weight)}
        )

    def is_negative(self) -> bool:
        """Return whether more was subtracted than had been added."""
        return any((self.sums[name] < -1e-6).any() for name in ("class_count_", "row_count_"))


def different_rows(rows: Any, weight: Array) -> dict[str, Any]:
    """Return the distinct rows, sorted, with the sums of their weights; zeros are left out."""
    unique, which = np.unique(rows, axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), weight, len(unique)).astype(np.float64)
    kept = np.abs(total) > _NEGLIGIBLE
    return {"rows_": unique[kept], "row_count_": total[kept]}


@dataclass(kw_only=True, eq=False, repr=False)
class RowsModel(BinaryByDefault):
    """A model that has learnt distinct rows; see DistinctRows for rows_ and row_count_.

    levels: the number of values of each column; unless given, columns are binary: X above 0
    or not.
    """

    _sums = ("class_count_", "rows_", "row_count_")
    _statistics = DistinctRows

    rows_: Any = field(init=False)
    row_count_: Array = field(init=False)

    def _codes(self, X: Any, where: str) -> Any:
        """Return the code of each value, -1 where missing."""
        if self.levels is None:
            return (X > 0).astype(np.int32)
        levels = Levels(self.levels_)
        cells = levels.cells(X, where)
        return np.where(cells == levels.total, -1, cells - levels.start).astype(np.int32)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        rows = np.column_stack([self._codes(X, self._at("fit")), code]).astype(np.int32)
        return different_rows(rows, np.ones(len(rows)) if weight is None else weight)

    def _spread(self, levels: Codes, codes: Sequence[Codes]) -> Sums:
        rows = self.rows_.copy()
        for column, code in enumerate(codes):
            # A missing value, -1, stays what it is.
            rows[:, column] = np.append(code, -1)[rows[:, column]]
        return different_rows(rows, self.row_count_)
