"""Splitting HTML into visible text, hidden text, links and facts about its markup.

lexbor reads a document as browsers do and gives its tree back as markup in which every element
is closed and every value quoted.  One pattern splits that into texts and tags; most tags have been
met before, so their effects are cached.  Elements are followed one by one only in a document that
could hide text.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from nbspam.mail import visibility
from nbspam.mail.css import read_block

if TYPE_CHECKING:
    from nbspam.mail.sheets import Context, GeneratedText, Sheet

_MAX_TAGS = 200_000  # of all documents of a message
_MAX_KNOWN, _MAX_LENGTH = 16384, 1000  # tags that are cached, and their bytes
_MAX_GENERATED, _MAX_CONTENT = 1000, 200  # texts that sheets add, and bytes of one
_MAX_DEPTH = 200  # text further inside looks as at this depth

_BREAKING = frozenset(
    b"br p div tr td th table li ul ol dl dt dd h1 h2 h3 h4 h5 h6 hr center blockquote pre form"
    b" option select input textarea section article".split()
)
_WORTH_TELLING = frozenset(
    b"a img form input iframe object embed font table center marquee blink map area meta base"
    b" link button select textarea svg video h1 b i u strong em blockquote pre script"
    b" style".split()
)
_FACTS = {name: (f"tag-{name.decode()}",) for name in _WORTH_TELLING}
_ATTRIBUTE = re.compile(rb' ([^ ][^ =]*+)="([^"]*+)"')
_DRAWN_LINE = re.compile(rb"<t(?:ext|span)\s(?=[^<>]*?\b(?:[xy]|dy)=)")  # of a drawing
# For bytes.translate: lower case, as tokens will be, and every blank of HTML a space.
_PLAIN = bytes.maketrans(b"\t\n\f\r", b"    ").lower()
# The same for links, from which browsers drop line ends and tabs.
_LOWER, _BREAKS, _SPACE = bytes(range(256)).lower(), b"\t\n\r", ord(" ")
_LINK_FIRST = re.compile(
    rb'((?:a|img) (href|src))="([^"]*+)"'
    # Idle attributes, as below.  For `|(?!)` see `headers`.
    rb'(?: (?:align|border|height|[hv]space|target|width)="[\w%.,;+# -]*+"|(?!))*+'
    rb'(?: alt="([^"]*+)")?'
)
_LINKS = frozenset(b"href xlink:href src srcset action formaction background data poster".split())
# As numbers, because `in` first tries to take bytes for a number: see `headers.CR`.
_AMPERSAND, _OPENING, _BRACKET, _FIRST_OF_INPUT = b"&<>i"
_HARD_SPACE = "\xa0".encode()
_TELLING = _LINKS | {b"alt", b"title", b"aria-label", b"placeholder"}
_BUTTON = re.compile(rb"input (?:[^>]* )?type=\"(?:submit|button|reset)\"", re.IGNORECASE)
_REFRESH = re.compile(rb"[\s\d.]++[;,]?+\s*+(?:url\s*+=)?\s*+[\"']?+([^\"']++)")
_EVENT = re.compile(rb"on[a-z]+\Z")
# Attributes that tell nothing.  In their values _WHITE finds nothing, because they have no colon
# and no equals sign.  A quote in the name of an attribute is followed by more of the name.
_IDLE = re.compile(
    rb" (?=[a-z]++=)(?:align|border|cell(?:padding|spacing)|checked|clear|(?:col|row)span|cols"
    rb"|coords|dir|face|frame|height|[hv]space|lang|language|maxlength|method|name"
    rb"|noshade|nowrap|rel|role|rows|rules|selected|shape|size|start|target|type|usemap|valign"
    rb"|value|width|wrap)"
    rb"=\"[\w%.,;+# -]*+\"(?![^ ])"
)
_WHITE = re.compile(rb"color(?<=[\s;\"']color)\s*+(?:=\"|[:=])[\s']*+(?:#?fff(?:fff)?|white)\b")
# No value of another attribute that ends with ` style=`: an equals sign follows it.
_STYLE = re.compile(rb' style="([^"=]{0,1000}+)"(?![^ ])')
_WORD = re.compile(r"[^\W_]")
_FEW = 5  # words: if a document with an image has fewer, the image is the message
# Source text, which may be hostile.
_SOURCE_TAG = re.compile(rb"<[^>]*+>?+")
_TAG_START = re.compile(rb"<[a-zA-Z]")
_PAGE_START = re.compile(rb"<[hHbB][tToO]")  # of <html> and <body>
# What the parser reads at once in any case: tags, bytes, and tags of pages among more bytes; and
# bytes of a tag that may have too many attributes.
_FEW_TAGS, _FEW_BYTES, _FEW_PAGES, _SHORT_PAGE, _LONG_TAG = 1200, 100_000, 4, 40_000, 2000
_FEW_PAIRS = 32 << 20  # tags times bytes: each tag may repeat formatting
_MAX_BLANKS = 64  # before a quote


class Html(NamedTuple):
    """The parts of a document; all text is UTF-8."""

    visible: bytes
    hidden: bytes
    alt: bytes  # alternative texts and titles
    urls: list[bytes]
    facts: set[str]  # about the markup, such as tag-img and comment-in-word
    drawn: bytes  # what it draws without pictures, in block characters


@dataclass(slots=True, eq=False)
class _Tag:
    """A tag as the parser writes it, with the content of an element that has only text."""

    name: bytes
    is_start: bool  # its end follows
    start: visibility.StartTag | None = None  # None for end tags, and where there is no text
    shown: bytes = b""  # what stands in its place: a line feed, the text of an <xmp>, or nothing
    hidden: bytes | None = None  # text that is never shown, or the rules of a <style>
    facts: tuple[str, ...] = ()


_COMMENT = _Tag(b"--", False)
_IDLE_SHEET = _Tag(b"style", False, facts=_FACTS[b"style"])


def read_html(
    documents: Sequence[bytes], pages: Collection[int] = (), reads_codes: bool = False
) -> list[Html]:
    """Return visible and hidden text, links and facts of a message's HTML documents in UTF-8.

    Text behind more tags than mail has is not followed: it counts as hidden.  pages: numbers of
    documents that browsers show, which run scripts; mail programs run none.  reads_codes: whether
    what they draw matters.
    """
    read, left, size = [], _MAX_TAGS, sum(map(len, documents))
    for number, html in enumerate(documents):
        lines = _DRAWN_LINE.sub(rb"\n\g<0>", html) if number in pages else html
        found, left = _read_bounded(lines, left, size, reads_codes)
        may_write = number in pages and not found.facts.isdisjoint(("tag-script", "tag-iframe"))
        if may_write:
            from nbspam.mail.rendered import decoded_markup  # late: few documents need it

            if markup := decoded_markup(html):
                found, left = _read_bounded(html + markup, left, size + len(markup), reads_codes)
        read.append(found)
    return read


def _read_bounded(html: bytes, left: int, size: int, reads_codes: bool) -> tuple[Html, int]:
    """Return the contents of a document, and how many of `left` tags it leaves to others.

    size: bytes of all documents of the message.
    """
    # bytes.count takes three times as long.
    tags = int(np.count_nonzero(np.frombuffer(html, np.uint8) == _OPENING))
    has_pages = size > _SHORT_PAGE and len(_PAGE_START.findall(html)) > _FEW_PAGES
    is_large = len(html) > _FEW_BYTES or tags * len(html) > _FEW_PAIRS
    may_take_long = is_large or has_pages or _may_have_huge_tag(html)
    if tags <= min(_FEW_TAGS, left) and not may_take_long:  # it might need quadratic time
        trees, rest = [LexborHTMLParser(html)], b""
    else:
        from nbspam.mail.trees import parse_in_parts  # late: few documents need it

        trees, rest = parse_in_parts(html, left)
    return _read(html, trees, rest, reads_codes), left - min(tags, left)


def _may_have_huge_tag(html: bytes) -> bool:
    """Return whether a tag may have too many attributes for the parser.

    Such a tag is long, and each > in it is quoted.  So in each stretch that is as long only the
    last > is looked at: in a value, the last quote before it follows an equals sign.  Each byte is
    searched for quotes once, so the time is linear.
    """
    place = seen = 0
    while place + _LONG_TAG < len(html):
        bracket = html.rfind(b">", place, place + _LONG_TAG)
        if bracket >= 0:
            for quote in (b'"', b"'"):
                # One that stands before all of this was looked at already.
                opened = html.rfind(quote, seen, bracket)
                if opened > 0 and html[opened - 1] in b"= \t\n\r\f\v":
                    before = html[max(opened - _MAX_BLANKS, 0) : opened].rstrip()
                    if before[-1:] in (b"", b"="):
                        return True
            place = seen = bracket + 1
        elif (start := _TAG_START.search(html, place, place + _LONG_TAG)) is None:
            place += _LONG_TAG
        elif start.start() == place:
            return True
        else:
            place = start.start()
    return False


def _read(html: bytes, trees: list[LexborHTMLParser], rest: bytes, reads_codes: bool) -> Html:
    """Return the parts of a document, given its trees and text that is not in them."""
    written = _markup_of(trees)
    pieces = visibility.TAG.split(written)
    tags, urls, titles = _tags_of(pieces)
    different = dict.fromkeys(tags)
    names = {tag.name for tag in different}
    if not names.isdisjoint((b"script", b"plaintext")):
        from nbspam.mail.trees import remove_ends_in_text

        if remove_ends_in_text(trees):
            return _read(html, trees, rest, reads_codes)
    if b"template" in names:
        tags = _without_idle_sheets(tags)
        different = dict.fromkeys(tags)
    sheet = _sheet_of(different)
    if sheet is not None and sheet.mark(trees, written):
        pieces = visibility.TAG.split(_markup_of(trees))
        tags, urls, titles = _tags_of(pieces)
        different = dict.fromkeys(tags)
    facts = set().union(*[tag.facts for tag in different])
    if b"<!--" in html:
        facts |= _facts_of_comments(html, pieces, tags)
    if sheet is not None and sheet.has_texts:
        _generate(pieces, tags, sheet)
    pieces[1::2] = [tag.shown for tag in tags]
    hidden = [tag.hidden for tag in different if tag.hidden is not None and tag.name != b"style"]
    if looks := _looks(tags, different, sheet):
        pieces, unread = _divided(pieces, looks, facts)
        hidden += unread
    visible = _unescape(b"".join(pieces))
    if "tag-img" in facts and len(visible.split(None, _FEW)) < _FEW:
        facts.add("image-only")
    if rest:
        hidden.append(_SOURCE_TAG.sub(b" ", rest))
    drawn = b""
    if reads_codes:
        from nbspam.mail.rendered import rows_of_blocks  # late: few models do

        def style_of(element: bytes) -> visibility.Style | None:
            start = _read_new(element)[0].start
            return (sheet.style(start) if sheet else start.style) if start else None

        drawn = rows_of_blocks(written, len(tags), visible, style_of)
    return Html(visible, _unescape(b" ".join(hidden)), b"\n".join(titles), urls, facts, drawn)


def _markup_of(trees: Iterable[LexborHTMLParser]) -> bytes:
    """Return trees as markup in UTF-8: every element is closed, and every value quoted."""
    return b"".join([(tree.html or "").encode("utf-8", "replace") for tree in trees])


_KNOWN: dict[bytes, _Tag] = {}  # by what the parser writes
_STYLES: dict[Any, bytes] = {}  # style attributes by what they say


def _tags_of(pieces: list[bytes]) -> tuple[list[_Tag], list[bytes], list[bytes]]:
    """Return the tags at odd places, their links and their titles; equal ones give them once."""
    tags: list[Any] = list(map(_KNOWN.get, pieces[1::2]))
    urls: list[bytes] = []
    titles: list[bytes] = []
    new: dict[bytes, _Tag] = {}
    for i in [i for i, tag in enumerate(tags) if tag is None]:
        written = pieces[2 * i + 1]
        tag = new.get(written)
        if tag is None:
            tag, values = _read_new(written)
            if values:
                for name, value in values.items():
                    (urls if name in _LINKS else titles).append(value)
            else:
                _keep(written, tag)
            new[written] = tag
        tags[i] = tag
    return tags, urls, titles


def _without_idle_sheets(tags: Iterable[_Tag]) -> list[_Tag]:
    """Return tags in which style sheets in templates have no rules."""
    found, depth, foreign = [], 0, 0
    for tag in tags:
        step = 1 if tag.is_start else -1
        if tag.name in (b"svg", b"math"):
            foreign += step
        elif tag.name == b"template" and not foreign:  # in a drawing it is none
            depth += step
        found.append(_IDLE_SHEET if depth and tag.name == b"style" else tag)
    return found


def _sheet_of(tags: Iterable[_Tag]) -> "Sheet | None":
    """Return the rules of a document's style elements that are for a screen, None without any.

    There also are some if style attributes have variables.
    """
    rules = [tag.hidden for tag in tags if tag.hidden is not None and tag.name == b"style"]
    starts = [tag.start for tag in tags if tag.start]
    if not rules and not any(start.has_variables for start in starts):
        return None
    from nbspam.mail.sheets import sheet_of  # imported late: most documents have no style element

    return sheet_of(rules, starts)


def _unescape(text: bytes) -> bytes:
    """Return text without the references that the parser writes; a hard space is a blank."""
    if _AMPERSAND in text:
        text = text.replace(b"&nbsp;", b" ")
    if _AMPERSAND in text:  # most text has only blanks
        text = text.replace(b"&lt;", b"<").replace(b"&gt;", b">")
        text = text.replace(b"&quot;", b'"').replace(b"&amp;", b"&")
    return text


def _read_tag(written: bytes) -> tuple[_Tag, dict[bytes, bytes]]:
    """Return the tag that is written so, without brackets, and its links and titles by name."""
    content = b""
    if is_raw := written.endswith(visibility.RAW):
        written, _, content = written.partition(b">")
    plain = written.translate(_PLAIN)
    name = plain.partition(b" ")[0]
    if name[:1] in (b"/", b"!", b"?"):
        if name.startswith(b"!--"):
            return _COMMENT, {}
        name = name[1:]
        return _Tag(name, False, None, b"\n" if name in _BREAKING else b""), {}
    deciding: dict[bytes, bytes] = {}
    attributes = _ATTRIBUTE.findall(plain)
    values = _values_by_type(name, dict(attributes)) if name in (b"input", b"meta") else {}
    for key, value in attributes:
        if key in visibility.DECIDING:
            deciding[key] = _unescape(value.replace(b"&nbsp;", _HARD_SPACE))  # no blank in CSS
        if key in _TELLING and value:
            values[key] = _unescape(value)
    if any(key in _LINKS and _SPACE in value for key, value in values.items()):
        # A link goes on behind what breaks it.
        unbroken = dict(_ATTRIBUTE.findall(written.translate(_LOWER, _BREAKS)))
        for key in values.keys() & unbroken.keys() & _LINKS:
            values[key] = _unescape(unbroken[key])
    if b"href" in deciding:
        deciding[b"href"] = b""
    if (style := deciding.get(b"style")) and style.find(b"url(") >= 0:
        _, *links = style.split(b"url(")
        stated = [values[b"background"]] if b"background" in values else []
        values[b"background"] = b"\n".join([*stated, *[link.partition(b")")[0] for link in links]])
    facts: tuple[str, ...] = _FACTS.get(name, ())
    if plain.find(b" on") >= 0 and any(_EVENT.match(key) for key, _ in attributes):
        facts += ("attr-event",)
    if plain.find(b"color") >= 0 and _WHITE.search(plain):
        facts += ("text-white",)
    if not is_raw:
        start = visibility.start_tag(name, deciding)
        return (_tag_of if start.is_cached else _tag_of.__wrapped__)(start, facts), values
    text = content.rpartition(b"</")[0]
    if name == b"script":
        from nbspam.mail.rendered import links_of_script  # late: few documents need it

        if followed := links_of_script(text):
            values[b"href"] = followed
    shown, hidden = _raw_text(name, text, dict(attributes))
    own = visibility.start_tag(name, deciding).style if shown else None
    if own and visibility.look_of(visibility.ROOT, own).why:
        shown, hidden = b"", shown
    return _Tag(name, False, None, shown, hidden, facts), values


@lru_cache(_MAX_KNOWN)
def _tag_of(start: visibility.StartTag, facts: tuple[str, ...]) -> _Tag:
    """Return the tag that begins an element; equal ones are one object."""
    shown = b"\n" if start.name in _BREAKING else b""
    return _Tag(start.name, start.name not in visibility.VOID, start, shown, None, facts)


def _raw_text(
    name: bytes, text: bytes, attributes: dict[bytes, bytes]
) -> tuple[bytes, bytes | None]:
    """Return the shown text of an element of text only, and its hidden text or rules of style."""
    if name in visibility.SHOWN_RAW and text:
        return b"\n" + text.replace(b"&", b"&amp;").replace(b"<", b"&lt;") + b"\n", None
    if name in visibility.HIDDEN_RAW:
        return b"", _SOURCE_TAG.sub(b" ", text)
    if name == b"style" and text:
        from nbspam.mail.media import is_for_screen

        is_css = attributes.get(b"type", b"") in (b"", b"text/css")
        media = _unescape(attributes.get(b"media") or b"all")
        return b"", text if is_css and is_for_screen(media) else b""
    return b"", None


def _values_by_type(name: bytes, attributes: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the text of a button, or the page that a document leads to by itself."""
    if name == b"input":
        is_button = attributes.get(b"type") in (b"submit", b"button", b"reset")
        text = _unescape(attributes.get(b"value", b"")) if is_button else b""
        return {b"value": text} if text else {}
    is_refresh = attributes.get(b"http-equiv") == b"refresh"
    page = is_refresh and _REFRESH.match(_unescape(attributes.get(b"content", b"")))
    return {b"href": page[1]} if page else {}


