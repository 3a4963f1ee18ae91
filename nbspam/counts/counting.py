"""Counting: labelled items become counts, in several processes, each message once.

Secret: what a worker process returns, and how messages that come again are subtracted.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Keys, Octets, Strings
from nbspam.bounds import UNBOUNDED, Bounds
from nbspam.counts.changes import Change
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, TableSum, counts_of, shifted, without_empty
from nbspam.counts.tally import MAX_TOKENS, Tally
from nbspam.counts.unremembered import Sampled
from nbspam.mail.digest import Copies
from nbspam.mail.message import Message
from nbspam.parallel import ordered_map
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.reading import chunks_of, read_to_learn
from nbspam.tokens.tokenizer import BATCH_BYTES, TokenBatch, batches, groups_of, tokenize
from nbspam.tokens.vocabulary import Vocabulary, batch_vocabulary
from nbspam.verdicts import Skipped


class Training(NamedTuple):
    """The input of training: counts of all messages, and a sample of them."""

    table: CountTable
    messages: tuple[Messages, ...]  # the sample
    bits: int  # number of zero bits at the end of the digests in the sample
    digests: Keys  # (n_docs,) of all messages, or of the sample if there is no ledger
    labels: Strings  # (n_docs,)
    told: Booleans | None = None  # (n_docs,) see Item; None: none of them
    repeated: int = 0  # messages that came again and were not counted again
    skipped: tuple[Skipped, ...] = ()
    has_ledger: bool = True


class Limits(NamedTuple):
    """How much a process holds at a time; what is counted does not depend on it."""

    batch_bytes: int = BATCH_BYTES  # text that is tokenised at once
    tokens: int = MAX_TOKENS  # with more, the counts so far are handed over


LIMITS = Limits()


def count_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    limits: Limits = LIMITS,
    bounds: Bounds = UNBOUNDED,
) -> Training:
    """Return the counts of labelled items.

    A message that comes again is not counted again; if it then has another class, it moves to
    that class.  It is told if any copy with this class was, since it moved there.  Without a
    ledger, every copy counts, in its own class.
    """
    sampling = Sampling(settings.weighting)
    skipped: list[Skipped] = []
    unique = _Unique(settings.weighting) if bounds.ledger else Sampled(sampling)
    counts = TableSum(bounds.max_tokens)
    counter = _Counter(settings, limits)
    chunks = enumerate(chunks_of(items))
    for part in ordered_map(counter.count, chunks, jobs, counter.last):
        sampling.add(unique.new_of(part.messages))
        skipped.extend(part.skipped)
        if part.table is not None:
            counts.add(part.table)
    table = counts.total()
    table = table._replace(vocabulary=table.vocabulary.with_riders(0))
    if isinstance(unique, Sampled):
        known = unique.known(sampling.messages)
        return Training(
            table, tuple(sampling.messages), sampling.bits, *known, 0, tuple(skipped), False
        )
    table = unique.with_moves(unique.without_repeated(table), sampling.messages)
    return Training(
        without_empty(table),
        tuple(unique.relabelled(sampling.messages)),
        sampling.bits,
        np.fromiter(unique.label, np.uint64, len(unique.label)),
        np.array(list(unique.label.values()), np.str_),
        np.array([digest in unique.told for digest in unique.label], np.bool_),
        unique.n_read - len(unique.label),
        tuple(skipped),
    )


class _Counted(NamedTuple):
    """The result of one chunk: its messages and, if the tally is full, the counts so far."""

    # With the groups of their tokens, (n_tokens,), and whether each was told.
    messages: list[tuple[Messages, Octets, list[bool]]]
    skipped: list[Skipped]
    table: CountTable | None  # counts of all chunks since the previous table


class _Counter:
    """The work of one process: counts chunk after chunk."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self.settings, self.limits = settings, limits

    @cached_property
    def tally(self) -> Tally:
        """The counts so far; created in the worker, since writing to forked memory copies it."""
        return Tally(self.settings.weighting, self.limits.tokens)

    def count(self, chunk: tuple[int, list[Item]]) -> _Counted:
        """Count one chunk; chunk: its number, and its items."""
        turn, items = chunk
        read = read_to_learn(items, self.settings)
        labels, told = read.labels, read.told
        counted = []
        done = 0
        for group in batches(read.messages, self.settings.tokens, self.limits.batch_bytes):
            own = slice(done, done + len(group))
            messages, groups = self.count_batch(group, labels[own], read.digests[own], turn)
            counted.append((messages, groups, told[own]))
            done = own.stop
        table = self.taken() if self.tally.is_full else None
        return _Counted(counted, list(read.failures.values()), table)

    def count_batch(
        self, group: Sequence[Message], labels: list[str], digests: list[int], turn: int
    ) -> tuple[Messages, Octets]:
        """Count a batch of messages; return them, and the groups of their tokens.

        This is a separate function so that the batch is freed before the next one is made.
        """
        batch = tokenize(group, self.settings.tokens)
        self.tally.add(batch, labels, turn)
        messages = _messages(batch, labels, digests)
        if self.settings.weighting == PRESENCE:
            messages = messages.without_counts()
        return messages, batch.groups

    def last(self) -> _Counted:
        """Return the counts that were not returned yet."""
        return _Counted([], [], self.taken())

    def taken(self) -> CountTable:
        """Return the counts so far and start a new tally."""
        table = self.tally.table()
        del self.tally
        return table


def _messages(batch: TokenBatch, labels: Sequence[str], digests: Sequence[int]) -> Messages:
    return Messages(np.array(labels, np.str_), np.array(digests, np.uint64), batch.documents)


