"""Items: every store of the same mail gives the same items; every mistake has its message."""

import bz2
import gzip
import lzma
import os
import pickle
import random
import shutil
import sys
import tarfile
from codecs import BOM_UTF8
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, UsageError
from nbspam.sources import files, mailboxes
from nbspam.sources.foreign import oddity
from nbspam.sources.items import FORMATS, Item, SourceOptions, chunks, read_items
from support import FROM, HAM, ROOT, SPAM, complains, packed, standard_input, write_files

MAIL = [f"Subject: {n}\n\nmessage {n}\nFrom me\n".encode() for n in range(12)]
MBOX = b"".join(FROM + mail.replace(b"\nFrom", b"\n>From") + b"\n" for mail in MAIL)


def read(*paths, label=None, stdin=b"", **options):
    names = [str(path) for path in paths]
    with standard_input(stdin):
        return list(read_items(names, label=label, options=SourceOptions(**options)))


def data(*paths, **options):
    return [item.read() for item in read(*paths, **options)]


def write(path, content=b"Subject: x\n\ny\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def each(name, packed=bytes):
    return {name.format(n): packed(mail) for n, mail in enumerate(MAIL, 1)}


MAILDIR = {f"box/{'cur' if n < 7 else 'new'}/{n}.h:2,S": mail for n, mail in enumerate(MAIL)}
STORES = {
    "tree": each("box/{}.eml"),
    "compressed tree": each("box/{}.eml.gz", gzip.compress),
    "tree in UTF-16": each("box/{}.eml", lambda mail: mail.decode().encode("utf-16")),
    "sub-folders": {f"box/part{n // 5}/{n}": m for n, m in enumerate(MAIL)} | {"box/.x": b"x"},
    "MH": {"box/.mh_sequences": b"", **each("box/{}")},
    "Maildir": {"box/tmp/x": b"x", **MAILDIR},
    "mbox": {"box": MBOX},
    "mbox in UTF-16": {"box": MBOX.decode().encode("utf-16")},
    "mbox of an old Mac": {"box": MBOX.replace(b"\n", b"\r")},
    "mbox.gz, and junk": {"box.gz": gzip.compress(MBOX) + b"junk"},
    "mbox.bz2, and junk": {"box.mbox.bz2": bz2.compress(MBOX) + b"junk"},
    "mbox.xz": {"box.mbx.xz": lzma.compress(MBOX)},
    "mbox in a folder": {"box/Inbox": MBOX},
    "named mbox in a folder": {"box/2002-08.mbox.gz": gzip.compress(MBOX)},
}


@pytest.mark.parametrize("files", STORES.values(), ids=STORES)
def test_the_same_mail_gives_the_same_items_in_every_store(files, tmp_path):
    (path,) = write_files(tmp_path, files).iterdir()
    n_open = len(os.listdir("/dev/fd"))
    items = read(path, label="spam")
    assert [item.read() for item in items] == MAIL
    assert len(os.listdir("/dev/fd")) == n_open
    assert {item.label for item in items} == {"spam"}
    assert not any(item.is_text for item in items)
    assert len({item.name for item in items}) == len(MAIL)


def test_a_trec_index_gives_classes_and_paths_beside_it(tmp_path):
    write_files(tmp_path, each("data/inmail.{}"))
    lines = "".join(f"spam ../data/inmail.{n}\n" for n in range(1, 13))
    index = write(tmp_path / "full" / "index", lines.encode())

    assert data(index) == data(index, format="trec") == MAIL
    assert {item.label for item in read(index)} == {"spam"}
    assert {item.label for item in read(index, label="ham")} == {"ham"}
    assert {item.series for item in read(index)} == {str(index)}
    assert {item.series for item in read(tmp_path / "data")} == {None}


@pytest.mark.parametrize(
    "head", [b"Subject: m\n", b"ham .\n", b"ham no\n", b"ham m\nHi\nx y\n", b"#! m\nHi\n"]
)
def test_a_message_is_not_taken_for_an_index(head, tmp_path):
    path = write(tmp_path / "m", head)
    assert read(path) == [Item(str(path), None)]


def test_class_folders_hold_any_store(tmp_path):
    for label, store in (("ham", "Maildir"), ("ju\u0308nk", "MH"), ("spam", "mbox in a folder")):
        write_files(tmp_path, {f"{label}{name[3:]}": m for name, m in STORES[store].items()})
    write(tmp_path / "spam" / "more.tar", packed({"2001": MBOX}))
    items = read(tmp_path)
    assert [item.label for item in items] == ["ham"] * 12 + ["jünk"] * 12 + ["spam"] * 24
    assert [item.read() for item in items] == MAIL * 4
    assert items == read(tmp_path, format="classes")


def test_messages_in_files_and_sources_are_read_lazily(tmp_path):
    items = read(write_files(tmp_path / "box", each("{}.eml")))
    shutil.rmtree(tmp_path / "box")
    assert {item.data for item in items} == {None}
    with pytest.raises(InputError, match=r"1\.eml: no such file or folder"):
        items[0].read()

    path = write(tmp_path / "m.mbox", MBOX)
    unread = read_items([str(path)])
    path.write_bytes(MBOX + MBOX)
    assert len(list(unread)) == 24


def test_names_number_messages_of_a_mailbox_from_one(tmp_path):
    path = write(tmp_path / "m.mbox", MBOX)
    alone = write(tmp_path / "alone.mbox", FROM + b"A: 1\n\nx\n\n")
    assert [item.name for item in read(path)][:2] == [f"{path}#1", f"{path}#2"]
    assert [item.name for item in read("-", stdin=MBOX)][:2] == ["-#1", "-#2"]
    assert read(alone) == [Item(f"{alone}#1", None, b"A: 1\n\nx\n", series=str(alone))]


def test_the_printed_name_of_an_item_is_a_source(tmp_path):
    archive = tmp_path / "m#1.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(write(tmp_path / "m.mbox", MBOX), "ham/m#2.mbox")
    table = write(tmp_path / "t.tsv", b"ham\tlunch\nspam\tpills\n")
    packed = write(tmp_path / "m.mbox.gz", gzip.compress(MBOX))
    for item in read(tmp_path / "m.mbox", packed, archive, table):
        assert read(item.name) == [item._replace(series=None, copy=0 if item.is_text else None)]
    name = f"{tmp_path}/m.mbox#99"
    assert read(name)[0].problem == f"{name}: no such message there; check its name"
    write(tmp_path / "m.mbox#1", b"a file of this name\n")
    assert read(f"{tmp_path}/m.mbox#1")[0].read() == b"a file of this name\n"
    with pytest.raises(InputError, match="no such file or folder"):
        read(f"{tmp_path}/none.mbox#1")


def test_a_single_message_keeps_its_from_line(tmp_path):
    message = FROM + b"Subject: x\n\n>From y\n"
    path = write(tmp_path / "message", message)
    assert read(path) == read(tmp_path) == [Item(str(path), None)]
    assert data(path) == [message]
    assert read("-", stdin=message) == [Item("-", None, message)]


@pytest.mark.parametrize(
    "message", [b"", b"\0\xff", b"a \0", b"no header", b"From x", b"A: 1\n" * 50_000]
)
def test_any_bytes_are_one_message(message, tmp_path):
    path = write(tmp_path / "m", message)
    assert data(path) == data(path, format="eml") == [message]
    assert data("-", stdin=message) == data("-", stdin=message, format="eml") == [message]


@pytest.mark.parametrize("message", [b"\n", b"A: 1\n\nx\n\n" + MBOX])
def test_a_file_named_mbox_may_hold_one_message_without_from_line(message, tmp_path):
    path = write(tmp_path / "Inbox", message)
    write(tmp_path / "Trash", b"")  # an empty mailbox
    write(tmp_path / "2024", b"")
    assert read(tmp_path) == read(path) == [Item(str(path), None)]


@pytest.mark.parametrize("start", [b"\n\r\n", BOM_UTF8])
def test_an_mbox_may_begin_with_empty_lines_or_a_byte_order_mark(start, tmp_path):
    assert data(write(tmp_path / "box", start + MBOX)) == MAIL
    assert data("-", stdin=start + MBOX) == MAIL


def test_formats_eml_and_mbox_hold_for_every_file(tmp_path, monkeypatch):
    path = write(tmp_path / "2001.mbox", MBOX)
    other = write(tmp_path / "notes.txt", MBOX)

    assert (data(other), data(tmp_path)) == (MAIL, MAIL * 2)
    with monkeypatch.context() as patch:
        patch.setattr(mailboxes, "_FEW", 1)
        assert data(tmp_path) == [*MAIL, MBOX]  # in a folder of many files, by its name
    assert data(write(tmp_path.parent / "m.tar", packed({"2001": MBOX}))) == MAIL
    assert data(path, format="eml") == [MBOX]
    assert data(tmp_path, format="eml") == [MBOX] * 2
    assert data(tmp_path, format="mbox") == MAIL * 2
    assert data("-", stdin=MBOX, format="mbox") == MAIL


def test_a_longer_message_is_truncated(tmp_path):
    path = write(tmp_path / "m", b"x")
    os.truncate(path, files.MAX_MESSAGE + 10)  # a sparse file: it takes no space on disk
    assert [len(message) for message in data(path)] == [files.MAX_MESSAGE]
    with path.open() as stream, patch("sys.stdin", stream):
        (item,) = read_items(["-"])
    assert len(item.read()) == files.MAX_MESSAGE


TABLES = {
    "t.csv": b"label,text\nham,one\nspam,two\n,three\n",
    "t.CSV.GZ": gzip.compress(b"label,text\nham,one\nspam,two\n,three\n"),
    "t.tsv": b"label\ttext\nham\tone\nspam\ttwo\n\tthree\n",
    "t.ndjson": b'{"text":"one","label":"ham"}\n{"text":"two","label":"spam"}\n{"text":"three"}\n',
    "t.json": b'{"label":"ham","text":"one"}\n{"label":"spam","text":"two"}\n{"text":"three"}\n',
    "t.txt": b"__label__ham one\n__label__spam two\nthree\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_give_texts_with_classes(name, tmp_path):
    path = write(tmp_path / name, TABLES[name])

    assert read(path) == [
        Item(f"{path}#1", "ham", b"one", is_text=True, series=str(path)),
        Item(f"{path}#2", "spam", b"two", is_text=True, series=str(path)),
        Item(f"{path}#3", None, b"three", is_text=True, series=str(path)),
    ]
    assert {item.label for item in read(path, label="x")} == {"x"}


def test_tables_are_known_by_their_content_or_by_what_is_stated(tmp_path):
    path = write(tmp_path / "SMSSpamCollection", b"ham\tGo until\nspam\tFree\nham\tOk\n")
    found = [(item.label, item.data) for item in read(path)]
    assert found == [("ham", b"Go until"), ("spam", b"Free"), ("ham", b"Ok")]

    stated = {"format": "csv", "text_columns": ("b",), "label_column": "c"}
    (item,) = read("-", stdin=b"a,b,c\n1,x,ham\n", **stated)
    assert item == Item("-#1", "ham", b"x", is_text=True, series="-")
    # A lone surrogate becomes a question mark.
    assert data("-", stdin=b'{"text": "a\\ud800b"}\n', format="jsonl") == [b"a?b"]


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_damaged_compressed_files_are_an_input_error(ending, tmp_path):
    whole = PACKERS[ending](os.urandom(5000))
    for content in (b"not compressed", whole[:3000], whole[:100] + b"x" * 5000):
        path = write(tmp_path / f"m.eml{ending}", content)
        for format in ("eml", "mbox"):
            with pytest.raises(InputError, match=rf"m.eml{ending}: damaged \("):
                data(path, format=format)


@pytest.mark.parametrize("compress", PACKERS.values())
def test_a_message_that_a_server_keeps_compressed_is_decompressed(compress, tmp_path):
    packed = compress(HAM)
    damaged = [packed[:-9], packed[:20] + b"x" * 99, compress(bytes(20_000_000))]
    for n, kept in enumerate((packed, *damaged)):
        write(tmp_path / "cur" / f"{n}:2,S", kept)
    (tmp_path / "new").mkdir()
    assert data(tmp_path) == [HAM, *damaged]
    assert read("-", stdin=compress(MBOX))[0].problem == "-: a compressed mailbox; decompress it"


@pytest.mark.parametrize("size", [b"%d", b"%d        "])
def test_a_file_of_apple_mail_is_its_message(size, tmp_path):
    message = b"Subject: x\n\nbody\n"
    kept = size % len(message) + b"\n" + message + b"<?xml version='1.0'?><plist></plist>\n"
    path = write(tmp_path / "1.emlx", kept)
    assert data(path) == [message]
    for other in (message, b"\n" + message, b"9" * 5000 + b"\n", b"", b"-1\n" + message):
        path.write_bytes(other)
        assert data(path) == [other]


def test_a_missing_path_is_reported_before_reading_with_a_similar_one(tmp_path):
    near = write(tmp_path / "mails" / "inbox.mbox").parent
    for path, words in (
        (tmp_path / "mials" / "inbox.mbox", f"did you mean {near}\\?"),
        (near / "inbox.mbx", f"did you mean {near / 'inbox.mbox'}\\?"),
        (tmp_path / "entirely-else", "no such file or folder; check the spelling"),
        ("", "^'': no such file or folder; check the spelling"),
    ):
        with pytest.raises(InputError, match=words):
            read_items([str(tmp_path), str(path)])


def test_files_and_folders_without_rights_are_reported(tmp_path, monkeypatch):
    def refuse(path, mode=None):
        raise PermissionError(13, "Permission denied", path)

    (item,) = read(write(tmp_path / "m.eml"))
    with monkeypatch.context() as patch:  # undone before pytest removes the folder
        patch.setattr("os.open", refuse)
        with pytest.raises(InputError, match=r"m\.eml: cannot be read \(Permission denied\)"):
            item.read()
        one_message = write(tmp_path / "1")
        assert read(one_message) == [Item(str(one_message), None)]
        with pytest.raises(InputError, match=r"many\.mbox: cannot be read"):
            read(write(tmp_path / "many.mbox"))
    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(InputError, match="no such file or folder; check the spelling"):
        read(tmp_path / "x")
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        read(tmp_path)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "/dev/null/x"])
def test_impossible_paths_are_input_errors(path):
    with pytest.raises(InputError):
        read(path)
    with pytest.raises(InputError):
        Item(path, None).read()


