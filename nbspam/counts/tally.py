"""The tally: the counts of one process, batch by batch.

Secret: how counts are held while new tokens keep coming.  A token is a row of growing arrays,
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

# A process hands its counts over when it has more tokens than this, so that the memory of all
# processes grows with the number of distinct tokens, not with the amount of mail.
MAX_TOKENS = 1 << 18
_FIRST_BITS = 18
_GROWTH_BITS = 2
_NO_KEY = np.uint64(1)  # never a key, because the low bits of keys are 0


class Tally:
    """The counts of batches; copies the text of each token only once."""

    def __init__(self, weighting: str, max_tokens: int = MAX_TOKENS) -> None:
        self._weighting, self._max_tokens = weighting, max_tokens
        self._numbering = Numbering()
        self._new: list[Vocabulary] = []  # the new tokens of each batch
        self._class_count: dict[str, float] = {}
        # Indexed by the number of the token, with spare room at the end.
        self._feature_count: dict[str, Floats] = {}
        self._frequency: Integers = np.zeros(0, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether this tally should be handed over and a new one started."""
        return len(self._numbering) > self._max_tokens

    def add(self, batch: TokenBatch, labels: Sequence[str], turn: int) -> None:
        """Count a batch; labels: the class of each document; turn: see `table`."""
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
        """Return the counts, for a `TableSum`; tokens are in the order of their first occurrence.

        The low bits of each key, its rider, hold the turn in which the token came first: the
        number of the chunk of messages.  So the sum of several processes' tables keeps, of the
        texts of a key, the one that came first.
        """
        n = len(self._numbering)
        classes = tuple(sorted(self._class_count))
        feature_count = np.zeros((n, len(classes)))
        for k, name in enumerate(classes):
            counts = self._feature_count[name][:n]
            feature_count[: len(counts), k] = counts
        vocabulary = concatenated(self._new)
        # In 32 bits where possible, because the table goes through a pipe.
        return CountTable(
            classes,
            np.array([self._class_count[name] for name in classes]),
            replace(vocabulary, offsets=compact(vocabulary.offsets)),
            compact(feature_count),
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
        """Return which slots hold a different key, shape (n_keys,)."""
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
