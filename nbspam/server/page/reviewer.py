"""The reviewer: a mailbox as a person sees it, and the lessons that the person gives.

A thread reads and writes mailboxes and notes, so that only the visitor waits for the disk.  The
judge judges the messages and the teacher learns them, among the messages of all clients.  A lesson
is learned, then noted, and its message moved last; undoing reverses this order.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from math import nan
from time import time
from typing import NamedTuple, TypeVar

from nbspam.counts.lessons import Outcome
from nbspam.errors import NbspamError
from nbspam.mail.addresses import heading
from nbspam.server.choices import ServerLimits
from nbspam.server.judge import Judge, Judgement
from nbspam.server.lessons import Teacher
from nbspam.server.metrics import Log
from nbspam.server.page.course import Course, course
from nbspam.server.page.database import (
    N_REASONS,
    MessageFilter,
    PersonLabel,
    SeenMessage,
    class_before,
    reasons_of,
)
from nbspam.server.page.doubtful import Doubting, DoubtSearch, last_search, note_settled
from nbspam.server.page.mailbox import HELD, HELD_BYTES, Mailboxes, MailboxLetter, ReviewMailbox
from nbspam.store.model import StoredModel
from nbspam.verdicts import Explanation
from nbspam.workers import grouped

UNJUDGED = "unjudged"  # instead of the verdict of a message that could not be judged
_AT_ONCE = 100  # messages without a verdict that are judged before a list is shown
_MAILBOXES = 16  # in which the places of messages are remembered

Result = TypeVar("Result")


class Listing(NamedTuple):
    """A page of messages."""

    rows: list[SeenMessage]
    n_found: int  # wanted messages, on all pages
    last: PersonLabel | None  # the last label that a person gave
    last_subject: str
    folders: dict[str, str]  # in which the rows' messages lie, by key
    n_here: int = 0  # messages in the mailbox
    n_waiting: int = 0  # messages that have no verdict yet
    lack: str | None = None  # the lessons that the model needs before it can judge


class MessageReading(NamedTuple):
    """One message with the reasons of its verdict; None if it cannot be judged."""

    seen: SeenMessage
    data: bytes
    explanation: Explanation | None
    folder: str  # in which it lies; "": the mailbox has no folders
    sender: str | None = None  # as lists can name it; None: they cannot
    listed: str | None = None  # the sender's entry in the lists beside the model


class LessonOutcome(NamedTuple):
    """The outcome of a person's lesson."""

    key: str  # of the message
    label: str | None  # None: it was un-learned
    outcome: Outcome
    subject: str
    unmoved: str | None = None  # why it could not be moved


