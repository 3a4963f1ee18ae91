"""The network as a classifier, and the questions one can put to it."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models.columns.categorical import CategoricalNB
from nbspam.models.columns.tan import TAN
from nbspam.models.network import structure
from nbspam.models.network.estimator import BayesianNetwork
from support import ROOT, examples

MELONS = ROOT / "corpora" / "watermelon-3.0.csv"
FIGURE = ROOT / "corpora" / "melon-network.json"
some = examples(15)
seeds = st.integers(0, 2**32 - 1)


def table(seed, missing=0.0):
    """Return codes, classes and numbers of values, with columns that hang together."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = rng.integers(8, 60), rng.integers(2, 5)
    levels = rng.integers(2, 4, n_columns)
    y = rng.integers(0, 2, n_rows)
    X = (rng.integers(0, 2, (n_rows, n_columns)).cumsum(axis=1) + y[:, None]) % levels
    X = X.astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, levels


@given(seeds, st.sampled_from(["mle", "mean", "map"]))
@some
def test_a_naive_network_is_naive_bayes(seed, estimate):
    X, y, levels = table(seed, missing=0.2)
    how = {"levels": levels, "estimate": estimate, "alpha": 1.5}
    naive = BayesianNetwork(start="naive", climb=False, **how).fit(X, y)
    plain = CategoricalNB(**how).fit(X, y)

    assert naive.parents_ == ((len(levels),),) * len(levels) + ((),)
    np.testing.assert_allclose(
        naive.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), rtol=1e-9
    )


@given(seeds)
@some
def test_without_smoothing_a_tree_network_is_tan(seed):
    X, y, levels = table(seed)
    tree = BayesianNetwork(levels=levels, climb=False, estimate="mle").fit(X, y)
    tan = TAN(levels=levels, estimate="mle").fit(X, y)

    # Of what was seen, all of it: there the direction of an edge is all the same, and so is
    # which of several heaviest trees was found.
    rows = np.arange(len(y))
    likelihood = [model.predict_joint_log_proba(X)[rows, y].sum() for model in (tree, tan)]
    assert likelihood[0] == pytest.approx(likelihood[1])


@given(seeds)
@some
def test_a_network_spreads_one_over_all_rows_and_missing_values_are_summed_over(seed):
    X, y, levels = table(seed, missing=0.1)
    model = BayesianNetwork(levels=levels, criterion="aic").fit(X, y)
    every = np.array(list(product(*map(range, levels))), float)
    joint = np.exp(model.predict_joint_log_proba(every))
    assert joint.sum() == pytest.approx(1)

    ask = X.copy()
    ask[:, 0] = np.nan
    by_model = np.exp(model.predict_joint_log_proba(ask))
    for row, of_row in zip(ask, by_model, strict=True):
        fits = ((every == row) | np.isnan(row)).all(axis=1)
        np.testing.assert_allclose(of_row, joint[fits].sum(axis=0), rtol=1e-9)


def test_binary_columns_are_columns_of_two_values():
    X, y, _ = table(5)
    present = X > 0
    two = BayesianNetwork(levels=[2] * X.shape[1]).fit(present.astype(float), y)
    binary = BayesianNetwork().fit(X, y)

    assert binary.parents_ == two.parents_
    assert (binary.predict_proba(X) == two.predict_proba(present.astype(float))).all()


def test_learning_more_looks_for_the_graph_again():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 400)
    X = np.stack([first, first ^ (rng.random(400) < 0.1)], axis=1)
    y = rng.integers(0, 2, 400)
    model = BayesianNetwork(levels=[2, 2], start="empty")
    few = model.partial_fit(X[:1], y[:1], classes=[0, 1]).parents_
    all_of_them = model.partial_fit(X[1:], y[1:]).parents_

    assert few == ((), (), ())
    assert sum(map(len, all_of_them)) == 1
    assert model.unlearn(X[1:], y[1:]).parents_ == few


def test_rows_are_kept_once_however_often_they_were_seen():
    model = BayesianNetwork().fit([[0, 1]] * 500 + [[1, 1]] * 500, [0] * 500 + [1] * 500)

    assert model.rows_.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert model.row_count_.tolist() == [500, 500]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"start": "best"}, "start: 'best' is none of tree, naive, empty"),
        ({"criterion": "r2"}, "score: 'r2' is none of"),
        ({"max_parents": 0}, "max_parents: 0 is not a number from 1 up"),
        ({"levels": [2, 2]}, "column 1 has a code above 1"),
    ],
)
def test_parameters_that_cannot_be(how, words):
    with pytest.raises(UsageError, match=words):
        BayesianNetwork(**how).fit([[0, 1], [1, 2]], [0, 1])