def test_a_fifo_is_never_opened(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="fifo: not a file; give a file, or pipe it in"):
        read(fifo)
    for path in (fifo, tmp_path):
        with pytest.raises(InputError, match="not a file"):
            Item(str(path), None).read()
    with pytest.raises(InputError, match="no messages found"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("e.mbox", b""), ("e.csv", b""), ("h.csv", b"label,text\n"), ("cur", None)],
)
def test_a_source_without_messages_is_an_input_error(name, content, tmp_path):
    path = tmp_path / name
    path.mkdir() if content is None else write(path, content)
    with pytest.raises(InputError, match=f"{name}: no messages found; give mail"):
        read(path)


def test_an_empty_source_among_others_is_told_and_passed_over(nbspam, tmp_path):
    junk, inbox, message = tmp_path / "junk", tmp_path / "inbox", tmp_path / "1.eml"
    for folder in (junk, inbox):
        (folder / "cur").mkdir(parents=True)
        (folder / "new").mkdir()
    write(inbox / "cur" / "2", MAIL[2])
    write(message, MAIL[1])
    told = f"nbspam: {junk}: no messages found; give mail, an mbox, a table or a folder\n"
    model = tmp_path / "m"
    status, output, errors = nbspam("update", "-m", model, "--spam", junk, "--ham", inbox)
    assert (status, output) == (0, "learned 1\n")
    assert told in errors
    (emptied := tmp_path / "emptied.mbox").touch()
    status, output, errors = nbspam("update", "-m", model, "--spam", junk, "--ham", inbox, emptied)
    assert (status, output) == (0, "already known 1\n")
    assert told.replace(str(junk), str(emptied)) in errors
    status, output, errors = nbspam("classify", "-m", model, junk, message)
    assert (status, output.count("\n"), told in errors) == (0, 1, True)
    assert nbspam("update", "-m", model, "--spam", junk, "--ham", junk / "cur")[0] == 1


