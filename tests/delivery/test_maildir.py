import os
import shutil
from pathlib import Path

import pytest

from nbspam.delivery.maildir import (
    MaildirEntry,
    MaildirNote,
    check_maildir,
    maildir_entries,
    maildir_folder_name,
    move,
    read_note,
    spam_folder,
    write_note,
)
from nbspam.errors import InputError, UsageError
from support import make_maildir, write_files


@pytest.fixture
def root(tmp_path):
    return make_maildir(tmp_path)


INBOX, SPAM = MaildirEntry("", "new", "1.h"), MaildirEntry(".Spam", "new", "1.h")


def test_every_message_is_one_entry(root):
    names = "new/2.h cur/1.h:2,S cur/2.h:2, cur/.hidden tmp/3.h cur/5.h:2,ST .Spam/cur/4.h"
    write_files(root, dict.fromkeys(names.split(), b"x"))
    (root / "cur" / "folder").mkdir()
    (root / "cur" / "link").symlink_to("1.h:2,S")

    assert [e.path for e in maildir_entries(str(root), "")] == ["new/2.h", "cur/1.h:2,S"]
    assert [e.path for e in maildir_entries(str(root), ".Spam")] == [".Spam/cur/4.h"]
    (root / ".File").write_bytes(b"")
    assert [*maildir_entries(str(root), ".None"), *maildir_entries(str(root), ".File")] == []
    entry = MaildirEntry(".A", "cur", "1.h:2,RS")
    assert entry.flagged("S") == entry  # which it has


@pytest.mark.parametrize("there", [{}, {".Spam/cur/2.h": b"x"}])
def test_a_new_folder_is_a_maildir_plus_plus_folder_and_what_it_lacks_is_made(root, there):
    write_files(root, {"new/1.h": b"x", **there})

    assert move(str(root), INBOX, SPAM)
    folder = root / ".Spam"
    assert sorted(p.name for p in folder.iterdir()) == ["cur", "maildirfolder", "new", "tmp"]
    assert (folder / "maildirfolder").read_bytes() == b""
    assert {p.stat().st_mode & 0o777 for p in (folder / "tmp", folder / "new")} == {0o700}
    assert (folder / "new" / "1.h").read_bytes() == b"x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_belongs_to_the_owner_of_the_maildir_but_nothing_else(root, monkeypatch):
    write_files(root, {"new/1.h": b"x", "theirs/key": b"secret"})
    os.chown(root, 1234, 1235)
    assert move(str(root), INBOX, SPAM)
    made = [root / ".Spam", *(p for p in (root / ".Spam").iterdir())]
    assert len(made) == 5
    assert {(p.stat().st_uid, p.stat().st_gid) for p in made} == {(1234, 1235)}

    # A folder may be moved to the place of the new one.
    shutil.rmtree(root / ".Spam")
    write_files(root, {"new/1.h": b"x"})
    make = os.mkdir

    def exchanged(path, mode):
        make(path, mode)
        if Path(path) == root / ".Spam":
            os.rmdir(path)
            os.rename(root / "theirs", path)

    monkeypatch.setattr(os, "mkdir", exchanged)
    move(str(root), INBOX, SPAM)
    assert [(root / ".Spam" / name).stat().st_uid for name in ("", "key")] == [0, 0]


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ([], ".Spam"), ([".Junk"], ".Junk"), ([".Junk", ".Spam"], ".Spam"),
        ([".spam", ".Spam"], ".Spam"), ([".spam", ".Junk"], ".spam"),
        ([".Junk E-mail"], ".Junk E-mail"), ([".Spam.old", "Junk"], ".Spam"),
    ],
)  # fmt: skip
def test_the_spam_folder_is_the_first_usual_name_that_is_there(root, there, found):
    (root / ".Spam").write_bytes(b"")  # a file is none
    assert spam_folder(str(root)) == ".Spam"
    (root / ".Spam").unlink()
    for name in there:
        (root / name).mkdir()
    assert spam_folder(str(root)) == found


def test_moving_overwrites_nothing_and_ignores_missing_messages(root):
    write_files(root, {"new/1.h": b"one", ".Spam/new/1.h": b"other"})

    assert not move(str(root), INBOX, SPAM)
    assert (root / INBOX.path).read_bytes() == b"one"
    assert (root / SPAM.path).read_bytes() == b"other"
    assert not move(str(root), INBOX._replace(file="2.h"), SPAM._replace(file="2.h"))


def test_a_note_is_read_as_it_was_written_without_damaged_lines(root):
    left = {"1.h": MaildirNote("spam", "0f"), os.fsdecode(b"a b\xff"): MaildirNote("unsure", "10")}

    assert read_note(str(root)) == {}
    write_note(str(root), left)
    assert read_note(str(root)) == left
    assert (root / "nbspam-sorted").stat().st_mode & 0o777 == 0o600
    (root / "nbspam-sorted").write_bytes(b"spam 0f 1.h\nspam\n\xff\xff 1 2\n\nham 1")
    assert read_note(str(root)) == {"1.h": MaildirNote("spam", "0f")}


def test_folders_may_be_named_with_or_without_their_dot():
    assert maildir_folder_name("Junk") == maildir_folder_name(".Junk") == ".Junk"
    assert maildir_folder_name("Müll & Spam") == ".M&APw-ll &- Spam"
    assert maildir_folder_name("~peter.mail.台北.日本語") == ".~peter.mail.&U,BTFw-.&ZeVnLIqe-"
    assert maildir_folder_name(".M&APw-ll") == ".M&APw-ll"  # as it is on disk
    assert maildir_folder_name("../Bulk") == "../Bulk"
    for name in ("", ".", "..", "...", "a/b", "../..", "../a/b", "a\nb"):
        with pytest.raises(UsageError, match="not the name of a Maildir folder"):
            maildir_folder_name(name)


def test_another_folder_is_told_from_one_that_may_not_be_entered(tmp_path, monkeypatch):
    (tmp_path / "mbox").touch()
    for other in (tmp_path, tmp_path / "mbox"):
        with pytest.raises(InputError, match=r"not a Maildir \(no cur/ and new/\)"):
            check_maildir(str(other))
    with pytest.raises(InputError, match="no such folder or account; check the spelling"):
        check_maildir(str(tmp_path / "home"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may enter any
    with pytest.raises(InputError, match="may not be entered; sort as its owner, or change"):
        check_maildir(str(tmp_path))
