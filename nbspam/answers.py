"""Answers and verdicts: what a model of any kind makes of an item, and what is decided of it.

Secret: how joint log-probabilities become probabilities.
"""

from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats


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


def joint_of_log_odds(score: Floats) -> Floats:
    """Return log P(class given document), shape (n_docs, 2), whose difference is the score."""
    return np.stack([-np.logaddexp(0, score), -np.logaddexp(0, -score)], axis=1)


def posterior(joint: Floats) -> Floats:
    """Return P(class given document) from joint log-probabilities, row by row."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
