"""Decision theory: from probabilities and the costs of mistakes to labels.

Bayes' decision rule takes the action of least expected loss.  For ham and spam the rule is
two cutoffs on the probability of spam; otherwise it is a loss matrix.  The class priors, which
the probabilities depend on, can be replaced by stated or estimated ones.  Models know nothing
of costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.errors import UsageError, check_number

UNSURE = "unsure"
HAM_AND_SPAM = ("ham", "spam")
# The cost of calling ham spam, where missing a spam costs 1: spam needs a probability of 2/3.
# Against cost 1, on ten folds of SpamAssassin's public mail: 7 false positives instead of 10,
# and 13 misses instead of 10.
FP_COST = 2.0

POLICIES = ("everything", "error", "near")
_NEAR_MISS = 0.99  # probability of the truth below which policy near learns a message


class Cutoffs(NamedTuple):
    """The rule for ham and spam, and the costs from which it follows; a miss costs 1."""

    spam: float  # spam from this probability of spam on, 0 to 1
    ham: float  # ham up to this probability of spam, at most `spam`; between them unsure
    fp_cost: float = FP_COST  # of ham called spam
    unsure_cost: float | None = None  # of the answer unsure; None: unsure is no answer

    @property
    def actions(self) -> tuple[str, ...]:
        """The labels that the rule can give."""
        return HAM_AND_SPAM if self.unsure_cost is None else (*HAM_AND_SPAM, UNSURE)

    @property
    def in_words(self) -> str:
        """The probabilities as text, with as many digits as verdicts have."""
        ham = "" if self.unsure_cost is None else f", ham up to {self.ham:.6f}"
        return f"spam from {self.spam:.6f}{ham}"

    @property
    def loss(self) -> Floats:
        """The cost of each action for each true class, shape (2, n_actions)."""
        unsure = [] if self.unsure_cost is None else [self.unsure_cost]
        return np.array([[0.0, self.fp_cost, *unsure], [1.0, 0.0, *unsure]])

    def labels(self, probability: Floats) -> list[str]:
        """Return the label of every row of probabilities of ham and spam, (n_docs, 2)."""
        spam = probability[:, 1]
        label = np.where(spam >= self.spam, "spam", np.where(spam <= self.ham, "ham", UNSURE))
        names: list[str] = label.tolist()
        return names


class LossMatrix(NamedTuple):
    """The rule for any classes and actions: the action of least expected loss."""

    actions: tuple[str, ...]
    loss: Floats  # (n_classes, n_actions) cost of each action for each true class

    def labels(self, probability: Floats) -> list[str]:
        """Return the label of every row of probabilities (n_docs, n_classes)."""
        return [self.actions[action] for action in bayes_actions(probability, self.loss).tolist()]


Rule = Cutoffs | LossMatrix
# The rule of a model that knows one class only: it may name a class, but unsure is always cheaper.
UNDECIDED = LossMatrix((*HAM_AND_SPAM, UNSURE), np.array([[2.0, 2.0, 1.0], [2.0, 2.0, 1.0]]))


def conditional_risk(probability: ArrayLike, loss: ArrayLike) -> Floats:
    """Return the expected loss of every action, shape (n_docs, n_actions): Zhou's eq. 7.1.

    probability: (n_docs, n_classes).  loss: (n_classes, n_actions).  Raises UsageError.
    """
    posterior, costs = np.asarray(probability, np.float64), np.asarray(loss, np.float64)
    if posterior.shape[-1:] != costs.shape[:1]:
        shapes = f"{costs.shape} with probabilities {posterior.shape}"
        raise UsageError(f"loss: shape {shapes}; give a row for each class")
    return posterior @ costs


def risks(posterior: Mapping[str, float], rule: Rule) -> dict[str, float]:
    """Return the conditional risk of each action for one document, by the rule's costs.

    R(action given x) = sum over classes of cost(class, action) P(class given x).  posterior:
    by class, in the order of the rule's loss.
    """
    risk = conditional_risk([list(posterior.values())], rule.loss)[0]
    return dict(zip(rule.actions, risk.tolist(), strict=True))


def bayes_actions(probability: ArrayLike, loss: ArrayLike) -> Integers:
    """Return the action of least expected loss, shape (n_docs,); on a tie the first.

    Bayes decision rule, Zhou Zhihua's eq. 7.3.  Under 0/1 loss it is the likeliest class, eq. 7.6:
    notes that print it as the class of the greatest risk mean the least.  Losses are equal to nine
    digits: products of the same factors in another order differ in their last ones.

    >>> bayes_actions([[0.4, 0.6], [0.3, 0.7]], [[0, 2], [1, 0]])
    array([0, 1])
    """
    risk = conditional_risk(probability, loss)
    least = risk.min(axis=1, keepdims=True)
    return np.asarray((risk <= least + 1e-9 * np.abs(least)).argmax(axis=1))


def two_likeliest(joint: Floats) -> tuple[int, int]:
    """Return the likeliest class and the next; of equal ones the first, as in `bayes_actions`.

    joint: (n_classes,) log P(class, document), nats.
    """
    first, second = np.argsort(-joint.round(9), kind="stable")[:2].tolist()
    return first, second


def zero_one_loss(n_classes: int) -> Floats:
    """Return the loss (n_classes, n_classes) that counts mistakes: Zhou's eq. 7.4."""
    return 1.0 - np.eye(n_classes)


