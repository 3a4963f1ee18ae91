"""Stored mail: where messages end, their order, and the kinds of folders."""

import gzip
import io
import mailbox
import os
import re
import sys
from contextlib import nullcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources import mailboxes
from nbspam.sources.files import begins_with_from_line
from nbspam.sources.items import read_items
from support import FROM, complains, make_maildir, write_files


def quoted(message: bytes) -> bytes:
    """Return a message as an mboxrd writer stores it; it must end in a newline."""
    return FROM + re.sub(rb"(?m)^(>*From )", rb">\1", message) + b"\n"


def split(data: bytes, size: int = 1 << 18) -> list[bytes]:
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return [mailboxes.unwrap(raw) for raw in mailboxes.mbox_messages(pieces)]


lines = st.lists(
    st.one_of(
        st.sampled_from([b"", b"From ", b">From x", b">>From y", FROM[:-1], b"\r", b"Subject: x"]),
        st.binary(max_size=20).map(lambda line: line.replace(b"\n", b" ")),
    ),
    min_size=1,
    max_size=8,
)
messages = lines.map(lambda parts: b"\n".join(parts) + b"\n")


@given(st.lists(messages, min_size=1, max_size=5), st.integers(1, 400))
@example([b"\n", b"\n\n", b"From \n"], 1)
def test_messages_quoted_into_an_mbox_are_restored_to_the_byte(stored, size):
    # CRLF before a separator occurs only in an mbox that has CRLF everywhere.
    stored = [re.sub(rb"\r+\n\Z", b"\n", re.sub(rb"\r\n\Z", b"\n", m)) for m in stored]
    assert split(b"".join(map(quoted, stored)), size) == stored


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_are_split_without_loss_whatever_the_chunks(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert b"".join(mailboxes.mbox_messages(pieces)) == (b"" if data.isspace() else data)


def test_mbox_agrees_with_the_standard_library(tmp_path):
    path = tmp_path / "mail.mbox"
    box = mailbox.mbox(path)
    for number in range(30):
        body = "line\n\n" * number + "From here on it is prose\n>quoted\n"
        box.add(mailbox.mboxMessage(f"Subject: {number}\nTo: me@example.org\n\n{body}"))
    box.close()
    oracle = mailbox.mbox(path)
    expected = [oracle.get_bytes(key).replace(b">From ", b"From ") for key in oracle.iterkeys()]
    oracle.close()

    assert split(path.read_bytes(), 97) == expected


def test_prose_that_begins_with_from_is_not_a_separator():
    body = b"Subject: x\n\nHi\n\nFrom here on it is prose.\n\nFrom 9:30 to 10:30 we meet\nBye\n"
    no_blank_line = b"A: 1\n\nquoting:\n" + FROM + b"B: 2\n\ny\n"
    assert split(FROM + body) == [body]
    assert len(split(FROM + no_blank_line)) == 1


@pytest.mark.parametrize("after", [b"", b"\n", b"\n" + quoted(b"C: 3\n\nz\n")])
@pytest.mark.parametrize(
    ("wrong", "n_parts"), [(0, 1), (-4, 2), (-400, 2), (5, 2), (10**6, 2), (10**7, 2)]
)
def test_a_length_counts_if_it_leads_to_a_separator_or_the_end(wrong, n_parts, after):
    body = b"A patch:\n\n" + FROM + b"B: 2\n\n" + b"word\n" * 500
    stored = FROM + b"A: 1\nContent-Length: %d\n\n" % (len(body) + wrong) + body
    for size in (7, 100, 1 << 18):
        messages = split(FROM + b"0: 0\n\n" + stored + after, size)
        assert len(messages) == 1 + n_parts + (b"C:" in after)
        assert b"".join(messages).count(b"word") == 500
        unended = b"A: 1\nContent-Length: 3\n\nend\n"  # mutt and Mail::Box add one line feed
        assert split(2 * (FROM + unended) + after, size)[:2] == 2 * [unended]


@pytest.mark.parametrize(
    "line",
    [
        b"From a@b.c Thu Aug  2 12:36:23 2002", b"From - Thu Aug 22 12:36:23 2002",
        b"From ???@??? Thu Aug 22 12:36:23 2002", b'From "a b"@c.d Thu Aug 22 12:36 2002',
        b"From 1234@xxx Tue Jan 01 00:00:00 +0000 2019",
        b"From nobody\nSubject: no date, but a header",
    ],
)  # fmt: skip
def test_separators_of_many_programs_are_recognised(line):
    assert begins_with_from_line(line)
    assert len(split(FROM + b"A: 1\n\nx\n\n" + line + b"\nB: 2\n\ny\n")) == 2


def test_an_mbox_may_have_crlf_and_text_before_its_first_separator():
    stored = [b"A: 1\n\nfirst\n\n\nlast\n", b"B: 2\n\n>From me\n"]
    data = b"".join(map(quoted, stored))
    crlf = split(data.replace(b"\n", b"\r\n"))
    assert [message.replace(b"\r\n", b"\n") for message in crlf] == stored
    assert split(b"\n\n" + quoted(b"A: 1\n")) == [b"A: 1\n"]
    assert split(b"B: 2\n\nx\n\n" + quoted(b"A: 1\n")) == [b"B: 2\n\nx\n", b"A: 1\n"]


@pytest.mark.parametrize(("head", "remain"), [
    (b"X-Mozilla-Status: 0009\nX-Mozilla-Status2: 00000000\nA: 1\n", "Inbox#2"),
    (b"X-Account-Key: account1\r\nX-UIDL: 7\r\nX-Mozilla-Status: 0008\r\nA: 1\n", "Inbox#2"),
    (b"X-Mozilla-Status: 0011\nA: 1\n", "Inbox#1 Inbox#2 Inbox#3 Other"),
    (b"A: 1\nX-Mozilla-Status: 0009\n", "Inbox#1 Inbox#2 Inbox#3 Other"),  # came with it
    # Of a single message, these may have come with it, too.
    (b"A: 1\nStatus: RO\nX-Status: AD\n", "Inbox#2 Other"),
    (b"A: 1\r\nX-Status: D\r\n", "Inbox#2 Other"),
    (b"X-Status: A\nA: 1\n\nX-Status: D\n", "Inbox#1 Inbox#2 Inbox#3 Other"),
    (b"X-Status: A\r\nA: 1\r\n\r\nX-Status: D\r\n", "Inbox#1 Inbox#2 Inbox#3 Other"),
    # Only the first of several messages holds data of the folder.
    (
        b"A: 1\nSubject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n",
        "Inbox#2 Inbox#3 Other",
    ),
])  # fmt: skip
def test_a_message_that_is_marked_as_deleted_has_left_its_mbox(head, remain, tmp_path):
    stored, last = FROM + head + b"\nbody\n\n", quoted(b"B: 2\n\nx\n")
    box = write_files(tmp_path, {"Inbox": stored + last + stored, "Other": stored})
    names = [f"{box}/{name}" for name in remain.split()]
    assert [item.name for item in read_items([str(box)])] == names


def test_messages_of_gmails_export_have_the_classes_that_their_labels_say(tmp_path):
    thread = b"X-GM-THRID: 17\nX-Gmail-Labels: "
    heads = {
        thread + b"Archived,Spam,Unread\n": "spam",
        thread + b'Inbox,Opened,"Spam, not"\n': "ham",
        thread + b"=?UTF-8?Q?Spam,Kategorie:_=E2=80=9EWerbung=E2=80=9C?=\n": "spam",
        thread + b"=?UTF-8?Q?Posteingang,Ge=C3=B6ffnet,Kategorie:_?=\n =?UTF-8?Q?Spam?=\n": "ham",
        b"X-Gmail-Labels: Inbox,\r\n Spam\r\n": "spam",
        thread + b"=?none?Q?Spam?=,Inbox\n": "ham",
        thread + b"Spam,=?UTF-8?B?x?=\n": "spam",  # no base64
        thread + b"Spam,=?\xff?Q?x?=\n": "spam",  # no charset
        thread + b"Spam," + b"=?a?q? " * 200_000 + b"\n": "spam",
        thread + b"Trash,Category Promotions\n": None,
        thread + b"=?UTF-8?Q?Archiv=C3=A9s,Envoy=C3=A9?=\n": None,
        thread + b"=?UTF-8?B?5Z6D5Zy+6YKu5Lu2LOacquivuw==?=\n": "spam",
        b"Subject: x\n" + thread + b"Spam\n": None,  # came with the message
    }
    path = tmp_path / "All mail.mbox"
    path.write_bytes(b"".join(quoted(head + b"\nx\n") for head in heads))
    assert [item.label for item in read_items([str(path)])] == list(heads.values())
    assert {item.label for item in read_items([str(path)], label="ham")} == {"ham"}


@pytest.mark.parametrize("size", [7, 100, 5000, 1 << 20])
def test_too_long_a_message_is_truncated_and_the_next_is_found(size, monkeypatch):
    monkeypatch.setattr(mailboxes.files, "MAX_MESSAGE", 1000)
    data = quoted(b"A: 1\n" + b"x" * 20_000 + b"\n") + quoted(b"B: 2\n") + quoted(b"C: 3\n")

    long, *rest = split(data, size)
    assert long == (b"A: 1\n" + b"x" * 20_000)[: 1000 - len(FROM)]
    assert rest == [b"B: 2\n", b"C: 3\n"]
    # The part that is kept ends in a blank line; "From " comes long after it.
    head = FROM + b"A: 1\n\n"
    monkeypatch.setattr(mailboxes.files, "MAX_MESSAGE", len(head))
    assert len(split(head + b"x" * 5000 + b"\n" + quoted(b"B: 2\n"), size)) == 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"From x", b""), (b"From x\n", b""), (b"From x\n\n", b""), (b"From x\n\n\n", b"\n"),
        (b"From x\nA: 1\n", b"A: 1\n"),
        (b"A: >From here\n>>From y\n", b"A: >From here\n>From y\n"),
    ],
)  # fmt: skip
def test_unwrap_undoes_what_the_mbox_added(raw, message):
    assert mailboxes.unwrap(raw) == message


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Subject: {name}\n\nx\n")


