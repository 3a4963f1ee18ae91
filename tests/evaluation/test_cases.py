"""A single message: its sums are exact as they are shown, and guesses have a cause."""

import re
from math import log

import numpy as np
import pytest

from markup import Page
from nbspam.evaluation import cases
from nbspam.evaluation.pages import N_SHOWN, Explained, often_confused
from nbspam.evaluation.report import nats
from nbspam.evaluation.witness import KEPT_BYTES, strongest_values
from nbspam.settings import PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import read_records
from nbspam.tables.training import TableSettings, read_table, train_table
from nbspam.verdicts import Evidence, Explanation, Verdict
from support import MELONS, SPAM

MAIL, TEXT = PRESETS["mail"], PRESETS["text"]
LONG = Item("m", None, b"\n" + b" ".join(b"word%d" % n for n in range(40)))


def explanation(*evidence, label="spam", constant=0.1, probability=0.97):
    """Return the explanation of an answer; positive evidence speaks for spam."""
    rows = tuple(Evidence(name, value, group, (1.0, 2.0)) for name, value, group in evidence)
    score = constant + sum(row.contribution for row in rows)
    spam = probability if label == "spam" else 1 - probability
    verdict = Verdict("m", label, {"ham": 1 - spam, "spam": spam})
    return Explanation(verdict, "spam", "ham", score, constant, rows)


def known(*more):
    """Return evidence of forty known words that say little, and more."""
    return (*((f"word{n}", 0.01, "text") for n in range(40)), *more)


def test_rows_and_kinds_add_up_to_the_score_as_they_are_rounded():
    parts = [(f"t{n}", 0.3349 - 0.071 * n, ("text", "route", "web")[n % 3]) for n in range(25)]
    case = cases.case_of(explanation(*parts), None, None)
    for rows in (case.rows, case.kinds):
        shown = [float(nats(row.nats).replace("\N{MINUS SIGN}", "-")) for row in rows]
        assert (shown[-1], sum(shown)) == (0.1, pytest.approx(round(case.score, 2), abs=1e-9))
        assert [row.nats for row in rows] == pytest.approx(shown, abs=1e-9)
    assert case.rows[-2].name == "17 more"


def test_infinite_evidence_and_answers_without_evidence_are_shown():
    said = explanation(("t", float("-inf"), "text"), ("u", float("nan"), "web"))
    case = cases.case_of(said, None, None)
    assert [nats(row.nats) for row in case.rows[:2]] == ["\N{MINUS SIGN}∞", "?"]

    assert cases.case_of(explanation(), None, None).kinds[0][:2] == ("the constant", 0.1)
    case = cases.unexplained("m", "spam", 0.9, "ham", LONG, MAIL)
    assert case.rows == ()
    assert case.text.passages
    assert cases.unexplained("r", "a", 0.9, "b", None, None).text is None


def test_a_wrong_answer_has_two_guesses_at_most_and_a_right_one_none():
    for truth in ("spam", None):
        assert cases.case_of(explanation(*known()), LONG, MAIL, truth).guesses == ()
    said = explanation(("a", 3.0, "text"), ("b", -2.5, "text"))
    case = cases.case_of(said, Item("m", None, b"\nhi there"), MAIL, "ham", misfiled=0.91)
    assert case.guesses == (
        "Filed wrongly? All the others contradict its label (91 % sure).",
        "Too short: it has only 2 different words.",
    )


def test_models_of_chosen_tokens_know_few_words_and_are_not_blamed():
    settings = chosen_settings(SettingsChoices(model="aode"), False, False)
    said = known(("word1", 0.6, "text"))
    assert "never seen" in cases.case_of(explanation(said[-1]), LONG, MAIL, "ham").guesses[0]
    case = cases.case_of(explanation(*said), LONG, settings, "ham")
    assert case.guesses == ("Nothing stands out: 100 % of its evidence speaks for spam.",)
    text = Item("m", None, b"hi there", is_text=True)  # texts are not blamed for being short
    case = cases.case_of(explanation(*known()), text, TEXT, "ham")
    assert "Too short" not in " ".join(case.guesses)


