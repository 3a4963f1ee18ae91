"""A2DE: the average over all pairs of columns as parents of all others.

Given one parent, it is AODE over the documents that have the parent's value; so its counts
of triples are AODE's counts of pairs, once for every value.

Secret: none beyond that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.models.base import logsumexp
from nbspam.models.columns.aode import AODE, averaged
from nbspam.models.columns.estimates import log_shares
from nbspam.models.columns.onedependence import ParentScores
from nbspam.models.columns.pairs import ValueTables, given_table, one_hot, refuse_large

if TYPE_CHECKING:
    from nbspam.models.inputs import Array, Codes, Sums


class A2DE(AODE):
    """The mean over all pairs i, j of P(class, x_i, x_j) times P(x_k given class, x_i, x_j).

    Webb, Boughton, Zheng, Ting & Salem (2012).  For few columns: it counts every triple of
    values.  Only pairs of values that min_support documents have are parents; a row
    without such a pair is judged by AODE.

    >>> from nbspam.models.columns.a2de import A2DE
    >>> rows = [[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    >>> parity = A2DE().fit(rows, [sum(row) % 2 for row in rows])
    >>> parity.predict([[0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1]
    """

    _sums = ("class_count_", "pair_count_", "triple_count_")
    triple_count_: Array  # (n_classes, D, D, D): pairs among the documents with a value

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
        """Return AODE's tables, the SPODEs given each value, and which pairs are parents."""
        levels, counts = self.encoding.levels, np.stack(list(self.value_counts()))
        in_all = counts.sum(axis=0)
        both_known = levels.sums(levels.sums(in_all).T).T
        n_values = levels.n[levels.column]
        scores = []
        for value in range(levels.total):
            here = levels.column == levels.column[value]
            of_classes = []
            for k, triples in enumerate(self.triple_count_[:, value]):
                given = given_table(triples, levels, self.added_)
                given[:, :-1][:, here] = 0.0
                parent = log_shares(
                    counts[k, value],
                    both_known[value],
                    n_values[value] * n_values,
                    self.added_,
                )
                table = ValueTables(np.append(parent, 0.0), given)
                of_classes.append(ParentScores.of(table, self.encoding))
            scores.append(of_classes)
        # Each pair of columns once, and what is missing is no parent.
        is_parent = (in_all >= self.min_support) & (levels.column > levels.column[:, None])
        return super()._derive(), scores, np.pad(is_parent, ((0, 0), (0, 1)))

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
            joint[rows] = np.where(n_parents > 0, mean, averaged(of_one, events, cells))
        return joint
