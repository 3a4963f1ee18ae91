"""Mailboxes as the page shows them: whose they are, order, names that stay, hostile contents."""

import gzip
import os
from email.header import Header
from urllib.parse import parse_qs, urlencode

import pytest

from maildirs import key_of, put, written
from nbspam.errors import InputError
from nbspam.mail.addresses import heading
from nbspam.server.judge import UserError
from nbspam.server.page import mailbox
from support import make_maildir, raising


def maildir(root, numbers, part="new"):
    for number in numbers:
        put(root, number, part=part)
    return make_maildir(root)


def mbox(path, numbers):
    pieces = (b"From x Thu Jan  1 00:00:00 1970\n" + written(n) + b"\n" for n in numbers)
    path.write_bytes(b"".join(pieces))
    return path


def folder(root, numbers):
    root.mkdir()
    for number in numbers:
        path = root / key_of(number)
        path.write_bytes(written(number))
        os.utime(path, (1000 + number, 1000 + number))
    return root


KINDS = pytest.mark.parametrize("make", [maildir, mbox, folder])
WITH_FILES = pytest.mark.parametrize("make", [maildir, folder])


def box_of(path):
    return mailbox.ReviewMailbox(str(path), "m")


def numbers_of(box):
    letters = box.newest()
    data = dict(box.read({letter.key for letter in letters}))
    return [int(heading(data[letter.key]).subject.removeprefix("number ")) for letter in letters]


def counted(monkeypatch, box):
    """Return a list that grows each time the mailbox is looked through."""
    looks, found = [], box._found
    monkeypatch.setattr(box, "_found", lambda: looks.append(1) or found())
    return looks


# ---- what is in a mailbox ----


@KINDS
def test_the_newest_comes_first_and_a_whole_pass_looks_once_at_most(make, tmp_path, monkeypatch):
    root = make(tmp_path / "box", [1, 2, 3])
    with monkeypatch.context() as patch:
        patch.setattr(mailbox, "MOST_SHOWN", 2)
        assert numbers_of(box_of(root)) == [3, 2]
    box = box_of(root)
    assert numbers_of(box) == [3, 2, 1]
    keys = [letter.key for letter in box.newest()]
    assert dict(box.read({keys[0], "gone", "#00"})) == {keys[0]: written(3)}
    looks = counted(monkeypatch, box)
    assert [key for key, _ in box.read(keys)] == (keys[::-1] if make is mbox else keys)
    assert len(looks) == (make is mbox)
    assert [key for key, _ in box.read([*keys, "gone", "../gone"])]
    assert len(looks) == 1 + (make is mbox)


def test_a_message_that_was_read_or_moved_is_the_same(tmp_path):
    root = maildir(tmp_path / "box", [1, 2])
    put(root, 2, data=gzip.compress(written(2)))  # as Dovecot may keep it
    box = box_of(root)
    before = box.newest()
    os.rename(root / "new" / key_of(2), root / "cur" / f"{key_of(2)}:2,S")
    assert box.newest() == before

    maildir(root / ".Spam", [])  # after the look
    os.rename(root / "new" / key_of(1), root / ".Spam/cur" / f"{key_of(1)}:2,S")
    assert dict(box.read([each.key for each in before])) == {key_of(n): written(n) for n in (1, 2)}


def test_the_folders_of_sort_belong_to_the_mailbox(tmp_path):
    root = maildir(tmp_path / "box", [1, 4])
    maildir(root / ".Junk", [3], "cur")
    maildir(root / ".Unsure", [2])
    maildir(root / ".Sent", [5])

    box = box_of(root)
    assert numbers_of(box) == [4, 3, 2, 1]
    places = [box.folder_of(each.key) for each in box.newest()]
    assert places == ["INBOX", ".Junk", ".Unsure", "INBOX"]
    assert box.folder_of("gone") == ""
    maildir(root / ".Spam", [6])  # from now on sort uses this one
    assert numbers_of(box_of(root)) == [6, 4, 2, 1]


@pytest.mark.parametrize("make", [maildir, mbox])
def test_a_mailbox_is_looked_through_again_once_it_has_changed(make, tmp_path, monkeypatch):
    root = make(tmp_path / "box", [1, 2, 3])
    box = box_of(root)
    looks = counted(monkeypatch, box)
    before = [box.newest()[0].key, box.newest()[0].key]
    assert len(looks) == 2  # a change within the tick of a clock would not show
    for path in (root / "new", root / "cur") if make is maildir else (root,):
        os.utime(path, (1000, 1000))
    assert [box.newest()[0].key, box.newest()[0].key] == before
    assert len(looks) == 3

    if make is maildir:
        (root / "new" / key_of(1)).unlink()
    make(root, [2, 3, 4])
    data = written(3)
    if make is mbox:  # as a mail program notes there that a message was read
        data = b"Status: RO\n" + data
        root.write_bytes(root.read_bytes().replace(b"1970\n", b"1970\nStatus: RO\n"))
    assert numbers_of(box) == [4, 3, 2]
    assert box.newest()[1].key == before[0]
    assert dict(box.read({before[0]})) == {before[0]: data}
    if make is maildir:
        maildir(root / ".Spam", [5], "cur")
        assert numbers_of(box) == [5, 4, 3, 2]


