"""Parsing HTML in linear time: trees of documents that are made to take a parser's time.

lexbor reads a document as browsers do.  For some markup it takes quadratic time and memory, so
such documents lose what no mail has, and long ones are cut into several.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from nbspam.mail.visibility import RAW, VOID

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

# Bounds for hostile documents, where the parser's time is not linear: tags of all documents of a
# message, attributes of a tag, and tags times different tags of formatting, since every paragraph
# repeats the formatting that is left open.
MAX_TAGS, _MAX_ATTRIBUTES, _MAX_REPEATED = 200_000, 1000, 400_000
_AT_ONCE = 4000  # tags that are parsed together
_MAX_TRIES = 8  # places where a long document is cut
_CUT = b"<!--nbspam-cut-->"
_MAX_OPEN = 200  # elements that go on behind a cut

# A tag as the parser writes it, with the content of an element that has only text.
TAG = re.compile(
    b"<(!--.*?--|"
    + b"|".join(rb"%b(?: [^>]*+)?>.*?</%b" % (name, name) for name in RAW)
    + b"|[^>]*+)>",
    re.DOTALL,
)
_NAME = re.compile(rb"[^!?/ >][^ >]*+")

# Source text, which may be hostile.
_FORMATTING_NAME = rb"(?=(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>])"
_FORMATTING = re.compile(rb"<" + _FORMATTING_NAME + rb"[^>]*+", re.IGNORECASE)
_FORMATTING_START = re.compile(rb"<(/?)" + _FORMATTING_NAME, re.IGNORECASE)
# Where a comment, a script, a text or a quoted value may end.
_CLOSING = re.compile(
    rb"-->|</(?:script|style|title|textarea|xmp|iframe|noembed|noframes)|[\"']\s*+>", re.IGNORECASE
)
# The attributes of all <html> are attributes of one element, which the parser compares in pairs.
_PAGE_TAG = re.compile(rb"<((?i:html|body)[\s/])")
_LONG_PAGE, _MAX_PAGES = 16_000, 10  # bytes of a document, and its tags of that kind
# The parser also compares each attribute with the names of all others in a document.
_WORDS_OF_TAGS = re.compile(rb"[\s\"'/]([^\s\"'/<>=]++)")
_MANY_BYTES, _MAX_NAMES = 100_000, 10_000  # bytes of a document, and its names of attributes
_FEW_ATTRIBUTES = 30  # of an element that goes on behind a cut
TAG_START = re.compile(rb"<[a-zA-Z]")
_LONG = 2 * _MAX_ATTRIBUTES  # bytes that a tag of more attributes has at least
_MAX_BLANKS = 64  # before a quote
_ANY_ATTRIBUTE = (
    rb"(?:[\s/]*+[^\s/>][^\s/>=]*+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>\"'][^\s>]*+)?)?+)"
)
_HUGE_TAG = re.compile(
    rb"((?:[^<]++|<(?![a-zA-Z])|<[a-zA-Z][^\s/>]*+%b{0,%d}+[\s/]*+(?:>|\Z))*+)"
    rb"(?:<[^\s/>]*+%b*+[\s/]*+>?+|\Z)" % (_ANY_ATTRIBUTE, _MAX_ATTRIBUTES, _ANY_ATTRIBUTE)
)


def parse_html(html: bytes, tags: int, most: int) -> tuple[list["LexborHTMLParser"], bytes]:
    """Return the trees of a document, and the text behind so many tags that are not followed.

    The parser takes quadratic time and memory for some markup.  So a long document is cut into
    several; each begins with the elements that are open where the one before it ends.
    """
    # Imported late: a message without HTML need not wait for it.
    from selectolax.lexbor import LexborHTMLParser

    if len(html) > _LONG_PAGE and len(_PAGE_TAG.findall(html)) > _MAX_PAGES:
        html = _PAGE_TAG.sub(rb"<x-\1", html)
    if _may_have_huge_tag(html):
        html = _HUGE_TAG.sub(rb"\1", html)
        tags = html.count(b"<")
    has_names = len(html) > _MANY_BYTES and len(set(_WORDS_OF_TAGS.findall(html))) > _MAX_NAMES
    if tags <= min(_AT_ONCE, most) and not has_names:
        return [LexborHTMLParser(_without_repeats(html, tags))], b""
    trees: list[LexborHTMLParser] = []
    places = [match.start() for match in islice(re.finditer(b"<", html), most + 1)]
    around, begin, start = b"", 0, 0
    while begin < len(html):
        stop = min(start + _AT_ONCE, most)
        if has_names:
            stop = min(stop, max(start + 1, bisect_left(places, begin + _MANY_BYTES)))
        for _ in range(_MAX_TRIES):
            end = places[stop] if stop < len(places) else len(html)
            part = _without_repeats(html[begin:end], stop - start)
            tree = LexborHTMLParser(around + part + _CUT)
            open_tags = _open_at_cut(TAG.split(markup_of([tree])))
            closing = _CLOSING.search(html, end) if open_tags is None else None
            if closing is None:
                break
            # The cut is in a comment, a script or a quoted value: behind it.
            stop = bisect_left(places, closing.end())
        trees.append(tree)
        if stop >= most:
            return trees, html[end:]
        around = b"".join(
            b"<%b>" % (tag if tag.count(b'="') <= _FEW_ATTRIBUTES else tag.partition(b" ")[0])
            for tag in (open_tags or [])[:_MAX_OPEN]
        )
        begin, start = end, stop
    return trees, b""


def _may_have_huge_tag(html: bytes) -> bool:
    """Return whether a tag may have more than _MAX_ATTRIBUTES.

    Such a tag is long, and each > in it is quoted.  So in each stretch that is as long only the
    last > is looked at: in a value, the last quote before it follows an equals sign.  Each byte is
    searched for quotes once, so the time is linear.
    """
    place = seen = 0
    while place + _LONG < len(html):
        bracket = html.rfind(b">", place, place + _LONG)
        if bracket >= 0:
            for quote in (b'"', b"'"):
                # One that stands before all of this was looked at already.
                opened = html.rfind(quote, seen, bracket)
                if opened > 0 and html[opened - 1] in b"= \t\n\r\f\v":
                    before = html[max(opened - _MAX_BLANKS, 0) : opened].rstrip()
                    if before[-1:] in (b"", b"="):
                        return True
            place = seen = bracket + 1
        elif (start := TAG_START.search(html, place, place + _LONG)) is None:
            place += _LONG
        elif start.start() == place:
            return True
        else:
            place = start.start()
    return False


def _without_repeats(html: bytes, tags: int) -> bytes:
    """Return a document of so many tags in which no formatting goes on in all that follows."""
    # A half of the tags, at most, is repeated in the other half.
    if tags * tags > 4 * _MAX_REPEATED and (
        tags * len(set(_FORMATTING.findall(html))) > _MAX_REPEATED
    ):
        return _FORMATTING_START.sub(rb"<\1x-", html)  # to the parser, names of no meaning
    return html


def _open_at_cut(pieces: list[bytes]) -> list[bytes] | None:
    """Return the tags of the elements that are open at the cut, None if it is in no element."""
    open_tags: list[bytes] = []
    for written in pieces[1::2]:
        if written == _CUT[1:-1]:
            return open_tags
        name = _NAME.match(written)
        if name and name[0] not in VOID and name[0] not in RAW:
            open_tags.append(written)
        elif open_tags and written[:1] == b"/":
            open_tags.pop()
    return None


def markup_of(trees: Iterable["LexborHTMLParser"]) -> bytes:
    """Return trees as markup in UTF-8: every element is closed, and every value quoted."""
    return b"".join([(tree.html or "").encode("utf-8", "replace") for tree in trees])
