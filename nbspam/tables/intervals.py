"""Cut points for columns of numbers: equal width, equal frequency, or least description length."""

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import UsageError

WAYS = ("width", "frequency", "mdl")
NOT_CUT = "none"
BINS = 10  # intervals by default


def cut_points(how: str, numbers: Floats, y: Integers, bins: int = BINS) -> tuple[float, ...]:
    """Return the cut points of a column of numbers, ascending; raises UsageError.

    An interval includes its upper end.  how: one of WAYS.  numbers: (n_rows,), NaN where
    missing.  y: (n_rows,), the classes; only mdl uses them.  bins: the largest number of
    intervals; mdl does not use it.
    """
    known = ~np.isnan(numbers)
    values = numbers[known]
    if how not in WAYS:
        raise UsageError(f"discretise: {how!r} is none of {', '.join(WAYS)}")
    if how == "mdl":
        return tuple(mdl_cuts(values, y[known]))
    if not len(values):
        return ()
    share = np.arange(1, bins) / bins
    if how == "width":
        low, high = values.min(), values.max()
        # Halves, because the difference of two huge numbers may be infinite.
        ends = 2 * (low / 2 + (high / 2 - low / 2) * share)
    else:
        ends = np.quantile(values, share, method="inverted_cdf")
    # A cut at the largest value would leave the last interval empty.
    return tuple(np.unique(ends[ends < values.max()]).tolist())


def mdl_cuts(values: Floats, y: Integers) -> list[float]:
    """Return the cut points of Fayyad & Irani (1993), which shorten the description of y.

    values, y: (n,).  Of all cuts, the one that leaves the least class entropy is made if it
    lowers the entropy by more than
    (log2(N - 1) + delta) / N  with  delta = log2(3^k - 2) - (k E - k1 E1 - k2 E2), in bits.
    k, k1, k2 are the numbers of classes present in the whole and in its two parts, E, E1, E2
    the class entropies.  Both parts are then cut in the same way.
    """
    order = np.argsort(values, kind="stable")
    values = values[order]
    member = np.zeros((len(y) + 1, int(y.max(initial=0)) + 1))
    member[np.arange(1, len(y) + 1), y[order]] = 1
    before = member.cumsum(axis=0)  # (n + 1, n_classes): class counts of the first i
    cuts: list[float] = []
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        middle = _best_cut(values, before, start, end)
        if middle is not None:
            cuts.append(float(values[middle - 1] / 2 + values[middle] / 2))
            parts += [(start, middle), (middle, end)]
    return sorted(cuts)


def _best_cut(values: Floats, before: Floats, start: int, end: int) -> int | None:
    """Return the row before which to cut rows start to end; None if no cut is worth it."""
    place = start + 1 + np.flatnonzero(values[start : end - 1] < values[start + 1 : end])
    if not len(place):
        return None
    n = end - start
    whole = before[end] - before[start]
    left, right = before[place] - before[start], before[end] - before[place]
    n_left = (place - start).astype(np.float64)
    of_left, of_right = _entropy(left), _entropy(right)
    after = (n_left * of_left + (n - n_left) * of_right) / n
    best = int(after.argmin())
    entropy = float(_entropy(whole[None])[0])
    k, k_left, k_right = (np.count_nonzero(part) for part in (whole, left[best], right[best]))
    change = k * entropy - k_left * of_left[best] - k_right * of_right[best]
    delta = k * np.log2(3) + np.log2(1 - 2 * 3.0**-k) - change
    return int(place[best]) if entropy - after[best] > (np.log2(n - 1) + delta) / n else None


def _entropy(counts: Floats) -> Floats:
    """Return the entropy of each row of counts, bits."""
    share = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1))
