"""Deciding: from probabilities and what mistakes cost to the label that is given.

Bayes' decision rule: of all actions take the one whose expected loss is least.  For ham and
spam the rule is two cutoffs on the probability of spam; for anything else, a loss matrix.

Secret: how costs become labels; no model knows of costs, and no cost of models.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.errors import UsageError

UNSURE = "unsure"
HAM_AND_SPAM = ("ham", "spam")
# What calling ham spam costs where a miss costs 1; spam is what has probability 2/3.  Ten
# folds of SpamAssassin's public mail: 7 false positives for 10, and 13 misses for 10.
FP_COST = 2.0


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
