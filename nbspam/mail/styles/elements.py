"""Elements: which stretches of a document cannot be read, from the order of its tags.

Elements are opened and closed as the HTML Standard builds its tree ("tree construction"): a
cell closes the cell before it, a block closes a paragraph, and formatting such as <font> goes on
in the next blocks until it is closed or its cell ends.  Not done: text that tables do not allow
is not moved before them.

Secret: which tags close which elements.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple, Union

from nbspam.mail.styles.looks import ROOT, Look, look_of
from nbspam.mail.styles.sheets import NO_SHEET, Attributes, Sheet

# Elements, steps and tags that a tree remembers: up to 40 MB.
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


class Followed(NamedTuple):
    """The tags that can change what the text of a document looks like, in order."""

    written: list[bytes]  # all bytes of each
    start: list[int]  # position of the <
    stop: list[int]  # position after the >
    # Returns the name of the tag at an index in lower case, whether it is an end tag, and its
    # attributes as written.
    read: Callable[[int], tuple[bytes, bool, bytes]]


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


class _Start:
    """A start tag.  One that can change no more than another is the same object."""

    __slots__ = "attributes", "name"

    def __init__(self, name: bytes, attributes: Attributes) -> None:
        self.name = name
        self.attributes = attributes  # those that count


class _Element:
    """An element in those that it stands in, or, without a name, the document."""

    __slots__ = "depth", "inner", "look", "name", "outer", "start", "steps"

    def __init__(self, start: _Start, outer: Union["_Element", None], look: Look) -> None:
        self.start = start
        self.name = start.name
        self.outer = outer
        self.look = look  # of text in it
        self.depth: int = 0 if outer is None else outer.depth + 1
        # What is known already: the elements in it, and what tags lead to.
        self.inner: dict[_Start, _Element] = {}
        self.steps: dict[_Start | bytes, _Step] = {}


# The element after a tag, and whether others had to be closed for it.
_Step = tuple[_Element, bool]


class _Tree:
    """All elements that were met under the rules of one sheet.

    Documents repeat the same tags in the same elements.  So elements are the same objects again,
    and what a tag leads to is looked up.
    """

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self._begin()

    def _begin(self) -> None:
        self._size = 0
        self._document = _Element(_Start(b"", ()), None, ROOT)
        self._starts: dict[tuple[bytes, Attributes], _Start] = {}
        # Tags by their bytes: start tags, and the names of end tags.
        self.tags: dict[bytes, _Start | bytes] = {}

    def document(self) -> _Element:
        """Return what the first tag of a document stands in."""
        if not self._has_room():
            self._begin()
        return self._document

    def _has_room(self) -> bool:
        self._size += 1
        return self._size < _MAX_KNOWN

    def tag(self, written: bytes, name: bytes, is_end: bool, attributes: bytes) -> _Start | bytes:
        """Return what counts of a tag, and remember it: of an end tag the name only."""
        found = name if is_end else self._start(name, self.sheet.attributes(name, attributes))
        if self._has_room():
            self.tags[written] = found
        return found

    def _start(self, name: bytes, attributes: Attributes) -> _Start:
        start = self._starts.get((name, attributes))
        if start is None:
            start = _Start(name, attributes)
            if self._has_room():
                self._starts[name, attributes] = start
        return start

    def step(self, element: _Element, tag: _Start | bytes) -> _Step:
        """Return where a tag leads, and remember it."""
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
        style = self.sheet.style(start.name, start.attributes, outer.look.marks)
        look = outer.look if style is None else look_of(outer.look, style)
        element = _Element(start, outer, look)
        if self._has_room():
            outer.inner[start] = element
        return element

    def _open(self, element: _Element, start: _Start) -> _Step:
        name, before = start.name, element
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
                element = self._enter(element, each.start)
        return element


def _is_in(element: _Element | None, name: bytes) -> bool:
    """Return whether an element, or one that it stands in, has a name."""
    while element is not None and element.name != name:
        element = element.outer
    return element is not None


class _Trees:
    """The trees of the sheets that are met most: of none, and of the last one."""

    def __init__(self) -> None:
        self._without = self._last = _Tree(NO_SHEET)

    def of(self, sheet: Sheet) -> _Tree:
        """Return the tree of a sheet."""
        if sheet is NO_SHEET:
            return self._without
        if self._last.sheet is not sheet:
            self._last = _Tree(sheet)
        return self._last


_TREES = _Trees()


def hidden_spans(tags: Followed, sheet: Sheet, end: int) -> list[Span]:
    """Return the stretches of a document that cannot be read, in order.

    end: of the document.
    """
    spans: list[Span] = []
    tree = _TREES.of(sheet)
    element, known = tree.document(), tree.tags
    look, begin = ROOT, 0
    for i, written in enumerate(tags.written):
        tag = known.get(written) or tree.tag(written, *tags.read(i))
        element, has_closed = element.steps.get(tag) or tree.step(element, tag)
        now = element.look
        if now is not look:
            if look.why:
                is_end = isinstance(tag, bytes)
                final = tags.stop[i] if is_end and look.is_absent else tags.start[i]
                spans.append(Span(begin, final, look.why, look.is_absent))
            begin = tags.start[i] if now.is_absent and not has_closed else tags.stop[i]
            look = now
    if look.why:
        spans.append(Span(begin, end, look.why, look.is_absent))
    return spans
