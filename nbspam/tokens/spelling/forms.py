"""The normal forms of many texts at once, as arrays of code points.

A table replaces characters one by one.  Words in which neighbours matter, and texts that may have
look-alikes, are left to the functions that define the normal form.

Secret: where neighbours can matter.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Columns, Indices, Integers
from nbspam.tokens.documents import offsets_of
from nbspam.tokens.slices import places_in
from nbspam.tokens.spelling.normalize import (
    MAX_MARKS,
    folded,
    normalize,
    without_many_marks,
    without_symbols,
)
from nbspam.tokens.spelling.table import (
    COMBINES,
    DIGIT,
    DROPPED,
    ENDS_WITH_MARK,
    FIRST,
    LATIN,
    LONG,
    LOOKS_LATIN,
    MARK,
    MARKED,
    OVERRIDES,
    SECOND,
    SYMBOL,
    UNSTABLE,
    WIDE,
    WITHOUT_SPACES,
    CharacterTable,
)

_GAP = 256  # bytes of ASCII lines that are skipped: all that can change in them is case
_ODD = re.compile(rb"[\x80-\xff]")
_LINE_FEED, _SPACE = b"\n "
_IS_LETTER = np.array([code < 128 and chr(code).isalpha() for code in range(129)])


class NormalForms(NamedTuple):
    """Texts in normal form, and the oddities of those that have some, by index."""

    texts: list[bytes]
    facts: dict[int, tuple[str, ...]]


@cache
def _table() -> CharacterTable:
    """Return the table that all texts share."""
    return CharacterTable()


def normal_forms(texts: Sequence[bytes]) -> NormalForms:
    """Return what `normalize` returns for each UTF-8 text; lines of ASCII may differ in case."""
    pieces = [_odd_pieces(text) for text in texts]
    odd = [text[start:end] for text, of in zip(texts, pieces, strict=True) for start, end in of]
    if not odd:
        return NormalForms(list(texts), {})
    first = offsets_of([piece.count(b"\n") + 1 for piece in odd])
    lines = _normal_lines(b"\n".join(odd))
    found = iter(_cut(lines.form, first))
    forms = [_with_pieces(text, of, found) for text, of in zip(texts, pieces, strict=True)]

    def texts_at(numbers: Integers) -> set[int]:
        """Return the texts that these lines of the pieces belong to."""
        text = np.repeat(np.arange(len(texts)), list(map(len, pieces)))
        return set(text.take(np.searchsorted(first, numbers, "right") - 1).tolist())

    facts: dict[int, tuple[str, ...]] = {}
    for fact, numbers in sorted(lines.facts.items()):
        facts |= {text: (*facts.get(text, ()), fact) for text in texts_at(numbers)}
    for number in texts_at(lines.unclear):
        forms[number], facts[number] = normalize(texts[number])
    return NormalForms(forms, {text: found for text, found in facts.items() if found})


def _odd_pieces(text: bytes) -> list[tuple[int, int]]:
    """Return starts and ends of pieces of whole lines with all bytes beyond ASCII, in order."""
    if text.isascii():
        return []
    pieces: list[tuple[int, int]] = []
    begin = 0
    while (first := _first_odd(text, begin)) >= 0:
        start = text.rfind(b"\n", begin, first) + 1 or begin
        end = first
        while not text[end : end + _GAP].isascii():
            end = text.find(b"\n", end + _GAP)
            end = end if end >= 0 else len(text)
        pieces.append((start, end))
        begin = end + 1
    return pieces


def _first_odd(text: bytes, begin: int) -> int:
    """Return where the first byte beyond ASCII is from here on, -1 if there is none."""
    for start in range(begin, len(text), _GAP):
        if not text[start : start + _GAP].isascii():
            return next(_ODD.finditer(text, start)).start()
    return -1


def _with_pieces(text: bytes, pieces: list[tuple[int, int]], forms: Iterator[bytes]) -> bytes:
    """Return a text with its pieces replaced by the next of these forms."""
    parts: list[bytes] = []
    copied = 0
    for (start, end), form in zip(pieces, forms, strict=False):
        parts += text[copied:start], form
        copied = end
    return b"".join((*parts, text[copied:]))


def _cut(text: bytes, first: Integers) -> list[bytes]:
    """Return a text cut into pieces of lines.

    first: (n_pieces + 1,) the numbers of the lines where pieces start, and the number of lines.
    """
    if len(first) == 2:
        return [text]
    feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED)
    ends = np.append(feeds, len(text)).take(first[1:] - 1).tolist()
    starts = [0, *(end + 1 for end in ends)]
    return [text[start:end] for start, end in zip(starts, ends, strict=False)]


class _Text(NamedTuple):
    """The characters of all lines."""

    codes: Columns
    classes: Indices

    def any_of(self, classes: int) -> Booleans:
        """Return which characters have one of these classes, shape (n_characters,)."""
        found: Booleans = (self.classes & np.uint16(classes)) != 0
        return found

    def places_of(self, classes: int) -> Integers:
        """Return the positions of characters that have one of these classes."""
        return np.flatnonzero(self.any_of(classes))

    def lines(self, places: Integers) -> Integers:
        """Return the numbers of the lines in which these positions are."""
        return np.searchsorted(np.flatnonzero(self.codes == _LINE_FEED), places)

    def taken(self, places: Integers) -> "_Text":
        """Return the characters at these positions."""
        return _Text(self.codes.take(places), self.classes.take(places))


class _Lines(NamedTuple):
    """Lines in normal form, and numbers of some of them."""

    form: bytes
    facts: dict[str, Integers]  # the lines that have an oddity
    unclear: Integers  # the lines whose texts need the definition


def _normal_lines(lines: bytes) -> _Lines:
    """Return lines in normal form."""
    codes = np.frombuffer(lines.decode("utf-8", "replace").encode("utf-32-le"), np.uint32)
    text = _Text(codes, _table().classes(codes))
    met = int(np.bitwise_or.reduce(text.classes))
    facts: dict[str, Integers] = {}
    unclear = [np.empty(0, np.int64)]
    if met & OVERRIDES:
        unclear.append(text.lines(text.places_of(OVERRIDES)))
    if met & WIDE:
        wide = text.any_of(WIDE)
        facts["fullwidth"] = text.lines(np.flatnonzero(wide[1:] & wide[:-1]))
    if met & DROPPED:
        kept = np.flatnonzero(~text.any_of(DROPPED))
        facts["zero-width"] = text.lines(_split(codes, kept))
        text = text.taken(kept)
    if met & LOOKS_LATIN and met & LATIN:
        unclear.append(text.lines(_disguised(text)))
    return _Lines(_form(text, met), facts, np.concatenate(unclear))


def _split(codes: Columns, kept: Integers) -> Integers:
    """Return where invisible characters stand between two ASCII letters.

    kept: the positions of visible characters.
    """
    apart = np.flatnonzero(np.diff(kept) > 1)
    left, right = kept.take(apart), kept.take(apart + 1)
    letters = (_IS_LETTER.take(codes.take(each), mode="clip") for each in (left, right))
    return np.asarray(left[np.logical_and(*letters)])


def _disguised(text: _Text) -> Integers:
    """Return where a look-alike is next to a Latin letter; digits and marks may be between."""
    # Marks, because they compose with letters or are dropped.
    kept = np.flatnonzero(~text.any_of(DIGIT | MARK) | text.any_of(LOOKS_LATIN))
    left = text.taken(kept)
    latin, alike = left.any_of(LATIN), left.any_of(LOOKS_LATIN)
    beside = latin[1:] & alike[:-1] | latin[:-1] & alike[1:]
    return np.asarray(kept[1:][beside])


def _form(text: _Text, met: int) -> bytes:
    """Return visible text in normal form; met: all classes of its characters."""
    table = _table()
    form, classes = table.forms.take(text.codes), text.classes
    places = _unclear_places(text, met)
    if met & LONG or len(places):
        form = _replaced(form, _replacements(text, *_words_at(text, places)))
        classes = table.classes(form)
    return _spaced(form, (classes & np.uint16(WITHOUT_SPACES)) != 0)


def _unclear_places(text: _Text, met: int) -> Integers:
    """Return places in the words that need the definition."""
    places = [np.empty(0, np.int64)]
    if met & (UNSTABLE | SECOND | COMBINES):
        places.append(_unstable(text))
    if met & MARK:
        at = text.places_of(MARK)
        places.append(at[MAX_MARKS:][at[MAX_MARKS:] - at[:-MAX_MARKS] == MAX_MARKS])
    if met & MARKED:
        # Three letters with marks in a Latin word.
        at = text.places_of(MARKED)
        word = np.searchsorted(np.flatnonzero(~text.any_of(LATIN | MARK)), at)
        places.append(at[2:][word[2:] == word[:-2]])
    return np.concatenate(places)


def _unstable(text: _Text) -> Integers:
    """Return where a character may compose with the one before, or marks are not in order."""
    at = text.places_of(UNSTABLE | SECOND | COMBINES)
    here, before = text.taken(at), text.taken(at - 1)
    orders = _table().orders
    found = here.any_of(UNSTABLE)
    found |= here.any_of(SECOND) & before.any_of(FIRST | COMBINES | ENDS_WITH_MARK)
    found |= here.any_of(COMBINES) & (
        before.any_of(ENDS_WITH_MARK) | (orders.take(before.codes) > orders.take(here.codes))
    )
    return np.asarray(at[found])


def _words_at(text: _Text, places: Integers) -> tuple[Integers, Integers]:
    """Return the starts and ends of the words, between blanks, that have these places."""
    blanks = np.flatnonzero(text.codes <= _SPACE)
    bounds = np.concatenate([[-1], blanks, [len(text.codes)]])
    word = np.unique(np.searchsorted(blanks, places))
    return bounds.take(word) + 1, bounds.take(word + 1)


class _Slices(NamedTuple):
    """Slices of a text, in order, and the slices of a source that replace them."""

    start: Integers
    end: Integers
    source: Columns
    first: Integers
    length: Integers


def _replacements(text: _Text, start: Integers, end: Integers) -> _Slices:
    """Return the forms of words, by the definition, and of all other LONG characters."""
    table = _table()
    source, first, length = _defined(text, start, end)
    long = text.places_of(LONG)
    word = np.searchsorted(start, long, "right") - 1
    outside = long >= end.take(word) if len(end) else np.ones(len(long), bool)
    long = long[outside | (word < 0)]
    codes = text.codes.take(long)
    starts = np.concatenate([start, long])
    order = np.argsort(starts, kind="stable")
    return _Slices(
        starts.take(order),
        np.concatenate([end, long + 1]).take(order),
        np.concatenate([source, table.pool]),
        np.concatenate([first, table.forms.take(codes) + np.int64(len(source))]).take(order),
        np.concatenate([length, table.lengths.take(codes)]).take(order),
    )


def _defined(text: _Text, start: Integers, end: Integers) -> tuple[Columns, Integers, Integers]:
    """Return the forms of words by the definition, joined, and their starts and lengths."""
    lengths = end - start + 1
    words = np.append(text.codes, np.uint32(_LINE_FEED)).take(places_in(start, lengths))
    words[np.cumsum(lengths) - 1] = _LINE_FEED
    lines = without_many_marks(folded(words.tobytes().decode("utf-32-le")))
    form = np.frombuffer(without_symbols(lines).encode("utf-32-le"), np.uint32)
    feeds = np.flatnonzero(form == _LINE_FEED)
    first = np.append(0, feeds + 1)[:-1]
    return form, first, feeds - first


def _replaced(form: Columns, new: _Slices) -> Columns:
    """Return the forms of single characters with slices of them replaced."""
    # In turn what stays, which is a slice of `form`, and what is new.
    starts, lengths = np.zeros((2, len(new.start) + 1, 2), np.int64)
    starts[1:, 0], starts[:-1, 1] = new.end, new.first + len(form)
    lengths[:-1, 0], lengths[-1, 0] = new.start, len(form)
    lengths[:, 0] -= starts[:, 0]
    lengths[:-1, 1] = new.length
    both = np.concatenate([form, new.source])
    return np.asarray(both.take(places_in(starts.ravel(), lengths.ravel())))


def _spaced(form: Columns, in_run: Booleans) -> bytes:
    """Return the form with spaces for symbols, one for a row of them, and around runs.

    in_run: (n_characters,) which characters belong to runs without spaces.
    """
    symbol = form == SYMBOL
    form[symbol] = _SPACE
    repeated = np.flatnonzero(symbol[1:] & symbol[:-1]) + 1
    edges = np.flatnonzero(np.diff(in_run, prepend=False)) if in_run.any() else repeated[:0]
    if len(edges) + len(repeated):
        times = np.ones(len(form), np.uint8)
        times[repeated], times[edges] = 0, 2
        form = form.repeat(times)
        form[edges + np.arange(len(edges)) - np.searchsorted(repeated, edges)] = _SPACE
    return form.tobytes().decode("utf-32-le").encode() + b" " * bool(in_run[-1:].any())
