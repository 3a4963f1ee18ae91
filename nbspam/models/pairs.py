"""Counts of pairs of values, from which models with dependent columns are computed.

Columns are binary (X above 0 or not, as for tokens) or hold codes; one index runs over the D
values of all columns.  A model learns how often each pair of values occurs in each class.
From this follows P(value b given class, value a) for all pairs as one table, with a row for
each a and a last row for "parent unknown", which is naive Bayes.  For binary columns only pairs
of ones are counted; the rest follows by subtraction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nbspam.models import gaussian
from nbspam.models.columns import BinaryByDefault, Levels
from nbspam.models.inputs import DataError, blocks_of_rows, is_sparse, refuse_large
from nbspam.models.smoothing import log_shares, remaining

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbspam.models.inputs import Array, Codes, Sums

_BLOCK = 1 << 21  # numbers handled at a time


@dataclass(frozen=True, eq=False)
class Encoding:
    """Events of rows, which matrix products count, and the counts of values that follow."""

    levels: Levels
    binary: bool  # columns have the values "absent" and "present"; only "present" is an event

    @property
    def n_events(self) -> int:
        """The number of events: one per binary column, or all values."""
        return len(self.levels.n) if self.binary else self.levels.total

    def own_counts(self, events: Array, n_docs: Array) -> Array:
        """Return the number of documents with each value, shape (n_classes, D).

        events: (n_classes, n_events) documents with each event; n_docs: (n_classes,).
        """
        if not self.binary:
            return events
        counts = np.empty((len(events), self.levels.total))
        counts[:, 0::2], counts[:, 1::2] = remaining(n_docs[:, None], events), events
        return counts

    def counts(self, pairs: Array, n_docs: float) -> Array:
        """Return the number of a class's documents with each pair of values, shape (D, D).

        pairs: (n_events, n_events) documents with each pair of events.
        """
        if not self.binary:
            return pairs
        ones = np.diagonal(pairs)
        counts = np.empty((self.levels.total, self.levels.total))
        counts[1::2, 1::2] = pairs
        counts[1::2, 0::2] = remaining(ones[:, None], pairs)
        counts[0::2, 1::2] = only_second = remaining(ones, pairs)
        counts[0::2, 0::2] = remaining(remaining(n_docs, ones)[:, None], only_second)
        return counts

    def linear(self, table: Array) -> tuple[Array, Array]:
        """Return constant (n,) and weight (n_events, n) that sum a table over a row's values.

        table: (n, D).  The sum is constant + events @ weight; for binary columns, constant
        treats all as absent, and weights replace the terms of those present.
        """
        if not self.binary:
            return np.zeros(len(table)), np.ascontiguousarray(table.T)
        absent, present = table[:, 0::2], table[:, 1::2]
        return absent.sum(axis=1), np.ascontiguousarray((present - absent).T)


def one_hot(cells: Codes, total: int) -> Array:
    """Return 1 where a row has the value, else 0, shape (n_docs, total)."""
    hot = np.zeros((len(cells), total + 1))
    np.put_along_axis(hot, cells, 1, axis=1)
    return hot[:, :total]


@dataclass(frozen=True, eq=False)
class ValueTables:
    """Log-probabilities of one class for all pairs of values, in nats.

    parent: (D + 1,) log P(class, a), and log P(class) last.
    given: (D + 1, D + 1) log P(b given class, a), and log P(b given class) in the last row;
    0 where a and b belong to the same column, and in the last column, for a missing b.
    """

    parent: Array
    given: Array


def given_table(counts: Array, levels: Levels, added: Array, left_out: int = 0) -> Array:
    """Return log P(b given class, a) in nats, shape (D + 1, D + 1); see ValueTables.given.

    (count(class, a, b) + l) / (count(class, a) + l n_values), Zhou Zhihua, Machine
    Learning, eq. 7.25, with l = `added`, which may differ from b to b; count(class, a) is of
    rows whose column of b is known.  counts: (D, D) of the class; left_out: as for
    `Levels.log_shares`.
    """
    total = levels.total
    given = np.zeros((total + 1, total + 1))
    given[:total, :total] = levels.log_shares(counts, added, left_out)
    given[total, :total] = levels.log_shares(np.diagonal(counts), added, left_out)
    for values in levels.slices:
        given[values, values] = 0.0
    return given


class PairModel(BinaryByDefault):
    """A model that learns how often each pair of values occurs in each class.

    levels: see `BinaryByDefault`.  A column of 0 values holds numbers: it depends on a column of
    categories, and is the parent of none; see `gaussian.ConditionalBells`.  All other parameters:
    see `columns.ColumnModel`.
    """

    _over_values: ClassVar[tuple[tuple[str, int], ...]] = (("pair_count_", 2),)
    _statistics = gaussian.ConditionalMoments
    _counts: ClassVar[tuple[str, ...]] = ("class_count_", "pair_count_")
    _takes_numbers = True
    pair_count_: Array  # (n_classes, n_events, n_events)

    @property
    def _sums(self) -> tuple[str, ...]:  # type: ignore[override]
        has_numbers = "levels_" in vars(self) and (self.levels_ == 0).any()
        return (*self._counts, *(gaussian.ConditionalMoments.names if has_numbers else ()))

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        return self.levels is None

    @property
    def encoding(self) -> Encoding:
        """Return the events of the columns of categories."""
        return Encoding(Levels(self.levels_[self.levels_ > 0]), self.levels is None)

    @property
    def categories_(self) -> Codes:
        """Return the columns that hold categories; all others hold numbers."""
        return np.flatnonzero(self.levels_)

    @property
    def bells(self) -> gaussian.ConditionalBells | None:
        """Return the normal distributions of the columns of numbers, None if there are none."""
        sums = self._learnt().sums
        if (self.levels_ > 0).all():
            return None
        n, mean, deviation = (sums[name] for name in gaussian.ConditionalMoments.names)
        return gaussian.ConditionalBells((n, mean, deviation), gaussian.divisor(self.estimate))

    def _levels_of(self, X: Any) -> Codes:
        levels = super()._levels_of(X)
        if not levels.any() or not (self._takes_numbers or levels.all()):
            raise DataError(
                f"{self._at('fit')}: {'no column holds' if not levels.any() else 'takes only'}"
                " categories; cut numbers into intervals"
            )
        return levels

    def _blocks(self, X: Any, width: int) -> Iterator[tuple[slice, Codes, Any, Array]]:
        """Yield blocks of rows: their slice, the indices of their values, events, and numbers.

        width: numbers that the caller needs per row; it determines the size of a block.
        Events are 0 or 1, (n_docs, n_events), CSR if X is sparse; numbers: (n_docs, n_numbers).
        """
        encoding, is_number = self.encoding, self.levels_ == 0
        for rows in blocks_of_rows(X.shape[0], width, _BLOCK):
            dense = X[rows].toarray() if is_sparse(X) else X[rows]
            numbers = dense[:, is_number].astype(np.float64)
            values = self._values(dense[:, ~is_number])
            cells = encoding.levels.cells(values, type(self).__name__)
            if not encoding.binary:
                events = one_hot(cells, encoding.levels.total)
            else:
                present = (cells & 1).astype(np.float64)
                events = type(X)(present) if is_sparse(X) else present
            yield rows, cells, events, numbers

    def _count(self, X: Any, code: Codes, weight: Array | None, n_classes: int) -> Sums:
        encoding = self.encoding
        n = encoding.n_events
        refuse_large(self._at("fit"), f"counts of pairs of {n:,} values", (n_classes, n, n))
        pairs = np.zeros((n_classes, n, n))
        # Single precision counts exactly up to 2**24, and is twice as fast.
        dtype = np.float32 if weight is None else np.float64
        for rows, _, found, _ in self._blocks(X, encoding.levels.total):
            events = (found.toarray() if is_sparse(found) else found).astype(dtype)
            for k in range(n_classes):
                of_class = code[rows] == k
                part = events[of_class]
                weighted = part if weight is None else part * weight[rows][of_class, None]
                pairs[k] += weighted.T @ part
        if (self.levels_ > 0).all():
            return {"pair_count_": pairs}
        cells = encoding.levels.cells(X[:, self.categories_], type(self).__name__)
        numbers = X[:, self.levels_ == 0]
        given = gaussian.conditional_moments(
            numbers, cells, encoding.levels, code, weight, n_classes
        )
        return {"pair_count_": pairs, **given}

    def _spread(self, levels: Codes, codes: Sequence[Codes]) -> Sums:
        spread = dict(super()._spread(levels, codes))
        place = np.append(Levels(levels).places(codes), levels.sum())
        for name in self._sums[len(self._counts) :]:
            total = getattr(self, name)
            spread[name] = np.zeros((len(total), levels.sum() + 1, total.shape[2]))
            spread[name][:, place[place >= 0]] = total[:, place >= 0]
        return spread

    def own_counts(self) -> Array:
        """Return the number of documents of each class with each value, (n_classes, D)."""
        ones = np.diagonal(self.pair_count_, axis1=1, axis2=2)
        return self.encoding.own_counts(ones, self.class_count_)

    def value_counts(self) -> Iterator[Array]:
        """Yield, for each class, the number of documents with each pair of values: (D, D)."""
        # One class at a time: for binary columns they take four times the memory of
        # pair_count_.
        return map(self.encoding.counts, self.pair_count_, self.class_count_)

    def value_tables(self, left_out: int = 0) -> Iterator[ValueTables]:
        """Yield the tables of each class.

        P(class, a) = (count(class, a) + l) / (N + l n_values), eq. 7.24 as in the book's worked
        example, (6 + 1) / (17 + 3).  N counts the rows whose column of a is known.
        left_out: 1 for tables that classify a document of the class as if it had not been
        learnt; N is not reduced, because that factor is the same for all classes.
        """
        own, levels = self.own_counts(), self.encoding.levels
        n_known = levels.sums(own.sum(axis=0))
        n_values, added = levels.n[levels.column], self.added_
        left = np.maximum(own - left_out, 0.0)
        parent = log_shares(left, n_known, n_values, added, levels.sums(added))
        prior = self.class_log_prior_ + self._log_left(left_out)
        for k, counts in enumerate(self.value_counts()):
            given = given_table(counts, levels, added, left_out)
            yield ValueTables(np.append(parent[k], prior[k]), given)

    def _log_left(self, left_out: int) -> Array:
        """Return the change of each class's log-prior, of counts, if left_out documents go."""
        if not left_out:
            return np.zeros(len(self.class_count_))
        count = self.class_count_ + self.class_added(len(self.class_count_))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(count - left_out, 0.0) / np.where(count > 0, count, 1.0))


