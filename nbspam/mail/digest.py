"""Digests of messages: equal for copies of one message, different for different messages.

The digest of mail depends on what its author wrote: the Message-ID, or else Date, From and
Subject; type, charset and transfer encoding of the content; and the body.  It does not depend on
what delivery and filters add, re-fold or tag, on the boundary between parts, on line ends, on
blank lines at the end, or on the way an mbox quotes "From ".

The hashed text is unambiguous (`essence`), so two messages share a digest only by chance or by
search.  By search, 2**32 tries find two mails of one's own that share their 63 bits: learning one
moves the other, which gains nothing over learning the other alone.  A mail with the digest of
somebody else's message takes 2**63 tries.  With that message at hand no search is needed:
a copy of its Message-ID and body is that message, whatever its other headers say.
"""

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from nbspam.charsets import ESCAPE, MARKED, substituted
from nbspam.mail import headers
from nbspam.mail.headers import OpenedMessage

Values = tuple[bytes | None, ...]

_TEXT = 1 << 63  # this bit is set in digests of texts only
_MULTIPLY = 0x9E3779B97F4A7C15

# Headers that count if there is no Message-ID.  They are listed, because the headers that may be
# added on the way cannot be.
_DATE, _FROM = (
    re.compile(rb"\n%s[ \t]*+:(.*+(?:\n[ \t].*+)*+)" % name, re.IGNORECASE)
    for name in (b"Date", b"From")
)
_BLANKS = bytes.maketrans(b"\t\n\r\v\f", b" " * 5)
_ABSENT: Values = (None,) * 4
_WIDE = re.compile(rb"16|32")  # in the names of charsets with several bytes for every character
_QUOTED_FROM = re.compile(rb"\n>+From ")
_ANY_QUOTED_FROM = re.compile(rb"F(?<=>F)rom ")  # begins with its rarest byte, for a fast search


def digest_of(data: bytes, is_text: bool = False) -> int:
    """Return the 64-bit digest of a mail message, or of a text."""
    if not is_text:
        return mail_digest(headers.open_message(data))
    hashed = sha256(headers.with_line_feeds(data).rstrip()).digest()
    return int.from_bytes(hashed[:8], "little") | _TEXT


def mail_digest(message: OpenedMessage) -> int:
    """Return the 64-bit digest of a mail message."""
    # On processors with SHA instructions it is twice as fast as blake2b.
    hashed = sha256()
    for piece in essence(message):  # joining millions takes 80 bytes of memory for each
        hashed.update(piece)
    return int.from_bytes(hashed.digest()[:8], "little") & ~_TEXT


class Copies:
    """Gives each copy of a text a digest of its own.

    A message that occurs twice is one message, but two equal rows of a table ("ok") are two
    texts.  The second copy gets the same digest whenever the table is read again.
    """

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def numbered(self, digest: int, copy: int | None = None) -> int:
        """Return the digest of a text's copy, from 0 or the next one; of mail, it is unchanged."""
        if not digest & _TEXT:
            return digest
        times = self._times.get(digest, -1) + 1 if copy is None else copy
        self._times[digest] = times
        return digest if not times else (digest * _MULTIPLY + times) % _TEXT | _TEXT


# ---- what is hashed ----


def essence(message: OpenedMessage) -> list[bytes]:
    """Return the bytes of a message that are hashed, in pieces.

    First come numbers of 8 bytes: how many texts the body consists of; the lengths of eight
    values; the length of the first text; and of every further text the kind of the boundary line
    before it and its length.  Then come the values and the texts.  The values are Message-ID,
    Date, From and Subject; type, charset and transfer encoding of the content, and which of its
    parts or line breaks are shown.  -1 is the length of a value that is not there or does not
    count.  Without any of the first four, or in a text without a blank line, all is the body.
    """
    data = message.data
    author, content = _ABSENT, _ABSENT
    kinds: Sequence[int] = ()
    # In a text, lines may look like headers.  An mbox may keep no blank line if there is no body.
    is_bare = message.body == len(data) and b"message-id" in message.telling
    is_mail = is_bare or data.find(b"\n\n", message.stop) >= 0
    if message.has_head and is_mail and any(values := _author(message)):
        author = values
        content, kinds, texts = _content(message)
    else:
        texts = [data[1:]]
    text = texts[0].lstrip()
    # Behind a blank line a byte order mark is none, UTF-16 is another text, and the head of an
    # attached message is text.
    is_message = b"message/" in (content[0] or b"")
    if not (is_message or text.startswith(MARKED) or _WIDE.search(content[1] or b"")):
        texts[0] = text
    texts[-1] = texts[-1].rstrip()
    if _ANY_QUOTED_FROM.search(data):
        texts = [substituted(_QUOTED_FROM, b"\nFrom ", b"\n" + text)[1:] for text in texts]
    return framed(author, content, kinds, texts)


