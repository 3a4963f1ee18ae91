"""What all commands share: help that lists options in groups, each under its title.

click's own commands list all options in one run, and the packages that group them (cloup,
click-option-group, rich-click) take 6 to 60 ms of every start.

Secret: how help is laid out.
"""

from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

COMMON = "Common options"  # come last in every command
_PLAIN = "Options"  # those of one command alone
_MAX_WIDTH = 26  # of the left column; longer names have a line of their own


def titled(title: str, *declared: Decorator) -> Decorator:
    """Return a decorator that adds options, which help lists under a title."""

    def decorated(command: Function) -> Function:
        known = list(getattr(command, "__click_params__", ()))
        for option in reversed(declared):  # click lists the last one first
            command = option(command)
        for parameter in getattr(command, "__click_params__", ()):
            if parameter not in known:
                vars(parameter).setdefault("title", title)
        return command

    return decorated


class Command(click.Command):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, under their titles, in columns that are equally wide."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                is_help = parameter is self.get_help_option(ctx)
                title = COMMON if is_help else vars(parameter).get("title") or _PLAIN
                groups.setdefault(title, []).append(record)
        groups[COMMON] = groups.pop(COMMON)  # to the end
        write_groups(groups, formatter)


def write_groups(groups: dict[str, list[tuple[str, str]]], formatter: click.HelpFormatter) -> None:
    """Write titled lists of names and sentences, in columns that are equally wide."""
    names = [name for rows in groups.values() for name, _ in rows]
    width = max((len(name) for name in names if len(name) <= _MAX_WIDTH), default=_MAX_WIDTH)
    for title, rows in groups.items():
        with formatter.section(title):
            # click takes the widest name of a section for the width of its column.
            formatter.write_dl([(f"{name:<{width}}", text) for name, text in rows], width)


def summary(command: click.Command) -> str:
    """Return the first sentence of a command's help, whole."""
    return " ".join((command.help or "").split("\n\n")[0].split())
