"""Gaussian naive Bayes: a normal distribution per class and column of numbers.

A model learns the count, mean and sum of squared deviations of each column.  These moments
can be added (Chan, Golub & LeVeque 1979) without losing digits as sums of squares would.

Secret: how moments are added, and which variance a constant column gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import Model, Statistics
from nbspam.models.distributions import Distribution
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Sums

_BLOCK = 1 << 15  # numbers handled at a time, so that they stay in the processor's cache
# Numbers farther from 0 than this, and variances below its inverse, count as these limits:
# squares and densities then stay finite, however many columns there are.
_FARTHEST = 1e100


class Moments(Statistics):
    """Statistics whose value_count_, mean_ and deviation_ are added as moments."""

    def plus(self, other: Statistics, sign: int = 1) -> Moments:
        """Return the moments of the values of both, or with sign -1 of those that are left."""
        added = super().plus(other, sign)
        mine, theirs = self._over(added.classes), other._over(added.classes)
        n = added.sums["value_count_"]
        share = np.divide(sign * theirs["value_count_"], n, out=np.zeros_like(n), where=n > 0)
        between = theirs["mean_"] - mine["mean_"]
        deviation = added.sums["deviation_"] + between**2 * mine["value_count_"] * share
        moments = {
            "mean_": np.where(n > 0, mine["mean_"] + between * share, 0.0),
            "deviation_": np.where(n > 0, np.maximum(deviation, 0.0), 0.0),
        }
        return Moments(added.classes, {**added.sums, **moments})

    def is_negative(self) -> bool:
        """Return whether more was subtracted than had been added."""
        return self._counts().is_negative()

    def clipped(self) -> Statistics:
        """Return these statistics with rounding errors below zero replaced by zero."""
        return Moments(self.classes, {**self.sums, **self._counts().clipped().sums})

    def _counts(self) -> Statistics:
        of_moments = ("mean_", "deviation_")
        return Statistics(
            self.classes, {k: total for k, total in self.sums.items() if k not in of_moments}
        )


def moments(X: Array, code: Codes, weight: Array | None, n_classes: int) -> Sums:
    """Return the moments of the rows of each class, arrays of (n_classes, n_columns).

    X: (n_docs, n_columns), NaN where missing; code: (n_docs,) the class index of each row.
    """
    sums = {
        name: np.zeros((n_classes, X.shape[1])) for name in ("value_count_", "mean_", "deviation_")
    }
    for k in range(n_classes):
        rows = np.clip(X[code == k].astype(np.float64, copy=False), -_FARTHEST, _FARTHEST)
        times = None if weight is None else weight[code == k, None]
        known = ~np.isnan(rows)
        if not known.all():
            times = known * (1.0 if times is None else times)
            rows = np.where(known, rows, 0.0)
        if times is None:
            n = np.full(X.shape[1], float(len(rows)))
            mean = rows.sum(axis=0) / max(1, len(rows))
            rows -= mean
            deviation = np.einsum("ij,ij->j", rows, rows)
        else:
            n = np.broadcast_to(times, rows.shape).sum(axis=0)
            mean = (times * rows).sum(axis=0) / np.where(n > 0, n, 1.0)
            deviation = (times * (rows - mean) ** 2).sum(axis=0)
        sums["value_count_"][k], sums["mean_"][k], sums["deviation_"][k] = n, mean, deviation
    return sums


@dataclass(frozen=True, eq=False)
class Bells:
    """A normal distribution per class and column: mean and variance, (n_classes, n_columns)."""

    mean: Array
    variance: Array

    def log_density(self, X: Array) -> Array:
        """Return the summed log-density of each row, nats, shape (n_docs, n_classes).

        Each number adds -(x - mean)^2 / (2 variance) - log(2 pi variance) / 2, a missing one 0.
        X: (n_docs, n_columns), NaN where missing.
        """
        n_docs, n_columns = X.shape
        joint = np.empty((n_docs, len(self.mean)))
        factor, constant = -0.5 / self.variance, -0.5 * np.log(2 * np.pi * self.variance)
        rows = max(1, _BLOCK // max(1, n_columns))
        for start in range(0, n_docs, rows):
            block = np.clip(X[start : start + rows], -_FARTHEST, _FARTHEST)
            known = ~np.isnan(block)
            all_known = bool(known.all())
            for k, mean in enumerate(self.mean):
                distance = block - mean
                if not all_known:
                    distance[~known] = 0.0
                np.square(distance, out=distance)
                height = constant[k].sum() if all_known else known @ constant[k]
                joint[start : start + rows, k] = distance @ factor[k] + height
        return joint


def bells(sums: Sums, ddof: int, var_smoothing: float) -> Bells:
    """Return the normal distributions with these moments.

    A class with too few values of a column for a variance gets the variance of all rows;
    with no value at all, it also gets their mean.  var_smoothing times the variance of all
    rows is added to every variance, so that none is zero.  A column that is constant over
    all rows gets variance 1 and the same mean in every class, and so is no evidence.
    ddof: 1 divides by n - 1, 0 by n.
    """
    n, mean, deviation = (sums[name] for name in ("value_count_", "mean_", "deviation_"))
    mean_all, variance_all = over_all_rows(n, mean, deviation)
    enough = n > ddof
    variance = np.where(enough, deviation / np.where(enough, n - ddof, 1.0), variance_all)
    variance = variance + var_smoothing * variance_all
    variance = np.where(variance > 0, np.maximum(variance, 1 / _FARTHEST), 1.0)
    return Bells(np.where(n > 0, mean, mean_all), variance)


def over_all_rows(n: Array, mean: Array, deviation: Array) -> tuple[Array, Array]:
    """Return the mean and variance of each column over all classes, (n_columns,).

    n, mean, deviation: (n_classes, n_columns), see `moments`.  The variance divides by n.
    """
    n_all = np.maximum(n.sum(axis=0), np.finfo(float).tiny)
    mean_all = (n * mean).sum(axis=0) / n_all
    return mean_all, (deviation + n * (mean - mean_all) ** 2).sum(axis=0) / n_all


def normal_distributions(
    columns: Iterable[int], of_class: int, learnt: Statistics, curves: Bells
) -> Iterator[Distribution]:
    """Yield the normal distribution of each column of numbers; of_class: the class's number."""
    count = learnt.sums["value_count_"]
    for j, column in enumerate(columns):
        mean, variance = curves.mean[:, j], curves.variance[:, j]
        yield Distribution((column,), (of_class,), count[:, j], None, mean, variance)


