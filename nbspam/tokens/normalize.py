"""The normal form of text that is not plain ASCII, and the oddities found in it.

Normalisation applies NFKC and case folding; drops invisible characters, the strokes that lengthen
Arabic words, the accents of Greek, and the dot that folding puts on a Turkish i; puts i for the
dotless ı, Arabic letters for Persian ye and kaf, and ' for all apostrophes; turns text round that
an override shows from right to left; replaces look-alikes inside Latin words, Latin ones inside
Cyrillic words, and small capitals and letters in boxes; drops the marks of a Latin word if three
letters or more have some; cuts runs of Chinese, Thai, emoji and others without spaces into pairs
of characters; and replaces every other character that is no letter, mark, digit, emoji or currency
sign by a space.
"""

import re
import unicodedata
from functools import cache
from operator import add
from typing import Any

# Case-folded Cyrillic and Greek letters that look like Latin ones.
_LOOK_ALIKES = str.maketrans(
    "авгеѕіјӏкмнорстухѡԁһԛԝьαβγεικνορτυχω",
    "abresijlkmhopctyxwdhqwbabyeikvoptuxw",
)
_SEEN_AS_CYRILLIC = str.maketrans("abcehkmoptxy", "авсенкмортху")
# Letters whose difference capitals lose: a Turkish i without a dot, or with the one that folding
# adds, and Greek accents.  Persian ye and kaf, which older programs write as Arabic letters, and
# apostrophes, which some programs write as in ASCII.
_ONE_SPELLING = (
    *zip(("ı", "i\u0307", "\u06cc", "\u06a9"), "ii\u064a\u0643", strict=True),
    *((apostrophe, "'") for apostrophe in "‘’\u02bb\u02bc"),
    *zip("άέήίόύώ", "αεηιουω", strict=True),
    *zip(("ι\u0308\u0301", "υ\u0308\u0301"), "ϊϋ", strict=True),
)
SEEN_AS_LATIN = frozenset(map(chr, _LOOK_ALIKES))
# Format characters, other invisible characters, and the stroke that lengthens Arabic words.
INVISIBLE = (
    "[\u00ad\u034f\u0600-\u0605\u061c\u0640\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Thai, Lao, Burmese, Khmer, Chinese, Japanese and emoji are written without spaces.
SPACELESS = (
    "[\u0e01-\u0e3a\u0e40-\u0edf\u1000-\u109f\u1780-\u17f9\u2e80-\u2fdf\u3005\u3007\u3021-\u3029"
    "\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa7f"
    "\uf900-\ufaff\U000116d0-\U000116e3\U00016fe2\U00016fe3\U00016ff0-\U00016ff6\U0001aff0-\U0001b16f"
    "\U0001f1e6-\U0001faff\U00020000-\U0003ffff]"
)
# White space that is never beside a run in normal form, which has a space on either side.
BETWEEN_PAIRS = "\v"
_INVISIBLE = f"{INVISIBLE}++"
_SPLIT = f"[A-Za-z]{INVISIBLE}++[A-Za-z]"
_SPACELESS = f"{SPACELESS}++"
FULLWIDTH = "[\uff21-\uff3a\uff41-\uff5a]"
LATIN_LETTER, LATIN_MARK = "[a-z\xdf-\u024f]", "[\u0300-\u036f]"
# A look-alike next to a Latin letter: a quick test that decides whether to look closely.
_ALIKE = f"[{''.join(sorted(SEEN_AS_LATIN))}]"
_DISGUISE = rf"{LATIN_LETTER}\d*+{_ALIKE}|{_ALIKE}\d*+{LATIN_LETTER}"
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
_MARKED = (
    f"(?<![a-z\xdf-\u024f\u0300-\u036f])(?:{LATIN_LETTER}++{LATIN_MARK}++){{3,}}{LATIN_LETTER}*+"
)
# The commonest characters that are not letters, marks or digits; `unicodedata` is asked about
# the others one by one.
SYMBOLS = (
    "[\x80-\xa1\xa6-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u2010-\u2064\u2190-\u245f"
    "\u2500-\u2775\u2794-\u2bff\u3000-\u3004\u3008-\u3020\ufffd]"
)
_SYMBOLS = f"{SYMBOLS}++"
_NO_WORD = r"[^\w\x00-\x7f]++"  # marks and symbols
_NO_SYMBOLS = ("Mn", "Mc", "Me", "Sc")  # categories: marks, and signs of prices
# Marks in a row.  NFKC sorts marks in quadratic time, and no script stacks as many on a letter.
MAX_MARKS = 30
_MANY = rf"[^\w\x00-\x7f]{{{MAX_MARKS + 1},}}+"
# Characters that NFKC may compose with the one before, and those that may come before: more than
# those of Unicode 17, because Unicode will add some.
MAY_BE_SECOND = (
    "[\u0300-\u0345\u0653-\u0655\u093c\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0c56\u0cc2\u0cd5\u0cd6"
    "\u0d3e\u0d57\u0dca\u0dcf\u0ddf\u102e\u1161-\u1175\u11a8-\u11c2\u1b35\u3099\u309a"
    "\U00010a00-\U00011fff\U00016000-\U0001afff\U0001e000-\U0001efff]"
)
MAY_BE_FIRST = (
    "[<->A-Za-z\xa8-\u06d5\u0928\u0930\u0933\u09c7\u0b47\u0b92\u0bc6\u0bc7\u0c46\u0cbf\u0cc6\u0cca\u0d46"
    "\u0d47\u0dd9\u0ddc\u1025\u1b05-\u1b42\u1100-\u1112\u1e00-\u22b5\u3046-\u30fd\uac00-\ud7a3"
    "\U00010000-\U0001ffff]"
)


@cache
def _mixed() -> Any:
    """Return the pattern of words of mixed alphabets; imports the regex module when first used.

    Digits and marks are in a word, but of no alphabet.
    """
    import regex

    other, behind = r"[\p{Cyrillic}\p{Greek}]", rf"\d{LATIN_MARK[1:-1]}"
    letter = rf"[\p{{Latin}}\p{{Cyrillic}}\p{{Greek}}{behind}]"
    return regex.compile(
        rf"(?<!{letter})(?=\d*+(?:\p{{Latin}}[\p{{Latin}}{behind}]*+{other}"
        rf"|{other}[\p{{Cyrillic}}\p{{Greek}}{behind}]*+\p{{Latin}})){letter}++"
    )


@cache
def _boxed() -> dict[int, str]:
    """Return the Latin letter for each letter in disguise, see `_BOXED`."""
    codes = [code for first, last in _WITH_BOXED for code in range(first, last + 1)]
    found = ((code, _BOXED.fullmatch(unicodedata.name(chr(code), ""))) for code in codes)
    return {code: match[1].lower() for code, match in found if match is not None}


def normalize(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return UTF-8 text in normal form, and its oddities; this function defines both.

    Oddities are fullwidth, homoglyph, override and zero-width.  Runs of characters without
    spaces have a space on either side; `in_pairs` cuts them.
    """
    if text.isascii():
        return text, ()
    original = text.decode("utf-8", "replace")
    facts = []
    shown = re.sub(_OVERRIDDEN, lambda match: match[1][::-1], original)
    if shown != original:
        facts.append("override")
    visible = re.sub(_INVISIBLE, "", shown)
    if visible != shown and re.search(_SPLIT, shown):
        facts.append("zero-width")
    if re.search(f"{FULLWIDTH}{{2}}", original):
        facts.append("fullwidth")
    unmixed, is_mixed = _unmixed(without_many_marks(normal_form(visible)))
    if is_mixed:
        facts.append("homoglyph")
        # Marks are on letters of the other alphabet now, and words may be longer.
        unmixed = without_many_marks(unicodedata.normalize("NFC", unmixed))
    form = re.sub(_SPACELESS, r" \g<0> ", without_symbols(unmixed))
    return form.encode(), tuple(sorted(facts))


def normal_form(visible: str) -> str:
    """Return text without invisible characters in one spelling: compatible, composed, lower."""
    # NFKC puts letters in parentheses, and makes small capitals and Arabic strokes of others.
    plain = _unboxed(re.sub(_MANY, _few_marks, visible))
    compatible = re.sub(_INVISIBLE, "", unicodedata.normalize("NFKC", plain))
    folded = _unboxed(compatible).casefold()
    for other, kept in _ONE_SPELLING:  # `translate` takes 100 times as long
        folded = folded.replace(other, kept)
    return unicodedata.normalize("NFKC", folded)


def _unboxed(text: str) -> str:
    return text.translate(_boxed()) if re.search(_MAY_BE_BOXED, text) else text


def without_many_marks(text: str) -> str:
    """Return folded text in which no Latin word has marks on three letters or more."""
    if not re.search(_MAY_BE_MARKED, text):
        return text
    decomposed = unicodedata.normalize("NFD", text)
    plain = re.sub(_MARKED, lambda match: re.sub(LATIN_MARK, "", match[0]), decomposed)
    return unicodedata.normalize("NFC", plain)


def _unmixed(text: str) -> tuple[str, bool]:
    """Return folded text without words of mixed alphabets, and whether there were any."""
    if SEEN_AS_LATIN.isdisjoint(text) or not any(
        re.search(_DISGUISE, word) for word in re.findall(_MAY_BE_DISGUISED, text)
    ):
        return text, False
    unmixed: str = _mixed().sub(_in_one_alphabet, text)
    return unmixed, unmixed != text


def without_symbols(text: str) -> str:
    """Return folded text with spaces in place of symbols."""
    few = re.sub(_SYMBOLS, " ", text)
    return re.sub(_NO_WORD, lambda run: "".join(" " if is_symbol(c) else c for c in run[0]), few)


def is_symbol(character: str) -> bool:
    """Return whether a character, no letter or digit, is no mark, currency sign or emoji."""
    is_emoji = "\U0001f1e6" <= character <= "\U0001faff"
    return not is_emoji and unicodedata.category(character) not in _NO_SYMBOLS


def in_pairs(word: bytes) -> list[bytes]:
    """Return the words that a word of text in normal form is counted as.

    They are overlapping pairs of characters if it is a run of a script without spaces.
    """
    characters = word.decode("utf-8", "replace")
    if len(characters) < 3 or not re.match(SPACELESS, characters):
        return [word]
    return [pair.encode() for pair in map(add, characters, characters[1:])]


def with_pairs(text: bytes) -> bytes:
    """Return text in normal form with every run of a script without spaces cut into pairs."""
    if text.isascii():
        return text
    characters = text.decode("utf-8", "ignore")
    pairs = BETWEEN_PAIRS.join
    return re.sub(
        _SPACELESS, lambda run: pairs(map(add, run[0], run[0][1:])) or run[0], characters
    ).encode()


def without_pairs(text: bytes) -> bytes:
    """Return text that `with_pairs` has cut as it was before."""
    return re.sub(f"{BETWEEN_PAIRS}{SPACELESS}", "", text.decode("utf-8", "ignore")).encode()


def _few_marks(match: re.Match[str]) -> str:
    """Return a run of marks and symbols with at most MAX_MARKS marks in a row."""
    kept, n_marks = [], 0
    for c in match.group():
        n_marks = n_marks + 1 if unicodedata.category(c)[0] == "M" else 0
        if n_marks <= MAX_MARKS:
            kept.append(c)
    return "".join(kept)


def _in_one_alphabet(match: Any) -> str:
    """Return a word of mixed alphabets in one; in Latin if it is mostly Latin, or unchanged."""
    word: str = match.group()
    latin, cyrillic = word.translate(_LOOK_ALIKES), word.translate(_SEEN_AS_CYRILLIC)
    if not latin.isascii() and re.fullmatch(r"[\u0430-\u052f\d]+", cyrillic):
        return cyrillic
    n_letters = len(re.sub(LATIN_MARK, "", word))
    is_latin = latin.isascii() or 2 * sum("a" <= c <= "z" for c in word) >= n_letters
    return latin if is_latin else word
