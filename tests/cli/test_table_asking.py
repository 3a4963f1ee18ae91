"""What is printed of a table's model: estimates, answers of a network, tables with verdicts.

Trees, structures of networks and independence are printed in docs/family.md and howto/tables.md,
which tests/test_documents.py runs.
"""

import csv
import io
import json
from fractions import Fraction
from itertools import product
from math import log, prod
from statistics import mean, stdev, variance

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import LIHANG, MELONS, ROOT, columns, complains, steps_of


@pytest.fixture
def drawn(tmp_path):
    """Write a table of three columns and three classes; return its rows as dictionaries."""
    rng = np.random.default_rng(3)
    rows = [
        {"a": "xyz"[rng.integers(3)], "b": "uv"[rng.integers(2)], "c": "pqr"[rng.integers(3)]}
        for _ in range(30)
    ]
    for i, row in enumerate(rows):
        row["y"] = "nme"[(i + (row["b"] == "u")) % 3]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return rows


def exported(table):
    return json.loads(table.out("export", "--format", "json"))


def trained(table, path, *how, target="y"):
    assert table("train", path, "--target", target, "--model", *how)[0] == 0
    return exported(table)


def count(rows, values):
    return sum(all(row[name] == value for name, value in values.items()) for row in rows)


def test_a_rare_value_is_not_printed_as_impossible(table, model, tmp_path):
    rare = {"name": "part", "values": ["bad", "good"], "parents": [], "table": [[2e-7, 1 - 2e-7]]}
    (tmp_path / "parts.json").write_text(json.dumps({"variables": [rare]}))
    asked = table.out("query", "-m", tmp_path / "parts.json", "--target", "part")
    assert asked.splitlines()[1:] == ["bad\t2e-07", "good\t1.000000"]
    rows = "".join(f"v{n},{'yn'[n % 2]}\n" for n in range(100_000, 101_000))
    table("train", "--target", "a", "--categorical", "n", stdin=f"n,a\n{rows}".encode())
    # In class n, 500 rows of 1000 values: (0 + 1) / 1500 and (1 + 1) / 1500.
    assert "v100000   0.00067 (0)   0.0013 (1)" in table.out("info").splitlines()


@pytest.mark.parametrize("name", [
    "categorical", "spode", "tan", "aode", "a2de", "akde", "network --start=naive --no-climb",
])  # fmt: skip
def test_every_probability_is_laplaces_share_of_the_rows(table, model, tmp_path, drawn, name):
    n_values = {"a": 3, "b": 2, "c": 3, "y": 3}
    whole = trained(table, tmp_path / "t.csv", *name.split())
    estimates = whole["estimates"]
    assert len({json.dumps([row["of"], row["given"]]) for row in estimates}) == len(estimates)
    for row in estimates:
        of, condition = row["of"], row["given"]
        assert row["count"] == count(drawn, of | condition)
        # Of a joint probability with the class only the columns' values are counted, eq. 7.24.
        smoothed = of.keys() - {"y"} or of.keys()
        outcomes = prod(n_values[each] for each in smoothed)
        share = Fraction(row["count"] + 1, count(drawn, condition) + outcomes)
        assert row["probability"] == pytest.approx(float(share)), row
    largest = max(len(row["of"] | row["given"]) for row in estimates)
    assert largest == {"spode": 3, "tan": 3, "aode": 3, "a2de": 4}.get(name, 2)

    # `info` has the same numbers without those of pairs.
    info = table.json("info")
    assert (info["kind"], info["target"]) == (name.split()[0], "y")
    assert info["structure"] == whole["structure"]
    few = [row for row in estimates if len(row["of"] | row["given"]) <= 2]
    assert info["estimates"] == (few if name in ("aode", "a2de") else estimates)


