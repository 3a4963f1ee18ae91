"""EM on documents and on rows of columns: the numbers of the textbooks, and what theory proves."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.models import (
    BayesianNetwork,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    em,
)
from nbspam.models.network import log_marginals
from support import examples

ONCE = em.Stopping(most=1)
EXACTLY = em.Stopping(change=0.0, gain=0.0)
# Five rounds of five tosses of an unknown coin (a common teaching example): heads, tails.
TOSSES = np.array([[3, 2], [2, 3], [1, 4], [3, 2], [2, 3]])


def expectation_maximization(
    start, X, known=None, weight=1.0, hard=False, stopping=em.AT_CONVERGENCE
):
    data = em.UnlabelledDocuments(start, start.classes_, X, known, weight, hard)
    return em.climb(start, data, stopping)


def mixture_of(like, X, k, restarts=5):
    data = em.UnlabelledDocuments(like, np.arange(k), X)
    return em.mixture(data, k, np.random.default_rng(0), restarts)


MODELS = st.sampled_from([
    MultinomialNB(alpha=0.3), MultinomialNB(alpha=1.0, class_prior="uniform"),
    BernoulliNB(alpha=0.3), BernoulliNB(alpha=1e-3, class_prior="uniform"),
])  # fmt: skip


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
    two_coins = [[0.2, 0.8], [0.7, 0.3]]  # their probabilities of heads and tails
    model = MultinomialNB.from_counts([1, 1], two_coins, [1, 2], alpha=0, class_prior="uniform")
    by_change = expectation_maximization(model, TOSSES, stopping=em.Stopping(0.05, 0.0))
    by_gain = expectation_maximization(model, TOSSES, stopping=em.Stopping(0.0, 0.01))
    assert by_change.steps[-1].change < 0.05 <= by_change.steps[-2].change
    assert by_gain.steps[-1].gain <= 0.01 * 5 < by_gain.steps[-2].gain


def test_more_restarts_are_never_less_likely():
    X, _ = documents(5)
    reached = [mixture_of(BernoulliNB(), X, 2, n).steps[-1].log_posterior for n in (1, 4, 8)]
    assert reached == sorted(reached)


def test_zero_probabilities_are_refused():
    model = MultinomialNB(alpha=0).fit([[1, 0], [0, 1]], [0, 1])
    with pytest.raises(UsageError, match="alpha above 0, and leave out --estimate mle"):
        expectation_maximization(model, [[1, 1]])
    model = CategoricalNB(levels=[2], estimate="mle").fit([[0], [0]], [0, 1])
    with pytest.raises(UsageError, match="alpha above 0, and leave out --estimate mle"):
        em.climb(model, unlabelled(model, np.array([[1.0]])))


SIXTY_ROUNDS = em.Stopping(change=0.0, gain=0.0, most=60)
LONG = em.Stopping(change=1e-12, gain=0.0, most=2000)
LEVELS = np.array([2, 3, 2])
GRAPHS = {
    "naive": [[3], [3], [3], []], "chain": [[3], [0, 3], [1], []],
    "child": [[], [], [0, 1], [0, 2]],
}  # fmt: skip


def models():
    """Return models of the columns of LEVELS, or of numbers, under several estimates."""
    for estimate, alpha in (("mean", 0.1), ("map", 1.5), ("mle", 1.0)):
        how = {"estimate": estimate, "alpha": alpha}
        yield CategoricalNB(levels=LEVELS, **how)
        yield MixedNB(levels=np.array([2, 3, 0]), ddof=0, **how)
        for graph in GRAPHS.values():
            yield BayesianNetwork(levels=LEVELS, structure=graph, **how)
    yield GaussianNB(ddof=0)
    yield CategoricalNB(levels=LEVELS, class_prior="uniform")
    yield CategoricalNB(levels=LEVELS, class_prior="estimated")


TABLE_MODELS = list(models())


@st.composite
def incomplete(draw, low=6):
    """Return rows with missing cells and classes, of two classes; both have a whole row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = int(rng.integers(low, 25))
    X = np.floor(rng.random((n, 3)) * LEVELS)
    y = rng.integers(0, 2, n)
    X[rng.random(X.shape) < 0.25] = np.nan
    X[:6] = [[a, b, (a + b) % 2] for a, b in product(range(2), range(3))]
    y[:6] = [0, 1, 0, 1, 0, 1]
    y[6:][rng.random(n - 6) < 0.5] = -1
    return X, y, rng.choice([1.0, 0.5], n)


