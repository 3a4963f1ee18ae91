"""Bytes to fields: what a message says, and where.

Mail comes well-formed, broken, and broken on purpose; all of it is read, nothing raises.
What is wrong with a message is noted as a defect, and defects are evidence too.

Secret: the shape of mail: headers, MIME parts, encodings, and how far to follow them.
"""

import re
from binascii import a2b_qp
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from nbspam.charsets import to_utf8
from nbspam.headers import (
    decode_base64,
    decode_value,
    header_lines,
    looks_like_header,
    parameters,
)
from nbspam.markup import read_html

# Limits: far above honest mail, low enough that no message costs more than a blink.
MAX_BYTES = 16 << 20  # of a message that are looked at, attachments included
MAX_TEXT = 512 << 10  # of decoded text
MAX_HEADERS = 64 << 10
MAX_PARTS = 500
MAX_DEPTH = 20
MAX_URLS = 1000

# Headers that a filter, a mailbox or an archive adds afterwards say how the message was
# treated, not what it is: they never count, neither value nor name.
_ADDED_LATER = re.compile(
    rb"x-spam|x-bogosity|x-nbspam|x-spamprobe|x-spambayes|x-dspam|x-crm114|x-rspamd"
    rb"|x-virus|x-amavis|x-mailscanner|x-pstn|x-barracuda|x-ham|x-junk|x-bayes"
    rb"|status$|x-status$|x-keywords$|x-mozilla|x-uid|content-length$|lines$|x-imap|x-gmail"
    rb"|x-gmane|x-evolution|delivered-to$|x-original-to$|xref$|path$|nntp-|x-folder|x-label"
)
# Headers whose value is evidence, and the origin its words get.
_ORIGIN = {
    b"subject": "subject",
    b"from": "from",
    b"sender": "from",
    b"to": "to",
    b"cc": "to",
    b"reply-to": "reply-to",
    b"return-path": "return-path",
    b"received": "received",
    b"message-id": "message-id",
    b"date": "date",
    b"x-mailer": "mailer",
    b"user-agent": "mailer",
    b"list-id": "list",
    b"list-post": "list",
    b"mailing-list": "list",
    b"precedence": "list",
    b"content-type": "mime",
    b"content-transfer-encoding": "mime",
    b"content-disposition": "mime",
}
_PART = {
    name: "mime"
    for name in (b"content-type", b"content-transfer-encoding", b"content-disposition")
}
_NESTED = {b"subject": "nested", b"from": "nested", **_PART}
# Two patterns that each begin with a literal: five times as fast as one that does not.
_LINK = re.compile(rb"://[^\s<>\"'()\[\]{}]{1,2000}")
_BARE_LINK = re.compile(rb"www\.[^\s<>\"'()\[\]{}]{1,2000}")
_UUENCODED = re.compile(rb"^begin [0-7]{3,4} (.{1,200})\n((?:[ -`]{1,62}\n){2,})", re.MULTILINE)


@lru_cache(maxsize=4096)
def _known_name(raw: bytes) -> tuple[bytes, bool]:
    """Return a header's name in lower case, and whether it counts as evidence."""
    name = raw.lower()
    return name, _ADDED_LATER.match(name) is None


class Field(NamedTuple):
    """Text from one place of a message."""

    origin: str
    text: bytes  # UTF-8, as it came: not yet in normal form


@dataclass(frozen=True, slots=True)
class Message:
    """What a message says, place by place, and what is wrong with it."""

    fields: tuple[Field, ...]
    defects: tuple[str, ...]  # sorted


def parse_message(data: bytes) -> Message:
    """Return the fields of a message; never raises, whatever the bytes are."""
    reader = _Reader()
    reader.read(data)
    return reader.message()


def plain_text(data: bytes) -> Message:
    """Return a text that is no mail (a table's cell) as one field."""
    text, defect = to_utf8(data[:MAX_TEXT], None)
    return Message((Field("body", text),), () if defect is None else (defect,))


class _Part(NamedTuple):
    """A part that waits to be read."""

    data: bytes
    depth: int
    default_type: bytes = b"text/plain"
    is_nested: bool = False  # a message of its own, within the message


