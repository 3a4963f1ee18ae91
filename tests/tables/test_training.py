"""Tables become classifiers of rows: settings, folds, answers and states."""

from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np
import pytest

from nbspam.errors import UsageError
from nbspam.sources.records import Record, read_records
from nbspam.tables import training
from nbspam.tables.classifier import factors, value_counts
from nbspam.tables.schema import cut_points, in_intervals
from nbspam.tables.training import TableSettings, read_table, rows_held_out, train_table
from support import MELONS, answered_by_position, standard_input

NUMBERS = "a,b,y\n" + "".join(f"{i / 7},{-i / 3},{'no' if i < 9 else 'yes'}\n" for i in range(20))
MIXED = NUMBERS.replace("a,b", "a,c").replace("-", "s")
NAMES = "c,y\nred,no\nblue,yes\nred,yes\n"


def read(text, **options):
    with standard_input(text.encode()):
        return read_table(read_records(["-"]), TableSettings("y", **options))


@pytest.mark.parametrize(("name", "numbers", "is_named"), [
    ("id", range(100, 120), True), ("anything", range(100, 120), True),
    *((index, [*range(19, 0, -1), 20], True) for index in ("", "Unnamed: 0", "__index_level_0__")),
    ("anything", [*range(19, 0, -1), 20], False), ("order_id", [*range(19, 0, -1), 20], True),
    ("customerId", [*range(19, 0, -1), 20], True), ("width", [*range(19, 0, -1), 20], False),
    ("id", [*range(19), 3], False), ("id", [n / 2 for n in range(20)], False),
    ("id", [*range(19), ""], False),
    ("姓名", [*"张abcdefghi"], True), ("姓名", [*"张abcdefghh"], False),
    ("编号", range(1, 11), True),  # ten numbers or fewer are taken for categories
])  # fmt: skip
def test_a_column_that_numbers_the_rows_is_named_in_a_warning(name, numbers, is_named):
    shell = quote(name)
    said = (
        f"column {name!r} only tells the rows apart: --drop {shell} leaves it out, and"
        f" --id-column {shell} names the rows by it"
    )
    rows = "".join(f"{n},{'no' if i < 9 else 'yes'},{i / 7}\n" for i, n in enumerate(numbers))
    assert read(f"{name},y,size\n{rows}").notes == ((said,) if is_named else ())
    said = "the target 'y' only tells the rows apart: choose another column"
    assert read("a,y\n1,p\n1,q\n2,r\n").notes == (said,)


MANY = [str(n / 7) for n in range(11)]


@pytest.mark.parametrize(("cells", "named"), [
    (["-2", "1,5"], "1,5"), (["1.200,50", "1 200", "3"], "1 200"), (["1,000", "30,500"], "1,000"),
    (["$5", "$1,200.50", "+7 €"], "$1,200.50"), (["5%", "7.5 %"], "5%"), ([*MANY, "n.a."], "n.a."),
    (["1_0", "2_5"], None),  # codes
    (["2024-01-31", "2024-02-01"], None), (["1.2.3", "1.2.4"], None), ([*MANY, "none", "-"], None),
    (["1", "2", "x"], None),
])  # fmt: skip
def test_cells_that_keep_a_column_from_numbers_are_named_in_a_warning(cells, named):
    said = (
        f"column 'c' is taken for categories because of {named!r}: write numbers as in 1234.5,"
        " and leave unknown ones empty"
    )
    table = "c;k;y\n" + "".join(
        f"{cell};{'pq'[i % 2]},x;{i % 2}\n" for i, cell in enumerate(cells)
    )
    assert read(table).notes == ((said,) if named else ())
    assert read(table, categorical=("c",)).notes == ()


@pytest.mark.parametrize(("header", "rows", "name"), [
    ("sex,Freq,y", "f,12,p m,0,p f,3,q", "Freq"), ("sex,n,y", "f,1,p m,1,p f,20,q", "n"),
    ("sex,y,人数", "f,p,12 m,p,9 f,q,9", "人数"), ("sex,age,y", "f,12,p m,0,p f,3,q", None),
    ("sex,n,y", "f,1,p f,2,p f,3,q", None), ("sex,n,y", "f,1.5,p m,1,p f,20,q", None),
    ("x,n,y", "1.5,1,p 2.5,1,p 3.5,2,q", None), ("sex,n,y", "f,1,p m,2,p x,2,q", None),
    ("n,y", "1,p 20,q 20,p", None),
])  # fmt: skip
def test_a_column_of_frequencies_is_named_in_a_warning(header, rows, name):
    said = (
        f"column {name!r} seems to say how many rows a row stands for, but each counts once:"
        f" repeat the rows, and --drop {quote(name or '')}"
    )
    assert read("\n".join([header, *rows.split()])).notes == ((said,) if name else ())


