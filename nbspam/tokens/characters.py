"""Runs of characters (character n-grams): every slice of 1 to 5 characters of a text.

They catch what words miss: endings, misspellings, prices, scripts without spaces.  Because there
are so many of them, only the beginning of a field is cut into runs.  Scripts without spaces are
cut as they are written, not as the pairs of characters that are their words.

Secret: what a run is, and how the runs of many fields are found at once.
"""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nbspam.arrays import Integers

MAX_RUN = 5  # characters
MAX_BYTES = 1000  # at the beginning of a field


def folded(text: bytes) -> bytes:
    """Return the part of a field that is cut into runs: its beginning, as one lower-case line."""
    # Zero bytes become white space, because a hash ignores them at the end of a run.
    return b" ".join(text[:MAX_BYTES].lower().replace(b"\0", b" ").split())


def reference_runs(text: bytes) -> Iterator[bytes]:
    """Yield all runs of 1 to MAX_RUN characters in a folded text; this function defines them."""
    starts = [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
    for n in range(1, MAX_RUN + 1):
        for start, end in zip(starts, starts[n:], strict=False):
            yield text[start:end]


def find_runs(buffer: bytes, begin: int, fields: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the start, length and field of every run in a UTF-8 buffer, from `begin` on.

    Runs are in the order of where they start.

    fields: (n_fields + 1,) where fields start; a zero byte follows each field.
    """
    text = np.frombuffer(buffer, np.uint8)[begin : fields[-1]]
    # Where each character begins; the zero byte after a field counts as one.
    place = np.flatnonzero((text & 0xC0) != 0x80) + begin
    field_of = np.searchsorted(fields, place, "right") - 1
    # Row i has the places, and the fields, of the MAX_RUN characters after character i.
    ends = _following(place, 0)
    inside = _following(field_of, -1) == field_of[:, None]
    n_runs = inside.sum(axis=1)
    start = np.repeat(place, n_runs)
    return start, ends[inside] - start, np.repeat(field_of, n_runs)


def _following(values: Integers, beyond: int) -> Integers:
    """Return the MAX_RUN elements after each one, shape (n_values, MAX_RUN).

    beyond: what follows the last element.
    """
    padded = np.append(values, np.full(MAX_RUN + 1, beyond))
    return sliding_window_view(padded, MAX_RUN + 1)[:-1, 1:]
