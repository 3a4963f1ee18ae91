"""Expectation maximisation (EM): models of documents and rows whose classes or cells are missing.

The E step divides each document among the ways to complete it, such as its possible classes, by
their probabilities under the current model.  The M step trains a model on all ways, weighted by
these shares.  A round never lowers the log-likelihood (Dempster, Laird & Rubin 1977).  Without
any labels, the classes are the components of a mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.errors import UsageError, check_number
from nbspam.models.base import logsumexp
from nbspam.models.columns import ColumnModel
from nbspam.models.gaussian import over_all_rows
from nbspam.models.inputs import DataError
from nbspam.printing import Extent, tracked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nbspam.models.inputs import Array, Codes, Labels
    from nbspam.models.tokens import LinearModel

_SEEDS = 10  # documents whose mean a component of a mixture starts from
_TRACE = 1e-9  # documents that a class keeps at least
_NEGLIGIBLE = 1e-9  # share of a row that is dropped; a network takes it for a rounding error
_MOST = 10_000  # rounds until a change is below a user's epsilon
_ADVICE = "give an alpha above 0, and leave out --estimate mle"
MAX_WAYS = 1 << 20  # that missing cells add to the ways to complete all rows
# In EM a variance is at least this share of the column's over all rows: otherwise a class that
# shrinks to one row would be infinitely likely.
_FLOOR = 1e-3


@dataclass(frozen=True, slots=True)
class Stopping:
    """When to stop: as soon as one of the three limits is reached.

    change: the largest change of any probability falls below this.
    gain: Q gains no more than this per document, nats.
    most: the number of rounds.
    """

    change: float = 1e-4
    gain: float = 1e-5
    most: int = 100


AT_CONVERGENCE = Stopping()


def stopping(
    rounds: int | None, epsilon: float | None, otherwise: Stopping = AT_CONVERGENCE
) -> Stopping:
    """Return when a user wants EM to stop; if both are None, as `otherwise` says.

    rounds: the number of rounds, at most if there is an epsilon; epsilon: the largest change of
    any probability falls below it.  Raises UsageError.
    """
    if rounds is not None:
        check_number("rounds", rounds, 1, whole=True)
    if epsilon is not None:
        check_number("epsilon", epsilon, 0, above=True)
    if rounds is None and epsilon is None:
        return otherwise
    return Stopping(epsilon or 0.0, 0.0, _MOST if rounds is None else rounds)


@dataclass(frozen=True, slots=True)
class Step:
    """One round: the likelihood it reached, and how far the parameters moved.

    log_likelihood: nats, of the observed documents (hard: with their best labels).
    log_posterior: that plus the log-density of the parameters under the prior that alpha
    implies, nats up to a constant; EM never lowers it, while the likelihood may fall.
    """

    log_likelihood: float
    log_posterior: float
    gain: float  # of Q, nats
    change: float  # the largest change of any probability


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of EM.  steps[0] is the start, with no gain and no change."""

    model: Any
    responsibility: Array  # the shares of the last M step; see `Expected.share`
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class EMReport:
    """A classifier trained on labelled and unlabelled documents or rows, and how."""

    classifier: Any
    fit: Fit
    weight: float  # of an unlabelled document
    n_labelled: int
    n_unlabelled: int
    accuracy: Mapping[float, float] = field(default_factory=dict)  # held out, by weight tried
    skipped: Sequence[Any] = ()


@dataclass(frozen=True, eq=False)
class Expected:
    """The result of an E step."""

    share: Array  # of each way to complete the data, such as (n_docs, n_classes) posteriors
    joint: Array  # log P of each of these ways, nats, same shape
    log_likelihood: float  # see `Step`
    log_prior: float  # of the parameters, nats up to a constant
    of_known: float = 0.0  # the part of the likelihood that is the same for all ways, nats
    weight: float = 1.0  # of all shares

    def step(self, gain: float = 0.0, change: float = 0.0) -> Step:
        """Return the round that reached this; gain, change: see `Step`."""
        return Step(self.log_likelihood, self.log_likelihood + self.log_prior, gain, change)

    def q(self, share: Array) -> float:
        """Return Q in nats: the expected log-likelihood of the data completed by these shares.

        Zhou, eq. 7.36, plus the log-prior of the model.
        """
        likely = share > 0
        completed = self.weight * float(share[likely] @ self.joint[likely])
        return self.log_prior + self.of_known + completed