IN_FILES = ["trec", "tar", "zip", "parquet", "csv", "tsv", "jsonl", "fasttext"]
IN_FOLDERS = ["maildir", "mh", "classes"]
OF_A_FOLDER = {"maildir": "not a Maildir", "mh": "no messages found"}  # what each format says
OF_A_FOLDER |= {name: f"a folder, but --format {name} is a file" for name in IN_FILES}
OF_A_FILE = {name: f"a file, but --format {name} is a folder" for name in IN_FOLDERS} | {
    "trec": "line 1: not `class path`", "tar": "cut off, its end is missing",
    "zip": "damaged .File is not a zip file.", "parquet": "damaged, or no parquet",
    "csv": "no known text column", "jsonl": "line 1: not JSON",
}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["folder", "file"])
def test_each_format_works_or_names_the_mistake(name, format, tmp_path):
    write(tmp_path / "folder" / "sub" / "m.eml")
    path = write(tmp_path / "file", b"1,2,3\n").with_name(name)
    refusal = (OF_A_FILE if name == "file" else OF_A_FOLDER).get(format)
    if refusal is None:
        assert len(read(path, format=format)) == 1
    else:
        with pytest.raises(InputError, match=f"{name}: {refusal}"):
            read(path, format=format)


def test_formats_of_folders_and_unknown_ones_are_refused():
    with pytest.raises(InputError, match="-: a file, but --format mh is a folder"):
        read("-", stdin=b"", format="mh")
    with pytest.raises(UsageError, match="--format rar: unknown; choose from eml, mbox"):
        read("x", format="rar")


