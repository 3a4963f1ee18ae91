"""The base of models of table columns, whose values are codes from 0 up, numbers or missing.

A row is an array of floats or integers.  A column of categories holds the code of the
value, and NaN or a number below 0 where it is missing.  A column of numbers holds the
number, and NaN where it is missing.  Missing values are not counted, and their factors are
left out of products: a row is classified by its known values.

`ColumnModel` has the parameters of all these models, `Levels` the index that runs over the values
of all columns, and `CategoricalNB` is the simplest of them.
"""

from __future__ import annotations

from collections.abc import Sized
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from nbspam.models.base import Statistics
from nbspam.models.inputs import DataError, blocks_of_rows, refuse_large
from nbspam.models.smoothing import SmoothedModel, addend, addends
from nbspam.models.tokens import ComplementNB, LinearModel, MultinomialNB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Labels, Sums

    Dirichlet = Sequence[Sequence[float] | None] | None

_MOST_VALUES = 1 << 24  # of a column whose number of values nobody gave: a table for all must fit


@dataclass(frozen=True, eq=False)
class Levels:
    """An index of the values of all columns: column after column, value after value.

    n: (n_columns,) the number of values of each column, 1 or more.
    """

    n: Codes

    @cached_property
    def start(self) -> Codes:
        """The index of each column's first value, shape (n_columns,)."""
        return np.asarray(np.cumsum(self.n) - self.n)

    @cached_property
    def total(self) -> int:
        """The number of values of all columns together."""
        return int(self.n.sum())

    @cached_property
    def column(self) -> Codes:
        """The column of each value, shape (total,)."""
        return np.repeat(np.arange(len(self.n)), self.n)

    @cached_property
    def slices(self) -> list[slice]:
        """The indices of each column's values."""
        ends = (self.start + self.n).tolist()
        return [slice(start, end) for start, end in zip(self.start.tolist(), ends, strict=True)]

    @property
    def varies(self) -> Any:
        """Whether the column of each value has other values, too, shape (total,)."""
        return self.n[self.column] > 1

    def cells(self, X: Any, where: str) -> Codes:
        """Return the index of each value, shape (n_docs, n_columns); raises DataError.

        X: codes (n_docs, n_columns).  A missing value gets the index `total`.
        """
        values = np.where(X >= 0, X, -1.0) if X.dtype.kind == "f" else X
        beyond = np.asarray(values.max(axis=0, initial=0) >= self.n)
        if beyond.any():
            column = int(beyond.argmax())
            raise DataError(
                f"{where}: column {column} has a code above {self.n[column] - 1};"
                " give the number of values of each column as levels"
            )
        code = values.astype(np.intp, copy=False)
        if values is not X and (code != values).any():
            raise DataError(f"{where}: a category is not a whole number; give codes from 0 up")
        cells: Codes = code + self.start
        if code.min(initial=0) < 0:
            cells[code < 0] = self.total
        return cells

    def places(self, codes: Sequence[Codes]) -> Codes:
        """Return the index of each value that has one of these codes, in order; -1 for code -1.

        codes: for each column, any number of its codes.
        """
        places = [np.where(c >= 0, c + s, -1) for c, s in zip(codes, self.start, strict=True)]
        return np.concatenate(places).astype(np.intp)

    def sums(self, count: Array) -> Array:
        """Return, for each value, the sum over all values of its column.

        count: (…, total), and so is the result.
        """
        return np.asarray(np.add.reduceat(count, self.start, axis=-1)[..., self.column])

    def log_shares(self, count: Array, added: Array, left_out: int = 0) -> Array:
        """Return the log of each value's share of its column, along the last axis, nats.

        added: to the count of each value, (total,).  left_out: 1 for the share after one
        occurrence of the value has been removed.
        """
        in_column = np.add.reduceat(count, self.start, axis=-1) - left_out
        everything = np.maximum(in_column, 0.0) + np.add.reduceat(added, self.start)
        empty = everything <= 0
        # log a - log b, because there are fewer columns than values to take logarithms of.
        log_total = np.log(np.where(empty, 1.0, everything))
        left = np.maximum(count - left_out, 0.0) if left_out else count
        with np.errstate(divide="ignore"):
            share = np.log(left + added)
        share -= np.repeat(log_total, self.n, axis=-1)
        if empty.any():
            share = np.where(
                np.repeat(empty, self.n, axis=-1), -np.log(self.n[self.column]), share
            )
        return np.asarray(share)


