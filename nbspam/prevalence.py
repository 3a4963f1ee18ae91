"""How common the classes are, where that is not as it was in training.

Training mail is seldom mixed as mail comes in.  Bayes' rule lets the prior be changed
afterwards: the evidence stays, only the constant of every class moves.

Secret: which shares a model's probabilities assume, and how others are put in their place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from nbspam.answers import Answer, posterior
from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.decision import prior_shift, update_prior
from nbspam.errors import UsageError
from nbspam.sources import Skipped

_MAX_STEPS = 1000
_CHANGE = 1e-8  # of a share, at which the estimate stands still
_LEAST = 1e-9  # share of a class that nothing speaks for


class HasPrior(Protocol):
    """A classifier of any kind, as far as its prior goes."""

    @property
    def prior(self) -> Floats:
        """The shares of the classes that training found or was told, shape (n_classes,)."""

    def shifted(self, shift: Floats) -> Self:
        """Return the classifier that says so much more for each class, nats."""

    def answers(self, items: Any, jobs: int = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every item in order."""


_AnyClassifier = TypeVar("_AnyClassifier", bound=HasPrior)


@dataclass(frozen=True, slots=True)
class Shares:
    """How common each class is, shape (n_classes,) each."""

    assumed: Floats  # by the model
    observed: Floats  # in the documents judged
    estimated: Floats  # in the same, without looking at their labels


def stated_prior(stated: Mapping[str, float], classes: tuple[str, ...], old: Floats) -> Floats:
    """Return the shares of all classes when some are stated; raises UsageError.

    The other classes share what is left, in proportion to their old shares.

    >>> stated_prior({"spam": 0.8}, ("friends", "spam", "work"), np.array([0.1, 0.5, 0.4]))
    array([0.04, 0.8 , 0.16])
    """
    for name in stated:
        if name not in classes:
            raise UsageError(
                f"--prior {name}: not a class of the model; there are {', '.join(classes)}"
            )
    left = 1 - sum(stated.values())
    others = np.array([name not in stated for name in classes])
    is_whole = abs(left) < 1e-9 if not others.any() else left > 0
    if min(stated.values()) <= 0 or not is_whole or not old.all():
        raise UsageError(
            "--prior: not shares between 0 and 1 of classes the model has seen, which sum to 1"
            " or leave something to the others; write one as --prior spam=0.8"
        )
    new = np.array([stated.get(name, 0.0) for name in classes])
    new[others] = left * old[others] / old[others].sum() if others.any() else 0.0
    return new


def with_prior(classifier: _AnyClassifier, new: Floats) -> _AnyClassifier:
    """Return the classifier under other shares of the classes than it was trained with.

    All it says follows: posterior, score, decision, and the constant of an explanation.
    """
    return classifier.shifted(prior_shift(classifier.prior, new))


def with_estimated_prior(
    classifier: _AnyClassifier, items: Sequence[Any], jobs: int = 1
) -> _AnyClassifier:
    """Return the classifier under the shares of classes that EM finds in these items."""
    answers = classifier.answers(items, jobs)
    joint = [answer.joint for answer in answers if isinstance(answer, Answer)]
    if not joint:
        return classifier
    return with_prior(classifier, estimate_prior(posterior(np.stack(joint)), classifier.prior))


def estimate_prior(probability: ArrayLike, old: Floats) -> Floats:
    """Return the shares of classes that make unlabelled documents likeliest, (n_classes,).

    probability: (n_docs, n_classes) under the old shares.  EM of Saerens, Latinne &
    Decaestecker (2002), eqs. 2.8 and 2.9: posteriors by the shares, shares by the posteriors.
    """
    new = np.maximum(old, _LEAST)
    for _ in range(_MAX_STEPS):
        before = new
        new = np.maximum(update_prior(probability, np.maximum(old, _LEAST), new).mean(0), _LEAST)
        if np.abs(new - before).max() < _CHANGE:
            break
    return np.asarray(new / new.sum())


def shares_of(probability: Floats, y: Integers, assumed: Floats) -> Shares:
    """Return how common the classes are among documents judged: (n_docs, n_classes), (n_docs,)."""
    observed = np.bincount(y, minlength=len(assumed)) / max(len(y), 1)
    return Shares(assumed, observed, estimate_prior(probability, assumed))
