"""Wrappings that mail programs open by themselves: their contents.

Signed mail of S/MIME has a message inside a structure of ASN.1 (CMS, RFC 5652), Outlook has one
inside `winmail.dat` (TNEF, MS-OXTNEF) or writes RTF, and invitations and cards write their texts
as folded lines (RFC 5545, RFC 6350).  The readers below find the content and check nothing.
Damaged data end them early; they never raise, and take linear time.
"""

import re
from binascii import a2b_qp
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from struct import error, pack, unpack_from
from typing import NamedTuple

from nbspam.charsets import CharsetGuess, to_utf8
from nbspam.mail.headers import decode_transfer, with_line_feeds

SIGNED = (b"application/pkcs7-mime", b"application/x-pkcs7-mime")
TNEF = b"\x78\x9f\x3e\x22"  # the first bytes of winmail.dat

# --- S/MIME ----------------------------------------------------------------------------------

_SIGNED = bytes.fromhex("2a864886f70d010702")  # the object identifier of signed data
_SEQUENCE, _OBJECT_ID, _CONTENT, _OCTETS, _OCTETS_IN_PIECES = 0x30, 0x06, 0xA0, 0x04, 0x24


class _Element(NamedTuple):
    """A BER element: its tag, and where its content starts and stops."""

    tag: int
    start: int
    stop: int | None  # None: it ends with an element of tag 0


def cms_content(data: bytes) -> bytes:
    """Return the MIME part inside signed CMS; nothing if there is none to read."""
    try:
        kind, place = _named_content(data, 0)
        if kind != _SIGNED:
            return b""
        # The version and the digest algorithms stand before the content.
        place = _behind(data, _behind(data, _element(data, place, _SEQUENCE).start))
        return _octets(data, _named_content(data, place)[1])
    except ValueError:
        return b""


def _element(data: bytes, place: int, wanted: int | None = None) -> _Element:
    """Return the element that begins at a place; raises ValueError where no such one does."""
    if place + 2 > len(data) or wanted not in (None, data[place]):
        raise ValueError("the data end, or another tag is there")
    tag, length, start = data[place], data[place + 1], place + 2
    if length == 0x80:
        return _Element(tag, start, None)
    if length > 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[place + 2 : start], "big")
    return _Element(tag, start, min(start + length, len(data)))


def _behind(data: bytes, place: int) -> int:
    """Return where the element that begins at a place ends."""
    n_open = 0
    while True:
        found = _element(data, place)
        place = found.start if found.stop is None else found.stop
        if found.stop is None:
            n_open += 1
        if found.tag == 0:
            n_open -= 1
        if n_open <= 0:
            return place


def _named_content(data: bytes, place: int) -> tuple[bytes, int]:
    """Return the name of a ContentInfo, and where its content begins."""
    name = _element(data, _element(data, place, _SEQUENCE).start, _OBJECT_ID)
    return data[name.start : name.stop], _element(data, name.stop or len(data), _CONTENT).start


def _octets(data: bytes, place: int) -> bytes:
    """Return the octet string that begins at a place, in one piece or in many."""
    octets = bytearray()  # joining pieces takes 80 bytes for each
    while place < len(data):
        found = _element(data, place)
        if found.tag == _OCTETS:
            octets += data[found.start : found.stop]
            place = found.stop or len(data)
        elif found.tag == _OCTETS_IN_PIECES:
            place = found.start
        else:
            break
    return bytes(octets)


# --- TNEF ------------------------------------------------------------------------------------

_BODY, _MESSAGE_PROPERTIES, _CODE_PAGE = 0x2800C, 0x69003, 0x69007  # attributes
_NEW_FILE, _FILE_TITLE, _FILE_DATA, _FILE_PROPERTIES = 0x69002, 0x18010, 0x6800F, 0x69005
_TEXT, _RTF, _HTML, _LONG_NAME, _DATA = 0x1000, 0x1009, 0x1013, 0x3707, 0x3701  # properties
_SIZES = {0x2: 4, 0x3: 4, 0x4: 4, 0xA: 4, 0xB: 4, 0x48: 16}  # bytes; of other fixed types 8
_STRING, _UNICODE, _BINARY, _OBJECT = _VARIABLE = 0x1E, 0x1F, 0x102, 0xD
_INTERFACE = 16  # bytes before an object: the identifier of its interface
UTF_16 = "utf-16-le"
_MAX_FILES = 100

