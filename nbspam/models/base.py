"""The base class of every estimator: counts, a prior, and Bayes' rule.

A `Model` learns by adding the sums of a batch to its own.  Batches in any order, merged
shards, and batches that were learnt and unlearnt again therefore give the same model, bit
for bit as long as weights are whole numbers.  A subclass defines how a batch is counted
(`_count`) and how counts become log-probabilities (`_derive`, `_joint_log_proba`).

Secret: how sums are added and aligned by class, and how posteriors are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from nbspam.models.distributions import Distribution
from nbspam.models.inputs import (
    DataError,
    UnfittedError,
    checked_labels,
    checked_matrix,
    checked_weight,
    is_sparse,
)
from nbspam.models.scored import Scored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Labels, Sums


def logsumexp(log: Array) -> Array:
    """Return log(sum(exp(log))) of every row, shape (n, 1), without overflow."""
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a model has learnt: named sums whose first axis is the sorted classes."""

    classes: Labels
    sums: Sums

    def plus(self, other: Statistics, sign: int = 1) -> Statistics:
        """Return the sum (sign 1) or difference (sign -1) over the union of the classes."""
        if (self.classes.dtype.kind in "biuf") != (other.classes.dtype.kind in "biuf"):
            raise DataError("y: some labels are numbers and some are text; use one kind")
        classes = np.union1d(self.classes, other.classes)
        mine, theirs = self._over(classes), other._over(classes)
        sums = {name: mine[name] + sign * theirs[name] for name in mine}
        return type(self)(classes, sums)

    def is_negative(self) -> bool:
        """Return whether more was subtracted than had been added."""
        # Sums of fractions return to zero only within rounding errors.
        return any((total < -1e-6).any() for total in self.sums.values())

    def clipped(self) -> Statistics:
        """Return these statistics with rounding errors below zero replaced by zero."""
        sums = {name: np.maximum(total, 0.0) for name, total in self.sums.items()}
        return type(self)(self.classes, sums)

    def seen(self) -> Statistics:
        """Return these statistics without the classes of which nothing is left."""
        kept = self.sums["class_count_"] > 0
        return type(self)(self.classes[kept], {k: total[kept] for k, total in self.sums.items()})

    def _over(self, classes: Labels) -> Sums:
        """Return the sums with one row per class; `classes` contains self.classes."""
        if len(classes) == len(self.classes):
            return self.sums
        index = np.searchsorted(classes, self.classes)
        spread = {}
        for name, total in self.sums.items():
            spread[name] = np.zeros((len(classes), *total.shape[1:]))
            spread[name][index] = total
        return spread


