"""Items: every store of the same mail gives the same items; every mistake has its message."""

import bz2
import gzip
import io
import lzma
import mailbox
import os
import pickle
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, UsageError
from nbspam.sources.files import MAX_MESSAGE, read_uncompressed
from nbspam.sources.items import FORMATS, Item, SourceOptions, chunks, read_items

FROM = b"From someone@example.org Thu Aug 22 12:36:23 2002\n"
MAIL = [f"Subject: {n}\n\nmessage {n}\nFrom me\n".encode() for n in range(12)]
MBOX = b"".join(FROM + mail.replace(b"\nFrom", b"\n>From") + b"\n" for mail in MAIL)


def read(*paths, label=None, stdin=None, **options):
    names = [str(path) for path in paths]
    return list(read_items(names, label=label, options=SourceOptions(**options), stdin=stdin))


def data(*paths, **options):
    return [item.read() for item in read(*paths, **options)]


def write(path, content=b"Subject: x\n\ny\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def as_tree(path):
    for number, mail in enumerate(MAIL):
        write(path / f"{number}.eml", mail)


def as_compressed_tree(path):
    for number, mail in enumerate(MAIL):
        write(path / f"{number}.eml.gz", gzip.compress(mail))


def as_classless_sub_folders(path):
    for number, mail in enumerate(MAIL):
        write(path / f"part{number // 5}" / str(number), mail)
    write(path / ".ignored")


def as_mh(path):
    box = mailbox.MH(path)
    for mail in MAIL:
        box.add(mail)


def as_maildir(path):
    for folder in ("cur", "new", "tmp"):
        (path / folder).mkdir(parents=True)
    for number, mail in enumerate(MAIL):
        write(path / ("cur" if number < 7 else "new") / f"{number}.host:2,S", mail)


def as_index(path):
    for number, mail in enumerate(MAIL):
        write(path.parent / "data" / f"inmail.{number}", mail)
    lines = "".join(f"spam ../data/inmail.{n}\n" for n in range(12))
    write(path.parent / "full" / "index", lines.encode())
    path.symlink_to(path.parent / "full")


STORES = {
    "tree": as_tree,
    "compressed tree": as_compressed_tree,
    "sub-folders": as_classless_sub_folders,
    "MH": as_mh,
    "Maildir": as_maildir,
    "mbox": lambda path: write(path, MBOX),
    "mbox.gz": lambda path: write(path.with_name("box.gz"), gzip.compress(MBOX)),
    "mbox.bz2": lambda path: write(path.with_name("box.mbox.bz2"), bz2.compress(MBOX)),
    "mbox.xz": lambda path: write(path.with_name("box.mbx.xz"), lzma.compress(MBOX)),
    "mbox in a folder": lambda path: write(path / "Inbox", MBOX),
    "named mbox in a folder": lambda path: write(path / "2002-08.mbox.gz", gzip.compress(MBOX)),
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_the_same_mail_gives_the_same_items_in_every_store(store, tmp_path):
    path = store(tmp_path / "box") or tmp_path / "box"

    items = read(path, label="spam")
    assert [item.read() for item in items] == MAIL
    assert {item.label for item in items} == {"spam"}
    assert not any(item.is_text for item in items)
    assert len({item.name for item in items}) == len(MAIL)


def test_a_trec_index_gives_classes_and_paths_beside_it(tmp_path):
    as_index(tmp_path / "box")
    index = tmp_path / "full" / "index"

    assert data(index) == data(index, format="trec") == MAIL
    assert {item.label for item in read(index)} == {"spam"}
    assert {item.label for item in read(index, label="ham")} == {"ham"}
    assert {item.series for item in read(index)} == {str(index)}
    assert {item.series for item in read(tmp_path / "data")} == {None}


@pytest.mark.parametrize("head", [b"Subject: m\n", b"ham .\n", b"ham no\n", b"ham m\nHi\nx y\n"])
def test_a_message_is_not_taken_for_an_index(head, tmp_path):
    path = write(tmp_path / "m", head)

    assert read(path) == [Item(str(path), None)]


def test_class_folders_hold_any_store(tmp_path):
    as_maildir(tmp_path / "ham")
    as_mh(tmp_path / "junk")
    write(tmp_path / "spam" / "old.mbox", MBOX)

    items = read(tmp_path)
    assert [item.label for item in items] == ["ham"] * 12 + ["junk"] * 12 + ["spam"] * 12
    assert [item.read() for item in items] == MAIL * 3
    assert items == read(tmp_path, format="classes")


def test_messages_in_files_are_read_lazily(tmp_path):
    as_tree(tmp_path / "box")
    items = read(tmp_path / "box")
    shutil.rmtree(tmp_path / "box")

    assert {item.data for item in items} == {None}
    with pytest.raises(InputError, match=r"0\.eml: no such file or folder"):
        items[0].read()


def test_items_can_be_pickled(tmp_path):
    item = Item("a#1", "ham", b"x", is_text=True)

    assert pickle.loads(pickle.dumps(item)) == item


def test_names_number_messages_from_one(tmp_path):
    path = write(tmp_path / "m.mbox", MBOX)
    names = [item.name for item in read(path)]
    assert names[:2] == [f"{path}#1", f"{path}#2"]
    assert [item.name for item in read("-", stdin=io.BytesIO(MBOX))][:2] == ["-#1", "-#2"]


def test_a_single_message_keeps_its_from_line(tmp_path):
    message = FROM + b"Subject: x\n\n>From y\n"
    path = write(tmp_path / "message", message)

    assert read(path) == read(tmp_path) == [Item(str(path), None)]
    assert data(path) == [message]
    assert read("-", stdin=io.BytesIO(message)) == [Item("-", None, message)]


def test_a_single_message_in_a_file_named_mbox_has_number_one(tmp_path):
    path = write(tmp_path / "m.mbox", FROM + b"A: 1\n\nx\n\n")

    assert read(path) == [Item(f"{path}#1", None, b"A: 1\n\nx\n", series=str(path))]


@pytest.mark.parametrize(
    "message", [b"", b"\0\xff", b"a \0", b"no header", b"From x", b"A: 1\n" * 50_000]
)
def test_any_bytes_are_one_message(message, tmp_path):
    path = write(tmp_path / "m", message)

    assert data(path) == data("-", stdin=io.BytesIO(message)) == [message]
    assert data(path, format="eml") == [message]
    assert data("-", stdin=io.BytesIO(message), format="eml") == [message]


@pytest.mark.parametrize("message", [b"", b"\n", b"A: 1\n\nx\n\n" + MBOX])
def test_a_file_named_mbox_may_hold_one_message_without_from_line(message, tmp_path):
    path = write(tmp_path / "Inbox", message)

    assert read(tmp_path) == read(path) == [Item(str(path), None)]


def test_format_eml_reads_an_mbox_as_one_message(tmp_path):
    path = write(tmp_path / "m.mbox", MBOX)

    assert data(path, format="eml") == data(tmp_path, format="eml") == [MBOX]


def test_format_mbox_reads_every_file_as_an_mbox(tmp_path):
    write(tmp_path / "2001.txt", MBOX)
    write(tmp_path / "2002.txt", MBOX)

    assert data(tmp_path, format="mbox") == MAIL * 2
    assert data("-", stdin=io.BytesIO(MBOX), format="mbox") == MAIL


def test_a_longer_message_is_truncated(tmp_path):
    path = write(tmp_path / "m", b"x")
    os.truncate(path, MAX_MESSAGE + 10)  # a sparse file: it takes no space on disk

    assert [len(message) for message in data(path)] == [MAX_MESSAGE]
    with path.open("rb") as stream:
        assert [len(message) for message in data("-", stdin=stream)] == [MAX_MESSAGE]


TABLES = {
    "t.csv": b"label,text\nham,one\nspam,two\n,three\n",
    "t.CSV.GZ": gzip.compress(b"label,text\nham,one\nspam,two\n,three\n"),
    "t.tsv": b"label\ttext\nham\tone\nspam\ttwo\n\tthree\n",
    "t.ndjson": b'{"text":"one","label":"ham"}\n{"text":"two","label":"spam"}\n{"text":"three"}\n',
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


def test_lines_of_class_and_text_are_a_table_whatever_the_name(tmp_path):
    path = write(tmp_path / "SMSSpamCollection", b"ham\tGo until\nspam\tFree\nham\tOk\n")

    assert [(item.label, item.data) for item in read(path)] == [
        ("ham", b"Go until"), ("spam", b"Free"), ("ham", b"Ok"),
    ]  # fmt: skip


def test_a_table_comes_from_standard_input_with_its_format():
    table = io.BytesIO(b"a,b,c\n1,x,ham\n")

    items = read("-", stdin=table, format="csv", text_columns=("b",), label_column="c")
    assert items == [Item("-#1", "ham", b"x", is_text=True, series="-")]


def test_a_lone_surrogate_in_json_becomes_a_question_mark(tmp_path):
    path = write(tmp_path / "t.jsonl", b'{"text": "a\\ud800b"}\n')

    assert data(path) == [b"a?b"]


def test_standard_input_defaults_to_that_of_the_process(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MAIL[0])))

    assert data("-") == [MAIL[0]]


def test_nothing_is_opened_before_the_first_item(tmp_path):
    path = write(tmp_path / "m.mbox", MBOX)
    items = read_items([str(path)])
    path.write_bytes(MBOX + MBOX)

    assert len(list(items)) == 24


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.eml.gz", b"not compressed"),
        ("m.eml.gz", gzip.compress(os.urandom(5000))[:3000]),
        ("m.eml.gz", gzip.compress(os.urandom(5000))[:20] + b"x" * 5000),
        ("m.eml.bz2", b"not compressed"),
        ("m.eml.bz2", bz2.compress(os.urandom(5000))[:3000]),
        ("m.eml.xz", b"not compressed"),
        ("m.eml.xz", lzma.compress(os.urandom(5000))[:3000]),
        ("m.eml.xz", lzma.compress(os.urandom(5000))[:100] + b"x" * 5000),
    ],
)
def test_damaged_compressed_files_are_an_input_error(name, content, tmp_path):
    path = write(tmp_path / name, content)
    for format in ("eml", "mbox"):
        with pytest.raises(InputError, match=rf"{name}: (damaged|cannot be read) \("):
            data(path, format=format)


