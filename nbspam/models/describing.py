"""A model's estimates, distribution by distribution, and the dependences between columns.

`nbspam info` and `nbspam export` print this, and EM compares two rounds by it.  All models are
described alike: in probabilities, not in logarithms, with the counts behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.models.base import Estimator
from nbspam.models.columns import (
    CategoricalNB,
    CountedComplementNB,
    CountedMultinomialNB,
    Levels,
    count_cells,
)
from nbspam.models.dependent import A2DE, AKDE, ALL_ROOTS, AODE, SPODE, TAN
from nbspam.models.gaussian import GaussianNB, MixedNB
from nbspam.models.network import BayesianNetwork

if TYPE_CHECKING:
    from nbspam.models.gaussian import Bells
    from nbspam.models.inputs import Array
    from nbspam.models.pairs import PairModel

ANY_COLUMN = -1  # a variable whose values are the columns: which one a count was made in


class Distribution(NamedTuple):
    """P(of | given): variables are columns by number, and the class is the number after them.

    counts, probability: one axis for each variable in `given`, then in `of`.  A normal
    distribution has no probability, but mean and variance, and no axis for its column.
    """

    of: tuple[int, ...]
    given: tuple[int, ...]
    counts: Array  # rows, or what was counted in them
    probability: Any = None
    mean: Any = None
    variance: Any = None
    of_others: bool = False  # given that the class is not the one named


def distributions(model: Estimator, whole: bool = True) -> Iterator[Distribution]:
    """Yield the distributions that a model has estimated, P(class) first.

    whole: also the tables of pairs and triples of columns, of which AODE and A2DE have many.
    """
    given = (model.n_features_in_,)
    if not isinstance(model, BayesianNetwork):  # in which the class may have parents
        yield Distribution(given, (), model.class_count_, np.exp(model.class_log_prior_))
    match model:
        case CategoricalNB():
            yield from _of_values(model.levels_, model.level_count_, model.level_log_prob_)
        case MixedNB():
            log_prob, bells = model.tables()
            yield from _of_values(model.levels_, model.level_count_, log_prob)
            yield from _of_numbers(np.flatnonzero(model.levels_ == 0).tolist(), model, bells)
        case GaussianNB():
            yield from _of_numbers(range(model.n_features_in_), model, model.tables())
        case CountedMultinomialNB():
            probability = np.exp(model.feature_log_prob_)
            yield Distribution((ANY_COLUMN,), given, model.feature_count_, probability)
        case CountedComplementNB():
            counts, probability = model.complement_count(), np.exp(-model.weight())
            yield Distribution((ANY_COLUMN,), given, counts, probability, of_others=True)
        case SPODE():
            pairs, parent = _PairDistributions(model), model.parent_
            yield pairs.with_class(parent)
            others = (j for j in range(model.n_features_in_) if j != parent)
            yield from (pairs.given_class(column, parent) for column in others)
        case TAN():
            yield from _of_tan(model)
        case AODE():
            yield from _of_aode(model, whole)
            if whole and isinstance(model, A2DE):
                yield from _of_triples(model)
        case AKDE():
            # What is given parents too is counted for each row asked.
            levels, rows = Levels(model.levels_), model.rows_
            cells = levels.cells(rows[:, :-1], "distributions")
            n_classes = len(model.classes_)
            count = count_cells(cells, levels.total, rows[:, -1], model.row_count_, n_classes)
            log_prob = levels.log_shares(count, model.added_)
            yield from _of_values(model.levels_, count, log_prob)
        case BayesianNetwork():
            yield from _of_network(model)


def _of_values(n_values: Any, count: Array, log_prob: Array) -> Iterator[Distribution]:
    """Yield P(value given class) of each column of categories.

    n_values: of each column, 0 for a column of numbers; count, log_prob: (n_classes, values).
    """
    columns = np.flatnonzero(n_values).tolist()
    for column, values in zip(columns, Levels(n_values[columns]).slices, strict=True):
        probability = np.exp(log_prob[:, values])
        yield Distribution((column,), (len(n_values),), count[:, values], probability)


def _of_numbers(
    columns: Iterable[int], model: GaussianNB | MixedNB, bells: Bells
) -> Iterator[Distribution]:
    given = (model.n_features_in_,)
    for j, column in enumerate(columns):
        mean, variance = bells.mean[:, j], bells.variance[:, j]
        yield Distribution((column,), given, model.value_count_[:, j], None, mean, variance)


# --- pairs and triples of columns ------------------------------------------------------------


class _PairDistributions:
    """The distributions of a model that has counted pairs of values."""

    def __init__(self, model: PairModel) -> None:
        self.tables, self.counts_of_values = list(model.value_tables()), model.own_counts()
        self.of_class, self._model = model.n_features_in_, model
        self.columns, self.bells = model.categories_.tolist(), model.bells
        self.slices = dict(zip(self.columns, model.encoding.levels.slices, strict=True))

    @cached_property
    def counts(self) -> Array:
        return np.stack(list(self._model.value_counts()))

    def with_class(self, parent: int) -> Distribution:
        """Return P(class, parent), Zhou Zhihua's eq. 7.24."""
        values = self.slices[parent]
        probability = np.exp([each.parent[values] for each in self.tables])
        counts = self.counts_of_values[:, values]
        return Distribution((self.of_class, parent), (), counts, probability)

    def given_class(self, column: int, parent: int | None = None) -> Distribution:
        """Return P(column given class), or given class and parent, Zhou Zhihua's eq. 7.25."""
        given = (self.of_class,) if parent is None else (self.of_class, parent)
        row = -1 if parent is None else self.slices[parent]
        if column not in self.slices:
            bells = self.bells
            assert bells is not None  # there are numbers
            of = np.flatnonzero(self._model.levels_ == 0).tolist().index(column)
            mean, variance = bells.learnt.mean[:, row, of], bells.learnt.variance[:, row, of]
            counts = bells.moments[0][:, row, of]
            return Distribution((column,), given, counts, None, mean, variance)
        values = self.slices[column]
        probability = np.exp([each.given[row, values] for each in self.tables])
        counts = self.counts_of_values if parent is None else self.counts[:, row]
        return Distribution((column,), given, counts[..., values], probability)


