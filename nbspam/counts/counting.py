"""Counting: labelled items become counts, in several processes, each message once.

Workers and shards count everything that they read, so that they do not need to know of each
other.  When their counts are added, the messages are looked at in the order of the corpus, and
copies of earlier ones are subtracted.  Each process has a `CountTally`: a token is a row of
growing arrays, and its row is found in a hash table that looks up a whole batch of keys at once.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers, Keys, Strings, distinct, together
from nbspam.counts.ledger import Messages, Sampling, overlaid
from nbspam.counts.table import (
    CountTable,
    TableSum,
    compact,
    counted,
    negative,
    possible_counts,
    token_counts_of,
    without_empty,
)
from nbspam.mail.digest import Copies
from nbspam.settings import PRESENCE, UNBOUNDED, Bounds, Settings
from nbspam.sources.items import Item
from nbspam.tokens.items_to_messages import MessagesToLearn, chunks_of, read_to_learn
from nbspam.tokens.sparse import RIDER_MASK, Vocabulary, concatenated
from nbspam.tokens.tokenizer import TokenBatch, batch_vocabulary, groups_of, tokenize
from nbspam.verdicts import Skipped
from nbspam.workers import Workers, ordered_map

ReadMessages = tuple[Messages, list[bool]]  # messages, and whether each was told (see Item)


class Training(NamedTuple):
    """The input of training: counts of all messages, and a sample of them."""

    table: CountTable
    messages: tuple[Messages, ...]  # the sample
    bits: int  # number of zero bits at the end of the digests in the sample
    digests: Keys  # (n_docs,) of all messages, or of the sample if there is no ledger
    labels: Strings  # (n_docs,)
    told: Booleans  # (n_docs,) see Item
    repeated: int = 0  # messages that came again and were not counted again
    skipped: tuple[Skipped, ...] = ()
    has_ledger: bool = True


def count_items(
    items: Iterable[Item], settings: Settings, jobs: Workers = 1, bounds: Bounds = UNBOUNDED
) -> Training:
    """Return the counts of labelled items.

    A message that comes again is not counted again; if it then has another class, it moves to
    that class.  It is told if any copy with this class was, since it moved there.  Without a
    ledger, every copy counts, in its own class.
    """
    sampling = Sampling(settings.weighting)
    skipped: list[Skipped] = []
    seen = Unique(settings.weighting) if bounds.ledger else SampledMessages(sampling)
    counts = TableSum(bounds.max_tokens)
    for part in counted_chunks(items, settings, jobs):
        sampling.add(seen.new_of(part.messages))
        skipped.extend(part.failures.values())
        if part.table is not None:
            counts.add(part.table)
    return seen.training(total_of(counts), sampling, tuple(skipped))


class CountedChunk(NamedTuple):
    """The result of one chunk: its messages and, if the tally is full, the counts so far."""

    n_items: int
    messages: list[ReadMessages]
    failures: dict[int, Skipped]  # by position in the chunk
    table: CountTable | None  # counts of all chunks since the previous table


def counted_chunks(
    items: Iterable[Item], settings: Settings, jobs: Workers
) -> Iterator[CountedChunk]:
    """Yield the chunks that workers counted, in the order of items."""
    counter = _Counter(settings)
    yield from ordered_map(counter.count, enumerate(chunks_of(items, jobs)), jobs, counter.last)


def total_of(counts: TableSum) -> CountTable:
    """Return the sum of what workers counted; each token has the text that came first."""
    table = counts.total()
    return table._replace(vocabulary=table.vocabulary.with_riders(0))


class _Counter:
    """The work of one process: counts chunk after chunk."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def tally(self) -> "CountTally":
        """The counts so far; created in the worker, since writing to forked memory copies it."""
        return CountTally(self.settings.weighting)

    def count(self, chunk: tuple[int, list[Item]]) -> CountedChunk:
        """Count one chunk; chunk: its number, and its items."""
        turn, items = chunk
        read = read_to_learn(items, self.settings)
        parts = read.parts(self.settings.tokens)
        batched = [(self.count_batch(part, turn), part.told) for part in parts]
        table = self.taken() if self.tally.is_full else None
        return CountedChunk(len(items), batched, read.failures, table)

    def count_batch(self, part: MessagesToLearn, turn: int) -> Messages:
        """Count a batch of messages, and return them.

        This is a separate function so that the batch is freed before the next one is made.
        """
        batch = tokenize(part.messages, self.settings.tokens)
        self.tally.add(batch, part.labels, turn)
        documents = batch.documents
        if self.settings.weighting == PRESENCE:
            documents = documents._replace(counts=None)
        digests = np.array(part.digests, np.uint64)
        return Messages(np.array(part.labels, np.str_), digests, documents)

    def last(self) -> CountedChunk:
        """Return the counts that were not returned yet."""
        return CountedChunk(0, [], {}, self.taken())

    def taken(self) -> CountTable:
        """Return the counts so far and start a new tally."""
        table = self.tally.table()
        del self.tally
        return table


