"""Models of columns give the textbooks' numbers and scikit-learn's."""

import csv
import pickle
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from nbspam.models import (
    A2DE,
    AKDE,
    AODE,
    SPODE,
    BayesianNetwork,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    MixedNB,
)
from nbspam.models.inputs import DataError
from stress import peers
from support import COLUMN_MODELS, PAIR_MODELS, ROOT


def textbook(name):
    with open(ROOT / "corpora" / name, encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


# Columns: X1 as 1 2 3, X2 as S M L; the row to classify is (2, S).
LIHANG = textbook("lihang-4.1.csv")
LIHANG_X = [[int(a) - 1, "SML".index(b)] for a, b, _ in LIHANG]
LIHANG_Y = [int(y) for _, _, y in LIHANG]


def test_maximum_likelihood_agrees_with_example_4_1():
    model = CategoricalNB(estimate="mle").fit(LIHANG_X, LIHANG_Y)
    joint = np.exp(model.predict_joint_log_proba([[1, 0]])[0])
    assert joint == pytest.approx([6 / 15 * 2 / 6 * 3 / 6, 9 / 15 * 3 / 9 * 1 / 9])
    assert joint == pytest.approx([1 / 15, 1 / 45])
    assert model.predict([[1, 0]]).tolist() == [-1]


def test_smoothing_agrees_with_example_4_2():
    model = CategoricalNB(alpha=1.0).fit(LIHANG_X, LIHANG_Y)
    assert np.exp(model.class_log_prior_) == pytest.approx([7 / 17, 10 / 17])
    joint = np.exp(model.predict_joint_log_proba([[1, 0]])[0])
    assert joint == pytest.approx([7 / 17 * 3 / 9 * 4 / 9, 10 / 17 * 4 / 12 * 2 / 12])
    assert joint == pytest.approx([28 / 459, 5 / 153])  # 0.0610, 0.0327


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


@pytest.mark.parametrize(("estimate", "divisor"), [("mle", 0), ("mean", 1)])
def test_the_variance_of_maximum_likelihood_is_divided_by_the_number_of_rows(estimate, divisor):
    """Eq. 7.13; the worked example of section 7.3 divides by one less."""
    numbers, labels = MELON_X[:, 6:], MELON_Y
    expected = [numbers[labels == k].var(axis=0, ddof=divisor) for k in ("no", "yes")]
    found = GaussianNB(estimate=estimate).fit(numbers, labels).tables().variance
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    mixed = MixedNB(levels=[0, 0], estimate=estimate).fit(numbers, labels).tables()[1].variance
    np.testing.assert_allclose(mixed, expected, rtol=1e-6)


def test_laplace_agrees_with_section_7_3():
    model = CategoricalNB(levels=LEVELS).fit(MELON_X[:, :6], MELON_Y)
    assert np.exp(model.class_log_prior_).round(3).tolist() == [0.526, 0.474]
    assert shares(model, 0, "青绿").round(3).tolist() == [0.333, 0.364]
    # The zero count of the book: no good melon has a clear sound.
    assert shares(model, 2, "清脆")[YES] == pytest.approx((0 + 1) / (8 + 3))  # 0.091


def test_without_smoothing_a_zero_count_makes_a_class_impossible():
    model = CategoricalNB(levels=LEVELS, estimate="mle").fit(MELON_X[:, :6], MELON_Y)
    asked = ASKED[:, :6].copy()
    asked[0, 2] = VALUES[2].index("清脆")

    assert model.predict_joint_log_proba(asked)[0, YES] == -np.inf
    assert model.predict_proba(asked)[0].tolist() == [1.0, 0.0]
    # A row that is impossible in both classes gets the prior.
    both = CategoricalNB(levels=[2], estimate="mle").fit([[0], [0], [0]], [0, 0, 1])
    assert both.predict_proba([[1]])[0] == pytest.approx([2 / 3, 1 / 3])
    # If all values of a column were missing, each value is equally likely.
    for Class, share in ((CategoricalNB, 1 / 8), (SPODE, 1 / 4)):
        none = Class(levels=[4], estimate="mle").fit([[np.nan], [np.nan]], [0, 1])
        assert np.exp(none.predict_joint_log_proba([[3]])[0]) == pytest.approx([share, share])


def test_aode_agrees_with_section_7_5():
    model = AODE(levels=LEVELS).fit(MELON_X[:, :6], MELON_Y)
    yes = list(model.value_tables())[YES]
    dull = sum(LEVELS[:2]) + VALUES[2].index("浊响")
    sunken = sum(LEVELS[:4]) + VALUES[4].index("凹陷")

    assert np.exp(yes.parent[dull]) == pytest.approx((6 + 1) / (17 + 3))  # 0.350
    assert np.exp(yes.given[dull, sunken]) == pytest.approx((3 + 1) / (6 + 3))  # 0.444
    # The same by predictions: only the sound is known; then sound and navel, sound as parent.
    asked = np.full((1, 6), np.nan)
    asked[0, 2] = VALUES[2].index("浊响")
    assert np.exp(model.predict_joint_log_proba(asked)[0, YES]) == pytest.approx(0.35)
    asked[0, 4] = VALUES[4].index("凹陷")
    spode = SPODE(levels=LEVELS, parent=2).fit(MELON_X[:, :6], MELON_Y)
    assert np.exp(spode.predict_joint_log_proba(asked)[0, YES]) == pytest.approx(7 / 20 * 4 / 9)


def test_a_column_with_a_single_value_is_no_parent():
    """Numbers that are not cut have one interval, and take no part; AODE as printed by hand."""
    X, y = np.column_stack([MELON_X[:, :6], np.zeros((17, 2))]), MELON_Y
    three = partial(AKDE, order=3)
    for Class, probability in ((AODE, 0.963181), (A2DE, 0.951121), (three, 0.919005)):
        without = Class(levels=LEVELS).fit(X[:, :6], y).predict_proba(X[:, :6])
        both = Class(levels=[*LEVELS, 1, 1]).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(both, without, rtol=1e-12)
        assert both[0, YES] == pytest.approx(probability, abs=5e-7)
    # In the second column all values are one; as a parent it would make as few errors.
    constant = SPODE(levels=[1, 2]).fit([[0, 0], [0, 1], [0, 0]], [0, 0, 0])
    assert constant.parent_ == 1
    assert SPODE(levels=[1, 1]).fit([[0, 0], [0, 0]], [0, 1]).parent_ == 0


def test_a_beta_prior_may_differ_for_either_value():
    """Document 004: (N_jc + b1) / (N_c + b0 + b1), and (N_c + alpha_c) / (N + sum of alpha)."""
    X, y = [[1], [1], [0], [1], [0]], ["a", "a", "a", "b", "b"]
    how = {"dirichlet": [[2.0, 5.0], [1.0, 4.0]]}  # b0, b1; then of the classes
    mean = CategoricalNB(**how).fit(X, y)
    one = [(2 + 5) / (3 + 2 + 5), (1 + 5) / (2 + 2 + 5)]
    assert np.exp(mean.level_log_prob_[:, 1]) == pytest.approx(one)
    assert np.exp(mean.class_log_prior_) == pytest.approx([(3 + 1) / 10, (2 + 4) / 10])
    # The mode takes one less of each parameter.
    mode = CategoricalNB(estimate="map", **how).fit(X, y)
    one = [(2 + 4) / (3 + 1 + 4), (1 + 4) / (2 + 1 + 4)]
    assert np.exp(mode.level_log_prob_[:, 1]) == pytest.approx(one)
    assert np.exp(mode.class_log_prior_) == pytest.approx([(3 + 0) / 8, (2 + 3) / 8])
    # Of tokens the same by `beta`, for presence and absence.
    for estimate, expected in (("mean", (3 + 2) / (10 + 7)), ("map", (3 + 1) / (10 + 5))):
        coin = BernoulliNB(beta=(2.0, 5.0), estimate=estimate).fit([[1]] * 3 + [[0]] * 7, [0] * 10)
        assert np.exp(coin.feature_log_prob_) == pytest.approx(expected)
    for wrong in ({"beta": (1.0,)}, {"beta": (1.0, 1.0), "alpha": "auto"}):
        with pytest.raises(DataError, match=r"beta: .*; give two numbers, and no alpha"):
            BernoulliNB(**wrong).fit([[1], [0]], [0, 1])
    # Nothing is added under maximum likelihood, whatever the prior.
    mle = CategoricalNB(estimate="mle", **how).fit(X, y)
    assert np.exp(mle.level_log_prob_[:, 1]) == pytest.approx([2 / 3, 1 / 2])


@pytest.mark.parametrize("name", peers.PAIRS)
def test_random_tables_are_judged_as_by_scikit_learn(name, tmp_path):
    assert max(peers.differences(name, 6, tmp_path, seed=1)) < 1e-12


def test_variances_are_exact_unless_they_are_zero():
    X, y = [[0.1], [0.2], [0.4], [5.0], [5.0]], ["a", "a", "a", "b", "b"]
    mean, all_rows = Fraction(7, 30), Fraction(np.var(X))
    exact = sum((Fraction(n, 10) - mean) ** 2 for n in (1, 2, 4)) / 3
    model = GaussianNB(estimate="mle").fit(X, y)
    assert model.var_[0, 0] == pytest.approx(float(exact), rel=1e-15)
    assert model.var_[1, 0] == pytest.approx(float(all_rows) * 1e-9, rel=1e-12)
    spike = GaussianNB(estimate="mle", var_smoothing=0).fit(X, y)
    assert spike.predict([[5.0], [4.9], [0.3]]).tolist() == ["b", "a", "a"]


def test_moments_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(0)
    X, y = 1e9 + rng.random((1000, 1)), rng.integers(0, 2, 1000)
    batched = GaussianNB(ddof=0)
    for start in range(0, 1000, 100):
        batched.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])

    expected = [[np.var(X[y == k] - 1e9)] for k in (0, 1)]
    np.testing.assert_allclose(batched.var_, expected, rtol=1e-4)


