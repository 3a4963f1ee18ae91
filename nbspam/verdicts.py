"""Answers and verdicts: what a model of any kind makes of an item, and what is decided of it.

Secret: how joint log-probabilities become probabilities.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.printing import printable

_BRIEF_WIDTH = 200  # characters: short enough for a header of the message


class Answer(NamedTuple):
    """What the model makes of one item: joint log-probabilities, nats, by class."""

    name: str
    truth: str | None  # the item's own label, if it has one
    joint: Floats  # (n_classes,)


class Verdict(NamedTuple):
    """What the classifier says of one item."""

    name: str
    label: str  # what the rule decides: a class, or another action such as unsure
    posterior: dict[str, float]  # 0 to 1, of every class
    score: float | None = None  # log-odds of the last class, nats, where evidence is combined

    @property
    def probability(self) -> float:
        """How probable the label is; where it is no class, how probable the last one is."""
        return self.posterior.get(self.label, list(self.posterior.values())[-1])


class Skipped(NamedTuple):
    """An item that was passed over, and why."""

    name: str
    reason: str


class Evidence(NamedTuple):
    """A token and what it adds."""

    token: str
    contribution: float  # nats, to the score
    group: str  # one of `tokens.GROUPS`
    counts: tuple[float, ...]  # by class, in training


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict and all that makes its score: that is constant + the contributions."""

    verdict: Verdict
    towards: str  # the class for which a positive score speaks
    against: str  # and the one it is compared with
    score: float  # log-odds of the two classes, nats
    constant: float  # what is said of every message, nats
    evidence: tuple[Evidence, ...]  # of all known tokens, strongest first

    def strongest(self, number: int) -> list[Evidence]:
        """Return the first tokens that say anything."""
        return [row for row in self.evidence[:number] if row.contribution]

    def brief(self, number: int) -> str:
        """Return label, probability and as many strong tokens as one short line holds."""
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
    """Return text of at most so many characters, its end left out if need be."""
    return text if len(text) <= width else text[: width - 1] + "…"


def joint_of_log_odds(score: Floats) -> Floats:
    """Return log P(class given document), shape (n_docs, 2), whose difference is the score."""
    return np.stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)], axis=1)


def posterior(joint: Floats) -> Floats:
    """Return P(class given document) from joint log-probabilities, row by row."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
