"""Cells to codes and numbers: kinds told, missing cells, intervals, and what is refused."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, UsageError
from nbspam.sources import cells
from nbspam.sources.cells import read_cells
from nbspam.sources.records import Record, read_records
from nbspam.tables.schema import (
    Column,
    categories,
    coded,
    cut,
    detect,
    schema_from_dict,
    schema_to_dict,
    unseen_cells,
)
from nbspam.tables.training import TableSettings, read_table


def records(text, **options):
    return list(read_records(["-"], stdin=io.BytesIO(text.encode()), **options))


TEXT = """id,colour,size,weight,good
1,red,3,0.5,yes
2,green,1,1.5,no
3,red,?,NA,yes
4,,2,2.5,no
"""


def test_kinds_are_told_from_cells():
    schema, empty = detect(records(TEXT), "good")

    # Few whole numbers are names; others are numbers.
    assert [str(column) for column in schema.columns] == [
        "id categorical, 4 values",
        "colour categorical, 2 values",
        "size categorical, 3 values",
        "weight numeric",
    ]
    assert schema.classes == ("no", "yes")
    assert empty == ()


def test_kinds_can_be_said():
    schema, _ = detect(records(TEXT), "good", categorical=["weight"], numeric=["size", "id"])

    assert schema.levels.tolist() == [0, 2, 0, 3]
    assert schema.columns[3].levels == ("0.5", "1.5", "2.5")


def test_more_than_a_few_whole_numbers_are_numbers():
    def kind(n):
        rows = "\n".join(f"{i % n},{i % 2}" for i in range(40))
        return detect(records(f"x,y\n{rows}\n"), "y")[0].columns[0].levels

    assert kind(10) == tuple("0123456789")
    assert kind(11) is None


def test_categories_that_are_numbers_are_in_their_order():
    schema, _ = detect(records("x,y\n10,a\n9,b\n-1,a\n"), "y")

    assert schema.columns[0].levels == ("-1", "9", "10")


def test_cells_become_codes_and_numbers_and_what_is_missing_is_nan():
    rows = records(TEXT)
    table = coded(rows, detect(rows, "good")[0])

    nan = np.nan
    expected = [[0, 1, 2, 0.5], [1, 0, 0, 1.5], [2, 1, nan, nan], [3, nan, 1, 2.5]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [1, 0, 1, 0]
    assert table.codes.tolist() == [[0, 1, 2, -1], [1, 0, 0, -1], [2, 1, -1, -1], [3, -1, 1, -1]]
    assert table.names == ("-#1", "-#2", "-#3", "-#4")


def test_categories_that_training_has_not_seen_are_missing_and_named():
    schema, _ = detect(records(TEXT), "good")
    (row,) = records("id,colour,size,weight\n1,blue,3,0.5\n")

    assert [(cell.column, cell.cell) for cell in unseen_cells(row, categories(schema))] == [
        ("colour", "blue")
    ]
    assert np.isnan(coded([row], schema).X[0]).tolist() == [False, True, False, False]


def test_numbers_are_cut_into_intervals_that_include_their_upper_end():
    rows = records(TEXT)
    table = cut(coded(rows, detect(rows, "good")[0]), {3: [0.5, 2.0]})

    np.testing.assert_array_equal(table.X[:, 3], [0, 1, np.nan, 2])
    column = table.schema.columns[3]
    assert str(column) == "weight numeric, cut at 0.5, 2"
    assert [column.value(k) for k in (0.0, 1.0, 2.0)] == ["up to 0.5", "0.5 to 2", "above 2"]
    # Rows read later are cut alike.
    np.testing.assert_array_equal(coded(rows, table.schema).X[:, 3], [0, 1, np.nan, 2])


def test_a_schema_survives_its_dictionary():
    rows = records(TEXT)
    schema = cut(coded(rows, detect(rows, "good")[0]), {3: [1.0]}).schema

    assert schema_from_dict(schema_to_dict(schema)) == schema


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (TEXT, "price", ["no column 'price'", "colour"]),
        ("x,y\n1,a\n2,a\n", "y", ["'a' in every row"]),
        ("x,y\n1,a\n", "y", ["'a' in every row"]),
        ("x,y\n1,\n2,?\n", "y", ["no value in any row"]),
        ("x,y\n1,0.5\n2,1.5\n3,2.5\n", "y", ["3 different numbers", "--categorical y"]),
        ("x,y\n,a\nNA,b\n", "y", ["no column beside 'y' has a value"]),
    ],
)
def test_a_target_that_cannot_be_told_is_refused(text, target, words):
    with pytest.raises(InputError) as error:
        detect(records(text), target)
    for word in words:
        assert word in str(error.value)


def test_a_column_that_is_empty_is_left_out_and_named():
    schema, empty = detect(records("x,e,y\n1,,a\n2,?,b\n"), "y")

    assert empty == ("e",)
    assert [column.name for column in schema.columns] == ["x"]


def test_a_cell_that_is_no_number_is_refused_with_its_row():
    rows = records("x,y\n1.5,a\noops,b\n")
    schema, _ = detect(rows, "y", numeric=["x"])

    with pytest.raises(InputError, match="-#2: x is 'oops', not a number"):
        coded(rows, schema)


# --- reading ---


def test_all_kinds_of_tables_say_the_same():
    expected = [{"a": "1", "b": "x y"}, {"a": "", "b": "z"}]
    for kind, text in {
        "csv": 'a,b\n1,"x y"\n,z\n',
        "tsv": "a\tb\n1\tx y\n\tz\n",
        "jsonl": '{"a": 1, "b": "x y"}\n\n{"a": null, "b": "z"}\n',
    }.items():
        assert list(read_cells(io.BytesIO(text.encode()), kind)) == expected
        if kind != "tsv":
            assert list(read_cells(io.BytesIO(text.encode()))) == expected
    assert list(read_cells(io.BytesIO(b"a;b\n1;x y\n;z\n"))) == expected


def test_a_table_without_names_counts_its_columns():
    assert list(read_cells(io.BytesIO(b"0.5,1\n1.5,2\n"))) == [
        {"1": "0.5", "2": "1"},
        {"1": "1.5", "2": "2"},
    ]


def test_known_names_stand_in_for_a_row_of_names():
    names = ["a", "b", "y"]
    for text in ("1,2\n", "a,b\n1,2\n", "b,a\n2,1\n"):
        assert list(read_cells(io.BytesIO(text.encode()), None, names)) == [{"a": "1", "b": "2"}]
    assert list(read_cells(io.BytesIO(b"1,2,z\n"), None, names)) == [
        {"a": "1", "b": "2", "y": "z"}
    ]
    # Columns that are called by numbers are told from data by being called all alike.
    assert list(read_cells(io.BytesIO(b"1,2\n3,1\n"), None, ["1", "2"])) == [{"1": "3", "2": "1"}]
    assert len(list(read_cells(io.BytesIO(b"2,1\n3,1\n"), None, ["1", "2", "3"]))) == 2


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
def test_damage_is_an_error_that_says_where(text, names, words):
    with pytest.raises(InputError, match=words):
        list(read_records(["-"], names=names, stdin=io.BytesIO(text)))


def test_a_quote_left_open_is_an_error_and_not_all_memory(monkeypatch):
    monkeypatch.setattr(cells, "_MAX_LINE", 200_000)
    csv.field_size_limit(131_072)  # the interpreter's own; it is only ever raised
    with pytest.raises(InputError, match=r"-: not CSV \(field larger than field limit"):
        records('a,b\n1,"' + "xxxxxxxxx\n" * 50_000)


def test_what_is_no_table_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="a folder; give a table"):
        list(read_records([str(tmp_path)]))
    with pytest.raises(UsageError, match="choose from csv"):
        list(read_records(["-"], "mbox"))
    with pytest.raises(InputError, match="no rows"):
        records("")
    with pytest.raises(InputError, match="no rows"):
        read_table([], TableSettings("y"))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        list(read_records(["-"]))
    with pytest.raises(InputError, match="no rows"):
        records("a,b\n")


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_an_error(data):
    try:
        for row in read_records(["-"], stdin=io.BytesIO(data)):
            assert isinstance(row, Record)
    except InputError:
        pass


def test_values_are_shown_in_words():
    assert Column("x", levels=("a", "b")).value(1.0) == "b"
    assert Column("x").value(0.25) == "0.25"
    assert Column("x", cuts=()).value(0.0) == "any"
    assert Column("x").value(np.nan) == "?"
