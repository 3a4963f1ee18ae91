"""Folds and resamples: how far a number would move on other documents of the same kind.

Chance comes from the caller's generator alone, so the same seed gives the same answer.

Secret: how documents are dealt to folds and drawn for resamples.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbspam.errors import UsageError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def bootstrap_interval(
    statistic: Callable[..., ArrayLike],
    arrays: Sequence[NDArray[np.generic]],
    rng: np.random.Generator,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> Floats:
    """Return [low, high], the percentile interval of statistic(*arrays) over documents.

    A statistic that returns an array gets [lows, highs].  Resamples in which it is
    NaN (one class only) are left out.  A resample keeps the documents' order, so
    arrays sorted by score stay sorted, and ranking one costs a pass, not a sort.
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
) -> Ints:
    """Return the fold, 0 to k-1, of each document: equal within one, class by class too.

    Documents in class order are dealt round the folds, then shuffled within the class.
    RandomState(seed) gives the folds of scikit-learn's StratifiedKFold(k, shuffle=True,
    random_state=seed); there a class smaller than k is an error or warning, here not.
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
    """Return in how many folds A won (cost less), tied within rounding, and lost."""
    a, b = np.asarray(cost_a, np.float64), np.asarray(cost_b, np.float64)
    tied = np.isclose(a, b, rtol=1e-12, atol=0)
    won = (a < b) & ~tied
    return int(won.sum()), int(tied.sum()), int(len(a) - won.sum() - tied.sum())


def _quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Return the quantiles of the values that are not NaN; NaN if none is left."""
    known = values[~np.isnan(values)]
    return np.quantile(known, levels) if len(known) else np.full(len(levels), np.nan)