_Properties = dict[int, tuple[int, bytes]]  # type and value, by number; decoded when all are read


def tnef_parts(data: bytes) -> list[bytes]:
    """Return the text and the files inside TNEF as MIME parts without a transfer encoding."""
    texts: _Properties = {}
    files: list[_Properties] = []
    charset = ""
    place = 6
    while place + 9 <= len(data):
        attribute, length = unpack_from("<II", data, place + 1)
        value = data[place + 9 : place + 9 + length]
        place += 9 + length + 2  # a checksum
        if attribute == _CODE_PAGE and len(value) >= 4:
            charset = f"cp{int.from_bytes(value[:4], 'little')}"
        elif attribute == _BODY:
            texts.setdefault(_TEXT, (_STRING, value))
        elif attribute == _MESSAGE_PROPERTIES:
            texts.update(_properties(value, (_TEXT, _RTF, _HTML)))
        elif attribute == _NEW_FILE and len(files) < _MAX_FILES:
            files.append({})
        elif files and attribute == _FILE_TITLE:
            files[-1].setdefault(_LONG_NAME, (_STRING, value))
        elif files and attribute == _FILE_DATA:
            files[-1][_DATA] = _BINARY, value
        elif files and attribute == _FILE_PROPERTIES:
            files[-1].update(_properties(value, (_LONG_NAME, _DATA)))
    parts = []
    if _HTML in texts:
        parts.append(b"Content-Type: text/html\n\n" + _content(texts, _HTML, charset))
    rtf = decompressed(_content(texts, _RTF, charset))
    parts += rtf_parts(rtf, _content(texts, _TEXT, charset))
    for file in files:
        name = re.sub(rb'[\0-\x1f"\\]', b"_", _content(file, _LONG_NAME, charset))
        head = b"Content-Type: application/octet-stream\nContent-Disposition: attachment;filename="
        parts.append(head + b'"%b"\n\n' % name + _content(file, _DATA, charset))
    return parts


def _content(found: _Properties, number: int, charset: str) -> bytes:
    """Return a text in UTF-8 or data; but HTML is in the charset that it may declare."""
    kind, value = found.get(number, (_BINARY, b""))
    if kind == _UNICODE or number in (_TEXT, _LONG_NAME):
        value = in_utf8(value, UTF_16 if kind == _UNICODE else charset)
    if kind == _OBJECT:
        value = value[_INTERFACE:]
    return value if number in (_RTF, _DATA) else value.rstrip(b"\0")


def _properties(data: bytes, wanted: tuple[int, ...]) -> _Properties:
    """Return MAPI properties by number; of several values the last one."""
    found: _Properties = {}
    with suppress(error):  # the data end
        place = 4
        while place < len(data):
            kind, number = unpack_from("<HH", data, place)
            place += 4
            if number >= 0x8000:  # it has a name: a GUID, and a number or a text
                is_text, length = unpack_from("<II", data, place + 16)
                place += 24 + (length + -length % 4 if is_text else 0)
            is_many, kind = kind & 0x1000, kind & 0xFFF
            is_variable, count = kind in _VARIABLE, 1
            if is_many or is_variable:
                (count,) = unpack_from("<I", data, place)
                place += 4
            if not is_variable:
                place += count * _SIZES.get(kind, 8)
                continue
            for _ in range(count):
                (length,) = unpack_from("<I", data, place)
                value = data[place + 4 : place + 4 + length]
                place += 4 + length + -length % 4
                if number in wanted:
                    found[number] = kind, value
    return found


# --- invitations and cards -------------------------------------------------------------------