def test_numbers_of_any_precision_are_judged_alike():
    X = np.array([[0, 1], [1, 2], [3, 1], [2, 0]])
    for precision in (np.half, np.float32, np.longdouble):
        for Class in GaussianNB, CategoricalNB:
            expected = Class().fit(X, [0, 0, 1, 1]).predict_proba(X)
            other = X.astype(precision)
            found = Class().fit(other, [0, 0, 1, 1]).predict_proba(other)
            assert (found.dtype, found.tolist()) == (float, expected.tolist())


def test_constant_columns_give_finite_posteriors():
    # Column 0 is constant; column 1 is constant in class 0; class 2 has one row.
    X = [[1.0, 5.0], [1.0, 5.0], [1.0, 7.0], [1.0, 9.0], [1.0, 8.0]]
    model = GaussianNB().fit(X, [0, 0, 1, 1, 2])

    posterior = model.predict_proba([[1.0, 5.0], [2.0, 6.0], [np.nan, np.nan]])
    assert np.isfinite(posterior).all()
    assert posterior[0, 0] > 0.999
    # One row has no variance of its own: its class takes that of all rows.
    assert model.var_[2, 1] == pytest.approx(np.var([5, 5, 7, 9, 8]), rel=1e-6)


@pytest.mark.parametrize("weight", [None, [0.1, 0.2, 0.3, 0.7, 0.7, 0.7, 0.1, 0.3]])
def test_a_constant_column_is_no_evidence_even_if_its_mean_has_to_be_rounded(weight):
    # Three times 0.1 add up to 0.30000000000000004.
    X, y = np.full((8, 2), 0.1), [0] * 3 + [1] * 5
    X[4:6, 1] = np.nan
    model = GaussianNB().fit(X, y, weight)
    merged = GaussianNB().fit(X[::2], y[::2]).merge(GaussianNB().fit(X[1::2], y[1::2]))
    for each in model, merged:
        prior = np.exp(each.class_log_prior_)
        np.testing.assert_allclose(each.predict_proba([[0.1, 0.1], [0.2, 0.2]]), [prior, prior])


