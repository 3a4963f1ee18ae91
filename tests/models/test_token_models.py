"""The models of tokens give the numbers of the textbooks and of scikit-learn."""

import math
import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from nbspam.errors import NotTrainedError, UsageError
from nbspam.models import BernoulliNB, ComplementNB, MultinomialNB, smoothing

MODELS = [BernoulliNB, MultinomialNB, ComplementNB]
INF = np.inf

# --- worked by hand ---

# Manning, Raghavan & Schütze (2008), table 13.1.  Columns: Chinese Beijing Shanghai
# Macao Tokyo Japan; the document to classify is Chinese Chinese Chinese Tokyo Japan.
CHINA = np.array([[2, 1, 0, 0, 0, 0], [2, 0, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1]])
LABELS = ["china", "china", "china", "other"]
TEST = np.array([[3, 0, 0, 0, 1, 1]])


def test_multinomial_agrees_with_example_13_1():
    model = MultinomialNB().fit(CHINA, LABELS)
    china = 3 / 4 * (3 / 7) ** 3 * 1 / 14 * 1 / 14
    other = 1 / 4 * (2 / 9) ** 3 * 2 / 9 * 2 / 9
    assert np.exp(model.predict_joint_log_proba(TEST)[0]) == pytest.approx([china, other])
    assert model.predict(TEST).tolist() == ["china"]


def test_bernoulli_agrees_with_example_13_2():
    model = BernoulliNB().fit(CHINA, LABELS)
    china = 3 / 4 * 4 / 5 * 1 / 5 * 1 / 5 * (1 - 2 / 5) ** 3
    other = 1 / 4 * 2 / 3 * 2 / 3 * 2 / 3 * (1 - 1 / 3) ** 3
    assert np.exp(model.predict_joint_log_proba(TEST)[0]) == pytest.approx([china, other])
    assert model.predict(TEST).tolist() == ["other"]


def test_bernoulli_agrees_with_equations_4_and_7_of_the_lecture():
    # Four spams, three of them with the token; two hams, one with the token.
    X, y = [[1], [1], [1], [0], [1], [0]], ["spam"] * 4 + ["ham"] * 2

    # phi(1|spam) = 3/4, phi(1|ham) = 1/2, phi(spam) = 4/6.
    model = BernoulliNB(alpha=0).fit(X, y)
    assert np.exp(model.feature_log_prob_[:, 0]) == pytest.approx([1 / 2, 3 / 4])
    assert np.exp(model.class_log_prior_) == pytest.approx([2 / 6, 4 / 6])
    # Equation 7 adds one to the count and two to the total.
    model = BernoulliNB(alpha=1).fit(X, y)
    assert np.exp(model.feature_log_prob_[:, 0]) == pytest.approx([2 / 4, 4 / 6])
    # P(spam given token absent) = 2/3 * 1/3 / (2/3 * 1/3 + 1/3 * 1/2)
    assert model.predict_proba([[0]])[0, 1] == pytest.approx((2 / 9) / (2 / 9 + 1 / 6))


# Three classes of one document each; columns a b c.
THREE = np.array([[2, 1, 0], [0, 1, 1], [0, 0, 3]])


def test_complement_counts_the_tokens_of_the_other_classes():
    model = ComplementNB(class_prior=[0.2, 0.3, 0.5]).fit(THREE, [0, 1, 2])

    # Outside class 0: a 0 times, b 1, c 1 + 3; five tokens, and alpha 1 for each of three.
    shares = np.array([[1 / 8, 2 / 8, 5 / 8], [3 / 9, 2 / 9, 4 / 9], [3 / 8, 3 / 8, 2 / 8]])
    assert model.feature_log_prob_ == pytest.approx(-np.log(shares))
    # Joint is the prior times ratios to the best class.  The document is "a a c"; the lowest
    # P(token given not class) is best: 1/8 for a, 2/8 for c.
    expected = [
        0.2 * 1 * (2 / 8) / (5 / 8),
        0.3 * ((1 / 8) / (3 / 9)) ** 2 * (2 / 8) / (4 / 9),
        0.5 * ((1 / 8) / (3 / 8)) ** 2 * 1,
    ]
    assert np.exp(model.predict_joint_log_proba([[2, 0, 1]])[0]) == pytest.approx(expected)


# --- scikit-learn ---


