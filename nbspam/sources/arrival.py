"""The order in which messages arrived, for judging and learning them one by one.

An index, a table or a mailbox is a series: its items are in an order.  Folders have none, and
their files come class by class.  No user gets all ham before the first spam, so the files are
put in the order of their numbers or, if that does not mix the classes either, shuffled.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf, log

from nbspam.errors import InputError
from nbspam.sources.items import Item

GIVEN, BY_NAME, BY_DATE, SHUFFLED = "given", "name", "date", "shuffled"
ORDERS = {
    GIVEN: "in the order of the source",
    BY_NAME: "in the order of the numbers in the file names",
    BY_DATE: "in the order of their dates",
    SHUFFLED: "in a random order",
}
_STRETCHES = 10  # parts of a stream that are compared
# Classes are mixed if the part of the stream gives at most this share of the entropy of the
# class.  In the order of numbers it tells nothing of Enron, .6 of SpamAssassin: E-087.
_MIXED = 0.1
_HEAD_BYTES = 1 << 16  # in which the Date header is looked for
_BLANK = re.compile(rb"\r?\n\r?\n")
# The value may be folded, and a hostile one must not keep the parser busy.
_MOST_OF_DATE = 200  # bytes
_DATE = re.compile(rb"^Date:((?:.|\n[ \t]){1,200})", re.MULTILINE | re.IGNORECASE)


def arranged(
    items: Iterable[Item], order: str | None = None, seed: int = 0
) -> tuple[list[Item], str]:
    """Return the items in the order in which they arrived, and which of ORDERS that is.

    order: one of ORDERS, by the first number in the file name, by the Date header, or drawn by
    seed; an item without number or date stays behind the one before it.  None: as given, if
    they are series that mix classes; else by name if that mixes the classes, else shuffled.
    """
    items = list(items)
    if order is None:
        order = _found(items)
    if order == BY_NAME:
        items = _sorted(items, _number)
    elif order == BY_DATE:
        items = _sorted(items, _sent)
    elif order == SHUFFLED:
        random.Random(seed).shuffle(items)
    return items, order


def _found(items: list[Item]) -> str:
    """Return the order, one of ORDERS, in which the items seem to have arrived."""
    classes = defaultdict(set)
    for item in items:
        classes[item.series].add(item.label)
    is_given = None not in classes and any(len(labels) > 1 for labels in classes.values())
    if is_given or len(set().union(*classes.values())) < 2:
        return GIVEN
    by_name = _sorted(items, _number)
    return BY_NAME if _are_mixed([str(item.label) for item in by_name]) else SHUFFLED


def _are_mixed(labels: Sequence[str]) -> bool:
    """Return whether the place in the stream is hardly informative about the class.

    By the mutual information of class and stretch, less its expectation by chance
    (Miller 1955: degrees of freedom / 2n nats).
    """
    n = len(labels)
    stretches = [i * _STRETCHES // n for i in range(n)]
    of_class, of_stretch = _entropy(labels), _entropy(stretches)
    told = of_class + of_stretch - _entropy(list(zip(stretches, labels, strict=True)))
    by_chance = (len(set(labels)) - 1) * (len(set(stretches)) - 1) / (2 * n)
    return told - by_chance < _MIXED * of_class


def _entropy(values: Sequence[object]) -> float:
    """Return the entropy of the values' distribution in nats."""
    n = len(values)
    return sum(count / n * log(n / count) for count in Counter(values).values())


def _sorted(items: list[Item], key_of: Callable[[Item], float | None]) -> list[Item]:
    latest, keys = -inf, []
    for item in items:
        key = key_of(item)
        latest = latest if key is None else key
        keys.append(latest)
    return [items[row] for row in sorted(range(len(items)), key=keys.__getitem__)]


def _number(item: Item) -> float | None:
    """Return the first number in a file name: 7 of ham/0007.1999-12-14.txt."""
    found = re.search(r"[0-9]{1,15}", re.split(r"[/\\]", item.name)[-1])
    return float(found[0]) if found else None


def _sent(item: Item) -> float | None:
    with suppress(InputError):  # the later reader of the item reports the error
        return date_of(item.read())
    return None


def date_of(data: bytes) -> float | None:
    """Return when a message says it was sent, in seconds since 1970, or None.

    It never raises, and reads no more than 200 bytes of a Date header.
    """
    found = _DATE.search(_BLANK.split(data[:_HEAD_BYTES], 1)[0])
    return seconds_of(found[1]) if found else None


def seconds_of(date: bytes) -> float | None:
    """Return the seconds since 1970 of a date as headers have it, None if it is none.

    A time without a zone is taken as UTC, so that the order does not depend on this machine.
    """
    from datetime import UTC, datetime
    from email.utils import parsedate_tz  # here, because the import takes 10 ms

    parsed = parsedate_tz(date[:_MOST_OF_DATE].decode("latin-1"))
    if parsed is None:
        return None
    year, month, day, hour, minute, second, *_, offset = parsed
    try:
        # A leap second is the second before it; `datetime` has none.
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        return local.timestamp() - (offset or 0)
    except (ValueError, OverflowError):  # no such day or time, or not in the years 1 to 9999
        return None
