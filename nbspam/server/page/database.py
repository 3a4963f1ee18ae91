"""The page's database: verdicts on the messages of a mailbox, and labels that people gave them.

It is a file of SQLite beside the model, MODEL.review, which all workers write.  The model itself
never needs it: a lesson is in the model, on disk, before it is noted here.  A damaged file is put
aside and a new one begun; only the page's history is lost.
"""

import contextlib
import json
import os
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nbspam.counts.lessons import Outcome
from nbspam.disk import check_own, keeping_notes, locked, make_file, parent_folder, resolved
from nbspam.verdicts import Evidence

N_REASONS = 3  # tokens that are shown in a list of messages
_GROWN = 1.1  # times as much learned as before: verdicts are new, ever more rarely
_KEPT = 90 * 86_400  # seconds for messages that have gone; the course shows a month
_WAIT = 10.0  # seconds for another worker that writes
_VERSION = 1
_TABLES = f"""
CREATE TABLE seen (
    key TEXT PRIMARY KEY, arrived REAL, place INTEGER, sender TEXT, subject TEXT, folded TEXT,
    label TEXT, probability REAL, reasons TEXT, judged REAL, learned REAL,
    is_known INTEGER, is_here INTEGER
) WITHOUT ROWID;
CREATE TABLE told (
    id INTEGER PRIMARY KEY, at REAL, key TEXT, label TEXT, before TEXT, folder TEXT, undone REAL
);
CREATE INDEX told_key ON told (key);
CREATE INDEX seen_arrived ON seen (arrived, place);
CREATE TABLE doubts (of TEXT, begun REAL, ended REAL, found TEXT, running REAL, problem TEXT);
INSERT INTO doubts DEFAULT VALUES;
CREATE TABLE settled (key TEXT PRIMARY KEY, label TEXT, at REAL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
# The number of the last label of a message that is not undone, NULL without one.
_LAST = "(SELECT max(id) FROM told WHERE key = seen.key AND undone IS NULL)"
LIST_ORDERS = {
    "newest": "arrived DESC, place DESC",
    "unsure": (
        "id IS NOT NULL, seen.label = 'unsure' DESC, abs(probability - 0.5), arrived DESC,"
        " place DESC"
    ),
}


class SeenMessage(NamedTuple):
    """A message and its verdict."""

    key: str
    arrived: float  # seconds since 1970
    place: int
    sender: str
    subject: str
    label: str
    probability: float  # of spam
    reasons: tuple[tuple[str, float], ...]  # from `reasons_of`
    judged: float  # seconds since 1970
    learned: float = 0.0  # messages that the model had learned then
    is_known: bool = False  # whether this one was among them
    told: str | None = None  # the last label that a person gave it
    told_number: int | None = None  # by which that label can be undone


class PersonLabel(NamedTuple):
    """A label that a person gave a message."""

    number: int
    at: float  # seconds since 1970
    key: str
    label: str
    before: str | None  # the class in which the model had learned it; None: none
    folder: str | None = None  # where it lay before it was moved; None: it was not


class RememberedVerdict(NamedTuple):
    """A verdict, and whether a person agreed."""

    arrived: float  # seconds since 1970
    label: str
    probability: float  # of spam
    told: str | None  # the last label that a person gave it
    at: float | None  # when
    is_known: bool  # the model had learned the message before, or before a person marked it


def reasons_of(evidence: Sequence[Evidence], towards: str) -> tuple[tuple[str, float], ...]:
    """Return the first tokens and their nats; evidence of spam is positive.

    evidence: the strongest first.  towards: the class that it favours.
    """
    sign = 1.0 if towards == "spam" else -1.0
    return tuple((each.token, sign * each.contribution) for each in evidence[:N_REASONS])


class MessageFilter(NamedTuple):
    """Which messages are to be listed."""

    words: str = ""  # all of which the sender and subject contain
    label: str | None = None  # their verdict; None: any
    order: str = "newest"  # one of LIST_ORDERS


class Database:
    """The page's memory beside a model; opened for each use, so that threads may share it.

    Every method raises ModelFileError if the file cannot be used.
    """

    def __init__(self, model: str) -> None:
        self.model = resolved(model)
        self.path = f"{self.model}.review"

    # ---- the file ----

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the open file; its changes are on disk when the block has ended."""
        with (
            keeping_notes(self.path, "--web"),
            contextlib.closing(self._connected()) as connection,
            connection,
        ):
            yield connection

    def _connected(self) -> sqlite3.Connection:
        if connection := self._found():
            return connection
        with locked(self.model, patience=_WAIT):
            return self._found() or self._begun()  # another worker may have been faster

    def _found(self) -> sqlite3.Connection | None:
        """Return a connection to the file, None if there is none or it is damaged."""
        try:
            check_own(self.path, self.model)  # SQLite would follow a link
            return self._prepared()
        except sqlite3.OperationalError:  # locked, or the disk is full
            raise
        except (FileNotFoundError, sqlite3.DatabaseError, ValueError):
            return None

    def _prepared(self) -> sqlite3.Connection:
        """Return a connection to a file that is ours; raises sqlite3.DatabaseError."""
        connection = _connection(self.path)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                raise sqlite3.DatabaseError("not the notes of a page")
            connection.execute("SELECT key FROM seen LIMIT 1")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begun(self) -> sqlite3.Connection:
        """Return a connection to a new file; put a damaged one aside."""
        with contextlib.suppress(FileNotFoundError):
            os.replace(self.path, f"{self.path}.damaged")
        begun = f"{self.path}.new"
        for left in (begun, f"{self.path}-wal", f"{self.path}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
        # Not like the model itself, whose mode may let others read.
        make_file(begun, like=parent_folder(begun))
        with contextlib.closing(_connection(begun)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # it stays so
            connection.executescript(_TABLES)
        os.rename(begun, self.path)
        return self._prepared()

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Return the lock that a lesson and its note here need, among all processes."""
        return locked(self.path, like=self.model, patience=_WAIT)

    # ---- messages ----

    def note(self, rows: Iterable[SeenMessage]) -> None:
        """Note messages in the mailbox: their newest verdicts, and when they were there first."""
        values = (
            (*row[:2], row.key, *row[2:5], _folded(f"{row.sender} {row.subject}"), *row[5:7],
             json.dumps(row.reasons), row.judged, row.learned, row.is_known)
            for row in rows
        )  # fmt: skip
        with self._opened() as connection:
            connection.executemany(  # an mbox has only the time of its newest message
                "INSERT OR REPLACE INTO seen VALUES"
                " (?, min(?, ifnull((SELECT arrived FROM seen WHERE key = ?), 9e999)),"
                " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
                values,
            )

    def judged_since(self, moment: float, learned: float, keys: Collection[str]) -> set[str]:
        """Return the messages whose verdict still holds; the others need a new one.

        A verdict holds if it is not older than `moment`, nor of a time to come (the clock was set
        back), and the model has not grown much since.
        A verdict on a message that a person has marked always stays.  learned: messages that the
        model has learned now.  keys: of all messages in the mailbox; only these are listed from
        now on.
        """
        with self._opened() as connection:
            connection.execute("CREATE TEMP TABLE here (key TEXT PRIMARY KEY)")
            connection.executemany("INSERT INTO here VALUES (?)", ((key,) for key in keys))
            here = "key IN (SELECT key FROM here)"
            connection.execute(f"UPDATE seen SET is_here = {here} WHERE is_here != ({here})")
            connection.execute(
                f"DELETE FROM seen WHERE NOT is_here AND {_LAST} IS NULL"
                f" AND judged < (SELECT max(judged) FROM seen) - {_KEPT}"
            )
            found = connection.execute(
                "SELECT key FROM seen WHERE is_here"
                " AND (judged BETWEEN :moment AND strftime('%s', 'now') + 1"
                f" AND :now BETWEEN learned / {_GROWN} AND learned * {_GROWN} OR {_LAST})",
                {"moment": moment, "now": learned},
            )
            return {key for (key,) in found}

    def listed(self, wanted: MessageFilter, start: int, number: int) -> list[SeenMessage]:
        """Return the wanted messages from `start` on, at most `number` of them."""
        where, values = _condition(wanted)
        where += f" ORDER BY {LIST_ORDERS[wanted.order]} LIMIT ? OFFSET ?"
        return self._rows(where, *values, number, start)

    def find(self, key: str) -> SeenMessage | None:
        """Return a message, None if it was never seen."""
        return next(iter(self._rows("seen.key = ?", key)), None)

    def _rows(self, where: str, *values: Any) -> list[SeenMessage]:
        with self._opened() as connection:
            found = connection.execute(
                "SELECT seen.key, arrived, place, sender, subject, seen.label, probability,"
                " reasons, judged, learned, is_known, told.label, id"
                f" FROM seen LEFT JOIN told ON id = {_LAST} WHERE {where}",
                values,
            )
            return [
                SeenMessage(*row)._replace(reasons=tuple(map(tuple, json.loads(row[7]))))
                for row in found
            ]

    def count(self, wanted: MessageFilter) -> int:
        """Return the number of wanted messages."""
        where, values = _condition(wanted)
        ((number,),) = self.run(f"SELECT count(*) FROM seen WHERE {where}", *values)
        return int(number)

    # ---- people's labels ----

    def tell(
        self, key: str, label: str, before: str | None, at: float, folder: str | None = None
    ) -> None:
        """Note a person's label for a message; see `PersonLabel`."""
        columns = "at, key, label, before, folder"
        self.run(
            f"INSERT INTO told ({columns}) VALUES (?, ?, ?, ?, ?)", at, key, label, before, folder
        )

    def last_told(self, key: str | None = None) -> PersonLabel | None:
        """Return the last label that is not undone, of one message or of all."""
        where = "undone IS NULL AND key = ifnull(?, key)"
        return self._told(f"SELECT max(id) FROM told WHERE {where}", key)

    def told(self, number: int) -> PersonLabel | None:
        """Return a label; None if it is undone, or its message got another one later."""
        of_key = "undone IS NULL AND key = (SELECT key FROM told WHERE id = ?)"
        last = self._told(f"SELECT max(id) FROM told WHERE {of_key}", number)
        return last if last is not None and last.number == number else None

    def _told(self, which: str, *values: int | str | None) -> PersonLabel | None:
        rows = self.run(
            f"SELECT id, at, key, label, before, folder FROM told WHERE id = ({which})", *values
        )
        return next(map(PersonLabel._make, rows), None)

    def undo(self, number: int, at: float) -> None:
        """Note that a label is undone; a label that it settled may be doubted again."""
        of_label = "SELECT at FROM told WHERE id = ? AND key = settled.key"
        self.run(f"DELETE FROM settled WHERE at >= ({of_label})", number)
        self.run("UPDATE told SET undone = ? WHERE id = ? AND undone IS NULL", at, number)

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""
        with self._opened() as connection:
            return connection.execute(statement, values).fetchall()

    # ---- the model's course ----

    def judged(self, since: float) -> list[RememberedVerdict]:
        """Return the verdicts on messages that arrived, or were marked, since then.

        Messages that have left the mailbox are among them; unjudged messages are not.
        """
        # SQLite takes the other columns of a group from the row of its maximum.
        found = self.run(
            "SELECT arrived, seen.label, probability, last.label, at,"
            " is_known OR before IS NOT NULL FROM seen"
            " LEFT JOIN (SELECT key, label, at, max(id), (SELECT before FROM told AS first"
            " WHERE key = told.key ORDER BY id LIMIT 1) AS before FROM told"
            " WHERE undone IS NULL GROUP BY key) AS last ON last.key = seen.key"
            " WHERE seen.label IN ('ham', 'unsure', 'spam') AND (arrived >= ? OR at >= ?)",
            since,
            since,
        )
        return list(map(RememberedVerdict._make, found))


def class_before(label: str, outcome: Outcome) -> str | None:
    """Return the class in which the model had learned a message, None if it had not."""
    if outcome.learned:
        return None
    if outcome.moved:
        return "ham" if label == "spam" else "spam"
    return label


def _connection(path: str) -> sqlite3.Connection:
    """Return a connection that begins as a writer, and waits for others that write."""
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level="IMMEDIATE")
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:  # not a file of SQLite
        connection.close()
        raise
    return connection


def _folded(text: str) -> str:
    """Return a text as it is searched: a letter may be written in several ways."""
    return unicodedata.normalize("NFKC", text).casefold()


def _condition(wanted: MessageFilter) -> tuple[str, Sequence[str]]:
    words = _folded(wanted.words).split()
    labels = [wanted.label] if wanted.label else []
    parts = ["is_here", *["instr(folded, ?)"] * len(words), *["seen.label = ?"] * len(labels)]
    return " AND ".join(parts), [*words, *labels]
