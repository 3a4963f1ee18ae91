"""The layout of a batch: all fields of its messages in one buffer, separated by zero bytes.

Heads (the header lines of a message) come first and are cut into names and values here.  The text
that is cut into runs of characters follows all words.

Secret: where in the buffer everything is.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers, Keys, differences, places_of
from nbspam.mail.message import Message
from nbspam.mail.origins import HEADS, ORIGINS
from nbspam.settings import TokenSettings
from nbspam.tokens.characters import folded
from nbspam.tokens.definition import (
    BODY,
    CHARACTERS,
    RIDER_BITS,
    has_characters,
    kind_of,
    pair_origin,
    salt_of,
    word_table,
)
from nbspam.tokens.documents import offsets_of
from nbspam.tokens.hashing import WORD_BYTES, first_bytes
from nbspam.tokens.spelling.disguises import remove_disguises

_ORIGINS = (*ORIGINS, CHARACTERS)
_NOT_COUNTED = len(_ORIGINS)
_NUMBER: dict[str | None, int] = {origin: number for number, origin in enumerate(_ORIGINS)}
_NUMBER[None] = _NOT_COUNTED
_KINDS = tuple(HEADS)
# Whether fields of an origin are heads, and their number among heads or among all others.
_PLACES = {origin: (False, number) for number, origin in enumerate(_ORIGINS)}
_PLACES |= {kind: (True, number) for number, kind in enumerate(_KINDS)}
_MAX_NAMES = 4096  # header names that one process remembers
_WINDOWS = 4  # of eight bytes each; longer names are not remembered
_WINDOW_STARTS = np.arange(0, _WINDOWS * WORD_BYTES, WORD_BYTES)[:, np.newaxis]
_MULTIPLIERS = np.array([[pow(3, 41 + n, 1 << 64)] for n in range(_WINDOWS + 1)], np.uint64)
# Properties of origins, by number; the last element is for words that are not counted.
COUNTS = np.arange(len(_ORIGINS) + 1) != _NOT_COUNTED
SALTS = np.array([*map(salt_of, _ORIGINS), 0], np.uint64)
# Their kinds as the keys of their words have them.
KINDS = np.array([*map(kind_of, _ORIGINS), 0], np.uint64) << np.uint64(RIDER_BITS)
_HAS_CHARACTERS = np.array([*map(has_characters, _ORIGINS), False])
_LINE_FEED, _COLON, _BLANK, _TAB = b"\n: \t"
# The prefixes of token texts, at index 2 * origin for words and 2 * origin + 1 for pairs.
_TAGS = [
    b"" if name == BODY else name.encode() + b":"
    for origin in _ORIGINS
    for name in (origin, pair_origin(origin))
]
# The first byte is the space between the words of a pair.
TAGS = b"".join((b" ", *_TAGS))
TAG_LENGTHS = np.array([*map(len, _TAGS), 0, 0])
TAG_STARTS = len(b" ") + np.cumsum(TAG_LENGTHS) - TAG_LENGTHS


class Layout(NamedTuple):
    """All fields of a batch in one buffer: text of words, zeros, text of runs, TAGS, zeros.

    Texts that are cut into runs of characters are fields of their own, after those of words.
    """

    buffer: bytes
    end: int  # end of the words' text, including a zero byte before and after it
    runs: int  # where the text that is cut into runs begins
    tags: int  # where TAGS begins
    n_docs: int
    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin, an index into the tables above


class _Fields(NamedTuple):
    """Where some fields of a batch begin, and which document and origin they have."""

    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin; for heads, number of the kind of head


class _Texts(NamedTuple):
    """Texts of fields before they are joined by zero bytes."""

    texts: list[bytes]
    documents: list[int]
    origins: list[int]

    def fields(self, place: int) -> _Fields:
        """Return the fields that the texts become when joined; place: where the first starts."""
        start = place + offsets_of([len(text) + 1 for text in self.texts])
        return _Fields(start, np.array(self.documents, np.int64), np.array(self.origins, np.int64))


def lay_out(messages: Sequence[Message], settings: TokenSettings) -> Layout:
    """Return the layout of messages: all fields, case folded, in one buffer."""
    heads, others = _texts_of(messages, settings)
    # Zeros at the end, so that hashing the last word does not read past the buffer.
    padding = bytes(settings.max_length + WORD_BYTES)
    joined = b"\0".join((b"", *heads.texts, *others.texts, padding))
    of_heads = _cut_heads(joined, heads.fields(1))
    behind = others.fields(int(of_heads.start[-1]))
    fields = _behind(of_heads, behind)
    words = joined.translate(word_table(settings.punctuation))
    if not settings.raw:
        words = remove_disguises(words, behind.start, behind.origin == _NUMBER[BODY])
    runs = b""
    if settings.characters:
        runs, more = _runs(joined, fields)
        fields = _behind(fields, more)
    return Layout(
        b"".join((words, runs, TAGS, padding)),
        len(joined) - len(padding),
        len(joined),
        len(joined) + len(runs),
        len(messages),
        *fields,
    )


def _texts_of(messages: Sequence[Message], settings: TokenSettings) -> tuple[_Texts, _Texts]:
    """Return the texts of heads, and the texts of all other fields."""
    heads, others = _Texts([], [], []), _Texts([], [], [])
    odd: list[tuple[_Texts, int]] = []
    for document, message in enumerate(messages):
        for origin, text in message.fields:
            is_head, number = _PLACES[origin]
            part = heads if is_head else others
            if not text.isascii():
                odd.append((part, len(part.texts)))
            part.texts.append(text)
            part.documents.append(document)
            part.origins.append(number)
    if odd and not settings.raw:
        _normalize(odd, others)
    return heads, others


def _normalize(odd: list[tuple[_Texts, int]], others: _Texts) -> None:
    """Replace texts by their normal forms, and add fields of the oddities found to the others.

    odd: texts beyond ASCII, by their places in lists.
    """
    # Not every message needs it.
    from nbspam.tokens.spelling.forms import normal_forms

    forms, facts = normal_forms([part.texts[place] for part, place in odd])
    found: dict[int, set[str]] = {}
    for number, (part, place) in enumerate(odd):
        part.texts[place] = forms[number]
        if number in facts:
            found.setdefault(part.documents[place], set()).update(facts[number])
    for document in sorted(found):
        # Behind the document's other fields.
        place = bisect_right(others.documents, document)
        others.texts.insert(place, " ".join(sorted(found[document])).encode())
        others.documents.insert(place, document)
        others.origins.insert(place, _ORIGINS.index("defect"))


def _behind(first: _Fields, second: _Fields) -> _Fields:
    """Return the first fields followed by the second."""
    return _Fields(
        np.concatenate([first.start[:-1], second.start]),
        np.concatenate([first.document, second.document]),
        np.concatenate([first.origin, second.origin]),
    )


def _cut_heads(joined: bytes, heads: _Fields) -> _Fields:
    """Return the names and values of the headers in these heads, as alternating fields."""
    before = heads.start - 1  # the zero byte before each head, and the one after the last
    text = np.frombuffer(joined, np.uint8, before[-1] + 1)
    begins = (text[:-1] == _LINE_FEED) & (text[1:] != _BLANK) & (text[1:] != _TAB)
    # Text before the first header is a line of its own, without a name.
    begins[before[:-1]] = True
    line = places_of(begins)
    n_lines = differences(line.searchsorted(before))
    kind = heads.origin.repeat(n_lines)
    end = np.concatenate([line[1:], before[-1:]])
    colons = np.concatenate([places_of(text == _COLON), [len(text)]])
    colon = colons.take(colons.searchsorted(line))
    is_header = (colon < end) & (text.take(line) == _LINE_FEED)
    colon = np.where(is_header, colon, end)
    origin = _NAMES.origins(joined, kind, line + 1, np.where(is_header, colon, 0))
    start = np.empty(2 * len(line) + 1, np.int64)  # of a name, of its value, and so on
    start[:-1:2] = line + 1
    start[1::2] = np.minimum(colon + 1, end)
    start[-1] = before[-1] + 1
    return _Fields(start, heads.document.repeat(2 * n_lines), origin.ravel())


class _Names:
    """A cache of the origins of headers, by name and kind of head.

    Most messages have the same few header names.  They are compared byte by byte: by hashes alone
    anybody could choose a name that decides how the headers of other messages are read.
    """

    def __init__(self) -> None:
        # Ascending keys, spelt names (_WINDOWS + 1, n_names), and origins (n_names, 2).  One
        # tuple, so that threads see all change together.
        self._known = (
            np.zeros(1, np.uint64),
            np.zeros((_WINDOWS + 1, 1), np.uint64),
            np.full((1, 2), _NOT_COUNTED),
        )

    def origins(self, joined: bytes, kind: Integers, start: Integers, end: Integers) -> Integers:
        """Return the origins of headers' names and values, shape (n_lines, 2).

        kind: (n_lines,) kind of head.  start, end: (n_lines,) where the name is; `end` is 0
        for a line that is not a header.
        """
        length = np.maximum(end - start, 0)
        spelt = _spelt(joined, start, length, 2 * kind + (end > 0))
        key = (spelt * _MULTIPLIERS).sum(axis=0, dtype=np.uint64)
        keys, names, origins = self._known
        place = np.minimum(keys.searchsorted(key), len(keys) - 1)
        answer: Integers = origins.take(place, axis=0)
        is_long = length > _WINDOWS * WORD_BYTES
        new = places_of((names.take(place, axis=1) != spelt).any(axis=0) | is_long)
        if len(new):
            found = np.array(_look_up(joined, kind[new], start[new], end[new]), np.int64)
            answer[new] = found
            _, first = np.unique(np.where(is_long, 0, key).take(new), return_index=True)
            chosen = first[~is_long.take(new.take(first))]
            if len(keys) + len(chosen) <= _MAX_NAMES:
                order = np.argsort(keys := np.append(keys, key.take(new.take(chosen))))
                names = np.append(names, spelt.take(new.take(chosen), axis=1), axis=1)
                origins = np.append(origins, found.take(chosen, axis=0), axis=0)
                self._known = keys[order], names[:, order], origins[order]
        return answer


def _spelt(joined: bytes, start: Integers, length: Integers, kind: Integers) -> Keys:
    """Return names as numbers, each of eight bytes, and the lengths with the kinds.

    Shape (_WINDOWS + 1, n_names).  Names that are longer are cut.
    """
    spelt = np.empty((_WINDOWS + 1, len(start)), np.uint64)
    # Zero bytes follow the last name, but not as many as the windows reach.
    at = np.minimum(start + _WINDOW_STARTS, len(joined) - WORD_BYTES)
    spelt[:-1] = first_bytes(joined, at, length - _WINDOW_STARTS)
    spelt[-1] = 2 * len(_KINDS) * length + kind
    return spelt


_NAMES = _Names()


def _look_up(
    joined: bytes, kind: Integers, start: Integers, end: Integers
) -> list[tuple[int, int]]:
    """Return the origins of names and values, looked up one by one (see `_Names.origins`)."""
    found = []
    for number, begin, stop in zip(kind.tolist(), start.tolist(), end.tolist(), strict=True):
        if stop:
            origins = HEADS[_KINDS[number]][joined[begin:stop]]
            found.append((_NUMBER[origins.name], _NUMBER[origins.value]))
        else:
            found.append((_NOT_COUNTED, _NOT_COUNTED))
    return found


def _runs(joined: bytes, fields: _Fields) -> tuple[bytes, _Fields]:
    """Return the text that is cut into runs of characters, and its fields."""
    chosen = np.flatnonzero(_HAS_CHARACTERS[fields.origin])
    # Sorted by document, because a subject and a body, which are far apart in the buffer, can
    # have the same run with the same key: the entries of one key must be in the order of documents
    # (see `tokenizer._count`).
    chosen = chosen[np.argsort(fields.document[chosen], kind="stable")]
    bounds = zip(fields.start[chosen].tolist(), fields.start[chosen + 1].tolist(), strict=True)
    texts = [folded(joined[start:end]) + b"\0" for start, end in bounds]
    start = len(joined) + offsets_of([len(text) for text in texts])
    number = np.full(len(texts), _NUMBER[CHARACTERS])
    return b"".join(texts), _Fields(start, fields.document[chosen], number)