def test_errors_in_tables_name_the_file(tmp_path):
    path = write(tmp_path / "t.jsonl", b'{"text": "x"}\n{\n')
    with pytest.raises(InputError, match=r"t\.jsonl: line 2: not JSON"):
        read(path)
    with pytest.raises(InputError, match="-: line 1: not JSON"):
        read("-", stdin=io.BytesIO(b"{"), format="jsonl")


def test_a_missing_path_is_reported_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_items([str(tmp_path), str(tmp_path / "nowhere")])


def test_the_error_for_a_missing_path_suggests_a_similar_one(tmp_path):
    write(tmp_path / "mails" / "inbox.mbox")
    near = tmp_path / "mails"
    with pytest.raises(InputError, match=f"did you mean {near}\\?"):
        read(tmp_path / "mials" / "inbox.mbox")
    with pytest.raises(InputError, match=f"did you mean {near / 'inbox.mbox'}\\?"):
        read(near / "inbox.mbx")
    with pytest.raises(InputError, match="check the spelling"):
        read(tmp_path / "entirely-else")


def test_a_missing_path_in_a_folder_that_cannot_be_listed_is_reported(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(InputError, match="no such file or folder; check the spelling"):
        read(tmp_path / "x")
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        read(tmp_path)


def test_a_file_that_may_not_be_read_is_an_input_error(tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", path)

    path = write(tmp_path / "m.eml")
    with monkeypatch.context() as patch:  # undone before pytest removes the folder
        patch.setattr("os.open", refuse)
        with pytest.raises(InputError, match=r"m\.eml: cannot be read \(Permission denied\)"):
            read(path)[0].read()


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "/dev/null/x"])
def test_impossible_paths_are_input_errors(path):
    with pytest.raises(InputError):
        read(path)
    with pytest.raises(InputError):
        Item(path, None).read()


