"""Keys to numbers, in the order in which they are met.

Secret: how a key is found among those met before (open addressing, linear probing).
"""

import os
from typing import Any

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys

_FIRST_BITS = 18
_GROWTH_BITS = 2
_NO_KEY = np.uint64(1)  # the last bits of keys are riders', which are 0


class Numbering:
    """A hash table that is asked for many keys at once.

    A slot holds the number of a key; the keys stand in the order of their numbers, since
    half of the slots are empty, and memory that is touched for the first time is dear.
    """

    def __init__(self) -> None:
        # Keys are hashes that anybody can compute.  Multiplied by a secret odd number, nobody
        # can write words whose keys all want the same slot.
        self._secret = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
        self._n = 0
        self._key = np.full(1, _NO_KEY)  # by number, from 1 on, with room for more
        self._make_slots(_FIRST_BITS)

    def __len__(self) -> int:
        return self._n

    def numbers(self, keys: Keys) -> Integers:
        """Return the numbers of different keys, (n_keys,), from 0; new ones get the next."""
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
        self._slots = np.zeros(1 << bits, np.uint32)  # numbers; 0 where there is none

    def _grow(self, n_more: int) -> None:
        """Make room for so many more keys: half of the slots stay empty at least."""
        bits = len(self._slots).bit_length() - 1
        while 1 << bits < 2 * (self._n + n_more):
            bits += _GROWTH_BITS
        self._make_slots(bits)
        number = np.arange(1, self._n + 1)
        self._put(number, self._places(self._key[number]))

    def _places(self, keys: Keys) -> Integers:
        """Return the slots that hold the keys, or where they may go, shape (n_keys,)."""
        slot = ((keys * self._secret) >> self._shift).view(np.int64)
        going_on = np.flatnonzero(self._is_taken(slot, keys))
        while len(going_on):
            following = (slot.take(going_on) + 1) & (len(self._slots) - 1)
            slot[going_on] = following
            going_on = going_on[self._is_taken(following, keys.take(going_on))]
        return slot

    def _is_taken(self, slot: Integers, keys: Keys) -> Booleans:
        """Return which slots hold another key."""
        held = self._key.take(self._slots.take(slot))
        return np.asarray((held != keys) & (held != _NO_KEY))

    def _put(self, numbers: Integers, slot: Integers) -> None:
        """Put numbers of known keys where they may go, shape (n_keys,) both."""
        while len(numbers):
            self._slots[slot] = numbers
            # Of those that want the same slot one has got it.
            numbers = numbers[self._slots.take(slot) != numbers]
            slot = self._places(self._key[numbers])


def with_room(numbers: Any, n: int) -> Any:
    """Return an array for n numbers at least, zeros behind those given."""
    if n <= len(numbers):
        return numbers
    more = np.zeros(max(n, 2 * len(numbers)), numbers.dtype)
    more[: len(numbers)] = numbers
    return more