def _of_tan(model: TAN) -> Iterator[Distribution]:
    pairs = _PairDistributions(model)
    for column, parent in enumerate(model.parents_.tolist()):
        if parent < 0 or model.root == ALL_ROOTS:
            yield pairs.given_class(column)
        if parent >= 0:
            yield pairs.given_class(column, parent)
            if model.root == ALL_ROOTS and column in pairs.columns:
                yield pairs.given_class(parent, column)


def _of_aode(model: AODE, whole: bool) -> Iterator[Distribution]:
    """Yield P(class, parent), P(column given class) for rows without a parent, and pairs."""
    pairs, parents = _PairDistributions(model), model.parent_columns()
    yield from map(pairs.with_class, parents)
    yield from map(pairs.given_class, range(model.n_features_in_))
    if whole:
        for parent, column in product(parents, range(model.n_features_in_)):
            if column != parent:
                yield pairs.given_class(column, parent)


def _of_triples(model: A2DE) -> Iterator[Distribution]:
    """Yield P(class, two parents), and P(column given all three)."""
    slices, of_class = model.encoding.levels.slices, model.n_features_in_
    tables, counts = list(model.tables_of_two()), np.stack(list(model.value_counts()))
    for first, second in combinations(model.parent_columns(), 2):
        rows, others = range(slices[first].start, slices[first].stop), slices[second]
        joint = [[table.parent[others] for table in tables[value]] for value in rows]
        both = counts[:, slices[first], others]
        of = (of_class, first, second)
        yield Distribution(of, (), both, np.exp(joint).transpose(1, 0, 2))
        for column in set(range(of_class)) - {first, second}:
            place = others, slices[column]
            given = [[table.given[place] for table in tables[value]] for value in rows]
            count = model.triple_count_[:, slices[first]][(..., *place)]
            probability = np.exp(given).transpose(1, 0, 2, 3)
            yield Distribution((column,), of, count, probability)


def _of_network(model: BayesianNetwork) -> Iterator[Distribution]:
    """Yield P(class given its parents, if it has some), and P(column given its parents)."""
    cardinality, tables, target = model.cardinality, model.tables(), model.n_features_in_
    for child in (target, *range(target)):
        parents = model.parents_[child]
        shape = [cardinality[node] for node in (*parents, child)]
        counts = model.family_counts(child).reshape(shape)
        yield Distribution((child,), parents, counts, tables[child].reshape(shape))


# --- which columns depend on which -----------------------------------------------------------


def _tree(model: TAN, names: Sequence[str]) -> dict[str, Any]:
    parents = model.parents_.tolist()
    information = model.information()
    edges = [
        {"parent": names[a], "column": names[b], "information": float(information[a, b])}
        for b, a in enumerate(parents)
        if a >= 0 and model.levels_[b] != 1
    ]
    varied = np.flatnonzero(model.levels_ != 1).tolist()
    pairs: list[dict[str, Any]] = [
        {"columns": [names[a], names[b]], "information": float(information[a, b])}
        for a, b in combinations(varied, 2)
        if model.levels_[[a, b]].any()
    ]
    pairs.sort(key=lambda pair: -pair["information"])
    root = None if model.root == ALL_ROOTS else names[parents.index(-1)]
    return {"root": root, "edges": edges, "pairs": pairs}


def dependences(model: Estimator, names: Sequence[str]) -> dict[str, Any]:
    """Return the dependences between columns and their reasons, as plain values.

    Naive Bayes has none.

    SPODE: the parent and, if it was chosen, the errors and the log loss with each column as the
    parent.  TAN: the root, None for all, and each edge with its information, nats; `pairs` has
    the information of all pairs of columns, the highest first.  Columns with a single value,
    which take no part, are left out.  AODE, A2DE, AKDE: the columns that are parents.
    Network: the arrows, the graph's cost by the criterion (nats, less is better), and its parts:
    the number of parameters, and the rows' log-likelihood under estimates by maximum likelihood.
    names: of the columns and the class.
    """
    match model:
        case SPODE():
            was_chosen = hasattr(model, "parent_loss_")
            candidates = [
                {
                    "column": names[column],
                    "errors": int(model.parent_errors_[column]),
                    "log_loss": float(model.parent_loss_[column]),
                }
                for column in (np.flatnonzero(model.levels_ > 1).tolist() if was_chosen else ())
            ]
            return {"parent": names[model.parent_], "candidates": candidates}
        case TAN():
            return _tree(model, names)
        case AODE():
            return {"parents": [names[column] for column in model.parent_columns()]}
        case AKDE():
            return {"parents": [names[j] for j in np.flatnonzero(model.levels_ > 1).tolist()]}
        case BayesianNetwork():
            scores, families = model.scores(), list(enumerate(model.parents_))
            edges = [
                {"parent": names[parent], "column": names[child]}
                for child, its_parents in families
                for parent in its_parents
            ]
            return {
                "edges": edges,
                "criterion": model.criterion,
                "score": float(scores.total(model.parents_)),
                "parameters": sum(scores.n_parameters(*family) for family in families),
                "log_likelihood": sum(scores.log_likelihood(*family) for family in families),
            }
    return {}