# --- guesses at why an answer is wrong -------------------------------------------------------

# Forty words that say .1 nats each for spam.
MANY = tuple((f"word{n}", 0.1, "text") for n in range(40))


def found_in(*evidence, label="spam", constant=0.0, probability=0.97, **more):
    """Return an answer as it is looked at."""
    said = explanation(*evidence, label=label, constant=constant, probability=probability)
    return cases.answered(said, "ham" if label == "spam" else "spam")._replace(**more)


def said_of(*evidence, **more):
    return cases.guesses(found_in(*evidence, **more))


def words(n, n_known, is_cut=False, problem=""):
    return cases.Marked("", (), 0, is_cut, n, n_known, problem)


NOTHING = "Nothing stands out: 100 % of its evidence speaks for spam."
CONFUSED = "Two classes that are often confused: 7 of 90 ham were called spam."
CUTOFF = "The cutoff decided: spam was likelier than ham, but not by as much as the costs demand."


@pytest.mark.parametrize(("expected", "more"), [
    ("Filed wrongly? All the others contradict its label (51 % sure).", {"misfiled": 0.51}),
    (CONFUSED, {"confused": (7, 90)}),
    (CUTOFF, {"label": "ham", "probability": 0.4}),
    ("Too short: it has only 1 different word.", {"text": words(1, 1)}),
    ("Words never seen before: 39 of its 40 different words.", {"text": words(40, 1)}),
    ("A close call: the answer had a probability of only 0.68.", {"probability": 0.68}),
    (NOTHING, {}),
    (NOTHING, {"misfiled": 0.5}),
    (NOTHING, {"text": words(40, 20)}),
    (NOTHING, {"text": words(40, 1, is_cut=True)}),
    (NOTHING, {"text": words(0, 0, problem="gone")}),
    (NOTHING, {"text": words(2, 2), "is_mail": False}),
])  # fmt: skip
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
    assert said_of(*MANY, *against[:26])[0].startswith("Nothing stands out: 61 % of")
    decided = said_of(*MANY, *(2 * against), constant=5.0)
    assert decided == ["Mixed evidence: 4.0 nats for spam, 6.0 for ham; the constant decided."]
    balanced = [(f"{n}", sign / 8, "text") for n in range(32) for sign in (1, -1)]
    decided = said_of(*balanced, constant=5.0)
    assert decided == ["Mixed evidence: 4.0 nats for spam, 4.0 for ham; the constant decided."]


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
    assert cases.guesses(cases.answered(explanation, "sky")) == ["Nothing stands out."]
    assert said_of(*MANY, ("t", float("inf"), "text"), constant=float("inf"))[-1].endswith(".")
    assert said_of(*MANY, ("t", float("nan"), "text")) == ["Nothing stands out."]


def test_classes_are_often_confused_if_twice_as_often_as_others():
    # Class 0: 12 errors over three others are 4 each; 8 is not more than twice that, 9 is.
    confusion = np.array([[88, 8, 2, 2], [2, 90, 4, 4], [1, 1, 98, 0], [2, 0, 0, 98]])
    assert often_confused(confusion, 0, 1) is None
    confusion[0] = 88, 9, 2, 1
    assert often_confused(confusion, 0, 1) == (9, 100)
    assert often_confused(confusion, 3, 0) is None  # only twice
    confusion[3] = 3, 0, 0, 97
    assert often_confused(confusion, 3, 0) == (3, 100)
    assert often_confused(np.array([[90, 10], [3, 97]]), 0, 1) is None  # there is no other class


# --- marks over a text -----------------------------------------------------------------------


def evidence(**nats):
    return tuple(Evidence(token, value, "text", (1.0, 1.0)) for token, value in nats.items())


