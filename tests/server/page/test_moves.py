"""Moves by the page: where mail goes, what stays, what `nbspam sort` makes of it, and crashes."""

import os
import shutil
import subprocess
import sys
from functools import partial

import pytest

from maildirs import Maildir, ham, spam
from nbspam.delivery.maildir import MAILDIR_INBOX, MaildirNote, read_note
from nbspam.disk import locked
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.server.page import mailbox as module
from nbspam.server.page.mailbox import ReviewMailbox
from support import ROOT, crash_at, make_maildir

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def mailbox(maildir):
    """That Maildir, as the page sees it."""
    return seen(maildir)


def seen(maildir):
    return ReviewMailbox(str(maildir.root), str(maildir.model))


def assert_sort_leaves_all(maildir, times=1):
    for _ in range(times):
        report = maildir.sort()
        assert (report.learned, report.judged) == ([], [])


# ---- where mail goes ----


def test_spam_goes_to_the_folder_of_spam_and_ham_to_the_inbox_and_back(maildir, mailbox):
    rows = [  # where a message is, what a person says, where it goes, and the folder it leaves
        ("new/1.h", "spam", ".Spam/new/1.h", MAILDIR_INBOX),
        ("cur/2.h,S=9:2,FS", "spam", ".Spam/cur/2.h,S=9:2,FS", MAILDIR_INBOX),
        (".Spam/cur/3.h:2,S", "ham", "cur/3.h:2,S", ".Spam"),
        (".Unsure/new/4.h", "ham", "new/4.h", ".Unsure"),
        (".Unsure/new/5.h", "spam", ".Spam/new/5.h", ".Unsure"),
    ]
    for path, *_ in rows:
        maildir.put(path, path.encode())
    told = [(os.path.basename(path).partition(":")[0], label) for path, label, *_ in rows]

    mailbox.newest()
    shown = [mailbox.folder_of(key) for key, _ in told]
    assert shown == ["INBOX", "INBOX", ".Spam", ".Unsure", ".Unsure"]
    assert [mailbox.leaves(*each) for each in told] == [row[3] for row in rows]
    assert [mailbox.file(*each) for each in told] == [row[3] for row in rows]
    assert maildir.files == {row[2]: row[0].encode() for row in rows}
    assert [mailbox.leaves(*each) for each in told] == [None] * 5
    assert [mailbox.file(*each) for each in told] == [None] * 5
    mailbox.newest()
    shown = [mailbox.folder_of(key) for key, _ in told]
    assert shown == [".Spam", ".Spam", "INBOX", "INBOX", ".Spam"]
    back = [(key, row[3]) for (key, _), row in zip(told, rows, strict=True)]
    assert [mailbox.put_back(*each) for each in back] == [True] * 5
    assert maildir.files == {row[0]: row[0].encode() for row in rows}
    assert [mailbox.put_back(*each) for each in back] == [False] * 5


def test_junk_is_the_folder_of_spam_if_it_is_there_and_any_name_can_be_moved(maildir, mailbox):
    for part in ("cur", "new"):
        (maildir.root / ".Junk" / part).mkdir(parents=True)
    name = os.fsdecode(b"1.caf\xe9 %41,S=9")
    maildir.put(f"new/{name}", ham(1))
    (letter,) = mailbox.newest()

    assert mailbox.file(letter.key, "spam") == MAILDIR_INBOX
    assert maildir.files == {f".Junk/new/{name}": ham(1)}
    assert maildir.sort().learned == []
    assert dict(mailbox.read([letter.key])) == {letter.key: ham(1)}
    assert mailbox.put_back(letter.key, MAILDIR_INBOX)


