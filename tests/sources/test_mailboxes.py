"""Stored mail: where messages end, their order, and the kinds of folders."""

import io
import mailbox
import os
import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbspam.sources.files import (
    begins_with_from_line,
    index_entries,
    mbox_messages,
    parse_index_line,
    read_chunks,
    unwrap,
)
from nbspam.sources.folders import walk

FROM = b"From someone@example.org Thu Aug 22 12:36:23 2002\n"


def quoted(message: bytes) -> bytes:
    """Return a message as an mboxrd writer stores it; it must end in a newline."""
    return FROM + re.sub(rb"(?m)^(>*From )", rb">\1", message) + b"\n"


def split(data: bytes, size: int = 1 << 18, **options: int) -> list[bytes]:
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return [unwrap(raw) for raw in mbox_messages(pieces, **options)]


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

    assert b"".join(mbox_messages(pieces)) == (b"" if data.isspace() else data)


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

    assert split(FROM + body) == [body]


@pytest.mark.parametrize(
    "line",
    [
        b"From a@b.c Thu Aug  2 12:36:23 2002",
        b"From - Thu Aug 22 12:36:23 2002",
        b"From ???@??? Thu Aug 22 12:36:23 2002",
        b'From "a b"@c.d Thu Aug 22 12:36 2002',
        b"From 1234@xxx Tue Jan 01 00:00:00 +0000 2019",
        b"From nobody\nSubject: no date, but a header",
    ],
)
def test_separators_of_many_programs_are_recognised(line):
    assert begins_with_from_line(line)
    assert len(split(FROM + b"A: 1\n\nx\n\n" + line + b"\nB: 2\n\ny\n")) == 2


def test_a_separator_without_a_blank_line_before_it_is_text():
    assert len(split(FROM + b"A: 1\n\nquoting:\n" + FROM + b"B: 2\n\ny\n")) == 1


def test_an_mbox_with_crlf_holds_the_same_messages():
    stored = [b"A: 1\n\nfirst\n\n\nlast\n", b"B: 2\n\n>From me\n"]
    data = b"".join(map(quoted, stored))

    crlf = split(data.replace(b"\n", b"\r\n"))
    assert [message.replace(b"\r\n", b"\n") for message in crlf] == stored


def test_text_before_the_first_separator_is_a_message_unless_blank():
    assert split(b"\n\n" + quoted(b"A: 1\n")) == [b"A: 1\n"]
    assert split(b"B: 2\n\nx\n\n" + quoted(b"A: 1\n")) == [b"B: 2\n\nx\n", b"A: 1\n"]


@pytest.mark.parametrize("size", [7, 100, 5000, 1 << 20])
def test_too_long_a_message_is_truncated_and_the_next_is_found(size):
    data = quoted(b"A: 1\n" + b"x" * 20_000 + b"\n") + quoted(b"B: 2\n") + quoted(b"C: 3\n")

    long, *rest = split(data, size, limit=1000)
    assert long == (b"A: 1\n" + b"x" * 20_000)[: 1000 - len(FROM)]
    assert rest == [b"B: 2\n", b"C: 3\n"]


def test_truncating_a_message_creates_no_separator():
    # The part that is kept ends in a blank line; "From " comes long after it.
    head = FROM + b"A: 1\n\n"
    data = head + b"x" * 5000 + b"\n" + FROM + b"B: 2\n\nend\n"

    assert len(split(data, 512, limit=len(head))) == 1


def test_chunks_add_up_to_the_stream():
    data = bytes(range(256)) * 4000

    assert b"".join(read_chunks(io.BytesIO(data))) == data


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"From x", b""),
        (b"From x\n", b""),
        (b"From x\n\n", b""),
        (b"From x\n\n\n", b"\n"),
        (b"From x\nA: 1\n", b"A: 1\n"),
        (b"A: >From here\n>>From y\n", b"A: >From here\n>From y\n"),
    ],
)
def test_unwrap_undoes_what_the_mbox_added(raw, message):
    assert unwrap(raw) == message