def test_a_fifo_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match="fifo: not a file; give a file, or pipe it in"):
        read(tmp_path / "fifo")
    with pytest.raises(InputError, match="not a file"):
        Item(str(tmp_path / "fifo"), None).read()
    with pytest.raises(InputError, match="not a file"):
        Item(str(tmp_path), None).read()
    with pytest.raises(InputError, match="no messages found"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["empty.mbox", "empty.csv", "header.csv"])
def test_a_source_without_messages_is_an_input_error(name, tmp_path):
    path = write(tmp_path / name, b"label,text\n" if name == "header.csv" else b"")
    with pytest.raises(InputError, match=f"{name}: no messages found; give mail"):
        read(path)


def test_a_folder_without_messages_is_an_input_error(tmp_path):
    (tmp_path / "cur").mkdir()
    with pytest.raises(InputError, match="no messages found"):
        read(tmp_path)


REFUSALS = {  # the error of each format for a folder and for a file; None: it is read
    "eml": (None, None),
    "mbox": (None, None),
    "maildir": ("not a Maildir", "a file, but --format maildir is a folder"),
    "mh": ("no messages found", "a file, but --format mh is a folder"),
    "classes": (None, "a file, but --format classes is a folder"),
    "trec": ("a folder, but --format trec is a file", "line 1: not `class path`"),
    "tar": ("a folder, but --format tar is a file", "cut off, its end is missing"),
    "zip": ("a folder, but --format zip is a file", "damaged .File is not a zip file."),
    "parquet": ("a folder, but --format parquet is a file", "damaged, or no parquet"),
    "csv": ("a folder, but --format csv is a file", "no known text column"),
    "tsv": ("a folder, but --format tsv is a file", None),
    "jsonl": ("a folder, but --format jsonl is a file", "line 1: not JSON"),
    "fasttext": ("a folder, but --format fasttext is a file", None),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["folder", "file"])