def levels(found, title="Text"):
    """Return the marked pieces of a passage, with their levels."""
    (passage,) = [each for each in found.passages if each.title == title]
    return [(piece.text, piece.level) for piece in passage.pieces if piece.level]


def whole(found, title="Text"):
    return "".join(
        piece.text for each in found.passages if each.title == title for piece in each.pieces
    )


def test_words_are_marked_by_what_they_say_and_strong_ones_have_their_number_once():
    mail = Item("m", None, b"Subject: hello\n\nbuy CHEAP pills, and lunch.\n")
    found = cases.marked(mail, MAIL, evidence(cheap=2.0, pills=0.7, lunch=-1.5, buy=0.01))
    assert levels(found) == [("CHEAP", 3), ("pills", 2), ("lunch", -3)]
    assert whole(found) == "buy CHEAP pills, and lunch."
    assert found.subject == "hello"
    found = cases.marked(Item("m", None, b"\npills Pills pills"), MAIL, evidence(pills=1.25))
    pieces = [piece for passage in found.passages for piece in passage.pieces if piece.level]
    assert [piece.nats for piece in pieces] == [1.25, None, None]


def test_the_subject_is_another_place_than_the_text_and_known_words_are_counted():
    mail = Item("m", None, b"Subject: cheap lunch\n\nis cheap\n")
    of_subject = Evidence("subject:cheap", -1.0, "subject", (1.0, 1.0))
    found = cases.marked(mail, MAIL, (of_subject, *evidence(lunch=0.9)))
    assert levels(found, "Subject") == [("cheap", -3), ("lunch", 3)]
    assert levels(found) == []
    assert whole(found) == "is cheap"

    mail = Item("m", None, b"Subject: one two\n\nthree four three\n")
    found = cases.marked(mail, MAIL, evidence(three=0.0, four=1.0))
    # Those of the subject count twice, as words of the subject and of the text.
    assert (found.n_tokens, found.n_known) == (6, 2)


def test_infinite_words_are_the_strongest_and_those_for_both_classes_are_unmarked():
    infinite = evidence(cheap=np.inf, lunch=-np.inf, good=np.inf, buy=5.0)
    against = Evidence("2g:good pills", -np.inf, "pairs", (1.0, 1.0))
    mail = Item("m", None, b"buy cheap pills, lunch, good pills", is_text=True)
    found = cases.marked(mail, TEXT, (*infinite, against))
    assert levels(found) == [("cheap", 3), ("lunch", -3), (" pills", -3)]


@pytest.mark.parametrize(("data", "token", "piece"), [
    (b"buy v1agra now", "viagra", ("v1agra", 3)),  # disguised
    (b"buy cheap pills", "2g:cheap pills", ("cheap pills", 2)),
    (b"buy (cheap) pills", "cheap", ("cheap", 3)),
    ("我们提供发票服务".encode(), "发票", ("发票", 3)),  # without blanks
])  # fmt: skip
def test_words_are_marked_as_they_are_written(data, token, piece):
    said = (Evidence(token, 2.0, "pairs" if " " in token else "text", (1.0, 1.0)),)
    assert levels(cases.marked(Item("m", None, data, is_text=True), TEXT, said)) == [piece]


def test_text_is_shown_in_the_order_in_which_it_is_written():
    text = "> Do you sell pills?\nYes, we do, and they are cheap.\n> And lunch?\nNo."
    found = cases.marked(Item("m", None, b"\n" + text.encode()), MAIL, evidence(cheap=2.0))
    assert whole(found) == text

    soft = text.replace("cheap", "che\u00adap").replace("lunch", "\ufefflun\u200bch")
    data = f"Content-Type: text/plain; charset=utf-8\n\n{soft}".encode()
    found = cases.marked(Item("m", None, data), MAIL, evidence(cheap=2.0))
    assert (whole(found), levels(found)) == (text, [("cheap.", 3)])


