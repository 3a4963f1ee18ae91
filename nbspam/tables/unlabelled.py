"""Rows without a class, by EM: training beside rows with a class, and clusters.

In a network missing cells take part, too.  The intervals of numbers and the graph of a network
stay as the rows with a class made them.  Clusters are found like classes that nobody wrote down,
so all columns count alike, whether they hold categories or numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, checked_seed
from nbspam.errors import UsageError, check_number
from nbspam.models import em
from nbspam.models.describing import distributions
from nbspam.models.gaussian import MixedNB
from nbspam.printing import readable_number
from nbspam.sources.records import Record
from nbspam.tables.schema import Column, Table, coded, detect, in_intervals, odd_columns
from nbspam.tables.training import TableSettings, chosen_model, table_rows, train_table

_RESTARTS = 5
BY_EM = ("categorical", "bernoulli", "gaussian", "mixed", "network")  # models that EM can train


def without_class(records: Iterable[Record], target: str) -> Iterator[Record]:
    """Yield the rows with an empty cell in place of their class."""
    for record in records:
        yield record._replace(cells={**record.cells, target: ""})


def train_by_em(
    table: Table,
    settings: TableSettings,
    weight: float = 1.0,
    hard: bool = False,
    stopping: em.Stopping = em.AT_CONVERGENCE,
    restarts: int | None = None,
    seed: int = 0,
) -> em.EMReport:
    """Return the classifier of rows of which some have no class; raises UsageError.

    table: of all rows, see `training.read_table`.  weight: of a row without a class.  hard: give
    each of these rows to its most probable class.  The class prior is estimated again in every
    round, unless the settings give it.  restarts: random starts beside the one from known values,
    of which the most likely result is kept; None: 5 if no row has a value of some column, because
    its values are then equal at first and would stay so, else 0.
    """
    name = chosen_model(table.schema, settings)
    if name not in BY_EM:
        raise UsageError(f"--model {name}: not possible with EM; give {', '.join(BY_EM)}")
    known = table.y >= 0
    start = train_table(table_rows(table, known), settings)
    X = in_intervals(table.X, start.schema)
    like, first = _parameters(start.model)
    data = em.completions(
        like,
        X,
        table.y,
        start.model.classes_,
        np.where(known, 1.0, weight),
        start.schema.n_values if name == "network" else None,
        hard,
    )
    if restarts is None:
        is_hidden = name == "network" and bool(np.isnan(X).all(axis=0).any())
        restarts = _RESTARTS if is_hidden else 0
    check_number("restarts", restarts, 0, whole=True)
    rng = np.random.default_rng(checked_seed(seed))
    drawn = (data.maximise(data.random_share(rng)) for _ in range(restarts))
    fit = em.likeliest(em.climb(each, data, stopping) for each in chain([first], drawn))
    classifier = replace(start, model=fit.model, by_em=True)
    n_labelled = int(known.sum())
    return em.EMReport(classifier, fit, weight, n_labelled, len(known) - n_labelled)


def _parameters(model: Any) -> tuple[Any, Any]:
    """Return an untrained model of EM's parameters, and the model that EM starts from.

    model: of the labelled rows.
    """
    parameters = model.get_params()
    first = copy(model)
    if "structure" in parameters:
        parameters["structure"] = [list(nodes) for nodes in model.parents_]
        parameters["climb"] = False
    if "ddof" in parameters:
        parameters["ddof"] = 0  # maximum likelihood, which the M step has to reach
    if "alpha" in parameters and not model.added_.any():
        # What the labelled rows lack is not impossible, and EM must be able to find it.
        first.set_params(estimate="mean", alpha=1.0)
    return type(model)(**parameters), first


# --- clusters --------------------------------------------------------------------------------


class Feature(NamedTuple):
    """A value that a column has in a cluster, or the mean of its numbers there."""

    column: str
    value: str | None = None  # a category
    probability: float | None = None  # of the category
    mean: float | None = None  # of numbers
    standard_deviation: float | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.column}={self.value} {self.probability:.4g}"
        assert self.mean is not None
        return f"{self.column} {readable_number(self.mean, 4)} ± {self.standard_deviation:.4g}"


@dataclass(frozen=True, slots=True)
class TableClusters:
    """A fitted mixture and its rows; clusters are in descending order of size."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]  # (n_rows,)
    share: Floats  # (n_rows, k) P(cluster given row)
    fit: em.Fit
    features: tuple[tuple[Feature, ...], ...]  # of each cluster, the most typical first
    notes: tuple[str, ...]  # warnings about columns
    clusters: tuple[str, ...]  # their names


def cluster_rows(
    records: Iterable[Record],
    k: int,
    alpha: float = 1.0,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    drop: Sequence[str] = (),
    restarts: int = 5,
    hard: bool = False,
    seed: int = 0,
    stopping: em.Stopping = em.AT_CONVERGENCE,
) -> TableClusters:
    """Return k clusters of rows, the most likely of several random starts; raises UsageError.

    alpha: added to the count of every value.  categorical, numeric: columns whose kind is given;
    drop: columns that take no part.  hard: give each row to one cluster.
    """
    rows = list(records)
    names = em.cluster_names(k, len(rows), "rows")
    schema, _ = detect(rows, None, categorical, numeric, drop=drop)
    notes = tuple(odd_columns(rows, schema, {*categorical, *numeric}))
    table = coded(rows, schema)
    like = MixedNB(levels=schema.n_values, alpha=alpha, ddof=0)
    nowhere, classes, weight = np.full(len(rows), -1), np.arange(k), np.ones(len(rows))
    data = em.completions(like, table.X, nowhere, classes, weight, hard=hard)
    fit = em.mixture(data, k, np.random.default_rng(checked_seed(seed)), restarts, stopping)
    order = np.argsort(-fit.responsibility.sum(axis=0), kind="stable")
    features = tuple(_features(fit.model, schema.columns, place) for place in order.tolist())
    share = fit.responsibility[:, order]
    return TableClusters(schema.columns, table.names, share, fit, features, notes, names)


def _features(model: MixedNB, columns: Sequence[Column], cluster: int) -> tuple[Feature, ...]:
    """Return the features of a cluster in all columns, the most distinctive ones first.

    A value is distinctive if it is more probable here than in the mean of the clusters, weighted
    by its probability; a number counts by how many standard deviations its mean is from that mean.
    """
    found: list[tuple[float, Feature]] = []
    of_columns = list(distributions(model))[1:]
    for each in sorted(of_columns, key=lambda distribution: distribution.of):
        column = columns[each.of[0]]
        if column.levels is None:
            mean, deviation = float(each.mean[cluster]), float(np.sqrt(each.variance[cluster]))
            number_here = Feature(column.name, mean=mean, standard_deviation=deviation)
            found.append((float(abs(mean - each.mean.mean()) / deviation), number_here))
        else:
            here, mean_of_all = each.probability[cluster], each.probability.mean(axis=0)
            ratio = np.divide(here, mean_of_all, out=np.ones_like(here), where=here > 0)
            worth = (here * np.log(ratio)).tolist()
            for level, p, its_worth in zip(column.levels, here.tolist(), worth, strict=True):
                found.append((its_worth, Feature(column.name, level, p)))
    return tuple(feature for _, feature in sorted(found, key=lambda pair: -pair[0]))
