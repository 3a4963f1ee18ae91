"""Sorting an account: new mail moves by its verdict, and its user's actions are lessons.

One look compares the folders with their last state (`AccountMemory`): messages that have moved,
and keywords that mail programs have set, are lessons of the user.  A connection may end at any
step; the next look finds out what was done, and does the rest.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.classifier.classifier import Classifier
from nbspam.decision import HAM_AND_SPAM, Rule
from nbspam.delivery.account_memory import AccountMemory, LeftMessage, with_digests
from nbspam.delivery.maildir import (
    MOVING,
    SortedMessage,
    SortingReport,
    sorting_classifier,
    sorting_model,
)
from nbspam.errors import InputError, UsageError
from nbspam.imap.accounts import AccessBook, ImapUrl
from nbspam.imap.session import INBOX, AccountSession, OpenFolder
from nbspam.imap.troubles import AccountRefusedError
from nbspam.settings import PRESETS
from nbspam.sharing.sharer import shared_lessons
from nbspam.sources.files import MAX_MESSAGE
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.verdicts import Skipped, Verdict

JUNK, NOT_JUNK = "$Junk", "$NotJunk"
# Keywords that mail programs set (Thunderbird, Apple Mail, RFC 9051), as these write them.
_KEYWORDS = {"spam": (JUNK, "Junk"), "ham": (NOT_JUNK, "NonJunk", "NotJunk")}
# As flags of messages, which are in small letters.
_FLAGS = {name: frozenset(map(str.lower, words)) for name, words in _KEYWORDS.items()}
_SEEN = "\\seen"
_BATCH = 100  # messages that are moved at once
_AT_ONCE = 5000  # messages that stay, and are looked up and noted at once
_NO_LESSON = ("trash", "drafts", "all")  # moving spam to these folders teaches nothing
_MOST_OTHERS = 200  # folders that are looked at for messages that left the junk folder
_MOST_NEW = 5000  # messages in each of them


@dataclass(frozen=True, slots=True)
class AccountChoices:
    """How to sort an account."""

    spam_folder: str | None = None  # None: by its use, or its usual name
    unsure_folder: str | None = None  # None: such mail stays
    tags: bool = False  # spam is not moved but gets the keyword $Junk
    learns: bool = True
    dry_run: bool = False


class PlacedMessage(NamedTuple):
    """A message, and where it is now."""

    folder: str
    validity: int
    uid: int
    digest: int
    place: str  # ham, spam or unsure: the meaning of its folder
    keyword: str  # ham, spam or "": the meaning of its keyword
    is_read: bool  # or has a keyword: somebody has seen it
    is_known: bool = False  # it was there at the last look


class AccountToSort(NamedTuple):
    """An account, and how it is sorted."""

    url: ImapUrl  # its folder is where new mail arrives; "": INBOX
    book: AccessBook
    model_path: str
    choices: AccountChoices
    rule_of: Callable[[Classifier], Rule]  # by which probabilities become labels

    def sort_once(self, session: AccountSession, day: int, report: SortingReport) -> None:
        """Look at the account once, by a session; raises NbspamError.

        day: since 1970-01-01.  report: takes what is done, also before a connection is lost.
        """
        writes = not self.choices.dry_run
        with closing(AccountMemory(self.model_path, self.url.account, writes)) as memory:
            AccountSorter(self, session, memory, day, report).sort()


def sort_account(account: AccountToSort, day: int) -> SortingReport:
    """Look at an account once; raises NbspamError."""
    report = SortingReport()
    with AccountSession(account.url, account.book) as session:
        account.sort_once(session, day, report)
    return report


class AccountSorter:
    """One look at an account.

    session: to the account.  day: today, in days since 1970-01-01.
    """

    def __init__(
        self,
        account: AccountToSort,
        session: AccountSession,
        memory: AccountMemory,
        day: int,
        report: SortingReport,
    ) -> None:
        self.account, self.choices = account, account.choices
        self.session, self.memory = session, memory
        self._day, self.report = day, report
        self.inbox = account.url.folder or INBOX
        self._places: dict[str, str] = {}  # of the folders that are looked at
        self._following: dict[str, int] = {}  # UIDNEXT of them; after moves, as this look made it
        self._found: list[PlacedMessage] = []  # new here, or with another keyword
        # Folder, UIDVALIDITY, and (n, 2) UIDs and digests of messages that are new here and need
        # nothing.  They may be all messages of an account, so none is an object.
        self._settled: list[tuple[str, int, NDArray[np.int64]]] = []
        self._gone: list[tuple[str, int, int, int]] = []  # folder, UIDVALIDITY, UID, digest
        self._present: list[tuple[str, NDArray[np.int64]]] = []  # places, and the digests there
        self._places_of: dict[int, set[str]] = {}  # by digest, of messages that were elsewhere
        self._said: dict[int, str] = {}  # by digest; "": its copies have both keywords
        self._lessons: list[tuple[PlacedMessage, str]] = []
        self._put_there: list[PlacedMessage] = []
        self._new: list[PlacedMessage] = []
        self._copied: list[PlacedMessage] = []  # to be removed: an earlier look has copied them
        self._numbers: dict[str, tuple[int, int]] | None = None  # of other folders

    def sort(self) -> None:
        """Learn the user's lessons, then judge and move new mail; raises NbspamError."""
        with self.memory.alone():
            self._find_folders()
            for folder in self._places:
                self._look(folder)
            # The keyword of one copy is that of all: another one may have come later.
            self._found = [e._replace(keyword=self._said.get(e.digest, "")) for e in self._found]
            left = self.memory.left({each.digest for each in self._found})
            self._places_of = self._places_now({*left, *(digest for *_, digest in self._gone)})
            agreed = [e for e in self._found if self._consider(e, left.get(e.digest))]
            if not self.choices.dry_run:
                moving = {digest for digest, was in left.items() if was.place == MOVING}
                moved = [e for e in agreed if e.place != "ham" and e.digest in moving]
                self._drop_doubles(moved, moved)  # of a run that ended before it looked for them
            self._look_elsewhere()
            self._learn()
            if self._copied and not self.choices.dry_run:
                self._open(self.inbox)
                try:
                    self.session.remove([each.uid for each in self._copied])
                except AccountRefusedError as error:
                    self._skip(self._copied, error)
                    copied = {each.digest for each in self._copied}
                    agreed = [e for e in agreed if e.digest not in copied]
            self._judge()
            self._open(self.inbox)
            # Messages that need nothing are noted last: until here, a look can be repeated.
            for (folder, validity), group in groupby(self._gone, itemgetter(0, 1)):
                self.memory.note(folder, validity, (), [uid for *_, uid, _ in group])
            self._settle(
                (e, left.get(e.digest, LeftMessage(""))._replace(place=e.place, keyword=e.keyword))
                for e in agreed
            )
            for settled in self._settled:
                self._note_settled(*settled)
            if self._numbers is not None:
                self.memory.keep_following(self._numbers)
            self.memory.forget_gone(self._day)

    # ---- looking ----

    def _find_folders(self) -> None:
        """Find the folders that stand for spam, unsure and ham, the inbox last: it stays open."""
        folders = self.session.folders()
        names = {each.name for each in folders}
        self.spam = self.session.junk_folder(folders, self.choices.spam_folder)
        unsure = self.choices.unsure_folder
        self.unsure = unsure and self.session.name_of(unsure, names)
        if self.spam is None and not self.choices.tags:
            raise InputError(
                f"{self.account.url.account}: no junk folder; name one by --spam-folder, or give"
                " --tag"
            )
        own = [each.lower() for each in (self.inbox, self.spam, self.unsure) if each]
        if len(set(own)) < len(own):
            raise UsageError(
                f"{self.account.url.account}: one folder for two kinds of mail ({', '.join(own)});"
                " name others by --spam-folder and --unsure-folder"
            )
        for folder, place in ((self.spam, "spam"), (self.unsure, "unsure")):
            if folder is not None and folder in names:
                self._places[folder] = place
            elif folder is not None and self.choices.dry_run and not self.choices.tags:
                self.report.notes.append(
                    f"{self.account.url.account}: {folder}: no such folder; it would be made"
                )
        self._places[self.inbox] = "ham"
        self._others = [
            e.name for e in folders if e.use not in _NO_LESSON and e.name not in self._places
        ][:_MOST_OTHERS]

    def _look(self, folder: str) -> None:
        """Find the messages that are new in a folder, have gone, or have another keyword."""
        session, place = self.session, self._places[folder]
        opened = session.open(folder, writes=folder == self.inbox and not self.choices.dry_run)
        self._following[folder] = opened.following
        known = self.memory.known(folder, opened.validity)
        present = np.array(session.uids(), np.int64)
        is_there = np.isin(known[:, 0], present)
        self._gone += [(folder, opened.validity, *row) for row in known[~is_there].tolist()]
        known = known[is_there]
        found = list(self._marked(opened, known, place))
        new = array("q", present[~np.isin(present, known[:, 0])].tobytes())
        digests = [known[:, 1].copy()]
        del present, is_there, known  # of 100,000 messages 3 MB
        for part, settled in self._parted(self._heads(opened, new, place)):
            found += part
            self._settled.append((folder, opened.validity, settled))
            digests.append(settled[:, 1])
        self._found += found
        if folder == self.inbox and (moving := self.memory.moving()):
            # Copied and marked as deleted, but not removed when a connection ended.
            marked = self._heads(opened, session.uids(deleted=True), place)
            there = self._places_now(moving)
            self._copied += [each for each in marked if each.digest in there]
        digests.append(np.array([each.digest for each in found], np.int64))
        self._present.append((place, np.concatenate(digests)))

    def _parted(
        self, messages: Iterator[PlacedMessage]
    ) -> Iterator[tuple[list[PlacedMessage], NDArray[np.int64]]]:
        """Yield batches: the messages that may need something; UIDs and digests of the others."""
        while some := list(islice(messages, _AT_ONCE)):
            left = self.memory.left({each.digest for each in some})
            needed, settled = [], []
            for each in some:
                if _is_settled(each, left.get(each.digest)):
                    settled.append((each.uid, each.digest))
                else:
                    needed.append(each)
            yield needed, np.array(settled, np.int64).reshape(-1, 2)

    def _places_now(self, digests: set[int]) -> dict[int, set[str]]:
        """Return the places in which messages are now, by digest; gone messages are missing."""
        places: dict[int, set[str]] = defaultdict(set)
        wanted = np.fromiter(digests, np.int64, len(digests))
        for place, present in self._present:
            for digest in present[np.isin(present, wanted)].tolist():
                places[digest].add(place)
        return places

    def _heads(
        self, opened: OpenFolder, uids: Sequence[int], place: str
    ) -> Iterator[PlacedMessage]:
        for head, digest in with_digests(self.session, uids):
            keyword = keyword_of(head.flags)
            is_read = _SEEN in head.flags or keyword != ""
            self._hear(digest, keyword)
            yield PlacedMessage(
                opened.name, opened.validity, head.uid, digest, place, keyword, is_read
            )

    def _marked(
        self, opened: OpenFolder, known: NDArray[np.int64], place: str
    ) -> Iterator[PlacedMessage]:
        """Yield known messages whose keyword has changed.

        known: UIDs and digests of messages that are still there, (n_messages, 2).
        """
        before = self.memory.with_keyword()
        now: dict[int, str] = {}
        for name, (first, *others) in _KEYWORDS.items():
            if _FLAGS[name] & opened.keywords:
                either = [part for word in others for part in ("OR", "KEYWORD", word)]
                for uid in self.session.uids(*either, "KEYWORD", first):
                    now[uid] = "" if uid in now else name
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

    def _consider(self, each: PlacedMessage, left: LeftMessage | None) -> bool:
        """Put a message on the list of what it needs; return whether it needs nothing."""
        says = each.keyword
        places = self._places_of.get(each.digest, set())
        if left is not None and left.place == MOVING:
            if each.place != "ham" or says == "spam":
                return True  # it was moved, or marked, before this could be noted
            is_copied = bool(places - {"ham"}) and not self.choices.tags
            (self._copied if is_copied else self._new).append(each)
        elif says and (left is None or says != left.keyword):
            self._lessons.append((each, says))
        elif left is not None and left.keyword == "spam" and not says and each.is_known:
            self._lessons.append((each, "ham"))
        elif left is None and each.place == "spam":
            self._put_there.append(each)
        elif (
            each.place == "ham"
            and not each.is_read
            and (left is None or (left.place, left.keyword) == ("ham", "spam"))
        ):
            self._new.append(each)
        elif left is None or left.place == each.place:
            return True
        elif left.place not in places:
            if each.place == "unsure":
                return True
            self._lessons.append((each, each.place))
        elif each.place == "ham" and self._came_again(each):
            if each.is_read:
                return True
            self._new.append(each)
        # Else it also lies where it was left: it is being moved, and the next look knows more.
        return False

    def _came_again(self, each: PlacedMessage) -> bool:
        """Return whether a message was delivered again: a moved one equals its copy."""
        found: set[bytes] = set()
        for folder, validity, uid in [*self.memory.noted(each.digest), each[:3]]:
            self._open(folder)
            if self.session.folder is not None and self.session.folder.validity == validity:
                for batch in self.session.messages([uid], MAX_MESSAGE):
                    found.update(batch.data.values())
        return len(found) > 1

    def _look_elsewhere(self) -> None:
        """Find messages that the user has moved from the junk folder to one of the others."""
        gone = {digest for folder, *_, digest in self._gone if folder == self.spam}
        left = self.memory.left(gone - self._places_of.keys())
        gone = {digest for digest, was in left.items() if was.place == "spam"}
        before = self.memory.following()
        if before and not gone:
            return
        self._numbers = self.session.numbers(self._others)
        for folder, (validity, following) in self._numbers.items():
            # A folder that is new since the last look may have been made for such a message.
            was_validity, first = before.get(folder, (validity, 1 if before else following))
            if not gone or was_validity != validity or following <= first:
                continue
            opened = self.session.open(folder)
            uids = [uid for uid in self.session.uids("UID", f"{first}:*") if uid >= first]
            moved = self._heads(opened, uids[-_MOST_NEW:], "ham")
            self._lessons += [(each, "ham") for each in moved if each.digest in gone]

    # ---- learning ----

    def _learn(self) -> None:
        """Learn the user's lessons, and unknown mail in the spam folder that is not judged spam.

        A label that a person gave such a message, on the page or by `relabel`, outranks its
        folder.
        """
        agreed: list[tuple[PlacedMessage, LeftMessage]] = []
        if not self.choices.learns:
            agreed = [(e, LeftMessage(e.place, e.keyword)) for e in self._put_there]
        elif self._put_there:
            model = sorting_model(self.account.model_path)
            for each, verdict, data in self._verdicts(self._put_there):
                if verdict.label == "spam" or model.filed(data).told:
                    label, p = verdict.label, verdict.probability
                    agreed.append((each, LeftMessage("spam", each.keyword, label, p)))
                else:
                    self._lessons.append((each, "spam"))
        taught = self._lessons
        if taught and self.choices.learns and not self.choices.dry_run:
            taught = self._teach()
        if self.choices.learns:
            self.report.learned = [
                SortedMessage(self._name(e), label, None, None) for e, label in taught
            ]
        agreed += [(e, LeftMessage(e.place, e.keyword)) for e, _ in taught]
        self._settle(agreed)

    def _teach(self) -> list[tuple[PlacedMessage, str]]:
        """Teach the model the lessons; return those whose messages were still there."""
        taught = []

        def items() -> Iterator[Item]:
            lessons = sorted(self._lessons, key=lambda lesson: lesson[0].folder)
            for folder, group in groupby(lessons, lambda lesson: lesson[0].folder):
                by_uid = {each.uid: (each, label) for each, label in group}
                self._open(folder)
                for batch in self.session.messages(list(by_uid), MAX_MESSAGE):
                    for uid, data in batch.data.items():
                        each, label = by_uid[uid]
                        taught.append((each, label))
                        yield Item(self._name(each), label, data, told=True)

        with shared_lessons(sorting_model(self.account.model_path)) as model:
            outcome = model.learn(items(), day=self._day, classes=HAM_AND_SPAM)
        self.report.skipped += outcome.skipped
        self.report.notes += outcome.notes
        return taught

    # ---- judging ----

    def _judge(self) -> None:
        """Move or mark new mail by the verdicts of the model, which has learned the lessons.

        Mail that a person has called ham stays: the memory may be lost, or another computer's.
        """
        waiting: dict[str, list[tuple[PlacedMessage, Verdict]]] = defaultdict(list)
        model: StoredModel | None = None
        self._open(self.inbox)
        for each, verdict, data in self._verdicts(self._new):
            if verdict.label != "ham":
                model = model or StoredModel(self.account.model_path, new=PRESETS["mail"])
                filed = model.filed(data)
                if filed.told and filed.label == "ham":
                    self._settle([(each, LeftMessage("ham", each.keyword))])
                    continue
            waiting[verdict.label].append((each, verdict))
            if len(waiting[verdict.label]) == _BATCH:
                self._act(verdict.label, waiting.pop(verdict.label))
        for label, judged in waiting.items():
            self._act(label, judged)

    def _act(self, label: str, judged: list[tuple[PlacedMessage, Verdict]]) -> None:
        """Move or mark messages of one verdict, and note it before and after."""
        can_move = self.session.can_move
        tags = label == "spam" and (self.choices.tags or not can_move)
        folder = {"spam": self.spam, "unsure": self.unsure if can_move else None}.get(label)
        stays = self.report.lack is not None or (folder is None and not tags)
        target = None if stays else JUNK if tags else folder
        done = [SortedMessage(self._name(e), v.label, v.probability, target) for e, v in judged]
        if target is not None and not self.choices.dry_run:
            try:
                self._carry([each for each, _ in judged], target, tags)
            except AccountRefusedError as error:
                self._skip([each for each, _ in judged], error)
                return
        self.report.judged += done
        place = label if target is not None and not tags else "ham"
        marked = tags and target is not None
        left = []
        for e, v in judged:  # an earlier delivery of a message may have the keyword
            keyword = "spam" if marked or e.keyword == "spam" else ""
            left.append((e, LeftMessage(place, keyword, label, v.probability)))
        if place == "ham":
            self._settle(left)
        else:
            self.memory.leave([(e.digest, message) for e, message in left], self._day)

    def _carry(self, messages: list[PlacedMessage], target: str, tags: bool) -> None:
        """Move messages to a folder, or mark them, after noting that this may happen."""
        uids = [each.uid for each in messages]
        # Of two deliveries, the one in the target would pass for the copy of the other.
        first = [e.digest for e in messages if self._places_of.get(e.digest, set()) <= {"ham"}]
        self.memory.leave([(digest, LeftMessage(MOVING)) for digest in first], self._day)
        if tags:
            if not self.choices.tags:
                self.report.notes.append(
                    f"{self.account.url.account}: the server cannot move a message alone, so spam"
                    f" gets the keyword {JUNK}"
                )
            assert self.session.folder is not None
            if not self.session.folder.takes_keywords:
                raise AccountRefusedError(
                    f"{self.account.url.account}: {self.inbox} takes no keywords; sort without"
                    " --tag"
                )
            self.session.mark(uids, JUNK, NOT_JUNK)
            return
        if target not in self._places:
            with suppress(AccountRefusedError):  # somebody else was faster
                self.session.make_folder(target)
        placed = self._moved(uids, target)
        copies = [
            each._replace(folder=target, validity=placed[each.uid][0], uid=placed[each.uid][1])
            for each in messages
            if each.uid in placed
        ]
        self._drop_doubles(copies, self._others_in(target, copies))
        self._open(self.inbox)
        # Noted now, so that it is seen when the user moves it before the next look.
        for validity in {each.validity for each in copies}:
            self.memory.note(target, validity, [(each.uid, each.digest) for each in copies])

    def _others_in(self, target: str, copies: list[PlacedMessage]) -> list[PlacedMessage]:
        """Return the messages, beside these, that came to a folder just before or in between."""
        own = {each.uid for each in copies}
        others = [each for each in self._found if each.folder == target]
        first = self._following.get(target, 1)
        following = self._following[target] = max(own, default=first - 1) + 1
        if following - first > len(own):
            opened = self.session.open(target)
            between = self.session.uids("UID", f"{first}:{following - 1}")
            others += self._heads(opened, [uid for uid in between if uid not in own], "")
        return others

    def _drop_doubles(self, copies: list[PlacedMessage], others: list[PlacedMessage]) -> None:
        """Remove copies of which an equal one came to the same folder before.

        If two devices move a message at the same time, each copies it.  The first copy stays.
        """
        ordered = sorted(others, key=attrgetter("uid"), reverse=True)
        first = {(each.folder, each.digest): each.uid for each in ordered}
        for each in copies:
            uid = first.get((each.folder, each.digest), each.uid)
            if uid < each.uid:
                with suppress(AccountRefusedError):  # no right to remove mail from this folder
                    self.session.open(each.folder, writes=True)
                    found = list(self.session.messages([uid, each.uid], MAX_MESSAGE))
                    data = [d for batch in found if not batch.is_cut for d in batch.data.values()]
                    if len(data) == 2 and data[0] == data[1]:
                        self.session.remove([each.uid])

    def _moved(self, uids: list[int], target: str) -> dict[int, tuple[int, int]]:
        """Move messages; one by one if another client has removed some of them just now."""
        try:
            return self.session.move(uids, target)
        except AccountRefusedError as error:
            if error.code != "EXPUNGEISSUED":
                raise
        some = [self._moved([uid], target) for uid in uids] if len(uids) > 1 else []
        return {uid: where for placed in some for uid, where in placed.items()}

    def _verdicts(
        self, messages: list[PlacedMessage]
    ) -> Iterator[tuple[PlacedMessage, Verdict, bytes]]:
        """Yield messages with their verdicts and bytes; reports unreadable ones."""
        if not messages:
            return
        classifier, rule = sorting_classifier(self.account.model_path, self.account.rule_of)
        self.report.lack = classifier.lack
        for folder, group in groupby(messages, attrgetter("folder")):
            by_uid = {each.uid: each for each in group}
            self._open(folder)
            for batch in self.session.messages(list(by_uid), MAX_MESSAGE):
                items = [Item(self._name(by_uid[u]), None, d) for u, d in batch.data.items()]
                verdicts = classifier.classify(items, rule=rule)
                for (uid, data), verdict in zip(batch.data.items(), verdicts, strict=True):
                    if isinstance(verdict, Skipped):
                        self.report.skipped.append(verdict)
                    else:
                        yield by_uid[uid], verdict, data

    # ---- for learning and judging ----

    def _skip(self, messages: list[PlacedMessage], error: AccountRefusedError) -> None:
        self.report.skipped += [Skipped(self._name(each), str(error)) for each in messages]

    def _open(self, folder: str) -> None:
        if self.session.folder is None or self.session.folder.name != folder:
            self.session.open(folder, writes=folder == self.inbox and not self.choices.dry_run)

    def _settle(self, messages: Iterable[tuple[PlacedMessage, LeftMessage]]) -> None:
        """Note messages that stay where they are: how they were left, and their UIDs."""
        messages = list(messages)
        self.memory.leave([(each.digest, left) for each, left in messages], self._day)
        seen = [each for each, _ in messages if each.folder in self._places]
        for (folder, validity), group in groupby(sorted(seen), attrgetter("folder", "validity")):
            self.memory.note(folder, validity, [(each.uid, each.digest) for each in group])

    def _note_settled(self, folder: str, validity: int, messages: NDArray[np.int64]) -> None:
        """Note messages that need nothing: they are where they were left, or were read."""
        for first in range(0, len(messages), _AT_ONCE):
            some = messages[first : first + _AT_ONCE]
            digests = some[:, 1].tolist()
            left = self.memory.left(digests)
            self.memory.leave([(e, left.get(e, LeftMessage("ham"))) for e in digests], self._day)
            self.memory.note(folder, validity, some.tolist())

    def _name(self, each: PlacedMessage) -> str:
        return str(self.account.url.of_folder(each.folder).of_message(each.validity, each.uid))


def _is_settled(each: PlacedMessage, left: LeftMessage | None) -> bool:
    """Return whether a message needs nothing, wherever its copies are."""
    if left is None:
        return each.place == "ham" and each.is_read and not each.keyword
    return (left.place, left.keyword) == (each.place, each.keyword)


def keyword_of(flags: frozenset[str]) -> str:
    """Return the class that the flags of a message state: ham, spam, or "" for none or both."""
    said = [name for name, words in _FLAGS.items() if words & flags]
    return said[0] if len(said) == 1 else ""
