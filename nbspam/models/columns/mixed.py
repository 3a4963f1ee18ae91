"""Mixed naive Bayes: some columns hold categories, the others numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import Statistics
from nbspam.models.columns.categorical import count_cells, shares_of_values, sum_cells
from nbspam.models.columns.gaussian import (
    Bells,
    Moments,
    bells,
    checked_var_smoothing,
    divisor,
    moments,
    normal_distributions,
)
from nbspam.models.columns.levels import ColumnModel, Levels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from nbspam.models.columns.levels import Dirichlet
    from nbspam.models.distributions import Distribution
    from nbspam.models.inputs import Array, Codes, Sums


class MixedNB(ColumnModel):
    """CategoricalNB for the columns of categories times GaussianNB for those of numbers.

    Zhou Zhihua, Machine Learning, section 7.3: eq. 7.17 and 7.18 in one product.
    levels: the number of values of each column, 0 for a column of numbers; unless given,
    all columns hold numbers.  estimate "mle" also divides variances by n, others by n - 1,
    unless ddof says what is subtracted from n.

    >>> from nbspam.models import MixedNB
    >>> model = MixedNB(levels=[2, 0]).fit([[0, 1.5], [1, 3.5], [1, 2.5]], ["no", "yes", "yes"])
    >>> model.predict([[1, 2.0]]).tolist()
    ['yes']
    """

    _sums = ("class_count_", "level_count_", "value_count_", "mean_", "deviation_")
    _statistics = Moments
    _over_values: tuple[tuple[str, int], ...] = (("level_count_", 1),)
    level_count_: Array
    value_count_: Array
    mean_: Array
    deviation_: Array

    def __init__(
        self,
        *,
        levels: ArrayLike | None = None,
        estimate: str = "mean",
        alpha: float = 1.0,
        class_prior: str | ArrayLike = "smoothed",
        dirichlet: Dirichlet = None,
        ddof: int | None = None,
        var_smoothing: float = 1e-9,
    ) -> None:
        super().__init__(
            levels=levels,
            estimate=estimate,
            alpha=alpha,
            class_prior=class_prior,
            dirichlet=dirichlet,
        )
        self.ddof = ddof
        self.var_smoothing = var_smoothing

    def _levels_of(self, X: Any) -> Codes:
        # Without levels, every column holds numbers.
        return np.zeros(X.shape[1], np.intp) if self.levels is None else super()._levels_of(X)

    def _parts(self, X: Any) -> tuple[Levels, Codes, Array]:
        """Return the levels and cells of the columns of categories, and the numbers."""
        is_number = self.levels_ == 0
        levels = Levels(self.levels_[~is_number])
        return levels, levels.cells(X[:, ~is_number], type(self).__name__), X[:, is_number]

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), the shares of categories, and then the normal distributions."""
        yield from super().distributions(whole)
        log_prob, curves = self.tables()
        yield from shares_of_values(self.levels_, self.level_count_, log_prob)
        numbers = np.flatnonzero(self.levels_ == 0).tolist()
        yield from normal_distributions(numbers, len(self.levels_), self._learnt(), curves)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        levels, cells, numbers = self._parts(X)
        count = count_cells(cells, levels.total, code, weight, n_classes)
        return {"level_count_": count, **moments(numbers, code, weight, n_classes)}

    def _become(self, learnt: Statistics, n_features: int) -> Self:
        checked_var_smoothing(self.var_smoothing)
        return super()._become(learnt, n_features)

    def _derive(self) -> tuple[Array, Bells]:
        levels = Levels(self.levels_[self.levels_ > 0])
        log_prob = levels.log_shares(self.level_count_, self.added_)
        ddof = divisor(self.ddof, self.estimate)
        return log_prob, bells(self._learnt().sums, ddof, self.var_smoothing)

    def _joint_log_proba(self, X: Any) -> Array:
        log_prob, curves = self.tables()
        _, cells, numbers = self._parts(X)
        return np.asarray(
            self.class_log_prior_ + sum_cells(cells, log_prob) + curves.log_density(numbers)
        )
