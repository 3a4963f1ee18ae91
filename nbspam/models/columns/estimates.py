"""Estimates of probabilities from counts: maximum likelihood, MAP and posterior mean.

Given counts n_1 ... n_v with sum n, and a Dirichlet prior with parameters alpha_1 ... alpha_v
(for two values, a Beta distribution), the estimates are

    maximum likelihood   n_i / n                                        no prior
    MAP, the mode        (n_i + alpha_i - 1) / (n + sum of alpha - v)
    posterior mean       (n_i + alpha_i) / (n + sum of alpha)           Laplace's with alpha 1

All three have the form (n_i + a_i) / (n + sum of a), with a = 0, alpha - 1 and alpha.  Hence
the mode under alpha equals the mean under alpha - 1.

Secret: that the estimates differ only by the number added, and what 0 of 0 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array

ESTIMATES = ("mle", "map", "mean")


def addend(estimate: str, alpha: float) -> float:
    """Return the number that an estimate adds to every count; raises DataError.

    estimate: one of ESTIMATES; alpha: parameter of the prior.

    >>> addend("mle", 1.0), addend("map", 2.0), addend("mean", 1.0)
    (0.0, 1.0, 1.0)
    """
    if estimate not in ESTIMATES:
        raise DataError(f"estimate: {estimate!r} is unknown; choose from {', '.join(ESTIMATES)}")
    lowest = 1.0 if estimate == "map" else 0.0
    if isinstance(alpha, str) or not lowest <= alpha < np.inf:
        why = "; below 1 the mode is not unique" if estimate == "map" else ""
        raise DataError(f"alpha: {alpha!r} is not a number from {lowest:g} up{why}; give one")
    return {"mle": 0.0, "map": alpha - 1.0, "mean": float(alpha)}[estimate]


def log_shares(
    count: ArrayLike,
    total: ArrayLike,
    values: ArrayLike,
    added: ArrayLike,
    added_to_all: ArrayLike,
) -> Array:
    """Return log((count + added) / (total + added_to_all)) in nats, broadcast.

    values: the number of values that share the total; added_to_all: the sum of what is added
    to them.  With nothing added this is the limit of adding the same little to all: 0 of n
    gives -inf, 0 of 0 gives log(1 / values).
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    everything = totals + np.asarray(added_to_all)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (counts + np.asarray(added)) / everything
        return np.log(np.where(everything > 0, share, 1.0 / np.asarray(values)))


def dirichlet_mean(count: ArrayLike, prior: ArrayLike) -> Array:
    """Return the posterior mean, (n_i + b_i) / (n + sum of b); the last axis sums to 1.

    prior: parameters b of a Dirichlet distribution (for two values, a Beta distribution),
    broadcast against the counts.

    >>> dirichlet_mean([3, 1], [2, 2]).tolist()
    [0.625, 0.375]
    """
    parameter = np.asarray(count, np.float64) + np.asarray(prior, np.float64)
    return np.asarray(parameter / parameter.sum(axis=-1, keepdims=True))
