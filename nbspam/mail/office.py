"""Which text of Office and OpenDocument files is shown to their readers.

The XML is not parsed: its tags are found by patterns, and each part is cut into what is shown and
what is hidden.  What a style says is said again by each tag that uses the style.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nbspam.mail.css import BLACK, UNKNOWN, WHITE, Colour, is_near, read_colour

LEAST_SIZE = 4.5  # points of letters that can be read
_MAX_BASES = 10  # styles that one style is based on, all together
_MAX_OPEN = 200  # elements
_MAX_LOOKS = 1000  # that are remembered
_WITHOUT_OWN_TEXT = re.compile(
    r".*\.rels|(?:\w+/)?styles\.xml|xl/(?:workbook|sharedStrings|worksheets/.*)\.xml"
)

Said = tuple[bytes, bytes]  # the name of a tag or an attribute, and its value
Styles = Mapping[bytes, Sequence[Said]]


class TextLook(NamedTuple):
    """How text looks that stands in an element."""

    name: bytes = b""  # of the element
    is_left_out: bool = False
    colour: Colour = UNKNOWN  # black or white, whichever can be read
    ground: Colour = WHITE
    size: float = 12.0  # points
    is_hidden: bool = False

    def cannot_be_read(self) -> bool:
        """Return whether nobody can read such text."""
        return self.is_left_out or self.size < LEAST_SIZE or is_near(self.colour, self.ground)


def split_office(parts: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the XML of shown and of hidden text, of each part that has text.

    parts: of the archive that an Office or OpenDocument file is, by their names.
    """
    styles = _word_styles(parts.get("word/styles.xml", b""))
    for name in ("styles.xml", "content.xml"):
        styles |= _open_document_styles(parts.get(name, b""))
    yield from _split_workbook(parts)
    for name, xml in parts.items():
        if name.startswith("ppt/notesSlides/"):
            yield b"", xml
        elif not _WITHOUT_OWN_TEXT.fullmatch(name):
            body = xml[max(xml.find(b"<office:body"), 0) :]  # behind its styles
            is_slide = name.startswith("ppt/") or b"<office:presentation>" in body
            yield _split_by_look(body, styles, is_slide)


# --- Word, PowerPoint and OpenDocument -------------------------------------------------------

# Elements whose text may have a look of its own.  The mark of a paragraph, and how text looked
# before a change, are among them, so that what they say ends with them.
_ELEMENTS = (
    rb"w:(?:tbl|tc|p|r|rPr|[rp]PrChange|txbxContent|del)|p:(?:sld|sp|graphicFrame)|a:(?:r|fld)"
    rb"|text:(?:section|p|h|span|deletion)|table:table(?:-row|-cell)?|presentation:notes"
    rb"|draw:(?:page|frame|custom-shape)"
)
_TAG = re.compile(
    rb"<(/?)(?:(%b)|(w:(?:vanish|color|sz|shd|highlight|background|[rp]Style|tblStyle)"
    rb"|a:rPr|p:cNvPr|style:[a-z-]+-properties))(?=[\s/>])([^<>]*)>" % _ELEMENTS
)
_ATTRIBUTE = re.compile(rb'(?<![\w:-])([\w:-]++)="([^"<>]*)"')
_LEFT_OUT = frozenset((b"w:del", b"text:deletion", b"presentation:notes"))
_ON_UNKNOWN_GROUND = frozenset((b"w:txbxContent", b"draw:frame", b"draw:custom-shape"))
_LEAVES_OUT = frozenset(
    {
        *((b"show", b"0"), (b"hidden", b"1"), (b"text:display", b"none")),
        *((b"table:display", b"false"), (b"presentation:visibility", b"hidden")),
        *((b"table:visibility", b"collapse"), (b"table:visibility", b"filter")),
    }
)
_USES_STYLE = frozenset(
    b"w:rStyle w:pStyle w:tblStyle w:basedOn text:style-name table:style-name draw:style-name"
    b" style:parent-style-name".split()
)
_GROUNDS = frozenset((b"w:shd", b"w:highlight", b"w:background", b"fo:background-color"))
_SIZES = {b"w:sz": 0.5, b"sz": 0.01, b"fo:font-size": 1.0}  # points
_POINTS = re.compile(rb"(\d{1,6}(?:\.\d{1,6})?)(?:pt)?$")
_BASE = re.compile(rb'<w:basedOn w:val="([^"<>]*)"')