@dataclass(kw_only=True, eq=False, repr=False)
class ColumnModel(SmoothedModel):
    """A model of columns; `smoothing` explains the estimates.

    levels: the number of values of each column, (n_columns,).
    estimate: "mean" (posterior mean), "map" or "mle"; alpha: parameter of the prior.
    dirichlet: parameters that differ from value to value: a sequence for each column and,
    last, for the classes; None stands for alpha.
    class_prior: "smoothed" like the columns, "estimated" from the documents, "uniform", or
    one probability per class.
    """

    _missing = True
    _sparse = False
    # Sums whose last axes are values, and how many axes.
    _over_values: ClassVar[tuple[tuple[str, int], ...]] = ()

    levels: ArrayLike | None = None
    estimate: str = "mean"
    alpha: float = 1.0
    class_prior: str | ArrayLike = "smoothed"
    dirichlet: Dirichlet = None
    levels_: Codes = field(init=False)

    @property
    def added_(self) -> Array:
        """Return the number added to the count of each value, (values of all columns,)."""
        added = addend(self.estimate, self.alpha)
        if self.dirichlet is None:
            return np.full(int(self.levels_.sum()), added)
        n_entries = len(self.dirichlet) if isinstance(self.dirichlet, Sized) else 1
        if n_entries != len(self.levels_) + 1:
            raise DataError(
                f"dirichlet: {n_entries} entries for {len(self.levels_)} columns and"
                " the classes; give one for each, None where alpha applies"
            )
        columns = zip(self.dirichlet, self.levels_.tolist(), strict=False)
        return np.concatenate(
            [addends(self.estimate, self.alpha, own, n, "values") for own, n in columns]
        )

    @property
    def class_dirichlet(self) -> Sequence[float] | None:  # type: ignore[override]
        """Return the parameters of the classes' prior, None if alpha is that of all classes."""
        return None if self.dirichlet is None else self.dirichlet[-1]

    def _begin(self, X: Any) -> None:
        levels = self._levels_of(X)
        n_values = levels.sum(dtype=np.float64)
        refuse_large(self._at("fit"), f"tables of {n_values:,.0f} values", (n_values,))
        self.levels_ = levels

    def _levels_of(self, X: Any) -> Codes:
        """Return the number of values of each column, from the parameter or the first rows."""
        if self.levels is None:
            seen = np.asarray(np.fmax.reduce(X, axis=0, initial=0))
            if seen.max(initial=0) >= _MOST_VALUES:
                raise DataError(
                    f"{self._at('fit')}: column {seen.argmax()} has a code of {seen.max():g}; give"
                    " each column codes from 0 up, without large gaps"
                )
            return seen.astype(np.intp) + 1
        levels = np.asarray(self.levels)
        if levels.shape != (X.shape[1],) or levels.dtype.kind not in "iu" or (levels < 0).any():
            raise DataError(
                f"levels: {self.levels} is not a number of values for each of {X.shape[1]}"
                " columns; give that many whole numbers"
            )
        return levels.astype(np.intp)

    def _check_parameters(self) -> None:
        _ = self.added_  # raises DataError, if the prior does not fit

    def with_levels(self, levels: Codes, codes: Sequence[Codes]) -> Self:
        """Return the model of columns that have other numbers of values; its counts stay.

        levels: (n_columns,) the new numbers of values; codes: for each column, the new code of
        each old value, -1 for a value that no document has and that is forgotten.
        """
        made = copy(self)
        made.levels, made.levels_ = levels, np.asarray(levels, np.intp)
        sums = {**self._learnt().sums, **self._spread(made.levels_, codes)}
        return made._become(self._statistics(self.classes_, sums))

    def _spread(self, levels: Codes, codes: Sequence[Codes]) -> Sums:
        """Return the sums that have axes over values, over new values; see `with_levels`."""
        new = Levels(levels)
        place = new.places(codes)
        kept = np.flatnonzero(place >= 0)
        spread = {}
        for name, n_axes in self._over_values:
            total = getattr(self, name)
            rows = np.arange(len(total))
            spread[name] = np.zeros((len(total), *[new.total] * n_axes))
            spread[name][np.ix_(rows, *[place[kept]] * n_axes)] = total[
                np.ix_(rows, *[kept] * n_axes)
            ]
        return spread


