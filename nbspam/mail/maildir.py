"""Listing and moving the messages of a Maildir, and a note of where messages were left.

A message keeps its unique name and moves by one rename, so that it is in exactly one place
at any moment.  Nothing is overwritten.  A message that another program has just moved or
deleted is not an error.

Secret: the file names of a Maildir++, and the format of the note.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nbspam.disk import read_own, replace_file
from nbspam.errors import InputError, UsageError

NOTE = "nbspam-sorted"  # file beside cur/, new/ and tmp/; other programs ignore it
INBOX = ""
_SUBFOLDERS = ("tmp", "new", "cur")
_FLAGS = ":2,"


@dataclass(frozen=True, slots=True)
class Entry:
    """The place of a message's file in a Maildir."""

    folder: str  # INBOX, or for example .Spam
    part: str  # new or cur
    file: str

    @property
    def base(self) -> str:
        """The file name without flags: the unique name of the message."""
        return self.file.partition(_FLAGS)[0]

    @property
    def flags(self) -> str:
        """The letters of the message's flags, such as S (seen)."""
        return self.file.partition(_FLAGS)[2]

    @property
    def path(self) -> str:
        """The path relative to the Maildir."""
        return os.path.join(self.folder, self.part, self.file)

    def flagged(self, letter: str) -> "Entry":
        """Return the message's place in cur/ with one more flag."""
        flags = "".join(sorted({*self.flags, letter}))
        return Entry(self.folder, "cur", f"{self.base}{_FLAGS}{flags}")


class Left(NamedTuple):
    """Where a message was left, and its digest."""

    place: str  # ham, spam or unsure
    digest: str


def check_maildir(root: str) -> None:
    """Raise InputError unless the folder is a Maildir."""
    if not all(os.path.isdir(os.path.join(root, part)) for part in ("new", "cur")):
        raise InputError(
            f"{root}: not a Maildir (no cur/ and new/); give the folder that holds both"
        )


def folder_name(name: str) -> str:
    """Return the name on disk of a Maildir++ folder, ".Spam" of "Spam"; raises UsageError."""
    bare = name.removeprefix(".")
    if not bare.strip(".") or "/" in bare or not bare.isprintable():
        raise UsageError(f"folder {name!r}: not the name of a Maildir folder; write it as .Spam")
    return f".{bare}"


def entries(root: str, folder: str) -> Iterator[Entry]:
    """Yield the messages of a folder, each once; none if there is no such folder."""
    seen = set()
    # Mail readers move messages from new to cur, so in this order none is missed.
    for part in ("new", "cur"):
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
    """Move a message; return False if it has gone, or if there is a file at the target.

    Makes the target folder if it is missing.  Raises OSError.
    """
    _make_folder(root, target.folder)
    source, destination = (os.path.join(root, one.path) for one in (entry, target))
    if os.path.lexists(destination):
        return False
    try:
        os.rename(source, destination)
    except FileNotFoundError:  # a mail reader has just moved or deleted it
        return False
    return True


def _make_folder(root: str, folder: str) -> None:
    path = os.path.join(root, folder)
    if os.path.isdir(os.path.join(path, _SUBFOLDERS[-1])):
        return
    for part in ("", *_SUBFOLDERS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(path, part), 0o700)
    # This file marks a Maildir++ folder.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(os.path.join(path, "maildirfolder"), os.O_CREAT | os.O_EXCL, 0o600))


def read_note(root: str) -> dict[str, Left]:
    """Return where messages were left, by unique name; damaged lines are skipped."""
    try:
        lines = read_own(os.path.join(root, NOTE), root).split(b"\n")
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
    """Write where messages were left, or keep the old note unchanged and raise OSError."""
    lines = (f"{place} {digest} {base}\n" for base, (place, digest) in sorted(left.items()))
    note = os.path.join(root, NOTE)
    replace_file(note, lambda file: file.writelines(map(os.fsencode, lines)), like=root)
