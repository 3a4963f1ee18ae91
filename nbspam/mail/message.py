"""Bytes to fields: what a message says, and where.

Mail comes well-formed, broken, and broken on purpose; all of it is read, nothing raises.
What is wrong with a message is noted as a defect, and defects are evidence too.

Secret: the shape of mail: headers, MIME parts, encodings, and how far to follow them.
"""

import re
from binascii import a2b_qp
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from nbspam.mail.charsets import to_utf8
from nbspam.mail.headers import (
    MAX_BYTES,
    after_envelope,
    content_value,
    decode_base64,
    decode_head,
    decode_value,
    end_of_headers,
    header_lines,
    is_plain,
    looks_like_header,
    telling_headers,
)
from nbspam.mail.html import Html, read_html
from nbspam.mail.origins import HEAD, HEADS, NESTED_HEAD, PART_HEAD

# Limits: far above honest mail, low enough that no message costs more than a blink.
MAX_TEXT = 512 << 10  # of decoded text
MAX_HEADERS = 64 << 10
MAX_PARTS = 500
MAX_DEPTH = 20
MAX_URLS = 1000

_HTML_AT_ONCE = 512 << 10  # bytes that are taken apart together: arrays of more leave the caches

# Two patterns that each begin with a literal: five times as fast as one that does not.
_LINK = re.compile(rb"://[^\s<>\"'()\[\]{}]{1,2000}")
_BARE_LINK = re.compile(rb"www\.[^\s<>\"'()\[\]{}]{1,2000}")
# Full lines only, 45 bytes in 60 characters: anything less could be words to read.  Such a
# line is looked for first: few bytes of text are an M, and single bytes are found quickly.
_FULL_LINE = re.compile(rb"M(?<=\nM)[ -`]{60,61}\n")
_UUENCODED = re.compile(
    rb"^begin [0-7]{3,4} (.{1,200})\n(?:M[ -`]{60,61}\n)++(?:[ -`]{1,61}\n){0,2}+(?:end\n)?",
    re.MULTILINE,
)
_HTML = re.compile(rb"\s*+<(?:html|!doctype html)", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^<>]{1,200}?charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_META_REACH = 1024  # bytes in which HTML must say its charset
# Attached, these are read; other text (tables, calendars, cards) only if shown in place.
_READ_IF_ATTACHED = (b"text/plain", b"text/html", b"text/enriched", b"text/richtext")


class Field(NamedTuple):
    """Text from one place of a message; that of a head has many places (origins.py)."""

    origin: str
    text: bytes  # UTF-8, as it came: not yet in normal form


class Message(NamedTuple):
    """What a message says, place by place, and what is wrong with it."""

    fields: tuple[Field, ...]
    defects: tuple[str, ...]  # sorted


