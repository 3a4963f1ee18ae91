"""Sorting a Maildir: verdicts move new mail, and what its user moves is learned."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from maildirs import DAY, Maildir, ham, spam
from nbspam.decision import cutoffs
from nbspam.delivery import maildir as sort
from nbspam.delivery.maildir import MaildirNote, SortingChoices, sort_maildir, write_note
from nbspam.disk import locked
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.mail.digest import digest_of
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from stored import full_disk
from support import crash_at, make_maildir, raising


def unsure(classifier):
    """Return a rule by which nearly all mail is unsure."""
    return cutoffs(2, 1e-9)


def test_new_spam_goes_to_its_folder_and_ham_and_mail_that_was_read_stay(maildir):
    maildir.put("new/1.h", spam(1))
    maildir.put("new/2.h", ham(2))
    maildir.put("cur/3.h,S=9:2,R", spam(3))
    maildir.put("cur/4.h;2,S", spam(4))

    report = maildir.sort()

    assert maildir.files == {
        ".Spam/new/1.h": spam(1),
        "new/2.h": ham(2),
        ".Spam/cur/3.h,S=9:2,R": spam(3),
        "cur/4.h;2,S": spam(4),
    }
    found = [(one.name, one.label) for one in report.judged]
    assert found == [("new/1.h", "spam"), ("new/2.h", "ham"), ("cur/3.h,S=9:2,R", "spam")]
    assert report.learned == report.skipped == []
    files, note = maildir.files, (maildir.root / "nbspam-sorted").stat()
    report = maildir.sort()
    assert (report.judged, report.learned, maildir.files) == ([], [], files)
    assert (maildir.root / "nbspam-sorted").stat().st_mtime_ns == note.st_mtime_ns
    assert maildir.n_learned() == 4


@pytest.mark.parametrize(
    ("inbox", "spam_at", "unsure_at"),
    [
        ("INBOX", "../Junk", "../Unsure"),
        ("inbox", "../Junk", "../Unsure"),
        ("mail", ".Spam", ".Unsure"),
    ],
)
def test_an_inbox_has_its_spam_in_the_junk_folder_beside_it(
    tmp_path, trained, inbox, spam_at, unsure_at
):
    """As mbsync (`SubFolders Verbatim`) and OfflineIMAP, which know no folders inside it."""
    maildir = Maildir(tmp_path / inbox, trained)
    make_maildir(tmp_path / "Junk")
    (tmp_path / "Spam").mkdir()  # no Maildir
    maildir.put("new/1.h,U=7:2,", spam(1))
    assert [one.moved_to for one in maildir.sort().judged] == [f"{spam_at}/new/1.h:2,"]
    maildir.rename(f"{spam_at}/new/1.h:2,", "cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["ham"]
    maildir.put("new/2.h", spam(2))
    assert [one.moved_to for one in maildir.sort(unsure).judged] == [f"{unsure_at}/new/2.h"]


@pytest.mark.parametrize("first", [{}, {"spam_folder": "Named"}])
@pytest.mark.parametrize("other", [{}, {"spam_folder": "Other"}, {"flag": "F"}])
def test_a_run_with_another_folder_forgets_no_spam(maildir, first, other):
    maildir.put("new/1.h", spam(1))
    (spam_at,) = (one.moved_to for one in maildir.sort(**first).judged)
    assert maildir.sort(**other).learned == []
    maildir.rename(spam_at, "cur/1.h")
    assert [(one.name, one.label) for one in maildir.sort(**first).learned] == [("cur/1.h", "ham")]


def test_a_folder_of_a_maildir_has_its_spam_beside_it(maildir, trained):
    """In it no mail program would show any."""
    lists = Maildir(maildir.root / ".Lists", trained)
    lists.put("new/1.h", spam(1))
    with pytest.raises(UsageError, match=r"\.Lists: a folder of a Maildir, and mail program"):
        lists.sort()
    report = lists.sort(unsure, spam_folder="../.Spam")
    assert [one.moved_to for one in report.judged] == ["../.Unsure/new/1.h"]
    lists.put("new/2.h", spam(2))
    report = lists.sort(spam_folder="../.Spam")
    assert [one.moved_to for one in report.judged] == ["../.Spam/new/2.h"]


def test_a_message_leaves_its_uid_in_its_folder_and_its_copies_are_the_same(maildir):
    """As mbsync, mutt and Rmail need, which write UIDs into names and headers into copies."""
    maildir.put("new/1.h,U=7:2,", spam(1))
    maildir.put("new/2.h,U=8,FMD5=9:2,", ham(2))
    maildir.sort()
    assert list(maildir.files) == ["new/2.h,U=8,FMD5=9:2,", ".Spam/new/1.h:2,"]
    maildir.rename(".Spam/new/1.h:2,", ".Spam/cur/1.h,U=1:2,")
    assert maildir.sort().learned == []

    (maildir.root / ".Spam/cur/1.h,U=1:2,").unlink()  # its user moves it in the account
    lines = b"\nX-TUID: 0123456789ab\nContent-Length: 968\nX-UID: 7\nX-RMAIL-ATTRIBUTES: A\n\n"
    maildir.put("new/3.h,U=9:2,", spam(1).replace(b"\n\n", lines, 1).replace(b"\n", b"\r\n"))
    report = maildir.sort()
    assert [(one.name, one.label) for one in report.learned] == [("new/3.h,U=9:2,", "ham")]
    assert report.judged == []


def test_unsure_mail_goes_where_it_is_looked_through(maildir):
    maildir.put("new/0.h", spam(0))
    maildir.sort()
    maildir.put("new/1.h", spam(1))
    assert maildir.sort(unsure).learned == []  # spam that was sorted before is not judged again
    assert set(maildir.files) == {".Spam/new/0.h", ".Unsure/new/1.h"}
    maildir.rename(".Unsure/new/1.h", ".Spam/cur/1.h:2,S")
    report = maildir.sort()
    assert [(one.name, one.label) for one in report.learned] == [(".Spam/cur/1.h:2,S", "spam")]


# --- what users move ------------------------------------------------------------------


def test_what_is_moved_is_learned_once_as_where_it_lies_whatever_its_name(maildir):
    def moved(here, there):
        maildir.rename(here, there)
        learned = [(one.name, one.label) for one in maildir.sort().learned]
        assert list(maildir.files) == [there]
        assert maildir.sort().learned == []
        return learned, load(str(maildir.model)).table.class_count.tolist()

    maildir.put("new/1.h", spam(1))
    maildir.sort()
    there = "cur/99.other:2,"
    assert moved(".Spam/new/1.h", there) == ([(there, "ham")], [3, 2])
    back = ".Spam/cur/99.other:2,S"
    assert moved(there, back) == ([(back, "spam")], [2, 3])
    maildir.put("new/2.gz", whole := gzip.compress(ham(2)))
    maildir.sort()
    maildir.rename("new/2.gz", ".Spam/new/2.gz")
    for data, n in (whole[:9], 0), (whole, 1):  # what cannot be read is learned when it can
        maildir.put(".Spam/new/2.gz", data)
        assert [one.label for one in maildir.sort().learned] == ["spam"] * n


@pytest.mark.parametrize("first", [1, 2])
def test_equal_messages_are_known_by_where_they_lie_if_all_names_change(maildir, first):
    for n in (1, 2):
        maildir.put(f"new/{n}.h", spam(1))
    maildir.sort()
    maildir.rename(f".Spam/new/{first}.h", "cur/5.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["ham"]
    maildir.rename("cur/5.h:2,S", "cur/3.h:2,S")
    maildir.rename(f".Spam/new/{3 - first}.h", ".Spam/cur/4.h:2,")
    assert maildir.sort().learned == []


@pytest.mark.parametrize("there", ["new/2.h:2,", "new/2.h:2,T", None])
def test_a_message_marked_as_deleted_has_gone_and_its_copy_was_moved(maildir, there):
    maildir.put("new/1.h", spam(1))
    maildir.put("cur/3.h:2,T", spam(3))
    maildir.sort()
    maildir.rename(".Spam/new/1.h", ".Spam/cur/1.h:2,ST")
    maildir.put(".Spam/cur/4.h:2,T", ham(4))
    if there is not None:
        maildir.put(there, spam(1))

    report, files = maildir.sort(), maildir.files
    learned = [(one.name, one.label) for one in report.learned]
    assert learned == ([(there, "ham")] if there == "new/2.h:2," else [])
    assert report.judged == []
    assert "cur/3.h:2,T" in files
    assert (maildir.sort().learned, maildir.files) == ([], files)


def test_unknown_mail_among_spam_teaches_errors_but_less_than_what_a_person_has_told(maildir):
    for n in (1, 2):
        maildir.put(f".Junk/cur/{n}.h:2,S", ham(n))  # the user dragged them there
    maildir.put(".Junk/new/3.h", spam(3))  # another filter put it there
    maildir.put("new/4.h", spam(3))  # and this is a copy
    maildir.teach(ham(1), "ham")

    learned = maildir.sort().learned
    assert [(one.name, one.label) for one in learned] == [(".Junk/cur/2.h:2,S", "spam")]
    assert ".Junk/new/4.h" in maildir.files
    assert StoredModel(str(maildir.model)).told() == {
        digest_of(ham(1)): "ham",
        digest_of(ham(2)): "spam",
    }
    assert maildir.sort().learned == []


def test_a_name_in_two_folders_at_once_is_no_move_and_is_told_once(maildir):
    maildir.put("cur/1.h:2,S", ham(1))
    maildir.sort()
    maildir.put(".Spam/cur/1.h:2,S", spam(1))
    maildir.put("new/2.h", spam(2))
    maildir.put(".Spam/cur/2.h:2,S", spam(4))
    maildir.put("new/3.h", spam(3))
    before = maildir.learned()

    report = maildir.sort()
    told = (
        f"{maildir.root}: 1.h is in two folders at once, as 1 more names are; nothing is learned"
    )
    assert [note[: len(told)] for note in report.notes] == [told]
    assert report.learned == []
    judged = [(one.name, one.label) for one in report.judged]
    assert judged == [("new/2.h", "spam"), ("new/3.h", "spam")]
    for _ in range(2):
        again = maildir.sort()
        assert (again.learned, again.judged, again.notes) == ([], [], [])
    assert maildir.learned() == before
    kept = {"cur/1.h:2,S", ".Spam/cur/1.h:2,S", ".Spam/new/2.h", ".Spam/cur/2.h:2,S"}
    assert set(maildir.files) == {*kept, ".Spam/new/3.h"}

    maildir.put("cur/3.h:2,S", ham(3))  # nothing else changes
    told = f"{maildir.root}: 3.h is in two folders at once; nothing is learned from their moves"
    assert [note[: len(told)] for note in maildir.sort().notes] == [told]
    assert maildir.sort().notes == []

    # One that has a name of its own again is left where it is, and its next move is a lesson.
    (maildir.root / "cur/1.h:2,S").unlink()
    assert maildir.sort().learned == []
    maildir.rename(".Spam/cur/1.h:2,S", "cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["ham"]


def test_the_first_lesson_of_a_model_says_what_it_lacks(tmp_path):
    maildir = Maildir(tmp_path / "Maildir", tmp_path / "none")
    maildir.put(".Spam/cur/1.h", spam(1))
    assert "the model knows only spam" in maildir.sort().notes[-1]
    maildir.teach(ham(1), "ham")
    maildir.teach(spam(1), None)
    maildir.put(".Spam/cur/2.h", spam(2))
    report = maildir.sort()
    assert ([one.label for one in report.learned], report.lack) == (["spam"], None)
    for n in range(3, 12):
        maildir.teach(spam(n), "spam")
    maildir.put("new/3.h", spam(12))
    assert "the model knows 1 ham beside 10 of spam, and needs 100; teach" in maildir.sort().lack
    assert "new/3.h" in maildir.files


# --- flags instead of folders ---------------------------------------------------------


@pytest.mark.parametrize("flag", ["F", "x", None])
def test_spam_may_be_flagged_instead_and_flags_that_users_change_teach(maildir, flag):
    maildir.put("new/1.h", spam(1))
    maildir.put("new/2.h", ham(2))
    maildir.put("cur/3.h!2,R", spam(3))
    maildir.sort(flag="F")
    assert set(maildir.files) == {"cur/1.h:2,F", "new/2.h", "cur/3.h!2,FR"}
    assert maildir.sort(flag="F").judged == []
    for _ in range(2):  # another way makes no lesson of what the last one left
        assert maildir.sort(flag=flag).learned == []
    assert maildir.sort(flag="F").learned == []
    there = f"cur/2.h:2,{flag}" if flag else ".Spam/cur/2.h:2,"
    maildir.rename("new/2.h", there)
    found = {(there, "spam")}
    if flag == "F":
        maildir.rename("cur/1.h:2,F", "cur/1.h:2,S")
        found.add(("cur/1.h:2,S", "ham"))
    assert {(one.name, one.label) for one in maildir.sort(flag=flag).learned} == found


# --- nothing is lost ------------------------------------------------------------------


def test_a_dry_run_touches_nothing_and_nothing_is_learned_if_nothing_is_to_be(maildir):
    maildir.put("new/1.h", spam(1))
    maildir.put(".Spam/new/2.h", ham(2))
    before = sorted(p.name for p in maildir.root.rglob("*"))

    report = maildir.sort(dry_run=True)

    assert [one.moved_to for one in report.judged] == [".Spam/new/1.h"]
    assert [one.label for one in report.learned] == ["spam"]
    assert sorted(p.name for p in maildir.root.rglob("*")) == before
    assert maildir.sort(learns=False).learned == []
    assert maildir.n_learned() == 4


@pytest.mark.parametrize("step", range(13))
def test_a_crash_at_any_step_loses_no_mail_and_teaches_nothing_wrong(maildir, monkeypatch, step):
    messages = {f"{n}.h": spam(n) if n % 2 else ham(n) for n in range(6)}
    for name, data in messages.items():
        maildir.put(f"new/{name}", data)
    with monkeypatch.context() as patch:
        crash_at(step, patch, sort, "move", "write_note", "load_tokens")
        try:
            maildir.sort()
        except KeyboardInterrupt:
            assert {os.path.basename(p): d for p, d in maildir.files.items()} == messages

    assert maildir.sort().learned == []
    assert set(maildir.files) == {f".Spam/new/{n}.h" if n % 2 else f"new/{n}.h" for n in range(6)}
    assert maildir.n_learned() == 4


def test_mail_that_comes_or_goes_meanwhile_is_no_error(maildir, monkeypatch):
    for n in (1, 2):
        maildir.put(f"new/{n}.h", spam(n))

    def load_late(path):
        maildir.rename("new/1.h", "cur/1.h:2,S")
        maildir.put("new/3.h", spam(3))
        return load(path)

    with monkeypatch.context() as patch:
        patch.setattr(sort, "load_tokens", load_late)
        report = maildir.sort()

    assert (report.skipped, [one.name for one in report.judged]) == ([], ["new/2.h"])
    assert set(maildir.files) == {"cur/1.h:2,S", ".Spam/new/2.h", "new/3.h"}
    maildir.sort()
    assert set(maildir.files) == {"cur/1.h:2,S", ".Spam/new/2.h", ".Spam/new/3.h"}


@pytest.mark.parametrize(
    ("data", "here", "there", "label"),
    [
        (ham(1), "cur/1.h:2,S", ".Spam/cur/1.h:2,S", "spam"),
        (spam(1), ".Spam/cur/1.h:2,S", "cur/1.h:2,S", "ham"),
    ],
)
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_message_that_moves_while_folders_are_listed_is_a_lesson(
    maildir, monkeypatch, data, here, there, label, n_before
):
    maildir.put(here, data)
    maildir.put("cur/2.h:2,S", ham(2))
    maildir.sort()
    (maildir.root / "cur/2.h:2,S").unlink()  # for which folders are listed again
    listed, moves = sort.maildir_entries, [(here, here)] * n_before + [(here, there)]

    def listing(root, folder):
        found = list(listed(root, folder))
        if moves and folder == "":
            maildir.rename(*moves.pop(0))
        return found

    monkeypatch.setattr(sort, "maildir_entries", listing)
    report = maildir.sort()
    assert ([one.label for one in report.learned], report.notes) == ([label], [])


def test_a_sorter_waits_for_another(maildir, monkeypatch):
    maildir.put("new/1.h", spam(1))
    with ThreadPoolExecutor(1) as pool:
        with locked(str(maildir.root / "nbspam-sorted")):
            waits = pool.submit(maildir.sort)
            assert wait([waits], 0.3).not_done
            assert list(maildir.files) == ["new/1.h"]
            monkeypatch.setattr(sort, "SORTING_PATIENCE", 0.1)
            with pytest.raises(ModelFileError, match=r"nbspam-sorted: locked by another process"):
                maildir.sort()
        assert [one.label for one in waits.result().judged] == ["spam"]
    maildir.rename(".Spam/new/1.h", "cur/1.h")  # a lesson
    with locked(str(maildir.model)), pytest.raises(ModelFileError, match=r"m\.nbspam: locked"):
        maildir.sort()


def test_sorters_and_a_deliverer_at_once_lose_nothing(maildir):
    command = [sys.executable, "-m", "nbspam", "sort", "-q", str(maildir.root)]
    messages = {f"{n}.h": spam(n) if n % 2 else ham(n) for n in range(40)}
    sorters = []
    for n, (name, data) in enumerate(messages.items()):
        maildir.put(f"tmp/{name}", data)
        maildir.rename(f"tmp/{name}", f"new/{name}")
        if n in (10, 20, 30):
            sorters.append(subprocess.Popen(command, stderr=subprocess.PIPE))
    for sorter in sorters:
        assert (sorter.communicate()[1], sorter.returncode) == (b"", 0)
    maildir.sort()

    assert maildir.files == {
        f".Spam/new/{n}.h" if n % 2 else f"new/{n}.h": messages[f"{n}.h"] for n in range(40)
    }
    assert maildir.n_learned() == 4


def test_a_disk_that_refuses_is_an_error_in_one_line(maildir, monkeypatch):
    maildir.put("new/1.h", spam(1))
    (maildir.root / ".Spam").symlink_to("gone")
    with pytest.raises(InputError, match=r"/.Spam: File exists; nothing is lost, move it away, "):
        maildir.sort()
    (maildir.root / ".Spam").unlink()

    for refuse, said in (
        (full_disk, "No space left on device; nothing is lost, free some space, then"),
        (raising(OSError(errno.EIO, "I/O error")), "I/O error; nothing is lost, try again$"),
    ):
        monkeypatch.setattr(sort, "replacing", refuse)
        with pytest.raises(InputError, match=f"{sort.NOTE_FILE}: {said}"):
            maildir.sort()
    assert list(maildir.files) == [".Spam/new/1.h"]

    monkeypatch.undo()
    maildir.put("new/2.h", spam(2))
    denied = OSError(errno.EACCES, "Permission denied", "new/2.h", None, ".Spam/new/2.h")
    monkeypatch.setattr(os, "rename", raising(denied))
    with pytest.raises(InputError, match=r"^\.Spam/new/2\.h: Permission denied; noth"):
        maildir.sort()


def test_what_was_moved_before_a_signal_is_noted(maildir, nbspam, monkeypatch):
    for n in (1, 2):
        maildir.put(f"new/{n}.h", spam(n))
    moves = iter([sort.move, lambda *_: signal.raise_signal(signal.SIGTERM)])
    with monkeypatch.context() as patch:
        patch.setattr(sort, "move", lambda *where: next(moves)(*where))
        assert nbspam("sort", maildir.root) == (130, "", "nbspam: interrupted\n")
    maildir.rename(".Spam/new/1.h", "cur/1.h:2,S")
    assert [one.label for one in maildir.sort().learned] == ["ham"]


def test_what_cannot_be_sorted_is_an_error(maildir, nbspam, folder, trained):
    with pytest.raises(ModelFileError, match="cannot read the model"):  # it may be there
        sort_maildir(str(maildir.root), f"{trained}/m", SortingChoices(), DAY)
    maildir.put("cur/0.h:2,S", ham(0))
    maildir.sort()
    learns = ("update", "--label", "work=-", "--new-class")  # a class that the journal knows
    assert nbspam(*learns, stdin=ham(1))[0] == 0
    with pytest.raises(UsageError, match=r"^sort: .* the labels are ham, spam, work; give a m"):
        sort.sorting_model(str(trained))
    (folder / "ham").rename(folder / "work")
    nbspam("train", folder)
    with pytest.raises(UsageError, match=r"^sort: .* the labels are spam, work; give a mod"):
        maildir.sort()  # even if there is nothing to judge
    for place in ("new/1.h", ".Spam/new/1.h"):  # one to judge, and a lesson
        maildir.put("new/1.h", spam(1))
        write_note(str(maildir.root), {"1.h": MaildirNote("ham", "-")} if "Spam" in place else {})
        maildir.rename("new/1.h", place)
        with pytest.raises(UsageError, match=r"^sort: .* the labels are spam, work; give a mod"):
            maildir.sort()


@pytest.mark.parametrize("part", ["", "new", "cur"])
def test_a_maildir_that_cannot_be_written_to_is_told_with_its_rights(maildir, monkeypatch, part):
    path, may = str(maildir.root / part).rstrip("/"), os.access
    monkeypatch.setattr(os, "access", lambda at, mode: at != path and may(at, mode))
    (maildir.root / part).chmod(0o750)
    maildir.put("new/1.h", spam(1))
    why = rf"{path}: cannot be written to \(drwxr-x---, of user {os.getuid()}\); sort as its owner"
    with pytest.raises(InputError, match=why):
        maildir.sort()
    assert list(maildir.files) == ["new/1.h"]
    assert maildir.sort(dry_run=True).judged[0].label == "spam"
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(InputError, match=f"^{path}: on a read-only file system; mount it to be"):
        maildir.sort()


# --- the command ----------------------------------------------------------------------


def test_the_command_says_what_it_did_to_people_and_in_json(maildir, nbspam):
    maildir.put("new/1.h", spam(1))
    maildir.put("new/2.h", ham(2))
    maildir.put(".Spam/new/3.h", ham(3))

    out = nbspam.out("sort", "--dry-run", maildir.root)
    assert out.splitlines() == [
        "learn\tspam\t.Spam/new/3.h",
        "move\tspam\tnew/1.h\t.Spam/new/1.h",
        "leave\tham\tnew/2.h\t",
        "new: 1 ham, 1 spam; would be learned from moves: 1 spam",
    ]
    assert nbspam("sort", "--learn", "none", maildir.root)[1] == (
        "new: 1 ham, 1 spam; learned from moves: nothing\n"
    )
    assert nbspam("sort", "-q", maildir.root) == (0, "", "")

    maildir.put("new/4.h", spam(4))
    maildir.put("new/5.gz", b"neither mail nor gzip")
    maildir.put(".Spam/cur/6", b"GIF89a\n" + ham(6))
    status, out, _ = nbspam("sort", maildir.root, "--json")
    assert status == 1  # a message was skipped
    said = json.loads(out)
    (judged,) = said["judged"]
    assert judged["moved_to"] == ".Spam/new/4.h"
    assert judged["probability"] > 0.5
    assert [one["name"].rpartition("/")[2] for one in said["skipped"]] == ["5.gz", "6"]
    assert (said["learned"], said["dry_run"]) == ([], False)
