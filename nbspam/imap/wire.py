"""The bytes between us and an IMAP server, within bounds that no server can exceed.

`imaplib` reads a literal of any length, waits for any number of lines, and waits for ever on a
server that sends one byte a minute.
"""

import imaplib
import logging
import re
import socket
import ssl
import time
from contextlib import suppress
from typing import Any, cast

from imapclient import IMAPClient, SocketTimeout
from imapclient.imap_utf7 import decode, encode
from imapclient.response_parser import parse_response
from imapclient.util import chunk

from nbspam.imap.accounts import IMAP_NUMBERS, folder_name
from nbspam.imap.troubles import CLOSED, NOTHING_SAID

CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 60.0  # without a byte, before a connection counts as lost
# TCP asks whether the other side is still there: while both wait, a connection may end silently.
_PROBES = {"TCP_KEEPIDLE": 120, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 4}
ANSWER_SECONDS = 900.0  # for a whole answer, which may be 80 MB over a slow line
MOST_BYTES = 80 << 20  # of one answer: a message of 64 MB, and what stands around it
MOST_LINES = 300_000  # of one answer
_LONGEST_LINE = 1 << 20  # a list of 90,000 UIDs
_STEP = 1 << 18
_MOST_PLACED = 256  # messages that are moved together: `session.FETCHED_MESSAGES`
_WITHOUT_UID = re.compile(rb"\d+ \((?!.*\bUID )", re.IGNORECASE | re.DOTALL)  # a FETCH
# Its warnings about answers that are not ASCII would be lines among our own.
logging.getLogger("imapclient").addHandler(logging.NullHandler())


class Wire(imaplib.IMAP4):
    """A connection, whose every answer is bounded in bytes, lines and seconds.

    context: of TLS from the first byte on; None: without, until STARTTLS.  timeouts: for
    connecting, and for a silent server, seconds.
    """

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, timeouts: SocketTimeout
    ) -> None:
        self._context, self._timeouts = context, timeouts
        self._buffer = bytearray()
        self._read_from: socket.socket | None = None
        self.begin_answer()
        super().__init__(host, port, timeouts.connect)

    def begin_answer(self) -> None:
        """Begin to count the bytes, lines and seconds of an answer."""
        self._bytes_left, self._lines_left = MOST_BYTES, MOST_LINES
        self._until = time.monotonic() + ANSWER_SECONDS

    @property
    def has_unread(self) -> bool:
        """Whether unread bytes have arrived already."""
        return bool(self._buffer)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        made = socket.create_connection((self.host, self.port), timeout)
        if self._context is not None:
            try:
                made = self._context.wrap_socket(made, server_hostname=self.host)
            except BaseException:
                made.close()
                raise
        made.settimeout(self._timeouts.read)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, number in _PROBES.items():
            if option := getattr(socket, name, None):  # not every system has all
                made.setsockopt(socket.IPPROTO_TCP, option, number)
        return made

    def login(self, user: str, password: str) -> Any:
        """Log in; the password is a literal, as quoted ones are ASCII (RFC 3501)."""
        self.literal = password.encode()  # type: ignore[assignment]  # its types say str
        said, data = self._simple_command("LOGIN", user)
        if said != "OK":
            raise self.error(data[-1])
        self.state = "AUTH"
        return said, data

    def send(self, data: Any) -> None:
        """Send a command, or a part of one."""
        self.begin_answer()
        super().send(data)

    def placed(self) -> dict[int, tuple[int, int]]:
        """Return UIDVALIDITY and new UIDs by old ones, as COPYUID said: `17 3:4,6 10:12`."""
        said = self.untagged_responses.pop("COPYUID", [])
        words = b" ".join(word for word in said if isinstance(word, bytes)).split()
        if len(words) != 3:
            return {}
        (validity,), old, new = map(_expanded, words)
        return {was: (validity, uid) for was, uid in zip(old, new, strict=False)}

    def _untagged_response(self, *answer: Any) -> tuple[str, list[Any]]:
        # A server may report flags that others set by a message's number alone (RFC 3501, 7.4.2),
        # which IMAPClient would take for a UID.
        said, found = super()._untagged_response(*answer)  # type: ignore[misc]
        if answer[-1] == "FETCH":
            found = [it for it in found if not (isinstance(it, bytes) and _WITHOUT_UID.match(it))]
        if answer[-1] == "SEARCH":  # mox says each 100 UIDs in a line, and IMAPClient takes one
            found = [b" ".join(filter(None, found))]
        return said, found or [None]

    def _check_bye(self) -> None:
        try:
            super()._check_bye()  # type: ignore[misc]  # its types leave it out
        except self.abort as error:  # from a server that greets, and then closes
            raise self.abort(f"* BYE {error}") from None

    def _fill(self) -> None:
        if self._read_from is not self.sock:
            if self._buffer:  # sent before TLS began, by somebody in between
                raise self.abort("answers that came before TLS began")
            self._read_from = self.sock
        if time.monotonic() > self._until:
            raise self.abort(f"an answer of more than {ANSWER_SECONDS:.0f} seconds")
        try:
            data = self.sock.recv(_STEP)
        except TimeoutError:
            raise self.abort(NOTHING_SAID) from None
        if not data:
            raise self.abort(CLOSED)
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise self.abort(f"an answer of more than {MOST_BYTES:,} bytes")
        self._buffer += data

    def read(self, size: int) -> bytes:
        """Return so many bytes: a literal."""
        if size > MOST_BYTES:
            raise self.abort(f"a literal of {size:,} bytes")
        while len(self._buffer) < size:
            self._fill()
        return self._taken(size)

    def readline(self) -> bytes:
        """Return a line with its end."""
        self._lines_left -= 1
        if self._lines_left < 0:
            raise self.abort(f"an answer of more than {MOST_LINES:,} lines")
        searched = 0
        if self._read_from is not self.sock:
            self._fill()
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > _LONGEST_LINE:
                raise self.abort(f"a line of more than {_LONGEST_LINE:,} bytes")
            self._fill()
        return self._taken(end + 1)

    def _taken(self, size: int) -> bytes:
        data = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return data