def _read_new(written: bytes) -> tuple[_Tag, dict[bytes, bytes]]:
    """Return the result of `_read_tag`, which reads one of all tags that tell the same.

    Nearly all links are different, but the rests of their tags are not.
    """
    match = _LINK_FIRST.match(written)
    if match is None:
        written = _brief(written)
        match = _LINK_FIRST.match(written)
        if match is None:
            return _read_once(written)
    first, name, link, title = match.groups()
    rest = first + written[match.end() :]
    plain = link.translate(_PLAIN)
    if _SPACE in plain:
        plain = link.translate(_LOWER, _BREAKS)
    values = {name: _unescape(plain)} if plain else {}
    if title:
        values[b"alt"] = _unescape(title.translate(_PLAIN))
    tag = _KNOWN.get(rest)
    if tag is None:
        tag, others = _read_once(_brief(first + b'=""' + written[match.end() :]))
        values.update(others)
        if not others:
            _keep(rest, tag)
    return tag, values


def _read_once(written: bytes) -> tuple[_Tag, dict[bytes, bytes]]:
    if tag := _KNOWN.get(written):
        return tag, {}
    tag, values = _read_tag(written)
    if not values:
        _keep(written, tag)
    return tag, values


def _brief(written: bytes) -> bytes:
    """Return a tag without idle attributes, and with one of all styles that say the same."""
    if _BRACKET in written or (written[0] == _FIRST_OF_INPUT and _BUTTON.match(written)):
        return written
    brief = _IDLE.sub(b"", written)
    style = _STYLE.search(brief)
    if style is None:
        return brief
    stated = _same_style(style[1])
    kept = b' style="%b"' % stated if stated else b""
    return brief[: style.start()] + kept + brief[style.end() :]