def test_a_column_of_marks_and_empty_cells_is_named_in_a_warning():
    said = (
        "column 'bread' is 'x' or empty in all rows: no evidence, because empty cells are unknown;"
        " fill them, as with 0, if they mean no"
    )
    assert read("bread,milk,y\nx,x,p\n,x,q\nx,x,q\n").notes == (said,)
    assert read("bread,y\nx,p\n0,q\n").notes == ()


def test_a_gaussian_model_takes_all_numbers_for_numbers():
    table = "a,b,y\n1,0,p\n2,0,q\n3,0,q\n"
    assert read(table, model="gaussian").table.schema.n_values.tolist() == [0, 0]
    assert read(table).table.schema.n_values.tolist() == [3, 1]


@pytest.mark.parametrize(("text", "how", "name"), [
    (NUMBERS, {}, "gaussian"), (MIXED, {}, "mixed"), (NAMES, {}, "categorical"),
    (NUMBERS, {"discretise": "width"}, "categorical"), (NUMBERS, {"model": "tan"}, "tan"),
    (MIXED, {"model": "tan", "discretise": "none"}, "tan"),
    (MIXED, {"discretise": "none"}, "mixed"),
])  # fmt: skip
def test_the_kinds_of_columns_choose_the_model_unless_one_is_given(text, how, name):
    data = read(text, **how)
    assert training.chosen_model(data.table.schema, TableSettings("y", **how)) == name
    assert train_table(data.table, TableSettings("y", **how)).name == name


@pytest.mark.parametrize(("text", "how", "words"), [
    (NUMBERS, {"model": "mixed", "discretise": "mdl"}, "takes numbers as they are"),
    (NUMBERS, {"model": "oracle"}, "--model oracle: unknown; choose from bernoulli"),
    (
        MIXED,
        {"model": "spode", "discretise": "none", "parameters": {"parent": "a"}},
        "--parent a: holds numbers; choose from c$",
    ),
    (NUMBERS, {"model": "aode", "discretise": "none"}, "no column holds categories"),
    (MIXED, {"model": "a2de", "discretise": "none"}, "a2de takes categories only; choose"),
])  # fmt: skip
def test_settings_that_do_not_fit_the_table_are_refused(text, how, words):
    with pytest.raises(UsageError, match=words):
        train_table(read(text, **{**how, "model": None}).table, TableSettings("y", **how))


@pytest.mark.parametrize(
    ("how", "most", "column"),
    [({"discretise": "width", "bins": 30}, 49, "'x' has 30"), ({}, 19, "'name' has 20")],
)
def test_more_values_than_a_model_file_holds_are_refused(how, most, column, monkeypatch):
    text = "name,x,y\n" + "".join(f"n{n},{n}.5,{n % 2}\n" for n in range(20))
    table, settings = read(text, **how).table, TableSettings("y", **how)
    monkeypatch.setattr(training, "MOST_VALUES", most + 1)
    train_table(table, settings)
    monkeypatch.setattr(training, "MOST_VALUES", most)
    with pytest.raises(
        UsageError, match=f"{most + 1} values, of which {column}, .* may have {most};"
    ):
        train_table(table, settings)


def test_rows_without_a_class_are_skipped_and_notes_say_what_is_odd():
    data = read("a,e,y\n1.5,,no\n1.5,,no\n2.5,,yes\n3.5,,yes\nmany,x,\n")
    assert [(s.name, s.reason) for s in data.skipped] == [("-#5", "no label")]
    assert len(data.table.y) == len(data.table.names) == 4
    empty, constant = data.notes
    assert empty == "column 'e' is empty: left out"
    assert constant.startswith("column 'a' is 1.5 in all rows of class 'no': variance zero")


