"""Elements: which stretches of a document cannot be read, from the order of its tags.

Elements are opened and closed as the HTML Standard builds its tree ("tree construction"): a
cell closes the cell before it, a block closes a paragraph, and formatting such as <font> goes on
in the next blocks until it is closed or its cell ends.  Not done: text that tables do not allow
is not moved before them.

Secret: which tags close which elements.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple, Union

from nbspam.mail.styles.looks import ROOT, Look, look_of
from nbspam.mail.styles.sheets import Attributes, Sheet

_MAX_TREES = 2  # kept for the next documents: most have no sheet, or the same one
# Elements, steps and attributes that a tree remembers: up to 40 MB.
_MAX_KNOWN = 1 << 17
# An element at this depth replaces the one before it, as in browsers, which allow 512.
_MAX_DEPTH = 200

# Elements without content, and those whose styles are not read.
VOID = frozenset(
    b"area base basefont bgsound br col embed frame head hr html img input keygen link meta param"
    b" source spacer track wbr".split()
)
FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
# In cells and their like all formatting ends.
CELLS = frozenset(b"applet caption marquee object table td template th".split())
_ROWS = frozenset(b"tbody tfoot thead tr td th caption".split())
# No end tag of an inline element reaches beyond these.
_SPECIAL = CELLS | frozenset(
    b"address article aside blockquote body button center dd details dir div dl dt fieldset"
    b" figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup iframe li main menu nav"
    b" noframes noscript ol p pre section select summary tbody tfoot thead tr ul".split()
)
_ENDING_P = frozenset(
    b"address article aside blockquote center dd details dir div dl dt fieldset figcaption"
    b" figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre section"
    b" summary ul".split()
)
# What a start tag closes, and what keeps it from doing so.
_TABLES = frozenset((b"table", b"template"))
_DATA, _LISTS = frozenset((b"td", b"th", b"caption")), frozenset((b"ul", b"ol")) | CELLS
_PARTS = frozenset((b"tbody", b"thead", b"tfoot"))
_TERMS = frozenset((b"dd", b"dt"))
_IMPLIED: dict[bytes, tuple[frozenset[bytes], frozenset[bytes]]] = {
    **dict.fromkeys((b"td", b"th"), (_DATA, _TABLES)),
    b"tr": (_DATA | {b"tr"}, _TABLES),
    **dict.fromkeys((b"tbody", b"thead", b"tfoot"), (_DATA | {b"tr"} | _PARTS, _TABLES)),
    b"li": (frozenset((b"li",)), _LISTS),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset((b"dl",)) | CELLS)),
    b"a": (frozenset((b"a",)), CELLS),
    **dict.fromkeys(
        (b"option", b"optgroup"), (frozenset((b"option",)), frozenset((b"select", b"datalist")))
    ),
}


# Name in lower case, whether it is an end tag, attributes as written, position of the <, and
# position after the >.
Tag = tuple[bytes, bool, bytes, int, int]


_P, _P_BARRIERS = frozenset((b"p",)), CELLS | {b"button"}
# Names whose start closes others, unless the innermost element is one of these.
_CLOSING: dict[bytes, frozenset[bytes]] = {
    **dict.fromkeys(_ENDING_P | _IMPLIED.keys(), frozenset()),
    **dict.fromkeys((b"td", b"th"), frozenset((b"tr", b"table"))),
    b"tr": frozenset((b"table", b"tbody")),
}
# Without style attributes and rules only these change the looks of text, or end formatting.
COLOURED = frozenset(b"a body font".split()) | CELLS | _ROWS
NAMES = COLOURED | VOID | FORMATTING | _SPECIAL  # all that are known here


class Span(NamedTuple):
    """A stretch of a document whose text cannot be read."""

    start: int
    stop: int
    why: str  # see `Look.why`
    is_absent: bool  # its tags do not separate words


class _Element:
    """An element in those that it stands in, or, without a name, the document."""

    __slots__ = "attributes", "depth", "inner", "look", "name", "outer", "steps"

    def __init__(
        self, name: bytes, attributes: Attributes, outer: Union["_Element", None], look: Look
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.outer = outer
        self.look = look  # of text in it
        self.depth: int = 0 if outer is None else outer.depth + 1
        # What is known already: the elements in it, and what tags lead to.
        self.inner: dict[_Start, _Element] = {}
        self.steps: dict[_Start | bytes, _Step] = {}


# The name and the attributes of a start tag; the element after a tag, and whether others had to
# be closed for it.
_Start = tuple[bytes, Attributes]
_Step = tuple[_Element, bool]


class _Tree:
    """All elements that were met under the rules of one sheet.

    Documents repeat the same tags in the same elements.  So elements are the same objects again,
    and what a tag leads to is looked up.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._begin()

    def _begin(self) -> None:
        self._size = 0
        self._document = _Element(b"", (), None, ROOT)
        self.starts: dict[tuple[bytes, bytes], _Start] = {}

    def document(self) -> _Element:
        """Return what the first tag of a document stands in."""
        if not self._has_room():
            self._begin()
        return self._document

    def _has_room(self) -> bool:
        self._size += 1
        return self._size < _MAX_KNOWN

    def start(self, name: bytes, written: bytes) -> _Start:
        """Return a start tag with those of its attributes that count, and remember it."""
        start = name, self._sheet.attributes(name, written)
        if self._has_room():
            self.starts[name, written] = start
        return start

    def step(self, element: _Element, tag: _Start | bytes) -> _Step:
        """Return where a tag leads, and remember it; tag: the name only of an end tag."""
        if isinstance(tag, bytes):
            step = self._close(element, tag), True
        else:
            step = self._open(element, tag)
        if self._has_room():
            element.steps[tag] = step
        return step

    def _enter(self, outer: _Element, start: _Start) -> _Element:
        """Return an element that begins in another one."""
        if start in outer.inner:
            return outer.inner[start]
        style = self._sheet.style(*start, outer.look.marks)
        look = outer.look if style is None else look_of(outer.look, style)
        element = _Element(*start, outer, look)
        if self._has_room():
            outer.inner[start] = element
        return element

    def _open(self, element: _Element, start: _Start) -> _Step:
        name, before = start[0], element
        if name == b"body" and _is_in(element, name):
            return element, True
        if name in _CLOSING and element.name not in _CLOSING[name]:
            element = self._with_room(element, name)
        has_closed = element is not before
        while element.depth >= _MAX_DEPTH and element.outer is not None:
            element = element.outer
        return self._enter(element, start), has_closed

    def _with_room(self, element: _Element, name: bytes) -> _Element:
        """Close what the start of an element ends."""
        if name in _ENDING_P:
            element = self._close_last(element, _P, _P_BARRIERS) or element
        if name in _IMPLIED:
            while found := self._close_last(element, *_IMPLIED[name]):
                element = found
        return element

    def _close(self, element: _Element, name: bytes) -> _Element:
        """Close the last element of a name, and what must be closed with it."""
        if name == b"body":
            return element
        if element.name == name and element.outer is not None:
            return element.outer
        if name in FORMATTING:
            return self._close_formatting(element, name)
        if name in _ROWS or name == b"table":
            barriers = _TABLES
        else:
            barriers = CELLS if name in _SPECIAL else _SPECIAL
        return self._close_last(element, frozenset((name,)), barriers) or element

    def _close_last(
        self, element: _Element, closed: frozenset[bytes], barriers: frozenset[bytes]
    ) -> _Element | None:
        """Close the last element of some names; return None if a barrier stands after it.

        Formatting that was opened in it goes on, except that of cells.
        """
        inner: list[_Element] = []
        each = element
        while each.outer is not None:
            if each.name in closed:
                is_cell = each.name in CELLS or each.name in _ROWS
                return self._without(each, inner, () if is_cell else FORMATTING)
            if each.name in barriers:
                return None
            inner.append(each)
            each = each.outer
        return None

    def _close_formatting(self, element: _Element, name: bytes) -> _Element:
        """Close the last formatting of a name, and inline elements in it; blocks stay open."""
        inner: list[_Element] = []
        each = element
        while each.outer is not None and each.name != name:
            if each.name in CELLS:
                return element
            inner.append(each)
            each = each.outer
        names = {one.name for one in inner}
        return self._without(each, inner, FORMATTING if _SPECIAL.isdisjoint(names) else names)

    def _without(
        self, closed: _Element, inner: list[_Element], kept: Collection[bytes]
    ) -> _Element:
        """Return the innermost element after one is closed, and all in it except some names.

        inner: the elements in it, the innermost first.
        """
        if closed.outer is None:  # nothing of the name was open
            return inner[0] if inner else closed
        element = closed.outer
        for each in reversed(inner):
            if each.name in kept:
                element = self._enter(element, (each.name, each.attributes))
        return element


def _is_in(element: _Element | None, name: bytes) -> bool:
    """Return whether an element, or one that it stands in, has a name."""
    while element is not None and element.name != name:
        element = element.outer
    return element is not None


@lru_cache(_MAX_TREES)
def _tree_of(sheet: Sheet) -> _Tree:
    return _Tree(sheet)


def hidden_spans(tags: Iterable[Tag], sheet: Sheet, end: int) -> list[Span]:
    """Return the stretches of a document that cannot be read, in order.

    end: of the document.
    """
    spans: list[Span] = []
    tree = _tree_of(sheet)
    starts, element = tree.starts, tree.document()
    look, begin = ROOT, 0
    for name, is_end, written, start, stop in tags:
        tag = name if is_end else starts.get((name, written)) or tree.start(name, written)
        element, has_closed = element.steps.get(tag) or tree.step(element, tag)
        now = element.look
        if now is look:
            continue
        if look.why:
            final = stop if is_end and look.is_absent else start
            spans.append(Span(begin, final, look.why, look.is_absent))
        begin = start if now.is_absent and not has_closed else stop
        look = now
    if look.why:
        spans.append(Span(begin, end, look.why, look.is_absent))
    return spans
