"""EM for models of columns: rows without a class, and for a network rows with missing cells.

A row stands for every way to complete it: with each class and, for a network, with each value of
each missing cell.  The E step divides the row among these ways by their probabilities; the M step
trains the same kind of model on all ways, weighted by their shares.

Naive Bayes needs no values for missing cells.  Given the class they would be drawn from the
shares that the known cells have, (n + m n / N) / (N + m) = n / N, and so change nothing.

Secret: how the ways of all rows lie in flat arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.columns.gaussian import over_all_rows
from nbspam.models.em import Expected, Fit, Stopping, best_mixture, climb
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from nbspam.models.columns.gaussian import Bells
    from nbspam.models.inputs import Array, Codes, Labels

_NEGLIGIBLE = 1e-9
MAX_WAYS = 1 << 20  # to complete all rows
# In EM a variance is at least this share of the column's over all rows: otherwise a class that
# shrinks to one row would be infinitely likely.
_FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class Completions:
    """Rows and all ways to complete them; see `completions`."""

    like: Any  # gives the class and the parameters of the models
    classes: Labels
    X: Array  # (n_variants, n_columns) the rows with their missing cells completed
    variant: Codes  # (n_ways,) index into X
    label: Codes  # (n_ways,) index into classes
    begin: Codes  # (n_rows,) where the ways of each row begin
    weight: Array  # (n_rows,)
    hard: bool = False  # a row belongs to its most probable way entirely

    @cached_property
    def row(self) -> Codes:
        """The row of each way, shape (n_ways,)."""
        n_ways = np.diff(np.append(self.begin, len(self.label)))
        return np.repeat(np.arange(len(self.begin)), n_ways)

    def expect(self, model: Any) -> Expected:
        """Return the weight of each way, (n_ways,); raises DataError for an impossible row."""
        joint = model.predict_joint_log_proba(self.X)[self.variant, self.label]
        combine = np.maximum if self.hard else np.logaddexp
        seen = combine.reduceat(joint, self.begin)
        if np.isneginf(seen).any():
            raise DataError("EM: a row has become impossible; give an alpha above 0")
        share = np.exp(joint - seen[self.row])
        if self.hard:
            best = np.flatnonzero(share == 1.0)
            share = np.zeros(len(joint))
            share[best[np.unique(self.row[best], return_index=True)[1]]] = 1.0
        share *= self.weight[self.row]
        # A network drops rows of so little weight as rounding errors.
        share[share <= _NEGLIGIBLE] = 0.0
        likely = float(self.weight @ seen) + _log_density(model)
        return Expected(share, joint, likely)

    def maximise(self, share: Array) -> Any:
        """Return the model of all ways, weighted; share: (n_ways,), of any shape."""
        model = type(self.like)(**self.like.get_params())
        model.partial_fit(
            self.X[self.variant], self.classes[self.label], self.classes, share.ravel()
        )
        if hasattr(model, "deviation_"):
            model.deviation_ = _above_floor(model.value_count_, model.mean_, model.deviation_)
        return model

    def q(self, share: Array, joint: Array, model: Any) -> float:
        """Return Q in nats."""
        return float(share[share > 0] @ joint[share > 0]) + _log_density(model)

    def n_docs(self) -> float:
        """Return the sum of the weights of the rows."""
        return float(self.weight.sum())

    def change(self, new: Any, old: Any) -> float:
        """Return the largest change of a probability, or of a mean in standard deviations."""
        pairs = zip(_log_probabilities(new), _log_probabilities(old), strict=True)
        changes = [np.abs(np.exp(a) - np.exp(b)).max(initial=0.0) for (a, _), (b, _) in pairs]
        bells, before = _bells(new), _bells(old)
        if bells is not None and before is not None:
            distance = np.abs(bells.mean - before.mean) / np.sqrt(bells.variance)
            changes.append(distance.max(initial=0.0))
        return float(max(changes))


def complete(first: Any, data: Completions, stopping: Stopping | None = None) -> Fit:
    """Return the model that EM reaches on incomplete rows; raises DataError.

    first: completes the rows for the start, for example the model of the rows with a class; it
    may have other parameters.
    """
    return climb(data.maximise(data.expect(first).share), data, stopping)


def completions(
    like: Any,
    X: Array,
    y: Codes,
    classes: Labels,
    weight: Array,
    levels: Codes | None = None,
    hard: bool = False,
) -> Completions:
    """Return rows with all ways to complete them; raises DataError beyond MAX_WAYS.

    X: (n_rows, n_columns), NaN where missing; y: (n_rows,) class indices, below 0 where
    missing.  levels: the number of values of each column, to complete missing cells too.
    """
    n_classes, gaps = len(classes), np.isnan(X)
    if levels is None:
        gaps = np.zeros_like(gaps)
    sizes = np.broadcast_to(1 if levels is None else levels, X.shape[1:]).tolist()
    missing = [np.flatnonzero(row).tolist() for row in gaps]
    n_variants = [prod(sizes[j] for j in columns) for columns in missing]
    n_labels = np.where(y < 0, n_classes, 1)
    n_ways = sum(n * k for n, k in zip(n_variants, n_labels.tolist(), strict=True))
    if n_ways > MAX_WAYS:
        raise DataError(
            f"EM: {n_ways:,} ways to fill in the missing cells, more than {MAX_WAYS:,}; fill in"
            " some, or leave out the rows or columns that miss most"
        )
    variants = np.repeat(X, n_variants, axis=0)
    at = np.cumsum(n_variants) - n_variants
    for start, n, columns in zip(at.tolist(), n_variants, missing, strict=True):
        if columns:
            filled = list(product(*(range(sizes[j]) for j in columns)))
            variants[start : start + n, columns] = filled
    row = np.repeat(np.arange(len(X)), n_variants)
    of_variant = n_labels[row]
    variant = np.repeat(np.arange(len(row)), of_variant)
    label = np.arange(len(variant)) - np.repeat(np.cumsum(of_variant) - of_variant, of_variant)
    label = np.where(y[row[variant]] < 0, label, y[row[variant]])
    total = np.bincount(row, of_variant, len(X)).astype(np.intp)
    return Completions(
        like, classes, variants, variant, label, np.cumsum(total) - total, weight, hard
    )


def mixture_of_rows(
    like: Any,
    X: Array,
    k: int,
    rng: np.random.Generator,
    restarts: int = 5,
    hard: bool = False,
    stopping: Stopping | None = None,
) -> Fit:
    """Return the most likely of several mixtures of k components; see `em.mixture`.

    The responsibilities of the fit are (n_rows, k).
    """
    n_rows = len(X)
    nowhere = np.full(n_rows, -1)
    data = completions(like, X, nowhere, np.arange(k), np.ones(n_rows), hard=hard)
    fit = best_mixture(data, n_rows, k, rng, restarts, stopping)
    return Fit(fit.model, fit.responsibility.reshape(n_rows, k), fit.steps)


def _log_probabilities(model: Any) -> list[tuple[Array, Array]]:
    """Return log-probabilities in nats, and what the estimate adds to the count of each."""
    class_count = model.class_count_
    smoothed = hasattr(model, "class_added") and str(model.class_prior) == "smoothed"
    added = model.class_added(len(class_count)) if smoothed else np.zeros(len(class_count))
    if hasattr(model, "arrows_"):
        with np.errstate(divide="ignore"):
            tables = [np.log(table) for table in model.tables()]
        of_columns = np.split(model.added_, np.cumsum(model.levels_)[:-1])
        return list(zip(tables, [*of_columns, added], strict=True))
    pairs = [(model.class_log_prior_, added)]
    if hasattr(model, "level_count_"):
        log_prob = model.tables()[0] if hasattr(model, "mean_") else model.tables()
        pairs.append((log_prob, model.added_))
    return pairs


def _log_density(model: Any) -> float:
    """Return the log-density of the parameters under the prior, nats, up to a constant.

    The estimate (n_i + a_i) / (n + sum of a) maximises the likelihood times theta_i^a_i.
    """
    total = 0.0
    for log_prob, added in _log_probabilities(model):
        weight = np.broadcast_to(added, log_prob.shape)
        total += float(weight[weight > 0] @ log_prob[weight > 0])
    return total


def _bells(model: Any) -> Bells | None:
    """Return the normal distributions of a model that has some."""
    if not hasattr(model, "mean_"):
        return None
    bells: Bells = model.tables()[1] if hasattr(model, "level_count_") else model.tables()
    return bells


def _above_floor(n: Array, mean: Array, deviation: Array) -> Array:
    """Return squared deviations that make no variance smaller than the floor.

    n, mean, deviation: (n_classes, n_columns), see `gaussian.moments`.
    """
    _, variance = over_all_rows(n, mean, deviation)
    return np.asarray(np.maximum(deviation, n * _FLOOR * variance))
