"""The text of RTF, and RTF as Outlook compresses it.

RTF (1.9.1) is text with control words, such as \\par, in groups, { and }.  Groups that describe
fonts, colours or pictures, and all that begin with \\*, hold no text; but links in them count.
"""

import re
from struct import unpack_from

from nbspam.charsets import to_utf8

_MAX_TOKENS = 50_000
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|([^\\{}\r\n]+)"
)
_LINK = re.compile(rb"[a-z]{3,9}://[^\s\"]{1,2000}")
_NO_TEXT = frozenset(
    b"fonttbl colortbl stylesheet pict objdata themedata colorschememapping datastore generator"
    b" listtable listoverridetable rsidtbl latentstyles xmlnstbl info filetbl revtbl".split()
)
_WRITTEN = dict.fromkeys(b"par line tab cell row sect page".split(), b"\n")
_WRITTEN |= {b"lquote": b"'", b"rquote": b"'", b"emdash": b" ", b"endash": b"-"}


def rtf_text(data: bytes) -> bytes:
    """Return the text of RTF in UTF-8, nothing if the data are no RTF."""
    if not data.lstrip().startswith(b"{\\rtf"):
        return b""
    pieces: list[str] = []
    written = bytearray()  # characters that are not yet decoded
    page = "cp1252"
    depth = 0  # of groups
    skipped = 0  # the depth of the group without text; 0: in none
    instead, left = 1, 0  # characters that stand for one of Unicode, those of them to come
    place, is_first = 0, False
    for _ in range(_MAX_TOKENS):
        match = _TOKEN.search(data, place)
        if match is None:
            break
        place = match.end()
        word, value, code, sign, brace, text = match.groups()
        number = int(value or 0)
        if brace == b"{":
            depth += 1
        elif brace == b"}":
            skipped = 0 if skipped == depth else skipped
            depth -= 1
        elif word == b"bin":
            place += max(number, 0)
        elif is_first and (word in _NO_TEXT or sign == b"*"):
            skipped = skipped or depth
        elif word == b"ansicpg":
            page = f"cp{number}"
        elif word == b"uc":
            instead = number
        elif word == b"u" and not skipped:
            pieces.append(to_utf8(bytes(written), page)[0].decode("utf-8", "replace"))
            pieces.append(chr(number & 0xFFFF))
            written, left = bytearray(), instead
        elif text is not None:
            found = (
                [b" " + link + b" " for link in _LINK.findall(text)] if skipped else [text[left:]]
            )
            written += b"".join(found)
            left = 0
        elif code is not None and not skipped:
            written += bytes.fromhex(code.decode()) if not left else b""
            left = max(left - 1, 0)
        elif not skipped:
            written += _WRITTEN.get(word, b"") if word else sign.strip(b"*\r\n")
        is_first = brace == b"{"
    pieces.append(to_utf8(bytes(written), page)[0].decode("utf-8", "replace"))
    text16 = "".join(pieces).encode("utf-16-le", "surrogatepass")
    return text16.decode("utf-16-le", "replace").encode()


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
