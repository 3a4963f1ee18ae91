"""Headers: which ones are evidence, and the many encodings of a value.

A head is kept as one field of lines `name: value`, each preceded by a line feed; a line that
begins with a blank continues the one before.  Values are folded, hold words of RFC 2047,
parameters of RFC 2231 or bytes beyond ASCII.
"""

import re
from binascii import Error, a2b_base64, a2b_qp, a2b_uu
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from nbspam.charsets import ESCAPE, NO_GUESS, CharsetGuess, is_utf8, substituted, to_utf8
from nbspam.printing import printable

# Bytes of a message that are read, attachments included.  Defined here and not in `message`, as
# HeaderChoices is, because `filter` must pass mail through even if numpy cannot be imported.
MAX_BYTES = 16 << 20
# Bytes of a head in which a Message-ID is looked for, and characters of it that are told.
_ID_WITHIN, _MAX_ID = 1 << 16, 998
# It begins with one character that all matches have, which the search finds fast.
_ID_OR_END = re.compile(rb"\n(?:[Mm](?i:essage-id)[ \t]*+:((?:[^\n]|\n[ \t])*+)|\n)")
_LINE_FEED = re.compile(rb"\n(?![ \t])")
# The headers on content, the subject and the Message-ID (the first letter alone rules out most
# lines), or the end of the head: a line that is not a header.
_TELLING_OR_END = re.compile(
    rb"\n(?:([CcMmSs](?i:ontent-(?:type|transfer-encoding|disposition)|essage-id|ubject))[ \t]*+:"
    rb"(.*+(?:\n[ \t].*+)*+)|(?![ \t]|[!-9;-~]{1,200}+[ \t]*+:))"
)
# Python before 3.11.5 does not undo the partial match of a possessive group.  So a group that can
# match in part is greedy, and bounded, because each repetition takes memory; or its last
# alternative is `(?!)`, which never matches, and is tried where the repetition began.
_ENVELOPE = re.compile(rb"\n*+(?:>?From .*\n){0,100}\n*+")
_FIRST_LINE = re.compile(rb"[!-9;-~]{1,200}+[ \t]*+:")
# The text may contain question marks, though RFC 2047 forbids them, but no start of another word;
# a few, because the pattern keeps its place at each.
_WORD = re.compile(
    rb"=\?([^?\s]{0,60})[ \t]*+\?([bBqQ])\?([^?]*+(?:(?<!=)\?(?!=)[^?]*+){0,99})\?="
)
_PARAMETER = re.compile(
    rb"[;\s]([a-zA-Z][\w.-]*+(?:\*\d{0,3}\*?)?)\s*+=\s*+"
    rb"(?:\"([^\"\\]*+(?:\\.[^\"\\]*+)*+)|([^\s;\"]*+))"
)
# Tags that filters put before a subject: [SPAM], ***SPAM***, ???UNSURE???, {Spam?},
# *****SPAM(7.5)*****.  [Ham radio] is a list's.
SUBJECT_TAGS = re.compile(
    rb"^(?:\s*+[\[({*?]{1,9}\s?(?:probably |possible |suspected )?"
    rb"(?:spam|junk|unsure|bulk|ham(?=[\])}*?]))\b[^\])}*?\n]{0,20}[\])}*?]{1,9}){1,100}\s*+",
    re.IGNORECASE,
)
QUOTED_PAIR = re.compile(rb"\\(.)")
_COMMENTS = re.compile(rb"\([^()]*+\)|[\"']")
_HTML = re.compile(rb"\s*+<(?:html|!doctype html)", re.IGNORECASE)
BASE64_LINES = re.compile(rb"(?:^[A-Za-z0-9+/]{24,}+={0,2}\n?){1,9999}", re.MULTILINE)
_BASE64_RUN, _TAIL = re.compile(rb"[A-Za-z0-9+/=\s]*+"), 200  # bytes at the end
# So much text is not what a footer decodes to.
_TEXT = re.compile(rb"(?:[\0\s -~]|[\xc3-\xf4][\x80-\xbf]{1,3}){16}")
_SOFT_BREAK = re.compile(rb"=[ \t]++\n")  # with blanks, which some server has added
UUENCODE = (b"x-uuencode", b"uuencode", b"x-uue", b"uue")
# As numbers, and longer ones by `find`: `in` first tries to take bytes for a number, which costs
# more than a search does.
CR, _EQUALS, _QUESTION = b"\r=?"
PART_BEGINS, PART_ENDS = 1, 2  # effects of a boundary line: it begins a part, or ends the last one
_EFFECT_BY_END = {b"": PART_BEGINS, b"--": PART_ENDS}
_MAX_VALUE = 500  # bytes of a value that is remembered
_MAX_CONTENT = 8 << 10  # bytes of a header on content; what it says is remembered, too
_MAX_COMMENTED = 256 << 10  # the same with its comments
_MAX_PADS = 100  # runs of base64 text, each ended by padding, that are decoded


