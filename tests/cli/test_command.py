"""What all commands share: -q, -v, the model option, the environment, progress bars."""

import ast
import errno
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nbspam.cli
from nbspam.cli import frame, progress
from nbspam.cli.frame import leaves
from nbspam.cli.inputs import _bytes_of as bytes_of
from nbspam.cli.inputs import _size_of as size_of
from nbspam.cli.main import _MODULES, _TABLE_MODULES, cli, exit_status
from nbspam.cli.options import default_model_path
from nbspam.cli.output import echo_lines
from nbspam.cli.progress import Watcher, progress_text
from nbspam.printing import Extent, tracked
from nbspam.sources.items import read_items
from nbspam.sources.records import read_records
from support import COMMAND_WORDS, SPAM, complains, raising, run_nbspam, write_files

# What they print says what they did; of the others it is what they were asked for.
DOING = {"sort", "train", "update", "unlearn", "relabel", "prune", "import", "shard", "merge"}
DOING |= {"table train", "table update", "table unlearn", "table merge"}
LEAVES = dict(leaves(cli))


@pytest.fixture
def run(nbspam, places):
    """Return a function that runs a command of COMMAND_WORDS with more options."""

    def call(name, *options):
        words = [places.get(word, word) for word in shlex.split(COMMAND_WORDS[name])]
        status, out, err = nbspam(*name.split(), *words, *options, stdin=SPAM)
        assert status == 0, err
        return out, err

    return call


def test_every_command_is_run_here_and_quiet_ones_print_json(run):
    # Except those that run until a signal, need an account, a log or Postfix, or change a model's
    # lists, which have tests of their own.
    others = {"serve", "setup", "share", "held", "allow", "deny"}
    assert sorted(COMMAND_WORDS) == sorted({*LEAVES} - others)
    for name in DOING:
        assert run(name, "-q", "--json")[0].startswith("{"), name


@pytest.mark.parametrize("name", COMMAND_WORDS)
def test_standard_error_has_nothing_by_itself_and_more_with_verbose(name, run):
    said = run(name)[1]
    assert "has learned 4 of these 4" in said if name == "eval" else said == ""

    out, err = run(name, "-v")
    lines = err.splitlines()
    parameters = {each.name for each in LEAVES[name].params}
    assert out
    assert re.fullmatch(r"nbspam: took \d+\.\d\d s", lines[-1])
    models = [line for line in lines if line.startswith("nbspam: model ")]
    assert len(models) == (2 if name.endswith("merge") else "model_path" in parameters)
    n_read = {"update": 5, "unlearn": 1, "relabel": 1, "doubts": 81}.get(name, 4)
    is_read, is_table = "sources" in parameters, name.startswith("table")
    assert (f"nbspam: messages read: {n_read}" in lines) == (is_read and not is_table)
    assert any("rows read" in line for line in lines) == (is_read and is_table)

    out, err = run(name, "-q", "-v")
    assert err == ""
    if name in DOING:
        assert out == ""
    elif name.split()[-1] not in {"eval", "tune", "compare"}:  # which take a second
        assert out == run(name)[0] != ""


