"""The table of characters: what each one becomes in normal form, and where neighbours matter.

A character is added when a text first has it, because all of Unicode would take seconds.  What
the table says comes from the functions that define the normal form.

Secret: how all that is known about a character is kept as numbers.
"""

import re
import unicodedata
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
    SEEN_AS_LATIN,
    SPACELESS,
    SYMBOLS,
    folded,
    without_symbols,
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
_INVISIBLE, _SPACELESS, _SYMBOL = map(re.compile, (INVISIBLE, SPACELESS, SYMBOLS))
_FIRST, _SECOND, _WIDE = map(re.compile, (MAY_BE_FIRST, MAY_BE_SECOND, FULLWIDTH))
_LATIN, _LATIN_MARK = re.compile(LATIN_LETTER), re.compile(LATIN_MARK)
_WITH_MARK = re.compile(LATIN_LETTER + LATIN_MARK)


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
    if character.isalnum():
        return ord(character)
    return SYMBOL if _SYMBOL.match(character) else ord(without_symbols(character))


def _classes_of(character: str, half: str, whole: str) -> int:
    """Return the classes of a character; half: in NFKC only; whole: folded."""
    if _INVISIBLE.match(character):
        return KNOWN | DROPPED | OVERRIDES * (character == "\u202e")
    found = KNOWN | FIRST * bool(_FIRST.match(half[-1]) or _FIRST.match(whole[-1]))
    if len(whole) > 1:
        found |= LONG
    elif _SPACELESS.match(whole) and _form_of(whole) == ord(whole):
        found |= WITHOUT_SPACES
        if character == whole >= _SIMPLE and character.isalpha():
            return found  # Chinese has thousands of these
    found |= SECOND * bool(_SECOND.match(half) or _SECOND.match(whole))
    found |= WIDE * bool(_WIDE.match(character))
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
    is_simple = half == whole == character
    return found | (COMBINES if is_simple else UNSTABLE)


def _classes_in_words(whole: str) -> int:
    decomposed = unicodedata.normalize("NFD", whole)
    found = LATIN * bool(_LATIN.search(decomposed))
    found |= LOOKS_LATIN * (not SEEN_AS_LATIN.isdisjoint(whole))
    found |= DIGIT * all(c.isdecimal() for c in whole)
    return found | MARKED * bool(_LATIN_MARK.match(whole) or _WITH_MARK.search(decomposed))
