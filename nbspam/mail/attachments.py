"""Facts about attached files, which are evidence and cost next to nothing.

They are the type of a file by its first bytes, beside the type it claims; its size; a hash, which
recognises the same picture or document again; and facts from its headers.  For archives these are
the names of their files: nothing is unpacked but a tar archive inside of gzip.
"""

import lzma
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from typing import NamedTuple

from nbspam.errors import library_error
from nbspam.mail.headers import LIMITS, ReadingLimits

MAX_FILE = 2 << 20  # bytes of a file that are looked at
MAX_MEMBERS = 500  # of an archive
_MAX_NAME = 1024  # bytes of a name in an archive: 255 Chinese letters are 765
_MAX_HEADER = 1 << 20  # bytes of the header of a 7z archive, when it is decompressed
_MAX_UNPACKED = 1 << 20  # bytes of a tar archive, or of objects of a PDF
_MILLISECONDS = 300  # of processor time that the documents of a message may take
_LIBRARIES = ("pypdfium2", "PIL", "zxingcpp", "olefile")


@cache
def limits_with_documents() -> ReadingLimits:
    """Return the limits of a reader of documents; raises UsageError without its libraries."""
    for name in _LIBRARIES:
        if find_spec(name) is None:
            raise library_error("--attachments", name, "attachments")
    return LIMITS._replace(documents=_MILLISECONDS)


class AttachedFile(NamedTuple):
    """Facts about a file that is not read, and the names inside it."""

    kind: str  # one of DOCUMENTS, another type, or nothing if it is unknown
    facts: list[str]
    names: list[bytes]  # of the files inside an archive: in UTF-8, or in an unknown charset


