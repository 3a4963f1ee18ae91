"""Count tables: how often each token was seen in each class.

A count table is all that training learns of tokens.  Tables can be added and subtracted: the
tables of batches, processes, machines or days have the same sum, to the bit, in any order.
A table with a limit forgets its rarest tokens, and knows by how much its counts may be too small.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Floats, Integers, Octets, together
from nbspam.errors import NotTrainedError, check_number
from nbspam.settings import COUNTS, LOG_LENGTH, PRESENCE, TF_IDF, UNIT_LENGTH
from nbspam.tokens.definition import GROUPS, IS_STRUCTURE
from nbspam.tokens.sparse import Documents, Vocabulary, empty_vocabulary, join, take_in_slices
from nbspam.tokens.tokenizer import are_structure
from nbspam.verdicts import Evidence

# Weights are multiples of the grain, so that sums have no rounding error: they do not depend on
# the order of addition, and a part can be subtracted again.  Sums of unit-length weights are
# exact up to 2**23, in 64 bits.  Sums of log-length weights are exact up to 2**12 even in 32 bits
# (a float32 has 24 significant bits), which halves the size of a model of many classes.
GRAIN = {
    PRESENCE: 1.0,
    COUNTS: 1.0,
    UNIT_LENGTH: 2.0**-30,
    LOG_LENGTH: 2.0**-12,
    TF_IDF: 2.0**-30,
}
_LOG_GRAIN = 2.0**-16  # grain of logarithms, so that sums of their squares are exact as well
# A `TableSum` adds this many tables at once.  Its sums form a tree, so a row is sorted once for
# each level of the tree, not once for each table that is added.
_FAN_IN = 8


class CountTable(NamedTuple):
    """How often each token was seen in each class: the sufficient statistics of naive Bayes."""

    classes: tuple[str, ...]  # sorted
    class_count: Floats  # (n_classes,) documents
    vocabulary: Vocabulary
    feature_count: Floats  # (n_features, n_classes) sums of weights
    document_frequency: Integers  # (n_features,)
    loss: "Loss | None" = None  # the forgotten counts; None: all counts are exact

    @property
    def n_docs(self) -> int:
        """The number of documents that were counted."""
        return int(self.class_count.sum())

    def in_columns(self, documents: Documents) -> Documents:
        """Return documents over keys as documents over columns; drops tokens without counts."""
        documents = documents._replace(
            structure=documents.lengths(are_structure(documents.tokens))
        )
        return self.without_unlearned(self.vocabulary.in_columns(documents))

    def without_unlearned(self, documents: Documents) -> Documents:
        """Return documents over columns; drops tokens whose document frequency is 0.

        The frequency of a token becomes 0 when all messages that had it have been un-learned.
        """
        if documents.structure is None:
            groups = self.vocabulary.groups.take(documents.tokens)
            documents = documents._replace(structure=documents.lengths(IS_STRUCTURE.take(groups)))
        is_counted = self.document_frequency.take(documents.tokens) > 0
        if is_counted.all():
            return documents
        return documents.renumbered(np.where(is_counted, documents.tokens, -1))

    def of_class(self, name: str) -> tuple[float, Floats]:
        """Return a class's number of documents and its counts (n_features,); 0 if unknown."""
        if name not in self.classes:
            return 0.0, np.zeros(len(self.vocabulary))
        k = self.classes.index(name)
        return float(self.class_count[k]), self.feature_count[:, k]

    def evidence(self, column: int, share: float) -> Evidence:
        """Return one token as evidence; share: its share of a verdict's log-odds, nats."""
        group = GROUPS[self.vocabulary.groups[column]]
        counts = tuple(self.feature_count[column].tolist())
        return Evidence(self.vocabulary.text(column), share, group, counts)

    def take(self, columns: Integers) -> "CountTable":
        """Return the table of these columns (ascending) only; the others have no counts."""
        return self._replace(
            vocabulary=self.vocabulary.take(columns),
            feature_count=self.feature_count[columns],
            document_frequency=self.document_frequency[columns],
            loss=None if self.loss is None else self.loss.take(columns),
        )

    def forgetting(self, kept: Integers) -> "CountTable":
        """Return the table of these columns (ascending), with a bound on the others."""
        loss = loss_without(self.loss, self.document_frequency, kept)
        return self.take(kept)._replace(loss=loss)