class Reviewer:
    """Reads mailboxes and keeps notes in a thread of its own; called in the event loop's thread.

    moves: whether lessons move mail in Maildirs.
    """

    def __init__(
        self,
        mailboxes: Mailboxes,
        judge: Judge,
        teacher: Teacher,
        limits: ServerLimits,
        log: Log,
        moves: bool = False,
    ) -> None:
        self.mailboxes = mailboxes
        self._boxes: dict[str, ReviewMailbox] = {}  # by path, those used last at the end
        self._judge = judge
        self._teacher = teacher
        self._limits = limits
        self._log = log
        self._moves = moves
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reviewer")
        self._passes: set[asyncio.Task[None]] = set()
        self._passing: dict[str, set[str]] = {}  # by user: keys of messages that are in a pass
        self._doubting = Doubting(log)
        self._teaching = asyncio.Lock()  # so that one at a time waits for the turn, in the thread

    async def run(self, function: Callable[..., Result], *values: object) -> Result:
        """Return the result of a function that is called in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *values)

    def end(self) -> None:
        """End the thread; waiting messages get their verdicts another time."""
        for each in self._passes:
            each.cancel()
        self._doubting.end()
        self._thread.shutdown()
        for box in self._boxes.values():
            box.close()

    def _box(self, user: str) -> ReviewMailbox:
        """Return a user's mailbox, with its memory of the last look; raises NbspamError."""
        box = self.mailboxes.box(user)  # each time: it may have gone, or is no longer the user's
        known = self._boxes.pop(box.path, box)
        self._boxes[box.path] = known
        if len(self._boxes) > _MAILBOXES:
            del self._boxes[next(iter(self._boxes))]
        return known

    # ---- looking ----

    async def listing(self, user: str, wanted: MessageFilter, start: int, number: int) -> Listing:
        """Return the wanted messages from `start` on, at most `number`; raises NbspamError.

        The newest messages without a verdict get one first, the others in the background.
        """
        box = await self.run(self._box, user)
        # An empty message, so that the judge takes in the lessons of all processes.
        now = await self._judge.judge(b"\n", user=box.user)
        letters, stale = await self.run(self._scan, box, now.n_learned)
        passing = self._passing.get(user, set())
        new = [each for each in stale if each.key not in passing]
        await self._judge_all(box, new[:_AT_ONCE], now.n_learned)
        rest = new[_AT_ONCE:]
        if rest and box.user not in self._passing:  # another visitor may have begun it
            self._begin_pass(box, rest, now.n_learned)
        n_waiting = len(stale) - len(new) + len(rest)
        found = await self.run(_listed, box, wanted, start, number)
        return found._replace(n_here=len(letters), n_waiting=n_waiting, lack=now.lack)

    async def reading(self, user: str, key: str) -> MessageReading | None:
        """Return a message with its explanation, None if it has gone."""
        box = await self.run(self._box, user)
        await self.run(box.newest)  # it may have been moved, even by another worker
        data = await self.run(box.message, key)
        if data is None:
            return None
        seen = await self.run(box.database.find, key)
        judgement = None
        with contextlib.suppress(NbspamError):
            judgement = await self._judge.judge(self._cut(data), True, box.user)
        if seen is None:  # it is none of the newest
            seen = _seen(MailboxLetter(key, nan, 0), data, judgement)
            if (last := await self.run(box.database.last_told, key)) is not None:
                seen = seen._replace(told=last.label, told_number=last.number)
        explanation = None if judgement is None else judgement.explanation
        folder, sender = box.folder_of(key), await self.run(box.sender_of, data)
        return MessageReading(seen, data, explanation, folder, *sender)

    async def course(self, user: str) -> Course:
        """Return the model's course on a user's mail; raises NbspamError."""
        # In another thread: this one may wait for a mail server.
        box = await asyncio.to_thread(self.mailboxes.box, user)
        return await asyncio.to_thread(course, box.database, date.today())

    async def doubts(self, user: str) -> DoubtSearch:
        """Return a user's doubtful messages as far as known; raises NbspamError and OSError.

        If mail or lessons have come since the last search, this begins another one.
        """
        box = await self.run(self._box, user)
        found = await self.run(last_search, box, time())
        if found.is_due:
            await self.run(self._doubting.begin, box)
        return found

    # ---- judging ----

    def _scan(
        self, box: ReviewMailbox, n_learned: float
    ) -> tuple[list[MailboxLetter], list[MailboxLetter]]:
        """Return all messages of a mailbox, and the ones without a verdict; the newest first."""
        letters = box.newest()
        written = box.written(time(), self._judge.model_time)
        keys = {each.key for each in letters}
        done = box.database.judged_since(written, n_learned, keys)
        return letters, [each for each in letters if each.key not in done]

    def _begin_pass(
        self, box: ReviewMailbox, letters: Sequence[MailboxLetter], n_learned: float
    ) -> None:
        """Begin to judge the rest in the background; its errors are only logged."""
        self._passing[box.user] = {each.key for each in letters}
        task = asyncio.create_task(self._judge_all(box, letters, n_learned))
        self._passes.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._passes.discard(task)
            del self._passing[box.user]
            if not task.cancelled() and (error := task.exception()) is not None:
                self._log.failed("messages of the page wait for their verdicts", error)

        task.add_done_callback(ended)

    async def _judge_all(
        self, box: ReviewMailbox, letters: Sequence[MailboxLetter], n_learned: float
    ) -> None:
        """Judge messages and note their verdicts, in the given order if the mailbox can."""
        if not letters:
            return
        places = {letter.key: letter for letter in letters}
        messages = grouped(box.read(places), lambda each: len(each[1]), HELD_BYTES, HELD)
        own = await self.run(box.own_model)
        while few := await self.run(lambda: next(messages, None)):
            known = await self.run(_known_to, own, few)
            rows = []
            for key, data in few:
                judgement = None
                try:  # between two messages, incoming mail gets its turn
                    judgement = await self._judge.judge(self._cut(data), True, box.user)
                except Exception as error:  # one must not keep the others from their verdicts
                    self._log.failed("a message of the page was not judged", error)
                row = _seen(places[key], data, judgement)
                is_known = row.is_known or key in known
                rows.append(row._replace(learned=n_learned, is_known=is_known))
            await self.run(box.database.note, rows)

    def _cut(self, data: bytes) -> bytes:
        """Return the part of a message that is judged, as for mail systems."""
        return data[: self._limits.message_bytes]

    # ---- teaching ----

    async def tell(
        self, user: str, key: str, label: str, settles: bool = False
    ) -> LessonOutcome | None:
        """Learn a person's label of a message, and note it; None if the message has gone.

        settles: the label was doubted, and is believed from now on.  When this returns, the lesson
        is on disk; raises NbspamError and OSError.  The message is moved after that.
        """
        box = await self.run(self._box, user)
        data = await self.run(box.message, key)
        if data is None:
            return None
        async with self._turn(box):
            outcome = await self._teacher.teach(data, label, box.user)
            await self.run(_note_told, box, self._moves, key, label, outcome)
        if settles:
            await self.run(note_settled, box.database, key, label, time())
        unmoved = None
        if self._moves:
            try:
                await self.run(box.file, key, label)
            except NbspamError as error:
                self._log.failed("a message was learned, but not moved", error)
                unmoved = str(error)
        return LessonOutcome(key, label, outcome, heading(data).subject, unmoved)

    async def list_sender(self, user: str, key: str, verb: str | None) -> str | None:
        """See `ReviewMailbox.list_sender`."""
        box = await self.run(self._box, user)
        return await self.run(box.list_sender, key, verb)

    @contextlib.asynccontextmanager
    async def _turn(self, box: ReviewMailbox) -> AsyncIterator[None]:
        """Keep visitors of all workers from teaching until a lesson is noted."""
        async with self._teaching, contextlib.AsyncExitStack() as stack:
            await self.run(stack.enter_context, box.database.turn())
            yield

    async def undo(self, user: str, number: int) -> LessonOutcome | None:
        """Take a label back; None if that is done already, or the message has gone.

        number: from `PersonLabel`.  A label that was taught elsewhere since then stays.
        """
        box = await self.run(self._box, user)
        async with self._turn(box):
            told = await self.run(box.database.told, number)
            data = None if told is None else await self.run(box.message, told.key)
            if told is None or data is None:
                return None
            if self._moves and told.folder is not None:
                await self.run(box.put_back, told.key, told.folder)
            outcome = Outcome(already_known=1)
            if told.before != told.label:
                outcome = await self._teacher.teach(data, told.before, box.user, told.label)
            await self.run(box.database.undo, number, time())
        return LessonOutcome(told.key, told.before, outcome, heading(data).subject)


