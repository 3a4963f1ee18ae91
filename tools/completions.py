"""Completion for bash, zsh and fish: scripts that know all commands, options and choices.

Nothing of nbspam runs when a user presses the tab key: that would take 100 ms each time.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from nbspam.cli.frame import leaves, summary
from nbspam.cli.main import COMMANDS, TABLE_COMMANDS, cli, table_command

HEAD = "# Completion of nbspam for {}.  Written by tools/manual.py; do not edit.\n"
_PATHS = re.compile(r"DIR|FILE|MAILBOX|PATH|SOURCE")  # in the metavar of what takes a path


class Known(NamedTuple):
    """What completion knows of an option."""

    short: list[str]  # with their hyphens
    long: list[str]
    text: str  # what it does, in a sentence
    takes_value: bool
    choices: list[str]
    takes_path: bool
    has_name: bool  # before the path, as in NAME=PATH
    repeats: bool


def listed(group: click.Group, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of a group's commands, and what each does in a sentence."""
    context = click.Context(group)
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        yield name, summary(command)


def options(command: click.Command) -> list[Known]:
    """Return what completion knows of the options of a command."""
    known = []
    context = click.Context(command, info_name=command.name, help_option_names=["-h", "--help"])
    for option in command.get_params(context):
        if not isinstance(option, click.Option):
            continue
        names = [*option.opts, *option.secondary_opts]
        takes_value = not option.is_flag
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        known.append(
            Known(
                short=[name for name in names if not name.startswith("--")],
                long=[name for name in names if name.startswith("--")],
                text=re.split(r"[.;](?:\s|$)", option.help or "")[0],
                takes_value=takes_value,
                choices=[str(choice) for choice in choices],
                takes_path=takes_value and bool(_PATHS.search(option.metavar or "")),
                has_name="=" in (option.metavar or ""),
                repeats=option.multiple,
            )
        )
    return known


def actions(command: click.Command) -> str:
    """Return the words that the argument of a command can be, or nothing."""
    kinds = [each.type for each in command.params if isinstance(each, click.Argument)]
    return " ".join(w for kind in kinds if isinstance(kind, click.Choice) for w in kind.choices)


def names_of(known: Known) -> list[str]:
    """Return all names of an option."""
    return [*known.short, *known.long]


# --- bash ------------------------------------------------------------------------------------

_BASH = """
_nbspam() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ $word == -* ]] && continue
        command+=${{command:+ }}$word
        [[ $command == table ]] || break
    done
    # In --option=value, bash takes the sign for a word.
    [[ $prev == = ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}
    [[ $cur == = ]] && cur=
    local words= kind=any
    case "$command $prev" in
        "help table") words="{table}" kind=word ;;
{values}
    esac
    [[ " ${{COMP_WORDS[*]:0:COMP_CWORD}} " == *" -- "* ]] && words= kind=path
    if [[ $kind == any ]]; then
        case "$command/$cur" in
            /*) words="{commands} --version --help" kind=word ;;
            help/*) words="{commands}" kind=word ;;
            table/*) words="{table} --help" kind=word ;;
{options}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ ${{#COMPREPLY[@]}} -eq 0 && $kind != word ]]; then
        compopt -o default
    fi
}}
complete -F _nbspam nbspam
"""


def bash() -> str:
    """Return the script for bash."""
    values, all_options = [], []
    for name, command in leaves(cli):
        known = options(command)
        words = " ".join(each for option in known for each in names_of(option))
        all_options.append(f'            "{name}"/-*) words="{words}" ;;')
        if actions(command):
            all_options.append(f'            "{name}"/*) words="{actions(command)}" ;;')
        for option in known:
            pattern = "|".join(f'"{name} {each}"' for each in names_of(option))
            if option.choices:
                chosen = " ".join(option.choices)
                values.append(f'        {pattern}) words="{chosen}" kind=word ;;')
            elif option.takes_value and not option.takes_path:
                values.append(f"        {pattern}) kind=word ;;")
            elif option.takes_path:
                values.append(f"        {pattern}) kind=path ;;")
    text = _BASH.format(
        values="\n".join(values),
        commands=" ".join(COMMANDS),
        table=" ".join(TABLE_COMMANDS),
        options="\n".join(all_options),
    )
    return HEAD.format("bash") + text


# --- zsh -------------------------------------------------------------------------------------

