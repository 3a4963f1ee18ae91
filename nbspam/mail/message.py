"""Parsing messages: from bytes to fields, the texts of a message by their origin.

Mail may be well-formed, broken, or broken on purpose; all of it is parsed, and nothing
raises.  Errors in a message are noted as defects, which are evidence, too.

Secret: the structure of mail: headers, MIME parts, encodings, and how far to follow them.
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

# Bytes of HTML that are parsed together; the arrays for more would not fit the caches.
_HTML_AT_ONCE = 512 << 10

# Two patterns that begin with a literal are five times as fast as one that does not.
_LINK = re.compile(rb"://[^\s<>\"'()\[\]{}]{1,2000}")
_BARE_LINK = re.compile(rb"www\.[^\s<>\"'()\[\]{}]{1,2000}")
# Uuencoded data must have full lines, of 45 bytes in 60 characters: shorter ones could be words.
# Such a line is searched first, because single bytes are found quickly and M is rare.
_FULL_LINE = re.compile(rb"M(?<=\nM)[ -`]{60,61}\n")
_UUENCODED = re.compile(
    rb"^begin [0-7]{3,4} (.{1,200})\n(?:M[ -`]{60,61}\n)++(?:[ -`]{1,61}\n){0,2}+(?:end\n)?",
    re.MULTILINE,
)
_HTML = re.compile(rb"\s*+<(?:html|!doctype html)", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^<>]{1,200}?charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_META_REACH = 1024  # bytes in which HTML must declare its charset
# These types are read even as attachments; other text (tables, calendars, cards) only inline.
_READ_IF_ATTACHED = (b"text/plain", b"text/html", b"text/enriched", b"text/richtext")


class Limits(NamedTuple):
    """How much of a message is read: far more than honest mail has, and never slow."""

    data: int = MAX_BYTES  # bytes of the message
    text: int = 512 << 10  # bytes of decoded text
    headers: int = 64 << 10  # bytes of one head
    parts: int = 500
    depth: int = 20  # of nested parts
    urls: int = 1000


LIMITS = Limits()


class Field(NamedTuple):
    """A text of a message and its origin; a whole head is one field (see `origins`)."""

    origin: str  # one of `origins.ORIGINS`, or a key of `origins.HEADS`
    text: bytes  # UTF-8, not normalised


class Message(NamedTuple):
    """The fields of a message, and its defects."""

    fields: tuple[Field, ...]
    defects: tuple[str, ...]  # sorted


def by_header(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the fields, with heads split into the names and values that count."""
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


def parse_message(data: bytes, limits: Limits = LIMITS) -> Message:
    """Return the fields of a message; never raises."""
    return parse_messages([data], limits)[0]


def parse_messages(
    data: Iterable[bytes], limits: Limits = LIMITS, html_at_once: int = _HTML_AT_ONCE
) -> list[Message]:
    """Return the fields of messages; never raises.

    The HTML of several messages is parsed together, about `html_at_once` bytes of it.
    """
    messages: list[Message] = []
    readers: list[_Reader] = []
    waiting = 0
    for each in data:
        reader = _Reader(limits)
        reader.read(each)
        readers.append(reader)
        waiting += sum([len(place.text) for place in reader.places])
        if waiting >= html_at_once:
            messages += _finish(readers)
            readers, waiting = [], 0
    return messages + _finish(readers)


def _finish(readers: list["_Reader"]) -> list[Message]:
    """Return the messages of readers, after parsing the HTML of all of them at once."""
    documents = [place.text for reader in readers for place in reader.places]
    found = iter(read_html(documents))
    return [reader.message(found) for reader in readers]


def plain_text(data: bytes) -> Message:
    """Return a text that is not mail, such as a table's cell, as a message of one field."""
    text, defect = to_utf8(data[: LIMITS.text], None)
    return Message((Field("body", text),), () if defect is None else (defect,))


class _Part(NamedTuple):
    """A MIME part that is not yet read."""

    data: bytes
    depth: int  # of nesting
    default_type: bytes = b"text/plain"
    is_nested: bool = False  # an attached message


class _Place(NamedTuple):
    """HTML that is not yet parsed, and the place of its text among fields and links."""

    text: bytes
    field: int  # insert its fields before this one
    url: int  # insert its links before this one


