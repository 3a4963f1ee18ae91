"""Values in lines of JSON: each is checked, because people edit the lines.

Secret: what numbers a model may have.
"""

from datetime import date
from typing import Any

_EPOCH = date(1970, 1, 1).toordinal()
_MAX_DAY = (1 << 16) - 1
MAX_COUNT = 2.0**53  # floats above it do not represent all whole numbers


def shown_day(day: int) -> str:
    """Return a day, counted from 1970-01-01, as yyyy-mm-dd."""
    return date.fromordinal(_EPOCH + day).isoformat()


def as_text(value: Any) -> str:
    """Return a text; raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def as_number(value: Any) -> float:
    """Return a count; raises ValueError for anything else."""
    if type(value) not in (int, float) or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"{value!r:.40} is not a number from 0 up")
    return float(value)


def as_whole(value: Any, most: int) -> int:
    """Return a whole number from 0 to most; raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is not a whole number from 0 to {most}")
    return value


def as_day(value: Any) -> int:
    """Return the day, counted from 1970-01-01, of yyyy-mm-dd; raises ValueError or TypeError."""
    return as_whole(date.fromisoformat(as_text(value)).toordinal() - _EPOCH, _MAX_DAY)
