"""The messages of an mbox, and the lines of a TREC index.

Damage is a ValueError without the file's name, which the caller adds.
"""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from nbspam.sources.files import FROM_LINE, LOOKAHEAD, MAX_MESSAGE, beside

# Large enough to make the calls cheap, small enough to stay in the processor's cache.
_CHUNK = 1 << 18
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_INDEX_LINE_BYTES = 1 << 16


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the stream in pieces of a size that suits `mbox_messages`."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def mbox_messages(chunks: Iterable[bytes], limit: int = MAX_MESSAGE) -> Iterator[bytes]:
    """Yield each message of an mbox unchanged, its From_ line included.

    Text before the first From_ line is a message too, unless it is blank.
    A message of more than `limit` bytes is truncated.
    """
    buffer = bytearray()
    searched = 0
    for chunk in chain(chunks, (b"",)):
        buffer += chunk
        # A candidate close to the end waits until the two lines that decide are there.
        horizon = len(buffer) - LOOKAHEAD if chunk else len(buffer)
        start = 0
        while (found := _find_separator(buffer, searched, horizon)) >= 0:
            message = bytes(buffer[start : min(found, start + limit)])
            if not message.isspace():
                yield message
            start, searched = found, found + 1
        searched = max(searched, horizon - 6) - start
        del buffer[:start]
        if len(buffer) > limit + LOOKAHEAD + 8:
            # Keep the tail and two bytes of context: a separator may begin in it.
            del buffer[limit : -LOOKAHEAD - 8]
            searched = limit + 2
    if buffer and not buffer.isspace():
        yield bytes(buffer[:limit])


def _find_separator(buffer: bytearray, start: int, end: int) -> int:
    """Return where the next From_ line after a blank line begins, or -1."""
    at = buffer.find(b"\nFrom ", start, max(end, 0))
    while at >= 0:
        blank_before = at == 0 or buffer.endswith((b"\n", b"\n\r"), max(at - 2, 0), at)
        if blank_before and FROM_LINE.match(buffer, at + 1, at + LOOKAHEAD):
            return at + 1
        at = buffer.find(b"\nFrom ", at + 1, end)
    return -1


def unwrap(raw: bytes) -> bytes:
    """Return a message of an mbox as it was sent.

    Removes the From_ line, the blank line at the end, and one ">" of every line quoted the
    mboxrd way (">From ", ">>From ").
    """
    message = raw.partition(b"\n")[2] if raw.startswith(b"From ") else raw
    for blank in (b"\r\n", b"\n"):
        if message == blank or message.endswith(b"\n" + blank):
            message = message[: -len(blank)]
            break
    if b">From " in message:
        message = _QUOTED_FROM.sub(rb"\1", message)
    return message


def parse_index_line(line: bytes) -> tuple[str, str] | None:
    """Return (label, path) of a line like "spam ../data/inmail.1"; None if it has no path."""
    words = line.split(None, 1)
    if len(words) < 2:
        return None
    return words[0].decode("utf-8", "replace"), os.fsdecode(words[1].rstrip())


def is_index(index: str, head: bytes) -> bool:
    """Return whether all lines are a class and a path, and the first path is a file.

    index: its path, from which the paths in it lead.
    """
    lines = head.splitlines()
    entries = [parse_index_line(line) for line in lines[:-1] or lines if line.strip()]
    if not entries or not entries[0] or not all(entries):
        return False
    label, name = entries[0]
    # A word with a colon is a header, as in "Subject: .", and not a class.
    return ":" not in label and os.path.isfile(beside(index, name))


def index_entries(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield (label, path) for each line of a TREC index, skipping blank lines."""
    number = 0
    while line := stream.readline(_INDEX_LINE_BYTES):
        number += 1
        if not line.strip():
            continue
        entry = parse_index_line(line)
        if entry is None:
            raise ValueError(f"line {number}: not `class path`; correct the index")
        yield entry