@lru_cache(_MAX_KNOWN)
def _same_style(text: bytes) -> bytes:
    """Return the first style attribute that says the same as this one, b"" if it says nothing."""
    plain = text.translate(_PLAIN)
    if plain.find(b"url(") >= 0 or plain.find(b"--") >= 0:  # links and variables
        return text
    block = read_block(_unescape(plain.replace(b"&nbsp;", _HARD_SPACE)))
    is_white = _WHITE.search(b'"' + plain) is not None
    said = frozenset(block.normal.items()), frozenset(block.important.items()), is_white
    if len(_STYLES) >= _MAX_KNOWN:
        _STYLES.clear()
    return _STYLES.setdefault(said, text if any(said) else b"")


def _keep(written: bytes, tag: _Tag) -> None:
    """Remember a tag, unless it is long."""
    if len(written) <= _MAX_LENGTH and (tag.start is None or tag.start.is_cached):
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        _KNOWN[written] = tag


def _facts_of_comments(html: bytes, pieces: list[bytes], tags: list[_Tag]) -> set[str]:
    """Return whether a comment stands in a word, and whether one is left open.

    pieces: texts and, at odd places, the tags as they are written.
    """
    facts = set()
    if html.find(b"-->", html.rfind(b"<!--")) < 0:
        facts.add("comment-open")
    places = [2 * i for i, tag in enumerate(tags) if tag is _COMMENT]
    if any(pieces[i][-1:].isalpha() and pieces[i + 2][:1].isalpha() for i in places):
        facts.add("comment-in-word")
    return facts


