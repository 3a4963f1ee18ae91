"""The normal forms of many texts at once, as arrays of code points.

A table replaces most characters one by one.  Words in which neighbours matter, and texts that may
have look-alikes, are left to the functions that define the normal form.

Secret: where neighbours can matter.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Columns, Integers
from nbspam.tokens.characterforms import (
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
    CharacterForms,
)
from nbspam.tokens.documents import offsets_of
from nbspam.tokens.normalize import (
    MAX_MARKS,
    folded,
    normalize,
    without_many_marks,
    without_symbols,
)
from nbspam.tokens.slices import places_in

_GAP = 512  # bytes of lines of ASCII that are skipped, as they are normal but for case
_LANE = 8  # bytes that are tested together
_HIGH_BITS = np.uint64(0x8080808080808080)
_LINE_FEED, _SPACE = b"\n "
_IS_LETTER = np.array([chr(code).isalpha() and code < 128 for code in range(129)])


class NormalForms(NamedTuple):
    """Texts in normal form, and the oddities of those that have some, by index."""

    texts: list[bytes]
    facts: dict[int, tuple[str, ...]]


@cache
def _table() -> CharacterForms:
    """Return the table that all texts share."""
    return CharacterForms()


def normal_forms(texts: Sequence[bytes]) -> NormalForms:
    """Return what `normalize` returns for each text, except for the case of ASCII letters."""
    joined = b"\n".join(texts)
    if joined.isascii():
        return NormalForms(list(texts), {})
    n_lines = [text.count(b"\n") + 1 for text in texts]
    pieces = _odd_pieces(joined)
    piece_lines = [joined.count(b"\n", start, end) + 1 for start, end in pieces]
    odd = b"\n".join([joined[start:end] for start, end in pieces])
    form, found, unclear = _form_of_lines(odd)
    done, parts = 0, []
    for (start, end), part in zip(pieces, _cut(form, piece_lines), strict=True):
        parts += joined[done:start], part
        done = end
    forms = _cut(b"".join((*parts, joined[done:])), n_lines)

    def text_of(lines: Integers) -> set[int]:
        """Return the texts that lines of odd pieces belong to."""
        before = [joined.count(b"\n", 0, start) for start, _ in pieces] - offsets_of(piece_lines)[:-1]
        piece = np.searchsorted(offsets_of(piece_lines), lines, "right") - 1
        line = lines + before.take(piece)
        return set((np.searchsorted(offsets_of(n_lines), line, "right") - 1).tolist())

    facts: dict[int, tuple[str, ...]] = {}
    for fact in sorted(found):
        for text in text_of(found[fact]):
            facts[text] = (*facts.get(text, ()), fact)
    for text in text_of(unclear):
        forms[text], facts[text] = normalize(texts[text])
    return NormalForms(forms, facts)


def _odd_pieces(joined: bytes) -> list[tuple[int, int]]:
    """Return starts and ends of pieces of whole lines with all bytes beyond ASCII, in order."""
    lanes = np.frombuffer(joined + bytes(-len(joined) % _LANE), np.uint64) & _HIGH_BITS
    odd = np.flatnonzero(lanes) * _LANE
    far = np.flatnonzero(np.diff(odd) > _GAP)
    firsts, lasts = odd[np.append(0, far + 1)], odd[np.append(far, -1)]
    pieces: list[tuple[int, int]] = []
    begin = 0  # of the first line behind the last piece
    for first, last in zip(firsts.tolist(), (lasts + _LANE - 1).tolist(), strict=True):
        if last >= begin:
            start = joined.rfind(b"\n", begin, max(first, begin)) + 1 or begin
            end = joined.find(b"\n", last)
            end = end if end >= 0 else len(joined)
            pieces.append((start, end))
            begin = end + 1
    return pieces


def _cut(text: bytes, n_lines: Sequence[int]) -> list[bytes]:
    """Return texts of so many lines each; a line feed separates them, too."""
    feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED)
    ends = np.append(feeds, len(text)).take(offsets_of(n_lines)[1:] - 1).tolist()
    starts = [0, *(end + 1 for end in ends)]
    return [text[start:end] for start, end in zip(starts, ends, strict=False)]


class _Text(NamedTuple):
    """Characters of all texts; lines separate texts."""

    codes: Columns
    classes: Integers

    def any_of(self, classes: int) -> Booleans:
        """Return which characters have one of these classes."""
        found: Booleans = (self.classes & np.uint16(classes)) != 0
        return found

    def places_of(self, classes: int) -> Integers:
        """Return the positions of characters that have one of these classes."""
        return np.flatnonzero(self.any_of(classes))

    def lines(self, places: Integers) -> Integers:
        """Return the numbers of the lines in which these positions are."""
        return np.searchsorted(np.flatnonzero(self.codes == _LINE_FEED), places)


def _form_of_lines(lines: bytes) -> tuple[bytes, dict[str, Integers], Integers]:
    """Return lines in normal form, where oddities are, and which lines need the definition.

    The second and third are numbers of lines.
    """
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
        text, facts["zero-width"] = _visible(text)
    if met & LOOKS_LATIN and met & LATIN:
        unclear.append(text.lines(_disguised(text)))
    return _form(text, met), facts, np.concatenate(unclear)


def _visible(text: _Text) -> tuple[_Text, Integers]:
    """Return text without invisible characters, and the lines where ASCII letters are apart."""
    kept = np.flatnonzero(~text.any_of(DROPPED))
    left, right = kept[:-1], kept[1:]
    apart = right - left > 1
    left, right = left[apart], right[apart]
    letters = [_IS_LETTER.take(text.codes.take(each), mode="clip") for each in (left, right)]
    split = text.lines(left[letters[0] & letters[1]])
    return _Text(text.codes.take(kept), text.classes.take(kept)), split


def _disguised(text: _Text) -> Integers:
    """Return where look-alikes are next to Latin letters; digits and marks may be between."""
    # Marks, because characters compose, and marks of Latin words are dropped.
    kept = np.flatnonzero(~text.any_of(DIGIT | MARK) | text.any_of(LOOKS_LATIN))
    classes = text.classes.take(kept)
    latin, alike = (classes & LATIN) != 0, (classes & LOOKS_LATIN) != 0
    beside = latin[1:] & alike[:-1] | latin[:-1] & alike[1:] 
    return np.asarray(kept[1:][beside])


def _form(text: _Text, met: int) -> bytes:
    """Return visible text in normal form; met: all classes of its characters."""
    table = _table()
    form, classes = table.forms.take(text.codes), text.classes
    places = [np.empty(0, np.int64)]
    if met & (UNSTABLE | SECOND | COMBINES):
        places.append(_unstable(text))
    if met & MARK:
        places.append(_piled(text))
    if met & MARKED:
        places.append(_marked_thrice(text))
    words = _words_at(text, np.concatenate(places))
    if met & LONG or len(words[0]):
        form = _replaced(form, _replacements(text, *words))
        classes = table.classes(form)
        met |= int(np.bitwise_or.reduce(classes))
    return _spaced(form, (classes & WITHOUT_SPACES) != 0 if met & WITHOUT_SPACES else None)
    

def _unstable(text: _Text) -> Integers:
    """Return the marks that may compose with what is before them, or change their places."""
    at = text.places_of(UNSTABLE | SECOND | COMBINES)
    here, before = text.classes.take(at), text.classes.take(at - 1)
    orders = _table().orders
    is_mark = (here & COMBINES) != 0
    found = (here & UNSTABLE) != 0
    found |= ((here & SECOND) != 0) & ((before & (FIRST | COMBINES | ENDS_WITH_MARK)) != 0)
    found |= is_mark & ((before & ENDS_WITH_MARK) != 0)
    found |= is_mark & (orders.take(text.codes.take(at - 1)) > orders.take(text.codes.take(at)))
    return np.asarray(at[found])


def _piled(text: _Text) -> Integers:
    """Return the marks behind more marks than may be stacked on a letter."""
    at = text.places_of(MARK)
    far = at[MAX_MARKS:]
    return np.asarray(far[far - at[: len(far)] == MAX_MARKS])


def _marked_thrice(text: _Text) -> Integers:
    """Return the letters with marks that follow two others in a Latin word."""
    at = text.places_of(MARKED)
    between = np.cumsum(~text.any_of(LATIN | MARK)).take(at)
    return np.asarray(at[2:][between[2:] == between[:-2]])


def _words_at(text: _Text, places: Integers) -> tuple[Integers, Integers]:
    """Return starts and ends of the words, between blanks, that are at these positions."""
    if not len(places):
        return places, places
    blanks = np.flatnonzero(text.codes <= _SPACE)
    bounds = np.concatenate([[-1], blanks, [len(text.codes)]])
    word = np.unique(np.searchsorted(blanks, places))
    return bounds.take(word) + 1, bounds.take(word + 1)


class _Slices(NamedTuple):
    """Slices of the text, in order, and what replaces them: slices of a source."""

    start: Integers
    end: Integers
    source: Columns
    first: Integers
    length: Integers


def _replacements(text: _Text, start: Integers, end: Integers) -> _Slices:
    """Return the forms of words, by the definition, and of other LONG characters."""
    table = _table()
    at = text.places_of(LONG)
    if not len(start):
        codes = text.codes.take(at)
        return _Slices(at, at + 1, table.pool, table.forms.take(codes), table.lengths.take(codes))
    words = np.append(text.codes, np.uint32(_LINE_FEED)).take(places_in(start, end - start + 1))
    words[np.cumsum(end - start + 1) - 1] = _LINE_FEED
    lines = words.tobytes().decode("utf-32-le")
    shaped = without_symbols(without_many_marks(folded(lines))).encode("utf-32-le")
    source = np.frombuffer(shaped, np.uint32)
    feeds = np.flatnonzero(source == _LINE_FEED)
    first = np.append(0, feeds + 1)[:-1]
    word = np.searchsorted(start, at, "right") - 1
    at = at[(word < 0) | (at >= end.take(word))]
    codes = text.codes.take(at)
    starts = np.concatenate([start, at])
    order = np.argsort(starts, kind="stable")
    ends = np.concatenate([end, at + 1])
    firsts = np.concatenate([first, table.forms.take(codes) + len(source)])
    lengths = np.concatenate([feeds - first, table.lengths.take(codes)])
    starts, ends, firsts, lengths = (each.take(order) for each in (starts, ends, firsts, lengths))
    return _Slices(starts, ends, np.concatenate([source, table.pool]), firsts, lengths)


def _replaced(form: Columns, new: _Slices) -> Columns:
    """Return the forms of single characters with these slices replaced."""
    # In turn what stays, which is a slice of `form`, and what is new.
    starts, lengths = np.zeros((2, len(new.start) + 1, 2), np.int64)
    starts[1:, 0], starts[:-1, 1] = new.end, new.first.astype(np.int64) + len(form)
    lengths[:-1, 0], lengths[-1, 0] = new.start, len(form)
    lengths[:, 0] -= starts[:, 0]
    lengths[:-1, 1] = new.length
    both = np.concatenate([form, new.source])
    return np.asarray(both.take(places_in(starts.ravel(), lengths.ravel())))


def _spaced(form: Columns, is_run: Booleans | None) -> bytes:
    """Return the form with spaces for symbols, a row of them as one, and around runs."""
    symbol = form == SYMBOL
    times = None
    if symbol.any():
        form = np.where(symbol, np.uint32(_SPACE), form)
        repeated = symbol[1:] & symbol[:-1]
        if repeated.any():
            times = np.ones(len(form), np.uint8)
            times[1:] -= repeated
    if is_run is not None:
        times = np.ones(len(form), np.uint8) if times is None else times
        edges = np.flatnonzero(is_run[1:] != is_run[:-1]) + 1
        if is_run[0]:
            edges = np.append(0, edges)
        times[edges] = 2
    if times is not None:
        ends = np.cumsum(times)
        form = np.repeat(form, times)
        if is_run is not None:
            form[ends[edges] - 2] = _SPACE
    tail = b" " if is_run is not None and is_run[-1] else b""
    return form.tobytes().decode("utf-32-le").encode() + tail
