"""Laws that every model obeys, of tokens and of columns."""

import pickle
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nbspam.models import (
    A2DE,
    AKDE,
    AODE,
    COUNTED,
    ESTIMATORS,
    SPODE,
    TAN,
    BayesianNetwork,
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    column_class,
    model_state,
    restored,
)
from nbspam.models.base import logsumexp
from nbspam.models.columns import CountedColumns, CountedComplementNB, CountedMultinomialNB
from nbspam.models.tokens import LinearModel
from support import COLUMN_MODELS, PAIR_MODELS, TOKEN_MODELS, examples, tables

# The parameters of each model beside levels: the defaults, and others.
TOKENS = {
    f"{Class.__name__} {n}": (Class, more)
    for Class in TOKEN_MODELS
    for n, more in enumerate(({}, {"alpha": "auto", "class_prior": "uniform"}, {"alpha": 1e-10}))
} | {"normed": (ComplementNB, {"norm": True})}
COLUMNS = {
    "categorical": (CategoricalNB, {}),
    "categorical map": (CategoricalNB, {"estimate": "map", "alpha": 1.5}),
    "gaussian": (GaussianNB, {}),
    "gaussian ddof 0": (GaussianNB, {"ddof": 0, "class_prior": "uniform"}), "mixed": (MixedNB, {}),
    "multinomial": (CountedMultinomialNB, {}), "complement": (CountedComplementNB, {}),
    "spode": (SPODE, {"parent": 0}), "tan": (TAN, {}), "aode": (AODE, {}),
    "spode numbers": (SPODE, {"parent": 0}), "tan numbers": (TAN, {"estimate": "mle"}),
    "aode numbers": (AODE, {}),
    "aode support 3": (AODE, {"min_support": 3, "alpha": 0.2, "class_prior": "estimated"}),
    "a2de": (A2DE, {}), "a2de support 3": (A2DE, {"min_support": 3, "alpha": 0.2}),
    "akde": (AKDE, {}), "akde support 3": (AKDE, {"order": 2, "min_support": 3, "alpha": 0.2}),
    "network": (BayesianNetwork, {}),
    "network naive": (BayesianNetwork, {"start": "naive", "climb": False, "alpha": 0.2,
                                        "class_prior": "estimated"}),
}  # fmt: skip
MLE = (CategoricalNB, MixedNB, SPODE, TAN, AODE, A2DE, AKDE, BayesianNetwork)
UNSMOOTHED = {f"{Class.__name__} alpha 0": (Class, {"alpha": 0}) for Class in TOKEN_MODELS} | {
    f"{Class.__name__} mle": (
        Class,
        {"estimate": "mle"} | ({"parent": 0} if Class is SPODE else {}),
    )
    for Class in MLE
}
VARIANTS = TOKENS | COLUMNS
every_model = pytest.mark.parametrize("name", VARIANTS)
every_model_also_unsmoothed = pytest.mark.parametrize("name", VARIANTS | UNSMOOTHED)
every_model_of_tokens = pytest.mark.parametrize("name", TOKENS)
some = examples(6)


def is_linear(name):
    return issubclass((VARIANTS | UNSMOOTHED)[name][0], LinearModel)


