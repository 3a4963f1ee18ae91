"""The layout of a batch: all fields of its messages in one buffer, cut by zero bytes.

Heads stand first, and are cut into the names and values of their headers here; characters
to be taken in runs are set apart, behind all words.

Secret: where in the buffer everything stands.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers
from nbspam.mail.message import Message
from nbspam.mail.origins import HEADS, ORIGINS
from nbspam.settings import TokenSettings
from nbspam.tokens.characters import folded
from nbspam.tokens.definition import (
    BODY,
    CHARACTERS,
    group_of,
    has_characters,
    normalized_fields,
    pair_origin,
    salt_of,
    word_table,
)
from nbspam.tokens.hashing import WORD_BYTES, hash_slices

_ORIGINS = (*ORIGINS, CHARACTERS)
_NOT_COUNTED = len(_ORIGINS)
_NUMBER: dict[str | None, int] = {origin: number for number, origin in enumerate(_ORIGINS)}
_NUMBER[None] = _NOT_COUNTED
_KINDS = tuple(HEADS)
_MAX_NAMES = 4096  # that one process remembers
# What all words of an origin share, by its number; the last row is of words that do not count.
COUNTS = np.arange(len(_ORIGINS) + 1) != _NOT_COUNTED
SALTS = np.array([*map(salt_of, _ORIGINS), 0], np.uint64)
GROUPS_OF = np.array([*map(group_of, _ORIGINS), 0], np.uint8)
_HAS_CHARACTERS = np.array([*map(has_characters, _ORIGINS), False])
_LINE_FEED, _COLON, _BLANK, _TAB = b"\n: \t"
# What token texts begin with, by twice the number of the origin, plus one for pairs.
_TAGS = [
    b"" if name == BODY else name.encode() + b":"
    for origin in _ORIGINS
    for name in (origin, pair_origin(origin))
]
# The space stands between the words of a pair.
TAGS = b"".join((b" ", *_TAGS))
TAG_LENGTHS = np.array([*map(len, _TAGS), 0, 0])
TAG_STARTS = len(b" ") + np.cumsum(TAG_LENGTHS) - TAG_LENGTHS


class Layout(NamedTuple):
    """All fields of a batch in one buffer: text, zeros, then what token texts need.

    Characters to be taken in runs are fields of their own, behind those of words.
    """

    buffer: bytes
    end: int  # of the words' text, a zero byte before and behind it included
    runs: int  # where characters to be taken in runs begin
    tags: int  # where TAGS stand
    n_docs: int
    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) its number, for the tables above


class _Fields(NamedTuple):
    """Where some fields of a batch begin, and whose they are."""

    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin; of a head, of its kind


class _Texts(NamedTuple):
    """Texts of fields that are going to be joined by zero bytes."""

    texts: list[bytes]
    documents: list[int]
    origins: list[int]

    def fields(self, place: int) -> _Fields:
        """Return the fields that the texts become, the first at this place."""
        start = np.full(len(self.texts) + 1, place)
        start[1:] += np.cumsum(np.fromiter(map(len, self.texts), np.int64, len(self.texts)) + 1)
        return _Fields(start, np.array(self.documents, np.int64), np.array(self.origins, np.int64))


def lay_out(messages: Sequence[Message], settings: TokenSettings) -> Layout:
    """Join all fields, case folded and cut by zero bytes, into one buffer."""
    heads, others = _texts_of(messages, settings)
    # Zeros behind it, so that reading ahead of the last word stays inside the buffer.
    padding = bytes(settings.max_length + WORD_BYTES)
    joined = b"\0".join((b"", *heads.texts, *others.texts, padding))
    fields = _cut_heads(joined, heads.fields(1))
    fields = _behind(fields, others.fields(int(fields.start[-1])))
    runs = b""
    if settings.characters:
        runs, more = _runs(joined, fields)
        fields = _behind(fields, more)
    return Layout(
        b"".join((joined.translate(word_table(settings.punctuation)), runs, TAGS, padding)),
        len(joined) - len(padding),
        len(joined),
        len(joined) + len(runs),
        len(messages),
        *fields,
    )


def _texts_of(messages: Sequence[Message], settings: TokenSettings) -> tuple[_Texts, _Texts]:
    """Return the texts of heads, and those of all other fields."""
    heads, others = _Texts([], [], []), _Texts([], [], [])
    places = {origin: (others, number) for number, origin in enumerate(_ORIGINS)}
    places |= {kind: (heads, number) for number, kind in enumerate(_KINDS)}
    for document, message in enumerate(messages):
        for origin, text in normalized_fields(message, settings):
            part, number = places[origin]
            part.texts.append(text)
            part.documents.append(document)
            part.origins.append(number)
    return heads, others


def _behind(first: _Fields, second: _Fields) -> _Fields:
    """Return the fields of both, the second behind the first."""
    return _Fields(
        np.concatenate([first.start[:-1], second.start]),
        np.concatenate([first.document, second.document]),
        np.concatenate([first.origin, second.origin]),
    )


def _cut_heads(joined: bytes, heads: _Fields) -> _Fields:
    """Return names and values of the headers in these heads, as fields that alternate."""
    before = heads.start - 1  # each head, and behind the last: zero bytes
    text = np.frombuffer(joined, np.uint8, before[-1] + 1)
    begins = (text[:-1] == _LINE_FEED) & (text[1:] != _BLANK) & (text[1:] != _TAB)
    # What stands before the first header is a line of its own, which has no name.
    begins[before[:-1]] = True
    line = np.flatnonzero(begins)
    n_lines = np.diff(np.searchsorted(line, before))
    kind = np.repeat(heads.origin, n_lines)
    end = np.append(line, before[-1])[1:]
    colons = np.append(np.flatnonzero(text == _COLON), len(text))
    colon = colons.take(np.searchsorted(colons, line))
    is_header = (colon < end) & (text.take(line) == _LINE_FEED)
    colon = np.where(is_header, colon, end)
    origin = _NAMES.origins(joined, kind, line + 1, np.where(is_header, colon, 0))
    return _Fields(
        np.append(np.stack([line + 1, np.minimum(colon + 1, end)], axis=1), before[-1] + 1),
        np.repeat(heads.document, 2 * n_lines),
        origin.ravel(),
    )


class _Names:
    """Names of headers met before, by their hashes: most messages have the same few."""

    def __init__(self) -> None:
        # Keys, ascending, and origins (n_names, 2); together, as threads may share them.
        self._known = np.zeros(1, np.uint64), np.full((1, 2), _NOT_COUNTED)

    def origins(self, joined: bytes, kind: Integers, start: Integers, end: Integers) -> Integers:
        """Return the origins of headers' names and values, shape (n_lines, 2).

        kind, start, end: (n_lines,) the kind of head, and where the name stands; a line
        that is no header has none, and ends at 0.
        """
        salt = (2 * kind + (end > 0)).astype(np.uint64)
        key = hash_slices(joined, start, np.maximum(end - start, 0), salt)
        keys, origins = self._known
        place = keys.searchsorted(key)
        new = np.flatnonzero(keys.take(place, mode="clip") != key)
        if len(new):
            _, first = np.unique(key.take(new), return_index=True)
            chosen = new.take(first)
            found = np.array(_look_up(joined, kind[chosen], start[chosen], end[chosen]), np.int64)
            order = np.argsort(keys := np.concatenate([keys, key[chosen]]))
            keys, origins = keys[order], np.concatenate([origins, found])[order]
            if len(keys) <= _MAX_NAMES:
                self._known = keys, origins
            place = keys.searchsorted(key)
        return origins.take(place, axis=0)


_NAMES = _Names()


def _look_up(
    joined: bytes, kind: Integers, start: Integers, end: Integers
) -> list[tuple[int, int]]:
    """Return the origins of the same, one by one."""
    found = []
    for number, begin, stop in zip(kind.tolist(), start.tolist(), end.tolist(), strict=True):
        if stop:
            origins = HEADS[_KINDS[number]][joined[begin:stop]]
            found.append((_NUMBER[origins.name], _NUMBER[origins.value]))
        else:
            found.append((_NOT_COUNTED, _NOT_COUNTED))
    return found


def _runs(joined: bytes, fields: _Fields) -> tuple[bytes, _Fields]:
    """Return what runs of characters are taken from, and the fields it makes."""
    chosen = np.flatnonzero(_HAS_CHARACTERS[fields.origin])
    # Heads' and other fields' runs have one origin: those of a message stand together.
    chosen = chosen[np.argsort(fields.document[chosen], kind="stable")]
    bounds = zip(fields.start[chosen].tolist(), fields.start[chosen + 1].tolist(), strict=True)
    texts = [folded(joined[start:end]) + b"\0" for start, end in bounds]
    start = np.full(len(texts) + 1, len(joined))
    start[1:] += np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    number = np.full(len(texts), _NUMBER[CHARACTERS])
    return b"".join(texts), _Fields(start, fields.document[chosen], number)
