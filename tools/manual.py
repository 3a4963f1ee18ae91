"""Write the man pages and the completions of shells anew: `make manual`.

They are made from the same help that `nbspam --help` prints, and are installed with the
package: pyproject.toml names their folder.  A test compares the files with what is made here.
"""

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

import completions
from completions import commands
from nbspam import __version__
from nbspam.cli.command import Command, summary
from nbspam.cli.main import GROUPS, cli

FOLDER = Path(__file__).parent.parent / "data"
_EXIT = """\
.SH EXIT STATUS
0 if all went well, 1 after an error, 2 for wrong usage.
.B nbspam classify \\-\\-exit\\-code
and
.B nbspam filter \\-\\-tempfail
have statuses of their own.
"""
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
command and one called common, with the long names of options as keys.
"""


def files() -> dict[str, str]:
    """Return the texts of all files, by their paths under FOLDER."""
    pages = {f"nbspam-{name}": _page(name, command) for name, command in commands()}
    pages["nbspam"] = _first_page()
    return {
        **{f"share/man/man1/{name}.1": text for name, text in sorted(pages.items())},
        "share/bash-completion/completions/nbspam": completions.bash(),
        "share/zsh/site-functions/_nbspam": completions.zsh(),
        "share/fish/vendor_completions.d/nbspam.fish": completions.fish(),
    }


def _first_page() -> str:
    """Return nbspam(1), with all commands."""
    what, *examples = _paragraphs(cli.help or "")
    lines = [_head("nbspam", what.rstrip("."))]
    lines += [".SH SYNOPSIS", ".B nbspam", ".I COMMAND", "[\\fIOPTION\\fR]... [\\fISOURCE\\fR]..."]
    lines += [".SH EXAMPLES", *map(_example, examples)]
    every = dict(commands())
    lines.append(".SH COMMANDS")
    for title, names in GROUPS.items():
        lines.append(f".SS {_roff(title)}")
        for name in names:
            lines += [".TP", f".BR nbspam\\-{name} (1)", _roff(summary(every[name]))]
    return "\n".join(lines) + "\n" + _FILES + _EXIT


def _page(name: str, command: click.Command) -> str:
    """Return the page of one command."""
    assert isinstance(command, Command)
    parent = click.Context(cli, info_name="nbspam", help_option_names=["-h", "--help"])
    context = click.Context(command, info_name=name, parent=parent)
    paragraphs = _paragraphs(command.help or "")
    examples = [each for each in paragraphs if each.startswith("\b")]
    texts = [each for each in paragraphs if not each.startswith("\b")]
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [_head(f"nbspam-{name}", summary(command).rstrip("."))]
    lines += [".SH SYNOPSIS", f".B nbspam {name}", _roff(usage), ".SH DESCRIPTION"]
    texts = texts[1:] or texts  # the first one is the name's
    lines.append("\n.PP\n".join(_roff(" ".join(text.split())) for text in texts))
    lines += [".SH EXAMPLES", *map(_example, examples), ".SH OPTIONS"]
    for title, options in command.groups(context).items():
        lines.append(f".SS {_roff(title)}")
        lines += _options(options, context)
    return "\n".join(lines) + "\n" + _EXIT + ".SH SEE ALSO\n.BR nbspam (1)\n"


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
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def main() -> None:
    """Write all files; remove the pages of commands that are no more."""
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
