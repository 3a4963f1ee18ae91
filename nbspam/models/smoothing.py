"""Smoothed log-probabilities, and the choice of alpha, the number added to every count.

Leave one event out at a time, and predict it from the counts of all others.  An outcome
counted n times among N events, with k possible outcomes, then has probability

    (n - 1 + alpha) / (N - 1 + k alpha),

so the leave-one-out log-likelihood of all events follows from the counts alone:

    sum n log(n - 1 + alpha)  -  sum N log(N - 1 + k alpha).

The alpha that maximises it is the choice of leave-one-out cross-validation, without
refitting.

Secret: how the maximum is searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LOWEST, HIGHEST = 1e-4, 10.0
NO_EVIDENCE = 1.0  # Laplace's alpha, when there are no counts to choose by
_GRID = 24
_STEPS = 24
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def smoothed_log_prob(count: Array, total: Array, outcomes: int, alpha: float) -> Array:
    """Return log((count + alpha) / (total + outcomes * alpha)) in nats, shape of count.

    count: (n_classes, n); total: (n_classes, 1).  With alpha 0 this is the limit of alpha
    going to 0: a count of 0 gives -inf, a total of 0 gives log(1 / outcomes).
    """
    total = total + outcomes * alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        log = count + alpha
        np.log(log, out=log)
        log -= np.log(total)
        log[total[:, 0] <= 0] = -np.log(outcomes)
    return log


def leave_one_out(counts: Array, totals: Array, outcomes: int) -> Callable[[float], float]:
    """Return the function alpha -> log-likelihood of every event given all others, nats.

    counts: of the outcomes, any shape; totals: of the distributions, any shape; outcomes:
    how many each distribution has.  A count below 1 (of weighted documents) has less than
    one event to leave out: the count left is then 0.
    """
    # A vocabulary of millions of tokens has only a few hundred distinct counts.
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
    """Return the alpha from LOWEST to HIGHEST with the highest leave-one-out likelihood.

    counts, totals, outcomes: as for `leave_one_out`.  The likelihood may have several
    peaks: a grid finds the highest one, and a golden-section search its maximum, to a
    relative precision of 1e-5.
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