def _listed(box: ReviewMailbox, wanted: MessageFilter, start: int, number: int) -> Listing:
    database = box.database
    last = database.last_told()
    about = None if last is None else database.find(last.key)
    rows = database.listed(wanted, start, number)
    return Listing(
        rows,
        database.count(wanted),
        last,
        "" if about is None else about.subject,
        {row.key: box.folder_of(row.key) for row in rows},
    )


def _known_to(own: StoredModel | None, messages: Sequence[tuple[str, bytes]]) -> set[str]:
    """Return the keys of the messages that a user's own model has learned."""
    if own is None:
        return set()
    return {key for key, data in messages if own.filed(data).label is not None}


def _seen(letter: MailboxLetter, data: bytes, judgement: Judgement | None) -> SeenMessage:
    """Return the row of a message for the page's memory.

    judgement: None if the message could not be judged.
    """
    if judgement is None:
        return SeenMessage(*letter, *heading(data), UNJUDGED, 0.5, (), time())
    verdict, explanation = judgement.verdict, judgement.explanation
    assert explanation is not None
    reasons = reasons_of(explanation.strongest(N_REASONS), explanation.towards)
    spam = verdict.posterior["spam"]
    seen = SeenMessage(*letter, *heading(data), verdict.label, spam, reasons, time())
    return seen._replace(is_known=judgement.is_known)


def _note_told(box: ReviewMailbox, moves: bool, key: str, label: str, outcome: Outcome) -> None:
    """Note a label, unless it is the last one already: a form that was sent twice."""
    last = box.database.last_told(key)
    if outcome.already_known and last is not None and last.label == label:
        return
    folder = box.leaves(key, label) if moves else None
    box.database.tell(key, label, class_before(label, outcome), time(), folder)
