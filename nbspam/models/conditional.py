"""Columns of numbers that depend on a category: a normal distribution given class and parent.

Zhou Zhihua's eq. 7.21 for numbers: of the rows of a class whose parent has some value, mean and
variance are estimated like those of a class (eq. 7.18).  The shapes have a value axis of D + 1:
one entry for each value of all columns of categories, and a last one for the class as a whole,
which is the distribution where the parent is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.gaussian import (
    LEAST_SHARE,
    Bells,
    Moments,
    fitted,
    moments,
    over_all_rows,
    within_bounds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbspam.models.base import Array, Codes, Statistics, Sums
    from nbspam.models.columns import Levels


class ConditionalMoments(Moments):
    """Statistics whose moments, if there are numbers, are given the class and a value."""

    names = ("given_count_", "given_mean_", "given_deviation_")


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

    def enter(places: slice, given: Codes, n_values: int) -> None:
        known = given < n_values
        weights = None if weight is None else weight[known]
        cell = code[known] * n_values + given[known]
        found = moments(numbers[known], cell, weights, n_classes * n_values)
        for name, total in zip(ConditionalMoments.names, found.values(), strict=True):
            sums[name][:, places] = total.reshape(n_classes, n_values, -1)

    for column, place in enumerate(levels.slices):
        given = np.where(cells[:, column] < levels.total, cells[:, column], place.stop)
        enter(place, given - place.start, place.stop - place.start)
    enter(slice(levels.total, None), np.zeros(len(code), np.intp), 1)
    return sums


@dataclass(frozen=True, eq=False)
class ConditionalBells:
    """A normal distribution per class, value and column of numbers, (n_classes, D + 1, n_numbers).

    A class that has too few numbers with a value for a variance gets the variance of the class,
    and with none also its mean.  For a class that has too few see `bells`; what stands in for it,
    and the least variance, are those of all rows.
    """

    moments: tuple[Array, Array, Array]  # count, mean and sum of squared deviations
    ddof: int

    @classmethod
    def of(cls, learnt: Statistics, ddof: int) -> ConditionalBells | None:
        """Return the distributions with these moments, None if there are no numbers."""
        n, mean, deviation = (learnt.sums.get(name) for name in ConditionalMoments.names)
        if n is None or mean is None or deviation is None:
            return None
        return cls((n, mean, deviation), ddof)

    @cached_property
    def all_rows(self) -> Bells:
        """The distribution of each column over all rows, (n_numbers,)."""
        n, mean, deviation = (each[:, -1] for each in self.moments)
        return Bells(*over_all_rows(n, mean, deviation))

    @cached_property
    def bells(self) -> Bells:
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
            whole = self.bells
            bells = Bells(whole.mean[k][cells, numbers], whole.variance[k][cells, numbers])
        height = np.square(within_bounds(X) - bells.mean) / bells.variance
        height += np.log(2 * np.pi * bells.variance)
        return np.asarray(np.where(np.isnan(X), 0.0, -0.5 * height).sum(axis=-1))

    def gain(self, levels: Levels) -> Array:
        """Return how much likelier numbers are given a column, nats a row, (n_columns, n_numbers).

        The mean of log p(number given class and value) - log p(number given class) over the rows
        learnt that know both.  Of categories that mean is the information of eq. 7.22.
        """
        (n, mean, deviation), bells = self.moments, self.bells
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
        n, mean, deviation = moments
        variance_all = self.all_rows.variance
        return fitted(n, mean, deviation, otherwise, variance_all, self.ddof, LEAST_SHARE)


def _without(x: Array, n: Array, mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
    """Return the moments of numbers after one of them, x, has been taken out."""
    left, distance = np.maximum(n - 1.0, 0.0), within_bounds(x) - mean
    share = distance / np.maximum(left, 1.0)
    return left, mean - share, np.maximum(deviation - n * distance * share, 0.0)