_STARTS = {
    b"%PDF": "pdf",
    b"PK\3\4": "zip",
    b"Rar!\x1a\7": "rar",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x1f\x8b": "gzip",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "ole",
    b"{\\rt": "rtf",
    b"\x89PNG\r\n\x1a\n": "png",
    b"GIF8": "gif",
    b"\xff\xd8\xff": "jpeg",
    b"BM": "bmp",
    b"MZ": "exe",
    b"\x7fELF": "elf",
    b"ITSF": "chm",
    b"L\0\0\0\1\x14\2\0": "lnk",
    b"MSCF": "cab",
    b"\x60\xea": "arj",
    b"BZh": "bz2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"ID3": "mp3",
    b"<svg": "svg",
    b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d": "one",
}
_MARKS = (  # which stand behind other bytes
    (b"WEBP", 8, "webp"),
    (b"-lh", 2, "lzh"),
    (b"ustar", 257, "tar"),
    (b"CD001", 0x8001, "iso"),  # ECMA-119, section 8.4
)
_PDF, _SNIFFED = re.compile(rb"%PDF-\d"), 1024  # bytes of the beginning
_LONGEST = max(map(len, _STARTS))
_ARCHIVE = re.compile(b"PK\3\4|Rar!\x1a\7|7z\xbc\xaf\x27\x1c")
# Other names of types, in the file's name or declared type.
_SAME = {
    **dict.fromkeys(("jpg", "jpe", "jfif", "pjpeg"), "jpeg"),
    **dict.fromkeys(("doc", "dot", "xls", "xlt", "ppt", "pps", "msi", "msg", "msword"), "ole"),
    **dict.fromkeys(("docx", "docm", "xlsx", "xlsm", "xlsb", "pptx", "pptm", "ppsx"), "zip"),
    **dict.fromkeys(("odt", "ods", "odp", "jar", "apk", "epub", "xps", "x-zip-compressed"), "zip"),
    **dict.fromkeys(("scr", "dll", "com", "pif", "cpl", "x-msdownload"), "exe"),
    **dict.fromkeys(("gz", "tgz", "x-gzip"), "gzip"),
    **dict.fromkeys(("x-rar-compressed", "vnd.rar"), "rar"),
    "x-png": "png",
    "x-tar": "tar",
    "img": "iso",
}
_KNOWN = frozenset((*_STARTS.values(), *_SAME, *(kind for _, _, kind in _MARKS)))
_OFFICE = {b"word": "docx", b"ppt": "pptx", b"xl": "xlsx", b"content.xml": "odf"}
IMAGES = frozenset(("png", "gif", "jpeg", "bmp", "webp"))
NEED_NO_END = frozenset(("rtf", *_OFFICE.values()))
DOCUMENTS = frozenset(("pdf", "rtf", "docx", "xlsx", "pptx", "odf", "ole", *IMAGES))
_EXTENSION = re.compile(rb"\.([A-Za-z0-9]{1,8})\s*\Z")
# A harmless extension stands before the real one.
_DOUBLE = re.compile(
    rb"\.(?:pdf|docx?|xlsx?|pptx?|jpe?g|png|gif|txt|html?|csv)[\s_.]*\.(?!asc|sig|gz|p7[ms]|bz2)"
    rb"[a-z0-9]{2,5}\s*\Z",
    re.IGNORECASE,
)
_REVERSED = "\u202e".encode()  # what follows is written from right to left
_IN_PDF = {
    b"/Encrypt": "encrypted",
    b"/JavaScript": "pdf-script",
    b"/Launch": "pdf-launch",
    b"/EmbeddedFile": "pdf-file",
    b"/AcroForm": "pdf-form",
    b"/URI": "pdf-link",
}
_IN_OLE = {
    "_VBA_PROJECT".encode("utf-16-le"): "macros",
    "EncryptedPackage".encode("utf-16-le"): "encrypted",
    "Ole10Native".encode("utf-16-le"): "embedded",
}
_IN_DATA = {"pdf": _IN_PDF, "ole": _IN_OLE, "rtf": {b"\\objdata": "embedded"}}
_IN_OFFICE = {  # in the names of the parts; macros of version 4 stand in sheets
    "macros": re.compile(rb"(?i:vbaproject\.bin\Z|/macrosheets/)"),
    "embedded": re.compile(rb"/embeddings/oleObject"),
}
_IN_HTML = {
    b"atob(": "script-atob",
    b"createobjecturl": "script-blob",
    b"mssaveoropenblob": "script-blob",
    b"fromcharcode": "script-codes",
    b"unescape(": "script-unescape",
    b'type="password"': "asks-password",
}
MAX_SIGNATURE = 16 << 10  # bytes of one of the mail, which is no file to its reader
SIGNATURES = frozenset(
    b"application/%b" % name
    for name in (b"pgp-signature", b"pkcs7-signature", b"x-pkcs7-signature", b"pgp-encrypted")
)
_MAX_INSIDE = 20  # kinds of files inside an archive that are told


