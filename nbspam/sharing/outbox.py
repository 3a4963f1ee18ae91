"""A host's part of a shared log, on disk beside the model: MODEL.share, a database of SQLite.

It holds the position up to which the host has read, and the outbox: the host's own lessons that
it has not read back yet.  All processes of a host use it at once.
"""

import os
import sqlite3
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from threading import RLock
from typing import Any, NamedTuple
from uuid import uuid4

from nbspam.disk import check_own, make_file, make_folder, parent_folder, resolved
from nbspam.errors import ModelFileError, SharedLogError
from nbspam.printing import amount_text
from nbspam.store.upkeep import BAD, GOOD, NOTE, Finding

MOST_LESSONS = 100_000  # lessons in an outbox; about 1 GB
SYNCHRONOUS = "FULL"  # an acknowledged lesson survives a crash of the machine
# Of what the log would repeat after a crash: the next lesson, or `sync`, forces it to disk.
_LATER = "NORMAL"
_PATIENCE = 60.0  # seconds for other processes
_SCHEMA = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seen (origin TEXT PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, sent INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL, digest INTEGER NOT NULL, lesson BLOB NOT NULL, filed BLOB
);
CREATE INDEX IF NOT EXISTS messages ON outbox (digest);
"""


class LogPosition(NamedTuple):
    """How far a host has read a log; `ledger.LogProgress` says how far each of its models has."""

    log: str = ""  # the identifier of the log; "": none was read yet
    position: int = 0  # of the last record
    n_read: int = 0  # records
    day: int = 0  # the highest day of all lessons so far, since 1970-01-01
    skipped: int = 0  # records that were no lessons
    restarts: int = 0  # of reading: standbys without the last records had taken over


class PendingLesson(NamedTuple):
    """A lesson of this host that it has not read back from the log yet."""

    number: int
    user: str
    settings: str  # of the model; see `logs.fingerprint`
    digest: int  # of the message
    lesson: bytes  # the body of a journal's record, with all texts
    filed: bytes | None  # body that says where the log had the message before; None: nowhere


def share_findings(path: str) -> list[Finding]:
    """Return the line of `nbspam doctor` on a model's part in a shared log, if it has one."""
    if not os.path.exists(f"{resolved(path)}.share"):
        return []
    try:
        with closing(Outbox(path)) as outbox:
            place, n_waiting = outbox.place(), outbox.size()
    except ModelFileError as error:
        return [Finding(BAD, "share", str(error))]
    n_read, waiting = amount_text(place.n_read, "records"), amount_text(n_waiting, "lessons")
    text = f"{n_read} of the log read, {waiting} in the outbox"
    skipped = f", {amount_text(place.skipped, 'records')} skipped" if place.skipped else ""
    return [Finding(NOTE if n_waiting or skipped else GOOD, "share", text + skipped)]


