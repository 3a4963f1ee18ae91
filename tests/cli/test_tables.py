"""Tables on the command line: numbers from textbooks, and errors."""

import json

import numpy as np
import pytest

from nbspam.models import COLUMN_MODELS
from nbspam.store.modelfile import load_state, save_state
from support import LIHANG, MELONS, columns, complains, json_lines
from support import steps_of as factors

NUMBERS = "x,z,y\n" + "".join(f"{i + 0.5},{i * i / 7},{'ab'[i > 9]}\n" for i in range(20))


@pytest.mark.parametrize("name", COLUMN_MODELS)
def test_every_model_trains_classifies_explains_and_is_judged(table, model, tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(NUMBERS if name == "gaussian" else MELONS.read_text("utf-8"))
    target = "y" if name == "gaussian" else "好瓜"
    how = ("--target", target, "--model", name)
    status, out, err = table("train", path, *how)
    assert (status, err) == (0, "")
    assert f"by {name}" in out

    rows = path.read_text().splitlines()
    status, out, err = table("classify", path)
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == len(rows) - 1
    assert out.splitlines()[0].split("\t")[2] == f"{path}#1"
    labels = [line.split("\t")[0] for line in out.splitlines()]
    assert table("predict", path)[1].splitlines() == labels
    # A row alone, with and without column names, gets the same verdict as in the table.
    for stdin in (rows[0] + "\n" + rows[1], rows[1], rows[1].rpartition(",")[0]):
        status, alone, _ = table("classify", "--json", stdin=stdin.encode())
        assert json.loads(alone)["label"] == labels[0]
    status, text, _ = table("eval", path)
    assert status == 0
    assert " right (" in text
    assert table("eval", path, *how, "--cv", "3")[0] == 0
    assert table("eval", path, *how, "--test", path)[1] == text
    status, out, err = table("info")
    assert (status, err) == (0, "")
    assert name in out
    assert json.loads(table("info", "--json")[1])["kind"] == name

    status, out, err = table("explain", "--json", "-n", "100", path)
    assert (status, err) == (0, "")
    for line, label in zip(out.splitlines(), labels, strict=True):
        values = json.loads(line)
        assert values["label"] == label
        shares = [row["contribution"] for row in values["tokens"]]
        assert values["constant"] + sum(shares) == pytest.approx(values["score"], abs=1e-9)
    assert table("explain", path)[0] == 0
    assert table("explain", "--brief", path)[0] == 0
    assert table("explain", "--factors", path)[0] == 0


def test_all_kinds_of_tables_train_the_same(table, model, tmp_path):
    rows = [line.split(",") for line in LIHANG.read_text().splitlines()]
    (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    objects = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    trained = set()
    for path in (LIHANG, tmp_path / "t.tsv", tmp_path / "t.jsonl"):
        assert table("train", path, "--target", "Y")[0] == 0
        trained.add(model.read_bytes())
    assert len(trained) == 1


def test_discretisation_is_chosen_and_shown(table, model, tmp_path):
    (tmp_path / "t.csv").write_text(NUMBERS)
    for how, shown in (
        ("--discretise mdl", "x numeric, cut at 10"),
        ("--discretise width", "x numeric, cut at 2.4, 4.3"),
        ("--discretise frequency --bins 2", "x numeric, cut at 9.5"),
        ("--model tan", "cut at 10"),  # models of categories cut numbers by default
    ):
        status, out, _ = table("train", tmp_path / "t.csv", "--target", "y", *how.split())
        assert status == 0
        assert shown in out
        assert "by tan" in out or "by categorical" in out


def test_options_reach_the_model(table, model):
    def train(*options):
        return table("train", LIHANG, "--target", "Y", *options)[1]

    train("--estimate", "map", "--alpha", 2)
    smoothed, mode = model.read_bytes(), factors(table, "2,S\n")
    train("--alpha", 1)
    assert model.read_bytes() != smoothed
    assert factors(table, "2,S\n") == mode
    train("--class-prior", "0.25,0.75")
    assert factors(table, "2,S\n")[0]["factor"] == pytest.approx({"-1": 0.25, "1": 0.75})
    train("--class-prior", "estimated")
    assert factors(table, "2,S\n")[0]["factor"] == pytest.approx({"-1": 0.4, "1": 0.6})
    facts = json.loads(train("--numeric", "X1", "--json"))
    assert facts["kind"] == "mixed"
    assert [column["levels"] for column in facts["columns"]] == [None, ["L", "M", "S"]]


# --- what is missing ---


def test_an_unseen_category_counts_as_missing_with_a_warning(table, model):
    table("train", LIHANG, "--target", "Y")
    assert [row["value"] for row in factors(table, "X1,X2\n2,?\n")] == ["(Y)", "X1=2"]
    status, out, err = table("classify", stdin=b"X1,X2\n2,XXL\n")

    assert status == 0
    assert err == ("nbspam: -#1: X2 is 'XXL', which training has not seen; taken for missing\n")
    assert out == table("classify", stdin=b"X1,X2\n2,\n")[1]
    many = b"X1,X2\n" + b"2,XXL\n" * 9
    assert table("classify", stdin=many)[2].count("\n") == 6


def test_rows_without_a_class_and_empty_columns_are_left_out(table, model, tmp_path):
    (tmp_path / "t.csv").write_text(LIHANG.read_text() + "1,S,\n")
    status, out, err = table("train", tmp_path / "t.csv", "--target", "Y")
    assert (status, "read 15 rows (6 -1, 9 1), skipped 1" in out) == (0, True)
    assert complains((0, out, err), 0, "t.csv#16", "no label")
    assert table("train", tmp_path / "t.csv", "--target", "Y", "--strict")[0] == 1

    model.unlink()
    (tmp_path / "t.csv").write_text("x,e,y\n1,,a\n2,,b\n")
    assert complains(table("train", tmp_path / "t.csv", "--target", "y"), 0, "'e' is empty")
    assert table("classify", tmp_path / "t.csv")[0] == 0


def test_a_cell_that_is_no_number_skips_its_row(table, model, tmp_path):
    (tmp_path / "t.csv").write_text(NUMBERS)
    table("train", tmp_path / "t.csv", "--target", "y")
    status, out, err = table("classify", stdin=b"x,z\n1,2\noops,2\n")

    assert complains((status, out, err), 1, "-#2", "x is 'oops', not a number")
    assert out.count("\n") == 1
    assert complains(table("explain", stdin=b"x,z\noops,2\n"), 1, "not a number")


# --- what is refused ---


XY, RB = "x,y\n1,a\n2,b\n", "x,y\nr,a\nb,b\n"
REFUSED = [  # a table, options, the status, and what is said
    (XY, "--target z", 1, ["no column 'z'", "x, y"]),
    ("x,y\n1,0.5\n2,1.5\n", "--target y", 1, ["different numbers", "--categorical y"]),
    (XY, "--target y --values y=a,c", 1, ["#2: y is 'b'", "a, c"]),
    (XY, "--target y --values x", 2, ["--values x", "colour=red"]),
    (XY, "--target y --values x=1,1", 2, ["--values x=1,1"]),
    (NUMBERS, "--target y --values x=1,2 --numeric x", 2, ["--numeric says"]),
    (RB, "--target y --dirichlet 1,2,3", 2, ["no column has 3 values"]),
    (RB, "--target y --dirichlet z=1", 2, ["--dirichlet z: no such"]),
    (RB, "--target y --dirichlet x=1", 2, ["2 values, and not 1"]),
    (RB, "--target y --dirichlet x=1,-1", 2, ["x=1,-1: not", "0 up"]),
    (NUMBERS, "--target y --model mixed --dirichlet x=1,1", 2, ["x: holds numbers"]),
    (NUMBERS, "--target y --dirichlet y=1,2", 2, ["gaussian has no such setting"]),
    ("x,y\n", "--target y", 1, ["no rows"]),
    ("x,y\n,a\n,b\n", "--target y", 1, ["no column beside 'y'"]),
    (NUMBERS, "--target y --numeric w", 1, ["no column 'w'"]),
    (NUMBERS, "--target y --drop xx", 1, ["no column 'xx'; did you mean 'x'?"]),
    (NUMBERS, "--target y --drop y", 2, ["--drop y: another option names it"]),
    (NUMBERS, "--drop x", 2, ["Missing option '--target'"]),
    (RB, "--target y --model gaussian", 2, ["--model mixed"]),
    (NUMBERS, "--target y --model gaussian --discretise mdl", 2, ["leave"]),
    (NUMBERS, "--target y --model gaussian --alpha 1", 2, ["no such"]),
    (NUMBERS, "--target y --model tan --min-support 2", 2, ["--min-supp"]),
    (NUMBERS, "--target y --model spode --parent q", 2, ["no such column"]),
    (NUMBERS, "--target y --alpha auto", 2, ["--alpha auto"]),
    (NUMBERS, "--target y --model tan --bins 3", 2, ["--bins", "mdl"]),
    (RB, "--target y --estimate map --alpha .5", 2, ["mode", "alpha"]),
    (NUMBERS, "--target y --preset mail", 2, ["--preset: for mail and text; use: nbspam train"]),
    (NUMBERS, "--target y --label-column y", 2, ["--label-column"]),
    (NUMBERS, "--target y --format mbox", 2, ["mbox", "csv"]),
]


def test_training_options_that_contradict_the_table_are_refused(table, model, tmp_path):
    for text, options, status, words in REFUSED:
        (tmp_path / "t.csv").write_text(text)

        assert complains(table("train", tmp_path / "t.csv", *options.split()), status, *words)
        assert not model.exists()


def test_zero_variance_is_a_warning_and_gives_no_infinity(table, model, tmp_path):
    (tmp_path / "t.csv").write_text("x,z,y\n1.5,1.5,a\n1.5,2.5,a\n2.5,2,b\n3.5,2,b\n")
    train = ("train", tmp_path / "t.csv", "--target", "y")
    status, _, err = table(*train, "--numeric", "z")
    assert status == 0
    assert "column 'x' is 1.5 in all rows of class 'a': variance zero" in err
    status, out, _ = table("classify", "--json", stdin=b"x,z\n1.5,2\n9,9\n")
    assert status == 0
    for verdict in json_lines(out):
        assert np.isfinite(list(verdict["posterior"].values())).all()
    # Intervals need no variance.
    assert "variance zero" not in table(*train, "--model", "tan")[2]


def test_a_number_far_from_all_others_is_explained_without_overflow(table, model, tmp_path):
    table("train", MELONS, "--target", "好瓜")
    far = MELONS.read_text("utf-8").splitlines()[1].replace("0.697", "1e200")
    assert table("classify", stdin=far.encode()) == (0, "否\t1.000000\t-#1\n", "")
    status, out, err = table("explain", stdin=far.encode())
    assert (status, err) == (0, "")
    assert "score +1.68e+201" in out
    assert max(map(columns, out.splitlines())) <= 80
    *_, density, after = factors(table, far)
    assert density["factor"] == {"否": 0.0, "是": 0.0}
    assert after["factor"] == {"否": None, "是": None}

    # A product of densities above all numbers is null.
    rows = [",".join([value] * 8) for value in ("0", "3e-60", "2e-60")]
    names = [f"x{i}" for i in range(8)]
    lines = [",".join([*names, "y"]), *(f"{row},{label}" for label in "ab" for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    how = [part for name in names for part in ("--numeric", name)]
    assert table("train", tmp_path / "t.csv", "--target", "y", *how)[0] == 0
    assert factors(table, rows[0])[-1]["product"] == {"a": None, "b": None}


def test_tables_too_large_for_memory_are_refused_with_their_size(table, model, tmp_path):
    rows = "".join(f"a{i},b{i},{i % 2}\n" for i in range(4500))
    (tmp_path / "t.csv").write_text("v,w,y\n" + rows)
    result = table("train", tmp_path / "t.csv", "--target", "y", "--model", "aode")

    assert complains(result, 2, "9,000 values", "1.2 GiB", "fewer")


def test_a_table_without_the_columns_of_the_model_is_refused(table, model):
    table("train", LIHANG, "--target", "Y")

    assert complains(table("classify", stdin=b"a,b,c,d\n1,2,3,4\n"), 1, "4 cells", "X1, X2")
    assert complains(table("eval", LIHANG, "--target", "Y", "--cv", "7"), 2, "has 6 documents")


def test_a_tables_model_that_does_not_fit_together_is_refused(table, model):

    table("train", LIHANG, "--target", "Y")
    state = load_state(str(model))
    for key, value in (
        ("classes", ["1"]),
        ("counts", np.zeros((2, 2))),
        ("model", "none"),
        ("learnt", {}),
        ("parameters", {"colour": "red"}),
        ("learnt", {**state["learnt"], "levels_": np.array([2**40, 3])}),
        ("learnt", {**state["learnt"], "levels_": np.array([-3, 9])}),
    ):
        save_state(str(model), {**state, key: value})
        assert complains(table("classify", stdin=b"2,S\n"), 1, "its contents do not fit")
    save_state(str(model), {**state, "kind": "oracle"})
    assert complains(table("classify", stdin=b"2,S\n"), 1, "kind 'oracle'")
