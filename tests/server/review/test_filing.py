"""Moves by the page: where mail goes, what stays, and what is told if it cannot be moved."""

import os
import subprocess
import sys
import time

import pytest

from maildirs import Maildir, ham, spam
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.maildir.maildir import INBOX
from nbspam.server.page import mailbox as module
from nbspam.server.page.mailbox import ReviewMailbox
from support import ROOT


@pytest.fixture
def maildir(tmp_path, trained):
    return Maildir(tmp_path / "Maildir", trained)


def filing_of(maildir):
    return ReviewMailbox(str(maildir.root))


# ---- where mail goes ----


def test_spam_goes_to_the_folder_of_spam_and_ham_to_the_inbox(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put("cur/2.h,S=9:2,FS", ham(2))
    maildir.put(".Spam/cur/3.h:2,S", spam(3))
    maildir.put(".Unsure/new/4.h", ham(4))
    maildir.put(".Unsure/new/5.h", spam(5))
    filing = filing_of(maildir)
    told = [("1.h", "spam"), ("2.h,S=9", "spam"), ("3.h", "ham"), ("4.h", "ham"), ("5.h", "spam")]

    before = [filing.leaves(key, label) for key, label in told]
    assert [filing.file(key, label) for key, label in told] == before
    assert before == [INBOX, INBOX, ".Spam", ".Unsure", ".Unsure"]
    assert maildir.files == {
        ".Spam/new/1.h": ham(1),
        ".Spam/cur/2.h,S=9:2,FS": ham(2),
        "cur/3.h:2,S": spam(3),
        "new/4.h": ham(4),
        ".Spam/new/5.h": spam(5),
    }
    assert [filing.leaves(key, label) for key, label in told] == [None] * 5
    assert [filing.file(key, label) for key, label in told] == [None] * 5


def test_what_is_put_back_is_where_it_was(maildir):
    files = {"new/1.h": ham(1), ".Spam/cur/2.h:2,S": spam(2), ".Unsure/new/3.h": ham(3)}
    for path, data in files.items():
        maildir.put(path, data)
    filing = filing_of(maildir)
    told = {"1.h": "spam", "2.h": "ham", "3.h": "spam"}
    folders = {key: filing.file(key, label) for key, label in told.items()}

    assert [filing.put_back(key, folder) for key, folder in folders.items()] == [True] * 3
    assert maildir.files == files
    assert [filing.put_back(key, folder) for key, folder in folders.items()] == [False] * 3


def test_junk_is_the_folder_of_spam_if_it_is_there(maildir):
    for part in ("cur", "new"):
        (maildir.root / ".Junk" / part).mkdir(parents=True)
    maildir.put("new/1.h", spam(1))
    filing = filing_of(maildir)

    assert filing.file("1.h", "spam") == INBOX
    assert set(maildir.files) == {".Junk/new/1.h"}
    assert filing.put_back("1.h", INBOX)


def test_what_is_not_there_or_has_no_place_stays(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put(".Sent/new/2.h", ham(2))
    filing = filing_of(maildir)
    files = maildir.files

    assert filing.file("1.h", "travel") is None
    for key in ("2.h", "gone", "", "../new/1.h", "%31.h", "\udc80", "1.h:2,", "\0"):
        assert filing.leaves(key, "spam") is None
        assert filing.file(key, "spam") is None
    for folder in (".Sent", "../x", "tmp", ".Junk"):
        assert not filing.put_back("1.h", folder)
    assert maildir.files == files
    assert not (maildir.root / "nbspam-sorted").exists()


def test_nothing_is_overwritten(maildir):
    maildir.put("new/1.h", ham(1))
    maildir.put(".Spam/cur/1.h:2,S", b"another of this name")
    files = maildir.files

    assert filing_of(maildir).file("1.h", "spam") is None
    assert maildir.files == files


def test_what_is_where_it_belongs_is_left_there_by_sort(maildir):
    maildir.put("new/1.h", spam(1))
    maildir.put(".Spam/new/2.h", ham(2))
    filing = filing_of(maildir)

    assert [filing.file("1.h", "ham"), filing.file("2.h", "spam")] == [None, None]
    report = maildir.sort()
    assert (report.judged, report.learned) == ([], [])
    assert set(maildir.files) == {"new/1.h", ".Spam/new/2.h"}


def test_any_name_can_be_moved(maildir):
    name = os.fsdecode(b"1.caf\xe9 %41,S=9")
    maildir.put(f"new/{name}", ham(1))
    mailbag = ReviewMailbox(str(maildir.root))
    (letter,) = mailbag.newest()

    assert mailbag.file(letter.key, "spam") == INBOX
    assert maildir.files == {f".Spam/new/{name}": ham(1)}
    assert maildir.sort().learned == []
    assert dict(mailbag.read([letter.key])) == {letter.key: ham(1)}


def test_what_vanishes_just_before_it_is_moved_is_left_alone(maildir, monkeypatch):
    maildir.put("new/1.h", ham(1))
    maildir.sort()
    found = module.maildir_entries

    def late(root, folder):
        yield from found(root, folder)
        if folder == ".Unsure":
            maildir.rename("new/1.h", "cur/1.h:2,S")

    monkeypatch.setattr(module, "maildir_entries", late)
    before = maildir.noted()
    assert filing_of(maildir).file("1.h", "spam") is None
    assert list(maildir.files) == ["cur/1.h:2,S"]
    assert maildir.noted() == before


# ---- what cannot be moved ----


def test_a_sorter_that_takes_long_is_not_waited_for(maildir, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    maildir.put("new/1.h", ham(1))
    program = (
        "import sys, time\nfrom nbspam.disk import locked\n"
        "with locked(sys.argv[1]): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, maildir.root / "nbspam-sorted"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
        holder.stdout.readline()
        begun = time.monotonic()
        with pytest.raises(ModelFileError, match=r"nbspam-sorted: locked by another process for"):
            filing_of(maildir).file("1.h", "spam")
        holder.kill()
    assert time.monotonic() - begun < 30
    assert list(maildir.files) == ["new/1.h"]
    assert filing_of(maildir).file("1.h", "spam") == INBOX


def test_a_folder_that_is_a_link_is_no_place_for_mail(maildir, tmp_path):
    for part in ("cur", "new"):
        (tmp_path / "theirs" / part).mkdir(parents=True)
    (tmp_path / "theirs/new/9.h").write_bytes(spam(9))
    (maildir.root / ".Spam").symlink_to(tmp_path / "theirs")
    maildir.put("new/1.h", ham(1))
    filing = filing_of(maildir)

    with pytest.raises(InputError, match=r"\.Spam: not moved there, as it is elsewhere by a link"):
        filing.file("1.h", "spam")
    assert filing.file("9.h", "ham") is None
    assert list(maildir.files) == ["new/1.h"]


def test_a_disk_that_refuses_is_an_error_in_one_line(maildir, monkeypatch):
    maildir.put("new/1.h", ham(1))

    def full(*arguments):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(module, "write_note", full)
    with pytest.raises(InputError, match="x: No space left on device; nothing is lost"):
        filing_of(maildir).file("1.h", "spam")
    assert list(maildir.files) == ["new/1.h"]


def test_only_a_maildir_can_be_moved_in(tmp_path):
    (tmp_path / "1.eml").write_bytes(ham(1))

    with pytest.raises(
        UsageError, match=r"no Maildir, and only in one can messages be moved; give"
    ):
        ReviewMailbox(str(tmp_path)).check_movable()
