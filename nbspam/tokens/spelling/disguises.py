"""Words of text written so that a program does not know them, and people do.

A digit between two letters stands for the letter that it looks like: v1agra.  Letters that stand
apart, four or more with the same sign between all of them, are one word: c-h-e-a-p.

Secret: which ASCII spellings are the same word.
"""

import re

import numpy as np

from nbspam.arrays import Booleans, Integers, places_of

# For bytes.translate; all other bytes stay as they are.
_LIKE_LETTERS = bytes.maketrans(b"013457", b"oieast")
_DIGIT = re.compile(rb"(?<=[a-z])[013457](?=[a-z])")
_APART = re.compile(rb"[a-z]([-_])[a-z](?:\1[a-z]){2,}+")
_ZERO, _SEVEN, _A, _Z = b"07az"
_HYPHEN, _UNDERLINE = b"-_"
_ALIKE = np.frombuffer(_LIKE_LETTERS, np.uint8)


def without_disguise(word: bytes) -> bytes:
    """Return a word of text, in lower case, as it is meant; this function defines it."""
    if _APART.fullmatch(word):
        return word[::2]
    return _DIGIT.sub(lambda match: match[0].translate(_LIKE_LETTERS), word)


def remove_disguises(words: bytes, start: Integers, is_text: Booleans) -> bytes:
    """Return a buffer of the same length whose words of text are as they are meant.

    words: lower case, with zero bytes around all words.  start: (n_fields + 1,) where fields
    start; is_text: (n_fields,) the fields that may change.
    """
    first = int(start[0]) - 1  # the zero byte before the first field
    text = np.frombuffer(words, np.uint8)[first:]
    # Whole arrays of bytes, because indices of all digits would take far longer.
    letter = text - np.uint8(_A) <= _Z - _A
    digit = text[1:-1] - np.uint8(_ZERO) <= _SEVEN - _ZERO
    digit &= letter[:-2]
    digit &= letter[2:]
    sign = text == _HYPHEN
    sign |= text == _UNDERLINE
    apart = sign[:-4] & sign[2:-2]
    apart &= letter[1:-3]
    digits = places_of(digit) + (first + 1)
    signs = places_of(apart) + first
    digits, signs = (
        each[is_text[start.searchsorted(each, "right") - 1]] for each in (digits, signs)
    )
    if not len(digits) + len(signs):
        return words
    changed = np.frombuffer(words, np.uint8).copy()
    changed[digits] = _ALIKE[changed[digits]]
    _join_letters(changed, words, signs)
    return changed.tobytes()


def _join_letters(changed: np.ndarray, words: bytes, signs: Integers) -> None:
    """Write joined letters, and zeros behind them, over words that have signs at these places."""
    end = 0
    for place in signs.tolist():
        if place >= end:  # in another word than the sign before
            begin, end = words.rfind(b"\0", 0, place) + 1, words.index(b"\0", place)
            if _APART.fullmatch(words, begin, end):
                joined = np.frombuffer(words, np.uint8)[begin:end:2]
                changed[begin:end] = 0
                changed[begin : begin + len(joined)] = joined
