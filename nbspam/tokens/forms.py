"""The normal forms of many texts at once, as arrays of code points.

A table replaces characters one by one.  Words in which neighbours matter, and texts that may have
look-alikes, are left to the functions that define the normal form.
"""

import re
import sys
import unicodedata
from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from operator import and_
from threading import Lock
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Columns, Indices, Integers, differences, distinct, positions_of
from nbspam.tokens import normalize
from nbspam.tokens.sparse import offsets_of, places_in

# --- the table of characters -----------------------------------------------------------------

# A character is added when a text first has it, because all of Unicode would take seconds.  Its
# entries come from the functions that define the normal form.

# The classes that a character can have; one without any is not in the table yet.
(
    KNOWN,
    DROPPED,  # it is invisible
    OVERRIDES,  # it turns text round
    WIDE,  # a full-width letter
    LONG,  # its normal form is in the pool
    WITHOUT_SPACES,  # its script is written so
    _MARK,
    UNSTABLE,  # its form may depend on any neighbour
    SECOND,  # it may compose with the character before it
    _FIRST,  # it may compose with the mark behind it
    COMBINES,  # it is a mark that has its place among other marks
    ENDS_WITH_MARK,  # its form does, and begins with something else
    LATIN,  # it may stand in a Latin word
    LOOKS_LATIN,
    DIGIT,
    _MARKED,  # a Latin letter with a mark, or such a mark
) = (1 << n for n in range(16))
SYMBOL = 0xD800  # the form of a symbol; no text has this number, which is half of a UTF-16 pair
_N_CODES = 0x110000
_UTF_32 = f"utf-32-{sys.byteorder[0]}e"  # characters as arrays of uint32 have them
_IDEOGRAPHS = slice(0x4E00, 0x9FFD)
_SIMPLE = "\u2000"  # no single character from here on is a Latin letter


class CharacterTable:
    """The table: arrays with an element for each code point."""

    def __init__(self) -> None:
        # The system gives memory only to those parts of the arrays that are written to.
        self._classes = np.zeros(_N_CODES, np.uint16)
        self.forms = np.zeros(_N_CODES, np.uint32)  # of LONG characters, the place in the pool
        self.lengths = np.zeros(_N_CODES, np.uint8)  # of normal forms
        self.orders = np.zeros(_N_CODES, np.uint8)  # combining classes
        self.pool: Columns = np.zeros(0, np.uint32)
        self._lock = Lock()
        # Two that `_add` cannot add.
        for code in (ord("\n"), SYMBOL):
            self._classes[code], self.forms[code], self.lengths[code] = KNOWN, code, 1
        # Of those below Chinese mail has thousands, which are alike.
        self._classes[_IDEOGRAPHS], self.lengths[_IDEOGRAPHS] = KNOWN | WITHOUT_SPACES, 1
        self.forms[_IDEOGRAPHS] = np.arange(_IDEOGRAPHS.start, _IDEOGRAPHS.stop)

    def classes(self, codes: Columns) -> Indices:
        """Return the classes of characters, sums of the constants above; same shape as codes."""
        classes: Indices = self._classes.take(codes)
        if not classes.all():
            missing = set(codes[classes == 0].tolist())
            with self._lock:  # else two threads might both append to the pool
                self._add("".join(map(chr, sorted(missing))))
            classes = self._classes.take(codes)
        return classes

    def _add(self, characters: str) -> None:
        # Line by line, so that no character is a neighbour of another.
        lines = "\n".join(characters)
        halves = unicodedata.normalize("NFKC", lines).split("\n")
        wholes = normalize.normal_form(lines).split("\n")
        forms, lengths, pool = [], [], self.pool.tolist()
        for whole in wholes:
            form = list(map(_form_of, whole))
            lengths.append(len(form))
            forms.append(form[0] if len(form) == 1 else len(pool))
            if len(form) > 1:
                pool += form
        codes = np.frombuffer(characters.encode(_UTF_32), np.uint32)
        self.pool = np.array(pool, np.uint32)
        self.forms[codes], self.lengths[codes] = forms, lengths
        self.orders[codes] = list(map(unicodedata.combining, characters))
        # Last, because another thread takes a character that has classes for complete.
        self._classes[codes] = list(map(_classes_of, characters, halves, wholes))


def _form_of(character: str) -> int:
    """Return the code of a folded character, of a space or of SYMBOL."""
    if character.isalnum() or character.isascii():
        return ord(character)
    if _is_one(normalize.SYMBOLS, character):
        return SYMBOL
    return ord(" " if normalize.is_symbol(character) else character)