def table_to_state(table: CountTable) -> dict[str, Any]:
    """Return a table as plain values for a file."""
    words, loss = table.vocabulary.packed(), table.loss
    return {
        "classes": list(table.classes),
        "class_count": table.class_count,
        "keys": words.keys,
        "text": words.blob,
        "text_offsets": compact(words.offsets),
        "group": words.groups,
        "feature_count": compact(table.feature_count),
        "document_frequency": compact(table.document_frequency),
        **({} if loss is None else {"lacks": compact(loss.of_each), "others_had": loss.of_others}),
    }


def table_from_state(state: Mapping[str, Any]) -> CountTable:
    """Return the table that `table_to_state` described; raises KeyError or TypeError."""
    return CountTable(
        tuple(state["classes"]),
        state["class_count"],
        Vocabulary(state["keys"], state["text"], state["text_offsets"], state["group"]),
        state["feature_count"],
        state["document_frequency"],
        Loss(state["lacks"], state["others_had"]) if "lacks" in state else None,
    )


def compact(numbers: Any) -> Any:
    """Return numbers in 32 bits if that is exact, else unchanged."""
    for kind in (np.uint32, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):  # too large for this type
            small = numbers.astype(kind)
        if np.array_equal(small, numbers):
            return small
    return numbers


def entry_weights(documents: Documents, groups: Octets, weighting: str) -> Floats:
    """Return the weights of all entries of documents, shape (nnz,).

    groups: (n_tokens,) group of each token.  All tokens of a document add to the length by which
    its weights are divided, so drop unknown tokens first.  tf-idf weights have unit length here;
    they are multiplied by the inverse document frequency later, when everything is counted.
    """
    if weighting == PRESENCE:
        return np.ones(len(documents.columns))
    weights = documents.times().astype(np.float64)
    if weighting == COUNTS:
        return weights
    cell = documents.rows().astype(np.int64)
    if weighting == LOG_LENGTH:
        weights = np.rint((1 + np.log(weights)) / _LOG_GRAIN) * _LOG_GRAIN
        cell = cell * len(GROUPS) + take_in_slices(groups, documents.columns)
    length = np.sqrt(np.bincount(cell, weights**2))
    return rounded(weights / length[cell], weighting)


class Counts(NamedTuple):
    """The numbers of a count table, for tokens in any order."""

    class_count: Floats  # (n_classes,)
    feature_count: Floats  # (n_tokens, n_classes)
    document_frequency: Integers  # (n_tokens,)


def token_counts_of(
    documents: Documents, y: Integers, n_classes: int, groups: Octets, weighting: str
) -> Counts:
    """Return the counts of documents.

    y: (n_docs,) class of each document; groups: (n_tokens,) group of each token.
    """
    n_tokens = len(documents.tokens)
    frequency = np.bincount(documents.columns, minlength=n_tokens)
    if weighting == PRESENCE and n_classes == 1:  # true of most batches: a folder is one class
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


def counted(
    classes: tuple[str, ...],
    vocabulary: Vocabulary,
    documents: Documents,
    y: Integers,
    weighting: str,
) -> CountTable:
    """Return the table of documents over the columns of a vocabulary; y: (n_docs,) classes."""
    counts = token_counts_of(documents, y, len(classes), vocabulary.groups, weighting)
    return CountTable(
        classes, counts.class_count, vocabulary, counts.feature_count, counts.document_frequency
    )


def rounded(weights: Floats, weighting: str) -> Floats:
    """Return weights rounded to multiples of the weighting's grain."""
    return np.asarray(np.rint(weights / GRAIN[weighting]) * GRAIN[weighting])


def add_tables(parts: Sequence[CountTable]) -> CountTable:
    """Return the sum of count tables, whose tokens may be in any order."""
    return sum_over(parts, *join([part.vocabulary for part in parts]))


def sum_over(parts: Sequence[CountTable], vocabulary: Vocabulary, column: Integers) -> CountTable:
    """Return the sum of count tables over the union of their vocabularies, from `join`."""
    classes = tuple(sorted({name for part in parts for name in part.classes}))
    class_count = np.zeros(len(classes))
    feature_count = np.zeros((len(vocabulary), len(classes)))
    for k, name in enumerate(classes):
        own = [part.of_class(name) for part in parts]
        class_count[k] = sum(n_docs for n_docs, _ in own)
        feature_count[:, k] = _summed(column, [counts for _, counts in own], len(vocabulary))
    frequency = _summed(column, [part.document_frequency for part in parts], len(vocabulary))
    loss = loss_of_sum([(len(p.vocabulary), p.loss) for p in parts], column, len(vocabulary))
    return CountTable(
        classes, class_count, vocabulary, feature_count, frequency.astype(np.int64), loss
    )


