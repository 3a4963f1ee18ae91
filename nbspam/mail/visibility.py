"""Whether a reader sees the text of an element, and why not.

A style is what one element changes: by its name, its attributes, and the rules of style sheets
that select it.  A look is what its text gets from all elements around it.  Both are compared by
identity, so that what follows from two of them is found quickly again.
`docs/explanation/visibility.md` says what counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from nbspam.mail import css
from nbspam.mail.lengths import LEFT, MEDIUM, READABLE, RIGHT

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

# What a mail program hides without any style.  Of a list of options at most one is seen.
_ABSENT: css.Declared = {"display": b"absent"}
_OWN: dict[bytes, css.Declared] = {
    **dict.fromkeys(b"template datalist option optgroup rp title".split(), _ABSENT),
    b"small": {"size": (1 / 1.2, True)},
    b"big": {"size": (1.2, True)},
    b"dialog": {},  # hidden unless it is open, as is all of <details> but its summary
    b"details": {},
    b"summary": {"closes": -1.0},
    # A drawing shows only its texts, and no definitions for later use.
    b"svg": {"closes": 1.0, "color": css.BLACK},
    b"text": {"closes": -1.0},
    b"foreignobject": {"closes": -1.0},
    **{name: {"closes": 0.5} for name in b"defs symbol desc metadata".split()},
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
# Attributes that decide about the style of an element; of `href` only whether it is there.
_STYLING = frozenset(b"style hidden open href color bgcolor background text link fill".split())
# The attribute that carries the marks of an element, which no sender can write, as a slash ends
# names; and all attributes that decide about styles.
MARK = b"nbspam/mark"
DECIDING = frozenset((b"class", b"id", MARK, *_STYLING))
_PLACES = ("left", "right", "top", "bottom")
_MOVING = frozenset(
    (
        *("hides", "mask", "skips", "clip", "clip-path", "transform", "translate", "scale"),
        *("overflow-x", "overflow-y", "margin-left", "margin-top", "text-indent"),
        *("letter-spacing", *_PLACES),
    )
)


class Style:
    """The changes that an element makes to the look of its text; equal ones are one object."""

    __slots__ = (
        *("is_own", "is_absent", "is_away", "shown", "color", "ground", "link", "is_link"),
        *("size", "zoom", "opacity", "closes", "shrinks", "mixes", "hides", "text_colours"),
        *("grounds", "is_usual"),
    )

    def __init__(
        self,
        display: bytes,
        is_away: bool,
        shown: bool | None,
        color: css.Colour | None,
        ground: css.Colour | None,
        link: css.Colour | None,
        is_link: bool,
        size: tuple[float, bool],
        zoom: float,
        opacity: float,
        closes: float,
    ) -> None:
        self.is_own = display == b"absent"  # hidden without any style, as templates are
        self.is_absent = self.is_own or display == b"none"
        self.is_away = is_away
        self.shown = shown
        self.color, self.ground = color, ground
        self.link = link  # of the links in it
        self.is_link = is_link
        self.size, self.zoom, self.opacity = size, zoom, opacity
        self.closes = closes  # 1 hides what is in it, -1 opens what is closed, see `Look.closed`
        # Whether it may make text too small.
        self.shrinks = size[0] * zoom < (1 if size[1] else READABLE)
        # Whether the colour that is seen is one that no style states.
        self.mixes = (
            _MIN_OPACITY <= opacity < 1
            or (color is not None and _MIN_OPACITY <= color.alpha < 1)
            or (link is not None and _MIN_OPACITY <= link.alpha < 1)
            or (ground is not None and ground.alpha < 1)
        )
        self.hides = self.is_absent or is_away or shown is False or opacity < 1 or closes > 0
        colours = color or css.BLACK, link or css.BLACK, css.LINK if is_link else css.BLACK
        self.text_colours = frozenset(colours)
        self.grounds = frozenset((ground or css.WHITE,))
        # Whether its texts can be read on the ground of any usual style.
        self.is_usual = not (self.hides or self.shrinks or self.mixes or zoom != 1) and (
            all(map(css.is_dark, self.text_colours)) and (ground is None or css.is_light(ground))
        )


@lru_cache(_MAX_KNOWN)
def _interned(
    display: bytes,
    is_away: bool,
    shown: bool | None,
    color: css.Colour | None,
    ground: css.Colour | None,
    link: css.Colour | None,
    is_link: bool,
    size: tuple[float, bool] = (1.0, True),
    zoom: float = 1.0,
    opacity: float = 1.0,
    closes: float = 0.0,
) -> Style | None:
    """Return the style of these values, None if it changes nothing."""
    changes = color or ground or link or is_link or display or is_away or shown is not None
    if not (changes or closes) and size == (1.0, True) and zoom == opacity == 1:
        return None
    return Style(
        *(display, is_away, shown, color, ground, link, is_link, size, zoom, opacity, closes)
    )


def style_of(
    name: bytes, attributes: Mapping[bytes, bytes], blocks: Sequence[css.Block] = ()
) -> Style | None:
    """Return the style of an element, None if it changes nothing.

    attributes: in lower case.  blocks: of the rules that apply to it, the weakest first.
    """
    if not attributes and not blocks and name not in _OWN:  # of most tags
        return None
    normal = css.read_hints(name, attributes)
    if name in _OWN:
        normal = {**_OWN[name], **normal}
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
    if name == b"dialog" and b"open" not in attributes:
        declared["display"] = b"none"
    if name == b"a" and b"href" in attributes:
        declared["is-link"] = True
    if not declared:
        return None
    return _style(frozenset(declared.items()), _BOXES.get(name, b"inline"))


@lru_cache(_MAX_KNOWN)
def _style(items: frozenset[tuple[str, Any]], box: bytes) -> Style | None:
    declared = dict(items)
    value = declared.get
    color = value("text-fill") or value("color")
    if value("fills") and value("image"):  # letters have the colours of the image
        color = css.UNKNOWN
    ground = value("ground")
    if ground is not None and ground.alpha == 0:
        ground = None
    opacity = 1.0
    for key in ("opacity", "filter"):
        if value(key) is not None:
            opacity *= declared[key]
    return _interned(
        value("display") if value("display") in (b"absent", b"none") else b"",
        _is_away(declared, box),
        value("shown"),
        color,
        css.UNKNOWN if value("image") else ground,
        value("link"),
        value("is-link") is True and color is None,
        value("size") or (1.0, True),
        value("zoom") or 1.0,
        opacity,
        value("closes") or 0.0,
    )


def _is_away(declared: css.Declared, box: bytes) -> bool:
    """Return whether an element's box is out of sight, clipped or shrunk to nothing.

    The box of inline text has neither a height nor an indent, and cells grow with their text.
    box: one of _BOXES, or inline.
    """
    if _MOVING.isdisjoint(declared) or declared.get("display") == b"contents":
        return False
    position = declared.get("position")
    is_placed = position in (b"absolute", b"fixed")
    display = declared.get("display")
    is_inline = (display or box) == b"inline" and not (
        is_placed or declared.get("float") in (b"left", b"right")
    )
    if any(map(declared.get, ("hides", "mask", "clip-path"))):
        return True
    if is_placed and declared.get("clip"):
        return True
    if not is_inline and any(map(declared.get, ("transform", "translate", "scale"))):
        return True
    is_block = not is_inline and box in (b"block", b"inline")
    if (is_block or box == b"page") and declared.get("skips"):
        return True
    if is_block and (declared.get("overflow-x") or declared.get("overflow-y")):
        for side in ("height", "width"):
            is_tiny = declared.get(side) or declared.get(f"max-{side}")
            if is_tiny and declared.get(f"min-{side}") is not False:
                return True
        if declared.get("text-indent") == RIGHT:
            return True
    if box != b"cell" and declared.get("margin-left") == LEFT:
        return True
    if box != b"cell" and not is_inline and declared.get("margin-top") == LEFT:
        return True
    if not is_inline and declared.get("text-indent") == LEFT:
        return True
    if is_placed or position == b"relative":
        if any(declared.get(side) == LEFT for side in _PLACES):
            return True
        if RIGHT in (declared.get("left"), declared.get("right")):
            return True
    return declared.get("letter-spacing") is True


class StartTag:
    """Name and attributes that decide about an element's style; equal ones are one object."""

    __slots__ = "_style", "attributes", "has_variables", "is_cached", "keys", "name"

    def __init__(self, name: bytes, attributes: dict[bytes, bytes]) -> None:
        self.name = name
        self.attributes = attributes  # in lower case
        self._style: Style | Literal[False] | None = False  # not yet read
        keys = [b"*", name]
        if b"class" in attributes:
            keys += [b"." + each for each in attributes[b"class"].split()]
        if b"id" in attributes:
            keys.append(b"#" + attributes[b"id"].strip())
        if MARK in attributes:
            keys += attributes[MARK].split()
        self.keys = frozenset(keys)
        self.has_variables = attributes.get(b"style", b"").find(b"--") >= 0
        # Others are hostile: they would fill memory.
        size = len(name) + sum(map(len, attributes.values()))
        self.is_cached = size <= _MAX_TAG and len(self.keys) <= _MAX_KEYS

    def style(self) -> Style | None:
        """Return the style under no rules."""
        if self._style is False:
            self._style = style_of(self.name, self.attributes)
        return self._style


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


