"""Tables of every format give the same cells; damaged ones are refused."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, UsageError
from nbspam.sources.items import SourceOptions
from nbspam.sources.records import Record, read_cells, read_records


def cells(text, *wanted):
    return list(read_cells(io.BytesIO(text.encode()), *wanted))


def test_all_formats_of_a_table_give_the_same_cells():
    expected = [{"a": "1", "b": "x y"}, {"a": "", "b": "z"}]
    assert cells('a,b\n1,"x y"\n,z\n', "csv") == cells('a,b\n1,"x y"\n,z\n') == expected
    assert cells("a\tb\n1\tx y\n\tz\n", "tsv") == cells("a;b\n1;x y\n;z\n") == expected
    lines = '{"a": 1, "b": "x y"}\n\n{"a": null, "b": "z"}\n'
    assert cells(lines, "jsonl") == cells(lines) == expected
    # Columns without names are numbered.
    assert cells("0.5,1\n1.5,2\n") == [{"1": "0.5", "2": "1"}, {"1": "1.5", "2": "2"}]


def test_expected_names_replace_a_missing_row_of_names():
    names = ["a", "b", "y"]
    for text in ("1,2\n", "a,b\n1,2\n", "b,a\n2,1\n"):
        assert cells(text, None, names) == [{"a": "1", "b": "2"}]
    assert cells("1,2,z\n", None, names) == [{"a": "1", "b": "2", "y": "z"}]
    # A row of numbers holds column names only if it holds exactly the expected ones.
    assert cells("1,2\n3,1\n", None, ["1", "2"]) == [{"1": "3", "2": "1"}]
    assert len(cells("2,1\n3,1\n", None, ["1", "2", "3"])) == 2


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        (b"a,a\n1,2\n", [], "two columns are called 'a'"),
        (b"a,b\n1,2,3\n", [], "row 1: 3 cells, but 2 columns"),
        (b"1,2,3,4\n", ["a", "b"], "a first row of 4 cells"),
        (b'{"a": 1}\n[2]\n', [], "line 2: not a JSON object"),
        (b'{"a": [1]}\n', [], "line 1: a list or object"),
    ],
)
def test_damage_is_an_input_error_with_its_place(text, names, words):
    with pytest.raises(InputError, match=words):
        list(read_records(["-"], names=names, stdin=io.BytesIO(text)))


def test_other_inputs_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a folder; give a table"):
        list(read_records([str(tmp_path)]))
    with pytest.raises(UsageError, match="choose from csv"):
        list(read_records(["-"], SourceOptions("mbox")))
    for text in (b"", b"a,b\n"):
        with pytest.raises(InputError, match="no rows"):
            list(read_records(["-"], stdin=io.BytesIO(text)))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        list(read_records(["-"]))


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_an_error(data):
    try:
        for row in read_records(["-"], stdin=io.BytesIO(data)):
            assert isinstance(row, Record)
    except InputError:
        pass
