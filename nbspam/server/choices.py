"""A server's inputs: its owner's choices, its bounds, and the state that processes share."""

import os
import select
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.imap.secrets import AccessBook
from nbspam.mail.verdict_headers import HeaderChoices
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.page.access import Access


class ServerLimits(NamedTuple):
    """Bounds of one worker process: what one client, or all of them, can make it hold or wait."""

    connections: int = 1000  # open at the same time; as many again are open until refused
    visitors: int = 100  # of the page, beside the other connections
    waiting: int = 1000  # messages that wait for their verdict
    bytes_held: int = 256 << 20  # of all messages that are received, or wait
    small_bytes: int = 512 << 10  # a message up to this size may use the last eighth of them
    message_bytes: int = 8 << 20  # of one message; the rest is received and dropped
    users_bytes: int = 64 << 20  # of what users have taught, held for those judged last
    head_bytes: int = 64 << 10  # of a request's own head
    head_lines: int = 256
    head_seconds: float = 30.0  # in which a request's head must be there
    body_seconds: float = 300.0  # in which the whole request must be there
    answer_seconds: float = 60.0  # in which a message is judged
    idle_seconds: float = 300.0  # of a connection between two messages, or to read an answer
    silent_seconds: float = 7210.0  # of a mail system's own connection, as libmilter waits
    drain_seconds: float = 60.0  # in which a worker that is to end answers what it has accepted
    parting_seconds: float = 2.0  # in which clients read their answer when the server ends


LIMITS = ServerLimits()


def own_rule(classifier: Classifier) -> Rule:
    """Return the rule that a model was trained with."""
    return classifier.rule


class Waker(NamedTuple):
    """A pipe by which workers tell the courier that there are lessons to send."""

    read: int
    write: int

    @classmethod
    def new(cls) -> "Waker":
        """Return a pipe that nobody waits for."""
        ends = cls(*os.pipe())
        for end in ends:
            os.set_blocking(end, False)
        return ends

    def wake(self) -> None:
        """Tell it; a full pipe has told it already."""
        try:
            os.write(self.write, b".")
        except OSError:
            return

    def wait(self, seconds: float) -> None:
        """Return when it is told, or after some seconds."""
        if select.select([self.read], [], [], seconds)[0]:
            os.read(self.read, 1 << 16)


class ShareChoices(NamedTuple):
    """How lessons are shared with other servers."""

    url: str  # of the log
    password: str | None = None
    is_sync: bool = False  # a lesson is acknowledged when the log has it, too


class ServerChoices(NamedTuple):
    """The owner's choices, which can change while the server runs."""

    model_path: str
    rule_of: Callable[[Classifier], Rule] = own_rule
    log: str = "text"  # one of metrics.FORMATS
    peer_users: bool = False  # who connects to a socket at a path is the user
    users: str | None = None  # the folder of users' own models; None: all share one model
    allows_tell: bool = False  # clients of spamd may teach
    reports_teach: bool = False  # so does a report to a network, like that of spamc -C
    password: bytes | None = None  # of clients of HTTP who may teach; None: nobody may
    passes: bool = False  # mail passes unjudged when there is no room; else: try again
    headers: HeaderChoices = HeaderChoices(spam_status=True)  # written into mail
    reject_above: float | None = None  # probability of spam
    quarantine_above: float | None = None
    review: str | None = None  # the mailbox on the page; with users, the folder of all mailboxes
    moves: bool = False  # a lesson on the page moves its message between a Maildir's folders
    share: ShareChoices | None = None
    book: AccessBook | None = None  # the ways to a mail account on the page


class Service(NamedTuple):
    """The inputs of a worker."""

    choices: ServerChoices
    sockets: Mapping[str, Sequence[socket.socket]]  # listening, by protocol
    limits: ServerLimits
    log: Log
    tally: ServerTally
    access: Access | None = None  # to the page; None: there is none
    waker: Waker | None = None  # of the courier, if lessons are shared

    @property
    def listeners(self) -> list[tuple[str, socket.socket]]:
        """The protocol of each listening socket, and the socket."""
        return [(name, each) for name, some in self.sockets.items() for each in some]

    @property
    def has_mail(self) -> bool:
        """Whether the page shows mail, and learns."""
        shown = self.choices.review is not None or self.choices.users is not None
        return shown and "web" in self.sockets

    @property
    def may_teach(self) -> bool:
        """Whether any client may teach."""
        return self.choices.allows_tell or self.choices.password is not None or self.has_mail
