"""Charsets: the names that are known, byte order marks, and decoding of mail and of tables.

Text may be declared rightly, wrongly or not at all.  Where a declaration does not settle the
charset, byte order marks and a test for UTF-8 do; `alphabets` guesses the rest from samples.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from typing import AnyStr, BinaryIO, NamedTuple

from nbspam.errors import UsageError

# Only these families are decoded.  Python knows other names that are dangerous here: idna and
# punycode take quadratic time, unicode_escape is not a charset.
_KNOWN = (
    r"(us-?)?ascii|utf-?(7|(8|16|32)(-?[bl]e)?)|(cs)?(iso|8859)[-_a-z0-9]*|latin-?\d*|windows-?\d+j?"
    r"|(cp|ibm)-?\d+|koi8[-_](r|u|t)|gb[-_k0-9]+|big5[-_a-z0-9]*|(cs)?euc[-_a-z]+|s(hift)?_?jis[-_a-z0-9]*"
    r"|ks_?c[-_0-9]+|tis-?620|hz(-gb-2312)?|mac[-_a-z]+|johab"
)
# Declared subsets of charsets, and the supersets in which the text really is; and names that
# Python does not know.
_CODEC_OF = {
    name: codec
    for codec, names in {
        "gb18030": "gb2312 gb_2312 gb_2312-80 gbk windows-936 chinese csgb2312 iso-ir-58",
        "cp1252": "iso-8859-1 latin1 latin-1",
        "cp1254": "iso-8859-9 latin5",
        "cp949": "ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean euc-kr windows-949",
        "cp932": "shift_jis shift-jis sjis csshiftjis ms_kanji windows-31j",
        "cp874": "tis-620 windows-874 iso-8859-11",
        "big5hkscs": "big5 cn-big5 csbig5 x-big5",
        "koi8-r": "koi koi8 cskoi8r",
        "koi8-u": "koi8-ru",
        "mac-cyrillic": "mac-ukrainian",
        "iso2022_jp_ext": "iso-2022-jp csiso2022jp cp50220 cp50221 cp50222",
        "utf-16": "unicode ucs-2 iso-10646-ucs-2",
        "utf-7": "unicode-1-1-utf-7",
    }.items()
    for name in names.split()
}
# Its end may say in which year it was defined, or in which order letters are shown.
_ISO_8859 = re.compile(r"iso[-_]?8859[-_]?(\d+)(-[ei]|:\d+)?")
# Charsets in which bytes below 128 are not always ASCII.
_NOT_ASCII = re.compile(r"utf-?(7|16|32)|(cs)?iso-?2022|hz")
# Byte order marks, longer ones first.  Text in a single-byte charset may begin with them, too.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MARKED = tuple(_MARKS)
_BEYOND_ASCII = bytes(range(128, 256))
ESCAPE = 0x1B  # begins what switches to another charset, in Japanese and Korean text
_MAX_NAME = 40  # characters of a charset name
_SAMPLE, _SAMPLES = 512, 4  # a message's charset is guessed from so many bytes of so many texts
_WESTERN = "cp1252"
_TABLE_SAMPLE = 1 << 16  # bytes of a table that are judged
_TABLE_GUESS = 1 << 13  # bytes of them, in lines beyond ASCII, from which a charset is guessed
_CHUNK = 1 << 18
_EXAMPLES = "gb18030, big5, shift_jis, koi8-r, windows-1251 or utf-16"


# --- marks and names ------------------------------------------------------------------------


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def substituted(pattern: re.Pattern[bytes], by: bytes, data: bytes) -> bytes:
    """Return data with every match replaced; in long data `sub` takes 50 bytes for each."""
    if len(data) < 1 << 20:
        return pattern.sub(by, data)
    made, done = bytearray(), 0
    for match in pattern.finditer(data):
        made += data[done : match.start()] + by
        done = match.end()
    return bytes(made + data[done:])


def _marked(data: bytes) -> str:
    return next(codec for mark, codec in _MARKS.items() if data.startswith(mark))


def check_encoding(name: str) -> None:
    """Raise UsageError if a name is not that of an encoding of text."""
    with suppress(LookupError, ValueError):  # ValueError: a NUL in the name
        if codecs.lookup(name)._is_text_encoding:
            return
    raise UsageError(f"--encoding {name}: unknown; give one such as {_EXAMPLES}")


class _DeclaredCharset(NamedTuple):
    """A charset as mail declares it."""

    name: str
    codec: str  # Python's name; nothing if mail in it is not decoded
    decode: Callable[[bytes], tuple[str, int]] | None  # without a look-up each time
    may_be_utf8: bool
    has_ascii: bool  # its bytes below 128 are ASCII


@lru_cache(maxsize=256)
def _declared(declared: str) -> _DeclaredCharset:
    name = declared[:_MAX_NAME].strip(" \"'").lower()
    known = _ISO_8859.sub(r"iso-8859-\1", name.removeprefix("x-"))
    known = _CODEC_OF.get(known, known)
    has_ascii = not _NOT_ASCII.match(known)
    if name in ("", "utf-8", "utf8"):
        return _DeclaredCharset(name, "utf-8", None, True, has_ascii)
    if re.fullmatch(_KNOWN, known) is not None:
        with suppress(LookupError):
            found = codecs.lookup(known)
            if not has_ascii or found.decode(b"a")[0] == "a":  # browsers know no EBCDIC
                return _DeclaredCharset(name, found.name, found.decode, False, has_ascii)
    return _DeclaredCharset(name, "", None, False, has_ascii)


def _decoded(data: bytes, codec: str) -> str:
    """Return text with a replacement character for each wrong byte."""
    table = _table(codec)
    return (
        codecs.charmap_decode(data, "strict", table)[0] if table else data.decode(codec, "replace")
    )


@lru_cache(maxsize=256)
def _table(codec: str) -> str:
    """Return the characters of all bytes in a charset of single bytes; nothing of another one.

    A codec calls its handler of errors for each wrong byte; a table without gaps needs none.
    """
    from importlib import import_module

    module = import_module(f"encodings.{codec.replace('-', '_')}")
    return getattr(module, "decoding_table", "").replace("\ufffe", "�")


# --- the texts of a message -----------------------------------------------------------------


class CharsetGuess:
    """The charset of a message's undeclared texts, guessed when it is needed.

    undeclared: returns these texts.
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


