"""Bytes on the wire to UTF-8: charsets, transfer encodings, encoded words.

Text that is ASCII is never decoded: it is UTF-8 already.  A declared charset is believed
when the bytes fit it; otherwise the bytes are asked what they look like.  Charsets come
from a closed list, so that no mail can name a codec that runs, unpacks or imports things.

Secret: how bytes spell characters, and what to make of them when they were told wrongly.
"""

import binascii
import codecs
import re
from functools import lru_cache
from typing import NamedTuple

# Windows-1252 is what senders of these mean: its extra letters are Latin-1's empty places.
_LATIN = ("iso88591", "latin1", "l1", "cp819", "ibm819", "cp1252", "windows1252", "ansi")
_ALIASES = {
    **dict.fromkeys(("utf8", "unicode11utf8", "utf8mb4"), "utf-8"),
    **dict.fromkeys(("ascii", "usascii", "ansix341968", "iso646us", "us"), "ascii"),
    **dict.fromkeys((*_LATIN, "unknown8bit", "8bit", "xunknown"), "cp1252"),
    **{f"iso8859{n}": f"iso8859-{n}" for n in range(2, 17) if n not in (9, 12)},
    **{f"iso8859{n}{kind}": f"iso8859-{n}" for n in (6, 8) for kind in "ie"},
    **{f"{prefix}125{n}": f"cp125{n}" for n in (0, 1, *range(3, 9)) for prefix in ("cp", "windows")},
    # Turkish, and Thai: again the Windows form holds the standard one.
    **dict.fromkeys(("iso88599", "latin5"), "cp1254"),
    **dict.fromkeys(("tis620", "iso885911", "windows874", "cp874"), "cp874"),
    **dict.fromkeys(("latin2", "l2"), "iso8859-2"),
    **dict.fromkeys(("koi8r", "koi8"), "koi8-r"),
    "koi8u": "koi8-u",
    **dict.fromkeys(("cp866", "ibm866"), "cp866"),
    **dict.fromkeys(("cp437", "ibm437"), "cp437"),
    **dict.fromkeys(("cp850", "ibm850"), "cp850"),
    **dict.fromkeys(("macintosh", "macroman", "xmacroman"), "mac-roman"),
    **dict.fromkeys(("gb2312", "gb231280", "euccn", "gbk", "cp936", "windows936"), "gb18030"),
    **dict.fromkeys(("gb18030", "xgbk", "chinesesimplified"), "gb18030"),
    **dict.fromkeys(("hz", "hzgb2312", "hzgb"), "hz"),
    **dict.fromkeys(("big5", "cnbig5", "cp950", "windows950"), "cp950"),
    "big5hkscs": "big5hkscs",
    **dict.fromkeys(("ksc56011987", "ksc5601", "euckr", "cp949", "windows949", "korean"), "cp949"),
    **dict.fromkeys(("shiftjis", "xsjis", "sjis", "cp932", "windows31j", "mskanji"), "cp932"),
    **dict.fromkeys(("eucjp", "xeucjp"), "euc-jp"),
    **dict.fromkeys(("iso2022jp", "iso2022jp1", "iso2022jp2", "iso2022jpms"), "iso2022_jp_2"),
    "iso2022kr": "iso2022_kr",
    **dict.fromkeys(("utf16", "unicode", "ucs2", "iso10646ucs2"), "utf-16"),
    **{name.replace("-", ""): name for name in ("utf-16le", "utf-16be", "utf-32le", "utf-32be")},
    **dict.fromkeys(("utf32", "ucs4"), "utf-32"),
}
_REFUSED = ("utf7", "unicode11utf7", "xunicode20utf7")  # ASCII that is not: made for hiding
# In these, bytes of ASCII may spell something else.
_NOT_ASCII = {"hz", "iso2022_jp_2", "iso2022_kr", "utf-16", "utf-32"} | {
    f"utf-{width}{order}" for width in (16, 32) for order in ("le", "be")
}
_GUESSABLE = ("", "ascii", "utf-8")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Decoded(NamedTuple):
    """Valid UTF-8, and the slug of what was wrong (empty: nothing)."""

    text: bytes
    defect: str


@lru_cache(256)
def _codec(declared: bytes) -> str:
    """Return the codec meant by a charset's name; `?` unknown, `!` refused, or empty."""
    name = declared.partition(b"*")[0].decode("ascii", "replace").lower()
    key = "".join(c for c in name if c.isalnum())
    if not key:
        return ""
    return "!" if key in _REFUSED else _ALIASES.get(key, "?")


def to_utf8(data: bytes, declared: bytes = b"") -> Decoded:
    """Return the text in UTF-8, believing the declared charset if the bytes fit it."""
    if not declared and data.isascii() and b"\x1b" not in data:
        return Decoded(data, "")
    codec = _codec(declared[:60])
    if codec in "!?" and codec:
        guess = to_utf8(data)
        return Decoded(guess.text, "charset-refused" if codec == "!" else "charset-unknown")
    if data.isascii() and codec not in _NOT_ASCII and b"\x1b" not in data:
        return Decoded(data, "")
    if codec in _GUESSABLE:
        return _guess(data, declared=bool(codec))
    return _decode(data, codec)


