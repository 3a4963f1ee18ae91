"""The protocol of SpamAssassin's spamd, which spamc, Exim, amavis and others speak.

One connection has one request: a line (`CHECK SPAMC/1.5`), headers, an empty line, a message.
Which answers a client can read depends on its version; Exim's `variant=rspamd` sends CHECK
RSPAMC/1.3, and reads its own kind of answer.
"""

import re
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from nbspam.counts.lessons import Outcome
from nbspam.mail.headers import HeaderChoices
from nbspam.mail.verdict_headers import REQUIRED, score_of, with_verdict
from nbspam.printing import printable
from nbspam.server import connection
from nbspam.server.judge import Judgement
from nbspam.server.metrics import outcome_word

_REWRITING = {"PROCESS", "HEADERS"}
_EXPLAINED = {"REPORT", "REPORT_IFSPAM"}
_JUDGING = {"CHECK", "SYMBOLS"} | _EXPLAINED  # without the message in the answer
_COMMANDS = {"TELL", "PING", "SKIP"} | _REWRITING | _JUDGING
_LINE = re.compile(rb"([A-Z_]{1,20}) (R?SPAM)C/(\d{1,2})\.(\d{1,2})\Z")
_HEADER = re.compile(rb"([!-9;-~]{1,100})[ \t]*+:([^\r\n]*+)\Z")
_NO_REQUEST = "the first line is not COMMAND SPAMC/VERSION"


class Status(IntEnum):
    """Statuses of sysexits.h, whose names begin with EX_, and spamd's own TIMEOUT."""

    DATAERR = 65
    NOUSER = 67
    UNAVAILABLE = 69
    TEMPFAIL = 75
    PROTOCOL = 76
    TIMEOUT = 79