def corpus(n_classes, seed=0, n_docs=60, n_features=40):
    """Return counts of common and rare tokens, labels of all classes, and weights."""
    rng = np.random.default_rng(seed)
    rates = np.geomspace(0.02, 4.0, n_features)
    X = rng.poisson(rates, (n_docs, n_features)) * rng.integers(1, 3, (n_docs, n_features))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_docs - n_classes)])
    return X.astype(float), y, rng.random(n_docs) + 0.1


def scikit(model, **parameters):
    peers = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is the oracle")
    return getattr(peers, type(model).__name__)(**parameters)


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_classes", "alpha"), [(1, 1.0), (2, 1e-3), (5, 7.5)])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("Model", [BernoulliNB, MultinomialNB])
def test_all_numbers_equal_those_of_scikit_learn(Model, kind, n_classes, alpha):
    X, y, weight = corpus(n_classes)
    for prior in ({}, {"fit_prior": False}, {"class_prior": np.full(n_classes, 1 / n_classes)}):
        ours = {"class_prior": "uniform" if "fit_prior" in prior else "estimated", **prior}
        ours.pop("fit_prior", None)
        model = Model(alpha=alpha, **ours).fit(kind(X), y, weight)
        peer = scikit(model, alpha=alpha, **prior).fit(X, y, weight)

        close(model.feature_count_, peer.feature_count_)
        close(model.class_count_, peer.class_count_)
        close(model.feature_log_prob_, peer.feature_log_prob_)
        close(model.class_log_prior_, peer.class_log_prior_)
        close(model.predict_joint_log_proba(kind(X)), peer.predict_joint_log_proba(X))
        close(model.predict_proba(kind(X)), peer.predict_proba(X))
        assert (model.predict(kind(X)) == peer.predict(X)).all()
        assert model.score(kind(X), y, weight) == pytest.approx(peer.score(X, y, weight))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_complement_weights_and_posteriors_equal_those_of_scikit_learn(n_classes, norm):
    X, y, weight = corpus(n_classes)
    model = ComplementNB(alpha=0.3, norm=norm, class_prior="uniform").fit(X, y, weight)
    peer = scikit(model, alpha=0.3, norm=norm).fit(X, y, weight)

    close(model.feature_count_, peer.feature_count_)
    close(model.feature_log_prob_, peer.feature_log_prob_)
    assert n_classes == 1 or (model.predict(X) == peer.predict(X)).all()
    ours, theirs = (each.predict_joint_log_proba(X) for each in (model, peer))
    if norm and n_classes > 1:  # the same up to one factor
        theirs = theirs * ComplementNB(alpha=0.3).fit(X, y, weight).feature_log_prob_.sum(1).mean()
    if n_classes > 1:
        close(ours - ours[:, :1], theirs - theirs[:, :1])


def test_unlike_scikit_learns_our_complement_uses_the_prior_and_gives_probabilities():
    X, y, _ = corpus(2)
    prior = np.array([0.999, 0.001])
    model = ComplementNB(class_prior=prior).fit(X, y)
    even = scikit(model).fit(X, y)
    peer = scikit(model, class_prior=prior).fit(X, y)

    assert (peer.predict_proba(X) == even.predict_proba(X)).all()
    assert np.exp(peer.predict_joint_log_proba(X)).max() > 1
    odds = even.predict_proba(X) * prior
    close(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))
    assert (model.predict_joint_log_proba(X) <= np.log(prior)).all()


def test_terms_of_absent_tokens_keep_the_digits_that_scikit_learn_loses():
    n = 1e12
    model = BernoulliNB.from_counts([n], [[n - 1]], ["a"], alpha=1e-10)

    # One document in n lacks the token.
    exact = math.log1p(1e-10) - math.log(n)
    assert model.predict_joint_log_proba([[0]])[0, 0] == pytest.approx(exact, rel=1e-14)
    by_their_formula = np.log(1 - np.exp(model.feature_log_prob_[0, 0]))
    assert abs(by_their_formula - exact) > 1e-6


# --- no smoothing ---


