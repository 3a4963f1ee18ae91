"""What all classifiers share: answers chunk by chunk, verdicts by a rule, explanations.

A classifier of mail, of dependent tokens or of table rows defines how its inputs are cut into
chunks, what its model says of one chunk, and how one answer is explained.  The rest is here.

Secret: answers are matched to inputs by position, never by name: two inputs may share a name.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from nbspam.arrays import Floats
from nbspam.decision import Rule, default_rule
from nbspam.errors import InputError
from nbspam.parallel import Workers, ordered_map
from nbspam.verdicts import Answer, Evidence, Explanation, Skipped, Verdict, posterior


class Judged(NamedTuple):
    """What a model says of one chunk of inputs."""

    joint: Floats  # (n_read, n_classes) log P(class, input), nats, of the readable inputs
    failures: Mapping[int, Skipped]  # the unreadable inputs, by position in the chunk
    notes: Mapping[int, str] = MappingProxyType({})  # what is odd about inputs, by position


# Evidence, the strongest first, and the constant: they add up to the log-odds of two classes.
Weighed = tuple[tuple[Evidence, ...], float]


@dataclass(frozen=True, slots=True)
class AnyClassifier(ABC):
    """A trained classifier.  Its inputs are `Item`s or, for tables, `Record`s."""

    # (n_classes,), nats: added to every joint log-probability when another prior is assumed
    shift: Floats | float = field(default=0.0, kw_only=True)

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What its inputs are called, in the plural: messages, texts or rows."""

    @property
    @abstractmethod
    def prior(self) -> Floats:
        """The shares of the classes that training estimated or was given, shape (n_classes,)."""

    @abstractmethod
    def chunks(self, inputs: Iterable[Any], jobs: Workers = 1) -> Iterator[list[Any]]:
        """Yield the inputs in chunks; a process works on one chunk at a time."""

    @abstractmethod
    def judge(self, inputs: Sequence[Any]) -> Judged:
        """Return what the model says of one chunk, without `shift`."""

    def judge_beside(self, others: Sequence[Self], inputs: Sequence[Any]) -> list[Judged]:
        """Return what this model and others that read alike say of one chunk, see `judge`."""
        return [each.judge(inputs) for each in (self, *others)]

    @abstractmethod
    def truth(self, given: Any) -> str | None:
        """Return the class that an input is labelled with, None if it has no label."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the plain values that a model file holds."""

    @abstractmethod
    def explain(self, given: Any, rule: Rule | None = None) -> Explanation:
        """Return why one input gets its verdict; raises InputError if it cannot be read."""

    @abstractmethod
    def reasons_for(self, given: Any, towards: int, against: int) -> Weighed:
        """Return what each part of an input adds to the log-odds of two classes; InputError."""

    @property
    def lack(self) -> str | None:
        """What the model needs before it can judge at all, in a sentence; None for most."""
        return None

    @property
    def rule(self) -> Rule:
        """The decision rule used when the caller gives none."""
        return default_rule(self.classes, calibrated=False)

    def shifted(self, shift: Floats) -> Self:
        """Return the classifier with this added to every joint log-probability.

        shift: (n_classes,), nats.
        """
        return replace(self, shift=self.shift + shift)

    def answers(self, inputs: Iterable[Any], jobs: Workers = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every input in order, or why it could not be read."""
        for results in ordered_map(self._answer_chunk, self.chunks(inputs, jobs), jobs):
            yield from results

    def answered(
        self, inputs: Iterable[Any], jobs: Workers = 1, others: Sequence[Self] = ()
    ) -> Iterator[tuple[Any, Answer | Skipped, Floats]]:
        """Yield every input in order, its answer or why it could not be read, and those of others.

        others: models that read inputs as this one does; each input is read once for all of them.
        What they say is log P(class, input), nats, (n_others, n_classes).
        """
        waiting: deque[Any] = deque()

        def held() -> Iterator[Any]:
            for given in inputs:
                waiting.append(given)
                yield given

        work = partial(self._answer_beside, others)
        for results in ordered_map(work, self.chunks(held(), jobs), jobs):
            for answer, joint in results:
                yield waiting.popleft(), answer, joint

    def classify(
        self, inputs: Iterable[Any], jobs: int = 1, rule: Rule | None = None
    ) -> Iterator[Verdict | Skipped]:
        """Yield a verdict for every input in order, or why it could not be read.

        rule: turns probabilities into labels; the classifier's own rule unless given.
        """
        work = partial(self._verdict_chunk, rule)
        for results in ordered_map(work, self.chunks(inputs), jobs):
            yield from results

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield the verdict on each answer, by this rule or the classifier's own."""
        if not answers:
            return
        joint = np.stack([answer.joint for answer in answers])
        probability = posterior(joint)
        labels = (rule or self.rule).labels(probability)
        for answer, label, row, score in zip(
            answers, labels, probability.tolist(), self.scores(joint), strict=True
        ):
            shares = dict(zip(self.classes, row, strict=True))
            yield Verdict(answer.name, label, shares, score, answer.note)

    def verdict(self, name: str, joint: Floats, rule: Rule | None = None) -> Verdict:
        """Return the verdict on one input; joint: (n_classes,), nats, with `shift`."""
        return next(self.verdicts([Answer(name, None, joint)], rule))

    def scores(self, joint: Floats) -> list[float | None]:
        """Return the log-odds, nats, to show beside each verdict; None where none are shown."""
        return [None] * len(joint)

    def explanations(
        self, inputs: Iterable[Any], rule: Rule | None = None
    ) -> Iterator[Explanation | Skipped]:
        """Yield an explanation of every input in order, or why it could not be read."""
        for given in inputs:
            try:
                explanation = self.explain(given, rule)
            except InputError as error:
                yield Skipped(given.name, str(error))
            else:
                yield explanation

    def _answer_chunk(self, inputs: Sequence[Any]) -> list[Answer | Skipped]:
        return self._answers_of(self.judge(inputs), inputs)

    def _answer_beside(
        self, others: Sequence[Self], inputs: Sequence[Any]
    ) -> list[tuple[Answer | Skipped, Floats]]:
        """Return the answers to one chunk, and what others say of it; this runs in a worker."""
        judged, *further = self.judge_beside(others, inputs)
        answers = self._answers_of(judged, inputs)
        joint = np.empty((len(inputs), len(others), len(self.classes)))
        is_read = [position not in judged.failures for position in range(len(inputs))]
        for number, (other, found) in enumerate(zip(others, further, strict=True)):
            joint[is_read, number] = found.joint + other.shift
        return list(zip(answers, joint, strict=True))

    def _answers_of(self, judged: Judged, inputs: Sequence[Any]) -> list[Answer | Skipped]:
        rows = iter(judged.joint + self.shift)
        return [
            judged.failures[position]
            if position in judged.failures
            else Answer(given.name, self.truth(given), next(rows), judged.notes.get(position))
            for position, given in enumerate(inputs)
        ]

    def _verdict_chunk(self, rule: Rule | None, inputs: Sequence[Any]) -> list[Verdict | Skipped]:
        answers = self._answer_chunk(inputs)
        verdicts = self.verdicts([a for a in answers if isinstance(a, Answer)], rule)
        return [next(verdicts) if isinstance(answer, Answer) else answer for answer in answers]


class HeldOut(NamedTuple):
    """The answers of a model to inputs that it has not learned, and why it gives them."""

    classifier: AnyClassifier
    joint: Floats  # (n_inputs, n_classes) log P(class, input), nats
    # Place among the inputs, class and other class -> evidence for the one against the other
    reasons: Callable[[int, int, int], Weighed]


def shares_by_chain(joint: Floats, towards: int, against: int) -> tuple[Floats, float]:
    """Return what each step of a chain adds to the log-odds of two classes, and their start.

    joint: (n + 1, n_classes), nats; each row is of an input that has one thing more than the
    row before.  By the chain rule, for any model, the shares (n,) and the start add up to the
    log-odds of the last row.  Where evidence is summed they do not depend on the order.
    """
    with np.errstate(invalid="ignore"):
        odds = joint[:, towards] - joint[:, against]
        # NaN occurs under maximum likelihood only: an input that is impossible in both
        # classes says nothing about the two.
        odds = np.where(np.isnan(odds), 0.0, odds)
        shares = np.diff(odds)
    return np.where(np.isnan(shares), 0.0, shares), float(odds[0])