class RequestError(Exception):
    """A request that cannot be answered: a status, and the reason."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


class Request(NamedTuple):
    """The head of a request."""

    command: str
    version: tuple[int, int]
    is_rspamd: bool  # Exim's variant=rspamd
    headers: Mapping[str, str]  # by name in lower case
    length: int | None  # bytes of the body; None: it ends where the client stops writing
    is_compressed: bool  # whether the body is compressed by zlib


def parse_head(head: bytes) -> Request:
    """Return the request in its head, without the empty line; raises RequestError."""
    first, *lines = head.split(b"\n")
    match = _LINE.match(first.rstrip())
    if match is None:
        raise RequestError(Status.PROTOCOL, _NO_REQUEST)
    command = match[1].decode()
    if command not in _COMMANDS:
        raise RequestError(Status.PROTOCOL, f"unknown command {command}")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.match(line.rstrip(b"\r"))
        if found is None:
            raise RequestError(Status.PROTOCOL, "a header line is not NAME: VALUE")
        headers[found[1].decode().lower()] = found[2].strip(b" \t").decode("utf-8", "replace")
    length = headers.get("content-length")
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 16):
        raise RequestError(Status.PROTOCOL, f"Content-length is not a number: {length[:20]!r}")
    if headers.get("compress", "zlib") != "zlib":
        raise RequestError(Status.PROTOCOL, "Compress: only zlib is known")
    return Request(
        command,
        (int(match[3]), int(match[4])),
        match[2] == b"RSPAM",
        headers,
        None if length is None else int(length),
        "compress" in headers,
    )


def lesson_of(request: Request, reports_teach: bool) -> tuple[str | None, str] | None:
    """Return the lesson of a TELL: its class, and the headers that say that it was done.

    The class is None if the message is to be un-learned.  Return None if the TELL asks for
    something else; raises RequestError.  reports_teach: whether a report to a network (spamc -C,
    target `remote`) is also a lesson; there is no network here, so otherwise nothing is done.
    """
    added, removed = (
        {part.strip().lower() for part in request.headers.get(name, "").split(",")}
        for name in ("set", "remove")
    )
    if added & removed - {""}:
        raise RequestError(Status.PROTOCOL, "Set and Remove name the same")
    if "remote" in added | removed and not reports_teach:
        return None
    if "local" in added:
        label = request.headers.get("message-class", "").lower()
        if label not in {"ham", "spam"}:
            raise RequestError(Status.PROTOCOL, "Message-class is neither ham nor spam")
        done = "DidSet: local,remote\r\n" if "remote" in added else "DidSet: local\r\n"
        if "remote" in removed:
            done += "DidRemove: remote\r\n"
        return label, done
    return (None, "DidRemove: local\r\n") if "local" in removed else None


_END_OF_HEAD = re.compile(rb"\n\r?\n")
_RECIPIENT = re.compile(rb"(?<=\n)Rcpt:[^\n]*+\n")  # Exim has a line for each of thousands
_END_FOR_SPAMC = re.compile(rb"\r\n\r\n|\n\n")  # of a message's head, wherever it really ends
_STATUS = {
    "busy": Status.TEMPFAIL,
    "late": Status.TIMEOUT,
    "idle": Status.TIMEOUT,
    "malformed": Status.DATAERR,
    "gone": Status.PROTOCOL,  # it may only have stopped writing, and read on
    "failed": Status.TEMPFAIL,  # a full disk, or a fault of ours: neither is the message's
    "large": Status.DATAERR,
    "user": Status.NOUSER,
}


class SpamdConnection(connection.Connection):
    """A client that speaks spamd's protocol."""

    def __init__(self, desk: connection.Desk) -> None:
        super().__init__(desk)
        self.head = bytearray()  # it may come byte by byte
        self.request: Request | None = None

    # ---- receiving ----

    def received(self, data: bytes) -> None:
        """Take in a piece of the request."""
        self.rests = False
        self._safely(self._take, data)

    def _take(self, data: bytes) -> None:
        if self.pending is not None:
            return  # more than the request said
        if self.request is None:
            data = self._take_head(data)
        if self.request is not None and not self.closes and self.pending is None:
            length = self.request.length
            self.keep(data if length is None else data[: max(length - self.size, 0)])
            if length is not None and self.size >= length:
                self._handle()

    def _safely(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do a piece of work; tell the client about a wrong request."""
        try:
            work(*arguments)
        except RequestError as wrong:
            is_unavailable = wrong.status == Status.UNAVAILABLE
            self.note_trouble("forbidden" if is_unavailable else "malformed", str(wrong))
            self._fail(wrong.status, str(wrong))
        except connection.TroubleError as refused:
            self.trouble(refused.kind, str(refused))

    def received_all(self) -> None:
        """Take the end of the client's writing for the end of the message."""
        if self.rests:
            self.close()
        elif self.pending is None:
            if self.request is not None and self.request.length is None:
                self._safely(self._handle)
            else:
                self.trouble("gone", "the request ends too early")

    def _take_head(self, data: bytes) -> bytes:
        """Add to the head; return the bytes behind it."""
        seen = max(len(self.head) - 3, 0)
        self.head += data
        if not self.head[:1].isupper():
            # A client that speaks TLS, say, whose greeting has no end of a head to wait for.
            raise RequestError(Status.PROTOCOL, _NO_REQUEST)
        if self.head.startswith((b"PING SPAMC/", b"SKIP SPAMC/")):
            # Before version 1.5 nothing follows the line; anything that does is ignored.
            size = self.head.find(b"\n", seen)
            if size >= 0:
                self._begin(parse_head(bytes(self.head[:size])))
                return b""
        end = _END_OF_HEAD.search(self.head, seen)
        size = end.start() if end else max(len(self.head) - 2, 0)  # of an end that is cut
        if size > self.desk.limits.head_bytes:
            shorter = _RECIPIENT.sub(b"", self.head[:size])
            if len(shorter) == size:
                raise RequestError(Status.PROTOCOL, "the head is too large")
            rest = bytes(self.head[size:])
            self.head[:] = shorter
            return self._take_head(rest)
        if end is None:
            return b""
        rest = bytes(self.head[end.end() :])
        self._begin(parse_head(bytes(self.head[:size]).rstrip(b"\r")))
        return rest

    def _begin(self, request: Request) -> None:
        self.request = request
        self.head.clear()
        self.expect(self.desk.limits.body_seconds)
        self.check_length(request.length or 0)
        if request.is_compressed and request.length is None:
            raise RequestError(Status.PROTOCOL, "Compress needs Content-length")
        if request.command in {"PING", "SKIP"} or request.length == 0:
            self._handle()

    # ---- answering ----

    def _handle(self) -> None:
        """Answer a whole request by its command."""
        assert self.request is not None
        request, command = self.request, self.request.command
        if command == "PING":
            self._write([b"SPAMD/1.5 0 PONG\r\n"])
        elif command == "SKIP":
            self._write([])
        elif command == "TELL":
            self._teach(request)
        else:
            data = self._data(request)
            if command == "PROCESS" and not self.is_whole:
                raise connection.TroubleError("large", "the message is too large to be sent back")

            def answer(judgement: Judgement) -> None:
                wanted = self.desk.choices.headers._replace(learned=judgement.lesson)
                body = _body(request, judgement, data, self.is_whole, wanted)
                self._write(scored_answer(request, judgement, body))

            user, queue = request.headers.get("user"), request.headers.get("queue-id")
            self.ask(data, command in _EXPLAINED, answer, user, queue=queue, asked=command)

    def _teach(self, request: Request) -> None:
        if not self.desk.choices.allows_tell:
            why = "TELL is not allowed; start the server with --allow-tell"
            raise RequestError(Status.UNAVAILABLE, why)
        lesson = lesson_of(request, self.desk.choices.reports_teach)
        if lesson is None:
            why = "a TELL that is not for local alone teaches only with --report-teaches"
            self.note_trouble("forbidden", why)
            self._write_done("")
            return
        label, done = lesson

        def answer(outcome: Outcome) -> None:
            self._write_done(done if outcome_word(outcome) != "known" else "")

        data = self._data(request)
        if not data:
            raise RequestError(Status.DATAERR, "no message; send it behind the head")
        self.teach(data, label, answer, request.headers.get("user"))

    def _write_done(self, done: str) -> None:
        # spamd's own body is an empty line, which aiospamc does not count.
        self._write([f"SPAMD/1.1 0 EX_OK\r\n{done}Content-length: 0\r\n\r\n".encode()])

    def _data(self, request: Request) -> bytes:
        """Return the message, or its beginning; from then on, `size` is that of the message."""
        data = self.message()
        if not request.is_compressed:
            return data
        inflating = zlib.decompressobj()
        try:
            data = inflating.decompress(data, self.desk.limits.message_bytes)
        except zlib.error as error:
            why = f"the body is not compressed by zlib: {error}"
            raise RequestError(Status.DATAERR, why) from error
        if inflating.eof:
            self.size = len(data)
        elif self.is_whole:
            if not inflating.unconsumed_tail:
                raise RequestError(Status.DATAERR, "the body that zlib compressed ends too early")
            self.size = self.desk.limits.message_bytes + 1  # or more
        self.desk.charge(self, len(data))
        return data

    def _write(self, pieces: list[bytes]) -> None:
        self.transport.writelines(pieces)
        self.close()

    def _fail(self, status: Status, why: str) -> None:
        self._write([f"SPAMD/1.0 {status} EX_{status.name}: {printable(why)}\r\n".encode()])

    def refuse(self, kind: str, why: str) -> None:
        """Answer with a status of sysexits.h, or let the message pass."""
        request = self.request
        passes = self.desk.choices.passes and kind in {"busy", "late"}
        if passes and request is not None and request.command in _JUDGING:
            self._write(scored_answer(request, None, []))
            return
        self._fail(_STATUS[kind], why)


def scored_answer(request: Request, judgement: Judgement | None, body: list[bytes]) -> list[bytes]:
    """Return the pieces of the answer with a score.

    judgement: None for a message that passes without one.  body: the pieces behind the head.
    """
    spam = judgement is not None and judgement.verdict.label == "spam"
    points = 0.0 if judgement is None else score_of(judgement.verdict, judgement.rule)
    if request.is_rspamd:
        action = "add header" if spam else "no action"
        found = [] if judgement is None else connection.symbols_of(judgement)
        symbols = "".join(f"Symbol: {each.name}({each.points:.2f})\r\n" for each in found)
        return [
            f"RSPAMD/1.3 0 EX_OK\r\nMetric: default; {spam}; {points:.2f} / {REQUIRED:.2f} /"
            f" {REQUIRED:.2f}\r\nAction: {action}\r\n{symbols}\r\n".encode()
        ]
    rewrites = request.command in _REWRITING
    line = f"Spam: {spam} ; {points:.1f} / {REQUIRED:.1f}\r\n"
    # Which headers clients of each version can read: see the protocol's history.
    has_length = request.command != "CHECK" and request.version >= ((1, 2) if rewrites else (1, 3))
    has_spam = not rewrites or request.version >= (1, 3)
    length = f"Content-length: {sum(map(len, body))}\r\n" if has_length else ""
    headers = length + (line if has_spam else "")
    end = "\r\n" if headers else ""  # before 1.2 the message follows the first line
    return [f"SPAMD/1.1 0 EX_OK\r\n{headers}{end}".encode(), *body]


def _body(
    request: Request, judgement: Judgement, data: bytes, whole: bool, wanted: HeaderChoices
) -> list[bytes]:
    is_spam = judgement.verdict.label == "spam"
    if request.command == "CHECK" or (request.command == "REPORT_IFSPAM" and not is_spam):
        return []
    if request.command == "SYMBOLS":
        end = "" if request.version >= (1, 3) else "\r\n"
        names = [symbol.name for symbol in connection.symbols_of(judgement)]
        return [(",".join(names) + end).encode()]
    if request.command in _REWRITING:
        pieces = with_verdict(data, judgement.verdict, judgement.rule, wanted, whole=whole)
        if request.command == "PROCESS":
            return pieces
        text, head = b"".join(pieces), _END_FOR_SPAMC.search(data)
        # spamc appends what followed that end in the message that it sent.
        return [text[: len(text) - len(data) + head.end()] if head else text]
    return [connection.report(judgement).encode()]
