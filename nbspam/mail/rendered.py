"""Contents that only a browser shows: markup and links in scripts and frames, and drawn codes.

Block characters, and elements without text that show their ground, draw codes.
"""

import re
from collections.abc import Callable

from nbspam.mail.css import is_light
from nbspam.mail.headers import decode_base64
from nbspam.mail.visibility import RAW, ROOT, Style, look_of

_DATA = rb"[\"'`](?:(?i:data:text/html)[^\"'`<>,]{0,60},)?"  # where a document may be in a link
_CODED = re.compile(_DATA + rb"([A-Za-z0-9+/]{16,}+={0,2})[\"'`]")  # base64
_ESCAPED = re.compile(_DATA + rb"((?:[^\"'`<>%]++|%(?!3[Cc])|(?!))*+%3[Cc][^\"'`<>]*+)[\"'`]")
_DECODERS = (b"atob", b"unescape", b"decodeURI", b"data:text/html")
_FRAMED = re.compile(rb"(?i:srcdoc)\s*+=\s*+(?:\"([^\"]++)|'([^']++)|([^\s>\"'][^\s>]*+))")
_LONG_NUMBER = re.compile(r"&#0*+([0-9]{1,7})[0-9]*+")  # Python reads no number of 4,301 digits
# Closes what the markup before it may leave open.
_CLOSE = b"\n<!--'\">-->" + b"".join(b"</%b>" % name for name in (*RAW, b"textarea"))
_MAX_DECODED = 3  # times that a script, or a document in a frame, is in another
_START = re.compile(rb"<[a-zA-Z]")
_SCRIPT_BYTE = re.compile(rb"\\(?:x|u00)([0-9a-fA-F]{2})")
_SCRIPT_LINK = re.compile(rb"https?:\\?/\\?/[^\s<>\"'()\[\]{}]{1,2000}")


def decoded_markup(script: bytes) -> bytes:
    """Return the markup that scripts would write, and that of documents in frames."""
    written = b""
    for _ in range(_MAX_DECODED):
        framed = [b"".join(each).decode("utf-8", "replace") for each in _FRAMED.findall(script)]
        is_coded = any(each in script for each in _DECODERS)
        if not (framed or is_coded):
            break
        from html import unescape  # late: few messages need them
        from urllib.parse import unquote_to_bytes

        readable = [_LONG_NUMBER.sub(r"&#\1", each) for each in framed]
        decoded = [unescape(each).encode("utf-8", "replace") for each in readable]
        if is_coded:
            decoded += map(decode_base64, _CODED.findall(script))
            decoded += map(unquote_to_bytes, _ESCAPED.findall(script))
        script = b"".join([_CLOSE + each for each in decoded if _START.search(each)])
        written += script
    return written.decode("utf-8", "replace").encode()


def links_of_script(text: bytes) -> bytes:
    """Return the links that a script holds, plain or in base64, in UTF-8 and lower case."""
    coded = map(decode_base64, _CODED.findall(text) if b"atob" in text else ())
    plain = _SCRIPT_BYTE.sub(lambda byte: bytes.fromhex(byte[1].decode()), text)
    links = b"\n".join(_SCRIPT_LINK.findall(b" ".join([plain, *coded]))).lower()
    return links.decode("utf-8", "replace").encode()


# --- codes ---------------------------------------------------------------------------------------

# A code has this many block characters, which begin with these bytes, or cells without text.
_BLOCK, _LEAST_BLOCKS, _LEAST_CELLS = b"\xe2\x96", 100, 200
_CELL_ENDS = (b'"></', b"&nbsp;</td>")
_INMOST = re.compile(rb"<((\w+)(?: [^<>]*+)?+)>([^<]*+)</\2>")
_ROW_END = re.compile(rb"</(?:div|li|p|pre|table|tr)>|<br\b[^<>]*+>")
# Where `parse_in_parts` cuts a row, images that give a cell its size, and comments.
_NO_CELL = re.compile(
    rb"<!--nbspam-cut-->(?:</\w++>)*+<html><head></head><body>|<(?:img\b|!--)[^<>]*+>"
)
_TAG = re.compile(rb"<[^<>]*+>")


def rows_of_blocks(
    written: bytes, n_tags: int, visible: bytes, style_of: Callable[[bytes], Style | None]
) -> bytes:
    """Return rows of block characters: those of the text, and two for each dark cell.

    written: a document as the parser writes it.  A cell is an element without text, which shows
    its ground.  style_of: gives the style of a start tag.
    """
    is_likely = n_tags > 2 * _LEAST_CELLS and sum(map(written.count, _CELL_ENDS)) > _LEAST_CELLS
    if not is_likely and visible.find(_BLOCK) < 0:
        return b""

    def drawn(element: re.Match[bytes]) -> bytes:
        style = style_of(element[1])
        if element[3].replace(b"&nbsp;", b"").strip():
            is_unseen = style and look_of(ROOT, style).why
            return b" " * len(element[3].decode("utf-8", "ignore")) if is_unseen else element[0]
        ground = style and style.changes.painted
        if ground and not is_light(ground):
            return "\u2588\u2588".encode()
        return b"  " if ground or not _ROW_END.search(element[0]) else element[0]

    rows = _ROW_END.sub(b"\n", _INMOST.sub(drawn, _NO_CELL.sub(b"", written)))
    return _TAG.sub(b"", rows).replace(b"&nbsp;", b" ")


def may_draw_code(rows: bytes) -> bool:
    """Return whether rows of text have as many block characters as a code."""
    return rows.count(_BLOCK) >= _LEAST_BLOCKS
