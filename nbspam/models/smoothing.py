"""Smoothing, from counts to probabilities: maximum likelihood, MAP, posterior mean; best alpha.

Given counts n_1 ... n_v with sum n, and a Dirichlet prior with parameters alpha_1 ... alpha_v
(for two values, a Beta distribution), the estimates are

    maximum likelihood   n_i / n                                        no prior
    MAP, the mode        (n_i + alpha_i - 1) / (n + sum of alpha - v)
    posterior mean       (n_i + alpha_i) / (n + sum of alpha)           Laplace's with alpha 1

All three have the form (n_i + a_i) / (n + sum of a), with a = 0, alpha - 1 and alpha.  Hence
the mode under alpha equals the mean under alpha - 1.  Notes that print N_jc N_c as the first mean
N_jc / N_c; the prior's density has the factor Γ(sum of alpha) / ΠΓ(alpha_i), not its inverse.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import Estimator
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.inputs import Array

ESTIMATES = ("mle", "map", "mean")
_ROUNDING = 1e-12  # a rest that is a smaller share of its count is a rounding error


def remaining(count: Array | float, part: Array) -> Array:
    """Return count - part, broadcast; 0 where fractions leave no more than a rounding error."""
    left = np.asarray(count - part)
    left[left < _ROUNDING * count] = 0.0
    return left


def addend(estimate: str, alpha: float, name: str = "alpha") -> float:
    """Return the number that an estimate adds to every count; raises DataError.

    estimate: one of ESTIMATES; alpha: parameter of the prior, which users know by its name.

    >>> addend("mle", 1.0), addend("map", 2.0), addend("mean", 1.0)
    (0.0, 1.0, 1.0)
    """
    if estimate not in ESTIMATES:
        raise DataError(f"estimate: {estimate!r} is unknown; choose from {', '.join(ESTIMATES)}")
    lowest = 1.0 if estimate == "map" else 0.0
    if not isinstance(alpha, Real) or not lowest <= alpha < np.inf:
        why = "; below 1 the mode is not unique" if estimate == "map" else ""
        raise DataError(f"{name}: {alpha!r} is not a number from {lowest:g} up{why}; give one")
    return {"mle": 0.0, "map": alpha - 1.0, "mean": float(alpha)}[estimate]


def addends(
    estimate: str, alpha: float, dirichlet: Sequence[float] | None, n: int, what: str
) -> Array:
    """Return the number that an estimate adds to each of n counts, shape (n,); raises DataError.

    dirichlet: a parameter of the prior for each count, None if alpha is that of all; what: the
    counted things, for errors.
    """
    if dirichlet is None:
        return np.full(n, addend(estimate, alpha))
    if np.size(dirichlet) != n:
        raise DataError(
            f"dirichlet: {np.size(dirichlet)} numbers for {n} {what}; give one for each"
        )
    return np.array([addend(estimate, parameter, "dirichlet") for parameter in dirichlet])


def smoothed_shares(
    count: ArrayLike,
    total: ArrayLike,
    values: ArrayLike,
    added: ArrayLike,
    added_to_all: ArrayLike,
) -> Array:
    """Return (count + added) / (total + added_to_all), broadcast.

    values: the number of values that share the total; added_to_all: the sum of what is added
    to them.  With nothing added this is the limit of adding the same little to all: 0 of n
    gives 0, 0 of 0 gives 1 / values.
    """
    counts, totals = np.asarray(count, np.float64), np.asarray(total, np.float64)
    everything = totals + np.asarray(added_to_all)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (counts + np.asarray(added)) / everything
        return np.where(everything > 0, share, 1.0 / np.asarray(values))


def log_shares(*counts: ArrayLike) -> Array:
    """Return the logarithms of `smoothed_shares`, which has the same arguments, nats."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(smoothed_shares(*counts)))


def log_shares_of_classes(
    count: Array, total: Array, outcomes: int, added: float, added_to_all: float
) -> Array:
    """Return `log_shares` of large tables, with few arrays beside the result, shape of count.

    count: (n_classes, n); total: (n_classes, 1); outcomes: how many share each total.
    """
    total = total + added_to_all
    with np.errstate(divide="ignore", invalid="ignore"):
        log = count + added
        np.log(log, out=log)
        log -= np.log(total)
        log[total[:, 0] <= 0] = -np.log(outcomes)
    return log


# --- the prior of the classes, smoothed like the other counts ---------------------------------


class SmoothedModel(Estimator):
    """An estimator that can smooth the shares of its classes as it smooths its other counts."""

    _named_priors = ("estimated", "smoothed", "uniform")
    estimate: str
    alpha: Any
    class_dirichlet: Sequence[float] | None  # of the classes' prior; None: alpha for each

    @property
    def smooths_classes(self) -> bool:
        """Whether the prior of the classes is smoothed."""
        return isinstance(self.class_prior, str) and self.class_prior == "smoothed"

    def class_added(self, n_classes: int) -> Array:
        """Return the number added to the count of each class, (n_classes,); raises DataError.

        It is 0 unless the prior is smoothed.
        """
        if not self.smooths_classes:
            return np.zeros(n_classes)
        return addends(self.estimate, self.alpha, self.class_dirichlet, n_classes, "classes")

    def _log_prior(self, class_count: Array) -> Array:
        if self.smooths_classes:
            n_classes = len(class_count)
            added = self.class_added(n_classes)
            return log_shares(class_count, class_count.sum(), n_classes, added, added.sum())
        if self.class_dirichlet is not None:
            raise DataError(
                f"dirichlet: gives the classes a prior, and class_prior is {self.class_prior!r};"
                " leave out one"
            )
        return super()._log_prior(class_count)


# --- the choice of alpha, the number added to every count -----------------------------------
#
# Leave one event out at a time, and predict it from the counts of all others. An outcome counted
# n times among N events, with k possible outcomes, then has probability
#
#     (n - 1 + alpha) / (N - 1 + k alpha),
#
# so the leave-one-out log-likelihood of all events follows from the counts alone:
#
#     sum n log(n - 1 + alpha)  -  sum N log(N - 1 + k alpha).
#
# The alpha that maximises it is the choice of leave-one-out cross-validation, without refitting.

LOWEST, HIGHEST = 1e-4, 10.0
NO_EVIDENCE = 1.0  # Laplace's alpha, when there are no counts to choose by
_GRID = 24
_STEPS = 24
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


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
