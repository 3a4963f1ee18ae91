"""Models of columns give the textbooks' numbers, their definitions by brute force, and
scikit-learn's numbers.
"""

import csv
from fractions import Fraction
from itertools import combinations, product
from math import log

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from scipy.stats import norm

from nbspam.models import A2DE, AODE, SPODE, TAN, CategoricalNB, GaussianNB, MixedNB
from nbspam.models.columns.estimates import addend, dirichlet_mean
from nbspam.models.columns.tan import class_information, conditional_information, spanning_tree
from nbspam.models.inputs import DataError
from support import COLUMN_MODELS, PAIR_MODELS, ROOT, examples, tables

some = examples(8)


def textbook(name):
    with open(ROOT / "corpora" / name, encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


# --- Li Hang, Statistical Learning Methods, table 4.1 ---

# Columns: X1 as 1 2 3, X2 as S M L; the row to classify is (2, S).
LIHANG = textbook("lihang-4.1.csv")
LIHANG_X = [[int(a) - 1, "SML".index(b)] for a, b, _ in LIHANG]
LIHANG_Y = [int(y) for _, _, y in LIHANG]


def test_maximum_likelihood_agrees_with_example_4_1():
    model = CategoricalNB(estimate="mle").fit(LIHANG_X, LIHANG_Y)

    no, yes = 6 / 15 * 2 / 6 * 3 / 6, 9 / 15 * 3 / 9 * 1 / 9
    joint = np.exp(model.predict_joint_log_proba([[1, 0]])[0])
    assert joint == pytest.approx([no, yes])
    assert joint == pytest.approx([1 / 15, 1 / 45])
    assert model.predict([[1, 0]]).tolist() == [-1]


def test_smoothing_agrees_with_example_4_2():
    model = CategoricalNB(alpha=1.0).fit(LIHANG_X, LIHANG_Y)

    assert np.exp(model.class_log_prior_) == pytest.approx([7 / 17, 10 / 17])
    no, yes = 7 / 17 * 3 / 9 * 4 / 9, 10 / 17 * 4 / 12 * 2 / 12
    joint = np.exp(model.predict_joint_log_proba([[1, 0]])[0])
    assert joint == pytest.approx([no, yes])
    assert joint == pytest.approx([28 / 459, 5 / 153])
    assert joint.round(4).tolist() == [0.061, 0.0327]


# --- Zhou Zhihua, Machine Learning, table 4.3: watermelon data set 3.0 ---

# Colour, root, sound, texture, navel, touch, density, sugar; class 是 (yes) or 否 (no).
MELONS = textbook("watermelon-3.0.csv")
VALUES = [sorted({row[j] for row in MELONS}) for j in range(6)]
MELON_X = np.array(
    [[*(VALUES[j].index(row[j]) for j in range(6)), *map(float, row[6:8])] for row in MELONS]
)
MELON_Y = np.array(["yes" if row[8] == "是" else "no" for row in MELONS])
LEVELS = [len(values) for values in VALUES]
# The test example of section 7.3: green, curled, dull, clear, sunken, hard; 0.697, 0.460.
ASKED = MELON_X[:1]
NO, YES = 0, 1


def shares(model, column, value):
    """Return P(value given no), P(value given yes) of one column."""
    start = sum(LEVELS[:column]) + VALUES[column].index(value)
    log_prob = model.tables()[0] if isinstance(model, MixedNB) else model.level_log_prob_
    return np.exp(log_prob[:, start])


def test_mixed_agrees_with_section_7_3():
    # Relative frequencies, and the book's variances, which are divided by n - 1.
    model = MixedNB(levels=[*LEVELS, 0, 0], alpha=0).fit(MELON_X, MELON_Y)

    assert np.exp(model.class_log_prior_) == pytest.approx([9 / 17, 8 / 17])
    assert shares(model, 0, "青绿") == pytest.approx([3 / 9, 3 / 8])
    assert shares(model, 1, "蜷缩") == pytest.approx([3 / 9, 5 / 8])
    assert shares(model, 2, "浊响") == pytest.approx([4 / 9, 6 / 8])
    assert shares(model, 3, "清晰") == pytest.approx([2 / 9, 7 / 8])
    # The book prints 6/8 for the navel, but in its table it is five of eight.
    assert shares(model, 4, "凹陷") == pytest.approx([2 / 9, 5 / 8])
    assert shares(model, 5, "硬滑") == pytest.approx([6 / 9, 6 / 8])

    bells = model.tables()[1]
    deviation = np.sqrt(bells.variance)
    assert bells.mean.T.round(3).tolist() == [[0.496, 0.574], [0.154, 0.279]]
    assert deviation.T.round(3).tolist() == [[0.195, 0.129], [0.108, 0.101]]
    density = norm.pdf([[0.697, 0.460]], bells.mean, deviation)
    assert density.round(3).tolist() == [[1.203, 0.066], [1.959, 0.788]]

    no = 9 / 17 * 3 / 9 * 3 / 9 * 4 / 9 * 2 / 9 * 2 / 9 * 6 / 9 * np.prod(density[NO])
    yes = 8 / 17 * 3 / 8 * 5 / 8 * 6 / 8 * 7 / 8 * 5 / 8 * 6 / 8 * np.prod(density[YES])
    joint = np.exp(model.predict_joint_log_proba(ASKED)[0])
    assert joint == pytest.approx([no, yes])
    # With the book's 6/8 it would be its 0.063 (0.038 in the notes).
    assert joint[NO] == pytest.approx(6.86e-5, rel=1e-3)
    assert joint[YES] == pytest.approx(0.0524, rel=1e-3)
    # The book's 6.80e-5 is the product of the rounded factors it prints.
    printed = [0.529, 0.333, 0.333, 0.444, 0.222, 0.222, 0.667, 1.203, 0.066]
    assert np.prod(printed) == pytest.approx(6.80e-5, rel=2e-3)
    assert model.predict(ASKED).tolist() == ["yes"]


def test_the_variance_of_maximum_likelihood_is_divided_by_the_number_of_rows():
    """Eq. 7.13; the worked example of section 7.3 divides by one less."""
    numbers, labels = MELON_X[:, 6:], MELON_Y
    for model in (GaussianNB, lambda **how: MixedNB(levels=[0, 0], **how)):
        for estimate, divisor in (("mle", 0), ("mean", 1)):
            bells = model(estimate=estimate).fit(numbers, labels).tables()
            variance = bells[1].variance if isinstance(bells, tuple) else bells.variance
            expected = [numbers[labels == k].var(axis=0, ddof=divisor) for k in ("no", "yes")]
            np.testing.assert_allclose(variance, expected, rtol=1e-6)
    with pytest.raises(DataError, match="'map' is none of a variance; choose from mle, mean"):
        GaussianNB(estimate="map").fit(numbers, labels)


def test_laplace_agrees_with_section_7_3():
    model = CategoricalNB(levels=LEVELS).fit(MELON_X[:, :6], MELON_Y)

    assert np.exp(model.class_log_prior_).round(3).tolist() == [0.526, 0.474]
    assert shares(model, 0, "青绿").round(3).tolist() == [0.333, 0.364]
    # The zero count of the book: no good melon has a clear sound.
    assert shares(model, 2, "清脆")[YES] == pytest.approx((0 + 1) / (8 + 3))
    assert shares(model, 2, "清脆")[YES].round(3) == 0.091


def test_without_smoothing_a_zero_count_makes_a_class_impossible():
    model = CategoricalNB(levels=LEVELS, estimate="mle").fit(MELON_X[:, :6], MELON_Y)
    asked = ASKED[:, :6].copy()
    asked[0, 2] = VALUES[2].index("清脆")

    assert model.predict_joint_log_proba(asked)[0, YES] == -np.inf
    assert model.predict_proba(asked)[0].tolist() == [1.0, 0.0]
    # A row that is impossible in both classes gets the prior.
    asked[0, 3] = VALUES[3].index("模糊")
    asked[0, 0] = np.nan
    both = CategoricalNB(levels=[2], estimate="mle").fit([[0], [0], [0]], [0, 0, 1])
    assert both.predict_proba([[1]])[0] == pytest.approx([2 / 3, 1 / 3])
    # If all values of a column were missing, each value is equally likely.
    none = CategoricalNB(levels=[4], estimate="mle").fit([[np.nan], [np.nan]], [0, 1])
    assert np.exp(none.predict_joint_log_proba([[3]])[0]) == pytest.approx([1 / 8, 1 / 8])


def test_aode_agrees_with_section_7_5():
    model = AODE(levels=LEVELS).fit(MELON_X[:, :6], MELON_Y)
    yes = list(model.value_tables())[YES]
    dull = sum(LEVELS[:2]) + VALUES[2].index("浊响")
    sunken = sum(LEVELS[:4]) + VALUES[4].index("凹陷")

    assert np.exp(yes.parent[dull]) == pytest.approx((6 + 1) / (17 + 3))
    assert np.exp(yes.given[dull, sunken]) == pytest.approx((3 + 1) / (6 + 3))
    assert np.exp(yes.parent[dull]).round(3) == 0.35
    assert np.exp(yes.given[dull, sunken]).round(3) == 0.444
    # The same by predictions: only the sound is known; then sound and navel, sound as parent.
    asked = np.full((1, 6), np.nan)
    asked[0, 2] = VALUES[2].index("浊响")
    assert np.exp(model.predict_joint_log_proba(asked)[0, YES]) == pytest.approx(0.35)
    asked[0, 4] = VALUES[4].index("凹陷")
    spode = SPODE(levels=LEVELS, parent=2).fit(MELON_X[:, :6], MELON_Y)
    assert np.exp(spode.predict_joint_log_proba(asked)[0, YES]) == pytest.approx(7 / 20 * 4 / 9)


# --- estimates ---


def test_the_mode_with_alpha_is_the_mean_with_alpha_minus_one():
    for alpha in (1.0, 1.5, 3.0):
        mode = CategoricalNB(estimate="map", alpha=alpha).fit(LIHANG_X, LIHANG_Y)
        mean = CategoricalNB(estimate="mean", alpha=alpha - 1).fit(LIHANG_X, LIHANG_Y)
        assert (mode.level_log_prob_ == mean.level_log_prob_).all()
    mle = CategoricalNB(estimate="mle").fit(LIHANG_X, LIHANG_Y)
    mode = CategoricalNB(estimate="map", alpha=1.0).fit(LIHANG_X, LIHANG_Y)
    assert (mode.level_log_prob_ == mle.level_log_prob_).all()


def test_the_posterior_mean_of_two_values_is_that_of_the_beta_distribution():
    # N_jc heads of N_c throws, Beta(b1, b0): (N_jc + b1) / (N_c + b0 + b1).
    heads, throws, b1, b0 = 3, 10, 2.0, 5.0
    expected = (heads + b1) / (throws + b0 + b1)
    assert dirichlet_mean([heads, throws - heads], [b1, b0]) == pytest.approx(
        [expected, 1 - expected]
    )


def test_the_mode_is_where_the_posterior_is_highest():
    heads, throws, alpha = 3, 10, 2.5
    grid = np.linspace(0.001, 0.999, 999)
    log_posterior = (heads + alpha - 1) * np.log(grid) + (throws - heads + alpha - 1) * np.log(
        1 - grid
    )
    added = addend("map", alpha)
    mode = (heads + added) / (throws + 2 * added)
    assert grid[log_posterior.argmax()] == pytest.approx(mode, abs=1e-3)


# --- definitions, by brute force ---


def count(X, y, label, fixed):
    """Return the number of rows of a class (None: all) with these values {column: value}."""
    return sum(
        (label is None or c == label) and all(row[j] == v for j, v in fixed.items())
        for row, c in zip(X, y, strict=True)
    )


def known(X, y, label, columns, fixed=()):
    """Return the number of rows as `count` does, of those in which columns are known."""
    return sum(
        (label is None or c == label)
        and not any(np.isnan(row[j]) for j in columns)
        and all(row[j] == v for j, v in dict(fixed).items())
        for row, c in zip(X, y, strict=True)
    )


def given_by(X, y, levels, label, column, value, fixed):
    """Return (count + 1) / (n + values): Laplace's P(value given class and other values)."""
    n = known(X, y, label, [column], fixed)
    return Fraction(count(X, y, label, {**fixed, column: value}) + 1, int(n + levels[column]))


def spode(X, y, levels, row, label, parent):
    """Return P(class, parent) times P(others given class, parent) of a row."""
    fixed = {parent: row[parent]}
    n = known(X, y, None, [parent])
    share = Fraction(count(X, y, label, fixed) + 1, int(n + levels[parent]))
    for j, value in enumerate(row):
        if j != parent and not np.isnan(value):
            share *= given_by(X, y, levels, label, j, value, fixed)
    return share


def naive(X, y, levels, row, label):
    share = Fraction(sum(y == label) + 1, len(y) + 3)
    for j, value in enumerate(row):
        if not np.isnan(value):
            share *= given_by(X, y, levels, label, j, value, {})
    return share


def aode(X, y, levels, row, label):
    parents = [j for j, v in enumerate(row) if levels[j] > 1 and count(X, y, None, {j: v})]
    if not parents:
        return naive(X, y, levels, row, label)
    return sum(spode(X, y, levels, row, label, j) for j in parents) / len(parents)


def a2de(X, y, levels, row, label):
    total, n_parents = Fraction(0), 0
    for i, j in combinations(range(len(row)), 2):
        fixed = {i: row[i], j: row[j]}
        if min(levels[i], levels[j]) == 1 or not count(X, y, None, fixed):
            continue
        n = known(X, y, None, [i, j])
        share = Fraction(count(X, y, label, fixed) + 1, int(n + levels[i] * levels[j]))
        for k, value in enumerate(row):
            if k not in (i, j) and not np.isnan(value):
                share *= given_by(X, y, levels, label, k, value, fixed)
        total, n_parents = total + share, n_parents + 1
    return total / n_parents if n_parents else aode(X, y, levels, row, label)


def tan(X, y, levels, row, label, parents):
    share = Fraction(sum(y == label) + 1, len(y) + 3)
    for j, value in enumerate(row):
        if not np.isnan(value):
            parent = parents[j]
            has_parent = parent >= 0 and not np.isnan(row[parent])
            fixed = {parent: row[parent]} if has_parent else {}
            share *= given_by(X, y, levels, label, j, value, fixed)
    return share


@given(table=tables())
@some
def test_models_agree_with_their_definitions_on_all_rows(table):
    X, y, levels = table
    asked = np.array(list(product(*([*range(n), np.nan] for n in levels))))[:25]
    tree = TAN(levels=levels).partial_fit(X, y, classes=[0, 1, 2])
    models = {
        naive: CategoricalNB(levels=levels),
        aode: AODE(levels=levels),
        a2de: A2DE(levels=levels),
        lambda *of: tan(*of, tree.parents_): tree,
    }
    for definition, model in models.items():
        if model is not tree:
            model.partial_fit(X, y, classes=[0, 1, 2])
        expected = [[definition(X, y, levels, row, c) for c in range(3)] for row in asked]
        np.testing.assert_allclose(
            np.exp(model.predict_joint_log_proba(asked)), np.array(expected, float), rtol=1e-9
        )


@given(table=tables(missing=False))
@some
def test_spodes_agree_with_their_definition_on_all_rows(table):
    X, y, levels = table
    asked = np.array(list(product(*map(range, levels))), float)[:40]
    for parent in range(len(levels)):
        model = SPODE(levels=levels, parent=parent).partial_fit(X, y, classes=[0, 1, 2])
        expected = [[spode(X, y, levels, row, c, parent) for c in range(3)] for row in asked]
        np.testing.assert_allclose(
            np.exp(model.predict_joint_log_proba(asked)), np.array(expected, float), rtol=1e-9
        )


@pytest.mark.parametrize("seed", range(6))
def test_the_parent_has_the_fewest_errors_in_leave_one_out_cross_validation(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (25, 4)).astype(float)
    y = ((X[:, 1] + X[:, 2] + rng.integers(0, 2, 25)) % 3).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    figures = []
    for parent in range(4):
        errors, loss = 0, 0.0
        for i in range(25):
            rest = np.arange(25) != i
            model = SPODE(levels=[3] * 4, parent=parent)
            model.partial_fit(X[rest], y[rest], classes=[0, 1, 2])
            # Rounded, because of classes that are equally probable the first is the answer.
            posterior = model.predict_proba(X[i : i + 1])[0].round(9)
            errors += posterior.argmax() != y[i]
            loss -= log(posterior[y[i]])
        figures.append((errors, loss))

    chosen = SPODE(levels=[3] * 4).fit(X, y)
    assert chosen.parent_ == figures.index(min(figures))
    assert chosen.parent_errors_.tolist() == [errors for errors, _ in figures]
    np.testing.assert_allclose(chosen.parent_loss_, [loss / 25 for _, loss in figures], atol=1e-9)
    assert SPODE().fit(X > 0, y).parent_ in range(4)


def test_a_column_with_a_single_value_is_no_parent():
    """Numbers that are not cut have one interval, and take no part; AODE as printed by hand."""
    X, y = np.column_stack([MELON_X[:, :6], np.zeros((17, 2))]), MELON_Y
    for Class, probability in ((AODE, 0.963181), (A2DE, 0.951121)):
        without = Class(levels=LEVELS).fit(X[:, :6], y).predict_proba(X[:, :6])
        both = Class(levels=[*LEVELS, 1, 1]).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(both, without, rtol=1e-12)
        assert both[0, YES] == pytest.approx(probability, abs=5e-7)
    # In the second column all values are one; as a parent it would make as few errors.
    constant = SPODE(levels=[1, 2]).fit([[0, 0], [0, 1], [0, 0]], [0, 0, 0])
    assert constant.parent_ == 1
    assert SPODE(levels=[1, 1]).fit([[0, 0], [0, 0]], [0, 1]).parent_ == 0


def test_partial_fit_keeps_the_parent_and_fit_chooses_anew():
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
def test_mutual_information_agrees_with_its_definition(table):
    X, y, levels = table
    model = AODE(levels=levels).partial_fit(X, y, classes=[0, 1, 2])
    counts = list(model.value_counts())
    found = conditional_information(counts, model.encoding.levels)
    for i, j in combinations(range(len(levels)), 2):
        both = ~np.isnan(X[:, i]) & ~np.isnan(X[:, j])
        expected, n = 0.0, both.sum()
        for a, b, c in product(range(levels[i]), range(levels[j]), range(3)):
            of_class = both & (y == c)
            joint = (of_class & (X[:, i] == a) & (X[:, j] == b)).sum()
            if joint:
                alone = (of_class & (X[:, i] == a)).sum() * (of_class & (X[:, j] == b)).sum()
                expected += joint / n * log(joint * of_class.sum() / alone)
        assert found[[i, j], [j, i]] == pytest.approx(expected, abs=1e-12)

    alone = class_information(model.own_counts(), model.encoding.levels)
    for j in range(len(levels)):
        some = ~np.isnan(X[:, j])
        expected = 0.0
        for a, c in product(range(levels[j]), range(3)):
            joint = (some & (X[:, j] == a) & (y == c)).mean()
            if joint:
                rest = (some & (X[:, j] == a)).mean() * (some & (y == c)).mean()
                expected += joint / some.mean() * log(joint * some.mean() / rest)
        assert alone[j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_spanning_tree_is_the_heaviest_of_all_trees(seed):
    rng = np.random.default_rng(seed)
    n = 5
    weight = rng.random((n, n))
    weight = weight + weight.T
    best = max(
        sum(weight[i, j] for i, j in edges)
        for edges in combinations(combinations(range(n), 2), n - 1)
        if is_tree(n, edges)
    )

    parents = spanning_tree(weight, root=2)
    assert parents[2] == -1
    assert is_tree(n, [(i, p) for i, p in enumerate(parents.tolist()) if p >= 0])
    assert sum(weight[i, p] for i, p in enumerate(parents) if p >= 0) == pytest.approx(best)


def is_tree(n, edges):
    reached = {0}
    for _ in range(n):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    return len(edges) == n - 1 and len(reached) == n


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
    # P(class 1) P(x2=0 | 1) P(x0=1 | x2=0, 1) P(x1=1 | x0=1, 1) = 1/2 3/4 2/3 1.
    joint = np.exp(model.predict_joint_log_proba([[1, 1, 0]])[0])
    assert joint == pytest.approx([1 / 2 * 1 / 2 * 1 / 2, 1 / 2 * 3 / 4 * 2 / 3])


# --- scikit-learn ---


@pytest.mark.parametrize("seed", range(4))
def test_categorical_agrees_with_scikit_learn(seed):
    theirs = pytest.importorskip("sklearn.naive_bayes").CategoricalNB
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (200, 6)), rng.integers(0, 3, 200)
    weight = rng.random(200)
    for alpha in (1.0, 0.3):
        ours = CategoricalNB(alpha=alpha, class_prior="estimated").fit(X, y, weight)
        peer = theirs(alpha=alpha).fit(X, y, weight)
        np.testing.assert_allclose(
            ours.predict_joint_log_proba(X), peer.predict_joint_log_proba(X), rtol=1e-9
        )


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_agrees_with_scikit_learn(seed):
    theirs = pytest.importorskip("sklearn.naive_bayes").GaussianNB
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 5)) + y[:, None]
    weight = rng.random(300)
    # scikit-learn adds the same number to the variances of all columns; so do we if all
    # columns have the same variance.
    for weights in (None, weight):
        X = (X - np.average(X, 0, weights)) / np.sqrt(
            np.average((X - np.average(X, 0, weights)) ** 2, 0, weights)
        )
        ours = GaussianNB(ddof=0).fit(X, y, weights)
        peer = theirs(var_smoothing=1e-9 * float(1 / X.var(axis=0).max())).fit(X, y, weights)
        np.testing.assert_allclose(ours.var_, peer.var_, rtol=1e-9)
        np.testing.assert_allclose(
            ours.predict_joint_log_proba(X), peer.predict_joint_log_proba(X), rtol=1e-9
        )


