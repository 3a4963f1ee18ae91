"""Sentences of many scripts, for benchmarks: of made words, the same on every machine.

Words are made of the script's letters: their lengths follow a Poisson distribution, their
frequencies Zipf's law.
"""

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np

_VOCABULARY = 5000  # made words
_WORDS = 12  # in a made sentence
_SENTENCES = 2000


class Script(NamedTuple):
    """A language that stands for its script."""

    code: str  # of the language
    name: str
    letters: str  # ranges of letters, as in a pattern
    charsets: tuple[str, ...]  # its legacy charsets
    word_length: float = 6  # letters of a made word, on average
    blank: str = " "  # between words


SCRIPTS = (
    Script("en", "English", "a-z", ()),
    Script("de", "German", "a-zäöüß", ("iso-8859-1",)),
    Script("vi", "Vietnamese", "a-zăâđêôơưạảấầậắặẹẻếềễệịọỏốồộớờợụủứừự", ("windows-1258",), 4),
    Script("el", "Greek", "α-ωάέήίόύώ", ("iso-8859-7", "windows-1253")),
    Script("ru", "Russian", "а-яё", ("windows-1251", "koi8-r", "iso-8859-5")),
    Script("he", "Hebrew", "א-ת", ("windows-1255", "iso-8859-8"), 5),
    Script("ar", "Arabic", "ء-غف-ي", ("windows-1256", "iso-8859-6"), 5),
    Script("hi", "Hindi", "अ-हा-ौ", (), 5),
    Script("ta", "Tamil", "அ-ஔக-ஹா-ௌ", (), 8),
    Script("th", "Thai", "ก-ฮะ-ูเ-์", ("tis-620", "windows-874"), 5, ""),
    Script("ka", "Georgian", "ა-ჰ", (), 7),
    Script("hy", "Armenian", "ա-և", (), 7),
    Script("ko", "Korean", "가-힣", ("euc-kr", "iso-2022-kr"), 3),
    Script("ja", "Japanese", "ぁ-んァ-ヶ一-龠", ("shift_jis", "euc-jp", "iso-2022-jp"), 3, ""),
    Script("zh_CN", "Chinese", "一-龥", ("gb2312", "gbk", "gb18030"), 2, ""),
    Script("zh_TW", "Taiwanese", "一-龥", ("big5",), 2, ""),
)


def encoded(text: str, charset: str) -> bytes:
    """Return text in a charset; characters that it does not have are left out."""
    if charset == "windows-1258":  # which writes the marks of tones after their letters
        text = "".join(map(_with_tone_apart, text))
    # Python does not know the name under which Windows declares Thai.
    return text.encode(charset.replace("windows-874", "cp874"), "ignore")


@cache
def sentences(script: Script) -> list[str]:
    """Return sentences of made words, in a fixed order."""
    rng = np.random.default_rng(1)
    letters = _expanded(script)
    lengths = rng.poisson(script.word_length - 1, _VOCABULARY) + 1
    # Letters, too, are of different frequency.
    share = 1 / np.arange(1, len(letters) + 1) ** 0.7
    drawn = rng.choice(letters, lengths.sum(), p=share / share.sum())
    words = ["".join(piece) for piece in np.split(drawn, lengths.cumsum()[:-1])]
    share = 1 / np.arange(1, _VOCABULARY + 1)
    chosen = rng.choice(words, (_SENTENCES, _WORDS), p=share / share.sum()).tolist()
    return [script.blank.join(row) + "." for row in chosen]


def _expanded(script: Script) -> list[str]:
    """Return the letters of a script that its first legacy charset has, in a fixed disorder."""
    letters: list[str] = []
    for i, letter in enumerate(script.letters):
        if letter == "-":
            first, last = script.letters[i - 1], script.letters[i + 1]
            letters += map(chr, range(ord(first) + 1, ord(last)))
        else:
            letters.append(letter)
    if script.charsets:
        # Two bytes at most: EUC-KR can spell rare syllables in eight.
        letters = [c for c in letters if 0 < len(encoded(c, script.charsets[0])) <= 2]
    return list(np.random.default_rng(0).permutation(letters))


def _with_tone_apart(character: str) -> str:
    decomposed = unicodedata.normalize("NFD", character)
    base, marks = decomposed[0], decomposed[1:]
    tones = [mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323"]
    rest = "".join(mark for mark in marks if mark not in tones)
    return unicodedata.normalize("NFC", base + rest) + "".join(tones)