# --- scores of models in which each column depends on at most one other ----------------------

# Nats per column that stand for minus infinity, which would make a product NaN.  No other
# columns can outweigh it, because a share of a count is above exp(-50).
_IMPOSSIBLE = 100.0


@dataclass(frozen=True, eq=False)
class ParentTree:
    """The column that each column depends on: parents, (n_columns,), -1 for none.

    The super-parent of a SPODE is its own parent: given itself it has probability 1, and so adds
    nothing.
    """

    parents: Codes
    levels: Levels

    @cached_property
    def missing(self) -> int:
        """The code of a parent whose value is missing."""
        return int(self.levels.n.max())

    def table(self, given: Array) -> Array:
        """Return log P(value given class, parent's code), shape (missing + 1, D + 1), nats.

        given: as in ValueTables; the tree uses only few of its entries.
        """
        levels = self.levels
        parent = self.parents[levels.column]
        code = np.arange(self.missing + 1)[:, None]
        place = levels.start[parent] + np.minimum(code, levels.n[parent] - 1)
        known = (parent >= 0) & (code < self.missing)
        rows = np.where(known, place, levels.total)
        table = np.zeros((len(code), levels.total + 1))
        table[:, :-1] = given[rows, np.arange(levels.total)]
        return table

    def places(self, cells: Codes) -> Codes:
        """Return the positions of a row's factors in the flat table, (n_docs, n_columns).

        cells: (n_docs, n_columns), the indices of the values.
        """
        of_parent = cells[:, self.parents]
        # A root reads some other column as its parent; all rows of its table are equal.
        known = of_parent < self.levels.total
        code = np.where(known, of_parent - self.levels.start[self.parents], self.missing)
        return np.asarray(code * (self.levels.total + 1) + cells)


