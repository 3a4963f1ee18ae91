"""Sorting an account: new mail moves by its verdict, and its user's actions are lessons.

`AccountLook` finds what has changed since the last look: messages that have moved, and keywords
that mail programs have set, are lessons of the user.  A connection may end at any step; the next
look finds out what was done, and does the rest.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from nbspam.decision import HAM_AND_SPAM
from nbspam.delivery import account_look, maildir
from nbspam.delivery.account_look import JUNK, NOT_JUNK, LeftMessage, Need, PlacedMessage
from nbspam.errors import InputError, LostError
from nbspam.imap.accounts import INBOX, AccessBook, ImapUrl
from nbspam.imap.session import AccountSession
from nbspam.imap.troubles import AccountRefusedError
from nbspam.mail.headers import message_id
from nbspam.settings import PRESETS
from nbspam.sharing.sharer import shared_lessons
from nbspam.sources.files import MAX_MESSAGE
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.verdicts import Skipped, Verdict

_MOST_AGAIN = 100  # messages that each look reads while the model cannot judge them
# Moving spam to these folders, or to one below them, teaches nothing.
_NO_LESSON = ("junk", "trash", "drafts", "all")
_MOST_OTHERS = 1000  # folders that are looked at for messages that left the junk folder
_MOST_NEW = 5000  # messages in each of them


class AccountToSort(NamedTuple):
    """An account, and how it is sorted."""

    url: ImapUrl  # its folder is where new mail arrives; "": INBOX
    book: AccessBook
    model_path: str
    choices: maildir.SortingChoices
    rule_of: maildir.RuleOf

    def sort(self, day: int, report: maildir.SortingReport) -> maildir.SortingReport:
        """Look at the account by a session of its own, as `sort_once`; return the report."""
        with AccountSession(self.url, self.book) as session:
            self.sort_once(session, day, report)
        return report

    def sort_once(self, session: AccountSession, day: int, report: maildir.SortingReport) -> None:
        """Look at the account once, by a session; raises NbspamError.

        day: since 1970-01-01.  report: takes what is done, also before a connection is lost.
        """
        notes = self.model_path, self.url.account, not self.choices.dry_run
        memory = account_look.AccountMemory(*notes)
        with closing(memory), memory.alone(maildir.SORTING_PATIENCE):
            AccountSorter(self, session, memory, day, report).sort()


@dataclass
class AccountSorter:
    """One look at an account, whose lock is held."""

    account: AccountToSort
    session: AccountSession  # to the account
    memory: account_look.AccountMemory
    day: int  # today, in days since 1970-01-01
    report: maildir.SortingReport

    def __post_init__(self) -> None:
        account, self.choices = self.account, self.account.choices
        self._judge = maildir.sorting_classifier(account.model_path, account.rule_of)
        self.inbox = account.url.folder or INBOX
        self._places: dict[str, str] = {}  # of the folders that are looked at
        self._look = account_look.AccountLook(self.session, self.memory)
        self._found: list[PlacedMessage] = []  # new in their folders, or with another keyword
        self._places_of: dict[int, set[str]] = {}  # by digest, of messages that were elsewhere
        self._gone: set[int] = set()  # digests of messages that left a folder since the last look
        self._needs: dict[Need, list[PlacedMessage]] = defaultdict(list)
        self._ids: dict[int, str | None] = {}  # Message-IDs by digest, of messages that were read
        self._lessons: list[tuple[PlacedMessage, str]] = []  # which the user has stated

    def sort(self) -> None:
        """Learn the user's lessons, then judge and move new mail; raises NbspamError."""
        self.session.refused.clear()
        self._find_folders()
        for folder, place in self._places.items():
            self._look.take(folder, place, self._writes(folder))
        self._find_needs()
        numbers = self._look_elsewhere()
        self._learn()
        self._remove_copied()
        self._judge_new()
        self._open(self.inbox)
        # Messages that need nothing are noted last: until here, a look can be repeated.
        if numbers is not None:
            for url in self.session.refused:  # its folder is looked through at the next look
                numbers.pop(url.folder, None)
            if self.memory.following().keys() & set(self._others) - numbers.keys():
                self._look.gone.clear()  # which the next look finds again
            if numbers:
                self.memory.keep_following(numbers)
        self._look.note(self.day)
        self._settle(self._needs[Need.NOTHING])
        self.memory.forget_gone(self.day)
        refused = self.session.refused.items()
        self.report.skipped += [Skipped(str(url), why) for url, why in refused]

    # ---- looking ----

    def _find_folders(self) -> None:
        """Find the folders that stand for spam, unsure and ham, the inbox last: it stays open."""
        folders, account = self.session.folders(), self.account.url.account
        names = {each.name for each in folders}
        self.spam = self.session.junk_folder(folders, self.choices.spam_folder)
        unsure = self.choices.unsure_folder
        self.unsure = unsure and self.session.name_of(unsure, names)
        if self.spam is None and not self.choices.tags:
            raise InputError(
                f"{account}: no junk folder; name one by --spam-folder, or give --tag"
            )
        maildir.check_apart(account, filter(None, (self.inbox, self.spam, self.unsure)))
        for folder, place in ((self.spam, "spam"), (self.unsure, "unsure")):
            if folder is not None and folder in names:
                self._places[folder] = place
            elif folder is not None and self.choices.dry_run and not self.choices.tags:
                self.report.notes.append(f"{account}: {folder}: no such folder; it would be made")
        self._places[self.inbox] = "ham"
        no_lesson = {e.name for e in folders if e.use in _NO_LESSON or e.name == self.spam}
        below = tuple(name + delimiter for name in no_lesson for delimiter in "/.")
        others = [e.name for e in folders if e.name not in no_lesson | self._places.keys()]
        others = [name for name in others if not name.startswith(below)]
        # The trash comes first: virtual folders of Dovecot may show its messages, too.  Without
        # one, another folder may be the trash, in a language that we do not know.
        self._trash = [each.name for each in folders if each.use == "trash"]
        self._others = [*self._trash, *others][:_MOST_OTHERS] if self._trash else []

    def _find_needs(self) -> None:
        """Find what each message needs."""
        if moving := self.memory.moving():
            # Copied and marked as deleted, but not removed when a connection ended.
            marked = list(self._look.heads(self.session.uids(deleted=True), "ham"))
            places = self._look.places(moving)
            self._needs[Need.REMOVAL] += [
                e for e in marked if places.get(e.digest, set()) - {"ham"}
            ]
        self._found = self._look.found()
        left = self.memory.left({each.digest for each in self._found})
        self._gone = {digest for *_, digest in self._look.gone}
        self._places_of = self._look.places({*left, *self._gone})
        for each in self._found:
            need = self._need(each, left.get(each.digest))
            if need in (Need.HAM, Need.SPAM):
                self._lessons.append((each, need.value))
            else:
                self._needs[need].append(each)
        if not self.choices.dry_run:
            moved = [
                e for e in self._needs[Need.NOTHING] if e.place != "ham" and e.digest in moving
            ]
            self._drop_doubles(moved, moved)  # of a run that ended before it looked for them

    def _need(self, each: PlacedMessage, left: LeftMessage | None) -> Need:
        """Return the need of a message, also by its bytes and the way the account is sorted."""
        need = account_look.need_of(
            each, left, self._places_of.get(each.digest, ()), each.digest in self._gone
        )
        if need is Need.REMOVAL and self.choices.tags:
            return Need.VERDICT
        is_twice = need in (Need.COMPARISON, Need.REMOVAL)
        if is_twice and each.place == "ham" and self._came_again(each):
            return Need.NOTHING if each.is_read else Need.VERDICT
        return need

    def _came_again(self, each: PlacedMessage) -> bool:
        """Return whether a message was delivered again: a moved one equals its copy."""
        found: set[bytes] = set()
        alike = {one[:3] for one in self._found if one.digest == each.digest}
        known = alike.union(self.memory.noted(each.digest))
        # Folders of earlier looks may have other names now.
        for folder, validity, uid in sorted(one for one in known if one[0] in self._places):
            self._open(folder)
            if self.session.folder.validity == validity:
                for batch in self.session.messages([uid], MAX_MESSAGE):
                    found.update(batch.data.values())
        return len(found) > 1

    def _look_elsewhere(self) -> dict[str, tuple[int, int]] | None:
        """Find messages that the user has moved from the junk folder to one of the others.

        Returns UIDVALIDITY and UIDNEXT of these folders, None if they were not asked for.
        """
        gone = {digest for folder, *_, digest in self._look.gone if folder == self.spam}
        left = self.memory.left(gone - self._places_of.keys())
        gone = {digest for digest, was in left.items() if was.place == "spam"}
        before = self.memory.following()
        if before and not gone:
            return None
        numbers = self.session.numbers(self._others)
        for folder, (validity, following) in list(numbers.items()):
            # A folder that is new since the last look may have been made for such a message.
            was_validity, first = before.get(folder, (validity, 1))
            first = first if was_validity == validity else 1
            numbers[folder] = validity, following or first  # 163.com does not state it
            if not gone or 0 < following <= first:
                continue
            try:
                self.session.open(folder)
            except AccountRefusedError:
                del numbers[folder]
                continue
            uids = [uid for uid in self.session.uids("UID", f"{first}:*") if uid >= first]
            if uids:
                numbers[folder] = validity, max(following, uids[-1] + 1)
            moved = self._look.heads(uids[-_MOST_NEW:], "ham")
            found = [(each, "ham") for each in moved if each.digest in gone]
            self._lessons += found if folder not in self._trash else []
            gone -= {each.digest for each, _ in found}  # labels of Gmail show it in more folders
        return numbers

    # ---- learning ----

    def _learn(self) -> None:
        """Learn the user's lessons, and unknown mail in the spam folder that is not judged spam.

        A label that a person gave such a message, on the page or by `relabel`, outranks its
        folder.  All of it is judged before the model learns any.
        """
        put_there = self._needs[Need.CHECK]
        if not self.choices.learns:
            self._settle([*put_there, *(each for each, _ in self._lessons)])
            return
        if put_there:
            model = maildir.sorting_model(self.account.model_path)
            for batch in self._verdicts(put_there):
                unlike = [
                    each
                    for each, verdict, data in batch
                    if verdict.label != "spam" and not model.filed(data).told
                ]
                read = {e.uid: account_look.ReadHead(e.digest, is_lesson=True) for e in unlike}
                self.memory.keep_heads(*put_there[0][:2], read)
                self._lessons += [(each, "spam") for each in unlike]
                self._settle([each for each, *_ in batch if each not in unlike])
        if self.choices.dry_run:
            self._report_lessons(self._lessons)
        elif self._lessons:
            self._teach()

    def _teach(self) -> None:
        """Teach the model the lessons; if the connection is lost, those that were read."""
        labels, taught = dict(self._lessons), []
        lost: LostError | None = None

        def items() -> Iterator[Item]:
            nonlocal lost
            try:
                for batch in self._read(labels):
                    for each, data in batch:
                        taught.append((each, labels[each]))
                        yield Item(self._name(each), labels[each], data, told=True)
            except LostError as error:
                lost = error

        with shared_lessons(maildir.sorting_model(self.account.model_path)) as model:
            outcome = model.learn(items(), day=self.day, classes=HAM_AND_SPAM)
        self.report.skipped += outcome.skipped
        self.report.notes += outcome.notes
        self._report_lessons(taught)
        self._settle([each for each, _ in taught])
        self._judge = maildir.sorting_classifier(self.account.model_path, self.account.rule_of)
        if lost is not None:
            raise lost

    def _report_lessons(self, lessons: list[tuple[PlacedMessage, str]]) -> None:
        skipped = {one.name for one in self.report.skipped}
        learned = (self._sorted(each, label) for each, label in lessons)
        self.report.learned = [one for one in learned if one.name not in skipped]

    # ---- judging ----

    def _remove_copied(self) -> None:
        """Remove the messages of the inbox that an earlier look has copied."""
        copied = self._needs[Need.REMOVAL]
        if copied and not self.choices.dry_run:
            self._open(self.inbox)
            try:
                self.session.remove([each.uid for each in copied])
            except AccountRefusedError as error:
                self._skip(copied, error)
                stays, tried = self._needs[Need.NOTHING], {each.digest for each in copied}
                self._needs[Need.NOTHING] = [e for e in stays if e.digest not in tried]

    def _judge_new(self) -> None:
        """Move or mark new mail by the verdicts of the model, which has learned the lessons.

        Mail that a person has called ham stays: the memory may be lost, or another computer's.
        """
        messages = self._needs[Need.VERDICT]
        if not messages:
            return
        self.report.lack = maildir.sorting_lack(self._judge[0])
        if self.report.lack is not None:  # they are judged again, when the model can
            for batch in self._verdicts(messages[:_MOST_AGAIN]):
                self.report.judged += (
                    self._sorted(e, v.label, v.probability) for e, v, _ in batch
                )
            return
        model: StoredModel | None = None
        for batch in self._verdicts(messages):
            by_label: dict[str, list[tuple[PlacedMessage, Verdict]]] = defaultdict(list)
            for each, verdict, data in batch:
                if verdict.label != "ham":
                    model = model or StoredModel(self.account.model_path, new=PRESETS["mail"])
                    filed = model.filed(data)
                    if filed.told and filed.label == "ham":
                        self._settle([each])
                        continue
                by_label[verdict.label].append((each, verdict))
            for label, judged in by_label.items():
                self._act(label, judged)

    def _act(self, label: str, judged: list[tuple[PlacedMessage, Verdict]]) -> None:
        """Move or mark messages of one verdict, and note it before and after."""
        messages = [each for each, _ in judged]
        can_move = self.session.can_move
        tags = label == "spam" and (self.choices.tags or not can_move)
        folder = {"spam": self.spam, "unsure": self.unsure}.get(label)
        folder = folder if can_move and not tags else None
        target = JUNK if tags else folder
        # An earlier delivery of a message may have the keyword.
        left = [
            e._replace(keyword="spam" if tags or e.keyword == "spam" else "") for e in messages
        ]
        if target is not None and not self.choices.dry_run:
            # Of two deliveries, the one in the target would pass for the copy of the other.
            first = [e for e in messages if self._places_of.get(e.digest, set()) <= {"ham"}]
            moving = [(each.digest, LeftMessage(maildir.MOVING, each.keyword)) for each in first]
            self.memory.leave(moving, self.day)
            self._open(self.inbox)
            try:
                if folder is None:
                    self._tag(messages)
                else:
                    left = self._move(left, folder, label)
            except AccountRefusedError as error:
                self._skip(messages, error)
                return
        self.report.judged += (self._sorted(e, v.label, v.probability, target) for e, v in judged)
        self._settle(left)

    def _tag(self, messages: list[PlacedMessage]) -> None:
        account = self.account.url.account
        if not self.session.folder.settable & {JUNK.lower(), "\\*"}:
            why = "takes no keywords; sort without --tag"
            if not self.choices.tags:
                why = "takes no keywords, and no message moves alone; sort a Maildir of mbsync"
            raise AccountRefusedError(f"{account}: {self.inbox} {why}")
        if not self.choices.tags:
            self.report.notes.append(
                f"{account}: the server cannot move a message alone, so spam gets the keyword"
                f" {JUNK}"
            )
        self.session.mark([each.uid for each in messages], JUNK, NOT_JUNK)

    def _move(self, messages: list[PlacedMessage], folder: str, label: str) -> list[PlacedMessage]:
        """Move messages, and return them there; the UID is 0 if the server does not say it."""
        if folder not in self._places:
            with suppress(AccountRefusedError):  # somebody else was faster
                self.session.make_folder(folder)
            self._places[folder] = label
        placed = self._moved([each.uid for each in messages], folder)
        moved = []
        for each in messages:
            validity, uid = placed.get(each.uid, (0, 0))
            moved.append(each._replace(folder=folder, validity=validity, uid=uid, place=label))
        copies = [each for each in moved if each.uid]
        self._drop_doubles(copies, self._others_in(folder, copies))
        return moved

    def _others_in(self, target: str, copies: list[PlacedMessage]) -> list[PlacedMessage]:
        """Return the messages, beside these, that came to a folder just before or in between."""
        own = {each.uid for each in copies}
        others = [each for each in self._found if each.folder == target]
        first = self._look.following.get(target, 1)
        following = self._look.following[target] = max(own, default=first - 1) + 1
        if following - first > len(own):
            self.session.open(target)
            between = self.session.uids("UID", f"{first}:{following - 1}")
            others += self._look.heads([uid for uid in between if uid not in own], "")
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
    ) -> Iterator[list[tuple[PlacedMessage, Verdict, bytes]]]:
        """Yield batches of messages with their verdicts and bytes; reports unreadable ones."""
        classifier, rule = self._judge
        for batch in self._read(messages):
            items = [Item(self._name(each), None, data) for each, data in batch]
            verdicts = classifier.classify(items, rule=rule)
            judged = []
            for (each, data), verdict in zip(batch, verdicts, strict=True):
                if isinstance(verdict, Skipped):
                    self.report.skipped.append(verdict)
                else:
                    judged.append((each, verdict, data))
            yield judged

    # ---- for learning and judging ----

    def _read(
        self, messages: Iterable[PlacedMessage]
    ) -> Iterator[list[tuple[PlacedMessage, bytes]]]:
        """Yield batches of messages with their bytes; messages that are gone are left out."""
        by_folder = sorted(messages, key=attrgetter("folder"))
        for folder, group in groupby(by_folder, attrgetter("folder")):
            by_uid = {each.uid: each for each in group}
            self._open(folder)
            for batch in self.session.messages(list(by_uid), MAX_MESSAGE):
                found = [(by_uid[uid], data) for uid, data in batch.data.items()]
                self._ids |= {each.digest: message_id(data) for each, data in found}
                yield found
                self._open(folder)  # moving these may have opened another one

    def _skip(self, messages: list[PlacedMessage], error: AccountRefusedError) -> None:
        self.report.skipped += [Skipped(self._name(each), str(error)) for each in messages]

    def _open(self, folder: str) -> None:
        if self.session.folder.name != folder:
            opened = self.session.open(folder, self._writes(folder))
            if self._look.validities.get(folder, opened.validity) != opened.validity:
                raise LostError(f"{self.account.url.account}: {folder}: has other UIDs; try again")

    def _writes(self, folder: str) -> bool:
        return folder == self.inbox and not self.choices.dry_run

    def _settle(self, messages: Sequence[PlacedMessage]) -> None:
        """Note how messages were left, and their UIDs, so that their user's moves are seen.

        UIDs come last: no look asks again where a known message was left.
        """
        left = [(each.digest, LeftMessage(each.place, each.keyword)) for each in messages]
        self.memory.leave(left, self.day)
        seen = [each for each in messages if each.folder in self._places and each.uid]
        for (folder, validity), group in groupby(sorted(seen), attrgetter("folder", "validity")):
            self.memory.note(folder, validity, [(each.uid, each.digest) for each in group])

    def _sorted(
        self, each: PlacedMessage, label: str, p: float | None = None, target: str | None = None
    ) -> maildir.SortedMessage:
        return maildir.SortedMessage(
            self._name(each), label, p, target, self._ids.get(each.digest)
        )

    def _name(self, each: PlacedMessage) -> str:
        return str(self.account.url.of_folder(each.folder).of_message(each.validity, each.uid))
