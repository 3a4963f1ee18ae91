"""Laws that every model of tokens obeys."""

import pickle
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nbspam.models import BernoulliNB, ComplementNB, MultinomialNB
from support import TOKEN_MODELS, examples

# Each model with its default parameters, and with others.
VARIANTS = [
    *(Class() for Class in TOKEN_MODELS),
    *(Class(alpha="auto", class_prior="uniform") for Class in TOKEN_MODELS),
    *(Class(alpha=1e-10) for Class in TOKEN_MODELS),
    ComplementNB(norm=True),
]
UNSMOOTHED = [Class(alpha=0) for Class in TOKEN_MODELS]

every_model = pytest.mark.parametrize("like", VARIANTS, ids=repr)
every_model_also_unsmoothed = pytest.mark.parametrize("like", VARIANTS + UNSMOOTHED, ids=repr)
some = examples(6)


@st.composite
def corpora(draw, most_classes=3):
    """Return counts, labels and class names: empty rows, unused columns, unseen classes."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_docs, n_features = rng.integers(1, 25), rng.integers(1, 9)
    classes = np.arange(rng.integers(1, most_classes + 1))
    X = rng.poisson(0.5, (n_docs, n_features)).astype(float)
    return X, np.minimum(rng.geometric(0.6, n_docs) - 1, len(classes) - 1), classes


def new(like):
    """Return an untrained model with the same parameters."""
    return type(like)(**like.get_params())


def trained(like, corpus):
    X, y, classes = corpus
    return new(like).partial_fit(X, y, classes=classes)


def assert_same(one, two):
    """Assert that two models have learnt exactly the same."""
    assert one.classes_.tolist() == two.classes_.tolist()
    assert one.class_count_.tolist() == two.class_count_.tolist()
    assert one.feature_count_.tolist() == two.feature_count_.tolist()
    assert one.tables().weight.tolist() == two.tables().weight.tolist()
    assert one.tables().intercept.tolist() == two.tables().intercept.tolist()


def questions(X):
    """Return documents to classify: those learnt, an empty one, and one with every token."""
    n_features = X.shape[1]
    return np.concatenate([X, np.zeros((1, n_features)), np.full((1, n_features), 7.0)])


# --- learning is addition ---


@every_model_also_unsmoothed
@given(corpus=corpora())
@some
def test_unlearning_undoes_learning(like, corpus):
    X, y, _ = corpus
    half = len(y) // 2
    model = trained(like, corpus).partial_fit(X[:half], y[:half])
    model.unlearn(X[:half], y[:half])
    assert_same(model, trained(like, corpus))

    model.unlearn(X, y)
    assert not model.class_count_.any()
    assert not model.feature_count_.any()


@every_model_also_unsmoothed
@given(corpus=corpora(), data=st.data())
@some
def test_batches_in_any_order_and_merged_shards_equal_one_fit(like, corpus, data):
    X, y, _ = corpus
    whole = new(like).fit(X, y)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    cut = data.draw(st.integers(1, len(y)))
    parts = [part for part in (order[:cut], order[cut:]) if len(part)]

    batched = new(like)
    for part in parts:
        batched.partial_fit(X[part], y[part])
    assert_same(batched, whole)
    one_by_one = new(like)
    for i in order:
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1])
    assert_same(one_by_one, whole)
    first, *others = (new(like).fit(X[part], y[part]) for part in parts)
    for other in others:
        first.merge(other)
    assert_same(first, whole)


@every_model
@given(corpus=corpora())
@some
def test_a_weight_of_n_equals_n_copies_of_the_document(like, corpus):
    X, y, classes = corpus
    weight = np.arange(len(y)) % 3.0
    weighted = new(like).partial_fit(X, y, classes, sample_weight=weight)

    repeat = np.repeat(np.arange(len(y)), weight.astype(int))
    assert_same(weighted, trained(like, (X[repeat], y[repeat], classes)))


@every_model
@given(corpus=corpora())
@some
def test_a_model_made_from_counts_is_the_model_that_learnt_them(like, corpus):
    model = trained(like, corpus)
    counts = model.class_count_, model.feature_count_, model.classes_

    assert_same(type(like).from_counts(*counts, **like.get_params()), model)


# --- names and orders have no effect ---


@every_model
@given(corpus=corpora(), data=st.data())
@some
def test_permuting_columns_or_classes_only_permutes_the_posterior(like, corpus, data):
    X, y, classes = corpus
    ask = questions(X)
    answer = trained(like, corpus).predict_proba(ask)

    columns = data.draw(st.permutations(range(X.shape[1])))
    permuted = trained(like, (X[:, columns], y, classes)).predict_proba(ask[:, columns])
    np.testing.assert_allclose(permuted, answer, atol=1e-9)
    names = np.array(data.draw(st.permutations(classes.tolist())))
    permuted = trained(like, (X, names[y], classes)).predict_proba(ask)
    np.testing.assert_allclose(permuted[:, names], answer, atol=1e-9)


@every_model_also_unsmoothed
@given(corpus=corpora())
@some
def test_a_document_is_classified_the_same_alone_and_in_any_storage(like, corpus):
    X, y, classes = corpus
    ask = questions(X)
    model = trained(like, corpus)
    joint = model.predict_joint_log_proba(ask)

    for store in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        same = trained(like, (store(X), y, classes))
        assert_same(same, model)
        np.testing.assert_allclose(same.predict_joint_log_proba(store(ask)), joint, rtol=1e-12)
    for row, expected in zip(ask, joint, strict=True):
        np.testing.assert_allclose(model.predict_joint_log_proba(row[None])[0], expected, 1e-12)


# --- predicting ---


@every_model_also_unsmoothed
@given(corpus=corpora())
@some
def test_posteriors_are_probabilities_for_any_document(like, corpus):
    X, y, classes = corpus
    ask = questions(X)
    model = trained(like, (X, y, [*classes, 99]))
    forgetful = trained(like, corpus).unlearn(X, y)
    for each in (model, forgetful):
        posterior = each.predict_proba(ask)

        assert (posterior >= 0).all()
        assert (posterior <= 1).all()
        np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=0, atol=1e-12)
        best = posterior[np.arange(len(ask)), np.searchsorted(each.classes_, each.predict(ask))]
        np.testing.assert_allclose(best, posterior.max(axis=1), atol=1e-12)


@every_model
@given(corpus=corpora(most_classes=4), as_csr=st.booleans())
@some
def test_contributions_add_up_to_the_score(like, corpus, as_csr):
    X, y, _ = corpus
    model = new(like).fit(X, y)
    ask = sparse.csr_array(questions(X)) if as_csr else questions(X)
    joint = model.predict_joint_log_proba(ask)

    for k, label in enumerate(model.classes_):
        parts = model.contributions(ask, label)
        assert sparse.issparse(parts.terms) == as_csr
        assert parts.terms.shape == ask.shape
        total = parts.intercept + parts.terms.sum(axis=1)
        np.testing.assert_allclose(total, joint[:, k], rtol=1e-9, atol=1e-9)
    if len(model.classes_) == 2:
        parts = model.contributions(ask)
        log_odds = joint[:, 1] - joint[:, 0]
        total = parts.intercept + parts.terms.sum(axis=1)
        np.testing.assert_allclose(total, log_odds, rtol=1e-9, atol=1e-9)


@every_model_also_unsmoothed
@given(corpus=corpora(), as_csr=st.booleans())
@some
def test_inputs_are_neither_changed_nor_kept(like, corpus, as_csr):
    X, y, classes = corpus
    given_X = sparse.csr_array(X) if as_csr else X.copy()
    given_y, weight = y.copy(), np.ones(len(y))
    entries = given_X.data if as_csr else given_X
    for array in (entries, given_y, weight):
        array.setflags(write=False)
    model = new(like).partial_fit(given_X, given_y, classes, weight)
    model.partial_fit(given_X, given_y).unlearn(given_X, given_y)
    model.predict_proba(given_X)
    for label in classes:
        model.contributions(given_X, label)

    assert ((given_X.toarray() if as_csr else given_X) == X).all()
    assert (given_y == y).all()
    before = model.predict_joint_log_proba(X)
    for array in (entries, given_y, weight):
        array.setflags(write=True)
        array.fill(5)
    assert (model.predict_joint_log_proba(X) == before).all()


@every_model_also_unsmoothed
@given(corpus=corpora())
@some
def test_an_unpickled_model_is_the_same_bit_for_bit(like, corpus):
    model = trained(like, corpus)
    again = pickle.loads(pickle.dumps(model))

    assert again.get_params() == model.get_params()
    assert_same(again, model)


# --- consequences of the formulas ---


@given(corpus=corpora())
@some
def test_bernoulli_probabilities_of_all_documents_and_classes_sum_to_one(corpus):
    model = trained(BernoulliNB(alpha=0.3), corpus)
    documents = np.array(list(product([0, 1], repeat=corpus[0].shape[1])))

    assert np.exp(model.predict_joint_log_proba(documents)).sum() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("Class", [MultinomialNB, ComplementNB])
@given(corpus=corpora())
@some
def test_multinomial_probabilities_of_all_texts_of_a_length_sum_to_one(Class, corpus):
    model = trained(Class(alpha=0.3), corpus)
    length, d = 3, corpus[0].shape[1]
    bags = np.array([b for b in product(range(length + 1), repeat=d) if sum(b) == length])
    texts = np.array([factorial(length) / prod(map(factorial, bag)) for bag in bags.tolist()])
    joint = np.exp(model.predict_joint_log_proba(bags))

    if Class is MultinomialNB:
        assert (texts @ joint).sum() == pytest.approx(1, rel=1e-9)
    # Complement's ratios are no distribution, but never exceed the prior.
    assert (joint <= np.exp(model.class_log_prior_) * (1 + 1e-12)).all()


@given(corpus=corpora(most_classes=2))
@some
def test_complement_of_two_classes_is_the_multinomial_model(corpus):
    X, y, _ = corpus
    corpus = X, y, np.arange(2)
    complement, multinomial = trained(ComplementNB(), corpus), trained(MultinomialNB(), corpus)

    other = multinomial.feature_log_prob_[::-1]
    np.testing.assert_allclose(complement.feature_log_prob_, -other, rtol=1e-12)
    ask = questions(X)
    expected = multinomial.predict_proba(ask)
    np.testing.assert_allclose(complement.predict_proba(ask), expected, atol=1e-9)
