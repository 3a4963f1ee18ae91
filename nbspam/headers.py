"""Header lines to values: folding, RFC 2047 words, RFC 2231 parameters, 8-bit bytes.

Secret: how a value may be spelt.
"""

import re
from binascii import Error, a2b_base64, a2b_qp
from urllib.parse import unquote_to_bytes

from nbspam.charsets import to_utf8

_LINE = re.compile(rb"^([!-9;-~]{1,200})[ \t]*:[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_FIRST_LINE = re.compile(rb"[!-9;-~]{1,200}[ \t]*:")
_WORD = re.compile(rb"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_BETWEEN_WORDS = re.compile(rb"\?=[ \t\n]+=\?")
_PARAMETER = re.compile(rb";\s*([a-zA-Z][\w.-]*\*?\d*\*?)\s*=\s*(?:\"([^\"]*)\"?|([^\s;]*))")
_NOT_BASE64 = bytes(
    set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
)


def looks_like_header(data: bytes) -> bool:
    """Tell whether a block begins with a header line."""
    return _FIRST_LINE.match(data) is not None


def header_lines(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return (name, value with its folds) of every line; junk is passed over."""
    return _LINE.findall(block)


def decode_value(value: bytes) -> bytes:
    """Return a header's value as UTF-8, unfolded, with encoded words decoded."""
    if b"\n" in value:
        value = value.replace(b"\n", b"") if b"=?" not in value else value
    if b"=?" in value:
        value = _BETWEEN_WORDS.sub(b"?==?", value).replace(b"\n", b"")
        value = _WORD.sub(_decode_word, value)
    return value if value.isascii() else to_utf8(value, None)[0]


def _decode_word(match: re.Match[bytes]) -> bytes:
    charset, encoding, text = match.groups()
    if encoding in b"bB":
        data = decode_base64(text)
    else:
        data = a2b_qp(text, header=True)
    # RFC 2231 allows a language behind the charset.
    return to_utf8(data, charset.partition(b"*")[0].decode("latin-1"))[0]


def decode_base64(text: bytes) -> bytes:
    """Return what base64 encodes, however broken: strangers ignored, padding supplied."""
    try:
        return a2b_base64(text)
    except Error:
        clean = text.translate(None, _NOT_BASE64)
        clean = clean[: len(clean) - (len(clean) % 4 == 1)]
        return a2b_base64(clean + b"=" * (-len(clean) % 4))


def parameters(value: bytes) -> dict[str, bytes]:
    """Return the parameters of a Content-Type or -Disposition, by lower-case name, UTF-8."""
    if b";" not in value:
        return {}
    found: dict[str, bytes] = {}
    for raw, quoted, bare in _PARAMETER.findall(
        b";" + value.partition(b";")[2].replace(b"\n", b"")
    ):
        name, star, rest = raw.decode("latin-1").lower().partition("*")
        text = quoted or bare
        if star:  # RFC 2231: name*=charset'language'%41, or name*0=…; name*1=…
            if raw.endswith(b"*") and text.count(b"'") >= 2 and rest in ("", "0*"):
                charset, _, text = text.split(b"'", 2)
                text = to_utf8(unquote_to_bytes(text), charset.decode("latin-1"))[0]
            elif rest.endswith("*"):
                text = unquote_to_bytes(text)
            found[name] = found.get(name, b"") + text if rest not in ("", "0", "0*") else text
        else:
            found.setdefault(name, decode_value(text))
    return found
