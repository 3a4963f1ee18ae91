"""Which text of Office and OpenDocument files is shown to their readers.

The XML is not parsed: its tags are found by patterns, and each part is cut into what is shown and
what is hidden.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from math import inf
from typing import Any, NamedTuple

from nbspam.mail.css import BLACK, UNKNOWN, WHITE, Colour, is_near, read_colour

LEAST_SIZE = 4.5  # points of letters that can be read
_MAX_OPEN = 200  # elements
_MAX_LOOKS = 1000  # that are remembered
_WITHOUT_OWN_TEXT = re.compile(
    r".*\.rels|(?:\w+/)?styles\.xml|xl/(?:workbook|sharedStrings|worksheets/.*)\.xml"
    r"|ppt/(?:presentation|(?:slideLayouts|slideMasters|theme)/.*)\.xml"
)
_ATTRIBUTE = re.compile(rb'(?<![\w:-])([\w:-]++)="([^"<>]*)"')
_POINTS = re.compile(rb"(\d{1,6}(?:\.\d{1,6})?)(?:pt)?$")

# The prefixes that the patterns expect for namespaces.
_PREFIXES = {
    b"wordprocessingml": b"w", b"drawingml": b"a", b"presentationml": b"p", b"spreadsheetml": b"",
    b"officeDocument": b"r", b"package": b"", b"drawing": b"draw", b"xsl-fo-compatible": b"fo",
    **{name: name for name in b"office style text table presentation".split()},
}  # fmt: skip
_NAMESPACE = re.compile(
    rb'xmlns(?::([\w.-]{1,40}))?="(?:http://[\w.]{1,40}/(?:ooxml/)?|urn:[\w:]{1,40}:xmlns:)'
    rb'(%b)[/:](?:2006/)?(?:main|relationships|1\.0)"' % b"|".join(_PREFIXES)
)
_NAME = re.compile(rb"(?<=[\s</])([\w.-]{1,40}):(?=\w)")
_PLAIN_NAME = re.compile(rb"</?(?=\w++[\s/>])")

Change = dict[str, Any]  # of a look: its fields and their values


class TextLook(NamedTuple):
    """How text looks."""

    is_left_out: bool = False
    colour: Colour = UNKNOWN  # black or white, whichever can be read
    ground: Colour = WHITE
    size: float = 12.0  # points

    def cannot_be_read(self) -> bool:
        """Return whether nobody can read such text."""
        return self.is_left_out or self.size < LEAST_SIZE or is_near(self.colour, self.ground)


def with_usual_prefixes(xml: bytes) -> bytes:
    """Return XML with the prefixes of names that the patterns know; a file may have others."""
    # Of several namespaces of a prefix the first one counts.
    usual = {prefix: _PREFIXES[name] for prefix, name in reversed(_NAMESPACE.findall(xml))}
    if all(prefix == name for prefix, name in usual.items()):
        return xml
    if plain := usual.get(b""):
        xml = _PLAIN_NAME.sub(rb"\g<0>%b:" % plain, xml)
    return _NAME.sub(lambda name: (usual.get(name[1], name[1]) + b":").lstrip(b":"), xml)


def split_office(parts: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the XML of shown and of hidden text, of each part that has text.

    parts: of the archive that an Office or OpenDocument file is, by their names.
    """
    sheets = (parts.get(name, b"") for name in ("word/styles.xml", "styles.xml", "content.xml"))
    styles = _read_styles(b"".join(sheets).partition(b"<office:body")[0])
    yield from _split_workbook(parts)
    for name, xml in parts.items():
        if name.startswith("ppt/notesSlides/"):
            yield b"", xml
        elif name == "styles.xml" and b"<office:text" in parts.get("content.xml", b""):
            headers = xml.partition(b"<office:master-styles>")[2]
            yield _split_by_look(headers, styles, is_slide=False)
        elif not _WITHOUT_OWN_TEXT.fullmatch(name):
            body = xml[max(xml.find(b"<office:body"), 0) :]  # behind its styles
            is_slide = name.startswith("ppt/") or b"<office:presentation>" in body
            if name.startswith("ppt/slides/"):
                body = _slide_with_looks(name, parts)
            yield _split_by_look(body, styles, is_slide)