def test_csv_has_a_row_for_each_estimate(table, model):
    def csv_rows():
        out = table.out("export", "--format", "csv")
        return list(csv.DictReader(io.StringIO(out)))

    table("train", MELONS, "--target", "好瓜", "--alpha", "0")
    rows = csv_rows()
    assert len(rows) == len(exported(table)["estimates"]) == 2 + 2 * (5 * 3 + 2) + 2 * 2
    found = {(row["column"], row["value"], row["class"]): row for row in rows}
    assert found["脐部", "凹陷", "是"]["probability"] == "0.625"
    assert found["脐部", "凹陷", "是"]["count"] == "5"
    with open(MELONS, encoding="utf-8") as stream:
        melons = list(csv.DictReader(stream))
    for name, label in product(("密度", "含糖率"), "是否"):
        numbers = [float(row[name]) for row in melons if row["好瓜"] == label]
        row = found[name, "", label]
        assert float(row["mean"]) == pytest.approx(mean(numbers))
        assert float(row["variance"]) == pytest.approx(variance(numbers))
        assert float(row["standard_deviation"]) == pytest.approx(stdev(numbers))
    table("train", MELONS, "--target", "好瓜", "--model", "a2de")
    asked = [row for row in csv_rows() if row["distribution"] == "P(触感 | 好瓜, 色泽, 根蒂)"]
    assert {row["others"] for row in asked if row["class"] == "是"} >= {"色泽=乌黑; 根蒂=硬挺"}


def test_a_trees_root_a_parent_and_a_networks_arrows_are_shown(table, model, tmp_path, drawn):
    structure = trained(table, tmp_path / "t.csv", "tan", "--root", "b")["structure"]
    assert structure["root"] == "b"
    whole = trained(table, tmp_path / "t.csv", "tan", "--root", "all")
    assert whole["structure"]["root"] is None
    assert "root        all columns; the mean over them\n" in table("info")[1]
    both = {(*e["of"], *e["given"]) for e in whole["estimates"] if len(e["given"]) == 2}
    assert len(both) == 4  # each of two edges in both directions

    structure = trained(table, tmp_path / "t.csv", "spode")["structure"]
    assert [row["column"] for row in structure["candidates"]] == ["a", "b", "c"]
    shown = f"parent      {structure['parent']}, chosen by leave-one-out cross-validation\n"
    assert shown in table("info")[1]
    structure = trained(table, tmp_path / "t.csv", "spode", "--parent", "b")["structure"]
    assert structure == {"parent": "b", "candidates": []}
    assert "parent      b\n" in table("info")[1]

    how = ("network", "--start", "naive", "--no-climb", "--criterion", "aic")
    structure = trained(table, tmp_path / "t.csv", *how)["structure"]
    assert structure["edges"] == [{"parent": "y", "column": name} for name in "abc"]
    fit = structure["log_likelihood"]
    assert (structure["parameters"], structure["score"]) == (17, pytest.approx(17 - fit))
    out = table("info")[1]
    assert f"aic         {structure['score']:.4f} nats (less is better)\n" in out
    assert f"log P(rows) {fit:.4f} nats, by maximum likelihood\nparameters  17\n" in out
    assert "depends on\na <- y\n" in out
    trained(table, tmp_path / "t.csv", "network", "--start=empty", "--no-climb")
    assert "arrows      none\n" in table("info")[1]


def test_of_wide_tables_and_many_classes_info_shows_a_part_and_says_so(table, model, tmp_path):
    rng = np.random.default_rng(0)
    names = ",".join(f"column-{i:03}" for i in range(100))
    rows = [
        ",".join([*map(str, rng.integers(0, 40, 100)), f"class number {'0' * 52}{i % 20}"])
        for i in range(200)
    ]
    (tmp_path / "wide.csv").write_text("\n".join([f"{names},y", *rows]))
    shown = {}
    for how in ("categorical --discretise=width --bins=30", "multinomial", "gaussian", "tan"):
        table("train", tmp_path / "wide.csv", "--target", "y", "--model", *how.split())
        shown[how] = table.out("info")
        lines = shown[how].splitlines()
        assert max(map(columns, lines[1:])) <= 80  # but for the file's name
        assert len(lines) < 120
        assert "column      … and 80 more columns" in shown[how]
    assert "… 8 more rows\n" in shown["multinomial"]  # of P(y)
    assert "… 88 more rows and 18 more classes\n" in shown["multinomial"]
    assert "more of these tables\n" in shown["gaussian"]


