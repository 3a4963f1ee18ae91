"""The members of a tar archive, in their order, read from a stream.

The library's tarfile takes .13 ms for a member where this takes .05 ms (and training takes
.7 ms for a message; an archive is read twice), keeps all members in memory, ends in silence
where an archive is cut off between two of them, and reads headers of any length.

Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar 1.34
manual, "Basic Tar Format".

Secret: the format.
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, NamedTuple, cast

from nbspam.sources.places.members import Member, Part, closed, cut_off

_BLOCK = 512
_END = bytes(_BLOCK)
_LARGEST = 1 << 50  # bytes of a member
_LONGEST = 1 << 20  # bytes of a header for a name, or of further headers
_FILES, _FOLDER, _LINKS, _DEVICES = b"\x0007", b"5", b"12", b"346"
_NAME_OF_NEXT, _LINK_OF_NEXT, _SPARSE = b"L", b"K", b"S"
_PAX_OF_NEXT, _PAX_OF_ALL = b"xX", b"g"


class _Header(NamedTuple):
    name: bytes
    size: int
    kind: bytes


class _Stated(NamedTuple):
    """What headers before that of a member say of it."""

    name: bytes | None = None
    size: int | None = None
    is_sparse: bool = False


def tar_members(stream: BinaryIO) -> Iterator[Member]:
    """Yield the files, folders and links of an archive; raises ValueError if it is damaged."""
    stated = _Stated()
    while (header := _next_header(stream)) is not None:
        name, size, kind = header
        if kind in _PAX_OF_NEXT + _NAME_OF_NEXT:
            stated = _stated(stated, kind, _extra(stream, size))
            continue
        size = size if stated.size is None else stated.size
        if stated.is_sparse or kind == _SPARSE:
            raise ValueError("has a file with holes (sparse); unpack it")
        name = stated.name or name
        stated = _Stated() if kind not in _LINK_OF_NEXT + _PAX_OF_ALL else stated
        # Folders, links and devices have no data, whatever size they state.
        part = Part(stream, 0 if kind in _FOLDER + _LINKS + _DEVICES else size)
        padding = -part.left % _BLOCK
        text = os.fsdecode(name)
        if kind in _LINKS:
            yield Member(text, False, "a link; unpack it to read what it leads to", closed)
        elif kind in _FOLDER or (kind in _FILES and name.endswith(b"/")):
            yield Member(text, True, None, closed)
        elif kind in _FILES:
            yield Member(text, False, None, partial(_same, part))
        part.skip(padding)


def _same(part: Part) -> BinaryIO:
    return cast("BinaryIO", part)


def _next_header(stream: BinaryIO) -> _Header | None:
    """Return the next header, None at the end mark; raises ValueError."""
    block = stream.read(_BLOCK)
    if len(block) < _BLOCK:
        raise cut_off()
    if block == _END:
        return None
    # The checksum is the sum of all bytes, with spaces in its own place.
    if _number(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise _damage("a header's checksum is wrong")
    name = block[:100].partition(b"\0")[0]
    if block[257:263] == b"ustar\0" and block[345]:
        name = block[345:500].partition(b"\0")[0] + b"/" + name
    return _Header(name, _number(block[124:136]), block[156:157])


def _number(field: bytes) -> int:
    """Return a number in octal digits, or in base 256 if the first bit is set."""
    if field[0] & 0x80:
        return _sane(int.from_bytes(bytes((field[0] & 0x7F,)) + field[1:], "big"))
    try:
        number = int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        number = -1
    return _sane(number)


def _extra(stream: BinaryIO, size: int) -> bytes:
    """Return the data of a header that describes the next member."""
    if size > _LONGEST:
        raise _damage(f"a header of {size:,} bytes")
    part = Part(stream, size)
    data = part.read()
    part.skip(-size % _BLOCK)
    return data


def _stated(before: _Stated, kind: bytes, data: bytes) -> _Stated:
    """Return what is stated of the next member, with what one more header says of it."""
    if kind == _NAME_OF_NEXT:
        return before._replace(name=data.partition(b"\0")[0])
    records = dict(_pax_records(data))
    size = records.get(b"size")
    return _Stated(
        records.get(b"path") or before.name,
        before.size if size is None else _decimal(size),
        before.is_sparse or any(key.startswith(b"GNU.sparse.") for key in records),
    )


def _pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and value of each record "length key=value\\n"."""
    at = 0
    while at < len(data) and data[at]:
        digits = data[at : at + 20].partition(b" ")[0]
        end = at + _decimal(digits)
        key, equals, value = data[at + len(digits) + 1 : end - 1].partition(b"=")
        if not equals or data[end - 1 : end] != b"\n":
            raise _damage("a header has a record without an end")
        yield key, value
        at = end


def _decimal(digits: bytes) -> int:
    return _sane(int(digits) if digits.isdigit() and len(digits) < 20 else -1)


def _sane(number: int) -> int:
    if not 0 <= number < _LARGEST:
        raise _damage("a header has no number where one must be")
    return number


def _damage(what: str) -> ValueError:
    return ValueError(f"damaged ({what}); copy it again from its source")