def test_of_classes_that_are_equal_but_for_rounding_the_first_is_predicted():
    X = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]])
    model = CategoricalNB().fit([*X, *(1 - X)], [0] * 3 + [1] * 3)
    assert model.predict([[0, 1, 1, 0]]) == [0]


@pytest.mark.parametrize("constant", [0.0, 0.1, 37.5, 1_000_000.01, 1e17])
def test_a_column_is_constant_again_when_its_only_other_numbers_are_unlearnt(constant):
    for n, other in product(range(2, 20), (1.0, 7.3, 1000.0)):
        model = GaussianNB().fit(np.full((2 * n, 1), constant), [0, 1] * n)
        others = [[other], [constant + other]]
        model.partial_fit(others, [0, 0]).unlearn(others, [0, 0])
        np.testing.assert_allclose(model.predict_proba([[constant], [other]]), 0.5)


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


ROWS = [[0, 1], [1, 0]]


@pytest.mark.parametrize("Class", [CategoricalNB, AODE, BayesianNetwork])
@pytest.mark.parametrize(("parameters", "X", "words"), [
    ({"levels": [2]}, ROWS, "levels"),
    ({"levels": [2, -1]}, ROWS, "levels"),
    ({"levels": [2, 1 << 62]}, ROWS, "GiB, more than the 1 GiB allowed"),
    ({}, [[0, 1], [2, 0]], "column 0 has a code above 1"),
    ({}, [[0, 1], [0.5, 0]], "not a whole number"),
    ({}, [[0, 1], [1e300, 0]], "column 0 has a code above 1"),
    ({}, np.array([[0, 1], [2**63, 0]], np.uint64), "column 0 has a code above 1"),
    ({"estimate": "best"}, ROWS, "mle, map, mean"),
    ({"alpha": -1.0}, ROWS, "alpha"),
    ({"estimate": "map", "alpha": 0.5}, ROWS, "mode"),
    ({}, [[0, np.inf], [1, 0]], "infinity"),
    ({"dirichlet": [None]}, ROWS, "1 entries for 2 columns"),
    ({"dirichlet": [[1], None, None]}, ROWS, "1 numbers for 2"),
    ({"dirichlet": [None, [1, -1], None]}, ROWS, "dirichlet: -1 is not a number from 0 up"),
    ({"dirichlet": [None, None, [1, 2, 3]]}, ROWS, "2 classes|no other class"),
])  # fmt: skip
def test_parameters_and_codes_out_of_range_are_refused(Class, parameters, X, words):
    with pytest.raises(DataError, match=words):
        Class(**{"levels": [2, 2], **parameters}).fit(X, [0, 1])