def test_what_is_not_there_or_has_no_place_stays_and_nothing_is_overwritten(
    maildir, mailbox, tmp_path
):
    maildir.put("new/1.h", ham(1))
    maildir.put(".Sent/new/2.h", ham(2))
    files = maildir.files

    assert mailbox.file("1.h", "travel") is None
    for key in ("2.h", "gone", "", "../new/1.h", "%31.h", "\udc80", "1.h:2,", "\0"):
        assert mailbox.leaves(key, "spam") is None
        assert mailbox.file(key, "spam") is None
    for folder in (".Sent", "../x", "tmp", ".Junk"):
        assert not mailbox.put_back("1.h", folder)
    assert maildir.files == files
    assert not (maildir.root / "nbspam-sorted").exists()

    maildir.put(".Spam/cur/1.h:2,S", b"another of this name")
    assert mailbox.file("1.h", "spam") is None
    assert maildir.files == {**files, ".Spam/cur/1.h:2,S": b"another of this name"}

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.eml").write_bytes(ham(1))
    why = r"no Maildir, and only in one can messages be moved; give"
    with pytest.raises(UsageError, match=why):
        ReviewMailbox(str(tmp_path / "folder"), "m").check(moves=True)


@pytest.mark.parametrize(("is_known", "left"), [(True, ["cur/1.h:2,S"]), (False, [])])
def test_what_vanishes_just_before_it_is_moved_is_left_alone(
    maildir, mailbox, monkeypatch, is_known, left
):
    maildir.put("new/1.h", ham(1))
    if is_known:
        maildir.sort()
    found = module.maildir_entries

    def late(root, folder):
        yield from found(root, folder)
        if folder == ".Unsure" and is_known:
            maildir.rename("new/1.h", "cur/1.h:2,S")
        elif folder == ".Unsure":
            (maildir.root / "new/1.h").unlink(missing_ok=True)

    monkeypatch.setattr(module, "maildir_entries", late)
    before = maildir.noted()
    assert mailbox.file("1.h", "spam") is None
    assert list(maildir.files) == left
    assert maildir.noted() == before


# ---- what cannot be moved ----


def test_a_sorter_that_takes_long_is_not_waited_for(maildir, mailbox, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    maildir.put("new/1.h", ham(1))
    refused = pytest.raises(ModelFileError, match=r"nbspam-sorted: locked by another process for")
    with locked(str(maildir.root / "nbspam-sorted")), refused:
        mailbox.file("1.h", "spam")
    assert list(maildir.files) == ["new/1.h"]
    assert mailbox.file("1.h", "spam") == MAILDIR_INBOX


@pytest.mark.parametrize(
    ("link", "path", "label"),
    [
        (".Spam", "new/1.h", "spam"),
        (".Spam/new", "new/1.h", "spam"),
        ("cur", ".Spam/new/1.h", "ham"),
    ],
)
def test_a_folder_that_is_a_link_or_has_one_is_no_place_for_mail(
    maildir, mailbox, tmp_path, link, path, label
):
    theirs = make_maildir(tmp_path / "theirs")
    (theirs / "new/9.h").write_bytes(spam(9))
    maildir.put(path, ham(1))
    place = maildir.root / link
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(theirs if link == ".Spam" else theirs / place.name)

    with pytest.raises(InputError, match="not moved there, as it is elsewhere by a link; remove"):
        mailbox.file("1.h", label)
    assert mailbox.leaves("9.h", "ham") is None
    assert (maildir.root / path).exists()


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
    maildir, mailbox, path, data, label, moved
):
    maildir.put(path, data)
    for sorted_before, sorted_between in ((0, 0), (0, 1), (1, 0), (1, 1)):
        if sorted_before:
            maildir.sort()
            assert set(maildir.files) == {path}
        counts = maildir.learned()
        maildir.teach(data, label)
        folder = mailbox.file("1.h", label)
        taught = maildir.learned()
        assert_sort_leaves_all(maildir, sorted_between)
        assert (set(maildir.files), maildir.learned()) == ({moved}, taught)

        assert mailbox.put_back("1.h", folder)
        maildir.teach(data, None)
        assert_sort_leaves_all(maildir, 2)
        assert (maildir.files, maildir.learned()) == ({path: data}, counts)
        (maildir.root / "nbspam-sorted").unlink()


