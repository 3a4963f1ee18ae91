"""Cells become codes and numbers: kinds detected, missing cells, intervals, refusals."""

from collections import Counter
from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from nbspam.errors import InputError, UsageError
from nbspam.sources.records import Record, read_records
from nbspam.tables import schema
from nbspam.tables.schema import (
    WAYS,
    Column,
    coded,
    cut_into_intervals,
    cut_points,
    detect,
    mdl_cuts,
    schema_from_dict,
    schema_to_dict,
)
from support import standard_input


def records(text, **options):
    with standard_input(text.encode()):
        return list(read_records(["-"], **options))


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
    assert said.n_values.tolist() == [0, 2, 0, 3]
    assert said.columns[3].levels == ("0.5", "1.5", "2.5")


@pytest.mark.parametrize(("n", "levels"), [(10, tuple("0123456789")), (11, None)])
def test_more_than_a_few_whole_numbers_are_numbers(n, levels):
    rows = "\n".join(f"{i % n},{i % 2}," for i in range(39, -1, -1))
    schema, empty = detect(records(f"x,y,e\n{rows}\n"), "y")
    assert schema.columns[0].levels == levels
    assert (schema.names, empty) == (("x", "y"), ("e",))
    schema, _ = detect(records("x,y\n10,a\n9,b\n-1,a\n"), "y")
    assert schema.columns[0].levels == ("-1", "9", "10")  # in the order of numbers


def test_cells_become_codes_and_numbers_and_what_is_missing_or_unseen_is_nan():
    rows = records(TEXT)
    table = coded(rows, detect(rows, "good")[0])

    nan = np.nan
    expected = [[0, 1, 2, 0.5], [1, 0, 0, 1.5], [2, 1, nan, nan], [3, nan, 1, 2.5]]
    np.testing.assert_array_equal(table.X, expected)
    assert table.y.tolist() == [1, 0, 1, 0]
    assert table.names == ("-#1", "-#2", "-#3", "-#4")
    schema, _ = detect(records(TEXT), "good")
    (row,) = records("id,colour,size,weight\n1,blue,3,0.5\n")
    assert np.isnan(coded([row], schema).X[0]).tolist() == [False, True, False, False]


@pytest.mark.parametrize("cell", ["", "?", "NA", "n/a", "#N/A", "<NA>", "NaN", "NULL"])
def test_a_cell_that_says_so_is_missing(cell):
    rows = records(f"x,y\n1.5,a\n{cell},b\n")
    np.testing.assert_array_equal(coded(rows, detect(rows, "y")[0]).X, [[1.5], [np.nan]])


@pytest.mark.parametrize("cell", ["oops", "1_000", "-nan"])  # Python takes two for numbers
def test_a_cell_that_is_no_number_is_refused_with_its_row_beside_any_others(cell):
    schema, _ = detect(records("x,y\n1.5,a\n2.5,b\n"), "y")
    for other in ("1.5", ""):
        with pytest.raises(InputError, match=f"-#2: x is '{cell}', not a number; correct the"):
            coded(records(f"x,y\n{other},a\n{cell},b\n"), schema)


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


@pytest.mark.parametrize(("values", "words"), [
    ({"colour": ("red", "b")}, "-#2: colour is 'green', but its values were declared as red"),
    ({"good": ("yes", "maybe")}, "-#2: good is 'no', but its values were declared as yes, m"),
    ({"price": ("high",)}, "no column 'price'"),
])  # fmt: skip
def test_a_cell_beside_the_declared_values_is_refused(values, words):
    with pytest.raises(InputError, match=words):
        detect(records(TEXT), "good", values=values)


def test_an_infinite_number_among_numbers_is_refused_with_its_row():
    for cell in ("inf", "-Infinity", "1e999"):
        text = f"x,y\n1.5,a\n{cell},b\n"
        with pytest.raises(InputError, match=rf"-#2: x is '{cell}', not a finite number"):
            detect(records(text), "y")
        assert detect(records(text), "y", categorical=["x"])[0].columns[0].n_values == 2
        assert detect(records(text + "much,a\n"), "y")[0].columns[0].n_values == 3


def test_rows_with_columns_of_their_own_are_refused_before_they_fill_memory():
    rows = [Record(f"#{n}", {"y": "a", f"x{n}": "1"}) for n in range(4500)]
    with pytest.raises(InputError, match="4,501 columns, of which a row has fewer than one in a"):
        detect(rows, "y")
    assert len(detect(rows[:300], "y")[0].columns) == 300


def test_values_are_shown_in_words():
    assert Column("x", levels=("a", "b")).value(1.0) == "b"
    assert Column("x").value(0.25) == "0.25"
    assert Column("x").value(1_234_567.25) == "1234567.2"
    assert Column("x", cuts=()).value(0.0) == "any"
    large = Column("x", cuts=(20_240_131.5, 20_240_201.5))
    assert large.value(1.0) == "20240131.5 to 20240201.5"
    assert str(large) == "x numeric, cut at 20240131.5, 20240201.5"
    assert Column("x", cuts=(1.00000001, 1.00000002)).value(1.0) == "1.00000001 to 1.00000002"
    assert Column("x").value(np.nan) == "?"


