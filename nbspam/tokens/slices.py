"""Slices of an array, many at a time.

Secret: many slices are copied without a Python object for each.
"""

import numpy as np

from nbspam.arrays import Integers, Octets, places_of

_AT_ONCE = 1 << 13  # slices that are gathered together


def gather_slices(blob: Octets, starts: Integers, lengths: Integers) -> Octets:
    """Return the slices blob[start : start + length], concatenated."""
    gathered = [np.empty(0, np.uint8)]
    # In parts, because the positions of bytes take eight times as much memory as the bytes.
    for first in range(0, len(starts), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        gathered.append(blob.take(places_in(starts[some], lengths[some])))
    return np.concatenate(gathered)


def places_in(starts: Integers, lengths: Integers) -> Integers:
    """Return the positions of all elements of slices, shape (sum of lengths,)."""
    some = places_of(lengths)
    if not len(some):
        return np.empty(0, np.int64)
    start, length = starts.take(some), lengths.take(some)
    # A cumulative sum of steps: 1 within a slice, a jump at the start of each slice.
    last = np.cumsum(length)
    step = np.ones(int(last[-1]), np.int64)
    step[0] = start[0]
    step[last[:-1]] = start[1:] - (start + length)[:-1] + 1
    return np.cumsum(step, out=step)
