"""Values of options: what each word means, the line that refuses it, and values of several."""

from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from nbspam.cli.inputs import Labels
from nbspam.cli.options import (
    ALPHA,
    CLASS_PRIOR,
    COST,
    LETTER,
    NAMED_PATH,
    PARTS,
    SHARE,
    SHARE_OR_ESTIMATED,
    complaint,
    filling,
    shares,
)


def test_a_word_becomes_a_value():
    for kind, word, value in [
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
    ]:
        assert kind.convert(word, None, None) == value
        assert kind.convert(value, None, None) == value


def test_a_word_that_does_not_fit_is_named_with_what_to_do():
    for kind, words in [
        (ALPHA, ["-1", "nan", "inf", "x", ""]),
        (CLASS_PRIOR, ["0.5,0.6", "1,0", "nan", "x", "-1,2", ""]),
        (COST, ["0", "-1", "inf", "nan", "dear"]),
        (NAMED_PATH, ["work", "=path", "work="]),
        (SHARE, ["spam", "spam=x", "estimated"]),
        (LETTER, ["", "FF", "7", "ä"]),
    ]:
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


def test_a_complaint_of_clicks_ends_without_a_full_stop():
    assert complaint(click.UsageError("No such thing.")) == "No such thing"


# --- options that fill one value -------------------------------------------------------------


class Size(NamedTuple):
    width: int | None = None
    height: int | None = None


size_options = filling(
    Size,
    "size",
    click.option("--width", type=int, help="The width."),
    click.option("--height", type=int, help="The height."),
)


@click.command()
@click.option("--first", is_flag=True)
@size_options
@click.option("--last", is_flag=True)
def command(first, size, last):
    click.echo(f"{size} {first} {last}")


def test_options_fill_one_value_in_the_order_of_their_declaration():
    result = CliRunner().invoke(command, ["--height", "3", "--last"])
    assert result.output == "Size(width=None, height=3) False True\n"
    names = [parameter.name for parameter in command.params]
    assert names == ["first", "width", "height", "last"]


def test_labels_come_in_a_fixed_order():
    labels = Labels(spam=("s",), ham=("h", "i"), named=(("work", "w"),))

    assert labels.paths == [("spam", "s"), ("ham", "h"), ("ham", "i"), ("work", "w")]
