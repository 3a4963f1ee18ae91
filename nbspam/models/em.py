"""Expectation and maximisation: naive Bayes where some labels, or all, are missing.

E step: how probable is each class for each document, under the model so far?  M step:
the model of these fractions of documents, which is the usual one, as models are counts.
Each round raises the log-likelihood or leaves it (Dempster, Laird & Rubin 1977).

Secret: the function Q, taken from counts alone, because models are linear in them.
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

# Documents of which a mixture's component starts as the mean.
_SEEDS = 10
_TRACE = 1e-9


@dataclass(frozen=True, slots=True)
class Stopping:
    """When to stop: at whichever comes first.

    Both rules of the textbook: parameters move less than `change`, or Q gains no more
    than `gain` nats a document; and `most` rounds in any case.
    """

    change: float = 1e-4
    gain: float = 1e-5
    most: int = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One round: the log-likelihood it reached, and how much it moved.

    log_likelihood: nats, of what was seen (hard: with the best labels), and of the
    parameters under the prior that alpha stands for, without which it could fall.
    """

    log_likelihood: float
    gain: float  # of Q, nats
    change: float  # the largest of any probability


@dataclass(frozen=True, eq=False)
class Fit:
    """What the rounds came to.  steps[0] is where they started: nothing gained yet."""

    model: LinearModel
    responsibility: Array  # (n_docs, n_classes), of which the model is the maximum
    steps: tuple[Step, ...]


def expectation_maximization(
    start: LinearModel,
    X: Any,
    known: LinearModel | None = None,
    weight: float = 1.0,
    hard: bool = False,
    stopping: Stopping | None = None,
) -> Fit:
    """Return the model that documents without labels lead to, from a given one.

    start: gives the first probabilities, and the parameters (alpha, class_prior);
    X: (n_docs, n_features) documents without labels, each counted `weight` times;
    known: the counts of labelled documents, added in every round;
    hard: give each document to its most probable class, instead of to all by shares.
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
    """Return the most likely of several mixtures of k components, from random starts.

    like: the kind of component and its parameters; every component starts as the mean
    of a few documents drawn at random.
    """
    if not 1 <= k <= X.shape[0]:
        raise DataError(f"mixture: {k} components of {X.shape[0]} documents; give 1 to that many")
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
    """Return log P(class, document); raises DataError where a probability has become 0."""
    if not model.tables().finite:
        raise DataError("EM: a probability has become 0 or 1; give an alpha above 0")
    return np.asarray(model.predict_joint_log_proba(X))


def _responsibility(joint: Array, hard: bool) -> Array:
    """Return P(class given document), or with hard steps 1 for the most probable class."""
    if hard:
        return np.asarray(np.eye(joint.shape[1])[joint.argmax(axis=1)])
    return np.asarray(np.exp(joint - logsumexp(joint)))


def _maximise(
    like: LinearModel, events: Any, share: Array, known: LinearModel | None, weight: float
) -> LinearModel:
    """Return the model of documents that belong to classes by shares, and of known ones."""
    class_count = weight * share.sum(axis=0)
    feature_count = weight * np.asarray(events.T @ share).T
    if known is not None:
        class_count = known.class_count_ + class_count
        feature_count = known.feature_count_ + feature_count
    # A class that lost every document keeps a trace of one: its logarithm stays finite.
    class_count = np.maximum(class_count, _TRACE)
    return type(like).from_counts(class_count, feature_count, like.classes_, **like.get_params())


def _expected(counts: LinearModel, model: LinearModel) -> float:
    """Return Q: the log-likelihood, nats, of one model's counts under another model.

    Counts are expected ones, so this is the expectation of the complete data's
    log-likelihood (Zhou, eq. 7.36), with the prior of alpha.
    """
    tables = model.tables()
    n, x = counts.class_count_, counts.feature_count_
    return float(n @ tables.intercept + (x.T * tables.weight).sum() + _log_prior(model))


def _log_prior(model: LinearModel) -> float:
    """Return the log-density of the parameters, nats, up to a constant.

    alpha is as good as documents seen before: for Bernoulli, two alpha of them a class,
    of which alpha have a token; the multinomial's intercept has no part in it.
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
