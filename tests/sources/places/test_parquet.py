"""Parquet files hold mail in bytes or texts in strings; every mistake has its message."""

import json
import os
import sys

import pytest

from nbspam.errors import InputError, UsageError
from nbspam.sources import files
from nbspam.sources import parquet as reading
from nbspam.sources.files import MAX_MESSAGE, Rememberer
from nbspam.sources.items import Item, SourceOptions, read_items
from nbspam.sources.records import read_records
from support import HAM, SPAM, complains, packed

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MAILS = [HAM, SPAM, HAM + b"2\n", SPAM + b"2\n"]
LABELS = ["ham", "spam", "ham", "spam"]
BYTES = [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())]
STRINGS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


def write(path, columns, **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    parquet.write_table(table, path, **options)
    return path


def read(path, **options):
    return list(read_items([str(path)], options=SourceOptions(**options)))


@pytest.fixture
def mail(tmp_path):
    columns = {"message": MAILS, "label": LABELS, "name": ["a", "b", "", None]}
    return write(tmp_path / "mail.parquet", columns)


def test_bytes_are_mail_with_class_and_name(mail):
    heard = Rememberer()
    assert read(mail, listener=heard) == [
        Item("a", "ham", MAILS[0], series=str(mail)),
        Item("b", "spam", MAILS[1], series=str(mail)),
        Item(f"{mail}#3", "ham", MAILS[2], series=str(mail)),
        Item(f"{mail}#4", "spam", MAILS[3], series=str(mail)),
    ]
    assert heard.columns == (("message",), "label")
    assert {item.label for item in read_items([str(mail)], label="x")} == {"x"}


@pytest.mark.parametrize(
    ("kind", "label"),
    [*((kind, STRINGS[0]) for kind in (*BYTES, *STRINGS)), *((BYTES[0], s) for s in STRINGS[1:])],
    ids=str,
)
def test_every_type_of_bytes_and_strings_is_read(kind, label, tmp_path):
    def column(values, kind):
        encoded = pa.types.is_dictionary(kind)
        return pa.array(values).dictionary_encode() if encoded else pa.array(values).cast(kind)

    mails = [mail.decode() for mail in MAILS] if kind in STRINGS else MAILS
    columns = {"message": column(mails, kind), "label": column(LABELS, label)}
    items = read(write(tmp_path / "mail.parquet", columns))

    assert [(item.data, item.label) for item in items] == list(zip(MAILS, LABELS, strict=True))
    assert {item.is_text for item in items} == {kind in STRINGS}


@pytest.mark.parametrize(("columns", "options", "found"), [
    ({"text": ["x", "y"], "label": [0, None]}, {}, [("0", b"x"), (None, b"y")]),
    ({"text": ["x", "y"], "spam": [True, False]}, {}, [("true", b"x"), ("false", b"y")]),
    # A column of whole numbers, some of which are missing.
    ({"text": ["x", "y"], "label": [1.0, float("nan")]}, {}, [("1", b"x"), (None, b"y")]),
    ({"message": pa.array([None, b"x"], pa.binary())}, {}, [(None, None), (None, b"x")]),
    (
        {"text": ["a", None], "title": [None, "b"]},
        {"text_columns": ("title", "text")},
        [(None, b"\na"), (None, b"b\n")],
    ),
])  # fmt: skip
def test_classes_may_be_numbers_or_truth_values_and_anything_may_lack(
    columns, options, found, tmp_path
):
    path = write(tmp_path / "a.parquet", columns)
    assert [(item.label, item.data) for item in read(path, **options)] == found


def test_named_columns_are_read_and_those_that_are_not_may_share_a_name(tmp_path):
    columns = {"a": MAILS, "b": LABELS, "c": ["1", "2", "3", "4"], "label": ["x"] * 4}
    path = write(tmp_path / "mail.parquet", columns)
    for source in (path, tmp_path):  # in a folder too
        items = read(source, text_columns=("A",), label_column="b", id_column="c")
        found = [(item.name, item.label, item.data) for item in items]
        assert found == list(zip("1234", LABELS, MAILS, strict=True))
    table = pa.table({"text": ["elm"], "label": ["a"]})
    for name in ("name", "name", "other", "other"):
        table = table.append_column(name, [["x"]])
    path = write(tmp_path / "x.parquet", table)
    assert read(path) == [Item(f"{path}#1", "a", b"elm", is_text=True, series=str(path))]


def test_a_longer_message_is_truncated(tmp_path):
    data = os.urandom(1 << 20) * (MAX_MESSAGE >> 20) + b"too long"
    path = write(tmp_path / "mail.parquet", {"message": [data]}, compression="NONE")
    assert len(read(path)[0].data) == MAX_MESSAGE


def test_a_data_set_is_a_folder_of_parquet_files_without_its_marks(tmp_path):
    folder = tmp_path / "mails.parquet"
    folder.mkdir()
    for n in range(2):
        write(folder / f"part-{n}.parquet", {"message": MAILS[n::2], "label": LABELS[n::2]})
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_bytes(b"x")

    assert [item.data for item in read(folder)] == MAILS[0::2] + MAILS[1::2]


def class_label(features):
    return {b"huggingface": json.dumps({"info": {"features": features}}).encode()}


@pytest.mark.parametrize(("metadata", "found"), [
    (class_label({"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}), "neg pos - 7"),
    (class_label({"label": {"dtype": "int64", "_type": "Value"}}), "0 1 -1 7"),
    (class_label({"label": {"names": "np"}}), "0 1 -1 7"),
    ({b"huggingface": b"{"}, "0 1 -1 7"),
    ({b"huggingface": b"[" * 100_000}, "0 1 -1 7"),
    ({b"pandas": b"{}"}, "0 1 -1 7"),
])  # fmt: skip
def test_classes_have_the_names_that_hugging_face_gives_them(metadata, found, tmp_path):
    columns = pa.table({"text": [*"abcd"], "label": [0, 1, -1, 7]})
    path = write(tmp_path / "a.parquet", columns.replace_schema_metadata(metadata))
    assert " ".join(item.label or "-" for item in read(path)) == found


def test_a_null_text_is_skipped_and_an_empty_one_is_judged(nbspam, trained, tmp_path):
    path = write(tmp_path / "a.parquet", {"text": ["x", None, ""], "name": ["a", "b", "c"]})
    lines, cells = tmp_path / "a.jsonl", tmp_path / "a.csv"
    cells.write_text("title,text\na,x\nb\nc,\n")
    lines.write_text('{"text": "x", "title": "a"}\n{"text": null}\n{"text": ""}\n')
    for table, name in ((path, "b"), (lines, f"{lines}#2"), (cells, f"{cells}#2")):
        status, out, err = nbspam("classify", table)
        assert (status, out.count("\n")) == (1, 2)
        assert err == f"nbspam: skipped {name}: a row without a text\n"


def test_a_preset_says_whether_cells_are_mail_and_the_model_remembers(nbspam, model, tmp_path):
    strings = {"message": [mail.decode() for mail in MAILS], "label": LABELS}
    lines, of_mail = tmp_path / "mail.jsonl", ("--preset", "mail")
    lines.write_text("".join(json.dumps(row) + "\n" for row in pa.table(strings).to_pylist()))
    of_strings = write(tmp_path / "strings.parquet", strings)
    of_bytes = write(tmp_path / "bytes.parquet", {"message": MAILS, "label": LABELS})
    for path, preset, is_mail in (
        (of_strings, of_mail, True), (lines, of_mail, True), (of_strings, (), False),
        (lines, (), False), (of_bytes, ("--preset", "text"), False),
    ):  # fmt: skip
        assert nbspam("train", path, *preset)[0] == 0
        # Whether the subject was read as a header.
        assert ("subject:cheap" in nbspam("explain", path)[1]) == is_mail


# ---- mistakes ----


def test_a_missing_column_is_named_with_those_that_there_are(nbspam, trained, mail, tmp_path):
    found = nbspam("classify", "--text-column", "mesage", mail)
    said = f"{mail}: no column 'mesage'; did you mean 'message'? there are: message, label, name"
    assert complains(found, 1, said)
    assert complains(nbspam("classify", "--csv", mail), 2, "is no row of CSV, TSV or JSON")
    path = write(tmp_path / "x.parquet", {"a": ["x"], "b": ["y"], "c": [1]})
    said = f"{path}: no known text column; name one by --text-column, of: a, b, c"
    assert complains(nbspam("classify", path), 1, said)


MIXED = "mail in bytes cannot be joined with other columns; name one column"
TWO = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])


@pytest.mark.parametrize(("columns", "named", "reason"), [
    ({"text": [1, 2]}, (), "column 'text' holds int64; give one of strings or bytes"),
    ({"text": [["a"]]}, (), "column 'text' holds list.* give one of strings or bytes"),
    ({"text": ["a"], "label": [["b"]]}, (), "column 'label' holds list.*, not one value a row"),
    ({"message": [b"a"], "text": ["b"]}, ("text", "message"), MIXED),
    (TWO, ("text",), "two columns are called 'text'"),
    (TWO, (), "two columns are called 'text'"),
    (TWO.append_column("label", [["a"]]).append_column("label", [["b"]]), (), "two columns"),
])  # fmt: skip
def test_columns_of_other_types_are_refused(columns, named, reason, tmp_path):
    path = write(tmp_path / "x.parquet", columns)
    with pytest.raises(InputError, match=f"x.parquet: {reason}"):
        read(path, text_columns=named)


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.9, None])
def test_of_a_file_that_is_cut_off_or_damaged_in_the_middle_nothing_is_learned(
    kept, nbspam, untouched, tmp_path
):
    mails = [SPAM + os.urandom(500) for _ in range(500)]
    path = write(tmp_path / "x.parquet", {"message": mails}, row_group_size=100)
    data = path.read_bytes()
    middle = len(data) // 2
    whole = data[:middle] + bytes(3000) + data[middle + 3000 :]
    path.write_bytes(whole if kept is None else data[: int(kept * len(data))])

    for command in ("train", "update"):
        found = nbspam(command, "--spam", path)
        assert complains(found, 1, f"{path}: damaged, or no parquet (")


