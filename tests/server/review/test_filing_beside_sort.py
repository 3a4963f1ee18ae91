"""Moves by the page beside `nbspam sort`: what it makes of them, and crashes at any step."""

import os
import shutil
import subprocess
import sys
from functools import partial

import pytest

from maildirs import Maildir, ham, spam
from nbspam.maildir.maildir import INBOX, MaildirNote, read_note
from nbspam.server.page import mailbox as module
from nbspam.server.page.mailbox import ReviewMailbox
from support import ROOT


@pytest.fixture
def maildir(tmp_path, trained):
    return Maildir(tmp_path / "Maildir", trained)


def filing_of(maildir):
    return ReviewMailbox(str(maildir.root))


# ---- what sort makes of it ----


@pytest.mark.parametrize(
    ("path", "data", "label", "moved"),
    [
        ("new/1.h", ham(1), "spam", ".Spam/new/1.h"),
        (".Spam/new/1.h", spam(1), "ham", "new/1.h"),
        (".Spam/cur/1.h:2,S", spam(1), "ham", "cur/1.h:2,S"),
        (".Unsure/new/1.h", ham(1), "spam", ".Spam/new/1.h"),
    ],
    ids=["to spam", "to ham", "read ham", "from unsure"],
)
def test_sort_takes_neither_a_move_nor_its_undoing_for_the_users_own(
    maildir, path, data, label, moved
):
    maildir.put(path, data)
    for sorted_before in (False, True):
        for sorted_between in (False, True):
            move_and_undo(maildir, sorted_before, sorted_between, path, data, label, moved)
            (maildir.root / "nbspam-sorted").unlink()


def move_and_undo(maildir, sorted_before, sorted_between, path, data, label, moved):
    if sorted_before:
        maildir.sort()
        assert set(maildir.files) == {path}
    counts = maildir.learned()
    filing = filing_of(maildir)

    maildir.teach(data, label)
    folder = filing.file("1.h", label)
    taught = maildir.learned()
    if sorted_between:
        report = maildir.sort()
        assert (report.learned, report.judged) == ([], [])
    assert (set(maildir.files), maildir.learned()) == ({moved}, taught)

    assert filing.put_back("1.h", folder)
    maildir.teach(data, None)
    for _ in range(2):
        report = maildir.sort()
        assert (report.learned, report.judged) == ([], [])
    assert (maildir.files, maildir.learned()) == ({path: data}, counts)


def test_what_a_user_moves_after_us_still_teaches(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.sort()
    filing = filing_of(maildir)
    filing.file("1.h", "spam")
    maildir.rename(".Spam/new/1.h", "cur/1.h:2,S")
    assert [(one.name, one.label) for one in maildir.sort().learned] == [("cur/1.h:2,S", "ham")]

    filing.file("1.h", "spam")
    filing.put_back("1.h", INBOX)
    maildir.rename("cur/1.h:2,S", ".Spam/cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["spam"]


def test_what_sort_knows_of_other_messages_stays(maildir):
    for n in range(4):
        maildir.put(f"new/{n}.h", spam(n) if n % 2 else ham(n))
    maildir.sort()
    filing = filing_of(maildir)
    before = maildir.noted()

    filing.file("0.h", "spam")
    assert maildir.noted() == {**before, "0.h": "spam"}
    filing.put_back("0.h", INBOX)
    assert maildir.noted() == before


# ---- crashes ----


def crash(maildir, monkeypatch, step, path, sorted_before, undone):
    """Let a lesson's move, or its undoing, be killed at a step, and assert that all ends well."""
    data, label = (spam(1), "ham") if "Spam" in path else (ham(1), "spam")
    maildir.put(path, data)
    if sorted_before:
        maildir.sort()
    filing = filing_of(maildir)
    maildir.teach(data, label)
    if undone:
        assert filing.file("1.h", label) is not None
        act, goal = partial(filing.put_back, "1.h", path.removesuffix("new/1.h").rstrip("/")), path
    else:
        act, goal = partial(filing.file, "1.h", label), "new/1.h"
        goal = goal if label == "ham" else f".Spam/{goal}"
    taught = maildir.learned()
    steps = iter(range(step + 1))

    def crashing(function):
        """Let a function be killed before it is called, or after."""

        def call(*arguments):
            if next(steps, None) == step:
                raise KeyboardInterrupt
            found = function(*arguments)
            if next(steps, None) == step:
                raise KeyboardInterrupt
            return found

        return call

    with monkeypatch.context() as patch:
        for name in ("move", "write_note"):
            patch.setattr(module, name, crashing(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            act()

    assert list(maildir.files.values()) == [data]
    report = maildir.sort()
    assert report.learned == []
    assert (list(maildir.files.values()), maildir.learned()) == ([data], taught)
    act()
    assert list(maildir.files) == [goal]
    assert maildir.sort().learned == []


@pytest.mark.parametrize("undone", [False, True], ids=["tell", "undo"])
@pytest.mark.parametrize("path", ["new/1.h", ".Spam/new/1.h", ".Unsure/new/1.h"])
def test_a_crash_at_any_step_loses_no_mail_and_no_lesson(
    trained_once, tmp_path, monkeypatch, undone, path
):
    for step in range(6):
        for sorted_before in (True, False):
            place = tmp_path / f"{step} {sorted_before}"
            shutil.copytree(trained_once, place)
            maildir = Maildir(place / "Maildir", place / "m.nbspam")
            crash(maildir, monkeypatch, step, path, sorted_before, undone)


def test_a_move_that_was_broken_off_is_taken_as_it_is(maildir):
    for place in ("new/1.h", ".Spam/new/2.h"):
        maildir.put(place, ham(1) if "1" in place else spam(2))
    note = b"moving 0123456789abcdef 1.h\nmoving 0123456789abcdef 2.h\n"
    (maildir.root / "nbspam-sorted").write_bytes(note)

    report = maildir.sort()

    assert (report.learned, report.judged) == ([], [])
    digest = "0123456789abcdef"
    assert read_note(str(maildir.root)) == {
        "1.h": MaildirNote("ham", digest),
        "2.h": MaildirNote("spam", digest),
    }


def test_sorters_and_the_page_at_once_lose_nothing(maildir):
    messages = {f"{n}.h": ham(n) for n in range(12)}
    for name, data in messages.items():
        maildir.put(f"new/{name}", data)
    maildir.sort()
    program = "import sys\nfrom nbspam.cli.main import main\nmain()\n"
    command = [sys.executable, "-c", program, "sort", "-q", "-m", maildir.model, maildir.root]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    sorters = [subprocess.Popen(command, env=environment) for _ in range(2)]
    filing = filing_of(maildir)
    for name in messages:
        assert filing.file(name, "spam") == INBOX
    for name in list(messages)[::2]:
        assert filing.put_back(name, INBOX)

    assert [sorter.wait(60) for sorter in sorters] == [0, 0]
    assert maildir.sort().learned == []
    assert maildir.files == {
        (".Spam/" if n % 2 else "") + f"new/{n}.h": messages[f"{n}.h"] for n in range(12)
    }
    assert maildir.n_learned() == 4
