"""The man pages and completions that are installed with the package."""

import os
import pty
import re
import select
import subprocess
import sys
from time import monotonic

import click
import pytest

from nbspam.cli.frame import leaves
from nbspam.cli.main import COMMANDS, TABLE_COMMANDS, cli
from support import ROOT, needs

sys.path.insert(0, str(ROOT / "tools"))

import manual

SHARE = ROOT / "data" / "share"
BASH = SHARE / "bash-completion" / "completions" / "nbspam"
ZSH = SHARE / "zsh" / "site-functions"
FISH = SHARE / "fish" / "vendor_completions.d" / "nbspam.fish"


def test_the_files_are_those_that_would_be_made_now_and_are_installed():
    made = manual.files()
    there = {str(path.relative_to(ROOT / "data")) for path in SHARE.rglob("*") if path.is_file()}

    assert there == set(made), "run `make manual`"
    for name, text in made.items():
        assert (ROOT / "data" / name).read_text("utf-8") == text, f"{name}: run `make manual`"
    assert 'directory = "data"' in (ROOT / "pyproject.toml").read_text()
    assert manual._roff(".hidden -x \\n") == "\\&.hidden \\-x \\en"  # marks of roff stay text


# --- man pages -------------------------------------------------------------------------------


LEAVES = dict(leaves(cli))


def options(name):
    for each in LEAVES[name].params:
        if isinstance(each, click.Option):
            yield from (*each.opts, *each.secondary_opts)


@pytest.mark.parametrize("name", LEAVES)
def test_a_man_page_has_every_option(name):
    page = (SHARE / "man" / "man1" / f"nbspam-{name.replace(' ', '-')}.1").read_text("utf-8")

    for option in options(name):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", page.replace("\\-", "-")), option
    sections = ", ".join(re.findall(r"^\.SH (.*)$", page, re.MULTILINE))
    assert sections == "NAME, SYNOPSIS, DESCRIPTION, EXAMPLES, OPTIONS, EXIT STATUS, SEE ALSO"
    examples = re.split(r"^\.SH .*\n", page, flags=re.MULTILINE)[4]
    for line in re.findall(r"^[^.].*", examples, re.MULTILINE):
        assert "nbspam " in line
        assert len(line.replace("\\-", "-")) <= 80 - 7, "man indents by seven columns"


def test_the_first_man_page_has_every_command():
    for page, names in (("nbspam", COMMANDS[:-1]), ("nbspam-table", TABLE_COMMANDS)):
        text = (SHARE / "man" / "man1" / f"{page}.1").read_text("utf-8").replace("\\-", "-")
        assert re.findall(rf"^\.BR {page}-(\w+) \(1\)$", text, re.MULTILINE) == list(names)


def test_the_reference_has_the_help_of_every_command():
    page = manual.reference()
    for name in LEAVES:
        assert f"$ nbspam help {name}\nUsage: nbspam {name} " in page


