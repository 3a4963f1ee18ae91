"""Results: answers, verdicts, explanations and skipped items, for classifiers of every kind."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.printing import printable

_BRIEF_WIDTH = 200  # characters; short enough for a mail header


class Answer(NamedTuple):
    """The joint log-probabilities of one item."""

    name: str
    truth: str | None  # the item's own label, if it has one
    joint: Floats  # (n_classes,) log P(class, item), nats
    note: str | None = None  # what is odd about the item, if it looks like no mail or text


class Verdict(NamedTuple):
    """The label of one item, and the probabilities behind it."""

    name: str
    label: str  # decided by the rule: a class, or another action such as unsure
    posterior: dict[str, float]  # P(class given item) of every class, 0 to 1
    score: float | None = None  # log-odds of the last class, nats; only of combined evidence
    note: str | None = None  # what is odd about the item, if it looks like no mail or text

    @property
    def probability(self) -> float:
        """The probability of the label; if the label is not a class, of the last class."""
        return self.posterior.get(self.label, list(self.posterior.values())[-1])


class Skipped(NamedTuple):
    """An item that was skipped, and why."""

    name: str
    reason: str


class Evidence(NamedTuple):
    """A token and what it adds to the score."""

    token: str
    contribution: float  # nats
    group: str  # one of `nbspam.tokens.definition.GROUPS`
    counts: tuple[float, ...]  # in training, by class


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict and its reasons: the score is the constant plus all contributions."""

    verdict: Verdict
    towards: str  # a positive score is evidence for this class ...
    against: str  # ... and against this one
    score: float  # log-odds of the two classes, nats
    constant: float  # the part of the score that is the same for every message, nats
    evidence: tuple[Evidence, ...]  # all known tokens, strongest first

    def strongest(self, number: int) -> list[Evidence]:
        """Return those of the first `number` tokens that contribute anything."""
        return [row for row in self.evidence[:number] if row.contribution]

    def brief(self, number: int) -> str:
        """Return one short line: label, probability and the strongest tokens that fit.

        number: of tokens at most.
        """
        verdict = self.verdict
        line = cut(f"{printable(verdict.label)} {verdict.probability:.4f}", _BRIEF_WIDTH)
        between = ": "
        for row in self.strongest(number):
            more = f"{between}{printable(row.token)} {row.contribution:+.1f}"
            if len(line) + len(more) > _BRIEF_WIDTH:
                break
            line += more
            between = ", "
        return line


def cut(text: str, width: int) -> str:
    """Return text shortened to at most `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def joint_of_log_odds(score: Floats) -> Floats:
    """Return log P(class given document), shape (n_docs, 2), nats, from log-odds.

    score: (n_docs,) log-odds of the second class.
    """
    return np.stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)], axis=1)


def posterior(joint: Floats) -> Floats:
    """Return P(class given document) from joint log-probabilities, both (n_docs, n_classes)."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
