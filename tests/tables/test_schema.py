"""Cells become codes and numbers: kinds detected, missing cells, intervals, refusals."""

import io

import numpy as np
import pytest

from nbspam.errors import InputError
from nbspam.sources.records import read_records
from nbspam.tables.schema import (
    Column,
    categories,
    coded,
    cut_into_intervals,
    detect,
    schema_from_dict,
    schema_to_dict,
    unseen_cells,
)


def records(text, **options):
    return list(read_records(["-"], stdin=io.BytesIO(text.encode()), **options))


TEXT = """id,colour,size,weight,good
1,red,3,0.5,yes
2,green,1,1.5,no
3,red,?,NA,yes
4,,2,2.5,no
"""


def test_kinds_are_told_from_cells_or_said():
    schema, empty = detect(records(TEXT), "good")

    # A few whole numbers are category names; all others are numbers.
    assert [str(column) for column in schema.columns] == [
        "id categorical, 4 values",
        "colour categorical, 2 values",
        "size categorical, 3 values",
        "weight numeric",
    ]
    assert schema.classes == ("no", "yes")
    assert empty == ()
    said, _ = detect(records(TEXT), "good", categorical=["weight"], numeric=["size", "id"])
    assert said.levels.tolist() == [0, 2, 0, 3]
    assert said.columns[3].levels == ("0.5", "1.5", "2.5")


@pytest.mark.parametrize(("n", "levels"), [(10, tuple("0123456789")), (11, None)])
def test_more_than_a_few_whole_numbers_are_numbers(n, levels):
    rows = "\n".join(f"{i % n},{i % 2}," for i in range(39, -1, -1))
    schema, empty = detect(records(f"x,y,e\n{rows}\n"), "y")
    assert schema.columns[0].levels == levels
    assert (schema.names, empty) == (("x", "y"), ("e",))
    schema, _ = detect(records("x,y\n10,a\n9,b\n-1,a\n"), "y")
    assert schema.columns[0].levels == ("-1", "9", "10")  # in the order of numbers


def test_cells_become_codes_and_numbers_and_what_is_missing_is_nan():
    rows = records(TEXT)
    table = coded(rows, detect(rows, "good")[0])

    nan = np.nan
    expected = [[0, 1, 2, 0.5], [1, 0, 0, 1.5], [2, 1, nan, nan], [3, nan, 1, 2.5]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [1, 0, 1, 0]
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
    table = cut_into_intervals(coded(rows, detect(rows, "good")[0]), {3: [0.5, 2.0]})

    np.testing.assert_array_equal(table.X[:, 3], [0, 1, np.nan, 2])
    column = table.schema.columns[3]
    assert str(column) == "weight numeric, cut at 0.5, 2"
    assert [column.value(k) for k in (0.0, 1.0, 2.0)] == ["up to 0.5", "0.5 to 2", "above 2"]
    # Rows read later get the same intervals, also by a schema from its dictionary.
    schema = schema_from_dict(schema_to_dict(table.schema))
    assert schema == table.schema
    np.testing.assert_array_equal(coded(rows, schema).X[:, 3], [0, 1, np.nan, 2])


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (TEXT, "price", ["no column 'price'", "colour"]),
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


def test_declared_values_that_do_not_occur_are_codes_too():
    how = {"colour": ("green", "red", "blue"), "good": ("yes", "no", "perhaps"), "e": ("a", "b")}
    rows = records(TEXT.replace("good", "e,good").replace(",yes", ",,yes").replace(",no", ",,no"))
    schema, empty = detect(rows, "good", values=how)

    assert schema.columns[1].levels == ("green", "red", "blue")
    assert schema.columns[4] == Column("e", ("a", "b"), closed=True)  # though no cell has a value
    assert (schema.classes, empty) == (("no", "perhaps", "yes"), ())
    np.testing.assert_array_equal(coded(rows, schema).X[:, 1], [1, 0, 1, np.nan])
    # A declared column of numbers holds categories.
    weights = {"weight": ("0.5", "1.5", "2.5", "3.5")}
    assert detect(records(TEXT), "good", values=weights)[0].columns[3].n_values == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"colour": ("red", "b")}, "-#2: colour is 'green', but its values were declared as red"),
        ({"good": ("yes", "maybe")}, "-#2: good is 'no', but its values were declared as yes, m"),
        ({"price": ("high",)}, "no column 'price'"),
    ],
)
def test_a_cell_beside_the_declared_values_is_refused(values, words):
    with pytest.raises(InputError, match=words):
        detect(records(TEXT), "good", values=values)


def test_a_cell_that_is_no_number_is_refused_with_its_row():
    rows = records("x,y\n1.5,a\noops,b\n")
    schema, _ = detect(rows, "y", numeric=["x"])

    with pytest.raises(InputError, match="-#2: x is 'oops', not a number"):
        coded(rows, schema)


def test_values_are_shown_in_words():
    assert Column("x", levels=("a", "b")).value(1.0) == "b"
    assert Column("x").value(0.25) == "0.25"
    assert Column("x", cuts=()).value(0.0) == "any"
    assert Column("x").value(np.nan) == "?"