def _split_by_look(xml: bytes, styles: Styles, is_slide: bool) -> tuple[bytes, bytes]:
    """Return the XML of shown and of hidden text."""
    # A slide has grounds of its own, and a picture may lie behind the text of a page.
    ground = UNKNOWN if is_slide or b'behindDoc="1"' in xml else WHITE
    looks = [_changed(TextLook(ground=ground), styles.get(b"", ()), styles)]

    @lru_cache(_MAX_LOOKS)
    def inside(look: TextLook, element: bytes, tag: bytes, attributes: bytes) -> TextLook:
        if element:
            is_left_out = look.is_left_out or element in _LEFT_OUT
            ground = UNKNOWN if element in _ON_UNKNOWN_GROUND else look.ground
            look = look._replace(name=element, is_left_out=is_left_out, ground=ground)
        look = _changed(look, _said_by(element or tag, attributes), styles)
        return look._replace(is_hidden=look.cannot_be_read())

    pieces: tuple[list[bytes], list[bytes]] = ([], [])
    start, was_hidden = 0, False
    for match in _TAG.finditer(xml):
        is_end, element, tag, attributes = match.groups(b"")
        look = looks[-1]
        if is_end:
            if element == look.name and len(looks) > 1:
                looks.pop()
        elif tag:
            looks[-1] = inside(look, b"", tag, attributes)
        elif element == b"w:rPr" and look.name == b"w:r":  # it speaks of the text
            continue
        elif not attributes.endswith(b"/") and len(looks) < _MAX_OPEN:
            said = b"" if element.startswith(b"w:") else attributes
            looks.append(inside(look, element, b"", said))
        if looks[-1].is_hidden != was_hidden:
            pieces[was_hidden].append(xml[start : match.start()])
            start, was_hidden = match.start(), not was_hidden
    pieces[was_hidden].append(xml[start:])
    return b"".join(pieces[False]), b"\n".join(pieces[True])


def _said_by(tag: bytes, attributes: bytes) -> list[Said]:
    said = _ATTRIBUTE.findall(attributes) if attributes else []
    if not tag.startswith(b"w:"):
        return said
    key = {b"w:shd": b"w:fill", b"w:background": b"w:color"}.get(tag, b"w:val")
    return [(tag, dict(said).get(key, b""))]


def _changed(look: TextLook, said: Iterable[Said], styles: Styles) -> TextLook:
    left, pending = _MAX_BASES, [*said][::-1]  # the next one is last
    while pending:
        name, value = pending.pop()
        if name in _USES_STYLE:
            if left and value in styles:
                left -= 1
                pending += reversed(styles[value])
        elif name in (b"w:color", b"fo:color"):
            look = look._replace(colour=_colour(value) or UNKNOWN)
        elif name in _GROUNDS:
            look = look._replace(ground=_colour(value) or look.ground)
        elif name in _SIZES:
            if match := _POINTS.match(value):
                look = look._replace(size=float(match[1]) * _SIZES[name])
        elif name == b"w:vanish":
            look = look._replace(is_left_out=value not in (b"0", b"false", b"off"))
        elif (name, value) in _LEAVES_OUT:
            look = look._replace(is_left_out=True)
    return look


def _colour(value: bytes) -> Colour | None:
    """Return an opaque colour, UNKNOWN for one that is not read, None for no colour."""
    if value in (b"", b"auto", b"none", b"transparent"):
        return None
    return read_colour(value.lower()) or read_colour(b"#" + value.lower()) or UNKNOWN