MANY = sparse.csr_array((2, 10_000))
DATES = np.array([["2026-01-01"], ["2026-01-02"]], "datetime64[D]")


@pytest.mark.parametrize(("model", "X", "words"), [
    (GaussianNB(var_smoothing=-1e-9), ROWS, "var_smoothing"),
    (MixedNB(var_smoothing=None), ROWS, "var_smoothing"),
    (GaussianNB(estimate="map"), ROWS, "'map' is none of a variance; choose from mle, mean"),
    (AODE(min_support=0), ROWS, "min_support"),
    (SPODE(parent=2), ROWS, "none of the columns 0 to 1"),
    (CategoricalNB(class_prior="guess"), ROWS, "estimated, smoothed, uniform, or numbers"),
    (GaussianNB(class_prior="smoothed"), ROWS, "give estimated, uniform, or numbers"),
    (GaussianNB(ddof=1.5), ROWS, "ddof: 1.5 is not a whole number from 0 up"),
    (CategoricalNB(), [[0, 1], [4_000_000_000_000, 0]], r"column 0 has a code of 4e\+12"),
    (GaussianNB(), [["sun"], ["rain"]], r"could not convert .*'sun'.*give numbers"),
    (GaussianNB(), DATES, "GaussianNB.fit: dates are not numbers; give days or years"),
    (GaussianNB(), DATES - DATES, "dates are not numbers"),
    (GaussianNB(), DATES.astype(object), "GaussianNB.fit: float.* not 'datetime.date'; give num"),
    *(
        (Class(**{name: prior}), ROWS, "no other class_prior or dirichlet enters; leave it out")
        for Class in (SPODE, AODE, A2DE, AKDE)
        for name, prior in (
            ("class_prior", "uniform"),
            ("class_prior", [0.9, 0.1]),
            ("dirichlet", [None, None, [9, 1]]),
        )
    ),
    *(
        (Class(), MANY, r"need .* GiB.*1 GiB allowed.*fewer features")
        for Class in (*PAIR_MODELS, BayesianNetwork)
    ),
])  # fmt: skip
def test_parameters_of_one_model_and_rows_that_it_cannot_take_are_refused(model, X, words):
    with pytest.raises(DataError, match=words):
        model.fit(X, [0, 1])


