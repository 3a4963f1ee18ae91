"""Whether a reader sees the text of an element, and why not.

A style is what one element changes: by its name, its attributes, and the rules of style sheets
that select it.  A look is what its text gets from all elements around it.  Both are compared by
identity, so that caches find quickly what follows from two of them.
`docs/explanation/visibility.md` says what counts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from nbspam.mail import css
from nbspam.mail.lengths import IN_SIGHT, LEFT, MEDIUM, READABLE, RIGHT

_MAX_KNOWN = 8192  # styles and looks that are cached
_MAX_SETS = 256  # of colours that are compared and cached
# Start tags that are cached: their number, and bytes and keys of the longest.
_MAX_TAGS, _MAX_TAG, _MAX_KEYS = 8192, 1000, 20
_LARGEST = 10_000.0  # pixels of text
# Text of less opacity cannot be read, whatever the ground is.
_MIN_OPACITY = 0.1

# Elements that have no content.
VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source"
    b" track wbr".split()
)
# Elements whose content the parser takes as text and gives back as it is, and `title`.
SHOWN_RAW, HIDDEN_RAW = (b"xmp", b"plaintext"), (b"title", b"iframe", b"noembed", b"noframes")
RAW = (b"script", b"style", *SHOWN_RAW, *HIDDEN_RAW)
# A tag as the parser writes it, with the content of an element that has only text.
TAG = re.compile(
    b"<(!--.*?--|"
    + b"|".join(rb"%b(?: [^>]*+)?>.*?</%b" % (name, name) for name in RAW)
    + b"|[^>]*+)>",
    re.DOTALL,
)

# What a mail program hides without any style.  Of a list of options at most one is seen.
_ABSENT: css.Declared = {"display": b"absent"}
_OF_FIELDS: css.Declared = {"color": css.BLACK, "size": (13.0, False)}
_OWN: dict[bytes, css.Declared] = {
    **dict.fromkeys(
        b"annotation annotation-xml datalist option optgroup rp title".split(), _ABSENT
    ),
    b"template": {**_ABSENT, "closes": 9.0},  # whatever a style says
    b"mphantom": {"shown": False},
    b"mark": {"color": css.BLACK, "ground": css.Colour(255, 255, 0)},
    b"button": {**_OF_FIELDS, "ground": css.Colour(239, 239, 239)},
    b"textarea": {**_OF_FIELDS, "ground": css.WHITE},
    b"small": {"size": (1 / 1.2, True)},
    b"big": {"size": (1.2, True)},
    b"dialog": {},  # hidden unless it is open, as is all of <details> but its summary
    b"details": {},
    b"summary": {"closes": -1.0},
    # A drawing shows only its texts, and no definitions for later use.
    b"svg": {"closes": 1.0, "color": css.BLACK},
    b"text": {"closes": -1.0},
    b"foreignobject": {"closes": -1.0},
    **{
        name: {"closes": 0.5}
        for name in b"clippath defs desc filter marker mask metadata pattern symbol".split()
    },
}
_DRAWN = frozenset(b"svg g text tspan textpath".split())  # their colour is called fill
# Boxes of elements; elements of other names are inline text, without width and height.
_BOXES = dict.fromkeys(
    b"address article aside blockquote button canvas caption center dd details dialog dir div"
    b" dl dt embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr"
    b" iframe img input legend li listing main marquee menu meter nav ol optgroup option p"
    b" plaintext pre progress search section select summary svg textarea ul video xmp".split(),
    b"block",
)
_BOXES |= dict.fromkeys(b"tbody td tfoot th thead tr".split(), b"cell")
# What overflows them is seen.
_BOXES |= {b"table": b"table", b"html": b"page", b"body": b"page"}
_BOX_OF_DISPLAY: dict[object, bytes] = {
    **dict.fromkeys(
        b"block flex flow-root grid inline-block inline-flex inline-grid".split(), b"block"
    ),
    **dict.fromkeys(b"table-cell table-row table-row-group".split(), b"cell"),
    **dict.fromkeys((b"table", b"inline-table"), b"table"),
}
# Attributes that decide about the style of an element; of `href` only whether it is there.
_STYLING = frozenset(
    b"style hidden popover open href color bgcolor background text link fill opacity display"
    b" visibility font-size".split()
)
# Values of display that show nothing, not even inside.
_WITHOUT_BOX = (b"absent", b"none", b"table-column", b"table-column-group")
_ROOM = frozenset((False, IN_SIGHT, RIGHT))  # for text: a least height, or padding
# The attribute that carries the marks of an element, which no sender can write, as a slash ends
# names; and all attributes that decide about styles.
MARK = b"nbspam/mark"
DECIDING = frozenset((b"class", b"id", MARK, *_STYLING))
# Values that take text out of sight, and the boxes in which they do, see `_is_away`.
_AWAY: dict[tuple[str, object], str] = {
    **dict.fromkeys((("mask", True), ("clip-path", True), ("letter-spacing", True)), "any"),
    **dict.fromkeys((("transform", True), ("translate", True), ("scale", True)), "not inline"),
    ("text-indent", LEFT): "not inline",
    ("text-indent", RIGHT): "clipped",
    ("skips", True): "block or page",
    **dict.fromkeys((("margin-left", LEFT), ("margin-left", RIGHT)), "not cell"),
    ("padding-left", RIGHT): "not inline",
    ("margin-top", LEFT): "neither cell nor inline",
    ("clip", True): "placed",
    ("top", RIGHT): "fixed",
    **{(side, LEFT): "moved" for side in ("left", "right", "top", "bottom")},
    **dict.fromkeys((("left", RIGHT), ("right", RIGHT), ("bottom", RIGHT)), "moved"),
    **dict.fromkeys((("height", True), ("max-height", True)), "low"),
    **dict.fromkeys((("width", True), ("max-width", True)), "narrow"),
}


class Changes(NamedTuple):
    """The changes that an element makes in the look of its text; the defaults change nothing."""

    is_own: bool = False  # hidden without any style, as templates are
    is_absent: bool = False
    is_away: bool = False
    shown: bool | None = None
    color: css.Colour | None = None
    letters: css.Colour | None = None  # of what is painted instead of the text's colour
    ground: css.Colour | None = None  # behind its text
    painted: css.Colour | None = None  # its box
    link: css.Colour | None = None  # of the links in it
    is_link: bool = False
    size: tuple[float, bool] = (1.0, True)
    zoom: float = 1.0
    opacity: float = 1.0
    closes: float = 0.0  # 1 hides what is in it, -1 opens what is closed, see `Look.closed`


_UNCHANGED = Changes()


class Style:
    """Changes that some element makes, and what follows from them; equal ones are one object."""

    __slots__ = "changes", "ground", "hides", "is_usual", "text_colours"

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        color, ground, link = changes.color, changes.ground, changes.link
        letters = None if changes.letters == css.CURRENT else changes.letters
        size, is_relative = changes.size
        is_small = size * changes.zoom < (1 if is_relative else READABLE)
        is_faint = changes.opacity < 1 or any(
            colour is not None and colour.alpha < 1 for colour in (color, letters, ground, link)
        )
        is_gone = (
            ground == css.CURRENT or changes.is_absent or changes.is_away or changes.shown is False
        )
        # Whether it may hide text, whatever is around it.
        self.hides = is_gone or is_small or is_faint or changes.closes > 0
        self.ground = ground or css.WHITE
        usual = css.LINK if changes.is_link else css.BLACK
        self.text_colours = {color or css.BLACK, letters or css.BLACK, link or css.BLACK, usual}
        # Whether its texts can be read on the ground of any usual style.
        self.is_usual = (
            not self.hides
            and all(map(css.is_dark, self.text_colours))
            and css.is_light(self.ground)
        )


_interned = lru_cache(_MAX_KNOWN)(Style)


def style_of(
    name: bytes, attributes: Mapping[bytes, bytes], blocks: Sequence[css.Block] = ()
) -> Style | None:
    """Return the style of an element, None if it changes nothing.

    attributes: in lower case.  blocks: of the rules that apply to it, the weakest first.
    """
    if not attributes and not blocks and name not in _OWN:  # of most tags
        return None
    # Its attribute hidden means nothing; `g` and `text` may be elements of HTML.
    normal = {} if name == b"svg" else css.read_hints(name, attributes)
    if name in _OWN:
        normal = {**_OWN[name], **normal}
    if name in _DRAWN:  # its attributes are properties
        stated = [b"%b:%b" % each for each in attributes.items() if each[0] != b"style"]
        normal.update(css.read_block(b";".join(stated)).normal)
    if b"style" in attributes:
        blocks = (*blocks, css.read_block(attributes[b"style"]))
    important: css.Declared = {}
    for block in blocks:
        normal.update(block.normal)
        important.update(block.important)
    declared = {**normal, **important} if important else normal
    if name == b"details" and b"open" not in attributes:
        declared["closes"] = 1.0
    if name in _DRAWN:
        declared["color"] = declared.get("fill") or (css.BLACK if name == b"svg" else None)
        declared["text-fill"] = css.CURRENT if name == b"svg" else None
    if name == b"dialog" and b"open" not in attributes:
        declared.setdefault("display", b"none")
    if name == b"a" and b"href" in attributes:
        declared["is-link"] = True
    if not declared:
        return None
    return _style(frozenset(declared.items()), _BOXES.get(name, b"inline"))


@lru_cache(_MAX_KNOWN)
def _style(items: frozenset[tuple[str, Any]], box: bytes) -> Style | None:
    declared = dict(items)
    value = declared.get
    color, letters = value("color"), value("text-fill")
    ground = painted = css.UNKNOWN if value("image") else value("ground")
    if value("fills") and ground:  # it is seen in the letters, and not behind them
        painted = letters or color
        if ground == css.UNKNOWN or (painted and painted.alpha < 1):
            color, letters = ground, letters and ground
        ground = None
    if box != b"page":
        box = _BOX_OF_DISPLAY.get(value("display"), box)
    has_no_box = value("display") == b"contents"
    if has_no_box or (box == b"block" and (value("height") or value("width"))):
        ground = None  # text that overflows its box lies on the ground around it
    elif ground == css.CURRENT:
        ground = color or ground
    opacity = 1.0
    for key in () if has_no_box else ("opacity", "filter"):
        if value(key) is not None:
            opacity *= declared[key]
    changes = Changes(
        is_own=value("display") == b"absent",
        is_absent=value("display") in _WITHOUT_BOX,
        is_away=_is_away(declared, box),
        shown=value("shown"),
        color=color,
        letters=letters,
        ground=ground if ground is not None and ground.alpha else None,
        painted=painted,
        link=value("link"),
        is_link=value("is-link") is True and color is None,
        size=value("size") or (1.0, True),
        zoom=value("zoom") or 1.0,
        opacity=opacity,
        closes=value("closes") or 0.0,
    )
    return None if changes == _UNCHANGED else _interned(changes)


def _is_away(declared: css.Declared, box: bytes) -> bool:
    """Return whether an element's box is out of sight, clipped or shrunk to nothing.

    The box of inline text has neither a height nor an indent, and cells grow with their text.
    box: one of _BOXES, or inline.
    """
    found = _AWAY.keys() & declared.items()
    value = declared.get
    display, position = value("display"), value("position")
    if not found or display == b"contents":
        return False
    is_placed = position in (b"absolute", b"fixed")
    floats = value("float") in (b"left", b"right")
    is_inline = (display or box) == b"inline" and not (is_placed or floats)
    is_block = not is_inline and box in (b"block", b"inline")
    clips = is_block and bool(value("overflow-x") or value("overflow-y"))
    holds = {
        "any": True,
        "not inline": not is_inline,
        "block or page": is_block or box == b"page",
        "not cell": box != b"cell",
        "neither cell nor inline": box != b"cell" and not is_inline,
        "placed": is_placed,
        "fixed": position == b"fixed",
        "moved": is_placed or position == b"relative",
        "clipped": clips,
        # Text that overflows its box to the right or below is seen in the padding there.
        "low": clips and _ROOM.isdisjoint((value("min-height"), value("padding-bottom"))),
        "narrow": clips and _ROOM.isdisjoint((value("min-width"), value("padding-right"))),
    }
    return any(holds[_AWAY[pair]] for pair in found)


class StartTag:
    """Name and attributes that decide about an element's style; equal ones are one object."""

    def __init__(self, name: bytes, attributes: dict[bytes, bytes]) -> None:
        self.name = name
        self.attributes = attributes  # in lower case
        keys = [b"*", name]
        if b"class" in attributes:
            keys += [b"." + each for each in attributes[b"class"].split(b" ")]
        if b"id" in attributes:
            keys.append(b"#" + attributes[b"id"].strip())
        if MARK in attributes:
            keys += attributes[MARK].split()
        self.keys = frozenset(keys)
        self.has_variables = attributes.get(b"style", b"").find(b"--") >= 0
        # Others are hostile: they would fill memory.
        size = len(name) + sum(map(len, attributes.values()))
        self.is_cached = size <= _MAX_TAG and len(self.keys) <= _MAX_KEYS

    @cached_property
    def style(self) -> Style | None:
        """The style under no rules."""
        return style_of(self.name, self.attributes)


