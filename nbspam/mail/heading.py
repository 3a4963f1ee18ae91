"""Sender and subject of a message, as people see them in a list."""

from typing import NamedTuple

from nbspam.mail.headers import after_envelope, decode_value, header_lines, read_head, unfold
from nbspam.printing import printable

_HEAD_BYTES = 1 << 16
_MAX_VALUE = 200  # characters of a sender or subject


class Heading(NamedTuple):
    """Sender and subject of a message; printable, whatever strangers have written."""

    sender: str
    subject: str


def heading(data: bytes) -> Heading:
    """Return the sender and the subject of a message, each "" if it has none."""
    head = data[:_HEAD_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    head = b"\n" + head[after_envelope(head) :]
    stop, _, _ = read_head(head)
    found: dict[bytes, str] = {}
    for name, value in header_lines(head[:stop]):
        kind = name.strip().lower()
        if kind in (b"from", b"subject") and kind not in found:
            text = decode_value(unfold(value)).decode("utf-8", "replace")
            found[kind] = printable(" ".join(text[: 2 * _MAX_VALUE].split()))[:_MAX_VALUE]
    return Heading(found.get(b"from", ""), found.get(b"subject", ""))
