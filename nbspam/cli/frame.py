"""The frame of every command: its configuration, how much it says, and its help in groups.

An option without a value on the command line has that of the environment, else that of the
configuration file, else its default.  The file is TOML with a table for each command; its keys
are the long names of options:

    [common]                  # of every command that has the option
    model-file = "~/mail.nbspam"

    [classify]                # of one command
    fp-cost = 20

    [table.train]             # of one command of `nbspam table`
    target = "species"

    [account.home]            # a mail account, which `nbspam sort home` means
    url = "imaps://ann@mail.example.org/"
    password-command = "pass show mail"

click's own commands list all options in one run, and the packages that group them (cloup,
click-option-group, rich-click) take 6 to 60 ms of every start.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import click

from nbspam.errors import UsageError
from nbspam.printing import printable, watched

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

COMMON = "Common options"  # come last in every command
ACCOUNTS = "Mail accounts"  # before them; both are explained in the long help only
FIRST = "Used most"
OTHERS = "More options"  # those that stand under no title
_MAX_WIDTH = 26  # of the left column; longer names have a line of their own
_MAX_SHORT = 48  # of the right column
# Commands that print results while they read.
_AT_ONCE = {"classify", "predict", "explain", "lazy", "tokens"}

COMMON_TABLE, ACCOUNT_TABLE = "common", "account"
# click's names of types of values, and those for users.
_TYPES = {
    "valid integer range": "whole number",
    "valid float range": "number",
    "valid integer": "whole number",
}
ADVICE = "mend the file, or give --no-config"


class Call:
    """The values of every command's options in one call; click's `obj` of all its contexts."""

    quiet = verbose = False
    flags: tuple[str, ...] = ()  # the options that are true, wherever they are set
    arguments: tuple[str, ...] = ()  # of the command; `nbspam serve` reads them again


def running_call() -> Call:
    """Return the options of the running call."""
    context = click.get_current_context(silent=True)
    return Call() if context is None else context.ensure_object(Call)


# --- how much is said ------------------------------------------------------------------------


def is_quiet() -> bool:
    """Return whether the running command prints results only; it wins over -v."""
    return running_call().quiet


def diagnose(line: str) -> None:
    """Print one line of diagnosis on standard error."""
    echo_beside(f"nbspam: {printable(line)}")


def echo_beside(line: str) -> None:
    """Print one line on standard error; if nothing can be written there, the command goes on."""
    with suppress(OSError):
        click.echo(line, err=True)


def say(line: str) -> None:
    """Say one line on standard error, with -v."""
    if running_call().verbose and not is_quiet():
        diagnose(line)


# --- the configuration file ------------------------------------------------------------------


def config_path() -> str:
    """Return where the configuration file is, if there is one."""
    return os.path.join(user_folder("XDG_CONFIG_HOME", "~/.config"), "config.toml")


def user_folder(variable: str, default: str) -> str:
    """Return where a kind of nbspam's files is on this system.

    variable: of the environment, that names the folder above; one that is relative is ignored,
    as freedesktop.org specifies.  default: that of Linux without it.
    """
    default = "~/Library/Application Support" if sys.platform == "darwin" else default
    folder = os.path.expanduser(os.environ.get(variable, ""))
    return os.path.join(folder if os.path.isabs(folder) else os.path.expanduser(default), "nbspam")


def at_home(word: str) -> str:
    """Return a word with the home folder for `~/`, which shells leave behind = and in quotes."""
    start, tilde, path = word.partition("~/")
    is_home = tilde and start[-1:] in ("", "=") and "/" not in start
    return start + os.path.expanduser(tilde) + path if is_home else word


def configured_tables(path: str) -> dict[str, Any]:
    """Return the tables of the configuration file, {} without one; raises click.UsageError.

    A file in a folder that may not be entered counts as missing, as in git.
    """
    if not os.path.exists(path):
        return {}
    if not os.path.isfile(path):
        raise click.UsageError(f"{path}: not a file; {ADVICE}")
    import tomllib

    try:
        with open(path, encoding="utf-8-sig") as stream:  # as editors of Windows write it, too
            return tomllib.loads(stream.read())
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}; {ADVICE}") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not TOML: {error}; {ADVICE}") from None


def defaults(ctx: click.Context) -> dict[str, Any]:
    """Return the values of a command's options in the configuration file, by parameter.

    Raises click.UsageError, with file and key, if anything in it that concerns the command is
    wrong.
    """
    path = config_path()
    tables = configured_tables(path)
    root = command_group(ctx, is_table=False)
    found = dict(_tables(root, ctx, path, tables))
    _check_common(root, ctx, path, found)
    own = ctx.command_path.partition(" ")[2].replace(" ", ".")
    values: dict[str, Any] = {}
    for table in (COMMON_TABLE, own):  # the command's own come last
        values |= _values(ctx, path, table, found.get(table, {}))
    return values


def _tables(
    group: click.Group, ctx: click.Context, path: str, tables: dict[str, Any], above: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables of a file by name, such as `table.train`; raises UsageError."""
    names = [*([] if above else [COMMON_TABLE]), *group.list_commands(ctx)]
    for name, keys in tables.items():
        table = above + name
        if table == ACCOUNT_TABLE:
            continue  # see `accounts`
        if not isinstance(keys, dict):
            place = f"[{above}COMMAND]" if above else f"[{COMMON_TABLE}] or a command"
            raise click.UsageError(f"{path}: {table}: in no table; write it under {place}")
        if name not in names:
            raise click.UsageError(f"{path}: [{table}]: {near('no such command', name, names)}")
        # No other command is a group, and to get one would import it.
        inner = group.get_command(ctx, name) if name == "table" else None
        if isinstance(inner, click.Group):
            yield from _tables(inner, ctx, path, keys, f"{table}.")
        else:
            yield table, keys


