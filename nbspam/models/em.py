"""Expectation maximisation (EM): naive Bayes when some or all labels are missing.

The E step computes the posterior of each document under the current model.  The M step
trains a model in which each document belongs to the classes by these fractions.  A round
never lowers the log-likelihood (Dempster, Laird & Rubin 1977).

Secret: labelled documents are known by their counts alone, because the models are linear in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.inputs import DataError
from nbspam.progress import Extent, tracked

if TYPE_CHECKING:
    from nbspam.models.inputs import Array
    from nbspam.models.linear import LinearModel

_SEEDS = 10  # documents whose mean a component of a mixture starts from
_TRACE = 1e-9  # documents that a class keeps at least


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


@dataclass(frozen=True, slots=True)
class Step:
    """One round: the log-likelihood it reached, and how far the parameters moved.

    log_likelihood: nats, of the observed documents (hard: with their best labels) plus
    the log-prior of the parameters that alpha implies; without the prior it could fall.
    """

    log_likelihood: float
    gain: float  # of Q, nats
    change: float  # the largest change of any probability


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of EM.  steps[0] is the start, with no gain and no change."""

    model: Any
    responsibility: Array  # what the last M step divided documents by; see `Expected.share`
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Expected:
    """The result of an E step."""

    share: Array  # of each way to complete the data, such as (n_docs, n_classes) posteriors
    joint: Array  # log P of each of these ways, nats, same shape
    log_likelihood: float  # see `Step`


class Incomplete(Protocol):
    """Data of which a part was not observed, and how they are completed and learned."""

    def expect(self, model: Any) -> Expected:
        """Return the E step under a model; raises DataError if a probability has become 0."""

    def maximise(self, share: Array) -> Any:
        """Return the model that the M step trains on data completed by these shares."""

    def q(self, share: Array, joint: Array, model: Any) -> float:
        """Return Q in nats: the expected log-likelihood of the completed data under a model.

        Zhou, eq. 7.36, plus the log-prior of the model.  joint: of the model, see `Expected`.
        """

    def n_docs(self) -> float:
        """Return the number of documents, or the sum of their weights."""

    def change(self, new: Any, old: Any) -> float:
        """Return the largest change of any parameter from one model to the next."""


def climb(start: Any, data: Incomplete, stopping: Stopping | None = None) -> Fit:
    """Return the model that EM reaches from a start; raises DataError."""
    stopping = stopping or Stopping()
    model, expected = start, data.expect(start)
    share = expected.share
    steps = [Step(expected.log_likelihood, 0.0, 0.0)]
    for _ in tracked(range(stopping.most), "rounds", Extent(lambda: None)):  # most end earlier
        share, before = expected.share, expected.joint
        new = data.maximise(share)
        expected = data.expect(new)
        gain = data.q(share, expected.joint, new) - data.q(share, before, model)
        change = data.change(new, model)
        steps.append(Step(expected.log_likelihood, gain, change))
        model = new
        if change < stopping.change or gain <= stopping.gain * data.n_docs():
            break
    return Fit(model, share, tuple(steps))


# --- documents without labels ----------------------------------------------------------------