def test_what_readers_do_not_see_is_named_so():
    html = b"Content-Type: text/html\n\n<p>seen</p><p style='display:none'>unseen words</p>"
    found = cases.marked(Item("m", None, html), MAIL, evidence(seen=1.0))
    assert whole(found) == "seen"
    assert whole(found, "Not visible to readers") == "unseen words"


@pytest.mark.parametrize("size", [10 * cases.N_CHARACTERS, 10_000_000])
def test_long_mail_is_cut_with_a_note(size):
    mail = Item("m", None, b"Subject: long\n\n" + b"cheap pills " * (size // 12))
    found = cases.marked(mail, MAIL, evidence(cheap=1.0))
    shown = sum(len(piece.text) for each in found.passages for piece in each.pieces)
    assert shown <= cases.N_CHARACTERS
    assert found.n_left_out > 0
    assert found.is_cut == (size > KEPT_BYTES)


@pytest.mark.parametrize("data", [b"", b"\0\xff\xfe" * 100, b"Subject:\n\n\n", b"\n" * 10**5])
def test_odd_mail_is_shown_as_it_is_and_empty_lines_are_no_room_for_hiding(data):
    found = cases.marked(Item("m", None, data), MAIL, ())
    assert all(passage.pieces for passage in found.passages)
    found = cases.marked(Item("m", None, b"\nfirst\n \n\t\n\r\n\n\nlast"), MAIL, ())
    assert re.fullmatch(r"first\n\nlast", whole(found))


def test_a_file_that_is_gone_is_named(tmp_path):
    found = cases.marked(Item(str(tmp_path / "gone.eml"), None), MAIL, ())
    assert "gone.eml" not in found.problem
    assert found.problem
    assert found.passages == ()


# --- the page of explanations ----------------------------------------------------------------


def explained(classifier, inputs):
    """Return the page of inputs, and the explanations that passed."""
    page = Explained(classifier)
    found = [*page.passing(classifier.explanations(page.watched(inputs)))]
    return page.page(), found


def test_each_message_has_its_verdict_text_and_evidence(mails, mail_classifier):
    items = [*read_items([str(mails / "spam")])][:3]
    html, found = explained(mail_classifier, items)
    text = Page(html).text
    for item, each in zip(items, found, strict=True):
        assert item.name in text
        assert f"{each.verdict.label}, probability {each.verdict.probability:.4f}" in text
        for row in each.strongest(8):
            assert row.token in text
    assert html.count('aria-label="Evidence"') == 3
    assert "spoke for spam" in text


def test_a_page_has_so_many_and_counts_the_rest(mail_classifier):
    items = [Item(f"m{n}", None, SPAM) for n in range(N_SHOWN + 5)]
    html, found = explained(mail_classifier, items)
    assert len(found) == N_SHOWN + 5
    assert html.count("<details") == N_SHOWN
    assert "and 5 more" in Page(html).text
    assert "<title>Why? 105 messages explained</title>" in html
    assert "<title>Why? 1 message explained</title>" in explained(mail_classifier, items[:1])[0]
    assert "could be read" in Page(explained(mail_classifier, [])[0]).text


def test_rows_have_their_values():
    path, settings = str(MELONS), TableSettings("好瓜")
    classifier = train_table(read_table(read_records([path]), settings).table, settings)
    html, found = explained(classifier, read_records([path]))
    assert html.count('aria-label="Evidence"') == len(found) == 17
    assert "纹理=清晰" in Page(html).text
    assert "words of the text" not in html
    # Of 8 good melons 7 are clear, of 9 others 2; by Laplace's rule for three textures.
    strongest = "纹理=清晰", pytest.approx(log((7 + 1) / (8 + 3) / ((2 + 1) / (9 + 3)))), (2, 7)
    values = strongest_values(classifier, 99)["是"]
    assert (values[0], values[-1].weight >= 0) == (strongest, True)