class Lesson(NamedTuple):
    """Labelled messages to learn, with their names and the texts of their tokens."""

    names: list[str]  # (n_docs,)
    messages: Messages
    vocabulary: Vocabulary  # all tokens of the messages
    told: list[bool]  # (n_docs,) see Item
    older: Keys | None = None  # (n_docs,) the older digests, if they were asked for

    def change(self, row: int, digest: int, known: Vocabulary, weighting: str) -> Change:
        """Return one message as a change without classes.

        Only tokens that a model does not know have texts in it; known: those that it knows.
        """
        document = self.messages.documents.one(row)
        if weighting == PRESENCE:
            document = document._replace(counts=None)
        column = np.searchsorted(self.vocabulary.keys, document.tokens)
        new = self.vocabulary.take(column[known.columns(document.tokens) < 0])
        return Change(digest, None, None, 0, document, new.packed())


def read_lessons(
    settings: Settings, items: list[Item], with_older: bool = False
) -> tuple[list[Lesson], list[Skipped]]:
    """Return the lessons in one chunk of items, and the items that were skipped.

    with_older: see `read_to_learn`.

    Worker processes of `nbspam update` and of `read_corpus` run this.
    """
    read = read_to_learn(items, settings, with_older)
    names, labels = [item.name for item in read.items], read.labels
    lessons = []
    done = 0
    for group in batches(read.messages, settings.tokens):
        own = slice(done, done + len(group))
        batch = tokenize(group, settings.tokens)
        messages = _messages(batch, labels[own], read.digests[own])
        older = np.array(read.older[own], np.uint64) if with_older else None
        vocabulary = batch_vocabulary(batch)
        lessons.append(Lesson(names[own], messages, vocabulary, read.told[own], older))
        done = own.stop
    return lessons, list(read.failures.values())


class _Unique:
    """Makes each message count once, in the class that it had last.

    Workers count everything that they read.  Messages that come again are counted here as well,
    and these counts are subtracted, so that workers do not need to know of each other.
    """

    def __init__(self, weighting: str) -> None:
        self.weighting = weighting
        self.n_read = 0
        self.label: dict[int, str] = {}  # by digest
        self.told: set[int] = set()  # the digests of the messages whose classes were told
        self.copies = Copies()
        self.repeated = TableSum()  # the counts of repeated messages
        self.moves: list[tuple[Messages, str]] = []  # each message with the class that it leaves

    def new_of(self, parts: Iterable[tuple[Messages, Octets, list[bool]]]) -> list[Messages]:
        """Return the messages that did not come before."""
        new = []
        for part, groups, told in parts:
            self.n_read += len(part.labels)
            digests = np.array(
                [self.copies.numbered(digest) for digest in part.digests.tolist()], np.uint64
            )
            part = part._replace(digests=digests)
            is_new = np.array(
                [
                    self._is_new(part, row, *each)
                    for row, each in enumerate(
                        zip(digests.tolist(), part.labels.tolist(), told, strict=True)
                    )
                ],
                np.bool_,
            )
            if not is_new.all():
                again = part.take(~is_new)
                own = groups[np.searchsorted(part.documents.tokens, again.documents.tokens)]
                self.repeated.add(_table_of(again, own, self.weighting))
            new.append(part.take(is_new))
        return new

    def _is_new(self, part: Messages, row: int, digest: int, name: str, told: bool) -> bool:
        before = self.label.get(digest)
        self.label[digest] = name
        if before is not None and before != name:
            self.moves.append((_message(part, row), before))
            self.told.discard(digest)
        if told:
            self.told.add(digest)
        return before is None

    def without_repeated(self, table: CountTable) -> CountTable:
        """Return the counts minus those of repeated messages."""
        repeated = self.repeated.total()
        return shifted(table, repeated, -1) if repeated.classes else table

    def with_moves(self, table: CountTable, parts: Sequence[Messages]) -> CountTable:
        """Return the counts with each message in the class that it had last.

        The copy that was counted is moved if it is in the sample, else the copy that came again.
        """
        if not self.moves:
            return table
        counted = {
            digest: (part, row)
            for part in parts
            for row, digest in enumerate(part.digests.tolist())
        }
        for copy, before in self.moves:
            at_hand = counted.get(int(copy.digests[0]))
            message = copy if at_hand is None else _message(*at_hand)
            groups = groups_of(message.documents.tokens)
            for sign, label in ((-1, before), (1, str(copy.labels[0]))):
                moved = message._replace(labels=np.array([label]))
                table = shifted(table, _table_of(moved, groups, self.weighting), sign)
        return table

    def relabelled(self, parts: Iterable[Messages]) -> Iterable[Messages]:
        """Return the messages with the classes that they had last."""
        if not self.moves:
            return parts
        return (
            part._replace(labels=np.array([self.label[d] for d in part.digests.tolist()], np.str_))
            for part in parts
        )


def _message(part: Messages, row: int) -> Messages:
    """Return a single message."""
    return part.take(np.arange(len(part.labels)) == row)


def _table_of(part: Messages, groups: Octets, weighting: str) -> CountTable:
    """Return the counts of messages; the texts of tokens are left empty.

    groups: (n_tokens,) group of each token.
    """
    classes, y = np.unique(part.labels, return_inverse=True)
    counts = counts_of(part.documents, y, len(classes), groups, weighting)
    keys = part.documents.tokens
    no_texts = np.empty(0, np.uint8), np.zeros(len(keys) + 1, np.int64)
    vocabulary = Vocabulary(keys, *no_texts, groups)
    names = tuple(classes.tolist())
    return CountTable(names, counts[0], vocabulary, counts[1], counts[2])