def brute_joint(Model, X, y, document):
    """Return P(class, document) of both classes as a product of relative frequencies."""
    joint = []
    for rows in (X[y == 0], X[y == 1]):
        present = (rows > 0).mean(axis=0)
        if Model is BernoulliNB:
            shares = np.where(document, present, 1 - present)
        else:
            shares = (rows.sum(axis=0) / rows.sum()) ** document
        joint.append(len(rows) / len(y) * shares.prod())
    return joint


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize("Model", [BernoulliNB, MultinomialNB])
def test_without_smoothing_the_joint_is_a_product_of_relative_frequencies(Model, kind):
    # Column 0 is in every document of class 0; column 1 only in class 1; column 3 nowhere.
    X = np.array([[1, 0, 2, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0]])
    y = np.array([0, 0, 1, 1, 1])
    model, asked = Model(alpha=0).fit(kind(X), y), np.array(list(product([0, 1], repeat=4)))

    expected = np.array([brute_joint(Model, X, y, document) for document in asked])
    assert np.exp(model.predict_joint_log_proba(kind(asked))) == pytest.approx(expected)
    expected[~expected.any(axis=1)] = 2 / 5, 3 / 5  # impossible in both classes: the prior
    posterior = expected / expected.sum(axis=1, keepdims=True)
    assert model.predict_proba(kind(asked)) == pytest.approx(posterior)
    assert model.predict(kind(asked)).tolist() == posterior.argmax(axis=1).tolist()


def test_without_smoothing_what_is_impossible_is_infinite_and_never_nan():
    model = ComplementNB(alpha=0).fit(THREE, [0, 1, 2])
    # Only class 0 has column 0, so its complement does not.
    assert model.predict_joint_log_proba([[1, 0, 0]])[0].tolist() == [np.log(1 / 3), -INF, -INF]
    assert model.feature_log_prob_[0, 0] == INF
    for Model in (BernoulliNB, MultinomialNB):  # a class without documents is uniform
        model = Model(alpha=0, class_prior="uniform")
        model.partial_fit([[1, 0], [1, 1]], [0, 0], classes=[0, 1])
        assert np.exp(model.feature_log_prob_[1]) == pytest.approx([0.5, 0.5])
    for Model, kind, label in product(MODELS, (np.array, sparse.csr_array), (None, 0, 1)):
        model = Model(alpha=0).fit(np.array([[1, 0, 1, 0], [1, 1, 0, 0]]), [0, 1])
        terms = model.contributions(kind(np.eye(4)), label).terms
        assert not np.isnan(terms.toarray() if sparse.issparse(terms) else terms).any()


# --- alpha from the data ---


def left_out(counts, outcomes, alpha):
    """Return the log-likelihood of every event given the counts of all others, by brute force."""
    log_likelihood = 0.0
    for row, outcome in product(counts, range(outcomes)):
        others = row - (np.arange(outcomes) == outcome)
        share = (others[outcome] + alpha) / (others.sum() + outcomes * alpha)
        log_likelihood += row[outcome] * (math.log(share) if row[outcome] else 0)
    return log_likelihood


def distributions(Model, model):
    """Return the counts that the model smooths, (n_distributions, n_outcomes)."""
    n = model.feature_count_
    if Model is BernoulliNB:
        return np.stack([n, model.class_count_[:, None] - n], axis=-1).reshape(-1, 2)
    return n if Model is MultinomialNB else n.sum(axis=0) - n


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("Model", MODELS)
def test_alpha_auto_maximises_the_leave_one_out_likelihood(Model, seed):
    X, y, _ = corpus(2, seed, n_docs=8, n_features=6)
    model = Model(alpha="auto").fit(X, y)
    counts = distributions(Model, model)
    outcomes = counts.shape[1]

    fast = smoothing.leave_one_out(counts, counts.sum(axis=1), outcomes)
    assert fast(0.37) == pytest.approx(left_out(counts, outcomes, 0.37), rel=1e-12)
    assert smoothing.LOWEST * 2 < model.alpha_ < smoothing.HIGHEST / 2  # inside
    chosen, others = left_out(counts, outcomes, model.alpha_), np.geomspace(1e-6, 1e3, 25)
    assert all(chosen >= left_out(counts, outcomes, alpha) - 1e-6 for alpha in others)
    close(model.predict_proba(X), Model(alpha=model.alpha_).fit(X, y).predict_proba(X))

    length = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    model = Model(alpha="auto").fit(X / length, y, np.linspace(0.1, 1, len(y)))
    assert smoothing.LOWEST <= model.alpha_ <= smoothing.HIGHEST
    assert np.isfinite(model.predict_log_proba(X)).all()
    nothing = Model(alpha="auto").partial_fit(np.zeros((0, 3)), [], classes=["a", "b"])
    assert nothing.alpha_ == smoothing.NO_EVIDENCE


# --- counts, tables, state ---