def _is_one(pattern: str, character: str) -> bool:
    # Ranges are compared, because compiling such patterns takes longer than reading a message.
    return bisect(_bounds(pattern), character) % 2 == 1


@cache
def _bounds(pattern: str) -> list[str]:
    """Return the first characters inside and outside the ranges of a pattern in turn, sorted."""
    ranges = re.findall("(.)(?:-(.))?", pattern[1:-1])
    return sorted(
        chr(ord(bound) + beyond)
        for first, last in ranges
        for beyond, bound in enumerate((first, last or first))
    )


def _classes_of(character: str, half: str, whole: str) -> int:
    """Return the classes of a character; half: in NFKC only; whole: folded."""
    if _is_one(normalize.INVISIBLE, character):
        return KNOWN | DROPPED | OVERRIDES * (character == "\u202e")
    found = KNOWN
    if _is_one(normalize.MAY_BE_FIRST, half[-1]) or _is_one(normalize.MAY_BE_FIRST, whole[-1]):
        found |= _FIRST
    if len(whole) > 1:
        found |= LONG
    elif _is_one(normalize.SPACELESS, whole) and _form_of(whole) == ord(whole):
        found |= WITHOUT_SPACES
        if character == whole >= _SIMPLE and character.isalpha():
            return found  # Chinese has thousands of these
    if _is_one(normalize.MAY_BE_SECOND, half[0]) or _is_one(normalize.MAY_BE_SECOND, whole[0]):
        found |= SECOND
    found |= WIDE * _is_one(normalize.FULLWIDTH, character)
    if not (half.isalnum() and whole.isalnum()):
        found |= _classes_by_marks(character, half, whole)
    if whole < _SIMPLE or len(whole) > 1:
        found |= _classes_in_words(whole)
    return found


def _classes_by_marks(character: str, half: str, whole: str) -> int:
    found = _MARK * (unicodedata.category(half[0])[0] == "M")
    begin, end = (
        {unicodedata.combining(text[at]) for text in (half, whole)} | {0} for at in (0, -1)
    )
    if begin == {0}:
        return found | ENDS_WITH_MARK * (end != {0})
    return found | (COMBINES if half == whole == character else UNSTABLE)


def _classes_in_words(whole: str) -> int:
    decomposed = unicodedata.normalize("NFD", whole)
    letters = [_is_one(normalize.LATIN_LETTER, c) for c in decomposed]
    marks = [_is_one(normalize.LATIN_MARK, c) for c in decomposed]
    found = LATIN * any(letters)
    found |= LOOKS_LATIN * (not normalize.SEEN_AS_LATIN.isdisjoint(whole))
    found |= DIGIT * whole.isdecimal()
    return found | _MARKED * (marks[0] or any(map(and_, letters, marks[1:])))


_LINE_FEED, _SPACE, _LAST_ASCII = b"\n \x7f"
_IS_LETTER = np.array([code < 128 and chr(code).isalpha() for code in range(129)])


@cache
def _table() -> CharacterTable:
    """Return the table that all texts share."""
    return CharacterTable()


def normal_forms(texts: Sequence[bytes]) -> tuple[list[bytes], dict[int, tuple[str, ...]]]:
    """Return UTF-8 texts in normal form, and the oddities found in them, by index.

    As `normalize` and `with_pairs` do, but lines of ASCII stay as they are.
    """
    joined = b"\n".join([*texts, b""])
    octets = np.frombuffer(joined, np.uint8)
    end = positions_of(octets == _LINE_FEED)
    start = np.concatenate([[0], end + 1])[:-1]
    odd = positions_of(np.bitwise_or.reduceat(octets, start) > _LAST_ASCII)
    if not len(odd):
        return list(texts), {}
    start, end = start[odd], end[odd]
    starts, ends = start.tolist(), end.tolist()
    odd_text = b"\n".join([joined[i:j] for i, j in zip(starts, ends, strict=True)])
    form, odd_lines, unclear = _normal_lines(odd_text)
    lines = form.split(b"\n")
    pieces = [b""] * (2 * len(lines) + 1)  # text between odd lines, and their forms, in turn
    pieces[0::2] = [joined[i:j] for i, j in zip([0, *ends], [*starts, None], strict=True)]
    pieces[1::2] = lines
    normal = b"".join(pieces)
    longer = offsets_of(list(map(len, lines)) - (end - start))
    first = offsets_of([len(text) + 1 for text in texts])  # where the texts begin
    now = (first + longer.take(start.searchsorted(first))).tolist()
    forms = [normal[i : j - 1] for i, j in pairwise(now)]

    def texts_at(places: Integers) -> set[int]:
        """Return the texts that these odd lines belong to."""
        return set((first.searchsorted(start.take(places), "right") - 1).tolist())

    facts: dict[int, tuple[str, ...]] = {}
    for fact, places in sorted(odd_lines.items()):
        facts |= {text: (*facts.get(text, ()), fact) for text in texts_at(places)}
    for number in texts_at(unclear):
        form, facts[number] = normalize.normalize(texts[number])
        forms[number] = normalize.with_pairs(form)
    return forms, {text: named for text, named in facts.items() if named}


