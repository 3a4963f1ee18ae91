"""Laws that every model of columns obeys."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nbspam.models import (
    A2DE,
    AODE,
    COUNTED,
    ESTIMATORS,
    SPODE,
    TAN,
    BayesianNetwork,
    CategoricalNB,
    GaussianNB,
    MixedNB,
    column_class,
    model_state,
    restored,
)
from nbspam.models.base import logsumexp
from nbspam.models.columns import (
    CountedColumns,
    CountedComplementNB,
    CountedMultinomialNB,
)
from support import COLUMN_MODELS, PAIR_MODELS, examples, tables

# The parameters of each model beside levels: the defaults, and others.
VARIANTS = {
    "categorical": (CategoricalNB, {}),
    "categorical map": (CategoricalNB, {"estimate": "map", "alpha": 1.5}),
    "gaussian": (GaussianNB, {}),
    "gaussian ddof 0": (GaussianNB, {"ddof": 0, "class_prior": "uniform"}),
    "mixed": (MixedNB, {}),
    "multinomial": (CountedMultinomialNB, {}),
    "complement": (CountedComplementNB, {}),
    "spode": (SPODE, {"parent": 0}),
    "tan": (TAN, {}),
    "aode": (AODE, {}),
    "aode support 3": (AODE, {"min_support": 3, "alpha": 0.2, "class_prior": "estimated"}),
    "a2de": (A2DE, {}),
    "a2de support 3": (A2DE, {"min_support": 3, "alpha": 0.2}),
    "network": (BayesianNetwork, {}),
    "network naive": (
        BayesianNetwork,
        {"start": "naive", "climb": False, "alpha": 0.2, "class_prior": "estimated"},
    ),
}
UNSMOOTHED = {
    f"{Class.__name__} mle": (Class, {"estimate": "mle", **more})
    for Class, more in (
        (CategoricalNB, {}),
        (MixedNB, {}),
        (SPODE, {"parent": 0}),
        (TAN, {}),
        (AODE, {}),
        (A2DE, {}),
        (BayesianNetwork, {}),
    )
}
every_model = pytest.mark.parametrize("name", VARIANTS)
every_model_also_unsmoothed = pytest.mark.parametrize("name", [*VARIANTS, *UNSMOOTHED])
some = examples(5)


def new(name, levels):
    """Return an untrained model; a mixed model takes every other column for numbers."""
    Class, more = (VARIANTS | UNSMOOTHED)[name]
    if issubclass(Class, GaussianNB | CountedColumns):
        return Class(**more)
    if Class is MixedNB:
        levels = np.where(np.arange(len(levels)) % 2, 0, levels)
    return Class(levels=levels, **more)


def trained(name, table, classes=(0, 1, 2)):
    X, y, levels = table
    return new(name, levels).partial_fit(X, y, classes=classes)


def questions(X, levels):
    """Return rows to classify: those learnt, all missing, first values, last values."""
    n = len(levels)
    return np.concatenate([X, np.full((1, n), np.nan), np.zeros((1, n)), levels[None] - 1.0])


def assert_same(one, two, ask):
    """Assert that two models have learnt the same: equal counts, moments up to rounding."""
    assert one.classes_.tolist() == two.classes_.tolist()
    for name in one._sums:
        if name in ("mean_", "deviation_"):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-12)
        else:
            assert getattr(one, name).tolist() == getattr(two, name).tolist()
    if "mean_" not in one._sums:
        mine, theirs = (each.predict_joint_log_proba(ask) for each in (one, two))
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_the_laws_are_tried_on_every_model_of_columns():
    of_counts = {column_class(name) for name in COUNTED}
    assert {Class for Class, _ in VARIANTS.values()} == {*COLUMN_MODELS, *of_counts}


# --- learning is addition ---


@every_model_also_unsmoothed
@given(table=tables())
@some
def test_unlearning_undoes_learning(name, table):
    X, y, levels = table
    half = len(y) // 2
    model = trained(name, table).partial_fit(X[:half], y[:half])
    model.unlearn(X[:half], y[:half])
    assert_same(model, trained(name, table), questions(X, levels))

    model.unlearn(X, y)
    assert not any(getattr(model, total).any() for total in model._sums)


@every_model
def test_unlearning_documents_never_learnt_is_refused(name):
    X, levels = np.zeros((3, 2)), np.array([2, 2])
    model = trained(name, (X, np.zeros(3, int), levels))

    with pytest.raises(ValueError, match="not all of these documents were learnt"):
        model.unlearn(X, np.ones(3, int))


@every_model_also_unsmoothed
@given(table=tables(), data=st.data())
@some
def test_batches_in_any_order_and_merged_shards_equal_one_fit(name, table, data):
    X, y, levels = table
    whole = trained(name, table)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    cut = data.draw(st.integers(1, len(y)))
    parts = [part for part in (order[:cut], order[cut:]) if len(part)]
    ask = questions(X, levels)

    batched = new(name, levels)
    for part in parts:
        batched.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert_same(batched, whole, ask)
    first, *others = (trained(name, (X[part], y[part], levels)) for part in parts)
    for other in others:
        first.merge(other)
    assert_same(first, whole, ask)


@every_model
@given(table=tables())
@some
def test_a_weight_of_n_equals_n_copies_of_the_row(name, table):
    X, y, levels = table
    weight = np.arange(len(y)) % 3.0
    weighted = new(name, levels).partial_fit(X, y, [0, 1, 2], sample_weight=weight)

    repeat = np.repeat(np.arange(len(y)), weight.astype(int))
    twice = new(name, levels).partial_fit(X[repeat], y[repeat], [0, 1, 2])
    assert_same(weighted, twice, questions(X, levels))


# --- names and orders have no effect ---


@every_model
@given(table=tables(), data=st.data())
@some
def test_permuting_columns_or_classes_only_permutes_the_posterior(name, table, data):
    X, y, levels = table
    ask = questions(X, levels)
    answer = trained(name, table).predict_proba(ask)

    # Left out: trees and graphs, whose ties are broken by order; mixed columns, of which every
    # other holds numbers; SPODEs, whose parent is given by its index.
    if name not in ("tan", "mixed", "spode", "network"):
        columns = data.draw(st.permutations(range(len(levels))))
        model = trained(name, (X[:, columns], y, levels[columns]))
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
    straight, permuted = TAN(levels=[3] * 6), TAN(levels=[3] * 6)

    expected = straight.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(
        permuted.fit(X[:, columns], y).predict_proba(X[:, columns]), expected, atol=1e-9
    )
    parents = straight.parents_[columns]
    assert np.where(permuted.parents_ < 0, -1, columns[permuted.parents_]).tolist() == (
        parents.tolist()
    )


@every_model_also_unsmoothed
@given(table=tables())
@some
def test_a_row_is_classified_the_same_alone_and_among_others(name, table):
    X, _, levels = table
    ask = questions(X, levels)
    model = trained(name, table)
    joint = model.predict_joint_log_proba(ask)

    for row, expected in zip(ask, joint, strict=True):
        np.testing.assert_allclose(model.predict_joint_log_proba(row[None])[0], expected, 1e-12)


@pytest.mark.parametrize("Class", PAIR_MODELS)
@given(table=tables(missing=False))
@some
def test_binary_columns_equal_columns_of_two_values_in_any_storage(Class, table):
    X, y, _ = table
    present = (X > 0).astype(float)
    two = Class(levels=[2] * X.shape[1]).fit(present, y)
    expected = two.predict_joint_log_proba(present)

    for stored in (X, X > 0, sparse.csr_array(X), sparse.csr_matrix(X), sparse.coo_array(X)):
        model = Class().fit(stored, y)
        np.testing.assert_allclose(model.predict_joint_log_proba(stored), expected, rtol=1e-12)
        if Class is not A2DE:
            for mine, theirs in zip(model.value_counts(), two.value_counts(), strict=True):
                assert (mine == theirs).all()


# --- predicting ---


@every_model_also_unsmoothed
@given(table=tables())
@some
def test_posteriors_are_probabilities_for_any_row(name, table):
    X, y, levels = table
    ask = questions(X, levels)
    model = trained(name, table, classes=[0, 1, 2, 99])
    forgetful = trained(name, table).unlearn(X, y)
    for each in (model, forgetful):
        posterior = each.predict_proba(ask)

        assert ((posterior >= 0) & (posterior <= 1)).all()
        np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=0, atol=1e-12)


@every_model
@given(table=tables())
@some
def test_a_row_of_missing_values_gets_the_prior(name, table):
    X, _, _ = table
    model = trained(name, table)
    nothing = np.full((1, X.shape[1]), np.nan)

    np.testing.assert_allclose(
        model.predict_proba(nothing)[0], np.exp(model.class_log_prior_), rtol=1e-12
    )


@every_model_also_unsmoothed
@given(table=tables())
@some
def test_inputs_are_neither_changed_nor_kept(name, table):
    X, y, levels = table
    given_X, given_y, weight = X.copy(), y.copy(), np.ones(len(y))
    for array in (given_X, given_y, weight):
        array.setflags(write=False)
    model = new(name, levels).partial_fit(given_X, given_y, [0, 1, 2], weight)
    model.partial_fit(given_X, given_y).unlearn(given_X, given_y)
    before = model.predict_joint_log_proba(given_X)

    for array in (given_X, given_y, weight):
        array.setflags(write=True)
        array.fill(0)
    assert (model.predict_joint_log_proba(X) == before).all()


@every_model_also_unsmoothed
@given(table=tables())
@some
def test_a_restored_model_predicts_the_same_bit_for_bit(name, table):
    X, _, levels = table
    ask = questions(X, levels)
    model = trained(name, table)
    expected = model.predict_joint_log_proba(ask).tolist()

    again = pickle.loads(pickle.dumps(model))
    assert again.predict_joint_log_proba(ask).tolist() == expected
    kind = next(kind for kind in ESTIMATORS if column_class(kind) is type(model))
    from_file = restored(kind, model_state(model), model.classes_, ask[:1])
    assert from_file.predict_joint_log_proba(ask).tolist() == expected


# --- consequences of the formulas ---


@given(table=tables())
@some
def test_aode_is_the_mean_of_the_spodes_of_all_columns(table):
    X, y, levels = table
    # A column with a single value is no parent; the last one has several.
    X, levels = np.column_stack([X, y % 2]), np.append(levels, 2)
    table = X, y, levels
    ask = np.array(list(product(*map(range, levels))), float)
    log = [
        trained("aode", table)
        if parent is None
        else SPODE(levels=levels, parent=parent).partial_fit(X, y, classes=[0, 1, 2])
        for parent in (None, *np.flatnonzero(levels > 1))
    ]
    aode, *spodes = (np.exp(model.predict_joint_log_proba(ask)) for model in log)
    support = log[0].own_counts().sum(axis=0)[ask.astype(int) + np.cumsum(levels) - levels]

    # A value that no row has is no parent.
    known = support.all(axis=1)
    np.testing.assert_allclose(aode[known], np.mean(spodes, axis=0)[known], rtol=1e-9)


@given(table=tables())
@some
def test_a_spode_with_a_constant_parent_is_naive_bayes(table):
    X, y, levels = table
    X, levels = np.column_stack([np.zeros(len(y)), X]), np.append(1, levels)
    table = X, y, levels
    ask = questions(X, levels)

    np.testing.assert_allclose(
        trained("spode", table).predict_proba(ask),
        trained("categorical", table).predict_proba(ask),
        atol=1e-12,
    )


@given(table=tables(missing=False))
@some
def test_joint_probabilities_of_all_rows_and_classes_sum_to_one(table):
    levels = table[2]
    rows = np.array(list(product(*map(range, levels))), float)
    for name in ("categorical", "tan"):
        joint = trained(name, table).predict_joint_log_proba(rows)
        assert np.exp(logsumexp(joint.reshape(1, -1)))[0, 0] == pytest.approx(1, rel=1e-9)
    # But for a SPODE: the denominator of eq. 7.24 does not count the classes.
    n, v, k = len(table[1]), levels[0], 3
    joint = trained("spode", table).predict_joint_log_proba(rows)
    total = np.exp(logsumexp(joint.reshape(1, -1)))[0, 0]
    assert total == pytest.approx((n + k * v) / (n + v), rel=1e-9)


@pytest.mark.parametrize("Class", [TAN, AODE, SPODE])
def test_for_independent_columns_every_model_is_naive_bayes(Class):
    # Every combination of two columns occurs equally often in each class.
    rows = np.array(list(product(range(3), range(2))) * 4, float)
    y = np.repeat([0, 1], 12)
    model = Class(levels=[3, 2], estimate="mle").fit(rows, y)
    naive = CategoricalNB(levels=[3, 2], estimate="mle").fit(rows, y)

    np.testing.assert_allclose(model.predict_proba(rows), naive.predict_proba(rows), atol=1e-12)
