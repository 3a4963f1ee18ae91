"""A mailbox as the page shows it: which messages are in it now, newest first, and what they say.

Whatever `sources` reads as mail is a mailbox: a Maildir, an mbox, MH, a folder of messages.

Secret: by what a message is known again, although mail readers rename and move it.
"""

import heapq
import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from nbspam.errors import EmptyError, InputError
from nbspam.mail.headers import after_envelope, decode_value, header_lines, read_head, unfold
from nbspam.printing import printable
from nbspam.sources.files import is_url
from nbspam.sources.items import Item, read_items

MOST = 10_000  # messages of a mailbox that are shown
_HEAD_BYTES = 1 << 16
_MAX_VALUE = 200  # characters of a sender or subject
_FLAGS = ":2,"


class Letter(NamedTuple):
    """A message in the mailbox."""

    key: str  # the same as long as the message is there
    arrived: float  # when its file was written, seconds since 1970
    place: int  # among those of one time, later ones are newer


class Mailbag:
    """The messages of a mailbox, which is looked through anew each time.

    path: raises InputError if nothing is there.
    """

    def __init__(self, path: str) -> None:
        if is_url(path) or not os.path.exists(path):
            raise InputError(f"--review {path}: no such mailbox; give a Maildir, mbox or folder")
        self.path = path
        parts = (os.path.join(path, part) for part in ("cur", "new"))
        self._is_maildir = all(map(os.path.isdir, parts))

    def newest(self, most: int = MOST) -> list[Letter]:
        """Return the newest messages, newest first; raises InputError."""
        letters: dict[str, Letter] = {}
        for place, (key, item) in enumerate(self._items()):
            arrived = _written(item.name if item.data is None else self.path)
            if arrived is not None:
                letters[key] = Letter(key, arrived, place)
        return heapq.nlargest(most, letters.values(), key=lambda each: each[1:])

    def read(self, keys: set[str]) -> Iterator[tuple[str, bytes]]:
        """Yield those messages that are still there and can be read; raises InputError."""
        for key, item in self._items():
            if key in keys:
                try:
                    data = item.read()
                except InputError:  # a mail reader has moved it meanwhile
                    continue
                yield key, data

    def _items(self) -> Iterator[tuple[str, Item]]:
        """Yield all messages that are mail, with their keys."""
        try:
            for item in read_items([self.path]):
                if item.is_text:
                    raise InputError(f"--review {self.path}: texts, and no mail; give a mailbox")
                if item.problem is None:
                    yield self._key(item), item
        except EmptyError:
            return  # a mailbox into which nothing has come yet

    def _key(self, item: Item) -> str:
        """Return by what a message is known.

        One in a file of its own, by the file's name, without what mail readers change when it has
        been read; one among others, by its bytes, as its number changes when another is deleted.
        """
        if item.data is not None:
            return "#" + blake2b(item.data, digest_size=16).hexdigest()
        if self._is_maildir:
            return os.path.basename(item.name).partition(_FLAGS)[0]
        return os.path.relpath(item.name, self.path)


def _written(path: str) -> float | None:
    """Return when a file was written, None if it is not there any more."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


class Heading(NamedTuple):
    """What a message says of itself; printable, whatever strangers have written."""

    sender: str
    subject: str


def heading(data: bytes) -> Heading:
    """Return the sender and the subject of a message, each "" if it has none."""
    head = data[:_HEAD_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    head = b"\n" + head[after_envelope(head) :]
    stop, _, _ = read_head(head)
    found: dict[bytes, str] = {}
    for name, value in header_lines(head[:stop]):
        kind = name.strip().lower()
        if kind in (b"from", b"subject") and kind not in found:
            text = decode_value(unfold(value)).decode("utf-8", "replace")
            found[kind] = printable(" ".join(text[: 2 * _MAX_VALUE].split()))[:_MAX_VALUE]
    return Heading(found.get(b"from", ""), found.get(b"subject", ""))