def test_more_parents_than_memory_allow_name_the_size(monkeypatch):
    X, y, levels = table(3)
    monkeypatch.setattr(structure, "MAX_CELLS", 4)
    with pytest.raises(UsageError, match="more than 32 bytes"):
        BayesianNetwork(levels=levels, max_parents=4).fit(X, y)


# --- the command line --------------------------------------------------------------------


@pytest.fixture
def melons(nbspam, model):
    status, out, _ = nbspam("train", MELONS, "--target", "好瓜", "--model", "network")
    assert status == 0
    assert "learned 好瓜 by network" in out
    return model


def test_a_network_classifies_explains_and_is_evaluated(nbspam, melons):
    out = nbspam("classify", MELONS)[1]

    assert [line.split("\t")[0] for line in out.splitlines()].count("是") > 4
    assert nbspam("explain", MELONS)[0] == 0
    assert nbspam("info")[0] == 0
    how = ("--model", "network", "--criterion", "aic", "--start", "naive", "--max-parents", "2")
    status, out, _ = nbspam("eval", MELONS, "--target", "好瓜", "--cv", "4", *how)
    assert status == 0
    assert "accuracy" in out


def test_a_network_of_tokens_classifies_mail(nbspam, mails, model):
    how = ("--model", "network", "--features", "12", "--no-climb")
    assert nbspam("train", mails, *how)[0] == 0
    verdicts = nbspam("predict", mails / "spam")[1].split()

    assert verdicts.count("spam") > 70
    structure = nbspam("query", model)[1].splitlines()
    assert structure[-1] == "class"
    assert len(structure) == 13
    token = structure[0].split("\t")[0]
    status, out, _ = nbspam("query", model, "--evidence", f"{token}=present", "--target", "class")
    assert status == 0
    assert out.splitlines()[1].startswith("ham\t")


def test_the_textbooks_five_independences(nbspam):
    """Zhou, figure 7.4; x1 … x5 are good melon, sweetness, sound, colour, root."""
    x = {1: "好瓜", 2: "甜度", 3: "敲声", 4: "色泽", 5: "根蒂"}
    for a, b, c in ((3, 4, 1), (4, 5, 2), (3, 2, 1), (3, 5, 1), (3, 5, 2)):
        result = nbspam("query", FIGURE, "--independent", x[a], x[b], "--evidence", x[c])
        assert result == (0, "independent\n", "")
    assert nbspam("query", FIGURE, "--independent", x[1], x[2])[1] == "independent\n"
    common_effect = nbspam("query", FIGURE, "--independent", x[1], x[2], x[4], "--json")[1]
    assert json.loads(common_effect) == {"independent": False}


def test_the_textbooks_table_of_roots(nbspam):
    out = nbspam("query", FIGURE, "--evidence", "甜度=高", "--target", "根蒂")[1]

    assert out == "根蒂\tprobability\n硬挺\t0.100000\n蜷缩\t0.900000\n"


def test_evidence_may_follow_in_words_of_its_own(nbspam):
    # P(good | dull, green) by hand: sums over sweetness, times .5 cancels.
    good = 0.25 * (0.4 * 0.5 + 0.6 * 0.4)
    bad = 0.35 * (0.4 * 0.3 + 0.6 * 0.2)
    out = nbspam(
        "query", FIGURE, "--evidence", "敲声=沉闷", "色泽=青绿", "--target", "好瓜", "--json"
    )[1]

    answer = json.loads(out)
    assert answer["rows"][0] == {"好瓜": "是", "probability": pytest.approx(good / (good + bad))}
    assert np.exp(answer["log_evidence"]) == pytest.approx((good + bad) / 2)


def test_samples_are_near_and_say_how_near(nbspam):
    question = ("query", FIGURE, "--evidence", "敲声=沉闷", "--target", "好瓜", "--target", "甜度")
    exact = json.loads(nbspam(*question, "--json")[1])
    sampled = json.loads(nbspam(*question, "--gibbs", "20000", "--json")[1])

    for one, other in zip(exact["rows"], sampled["rows"], strict=True):
        assert abs(one["probability"] - other["probability"]) < 5 * other["standard_error"]
    assert sampled["r_hat"] < 1.1
    assert sampled["samples"] == 20_000
    shown = nbspam(*question, "--gibbs", "20000")[1]
    assert shown.startswith("好瓜\t甜度\tprobability\tstandard error\n")
    assert "R-hat 1.0" in shown


