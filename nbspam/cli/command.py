"""What all commands share: -q, -v, --no-config, the environment, and help in titled groups.

click's own commands list all options in one run, and the packages that group them (cloup,
click-option-group, rich-click) take 6 to 60 ms of every start: D-125.

Secret: how help is laid out, and how a command knows how much it may say.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import click

from nbspam.cli.frame.bars import bars
from nbspam.cli.frame.config import config_path, defaults

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

COMMON = "Common options"  # come last in every command
_PLAIN = "Options"  # those of one command alone
_MAX_WIDTH = 26  # of the left column; longer names have a line of their own
# Commands that print results while they read.
_AT_ONCE = {"classify", "predict", "explain", "lazy", "tokens"}
_QUIET, _VERBOSE, _CONFIG = "nbspam.quiet", "nbspam.verbose", "nbspam.config"  # of the context
FLAGS = "nbspam.flags"  # of the context: the options that are true, wherever they are set


# --- how much is said ------------------------------------------------------------------------


def _said(key: str) -> bool:
    """Return whether an option of the running command is given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


def is_quiet() -> bool:
    """Return whether the running command is to print results only; it wins over -v."""
    return _said(_QUIET)


def is_verbose() -> bool:
    """Return whether the running command is to say more."""
    return _said(_VERBOSE) and not is_quiet()


def say(line: str) -> None:
    """Say one line on standard error, with -v."""
    if is_verbose():
        from nbspam.printing import printable

        click.echo(f"nbspam: {printable(line)}", err=True)


def _keep(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def kept(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[key] = value

    return kept


def _configure(ctx: click.Context, _: click.Parameter, is_refused: bool) -> None:
    """Take the defaults of options from the configuration file, before they are read."""
    if not (is_refused or ctx.resilient_parsing):
        ctx.default_map = defaults(ctx)
        ctx.meta[_CONFIG] = bool(ctx.default_map)


def _common_options() -> list[click.Parameter]:
    """Return the options that every command has."""
    quiet = click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=_keep(_QUIET),
        help="Print results and errors only: no summary of what was done, no warnings, no"
        " progress.",
    )
    verbose = click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        expose_value=False,
        callback=_keep(_VERBOSE),
        help="Say on standard error which model is used, how much was read, and how long it"
        " took; -q wins.",
    )
    no_config = click.Option(
        ["--no-config"],
        is_flag=True,
        is_eager=True,  # before the options whose defaults it decides about
        expose_value=False,
        callback=_configure,
        help="Do not read the configuration file.",
    )
    for option in (quiet, verbose, no_config):
        vars(option)["title"] = COMMON
    return [quiet, verbose, no_config]


# --- commands --------------------------------------------------------------------------------


class Command(click.Command):
    """A command with the common options, whose help lists options in groups.

    An option without a value on the command line has that of the environment, else that of
    the configuration file, else its default.  The variable of `--min-df` of `nbspam train` is
    NBSPAM_TRAIN_MIN_DF.
    """

    def __init__(self, name: str, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        for option in self.params:
            if isinstance(option, click.Option) and option.envvar is None:
                spelt = max(option.opts, key=len).lstrip("-").replace("-", "_")
                option.envvar = f"NBSPAM_{name}_{spelt}".upper()
        self.params += _common_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with -v, say by which model and how long."""
        start = time.perf_counter()
        ctx.meta[FLAGS] = [
            max(each.opts, key=len)
            for each in self.params
            if ctx.params.get(str(each.name)) is True
        ]
        if ctx.meta.get(_CONFIG):
            say(f"configuration {config_path()}")
        if "model_path" in ctx.params:
            say(f"model {ctx.params['model_path']}")
        with nullcontext() if is_quiet() else bars(self.name in _AT_ONCE):
            result = super().invoke(ctx)
        say(f"took {time.perf_counter() - start:.2f} s")
        return result

    def groups(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by title, in the order of help: the common ones come last."""
        found: dict[str, list[click.Option]] = {}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                is_help = option is self.get_help_option(ctx)
                title = COMMON if is_help else vars(option).get("title") or _PLAIN
                found.setdefault(title, []).append(option)
        found[COMMON] = found.pop(COMMON)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, under their titles, in columns that are equally wide."""
        records = {
            title: [option.get_help_record(ctx) for option in options]
            for title, options in self.groups(ctx).items()
        }
        shown = {title: [each for each in rows if each] for title, rows in records.items()}
        write_groups(shown, formatter)


# --- help ------------------------------------------------------------------------------------


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
