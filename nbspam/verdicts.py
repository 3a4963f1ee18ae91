"""Results, and the base of the classifiers that give them.

A classifier of mail, of dependent tokens or of table rows defines how its inputs are cut into
chunks, how its model answers one chunk, and how one answer is explained.  `AnyClassifier` makes
answers, verdicts and explanations from these.  Answers are matched to inputs by position, never by
name: two inputs may share a name.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from nbspam.arrays import Floats
from nbspam.decision import Rule, default_rule, estimate_prior, prior_shift, two_likeliest
from nbspam.errors import InputError
from nbspam.printing import clipped, printable
from nbspam.workers import Workers, ordered_map

_BRIEF_WIDTH = 200  # characters; short enough for a mail header


# --- results --------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The joint log-probabilities of one item."""

    name: str
    truth: str | None  # the item's own label, if it has one
    joint: Floats  # (n_classes,) log P(class, item), nats
    note: str | None = None  # the reason why the item looks like no mail or text


class Verdict(NamedTuple):
    """The label of one item, and the probabilities behind it.

    label: decided by the rule: a class, or another action such as unsure.  posterior: P(class
    given item) of every class, 0 to 1.  score: log-odds of the last class, nats; only of combined
    evidence.  note: the reason why the item looks like no mail or text.
    """

    name: str
    label: str
    posterior: dict[str, float]
    score: float | None = None
    note: str | None = None

    @property
    def probability(self) -> float:
        """The probability of the label; if the label is not a class, of the last class."""
        return self.posterior.get(self.label, list(self.posterior.values())[-1])


NO_LABEL = "no label"  # the reason of an item without a class, where classes are needed


class Skipped(NamedTuple):
    """An item that was skipped, and why."""

    name: str
    reason: str

    @property
    def why(self) -> str:
        """The reason, without the item's name at its beginning."""
        return self.reason.removeprefix(f"{self.name}: ")


class Evidence(NamedTuple):
    """A token and its share of the score."""

    token: str
    contribution: float  # nats
    group: str  # of a token: one of `tokens.definition.GROUPS`; of a column: category or number
    counts: tuple[float, ...]  # in training, by class; empty for text that is no token


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A verdict and its reasons: the score is the constant plus all contributions.

    score: log-odds of the class `towards` and the class `against`, nats.  constant: the part of
    it that is the same for every message.  evidence: the strongest first; runs of characters are
    summed by words.  tokens: all known tokens; None: they are the evidence.  kept: factor, at
    most 1, of all this but signs, because the input is unlike what is known.  by_beginning:
    whether it is judged by its beginning, which alone scores more.
    """

    verdict: Verdict
    towards: str
    against: str
    score: float
    constant: float
    evidence: tuple[Evidence, ...]
    tokens: tuple[Evidence, ...] | None = None
    kept: float = 1.0
    by_beginning: bool = False

    def __repr__(self) -> str:
        return f"<Explanation of {self.brief(10)}>"

    def strongest(self, number: int) -> list[Evidence]:
        """Return the first `number` tokens, without tokens that contribute nothing."""
        return [row for row in self.evidence[:number] if row.contribution]

    def brief(self, number: int) -> str:
        """Return one short line: label, probability and the strongest tokens that fit.

        number: of tokens at most.
        """
        verdict = self.verdict
        line = clipped(f"{printable(verdict.label)} {verdict.probability:.4f}", _BRIEF_WIDTH)
        between = ": "
        for row in self.strongest(number):
            more = f"{between}{printable(row.token)} {row.contribution:+.1f}"
            if len(line) + len(more) > _BRIEF_WIDTH:
                break
            line += more
            between = ", "
        return line


def joint_of_log_odds(score: Floats) -> Floats:
    """Return log P(class given document), shape (n_docs, 2), nats, from log-odds.

    score: (n_docs,) log-odds of the second class.
    """
    return np.asarray(-np.logaddexp(0, np.multiply.outer(score, (1, -1))))


def posterior(joint: Floats) -> Floats:
    """Return P(class given document) from joint log-probabilities, both (n_docs, n_classes)."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


# --- classifiers ----------------------------------------------------------------------------


class JudgedChunk(NamedTuple):
    """A model's answers to one chunk of inputs."""

    joint: Floats  # (n_read, n_classes) log P(class, input), nats, of the readable inputs
    failures: Mapping[int, Skipped]  # the unreadable inputs, by position in the chunk
    notes: Mapping[int, str] = MappingProxyType({})  # odd things about inputs, by position