def data_of(like, table, hard=False):
    X, y, weight = table
    levels = LEVELS if isinstance(like, BayesianNetwork) else None
    return em.completions(like, X, y, np.arange(2), weight, levels, hard)


def unlabelled(like, X, levels=None):
    return em.completions(like, X, np.full(len(X), -1), np.arange(2), np.ones(len(X)), levels)


def complete(first, data, *stopping):
    return em.climb(data.maximise(data.expect(first).share), data, *stopping)


def start_of(like, table):
    """Return the model of the rows with a class; under mle smoothed, so that nothing is 0."""
    X, y, _ = table
    parameters = {**like.get_params()}
    if parameters.get("estimate") == "mle":
        parameters |= {"estimate": "mean", "alpha": 0.5}
    known = y >= 0
    return type(like)(**parameters).partial_fit(X[known], y[known], classes=[0, 1])


@pytest.mark.parametrize("like", TABLE_MODELS, ids=str)
@given(table=incomplete(), hard=st.booleans())
@examples(8)
def test_the_log_posterior_of_rows_never_falls(like, table, hard):
    data = data_of(like, table, hard)
    fit = complete(start_of(like, table), data, SIXTY_ROUNDS)
    reached = np.array([step.log_posterior for step in fit.steps])
    slack = 1e-7 * max(1, np.abs(reached).max())
    assert (np.diff(reached) >= -slack).all()
    assert all(step.gain >= -slack for step in fit.steps)


@given(table=incomplete())
@examples(15)
def test_the_log_likelihood_sums_over_missing_cells_and_classes(table):
    X, y, weight = table
    for graph in GRAPHS.values():
        like = BayesianNetwork(levels=LEVELS, structure=graph)
        model = start_of(like, table)
        network = model.network()
        by_row = [
            log_marginals(network, [], {j: int(v) for j, v in enumerate([*row, k]) if v >= 0})
            for row, k in zip(X, y, strict=True)
        ]
        density = sum(np.log(table).sum() for table in network.tables)
        expected = data_of(like, table).expect(model)
        assert expected.log_likelihood == pytest.approx(weight @ np.array(by_row))
        assert expected.log_prior == pytest.approx(density)
        shares = np.add.reduceat(expected.share, data_of(like, table).begin)
        np.testing.assert_allclose(shares, weight)


@given(table=incomplete())
@examples(10)
def test_for_naive_bayes_completing_cells_is_leaving_them_out(table):
    """Where all classes are known, EM over the cells ends at the shares of the known cells."""
    X, y, weight = table
    known = y >= 0
    table = X[known], y[known], weight[known]
    like = BayesianNetwork(levels=LEVELS, structure=GRAPHS["naive"], estimate="mle")
    fit = complete(start_of(like, table), data_of(like, table), LONG)

    left_out = CategoricalNB(levels=LEVELS, estimate="mle")
    left_out.partial_fit(table[0], table[1], [0, 1], sample_weight=table[2])
    shares = np.exp(left_out.level_log_prob_)
    tables = np.concatenate(fit.model.tables()[:-1], axis=1)
    np.testing.assert_allclose(tables, shares, atol=1e-6)