def walk(path, label=None, kind=None):
    for place in mailboxes.places(str(path), label, kind, mailboxes.FolderTree()):
        yield from place.files()


def walked(folder, label=None, kind=None):
    return [(os.path.relpath(p, folder), lab, k) for p, lab, k in walk(folder, label, kind)]


WALKS = {  # the names of files, what is found of them: path=label, and what is asked for
    "natural order, files before folders": (
        "m10 m2 m2.10 m2.9 b/1 a10/1 a9/1",
        "m2 m2.9 m2.10 m10 a9/1 a10/1 b/1",
    ),
    "equal numbers written differently": ("1.a 01.a 001.a", "001.a 01.a 1.a"),
    "no hidden files and backups": ("1.eml .hidden .git/1 1.eml~ #1.eml#", "1.eml"),
    "no files that mail programs keep beside mail": (
        "1. a.msf a.plist table_of_contents cyrus.index dovecot.index dovecot.list.index.log"
        " dovecot.mailbox.log dovecot-uidlist courierimapuiddb b.metadata.json labels.json cmds"
        " c/2:2,RS c/3:2,RST c/4!2,T c/5:2,St",
        "1. c/2:2,RS c/5:2,St",
    ),
    "no attached files of Apple Mail": (
        "4/Messages/1.emlx 4/Attachments/1/2/a.txt Attachments/3.eml",
        "4/Messages/1.emlx=spam Attachments/3.eml=spam",
        {"label": "spam"},
    ),
    "no class in Gmail's Takeout": ("Takeout/Mail/1 Takeout/x", "Takeout/x Takeout/Mail/1"),
    "no class in that folder itself": ("Mail/1 Mail/2", "Mail/1 Mail/2"),
    "sub-folders alone are classes": ("Ham/a/1 Ham/b/1 X/1", "Ham/a/1=ham Ham/b/1=ham X/1=X"),
    "ham and spam beside files": ("Sum.txt ham/1 spam/1", "ham/1=ham spam/1=spam"),
    "a label": ("2001/1 2002/a/1", "2001/1=spam 2002/a/1=spam", {"label": "spam"}),
    "no classes in a tree": ("1 deep/office/1 deep/spam/1", "1 deep/office/1 deep/spam/1"),
    "parts of a corpus, as of Enron": (
        "e1/ham/1 e1/spam/2 e1/Summary.txt e2/Ham/x/3 e2/SPAM/4",
        "e1/ham/1=ham e1/spam/2=spam e2/Ham/x/3=ham e2/SPAM/4=spam",
    ),
    "a file beside parts": ("e1/ham/1 e1/spam/2 z", "z e1/ham/1=ham e1/spam/2=spam"),
    "a folder beside parts": ("e1/ham/1 e1/spam/2 x/1", "e1/ham/1=ham e1/spam/2=spam x/1"),
    "halves with the same folders": (
        "20n-train/sea/1 20n-train/sky/2 20n-test/sea/3 20n-test/sky/4",
        "20n-test/sea/3=sea 20n-test/sky/4=sky 20n-train/sea/1=sea 20n-train/sky/2=sky",
    ),
    "halves with other folders": ("train/sea/1 test/sky/3", "test/sky/3=test train/sea/1=train"),
    "one half": ("train/sea/1 train/sky/2", "train/sea/1=train train/sky/2=train"),
    "halves without folders": ("train/1 test/3", "test/3=test train/1=train"),
    "a class that holds ham and spam": (
        "ours/ham/1 ours/spam/2 spam/3",
        "ours/ham/1=ours ours/spam/2=ours spam/3=spam",
    ),
    "parts that are called classes": (
        "a/ham/1 a/spam/2 b/ham/3 b/spam/4",
        "a/ham/1=a a/spam/2=a b/ham/3=b b/spam/4=b",
        {"kind": "classes"},
    ),
    "classes beside files": (
        "1 a/1 b/cur/x b/new/y",
        "a/1=a b/cur/x=b b/new/y=b",
        {"kind": "classes"},
    ),
    "halves of classes": (
        "ok-train/1 ok-test/2 bad_train/3 bad.testing/4",
        "bad.testing/4=bad bad_train/3=bad ok-test/2=ok ok-train/1=ok",
    ),
    "halves of one class beside another": ("ok-train/1 bad/2", "bad/2=bad ok-train/1=ok-train"),
    "halves that are called classes": (
        "ok-train/1 ok-test/2",
        "ok-test/2=ok-test ok-train/1=ok-train",
        {"kind": "classes"},
    ),
    "Ling-Spam": (
        "part1/3-1msg1.txt part1/spmsga1.txt part2/8-1msg.txt part2/spmsgb2.txt",
        "part1/3-1msg1.txt=ham part1/spmsga1.txt=spam part2/8-1msg.txt=ham part2/spmsgb2.txt=spam",
    ),
    "numbered parts of files that name no class": ("part1/1 part2/2", "part1/1 part2/2"),
    "files that name their classes": (
        "ham1.txt legit2.txt spam1.txt",
        "ham1.txt=ham legit2.txt=ham spam1.txt=spam",
    ),
    "files of which some name classes": ("a.eml ham.eml spam.eml", "a.eml ham.eml spam.eml"),
    "MH": (".mh_sequences 10 9 ,3 notes.txt sub/1", "9 10"),
    "Maildir": ("cur/2 cur/1 new/3 tmp/4 .Spam/cur/5 .Spam/new/6", "cur/1 cur/2 new/3"),
    "MH without sequences": ("10 9 x", "9 10", {"kind": "mh"}),
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_folder_is_walked_in_order_with_its_classes(tmp_path, walk):
    names, expected, *asked = walk
    fill(tmp_path, *names.split())
    found = walked(tmp_path, **dict(*asked))
    assert [f"{n}={label}" if label else n for n, label, _ in found] == expected.split()


def test_kinds_of_files_are_found_by_name_or_given_for_the_whole_tree(tmp_path):
    fill(tmp_path, "Inbox", "M.MBOX.GZ", "m2", "a/cur/1")
    assert [k for *_, k in walked(tmp_path)] == ["unsure", "mbox", "mail", "mail"]
    for kind in ("eml", "mbox"):
        assert [k for *_, k in walked(tmp_path, kind=kind)] == [kind] * 4


def test_a_message_that_its_owner_reads_is_found_under_its_new_name(tmp_path):
    write_files(make_maildir(tmp_path), {"new/1.a": b"one", "cur/2.a:2,": b"two", "new/3.a": b"x"})
    items = list(read_items([str(tmp_path)]))
    (tmp_path / "new" / "1.a").rename(tmp_path / "cur" / "1.a:2,S")
    (tmp_path / "cur" / "2.a:2,").rename(tmp_path / "cur" / "2.a:2,RS")
    (tmp_path / "new" / "3.a").unlink()
    assert {item.read() for item in items if "3.a" not in item.name} == {b"one", b"two"}
    with pytest.raises(InputError, match="no such file"):
        next(item for item in items if "3.a" in item.name).read()


def test_a_message_that_its_owner_reads_while_others_are_read_is_not_passed_over(tmp_path):
    write_files(make_maildir(tmp_path), {"cur/1.a:2,": b"one", "new/2.a": b"two"})
    items = read_items([str(tmp_path)])
    assert next(items).read() == b"one"
    (tmp_path / "new" / "2.a").rename(tmp_path / "cur" / "2.a:2,S")
    assert [item.read() for item in items] == [b"two"]


def test_links_are_followed_and_loops_end(tmp_path):
    fill(tmp_path / "elsewhere", "1")
    fill(tmp_path / "a", "b/2")
    (tmp_path / "a" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "b" / "side").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "a" / "dead").symlink_to("nowhere")

    # Links that lead nowhere are listed, so that they are counted as unreadable.
    names = [name for name, *_ in walked(tmp_path / "a", "x")]
    assert names == ["dead", "self", "b/2", "b/side/1"]


