"""The names of the files in archives, from their headers: nothing is unpacked.

ZIP (APPNOTE 6.3.9), RAR of versions 4 and 5, and 7z, whose headers may be compressed.  Damaged and
hostile archives end the reading early; it never raises, and takes linear time.
"""

import lzma
import re
from struct import error, unpack_from
from typing import NamedTuple

MAX_ENTRIES = 500
_MAX_HEADER = 1 << 20  # bytes of the header of a 7z archive, when it is decompressed


class Archive(NamedTuple):
    """The files in an archive."""

    names: list[bytes]  # in UTF-8, or in a charset that is not declared
    sizes: list[int]  # bytes, unpacked; of as many files as tell it
    is_encrypted: bool


def read_archive(data: bytes) -> Archive | None:
    """Return the files in an archive; None if the data are no archive."""
    for start, read in (
        (b"PK\3\4", _read_zip),
        (b"Rar!\x1a\7\0", _read_rar4),
        (b"Rar!\x1a\7\1\0", _read_rar5),
        (b"7z\xbc\xaf\x27\x1c", _read_7z),
    ):
        if data.startswith(start):
            archive = Archive([], [], False)
            try:
                return read(data, archive)
            except (
                error,
                IndexError,
                lzma.LZMAError,
                ValueError,
                OverflowError,
            ):  # the data end
                return archive
    return None


# --- ZIP -------------------------------------------------------------------------------------

_ZIP_ENTRY = re.compile(b"PK\3\4")


def _read_zip(data: bytes, archive: Archive) -> Archive:
    # By the headers before the files, because the directory at the end may be cut off.
    for match in _ZIP_ENTRY.finditer(data):
        if match.start() + 30 > len(data) or len(archive.names) >= MAX_ENTRIES:
            break
        flags, size, length = unpack_from("<2xH14xIH", data, match.start() + 4)
        archive.names.append(data[match.start() + 30 : match.start() + 30 + length][:255])
        archive.sizes.append(size)
        archive = archive._replace(is_encrypted=archive.is_encrypted or bool(flags & 1))
    return archive


# --- RAR -------------------------------------------------------------------------------------


def _read_rar4(data: bytes, archive: Archive) -> Archive:
    place = 7
    while place + 7 <= len(data) and len(archive.names) < MAX_ENTRIES:
        kind, flags, size = unpack_from("<2xBHH", data, place)
        more = unpack_from("<I", data, place + 7)[0] if flags & 0x8000 or kind == 0x74 else 0
        if kind == 0x73 and flags & 0x80:  # the headers are encrypted
            return archive._replace(is_encrypted=True)
        if kind == 0x74:
            unpacked, length = unpack_from("<4xI11xH", data, place + 7)
            name = data[place + 32 + 8 * bool(flags & 0x100) :][:length]
            archive.names.append(name.partition(b"\0")[0][:255])
            archive.sizes.append(unpacked)
            archive = archive._replace(is_encrypted=archive.is_encrypted or bool(flags & 4))
        place += max(size, 7) + more
    return archive


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 63, 7):
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            break
    return value, place


def _read_rar5(data: bytes, archive: Archive) -> Archive:
    place = 8
    while place + 7 <= len(data) and len(archive.names) < MAX_ENTRIES:
        size, start = _number(data, place + 4)
        kind, at = _number(data, start)
        flags, at = _number(data, at)
        extra, at = _number(data, at) if flags & 1 else (0, at)
        more, at = _number(data, at) if flags & 2 else (0, at)
        if kind == 4:  # the headers are encrypted
            return archive._replace(is_encrypted=True)
        if kind == 2:
            file_flags, at = _number(data, at)
            unpacked, at = _number(data, at)
            _, at = _number(data, at)
            at += 4 * bool(file_flags & 2) + 4 * bool(file_flags & 4)
            _, at = _number(data, at)
            _, at = _number(data, at)
            length, at = _number(data, at)
            archive.names.append(data[at : at + min(length, 255)])
            archive.sizes.append(unpacked)
            # The first record of the extra area says how the file is encrypted.
            end = start + size
            is_encrypted = extra > 1 and _number(data, _number(data, end - extra)[1])[0] == 1
            archive = archive._replace(is_encrypted=archive.is_encrypted or is_encrypted)
        place = start + max(size, 1) + more
    return archive


# --- 7z --------------------------------------------------------------------------------------

_AES = b"\x06\xf1\x07\x01"
# The coder of a header that is compressed by the first LZMA, before its settings; else the second.
_LZMA = b"\x23\x03\x01\x01\x05"
_NAMES_PROPERTY = re.compile(rb"\x11")
_MAX_TRIES = 64


def _read_7z(data: bytes, archive: Archive) -> Archive:
    offset, size = unpack_from("<QQ", data, 12)
    header = data[32 + offset : 32 + offset + min(size, _MAX_HEADER)]
    is_encrypted = _AES in header
    if header[:1] == b"\x17" and not is_encrypted:
        header = _unpacked_header(data, header)
        is_encrypted = _AES in header
    archive = archive._replace(is_encrypted=is_encrypted)
    # The property of the names: its length, a zero, and texts of UTF-16 that end in zeros.
    for match in list(_NAMES_PROPERTY.finditer(header, header.rfind(b"\x05\0")))[:_MAX_TRIES]:
        size, at = _number_7z(header, match.end())
        texts = header[at + 1 : at + size]
        if size % 2 and len(texts) == size - 1 >= 4 and header[at] == 0 and texts[-2:] == b"\0\0":
            names = texts.decode("utf-16-le", "replace").split("\0")[:MAX_ENTRIES]
            archive.names.extend(name[:255].encode() for name in names if name)
            break
    return archive


def _unpacked_header(data: bytes, header: bytes) -> bytes:
    """Return the header of a 7z archive that is compressed by LZMA."""
    place, at = _number_7z(header, 2)  # behind the marks of an encoded header and of its data
    _, at = _number_7z(header, at)
    size, _ = _number_7z(header, at + 1)
    _, is_first, settings = header.partition(_LZMA)
    if is_first:
        rest, lc = divmod(settings[0], 9)
        pb, lp = divmod(rest, 5)
        coder = {"id": lzma.FILTER_LZMA1, "lc": lc, "lp": lp, "pb": pb}
    else:
        coder = {"id": lzma.FILTER_LZMA2}
    filters = [{**coder, "dict_size": _MAX_HEADER}]
    packed = data[32 + place : 32 + place + size]
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(packed, _MAX_HEADER)


def _number_7z(data: bytes, place: int) -> tuple[int, int]:
    """Return a number, and where it ends: leading ones of its first byte count those behind."""
    value = 0
    for n in range(8):
        if not data[place] << n & 0x80:
            return value | (data[place] & (0x7F >> n)) << 8 * n, place + n + 1
        value |= data[place + n + 1] << 8 * n
    return value, place + 9
