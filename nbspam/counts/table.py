"""Class counts: how they are weighted, added, taken apart and chosen from.

A count table is all that training learns.  Tables add: of batches, of processes, of
machines, of days; whatever the order and the cuts, the sum is the same to the bit.

Secret: how counts are held and added.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, Octets
from nbspam.settings import COUNTS, LOG_LENGTH, PRESENCE, TF_IDF, UNIT_LENGTH
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents, gather
from nbspam.tokens.vocabulary import Vocabulary, join

# Weights are multiples of this, so that sums of them have no rounding error: they do not
# depend on the order of addition, and what was added can be taken out again.  Of unit
# length they may reach 2**23; of log-length 4096 are exact in 32 bits too, which halves a
# model of many classes.
GRAIN = {
    PRESENCE: 1.0,
    COUNTS: 1.0,
    UNIT_LENGTH: 2.0**-30,
    LOG_LENGTH: 2.0**-12,
    TF_IDF: 2.0**-30,
}
_LOG_GRAIN = 2.0**-16  # of logarithms, whose squares so have exact sums too
# Merging many tables at once sorts each row once per level instead of once per table.
_FAN_IN = 8


class CountTable(NamedTuple):
    """How often each token was seen in each class: the sufficient statistics."""

    classes: tuple[str, ...]  # sorted
    class_count: Floats  # (n_classes,) documents
    vocabulary: Vocabulary
    feature_count: Floats  # (n_features, n_classes) sums of weights
    document_frequency: Integers  # (n_features,)

    @property
    def n_docs(self) -> int:
        """How many documents were counted."""
        return int(self.class_count.sum())

    def known(self, documents: Documents) -> Documents:
        """Return documents, given over keys, over the columns of the tokens that were counted."""
        return self.met(self.vocabulary.known(documents))

    def met(self, documents: Documents) -> Documents:
        """Return documents over columns without the tokens that no message is counted for.

        There are such columns where messages were un-learned since the table was written.
        """
        is_met = self.document_frequency[documents.tokens] > 0
        return documents.on(np.where(is_met, documents.tokens, -1))

    def take(self, columns: Integers) -> "CountTable":
        """Return the table of these columns (ascending) alone."""
        return CountTable(
            self.classes,
            self.class_count,
            self.vocabulary.take(columns),
            self.feature_count[columns],
            self.document_frequency[columns],
        )


def compact(numbers: Any) -> Any:
    """Return numbers in 32 bits where that loses nothing."""
    for kind in (np.uint32, np.float32):
        small = numbers.astype(kind)
        if np.array_equal(small, numbers):
            return small
    return numbers


def entry_weights(documents: Documents, groups: Octets, weighting: str) -> Floats:
    """Return the weights of all entries of documents, shape (nnz,).

    groups: (n_tokens,) kind of each token.  Lengths are of the entries given; drop unknown
    tokens first.  tf-idf is unit length here: the factor for a token's rarity is known, and
    applied, once everything is counted.
    """
    if weighting == PRESENCE:
        return np.ones(len(documents.columns))
    weights = documents.times().astype(np.float64)
    if weighting == COUNTS:
        return weights
    cell = documents.rows().astype(np.int64)
    if weighting == LOG_LENGTH:
        weights = np.rint((1 + np.log(weights)) / _LOG_GRAIN) * _LOG_GRAIN
        cell = cell * len(GROUPS) + gather(groups, documents.columns)
    length = np.sqrt(np.bincount(cell, weights**2))
    return rounded(weights / length[cell], weighting)


class Counts(NamedTuple):
    """The numbers of a count table, for tokens in any order."""

    class_count: Floats  # (n_classes,)
    feature_count: Floats  # (n_tokens, n_classes)
    document_frequency: Integers  # (n_tokens,)


def counts_of(
    documents: Documents, y: Integers, n_classes: int, groups: Octets, weighting: str
) -> Counts:
    """Return the counts of documents.

    y: (n_docs,) index of their classes; groups: (n_tokens,) kind of each token.
    """
    n_tokens = len(documents.tokens)
    frequency = np.bincount(documents.columns, minlength=n_tokens)
    if weighting == PRESENCE and n_classes == 1:  # most batches of a folder are of one class
        total = frequency[:, None].astype(np.float64)
    else:
        cell = documents.columns.astype(np.int64)
        cell *= n_classes
        cell += y.take(documents.rows())
        weights = None if weighting == PRESENCE else entry_weights(documents, groups, weighting)
        total = np.bincount(cell, weights, n_tokens * n_classes).astype(np.float64)
        total = total.reshape(n_tokens, n_classes)
    class_count = np.bincount(y, minlength=n_classes).astype(np.float64)
    return Counts(class_count, total, frequency)


def rounded(weights: Floats, weighting: str) -> Floats:
    """Return weights as multiples of the weighting's grain."""
    return np.asarray(np.rint(weights / GRAIN[weighting]) * GRAIN[weighting])


def add_tables(parts: Sequence[CountTable]) -> CountTable:
    """Return the sum of count tables, whose tokens may stand in any order."""
    classes = tuple(sorted({name for part in parts for name in part.classes}))
    vocabulary, column = join([part.vocabulary for part in parts])
    class_count = np.zeros(len(classes))
    feature_count = np.zeros((len(vocabulary), len(classes)))
    for k, name in enumerate(classes):
        own = [_of_class(part, name) for part in parts]
        class_count[k] = sum(n_docs for n_docs, _ in own)
        feature_count[:, k] = _summed(column, [counts for _, counts in own], len(vocabulary))
    frequency = _summed(column, [part.document_frequency for part in parts], len(vocabulary))
    return CountTable(classes, class_count, vocabulary, feature_count, frequency.astype(np.int64))