class _NoGuess(CharsetGuess):
    def charset(self, data: bytes) -> str:
        raise LookupError


NO_GUESS = _NoGuess()  # raises LookupError instead of guessing


def to_utf8(
    data: bytes, declared: str | None, guess: CharsetGuess | None = None
) -> tuple[bytes, str | None]:
    """Return the text as UTF-8, and a defect if the declared charset was not right.

    guess: the message's; without one, the charset is guessed from this text alone.
    """
    name, codec, decode, may_be_utf8, has_ascii = _declared(declared or "")
    is_iso_2022 = ESCAPE in data and data.find(b"\x1b$") >= 0
    # Most text is ASCII, whatever it is declared to be.
    if has_ascii and data.isascii() and not (is_iso_2022 and codec in ("", "ascii", "utf-8")):
        return data, None if codec else "charset-unknown"
    if may_be_utf8 and is_utf8(data) and not is_iso_2022:
        return data.removeprefix(codecs.BOM_UTF8), None
    if data.startswith(MARKED) and (not codec or codec.startswith("utf") or 0 in data):
        return _utf8(data.decode(_marked(data), "replace")), None
    if codec == "utf-16" and data[::2].count(0) > data[1::2].count(0):  # no mark says so
        codec, decode = "utf-16-be", codecs.utf_16_be_decode
    is_marked = data.startswith(codecs.BOM_UTF8) and is_utf8(data)
    if decode is not None and codec != "ascii" and not is_marked:
        try:
            return _utf8(decode(data)[0]), None
        except UnicodeError:
            return _decode_most(data, codec, guess or CharsetGuess()), "charset-wrong"
    data = data.removeprefix(codecs.BOM_UTF8)
    defect = "charset-missing" if not name else "charset-wrong" if codec else "charset-unknown"
    return _guessed(data, guess or CharsetGuess()), defect


def _decode_most(data: bytes, codec: str, guess: CharsetGuess) -> bytes:
    """Return text that has a few errors in its declared charset; guess if it has many."""
    # Text of ISO-2022 and UTF-7 is ASCII, so it would pass for UTF-8.
    if ESCAPE not in data and codec != "utf-7" and (known := _mostly_utf8(data)) is not None:
        return known
    # Windows writes ① and ㈱ where JIS X 0213 has them, and EUC-JP nothing.
    text = _decoded(data, "euc_jis_2004" if codec == "euc_jp" else codec)
    return _utf8(text) if text.count("�") * 20 < len(text) else _guessed(data, guess)


def _guessed(data: bytes, guess: CharsetGuess) -> bytes:
    """Return text as UTF-8 whose charset is not declared, or declared wrongly."""
    if data.find(b"\x1b$") >= 0:  # Japanese or Korean text that says so itself
        return _utf8(_decoded(data, "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_ext"))
    if (known := _mostly_utf8(data)) is not None:
        return known
    return _utf8(_decoded(data, guess.charset(data)))


def _mostly_utf8(data: bytes) -> bytes | None:
    """Return text that is UTF-8 but for a few bytes, None for any other text.

    For every wrong byte two characters beyond ASCII have to be right (E-093).
    """
    if is_utf8(data):
        return data
    text = data.decode("utf-8", "replace")
    n_beyond = len(text) - len(data.translate(None, _BEYOND_ASCII))
    return _utf8(text) if n_beyond >= 3 * text.count("�") else None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# --- the lines of a table -------------------------------------------------------------------

