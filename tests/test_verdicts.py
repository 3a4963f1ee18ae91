"""The scaffold of all classifiers, by one that judges numbers: a subclass that is all in sight."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from nbspam.arrays import Floats
from nbspam.decision import LossMatrix, Rule
from nbspam.errors import InputError
from nbspam.verdicts import (
    Answer,
    AnyClassifier,
    Explanation,
    JudgedChunk,
    Skipped,
    Verdict,
    Weighed,
    shares_by_chain,
)
from nbspam.workers import Workers


class Number(NamedTuple):
    """An input: NaN cannot be read."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Signs(AnyClassifier):
    """Says how likely a number is below and above zero: log-odds `scale` times the number."""

    scale: float

    @property
    def classes(self) -> tuple[str, ...]:
        return "above", "below"

    @property
    def noun(self) -> str:
        return "numbers"

    @property
    def prior(self) -> Floats:
        return np.array([0.5, 0.5])

    def chunks(self, inputs: Iterable[Number], jobs: Workers = 1) -> Iterator[list[Number]]:
        chunk: list[Number] = []
        for given in inputs:
            chunk.append(given)
            if len(chunk) == 3:
                yield chunk
                chunk = []
        yield chunk

    def judge(self, inputs: Sequence[Number]) -> JudgedChunk:
        values = np.array([given.value for given in inputs])
        failures = {
            int(at): Skipped(inputs[at].name, f"number {at} of a chunk cannot be read")
            for at in np.flatnonzero(np.isnan(values))
        }
        odds = self.scale * values[~np.isnan(values)]
        return JudgedChunk(np.stack([odds, np.zeros(len(odds))], axis=1), failures)

    def truth(self, given: Number) -> str | None:
        return None

    def to_state(self) -> dict[str, Any]:
        return {"kind": "signs", "scale": self.scale}

    def explain(self, given: Number, rule: Rule | None = None) -> Explanation:
        if np.isnan(given.value):
            raise InputError(f"{given.name}: not a number")
        joint = self.judge([given]).joint[0] + self.shift
        score = float(joint[0] - joint[1])
        return Explanation(
            self.verdict(given.name, joint, rule), "above", "below", score, score, ()
        )

    def reasons_for(self, given: Number, towards: int, against: int) -> Weighed:
        raise NotImplementedError  # nothing here asks


# All of one name, in four chunks of which two hold unreadable inputs and one nothing else.
VALUES = [1.0, np.nan, -2.0, 3.0, -4.0, 5.0, np.nan, np.nan, np.nan, 6.0]
INPUTS = [Number("same", value) for value in VALUES]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_input_gets_its_own_answer_and_verdict_whatever_the_names(jobs):
    classifier = Signs(2.0)
    answers = list(classifier.answers(INPUTS, jobs))
    verdicts = list(classifier.classify(INPUTS, jobs))
    assert len(answers) == len(verdicts) == len(INPUTS)
    for value, answer, verdict in zip(VALUES, answers, verdicts, strict=True):
        if np.isnan(value):
            assert isinstance(answer, Skipped)
            assert verdict == answer
        else:
            assert isinstance(answer, Answer)
            assert answer.joint.tolist() == [2 * value, 0]
            assert isinstance(verdict, Verdict)
            assert verdict.label == ("above" if value > 0 else "below")
            assert verdict.posterior["above"] == pytest.approx(1 / (1 + np.exp(-2 * value)))


def test_chunks_are_made_for_the_processes_that_judge_them(monkeypatch):
    asked = []
    chunks = Signs.chunks

    def watched(self, inputs, jobs=1):
        asked.append(jobs)
        return chunks(self, inputs, jobs)

    monkeypatch.setattr(Signs, "chunks", watched)
    list(Signs(1.0).answers(INPUTS, 2))
    list(Signs(1.0).classify(INPUTS, 2))
    assert asked == [2, 2]


def test_shifts_add_up_and_a_rule_given_replaces_the_classifiers_own():
    shift = np.array([0.0, 1.5])
    classifier = Signs(1.0).shifted(shift).shifted(shift)
    (answer,) = classifier.answers([Number("x", 1.0)])
    assert answer.joint.tolist() == [1, 3]
    assert classifier.explain(Number("x", 1.0)).score == -2
    assert classifier.scale == 1.0

    always = LossMatrix(("maybe",), np.zeros((2, 1)))
    classifier = Signs(1.0)
    assert [v.label for v in classifier.classify(INPUTS[:1], rule=always)] == ["maybe"]
    assert classifier.explain(INPUTS[0], always).verdict.label == "maybe"
    assert [v.label for v in classifier.classify(INPUTS[:1])] == ["above"]


def test_a_classifier_is_frozen_has_slots_and_defines_all_that_the_scaffold_needs():
    classifier = Signs(1.0)
    assert not hasattr(classifier, "__dict__")
    with pytest.raises(FrozenInstanceError):
        classifier.scale = 2.0
    with pytest.raises(TypeError, match="abstract"):
        AnyClassifier()
    assert list(Signs(1.0).answers([])) == list(Signs(1.0).classify([])) == []


def test_shares_and_start_of_a_chain_add_up_to_the_last_log_odds():
    with np.errstate(divide="ignore"):
        joint = np.log([[0.5, 0.3, 0.2], [0.4, 0.1, 0.2], [0.1, 0.1, 0.0], [0.1, 0.0, 0.0]])
    shares, start = shares_by_chain(joint[:3], 0, 1)
    assert start == pytest.approx(np.log(5 / 3))
    assert shares == pytest.approx([np.log(4 / (5 / 3)), -np.log(4)])
    # Impossible in both classes: such a step says nothing.
    shares, start = shares_by_chain(joint[2:], 1, 2)
    assert (start, shares.tolist()) == (np.inf, [-np.inf])
    shares, start = shares_by_chain(joint[[3, 3]], 1, 2)
    assert (start, shares.tolist()) == (0, [0])