# --- moments ---


def test_moments_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(0)
    X, y = 1e9 + rng.random((1000, 1)), rng.integers(0, 2, 1000)
    batched = GaussianNB(ddof=0)
    for start in range(0, 1000, 100):
        batched.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])

    expected = [[np.var(X[y == k] - 1e9)] for k in (0, 1)]
    np.testing.assert_allclose(batched.var_, expected, rtol=1e-4)


def test_constant_columns_give_finite_posteriors():
    # Column 0 is constant; column 1 is constant in class 0; class 2 has one row.
    X = [[1.0, 5.0], [1.0, 5.0], [1.0, 7.0], [1.0, 9.0], [1.0, 8.0]]
    model = GaussianNB().fit(X, [0, 0, 1, 1, 2])

    posterior = model.predict_proba([[1.0, 5.0], [2.0, 6.0], [np.nan, np.nan]])
    assert np.isfinite(posterior).all()
    assert posterior[0, 0] > 0.999
    # One row has no variance of its own: its class takes that of all rows.
    assert model.var_[2, 1] == pytest.approx(np.var([5, 5, 7, 9, 8]), rel=1e-6)


@pytest.mark.parametrize("far", [1e60, 1e200, -1e308])
def test_numbers_whose_density_is_beyond_all_numbers_get_an_answer(far):
    """The wider distribution wins, however far out; nothing overflows (warnings are errors)."""
    near, wide = [[0.0], [1.0], [2.0]], [[0.0], [10.0], [20.0]]
    model = GaussianNB().fit(near + wide, [0, 0, 0, 1, 1, 1])
    assert model.predict_proba([[far]]).tolist() == [[0.0, 1.0]]
    # A narrow one: its density is above all bounds, and 100 such columns are multiplied.
    narrow = np.repeat([[0.0], [3e-200], [0.0], [1.0]], 100, axis=1)
    sharp = GaussianNB(var_smoothing=1e-300).fit(narrow, [0, 0, 1, 1])
    assert sharp.predict([narrow[0], narrow[3]]).tolist() == [0, 1]
    learnt = GaussianNB().fit([[far], [far / 2], [1.0], [2.0]], [0, 0, 1, 1])
    assert learnt.predict([[far], [1.0]]).tolist() == [0, 1]


