"""A mail account as the page shows it: inbox and junk folder, over one connection.

A message's key is its digest in `nbspam sort`, so that the key survives a move.
Nothing is marked as read.  A move keeps the notes of `sort` true at any moment: they say `moving`
before it, and the new place after it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from nbspam.arrays import today
from nbspam.delivery.account_look import AccountMemory, LeftMessage, keyword_of, with_digests
from nbspam.delivery.maildir import MOVING
from nbspam.errors import InputError, LostError, NbspamError, UsageError
from nbspam.imap.accounts import INBOX, AccessBook, imap_url
from nbspam.imap.session import AccountSession
from nbspam.imap.troubles import AccountRefusedError
from nbspam.server.page.mailbox import HELD, HELD_BYTES, PATIENCE, MailboxLetter, ReviewMailbox
from nbspam.sources.files import MAX_MESSAGE, is_account
from nbspam.workers import grouped

_MOST_IN_FOLDER = 1000  # messages that are shown
_KEPT_BYTES = 32 << 20  # of messages that were read last
_SILENCE = 10.0  # seconds: while a server is silent, all visitors of the worker wait

Result = TypeVar("Result")


class _Found(NamedTuple):
    """Where a message was at the last look."""

    folder: str
    validity: int
    uid: int
    size: int  # bytes
    arrived: float  # seconds since 1970


class AccountMailbox(ReviewMailbox):
    """The newest messages of an account; connects at first use, and again when it must.

    Every method that looks at messages raises NbspamError.
    """

    def __init__(self, path: str, model: str, book: AccessBook) -> None:
        self.book: AccessBook = book
        self._url = imap_url(path)
        super().__init__(path, model)
        self._inbox = self._url.folder or INBOX
        self._junk: str | None = None  # None: there is none, or nobody has looked
        self._session: AccountSession | None = None
        self._numbered: dict[str, dict[int, tuple[str, _Found]]] = {}  # by folder and UID
        self._at: dict[str, list[_Found]] = {}  # by key
        self._kept: dict[tuple[str, int, int], bytes] = {}  # those read last at the end

    def _check_exists(self) -> None:
        """Raise nothing: whether the account exists shows when it is used."""

    def check(self, moves: bool) -> None:
        """Log in; raises NbspamError if messages cannot be shown, or are to move and cannot."""

        def opened(session: AccountSession) -> None:
            session.open(self._inbox)
            if moves:
                self._check_moves(session)

        self._asked(opened)

    def close(self) -> None:
        """End the connection; the next use opens another one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def newest(self) -> list[MailboxLetter]:
        """Return the newest messages of both folders, newest first."""
        self._asked(self._find_all)
        letters = [
            MailboxLetter(key, places[0].arrived, places[0].uid)
            for key, places in self._at.items()
        ]
        return sorted(letters, key=lambda letter: letter[1:], reverse=True)

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the messages that are still there."""
        missing = dict.fromkeys(keys)
        for is_again in (False, True):
            if missing and is_again:  # where they were at the last look, they are not
                self._asked(self._find_all)
            here = [(key, self._at[key][0]) for key in missing if key in self._at]
            for few in grouped(here, lambda each: each[1].size, HELD_BYTES, HELD):
                for key, data in self._asked(partial(self._read_batch, batch=dict(few))).items():
                    del missing[key]
                    yield key, data

    def folder_of(self, key: str) -> str:
        """Return the folder where a message was at the last look; both, if it has a copy."""
        return ", ".join(each.folder for each in self._at.get(key, ()))

    # ---- looking ----

    def _asked(self, question: Callable[[AccountSession], Result]) -> Result:
        """Return the result of a request; after a lost connection it is repeated once."""
        while True:
            is_old = self._session is not None
            try:
                if self._session is None:
                    self._session = AccountSession(self._url, self.book, _SILENCE)
                    named = self.book.access_to(self._url).spam_folder
                    self._junk = self._session.junk_folder(self._session.folders(), named)
                return question(self._session)
            except NbspamError as error:  # then, too, the junk folder may be unknown yet
                self.close()
                if not (is_old and isinstance(error, LostError)):
                    raise

    def _places(self) -> dict[str, str]:
        return {self._inbox: "ham"} | ({} if self._junk is None else {self._junk: "spam"})

    def _find_all(self, session: AccountSession) -> None:
        """Find where the newest messages are; only messages new in a folder are fetched."""
        at: dict[str, list[_Found]] = {}
        for folder in self._places():
            validity = session.open(folder).validity
            uids = session.uids()[-_MOST_IN_FOLDER:]
            before = self._numbered.get(folder, {}) if validity else {}
            before = {uid: known for uid, known in before.items() if known[1].validity == validity}
            found = {uid: before[uid] for uid in uids if uid in before}
            # Kept at once: the connection may be lost before all are found.
            self._numbered[folder] = found
            for key, each in _new_in(session, [uid for uid in uids if uid not in before]):
                found[each.uid] = key, each
            for key, each in found.values():
                at.setdefault(key, []).append(each)
        self._at = at

    def _read_batch(self, session: AccountSession, batch: dict[str, _Found]) -> dict[str, bytes]:
        """Return a few messages by their keys, as far as they are where they were."""
        # Looked up first: entries added below may push these out.
        read = {e[:3]: self._kept.pop(e[:3]) for e in batch.values() if e[:3] in self._kept}
        places = [each[:3] for each in batch.values() if each[:3] not in read]
        for folder, validity in dict.fromkeys(place[:2] for place in places):
            if session.folder.name != folder:
                session.open(folder)
            if session.folder.validity == validity:
                uids = [uid for *where, uid in places if where == [folder, validity]]
                for fetched in session.messages(uids, MAX_MESSAGE):
                    read |= {(folder, validity, uid): d for uid, d in fetched.data.items()}
        self._kept |= read
        while sum(map(len, self._kept.values())) > _KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
        return {key: read[each[:3]] for key, each in batch.items() if each[:3] in read}

    # ---- moving ----

    def _check_moves(self, session: AccountSession) -> None:
        """Raise UsageError if no message can be moved."""
        account = self._url.account
        if not session.can_move:
            raise UsageError(
                f"{account}: the server cannot move a message alone (neither MOVE nor UIDPLUS);"
                " leave --move out"
            )
        if self._junk is None:
            raise UsageError(f"{account}: no junk folder; make one, or leave --move out")

    def leaves(self, key: str, label: str) -> str | None:
        """Return the folder from which `file` would move a message; None: it would not."""
        self._asked(self._find_all)
        found, target = self._at.get(key, []), self._folder_for(label)
        return None if len(found) != 1 or target in (None, found[0].folder) else found[0].folder

    def file(self, key: str, label: str) -> str | None:
        """Move a message as in a Maildir; raises InputError if another one has its headers."""
        moved, folders = super().file(key, label), [e.folder for e in self._at.get(key, ())]
        if moved is None and len(folders) > 1 and {*folders} != {self._folder_for(label)}:
            raise InputError(
                f"{self._url.account}: {len(folders)} messages ({', '.join(folders)}) have its"
                " headers, perhaps another text; move them in a mail program"
            )
        return moved

    def _move(self, key: str, folder: str) -> str | None:
        """Move a message to a folder; return the folder where it was, None if it was not moved."""

        def moved(session: AccountSession) -> str | None:
            memory = AccountMemory(self.model, self._url.account)
            with closing(memory), memory.alone(PATIENCE):
                self._find_all(session)
                found = self._at.get(key, [])
                there = [each for each in found if each.folder == folder]
                if there and "UIDPLUS" in session.abilities and int(key, 16) in memory.moving():
                    # A broken move has copied it.
                    for other in self._places().keys() - {folder}:
                        session.open(other, writes=True)
                        marked = _new_in(session, session.uids(deleted=True))
                        copies = [each.uid for name, each in marked if name == key]
                        copies += [each.uid for each in found if each.folder == other]
                        if copies:
                            session.remove(copies)
                    found = self._at[key] = there
                if len(found) != 1:
                    return None
                return self._move_noted(session, memory, int(key, 16), found[0], folder)

        return self._asked(moved)

    def _move_noted(
        self, session: AccountSession, memory: AccountMemory, digest: int, at: _Found, folder: str
    ) -> str | None:
        """Move a message that lies in one folder, and note it, so that `sort` learns nothing."""
        places, day = self._places(), today()
        session.open(at.folder, writes=True)
        head = next(session.heads([at.uid]), None)
        if head is None:
            return None
        left = LeftMessage(places[at.folder], keyword_of(head.flags))
        placed = {at.uid: (at.validity, at.uid)}
        if at.folder != folder:
            self._check_moves(session)
            memory.leave([(digest, left._replace(place=MOVING))], day)
            try:
                placed = session.move([at.uid], folder)
            except AccountRefusedError:
                memory.leave([(digest, left)], day)
                raise
        memory.leave([(digest, left._replace(place=places[folder]))], day)
        for validity, uid in placed.values():
            memory.note(folder, validity, [(uid, digest)])
        return None if at.folder == folder else at.folder


def _new_in(session: AccountSession, uids: Sequence[int]) -> Iterator[tuple[str, _Found]]:
    """Yield messages of the open folder with their keys."""
    name, validity = session.folder.name, session.folder.validity
    for head, digest in chain.from_iterable(with_digests(session, uids)):
        yield f"{digest:016x}", _Found(name, validity, head.uid, head.size, head.arrived)


def review_mailbox(path: str, model: str, book: AccessBook | None) -> ReviewMailbox:
    """Return the site's mailbox at a path, or of an account; raises InputError and UsageError.

    book: the ways to accounts; None: those without options.
    """
    if is_account(path):
        return AccountMailbox(path, model, book or AccessBook())
    return ReviewMailbox(path, model)