class Model(Scored):
    """A classifier by Bayes' rule; subclasses define the counts and the likelihood."""

    # Tables are cached outside __dict__: predicting then changes no attribute, and a
    # pickle holds only what was learnt.
    __slots__ = ("__dict__", "__weakref__", "_kept")

    _sums: tuple[str, ...] = ("class_count_", "feature_count_")
    _statistics: type[Statistics] = Statistics
    _positive = False  # whether negative values in X are refused
    _missing = False  # whether X may contain NaN, which stands for a missing value
    _sparse = True  # whether the methods below get a sparse X as it is, not as an array
    class_prior: str | ArrayLike
    classes_: Labels
    class_count_: Array
    n_features_in_: int

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        """Return the sums of a batch except class_count_; code: the class index of each row."""
        raise NotImplementedError

    def _joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        raise NotImplementedError

    def _begin(self, X: Any) -> None:
        """Record properties of the first documents that all later ones must share."""

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield what has been estimated, P(class) first; in probabilities, not logarithms.

        whole: also the tables of pairs and triples of columns, of which AODE and A2DE have many.
        """
        class_prior = np.exp(self.class_log_prior_)
        yield Distribution((self.n_features_in_,), (), self.class_count_, class_prior)

    def dependences(self, names: Sequence[str]) -> dict[str, Any]:
        """Return which columns depend on which, and why, as plain values; {} for naive Bayes.

        names: of the columns and the class.
        """
        return {}

    def _derive(self) -> Any:
        """Return the tables that predictions are computed from, derived from the sums."""
        raise NotImplementedError

    def tables(self) -> Any:
        """Return the tables that predictions are computed from.

        They are cached until an attribute (a sum or a parameter) changes.
        """
        self._learnt()
        basis = tuple(vars(self).values())
        kept = getattr(self, "_kept", None)
        if kept is None or list(map(id, kept[0])) != list(map(id, basis)):
            kept = self._kept = basis, self._derive()
        return kept[1]

    # --- learning: addition ---

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these documents and forget all earlier ones."""
        X = self._matrix(X, "fit")
        for n, what in zip(X.shape, ("sample", "feature"), strict=True):
            if n == 0:
                raise DataError(
                    f"{self._at('fit')}: 0 {what}(s) (shape={X.shape}) while a minimum of 1 "
                    "is required."
                )
        self._begin(X)
        batch = self._batch("fit", X, y, sample_weight)
        if not batch.sums["class_count_"].any():
            raise DataError(f"{self._at('fit')}: every sample_weight is zero; give one above zero")
        return self._become(batch, X.shape[1])

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn these documents in addition to earlier ones.

        classes: labels to expect besides those in y; later calls may add more classes.
        """
        first = "classes_" not in vars(self)
        X = self._matrix(X, "partial_fit") if first else self._checked(X, "partial_fit")
        if first:
            self._begin(X)
        batch = self._batch("partial_fit", X, y, sample_weight, classes)
        return self._become(batch if first else self._learnt().plus(batch), X.shape[1])

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove documents that were learnt with the same labels and weights."""
        X = self._checked(X, "unlearn")
        left = self._learnt().plus(self._batch("unlearn", X, y, sample_weight), sign=-1)
        if left.is_negative():
            raise DataError(
                f"{self._at('unlearn')}: not all of these documents were learnt with these "
                "labels; unlearn only what was learnt"
            )
        return self._become(left.clipped(), self.n_features_in_)

    def merge(self, other: Self) -> Self:
        """Add what another model of the same class and columns has learnt."""
        mine, theirs = self._learnt(), other._learnt()
        if type(other) is not type(self) or other.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"{self._at('merge')}: {other!r} is of another kind or has other columns; "
                "merge models that were trained alike"
            )
        return self._become(mine.plus(theirs), self.n_features_in_)

    def forget_empty_classes(self) -> Self:
        """Forget the classes of which no documents are left after un-learning."""
        return self._become(self._learnt().seen(), self.n_features_in_)

    def _batch(
        self, verb: str, X: Any, y: Any, sample_weight: Any, classes: ArrayLike | None = None
    ) -> Statistics:
        """Return the statistics of a batch whose X has been checked already."""
        y = checked_labels(y, X.shape[0], self._at(verb))
        weight = checked_weight(sample_weight, X.shape[0], self._at(verb))
        if classes is None:
            classes = [] if len(y) else vars(self).get("classes_", [])
        named = [labels for labels in (y, np.asarray(classes)) if len(labels)]
        if not named:
            raise DataError(f"{self._at(verb)}: no documents and no classes; give one of them")
        known = np.unique(np.concatenate(named))
        code = np.searchsorted(known, y)
        class_count = np.bincount(code, weight, len(known)).astype(np.float64)
        counts = self._count(X, code, weight, len(known))
        return self._statistics(known, {"class_count_": class_count, **counts})

    def _learnt(self) -> Statistics:
        if "classes_" not in vars(self):
            raise UnfittedError(f"{self!r}: not fitted; call fit or partial_fit first")
        return self._statistics(self.classes_, {name: getattr(self, name) for name in self._sums})

    def _become(self, learnt: Statistics, n_features: int) -> Self:
        """Replace the sums, if the parameters fit them; arrays are never changed in place."""
        self._log_prior(learnt.sums["class_count_"])
        self.classes_ = learnt.classes
        self.n_features_in_ = n_features
        for name, total in learnt.sums.items():
            setattr(self, name, total)
        return self

    # --- predicting: Bayes' rule ---

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
            raise DataError(f"class_prior: {prior!r}; give estimated, uniform, or numbers")
        prior = np.asarray(prior, dtype=np.float64)
        if prior.shape != (n_classes,) or not ((prior >= 0).all() and np.isclose(prior.sum(), 1)):
            raise DataError(
                f"class_prior: {prior} is not a probability for each of {n_classes} classes;"
                " give that many numbers that sum to 1"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(prior))

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        return self._joint_log_proba(self._checked(X, "predict"))

    def predict_log_proba(self, X: Any) -> Array:
        """Return log P(class given document) in nats, shape (n_docs, n_classes).

        A document that is impossible in every class (without smoothing) gets the prior.
        """
        joint = self.joint_log_proba_or_prior(X)
        # Subtract the largest first: the sums of long documents have few digits to spare.
        joint = joint - joint.max(axis=1, keepdims=True)
        return np.asarray(joint - logsumexp(joint))

    def predict_proba(self, X: Any) -> Array:
        """Return P(class given document), shape (n_docs, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Labels:
        """Return the most probable class of each document; the first one of equals."""
        best = self.joint_log_proba_or_prior(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def joint_log_proba_or_prior(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes).

        A document that is impossible in every class (without smoothing) gets the log-prior.
        """
        joint = self.predict_joint_log_proba(X)
        impossible = np.isneginf(joint.max(axis=1, keepdims=True))
        return np.where(impossible, self.class_log_prior_, joint) if impossible.any() else joint

    def _checked(self, X: Any, verb: str) -> Any:
        """Return X after checking it, also against the columns learnt."""
        self._learnt()
        X = self._matrix(X, verb)
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"{self._at(verb)}: X has {X.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input; use the same vocabulary"
            )
        return X

    def _matrix(self, X: Any, verb: str) -> Any:
        X = checked_matrix(X, self._at(verb), self._positive, self._missing)
        return X.toarray() if is_sparse(X) and not self._sparse else X

    def _at(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of the model; only scikit-learn calls this."""
        from sklearn.utils import (
            ClassifierTags,
            InputTags,
            Tags,
            TargetTags,
        )

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(
                sparse=True, positive_only=self._positive, allow_nan=self._missing
            ),
        )
