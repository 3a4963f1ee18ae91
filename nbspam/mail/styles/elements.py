"""Elements: which stretches of a document cannot be read, from the order of its tags.

Elements are opened and closed as the HTML Standard builds its tree ("tree construction"): a
cell closes the cell before it, a block closes a paragraph, and formatting such as <font> goes on
in the next blocks until it is closed or its cell ends.  Not done: text that tables do not allow
is not moved before them.

Secret: which tags close which elements.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from nbspam.mail.styles.looks import ROOT, Look, look_of
from nbspam.mail.styles.sheets import NO_SHEET, STYLED_NAMES, Sheet
from nbspam.mail.styles.suspicion import Doubt

_NEVER = 1 << 30  # more elements than can be open
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


class _Elements:
    """The elements that are open, from the outermost to the innermost.

    How their text looks is found out when it is asked for.
    """

    def __init__(self, sheet: Sheet) -> None:
        self.names: list[bytes] = [b""]
        self._attributes: list[bytes] = [b""]
        self._looks: list[Look] = [ROOT]
        self._sheet = sheet

    def look(self) -> Look:
        """Return how text in the innermost element looks."""
        looks, names = self._looks, self.names
        for i in range(len(looks), len(names)):
            look = looks[-1]
            name, attributes = names[i], self._attributes[i]
            if attributes or name in STYLED_NAMES or self._sheet is not NO_SHEET:
                style = self._sheet.style(name, attributes, look.marks)
                if style is not None:
                    look = look_of(look, style)
            looks.append(look)
        return looks[-1]

    def open(self, name: bytes, attributes: bytes) -> bool:
        """Open an element; return whether others had to be closed for it."""
        names = self.names
        if name == b"body" and name in names:
            return True
        has_closed = name in _CLOSING and names[-1] not in _CLOSING[name] and self._make_room(name)
        if len(names) > _MAX_DEPTH:
            self._cut(_MAX_DEPTH)
        names.append(name)
        self._attributes.append(attributes)
        return has_closed

    def pop(self) -> None:
        """Close the innermost element."""
        del self.names[-1], self._attributes[-1]
        del self._looks[len(self.names) :]

    def close(self, name: bytes) -> None:
        """Close the last element of a name, and what must be closed with it."""
        if name == b"body":
            return
        if self.names[-1] == name:
            self.pop()
        elif name in FORMATTING:
            self._close_formatting(name)
        else:
            if name in _ROWS or name == b"table":
                barriers = _TABLES
            else:
                barriers = CELLS if name in _SPECIAL else _SPECIAL
            self._close_last(frozenset((name,)), barriers)

    def _make_room(self, name: bytes) -> bool:
        """Close what the start of an element ends; return whether anything was closed."""
        has_closed = name in _ENDING_P and b"p" in self.names and self._close_last(_P, _P_BARRIERS)
        if name in _IMPLIED:
            closed, barriers = _IMPLIED[name]
            while not closed.isdisjoint(self.names) and self._close_last(closed, barriers):
                has_closed = True
        return has_closed

    def _cut(self, size: int) -> None:
        del self.names[size:], self._attributes[size:], self._looks[size:]

    def _close_last(self, closed: frozenset[bytes], barriers: frozenset[bytes]) -> bool:
        """Close the last element of some names unless a barrier stands after it.

        Formatting that was opened in it goes on, except that of cells.
        """
        for i in range(len(self.names) - 1, 0, -1):
            name = self.names[i]
            if name in closed:
                self._take_out(i, () if name in CELLS or name in _ROWS else FORMATTING)
                return True
            if name in barriers:
                return False
        return False

    def _close_formatting(self, name: bytes) -> None:
        """Close the last formatting of a name, and inline elements in it; blocks stay open."""
        for i in range(len(self.names) - 1, 0, -1):
            if self.names[i] == name:
                inner = self.names[i + 1 :]
                self._take_out(i, FORMATTING if _SPECIAL.isdisjoint(inner) else frozenset(inner))
                return
            if self.names[i] in CELLS:
                return

    def _take_out(self, i: int, kept: Collection[bytes]) -> None:
        """Close the i-th element and all in it, except those of some names."""
        inner = list(zip(self.names[i + 1 :], self._attributes[i + 1 :], strict=True))
        self._cut(i)
        for name, attributes in inner:
            if name in kept:
                self.names.append(name)
                self._attributes.append(attributes)


def hidden_spans(tags: Iterable[Tag], sheet: Sheet, end: int, doubt: Doubt) -> list[Span]:
    """Return the stretches of a document that cannot be read, in order.

    end: of the document.
    """
    spans: list[Span] = []
    elements = _Elements(sheet)
    names = elements.names
    values, has_links = doubt
    look, begin = ROOT, 0
    # With values, text stays readable until one of them occurs or this many elements are open.
    safe = 0 if values else _NEVER
    for name, is_end, attributes, start, stop in tags:
        has_closed = True
        if is_end:
            if names[-1] == name != b"body":
                elements.pop()
            elif name in names:
                elements.close(name)
                safe = _NEVER
        else:
            if values and name == b"a" and not (has_links or look.why or b"style" in attributes):
                continue  # the colour of links only shows what would be hidden
            has_closed = elements.open(name, attributes)
            if has_closed or (has_links and name == b"a"):
                safe = _NEVER
            elif attributes:
                attributes = attributes.lower()
                if any(value in attributes for value in values):
                    safe = _NEVER
        if len(names) >= safe:
            continue
        now = elements.look()
        safe = len(names) if values and not now.why else _NEVER
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
