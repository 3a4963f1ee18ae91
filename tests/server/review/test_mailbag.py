"""Mailboxes as the page shows them: order, names that stay, what messages say of themselves."""

import os
from email.header import Header
from urllib.parse import parse_qs, urlencode

import pytest

from nbspam.errors import InputError
from nbspam.server.page.mailbox import ReviewMailbox, heading


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
def test_the_newest_comes_first_and_what_is_too_old_or_not_there_is_left_out(make, tmp_path):
    bag = ReviewMailbox(str(make(tmp_path / "box", [3, 1, 2] if make is not mbox else [1, 2, 3])))
    key = bag.newest()[0].key

    assert subjects(bag, bag.newest()) == [3, 2, 1]
    assert subjects(bag, bag.newest(2)) == [3, 2]
    assert dict(bag.read({key, "gone", "#00"})) == {key: message(3)}


def test_a_message_that_was_read_in_a_mail_reader_is_the_same(tmp_path):
    bag = ReviewMailbox(str(maildir(tmp_path / "box", [1])))
    before = bag.newest()
    name = "170000001.M1.host"
    os.rename(tmp_path / "box/new" / name, tmp_path / "box/cur" / f"{name}:2,S")

    assert bag.newest() == before
    assert dict(bag.read({before[0].key})) == {before[0].key: message(1)}


def test_the_folders_of_sort_belong_to_the_mailbox(tmp_path):
    root = maildir(tmp_path / "box", [1, 4])
    maildir(root / ".Junk", [3], "cur")
    maildir(root / ".Unsure", [2])
    maildir(root / ".Sent", [5])
    bag = ReviewMailbox(str(root))

    assert subjects(bag, bag.newest()) == [4, 3, 2, 1]
    maildir(root / ".Spam", [6])  # from now on sort uses this one
    assert subjects(bag, bag.newest()) == [6, 4, 2, 1]


@KINDS
def test_a_whole_pass_looks_through_the_mailbox_once_at_most(make, tmp_path, monkeypatch):
    bag = ReviewMailbox(str(make(tmp_path / "box", [1, 2, 3])))
    keys = [letter.key for letter in bag.newest()]
    looks = counted(monkeypatch, bag)

    assert [key for key, _ in bag.read(keys)] == (keys[::-1] if make is mbox else keys)
    assert len(looks) == (make is mbox)
    assert [key for key, _ in bag.read([*keys, "gone", "../gone"])]
    assert len(looks) == 1 + (make is mbox)


def counted(monkeypatch, bag):
    """Return a list that grows each time the mailbox is looked through."""
    looks, found = [], bag._found

    def counting():
        looks.append(1)
        return found()

    monkeypatch.setattr(bag, "_found", counting)
    return looks


def test_an_mbox_that_has_changed_is_looked_through_again_and_messages_stay_the_same(
    tmp_path, monkeypatch
):
    bag = ReviewMailbox(str(mbox(tmp_path / "box", [1, 2, 3])))
    looks = counted(monkeypatch, bag)
    before = bag.newest()[0].key

    assert bag.newest()[0].key == before
    assert len(looks) == 1
    mbox(tmp_path / "box", [2, 3, 4])
    assert subjects(bag, bag.newest()) == [4, 3, 2]
    assert bag.newest()[1].key == before
    assert dict(bag.read({before})) == {before: message(3)}
    assert len(bag.newest(2)) == 2


def test_a_message_that_is_moved_between_look_and_reading_is_found(tmp_path):
    root = maildir(tmp_path / "box", [1, 2])
    bag = ReviewMailbox(str(root))
    keys = [letter.key for letter in bag.newest()]
    maildir(root / ".Spam", [])
    os.rename(root / "new/170000001.M1.host", root / ".Spam/cur/170000001.M1.host:2,S")

    assert dict(bag.read(keys)) == {keys[0]: message(2), keys[1]: message(1)}