def _summed(column: Integers, numbers: Sequence[Floats | Integers], n_features: int) -> Floats:
    """Return the sum of numbers by column, (n_features,); exact, as all have the same grain."""
    weights = together(numbers, np.float64)
    return np.asarray(np.bincount(column, weights, n_features), np.float64)


def possible_counts(total: CountTable, weighting: str) -> CountTable:
    """Return a sum of changes with counts that messages can have.

    None is below 0 and, of presence, none is above the number of messages of its class.
    """
    class_count = np.maximum(total.class_count, 0)
    most = class_count if weighting == PRESENCE else None
    counts = np.clip(total.feature_count, 0, most)
    return total._replace(class_count=class_count, feature_count=counts)


def negative(table: CountTable) -> CountTable:
    """Return the table that takes away what this one adds."""
    return CountTable(
        table.classes,
        -table.class_count,
        table.vocabulary,
        -table.feature_count,
        -table.document_frequency,
    )


def without_empty(table: CountTable) -> CountTable:
    """Return the table without the tokens and classes that have no documents left."""
    kept = np.flatnonzero(table.document_frequency > 0)
    if len(kept) < len(table.vocabulary):
        table = table.take(kept)
    classes = np.flatnonzero(table.class_count)
    if len(classes) == len(table.classes):
        return table
    return table._replace(
        classes=tuple(table.classes[k] for k in classes.tolist()),
        class_count=table.class_count[classes],
        # Equal tables must have the same memory layout, because model files store it.
        feature_count=np.ascontiguousarray(table.feature_count[:, classes]),
    )


def no_counts(classes: tuple[str, ...]) -> CountTable:
    """Return the table of no documents of some classes, which are sorted."""
    rows, none = np.zeros((0, len(classes))), np.zeros(0, np.int64)
    return CountTable(classes, rows.sum(axis=0), empty_vocabulary(), rows, none)


class TableSum:
    """The sum of tables that arrive one by one; holds only a few of them at a time.

    max_tokens: the sum has at most so many tokens, the most frequent ones, and says in its loss
    what was forgotten (None: no limit).  Up to twice as many are held, since the rarest are known
    only when tables are added up.
    """

    def __init__(self, max_tokens: int | None = None) -> None:
        if max_tokens is not None:
            check_number("max_tokens", max_tokens, 1, whole=True)
        self._levels: list[list[CountTable]] = [[]]
        self._max_tokens = max_tokens

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
        held = sum(len(each.vocabulary) for parts in levels for each in parts)
        if self._max_tokens is not None and held > 2 * self._max_tokens:
            total = self.total()
            packed = total._replace(vocabulary=total.vocabulary.packed())
            self._levels = [*([] for _ in levels[1:]), [packed]]

    def total(self) -> CountTable:
        """Return the sum of all tables so far."""
        # Higher levels hold earlier tables.
        total = add_tables([table for parts in reversed(self._levels) for table in parts])
        if self._max_tokens is None or len(total.vocabulary) <= self._max_tokens:
            return total
        return total.forgetting(most_frequent(total.document_frequency, self._max_tokens))


def pruned_table(
    table: CountTable, min_df: int = 1, max_features: int | None = None
) -> CountTable:
    """Return the table without rare tokens, limited to the most informative ones.

    min_df: the least document frequency.  max_features: the number of tokens to keep, those
    with the most mutual information with the class.  Raises NotTrainedError if none is left.
    """
    keep = worth_keeping(table, min_df, max_features)
    if not len(keep):
        raise NotTrainedError("train: no token is in enough messages; lower --min-df or give text")
    return table if len(keep) == len(table.vocabulary) else table.forgetting(keep)


def worth_keeping(table: CountTable, min_df: int, max_features: int | None) -> Integers:
    """Return the columns, ascending, of the tokens that `pruned_table` keeps."""
    keep = np.flatnonzero(table.document_frequency >= min_df)
    if max_features is not None and len(keep) > max_features:
        information = mutual_information(table)[keep]
        # Ties are broken by key, so that the choice is the same everywhere.
        best = np.argsort(-information, kind="stable")[:max_features]
        keep = np.sort(keep[best])
    return keep


def inverse_document_frequency(document_frequency: Integers, n_docs: float) -> Floats:
    """Return log(n_docs / document frequency), at least 0, shape (n_features,)."""
    ratio = n_docs / np.maximum(document_frequency, 1)
    return np.asarray(np.log(np.maximum(ratio, 1.0)))


