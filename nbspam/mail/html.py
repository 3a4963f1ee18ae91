"""HTML to what a reader sees, what is hidden from him, links and facts.

Not a parser of HTML but a reader of tags: spammers' markup is not HTML either.  Every
search moves forward only, so the time is linear whatever is left open.  The tags of many
documents are found in a few passes over arrays, since most documents are small.

Secret: which markup hides text, breaks words or joins them.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets


class Html(NamedTuple):
    """A document taken apart; all UTF-8 bytes."""

    visible: bytes
    hidden: bytes
    alt: bytes  # alternative texts and titles
    urls: list[bytes]
    facts: set[str]  # such as tag-img, comment-in-word


_BREAKING = frozenset(
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote pre form"
    b" option select title body html head input textarea section article".split()
)
# A number is looked for in bytes faster than bytes are.
_EQUALS, _AMPERSAND = b"=&"
# Most tags are passed over by one look at their first letter.
_OPAQUE = re.compile(rb"<(?=[!sS])(?:!--|((?i:script|style))\b)")
_OPAQUE_END = {name: re.compile(rb"</(?i:%b)" % name) for name in (b"script", b"style")}
_COMMENT_END = re.compile(rb"--!?>")
# Attributes are read in lower case, as their words will be, and with spaces alone between.
_PLAIN = bytes(ord(" ") if bytes([c]).isspace() else c for c in bytes(range(256)).lower())
_ATTRIBUTE = re.compile(
    rb" (href|src|action|background|alt|title|on[a-z]++)"
    rb"\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"']++))"
)
# Python refuses numbers of thousands of digits; no character has more than seven.
_LONG_NUMBER = re.compile(rb"(&#[xX]?+)(?=[0-9a-fA-F]{8})0*+([0-9a-fA-F]{0,7})[0-9a-fA-F]*+")
# Hexadecimal digits may follow a decimal number; the longest name has 31 letters.
_REFERENCE = re.compile(rb"&(?:#[xX]?+[0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]{1,31}+);?+")
_MAX_KNOWN = 4096  # references that one process remembers
_LINKS = frozenset((b"href", b"src", b"action", b"background"))
# Each begins with a literal, which is found much faster than one of several.
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
# Stands between documents: ends the tag that is left open, begins none.
_BETWEEN = b"< "
_FEW = 5  # words: with an image and fewer, the image is the message

# Names are known by their first eight letters, as one number: textarea, blockquo.
_KEY_BYTES = 8


def _key(name: bytes) -> int:
    """Return the first eight letters of a name as one number."""
    return int.from_bytes(name[:_KEY_BYTES], "little")


# Known names in the order of their keys, and last one for all others.
_NAMES = (*sorted(_BREAKING | _WORTH_TELLING, key=_key), b"")
_KEYS = np.array([_key(name) for name in _NAMES[:-1]], np.uint64)
_BREAKS = np.array([name in _BREAKING for name in _NAMES])
_TELLS = np.array([name in _WORTH_TELLING for name in _NAMES])
_FACTS = [f"tag-{name.decode()}" for name in _NAMES]
_VOID_KEYS = frozenset(map(_key, _VOID))
# What names are made of, in lower case; everything else is zero.
_OF_NAMES = bytes(c if bytes([c]).isalnum() else 0 for c in bytes(range(256)).lower())
_ONES, _HIGHEST = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_SEEN, _UNSEEN, _VALUES = range(3)  # what letters are part of


class _Tags(NamedTuple):
    """The tags of a text, all (n_tags,)."""

    start: Integers  # of the <
    stop: Integers  # behind the >
    values: Integers  # what follows the name, the > included; without attributes the stop
    is_end: Booleans  # such as </a>
    key: Keys  # of the name; 0 of ! and ?
    kind: Integers  # index of the name


def read_html(documents: Sequence[bytes]) -> list[Html]:
    """Return visible and hidden text, links and facts of HTML documents in UTF-8.

    They are read as one text, which takes up to forty times its size in memory.
    """
    facts: list[set[str]] = [set() for _ in documents]
    plain = [_without_opaque(html, found) for html, found in zip(documents, facts, strict=True)]
    text = _BETWEEN.join([*plain, bytes(_KEY_BYTES)])
    # Where the documents start, and behind them where one more would.
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
    """Return a document taken apart; the texts still have character references."""
    urls, alt = _links_and_titles(attributes, facts)
    visible = _unescape(visible)
    if "tag-img" in facts and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    return Html(visible, _unescape(hidden), _unescape(b"\n".join(alt)), urls, facts)


def _without_opaque(html: bytes, facts: set[str]) -> bytes:
    """Return the document without comments, scripts and styles; what is open has no end."""
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
        elif comment_end := _COMMENT_END.search(html, start + 2):  # <!--> is a whole one
            position = comment_end.end()
            if html[start - 1 : start].isalpha() and html[position : position + 1].isalpha():
                facts.add("comment-in-word")
        else:
            position = len(html)
            facts.add("comment-open")
    kept.append(html[position:])
    return b"".join(kept)


def _links_and_titles(tags: bytes, facts: set[str]) -> tuple[list[bytes], list[bytes]]:
    """Return the links and titles in plain attributes, noting telling ones."""
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
    """Tell whether plain attributes hide what stands in their element."""
    return any(pattern.search(attributes) for pattern in _HIDING)


def _find_tags(text: bytes) -> _Tags:
    """Return the tags of a text whose last bracket is a < with eight bytes behind it.

    A tag is a < that the next bracket closes, before a name, the end of one, a ! or a ?.
    """
    letters = np.frombuffer(text, np.uint8)
    brackets = np.flatnonzero((letters & 0xFD) == ord("<"))  # < and >
    opens = letters[brackets] == ord("<")
    closed = np.flatnonzero(opens[:-1] > opens[1:])
    start, stop = brackets[closed], brackets[closed + 1] + 1
    first = letters[start + 1]
    is_end = first == ord("/")
    name = start + 1 + is_end
    # Every eight bytes of the text as one number, wherever they begin.
    windows = np.ndarray(len(text) - _KEY_BYTES + 1, "<u8", text, 0, (1,))
    key = np.frombuffer(windows[name].tobytes().translate(_OF_NAMES), "<u8")
    is_tag = (key & 0xFF >= ord("a")) | (first == ord("!")) | (first == ord("?"))
    start, stop, is_end = start[is_tag], stop[is_tag], is_end[is_tag]
    name, key = name[is_tag], key[is_tag]
    # The lowest zero byte ends the name.  This finds it, and perhaps some above it.
    zeros = (key - _ONES) & ~key & _HIGHEST
    below = (zeros & -zeros) - 1
    key &= below
    values = name + np.maximum(np.bitwise_count(below) >> 3, 1)
    values += values == stop - 1
    kind = _KEYS.searchsorted(key)
    kind[_KEYS.take(kind, mode="clip") != key] = len(_KEYS)
    return _Tags(start, stop, values, is_end, key, kind)


def _tell_names(tags: _Tags, bounds: Integers, facts: list[set[str]]) -> None:
    """Note which telling names begin a tag in each document."""
    document = np.arange(len(facts)).repeat(np.diff(bounds))
    tells = _TELLS[tags.kind] & ~tags.is_end
    has_name = np.zeros((len(facts), len(_NAMES)), bool)
    has_name[document[tells], tags.kind[tells]] = True
    for i, kind in np.argwhere(has_name).tolist():
        facts[i].add(_FACTS[kind])


def _parts(tags: _Tags, size: int) -> Octets:
    """Return what each letter of the text is part of, (size,).

    The first letter of a breaking tag is seen: as a line feed.
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
    """Return the attributes with values in each document, plain; what repeats is there once."""
    found = np.frombuffer(text, np.uint8)[parts == _VALUES].tobytes().split(b">")
    of_documents = np.flatnonzero(tags.values < tags.stop).searchsorted(bounds)
    plain = []
    for first, last in pairwise(of_documents.tolist()):
        # Most come more than once, and most say nothing of interest.
        telling = [each for each in dict.fromkeys(found[first:last]) if _EQUALS in each]
        plain.append(b"\n".join(telling).translate(_PLAIN))
    return plain


def _take_hidden(text: bytes, parts: Octets, tags: _Tags, end: int, facts: set[str]) -> bytes:
    """Return the text of elements whose style hides them, which is no longer seen.

    The tags are those of one document, which ends at the end.
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
    """Return what is seen of each document, for breaking tags line feeds."""
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
    text = text.replace(b"&nbsp;", b" ")  # by far the most frequent, and dear one by one
    return _REFERENCE.sub(lambda match: _resolve(match[0]), text)


@lru_cache(_MAX_KNOWN)
def _resolve(reference: bytes) -> bytes:
    """Return what a reference stands for, or itself if that is nothing."""
    from html import unescape

    return unescape(reference.decode()).encode("utf-8", "replace")