_FOLD = re.compile(rb"\n[ \t]")
# The properties whose values people are shown.  Of others, which may say anything, links count.
_SHOWN = frozenset(
    b"SUMMARY DESCRIPTION STYLED-DESCRIPTION X-ALT-DESC LOCATION COMMENT CONTACT CATEGORIES"
    b" RESOURCES ORGANIZER ATTENDEE URL NAME X-WR-CALNAME X-WR-CALDESC FN N NICKNAME ADR LABEL"
    b" TEL EMAIL IMPP ORG TITLE ROLE NOTE AGENT HOBBY INTEREST EXPERTISE X-ABLABEL".split()
)
_ESCAPED = re.compile(rb"\\([nN,;:\\])")
# The name of a property, its parameters and its value: quoted parameters may have colons.  For
# `|(?!)` see `headers`.
_CARD_LINE = re.compile(
    rb"(?:[\w.-]{1,40}\.)?([\w-]{1,80})"
    rb"((?:;[\w-]{1,40}(?:=(?:\"[^\"]*\"|[^\":;]*))?|(?!)){0,20}+):(.*)",
    re.DOTALL,
)
# Parameters that are shown, too.
_TOLD = re.compile(rb";(?i:CN|LABEL|FILENAME|ALTREP)=(\"[^\"]*+\"|[^\";]*+)")
_QUOTED = re.compile(rb"(?i:QUOTED-PRINTABLE)[^\n]*+(?:(?<==)\n[^\n]*+|(?!))*+")
_BROKEN_QUOTED = re.compile(rb"=\n[ \t]?")


def card_texts(data: bytes) -> tuple[bytes, bytes]:
    """Return the text and the HTML of an invitation (iCalendar, vCalendar) or a card (vCard).

    Both are in the charset of the data.
    """
    data = with_line_feeds(data)
    # Of cards of version 2.1: it has folds of its own.
    data = _QUOTED.sub(lambda match: _BROKEN_QUOTED.sub(b"", match[0]), data)
    texts: list[bytes] = []
    html: list[bytes] = []
    for line in _FOLD.sub(b"", data).split(b"\n"):
        match = _CARD_LINE.fullmatch(line)
        if match is None:
            texts.append(line)
            continue
        name, settings, value = match.groups()
        upper = settings.upper()
        if not (name.upper() in _SHOWN or _LINK.fullmatch(value)):
            continue
        if b"QUOTED-PRINTABLE" in upper:
            value = a2b_qp(value)
        elif b";ENCODING=B" in upper:
            value = decode_transfer(value, b"base64")
        value = _ESCAPED.sub(lambda match: b"\n" if match[1] in b"nN" else match[1], value)
        (html if b"TEXT/HTML" in upper else texts).append(value)
        texts += _TOLD.findall(settings)
    return b"\n".join(texts), b"\n".join(html)


# --- RTF (1.9.1), and RTF as Outlook compresses it ----------------------------------------------
#
# It is text with control words, such as \par, in groups, { and }.  Groups that describe fonts,
# colours or pictures, and nearly all that begin with \*, hold no text; but links in them count.

_MAX_TOKENS = 50_000
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|((?:\\'[0-9a-fA-F]{2})++)|\\([^a-zA-Z'])|([{}])"
    rb"|([^\\{}\r\n]+)"
)
# Characters of Unicode, each with one that stands for it.
_CHARACTERS = re.compile(rb"(?:\\u-?\d{1,9} ?(?:\\'[0-9a-fA-F]{2}|\?))++")
_CHARACTER = re.compile(rb"\\u(-?\d++)")
_LINK = re.compile(rb"[a-zA-Z]{3,9}://[^\s\"]{1,2000}")
_GROUPS_WITHOUT_TEXT = frozenset(
    b"fonttbl colortbl stylesheet pict objdata themedata colorschememapping datastore generator"
    b" listtable listoverridetable rsidtbl latentstyles xmlnstbl info filetbl revtbl sp".split()
)
# What control words and signs stand for; other words for nothing, other signs for themselves.
_BREAKS = b"par line softline lbr tab cell nestcell row nestrow sect page column".split()
_WRITTEN = dict.fromkeys((*_BREAKS, b"\r", b"\n"), b"\n")
_WRITTEN |= dict.fromkeys(b"emdash emspace enspace qmspace bullet ~".split(), b" ")
_WRITTEN |= {b"lquote": b"'", b"rquote": b"'", b"ldblquote": b'"', b"rdblquote": b'"'}
_WRITTEN |= {b"endash": b"-", b"_": b"-", b"-": b"", b"*": b""}
_OF_LOOK = frozenset(
    b"ansicpg plain uc v deleted fs cf pard intbl trowd clcbpat cbpat chcbpat cb highlight".split()
)
# Among the properties of shapes, and in the text; also behind \*.
_BOXES, _NOTES = (b"shptxt", b"dptxbxtext"), (b"footnote", b"annotation")
_SHADES = re.compile(rb"\\(?:red|green|blue)(\d{1,3})")
LIGHT = 218  # of 255 of each colour: a contrast with white of 1.4
_BREAK = ("cp1252", b"\n")
_LEAST_SIZE = 9  # half points of letters that can be read

