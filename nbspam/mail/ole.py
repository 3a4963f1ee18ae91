"""The text of files of Word, Excel and PowerPoint 97 to 2003, and of messages saved by Outlook.

All are OLE compound files: streams in storages (MS-CFB), which `olefile` opens.  Text is found in
Word by the table of its pieces (MS-DOC, 2.4.1), in Excel (MS-XLS) and PowerPoint (MS-PPT) by
records, in Outlook by the names of streams (MS-OXMSG).  Damaged streams end the reading early.
"""

import io
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from struct import error, iter_unpack, unpack_from
from typing import TYPE_CHECKING

from nbspam.mail.wrappings import UTF_16, decompressed, in_utf8, rtf_texts

if TYPE_CHECKING:
    from olefile import OleFileIO

_MAX_TEXT = 256 << 10  # characters
_LINK = re.compile(r"[a-z]{3,9}:[^\0-\x20\"]{3,2000}")
# The code of a field, which is not shown, of Word.
_CODE = re.compile(r"\x13(?!\s*+(?:EQ|MACROBUTTON|GOTOBUTTON)\b)([^\x13-\x15]*+)")
# Marks of fields and pictures; of paragraphs, cells, lines and pages; two hyphens of Word.
_CONTROLS = dict.fromkeys(range(32), " ") | dict.fromkeys((7, 10, 11, 12, 13), "\n")
_CONTROLS |= {0x1E: "-", 0x1F: ""}


class EncryptedError(Exception):
    """The document needs a password."""


def ole_texts(data: bytes) -> tuple[str, str, list[bytes]]:
    """Return shown and hidden text of an OLE file, and the files attached to a message.

    Damaged files are read as far as they go.  Raises EncryptedError, and the errors of olefile if
    the file cannot be opened.
    """
    from olefile import OleFileIO

    shown: list[str] = []
    hidden: list[str] = []
    files: list[bytes] = []
    left = _MAX_TEXT
    with (
        OleFileIO(io.BytesIO(data)) as file,
        # These errors mean that the data end.
        suppress(error, IndexError, OSError, OverflowError, RecursionError),
    ):
        for entry in filter(None, file.direntries):  # sectors in a circle would fill the memory
            entry.size = min(entry.size, len(data) + 4096)  # below 4096 they stand elsewhere
        for is_hidden, text in _texts(file, files):
            (hidden if is_hidden else shown).append(text)
            left -= 0 if is_hidden else len(text)
            if left <= 0:
                break
    return "\n".join(shown).translate(_CONTROLS), "\n".join(hidden)[:_MAX_TEXT], files


def _texts(file: "OleFileIO", files: list[bytes]) -> Iterator[tuple[bool, str]]:
    """Yield whether a text is hidden, and the text; files: gets attached files."""

    def stream(name: str) -> bytes:
        return file.openstream(name).read() if file.exists(name) else b""

    if word := stream("WordDocument"):
        flags = unpack_from("<H", word, 10)[0]
        if flags & 0x100:
            raise EncryptedError
        yield False, _word_text(word, stream("1Table" if flags & 0x200 else "0Table"))
    yield from _excel_texts(stream("Workbook"))
    if stream("Current User")[12:16] == b"\xdf\xc4\xd1\xf3":
        raise EncryptedError
    for text in _powerpoint_texts(stream("PowerPoint Document")):
        yield False, text
    charset = _CODE_PAGE_OF_MESSAGE.search(stream("__properties_version1.0"))
    page = f"cp{int.from_bytes(charset[1], 'little')}" if charset else ""
    yield from _outlook_texts(file, page, files)


def _word_text(stream: bytes, table: bytes) -> str:
    start, size = unpack_from("<II", stream, 0x1A2)
    table = table[start : start + size]
    place = 0
    while table[place] == 1:  # formats stand before the pieces
        place += 3 + unpack_from("<H", table, place + 1)[0]
    n_pieces = unpack_from("<I", table, place + 1)[0] // 12
    ends = unpack_from(f"<{n_pieces + 1}I", table, place + 5)
    place += 9 + 4 * n_pieces
    starts = iter_unpack("<2xI2x", table[place : place + 8 * n_pieces])
    pieces = []
    for (start,), (first, last) in zip(starts, pairwise(ends), strict=False):
        width, codec = 2, UTF_16
        if start & 0x40000000:
            start, width, codec = (start & 0x3FFFFFFF) // 2, 1, "cp1252"
        pieces.append(stream[start : start + width * (last - first)].decode(codec, "replace"))
    return _CODE.sub(lambda code: " ".join(["", *_LINK.findall(code[1]), ""]), "".join(pieces))


# --- Excel -----------------------------------------------------------------------------------

_FORMULA, _ENCRYPTED, _CONTINUED, _SHEET, _SHARED, _CELL = 0x6, 0x2F, 0x3C, 0x85, 0xFC, 0xFD
_DRAWN_TEXT, _HYPERLINK, _LABEL, _RESULT = 0x1B6, 0x1B8, 0x204, 0x207