def divisor(ddof: int | None, estimate: str) -> int:
    """Return what is subtracted from n in the variance: `ddof`, or by the estimate.

    Maximum likelihood divides by n (Zhou Zhihua's eq. 7.13), other estimates by n - 1, as the
    worked example of his section 7.3 does.
    """
    if ddof is not None:
        return ddof
    return 0 if estimate == "mle" else 1


def checked_var_smoothing(var_smoothing: float) -> float:
    """Return var_smoothing; raises DataError unless it is above zero."""
    if not 0 < var_smoothing < np.inf:
        raise DataError(f"var_smoothing: {var_smoothing!r} is not a number above 0; give one")
    return var_smoothing


class GaussianNB(Model):
    """A normal distribution per class and column: density(number given class).

    Zhou Zhihua, Machine Learning, eq. 7.18.  estimate: "mle" divides the squared deviations
    by n, "mean" by n - 1, as that book's example does; ddof: subtracted from n, whatever the
    estimate.  var_smoothing: fraction of a column's variance over all rows that is added to
    its variance in each class.

    >>> from nbspam.models import GaussianNB
    >>> model = GaussianNB().fit([[1.0], [2.0], [7.0], [9.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [10.0]]).tolist()
    ['low', 'high']
    """

    _sums = ("class_count_", "value_count_", "mean_", "deviation_")
    _statistics = Moments
    _missing = True
    _sparse = False
    value_count_: Array
    mean_: Array
    deviation_: Array

    def __init__(
        self,
        *,
        estimate: str = "mean",
        class_prior: str | ArrayLike = "estimated",
        ddof: int | None = None,
        var_smoothing: float = 1e-9,
    ) -> None:
        self.estimate = estimate
        self.class_prior = class_prior
        self.ddof = ddof
        self.var_smoothing = var_smoothing

    @property
    def var_(self) -> Array:
        """Return the variance of each distribution, shape (n_classes, n_columns)."""
        variance: Array = self.tables().variance
        return variance

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), and the normal distribution of each column given the class."""
        yield from super().distributions(whole)
        columns = range(self.n_features_in_)
        yield from normal_distributions(
            columns, self.n_features_in_, self._learnt(), self.tables()
        )

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        return moments(X, code, weight, n_classes)

    def _become(self, learnt: Statistics, n_features: int) -> GaussianNB:
        checked_var_smoothing(self.var_smoothing)
        if self.estimate not in ("mle", "mean"):
            raise DataError(
                f"estimate: {self.estimate!r} is none of a variance; choose from mle, mean"
            )
        return super()._become(learnt, n_features)

    def _derive(self) -> Bells:
        ddof = divisor(self.ddof, self.estimate)
        return bells(self._learnt().sums, ddof, self.var_smoothing)

    def _joint_log_proba(self, X: Any) -> Array:
        density: Array = self.tables().log_density(X)
        return self.class_log_prior_ + density
