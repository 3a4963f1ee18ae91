"""A trial: held-out answers to documents whose classes are known.

Measures, comparisons, pictures and tuned cutoffs are all computed from a trial, however its
answers were obtained: by a split, by cross-validation or from a stream.

Secret: how a decision rule's actions become answers that can be compared with the truth.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.decision import Rule, conditional_risk, prior_shift
from nbspam.evaluation.evaluation import Evaluation, evaluate
from nbspam.verdicts import Skipped, posterior


class Smaller(NamedTuple):
    """Answers to the same documents by models that had learned from fewer documents."""

    n_learned: int  # documents that each model had learned from
    joint: Floats  # (n_docs, n_classes) log P(class, document), nats


class Mistake(NamedTuple):
    """One document that was given a wrong class."""

    answer: str
    truth: str
    probability: float  # of the answer
    name: str

    def row(self) -> tuple[str, ...]:
        """Return the fields as `nbspam classify` prints them, with the true class second."""
        return self.answer, self.truth, f"{self.probability:.6f}", self.name


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The true classes of documents, and a model's answers, in the order of the documents."""

    classes: tuple[str, ...]
    y: Integers  # (n_docs,) index into classes
    joint: Floats  # (n_docs, n_classes) log P(class, document), nats
    rule: Rule  # turns probabilities into decisions
    fold: Integers  # (n_docs,) the fold, or the stretch of a stream, that a document belongs to
    prior: Floats  # (n_classes,) the shares of the classes that the answers assume
    names: tuple[str, ...] = ()  # (n_docs,)
    noun: str = "messages"  # what the documents are called, in the plural
    is_stream: bool = False  # each document was answered before it was learned, in this order
    order: str | None = None  # of a stream, one of `sources.order.ORDERS`
    has_costs: bool = False  # the rule's costs were stated
    n_learned: int = 0  # documents that each model had learned from; 0: not known
    smaller: tuple[Smaller, ...] = ()  # for a learning curve
    skipped: tuple[Skipped, ...] = ()  # inputs left out: unreadable, or without a known label

    @property
    def probability(self) -> Floats:
        """P(class given document), shape (n_docs, n_classes)."""
        return posterior(self.joint)

    @property
    def score(self) -> Floats | None:
        """The log-odds of class 1, nats, (n_docs,); None unless there are two classes.

        Unlike probabilities, which round to 0 and 1, they rank all documents.
        """
        return self.joint[:, 1] - self.joint[:, 0] if len(self.classes) == 2 else None

    @property
    def actions(self) -> Integers:
        """The rule's decision on each document: index into the rule's actions, (n_docs,)."""
        index = {name: k for k, name in enumerate(self.rule.actions)}
        return np.array([index[name] for name in self.rule.labels(self.probability)], np.int64)

    @property
    def cost(self) -> Floats:
        """The cost of each decision, by the rule's loss, shape (n_docs,)."""
        return np.asarray(self.rule.loss[self.y, self.actions])

    @property
    def risk(self) -> Floats:
        """The least expected cost of any action, by the probabilities, shape (n_docs,)."""
        return np.asarray(conditional_risk(self.probability, self.rule.loss).min(axis=1))

    def answers(self) -> tuple[Integers, tuple[str, ...]]:
        """Return each document's answer (n_docs,), and the names of all answers.

        Answers are numbered like the classes, followed by actions that are no class.  If the
        rule has no action for some class, its actions do not name classes: then a document's
        answer is its most probable class.
        """
        actions = self.rule.actions
        if not set(self.classes) <= set(actions):
            return self.probability.argmax(axis=1), self.classes
        names = (*self.classes, *(name for name in actions if name not in self.classes))
        return np.array([names.index(name) for name in actions])[self.actions], names

    def wrong_rows(self) -> Integers:
        """Return the rows of the wrong answers, the most probable first.

        Among answers that are as probable to the last bit, those first whose true class is the
        least likely.  An answer that is no class, such as unsure, is no mistake.
        """
        answers, _ = self.answers()
        rows = np.flatnonzero((answers != self.y) & (answers < len(self.classes)))
        wrong, right = answers[rows], self.y[rows]
        probability = self.probability[rows, wrong]
        lead = self.joint[rows, wrong] - self.joint[rows, right]
        return rows[np.lexsort((-lead, -probability))]

    def mistakes(self) -> list[Mistake]:
        """Return the wrong answers in the order of `wrong_rows`."""
        answers, names = self.answers()
        probability = self.probability
        return [
            Mistake(
                names[answers[row]],
                self.classes[self.y[row]],
                float(probability[row, answers[row]]),
                self.names[row],
            )
            for row in self.wrong_rows().tolist()
        ]


def under_prior(trial: Trial, new: Floats) -> Trial:
    """Return the trial as if the classes were known to have these shares, (n_classes,)."""
    shift = prior_shift(trial.prior, new)
    smaller = tuple(Smaller(n, joint + shift) for n, joint in trial.smaller)
    return replace(trial, joint=trial.joint + shift, prior=new, smaller=smaller)


def evaluation_of(trial: Trial, rng: np.random.Generator | None = None) -> Evaluation:
    """Return all measures of a trial, with bootstrap intervals if rng is given."""
    answers, names = trial.answers()
    return evaluate(
        trial.y,
        answers,
        trial.classes,
        other_answers=names[len(trial.classes) :],
        score=trial.score,
        probability=trial.probability,
        cost=trial.cost,
        risk=trial.risk if trial.has_costs else None,
        rng=rng,
    )
