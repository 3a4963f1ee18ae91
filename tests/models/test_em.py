"""EM gives the numbers of the textbooks' coins and has the properties that theory proves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import BernoulliNB, MultinomialNB
from nbspam.models.em import AT_CONVERGENCE, Stopping, UnlabelledDocuments, climb, mixture
from support import examples

ONCE = Stopping(most=1)
EXACTLY = Stopping(change=0.0, gain=0.0)
# Five rounds of five tosses of an unknown coin (a common teaching example): heads, tails.
TOSSES = np.array([[3, 2], [2, 3], [1, 4], [3, 2], [2, 3]])


def expectation_maximization(
    start, X, known=None, weight=1.0, hard=False, stopping=AT_CONVERGENCE
):
    data = UnlabelledDocuments(start, start.classes_, X, known, weight, hard)
    return climb(start, data, stopping)


def mixture_of(like, X, k, restarts=5):
    data = UnlabelledDocuments(like, np.arange(k), X)
    return mixture(data, k, np.random.default_rng(0), restarts)


def two_coins(one, two):
    """Return a model of two equally likely coins with these probabilities of heads."""
    heads = np.array([one, two])
    counts = np.stack([heads, 1 - heads], axis=1)
    return MultinomialNB.from_counts([1, 1], counts, [1, 2], alpha=0, class_prior="uniform")


def test_one_soft_round_on_two_coins_gives_the_textbooks_numbers():
    fit = expectation_maximization(two_coins(0.2, 0.7), TOSSES, stopping=ONCE)

    first = 0.00512 / (0.00512 + 0.03087)
    assert fit.responsibility[0] == pytest.approx([first, 1 - first], rel=1e-3)
    assert fit.responsibility[0].round(2).tolist() == [0.14, 0.86]
    # The notes continue with shares rounded to two digits: 4.22 heads of 12.20 tosses.
    assert fit.responsibility[:, 0].round(2) @ TOSSES == pytest.approx([4.22, 7.98])
    p1 = np.exp(fit.model.feature_log_prob_)[0, 0]
    assert round(p1, 2) == round(4.22 / 12.20, 2) == 0.35
    # With hard shares the second coin takes the first and the fourth round.
    fit = expectation_maximization(two_coins(0.2, 0.7), TOSSES, hard=True, stopping=ONCE)
    assert fit.responsibility.argmax(axis=1).tolist() == [1, 0, 0, 1, 0]
    heads = np.exp(fit.model.feature_log_prob_)[:, 0]
    assert heads == pytest.approx([5 / 15, 6 / 10])  # the notes print 0.33


MODELS = st.sampled_from(
    [
        MultinomialNB(alpha=0.3),
        BernoulliNB(alpha=0.3),
        MultinomialNB(alpha=1.0, class_prior="uniform"),
        BernoulliNB(alpha=1e-3, class_prior="uniform"),
    ]
)


def documents(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 30), rng.integers(1, 7)
    return rng.poisson(rng.gamma(0.5, 1.0, shape)).astype(float), rng


@given(st.integers(0, 2**32 - 1), MODELS, st.booleans())
@examples(60)
def test_the_log_posterior_never_falls(seed, like, hard):
    X, rng = documents(seed)
    labels = np.array([0, 1, 2])
    known = like.fit(X[:3], labels)
    fit = expectation_maximization(
        known, X, known, weight=rng.uniform(0.1, 2), hard=hard, stopping=EXACTLY
    )

    reached = np.array([step.log_posterior for step in fit.steps])
    assert (np.diff(reached) >= -1e-8 * np.abs(reached[1:]).max()).all()
    assert all(step.gain >= -1e-8 * abs(reached).max() for step in fit.steps)


@given(st.integers(0, 2**32 - 1), MODELS)
@examples(30)
def test_the_log_likelihood_sums_over_all_labels(seed, like):
    X, _ = documents(seed)
    model = like.fit(X[:3], [0, 1, 2])
    fit = expectation_maximization(model, X, stopping=ONCE)

    by_hand = np.log(np.exp(model.predict_joint_log_proba(X)).sum(axis=1)).sum()
    theta = np.exp(model.feature_log_prob_)
    prior = np.log(theta).sum() * model.alpha
    if isinstance(model, BernoulliNB):
        prior += np.log(1 - theta).sum() * model.alpha
    assert fit.steps[0].log_likelihood == pytest.approx(by_hand)
    assert fit.steps[0].log_posterior == pytest.approx(by_hand + prior)


def test_a_small_change_or_a_small_gain_stops():
    model = two_coins(0.2, 0.7)
    by_change = expectation_maximization(model, TOSSES, stopping=Stopping(0.05, 0.0))
    by_gain = expectation_maximization(model, TOSSES, stopping=Stopping(0.0, 0.01))
    assert by_change.steps[-1].change < 0.05 <= by_change.steps[-2].change
    assert by_gain.steps[-1].gain <= 0.01 * 5 < by_gain.steps[-2].gain


def test_more_restarts_are_never_less_likely():
    X, _ = documents(5)
    reached = [mixture_of(BernoulliNB(), X, 2, n).steps[-1].log_posterior for n in (1, 4, 8)]
    assert reached == sorted(reached)


def test_zero_probabilities_and_more_components_than_documents_are_refused():
    model = MultinomialNB(alpha=0).fit([[1, 0], [0, 1]], [0, 1])
    with pytest.raises(UsageError, match="give an alpha above 0"):
        expectation_maximization(model, [[1, 1]])
    with pytest.raises(UsageError, match="3 components of 2 documents"):
        mixture_of(BernoulliNB(), np.ones((2, 2)), 3)
