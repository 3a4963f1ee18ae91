"""Cut points: worked by hand, against their definition, and their invariants."""

from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.tables.schema import WAYS, cut_points, mdl_cuts

X = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 100])
Y = np.array([0] * 5 + [1] * 5)


def test_equal_width_and_frequency_by_hand():
    assert cut_points("width", X, Y, 4) == (25, 50, 75)
    assert cut_points("frequency", X, Y, 5) == (1, 3, 5, 7)
    # A value that most rows have is one interval.
    assert cut_points("frequency", np.array([0.0] * 8 + [1, 2]), Y, 5) == (0,)
    with pytest.raises(UsageError, match="width, frequency, mdl"):
        cut_points("depth", X, Y)


def entropy(labels):
    shares = [labels.count(label) / len(labels) for label in set(labels)]
    return -sum(share * log2(share) for share in shares)


def test_mdl_by_hand():
    # Ten rows, five of each class, separated without error between 4 and 5:
    #   gain 1 bit; delta = log2(3^2 - 2) - (2 * 1 - 0 - 0) = 0.807
    #   threshold (log2(9) + 0.807) / 10 = 0.398 bits: worth it; pure parts are not cut.
    assert mdl_cuts(X, Y) == [4.5]
    # Two rows of two classes: gain 1 bit, threshold (log2(1) + 0.807) / 2 = 0.404: cut.
    assert mdl_cuts(np.array([0.0, 1]), np.array([0, 1])) == [0.5]
    # Alternating classes: the best cut gains little: not cut.
    assert mdl_cuts(np.arange(8.0), np.arange(8) % 2) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=30))
def test_mdl_is_fayyad_and_iranis_rule(rows):
    def cuts_of(rows):
        values = sorted({x for x, _ in rows})
        labels = [y for _, y in rows]
        n, best = len(rows), None
        for a, b in pairwise(values):
            parts = [[y for x, y in rows if x <= a], [y for x, y in rows if x > a]]
            after = sum(len(part) / n * entropy(part) for part in parts)
            if best is None or after < best[0] - 1e-12:
                best = after, (a + b) / 2, a, parts
        if best is None:
            return []
        after, point, a, parts = best
        k, k1, k2 = (len(set(part)) for part in (labels, *parts))
        change = k * entropy(labels) - k1 * entropy(parts[0]) - k2 * entropy(parts[1])
        needed = (log2(n - 1) + log2(3**k - 2) - change) / n
        if entropy(labels) - after <= needed + 1e-12:
            return []
        left, right = [r for r in rows if r[0] <= a], [r for r in rows if r[0] > a]
        return [*cuts_of(left), point, *cuts_of(right)]

    x, y = np.array(rows, float).T
    assert mdl_cuts(x, y.astype(int)) == pytest.approx(cuts_of(rows))


@given(
    st.sampled_from(WAYS),
    st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=40),
    st.integers(2, 12),
)
def test_cuts_ascend_and_leave_no_end_empty(how, numbers, bins):
    X = np.array(numbers)
    cuts = cut_points(how, X, np.arange(len(X)) % 2, bins)

    known = X[~np.isnan(X)]
    assert list(cuts) == sorted(set(cuts))
    assert all(known.min() <= cut < known.max() for cut in cuts)
    if how != "mdl":
        assert len(cuts) < bins


def test_huge_numbers_are_cut_like_others():
    X = np.array([-1.5e308, 1e308, 1.5e308])
    y = np.array([0, 1, 1])
    assert cut_points("width", X, y, 2) == (0,)
    assert cut_points("frequency", X, y, 3) == (-1.5e308, 1e308)
    assert mdl_cuts(np.repeat([1e308, 1.5e308], 9), np.repeat([0, 1], 9)) == [1.25e308]
