"""Character references: what &amp; and its kind stand for.

Secret: which references are resolved, and how that is bounded.
"""

import re
from functools import lru_cache

_AMPERSAND = ord("&")  # `in` finds an integer in bytes faster than it finds bytes
# Shortened before decoding, because Python refuses integers of thousands of digits.  The number
# of a character has at most seven.
_LONG_NUMBER = re.compile(rb"(&#[xX]?+)(?=[0-9a-fA-F]{8})0*+([0-9a-fA-F]{0,7})[0-9a-fA-F]*+")
# A character reference.  Hexadecimal digits may follow a decimal number; the longest name has
# 31 letters.
_REFERENCE = re.compile(rb"&(?:#[xX]?+[0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]{1,31}+);?+")
_MAX_KNOWN = 4096  # character references that are cached


def unescape_references(text: bytes) -> bytes:
    """Return text with character references resolved."""
    if _AMPERSAND not in text:
        return text
    text = _LONG_NUMBER.sub(rb"\1\2", text)
    text = text.replace(b"&nbsp;", b" ")  # by far the most frequent, and slow one by one
    return _REFERENCE.sub(lambda match: _resolve(match[0]), text)


@lru_cache(_MAX_KNOWN)
def _resolve(reference: bytes) -> bytes:
    """Return the character that a reference stands for; an unknown reference unchanged."""
    from html import unescape

    return unescape(reference.decode()).encode("utf-8", "replace")
