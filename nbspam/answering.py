"""What classifiers of all kinds do alike: answers chunk by chunk, verdicts by a rule.

A classifier of mail, of dependent tokens or of a table's rows says only how its inputs are
cut into chunks and what it makes of one chunk; the rest is here.

Secret: answers go by an input's place in its chunk, never by its name.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from nbspam.arrays import Floats
from nbspam.decision import Rule, default_rule
from nbspam.parallel import ordered_map
from nbspam.verdicts import Answer, Explanation, Skipped, Verdict, posterior


class Judged(NamedTuple):
    """What a classifier makes of one chunk of inputs."""

    joint: Floats  # (n_read, n_classes) log P(class, input), nats, of those that could be read
    failures: Mapping[int, Skipped]  # the others, by their place in the chunk


class AnyClassifier(ABC):
    """A trained classifier, whatever its inputs are: `Item`s or the `Record`s of a table."""

    __slots__ = ()

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""

    @property
    @abstractmethod
    def prior(self) -> Floats:
        """The shares of the classes that training found or was told, shape (n_classes,)."""

    @abstractmethod
    def shifted(self, shift: Floats) -> Self:
        """Return the classifier that adds this to every joint log-probability.

        shift: (n_classes,), nats.
        """

    @abstractmethod
    def chunks(self, inputs: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield the inputs cut into what one process works on at a time."""

    @abstractmethod
    def judge(self, inputs: Sequence[Any]) -> Judged:
        """Return what the model makes of one chunk of inputs."""

    @abstractmethod
    def truth(self, given: Any) -> str | None:
        """Return the class that an input itself states, if it does."""

    @abstractmethod
    def explanations(
        self, inputs: Iterable[Any], rule: Rule | None = None
    ) -> Iterator[Explanation | Skipped]:
        """Yield an explanation of every input in order, or why it could not be read."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the plain values that a model file holds."""

    @property
    def rule(self) -> Rule:
        """How probabilities become labels, unless told otherwise."""
        return default_rule(self.classes, calibrated=False)

    def answers(self, inputs: Iterable[Any], jobs: int = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every input in order, or why it could not be read."""
        for results in ordered_map(self._answer_chunk, self.chunks(inputs), jobs):
            yield from results

    def classify(
        self, inputs: Iterable[Any], jobs: int = 1, rule: Rule | None = None
    ) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every input in order, or why it could not be read.

        rule: how probabilities become labels; the model's own unless given.
        """
        work = partial(self._verdict_chunk, rule)
        for results in ordered_map(work, self.chunks(inputs), jobs):
            yield from results

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield what the rule (or the model's own) decides of each answer."""
        if not answers:
            return
        joint = np.stack([answer.joint for answer in answers])
        probability = posterior(joint)
        labels = (rule or self.rule).labels(probability)
        for answer, label, row, score in zip(
            answers, labels, probability.tolist(), self.scores(joint), strict=True
        ):
            yield Verdict(answer.name, label, dict(zip(self.classes, row, strict=True)), score)

    def scores(self, joint: Floats) -> list[float | None]:
        """Return the log-odds to show beside each verdict, nats; None where there are none."""
        return [None] * len(joint)

    def _answer_chunk(self, inputs: Sequence[Any]) -> list[Answer | Skipped]:
        joint, failures = self.judge(inputs)
        rows = iter(joint)
        return [
            failures[place]
            if place in failures
            else Answer(given.name, self.truth(given), next(rows))
            for place, given in enumerate(inputs)
        ]

    def _verdict_chunk(self, rule: Rule | None, inputs: Sequence[Any]) -> list[Verdict | Skipped]:
        answers = self._answer_chunk(inputs)
        verdicts = self.verdicts([a for a in answers if isinstance(a, Answer)], rule)
        return [next(verdicts) if isinstance(answer, Answer) else answer for answer in answers]
