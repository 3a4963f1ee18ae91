"""The desk: what all connections of one worker share, and the bounds of them together.

It says when there is no room, and which connections end when the server does.
"""

from typing import TYPE_CHECKING, Protocol

from nbspam.counts.counting import Outcome
from nbspam.server.choices import Service
from nbspam.server.judge import Judge, Teacher
from nbspam.server.metrics import what_became
from nbspam.server.page.reviewer import Reviewer

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class BusyError(Exception):
    """There is no room for another message."""


class ClientGuest(Protocol):
    """The part of a connection that the desk sees; see `connection.Connection`."""

    due: float
    rests: bool
    closes: bool

    def expect(self, seconds: float) -> None:
        """Give the client so many seconds from now on."""

    def overdue(self) -> None:
        """End a request that took too long."""

    def close(self) -> None:
        """Close the connection once everything written to it has been sent."""


class Desk:
    """The state that all connections of one worker share.

    teacher: None if clients may teach nothing.  reviewer: None if no mailbox is on the page.
    """

    def __init__(
        self,
        service: Service,
        judge: Judge,
        teacher: Teacher | None,
        reviewer: Reviewer | None = None,
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
        self.ends = False  # no further requests are taken

    def sweep(self, now: float) -> None:
        """End overdue requests, and update the gauges; called every second."""
        for connection in [each for each in self.connections if each.due < now]:
            connection.overdue()
        self.tally.put("open", len(self.connections))
        self.tally.put("waiting", self.judge.n_waiting)
        self.tally.put("held", self.held)

    def charge(self, size: int) -> None:
        """Count bytes of messages; raises BusyError if all connections together hold too much."""
        if self.held + size > self.limits.bytes_held:
            raise BusyError
        self.held += size

    def note_lesson(
        self, user: str | None, label: str | None, outcome: Outcome, seconds: float
    ) -> None:
        """Count and log the outcome of a lesson; None: it was un-learned."""
        became = what_became(outcome)
        self.tally.add(f"lesson {became}")
        taught, milliseconds = label or "forget", round(1000 * seconds, 1)
        self.log.answered(user=user, taught=taught, outcome=became, ms=milliseconds)

    def end(self) -> None:
        """Take no further requests: close connections at rest, the others after their answer."""
        if not self.ends:
            self.ends = True
            for connection in [each for each in self.connections if each.closes]:
                connection.expect(self.limits.parting_seconds)
        for connection in [each for each in self.connections if each.rests and not each.closes]:
            connection.close()