def look_at_file(kind: bytes, filename: bytes, data: bytes, size: int) -> AttachedFile:
    """Return facts about a file; never raises.

    kind: its declared type.  data: at most MAX_FILE bytes of it.  size: bytes of all of it.
    """
    extension = _EXTENSION.search(filename)
    named = extension[1].lower().decode() if extension else ""
    said = {named, kind.partition(b"/")[2].decode("latin-1")} & _KNOWN
    found = "pdf" if "pdf" in said and _PDF.search(data, 0, _SNIFFED) else _type_of_bytes(data)
    # Programs open archives behind other bytes, too, which may be a program that unpacks them.
    mark = _ARCHIVE.search(data) if found in ("", "exe", "zip", "rar", "7z") else None
    packed = data[mark.start() if mark else 0 :]
    found = found or _type_of_bytes(packed)
    step = max(4 ** ((max(size, 1).bit_length() + 1) // 2), 1024)  # a class of sizes, by its end
    facts = [f"type-{found or 'other'}", f"size-{step >> 10}k"]
    wrong = [each for each in sorted(said) if found not in ("", _SAME.get(each, each))]
    facts += [f"{each}-is-{found}" for each in wrong]
    if size > MAX_FILE:
        facts.append("too-large")
    inside = _IN_DATA.get(found, {})
    objects = b"".join(_compressed_objects(data)) if found == "pdf" else b""
    facts += sorted({fact for sign, fact in inside.items() if sign in data or sign in objects})
    if found in IMAGES and (measures := _measures(found, data)):
        facts.append("image-{}x{}".format(*measures))
    names: list[bytes] = []
    if (archive := read_archive(packed)) is not None:
        names, is_encrypted = archive
        roots = {name.partition(b"/")[0] for name in names}
        found = next((office for root, office in _OFFICE.items() if root in roots), found)
        facts += ["encrypted"] * is_encrypted
        facts += [fact for fact, sign in _IN_OFFICE.items() if any(map(sign.search, names))]
        facts += [f"type-{found}"] if found in DOCUMENTS else _facts_of_names(names)
    filenames = [filename, *([] if found in DOCUMENTS else names)]
    facts += ["double-extension"] * any(map(_DOUBLE.search, filenames))
    facts += ["reversed-name"] * any(_REVERSED in name for name in filenames)
    if found in ("", "svg") and b"<" in data[:_SNIFFED]:
        small = data.lower()
        facts += sorted({fact for sign, fact in _IN_HTML.items() if sign in small})
    facts.append(f"same-{sha256(data).hexdigest()[:16]}")
    return AttachedFile(found, facts, filenames[1:])


def _type_of_bytes(data: bytes) -> str:
    start = data[: _LONGEST + 2].lstrip()
    found = next((kind for mark, kind in _STARTS.items() if start.startswith(mark)), "")
    for mark, place, kind in _MARKS:
        found = kind if data.startswith(mark, place) else found
    # Viewers find a PDF behind other bytes, but files in an archive begin there, too.
    if found not in _ENTRIES and _PDF.search(data, 0, _SNIFFED):
        return "pdf"
    if data.startswith(b"<?xml") and b"<svg" in data[:_SNIFFED]:
        return "svg"
    return found


def _compressed_objects(data: bytes) -> Iterator[bytes]:
    """Yield the objects of a PDF that stand together in compressed streams."""
    left = _MAX_UNPACKED
    for piece in data.split(b"/ObjStm", MAX_MEMBERS)[1:]:
        packed = piece.partition(b"stream")[2].lstrip(b"\r\n")
        try:
            objects = zlib.decompressobj().decompress(packed, left)
        except zlib.error:
            objects = b""
            left //= 2  # damage does not tell how much was unpacked before it
        left -= len(objects)
        yield objects
        if left <= 0:
            break


def _facts_of_names(names: list[bytes]) -> list[str]:
    inside = {match[1].lower().decode() for match in map(_EXTENSION.search, names) if match}
    facts = [f"inside-{extension}" for extension in sorted(inside)[:_MAX_INSIDE]]
    paths = [name.replace(b"\\", b"/").rstrip(b"/") for name in names]
    n_files = len({*paths} - {path.rpartition(b"/")[0] for path in paths})  # without folders
    return [*facts, f"files-{min(n_files, 10)}"]


_JPEG_FRAME = re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]..\x08", re.DOTALL)
_MEASURES = {"png": (">II", 16), "gif": ("<HH", 6), "bmp": ("<Ii", 18)}  # where they stand
_MAX_SEGMENTS = 200  # of a JPEG before its measures


def _measures(kind: str, data: bytes) -> tuple[int, int] | None:
    """Return width and height of a picture, in pixels."""
    with suppress(struct.error):
        if kind in _MEASURES:
            return struct.unpack_from(_MEASURES[kind][0], data, _MEASURES[kind][1])
        return _measures_of_jpeg(data) if kind == "jpeg" else _measures_of_webp(data)
    return None


def _measures_of_webp(data: bytes) -> tuple[int, int] | None:
    """Return width and height, by the first chunk: RFC 9649, sections 2.5 to 2.7."""
    if data[12:16] == b"VP8X":
        wide, high = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return wide + 1, high + 1
    if data[12:16] == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    wide, high = struct.unpack_from("<HH", data, 26)
    return (wide & 0x3FFF, high & 0x3FFF) if data[12:16] == b"VP8 " else None


def _measures_of_jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MAX_SEGMENTS):
        if _JPEG_FRAME.match(data, place):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        mark, size = struct.unpack_from(">HH", data, place)
        if not 0xFFC0 <= mark <= 0xFFFE:
            return None
        place += 2 + size
    return None


# --- archives --------------------------------------------------------------------------------
#
# Damaged and hostile archives end the reading early; it never raises, and takes linear time.