def _divided(pieces: Iterable[tuple[bool, bytes]]) -> tuple[bytes, bytes]:
    """Return the shown and the hidden pieces; pieces: whether each is hidden, and its text."""
    divided: tuple[list[bytes], list[bytes]] = ([], [])
    for is_hidden, piece in pieces:
        divided[is_hidden].append(piece)
    return b"".join(divided[False]), b"\n".join(divided[True])


def _colour(value: bytes) -> Colour | None:
    """Return an opaque colour, UNKNOWN for one that is not read, None for no colour."""
    if value in (b"", b"auto", b"none", b"transparent"):
        return None
    return read_colour(value.lower()) or read_colour(b"#" + value.lower()) or UNKNOWN


# --- Word, PowerPoint and OpenDocument -------------------------------------------------------

# Elements whose text may have a look of its own.  The mark of a paragraph, and how text looked
# before a change, are among them, so that what they say ends with them.
_ELEMENTS = (
    rb"w:(?:tbl|tc|p|r|rPr|[rp]PrChange|txbxContent|del|moveFrom)|p:(?:sld|sp|pic|cxnSp|grpSp|graphicFrame)|a:(?:r|fld)"
    rb"|text:(?:section|p|h|span|deletion)|table:table(?:-row|-cell)?|presentation:notes"
    rb"|draw:(?:page|frame|custom-shape)|style:(?:header|footer)(?:-left|-first)?"
)
_TAG = re.compile(
    rb"<(/?)(?:(%b)|(w:(?:vanish|color|sz|shd|highlight|background|[rp]Style|tblStyle)"
    rb"|a:rPr|p:cNvPr|style:[a-z-]+-properties))(?=[\s/>])([^<>]*)>" % _ELEMENTS
)
_LEFT_OUT = b"w:del w:moveFrom text:deletion presentation:notes".split()
_BOXES = b"w:txbxContent draw:frame draw:custom-shape".split()
_LOOKS_OF_ELEMENTS: dict[bytes, Change] = {
    **{name: {"is_left_out": True} for name in _LEFT_OUT},
    **{name: {"ground": UNKNOWN} for name in _BOXES},
}
_LEAVES_OUT = {
    *((b"show", b"0"), (b"hidden", b"1"), (b"text:display", b"none")),
    *((b"style:display", b"false"), (b"table:display", b"false")),
    *((b"table:visibility", b"collapse"), (b"table:visibility", b"filter")),
    (b"presentation:visibility", b"hidden"),
}
_USES_STYLE = frozenset(
    b"w:rStyle w:pStyle w:tblStyle text:style-name table:style-name draw:style-name".split()
)
_GROUNDS = frozenset((b"w:shd", b"w:highlight", b"w:background", b"fo:background-color"))
_SIZES = {b"w:sz": 0.5, b"sz": 0.01, b"fo:font-size": 1.0}  # points
_STYLE = re.compile(rb"<(?:w|style):style ")
_FILLED = re.compile(rb'w:fill="(?!auto")')
_STYLE_NAME = re.compile(rb'(?:w:styleId|style:name)="([^"<>]*)"')
_BASE = re.compile(rb'(?:<w:basedOn w:val|style:parent-style-name)="([^"<>]*)"')


def _split_by_look(
    xml: bytes, styles: Mapping[bytes, Change], is_slide: bool
) -> tuple[bytes, bytes]:
    """Return the XML of shown and of hidden text."""
    # A slide has grounds of its own, and a picture may lie behind the text of a page.
    ground = UNKNOWN if is_slide or b'behindDoc="1"' in xml else WHITE
    look = TextLook(ground=ground)._replace(**styles[b""])
    open_elements = [(b"", look, False)]  # name, look, whether it cannot be read

    @lru_cache(_MAX_LOOKS)
    def changed(look: TextLook, tag: bytes, attributes: bytes) -> tuple[TextLook, bool]:
        change = _LOOKS_OF_ELEMENTS.get(tag, {}) | _change(tag, attributes, styles)
        look = look._replace(**change)
        return look, look.cannot_be_read()

    pieces = []
    start, was_hidden = 0, False
    for match in _TAG.finditer(xml):
        is_end, element, tag, attributes = match.groups(b"")
        name, look, _ = open_elements[-1]
        if is_end:
            if element == name and len(open_elements) > 1:
                open_elements.pop()
        elif tag:
            open_elements[-1] = (name, *changed(look, tag, attributes))
        elif element == b"w:rPr" and name == b"w:r":  # it speaks of the text
            continue
        elif not attributes.endswith(b"/") and len(open_elements) < _MAX_OPEN:
            said = b"" if element.startswith(b"w:") else attributes
            open_elements.append((element, *changed(look, element, said)))
        if open_elements[-1][2] != was_hidden:
            pieces.append((was_hidden, xml[start : match.start()]))
            start, was_hidden = match.start(), not was_hidden
    return _divided([*pieces, (was_hidden, xml[start:])])


