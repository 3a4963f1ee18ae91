"""Keys to numbers, in the order in which they are met.

Secret: how a key is found among those met before (open addressing, linear probing).
"""

import os
from typing import Any

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys

_FIRST_BITS = 18
_GROWTH_BITS = 2
_EMPTY = np.uint64(1)  # no key: their last bits are riders', which are 0
_NO_NUMBER = np.int64(-1)


class Numbering:
    """A hash table that is asked for many keys at once."""

    def __init__(self) -> None:
        # Keys are hashes that anybody can compute.  Multiplied by a secret odd number, nobody
        # can write words whose keys all want the same slot.
        self._secret = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
        self._n = 0
        self._make_slots(_FIRST_BITS)

    def __len__(self) -> int:
        return self._n

    def numbers(self, keys: Keys) -> Integers:
        """Return the numbers of different keys, (n_keys,); new ones get the next, in order."""
        if 2 * (self._n + len(keys)) > len(self._key):
            self._grow(len(keys))
        slot = self._places(keys)
        number = self._number.take(slot)
        new = np.flatnonzero(number == _NO_NUMBER)
        number[new] = np.arange(self._n, self._n + len(new))
        self._put(keys, slot, new, number.take(new))
        self._n += len(new)
        return number

    def _make_slots(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._key = np.full(1 << bits, _EMPTY)
        self._number = np.full(1 << bits, _NO_NUMBER)

    def _grow(self, n_more: int) -> None:
        """Make room for so many more keys: half of the slots stay empty at least."""
        filled = np.flatnonzero(self._key != _EMPTY)
        keys, numbers = self._key[filled], self._number[filled]
        bits = len(self._key).bit_length() - 1
        while 1 << bits < 2 * (self._n + n_more):
            bits += _GROWTH_BITS
        self._make_slots(bits)
        self._put(keys, self._places(keys), np.arange(len(keys)), numbers)

    def _places(self, keys: Keys) -> Integers:
        """Return the slots that hold the keys, or where they may go, shape (n_keys,)."""
        slot = ((keys * self._secret) >> self._shift).view(np.int64)
        going_on = np.flatnonzero(self._is_taken(slot, keys))
        while len(going_on):
            following = (slot.take(going_on) + 1) & (len(self._key) - 1)
            slot[going_on] = following
            going_on = going_on[self._is_taken(following, keys.take(going_on))]
        return slot

    def _is_taken(self, slot: Integers, keys: Keys) -> Booleans:
        """Return which slots hold another key."""
        held = self._key.take(slot)
        return np.asarray((held != keys) & (held != _EMPTY))

    def _put(self, keys: Keys, slot: Integers, new: Integers, numbers: Integers) -> None:
        """Put the new ones of these keys where they may go; slot is set to where they are."""
        waiting = new
        while len(waiting):
            own = keys.take(waiting)
            self._key[slot.take(waiting)] = own
            # Of those that want the same slot one has got it.
            lost = self._key.take(slot.take(waiting)) != own
            waiting = waiting[lost]
            slot[waiting] = self._places(own[lost])
        self._number[slot.take(new)] = numbers


def with_room(numbers: Any, n: int) -> Any:
    """Return an array for n numbers at least, zeros behind those given."""
    if n <= len(numbers):
        return numbers
    more = np.zeros(max(n, 2 * len(numbers)), numbers.dtype)
    more[: len(numbers)] = numbers
    return more
