"""No text from strangers can control a terminal, and loops are watched."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam import printing


@given(st.text(st.characters()))
@example("ی\u200c\u200d\ud800\u200c")
@example("\udc80\x1b]0;title\x07\u202e\u2066\u200b\ufeff\x85\u2028\U000e0041\n")
def test_printable_leaves_nothing_that_acts_on_a_terminal(text):
    shown = printing.printable(text)
    acting = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    harmless = {*"\u200c\u200d\u061c\u200e\u200f"}
    assert {c for c in shown if unicodedata.category(c) in acting} <= harmless
    assert printing.printable(shown) == shown
    shown.encode()


def test_printable_escapes_what_it_replaces_and_nothing_else():
    assert printing.printable("a\tb\x1b[0m \u202egpj\udcff") == r"a\tb\x1b[0m \u202egpj\udcff"
    for text in ("Grüße, 好 \\n 🙂", "می\u200cخواهم", "क्\u200dष", "❤️\u200d🔥", "\u200fאב!\u200f"):
        assert printing.printable(text) == text
    assert printing.printable("a\u200fb\u061c\u200e") == r"a\u200fb\u061c\u200e"
    assert printing.printable("vi\u200cagra ی\u200c\u200c") == "vi\\u200cagra ی\u200c\\u200c"


@given(st.text(st.characters()))
@example("好瓜\udc80\x7f\x1b\u202e\U000e0041")
def test_json_shows_every_letter_and_escapes_what_acts_on_a_terminal(text):
    shown = printing.readable_json({text: [text]})
    assert shown.isprintable()
    assert json.loads(shown) == {text: [text]}
    assert json.loads(printing.readable_json(text, "ascii").encode("ascii")) == text
    assert printing.readable_json({"好瓜": "是 é"}) == '{"好瓜": "是 é"}'


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("ham", 3), ("", 0), ("好瓜", 4), ("e\u0301", 1), ("ＡＢ", 4), ("ที่", 1),
        ("می\u200cخواهم", 7), ("한글", 4), ("é", 1),
    ],
)  # fmt: skip
def test_the_width_of_text_in_a_terminal(text, width):
    assert printing.display_width(text) == width
    assert printing.left(text, 6) == text + " " * (6 - width)
    assert printing.right(text, 6) == " " * (6 - width) + text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("ham", "ham"), ("spammer", "sp…er"), ("垃圾邮件", "垃…件"), ("ababe\u0301y", "aba…y")],
)
def test_text_is_cut_to_columns_of_a_terminal(text, shown):
    assert printing.clipped(text, 5) == shown
    assert printing.clipped(text, 5, keeps_end=False).startswith(text[:2])
    assert printing.clipped(text, 0) == "…"


def test_explanations_line_up_whatever_the_classes_are_called(nbspam, model, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("大小,类\n" + "小,垃圾邮件\n大,ok\n大,ok\n" * 3)
    assert nbspam("table", "train", table, "--target", "类")[0] == 0
    values = nbspam("table", "explain", table)[1].splitlines()[1:3]
    starts = [values[0].removesuffix("value"), values[1].removesuffix("大小=小")]
    assert starts != values
    assert len({printing.display_width(start) for start in starts}) == 1


def test_one_thing_is_told_in_the_singular(nbspam, tmp_path):
    said = [printing.amount_text(n, "messages") for n in (0, 1, 2, 1024)]
    assert said == ["0 messages", "1 message", "2 messages", "1,024 messages"]
    assert [printing.amount_text(n, "classes") for n in (1, 2)] == ["1 class", "2 classes"]
    (tmp_path / "a.csv").write_text("colour,size,class\nred,1,x\n")
    train = "table", "train", tmp_path / "a.csv", "--target", "class", "-m", tmp_path / "m"
    assert "read 1 row (1 x)" in nbspam(*train)[1]


def test_whoever_watches_gets_the_things_their_name_and_their_number():
    things = [1, 2]
    assert printing.tracked(things, "things") is things

    seen = []

    def watch(things, what, extent):
        for thing in things:
            seen.append((what, extent.total(), thing))
            yield thing

    with printing.watched(watch):
        assert list(printing.tracked([7, 8], "numbers")) == [7, 8]
        assert list(printing.tracked(iter("a"), "letters")) == ["a"]
        assert list(printing.tracked(iter("b"), "letters", 5)) == ["b"]
        assert list(printing.tracked(iter("c"), "letters", printing.Extent(lambda: 6))) == ["c"]
    assert list(printing.tracked([9], "numbers")) == [9]

    assert seen == [
        ("numbers", 2, 7), ("numbers", 2, 8), ("letters", None, "a"), ("letters", 5, "b"),
        ("letters", 6, "c"),
    ]  # fmt: skip
