"""The desk: what all connections of one worker share, and the bounds of them together.

Secret: when there is no room, and which connections end when the server does.
"""

from typing import NamedTuple, Protocol

from nbspam.server.limits import Limits
from nbspam.server.logs import Log
from nbspam.server.review.access import Access
from nbspam.server.review.people import People
from nbspam.server.tally import Tally
from nbspam.server.threads.judging import Judge
from nbspam.server.threads.reviewing import Reviewer
from nbspam.server.threads.teaching import Teacher


class BusyError(Exception):
    """There is no room for another message."""


class Policy(NamedTuple):
    """What clients may do, and what becomes of their mail."""

    allows_tell: bool = False  # clients of spamd may teach
    password: bytes | None = None  # of clients of HTTP who may teach; None: nobody may
    passes: bool = False  # mail passes unjudged when there is no room; else: try again
    reject_above: float | None = None  # probability of spam
    quarantine_above: float | None = None
    access: Access | None = None  # to the page; None: there is none
    review: str | None = None  # the mailbox on the page, or the folder of all users'; None: none
    people: People | None = None  # who each have a page of their own; None: all share one
    moves: bool = False  # what is told on the page moves mail between the folders of a Maildir

    @property
    def may_teach(self) -> bool:
        """Whether any client may teach."""
        told = self.allows_tell or self.password is not None
        return told or self.review is not None or self.people is not None


class Guest(Protocol):
    """A connection, as far as the desk looks at it; see `connection.Connection`."""

    due: float
    rests: bool
    closes: bool

    def expect(self, seconds: float) -> None:
        """Give the client so many seconds from now on."""

    def overdue(self) -> None:
        """End what took too long."""

    def close(self) -> None:
        """Close the connection when what was written to it is through."""


class Desk:
    """What all connections of one worker share.

    teacher: None if clients may teach nothing.  reviewer: None if no mailbox is on the page.
    """

    def __init__(
        self,
        judge: Judge,
        teacher: Teacher | None,
        limits: Limits,
        tally: Tally,
        log: Log,
        policy: Policy,
        reviewer: Reviewer | None = None,
    ) -> None:
        self.judge = judge
        self.teacher = teacher
        self.limits = limits
        self.tally = tally
        self.log = log
        self.policy = policy
        self.reviewer = reviewer
        self.connections: set[Guest] = set()
        self.visitors: set[Guest] = set()  # those of them that are on the page
        self.held = 0  # bytes of messages that are received, or wait
        self.ends = False  # no further requests are taken

    def sweep(self, now: float) -> None:
        """End what is overdue, and state how things are; called every second."""
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

    def end(self) -> None:
        """Take no further requests: connections at rest are closed, others after their answer."""
        if not self.ends:
            self.ends = True
            for connection in [each for each in self.connections if each.closes]:
                connection.expect(self.limits.parting_seconds)
        for connection in [each for each in self.connections if each.rests and not each.closes]:
            connection.close()