@given(table=incomplete())
@examples(10)
def test_nothing_missing_is_plain_training_in_one_round(table):
    X, y, _ = table
    X, y = np.nan_to_num(X), np.maximum(y, 0)
    for like in TABLE_MODELS:
        if isinstance(like, GaussianNB | MixedNB):
            continue  # their variances have a floor
        data = data_of(like, (X, y, np.ones(len(y))))
        fit = complete(start_of(like, (X, y, None)), data)
        plain = type(like)(**like.get_params()).partial_fit(X, y, [0, 1])
        np.testing.assert_allclose(fit.model.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


# Ten tosses of coin B or C, whichever coin A chose (Li Hang, example 9.1): a column of 0 and 1.
COIN_TOSSES = np.array([[1, 1, 0, 1, 0, 0, 1, 0, 1, 1]], float).T


@pytest.mark.parametrize(
    ("start", "end"),
    [((0.5, 0.5, 0.5), (0.5, 0.6, 0.6)), ((0.4, 0.6, 0.7), (0.4064, 0.5368, 0.6432))],
)
@pytest.mark.parametrize("Model", [CategoricalNB, BayesianNetwork])
def test_three_coins_reach_the_textbooks_estimates_from_each_start(Model, start, end):
    a, b, c = start
    more = {"structure": [[1], []]} if Model is BayesianNetwork else {}
    like = Model(levels=[2], estimate="mle", **more)
    rows, coins = np.array([[1.0], [0.0], [1.0], [0.0]]), [0, 0, 1, 1]
    first = Model(levels=[2], estimate="mle", **more).fit(
        rows, coins, sample_weight=[a * b, a * (1 - b), (1 - a) * c, (1 - a) * (1 - c)]
    )
    levels = np.array([2]) if Model is BayesianNetwork else None
    data = unlabelled(like, COIN_TOSSES, levels)
    fit = em.climb(first, data, SIXTY_ROUNDS)

    heads = np.exp(fit.model.predict_joint_log_proba([[1.0]])[0])
    prior = np.exp(fit.model.class_log_prior_)
    assert (prior[0], *(heads / prior)) == pytest.approx(end, abs=5e-5)


def test_missing_cells_are_completed_as_an_oracle_completes_them():
    """Two dependent columns: the most likely joint table, by EM on a dict of four cells."""
    rows = [(0, 0)] * 8 + [(1, 1)] * 5 + [(1, 0)] + [(None, 1)] * 6 + [(0, None)] * 4
    p = dict.fromkeys(product((0, 1), repeat=2), 0.25)
    for _ in range(500):
        counts = dict.fromkeys(p, 0.0)
        for row in rows:
            ways = [w for w in p if all(v in (None, c) for v, c in zip(row, w, strict=True))]
            for way in ways:
                counts[way] += p[way] / sum(p[w] for w in ways)
        p = {way: n / len(rows) for way, n in counts.items()}

    X, y = np.array(rows, float), np.zeros(len(rows), int)
    how = {"levels": [2, 2], "structure": [[], [0], []]}
    like = BayesianNetwork(estimate="mle", **how)
    data = em.completions(like, X, y, np.arange(1), np.ones(24), np.array([2, 2]))
    fit = complete(BayesianNetwork(**how).fit(X, y), data, LONG)
    found = np.exp(fit.model.predict_joint_log_proba(np.array(list(p), float))[:, 0])
    np.testing.assert_allclose(found, list(p.values()), atol=1e-5)


def test_a_component_cannot_shrink_to_a_point():
    X = np.array([[0.0], [0.0], [1.0], [2.0], [3.0], [4.0]])
    data = unlabelled(GaussianNB(ddof=0), X)
    model = data.maximise(np.eye(2)[[0, 0, 1, 1, 1, 1]])
    assert model.var_[0] == pytest.approx(1e-3 * X.var(), rel=1e-5)


def test_rows_that_miss_too_much_are_refused(monkeypatch):
    X = np.full((2, 20), np.nan)
    like = BayesianNetwork(levels=[2] * 20, structure=[[]] * 21)
    with pytest.raises(UsageError, match="2,097,152 ways to fill in the missing cells, more than"):
        em.completions(like, X, np.zeros(2, int), np.arange(1), np.ones(2), np.full(20, 2))
    monkeypatch.setattr(em, "MAX_WAYS", 0)
    assert len(unlabelled(GaussianNB(), np.zeros((3, 1))).label) == 6  # a class is no cell