def test_complement_prints_the_shares_of_the_other_classes(table, model, tmp_path):
    (tmp_path / "t.csv").write_text("apple,plum,y\n2,1,ham\n0,1,spam\n3,0,junk\n")
    # Of 6 words that are not in spam, 5 are apple.
    for name, label, condition, n, share in (
        ("complement", "spam", "P(column | not y)", 5, (5 + 1) / (6 + 2)),
        ("multinomial", "ham", "P(column | y)", 2, (2 + 1) / (3 + 2)),
    ):
        estimates = trained(table, tmp_path / "t.csv", name)["estimates"]
        row = next(row for row in estimates if row["given"] == {"y": label})
        assert (row["of"], row["distribution"]) == ({"column": "apple"}, condition)
        assert (row["count"], row["probability"]) == (n, pytest.approx(share))


# ---- query ----


FIGURE = ROOT / "corpora" / "melon-network.json"


def test_a_network_of_tokens_classifies_mail_and_prints_names_as_written(nbspam, mails, model):
    how = ("--model", "network", "--features", "12", "--no-climb")
    assert nbspam("train", mails, *how)[0] == 0
    assert nbspam("predict", mails / "spam")[1].split().count("spam") > 70
    structure = nbspam("query", "-m", model)[1].splitlines()
    assert structure[-1] == "class"
    assert len(structure) == 13
    token = structure[0].split("\t")[0]
    out = nbspam.out("query", "-m", model, "--evidence", f"{token}=present", "--target", "class")
    assert out.splitlines()[1].startswith("ham\t")

    shown = nbspam("table", "query", "-m", FIGURE, "--json")[1]
    assert '"name": "好瓜", "values": ["是", "否"]' in shown
    model.unlink()
    out = nbspam("table", "train", MELONS, "--target", "好瓜", "--model", "network")[1]
    assert "learned 好瓜 by network" in out
    for words in (["info", "--json"], ["export", "--format", "json"]):
        out = nbspam("table", *words)[1]
        assert "好瓜" in out
        assert "\\u" not in out


def test_a_number_as_evidence_means_its_interval(table, model):
    rows = "\n".join(f"{x / 40},{'yes' if x > 20 else 'no'}" for x in range(40))
    train = "train", "--target", "ripe", "--model", "network"
    assert table(*train, stdin=f"size,ripe\n{rows}\n".encode())[0] == 0
    out = table("query", "-m", model, "--evidence", "size=0.9", "--target", "ripe", "--json")[1]

    assert json.loads(out)["rows"][1]["probability"] > 0.9


@pytest.fixture
def copies(tmp_path):
    """A network in which b is always what a is, and c says which of them are 1."""
    a = {"name": "a", "values": ["0", "1"], "parents": [], "table": [[0.7, 0.3]]}
    b = {"name": "b", "values": ["0", "1"], "parents": ["a"], "table": [[1, 0], [0, 1]]}
    table = [[1, 0], [0, 1], [0, 1], [1, 0]]  # c is the exclusive or of a and b: always 0
    c = {"name": "c", "values": ["0", "1"], "parents": ["a", "b"], "table": table}
    (tmp_path / "copies.json").write_text(json.dumps({"variables": [a, b, c]}))
    return tmp_path / "copies.json"


def test_sampling_that_cannot_reach_every_state_says_so(table, copies, monkeypatch):
    question = ("query", "-m", copies, "--target", "a", "b")
    said = "so this estimate is worthless; ask without --gibbs"
    assert complains(table(*question, "--gibbs", "1000"), 0, "the tables hold 0 or 1", said)
    # Zeros alone do no harm: from a known a, every state left is reached.
    known = ("query", "-m", copies, "--target", "b", "--evidence", "a=1", "--gibbs", "1000")
    assert table(*known)[::2] == (0, "")
    exact = table.json(*question)["rows"]
    assert [row["probability"] for row in exact] == [0.7, 0, 0, 0.3]
    sampled = table.json("query", "-m", FIGURE, "--target", "好瓜", "--gibbs", "1000")
    assert sampled["r_hat"] == pytest.approx(1, abs=0.1)
    # Among too many states to try they are suspected.
    monkeypatch.setattr("nbspam.models.network_questions.MAX_STATES", 3)
    err = table(*question, "--gibbs", "1000")[2]
    assert "some values may never be reached; ask without --gibbs" in err