def test_a_mailbox_may_be_empty_a_single_message_or_become_a_maildir(tmp_path):
    for path in (maildir(tmp_path / "maildir", []), mbox(tmp_path / "box", [])):
        box = box_of(path)
        assert box.newest() == []
        (maildir if path.is_dir() else mbox)(path, [1])
        assert numbers_of(box) == [1]
    (tmp_path / "1.eml").write_bytes(written(1))  # a single message is a mailbox, too
    assert numbers_of(box_of(tmp_path / "1.eml")) == [1]
    box = box_of(mbox(tmp_path / "twice", [1, 2, 1]))  # one is there twice
    assert numbers_of(box) == [1, 2]
    assert [each.place for each in box.newest()] == [2, 1]
    box = box_of(folder(tmp_path / "folder", [1]))
    (letter,) = box.newest()
    make_maildir(tmp_path / "folder")
    assert box.folder_of(letter.key) == "INBOX"  # until the next look, which finds none


def test_what_is_no_mailbox_is_refused(tmp_path, monkeypatch):
    for path in (str(tmp_path / "none"), "http://a.example/box"):
        with pytest.raises(InputError, match=r"no such mailbox; give a Maildir, mbox, folder or"):
            box_of(path)
    (tmp_path / "t.tsv").write_text("ham\tlunch\nspam\tpills\n")
    with pytest.raises(InputError, match=r"t.tsv: texts, and no mail; give a mailbox"):
        box_of(tmp_path / "t.tsv").newest()

    box = box_of(maildir(tmp_path / "box", [1]))
    barred = PermissionError(13, "Permission denied", str(tmp_path / "box/new"))
    monkeypatch.setattr(os, "scandir", raising(barred))
    why = r"box/new/?: cannot be read \(Permission denied\); check"
    with pytest.raises(InputError, match=why):
        box.newest()


# ---- strangers ----


@WITH_FILES
@pytest.mark.parametrize(
    "name", [b"1.caf\xe9", "2.\u202egpj".encode(), b'3.a%41&b=+;"<i> #?', b"4.\x1b[31m"]
)
def test_any_name_goes_through_a_form_and_comes_back(make, name, tmp_path):
    root = make(tmp_path / "box", [])
    path = os.path.join(os.fsencode(root / "new" if make is maildir else root), name)
    with open(path, "wb") as file:
        file.write(written(1))
    box = box_of(root)

    (letter,) = box.newest()
    assert letter.key.isascii()
    assert letter.key.isprintable()
    (back,) = parse_qs(urlencode({"key": letter.key}))["key"]
    for each in (box, box_of(root)):
        assert dict(each.read([back])) == {letter.key: written(1)}


def test_a_newline_in_a_name_harms_nothing(tmp_path):
    root = folder(tmp_path / "box", [1])
    (root / "2.a\nb.eml").write_bytes(written(2))
    assert sorted(numbers_of(box_of(root))) == [1, 2]

    root = maildir(tmp_path / "maildir", [1])
    (root / "new/2.a\nb").write_bytes(written(2))
    assert numbers_of(box_of(root)) == [1]  # as for `nbspam sort`, whose note has lines