NA = object()


class Frame(np.ndarray):
    """What a data frame is to a model: cells, some of them missing, and names of columns."""

    columns = ()

    def isna(self):
        return np.asarray(self) == NA


class ArrowTable(Frame):
    """A table of Arrow, whose columns are arrays."""

    columns = (np.arange(2), np.arange(2))
    column_names = ("b", "a")


def frame(cells, *names):
    made = np.array(cells).view(Frame)
    made.columns = names
    return made


@pytest.mark.parametrize("Class", [CategoricalNB, GaussianNB, AODE, BayesianNetwork])
def test_a_frame_with_its_columns_in_another_order_is_refused(Class):
    model = Class().fit(frame(ROWS, "a", "b"), [0, 1])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert pickle.loads(pickle.dumps(model)).feature_names_in_.tolist() == ["a", "b"]
    assert model.predict(frame(ROWS, "a", "b")).tolist() == model.predict(ROWS).tolist()
    model.partial_fit(frame(ROWS, "a", "b"), [0, 1])
    for verb in (model.predict, lambda X: model.partial_fit(X, [0, 1])):
        with pytest.raises(
            DataError, match=r"feature names should match .* give the columns a, b"
        ):
            verb(frame(ROWS, "b", "a"))
    with pytest.raises(DataError, match="other columns"):
        model.merge(Class().fit(frame(ROWS, "b", "a"), [0, 1]))
    with pytest.raises(DataError, match="feature names should match"):
        model.predict(np.array(ROWS).view(ArrowTable))
    assert not hasattr(model.fit(frame(ROWS, 0, 1), [0, 1]), "feature_names_in_")


@pytest.mark.parametrize(
    ("label", "kind"), [(None, "NoneType"), (float("nan"), "float"), (1, "int"), (b"a", "bytes")]
)
def test_labels_of_which_some_are_no_names_are_refused(label, kind):
    with pytest.raises(DataError, match=f"some labels are text and some are not .*{kind}"):
        GaussianNB().fit(ROWS, [label, "a"])


def test_a_missing_value_of_a_frame_may_be_no_number():
    learnt = GaussianNB().fit(frame([[0, 1], [1, 0], [NA, 1]], "a", "b"), [0, 0, 1])
    assert learnt.value_count_.tolist() == [[2, 2], [0, 1]]
    with pytest.raises(DataError, match="Input y contains NaN"):
        GaussianNB().fit(ROWS, frame([True, NA]))


def test_a_masked_value_is_missing():
    masked = np.ma.masked_array([[0, 1], [1, 7], [7, 0]], [[0, 0], [0, 1], [1, 0]])
    expected = GaussianNB().fit([[0, 1], [1, np.nan], [np.nan, 0]], [0, 0, 1])
    learnt = GaussianNB().fit(masked, [0, 0, 1])
    assert learnt.predict_proba(masked).tolist() == expected.predict_proba(masked).tolist()
    assert learnt.value_count_.tolist() == [[2, 1], [0, 1]]


@pytest.mark.parametrize("Class", COLUMN_MODELS)
def test_a_fit_that_fails_leaves_the_model_as_it_was(Class):
    model = Class().fit(ROWS, [0, 1])
    before = model.predict_proba(ROWS).tolist()
    with pytest.raises(DataError, match="y should be"):
        model.fit(frame([[3, 2, 1]], "a", "b", "c"), [0, 1])
    assert model.predict_proba(ROWS).tolist() == before
    assert not hasattr(model, "feature_names_in_")
    fresh = Class()
    with pytest.raises(DataError, match="y should be"):
        fresh.partial_fit(frame(ROWS, "a", "b"), [0])
    assert vars(fresh) == vars(Class())


@pytest.mark.parametrize(
    ("Class", "levels"), [(CategoricalNB, ([2], [3])), (AODE, ([2], None)), (AODE, (None, [2]))]
)
def test_models_of_other_levels_are_not_merged(Class, levels):
    one, two = (Class(levels=each).fit([[1], [0]], [0, 1]) for each in levels)
    for other in (two, None):
        with pytest.raises(DataError, match=r"merge: .* other (numbers of values|columns)"):
            one.merge(other)