items = st.lists(
    st.one_of(st.none(), st.binary(max_size=30)).map(lambda content: Item("x", None, content))
)


@given(items, st.integers(1, 5), st.integers(0, 40))
def test_chunks_hold_all_items_in_order_within_the_limits(items, max_items, max_bytes):
    parts = list(chunks(iter(items), max_items, max_bytes))
    assert [item for part in parts for item in part] == items
    for part in parts:
        assert 1 <= len(part) <= max_items
        assert len(part) == 1 or sum(len(item.data or b"") for item in part) <= max_bytes
        assert pickle.loads(pickle.dumps(part, 5)) == part


def test_chunks_are_as_large_as_the_limits_allow():
    item = Item("x", None, b"12345")
    assert [len(part) for part in chunks([item] * 7, 3, 100)] == [3, 3, 1]
    assert [len(part) for part in chunks([item] * 7, 9, 10)] == [2, 2, 2, 1]
    assert [len(part) for part in chunks([item._replace(data=None)] * 7, 9, 0)] == [7]


@pytest.mark.parametrize(("size", "at_once"), [(3, 99), (14, 4)])  # it grows; FUSE gives parts
def test_a_file_is_read_to_its_end_or_the_limit(tmp_path, monkeypatch, size, at_once):
    path = write(tmp_path / "mail", b"a: b\n\nand more")
    status, read = os.stat_result((*os.stat(path)[:6], size, 0, 0, 0)), os.read
    monkeypatch.setattr(os, "fstat", lambda _: status)
    monkeypatch.setattr(os, "read", lambda file, n: read(file, min(n, at_once)))
    assert files.read_uncompressed(str(path), 99) == b"a: b\n\nand more"
    assert files.read_uncompressed(str(path), 6) == b"a: b\n\n"
    assert files.read_uncompressed(str(path), 2) == b"a:"


