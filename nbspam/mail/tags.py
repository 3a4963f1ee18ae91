"""Tags: where they are in a text, and which kinds there are.

It finds tags and does not parse HTML, because the markup of spam is not valid HTML either.  The
tags of many documents are found together by array operations.

Secret: how tags and their names are found.
"""

from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, places_of
from nbspam.mail.styles.elements import NAMES
from nbspam.mail.styles.sheets import HIDING_NAMES

_BREAKING = frozenset(
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote pre form"
    b" option select title body html head input textarea section article".split()
)
_WORTH_TELLING = frozenset(
    b"a img form input iframe object embed font table center marquee blink map area meta base"
    b" link button select textarea svg video h1 b i u strong em blockquote pre".split()
)
_MAX_KNOWN = 1024  # names of tags that are cached

# Names of tags are compared by their first eight letters, as one number: textarea, blockquo.
KEY_BYTES = 8


def _key(name: bytes) -> int:
    """Return the first eight letters of a name as one number."""
    return int.from_bytes(name[:KEY_BYTES], "little")


_KNOWN = _BREAKING | _WORTH_TELLING | HIDING_NAMES | NAMES
_NAME_OF = {_key(name): name for name in _KNOWN}
# Known names in the order of their keys; the last entry is for all other names.
NAMES_OF_KINDS = (*(name for _, name in sorted(_NAME_OF.items())), b"")
_KEYS = np.array(sorted(_NAME_OF), np.uint64)


def kinds_in(names: Set[bytes]) -> Booleans:
    """Return of each kind whether its name is one of some names."""
    return np.array([name in names for name in NAMES_OF_KINDS])


BREAKS, TELLS, HIDES = map(kinds_in, (_BREAKING, _WORTH_TELLING, HIDING_NAMES))
# For bytes.translate: letters and digits of names, in lower case; all other bytes are zero.
_OF_NAMES = bytes(c if bytes([c]).isalnum() else 0 for c in bytes(range(256)).lower())
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


class Tags(NamedTuple):
    """The tags of a text; all arrays have shape (n_tags,)."""

    start: Integers  # position of the <
    stop: Integers  # position after the >
    values: Integers  # position after the name; `stop` if there are no attributes
    is_end: Booleans  # an end tag, such as </a>
    key: Keys  # of the name, see `_key`; 0 for ! and ?
    kind: Integers  # index of the name in NAMES_OF_KINDS


def find_tags(text: bytes) -> Tags:
    """Return the tags of a text.

    A tag is a < whose next bracket is a >, and that is followed by a name, a / and a name, a !
    or a ?.  The last bracket of the text must be a < with eight bytes after it.
    """
    letters = np.frombuffer(text, np.uint8)
    brackets = places_of((letters & 0xFD) == ord("<"))  # positions of < and >
    opens = letters[brackets] == ord("<")
    closed = places_of(opens[:-1] > opens[1:])
    start, stop = brackets[closed], brackets[closed + 1] + 1
    first = letters[start + 1]
    is_end = first == ord("/")
    name = start + 1 + is_end
    # windows[i] is the eight bytes from i on, as one number.
    windows = np.ndarray(len(text) - KEY_BYTES + 1, "<u8", text, 0, (1,))
    key = np.frombuffer(windows[name].tobytes().translate(_OF_NAMES), "<u8")
    is_tag = (key & 0xFF >= ord("a")) | (first == ord("!")) | (first == ord("?"))
    start, stop, is_end = start[is_tag], stop[is_tag], is_end[is_tag]
    name, key = name[is_tag], key[is_tag]
    # The lowest zero byte ends the name.  The expression marks it, and perhaps bytes above it.
    zeros = (key - _ONES) & ~key & _HIGHEST
    below = (zeros & -zeros) - 1
    key &= below
    values = name + np.maximum(np.bitwise_count(below) >> 3, 1)
    values += values == stop - 1
    kind = _KEYS.searchsorted(key)
    kind[_KEYS.take(kind, mode="clip") != key] = len(_KEYS)
    return Tags(start, stop, values, is_end, key, kind)


@lru_cache(_MAX_KNOWN)
def name_of(key: int) -> bytes:
    """Return the name of a tag; of one that is not known, its first eight letters."""
    return _NAME_OF.get(key) or key.to_bytes(KEY_BYTES, "little").rstrip(b"\0")
