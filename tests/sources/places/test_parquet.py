"""Parquet files hold mail in bytes or texts in strings; every mistake has its message."""

import io
import os
import sys
import tarfile

import pytest

from nbspam.errors import InputError, UsageError
from nbspam.sources import files
from nbspam.sources.files import MAX_MESSAGE
from nbspam.sources.items import Item, SourceOptions, read_items
from nbspam.sources.rows import Rememberer
from support import HAM, SPAM, complains

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MAILS = [HAM, SPAM, HAM + b"2\n", SPAM + b"2\n"]
LABELS = ["ham", "spam", "ham", "spam"]
BYTES = [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())]
STRINGS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


def write(path, columns, **options):
    parquet.write_table(pa.table(columns), path, **options)
    return path


def read(path, **options):
    return list(read_items([str(path)], options=SourceOptions(**options)))


@pytest.fixture
def mail(tmp_path):
    columns = {"message": MAILS, "label": LABELS, "name": ["a", "b", "", None]}
    return write(tmp_path / "mail.parquet", columns)


def test_bytes_are_mail_with_class_and_name(mail):
    assert read(mail) == [
        Item("a", "ham", MAILS[0], series=str(mail)),
        Item("b", "spam", MAILS[1], series=str(mail)),
        Item(f"{mail}#3", "ham", MAILS[2], series=str(mail)),
        Item(f"{mail}#4", "spam", MAILS[3], series=str(mail)),
    ]


@pytest.mark.parametrize(
    ("kind", "label"),
    [*((kind, STRINGS[0]) for kind in (*BYTES, *STRINGS)), *((BYTES[0], s) for s in STRINGS[1:])],
    ids=str,
)
def test_every_type_of_bytes_and_strings_is_read(kind, label, tmp_path):
    mails = [mail.decode() for mail in MAILS] if kind in STRINGS else MAILS
    columns = {
        "message": pa.array(mails).cast(kind)
        if kind not in BYTES[2:] + STRINGS[2:]
        else pa.array(mails).dictionary_encode(),
        "label": pa.array(LABELS).dictionary_encode()
        if label == STRINGS[2]
        else pa.array(LABELS, label),
    }
    items = read(write(tmp_path / "mail.parquet", columns))

    assert [(item.data, item.label) for item in items] == list(zip(MAILS, LABELS, strict=True))
    assert {item.is_text for item in items} == {kind in STRINGS}


def test_classes_may_be_numbers_or_truth_values_and_may_lack(tmp_path):
    numbers = write(tmp_path / "a.parquet", {"text": ["x", "y", "z"], "label": [0, 1, None]})
    truths = write(tmp_path / "b.parquet", {"text": ["x", "y"], "spam": [True, False]})

    assert [item.label for item in read(numbers)] == ["0", "1", None]
    assert [item.label for item in read(truths)] == ["true", "false"]


def test_what_is_null_is_empty(tmp_path):
    path = write(tmp_path / "a.parquet", {"message": pa.array([None, b"x"], pa.binary())})
    texts = write(tmp_path / "b.parquet", {"text": ["a", None], "title": [None, "b"]})

    assert [item.data for item in read(path)] == [b"", b"x"]
    both = read(texts, text_columns=("title", "text"))
    assert [item.data for item in both] == [b"\na", b"b\n"]


def test_named_columns_are_read(tmp_path):
    columns = {"a": MAILS, "b": LABELS, "c": ["1", "2", "3", "4"], "label": ["x"] * 4}
    path = write(tmp_path / "mail.parquet", columns)
    items = read(path, text_columns=("A",), label_column="b", id_column="c")

    assert [(i.name, i.label, i.data) for i in items] == list(
        zip("1234", LABELS, MAILS, strict=True)
    )


def test_a_listener_hears_which_columns_are_read(mail):
    heard = Rememberer()
    read(mail, listener=heard)

    assert heard.columns == (("message",), "label")


def test_a_stated_class_is_that_of_all_rows(mail):
    assert {i.label for i in read_items([str(mail)], label="x")} == {"x"}


def test_a_longer_message_is_truncated(tmp_path):
    data = os.urandom(1 << 20) * (MAX_MESSAGE >> 20) + b"too long"
    path = write(tmp_path / "mail.parquet", {"message": [data]}, compression="NONE")

    assert len(read(path)[0].data) == MAX_MESSAGE


def test_a_data_set_is_a_folder_of_parquet_files_without_its_marks(mail, tmp_path):
    folder = tmp_path / "mails.parquet"
    folder.mkdir()
    for n in range(2):
        write(folder / f"part-{n}.parquet", {"message": MAILS[n::2], "label": LABELS[n::2]})
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_bytes(b"x")

    assert [item.data for item in read(folder)] == MAILS[0::2] + MAILS[1::2]


def test_columns_and_format_are_those_of_the_options_in_a_folder_too(tmp_path):
    (tmp_path / "box").mkdir()
    write(tmp_path / "box" / "1.parquet", {"what": MAILS, "class": LABELS})

    assert [i.data for i in read(tmp_path / "box", text_columns=("what",))] == MAILS


# ---- commands ----


def test_mail_in_parquet_trains_the_model_of_the_same_mail_in_a_folder(nbspam, folder, tmp_path):
    paths = sorted(folder.rglob("*.eml"))
    columns = {
        "message": [path.read_bytes() for path in paths],
        "label": [path.parent.name for path in paths],
    }
    path = write(tmp_path / "mail.parquet", columns)

    exports = []
    for source in (folder, path):
        model = tmp_path / "m.nbspam"
        assert nbspam("train", source, "-m", model)[0] == 0
        exports.append(nbspam("export", "-m", model)[1].splitlines()[1:])  # but for the columns
    assert exports[0] == exports[1]


