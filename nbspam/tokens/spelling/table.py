"""The table of characters: what each one becomes in normal form, and where neighbours matter.

A character is added when a text first has it, because all of Unicode would take seconds.  What
the table says comes from the functions that define the normal form.

Secret: how all that is known about a character is kept as numbers.
"""

import unicodedata
from bisect import bisect
from functools import cache
from operator import and_
from threading import Lock

import numpy as np

from nbspam.arrays import Columns, Indices
from nbspam.tokens.spelling.normalize import (
    FULLWIDTH,
    INVISIBLE,
    LATIN_LETTER,
    LATIN_MARK,
    MAY_BE_FIRST,
    MAY_BE_SECOND,
    NO_SYMBOLS,
    SEEN_AS_LATIN,
    SPACELESS,
    SYMBOLS,
    bounds_of,
    folded,
)

# The classes that a character can have; one without any is not in the table yet.
(
    KNOWN,
    DROPPED,  # it is invisible
    OVERRIDES,  # it turns text round
    WIDE,  # a full-width letter
    LONG,  # its normal form is in the pool
    WITHOUT_SPACES,  # its script is written so
    MARK,
    UNSTABLE,  # its form may depend on any neighbour
    SECOND,  # it may compose with the character before it
    FIRST,  # it may compose with the mark behind it
    COMBINES,  # it is a mark that has its place among other marks
    ENDS_WITH_MARK,  # its form does, and begins with something else
    LATIN,  # it may stand in a Latin word
    LOOKS_LATIN,
    DIGIT,
    MARKED,  # a Latin letter with a mark, or such a mark
) = (1 << n for n in range(16))
SYMBOL = 0xD800  # the form of a symbol; no text has this number, which is half of a UTF-16 pair
_N_CODES = 0x110000
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
        wholes = folded(lines).split("\n")
        forms, lengths, pool = [], [], self.pool.tolist()
        for whole in wholes:
            form = list(map(_form_of, whole))
            lengths.append(len(form))
            forms.append(form[0] if len(form) == 1 else len(pool))
            if len(form) > 1:
                pool += form
        codes = np.frombuffer(characters.encode("utf-32-le"), np.uint32)
        self.pool = np.array(pool, np.uint32)
        self.forms[codes], self.lengths[codes] = forms, lengths
        self.orders[codes] = list(map(unicodedata.combining, characters))
        # Last, because another thread takes a character that has classes for complete.
        self._classes[codes] = list(map(_classes_of, characters, halves, wholes))


def _form_of(character: str) -> int:
    """Return the code of a folded character, of a space or of SYMBOL."""
    if character.isalnum() or character.isascii():
        return ord(character)
    if _is_one(SYMBOLS, character):
        return SYMBOL
    return ord(character if unicodedata.category(character) in NO_SYMBOLS else " ")


def _is_one(pattern: str, character: str) -> bool:
    """Return whether a pattern of ranges has this character."""
    return bisect(_bounds(pattern), character) % 2 == 1


# Ranges are compared, because compiling such patterns takes longer than reading a message.
_bounds = cache(bounds_of)


def _classes_of(character: str, half: str, whole: str) -> int:
    """Return the classes of a character; half: in NFKC only; whole: folded."""
    if _is_one(INVISIBLE, character):
        return KNOWN | DROPPED | OVERRIDES * (character == "\u202e")
    found = KNOWN
    if _is_one(MAY_BE_FIRST, half[-1]) or _is_one(MAY_BE_FIRST, whole[-1]):
        found |= FIRST
    if len(whole) > 1:
        found |= LONG
    elif _is_one(SPACELESS, whole) and _form_of(whole) == ord(whole):
        found |= WITHOUT_SPACES
        if character == whole >= _SIMPLE and character.isalpha():
            return found  # Chinese has thousands of these
    if _is_one(MAY_BE_SECOND, half[0]) or _is_one(MAY_BE_SECOND, whole[0]):
        found |= SECOND
    found |= WIDE * _is_one(FULLWIDTH, character)
    if not (half.isalnum() and whole.isalnum()):
        found |= _classes_by_marks(character, half, whole)
    if whole < _SIMPLE or len(whole) > 1:
        found |= _classes_in_words(whole)
    return found


def _classes_by_marks(character: str, half: str, whole: str) -> int:
    found = MARK * (unicodedata.category(character)[0] == "M")
    begin, end = (
        {unicodedata.combining(text[at]) for text in (half, whole)} | {0} for at in (0, -1)
    )
    if begin == {0}:
        return found | ENDS_WITH_MARK * (end != {0})
    return found | (COMBINES if half == whole == character else UNSTABLE)


def _classes_in_words(whole: str) -> int:
    decomposed = unicodedata.normalize("NFD", whole)
    letters = [_is_one(LATIN_LETTER, c) for c in decomposed]
    marks = [_is_one(LATIN_MARK, c) for c in decomposed]
    found = LATIN * any(letters)
    found |= LOOKS_LATIN * (not SEEN_AS_LATIN.isdisjoint(whole))
    found |= DIGIT * whole.isdecimal()
    return found | MARKED * (marks[0] or any(map(and_, letters, marks[1:])))
