"""Progress bars: when they appear, what they show, and that they are cleared."""

import io
import os
import sys

import pytest

from nbspam.cli import frame
from nbspam.cli.frame import Watcher, progress_text
from nbspam.cli.inputs import _extent_of as extent_of
from nbspam.cli.main import exit_status
from nbspam.printing import Extent
from nbspam.sources.items import read_items
from nbspam.sources.records import read_records
from support import SPAM

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


@pytest.fixture
def on_terminal(monkeypatch):
    """Return a function that runs a command line with standard error on a terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments, delay=0.0, stdout=None):
        monkeypatch.setattr(frame, "DELAY", delay)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SPAM)))
        with monkeypatch.context() as patch:
            terminal = Terminal()
            patch.setattr(sys, "stderr", terminal)
            if stdout is not None:
                patch.setattr(sys, "stdout", stdout)
            assert exit_status([str(argument) for argument in arguments]) == 0
        return terminal.text

    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train FOLDER", ["messages", "4,", "passes"]),
        ("eval FOLDER --cv 2", ["messages", "folds", "2 of 2"]),
        ("eval FOLDER --online", ["messages", "of 4"]),
        ("tune FOLDER --cv 2", ["folds"]),
        ("merge MODEL MODEL MODEL -o OTHER", ["models", "3 of 3"]),
        ("classify FOLDER", ["messages"]),
        ("cluster FOLDER -k 2", ["starts", "of 5"]),
    ],
)
def test_long_loops_show_bars_which_are_cleared(
    on_terminal, trained, folder, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.setattr(frame, "_PAUSE", 0)
    places = {"FOLDER": folder, "MODEL": trained, "OTHER": tmp_path / "other"}
    shown = on_terminal(*(places.get(word, word) for word in arguments.split()))

    for word in words:
        assert word in shown
    assert CLEARED in shown[-10:]
    quiet = on_terminal(*(places.get(word, word) for word in arguments.split()), "-q")
    assert quiet == ""


def test_quick_commands_results_on_the_terminal_and_pipes_show_no_bar(
    on_terminal, nbspam, trained, folder, monkeypatch
):
    assert on_terminal("classify", folder, delay=60) == ""

    screen = Terminal()
    assert on_terminal("classify", folder, stdout=screen) == ""
    assert screen.text.count("\n") == 4
    monkeypatch.setattr(frame, "DELAY", 0)
    assert nbspam("classify", folder)[2] == ""


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
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    watcher, four = Watcher(0), Extent(lambda: 4)
    for _ in watcher("ab", "outer", four):
        assert list(watcher("cd", "inner", four)) == ["c", "d"]

    assert "outer" in terminal.text
    assert "inner" not in terminal.text

    terminal, watcher = Terminal(), Watcher(0)
    monkeypatch.setattr(sys, "stderr", terminal)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)

    assert list(watcher("ab", "letters", Extent(lambda: 2))) == ["a", "b"]
    assert terminal.text == ""


def test_reading_is_measured_in_bytes_and_streams_have_no_size(folder, tmp_path):
    def share(paths, things):
        extent = extent_of(paths)
        return sum(map(extent.weight, things)) / extent.total()

    assert share([str(folder)], read_items([str(folder)])) == 1
    table = tmp_path / "t.csv"
    table.write_text("x,label\n" + "some words,a\nother words,b\n" * 50)
    assert 0.7 < share([str(table)], read_items([str(table)])) <= 1
    assert 0.9 < share([str(table)], read_records([str(table)])) <= 1

    (tmp_path / "a.mbox.gz").write_bytes(b"")

    assert extent_of(["-"]).total() is None
    assert extent_of([str(tmp_path)]).total() is None
