"""Where the messages of accounts were left: a file of SQLite beside the model, MODEL.accounts.

A digest of a few of its headers identifies a message, because UIDs change with every move and
with UIDVALIDITY.  Every known event is on disk before the next command is sent.  The model never
needs this file: without it, messages that nobody has read are judged again.

Unlike the page's database, the file stays open for a whole look.  A damaged file is an error and
is not put aside: without it, old moves would be lessons again.
"""

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.delivery.maildir import MOVING
from nbspam.disk import check_own, locked, make_file, make_folder, parent_folder, resolved
from nbspam.errors import ModelFileError
from nbspam.imap.session import AccountSession, MessageHead
from nbspam.sources.files import MAX_MESSAGE

# Headers by which a message is known.  Servers return them byte by byte as they came.
_FIELDS = ("MESSAGE-ID", "DATE", "FROM", "SUBJECT")
# Heads, of some 450 bytes each, that are read between two notes: at first, and at most.
_FIRST_HEADS, _MOST_HEADS = 50, 500
_KEPT_DAYS = 90  # that a message is remembered after it has gone from all folders
_WAIT = 10.0  # seconds for another account's sorter that writes
_VERSION = 1
_TABLES = f"""
CREATE TABLE IF NOT EXISTS uids (
    account TEXT, folder TEXT, validity INTEGER, uid INTEGER, digest INTEGER,
    PRIMARY KEY (account, folder, uid)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uids_digest ON uids (account, digest);
CREATE TABLE IF NOT EXISTS left (
    account TEXT, digest INTEGER, place TEXT, keyword TEXT, day INTEGER,
    PRIMARY KEY (account, digest)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS others (
    account TEXT, folder TEXT, validity INTEGER, following INTEGER,
    PRIMARY KEY (account, folder)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS heads (
    account TEXT, folder TEXT, validity INTEGER, uid INTEGER, digest INTEGER, is_lesson INTEGER,
    PRIMARY KEY (account, folder, uid)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


class LeftMessage(NamedTuple):
    """Where a message was left, and the keyword that its user, or nbspam, had set."""

    place: str  # ham, spam, unsure or MOVING
    keyword: str = ""  # ham, spam or ""


class ReadHead(NamedTuple):
    """The facts about a message that a look has read; a lost connection does not lose them."""

    digest: int
    is_lesson: bool = False  # unknown in the spam folder, and its verdict was not spam


def with_digests(
    session: AccountSession, uids: Sequence[int]
) -> Iterator[list[tuple[MessageHead, int]]]:
    """Yield batches with digests: of their _FIELDS or, without Message-ID, of all bytes."""
    n_heads = _FIRST_HEADS
    while uids:
        identified: list[tuple[MessageHead, int]] = []
        without: dict[int, MessageHead] = {}
        for head in session.heads(uids[:n_heads], _FIELDS):
            if b"message-id:" in head.fields.lower():
                lines = sorted(line for line in head.fields.split(b"\r\n") if line)
                identified.append((head, bytes_digest(b"\n".join(lines))))
            else:
                without[head.uid] = head
        yield identified
        for batch in session.messages(list(without), MAX_MESSAGE):
            yield [(without[uid], bytes_digest(data)) for uid, data in batch.data.items()]
        uids = uids[n_heads:]
        n_heads = min(2 * n_heads, _MOST_HEADS)


def bytes_digest(data: bytes) -> int:
    """Return a digest of 63 bits, which SQLite can keep."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


