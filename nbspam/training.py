"""Training: labelled items to counts, counts to a classifier.

Secret: what a worker process returns of the messages it has read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers, Keys, Strings
from nbspam.classifier import Classifier, Memory
from nbspam.combining import Entries, fit
from nbspam.counts import (
    PRESENCE,
    CountTable,
    add_tables,
    count_batch,
    prune,
    sum_tables,
    without_empty,
)
from nbspam.errors import NotTrainedError
from nbspam.ledger import ledger_of
from nbspam.logtables import log_tables
from nbspam.parallel import ordered_map
from nbspam.reading import CHUNK_BYTES, CHUNK_ITEMS, read_to_learn
from nbspam.sample import Sample, entries_of, keep, sample_batch, take_out, thin
from nbspam.settings import Settings
from nbspam.sources import Item, Skipped, chunks
from nbspam.tokenizer import batches, tokenize


@dataclass(frozen=True, slots=True)
class Training:
    """What one training run read, and what it could not read."""

    table: CountTable
    samples: tuple[Sample, ...]
    bits: int  # zero bits that end the digests of the messages in the samples
    digests: Keys  # (n_docs,) of all messages
    labels: Strings  # (n_docs,)
    repeated: int  # messages that had been read before, and were not counted again
    skipped: tuple[Skipped, ...]


class _Counted(NamedTuple):
    """What a worker process returns: the counts of a chunk, and all its messages."""

    table: CountTable
    samples: list[Sample]
    skipped: list[Skipped]


def count_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Return the counts of labelled items; progress is told how many were read so far.

    A message that comes again is not counted again, be it in another class.
    """
    samples: list[Sample] = []
    bits = 0
    digests: list[Keys] = [np.empty(0, np.uint64)]
    labels: list[Strings] = [np.empty(0, np.str_)]
    skipped: list[Skipped] = []
    seen: set[int] = set()
    n_items = 0

    def tables() -> Iterator[CountTable]:
        nonlocal n_items, samples, bits
        work = partial(_count_chunk, settings)
        for part in ordered_map(work, chunks(items, CHUNK_ITEMS, CHUNK_BYTES), jobs):
            n_items += part.table.n_docs
            table, new = _without_repeated(part, seen, settings.weighting)
            digests.extend(sample.digests for sample in new)
            labels.extend(sample.labels for sample in new)
            samples, bits = thin([*samples, *new], bits)
            skipped.extend(part.skipped)
            if progress is not None:
                progress(n_items)
            yield table

    table = without_empty(sum_tables(tables()))
    return Training(
        table,
        tuple(samples),
        bits,
        np.concatenate(digests),
        np.concatenate(labels),
        n_items - len(seen),
        tuple(skipped),
    )


def _count_chunk(settings: Settings, items: list[Item]) -> _Counted:
    """Return the counts of one chunk of items: what a worker process does."""
    read, messages, digests, skipped = read_to_learn(items, settings)
    names, numbers = [str(item.label) for item in read], iter(digests)
    tables, samples, start = [], [], 0
    for group in batches(messages):
        batch = tokenize(group, settings.tokens)
        labels = names[start : start + len(group)]
        start += len(group)
        tables.append(count_batch(batch, labels, settings.weighting))
        samples.append(sample_batch(batch, labels, list(islice(numbers, len(group)))))
    return _Counted(add_tables(tables), samples, skipped)


def _without_repeated(
    part: _Counted, seen: set[int], weighting: str
) -> tuple[CountTable, list[Sample]]:
    """Return a part's counts and messages without those seen before; note what is new."""
    table, new = part.table, []
    for sample in part.samples:
        is_new = []
        for digest in sample.digests.tolist():
            is_new.append(digest not in seen)
            seen.add(digest)
        chosen = np.array(is_new, np.bool_)
        if not chosen.all():
            table = take_out(table, sample.take(~chosen), weighting)
        new.append(sample.take(chosen))
    return table, new


def train(training: Training, settings: Settings, day: int = 0) -> Classifier:
    """Return the classifier that counts and settings make; raises NotTrainedError.

    day: on which it was learned, counted from 1970-01-01.
    """
    _check_classes(training.table)
    table = prune(training.table, settings.min_df, settings.max_features)
    days = np.full(len(training.digests), day, np.uint16)
    memory = Memory(
        ledger_of(training.digests, training.labels, days, table.classes),
        keep(training.samples, training.bits, table.vocabulary, settings.weighting != PRESENCE),
        np.full(len(table.vocabulary), day, np.uint16),
    )
    return derive(table, memory, settings)


def derive(table: CountTable, memory: Memory, settings: Settings) -> Classifier:
    """Return the classifier that follows from counts and a sample; raises NotTrainedError."""
    _check_classes(table)
    if not (settings.combine and len(table.classes) == 2):
        return replace(_summing(table, settings), memory=memory)
    classifier = Classifier(settings, table, np.zeros(2), np.zeros((0, 2)), memory=memory)
    place = memory.ledger.find(memory.sample.digests)
    entries = entries_of(memory.sample, table.vocabulary)
    return combined(classifier, entries, memory.ledger.labels[place].astype(np.int64))


def sum_of_evidence(table: CountTable, settings: Settings) -> Classifier:
    """Return the classifier that sums its tokens' evidence, as the plain models do."""
    _check_classes(table)
    return _summing(prune(table, settings.min_df, settings.max_features), settings)


def _summing(table: CountTable, settings: Settings) -> Classifier:
    return Classifier(settings, table, *log_tables(table, settings))


def _check_classes(table: CountTable) -> None:
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder a class, or --spam PATH --ham PATH"
        )


def combined(classifier: Classifier, entries: Entries, y: Integers) -> Classifier:
    """Return the classifier with a combination learned from these messages."""
    return replace(classifier, combination=fit(classifier.table, entries, y))