class ReadingLimits(NamedTuple):
    """How much of a message is read: far more than legitimate mail has, and never slow."""

    data: int = MAX_BYTES  # bytes of the message
    source: int = 2 << 20  # bytes of decoded text with its markup
    text: int = 512 << 10  # bytes of text that is shown, and of text that is hidden
    headers: int = 64 << 10  # bytes of one head
    parts: int = 500
    depth: int = 20  # of nested parts
    urls: int = 1000
    documents: int = 0  # milliseconds of processor time on attached documents


LIMITS = ReadingLimits()


class HeaderChoices(NamedTuple):
    """The headers to write into a message besides our own."""

    bogosity: bool = False  # bogofilter's header
    spam_status: bool = False  # SpamAssassin's headers
    subject_tag: str | None = None  # put before the subject of spam
    explain: bool = False  # our header that explains the verdict
    learned: str | None = None  # the class as which the message is learned; see `sure_label`


# --- which headers are evidence --------------------------------------------------------------

# Headers that filters, mailboxes and archives add describe the handling of a message, not
# the message: both their names and their values are ignored.
_ADDED_LATER = frozenset(
    b"status x-status x-keywords content-length lines delivered-to x-original-to xref path"
    b" replied forwarded x-content-length x-from-line x-tuid x-offlineimap x-account-key".split()
)
_ADDED_BEGINNINGS = tuple(
    b"x-spam x-bogosity x-nbspam x-dspam x-crm114 x-rspamd x-virus x-amavis x-mailscanner x-pstn"
    b" x-barracuda x-ham x-junk x-bayes x-mozilla x-uid x-imap x-gmail x-gmane x-evolution nntp-"
    b" x-folder x-label x-gm-thrid x-envelope x-quarantine x-rmail x-gnus x-vm- x-kmail".split()
)
ON_CONTENT = frozenset((b"content-type", b"content-transfer-encoding", b"content-disposition"))
_OF_PART = dict.fromkeys(sorted(ON_CONTENT), "mime")
_OF_NESTED = {b"subject": "nested", b"from": "nested", **_OF_PART}
_OF_MESSAGE = {
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
    **_OF_PART,
}
# All origins; first the ones that are not from headers.
ORIGINS = (
    *("body", "rest", "hidden", "alt", "url", "html", "filename", "defect", "file", "attached"),
    *("header", "people", "auth", "signs"),
    *dict.fromkeys((*_OF_MESSAGE.values(), *_OF_NESTED.values())),
)


class Field(NamedTuple):
    """A text of a message and its origin; a whole head is one field, of a key of HEADS."""

    origin: str  # one of ORIGINS, or a key of HEADS
    text: bytes  # UTF-8, not normalised


HEAD, PART_HEAD, NESTED_HEAD = "head", "part-head", "nested-head"
# Kinds of heads: the origins of values, by lower-case name, and the origin of all names.  Only in
# the head of a message are the names of headers evidence, too.
HEADS: dict[str, tuple[dict[bytes, str], str | None]] = {
    HEAD: (_OF_MESSAGE, "header"),
    PART_HEAD: (_OF_PART, None),
    NESTED_HEAD: (_OF_NESTED, None),
}


def origins_of(kind: str, raw: bytes) -> tuple[str | None, str | None]:
    """Return the origins of a header's name and of its value; None for one that is ignored.

    kind: of the head, a key of HEADS.  raw: the name as it is written.
    """
    name = raw.rstrip(b" \t").lower()
    if name in _ADDED_LATER or name.startswith(_ADDED_BEGINNINGS):
        return None, None
    of_values, of_names = HEADS[kind]
    return of_names, of_values.get(name)


# --- heads and bodies ------------------------------------------------------------------------


def looks_like_header(data: bytes, start: int = 0) -> bool:
    """Return whether there is a header line at `start`."""
    return _FIRST_LINE.match(data, start) is not None


