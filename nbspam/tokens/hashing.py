"""The hash function of tokens: for one word in plain Python, and for all words of a buffer.

Secret: how bytes become a number, eight at a time; both versions return the same number.
"""

import numpy as np

from nbspam.arrays import Integers, Keys, places_of

WORD_BYTES = 8
_MULTIPLY = 0x9E3779B97F4A7C15  # odd, close to 2**64 / golden ratio: Fibonacci hashing
_FINISH = 0xC2B2AE3D27D4EB4F  # odd, from the 64-bit finaliser family
_MODULO = (1 << 64) - 1
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(WORD_BYTES + 1)], np.uint64)


def reference_hash(value: int, word: bytes) -> int:
    """Return the hash of a word, eight bytes at a time; value: the salt to start from."""
    for start in range(0, len(word), WORD_BYTES):
        chunk = int.from_bytes(word[start : start + WORD_BYTES], "little")
        value = _mix(value ^ chunk, _MULTIPLY)
    return _mix(value, _FINISH)


def _mix(value: int, factor: int) -> int:
    value = value * factor & _MODULO
    return value ^ value >> 32


def reference_pair(first: int, second: int) -> int:
    """Return the hash of a pair of words, given the hashes of the words."""
    return _mix((first * _FINISH & _MODULO) ^ second, _MULTIPLY)


def hash_slices(buffer: bytes, start: Integers, length: Integers, salt: Keys) -> Keys:
    """Return the hashes of slices of a buffer, shape (n_slices,).

    start, length, salt: (n_slices,).  At least eight more bytes must follow the last slice.
    """
    value = _mix_all(first_bytes(buffer, start, length) ^ salt, _MULTIPLY)
    longer = places_of(length > WORD_BYTES)
    start, length = start.take(longer), length.take(longer)
    while len(longer):
        start += WORD_BYTES
        length -= WORD_BYTES
        more = first_bytes(buffer, start, length)
        value[longer] = _mix_all(value.take(longer) ^ more, _MULTIPLY)
        rest = places_of(length > WORD_BYTES)
        longer, start, length = longer.take(rest), start.take(rest), length.take(rest)
    return _mix_all(value, _FINISH)


def first_bytes(buffer: bytes, start: Integers, length: Integers) -> Keys:
    """Return the first eight bytes of each slice, or fewer, as a little-endian number.

    start, length: (n_slices,).  A length below 1 gives 0.
    """
    # A view: element i is the number in bytes i to i + 7.
    windows = np.ndarray(len(buffer) - WORD_BYTES + 1, "<u8", buffer, 0, (1,))
    return np.asarray(windows[start] & _MASKS.take(length, mode="clip"))


def _mix_all(value: Keys, factor: int) -> Keys:
    value *= np.uint64(factor)
    value ^= value >> np.uint64(32)
    return value


def hash_pairs(first: Keys, second: Keys) -> Keys:
    """Return the hashes of pairs of words, given the hashes of the words; all (n_pairs,)."""
    return _mix_all((first * np.uint64(_FINISH)) ^ second, _MULTIPLY)
