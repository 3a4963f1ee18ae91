"""Header lines to values: folding, RFC 2047 words, RFC 2231 parameters, 8-bit bytes.

Secret: how a value may be spelt.
"""

import re
from binascii import Error, a2b_base64, a2b_qp
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby

from nbspam.mail.charsets import is_utf8, to_utf8

# Of a message that are looked at, attachments included.  It stands here since filtering, which
# needs it, must let mail pass even where numpy is broken.
MAX_BYTES = 16 << 20
_LINE_FEED = re.compile(rb"\n(?![ \t])")
# The first letter as it may be spelt: most lines are passed over by that alone.
_TELLING = re.compile(
    rb"\n([CcSs](?i:ontent-(?:type|transfer-encoding|disposition)|ubject))[ \t]*+:"
    rb"(.*+(?:\n[ \t].*+)*+)"
)
# No repeated group here is possessive if it can match in part: Python before 3.11.5 does
# not step back from that part.  Bounded, because a greedy group remembers every turn.
_ENVELOPE = re.compile(rb"(?:>?From .*\n){0,100}\n*+")
_FIRST_LINE = re.compile(rb"[!-9;-~]{1,200}+[ \t]*+:")
_LINES = re.compile(rb"(?:(?:[!-9;-~]{1,200}+[ \t]*+:|[ \t]).*+\n?+)*")
_ENCODED = re.compile(rb"=\?")  # quicker than `in` is with two bytes
# The text may hold question marks, though RFC 2047 forbids them.
_WORD = re.compile(rb"=\?([^?\s]{1,60})\?([bBqQ])\?(.*?)\?=")
_WORDS = re.compile(rb"(?:=\?[^?\s]{1,60}\?[bBqQ]\?.*?\?=)+")
_BETWEEN_WORDS = re.compile(rb"\?=[ \t\n]++=\?")
_PARAMETER = re.compile(
    rb"[;\s]([a-zA-Z][\w.-]*+(?:\*\d{0,3}\*?)?)\s*+=\s*+"
    rb"(?:\"([^\"\\]*+(?:\\.[^\"\\]*+)*+)|([^\s;\"]*+))"
)
_QUOTED_PAIR = re.compile(rb"\\(.)")
_NOT_BASE64 = bytes(
    set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
)
_MAX_PADS = 100  # in the midst of base64, each followed by more


def after_envelope(data: bytes) -> int:
    """Return where a message begins: behind the From_ lines of an mbox, and blank lines."""
    # A pattern that always matches, if only nothing.
    return _ENVELOPE.match(data).end()  # type: ignore[union-attr]


def looks_like_header(data: bytes, start: int = 0) -> bool:
    """Tell whether a header line stands at `start`."""
    return _FIRST_LINE.match(data, start) is not None


def end_of_headers(data: bytes, start: int, most: int) -> int:
    """Return where the lines of headers that begin at `start` end, in `most` bytes.

    A line that is no header ends them, as it does for those who deliver mail.
    """
    # A pattern that always matches, if only nothing.
    return _LINES.match(data, start, start + most).end()  # type: ignore[union-attr]