def looks_like_html(data: bytes) -> bool:
    """Return whether text begins like an HTML document."""
    return _HTML.match(data) is not None


class OpenedMessage(NamedTuple):
    """A message, or a part of one, whose head was walked once for all readers.

    A blank line ends a head, and so does any other line that is not a header, as it does for mail
    servers; the body begins with that line then.
    """

    data: bytes  # a line feed and the message, whose lines end in line feeds
    stop: int  # where the head ends
    body: int  # where the body begins
    # The raw values of the subject, the Message-ID and the headers on content, by lower-case
    # names; of several headers of one name the first.
    telling: dict[bytes, bytes]
    doubled: dict[bytes, bytes]  # the last values on content, where they are other values
    has_head: bool = True

    @property
    def head(self) -> bytes:
        """The headers, each after a line feed."""
        return self.data[: self.stop]


def open_message(data: bytes) -> OpenedMessage:
    """Return a message as its readers take it, without From_ lines and the CRs of line ends."""
    data = with_line_feeds(data).removeprefix(BOM_UTF8)  # which editors leave in files
    # The pattern always matches, because it matches nothing, too.
    start = _ENVELOPE.match(data).end()  # type: ignore[union-attr]
    if start == len(data) or looks_like_header(data, start):
        return open_part(data[start:])
    return OpenedMessage(b"\n" + data[start:], 0, 1, {}, {}, has_head=False)


def open_part(data: bytes) -> OpenedMessage:
    """Return a part of a message; data: its lines end in line feeds."""
    data = b"\n" + data
    telling: dict[bytes, bytes] = {}
    doubled: dict[bytes, bytes] = {}
    for match in _TELLING_OR_END.finditer(data):
        name, value = match.groups()
        if name is None:
            stop, body = match.span()
            body += data.startswith(b"\n", body)
            return OpenedMessage(data, stop, body, telling, doubled)
        name = name.lower()
        if len(value) > _MAX_CONTENT and name.startswith(b"content-"):
            value = _COMMENTS.sub(b" ", value[:_MAX_COMMENTED])
            value = b" ".join(value.split())[:_MAX_CONTENT]
        if telling.setdefault(name, value) != value and name.startswith(b"content-"):
            doubled[name] = value
    return OpenedMessage(data, len(data), len(data), telling, doubled)


def with_longer_head(message: OpenedMessage, most: int) -> OpenedMessage | None:
    """Return a part as programs open it for which only a blank line ends a head.

    They skip lines that are no headers.  None if no blank line follows within `most` bytes.
    """
    data, stop = message.data, message.stop
    end = data.find(b"\n\n", stop, stop + most)
    if end < 0:
        return None
    lines = _LINE_FEED.split(message.head + data[stop:end])
    headers = [line for line in lines if looks_like_header(line)]
    return open_part(b"\n".join(headers) + data[end:])


def with_line_feeds(data: bytes) -> bytes:
    """Return data with the line ends that messages are read with."""
    if CR in data and CR in (data := data.replace(b"\r\n", b"\n")):
        # To a mail server, CR is a part of a line: it leaves forged checks behind a CR in place.
        data = re.sub(rb"\r(?=(?i:authentication-results)[ \t]*+:)", b" ", data)
        data = data.replace(b"\r", b"\n")
    return data


def delimited(body: bytes, boundary: bytes) -> tuple[list[int], list[bytes]]:
    """Return the kinds of a body's boundary lines, and the texts before, between and after them.

    A line begins a part (PART_BEGINS) or ends them (PART_ENDS).  There is one text more than there
    are lines.
    """
    text, delimiter = b"\n%b\n" % body, b"\n--" + boundary.rstrip()
    kinds, texts, start, after = [], [], 0, 0
    while (place := text.find(delimiter, after)) >= 0:
        after = place + len(delimiter)
        end = text.index(b"\n", after)
        kind = _EFFECT_BY_END.get(text[after:end].strip())
        if kind is not None:  # otherwise a longer boundary begins like this one
            kinds.append(kind)
            texts.append(text[start:place])
            start = end if text.startswith(delimiter, end) else end + 1
    return kinds, [*texts, text[start:-1]]


