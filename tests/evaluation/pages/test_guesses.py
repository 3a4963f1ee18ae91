"""Guesses at why an answer is wrong: each has its sign, and says no more than the sign does."""

import numpy as np
import pytest

from nbspam.evaluation.pages.cases import Marked, answered, guesses
from nbspam.evaluation.pages.quality import often_confused
from nbspam.verdicts import Evidence, Explanation, Verdict

# Forty words that say .1 nats each for spam.
MANY = tuple((f"word{n}", 0.1, "text") for n in range(40))


def found_in(*evidence, label="spam", constant=0.0, probability=0.97, **more):
    """Return an answer as it is looked at; positive evidence speaks for spam."""
    rows = tuple(Evidence(name, value, group, (1.0, 2.0)) for name, value, group in evidence)
    score = constant + sum(row.contribution for row in rows)
    other = "ham" if label == "spam" else "spam"
    shares = {label: probability, other: 1 - probability}
    verdict = Verdict("m", label, dict(sorted(shares.items())))
    explanation = Explanation(verdict, "spam", "ham", score, constant, rows)
    return answered(explanation, other)._replace(**more)


def said_of(*evidence, **more):
    return guesses(found_in(*evidence, **more))


def words(n, n_known, is_cut=False, problem=""):
    return Marked("", (), 0, is_cut, n, n_known, problem)


NOTHING = "Nothing stands out: 100% of its evidence speaks for spam."
CONFUSED = "Two classes that are often confused: 7 of 90 ham were called spam."
CUTOFF = "The cutoff decided: spam was likelier than ham, but not by as much as the costs demand."


@pytest.mark.parametrize(
    ("expected", "more"),
    [
        ("Filed wrongly? All the others contradict its label (91% sure).", {"misfiled": 0.91}),
        (CONFUSED, {"confused": (7, 90)}),
        (CUTOFF, {"label": "ham", "probability": 0.4}),
        ("Too short: it has only 2 different words.", {"text": words(2, 2)}),
        ("Words never seen before: 39 of its 40 different words.", {"text": words(40, 1)}),
        ("A close call: the answer had a probability of only 68%.", {"probability": 0.68}),
        (NOTHING, {}),
        (NOTHING, {"misfiled": 0.5}),
        (NOTHING, {"text": words(40, 20)}),
        (NOTHING, {"text": words(40, 1, is_cut=True)}),
        (NOTHING, {"text": words(0, 0, problem="gone")}),
        (NOTHING, {"text": words(2, 2), "is_mail": False}),
    ],
)
def test_a_guess_has_its_sign(expected, more):
    assert said_of(*MANY, **more) == [expected]


@pytest.mark.parametrize("label", ["ham", "spam"])
def test_the_head_and_hidden_words_are_named_if_they_decided(label):
    sign = 1 if label == "spam" else -1
    other = "ham" if label == "spam" else "spam"
    against = tuple((name, -sign * value, group) for name, value, group in MANY)  # 4 nats
    for group, expected in (
        ("route", "A forged or an unusual head? Without sender and route, "),
        ("hidden", "Hidden words: without what readers do not see, "),
    ):
        parts = [(f"{group}{n}", sign * 1.5, group) for n in range(4)]  # 6 nats
        said = said_of(*against, *parts, label=label)
        assert said[0] == f"{expected}{other} would have been likelier than {label}."
        plain = tuple((name, sign * value, kind) for name, value, kind in MANY)
        assert said_of(*plain, *parts, label=label)[0].startswith("Nothing stands out")


def test_evidence_for_both_classes_is_mixed():
    against = tuple((f"other{n}", -0.1, "text") for n in range(30))
    assert said_of(*MANY, *against) == ["Mixed evidence: 4.0 nats for spam, 3.0 for ham."]
    assert said_of(*MANY, *against[:26])[0].startswith("Nothing stands out: 61% of")
    decided = said_of(*MANY, *(2 * against), constant=5.0)
    assert decided == ["Mixed evidence: 4.0 nats for spam, 6.0 for ham; the constant decided."]


@pytest.mark.parametrize(
    ("strong", "named"),
    [([3.0], "win"), ([1.5, 1.4], "win and pills"), ([1.0, 1.0, 1.0], "win, pills and now")],
)
def test_what_decided_is_named_if_it_is_little(strong, named):
    parts = list(zip(["win", "pills", "now"], strong, ["text"] * 3, strict=False))
    # Besides them the evidence is .1 for ham, or .5 for spam.
    slight = [(f"word{n}", -0.05, "text") for n in range(2)]
    expected = f"It hangs on little: without {named}, ham would have been likelier than spam."
    assert said_of(*slight, *parts) == [expected]
    more = [(f"word{n}", 0.25, "text") for n in range(2)]
    assert said_of(*more, *parts)[0].startswith("Nothing stands out")


def test_evidence_of_other_classes_or_without_end_says_nothing_of_an_answer():
    verdict = Verdict("m", "sea", {"sea": 0.95, "sky": 0.03, "sun": 0.02})
    rows = (Evidence("ray", 1.0, "text", (1.0, 1.0, 1.0)),)
    explanation = Explanation(verdict, "sun", "sky", 1.0, 0.0, rows)
    assert guesses(answered(explanation, "sky")) == ["Nothing stands out."]
    assert said_of(*MANY, ("t", float("inf"), "text"), constant=float("inf"))[-1].endswith(".")
    assert said_of(*MANY, ("t", float("nan"), "text")) == ["Nothing stands out."]


def test_classes_are_often_confused_if_twice_as_often_as_others():
    # Class 0: 12 errors over three others are 4 each; 8 is not more than twice that, 9 is.
    confusion = np.array([[88, 8, 2, 2], [2, 90, 4, 4], [1, 1, 98, 0], [2, 0, 0, 98]])
    assert often_confused(confusion, 0, 1) is None
    confusion[0] = 88, 9, 2, 1
    assert often_confused(confusion, 0, 1) == (9, 100)
    assert often_confused(confusion, 3, 0) is None  # only twice
    assert often_confused(np.array([[90, 10], [3, 97]]), 0, 1) is None  # there is no other class