def _excel_texts(stream: bytes) -> Iterator[tuple[bool, str]]:
    """Yield whether a text is hidden, and the text."""
    records = list(_excel_records(stream))
    cells = {
        (is_hidden, int.from_bytes(blocks[0][6:10], "little"))
        for is_hidden, kind, blocks in records
        if kind == _CELL
    }
    for is_hidden, kind, blocks in records:
        if kind == _ENCRYPTED:
            raise EncryptedError
        if kind == _SHARED:
            for number, text in enumerate(_excel_strings(blocks, 8)):
                yield bool(cells) and (False, number) not in cells, text
        elif kind in (_LABEL, _RESULT):
            yield is_hidden, next(_excel_strings(blocks, 6 if kind == _LABEL else 0), "")
        elif kind == _DRAWN_TEXT and len(blocks) > 1:  # also of comments
            codec = UTF_16 if blocks[1][0] & 1 else "latin-1"
            yield is_hidden, blocks[1][1:].decode(codec, "replace")
        elif kind in (_HYPERLINK, _FORMULA):
            codec = UTF_16 if kind == _HYPERLINK else "latin-1"
            for link in _LINK.findall(blocks[0].decode(codec, "replace")):
                yield False, link


def _excel_records(stream: bytes) -> Iterator[tuple[bool, int, list[bytes]]]:
    """Yield whether a record is on a hidden sheet, its type, its block and its continuations."""
    sheets: dict[int, bool] = {}  # where each begins, and whether it is hidden
    place, kind, is_hidden = 0, 0, False
    blocks: list[bytes] = []
    while place + 4 <= len(stream):
        following, size = unpack_from("<HH", stream, place)
        block = stream[place + 4 : place + 4 + size]
        if following != _CONTINUED:
            if blocks:
                yield is_hidden, kind, blocks
            kind, blocks = following, []
            is_hidden = sheets.get(place, is_hidden)
        if following == _SHEET:
            state = int.from_bytes(block[4:5]) & 3  # other bits have no meaning
            sheets[int.from_bytes(block[:4], "little")] = state > 0
        blocks.append(block)
        place += 4 + size
    if blocks:
        yield is_hidden, kind, blocks


def _excel_strings(blocks: list[bytes], place: int) -> Iterator[str]:
    """Yield the strings from a place on.

    Where a string goes on in the next block, a byte says again how wide its characters are.
    """
    data, ends = b"".join(blocks), list(accumulate(map(len, blocks)))
    while place < len(data):
        size, flags = unpack_from("<HB", data, place)
        place += 3
        skipped = 0  # bytes of formats behind the characters
        if flags & 8:
            skipped += 4 * unpack_from("<H", data, place)[0]
            place += 2
        if flags & 4:
            skipped += unpack_from("<I", data, place)[0]
            place += 4
        text = ""
        while size > 0 and place < len(data):
            if text:
                flags, place = data[place], place + 1
            width, codec = (2, UTF_16) if flags & 1 else (1, "latin-1")
            end = min(place + width * size, ends[bisect_right(ends, place)])
            text += data[place:end].decode(codec, "replace")
            size -= max((end - place) // width, 1)
            place = end
        yield text
        place += skipped


# --- PowerPoint and Outlook ------------------------------------------------------------------

_MASTER, _CHARACTERS, _BYTES, _STRING = 0x3F8, 0xFA0, 0xFA8, 0xFBA


def _powerpoint_texts(stream: bytes) -> Iterator[str]:
    place = 0
    while place + 8 <= len(stream):
        version, kind, size = unpack_from("<HHI", stream, place)
        place += 8
        if kind in (_CHARACTERS, _BYTES, _STRING):  # links and comments are strings
            codec = "latin-1" if kind == _BYTES else UTF_16
            yield stream[place : place + size].decode(codec, "replace")
        if version & 0xF != 0xF or kind == _MASTER:  # other records hold records
            place += size


# Subject, sender, files and their names; the three forms of the body, of which the first is read.
_PROPERTY = re.compile(r"__substg1\.0_(0037|0C1[AF]|5D01|370[147]|1000|1009|1013)(001[EF]|0102)")
_CODE_PAGE_OF_MESSAGE = re.compile(rb"\x03\0\xfd\x3f.{4}(..)\0\0", re.DOTALL)


def _outlook_texts(
    file: "OleFileIO", charset: str, files: list[bytes]
) -> Iterator[tuple[bool, str]]:
    """Yield whether a text is hidden, and the text, as `_texts`; files: gets the files.

    Texts are those of the message and of messages inside it, and the names of their files.
    """
    read = set()  # storages whose body has been read
    for *storage, name in file.listdir():  # sorted
        match = _PROPERTY.fullmatch(name)
        if match is None or (match[1].startswith("10") and tuple(storage) in read):
            continue
        data = file.openstream([*storage, name]).read()
        if match[1] == "3701":
            files.append(data)
            continue
        unseen = b""
        if match[1] == "1009":
            data, unseen = rtf_texts(decompressed(data))
        else:
            data = in_utf8(data, UTF_16 if match[2] == "001F" else charset)
        if match[1] == "1013":
            from nbspam.mail.html import read_html

            (html,) = read_html([data])
            data, unseen = b"\n".join([html.visible, *html.urls]), html.hidden
        if match[1].startswith("10") and data.strip():
            read.add(tuple(storage))
        yield True, unseen.decode("utf-8", "replace")
        yield False, data.decode("utf-8", "replace")