@st.composite
def corpora(draw):
    """Return counts, labels and no levels: empty rows, unused columns, a class unseen."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_docs, n_features = rng.integers(1, 25), rng.integers(1, 9)
    X = rng.poisson(0.5, (n_docs, n_features)).astype(float)
    return X, np.minimum(rng.geometric(0.6, n_docs) - 1, rng.integers(0, 3)), None


def drawn(name, data):
    """Return (X, y, levels) for a model of this name."""
    return data.draw(corpora() if is_linear(name) else tables())


def new(name, levels):
    """Return an untrained model; some take every other column for numbers."""
    Class, more = (VARIANTS | UNSMOOTHED)[name]
    if issubclass(Class, LinearModel | GaussianNB | CountedColumns):
        return Class(**more)
    if Class is MixedNB or "numbers" in name:
        levels = np.where(np.arange(len(levels)) % 2, 0, levels)
    return Class(levels=levels, **more)


def trained(name, table, classes=(0, 1, 2)):
    X, y, levels = table
    return new(name, levels).partial_fit(X, y, classes=classes)


def questions(X, levels):
    """Return rows to classify: those learnt; nothing known, and first and last values."""
    n = X.shape[1]
    nothing, last = (0.0, np.full(n, 7.0)) if levels is None else (np.nan, levels - 1.0)
    return np.concatenate([X, np.full((1, n), nothing), np.zeros((1, n)), last[None]])


def assert_same(one, two, ask):
    """Assert that two models have learnt the same: equal counts, moments up to rounding."""
    assert one.classes_.tolist() == two.classes_.tolist()
    for name in one._sums:
        if name.endswith(("mean_", "deviation_")):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-12)
        else:
            assert getattr(one, name).tolist() == getattr(two, name).tolist()
    if not one._sums[-1].endswith("deviation_"):
        mine, theirs = (each.predict_joint_log_proba(ask) for each in (one, two))
        rtol = 0 if isinstance(one, LinearModel) else 1e-12
        np.testing.assert_allclose(mine, theirs, rtol=rtol)


def test_the_laws_are_tried_on_every_model():
    of_counts = {column_class(name) for name in COUNTED}
    tried = {Class for Class, _ in VARIANTS.values()}
    assert tried == {*TOKEN_MODELS, *COLUMN_MODELS, *of_counts}


# --- learning is addition ---


@every_model_also_unsmoothed
@given(data=st.data())
@some
def test_unlearning_undoes_learning(name, data):
    X, y, levels = table = drawn(name, data)
    half = len(y) // 2
    model = trained(name, table).partial_fit(X[:half], y[:half])
    model.unlearn(X[:half], y[:half])
    assert_same(model, trained(name, table), questions(X, levels))

    model.unlearn(X, y)
    assert not any(getattr(model, total).any() for total in model._sums)


@every_model
def test_unlearning_documents_never_learnt_is_refused(name):
    X = np.zeros((3, 2))
    model = trained(name, (X, np.zeros(3, int), np.array([2, 2])))
    with pytest.raises(ValueError, match="not all of these documents were learnt"):
        model.unlearn(X, np.ones(3, int))


@pytest.mark.parametrize("name", ["gaussian", "mixed", "tan numbers"])
def test_unlearning_numbers_that_could_not_have_been_learnt_is_refused(name):
    X, y = np.array([[0, 1.0], [0, 2.0], [0, 3.0], [1, 7.0]]), np.array([0, 0, 0, 1])
    for scale in (1e-60, 1.0, 1e60):
        model = trained(name, (X * [1, scale], y, np.array([2, 2])))
        # Without 9 the sum of squares would be below 0; without 1, 2 and 4 nothing would remain.
        for never in ([9.0], [1.0, 2.0, 4.0]):
            rows = np.array([[0, number * scale] for number in never])
            with pytest.raises(ValueError, match="not all of these documents were learnt"):
                model.unlearn(rows, np.zeros(len(never), int))
        # Un-learning a number that was far larger leaves rounding errors, which are no refusal.
        far = np.array([[0, 0.77e6 * scale]])
        model.partial_fit(far, [0]).unlearn(far, [0])
        assert model.unlearn(X[:3] * [1, scale], y[:3]).class_count_.tolist() == [0, 1, 0]
        # They are none either if only a 0 is left, beside which any error is large.
        several = [[[0, number * scale]] for number in (3e3, 1.1, 0.7, 0.3, 0.0, 0.0)]
        for row in several:
            model.partial_fit(row, [0])
        for row in several:
            model.unlearn(row, [0])


@every_model_also_unsmoothed
@given(data=st.data())
@some
def test_batches_in_any_order_and_merged_shards_equal_one_fit(name, data):
    X, y, levels = table = drawn(name, data)
    whole, ask = trained(name, table), questions(X, levels)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    cut = data.draw(st.integers(1, len(y)))
    parts = [part for part in (order[:cut], order[cut:]) if len(part)]

    for batches in (parts, order[:, None]) if is_linear(name) else (parts,):
        batched = new(name, levels)
        for part in batches:
            batched.partial_fit(X[part], y[part], classes=[0, 1, 2])
        assert_same(batched, whole, ask)
    first, *others = (trained(name, (X[part], y[part], levels)) for part in parts)
    for other in others:
        first.merge(other)
    assert_same(first, whole, ask)


@every_model
@given(data=st.data())
@some
def test_a_weight_of_n_equals_n_copies_of_the_row(name, data):
    X, y, levels = drawn(name, data)
    weight = np.arange(len(y)) % 3.0
    weighted = new(name, levels).partial_fit(X, y, [0, 1, 2], sample_weight=weight)
    repeat = np.repeat(np.arange(len(y)), weight.astype(int))
    copied = trained(name, (X[repeat], y[repeat], levels))
    assert_same(weighted, copied, questions(X, levels))


# --- names, orders and storage have no effect ---


@every_model
@given(data=st.data())
@some
def test_permuting_columns_or_classes_only_permutes_the_posterior(name, data):
    X, y, levels = table = drawn(name, data)
    ask = questions(X, levels)
    answer = trained(name, table).predict_proba(ask)

    # Left out: trees and graphs, whose ties are broken by order; mixed columns, of which every
    # other holds numbers; SPODEs, whose parent is given by its index.
    if name not in ("tan", "mixed", "spode", "network") and "numbers" not in name:
        columns = data.draw(st.permutations(range(X.shape[1])))
        model = trained(name, (X[:, columns], y, levels if levels is None else levels[columns]))
        np.testing.assert_allclose(model.predict_proba(ask[:, columns]), answer, atol=1e-9)
    names = np.array(data.draw(st.permutations(range(3))))
    permuted = trained(name, (X, names[y], levels)).predict_proba(ask)
    np.testing.assert_allclose(permuted[:, names], answer, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_columns_does_not_change_a_tree_without_ties(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 500)
    X = (rng.random((500, 6)) < 0.3 + 0.1 * y[:, None]).cumsum(axis=1) % 3
    columns = rng.permutation(6)
    straight, permuted = TAN(levels=[3] * 6).fit(X, y), TAN(levels=[3] * 6).fit(X[:, columns], y)

    answers = permuted.predict_proba(X[:, columns])
    np.testing.assert_allclose(answers, straight.predict_proba(X), atol=1e-9)
    parents = np.where(permuted.parents_ < 0, -1, columns[permuted.parents_])
    assert parents.tolist() == straight.parents_[columns].tolist()


@every_model_also_unsmoothed
@given(data=st.data())
@some
def test_a_row_is_classified_the_same_alone_and_in_any_storage(name, data):
    X, y, levels = table = drawn(name, data)
    ask = questions(X, levels)
    model = trained(name, table)
    joint = model.predict_joint_log_proba(ask)

    for row, expected in zip(ask, joint, strict=True):
        np.testing.assert_allclose(model.predict_joint_log_proba(row[None])[0], expected, 1e-12)
    for store in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        if is_linear(name):
            same = trained(name, (store(X), y, levels))
            assert_same(same, model, ask)
            np.testing.assert_allclose(same.predict_joint_log_proba(store(ask)), joint, rtol=1e-12)


@pytest.mark.parametrize("Class", [*PAIR_MODELS, BayesianNetwork])
@given(table=tables(missing=False))
@some
def test_binary_columns_equal_columns_of_two_values_in_any_storage(Class, table):
    X, y, _ = table
    present = (X > 0).astype(float)
    two = Class(levels=[2] * X.shape[1]).fit(present, y)
    expected = two.predict_joint_log_proba(present)

    stores = (X, X > 0, sparse.csr_array(X), sparse.csr_matrix(X), sparse.coo_array(X))
    for stored in stores[: 2 if Class is BayesianNetwork else 5]:
        model = Class().fit(stored, y)
        np.testing.assert_allclose(model.predict_joint_log_proba(stored), expected, rtol=1e-12)
        if Class not in (A2DE, BayesianNetwork):
            for mine, theirs in zip(model.value_counts(), two.value_counts(), strict=True):
                assert (mine == theirs).all()


# --- predicting ---


@every_model_also_unsmoothed
@given(data=st.data())
@some
def test_posteriors_are_probabilities_for_any_row(name, data):
    X, y, levels = table = drawn(name, data)
    ask = questions(X, levels)
    for model in (trained(name, table, [0, 1, 2, 99]), trained(name, table).unlearn(X, y)):
        posterior = model.predict_proba(ask)

        assert ((posterior >= 0) & (posterior <= 1)).all()
        np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=0, atol=1e-12)
        best = posterior[np.arange(len(ask)), np.searchsorted(model.classes_, model.predict(ask))]
        np.testing.assert_allclose(best, posterior.max(axis=1), atol=1e-12)


@pytest.mark.parametrize("name", COLUMNS)
@given(table=tables())
@some
def test_a_row_of_missing_values_gets_the_prior(name, table):
    model = trained(name, table)
    nothing = np.full((1, table[0].shape[1]), np.nan)
    prior = np.exp(model.class_log_prior_)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], prior, rtol=1e-12)


@every_model_of_tokens
@given(corpus=corpora(), as_csr=st.booleans())
@some
def test_contributions_add_up_to_the_score(name, corpus, as_csr):
    X, y, _ = corpus
    model = new(name, None).fit(X, y)
    ask = sparse.csr_array(questions(X, None)) if as_csr else questions(X, None)
    joint = model.predict_joint_log_proba(ask)

    scores = dict(zip(model.classes_.tolist(), joint.T, strict=True))
    if len(scores) == 2:
        scores[None] = joint[:, 1] - joint[:, 0]
    for label, score in scores.items():
        parts = model.contributions(ask, label)
        assert sparse.issparse(parts.terms) == as_csr
        assert parts.terms.shape == ask.shape
        total = parts.intercept + parts.terms.sum(axis=1)
        np.testing.assert_allclose(total, score, rtol=1e-9, atol=1e-9)


@every_model_also_unsmoothed
@given(data=st.data(), as_csr=st.booleans())
@some
def test_inputs_are_neither_changed_nor_kept(name, data, as_csr):
    X, y, levels = drawn(name, data)
    given_X = sparse.csr_array(X) if as_csr and is_linear(name) else X.copy()
    entries = given_X.data if sparse.issparse(given_X) else given_X
    arrays = entries, given_y, weight = entries, y.copy(), np.ones(len(y))
    for array in arrays:
        array.setflags(write=False)
    model = new(name, levels).partial_fit(given_X, given_y, [0, 1, 2], weight)
    model.partial_fit(given_X, given_y).unlearn(given_X, given_y)
    model.predict_proba(given_X)
    for label in (0, 1, 2) if is_linear(name) else ():
        model.contributions(given_X, label)

    before = model.predict_joint_log_proba(X)
    for array in arrays:
        array.setflags(write=True)
        array.fill(0)
    assert (model.predict_joint_log_proba(X) == before).all()


@every_model_also_unsmoothed
@given(data=st.data())
@some
def test_a_restored_model_predicts_the_same_bit_for_bit(name, data):
    X, _, levels = table = drawn(name, data)
    model, ask = trained(name, table), questions(X, levels)
    expected = model.predict_joint_log_proba(ask).tolist()

    again = pickle.loads(pickle.dumps(model))
    assert again.predict_joint_log_proba(ask).tolist() == expected
    if is_linear(name):
        assert again.get_params() == model.get_params()
        counts = model.class_count_, model.feature_count_, model.classes_
        assert_same(type(model).from_counts(*counts, **model.get_params()), model, ask)
    else:
        kind = next(kind for kind in ESTIMATORS if column_class(kind) is type(model))
        from_file = restored(kind, model_state(model), model.classes_, ask[:1])
        assert from_file.predict_joint_log_proba(ask).tolist() == expected


# --- consequences of the formulas ---


@given(corpus=corpora())
@some
def test_bernoulli_probabilities_of_all_documents_and_classes_sum_to_one(corpus):
    model = BernoulliNB(alpha=0.3).fit(*corpus[:2])
    documents = np.array(list(product([0, 1], repeat=corpus[0].shape[1])))
    assert np.exp(model.predict_joint_log_proba(documents)).sum() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("Class", [MultinomialNB, ComplementNB])
@given(corpus=corpora())
@some
def test_multinomial_probabilities_of_all_texts_of_a_length_sum_to_one(Class, corpus):
    model = Class(alpha=0.3).fit(*corpus[:2])
    length, d = 3, corpus[0].shape[1]
    bags = np.array([b for b in product(range(length + 1), repeat=d) if sum(b) == length])
    texts = np.array([factorial(length) / prod(map(factorial, bag)) for bag in bags.tolist()])
    joint = np.exp(model.predict_joint_log_proba(bags))

    if Class is MultinomialNB:
        assert (texts @ joint).sum() == pytest.approx(1, rel=1e-9)
    # Complement's ratios are no distribution, but never exceed the prior.
    assert (joint <= np.exp(model.class_log_prior_) * (1 + 1e-12)).all()


@given(corpus=corpora())
@some
def test_complement_of_two_classes_is_the_multinomial_model(corpus):
    X, y, _ = corpus
    complement, multinomial = (
        Class().partial_fit(X, y > 0, classes=[False, True])
        for Class in (ComplementNB, MultinomialNB)
    )

    other = multinomial.feature_log_prob_[::-1]
    np.testing.assert_allclose(complement.feature_log_prob_, -other, rtol=1e-12)
    ask = questions(X, None)
    expected = multinomial.predict_proba(ask)
    np.testing.assert_allclose(complement.predict_proba(ask), expected, atol=1e-9)


@given(table=tables(missing=False))
@some
def test_joint_probabilities_of_all_rows_and_classes_sum_to_one(table):
    levels = table[2]
    rows = np.array(list(product(*map(range, levels))), float)
    # But for a SPODE: the denominator of eq. 7.24 does not count the classes.
    n, v, k = len(table[1]), levels[0], 3
    for name, total in (("categorical", 1), ("tan", 1), ("spode", (n + k * v) / (n + v))):
        joint = trained(name, table).predict_joint_log_proba(rows)
        found = np.exp(logsumexp(joint.reshape(1, -1)))[0, 0]
        assert found == pytest.approx(total, rel=1e-9)
