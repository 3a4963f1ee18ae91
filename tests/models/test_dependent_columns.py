"""Models of columns that depend on each other agree with their definitions, by brute force."""

from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import log, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import mutual_info_score

from nbspam.models import A2DE, AKDE, AODE, SPODE, TAN, BayesianNetwork, CategoricalNB, MixedNB
from nbspam.models.dependent import class_information, conditional_information
from nbspam.models.inputs import DataError, UnfittedError
from support import examples, tables

some = examples(8)


@pytest.mark.parametrize("Model", [A2DE, AKDE, AODE, SPODE, TAN, BayesianNetwork])
@pytest.mark.parametrize(("levels", "others"), [(None, [2, 2]), ([2, 2], None)])
def test_columns_that_cease_or_begin_to_be_binary_are_learnt_again(Model, levels, others):
    X, y = [[0, 1], [1, 0], [1, 1], [0, 0]] * 3, ["ham", "spam", "ham"] * 4
    model = Model(levels=levels).fit(X, y).set_params(levels=others)
    with pytest.raises(UnfittedError, match="call fit"):
        model.predict_proba(X)
    expected = Model(levels=others).fit(X, y).predict_proba(X)
    assert np.array_equal(model.fit(X, y).predict_proba(X), expected)


def count(X, y, label, fixed, known=()):
    """Return the number of rows of a class (None: all) with values {column: value} and others."""
    chosen = np.full(len(y), True) if label is None else y == label
    for column, value in fixed.items():
        chosen &= X[:, column] == value
    return int((chosen & ~np.isnan(X[:, [*known]]).any(axis=1)).sum())


def given_by(X, y, prior, label, column, value, fixed):
    """Return (count + a) / (n + sum of a): P(value given class and other values).

    prior: the numbers a that are added, for each column, and for the classes last.
    """
    n = count(X, y, label, fixed, [column])
    added = prior[column][int(value)]
    return Fraction(count(X, y, label, {**fixed, column: value}) + added, n + sum(prior[column]))


def others(X, y, prior, row, label, fixed):
    """Return the product of P(value given class and fixed values) of all other columns."""
    left = [j for j, value in enumerate(row) if j not in fixed and not np.isnan(value)]
    return prod((given_by(X, y, prior, label, j, row[j], fixed) for j in left), start=Fraction(1))


def spode(X, y, prior, row, label, parent):
    """Return P(class, parent) times P(others given class, parent) of a row."""
    if np.isnan(row[parent]):
        return naive(X, y, prior, row, label)
    fixed = {parent: row[parent]}
    added = prior[parent][int(row[parent])]
    n = count(X, y, None, {}, [parent]) + sum(prior[parent])
    share = Fraction(count(X, y, label, fixed) + added, n)
    return share * others(X, y, prior, row, label, fixed)


def class_share(y, prior, label):
    return Fraction(int(sum(y == label)) + prior[-1][label], len(y) + sum(prior[-1]))


def naive(X, y, prior, row, label):
    return class_share(y, prior, label) * others(X, y, prior, row, label, {})


def akde(X, y, prior, row, label, order):
    """Return the mean over all sets of `order` columns as parents, or that of a lower order."""
    found = []
    for parents in combinations(range(len(row)), order):
        fixed = {j: row[j] for j in parents}
        if all(len(prior[j]) > 1 for j in parents) and count(X, y, None, fixed):
            # What is added to a set of values is the mean of what is added to each of them.
            cells = [*product(*(prior[j] for j in parents))]
            own = Fraction(sum(prior[j][int(row[j])] for j in parents), order)
            everything = sum(Fraction(sum(cell), order) for cell in cells)
            n = count(X, y, None, {}, parents) + everything
            share = (count(X, y, label, fixed) + own) / n
            found.append(share * others(X, y, prior, row, label, fixed))
    if found:
        return sum(found) / len(found)
    return (
        akde(X, y, prior, row, label, order - 1) if order > 1 else naive(X, y, prior, row, label)
    )


def tan(X, y, prior, row, label, parents):
    share = class_share(y, prior, label)
    for j, value in enumerate(row):
        if not np.isnan(value):
            parent = parents[j]
            has_parent = parent >= 0 and not np.isnan(row[parent])
            fixed = {parent: row[parent]} if has_parent else {}
            share *= given_by(X, y, prior, label, j, value, fixed)
    return share


