"""The desk: what all connections of one worker share, and the bounds of them together.

It says when there is no room, and which connections end when the server does.
"""

from asyncio import Future
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from nbspam.counts.counting import Outcome
from nbspam.errors import NbspamError
from nbspam.server.choices import Service
from nbspam.server.judge import Judge, Teacher
from nbspam.server.metrics import what_became
from nbspam.server.page.reviewer import Reviewer

if TYPE_CHECKING:
    from starlette.types import ASGIApp


_FOR_SMALL = 8  # one part in so many of the bytes that may be held is kept for small messages
_MOST_FAILURES = 10  # in a row: then a worker is started again


class BusyError(Exception):
    """There is no room for another message."""


class ClientGuest(Protocol):
    """The part of a connection that the desk sees; see `connection.Connection`."""

    due: float
    rests: bool
    closes: bool
    held: int
    turn: int
    pending: "Future[Any] | None"

    def give_way(self) -> None:
        """Let go of the message that is received: there is no room for it."""

    def expect(self, seconds: float) -> None:
        """Give the client so many seconds from now on."""

    def overdue(self) -> None:
        """End a request that took too long."""

    def close(self) -> None:
        """Close the connection once everything written to it has been sent."""


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
        self.connections: set[ClientGuest] = set()
        self.visitors: set[ClientGuest] = set()  # those of them that are on the page
        self.page: ASGIApp | None = None  # it answers them, from the first one on
        self.held = 0  # bytes of messages that are received, or wait
        self.turns = count(1)  # of messages, as they begin
        self.give_up = give_up
        self.failures = 0  # of messages, in a row
        self.ends = False  # no further requests are taken

    def sweep(self, now: float) -> None:
        """End overdue requests, and update the gauges; called every second."""
        for connection in [each for each in self.connections if each.due < now]:
            connection.overdue()
        self.tally.put("waiting", self.judge.n_waiting)
        self.tally.put("held", self.held)

    def note_open(self) -> None:
        """Tell other processes how many connections are open."""
        self.tally.put("open", len(self.connections))
        self.tally.put("visitors", len(self.visitors))

    def leaves_to_others(self, n_coming: int) -> bool:
        """Return whether another worker should accept connections, as this one has no place.

        n_coming: connections that are accepted, but not in `connections` yet.
        """
        number, limit = len(self.connections) - len(self.visitors), self.limits.connections
        return number + n_coming >= limit and self.tally.has_room(limit)

    # ---- the bytes of messages ----

    def charge(self, guest: ClientGuest, size: int) -> None:
        """Count bytes of a connection's message; raises BusyError if there is no room for it.

        Of large messages that are still received, those that began last give way, so that the
        others become whole; and a part of the room is for small messages only.
        """
        limits = self.limits
        is_small = guest.held + size <= limits.small_bytes
        room = (
            limits.bytes_held if is_small else limits.bytes_held * (_FOR_SMALL - 1) // _FOR_SMALL
        )
        if not guest.held:
            guest.turn = next(self.turns)
        while self.held + size > room:
            large = [
                each for each in self.connections if each is not guest and self._is_large(each)
            ]
            last = max(
                [*large, *[guest] * (not is_small)], key=lambda each: each.turn, default=guest
            )
            if last is guest:
                raise BusyError
            last.give_way()
        self.hold(guest, guest.held + size)

    def _is_large(self, guest: ClientGuest) -> bool:
        """Return whether a large message is still received."""
        is_received = guest.pending is None and not guest.closes
        return is_received and guest.held > self.limits.small_bytes

    def hold(self, guest: ClientGuest, size: int) -> None:
        """Note that a connection holds so many bytes from now on, room or not."""
        self.held += size - guest.held
        guest.held = size

    # ---- what became of requests ----

    def note_lesson(
        self,
        user: str | None,
        label: str | None,
        outcome: Outcome,
        seconds: float,
        **facts: Any,
    ) -> None:
        """Count and log the outcome of a lesson; None: it was un-learned."""
        became = what_became(outcome)
        self.tally.add(f"lesson {became}")
        taught, milliseconds = label or "forget", round(1000 * seconds, 2)
        self.log.answered(user=user, taught=taught, outcome=became, ms=milliseconds, **facts)

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