def test_structure_as_lines_dot_and_json_that_can_be_asked_again(nbspam, melons, tmp_path):
    lines = nbspam("query", FIGURE)[1].splitlines()
    assert lines[3] == "色泽\t<-\t好瓜, 甜度"
    assert '"甜度" -> "根蒂";' in nbspam("query", FIGURE, "--dot")[1]
    assert '"好瓜" -- "甜度";' in nbspam("query", FIGURE, "--dot", "--moral")[1]
    assert "好瓜\t-\t甜度\n" in nbspam("query", FIGURE, "--moral")[1]

    (tmp_path / "again.json").write_text(nbspam("query", melons, "--json")[1])
    question = ("--evidence", "敲声=沉闷", "--target", "好瓜")
    again = nbspam("query", tmp_path / "again.json", *question)
    assert again == nbspam("query", melons, *question)


def test_a_number_is_evidence_for_its_interval(nbspam, model, tmp_path):
    rows = "\n".join(f"{x / 40},{'yes' if x > 20 else 'no'}" for x in range(40))
    (tmp_path / "t.csv").write_text(f"size,ripe\n{rows}\n")
    assert nbspam("train", tmp_path / "t.csv", "--target", "ripe", "--model", "network")[0] == 0
    out = nbspam("query", model, "--evidence", "size=0.9", "--target", "ripe", "--json")[1]

    assert json.loads(out)["rows"][1]["probability"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([FIGURE, "--evidence", "大小=1", "--target", "好瓜"], 2, "evidence '大小': no such"),
        ([FIGURE, "--evidence", "敲声=x", "--target", "好瓜"], 2, "敲声=x: no such value"),
        ([FIGURE, "--evidence", "敲声", "--target", "好瓜"], 2, "敲声: not NAME=VALUE"),
        ([FIGURE, "--target", "x"], 2, "target 'x': no such variable"),
        ([FIGURE, "--target", "好瓜", "--target", "好瓜"], 2, "name each once"),
        ([FIGURE, "--target", "好瓜", "好瓜=是"], 2, "among the evidence"),
        ([FIGURE, "--target", "好瓜", "甜度=高", "甜度=低"], 2, "has a value already"),
        ([FIGURE, "甜度=高"], 2, "say --target NAME too"),
        ([FIGURE, "--gibbs", "100"], 2, "say --target NAME too"),
        ([FIGURE, "--target", "好瓜", "--gibbs", "3"], 2, "--gibbs 3: too few"),
        ([FIGURE, "--independent", "好瓜", "好瓜"], 2, "name two"),
        (["no.json"], 1, "no.json: No such file"),
        ([MELONS], 1, "not a model"),
    ],
)
def test_questions_that_cannot_be_answered(nbspam, arguments, status, words):
    code, out, err = nbspam("query", *arguments)

    assert (code, out, err.count("\n")) == (status, "", 1), err
    assert words in err


def test_files_that_hold_no_network(nbspam, trained, tmp_path):
    (tmp_path / "broken.json").write_text('{"variables": [')
    (tmp_path / "other.json").write_text("[1, 2]")
    for path, status, words in (
        (tmp_path / "broken.json", 1, "not JSON"),
        (tmp_path / "other.json", 2, "not a network"),
        (trained, 2, "another kind of model"),
    ):
        code, _, err = nbspam("query", path)
        assert (code, err.count("\n")) == (status, 1), err
        assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "tan", "--criterion", "aic"], "--criterion"),
        (["--model", "network", "--max-parents", "0"], "max-parents"),
    ],
)
def test_options_of_networks_alone(nbspam, model, arguments, words):
    code, _, err = nbspam("train", MELONS, "--target", "好瓜", *arguments)

    assert code == 2
    assert words in err


def test_the_size_of_tables_beyond_memory_is_said(nbspam, mails, model):
    how = ("--model", "network", "--features", "40", "--max-parents", "39")
    code, _, err = nbspam("train", mails, *how)

    assert (code, err.count("\n")) == (2, 1)
    assert "a table of 39 parents would need 8 TiB, more than 512 MiB" in err
    assert not model.exists()


def test_a_token_called_class_is_told_from_the_class(nbspam, model, tmp_path):
    rows = ['{"label": "a", "text": "class"}', '{"label": "b", "text": "other"}'] * 5
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    assert nbspam("train", tmp_path / "t.jsonl", "--model", "network")[0] == 0
    names = [line.split("\t")[0] for line in nbspam("query", model)[1].splitlines()]

    assert sorted(names) == ["class", "class#2", "other"]