# The code pages of fonts, by their charsets.
_FONT = re.compile(rb"\\f(\d{1,5})[^{};]{0,80}?\\fcharset(\d{1,3})")
_FONT_TABLE = 256 << 10  # bytes in which it ends
_PAGES = {b"128": 932, b"129": 949, b"134": 936, b"136": 950, b"161": 1253, b"162": 1254}
_PAGES |= {b"177": 1255, b"178": 1256, b"186": 1257, b"204": 1251, b"222": 874, b"238": 1250}


def in_utf8(data: bytes, charset: str, guess: CharsetGuess | None = None) -> bytes:
    """Return text in UTF-8; of UTF-16 as much as is whole, where `to_utf8` would guess."""
    if charset == UTF_16:
        return data.decode(UTF_16, "replace").encode()
    return to_utf8(data, charset, guess)[0]


class _RtfLook(NamedTuple):
    """How text in a group of RTF looks."""

    page: int = 1252  # its code page
    default: int = 1252  # the code page of fonts without one
    is_left_out: bool = False
    is_light: bool = False  # nearly white
    is_shaded: bool = False
    is_in_table: bool = False
    is_row_shaded: bool = False
    is_in_shape: bool = False  # on a ground that is not known
    is_apart: bool = False  # in a text box, a footnote or a comment
    size: int = 24  # half points
    instead: int = 1  # characters that stand for one of Unicode, where it is not known

    def after(self, word: bytes, value: bytes | None, light: set[int]) -> "_RtfLook":
        """Return the look after a control word; light: numbers of nearly white colours."""
        number = int(value or 0)
        is_shade = number > 0 and number not in light
        if word == b"ansicpg":
            return self._replace(page=number, default=number)
        if word == b"plain":
            return self._replace(page=self.default, is_left_out=False, is_light=False, size=24)
        if word == b"uc":
            return self._replace(instead=max(number, 0))
        if word == b"pard":
            return self._replace(is_shaded=False, is_in_table=False)
        if word == b"fs":
            return self._replace(size=int(value or 24))
        if word in (b"v", b"deleted"):
            return self._replace(is_left_out=value != b"0")
        if word == b"cf":
            return self._replace(is_light=number in light)
        if word == b"intbl":
            return self._replace(is_in_table=True)
        if word in (b"trowd", b"clcbpat"):  # the format of a row, and of one of its cells
            is_row_shaded = is_shade or (self.is_row_shaded and value is not None)
            return self._replace(is_row_shaded=is_row_shaded)
        return self._replace(is_shaded=is_shade)

    def is_hidden(self) -> bool:
        """Return whether nobody can read such text."""
        is_shaded = self.is_shaded or (self.is_in_table and self.is_row_shaded)
        is_white = self.is_light and not is_shaded and not self.is_in_shape
        return self.is_left_out or self.size < _LEAST_SIZE or is_white


def rtf_parts(data: bytes, text: bytes = b"") -> list[bytes]:
    """Return a text and that of RTF as MIME parts; hidden text of RTF stays hidden."""
    shown, hidden = rtf_texts(data)
    text += b"\n" + shown
    parts = [b"\n" + text] if text.strip() else []
    if hidden.strip():
        markup = hidden.replace(b"&", b"&amp;").replace(b"<", b"&lt;")
        parts.append(b"Content-Type: text/html; charset=utf-8\n\n<p hidden>" + markup)
    return parts


def rtf_texts(data: bytes) -> tuple[bytes, bytes]:
    """Return shown and hidden text of RTF in UTF-8, nothing if the data are no RTF."""
    if not data.lstrip().startswith(b"{\\rt"):
        return b"", b""
    shown: list[tuple[str, bytes]] = []  # charset and text
    hidden: list[tuple[str, bytes]] = []
    for is_hidden, charset, text in _rtf_pieces(data):
        (hidden if is_hidden else shown).append((charset, text))
        if not is_hidden and hidden and hidden[-1] != _BREAK:
            hidden.append(_BREAK)
    return _joined(shown), _joined(hidden)


def _joined(written: list[tuple[str, bytes]]) -> bytes:
    groups = groupby(written, itemgetter(0))
    guess = CharsetGuess()  # one, because thousands would take seconds
    return b"".join(
        in_utf8(b"".join(text for _, text in same), name, guess) for name, same in groups
    )


