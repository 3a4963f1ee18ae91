"""A sample of the training messages, kept to learn how evidence combines.

Counting forgets messages; leaving one out needs it again.  So that training never holds
more than so many, whatever it reads, messages are kept by a hash of what they say: the
same ones in whatever order and by however many processes they are read.

Secret: which messages are kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nbspam.arrays import Integers, Integers16, Integers32, Keys, Strings
from nbspam.combining import Entries
from nbspam.tokenizer import TokenBatch
from nbspam.vocabulary import Vocabulary

MAX_SAMPLE = 8_000  # messages
_MAX_COUNT = (1 << 16) - 1
_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some messages over columns of their own."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    keys: Keys  # (n_keys,)
    documents: Integers32  # (nnz,)
    columns: Integers32  # (nnz,) index into keys
    counts: Integers16  # (nnz,)


def sample_batch(batch: TokenBatch, labels: Sequence[str]) -> Sample:
    """Return all messages of a batch."""
    digests = np.zeros(batch.n_docs, np.uint64)
    np.add.at(digests, batch.documents, batch.keys[batch.columns])
    digests *= _MULTIPLY
    digests ^= digests >> np.uint64(32)
    return Sample(
        np.array(labels, np.str_),
        digests,
        batch.keys,
        batch.documents.astype(np.int32),
        batch.columns.astype(np.int32),
        np.minimum(batch.counts, _MAX_COUNT).astype(np.uint16),
    )


def thin(samples: Iterable[Sample], limit: int = MAX_SAMPLE) -> list[Sample]:
    """Return the samples with at most `limit` messages among them.

    Those are kept whose digest ends in enough zero bits, for one number of bits.
    """
    kept: list[Sample] = []
    bits = 0
    for sample in samples:
        kept.append(_with_zero_bits(sample, bits))
        while sum(len(part.labels) for part in kept) > limit:
            bits += 1
            kept = [_with_zero_bits(part, bits) for part in kept]
    return kept


def _with_zero_bits(sample: Sample, bits: int) -> Sample:
    chosen = (sample.digests & np.uint64((1 << bits) - 1)) == 0
    if chosen.all():
        return sample
    entry = chosen[sample.documents]
    columns, place = np.unique(sample.columns[entry], return_inverse=True)
    return Sample(
        sample.labels[chosen],
        sample.digests[chosen],
        sample.keys[columns],
        (np.cumsum(chosen) - 1)[sample.documents[entry]].astype(np.int32),
        place.astype(np.int32),
        sample.counts[entry],
    )


def entries_of(
    samples: Sequence[Sample], vocabulary: Vocabulary, classes: tuple[str, ...]
) -> tuple[Entries, Integers]:
    """Return the samples' entries over a model's columns, and y (n_docs,)."""
    documents, columns = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    counts = [np.empty(0, np.uint16)]
    n_docs = 0
    for sample in samples:
        column = vocabulary.columns(sample.keys).astype(np.int32)[sample.columns]
        known = column >= 0
        documents.append(sample.documents[known] + np.int32(n_docs))
        columns.append(column[known])
        counts.append(sample.counts[known])
        n_docs += len(sample.labels)
    labels = np.concatenate([np.empty(0, np.str_), *(sample.labels for sample in samples)])
    column = np.concatenate(columns)
    groups = vocabulary.groups[column]
    entries = Entries(n_docs, np.concatenate(documents), column, groups, np.concatenate(counts))
    return entries, np.searchsorted(np.array(classes), labels)
