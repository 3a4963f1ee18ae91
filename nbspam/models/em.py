"""Expectation maximisation (EM): naive Bayes when some or all labels are missing.

The E step computes the posterior of each document under the current model.  The M step
trains a model in which each document belongs to the classes by these fractions.  A round
never lowers the log-likelihood (Dempster, Laird & Rubin 1977).

Secret: the function Q is computed from counts alone, because the models are linear in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.inputs import DataError

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

    model: LinearModel
    responsibility: Array  # (n_docs, n_classes) posteriors the model was trained with
    steps: tuple[Step, ...]


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
    stopping = stopping or Stopping()
    events = start._events(X)
    model, joint = start, _finite_joint(start, X)
    steps = [Step(_log_likelihood(model, joint, known, weight, hard), 0.0, 0.0)]
    share = _responsibility(joint, hard)
    for _ in range(stopping.most):
        share = _responsibility(joint, hard)
        new = _maximise(start, events, share, known, weight)
        joint = _finite_joint(new, X)
        gain = _expected(new, new) - _expected(new, model)
        change = float(
            np.abs(np.exp(new.feature_log_prob_) - np.exp(model.feature_log_prob_)).max()
        )
        steps.append(Step(_log_likelihood(new, joint, known, weight, hard), gain, change))
        model = new
        if change < stopping.change or gain <= stopping.gain * new.class_count_.sum():
            break
    return Fit(model, share, tuple(steps))


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

    like: a model of the components' class and parameters.  Each component starts as the
    mean of a few documents drawn at random.  Raises DataError.
    """
    if not 1 <= k <= X.shape[0]:
        raise DataError(
            f"mixture: {k} components of {X.shape[0]} documents; give 1 to {X.shape[0]}"
        )
    best: Fit | None = None
    for _ in range(restarts):
        share = np.zeros((X.shape[0], k))
        seeds = max(1, min(_SEEDS, X.shape[0] // k))
        drawn = rng.permutation(X.shape[0])[: seeds * k].reshape(k, seeds)
        share[drawn, np.arange(k)[:, None]] = 1.0
        unknown = type(like).from_counts(
            np.zeros(k), np.zeros((k, X.shape[1])), np.arange(k), **like.get_params()
        )
        start = _maximise(unknown, like._events(X), share, None, 1.0)
        fit = expectation_maximization(start, X, hard=hard, stopping=stopping)
        if best is None or fit.steps[-1].log_likelihood > best.steps[-1].log_likelihood:
            best = fit
    assert best is not None, "restarts: at least one"
    return best


def _finite_joint(model: LinearModel, X: Any) -> Array:
    """Return log P(class, document); raises DataError if a probability has become 0."""
    if not model.tables().finite:
        raise DataError("EM: a probability has become 0 or 1; give an alpha above 0")
    return np.asarray(model.predict_joint_log_proba(X))


def _responsibility(joint: Array, hard: bool) -> Array:
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


def _expected(counts: LinearModel, model: LinearModel) -> float:
    """Return Q in nats: the log-likelihood of one model's counts under another model.

    The counts are expected counts, so this is the expected log-likelihood of the complete
    data (Zhou, eq. 7.36), plus the log-prior that alpha implies.
    """
    tables = model.tables()
    n, x = counts.class_count_, counts.feature_count_
    return float(n @ tables.intercept + (x.T * tables.weight).sum() + _log_prior(model))


def _log_prior(model: LinearModel) -> float:
    """Return the log-density of the parameters under alpha's prior, nats, up to a constant.

    alpha acts like documents seen before: for Bernoulli, 2 alpha documents per class, of
    which alpha have the token.  The multinomial's intercept does not depend on it.
    """
    tables, alpha = model.tables(), model.alpha_
    beyond_prior = tables.intercept - model.class_log_prior_
    return float(2 * alpha * beyond_prior.sum() + alpha * tables.weight.sum())


def _log_likelihood(
    model: LinearModel, joint: Array, known: LinearModel | None, weight: float, hard: bool
) -> float:
    seen = joint.max(axis=1) if hard else logsumexp(joint)
    of_known = _log_prior(model) if known is None else _expected(known, model)
    return float(of_known + weight * seen.sum())
