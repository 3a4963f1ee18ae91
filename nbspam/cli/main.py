"""The command line: a group of commands whose modules are imported when they are called.

Every command parses its options, calls the library once and prints the result.  Errors that
the program foresees are shown here, in one line each; any other exception is a bug and keeps
its traceback.

Secret: exit statuses, and how little is imported before the command is known.
"""

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain
from typing import Any, NoReturn

# On import numpy's linear algebra starts a thread for every core; nothing here uses them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Huge pages pay off where arrays live long; here assembling them costs more than they save:
# E-010.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

import click

from nbspam import __version__
from nbspam.cli.command import FLAGS, summary, write_groups
from nbspam.cli.values import complaint
from nbspam.errors import ModelWarning, NbspamError, UsageError

GROUPS = {
    "Daily use": ("classify", "predict", "explain", "filter", "sort", "serve"),
    "Learning": ("train", "update", "unlearn", "relabel", "prune"),
    "Measuring": ("eval", "compare", "tune", "doubts"),
    "Looking inside": ("info", "words", "tokens", "doctor"),
    "Exchanging": ("export", "import", "merge"),
    "Tables, networks and clusters": ("query", "lazy", "cluster"),
}
COMMANDS = (*chain.from_iterable(GROUPS.values()), "help")
# The exit status for every failure, with these options: bogofilter's status, and EX_TEMPFAIL,
# upon which mail systems deliver again later.
FAILURES = {"--exit-code": 3, "--tempfail": 75}
_INTERRUPTED = 130  # 128 + SIGINT, as in shells
_MODULES = {"import": "import_"}  # where a command's name is a keyword of Python


class CommandGroup(click.Group):
    """A group with one module for each command, imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, importing its module."""
        if cmd_name not in COMMANDS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command = import_module(f"nbspam.cli.commands.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a command line, or fail and name the most similar command."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f"no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, each with a whole sentence, and then the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for title, names in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            groups[title] = [(name, summary(each)) for name, each in commands if each is not None]
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        groups["Options"] = [record for record in records if record is not None]
        write_groups(groups, formatter)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`nbspam help COMMAND` shows what a command does, and its options.",
)
@click.version_option(__version__, prog_name="nbspam")
def cli() -> None:
    """Sort mail and other text with naive Bayes.

    \b
    nbspam train mails/                 folders mails/ham and mails/spam
    nbspam classify message.eml
    nbspam classify < message.eml
    nbspam eval mails/ --cv 10
    """


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    # Imports create thousands of objects that live to the end.  By default the garbage
    # collector would scan them repeatedly, which takes a tenth of the start-up time.
    gc.set_threshold(50_000)
    # Whoever closed a stream (`>&-`) wants nothing of it.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    status = exit_status(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # full, which is reported
            stream.flush()
    # All files are closed.  Freeing memory object by object takes longer than a verdict.
    os._exit(status)


def exit_status(arguments: list[str]) -> int:
    """Run a command line; return 0 (success), 1 (error), 2 (usage) or the command's status."""
    facts: dict[str, Any] = {}
    try:
        # Not cli.main, which turns a broken pipe into an error.
        with (
            warnings_in_one_line(),
            cli.make_context("nbspam", list(arguments) or ["--help"]) as context,
        ):
            facts = context.meta
            status = cli.invoke(context)
        sys.stdout.flush()
        return status or 0
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    except BrokenPipeError:
        return 0
    except (click.Abort, KeyboardInterrupt):
        click.echo("nbspam: interrupted", err=True)
        failure = _INTERRUPTED
    except (click.ClickException, NbspamError, OSError) as error:
        failure = _report(error)
    # The environment and the configuration file set options too; with a wrong command line
    # only its words are known.
    given = [*arguments, *facts.get(FLAGS, ())]
    return next((FAILURES[word] for word in given if word in FAILURES), failure)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Show each of the library's own warnings once, in one line; leave all others as they are."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, ModelWarning):
                from nbspam.cli.output import warn

                warn(str(message))
            else:
                show_others(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("default", ModelWarning)
        yield


def _report(error: click.ClickException | NbspamError | OSError) -> int:
    """Print one line on an error; return its exit status."""
    from nbspam.printing import printable

    text = str(error)
    if isinstance(error, click.ClickException):
        text = complaint(error)
    elif isinstance(error, OSError):  # the library turns its own into NbspamError
        text = f"standard output: {error.strerror or error}; free some space or send it elsewhere"
    click.echo(f"nbspam: {printable(text)}", err=True)
    return 2 if isinstance(error, UsageError | click.UsageError) else 1