def _change(tag: bytes, attributes: bytes, styles: Mapping[bytes, Change]) -> Change:
    """Return how a tag changes the look of text."""
    said = _ATTRIBUTE.findall(attributes) if attributes else []
    if tag.startswith(b"w:"):
        key = {b"w:shd": b"w:fill", b"w:background": b"w:color"}.get(tag, b"w:val")
        said = [(tag, dict(said).get(key, b""))]
    change: Change = {}
    for name, value in said:
        if name in _USES_STYLE:
            change |= styles.get(value, {})
        elif name in (b"w:color", b"fo:color"):
            change["colour"] = _colour(value) or UNKNOWN
        elif name in _GROUNDS and (ground := _colour(value)):
            change["ground"] = ground
        elif name in _SIZES and (match := _POINTS.match(value)):
            change["size"] = float(match[1]) * _SIZES[name]
        elif name == b"w:vanish":
            change["is_left_out"] = value not in (b"0", b"false", b"off")
        elif (name, value) in _LEAVES_OUT:
            change["is_left_out"] = True
    return change


def _read_styles(xml: bytes) -> dict[bytes, Change]:
    """Return the change by each style; the nameless style is that of all text."""
    defaults, *found = _STYLE.split(xml)
    styles = {b"": _change_by_all(defaults)}
    for each in found:  # a base that stands behind its style is not seen
        head, _, body = each.partition(b">")
        if b'w:type="table"' in head:  # it has a look for each part of the table
            change: Change = {"ground": UNKNOWN} if _FILLED.search(body) else {}
        else:
            change = {} if head.endswith(b"/") else _change_by_all(body.partition(b":style>")[0])
        if base := _BASE.search(each):
            change = styles.get(base[1], {}) | change
        if b'w:default="1"' in head:
            styles[b""] |= change
        elif name := _STYLE_NAME.search(head):
            styles[name[1]] = change
    return styles


def _change_by_all(xml: bytes) -> Change:
    change: Change = {}
    for is_end, _, tag, attributes in _TAG.findall(xml):
        if tag and not is_end:
            change |= _change(tag, attributes, {})
    return change


# --- PowerPoint ------------------------------------------------------------------------------
#
# A slide lies on its layout, that on its master, and a theme gives names to colours.  What they
# say is written into the tags of the slide's shapes and runs, as attributes of OpenDocument, for
# the reader of looks above.  What is not sure is unknown, and hides nothing.

_UNKNOWN = b"?"  # a colour
# For `|(?!)` see `headers`.
_RUN = re.compile(rb"(<a:rPr\b[^<>]*+)(?<!/)>([^<]*+(?:<(?!/?a:rPr\b)[^<]*+|(?!))*+)")
_MORE_THAN_FILL = re.compile(rb"<a:(?:ln|uLn|uFill|effect\w+[^<>]*[^<>/]>|highlight|hlink)")

Box = tuple[float, ...]  # left, top, right and bottom, in units of a slide
Shape = tuple[bytes, bytes, Box, Box]  # its XML, its fill, its place, and where its text may lie
_ANYWHERE: Box = (-inf, -inf, inf, inf)