class _Reader:
    """The parser of one message: its stack of parts, its budget of text, and its results."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.fields: list[Field] = []
        self.defects: set[str] = set()
        self.facts: set[str] = set()
        self.urls: list[bytes] = []
        self.budget = limits.text
        self.stack: list[_Part] = []
        self.places: list[_Place] = []

    def message(self, documents: Iterator[Html]) -> Message:
        """Return the message, its HTML replaced by the next parsed documents."""
        # Places come first in zip, so that no document is taken too many.  Insert from the end,
        # so that earlier positions stay valid.
        for place, html in reversed(list(zip(self.places, documents, strict=False))):
            texts = [Field("hidden", html.hidden), Field("alt", html.alt)]
            texts = [item for item in texts if item.text.strip()]
            self.fields[place.field : place.field] = [*texts, Field("body", html.visible)]
            self.urls[place.url : place.url] = html.urls + _links(html.visible)
            self.facts.update(html.facts)
        if self.urls:
            self.fields.append(Field("url", b"\n".join(self.urls[: self.limits.urls])))
        for origin, words in (("html", self.facts), ("defect", self.defects)):
            if words:
                self.fields.append(Field(origin, " ".join(sorted(words)).encode()))
        return Message(tuple(self.fields), tuple(sorted(self.defects)))

    def read(self, data: bytes) -> None:
        """Read a whole message."""
        if len(data) > self.limits.data:
            data = data[: self.limits.data]
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
        while self.stack and count < self.limits.parts:
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
            # Words of the subject count as words of the body, too (E-038).
            self.fields.append(Field("body", subject))
        self.read_body(body, telling, part)

    def split(self, data: bytes, start: int) -> tuple[bytes, bytes]:
        """Return the headers, each preceded by a line feed, and the body.

        A part may begin with the blank line, or have none.
        """
        if data.startswith(b"\n", start):
            return b"\n", data[start + 1 :]
        end = end_of_headers(data, start, self.limits.headers)
        # In a well-formed message the blank line is right there.
        stop = data.find(b"\n\n", max(end - 1, start))
        stop = stop if stop >= 0 else len(data)
        body = stop + 2
        if stop > start + self.limits.headers:
            self.defects.add("headers-truncated")
            stop = start + self.limits.headers
        if end < stop:
            self.defects.add("no-blank-line")
            stop, body = end - 1, end
        return b"\n" + data[start:stop] if stop >= start else b"", data[body:]

    def read_body(self, body: bytes, content: dict[bytes, bytes], part: _Part) -> None:
        """Read a body of any type: text, parts, a message, or something that is not read."""
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
        """Push the parts of a multipart body; without a boundary read it as text."""
        parts: list[bytes] = []
        goes_on = False
        if boundary:
            parts, goes_on = _parts(body, boundary, self.limits.parts + 1)
        if goes_on:
            self.defects.add("parts-after-end")
        if not parts:
            self.defects.add("no-boundary")
            self.add_text(body, "", is_html=False)
            return
        default = b"message/rfc822" if kind == b"multipart/digest" else b"text/plain"
        self.push([_Part(data, part.depth + 1, default) for data in parts])

    def push(self, parts: list[_Part]) -> None:
        """Put parts on the stack, the first part on top."""
        if parts[0].depth > self.limits.depth:
            self.defects.add("too-deep")
        else:
            self.stack.extend(reversed(parts))

    def decode_text(self, body: bytes, encoding: bytes) -> bytes:
        """Undo a transfer encoding, as far as the budget of text reaches."""
        most = 4 * self.budget + 4
        if len(body) > most:
            self.defects.add("truncated")
            body = body[:most]
        return _decode(body, encoding)

    def add_text(self, data: bytes, charset: str, is_html: bool) -> None:
        """Add text and its links to the message; for HTML note the place to insert them."""
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
        """Add the name of a uuencoded file, and return what replaces its data."""
        self.fields.append(Field("filename", match.group(1)))
        return b"\n"


def _links(text: bytes) -> list[bytes]:
    """Return the links in a text."""
    return _LINK.findall(text) or _BARE_LINK.findall(text)


def _charset(settings: Mapping[str, bytes]) -> str:
    """Return the charset in a content type's parameters, or an empty string."""
    return settings.get("charset", b"").decode("latin-1")


def _parts(body: bytes, boundary: bytes, most: int) -> tuple[list[bytes], bool]:
    """Return at most `most` parts between boundary lines, and if parts follow the end line.

    The end line may be missing.
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
    return [b"".join(part) for part in parts[:most]], goes_on


def _decode(body: bytes, encoding: bytes) -> bytes:
    """Undo a transfer encoding; data in an unknown one are returned unchanged."""
    if encoding == b"base64":
        return decode_base64(body)
    if encoding == b"quoted-printable":
        return a2b_qp(body)
    return body
