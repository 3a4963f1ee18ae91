"""A sample of the training messages, kept to learn how evidence combines.

Counting forgets messages; leaving one out needs it again.  So that training never holds
more than so many, whatever it reads, messages are kept by their digests: the same ones
in whatever order and by however many processes they are read.  A model stores them, so
that what it learns later is combined as if it had been learned at once.

Secret: which messages are kept, and how.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbspam.arrays import Booleans, Columns, Indices, Integers32, Keys, Strings
from nbspam.combining import Entries
from nbspam.counts import CountTable, entry_weights
from nbspam.tokenizer import TokenBatch
from nbspam.vocabulary import Vocabulary

MAX_SAMPLE = 8_000  # messages
# One sort of plain integers orders entries by message and column and carries the count.
_COUNT_BITS, _COLUMN_BITS = 19, 32
_MAX_COUNT = (1 << _COUNT_BITS) - 1


@dataclass(frozen=True, slots=True)
class Sample:
    """Some messages over columns of their own."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    keys: Keys  # (n_keys,)
    documents: Integers32  # (nnz,)
    columns: Integers32  # (nnz,) index into keys
    counts: Integers32  # (nnz,) how often

    def take(self, chosen: Booleans) -> "Sample":
        """Return some of the messages; chosen: (n_docs,)."""
        if chosen.all():
            return self
        entry = chosen[self.documents]
        columns, place = np.unique(self.columns[entry], return_inverse=True)
        return Sample(
            self.labels[chosen],
            self.digests[chosen],
            self.keys[columns],
            (np.cumsum(chosen) - 1)[self.documents[entry]].astype(np.int32),
            place.astype(np.int32),
            self.counts[entry],
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A sample as a model stores it: messages by digest, tokens by the model's column."""

    bits: int  # zero bits that end the digest of every message in it
    digests: Keys  # (n_docs,) ascending
    offsets: Columns  # (n_docs + 1,)
    columns: Columns  # (nnz,) ascending within a message
    counts: Indices | None  # (nnz,) how often; None where only presence is counted

    @property
    def documents(self) -> Integers32:
        """The message of every entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.digests), dtype=np.int32), np.diff(self.offsets))


def sample_batch(batch: TokenBatch, labels: Sequence[str], digests: Sequence[int]) -> Sample:
    """Return all messages of a batch."""
    return Sample(
        np.array(labels, np.str_),
        np.array(digests, np.uint64),
        batch.keys,
        batch.documents.astype(np.int32),
        batch.columns.astype(np.int32),
        batch.counts.astype(np.int32),
    )


def thin(
    samples: Iterable[Sample], bits: int = 0, limit: int = MAX_SAMPLE
) -> tuple[list[Sample], int]:
    """Return the samples with at most `limit` messages among them, and the bits it took.

    Those are kept whose digest ends in enough zero bits, for one number of bits from
    `bits` up.
    """
    kept: list[Sample] = []
    for sample in samples:
        kept.append(_with_zero_bits(sample, bits))
        while sum(len(part.labels) for part in kept) > limit:
            bits += 1
            kept = [_with_zero_bits(part, bits) for part in kept]
    return kept, bits


def _with_zero_bits(sample: Sample, bits: int) -> Sample:
    return sample.take((sample.digests & np.uint64((1 << bits) - 1)) == 0)


def keep(samples: Sequence[Sample], bits: int, vocabulary: Vocabulary, with_counts: bool) -> Kept:
    """Return what a model stores of these samples; tokens it does not know are left out."""
    digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in samples)])
    order = np.argsort(digests)
    rank = np.empty(len(order), np.uint64)
    rank[order] = np.arange(len(order), dtype=np.uint64)
    cells, start = [np.empty(0, np.uint64)], 0
    for part in samples:
        column = vocabulary.columns(part.keys)[part.columns]
        known = column >= 0
        document = rank[start : start + len(part.labels)][part.documents[known]]
        cell = document << np.uint64(_COLUMN_BITS) | column[known].astype(np.uint64)
        count = np.minimum(part.counts[known], _MAX_COUNT).astype(np.uint64)
        cells.append(cell << np.uint64(_COUNT_BITS) | count)
        start += len(part.labels)
    cell = np.concatenate(cells)
    cell.sort()
    documents = (cell >> np.uint64(_COUNT_BITS + _COLUMN_BITS)).astype(np.int64)
    offsets = np.zeros(len(digests) + 1, np.uint32)
    np.cumsum(np.bincount(documents, minlength=len(digests)), out=offsets[1:])
    counts = (cell & np.uint64(_MAX_COUNT)).astype(np.uint32) if with_counts else None
    columns = (cell >> np.uint64(_COUNT_BITS)).astype(np.uint32)  # the high bits fall off
    return Kept(bits, digests[order], offsets, columns, counts)


def sample_of(kept: Kept, labels: Strings, vocabulary: Vocabulary) -> Sample:
    """Return what a model stores as a sample again; labels: (n_docs,)."""
    counts = np.ones(len(kept.columns), np.int32)
    if kept.counts is not None:
        counts = kept.counts.astype(np.int32)
    columns = kept.columns.astype(np.int32)
    return Sample(labels, kept.digests, vocabulary.keys, kept.documents, columns, counts)


def entries_of(kept: Kept, vocabulary: Vocabulary) -> Entries:
    """Return the entries of a model's sample."""
    columns = kept.columns.astype(np.int32)
    counts = np.ones(len(columns), np.uint8) if kept.counts is None else kept.counts
    groups = vocabulary.groups[columns]
    return Entries(len(kept.digests), kept.documents, columns, groups, counts)


def relabelled(sample: Sample, label_of: Mapping[int, str]) -> Sample:
    """Return a sample with the classes that its messages have by now."""
    return replace(
        sample, labels=np.array([label_of[d] for d in sample.digests.tolist()], np.str_)
    )


def shifted(table: CountTable, sample: Sample, weighting: str, sign: int) -> CountTable:
    """Return the table with messages of its classes and tokens put in (1) or out (-1)."""
    class_of = np.searchsorted(np.array(table.classes, np.str_), sample.labels)
    column = table.vocabulary.columns(sample.keys)[sample.columns]
    groups = table.vocabulary.groups[column]
    weights = entry_weights(sample.counts, sample.documents, groups, weighting)
    feature_count = table.feature_count.copy()
    np.add.at(feature_count, (column, class_of[sample.documents]), sign * weights)
    n_classes, n_features = feature_count.shape[1], len(feature_count)
    return replace(
        table,
        class_count=table.class_count + sign * np.bincount(class_of, minlength=n_classes),
        feature_count=np.maximum(feature_count, 0),
        document_frequency=table.document_frequency
        + sign * np.bincount(column, minlength=n_features),
    )
