"""Runs of characters without spaces between words, as pairs of characters, in a whole buffer.

Secret: how such runs are found in UTF-8.
"""

import re

import numpy as np

from nbspam.arrays import Integers
from nbspam.tokens.normalize import SPACELESS
from nbspam.tokens.slices import places_in

_WIDTH = 4  # bytes of the longest character
# Where the ranges of SPACELESS begin and end, as numbers that sort as UTF-8 does.
_BOUNDS = np.array(
    [
        int.from_bytes(chr(ord(bound) + at).encode().ljust(_WIDTH, b"\0"), "big")
        for first, last in re.findall("(.)(?:-(.))?", SPACELESS[1:-1])
        for at, bound in enumerate((first, last or first))
    ],
    np.uint32,
)
_FIRST_BYTE = _BOUNDS[0] >> 24


def in_pairs(buffer: bytes, start: Integers, length: Integers) -> tuple[Integers, Integers]:
    """Return the words that words are counted as (see `normalize.in_pairs`), in their order.

    start, length: (n_words,).
    """
    text = np.frombuffer(buffer, np.uint8)
    runs = np.flatnonzero(text.take(start) >= _FIRST_BYTE)
    if not len(runs):
        return start, length
    windows = np.ndarray(len(buffer) - _WIDTH + 1, ">u4", buffer, 0, (1,))
    number = windows[start.take(runs)]
    runs = runs[np.searchsorted(_BOUNDS, number, "right") % 2 == 1]
    # Where all characters of the buffer begin, and which of them are in each run.
    places = np.flatnonzero((text & 0xC0) != 0x80)
    first = np.searchsorted(places, start.take(runs))
    n_pairs = np.searchsorted(places, (start + length).take(runs)) - first - 1
    several = n_pairs > 1
    runs, first, n_pairs = runs[several], first[several], n_pairs[several]
    times = np.ones(len(start), np.int64)
    times[runs] = n_pairs
    into = places_in((np.cumsum(times) - times).take(runs), n_pairs)
    of = places_in(first, n_pairs)
    start, length = start.repeat(times), length.repeat(times)
    begin = places.take(of)
    start[into] = begin
    length[into] = places.take(of + 2) - begin
    return start, length
