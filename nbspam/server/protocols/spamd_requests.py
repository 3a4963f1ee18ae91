"""Requests of spamd's protocol: a line (`CHECK SPAMC/1.5`), headers, an empty line, a message.

Exim's `variant=rspamd` sends CHECK RSPAMC/1.3, and reads another answer.

Secret: how the head of a request is written, and the statuses of sysexits.h.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

REWRITING = {"PROCESS", "HEADERS"}
EXPLAINED = {"REPORT", "REPORT_IFSPAM"}
JUDGING = {"CHECK", "SYMBOLS"} | EXPLAINED  # without the message in the answer
_COMMANDS = {"TELL", "PING", "SKIP"} | REWRITING | JUDGING
_LINE = re.compile(rb"([A-Z_]{1,20}) (R?SPAM)C/(\d{1,2})\.(\d{1,2})\Z")
_HEADER = re.compile(rb"([!-9;-~]{1,100})[ \t]*+:[ \t]*+([^\r\n]*?)[ \t]*+\Z")
NO_REQUEST = "the first line is not COMMAND SPAMC/VERSION"


class Status(IntEnum):
    """Statuses of sysexits.h, whose names begin with EX_, and one of spamd's own, TIMEOUT."""

    DATAERR = 65
    NOUSER = 67
    UNAVAILABLE = 69
    SOFTWARE = 70
    TEMPFAIL = 75
    PROTOCOL = 76
    TIMEOUT = 79


class RequestError(Exception):
    """A request that cannot be answered: a status, and why."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


class Request(NamedTuple):
    """The head of a request."""

    command: str
    version: tuple[int, int]
    is_rspamd: bool  # Exim's variant=rspamd
    headers: Mapping[str, str]  # by name in lower case

    @property
    def length(self) -> int | None:
        """The bytes of the body; None: it ends where the client stops writing."""
        text = self.headers.get("content-length")
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise RequestError(Status.PROTOCOL, f"Content-length is not a number: {text[:20]!r}")
        return int(text)

    @property
    def is_compressed(self) -> bool:
        """Whether the body is compressed by zlib."""
        kind = self.headers.get("compress")
        if kind not in (None, "zlib"):
            raise RequestError(Status.PROTOCOL, "Compress: only zlib is known")
        return kind is not None


def parse_head(head: bytes) -> Request:
    """Return the request in its head, without the empty line; raises RequestError."""
    first, *lines = head.split(b"\n")
    match = _LINE.match(first.rstrip(b"\r"))
    if match is None:
        raise RequestError(Status.PROTOCOL, NO_REQUEST)
    command = match[1].decode()
    if command not in _COMMANDS:
        raise RequestError(Status.PROTOCOL, f"unknown command {command}")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.match(line.rstrip(b"\r"))
        if found is None:
            raise RequestError(Status.PROTOCOL, "a header line is not NAME: VALUE")
        headers[found[1].decode().lower()] = found[2].decode("utf-8", "replace")
    return Request(command, (int(match[3]), int(match[4])), match[2] == b"RSPAM", headers)


class Lesson(NamedTuple):
    """What a TELL asks for."""

    label: str | None  # None: un-learn
    done: str  # the header that says that it was done


def lesson_of(request: Request) -> Lesson | None:
    """Return what a TELL asks for, None for what is not done here; raises RequestError."""
    targets = [
        {part.strip().lower() for part in request.headers.get(name, "").split(",")}
        for name in ("set", "remove")
    ]
    if targets[0] & targets[1] - {""}:
        raise RequestError(Status.PROTOCOL, "Set and Remove name the same")
    if "local" in targets[0]:
        label = request.headers.get("message-class", "").lower()
        if label not in {"ham", "spam"}:
            raise RequestError(Status.PROTOCOL, "Message-class is neither ham nor spam")
        return Lesson(label, "DidSet: local")
    return Lesson(None, "DidRemove: local") if "local" in targets[1] else None