def led_away_from(root, edges, parent=-1):
    """Return {column: parent} of the tree of these edges {one, other} with another root."""
    found = {root: parent}
    for edge in edges:
        for child in edge - {root, parent} if root in edge else ():
            found |= led_away_from(child, edges, root)
    return found


def priors(levels):
    """Return Laplace's prior and an uneven one: what is added to each value and class."""
    return [[1] * n for n in (*levels, 3)], [
        [(2 * k + n) % 5 + 1 for k in range(n)] for n in (*levels, 3)
    ]


@pytest.mark.parametrize("is_uneven", [False, True])
@given(table=tables())
@some
def test_models_agree_with_their_definitions_on_all_rows(is_uneven, table):
    X, y, levels = table
    asked = np.array(list(product(*([*range(n), np.nan] for n in levels))))[:25]
    prior = priors(levels)[is_uneven]
    prior[-1] = [1] * 3  # the prior of classes that are counted with parents
    how = {"levels": levels, "dirichlet": [*prior[:-1], None] if is_uneven else None}
    tree = TAN(**how).partial_fit(X, y, classes=[0, 1, 2])
    models = {
        naive: CategoricalNB(**how),
        lambda *of: naive(*of): BayesianNetwork(start="naive", climb=False, **how),
        **{partial(spode, parent=j): SPODE(parent=j, **how) for j in range(len(levels))},
        partial(akde, order=1): AODE(**how),
        partial(akde, order=2): A2DE(**how),
        **{partial(akde, order=k): AKDE(order=k, **how) for k in (1, 2, 3, 4)},
        lambda *of: tan(*of, tree.parents_): tree,
    }
    for definition, model in models.items():
        if model is not tree:
            model.partial_fit(X, y, classes=[0, 1, 2])
        expected = [[definition(X, y, prior, row, c) for c in range(3)] for row in asked]
        np.testing.assert_allclose(
            np.exp(model.predict_joint_log_proba(asked)), np.array(expected, float), rtol=1e-9
        )


def test_the_parents_of_akde_are_refused_if_they_are_too_many_or_none():
    many = np.arange(200).reshape(2, 100) % 2 ^ np.array([[0], [1]])
    with pytest.raises(DataError, match=r"order: 3 of 100 columns .* 161,700 ways, more than"):
        AKDE(levels=[2] * 100).fit(many, [0, 1])
    for order in 0, None, 2.5:
        with pytest.raises(DataError, match=f"order: {order} is not a whole number from 1 up"):
            AKDE(order=order).fit([[0, 1]], [0])
    with pytest.raises(DataError, match="min_support: 0 is not a number above 0"):
        AKDE(min_support=0).fit([[0, 1]], [0])


@given(table=tables())
@some
def test_the_tree_may_be_led_away_from_any_root_and_averaged_over_all(table):
    X, y, levels = table
    prior = priors(levels)[1]
    asked = np.array(list(product(*([*range(n), np.nan] for n in levels))))[:25]
    model = TAN(levels=levels, dirichlet=prior).partial_fit(X, y, classes=[0, 1, 2])
    edges = [{j, p} for j, p in enumerate(model.parents_.tolist()) if p >= 0]
    by_root = {}
    for root in range(len(levels)):
        parents = led_away_from(root, edges)
        model.set_params(root=root)
        assert model.parents_.tolist() == [parents[j] for j in range(len(levels))]
        by_root[root] = np.array(
            [[tan(X, y, prior, row, c, parents) for c in range(3)] for row in asked], float
        )
        np.testing.assert_allclose(np.exp(model.predict_joint_log_proba(asked)), by_root[root])
    varied = [by_root[j] for j, n in enumerate(levels) if n > 1]
    mean = np.mean(varied, axis=0) if varied else by_root[0]
    found = model.set_params(root="all").predict_joint_log_proba(asked)
    np.testing.assert_allclose(np.exp(found), mean)
    with pytest.raises(DataError, match="root: 9 is none of the columns"):
        TAN(levels=levels, root=9).fit(X, y)