def _values(ctx: click.Context, path: str, table: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the values of one table, by parameter; raises click.UsageError."""
    options = _options(ctx.command)
    values: dict[str, Any] = {}
    for key, value in keys.items():
        where = f"{path}: [{table}] {key}"
        if key in options:
            values[str(options[key].name)] = _value(ctx, options[key], value, where)
        elif table != COMMON_TABLE:
            raise click.UsageError(f"{where}: {near('no such option', key, options)}")
    return values


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by the keys that set them."""
    return {
        name.lstrip("-"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name != "no_config"
        for name in parameter.opts
        if name.startswith("--") or len(parameter.opts) == 1
    }


def _value(ctx: click.Context, option: click.Option, value: object, where: str) -> object:
    """Return the value of an option as the command line would spell it, checked."""
    if option.is_flag:
        if isinstance(value, bool):
            return value
        raise click.UsageError(f"{where}: not true or false; {ADVICE}")
    several = option.multiple or option.nargs != 1
    words = value if several and isinstance(value, list) else [value]
    if any(isinstance(word, bool) or not isinstance(word, str | int | float) for word in words):
        raise click.UsageError(
            f"{where}: not a string or a number{' or a list of them' * several}; {ADVICE}"
        )
    if any("\0" in str(word) for word in words):
        raise click.UsageError(f"{where}: has NUL, as no command line can; {ADVICE}")
    spelt = [at_home(str(word)) for word in words]
    try:
        option.type_cast_value(ctx, spelt if several else spelt[0])
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {wrong_value(error)}; {ADVICE}") from None
    return spelt if several else spelt[0]


def wrong_value(error: click.BadParameter) -> str:
    """Return the fault of a value in click's words, but for its names of types."""
    text = error.message.rstrip(".")
    for theirs, ours in _TYPES.items():
        text = text.replace(theirs, ours)
    return text


def _check_common(
    root: click.Group, ctx: click.Context, path: str, tables: dict[str, dict[str, Any]]
) -> None:
    """Raise click.UsageError for common keys that are options of no command."""
    wanted = set(tables.get(COMMON_TABLE, {})) - _options(ctx.command).keys()
    known: set[str] = set()
    for _, command in leaves(root):  # which imports it; rarely needed
        if not wanted - known:
            return
        known |= _options(command).keys()
    for key in sorted(wanted - known):
        where = f"{path}: [{COMMON_TABLE}] {key}"
        raise click.UsageError(f"{where}: {near('no such option', key, known)}")


def near(wrong: str, name: str, known: Iterable[str], advice: str = ADVICE) -> str:
    """Return the fault of a name, and the most similar name that there is, or else advice."""
    meant = most_similar(name, known)
    return f"{wrong}; " + (advice if meant is None else f"did you mean {meant}?")


def most_similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name of which another one may be a slip."""
    from difflib import get_close_matches

    # The default of 0.6 takes --force for a slip of --format.
    return next(iter(get_close_matches(name, [*known], 1, cutoff=0.7)), None)


# --- commands --------------------------------------------------------------------------------


def _note(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    setattr(ctx.ensure_object(Call), str(option.name), value)


def _configure(ctx: click.Context, _: click.Parameter, is_refused: bool) -> None:
    """Take the defaults of options from the configuration file; `help` works without it."""
    if not (is_refused or ctx.resilient_parsing or ctx.command.name == "help"):
        ctx.default_map = defaults(ctx)


def _common_options() -> list[click.Parameter]:
    """Return the options that every command has."""
    quiet = "Print results and errors only: no summary of what was done, no warnings, no progress."
    verbose = "Say on standard error which model is used, how much was read, and how long it took;"
    flag = partial(click.Option, is_flag=True, expose_value=False)
    made: list[click.Parameter] = [
        flag(["-q", "--quiet"], callback=_note, help=quiet),
        flag(["-v", "--verbose"], callback=_note, help=f"{verbose} -q wins."),
        # Eager, because it decides about the defaults of other options.
        flag(
            ["--no-config"],
            callback=_configure,
            is_eager=True,
            help="Do not read the configuration file.",
        ),
    ]
    for option in made:
        vars(option)["title"] = COMMON
    return made


class Command(click.Command):
    """A command with the common options, whose help lists options in groups.

    The variable of the environment for `--min-df` of `nbspam table train` is
    NBSPAM_TABLE_TRAIN_MIN_DF.
    """

    def __init__(self, name: str, first: tuple[str, ...] = (), **attributes: Any) -> None:
        self.group, _, own_name = name.rpartition(" ")
        super().__init__(own_name, **attributes)
        self.first = first
        self.params += _common_options()
        for option in self.params:
            if isinstance(option, click.Option) and option.envvar is None:
                variable = f"NBSPAM {name} {_long(option).lstrip('-')}"
                option.envvar = variable.replace(" ", "_").replace("-", "_").upper()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; refuse an option of tables, or for mail, by the right name."""
        ctx.ensure_object(Call).arguments = tuple(args)
        try:
            os.fsencode(" ".join(args))
            return super().parse_args(ctx, [*map(at_home, args)])
        except UnicodeEncodeError as error:  # UTF-8, as Python reads it in EUC-JP's locale
            where = f"{error.object}: not text in {error.encoding}, the locale's encoding"
            raise click.UsageError(f"{where}; set LC_ALL=C.UTF-8") from None
        except click.NoSuchOption as error:
            kind = "mail and text" if self.group else "tables"
            other = command_group(ctx, not self.group).get_command(ctx, str(self.name))
            if other is None or not any(error.option_name in each.opts for each in other.params):
                raise
            command = f"nbspam {self.name}" if self.group else f"nbspam table {self.name}"
            raise click.UsageError(f"{error.option_name}: for {kind}; use: {command}") from None
        except click.BadOptionUsage as error:
            error.ctx = ctx  # which click leaves out
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with -v, say by which model and how long."""
        start = time.perf_counter()
        call = ctx.ensure_object(Call)
        call.flags = tuple(
            _long(each) for each in self.params if ctx.params.get(str(each.name)) is True
        )
        if ctx.default_map:
            say(f"configuration {config_path()}")
        if "model_path" in ctx.params:
            say(f"model {ctx.params['model_path']}")
        try:
            with _progress(self.name in _AT_ONCE):
                result = super().invoke(ctx)
        except UsageError as error:
            text = str(error)
            raise UsageError("; ".join([text, *self._configured_in(text, ctx)])) from error
        sys.stdout.flush()  # so that this line comes last where both streams are one
        say(f"took {time.perf_counter() - start:.2f} s")
        return result

    def _configured_in(self, text: str, ctx: click.Context) -> Iterator[str]:
        """Yield remarks on the options that an error names and the command line does not set."""
        named = re.findall("--[a-z-]+", text)
        kinds = click.core.ParameterSource
        for option in (each for each in self.params if _long(each) in named):
            source = ctx.get_parameter_source(str(option.name))
            if source is kinds.DEFAULT_MAP:
                yield f"{_long(option)} is set in {config_path()}, which --no-config ignores"
            elif source is kinds.ENVIRONMENT:
                yield f"{_long(option)} is set by {option.envvar}"

    def groups(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the options by title, in the order of help: the common ones come last."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        first = [option for name in self.first for option in options if name in option.opts]
        found: dict[str, list[click.Option]] = {FIRST: first} if first else {}
        for option in (each for each in options if each not in first):
            title = vars(option).get("title") or (OTHERS if first else "Options")
            title = COMMON if option is self.get_help_option(ctx) else title
            found.setdefault(title, []).append(option)
        last = {title: found.pop(title) for title in (ACCOUNTS, COMMON) if title in found}
        return found | last

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their titles: in short, unless the formatter wants all."""
        groups = self.groups(ctx)
        is_full = isinstance(formatter, FullFormatter)
        common = [] if is_full else [*groups.pop(ACCOUNTS, []), *groups.pop(COMMON)]
        shown = {
            title: [_record(option, ctx, is_full) for option in options]
            for title, options in groups.items()
        }
        write_groups(shown, formatter)
        if common:
            names = [f"{o.opts[0]} {o.metavar}" if o.metavar else o.opts[0] for o in common]
            own = ctx.command_path.replace(" ", " help ", 1)
            with formatter.section(f"{COMMON}, explained by `{own}`"):
                formatter.write_text(", ".join(names))


def command_group(ctx: click.Context, is_table: bool) -> click.Group:
    """Return the group of all commands, or the group `table`."""
    root = ctx.find_root().command
    assert isinstance(root, click.Group)
    group = root.get_command(ctx, "table") if is_table else root
    assert isinstance(group, click.Group)
    return group


def subcommand(
    name: str, *first: str, kind: type[Command] = Command
) -> Callable[[Function], Command]:
    """Return a decorator that makes a command of a function.

    name: after `nbspam`, such as `table train`.  first: the long names of the options that users
    need most, which help lists first.
    """
    return click.command(name, cls=kind, first=first)


def leaves(group: click.Group) -> Iterator[tuple[str, Command]]:
    """Yield every command, also of inner groups, by its full name, such as `table train`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in leaves(command))
        elif isinstance(command, Command):
            yield name, command


# As `nbspam help` explains them; each command that has one says more of it.
MOST_COMMON = [
    ("-m, --model-file FILE", "The model file; NBSPAM_MODEL sets it for all commands."),
    ("-j, --jobs N", "Number of processes."),
    ("--engine NAME", "Workers that count: fork, dask, loky or ray."),
    ("--json", "Print JSON instead of text."),
    ("--strict", "Fail if an item cannot be read, instead of skipping it."),
    ("-q, --quiet", "Print results and errors only."),
    ("-v, --verbose", "Say which model is used, how much was read, and how long it took."),
    ("--no-config", "Do not read the configuration file."),
]


@contextmanager
def _progress(prints_results_at_once: bool) -> Iterator[None]:
    """Show bars of long loops within the context, if somebody is there to see them.

    prints_results_at_once: whether the command prints while it reads.  On a terminal these
    lines are progress enough, and a bar would stand between them.
    """
    sees_bars = sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    if is_quiet() or not sees_bars or (prints_results_at_once and sys.stdout.isatty()):
        yield
        return
    from nbspam.cli.progress import DELAY, Watcher

    watcher = Watcher(DELAY)
    with watched(watcher):
        try:
            yield
        finally:
            watcher.end()  # before the line that says why the command ends


def _long(option: click.Parameter) -> str:
    return max(option.opts, key=len)


# --- help ------------------------------------------------------------------------------------


class FullFormatter(click.HelpFormatter):
    """Writes the help of `nbspam help COMMAND`, with all that is known of each option."""


def _record(option: click.Option, ctx: click.Context, is_full: bool) -> tuple[str, str]:
    """Return the names of an option and its help: the first sentence, unless all is wanted."""
    names, text = option.get_help_record(ctx) or ("", "")
    if is_full:
        return names, text
    names = re.sub(r"(--([a-z-]+)) / --no-\2", r"\1 / --no-…", names)
    names = re.sub(r"(--[a-z-]+), --[a-z-]+", r"\1", names)  # without an alias
    sentence, dot, rest = text.partition(".  ")
    default = re.search(r"\[default: [^]]*\]", rest)
    short = f"{sentence}{dot} {default[0]}" if dot and default else ""
    return names, short if 0 < len(short) <= _MAX_SHORT else sentence + dot.strip()


def titled(*declared: Decorator | str) -> Decorator:
    """Return a decorator that adds options; a string is the title of the options after it."""
    title = ""
    titles: list[tuple[str, Decorator]] = []
    for each in declared:
        if isinstance(each, str):
            title = each
        else:
            titles.append((title, each))

    def decorated(command: Function) -> Function:
        for title, option in reversed(titles):  # click lists the last one first
            known = list(getattr(command, "__click_params__", ()))
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