_ZSH = """
_nbspam() {{
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \\
    '(- *)'{{-h,--help}}'[Show the commands]' \\
    '(- *)--version[Show the version]' \\
    '1:command:->command' \\
    '*::argument:->argument'
  case $state in
    command)
      local -a commands
      commands=(
{commands}
      )
      _describe command commands
      ;;
    argument)
      if [[ $words[1] == table ]]; then
        if (( CURRENT == 2 )); then
          local -a commands
          commands=(
{table}
          )
          _describe command commands
          return
        fi
        shift words
        (( CURRENT-- ))
        words[1]="table $words[1]"
      fi
      case $words[1] in
{arguments}
      esac
      ;;
  esac
}}

if [ "$funcstack[1]" = _nbspam ]; then
  _nbspam "$@"
else
  compdef _nbspam nbspam
fi
"""


def zsh() -> str:
    """Return the script for zsh, which begins with the command that it completes."""
    arguments = []
    for name, command in leaves(cli):
        lines = [f'        "{name}")', "          _arguments -s -S \\"]
        lines += [f"            {spec} \\" for each in options(command) for spec in _specs(each)]
        what = ["'*:file:_files'"]
        if actions(command):
            what.insert(0, f"'1:action:({actions(command)})' \\")
        if name == "help":
            within = f"{{ [[ $words[2] == table ]] && compadd {' '.join(TABLE_COMMANDS)} }}"
            what = [f"'1:command:({' '.join(COMMANDS)})' \\", f"'2:command:{within}'"]
        arguments += [*lines, *(f"            {each}" for each in what), "          ;;"]
    text = _ZSH.format(
        commands=_described(cli, COMMANDS),
        table=_described(table_command, TABLE_COMMANDS),
        arguments="\n".join(arguments),
    )
    return "#compdef nbspam\n" + HEAD.format("zsh") + text


def _described(group: click.Group, names: Sequence[str]) -> str:
    lines = (f"        {_quoted(f'{name}:{text}')}" for name, text in listed(group, names))
    return "\n".join(lines)


def _specs(known: Known) -> Iterator[str]:
    """Yield what _arguments wants to know of an option: a line for each of its names."""
    text = re.sub(r"([\[\]:\\])", r"\\\1", known.text)
    value = ""
    if known.choices:
        value = f":value:({' '.join(known.choices)})"
    elif known.takes_value:
        files = "{ compset -P '*='; _files }" if known.has_name else "_files"
        value = f":file:{files}" if known.takes_path else ":value: "
    for name in names_of(known):
        joint = "=" if known.takes_value and name.startswith("--") else ""
        yield _quoted(f"{'*' * known.repeats}{name}{joint}[{text}]{value}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ------------------------------------------------------------------------------------


def fish() -> str:
    """Return the script for fish."""
    first = "__fish_use_subcommand"
    lines = [f"complete -c nbspam -n {first} -f"]
    lines.append(f"complete -c nbspam -n {first} -l version -d 'Show the version'")
    for name, text in listed(cli, COMMANDS):
        lines.append(f"complete -c nbspam -n {first} -a {name} -d {_fish(text)}")
    seen = "__fish_seen_subcommand_from"
    inner = f"'{seen} table; and not {seen} {' '.join(TABLE_COMMANDS)}'"
    for name, text in listed(table_command, TABLE_COMMANDS):
        lines.append(f"complete -c nbspam -n {inner} -f -a {name} -d {_fish(text)}")
    for name, command in leaves(cli):
        group, _, own = name.rpartition(" ")
        within = f"{seen} table" if group else f"not {seen} table"
        here = f"complete -c nbspam -n '{within}; and {seen} {own}'"
        if name == "help":
            lines.append(f"{here} -f -a '{' '.join(COMMANDS)}'")
        elif actions(command):
            lines.append(f"{here} -a '{actions(command)}'")
        for each in options(command):
            spelt = [f"-s {n[1:]}" for n in each.short] + [f"-l {n[2:]}" for n in each.long]
            value = ""
            if each.choices:
                value = f" -x -a '{' '.join(each.choices)}'"
            elif each.takes_value:
                value = " -r" if each.takes_path else " -x"
            lines.append(f"{here} {' '.join(spelt)}{value} -d {_fish(each.text)}")
    return HEAD.format("fish") + "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