_START_TAGS: dict[tuple[bytes, tuple[tuple[bytes, bytes], ...]], StartTag] = {}


def start_tag(name: bytes, deciding: dict[bytes, bytes]) -> StartTag:
    """Return the start tag of a name with the attributes that decide about its style."""
    key = name, tuple(deciding.items())
    tag = _START_TAGS.get(key)
    if tag is None:
        tag = StartTag(name, deciding)
        if tag.is_cached:
            if len(_START_TAGS) >= _MAX_TAGS:
                _START_TAGS.clear()
            _START_TAGS[key] = tag
    return tag


ELEMENT = "element"  # reason of text that no style hides


@dataclass(slots=True, eq=False)
class Look:
    """How text looks; `why` says why it cannot be read, and is empty if it can."""

    is_absent: bool = False  # it takes no room
    is_own: bool = False  # nor would it without any style
    is_away: bool = False
    closed: float = 0.0  # elements around it that show nothing but what opens them
    shown: bool = True
    color: css.Colour = css.BLACK
    letters: css.Colour = css.CURRENT
    ground: css.Colour = css.WHITE  # opaque, or UNKNOWN
    link: css.Colour = css.LINK
    size: float = MEDIUM
    opacity: float = 1.0
    why: str = field(init=False)

    def __post_init__(self) -> None:
        self.why = self._reason()

    def _reason(self) -> str:
        """Return why the text cannot be read."""
        if self.is_own or self.closed:
            return ELEMENT
        if self.is_absent or not self.shown:
            return "style"
        if self.is_away:
            return "place"
        if self.size < READABLE:
            return "size"
        seen = self.color if self.letters == css.CURRENT else self.letters
        if self.opacity * seen.alpha < _MIN_OPACITY:
            return "colour"
        if self.opacity < 1 or seen.alpha < 1:
            seen = css.laid_over(seen, self.ground, self.opacity)
        return "colour" if css.is_near(seen, self.ground) else ""


