"""The lines of a table as text, whatever encoding a program wrote it in.

A table is UTF-8 unless its bytes say otherwise.  Its first line tells UTF-16 and UTF-32; the
others differ from UTF-8 only in lines beyond ASCII.  At the first of these a sample is taken
and judged, once: the rest of the table is read as it comes.

Secret: how an encoding is found, and what becomes of bytes that it does not have.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO

from nbspam.errors import UsageError

_MARKS = {  # byte order marks, longer ones first
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_WESTERN = "cp1252"
_SAMPLE = 1 << 16  # bytes
_JUDGED = 1 << 13  # bytes of them, in lines beyond ASCII, from which an encoding is guessed
_CHUNK = 1 << 18
_EXAMPLES = "gb18030, big5, shift_jis, koi8-r, windows-1251 or utf-16"


def check_encoding(name: str) -> None:
    """Raise UsageError if a name is not that of an encoding of text."""
    try:
        is_text = codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        is_text = False
    if not is_text:
        raise UsageError(f"--encoding {name}: unknown; give one such as {_EXAMPLES}")


def decoded_lines(
    stream: BinaryIO, encoding: str | None, notice: Callable[[str], None], most: int
) -> Iterator[str]:
    """Yield the lines of a table as text, with their newlines; raises ValueError.

    encoding: in which every byte must be right; None: found by looking, and `notice` is told
    if it is not UTF-8.  most: bytes of a line.
    """
    lines = _limited(stream, most)
    first = next(lines, b"")
    if encoding is not None:
        yield from _decoded(chain([first], _chunks(stream)), encoding, "strict", most)
        return
    wide = _wide_encoding(first)
    if wide is not None:
        notice(f"read as {wide}; --encoding NAME overrides")
        yield from _decoded(chain([first], _chunks(stream)), wide, "replace", most)
        return
    lines = chain([first.removeprefix(codecs.BOM_UTF8)], lines)
    for line in lines:
        if line.isascii():
            yield line.decode()
            continue
        sample = [line, *_sample(lines)]
        yield from _lines_by_sample(sample, chain(sample, lines), notice)


def _lines_by_sample(
    sample: list[bytes], lines: Iterable[bytes], notice: Callable[[str], None]
) -> Iterator[str]:
    """Yield lines in the encoding that a sample of them suggests."""
    decode: Callable[[bytes], str] = _utf8_or_western
    beyond_ascii = [line[:_SAMPLE] for line in sample if not line.isascii()]
    if not _is_mostly_utf8(beyond_ascii):
        name = _likely_encoding(beyond_ascii)
        notice(f"read as {name}; --encoding NAME overrides")
        # One character that was cut in half is no reason to refuse a table.
        decode = partial(str, encoding=name, errors="replace")
    yield from map(decode, lines)


def _utf8_or_western(line: bytes) -> str:
    """Return a line of a table that is UTF-8 but may have some lines that are not."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(_WESTERN, "replace")


def _is_mostly_utf8(lines: list[bytes]) -> bool:
    """Return whether lines are UTF-8, though a few of them or of their bytes are not.

    Half of the lines, or two characters beyond ASCII for every wrong byte, are enough: in
    other encodings at most one byte in three looks like a character of UTF-8 (E-093).
    """
    texts = [line.decode("utf-8", "surrogateescape") for line in lines]
    wrong = [sum("\udc80" <= character <= "\udcff" for character in text) for text in texts]
    n_beyond = sum(character > "\x7f" for text in texts for character in text)
    return n_beyond >= 3 * sum(wrong) or 2 * wrong.count(0) >= len(wrong)


def _likely_encoding(lines: list[bytes]) -> str:
    """Return the name of the encoding that lines, which are not UTF-8, are most likely in."""
    from nbspam.alphabets import from_beyond_ascii, likely_charset

    taken, size = [], 0
    for line in lines:
        taken.append(from_beyond_ascii(line, _JUDGED))
        size += len(taken[-1])
        if size > _JUDGED:
            break
    return likely_charset(b"\n".join(taken)).upper()


def _wide_encoding(line: bytes) -> str | None:
    """Return the encoding of a first line if its units are longer than bytes, else None."""
    for mark, name in _MARKS.items():
        if line.startswith(mark):
            return name
    # Without a mark: every other byte of column names in Latin letters is zero.
    even, odd = line[0::2].count(0), line[1::2].count(0)
    if max(even, odd) * 4 > len(line) and min(even, odd) == 0:
        return "UTF-16-BE" if even else "UTF-16-LE"
    return None


def _limited(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the lines of a stream; raises ValueError for one of `most` bytes."""
    number = 0
    while line := stream.readline(most):
        number += 1
        if len(line) == most:
            raise _too_long(number, most)
        yield line


def _too_long(number: int, most: int) -> ValueError:
    return ValueError(f"line {number}: over {most:,} bytes, so not a table; give a table")


def _sample(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Take lines of about _SAMPLE bytes."""
    size = 0
    for line in lines:
        yield line
        size += len(line)
        if size > _SAMPLE:
            return


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _decoded(chunks: Iterable[bytes], encoding: str, errors: str, most: int) -> Iterator[str]:
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
