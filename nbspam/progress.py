"""Progress: long loops tell how far they are to whoever watches.

    for number in tracked(range(k), "folds"):
        ...

Secret: who watches.  Usually nobody does, and then a loop costs nothing more.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Extent(NamedTuple):
    """How long a loop is; a total of None is not known."""

    total: Callable[[], int | None]  # called when it is to be shown, as it may take time
    weight: Callable[[Any], int] | None = None  # what a thing adds to the total; None: one


# Yields things of this name, and may show how many of them have passed.
Watch = Callable[[Iterable[Any], str, Extent], Iterator[Any]]
_watches: list[Watch] = []  # the last one is in force


def tracked(things: Iterable[T], what: str, extent: Extent | int | None = None) -> Iterable[T]:
    """Return things to loop over; whoever watches sees how many have passed.

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


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let loops within the context be watched."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)