@pytest.mark.parametrize("Model", MODELS)
def test_counts_mapped_from_a_read_only_file_give_the_same_model(Model, tmp_path):
    X, y, _ = corpus(3)
    model = Model(alpha=0.1).fit(X, y)
    np.save(tmp_path / "counts.npy", model.feature_count_.T.astype(np.uint32))
    mapped = np.load(tmp_path / "counts.npy", mmap_mode="r").T
    again = Model.from_counts(model.class_count_, mapped, model.classes_, alpha=0.1)

    close(again.tables().weight, model.tables().weight)
    again.partial_fit(X, y).unlearn(X, y)
    assert (again.predict_joint_log_proba(X) == model.predict_joint_log_proba(X)).all()


@pytest.mark.parametrize("Model", MODELS)
def test_tables_are_cached_until_counts_or_parameters_change(Model, monkeypatch):
    X, y, _ = corpus(2)
    model = Model().fit(X, y)
    first = model.tables()
    assert model.tables() is first

    model.set_params(alpha=0.25)
    assert (model.tables().weight == Model(alpha=0.25).fit(X, y).tables().weight).all()

    def derive_while_another_thread_learns(model):
        monkeypatch.undo()
        tables = model._derive()
        model.partial_fit(X[:7], y[:7])
        return tables

    monkeypatch.setattr(Model, "_derive", derive_while_another_thread_learns)
    model.set_params(alpha=1.0).tables()
    bare = len(pickle.dumps(model))
    assert (model.tables().weight != first.weight).any()
    assert len(pickle.dumps(model)) == bare  # counts but no tables


def test_bernoulli_counts_duplicate_entries_of_a_sparse_matrix_once():
    twice = sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])))
    assert BernoulliNB().fit(twice, [0, 1]).feature_count_.tolist() == [[0, 1], [0, 0]]
    assert twice.nnz == 3


def test_rounding_of_large_weights_and_of_fractions_leaves_nothing_below_zero():
    X, y = np.ones((1000, 2)), np.zeros(1000)
    weight = np.random.default_rng(0).random(1000) * 1e9
    model = BernoulliNB(estimate="mle").fit(X, y, weight)
    assert model.predict_joint_log_proba([[1, 0]]).tolist() == [[-np.inf]]
    for half in (slice(300), slice(300, 1000)):
        model.unlearn(X[half], y[half], weight[half])

    model = MultinomialNB(alpha=0)
    for weight in (0.3, 0.2, 0.1):
        model.partial_fit([[1, 1]], [0], sample_weight=[weight])
    assert model.class_count_[0] < 0.1 + 0.2 + 0.3
    model.unlearn([[1, 1]] * 3, [0] * 3, sample_weight=[0.1, 0.2, 0.3])

    assert model.feature_count_.tolist() == [[0, 0]]
    assert model.predict_proba([[1, 0]]).tolist() == [[1]]


# --- errors ---

GOOD = [[1.0, 0.0], [0.0, 1.0]]
WRONG_INPUT = {
    "2D array": ([1.0, 2.0], [0, 1]),
    "Complex": (np.array(GOOD) * 1j, [0, 1]),
    "NaN or infinity; give finite numbers": ([[np.nan, 1], [0, 1]], [0, 1]),
    "Input X contains NaN": (sparse.csr_array([[INF, 1], [0, 1]]), [0, 1]),
    "0 sample": (np.zeros((0, 2)), []),
    "0 feature": (np.zeros((2, 0)), [0, 1]),
    "target y is None": (GOOD, None),
    "one label for each of 2": (GOOD, [0]),
    "y contains NaN": (GOOD, [0.0, np.nan]),
    "Input y contains": (GOOD, np.array([np.nan, 1], object)),
    "y contains NaN or": (GOOD, [None, 1]),
    "Unknown label type": (GOOD, [0.5, 1.0]),
    "labels without an order": (GOOD, [1j, object()]),
    "without an order; give": (GOOD, [(1, 2), (1,)]),
    "rows of different lengths": ([[1], [1, 2]], [0, 1]),
}


@pytest.mark.parametrize("message", WRONG_INPUT)
def test_the_error_says_what_is_wrong_with_the_input(message):
    for Model in MODELS:
        with pytest.raises(UsageError, match=message) as error:
            Model().fit(*WRONG_INPUT[message])
        assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("prior", ["guess", [1.0], [0.7, 0.7], [1.5, -0.5], [np.nan, 1.0]])
