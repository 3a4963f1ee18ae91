"""The command line: groups of commands, whose modules are imported when they are called.

Every command parses its options, calls the library and prints the result.  Errors that the
program foresees are shown here, in one line each, and decide the exit status; any other
exception is a bug and keeps its traceback.
"""

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain
from typing import Any, NoReturn

# On import numpy's linear algebra starts a thread for every core; nothing here uses them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("VECLIB_MAXIMUM_THREADS", "1")  # of macOS
# A notebook's backend, which matplotlib may not know here; pictures are files.
os.environ.pop("MPLBACKEND", None)
# Huge pages pay off where arrays live long; here assembling them costs more than they save:
# E-010.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
# numpy prefers to sort by AVX-512, which takes four times as long as AVX2 on Zen 4: E-190.
with suppress(OSError), open("/proc/cpuinfo", "rb") as processor:
    if b"AuthenticAMD" in processor.read(200):
        os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4")

import click

from nbspam import __version__
from nbspam.cli import frame
from nbspam.cli.options import complaint
from nbspam.cli.output import warn
from nbspam.errors import InputError, ModelWarning, NbspamError, UsageError

# The commands in the order of help.  Below, their modules: judging has `classify_command`.
COMMAND_GROUPS = {
    "Daily use": ("classify", "predict", "explain", "filter", "sort", "setup", "serve", "held"),
    "Learning": ("train", "update", "unlearn", "relabel", "prune", "allow", "deny"),
    "Measuring": ("eval", "compare", "tune", "doubts"),
    "Looking inside": ("info", "words", "tokens", "doctor"),
    "Exchanging": ("export", "import", "vectorize", "shard", "merge", "share"),
    "Networks, clusters and tables": ("query", "lazy", "cluster", "table"),
}
TABLE_GROUPS = {
    "Daily use": ("classify", "predict", "explain"),
    "Learning": ("train", "update", "unlearn", "merge"),
    "Measuring": ("eval", "compare"),
    "Looking inside": ("info", "query", "export"),
    "Without a model file": ("lazy", "cluster"),
}
COMMANDS = (*chain.from_iterable(COMMAND_GROUPS.values()), "help")
TABLE_COMMANDS = tuple(chain.from_iterable(TABLE_GROUPS.values()))
_MODULES = {
    "judging": ("classify", "predict", "explain"),
    "delivering": ("filter", "sort"),
    "accounts": ("setup",),
    "serving": ("serve", "held"),
    "training": ("train", "shard", "vectorize", "lazy"),
    "learning": ("update", "unlearn", "relabel", "prune", "allow", "deny"),
    "measuring": ("eval", "tune", "doubts"),
    "comparing": ("compare",),
    "looking": ("info", "words", "tokens", "doctor", "query", "cluster"),
    "exchanging": ("export", "import", "merge", "share"),
    "main": ("table", "help"),
}
_TABLE_MODULES = {
    "table_asking": ("classify", "predict", "explain", "lazy", "eval", "info", "query", "export"),
    "comparing": ("compare",),
    "table_training": ("train", "update", "unlearn", "merge", "cluster"),
}
# The exit status of every failure if one of these options is given: bogofilter's, and
# EX_TEMPFAIL, after which mail systems try again later.
FAILURES = {"--exit-code": 3, "--tempfail": 75}