_same_look = lru_cache(_MAX_KNOWN)(Look)  # equal ones are one object
ROOT = _same_look()


@lru_cache(_MAX_KNOWN)
def look_of(parent: Look, style: Style) -> Look:
    """Return the look of text in an element of a style, which stands in text of a look."""
    changes, closed = style.changes, 0.0
    if changes.closes >= 1 or parent.closed:
        closed = max(parent.closed + changes.closes, 0.0)
    link = changes.link or parent.link
    color = link if changes.is_link else changes.color or parent.color
    ground = color if changes.ground == css.CURRENT else changes.ground
    if ground is not None and ground.alpha < 1:
        ground = css.laid_over(ground, parent.ground)
    size, is_relative = changes.size
    size *= parent.size if is_relative else 1
    return _same_look(
        parent.is_absent or changes.is_absent,
        parent.is_own or changes.is_own,
        parent.is_away or changes.is_away,
        closed,
        parent.shown if changes.shown is None else changes.shown,
        color,
        changes.letters or parent.letters,
        ground or parent.ground,
        link,
        min(size * changes.zoom, _LARGEST),
        parent.opacity * changes.opacity,
    )


# The text that a rule puts into elements: its most parts, and where they stand.  For `|(?!)`
# see `headers`.
_MAX_PARTS = 200
_CONTENT = re.compile(
    rb"(?:\A|[;\s])content\s*+:((?:\"[^\"]*\"|'[^']*'|[^;\"']|(?!))*+)", re.IGNORECASE
)
_CONTENT_PART = re.compile(rb"\"([^\"]*)\"|'([^']*)'|attr\(\s*([\w-]+)\s*\)", re.IGNORECASE)
GeneratedParts = tuple[tuple[bytes, bytes], ...]  # texts, and names of attributes that have texts


