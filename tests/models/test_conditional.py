"""Numbers that depend on a class and a category: against densities from `statistics`."""

from functools import partial
from itertools import product
from math import exp, log, pi, prod, sqrt
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.models import A2DE, AODE, SPODE, TAN, MixedNB
from nbspam.models.base import DataError
from support import examples, tables

some = examples(8)
IS_MLE = pytest.mark.parametrize("estimate", ["mean", "mle"])


@st.composite
def mixed_tables(draw):
    """Return a table whose first columns are categories, and two of numbers; (X, y, levels)."""
    X, y, levels = draw(tables())
    rng = np.random.default_rng(len(y))
    numbers = rng.normal(y[:, None] + [0, 5], 1.0)
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return np.column_stack([X, numbers]), y, np.append(levels, [0, 0])


def squares(numbers, mean):
    return sum((x - mean) ** 2 for x in numbers)


def bell(X, y, ddof, label, column, fixed=()):
    """Return mean and variance of a column in a class, in rows with the values {column: value}.

    Too few numbers are replaced by those of the class, or of all rows.
    """
    chosen = np.full(len(y), True) if label is None else y == label
    for j, value in dict(fixed).items():
        chosen &= X[:, j] == value
    numbers = [x for x in X[chosen, column] if x == x]
    if label is None:
        mean = fmean(numbers) if numbers else 0.0
        return mean, squares(numbers, mean) / max(len(numbers), 1)
    other = bell(X, y, ddof, label, column) if fixed else bell(X, y, ddof, None, column)
    mean = fmean(numbers) if numbers else other[0]
    variance = squares(numbers, mean) / (len(numbers) - ddof) if len(numbers) > ddof else other[1]
    whole = bell(X, y, ddof, None, column)[1]
    return mean, max(variance, 1e-9 * whole, 1e-100) if whole else 1.0


def density(x, mean, variance):
    return exp(-((x - mean) ** 2) / (2 * variance)) / sqrt(2 * pi * variance)


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
        np.testing.assert_allclose(np.exp(aode.predict_joint_log_proba(row[None])), mean, 1e-9)
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
        assert found == pytest.approx(fmean(gain))
    assert model.parents_[3] == 1
    assert model.information()[3, 4] == 0


def test_by_hand():
    # The class x has the numbers 1, 3 given a, and 7 given b; the mean of y is 5.
    X, y = [[0, 1.0], [0, 3.0], [1, 7.0], [0, 4.0], [1, 6.0]], list("xxxyy")
    model = SPODE(parent=0, levels=[2, 0], estimate="mle").fit(X, y)
    # P(x, a) = 2/5; N(2; 2, 1) = 1 / sqrt(2 pi).  Of y, one number, 4, is given a.
    joint = np.exp(model.predict_joint_log_proba([[0, 2.0], [np.nan, 5.0]]))
    assert joint[0, 0] == pytest.approx(2 / 5 / sqrt(2 * pi))
    # Of x as a whole the mean is 11/3, the variance 56/9; of y the mean is 5, the variance 1.
    assert joint[1] == pytest.approx(
        [prod((3 / 5, density(5, 11 / 3, 56 / 9))), prod((2 / 5, density(5, 5, 1)))]
    )


@pytest.mark.parametrize(
    ("make", "levels", "says"),
    [
        (partial(SPODE, parent=1), [2, 0], "parent: 1 is none .* that hold categories"),
        (partial(TAN, root=1), [2, 0], "root: 1 is none .* that hold categories"),
        (AODE, [0, 0], "no column holds categories"),
        (A2DE, [2, 0], "takes only categories"),
    ],
)
def test_numbers_are_no_parents(make, levels, says):
    with pytest.raises(DataError, match=says):
        make(levels=levels).fit([[0, 1.5], [1, 2.5]], [0, 1])
