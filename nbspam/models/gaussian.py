"""Normal distributions of numbers: Gaussian naive Bayes, mixed columns, and given a category too.

A model learns the count, mean and sum of squared deviations of each column.  These moments
can be added (Chan, Golub & LeVeque 1979) without losing digits as sums of squares would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.errors import check_number
from nbspam.models.base import Estimator, Statistics
from nbspam.models.columns import ColumnModel, Levels, count_cells, sum_cells
from nbspam.models.inputs import DataError, blocks_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Sums

_BLOCK = 1 << 15  # numbers handled at a time, so that they stay in the processor's cache
# Numbers farther from 0 than this, and variances below its inverse, count as these limits:
# squares and densities then stay finite, however many columns there are.
_FARTHEST = 1e100
# Error of a sum of squared deviations, as a share of the sum of squares: numbers that were
# un-learned before may have been a million times larger, and left their rounding errors.
_ROUNDING = 1e-4
_CANCELLED = 1e-14  # what is left of a sum is a rounding error, if it is a smaller share of it
_EPSILON = 4e-16  # rounding error of a mean, as a share of it
_CONSTANT = 1e-12  # numbers are all equal, if their deviation is a smaller share of their mean
LEAST_SHARE = 1e-9  # of a column's variance over all rows, which a variance has at least


def within_bounds(X: Array) -> Array:
    """Return numbers, cut to the limits."""
    return np.clip(np.asarray(X, np.float64), -_FARTHEST, _FARTHEST)


def _among(mean: Array, values: Array) -> Array:
    """Return means that rounding has not moved beyond all of their values.

    The mean of equal values is then exact, so that a constant column has no variance at all.
    mean: (n_columns,); values: (n, n_columns), NaN where there is none.
    """
    low = np.fmin.reduce(values, axis=0, initial=np.nan)
    high = np.fmax.reduce(values, axis=0, initial=np.nan)
    return np.asarray(np.fmax(low, np.fmin(mean, high)))


class Moments(Statistics):
    """Statistics of which three, a count, a mean and a sum of squares, are added as moments."""

    names = ("value_count_", "mean_", "deviation_")
    not_counts = ("mean_",)

    def _added(self, mine: Sums, theirs: Sums, sign: int) -> dict[str, Array]:
        """Return the moments of the values of both, or with sign -1 of the remaining ones.

        A sum of squares is -inf if no numbers could remain: some had not been among those of self.
        """
        sums = super()._added(mine, theirs, sign)
        of_count, of_mean, of_deviation = self.names
        if of_count not in sums:
            return sums
        n = sums[of_count]
        share = np.divide(sign * theirs[of_count], n, out=np.zeros_like(n), where=n > 0)
        between = theirs[of_mean] - mine[of_mean]
        deviation = sums[of_deviation] + between**2 * mine[of_count] * share
        # Where nothing remains, both have the same moments.
        apart = np.abs(sums[of_deviation]) + between**2 * mine[of_count]
        squares = mine[of_deviation] + mine[of_count] * mine[of_mean] ** 2
        # All that is left of a class may be 0, so a usual number of the column counts, too.
        others = tuple(range(squares.ndim - 1))
        usual = squares.sum(axis=others) / np.maximum(mine[of_count].sum(axis=others), 1.0)
        rounding = _ROUNDING * (squares + usual)
        is_possible = np.where(n > 0, deviation >= -rounding, apart <= rounding)
        mean = mine[of_mean] + between * share
        has_mean = (n > 0) & (np.abs(mean) > _CANCELLED * np.abs(mine[of_mean]))
        # Means are rounded, too, and their distance multiplies what they have lost.
        blurred = _EPSILON * np.abs(between * mean * mine[of_count] * share)
        has_deviation = (n > 0) & (deviation > _CANCELLED * mine[of_deviation] + blurred)
        sums[of_mean] = np.where(has_mean, mean, 0.0)
        deviation = np.where(has_deviation, deviation, 0.0)
        sums[of_deviation] = np.where(is_possible, deviation, -np.inf)
        return sums


def moments(X: Array, code: Codes, weight: Array | None, n_classes: int) -> Sums:
    """Return the moments of the rows of each class, arrays of (n_classes, n_columns).

    X: (n_docs, n_columns), NaN where missing; code: (n_docs,) the class index of each row.
    """
    sums = {name: np.zeros((n_classes, X.shape[1])) for name in Moments.names}
    for k in range(n_classes):
        rows = within_bounds(X[code == k].astype(np.float64, copy=False))
        times = None if weight is None else weight[code == k, None]
        known = ~np.isnan(rows)
        if not known.all():
            times = known * (1.0 if times is None else times)
            rows = np.where(known, rows, 0.0)
        if times is None:
            n = np.full(X.shape[1], float(len(rows)))
            mean = _among(rows.sum(axis=0) / max(1, len(rows)), rows)
            rows -= mean
            deviation = np.einsum("ij,ij->j", rows, rows)
        else:
            n = np.broadcast_to(times, rows.shape).sum(axis=0)
            mean = (times * rows).sum(axis=0) / np.where(n > 0, n, 1.0)
            mean = _among(mean, np.where(times > 0, rows, np.nan))
            deviation = (times * (rows - mean) ** 2).sum(axis=0)
        sums["value_count_"][k], sums["mean_"][k], sums["deviation_"][k] = n, mean, deviation
    return sums


@dataclass(frozen=True, eq=False)
class Bells:
    """A normal distribution per class and column: mean and variance, (n_classes, n_columns)."""

    mean: Array
    variance: Array

    def log_densities(self, X: Array) -> Array:
        """Return the log-density of each number, nats, 0 where missing; X broadcasts to mean."""
        height = np.square(within_bounds(X) - self.mean) / self.variance
        height += np.log(2 * np.pi * self.variance)
        return np.where(np.isnan(X), 0.0, -0.5 * height)

    def log_density(self, X: Array) -> Array:
        """Return the summed log-density of each row, nats, shape (n_docs, n_classes).

        Each number adds -(x - mean)^2 / (2 variance) - log(2 pi variance) / 2, a missing one 0.
        X: (n_docs, n_columns), NaN where missing.
        """
        n_docs, n_columns = X.shape
        joint = np.empty((n_docs, len(self.mean)))
        factor, constant = -0.5 / self.variance, -0.5 * np.log(2 * np.pi * self.variance)
        for rows in blocks_of_rows(n_docs, n_columns, _BLOCK):
            block = within_bounds(X[rows])
            known = ~np.isnan(block)
            all_known = bool(known.all())
            for k, mean in enumerate(self.mean):
                distance = block - mean
                if not all_known:
                    distance[~known] = 0.0
                np.square(distance, out=distance)
                height = constant[k].sum() if all_known else known @ constant[k]
                joint[rows, k] = distance @ factor[k] + height
        return joint


def fitted(
    moments: Sequence[Array], otherwise: Bells, variance_all: Array, ddof: int, smoothing: float
) -> Bells:
    """Return the normal distributions with these moments, of any shape; see `NormalColumns.bells`.

    otherwise: the distributions where values are too few; variance_all: of all rows, (n_columns,).
    """
    n, mean, deviation = moments
    enough = n > ddof
    variance = np.where(enough, deviation / np.where(enough, n - ddof, 1.0), otherwise.variance)
    variance = np.maximum(variance, np.maximum(smoothing * variance_all, 1 / _FARTHEST))
    variance = np.where(variance_all > 0, variance, 1.0)
    return Bells(np.where((n > 0) & (variance_all > 0), mean, otherwise.mean), variance)


def over_all_rows(n: Array, mean: Array, deviation: Array) -> Bells:
    """Return the distribution of each column over all classes, arrays of (n_columns,).

    n, mean, deviation: (n_classes, n_columns), see `moments`.  The variance divides by n.
    """
    n_all = np.maximum(n.sum(axis=0), np.finfo(float).tiny)
    mean_all = (n * mean).sum(axis=0) / n_all
    variance = (deviation + n * (mean - mean_all) ** 2).sum(axis=0) / n_all
    return Bells(mean_all, np.where(variance > (_CONSTANT * mean_all) ** 2, variance, 0.0))


def divisor(estimate: str) -> int:
    """Return the number that an estimate subtracts from n in the variance.

    Maximum likelihood divides by n (Zhou Zhihua's eq. 7.13), other estimates by n - 1, as the
    worked example of his section 7.3 does.
    """
    return 0 if estimate == "mle" else 1


@dataclass(kw_only=True, eq=False, repr=False)
class NormalColumns(Estimator):
    """A model with a normal distribution per class and column of numbers.

    ddof: subtracted from n in a variance, whatever the estimate.  var_smoothing: the least share
    of a column's variance over all rows that its variance in a class may have; with 0, estimates
    are exact.  value_count_, mean_, deviation_: the number of known values, their mean and the
    sum of their squared deviations, (n_classes, n_numbers).
    """

    _statistics = Moments

    estimate: str = "mean"
    ddof: int | None = None
    var_smoothing: float = LEAST_SHARE
    value_count_: Array = field(init=False)
    mean_: Array = field(init=False)
    deviation_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("var_smoothing", self.var_smoothing, 0, error=DataError)
        if self.ddof is not None:
            check_number("ddof", self.ddof, 0, whole=True, error=DataError)

    def bells(self) -> Bells:
        """Return the normal distributions that the model has learnt.

        A class with too few values of a column for a variance gets the variance of all rows;
        with no value at all, it also gets their mean.  No variance is below var_smoothing times
        the variance of all rows; all others are exact.  A column that is constant over all rows
        gets variance 1 and the same mean in every class, and so is no evidence.
        """
        moments = self.value_count_, self.mean_, self.deviation_
        all_rows = over_all_rows(*moments)
        ddof = divisor(self.estimate) if self.ddof is None else self.ddof
        return fitted(moments, all_rows, all_rows.variance, ddof, self.var_smoothing)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(NormalColumns):
    """A normal distribution per class and column: density(number given class).

    Zhou Zhihua, Machine Learning, eq. 7.18.  estimate: "mle" divides the squared deviations
    by n, "mean" by n - 1, as that book's example does.  class_prior: "estimated", "uniform" or one
    probability per class.  All other parameters: see `NormalColumns`.

    >>> from nbspam.models import GaussianNB
    >>> model = GaussianNB().fit([[1.0], [2.0], [7.0], [9.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [10.0]]).tolist()
    ['low', 'high']
    """

    _sums = ("class_count_", "value_count_", "mean_", "deviation_")
    _missing = True
    _sparse = False

    class_prior: str | ArrayLike = "estimated"

    @property
    def var_(self) -> Array:
        """Return the variance of each distribution, shape (n_classes, n_columns)."""
        return np.asarray(self.tables().variance)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        return moments(X, code, weight, n_classes)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimate not in ("mle", "mean"):
            raise DataError(
                f"estimate: {self.estimate!r} is none of a variance; choose from mle, mean"
            )

    def _derive(self) -> Bells:
        return self.bells()

    def _joint_log_proba(self, X: Any) -> Array:
        return np.asarray(self.class_log_prior_ + self.tables().log_density(X))

    def log_factors(self, row: Array) -> Array:
        """See `CategoricalNB.log_factors`."""
        return np.asarray(self.tables().log_densities(row).T)


@dataclass(kw_only=True, eq=False, repr=False)
class MixedNB(NormalColumns, ColumnModel):
    """CategoricalNB for the categorical columns times GaussianNB for the numeric ones.

    Zhou Zhihua, Machine Learning, section 7.3: eq. 7.17 and 7.18 in one product.
    levels: the number of values of each column, 0 for a column of numbers; unless given,
    all columns hold numbers.  estimate "mle" also divides variances by n, others by n - 1,
    unless ddof is given.  All other parameters: see `ColumnModel` and `NormalColumns`.

    >>> from nbspam.models import MixedNB
    >>> model = MixedNB(levels=[2, 0]).fit([[0, 1.5], [1, 3.5], [1, 2.5]], ["no", "yes", "yes"])
    >>> model.predict([[1, 2.0]]).tolist()
    ['yes']
    """

    _sums = ("class_count_", "level_count_", "value_count_", "mean_", "deviation_")
    _over_values = (("level_count_", 1),)

    level_count_: Array = field(init=False)

    def _levels_of(self, X: Any) -> Codes:
        # Without levels, every column holds numbers.
        return np.zeros(X.shape[1], np.intp) if self.levels is None else super()._levels_of(X)

    def _parts(self, X: Any) -> tuple[Levels, Codes, Array]:
        """Return the levels and cells of the columns of categories, and the numbers."""
        is_number = self.levels_ == 0
        levels = Levels(self.levels_[~is_number])
        return levels, levels.cells(X[:, ~is_number], type(self).__name__), X[:, is_number]

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        levels, cells, numbers = self._parts(X)
        count = count_cells(cells, levels.total, code, weight, n_classes)
        return {"level_count_": count, **moments(numbers, code, weight, n_classes)}

    def _derive(self) -> tuple[Array, Bells]:
        levels = Levels(self.levels_[self.levels_ > 0])
        return levels.log_shares(self.level_count_, self.added_), self.bells()

    def _joint_log_proba(self, X: Any) -> Array:
        log_prob, bells = self.tables()
        _, cells, numbers = self._parts(X)
        joint = self.class_log_prior_ + sum_cells(cells, log_prob)
        return np.asarray(joint + bells.log_density(numbers))

    def log_factors(self, row: Array) -> Array:
        """See `CategoricalNB.log_factors`."""
        log_prob, bells = self.tables()
        _, cells, numbers = self._parts(row[None])
        factors = np.empty((len(row), len(self.classes_)))
        factors[self.levels_ > 0] = sum_cells(cells.T, log_prob)
        factors[self.levels_ == 0] = bells.log_densities(numbers).T
        return factors


# --- given class and parent -----------------------------------------------------------------
#
# Zhou Zhihua's eq. 7.21 for numbers: of the rows of a class whose parent has some value, mean and
# variance are estimated like those of a class (eq. 7.18).  The shapes have a value axis of D + 1:
# one entry for each value of all columns of categories, and a last one for the class as a whole,
# which is the distribution where the parent is not known.


class ConditionalMoments(Moments):
    """Statistics whose moments, if there are numbers, are given the class and a value."""

    names = ("given_count_", "given_mean_", "given_deviation_")
    not_counts = ("given_mean_",)


def conditional_moments(
    numbers: Array, cells: Codes, levels: Levels, code: Codes, weight: Any, n_classes: int
) -> Sums:
    """Return the moments of numbers by class and value, (n_classes, D + 1, n_numbers).

    numbers: (n_docs, n_numbers), NaN where missing; cells: (n_docs, n_columns), the indices of
    the other columns' values; code: (n_docs,) the class index of each row.
    """
    sums = {
        name: np.zeros((n_classes, levels.total + 1, numbers.shape[1]))
        for name in ConditionalMoments.names
    }

    # The class as a whole is a column whose only value is known in all rows.
    cells = np.column_stack([cells, np.full(len(cells), levels.total)])
    whole = slice(levels.total, levels.total + 1)
    for column, place in zip(cells.T, [*levels.slices, whole], strict=True):
        known, n_values = column < place.stop, place.stop - place.start
        group = code[known] * n_values + column[known] - place.start
        weights = None if weight is None else weight[known]
        found = moments(numbers[known], group, weights, n_classes * n_values)
        for name, total in zip(ConditionalMoments.names, found.values(), strict=True):
            sums[name][:, place] = total.reshape(n_classes, n_values, -1)
    return sums


@dataclass(frozen=True, eq=False)
class ConditionalBells:
    """A normal distribution per class, value and column of numbers, (n_classes, D + 1, n_numbers).

    Where too few rows of a class have a value, it gets the variance of the class, and with none
    also its mean.  A class with too few rows gets those of all rows, as in `NormalColumns.bells`.
    """

    moments: tuple[Array, Array, Array]  # count, mean and sum of squared deviations
    ddof: int

    @cached_property
    def all_rows(self) -> Bells:
        """The distribution of each column over all rows, (n_numbers,)."""
        return over_all_rows(*(each[:, -1] for each in self.moments))

    @cached_property
    def learnt(self) -> Bells:
        """The distributions of all rows that were learnt."""
        of_class = self._fitted([each[:, -1:] for each in self.moments], self.all_rows)
        return self._fitted(self.moments, of_class)

    def log_density(self, k: int, X: Array, cells: Codes, leave_out: bool = False) -> Array:
        """Return the summed log-density of numbers in class k, nats, (…) of (…, n_numbers).

        X: NaN where missing; cells: the index of the value that is given, D where it is not known;
        both of shapes that broadcast.  leave_out: as if each row of X had not been learnt.
        """
        numbers = np.arange(X.shape[-1])
        if leave_out:
            of_class, of_value = (
                _without(X, *(each[k][place] for each in self.moments))
                for place in ((-1, numbers), (cells, numbers))
            )
            bells = self._fitted(of_value, self._fitted(of_class, self.all_rows))
        else:
            whole = self.learnt
            bells = Bells(whole.mean[k][cells, numbers], whole.variance[k][cells, numbers])
        return np.asarray(bells.log_densities(X).sum(axis=-1))

    def gain(self, levels: Levels) -> Array:
        """Return how much likelier numbers are given a column, nats a row, (n_columns, n_numbers).

        The mean of log p(number given class and value) - log p(number given class) over the rows
        learnt that know both.  Of categories that mean is the information of eq. 7.22.
        """
        (n, mean, deviation), bells = self.moments, self.learnt
        by_class = deviation + n * (mean - bells.mean[:, -1:]) ** 2
        gain = 0.5 * (
            n * np.log(bells.variance[:, -1:] / bells.variance)
            + by_class / bells.variance[:, -1:]
            - deviation / bells.variance
        )
        total, rows = (
            np.add.reduceat(each[:, :-1].sum(axis=0), levels.start, axis=0) for each in (gain, n)
        )
        return np.asarray(np.divide(total, rows, out=np.zeros_like(total), where=rows > 0))

    def _fitted(self, moments: Sequence[Array], otherwise: Bells) -> Bells:
        return fitted(moments, otherwise, self.all_rows.variance, self.ddof, LEAST_SHARE)


def _without(x: Array, n: Array, mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
    """Return the moments of numbers after one of them, x, has been taken out."""
    left, distance = np.maximum(n - 1.0, 0.0), within_bounds(x) - mean
    share = distance / np.maximum(left, 1.0)
    return left, mean - share, np.maximum(deviation - n * distance * share, 0.0)
