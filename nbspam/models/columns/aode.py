"""AODE and A2DE: averages over models with every column, or pair of columns, as parents.

Given the value of one parent, A2DE is AODE over the documents that have that value, so its
counts of triples are AODE's counts of pairs, once for each value.

Secret: how the SPODEs of a row are averaged for all parents and documents at once.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.columns.estimates import log_shares
from nbspam.models.columns.onedependence import ParentScores
from nbspam.models.columns.pairs import (
    PairModel,
    ValueTables,
    given_table,
    one_hot,
    refuse_large,
)
from nbspam.models.distributions import Distribution
from nbspam.models.inputs import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from nbspam.models.columns.levels import Dirichlet
    from nbspam.models.inputs import Array, Codes, Sums


class AODE(PairModel):
    """The mean over all columns i of P(class, x_i) times P(x_j given class, x_i) for all j.

    Webb, Boughton & Wang (2005); Zhou Zhihua, Machine Learning, eq. 7.23 to 7.25.  A value
    is a parent only if at least min_support documents have it, and if its column has other
    values: a column of numbers that is not cut takes no part.  A row without a parent is
    classified by naive Bayes.  Nothing is chosen: only counts are learnt.

    >>> from nbspam.models import AODE
    >>> xor = AODE().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        *,
        min_support: float = 1.0,
        levels: ArrayLike | None = None,
        estimate: str = "mean",
        alpha: float = 1.0,
        class_prior: str | ArrayLike = "smoothed",
        dirichlet: Dirichlet = None,
    ) -> None:
        super().__init__(
            levels=levels,
            estimate=estimate,
            alpha=alpha,
            class_prior=class_prior,
            dirichlet=dirichlet,
        )
        self.min_support = min_support

    def _become(self, learnt: Any, n_features: int) -> Any:
        if not 0 < self.min_support < np.inf:
            raise DataError(f"min_support: {self.min_support!r} is not a number above 0; give one")
        return super()._become(learnt, n_features)

    def _derive(self) -> Any:
        """Return the SPODEs of each class, and (D + 1,) which values are parents."""
        # A missing value, the last one, is no parent.
        is_parent = np.append(self._are_parents(), False)
        encoding = self.encoding
        return [ParentScores.of(table, encoding) for table in self.value_tables()], is_parent

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield P(class), P(class, parent), P(column given class), P(column given class, parent).

        P(column given class) is for rows without a parent.
        """
        yield from super().distributions(whole)
        tables, parents = list(self.value_tables()), self._parent_columns()
        for parent in parents:
            yield self.joint_with_class(parent, tables)
        for column in range(self.n_features_in_):
            yield self.of_column(column, tables)
        if whole:
            counts = list(self.value_counts())
            for parent, column in product(parents, range(self.n_features_in_)):
                if column != parent:
                    yield self.of_pair(column, parent, tables, counts)

    def dependences(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the columns of which some value is a parent."""
        return {"parents": [names[column] for column in self._parent_columns()]}

    def _parent_columns(self) -> list[int]:
        """Return the columns of which some value is a parent."""
        columns = self.encoding.levels.column[self._are_parents()]
        return [int(column) for column in np.unique(columns)]

    def _are_parents(self) -> Any:
        """Return which values are parents, (D,)."""
        support = self.own_counts().sum(axis=0)
        return (support >= self.min_support) & self.encoding.levels.varies

    def _joint_log_proba(self, X: Any) -> Array:
        tables = self.tables()
        encoding = self.encoding
        joint = np.empty((X.shape[0], len(tables[0])))
        width = 2 * encoding.levels.total
        for rows, cells, events in encoding.blocks(X, width, type(self).__name__):
            joint[rows] = _averaged(tables, events, cells)
        return joint


def _averaged(tables: tuple[list[ParentScores], Array], events: Array, cells: Codes) -> Array:
    """Return the log of the mean over each row's SPODEs in nats, (n_docs, n_classes).

    tables: the scores of each class, and (D + 1,) which values are parents.
    """
    classes, is_parent = tables
    chosen = is_parent[cells]
    n_parents = chosen.sum(axis=1)
    joint = np.empty((len(cells), len(classes)))
    for k, of_class in enumerate(classes):
        scores = of_class.scores(events)
        of_parents = np.where(chosen, np.take_along_axis(scores, cells, axis=1), -np.inf)
        mean = logsumexp(of_parents)[:, 0] - np.log(np.maximum(n_parents, 1))
        joint[:, k] = np.where(n_parents > 0, mean, scores[:, -1])
    return joint