def _rtf_pieces(data: bytes) -> Iterator[tuple[bool, str, bytes]]:
    """Yield whether a piece of text is hidden, its charset, and the piece."""
    light = _light_colours(data[:_FONT_TABLE])
    fonts = {font: _PAGES.get(charset) for font, charset in _FONT.findall(data[:_FONT_TABLE])}
    looks = [_RtfLook()]  # of the groups that are open
    skipped = 0  # how many are open at the group without text; 0: in none
    left = 0  # characters to come that stand for one of Unicode
    place, is_first = 0, False
    for _ in range(_MAX_TOKENS):
        match = _TOKEN.search(data, place)
        if match is None:
            break
        place = match.end()
        word, value, code, sign, brace, text = match.groups()
        look = looks[-1]
        more, charset = b"", f"cp{look.page}"
        left = 0 if brace else left
        if brace == b"{":
            looks.append(look)
        elif brace == b"}":
            skipped = 0 if skipped == len(looks) else skipped
            del looks[max(len(looks) - 1, 1) :]
            more = b"\n" if look.is_apart and not looks[-1].is_apart else b""
        elif word == b"bin":
            place += max(int(value or 0), 0)
        elif is_first and (word in _GROUPS_WITHOUT_TEXT or sign == b"*"):
            skipped = skipped or len(looks)
        elif word in _BOXES or (word in _NOTES and skipped in (0, len(looks))):
            skipped, more = 0, b"\n"
            looks[-1] = look._replace(is_apart=True, is_in_shape=word in _BOXES)
        elif word == b"f":
            looks[-1] = look._replace(page=fonts.get(value) or look.default)
        elif word in _OF_LOOK:
            looks[-1] = look.after(word, value, light)
        elif word == b"u" and not skipped:
            more, charset, left = _utf_16(match[0]), UTF_16, look.instead
            if left == 1 and (run := _CHARACTERS.match(data, match.start())):
                more, left, place = _utf_16(run[0]), 0, run.end()
        elif text is not None:
            links = [b" " + link + b" " for link in _LINK.findall(text)]
            more = b"".join(links) if skipped else text[left:]
            left = 0
        elif code is not None and not skipped:
            characters = bytes.fromhex(code.decode().replace("\\'", ""))
            more, left = characters[left:], max(left - len(characters), 0)
        elif not skipped:
            more = _WRITTEN.get(word or sign, sign or b"")
        if more:
            yield look.is_hidden() and not skipped, charset, more
        is_first = brace == b"{"


def _utf_16(written: bytes) -> bytes:
    return b"".join(pack("<H", int(n) & 0xFFFF) for n in _CHARACTER.findall(written))


def _light_colours(data: bytes) -> set[int]:
    """Return the numbers of the colours that nobody can read on white."""
    table = data.partition(b"\\colortbl")[2].partition(b"}")[0]
    return {
        i
        for i, colour in enumerate(table.split(b";"))
        if len(shades := _SHADES.findall(colour)) == 3 and min(map(int, shades)) >= LIGHT
    }


# MS-OXRTFCP, 2.1.3.1.1: what the dictionary has at the beginning.
_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_RING = 4096
_MAX_RTF = 256 << 10  # bytes of RTF that are decompressed


def decompressed(data: bytes) -> bytes:
    """Return RTF out of Outlook's compression (MS-OXRTFCP), as far as the data go."""
    if len(data) < 16:
        return b""
    if data[8:12] == b"MELA":
        return data[16:]
    if data[8:12] != b"LZFu":
        return b""
    out = bytearray(_DICTIONARY)
    most = len(out) + min(unpack_from("<I", data, 4)[0], _MAX_RTF)
    place = 16
    while place < len(data) and len(out) < most:
        control = data[place]
        place += 1
        for bit in range(8):
            if not control >> bit & 1:
                out += data[place : place + 1]
                place += 1
                continue
            token = int.from_bytes(data[place : place + 2], "big")
            place += 2
            if place > len(data):
                break
            # A place in the ring of the last 4,096 bytes.
            back = (len(out) - (token >> 4)) % _RING
            if back == 0 or back > len(out):  # the end, or nothing is there
                return bytes(out[len(_DICTIONARY) :])
            start = len(out) - back
            for i in range(start, start + (token & 0xF) + 2):
                out.append(out[i])
    return bytes(out[len(_DICTIONARY) : most])
