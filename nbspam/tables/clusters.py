"""Clusters of the rows of a table: mixtures of naive Bayes components, without any class.

Secret: a row's clusters are found like classes that nobody wrote down, so all columns count
alike, whether they hold categories or numbers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats
from nbspam.errors import UsageError
from nbspam.models.columns.incomplete import mixture_of_rows
from nbspam.models.columns.levels import Levels
from nbspam.models.columns.mixed import MixedNB
from nbspam.models.em import Fit, Stopping
from nbspam.sources.records import Record
from nbspam.tables.schema import Column, coded, detect


class Feature(NamedTuple):
    """What a column is like in a cluster; what does not apply is None."""

    column: str
    value: str | None = None  # a category
    probability: float | None = None  # of the category
    mean: float | None = None  # of numbers
    standard_deviation: float | None = None

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.column}={self.value} {self.probability:.4g}"
        return f"{self.column} {self.mean:.4g} ± {self.standard_deviation:.4g}"


@dataclass(frozen=True, slots=True)
class TableClusters:
    """A fitted mixture and its rows; clusters are in descending order of size."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]  # (n_rows,)
    share: Floats  # (n_rows, k) P(cluster given row)
    fit: Fit
    features: tuple[tuple[Feature, ...], ...]  # of each cluster, the most typical first

    @property
    def clusters(self) -> tuple[str, ...]:
        """The names of the clusters: their numbers."""
        k = self.share.shape[1]
        return tuple(f"{number:0{len(str(k))}}" for number in range(1, k + 1))


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
    rounds: int | None = None,
) -> TableClusters:
    """Return k clusters of rows, the most likely of several random starts; raises UsageError.

    alpha: added to the count of every value.  categorical, numeric: columns whose kind is given;
    drop: columns that take no part.  hard: give each row to one cluster.  rounds: of EM, without
    a test of convergence; None runs until it converges.
    """
    rows = list(records)
    schema, _ = detect(rows, None, categorical, numeric, drop=drop)
    table = coded(rows, schema)
    if not 2 <= k <= len(rows):
        raise UsageError(
            f"-k {k}: not from 2 to the number of rows, {len(rows)}; give another k, or more rows"
        )
    like = MixedNB(levels=schema.levels, alpha=alpha, ddof=0)
    stopping = Stopping() if rounds is None else Stopping(0.0, 0.0, rounds)
    rng = np.random.default_rng(seed)
    fit = mixture_of_rows(like, table.X, k, rng, restarts, hard, stopping)
    order = np.argsort(-fit.responsibility.sum(axis=0), kind="stable")
    features = tuple(_features(fit.model, schema.columns, place) for place in order.tolist())
    return TableClusters(schema.columns, table.names, fit.responsibility[:, order], fit, features)


def _features(model: MixedNB, columns: Sequence[Column], cluster: int) -> tuple[Feature, ...]:
    """Return what each column is like in a cluster, the most distinctive values first.

    Distinctive is what is more probable here than in the mean of the clusters, weighted by its
    probability; a number counts by how many standard deviations its mean is from that mean.
    """
    log_prob, bells = model.tables()
    share = np.exp(log_prob)
    here = share[cluster]
    ratio = np.divide(here, share.mean(axis=0), out=np.ones_like(here), where=here > 0)
    worth = here * np.log(ratio)
    start = iter(Levels(model.levels_[model.levels_ > 0]).start.tolist())
    number = iter(range(bells.mean.shape[1]))
    found: list[tuple[float, Feature]] = []
    for column in columns:
        if column.levels is None:
            j = next(number)
            mean, deviation = bells.mean[cluster, j], float(np.sqrt(bells.variance[cluster, j]))
            distance = abs(mean - bells.mean[:, j].mean()) / deviation
            number_here = Feature(column.name, mean=float(mean), standard_deviation=deviation)
            found.append((float(distance), number_here))
            continue
        first = next(start)
        for code, level in enumerate(column.levels):
            p = float(here[first + code])
            found.append((float(worth[first + code]), Feature(column.name, level, p)))
    return tuple(feature for _, feature in sorted(found, key=lambda pair: -pair[0]))
