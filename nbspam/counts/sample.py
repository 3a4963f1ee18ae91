"""A sample of the training messages, kept to learn how evidence combines.

Counting forgets messages; leaving one out needs it again.  So that training never holds
more than so many, whatever it reads, messages are kept by their digests: the same ones
in whatever order and by however many processes they are read.  A model stores them, so
that what it learns later is combined as if it had been learned at once.

Secret: which messages are kept, and how.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Columns, Indices, Integers, Integers32, Keys, Octets, Strings
from nbspam.classifier.combining import Rows
from nbspam.counts.table import CountTable, entry_weights
from nbspam.settings import PRESENCE
from nbspam.tokens.tokenizer import TokenBatch
from nbspam.tokens.vocabulary import Vocabulary

# How judgements of many classes are blended is a few numbers, and does with so many messages.
_ENOUGH = 8_000
# Every message of two classes may correct tokens, the more the better: E-014.  Beyond enough of
# them only as long as their tokens take no more than 40 MB of the model.
MAX_SAMPLE, MAX_ENTRIES = 32_000, 10_000_000


class Sample(NamedTuple):
    """Some messages over columns of their own, entries message by message."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    keys: Keys  # (n_keys,) ascending
    offsets: Integers  # (n_docs + 1,)
    columns: Indices  # (nnz,) index into keys, ascending within a message
    counts: Indices | None  # (nnz,) how often; None where only presence is counted

    @property
    def documents(self) -> Integers32:
        """The message of every entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.labels), dtype=np.int32), np.diff(self.offsets))

    def take(self, chosen: Booleans) -> "Sample":
        """Return some of the messages; chosen: (n_docs,)."""
        if chosen.all():
            return self
        lengths = np.diff(self.offsets)
        entry = np.repeat(chosen, lengths)
        columns, place = np.unique(self.columns[entry], return_inverse=True)
        return Sample(
            self.labels[chosen],
            self.digests[chosen],
            self.keys[columns],
            _offsets(lengths[chosen]),
            _small(place, len(columns)),
            None if self.counts is None else self.counts[entry],
        )


class Kept(NamedTuple):
    """A sample as a model stores it: messages by digest, tokens by the model's column."""

    bits: int  # zero bits that end the digest of every message in it
    digests: Keys  # (n_docs,) ascending
    offsets: Columns  # (n_docs + 1,)
    columns: Columns  # (nnz,) ascending within a message
    counts: Indices | None  # (nnz,) how often; None where only presence is counted


def _offsets(lengths: Any) -> Integers:
    """Return where what has these lengths begins and ends, one behind the other."""
    return np.append(np.int64(0), np.cumsum(lengths, dtype=np.int64))


def _small(array: Integers, highest: int) -> Indices:
    """Return numbers from 0 to the highest in as few bytes as hold them."""
    return array.astype(np.min_scalar_type(highest))


def sample_batch(
    batch: TokenBatch, labels: Sequence[str], digests: Sequence[int], weighting: str
) -> Sample:
    """Return all messages of a batch; how often tokens stand there if the weighting asks."""
    # A batch goes token by token; numbers of two bytes and less are sorted in linear time.
    documents = _small(batch.documents, batch.n_docs)
    order = np.argsort(documents, kind="stable")
    lengths = np.bincount(documents, minlength=batch.n_docs)
    column = _small(np.arange(len(batch.keys)), len(batch.keys))
    columns: Any = np.repeat(column, np.diff(batch.indptr)).take(order)
    counts = None
    if weighting != PRESENCE:
        times = batch.counts
        counts = _small(times, times.max(initial=0)).take(order)
    return Sample(
        np.array(labels, np.str_),
        np.array(digests, np.uint64),
        batch.keys,
        _offsets(lengths),
        columns,
        counts,
    )


