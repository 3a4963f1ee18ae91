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


_TAG = re.compile(rb"<(/?[a-zA-Z][a-zA-Z0-9]*)([^<>]*)>|<[!?/][^<>]*>")
_OPAQUE = re.compile(rb"<(script|style)\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"(?<![^\s\"'/])(href|src|action|background|alt|title|style|color|size|on[a-z]+)"
    rb"\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"']+)",
    re.IGNORECASE,
)
_LINKS = frozenset((b"href", b"src", b"action", b"background"))
_HIDING_STYLE = re.compile(
    rb"display:none|visibility:hidden|font-size:[01](?:px|pt|em|%)?(?:;|$)|opacity:0(?:;|$)"
)
_WHITE = re.compile(rb"(?<!-)color:(?:#fff(?:fff)?|white)\b")
_MAX_TAG = 2048  # bytes of a tag that are looked at
_BREAKING_NAMES = (
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote"
    b" pre form option select title body html head input textarea section article"
).split()
_BREAKING = frozenset(_BREAKING_NAMES) | {b"/" + name for name in _BREAKING_NAMES}
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
    found = _Attributes([], [], facts)
    visible, hidden = _walk(_TAG.split(text), found)
    seen = _unescape(b"".join(visible))
    if "tag-img" in facts and len(seen.split()) < _FEW:
        facts.add("image-only")
    alt = _unescape(b"\n".join(found.alt))
    return Html(seen, _unescape(b" ".join(hidden)), alt, found.urls, facts)


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


class _Attributes(NamedTuple):
    """What the attributes of all tags said."""

    urls: list[bytes]
    alt: list[bytes]
    facts: set[str]

    def read(self, attributes: bytes) -> bool:
        """Take in the attributes of one tag; return whether they hide its content."""
        hides = False
        for name, value in _ATTRIBUTE.findall(attributes[:_MAX_TAG]):
            name, value = name.lower(), value.strip(b"\"'")
            if name in _LINKS:
                self.urls.append(_unescape(value))
            elif name in (b"alt", b"title"):
                self.alt.append(value)
            elif name == b"style":
                style = value.lower().replace(b" ", b"")
                hides = hides or _HIDING_STYLE.search(style) is not None
                if _WHITE.search(style):
                    self.facts.add("text-white")
            elif name == b"color":
                if value.lower().lstrip(b"#") in (b"fff", b"ffffff", b"white"):
                    self.facts.add("text-white")
            elif name == b"size":
                hides = hides or value == b"0"
            else:
                self.facts.add("attr-event")
        return hides


def _walk(
    pieces: list[bytes], found: _Attributes
) -> tuple[list[bytes], list[bytes]]:
    """Sort the text between tags into visible and hidden."""
    visible, hidden = [pieces[0]], []
    names = set()
    hiding = b""  # the element whose content is hidden, and how often it is open
    depth = 0
    for name, attributes, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if name is None:  # <!DOCTYPE …>, <?xml …?>
            visible.append(text)
            continue
        name = name.lower()
        if depth:
            if name == hiding:
                depth += 1
            elif name[1:] == hiding and name[:1] == b"/":
                depth -= 1
        else:
            names.add(name)
            if b"=" in attributes and found.read(attributes) and name not in _VOID:
                found.facts.add("hidden-text")
                hiding, depth = name, 1
        if depth:
            hidden.append(text)
        else:
            if name in _BREAKING:
                visible.append(b"\n")
            visible.append(text)
    found.facts.update(f"tag-{name.decode()}" for name in names & _WORTH_TELLING)
    return visible, hidden


def _unescape(text: bytes) -> bytes:
    """Return text with character references resolved."""
    if b"&" not in text:
        return text
    from html import unescape

    return unescape(text.decode("utf-8", "replace")).encode("utf-8", "replace")