def by_header(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the fields with those of heads cut into names and values that count."""
    for item in fields:
        if item.origin not in HEADS:
            yield item
            continue
        for name, value in header_lines(item.text):
            origins = HEADS[item.origin][name]
            if origins.name is not None:
                yield Field(origins.name, name)
            if origins.value is not None:
                yield Field(origins.value, value)


def parse_message(data: bytes) -> Message:
    """Return the fields of a message; never raises, whatever the bytes are."""
    return parse_messages([data])[0]


def parse_messages(data: Iterable[bytes]) -> list[Message]:
    """Return the fields of messages; their HTML waits for each other, their data do not."""
    messages: list[Message] = []
    readers: list[_Reader] = []
    waiting = 0
    for each in data:
        reader = _Reader()
        reader.read(each)
        readers.append(reader)
        waiting += sum([len(place.text) for place in reader.places])
        if waiting >= _HTML_AT_ONCE:
            messages += _finish(readers)
            readers, waiting = [], 0
    return messages + _finish(readers)


def _finish(readers: list["_Reader"]) -> list[Message]:
    """Return what readers found, their HTML read at once."""
    documents = [place.text for reader in readers for place in reader.places]
    found = iter(read_html(documents))
    return [reader.message(found) for reader in readers]


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


class _Place(NamedTuple):
    """HTML that waits to be read, and before which fields and links what it says belongs."""

    text: bytes
    field: int
    url: int


class _Reader:
    """Reads one message: a stack of parts, a budget of text, and what was found."""

    def __init__(self) -> None:
        self.fields: list[Field] = []
        self.defects: set[str] = set()
        self.facts: set[str] = set()
        self.urls: list[bytes] = []
        self.budget = MAX_TEXT
        self.stack: list[_Part] = []
        self.places: list[_Place] = []

    def message(self, documents: Iterator[Html]) -> Message:
        """Return what was found, in every place what its HTML says: the next documents."""
        # The last first, so that the other places stay where they are.  Places are asked first:
        # no document is taken for which there is none.
        for place, html in reversed(list(zip(self.places, documents, strict=False))):
            texts = [Field("hidden", html.hidden), Field("alt", html.alt)]
            texts = [item for item in texts if item.text.strip()]
            self.fields[place.field : place.field] = [*texts, Field("body", html.visible)]
            self.urls[place.url : place.url] = html.urls + _links(html.visible)
            self.facts.update(html.facts)
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
        start = after_envelope(data)
        if start < len(data) and not looks_like_header(data, start):
            data = data[start:]
            self.defects.add("no-headers")
            self.add_text(data, "", is_html=_HTML.match(data) is not None)
            return
        self.read_part(_Part(data, 0), HEAD, start)
        count = 0
        while self.stack and count < MAX_PARTS:
            part = self.stack.pop()
            self.read_part(part, NESTED_HEAD if part.is_nested else PART_HEAD)
            count += 1
        if self.stack:
            self.defects.add("too-many-parts")
            self.stack.clear()

    def read_part(self, part: _Part, kind: str, start: int = 0) -> None:
        """Read headers and body of a message or of one of its parts."""
        block, body = self.split(part.data, start)
        telling = telling_headers(block)
        subject = telling.pop(b"subject", None)
        if not is_plain(block):
            _, settings = content_value(telling.get(b"content-type", b""))
            block = decode_head(block, _charset(settings))
            subject = telling_headers(block).get(b"subject")
        self.fields.append(Field(kind, block))
        if kind == HEAD and subject is not None:
            # What a subject says, the body might say: its words count as both.  E-038.
            self.fields.append(Field("body", subject))
        self.read_body(body, telling, part)

    def split(self, data: bytes, start: int) -> tuple[bytes, bytes]:
        """Return the headers, each begun by a line feed, and the body.

        A part may begin with the blank line; of some the blank line is missing.
        """
        if data.startswith(b"\n", start):
            return b"\n", data[start + 1 :]
        end = end_of_headers(data, start, MAX_HEADERS)
        # Where all is well it is right there.
        stop = data.find(b"\n\n", max(end - 1, start))
        stop = stop if stop >= 0 else len(data)
        body = stop + 2
        if stop > start + MAX_HEADERS:
            self.defects.add("headers-truncated")
            stop = start + MAX_HEADERS
        if end < stop:
            self.defects.add("no-blank-line")
            stop, body = end - 1, end
        return b"\n" + data[start:stop] if stop >= start else b"", data[body:]

    def read_body(self, body: bytes, content: dict[bytes, bytes], part: _Part) -> None:
        """Read a body of any type: text, parts, a message, or none of these."""
        value = content.get(b"content-type", b"").strip() or part.default_type
        kind, settings = content_value(value)
        encoding, _ = content_value(content.get(b"content-transfer-encoding", b""))
        disposition, more = content_value(content.get(b"content-disposition", b""))
        filename = more.get("filename") or settings.get("name")
        if filename:
            self.fields.append(Field("filename", decode_value(filename)))
        if kind.startswith(b"multipart/"):
            self.read_multipart(body, settings.get("boundary"), kind, part)
        elif kind == b"message/rfc822":
            self.push([_Part(_decode(body, encoding), part.depth + 1, is_nested=True)])
        elif kind.startswith((b"text/", b"message/")) or b"/" not in kind:
            if kind not in _READ_IF_ATTACHED and disposition.startswith(b"attachment"):
                return
            data = self.decode_text(body, encoding)
            is_html = kind == b"text/html" or not (content or _HTML.match(data) is None)
            self.add_text(data, _charset(settings), is_html)

    def read_multipart(
        self, body: bytes, boundary: bytes | None, kind: bytes, part: _Part
    ) -> None:
        """Push the parts of a multipart body; without a boundary it is text."""
        parts, goes_on = _parts(body, boundary) if boundary else ([], False)
        if goes_on:
            self.defects.add("parts-after-end")
        if not parts:
            self.defects.add("no-boundary")
            self.add_text(body, "", is_html=False)
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

    def add_text(self, data: bytes, charset: str, is_html: bool) -> None:
        """Add text to the body, with its links; HTML leaves a place for what it says."""
        if len(data) > self.budget:
            self.defects.add("truncated")
            data = data[: self.budget]
        self.budget -= len(data)
        if is_html and not charset and (meta := _META_CHARSET.search(data[:_META_REACH])):
            charset = meta[1].decode("latin-1")
        text, defect = to_utf8(data, charset)
        if defect is not None:
            self.defects.add(defect)
        if is_html:
            self.places.append(_Place(text, len(self.fields), len(self.urls)))
            return
        if _FULL_LINE.search(text):
            text = _UUENCODED.sub(self.take_uuencoded, text)
        self.urls += _links(text)
        self.fields.append(Field("body", text))

    def take_uuencoded(self, match: re.Match[bytes]) -> bytes:
        """Note the name of a uuencoded file and leave its data out."""
        self.fields.append(Field("filename", match.group(1)))
        return b"\n"


def _links(text: bytes) -> list[bytes]:
    """Return the links that a text shows."""
    return _LINK.findall(text) or _BARE_LINK.findall(text)


def _charset(settings: Mapping[str, bytes]) -> str:
    """Return the charset that a content type's parameters declare, or an empty string."""
    return settings.get("charset", b"").decode("latin-1")


def _parts(body: bytes, boundary: bytes) -> tuple[list[bytes], bool]:
    """Return what stands between the boundary's lines, and whether the end line lies.

    The line that ends all parts may be missing, or be followed by parts all the same.
    """
    delimiter = b"\n--" + boundary.rstrip()
    before, *chunks = (b"\n" + body).split(delimiter)
    part = [before]
    parts: list[list[bytes]] = []
    has_ended = goes_on = False
    for chunk in chunks:
        line, _, rest = chunk.partition(b"\n")
        tail = line.strip()
        if not tail:
            part = [rest]
            parts.append(part)
            goes_on |= has_ended
        elif tail == b"--":
            part = [rest]
            has_ended = True
        else:  # a longer boundary that begins like this one
            part += (delimiter, chunk)
    return [b"".join(part) for part in parts[: MAX_PARTS + 1]], goes_on


def _decode(body: bytes, encoding: bytes) -> bytes:
    """Undo a transfer encoding; unknown ones are taken as none."""
    if encoding == b"base64":
        return decode_base64(body)
    if encoding == b"quoted-printable":
        return a2b_qp(body)
    return body
