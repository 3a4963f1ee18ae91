"""What every model is: counts, a prior, and Bayes' rule.

A `Model` learns by adding the sums of a batch to its own, so that batches in any order,
merged shards and batches unlearnt again end in the same model, to the bit while weights
are whole numbers.  It judges by joint log-probability, posterior, argmax.  A leaf has
two verbs: how to count, and how counts become log-probabilities.  `LinearModel` is for
leaves that judge by look-up in two tables.

Secret: how input is checked, sums added and aligned by class, and posteriors made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.errors import NotTrainedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Labels = NDArray[Any]
    Sums = Mapping[str, Array]


class DataError(UsageError, ValueError):
    """A UsageError that code written for scikit-learn can catch as ValueError."""


class UnfittedError(NotTrainedError, ValueError, AttributeError):
    """A NotTrainedError that `hasattr` and code written for scikit-learn understand."""


@dataclass(frozen=True, eq=False)
class Tables:
    """A linear model: joint log-probability = intercept + X @ weight, in nats.

    intercept: (n_classes,); weight: (n_features, n_classes); both float64.  Only maximum
    likelihood (alpha 0) makes weights infinite: -inf where the class never has the column,
    +inf where it always has it; the intercept is then the sum of its finite terms.
    """

    intercept: Array
    weight: Array

    @cached_property
    def finite(self) -> bool:
        """Whether every weight is finite, so that a plain product will do."""
        return bool(np.isfinite(self.weight).all())

    def joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        if self.finite:
            return np.asarray(X @ self.weight + self.intercept)
        # Factors of zero are counted apart, as 0 * inf and inf - inf would be NaN.
        present = X != 0
        forbidden = np.isneginf(self.weight).astype(np.float64)
        required = np.isposinf(self.weight).astype(np.float64)
        zeros = present @ forbidden + (required.sum(axis=0) - present @ required)
        likely = X @ np.where(np.isfinite(self.weight), self.weight, 0.0) + self.intercept
        return np.asarray(np.where(zeros > 0, -np.inf, likely))


@dataclass(frozen=True, eq=False)
class Contributions:
    """Evidence column by column, in nats: intercept + the sum of a row is its score.

    terms: (n_docs, n_features), CSR if X was sparse.
    """

    intercept: float
    terms: Any


def logsumexp(log: Array) -> Array:
    """Return log(sum(exp(log))) of every row, shape (n, 1), without overflow."""
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))


def sums_by_class(X: Any, code: Codes, weight: Array | None, n_classes: int) -> Array:
    """Return the weighted sums of the rows of each class, shape (n_classes, n_features).

    X: checked; code: (n_docs,) the class of each row.
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


def is_sparse(X: Any) -> bool:
    """Tell a scipy sparse matrix, of whatever kind, without importing scipy."""
    return hasattr(X, "tocsr")


def checked_matrix(X: Any, where: str, positive: bool) -> Any:
    """Return X as CSR or array of finite numbers, unchanged if it is one."""
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise DataError(
            f"{where}: Expected 2D array, got {X.ndim}D array instead; one row a document. "
            "Reshape your data with reshape(1, -1) if it is a single one"
        )
    if X.dtype.kind == "c":
        raise DataError(f"{where}: Complex data not supported; give counts")
    if X.dtype.kind not in "biuf":
        X = X.astype(np.float64)
    values = X.data if is_sparse(X) else X
    if values.size:
        low, high = values.min(), values.max()  # NaN if any value is
        if not (np.isfinite(low) and np.isfinite(high)):
            raise DataError(f"{where}: Input X contains NaN or infinity; give finite counts")
        if positive and low < 0:
            raise DataError(f"{where}: Negative values in data passed to it; give counts")
    return X


