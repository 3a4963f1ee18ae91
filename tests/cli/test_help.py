"""Help: commands and options in groups, whole sentences, `nbspam help`."""

import re
from itertools import chain

import click
import pytest

from nbspam.cli.frame import COMMON, FIRST, Command, summary, titled
from nbspam.cli.main import COMMANDS, GROUPS, TABLE_COMMANDS, TABLE_GROUPS, cli

TITLE = re.compile(r"^(\S.*):$", re.MULTILINE)
LEAVES = dict(cli.leaves())


def options(command):
    return [each for each in command.params if isinstance(each, click.Option)]


def test_without_a_command_the_commands_are_listed_each_in_one_group(nbspam):
    assert len({*COMMANDS}) == len(COMMANDS)
    assert len({*TABLE_COMMANDS}) == len(TABLE_COMMANDS)
    assert set(LEAVES) == {*COMMANDS, *(f"table {name}" for name in TABLE_COMMANDS)} - {"table"}
    assert nbspam() == nbspam("--help") == nbspam("help")
    assert nbspam("table") == nbspam("table", "--help") == nbspam("help", "table")


@pytest.mark.parametrize(("words", "groups"), [((), GROUPS), (("table",), TABLE_GROUPS)])
def test_the_list_of_commands_has_groups_and_whole_sentences(nbspam, words, groups):
    status, out, _ = nbspam(*words, "--help")

    assert status == 0
    assert TITLE.findall(out)[: len(groups)] == [*groups]
    assert "..." not in out.split("\n", 1)[1]
    text = " ".join(out.split())
    for name in chain.from_iterable(groups.values()):
        command = LEAVES.get(" ".join([*words, name])) or cli.get_command(None, name)
        assert f" {name} {summary(command)}" in text, name
        assert summary(command).endswith("."), name
    assert max(map(len, out.splitlines())) <= 80


def test_the_whole_help_lists_every_option_once_and_each_in_a_sentence(nbspam):
    for name in LEAVES:
        status, out, _ = nbspam("help", *name.split())
        command = LEAVES[name]

        assert status == 0
        assert f"nbspam {name}" in command.help  # an example
        assert TITLE.findall(out)[-1] == COMMON
        listed = re.findall(r"^  (-[^\s,]+)", out.split(":\n", 1)[1], re.MULTILINE)
        assert sorted(listed) == sorted([*(each.opts[0] for each in options(command)), "-h"])

    for name, command in LEAVES.items():
        for each in options(command):
            sentence = each.help.split("  ")[0]
            assert re.match("[A-Z]|[a-z]+, ", sentence), (name, each.opts)
            assert sentence.endswith(".") or "  [default: " in each.help, (name, each.opts)


def test_help_begins_with_the_options_that_users_need_most(nbspam):
    for name in LEAVES:
        status, out, _ = nbspam(*name.split(), "--help")
        command = LEAVES[name]
        names = [each for option in options(command) for each in option.opts]

        assert status == 0
        assert len(command.first) <= 4
        assert set(command.first) <= set(names)
        assert bool(command.first) == (FIRST in TITLE.findall(out))
        assert max(map(len, out.splitlines())) <= 80
        for each in options(command):
            assert re.search(rf"(?<![\w-]){each.opts[0]}(?![\w-])", out), each.opts
    for name in ["train", "shard", "table train"]:
        assert len(nbspam(*name.split(), "--help")[1].splitlines()) <= 61


def test_titles_stay_with_the_options_that_have_one():
    inner = titled("Inner", click.option("--inner", help="An option."))

    @click.command(cls=Command)
    @titled("Outer", inner, click.option("--outer", help="An option."))
    @click.option("--plain", help="An option.")
    def command():
        pass

    text = click.Context(command, info_name="x").get_help()
    found = re.findall(r"^(\S.*?)(?:, .*)?:|(--\w+) [A-Z]", text, re.MULTILINE)
    assert " ".join(map("".join, found)) == (
        "Usage Inner --inner Outer --outer Options --plain Common options"
    )
