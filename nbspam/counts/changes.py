"""Changes to counts: what a journal holds, as a table that is added to a model's.

A change adds a message to one class, takes it from another, or both, so the table's
numbers have signs.  Readers lay it over a model's counts, which costs no sort and keeps
all columns; a writer who makes a new model file adds the two.

Secret: how counts and vocabulary take in what is not in the model's file.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Indices, Integers, Keys, Octets, Strings
from nbspam.counts.sample import Sample
from nbspam.counts.table import CountTable, add_tables, entry_weights, without_empty
from nbspam.tokens.tokenizer import gather_slices
from nbspam.tokens.vocabulary import Vocabulary, with_added


class Change(NamedTuple):
    """One message that moved from a class to a class, or from or to none."""

    digest: int
    before: str | None  # the class it was learned as until then
    after: str | None  # and is from then on
    day: int  # since 1970-01-01
    keys: Keys  # (n_keys,) of its tokens, those new to the model's file last
    counts: Indices  # (n_keys,) how often it has them
    groups: Octets  # (n_new,) of the new tokens
    lengths: Indices  # (n_new,) of their texts, bytes
    blob: Octets  # their texts in UTF-8, one behind the other


def signed_table(changes: Sequence[Change], known: Vocabulary, weighting: str) -> CountTable:
    """Return the sum of changes; its numbers may be negative.

    known: has the tokens that changes do not spell out.
    """
    names = {name for c in changes for name in (c.before, c.after)}
    classes = tuple(sorted(name for name in names if name is not None))
    keys, column = np.unique(np.concatenate([c.keys for c in changes]), return_inverse=True)
    documents = np.repeat(np.arange(len(changes)), [len(c.keys) for c in changes])
    counts = np.concatenate([c.counts for c in changes]).astype(np.int64)
    vocabulary = _vocabulary(changes, keys, known)
    weights = entry_weights(counts, documents, vocabulary.groups[column], weighting)
    class_count = np.zeros(len(classes))
    feature_count = np.zeros((len(keys), len(classes)))
    frequency = np.zeros(len(keys))
    index: dict[str | None, int] = {None: -1}
    index.update((name, k) for k, name in enumerate(classes))
    for sign, label in (
        (-1, np.array([index[c.before] for c in changes])),
        (1, np.array([index[c.after] for c in changes])),
    ):
        class_count += sign * np.bincount(label[label >= 0], minlength=len(classes))
        for k in range(len(classes)):
            of = label[documents] == k
            feature_count[:, k] += sign * np.bincount(column[of], weights[of], len(keys))
            frequency += sign * np.bincount(column[of], minlength=len(keys))
    return CountTable(classes, class_count, vocabulary, feature_count, frequency.astype(np.int64))


def _vocabulary(changes: Sequence[Change], keys: Keys, known: Vocabulary) -> Vocabulary:
    """Return these keys with the texts that the changes bring; of known tokens, with none."""
    at = known.columns(keys)
    groups = np.zeros(len(keys), np.uint8)
    groups[at >= 0] = known.groups[at[at >= 0]]
    new_keys = np.concatenate([c.keys[len(c.keys) - len(c.groups) :] for c in changes])
    lengths = np.concatenate([c.lengths for c in changes]).astype(np.int64)
    blob = np.concatenate([c.blob for c in changes])
    starts = np.cumsum(lengths) - lengths
    found, first = np.unique(new_keys, return_index=True)
    place = np.searchsorted(keys, found)
    length = np.zeros(len(keys), np.int64)
    length[place] = lengths[first]
    start = np.zeros(len(keys), np.int64)
    start[place] = starts[first]
    groups[place] = np.concatenate([c.groups for c in changes])[first]
    offsets = np.append(0, np.cumsum(length, dtype=np.int64))
    return Vocabulary(keys, gather_slices(blob, start, length), offsets, groups)


def added(table: CountTable, change: CountTable) -> CountTable:
    """Return the table of a new model: the sum, without what no message is left of."""
    total = add_tables([table, change])
    return without_empty(
        CountTable(
            total.classes,
            _not_negative(total.class_count),
            total.vocabulary,
            _not_negative(total.feature_count),
            total.document_frequency,
        )
    )


def overlaid(table: CountTable, change: CountTable) -> CountTable:
    """Return the same counts with every column of the table where it was.

    Tokens that are new stand behind the others, tokens that no message is left of stay.
    """
    index = {name: k for k, name in enumerate(table.classes)}
    class_count = np.array(table.class_count, np.float64)
    for name, n in zip(change.classes, change.class_count.tolist(), strict=True):
        if name in index:
            class_count[index[name]] += n
    if not (set(change.classes) <= index.keys() and (class_count > 0).all()):
        return added(table, change)
    column = table.vocabulary.columns(change.vocabulary.keys)
    new = np.flatnonzero((column < 0) & (change.document_frequency > 0))
    known = np.flatnonzero(column >= 0)
    by_class = np.zeros((len(column), len(index)))
    by_class[:, [index[name] for name in change.classes]] = change.feature_count
    feature_count = _with_rows(table.feature_count, by_class, column, known, new)
    frequency = _with_rows(table.document_frequency, change.document_frequency, column, known, new)
    vocabulary = with_added(table.vocabulary, change.vocabulary.take(new))
    return CountTable(table.classes, class_count, vocabulary, feature_count, frequency)


def _with_rows(
    rows: Any, change: Floats | Integers, column: Integers, known: Integers, new: Integers
) -> Any:
    """Return rows (n_features, …) with changes of known ones added and new ones behind."""
    is_whole = rows.dtype.kind in "iu" and np.array_equal(change, np.rint(change))
    kind = rows.dtype if is_whole else np.dtype(np.float64)
    total = np.concatenate([rows.astype(kind, copy=False), change[new].astype(kind)])
    at = column[known]
    total[at] = _not_negative(rows[at].astype(np.float64) + change[known])
    return total


def _not_negative(counts: Floats) -> Floats:
    """Return counts, 0 at least: of a token that was pruned, a model has forgotten some."""
    return np.maximum(counts, 0)


def sample_of_changes(changes: Sequence[Change]) -> Sample:
    """Return the messages of changes, which must be different ones that were learned."""
    keys, column = np.unique(_all([c.keys for c in changes], np.uint64), return_inverse=True)
    lengths = np.array([len(c.keys) for c in changes], np.int64)
    # What a model did not know stands behind what it did; a sample's columns ascend.
    order = np.lexsort((column, np.repeat(np.arange(len(changes)), lengths)))
    labels: Strings = np.array([c.after for c in changes], np.str_)
    digests = np.array([c.digest for c in changes], np.uint64)
    counts = _all([c.counts for c in changes], np.int32)
    offsets = np.append(0, np.cumsum(lengths))
    return Sample(labels, digests, keys, offsets, column[order], counts[order])


def _all(arrays: Sequence[Any], kind: Any) -> Any:
    return np.concatenate([np.empty(0, kind), *arrays]).astype(kind)
