"""The folders of an account, compared with the state in which the last look left them.

`AccountLook` finds the messages that are new, have gone, or have another keyword; `need_of` tells
the need of each.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.delivery.account_memory import AccountMemory, LeftMessage, ReadHead, with_digests
from nbspam.delivery.maildir import MOVING
from nbspam.imap.session import AccountSession

JUNK, NOT_JUNK = "$Junk", "$NotJunk"
# Keywords that mail programs set (Thunderbird, Apple Mail, RFC 9051), as these write them.
_KEYWORDS = {"spam": (JUNK, "Junk"), "ham": (NOT_JUNK, "NonJunk", "NotJunk")}
# As flags of messages, which are in small letters.
_FLAGS = {name: frozenset(map(str.lower, words)) for name, words in _KEYWORDS.items()}
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
        return Need.VERDICT if set(places) <= {"ham"} else Need.REMOVAL
    if says and says != left.keyword:
        return Need(says)
    if left.keyword == "spam" and not says and each.is_known:
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
        self.following: dict[str, int] = {}  # UIDNEXT, by folder
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
        self.following[folder] = opened.following
        known = self.memory.known(folder, opened.validity)
        is_delivered = opened.validity > 0 and bool(known[:, 0].all())
        present = np.array(self.session.uids(), np.int64)
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
        opened = self.session.folder
        folder, validity = opened.name, opened.validity
        stated: dict[int, str] = {}
        unread: set[int] = set()
        kept: dict[int, ReadHead] = {}
        if len(uids) and (kept := self.memory.heads(folder, validity, uids[0], uids[-1])):
            # What users have said and read since then.
            stated = self._keywords("UID", f"{uids[0]}:{uids[-1]}")
            unread.update(self.session.uids("UNSEEN", "UID", f"{uids[0]}:{uids[-1]}"))
        for batch in with_digests(self.session, [uid for uid in uids if uid not in kept]):
            read = {head.uid: ReadHead(digest) for head, digest in batch}
            self.memory.keep_heads(folder, validity, read)
            kept |= read
            stated |= {head.uid: keyword_of(head.flags) for head, _ in batch}
            unread.update(head.uid for head, _ in batch if _SEEN not in head.flags)
        for uid in uids:
            if uid in kept:
                digest, is_lesson = kept[uid]
                keyword = stated.get(uid, "")
                is_read = uid not in unread or keyword != ""
                self._hear(digest, keyword)
                yield PlacedMessage(
                    folder, validity, uid, digest, place, keyword, is_read, is_lesson=is_lesson
                )

    def _keywords(self, *criteria: str) -> dict[int, str]:
        """Return the class that keywords state, by UID in the open folder; "": both classes."""
        opened = self.session.folder
        stated: dict[int, str] = {}
        for name, (first, *others) in _KEYWORDS.items():
            if _FLAGS[name] & opened.keywords:
                either = [part for word in others for part in ("OR", "KEYWORD", word)]
                for uid in self.session.uids(*criteria, *either, "KEYWORD", first):
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