class _CharacterArray(NamedTuple):
    """The characters of all lines."""

    codes: Columns
    classes: Indices

    def any_of(self, classes: int) -> Booleans:
        """Return which characters have one of these classes, shape (n_characters,)."""
        found: Booleans = (self.classes & np.uint16(classes)) != 0
        return found

    def places_of(self, classes: int) -> Integers:
        """Return the positions of characters that have one of these classes."""
        return positions_of(self.any_of(classes))

    def lines(self, places: Integers) -> Integers:
        """Return the numbers of the lines in which these positions are."""
        return np.asarray(positions_of(self.codes == _LINE_FEED).searchsorted(places))

    def taken(self, places: Integers) -> "_CharacterArray":
        """Return the characters at these positions."""
        return _CharacterArray(self.codes.take(places), self.classes.take(places))


def _normal_lines(lines: bytes) -> tuple[bytes, dict[str, Integers], Integers]:
    """Return lines in normal form, and the numbers of some of them.

    These are lines that have an oddity, by its name, and those whose texts need the definition.
    """
    codes = np.frombuffer(lines.decode("utf-8", "replace").encode(_UTF_32), np.uint32)
    text = _CharacterArray(codes, _table().classes(codes))
    met = int(np.bitwise_or.reduce(text.classes))
    facts: dict[str, Integers] = {}
    unclear = [np.empty(0, np.int64)]
    if met & OVERRIDES:
        unclear.append(text.lines(text.places_of(OVERRIDES)))
    if met & WIDE:
        wide = text.any_of(WIDE)
        facts["fullwidth"] = text.lines(positions_of(wide[1:] & wide[:-1]))
    if met & DROPPED:
        kept = positions_of(~text.any_of(DROPPED))
        facts["zero-width"] = text.lines(_split(codes, kept))
        text = text.taken(kept)
    if met & LOOKS_LATIN and met & LATIN:
        unclear.append(text.lines(_disguised(text)))
    return _form(text, met), facts, np.concatenate(unclear)


def _split(codes: Columns, kept: Integers) -> Integers:
    """Return where invisible characters stand between two ASCII letters.

    kept: the positions of visible characters.
    """
    apart = positions_of(differences(kept) > 1)
    left, right = kept.take(apart), kept.take(apart + 1)
    letters = (_IS_LETTER.take(codes.take(each), mode="clip") for each in (left, right))
    return np.asarray(left[np.logical_and(*letters)])


def _disguised(text: _CharacterArray) -> Integers:
    """Return where a look-alike is next to a Latin letter; digits and marks may be between."""
    # Marks, because they compose with letters or are dropped.
    kept = positions_of(~text.any_of(DIGIT | _MARK) | text.any_of(LOOKS_LATIN))
    left = text.taken(kept)
    latin, alike = left.any_of(LATIN), left.any_of(LOOKS_LATIN)
    found = latin & alike  # two letters of one character: ㏀ is kω
    found[1:] |= latin[1:] & alike[:-1] | latin[:-1] & alike[1:]
    return np.asarray(kept[found])


def _form(text: _CharacterArray, met: int) -> bytes:
    """Return visible text in normal form; met: all classes of its characters."""
    table = _table()
    form, classes = table.forms.take(text.codes), text.classes
    places = _unclear_places(text, met)
    if met & LONG or len(places):
        form = _replaced(form, text, places)
        classes = table.classes(form)
    return _spaced(form, (classes & np.uint16(WITHOUT_SPACES)) != 0)


