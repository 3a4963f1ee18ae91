"""Write the man pages and the completions of shells: `make manual`.

They are made from the same help that `nbspam --help` prints, and are installed with the
package: pyproject.toml names their folder.  A test compares the files with what is made here.
`make reference` prints the help of all commands as one page instead.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path

import click

import completions
from completions import listed
from nbspam import __version__
from nbspam.cli.frame import Command, FullFormatter, leaves, summary
from nbspam.cli.main import COMMAND_GROUPS, TABLE_GROUPS, cli, table_command

FOLDER = Path(__file__).parent.parent / "data"
_EXIT = """\
.SH EXIT STATUS
0 if all went well, 1 after an error, 2 for wrong usage, 130 if interrupted.
.B nbspam classify \\-\\-exit\\-code
and
.B nbspam filter \\-\\-tempfail
have statuses of their own.
"""
_SEE_ALSO = ".SH SEE ALSO\n.BR nbspam (1)\n"
_FILES = """\
.SH ENVIRONMENT
.TP
.B NBSPAM_MODEL
The model file of all commands.
.TP
.BI NBSPAM_ COMMAND _ OPTION
The value of an option that the command line does not give, as in NBSPAM_TRAIN_MIN_DF.
.SH FILES
.TP
.I ~/.local/share/nbspam/model.nbspam
The model file, if nothing else is said.
.TP
.I ~/.config/nbspam/config.toml
Values of options that neither the command line nor the environment gives: a table for each
command (table.train for one of
.BR nbspam\\-table (1))
and one called common, with the long names of options as keys.
"""


def files() -> dict[str, str]:
    """Return the texts of all files, by their paths under FOLDER."""
    pages = {f"nbspam-{_joined(name)}": _page(name, command) for name, command in leaves(cli)}
    pages["nbspam-table"] = _group_page("nbspam-table", table_command, TABLE_GROUPS)
    pages["nbspam"] = _group_page("nbspam", cli, COMMAND_GROUPS) + _FILES
    pages = {name: text + _EXIT + _SEE_ALSO * (name != "nbspam") for name, text in pages.items()}
    return {
        **{f"share/man/man1/{name}.1": text for name, text in sorted(pages.items())},
        "share/bash-completion/completions/nbspam": completions.bash(),
        "share/zsh/site-functions/_nbspam": completions.zsh(),
        "share/fish/vendor_completions.d/nbspam.fish": completions.fish(),
    }


def reference() -> str:
    """Return the help of all commands as one page."""
    shown: list[tuple[str, click.Command, click.Context]] = [
        ("nbspam help", cli, click.Context(cli, info_name="nbspam"))
    ]
    for name, command in leaves(cli):
        shown.append((f"nbspam help {name}", command, _context(name, command)))
    blocks = (f"```console\n$ {line}\n{each.get_help(ctx)}\n```" for line, each, ctx in shown)
    return "\n\n".join(["# Commands and options", *blocks]) + "\n"


def _joined(name: str) -> str:
    return name.replace(" ", "-")


def _context(name: str, command: click.Command) -> click.Context:
    parent = click.Context(cli, info_name="nbspam", help_option_names=["-h", "--help"])
    context = click.Context(command, info_name=name, parent=parent, terminal_width=80)
    context.formatter_class = FullFormatter
    return context


def _group_page(page: str, group: click.Group, titles: Mapping[str, Sequence[str]]) -> str:
    """Return the page of a group of commands."""
    what, *paragraphs = _paragraphs(group.help or "")
    texts = [_roff(each) for each in paragraphs if not each.startswith("\b")]
    lines = [_head(page, what.rstrip(".")), ".SH SYNOPSIS", f".B {_roff(page.replace('-', ' '))}"]
    lines += [".I COMMAND", "[\\fIOPTION\\fR]... [\\fISOURCE\\fR]..."]
    lines += [".SH DESCRIPTION", *texts] if texts else []
    lines += [".SH EXAMPLES", *(_example(each) for each in paragraphs if each.startswith("\b"))]
    lines.append(".SH COMMANDS")
    for title, names in titles.items():
        lines.append(f".SS {_roff(title)}")
        for name, text in listed(group, names):
            lines += [".TP", f".BR {_roff(f'{page}-{name}')} (1)", _roff(text)]
    return "\n".join(lines) + "\n"


def _page(name: str, command: click.Command) -> str:
    """Return the page of one command."""
    assert isinstance(command, Command)
    context = _context(name, command)
    paragraphs = _paragraphs(command.help or "")
    examples = [each for each in paragraphs if each.startswith("\b")]
    texts = [each for each in paragraphs if not each.startswith("\b")]
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [_head(f"nbspam-{_joined(name)}", summary(command).rstrip("."))]
    lines += [".SH SYNOPSIS", f".B nbspam {name}", _roff(usage), ".SH DESCRIPTION"]
    texts = texts[1:] or texts  # the first one is the name's
    lines.append("\n.PP\n".join(_roff(" ".join(text.split())) for text in texts))
    lines += [".SH EXAMPLES", *map(_example, examples), ".SH OPTIONS"]
    for title, options in command.groups(context).items():
        lines.append(f".SS {_roff(title)}")
        lines += _options(options, context)
    return "\n".join(lines) + "\n"


def _options(options: list[click.Option], context: click.Context) -> Iterator[str]:
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            name, text = record
            yield f".TP\n.B {_roff(name)}\n{_roff(' '.join(text.split()))}"


def _paragraphs(text: str) -> list[str]:
    return re.split(r"\n\n+", cleandoc(text))


def _head(name: str, what: str) -> str:
    """Return the beginning of a page.  It has no date: the same help makes the same file."""
    title = f'.TH {_roff(name).upper()} 1 "" "nbspam {__version__}" "nbspam"'
    return f"{title}\n.SH NAME\n{_roff(name)} \\- {_roff(what)}"


def _example(paragraph: str) -> str:
    lines = paragraph.strip("\b\n").splitlines()
    return "\n".join([".nf", *map(_roff, lines), ".fi"])


def _roff(text: str) -> str:
    """Return text in which roff sees no commands of its own."""
    # The C locale, which small machines have, shows no character that is not ASCII.
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\\&" + text if text.startswith((".", "'")) else text


def main() -> None:
    """Write all files, and remove the pages of commands that are no more; or the reference."""
    if sys.argv[1:] == ["--reference"]:
        sys.stdout.write(reference())
        return
    made = files()
    for path in FOLDER.rglob("*"):
        if path.is_file() and str(path.relative_to(FOLDER)) not in made:
            path.unlink()
    for name, text in made.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    sys.stdout.write(f"{len(made)} files in {FOLDER}\n")


if __name__ == "__main__":
    main()
