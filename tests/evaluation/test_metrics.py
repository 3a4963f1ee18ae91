"""Measures against scikit-learn, brute force and hand-worked examples."""

import numpy as np
import pytest
from scipy import stats

from nbspam.evaluation import metrics
from nbspam.evaluation.metrics import auc, bootstrap_interval, expected_calibration_error, lam

sklearn = pytest.importorskip("sklearn.metrics")
SEEDS = range(5)
EXACT = {"rel": 1e-12, "abs": 1e-12}

# Ham -2 -1 0 0 3, spam 0 1 2: ties at 0 across the classes.  Of the 15 pairs spam is
# above in 3 * 4 - 2 = 10 and level in 2, so that AUC = 11 / 15.
Y = np.array([0, 0, 0, 0, 0, 1, 1, 1])
SCORE = np.array([-2.0, -1, 0, 0, 3, 0, 1, 2])


def scored(seed):
    """Return (y_true, score) with both classes and many ties."""
    rng = np.random.default_rng(seed)
    y = np.append([0, 1], rng.integers(0, 2, 60))
    return y, np.round(rng.normal(size=62) + y, 1)


def probabilities(seed, n_classes):
    """Return (y_true, probability), with some rows certain and some certainly wrong."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.4), 80)
    p[:6] = np.eye(n_classes)[rng.integers(0, n_classes, 6)]
    return np.append(np.arange(n_classes), rng.integers(0, n_classes, 80 - n_classes)), p


def log_loss(y, probability):
    return metrics.log_losses(np.asarray(y), metrics.columns(probability)).mean()


def brier(y, probability):
    return metrics.brier_losses(np.asarray(y), metrics.columns(probability)).mean()


def sm_at_hm(y, score, hm=metrics.HM):
    return metrics.least_missed(*metrics.roc_counts(y, score)[:2], hm)


# Labels


# A filter that calls 1 of 100 ham spam and 4 of 20 spam ham.
CONFUSION = np.array([[99, 1], [4, 16]])


def test_rates_are_shares_of_their_own_class_and_lam_their_mean_in_odds():
    assert metrics.error_rates(CONFUSION) == (1 / 100, 4 / 20)
    # Odds 1/99 and 4/16; the mean of logits is the geometric mean of odds.
    odds = (1 / 99 * 4 / 16) ** 0.5
    assert lam(CONFUSION) == pytest.approx(odds / (1 + odds), **EXACT)
    # Moved by half a message 0 of 10 becomes 1/20, odds 1/19; 4 of 4 becomes 7/8, odds 7.
    odds = (1 / 19 * 7) ** 0.5
    assert lam(np.array([[10, 0], [4, 0]])) == pytest.approx(odds / (1 + odds), **EXACT)
    # The mean of two equal rates is surer by the root of 2.  0 of 10 may be 0, or above .2.
    ends = np.array(metrics.share_interval(4, 20))
    odds = 1 / 4 * (4 * ends / (1 - ends)) ** 0.5**0.5
    found = metrics.lam_interval(np.array([[16, 4], [4, 16]]))
    assert found == pytest.approx(tuple(odds / (1 + odds)), **EXACT)
    assert metrics.lam_interval(np.array([[10, 0], [4, 16]]))[0] == 0
    # Rates of a class that is absent are unknown.
    no_ham = np.array([[0, 0], [1, 2]])
    assert np.isnan(lam(no_ham))
    assert metrics.error_rates(no_ham) == pytest.approx((np.nan, 1 / 3), nan_ok=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_roc_curve_and_auc_equal_those_of_scikit_learn(seed):
    y, score = scored(seed)
    expected = sklearn.roc_curve(y, score, drop_intermediate=False)
    ham, spam, cutoffs = metrics.roc_counts(y, score)
    for ours, theirs in zip((ham / ham[-1], spam / spam[-1], cutoffs), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert auc(y, score) == pytest.approx(sklearn.roc_auc_score(y, score), **EXACT)


def test_auc_counts_a_tie_as_half_a_win():
    assert auc(Y, SCORE) == 11 / 15
    assert auc([0, 0, 1, 1], [-np.inf, np.inf, np.inf, np.inf]) == 0.75


@pytest.mark.parametrize("seed", SEEDS)
def test_sm_at_hm_is_the_best_cutoff_found_by_trying_all(seed):
    y, score = scored(seed)
    for hm in (0, 0.001, 0.1, 0.29, 0.5, 1):
        missed = [
            np.mean(score[y == 1] < cutoff)
            for cutoff in [*score, np.inf]
            if np.mean(score[y == 0] >= cutoff) <= hm
        ]
        assert sm_at_hm(y, score, hm) == pytest.approx(min(missed), **EXACT)
    # Losing 1 ham of 5 (the one at 3) allows every cutoff above 0: spam at 0 is missed.
    assert sm_at_hm(Y, SCORE, hm=0.2) == pytest.approx(1 / 3)
    assert sm_at_hm(Y, SCORE) == 1
    assert np.isnan(sm_at_hm([1, 1], [0.0, 1.0]))  # without ham it is unknown


# Probabilities


@pytest.mark.parametrize("seed", SEEDS)
def test_log_loss_and_brier_equal_scikit_learn(seed):
    for n_classes in (2, 3, 7):
        y, p = probabilities(seed, n_classes)
        assert log_loss(y, p) == pytest.approx(sklearn.log_loss(y, p), **EXACT)
        one = p[:, 1] if n_classes == 2 else p
        assert brier(y, p) == pytest.approx(sklearn.brier_score_loss(y, one), **EXACT)


def test_certainty_keeps_losses_finite_and_one_column_means_class_one_of_two():
    assert log_loss([1], [0.0]) == pytest.approx(-np.log(2.0**-52))
    assert brier([0], [1e-9]) == pytest.approx(1e-18, rel=1e-6)
    y, p = probabilities(0, 2)
    for score in (log_loss, brier, expected_calibration_error):
        assert score(y, p[:, 1]) == pytest.approx(score(y, p), **EXACT)


def test_reliability_bins_follow_class_one_of_two_and_the_top_class_of_more():
    # Fifteen bins: 0.61 and 0.65 share (9/15, 10/15], 1/15 is the edge of the lowest.
    bins = metrics.reliability_bins([1, 0, 0], [0.61, 0.65, 1 / 15])
    assert bins.n_docs.tolist() == [1, 2]
    assert bins.confidence == pytest.approx([1 / 15, 0.63])
    assert bins.frequency == pytest.approx([0, 0.5])
    assert expected_calibration_error([1, 0, 0], [0.61, 0.65, 1 / 15]) == pytest.approx(
        (1 * 1 / 15 + 2 * 0.13) / 3
    )

    p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.0, 0.9]]
    bins = metrics.reliability_bins([0, 2, 2], p, n_bins=10)
    assert bins.n_docs.tolist() == [2, 1]
    assert bins.confidence == pytest.approx([0.7, 0.9])
    assert bins.frequency.tolist() == [0.5, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_calibration_error_equals_its_definition(seed):
    y, p = probabilities(seed, 4)
    confidence, hit = p.max(axis=1), p.argmax(axis=1) == y
    error = 0.0
    for b in range(15):
        inside = (confidence > b / 15) & (confidence <= (b + 1) / 15)
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - hit[inside].mean())
    assert expected_calibration_error(y, p) == pytest.approx(error, **EXACT)
    assert expected_calibration_error([0, 1], [0.0, 1.0]) == 0
    assert np.isnan(expected_calibration_error([], np.empty((0, 2))))


# Resamples and folds


def test_wilson_intervals_equal_scipy():
    for k, n in ((0, 9), (1, 10), (7, 70), (50, 50)):
        expected = stats.binomtest(k, n).proportion_ci(method="wilson")
        assert metrics.share_interval(k, n) == pytest.approx([*expected], abs=1e-4)
    assert metrics.share_interval(0, 0) == (0, 1)


def test_bootstrap_interval_equals_scipy_and_keeps_the_order_of_the_documents():
    def ordered_mean(x):
        assert (np.diff(x) >= 0).all()
        return x.mean()

    values = np.sort(np.random.default_rng(0).exponential(size=50))
    rng = np.random.default_rng(7)  # called random_state in SciPy 1.13, too
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=200, method="percentile", random_state=rng
    ).confidence_interval
    interval = bootstrap_interval(ordered_mean, values, np.random.default_rng(7), n_resamples=200)
    assert interval == pytest.approx([expected.low, expected.high], rel=1e-12)


def test_bootstrap_of_an_array_is_that_of_each_entry_and_leaves_out_what_has_no_answer():
    x = np.random.default_rng(0).normal(size=40)
    together, mean, high = (
        bootstrap_interval(statistic, x, np.random.default_rng(1), 100)
        for statistic in (lambda v: [v.mean(), v.max()], np.mean, np.max)
    )
    assert together.T.tolist() == [mean.tolist(), high.tolist()]

    def of(documents):  # a ham and a spam, numbered as they score
        return bootstrap_interval(lambda x: auc(x, x), documents, np.random.default_rng(0), 50)

    assert of(np.arange(2)).tolist() == [1, 1]
    assert np.isnan(of(np.arange(1))).all()


def test_compare_folds_counts_lower_cost_as_won_and_rounding_as_tied():
    assert metrics.compare_folds([1, 0.1 + 0.2, 3, 0], [2, 0.3, 1, 0]) == (1, 2, 1)
    assert metrics.compare_folds([np.nan, 1], [np.nan, 2]) == (1, 1, 0)