SHALLOW = 300  # deep enough for pytest itself


def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path):
    folders = [str(tmp_path)]
    for _ in range(SHALLOW + 100):
        folders.append(os.path.join(folders[-1], "d"))
        os.mkdir(folders[-1])
    message = os.path.join(folders[-1], "1.eml")
    with open(message, "xb"):
        pass

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(SHALLOW)
    try:
        found = list(walk(tmp_path, "ham"))
    finally:
        sys.setrecursionlimit(limit)
    os.remove(message)  # here, because what cleans up after tests may recurse
    for folder in folders[:0:-1]:
        os.rmdir(folder)
    assert found == [(message, "ham", "eml")]


def test_index_lines_name_a_class_and_a_path():
    index = b"spam ../data/inmail.1\n\nham\t../data/a b\r\n"
    found = [("spam", "../data/inmail.1"), ("ham", "../data/a b")]
    assert list(mailboxes.index_entries(io.BytesIO(index))) == found
    assert mailboxes.parse_index_line(b"alone") is None
    with pytest.raises(ValueError, match="line 2: not `class path`"):
        list(mailboxes.index_entries(io.BytesIO(b"spam x\nspam\n")))


# ---- damage ----


def read_or_error(item):
    try:
        return item.read()
    except InputError as error:
        return str(error).encode()