def _slide_with_looks(name: str, parts: Mapping[str, bytes]) -> bytes:
    """Return the XML of a slide, with the looks of its shapes and runs in their tags."""
    slide, layout, master, theme = _levels(name, parts)
    xml = slide + layout + master  # what stands first holds
    colours = dict(_THEME_COLOUR.findall(theme.partition(b"</a:clrScheme>")[0]))
    for roles in _elements(xml, b"(?:p:clrMap|a:overrideClrMapping)")[:1]:
        colours |= {role: colours.get(name, _UNKNOWN) for role, name in roles.items()}
    background = _background(xml, theme) if layout and master and theme else _UNKNOWN
    presentation = parts.get("ppt/presentation.xml", b"")
    size = re.search(rb'<p:sldSz cx="(\d{1,9})" cy="(\d{1,9})"', presentation)
    whole = (0, 0, *map(float, size.groups())) if size else _ANYWHERE

    below = [*_shapes(master, {}), *_shapes(layout, {})]
    filled = [box for piece, fill, box, _ in below if fill and b"<p:ph" not in piece]
    named = {found[1]: piece for piece, *_ in below if (found := _NAMED_PLACEHOLDER.search(piece))}
    written = [piece for piece, *_ in below if b"<a:t>" in piece and b"<p:ph" not in piece]
    for piece, fill, box, reach in _shapes(slide, named):
        ground = background
        if fill:
            ground = fill if reach == box != _ANYWHERE else _UNKNOWN
            filled.append(box)
        elif any(_overlap(reach, each) for each in filled):
            ground = _UNKNOWN
        look = b' fo:background-color="%b"' % colours.get(ground, ground)
        if not _overlap(reach, whole):
            look += b' show="0"'
        written.append(re.sub(rb"\A<p:(?:sp|graphicFrame)\b", rb"\g<0>" + look, piece))

    def with_colour(run: re.Match[bytes]) -> bytes:
        fill, colour = _FILL.match(run[2]), _UNKNOWN
        if fill and not _MORE_THAN_FILL.search(run[2]):
            colour = _colour_of_fill(fill)
        look = b'fo:color="%b"' % colours.get(colour, colour) if colour else b'show="0"'
        return b"%b %b>%b" % (run[1], look, run[2])

    return _RUN.sub(with_colour, b"".join(written))


def _levels(name: str, parts: Mapping[str, bytes]) -> list[bytes]:
    """Return a slide, its layout, its master and its theme; empty where one is missing."""
    levels = [parts[name]]
    for folder in (b"slideLayouts", b"slideMasters", b"theme"):
        relations = parts.get(re.sub(r"(\w+\.xml)$", r"_rels/\1.rels", name), b"")
        found = re.search(rb'Target="[^"]*?(%b/\w+\.xml)"' % folder, relations)
        name = f"ppt/{found[1].decode()}" if found else ""
        levels.append(parts.get(name, b""))
    return levels


_START_OF_SHAPE = re.compile(rb"(?=<p:(?:sp|pic|cxnSp|graphicFrame|grpSp)[\s/>])|(?<=</p:grpSp>)")
_NAMED_PLACEHOLDER = re.compile(rb'<p:ph\b[^<>]*?\b(idx="\d+|type="(?:ctrT|t)itle)')
_PLACE = re.compile(
    rb'<[ap]:xfrm([^<>]*)>\s*<a:off x="(-?\d{1,9})" y="(-?\d{1,9})"/>'
    rb'\s*<a:ext cx="(\d{1,9})" cy="(\d{1,9})"/>'
)
_LEAVES_BOX = re.compile(  # text that is turned, not wrapped, in columns, or far from the edge
    rb'\b(?:(?:rot|vert)="(?!0"|horz)|wrap="none|numCol='
    rb'|[lrtb]Ins="(?:-|\d{6})|mar[LR]="\d{7})|<a:(?:lnSpc|spcBef|spcAft)>'
)
_MARKUP = re.compile(rb"<[^<>]*+>")
_LETTER = re.compile(rb'\bsz="(\d{3,6})"')  # hundredths of a point, of which each is 127 units


def _shapes(xml: bytes, named: Mapping[bytes, bytes]) -> Iterator[Shape]:
    """Yield shapes from the lowest to the highest one; named: placeholders that they follow."""
    groups: list[Box] = []  # that are open
    for piece in _START_OF_SHAPE.split(xml):
        placeholder = _NAMED_PLACEHOLDER.search(piece)
        said = piece + named.get(placeholder[1], b"") if placeholder else piece
        # Places in a group have a scale of their own, but they are in its box.
        box = groups[0] if groups else _box(said)
        fill = _colour_of_fill(_FILL_OF_SHAPE.search(said))
        if not fill and _SHADOW.search(said):  # it has the form of the letters
            fill = _UNKNOWN
        yield piece, fill, box, _reach(piece, said, box, is_grouped=bool(groups))
        if piece.startswith(b"<p:grpSp"):
            groups.append(box)
        if piece.endswith(b"</p:grpSp>") and groups:
            groups.pop()


