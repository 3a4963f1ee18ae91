"""Splitting HTML into visible text, hidden text, links and facts about its markup.

Every search only moves forward, so the time is linear, whatever markup is left open.  Most
documents are small, so many documents are read together by array operations.  Only in a document
that could hide text the elements are followed one by one (see `styles`).

Secret: which markup separates words or joins them.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Octets, differences, places_of
from nbspam.mail.references import unescape_references
from nbspam.mail.styles.elements import (
    CELLS,
    COLOURED,
    FORMATTING,
    VOID,
    Followed,
    Span,
    hidden_spans,
)
from nbspam.mail.styles.looks import OWN
from nbspam.mail.styles.sheets import (
    NO_SHEET,
    STYLED_NAMES,
    Sheet,
    is_for_screen,
    read_attributes,
    read_sheet,
)
from nbspam.mail.styles.suspicion import can_hide
from nbspam.mail.tags import (
    BREAKS,
    HIDES,
    KEY_BYTES,
    NAMES_OF_KINDS,
    TELLS,
    Tags,
    find_tags,
    kinds_in,
    name_of,
)


class Html(NamedTuple):
    """The parts of a document; all text is UTF-8."""

    visible: bytes
    hidden: bytes
    alt: bytes  # alternative texts and titles
    urls: list[bytes]
    facts: set[str]  # about the markup, such as tag-img and comment-in-word


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
_LINKS = frozenset((b"href", b"src", b"action", b"background"))
_TITLES = frozenset((b"alt", b"title"))
_WHITE = re.compile(rb"color(?<=[\s;\"']color)\s*+[:=]\s*+[\"']?+\s*+(?:#?fff(?:fff)?|white)\b")
# The attribute, and not a value.
_HIDDEN = re.compile(rb"hidden(?<=[\s/\"']hidden)(?=[\s/=]|\Z)")
# Separates documents: it ends a tag that is left open and begins none.
_BETWEEN = b"< "
_LINE_FEED = ord("\n")
_WORD = re.compile(r"[^\W_]")
_FEW = 5  # words: if a document with an image has fewer, the image is the message

_FACTS = [f"tag-{name.decode()}" for name in NAMES_OF_KINDS]
_NEVER, _COLOURED, _CELLS, _FORMATTING = map(
    kinds_in, (VOID, COLOURED, CELLS, FORMATTING - STYLED_NAMES)
)
_ASIDES = kinds_in({b"title", b"option"})
# Parts: visible text, invisible text, attributes, and text of titles and options.
_SEEN, _UNSEEN, _VALUES, _ASIDE = range(4)
# Elements that are followed: none, those that colours in attributes can change, or any.
_NONE, _COLOURS, _ANY = range(3)


def read_html(documents: Sequence[bytes]) -> list[Html]:
    """Return visible and hidden text, links and facts of HTML documents in UTF-8.

    All documents are read together, which takes up to forty times their size in memory.
    """
    if not documents:  # of a message alone, which mostly has no HTML
        return []
    facts: list[set[str]] = [set() for _ in documents]
    plain, sheets = [], []
    for html, found in zip(documents, facts, strict=True):
        rest, sheet = _without_opaque(html, found)
        plain.append(rest)
        sheets.append(read_sheet(sheet) if sheet else NO_SHEET)
    text = _BETWEEN.join([*plain, bytes(KEY_BYTES)])
    # The start of each document, and at the end that of the document that would follow.
    starts = [0, *accumulate(len(html) + len(_BETWEEN) for html in plain)]
    tags = find_tags(text)
    bounds = tags.start.searchsorted(starts)  # the tags of each document
    is_doubtful = _tell_names(tags, bounds, facts)
    parts = _parts(tags, len(text))
    attributes = _attributes(text, parts, tags, bounds)
    letters = np.frombuffer(text, np.uint8).copy()
    letters[tags.start[BREAKS[tags.kind]]] = _LINE_FEED
    doubts = [
        _doubt(each, sheet, bool(doubtful))
        for each, sheet, doubtful in zip(attributes, sheets, is_doubtful, strict=True)
    ]
    followed = _followed(text, tags, bounds, _telling(tags, bounds, sheets, doubts))
    read = []
    for i, (start, stop) in enumerate(pairwise(starts)):
        own = slice(start, stop - len(_BETWEEN))
        hidden = [letters[own][parts[own] == _ASIDE].tobytes()]
        if doubts[i]:
            spans = hidden_spans(followed[i], sheets[i], own.stop)
            hidden += _take_hidden(letters, parts, spans, facts[i])
        visible = letters[own][parts[own] == _SEEN].tobytes()
        read.append(_html(visible, b" ".join(hidden), attributes[i], facts[i]))
    return read


def _doubt(attributes: bytes, sheet: Sheet, is_doubtful: bool) -> int:
    """Return which elements of a document have to be followed, see `_NONE`.

    is_doubtful: whether it has elements that can hide their text of their own accord.
    """
    if is_doubtful or _HIDDEN.search(attributes):
        return _ANY
    if not can_hide(attributes, sheet):
        return _NONE
    return _COLOURS if sheet is NO_SHEET and b"style" not in attributes else _ANY


def _telling(
    tags: Tags, bounds: Integers, sheets: Sequence[Sheet], doubts: Sequence[int]
) -> Integers:
    """Return which tags can change what text looks like, of the documents that are followed."""
    document = np.arange(len(doubts)).repeat(differences(bounds))
    in_use = np.zeros((len(doubts), len(NAMES_OF_KINDS)), bool)
    has_values = tags.values < tags.stop
    in_use[document[has_values], tags.kind[has_values]] = True
    for i, sheet in enumerate(sheets):
        if sheet is not NO_SHEET:
            in_use[i] |= list(map(sheet.mentions, NAMES_OF_KINDS))
    doubt = np.array(doubts, np.uint8)[:, np.newaxis]
    counts = (doubt == _ANY) & ~_NEVER & (~_FORMATTING | in_use)
    counts |= (doubt == _COLOURS) & _COLOURED & (_CELLS | in_use)
    return places_of(counts[document, tags.kind] & (tags.key > 0))


def _followed(text: bytes, tags: Tags, bounds: Integers, which: Integers) -> list[Followed]:
    """Return some of the tags of each document."""
    start, stop, values, is_end, key = (
        each[which].tolist()
        for each in (tags.start, tags.stop, tags.values, tags.is_end, tags.key)
    )
    written = [text[first:last] for first, last in zip(start, stop, strict=True)]

    def read(first: int, index: int) -> tuple[bytes, bool, bytes]:
        i = first + index
        return name_of(key[i]), is_end[i], text[values[i] : stop[i] - 1]

    return [
        Followed(written[i:j], start[i:j], stop[i:j], partial(read, i))
        for i, j in pairwise(which.searchsorted(bounds).tolist())
    ]


def _html(visible: bytes, hidden: bytes, attributes: bytes, facts: set[str]) -> Html:
    """Return the parts of a document, after resolving character references.

    attributes: of all its tags, see `_PLAIN`.
    """
    urls, alt = [], []
    for name, double, single, bare in _ATTRIBUTE.findall(attributes):
        value = double or single or bare
        if name in _LINKS:
            urls.append(unescape_references(value))
        elif name in _TITLES:
            alt.append(value)
        else:
            facts.add("attr-event")
    if _WHITE.search(attributes):
        facts.add("text-white")
    visible = unescape_references(visible)
    if "tag-img" in facts and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    hidden, titles = unescape_references(hidden), unescape_references(b"\n".join(alt))
    return Html(visible, hidden, titles, urls, facts)


def _without_opaque(html: bytes, facts: set[str]) -> tuple[bytes, bytes]:
    """Return the document without comments, scripts and styles, and its styles; add facts.

    A comment, script or style that is left open extends to the end.
    """
    kept, styles = [], []
    position = 0
    while match := _OPAQUE.search(html, position):
        start = match.start()
        kept.append(html[position:start])
        if match[1]:
            name = match[1].lower()
            facts.add(f"tag-{name.decode()}")
            end = _OPAQUE_END[name].search(html, match.end())
            position = end.start() if end else len(html)
            if name == b"style":
                styles.append(_rules_of(html[match.end() : position]))
        elif comment_end := _COMMENT_END.search(html, start + 2):  # <!--> is a whole comment
            position = comment_end.end()
            if html[start - 1 : start].isalpha() and html[position : position + 1].isalpha():
                facts.add("comment-in-word")
        else:
            position = len(html)
            facts.add("comment-open")
    kept.append(html[position:])
    return b"".join(kept), b"\n".join(styles)


def _rules_of(style: bytes) -> bytes:
    """Return the text of a style element, given what follows its name; empty if for print."""
    written, _, rules = style.partition(b">")
    media = read_attributes(written.lower(), (b"media",)).get(b"media")
    return rules if not media or is_for_screen(media) else b""


def _tell_names(tags: Tags, bounds: Integers, facts: list[set[str]]) -> Booleans:
    """Add a fact to each document for every kind of tag in it that is worth telling.

    Return of each document whether it has tags that can hide text of their own accord.
    """
    document = np.arange(len(facts)).repeat(differences(bounds))
    tells = (TELLS | HIDES)[tags.kind] & ~tags.is_end
    has_name = np.zeros((len(facts), len(NAMES_OF_KINDS)), bool)
    has_name[document[tells], tags.kind[tells]] = True
    for i, kind in np.argwhere(has_name & TELLS).tolist():
        facts[i].add(_FACTS[kind])
    is_doubtful: Booleans = has_name[:, HIDES].any(1)  # type: ignore[assignment]
    return is_doubtful


def _parts(tags: Tags, size: int) -> Octets:
    """Return of what each byte of the text is part, shape (size,), see `_SEEN`.

    The first byte of a tag that separates words is seen: it will be a line feed.
    """
    turns = np.empty(3 * len(tags.start) + 2, np.int64)
    turns[0], turns[-1] = 0, size
    turns[1:-1:3], turns[2:-1:3], turns[3:-1:3] = (
        tags.start + BREAKS[tags.kind],
        tags.values,
        tags.stop,
    )
    part = np.zeros(len(turns) - 1, np.uint8)
    part[1::3], part[2::3] = _UNSEEN, _VALUES
    # The text of titles and options ends with the next tag.
    part[3::3][_ASIDES[tags.kind] & ~tags.is_end] = _ASIDE
    return part.repeat(differences(turns))


def _attributes(text: bytes, parts: Octets, tags: Tags, bounds: Integers) -> list[bytes]:
    """Return the different attributes of the tags of each document (see `_PLAIN`)."""
    found = np.frombuffer(text, np.uint8)[parts == _VALUES].tobytes().split(b">")
    of_documents = places_of(tags.values < tags.stop).searchsorted(bounds)
    # Most attributes are repeated.
    return [
        b"\n".join(dict.fromkeys(found[first:last])).translate(_PLAIN)
        for first, last in pairwise(of_documents.tolist())
    ]


def _take_hidden(
    letters: Octets, parts: Octets, spans: Iterable[Span], facts: set[str]
) -> list[bytes]:
    """Return texts that cannot be read, and mark them as unseen in `parts`; add facts."""
    hidden = []
    for span in spans:
        own, part = letters[span.start : span.stop], parts[span.start : span.stop]
        is_seen = part == _SEEN
        text = own[is_seen].tobytes()
        if text.isspace() and not span.is_absent:
            continue
        part[is_seen if span.is_absent else is_seen & (own != _LINE_FEED)] = _UNSEEN
        if _WORD.search(unescape_references(text).decode(errors="replace")):
            hidden.append(text)
            if span.why != OWN:
                facts.update(("hidden-text", f"hidden-by-{span.why}"))
    return hidden