# Evidence, the strongest first, and the constant: they add up to the log-odds of two classes.
LogOddsParts = tuple[tuple[Evidence, ...], float]


class VerdictLists(Protocol):
    """Lists that decide some inputs; see `mail.addresses`."""

    def verdict(self, item: Any, verdict: Verdict, rule: Rule) -> Verdict:
        """Return the verdict on an input by model and lists."""

    def explanation(self, item: Any, found: Explanation, rule: Rule) -> Explanation:
        """Return the explanation of an input by model and lists."""


@dataclass(frozen=True, slots=True)
class AnyClassifier(ABC):
    """A trained classifier.  Its inputs are `Item`s or, for tables, `Record`s."""

    # (n_classes,), nats: added to every joint log-probability when another prior is assumed
    shift: Floats | float = field(default=0.0, kw_only=True)
    lists: VerdictLists | None = field(default=None, kw_only=True, compare=False)

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The class names, sorted."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """The word for its inputs, in the plural: messages, texts or rows."""

    @property
    @abstractmethod
    def prior(self) -> Floats:
        """The shares of the classes that training estimated or was given, shape (n_classes,)."""

    @abstractmethod
    def chunks(self, inputs: Iterable[Any], jobs: Workers = 1) -> Iterator[list[Any]]:
        """Yield the inputs in chunks; a process works on one chunk at a time."""

    @abstractmethod
    def judge(self, inputs: Sequence[Any]) -> JudgedChunk:
        """Return the model's answers to one chunk, without `shift`."""

    def judge_beside(self, others: Sequence[Self], inputs: Sequence[Any]) -> list[JudgedChunk]:
        """Return the answers of this model and of others that read alike, see `judge`."""
        return [each.judge(inputs) for each in (self, *others)]

    def truth(self, given: Any) -> str | None:
        """Return the class that an input is labelled with, None if it has no label."""
        label: str | None = given.label
        return label

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the plain values that a model file holds."""

    @abstractmethod
    def explain(self, given: Any, rule: Rule | None = None) -> Explanation:
        """Return why one input gets its verdict; raises InputError if it cannot be read."""

    @abstractmethod
    def reasons_for(self, given: Any, towards: int, against: int) -> LogOddsParts:
        """Return each part's share in the log-odds of two classes; raises InputError."""

    @abstractmethod
    def reasons(self, document: Any, towards: int, against: int) -> LogOddsParts:
        """Return the same of an input as the model takes it."""

    @property
    def lack(self) -> str | None:
        """A sentence on the data that the model lacks for judging; None for most models."""
        return None

    @property
    def rule(self) -> Rule:
        """The decision rule used when the caller gives none."""
        return default_rule(self.classes, calibrated=False)

    def answers(self, inputs: Iterable[Any], jobs: Workers = 1) -> Iterator[Answer | Skipped]:
        """Yield an answer for every input in order, or why it could not be read."""
        return (answer for _, answer, _ in self.answered(inputs, jobs))

    def answered(
        self, inputs: Iterable[Any], jobs: Workers = 1, others: Sequence[Self] = ()
    ) -> Iterator[tuple[Any, Answer | Skipped, Floats]]:
        """Yield every input in order, its answer or read error, and the answers of others.

        others: models that read inputs as this one does; each input is read once for all of them.
        Their answers are log P(class, input), nats, (n_others, n_classes).
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
        for results in ordered_map(work, self.chunks(inputs, jobs), jobs):
            yield from results

    def verdicts(self, answers: Sequence[Answer], rule: Rule | None = None) -> Iterator[Verdict]:
        """Yield the verdict on each answer, by this rule or the classifier's own."""
        if not answers:
            return
        joint = np.array([answer.joint for answer in answers])
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

    def explained(self, name: str, document: Any, joint: Floats, rule: Rule | None) -> Explanation:
        """Return why one input gets its verdict: the likeliest class against the next.

        document: see `reasons`.  joint: (n_classes,), nats, with `shift`.
        """
        towards, against = two_likeliest(joint)
        evidence, constant = self.reasons(document, towards, against)
        return Explanation(
            self.verdict(name, joint, rule),
            self.classes[towards],
            self.classes[against],
            float(joint[towards] - joint[against]),
            constant,
            evidence,
        )

    def scores(self, joint: Floats) -> list[float | None]:
        """Return the log-odds, nats, to show beside each verdict; None where none are shown."""
        return [None] * len(joint)

    def explanations(
        self, inputs: Iterable[Any], rule: Rule | None = None
    ) -> Iterator[Explanation | Skipped]:
        """Yield an explanation of every input in order, or why it could not be read."""
        rule = rule if rule and self.lack is None else self.rule
        for given in inputs:
            try:
                explanation = self.explain(given, rule)
                if self.lists is not None:
                    explanation = self.lists.explanation(given, explanation, rule)
            except InputError as error:
                yield Skipped(given.name, str(error))
            else:
                yield explanation

    def _answer_beside(
        self, others: Sequence[Self], inputs: Sequence[Any]
    ) -> list[tuple[Answer | Skipped, Floats]]:
        """Return the answers to one chunk, our own and others'; this runs in a worker."""
        judged, *further = self.judge_beside(others, inputs)
        answers = self._answers_of(judged, inputs)
        joint = np.empty((len(inputs), len(others), len(self.classes)))
        is_read = [position not in judged.failures for position in range(len(inputs))]
        for number, (other, found) in enumerate(zip(others, further, strict=True)):
            joint[is_read, number] = found.joint + other.shift
        return list(zip(answers, joint, strict=True))

    def _answers_of(self, judged: JudgedChunk, inputs: Sequence[Any]) -> list[Answer | Skipped]:
        rows = iter(judged.joint + self.shift)
        return [
            judged.failures[position]
            if position in judged.failures
            else Answer(given.name, self.truth(given), next(rows), judged.notes.get(position))
            for position, given in enumerate(inputs)
        ]

    def _verdict_chunk(self, rule: Rule | None, inputs: Sequence[Any]) -> list[Verdict | Skipped]:
        rule = rule if rule and self.lack is None else self.rule
        answers = self._answers_of(self.judge(inputs), inputs)
        verdicts = self.verdicts([a for a in answers if isinstance(a, Answer)], rule)
        found = [next(verdicts) if isinstance(answer, Answer) else answer for answer in answers]
        lists = self.lists
        if lists is None:
            return found
        return [
            each if isinstance(each, Skipped) else lists.verdict(given, each, rule)
            for given, each in zip(inputs, found, strict=True)
        ]