class Outbox:
    """The database of one host.  Methods raise ModelFileError if it cannot be used."""

    def __init__(self, path: str) -> None:
        """Open the database, or make it; path: of the model."""
        path = resolved(path)
        self.path = f"{path}.share"
        try:
            make_folder(parent_folder(path))
            with suppress(FileExistsError):
                make_file(self.path, like=path)  # it has words of mail
            check_own(self.path, path)  # SQLite would follow a link
        except OSError as error:
            raise ModelFileError(
                f"{self.path}: {error.strerror}; make its folder writable"
            ) from error
        self._synced: LogPosition | None = None
        # Of the connection.  While a thread waits for another process to write, a second one that
        # reads a row would wait for it with Python's global lock, and so stop the whole process.
        self._using = RLock()
        self.last = 0  # the number of the last lesson that was put here
        self._gathered: deque[tuple[list[Any], Future[int]]] = deque()
        with self._used():
            self._base = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._base.execute("PRAGMA journal_mode=WAL")
                self._base.execute("PRAGMA fullfsync=1")  # on a Mac, as `disk.sync_file`
                self._base.executescript(_SCHEMA)
                origin = [uuid4().hex]
                self._base.execute("INSERT OR IGNORE INTO fact VALUES ('origin', ?)", origin)
            except BaseException:  # not a file of SQLite
                self._base.close()
                raise

    @contextmanager
    def _used(self) -> Iterator[None]:
        try:
            with self._using:
                yield
        except (sqlite3.Error, ValueError) as error:  # ValueError: of a damaged text
            raise ModelFileError(
                f"{self.path}: {error}; make room or restore it, or move it away and join again"
            ) from error

    @contextmanager
    def _changed(self, synchronous: str | None = None) -> Iterator[sqlite3.Connection]:
        """Make several changes at once; durably, unless `synchronous` says otherwise."""
        with self._used():
            self._base.execute(f"PRAGMA synchronous={synchronous or SYNCHRONOUS}")
            with self._base:  # commits, or rolls back
                self._base.execute("BEGIN IMMEDIATE")
                yield self._base

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._used():
            return self._base.execute(query, values).fetchall()

    def _fact(self, name: str) -> str:
        """Return a fact; "" if it was never noted."""
        found = self._rows("SELECT value FROM fact WHERE name = ?", [name])
        return str(found[0][0]) if found else ""

    @property
    def origin(self) -> str:
        """The identifier under which the log has this host's lessons."""
        return self._fact("origin")

    def keep_users(self, folder: str) -> None:
        """Remember the folder of users' models, for other commands."""
        path = os.path.abspath(folder)
        with self._changed() as base:
            base.execute("INSERT OR REPLACE INTO fact VALUES ('users', ?)", [path])

    def users_folder(self) -> str | None:
        """Return the folder of users' models, if there is one."""
        return self._fact("users") or None

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    # ---- how far the log was read ----

    def place(self) -> LogPosition:
        """Return how far this host has read."""
        with self._used():
            found = dict(self._rows("SELECT name, value FROM fact"))
            numbers = (int(found.get(name, 0)) for name in LogPosition._fields[1:])
            return LogPosition(found.get("log", ""), *numbers)

    def seen(self) -> dict[str, int]:
        """Return the number of the last lesson of each origin."""
        return dict(self._rows("SELECT origin, number FROM seen"))

    def note_read(
        self, place: LogPosition, seen: dict[str, int], pending: Iterable[PendingLesson] = ()
    ) -> None:
        """Note how far this host has read; its own lessons among the records leave the outbox.

        pending: lessons that stay, each with where the log has its message before it.
        """
        facts = [(name, str(value)) for name, value in place._asdict().items()]
        rows = [(each.filed, each.number) for each in pending]
        with self._changed(_LATER) as base:
            base.executemany("UPDATE outbox SET filed = ? WHERE number = ?", rows)
            base.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)
            base.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?)", list(seen.items()))
            if self.origin in seen:
                base.execute("DELETE FROM outbox WHERE number <= ?", [seen[self.origin]])

    # ---- lessons ----

    def put(self, lessons: Iterable[PendingLesson]) -> int:
        """Keep lessons durably; return the number of the last one.

        Lessons that several threads add during a write are written together.  Raises
        SharedLogError if the outbox is full.
        """
        rows = [each._replace(digest=_signed(each.digest))[1:] for each in lessons]
        last: Future[int] = Future()
        self._gathered.append((rows, last))
        with self._using:
            together = [self._gathered.popleft() for _ in range(len(self._gathered))]
            if together:  # else another thread has put them on disk
                try:
                    self.last = self._put([row for each, _ in together for row in each])
                    for _, done in together:
                        done.set_result(self.last)
                except BaseException as error:
                    for _, done in together:
                        done.set_exception(error)
        return last.result()

    def _put(self, rows: list[Any]) -> int:
        with self._changed() as base:
            if self.size() + len(rows) > MOST_LESSONS:
                raise SharedLogError(
                    f"{self.path}: {MOST_LESSONS:,} lessons wait for the log; learn on when it is"
                    " back, or move this file away to share no more"
                )
            base.executemany(
                "INSERT INTO outbox (user, settings, digest, lesson, filed)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            (last,) = base.execute("SELECT max(number) FROM outbox").fetchone()
        return int(last or 0)

    def size(self) -> int:
        """Return the number of lessons in the outbox."""
        ((first, last),) = self._rows("SELECT min(number), max(number) FROM outbox")
        return 0 if first is None else int(last) - int(first) + 1

    def is_in_log(self, number: int) -> bool:
        """Return whether a lesson and all before it were sent."""
        query = "SELECT 1 FROM outbox WHERE number <= ? AND NOT sent LIMIT 1"
        return not self._rows(query, [number])

    def unsent(self, limit: int) -> list[PendingLesson]:
        """Return the next lessons to send, in order."""
        return self._lessons("NOT sent", [limit], "LIMIT ?")

    def pending(self, user: str, digests: Collection[int]) -> list[PendingLesson]:
        """Return a user's lessons about some messages that were not read back yet, in order."""
        wanted = ",".join("?" * len(digests))
        return self._lessons(f"user = ? AND digest IN ({wanted})", [user, *map(_signed, digests)])

    def after(self, user: str, number: int) -> list[PendingLesson]:
        """Return a user's lessons with higher numbers, in order."""
        return self._lessons("number > ? AND user = ?", [number, user])

    def pending_filed(self, user: str) -> list[PendingLesson]:
        """Return a user's lessons about messages that the log has filed, in order."""
        filed = "SELECT digest FROM outbox WHERE user = ? AND filed IS NOT NULL"
        return self._lessons(f"user = ? AND digest IN ({filed})", [user, user])

    def filed(self, user: str) -> Iterator[tuple[int, bytes | None]]:
        """Yield the digest of each of a user's lessons, and where the log has the message."""
        query = "SELECT digest, filed FROM outbox WHERE user = ? ORDER BY number"
        for digest, filed in self._rows(query, [user]):
            yield digest % 2**64, filed

    def _lessons(self, which: str, values: list[Any], limit: str = "") -> list[PendingLesson]:
        columns = ", ".join(PendingLesson._fields)
        query = f"SELECT {columns} FROM outbox WHERE {which} ORDER BY number {limit}"
        rows = map(PendingLesson._make, self._rows(query, values))
        return [row._replace(digest=row.digest % 2**64) for row in rows]

    def note_sent(self, origin: str, first: int, last: int, position: int) -> None:
        """Note lessons that were sent, the last one to a position, unless the origin changed."""
        with self._changed(_LATER) as base:
            if self._fact("origin") == origin:
                numbers = "number BETWEEN ? AND ?"
                base.execute(f"UPDATE outbox SET sent = 1 WHERE {numbers}", [first, last])
                base.execute("INSERT OR REPLACE INTO fact VALUES ('sent to', ?)", [str(position)])

    def awaited(self) -> tuple[int, int]:
        """Return the first lesson sent and not read back, or 0, and the last one's position."""
        first = "number = (SELECT min(number) FROM outbox)"
        found = self._rows(f"SELECT number FROM outbox WHERE sent AND {first}")
        return (found[0][0] if found else 0), int(self._fact("sent to") or 1)

    def sync(self) -> LogPosition:
        """Force to disk how far this host has read, and return that."""
        place = self.place()
        if place != self._synced:
            with self._changed() as base:
                base.execute("INSERT OR REPLACE INTO fact VALUES ('synced', ?)", [place.n_read])
            self._synced = place
        return place

    def users(self) -> list[str]:
        """Return the users with lessons in the outbox."""
        return [user for (user,) in self._rows("SELECT DISTINCT user FROM outbox")]

    def send_again(self, why: str, what: str) -> None:
        """Have all lessons sent again once a fact changes, such as the log that was lost."""
        with self._changed() as base:
            if self._fact(why) != what:
                base.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", [why, what])
                base.execute("UPDATE outbox SET sent = 0")


def _signed(digest: int) -> int:
    """Return a digest as an integer of SQLite, which has 63 bits and a sign."""
    return digest - 2**64 if digest >= 2**63 else digest
