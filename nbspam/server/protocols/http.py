"""HTTP: requests one after the other, and answers, within the bounds of every connection.

Secret: how a request is read from HTTP, and which status tells which trouble.
"""

from collections.abc import Sequence
from http import HTTPStatus
from time import gmtime, strftime
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from nbspam.server.answers import REASONS
from nbspam.server.connection import Connection
from nbspam.server.desk import BusyError, Desk

_STATUS = {
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "late": HTTPStatus.GATEWAY_TIMEOUT,
    "idle": HTTPStatus.REQUEST_TIMEOUT,
    "malformed": HTTPStatus.BAD_REQUEST,
    "failed": HTTPStatus.INTERNAL_SERVER_ERROR,
    "large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "user": HTTPStatus.BAD_REQUEST,
}


class HttpConnection(Connection):
    """A client that speaks HTTP/1.0 or 1.1, one request after the other.

    What is spoken over it defines `handle` and `fail`.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.parser = HttpRequestParser(self)
        self.url = b""
        self.query = b""  # what follows the question mark
        self.headers: dict[str, str] = {}
        self.head_size = 0
        self.aside = 0  # bytes since the last piece of a body; the parser keeps them
        self.whole = False  # the request is whole, and not answered yet
        self.stays = True  # the connection stays open after the answer
        self.more: list[bytes] = []  # received while a request is answered

    def received(self, data: bytes) -> None:
        """Take in a piece of a request."""
        if self.whole:
            # The next request waits, and its sender, too, if it sends much ahead.
            self.more.append(data)
            self.transport.pause_reading()
            return
        self.aside += len(data)
        try:
            self.parser.feed_data(data)
            if self.aside > 2 * self.desk.limits.head_bytes and not self.whole:
                raise ValueError("what is around the body is too large")
        except (HttpParserError, HttpParserUpgrade, ValueError) as error:
            self.stays = False
            if not self.whole:
                busy = isinstance(error.__context__, BusyError)
                self.trouble("busy") if busy else self.trouble("malformed", "not HTTP")
        if self.whole and not self.closes:
            self.answer()

    def heard(self) -> None:
        """Answer what is whole, and close."""
        self.stays = False
        if not self.whole:
            self.cut_short()

    # ---- what the parser calls ----

    def on_message_begin(self) -> None:
        """Begin a request.

        One that comes in the same piece as the one before is not answered: the connection closes
        after the answer to the first, upon which clients send the others again.
        """
        if self.whole:
            raise ValueError("a request before the answer to the last one")
        self.rests = False
        self.url, self.headers, self.head_size = b"", {}, 0
        self.expect(self.desk.limits.head_seconds)

    def on_url(self, url: bytes) -> None:
        """Take in a piece of the URL."""
        self.url += url
        self._grow(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header."""
        self._grow(len(name) + len(value))
        if len(self.headers) >= self.desk.limits.head_lines:
            raise ValueError("too many headers")
        known_as = name.decode("latin-1").lower()
        if known_as == "host" and known_as in self.headers:
            raise ValueError("two hosts")
        self.headers[known_as] = value.decode("utf-8", "replace")

    def _grow(self, size: int) -> None:
        self.head_size += size
        if self.head_size > self.desk.limits.head_bytes:
            raise ValueError("the head is too large")

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        self.expect(self.desk.limits.body_seconds)
        if self.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the message."""
        self.aside = 0
        self.keep(body)

    def on_message_complete(self) -> None:
        """Have the request answered."""
        self.whole = True
        self.aside = 0
        self.stays = self.stays and self.parser.should_keep_alive() and not self.crowded

    # ---- answering ----

    def answer(self) -> None:
        """Answer a whole request."""
        path = b""
        try:
            url = parse_url(self.url)
            path, self.query = url.path or b"", url.query or b""
            if url.schema:  # RFC 9112, 3.2.2: the host in the address counts
                self.headers["host"] = urlsplit(self.url.decode("latin-1")).netloc
        except (HttpParserError, ValueError):
            self.query = b""
        self.handle(self.parser.get_method().decode(), path.decode("latin-1"))

    def handle(self, method: str, path: str) -> None:
        """Do what a whole request asks for."""
        raise NotImplementedError

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer that there is no answer."""
        raise NotImplementedError

    def refuse(self, kind: str, why: str) -> None:
        """Answer with a status."""
        self.stays = self.stays and self.whole
        self.fail(_STATUS[kind], why or REASONS[kind])

    def send(self, status: HTTPStatus, body: bytes, kind: str, more: Sequence[str] = ()) -> None:
        """Answer, and go on to the next request or close; more: further headers."""
        stays = self.stays and not self.desk.ends
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "Server: nbspam",
            f"Date: {strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime())}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            f"Connection: {'keep-alive' if stays else 'close'}",
            *more,
        )
        self.transport.write("\r\n".join((*lines, "", "")).encode("latin-1") + body)
        self.whole = False
        if not stays:
            self.close()
            return
        self.rests = True
        self.let_go()
        self.expect(self.desk.limits.idle_seconds)
        if self.more:
            waiting, self.more = b"".join(self.more), []
            self.transport.resume_reading()
            self.received(waiting)