def framed(
    author: Values, content: Values, kinds: Sequence[int], texts: list[bytes]
) -> list[bytes]:
    """Return values and texts after their numbers, as `essence` says.  kinds: one less than texts.

    author: the first four values.  content: the others.
    """
    sizes = bytearray(struct.pack("<q", len(texts[0])))  # numbers take more memory
    for kind, text in zip(kinds, texts[1:], strict=True):
        sizes += struct.pack("<2q", kind, len(text))
    (lengths, written), (more_lengths, more) = _packed(author), _packed_content(content)
    first = struct.pack("<q", len(texts)) + lengths + more_lengths
    return [first, bytes(sizes), written + more, *texts]


def _packed(values: Values) -> tuple[bytes, bytes]:
    lengths = [-1 if value is None else len(value) for value in values]
    return struct.pack("<4q", *lengths), b"".join(filter(None, values))


_packed_content = lru_cache(maxsize=128)(_packed)  # most mail has one of a few contents


def _author(message: OpenedMessage) -> Values:
    """Return Message-ID, Date, From and Subject; of these only the first, unless it is empty."""
    message_id = message.telling.get(b"message-id")
    if message_id is not None and (message_id := _unfolded(message_id)):
        return message_id, None, None, None
    found = [pattern.search(message.data, 0, message.stop) for pattern in (_DATE, _FROM)]
    date, sender = (match and _unfolded(match[1]) for match in found)
    subject = message.telling.get(b"subject")
    subject = None if subject is None else headers.SUBJECT_TAGS.sub(b"", _unfolded(subject))
    return message_id, date, sender, subject


def _content(message: OpenedMessage) -> tuple[Values, list[int], list[bytes]]:
    """Return the values by which the reader reads a body, the kinds of its lines, and its texts.

    The values are the last four of `essence`; None stands for what a reader assumes without
    headers.  The lines are the boundary lines between the texts.
    """
    telling, body = message.telling, message.data[message.body :]
    if headers.ON_CONTENT.isdisjoint(telling):
        assumed = b"text/html" if headers.looks_like_html(body) else None
        return (assumed, None, None, None), [], [body]
    kind, charset, encoding, shown, boundary = _described(
        telling.get(b"content-type", b"").strip(), telling.get(b"content-transfer-encoding", b"")
    )
    if charset == b"us-ascii" and not (kind or encoding):
        # Without a charset, bytes beyond ASCII and escapes would be read in another way.
        charset = None if body.isascii() and ESCAPE not in body else charset
    # Some readers take the last of several headers.
    last = [b"last " + name + value for name, value in sorted(message.doubled.items())]
    kind = b"\n".join([kind or b"text/plain", *last]) if last else kind
    kinds, texts = headers.delimited(body, boundary) if boundary else ([], [body])
    return (kind, charset, encoding, shown), kinds, texts


@lru_cache(maxsize=128)  # most mail has one of a few values
def _described(content_type: bytes, encoding: bytes) -> tuple[bytes | None, ...]:
    """Return the last four values of `essence`, and the boundary; None for those not there."""
    kind, parameters = headers.content_value(content_type or b"text/plain")
    encoding = headers.transfer_encoding(encoding)
    return (
        None if kind == b"text/plain" else kind,
        parameters.get("charset", b"").strip(b" \"'").lower() or None,
        None if encoding in {b"", b"7bit"} else encoding,
        parameters.get("start" if kind == b"multipart/related" else "delsp"),
        parameters.get("boundary") if kind.startswith(b"multipart/") else None,
    )


def _unfolded(value: bytes) -> bytes:
    """Return a header's value with runs of blanks and folds as spaces."""
    value = value.translate(_BLANKS).strip()
    while value.find(b"  ") >= 0:  # to join words takes 80 bytes of memory for each
        value = value.replace(b"  ", b" ")
    return value
