"""Training: labelled items to counts, counts to a classifier.

Secret: what a worker process returns of the messages it has read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers, Keys, Octets, Strings
from nbspam.background import Later
from nbspam.classifier import combining
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Rows
from nbspam.classifier.logtables import log_tables
from nbspam.counts.ledger import ledger_of
from nbspam.counts.memory import Memory, only_columns
from nbspam.counts.sample import Sample, Sampling, counts_of, keep, rows_of, sample_batch
from nbspam.counts.table import CountTable, TableSum, prune, shifted, without_empty
from nbspam.counts.tally import Tally
from nbspam.errors import NotTrainedError
from nbspam.mail.digest import Copies
from nbspam.mail.message import Message
from nbspam.parallel import ordered_map
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.reading import chunks_of, read_to_learn
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.verdicts import Skipped

# What a model's tokens may take, so that one of a million messages stays below 200 MB.
MAX_BYTES = 160_000_000
# Of a token: for all classes (text included), for each, and for each where it is blended.
_TOKEN_BYTES, _CLASS_BYTES, _BLENDED_BYTES = 35, 12, 8


class Training(NamedTuple):
    """What one training run read, and what it could not read."""

    table: CountTable
    samples: tuple[Sample, ...]
    bits: int  # zero bits that end the digests of the messages in the samples
    digests: Keys  # (n_docs,) of all messages
    labels: Strings  # (n_docs,)
    repeated: int  # messages that had been read before, and were not counted again
    skipped: tuple[Skipped, ...]


class _Counted(NamedTuple):
    """What a worker process returns: all messages of a chunk, and counts now and then."""

    samples: list[tuple[Sample, Octets]]  # and groups of the tokens, (n_keys,)
    skipped: list[Skipped]
    table: CountTable | None  # of the chunks since the last one


class _Counter:
    """What a worker process does: it counts chunk after chunk."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def tally(self) -> Tally:
        """What was counted so far; begun late: forked processes copy what they inherit."""
        return Tally(self.settings.weighting)

    def count(self, chunk: tuple[int, list[Item]]) -> _Counted:
        """Count one chunk of items, which comes with its number."""
        turn, items = chunk
        read, messages, digests, skipped = read_to_learn(items, self.settings)
        labels = [str(item.label) for item in read]
        samples = []
        done = 0
        for group in batches(messages, self.settings.tokens):
            own = slice(done, done + len(group))
            samples.append(self.count_group(group, labels[own], digests[own], turn))
            done = own.stop
        return _Counted(samples, skipped, self.taken() if self.tally.is_full else None)

    def count_group(
        self, group: Sequence[Message], labels: list[str], digests: list[int], turn: int
    ) -> tuple[Sample, Octets]:
        """Count a batch of messages; return them, and the groups of their tokens.

        All else that was made of them is gone before the next batch needs the memory.
        """
        batch = tokenize(group, self.settings.tokens)
        self.tally.add(batch, labels, turn)
        return sample_batch(batch, labels, digests, self.settings.weighting), batch.groups

    def last(self) -> _Counted:
        """Return the counts that were not yet returned."""
        return _Counted([], [], self.taken())

    def taken(self) -> CountTable:
        """Return the counts, and count on from nothing."""
        table = self.tally.table()
        del self.tally
        return table


