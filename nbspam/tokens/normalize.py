"""The normal form of text that is not plain ASCII, and the oddities found in it.

Normalisation applies NFKC and case folding; drops invisible characters; turns text round that
an override shows from right to left; replaces look-alikes from other alphabets inside Latin
words, small capitals and letters in boxes by Latin letters; drops the marks of a Latin word if
three letters or more have some; cuts runs of Chinese, Japanese and Thai, which have no spaces,
into pairs of characters; and replaces every character that is not a letter, mark, digit or
currency sign by a space.

Secret: which spellings are the same token.
"""

import re
import unicodedata
from functools import cache
from operator import add
from typing import Any

import numpy as np

# Case-folded Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKES = str.maketrans(
    "авгеѕіјӏкмнорстухѡԁһԛԝьαβγεικνορτυχω",
    "abresijlkmhopctyxwdhqwbabyeikvoptuxw",
)
_SEEN_AS_LATIN = frozenset(map(chr, _LOOK_ALIKES))
# Format characters and other invisible characters.
INVISIBLE = (
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Chinese, Japanese and Thai are written without spaces.
SPACELESS = (
    "[\u0e01-\u0e3a\u0e40-\u0e5b\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe2\U00016fe3\U00016ff0\U00016ff1\U0001aff0-\U0001b16f"
    "\U00020000-\U0003ffff]"
)
# Most text beyond ASCII has no other characters: Latin letters, quotation marks, currency signs.
WESTERN = "".join(
    chr(code)
    for first, last in ((0x80, 0xAC), (0xAE, 0x17F), (0x2010, 0x2027), (0x20A0, 0x20C0))
    for code in range(first, last + 1)
)
_BEYOND_WESTERN = f"[^\x00-\x7f{WESTERN}]"
_BEYOND_ASCII = re.compile(rb"([\xc2-\xf4][\x80-\xbf]+)")  # one character in UTF-8
_INVISIBLE = f"{INVISIBLE}++"
_SPLIT = f"[A-Za-z]{INVISIBLE}++[A-Za-z]"
_SPACELESS = f"{SPACELESS}++"
_FULLWIDTH = "[\uff21-\uff3a\uff41-\uff5a]{2}"
# A look-alike next to a Latin letter: a quick test that decides whether to look closely.
_DISGUISE = "[a-z\xdf-\u024f]\\d*+[{0}]|[{0}]\\d*+[a-z\xdf-\u024f]".format(
    "".join(sorted(_SEEN_AS_LATIN))
)
# Shorter words are not examined: two such characters are mostly text in the wrong charset.
_MAY_BE_DISGUISED = "[0-9a-z\xdf-\u052f]{3,}+"
# Letters in disguise that NFKC leaves alone, or puts in parentheses; small capitals are phonetic.
_BOXED = re.compile(
    r"(?:LATIN LETTER SMALL CAPITAL|(?:PARENTHESIZED|NEGATIVE CIRCLED|NEGATIVE SQUARED) LATIN"
    r" (?:CAPITAL|SMALL) LETTER) ([A-Z])"
)
_WITH_BOXED = (
    *((0x250, 0x2AF), (0x1D00, 0x1D22), (0x249C, 0x24B5), (0xA730, 0xA7AF)),
    *((0x1F110, 0x1F129), (0x1F150, 0x1F189)),
)
_MAY_BE_BOXED = f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _WITH_BOXED)}]"
# Text that is shown from right to left, whatever its letters.
_OVERRIDDEN = "\u202e([^\u202a-\u202e\u2066-\u2069\n]*+)\u202c?+"
# Three letters with marks in a Latin word: a quick test, and the word itself when decomposed.
_MARKED_LETTER = "[\xdf-\u024f\u0300-\u036f\u1e00-\u1eff]"
_MAY_BE_MARKED = f"(?:{_MARKED_LETTER}[a-z]*+){{3}}"
_MAY_BE_MARKED_WESTERN = re.compile(rb"(?:[\xc3-\xc5][\x80-\xbf][a-z]*+){3}")
_LETTER, _MARK = "[a-z\xdf-\u024f]", "[\u0300-\u036f]"
_MARKED = f"(?<![a-z\xdf-\u024f\u0300-\u036f])(?:{_LETTER}++{_MARK}++){{3,}}{_LETTER}*+"
# The commonest characters that are not letters, marks or digits; `unicodedata` is asked about
# the others one by one.
SYMBOLS = (
    "[\x80-\xa1\xa6-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u2010-\u2064\u2190-\u245f"
    "\u2500-\u2775\u2794-\u2bff\u3000-\u3004\u3008-\u3020\ufffd]"
)
_SYMBOLS = f"{SYMBOLS}++"
_NO_WORD = r"[^\w\x00-\x7f]++"  # marks and symbols
# Marks in a row.  NFKC sorts marks in quadratic time, and no script stacks as many on a letter.
_MAX_MARKS = 30
_MANY = rf"[^\w\x00-\x7f]{{{_MAX_MARKS + 1},}}+"


@cache
def _mixed() -> Any:
    """Return the pattern of words of mixed alphabets; imports the regex module when first used."""
    import regex

    other = r"[\p{Cyrillic}\p{Greek}]"
    letter = r"[\p{Latin}\p{Cyrillic}\p{Greek}\d]"
    return regex.compile(
        rf"(?<!{letter})(?=\d*+(?:\p{{Latin}}[\p{{Latin}}\d]*+{other}"
        rf"|{other}[\p{{Cyrillic}}\p{{Greek}}\d]*+\p{{Latin}})){letter}++"
    )