@pytest.mark.parametrize("n_numbers", [0, 2])
@pytest.mark.parametrize("seed", range(5))
def test_the_parent_has_the_fewest_errors_in_leave_one_out_cross_validation(seed, n_numbers):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (25, 4)).astype(float)
    y = ((X[:, 1] + X[:, 2] + rng.integers(0, 2, 25)) % 3).astype(int)
    X = np.column_stack([X, rng.normal(y[:, None] + 3 * X[:, [1]], 1.0, (25, n_numbers))])
    X[rng.random(X.shape) < 0.1] = np.nan
    levels, errors, loss = [3] * 4 + [0] * n_numbers, np.zeros(4, int), np.zeros(4)
    for parent, i in product(range(4), range(25)):
        rest = np.arange(25) != i
        model = SPODE(levels=levels, parent=parent)
        model.partial_fit(X[rest], y[rest], classes=[0, 1, 2])
        # Rounded, because of classes that are equally probable the first is the answer.
        posterior = model.predict_log_proba(X[i : i + 1])[0].round(9)
        errors[parent] += posterior.argmax() != y[i]
        loss[parent] -= posterior[y[i]]

    chosen = SPODE(levels=levels).fit(X, y)
    assert chosen.parent_ == np.lexsort([loss, errors])[0]
    assert chosen.parent_errors_.tolist() == [*errors.tolist(), *[25] * n_numbers]
    np.testing.assert_allclose(chosen.parent_loss_[:4], loss / 25, atol=1e-6)
    assert SPODE().fit(X > 0, y).parent_ in range(X.shape[1])


@pytest.mark.parametrize("seed", range(5))
def test_weights_choose_the_parent_as_copies_of_the_rows_do(seed):
    rng = np.random.default_rng(seed)
    X, y, times = rng.integers(0, 2, (12, 4)), rng.integers(0, 2, 12), rng.integers(0, 4, 12)
    copies = np.repeat(np.arange(12), times)
    weighted, copied = SPODE().fit(X, y, times), SPODE().fit(X[copies], y[copies])
    assert weighted.parent_ == copied.parent_
    assert weighted.parent_errors_.tolist() == copied.parent_errors_.tolist()
    np.testing.assert_allclose(weighted.parent_loss_, copied.parent_loss_, atol=1e-9)


@pytest.mark.parametrize("Model", [A2DE, AODE, SPODE, TAN])
def test_fractional_weights_leave_nothing_where_no_row_is(Model):
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((20, 3)) < 0.9, rng.integers(0, 2, 20), rng.random(20)
    ours, expected = (Model(levels=n, estimate="mle") for n in (None, [2, 2, 2]))
    of_rows = expected.fit(X, y, weight).predict_proba(X)  # which counts all values
    np.testing.assert_allclose(ours.fit(X, y, weight).predict_proba(X), of_rows, atol=1e-9)


def test_partial_fit_keeps_the_parent_and_fit_chooses_again():
    y = np.array([0, 1] * 10)
    by_first, by_second = np.column_stack([y, y * 0]), np.column_stack([y * 0, y])
    model = SPODE(alpha=0.1).partial_fit(by_second, y)
    assert model.parent_ == model.partial_fit(by_first, y).parent_
    assert SPODE(parent=1).fit(by_first, y).parent_ == 1
    noise = np.random.default_rng(0).integers(0, 2, (20, 2))
    xor = (noise.sum(axis=1) + y) % 2
    X = np.column_stack([noise[:, 0], xor, noise[:, 1]])
    assert model.fit(X, y).parent_ == SPODE(alpha=0.1).fit(X, y).parent_


@given(table=tables())
@some
def test_mutual_information_agrees_with_scikit_learn(table):
    X, y, levels = table
    model = AODE(levels=levels).partial_fit(X, y, classes=[0, 1, 2])
    found = conditional_information(list(model.value_counts()), model.encoding.levels)
    for i, j in combinations(range(len(levels)), 2):
        both = ~np.isnan(X[:, [i, j]]).any(axis=1)
        expected = 0.0
        for c in set(y[both]):
            own = both & (y == c)
            expected += own.sum() / both.sum() * mutual_info_score(X[own, i], X[own, j])
        assert found[[i, j], [j, i]] == pytest.approx(expected, abs=1e-12)

    alone = class_information(model.own_counts(), model.encoding.levels)
    for j in range(len(levels)):
        own = ~np.isnan(X[:, j])
        expected = mutual_info_score(X[own, j], y[own]) if own.any() else 0.0
        assert alone[j] == pytest.approx(expected, abs=1e-12)


