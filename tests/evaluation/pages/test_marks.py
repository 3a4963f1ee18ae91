"""Evidence over a text: marks stand where the words are, and hostile mail stays text."""

import re

import pytest

from nbspam.evaluation.pages.cases import N_CHARACTERS, marked
from nbspam.evaluation.witness import KEPT_BYTES
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.verdicts import Evidence

MAIL, TEXT = PRESETS["mail"], PRESETS["text"]


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


def test_words_are_marked_by_what_they_say():
    mail = Item("m", None, b"Subject: hello\n\nbuy CHEAP pills, and lunch.\n")
    found = marked(mail, MAIL, evidence(cheap=2.0, pills=0.7, lunch=-1.5, buy=0.01))
    assert levels(found) == [("CHEAP", 3), ("pills", 2), ("lunch", -3)]
    assert whole(found) == "buy CHEAP pills, and lunch."
    assert found.subject == "hello"


def test_the_subject_is_another_place_than_the_text_and_known_words_are_counted():
    mail = Item("m", None, b"Subject: cheap lunch\n\nis cheap\n")
    of_subject = Evidence("subject:cheap", -1.0, "subject", (1.0, 1.0))
    found = marked(mail, MAIL, (of_subject, *evidence(lunch=0.9)))
    assert levels(found, "Subject") == [("cheap", -3), ("lunch", 3)]
    assert levels(found) == []
    assert whole(found) == "is cheap"

    mail = Item("m", None, b"Subject: one two\n\nthree four three\n")
    found = marked(mail, MAIL, evidence(three=0.0, four=1.0))
    # Those of the subject count twice, as words of the subject and of the text.
    assert (found.n_tokens, found.n_known) == (6, 2)


def test_strong_words_have_their_number_once():
    found = marked(Item("m", None, b"\npills Pills pills"), MAIL, evidence(pills=1.25))
    pieces = [piece for passage in found.passages for piece in passage.pieces if piece.level]
    assert [piece.nats for piece in pieces] == [1.25, None, None]


@pytest.mark.parametrize(
    ("data", "token", "piece"),
    [
        (b"buy v1agra now", "viagra", ("v1agra", 3)),  # disguised
        (b"buy cheap pills", "2g:cheap pills", ("cheap pills", 2)),
        ("我们提供发票服务".encode(), "发票", ("发票", 3)),  # without blanks
    ],
)
def test_words_are_marked_as_they_are_written(data, token, piece):
    said = (Evidence(token, 2.0, "pairs" if " " in token else "text", (1.0, 1.0)),)
    assert levels(marked(Item("m", None, data, is_text=True), TEXT, said)) == [piece]


def test_what_readers_do_not_see_is_named_so():
    html = b"Content-Type: text/html\n\n<p>seen</p><p style='display:none'>unseen words</p>"
    found = marked(Item("m", None, html), MAIL, evidence(seen=1.0))
    assert whole(found) == "seen"
    assert whole(found, "Not visible to readers") == "unseen words"


@pytest.mark.parametrize("size", [10 * N_CHARACTERS, 10_000_000])
def test_long_mail_is_cut_with_a_note(size):
    mail = Item("m", None, b"Subject: long\n\n" + b"cheap pills " * (size // 12))
    found = marked(mail, MAIL, evidence(cheap=1.0))
    shown = sum(len(piece.text) for each in found.passages for piece in each.pieces)
    assert shown <= N_CHARACTERS
    assert found.n_left_out > 0
    assert found.is_cut == (size > KEPT_BYTES)


@pytest.mark.parametrize("data", [b"", b"\0\xff\xfe" * 100, b"Subject:\n\n\n", b"\n" * 10**5])
def test_odd_mail_is_shown_as_it_is_and_empty_lines_are_no_room_for_hiding(data):
    found = marked(Item("m", None, data), MAIL, ())
    assert all(passage.pieces for passage in found.passages)
    found = marked(Item("m", None, b"\nfirst\n \n\t\n\r\n\n\nlast"), MAIL, ())
    assert re.fullmatch(r"first\n\nlast", whole(found))


def test_a_file_that_is_gone_is_named(tmp_path):
    found = marked(Item(str(tmp_path / "gone.eml"), None), MAIL, ())
    assert "gone.eml" not in found.problem
    assert found.problem
    assert found.passages == ()
