"""Numbers cut into intervals: of equal width, of equal frequency, or where classes change.

Secret: where the cuts are.
"""

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import UsageError

WAYS = ("width", "frequency", "mdl")
BINS = 10


def cut_points(how: str, numbers: Floats, y: Integers, bins: int = BINS) -> tuple[float, ...]:
    """Return where to cut a column of numbers, ascending; intervals include their upper end.

    numbers: (n_rows,), NaN where missing.  y: (n_rows,) the classes, which only mdl heeds;
    bins, at most so many intervals, only the others.
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
        ends = low + (high - low) * share
    else:
        ends = np.quantile(values, share, method="inverted_cdf")
    # The last interval must not be empty, so the largest value is no end.
    return tuple(np.unique(ends[ends < values.max()]).tolist())


def mdl_cuts(values: Floats, y: Integers) -> list[float]:
    """Return the cuts of Fayyad & Irani (1993): where they shorten the description of y.

    Of all cuts the one that leaves least class entropy is taken, if what it gains is above
    (log2(N - 1) + delta) / N  with  delta = log2(3^k - 2) - (k E - k1 E1 - k2 E2), in bits;
    k, k1, k2: classes present, E, E1, E2: their entropies, in all and in both parts; and
    so on in both parts.
    """
    order = np.argsort(values, kind="stable")
    values = values[order]
    member = np.zeros((len(y) + 1, int(y.max(initial=0)) + 1))
    member[np.arange(1, len(y) + 1), y[order]] = 1
    before = member.cumsum(axis=0)  # (n + 1, n_classes): classes among the first i
    cuts: list[float] = []
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        middle = _best_cut(values, before, start, end)
        if middle is not None:
            cuts.append(float(values[middle - 1] + values[middle]) / 2)
            parts += [(start, middle), (middle, end)]
    return sorted(cuts)


def _best_cut(values: Floats, before: Floats, start: int, end: int) -> int | None:
    """Return the row before which to cut rows start to end, None if no cut pays."""
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