class CommandGroup(click.Group):
    """A group of commands, each of which is imported when it is called."""

    def __init__(
        self,
        groups: Mapping[str, Sequence[str]],
        modules: Mapping[str, Sequence[str]],
        prefix: str = "",
        **attributes: Any,
    ) -> None:
        """Make a group; modules: of nbspam.cli, with commands called `PREFIX_NAME_command`."""
        super().__init__(**attributes)
        self.groups, self.prefix = groups, prefix
        self._module_of = {name: module for module in modules for name in modules[module]}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of help."""
        return [*dict.fromkeys(chain(*self.groups.values(), self._module_of))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, importing its module."""
        if cmd_name not in self._module_of:
            return None
        module = import_module(f"nbspam.cli.{self._module_of[cmd_name]}")
        command: click.Command = getattr(module, f"{self.prefix}{cmd_name}_command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; without a command the commands are listed."""
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a command line, or fail and name the most similar command."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            advice = f"see `{ctx.command_path} --help`"
            likely = [each for each in names if each != f"un{name}"]  # the opposite
            ctx.fail(frame.near(f"no command {name!r}", name, likely, advice))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, each with a whole sentence, and then the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for title, names in self.groups.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            groups[title] = [
                (name, frame.summary(each)) for name, each in commands if each is not None
            ]
        if not self.prefix:
            groups["Options of most commands"] = frame.MOST_COMMON
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        groups["Options"] = [record for record in records if record is not None]
        frame.write_groups(groups, formatter)


@click.group(
    cls=CommandGroup,
    groups=COMMAND_GROUPS,
    modules=_MODULES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`nbspam COMMAND --help` is short; `nbspam help COMMAND` is complete.",
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


@click.group(
    "table",
    cls=CommandGroup,
    groups=TABLE_GROUPS,
    modules=_TABLE_MODULES,
    prefix="table_",
    epilog="`nbspam help table COMMAND` is the complete help of a command.",
)
def table_command() -> None:
    """Learn and judge rows of a table, whose columns are categories or numbers.

    A table of texts, with a text and a class in each row, is for the other commands.

    \b
    nbspam table train iris.csv --target species
    nbspam table classify new.csv
    nbspam table eval iris.csv --target species --cv 10
    """


@frame.subcommand("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]")
@click.pass_context
def help_command(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the complete help of a command, or list all commands.

    \b
    nbspam help
    nbspam help train
    nbspam help table train
    """
    asked = ctx.parent
    assert asked is not None  # the group of this command
    for name in names:
        if not isinstance(asked.command, click.Group):
            raise UsageError(f"help: {asked.command_path} has no commands; leave out {name}")
        _, command, _ = asked.command.resolve_command(asked, [name])
        assert command is not None  # an unknown name raises
        asked = click.Context(command, info_name=name, parent=asked)
    asked.formatter_class = frame.FullFormatter
    click.echo(asked.get_help())


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    # A closed standard output (`>&-`) refuses results; a closed standard error gets nothing.
    # Each keeps its descriptor: the log of a server goes to 2, whatever has been opened there.
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    os.set_blocking(0, True)  # otherwise a pause in a message would be taken for its end
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if getattr(sys.stdout, "write_through", False):  # PYTHONUNBUFFERED: a full disk would cut mail
        sys.stdout = open(1, "w", 1, sys.stdout.encoding, closefd=False)  # noqa: SIM115
    os.set_blocking(1, True)  # otherwise results would end where their reader is slow
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115  open to the end
    status = exit_status(sys.argv[1:])
    with suppress(OSError):  # full, which is reported
        sys.stdout.flush()
    # All files are closed.  Freeing memory object by object takes longer than a verdict.
    os._exit(status)


# Bytes of addresses that numpy and its linear algebra take; asking for them costs 12 us.
_FOR_NUMPY = 80 << 20
_OUT_OF_MEMORY = "out of memory; allow more (ulimit -v), or give less mail at once"


def exit_status(arguments: list[str]) -> int:
    """Run a command line; return 0 (success), 1 (error), 2 (usage) or the command's status."""
    call = frame.Call()
    # As standard error has it: a locale's encoding lacks letters of names, and of help.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        # Not cli.main, which turns a broken pipe into an error.
        with (
            warnings_in_one_line(),
            cli.make_context("nbspam", list(arguments), obj=call) as context,
        ):
            bytes(_FOR_NUMPY)  # raises MemoryError, where numpy would end the process
            status = cli.invoke(context)
        sys.stdout.flush()
        return status or 0
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    except BrokenPipeError:
        return 0
    except (click.Abort, KeyboardInterrupt):
        frame.diagnose("interrupted")
        failure = 130  # 128 + SIGINT, as in shells
    except (click.ClickException, NbspamError, OSError) as error:
        failure = _report(error)
    except Exception as error:
        if arguments[:1] == ["filter"]:  # mail passes; nothing is left of a message that was read
            with suppress(OSError):
                sys.stdout.buffer.writelines(sys.stdin.buffer)
        failure = _report(InputError(_lack(error)))
    # The environment and the configuration file set options too; with a wrong command line
    # only its words are known.
    given = [*arguments, *call.flags]
    return next((FAILURES[word] for word in given if word in FAILURES), failure)


def _lack(error: Exception) -> str:
    """Return the line on a system that lacks memory or a module; raises other errors."""
    if isinstance(error, ModuleNotFoundError) and error.name in sys.stdlib_module_names:
        return f"this Python was built without {error.name}; install its package, or another"
    with suppress(MemoryError):
        if not isinstance(error, MemoryError):
            # Without memory, libraries fail in many ways, such as "unknown encoding: euc-jp".
            bytes(_FOR_NUMPY)
            raise error
    return _OUT_OF_MEMORY


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Show each of the library's own warnings once, in one line; leave all others as they are."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, ModelWarning):
                warn(str(message))
            else:
                show_others(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("default", ModelWarning)
        yield


def _report(error: click.ClickException | NbspamError | OSError) -> int:
    """Print one line on an error; return its exit status."""
    text = str(error)
    if isinstance(error, click.ClickException):
        text = complaint(error)
    elif isinstance(error, OSError) and error.errno == errno.ENOMEM:
        text = _OUT_OF_MEMORY
    elif isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        text = "too many open files; allow more (ulimit -n)"
    elif isinstance(error, BlockingIOError) and not hasattr(error, "characters_written"):
        text = "too many processes; allow more (ulimit -u), or use one (-j 1)"
    elif isinstance(error, OSError) and error.errno == errno.EBADF:
        text = "standard output: closed; send it to a file, a pipe or /dev/null"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}; check it and its rights"
    elif isinstance(error, FileNotFoundError):
        text = "the current folder was removed; change to another one"
    elif isinstance(error, OSError):  # the library turns its own into NbspamError
        text = f"standard output: {error.strerror or error}; free some space or send it elsewhere"
    frame.diagnose(text)
    return 2 if isinstance(error, UsageError | click.UsageError) else 1
