"""HTML to what a reader sees, what is hidden from him, links and facts.

Not a parser of HTML but a reader of tags: spammers' markup is not HTML either.  Every
search moves forward only, so the time is linear whatever is left open.

Secret: which markup hides text, breaks words or joins them.
"""

import re
from typing import NamedTuple


class Html(NamedTuple):
    """A document taken apart; all UTF-8 bytes."""

    visible: bytes
    hidden: bytes
    alt: bytes  # alternative texts and titles
    urls: list[bytes]
    facts: set[str]  # such as tag-img, comment-in-word


# The last set is [^<>]; in three ranges it becomes a table, which is faster.
_TAG = re.compile(rb"<(/?[a-zA-Z][a-zA-Z0-9]*+|[!?])([\x00-;=?-\xff]*+)>")
_BREAKING = tuple(
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote pre form"
    b" option select title body html head input textarea section article".split()
)
_LINE_FEEDS = dict.fromkeys((*_BREAKING, *(b"/" + name for name in _BREAKING)), b"\n")
# A number is looked for in bytes faster than bytes are.
_EQUALS, _AMPERSAND = b"=&"
_OPAQUE = re.compile(rb"<(?:!--|(script|style)\b)", re.IGNORECASE)
_COMMENT_END = re.compile(rb"--!?>")
# Attributes are read in lower case, as their words will be, and with spaces alone between.
_PLAIN = bytes(ord(" ") if bytes([c]).isspace() else c for c in bytes(range(256)).lower())
_ATTRIBUTE = re.compile(
    rb" (href|src|action|background|alt|title|on[a-z]++)"
    rb"\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"']++))"
)
# Python refuses numbers of thousands of digits; no character has more than seven.
_LONG_NUMBER = re.compile(rb"(&#[xX]?+)(?=[0-9a-fA-F]{8})0*+([0-9a-fA-F]{0,7})[0-9a-fA-F]*+")
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
_FEW = 5  # words: with an image and fewer, the image is the message


def read_html(html: bytes) -> Html:
    """Return visible and hidden text, links and facts of an HTML document in UTF-8."""
    facts: set[str] = set()
    # Text, name, attributes, text, name, attributes, …, text.
    pieces = _TAG.split(_without_opaque(html, facts))
    kinds = {name: name.lower() for name in set(pieces[1::3])}
    # Most tags come more than once, and most say nothing of interest.
    telling = b"\n".join([text for text in dict.fromkeys(pieces[2::3]) if _EQUALS in text])
    telling = telling.translate(_PLAIN)
    urls, alt = _attributes(telling, facts)
    hidden = b""
    if b"style" in telling and _hides(telling):
        hidden = _take_hidden(pieces, kinds, facts)
    names = _WORTH_TELLING.intersection(kinds.values())
    facts.update(f"tag-{name.decode()}" for name in names)
    breaks = {raw: _LINE_FEEDS.get(kind, b"") for raw, kind in kinds.items()}
    del pieces[2::3]
    pieces[1::2] = [breaks[raw] for raw in pieces[1::2]]
    visible = _unescape(b"".join(pieces))
    if b"img" in names and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    return Html(visible, _unescape(hidden), _unescape(b"\n".join(alt)), urls, facts)


def _without_opaque(html: bytes, facts: set[str]) -> bytes:
    """Return the document without comments, scripts and styles; what is open has no end."""
    lower = html.lower()
    kept = []
    position = 0
    while match := _OPAQUE.search(html, position):
        start = match.start()
        kept.append(html[position:start])
        if match[1]:
            name = match[1].lower()
            facts.add(f"tag-{name.decode()}")
            end = lower.find(b"</" + name, match.end())
            position = len(html) if end < 0 else end
        elif comment_end := _COMMENT_END.search(html, start + 2):  # <!--> is a whole one
            position = comment_end.end()
            if html[start - 1 : start].isalpha() and html[position : position + 1].isalpha():
                facts.add("comment-in-word")
        else:
            position = len(html)
            facts.add("comment-open")
    kept.append(html[position:])
    return b"".join(kept)


def _attributes(tags: bytes, facts: set[str]) -> tuple[list[bytes], list[bytes]]:
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


def _take_hidden(pieces: list[bytes], kinds: dict[bytes, bytes], facts: set[str]) -> bytes:
    """Take the text of elements whose style hides them out of the pieces, and return it."""
    hiding = {text for text in set(pieces[2::3]) if _hides(text.translate(_PLAIN))}
    hidden = []
    inside = b""  # name of the hidden element
    depth = 0  # of elements of that name, itself included
    for i in range(1, len(pieces), 3):
        kind = kinds[pieces[i]]
        if kind == inside:
            depth += 1
        elif inside and kind == b"/" + inside:
            depth -= 1
        elif not inside and pieces[i + 1] in hiding and kind[:1].isalpha() and kind not in _VOID:
            inside, depth = kind, 1
            facts.add("hidden-text")
        if depth:
            hidden.append(pieces[i + 2])
            pieces[i + 2] = b""
        else:
            inside = b""
    return b" ".join(hidden)


def _unescape(text: bytes) -> bytes:
    """Return text with character references resolved."""
    if _AMPERSAND not in text:
        return text
    from html import unescape

    if b"&#" in text:
        text = _LONG_NUMBER.sub(rb"\1\2", text)
    text = text.replace(b"&nbsp;", b" ")  # by far the most frequent, and dear one by one
    return unescape(text.decode("utf-8", "replace")).encode("utf-8", "replace")