# A table is UTF-8 unless its bytes say otherwise.  Its first line tells UTF-16 and UTF-32; other
# encodings differ from UTF-8 only in lines beyond ASCII.  At the first such line a sample is taken
# and judged, once: the rest of the table is read as it comes.


def decoded_lines(
    stream: BinaryIO, encoding: str | None, notice: Callable[[str], None], most: int
) -> Iterator[str]:
    """Yield the lines of a table as text, with their newlines; raises ValueError.

    encoding: every byte must be right in it; None: it is found from the lines, and `notice` is
    told if it is not UTF-8.  most: bytes of a line.
    """
    lines = _limited(stream, most)
    first = next(lines, b"")
    errors = "strict" if encoding else "replace"
    if encoding is None and (encoding := _wide_encoding(first)) is not None:
        notice(f"read as {encoding.upper()}; --encoding NAME overrides")
    if encoding is not None:
        chunks = iter(partial(stream.read, _CHUNK), b"")
        yield from _decoded_stream(chain([first], chunks), encoding, errors, most)
        return
    lines = chain([first.removeprefix(codecs.BOM_UTF8)], lines)
    for line in lines:
        if line.isascii():
            yield line.decode()
            continue
        sample = [line, *first_lines(lines, _TABLE_SAMPLE)]
        yield from _lines_by_sample(sample, chain(sample, lines), notice)


def _lines_by_sample(
    sample: list[bytes], lines: Iterable[bytes], notice: Callable[[str], None]
) -> Iterator[str]:
    """Yield lines in the encoding that a sample of them suggests."""
    decode: Callable[[bytes], str] = _utf8_or_western
    beyond_ascii = [line[:_TABLE_SAMPLE] for line in sample if not line.isascii()]
    n_right = sum(map(is_utf8, beyond_ascii))
    if _mostly_utf8(b"".join(beyond_ascii)) is None and 2 * n_right < len(beyond_ascii):
        from nbspam.alphabets import from_beyond_ascii, likely_charset

        guessed = [from_beyond_ascii(line, _TABLE_GUESS) for line in beyond_ascii]
        name = likely_charset(b"\n".join(guessed)[:_TABLE_GUESS])
        notice(f"read as {name.upper()}; --encoding NAME overrides")
        # One character that was cut in half is no reason to refuse a table.
        decode = partial(_decoded, codec=name)
    yield from map(decode, lines)


def _utf8_or_western(line: bytes) -> str:
    """Return a line of a table that is UTF-8 but may have some lines that are not."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(_WESTERN, "replace")


def _wide_encoding(line: bytes) -> str | None:
    """Return the encoding of a first line if its units are longer than bytes, else None."""
    if line.startswith(MARKED):
        return _marked(line)
    # Without a mark: every other byte of column names in Latin letters is zero.
    even, odd = line[0::2].count(0), line[1::2].count(0)
    if max(even, odd) * 4 > len(line) and min(even, odd) == 0:
        return "utf-16-be" if even else "utf-16-le"
    return None


def _limited(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the lines of a stream; raises ValueError for one of `most` bytes."""
    for number, line in enumerate(iter(partial(stream.readline, most), b""), start=1):
        if len(line) == most:
            raise _too_long(number, most)
        yield line


def _too_long(number: int, most: int) -> ValueError:
    return ValueError(f"line {number}: over {most:,} bytes, so not a table; give a table")


def first_lines(lines: Iterable[AnyStr], most: int) -> Iterator[AnyStr]:
    """Yield lines up to the first one with which they are longer than `most`."""
    size = 0
    for line in lines:
        yield line
        size += len(line)
        if size > most:
            return


def _decoded_stream(
    chunks: Iterable[bytes], encoding: str, errors: str, most: int
) -> Iterator[str]:
    """Yield the lines of a stream in any encoding; raises ValueError for a wrong byte."""
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    number, rest = 1, ""
    for chunk in chain(chunks, (b"",)):
        state = decoder.getstate()
        try:
            text = decoder.decode(chunk, not chunk)
        except UnicodeError as error:
            start = getattr(error, "start", 0) - len(state[0])
            decoder.setstate(state)
            number += (rest + decoder.decode(chunk[: max(start, 0)])).count("\n")
            raise ValueError(
                f"line {number}: not {encoding}; give another --encoding, or none"
            ) from error
        if number == 1 and not rest:
            text = text.removeprefix("\ufeff")
        *lines, rest = (rest + text).split("\n")
        yield from (f"{line}\n" for line in lines)
        number += len(lines)
        if len(rest) >= most:
            raise _too_long(number, most)
    if rest:
        yield rest