def header_lines(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return (name, value with its folds) of every line that has a colon."""
    lines = (line.partition(b":") for line in _LINE_FEED.split(block)[1:])
    return [(name, value) for name, colon, value in lines if colon]


def telling_headers(block: bytes) -> dict[bytes, bytes]:
    """Return the values of a block's headers on content, and of its subject.

    Values as they stand, names in lower case; the first of each.
    """
    found: dict[bytes, bytes] = {}
    for name, value in _TELLING.findall(block):
        found.setdefault(name.lower(), value)
    return found


def decode_head(block: bytes, charset: str = "") -> bytes:
    """Return a block of headers as UTF-8, with encoded words decoded.

    charset: that of the body, believed where bytes beyond ASCII stand as they are.
    """
    lines = [
        b"\n%b:%b" % (name, decode_value(unfold(value), charset).replace(b"\n", b" "))
        for name, value in header_lines(block)
    ]
    return b"".join(lines)


def unfold(value: bytes) -> bytes:
    """Return a header's value on one line."""
    return value.replace(b"\n", b"").strip()


def is_plain(value: bytes) -> bool:
    """Tell whether a value, or a block of them, is what it says, with nothing to decode."""
    return value.isascii() and b"\x1b" not in value and _ENCODED.search(value) is None


def decode_value(value: bytes, charset: str = "") -> bytes:
    """Return an unfolded value as UTF-8, with encoded words decoded."""
    if is_plain(value):
        return value
    # UTF-8 is not by chance; another charset is the body's before it is anyone's guess.
    value = to_utf8(value, None if is_utf8(value) else charset)[0]
    # Nothing behind the last end of a word is looked at: else every beginning of one
    # that never ends would be followed to the end of the value.
    words, end, rest = _BETWEEN_WORDS.sub(b"?==?", value).rpartition(b"?=")
    return _WORDS.sub(_decode_words, words + end) + rest


def _decode_words(match: re.Match[bytes]) -> bytes:
    """Return adjacent words decoded; a character may begin in one and end in the next."""
    decoded = []
    for charset, words in groupby(_WORD.findall(match.group()), lambda word: word[0].lower()):
        data = b"".join(_decode_word(encoding, text) for _, encoding, text in words)
        # RFC 2231 allows a language behind the charset.
        decoded.append(to_utf8(data, charset.partition(b"*")[0].decode("latin-1"))[0])
    return b"".join(decoded)


def _decode_word(encoding: bytes, text: bytes) -> bytes:
    return decode_base64(text) if encoding in b"bB" else a2b_qp(text, header=True)


def decode_base64(text: bytes) -> bytes:
    """Return what base64 encodes, however broken: strangers ignored, padding supplied."""
    if b"=" not in text.rstrip(b"= \n"):
        return _decode_run(text)
    # Padding ends the data for some readers and not for others: read on behind it.
    return b"".join(map(_decode_run, text.split(b"=", _MAX_PADS)))


def _decode_run(text: bytes) -> bytes:
    try:
        return a2b_base64(text)
    except Error:
        clean = text.translate(None, _NOT_BASE64)
        clean = clean[: len(clean) - (len(clean) % 4 == 1)]
        return a2b_base64(clean + b"=" * (-len(clean) % 4))


@lru_cache(maxsize=128)  # most mail says one of a few things
def content_value(value: bytes) -> tuple[bytes, Mapping[str, bytes]]:
    """Return the word, in lower case, that a value begins with, and its parameters.

    Of a header on content, as it stands: the word is a media type, an encoding, ...
    """
    value = unfold(value)
    words = value.partition(b";")[0].split(None, 1)
    return words[0].lower() if words else b"", parameters(value)


def parameters(value: bytes) -> dict[str, bytes]:
    """Return the parameters of an unfolded Content-Type or -Disposition, by lower-case name.

    What RFC 2231 encodes comes as UTF-8, other values as they stand.
    """
    found: dict[str, bytes] = {}
    if b"=" not in value:
        return found
    pieces: dict[str, list[tuple[str, bytes]]] = {}
    for raw, quoted, bare in _PARAMETER.findall(value):
        name, star, index = raw.decode("latin-1").lower().partition("*")
        text = _QUOTED_PAIR.sub(rb"\1", quoted) if b"\\" in quoted else quoted or bare
        if star:
            pieces.setdefault(name, []).append((index, text))
        else:
            found.setdefault(name, text)
    for name, several in pieces.items():
        found[name] = _join_pieces(several)
    return found


def _join_pieces(pieces: list[tuple[str, bytes]]) -> bytes:
    """Return the value of name*=charset'language'%41, or of name*0*=…; name*1=… and so on."""
    from urllib.parse import unquote_to_bytes

    charset = b""
    data: list[bytes] = []
    for index, text in sorted(pieces, key=lambda piece: int(piece[0].strip("*") or 0)):
        is_encoded = not index or index.endswith("*")
        if is_encoded and not data and text.count(b"'") >= 2:
            charset, _, text = text.split(b"'", 2)
        data.append(unquote_to_bytes(text) if is_encoded else text)
    return to_utf8(b"".join(data), charset.decode("latin-1"))[0]
