"""Finding the parts of a message: its heads, its texts, and how much of them is read.

A part too deep or beyond the limit of parts is read as raw text, not left out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple
from zlib import crc32

from nbspam.charsets import MARKED, CharsetGuess, substituted
from nbspam.mail import headers
from nbspam.mail.headers import PART_BEGINS, PART_ENDS, Field, OpenedMessage, ReadingLimits

_MESSAGES = frozenset((b"message/rfc822", b"message/global", b"message/news"))
_RTF = b"text/rtf"
_BY_SOME = frozenset(
    b"text/%b" % name for name in (b"x-amp-html", b"watch-html", b"enriched", b"richtext")
)
_HTML_TYPES = _BY_SOME | {b"text/html", b"application/xhtml+xml", b"image/svg+xml"}
_CARDS = frozenset(
    b"text/calendar text/x-vcalendar text/vcard text/x-vcard text/directory".split()
)
# Files of these types are text only if they look like it and their names say so, too.
_MEDIA = (b"image/", b"audio/", b"video/", b"font/", b"model/")
_NAMED = {
    b"txt": b"text/plain",
    **dict.fromkeys((b"htm", b"html", b"xhtml", b"xht", b"shtml", b"hta", b"svg"), b"text/html"),
    **dict.fromkeys((b"eml", b"mht", b"mhtml"), b"message/rfc822"),
    **dict.fromkeys((b"ics", b"vcs", b"vcf"), b"text/calendar"),
}
_SNIFFED = 1024  # bytes at the beginning that tell text from binary data
# Control characters that text does not have, and how files in letters begin that are not text:
# PDF, PostScript, RTF, keys and signatures, BinHex.
_BINARY = re.compile(
    rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]|\A(?:%PDF|%!PS|\{\\rt|-----BEGIN|\(This file)"
)
_MAIL = re.compile(rb"(?:From |(?i:received|return-path|delivered-to|mime-version):)")
_FROM_LINES = re.compile(rb"\A(?:>?From .*\n){1,100}(?=[!-9;-~]{1,200}+[ \t]*+:)")  # of an mbox
# Ranks among alternatives; files and other texts, which programs list beside them, have none.
SHOWN_BY_SOME, _HTML_RANK, _PICTURE_RANK, _PLAIN_RANK, NO_RANK = 4, 3, 2, 1, 0
_QUOTED_BYTE = re.compile(rb"=[0-9A-Fa-f]{2}|=\n")
_BASE64_FIRST = re.compile(rb"\A\s*+[A-Za-z0-9+/]{24,}+={0,2}+[ \t]*+(?:\n|\Z)")
_LOOKS_LIKE = ((b"base64", _BASE64_FIRST), (b"quoted-printable", _QUOTED_BYTE))
_PLAIN = (b"", b"7bit", b"8bit", b"binary")
_ENCODINGS = frozenset((*_PLAIN, b"base64", b"quoted-printable", *headers.UUENCODE))
_SOFT_BREAK = re.compile(rb"(?<!\n--) \n(?!>) ?")  # of RFC 3676, with DelSp=yes
# A line that a header on content follows, at once or behind one other line.
_LIKELY_BOUNDARY = re.compile(rb"\n--(.*)\n(?=(?:.+\n)?(?i:content-))")
_NO_HEAD = ""  # of a part beyond a limit, all of which is read as text
_MAX_READINGS = 16  # of parts in a second way, and of winmail.dat; 512 KB count as one more

_Content = dict[bytes, bytes]  # the headers on content


class FoundText(NamedTuple):
    """A text of a message, as it was found."""

    data: bytes  # in its transfer encoding
    encoding: bytes
    charset: str
    is_html: bool
    field: int  # its fields stand before this one
    rank: int  # of alternatives those of the highest rank are shown
    branches: tuple[tuple[int, int], ...]  # choices that it is part of, and its branch in each


class _UnreadPart(NamedTuple):
    """A MIME part that is not yet read."""

    data: bytes
    depth: int  # of nesting
    default_type: bytes = b"text/plain"
    head: str = headers.PART_HEAD  # a key of HEADS, or _NO_HEAD
    branches: tuple[tuple[int, int], ...] = ()


_WHOLE = _UnreadPart(b"", 0, head=headers.HEAD)  # stands for the message itself


class _Body(NamedTuple):
    """The body of a part, and what headers say of it."""

    data: bytes  # in its transfer encoding
    encoding: bytes
    kind: bytes  # the media type
    parameters: Mapping[str, bytes]  # of the media type
    filename: bytes  # decoded, empty if there is none
    part: _UnreadPart

    @property
    def charset(self) -> str:
        """The stated charset, or an empty string."""
        return self.parameters.get("charset", b"").decode("latin-1")

    def decoded(self) -> bytes:
        """Return the data without their transfer encoding."""
        return headers.decode_transfer(self.data, self.encoding)

    def start(self) -> bytes:
        """Return the beginning of the decoded data, which tells text from binary data."""
        return headers.decode_transfer(self.data[:_SNIFFED], self.encoding)


class Parts:
    """The parts of one message; reading never raises."""

    def __init__(self, message: OpenedMessage, limits: ReadingLimits) -> None:
        self.limits = limits
        self.fields: list[Field] = []  # heads, subject and file names, as they were found
        # Which of them have to be decoded, and the charset that a head states for its body.
        self.encoded: list[tuple[int, str]] = []
        self.texts: list[FoundText] = []
        self.choices = 0  # how many there are between alternatives; outer ones first
        self.defects: set[str] = set()
        self.stack: list[_UnreadPart] = []
        self.room = limits.parts  # parts that may still be read
        self.readings = _MAX_READINGS
        # The kind and the data of each document that is to be read, if the limits say so.
        self.documents: list[tuple[str, bytes]] = []
        self.read(message)

    def read(self, message: OpenedMessage) -> None:
        """Read a whole message."""
        if len(message.data) - 1 > self.limits.data:
            message = headers.open_message(ends(message.data[1:], self.limits.data))
            self.defects.add("truncated")
        if not message.has_head:
            data = message.data[1:]
            self.defects.add("no-headers")
            self.add_text(data, headers.looks_like_html(data))
            return
        self.read_part(message, _WHOLE)
        while self.stack:
            part = self.stack.pop()
            if part.head:
                self.read_part(headers.open_part(part.data), part)
            else:  # as HTML, because tags in it would hide nothing otherwise
                text = headers.BASE64_LINES.sub(_decoded_lines, part.data)
                self.add_text(text, True, branches=part.branches)

    def read_part(self, opened: OpenedMessage, part: _UnreadPart) -> None:
        """Read headers and body of a message or of one of its parts."""
        data, stop, body, telling, _, _ = opened
        has_stray_line = body < min(stop + 2, len(data))
        if has_stray_line:
            self.defects.add("no-blank-line")
        block = data[:stop]
        if stop > self.limits.headers + 1:
            self.defects.add("headers-truncated")
            half = self.limits.headers // 2
            tail = block.find(b"\n", stop - half)
            block = block[:half] + (block[tail:] if tail >= 0 else b"")
        _, declared = headers.content_value(telling.get(b"content-type", b""))
        charset = declared.get("charset", b"").decode("latin-1")
        if not headers.is_plain(block):
            self.encoded.append((len(self.fields), charset))
        for name, raw in telling.items():
            if name in headers.ON_CONTENT and raw.find(b"*=") >= 0:
                block = block.replace(raw, headers.without_pieces(raw))
        tagged = telling.get(b"subject", b"")
        subject = headers.SUBJECT_TAGS.sub(b" ", tagged)
        if subject != tagged:  # a filter's verdict is no evidence (E-382)
            block = block.replace(b":" + tagged, b":" + subject)
        self.fields.append(Field(part.head, block))
        if part.head == headers.HEAD:
            # Words of the subject, empty if there is none, are words of the body, too (E-038).
            if not headers.is_plain(subject):
                self.encoded.append((len(self.fields), charset))
                subject = b" " + headers.unfold(subject)
            self.fields.append(Field("body", subject))
        self.read_content(opened, part)
        if has_stray_line and self.readings > 0:
            self.read_longer_head(opened, part)

    def read_content(self, opened: OpenedMessage, part: _UnreadPart) -> None:
        """Read a body by the headers on it, and again by others, as some mail programs do.

        Of two headers of one name some take the first one and others the last.  Data in an unknown
        encoding are shown as they are, or decoded as what they look like.
        """
        body, content = opened.data[opened.body :], opened.telling
        encoding = headers.transfer_encoding(content.get(b"content-transfer-encoding", b""))
        self.read_body(body, content, encoding, part)
        if opened.doubled and self.readings > 0:
            self.defects.add("doubled-header")
            self.readings -= _cost(body)
            last = {**content, **opened.doubled}
            stated = headers.transfer_encoding(last.get(b"content-transfer-encoding", b""))
            self.read_body(body, last, stated, part)
        if encoding not in _ENCODINGS and self.readings > 0:
            self.defects.add("unknown-encoding")
            for likely, pattern in _LOOKS_LIKE:
                if likely in encoding or pattern.search(body):
                    self.readings -= _cost(body)
                    self.read_body(body, content, likely, part)
                    break

    def read_longer_head(self, opened: OpenedMessage, part: _UnreadPart) -> None:
        """Read a body as programs do for which only a blank line ends a head."""
        longer = headers.with_longer_head(opened, self.limits.headers)
        if longer is None:
            return
        before, after = opened.telling, longer.telling
        # No line may stand before these.
        is_strict = b"base64" in after.get(b"content-transfer-encoding", b"").lower() or (
            b"message/" in after.get(b"content-type", b"").lower()
        )
        if is_strict or any(before.get(name) != after.get(name) for name in headers.ON_CONTENT):
            self.readings -= _cost(longer.data)
            self.read_content(longer, part)

    def undeclared(self) -> Iterator[bytes]:
        """Yield the heads and file names in raw bytes, and the texts, that have no charset."""
        for place, charset in self.encoded:
            field = self.fields[place]
            if not charset and field.origin != "body":  # a subject is in its head, too
                yield field.text
        yield from self.undeclared_texts()

    def undeclared_texts(self) -> Iterator[bytes]:
        """Yield the texts that have no charset."""
        # Theirs is guessed from nothing else: messages of one digest have to be read alike.
        for text in self.texts:
            if not text.charset:
                yield headers.decode_transfer(text.data, text.encoding)

    def decode_fields(self, guess: CharsetGuess) -> None:
        """Decode heads, subject and file names; guess: of the charset of the message."""
        for place, charset in self.encoded:
            if not charset:
                # The first text may declare the charset that the head of a multipart does not.
                charset = next((text.charset for text in self.texts if text.charset), "")
            origin, text = self.fields[place]
            decoded = headers.decode_head if origin in headers.HEADS else headers.decode_value
            self.fields[place] = Field(origin, decoded(text, charset, guess))

    def read_body(
        self, data: bytes, content: _Content, encoding: bytes, part: _UnreadPart
    ) -> None:
        """Read a body of any type: text, parts, a message, or something that is not read."""
        stated, parameters = headers.content_value(content.get(b"content-type", b""))
        kind = stated or part.default_type
        disposition, more = headers.content_value(content.get(b"content-disposition", b""))
        filename = more.get("filename") or parameters.get("name") or b""
        if filename:
            if not headers.is_plain(filename):
                self.encoded.append((len(self.fields), ""))
            self.fields.append(Field("filename", filename))
        body = _Body(data, encoding, kind, parameters, headers.decode_value(filename), part)
        if kind.startswith(b"multipart/"):
            self.read_multipart(body)
            return
        is_text = kind != _RTF and (kind.startswith((b"text/", b"message/")) or b"/" not in kind)
        is_shown = not disposition.startswith(b"attachment")
        if not is_text or filename or not is_shown:
            self.add_file(body)
        if not is_text:
            if part.branches and is_shown and kind.startswith(b"image/"):
                # A picture that is shown instead of plain text: it has no words.
                self.add_text(b"", False, rank=_PICTURE_RANK, branches=part.branches)
            if inner := self.unwrapped(body):
                self.push([_UnreadPart(each, part.depth + 1) for each in inner])
                return
            kind = _type_of_file(body)
        if kind in _MESSAGES:
            message = _FROM_LINES.sub(b"", headers.with_line_feeds(body.decoded()))
            self.push([_UnreadPart(message, part.depth + 1, head=headers.NESTED_HEAD)])
        elif kind in _CARDS:
            self.read_card(body)
        elif kind:
            if part.depth:
                self.read_unclaimed(data, part)
            is_html = kind in _HTML_TYPES or (
                headers.ON_CONTENT.isdisjoint(content) and headers.looks_like_html(data)
            )
            rank = NO_RANK
            if is_text and is_shown and (is_html or kind == b"text/plain"):
                rank = _HTML_RANK if is_html else _PLAIN_RANK
                rank = SHOWN_BY_SOME if kind in _BY_SOME else rank
            branches = part.branches if rank else ()
            if parameters.get("delsp", b"").lower() == b"yes" and not is_html:
                text = headers.with_line_feeds(body.decoded())
                data, encoding = substituted(_SOFT_BREAK, b"", text), b""
            self.add_text(data, is_html, encoding, body.charset, rank, branches)

    def unwrapped(self, body: _Body) -> list[bytes]:
        """Return the MIME parts inside signed mail, RTF or winmail.dat; none of any other file."""
        from nbspam.mail import wrappings  # late, as all that few messages need

        if body.kind in wrappings.SIGNED or body.filename.lower().endswith(b".p7m"):
            content = wrappings.cms_content(body.decoded())
            return [headers.with_line_feeds(content)] if content else []
        start = body.start()
        is_rtf = body.kind == _RTF and start.startswith(b"{\\rt")
        if is_rtf or start.startswith(wrappings.TNEF):
            if self.readings > 0:
                self.readings -= 1
                data = body.decoded()
                return wrappings.rtf_parts(data) if is_rtf else wrappings.tnef_parts(data)
            self.defects.add("too-many-parts")
        return []

    def add_file(self, body: _Body) -> None:
        """Add facts about an attached file; a document is to be read later."""
        from nbspam.mail import attachments

        length = len(body.data)
        is_signature = body.kind in attachments.SIGNATURES and length < attachments.MAX_SIGNATURE
        if is_signature or body.kind.startswith(b"message/"):
            return
        most = attachments.MAX_FILE
        data = headers.decode_transfer(body.data[: 2 * most], body.encoding)
        size = len(data) * length // max(min(length, 2 * most), 1)  # the rest shrinks alike
        file = attachments.look_at_file(body.kind, body.filename, data[:most], size)
        self.fields.append(Field("file", " ".join(file.facts).encode()))
        if not self.limits.documents:
            return
        if file.names:
            self.encoded.append((len(self.fields), ""))
            self.fields.append(Field("attached", b"\n".join(file.names)))
        is_enough = size <= most or file.kind in attachments.NEED_NO_END
        if file.kind in attachments.DOCUMENTS and is_enough:
            self.documents.append((file.kind, data[:most]))

    def read_card(self, body: _Body) -> None:
        """Read an invitation or a card, which mail programs show beside the alternatives."""
        from nbspam.mail.wrappings import card_texts

        text, html = card_texts(ends(body.decoded(), self.limits.source))
        self.add_text(text, False, charset=body.charset)
        if html:
            self.add_text(html, True, charset=body.charset)

    def add_text(
        self,
        data: bytes,
        is_html: bool,
        encoding: bytes = b"",
        charset: str = "",
        rank: int = NO_RANK,
        branches: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Add a text that stands after the fields found so far."""
        field = len(self.fields)
        self.texts.append(FoundText(data, encoding, charset, is_html, field, rank, branches))

    def read_multipart(self, body: _Body) -> None:
        """Push the parts of a multipart body; without a boundary read it as text."""
        part, stated = body.part, body.parameters.get("boundary")
        bodies, outside, goes_on = _bodies(body.data, stated)
        if not bodies and body.encoding not in _PLAIN:  # forbidden, and decoded by some
            data = headers.with_line_feeds(body.decoded())
            bodies, outside, goes_on = _bodies(data, stated)
        if not bodies:
            line = _LIKELY_BOUNDARY.search(b"\n" + body.data)
            if line:
                bodies, outside, goes_on = _bodies(body.data, line[1])
            if stated is not None or not line:
                self.defects.add("no-boundary")
        if goes_on:
            self.defects.add("parts-after-end")
        if not bodies:
            self.add_text(body.data, False, branches=part.branches)
            return
        self.read_unclaimed(outside, part)
        self.push_parts(bodies, body.kind, part)

    def read_unclaimed(self, text: bytes, part: _UnreadPart) -> None:
        """Read the parts in a text that is one part, or stands before or behind the parts.

        Some programs split it, because they take more lines for boundaries than the ones stated:
        longer ones, as RFC 2046 says, or those of a second parameter.
        """
        text = b"\n" + text
        if text.find(b"\n--") < 0 or self.readings <= 0:  # `find` takes less time
            return
        if bodies := _LIKELY_BOUNDARY.split(text)[2::2]:
            self.readings -= _cost(text)
            self.push_parts(bodies, b"multipart/mixed", part._replace(branches=()))

    def push_parts(self, bodies: list[bytes], kind: bytes, part: _UnreadPart) -> None:
        """Push the parts of a multipart.

        It gets at most half of the parts that may still be read, so that no multipart takes all;
        the others are read together, as raw text.
        """
        default = b"message/rfc822" if kind == b"multipart/digest" else b"text/plain"
        taken = spread_indices(bodies, self.room // 2)
        self.room -= len(taken)
        inside = _UnreadPart(b"", part.depth + 1, default, branches=part.branches)
        parts = [inside._replace(data=bodies[i]) for i in taken]
        if len(taken) < len(bodies):
            self.defects.add("too-many-parts")
            gaps = pairwise((-1, *taken, len(bodies)))
            rest = b"\n\n".join([b"\n\n".join(bodies[i + 1 : j]) for i, j in gaps if j > i + 1])
            parts.append(inside._replace(data=rest, head=_NO_HEAD))
        if len(parts) > 1 and kind == b"multipart/alternative":
            parts = [
                each._replace(branches=(*part.branches, (self.choices, i)))
                for i, each in enumerate(parts)
            ]
            self.choices += 1
        self.push(parts)

    def push(self, parts: list[_UnreadPart]) -> None:
        """Put parts on the stack, the first part on top; parts too deep as raw text."""
        if parts[0].depth > self.limits.depth:
            self.defects.add("too-deep")
            parts = [part._replace(head=_NO_HEAD) for part in parts]
        self.stack.extend(reversed(parts))


def _type_of_file(body: _Body) -> bytes:
    """Return the type that an attachment is read as; nothing if it is not text.

    Its declared type is not one of text.
    """
    if body.kind in _HTML_TYPES:
        return body.kind
    named = _NAMED.get(body.filename.rpartition(b".")[2].strip().lower())
    if named is None and body.kind.startswith(_MEDIA):
        return b""
    sample = body.start()
    # Browsers show a page whatever it begins with; other texts may be in UTF-16.
    if named == b"text/html" or (named and sample.startswith(MARKED)):
        return named
    if not sample.strip() or _BINARY.search(sample):
        return b""
    if named is None and _MAIL.match(sample):
        return b"message/rfc822"
    return named or (b"text/html" if headers.looks_like_html(sample) else b"text/plain")


def _decoded_lines(match: re.Match[bytes]) -> bytes:
    """Return decoded lines of base64, or a line feed if they are not text."""
    data = headers.decode_base64(match[0])
    return b"\n" if _BINARY.search(data) else data + b"\n"


def _bodies(body: bytes, boundary: bytes | None) -> tuple[list[bytes], bytes, bool]:
    """Return the parts, what stands before and behind them, and if parts follow an end line."""
    if boundary is None:
        return [], b"", False
    kinds, texts = headers.delimited(body, boundary)
    parts = [text for kind, text in zip(kinds, texts[1:], strict=True) if kind == PART_BEGINS]
    behind = [text for kind, text in zip(kinds, texts[1:], strict=True) if kind == PART_ENDS]
    goes_on = PART_ENDS in kinds and PART_BEGINS in kinds[kinds.index(PART_ENDS) :]
    return parts, b"\n".join([texts[0], *behind]), goes_on


def _cost(body: bytes) -> int:
    """Return how many readings it counts as to read a body again."""
    return 1 + (len(body) >> 19)  # reading 16 MB 16 times would take a minute


# --- how much of a long message is read ------------------------------------------------------

# Most messages are read whole.  Of a longer one every part has a share: its beginning, its end and
# many small pieces between.  The pieces are spread evenly, so no stretch of text longer than two
# of their distances is left out, and each stands at a place that a checksum of the text decides.
# A spammer can compute the places and put a little between them, but not the text of an offer.

_PIECE = 512  # bytes of a piece from the middle of a text
_REACH = 64  # bytes in which a piece begins or ends at a blank
_MAX_STYLE = 64 << 10  # bytes of a style sheet
# Text that takes no room on a screen.  It is dropped before a long text is sampled, because
# otherwise it would be sampled in place of visible text.  All patterns take linear time.
_BLANKS = re.compile(rb"\s\s++")
_BLANK = re.compile(rb"[ \n]")
_NO_WORD = re.compile(rb"(?<![^\s<>\x80-\xff])[^\s<>\x80-\xff]{256,}+")  # encoded data, mostly
_UNSEEN = re.compile(  # of a script `<` is left, of a style sheet its beginning
    rb"<!--.*?(?:--!?>|\Z)|(<)(?i:script)\b.*?(?:</(?i:script)|\Z)"
    rb"|(<(?i:style)\b.*?)(?=</(?i:style)|\Z)",
    re.DOTALL,
)
_BRACKET = re.compile(rb"[<>]")
_BETWEEN_HTML = b"<\n"  # ends a tag that a piece of HTML leaves open, and begins none


def ends(data: bytes, most: int) -> bytes:
    """Return at most `most` bytes: three quarters from the beginning, the rest from the end."""
    if len(data) <= most:
        return data
    head = most - most // 4
    # From the start of a line, because the end of encoded data must begin with a line of it.
    tail = max(data.find(b"\n", len(data) - most // 4) + 1, len(data) - most // 4)
    return data[:head] + data[tail:]


def spread_indices(pieces: Sequence[bytes], most: int) -> list[int]:
    """Return the indices of at most `most` pieces: the first, the last and some of the others.

    The others are those in which evenly spread places of all their bytes lie, so that a large
    piece is chosen before small ones.
    """
    if len(pieces) <= most:
        return list(range(len(pieces)))
    last = most // 4
    first = min(last + 1, most)
    between = [len(piece) + 1 for piece in pieces[first : len(pieces) - last]]
    seed = 0
    for piece in pieces:  # joining them takes 80 bytes for each
        seed = crc32(piece, seed)
    bounds = list(accumulate(between))
    spots = _spots(bounds[-1], most - first - last, seed)
    middle = {first + bisect_right(bounds, spot) for spot in spots}
    return [*range(first), *sorted(middle), *range(len(pieces) - last, len(pieces))]


def shared(texts: Sequence[bytes], are_html: Sequence[bool], budget: int) -> list[bytes]:
    """Return texts of at most `budget` bytes in all, by shortening the long ones."""
    condensed = list(map(_condensed, texts, are_html))
    shares = granted_shares(list(map(len, condensed)), budget)
    return list(map(sampled, condensed, shares, are_html))


def granted_shares(sizes: Sequence[int], budget: int) -> list[int]:
    """Return the bytes granted to each text: all to small ones, equal shares to the others."""
    granted = [0] * len(sizes)
    by_size = sorted(range(len(sizes)), key=sizes.__getitem__)
    for rank, i in enumerate(by_size):
        granted[i] = min(sizes[i], budget // (len(sizes) - rank))
        budget -= granted[i]
    return granted


def _condensed(text: bytes, is_html: bool) -> bytes:
    """Return a text without parts that take no room on a screen, such as long runs of blanks."""
    if is_html:
        text = _without_unseen(text).replace(b"&nbsp;", b" ")
    return substituted(_BLANKS, b"\n", _NO_WORD.sub(b" ", text))


def _without_unseen(html: bytes) -> bytes:
    """Return HTML without comments and scripts, and with style sheets of a limited size."""
    kept, done = bytearray(), 0  # joining pieces takes 80 bytes for each
    for match in _UNSEEN.finditer(html):
        kept += html[done : match.start()] + (match[1] or match[2] or b"")[:_MAX_STYLE]
        done = match.end()
    return bytes(kept + html[done:])


def sampled(text: bytes, most: int, is_html: bool = False) -> bytes:
    """Return at most about `most` bytes of a text in UTF-8: see above.

    A quarter is from the beginning, and a quarter from the end.
    """
    if len(text) <= most:
        return text
    count = most // 2 // _PIECE
    end = most // 4 if count else most // 2
    head = most - end - count * _PIECE
    spots = _spots(len(text) - head - end - _PIECE, count, crc32(text))
    bounds = [(0, head), *((head + spot, head + spot + _PIECE) for spot in spots)]
    bounds.append((len(text) - end, len(text)))
    pieces = [_piece(text, start, stop, is_html) for start, stop in bounds]
    return (_BETWEEN_HTML if is_html else b"\n").join(pieces)


def _spots(size: int, count: int, seed: int) -> Iterator[int]:
    """Yield one place in each of `count` equal stretches of `size` bytes."""
    for i in range(count):
        start, stop = i * size // count, (i + 1) * size // count
        yield start + crc32(i.to_bytes(4, "big"), seed) % max(stop - start, 1)


def _piece(text: bytes, start: int, stop: int, is_html: bool) -> bytes:
    """Return text[start : stop] without the parts of words, characters and tags at its ends."""
    if start:
        word = _BLANK.search(text, start, min(start + _REACH, stop))
        start = word.end() if word else start
        while start < stop and text[start] & 0xC0 == 0x80:  # within a character
            start += 1
        bracket = _BRACKET.search(text, start, stop) if is_html else None
        if bracket and bracket[0] == b">":
            start = bracket.end()
    if stop < len(text):
        blank = max(text.rfind(b" ", stop - _REACH, stop), text.rfind(b"\n", stop - _REACH, stop))
        stop = blank if blank > start else stop
        while stop > start and text[stop] & 0xC0 == 0x80:
            stop -= 1
    return text[start:stop]