def test_tan_finds_the_tree_of_a_hand_worked_table():
    # Two classes of four rows.  Given the class, column 1 copies column 0, and column 2 is
    # independent of both: I(0;1|C) = log 2; I(0;2|C) = I(1;2|C) = 0.
    X = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 2
    y = [0] * 4 + [1] * 4
    X[7] = [1, 1, 0]  # now column 2 depends on the class, and is the root
    model = TAN(levels=[2, 2, 2], estimate="mle").fit(X, y)

    counts = model.value_counts()
    information = conditional_information(counts, model.encoding.levels)
    assert information[0, 1] == pytest.approx(log(2))
    # In class 1 the four rows are 000, 001, 110, 110: of eight rows in all,
    # 2/8 log(2 * 4 / (2 * 3)) + 1/8 log(1 * 4 / (2 * 3)) + 1/8 log(1 * 4 / (2 * 1)).
    expected = 2 / 8 * log(8 / 6) + 1 / 8 * log(4 / 6) + 1 / 8 * log(4 / 2)
    assert information[0, 2] == information[1, 2] == pytest.approx(expected)
    assert model.parents_.tolist() == [2, 0, -1]
    for weight in (1e300, 1e-300):  # their products are infinite or 0
        assert model.fit(X, y, np.full(8, weight)).parents_.tolist() == [2, 0, -1]
    model.fit(X, y)
    # P(class 1) P(x2=0 | 1) P(x0=1 | x2=0, 1) P(x1=1 | x0=1, 1) = 1/2 3/4 2/3 1.
    joint = np.exp(model.predict_joint_log_proba([[1, 1, 0]])[0])
    assert joint == pytest.approx([1 / 2 * 1 / 2 * 1 / 2, 1 / 2 * 3 / 4 * 2 / 3])


IS_MLE = pytest.mark.parametrize("estimate", ["mean", "mle"])


@st.composite
def mixed_tables(draw):
    """Return a table whose first columns are categories, and two of numbers; (X, y, levels)."""
    X, y, levels = draw(tables())
    rng = np.random.default_rng(len(y))
    numbers = rng.normal(y[:, None] + [0, 5], 1.0)
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return np.column_stack([X, numbers]), y, np.append(levels, [0, 0])


def bell(X, y, ddof, label, column, fixed=()):
    """Return mean and variance of a column in a class, in rows with the values {column: value}.

    Too few numbers are replaced by those of the class, or of all rows.
    """
    chosen = np.full(len(y), True) if label is None else y == label
    for j, value in dict(fixed).items():
        chosen &= X[:, j] == value
    numbers = X[chosen & ~np.isnan(X[:, column]), column]
    if label is None:
        return (numbers.mean(), numbers.var()) if len(numbers) else (0.0, 0.0)
    other = bell(X, y, ddof, label, column) if fixed else bell(X, y, ddof, None, column)
    mean = numbers.mean() if len(numbers) else other[0]
    variance = numbers.var(ddof=ddof) if len(numbers) > ddof else other[1]
    whole = bell(X, y, ddof, None, column)[1]
    return mean, max(variance, 1e-9 * whole, 1e-100) if whole else 1.0


def density(x, mean, variance):
    return norm.pdf(x, mean, np.sqrt(variance))


def densities(X, y, ddof, row, label, parents):
    """Return the product of a row's densities given class and parents: {number: column or -1}."""
    found = 1.0
    for column, parent in parents.items():
        if row[column] == row[column]:
            known = parent >= 0 and row[parent] == row[parent]
            fixed = {parent: row[parent]} if known else {}
            found *= density(row[column], *bell(X, y, ddof, label, column, fixed))
    return found