class WireClient(IMAPClient):  # type: ignore[misc]  # it has no type information
    """IMAPClient over a `Wire`."""

    def _create_IMAP4(self) -> Wire:  # noqa: N802  its name
        return Wire(self.host, self.port, self.ssl_context if self.ssl else None, self._timeout)

    def idle(self) -> None:
        """Have the server report changes from now on; it may report some before it agrees."""
        self._idle_tag = self.wire._command("IDLE")
        while (said := self.wire._get_response()) is not None:
            self.wire._check_bye()
            if self.wire.tagged_commands[self._idle_tag]:
                raise self.wire.error(said)

    def _proc_folder_list(self, folder_data: list[Any]) -> list[tuple[Any, Any, str]]:
        listed = parse_response([line for line in folder_data if line])
        found = []
        for flags, delimiter, name in chunk(listed, size=3):
            with suppress(UnicodeError):  # no command can name a folder of a wrong UTF-7
                encode(decoded := str(decode(b"NIL" if name is None else name)))
                found.append((flags, delimiter, folder_name(decoded)))
        return found

    def namespace(self) -> list[list[str]]:
        """Return the prefixes; more than prefix and delimiter may be said (RFC 2342)."""
        said = parse_response(self._command_and_check("namespace"))
        return [[decode(prefix) for prefix, *_ in each or ()] for each in said or [None]]

    @property
    def wire(self) -> Wire:
        """The connection below."""
        return cast("Wire", self._imap)


def connected(
    host: str, port: int, context: ssl.SSLContext | None, timeout: float | None
) -> WireClient:
    """Return a connected client; raises OSError and imaplib's errors.

    context: of TLS from the first byte on; None: without.  timeout: seconds that it may be
    silent, None for as long as a program in the background can wait.
    """
    silence = timeout or SILENCE_SECONDS
    timeouts = SocketTimeout(min(CONNECT_SECONDS, silence), silence)
    client = WireClient(host, port, ssl=context is not None, ssl_context=context, timeout=timeouts)
    client.normalise_times = False  # local times without a zone could be out of range
    client.wire.debug = 0  # else every line is formatted for a log
    return client


def _expanded(numbers: bytes) -> list[int]:
    found: list[int] = []
    for part in numbers.split(b",")[:_MOST_PLACED]:
        ends = sorted(map(int, part.split(b":")))  # 2:4 and 4:2 mean the same (RFC 4315)
        found += range(ends[0], min(ends[-1], ends[0] + _MOST_PLACED) + 1)
    return [number % IMAP_NUMBERS for number in found]