_Classifier = TypeVar("_Classifier", bound=AnyClassifier)


def with_prior(classifier: _Classifier, new: Floats) -> _Classifier:
    """Return the classifier with new class priors, shape (n_classes,).

    Posterior, score, label and the constant of an explanation all change accordingly.
    """
    return replace(classifier, shift=prior_shift(classifier.prior, new))


def with_estimated_prior(
    classifier: _Classifier, items: Sequence[Any], jobs: int = 1
) -> _Classifier:
    """Return the classifier with the class priors that EM estimates from unlabelled items."""
    answers = classifier.answers(items, jobs)
    joint = [answer.joint for answer in answers if isinstance(answer, Answer)]
    if not joint:
        return classifier
    return with_prior(classifier, estimate_prior(posterior(np.stack(joint)), classifier.prior))


class HeldOut(NamedTuple):
    """The answers of a model to inputs that it has not learned."""

    classifier: AnyClassifier
    joint: Floats  # (n_inputs, n_classes) log P(class, input), nats
    at: Callable[[int], Any]  # returns the input at a place among them, as the model takes it

    def reasons(self, place: int, towards: int, against: int) -> LogOddsParts:
        """Return the evidence for one class and against another in the input at a place."""
        return self.classifier.reasons(self.at(place), towards, against)


def shares_by_chain(joint: Floats, towards: int, against: int) -> tuple[Floats, float]:
    """Return the share of each step of a chain in the log-odds of two classes, and their start.

    joint: (n + 1, n_classes), nats; each row is of an input that has one thing more than the
    row before.  By the chain rule, for any model, the shares (n,) and the start add up to the
    log-odds of the last row.  Where evidence is summed they do not depend on the order.
    """
    with np.errstate(invalid="ignore"):
        odds = joint[:, towards] - joint[:, against]
        # NaN occurs under maximum likelihood only: an input that is impossible in both
        # classes says nothing about the two, so their odds are those of the start.
        start = 0.0 if np.isnan(odds[0]) else float(odds[0])
        shares = np.diff(np.where(np.isnan(odds), start, odds))
    return np.where(np.isnan(shares), 0.0, shares), start
