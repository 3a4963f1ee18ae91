"""Mailboxes as the page shows them: order, names that stay, what messages say of themselves."""

import os
from email.header import Header

import pytest

from nbspam.errors import InputError
from nbspam.server.review.mailbag import Mailbag, heading


def message(number):
    return f"From: {number}@a.example\nSubject: number {number}\n\nbody {number}\n".encode()


def maildir(root, numbers, part="new"):
    for name in ("cur", "new", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for number in numbers:
        path = root / part / f"17000000{number}.M1.host"
        path.write_bytes(message(number))
        os.utime(path, (1000 + number, 1000 + number))
    return root


def mbox(path, numbers):
    pieces = (b"From x Thu Jan  1 00:00:00 1970\n" + message(n) + b"\n" for n in numbers)
    path.write_bytes(b"".join(pieces))
    return path


def folder(root, numbers):
    root.mkdir()
    for number in numbers:
        path = root / f"{number}.eml"
        path.write_bytes(message(number))
        os.utime(path, (1000 + number, 1000 + number))
    return root


KINDS = pytest.mark.parametrize("make", [maildir, mbox, folder])


def subjects(bag, letters):
    """Return the numbers of messages in the order of letters."""
    data = dict(bag.read({letter.key for letter in letters}))
    return [int(heading(data[letter.key]).subject.removeprefix("number ")) for letter in letters]


@KINDS
def test_the_newest_comes_first_and_what_is_too_old_is_left_out(make, tmp_path):
    bag = Mailbag(str(make(tmp_path / "box", [3, 1, 2] if make is not mbox else [1, 2, 3])))

    assert subjects(bag, bag.newest()) == [3, 2, 1]
    assert subjects(bag, bag.newest(2)) == [3, 2]


@KINDS
def test_what_is_read_is_the_message_and_what_is_not_there_is_left_out(make, tmp_path):
    bag = Mailbag(str(make(tmp_path / "box", [1, 2])))
    key = bag.newest()[0].key

    assert dict(bag.read({key, "gone", "#00"})) == {key: message(2)}


def test_a_message_that_was_read_in_a_mail_reader_is_the_same(tmp_path):
    bag = Mailbag(str(maildir(tmp_path / "box", [1])))
    before = bag.newest()
    name = "170000001.M1.host"
    os.rename(tmp_path / "box/new" / name, tmp_path / "box/cur" / f"{name}:2,S")

    assert bag.newest() == before
    assert dict(bag.read({before[0].key})) == {before[0].key: message(1)}


def test_a_message_is_the_same_when_others_of_its_mbox_are_deleted(tmp_path):
    bag = Mailbag(str(mbox(tmp_path / "box", [1, 2, 3])))
    before = bag.newest()[0].key
    mbox(tmp_path / "box", [2, 3, 4])

    assert bag.newest()[1].key == before
    assert dict(bag.read({before})) == {before: message(3)}


def test_a_file_that_vanishes_while_it_is_looked_at_is_left_out(tmp_path, monkeypatch):
    bag = Mailbag(str(folder(tmp_path / "box", [1, 2])))
    keys = {letter.key for letter in bag.newest()}
    found = bag._items

    def vanishing():
        for key, item in found():
            if key == "1.eml":
                os.unlink(item.name)
            yield key, item

    monkeypatch.setattr(bag, "_items", vanishing)
    assert dict(bag.read(keys)) == {"2.eml": message(2)}
    (tmp_path / "box/1.eml").write_bytes(message(1))
    assert [letter.key for letter in bag.newest()] == ["2.eml"]


def test_an_empty_mailbox_is_one_into_which_mail_can_come(tmp_path):
    bag = Mailbag(str(maildir(tmp_path / "box", [])))
    assert bag.newest() == []

    maildir(tmp_path / "box", [1])
    assert subjects(bag, bag.newest()) == [1]


def test_what_is_no_mailbox_is_refused(tmp_path):
    for path in (str(tmp_path / "none"), "http://a.example/box"):
        with pytest.raises(InputError, match=r"no such mailbox; give a Maildir, mbox or folder"):
            Mailbag(path)
    (tmp_path / "t.tsv").write_text("ham\tlunch\nspam\tpills\n")
    with pytest.raises(InputError, match=r"t.tsv: texts, and no mail; give a mailbox"):
        Mailbag(str(tmp_path / "t.tsv")).newest()


@pytest.mark.parametrize(
    ("data", "sender", "subject"),
    [
        (message(7), "7@a.example", "number 7"),
        (b"", "", ""),
        (b"no head at all\n\nFrom: x\n", "", ""),
        (b"From x Thu Jan  1 00:00:00 1970\nFROM : a\r\nsubject:\r\n b\r\n c\r\n\r\n", "a", "b c"),
        (b"Subject: first\nSubject: second\n\nFrom: body\n", "", "first"),
        (f"Subject: {Header('Grüße an 山', 'utf-8').encode()}\n\n".encode(), "", "Grüße an 山"),
        ("From: \u202etxt.exe <a@b>\n\n".encode(), "\\u202etxt.exe <a@b>", ""),
        (b"Subject: =?utf-8?q?a=00=1B[31m?=\n\n", "", "a\\x00\\x1b[31m"),
        (b"Subject: " + b"x" * 100_000 + b"\n\n", "", "x" * 200),
    ],
)
def test_a_heading_is_decoded_short_and_printable(data, sender, subject):
    assert heading(data) == (sender, subject)