def climb(
    start: Any, data: UnlabelledDocuments | Completions, stopping: Stopping = AT_CONVERGENCE
) -> Fit:
    """Return the model that EM reaches from a start; raises DataError."""
    model = start
    before = expected = data.expect(start)
    steps = [expected.step()]
    for _ in tracked(range(stopping.most), "rounds", Extent(lambda: None)):  # most end earlier
        before, old = expected, model
        model = data.maximise(before.share)
        expected = data.expect(model)
        gain = expected.q(before.share) - before.q(before.share)
        change = data.change(model, old)
        steps.append(expected.step(gain, change))
        if change < stopping.change or gain <= stopping.gain * data.n_docs:
            break
    return Fit(model, before.share, tuple(steps))


def likeliest(fits: Iterator[Fit]) -> Fit:
    """Return the fit of the highest log-posterior, the first one of equals."""
    return max(fits, key=lambda fit: fit.steps[-1].log_posterior)


def cluster_names(k: int, n: int, what: str) -> tuple[str, ...]:
    """Return the names of k clusters of n documents or rows, their numbers; raises UsageError."""
    if not 2 <= k <= n:
        raise UsageError(
            f"-k {k}: not from 2 to the number of {what}, {n}; give another k, or more of them"
        )
    return tuple(f"{number:0{len(str(k))}}" for number in range(1, k + 1))


