"""Models of tables learn on: the parts of a table, in any order, make the model of the whole."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError, NotTrainedError, UsageError
from nbspam.models import COLUMN_MODELS, COUNTED, ESTIMATORS, NUMBERS_GIVEN, model_state
from nbspam.sources.records import Record
from nbspam.store.fields import check_state
from nbspam.tables import training
from nbspam.tables.training import TableSettings, learn_rows, merged_tables, unlearn_rows
from support import examples

NAMES = "abc"
ROUNDED = ("mean_", "deviation_", "given_mean_", "given_deviation_")
# They are equal up to rounding; all other sums are equal to the bit.
PARAMETERS = {"spode": {"parent": "b"}, "network": {"criterion": "aic"}}
MODELS = (*COLUMN_MODELS, *COUNTED)
every_model = pytest.mark.parametrize(
    "model", [*MODELS, *(f"{name} numbers" for name in NUMBERS_GIVEN)]
)


def settings_of(model):
    """Return settings under which the kinds of columns do not depend on the rows."""
    if model in COUNTED:
        return TableSettings("y", model)
    name, _, is_numbers = model.partition(" ")
    if is_numbers:
        more = PARAMETERS.get(name, {})
        return TableSettings("y", name, ("a", "b"), ("c",), discretise="none", parameters=more)
    numbers = {"gaussian": NAMES, "mixed": "c"}.get(model, "")
    categories = [name for name in NAMES if name not in numbers]
    return TableSettings(
        "y", model, tuple(categories), tuple(numbers), parameters=PARAMETERS.get(model, {})
    )


def at_once(records, settings):
    return training.train_table(training.read_table(records, settings).table, settings)


@st.composite
def parts(draw):
    """Return two parts of a table; in the second, values and a class are new, cells missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def rows(n, n_values, n_classes):
        cells = rng.integers(1, n_values + 1, (n, len(NAMES))).astype(str)
        cells[rng.random(cells.shape) < 0.15] = "?"
        labels = rng.integers(0, n_classes, n)
        return [record(*row, "class" + k * "\0") for row, k in zip(cells, labels, strict=True)]

    whole = [record("1", "1", "1", "class"), record("2", "2", "2", "class\0")]
    return whole + rows(rng.integers(0, 9), 2, 2), rows(rng.integers(1, 9), 4, 4)


def assert_same(one, other):
    """Assert that two classifiers have the same columns, counts and parameters."""
    assert one.schema == other.schema
    assert one.counts.tolist() == other.counts.tolist()
    ours, theirs = model_state(one.model), model_state(other.model)
    assert str(ours["parameters"]) == str(theirs["parameters"])
    assert ours["learnt"].keys() == theirs["learnt"].keys()
    for name, learnt in ours["learnt"].items():
        if name in ROUNDED:
            np.testing.assert_allclose(learnt, theirs["learnt"][name], atol=1e-12)
        else:
            assert np.array_equal(learnt, theirs["learnt"][name]), name


@every_model
@given(table=parts())
@examples(15)
def test_learned_in_parts_trained_at_once_and_merged_are_one_model(model, table):
    first, second = table
    settings = settings_of(model)
    whole, before = at_once(first + second, settings), at_once(first, settings)
    answers = [a.joint.tolist() for a in before.answers(first)]
    learned = learn_rows(before, second)
    assert_same(learned.classifier, whole)
    assert learned.n_rows == len(second)

    has_values = all(any(r.cells[name] != "?" for r in second) for name in NAMES)
    if len({r.cells["y"] for r in second}) > 1 and has_values:
        other = at_once(second, settings)
        assert_same(merged_tables(before, other, "t"), whole)
        assert_same(merged_tables(other, before, "t"), whole)
    unlearned = unlearn_rows(learned.classifier, second[::-1])
    assert_same(unlearned.classifier, before)
    assert unlearned.n_rows == len(second)
    # None of it changed the classifier made before.
    assert [a.joint.tolist() for a in before.answers(first)] == answers


def test_the_laws_are_tried_on_every_model_of_tables():
    assert set(MODELS) == set(ESTIMATORS)


def record(*cells):
    return Record("new.csv#1", dict(zip([*NAMES, "y"], cells, strict=True)), "new.csv")


ROWS = [record(*row.split()) for row in ("1 1 1 no", "2 2 2 yes", "1 2 3 yes", "2 1 4 no")]
KIND = TableSettings("y", categorical=tuple(NAMES))


def test_intervals_and_a_chosen_parent_stay_as_they_were_chosen():
    rows = [Record("#", {"x": str(n / 7), "z": "ab"[n % 2], "y": "nm"[n > 9]}) for n in range(20)]
    for settings in (
        TableSettings("y", discretise="mdl"),
        TableSettings("y", model="spode", discretise="width", bins=3),
    ):
        before = at_once(rows, settings)
        strange = [Record("#", {"x": "99", "z": "c", "y": "n"})] * 9
        after = learn_rows(before, strange).classifier
        assert after.schema.columns[0] == before.schema.columns[0]
        assert getattr(after.model, "parent_", 0) == getattr(before.model, "parent_", 0)
        assert after.counts.sum() == before.counts.sum() + 2 * 9


def test_new_values_and_classes_are_told_and_rows_without_a_class_are_skipped():
    classifier = at_once(ROWS, KIND)
    lesson = learn_rows(classifier, [record("1", "7", "1", "perhaps"), record("1", "8", "1", "")])
    assert lesson.notes == ("b: new values 7", "perhaps: a new class; the model had no, yes")
    assert lesson.classifier.schema.columns[1].levels == ("1", "2", "7")

    lesson = learn_rows(classifier, [record("9", "1", "1", "?")])
    assert (lesson.classifier, lesson.n_rows) == (classifier, 0)
    assert [(s.name, s.reason) for s in lesson.skipped] == [("new.csv#1", "no label")]