class BinaryByDefault(ColumnModel):
    """A model whose columns are binary unless levels are given.

    levels: the number of values of each column; None: X is above 0 or not, and never missing.
    """

    @property
    def _missing(self) -> bool:  # type: ignore[override]
        return self.levels is not None

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; if columns are no longer binary, or are now, `fit` has to come again."""
        was_binary = self.levels is None
        super().set_params(**parameters)
        if was_binary != (self.levels is None):  # what was learnt has other values
            self._forget()
        return self

    def _levels_of(self, X: Any) -> Codes:
        return np.full(X.shape[1], 2) if self.levels is None else super()._levels_of(X)

    def _values(self, X: Any) -> Any:
        return X > 0 if self.levels is None else X


# --- categorical naive Bayes -----------------------------------------------------------------

_BLOCK = 1 << 16  # values looked up at a time, so that they stay in the processor's cache


def count_cells(
    cells: Codes, total: int, code: Codes, weight: Array | None, n_classes: int
) -> Array:
    """Return the count of each value in each class, shape (n_classes, total).

    cells: (n_docs, n_columns) from `Levels.cells`; total: the number of values of all
    columns; code: (n_docs,) the class index of each row.
    """
    cell = (cells + (code * (total + 1))[:, None]).ravel()
    weights = None if weight is None else np.repeat(weight, cells.shape[1])
    counts = np.bincount(cell, weights, n_classes * (total + 1)).reshape(n_classes, total + 1)
    return np.asarray(counts[:, :total], dtype=np.float64)


def sum_cells(cells: Codes, log_prob: Array) -> Array:
    """Return the sum of log_prob over the values of each row, shape (n_docs, n_classes).

    cells: (n_docs, n_columns) from `Levels.cells`; log_prob: (n_classes, total).  A missing
    value adds nothing.
    """
    table = np.concatenate([log_prob, np.zeros((len(log_prob), 1))], axis=1)
    n_docs, n_columns = cells.shape
    joint = np.empty((n_docs, len(table)))
    for rows in blocks_of_rows(n_docs, n_columns, _BLOCK):
        for k, of_class in enumerate(table):
            joint[rows, k] = of_class.take(cells[rows]).sum(axis=1)
    return joint


@dataclass(kw_only=True, eq=False, repr=False)
class CategoricalNB(ColumnModel):
    """A distribution per class and column: P(value of the column given class).

    Li Hang, Statistical Learning Methods, eq. 4.8 to 4.11: (count + lambda) / (n + v lambda)
    with v values in the column, and (n_class + lambda) / (N + K lambda) for the prior.  With
    lambda 1, Zhou Zhihua's eq. 7.19 and 7.20, which some notes print once without + 1.
    X holds codes.  levels: number of values of each column; unless given, taken from the
    first documents.  All other parameters: see `ColumnModel`.
    level_count_: the number of rows with each value, (n_classes, values of all columns).

    >>> from nbspam.models import CategoricalNB
    >>> model = CategoricalNB().fit([[0, 1], [1, 0], [1, 2]], ["no", "yes", "yes"])
    >>> model.predict([[1, 1], [0, float("nan")]]).tolist()
    ['yes', 'no']
    """

    _sums = ("class_count_", "level_count_")
    _over_values = (("level_count_", 1),)
    level_count_: Array = field(init=False)

    @property
    def level_log_prob_(self) -> Array:
        """Return log P(value given class) in nats, shape (n_classes, values of all columns)."""
        self._learnt()
        return Levels(self.levels_).log_shares(self.level_count_, self.added_)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        levels = Levels(self.levels_)
        cells = levels.cells(X, type(self).__name__)
        return {"level_count_": count_cells(cells, levels.total, code, weight, n_classes)}

    def _derive(self) -> Array:
        return self.level_log_prob_

    def _joint_log_proba(self, X: Any) -> Array:
        cells = Levels(self.levels_).cells(X, type(self).__name__)
        return self.class_log_prior_ + sum_cells(cells, self.tables())

    def log_factors(self, row: Array) -> Array:
        """Return each value's addend to log P(class, row), (n_columns, n_classes), nats.

        row: (n_columns,).  A missing value adds nothing.
        """
        return sum_cells(Levels(self.levels_).cells(row[None], "log_factors").T, self.tables())

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of the model; only scikit-learn calls this."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


# --- multinomial and complement naive Bayes over columns, which may lack cells ---------------


class CountedColumns(LinearModel):
    """A linear model of arrays, in which a missing cell (NaN) is 0: its factor is left out."""

    _missing = True
    _sparse = False

    def _events(self, X: Any) -> Array:
        return np.where(np.isnan(X), 0.0, X)

    def log_factors(self, row: Array) -> Array:
        """See `CategoricalNB.log_factors`."""
        with np.errstate(invalid="ignore"):  # 0 times -inf, with alpha 0
            return np.where(row[:, None] > 0, row[:, None] * self.tables().weight, 0.0)


class CountedMultinomialNB(CountedColumns, MultinomialNB):
    """MultinomialNB of a table's columns."""


