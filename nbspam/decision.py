"""Deciding: from probabilities and what mistakes cost to the label that is given.

Bayes' decision rule: of all actions take the one whose expected loss is least.  For ham and
spam the rule is two cutoffs on the probability of spam; for anything else, a loss matrix.

Secret: how costs become labels; no model knows of costs, and no cost of models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.errors import UsageError
from nbspam.verdicts import Answer, Skipped, posterior

UNSURE = "unsure"
HAM_AND_SPAM = ("ham", "spam")
# What calling ham spam costs where a miss costs 1; spam is what has probability 2/3.  Ten
# folds of SpamAssassin's public mail: 7 false positives for 10, and 13 misses for 10.
FP_COST = 2.0


POLICIES = ("everything", "error", "near")
_NEAR_MISS = 0.99  # probability of the truth below which policy near learns a message


class Cutoffs(NamedTuple):
    """The decision between ham and spam: from `spam` up it is spam, up to `ham` ham.

    With the costs for which it was made; a miss costs 1.
    """

    spam: float  # probability of spam, 0 to 1
    ham: float  # the same, not above the other; between the two lies unsure
    fp_cost: float = FP_COST  # of ham called spam
    unsure_cost: float | None = None  # of no answer, where none may be given

    @property
    def actions(self) -> tuple[str, ...]:
        """The labels that can be given."""
        return HAM_AND_SPAM if self.unsure_cost is None else (*HAM_AND_SPAM, UNSURE)

    @property
    def loss(self) -> Floats:
        """What each action costs when each class is the truth, shape (2, n_actions)."""
        unsure = [] if self.unsure_cost is None else [self.unsure_cost]
        return np.array([[0.0, self.fp_cost, *unsure], [1.0, 0.0, *unsure]])

    def labels(self, probability: Floats) -> list[str]:
        """Return the label of every row of probabilities of ham and spam."""
        spam = probability[:, 1]
        label = np.where(spam >= self.spam, "spam", np.where(spam <= self.ham, "ham", UNSURE))
        names: list[str] = label.tolist()
        return names


class LossMatrix(NamedTuple):
    """The decision between any actions: what each costs when each class is the truth."""

    actions: tuple[str, ...]
    loss: Floats  # (n_classes, n_actions)

    def labels(self, probability: Floats) -> list[str]:
        """Return the label of every row of probabilities (n_docs, n_classes)."""
        return [self.actions[action] for action in bayes_actions(probability, self.loss).tolist()]


Rule = Cutoffs | LossMatrix


def conditional_risk(probability: ArrayLike, loss: ArrayLike) -> Floats:
    """Return the expected loss of every action, shape (n_docs, n_actions).

    probability: (n_docs, n_classes).  loss: (n_classes, n_actions).
    """
    return np.asarray(probability, np.float64) @ np.asarray(loss, np.float64)


def bayes_actions(probability: ArrayLike, loss: ArrayLike) -> Integers:
    """Return the action of least expected loss, shape (n_docs,); the first of equals.

    >>> bayes_actions([[0.4, 0.6], [0.3, 0.7]], [[0, 2], [1, 0]])
    array([0, 1])
    """
    return np.asarray(conditional_risk(probability, loss).argmin(axis=1))


def zero_one_loss(n_classes: int) -> Floats:
    """Return the loss that counts mistakes; its best action is the most probable class."""
    return 1.0 - np.eye(n_classes)


def cutoffs(fp_cost: float = FP_COST, unsure_cost: float | None = None) -> Cutoffs:
    """Return the cutoffs that costs mean, a miss costing 1; raises UsageError.

    fp_cost: of ham called spam.  unsure_cost: of giving no answer, if none may be given.

    >>> cutoffs(9)
    Cutoffs(spam=0.9, ham=0.9, fp_cost=9, unsure_cost=None)
    >>> cutoffs(10, unsure_cost=0.1)
    Cutoffs(spam=0.99, ham=0.1, fp_cost=10, unsure_cost=0.1)
    """
    _check_cost("--fp-cost", fp_cost)
    even = fp_cost / (fp_cost + 1)
    if unsure_cost is None:
        return Cutoffs(even, even, fp_cost)
    _check_cost("--unsure-cost", unsure_cost)
    if unsure_cost >= even:
        raise UsageError(
            f"--unsure-cost {unsure_cost:g}: an answer is always cheaper;"
            f" with --fp-cost {fp_cost:g} give less than {even:.3g}"
        )
    return Cutoffs(1 - unsure_cost / fp_cost, unsure_cost, fp_cost, unsure_cost)


def cutoffs_from_dict(values: dict[str, Any]) -> Cutoffs:
    """Return the cutoffs that a model file holds; raises ValueError or TypeError."""
    found = Cutoffs(**values)
    unsure_cost = 0.0 if found.unsure_cost is None else found.unsure_cost
    if not 0 <= found.ham <= found.spam <= 1 or not (found.fp_cost > 0 <= unsure_cost):
        raise ValueError("its cutoffs are none")
    return found


def _check_cost(option: str, cost: float) -> None:
    if not 0 < cost < float("inf"):
        raise UsageError(f"{option} {cost:g}: not a number above 0; a miss costs 1")


def default_rule(classes: Sequence[str], calibrated: bool) -> Rule:
    """Return the rule of a model: costs where it can tell, else the most probable class.

    calibrated: the model's probabilities are honest, so that costs mean something.
    """
    if calibrated and tuple(classes) == HAM_AND_SPAM:
        return cutoffs()
    return LossMatrix(tuple(classes), zero_one_loss(len(classes)))


def loss_matrix(values: Any, classes: Sequence[str]) -> LossMatrix:
    """Return the loss matrix that a decoded JSON document holds; raises UsageError.

    values: {"actions": [name, …], "loss": {class: [cost of each action, …], …}}.
    """
    if not (isinstance(values, dict) and set(values) == {"actions", "loss"}):
        raise UsageError('not an object of "actions" and "loss"')
    actions, loss = values["actions"], values["loss"]
    if not (
        isinstance(actions, list)
        and actions
        and all(isinstance(name, str) and name for name in actions)
        and len(set(actions)) == len(actions)
    ):
        raise UsageError('"actions" is not a list of different names')
    if not (isinstance(loss, dict) and set(loss) == set(classes)):
        raise UsageError(f'"loss" does not have exactly the classes {", ".join(classes)}')
    for name in classes:
        row = loss[name]
        if not (isinstance(row, list) and len(row) == len(actions) and all(map(_is_cost, row))):
            raise UsageError(f'"loss" of {name} is not a list of {len(actions)} numbers')
    return LossMatrix(tuple(actions), np.array([loss[name] for name in classes], np.float64))


def _is_cost(value: Any) -> bool:
    # Larger ones could overflow when they are added; no one means them.
    return type(value) in (int, float) and -1e100 <= value <= 1e100


def is_worth_learning(policy: str, probability: Floats, truth: int) -> bool:
    """Return whether a message is learned whose probabilities were these, (n_classes,).

    policy: one of POLICIES: every message; errors; errors and near misses.
    """
    if policy == "everything" or probability.argmax() != truth:
        return True
    return policy == "near" and bool(probability[truth] < _NEAR_MISS)


# --- Bayes' rule itself ------------------------------------------------------------------


def posterior_after(prior: ArrayLike, likelihoods: ArrayLike) -> Floats:
    """Return the posterior after independent observations, shape (n_classes,).

    prior: (n_classes,).  likelihoods: (n_observations, n_classes), of what was observed.

    A test for a drug that 0.5 % take is right 99 times of 100, on users and others alike.
    Who is positive once probably takes none; whoever is again and again, does:

    >>> positive = [0.99, 0.01]
    >>> [round(float(posterior_after([0.005, 0.995], [positive] * n)[0]), 6) for n in (1, 2, 3)]
    [0.332215, 0.9801, 0.999795]
    """
    weight = np.asarray(prior, np.float64)
    for likelihood in np.asarray(likelihoods, np.float64):
        weight = weight * likelihood
        weight = weight / weight.sum()
    return weight


def update_prior(probability: ArrayLike, old: ArrayLike, new: ArrayLike) -> Floats:
    """Return posteriors (n_docs, n_classes) under a new prior instead of the old.

    old, new: (n_classes,).  Saerens, Latinne & Decaestecker (2002), eq. 4: what is known of
    the documents stays, how common the classes are changes.

    >>> update_prior([[0.5, 0.5]], old=[0.5, 0.5], new=[0.9, 0.1])
    array([[0.9, 0.1]])
    """
    ratio = np.asarray(new, np.float64) / np.asarray(old, np.float64)
    weight = np.asarray(probability, np.float64) * ratio
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def prior_shift(old: ArrayLike, new: ArrayLike) -> Floats:
    """Return what joint log-probabilities gain under a new prior, (n_classes,), nats.

    The same as `update_prior`, where probabilities have long become 0 and 1.  A class that
    was never met gains nothing.
    """
    before, after = np.asarray(old, np.float64), np.asarray(new, np.float64)
    return np.asarray(np.log(np.divide(after, before, where=before > 0, out=before * 0 + 1)))


# --- how common the classes are, where that is not as it was in training --------------------

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