class Look:
    """How text looks; `why` says why it cannot be read, and is empty if it can."""

    def __init__(self) -> None:
        self.is_absent = False  # it takes no room
        self.is_own = False  # nor would it without any style
        self.is_away = False
        self.closed = 0.0  # elements around it that show nothing but what opens them
        self.shown = True
        self.color = css.BLACK
        self.ground = css.WHITE  # opaque, or UNKNOWN
        self.link = css.LINK
        self.size = MEDIUM
        self.opacity = 1.0
        self.why = ""

    def reason(self) -> str:
        """Return why the text cannot be read."""
        if self.is_own or self.closed:
            return ELEMENT
        if self.is_absent or not self.shown:
            return "style"
        if self.is_away:
            return "place"
        if self.size < READABLE:
            return "size"
        if self.opacity * self.color.alpha < _MIN_OPACITY:
            return "colour"
        seen = self.color
        if self.opacity < 1 or seen.alpha < 1:
            seen = css.laid_over(seen, self.ground, self.opacity)
        return "colour" if css.is_near(seen, self.ground) else ""


ROOT = Look()


@lru_cache(_MAX_KNOWN)
def look_of(parent: Look, style: Style) -> Look:
    """Return the look of text in an element of a style, which stands in text of a look."""
    look = Look()
    look.is_absent = parent.is_absent or style.is_absent
    look.is_own = parent.is_own or style.is_own
    look.is_away = parent.is_away or style.is_away
    if style.closes in (1, -1) or parent.closed:
        look.closed = max(parent.closed + style.closes, 0.0)
    look.shown = parent.shown if style.shown is None else style.shown
    look.link = style.link or parent.link
    look.color = look.link if style.is_link else style.color or parent.color
    look.ground = parent.ground
    if style.ground == css.UNKNOWN:
        look.ground = css.UNKNOWN
    elif style.ground is not None:
        is_opaque = style.ground.alpha == 1
        look.ground = style.ground if is_opaque else css.laid_over(style.ground, parent.ground)
    size, is_relative = style.size
    size *= parent.size if is_relative else 1
    look.size = min(size * style.zoom, _LARGEST)
    look.opacity = parent.opacity * style.opacity
    look.why = look.reason()
    return look