def mutual_information(table: CountTable) -> Floats:
    """Return I(token present; class) in nats, shape (n_features,).

    Manning, Raghavan & Schütze (2008), eq. 13.17, with probabilities estimated by shares of
    documents.  Only presence tables count documents exactly; other weights are scaled to the
    token's document frequency.
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


# --- loss ------------------------------------------------------------------------------------

# A token that was forgotten can come again, and is then counted from there on.  The number of
# messages that it had before is lost, but is bounded: when tokens are forgotten, the largest
# number of messages that any of them can have been in is noted, and every token that comes later
# may lack so many.  Tokens that were there all the time lack none.  This is lossy counting (Manku
# & Motwani 2002) with a limit on memory instead of one on the error, and it adds up as counts
# do.


class Loss(NamedTuple):
    """By how many messages the counts of tokens may be too small; they are never too large."""

    of_each: Integers  # (n_features,)
    of_others: int  # messages that a token which the table does not have may have been in

    @property
    def n_exact(self) -> int:
        """The number of tokens that were never forgotten, so that their counts are exact."""
        return int((self.of_each == 0).sum())

    def take(self, columns: Integers) -> "Loss":
        """Return the loss of these columns only."""
        return self._replace(of_each=self.of_each.take(columns))

    def appended(self, n_more: int) -> "Loss":
        """Return the loss of a table with more tokens, which it did not have until now."""
        more = np.full(n_more, self.of_others, self.of_each.dtype)
        return self._replace(of_each=np.append(self.of_each, more))

    def faded(self, factor: float) -> "Loss":
        """Return the loss after all counts were multiplied by a factor."""
        of_each = np.ceil(self.of_each * factor).astype(np.int64)
        return Loss(of_each, int(np.ceil(self.of_others * factor)))


def loss_of_sum(parts: Sequence[tuple[int, Loss | None]], column: Integers, n: int) -> Loss | None:
    """Return the loss of a sum of tables; None if none of them has lost anything.

    parts: the number of tokens of each table, and its loss.  column: the columns that all their
    tokens in turn have in the sum, which has n columns.
    """
    if all(loss is None for _, loss in parts):
        return None
    of_others = sum(loss.of_others for _, loss in parts if loss is not None)
    of_each = np.full(n, of_others, np.int64)
    end = 0
    for n_tokens, loss in parts:
        own, end = column[end : end + n_tokens], end + n_tokens
        if loss is not None:
            of_each[own] += loss.of_each.astype(np.int64) - loss.of_others
    return Loss(of_each, of_others)


def loss_without(loss: Loss | None, frequency: Integers, kept: Integers) -> Loss | None:
    """Return the loss of a table that forgets all but some columns.

    loss: that of the table before.  frequency: (n_features,) messages of each of its tokens.
    kept: the columns that stay, ascending.
    """
    before = Loss(np.zeros(len(frequency), np.int64), 0) if loss is None else loss
    is_gone: Booleans = np.ones(len(frequency), np.bool_)
    is_gone[kept] = False
    most = (frequency[is_gone].astype(np.int64) + before.of_each[is_gone]).max(initial=0)
    if loss is None and not most:
        return None
    return Loss(before.of_each.take(kept), max(before.of_others, int(most)))


def most_frequent(frequency: Integers, n: int, last_seen: Days | None = None) -> Integers:
    """Return the columns of the n tokens in most messages, ascending.

    frequency: (n_features,), more than n, in the order of the tokens' keys.  Of equally frequent
    tokens those stay that were seen last (last_seen: (n_features,) days), and then those with the
    largest keys: everywhere the same, so that what one table keeps another one has kept too.
    """
    edge = np.partition(frequency, len(frequency) - n)[len(frequency) - n]
    stays: Booleans = frequency > edge
    is_tied: Booleans = frequency == edge
    missing = n - int(np.count_nonzero(stays))
    if last_seen is not None:
        # How many were seen on each day or later: a sort would need memory for all ties.
        until_now = np.cumsum(np.bincount(last_seen[is_tied])[::-1])[::-1]
        day = int(np.flatnonzero(until_now >= missing)[-1])
        later = is_tied & (last_seen > day)
        missing -= int(np.count_nonzero(later))
        stays |= later
        is_tied &= last_seen == day
    stays[np.flatnonzero(is_tied)[np.count_nonzero(is_tied) - missing :]] = True
    return np.flatnonzero(stays)
