"""The command line: one group of commands, loaded one at a time.

Every command parses, calls the library once and reports.  Errors made on purpose are
shown here, in one line, and nowhere else; anything else is a bug and keeps its traceback.

Secret: exit statuses, and how little is imported before the command is known.
"""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

# numpy's linear algebra would start a thread a core on import; nothing here uses it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Huge pages pay off where arrays live long; here gathering them takes longer: E-010.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

import click

from nbspam import __version__
from nbspam.errors import NbspamError, UsageError

COMMANDS = (
    "train",
    "update",
    "unlearn",
    "relabel",
    "merge",
    "prune",
    "doctor",
    "classify",
    "predict",
    "explain",
    "eval",
    "compare",
    "tune",
    "tokens",
    "words",
    "info",
    "dump",
    "load",
    "filter",
    "sort",
    "cluster",
    "lazy",
    "query",
)
# What these options say when anything at all goes wrong: bogofilter's contract, and the
# EX_TEMPFAIL of those who deliver mail, who then try again later.
FAILURES = {"--exit-code": 3, "--tempfail": 75}
_INTERRUPTED = 130  # 128 + SIGINT, as shells say it


class CommandGroup(click.Group):
    """A group whose commands live in one module each, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order help shows them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, importing its module."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"nbspam.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command asked for, or fail with the nearest name there is."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f"no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
    # Importing makes thousands of objects that stay: to look for garbage among them, again
    # and again, takes a tenth of the start.
    gc.set_threshold(50_000)
    status = exit_status(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # closed or full: reported already; or none
            stream.flush()
    # All files are closed.  To give memory back piece by piece takes longer than a verdict.
    os._exit(status)


def exit_status(arguments: list[str]) -> int:
    """Run a command line and return 0 done, 1 error, 2 wrong usage, or what it asked for."""
    try:
        # Not cli.main: that one would turn a broken pipe into an error.
        with cli.make_context("nbspam", list(arguments)) as context:
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
    return next((FAILURES[word] for word in arguments if word in FAILURES), failure)


def _report(error: click.ClickException | NbspamError | OSError) -> int:
    """Print one line on what went wrong; return the status that says so."""
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    from nbspam.printing import printable

    text = str(error)
    if isinstance(error, OSError):  # none that the library foresees: standard output's
        text = f"standard output: {error.strerror or error}; free some space or send it elsewhere"
    click.echo(f"nbspam: {printable(text)}", err=True)
    return 2 if isinstance(error, UsageError) else 1
