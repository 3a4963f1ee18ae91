"""The order in which messages came."""

import re
from collections.abc import Sequence

import numpy as np

from nbspam.arrays import Integers

_HEAD = 1 << 16  # bytes of a message in which its date is looked for
_BLANK = re.compile(rb"\r?\n\r?\n")
_DATE = re.compile(
    rb"^Date:\s{0,9}(?:[a-z]{1,9},?\s{1,9})?(\d\d?)[ -]{1,9}([a-z]{3})[ -]{1,9}(\d{4}|\d\d)\s{1,9}"
    rb"(\d\d?):(\d\d)(?::(\d\d))?(?:\s{0,9}([+-])(\d\d)(\d\d))?",
    re.MULTILINE | re.IGNORECASE,
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


# --- the order in which messages came -----------------------------------------------------


def arrival(
    order: str | None, names: Sequence[str], y: Integers, dates: Sequence[float | None] = ()
) -> Integers:
    """Return the rows in the order in which their messages came.

    order is one of:
    given: as they stand; name: by the first number in the file's name; date: by the dates
    given.  What has no number or date stays behind the message before it.  None: as they
    stand, but by name if one class stands behind the other.
    """
    if order is None:
        is_sorted_by_class = np.count_nonzero(np.diff(y)) < len(np.unique(y))
        order = "name" if is_sorted_by_class else "given"
    if order == "given":
        return np.arange(len(y))
    keys = [_number(name) for name in names] if order == "name" else dates
    when, filled = -np.inf, []
    for key in keys:
        when = when if key is None else key
        filled.append(when)
    return np.argsort(np.array(filled), kind="stable")


def _number(name: str) -> float | None:
    """Return the first number in a file's name: 7 of ham/0007.1999-12-14.txt."""
    found = re.search(r"[0-9]{1,15}", re.split(r"[/\\]", name)[-1])
    return float(found[0]) if found else None


def date_of(data: bytes) -> float | None:
    """Return when a message says it was sent, in seconds since 1970, or None."""
    from datetime import UTC, datetime

    found = _DATE.search(_BLANK.split(data[:_HEAD], 1)[0])
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = (
        (part or b"0").decode().lower() for part in found.groups()
    )
    century = {2: 1900 if int(year) >= 50 else 2000}.get(len(year), 0)
    try:
        local = datetime(
            century + int(year),
            _MONTHS.index(month) + 1,
            int(day),
            int(hour),
            int(minute),
            min(int(second), 59),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    ahead = 3600 * int(hours) + 60 * int(minutes)
    return local.timestamp() - (-ahead if sign == "-" else ahead)