@pytest.fixture
def box(tmp_path):
    """A folder with a message and two in a mailbox."""
    message = b"Subject: x\n\none\n"
    mailbox = (FROM + message + b"\n") * 2
    return write_files(tmp_path / "box", {"1.eml": message, "Other": mailbox})


@pytest.mark.parametrize(("name", "said"), [
    ("Inbox", "cannot be read"),
    ("Inbox.mbox.gz", "damaged (Compressed file ended"),
    ("Old.mbox.gz", "damaged (Not a gzipped file"),
])  # fmt: skip
@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no such file")
def test_an_unreadable_or_damaged_mailbox_does_not_stop_its_folder(box, name, said):
    if name == "Inbox":
        (box / name).symlink_to("/proc/self/mem")  # reading it is an error
    else:
        data = (box / "Other").read_bytes()
        (box / name).write_bytes(data if name[0] == "O" else gzip.compress(data)[:-9])
    found = [read_or_error(item) for item in read_items([str(box)])]

    assert found.count(b"Subject: x\n\none\n") == len(found) - 1 >= 3
    assert any(data.startswith(f"{box / name}: {said}".encode()) for data in found)


@pytest.mark.parametrize("name", ["{}", "{}.eml", "cur/{}.eml"])
def test_a_link_that_leads_nowhere_is_skipped_and_counted(box, name, nbspam):
    (box / "cur").mkdir()
    dead, loop = (box / name.format(what) for what in ("dead", "loop"))
    dead.symlink_to("nowhere")
    loop.symlink_to(loop)
    spam, model = box.parent / "spam.eml", box.parent / "model"
    spam.write_bytes(b"Subject: win\n\ncasino\n")
    status, output, errors = nbspam("train", "--ham", box, "--spam", spam, "-m", model)
    assert (status, "skipped 2" in output) == (0, True)
    assert f"skipped {dead}: leads to a file that is not there" in errors
    assert f"skipped {loop}: cannot be read (Too many levels" in errors
    assert nbspam("predict", box, "-m", model)[1] == "ham\n" * 3  # no lines for the links