@cache
def _boxed() -> dict[int, str]:
    """Return the Latin letter for each letter in disguise, see `_BOXED`."""
    codes = [code for first, last in _WITH_BOXED for code in range(first, last + 1)]
    found = ((code, _BOXED.fullmatch(unicodedata.name(chr(code), ""))) for code in codes)
    return {code: match[1].lower() for code, match in found if match is not None}


def normalize(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return UTF-8 text in normal form, and its oddities.

    Oddities are fullwidth, homoglyph, override and zero-width.  ASCII lines are returned
    unchanged; the tokenizer folds their case.
    """
    if text.isascii():
        return text, ()
    bounds = _odd_lines(text)
    # All odd lines together, so that each pattern runs once.
    odd, facts = _normal_form(b"\n".join([text[start:end] for start, end in bounds]))
    pieces: list[bytes] = []
    done = 0
    for (start, end), line in zip(bounds, odd.split(b"\n"), strict=True):
        pieces += (text[done:start], line)
        done = end
    pieces.append(text[done:])
    return b"".join(pieces), facts


def _odd_lines(text: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each line that has bytes beyond ASCII."""
    bounds = []
    end = -1
    for place in np.flatnonzero(np.frombuffer(text, np.int8) < 0).tolist():
        if place > end:
            start = text.rfind(b"\n", 0, place) + 1
            end = text.find(b"\n", place)
            end = end if end >= 0 else len(text)
            bounds.append((start, end))
    return bounds


@cache
def _western() -> dict[bytes, bytes]:
    """Return the normal form of each character of WESTERN, both in UTF-8."""
    forms, _ = _slow_form("\n".join(WESTERN))
    return {c.encode(): form.encode() for c, form in zip(WESTERN, forms.split("\n"), strict=True)}


def _normal_form(lines: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return lines in normal form, the same number of them, and their oddities."""
    original = lines.decode("utf-8", "replace")
    lower = lines.lower()
    if re.search(_BEYOND_WESTERN, original) or _MAY_BE_MARKED_WESTERN.search(lower):
        form, facts = _slow_form(original)
        return form.encode("utf-8", "replace"), facts
    # A table gives the same result, because these characters do not depend on their neighbours.
    pieces = _BEYOND_ASCII.split(lower)
    pieces[1::2] = map(_western().__getitem__, pieces[1::2])
    return b"".join(pieces), ()


def _slow_form(original: str) -> tuple[str, tuple[str, ...]]:
    """Return the normal form of lines of any characters, and their oddities."""
    facts = []
    shown = re.sub(_OVERRIDDEN, lambda match: match[1][::-1], original)
    if shown != original:
        facts.append("override")
    visible = re.sub(_INVISIBLE, "", shown)
    if visible != shown and re.search(_SPLIT, shown):
        facts.append("zero-width")
    if re.search(_FULLWIDTH, original):
        facts.append("fullwidth")
    visible = re.sub(_MANY, _few_marks, visible)
    if re.search(_MAY_BE_BOXED, visible):
        visible = visible.translate(_boxed())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    if re.search(_MAY_BE_MARKED, folded):
        decomposed = re.sub(_MARKED, _without_marks, unicodedata.normalize("NFD", folded))
        folded = unicodedata.normalize("NFC", decomposed)
    latin: str = folded
    if not _SEEN_AS_LATIN.isdisjoint(folded) and any(
        re.search(_DISGUISE, word) for word in re.findall(_MAY_BE_DISGUISED, folded)
    ):
        latin = _mixed().sub(_to_latin, folded)
        if latin != folded:
            facts.append("homoglyph")
    words = re.sub(_NO_WORD, _marks_and_prices, re.sub(_SYMBOLS, " ", latin))
    return re.sub(_SPACELESS, _to_pairs, words), tuple(sorted(facts))


def _few_marks(match: re.Match[str]) -> str:
    """Return a run of marks and symbols with at most _MAX_MARKS marks in a row."""
    kept, n_marks = [], 0
    for c in match.group():
        n_marks = n_marks + 1 if unicodedata.category(c)[0] == "M" else 0
        if n_marks <= _MAX_MARKS:
            kept.append(c)
    return "".join(kept)


def _without_marks(match: re.Match[str]) -> str:
    """Return a decomposed word without its marks."""
    return re.sub(_MARK, "", match.group())


def _marks_and_prices(match: re.Match[str]) -> str:
    """Return a run of marks and symbols with symbols replaced by spaces, except currency signs."""
    kept = ("Mn", "Mc", "Me", "Sc")
    return "".join([c if unicodedata.category(c) in kept else " " for c in match.group()])


def _to_latin(match: Any) -> str:
    """Return a word of mixed alphabets in Latin letters if it is mostly Latin, else unchanged."""
    word: str = match.group()
    latin = word.translate(_LOOK_ALIKES)
    n_latin = sum("a" <= c <= "z" for c in word)
    return latin if latin.isascii() or 2 * n_latin >= len(word) else word


def _to_pairs(match: re.Match[str]) -> str:
    """Return a run of characters as overlapping pairs, separated by spaces."""
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return f" {' '.join(map(add, run, run[1:]))} "
