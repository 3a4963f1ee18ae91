"""The layout of a batch: all fields of its messages in one buffer, cut by zero bytes.

Heads are cut into the names and values of their headers here, and characters to be taken
in runs are set apart; what each field says of its tokens stands beside it in arrays.

Secret: where in the buffer everything stands.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets
from nbspam.hashing import WORD_BYTES, hash_slices
from nbspam.message import Message
from nbspam.origins import HEADS
from nbspam.runs import folded
from nbspam.tokens import (
    BODY,
    CHARACTERS,
    TokenSettings,
    group_of,
    has_characters,
    normalized_fields,
    pair_origin,
    salt_of,
)


class Layout(NamedTuple):
    """All fields of a batch in one buffer: text, zeros, then what token texts need.

    Characters to be taken in runs are fields of their own, behind those of words.
    """

    buffer: bytes
    end: int  # of the words' text, a zero byte before and behind it included
    runs: int  # where characters to be taken in runs begin
    space: int  # where the buffer has one
    n_docs: int
    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    counts: Booleans  # (n_fields,) whether its words are evidence
    salt: Keys  # (n_fields,)
    group: Octets  # (n_fields,)
    prefix: Integers  # (n_fields, 2): start and length of the origin's prefix in the buffer
    pair_prefix: Integers


def lay_out(messages: Sequence[Message], settings: TokenSettings) -> Layout:
    """Join all fields, case folded and cut by zero bytes, into one buffer."""
    known: dict[str, int] = {}
    texts, fields = _texts_of(messages, settings, known)
    # Zeros behind it, so that reading ahead of the last word stays inside the buffer.
    padding = bytes(settings.max_length + WORD_BYTES)
    joined = b"".join((b"\0", b"\0".join(texts), b"\0", padding))
    fields = _cut_heads(joined, fields, known)
    runs = b""
    if settings.characters:
        runs, fields = _add_runs(joined, fields, known)
    space = len(joined) + len(runs)
    names, prefix, pair_prefix = _prefixes(known, space + 1)
    of = fields.origin
    return Layout(
        b"".join((joined.translate(settings.table()), runs, b" ", names, padding)),
        len(joined) - len(padding),
        len(joined),
        space,
        len(messages),
        fields.start,
        fields.document,
        of >= 0,
        np.array([*map(salt_of, known), 0], np.uint64)[of],
        np.array([*map(group_of, known), 0], np.uint8)[of],
        prefix[of],
        pair_prefix[of],
    )


class _Fields(NamedTuple):
    """Where the fields of a batch begin, and whose they are."""

    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin, -1 where words do not count


def _texts_of(
    messages: Sequence[Message], settings: TokenSettings, known: dict[str, int]
) -> tuple[list[bytes], _Fields]:
    """Return the texts of all fields, and the fields they are when joined by zero bytes."""
    texts: list[bytes] = []
    origins: list[int] = []
    n_fields: list[int] = []
    for message in messages:
        before = len(texts)
        for origin, text in normalized_fields(message, settings):
            texts.append(text)
            origins.append(known.setdefault(origin, len(known)))
        n_fields.append(len(texts) - before)
    start = np.ones(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=start[1:])
    start[1:] += 1
    document = np.repeat(np.arange(len(messages)), n_fields)
    return texts, _Fields(start, document, np.array(origins, np.int64))


def _cut_heads(joined: bytes, fields: _Fields, known: dict[str, int]) -> _Fields:
    """Return the fields with those of heads cut into names and values of headers."""
    heads = {known[kind]: table for kind, table in HEADS.items() if kind in known}
    if not heads:
        return fields
    start, document, origin = fields
    text = np.frombuffer(joined, np.uint8)
    line = np.flatnonzero(text == ord("\n"))
    of = np.searchsorted(start, line, "right") - 1
    is_head = np.isin(origin, list(heads))
    after = text[line + 1]
    begins = is_head[of] & (after != ord(" ")) & (after != ord("\t"))
    line, of = line[begins], of[begins]
    end = np.minimum(np.append(line[1:], len(text)), start[of + 1] - 1)
    colons = np.append(np.flatnonzero(text == ord(":")), len(text))
    colon = np.minimum(colons[np.searchsorted(colons, line)], end)
    # Names that are spelt alike in heads of one kind are looked up once.
    salt = origin[of].astype(np.uint64)
    key = hash_slices(joined, line + 1, colon - line - 1, salt * np.uint64(2) + (colon < end))
    _, chosen, which = np.unique(key, return_index=True, return_inverse=True)
    number = np.full((len(chosen), 2), -1)
    for row, i in enumerate(chosen.tolist()):
        if colon[i] < end[i]:
            origins = heads[int(origin[of[i]])][joined[line[i] + 1 : colon[i]]]
            number[row] = [-1 if o is None else known.setdefault(o, len(known)) for o in origins]
    starts = np.concatenate([start[:-1], line + 1, np.minimum(colon + 1, end)])
    order = np.argsort(starts, kind="stable")
    return _Fields(
        np.append(starts[order], start[-1]),
        np.concatenate([document, document[of], document[of]])[order],
        np.concatenate([np.where(is_head, -1, origin), number[which].T.ravel()])[order],
    )


def _add_runs(joined: bytes, fields: _Fields, known: dict[str, int]) -> tuple[bytes, _Fields]:
    """Return what runs of characters are taken from, and the fields with it behind them."""
    has = np.array([*map(has_characters, known), False])
    chosen = np.flatnonzero(has[fields.origin])
    bounds = zip(fields.start[chosen].tolist(), fields.start[chosen + 1].tolist(), strict=True)
    texts = [folded(joined[start:end]) + b"\0" for start, end in bounds]
    start = np.full(len(texts) + 1, len(joined), np.int64)
    start[1:] += np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    number = known.setdefault(CHARACTERS, len(known))
    return b"".join(texts), _Fields(
        np.concatenate([fields.start[:-1], start]),
        np.append(fields.document, fields.document[chosen]),
        np.append(fields.origin, np.full(len(texts), number)),
    )


def _prefixes(known: Iterable[str], place: int) -> tuple[bytes, Integers, Integers]:
    """Return what token texts begin with, and where: start and length by origin.

    place: where in the buffer the names will stand.  Shapes (n_origins + 1, 2); the last
    row is for words that do not count.
    """
    names = bytearray()
    tables: tuple[list[tuple[int, int]], ...] = ([], [])
    for origin in known:
        for name, table in zip((origin, pair_origin(origin)), tables, strict=True):
            tag = b"" if name == BODY else name.encode() + b":"
            table.append((place + len(names), len(tag)))
            names += tag
    single, pair = (np.array([*table, (place, 0)], np.int64) for table in tables)
    return bytes(names), single, pair
