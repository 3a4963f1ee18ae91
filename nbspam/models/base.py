"""The base class of every estimator: counts, a prior, and Bayes' rule.

An `Estimator` learns by adding the sums of a batch to its own.  Batches in any order, merged
shards, and batches that were learnt and unlearnt again therefore give the same model, bit
for bit as long as weights are whole numbers; means and variances of numbers agree but for the
rounding of their last digits (`gaussian.Moments`).  Only the first batch chooses the numbers of
values (unless they are given) and the parent of a SPODE.  A subclass defines how a batch is
counted (`_count`) and how counts become log-probabilities (`_derive`, `_joint_log_proba`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from nbspam.arrays import TIED
from nbspam.models.inputs import (
    DataError,
    UnfittedError,
    checked_labels,
    checked_matrix,
    checked_weight,
    column_names,
    is_sparse,
    union_of_labels,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array, Codes, Labels, Sums


def logsumexp(log: Array) -> Array:
    """Return log(sum(exp(log))) of every row, shape (n, 1), without overflow."""
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))


class Scored:
    """A classifier with the parameters and the score that scikit-learn's tools expect.

    Its parameters are the arguments of its `__init__`, kept under their names.
    """

    __slots__ = ()

    classes_: Labels

    @classmethod
    def _parameters(cls) -> list[str]:
        # Importing `inspect` takes longer than classifying a message.
        code = cls.__init__.__code__
        return sorted(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` has no effect: none of them is an estimator."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; all models but TextClassifier apply them to earlier documents, too.

        What these documents have chosen (levels, a parent, a graph) stays until they are learnt
        again.  Raises DataError for a name that is no parameter.
        """
        for name, value in parameters.items():
            if name not in self._parameters():
                raise DataError(
                    f"{type(self).__name__}.set_params: {name!r} is no parameter; choose from "
                    f"{', '.join(self._parameters())}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on these documents, 0 to 1; raises DataError if none counts."""
        where, predicted = f"{type(self).__name__}.score", self.predict(X)
        right = predicted == checked_labels(y, len(predicted), where)
        weight = checked_weight(sample_weight, len(right), where)
        if not (len(right) if weight is None else weight.any()):
            raise DataError(f"{where}: no document counts; give one of a weight above zero")
        return float(np.average(right, weights=weight))

    def get_metadata_routing(self) -> Any:
        """Return which methods take weights; only scikit-learn calls this, if it routes."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name in ("fit", "partial_fit", "score"):
            method = getattr(self, name, None)
            if method is not None and "sample_weight" in method.__code__.co_varnames:
                getattr(request, name).add_request(param="sample_weight", alias=True)
        return request

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of the model; only scikit-learn calls this."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(**self._input_tags()),
        )

    def _input_tags(self) -> dict[str, bool]:
        """Return the kinds of X that are taken, in scikit-learn's words."""
        raise NotImplementedError

    def joint_log_proba_or_prior(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Array:
        """Return log P(class given document) in nats, shape (n_docs, n_classes).

        A document that is impossible in every class (without smoothing) gets the prior.
        """
        joint = self.joint_log_proba_or_prior(X)
        # Subtract the largest first: the sums of long documents have few digits to spare.
        joint = joint - joint.max(axis=1, keepdims=True)
        return np.asarray(joint - logsumexp(joint))

    def predict(self, X: Any) -> Labels:
        """Return the most probable class of each document; the first one of equals."""
        joint = self.joint_log_proba_or_prior(X)
        best = (joint >= joint.max(axis=1, keepdims=True) - TIED).argmax(axis=1)
        return np.asarray(self.classes_[best])


@dataclass(frozen=True, eq=False)
class Statistics:
    """The sums that a model has learnt, by name; their first axis is the sorted classes."""

    classes: Labels
    sums: Sums
    not_counts: ClassVar[tuple[str, ...]] = ()  # the names of sums that may be below zero

    def plus(self, other: Statistics, sign: int = 1) -> Self:
        """Return the sum (sign 1) or difference (sign -1) over the union of the classes.

        Raises DataError, see `union_of_labels`.
        """
        classes = union_of_labels(self.classes, other.classes)
        return type(self)(classes, self._added(self.over(classes), other.over(classes), sign))

    def _added(self, mine: Sums, theirs: Sums, sign: int) -> dict[str, Array]:
        """Return the sums or differences of sums over the same classes."""
        return {name: mine[name] + sign * theirs[name] for name in mine}

    def is_negative(self, before: Statistics) -> bool:
        """Return whether more was subtracted than had been there before."""
        # Sums of fractions return to zero only within rounding errors.
        return any(
            (total < -max(1e-6, 1e-12 * before.sums[name].max(initial=0.0))).any()
            for name, total in self._counts().items()
        )

    def clipped(self) -> Self:
        """Return these statistics with rounding errors below zero replaced by zero."""
        counts = {name: np.maximum(total, 0.0) for name, total in self._counts().items()}
        return type(self)(self.classes, {**self.sums, **counts})

    def _counts(self) -> Sums:
        return {name: self.sums[name] for name in self.sums if name not in self.not_counts}

    def over(self, classes: Labels) -> Sums:
        """Return the sums of these classes; they lack none of self.classes that has documents."""
        if len(classes) == len(self.classes):
            return self.sums
        kept = np.isin(self.classes, classes)
        index = np.searchsorted(classes, self.classes[kept])
        spread = {}
        for name, total in self.sums.items():
            spread[name] = np.zeros((len(classes), *total.shape[1:]))
            spread[name][index] = total[kept]
        return spread


class Estimator(Scored):
    """A classifier by Bayes' rule; subclasses define the counts and the likelihood.

    Learnt are classes_, the sorted labels, and class_count_, their numbers of documents or sums
    of weights, (n_classes,) each.  Before that, predicting, un-learning and merging raise
    UnfittedError; documents with other columns than those learnt are a DataError.
    """

    # What is derived is kept outside __dict__: predicting then changes no attribute, and a
    # pickle holds only what was learnt.
    __slots__ = ("__dict__", "__weakref__", "_derived")
    _derived: list[Any]  # the tables, once they are derived

    _sums: tuple[str, ...] = ("class_count_", "feature_count_")
    _statistics: type[Statistics] = Statistics
    _positive = False  # whether negative values in X are refused
    _missing = False  # whether X may contain NaN, which stands for a missing value
    _sparse = True  # whether the methods below get a sparse X as it is, not as an array
    _named_priors: ClassVar[tuple[str, ...]] = ("estimated", "uniform")
    class_prior: str | ArrayLike
    class_count_: Array
    n_features_in_: int
    feature_names_in_: Labels  # only if the first documents were a data frame

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        """Return the sums of a batch except class_count_; code: the class index of each row."""
        raise NotImplementedError

    def _joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        raise NotImplementedError

    def _begin(self, X: Any) -> None:
        """Record properties of the first documents that all later ones must share."""

    def _choose(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Choose by the first documents, just learnt, what stays chosen when more are learnt."""

    def _check_parameters(self) -> None:
        """Raise DataError for a parameter that the model cannot use; others are checked by use."""

    def _derive(self) -> Any:
        """Return the tables that predictions are computed from, derived from the sums."""
        raise NotImplementedError

    def tables(self) -> Any:
        """Return the tables that predictions are computed from.

        They are kept until a sum or parameter is set, if only by another thread in between.
        """
        self._learnt()
        derived = self._derived
        if not derived:
            self._check_parameters()  # `set_params` checks none
            derived.append(self._derive())
        return derived[0]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        object.__setattr__(self, "_derived", [])

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    # --- learning: addition ---

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these documents and forget all earlier ones, unless an error is raised.

        X: (n_docs, n_features), an array, data frame or sparse matrix; y: (n_docs,) labels, all
        text or all numbers; sample_weight: (n_docs,) from 0 up, the number of copies that each
        row counts as, 1 unless given.  Raises DataError for other shapes and values, and for
        parameters that do not fit.
        """
        with self._undone_by_errors():
            self._forget()
            self._learn("fit", X, y, sample_weight, None, may_be_empty=False)
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn these documents in addition to earlier ones; arguments and errors: see `fit`.

        classes: labels to expect besides those in y; later calls may add more classes.
        """
        with self._undone_by_errors():
            self._learn("partial_fit", X, y, sample_weight, classes, may_be_empty=True)
        return self

    def _learn(
        self, verb: str, X: Any, y: Any, sample_weight: Any, classes: Any, may_be_empty: bool
    ) -> None:
        first, names = "classes_" not in vars(self), column_names(X)
        X = self._matrix(X, verb) if first else self._checked(X, verb)
        for n, what in zip(X.shape, ("sample", "feature"), strict=True):
            if n == 0 and not may_be_empty:
                raise DataError(
                    f"{self._at(verb)}: 0 {what}(s) (shape={X.shape}) while a minimum of 1 "
                    "is required."
                )
        if first:
            self.n_features_in_ = X.shape[1]
            if names:  # so that others are refused later
                self.feature_names_in_ = np.array(names, dtype=object)
            self._begin(X)
        batch = self._batch(verb, X, y, sample_weight, classes)
        if not (may_be_empty or batch.sums["class_count_"].any()):
            raise DataError(f"{self._at(verb)}: every sample_weight is zero; give one above zero")
        self._become(batch if first else self._learnt().plus(batch))
        if first:
            self._choose(X, y, sample_weight)

    def _forget(self) -> None:
        """Forget all that was learnt, but no parameter."""
        for name in [each for each in vars(self) if each.endswith("_")]:
            delattr(self, name)

    def unlearn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove documents that were learnt with the same labels and weights.

        Raises DataError if counts would fall below 0, or if no numbers could have the mean and
        variance that would be left; other numbers that were not learnt are not noticed.
        """
        X = self._checked(X, "unlearn")
        before = self._learnt()
        left = before.plus(self._batch("unlearn", X, y, sample_weight), sign=-1)
        if left.is_negative(before):
            raise DataError(
                f"{self._at('unlearn')}: not all of these documents were learnt with these "
                "labels; unlearn only what was learnt"
            )
        return self._become(left.clipped())

    def merge(self, other: Self) -> Self:
        """Add the documents of another model of the same class and columns; raises DataError.

        This model keeps its parameters, and the other one stays as it is.
        """
        both = [each for each in (self, other) if type(each) is type(self)]
        learnt = [each._learnt() for each in both]
        shapes = {tuple(n.shape[1:] for n in each.sums.values()) for each in learnt}
        levels = {tuple(getattr(each, "levels_", ())) for each in both}
        named = {tuple(getattr(each, "feature_names_in_", ())) for each in both} - {()}
        if len(both) < 2 or max(map(len, (shapes, levels, named))) > 1:
            raise DataError(
                f"{self._at('merge')}: {other!r} is of another kind, or has other columns or"
                " levels; merge models that were trained alike"
            )
        return self._become(learnt[0].plus(learnt[1]))

    def forget_empty_classes(self) -> Self:
        """Forget the classes of which un-learning left no documents; DataError if that is all."""
        learnt = self._learnt()
        left = learnt.classes[learnt.sums["class_count_"] > 0]
        if not len(left):
            raise DataError(
                f"{self._at('forget_empty_classes')}: no documents are left; fit a new model"
            )
        return self._become(self._statistics(left, learnt.over(left)))

    def _batch(
        self, verb: str, X: Any, y: Any, sample_weight: Any, classes: ArrayLike | None = None
    ) -> Statistics:
        """Return the statistics of a batch whose X has been checked already."""
        y = checked_labels(y, X.shape[0], self._at(verb))
        weight = checked_weight(sample_weight, X.shape[0], self._at(verb))
        expected = vars(self).get("classes_", [])
        if classes is not None:
            expected = checked_labels(classes, np.size(classes), f"{self._at(verb)}: classes")
        named = [labels for labels in (y, expected) if len(labels)]
        if not named:
            raise DataError(f"{self._at(verb)}: no documents and no classes; give one of them")
        known = union_of_labels(*named)
        code = np.searchsorted(known, y)
        class_count = np.bincount(code, weight, len(known)).astype(np.float64)
        counts = self._count(X, code, weight, len(known))
        return self._statistics(known, {"class_count_": class_count, **counts})

    def _learnt(self) -> Statistics:
        if "classes_" not in vars(self):
            name = type(self).__name__
            raise UnfittedError(f"{name}: not fitted; call fit or partial_fit first")
        return self._statistics(self.classes_, {name: getattr(self, name) for name in self._sums})

    @contextmanager
    def _undone_by_errors(self) -> Iterator[None]:
        """Restore all attributes if an error is raised, also by Ctrl-C in a long search."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _become(self, learnt: Statistics) -> Self:
        """Replace the sums, if the parameters fit them; arrays are never changed in place."""
        self._check_parameters()
        self._log_prior(learnt.sums["class_count_"])
        self.classes_ = learnt.classes
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
        elif prior is None or isinstance(prior, str | dict):
            names = ", ".join(self._named_priors)
            raise DataError(f"class_prior: {prior!r}; give {names}, or numbers")
        try:
            share = np.asarray(prior, dtype=np.float64)
        except (TypeError, ValueError):
            share = np.empty(0)
        if share.shape != (n_classes,) or not ((share >= 0).all() and np.isclose(share.sum(), 1)):
            raise DataError(
                f"class_prior: {prior} is not a probability for each of {n_classes} classes;"
                " give that many numbers that sum to 1"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(share))

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log P(class, document) in nats, shape (n_docs, n_classes)."""
        X = self._checked(X, "predict")
        self.tables()  # raises DataError, if parameters were set that do not fit
        return self._joint_log_proba(X)

    def predict_proba(self, X: Any) -> Array:
        """Return P(class given document), shape (n_docs, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

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
        names, learnt = column_names(X), list(vars(self).get("feature_names_in_", ()))
        if names and learnt and names != learnt:
            raise DataError(
                f"{self._at(verb)}: The feature names should match those that were passed during "
                "fit, in their order; give the columns " + ", ".join(learnt[:20])
            )
        X = self._matrix(X, verb)
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"{self._at(verb)}: X has {X.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input; give the same columns"
            )
        return X

    def _matrix(self, X: Any, verb: str) -> Any:
        X = checked_matrix(X, self._at(verb), self._positive, self._missing)
        return X.toarray() if is_sparse(X) and not self._sparse else X

    def _input_tags(self) -> dict[str, bool]:
        return {"sparse": True, "positive_only": self._positive, "allow_nan": self._missing}

    def _at(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()