def _unclear_places(text: _CharacterArray, met: int) -> Integers:
    """Return places in the words that need the definition."""
    places = [np.empty(0, np.int64)]
    if met & (UNSTABLE | SECOND | COMBINES):
        places.append(_unstable(text))
    if met & _MARK:
        at, most = text.places_of(_MARK), normalize.MAX_MARKS
        last = at[most:]
        places.append(last[last - at[:-most] == most])
    if met & _MARKED:
        # Three letters with marks in a Latin word.
        at = text.places_of(_MARKED)
        word = positions_of(~text.any_of(LATIN | _MARK)).searchsorted(at)
        places.append(at[2:][word[2:] == word[:-2]])
    return np.concatenate(places)


def _unstable(text: _CharacterArray) -> Integers:
    """Return where a character may compose with the one before, or marks are not in order."""
    at = text.places_of(UNSTABLE | SECOND | COMBINES)
    here, before = text.taken(at), text.taken(at - 1)
    orders = _table().orders
    found = here.any_of(UNSTABLE)
    found |= here.any_of(SECOND) & before.any_of(_FIRST | COMBINES | ENDS_WITH_MARK)
    found |= here.any_of(COMBINES) & (
        before.any_of(ENDS_WITH_MARK) | (orders.take(before.codes) > orders.take(here.codes))
    )
    return np.asarray(at[found])


def _replaced(form: Columns, text: _CharacterArray, places: Integers) -> Columns:
    """Return the forms of single characters, with the forms of words and LONG characters in place.

    The words, between blanks, that have these places get their forms by the definition.
    """
    table = _table()
    blanks = positions_of(text.codes <= _SPACE)
    bounds = np.concatenate([[-1], blanks, [len(text.codes)]])
    word = distinct(blanks.searchsorted(places))
    start, end = bounds.take(word) + 1, bounds.take(word + 1)
    source, first, length = _defined(text, start, end)
    long = text.places_of(LONG)
    word = start.searchsorted(long, "right") - 1
    outside = long >= end.take(word) if len(end) else np.ones(len(long), bool)
    long = long[outside | (word < 0)]
    codes = text.codes.take(long)
    begin = np.concatenate([start, long])
    order = begin.argsort(kind="stable")
    both = np.concatenate([form, source, table.pool])
    first = np.concatenate([first, table.forms.take(codes) + np.int64(len(source))])
    # Alternately kept slices of `form`, and new text.
    starts, lengths = np.zeros((2, len(begin) + 1, 2), np.int64)
    starts[1:, 0] = np.concatenate([end, long + 1]).take(order)
    starts[:-1, 1] = first.take(order) + len(form)
    lengths[:-1, 0], lengths[-1, 0] = begin.take(order), len(form)
    lengths[:, 0] -= starts[:, 0]
    lengths[:-1, 1] = np.concatenate([length, table.lengths.take(codes)]).take(order)
    return np.asarray(both.take(places_in(starts.ravel(), lengths.ravel())))


def _defined(
    text: _CharacterArray, start: Integers, end: Integers
) -> tuple[Columns, Integers, Integers]:
    """Return the forms of words by the definition, joined, and their starts and lengths."""
    lengths = end - start + 1
    words = np.append(text.codes, np.uint32(_LINE_FEED)).take(places_in(start, lengths))
    words[lengths.cumsum() - 1] = _LINE_FEED
    lines = normalize.without_many_marks(normalize.normal_form(words.tobytes().decode(_UTF_32)))
    form = np.frombuffer(normalize.without_symbols(lines).encode(_UTF_32), np.uint32)
    feeds = positions_of(form == _LINE_FEED)
    first = np.concatenate([[0], feeds + 1])[:-1]
    return form, first, feeds - first


def _spaced(form: Columns, in_run: Booleans) -> bytes:
    """Return the form with spaces for symbols, one for a row of them, and runs cut into pairs.

    in_run: (n_characters,) which characters belong to runs without spaces, around which there
    are spaces, too.
    """
    symbol = form == SYMBOL
    form[symbol] = _SPACE
    repeated = positions_of(symbol[1:] & symbol[:-1]) + 1
    changes = in_run.copy()
    changes[1:] ^= in_run[:-1]
    edges = positions_of(changes)
    inner = positions_of(in_run[:-2] & in_run[1:-1] & in_run[2:]) + 1
    if len(edges) + len(repeated):
        times = np.ones(len(form), np.uint8)
        times[repeated], times[edges], times[inner] = 0, 2, 3
        form, end = form.repeat(times), times.cumsum(dtype=np.int64)
        form[end.take(edges) - 2], form[end.take(inner) - 2] = _SPACE, ord(normalize.BETWEEN_PAIRS)
    return form.tobytes().decode(_UTF_32).encode() + b" " * bool(in_run[-1:].any())