# --- errors ---


@pytest.mark.parametrize("Class", [Class for Class in COLUMN_MODELS if Class is not GaussianNB])
@pytest.mark.parametrize(
    ("parameters", "X", "words"),
    [
        ({"levels": [2]}, [[0, 1], [1, 0]], "levels"),
        ({"levels": [2, -1]}, [[0, 1], [1, 0]], "levels"),
        ({"levels": [2, 2]}, [[0, 1], [2, 0]], "column 0 has a code above 1"),
        ({"levels": [2, 2]}, [[0, 1], [0.5, 0]], "not a whole number"),
        ({"levels": [2, 2], "estimate": "best"}, [[0, 1], [1, 0]], "mle, map, mean"),
        ({"levels": [2, 2], "alpha": -1.0}, [[0, 1], [1, 0]], "alpha"),
        ({"levels": [2, 2], "estimate": "map", "alpha": 0.5}, [[0, 1], [1, 0]], "mode"),
        ({"levels": [2, 2]}, [[0, np.inf], [1, 0]], "infinity"),
    ],
)
def test_parameters_and_codes_out_of_range_are_refused(Class, parameters, X, words):
    with pytest.raises(DataError, match=words):
        Class(**parameters).fit(X, [0, 1])


@pytest.mark.parametrize("Class", [GaussianNB, MixedNB])
def test_var_smoothing_must_be_above_zero(Class):
    with pytest.raises(DataError, match="var_smoothing"):
        Class(var_smoothing=0.0).fit([[1.0], [2.0]], [0, 1])


def test_other_parameters_out_of_range_are_refused():
    with pytest.raises(DataError, match="min_support"):
        AODE(min_support=0).fit([[1], [0]], [0, 1])
    with pytest.raises(DataError, match="none of the columns 0 to 0"):
        SPODE(parent=1).fit([[1], [0]], [0, 1])
    one, two = (CategoricalNB(levels=[n]).fit([[1], [0]], [0, 1]) for n in (2, 3))
    with pytest.raises(DataError, match="other numbers of values"):
        one.merge(two)


@pytest.mark.parametrize("Class", PAIR_MODELS)
def test_counts_beyond_the_memory_limit_are_refused_with_their_size(Class):
    many_columns = sparse.csr_array((2, 10_000))

    with pytest.raises(DataError, match=r"need .* GiB.*1 GiB allowed.*fewer features"):
        Class().fit(many_columns, [0, 1])