def test_evidence_that_is_impossible_or_perhaps_a_target_is_refused(table, copies):
    question = ("query", "-m", copies, "--target", "a=1", "b=1")
    said = "b=1: neither target nor evidence; write --target b=1 for a joint probability, or --ev"
    assert complains(table(*question), 2, said)
    joint = table("query", "-m", copies, "--target=a=1", "--target", "b=1", "--evidence", "c=0")
    assert joint[:2] == (0, "a\tb\tprobability\n1\t1\t0.300000\n")

    question = ("query", "-m", copies, "--target", "a", "--evidence", "c=1")
    assert complains(table(*question), 2, "evidence: impossible in this network; change")
    said = "kept it from any state that agrees with the evidence"
    assert complains(table(*question, "--gibbs", "1000"), 2, said)


# ---- estimates ----


TOSSES = "toss,coin\n" + "".join(f"{side},one\n" for side in ("h", "h", "t", "h", "t"))


def factors(table, *rows):
    """Return the factors of the last row, each by class."""
    return [step["factor"] for step in steps_of(table, *rows)]


@pytest.fixture
def tosses(tmp_path):
    path = tmp_path / "tosses.csv"
    path.write_text(TOSSES)
    return path


def test_five_tosses_of_one_coin_are_a_table(table, model, tosses):
    status, _, err = table("train", tosses, "--target", "coin", "--estimate", "mle")
    said = "the target 'coin' is 'one' in every row: one class, which every row will get"
    assert (status, err) == (0, f"nbspam: {said}\n")
    assert "settings    categorical, class_prior smoothed, estimate mle\n" in table.out("info")
    assert factors(table, "toss", "h") == [{"one": 1.0}, {"one": pytest.approx(3 / 5)}]
    assert table("classify", stdin=b"toss\nt\n") == (0, "one\t1.000000\t-#1\n", "")
    page = tosses.with_suffix(".html")
    out = table.out("eval", tosses, "--plot", "-", "--report", page)
    assert out.startswith("5 of 5 right")
    assert "\nCalibration: share of right answers" in out
    assert "nine in ten were right." in page.read_text()
    refused = table("explain", stdin=b"toss\nt\n")
    assert complains(refused, 2, "one is the model's only class", "--factors")


def test_a_prior_without_a_column_is_for_all_of_as_many_values_also_in_a_mixed_model(
    table, model, tmp_path
):
    (tmp_path / "t.csv").write_text("a,b,c,y\n0,1,u,p\n1,1,v,p\n0,0,w,q\n")
    how = ("--target", "y", "--dirichlet", "2,5", "--dirichlet", "b=1,1")
    assert table("train", tmp_path / "t.csv", *how)[0] == 0
    assert "prior       a 2, 5\nprior       b 1, 1\n\nP(y)" in table("info")[1]
    prior, a, b, c = factors(table, "1,1,u")
    assert prior == pytest.approx({"p": 3 / 5, "q": 2 / 5})  # the classes are no column
    assert a == pytest.approx({"p": (1 + 5) / (2 + 7), "q": (0 + 5) / (1 + 7)})
    assert b == pytest.approx({"p": (2 + 1) / (2 + 2), "q": (0 + 1) / (1 + 2)})
    assert c == pytest.approx({"p": (1 + 1) / (2 + 3), "q": (0 + 1) / (1 + 3)})

    how = ("--target", "Y", "--model", "mixed", "--dirichlet")
    posteriors = []
    for prior in ("X2=1,1,1", "X2=1,9,1"):
        assert table("train", LIHANG, *how, prior)[0] == 0
        rows = [",".join(row) for row in product("123", "SML")]
        out = table("classify", "--json", stdin="\n".join(["X1,X2", *rows]).encode())[1]
        posteriors.append([json.loads(line)["posterior"] for line in out.splitlines()])
    assert posteriors[0] != posteriors[1]