def checked_labels(y: Any, n_docs: int, where: str) -> Labels:
    """Return y as an array of one label a document."""
    if y is None:
        raise DataError(f"{where}: requires y to be passed, but the target y is None")
    y = labels = np.asarray(y)
    if y.shape != (n_docs,):
        raise DataError(
            f"{where}: y should be a 1d array of one label for each of {n_docs} documents, "
            f"got an array of shape {y.shape} instead"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{where}: Input y contains NaN or infinity; give every class a name")
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise DataError(
            f"{where}: Unknown label type: continuous; classes are names or whole numbers"
        )
    return labels


def checked_weight(sample_weight: Any, n_docs: int, where: str) -> Array | None:
    """Return the weights as float64, one a document, or None if there are none."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_docs,) or not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError(
            f"{where}: sample_weight must be one finite number, 0 or more, for each of "
            f"{n_docs} documents"
        )
    return weight


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a model has learnt: named sums whose first axis runs over the sorted classes."""

    classes: Labels
    sums: Sums

    def plus(self, other: Statistics, sign: int = 1) -> Statistics:
        """Return the sum, or with sign -1 the difference, over the union of classes."""
        if (self.classes.dtype.kind in "biuf") != (other.classes.dtype.kind in "biuf"):
            raise DataError("y: some labels are numbers and some are text; use one kind")
        classes = np.union1d(self.classes, other.classes)
        mine, theirs = self._over(classes), other._over(classes)
        return Statistics(classes, {name: mine[name] + sign * theirs[name] for name in mine})

    def _over(self, classes: Labels) -> Sums:
        """Return the sums with one row for each of these classes, which include ours."""
        if len(classes) == len(self.classes):
            return self.sums
        index = np.searchsorted(classes, self.classes)
        spread = {}
        for name, total in self.sums.items():
            spread[name] = np.zeros((len(classes), *total.shape[1:]))
            spread[name][index] = total
        return spread


class Model:
    """A naive Bayes classifier; its leaves say how to count and how likely X is."""

    # Tables are kept outside __dict__: they are derived, so that predicting changes
    # no attribute and a pickle holds what was learnt and nothing else.
    __slots__ = ("__dict__", "__weakref__", "_kept")

    _sums: tuple[str, ...] = ("class_count_", "feature_count_")
    _positive = False  # whether X must not be negative
    class_prior: str | ArrayLike
    classes_: Labels
    class_count_: Array
    n_features_in_: int

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        """Return the sums of a batch, but for class_count_; code: the class of each row."""
        raise NotImplementedError

    def _joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        raise NotImplementedError

    # --- learning: addition ---

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these documents and forget all others."""
        X = checked_matrix(X, self._at("fit"), self._positive)
        for n, what in zip(X.shape, ("sample", "feature"), strict=True):
            if n == 0:
                raise DataError(
                    f"{self._at('fit')}: 0 {what}(s) (shape={X.shape}) while a minimum of 1 "
                    "is required."
                )
        batch = self._batch("fit", X, y, sample_weight)
        if not batch.sums["class_count_"].any():
            raise DataError(f"{self._at('fit')}: every sample_weight is zero; give some above it")
        return self._become(batch, X.shape[1])

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn these documents too.

        classes: labels to expect besides those in y; a class may also turn up later.
        """
        first = "classes_" not in vars(self)
        check = self._at("partial_fit"), self._positive
        X = checked_matrix(X, *check) if first else self._checked(X, "partial_fit")
        batch = self._batch("partial_fit", X, y, sample_weight, classes)
        return self._become(batch if first else self._learnt().plus(batch), X.shape[1])

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take back documents that were learnt with these labels and weights."""
        X = self._checked(X, "unlearn")
        left = self._learnt().plus(self._batch("unlearn", X, y, sample_weight), sign=-1)
        # Sums of fractions come back to zero within rounding only.
        if any((total < -1e-6).any() for total in left.sums.values()):
            raise DataError(
                f"{self._at('unlearn')}: not all of these documents were learnt with these "
                "labels; unlearn only what was learnt"
            )
        sums = {name: np.maximum(total, 0.0) for name, total in left.sums.items()}
        return self._become(Statistics(left.classes, sums), self.n_features_in_)

    def merge(self, other: Self) -> Self:
        """Learn what another model of this kind, over the same columns, has learnt."""
        mine, theirs = self._learnt(), other._learnt()
        if type(other) is not type(self) or other.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"{self._at('merge')}: {other!r} is of another kind or has other columns; "
                "merge models that were trained alike"
            )
        return self._become(mine.plus(theirs), self.n_features_in_)

    def _batch(
        self, verb: str, X: Any, y: Any, sample_weight: Any, classes: ArrayLike | None = None
    ) -> Statistics:
        """Return what there is to learn from documents, of which X is checked already."""
        y = checked_labels(y, X.shape[0], self._at(verb))
        weight = checked_weight(sample_weight, X.shape[0], self._at(verb))
        if classes is None:
            classes = [] if len(y) else vars(self).get("classes_", [])
        named = [labels for labels in (y, np.asarray(classes)) if len(labels)]
        if not named:
            raise DataError(f"{self._at(verb)}: no documents and no classes; give either")
        known = np.unique(np.concatenate(named))
        code = np.searchsorted(known, y)
        class_count = np.bincount(code, weight, len(known)).astype(np.float64)
        counts = self._count(X, code, weight, len(known))
        return Statistics(known, {"class_count_": class_count, **counts})

    def _learnt(self) -> Statistics:
        if "classes_" not in vars(self):
            raise UnfittedError(f"{self!r}: not fitted; call fit or partial_fit first")
        return Statistics(self.classes_, {name: getattr(self, name) for name in self._sums})

    def _become(self, learnt: Statistics, n_features: int) -> Self:
        """Take over new sums, if the parameters fit them; arrays are replaced, not changed."""
        self._log_prior(learnt.sums["class_count_"])
        self.classes_ = learnt.classes
        self.n_features_in_ = n_features
        for name, total in learnt.sums.items():
            setattr(self, name, total)
        return self

    # --- judging: Bayes' rule ---

    @property
    def class_log_prior_(self) -> Array:
        """Return log P(class) in nats, shape (n_classes,)."""
        return self._log_prior(self._learnt().sums["class_count_"])

    def _log_prior(self, class_count: Array) -> Array:
        n_classes, n_docs = len(class_count), class_count.sum()
        prior = self.class_prior
        if isinstance(prior, str) and prior in ("estimated", "uniform"):
            if prior == "uniform" or n_docs == 0:
                return np.full(n_classes, -np.log(n_classes))
            prior = class_count / n_docs
        elif isinstance(prior, str):
            raise DataError(f"class_prior: {prior!r}; say estimated, uniform, or give numbers")
        prior = np.asarray(prior, dtype=np.float64)
        if prior.shape != (n_classes,) or not ((prior >= 0).all() and np.isclose(prior.sum(), 1)):
            raise DataError(
                f"class_prior: {prior} is not a probability for each of {n_classes} classes"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(prior))

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        return self._joint_log_proba(self._checked(X, "predict"))

    def predict_log_proba(self, X: Any) -> Array:
        """Return log P(class given document) in nats, shape (n_docs, n_classes).

        A document that is impossible in every class tells nothing: it gets the prior.
        """
        joint = self._comparable(X)
        # The largest is taken off first: sums of long documents have few digits to spare.
        joint = joint - joint.max(axis=1, keepdims=True)
        return np.asarray(joint - logsumexp(joint))

    def predict_proba(self, X: Any) -> Array:
        """Return P(class given document), shape (n_docs, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Labels:
        """Return the most probable class of each document, the first of equals."""
        best = self._comparable(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy, 0 to 1, on these documents."""
        right = self.predict(X) == checked_labels(y, np.shape(X)[0], self._at("score"))
        weight = checked_weight(sample_weight, len(right), self._at("score"))
        return float(np.average(right, weights=weight))

    def _comparable(self, X: Any) -> Array:
        """Return joint log-probabilities with the prior where all of a row are -inf."""
        joint = self.predict_joint_log_proba(X)
        impossible = np.isneginf(joint.max(axis=1, keepdims=True))
        return np.where(impossible, self.class_log_prior_, joint) if impossible.any() else joint

    def _checked(self, X: Any, verb: str) -> Any:
        """Return X, checked against what was learnt."""
        self._learnt()
        X = checked_matrix(X, self._at(verb), self._positive)
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"{self._at(verb)}: X has {X.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input; use the same vocabulary"
            )
        return X

    def _at(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"

    # --- parameters, as scikit-learn's tools expect them ---

    @classmethod
    def _parameters(cls) -> list[str]:
        # The code object, as importing `inspect` takes longer than classifying a message.
        code = cls.__init__.__code__
        return sorted(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; deep changes nothing, as none is an estimator."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; they hold for what was learnt already, too."""
        for name, value in parameters.items():
            if name not in self._parameters():
                raise DataError(
                    f"{self._at('set_params')}: {name!r} is no parameter; there are "
                    f"{', '.join(self._parameters())}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()

    def __sklearn_tags__(self) -> Any:
        """Describe the model to scikit-learn, which alone calls this."""
        from sklearn.utils import (  # type: ignore[import-untyped]
            ClassifierTags,
            InputTags,
            Tags,
            TargetTags,
        )

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(sparse=True, positive_only=self._positive),
        )


class LinearModel(Model):
    """A model over token counts whose joint log-probability is linear in them.

    alpha: added to every count; 0 is maximum likelihood, "auto" the best by leave-one-out.
    class_prior: "estimated" from the documents, "uniform", or a probability per class.
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
        """Return the model of counts taken elsewhere, which it reads but never changes.

        class_count: (n_classes,) documents; feature_count: (n_classes, n_features).
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
        """Return the number added to every count, chosen from the counts if "auto"."""
        self._learnt()
        alpha = self._checked_alpha()
        return self._best_alpha() if alpha is None else alpha

    @property
    def feature_log_prob_(self) -> Array:
        """Return what counts say of each column, in nats, shape (n_classes, n_features)."""
        raise NotImplementedError

    def _events(self, X: Any) -> Any:
        """Return what of X the model sees."""
        return X

    def _best_alpha(self) -> float:
        raise NotImplementedError

    def _tables(self) -> Tables:
        raise NotImplementedError

    def tables(self) -> Tables:
        """Return the tables that predictions are read from, made when counts have changed."""
        self._learnt()
        basis = tuple(vars(self).values())
        kept = getattr(self, "_kept", None)
        if kept is None or list(map(id, kept[0])) != list(map(id, basis)):
            kept = self._kept = basis, self._tables()
        return kept[1]

    def contributions(self, X: Any, label: Any = None) -> Contributions:
        """Return the terms, in nats, that add up to a score of each document.

        With a label, the score is log P(label, document).  Without, of two classes, it is
        the log-odds of classes_[1] against classes_[0].  Terms are exact for alpha above 0.
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
        # NaN only under maximum likelihood: a column that no class, or each, allows.
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
        """Return alpha, or None if it is to be chosen."""
        if isinstance(self.alpha, str) and self.alpha == "auto":
            return None
        if isinstance(self.alpha, str) or not 0 <= self.alpha < np.inf:
            raise DataError(f"alpha: {self.alpha!r} is neither a number, 0 or more, nor auto")
        return float(self.alpha)
