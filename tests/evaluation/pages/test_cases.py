"""A single message: its sums are exact as they are shown, and guesses have a cause."""

import pytest

from nbspam.evaluation.pages.cases import case_of, unexplained
from nbspam.evaluation.pages.rendering import nats
from nbspam.settings import PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.verdicts import Evidence, Explanation, Verdict

MAIL = PRESETS["mail"]
LONG = Item("m", None, b"\n" + b" ".join(b"word%d" % n for n in range(40)))


def explanation(*evidence):
    """Return the explanation of an answer "spam"; positive evidence speaks for spam."""
    rows = tuple(Evidence(name, value, group, (1.0, 2.0)) for name, value, group in evidence)
    score = 0.1 + sum(row.contribution for row in rows)
    verdict = Verdict("m", "spam", {"ham": 0.03, "spam": 0.97})
    return Explanation(verdict, "spam", "ham", score, 0.1, rows)


def known(*more):
    """Return evidence of forty known words that say little, and more."""
    return (*((f"word{n}", 0.01, "text") for n in range(40)), *more)


def test_rows_and_kinds_add_up_to_the_score_as_they_are_rounded():
    parts = [(f"t{n}", 0.3349 - 0.071 * n, ("text", "route", "web")[n % 3]) for n in range(25)]
    case = case_of(explanation(*parts), None, None)
    for rows in (case.rows, case.kinds):
        shown = [float(nats(row.nats).replace("\N{MINUS SIGN}", "-")) for row in rows]
        assert sum(shown) == pytest.approx(round(case.score, 2), abs=1e-9)
        assert [row.nats for row in rows] == pytest.approx(shown, abs=1e-9)
    assert case.rows[-1].name == "17 more"


def test_infinite_evidence_and_answers_without_evidence_are_shown():
    said = explanation(("t", float("-inf"), "text"), ("u", float("nan"), "web"))
    case = case_of(said, None, None)
    assert [nats(row.nats) for row in case.rows[:2]] == ["\N{MINUS SIGN}∞", "?"]

    case = unexplained("m", "spam", 0.9, "ham", LONG, MAIL)
    assert case.rows == ()
    assert case.text.passages
    assert unexplained("r", "a", 0.9, "b", None, None).text is None


def test_a_wrong_answer_has_two_guesses_at_most_and_a_right_one_none():
    for truth in ("spam", None):
        assert case_of(explanation(*known()), LONG, MAIL, truth).guesses == ()
    said = explanation(("a", 3.0, "text"), ("b", -2.5, "text"))
    case = case_of(said, Item("m", None, b"\nhi there"), MAIL, "ham", misfiled=0.91)
    assert case.guesses == (
        "Filed wrongly? All the others contradict its label (91% sure).",
        "Too short: it has only 2 different words.",
    )


def test_models_of_chosen_tokens_know_few_words_and_are_not_blamed():
    settings = chosen_settings(SettingsChoices(model="aode"), False, False)
    said = known(("word1", 0.6, "text"))
    assert "never seen" in case_of(explanation(said[-1]), LONG, MAIL, "ham").guesses[0]
    case = case_of(explanation(*said), LONG, settings, "ham")
    assert case.guesses == ("Nothing stands out: 100% of its evidence speaks for spam.",)
    text = Item("m", None, b"hi there", is_text=True)  # texts are not blamed for being short
    case = case_of(explanation(*known()), text, PRESETS["text"], "ham")
    assert "Too short" not in " ".join(case.guesses)