def test_quiet_silences_warnings_of_which_five_are_named_else(nbspam, trained, folder, tmp_path):
    (folder / "spam" / "3.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("classify", folder)
    assert (status, "skipped" in err) == (1, True)
    assert nbspam("classify", folder, "-q") == (status, out, "")
    assert complains(nbspam("classify", folder, "-q", "--strict"), 1, "3.eml")
    write_files(tmp_path / "odd", {f"{n}.jpg": b"\xff\xd8\xff%d" % n for n in range(7)})
    *named, last = nbspam("classify", tmp_path / "odd")[2].splitlines()
    assert len(named) == 5
    assert all("looks like a JPEG picture" in line for line in named)
    assert last == "nbspam: 2 more like these"


# --- options that commands share -------------------------------------------------------------


def options():
    for name, command in LEAVES.items():
        for each in command.params:
            if isinstance(each, click.Option):
                yield name, each


def test_a_letter_means_one_thing_and_each_option_has_a_variable_of_its_own():
    meanings = {}
    for _, each in options():
        (long, *_) = [opt for opt in each.opts if opt.startswith("--")] or ["-k of cluster"]
        for letter in each.opts:
            if not letter.startswith("--"):
                meanings.setdefault(letter, set()).add(long)

    assert meanings.pop("-k") == {"-k of cluster"}
    assert all(len(names) == 1 for names in meanings.values()), meanings
    assert {"-m", "-q", "-v", "-n", "-j", "-o"} <= set(meanings)

    # Every command that has a model takes it the same way.
    without = {"compare", "merge", "shard", "tokens", "lazy", "cluster", "help", "vectorize"}
    for name, command in LEAVES.items():
        models = [each for each in command.params if each.name == "model_path"]
        assert bool(models) == (name.split()[-1] not in without), name
        for each in models:
            assert each.opts == ["-m", "--model-file"]
            assert each.envvar == "NBSPAM_MODEL"
            assert each.default is default_model_path

    found = [(each.envvar, name) for name, each in options()]
    names = [envvar for envvar, _ in found if envvar != "NBSPAM_MODEL"]
    assert len(set(names)) == len(names)
    assert ("NBSPAM_TRAIN_MIN_DF", "train") in found
    assert ("NBSPAM_EVAL_QUIET", "eval") in found
    assert not [each for _, each in options() if type(each.type) is click.FloatRange]  # takes nan
    assert ("NBSPAM_TABLE_CLUSTER_K", "table cluster") in found


def test_only_a_closed_or_full_stream_that_is_needed_is_a_failure_in_one_line(trained, folder):
    closed = b"nbspam: standard output: closed; send it to a file, a pipe or /dev/null\n"
    with_results = "predict", "classify --json", "explain", "tokens", "--help"
    for words, *expected in (
        ("predict 1.eml 2>&-", 0, b"ham\n", b""),
        ("predict 1.eml <&-", 0, b"ham\n", b""),
        ("predict -v 1.eml 2>/dev/full", 0, b"ham\n", b""),
        ("classify --exit-code none 2>/dev/full", 3, b"", b""),
        ("update -q --ham 1.eml >&-", 0, b"", b""),
        *((f"{words} 1.eml >&-", 1, b"", closed) for words in with_results),
    ):
        command = ["sh", "-c", f"exec {sys.executable} -m nbspam {words}"]
        done = subprocess.run(command, cwd=folder / "ham", capture_output=True, check=False)
        assert [done.returncode, done.stdout, done.stderr] == expected, words


def test_no_file_or_socket_takes_the_place_of_a_closed_stream():
    rest = "main.exit_status = lambda _: os.fstat(2).st_rdev != os.stat(os.devnull).st_rdev"
    code = f"import os; from nbspam.cli import main; {rest}; main.main()"
    command = f'exec {sys.executable} -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


# --- what a command imports ------------------------------------------------------------------

CLI = Path(nbspam.cli.__file__).parent
COMMAND_MODULES = {*_MODULES, *_TABLE_MODULES} - {"main"}
IMPORTED = """
import sys
from nbspam.cli.main import exit_status
exit_status(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""


def imported(*words, mail=SPAM):
    """Return the modules that a command line imports."""
    command = [sys.executable, "-c", IMPORTED, *map(str, words)]
    done = subprocess.run(command, input=mail, capture_output=True, check=True)
    return set(done.stderr.decode().splitlines()[-1].split())


SLOW = {"scipy", "joblib", "rich", "regex", "email", "csv", "sklearn", "matplotlib", "jinja2"}
OTHER_ROOMS = {f"nbspam.{room}" for room in ("tables", "evaluation", "server", "delivery")}


def test_a_command_imports_what_it_needs_when_it_needs_it(trained):
    for words, modules, unneeded in (
        (["classify"], "judging", SLOW | OTHER_ROOMS),
        (["classify", "--json"], "judging", SLOW | OTHER_ROOMS),
        (["predict"], "judging", SLOW | OTHER_ROOMS),
        (["explain"], "judging", OTHER_ROOMS),
        (["filter"], "judging delivering", {*SLOW, "json"}),
        (["train", "--help"], "judging training", {"numpy"}),
        (["update", "--help"], "exchanging learning", {"numpy"}),
        (["classify", "--help"], "judging", {*SLOW, "numpy", "json"}),
        (["--version"], "", {*SLOW, "numpy", "json", "nbspam.settings"}),
    ):
        found = imported(*words)
        assert not unneeded & found, words
        of_commands = {name for name in COMMAND_MODULES if f"nbspam.cli.{name}" in found}
        assert of_commands == {*modules.split()}, words
    assert not {*SLOW, "numpy"} & imported("help")  # which imports the module of every command

    for mail in (SPAM, b"Content-Type: text/html\n\n<p style='color: red'>buy <b>now</b>"):
        names = imported("classify", "-m", trained, mail=mail)
        assert sum(name.partition(".")[0] == "nbspam" for name in names) <= 45


def test_the_command_line_computes_nothing():
    for path in sorted(CLI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(each.name for each in node.names)]
                assert not [name for name in names if name.split(".")[0] == "numpy"], path


@given(st.lists(st.text(st.characters(exclude_characters="\r\n")), max_size=5))
@example(["caf\udce9", "好\ud800", "é"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252", "gb18030"])
def test_any_line_can_be_printed_in_any_locale(encoding, lines):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    with patch.object(sys, "stdout", stream):
        assert exit_status(["--version"]) == 0
        echo_lines(lines)
    stream.flush()
    _, written = stream.buffer.getvalue().split(b"\n", 1)

    assert written.count(b"\n") == len(lines)
    if encoding == "utf-8":
        assert written == "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")


def test_help_is_shown_in_a_locale_that_lacks_its_letters():
    latin = {**os.environ, "PYTHONIOENCODING": "latin1"}
    status, out, err = run_nbspam("help", "train", env=latin)
    assert (status, err) == (0, "")
    assert r"--class-prior NAME|P,P,\u2026" in out


# ---- progress bars: when they appear, what they show, and that they are cleared ----

CLEARED = "\x1b[2K"  # rich erases a line at the end


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self):
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def isatty(self):
        return True

    @property
    def text(self):
        return self.buffer.getvalue().decode()


def test_long_loops_show_bars_which_are_cleared_but_not_among_results_nor_in_pipes(
    nbspam, trained, folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def on_terminal(*arguments, delay=0.0, stdout=None):
        monkeypatch.setattr(progress, "DELAY", delay)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SPAM)))
        with monkeypatch.context() as patch:
            terminal = Terminal()
            patch.setattr(sys, "stderr", terminal)
            if stdout is not None:
                patch.setattr(sys, "stdout", stdout)
            assert exit_status([str(argument) for argument in arguments]) == 0
        return terminal.text

    monkeypatch.setattr(progress, "_PAUSE", 0)
    places = {"FOLDER": folder, "MODEL": trained, "OTHER": tmp_path / "other"}
    for arguments, words in (
        ("train FOLDER", ["messages", "4,", "stages"]),
        ("eval FOLDER --cv 2", ["messages", "folds", "2 of 2"]),
        ("eval FOLDER --online", ["messages", "of 4"]),
        ("tune FOLDER --cv 2", ["folds"]),
        ("merge MODEL MODEL MODEL -o OTHER", ["models", "3 of 3"]),
        ("classify FOLDER", ["messages"]),
        ("cluster FOLDER -k 2", ["starts", "of 5"]),
    ):
        line = [places.get(word, word) for word in arguments.split()]
        shown = on_terminal(*line)
        for word in words:
            assert word in shown
        assert CLEARED in shown[-10:]
        assert on_terminal(*line, "-q") == ""

    assert on_terminal("classify", folder, delay=60) == ""  # a quick command

    screen = Terminal()
    assert on_terminal("classify", folder, stdout=screen) == ""
    assert screen.text.count("\n") == 4
    monkeypatch.setattr(progress, "DELAY", 0)
    assert nbspam("classify", folder)[2] == ""
    monkeypatch.setenv("TERM", "dumb")
    assert on_terminal("classify", folder) == ""


def terminal_of(monkeypatch):
    """Let standard error be a terminal, on which bars are drawn at once; return it."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setenv("TERM", "xterm")
    return found


def test_a_bar_is_cleared_at_an_early_end_and_work_goes_on_without_its_terminal(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with frame._progress(prints_results_at_once=False):
        letters = tracked("ab", "letters")
        assert next(iter(letters)) == "a"
    assert CLEARED in terminal.text[-10:]

    monkeypatch.setattr(progress, "_PAUSE", 0)
    letters = Watcher(0)("abc", "letters", Extent(lambda: 3))

    assert next(letters) == "a"
    monkeypatch.setattr(terminal, "write", raising(OSError(errno.EIO, "Input/output error")))
    assert list(letters) == ["b", "c"]
    assert sys.stderr is terminal  # and not rich's, which would write there


def test_the_text_has_number_rate_and_time_left():
    for arguments, text in [
        ((0, None, 5.0, None), "0"),
        ((0, 0.0, 5.0, 10), "0 of 10"),
        ((5, 0.5, 10.0, 10), "5 of 10, 2.0 s each, 0:10 left"),
        ((3_000, 0.25, 30.0, None), "3,000, 100/s, 1:30 left"),
        ((3_000, None, 30.0, None), "3,000, 100/s"),
        ((650, 0.5, 65.0, None), "650, 10/s, 1:05 left"),
        ((5, 0.5, 0.5, 10), "5 of 10, 10/s"),  # too early to say how long
    ]:
        assert progress_text(*arguments) == text


def test_the_outer_of_loops_is_shown_and_worker_processes_draw_nothing(monkeypatch):
    terminal, watcher, four = terminal_of(monkeypatch), Watcher(0), Extent(lambda: 4)
    for _ in watcher("ab", "outer", four):
        assert list(watcher("cd", "inner", four)) == ["c", "d"]

    assert "outer" in terminal.text
    assert "inner" not in terminal.text

    before, parent, watcher = terminal.text, os.getpid(), Watcher(0)
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert list(watcher("ab", "letters", Extent(lambda: 2))) == ["a", "b"]
    assert terminal.text == before


def test_reading_is_measured_in_bytes_and_streams_have_no_size(folder, tmp_path):
    def share(paths, things):
        return sum(map(size_of, things)) / bytes_of(paths)

    assert share([str(folder)], read_items([str(folder)])) == 1
    table = tmp_path / "t.csv"
    table.write_text("x,label\n" + "some words,a\nother words,b\n" * 50)
    assert 0.7 < share([str(table)], read_items([str(table)])) <= 1
    assert 0.9 < share([str(table)], read_records([str(table)])) <= 1

    (tmp_path / "a.mbox.gz").write_bytes(b"")

    assert bytes_of(["-"]) is None
    assert bytes_of([str(tmp_path)]) is None
