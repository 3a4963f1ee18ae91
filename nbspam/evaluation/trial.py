"""A trial: answers to documents whose class is known, by models that did not know it.

Whatever is asked of a model's quality (numbers, comparisons, pictures, cutoffs) is
computed from these answers, whichever way they were come by.

Secret: how a decision rule's answers become labels that can be compared with the truth.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.decision import Rule, prior_shift
from nbspam.evaluation.evaluation import Evaluation, evaluate
from nbspam.verdicts import Skipped, posterior


class Smaller(NamedTuple):
    """Answers of models that had learned from few documents."""

    n_learned: int
    joint: Floats  # (n_docs, n_classes)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Documents' classes and the answers to them, in the order of the documents."""

    classes: tuple[str, ...]
    y: Integers  # (n_docs,) index into classes
    joint: Floats  # (n_docs, n_classes) log P(class, document), nats
    rule: Rule  # how they are decided
    fold: Integers  # (n_docs,) what is compared as one piece: a fold, a stretch of a stream
    prior: Floats  # (n_classes,) the shares of the classes that the answers assume
    is_stream: bool = False  # each answered before it was learned, in this order
    smaller: tuple[Smaller, ...] = ()  # the same by models that had learned less
    skipped: tuple[Skipped, ...] = ()  # what could not be read for it

    @property
    def probability(self) -> Floats:
        """P(class given document), shape (n_docs, n_classes)."""
        return posterior(self.joint)

    @property
    def score(self) -> Floats | None:
        """The log-odds of class 1 of two, nats: they rank where probabilities are 0 or 1."""
        return self.joint[:, 1] - self.joint[:, 0] if len(self.classes) == 2 else None

    @property
    def actions(self) -> Integers:
        """What the rule decides of each document: index into its actions, (n_docs,)."""
        index = {name: k for k, name in enumerate(self.rule.actions)}
        return np.array([index[name] for name in self.rule.labels(self.probability)], np.int64)

    @property
    def cost(self) -> Floats:
        """What each decision cost, by the rule's own losses, shape (n_docs,)."""
        return np.asarray(self.rule.loss[self.y, self.actions])

    def answers(self) -> tuple[Integers, tuple[str, ...]]:
        """Return each document's answer, numbered classes first, and the answers' names.

        A rule whose actions leave out a class decides something else than the class: then
        the answer is the most probable one.
        """
        actions = self.rule.actions
        if not set(self.classes) <= set(actions):
            return self.probability.argmax(axis=1), self.classes
        names = (*self.classes, *(name for name in actions if name not in self.classes))
        return np.array([names.index(name) for name in actions])[self.actions], names


def under_prior(trial: Trial, new: Floats) -> Trial:
    """Return the trial as it would be, were the classes known to have these shares."""
    shift = prior_shift(trial.prior, new)
    smaller = tuple(Smaller(n, joint + shift) for n, joint in trial.smaller)
    return replace(trial, joint=trial.joint + shift, prior=new, smaller=smaller)


def evaluation_of(trial: Trial, rng: np.random.Generator | None = None) -> Evaluation:
    """Return every number of a trial; with rng, with bootstrap intervals."""
    answers, names = trial.answers()
    return evaluate(
        trial.y,
        answers,
        trial.classes,
        other_answers=names[len(trial.classes) :],
        score=trial.score,
        probability=trial.probability,
        cost=trial.cost,
        rng=rng,
    )