@IS_MLE
@given(table=mixed_tables())
@some
def test_numbers_have_the_density_of_the_rows_with_class_and_value(estimate, table):
    X, y, levels = table
    d, ddof = len(levels) - 2, estimate == "mean"
    codes = list(product(*([*range(n), np.nan] for n in levels[:-2])))[:12]
    ask = np.array([[*row, *more] for row in codes for more in ((0.3, 4.0), (np.nan, 6.0))])
    how = {"estimate": estimate}
    learn = {"y": y, "classes": [0, 1, 2]}

    # Factors of the categories are those of the same model without numbers, tested elsewhere.
    for place, Class in ((0, partial(SPODE, parent=0)), (1, TAN)):
        model = Class(levels=levels, **how).partial_fit(X, **learn)
        plain = Class(levels=levels[:-2], **how).partial_fit(X[:, :-2], **learn)
        parents = dict.fromkeys((d, d + 1), 0)
        if place:
            assert model.parents_[:-2].tolist() == plain.parents_.tolist()
            parents = dict(zip((d, d + 1), model.parents_[-2:].tolist(), strict=True))
        expected = np.exp(plain.predict_joint_log_proba(ask[:, :-2])) * [
            [densities(X, y, ddof, row, c, parents) for c in range(3)] for row in ask
        ]
        np.testing.assert_allclose(
            np.exp(model.predict_joint_log_proba(ask)), expected, rtol=1e-9, atol=1e-300
        )


@IS_MLE
@given(table=mixed_tables())
@some
def test_aode_is_the_mean_of_spodes_of_all_categories(estimate, table):
    X, y, levels = table
    how = {"levels": levels, "estimate": estimate}
    aode = AODE(**how).partial_fit(X, y, [0, 1, 2])
    varied = np.flatnonzero(levels > 1).tolist()
    for row in X:
        parents = [j for j in varied if row[j] == row[j]]
        found = [SPODE(parent=j, **how).partial_fit(X, y, [0, 1, 2]) for j in parents]
        found = found or [MixedNB(**how).partial_fit(X, y, [0, 1, 2])]
        mean = np.mean([np.exp(m.predict_joint_log_proba(row[None])) for m in found], axis=0)
        # Denormal numbers have few digits.
        found_mean = np.exp(aode.predict_joint_log_proba(row[None]))
        np.testing.assert_allclose(found_mean, mean, 1e-9, 1e-300)
    assert aode.parent_columns() == [j for j in varied if (X[:, j] >= 0).any()]


@IS_MLE
def test_the_parent_of_a_number_is_the_column_given_which_it_is_likeliest(estimate):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 20)
    X = np.column_stack([rng.integers(0, 3, (60, 3)), rng.normal(size=(60, 2))])
    X[:, 3] += X[:, 1]
    levels, ddof = [3, 3, 3, 0, 0], estimate == "mean"
    model = TAN(levels=levels, estimate=estimate).fit(X, y)
    for number, parent in product((3, 4), range(3)):
        gain = [
            log(density(row[number], *bell(X, y, ddof, c, number, {parent: row[parent]})))
            - log(density(row[number], *bell(X, y, ddof, c, number)))
            for row, c in zip(X, y, strict=True)
        ]
        found = model.information()[[number, parent], [parent, number]]
        assert found == pytest.approx(np.mean(gain))
    assert model.parents_[3] == 1
    assert model.information()[3, 4] == 0


@pytest.mark.parametrize(("make", "levels", "says"), [
    (partial(SPODE, parent=1), [2, 0], "parent: 1 is none .* that hold categories"),
    (partial(TAN, root=1), [2, 0], "root: 1 is none .* that hold categories"),
    (AODE, [0, 0], "no column holds categories"),
    (A2DE, [2, 0], "takes only categories"),
])  # fmt: skip
def test_numbers_are_no_parents(make, levels, says):
    with pytest.raises(DataError, match=says):
        make(levels=levels).fit([[0, 1.5], [1, 2.5]], [0, 1])
    for cells in ([0, 1.5], [1.5, 0]):  # every row is impossible, whatever is its parent
        levels = [int(cell == 0) for cell in cells]
        model = SPODE(levels=levels, estimate="mle").fit([cells, cells], [0, 1])
        assert model.parent_ == levels.index(1)