class _Reader:
    """Reads one message: a stack of parts, a budget of text, and what was found."""

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.defects: set[str] = set()
        self.facts: set[str] = set()
        self.urls: list[bytes] = []
        self.budget = MAX_TEXT
        self.stack: list[_Part] = []

    def message(self) -> Message:
        """Return what was found."""
        if self.urls:
            self.fields.append(Field("url", b"\n".join(self.urls[:MAX_URLS])))
        for origin, words in (("html", self.facts), ("defect", self.defects)):
            if words:
                self.fields.append(Field(origin, " ".join(sorted(words)).encode()))
        return Message(tuple(self.fields), tuple(sorted(self.defects)))

    def read(self, data: bytes) -> None:
        """Read a whole message."""
        if len(data) > MAX_BYTES:
            data = data[:MAX_BYTES]
            self.defects.add("truncated")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data.startswith((b"From ", b">From ")):
            data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
        data = data.lstrip(b"\n")
        if data and not looks_like_header(data):
            self.defects.add("no-headers")
            self.add_text(
                data, None, is_html=data[:200].lstrip()[:5].lower() in (b"<html", b"<!doc")
            )
            return
        self.read_part(_Part(data, 0), _ORIGIN)
        for count in range(MAX_PARTS):
            if not self.stack:
                return
            part = self.stack.pop()
            self.read_part(part, _NESTED if part.is_nested else _PART)
        self.defects.add("too-many-parts")

    def read_part(self, part: _Part, origins: dict[bytes, str]) -> None:
        """Read headers and body of a message or of one of its parts."""
        head, body = _split(part.data)
        if len(head) > MAX_HEADERS:
            head = head[:MAX_HEADERS]
            self.defects.add("headers-truncated")
        is_plain = head.isascii() and b"=?" not in head
        values: dict[str, list[bytes]] = {}
        content: dict[bytes, bytes] = {}
        names = []
        for raw, value in header_lines(head):
            name, counts = _known_name(raw)
            if name in _PART:
                content.setdefault(name, value)
            if counts:
                names.append(name)
            if (origin := origins.get(name)) is not None:
                value = value if is_plain else decode_value(value)
                values.setdefault(origin, []).append(value)
        if origins is _ORIGIN:
            values["header"] = names
        self.fields.extend(Field(origin, b"\n".join(found)) for origin, found in values.items())
        self.read_body(body, content, part)

    def read_body(self, body: bytes, content: dict[bytes, bytes], part: _Part) -> None:
        """Read a body of any type: text, parts, a message, or none of these."""
        value = content.get(b"content-type", part.default_type)
        kind = value.partition(b";")[0].strip().lower()
        encoding = content.get(b"content-transfer-encoding", b"").strip().lower()
        settings = parameters(value)
        disposition = content.get(b"content-disposition", b"")
        filename = parameters(disposition).get("filename") or settings.get("name")
        if filename:
            self.fields.append(Field("filename", filename))
        if kind.startswith(b"multipart/"):
            self.read_multipart(body, settings.get("boundary"), kind, part)
        elif kind == b"message/rfc822":
            self.push([_Part(_decode(body, encoding), part.depth + 1, is_nested=True)])
        elif kind.startswith((b"text/", b"message/")) or b"/" not in kind:
            charset = settings.get("charset", b"").decode("latin-1")
            self.add_text(self.decode_text(body, encoding), charset, kind == b"text/html")

    def read_multipart(
        self, body: bytes, boundary: bytes | None, kind: bytes, part: _Part
    ) -> None:
        """Push the parts of a multipart body; without a boundary it is text."""
        parts = _parts(body, boundary) if boundary else []
        if not parts:
            self.defects.add("no-boundary")
            self.add_text(self.decode_text(body, b""), None, is_html=False)
            return
        default = b"message/rfc822" if kind == b"multipart/digest" else b"text/plain"
        self.push([_Part(data, part.depth + 1, default) for data in parts])

    def push(self, parts: list[_Part]) -> None:
        """Put parts on the stack, the first on top."""
        if parts[0].depth > MAX_DEPTH:
            self.defects.add("too-deep")
        else:
            self.stack.extend(reversed(parts))

    def decode_text(self, body: bytes, encoding: bytes) -> bytes:
        """Undo a transfer encoding, no further than the budget of text reaches."""
        most = 4 * self.budget + 4
        if len(body) > most:
            self.defects.add("truncated")
            body = body[:most]
        return _decode(body, encoding)

    def add_text(self, data: bytes, charset: str | None, is_html: bool) -> None:
        """Add text to the body, with its links; HTML is taken apart."""
        if len(data) > self.budget:
            self.defects.add("truncated")
            data = data[: self.budget]
        self.budget -= len(data)
        text, defect = to_utf8(data, charset)
        if defect is not None:
            self.defects.add(defect)
        if is_html:
            html = read_html(text)
            self.urls.extend(html.urls)
            self.facts.update(html.facts)
            for origin, found in (("hidden", html.hidden), ("alt", html.alt)):
                if found.strip():
                    self.fields.append(Field(origin, found))
            text = html.visible
        elif b"\nbegin " in text or text.startswith(b"begin "):
            text = _UUENCODED.sub(self.take_uuencoded, text)
        self.urls.extend(_LINK.findall(text) or _BARE_LINK.findall(text))
        self.fields.append(Field("body", text))

    def take_uuencoded(self, match: re.Match[bytes]) -> bytes:
        """Note the name of a uuencoded file and leave its data out."""
        self.fields.append(Field("filename", match.group(1)))
        return b"\n"


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Return headers and body; a part may begin with the blank line."""
    if data.startswith(b"\n"):
        return b"", data[1:]
    head, _, body = data.partition(b"\n\n")
    return head, body


def _parts(body: bytes, boundary: bytes) -> list[bytes]:
    """Return what stands between the boundary's lines; an end line may be missing."""
    delimiter = b"\n--" + boundary.rstrip()
    parts: list[bytes] = []
    for chunk in (b"\n" + body).split(delimiter)[1:]:
        line, _, rest = chunk.partition(b"\n")
        tail = line.strip()
        if not tail:
            parts.append(rest)
        elif tail == b"--":
            break
        elif parts:  # a longer boundary that begins like this one
            parts[-1] += delimiter + chunk
    return parts


def _decode(body: bytes, encoding: bytes) -> bytes:
    """Undo a transfer encoding; unknown ones are taken as none."""
    if encoding == b"base64":
        return decode_base64(body)
    if encoding == b"quoted-printable":
        return a2b_qp(body)
    return body
