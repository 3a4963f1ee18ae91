"""Options that fill one value of a type."""

from typing import NamedTuple

import click
from click.testing import CliRunner

from nbspam.cli.options import Labels, filling


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


def test_options_fill_one_value():
    result = CliRunner().invoke(command, ["--height", "3", "--last"])

    assert result.output == "Size(width=None, height=3) False True\n"


def test_options_stand_in_the_order_of_their_declaration():
    names = [parameter.name for parameter in command.params]

    assert names == ["first", "width", "height", "last"]


def test_labels_come_in_a_fixed_order():
    labels = Labels(spam=("s",), ham=("h", "i"), named=(("work", "w"),))

    assert labels.paths == [("spam", "s"), ("ham", "h"), ("ham", "i"), ("work", "w")]