@KINDS
def test_a_key_leads_nowhere_else(make, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(written(9))
    box = box_of(make(tmp_path / "box", [1]))
    box.newest()
    keys = "../secret", str(secret), "%2E%2E/secret", "..%2Fsecret", "", ".", "..", "new/..", "\0"
    for key in keys:
        assert dict(box.read([key])) == {}


@WITH_FILES
def test_what_is_no_file_of_the_mailbox_is_left_out(make, tmp_path):
    secret = maildir(tmp_path / "secret", [9])
    mbox(tmp_path / "theirs.mbox", [7, 8])
    root = make(tmp_path / "box", [1])
    place = root / "new" if make is maildir else root
    for name, target in {
        "2.link": secret / "new" / key_of(9), "3.mbox": tmp_path / "theirs.mbox",
        "4.dead": "nothing", "5.self": "5.self", "6.folder": secret,
    }.items():  # fmt: skip
        (place / name).symlink_to(target)
    (place / "7.eml").mkdir()
    os.mkfifo(place / "8.fifo")
    (root / ".Spam").symlink_to(secret)
    (root / ".Unsure").write_bytes(b"a file")
    box = box_of(root)

    assert numbers_of(box) == [1]
    theirs = ["2.link", "3.mbox", "4.dead", "5.self", "6.folder", "8.fifo", key_of(9)]
    assert dict(box.read(theirs)) == {}


@WITH_FILES
def test_what_is_put_in_the_place_of_a_message_after_the_look_is_not_read(make, tmp_path):
    (tmp_path / "box").mkdir()
    place = make(tmp_path / "box" / "inner", [1, 2, 3])
    box = box_of(place if make is maildir else tmp_path / "box")
    keys = [letter.key for letter in box.newest()]
    files = sorted((place / "new" if make is maildir else place).iterdir())
    (tmp_path / "secret").write_bytes(written(9))
    for file in files[:2]:
        file.unlink()
    files[0].symlink_to(tmp_path / "secret")
    os.mkfifo(files[1])

    assert [data for _, data in box.read(keys)] == [written(3)]
    os.rename(files[0].parent, tmp_path / "elsewhere")
    files[0].parent.symlink_to(tmp_path / "elsewhere")
    assert [box._contents(str(file)) for file in files] == [None] * 3


@WITH_FILES
def test_a_file_that_vanishes_while_it_is_looked_at_is_left_out(make, tmp_path, monkeypatch):
    box = box_of(make(tmp_path / "box", [1, 2]))
    found = box._found

    def vanishing():
        for key, file, data in found():
            if os.path.basename(file) == key_of(1):
                os.unlink(file)
            yield key, file, data

    monkeypatch.setattr(box, "_found", vanishing)
    assert [letter.key for letter in box.newest()] == [key_of(2)]


def test_a_heading_is_decoded_short_and_printable():
    for data, sender, subject in (
        (written(7), "7@a.example", "number 7"),
        (b"", "", ""),
        (b"no head at all\n\nFrom: x\n", "", ""),
        (b"From x Thu Jan  1 00:00:00 1970\nFROM : a\r\nsubject:\r\n b\r\n c\r\n\r\n", "a", "b c"),
        (b"Subject: first\nSubject: second\n\nFrom: body\n", "", "first"),
        (f"Subject: {Header('Grüße an 山', 'utf-8').encode()}\n\n".encode(), "", "Grüße an 山"),
        ("From: \u202etxt.exe <a@b>\n\n".encode(), "\\u202etxt.exe <a@b>", ""),
        ("From: Mağaza\nSubject: İNDİRİM\n\n".encode("cp1254"), "Mağaza", "İNDİRİM"),
        ("Subject: 李娜\nContent-Type: a/b; charset=gbk\n\n".encode("gbk"), "", "李娜"),
        (b"Subject: =?utf-8?q?a=00=1B[31m?=\n\n", "", "a\\x00\\x1b[31m"),
        (b"Subject: " + b"x" * 100_000 + b"\n\n", "", "x" * 200),
    ):
        assert heading(data) == (sender, subject)


# ---- whose mailboxes they are ----

SPANISH = "jos\u00e9"


@pytest.fixture
def folders(tmp_path):
    for path in ("users/ann", "users/.nbspam-1", "boxes/bob/cur", "boxes/Eve", "boxes/.Spam"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "users" / "ann" / "model").touch()
    (tmp_path / "users" / "zoe").mkdir()  # who has looked, but taught nothing
    (tmp_path / "boxes" / "kim").symlink_to("nowhere")
    (tmp_path / "boxes" / "jos%C3%A9").write_bytes(b"From x\n\n")
    return tmp_path


def test_who_has_a_mailbox_or_a_model_has_a_page_until_both_are_removed(folders):
    mailboxes = mailbox.Mailboxes(str(folders / "boxes"), "", str(folders / "users"))
    assert mailboxes.people() == [
        mailbox.Person("ann", has_mail=False, has_taught=True),
        mailbox.Person("bob", has_mail=True, has_taught=False),
        mailbox.Person(SPANISH, has_mail=True, has_taught=False),
    ]
    box = mailboxes.box(SPANISH)
    assert box.path == str(folders / "boxes" / "jos%C3%A9")
    assert box.model == box.database.model == str(folders / "users" / "jos%C3%A9" / "model")
    with pytest.raises(mailbox.NoMailError, match="no mailbox has your name"):
        mailboxes.box("ann")

    mailboxes.box("bob")
    (folders / "boxes" / "bob" / "cur").rmdir()
    (folders / "boxes" / "bob").rmdir()
    assert [each.name for each in mailboxes.people()] == ["ann", SPANISH]
    names = "eve", "zoe", "kim", "..", ".", "/", "boxes", ".Spam", "bob/cur", "ann/../bob", "a\0"
    for name in (*names, "bob", "../users/ann"):
        with pytest.raises(mailbox.RemovedError, match="nothing here has your name any more"):
            mailboxes.box(name)
    with pytest.raises(UserError, match="no user is named"):
        mailboxes.box("")


def test_without_mailboxes_there_are_models_only(folders):
    found = mailbox.Mailboxes(None, "", str(folders / "users"))

    assert [each.name for each in found.people()] == ["ann"]
    for name, error in (("ann", mailbox.NoMailError), ("bob", mailbox.RemovedError)):
        with pytest.raises(error):
            found.box(name)
    assert mailbox.Mailboxes(None, "", str(folders / "none")).people() == []
    mailbox.check_mailboxes(str(folders / "boxes"))
    refused = {"boxes/jos%C3%A9": "not a folder", "none": "No such file", "\0": "null"}
    for path, why in refused.items():
        with pytest.raises(InputError, match=f"{why}.*; with --users, give the folder of mailbox"):
            mailbox.check_mailboxes(str(folders / path))
