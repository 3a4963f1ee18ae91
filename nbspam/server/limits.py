"""The bounds of a server: what one client, or all of them, can make it hold or wait for.

Secret: the numbers.
"""

from typing import NamedTuple


class Limits(NamedTuple):
    """Bounds of one worker process."""

    connections: int = 1000  # open at the same time; as many again are open until refused
    visitors: int = 100  # of the page, beside the other connections
    waiting: int = 1000  # messages that wait for their verdict
    bytes_held: int = 256 << 20  # of all messages that are received, or wait
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


LIMITS = Limits()
