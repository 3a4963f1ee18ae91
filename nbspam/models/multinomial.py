"""Multinomial naive Bayes: the tokens of a document are draws from its class's distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbspam.models.linear import LinearModel, Tables
from nbspam.models.smoothing import best_alpha, smoothed_log_prob

if TYPE_CHECKING:
    from nbspam.models.inputs import Array


class MultinomialNB(LinearModel):
    """A distribution over tokens per class: P(token given class).

    Manning, Raghavan & Schütze (2008), fig. 13.2 and eq. 13.7; McCallum & Nigam (1998),
    eq. 6.  X holds counts, or any other weights from 0 up.

    >>> from nbspam.models import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0], [0, 1], [1, 1]], ["spam", "ham", "ham"])
    >>> model.predict([[2, 0]]).tolist()
    ['spam']
    """

    _positive = True

    @property
    def feature_log_prob_(self) -> Array:
        """Return log P(token given class) in nats, shape (n_classes, n_features)."""
        return self._log_prob(self.alpha_)

    def _log_prob(self, alpha: float) -> Array:
        n, d = self.feature_count_, self.n_features_in_
        return smoothed_log_prob(n, n.sum(axis=1, keepdims=True), d, alpha)

    def _derive(self) -> Tables:
        weight = np.ascontiguousarray(self._log_prob(self.alpha_).T)
        return Tables(self.class_log_prior_, weight)

    def _best_alpha(self) -> float:
        # Each class has one distribution over all tokens.
        n = self.feature_count_
        return best_alpha(n, n.sum(axis=1), self.n_features_in_)