def cutoffs(fp_cost: float = FP_COST, unsure_cost: float | None = None) -> Cutoffs:
    """Return the cutoffs that follow from costs, where a miss costs 1; raises UsageError.

    fp_cost: of ham called spam.  unsure_cost: of the answer unsure; None: unsure is no answer.

    >>> cutoffs(9)
    Cutoffs(spam=0.9, ham=0.9, fp_cost=9, unsure_cost=None)
    >>> cutoffs(10, unsure_cost=0.1)
    Cutoffs(spam=0.99, ham=0.1, fp_cost=10, unsure_cost=0.1)
    """
    check_number("--fp-cost", fp_cost, 0, above=True)
    even = fp_cost / (fp_cost + 1)
    if unsure_cost is None:
        return Cutoffs(even, even, fp_cost)
    check_number("--unsure-cost", unsure_cost, 0, above=True)
    if unsure_cost >= even:
        raise UsageError(
            f"--unsure-cost {unsure_cost:g}: too high, any answer would be cheaper;"
            f" with --fp-cost {fp_cost:g} give less than {even:.3g}"
        )
    return Cutoffs(1 - unsure_cost / fp_cost, unsure_cost, fp_cost, unsure_cost)


# One object for all users' mail, so that their verdicts are found in one batch.
_USUAL_CUTOFFS = cutoffs()


def default_rule(classes: tuple[str, ...], calibrated: bool) -> Rule:
    """Return the default rule: cutoffs by cost for ham and spam, else the likeliest class.

    calibrated: the model's probabilities are calibrated, so that costs can be applied.
    """
    if calibrated and classes == HAM_AND_SPAM:
        return _USUAL_CUTOFFS
    return LossMatrix(classes, zero_one_loss(len(classes)))


def loss_matrix(values: Any, classes: Sequence[str]) -> LossMatrix:
    """Return the loss matrix in a decoded JSON document; raises UsageError.

    values: {"actions": [name, …], "loss": {class: [cost of each action, …], …}}.
    """
    if not (isinstance(values, dict) and set(values) == {"actions", "loss"}):
        raise UsageError('not an object with "actions" and "loss"')
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
    # Larger numbers could overflow when they are added.
    return type(value) in (int, float) and -1e100 <= value <= 1e100


def is_worth_learning(policy: str, is_right: bool, probability: float) -> bool:
    """Return whether a policy learns a message.

    policy: one of POLICIES: every message; errors; errors and near misses.  is_right: whether
    the verdict on it is its class.  probability: of that class.
    """
    if policy == "everything" or not is_right:
        return True
    return policy == "near" and probability < _NEAR_MISS


# --- class priors that differ from those of training ---------------------------------------

_MAX_STEPS = 1000
_CHANGE = 1e-8  # of a prior: a smaller step ends the estimation
_LEAST = 1e-9  # the least prior of a class


def prior_shift(old: ArrayLike, new: ArrayLike) -> Floats:
    """Return the shift of joint log-probabilities for a new prior, (n_classes,), nats.

    Saerens, Latinne & Decaestecker (2002), eq. 2.4, in logarithms, which are exact where
    probabilities have been rounded to 0 and 1.  Nothing (0) is added for a class whose old prior
    is 0.
    """
    before, after = np.asarray(old, np.float64), np.asarray(new, np.float64)
    return np.asarray(np.log(np.divide(after, before, where=before > 0, out=before * 0 + 1)))


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each class, shape (n_classes,) each."""

    assumed: Floats  # the model's prior
    observed: Floats  # in the evaluated documents
    estimated: Floats  # in the same documents, without using their labels


def stated_prior(stated: Mapping[str, float], classes: tuple[str, ...], old: Floats) -> Floats:
    """Return the priors of all classes, shape (n_classes,), if some are stated.

    The other classes share the rest, in proportion to their old priors.  Raises UsageError.

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
    is_whole = left > 1e-9 if others.any() else abs(left) < 1e-9
    if min(stated.values()) <= 0 or not is_whole or not old.all():
        raise UsageError(
            "--prior: not shares between 0 and 1, of classes the model has seen, that sum to 1"
            " or leave a rest for the other classes; write, for example, --prior spam=0.8"
        )
    new = np.array([stated.get(name, 0.0) for name in classes])
    new[others] = left * old[others] / old[others].sum() if others.any() else 0.0
    return new


def estimate_prior(probability: Floats, old: Floats) -> Floats:
    """Return the class priors that make unlabelled documents likeliest, (n_classes,).

    probability: (n_docs, n_classes) under the old priors.  EM of Saerens, Latinne &
    Decaestecker (2002), eqs. 2.8 and 2.9.  Without documents these are the old priors.
    """
    if not len(probability):
        return old
    new = np.maximum(old, _LEAST)
    ratio = probability / new
    for _ in range(_MAX_STEPS):
        before = new
        # The mean of the posteriors, without an array of them in every step.
        new = np.maximum(before * ((1 / (ratio @ before)) @ ratio) / len(ratio), _LEAST)
        if np.abs(new - before).max() < _CHANGE:
            break
    return np.asarray(new / new.sum())


def shares_of(probability: Floats, y: Integers, assumed: Floats) -> Shares:
    """Return the shares of the classes in evaluated documents.

    probability: (n_docs, n_classes).  y: (n_docs,) true class.  assumed: (n_classes,).
    """
    observed = np.bincount(y, minlength=len(assumed)) / max(len(y), 1)
    return Shares(assumed, observed, estimate_prior(probability, assumed))
