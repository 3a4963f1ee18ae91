"""Connections: their shared state in a worker, the bounds of each, and the texts of verdicts.

The desk says when there is no room, and which connections end when the server does.  Each
protocol has its own answers to a client that is too slow, too large, one too many, or idle.  The
texts that SpamAssassin and rspamd have in common (score and threshold, rules, report) are last.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nbspam.counts.lessons import Outcome
from nbspam.errors import InputError, NbspamError
from nbspam.mail.headers import message_id
from nbspam.mail.verdict_headers import REQUIRED, bayes_rule, score_of
from nbspam.printing import printable
from nbspam.server.choices import Service
from nbspam.server.judge import Judge, Judgement, UserError, known_as
from nbspam.server.lessons import Teacher
from nbspam.server.metrics import milliseconds, outcome_word
from nbspam.server.page.reviewer import Reviewer

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_FOR_SMALL = 8  # one part in so many of the bytes that may be held is kept for small messages
_LEAST_KEPT = 1 << 10  # bytes of a piece of a message: millions of tiny ones would take gigabytes
_AT_ONCE = 1 << 16  # bytes that are read from a connection at once
_FEW = 10  # messages that may wait to be learned by their lists: they are not charged to a client
_MOST_FAILURES = 10  # in a row: then a worker is started again
# Why there is no verdict or lesson, by the kind of trouble, where nothing more is known.
_REASONS = {
    "busy": "too many messages; try again",
    "crowded": "too many connections; try again",
    "late": "no answer in time; try again",
    "idle": "the request is not whole in time",
    "failed": "the request failed",
    "large": "the message is too large to be learned here; teach it by the command line",
}


class TroubleError(Exception):
    """A message that is not taken, and why; kind: one of metrics.TROUBLES."""

    def __init__(self, kind: str, why: str = "") -> None:
        super().__init__(why)
        self.kind = kind


class Desk:
    """The state that all connections of one worker share.

    teacher: None if clients may teach nothing.  reviewer: None if no mailbox is on the page.
    give_up: ends the worker, once message after message fails.
    """

    def __init__(
        self,
        service: Service,
        judge: Judge,
        teacher: Teacher | None,
        reviewer: Reviewer | None = None,
        give_up: Callable[[], object] = lambda: None,
    ) -> None:
        self.choices = service.choices
        self.limits = service.limits
        self.log = service.log
        self.tally = service.tally
        self.access = service.access
        self.judge = judge
        self.teacher = teacher
        self.reviewer = reviewer
        self.connections: set[Connection] = set()
        self.visitors: set[Connection] = set()  # the connections to the page
        self.page: ASGIApp | None = None  # it answers them, from the first one on
        self.held = 0  # bytes of messages that are received, or wait
        self.turns = count(1)  # of messages, as they begin
        self.read_buffer = memoryview(bytearray(_AT_ONCE))  # for reading from one connection
        self.give_up = give_up
        self.failures = 0  # of messages, in a row
        self.ends = False  # no further requests are taken

    def sweep(self, now: float) -> None:
        """End overdue requests, and update the gauges; called every second."""
        for connection in [each for each in self.connections if each.due < now]:
            connection.overdue()
        self.tally.set_gauge("queue", self.judge.n_waiting)
        self.tally.set_gauge("held_bytes", self.held)

    def note_open(self) -> None:
        """Tell other processes how many connections are open."""
        self.tally.set_gauge("open_connections", len(self.connections))
        self.tally.set_gauge("visitors", len(self.visitors))

    def leaves_to_others(self, n_coming: int) -> bool:
        """Return whether another worker should accept connections, as this one has no place.

        n_coming: connections that are accepted, but not in `connections` yet.
        """
        number, limit = len(self.connections) - len(self.visitors), self.limits.connections
        return number + n_coming >= limit and self.tally.has_room(limit)

    # ---- the bytes of messages ----

    def charge(self, guest: "Connection", size: int) -> None:
        """Count bytes of a connection's message; raises TroubleError if there is no room.

        Large messages still being received give way, the latest first, so that the others can
        be completed; and part of the room is for small messages only.
        """
        limits = self.limits
        is_small = guest.held + size <= limits.small_bytes
        room = (
            limits.bytes_held if is_small else limits.bytes_held * (_FOR_SMALL - 1) // _FOR_SMALL
        )
        if not guest.held:
            guest.turn = next(self.turns)
        while self.held + size > room:
            large = [each for each in self.large() if each is not guest]
            if not is_small:
                large.append(guest)
            last = max(large, key=lambda each: each.turn, default=guest)
            if last is guest:
                raise TroubleError("busy")
            last.give_way()
        self.hold(guest, guest.held + size)

    def large(self) -> "list[Connection]":
        """Return the connections whose large message is still received."""
        return [
            each
            for each in self.connections
            if each.held > self.limits.small_bytes and each.pending is None and not each.closes
        ]

    def make_room(self) -> None:
        """Let large messages give way: the system has less memory than the bounds allow."""
        for each in self.large():
            each.give_way()

    def hold(self, guest: "Connection", size: int) -> None:
        """Note that a connection holds so many bytes from now on, room or not."""
        self.held += size - guest.held
        guest.held = size

    # ---- outcomes of requests ----

    def note_lesson(
        self, user: str | None, label: str | None, outcome: Outcome, seconds: float, **facts: Any
    ) -> None:
        """Count and log the outcome of a lesson; None: it was un-learned."""
        became = outcome_word(outcome)
        self.tally.add(f"lesson {became}")
        taught, ms = label or "forget", milliseconds(seconds)
        self.log.answered(user=user, taught=taught, outcome=became, ms=ms, **facts)

    def autolearn(self, data: bytes, label: str, user: str | None) -> bool:
        """Learn a message by its list, if the owner allows it and few wait; say whether it is."""
        teacher = self.teacher
        if teacher is None or not self.choices.autolearns or teacher.n_waiting >= _FEW:
            return False
        began = monotonic()

        def learned(future: "asyncio.Future[Outcome]") -> None:
            error = future.exception()
            if error is not None:
                self.log.failed("a message was not learned by its list", error, **facts)
            elif future.result().learned:
                seconds = monotonic() - began
                self.note_lesson(user, label, future.result(), seconds, by="list", **facts)

        facts = {"id": message_id(data), "bytes": len(data)}
        teacher.teach(data, label, known_as(user), told=False).add_done_callback(learned)
        return True

    def note_failure(self, error: BaseException, **facts: Any) -> None:
        """Log a message that was not judged or learned; end a worker that fails each of them.

        Foreseen errors, such as a full disk, do not end it.
        """
        self.log.failed("a message was not judged or learned", error, **facts)
        self.failures += not isinstance(error, NbspamError | OSError)
        if self.is_failing:
            self.give_up()

    @property
    def is_failing(self) -> bool:
        """Whether message after message failed."""
        return self.failures >= _MOST_FAILURES

    def end(self) -> None:
        """Take no further requests: close connections at rest, the others after their answer."""
        if not self.ends:
            self.ends = True
            for connection in [each for each in self.connections if each.closes]:
                connection.expect(self.limits.parting_seconds)
        for connection in [each for each in self.connections if each.rests and not each.closes]:
            connection.close()


class Connection(asyncio.BufferedProtocol):
    """One client's connection.

    A protocol defines `received`, `received_all` and `refuse`.
    """

    transport: asyncio.Transport
    is_visitor = False  # of the page, which has a limit of its own

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.peer: str | None = None  # the user that connected, if `peer_users`
        self.due = float("inf")  # in monotonic seconds
        self.rests = True  # no request is under way
        self.closes = False  # answered; further bytes are not read
        self.heard_all = False  # the client writes nothing any more
        self.crowded = False  # there are too many connections; its request is refused
        self.is_behind = False  # its client has yet to take answers; until then nothing is read
        self.held = 0  # bytes of messages, and of an answer that is not taken
        self.turn = 0  # of its message, among all that begin
        self.kept: list[bytes] = []  # of the message that is received
        self.size = 0  # of it, dropped bytes included
        self.facts: Callable[[], dict[str, Any]] = dict  # about it, for the log of a failure
        self.pending: asyncio.Future[Any] | None = None
        self.began = 0.0  # when the request was whole; uvloop's own time has whole milliseconds

    # ---- the life of a connection ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in.

        A connection beyond the limit is refused in the protocol's words once its request is there;
        a connection beyond twice the limit is cut off at once.
        """
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own are none by class
        desk = self.desk
        number, limit = len(desk.visitors), desk.limits.visitors
        if not self.is_visitor:
            number, limit = len(desk.connections) - number, desk.limits.connections
        self.crowded = number >= limit
        if number >= 2 * limit:
            desk.tally.add("trouble busy")
            self.transport.abort()
            return
        desk.connections.add(self)
        if self.is_visitor:
            desk.visitors.add(self)
        desk.note_open()
        desk.tally.add("connections")
        self.expect(desk.limits.head_seconds)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection and its pending answer; count it if its answer was not taken."""
        self.desk.connections.discard(self)
        self.desk.visitors.discard(self)
        self.desk.note_open()
        if not self.rests and (error is not None or not self.closes):
            self.desk.tally.add("trouble gone")
        self.let_go()
        if self.pending is not None:
            self.pending.cancel()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read: allocating one could fail for lack of memory."""
        return self.desk.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take in the bytes just read."""
        if not self.closes:
            self.within_memory(self._take_in, nbytes)

    def _take_in(self, size: int) -> None:
        try:
            data = bytes(self.desk.read_buffer[:size])
        except MemoryError:
            self.desk.make_room()
            if self.closes:
                return
            data = bytes(self.desk.read_buffer[:size])
        self.received(data)

    def eof_received(self) -> bool:
        """Keep the connection open for the answer: clients may shut their writing side first."""
        self.heard_all = True
        if self.closes:
            return False
        self.within_memory(self.received_all)
        return not self.transport.is_closing()

    def pause_writing(self) -> None:
        """Read nothing while many answers wait to be sent: requests would only add to them."""
        self.is_behind = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on: the client has taken its answers."""
        self.is_behind = False
        self.read_on()

    def read_on(self) -> None:
        """Read further requests, as soon as the client has taken its answers."""
        if not self.is_behind:
            self.transport.resume_reading()

    def within_memory(self, work: Callable[..., object], *arguments: Any) -> None:
        """Do a piece of work; refuse the message if the system has no memory for it."""
        try:
            work(*arguments)
        except MemoryError:  # the bounds are too high for the system
            self.desk.make_room()
            if not self.closes:
                self.give_way()

    def received(self, data: bytes) -> None:
        """Take in a piece of a request."""
        raise NotImplementedError

    def received_all(self) -> None:
        """Note that the client has stopped writing."""
        raise NotImplementedError

    def expect(self, seconds: float) -> None:
        """Give the client, or the judge, so many seconds from now on."""
        self.due = monotonic() + seconds

    def overdue(self) -> None:
        """Tell a client that has asked which side was too slow; cut off a silent or told one."""
        if self.closes or self.rests:
            self.transport.abort()
        else:
            self.trouble("late" if self.pending is not None else "idle")

    def close(self) -> None:
        """Close the connection once everything written to it has been sent.

        While the client may still write, only our side is closed: the system takes an answer back
        if there are bytes that nobody has read.  An answer that is not taken yet counts as held
        until the connection is gone.
        """
        self.closes = True
        self.let_go()
        self.desk.hold(self, self.transport.get_write_buffer_size())
        limits = self.desk.limits
        self.expect(limits.parting_seconds if self.desk.ends else limits.idle_seconds)
        if self.heard_all or not self.transport.can_write_eof():
            self.transport.close()
        else:
            self.transport.write_eof()
            self.transport.resume_reading()

    def cut_short(self) -> None:
        """Close: the client stopped writing before its request was whole.

        A client that had begun a request counts as gone.
        """
        if not self.rests:
            self.desk.tally.add("trouble gone")
            self.rests = True
        self.close()

    def trouble(self, kind: str, why: str = "") -> None:
        """Note the reason why a request gets no verdict, and tell the client.

        kind: one of metrics.TROUBLES.
        """
        why = why or _REASONS["crowded" if kind == "busy" and self.crowded else kind]
        self.note_trouble(kind, why)
        if self.pending is not None:
            self.pending.cancel()
            self.pending = None
        self.refuse(kind, why)

    def note_trouble(self, kind: str, why: str) -> None:
        """Count and log the reason why a request gets no verdict or lesson."""
        desk, address = self.desk, self.transport.get_extra_info("peername")
        self.rests = True  # it counts once, even if its client takes no answer
        desk.tally.add(f"trouble {kind}")
        if kind != "failed":  # that has a line of its own
            client = address[0] if isinstance(address, tuple) else self.peer
            desk.log.answered(refused=kind, client=client, **self.facts(), why=why)

    def refuse(self, kind: str, why: str) -> None:
        """Tell the client in its protocol's words that there is no verdict."""
        raise NotImplementedError

    # ---- the message ----

    def keep(self, data: bytes) -> None:
        """Keep a piece of the message, as far as the limit of one message allows.

        Raises TroubleError if all messages together need too much memory.
        """
        room = max(self.desk.limits.message_bytes - self.size, 0)
        self.size += len(data)
        if not room:
            return
        piece = data[:room]
        self.desk.charge(self, len(piece))
        if self.kept and len(self.kept[-1]) < _LEAST_KEPT:
            self.kept[-1] += piece
        else:
            self.kept.append(piece)

    def check_length(self, length: int) -> None:
        """Raise TroubleError if a message is to be longer than all messages together may be.

        Only the beginning of a long message is kept, but all of it is waited for.
        """
        if length > self.desk.limits.bytes_held:
            raise TroubleError("large", f"a message of {length} bytes; send its beginning")

    def give_way(self) -> None:
        """Refuse the message that is received: there is no room for it."""
        self.trouble("busy")

    def let_go(self) -> None:
        """Forget the message."""
        self.desk.hold(self, 0)
        self.size = 0
        self.kept = []
        self.facts = dict

    def message(self) -> bytes:
        """Return the message, or its beginning if it is too large."""
        data = b"".join(self.kept)
        self.kept = [data]  # not a second copy
        return data

    @property
    def is_whole(self) -> bool:
        """Whether all of the message was kept."""
        return self.size <= self.desk.limits.message_bytes

    # ---- verdicts and lessons ----

    def ask(
        self,
        data: bytes,
        explain: bool,
        answer: Callable[[Judgement], None],
        user: str | None,
        **facts: Any,
    ) -> None:
        """Call `answer` with the judgement of a message.

        user: whose mail it is, as the client writes the name.  facts: about the request, for the
        log.
        """
        user = self.peer or user
        is_whole, size = self.is_whole, self.size
        self.facts = lambda: {"user": user, **facts, "bytes": size, "id": message_id(data)}
        if self.crowded or self.desk.judge.n_waiting >= self.desk.limits.waiting:
            self.trouble("busy")
            return
        if not is_whole:
            self.desk.tally.add("oversized")

        def answered(judgement: Judgement) -> None:
            seconds = monotonic() - self.began
            verdict = judgement.verdict
            self.desk.tally.note(verdict.label, seconds)
            if self.desk.log.has_answers:
                self.desk.log.answered(
                    user=user,
                    **facts,
                    verdict=verdict.label,
                    probability=round(verdict.probability, 6),
                    listed=judgement.listed,
                    action=self.fate(judgement),
                    ms=milliseconds(seconds),
                    id=message_id(data),
                    bytes=size,
                )
            lesson = judgement.lesson
            if lesson is not None and not (is_whole and self.desk.autolearn(data, lesson, user)):
                judgement = judgement._replace(lesson=None)
            answer(judgement)

        self.wait(self.desk.judge.judge(data, explain, known_as(user)), answered)

    def fate(self, judgement: Judgement) -> str | None:
        """Return the action for a judged message, None if its client decides."""
        return None

    def teach(
        self, data: bytes, label: str | None, answer: Callable[[Outcome], None], user: str | None
    ) -> None:
        """Call `answer` with the outcome of learning a message; None un-learns it.

        The beginning of a message is refused, as it would be another message.  user: the teacher,
        as the client writes the name.
        """
        teacher, user = self.desk.teacher, self.peer or user
        assert teacher is not None
        facts = {"id": message_id(data), "bytes": self.size}
        self.facts = lambda: {"user": user, **facts}
        if not self.is_whole:
            self.trouble("large")
            return
        if self.crowded or teacher.n_waiting >= self.desk.limits.waiting:
            self.trouble("busy")
            return

        def answered(outcome: Outcome) -> None:
            self.desk.note_lesson(user, label, outcome, monotonic() - self.began, **facts)
            answer(outcome)

        self.wait(teacher.teach(data, label, known_as(user)), answered)

    def wait(self, future: "asyncio.Future[Any]", answered: Callable[[Any], None]) -> None:
        """Call `answered` with the result of a future, or tell the client of the error."""
        desk = self.desk
        desk.tally.add("asked")
        self.began = monotonic()
        self.expect(desk.limits.answer_seconds)
        self.pending = future

        def settled(done: "asyncio.Future[Any]") -> None:
            desk.tally.add("asked", -1)
            if done.cancelled() or self.pending is not done or self.transport.is_closing():
                return
            self.pending = None
            error = done.exception()
            if error is None:
                desk.failures = 0
                self.within_memory(answered, done.result())
            elif isinstance(error, UserError):
                self.trouble("user", str(error))
            elif isinstance(error, InputError):  # a lesson that is no mail
                self.trouble("malformed", str(error))
            else:
                desk.note_failure(error, **self.facts())
                if isinstance(error, MemoryError):
                    self.trouble("busy")
                else:
                    is_foreseen = isinstance(error, NbspamError | OSError)
                    self.trouble("failed", str(error) if is_foreseen else "internal error")

        future.add_done_callback(settled)