def _decode(data: bytes, codec: str) -> Decoded:
    text = data.decode(codec, "replace")
    encoded = text.encode("utf-8", "replace")
    # A charset that leaves every tenth byte unexplained is not the one it was written in.
    if "\ufffd" in text and text.count("\ufffd") * 10 > len(data):
        guess = _guess(data, declared=True)
        return Decoded(guess.text, "charset-wrong")
    return Decoded(encoded, "")


def _guess(data: bytes, *, declared: bool) -> Decoded:
    """Return the text by what its bytes look like; undeclared bytes are no defect."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return Decoded(data.decode(codec, "replace").encode(), "")
    codec = guess_codec(data)
    if codec == "utf-8":
        if _is_utf8(data):
            return Decoded(data, "")
        return Decoded(data.decode("utf-8", "replace").encode(), "charset-wrong")
    text = data.decode(codec, "replace").encode()
    return Decoded(text, "charset-wrong" if declared else "charset-missing")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_SAMPLE = 1 << 14  # bytes: enough of a text to see what it is written in


def guess_codec(data: bytes) -> str:
    """Return the codec that bytes of unknown charset look like; cp1252 if nothing else."""
    if b"\x1b$" in data:
        return "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_2"
    if _is_utf8(data):
        return "utf-8"
    sample = data[:_SAMPLE]
    broken = sample.decode("utf-8", "replace")
    letters = sum(c > "\x7f" for c in broken)
    if broken.count("\ufffd") * 10 < letters:
        return "utf-8"  # a byte lost here and there, or cut in the middle
    runs = _HIGH_RUN.findall(sample)
    high = sum(map(len, runs))
    # A double-byte charset puts high bytes in pairs; accents stand alone among letters.
    paired = sum(len(run) for run in runs if len(run) % 2 == 0)
    if paired * 10 < high * 9:
        return "cp1252"
    leads = b"".join(run[::2] for run in runs if len(run) % 2 == 0)
    # Hangul syllables occupy a third of the rows that Chinese characters do.
    hangul = sum(0xB0 <= lead <= 0xC8 or lead < 0xB0 for lead in leads)
    return "cp949" if hangul * 20 >= len(leads) * 19 else "gb18030"


# --- transfer encodings -------------------------------------------------------------------

_NOT_BASE64 = bytes(
    c for c in range(256) if c not in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)


def decode_base64(data: bytes) -> Decoded:
    """Return the bytes, passing over junk and a torn end; the defect says so."""
    try:
        return Decoded(binascii.a2b_base64(data), "")
    except binascii.Error:
        pure = data.translate(None, _NOT_BASE64)
        # One letter over is six bits, less than a byte; two or three miss their padding.
        pure = pure[: len(pure) - (len(pure) % 4 == 1)]
        return Decoded(binascii.a2b_base64(pure + b"=" * (-len(pure) % 4)), "base64-broken")


def decode_quoted_printable(data: bytes) -> bytes:
    """Return the bytes; what is no valid escape stays as it is."""
    return binascii.a2b_qp(data)


# --- encoded words ------------------------------------------------------------------------

_WORD_START = re.compile(rb"=\?([^?\s]{1,60})\?([bBqQ])\?")


class _Word(NamedTuple):
    start: int
    end: int
    charset: bytes
    content: bytes


def decode_words(value: bytes, declared: bytes = b"") -> Decoded:
    """Return a header's value with its encoded words decoded, broken ones left as text."""
    pieces: list[tuple[bytes, bytes]] = []  # charset, bytes: neighbours may share a character
    defects = set()
    done = 0
    after_word = False
    for word in _encoded_words(value):
        between = value[done : word.start]
        if between and not (after_word and between.isspace()):
            pieces.append((declared, between))
        if pieces and after_word and pieces[-1][0] == word.charset and between.strip() == b"":
            pieces[-1] = (word.charset, pieces[-1][1] + word.content)
        else:
            pieces.append((word.charset, word.content))
        done, after_word = word.end, True
    pieces.append((declared, value[done:]))
    texts = []
    for charset, content in pieces:
        text, defect = to_utf8(content, charset)
        texts.append(text)
        defects.add(defect)
    return Decoded(b"".join(texts), max(defects))


def _encoded_words(value: bytes) -> list[_Word]:
    words = []
    match = _WORD_START.search(value)
    while match:
        end = value.find(b"?=", match.end())
        if end < 0:
            break
        inner = value.rfind(b"=?", match.end(), end)
        if inner >= 0:  # the first word was never closed: the last one before the close counts
            match = _WORD_START.match(value, inner) or _WORD_START.search(value, end + 2)
            if match and match.start() == inner:
                end = value.find(b"?=", match.end())
            else:
                continue
        assert match
        content = value[match.end() : end]
        if match[2] in b"bB":
            content = decode_base64(content).text
        else:
            content = binascii.a2b_qp(content, header=True)
        words.append(_Word(match.start(), end + 2, match[1], content))
        match = _WORD_START.search(value, end + 2)
    return words