def test_each_format_works_or_names_the_mistake(name, format, tmp_path):
    write(tmp_path / "folder" / "sub" / "m.eml")
    path = write(tmp_path / "file", b"1,2,3\n").with_name(name)
    refusal = REFUSALS[format][name == "file"]
    if refusal is None:
        assert len(read(path, format=format)) == 1
    else:
        with pytest.raises(InputError, match=f"{name}: {refusal}"):
            read(path, format=format)


@pytest.mark.parametrize("format", ["maildir", "mh", "classes"])
def test_standard_input_is_not_a_folder(format):
    with pytest.raises(InputError, match=f"-: a file, but --format {format} is a folder"):
        read("-", stdin=io.BytesIO(b""), format=format)


def test_an_unknown_format_is_a_usage_error():
    with pytest.raises(UsageError, match="--format rar: unknown; choose from eml, mbox"):
        read("x", format="rar")


def test_closed_standard_input_is_an_input_error(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="-: standard input is closed"):
        read("-")


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


def test_a_file_of_unknown_size_is_read_to_its_end_or_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "grows"
    path.write_bytes(b"a: b\n\nand more")
    said = list(os.stat(path))
    said[6] = 3
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result(said))
    assert read_uncompressed(str(path), 99) == b"a: b\n\nand more"
    assert read_uncompressed(str(path), 6) == b"a: b\n\n"
    assert read_uncompressed(str(path), 2) == b"a:"