_Entry = tuple[bytes | None, bool]  # the name of a file, if it is known; whether it is encrypted


def read_archive(data: bytes) -> tuple[list[bytes], bool] | None:
    """Return the names of the files in an archive, and whether any of them is encrypted.

    None if the data are no archive.
    """
    entries = _ENTRIES.get(_type_of_bytes(data))
    if entries is None:
        return None
    names: list[bytes] = []
    is_encrypted = False
    # Errors mean that the data end.
    with suppress(struct.error, IndexError, lzma.LZMAError, zlib.error, ValueError, OverflowError):
        for name, is_closed in entries(data):
            is_encrypted = is_encrypted or is_closed
            names += [] if name is None else [name[:_MAX_NAME]]
            if len(names) >= MAX_MEMBERS:
                break
    return names, is_encrypted


# --- ZIP (APPNOTE 6.3.9) ---------------------------------------------------------------------

# Flags and lengths of a name and of more fields, before a file or in the directory behind all.
_ZIP_NAME = re.compile(b"PK(?=(?:\3\4|\1(\2)..)..(..).{18}(....))", re.DOTALL)
_ZIP_UNICODE = re.compile(rb"up(..)\x01.{4}(.*)", re.DOTALL)  # the field of a name in UTF-8


def _zip_entries(data: bytes) -> Iterator[_Entry]:
    """Yield the names that programs show, also of the directory and in Unicode, once each."""
    seen: set[bytes] = set()
    for match in islice(_ZIP_NAME.finditer(data), 2 * MAX_MEMBERS):
        size, more = struct.unpack("<HH", match[3])
        start = match.end() + (44 if match[1] else 28)
        fields = _ZIP_UNICODE.finditer(data, start + size, start + size + min(more, _MAX_NAME))
        names = [each[2][: max(int.from_bytes(each[1], "little") - 5, 0)] for each in fields]
        # Of names with the same extension only the last one counts.
        for name in {name[-4:]: name for name in (data[start : start + size], *names)}.values():
            yield None if name in seen else name, bool(match[2][0] & 1)
            seen.add(name)


# --- tar (POSIX, `pax`) and gzip (RFC 1952) --------------------------------------------------

_END = re.compile(rb"[\0\n]")


def _tar_entries(data: bytes) -> Iterator[_Entry]:
    place, long_name = 0, b""
    while data.startswith(b"ustar", place + 257):
        digits = data[place + 124 : place + 136]  # or a number in bytes, behind a first bit
        is_wide = digits[0] & 0x80
        size = int.from_bytes(digits[1:]) if is_wide else int(digits.strip(b" \0") or b"0", 8)
        kind, content = data[place + 156 : place + 157], data[place + 512 : place + 512 + size]
        if kind not in b"5DKLNVXgx":  # folders, and headers about other members
            yield long_name or data[place : place + 100].partition(b"\0")[0], False
        is_name = kind == b"L" or (kind == b"x" and b" path=" in content)  # of the next file
        long_name = _END.split(content.rpartition(b" path=")[2], 1)[0] if is_name else b""
        place += 512 + max(size + -size % 512, 0)


def _gzip_entries(data: bytes) -> Iterator[_Entry]:
    tar = zlib.decompressobj(31).decompress(data, _MAX_UNPACKED)
    if tar.startswith(b"ustar", 257):
        yield from _tar_entries(tar)
    elif data[3] & 8:
        extra = int.from_bytes(data[10:12], "little") + 2 if data[3] & 4 else 0
        yield data[10 + extra :].partition(b"\0")[0], False


# --- RAR of versions 4 and 5 -----------------------------------------------------------------


def _rar4_entries(data: bytes) -> Iterator[_Entry]:
    place = 7
    while place + 7 <= len(data):
        kind, flags, size = struct.unpack_from("<2xBHH", data, place)
        has_data = flags & 0x8000 or kind == 0x74
        more = struct.unpack_from("<I", data, place + 7)[0] if has_data else 0
        if kind == 0x73 and flags & 0x80:  # the headers are encrypted
            yield None, True
            return
        if kind == 0x74:
            (length,) = struct.unpack_from("<19xH", data, place + 7)
            start = place + 32 + 8 * bool(flags & 0x100)
            yield data[start : start + length].partition(b"\0")[0], bool(flags & 4)
        place += max(size, 7) + more


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 63, 7):
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            break
    return value, place


