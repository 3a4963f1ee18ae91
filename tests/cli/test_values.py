"""The types of option values: what each word means, and the one line that refuses it."""

import click
import pytest

from nbspam.cli.values import (
    ALPHA,
    CLASS_PRIOR,
    COST,
    LETTER,
    NAMED_PATH,
    PARTS,
    SHARE,
    SHARE_OR_ESTIMATED,
    complaint,
    shares,
)


@pytest.mark.parametrize(
    ("kind", "word", "value"),
    [
        (ALPHA, "0", 0.0),
        (ALPHA, "1e-3", 0.001),
        (ALPHA, "auto", "auto"),
        (CLASS_PRIOR, "uniform", "uniform"),
        (CLASS_PRIOR, "0.25,0.75", (0.25, 0.75)),
        (COST, "2", 2.0),
        (NAMED_PATH, "work=a=b", ("work", "a=b")),
        (SHARE, "a=b=0.5", ("a=b", 0.5)),
        (SHARE_OR_ESTIMATED, "estimated", "estimated"),
        (LETTER, "F", "F"),
        (PARTS, "headers,quotes", ("headers", "quotes")),
    ],
)
def test_a_word_becomes_a_value(kind, word, value):
    assert kind.convert(word, None, None) == value
    assert kind.convert(value, None, None) == value


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ALPHA, ["-1", "nan", "inf", "x", ""]),
        (CLASS_PRIOR, ["0.5,0.6", "1,0", "nan", "x", "-1,2", ""]),
        (COST, ["0", "-1", "inf", "nan", "dear"]),
        (NAMED_PATH, ["work", "=path", "work="]),
        (SHARE, ["spam", "spam=x", "estimated"]),
        (LETTER, ["", "FF", "7", "ä"]),
    ],
)
def test_a_word_that_does_not_fit_is_named_with_what_to_do(kind, words):
    for word in words:
        with pytest.raises(click.BadParameter) as refused:
            kind.convert(word, None, None)
        assert refused.value.message.startswith(f"{word}: not ")
        assert ";" in refused.value.message


def test_shares_are_one_value():
    assert shares(None, None, [("spam", 0.8), ("ham", 0.2)]) == {"spam": 0.8, "ham": 0.2}
    assert shares(None, None, ["estimated"]) == "estimated"
    assert shares(None, None, []) is None
    with pytest.raises(click.BadParameter, match="estimated: not NAME=P"):
        shares(None, None, ["estimated", ("spam", 0.8)])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--fp-cost", "x"], "--fp-cost x: not a number above 0; a miss costs 1"),
        (["--jobs", "0"], "--jobs 0 is not in the range x>=1; see `nbspam classify --help`"),
        (["--jobs", "x"], "--jobs 'x' is not a whole number; see `nbspam classify --help`"),
        (["--prior", "spam"], "--prior spam: not NAME=P; write it as --prior spam=0.8"),
    ],
)
def test_wrong_usage_is_one_line_and_status_two(nbspam, arguments, line):
    assert nbspam("classify", *arguments) == (2, "", f"nbspam: {line}\n")


@pytest.mark.parametrize(
    "arguments", [["--pears"], ["classify", "--pears"], ["cluster"], ["words", "x"]]
)
def test_whatever_click_refuses_is_one_line(nbspam, arguments):
    status, out, err = nbspam(*arguments)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("nbspam: ")


def test_a_complaint_without_a_context_is_told_all_the_same():
    assert complaint(click.UsageError("No such thing.")) == "No such thing"