class Sampling:
    """Keeps some of the messages it is given: those whose digest ends in enough zero bits.

    samples: what is kept; bits: how many it takes, for there not to be too many.
    """

    def __init__(self, weighting: str, bits: int = 0) -> None:
        self._limit = MAX_SAMPLE if weighting == PRESENCE else _ENOUGH
        self._begin(bits)

    def _begin(self, bits: int) -> None:
        self.bits = bits
        self.samples: list[Sample] = []
        self._n_docs = self._n_entries = 0

    def add(self, samples: Iterable[Sample]) -> None:
        """Keep what is to be kept of these too."""
        for sample in samples:
            self._append(sample)
            while self._is_too_large():
                before = self.samples
                self._begin(self.bits + 1)
                for each in before:
                    self._append(each)

    def _append(self, sample: Sample) -> None:
        kept = _with_zero_bits(sample, self.bits)
        if len(kept.labels):
            self.samples.append(kept)
        self._n_docs += len(kept.labels)
        self._n_entries += len(kept.columns)

    def _is_too_large(self) -> bool:
        # Whatever else comes, it stays so: the order in which messages come does not matter.
        if self._n_docs <= min(self._limit, _ENOUGH):
            return False
        return self._n_docs > self._limit or self._n_entries > MAX_ENTRIES


def _with_zero_bits(sample: Sample, bits: int) -> Sample:
    return sample.take((sample.digests & np.uint64((1 << bits) - 1)) == 0) if bits else sample


def keep(samples: Sequence[Sample], bits: int, vocabulary: Vocabulary, with_counts: bool) -> Kept:
    """Return what a model stores of these samples; tokens it does not know are left out."""
    columns: list[Columns] = []  # by message
    counts: list[Indices] = []
    found = vocabulary.columns(
        np.concatenate([np.empty(0, np.uint64), *(p.keys for p in samples)])
    )
    done = 0
    for part in samples:
        own = found[done : done + len(part.keys)]
        done += len(own)
        part = _known(part, own)
        column = own.astype(np.uint32).take(part.columns)
        bounds = list(pairwise(part.offsets.tolist()))
        columns += [column[start:end] for start, end in bounds]
        if with_counts:
            own_counts = _counts(part)
            counts += [own_counts[start:end] for start, end in bounds]
    digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in samples)])
    order = np.argsort(digests).tolist()
    columns = [columns[i] for i in order]
    counts = [counts[i] for i in order] if with_counts else []
    return Kept(
        bits,
        digests[order],
        _offsets([len(own) for own in columns]).astype(np.uint32),
        np.concatenate([np.empty(0, np.uint32), *columns]),
        np.concatenate([np.empty(0, np.uint32), *counts]) if with_counts else None,
    )


def _known(sample: Sample, column: Integers) -> Sample:
    """Return the sample without the entries whose key has no column; column: (n_keys,)."""
    if (column >= 0).all():
        return sample
    known = (column >= 0)[sample.columns]
    return sample._replace(
        offsets=np.append(0, np.cumsum(known))[sample.offsets],
        columns=sample.columns[known],
        counts=None if sample.counts is None else sample.counts[known],
    )


def _counts(messages: Sample | Kept) -> Indices:
    """Return how often, shape (nnz,); where only presence is counted, one one for all."""
    if messages.counts is None:
        return np.broadcast_to(np.uint8(1), len(messages.columns))
    return messages.counts


def sample_of(kept: Kept, labels: Strings, vocabulary: Vocabulary) -> Sample:
    """Return what a model stores as a sample again; labels: (n_docs,)."""
    offsets = kept.offsets.astype(np.int64)
    return Sample(labels, kept.digests, vocabulary.keys, offsets, kept.columns, kept.counts)


def rows_of(kept: Kept) -> Rows:
    """Return a model's sample as what is learned from."""
    return Rows(kept.offsets.astype(np.int64), kept.columns, _counts(kept))


def counts_of(sample: Sample, groups: Octets, weighting: str) -> CountTable:
    """Return the counts of a sample's messages; the texts of their tokens are empty.

    groups: (n_keys,) of the sample's tokens.
    """
    classes, class_of = np.unique(sample.labels, return_inverse=True)
    shape = len(sample.keys), len(classes)
    documents, columns = sample.documents, sample.columns.astype(np.int64)
    weights = entry_weights(_counts(sample), documents, groups.take(columns), weighting)
    cell = columns * len(classes) + class_of[documents]
    no_texts = np.empty(0, np.uint8), np.zeros(len(sample.keys) + 1, np.int64)
    return CountTable(
        tuple(classes.tolist()),
        np.bincount(class_of, minlength=len(classes)).astype(np.float64),
        Vocabulary(sample.keys, *no_texts, groups),
        np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape).astype(np.float64),
        np.bincount(columns, minlength=len(sample.keys)),
    )
