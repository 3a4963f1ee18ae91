"""Help: commands and options in groups, whole sentences, `nbspam help`."""

import re
from itertools import chain

import click
import pytest

from nbspam.cli.command import COMMON, Command, summary, titled
from nbspam.cli.main import COMMANDS, GROUPS, cli
from support import complains

TITLE = re.compile(r"^(\S.*):$", re.MULTILINE)


def test_every_command_is_in_one_group():
    assert sorted([*chain.from_iterable(GROUPS.values()), "help"]) == sorted(COMMANDS)
    assert len(set(COMMANDS)) == len(COMMANDS)


def test_the_list_of_commands_has_groups_and_whole_sentences(nbspam):
    status, out, _ = nbspam("--help")

    assert status == 0
    assert TITLE.findall(out) == [*GROUPS, "Options"]
    assert "..." not in out.split("\n", 1)[1]
    text = " ".join(out.split())
    for name in chain.from_iterable(GROUPS.values()):
        sentence = summary(cli.get_command(None, name))
        assert sentence.endswith("."), name
        assert f" {name} {sentence}" in text, name
    assert max(map(len, out.splitlines())) <= 80


def test_without_a_command_the_commands_are_listed(nbspam):
    assert nbspam() == nbspam("--help") == nbspam("help")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_help_of_a_command(name, nbspam):
    assert nbspam("help", name) == nbspam(name, "--help")


def test_help_of_an_unknown_command_names_the_most_similar_one(nbspam):
    assert complains(nbspam("help", "trian"), 2, "no command 'trian'; did you mean train?")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_every_option_once_and_common_ones_last(name, nbspam):
    _, out, _ = nbspam(name, "--help")
    command = cli.get_command(None, name)

    assert TITLE.findall(out)[-1] == COMMON
    listed = re.findall(r"^  (-[^\s,]+)", out.split(":\n", 1)[1], re.MULTILINE)
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert sorted(listed) == sorted([*(each.opts[0] for each in options), "-h"])


@pytest.mark.parametrize("name", ["train", "eval", "compare", "lazy"])
def test_long_commands_have_no_long_groups(name, nbspam):
    _, out, _ = nbspam(name, "--help")

    assert "\nOptions:" not in out
    for group in re.split(TITLE, out)[2::2]:
        assert len(re.findall(r"^  -", group, re.MULTILINE)) <= 12


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does_in_a_sentence(name):
    for each in cli.get_command(None, name).params:
        if isinstance(each, click.Option):
            assert each.help[0].isupper(), each.opts
            assert re.search(r"[.]$|[.]  \[default: .*\]$", each.help), each.opts


def test_titles_stay_with_the_options_that_have_one():
    @click.command(cls=Command)
    @titled(
        "Outer",
        titled("Inner", click.option("--inner", help="An option.")),
        click.option("--outer", help="An option."),
    )
    @click.option("--plain", help="An option.")
    def command():
        pass

    text = click.Context(command, info_name="x").get_help()
    assert re.findall(r"^(\S.*):|(--\w+) [A-Z]", text, re.MULTILINE) == [
        ("Usage", ""),
        ("Inner", ""),
        ("", "--inner"),
        ("Outer", ""),
        ("", "--outer"),
        ("Options", ""),
        ("", "--plain"),
        ("Common options", ""),
    ]