def _word_styles(xml: bytes) -> dict[bytes, list[Said]]:
    """Return the tags of each style of Word; the nameless style is that of all text."""
    defaults, *found = xml.split(b"<w:style ")
    styles = {b"": _said_in(defaults)}
    for each in found:
        head, _, body = each.partition(b">")
        attributes = dict(_ATTRIBUTE.findall(head))
        name, said = attributes.get(b"w:styleId", b""), _said_in(body)
        if base := _BASE.search(body):
            said.insert(0, (b"w:basedOn", base[1]))
        if attributes.get(b"w:type") == b"table":  # it has a look for each part of the table
            is_shaded = any(tag == b"w:shd" and _colour(value) for tag, value in said)
            said = [(b"w:shd", b"unknown")] if is_shaded else []
        elif attributes.get(b"w:type") == b"paragraph" and b"w:default" in attributes:
            styles[b""].append((b"w:pStyle", name))
        styles[name] = said
    return styles


def _said_in(xml: bytes) -> list[Said]:
    return [
        said
        for is_end, element, tag, attributes in _TAG.findall(xml)
        if tag and not is_end
        for said in _said_by(tag, attributes)
        if said[0] not in _USES_STYLE  # else the work would grow with the power of the depth
    ]


def _open_document_styles(xml: bytes) -> dict[bytes, list[Said]]:
    styles = {}
    for each in xml.partition(b"<office:body")[0].split(b"<style:style ")[1:]:
        head, _, body = each.partition(b">")
        attributes = dict(_ATTRIBUTE.findall(head))
        base = (b"style:parent-style-name", attributes.get(b"style:parent-style-name", b""))
        body = b"" if head.endswith(b"/") else body.partition(b"</style:style>")[0]
        styles[attributes.get(b"style:name", b"")] = [base, *_said_in(body)]
    return styles


# --- Excel -----------------------------------------------------------------------------------

_ROWS = re.compile(rb"(?=<(?:\w{1,9}:)?row\b)")
_CELLS = re.compile(rb"(?=<(?:\w{1,9}:)?c\b)")
_STRINGS = re.compile(rb"(?=<(?:\w{1,9}:)?si\b)")
_HIDDEN_ROW = re.compile(rb'<(?:\w{1,9}:)?row\b[^<>]*?\b(?:hidden="(?:1|true)"|ht="0")')
_COLUMN = re.compile(rb"<(?:\w{1,9}:)?col\b([^<>]*)>")
_SHEET = re.compile(rb"<(?:\w{1,9}:)?sheet\b([^<>]*)>")
_RELATION = re.compile(rb"<Relationship\b([^<>]*)>")
_SHARED = re.compile(rb'<(?:\w{1,9}:)?c\b(?=[^<>]*?\bt="s")[^<>]*+>\s*+<(?:\w{1,9}:)?v>(\d+)<')
_OTHER_GROUNDS = re.compile(rb"<(?:\w{1,9}:)?(?:tableParts|conditionalFormatting)\b")
_FONT_SIZE = re.compile(rb'<sz val="(\d{1,4}(?:\.\d{1,9})?)"')
_BLANK_NUMBERS = re.compile(rb'<numFmt numFmtId="(\d+)" formatCode=";;;?"')
_COLUMN_OF_CELL = re.compile(rb'\br="([A-Z]{1,3})\d')
_MAX_COLUMNS = 100  # ranges of them


