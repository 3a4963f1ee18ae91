"""What `info` and `export` print of a table's model, compared with counts made in the test."""

import csv
import io
import json
from fractions import Fraction
from itertools import product
from math import prod
from statistics import mean, stdev, variance

import numpy as np
import pytest

from support import MELONS, columns, complains

CATEGORICAL = [
    "categorical",
    "spode",
    "tan",
    "aode",
    "a2de",
    "akde",
    "network --start=naive --no-climb",
]


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
    status, out, err = table("export", "--format", "json")
    assert (status, err) == (0, "")
    return json.loads(out)


def trained(table, path, *how, target="y"):
    assert table("train", path, "--target", target, "--model", *how)[0] == 0
    return exported(table)


def count(rows, values):
    return sum(all(row[name] == value for name, value in values.items()) for row in rows)


@pytest.mark.parametrize("name", CATEGORICAL)
def test_every_probability_is_laplaces_share_of_the_rows(table, model, tmp_path, drawn, name):
    n_values = {"a": 3, "b": 2, "c": 3, "y": 3}
    whole = trained(table, tmp_path / "t.csv", *name.split())
    estimates = whole["estimates"]
    assert len({json.dumps([row["of"], row["given"]]) for row in estimates}) == len(estimates)
    for row in estimates:
        of, given = row["of"], row["given"]
        assert row["count"] == count(drawn, of | given)
        # Of a joint probability with the class only the columns' values are counted, eq. 7.24.
        smoothed = of.keys() - {"y"} or of.keys()
        outcomes = prod(n_values[each] for each in smoothed)
        share = Fraction(row["count"] + 1, count(drawn, given) + outcomes)
        assert row["probability"] == pytest.approx(float(share)), row
    largest = max(len(row["of"] | row["given"]) for row in estimates)
    assert largest == {"spode": 3, "tan": 3, "aode": 3, "a2de": 4}.get(name, 2)

    # `info` has the same numbers without those of pairs.
    info = json.loads(table("info", "--json")[1])
    assert (info["kind"], info["target"]) == (name.split()[0], "y")
    assert info["structure"] == whole["structure"]
    few = [row for row in estimates if len(row["of"] | row["given"]) <= 2]
    assert info["estimates"] == (few if name in ("aode", "a2de") else estimates)


def test_csv_has_a_row_for_each_estimate(nbspam, table, model):
    def csv_rows():
        status, out, err = table("export", "--format", "csv")
        assert (status, err) == (0, "")
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
    assert complains(nbspam("export", "--format", "csv"), 2, "'csv' is not one of 'jsonl', 'bogo")
    said = "'jsonl' is not one of 'json', 'csv'"
    assert complains(table("export", "--format", "jsonl"), 2, said)


def test_the_tree_and_its_information_are_shown(table, model, tmp_path, drawn):
    structure = trained(table, tmp_path / "t.csv", "tan")["structure"]
    out = table("info")[1]
    assert f"root        {structure['root']}\n" in out
    for edge in structure["edges"]:
        assert f"{edge['column']} <- {edge['parent']}" in out
        assert f"{edge['information']:.6f}\n" in out
    assert len(structure["edges"]) == 2
    assert len(structure["pairs"]) == 3
    last = structure["pairs"][-1]
    assert f"\n{', '.join(last['columns'])}" in out.split("not in the tree")[1]


def test_a_trees_root_is_a_column_or_all_of_them(table, model, tmp_path, drawn):
    for root in ("a", "b", "c"):
        assert (
            trained(table, tmp_path / "t.csv", "tan", "--root", root)["structure"]["root"] == root
        )
    whole = trained(table, tmp_path / "t.csv", "tan", "--root", "all")
    assert whole["structure"]["root"] is None
    assert "root        all columns; the mean over them\n" in table("info")[1]
    both = {(*e["of"], *e["given"]) for e in whole["estimates"] if len(e["given"]) == 2}
    assert len(both) == 4  # each of two edges in both directions


def test_the_parent_and_what_chose_it_are_shown(table, model, tmp_path, drawn):
    how = ("--target", "y", "--model", "spode")
    table("train", tmp_path / "t.csv", *how)
    structure = exported(table)["structure"]
    assert [row["column"] for row in structure["candidates"]] == ["a", "b", "c"]
    best = min(structure["candidates"], key=lambda row: (row["errors"], row["log_loss"]))
    assert structure["parent"] == best["column"]
    out = table("info")[1]
    assert f"parent      {best['column']}, chosen by leave-one-out cross-validation\n" in out
    assert f"{best['errors']}    {best['log_loss']:.4f}\n" in out
    table("train", tmp_path / "t.csv", *how, "--parent", "b")
    assert exported(table)["structure"] == {"parent": "b", "candidates": []}
    assert "parent      b\n" in table("info")[1]


def test_the_networks_arrows_and_score_are_shown(table, model, tmp_path, drawn):
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
        ",".join([*map(str, rng.integers(0, 40, 100)), f"class number {i % 20}"])
        for i in range(200)
    ]
    (tmp_path / "wide.csv").write_text("\n".join([f"{names},y", *rows]))
    shown = {}
    for how in ("categorical --discretise=width --bins=30", "multinomial", "gaussian", "tan"):
        table("train", tmp_path / "wide.csv", "--target", "y", "--model", *how.split())
        status, shown[how], err = table("info")
        assert (status, err) == (0, "")
        lines = shown[how].splitlines()
        assert max(map(columns, lines[1:])) <= 80  # but for the file's name
        assert len(lines) < 120
        assert "column      … and 80 more columns" in shown[how]
    assert "… 8 more rows\n" in shown["multinomial"]  # of P(y)
    assert "… 88 more rows and 16 more classes\n" in shown["multinomial"]
    assert "more of these tables\n" in shown["gaussian"]


def test_complement_prints_the_shares_of_the_other_classes(table, model, tmp_path):
    (tmp_path / "t.csv").write_text("apple,plum,y\n2,1,ham\n0,1,spam\n3,0,junk\n")
    # Of 6 words that are not in spam, 5 are apple.
    for name, label, given, n, share in (
        ("complement", "spam", "P(column | not y)", 5, (5 + 1) / (6 + 2)),
        ("multinomial", "ham", "P(column | y)", 2, (2 + 1) / (3 + 2)),
    ):
        estimates = trained(table, tmp_path / "t.csv", name)["estimates"]
        row = next(row for row in estimates if row["given"] == {"y": label})
        assert (row["of"], row["distribution"]) == ({"column": "apple"}, given)
        assert (row["count"], row["probability"]) == (n, pytest.approx(share))