def generated_parts(declarations: bytes) -> GeneratedParts | None:
    """Return the parts of the text that a rule puts into elements, None if it cannot be read."""
    if declarations.find(b"content") < 0 or not (content := _CONTENT.findall(declarations)):
        return None
    style = style_of(b"", {}, [css.read_block(declarations.lower())])
    if style and look_of(ROOT, style).why:
        return None
    found = _CONTENT_PART.findall(content[-1])[:_MAX_PARTS]
    return tuple([(a or b, name.lower()) for a, b, name in found])


_MAX_PAIRS = 1024  # of colours that are compared; with more, all of them may hide text


def could_hide(styles: Iterable[Style]) -> bool:
    """Return whether elements of these styles could hide text, however they are nested."""
    stated = list(styles)
    if all(style.is_usual for style in stated):
        return False
    if any(style.hides for style in stated):
        return True
    texts = frozenset((css.BLACK,)).union(*[style.text_colours for style in stated])
    grounds = frozenset((css.WHITE, *[style.ground for style in stated]))
    return len(texts) * len(grounds) > _MAX_PAIRS or _are_near(texts, grounds)


@lru_cache(_MAX_SETS)
def _are_near(texts: frozenset[css.Colour], grounds: frozenset[css.Colour]) -> bool:
    """Return whether some colour of text is hard to read on some ground."""
    not_light = [ground for ground in grounds if not css.is_light(ground)]
    return any(
        css.is_near(text, ground)
        for text in texts
        for ground in (not_light if css.is_dark(text) else grounds)
    )