@pytest.mark.parametrize("make", [maildir, folder])
def test_a_file_that_vanishes_while_it_is_looked_at_is_left_out(make, tmp_path, monkeypatch):
    bag = ReviewMailbox(str(make(tmp_path / "box", [1, 2])))
    found = bag._found

    def vanishing():
        for key, file, data in found():
            if os.path.basename(file).partition(".")[0].endswith("1"):
                os.unlink(file)
            yield key, file, data

    with monkeypatch.context() as patch:
        patch.setattr(bag, "_found", vanishing)
        (letter,) = bag.newest()
    assert dict(bag.read([letter.key])) == {letter.key: message(2)}


def test_what_is_no_mailbox_is_refused(tmp_path):
    for path in (str(tmp_path / "none"), "http://a.example/box"):
        with pytest.raises(InputError, match=r"no such mailbox; give a Maildir, mbox or folder"):
            ReviewMailbox(path)
    (tmp_path / "t.tsv").write_text("ham\tlunch\nspam\tpills\n")
    with pytest.raises(InputError, match=r"t.tsv: texts, and no mail; give a mailbox"):
        ReviewMailbox(str(tmp_path / "t.tsv")).newest()


def test_an_empty_mailbox_is_one_into_which_mail_can_come(tmp_path):
    bag = ReviewMailbox(str(maildir(tmp_path / "maildir", [])))
    assert bag.newest() == []
    maildir(tmp_path / "maildir", [1])
    assert subjects(bag, bag.newest()) == [1]

    path = tmp_path / "box"
    path.write_bytes(b"")
    bag = ReviewMailbox(str(path))
    assert bag.newest() == []

    mbox(path, [1])
    (first,) = bag.newest()
    assert dict(bag.read([first.key])) == {first.key: message(1)}
    mbox(path, [1, 2])
    assert bag.newest()[1].key == first.key


def test_a_single_message_is_a_mailbox(tmp_path):
    (tmp_path / "1.eml").write_bytes(message(1))
    bag = ReviewMailbox(str(tmp_path / "1.eml"))

    assert subjects(bag, bag.newest()) == [1]


# ---- strangers ----


@pytest.mark.parametrize("make", [maildir, folder])
@pytest.mark.parametrize(
    "name", [b"1.caf\xe9", "2.\u202egpj".encode(), b'3.a%41&b=+;"<i> #?', b"4.\x1b[31m"]
)
def test_any_name_goes_through_a_form_and_comes_back(make, name, tmp_path):
    root = make(tmp_path / "box", [])
    path = os.path.join(os.fsencode(root / "new" if make is maildir else root), name)
    with open(path, "wb") as file:
        file.write(message(1))
    bag = ReviewMailbox(str(root))

    (letter,) = bag.newest()
    assert letter.key.isascii()
    assert letter.key.isprintable()
    (back,) = parse_qs(urlencode({"key": letter.key}))["key"]
    for each in (bag, ReviewMailbox(str(root))):
        assert dict(each.read([back])) == {letter.key: message(1)}


def test_a_newline_in_a_name_harms_nothing(tmp_path):
    root = folder(tmp_path / "box", [1])
    (root / "2.a\nb.eml").write_bytes(message(2))
    bag = ReviewMailbox(str(root))
    assert sorted(subjects(bag, bag.newest())) == [1, 2]

    root = maildir(tmp_path / "maildir", [1])
    (root / "new/2.a\nb").write_bytes(message(2))
    bag = ReviewMailbox(str(root))
    assert subjects(bag, bag.newest()) == [1]  # as for `nbspam sort`, whose note has lines


