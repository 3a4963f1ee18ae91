"""Counting: labelled items become counts, in several processes, each message once.

Secret: what a worker process returns.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Keys, Strings
from nbspam.bounds import UNBOUNDED, Bounds
from nbspam.counts.changes import Change
from nbspam.counts.repeats import Read, Unique
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, TableSum, shifted, without_empty
from nbspam.counts.tally import MAX_TOKENS, Tally
from nbspam.counts.unremembered import Sampled
from nbspam.mail.message import Message
from nbspam.parallel import Workers, ordered_map
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.reading import chunks_of, read_to_learn
from nbspam.tokens.tokenizer import BATCH_BYTES, TokenBatch, batches, tokenize
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
    jobs: Workers = 1,
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
    unique = Unique(settings.weighting) if bounds.ledger else Sampled(sampling)
    counts = TableSum(bounds.max_tokens)
    for part in counted(items, settings, jobs, limits):
        sampling.add(unique.new_of(part.messages))
        skipped.extend(part.failures.values())
        if part.table is not None:
            counts.add(part.table)
    table = total_of(counts)
    if isinstance(unique, Sampled):
        known = unique.known(sampling.messages)
        return Training(
            table, tuple(sampling.messages), sampling.bits, *known, 0, tuple(skipped), False
        )
    return Training(
        without_empty(shifted(table, unique.corrections(sampling.messages))),
        tuple(unique.relabelled(sampling.messages)),
        sampling.bits,
        unique.digests,
        np.array(list(unique.label.values()), np.str_),
        np.array([digest in unique.told for digest in unique.label], np.bool_),
        unique.n_repeated,
        tuple(skipped),
    )


class Counted(NamedTuple):
    """The result of one chunk: its messages and, if the tally is full, the counts so far."""

    n_items: int
    messages: list[Read]
    failures: dict[int, Skipped]  # by position in the chunk
    table: CountTable | None  # counts of all chunks since the previous table


def counted(
    items: Iterable[Item], settings: Settings, jobs: Workers, limits: Limits = LIMITS
) -> Iterator[Counted]:
    """Yield what workers return, in the order of items: the counts of everything they read."""
    counter = _Counter(settings, limits)
    yield from ordered_map(counter.count, enumerate(chunks_of(items, jobs)), jobs, counter.last)


def total_of(counts: TableSum) -> CountTable:
    """Return the sum of what workers counted; each token has the text that came first."""
    table = counts.total()
    return table._replace(vocabulary=table.vocabulary.with_riders(0))


class _Counter:
    """The work of one process: counts chunk after chunk."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self.settings, self.limits = settings, limits

    @cached_property
    def tally(self) -> Tally:
        """The counts so far; created in the worker, since writing to forked memory copies it."""
        return Tally(self.settings.weighting, self.limits.tokens)

    def count(self, chunk: tuple[int, list[Item]]) -> Counted:
        """Count one chunk; chunk: its number, and its items."""
        turn, items = chunk
        read = read_to_learn(items, self.settings)
        labels, told = read.labels, read.told
        batched = []
        done = 0
        for group in batches(read.messages, self.settings.tokens, self.limits.batch_bytes):
            own = slice(done, done + len(group))
            messages = self.count_batch(group, labels[own], read.digests[own], turn)
            batched.append((messages, told[own]))
            done = own.stop
        table = self.taken() if self.tally.is_full else None
        return Counted(len(items), batched, read.failures, table)

    def count_batch(
        self, group: Sequence[Message], labels: list[str], digests: list[int], turn: int
    ) -> Messages:
        """Count a batch of messages, and return them.

        This is a separate function so that the batch is freed before the next one is made.
        """
        batch = tokenize(group, self.settings.tokens)
        self.tally.add(batch, labels, turn)
        messages = _messages(batch, labels, digests)
        if self.settings.weighting == PRESENCE:
            messages = messages.without_counts()
        return messages

    def last(self) -> Counted:
        """Return the counts that were not returned yet."""
        return Counted(0, [], {}, self.taken())

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