class AccountMemory:
    """The memory of one account beside a model; for one thread.

    Every method raises ModelFileError if the file cannot be used.  writes: otherwise a copy in
    memory is used, and nothing is kept.
    """

    def __init__(self, model: str, account: str, writes: bool = True) -> None:
        self.model, self.account = resolved(model), account
        self.path = f"{self.model}.accounts"
        self._writes = writes
        with self._careful():
            self._connection = self._connected()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def alone(self, patience: float | None = None) -> AbstractContextManager[None]:
        """Return the lock of the account, so that two programs do not sort it at once.

        patience: seconds to wait for another program; None: as long as it takes.
        """
        if not self._writes:
            return contextlib.nullcontext()
        name = f"{self.path}.{bytes_digest(self.account.encode()):016x}"
        like = self.model if os.path.exists(self.model) else None
        return locked(name, like, patience)

    # ---- the file ----

    @contextlib.contextmanager
    def _careful(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise ModelFileError(
                f"{self.path}: {error}; sorting keeps its notes there; free it, or remove it"
            ) from error

    def _connected(self) -> sqlite3.Connection:
        beside = self.model if os.path.exists(self.model) else parent_folder(self.model)
        is_there = os.path.lexists(self.path)
        if is_there:
            check_own(self.path, beside)  # SQLite would follow a link
        elif self._writes:
            make_folder(parent_folder(self.path))
            make_file(self.path, like=parent_folder(self.path))
        place = self.path if self._writes else ":memory:"
        connection = sqlite3.connect(place, timeout=_WAIT, isolation_level="IMMEDIATE")
        try:
            if is_there and not self._writes:
                with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT)) as kept:
                    kept.backup(connection)
            connection.execute("PRAGMA synchronous = FULL")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if not version:  # new, or its maker was killed
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
            elif version != _VERSION:
                raise sqlite3.DatabaseError("not the notes of an account")
            connection.execute("SELECT digest FROM uids LIMIT 1")
        except BaseException:
            connection.close()
            raise
        return connection

    def _rows(self, question: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of this account that SQL selects; values: for its question marks."""
        with self._careful():
            yield from self._connection.execute(question, (self.account, *values))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; the changes are on disk when the block has ended."""
        with self._careful(), self._connection:
            yield self._connection

    # ---- UIDs ----

    def known(self, folder: str, validity: int) -> NDArray[np.int64]:
        """Return UIDs and digests of a folder's messages, (n_messages, 2), in order of UIDs.

        UIDs are 0 if the folder was numbered again.
        """
        with self._careful():
            rows = self._connection.execute(
                "SELECT iif(validity = ?, uid, 0), digest FROM uids"
                " WHERE account = ? AND folder = ? AND validity != 0 ORDER BY 1",
                (validity, self.account, folder),
            )
            return np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 2)

    def note(
        self,
        folder: str,
        validity: int,
        found: Iterable[tuple[int, int]],
        gone: Iterable[int] = (),
    ) -> None:
        """Note UIDs and digests of messages in a folder, and forget UIDs that are gone."""
        rows = [(self.account, folder, validity, uid, digest) for uid, digest in found]
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM uids WHERE account = ? AND folder = ? AND validity != ?",
                (self.account, folder, validity),
            )
            connection.executemany(
                "DELETE FROM uids WHERE account = ? AND folder = ? AND uid = ?",
                [(self.account, folder, uid) for uid in gone],
            )
            connection.executemany("INSERT OR REPLACE INTO uids VALUES (?, ?, ?, ?, ?)", rows)

    def noted(self, digest: int) -> list[tuple[str, int, int]]:
        """Return folder, UIDVALIDITY and UID of the known messages of a digest."""
        question = "SELECT folder, validity, uid FROM uids WHERE account = ? AND digest = ?"
        return list(self._rows(question, digest))

    def heads(self, folder: str, validity: int, first: int, last: int) -> dict[int, ReadHead]:
        """Return the facts that looks that ended early have kept, by UID, from first to last."""
        question = (
            "SELECT uid, digest, is_lesson FROM heads WHERE account = ? AND folder = ?"
            " AND validity = ? AND validity != 0 AND uid BETWEEN ? AND ?"
        )
        rows = self._rows(question, folder, validity, first, last)
        return {uid: ReadHead(*head) for uid, *head in rows}

    def keep_heads(self, folder: str, validity: int, read: Mapping[int, ReadHead]) -> None:
        """Keep what was read of messages, by UID, until a look has come to its end."""
        rows = [(self.account, folder, validity, uid, *head) for uid, head in read.items()]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?, ?)", rows)

    # ---- messages ----

    def left(self, digests: Collection[int]) -> dict[int, LeftMessage]:
        """Return where messages were left, by digest; unknown ones are missing."""
        question = "SELECT place, keyword FROM left WHERE account = ? AND digest = ?"
        return {
            digest: LeftMessage(*row) for digest in digests for row in self._rows(question, digest)
        }

    def with_keyword(self) -> dict[int, str]:
        """Return the keywords of messages that had one, by digest."""
        return dict(
            self._rows("SELECT digest, keyword FROM left WHERE account = ? AND keyword != ''")
        )

    def moving(self) -> set[int]:
        """Return the digests of messages whose moves may or may not have happened."""
        rows = self._rows("SELECT digest FROM left WHERE account = ? AND place = ?", MOVING)
        return {digest for (digest,) in rows}

    def leave(self, messages: Iterable[tuple[int, LeftMessage]], day: int) -> None:
        """Note where messages are left; day: today, in days since 1970-01-01."""
        rows = [(self.account, digest, *message, day) for digest, message in messages]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO left VALUES (?, ?, ?, ?, ?)", rows)

    def forget_gone(self, day: int) -> None:
        """Forget messages that have been in no folder for _KEPT_DAYS, and the heads of a look."""
        with self._writing() as connection:
            connection.execute("DELETE FROM heads WHERE account = ?", (self.account,))
            connection.execute(
                "DELETE FROM left WHERE account = :account AND day < :first AND digest NOT IN"
                " (SELECT digest FROM uids WHERE account = :account)",
                {"account": self.account, "first": day - _KEPT_DAYS},
            )

    # ---- other folders ----

    def following(self) -> dict[str, tuple[int, int]]:
        """Return UIDVALIDITY and UIDNEXT of other folders at the last look."""
        rows = self._rows("SELECT folder, validity, following FROM others WHERE account = ?")
        return {folder: (validity, following) for folder, validity, following in rows}

    def keep_following(self, seen: dict[str, tuple[int, int]]) -> None:
        """Note UIDVALIDITY and UIDNEXT of other folders."""
        rows = [(self.account, folder, *numbers) for folder, numbers in seen.items()]
        with self._writing() as connection:
            connection.execute("DELETE FROM others WHERE account = ?", (self.account,))
            connection.executemany("INSERT INTO others VALUES (?, ?, ?, ?)", rows)
