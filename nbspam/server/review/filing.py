"""Moving the messages of a Maildir to where a person says that they belong, and back.

It is done beside `nbspam sort`, under the same lock, and its note is kept true: what it says of a
message is `moving` before the move, the new place afterwards.  So `sort` takes neither our moves,
nor one that a crash has interrupted, for moves by which the user teaches something.

Secret: into which folder a label leads, and the order of steps.
"""

import os
from urllib.parse import unquote_to_bytes

from nbspam.disk import locked
from nbspam.errors import InputError, UsageError
from nbspam.mail.maildir import (
    INBOX,
    MOVING,
    NOTE,
    UNSURE,
    Entry,
    Left,
    digest_of,
    entries,
    move,
    read_note,
    spam_folder,
    write_note,
)
from nbspam.server.review.mailbag import Mailbag, key_of
from nbspam.sources.files import Blaming

_PATIENCE = 5.0  # seconds for a `nbspam sort` that is at work


class Filing:
    """Moves messages; raises UsageError if the mailbox is no Maildir."""

    def __init__(self, mailbag: Mailbag) -> None:
        if not mailbag.is_maildir:
            raise UsageError(
                f"--move: --review {mailbag.path} is no Maildir, and only in one can messages be"
                " moved; give a Maildir, or leave --move out"
            )
        self._mailbag = mailbag
        self._root = mailbag.path

    def leaves(self, key: str, label: str) -> str | None:
        """Return the folder from which `file` would move a message; None: it would not."""
        with Blaming(self._root):
            entry = self._find(key)
        target = self._target(label)
        return None if entry is None or target in (None, entry.folder) else entry.folder

    def file(self, key: str, label: str) -> str | None:
        """Move a message to the folder of its label; return the folder where it was.

        Returns None if it was not moved: it is there already, or not there any more, or another
        one has its name there.  Raises NbspamError if it cannot be moved.
        """
        target = self._target(label)
        return None if target is None else self._move(key, target)

    def put_back(self, key: str, folder: str) -> bool:
        """Move a message to a folder in which it was; return whether it was moved.

        Raises NbspamError.
        """
        return folder in self._places() and self._move(key, folder) is not None

    def _target(self, label: str) -> str | None:
        return {"ham": INBOX, "spam": spam_folder(self._root)}.get(label)

    def _places(self) -> dict[str, str]:
        """Return what `sort` calls the folders."""
        return {INBOX: "ham", spam_folder(self._root): "spam", UNSURE: "unsure"}

    def _move(self, key: str, folder: str) -> str | None:
        """Move a message to a folder; return the folder where it was, None if it was not moved."""
        if self._mailbag.is_linked(folder):
            path = os.path.join(self._root, folder)
            raise InputError(f"{path}: not moved there, as it is elsewhere by a link; remove it")
        try:
            with locked(os.path.join(self._root, NOTE), like=self._root, patience=_PATIENCE):
                entry = self._find(key)
                return None if entry is None else self._carry(entry, folder)
        except OSError as error:
            raise InputError(
                f"{error.filename or self._root}: {error.strerror or error}; nothing is lost, try"
                " again"
            ) from error

    def _find(self, key: str) -> Entry | None:
        """Return where a message is; None if it has gone, or if two have its name."""
        base = os.fsdecode(unquote_to_bytes(key)) if key.isascii() else ""
        if key_of(base) != key:
            return None
        folders = self._mailbag.folders
        found = [e for f in folders for e in entries(self._root, f) if e.base == base]
        return found[0] if len(found) == 1 else None

    def _carry(self, entry: Entry, folder: str) -> str | None:
        """Move a message, and let the note say so at any moment; return where it was, if moved.

        One that is there already, and that `sort` does not know, is noted as well, so that `sort`
        does not judge what a person has spoken of.
        """
        note, is_there = read_note(self._root), entry.folder == folder
        digest = note[entry.base].digest if entry.base in note else self._digest(entry)
        if digest is None or (is_there and entry.base in note):
            return None
        if not is_there:
            write_note(self._root, {**note, entry.base: Left(MOVING, digest)})
            if not move(self._root, entry, Entry(folder, entry.part, entry.file)):
                write_note(self._root, note)
                return None
        write_note(self._root, {**note, entry.base: Left(self._places()[folder], digest)})
        return None if is_there else entry.folder

    def _digest(self, entry: Entry) -> str | None:
        """Return the digest of a message, None if it cannot be read any more."""
        data = self._mailbag.message(key_of(entry.base))
        return None if data is None else digest_of(data)