class CountedComplementNB(CountedColumns, ComplementNB):
    """ComplementNB of a table's columns."""


# --- models that keep the distinct rows, because any counts may be asked for ----------------

_NEGLIGIBLE = 1e-9  # a row of less weight is a rounding error


class DistinctRows(Statistics):
    """Distinct rows, sorted, and the weight of each.

    rows_: (n_distinct, n_columns + 1) codes, -1 where missing, the index of the class last;
    row_count_: (n_distinct,).
    """

    not_counts = ("rows_",)

    def over(self, classes: Labels) -> Sums:
        """Return the sums of these classes; see `Statistics`."""
        counts = Statistics(self.classes, {"class_count_": self.sums["class_count_"]})
        rows = self.sums["rows_"].copy()
        rows[:, -1] = np.searchsorted(classes, self.classes)[rows[:, -1]]
        return {**self.sums, **counts.over(classes), "rows_": rows}

    def _added(self, mine: Sums, theirs: Sums, sign: int) -> dict[str, Array]:
        rows = np.concatenate([mine["rows_"], theirs["rows_"]])
        weight = np.concatenate([mine["row_count_"], sign * theirs["row_count_"]])
        class_count = mine["class_count_"] + sign * theirs["class_count_"]
        return {"class_count_": class_count, **distinct_rows(rows, weight)}

    def clipped(self) -> Self:
        """Return these statistics without rounding errors, and without rows of no weight."""
        sums = super().clipped().sums
        rows = distinct_rows(sums["rows_"], sums["row_count_"])
        return type(self)(self.classes, {**sums, **rows})


def distinct_rows(rows: Any, weight: Array) -> dict[str, Any]:
    """Return the distinct rows, sorted, with the sums of their weights; zeros are left out."""
    unique, which = np.unique(rows, axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), weight, len(unique)).astype(np.float64)
    kept = np.abs(total) > _NEGLIGIBLE
    return {"rows_": unique[kept], "row_count_": total[kept]}


class RowsModel(BinaryByDefault):
    """A model that has learnt distinct rows; see DistinctRows for rows_ and row_count_.

    levels: see `BinaryByDefault`.  All other parameters: see `ColumnModel`.
    """

    _sums = ("class_count_", "rows_", "row_count_")
    _statistics = DistinctRows

    rows_: Any
    row_count_: Array

    def _codes(self, X: Any, where: str) -> Any:
        """Return the code of each value, -1 where missing."""
        levels = Levels(self.levels_)
        cells = levels.cells(self._values(X), where)
        return np.where(cells == levels.total, -1, cells - levels.start).astype(np.int32)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        rows = np.column_stack([self._codes(X, self._at("fit")), code]).astype(np.int32)
        return distinct_rows(rows, np.ones(len(rows)) if weight is None else weight)

    def _spread(self, levels: Codes, codes: Sequence[Codes]) -> Sums:
        rows = self.rows_.copy()
        for column, code in enumerate(codes):
            # A missing value, -1, stays what it is.
            rows[:, column] = np.append(code, -1)[rows[:, column]]
        return distinct_rows(rows, self.row_count_)
