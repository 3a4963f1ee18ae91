"""Intervals and folds against scipy, scikit-learn and their own promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.corpus import bootstrap_interval, compare_folds, stratified_folds
from nbspam.errors import UsageError
from nbspam.evaluation.metrics import auc


def test_bootstrap_interval_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(0).exponential(size=50)
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=200, method="percentile", rng=np.random.default_rng(7)
    ).confidence_interval
    interval = bootstrap_interval(np.mean, (values,), np.random.default_rng(7), n_resamples=200)
    assert interval == pytest.approx([expected.low, expected.high], rel=1e-12)


def test_bootstrap_resamples_arrays_together_and_in_order():
    def paired(a, b):
        assert (a == b).all()
        assert (np.diff(a) >= 0).all()
        return a.mean()

    x = np.arange(30)
    low, high = bootstrap_interval(paired, (x, x), np.random.default_rng(0), n_resamples=50)
    assert 0 < low < 14.5 < high < 29


def test_bootstrap_of_an_array_is_the_bootstrap_of_each_entry():
    x = np.random.default_rng(0).normal(size=40)
    together, mean, high = (
        bootstrap_interval(statistic, (x,), np.random.default_rng(1), 100)
        for statistic in (lambda v: [v.mean(), v.max()], np.mean, np.max)
    )
    assert together.T.tolist() == [mean.tolist(), high.tolist()]


def test_bootstrap_leaves_out_resamples_without_an_answer():
    y, score = np.array([0, 1]), np.array([0.0, 1.0])
    assert bootstrap_interval(auc, (y, score), np.random.default_rng(0), 50).tolist() == [1, 1]
    none = bootstrap_interval(auc, (y[:1], score[:1]), np.random.default_rng(0), 50)
    assert np.isnan(none).all()


@pytest.mark.slow
def test_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval(np.mean, (rng.normal(size=40),), rng, 100, level=0.8)
        hits += low <= 0 <= high
    # 160 expected, standard deviation 5.7; small samples cover a little less.
    assert 135 <= hits <= 180


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_equal_scikit_learn(seed):
    selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(seed)
    y = rng.choice(["spam", "ham", "unsure"], rng.integers(30, 200), p=[0.3, 0.6, 0.1])
    k = int(rng.integers(2, 6))
    folds = stratified_folds(y, k, np.random.RandomState(seed))
    splits = selection.StratifiedKFold(k, shuffle=True, random_state=seed).split(y, y)
    for fold, (_, test) in enumerate(splits):
        assert np.flatnonzero(folds == fold).tolist() == test.tolist()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
def test_folds_are_balanced_within_one_document(y, data):
    k = data.draw(st.integers(2, len(y)))
    folds = stratified_folds(y, k, np.random.default_rng(0))
    for members in [folds, *(folds[np.array(y) == c] for c in set(y))]:
        sizes = np.bincount(members, minlength=k)
        assert len(sizes) == k
        assert np.ptp(sizes) <= 1


@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
def test_two_seeds_give_two_foldings_and_one_seed_gives_one(generator):
    y = np.arange(50) % 2
    first, again, other = (stratified_folds(y, 5, generator(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("k", [-1, 0, 1, 4])
def test_impossible_numbers_of_folds_are_refused(k):
    with pytest.raises(UsageError, match="folds of 3 documents; give 2 to 3"):
        stratified_folds([0, 1, 1], k, np.random.default_rng(0))


def test_compare_folds_counts_lower_cost_as_won_and_rounding_as_tied():
    assert compare_folds([1, 0.1 + 0.2, 3, 0], [2, 0.3, 1, 0]) == (1, 2, 1)
    assert compare_folds([np.nan, 1], [np.nan, 2]) == (1, 1, 0)