# --- the counts of one process ---------------------------------------------------------------

# A process hands its counts over when it has more tokens than this, so that the memory of all
# processes grows with the number of distinct tokens, not with the amount of mail.
MAX_TOKENS = 1 << 18
_FIRST_BITS = 18
_GROWTH_BITS = 2
_NO_KEY = np.uint64(1)  # never a key, because the low bits of keys are 0


class CountTally:
    """The counts of batches; copies the text of each token only once."""

    def __init__(self, weighting: str) -> None:
        self._weighting = weighting
        self._numbering = Numbering()
        self._new: list[Vocabulary] = []  # the new tokens of each batch
        self._class_count: dict[str, float] = {}
        # Indexed by the number of the token, with spare room at the end.
        self._feature_count: dict[str, Floats] = {}
        self._frequency: Integers = np.zeros(0, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether this tally should be handed over and a new one started."""
        return len(self._numbering) > MAX_TOKENS

    def add(self, batch: TokenBatch, labels: Sequence[str], turn: int) -> None:
        """Count a batch; labels: the class of each document; turn: see `table`."""
        n_known = len(self._numbering)
        number = self._numbering.numbers(batch.keys)
        new = batch_vocabulary(batch, number >= n_known)
        self._new.append(new.with_riders(min(turn, int(RIDER_MASK))))
        classes = sorted(set(labels))
        y = np.array([classes.index(label) for label in labels], np.int64)
        counts = token_counts_of(batch.documents, y, len(classes), batch.groups, self._weighting)
        n = len(self._numbering)
        for k, name in enumerate(classes):
            n_docs = float(counts.class_count[k])
            self._class_count[name] = self._class_count.get(name, 0.0) + n_docs
            total = with_room(self._feature_count.get(name, np.zeros(0)), n)
            total[number] += counts.feature_count[:, k]
            self._feature_count[name] = total
        self._frequency = with_room(self._frequency, n)
        self._frequency[number] += counts.document_frequency

    def table(self) -> CountTable:
        """Return the counts, for a `TableSum`; tokens are in the order of their first occurrence.

        The low bits of each key, its rider, hold the turn in which the token came first: the
        number of the chunk of messages.  So the sum of several processes' tables keeps, of the
        texts of a key, the one that came first.  The tally cannot be used any more.
        """
        n = len(self._numbering)
        classes = tuple(sorted(self._class_count))
        # In 32 bits where possible, because the table goes through a pipe.  Each class gives its
        # memory back before the next one: of hundreds of classes, counts are most of the memory.
        columns = [compact(with_room(self._feature_count.pop(name), n)[:n]) for name in classes]
        counts = np.array(columns).reshape(len(classes), n).T
        if len({column.dtype for column in columns}) > 1:  # whole numbers and fractions
            counts = compact(counts)
        vocabulary = concatenated(self._new)
        return CountTable(
            classes,
            np.array([self._class_count[name] for name in classes]),
            replace(vocabulary, offsets=compact(vocabulary.offsets)),
            counts,
            compact(self._frequency[:n]),
        )


class Numbering:
    """A hash table that numbers keys from 0 in the order of their first occurrence.

    It uses open addressing with linear probing, and numpy instead of a dict, which would need a
    Python object for each of a million keys: E-011.  A slot holds the number of a key.  The keys
    are in a separate dense array, in the order of their numbers, because half of the slots are
    empty and page faults are expensive.
    """

    def __init__(self, first_bits: int = _FIRST_BITS) -> None:
        # Anybody can compute the hashes that are our keys.  Multiplying them by a secret odd
        # number prevents an attacker from choosing words whose keys all go to the same slot.
        self._secret = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
        self._n = 0
        # The key with number i is at i + 1; there is spare room at the end.
        self._key = np.full(1, _NO_KEY)
        self._make_slots(first_bits)

    def __len__(self) -> int:
        return self._n

    def numbers(self, keys: Keys) -> Integers:
        """Return the numbers of distinct keys, shape (n_keys,); new keys get the next numbers."""
        if 2 * (self._n + len(keys)) > len(self._slots):
            self._grow(len(keys))
        slot = self._places(keys)
        number = self._slots.take(slot).astype(np.int64)
        new = np.flatnonzero(number == 0)
        number[new] = np.arange(self._n + 1, self._n + 1 + len(new))
        self._n += len(new)
        self._key = with_room(self._key, self._n + 1)
        self._key[number[new]] = keys[new]
        self._put(number[new], slot[new])
        return number - 1

    def _make_slots(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, np.uint32)  # a key's place in _key; 0: the slot is free

    def _grow(self, n_more: int) -> None:
        """Make room for more keys; at least half of the slots stay free."""
        bits = len(self._slots).bit_length() - 1
        while 1 << bits < 2 * (self._n + n_more):
            bits += _GROWTH_BITS
        self._make_slots(bits)
        number = np.arange(1, self._n + 1)
        self._put(number, self._places(self._key[number]))

    def _places(self, keys: Keys) -> Integers:
        """Return each key's slot, or a free slot for it, shape (n_keys,)."""
        slot = ((keys * self._secret) >> self._shift).view(np.int64)
        unresolved = np.flatnonzero(self._is_taken(slot, keys))
        while len(unresolved):
            following = (slot.take(unresolved) + 1) & (len(self._slots) - 1)
            slot[unresolved] = following
            unresolved = unresolved[self._is_taken(following, keys.take(unresolved))]
        return slot

    def _is_taken(self, slot: Integers, keys: Keys) -> Booleans:
        """Return a mask of the slots that hold a different key, shape (n_keys,)."""
        held = self._key.take(self._slots.take(slot))
        return np.asarray((held != keys) & (held != _NO_KEY))

    def _put(self, numbers: Integers, slot: Integers) -> None:
        """Put keys into free slots; numbers: (n_keys,) their places in _key; slot: (n_keys,)."""
        while len(numbers):
            self._slots[slot] = numbers
            # If several keys want the same slot, one gets it and the others try the next one.
            numbers = numbers[self._slots.take(slot) != numbers]
            slot = self._places(self._key[numbers])


def with_room(numbers: Any, n: int) -> Any:
    """Return the array, extended by zeros to at least n numbers if it is shorter."""
    if n <= len(numbers):
        return numbers
    more = np.zeros(max(n, 2 * len(numbers)), numbers.dtype)
    more[: len(numbers)] = numbers
    return more


# --- repeated messages ----------------------------------------------------------------------

# `Unique` and `SampledMessages` are the two rules for copies, with and without a ledger.  Either
# says of all chunks in turn which messages are new (`new_of`), and returns the `training`.


class Unique:
    """Makes each message count once, in the class that it had last.

    A message that has another class when it comes again moves to that class.  It is told if any
    copy with this class was, since it moved there.
    """

    def __init__(self, weighting: str) -> None:
        self._weighting = weighting
        self.n_read = 0
        self.label: dict[int, str] = {}  # by digest
        self.told: set[int] = set()  # the digests of the messages whose classes were told
        self._copies = Copies()
        self._repeated = TableSum()  # the counts of repeated messages
        self._moves: list[tuple[Messages, str]] = []  # each message with the class that it leaves

    @property
    def n_repeated(self) -> int:
        """How many messages came again."""
        return self.n_read - len(self.label)

    def new_of(self, parts: Iterable[ReadMessages]) -> list[Messages]:
        """Return the messages that did not come before, with digests of their own."""
        new = []
        for part, told in parts:
            self.n_read += len(part.labels)
            digests = [self._copies.numbered(digest) for digest in part.digests.tolist()]
            part = part._replace(digests=np.array(digests, np.uint64))
            rows = enumerate(zip(digests, part.labels.tolist(), told, strict=True))
            is_new = np.array([self._is_new(part, row, *each) for row, each in rows], np.bool_)
            if not is_new.all():
                self._repeated.add(table_of_messages(part.take(~is_new), self._weighting))
            new.append(part.take(is_new))
        return new

    def _is_new(self, part: Messages, row: int, digest: int, name: str, told: bool) -> bool:
        before = self.label.get(digest)
        self.label[digest] = name
        if before is not None and before != name:
            self._moves.append((_message(part, row), before))
            self.told.discard(digest)
        if told:
            self.told.add(digest)
        return before is None

    def known(self) -> tuple[Keys, Strings, Booleans]:
        """Return the digests and classes of the messages, and whether each was told.

        Copies of a text have different digests.
        """
        digests = np.fromiter(self.label, np.uint64, len(self.label))
        labels = np.array(list(self.label.values()), np.str_)
        return digests, labels, np.array([digest in self.told for digest in self.label], np.bool_)

    def corrections(self, sample: Sequence[Messages]) -> CountTable:
        """Return the corrections that repeated messages make to the counts of everything read.

        The copy that was counted is moved if it is in the sample, else the copy that came again.
        The texts of tokens are left empty.
        """
        total = TableSum()
        total.add(negative(self._repeated.total()))
        if self._moves:
            sampled = {
                digest: (part, row)
                for part in sample
                for row, digest in enumerate(part.digests.tolist())
            }
        for copy, before in self._moves:
            at_hand = sampled.get(int(copy.digests[0]))
            message = copy if at_hand is None else _message(*at_hand)
            moved = table_of_messages(message._replace(labels=copy.labels), self._weighting)
            total.add(moved)
            total.add(negative(moved._replace(classes=(before,))))
        return total.total()

    def training(
        self, table: CountTable, sampling: Sampling, skipped: tuple[Skipped, ...]
    ) -> Training:
        """Return the input of training; table: the counts of everything read."""
        corrections = self.corrections(sampling.messages)
        if corrections.classes:
            total = overlaid(table, corrections)
            table = without_empty(possible_counts(total, self._weighting))
        sample = tuple(self.relabelled(sampling.messages))
        return Training(table, sample, sampling.bits, *self.known(), self.n_repeated, skipped)

    def relabelled(self, parts: Iterable[Messages]) -> Iterator[Messages]:
        """Yield messages that this object knows, with the classes that they had last."""
        if not self._moves:
            yield from parts
            return
        for part in parts:
            known = zip(part.digests.tolist(), part.labels.tolist(), strict=True)
            labels = [self.label.get(digest, name) for digest, name in known]
            yield part._replace(labels=np.array(labels, np.str_))


def repeated(digests: Keys) -> Keys:
    """Return the digests that come several times, each once, ascending."""
    ascending = np.sort(digests)
    return np.asarray(distinct(ascending[1:][ascending[1:] == ascending[:-1]]))


def _message(part: Messages, row: int) -> Messages:
    return part.take(np.arange(len(part.labels)) == row)


def table_of_messages(part: Messages, weighting: str) -> CountTable:
    """Return the counts of messages; the texts of tokens are left empty."""
    classes, y = np.unique(part.labels, return_inverse=True)
    vocabulary = without_texts(part.documents.tokens)
    return counted(tuple(classes.tolist()), vocabulary, part.documents, y, weighting)


def without_texts(keys: Keys) -> Vocabulary:
    """Return the vocabulary of these keys, in which every text is empty."""
    return Vocabulary(
        keys, np.empty(0, np.uint8), np.zeros(len(keys) + 1, np.int64), groups_of(keys)
    )


class SampledMessages:
    """Lets every copy count, in its own class, and remembers only the messages of the sample."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._told: dict[int, bool] = {}  # by digest, of all messages that ever were in the sample

    def new_of(self, parts: Iterable[ReadMessages]) -> list[Messages]:
        """Return the messages to add to the sample: wanted, and not added before."""
        new = []
        for part, told in parts:
            chosen = self._sampling.wants(part.digests)
            for row in np.flatnonzero(chosen).tolist():
                digest = int(part.digests[row])
                chosen[row] = digest not in self._told
                self._told.setdefault(digest, told[row])
            new.append(part.take(chosen))
        return new

    def training(
        self, table: CountTable, sampling: Sampling, skipped: tuple[Skipped, ...]
    ) -> Training:
        """Return the input of training; table: the counts of everything read."""
        sample = tuple(sampling.messages)
        digests = together([part.digests for part in sample], np.uint64)
        labels = together([part.labels for part in sample], np.str_)
        told = np.array([self._told[digest] for digest in digests.tolist()], np.bool_)
        return Training(
            table, sample, sampling.bits, digests, labels, told, 0, skipped, has_ledger=False
        )
