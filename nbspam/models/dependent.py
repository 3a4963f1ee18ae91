"""Naive Bayes in which columns depend on a few others: SPODE, TAN, AODE, A2DE and AKDE.

In SPODE all columns depend on one of them, the super-parent; in TAN each on at most one other, in
a tree.  AODE, A2DE and AKDE choose nothing: they average models with every column, every pair of
columns, or every set of k columns, as parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.errors import check_number
from nbspam.models.base import logsumexp
from nbspam.models.columns import ColumnModel, Levels, RowsModel
from nbspam.models.gaussian import ConditionalBells
from nbspam.models.graphs import spanning_tree
from nbspam.models.inputs import DataError, refuse_large
from nbspam.models.pairs import (
    PairModel,
    ParentScores,
    ParentTree,
    ValueTables,
    given_table,
    one_hot,
)
from nbspam.models.smoothing import log_shares

if TYPE_CHECKING:
    from nbspam.models.inputs import Array, Codes, Sums

_WORST_LOSS = 1e6  # log loss of a document whose class got probability 0, nats
_DIGITS = 9  # decimals of log-probabilities that are free of rounding errors


class CountedWithParents(ColumnModel):
    """A model that counts the class together with parents, so that it has no other prior.

    class_prior: "smoothed" or "estimated", which only rows without a parent get.
    """

    def _log_prior(self, class_count: Array) -> Array:
        is_stated = not isinstance(self.class_prior, str) or self.class_prior == "uniform"
        if is_stated or self.class_dirichlet is not None:
            raise DataError(
                f"{type(self).__name__}: counts the classes together with the values of parents,"
                " so that no other class_prior or dirichlet enters; leave it out"
            )
        return super()._log_prior(class_count)


@dataclass(kw_only=True, eq=False, repr=False)
class SPODE(CountedWithParents, PairModel):
    """P(class, parent) times the product of P(column given class, parent) over other columns.

    Zhou Zhihua, Machine Learning, eq. 7.21 with the super-parent as pa; probabilities by
    eq. 7.24 and 7.25, densities of columns of numbers by `gaussian.ConditionalBells`.  A row
    whose parent is missing is classified by naive Bayes.
    parent: index of the super-parent's column.  Unless given, the first documents choose
    the column with the fewest errors in leave-one-out cross-validation, and among equals
    the one with the lowest log loss; a column with a single value only if all have one.
    All other parameters: see `PairModel`, and `CountedWithParents` for class_prior.
    parent_errors_, parent_loss_: of a chosen parent, the errors with each column as parent,
    and the mean log loss in nats, shape (n_columns,).

    >>> from nbspam.models import SPODE
    >>> xor = SPODE(parent=0).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    parent: int | None = None
    parent_: int = field(init=False)
    parent_errors_: Array = field(init=False)
    parent_loss_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.parent not in (None, *self.categories_.tolist()):
            raise DataError(
                f"parent: {self.parent} is none of the columns 0 to {len(self.levels_) - 1}"
                " that hold categories; give one of them"
            )

    def _choose(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.parent is not None:
            self.parent_ = self.parent
            return
        code = np.searchsorted(self.classes_, np.asarray(y))
        weight = np.ones(len(code)) if sample_weight is None else np.array(sample_weight, float)
        self.parent_errors_, self.parent_loss_ = self._cross_validated(X, code, weight)
        keys = self.parent_loss_, self.parent_errors_, -np.minimum(self.levels_, 2)
        self.parent_ = int(np.lexsort(keys)[0])

    def _cross_validated(self, X: Any, code: Codes, weight: Array) -> tuple[Array, Array]:
        """Return errors and mean log loss of each parent, left-one-out, (n_columns,).

        code: the class indices; weight: (n_docs,), how many times each row counts.
        """
        encoding, bells = self.encoding, self.bells
        with_all, without = (
            [ParentScores.of(table, encoding) for table in self.value_tables(left_out)]
            for left_out in (0, 1)
        )
        # A column of numbers is no parent.
        errors, loss = np.full(X.shape[1], weight.sum()), np.full(X.shape[1], _WORST_LOSS)
        errors[self.categories_] = loss[self.categories_] = 0.0
        width = (len(with_all) + 1) * (encoding.levels.total + 1)
        for rows, cells, events, numbers in self._blocks(X, width):
            truth = code[rows]
            # (n_classes, n_docs, n_columns): the scores with each column as the parent.
            joint = np.stack([scores.by_parent(events, cells) for scores in with_all])
            for k, scores in enumerate(without):
                own = truth == k
                joint[k, own] = scores.by_parent(events[own], cells[own])
                if bells is not None:
                    for these in (own, ~own):
                        x, given = numbers[these, None], cells[these, :, None]
                        joint[k, these] += bells.log_density(k, x, given, leave_out=these is own)
            of_truth = np.take_along_axis(joint, truth[None, :, None], axis=0)[0]
            # Rounded, so that how columns are stored (dense, sparse) does not break ties.
            best = joint.round(_DIGITS).argmax(axis=0)
            errors[self.categories_] += weight[rows] @ (best != truth[:, None])
            total = np.logaddexp.reduce(joint, axis=0)
            surprise = np.full(of_truth.shape, _WORST_LOSS)
            np.subtract(total, of_truth, out=surprise, where=~np.isneginf(of_truth))
            loss[self.categories_] += weight[rows] @ surprise
        return errors, (loss / (weight.sum() or 1.0)).round(_DIGITS)

    def _derive(self) -> Any:
        place = int(np.searchsorted(self.categories_, self.parent_))
        tree = ParentTree(np.full(len(self.categories_), place), self.encoding.levels)
        tables = [(each.parent, tree.table(each.given)) for each in self.value_tables()]
        return tree, tables, self.bells

    def _joint_log_proba(self, X: Any) -> Array:
        tree, tables, bells = self.tables()
        joint = np.empty((X.shape[0], len(tables)))
        for rows, cells, _, numbers in self._blocks(X, 3 * X.shape[1]):
            places, value = tree.places(cells), cells[:, tree.parents[0]]
            for k, (parent, given) in enumerate(tables):
                joint[rows, k] = parent[value] + given.ravel().take(places).sum(axis=1)
                if bells is not None:
                    joint[rows, k] += bells.log_density(k, numbers, value[:, None])
        return joint


# --- TAN (tree-augmented naive Bayes) --------------------------------------------------------


ALL_ROOTS = "all"


@dataclass(kw_only=True, eq=False, repr=False)
class TAN(PairModel):
    """P(class) times P(root given class) times P(column given class, its parent in the tree).

    Friedman, Geiger & Goldszmidt (1997); Zhou Zhihua, Machine Learning, eq. 7.22: the tree
    maximises the sum, over its edges, of the mutual information of both columns given the
    class.  A missing value is left out; its children are treated as if they had no parent.
    The parent of a column of numbers is the column of categories given which its numbers are the
    likeliest.
    root: index of the column that all edges lead away from; unless given, the one with the
    highest mutual information with the class.  "all": the mean of P(class, row) over every
    column with several values as the root.  The tree's edges are the same for every root, and
    without smoothing so is its probability for a row that is known.  All other parameters: see
    `PairModel`.

    >>> from nbspam.models import TAN
    >>> xor = TAN().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    root: int | str | None = None

    @property
    def parents_(self) -> Codes:
        """Return the parent of each column, -1 for the root, shape (n_columns,).

        If all columns are roots, the tree has the root that it would have by default.
        """
        tables = self.tables()
        parents = np.empty(self.n_features_in_, np.intp)
        places = tables.tree.parents
        parents[self.categories_] = np.where(places < 0, -1, self.categories_[places])
        parents[self.levels_ == 0] = self.categories_[tables.of_numbers]
        return parents

    def information(self) -> Array:
        """Return how much a column tells of another given the class, nats, (n_columns, n_columns).

        Between categories it is `conditional_information`, between a category and numbers
        `ConditionalBells.gain`, and between numbers 0.
        """
        encoding, found = self.encoding, np.zeros((self.n_features_in_,) * 2)
        these, numbers = self.categories_, np.flatnonzero(self.levels_ == 0)
        of_categories = conditional_information(self.value_counts(), encoding.levels)
        found[np.ix_(these, these)] = of_categories
        if self.bells is not None:
            gain = self.bells.gain(encoding.levels)
            found[np.ix_(these, numbers)] = gain
            found[np.ix_(numbers, these)] = gain.T
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.root not in (None, ALL_ROOTS, *self.categories_.tolist()):
            raise DataError(
                f"root: {self.root!r} is none of the columns 0 to {len(self.levels_) - 1}"
                f" that hold categories; give one of them, or {ALL_ROOTS!r}"
            )

    def _derive(self) -> TreeTables:
        levels, these = self.encoding.levels, self.categories_
        root = default = int(class_information(self.own_counts(), levels).argmax())
        if self.root not in (None, ALL_ROOTS):
            root = int(np.searchsorted(these, self.root))
        information = self.information()
        parents = _rooted(spanning_tree(information[np.ix_(these, these)], default), root)
        roots = np.flatnonzero(levels.n > 1).tolist() if self.root == ALL_ROOTS else []
        trees = [ParentTree(_rooted(parents, each), levels) for each in roots or [root]]
        size = (len(trees), len(self.classes_), trees[0].missing + 1, levels.total + 1)
        refuse_large(self._at("fit"), f"tables of {len(trees):,} trees", size)
        of_classes = list(self.value_tables())
        log_prior = np.array([each.parent[-1] for each in of_classes])
        tables = [[tree.table(each.given) for each in of_classes] for tree in trees]
        by_root = list(zip(trees, tables, strict=True))
        of_numbers = information[these][:, self.levels_ == 0].argmax(axis=0)
        return TreeTables(ParentTree(parents, levels), log_prior, by_root, of_numbers, self.bells)

    def _joint_log_proba(self, X: Any) -> Array:
        _, log_prior, by_root, of_numbers, bells = self.tables()
        joint = np.full((X.shape[0], len(log_prior)), -np.inf)
        for rows, cells, _, numbers in self._blocks(X, 3 * X.shape[1]):
            for tree, tables in by_root:
                places = tree.places(cells)
                for k, given in enumerate(tables):
                    of_root = given.ravel().take(places).sum(axis=1)
                    joint[rows, k] = np.logaddexp(joint[rows, k], of_root)
            if bells is not None:
                for k in range(len(log_prior)):
                    joint[rows, k] += bells.log_density(k, numbers, cells[:, of_numbers])
        return np.asarray(log_prior + joint - np.log(len(by_root)))


class TreeTables(NamedTuple):
    """The tables of TAN; columns are numbered among the categorical ones."""

    tree: ParentTree  # of the given root, or the one by default
    log_prior: Array  # (n_classes,)
    by_root: list[tuple[ParentTree, list[Array]]]  # a tree, and the table of each class
    of_numbers: Codes  # the parent of each column of numbers, (n_numbers,)
    bells: ConditionalBells | None


def _rooted(parents: Codes, root: int) -> Codes:
    """Return the tree with its edges led away from another root."""
    parents, node, above = parents.copy(), root, -1
    while node >= 0:
        parents[node], node, above = above, int(parents[node]), node
    return parents


def conditional_information(counts: Iterable[Array], levels: Levels) -> Array:
    """Return I(column i; column j given class) in nats, (n_columns, n_columns).

    The sum of P(a, b, class) log [P(a, b given class) / (P(a given class) P(b given class))],
    Friedman, Geiger & Goldszmidt (1997), section 4, over rows in which both are known.  Zhou
    Zhihua's eq. 7.22 prints P(a, b given class) as the weight, which is a slip: it lets a rare
    class count as much as a frequent one, and some tables then get a worse tree.
    counts: (D, D) for each class, the number of rows with each pair of values.
    """
    total = np.zeros((len(levels.n), len(levels.n)))
    n_pairs = np.zeros_like(total)
    for pairs in counts:
        scaled = _scaled(pairs)
        in_column = levels.sums(scaled)  # (D, D): rows with a in which b's column is known
        both = levels.sums(in_column.T).T  # rows in which both columns are known
        expected = in_column * in_column.T
        ratio = np.divide(scaled * both, expected, where=pairs > 0, out=np.ones_like(pairs))
        total += _by_column(pairs * np.log(ratio), levels)
        n_pairs += _by_column(pairs, levels)
    return np.divide(total, n_pairs, where=n_pairs > 0, out=total)


def class_information(own: Array, levels: Levels) -> Array:
    """Return I(column; class) in nats, shape (n_columns,), over rows in which it is known.

    own: (n_classes, D), the number of rows with each value.
    """
    own = _scaled(own)
    known = levels.sums(own)
    expected = own.sum(axis=0) * known
    ratio = np.divide(own * known.sum(axis=0), expected, where=own > 0, out=np.ones_like(own))
    share = np.divide(own, known.sum(axis=0), where=own > 0, out=np.zeros_like(own))
    return np.asarray(np.add.reduceat((share * np.log(ratio)).sum(axis=0), levels.start))


def _scaled(counts: Array) -> Array:
    """Return counts times a power of two, which is exact, so that no product overflows."""
    return np.asarray(np.ldexp(counts, -np.frexp(counts.max(initial=0.0))[1]))


def _by_column(values: Array, levels: Levels) -> Array:
    """Return the sums of (D, D) values over pairs of columns, (n_columns, n_columns)."""
    rows = np.add.reduceat(values, levels.start, axis=0)
    return np.asarray(np.add.reduceat(rows, levels.start, axis=1))


# --- averages over all parents ---------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class AODE(CountedWithParents, PairModel):
    """The mean over all columns i of P(class, x_i) times P(x_j given class, x_i) for all j.

    Webb, Boughton & Wang (2005); Zhou Zhihua, Machine Learning, eq. 7.23 to 7.25.  The product
    leaves out j = i, which eq. 7.23 does not: smoothed, that factor would not be 1.  A value
    is a parent only if at least min_support documents have it, and if its column has other
    values; numbers are no parents.  A row without a parent is classified by naive Bayes.
    Nothing is chosen: only counts are learnt.  All other parameters: as for `SPODE`.

    >>> from nbspam.models import AODE
    >>> xor = AODE().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> xor.predict([[0, 1], [1, 1]]).tolist()
    [1, 0]
    """

    min_support: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("min_support", self.min_support, 0, above=True, error=DataError)

    def _derive(self) -> Any:
        """Return the SPODEs of each class, and (D + 1,) which values are parents."""
        # A missing value, the last one, is no parent.
        is_parent = np.append(self._are_parents(), False)
        scores = [ParentScores.of(table, self.encoding) for table in self.value_tables()]
        return scores, is_parent, self.bells

    def parent_columns(self) -> list[int]:
        """Return the columns of which some value is a parent."""
        places = np.unique(self.encoding.levels.column[self._are_parents()])
        return [int(column) for column in self.categories_[places]]

    def _are_parents(self) -> Any:
        """Return a mask of the values that are parents, (D,)."""
        support = self.own_counts().sum(axis=0)
        return (support >= self.min_support) & self.encoding.levels.varies

    def _joint_log_proba(self, X: Any) -> Array:
        tables = self.tables()
        joint = np.empty((X.shape[0], len(tables[0])))
        for rows, cells, events, numbers in self._blocks(X, 2 * self.encoding.levels.total):
            joint[rows] = _averaged(tables, events, cells, numbers)
        return joint


def _averaged(tables: Any, events: Array, cells: Codes, numbers: Array) -> Array:
    """Return the log of the mean over each row's SPODEs in nats, (n_docs, n_classes).

    tables: the scores of each class, (D + 1,) which values are parents, and the distributions of
    numbers.
    """
    classes, is_parent, bells = tables
    chosen = is_parent[cells]
    n_parents = chosen.sum(axis=1)
    joint = np.empty((len(cells), len(classes)))
    for k, of_class in enumerate(classes):
        scores = of_class.scores(events)
        of_parents, of_none = np.take_along_axis(scores, cells, axis=1), scores[:, -1]
        if bells is not None:
            of_parents = of_parents + bells.log_density(k, numbers[:, None], cells[:, :, None])
            of_none = of_none + bells.log_density(k, numbers, np.full((1, 1), -1))
        of_parents = np.where(chosen, of_parents, -np.inf)
        mean = logsumexp(of_parents)[:, 0] - np.log(np.maximum(n_parents, 1))
        joint[:, k] = np.where(n_parents > 0, mean, of_none)
    return joint


@dataclass(kw_only=True, eq=False, repr=False)
class A2DE(AODE):
    """The mean over all pairs i, j of P(class, x_i, x_j) times P(x_k given class, x_i, x_j).

    Webb, Boughton, Zheng, Ting & Salem (2012).  Given the value of one parent, it is AODE over
    the documents with that value.  For few columns only: it counts all triples of values.  A
    pair of values is a parent only if at least min_support documents have it, and if both
    columns have other values; a row without such a pair is classified by AODE.  Parameters: as
    for `AODE`, but no column may hold numbers.

    >>> from nbspam.models import A2DE
    >>> rows = [[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    >>> parity = A2DE().fit(rows, [sum(row) % 2 for row in rows])
    >>> parity.predict([[0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1]
    """

    _counts = ("class_count_", "pair_count_", "triple_count_")
    _takes_numbers = False
    _over_values = (("pair_count_", 2), ("triple_count_", 3))
    # (n_classes, D, D, D): for each value, pairs in the documents with it
    triple_count_: Array = field(init=False)

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        total = self.encoding.levels.total
        of_triples = n_classes, total, total, total
        refuse_large(self._at("fit"), f"counts of {total:,} values cubed", of_triples)
        triples = np.zeros(of_triples)
        for rows, cells, _, _ in self._blocks(X, 2 * total):
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
            for of_value in self.tables_of_two()
        ]
        # Each pair of columns counts once, and a missing value, the last one, is no parent.
        in_all = sum(self.value_counts())
        is_parent = (in_all >= self.min_support) & (levels.column > levels.column[:, None])
        is_parent &= levels.varies & levels.varies[:, None]
        return super()._derive(), scores, np.pad(is_parent, ((0, 0), (0, 1)))

    def tables_of_two(self) -> Iterator[list[ValueTables]]:
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
                # The addend of a pair is the mean of both values' addends.
                parent = log_shares(
                    counts[k, value],
                    both_known[value],
                    n_values[value] * n_values,
                    (added[value] + added) / 2,
                    (added_to_column[value] * n_values + added_to_column * n_values[value]) / 2,
                )
                of_classes.append(ValueTables(np.append(parent, 0.0), given))
            yield of_classes

    def _joint_log_proba(self, X: Any) -> Array:
        of_one, of_two, is_parent = self.tables()
        joint = np.empty((X.shape[0], len(of_one[0])))
        for rows, cells, events, numbers in self._blocks(X, 2 * self.encoding.levels.total):
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
            joint[rows] = np.where(n_parents > 0, mean, _averaged(of_one, events, cells, numbers))
        return joint


# --- any number of parents, counted when asked -----------------------------------------------

_MAX_PARENT_SETS = 20_000  # of a row; about 0.5 ms each: E-250


@dataclass(kw_only=True, eq=False, repr=False)
class AKDE(CountedWithParents, RowsModel):
    """The mean over all sets of k columns of P(class, set) times P(x_j given class, set).

    Zhou Zhihua's kDE, averaged: AnDE of Webb, Boughton, Zheng, Ting & Salem (2012); order is k.
    With k = 1 it is AODE, with k = 2 A2DE.  The counts of all sets of k + 1 values would fill the
    memory, so the distinct rows are kept, and those that share a set of values with a row are
    counted when that row is classified.  A set is a parent only if at least min_support documents
    share its values, and if its columns have other values.  A row without such a set is
    classified with k - 1, at last by naive Bayes.  All other parameters: see `RowsModel`, and
    `CountedWithParents` for class_prior.

    >>> from nbspam.models import AKDE
    >>> rows = [[a, b, c, d] for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)]
    >>> parity = AKDE(order=3).fit(rows, [sum(row) % 2 for row in rows])
    >>> parity.predict([[0, 1, 1, 1], [1, 1, 1, 1]]).tolist()
    [1, 0]
    """

    order: int = 3
    min_support: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("min_support", self.min_support, 0, above=True, error=DataError)
        check_number("order", self.order, 1, whole=True, error=DataError)
        n_varied = int((self.levels_ > 1).sum())
        n_sets = max(comb(n_varied, k) for k in range(min(self.order, n_varied) + 1))
        if n_sets > _MAX_PARENT_SETS:
            raise DataError(
                f"order: {self.order} of {n_varied} columns can be chosen in {n_sets:,} ways, more"
                f" than {_MAX_PARENT_SETS:,}; take fewer columns, or a lower order"
            )

    def _derive(self) -> Any:
        """Return the weight of each row in its class, which values are known, and what is added.

        Shapes: (n_distinct, n_classes); (n_distinct, n_columns); to each value (D,), and to all
        of its column (n_columns,).
        """
        weight = np.zeros((len(self.rows_), len(self.classes_)))
        weight[np.arange(len(self.rows_)), self.rows_[:, -1]] = self.row_count_
        added = self.added_
        added_to_column = np.add.reduceat(added, Levels(self.levels_).start)
        return weight, self.rows_[:, :-1] >= 0, added, added_to_column

    def _joint_log_proba(self, X: Any) -> Array:
        codes = self._codes(X, self._at("predict"))
        different, which = np.unique(codes, axis=0, return_inverse=True)
        joint = np.empty((len(different), len(self.classes_)))
        for place, row in enumerate(different):
            joint[place] = self._of_row(row)
        return joint[which.ravel()]

    def _of_row(self, row: Codes) -> Array:
        """Return log P(class, row) in nats, (n_classes,); row: codes, -1 where missing."""
        everywhere = np.arange(len(self.rows_))
        varied = np.flatnonzero((row >= 0) & (self.levels_ > 1)).tolist()
        for order in range(min(self.order, len(varied)), 0, -1):
            total, n_sets = np.full(len(self.classes_), -np.inf), 0
            for columns, rows in self._parent_sets(row, varied, order, everywhere):
                total = np.logaddexp(total, self._given_set(row, columns, rows))
                n_sets += 1
            if n_sets:
                return np.asarray(total - np.log(n_sets))
        return self._given_set(row, (), everywhere)

    def _parent_sets(
        self, row: Codes, columns: Sequence[int], order: int, rows: Codes
    ) -> Iterator[tuple[tuple[int, ...], Codes]]:
        """Yield the sets of columns whose values enough rows share, and these rows' indices."""
        if order == 0:
            yield (), rows
            return
        for n, column in enumerate(columns):
            sharing = rows[self.rows_[rows, column] == row[column]]
            if self.row_count_[sharing].sum() >= self.min_support:
                for more, left in self._parent_sets(row, columns[n + 1 :], order - 1, sharing):
                    yield (column, *more), left

    def _given_set(self, row: Codes, columns: tuple[int, ...], rows: Codes) -> Array:
        """Return log P(class, values of columns) + log P(other values given these), (n_classes,).

        rows: the indices of the rows that share these values.
        """
        levels, (weights, known, added, added_to_column) = Levels(self.levels_), self.tables()
        others = row >= 0
        others[list(columns)] = False
        place, n_values = levels.start + row, levels.n
        weight, found = weights[rows].T, self.rows_[rows, :-1]
        log_given = log_shares(
            (weight @ (found == row))[:, others],
            (weight @ known[rows])[:, others],
            n_values[others],
            added[place[others]],
            added_to_column[others],
        ).sum(axis=1)
        if not columns:
            return np.asarray(self.class_log_prior_ + log_given)
        of = list(columns)
        n_known = self.row_count_[known[:, of].all(axis=1)].sum()
        n_sets = float(np.prod(n_values[of], dtype=np.float64))
        # The addend of a set is the mean of its values' addends.
        share_of_each = (added_to_column[of] / n_values[of]).mean()
        log_share = log_shares(
            weight.sum(axis=1), n_known, n_sets, added[place[of]].mean(), n_sets * share_of_each
        )
        return np.asarray(log_share + log_given)