# ---- the words of a verdict for mail systems ----

MOST_REPORTED = 20  # tokens in a report, at most
# Above the rules of a report, from where clients read on, as SpamAssassin prints it (E-377).
_COLUMNS = f" pts rule name              description\n---- {'-' * 22} {'-' * 50}"


class Symbol(NamedTuple):
    """A rule that other filters would have found true, as they name it in their answers."""

    name: str
    points: float
    description: str


def symbols_of(judgement: Judgement) -> list[Symbol]:
    """Return the range of the probability, without points, and the verdict with all of them."""
    verdict, points = judgement.verdict, score_of(judgement.verdict, judgement.rule)
    return [
        Symbol(bayes_rule(verdict), 0.0, "Range of the probability of spam"),
        Symbol(f"NBSPAM_{verdict.label.upper()}", points, "Verdict of nbspam"),
    ]


def report(judgement: Judgement) -> str:
    """Return a readable report: the verdict, the strongest tokens if asked for, the rules."""
    verdict, symbols = judgement.verdict, symbols_of(judgement)
    points = sum(symbol.points for symbol in symbols)
    lines = [f"{verdict.label}, probability of spam {verdict.posterior['spam']:.6f}"]
    lines += filter(None, (judgement.listed, judgement.lack))
    if judgement.explanation is not None:
        found = judgement.explanation.strongest(MOST_REPORTED)
        if found:
            lines += ["", "  nats  token"]
        lines += [f"{each.contribution:+6.1f}  {printable(each.token)}" for each in found]
    total = f"({points:.1f} points, {REQUIRED:.1f} required)"
    lines += ["", f"Content analysis details:   {total}", "", _COLUMNS]
    lines += [f"{each.points:4.1f} {each.name:22} BODY: {each.description}" for each in symbols]
    return "\n".join(lines) + "\n"