def _box(said: bytes) -> Box:
    place = _PLACE.search(said)
    if place is None or b"rot=" in place[1]:
        return _ANYWHERE
    left, top, width, height = map(float, place.group(2, 3, 4, 5))
    return left, top, left + width, top + height


def _reach(xml: bytes, said: bytes, box: Box, is_grouped: bool) -> Box:
    """Return where the text of a shape may lie, which is higher than its box if it is long."""
    if box == _ANYWHERE or _LEAVES_BOX.search(said):
        return _ANYWHERE
    left, top, right, bottom = box
    # As wide as high, though most letters are half as wide, and 18 points if no size is stated.
    letter = max(map(int, _LETTER.findall(xml)), default=1800) * 127
    length = len(_MARKUP.sub(b"", xml)) * letter
    n_lines = xml.count(b"<a:p>") + xml.count(b"<a:br") + length / max(right - left, 1)
    height = inf if is_grouped or b"<a:tbl>" in xml else 1.2 * letter * n_lines
    more = max(height - (bottom - top), 0)
    is_at_top = not re.search(rb'\banchor="[^t]', said)
    return left, top if is_at_top else top - more, right, bottom + more


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


_VALUE = rb'\s*<a:(?:srgb|scheme|sys|prst)Clr\b[^<>]*\b(?:val|lastClr)="(?P<colour>\w+)"\s*'
_TRANSPARENT = rb'<a:noFill/>|<a:solidFill>\s*<a:\w+ [^<>]*>\s*<a:alpha val="0"/>'
_ANY_FILL = rb"\s*(?:(?P<no>%b)|<a:solidFill>%b/>|<a:\w+Fill\b)" % (_TRANSPARENT, _VALUE)
_FILL = re.compile(_ANY_FILL)
_FILL_OF_SHAPE = re.compile(  # it follows place and form, and comes before the one of its style
    rb"(?:<p:(?:sp|grpSp)Pr[^<>]*>|</a:(?:xfrm|custGeom|prstGeom)>|<a:prstGeom[^<>]*/>)%b"
    rb'|<p:(?:pic|graphicFrame)\b|<a:fillRef idx="[^0]' % _ANY_FILL
)
_SHADOW = re.compile(rb'<a:effectRef idx="[^0]|<a:effect\w+>')
_THEME_COLOUR = re.compile(rb"<a:(\w+)>%b/>" % _VALUE)
_PLAIN_GROUND = re.compile(rb'<a:bgFillStyleLst>\s*<a:solidFill>\s*<a:schemeClr val="phClr"\s*/>')


def _background(xml: bytes, theme: bytes) -> bytes:
    background = xml.partition(b"<p:bg")[2].partition(b"</p:bg>")[0]
    if _PLAIN_GROUND.search(theme):  # its fill number 1001 is the colour that follows
        background = background.replace(b'<p:bgRef idx="1001">', b"<a:solidFill>")
    return _colour_of_fill(_FILL.search(background)) or _UNKNOWN


def _colour_of_fill(fill: re.Match[bytes] | None) -> bytes:
    """Return a colour or its name, empty if one sees through the fill."""
    if fill is None or fill["no"]:
        return b""
    return fill["colour"] or _UNKNOWN


# --- Excel -----------------------------------------------------------------------------------

_STRINGS = re.compile(rb"<si\b")
_SHARED = re.compile(rb'<c\b(?=[^<>]*?\bt="s")[^<>]*+>\s*+<v>(\d+)<')
_OTHER_GROUNDS = re.compile(rb"<(?:tableParts|conditionalFormatting)\b")
_COLUMN_OF_CELL = re.compile(rb'\br="([A-Z]{1,3})\d')
_NUMBER = re.compile(rb"\d{1,5}")
_MAX_COLUMNS = 100  # ranges of them
_FONT_SIZE = re.compile(rb'<sz val="(\d{1,4}(?:\.\d{1,9})?)"')
# A row to the next one, and cells of some formats or columns, each to the next cell or row.
_HIDDEN_CELLS = (
    rb'<(?:row\b[^<>]*?\b(?:hidden="(?:1|true)"|ht="0")[^<]*+(?:<(?!row\b)[^<]*+|(?!))*+'
    rb'|c\b(?=[^<>]*?\b(?:s="(?:%b)"|r="(?:%b)\d))[^<]*+(?:<(?!c\b|row\b)[^<]*+|(?!))*+)'
)


