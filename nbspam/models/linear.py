"""Linear models of token counts: log P(class, document) = intercept + X @ weight.

Secret: how the infinite weights of maximum likelihood (alpha 0) are added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import Model, Statistics
from nbspam.models.inputs import DataError, checked_matrix, is_sparse, sums_by_class

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Sums


@dataclass(frozen=True, eq=False)
class Tables:
    """The parameters of a linear model, in nats: joint = intercept + X @ weight.

    intercept: (n_classes,); weight: (n_features, n_classes); both float64.  Weights are
    infinite only with alpha 0: -inf where no document of the class has the column, +inf
    where every document has it.  The intercept is then the sum of its finite terms.
    """

    intercept: Array
    weight: Array

    @cached_property
    def finite(self) -> bool:
        """Whether every weight is finite, so that a plain matrix product is enough."""
        return bool(np.isfinite(self.weight).all())

    def joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        if self.finite:
            return np.asarray(X @ self.weight + self.intercept)
        # Factors of zero are counted separately, because 0 * inf and inf - inf are NaN.
        present = X != 0
        forbidden = np.isneginf(self.weight).astype(np.float64)
        required = np.isposinf(self.weight).astype(np.float64)
        zeros = present @ forbidden + (required.sum(axis=0) - present @ required)
        likely = X @ np.where(np.isfinite(self.weight), self.weight, 0.0) + self.intercept
        return np.asarray(np.where(zeros > 0, -np.inf, likely))


@dataclass(frozen=True, eq=False)
class Contributions:
    """The evidence of each column, in nats: intercept + sum of a row of terms = its score.

    terms: (n_docs, n_features), CSR if X was sparse.
    """

    intercept: float
    terms: Any


class LinearModel(Model):
    """A model of token counts whose joint log-probability is linear in them.

    alpha: number added to every count (Lidstone smoothing); 0 is maximum likelihood,
    "auto" chooses the best by leave-one-out likelihood.
    class_prior: "estimated" from the documents, "uniform", or one probability per class.
    """

    alpha: float | str
    feature_count_: Array

    def __init__(
        self, *, alpha: float | str = 1.0, class_prior: str | ArrayLike = "estimated"
    ) -> None:
        self.alpha = alpha
        self.class_prior = class_prior

    @classmethod
    def from_counts(
        cls, class_count: ArrayLike, feature_count: ArrayLike, classes: ArrayLike, **params: Any
    ) -> Self:
        """Return the model that has these counts; it reads the arrays and never changes them.

        class_count: (n_classes,) documents; feature_count: (n_classes, n_features);
        classes: sorted labels, (n_classes,); params: of the model.  Raises DataError.
        """
        classes = np.asarray(classes)
        n_docs = np.asarray(class_count, dtype=np.float64)
        counts = np.ascontiguousarray(feature_count, dtype=np.float64)
        shapes = classes.shape, n_docs.shape, counts.shape[:1]
        if counts.ndim != 2 or len(set(shapes)) > 1 or classes.size == 0:
            raise DataError(f"{cls.__name__}.from_counts: classes and counts differ in length")
        checked_matrix(n_docs[:, None], f"{cls.__name__}.from_counts", positive=True)
        checked_matrix(counts, f"{cls.__name__}.from_counts", positive=True)
        if (classes[:-1] >= classes[1:]).any():
            raise DataError(f"{cls.__name__}.from_counts: classes are not sorted and distinct")
        learnt = Statistics(classes, {"class_count_": n_docs, "feature_count_": counts})
        return cls(**params)._become(learnt, counts.shape[1])

    @property
    def alpha_(self) -> float:
        """Return the number added to every count; if alpha is "auto", chosen from the counts."""
        self._learnt()
        alpha = self._checked_alpha()
        return self._best_alpha() if alpha is None else alpha

    @property
    def feature_log_prob_(self) -> Array:
        """Return the log-probabilities of the columns, shape (n_classes, n_features)."""
        raise NotImplementedError

    def _events(self, X: Any) -> Any:
        """Return X as the model sees it, for example presence instead of counts."""
        return X

    def _best_alpha(self) -> float:
        raise NotImplementedError

    def _derive(self) -> Tables:
        raise NotImplementedError

    def tables(self) -> Tables:
        """Return intercept and weight, cached until a sum or a parameter changes."""
        tables: Tables = super().tables()
        return tables

    def contributions(self, X: Any, label: Any = None) -> Contributions:
        """Return the terms in nats that add up to the score of each document.

        With a label, the score is log P(label, document).  Without one, it is the log-odds
        of classes_[1] against classes_[0]; there must be two classes.  Terms are exact for
        alpha above 0.  Raises DataError.
        """
        tables, X = self.tables(), self._events(self._checked(X, "contributions"))
        names = self.classes_.tolist()
        if label is None and len(names) != 2:
            raise DataError(f"{self._at('contributions')}: of {len(names)} classes, name one")
        if label is not None and label not in names:
            raise DataError(f"{self._at('contributions')}: {label!r} is none of {names}")
        sign = np.array([-1.0, 1.0] if label is None else [float(n == label) for n in names])
        chosen = sign != 0
        weight, intercept = tables.weight[:, chosen], tables.intercept[chosen]
        # NaN only with alpha 0: an infinite weight minus another.
        with np.errstate(invalid="ignore"):
            weight = np.nan_to_num(weight @ sign[chosen], posinf=np.inf, neginf=-np.inf)
            if is_sparse(X):
                terms = X.astype(np.float64)
                terms.data *= weight[terms.indices]
            else:
                terms = np.where(X == 0, 0.0, X * weight)
        return Contributions(float(intercept @ sign[chosen]), terms)

    def _joint_log_proba(self, X: Any) -> Array:
        return self.tables().joint_log_proba(self._events(X))

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        return {"feature_count_": sums_by_class(self._events(X), code, weight, n_classes)}

    def _become(self, learnt: Statistics, n_features: int) -> Self:
        self._checked_alpha()
        return super()._become(learnt, n_features)

    def _checked_alpha(self) -> float | None:
        """Return alpha, or None if it is "auto"; raises DataError."""
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return None
        if isinstance(self.alpha, str) or not 0 <= self.alpha < np.inf:
            raise DataError(f"alpha: {self.alpha!r} is invalid; give a number from 0 up, or auto")
        return float(self.alpha)
