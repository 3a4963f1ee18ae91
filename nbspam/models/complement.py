"""Naive Bayes by complement: a class is judged by what is not in it.

Secret: how weights that are not log-probabilities still make a proper posterior.
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
    """One die per class, thrown for every token by all other classes together.

    Rennie, Shih, Teevan & Karger (2003), section 3.1: the class of
    argmax log P(class) - sum of f log P(token given not class), f the token's count.
    A rare class is so judged by plenty of data.  With two classes this is the
    multinomial model.

    norm: divide each class's weights by the sum of their absolute values (Rennie et al.,
    section 3.2), so that no class wins by the size of its weights alone.
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

        In nats, or, with norm, as a share of the class's sum.
        """
        weight = self._weight(self.alpha_)
        return weight / _size(weight) if self.norm else weight

    def _complement_count(self) -> Array:
        """Return the counts of all other classes, shape (n_classes, n_features)."""
        # Exactly 0 for a token of one class alone, fractions or not: the other counts
        # in the sum are zeros.
        return np.asarray(self.feature_count_.sum(axis=0) - self.feature_count_)

    def _weight(self, alpha: float) -> Array:
        n, d = self._complement_count(), self.n_features_in_
        log_prob = smoothed_log_prob(n, n.sum(axis=1, keepdims=True), d, alpha)
        return np.negative(log_prob, out=log_prob)

    def _derive(self) -> Tables:
        weight = self._weight(self.alpha_)
        if self.norm:
            # Back to nats, by one factor for all classes, to stand beside the prior.
            size = _size(weight)
            weight *= size.mean() / size
        # What all classes share says nothing: less the best class's weight, each is the
        # log of a ratio of 0 to 1, and a joint log-probability is never above the prior.
        with np.errstate(invalid="ignore"):
            weight -= weight.max(axis=0)
        # Under maximum likelihood the best may be infinite, and is the best all the same.
        weight[np.isnan(weight)] = 0.0
        return Tables(self.class_log_prior_, np.ascontiguousarray(weight.T))

    def _best_alpha(self) -> float:
        # The complement of a class is one distribution over all tokens.
        n = self._complement_count()
        return best_alpha(n, n.sum(axis=1), self.n_features_in_)


def _size(weight: Array) -> Array:
    """Return the sum of each class's weights, or 1 if all are 0, shape (n_classes, 1)."""
    size = weight.sum(axis=1, keepdims=True)
    if not np.isfinite(size).all():
        raise DataError("ComplementNB: norm needs finite weights; give an alpha above 0")
    return np.where(size > 0, size, 1.0)
