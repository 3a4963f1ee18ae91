"""Digests of messages: equal for copies of one message, different for different ones.

The digest of mail depends on what its author wrote: the Message-ID (or a few other headers)
and the body.  It does not depend on what delivery and filters add, re-fold or tag, on line
ends, on blank lines at the end, or on the way an mbox quotes "From ".

Secret: which differences two copies of the same message may have.
"""

import re
from hashlib import sha256

from nbspam.mail.headers import after_envelope

_TEXT = 1 << 63  # this bit is set in digests of texts, and not in those of mail
_MAX_VALUE = 4096  # bytes of a header value that count
_MULTIPLY = 0x9E3779B97F4A7C15

# The headers that count: the Message-ID; without one, the others.  They are listed, because the
# headers that may be added on the way cannot be.
_IDS = (b"\nMessage-ID:", b"\nMessage-Id:")  # the usual spellings, found by a fast plain search
_ANY_ID = re.compile(rb"\nMessage-ID[ \t]*+:", re.IGNORECASE)
_DATE, _FROM, _SUBJECT = (
    re.compile(rb"\n%s[ \t]*+:" % name, re.IGNORECASE) for name in (b"Date", b"From", b"Subject")
)
# Tags that filters put before a subject: [SPAM], ***SPAM***, ???UNSURE???, {Spam?},
# *****SPAM(7.5)*****.
_TAGS = re.compile(
    rb"^(?:\s*+[\[({*?]{1,9}\s?(?:probably |possible |suspected )?"
    rb"(?:spam|junk|unsure|ham|bulk)\b[^\])}*?\n]{0,20}[\])}*?]{1,9})+\s*+",
    re.IGNORECASE,
)
# On processors with SHA instructions it is twice as fast as blake2b.
_NOTHING = sha256()
_FOLDS = b" \t"
_BLANK_LINE = re.compile(rb"\n\n")  # faster than bytes.find is with two bytes
_QUOTED_FROM = re.compile(rb"\n>+From ")
_ANY_QUOTED_FROM = re.compile(rb"F(?<=>F)rom ")  # begins with its rarest byte, for a fast search


def digest_of(data: bytes, is_text: bool = False) -> int:
    """Return the 64-bit digest of a mail message, or of a text."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    values, body = ([], data.rstrip()) if is_text else _essence(data)
    hashed = _NOTHING.copy()
    for value in values:
        hashed.update(value + b"\n\0")
    hashed.update(body)
    digest = int.from_bytes(hashed.digest()[:8], "little")
    return digest | _TEXT if is_text else digest & ~_TEXT


class Copies:
    """Gives each copy of a text a digest of its own.

    A message that occurs twice is one message, but two equal rows of a table ("ok") are two
    texts.  The second copy gets the same digest whenever the table is read again.
    """

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def numbered(self, digest: int) -> int:
        """Return the digest of the next copy of a text; the digest of mail is unchanged."""
        if not digest & _TEXT:
            return digest
        times = self._times[digest] = self._times.get(digest, -1) + 1
        return digest if not times else (digest * _MULTIPLY + times) % _TEXT | _TEXT


def _essence(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the parts of a message that count: values of its author's headers, and the body."""
    start = after_envelope(data)
    blank = _BLANK_LINE.search(data, start)
    # Without a body or without headers, all of the data count.
    if blank is None:
        return [], _unquoted(data[start:])
    head = b"\n" + data[start : blank.end()]
    values = [_message_id(head)]
    if not values[0]:
        values = [_found(pattern, head) for pattern in (_DATE, _FROM, _SUBJECT)]
        if not any(values):
            return [], _unquoted(data[start:])
        values[-1] = _TAGS.sub(b"", values[-1])
    return values, _unquoted(data[blank.end() :])


def _message_id(head: bytes) -> bytes:
    """Return the value of the Message-ID; empty if there is none."""
    for name in _IDS:
        start = head.find(name)
        if start >= 0:
            return _value(head, start + len(name))
    return _found(_ANY_ID, head)


def _found(pattern: re.Pattern[bytes], head: bytes) -> bytes:
    match = pattern.search(head)
    return _value(head, match.end()) if match else b""


def _value(head: bytes, start: int) -> bytes:
    """Return the header value that begins at `start`, with runs of blanks and folds as spaces."""
    stop = head.find(b"\n", start)
    while head[stop + 1] in _FOLDS and stop < start + _MAX_VALUE:
        stop = head.find(b"\n", stop + 1)
    return b" ".join(head[start : min(stop, start + _MAX_VALUE)].split())


def _unquoted(body: bytes) -> bytes:
    """Return a body without the quoting of an mbox and without blank lines around it."""
    body = body.strip()
    if _ANY_QUOTED_FROM.search(body):
        body = _QUOTED_FROM.sub(b"\nFrom ", b"\n" + body)[1:]
    return body
