"""What users of the library give, as items: paths, texts, messages, and pairs with labels.

A string is text and never a path; a path is an `os.PathLike`.

Secret: which Python types mean what.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from nbspam.errors import UsageError
from nbspam.sources.files import is_url
from nbspam.sources.items import Item, SourceOptions, read_items

_NO_OPTIONS = SourceOptions()


# pathlib makes "s3:/bucket/mail" of a URL.  A drive of Windows has one letter.
_JOINED = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+):/(?!/)")


def path_of(given: "os.PathLike[Any]") -> str:
    """Return a path as a string; the URL that pathlib was given, if there is no such file."""
    path = os.fsdecode(given)
    return path if os.path.exists(path) else _JOINED.sub(r"\1://", path, count=1)


def items_of(given: Any, options: SourceOptions = _NO_OPTIONS) -> Iterator[Item]:
    """Yield the items that are given; raises InputError, UsageError.

    given: a path, or an iterable of paths, `Item`s, data, or (data, label) pairs.  Data is a
    string of text, the bytes of a message, or a path.
    """
    if isinstance(given, os.PathLike):
        yield from read_items([path_of(given)], options=options)
        return
    if isinstance(given, str | bytes):
        raise UsageError(
            f"{given[:40]!r}: one text is no collection; give a list of texts, or a path as"
            " pathlib.Path(...)"
        )
    for number, each in enumerate(given):
        if isinstance(each, Item):
            yield each
            continue
        data, label = each if isinstance(each, tuple) else (each, None)
        # One of many paths that is not there is an item that cannot be read.
        if isinstance(data, os.PathLike) and (os.path.exists(data) or is_url(path_of(data))):
            yield from read_items([path_of(data)], label=label, options=options)
        else:
            yield item_of(data, f"#{number}", label)._replace(series="given")


def item_of(data: Any, name: str = "-", label: str | None = None) -> Item:
    """Return one item: a string of text, the bytes of a message, a path, or an Item itself."""
    if isinstance(data, Item):
        return data
    if isinstance(data, str):
        return Item(name, label, data.encode("utf-8", "replace"), is_text=True)
    if isinstance(data, bytes | bytearray | memoryview):
        return Item(name, label, bytes(data))
    if isinstance(data, os.PathLike):
        return Item(path_of(data), label)
    raise UsageError(
        f"{type(data).__name__}: neither text nor mail; give a str, bytes or pathlib.Path"
    )


def only_paths(given: Any) -> Iterable[str]:
    """Return the paths in what is given, for tables; raises UsageError if there is more."""
    several = [given] if isinstance(given, os.PathLike) else list(given)
    for each in several:
        if not isinstance(each, os.PathLike):
            raise UsageError(f"{type(each).__name__}: not a table; give a pathlib.Path of one")
    return map(path_of, several)
