"""Parsing HTML that would take a parser much time or memory, or mislead readers of its markup.

lexbor takes quadratic time and memory for some markup.  So documents lose what no mail has, and
long ones are cut into several.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice

from selectolax.lexbor import LexborHTMLParser

from nbspam.mail.visibility import RAW, TAG, VOID

_MAX_ATTRIBUTES = 200  # of a tag, which the parser compares in pairs
# Tags times different tags of formatting: every paragraph repeats the formatting left open.
_MAX_REPEATED = 400_000
_MAX_BYTES = 32 << 20  # of such tags that are repeated
_MAX_MARKUP = 8 << 20  # bytes of trees, behind which no formatting goes on
_AT_ONCE = 4000  # tags that are parsed together
_MAX_TRIES = 8  # places where a long document is cut
_CUT = b"<!--nbspam-cut-->"
_MAX_OPEN = 200  # elements that go on behind a cut

_NAME = re.compile(rb"[^!?/ >][^ >]*+")
_RAW_END = re.compile(r"</(?:script|plaintext)", re.IGNORECASE)

# Source text, which may be hostile.
_FORMATTING_NAME = rb"(?=(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>])"
_FORMATTING_START = re.compile(rb"<(/?)" + _FORMATTING_NAME, re.IGNORECASE)
# Where a comment, a script, a text or a quoted value may end.
_CLOSING = re.compile(
    rb"-->|</(?:script|style|title|textarea|xmp|iframe|noembed|noframes)|[\"']\s*+>", re.IGNORECASE
)
# The attributes of all <html> are attributes of one element, which the parser compares in pairs.
_PAGE_TAG = re.compile(rb"<((?i:html|body)[\s/])")
_MAX_PAGES = 4  # tags of that kind
# The parser also compares each attribute with the names of all others in a document.
_WORDS_OF_TAGS = re.compile(rb"[\s\"'/]([^\s\"'/<>=]++)")
_MANY_BYTES, _MAX_NAMES = 100_000, 10_000  # bytes that are parsed together, and their names
_FEW_ATTRIBUTES = 30  # of an element that goes on behind a cut
_ANY_ATTRIBUTE = (
    rb"(?:[\s/]*+[^\s/>][^\s/>=]*+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>\"'][^\s>]*+)?)?+)"
)
_FORMATTING = re.compile(
    rb"<" + _FORMATTING_NAME + rb"[^\s/>]*+%b*+" % _ANY_ATTRIBUTE, re.IGNORECASE
)
_HUGE_TAG = re.compile(  # for `|(?!)` see `headers`
    rb"((?:[^<]++|<(?![a-zA-Z])|<[a-zA-Z][^\s/>]*+%b{0,%d}+[\s/]*+(?:>|\Z)|(?!))*+)"
    rb"(?:<[^\s/>]*+%b*+[\s/]*+>?+|\Z)" % (_ANY_ATTRIBUTE, _MAX_ATTRIBUTES, _ANY_ATTRIBUTE)
)


def parse_in_parts(html: bytes, most: int) -> tuple[list[LexborHTMLParser], bytes]:
    """Return the trees of a document, and the text behind `most` tags, which is not followed.

    Each tree begins with the elements that are open where the one before it ends.
    """
    if len(_PAGE_TAG.findall(html)) > _MAX_PAGES:
        html = _PAGE_TAG.sub(rb"<x-\1", html)
    html = _HUGE_TAG.sub(rb"\1", html)
    has_names = len(html) > _MANY_BYTES and len(set(_WORDS_OF_TAGS.findall(html))) > _MAX_NAMES
    tags = html.count(b"<")
    if tags <= min(_AT_ONCE, most) and not has_names:
        return [LexborHTMLParser(_without_repeats(html, tags))], b""
    trees: list[LexborHTMLParser] = []
    places = [match.start() for match in islice(re.finditer(b"<", html), most + 1)]
    around, begin, start, left = b"", 0, 0, _MAX_MARKUP
    while begin < len(html):
        stop = min(start + _AT_ONCE, most)
        if has_names:
            stop = min(stop, max(start + 1, bisect_left(places, begin + _MANY_BYTES)))
        for _ in range(_MAX_TRIES):
            end = places[stop] if stop < len(places) else len(html)
            part = around + html[begin:end]
            part = _without_repeats(part, part.count(b"<") if left > 0 else _MAX_BYTES)
            tree = LexborHTMLParser(part + _CUT)
            written = (tree.html or "").encode("utf-8", "replace")
            left -= len(written)
            open_tags = _open_at_cut(written)
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


def _without_repeats(html: bytes, tags: int) -> bytes:
    """Return a document of so many tags in which no formatting goes on in all that follows."""
    # A half of the tags, at most, is repeated in the other half.
    if tags * tags > 4 * _MAX_REPEATED or tags * len(html) > _MAX_BYTES:
        repeated = set(_FORMATTING.findall(html))
        if tags * len(repeated) > _MAX_REPEATED or tags * sum(map(len, repeated)) > _MAX_BYTES:
            return _FORMATTING_START.sub(rb"<\1x-", html)  # to the parser, names of no meaning
    return html


def _open_at_cut(written: bytes) -> list[bytes] | None:
    """Return the tags of the elements that are open at the cut, None if it is in no element."""
    open_tags: list[bytes] = []
    for tag in TAG.findall(written):
        if tag == _CUT[1:-1]:
            return open_tags
        name = _NAME.match(tag)
        if name and name[0] not in VOID and name[0] not in RAW:
            open_tags.append(tag)
        elif open_tags and tag[:1] == b"/":
            open_tags.pop()
    return None


def remove_ends_in_text(trees: Iterable[LexborHTMLParser]) -> bool:
    """Remove end tags that are text, so that TAG finds none; return whether there are any.

    There are some behind `<script><!--<script>`, and in scripts of drawings.
    """
    nodes = (node for tree in trees for node in tree.css("script, plaintext"))
    children = [child for node in nodes for child in node.iter(include_text=True)]
    texts = [child for child in children if child.is_text_node and _RAW_END.search(child.text())]
    for text in texts:
        text.replace_with(_RAW_END.sub(" ", text.text()))
    return bool(texts)