_MAX_PAIRS = 1024  # of colours that are compared; with more, all of them may hide text


class HidingStyles(NamedTuple):
    """The styles of a document that could hide text, however its elements are nested.

    Most sizes and colours of a document cannot: they need not be followed.
    """

    sizes: bool  # whether text may become too small
    shares: bool  # whether it may do so by sizes that are parts of others
    texts: frozenset[css.Colour] | None  # colours of text that are near to a ground; None: all
    grounds: frozenset[css.Colour]


ALL_HIDING = HidingStyles(True, True, None, frozenset())


def hiding_styles(styles: Iterable[Style]) -> HidingStyles | None:
    """Return the styles of a document that could hide text, None if there are none."""
    stated = list(styles)
    if all(style.is_usual for style in stated):
        return None
    texts, grounds = {css.BLACK}, {css.WHITE}
    hides = shrinks = shares = mixes = False
    for style in stated:
        shrinks = shrinks or style.shrinks
        shares = shares or (style.shrinks and style.size[1]) or style.zoom != 1
        mixes = mixes or style.mixes
        hides = hides or style.hides
        texts |= style.text_colours
        grounds |= style.grounds
    if mixes or len(texts) * len(grounds) > _MAX_PAIRS:
        return HidingStyles(shrinks, shares, None, frozenset())
    near_texts, near_grounds = _near(frozenset(texts), frozenset(grounds))
    if hides or shrinks or near_texts:
        return HidingStyles(shrinks, shares, near_texts, near_grounds)
    return None


@lru_cache(_MAX_SETS)
def _near(
    texts: frozenset[css.Colour], grounds: frozenset[css.Colour]
) -> tuple[frozenset[css.Colour], frozenset[css.Colour]]:
    """Return the colours of text that are hard to read on a ground, and these grounds."""
    faint = {text for text in texts if text.alpha < _MIN_OPACITY}
    not_light = [ground for ground in grounds if not css.is_light(ground)]
    pairs = [
        (text, ground)
        for text in texts
        for ground in (not_light if css.is_dark(text) else grounds)
        if css.is_near(text, ground)
    ]
    return frozenset([*faint, *[pair[0] for pair in pairs]]), frozenset([g for _, g in pairs])


@lru_cache(_MAX_KNOWN)
def reduced(style: Style | None, hiding: HidingStyles) -> Style | None:
    """Return a style without what cannot hide text, None if it has nothing else."""
    if style is None:
        return None
    texts, is_link = hiding.texts, style.is_link
    colours = style.color, style.ground, style.link
    if texts is not None:
        if texts:
            color, ground, link = colours
            # A colour that is known to be seen may still cover one that is not.
            colours = (
                color if color is None or color in texts else css.UNKNOWN,
                ground if ground is None or ground in hiding.grounds else css.UNKNOWN,
                link if link is None or link in texts else css.UNKNOWN,
            )
        else:
            colours, is_link = (None, None, None), False
    size, zoom = (style.size, style.zoom) if hiding.sizes else ((1.0, True), 1.0)
    if not (hiding.shares or size[1] or style.shrinks):
        size = MEDIUM, False
    display = b"absent" if style.is_own else b"none" if style.is_absent else b""
    return _interned(
        *(display, style.is_away, style.shown, *colours, is_link, size, zoom, style.opacity),
        style.closes,
    )