def _generate(pieces: list[bytes], tags: list[_Tag], sheet: "Sheet") -> None:
    """Add the texts that a sheet puts before and behind the content of elements.

    pieces: texts and, at odd places, the tags as they are written.
    """
    context, left = sheet.root, _MAX_GENERATED
    # Names of open elements, texts at their ends, and contexts behind them.
    outside: list[tuple[bytes, bytes, Context]] = []
    for number, tag in enumerate(tags):
        place = 2 * number + 1
        if tag.start is None:
            if outside and tag.name == outside[-1][0]:
                _, text, context = outside.pop()
                pieces[place - 1] += text
            continue
        _, behind, inside, texts = sheet.enter(tag.start, context)
        if not tag.is_start:
            context = behind
            continue
        around = {True: b"", False: b""}
        if texts and tag.name != b"head":
            attributes = dict(_ATTRIBUTE.findall(pieces[place]))
            for each in texts[:left]:
                around[each.is_before] = _generated(each, attributes)
            left = max(left - len(texts), 0)
        pieces[place + 1] = around[True] + pieces[place + 1]
        outside.append((tag.name, around[False], behind))
        context = inside


def _generated(text: "GeneratedText", attributes: dict[bytes, bytes]) -> bytes:
    """Return a text as markup; blanks alone are no text."""
    parts = [
        _unescape(attributes.get(name, b"")[:_MAX_CONTENT]) if name else each[:_MAX_CONTENT]
        for each, name in text.parts
    ]
    plain = b"".join(parts)[:_MAX_CONTENT].decode("utf-8", "ignore").encode()
    return plain.replace(b"&", b"&amp;").replace(b"<", b"&lt;") if plain.strip() else b""


