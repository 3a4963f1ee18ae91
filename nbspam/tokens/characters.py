"""Runs of characters: short slices of what is written, wherever they begin.

They see what words do not: endings, misspellings, prices, scripts without spaces.  They are
many, so only the beginning of a field is cut into them.

Secret: what a run is, and how all runs of many fields are found at once.
"""

from collections.abc import Iterator

import numpy as np

from nbspam.arrays import Integers

MAX_RUN = 5  # characters
MAX_BYTES = 1000  # of a field


def folded(text: bytes) -> bytes:
    """Return what of a field is cut into runs: its beginning, in lower case, in one line."""
    # Zero bytes are white space too: a hash does not see them at the end of a run.
    return b" ".join(text[:MAX_BYTES].lower().replace(b"\0", b" ").split())


def reference_runs(text: bytes) -> Iterator[bytes]:
    """Yield all runs of 1 to MAX_RUN characters in a folded text: the definition."""
    starts = [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
    for n in range(1, MAX_RUN + 1):
        for start, end in zip(starts, starts[n:], strict=False):
            yield text[start:end]


def find_runs(buffer: bytes, begin: int, fields: Integers) -> tuple[Integers, Integers, Integers]:
    """Return start, length and field of every run in a buffer of UTF-8, from begin on.

    fields: (n_fields + 1,) where fields start; a zero byte stands behind each.
    """
    text = np.frombuffer(buffer, np.uint8)[begin : fields[-1]]
    # Where a character, or the zero byte behind a field, begins.
    place = np.flatnonzero((text & 0xC0) != 0x80) + begin
    field_of = np.searchsorted(fields, place, "right") - 1
    parts = []
    for n in range(1, MAX_RUN + 1):
        inside = field_of[n:] == field_of[:-n]
        start = place[:-n][inside]
        parts.append((start, place[n:][inside] - start, field_of[:-n][inside]))
    start, length, of = (np.concatenate(part) for part in zip(*parts, strict=True))
    return start, length, of