def test_preset_mail_takes_strings_for_mail_and_the_model_remembers(nbspam, model, tmp_path):
    mails = [mail.decode() for mail in MAILS]
    path = write(tmp_path / "mail.parquet", {"message": mails, "label": LABELS})
    assert nbspam("train", path, "--preset", "mail")[0] == 0

    said = nbspam("explain", path)[1]
    assert "subject:cheap" in said  # the subject was read as a header
    assert nbspam("train", path)[0] == 0
    assert "subject:cheap" not in nbspam("explain", path)[1]


def test_preset_text_takes_bytes_for_text(nbspam, model, tmp_path):
    path = write(tmp_path / "mail.parquet", {"message": MAILS, "label": LABELS})
    assert nbspam("train", path, "--preset", "text")[0] == 0

    assert "subject:cheap" not in nbspam("explain", path)[1]


def test_rows_of_parquet_are_not_written_back_as_csv(nbspam, trained, mail):
    assert complains(nbspam("classify", "--csv", mail), 2, "give CSV, TSV or JSON")


# ---- mistakes ----


def test_a_missing_column_is_named_with_those_that_there_are(nbspam, trained, mail):
    found = nbspam("classify", "--text-column", "mesage", mail)
    said = f"{mail}: no column 'mesage'; did you mean 'message'? there are: message, label, name"
    assert complains(found, 1, said)


def test_without_a_known_column_those_that_there_are_are_named(nbspam, trained, tmp_path):
    path = write(tmp_path / "x.parquet", {"a": ["x"], "b": ["y"], "c": [1]})
    said = f"{path}: no known text column; name one by --text-column, of: a, b, c"
    assert complains(nbspam("classify", path), 1, said)


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"text": [1, 2]}, {}, "column 'text' holds int64; give one of strings or bytes"),
        ({"text": [["a"]]}, {}, "column 'text' holds list.* give one of strings or bytes"),
        ({"text": ["a"], "label": [["b"]]}, {}, "column 'label' holds list.*, no classes"),
        (
            {"message": [b"a"], "text": ["b"]},
            {"text_columns": ("text", "message")},
            "mail in bytes cannot be joined with other columns; name one column",
        ),
    ],
)
def test_columns_of_other_types_are_refused(columns, options, reason, tmp_path):
    path = write(tmp_path / "x.parquet", columns)
    with pytest.raises(InputError, match=f"x.parquet: {reason}"):
        read(path, **options)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="two columns are called 'text'"):
        read(tmp_path / "x.parquet", text_columns=("text",))


@pytest.mark.parametrize("part", [0.0, 0.2, 0.9])
def test_of_a_cut_off_file_nothing_is_learned(part, nbspam, trained, mail):
    mail.write_bytes(mail.read_bytes()[: int(part * mail.stat().st_size)])
    before = trained.read_bytes()

    for command in ("train", "update"):
        assert complains(nbspam(command, mail), 1, f"{mail}: damaged, or no parquet (")
        assert trained.read_bytes() == before


def test_of_a_file_that_is_damaged_in_the_middle_nothing_is_learned(nbspam, trained, tmp_path):
    mails = [SPAM + os.urandom(500) for _ in range(500)]
    path = write(tmp_path / "x.parquet", {"message": mails}, row_group_size=100)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = bytes(3000)
    path.write_bytes(data)
    before = trained.read_bytes()

    assert complains(nbspam("update", "--spam", path), 1, f"{path}: damaged, or no parquet (")
    assert trained.read_bytes() == before


def test_what_expands_without_end_is_refused(monkeypatch, nbspam, trained, tmp_path):
    monkeypatch.setattr(files, "MOST_FREE", 1 << 19)
    path = write(tmp_path / "bomb.parquet", {"message": [bytes(1 << 16)] * 1000})

    assert complains(nbspam("classify", path), 1, f"{path}: expands to more than 250 times")


def test_without_pyarrow_one_line_names_the_extra(monkeypatch, nbspam, trained, mail):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = f"{mail}: parquet needs pyarrow; install it with: pip install 'nbspam[remote]'"
    assert complains(nbspam("classify", mail), 2, said)


# ---- zstd ----


def test_what_is_packed_by_zstd_is_read(tmp_path):
    plain = tmp_path / "mail.tar"
    with tarfile.open(plain, "w") as archive:
        for name, data in (("ham/1", HAM), ("spam/1", SPAM)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    packed = tmp_path / "mail.tar.zst"
    packed.write_bytes(pa.compress(plain.read_bytes(), "zstd", asbytes=True))

    assert [(i.label, i.data) for i in read(packed)] == [("ham", HAM), ("spam", SPAM)]


def test_a_cut_off_file_of_zstd_is_damaged(tmp_path):
    path = tmp_path / "mail.mbox.zst"
    path.write_bytes(pa.compress(os.urandom(10_000), "zstd", asbytes=True)[:-900])
    with pytest.raises(InputError, match=r"mail.mbox.zst: damaged \("):
        read(path)


def test_without_pyarrow_zstd_names_the_extra(monkeypatch, tmp_path):
    (tmp_path / "1.mbox.zst").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"zstd: needs pyarrow; install it with: pip install"):
        read(tmp_path / "1.mbox.zst")