def test_a_declared_value_counts_though_it_never_occurs(table, model, tosses, tmp_path):
    """S_j = 3 and K = 2: (3 + 1) / (5 + 3), (5 + 1) / (5 + 2); class two has only the prior."""
    how = ("--target", "coin", "--values", "toss=h,t,edge", "--values", "coin=one,two")
    assert table("train", tosses, *how)[::2] == (0, "")
    prior, value = factors(table, "toss", "h")
    assert prior == pytest.approx({"one": 6 / 7, "two": 1 / 7})
    assert value == pytest.approx({"one": 4 / 8, "two": 1 / 3})
    # It is no unknown value: it has a probability, and there is no warning.
    assert factors(table, "toss", "edge")[1] == pytest.approx({"one": 1 / 8, "two": 1 / 3})
    # Each fold leaves one toss out: -log P(one | toss), worked out by hand.
    log_loss = json.loads(table.out("eval", tosses, *how, "--cv", "5", "--json"))["log_loss"]
    heads, tails = ((Fraction(5, 6) * Fraction(n, 7), Fraction(1, 6) / 3) for n in (3, 2))
    likely = [float(own / (own + other)) for own, other in (heads, tails)]
    assert log_loss == pytest.approx(-(3 * log(likely[0]) + 2 * log(likely[1])) / 5)

    # They keep their order, and may hold commas.
    (tmp_path / "t.csv").write_text('size,y\nlarge,a\n"small, or so",b\n')
    how = ("--target", "y", "--values", 'size="small, or so",medium,large')
    assert table("train", tmp_path / "t.csv", *how, "--dirichlet", "size=1,2,4")[0] == 0
    assert factors(table, "size", "medium")[1] == pytest.approx({"a": 2 / 8, "b": 2 / 8})
    assert factors(table, "size", "large")[1] == pytest.approx({"a": 5 / 8, "b": 4 / 8})


# ---- tables back ----


TABLE = "label,text\n" + "ham,see you at lunch\nspam,win money now\n" * 3


@pytest.fixture
def texts(nbspam, tmp_path, model):
    (tmp_path / "t.csv").write_text(TABLE)
    assert nbspam("train", tmp_path / "t.csv")[0] == 0
    return tmp_path


def rows(out):
    return list(csv.reader(io.StringIO(out, newline="")))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_a_table_comes_back_with_label_and_probability(nbspam, texts, form):
    cells = {"id": "7", "text": 'win "money", now', "note": "a; b"}
    table = {
        "csv": 'id,text,note\n7,"win ""money"", now",a; b\n',
        "tsv": 'id\ttext\tnote\n7\twin "money", now\ta; b\n',
        "jsonl": json.dumps({**cells, "id": 7}) + "\n",
    }[form]
    out = nbspam.out("classify", "--csv", "--format", form, "-", stdin=table.encode())
    names, row = rows(out)
    assert names == ["id", "text", "note", "label", "probability"]
    assert row[:4] == [*cells.values(), "spam"]
    alone = nbspam("classify", "--format", form, "-", stdin=table.encode())[1]
    assert alone == f"{row[3]}\t{row[4]}\t-#1\n"


