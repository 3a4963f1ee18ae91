"""The terminal: text that is safe to print, and the progress of long loops.

Strangers choose the names of files and the tokens of received mail.  A loop reports by

    for number in tracked(range(k), "folds"):
        ...

Unless somebody watches, this costs nothing.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


# --- text ------------------------------------------------------------------------------------

_FEW = 5  # lines of diagnosis of one kind


def first_few(lines: Sequence[str], of_more: str) -> list[str]:
    """Return the first of these lines, and one more that counts the others."""
    more = len(lines) - _FEW
    return [*lines[:_FEW], *([f"{of_more} {more:,} more"] if more > 0 else [])]


def printable(text: str) -> str:
    r"""Return text in which unprintable characters are escaped, for example \x1b or \u202e.

    Unprintable is what `str.isprintable` says: control and format characters,
    bidirectional overrides, lone surrogates, line separators, unassigned code points.
    A joiner stays where words need it: behind letters from Arabic on, and emoji; a mark of
    direction, in text with letters from right to left.
    """
    if text.isprintable():
        return text
    is_mixed = any("\u0590" < c < "\u0900" and c.isprintable() for c in text)
    marks = "\u061c\u200e\u200f" if is_mixed else ""
    return "".join(
        c
        if c.isprintable()
        or c in marks
        or (c in "\u200c\u200d" and before > "\u0600" and before.isprintable())
        else c.encode("unicode_escape").decode("ascii")
        for before, c in pairwise(f" {text}")
    )


def readable_json(value: object, encoding: str | None = "utf-8") -> str:
    r"""Return JSON on one line; only unprintable characters are escaped, as in \u202e.

    encoding: that of the stream it is for; one that is not UTF-8 gets ASCII.
    """
    import json

    if (encoding or "utf-8").lower().replace("-", "") != "utf8":
        return json.dumps(value)
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def finite(value: float | None) -> float | None:
    """Return a number for JSON, which has no infinity and no NaN: null replaces them."""
    return value if value is not None and isfinite(value) else None


def amount_text(n: int, noun: str) -> str:
    """Return a number of things, such as `1 message` or `1,024 messages`; noun: in the plural."""
    singular = noun.removesuffix("es" if noun.endswith("sses") else "s")
    return f"{n:,} {singular if n == 1 else noun}"


def readable_number(value: float, digits: int = 6) -> str:
    """Return a number with so many digits, or with one more than are before its point.

    >>> readable_number(0.1234567), readable_number(1_234_567.89), readable_number(20_240_131)
    ('0.123457', '1234567.9', '20240131')
    """
    before = len(f"{abs(value):.0f}")
    return f"{value:.{max(digits, before + 1) if before < 17 else digits}g}"


def readable_probability(value: float, decimals: int) -> str:
    """Return a probability with so many decimals, or if it is too small for these, two digits.

    >>> [readable_probability(each, 4) for each in (1 / 3, 0.001, 0.00003, 0.0)]
    ['0.3333', '0.0010', '3e-05', '0.0000']
    """
    is_shown = value == 0 or value >= 10 ** (1 - decimals)
    return f"{value:.{decimals}f}" if is_shown else f"{value:.2g}"


def raw_name(name: str) -> bytes:
    """Return a file name as the bytes that the system knows it by.

    A name that no file can have, such as one of a cell with lone surrogates, is escaped.
    """
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        return printable(name).encode()


def display_width(text: str) -> int:
    """Return how many columns of a terminal text takes; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "FW") for c in text
    )


def left(text: str, width: int) -> str:
    """Return text padded on its right to this many columns of a terminal."""
    return text + " " * (width - display_width(text))


def right(text: str, width: int) -> str:
    """Return text padded on its left to this many columns of a terminal."""
    return " " * (width - display_width(text)) + text


def clipped(text: str, width: int, keeps_end: bool = True) -> str:
    """Return text, cut to so many columns of a terminal; … replaces its middle, or its end."""
    if display_width(text) <= width:
        return text
    first, last = text[:width], text[len(text) - width // 2 :] if keeps_end else ""
    while last and (2 * display_width(last) >= width or not display_width(last[0])):
        last = last[1:]
    while first and display_width(first + last) >= width:
        first = first[:-1]
    return f"{first}…{last}"


# --- progress --------------------------------------------------------------------------------


class Extent(NamedTuple):
    """How long a loop is; a total of None is not known."""

    total: Callable[[], int | None]  # called when it is to be shown, as it may take time
    weight: Callable[[Any], int] | None = None  # a thing's part of the total; None: one


# Yields things of this name, and may show how many of them have passed.
Watch = Callable[[Iterable[Any], str, Extent], Iterator[Any]]
_watches: list[Watch] = []  # the last one is in force


def tracked(things: Iterable[T], what: str, extent: Extent | int | None = None) -> Iterable[T]:
    """Return things to loop over; a watcher sees how many have passed.

    what: the name of the things, in the plural.  extent: how many they are, if `len` of them
    does not tell.
    """
    if not _watches:
        return things
    if extent is None and isinstance(things, Sized):
        extent = len(things)
    if not isinstance(extent, Extent):
        total = extent
        extent = Extent(lambda: total)
    return _watches[-1](things, what, extent)


def is_watched() -> bool:
    """Return whether somebody sees how loops go on."""
    return bool(_watches)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let loops within the context be watched."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)
