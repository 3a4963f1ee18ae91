"""Runs of characters without spaces between words, as pairs of characters, in a whole buffer.

Secret: how such runs are found in UTF-8.
"""

from functools import cache

import numpy as np

from nbspam.arrays import Columns, Integers
from nbspam.tokens.documents import offsets_of
from nbspam.tokens.spelling.normalize import SPACELESS, bounds_of

_WIDTH = 4  # bytes of the longest character
_FIRST_BYTE = 0xE0  # or more: no shorter character is of a script without spaces
_USUAL = 3  # bytes of nearly all such characters; the others have one more
_FOUR_BYTES = 0xF0  # the first byte of characters of four bytes, or more


@cache
def _bounds() -> Columns:
    """Return where the ranges of SPACELESS begin and end, as numbers that sort as UTF-8 does."""
    bounds = [bound.encode().ljust(_WIDTH, b"\0") for bound in bounds_of(SPACELESS)]
    return np.frombuffer(b"".join(bounds), ">u4")


def in_pairs(buffer: bytes, start: Integers, length: Integers) -> tuple[Integers, Integers]:
    """Return the words that words are counted as (see `normalize.in_pairs`), in their order.

    start, length: (n_words,).
    """
    text = np.frombuffer(buffer, np.uint8)
    runs = np.flatnonzero((text.take(start) >= _FIRST_BYTE) & (length > 2 * _USUAL))
    if not len(runs):
        return start, length
    windows = np.ndarray(len(buffer) - _WIDTH + 1, ">u4", buffer, 0, (1,))
    runs = runs[np.searchsorted(_bounds(), windows[start.take(runs)], "right") % 2 == 1]
    if not len(runs):
        return start, length
    begin, extent = start.take(runs), length.take(runs)
    four = np.flatnonzero(text >= _FOUR_BYTES)
    run = np.searchsorted(begin, four, "right") - 1
    inside = (run >= 0) & (four < (begin + extent).take(run))
    four, run = four[inside], run[inside]
    n_fours = np.bincount(run, minlength=len(runs))
    n_pairs = (extent - n_fours) // _USUAL - 1
    times = np.ones(len(start), np.int64)
    times[runs] = n_pairs
    place = np.cumsum(times) - times  # of each word's first pair among all
    # The four-byte characters: which each is in its run, and its place among all pairs.
    character = four - begin.take(run) - (np.arange(len(four)) - offsets_of(n_fours).take(run))
    character //= _USUAL
    at = place.take(runs).take(run) + character
    begins_pair, steps_over = (character < n_pairs.take(run) - n for n in (0, 1))
    extra = np.zeros(len(start), np.int64)
    extra[runs] = np.bincount(run[steps_over], minlength=len(runs))
    # A cumulative sum of steps: of one character within a run, a jump where a word begins.
    step = np.full(int(times.sum()), _USUAL)
    last = start + _USUAL * (times - 1) + extra
    step[place] = start - np.append(0, last[:-1])
    step[at[steps_over] + 1] += 1
    length = length.copy()
    length[runs] = 2 * _USUAL
    lengths = length.repeat(times)
    lengths[at[begins_pair]] += 1
    lengths[at[character > 0] - 1] += 1
    return np.cumsum(step, out=step), lengths