def _looks(
    tags: list[_Tag], different: Iterable[_Tag], sheet: "Sheet | None"
) -> list[tuple[int, visibility.Look]]:
    """Return the numbers of tags where text begins or ends to be hidden, and the looks there.

    Elements are followed only if some of the different tags could hide text.
    """
    styles: dict[visibility.StartTag, visibility.Style] = {}
    followed = set(different)
    context = sheet.root if sheet and sheet.asks_for_relatives else None
    if context is None:
        # An image, as newsletters count their readers with, has no text that it could hide.
        starts = {tag.start for tag in different if tag.start and tag.is_start}
        found = ((start, sheet.style(start) if sheet else start.style) for start in starts)
        styles = {start: style for start, style in found if style}
        if not visibility.could_hide(styles.values()):
            return []
        # As every element is closed, elements of other names can be left out.
        names = {start.name for start in styles}
        followed = {tag for tag in different if tag.name in names}
    changes: list[tuple[int, visibility.Look]] = []
    # Names of open elements, and looks around and contexts behind them.
    outside: list[tuple[bytes, visibility.Look, Context | None]] = []
    look = visibility.ROOT
    for number, tag in enumerate(tags):
        if tag not in followed:
            continue
        now, start = look, tag.start
        if start is None:
            if outside and tag.name == outside[-1][0]:
                _, now, context = outside.pop()
        else:
            if sheet is None or context is None:
                style = styles.get(start)
                behind = inside = None
            else:
                style, behind, inside, _ = sheet.enter(start, context)
            if tag.is_start:
                if style is not None and len(outside) < _MAX_DEPTH:
                    now = visibility.look_of(look, style)
                outside.append((tag.name, look, behind))
                context = inside
            else:
                context = behind
        if now is not look and (look.why or now.why):
            changes.append((number, now))
        look = now
    return changes


def _divided(
    pieces: list[bytes], looks: list[tuple[int, visibility.Look]], facts: set[str]
) -> tuple[list[bytes], list[bytes]]:
    """Return the text that is shown and the texts that are not, and add facts about these.

    pieces: texts and, at odd places, the text shown in place of tags.
    """
    shown: list[bytes] = []
    hidden: list[bytes] = []
    look, done = visibility.ROOT, 0
    for number, now in [*looks, (len(pieces) // 2, visibility.ROOT)]:
        place = 2 * number + 1
        if not look.why:
            shown += pieces[done:place]
        else:
            text = b"".join(pieces[done - 1 : place])
            if not look.is_absent and any(pieces[done + 1 : place : 2]):
                shown.append(b"\n")
            if _WORD.search(_unescape(text).decode("utf-8", "replace")):
                hidden.append(text)
                if look.why != visibility.ELEMENT:
                    facts.update(("hidden-text", f"hidden-by-{look.why}"))
            elif text.isspace() and not look.is_absent:  # blanks that take room
                shown.append(text)
        if not (look.is_absent or now.is_absent):
            shown += pieces[place : place + 1]
        look, done = now, place + 1
    return shown, hidden
