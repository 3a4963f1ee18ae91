"""Text that is not plain ASCII to one normal form, and what was odd about it.

NFKC and case folding; invisible characters dropped; look-alikes from other alphabets
inside Latin words made Latin; runs of Chinese, Japanese and Thai cut into pairs of
characters, since they have no spaces; everything that is no letter, mark, digit or sign of
money a space.

Secret: what two spellings must share to be the same token.
"""

import re
import unicodedata
from functools import cache
from operator import add
from typing import Any

import numpy as np

# Cyrillic and Greek letters, case folded, that readers take for Latin ones.
_LOOK_ALIKES = str.maketrans(
    "авгеѕіјӏкмнорстухѡԁһԛԝьαβγεικνορτυχω",
    "abresijlkmhopctyxwdhqwbabyeikvoptuxw",
)
_SEEN_AS_LATIN = frozenset(map(chr, _LOOK_ALIKES))
# Format characters and other letters that nobody sees.
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
# What most text beyond ASCII has and no more: Latin letters, quotation marks, signs of money.
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
# A look-alike beside a Latin letter, as far as one quick look tells.
_DISGUISE = "[a-z\xdf-\u024f]\\d*+[{0}]|[{0}]\\d*+[a-z\xdf-\u024f]".format(
    "".join(sorted(_SEEN_AS_LATIN))
)
# Two characters alone are no sign of it: mostly they were meant for another charset.
_MAY_BE_DISGUISED = "[0-9a-z\xdf-\u052f]{3,}+"
# The commonest of what is neither letter nor mark nor digit; the rest is asked one by one.
SYMBOLS = (
    "[\x80-\xa1\xa6-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u2010-\u2064\u2190-\u245f"
    "\u2500-\u2775\u2794-\u2bff\u3000-\u3004\u3008-\u3020\ufffd]"
)
_SYMBOLS = f"{SYMBOLS}++"
_NO_WORD = r"[^\w\x00-\x7f]++"  # marks and symbols
_MAX_MARKS = 30  # on one letter: sorting marks takes quadratic time, no script stacks so many
_MANY = rf"[^\w\x00-\x7f]{{{_MAX_MARKS + 1},}}+"


@cache
def _mixed() -> Any:
    """Compile what needs the regex module, when the first text asks for it."""
    import regex

    other = r"[\p{Cyrillic}\p{Greek}]"
    letter = r"[\p{Latin}\p{Cyrillic}\p{Greek}\d]"
    return regex.compile(
        rf"(?<!{letter})(?=\d*+(?:\p{{Latin}}[\p{{Latin}}\d]*+{other}"
        rf"|{other}[\p{{Cyrillic}}\p{{Greek}}\d]*+\p{{Latin}})){letter}++"
    )


def normalize(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return UTF-8 text in normal form, and facts: fullwidth, homoglyph, zero-width.

    Lines of ASCII come back as they are: their case is the tokenizer's to fold.
    """
    if text.isascii():
        return text, ()
    bounds = _odd_lines(text)
    # All odd lines at once, so that each pattern runs once.
    odd, facts = _normal_form(b"\n".join([text[start:end] for start, end in bounds]))
    pieces: list[bytes] = []
    done = 0
    for (start, end), line in zip(bounds, odd.split(b"\n"), strict=True):
        pieces += (text[done:start], line)
        done = end
    pieces.append(text[done:])
    return b"".join(pieces), facts


def _odd_lines(text: bytes) -> list[tuple[int, int]]:
    """Return where the lines with bytes beyond ASCII begin and end."""
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
    """Return the normal forms of Western letters and signs, one by one."""
    forms, _ = _slow_form("\n".join(WESTERN))
    return {c.encode(): form.encode() for c, form in zip(WESTERN, forms.split("\n"), strict=True)}


def _normal_form(lines: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return lines in normal form, as many as there were, and facts."""
    original = lines.decode("utf-8", "replace")
    if re.search(_BEYOND_WESTERN, original):
        form, facts = _slow_form(original)
        return form.encode("utf-8", "replace"), facts
    # The same, character by character: none of these has to do with its neighbours.
    pieces = _BEYOND_ASCII.split(lines.lower())
    pieces[1::2] = map(_western().__getitem__, pieces[1::2])
    return b"".join(pieces), ()


def _slow_form(original: str) -> tuple[str, tuple[str, ...]]:
    """Return the same for any characters."""
    facts = []
    visible = re.sub(_INVISIBLE, "", original)
    if visible != original and re.search(_SPLIT, original):
        facts.append("zero-width")
    if re.search(_FULLWIDTH, original):
        facts.append("fullwidth")
    visible = re.sub(_MANY, _few_marks, visible)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
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
    """Return a run of marks and symbols with no more marks in a row than is decent."""
    kept, n_marks = [], 0
    for c in match.group():
        n_marks = n_marks + 1 if unicodedata.category(c)[0] == "M" else 0
        if n_marks <= _MAX_MARKS:
            kept.append(c)
    return "".join(kept)


def _marks_and_prices(match: re.Match[str]) -> str:
    """Return a run of marks and symbols with spaces for symbols, but for those of money."""
    kept = ("Mn", "Mc", "Me", "Sc")
    return "".join([c if unicodedata.category(c) in kept else " " for c in match.group()])


def _to_latin(match: Any) -> str:
    """Return a word of mixed alphabets in Latin letters, if that is what it mostly is."""
    word: str = match.group()
    latin = word.translate(_LOOK_ALIKES)
    n_latin = sum("a" <= c <= "z" for c in word)
    return latin if latin.isascii() or 2 * n_latin >= len(word) else word


def _to_pairs(match: re.Match[str]) -> str:
    """Return a run of characters as overlapping pairs, spaced."""
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return f" {' '.join(map(add, run, run[1:]))} "