def mixture(
    data: UnlabelledDocuments | Completions,
    k: int,
    rng: np.random.Generator,
    restarts: int = 5,
    stopping: Stopping = AT_CONVERGENCE,
) -> Fit:
    """Return the most likely of several mixtures of k components; raises DataError.

    data: without labels, and all of weight 1, of at least k documents.  Each component starts as
    the mean of a few documents drawn at random.  The responsibilities of the fit are (n_docs, k).
    """
    check_number("restarts", restarts, 1, whole=True)
    n_docs = round(data.n_docs)

    def fits() -> Iterator[Fit]:
        for _ in tracked(range(restarts), "starts"):
            share = np.zeros((n_docs, k))
            seeds = max(1, min(_SEEDS, n_docs // k))
            drawn = rng.permutation(n_docs)[: seeds * k].reshape(k, seeds)
            share[drawn, np.arange(k)[:, None]] = 1.0
            yield climb(data.maximise(share), data, stopping)

    best = likeliest(fits())
    return replace(best, responsibility=best.responsibility.reshape(n_docs, k))


# --- documents without labels ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnlabelledDocuments:
    """Documents without labels, beside labelled ones that are known by their counts only.

    Counts are enough, because the models are linear in them.  With a weight below 1 it is the
    EM-lambda of Nigam, McCallum, Thrun & Mitchell (2000).
    """

    like: LinearModel  # gives the class and the parameters of the models
    classes: Labels
    X: Any  # (n_docs, n_features)
    known: LinearModel | None = None  # of labelled documents, whose counts every round adds
    weight: float = 1.0  # each of these documents counts as so many
    hard: bool = False  # a document belongs to its most probable class entirely

    @property
    def n_docs(self) -> float:
        """The number of documents, the unlabelled ones by their weight."""
        labelled = 0.0 if self.known is None else float(self.known.class_count_.sum())
        return labelled + self.weight * float(self.X.shape[0])

    @cached_property
    def _events(self) -> Any:
        return self.like._events(self.X)

    def expect(self, model: LinearModel) -> Expected:
        """Return the posteriors, (n_docs, n_classes); if hard, 1 for the best class, else 0.

        Raises DataError if a probability has become 0 or 1.
        """
        if not model.tables().finite:
            raise DataError(f"EM: a probability has become 0 or 1; {_ADVICE}")
        joint = np.asarray(model.predict_joint_log_proba(self.X))
        if self.hard:
            share, seen = np.eye(joint.shape[1])[joint.argmax(axis=1)], joint.max(axis=1)
        else:
            seen = logsumexp(joint)
            share = np.exp(joint - seen)
        of_known, log_prior = 0.0, _log_prior_of_tokens(model)
        if self.known is not None:
            n, x, tables = self.known.class_count_, self.known.feature_count_, model.tables()
            of_known = float(n @ tables.intercept + (x.T * tables.weight).sum())
        likely = of_known + self.weight * float(seen.sum())
        return Expected(share, joint, likely, log_prior, of_known, self.weight)

    def maximise(self, share: Array) -> LinearModel:
        """Return the model of documents that belong to classes by shares, plus known counts."""
        class_count = self.weight * share.sum(axis=0)
        feature_count = self.weight * np.asarray(self._events.T @ share).T
        if self.known is not None:
            class_count = self.known.class_count_ + class_count
            feature_count = self.known.feature_count_ + feature_count
        # A class that lost all documents keeps a trace, so that its log-prior stays finite.
        class_count = np.maximum(class_count, _TRACE)
        parameters = self.like.get_params()
        return type(self.like).from_counts(class_count, feature_count, self.classes, **parameters)

    def change(self, new: LinearModel, old: LinearModel) -> float:
        """Return the largest change of a token's probability in a class."""
        return float(np.abs(np.exp(new.feature_log_prob_) - np.exp(old.feature_log_prob_)).max())


def _log_prior_of_tokens(model: LinearModel) -> float:
    """Return the log-density of the parameters under the prior, nats, up to a constant.

    A prior acts like documents seen before: for Bernoulli, so many of each class with the
    token, and so many without.  The multinomial's intercept does not depend on it.
    """
    tables, (of_token, of_others) = model.tables(), model.prior_counts_
    beyond_prior = tables.intercept - model.class_log_prior_
    of_absent = float((of_token + of_others) * beyond_prior.sum())
    added = model.class_added(len(model.classes_))
    of_classes = float(added[added > 0] @ model.class_log_prior_[added > 0])
    return of_classes + of_absent + float(of_token * tables.weight.sum())


# --- rows without a class, and for a network with missing cells ------------------------------

# A row stands for every way to complete it: with each class and, for a network, with each value
# of each missing cell.  Naive Bayes needs no values for missing cells: given the class they would
# be drawn from the shares that the known cells have, (n + m n / N) / (N + m) = n / N, and so
# change nothing.


@dataclass(frozen=True, eq=False)
class Completions:
    """Rows and all ways to complete them; see `completions`.  A share is of a row's weight."""

    like: Any  # gives the class and the parameters of the models
    classes: Labels
    X: Array  # (n_variants, n_columns) the rows with their missing cells completed
    variant: Codes  # (n_ways,) index into X
    label: Codes  # (n_ways,) index into classes
    begin: Codes  # (n_rows,) where the ways of each row begin
    weight: Array  # (n_rows,)
    hard: bool = False  # a row belongs to its most probable way entirely

    @property
    def n_docs(self) -> float:
        """The sum of the weights of the rows."""
        return float(self.weight.sum())

    @cached_property
    def row(self) -> Codes:
        """The row of each way, shape (n_ways,)."""
        n_ways = np.diff(np.append(self.begin, len(self.label)))
        return np.repeat(np.arange(len(self.begin)), n_ways)

    def expect(self, model: Any) -> Expected:
        """Return the weight of each way, (n_ways,); raises DataError for an impossible row."""
        joint = model.predict_joint_log_proba(self.X)[self.variant, self.label]
        combine = np.maximum if self.hard else np.logaddexp
        seen = combine.reduceat(joint, self.begin)
        if np.isneginf(seen).any():
            raise DataError(f"EM: a row has become impossible; {_ADVICE}")
        share = np.exp(joint - seen[self.row])
        if self.hard:
            best = np.flatnonzero(share == 1.0)
            first = best[np.searchsorted(self.row[best], np.arange(len(seen)))]
            share = np.zeros(len(joint))
            share[first] = 1.0
        share *= self.weight[self.row]
        share[share <= _NEGLIGIBLE] = 0.0
        return Expected(share, joint, float(self.weight @ seen), _log_prior_of_columns(model))

    def random_share(self, rng: np.random.Generator) -> Array:
        """Return the weight of each row divided among its ways at random, (n_ways,)."""
        share = rng.exponential(size=len(self.label))
        share /= np.add.reduceat(share, self.begin)[self.row]
        return share * self.weight[self.row]

    def maximise(self, share: Array) -> Any:
        """Return the model of all ways, weighted; share: n_ways numbers, of any shape."""
        model = type(self.like)(**self.like.get_params())
        model.partial_fit(
            self.X[self.variant], self.classes[self.label], self.classes, share.ravel()
        )
        if hasattr(model, "deviation_"):
            n, deviation = model.value_count_, model.deviation_
            variance = over_all_rows(n, model.mean_, deviation).variance
            model.deviation_ = np.maximum(deviation, n * _FLOOR * variance)
        return model

    def change(self, new: Any, old: Any) -> float:
        """Return the largest change of a probability, or of a mean in standard deviations."""
        from nbspam.models.describing import distributions  # imports all models; texts need none

        largest = 0.0
        for now, before in zip(distributions(new), distributions(old), strict=True):
            if now.probability is not None:
                changes = np.abs(now.probability - before.probability)
            else:
                changes = np.abs(now.mean - before.mean) / np.sqrt(now.variance)
            largest = max(largest, float(changes.max(initial=0.0)))
        return largest


def _log_prior_of_columns(model: Any) -> float:
    """Return the log-density of the parameters under the prior, nats, up to a constant.

    The estimate (n_i + a_i) / (n + sum of a) maximises the likelihood times theta_i^a_i.
    """
    from nbspam.models.describing import distributions

    if not isinstance(model, ColumnModel):  # GaussianNB
        return 0.0
    of_columns = np.split(model.added_, np.cumsum(model.levels_)[:-1])
    added = [*of_columns, model.class_added(len(model.classes_))]
    total = 0.0
    for each in distributions(model):
        if each.probability is not None:
            alpha = np.broadcast_to(added[each.of[0]], each.probability.shape)
            total += float(alpha[alpha > 0] @ np.log(each.probability[alpha > 0]))
    return total


def completions(
    like: Any,
    X: Array,
    y: Codes,
    classes: Labels,
    weight: Array,
    levels: Codes | None = None,
    hard: bool = False,
) -> Completions:
    """Return rows with all ways to complete them; DataError if gaps add more than MAX_WAYS.

    X: (n_rows, n_columns), NaN where missing; y: (n_rows,) class indices, below 0 where missing;
    weight: (n_rows,).  levels: the number of values of each column, to complete missing cells too.
    """
    sizes = [] if levels is None else levels.tolist()
    gaps = np.isnan(X) if sizes else np.zeros(X.shape, bool)
    missing = [np.flatnonzero(row).tolist() for row in gaps]
    n_variants = [prod(sizes[j] for j in columns) for columns in missing]
    n_labels = np.where(y < 0, len(classes), 1)
    n_ways = sum(n * k for n, k in zip(n_variants, n_labels.tolist(), strict=True))
    if n_ways - int(n_labels.sum()) > MAX_WAYS:
        raise DataError(
            f"EM: {n_ways:,} ways to fill in the missing cells, more than {MAX_WAYS:,}; fill in"
            " some, or leave out the rows or columns that miss most"
        )
    variants = np.repeat(X, n_variants, axis=0)
    at = np.cumsum(n_variants) - n_variants
    for start, n, columns in zip(at.tolist(), n_variants, missing, strict=True):
        if columns:
            filled = list(product(*(range(sizes[j]) for j in columns)))
            variants[start : start + n, columns] = filled
    row = np.repeat(np.arange(len(X)), n_variants)
    variant = np.repeat(np.arange(len(row)), n_labels[row])
    row = row[variant]  # of each way
    place = np.arange(len(row)) - np.searchsorted(variant, variant)
    label = np.where(y[row] < 0, place, y[row])
    begin = np.searchsorted(row, np.arange(len(X)))
    return Completions(like, classes, variants, variant, label, begin, weight, hard)
