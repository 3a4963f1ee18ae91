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


_TAG = re.compile(rb"<(?:/?[a-zA-Z]|[!?])[^<>]*>")
_NAME = re.compile(rb"<([a-zA-Z][a-zA-Z0-9]*)")
_BREAKING = re.compile(
    rb"</?(?:br|p|div|t[rdh]|table|li|[uod]l|d[td]|h[1-6r]|center|blockquote|pre|form|option"
    rb"|select|title|body|html|head|input|textarea|section|article)\b[^<>]*>",
    re.IGNORECASE,
)
_OPAQUE = re.compile(rb"<(script|style)\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"\s(href|src|action|background|alt|title|style|color|on[a-z]+)"
    rb"\s*=\s*(?:\"([^\"]*)|'([^']*)|([^\s\"']+))",
    re.IGNORECASE,
)
_LINKS = frozenset((b"href", b"src", b"action", b"background"))
_HIDING = re.compile(
    rb"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em|%)?\s*[;\"']"
)
_WHITE = re.compile(rb"[\s;\"']color\s*[:=]\s*[\"']?\s*(?:#?fff(?:fff)?|white)\b")
_VOID = frozenset(b"br hr img input meta link area base col wbr embed param source".split())
_WORTH_TELLING = frozenset(
    b"a img form input script style iframe object embed font table center marquee blink map area"
    b" meta base link button select textarea svg video area h1 b i u strong em blockquote pre".split()
)
_FEW = 5  # words: with an image and fewer, the image is the message


def read_html(html: bytes) -> Html:
    """Return visible and hidden text, links and facts of an HTML document in UTF-8."""
    facts: set[str] = set()
    text = _without_comments(html, facts)
    text = _without_scripts(text, facts)
    text, hidden = _without_hidden(text, facts)
    tags = b"\n".join(_TAG.findall(text))
    urls, alt = _attributes(tags, facts)
    names = {name.lower() for name in set(_NAME.findall(tags))} & _WORTH_TELLING
    facts.update(f"tag-{name.decode()}" for name in names)
    visible = _unescape(_TAG.sub(b"", _BREAKING.sub(b"\n", text)))
    if b"img" in names and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    return Html(visible, _unescape(hidden), _unescape(b"\n".join(alt)), urls, facts)


def _attributes(tags: bytes, facts: set[str]) -> tuple[list[bytes], list[bytes]]:
    """Return the links and the titles that tags hold, noting telling attributes."""
    urls, alt = [], []
    for name, double, single, bare in _ATTRIBUTE.findall(tags):
        name, value = name.lower(), double or single or bare
        if name in _LINKS:
            urls.append(_unescape(value))
        elif name in (b"alt", b"title"):
            alt.append(value)
        elif name[:2] == b"on":
            facts.add("attr-event")
    if _WHITE.search(tags.lower()):
        facts.add("text-white")
    return urls, alt


def _without_hidden(html: bytes, facts: set[str]) -> tuple[bytes, bytes]:
    """Return the document without elements whose style hides them, and their text."""
    lower = html.lower()
    kept, hidden = [], []
    position = 0
    while style := _HIDING.search(lower, position):
        opening = _TAG.match(lower, max(lower.rfind(b"<", position, style.start()), 0))
        end = style.end()
        if opening and opening.end() >= end:
            end = opening.end()
            name = _NAME.match(opening.group())
            if name and name.group(1) not in _VOID:
                facts.add("hidden-text")
                kept.append(html[position:end])
                position, end = end, _closing(lower, name.group(1), end)
                hidden.append(_TAG.sub(b" ", html[position:end]))
                position = end
        kept.append(html[position:end])
        position = end
    kept.append(html[position:])
    return b"".join(kept), b" ".join(hidden)


def _closing(lower: bytes, name: bytes, position: int) -> int:
    """Return where the element of this name, open at position, is closed."""
    depth = 1
    for match in re.compile(rb"<(/?)" + name + rb"\b").finditer(lower, position):
        depth += -1 if match.group(1) else 1
        if not depth:
            return match.start()
    return len(lower)


def _without_comments(html: bytes, facts: set[str]) -> bytes:
    """Return the document without comments, noting those that cut a word in two."""
    if b"<!--" not in html:
        return html
    kept = []
    position = 0
    while (start := html.find(b"<!--", position)) >= 0:
        kept.append(html[position:start])
        end = html.find(b"-->", start + 4)
        if end < 0:
            position = len(html)
            facts.add("comment-open")
            break
        position = end + 3
        if html[start - 1 : start].isalpha() and html[position : position + 1].isalpha():
            facts.add("comment-in-word")
    kept.append(html[position:])
    return b"".join(kept)


def _without_scripts(html: bytes, facts: set[str]) -> bytes:
    """Return the document without what is in script and style elements."""
    kept = []
    position = 0
    lower = html.lower()
    while match := _OPAQUE.search(html, position):
        kept.append(html[position : match.start()])
        name = match.group(1).lower()
        facts.add(f"tag-{name.decode()}")
        end = lower.find(b"</" + name, match.end())
        position = len(html) if end < 0 else end
        if end < 0:
            break
    kept.append(html[position:])
    return b"".join(kept)


def _unescape(text: bytes) -> bytes:
    """Return text with character references resolved."""
    if b"&" not in text:
        return text
    from html import unescape

    return unescape(text.decode("utf-8", "replace")).encode("utf-8", "replace")
