"""How much of a long message is read.

Most messages are read whole.  Of a longer one every part has a share: its beginning, its end and
many small pieces between.  The pieces are spread evenly, so no stretch of text longer than two of
their distances is left out, and each stands at a place that a checksum of the text decides.  A
spammer can compute the places and put a little between them, but not the text of an offer.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from zlib import crc32

_PIECE = 512  # bytes of a piece from the middle of a text
_REACH = 64  # bytes in which a piece begins or ends at a blank
_MAX_STYLE = 64 << 10  # bytes of a style sheet
# Text that takes no room on a screen.  It is dropped before a long text is sampled, because
# otherwise it would be sampled in place of visible text.  All patterns take linear time.
_BLANKS = re.compile(rb"\s\s++")
_NO_WORD = re.compile(rb"(?<![^\s<>\x80-\xff])[^\s<>\x80-\xff]{256,}+")  # encoded data, mostly
_UNSEEN = re.compile(rb"<(?=[!sS])(?:!--|((?i:script|style))\b)")
_UNSEEN_END = {
    b"": re.compile(rb"--!?>"),
    b"script": re.compile(rb"</(?i:script)"),
    b"style": re.compile(rb"</(?i:style)"),
}
_BRACKET = re.compile(rb"[<>]")
# Ends a tag that a piece of HTML leaves open, and begins none.
_BETWEEN_HTML = b"<\n"


def ends(data: bytes, most: int) -> bytes:
    """Return at most `most` bytes: three quarters from the beginning, the rest from the end."""
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
    for piece in pieces:
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
    return _BLANKS.sub(b"\n", _NO_WORD.sub(b" ", text))


def _without_unseen(html: bytes) -> bytes:
    """Return HTML without comments and scripts, and with style sheets of a limited size."""
    kept = []
    position = 0
    while match := _UNSEEN.search(html, position):
        kept.append(html[position : match.start()])
        name = (match[1] or b"").lower()
        end = _UNSEEN_END[name].search(html, match.end())
        if name == b"style":
            position = end.start() if end else len(html)
            kept.append(html[match.start() : min(position, match.start() + _MAX_STYLE)])
        else:
            position = end.end() if end else len(html)
            kept.append(b"<" * (name == b"script"))  # of what remains of the end tag
    kept.append(html[position:])
    return b"".join(kept)


def sampled(text: bytes, most: int, is_html: bool = False) -> bytes:
    """Return at most about `most` bytes of a text in UTF-8: see the head of the module.

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
        start = _next_start(text, start, min(start + _REACH, stop))
        bracket = _BRACKET.search(text, start, stop) if is_html else None
        if bracket and bracket[0] == b">":
            start = bracket.end()
    if stop < len(text):
        blank = max(text.rfind(b" ", stop - _REACH, stop), text.rfind(b"\n", stop - _REACH, stop))
        stop = blank if blank > start else stop
        while stop > start and text[stop] & 0xC0 == 0x80:  # within a character
            stop -= 1
    return text[start:stop]


def _next_start(text: bytes, start: int, stop: int) -> int:
    """Return where the next word begins, or the next character if no word does."""
    blanks = (text.find(b" ", start, stop), text.find(b"\n", start, stop))
    if max(blanks) >= 0:
        return min(blank for blank in blanks if blank >= 0) + 1
    while start < stop and text[start] & 0xC0 == 0x80:
        start += 1
    return start
