"""Folds and bootstrap resamples of documents, and statistics on them.

The caller passes the random generator, so the same seed gives the same result.

Secret: how documents are assigned to folds and drawn for resamples.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.errors import UsageError


def bootstrap_interval(
    statistic: Callable[..., ArrayLike],
    arrays: Sequence[Any],
    rng: np.random.Generator,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> Floats:
    """Return [low, high], the percentile interval of statistic(*arrays) over documents.

    If the statistic returns an array, so do low and high.  Resamples for which it is NaN (for
    example because only one class was drawn) are left out.  A resample keeps the order of the
    documents, so arrays sorted by score stay sorted, and ranking them needs no sort.
    """
    n_docs = len(arrays[0])
    values = []
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(n_docs, size=n_docs), minlength=n_docs)
        rows = np.repeat(np.arange(n_docs), times)
        values.append(np.asarray(statistic(*(array[rows] for array in arrays)), np.float64))
    tail = (1 - level) / 2
    return np.apply_along_axis(_quantiles, 0, np.stack(values), [tail, 1 - tail])


def stratified_folds(
    y: ArrayLike, k: int, rng: np.random.Generator | np.random.RandomState
) -> Integers:
    """Return the fold of each document, 0 to k - 1, shape (n_docs,); raises UsageError.

    The sizes of the folds differ by at most one document, in total and within each class.
    Documents in the order of classes are dealt to the folds in turn, then shuffled within each
    class.  RandomState(seed) gives the folds of scikit-learn's StratifiedKFold(k, shuffle=True,
    random_state=seed); unlike there, a class may be smaller than k.
    """
    labels = np.asarray(y)
    if not 2 <= k <= len(labels):
        raise UsageError(f"folds: {k} folds of {len(labels)} documents; give 2 to {len(labels)}")
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    folds = np.empty(len(labels), np.int64)
    dealt = 0
    for c in np.argsort(first):
        members = np.flatnonzero(label == c)
        hands = np.sort(np.arange(dealt, dealt + len(members)) % k)
        rng.shuffle(hands)
        folds[members] = hands
        dealt += len(members)
    return folds


def compare_folds(cost_a: ArrayLike, cost_b: ArrayLike) -> tuple[int, int, int]:
    """Return in how many folds A won (cost less), tied (up to rounding) and lost.

    A cost is NaN in a fold that cannot show it; if both are, the fold is tied.
    """
    a, b = np.asarray(cost_a, np.float64), np.asarray(cost_b, np.float64)
    tied = np.isclose(a, b, rtol=1e-12, atol=0, equal_nan=True)
    won = (a < b) & ~tied
    return int(won.sum()), int(tied.sum()), int(len(a) - won.sum() - tied.sum())


def _quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Return the quantiles of the values that are not NaN, or NaN if there are none."""
    known = values[~np.isnan(values)]
    return np.quantile(known, levels) if len(known) else np.full(len(levels), np.nan)
