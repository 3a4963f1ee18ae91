"""Complement naive Bayes: a class is scored by the tokens of all other classes.

Secret: how weights that are not log-probabilities still give a proper posterior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbspam.models.inputs import DataError
from nbspam.models.linear import LinearModel, Tables
from nbspam.models.smoothing import best_alpha, smoothed_log_prob

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array


class ComplementNB(LinearModel):
    """A distribution over tokens per class, estimated from all other classes together.

    Rennie, Shih, Teevan & Karger (2003), section 3.1: predicts the class of
    argmax log P(class) - sum of f log P(token given not class), f the token's count.
    Even a rare class is thus scored with estimates from much data.  With two classes this
    is the multinomial model.

    norm: divide each class's weights by the sum of their absolute values (Rennie et al.,
    section 3.2), so that no class wins only because its weights are large.
    """

    _positive = True

    def __init__(
        self,
        *,
        alpha: float | str = 1.0,
        class_prior: str | ArrayLike = "estimated",
        norm: bool = False,
    ) -> None:
        super().__init__(alpha=alpha, class_prior=class_prior)
        self.norm = norm

    @property
    def feature_log_prob_(self) -> Array:
        """Return -log P(token given not class), shape (n_classes, n_features).

        In nats; with norm, divided by the sum of the class's weights.
        """
        weight = self._weight(self.alpha_)
        return weight / _size(weight) if self.norm else weight

    def _complement_count(self) -> Array:
        """Return the counts of all other classes, shape (n_classes, n_features)."""
        # Exactly 0 for a token that only one class has, even if counts are fractions:
        # all other terms of the sum are zeros.
        return np.asarray(self.feature_count_.sum(axis=0) - self.feature_count_)

    def _weight(self, alpha: float) -> Array:
        n, d = self._complement_count(), self.n_features_in_
        log_prob = smoothed_log_prob(n, n.sum(axis=1, keepdims=True), d, alpha)
        return np.negative(log_prob, out=log_prob)

    def _derive(self) -> Tables:
        weight = self._weight(self.alpha_)
        if self.norm:
            # One factor for all classes turns weights back into nats, the prior's unit.
            size = _size(weight)
            weight *= size.mean() / size
        # Subtracting the same from all classes changes no posterior.  Less the largest
        # weight, each weight is the log of a ratio from 0 to 1, and a joint log-probability
        # never exceeds the prior.
        with np.errstate(invalid="ignore"):
            weight -= weight.max(axis=0)
        # With alpha 0 the largest may be infinite: inf - inf, which means "the largest".
        weight[np.isnan(weight)] = 0.0
        return Tables(self.class_log_prior_, np.ascontiguousarray(weight.T))

    def _best_alpha(self) -> float:
        # The complement of a class is one distribution over all tokens.
        n = self._complement_count()
        return best_alpha(n, n.sum(axis=1), self.n_features_in_)


def _size(weight: Array) -> Array:
    """Return the sum of each class's weights, 1 where it is 0, shape (n_classes, 1)."""
    size = weight.sum(axis=1, keepdims=True)
    if not np.isfinite(size).all():
        raise DataError("ComplementNB: norm needs finite weights; give an alpha above 0")
    return np.where(size > 0, size, 1.0)