def _of_class(table: CountTable, name: str) -> tuple[float, Floats]:
    """Return documents and tokens' counts of a class, (n_features,); none if it is unknown."""
    if name not in table.classes:
        return 0.0, np.zeros(len(table.vocabulary))
    k = table.classes.index(name)
    return float(table.class_count[k]), table.feature_count[:, k]


def _summed(column: Integers, numbers: Sequence[Floats | Integers], n_features: int) -> Floats:
    """Return the sums of numbers in each column, (n_features,), exact as all have one grain."""
    together = np.concatenate([np.empty(0), *numbers])
    return np.asarray(np.bincount(column, together, n_features), np.float64)


def subtract_table(total: CountTable, part: CountTable) -> CountTable:
    """Return the total without a part of it that has the same classes and vocabulary."""
    return CountTable(
        total.classes,
        total.class_count - part.class_count,
        total.vocabulary,
        total.feature_count - part.feature_count,
        total.document_frequency - part.document_frequency,
    )


def shifted(table: CountTable, part: CountTable, sign: int) -> CountTable:
    """Return the table with counts of its classes and tokens put in (1) or out (-1)."""
    column = table.vocabulary.columns(part.vocabulary.keys)
    of_class = np.array([table.classes.index(name) for name in part.classes], np.int64)
    class_count = table.class_count.copy()
    class_count[of_class] += sign * part.class_count
    feature_count = table.feature_count.copy()
    feature_count[np.ix_(column, of_class)] += sign * part.feature_count
    frequency = table.document_frequency.copy()
    frequency[column] += sign * part.document_frequency
    return CountTable(
        table.classes, class_count, table.vocabulary, np.maximum(feature_count, 0), frequency
    )


def without_empty(table: CountTable) -> CountTable:
    """Return the table without the tokens and classes that no document is left of."""
    kept = np.flatnonzero(table.document_frequency > 0)
    if len(kept) < len(table.vocabulary):
        table = table.take(kept)
    classes = np.flatnonzero(table.class_count)
    if len(classes) == len(table.classes):
        return table
    return CountTable(
        tuple(table.classes[k] for k in classes.tolist()),
        table.class_count[classes],
        table.vocabulary,
        np.ascontiguousarray(table.feature_count[:, classes]),  # one layout, one file
        table.document_frequency,
    )


class TableSum:
    """The sum of tables that come one by one, of which it holds few at a time."""

    def __init__(self) -> None:
        self._levels: list[list[CountTable]] = [[]]

    def add(self, table: CountTable) -> None:
        """Add a table."""
        levels = self._levels
        levels[0].append(table)
        for level, parts in enumerate(levels):
            if len(parts) < _FAN_IN:
                break
            if level + 1 == len(levels):
                levels.append([])
            levels[level + 1].append(add_tables(parts))
            parts.clear()

    def total(self) -> CountTable:
        """Return the sum of all tables so far."""
        # Higher levels hold what came earlier.
        return add_tables([table for parts in reversed(self._levels) for table in parts])


def prune(table: CountTable, min_df: int = 1, max_features: int | None = None) -> CountTable:
    """Return the table without rare tokens, and with the most informative only.

    min_df: documents a token must stand in.  max_features: how many to keep, those with
    the highest mutual information of presence and class.
    """
    keep = np.flatnonzero(table.document_frequency >= min_df)
    if max_features is not None and len(keep) > max_features:
        information = mutual_information(table)[keep]
        # Ties are broken by key, so that the choice is the same everywhere.
        best = np.argsort(-information, kind="stable")[:max_features]
        keep = np.sort(keep[best])
    return table if len(keep) == len(table.vocabulary) else table.take(keep)


def inverse_document_frequency(document_frequency: Integers, n_docs: float) -> Floats:
    """Return log(documents / documents with the token), shape (n_features,), 0 or more."""
    ratio = n_docs / np.maximum(document_frequency, 1)
    return np.asarray(np.log(np.maximum(ratio, 1.0)))


def mutual_information(table: CountTable) -> Floats:
    """Return I(token present; class) in nats, shape (n_features,).

    Manning, Raghavan & Schütze (2008), eq. 13.17, with probabilities as counts over
    documents.  Only for tables of presence are these counts of documents exactly;
    other weights are scaled to the token's document frequency.
    """
    n = table.class_count.sum()
    frequency = table.document_frequency[:, None].astype(np.float64)
    weight = table.feature_count.sum(axis=1, keepdims=True)
    present = table.feature_count * np.divide(frequency, weight, where=weight > 0, out=weight * 0)
    absent = np.maximum(table.class_count - present, 0.0)
    total = np.zeros(len(frequency))
    for joint, marginal in ((present, frequency), (absent, n - frequency)):
        expected = marginal * table.class_count / n
        ratio = np.divide(joint, expected, where=(joint > 0) & (expected > 0), out=joint * 0 + 1)
        total += (joint / n * np.log(ratio)).sum(axis=1)
    return np.maximum(total, 0.0)