def test_what_expands_without_end_is_refused(monkeypatch, nbspam, trained, tmp_path):
    monkeypatch.setattr(files, "MOST_FREE", 1 << 19)
    path = tmp_path / "bomb.parquet"
    repeated, wide = [bytes(1 << 16)] * 1000, pa.nulls(1 << 10, pa.binary(1 << 10))
    for column in (repeated, wide, pa.nulls(1 << 20, pa.string())):
        write(path, {"message": column})
        assert complains(nbspam("classify", path), 1, f"{path}: expands to more than 250 times")


def test_of_long_texts_fewer_are_in_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(reading, "_BATCH", 1 << 20)
    path = write(tmp_path / "a.parquet", {"message": [os.urandom(1 << 17)] * 64})
    before = pa.total_allocated_bytes()
    items = read_items([str(path)])
    assert len(next(items).data) == 1 << 17
    assert pa.total_allocated_bytes() - before < 4 << 20


def test_without_pyarrow_one_line_names_the_extra(monkeypatch, nbspam, trained, mail):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = f"{mail}: needs pyarrow; install it with: pip install 'nbspam[remote]'"
    assert complains(nbspam("classify", mail), 2, said)


# ---- tables of typed columns ----


def test_a_table_of_columns_is_the_table_that_other_files_hold(nbspam, tmp_path):
    columns = {
        "flag": [True, False, None, True],
        " e\u0301": [1, None, 3, 4],
        "x": [0.5, 2.0, 1.5, -1.0],
    }
    columns["class"] = ["ń", "b", " n\u0301", "b"]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    columns["class"] = [name.encode() for name in columns["class"]]
    tables = write(tmp_path / "t.parquet", columns), tmp_path / "t.jsonl"
    tables[1].write_text("".join(json.dumps(row) + "\n" for row in rows))

    cells = [[record.cells for record in read_records([str(path)])] for path in tables]
    assert cells[0] == cells[1]
    assert cells[0] == [
        {"flag": "True", "é": "1", "x": "0.5", "class": "ń"},
        {"flag": "False", "é": "", "x": "2", "class": "b"},
        {"flag": "", "é": "3", "x": "1.5", "class": "ń"},
        {"flag": "True", "é": "4", "x": "-1", "class": "b"},
    ]
    model = tmp_path / "m"
    assert nbspam("table", "train", "--target", "class", tables[0], "-m", model)[0] == 0
    answers = [nbspam("table", "predict", "-m", model, path)[:2] for path in tables]
    assert answers[0] == answers[1]