class A2DE(AODE):
    """The mean over all pairs i, j of P(class, x_i, x_j) times P(x_k given class, x_i, x_j).

    Webb, Boughton, Zheng, Ting & Salem (2012).  For few columns only: it counts all triples
    of values.  A pair of values is a parent only if at least min_support documents have it,
    and if both columns have other values; a row without such a pair is classified by AODE.

    >>> from nbspam.models import A2DE
    >>> rows = [[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    >>> parity = A2DE().fit(rows, [sum(row) % 2 for row in rows])
    >>> parity.predict([[0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1]
    """

    _sums = ("class_count_", "pair_count_", "triple_count_")
    _over_values: tuple[tuple[str, int], ...] = (("pair_count_", 2), ("triple_count_", 3))
    triple_count_: Array  # (n_classes, D, D, D): for each value, pairs in the documents with it

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        encoding, total = self.encoding, self.encoding.levels.total
        refuse_large(self._at("fit"), (n_classes, total, total, total), f"{total:,} values cubed")
        triples = np.zeros((n_classes, total, total, total))
        for rows, cells, _ in encoding.blocks(X, 2 * total, type(self).__name__):
            hot = one_hot(cells, total)
            times = hot if weight is None else hot * weight[rows, None]
            for k in range(n_classes):
                of_class = code[rows] == k
                for value in range(total):
                    some = of_class & (hot[:, value] > 0)
                    triples[k, value] += times[some].T @ hot[some]
        return {**super()._count(X, code, weight, n_classes), "triple_count_": triples}

    def _derive(self) -> Any:
        """Return the tables for one parent and for two.

        They are AODE's tables, the SPODEs of each value and class, and (D, D + 1) which pairs
        of values are parents.
        """
        levels = self.encoding.levels
        scores = [
            [ParentScores.of(table, self.encoding) for table in of_value]
            for of_value in self._tables_of_two()
        ]
        # Each pair of columns counts once, and a missing value, the last one, is no parent.
        in_all = sum(self.value_counts())
        is_parent = (in_all >= self.min_support) & (levels.column > levels.column[:, None])
        is_parent &= levels.varies & levels.varies[:, None]
        return super()._derive(), scores, np.pad(is_parent, ((0, 0), (0, 1)))

    def _tables_of_two(self) -> Iterator[list[ValueTables]]:
        """Yield for each value the tables of each class in which it is one of two parents."""
        levels, counts = self.encoding.levels, np.stack(list(self.value_counts()))
        in_all = counts.sum(axis=0)
        both_known = levels.sums(levels.sums(in_all).T).T
        n_values, added = levels.n[levels.column], self.added_
        added_to_column = levels.sums(added)
        for value in range(levels.total):
            here = levels.column == levels.column[value]
            of_classes = []
            for k, triples in enumerate(self.triple_count_[:, value]):
                given = given_table(triples, levels, added)
                given[:, :-1][:, here] = 0.0
                # A pair of values gets the mean of what is added to either.
                parent = log_shares(
                    counts[k, value],
                    both_known[value],
                    n_values[value] * n_values,
                    (added[value] + added) / 2,
                    (added_to_column[value] * n_values + added_to_column * n_values[value]) / 2,
                )
                of_classes.append(ValueTables(np.append(parent, 0.0), given))
            yield of_classes

    def distributions(self, whole: bool = True) -> Iterator[Distribution]:
        """Yield AODE's distributions, P(class, two parents), and P(column given all three)."""
        yield from super().distributions(whole)
        if not whole:
            return
        slices, of_class = self.encoding.levels.slices, self.n_features_in_
        tables, counts = list(self._tables_of_two()), np.stack(list(self.value_counts()))
        for first, second in combinations(self._parent_columns(), 2):
            rows, others = range(slices[first].start, slices[first].stop), slices[second]
            joint = [[table.parent[others] for table in tables[value]] for value in rows]
            both = counts[:, slices[first], others]
            of = (of_class, first, second)
            yield Distribution(of, (), both, np.exp(joint).transpose(1, 0, 2))
            for column in set(range(of_class)) - {first, second}:
                place = others, slices[column]
                given = [[table.given[place] for table in tables[value]] for value in rows]
                count = self.triple_count_[:, slices[first]][(..., *place)]
                probability = np.exp(given).transpose(1, 0, 2, 3)
                yield Distribution((column,), of, count, probability)

    def _joint_log_proba(self, X: Any) -> Array:
        of_one, of_two, is_parent = self.tables()
        encoding = self.encoding
        joint = np.empty((X.shape[0], len(of_one[0])))
        width = 2 * encoding.levels.total
        for rows, cells, events in encoding.blocks(X, width, type(self).__name__):
            sums = np.full((len(cells), joint.shape[1]), -np.inf)
            n_parents = np.zeros((len(cells), 1))
            for value, classes in enumerate(of_two):
                some = np.flatnonzero((cells == value).any(axis=1))
                chosen = is_parent[value][cells[some]]
                n_parents[some, 0] += chosen.sum(axis=1)
                for k, of_class in enumerate(classes):
                    pairs = of_class.by_parent(events[some], cells[some])
                    pairs = np.where(chosen, pairs, -np.inf)
                    sums[some, k] = np.logaddexp(sums[some, k], logsumexp(pairs)[:, 0])
            mean = sums - np.log(np.maximum(n_parents, 1))
            joint[rows] = np.where(n_parents > 0, mean, _averaged(of_one, events, cells))
        return joint
