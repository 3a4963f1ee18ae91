"""Listing and moving the messages of a Maildir, and a note of where messages were left.

A message keeps its unique name and moves by one rename, so that it is in exactly one place
at any moment.  Nothing is overwritten.  A message that another program has just moved or
deleted is not an error.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from nbspam.disk import adopt, read_own, replace_file
from nbspam.errors import InputError, UsageError

NOTE = "nbspam-sorted"  # file beside cur/, new/ and tmp/; other programs ignore it
INBOX = ""
UNSURE = ".Unsure"
MOVING = "moving"  # the place in a note of a message that was left wherever it is found
_SPAM_FOLDERS = (".Spam", ".Junk")
_PLACES = ("ham", "spam", "unsure", MOVING)
PARTS = ("new", "cur")  # the parts of a folder that hold messages
_SUBFOLDERS = ("tmp", *PARTS)
_FLAGS = ":2,"


class MaildirEntry(NamedTuple):
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

    def flagged(self, letter: str) -> "MaildirEntry":
        """Return the message's place in cur/ with one more flag."""
        flags = "".join(sorted({*self.flags, letter}))
        return MaildirEntry(self.folder, "cur", f"{self.base}{_FLAGS}{flags}")


class MaildirNote(NamedTuple):
    """Where a message was left, and its digest."""

    place: str  # one of _PLACES
    digest: str


def check_maildir(root: str) -> None:
    """Raise InputError unless the folder is a Maildir."""
    if not all(os.path.isdir(os.path.join(root, part)) for part in PARTS):
        raise InputError(
            f"{root}: not a Maildir (no cur/ and new/); give the folder that holds both"
        )


def check_writable(root: str) -> None:
    """Raise InputError unless messages can be moved out of a Maildir's inbox, and noted."""
    for path in (root, *(os.path.join(root, part) for part in PARTS)):
        if not os.access(path, os.W_OK | os.X_OK):
            status = os.stat(path)
            raise InputError(
                f"{path}: not to be written to ({stat.filemode(status.st_mode)}, of user"
                f" {status.st_uid}); sort as its owner, or change its rights"
            )


def maildir_folder_name(name: str) -> str:
    """Return the name on disk of a Maildir++ folder, ".Spam" of "Spam"; raises UsageError."""
    bare = name.removeprefix(".")
    if not bare.strip(".") or "/" in bare or not bare.isprintable():
        raise UsageError(f"folder {name!r}: not the name of a Maildir folder; write it as .Spam")
    return f".{bare}"


def spam_folder(root: str) -> str:
    """Return the folder for spam: the first known name that exists, or the first of all."""
    there = (each for each in _SPAM_FOLDERS if os.path.isdir(os.path.join(root, each)))
    return next(there, _SPAM_FOLDERS[0])


def entry_digest(data: bytes) -> str:
    """Return the digest by which a note knows a renamed message."""
    return blake2b(data, digest_size=8).hexdigest()


def maildir_entries(root: str, folder: str) -> Iterator[MaildirEntry]:
    """Yield the messages of a folder, each once; none if there is no such folder.

    Raises OSError if it cannot be read.
    """
    seen = set()
    # Mail readers move messages from new to cur, so in this order none is missed.
    for part in PARTS:
        for file in sorted(_files(os.path.join(root, folder, part))):
            entry = MaildirEntry(folder, part, file)
            base = entry.base
            if base not in seen:
                seen.add(base)
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
    except (FileNotFoundError, NotADirectoryError):
        return []


def move(root: str, entry: MaildirEntry, target: MaildirEntry) -> bool:
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
    if all(os.path.isdir(os.path.join(path, part)) for part in _SUBFOLDERS):
        return
    for part in ("", *_SUBFOLDERS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(path, part), 0o700)
            _give(os.path.join(path, part), root)
    # This file marks a Maildir++ folder.
    mark = os.path.join(path, "maildirfolder")
    with contextlib.suppress(FileExistsError):
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL, 0o600))
        _give(mark, root)


def _give(path: str, root: str) -> None:
    """Give a new file the owner of the Maildir, if the system lets us."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        adopt(descriptor, root)
    finally:
        os.close(descriptor)


def read_note(root: str) -> dict[str, MaildirNote]:
    """Return where messages were left, by unique name; damaged lines are skipped."""
    try:
        lines = read_own(os.path.join(root, NOTE), root).split(b"\n")
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines:
        place, _, rest = os.fsdecode(line).partition(" ")
        digest, _, base = rest.partition(" ")
        if place in _PLACES and base:
            found[base] = MaildirNote(place, digest)
    return found


def write_note(root: str, left: Mapping[str, MaildirNote]) -> None:
    """Write where messages were left, or keep the old note unchanged and raise OSError."""
    lines = (f"{place} {digest} {base}\n" for base, (place, digest) in sorted(left.items()))
    note = os.path.join(root, NOTE)
    replace_file(note, lambda file: file.writelines(map(os.fsencode, lines)), like=root)
