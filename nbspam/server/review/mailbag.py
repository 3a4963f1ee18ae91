"""A mailbox as the page shows it: which messages are in it now, newest first, and what they say.

Whatever `sources` reads as mail is a mailbox: a Maildir with the folders that `nbspam sort` uses,
an mbox, MH, a folder of messages.  Nothing outside of its folder is ever read: links in it count
as nothing, even those that are put there between a look and the next.

Secret: by what a message is known again, although mail readers rename and move it.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from nbspam.disk import Stamp, stamp_of
from nbspam.errors import EmptyError, InputError
from nbspam.mail.headers import after_envelope, decode_value, header_lines, read_head, unfold
from nbspam.mail.maildir import INBOX, PARTS, UNSURE, entries, spam_folder
from nbspam.printing import printable
from nbspam.sources.files import Blaming, is_url, open_file, open_inside
from nbspam.sources.items import Item, SourceOptions, read_items
from nbspam.sources.mailboxes import HEAD, begins_with_from_line, read_message

MOST = 10_000  # messages of a mailbox that are shown
_HEAD_BYTES = 1 << 16
_MAX_VALUE = 200  # characters of a sender or subject
_SAFE = "/,=:@"  # in keys, beside letters, digits and _.-~
_PLAIN = re.compile(f"[A-Za-z0-9_.~{_SAFE}-]*")


class Letter(NamedTuple):
    """A message in the mailbox."""

    key: str  # the same as long as the message is there; printable ASCII
    arrived: float  # when its file was written, seconds since 1970
    place: int  # among those of one time, later ones are newer


class _Found(NamedTuple):
    """A message that is in the mailbox now."""

    key: str
    file: str  # the path of the file that it is in
    data: bytes | None  # None: the file has nothing else


def key_of(name: str) -> str:
    """Return the key of a message by the name of its file, whatever bytes that has."""
    return name if _PLAIN.fullmatch(name) else quote(os.fsencode(name), safe=_SAFE)


class Mailbag:
    """The messages of a mailbox, which is looked through anew each time.

    path: raises InputError if nothing is there.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._check()
        self._below = os.path.join(path, "")  # what the paths of everything in it begin with
        self._paths: dict[str, str] = {}  # where the newest were, by key
        self._last: tuple[Stamp | None, int, list[Letter]] = (None, 0, [])  # of a single file

    def _check(self) -> None:
        """Raise InputError if nothing is there any more."""
        if is_url(self.path) or not os.path.exists(self.path):
            raise InputError(
                f"--review {self.path}: no such mailbox; give a Maildir, mbox or folder"
            )

    @property
    def is_maildir(self) -> bool:
        """Whether it is a Maildir now."""
        return all(os.path.isdir(os.path.join(self.path, part)) for part in PARTS)

    @property
    def folders(self) -> list[str]:
        """The folders of a Maildir whose messages are looked at."""
        chosen = [INBOX, spam_folder(self.path), UNSURE]
        return [folder for folder in chosen if not self.is_linked(folder)]

    def is_linked(self, folder: str) -> bool:
        """Return whether a folder of a Maildir is elsewhere, by a link."""
        places = [part if folder == INBOX else os.path.join(folder, part) for part in PARTS]
        return any(os.path.islink(os.path.join(self.path, place)) for place in (folder, *places))

    def newest(self, most: int = MOST) -> list[Letter]:
        """Return the newest messages, newest first; raises InputError."""
        stamp = stamp_of(self.path) if os.path.isfile(self.path) else None
        if stamp is None or (stamp, most) != self._last[:2]:
            # Before the look: what is written meanwhile shows at the next one.
            self._last = stamp, most, self._look(most)
        return self._last[2]

    def _look(self, most: int) -> list[Letter]:
        newest: list[tuple[float, int, str, str | None]] = []
        dated = self._dated()
        while some := list(islice(dated, most)):
            newest = sorted([*newest, *some], reverse=True)[:most]
        letters: dict[str, Letter] = {}
        self._paths = {}
        for arrived, place, key, path in newest:
            if key not in letters:
                letters[key] = Letter(key, arrived, place)
                if path is not None:
                    self._paths[key] = path
        return list(letters.values())

    def _dated(self) -> Iterator[tuple[float, int, str, str | None]]:
        """Yield when each message arrived, its place, its key, and its file if alone there."""
        # The files of a Maildir are renamed, but never written again.
        known = {each.key: each.arrived for each in self._last[2]} if self.is_maildir else {}
        for place, (key, file, data) in enumerate(self._found()):
            arrived = known.get(key)
            if arrived is None:
                arrived = _written(file, follows=file == self.path)
            if arrived is not None:
                yield arrived, place, key, file if data is None else None

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield those messages that are still there and can be read; raises InputError.

        Messages in files of their own come in the order of the keys, those of an mbox in its own.
        The mailbox is looked through once at most, however many keys there are and however long
        the caller takes between two messages.
        """
        missing = dict.fromkeys(keys)
        for key in list(missing):
            if key in self._paths and (data := self._contents(self._paths[key])) is not None:
                del missing[key]
                yield key, data
        if missing:
            yield from self._search(missing)

    def message(self, key: str) -> bytes | None:
        """Return a message, None if it is not there any more; raises InputError."""
        return next((data for _, data in self.read({key})), None)

    def _search(self, missing: dict[str, None]) -> Iterator[tuple[str, bytes]]:
        """Yield messages that are not where they were at the last look."""
        for key, file, data in self._found():
            if key in missing:
                data = self._contents(file) if data is None else data
                if data is not None:
                    del missing[key]
                    yield key, data
                if not missing:
                    return

    def _contents(self, file: str) -> bytes | None:
        """Return the message that is alone in a file; None if it cannot be read any more."""
        try:
            with Blaming(file), open_inside(self.path, file.removeprefix(self._below)) as stream:
                return read_message(stream)
        except InputError:
            return None

    def _found(self) -> Iterator[_Found]:
        """Yield all messages that are mail."""
        self._check()
        with Blaming(self.path):
            if self.is_maildir:
                for folder in self.folders:
                    below = {part: os.path.join(self._below, folder, part, "") for part in PARTS}
                    for entry in entries(self.path, folder):
                        yield _Found(key_of(entry.base), below[entry.part] + entry.file, None)
                return
        try:
            for item in read_items([self.path], options=self._options()):
                if item.is_text:
                    raise InputError(f"--review {self.path}: texts, and no mail; give a mailbox")
                if item.problem is None:
                    yield self._known(item)
        except EmptyError:
            return  # a mailbox into which nothing has come yet

    def _options(self) -> SourceOptions:
        """Return how to read what is no Maildir: an mbox is one even if it has but one message."""
        if os.path.isfile(self.path):
            with Blaming(self.path), open_file(self.path) as stream:
                head = stream.read(HEAD)
            if not head.strip() or begins_with_from_line(head):
                return SourceOptions(format="mbox")
        return SourceOptions(follows_links=False)

    def _known(self, item: Item) -> _Found:
        """Return a message with its key.

        One in a file of its own is known by the file's name; one among others by its bytes, as its
        number changes when another is deleted.
        """
        if item.data is None and item.name != self.path:
            return _Found(key_of(item.name.removeprefix(self._below)), item.name, None)
        data = item.read()
        key = "#" + blake2b(data, digest_size=16).hexdigest()
        return _Found(key, item.series or self.path, data)


def _written(file: str, follows: bool) -> float | None:
    """Return when a regular file was written; None if it is none, or not there any more.

    follows: a link.
    """
    try:
        status = os.stat(file, follow_symlinks=follows)
    except OSError:
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) else None


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