def fill(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Subject: {name}\n\nx\n")


def walked(folder, label=None, kind=None):
    return [(os.path.relpath(p, folder), lab, k) for p, lab, k in walk(str(folder), label, kind)]


def test_a_tree_is_walked_in_natural_order_files_before_folders(tmp_path):
    fill(tmp_path, "m10", "m2", "m2.10", "m2.9", "b/1", "a10/1", "a9/1", "M.MBOX.GZ", "Inbox")

    assert walked(tmp_path) == [
        ("Inbox", None, "unsure"),
        ("M.MBOX.GZ", None, "mbox"),
        ("m2", None, "eml"),
        ("m2.9", None, "eml"),
        ("m2.10", None, "eml"),
        ("m10", None, "eml"),
        ("a9/1", None, "eml"),
        ("a10/1", None, "eml"),
        ("b/1", None, "eml"),
    ]


def test_equal_numbers_written_differently_have_one_order(tmp_path):
    fill(tmp_path, "1.eml", "01.eml", "001.eml")

    assert [name for name, *_ in walked(tmp_path)] == ["001.eml", "01.eml", "1.eml"]


def test_hidden_files_and_backups_are_skipped(tmp_path):
    fill(tmp_path, "1.eml", ".hidden", ".git/1", "1.eml~", "#1.eml#")

    assert walked(tmp_path) == [("1.eml", None, "eml")]


def test_sub_folders_alone_are_classes(tmp_path):
    fill(tmp_path, "Ham/Set1/1", "Ham/Set2/1", "Spam/Set1/1")

    assert walked(tmp_path) == [
        ("Ham/Set1/1", "Ham", "eml"),
        ("Ham/Set2/1", "Ham", "eml"),
        ("Spam/Set1/1", "Spam", "eml"),
    ]


def test_ham_and_spam_are_classes_beside_other_files(tmp_path):
    fill(tmp_path, "Summary.txt", "ham/1", "spam/1")

    assert walked(tmp_path) == [("ham/1", "ham", "eml"), ("spam/1", "spam", "eml")]


def test_with_a_label_sub_folders_are_a_tree(tmp_path):
    fill(tmp_path, "2001/1", "2002/a/1")

    assert walked(tmp_path, label="spam") == [
        ("2001/1", "spam", "eml"),
        ("2002/a/1", "spam", "eml"),
    ]


def test_sub_folders_of_a_tree_are_not_classes(tmp_path):
    fill(tmp_path, "1", "deep/office/1", "deep/spam/1", "deep/notes")

    assert {label for _, label, _ in walked(tmp_path)} == {None}


def test_folders_with_ham_and_spam_are_parts_of_one_corpus(tmp_path):
    """As Enron-Spam is unpacked."""
    fill(tmp_path, "enron1/ham/1", "enron1/spam/2", "enron1/Summary.txt", "enron2/Ham/x/3")
    fill(tmp_path, "enron2/SPAM/4")

    assert walked(tmp_path) == [
        ("enron1/ham/1", "ham", "eml"),
        ("enron1/spam/2", "spam", "eml"),
        ("enron2/Ham/x/3", "Ham", "eml"),
        ("enron2/SPAM/4", "SPAM", "eml"),
    ]


@pytest.mark.parametrize("other", ["README.txt", "extras/1"])
def test_what_lies_beside_the_parts_has_no_class(tmp_path, other):
    fill(tmp_path, "enron1/ham/1", "enron1/spam/2", other)

    labels = {name: label for name, label, _ in walked(tmp_path)}
    assert labels == {"enron1/ham/1": "ham", "enron1/spam/2": "spam", other: None}


def test_train_and_test_are_parts_if_they_hold_the_same_folders(tmp_path):
    fill(tmp_path / "a", "20news-train/sea/1", "20news-train/sky/2", "20news-test/sea/3")
    fill(tmp_path / "b", "train/sea/1", "test/sky/3")
    fill(tmp_path / "c", "train/1", "test/3")

    assert {label for _, label, _ in walked(tmp_path / "b")} == {"train", "test"}
    assert {label for _, label, _ in walked(tmp_path / "c")} == {"train", "test"}
    assert {label for _, label, _ in walked(tmp_path / "a")} == {"20news-train", "20news-test"}
    fill(tmp_path / "a", "20news-test/sky/4")
    assert {label for _, label, _ in walked(tmp_path / "a")} == {"sea", "sky"}


def test_a_class_may_hold_ham_and_spam(tmp_path):
    """The user said so, by --format classes, or by other classes called ham or spam."""
    fill(tmp_path, "ours/ham/1", "ours/spam/2", "spam/3")

    assert {label for _, label, _ in walked(tmp_path)} == {"ours", "spam"}
    assert {label for _, label, _ in walked(tmp_path / "ours")} == {"ham", "spam"}
    assert {label for _, label, _ in walked(tmp_path, kind="classes")} == {"ours", "spam"}


def test_format_classes_skips_files_beside_the_folders(tmp_path):
    fill(tmp_path, "1", "a/1", "b/cur/x", "b/new/y")

    assert walked(tmp_path, kind="classes") == [
        ("a/1", "a", "eml"),
        ("b/cur/x", "b", "eml"),
        ("b/new/y", "b", "eml"),
    ]


@pytest.mark.parametrize("kind", ["eml", "mbox"])
def test_an_explicit_kind_of_file_holds_for_the_whole_tree(tmp_path, kind):
    fill(tmp_path, "Inbox", "a/x.mbox", "a/cur/1", "a/new/1")

    assert {k for *_, k in walked(tmp_path, kind=kind)} == {kind}
    assert len(walked(tmp_path, kind=kind)) == 4


def test_maildir_agrees_with_the_standard_library(tmp_path):
    box = mailbox.Maildir(tmp_path / "box")
    for number in range(12):
        message = mailbox.MaildirMessage(f"Subject: {number}\n\nx\n")
        message.set_subdir("cur" if number % 3 else "new")
        box.add(message)
    box.add_folder("Spam").add("Subject: only if named\n\nx\n")
    expected = sorted(box.get_bytes(key) for key in box.iterkeys())

    found = walked(tmp_path / "box")
    assert [name[:3] for name, *_ in found] == ["cur"] * 8 + ["new"] * 4
    assert sorted((tmp_path / "box" / name).read_bytes() for name, *_ in found) == expected
    assert len(walked(tmp_path / "box" / ".Spam")) == 1


def test_mh_agrees_with_the_standard_library(tmp_path):
    box = mailbox.MH(tmp_path / "box")
    for number in range(12):
        box.add(f"Subject: {number}\n\nx\n")
    box.discard(3)
    fill(tmp_path / "box", ",3", "notes.txt", "sub/1")

    found = [name for name, *_ in walked(tmp_path / "box")]
    assert found == [str(key) for key in box.iterkeys()]


def test_format_mh_reads_numbered_files_without_sequences(tmp_path):
    fill(tmp_path, "10", "9", "x")

    assert [name for name, *_ in walked(tmp_path, kind="mh")] == ["9", "10"]


def test_a_folder_without_cur_and_new_is_not_a_maildir(tmp_path):
    with pytest.raises(ValueError, match=r"not a Maildir \(no cur/ or new/\)"):
        walked(tmp_path, kind="maildir")


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
        found = list(walk(str(tmp_path), "ham", None))
    finally:
        sys.setrecursionlimit(limit)
    os.remove(message)  # here, because what cleans up after tests may recurse
    for folder in folders[:0:-1]:
        os.rmdir(folder)
    assert found == [(message, "ham", "eml")]


def test_devices_sockets_and_fifos_are_skipped(tmp_path):
    fill(tmp_path, "1")
    os.mkfifo(tmp_path / "2")

    assert walked(tmp_path) == [("1", None, "eml")]


def test_index_lines_name_a_class_and_a_path():
    index = b"spam ../data/inmail.1\n\nham\t../data/a b\r\n"

    assert list(index_entries(io.BytesIO(index))) == [
        ("spam", "../data/inmail.1"),
        ("ham", "../data/a b"),
    ]
    assert parse_index_line(b"alone") is None


def test_a_broken_index_names_its_line():
    with pytest.raises(ValueError, match="line 2: not `class path`"):
        list(index_entries(io.BytesIO(b"spam x\nspam\n")))