def _elements(xml: bytes, name: bytes) -> list[dict[bytes, bytes]]:
    """Return the attributes of each element of a name."""
    found = re.findall(rb"<%b\b([^<>]*)" % name, xml)
    return [dict(_ATTRIBUTE.findall(attributes)) for attributes in found]


def _split_workbook(parts: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the XML of shown and of hidden cells of each sheet, then that of shared strings."""
    files = {
        relation.get(b"Id"): relation.get(b"Target", b"").rpartition(b"/")[2]
        for relation in _elements(parts.get("xl/_rels/workbook.xml.rels", b""), b"Relationship")
    }
    hidden_sheets = {
        files.get(sheet.get(b"r:id"))
        for sheet in _elements(parts.get("xl/workbook.xml", b""), b"sheet")
        if sheet.get(b"state", b"visible") != b"visible"
    }
    hidden_styles = _hidden_cell_styles(parts.get("xl/styles.xml", b""))
    sheets = [name for name in parts if name.startswith("xl/worksheets/")]
    used: set[bytes] = set()
    for name in sheets:
        shown, hidden = b"", parts[name]
        if name.rpartition("/")[2].encode() not in hidden_sheets:
            shown, hidden = _split_sheet(hidden, hidden_styles)
        used.update(_SHARED.findall(shown))
        yield shown, hidden
    strings = enumerate(_STRINGS.split(parts.get("xl/sharedStrings.xml", b""))[1:])
    yield _divided((bool(sheets) and b"%d" % i not in used, b"<si" + each) for i, each in strings)


def _split_sheet(xml: bytes, hidden_styles: set[bytes]) -> tuple[bytes, bytes]:
    styles = () if _OTHER_GROUNDS.search(xml) else hidden_styles
    columns = []
    for column in _elements(xml.partition(b"<sheetData")[0], b"col")[:_MAX_COLUMNS]:
        is_hidden = column.get(b"hidden") in (b"1", b"true") or column.get(b"width") == b"0"
        first, last = column.get(b"min", b""), column.get(b"max", b"")
        if is_hidden and _NUMBER.fullmatch(first) and _NUMBER.fullmatch(last):
            columns.append(range(int(first), int(last) + 1))
    names = set(_COLUMN_OF_CELL.findall(xml)) if columns else ()
    numbers = {name: reduce(lambda n, letter: 26 * n + letter - 64, name, 0) for name in names}
    letters = [name for name, n in numbers.items() if any(n in each for each in columns)]
    choices = (b"|".join(each) or b"none" for each in (styles, letters))
    hidden = re.compile(_HIDDEN_CELLS % tuple(choices))
    return hidden.sub(b"", xml), b"\n".join(hidden.findall(xml))


def _hidden_cell_styles(xml: bytes) -> set[bytes]:
    """Return the numbers of the formats of cells whose text nobody can read."""

    def inside(section: bytes) -> bytes:
        return xml.partition(b"<%b" % section)[2].partition(b"</%b>" % section)[0]

    def colour(element: bytes, name: bytes, unless: Colour) -> Colour:
        for said in _elements(element, name)[:1]:
            is_white = said.get(b"theme") == b"0" and b"tint" not in said
            return WHITE if is_white else _colour(said.get(b"rgb", b"")[-6:]) or UNKNOWN
        return unless

    looks_of_fonts = {}
    for i, font in enumerate(re.split(rb"<font\b", inside(b"fonts"))[1:]):
        size = _FONT_SIZE.search(font)
        look = TextLook(colour=colour(font, b"color", BLACK), size=float(size[1]) if size else 11)
        looks_of_fonts[b"%d" % i] = look
    grounds = {
        b"%d" % i: colour(fill, b"(?:fgC|c)olor", WHITE)
        for i, fill in enumerate(re.split(rb"<fill\b", inside(b"fills"))[1:])
    }
    formats = _elements(xml, b"numFmt")
    blank = {each.get(b"numFmtId") for each in formats if each.get(b"formatCode") == b";;;"}
    hidden = set()
    for i, said in enumerate(_elements(inside(b"cellXfs"), b"xf")):
        look = looks_of_fonts.get(said.get(b"fontId", b"0"), TextLook())
        look = look._replace(ground=grounds.get(said.get(b"fillId", b"0"), WHITE))
        if look.cannot_be_read() or said.get(b"numFmtId") in blank:
            hidden.add(b"%d" % i)
    return hidden