def expectation_maximization(
    start: LinearModel,
    X: Any,
    known: LinearModel | None = None,
    weight: float = 1.0,
    hard: bool = False,
    stopping: Stopping | None = None,
) -> Fit:
    """Return the model that EM reaches on unlabelled documents.

    start: the model of the first E step; also gives the parameters (alpha, class_prior).
    X: (n_docs, n_features) unlabelled documents, each counted `weight` times.
    known: the model of labelled documents, whose counts are added in every round.
    hard: assign each document to its most probable class instead of fractionally to all.
    Raises DataError if a probability becomes 0.
    """
    return climb(start, Unlabelled(start, X, known, weight, hard), stopping)


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Documents without labels, beside labelled ones that are known by their counts only."""

    like: LinearModel  # gives the parameters of the models
    X: Any  # (n_docs, n_features)
    known: LinearModel | None
    weight: float
    hard: bool

    def expect(self, model: LinearModel) -> Expected:
        """Return the posteriors, (n_docs, n_classes); if hard, 1 for the best class, else 0."""
        joint = _finite_joint(model, self.X)
        share = responsibility(joint, self.hard)
        seen = joint.max(axis=1) if self.hard else logsumexp(joint)
        return Expected(share, joint, self._of_known(model) + self.weight * float(seen.sum()))

    def maximise(self, share: Array) -> LinearModel:
        """Return the model of documents that belong to classes by shares, plus known counts."""
        return _maximise(self.like, self._events, share, self.known, self.weight)

    def q(self, share: Array, joint: Array, model: LinearModel) -> float:
        """Return Q in nats."""
        return self._of_known(model) + self.weight * float((share * joint).sum())

    def n_docs(self) -> float:
        """Return the number of documents, the unlabelled ones by their weight."""
        labelled = 0.0 if self.known is None else float(self.known.class_count_.sum())
        return labelled + self.weight * float(self.X.shape[0])

    def change(self, new: LinearModel, old: LinearModel) -> float:
        """Return the largest change of any probability."""
        return float(np.abs(np.exp(new.feature_log_prob_) - np.exp(old.feature_log_prob_)).max())

    @cached_property
    def _events(self) -> Any:
        return self.like._events(self.X)

    def _of_known(self, model: LinearModel) -> float:
        """Return the log-likelihood of the labelled documents, with the log-prior, nats."""
        if self.known is None:
            return _log_prior(model)
        tables, n, x = model.tables(), self.known.class_count_, self.known.feature_count_
        return float(n @ tables.intercept + (x.T * tables.weight).sum() + _log_prior(model))


def mixture(
    like: LinearModel,
    X: Any,
    k: int,
    rng: np.random.Generator,
    restarts: int = 5,
    hard: bool = False,
    stopping: Stopping | None = None,
) -> Fit:
    """Return the most likely of several mixtures of k components with random starts.

    like: a model of the components' class and parameters.  Raises DataError.
    """
    unknown = type(like).from_counts(
        np.zeros(k), np.zeros((k, X.shape[1])), np.arange(k), **like.get_params()
    )
    data = Unlabelled(unknown, X, None, 1.0, hard)
    return best_mixture(data, X.shape[0], k, rng, restarts, stopping)


def best_mixture(
    data: Incomplete,
    n_docs: int,
    k: int,
    rng: np.random.Generator,
    restarts: int,
    stopping: Stopping | None,
) -> Fit:
    """Return the most likely of several fits with random starts; raises DataError.

    Each component starts as the mean of a few documents drawn at random.
    """
    if not 1 <= k <= n_docs:
        raise DataError(f"mixture: {k} components of {n_docs} documents; give 1 to {n_docs}")
    best: Fit | None = None
    for _ in tracked(range(restarts), "starts"):
        share = np.zeros((n_docs, k))
        seeds = max(1, min(_SEEDS, n_docs // k))
        drawn = rng.permutation(n_docs)[: seeds * k].reshape(k, seeds)
        share[drawn, np.arange(k)[:, None]] = 1.0
        fit = climb(data.maximise(share), data, stopping)
        if best is None or fit.steps[-1].log_likelihood > best.steps[-1].log_likelihood:
            best = fit
    assert best is not None, "restarts: at least one"
    return best


def _finite_joint(model: LinearModel, X: Any) -> Array:
    """Return log P(class, document); raises DataError if a probability has become 0."""
    if not model.tables().finite:
        raise DataError("EM: a probability has become 0 or 1; give an alpha above 0")
    return np.asarray(model.predict_joint_log_proba(X))


def responsibility(joint: Array, hard: bool) -> Array:
    """Return P(class given document); if hard, 1 for the most probable class, else 0."""
    if hard:
        return np.asarray(np.eye(joint.shape[1])[joint.argmax(axis=1)])
    return np.asarray(np.exp(joint - logsumexp(joint)))


def _maximise(
    like: LinearModel, events: Any, share: Array, known: LinearModel | None, weight: float
) -> LinearModel:
    """Return the model of documents that belong to classes by shares, plus known counts."""
    class_count = weight * share.sum(axis=0)
    feature_count = weight * np.asarray(events.T @ share).T
    if known is not None:
        class_count = known.class_count_ + class_count
        feature_count = known.feature_count_ + feature_count
    # A class that lost all documents keeps a trace, so that its log-prior stays finite.
    class_count = np.maximum(class_count, _TRACE)
    return type(like).from_counts(class_count, feature_count, like.classes_, **like.get_params())


def _log_prior(model: LinearModel) -> float:
    """Return the log-density of the parameters under alpha's prior, nats, up to a constant.

    alpha acts like documents seen before: for Bernoulli, 2 alpha documents per class, of
    which alpha have the token.  The multinomial's intercept does not depend on it.
    """
    tables, alpha = model.tables(), model.alpha_
    beyond_prior = tables.intercept - model.class_log_prior_
    return float(2 * alpha * beyond_prior.sum() + alpha * tables.weight.sum())
