"""A message's digest: the same wherever it is found again, another for every other.

Mail is known by what its author wrote: its ID (or a few other headers), and the body.
What delivery and filters add, fold anew or tag does not count; nor do line ends, blank
lines at the end, or the way an mbox quotes "From ".

Secret: what makes two copies of a message the same message.
"""

import re
from hashlib import sha256

from nbspam.mail.headers import after_envelope

_TEXT = 1 << 63  # the bit that tells a text from mail
_MAX_VALUE = 4096  # bytes of a header that are looked at
_MULTIPLY = 0x9E3779B97F4A7C15

# A message is known by its ID; one without, by the other headers that authors write.  A
# list of what counts, because nobody can list all that may be added on the way.
_IDS = (b"\nMessage-ID:", b"\nMessage-Id:")  # as most write it: a plain search is quick
_ANY_ID = re.compile(rb"\nMessage-ID[ \t]*+:", re.IGNORECASE)
_DATE, _FROM, _SUBJECT = (
    re.compile(rb"\n%s[ \t]*+:" % name, re.IGNORECASE) for name in (b"Date", b"From", b"Subject")
)
# [SPAM], ***SPAM***, ???UNSURE???, {Spam?}, *****SPAM(7.5)*****: what filters put in front.
_TAGS = re.compile(
    rb"^(?:\s*+[\[({*?]{1,9}\s?(?:probably |possible |suspected )?"
    rb"(?:spam|junk|unsure|ham|bulk)\b[^\])}*?\n]{0,20}[\])}*?]{1,9})+\s*+",
    re.IGNORECASE,
)
# Where the processor helps, this is twice as fast as blake2b.
_NOTHING = sha256()
_FOLDS = b" \t"
_BLANK_LINE = re.compile(rb"\n\n")  # quicker than `find` is with two bytes
_QUOTED_FROM = re.compile(rb"\n>+From ")
_ANY_QUOTED_FROM = re.compile(rb"F(?<=>F)rom ")  # begins with the rarest byte: found quickly


def digest_of(data: bytes, is_text: bool = False) -> int:
    """Return the 64-bit digest of a message, or of a text that is no mail."""
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
    """Counts how often each text comes, as rows of a table repeat and all of them count.

    A message that comes again is the same message; "ok" twice is two texts.  The second
    has a digest of its own, the same one whenever the table is read again.
    """

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def numbered(self, digest: int) -> int:
        """Return the digest of this copy, counting it; of mail the digest itself."""
        if not digest & _TEXT:
            return digest
        times = self._times[digest] = self._times.get(digest, -1) + 1
        return digest if not times else (digest * _MULTIPLY + times) % _TEXT | _TEXT


def _essence(data: bytes) -> tuple[list[bytes], bytes]:
    """Return what of a message counts: its author's headers, and the body."""
    start = after_envelope(data)
    blank = _BLANK_LINE.search(data, start)
    # Without a body or without headers it is no mail as we know it: all of it counts.
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
    """Return a message's ID, or nothing."""
    for name in _IDS:
        start = head.find(name)
        if start >= 0:
            return _value(head, start + len(name))
    return _found(_ANY_ID, head)


def _found(pattern: re.Pattern[bytes], head: bytes) -> bytes:
    match = pattern.search(head)
    return _value(head, match.end()) if match else b""


def _value(head: bytes, start: int) -> bytes:
    """Return the value of a header that begins at `start`, its blanks and folds made alike."""
    stop = head.find(b"\n", start)
    while head[stop + 1] in _FOLDS and stop < start + _MAX_VALUE:
        stop = head.find(b"\n", stop + 1)
    return b" ".join(head[start : min(stop, start + _MAX_VALUE)].split())


def _unquoted(body: bytes) -> bytes:
    """Return a body without what an mbox does to it, and without blank lines around it."""
    body = body.strip()
    if _ANY_QUOTED_FROM.search(body):
        body = _QUOTED_FROM.sub(b"\nFrom ", b"\n" + body)[1:]
    return body
