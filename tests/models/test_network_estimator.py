"""A Bayesian network as a classifier agrees with naive Bayes, TAN and brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import TAN, BayesianNetwork, CategoricalNB
from nbspam.models.network.questions import network_of_tokens
from support import examples

some = examples(15)
seeds = st.integers(0, 2**32 - 1)


def table(seed, missing=0.0):
    """Return codes, classes and levels of dependent columns."""
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
def test_without_smoothing_a_tree_network_is_as_likely_as_tan(seed):
    X, y, levels = table(seed)
    tree = BayesianNetwork(levels=levels, climb=False, estimate="mle").fit(X, y)
    tan = TAN(levels=levels, estimate="mle").fit(X, y)

    # On the training rows the likelihood depends neither on the direction of the edges nor on
    # which of several heaviest trees was found.
    rows = np.arange(len(y))
    likelihood = [model.predict_joint_log_proba(X)[rows, y].sum() for model in (tree, tan)]
    assert likelihood[0] == pytest.approx(likelihood[1])


@given(seeds)
@some
def test_joint_probabilities_sum_to_one_and_missing_values_are_summed_over(seed):
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


def test_binary_columns_equal_columns_of_two_values():
    X, y, _ = table(5)
    present = X > 0
    two = BayesianNetwork(levels=[2] * X.shape[1]).fit(present.astype(float), y)
    binary = BayesianNetwork().fit(X, y)

    assert binary.parents_ == two.parents_
    assert (binary.predict_proba(X) == two.predict_proba(present.astype(float))).all()


def test_the_graph_is_searched_anew_whenever_rows_are_learnt_or_unlearnt():
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


def test_equal_rows_are_kept_once_with_their_weight():
    model = BayesianNetwork().fit([[0, 1]] * 500 + [[1, 1]] * 500, [0] * 500 + [1] * 500)

    assert model.rows_.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert model.row_count_.tolist() == [500, 500]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"start": "best"}, "start: 'best' is unknown; choose from tree, naive, empty"),
        ({"criterion": "r2"}, "criterion: 'r2' is unknown"),
        ({"max_parents": 0}, "max_parents: 0 is not a number from 1 up"),
        ({"levels": [2, 2]}, "column 1 has a code above 1"),
    ],
)
def test_invalid_parameters_are_refused(how, words):
    with pytest.raises(UsageError, match=words):
        BayesianNetwork(**how).fit([[0, 1], [1, 2]], [0, 1])


def test_max_parents_beyond_the_memory_limit_is_refused_with_the_size():
    model = BayesianNetwork(levels=[500] * 4, start="empty", max_parents=3)
    with pytest.raises(UsageError, match="3 parents would need 466 GiB, more than 512 MiB"):
        model.fit([[0, 1, 2, 3], [1, 1, 2, 3]], [0, 1])


def test_equal_tokens_and_a_token_called_class_get_distinct_names():
    model = BayesianNetwork(climb=False).fit([[0, 1, 1], [1, 0, 1]], ["ham", "spam"])
    network = network_of_tokens(model, ["class", "free", "free"], ["ham", "spam"]).network

    assert network.names == ("class#2", "free", "free#2", "class")
    assert network.states == (("absent", "present"),) * 3 + (("ham", "spam"),)
