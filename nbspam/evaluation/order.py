"""The order in which messages arrived: by their dates or the numbers in their names."""

import re
from collections.abc import Sequence

import numpy as np

from nbspam.arrays import Integers

_HEAD_BYTES = 1 << 16  # in which the Date header is looked for
_BLANK = re.compile(rb"\r?\n\r?\n")
# The value may be folded, and a hostile one must not keep the parser busy.
_DATE = re.compile(rb"^Date:((?:.|\n[ \t]){1,200})", re.MULTILINE | re.IGNORECASE)


def arrival(
    order: str | None, names: Sequence[str], y: Integers, dates: Sequence[float | None] = ()
) -> Integers:
    """Return the rows in the order in which their messages arrived, shape (n_docs,).

    order: "given": as they are; "name": by the first number in the file name; "date": by
    the given dates.  A message without number or date stays behind the one before it.
    None: by name if each class is one run of rows, else as they are.
    """
    if order is None:
        is_sorted_by_class = np.count_nonzero(np.diff(y)) < len(np.unique(y))
        order = "name" if is_sorted_by_class else "given"
    if order == "given":
        return np.arange(len(y))
    keys = [_number(name) for name in names] if order == "name" else dates
    latest, filled = -np.inf, []
    for key in keys:
        latest = latest if key is None else key
        filled.append(latest)
    return np.argsort(np.array(filled), kind="stable")


def _number(name: str) -> float | None:
    """Return the first number in a file name: 7 of ham/0007.1999-12-14.txt."""
    found = re.search(r"[0-9]{1,15}", re.split(r"[/\\]", name)[-1])
    return float(found[0]) if found else None


def date_of(data: bytes) -> float | None:
    """Return when a message says it was sent, in seconds since 1970, or None.

    It never raises, and reads no more than 200 bytes of a Date header.  A time without a zone
    is taken as UTC, so that the order does not depend on this machine.
    """
    from datetime import UTC, datetime
    from email.utils import parsedate_tz  # here, because the import takes 10 ms

    found = _DATE.search(_BLANK.split(data[:_HEAD_BYTES], 1)[0])
    parsed = parsedate_tz(found[1].decode("latin-1")) if found else None
    if parsed is None:
        return None
    year, month, day, hour, minute, second, *_, offset = parsed
    try:
        # A leap second is the second before it; `datetime` has none.
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        return local.timestamp() - (offset or 0)
    except (ValueError, OverflowError):  # no such day or time, or not in the years 1 to 9999
        return None
