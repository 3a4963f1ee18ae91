"""Bernoulli naive Bayes: each token is present in a document or absent.

Secret: how absent tokens count as evidence while documents stay sparse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.inputs import DataError, is_sparse
from nbspam.models.linear import LinearModel, Tables
from nbspam.models.smoothing import best_alpha, smoothed_log_prob

if TYPE_CHECKING:
    from nbspam.models.inputs import Array


class BernoulliNB(LinearModel):
    """A probability per class and token: P(token in document given class).

    Manning, Raghavan & Schütze (2008), fig. 13.3; McCallum & Nigam (1998), eq. 3 and 5;
    Ng's lecture on naive Bayes (CS229), eq. 4 for maximum likelihood and eq. 7 for
    Laplace's (count + 1) / (n + 2).  A value of X above 0 means "present".

    >>> from nbspam.models import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [0, 1], [1, 1]], ["spam", "ham", "ham"])
    >>> model.predict_proba([[1, 0]]).round(3).tolist()
    [[0.36, 0.64]]
    """

    def _events(self, X: Any) -> Any:
        if not is_sparse(X):
            return (X > 0).astype(np.float64)
        present = X.astype(np.float64)
        # A matrix may hold several entries for one cell: without this, all would count.
        present.sum_duplicates()
        present.data = (present.data > 0).astype(np.float64)
        return present

    @property
    def feature_log_prob_(self) -> Array:
        """Return log P(token present given class) in nats, shape (n_classes, n_features)."""
        return self._log_prob(self.feature_count_, self.alpha_)

    def _log_prob(self, count: Array, alpha: float) -> Array:
        return smoothed_log_prob(count, self.class_count_[:, None], 2, alpha)

    def _absent_count(self) -> Array:
        """Return the number of documents without the token, shape (n_classes, n_features)."""
        absent = self.class_count_[:, None] - self.feature_count_
        if (absent < -1e-6).any():
            raise DataError(
                "BernoulliNB: a token is in more documents than its class has; count each "
                "token once a document"
            )
        return np.maximum(absent, 0.0)

    def _derive(self) -> Tables:
        alpha = self.alpha_
        present = self._log_prob(self.feature_count_, alpha)
        # From counts, not as log(1 - exp(present)), which loses every digit when a token
        # is in nearly all, or nearly no, documents of a class.
        absent = self._log_prob(self._absent_count(), alpha)
        # The intercept treats every token as absent; weights replace the terms of present ones.
        constant = absent.sum(axis=1, where=np.isfinite(absent))
        present -= absent
        return Tables(self.class_log_prior_ + constant, np.ascontiguousarray(present.T))

    def _best_alpha(self) -> float:
        # Each class and token has a distribution over two outcomes, present and absent.
        counts = np.concatenate([self.feature_count_, self._absent_count()])
        totals = np.repeat(self.class_count_, self.n_features_in_)
        return best_alpha(counts, totals, 2)
