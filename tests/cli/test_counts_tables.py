"""Tables of counts: Bernoulli, multinomial and complement naive Bayes by name."""

import json

import numpy as np
import pytest

from nbspam.models import estimator_class
from support import complains

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
    status, out, err = table("explain", "--factors", "--json", stdin=stdin)
    assert (status, err) == (0, "")
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
def test_answers_are_those_of_the_model_of_tokens(table, model, tmp_path, name):
    """Which are those of scikit-learn: tests/models/test_token_models.py."""
    X, y, asked = drawn(tmp_path)
    trained(table, tmp_path / "t.csv", name, "--alpha", "0.3")
    peer = estimator_class(name)(alpha=0.3).fit(X, y)
    np.testing.assert_allclose(posteriors(table, asked), peer.predict_proba(asked))
    how = ("--target=y", f"--model={name}", "--cv=4")
    assert " of 40 right" in table("eval", tmp_path / "t.csv", *how)[1]


def drawn(folder):
    """Write a table of counts of three classes; return its rows, its classes and more rows."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X, asked = rng.poisson(1 + np.arange(5) % 3 * y[:, None]), rng.poisson(2, (20, 5))
    rows = [f"{','.join(map(str, row))},{label}" for row, label in zip(X.tolist(), y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["a,b,c,d,e,y", *rows]))
    return X, y, asked


def posteriors(table, asked):
    lines = ["a,b,c,d,e", *(",".join(map(str, row)) for row in asked.tolist())]
    out = table("classify", "--json", stdin="\n".join(lines).encode())[1]
    return [list(json.loads(line)["posterior"].values()) for line in out.splitlines()]


@pytest.mark.parametrize("name", ["bernoulli", "multinomial", "complement"])
def test_cells_that_count_nothing_are_refused(table, model, texts, tmp_path, name):
    how = ("--target", "y", "--model", name)
    for cell in ("-1", "much"):
        (tmp_path / "bad.csv").write_text(TEXTS.replace("2,1", f"{cell},1"))
        result = table("train", tmp_path / "bad.csv", *how)
        assert complains(result, 1, f"bad.csv#1: apple is '{cell}', not a count from 0 up")
    trained(table, texts, name)
    for command in ("classify", "explain", "explain --factors"):
        result = table(*command.split(), stdin=f"{NAMES}\n0,-3,0,0\n".encode())
        assert complains(result, 1, "skipped -#1: pear is '-3', not a count")
    for option in ("--numeric", "--categorical"):
        result = table("train", texts, *how, option, "pear")
        assert complains(result, 2, "all columns hold counts", "pear holds something else")
    result = table("train", texts, *how, "--discretise", "mdl")
    assert complains(result, 2, "--discretise", "numbers as they are")


def test_a_row_of_thousands_of_words_is_explained(table, model, tmp_path):
    """Step by step, but not in one matrix of all steps."""
    rng = np.random.default_rng(0)
    names = [f"w{i}" for i in range(1500)]
    rows = [",".join(map(str, [*rng.poisson(0.1, 1500).tolist(), i % 2])) for i in range(6)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([*names, "y"]), *rows]))
    out = trained(table, tmp_path / "wide.csv", "multinomial")
    assert "  … and 1,480 more columns\nlearned y" in out
    status, out, err = table("explain", "--json", "-n", "2000", stdin=rows[0].encode())
    assert (status, err) == (0, "")
    values = json.loads(out)
    shares = [row["contribution"] for row in values["tokens"]]
    assert values["constant"] + sum(shares) == pytest.approx(values["score"])
