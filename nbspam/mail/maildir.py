"""A Maildir: its messages, its folders, and a note of where messages were left.

A message keeps its name wherever it goes, and moves by one rename: at any moment it is in
one place.  Nothing is overwritten, and a message that has just gone is nobody's error.

Secret: names of files in a Maildir++, and the form of the note.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nbspam.disk import sync_folder
from nbspam.errors import InputError, UsageError

NOTE = "nbspam-sorted"  # beside cur/, new/ and tmp/; other programs pass it over
INBOX = ""
_SUBFOLDERS = ("tmp", "new", "cur")
_FLAGS = ":2,"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message's file: INBOX or .Folder, new or cur, and its name."""

    folder: str
    part: str
    file: str

    @property
    def base(self) -> str:
        """The name without flags, which is the message's own."""
        return self.file.partition(_FLAGS)[0]

    @property
    def flags(self) -> str:
        """The letters of its flags, such as S: seen."""
        return self.file.partition(_FLAGS)[2]

    @property
    def path(self) -> str:
        """The path within the Maildir."""
        return os.path.join(self.folder, self.part, self.file)

    def flagged(self, letter: str) -> "Entry":
        """Return where the message is once it has one more flag."""
        flags = "".join(sorted({*self.flags, letter}))
        return Entry(self.folder, "cur", f"{self.base}{_FLAGS}{flags}")


class Left(NamedTuple):
    """Where a message was left, and the digest of its bytes."""

    place: str  # ham, spam or unsure
    digest: str


def check_maildir(root: str) -> None:
    """Raise InputError unless a folder is a Maildir."""
    if not all(os.path.isdir(os.path.join(root, part)) for part in ("new", "cur")):
        raise InputError(f"{root}: not a Maildir (no cur/ and new/); give the folder of both")


def folder_name(name: str) -> str:
    """Return the name of a Maildir++ folder on disk; raises UsageError."""
    bare = name.removeprefix(".")
    if not bare.strip(".") or "/" in bare or not bare.isprintable():
        raise UsageError(f"folder {name!r}: not the name of a folder in a Maildir, such as .Spam")
    return f".{bare}"


def entries(root: str, folder: str) -> Iterator[Entry]:
    """Yield the messages of a folder, each once; of one that is not there, none."""
    seen = set()
    for part in ("new", "cur"):  # in this order: a reader moves them so, and none is missed
        for file in sorted(_files(os.path.join(root, folder, part))):
            entry = Entry(folder, part, file)
            if entry.base not in seen:
                seen.add(entry.base)
                yield entry


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return [
                entry.name
                for entry in found
                if not entry.name.startswith(".")
                and "\n" not in entry.name
                and entry.is_file(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return []


def move(root: str, entry: Entry, target: Entry) -> bool:
    """Move a message; return whether it was there, and nothing in its way.

    A folder that is not there is made.  Raises OSError if the disk does not let us.
    """
    _make_folder(root, target.folder)
    source, destination = (os.path.join(root, one.path) for one in (entry, target))
    if os.path.lexists(destination):
        return False
    try:
        os.rename(source, destination)
    except FileNotFoundError:  # its reader was faster
        return False
    return True


def _make_folder(root: str, folder: str) -> None:
    path = os.path.join(root, folder)
    if os.path.isdir(os.path.join(path, _SUBFOLDERS[-1])):
        return
    for part in ("", *_SUBFOLDERS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(path, part), 0o700)
    # What Maildir++ knows its folders by.
    os.close(os.open(os.path.join(path, "maildirfolder"), os.O_CREAT | os.O_WRONLY, 0o600))


def read_note(root: str) -> dict[str, Left]:
    """Return where messages were left, by their names; damaged lines are passed over."""
    try:
        with open(os.path.join(root, NOTE), "rb") as stream:
            lines = stream.read().split(b"\n")
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines:
        place, _, rest = os.fsdecode(line).partition(" ")
        digest, _, base = rest.partition(" ")
        if place in ("ham", "spam", "unsure") and base:
            found[base] = Left(place, digest)
    return found


def write_note(root: str, left: Mapping[str, Left]) -> None:
    """Write where messages were left, or leave the old note whole and raise OSError."""
    path = os.path.join(root, NOTE)
    lines = (f"{place} {digest} {base}\n" for base, (place, digest) in sorted(left.items()))
    descriptor = os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as stream:
        stream.writelines(map(os.fsencode, lines))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(f"{path}.new", path)
    sync_folder(root)
