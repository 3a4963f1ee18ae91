"""Converting text in any charset, declared rightly, wrongly or not at all, to UTF-8.

Secret: which declarations are trusted, and what a charset is guessed from without one.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

# Only these families are decoded.  Python knows other names that are dangerous here: idna and
# punycode take quadratic time, unicode_escape is not a charset, utf-7 hides text.
_KNOWN = (
    r"(us-?)?ascii|utf-?(8|16|32)(-?[bl]e)?|(cs)?(iso|8859)[-_a-z0-9]*|latin-?\d*|windows-?\d+j?"
    r"|cp-?\d+|koi8[-_](r|u|t)|gb[-_k0-9]+|big5[-_a-z0-9]*|(cs)?euc[-_a-z]+|s(hift)?_?jis[-_a-z0-9]*"
    r"|ks_?c[-_0-9]+|tis-?620|hz(-gb-2312)?|mac[-_a-z]+|johab"
)
# Declared subsets of charsets, and the supersets in which the text really is; and names that
# Python does not know.
_CODECS = {
    codec: names.split()
    for codec, names in {
        "gb18030": "gb2312 gb_2312 gb_2312-80 gbk windows-936",
        "cp1252": "iso-8859-1 iso8859-1 latin1 latin-1",
        "cp949": "ks_c_5601-1987 euc-kr windows-949",
        "cp932": "shift_jis shift-jis sjis windows-31j",
        "cp874": "tis-620 windows-874",
    }.items()
}
_CODEC_OF = {name: codec for codec, names in _CODECS.items() for name in names}
_ORDERED = re.compile(r"(iso-8859-[68])-[ei]")  # says in which order letters are shown, too
# Charsets in which bytes below 128 are not always ASCII.
_NOT_ASCII = ("utf-16", "utf16", "utf-32", "utf32", "iso-2022", "iso2022", "csiso2022", "hz")
# Byte order marks, longer ones first.  Text in a single-byte charset may begin with them, too.
_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
MARKED = tuple(_MARKS)
_MAX_NAME = 40  # characters of a charset name
_SAMPLE = 512  # bytes of each text from which a charset is guessed
_SAMPLES = 4  # texts that are looked at


class Guess:
    """The charset of all that a message does not declare one for, guessed when it is needed.

    undeclared: returns these texts of the message.
    """

    def __init__(self, undeclared: Callable[[], Iterable[bytes]] = tuple) -> None:
        self._undeclared = undeclared
        self._charset = ""

    def charset(self, data: bytes) -> str:
        """Return the charset; data: a text that needs it, whether it declares one or not."""
        if not self._charset:
            from nbspam.alphabets import from_beyond_ascii, likely_charset

            texts = dict.fromkeys((*self._undeclared(), data))
            samples = [from_beyond_ascii(text, _SAMPLE) for text in texts if not is_utf8(text)]
            samples = sorted(samples, key=len, reverse=True)[:_SAMPLES]
            self._charset = likely_charset(b"\n".join(samples))
        return self._charset


def to_utf8(
    data: bytes, declared: str | None, guess: Guess | None = None
) -> tuple[bytes, str | None]:
    """Return the text as UTF-8, and a defect if the declared charset was not right.

    guess: that of the message; without one, the text is all that there is to guess from.
    """
    guess = guess or Guess()
    name = _plain_name(declared) if declared else ""
    may_be_utf8 = name in ("", "utf-8", "utf8")
    # Most text is ASCII, whatever it is declared to be.
    if data.isascii() and not ((may_be_utf8 and b"\x1b" in data) or name.startswith(_NOT_ASCII)):
        return data, None if may_be_utf8 or _codec(name) else "charset-unknown"
    if data.startswith(MARKED) and (not name or name.startswith("utf")):
        codec = next(codec for mark, codec in _MARKS.items() if data.startswith(mark))
        return _utf8(data.decode(codec, "replace")), None
    if may_be_utf8:
        data = data.removeprefix(b"\xef\xbb\xbf")
        if is_utf8(data) and b"\x1b$" not in data:
            return data, None
        return _guessed(data, guess), "charset-wrong" if name else "charset-missing"
    trusted = _codec(name)
    if trusted is None:
        return _guessed(data, guess), "charset-unknown"
    if trusted == "ascii":  # and bytes beyond it
        return _guessed(data, guess), "charset-wrong"
    try:
        return _utf8(data.decode(trusted)), None
    except UnicodeError:
        return _decode_most(data, trusted, guess), "charset-wrong"


@lru_cache(maxsize=256)
def _plain_name(declared: str) -> str:
    return declared[:_MAX_NAME].strip(" \"'").lower()


@lru_cache(maxsize=256)
def _codec(name: str) -> str | None:
    """Return Python's name of a charset if text in it is decoded."""
    import codecs

    name = _ORDERED.sub(r"\1", name.removeprefix("x-"))
    if re.fullmatch(_KNOWN, name) is None:
        return None
    try:
        return codecs.lookup(_CODEC_OF.get(name, name)).name
    except LookupError:
        return None


def _decode_most(data: bytes, codec: str, guess: Guess) -> bytes:
    """Return text that has a few errors in its declared charset; guess if it has many."""
    if is_utf8(data):
        return data
    text = _decoded(data, codec)
    return _utf8(text) if text.count("�") * 20 < len(text) else _guessed(data, guess)


def _guessed(data: bytes, guess: Guess) -> bytes:
    """Return text as UTF-8 whose charset is not declared, or declared wrongly."""
    if b"\x1b$" in data:  # Japanese or Korean text that says so itself
        return _utf8(data.decode("iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp", "replace"))
    if is_utf8(data):
        return data
    return _utf8(_decoded(data, guess.charset(data)))


def _decoded(data: bytes, codec: str) -> str:
    """Return text with a replacement character for each wrong byte."""
    from codecs import charmap_decode

    table = _table(codec)
    return charmap_decode(data, "strict", table)[0] if table else data.decode(codec, "replace")


@lru_cache(maxsize=256)
def _table(codec: str) -> str:
    """Return the characters of all bytes in a charset of single bytes; nothing of another one.

    A codec calls its handler of errors for each wrong byte; a table without gaps needs none.
    """
    from importlib import import_module

    module = import_module(f"encodings.{codec.replace('-', '_')}")
    return getattr(module, "decoding_table", "").replace("\ufffe", "�")


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
