"""Lazy learning: keep the documents, and train a model only when a prediction is asked for.

Zhou, *Machine Learning*, section 7.3, names three ways of using naive Bayes: probability
tables computed in advance (`fit`, then `tables`), counts that are updated as data arrive
(`partial_fit`, `unlearn`), and lazy learning, for data that change more often than
predictions are asked for.  All three predict the same, bit for bit; only means and variances
of numbers that were added up in batches may differ in their last digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import DataError, UnfittedError, checked_labels, is_sparse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nbspam.models.base import Array, Estimator, Labels


class Lazy:
    """A classifier that is trained for each prediction, on the documents it keeps.

    like: a model whose class and parameters are used.

    >>> from nbspam.models import BernoulliNB
    >>> from nbspam.models.lazy import Lazy
    >>> lazy = Lazy(BernoulliNB()).keep([[1, 0], [0, 1], [1, 1]], ["spam", "ham", "ham"])
    >>> lazy.predict([[1, 0]]).tolist()
    ['spam']
    """

    def __init__(self, like: Estimator) -> None:
        self.like = like
        self._kept: list[tuple[Any, Labels]] = []

    def keep(self, X: Any, y: ArrayLike) -> Self:
        """Keep these documents in addition to earlier ones; nothing is counted yet."""
        X = X.tocsr() if is_sparse(X) else np.asarray(X)
        self._kept.append((X, checked_labels(y, X.shape[0], "Lazy.keep")))
        return self

    def drop(self, batch: int) -> Self:
        """Forget the documents of one call of `keep`; batch: the number of the call, from 0."""
        if not 0 <= batch < len(self._kept):
            raise DataError(f"Lazy.drop: no batch {batch}; {len(self._kept)} are kept, from 0")
        del self._kept[batch]
        return self

    def model(self) -> Estimator:
        """Return a new model trained on all documents that are kept now."""
        if not self._kept:
            raise UnfittedError("Lazy: no documents are kept; call keep first")
        made = type(self.like)(**self.like.get_params())
        for X, y in self._kept:
            made.partial_fit(X, y)
        return made

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        return self.model().predict_joint_log_proba(X)

    def predict_proba(self, X: Any) -> Array:
        """Return P(class given document), shape (n_docs, n_classes)."""
        return self.model().predict_proba(X)

    def predict(self, X: Any) -> Labels:
        """Return the most probable class of each document."""
        return self.model().predict(X)