def _rar5_entries(data: bytes) -> Iterator[_Entry]:
    place = 8
    while place + 7 <= len(data):
        size, start = _number(data, place + 4)
        kind, at = _number(data, start)
        flags, at = _number(data, at)
        extra, at = _number(data, at) if flags & 1 else (0, at)
        more, at = _number(data, at) if flags & 2 else (0, at)
        if kind == 4:  # the headers are encrypted
            yield None, True
            return
        if kind == 2:
            file_flags, at = _number(data, at)
            for _ in range(2):  # the size, unpacked, and attributes
                _, at = _number(data, at)
            at += 4 * bool(file_flags & 2) + 4 * bool(file_flags & 4)
            for _ in range(2):  # compression and system
                _, at = _number(data, at)
            length, at = _number(data, at)
            # The first record of the extra area says how the file is encrypted.
            end = start + size
            is_encrypted = extra > 1 and _number(data, _number(data, end - extra)[1])[0] == 1
            yield data[at : at + length], is_encrypted
        place = start + max(size, 1) + more


# --- 7z, whose header may be compressed ------------------------------------------------------

_AES = b"\x06\xf1\x07\x01"
# The coder of a header that is compressed by the first LZMA, before its settings; else the second.
_LZMA = b"\x23\x03\x01\x01\x05"
_NAMES_PROPERTY = re.compile(rb"\x11")
_MAX_TRIES = 64
_MAX_NAMES = 1 << 16  # bytes of names: decoding 1 MB of wrong ones takes a tenth of a second


def _7z_entries(data: bytes) -> Iterator[_Entry]:
    offset, size = struct.unpack_from("<QQ", data, 12)
    header = data[32 + offset : 32 + offset + min(size, _MAX_HEADER)]
    if header[:1] == b"\x17" and _AES not in header:
        header = _unpacked_header(data, header)
    yield None, _AES in header
    # The property of the names: its length, a zero, and texts of UTF-16 that end in zeros.
    for match in islice(_NAMES_PROPERTY.finditer(header, header.rfind(b"\x05\0")), _MAX_TRIES):
        size, at = _number_7z(header, match.end())
        end = at + size
        is_whole = size % 2 and size > 4 and end <= len(header)
        if is_whole and header[at] == 0 and header[end - 2 : end] == b"\0\0":
            texts = header[at + 1 : min(end, at + 1 + _MAX_NAMES)]
            names = texts.decode("utf-16-le", "replace").split("\0")[:-1]
            yield from ((name.encode(), False) for name in names if name)
            break


def _unpacked_header(data: bytes, header: bytes) -> bytes:
    """Return the header of a 7z archive that is compressed by LZMA."""
    place, at = _number_7z(header, 2)  # behind the marks of an encoded header and of its data
    _, at = _number_7z(header, at)
    size, _ = _number_7z(header, at + 1)
    _, is_first, settings = header.partition(_LZMA)
    packed = data[32 + place : 32 + place + size]
    if is_first:  # as a file of its own, which states no length
        packed = settings[:1] + _MAX_HEADER.to_bytes(4, "little") + b"\xff" * 8 + packed
        return lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(packed, _MAX_HEADER)
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": _MAX_HEADER}]
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(packed, _MAX_HEADER)


def _number_7z(data: bytes, place: int) -> tuple[int, int]:
    """Return a number, and where it ends: leading ones of its first byte count those behind."""
    value = 0
    for n in range(8):
        if not data[place] << n & 0x80:
            return value | (data[place] & (0x7F >> n)) << 8 * n, place + n + 1
        value |= data[place + n + 1] << 8 * n
    return value, place + 9


_ENTRIES = {
    "zip": _zip_entries,
    "rar": lambda data: (_rar5_entries if data[6] else _rar4_entries)(data),
    "7z": _7z_entries,
    "tar": _tar_entries,
    "gzip": _gzip_entries,
}
