"""The configuration file: defaults of options, by command.

    [common]            # of every command that has the option
    model-file = "~/mail.nbspam"

    [classify]
    fp-cost = 20

A key is an option's long name.  The environment and the command line say otherwise.

Secret: where the file is, and how its values become those of options.
"""

import os
import sys
from typing import Any

import click

COMMON_TABLE = "common"
# What click calls types of values, and what users do.
_TYPES = {
    "valid integer range": "whole number",
    "valid float range": "number",
    "valid integer": "whole number",
}
_ADVICE = "mend the file, or give --no-config"


def config_path() -> str:
    """Return where the configuration file is, if there is one."""
    return os.path.join(user_folder("APPDATA", "XDG_CONFIG_HOME", "~/.config"), "config.toml")


def user_folder(on_windows: str, on_unix: str, default: str) -> str:
    """Return where a kind of nbspam's files is on this system.

    on_windows, on_unix: environment variables that name the folder above.  default: that of
    Unix without the variable.
    """
    if sys.platform == "darwin":
        base = "~/Library/Application Support"
    elif sys.platform == "win32":
        base = os.environ.get(on_windows) or "~"
    else:
        base = os.environ.get(on_unix) or default
    return os.path.join(os.path.expanduser(base), "nbspam")


def defaults(ctx: click.Context) -> dict[str, Any]:
    """Return the values of a command's options in the configuration file, by parameter.

    Raises click.UsageError, with file and key, if anything in it that concerns the command is
    wrong.
    """
    path = config_path()
    try:
        stream = open(path, "rb")  # noqa: SIM115  closed below
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}; {_ADVICE}") from None
    import tomllib

    try:
        with stream:
            tables = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: not TOML: {error}; {_ADVICE}") from None
    group = ctx.parent.command if ctx.parent is not None else None
    assert isinstance(group, click.Group)
    _check(group, ctx, path, tables)
    values: dict[str, Any] = {}
    for table in (COMMON_TABLE, str(ctx.command.name)):  # the command's own come last
        values |= _values(ctx, path, table, tables.get(table, {}))
    return values


def _values(ctx: click.Context, path: str, table: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the values of one table, by parameter; raises click.UsageError."""
    options = _options(ctx.command)
    values: dict[str, Any] = {}
    for key, value in keys.items():
        if key in options:
            values[str(options[key].name)] = _value(ctx, options[key], value, path, table, key)
        elif table != COMMON_TABLE:
            raise _unknown(path, table, key, list(options))
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


def _value(
    ctx: click.Context, option: click.Option, value: object, path: str, table: str, key: str
) -> object:
    """Return the value of an option as the command line would spell it, checked."""
    where = f"{path}: [{table}] {key}"
    if option.is_flag:
        if isinstance(value, bool):
            return value
        raise click.UsageError(f"{where}: not true or false; {_ADVICE}")
    several = option.multiple or option.nargs != 1
    words = value if several and isinstance(value, list) else [value]
    if any(isinstance(word, bool) or not isinstance(word, str | int | float) for word in words):
        raise click.UsageError(
            f"{where}: not a string or a number{' or a list of them' * several}; {_ADVICE}"
        )
    spelt = [os.path.expanduser(str(word)) for word in words]
    try:
        option.type_cast_value(ctx, spelt if several else spelt[0])
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {wrong_value(error)}; {_ADVICE}") from None
    return spelt if several else spelt[0]


def wrong_value(error: click.BadParameter) -> str:
    """Return what is wrong with a value in click's words, but for its names of types."""
    text = error.message.rstrip(".")
    for theirs, ours in _TYPES.items():
        text = text.replace(theirs, ours)
    return text


def _check(group: click.Group, ctx: click.Context, path: str, tables: dict[str, Any]) -> None:
    """Raise click.UsageError for tables that are no commands', and common keys of no command."""
    names = [COMMON_TABLE, *group.list_commands(ctx)]
    for table, keys in tables.items():
        if not isinstance(keys, dict):
            raise click.UsageError(
                f"{path}: {table}: in no table; write it under [{COMMON_TABLE}] or a command"
            )
        if table not in names:
            raise click.UsageError(f"{path}: [{table}]: {_near('no such command', table, names)}")
    wanted = set(tables.get(COMMON_TABLE, {})) - _options(ctx.command).keys()
    known: set[str] = set()
    for name in names[1:]:
        if not wanted - known:
            return
        command = group.get_command(ctx, name)  # which imports it; rarely needed
        known |= _options(command).keys() if command is not None else set()
    for key in sorted(wanted - known):
        raise _unknown(path, COMMON_TABLE, key, list(known))


def _unknown(path: str, table: str, key: str, known: list[str]) -> click.UsageError:
    return click.UsageError(f"{path}: [{table}] {key}: " + _near("no such option", key, known))


def _near(wrong: str, name: str, known: list[str]) -> str:
    """Return what is wrong with a name, and the most similar name that there is."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"{wrong}; " + (f"did you mean {near[0]}?" if near else _ADVICE)