def test_what_a_user_moves_after_us_still_teaches_and_what_sort_knows_of_others_stays(
    maildir, mailbox
):
    for n in range(4):
        maildir.put(f"new/{n}.h", ham(n) if n % 2 else spam(n))
    maildir.sort()
    before = maildir.noted()
    mailbox.file("1.h", "spam")
    assert maildir.noted() == {**before, "1.h": "spam"}
    mailbox.put_back("1.h", MAILDIR_INBOX)
    assert maildir.noted() == before
    mailbox.file("1.h", "spam")
    maildir.rename(".Spam/new/1.h", "cur/1.h:2,S")
    assert [(one.name, one.label) for one in maildir.sort().learned] == [("cur/1.h:2,S", "ham")]

    mailbox.file("1.h", "spam")
    mailbox.put_back("1.h", MAILDIR_INBOX)
    maildir.rename("cur/1.h:2,S", ".Spam/cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["spam"]


def test_what_is_where_it_belongs_or_was_being_moved_is_left_there_by_sort(maildir, mailbox):
    maildir.put("new/1.h", spam(1))
    maildir.put(".Spam/new/2.h", ham(2))
    assert [mailbox.file("1.h", "ham"), mailbox.file("2.h", "spam")] == [None, None]
    assert_sort_leaves_all(maildir)

    digest = "0123456789abcdef"
    note = "".join(f"moving {digest} {name}\n" for name in ("1.h", "2.h"))
    (maildir.root / "nbspam-sorted").write_text(note)
    assert_sort_leaves_all(maildir)
    assert read_note(str(maildir.root)) == {
        "1.h": MaildirNote("ham", digest),
        "2.h": MaildirNote("spam", digest),
    }
    assert set(maildir.files) == {"new/1.h", ".Spam/new/2.h"}


# ---- crashes ----


def crash(maildir, monkeypatch, step, path, sorted_before, undone):
    """Let a lesson's move, or its undoing, be killed at a step, and assert that all ends well."""
    data, label = (spam(1), "ham") if "Spam" in path else (ham(1), "spam")
    maildir.put(path, data)
    if sorted_before:
        maildir.sort()
    mailbox = seen(maildir)
    maildir.teach(data, label)
    if undone:
        folder = mailbox.file("1.h", label)
        assert folder is not None
        act, goal = partial(mailbox.put_back, "1.h", folder), path
    else:
        act = partial(mailbox.file, "1.h", label)
        goal = "new/1.h" if label == "ham" else ".Spam/new/1.h"
    taught = maildir.learned()
    with monkeypatch.context() as patch:
        crash_at(step, patch, module, "move", "write_note")
        with pytest.raises(KeyboardInterrupt):
            act()

    assert list(maildir.files.values()) == [data]
    assert maildir.sort().learned == []
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


def test_sorters_and_the_page_at_once_lose_nothing(maildir, mailbox):
    messages = {f"{n}.h": ham(n) for n in range(12)}
    for name, data in messages.items():
        maildir.put(f"new/{name}", data)
    maildir.sort()
    command = [sys.executable, "-m", "nbspam", "sort", "-q", "-m", maildir.model, maildir.root]
    sorters = [subprocess.Popen(command, env=ENVIRONMENT) for _ in range(2)]
    for name in messages:
        assert mailbox.file(name, "spam") == MAILDIR_INBOX
    for name in list(messages)[::2]:
        assert mailbox.put_back(name, MAILDIR_INBOX)

    assert [sorter.wait(60) for sorter in sorters] == [0, 0]
    assert maildir.sort().learned == []
    assert maildir.files == {
        (".Spam/" if n % 2 else "") + f"new/{n}.h": messages[f"{n}.h"] for n in range(12)
    }
    assert maildir.n_learned() == 4