def count_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Return the counts of labelled items; progress is told how many were read so far.

    A message that comes again is not counted again; in another class, it moves there.
    """
    sampling = Sampling(settings.weighting)
    skipped: list[Skipped] = []
    once = _Once(settings.weighting)
    counts = TableSum()
    counter = _Counter(settings)
    chunks = enumerate(chunks_of(items))
    for part in ordered_map(counter.count, chunks, jobs, counter.last):
        sampling.add(once.take(part.samples))
        skipped.extend(part.skipped)
        if part.table is not None:
            counts.add(part.table)
        if progress is not None:
            progress(once.n_read)
    table = counts.total()
    table = table._replace(vocabulary=table.vocabulary.with_riders(0))
    table = once.with_moves(once.without_repeated(table), sampling.samples)
    return Training(
        without_empty(table),
        tuple(once.relabelled(sampling.samples)),
        sampling.bits,
        np.fromiter(once.label, np.uint64, len(once.label)),
        np.array(list(once.label.values()), np.str_),
        once.n_read - len(once.label),
        tuple(skipped),
    )


class _Once:
    """Sees to it that every message counts once, as the class it came with last."""

    def __init__(self, weighting: str) -> None:
        self.weighting = weighting
        self.n_read = 0
        self.label: dict[int, str] = {}  # by digest
        self.copies = Copies()
        self.repeated = TableSum()  # what was counted again
        self.moves: list[tuple[Sample, str]] = []  # a message, and the class it leaves

    def take(self, samples: Iterable[tuple[Sample, Octets]]) -> list[Sample]:
        """Return the messages without those that came before."""
        new = []
        for sample, groups in samples:
            self.n_read += len(sample.labels)
            digests = np.array(
                [self.copies.numbered(d) for d in sample.digests.tolist()], np.uint64
            )
            sample = sample._replace(digests=digests)
            is_new = np.array(
                [
                    self._is_new(sample, row, digest, name)
                    for row, (digest, name) in enumerate(
                        zip(digests.tolist(), sample.labels.tolist(), strict=True)
                    )
                ],
                np.bool_,
            )
            if not is_new.all():
                again = sample.take(~is_new)
                own = groups[np.searchsorted(sample.keys, again.keys)]
                self.repeated.add(counts_of(again, own, self.weighting))
            new.append(sample.take(is_new))
        return new

    def _is_new(self, sample: Sample, row: int, digest: int, name: str) -> bool:
        before = self.label.get(digest)
        self.label[digest] = name
        if before is not None and before != name:
            self.moves.append((_message(sample, row), before))
        return before is None

    def without_repeated(self, table: CountTable) -> CountTable:
        """Return the counts without what was counted again."""
        repeated = self.repeated.total()
        return shifted(table, repeated, -1) if repeated.classes else table

    def with_moves(self, table: CountTable, samples: Sequence[Sample]) -> CountTable:
        """Return the counts with all messages in the class they came with last.

        The copy that was counted moves, as long as it is at hand in the samples.
        """
        if not self.moves:
            return table
        counted = {
            digest: (sample, row)
            for sample in samples
            for row, digest in enumerate(sample.digests.tolist())
        }
        for copy, before in self.moves:
            at_hand = counted.get(int(copy.digests[0]))
            message = copy if at_hand is None else _message(*at_hand)
            groups = table.vocabulary.groups[table.vocabulary.columns(message.keys)]
            for sign, label in ((-1, before), (1, str(copy.labels[0]))):
                moved = message._replace(labels=np.array([label]))
                table = shifted(table, counts_of(moved, groups, self.weighting), sign)
        return table

    def relabelled(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """Return samples with the classes that their messages have by now."""
        if not self.moves:
            return samples
        return (
            sample._replace(
                labels=np.array([self.label[d] for d in sample.digests.tolist()], np.str_)
            )
            for sample in samples
        )


def _message(sample: Sample, row: int) -> Sample:
    """Return one message of a sample."""
    return sample.take(np.arange(len(sample.labels)) == row)


def train(training: Training, settings: Settings, day: int = 0) -> Classifier:
    """Return the classifier that counts and settings make; raises NotTrainedError.

    day: on which it was learned, counted from 1970-01-01.
    """
    table = chosen_tokens(training.table, settings)
    days = np.full(len(training.digests), day, np.uint16)
    memory = Memory(
        ledger_of(training.digests, training.labels, days, table.classes),
        keep(training.samples, training.bits, table.vocabulary, settings.weighting != PRESENCE),
        np.full(len(table.vocabulary), day, np.uint16),
    )
    return derive(table, memory, settings)


def derive(table: CountTable, memory: Memory, settings: Settings) -> Classifier:
    """Return the classifier that follows from counts and a sample; raises NotTrainedError.

    Of more tokens than MAX_BYTES are for, the rarest are forgotten, and of these those
    seen the longest ago.
    """
    _check_classes(table)
    is_blended = settings.combine and not _is_combined(table, settings)
    of_a_class = _BLENDED_BYTES if is_blended else _CLASS_BYTES
    limit = MAX_BYTES // (_TOKEN_BYTES + of_a_class * len(table.classes))
    if len(table.vocabulary) > limit:
        rank = np.lexsort((table.vocabulary.keys, memory.last_seen, table.document_frequency))
        columns = np.sort(rank[-limit:])
        table, memory = table.take(columns), only_columns(memory, columns)
    if not settings.combine:
        return replace(sum_of_evidence(table, settings), memory=memory)
    place = memory.ledger.find(memory.sample.digests)
    y = memory.ledger.labels[place].astype(np.int64)
    return replace(combined(table, settings, rows_of(memory.sample), y), memory=memory)


def _is_combined(table: CountTable, settings: Settings) -> bool:
    """Return whether evidence is combined, not blended: of two classes the presence of tokens."""
    return len(table.classes) == 2 and settings.weighting == PRESENCE


def chosen_tokens(table: CountTable, settings: Settings) -> CountTable:
    """Return the counts that a classifier is made of; raises NotTrainedError."""
    _check_classes(table)
    return prune(table, settings.min_df, settings.max_features)


def sum_of_evidence(table: CountTable, settings: Settings) -> Classifier:
    """Return the classifier that sums its tokens' evidence, as the plain models do."""
    return Classifier(settings, table, *log_tables(table, settings))


def _check_classes(table: CountTable) -> None:
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder a class, or --spam PATH --ham PATH"
        )


def combined(table: CountTable, settings: Settings, rows: Rows, y: Integers) -> Classifier:
    """Return the classifier that has learned from these messages how evidence adds up.

    y: (n_docs,) index of their class.
    """
    if _is_combined(table, settings):
        nothing = np.zeros(2), np.zeros((0, 2))
        return Classifier(settings, table, *nothing, Later(partial(combining.fit, table, rows, y)))
    from nbspam.classifier import blending

    entries = rows.entries(table.vocabulary.groups)
    blend = blending.fit(table, entries, y, settings.weighting)
    return Classifier(settings, table, *blending.linear_tables(table, blend), blend=blend)
