"""A message's digest: the same wherever it is found again, another for every other.

Mail is known by what its author wrote: some headers, and the body.  What delivery and
filters add, fold anew or tag does not count; nor do line ends, blank lines at the end,
or the way an mbox quotes "From ".

Secret: what makes two copies of a message the same message.
"""

import re

MAX_HEAD = 64 << 10  # bytes of headers that are looked at

# An allow-list: nobody can list all that may be added on the way.
_AUTHORS = re.compile(
    rb"\n(?=[cdfimrst])(message-id|date|from|to|cc|subject|reply-to|in-reply-to|content-type)"
    rb"[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)",
    re.IGNORECASE,
)
# [SPAM], ***SPAM***, ???UNSURE???, {Spam?}, *****SPAM(7.5)*****: what filters put in front.
_TAG_STARTS = (b"[", b"(", b"{", b"*", b"?")
_TAGS = re.compile(
    rb"(?:\s*+[\[({*?]{1,9}\s?(?:probably |possible |suspected )?"
    rb"(?:spam|junk|unsure|ham|bulk)\b[^\])}*?\n]{0,20}[\])}*?]{1,9})++\s*+"
)
_ENVELOPE = re.compile(rb"\A(?:>?From .*\n)*+\n*+")
_QUOTED_FROM = re.compile(rb"^>+From ", re.MULTILINE)


def digest_of(data: bytes, is_text: bool = False) -> int:
    """Return the 64-bit digest of a message, or of a text that is no mail."""
    from hashlib import blake2b  # 4 ms to import: only learning needs it

    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    parts = [data.rstrip()] if is_text else _essence(data)
    return int.from_bytes(blake2b(b"\n\0".join(parts), digest_size=8).digest(), "little")


def _essence(data: bytes) -> list[bytes]:
    """Return what of a message counts: its author's headers, and the body."""
    if data.startswith((b"From ", b">From ", b"\n")):
        data = _ENVELOPE.sub(b"", data)
    end = data.find(b"\n\n")
    found: dict[bytes, bytes] = {}
    for name, value in _AUTHORS.findall(b"\n" + data[: min(end, MAX_HEAD)]):
        found.setdefault(name.lower(), value)
    # Without a body or without headers it is no mail as we know it: all of it counts.
    if end < 0 or not found:
        return [_unquoted(data)]
    subject = found.get(b"subject", b"").lower().lstrip()
    if subject[:1] in _TAG_STARTS:
        found[b"subject"] = _TAGS.sub(b"", subject)
    # Headers may change places, and their folds may change.
    values = [b" ".join(found[name].split()) for name in sorted(found)]
    return [*sorted(found), *values, _unquoted(data[end:])]


def _unquoted(body: bytes) -> bytes:
    """Return a body without what an mbox does to it, and without blank lines around it."""
    body = body.strip()
    # The shorter needle is found three times as fast.
    if b"From " in body and b">From " in body:
        body = _QUOTED_FROM.sub(b"From ", body)
    return body