def test_the_ends_of_many_intervals_are_spelt_once(monkeypatch):
    spelt = []
    monkeypatch.setattr(schema, "readable_number", lambda *n: spelt.append(n) or f"{n[0]:.3f}")
    column = Column("x", cuts=tuple(n / 7 for n in range(999)))
    assert len({column.value(float(k)) for k in range(1000)}) == 1000
    assert len(spelt) == 999


# --- cut points: worked by hand, against their definition, and their invariants --------------


X = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 100])
Y = np.array([0] * 5 + [1] * 5)


def test_equal_width_and_frequency_by_hand():
    assert cut_points("width", X, Y, 4) == (25, 50, 75)
    assert cut_points("frequency", X, Y, 5) == (1, 3, 5, 7)
    # A value that most rows have is one interval.
    assert cut_points("frequency", np.array([0.0] * 8 + [1, 2]), Y, 5) == (0,)
    with pytest.raises(UsageError, match="width, frequency, mdl"):
        cut_points("depth", X, Y)


def entropy(labels):
    return stats.entropy(list(Counter(labels).values()), base=2)


def test_mdl_by_hand():
    # Ten rows, five of each class, separated without error between 4 and 5:
    #   gain 1 bit; delta = log2(3^2 - 2) - (2 * 1 - 0 - 0) = 0.807
    #   threshold (log2(9) + 0.807) / 10 = 0.398 bits: worth it; pure parts are not cut.
    assert mdl_cuts(X, Y) == [4.5]
    # One of four rows is of another class: all of the .811 bits are gained, and the threshold is
    # (log2(3) + log2(3^2 - 2) - 2 * .811) / 4 = .692 bits, so that it is cut off.
    assert mdl_cuts(np.arange(4.0), np.array([0, 0, 0, 1])) == [2.5]
    # Alternating classes: the best cut gains little: not cut.
    assert mdl_cuts(np.arange(8.0), np.arange(8) % 2) == []
    # Runs of one class: only their ends are tried, or many runs would take minutes.
    runs = np.arange(100_000)
    assert mdl_cuts(runs.astype(float), runs // 40 % 2) == (runs[40::40] - 0.5).tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=30))
def test_mdl_is_fayyad_and_iranis_rule(rows):
    def cuts_of(rows):
        values = sorted({x for x, _ in rows})
        labels = [y for _, y in rows]
        n, best = len(rows), None
        for a, b in pairwise(values):
            parts = [[y for x, y in rows if x <= a], [y for x, y in rows if x > a]]
            after = sum(len(part) / n * entropy(part) for part in parts)
            if best is None or after < best[0] - 1e-12:
                best = after, (a + b) / 2, a, parts
        if best is None:
            return []
        after, point, a, parts = best
        k, k1, k2 = (len(set(part)) for part in (labels, *parts))
        change = k * entropy(labels) - k1 * entropy(parts[0]) - k2 * entropy(parts[1])
        needed = (log2(n - 1) + log2(3**k - 2) - change) / n
        if entropy(labels) - after <= needed + 1e-12:
            return []
        left, right = [r for r in rows if r[0] <= a], [r for r in rows if r[0] > a]
        return [*cuts_of(left), point, *cuts_of(right)]

    x, y = np.array(rows, float).T
    assert mdl_cuts(x, y.astype(int)) == pytest.approx(cuts_of(rows))


@given(
    st.sampled_from(WAYS),
    st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=40),
    st.integers(2, 12),
)
@example("width", [5e-324], 2)
def test_cuts_ascend_and_leave_no_end_empty(how, numbers, bins):
    X = np.array(numbers)
    cuts = cut_points(how, X, np.arange(len(X)) % 2, bins)

    known = X[~np.isnan(X)]
    assert list(cuts) == sorted(set(cuts))
    assert all(known.min() <= cut < known.max() for cut in cuts)
    if how != "mdl":
        assert len(cuts) < bins


def test_huge_numbers_and_neighbouring_floats_are_cut_like_others():
    X = np.array([-1.5e308, 1e308, 1.5e308])
    y = np.array([0, 1, 1])
    assert cut_points("width", X, y, 2) == (0,)
    assert cut_points("frequency", X, y, 3) == (-1.5e308, 1e308)
    assert mdl_cuts(np.repeat([1e308, 1.5e308], 9), np.repeat([0, 1], 9)) == [1.25e308]
    floats = [0.3]
    for _ in range(3):
        floats.append(float(np.nextafter(floats[-1], 1)))
    assert mdl_cuts(np.repeat(floats, 9), np.repeat(range(4), 9)) == floats[:-1]
