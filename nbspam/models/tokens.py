"""Linear models of token counts: log P(class, document) = intercept + X @ weight.

Bernoulli naive Bayes looks at which tokens a document has, multinomial at how often it has them,
and complement scores a class by the tokens of all other classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.base import Statistics
from nbspam.models.inputs import DataError, checked_matrix, is_sparse
from nbspam.models.smoothing import (
    SmoothedModel,
    addend,
    best_alpha,
    log_shares_of_classes,
    remaining,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def sums_by_class(X: Any, code: Codes, weight: Array | None, n_classes: int) -> Array:
    """Return the weighted sum of the rows of each class, shape (n_classes, n_features).

    X: checked, (n_docs, n_features); code: (n_docs,) the class index of each row.
    """
    n_docs, n_features = X.shape
    if is_sparse(X):
        length = np.diff(X.indptr)
        cell = np.repeat(code * n_features, length) + X.indices
        value = X.data if weight is None else X.data * np.repeat(weight, length)
        total = np.bincount(cell, value, n_classes * n_features)
        return np.asarray(total.reshape(n_classes, n_features), dtype=np.float64)
    member = np.zeros((n_classes, n_docs))
    member[code, np.arange(n_docs)] = 1.0 if weight is None else weight
    return np.asarray(member @ X)


@dataclass(frozen=True, eq=False)
class Contributions:
    """The evidence of each column, in nats: intercept + sum of a row of terms = its score.

    terms: (n_docs, n_features), CSR if X was sparse.
    """

    intercept: float
    terms: Any


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel(SmoothedModel):
    """A model of token counts whose joint log-probability is linear in them.

    alpha: parameter of the prior, and so the number added to every count (Lidstone smoothing); 0
    is maximum likelihood, "auto" chooses the best by leave-one-out likelihood.
    estimate: "mean" (posterior mean), "map" (adds alpha - 1) or "mle" (adds nothing).
    class_prior: "estimated" from the documents, "smoothed" as tokens are, "uniform", or one
    probability per class.
    class_dirichlet: parameters of the classes' prior where class_prior is "smoothed", one per
    class in order, instead of alpha.
    feature_count_: the sums of the columns over each class, (n_classes, n_features).
    """

    alpha: float | str = 1.0
    estimate: str = "mean"
    class_prior: str | ArrayLike = "estimated"
    class_dirichlet: Sequence[float] | None = None
    feature_count_: Array = field(init=False)

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
            raise DataError(f"{cls.__name__}.from_counts: not a count for each class; give one")
        checked_matrix(n_docs[:, None], f"{cls.__name__}.from_counts", positive=True)
        checked_matrix(counts, f"{cls.__name__}.from_counts", positive=True)
        if (classes[:-1] >= classes[1:]).any():
            raise DataError(f"{cls.__name__}.from_counts: unsorted or equal classes; sort them")
        learnt = Statistics(classes, {"class_count_": n_docs, "feature_count_": counts})
        model = cls(**params)
        model.n_features_in_ = counts.shape[1]
        return model._become(learnt)

    @property
    def alpha_(self) -> float:
        """Return the number added to every count; if alpha is "auto", chosen from the counts."""
        self._learnt()
        added = self._checked_addend()
        return self._best_alpha() if added is None else added

    @property
    def prior_counts_(self) -> tuple[float, float]:
        """Return the numbers added to the counts of a token and of everything that is not it."""
        alpha = self.alpha_  # if it is "auto", a search
        return alpha, alpha

    @property
    def feature_log_prob_(self) -> Array:
        """Return the log-probabilities of the columns, shape (n_classes, n_features)."""
        raise NotImplementedError

    def _events(self, X: Any) -> Any:
        """Return X as the model sees it, for example presence instead of counts."""
        return X

    def _best_alpha(self) -> float:
        raise NotImplementedError

    def contributions(self, X: Any, label: Any = None) -> Contributions:
        """Return the terms in nats that add up to the score of each document.

        With a label, the score is log P(label, document).  Without one, it is the log-odds
        of classes_[1] against classes_[0]; there must be two classes.  Terms are exact for
        alpha above 0.  Raises DataError.
        """
        tables, X = self.tables(), self._events(self._checked(X, "contributions"))
        names = self.classes_.tolist()
        if label is None and len(names) != 2:
            raise DataError(f"{self._at('contributions')}: no label; give one of {names}")
        if label is not None and label not in names:
            raise DataError(
                f"{self._at('contributions')}: {label!r} is unknown; give one of {names}"
            )
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
        return np.asarray(self.tables().joint_log_proba(self._events(X)))

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        return {"feature_count_": sums_by_class(self._events(X), code, weight, n_classes)}

    def _check_parameters(self) -> None:
        self._checked_addend()

    def _checked_addend(self) -> float | None:
        """Return the number added to every count, None if it is to be chosen; raises DataError."""
        if isinstance(self.alpha, str) and self.alpha == "auto":
            if self.estimate != "mean":
                raise DataError(f"estimate: {self.estimate!r} needs a number as alpha; give one")
            return None
        return addend(self.estimate, self.alpha)  # type: ignore[arg-type]  # which it checks

    def class_added(self, n_classes: int) -> Array:
        """See `SmoothedModel.class_added`; to choose alpha for the classes is a DataError, too."""
        are_alpha = self.smooths_classes and self.class_dirichlet is None
        if are_alpha and self._checked_addend() is None:
            raise DataError("class_prior: 'smoothed' needs a number as alpha; give one")
        return super().class_added(n_classes)


# --- the three models ------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class BernoulliNB(LinearModel):
    """A probability per class and token: P(token in document given class).

    Manning, Raghavan & Schütze (2008), fig. 13.3; McCallum & Nigam (1998), multi-variate
    Bernoulli event model; Ng's lecture on naive Bayes (CS229), eq. 4 for maximum likelihood
    and eq. 7 for Laplace's (count + 1) / (n + 2); notes whose (4c) and (7b) count x_j = 0, y = 1
    mean x_j = 1, y = 0.  A value of X above 0 means "present".

    beta: parameters of the Beta prior of a token, for present and absent, instead of alpha.
    All other parameters: see `LinearModel`.

    >>> from nbspam.models import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [0, 1], [1, 1]], ["spam", "ham", "ham"])
    >>> model.predict_proba([[1, 0]]).round(3).tolist()
    [[0.36, 0.64]]
    """

    beta: Sequence[float] | None = None

    @property
    def prior_counts_(self) -> tuple[float, float]:
        """Return the numbers added to the documents with and without a token."""
        if self.beta is None:
            return super().prior_counts_
        present, absent = (addend(self.estimate, parameter, "beta") for parameter in self.beta)
        return present, absent

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.beta is not None and (self.alpha == "auto" or np.size(self.beta) != 2):
            raise DataError(f"beta: {self.beta!r}; give two numbers, and no alpha")

    def _become(self, learnt: Statistics) -> Self:
        n = learnt.sums["class_count_"][:, None]
        if (learnt.sums["feature_count_"] > (1 + 1e-9) * n + 1e-6).any():  # not by rounding
            raise DataError(
                "BernoulliNB: a token is in more documents than its class has; count each token"
                " once a document, and unlearn only what was learnt"
            )
        return super()._become(learnt)

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
        present, absent = self.prior_counts_
        return self._log_prob(self.feature_count_, present, present + absent)

    def _log_prob(self, count: Array, added: float, added_to_all: float) -> Array:
        return log_shares_of_classes(count, self.class_count_[:, None], 2, added, added_to_all)

    def _derive(self) -> Tables:
        of_present, of_absent = self.prior_counts_
        present = self._log_prob(self.feature_count_, of_present, of_present + of_absent)
        # From counts, not as log(1 - exp(present)), which loses every digit when a token
        # is in nearly all, or nearly no, documents of a class.
        absent_count = remaining(self.class_count_[:, None], self.feature_count_)
        absent = self._log_prob(absent_count, of_absent, of_present + of_absent)
        # The intercept treats every token as absent; weights replace the terms of present ones.
        constant = absent.sum(axis=1, where=np.isfinite(absent))
        present -= absent
        return Tables(self.class_log_prior_ + constant, np.ascontiguousarray(present.T))

    def _best_alpha(self) -> float:
        # Each class and token has a distribution over two outcomes, present and absent.
        present = self.feature_count_
        counts = np.concatenate([present, remaining(self.class_count_[:, None], present)])
        totals = np.repeat(self.class_count_, self.n_features_in_)
        return best_alpha(counts, totals, 2)


@dataclass(kw_only=True, eq=False, repr=False)
class MultinomialNB(LinearModel):
    """A distribution over tokens per class: P(token given class).

    Manning, Raghavan & Schütze (2008), fig. 13.2 and eq. 13.7; McCallum & Nigam (1998),
    multinomial event model.  X holds counts, or any other weights from 0 up.  Parameters: see
    `LinearModel`.

    >>> from nbspam.models import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0], [0, 1], [1, 1]], ["spam", "ham", "ham"])
    >>> model.predict([[2, 0]]).tolist()
    ['spam']
    """

    _positive = True

    @property
    def feature_log_prob_(self) -> Array:
        """Return log P(token given class) in nats, shape (n_classes, n_features)."""
        n, d, alpha = self.feature_count_, self.n_features_in_, self.alpha_
        return log_shares_of_classes(n, n.sum(axis=1, keepdims=True), d, alpha, d * alpha)

    def _derive(self) -> Tables:
        return Tables(self.class_log_prior_, np.ascontiguousarray(self.feature_log_prob_.T))

    def _best_alpha(self) -> float:
        # Each class has one distribution over all tokens.
        n = self.feature_count_
        return best_alpha(n, n.sum(axis=1), self.n_features_in_)


@dataclass(kw_only=True, eq=False, repr=False)
class ComplementNB(LinearModel):
    """A distribution over tokens per class, estimated from all other classes together.

    Rennie, Shih, Teevan & Karger (2003), section 3.1: predicts the class of
    argmax log P(class) - sum of f log P(token given not class), f the token's count.
    Even a rare class is thus scored with estimates from much data.  With two classes this
    is the multinomial model.

    norm: divide each class's weights by the sum of their absolute values (Rennie et al.,
    section 3.2), so that no class wins only because its weights are large.  All other
    parameters: see `LinearModel`.

    >>> from nbspam.models import ComplementNB
    >>> model = ComplementNB().fit([[2, 0, 0], [1, 1, 0], [0, 0, 3]], ["tea", "ham", "spam"])
    >>> model.predict([[0, 0, 1]]).tolist()
    ['spam']
    """

    _positive = True

    norm: bool = False

    @property
    def feature_log_prob_(self) -> Array:
        """Return -log P(token given not class), shape (n_classes, n_features).

        In nats; with norm, divided by the sum of the class's weights.
        """
        weight = self.weight()
        return weight / _size(weight) if self.norm else weight

    def complement_count(self) -> Array:
        """Return the counts of all other classes, shape (n_classes, n_features)."""
        # Exactly 0 for a token that only one class has, even if counts are fractions:
        # all other terms of the sum are zeros.
        return np.asarray(self.feature_count_.sum(axis=0) - self.feature_count_)

    def weight(self) -> Array:
        """Return -log P(token given not class) in nats, shape (n_classes, n_features)."""
        n, d, alpha = self.complement_count(), self.n_features_in_, self.alpha_
        total = n.sum(axis=1, keepdims=True)
        log_prob = log_shares_of_classes(n, total, d, alpha, d * alpha)
        return np.negative(log_prob, out=log_prob)

    def _derive(self) -> Tables:
        weight = self.weight()
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
        n = self.complement_count()
        return best_alpha(n, n.sum(axis=1), self.n_features_in_)


def _size(weight: Array) -> Array:
    """Return the sum of each class's weights, 1 where it is 0, shape (n_classes, 1)."""
    size = weight.sum(axis=1, keepdims=True)
    if not np.isfinite(size).all():
        raise DataError("ComplementNB: norm needs finite weights; give an alpha above 0")
    return np.where(size > 0, size, 1.0)
