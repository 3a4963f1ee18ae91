"""A look at an account: what has changed since the last one, and the memory of how it ended.

The memory is a file of SQLite beside the model, MODEL.accounts.  A digest of a few of its headers
identifies a message, because UIDs change with every move and with UIDVALIDITY.  Every known event
is on disk before the next command is sent.  The model never needs this file: without it, messages
that nobody has read are judged again.

Unlike the page's database, the file stays open for a whole look.  A damaged file is an error and
is not put aside: without it, old moves would be lessons again.

`AccountLook` finds the messages that are new, have gone, or have another keyword; `need_of` tells
the need of each.
"""

import os
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from enum import Enum
from hashlib import blake2b
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam import disk
from nbspam.delivery.maildir import MOVING
from nbspam.imap.session import AccountSession, MessageHead
from nbspam.sources.files import MAX_MESSAGE

# ---- the memory ----

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
        self.model, self.account = disk.resolved(model), account
        self.path = f"{self.model}.accounts"
        self._writes = writes
        with self._careful():
            self._connection = self._connected()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def alone(self, patience: float) -> AbstractContextManager[None]:
        """Return the lock of the account, so that two programs do not sort it at once.

        patience: seconds to wait for another program.
        """
        if not self._writes:
            return nullcontext()
        name = f"{self.path}.{bytes_digest(self.account.encode()):016x}"
        return disk.locked(name, self.model, patience)

    # ---- the file ----

    def _careful(self) -> AbstractContextManager[None]:
        return disk.keeping_notes(self.path, "sorting")

    def _connected(self) -> sqlite3.Connection:
        is_there = os.path.lexists(self.path)
        if is_there:
            disk.check_own(self.path, self.model)  # SQLite would follow a link
        elif self._writes:
            disk.make_folder(disk.parent_folder(self.path))
            disk.make_file(self.path, like=disk.parent_folder(self.path))
        place = self.path if self._writes else ":memory:"
        connection = sqlite3.connect(place, timeout=_WAIT, isolation_level="IMMEDIATE")
        try:
            if is_there and not self._writes:
                with closing(sqlite3.connect(self.path, timeout=_WAIT)) as kept:
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

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; the changes are on disk when the block has ended."""
        with self._careful(), self._connection:
            yield self._connection

    # ---- UIDs ----

    def known(self, folder: str, validity: int) -> NDArray[np.int64]:
        """Return UIDs and digests of a folder's messages, (n_messages, 2), in order of UIDs.

        UIDs are 0 if the folder was numbered again.
        """
        question = (
            "WITH own AS (SELECT * FROM uids WHERE account = ? AND folder = ? AND validity != 0)"
            " SELECT iif(validity = ?, uid, 0), digest FROM own ORDER BY 1"
        )
        rows = self._rows(question, folder, validity)
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


# ---- a look ----

JUNK, NOT_JUNK = "$Junk", "$NotJunk"
# Keywords that mail programs set (Thunderbird, Apple Mail, RFC 9051), as these write them.
KEYWORDS = {"spam": (JUNK, "Junk"), "ham": (NOT_JUNK, "NonJunk", "NotJunk")}
# As flags of messages, which are in small letters.
_FLAGS = {name: frozenset(map(str.lower, words)) for name, words in KEYWORDS.items()}
_SEEN = "\\seen"
_AT_ONCE = 5000  # messages that stay, and are looked up and noted at once


class PlacedMessage(NamedTuple):
    """A message, and where it is now."""

    folder: str
    validity: int
    uid: int
    digest: int
    place: str  # ham, spam or unsure: the meaning of its folder
    keyword: str  # ham, spam or "": the meaning of its keyword, or of a copy's
    is_read: bool  # or has a keyword: somebody has seen it
    is_known: bool = False  # it was there at the last look
    is_lesson: bool = False  # a look that ended early found that it must be learned as spam
    is_delivered: bool = False  # or moved here, since the last look; no UIDs have changed


class Need(Enum):
    """The need of a message."""

    NOTHING = "stays where it is"
    VERDICT = "is new mail"
    HAM, SPAM = "ham", "spam"  # its user calls it so: a lesson
    CHECK = "unknown in the spam folder: a lesson, unless its verdict is spam"
    REMOVAL = "copied by a look that ended before it could remove it"
    COMPARISON = "also where it was left: it is being moved, or was delivered again"


def need_of(
    each: PlacedMessage, left: LeftMessage | None, places: Collection[str], has_gone: bool
) -> Need:
    """Return the need of a message.

    left: how it was left; None: no look has seen it.  places: all that hold a copy of it now.
    has_gone: whether a copy has gone since the last look.  Anybody can write the headers by which
    a message is known above another text.
    """
    here, says = each.place, each.keyword
    need_of_mail = Need.VERDICT if here == "ham" and not each.is_read else Need.NOTHING
    if left is None:
        if says:
            return Need(says)
        if here == "spam":
            return Need.SPAM if each.is_lesson else Need.CHECK
        return need_of_mail
    if left.place == MOVING:
        if here != "ham" or says == "spam":
            return Need.NOTHING  # it was moved, or marked, before this could be noted
        if set(places) <= {"ham"}:
            return Need(says) if says not in ("", left.keyword) else Need.VERDICT
        return Need.REMOVAL
    if says and says != left.keyword:
        return Need(says)
    if left.keyword == "spam" and not says and each.is_known and not has_gone:
        return Need.HAM
    if left.place == here:
        return need_of_mail if each.is_delivered else Need.NOTHING
    if left.place in places:
        return Need.COMPARISON
    if here == "ham" and not has_gone:
        return need_of_mail
    return Need.NOTHING if here == "unsure" else Need(here)


class AccountLook:
    """One look at the folders of an account."""

    def __init__(self, session: AccountSession, memory: AccountMemory) -> None:
        self.session, self.memory = session, memory
        self.following: dict[str, int] = {}  # UIDNEXT, also where none is stated
        self.validities: dict[str, int] = {}  # UIDVALIDITY, by folder
        # Folder, UIDVALIDITY, and (n, 2) UIDs and digests of messages that are new here and need
        # nothing.  They may be all messages of an account, so none is an object.
        self._settled: list[tuple[str, int, NDArray[np.int64]]] = []
        self.gone: list[tuple[str, int, int, int]] = []  # folder, UIDVALIDITY, UID, digest
        self._found: list[PlacedMessage] = []
        self._present: list[tuple[str, NDArray[np.int64]]] = []  # places, and the digests there
        self._said: dict[int, str] = {}  # by digest; "": its copies have both keywords

    def take(self, folder: str, place: str, writes: bool) -> None:
        """Open a folder and compare its messages with the memory.

        place: the meaning of the folder.  writes: it stays open to be changed.
        """
        opened = self.session.open(folder, writes)
        self.validities[folder] = opened.validity
        known = self.memory.known(folder, opened.validity)
        is_delivered = opened.validity > 0 and bool(known[:, 0].all())
        present = np.array(self.session.uids(), np.int64)
        self.following[folder] = opened.following or int(present.max(initial=0)) + 1
        is_there = np.isin(known[:, 0], present)
        self.gone += [(folder, opened.validity, *row) for row in known[~is_there].tolist()]
        known = known[is_there]
        found = list(self._marked(known, place))
        new = array("q", present[~np.isin(present, known[:, 0])].tobytes())
        digests = [known[:, 1].copy()]
        del present, is_there, known  # of 100,000 messages 3 MB
        for first in range(0, len(new), _AT_ONCE):
            some = list(self.heads(new[first : first + _AT_ONCE], place))
            left = self.memory.left({each.digest for each in some})
            settled = []
            for each in some:
                one = each._replace(is_delivered=is_delivered)
                if _is_settled(one, left.get(one.digest)):
                    settled.append((one.uid, one.digest))
                else:
                    found.append(one)
            rows = np.array(settled, np.int64).reshape(-1, 2)
            self._settled.append((folder, opened.validity, rows))
            digests.append(rows[:, 1])
        self._found += found
        digests.append(np.array([each.digest for each in found], np.int64))
        self._present.append((place, np.concatenate(digests)))

    def found(self) -> list[PlacedMessage]:
        """Return the messages that are new in a folder, or have another keyword.

        The keyword of one copy is that of all: another one may have come later.
        """
        return [e._replace(keyword=self._said.get(e.digest, "")) for e in self._found]

    def places(self, digests: set[int]) -> dict[int, set[str]]:
        """Return the places in which messages are now, by digest; gone messages are missing."""
        places: dict[int, set[str]] = defaultdict(set)
        wanted = np.fromiter(digests, np.int64, len(digests))
        for place, present in self._present:
            for digest in present[np.isin(present, wanted)].tolist():
                places[digest].add(place)
        return places

    def note(self, day: int) -> None:
        """Note which messages have gone, and which need nothing; day: since 1970-01-01."""
        for (folder, validity), group in groupby(self.gone, itemgetter(0, 1)):
            self.memory.note(folder, validity, (), [uid for *_, uid, _ in group])
        for folder, validity, messages in self._settled:
            digests = messages[:, 1].tolist()
            left = self.memory.left(digests)  # the others were read
            self.memory.leave([(e, left.get(e, LeftMessage("ham"))) for e in digests], day)
            self.memory.note(folder, validity, messages.tolist())

    def heads(self, uids: Sequence[int], place: str) -> Iterator[PlacedMessage]:
        """Yield messages of the open folder; those that are missing are left out.

        uids: in order.  Each head is read once, however many connections a look takes.
        """
        folder, validity = self.session.folder.name, self.session.folder.validity
        kept = self.memory.heads(folder, validity, uids[0], uids[-1]) if len(uids) else {}
        # Users may have read or marked messages since their heads were kept.
        again = self.session.heads([uid for uid in uids if uid in kept])
        flags = {head.uid: head.flags for head in again}
        for batch in with_digests(self.session, [uid for uid in uids if uid not in kept]):
            read = {head.uid: ReadHead(digest) for head, digest in batch}
            self.memory.keep_heads(folder, validity, read)
            kept |= read
            flags |= {head.uid: head.flags for head, _ in batch}
        for uid in uids:
            if uid in flags:
                digest, is_lesson = kept[uid]
                keyword = keyword_of(flags[uid])
                is_read = _SEEN in flags[uid] or keyword != ""
                self._hear(digest, keyword)
                yield PlacedMessage(
                    folder, validity, uid, digest, place, keyword, is_read, is_lesson=is_lesson
                )

    def _keywords(self) -> dict[int, str]:
        """Return the class that keywords state, by UID in the open folder; "": both classes."""
        opened = self.session.folder
        stated: dict[int, str] = {}
        for name, (first, *others) in KEYWORDS.items():
            if _FLAGS[name] & opened.keywords:
                either = [part for word in others for part in ("OR", "KEYWORD", word)]
                for uid in self.session.uids(*either, "KEYWORD", first):
                    stated[uid] = "" if uid in stated else name
        return stated

    def _marked(self, known: NDArray[np.int64], place: str) -> Iterator[PlacedMessage]:
        """Yield known messages of the open folder whose keyword has changed.

        known: UIDs and digests of messages that are still there, (n_messages, 2).
        """
        opened = self.session.folder
        before, now = self.memory.with_keyword(), self._keywords()
        uids, digests = (np.fromiter(each, np.int64, len(each)) for each in (now, before))
        for uid, digest in known[
            np.isin(known[:, 0], uids) | np.isin(known[:, 1], digests)
        ].tolist():
            keyword = now.get(uid, "")
            self._hear(digest, keyword)
            if keyword != before.get(digest, ""):
                yield PlacedMessage(
                    opened.name, opened.validity, uid, digest, place, keyword, True, True
                )

    def _hear(self, digest: int, keyword: str) -> None:
        if keyword:
            self._said[digest] = keyword if self._said.get(digest, keyword) == keyword else ""


def _is_settled(each: PlacedMessage, left: LeftMessage | None) -> bool:
    """Return whether a message needs nothing, wherever its copies are."""
    if left is None:
        return each.place == "ham" and each.is_read and not each.keyword
    is_left = (left.place, left.keyword) == (each.place, each.keyword)
    return is_left and need_of(each, left, (), True) is Need.NOTHING


def keyword_of(flags: frozenset[str]) -> str:
    """Return the class that the flags of a message state: ham, spam, or "" for none or both."""
    said = [name for name, words in _FLAGS.items() if words & flags]
    return said[0] if len(said) == 1 else ""