# --- data that are neither mail nor text -----------------------------------------------------


@pytest.mark.parametrize(("data", "what"), [
    (Path(sys.executable).read_bytes()[:5000], "a program"),
    (b"MZ\x90\0\x03\0\0\0", "a program"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
    (b"GIF89a\1\0\1\0", "a GIF picture"), (b"%PDF-1.7\n", "a PDF document"),
    (packed({"a": b""}, "zip"), "a ZIP archive or office document"),
    (b"\x1f\x8b\x08\0", "data compressed by gzip"),
    (b'// <!-- <mdb:mork:z v="1.4"/> -->\n', "an index of Thunderbird"),
    (b"// Mozilla User Preferences\n\n// DO NOT EDIT\n", "settings of Thunderbird"),
    (b"# Mozilla User Preferences\n", "settings of Thunderbird"),
    (b"1tBcXd-0003xy-2B-H\nmail 8 8\n<a@b.example>\n", "a queue file of Exim"),
    (b"1tBcXd-00000003xyZ-2Bcd-D\nbuy pills\n", "a queue file of Exim"),
    (b"/home/a/Mail/cur/17.M1P2.a:2,S\n", "names of files (pass them by xargs)"),
    (b"/a/new/1\0/b/new/2\0", "names of files (pass them by xargs)"),
    (b"V8\nT1732700000\nK0\nN0\nP30012\n", "a queue file of Sendmail"),
    (b"2 M1e C65000000\n\1\2N  ", "a dbox file of Dovecot"),
    (b"\1\1\1\1\nSubject: x\n\nx\n\1\1\1\1\n", "a mailbox in the format MMDF"),
    (b"*mbx*\r\n0123456700000001\r\n\r\nSubject: x\r\n\r\nx", "a mailbox in the format MBX"),
    (b"BABYL OPTIONS: -*- rmail -*-\nVersion: 5\n", "a mailbox in the format Babyl"),
    (np.random.default_rng(2).bytes(3000), "binary data"),
    (b"a\0\0\0b\0\0\0", "binary data"), (b"@relation spam\n", "a table of Weka"),
])  # fmt: skip
def test_binary_data_are_named(data, what):
    assert oddity(data, files.NO_COLUMNS) == f"looks like {what}, not like mail or text"


@pytest.mark.parametrize("preset", ["mail", "text"])
def test_no_model_learns_from_what_is_neither_mail_nor_text(preset, nbspam, tmp_path):
    files = {"ham/1.eml": HAM, "spam/1.eml": SPAM, "spam/2.jpg": b"\xff\xd8\xff"}
    box, model = write_files(tmp_path / "box", files), tmp_path / "model"
    train = ("train", "--preset", preset)
    for command, learned in ((train, "read 2 "), (("update",), "already known 2")):
        said = "".join(nbspam(*command, "-m", model, box)[1:])
        assert learned in said
        assert (
            f"skipped {box}/spam/2.jpg: looks like a JPEG picture, not like mail or text" in said
        )


def test_a_table_is_named_with_the_format_to_give():
    said = "looks like a table, judged as one text; --format {} judges its rows"
    assert oddity(b"label,text\nham,x\n", files.NO_COLUMNS) == said.format("csv")
    assert oddity(b'{"text": "x"}\n{"text": "y"}\n', files.NO_COLUMNS) == said.format("jsonl")
    assert "looks like a JSON list" in oddity(b'[\n  {\n    "text": "x"}]', files.NO_COLUMNS)
    table = b"nr,headline\n7,x\n"
    assert (
        oddity(table, files.NO_COLUMNS)
        is oddity(b"text,label,text\na,b,c\n", files.NO_COLUMNS)
        is None
    )
    assert oddity(table, files.TextColumns(("headline",))) == said.format("csv")


HELLO = "こんにちは、お元気ですか。" * 20


@pytest.mark.parametrize(
    "data",
    [HAM, SPAM, b"hello", b"MZ is a country code", "안녕 ".encode("iso2022_kr") * 9]
    # Neither names of files, nor queue files, nor settings.
    + [b"/me smiles\n", b"/usr/bin is full\n", b"/s/a/b/\nThanks"]
    + [b"plan-B or C-D\n", b"1tBcXd-0003xy-2B-H is lost\n", b"# Mozilla\n", b"V8\nGo\n"]
    + [HELLO.encode(name) for name in ("utf-8", "utf-16", "iso2022_jp", "shift_jis", "euc_jp")],
)
def test_mail_and_text_are_not_odd(data):
    assert oddity(data, files.NO_COLUMNS) is None


def test_embedded_mail_is_not_odd():
    for path in sorted((ROOT / "corpora" / "mail").glob("*/*")):
        assert oddity(path.read_bytes(), files.NO_COLUMNS) is None


@given(st.binary(max_size=100), st.sampled_from([b"", b"{", b"label,text\n", b"\xff\xfe"]))
def test_any_bytes_are_looked_at(data, start):
    assert isinstance(oddity(start + data, files.TextColumns(("a",))), str | None)


def test_values_of_json_come_back_or_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("[1, 2.5, null]")
    monkeypatch.setattr(files, "_JSON_BYTES", 14)
    assert files.read_json(str(path)) == [1, 2.5, None]
    path.write_text("[1, 2.50, null]")
    with pytest.raises(InputError, match="more than 14 bytes"):
        files.read_json(str(path))
    with pytest.raises(InputError, match=r"none.json: No such file"):
        files.read_json(str(tmp_path / "none.json"))
    monkeypatch.undo()
    for text in ("{", "[" * 100_000, "\x00"):
        path.write_text(text)
        with pytest.raises(InputError, match="not JSON"):
            files.read_json(str(path))


# ---- compressed files ----

FREE = 1 << 19  # less than outside of tests, so that packing takes no time


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch):
    monkeypatch.setattr(files, "MOST_FREE", FREE)


