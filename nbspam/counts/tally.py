"""Counting batch by batch: the counts of one process, in a table that grows.

Secret: how counts are held while new tokens keep coming: a token is a row of growing arrays,
and its row is found in a hash table that looks up a whole batch of keys at once.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers, Keys
from nbspam.counts.table import CountTable, compact, counts_of
from nbspam.tokens.tokenizer import RIDER_MASK, TokenBatch
from nbspam.tokens.vocabulary import Vocabulary, batch_vocabulary, concatenated

# A process hands its counts over once it has this many tokens: the memory of all processes
# together grows with the number of distinct tokens, not with the mail.
MAX_TOKENS = 1 << 18
_FIRST_BITS = 18
_GROWTH_BITS = 2
_NO_KEY = np.uint64(1)  # no key: the low bits of keys are 0


class Tally:
    """The counts of batches; the text of every token is looked at once."""

    def __init__(self, weighting: str, max_tokens: int = MAX_TOKENS) -> None:
        self._weighting, self._max_tokens = weighting, max_tokens
        self._numbering = Numbering()
        self._new: list[Vocabulary] = []  # the tokens that were new in each batch
        self._class_count: dict[str, float] = {}
        # By the number of the token, with room for more of them.
        self._feature_count: dict[str, Floats] = {}
        self._frequency: Integers = np.zeros(0, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether it should be added to others, and a new one begun."""
        return len(self._numbering) > self._max_tokens

    def add(self, batch: TokenBatch, labels: Sequence[str], turn: int) -> None:
        """Count a batch; labels: the class of every document.  turn: see `table`."""
        n_known = len(self._numbering)
        number = self._numbering.numbers(batch.keys)
        new = batch_vocabulary(batch, number >= n_known)
        self._new.append(new.with_riders(min(turn, int(RIDER_MASK))))
        classes = sorted(set(labels))
        y = np.array([classes.index(label) for label in labels], np.int64)
        counts = counts_of(batch.documents, y, len(classes), batch.groups, self._weighting)
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
        """Return the counts, of tokens in the order in which they were met, for a TableSum.

        Each key carries the turn in which its token was met first (see `Vocabulary.with_riders`),
        so that in the sum of many processes' tables the text that was met first is kept.
        """
        n = len(self._numbering)
        classes = tuple(sorted(self._class_count))
        feature_count = np.zeros((n, len(classes)))
        for k, name in enumerate(classes):
            counts = self._feature_count[name][:n]
            feature_count[: len(counts), k] = counts
        vocabulary = concatenated(self._new)
        # Small numbers, because the table goes through a pipe.
        return CountTable(
            classes,
            np.array([self._class_count[name] for name in classes]),
            replace(vocabulary, offsets=compact(vocabulary.offsets)),
            compact(feature_count),
            compact(self._frequency[:n]),
        )


class Numbering:
    """Numbers keys from 0 in the order in which they are met.

    A hash table with open addressing and linear probing, written with numpy because a dict of
    a million keys takes a Python object each: E-011.  A slot holds the number of a key; the keys
    themselves stand in the order of their numbers, since half of the slots are empty and page
    faults are expensive.
    """

    def __init__(self, first_bits: int = _FIRST_BITS) -> None:
        # Keys are hashes that anybody can compute.  They are multiplied by a secret odd number,
        # so that nobody can write words whose keys all want the same slot.
        self._secret = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
        self._n = 0
        self._key = np.full(1, _NO_KEY)  # by number, from 1 on, with room for more
        self._make_slots(first_bits)

    def __len__(self) -> int:
        return self._n

    def numbers(self, keys: Keys) -> Integers:
        """Return the numbers of distinct keys, (n_keys,), from 0; new ones get the next."""
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
        self._slots = np.zeros(1 << bits, np.uint32)  # numbers; 0 where a slot is free

    def _grow(self, n_more: int) -> None:
        """Make room for more keys, so that at least half of the slots stay free."""
        bits = len(self._slots).bit_length() - 1
        while 1 << bits < 2 * (self._n + n_more):
            bits += _GROWTH_BITS
        self._make_slots(bits)
        number = np.arange(1, self._n + 1)
        self._put(number, self._places(self._key[number]))

    def _places(self, keys: Keys) -> Integers:
        """Return the slots that hold the keys, or where they may go, shape (n_keys,)."""
        slot = ((keys * self._secret) >> self._shift).view(np.int64)
        unresolved = np.flatnonzero(self._is_taken(slot, keys))
        while len(unresolved):
            following = (slot.take(unresolved) + 1) & (len(self._slots) - 1)
            slot[unresolved] = following
            unresolved = unresolved[self._is_taken(following, keys.take(unresolved))]
        return slot

    def _is_taken(self, slot: Integers, keys: Keys) -> Booleans:
        """Return which slots hold another key."""
        held = self._key.take(self._slots.take(slot))
        return np.asarray((held != keys) & (held != _NO_KEY))

    def _put(self, numbers: Integers, slot: Integers) -> None:
        """Put numbers of known keys where they may go, shape (n_keys,) both."""
        while len(numbers):
            self._slots[slot] = numbers
            # Of several keys that want the same slot, one got it; the others try the next slot.
            numbers = numbers[self._slots.take(slot) != numbers]
            slot = self._places(self._key[numbers])


def with_room(numbers: Any, n: int) -> Any:
    """Return an array with room for at least n numbers, zeros after those given."""
    if n <= len(numbers):
        return numbers
    more = np.zeros(max(n, 2 * len(numbers)), numbers.dtype)
    more[: len(numbers)] = numbers
    return more