@dataclass(frozen=True, eq=False)
class ParentScores:
    """The SPODEs of one class: log P(class, row) with each value as the super-parent.

    D: the number of values.  constant: (D + 1,); weight: (n_events, D + 1); lowest: a score
    below it stands for -inf, None if there is no such score.
    """

    constant: Array
    weight: Array
    lowest: float | None

    @classmethod
    def of(cls, table: ValueTables, encoding: Encoding) -> ParentScores:
        """Return the scores that follow from the tables of one class."""
        impossible = -_IMPOSSIBLE * len(encoding.levels.n)
        given = table.given[:, : encoding.levels.total]
        lowest = None
        if np.isneginf(given.min(initial=0.0)):
            given, lowest = np.maximum(given, impossible), impossible / 2
        constant, weight = encoding.linear(given)
        return cls(constant + table.parent, weight, lowest)

    def scores(self, events: Any) -> Array:
        """Return the scores of all parents in nats, shape (n_docs, D + 1).

        events: (n_docs, n_events).  The last column is the score of naive Bayes.
        """
        scores = np.asarray(events @ self.weight)
        scores += self.constant
        if self.lowest is not None:
            # A share is at least 1 / n > exp(-50), so only impossible rows are this low.
            scores[scores < self.lowest] = -np.inf
        return scores

    def by_parent(self, events: Any, cells: Codes) -> Array:
        """Return the score with the value of each column as parent, (n_docs, n_columns)."""
        return np.take_along_axis(self.scores(events), cells, axis=1)