@KINDS
def test_a_key_leads_nowhere_else(make, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(message(9))
    bag = ReviewMailbox(str(make(tmp_path / "box", [1])))
    bag.newest()

    keys = "../secret", str(secret), "%2E%2E/secret", "..%2Fsecret", "", ".", "..", "new/..", "\0"
    for key in keys:
        assert dict(bag.read([key])) == {}


@pytest.mark.parametrize("make", [maildir, folder])
def test_what_is_no_file_of_the_mailbox_is_left_out(make, tmp_path):
    secret = tmp_path / "secret"
    maildir(secret, [9])
    mbox(tmp_path / "theirs.mbox", [7, 8])
    root = make(tmp_path / "box", [1])
    place = root / "new" if make is maildir else root
    (place / "2.link").symlink_to(secret / "new/170000009.M1.host")
    (place / "3.mbox").symlink_to(tmp_path / "theirs.mbox")
    (place / "4.dead").symlink_to("nothing")
    (place / "5.self").symlink_to("5.self")
    (place / "6.folder").symlink_to(secret)
    (place / "7.eml").mkdir()
    os.mkfifo(place / "8.fifo")
    (root / ".Spam").symlink_to(secret)
    (root / ".Unsure").write_bytes(b"a file")
    bag = ReviewMailbox(str(root))

    letters = bag.newest()
    assert subjects(bag, letters) == [1]
    theirs = ["2.link", "3.mbox", "4.dead", "5.self", "6.folder", "8.fifo", "170000009.M1.host"]
    assert dict(bag.read(theirs)) == {}


@pytest.mark.parametrize("make", [maildir, folder])
def test_what_is_put_in_the_place_of_a_message_after_the_look_is_not_read(make, tmp_path):
    root = make(tmp_path / "box", [1, 2, 3])
    os.rename(root, tmp_path / "real")
    root.mkdir()
    place = root / "inner"
    os.rename(tmp_path / "real", place)
    bag = ReviewMailbox(str(place if make is maildir else root))
    keys = [letter.key for letter in bag.newest()]
    files = sorted((place / "new" if make is maildir else place).iterdir())
    (tmp_path / "secret").write_bytes(message(9))
    for file in files[:2]:
        file.unlink()
    files[0].symlink_to(tmp_path / "secret")
    os.mkfifo(files[1])

    assert [data for _, data in bag.read(keys)] == [message(3)]
    os.rename(files[0].parent, tmp_path / "elsewhere")
    files[0].parent.symlink_to(tmp_path / "elsewhere")
    assert [bag._contents(str(file)) for file in files] == [None] * 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_message_that_may_not_be_read_is_left_out(tmp_path):
    bag = ReviewMailbox(str(maildir(tmp_path / "box", [1, 2])))
    (tmp_path / "box/new/170000001.M1.host").chmod(0)

    assert [data for _, data in bag.read([letter.key for letter in bag.newest()])] == [message(2)]


def test_a_folder_that_cannot_be_read_is_an_error_in_one_line(tmp_path, monkeypatch):
    bag = ReviewMailbox(str(maildir(tmp_path / "box", [1])))

    def barred(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", barred)
    with pytest.raises(
        InputError, match=r"box/new/?: cannot be read \(Permission denied\); check"
    ):
        bag.newest()


# ---- what messages say of themselves ----


def test_a_heading_is_decoded_short_and_printable():
    for data, sender, subject in (
        (message(7), "7@a.example", "number 7"),
        (b"", "", ""),
        (b"no head at all\n\nFrom: x\n", "", ""),
        (b"From x Thu Jan  1 00:00:00 1970\nFROM : a\r\nsubject:\r\n b\r\n c\r\n\r\n", "a", "b c"),
        (b"Subject: first\nSubject: second\n\nFrom: body\n", "", "first"),
        (f"Subject: {Header('Grüße an 山', 'utf-8').encode()}\n\n".encode(), "", "Grüße an 山"),
        ("From: \u202etxt.exe <a@b>\n\n".encode(), "\\u202etxt.exe <a@b>", ""),
        (b"Subject: =?utf-8?q?a=00=1B[31m?=\n\n", "", "a\\x00\\x1b[31m"),
        (b"Subject: " + b"x" * 100_000 + b"\n\n", "", "x" * 200),
    ):
        assert heading(data) == (sender, subject)