def _split_workbook(parts: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the XML of shown and of hidden cells of each sheet, then that of shared strings."""
    hidden_sheets = set()
    hidden_ids = {
        value
        for each in map(_ATTRIBUTE.findall, _SHEET.findall(parts.get("xl/workbook.xml", b"")))
        if dict(each).get(b"state", b"visible") != b"visible"
        for name, value in each
        if name.endswith(b":id")
    }
    for found in _RELATION.findall(parts.get("xl/_rels/workbook.xml.rels", b"")):
        relation = dict(_ATTRIBUTE.findall(found))
        if relation.get(b"Id") in hidden_ids:
            hidden_sheets.add(relation.get(b"Target", b"").rpartition(b"/")[2].decode("latin-1"))
    hidden_styles = {
        ground: _hidden_cell_styles(parts.get("xl/styles.xml", b""), ground)
        for ground in (WHITE, UNKNOWN)
    }
    used: set[bytes] = set()
    for name, xml in parts.items():
        if not name.startswith("xl/worksheets/"):
            continue
        if name.rpartition("/")[2] in hidden_sheets:
            yield b"", xml
            continue
        ground = UNKNOWN if _OTHER_GROUNDS.search(xml) else WHITE
        shown, hidden = _split_sheet(xml, hidden_styles[ground])
        used.update(_SHARED.findall(shown))
        yield shown, hidden
    strings = _STRINGS.split(parts.get("xl/sharedStrings.xml", b""))[1:]
    has_sheets = any(name.startswith("xl/worksheets/") for name in parts)
    pieces: tuple[list[bytes], list[bytes]] = ([], [])
    for i, string in enumerate(strings):
        pieces[has_sheets and b"%d" % i not in used].append(string)
    yield b"".join(pieces[False]), b"".join(pieces[True])


def _split_sheet(xml: bytes, hidden_styles: set[bytes]) -> tuple[bytes, bytes]:
    columns = []
    for found in _COLUMN.findall(xml.partition(b"sheetData")[0])[:_MAX_COLUMNS]:
        column = dict(_ATTRIBUTE.findall(found))
        if column.get(b"hidden") in (b"1", b"true") or column.get(b"width") == b"0":
            columns.append(range(int(column.get(b"min", 0)), int(column.get(b"max", 0)) + 1))
    names = set(_COLUMN_OF_CELL.findall(xml)) if columns else ()
    letters = [name for name in names if any(_number_of_column(name) in each for each in columns)]
    if not (hidden_styles or letters or _HIDDEN_ROW.search(xml)):
        return xml, b""
    is_hidden = re.compile(
        rb'<(?:\w{1,9}:)?c\b(?=[^<>]*?\b(?:s="(?:%b)"|r="(?:%b)\d))'
        % (b"|".join(hidden_styles) or b"none", b"|".join(letters) or b"none")
    )
    pieces: tuple[list[bytes], list[bytes]] = ([], [])
    for row in _ROWS.split(xml):
        if _HIDDEN_ROW.match(row):
            pieces[True].append(row)
        elif is_hidden.search(row):
            for cell in _CELLS.split(row):
                pieces[is_hidden.match(cell) is not None].append(cell)
        else:
            pieces[False].append(row)
    return b"".join(pieces[False]), b"".join(pieces[True])


def _number_of_column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _hidden_cell_styles(xml: bytes, ground: Colour) -> set[bytes]:
    """Return the numbers of the formats of cells whose text nobody can read.

    ground: of cells that are not filled.
    """

    def each(section: bytes, name: bytes) -> dict[bytes, bytes]:
        _, _, found = xml.partition(b"<%b" % section)
        inside = found.partition(b"</%b>" % section)[0]
        places = enumerate(re.split(rb"(?=<%b[\s/>])" % name, inside)[1:])
        return {b"%d" % i: tags for i, tags in places}

    def colour(tags: bytes, name: bytes, unless: Colour) -> Colour:
        _, found, attributes = tags.partition(b"<%b " % name)
        said = dict(_ATTRIBUTE.findall(attributes.partition(b">")[0]))
        if b"rgb" in said:
            return _colour(said[b"rgb"][-6:]) or UNKNOWN
        if said.get(b"theme") == b"0" and b"tint" not in said:
            return WHITE
        return UNKNOWN if found else unless

    grounds = {
        i: colour(fill, b"fgColor", UNKNOWN)
        for i, fill in each(b"fills", b"fill").items()
        if b'"solid"' in fill or b"<gradient" in fill
    }
    fonts = each(b"fonts", b"font")
    blank = set(_BLANK_NUMBERS.findall(xml))
    hidden = set()
    for i, xf in each(b"cellXfs", b"xf").items():
        said = dict(_ATTRIBUTE.findall(xf.partition(b">")[0]))
        font = fonts.get(said.get(b"fontId", b"0"), b"")
        size = _FONT_SIZE.search(font)
        look = TextLook(
            is_left_out=said.get(b"numFmtId") in blank,
            colour=colour(font, b"color", BLACK),
            ground=grounds.get(said.get(b"fillId", b"0"), ground),
            size=float(size[1]) if size else 11.0,
        )
        if look.cannot_be_read():
            hidden.add(i)
    return hidden
