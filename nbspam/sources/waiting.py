"""Items that wait until all of them have been looked at, because they come only once.

Secret: where they wait.
"""

import marshal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile, gettempdir

from nbspam.errors import InputError
from nbspam.sources.items import Item

_WAITING_BYTES = 64 << 20  # of items that wait in memory; more of them wait on disk


@contextmanager
def looked_through(items: Iterable[Item]) -> Iterator[tuple[set[str], Iterable[Item]]]:
    """Give the classes of items, and all the items to be read once; raises InputError.

    Items that come one by one wait in memory, or in a temporary file if they have much data.
    """
    if isinstance(items, list | tuple):
        yield {item.label for item in items if item.label is not None}, items
        return

    def again() -> Iterator[Item]:
        waiting.seek(0)
        with suppress(EOFError):
            while True:
                yield Item(*marshal.load(waiting))

    with SpooledTemporaryFile(_WAITING_BYTES) as waiting:
        classes = set()
        for item in items:
            if item.label is not None:
                classes.add(item.label)
            try:
                marshal.dump(tuple(item), waiting)
            except OSError as error:
                raise InputError(
                    f"{gettempdir()}: {error.strerror or error}; free some space, or set TMPDIR"
                ) from error
        yield classes, again()
