"""Splitting HTML into visible text, hidden text, links and facts about its markup.

It finds tags and does not parse HTML, because the markup of spam is not valid HTML either.
Every search only moves forward, so the time is linear, whatever markup is left open.  Most
documents are small, so the tags of many documents are found together by array operations.

Secret: which markup hides text, separates words or joins them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets


class Html(NamedTuple):
    """The parts of a document; all text is UTF-8."""

    visible: bytes
    hidden: bytes
    alt: bytes  # alternative texts and titles
    urls: list[bytes]
    facts: set[str]  # about the markup, such as tag-img and comment-in-word


_BREAKING = frozenset(
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote pre form"
    b" option select title body html head input textarea section article".split()
)
# Integers, because `in` finds an integer in bytes faster than it finds bytes.
_EQUALS, _AMPERSAND = b"=&"
# Comments, scripts and styles.  The first letter alone rules out most tags.
_OPAQUE = re.compile(rb"<(?=[!sS])(?:!--|((?i:script|style))\b)")
_OPAQUE_END = {name: re.compile(rb"</(?i:%b)" % name) for name in (b"script", b"style")}
_COMMENT_END = re.compile(rb"--!?>")
# For bytes.translate: lower case, as tokens will be, and every blank a space.
_PLAIN = bytes(ord(" ") if bytes([c]).isspace() else c for c in bytes(range(256)).lower())
_ATTRIBUTE = re.compile(
    rb" (href|src|action|background|alt|title|on[a-z]++)"
    rb"\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"']++))"
)
# Shortened before decoding, because Python refuses integers of thousands of digits.  The number
# of a character has at most seven.
_LONG_NUMBER = re.compile(rb"(&#[xX]?+)(?=[0-9a-fA-F]{8})0*+([0-9a-fA-F]{0,7})[0-9a-fA-F]*+")
# A character reference.  Hexadecimal digits may follow a decimal number; the longest name has
# 31 letters.
_REFERENCE = re.compile(rb"&(?:#[xX]?+[0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]{1,31}+);?+")
_MAX_KNOWN = 4096  # character references that are cached
_LINKS = frozenset((b"href", b"src", b"action", b"background"))
# Several patterns, because each begins with a literal and is found much faster than one pattern
# of alternatives.
_HIDING = tuple(
    re.compile(pattern)
    for pattern in (
        rb"display\s*+:\s*+none",
        rb"visibility\s*+:\s*+hidden",
        rb"mso-hide\s*+:\s*+all",
        rb"font-size\s*+:\s*+(?:0(?![\d.])|1p[xt]\b)",
        rb"opacity\s*+:\s*+0(?![\d.])",
    )
)
_WHITE = re.compile(rb"color(?<=[\s;\"']color)\s*+[:=]\s*+[\"']?+\s*+(?:#?fff(?:fff)?|white)\b")
_VOID = frozenset(b"br hr img input meta link area base col wbr embed param source".split())
_WORTH_TELLING = frozenset(
    b"a img form input iframe object embed font table center marquee blink map area meta base"
    b" link button select textarea svg video h1 b i u strong em blockquote pre".split()
)
# Separates documents: it ends a tag that is left open and begins none.
_BETWEEN = b"< "
_FEW = 5  # words: if a document with an image has fewer, the image is the message

# Names of tags are compared by their first eight letters, as one number: textarea, blockquo.
_KEY_BYTES = 8


def _key(name: bytes) -> int:
    """Return the first eight letters of a name as one number."""
    return int.from_bytes(name[:_KEY_BYTES], "little")


# Known names in the order of their keys; the last entry is for all other names.
_NAMES = (*sorted(_BREAKING | _WORTH_TELLING, key=_key), b"")
_KEYS = np.array([_key(name) for name in _NAMES[:-1]], np.uint64)
_BREAKS = np.array([name in _BREAKING for name in _NAMES])
_TELLS = np.array([name in _WORTH_TELLING for name in _NAMES])
_FACTS = [f"tag-{name.decode()}" for name in _NAMES]
_VOID_KEYS = frozenset(map(_key, _VOID))
# For bytes.translate: letters and digits of names, in lower case; all other bytes are zero.
_OF_NAMES = bytes(c if bytes([c]).isalnum() else 0 for c in bytes(range(256)).lower())
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_SEEN, _UNSEEN, _VALUES = range(3)  # parts: visible text, invisible text, attributes


class _Tags(NamedTuple):
    """The tags of a text; all arrays have shape (n_tags,)."""

    start: Integers  # position of the <
    stop: Integers  # position after the >
    values: Integers  # position after the name; `stop` if there are no attributes
    is_end: Booleans  # an end tag, such as </a>
    key: Keys  # of the name, see `_key`; 0 for ! and ?
    kind: Integers  # index of the name in _NAMES


def read_html(documents: Sequence[bytes]) -> list[Html]:
    """Return visible and hidden text, links and facts of HTML documents in UTF-8.

    All documents are read together, which takes up to forty times their size in memory.
    """
    facts: list[set[str]] = [set() for _ in documents]
    plain = [_without_opaque(html, found) for html, found in zip(documents, facts, strict=True)]
    text = _BETWEEN.join([*plain, bytes(_KEY_BYTES)])
    # The start of each document, and at the end that of the document that would follow.
    starts = [0, *accumulate(len(html) + len(_BETWEEN) for html in plain)]
    tags = _find_tags(text)
    bounds = tags.start.searchsorted(starts)  # the tags of each document
    _tell_names(tags, bounds, facts)
    parts = _parts(tags, len(text))
    attributes = _attributes_with_values(text, parts, tags, bounds)
    hidden = [b""] * len(plain)
    for i, values in enumerate(attributes):
        if b"style" in values and _hides(values):
            own = _Tags._make(column[bounds[i] : bounds[i + 1]] for column in tags)
            hidden[i] = _take_hidden(text, parts, own, starts[i + 1] - len(_BETWEEN), facts[i])
    visible = _visible(text, parts, tags, starts)
    return list(map(_html, visible, hidden, attributes, facts))


def _html(visible: bytes, hidden: bytes, attributes: bytes, facts: set[str]) -> Html:
    """Return the parts of a document, after resolving character references."""
    urls, alt = _links_and_titles(attributes, facts)
    visible = _unescape(visible)
    if "tag-img" in facts and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    return Html(visible, _unescape(hidden), _unescape(b"\n".join(alt)), urls, facts)


def _without_opaque(html: bytes, facts: set[str]) -> bytes:
    """Return the document without comments, scripts and styles; add facts about them.

    A comment, script or style that is left open extends to the end.
    """
    kept = []
    position = 0
    while match := _OPAQUE.search(html, position):
        start = match.start()
        kept.append(html[position:start])
        if match[1]:
            name = match[1].lower()
            facts.add(f"tag-{name.decode()}")
            end = _OPAQUE_END[name].search(html, match.end())
            position = end.start() if end else len(html)
        elif comment_end := _COMMENT_END.search(html, start + 2):  # <!--> is a whole comment
            position = comment_end.end()
            if html[start - 1 : start].isalpha() and html[position : position + 1].isalpha():
                facts.add("comment-in-word")
        else:
            position = len(html)
            facts.add("comment-open")
    kept.append(html[position:])
    return b"".join(kept)


def _links_and_titles(tags: bytes, facts: set[str]) -> tuple[list[bytes], list[bytes]]:
    """Return links and titles in attributes (see `_PLAIN`); add facts about attributes."""
    urls, alt = [], []
    for name, double, single, bare in _ATTRIBUTE.findall(tags):
        value = double or single or bare
        if name in _LINKS:
            urls.append(_unescape(value))
        elif name in (b"alt", b"title"):
            alt.append(value)
        else:
            facts.add("attr-event")
    if _WHITE.search(tags):
        facts.add("text-white")
    return urls, alt


def _hides(attributes: bytes) -> bool:
    """Return whether attributes (see `_PLAIN`) hide the content of their element."""
    return any(pattern.search(attributes) for pattern in _HIDING)


def _find_tags(text: bytes) -> _Tags:
    """Return the tags of a text.

    A tag is a < whose next bracket is a >, and that is followed by a name, a / and a name, a !
    or a ?.  The last bracket of the text must be a < with eight bytes after it.
    """
    letters = np.frombuffer(text, np.uint8)
    brackets = np.flatnonzero((letters & 0xFD) == ord("<"))  # positions of < and >
    opens = letters[brackets] == ord("<")
    closed = np.flatnonzero(opens[:-1] > opens[1:])
    start, stop = brackets[closed], brackets[closed + 1] + 1
    first = letters[start + 1]
    is_end = first == ord("/")
    name = start + 1 + is_end
    # windows[i] is the eight bytes from i on, as one number.
    windows = np.ndarray(len(text) - _KEY_BYTES + 1, "<u8", text, 0, (1,))
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
    return _Tags(start, stop, values, is_end, key, kind)


def _tell_names(tags: _Tags, bounds: Integers, facts: list[set[str]]) -> None:
    """Add a fact to each document for every kind of tag in it that is worth telling."""
    document = np.arange(len(facts)).repeat(np.diff(bounds))
    tells = _TELLS[tags.kind] & ~tags.is_end
    has_name = np.zeros((len(facts), len(_NAMES)), bool)
    has_name[document[tells], tags.kind[tells]] = True
    for i, kind in np.argwhere(has_name).tolist():
        facts[i].add(_FACTS[kind])


def _parts(tags: _Tags, size: int) -> Octets:
    """Return of what each byte of the text is part, shape (size,): _SEEN, _UNSEEN or _VALUES.

    The first byte of a tag that separates words is seen: it will be a line feed.
    """
    turns = np.empty(3 * len(tags.start) + 2, np.int64)
    turns[0], turns[-1] = 0, size
    turns[1:-1:3], turns[2:-1:3], turns[3:-1:3] = (
        tags.start + _BREAKS[tags.kind],
        tags.values,
        tags.stop,
    )
    part = np.zeros(len(turns) - 1, np.uint8)
    part[1::3], part[2::3] = _UNSEEN, _VALUES
    return part.repeat(np.diff(turns))


def _attributes_with_values(
    text: bytes, parts: Octets, tags: _Tags, bounds: Integers
) -> list[bytes]:
    """Return the different attributes with values of each document (see `_PLAIN`)."""
    found = np.frombuffer(text, np.uint8)[parts == _VALUES].tobytes().split(b">")
    of_documents = np.flatnonzero(tags.values < tags.stop).searchsorted(bounds)
    plain = []
    for first, last in pairwise(of_documents.tolist()):
        # Most attributes are repeated, and most have no value.
        telling = [each for each in dict.fromkeys(found[first:last]) if _EQUALS in each]
        plain.append(b"\n".join(telling).translate(_PLAIN))
    return plain


def _take_hidden(text: bytes, parts: Octets, tags: _Tags, end: int, facts: set[str]) -> bytes:
    """Return the text of hidden elements of one document, and mark it as unseen in `parts`.

    tags: of the document.  end: of the document.
    """
    spans = zip(tags.values.tolist(), tags.stop.tolist(), strict=True)
    attributes = [text[start : stop - 1] for start, stop in spans]
    hiding = {each for each in set(attributes) if _hides(each.translate(_PLAIN))}
    hidden = []
    inside = 0  # key of the hidden element's name
    depth = 0  # of elements of that name, itself included
    tags_with = zip(
        attributes,
        tags.key.tolist(),
        tags.is_end.tolist(),
        tags.stop.tolist(),
        [*tags.start[1:].tolist(), end],
        strict=True,
    )
    for values, key, is_end, start, stop in tags_with:
        if inside and key == inside:
            depth += -1 if is_end else 1
        elif not inside and values in hiding and key and not is_end and key not in _VOID_KEYS:
            inside, depth = key, 1
            facts.add("hidden-text")
        if depth:
            hidden.append(text[start:stop])
            parts[start:stop] = _UNSEEN
        else:
            inside = 0
    return b" ".join(hidden)


def _visible(text: bytes, parts: Octets, tags: _Tags, starts: list[int]) -> list[bytes]:
    """Return the visible text of each document, with line feeds for tags that separate words."""
    letters = np.frombuffer(text, np.uint8).copy()
    letters[tags.start[_BREAKS[tags.kind]]] = ord("\n")
    is_seen = parts == _SEEN
    documents = [slice(start, end - len(_BETWEEN)) for start, end in pairwise(starts)]
    return [letters[own][is_seen[own]].tobytes() for own in documents]


def _unescape(text: bytes) -> bytes:
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
