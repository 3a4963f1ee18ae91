"""Converting text in any charset, declared rightly, wrongly or not at all, to UTF-8.

Secret: which declarations are trusted, and how a charset is guessed without one.
"""

import re
from functools import lru_cache

# Only these families are decoded.  Python knows other names that are dangerous here: idna and
# punycode take quadratic time, unicode_escape is not a charset, utf-7 hides text.
_KNOWN = (
    r"(us-?)?ascii|utf-?(8|16|32)(-?[bl]e)?|(iso|8859)[-_a-z0-9]*|latin-?\d*|windows-?\d+|cp-?\d+"
    r"|koi8[-_](r|u|t)|gb[-_k0-9]+|big5[-_a-z0-9]*|euc[-_a-z]+|(x-)?s(hift)?_?jis[-_a-z0-9]*"
    r"|ks_?c[-_0-9]+|tis-?620|hz(-gb-2312)?|mac[-_a-z]+|johab"
)
# Declared subsets of charsets, and the supersets in which the text really is.
_SUPERSET = {
    "gb2312": "gb18030",
    "gb_2312-80": "gb18030",
    "gbk": "gb18030",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "sjis": "cp932",
    "iso-8859-8-i": "iso-8859-8",
    "tis-620": "cp874",
}
# Charsets in which bytes below 128 are not always ASCII.
_NOT_ASCII = ("utf-16", "utf16", "utf-32", "utf32", "iso-2022", "iso2022", "hz")
# Byte order marks, longer ones first.  Text in a single-byte charset may begin with them, too.
_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
MARKED = tuple(_MARKS)
_MAX_NAME = 40  # characters of a charset name
_MOSTLY = 0.7  # share of common Han characters, among those beyond ASCII, in Chinese text
# A character of GBK.  The group matches those of its first level, which are the common ones.
_GBK_PAIR = re.compile(rb"([\xb0-\xd7][\xa1-\xfe])|[\x81-\xfe][\x40-\xfe]")
_SAMPLE = 4096  # bytes by which a charset is guessed
# For bytes.translate, which finds bytes beyond ASCII much faster than a pattern does.
_BLANK_ASCII = b" " * 128 + bytes(range(128, 256))
_ASCII_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UPPER, _LOWER = bytes(range(0xC0, 0xE0)), bytes(range(0xE0, 0x100))  # in cp1251
_RUSSIAN_RUN = 3  # letters of a word, at least, on average


def to_utf8(data: bytes, declared: str | None) -> tuple[bytes, str | None]:
    """Return the text as UTF-8, and a defect if the declared charset was not right."""
    name = (declared or "")[:_MAX_NAME].strip(" \"'").lower()
    may_be_utf8 = name in ("", "utf-8", "utf8")
    # Most text is ASCII, whatever it is declared to be.
    if data.isascii() and not ((may_be_utf8 and b"\x1b" in data) or name.startswith(_NOT_ASCII)):
        return data, None if may_be_utf8 or _is_known(name) else "charset-unknown"
    if data.startswith(MARKED) and (not name or name.startswith("utf")):
        codec = next(codec for mark, codec in _MARKS.items() if data.startswith(mark))
        return _utf8(data.decode(codec, "replace")), None
    if may_be_utf8:
        return _believe_utf8(data.removeprefix(b"\xef\xbb\xbf"), bool(name))
    if not _is_known(name):
        return _guess(data), "charset-unknown"
    if name.endswith("ascii"):  # and bytes beyond it
        return _guess(data), "charset-wrong"
    try:
        return _utf8(data.decode(_SUPERSET.get(name, name))), None
    except LookupError:
        return _guess(data), "charset-unknown"
    except UnicodeError:
        return _decode_most(data, _SUPERSET.get(name, name)), "charset-wrong"


@lru_cache(maxsize=256)
def _is_known(name: str) -> bool:
    """Return whether text in the charset of this name is decoded."""
    return re.fullmatch(_KNOWN, name) is not None


def _believe_utf8(data: bytes, declared: bool) -> tuple[bytes, str | None]:
    if is_utf8(data) and b"\x1b$" not in data:
        return data, None
    return _guess(data), "charset-wrong" if declared else "charset-missing"


def _decode_most(data: bytes, name: str) -> bytes:
    """Return text that has a few errors in its declared charset; guess if it has many."""
    if is_utf8(data):
        return data
    text = data.decode(name, "replace")
    return _utf8(text) if text.count("�") * 20 < len(text) else _guess(data)


def _guess(data: bytes) -> bytes:
    """Return text as UTF-8 whose charset is not declared, or declared wrongly."""
    if b"\x1b$" in data:
        return _utf8(data.decode("iso2022_jp", "replace"))
    if is_utf8(data):
        return data
    return _utf8(data.decode(_likely_charset(data[:_SAMPLE]), "replace"))


def _likely_charset(sample: bytes) -> str:
    """Return the likely charset of bytes: a Chinese, a Russian or a Western one."""
    runs = sample.translate(_BLANK_ASCII).split()
    if sum(len(run) % 2 for run in runs) * 4 <= len(runs) and _is_chinese(sample):
        return "gb18030"
    beyond = b"".join(runs)
    # In Russian whole words are beyond ASCII, in Western languages single letters.
    is_russian = len(beyond) >= _RUSSIAN_RUN * len(runs)
    if is_russian and len(beyond) > _count(_ASCII_LETTERS, sample):
        # Lower-case letters of one charset are the upper-case letters of the other.
        return "cp1251" if _count(_LOWER, beyond) >= _count(_UPPER, beyond) else "koi8-r"
    return "cp1252"


def _count(kinds: bytes, data: bytes) -> int:
    """Return how many bytes of the data are among `kinds`."""
    return len(data) - len(data.translate(None, kinds))


def _is_chinese(sample: bytes) -> bool:
    pairs = _GBK_PAIR.findall(sample)
    return len(pairs) > 1 and len(pairs) - pairs.count(b"") >= _MOSTLY * len(pairs)


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