def test_a_table_of_any_width_comes_back_with_names_that_are_free(nbspam, texts):
    names, *answers = rows(nbspam("classify", "--csv", texts / "t.csv")[1])
    assert names == ["label", "text", "predicted_label", "probability"]
    assert all(row[0] == row[2] for row in answers)
    moved = rows(nbspam("classify", "--csv", texts / "t.csv", "--prior", "estimated")[1])
    assert [row[:3] for row in moved[1:]] == [row[:3] for row in answers]
    (texts / "two.csv").write_text("label,text,predicted_label,probability\nham,x,y,z\n")
    names, row = rows(nbspam("classify", "--csv", texts / "two.csv")[1])
    assert names[4:] == ["predicted_predicted_label", "predicted_probability"]
    assert row[:4] == ["ham", "x", "y", "z"]

    def back(table, form="csv"):
        return rows(nbspam("classify", "--csv", "--format", form, stdin=table)[1])

    names, *answers = back(b"id,text\n1,win money\n2\n3,see you, at lunch,ok\n")
    assert {len(names), *map(len, answers)} == {4}
    expected = [["1", "win money"], ["2", ""], ["3", "see you, at lunch,ok"]]
    assert [row[:2] for row in answers] == expected
    found = [row[:2] for row in back(b"win money\nsee you\n")]
    assert found == [["win money", "spam"], ["see you", "ham"]]
    # A cell of JSON with a carriage return is quoted.
    table = json.dumps({"text": "win\rmoney", "tags": ["a", 1]}).encode()
    assert back(table, "jsonl")[1][:2] == ["win\rmoney", '["a", 1]']


def test_rows_that_cannot_be_read_come_back_too(table, model):
    rows_of = "x,y\n" + "".join(f"{i + 0.5},{'ab'[i > 9]}\n" for i in range(20))
    assert table("train", "--target", "y", stdin=rows_of.encode())[0] == 0
    status, out, err = table("classify", "--csv", stdin=b"x,why\n1.5,p\nmany,q\n18,\n")

    assert status == 1
    assert err.count("\n") == 1
    assert "skipped -#2: x is 'many', not a number" in err
    assert [row[:3] for row in rows(out)] == [
        ["x", "why", "label"], ["1.5", "p", "a"], ["many", "q", ""], ["18", "", "b"],
    ]  # fmt: skip
    # Without names the cells stand in the order of training.
    assert rows(table("classify", "--csv", stdin=b"1.5\n")[1])[0][:2] == ["1.5", "a"]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_every_cell_comes_back_as_it_was(nbspam, texts, table):
    out = io.StringIO()
    csv.writer(out).writerows([("note", "text"), *table])
    stdin = out.getvalue().encode()
    out = nbspam.out("classify", "--csv", "--format", "csv", "--jobs", 1, stdin=stdin)
    assert [tuple(row[:2]) for row in rows(out)[1:]] == table


def test_several_tables_need_the_same_columns_and_mail_is_no_table(nbspam, texts, folder):
    a, b, c = (texts / f"{name}.csv" for name in "abc")
    a.write_text("text,n\nwin money,1\n")
    b.write_text("text,n\nsee you,2\n")
    c.write_text("n,text\n3,see you\n")
    assert [row[:3] for row in rows(nbspam("classify", "--csv", a, b)[1])] == [
        ["text", "n", "label"], ["win money", "1", "spam"], ["see you", "2", "ham"],
    ]  # fmt: skip
    said = "c.csv: its columns are not those of the table before it (text, n)"
    assert complains(nbspam("classify", "--csv", a, c), 1, said)
    said = "is no row of CSV, TSV or JSON; say --format"
    assert complains(nbspam("classify", "--csv", folder), 2, "--csv:", said)
    assert complains(nbspam("classify", "--csv", stdin=a.read_bytes()), 2, f"--csv: - {said}")
    assert complains(nbspam("classify", "--csv", folder, a), 2, said)


def test_a_table_on_standard_input_is_noticed_and_moves_no_cursor(nbspam, texts, monkeypatch):
    status, out, err = nbspam("classify", "-", stdin=TABLE.encode())
    said = "-: looks like a table, judged as one text; --format csv judges its rows"
    assert (status, out.count("\n"), err) == (0, 1, f"nbspam: {said}\n")
    status, out, err = nbspam("classify", "-", "--format", "csv", stdin=TABLE.encode())
    assert (status, out.count("\n"), err) == (0, 6, "")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    out = nbspam("classify", "--csv", "--format", "csv", stdin=b"text\nred\x1b[31m money\n")[1]
    assert "\\x1b[31m" in out
    assert "\x1b" not in out