def header_lines(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return (name, value) of every header with a colon; the values are still folded."""
    lines = (line.partition(b":") for line in _LINE_FEED.split(block)[1:])
    return [(name, value) for name, colon, value in lines if colon]


def decode_head(block: bytes, charset: str = "", guess: CharsetGuess | None = None) -> bytes:
    """Return a block of headers as UTF-8, with encoded words decoded and their lines unfolded.

    charset: that of the body, used for bytes beyond ASCII outside encoded words; guess: for such
    bytes without a charset.
    """
    lines = _LINE_FEED.split(block)
    for i, line in enumerate(lines):
        if not is_plain(line):
            name, colon, value = line.partition(b":")
            if not (colon and name.isascii()):  # not a header, or the rest of two
                name, colon, value = b"", b"", line
            # A name is not decoded: an encoded word in its place would make any header of it.
            value = unfold(value)
            if colon:
                value = b" " + value  # as `Parts` keeps a subject
            lines[i] = name + colon + decode_value(value, charset, guess).replace(b"\n", b" ")
    return b"\n".join(lines)


def message_id(data: bytes) -> str | None:
    """Return a message's Message-ID without its brackets, None if it has none.

    It is printable and has at most _MAX_ID characters, whatever strangers have written.
    """
    head = b"\n" + with_line_feeds(data[:_ID_WITHIN]).lstrip()
    found = _ID_OR_END.search(head)  # reading the whole head takes ten times as long
    value = unfold(found[1]) if found and found[1] else b""
    value = value.removeprefix(b"<").removesuffix(b">")
    return printable(value.decode("utf-8", "replace"))[:_MAX_ID] or None


# --- values ---------------------------------------------------------------------------------


def unfold(value: bytes) -> bytes:
    """Return a header value as one line."""
    return value.replace(b"\n", b"").strip()


def is_plain(value: bytes) -> bool:
    """Return whether a value, or a block of headers, has nothing to decode."""
    is_ascii = value.isascii() and ESCAPE not in value
    return is_ascii and (_QUESTION not in value or value.find(b"=?") < 0)


def decode_value(value: bytes, charset: str = "", guess: CharsetGuess | None = None) -> bytes:
    """Return an unfolded value as UTF-8, with encoded words decoded.

    charset, guess: see `decode_head`.
    """
    if not value.isascii() or ESCAPE in value:
        # Valid UTF-8 is hardly ever anything else; the body's charset is tried on other text.
        value = to_utf8(value, None if is_utf8(value) else charset, guess)[0]
    elif value.find(b"=?") < 0:
        return value
    elif len(value) <= _MAX_VALUE and (known := _declared_value(value)) is not None:
        return known
    return _with_words_decoded(value, guess)


@lru_cache(maxsize=512)  # a subject is read twice, and names of correspondents come again
def _declared_value(value: bytes) -> bytes | None:
    """Return a decoded value, None if the charset of a word has to be guessed."""
    try:
        return _with_words_decoded(value, NO_GUESS)
    except LookupError:
        return None


def _with_words_decoded(value: bytes, guess: CharsetGuess | None) -> bytes:
    """Return a value in UTF-8 with its encoded words decoded."""
    # Search only up to the last "?=": otherwise every "=?" without an end would be followed to
    # the end of the value, which takes quadratic time.
    end = value.rfind(b"?=") + 2
    before, *found = _WORD.split(value[:end])
    pieces = [before]
    words: list[bytes] = []  # adjacent words of one charset: a character may be split between two
    last = b""
    for at in range(0, len(found), 4):
        name, encoding, text, between = found[at : at + 4]
        name = name.lower()
        if words and name != last:
            pieces.append(_decode_words(words, last, guess))
            words = []
        is_base64 = encoding in (b"b", b"B")
        words.append(decode_base64(text) if is_base64 else a2b_qp(text, header=True))
        last = name
        if at + 4 == len(found) or (between and not between.isspace()):
            pieces += _decode_words(words, last, guess), between
            words = []
    pieces.append(value[end:])
    return b"".join(pieces)


def _decode_words(words: list[bytes], charset: bytes, guess: CharsetGuess | None) -> bytes:
    # RFC 2231 allows a language after the charset.
    return to_utf8(b"".join(words), charset.partition(b"*")[0].decode("latin-1"), guess)[0]


def decode_base64(text: bytes) -> bytes:
    """Return decoded base64; ignores foreign characters and missing padding."""
    if _EQUALS not in text.rstrip(b"= \n"):
        return _decode_run(text)
    # Some mail readers stop at padding and others do not, so what follows it is decoded, too.
    return b"".join(map(_decode_run, text.split(b"=", _MAX_PADS)))


def _decode_run(text: bytes) -> bytes:
    try:
        return a2b_base64(text + b"==")  # more padding than needed does no harm
    except Error:  # a single letter at the end, which is no byte
        return a2b_base64(text + b"A==")[:-1]


def decode_transfer(body: bytes, encoding: bytes) -> bytes:
    """Undo a transfer encoding; data in an unknown one are returned unchanged."""
    if encoding == b"base64":
        whole = decode_base64(body)
        if not _BASE64_RUN.fullmatch(body, max(len(body) - _TAIL, 0)):
            # A list has added its footer in clear, which mail programs do not show.
            end = body.rfind(b"\n", 0, _BASE64_RUN.match(body).end())  # type: ignore[union-attr]
            coded = decode_base64(body[: max(end, 0)])
            if coded and not (BASE64_LINES.search(body, end) or _TEXT.search(whole, len(coded))):
                return coded
        return whole
    if encoding == b"quoted-printable":
        return a2b_qp(substituted(_SOFT_BREAK, b"=\n", body))
    if encoding in UUENCODE:
        return _uudecoded(body[max(body.find(b"begin "), 0) :])
    return body


def _uudecoded(data: bytes) -> bytes:
    """Return the content of the uuencoded lines behind the first line."""
    decoded = bytearray()
    for line in re.finditer(rb"\n(.+)", data):  # an empty one would be decoded to NULs
        with suppress(Error):
            decoded += a2b_uu(line[1])
    return bytes(decoded)


@lru_cache(maxsize=128)  # most mail has one of a few values
def content_value(value: bytes) -> tuple[bytes, Mapping[str, bytes]]:
    """Return the first word, in lower case, and the parameters of a header on content.

    value: raw, that is, possibly folded.  The word is a media type, an encoding or the like.
    """
    value = unfold(value)
    word = _COMMENTS.sub(b" ", value.partition(b";")[0])
    words = b"/".join(map(bytes.strip, word.split(b"/"))).split(None, 1)
    return words[0].lower() if words else b"", parameters(value)


@lru_cache(maxsize=128)
def transfer_encoding(value: bytes) -> bytes:
    """Return the transfer encoding that a raw header states, without comments and quotes.

    Of several words all are returned: programs differ on what they mean.
    """
    words = _COMMENTS.sub(b" ", unfold(value)).partition(b";")[0].split()
    return b" ".join(words).lower()


def parameters(value: bytes) -> dict[str, bytes]:
    """Return the parameters of an unfolded Content-Type or -Disposition, by lower-case name.

    Values encoded by RFC 2231 are decoded to UTF-8; other values are unchanged.
    """
    found: dict[str, bytes] = {}
    if _EQUALS not in value:
        return found
    pieces: dict[str, list[tuple[str, bytes]]] = {}
    for raw, quoted, bare in _PARAMETER.findall(value):
        name, star, index = raw.decode("latin-1").lower().partition("*")
        # In raw Shift_JIS and Big5 the second byte of a character may be a backslash.
        is_escaped = b"\\" in quoted and is_utf8(quoted)
        text = QUOTED_PAIR.sub(rb"\1", quoted) if is_escaped else quoted or bare
        if star:
            pieces.setdefault(name, []).append((index, text))
        else:
            found.setdefault(name, text)
    return found | {name: _join_pieces(several) for name, several in pieces.items()}


def without_pieces(value: bytes) -> bytes:
    """Return a header on content with the parameters of RFC 2231 written as UTF-8."""
    word, found = content_value(value)
    pieces = [b"%b=%b" % (name.encode(), text) for name, text in found.items()]
    return b" " + b"; ".join([word, *pieces])


def _join_pieces(pieces: list[tuple[str, bytes]]) -> bytes:
    """Return the value of an RFC 2231 parameter: name*=charset'language'%41, name*0*=…; name*1=….

    pieces: (index, text) of each piece; the index is what stands after the first asterisk.
    """
    from urllib.parse import unquote_to_bytes

    charset = b""
    data: list[bytes] = []
    for index, text in sorted(pieces, key=lambda piece: int(piece[0].strip("*") or 0)):
        is_encoded = not index or index.endswith("*")
        if is_encoded and not data and text.count(b"'") >= 2:
            charset, _, text = text.split(b"'", 2)
        data.append(unquote_to_bytes(text) if is_encoded else text)
    return to_utf8(b"".join(data), charset.decode("latin-1"))[0]