@pytest.mark.parametrize("ending", PACKERS)
def test_what_expands_without_end_is_refused_soon(nbspam, trained, tmp_path, ending):
    bomb, message = tmp_path / f"bomb.mbox{ending}", tmp_path / f"bomb.eml{ending}"
    bomb.write_bytes(PACKERS[ending](bytes(8 * FREE)))
    with files.open_file(str(bomb)) as stream:
        assert len(stream.read(FREE)) == FREE
        with pytest.raises(InputError, match="more than 250 times its size"):
            stream.read()

    assert complains(nbspam("classify", bomb), 1, str(bomb), "decompress it yourself")
    message.write_bytes(PACKERS[ending](b"Subject: x\n\n" + bytes(8 * FREE)))
    assert complains(nbspam("classify", message), 1, "skipped", str(message), "250 times")


@pytest.mark.parametrize("ending", PACKERS)
def test_a_mailbox_of_words_is_read_to_its_end(tmp_path, ending):
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefghijklmnop", k=6)) for _ in range(500)]
    path = tmp_path / f"box.mbox{ending}"
    head = b"From a@b.example Thu Aug 22 12:36:23 2002\nSubject: x\n\n"
    data = b"".join(head + b" ".join(rng.choices(words, k=5000)) + b"\n\n" for _ in range(24))
    path.write_bytes(PACKERS[ending](data))

    assert path.stat().st_size < len(data) / 2
    assert len(data) > FREE
    assert sum(1 for _ in read_items([str(path)])) == 24


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_can_be_read_again_from_its_start(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_bytes(PACKERS[ending](b"one\ntwo\n"))
    with files.open_file(str(path)) as stream:
        assert stream.readline() == b"one\n"
        assert stream.tell() == 4
        stream.seek(0)
        assert stream.read() == b"one\ntwo\n"


# ---- inside a folder ----


def test_no_link_inside_a_folder_is_followed(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "1.eml.gz").write_bytes(gzip.compress(b"one"))
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "2.eml").symlink_to("b/1.eml.gz")
    os.mkfifo(tmp_path / "a" / "3.eml")

    for folder in ("a", "link"):  # the folder itself may be one
        with files.open_inside(str(tmp_path / folder), "b/1.eml.gz") as stream:
            assert stream.read() == b"one"
    for path in ("link/b/1.eml.gz", "a/2.eml", "a/none"):
        with pytest.raises(OSError, match=r"directory|symbolic"):
            files.open_inside(str(tmp_path), path)
    for path in ("a/3.eml", "a/b"):
        with pytest.raises(InputError, match="not a file; give a file"):
            files.open_inside(str(tmp_path), path)


def test_links_in_a_folder_may_count_as_nothing(tmp_path):
    write_files(tmp_path, dict.fromkeys(("box/1.eml", "box/b/2.eml", "3.eml"), b"A: x\n\n"))
    for name, target in (("4.eml", "../3.eml"), ("c", "b"), ("5.eml", "nothing")):
        (tmp_path / "box" / name).symlink_to(target)
    options = SourceOptions(follows_links=False)
    names = [item.name for item in read_items([str(tmp_path / "box")], options=options)]
    assert names == [str(tmp_path / "box/1.eml"), str(tmp_path / "box/b/2.eml")]