def test_links_and_folders_without_rights_are_unreadable_and_stop_no_others(box, monkeypatch):
    class Barred:
        name = "barred.eml"

        def stat(self):
            raise PermissionError(13, "Permission denied")

        is_dir = is_file = stat

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda path: nullcontext([Barred()]))
        names = [name for name, *_ in walk(box, "x")]
    assert names == [f"{box}/barred.eml"]
    (box / "barred").mkdir()
    scan = os.scandir

    def scandir(path):
        if str(path).startswith(f"{box / 'barred'}"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = list(walk(box, "x"))
    assert (f"{box / 'barred'}", "x", "eml") in found
    assert len(found) == 3
    with pytest.raises(PermissionError):
        list(walk(box / "barred", "x"))


def test_a_mailbox_that_breaks_off_in_the_middle_ends_the_reading(nbspam, untouched, tmp_path):
    messages = (FROM + os.urandom(99_000).hex().encode() + b"\n\n" for _ in range(9))
    data = gzip.compress(b"".join(messages))
    write_files(tmp_path / "box" / "spam", {"1.mbox.gz": data[: len(data) // 2]})
    assert complains(nbspam("update", tmp_path / "box"), 1, "1.mbox.gz: damaged (")


@pytest.mark.parametrize(("n", "end"), [(5, "not a gzipped file"), (7, "skipped 2 more")])
def test_five_messages_that_cannot_be_read_are_named(nbspam, folder, model, n, end):
    for k in range(n):
        (folder / "ham" / f"bad{k}.eml.gz").write_bytes(b"no gzip")
    assert nbspam("train", "--strict", folder)[0] == 1
    status, out, err = nbspam("train", folder)
    lines = err.splitlines()
    assert (status, f"skipped {n}" in out) == (0, True)
    assert [f"bad{k}.eml.gz" in line for k, line in enumerate(lines)][:5] == [True] * 5
    assert len(lines) == min(n, 6)
    assert end.lower() in lines[-1].lower()