def test_classes_of_a_table_of_columns_have_their_names_and_lists_are_left_out(tmp_path):
    feature = {"names": ["setosa", "virginica"], "_type": "ClassLabel"}
    metadata = class_label({"kind": feature, "list": feature})
    columns = pa.table({"kind": [1, 0, -1], "n": [1, 0, -1], "list": [[1], [0], []]})
    path = write(tmp_path / "t.parquet", columns.replace_schema_metadata(metadata))

    cells = [tuple(record.cells.values()) for record in read_records([str(path)])]
    assert cells == [("virginica", "1"), ("setosa", "0"), ("", "-1")]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (TWO, "two columns are called 'text'; rename one"),
        ({"text": pa.array([], pa.string())}, "no rows; give a table"),
        ({"text": pa.array([2**62], pa.timestamp("us"))}, "damaged, or no parquet (date value"),
    ],
    ids=["one name", "no rows", "no date"],
)
def test_a_table_of_columns_that_cannot_be_used_is_refused(columns, said, nbspam, tmp_path):
    path = write(tmp_path / "t.parquet", columns)
    assert complains(nbspam("table", "train", "--target", "text", path), 1, f"{path}: {said}")


def test_what_is_packed_by_zstd_is_read_if_it_is_whole(monkeypatch, tmp_path):
    path = tmp_path / "mail.tar.zst"
    members = {"ham/1": HAM, "spam/1.eml.zst": pa.compress(SPAM, "zstd", asbytes=True)}
    path.write_bytes(pa.compress(packed(members), "zstd", asbytes=True))
    assert [(i.label, i.data) for i in read(path)] == [("ham", HAM), ("spam", SPAM)]

    path = tmp_path / "mail.mbox.zst"
    path.write_bytes(pa.compress(os.urandom(10_000), "zstd", asbytes=True)[:-900])
    with pytest.raises(InputError, match=r"mail.mbox.zst: damaged \("):
        read(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"mbox.zst: needs pyarrow; install it with: pip install"):
        read(path)