def test_a_fold_is_answered_by_a_model_of_the_other_rows_alone():
    """Intervals too are cut on training rows: held-out rows must not move the cuts."""
    table, settings = read(NUMBERS).table, TableSettings("y", model="categorical")
    rest, of = np.flatnonzero(np.arange(20) % 4), np.flatnonzero(np.arange(20) % 4 == 0)
    part = training.table_rows(table, rest)
    column = train_table(part, settings).schema.columns[0]
    assert (column.cuts, part.names) == (cut_points("mdl", table.X[rest, 0], table.y[rest]), ())

    expected = rows_held_out(table, settings, rest, of).joint
    moved = replace(table, X=table.X.copy(), y=1 - table.y)
    moved.y[rest] = table.y[rest]
    assert (rows_held_out(moved, settings, rest, of).joint == expected).all()
    moved.X[of] = 99.0
    joint = rows_held_out(moved, settings, rest, of).joint
    assert (joint[0] == joint).all()
    # A fold without a class still answers for all classes.
    joint = rows_held_out(table, TableSettings("y"), np.arange(9), np.arange(9, 20)).joint
    assert joint.shape == (11, 2)


TARGET = "好瓜"


def melons(path: Path = MELONS) -> list[Record]:
    return list(read_records([str(path)]))


@pytest.fixture(scope="module")
def classifier():
    # Mixed: density is a number, so that a cell can be damaged.
    settings = TableSettings(TARGET, model="mixed", parameters={"alpha": 1.0})
    return train_table(read_table(melons(), settings).table, settings)


def twins():
    """Return three rows of one name, of different values; the second cannot be read."""
    first, second, third = melons()[0], melons()[8], melons()[16]
    damaged = Record("twin", {**second.cells, "密度": "heavy"})
    return [Record("twin", first.cells), damaged, Record("twin", third.cells)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_two_rows_of_one_name_get_their_own_answers(classifier, jobs):
    reason = answered_by_position(classifier, twins(), ("是", "否"), jobs)
    assert "密度 is 'heavy', not a number" in reason
    first, second, third = factors(classifier, twins())
    assert [first.verdict, second, third.verdict] == list(classifier.classify(twins()))


def test_fewer_rows_are_judged_at_a_time_if_they_are_wide(classifier, monkeypatch):
    monkeypatch.setattr("nbspam.tables.classifier._CHUNK_CELLS", 50)
    assert [*map(len, classifier.chunks(melons()))] == [5, 5, 5, 2]


def test_shares_add_up_to_the_score_and_factors_multiply_to_the_joint_probability(classifier):
    for row in melons():
        explained = classifier.explain(row)
        shares = [e.contribution for e in explained.evidence]
        assert explained.constant + sum(shares) == pytest.approx(explained.score)
        assert [*map(abs, shares)] == sorted(map(abs, shares), reverse=True)

        found, (answer,) = next(factors(classifier, [row])), classifier.answers([row])
        joint = found.log_product[0] + found.log_factors.sum(axis=0)
        np.testing.assert_allclose(joint, answer.joint)
        assert len(found.values) == len(found.log_factors)

    table = read("a,b,y\n1,1,no\n2,2,yes\n2,2,yes\n").table
    unsmoothed = train_table(table, TableSettings("y", parameters={"estimate": "mle"}))
    explained = unsmoothed.explain(Record("impossible in both classes", {"a": "1", "b": "2"}))
    assert (explained.towards, explained.score) == ("yes", pytest.approx(np.log(2)))  # the prior


@pytest.mark.parametrize("model", ["gaussian", "mixed", "categorical", "bernoulli", "multinomial"])
def test_steps_to_a_row_are_rows_with_fewer_cells(model):
    table = read("a,b,c,y\n0,2.5,1,no\n3,0,2,yes\n1,1,,yes\n2,3,0,no\n", model=model).table
    alpha = {} if model == "gaussian" else {"alpha": 0.0}
    classifier = train_table(table, TableSettings("y", model, parameters=alpha))
    X = in_intervals(table.X[:1], classifier.schema)[0]
    fewer = np.where(np.tri(4, 3, -1) > 0, X, np.nan)
    joint = classifier.model.predict_joint_log_proba(fewer)
    np.testing.assert_allclose(classifier.joint_by_steps(X), joint, atol=1e-12)


def test_a_column_of_numbers_counts_its_known_cells():
    rows = [*melons(), Record("x", {**melons()[0].cells, "密度": "?"})]
    table = read_table(rows, TableSettings(TARGET)).table
    counts = value_counts(table)
    assert counts.shape == (2, np.maximum(table.schema.n_values, 1).sum())
    position = [column.name for column in table.schema.columns].index("密度")
    first = np.maximum(table.schema.n_values, 1)[:position].sum()
    assert counts[:, first].tolist() == [9, 8]