def test_a_wrong_prior_is_refused_and_leaves_the_model_unchanged(prior):
    model = MultinomialNB().fit(GOOD, [0, 1])
    model.class_prior = prior
    with pytest.raises(UsageError, match="class_prior"):
        model.partial_fit(GOOD, [0, 1])
    assert model.class_count_.tolist() == [1, 1]


@pytest.mark.parametrize("Model", MODELS)
def test_using_an_untrained_model_raises_not_trained(Model):
    for ask in (
        lambda model: model.predict(GOOD),
        lambda model: model.unlearn(GOOD, [0, 1]),
        lambda model: model.merge(Model().fit(GOOD, [0, 1])),
        lambda model: model.contributions(GOOD),
        lambda model: model.alpha_,
        lambda model: model.tables(),
    ):
        with pytest.raises(NotTrainedError, match="fit or partial_fit"):
            ask(Model())
    assert not hasattr(Model(), "class_log_prior_")
    assert not hasattr(Model(), "feature_log_prob_")


def fitted(**parameters):
    return MultinomialNB(**parameters).fit(GOOD, [0, 1])


def weighted(*weight):
    return MultinomialNB().fit(GOOD, [0, 1], sample_weight=[*weight])


MISUSE = [
    ("X has 1 features", lambda: fitted().predict([[1]])),
    ("X has 3 features", lambda: fitted().partial_fit([[1, 2, 3]], [0])),
    ("not all of these", lambda: fitted().unlearn([[5, 5]], [0])),
    ("only what was learnt", lambda: fitted().unlearn([[0, 0]], [7])),
    ("no documents are left", lambda: fitted().unlearn(GOOD, [0, 1]).forget_empty_classes()),
    ("merge: MultinomialNB", lambda: fitted().merge(MultinomialNB().fit([[1]], [0]))),
    ("of another kind", lambda: fitted().merge(BernoulliNB().fit(GOOD, [0, 1]))),
    ("numbers and some are text", lambda: fitted().partial_fit(GOOD, ["a", "b"])),
    ("are text; use", lambda: MultinomialNB().partial_fit(GOOD, [0, 1], classes=["a", "b"])),
    ("classes: y should be", lambda: MultinomialNB().partial_fit(GOOD, [0, 1], classes=2)),
    ("classes: Input y", lambda: MultinomialNB().partial_fit(GOOD, [0, 1], classes=[0, INF])),
    ("no classes", lambda: MultinomialNB().partial_fit(np.zeros((0, 2)), [])),
    ("no label; give one of", lambda: MultinomialNB().fit(THREE, [0, 1, 2]).contributions(THREE)),
    ("9 is unknown; give one of", lambda: fitted().contributions(GOOD, label=9)),
    ("no parameter", lambda: fitted().set_params(gamma=1)),
    ("not a count for each class", lambda: MultinomialNB.from_counts([1, 1], [[1]], [0, 1])),
    ("unsorted or equal", lambda: MultinomialNB.from_counts([1, 1], [[1], [1]], [1, 0])),
    ("Negative", lambda: MultinomialNB.from_counts([1], [[-1]], [0])),
    ("score: y should", lambda: fitted().score(GOOD, [0])),
    ("score: no document counts", lambda: fitted().score(GOOD, [0, 1], [0, 0])),
    ("score: no document counts", lambda: fitted().score(np.zeros((0, 2)), [])),
    ("once a document", lambda: BernoulliNB.from_counts([1], [[2]], [0])),
    ("unlearn only", lambda: BernoulliNB().fit([[1], [1]], [0, 0]).unlearn([[0]], [0])),
    *(
        ("sample_weight", partial(weighted, *weight))
        for weight in ((1,), (1, -1), (1, np.nan), ("one", 1), ([1], [1]))
    ),
    ("every sample_weight is zero", lambda: weighted(0, 0)),
    *(
        ("alpha", partial(fitted, alpha=alpha))
        for alpha in (-1, INF, np.nan, "much", "1", None, [1.0, 2.0])
    ),
    ("class_prior: None; give estimated", lambda: fitted(class_prior=None)),
    ("class_prior: {0: 1}; give", lambda: fitted(class_prior={0: 1})),
    (
        "alpha above 0",
        lambda: ComplementNB(alpha=0, norm=True).fit(THREE, [0, 1, 2]).predict(THREE),
    ),
]


@pytest.mark.parametrize(("message", "misuse"), MISUSE)
def test_misuse_is_refused_with_a_reason(message, misuse):
    with pytest.raises(UsageError, match=message):
        misuse()