@needs("groff")
def test_groff_has_nothing_to_say_about_the_man_pages():
    pages = sorted((SHARE / "man" / "man1").glob("*.1"))
    command = ["groff", "-man", "-Tascii", "-ww", "-z", *pages]
    done = subprocess.run(command, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


# --- completion ------------------------------------------------------------------------------

EXPECTED = [
    ("tra", {"train"}), ("", {*COMMANDS, "--version", "--help"}), ("help cla", {"classify"}),
    ("help table cl", {"classify", "cluster"}), ("train mails --format mb", {"mbox"}),
    ("table train --format cs", {"csv"}), ("train --preset ", {"mail", "text", "tutorial"}),
    ("train mails/ --weighting un", {"unit-length"}), ("classify --exit", {"--exit-code"}),
    ("share sn", {"snapshot"}), ("classify -q --fp", {"--fp-cost"}), ("eval --cv ", set()),
    ("eval --plot mai", {"mails"}), ("serve --review mai", {"mails"}),
    ("held --users mai", {"mails"}), ("classify mai", {"mails"}),
    ("--version sort --unsure-f", {"--unsure-folder"}), ("table tr", {"train"}),
    ("table -q classify --exit", {"--exit-code"}), ("table train --targ", {"--target"}),
    ("table train --discretise wi", {"width"}), ("table classify mai", {"mails"}),
]  # fmt: skip


@pytest.fixture
def mails(tmp_path, monkeypatch):
    (tmp_path / "mails").mkdir()
    monkeypatch.chdir(tmp_path)


@needs("bash")
@pytest.mark.parametrize(
    ("line", "found"),
    [  # bash makes a word of the sign
        *EXPECTED,
        ("train --preset = tut", {"tutorial"}),
        ("train --preset =", {"mail", "text", "tutorial"}),
        ("train --spam = mai", {"mails"}),
        ("classify -- --exit", set()),
        ("classify -- mai", {"mails"}),
    ],
)
def test_bash_completes(mails, line, found):
    # Outside a completion `compopt` fails; where it is called, bash completes names of files.
    script = f"""
        compopt() {{ COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")); }}
        source {BASH}
        complete -p nbspam | grep -q _nbspam || exit 1
        COMP_WORDS=(nbspam "$@") COMP_CWORD=$#
        _nbspam
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    words = line.split(" ")
    done = subprocess.run(["bash", "-c", script, "-", *words], capture_output=True, check=True)

    assert (set(done.stdout.decode().split()), done.stderr) == (found, b"")


@needs("fish")
@pytest.mark.parametrize(("line", "found"), EXPECTED)
def test_fish_completes(mails, monkeypatch, tmp_path, line, found):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    script = f"source {FISH}; complete -C 'nbspam {line}'"
    done = subprocess.run(["fish", "-c", script], capture_output=True, check=True)

    shown = {row.split("\t")[0].rstrip("/") for row in done.stdout.decode().splitlines()}
    assert shown == (found if line else set(COMMANDS))  # fish shows options after a hyphen only


ZSH_LINES = [
    ("tra", "train"), ("help cla", "help classify"), ("help table tr", "help table train"),
    ("train --format mb", "train --format mbox"),
    ("train --label spam=mai", "train --label spam=mails"),
    ("train --preset=tu", "train --preset=tutorial"),
    ("train --preset tu", "train --preset tutorial"),
    ("classify --exit", "classify --exit-code"), ("classify mai", "classify mails"),
    ("classify -- --exit", "classify -- --exit"), ("share sn", "share snapshot"),
    ("eval --plot mai", "eval --plot mails"), ("table tra", "table train"),
    ("table train --discretise wi", "table train --discretise width"),
]  # fmt: skip


def read(terminal, sign):
    """Return the match of a pattern in what comes from a terminal, waiting up to a minute."""
    seen, end = "", monotonic() + 60
    while (found := re.search(sign, seen)) is None:
        assert select.select([terminal], [], [], end - monotonic())[0], (sign, seen)
        seen += os.read(terminal, 10_000).decode(errors="replace")
    return found


@pytest.mark.slow
@needs("zsh")
def test_zsh_completes(mails, tmp_path):
    setup = f"fpath=({ZSH} $fpath); autoload -U compinit; compinit -u -D\n"
    terminal, its_end = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "ZDOTDIR": str(tmp_path), "PS1": ""}
    streams = {"stdin": its_end, "stdout": its_end, "stderr": its_end}
    zsh = subprocess.Popen(["zsh", "-f", "-i"], env=environment, start_new_session=True, **streams)
    try:
        os.write(terminal, f"{setup}print -r -- rea''dy\n".encode())
        read(terminal, "\nready\r")
        for line, completed in ZSH_LINES:
            os.write(terminal, f"nbspam {line}\t".encode())
            read(terminal, re.escape(completed))
            os.write(terminal, b"\x01print -r -- do''ne \n")  # to the beginning of the line
            printed = read(terminal, "\ndone nbspam (.*)\r")[1]
            assert printed.rstrip(" /") == completed
    finally:
        zsh.kill()
        zsh.wait()
        os.close(terminal)
        os.close(its_end)
