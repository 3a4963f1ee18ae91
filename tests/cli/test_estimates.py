"""Estimates of table models on the command line: priors, declared values, a single class."""

import json
from fractions import Fraction
from itertools import product
from math import log

import pytest

from support import LIHANG, complains, steps_of

TOSSES = "toss,coin\n" + "".join(f"{side},one\n" for side in ("h", "h", "t", "h", "t"))


def factors(table, *rows):
    """Return the factors of the last row, each by class."""
    return [step["factor"] for step in steps_of(table, *rows)]


@pytest.fixture
def tosses(tmp_path):
    path = tmp_path / "tosses.csv"
    path.write_text(TOSSES)
    return path


# --- one class ---


def test_five_tosses_of_one_coin_are_a_table(table, model, tosses):
    status, _, err = table("train", tosses, "--target", "coin", "--estimate", "mle")
    said = "the target 'coin' is 'one' in every row: one class, which every row will get"
    assert (status, err) == (0, f"nbspam: {said}\n")
    assert factors(table, "toss", "h") == [{"one": 1.0}, {"one": pytest.approx(3 / 5)}]
    assert table("classify", stdin=b"toss\nt\n") == (0, "one\t1.000000\t-#1\n", "")
    assert table("eval", tosses)[1].startswith("5 of 5 right")
    refused = table("explain", stdin=b"toss\nt\n")
    assert complains(refused, 2, "one is the model's only class", "--factors")


# --- priors ---


def test_a_prior_without_a_column_is_for_all_columns_of_as_many_values(table, model, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,y\n0,1,u,p\n1,1,v,p\n0,0,w,q\n")
    how = ("--target", "y", "--dirichlet", "2,5", "--dirichlet", "b=1,1")
    assert table("train", tmp_path / "t.csv", *how)[0] == 0
    assert "prior       a 2, 5\nprior       b 1, 1\n\nP(y)" in table("info")[1]
    prior, a, b, c = factors(table, "1,1,u")
    assert prior == pytest.approx({"p": 3 / 5, "q": 2 / 5})  # the classes are no column
    assert a == pytest.approx({"p": (1 + 5) / (2 + 7), "q": (0 + 5) / (1 + 7)})
    assert b == pytest.approx({"p": (2 + 1) / (2 + 2), "q": (0 + 1) / (1 + 2)})
    assert c == pytest.approx({"p": (1 + 1) / (2 + 3), "q": (0 + 1) / (1 + 3)})


@pytest.mark.parametrize(
    "name", ["mixed", "spode", "tan", "aode", "a2de", "network --start=naive --no-climb"]
)
def test_every_model_of_columns_takes_such_priors(table, model, name):
    how = ("--target", "Y", "--model", *name.split(), "--dirichlet")
    posteriors = []
    for prior in ("X2=1,1,1", "X2=1,9,1"):
        assert table("train", LIHANG, *how, prior)[0] == 0
        rows = [",".join(row) for row in product("123", "SML")]
        out = table("classify", "--json", stdin="\n".join(["X1,X2", *rows]).encode())[1]
        posteriors.append([json.loads(line)["posterior"] for line in out.splitlines()])
    assert posteriors[0] != posteriors[1]


# --- declared values ---


def test_a_declared_value_counts_though_it_never_occurs(table, model, tosses):
    """S_j = 3 and K = 2: (3 + 1) / (5 + 3), (5 + 1) / (5 + 2); class two has only the prior."""
    how = ("--target", "coin", "--values", "toss=h,t,edge", "--values", "coin=one,two")
    assert table("train", tosses, *how)[::2] == (0, "")
    prior, value = factors(table, "toss", "h")
    assert prior == pytest.approx({"one": 6 / 7, "two": 1 / 7})
    assert value == pytest.approx({"one": 4 / 8, "two": 1 / 3})
    # It is no unknown value: it has a probability, and there is no warning.
    edge = factors(table, "toss", "edge")
    assert edge[1] == pytest.approx({"one": 1 / 8, "two": 1 / 3})
    status, out, err = table("eval", tosses, *how, "--cv", "5", "--json")
    assert (status, err) == (0, "")
    # Each fold leaves one toss out: -log P(one | toss), worked out by hand.
    log_loss = json.loads(out)["log_loss"]
    heads, tails = ((Fraction(5, 6) * Fraction(n, 7), Fraction(1, 6) / 3) for n in (3, 2))
    likely = [float(own / (own + other)) for own, other in (heads, tails)]
    assert log_loss == pytest.approx(-(3 * log(likely[0]) + 2 * log(likely[1])) / 5)


def test_declared_values_keep_their_order_and_may_hold_commas(table, model, tmp_path):
    (tmp_path / "t.csv").write_text('size,y\nlarge,a\n"small, or so",b\n')
    how = ("--target", "y", "--values", 'size="small, or so",medium,large')
    assert table("train", tmp_path / "t.csv", *how, "--dirichlet", "size=1,2,4")[0] == 0
    assert factors(table, "size", "medium")[1] == pytest.approx({"a": 2 / 8, "b": 2 / 8})
    assert factors(table, "size", "large")[1] == pytest.approx({"a": 5 / 8, "b": 4 / 8})