def test_another_table_is_refused_and_so_is_none():
    classifier = at_once(ROWS, KIND)
    # Rows may have names of their own, and rows in memory have no path.
    other = Record("Anna", {"a": "1", "c": "1", "y": "no"}, "new.csv")
    for change in (learn_rows, unlearn_rows):
        with pytest.raises(InputError, match=r"^new.csv: no column 'b', which the model has"):
            change(classifier, [other])
        with pytest.raises(InputError, match=r"^rows: no column 'b', which the model has"):
            change(classifier, [other._replace(source="")])
        with pytest.raises(InputError, match="rows: there are none"):
            change(classifier, [])


@pytest.mark.parametrize(("model", "row"), [
    *product(["categorical", "network", "aode"], ["111yes", "181no", "111maybe"]),
    # Each value was learned with this class, but not all three in one row.
    *product(["network", "aode"], ["211no"]),
])  # fmt: skip
def test_rows_that_were_never_learned_are_not_unlearned(model, row):
    settings = KIND if model == "categorical" else settings_of(model)
    classifier = at_once([*ROWS, record("1", "1", "2", "no")], settings)
    known, strange = record("1", "1", "2", "no"), record(*row[:3], row[3:])
    strange = strange._replace(name="new.csv#2")
    some = [known, strange, strange, record("9", "9", "9", "no")]
    for rows in (some, [*ROWS, known, strange]):
        with pytest.raises(InputError, match=r"^new.csv#2: not learned like this, or not so of"):
            unlearn_rows(classifier, rows)


@pytest.mark.parametrize("model", [name for name in COLUMN_MODELS if name != "gaussian"])
def test_a_column_without_any_value_left_stays_one_of_categories(model):
    only = record("1", "1", "1", "no")
    others = [record("?", "1", "2", "no"), record("?", "2", "2", "yes")]
    before = at_once([only, *others], settings_of(model))
    left = unlearn_rows(before, [only]).classifier
    assert left.schema.columns[0].levels == ("1",)
    assert not left.counts[:, 0].any()
    check_state(left.to_state())
    assert_same(learn_rows(left, [only]).classifier, before)
    new = record("2", "1", "1", "no")
    later = unlearn_rows(learn_rows(left, [new]).classifier, others[:1]).classifier
    assert_same(later, at_once([new, others[1]], settings_of(model)))


@pytest.mark.parametrize("model", [name for name in COLUMN_MODELS if name != "gaussian"])
def test_values_are_the_same_in_any_order(model):
    orders = ("1", "2"), ("2", "1")
    stated = [replace(settings_of(model), values={"a": order}) for order in orders]
    one, other = (at_once(ROWS, settings) for settings in stated)
    assert_same(merged_tables(one, other, "two"), at_once([*ROWS, *ROWS], stated[0]))

    before = at_once([*ROWS, record("10", "1", "1", "no")], settings_of(model))
    word = [record("x", "1", "1", "no")]  # beside it, numbers are sorted as strings
    assert_same(unlearn_rows(learn_rows(before, word).classifier, word).classifier, before)


def test_a_classifier_keeps_a_row():
    classifier = unlearn_rows(at_once(ROWS, KIND), [ROWS[0], ROWS[3]]).classifier
    assert classifier.classes == ("yes",)
    with pytest.raises(NotTrainedError, match="no row would be left"):
        unlearn_rows(classifier, ROWS[1:3])


@pytest.mark.parametrize("stated", [
    {"values": {"b": ("2", "1", "9"), "y": ("yes", "no", "maybe")}},
    {"values": {"b": ("2", "1", "9")}, "dirichlet": (("b", (1.0, 2.0, 3.0)), ("y", (1.0, 2.0)))},
    {"values": {"b": ("2", "1")}, "parameters": {"class_prior": (0.3, 0.7)}},
])  # fmt: skip
def test_stated_values_and_classes_neither_come_nor_go(stated):
    settings = TableSettings("y", "categorical", tuple(NAMES), **stated)
    before = at_once(ROWS[:3], settings)
    more = [ROWS[3], record("2", "2", "2", "no")]
    after = learn_rows(before, more).classifier
    assert_same(after, at_once([*ROWS[:3], *more], settings))
    assert_same(unlearn_rows(after, more).classifier, before)
    left = unlearn_rows(before, [ROWS[0]]).classifier
    assert left.classes == before.classes
    assert left.schema.columns[1] == before.schema.columns[1]
    for strange in (record("1", "7", "1", "no"), record("1", "1", "1", "never")):
        with pytest.raises(InputError, match=r"new.csv#1: (b|y) is '(7|never)', but its values"):
            learn_rows(before, [strange])
        other = at_once([*ROWS, strange], KIND)
        with pytest.raises(UsageError, match="first model were stated as"):
            merged_tables(before, other, "two")


@pytest.mark.parametrize(("other", "words"), [
    (TableSettings("y", "aode", tuple(NAMES)), "its model is aode, which cannot be added"),
    (TableSettings("a", categorical=(*NAMES, "y")), "its columns are b, c, y, a, and not"),
    (TableSettings("y", categorical=("a", "b"), numeric=("c",), discretise="width"), "c numer"),
])  # fmt: skip
def test_models_of_other_columns_are_not_merged(other, words):
    with pytest.raises(UsageError, match=f"^two: {words}"):
        merged_tables(at_once(ROWS, KIND), at_once(ROWS, other), "two")
