"""Smoothing: how much to add to every count, and what is left when nothing is added.

Leave one event out at a time, and judge it by the counts of all others.  An event
counted n times among N, of k that are possible, then has probability

    (n - 1 + alpha) / (N - 1 + k alpha),

so the log-likelihood of all events is, from the counts alone,

    sum n log(n - 1 + alpha)  -  sum N log(N - 1 + k alpha).

What maximises it is alpha by leave-one-out cross-validation, without refitting.

Secret: the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LOWEST, HIGHEST = 1e-4, 10.0
# With nothing to choose by, Laplace's.
NO_EVIDENCE = 1.0
_GRID = 24
_STEPS = 24
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def smoothed_log_prob(count: Array, total: Array, outcomes: int, alpha: float) -> Array:
    """Return log((count + alpha) / (total + outcomes * alpha)) in nats, shape of count.

    Without smoothing (alpha 0) it is the limit of alpha going to 0, so that maximum
    likelihood is defined: 0 / n gives -inf, 0 / 0 gives 1 / outcomes.
    total: (n_classes, 1).
    """
    total = total + outcomes * alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        log = count + alpha
        np.log(log, out=log)
        log -= np.log(total)
        log[total[:, 0] <= 0] = -np.log(outcomes)
    return log


def leave_one_out(counts: Array, totals: Array, outcomes: int) -> Callable[[float], float]:
    """Return alpha -> log-likelihood, nats, of every event given all the others.

    counts: of outcomes, any shape; totals: of the distributions they belong to, any
    shape; outcomes: how many each distribution has.  Fractions of an event (weighted
    documents) have less than one event to leave out: what is left is then 0, not less.
    """
    # Counts repeat: a vocabulary of millions has a few hundred different ones.
    count, times = np.unique(counts, return_counts=True)
    total, total_times = np.unique(totals, return_counts=True)
    seen, some = count > 0, total > 0
    weight, rest = (count * times)[seen], np.maximum(count[seen] - 1.0, 0.0)
    total_weight, total_rest = (total * total_times)[some], np.maximum(total[some] - 1.0, 0.0)

    def log_likelihood(alpha: float) -> float:
        numerators = weight @ np.log(rest + alpha)
        return float(numerators - total_weight @ np.log(total_rest + outcomes * alpha))

    return log_likelihood


def best_alpha(counts: Array, totals: Array, outcomes: int) -> float:
    """Return the alpha, LOWEST to HIGHEST, that is best by leave-one-out.

    The likelihood may have more than one peak: a grid finds the highest, and a
    golden-section search its top, to a relative 1e-5.
    """
    if not (totals > 0).any():
        return NO_EVIDENCE
    likelihood = leave_one_out(counts, totals, outcomes)
    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), _GRID)
    best = int(np.argmax([likelihood(alpha) for alpha in np.exp(grid)]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if likelihood(np.exp(left)) < likelihood(np.exp(right)):
            low = left
        else:
            high = right
    return float(np.exp((low + high) / 2.0))
