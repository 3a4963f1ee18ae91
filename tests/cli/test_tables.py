"""Tables on the command line: cells, counts and texts; numbers from textbooks, and errors."""

import json
import re
from decimal import Decimal

import numpy as np
import pytest

import nbspam as library
from nbspam.models import COLUMN_MODELS
from nbspam.store.open import load_classifier
from support import LIHANG, MELONS, columns, complains, json_lines
from support import steps_of as factors

NUMBERS = "x,z,y\n" + "".join(f"{i + 0.5},{i * i / 7},{'ab'[i > 9]}\n" for i in range(20))


@pytest.mark.parametrize("name", COLUMN_MODELS)
def test_every_model_trains_classifies_explains_and_is_judged(table, model, tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(NUMBERS if name == "gaussian" else MELONS.read_text("utf-8"))
    target = "y" if name == "gaussian" else "好瓜"
    how = ("--target", target, "--model", name)
    out = table.out("train", path, *how)
    assert f"by {name}" in out

    rows = path.read_text().splitlines()
    out = table.out("classify", path)
    assert len(out.splitlines()) == len(rows) - 1
    assert out.splitlines()[0].split("\t")[2] == f"{path}#1"
    labels = [line.split("\t")[0] for line in out.splitlines()]
    assert table("predict", path)[1].splitlines() == labels
    assert table("predict", f"{path}#2")[1].splitlines() == labels[1:2]
    # A row alone, with and without column names, gets the same verdict as in the table.
    for stdin in (rows[0] + "\n" + rows[1], rows[1], rows[1].rpartition(",")[0]):
        assert table.json("classify", stdin=stdin.encode())["label"] == labels[0]
    text = table.out("eval", path)
    assert " right (" in text
    assert table("eval", path, *how, "--cv", "3")[0] == 0
    assert table("eval", path, *how, "--test", path)[1] == text
    out = table.out("info")
    assert name in out
    assert table.json("info")["kind"] == name

    out = table.out("explain", "--json", "-n", "100", path)
    for line, label in zip(out.splitlines(), labels, strict=True):
        values = json.loads(line)
        assert values["label"] == label
        shares = [row["contribution"] for row in values["tokens"]]
        assert values["constant"] + sum(shares) == pytest.approx(values["score"], abs=1e-9)
    assert re.search(r" kind +value\n", table.out("explain", path))
    assert table("explain", "--brief", path)[0] == 0
    assert table("explain", "--factors", path)[0] == 0


def test_all_kinds_of_tables_train_the_same_and_one_given_twice_is_read_once(
    table, model, tmp_path
):
    rows = [line.split(",") for line in LIHANG.read_text().splitlines()]
    (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    objects = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    trained = set()
    for path in (LIHANG, tmp_path / "t.tsv", tmp_path / "t.jsonl"):
        assert table("train", path, "--target", "Y")[0] == 0
        trained.add(model.read_bytes())
    assert len(trained) == 1

    (tmp_path / "link.csv").symlink_to(LIHANG)
    twice = LIHANG, tmp_path / "link.csv"
    assert "read 15 rows" in table("train", *twice, "--target", "Y")[1]
    (tmp_path / "f.csv").write_text(re.sub("1$", "1.0", LIHANG.read_text(), flags=re.M))
    assert "of 15 right" in table.out("eval", *twice) == table.out("eval", tmp_path / "f.csv")
    assert "of 15 right" in table("eval", *twice, "--target", "Y", "--cv", "3")[1]
    assert table.out("update", *twice) == "learned 15\n"
    assert table.out("unlearn", *twice) == "un-learned 15\n"
    assert table.out("predict", *twice).count("\n") == 30


def test_discretisation_and_other_options_reach_the_model(table, model):
    for how, shown in (
        ("--discretise mdl", "x numeric, cut at 10"),
        ("--discretise width", "x numeric, cut at 2.4, 4.3"),
        ("--discretise frequency --bins 2", "x numeric, cut at 9.5"),
        ("--model tan", "cut at 10"),  # models of categories cut numbers by default
    ):
        out = table("train", "--target", "y", *how.split(), stdin=NUMBERS.encode())[1]
        assert shown in out
        assert "by tan" in out or "by categorical" in out

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
    status, out, err = table("classify", stdin=b"X1,X2\n2.0,XXL\n")

    assert status == 0
    assert err == ("nbspam: -#1: X2 is 'XXL', which training has not seen; taken for missing\n")
    assert out == table("classify", stdin=b"X1,X2\n2,\n")[1]
    assert table("classify", stdin=b"X1,X2\n" + b"2,XXL\n" * 9)[2].count("\n") == 6
    assert table("classify", "--files0-from", "-") == (0, "", "")
    absent = "nbspam: no column X2, which training has seen; taken for missing in every row\n"
    assert table("classify", stdin=b"X1\n2\n")[1:] == (out, absent)


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
    # Of many classes the first are counted by name.
    for n, more in ((21, "1 more class"), (23, "3 more classes")):
        rows = "".join(f"{k}.5,k{k:02}\n" for k in range(n))
        line = table("train", "--target", "y", stdin=f"x,y\n{rows}".encode())[1].split("\n")[0]
        assert line.startswith(f"read {n} rows (1 k00, 1 k01,")
        assert line.endswith(f"1 k19 and {more})")


def test_a_cell_that_is_no_number_skips_its_row_and_one_without_a_class_has_no_label(table, model):
    table.out("train", "--target", "y", stdin=NUMBERS.encode())
    status, out, err = table("classify", stdin=b"x,z\n1,2\noops,2\n")
    assert complains((status, out, err), 1, "-#2", "x is 'oops', not a number")
    assert out.count("\n") == 1
    assert complains(table("explain", stdin=b"x,z\noops,2\n"), 1, "not a number")
    for cell in ("", "?", "NA"):
        unlabelled = f"x,z,y\n1.5,2,{cell}\n"
        assert complains(table("eval", stdin=unlabelled.encode()), 1, "none has a label")


# --- what is refused ---


XY, RB = "x,y\n1,a\n2,b\n", "x,y\nr,a\nb,b\n"
REFUSED = [  # a table, options, the status, and what is said
    (XY, "--target z", 1, ["no column 'z'", "x, y"]),
    ("x,y\n1,0.5\n2,1.5\n", "--target y", 1, ["different numbers", "--categorical y"]),
    ("x,y\n1,\n2,?\n", "--target y", 1, ["no value in any row"]),
    (XY, "--target y --values y=a,c", 1, ["#2: y is 'b'", "a, c"]),
    (XY, "--target y --values x", 2, ["--values x", "colour=red"]),
    (NUMBERS, "--target y --values x=1,2 --numeric x", 2, ["--numeric x: another"]),
    (NUMBERS, "--target y --categorical x --numeric x", 2, ["--numeric x: another"]),
    (NUMBERS, "--target y --numeric y", 2, ["--numeric y: another option"]),
    (RB, "--target y --class-prior 1,0", 2, ["not numbers above 0 that sum to 1; write 0.3,0.7"]),
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
    (NUMBERS, "--target y --model spode --parent q", 2, ["no such column"]),
    (NUMBERS, "--target y --alpha auto", 2, ["--alpha auto"]),
    (NUMBERS, "--target y --model tan --bins 3", 2, ["--bins", "mdl"]),
    (NUMBERS, "--target y --discretise frequency --bins 900001", 2, ["from 2 to 900,000"]),
    (RB, "--target y --estimate map --alpha .5", 2, ["mode", "alpha"]),
    (NUMBERS, "--target y --preset mail", 2, ["--preset: for mail and text; use: nbspam train"]),
]


def test_training_options_that_contradict_the_table_are_refused(table, model):
    for text, options, status, words in REFUSED:
        refused = table("train", *options.split(), stdin=text.encode())
        assert complains(refused, status, *words)
        assert not model.exists()


def test_zero_variance_is_a_warning_and_gives_no_infinity(table, model):
    text = "x,z,same,y\n1.5,1.5,7.5,a\n1.5,2.5,7.5,a\n2.5,2,7.5,b\n3.5,2,7.5,b\n"
    train = ("train", "--target", "y")
    status, _, err = table(*train, "--numeric", "z", stdin=text.encode())
    assert status == 0
    assert "column 'x' is 1.5 in all rows of class 'a': variance zero" in err
    assert [line for line in err.splitlines() if "'same'" in line] == [
        "nbspam: column 'same' is 7.5 in all rows: no evidence"
    ]
    out = table.out("classify", "--json", stdin=b"x,z,same\n1.5,2,8\n9,9,8\n")
    for verdict in json_lines(out):
        assert np.isfinite(list(verdict["posterior"].values())).all()
    # Intervals need no variance.
    assert "variance zero" not in table(*train, "--model", "tan", stdin=text.encode())[2]
    rows = "".join(f"{ord(c)}.5,{c}\n" * 2 for c in "abcdefg")
    err = table(*train, stdin=f"x,y\n{rows}".encode())[2]
    assert (err.count("variance zero"), "nbspam: warned of 2 more\n" in err) == (5, True)


def test_a_product_below_all_floats_is_printed_by_its_power_of_ten(table, model):
    """Class a has 2 of 3 rows, and each value in 0 or 1 of its 2: (1 + 1) / (2 + 3) for 2."""
    rows = [",".join([value] * 800 + [f"{label}\n"]) for value, label in ("0a", "1b", "2a")]
    names = ",".join([*(f"x{j}" for j in range(800)), "y\n"])
    table("train", "--target", "y", stdin="".join([names, *rows]).encode())
    *_, last = table.out("explain", "--factors", stdin=rows[2].encode()).splitlines()
    of_a, of_b = Decimal(3) / 5 * (Decimal(2) / 5) ** 800, Decimal(2) / 5 * (Decimal(1) / 4) ** 800
    assert last.split()[2:4] == [f"{of_a:.5e}", f"{of_b:.5e}"] == ["2.66774e-319", "8.99636e-483"]


def test_a_number_far_from_all_others_is_explained_without_overflow(table, model):
    table("train", MELONS, "--target", "好瓜")
    far = MELONS.read_text("utf-8").splitlines()[1].replace("0.697", "1e200")
    assert table("classify", stdin=far.encode()) == (0, "否\t1.000000\t-#1\n", "")
    out = table.out("explain", stdin=far.encode())
    assert "score +1.68e+201" in out
    assert max(map(columns, out.splitlines())) <= 80
    *_, density, after = factors(table, far)
    assert density["factor"] == {"否": 0.0, "是": 0.0}
    assert after["factor"] == {"否": None, "是": None}

    # A product of densities above all numbers is null.
    rows = [",".join([value] * 8) for value in ("0", "3e-60", "2e-60")]
    names = [f"x{i}" for i in range(8)]
    lines = [",".join([*names, "y"]), *(f"{row},{label}" for label in "ab" for row in rows)]
    how = [part for name in names for part in ("--numeric", name)]
    assert table("train", "--target", "y", *how, stdin="\n".join(lines).encode())[0] == 0
    assert factors(table, rows[0])[-1]["product"] == {"a": None, "b": None}


# ---- tables of counts: Bernoulli, multinomial and complement naive Bayes by name ----

# The six texts of `ham: apple apple pear, plum, plum pear; spam: cash apple, cash, pear`.
TEXTS = """apple,pear,plum,cash,y
2,1,0,0,ham
0,0,1,0,ham
0,1,1,0,ham
1,0,0,1,spam
0,0,0,1,spam
0,1,0,0,spam
"""
NAMES = "apple,pear,plum,cash"


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text(TEXTS)
    return path


def trained(table, path, *how):
    status, out, err = table("train", path, "--target", "y", "--model", *how)
    assert status == 0, err
    return out


def products(table, *rows):
    """Return the product of all factors of each row, by class."""
    stdin = "\n".join([NAMES, *rows]).encode()
    out = table.out("explain", "--factors", "--json", stdin=stdin)
    return [json.loads(line)["factors"][-1]["product"] for line in out.splitlines()]


def test_missing_cells_are_left_out_and_bernoulli_counts_no_word_twice(table, model, texts):
    """The factors of both models are worked out in docs/family.md."""
    assert "apple present or absent" in trained(table, texts, "bernoulli")
    assert products(table, "7,0,0,0") == products(table, "1,0,0,0")
    assert products(table, "1,,,") == [pytest.approx({"ham": 0.5 * 2 / 5, "spam": 0.5 * 2 / 5})]
    # Beta(b0, b1) = Beta(2, 3) for every word: (n_jy + b1) / (n_y + b0 + b1).
    trained(table, texts, "bernoulli", "--dirichlet", "2,3")
    assert products(table, ",,,1") == [pytest.approx({"ham": 0.5 * 3 / 8, "spam": 0.5 * 5 / 8})]
    assert "apple count" in trained(table, texts, "multinomial")
    assert products(table, "2,,1,") == products(table, "2,0,1,0")
    trained(table, texts, "multinomial", "--alpha", "0.5", "--class-prior", "0.2,0.8")
    ham, spam = 0.2 * 2.5 / 8, 0.8 * 1.5 / 6
    assert products(table, "1,0,0,0") == [pytest.approx({"ham": ham, "spam": spam})]
    # Dir(3, 2): P(ham) = (3 + 3) / (6 + 5).
    trained(table, texts, "multinomial", "--dirichlet", "y=3,2")
    ham, spam = 6 / 11 * 3 / 10, 5 / 11 * 2 / 8
    assert products(table, "1,0,0,0") == [pytest.approx({"ham": ham, "spam": spam})]


@pytest.mark.parametrize("name", ["bernoulli", "multinomial", "complement"])
def test_cells_that_count_nothing_are_refused(table, model, texts, tmp_path, name):
    how = ("--target", "y", "--model", name)
    for cell in ("-1", "much"):
        (tmp_path / "bad.csv").write_text(TEXTS.replace("2,1", f"{cell},1"))
        result = table("train", tmp_path / "bad.csv", *how)
        assert complains(result, 1, f"bad.csv#1: apple is '{cell}', not a count from 0 up")
    trained(table, texts, name)
    assert " of 6 right" in table("eval", texts, *how, "--cv", "3")[1]
    for command in ("classify", "explain", "explain --factors"):
        result = table(*command.split(), stdin=f"{NAMES}\n0,-3,0,0\n".encode())
        assert complains(result, 1, "skipped -#1: pear is '-3', not a count")
    for option in ("--numeric", "--categorical"):
        result = table("train", texts, *how, option, "pear")
        assert complains(result, 2, "all columns hold counts", "pear holds something else")
    result = table("train", texts, *how, "--discretise", "mdl")
    assert complains(result, 2, "--discretise", "numbers as they are")


# ---- tables of texts on the command line: columns that a model remembers, names ----

TICKETS = (
    "nr,queue,title,body\n"
    "1,sales,price,what does it cost\n"
    "2,help,broken,it does not start\n"
    "3,sales,offer,the price for ten\n"
    "4,help,noise,it stops after the start\n"
)


@pytest.fixture
def tickets(nbspam, tmp_path, model):
    """A model of tickets, told once in which columns they are."""
    path = tmp_path / "tickets.csv"
    path.write_text(TICKETS)
    columns = ("--text-column", "title", "--text-column", "body", "--label-column", "queue")
    assert nbspam("train", path, *columns)[0] == 0
    return path


def test_train_and_info_say_which_columns_they_took(nbspam, tickets, tmp_path):
    assert "text_columns\ttitle, body\nlabel_column\tqueue\n" in nbspam("info")[1]
    train = ("train", tickets, "--label-column", "queue", "--text-column", "body")
    assert nbspam(*train)[1].splitlines()[1] == "  text in 'body'; class in 'queue'"
    told = nbspam.json(*train)
    assert (told["text_columns"], told["label_column"]) == (["body"], "queue")
    (tmp_path / "x.csv").write_text("text\nx\n")
    out = nbspam("train", "--spam", tmp_path / "x.csv", "--ham", tickets, "-m", tmp_path / "m")[1]
    assert out.splitlines()[1] == "  text in 'text'"
    # A model of dependent tokens remembers them too, and unlabelled tables need no classes.
    columns = ("--text-column", "title", "--label-column", "queue")
    assert "text in 'title'" in nbspam("train", tickets, *columns, "--model", "aode")[1]
    assert "title" in nbspam("info")[1]
    assert nbspam("classify", tickets)[1].count("\n") == 4
    (tmp_path / "more.csv").write_text("title,body\nprice,the cost of it\nbroken,it stops\n")
    more = ("--unlabelled", tmp_path / "more.csv", "--unlabelled-weight", "0.5", "--min-df", "1")
    out = nbspam("train", tickets, *columns, "--text-column", "body", *more)[1]
    assert "read 4 labelled, 2 unlabelled\n  text in 'title', 'body'; class in 'queue'\n" in out


def test_columns_survive_export_and_merge_and_every_command_remembers_them(
    nbspam, tickets, model, tmp_path
):
    text = nbspam("export")[1]
    assert nbspam("import", "-", "-m", tmp_path / "copy", stdin=text.encode())[0] == 0
    assert (tmp_path / "copy").read_bytes() == model.read_bytes()
    assert nbspam("merge", model, tmp_path / "copy", "-o", tmp_path / "both")[0] == 0
    assert load_classifier(str(tmp_path / "both")).settings.columns == (("title", "body"), "queue")
    wrong = text.replace('"text": ["title", "body"]', '"text": [1]').encode()
    assert complains(nbspam("import", "-", stdin=wrong), 1, "line 1: settings: columns")

    (tmp_path / "new.csv").write_text("body,title\nwhat does it cost,price\n")
    whole = nbspam("classify", tmp_path / "new.csv")[1]
    assert whole.startswith("sales\t")
    assert whole == nbspam("classify", tickets)[1].splitlines()[0].replace("tickets", "new") + "\n"
    assert "title" not in nbspam("explain", tmp_path / "new.csv")[1]
    assert nbspam("eval", tickets)[1].startswith("4 of 4 right")
    assert nbspam("update", tickets)[1] == "already known 4\n"
    (tmp_path / "one.csv").write_text("body,title\nit does not start,broken\n")
    assert nbspam("unlearn", tmp_path / "one.csv")[1] == "un-learned 1\n"
    relabelled = nbspam("relabel", "--to", "sales", tmp_path / "one.csv")[1]
    assert relabelled == "learned 1 that the model did not know\n"
    assert nbspam("update", tickets)[1] == "already known 3, moved 1\n"


def test_options_override_the_remembered_columns_and_rows_are_named_by_a_column(nbspam, tickets):
    answer = nbspam("train", tickets, "--text-column", "body")
    said = "train: no column that is known to hold classes; name one by --label-column, of: nr,"
    assert complains(answer, 1, said)
    labels = nbspam("train", "--spam", tickets, "--text-column", "body", "-m", "other")
    assert "--label-column" not in labels[2]

    whole = nbspam("classify", tickets)[1]
    body = nbspam("classify", tickets, "--text-column", "body")[1]
    assert [line.split("\t")[0] for line in body.splitlines()] == ["sales", "help"] * 2
    assert body != whole
    answer = nbspam("classify", tickets, "--text-column", "boddy")
    assert complains(answer, 1, "no column 'boddy'; did you mean 'body'? there are: nr, queue,")
    for option in ("--text-column", "--id-column"):
        answer = nbspam("classify", option, "body", stdin=tickets.read_bytes())
        assert f"nbspam: {option}: no table was read; for one that was taken" in answer[2]

    out = nbspam("classify", tickets, "--id-column", "nr")[1]
    assert [line.split("\t")[2] for line in out.splitlines()] == ["1", "2", "3", "4"]
    out = nbspam("explain", tickets, "--id-column", "nr", "--json")[1]
    assert json.loads(out.splitlines()[2])["name"] == "3"


def test_the_library_remembers_columns_too(tmp_path):
    (tmp_path / "a.csv").write_text(TICKETS.replace("queue,title", "label,title"))
    (tmp_path / "b.csv").write_text("x,body\nbroken,what does it cost\n")
    model = library.train(tmp_path / "a.csv")
    (verdict,) = model.classify_many(tmp_path / "b.csv")
    assert verdict.label == "sales"
    assert model.update(tmp_path / "a.csv").already_known == 4
    assert model.unlearn(tmp_path / "b.csv").unlearned == 1
