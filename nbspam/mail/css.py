"""CSS as mail writes it: colours, lengths, and the declarations that can hide text.

All text is in lower case.  A declaration that CSS calls invalid is dropped, so that it does not
override a valid one; a property that cannot hide text is skipped.
"""

import re
from collections.abc import Callable, Mapping
from colorsys import hls_to_rgb
from functools import lru_cache, wraps
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, TypeVar

from nbspam.mail import lengths

_MAX_KNOWN, _MAX_BLOCKS = 4096, 8192  # values and texts of declarations that are cached
# Bytes of cached texts: long ones are hostile and would fill memory.
_MAX_COLOUR, MAX_BLOCK = 120, 2000

Read = TypeVar("Read")


def remember(
    number: int, length: int
) -> Callable[[Callable[[bytes], Read]], Callable[[bytes], Read]]:
    """Return a decorator that caches the results for texts, except long ones.

    number: of texts.  length: their most bytes.
    """

    def decorate(read: Callable[[bytes], Read]) -> Callable[[bytes], Read]:
        cached = lru_cache(number)(read)

        @wraps(read)
        def reader(text: bytes) -> Read:
            return cached(text) if len(text) <= length else read(text)

        return reader

    return decorate


class Colour(NamedTuple):
    """Red, green and blue from 0 to 255, and opacity from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0


BLACK, WHITE, LINK = Colour(0, 0, 0), Colour(255, 255, 255), Colour(0, 0, 238)
# A colour that is not known: that of an image, or written in a way that is not read.
UNKNOWN = Colour(-1, -1, -1)
CURRENT = Colour(-2, -2, -2)  # of a ground or letters that have the colour of the text

# CSS Color Module Level 4, section 6.1, the two system colours that mail programs write, and
# others that are white.
_NAMES_AND_DIGITS = b"""
aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50
cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b
darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9
darkkhaki bdb76b darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc
darkred 8b0000 darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b
darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3
deeppink ff1493 deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff
firebrick b22222 floralwhite fffaf0 forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc
ghostwhite f8f8ff gold ffd700 goldenrod daa520 gray 808080 green 008000 greenyellow adff2f
grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0
khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd
lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2
lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a
lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 lightslategrey 778899
lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 linen faf0e6
magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd mediumorchid ba55d3
mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee mediumspringgreen 00fa9a
mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa
mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000
olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa
palegreen 98fb98 paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9
peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399
red ff0000 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072
sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb
slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f
steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0
violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32
window ffffff windowtext 000000 background ffffff canvas ffffff field ffffff infobackground ffffff
menu ffffff activecaption ffffff appworkspace ffffff highlighttext ffffff scrollbar ffffff
buttonface efefef buttonhighlight efefef buttonshadow efefef threedface efefef
""".split()
_NAMED = dict(zip(_NAMES_AND_DIGITS[::2], _NAMES_AND_DIGITS[1::2], strict=True))
_HEX = re.compile(rb"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$")
_FUNCTION = re.compile(rb"(rgb|hsl)a?\((?!from )([^()]{1,100})\)?$")
_WITH_COMMAS = re.compile(rb"([^\s,]+)\s*,\s*([^\s,]+)\s*,\s*([^\s,]+)(?:\s*,\s*([^\s,]+))?\Z")
_WITH_BLANKS = re.compile(rb"([^\s/]+)\s+([^\s/]+)\s+([^\s/]+)(?:\s*/\s*([^\s/]+))?\Z")
# Functions whose colour is not computed.
_OTHER_FUNCTION = re.compile(rb"(?:var|hwb|lab|lch|oklab|oklch|color|color-mix|light-dark)\(")
_COLOURS = re.compile(rb"(?:rgb|hsl)a?\([^()]{1,100}\)|#?[a-z0-9]{1,30}")
# WCAG 2.2, "relative luminance".
_LINEAR = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in range(256)]
# Text is hidden by its colour if its contrast with the ground is lower and no channel differs by
# more.  Yellow on white has a contrast of 1.07, and yet it can be read.
_MIN_CONTRAST, _MAX_DIFFERENCE = 1.4, 110.0
# Luminances of colours that are always apart: most texts are dark, and most grounds are light.
_DARK, _LIGHT = 0.25, 0.4


@remember(_MAX_KNOWN, _MAX_COLOUR)
def read_colour(value: bytes) -> Colour | None:
    """Return a colour of CSS, UNKNOWN for one that cannot be computed, None for no colour."""
    if value in _NAMED:
        return _of_hex(_NAMED[value])
    if match := _HEX.match(value):
        return _of_hex(match[1])
    if value == b"transparent":
        return Colour(0, 0, 0, 0)
    if match := _FUNCTION.match(value):
        return _of_function(match[1], match[2].strip())
    return UNKNOWN if _OTHER_FUNCTION.match(value) else None


@remember(_MAX_KNOWN, _MAX_COLOUR)
def read_legacy_colour(value: bytes) -> Colour | None:
    """Return the colour of an attribute such as bgcolor.

    HTML Standard, "rules for parsing a legacy color value": anything is a colour.
    """
    value = value.strip()
    if not value or value == b"transparent":
        return None
    if value in _NAMED:
        return _of_hex(_NAMED[value])
    if len(value) == 4 and _HEX.match(value):
        return _of_hex(value[1:])
    value = value[:128].removeprefix(b"#")
    digits = re.sub(rb"[^0-9a-f]", b"0", value) or b"0"
    digits += b"0" * (-len(digits) % 3)
    size = len(digits) // 3
    parts = [digits[i * size : (i + 1) * size][-8:] for i in range(3)]
    while len(parts[0]) > 2 and all(part.startswith(b"0") for part in parts):
        parts = [part[1:] for part in parts]
    return Colour(*[int(part[:2], 16) for part in parts])


def _of_hex(digits: bytes) -> Colour:
    if len(digits) < 6:
        digits = b"".join([digits[i : i + 1] * 2 for i in range(len(digits))])
    red, green, blue, *alpha = bytes.fromhex(digits.decode())
    return Colour(red, green, blue, alpha[0] / 255 if alpha else 1.0)


def _of_function(name: bytes, text: bytes) -> Colour | None:
    """Return the colour of rgb(), rgba(), hsl() or hsla(), None if their text is invalid."""
    has_commas = b"," in text
    match = (_WITH_COMMAS if has_commas else _WITH_BLANKS).match(text.replace(b"none", b"0"))
    found = map(lengths.NUMBER.fullmatch, match.groups(b"1") if match else ())
    numbers = [number.groups() for number in found if number]
    units = {unit for _, unit in numbers[name == b"hsl" : 3]}
    if len(numbers) < 4 or (has_commas and units != {b"%" if name == b"hsl" else numbers[0][1]}):
        return None
    alpha = lengths.share_of(*numbers[3])
    if name == b"rgb":
        scaled = (float(n) * (2.55 if u == b"%" else 1) for n, u in numbers[:3])
        red, green, blue = (lengths.within(n, 255) for n in scaled)
        return Colour(red, green, blue, alpha)
    hue = lengths.degrees_of(*numbers[0]) / 360
    saturation, lightness = (lengths.within(float(n), 100) / 100 for n, _ in numbers[1:3])
    red, green, blue = hls_to_rgb(hue % 1, lightness, saturation)
    return Colour(255 * red, 255 * green, 255 * blue, alpha)


def laid_over(colour: Colour, ground: Colour, share: float = 1.0) -> Colour:
    """Return the opaque colour that is seen where a colour lies over an opaque ground.

    share: further opacity of the colour, from 0 to 1.
    """
    if UNKNOWN in (colour, ground):
        return UNKNOWN
    share *= colour.alpha
    red, green, blue = (
        share * c + (1 - share) * g for c, g in zip(colour[:3], ground[:3], strict=True)
    )
    return Colour(red, green, blue)


@lru_cache(_MAX_KNOWN)
def is_near(colour: Colour, ground: Colour) -> bool:
    """Return whether opaque text of a colour cannot be read on an opaque ground.

    Not if either is unknown.  Contrast as in WCAG 2.2, "contrast ratio".
    """
    if UNKNOWN in (colour, ground):
        return False
    if max(abs(c - g) for c, g in zip(colour[:3], ground[:3], strict=True)) > _MAX_DIFFERENCE:
        return False
    dark, light = sorted((_luminance(colour), _luminance(ground)))
    return (light + 0.05) / (dark + 0.05) < _MIN_CONTRAST


@lru_cache(_MAX_KNOWN)
def is_dark(colour: Colour) -> bool:
    """Return whether a colour is opaque and either unknown or apart from all light ones."""
    return colour.alpha == 1 and (colour == UNKNOWN or _luminance(colour) < _DARK)


@lru_cache(_MAX_KNOWN)
def is_light(colour: Colour) -> bool:
    """Return whether an opaque colour is either unknown or apart from all dark ones."""
    return colour == UNKNOWN or _luminance(colour) > _LIGHT


def _luminance(colour: Colour) -> float:
    """Return the relative luminance of a colour, from 0 to 1."""
    red, green, blue = (_LINEAR[round(c)] for c in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- declarations ----------------------------------------------------------------------------

# Values by property, each always of one type; None cancels an earlier declaration.
Declared = dict[str, Any]

# Text whose characters mean nothing: comments, addresses and strings, which a line's end closes.
_OPAQUE = re.compile(
    rb"/\*.*?(?:\*/|\Z)|\((?<=(?i:url)\()\s*+(?![\"'])[^)]*+"
    rb"|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?",
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:([0-9a-fA-F]{1,6})\s?|\n|(.))")
_BEGINNINGS = (b".", b"#", b":", b"[")  # of conditions in a selector, behind its name
# As numbers, because `in` first tries to take bytes for a number: see `headers.CR`.
_BACKSLASH, _BRACKET, _APOSTROPHE, _QUOTE = b"\\('\""
_ITEMS = re.compile(rb"(?:[^;(\"']++|\([^)]*\)?|\"[^\"]*\"?|'[^']*'?)+")
_WORDS = re.compile(rb"(?:[^\s(]++|\([^)]*\)?)+")
_BACKGROUND_WORDS = re.compile(rb"(?:[^\s,/(]++|\([^)]*\)?)+")
_RESET = frozenset((b"inherit", b"initial", b"unset", b"revert", b"revert-layer"))
_BACKGROUND = _RESET.union(
    b"none repeat no-repeat repeat-x repeat-y space round scroll fixed local left right top bottom"
    b" center auto cover contain border-box padding-box content-box text".split()
)
# The initial values of inherited properties, which the text around does not change.
_INITIAL = {"color": BLACK, "size": (lengths.MEDIUM, False), "shown": True, "text-fill": CURRENT}
_DISPLAYS = frozenset(
    b"none inline block inline-block list-item table inline-table table-row table-cell flex grid"
    b" table-row-group table-header-group table-footer-group table-column table-column-group"
    b" table-caption inline-flex inline-grid contents flow-root flow ruby ruby-text math"
    b" -webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex".split()
)
_POSITIONS = {
    word: word for word in b"static relative absolute fixed sticky -webkit-sticky".split()
}
_FLOATS = {word: word for word in b"left right none inline-start inline-end".split()}
# The size and whether it is relative, as of `lengths.read_length`.
_SIZES = {
    b"xx-small": (9.0, False),
    b"x-small": (10.0, False),
    b"small": (13.0, False),
    b"medium": (lengths.MEDIUM, False),
    b"large": (18.0, False),
    b"x-large": (24.0, False),
    b"xx-large": (32.0, False),
    b"xxx-large": (48.0, False),
    b"smaller": (1 / 1.2, True),
    b"larger": (1.2, True),
}
_SYSTEM_FONTS = frozenset(b"caption icon menu message-box small-caption status-bar".split())
_CLIPS = {
    **dict.fromkeys((b"visible", *_RESET), False),
    **dict.fromkeys(b"hidden clip auto scroll overlay".split(), True),
}
_SIDES = {"height": "height", "block-size": "height", "width": "width", "inline-size": "width"}
_PLACES = {
    **{side.encode(): side for side in ("left", "right", "top", "bottom")},
    **{side.encode(): side for side in ("margin-left", "margin-top", "padding-left")},
    **{side.encode(): side for side in ("padding-right", "padding-bottom")},
    b"inset-inline-start": "left",
    b"inset-inline-end": "right",
    b"inset-block-start": "top",
    b"inset-block-end": "bottom",
    b"margin-inline-start": "margin-left",
    b"margin-block-start": "margin-top",
    b"padding-inline-start": "padding-left",
    b"padding-inline-end": "padding-right",
    b"padding-block-end": "padding-bottom",
}
_IMAGES = (b"url(", b"gradient(", b"image(", b"image-set(", b"var(")
_OPACITY = re.compile(rb"opacity\(\s*([\d.]+%?)")


def without_comments(text: bytes) -> bytes:
    """Return CSS without comments and braces in strings, and with escapes resolved."""
    if text.find(b"/*") >= 0 or (
        text.find(b"{") >= 0 and (_QUOTE in text or _APOSTROPHE in text or b"url(" in text.lower())
    ):
        text = _OPAQUE.sub(_without_braces, text)
    text = text.replace(b"\v", b"?")  # Python takes it for a blank, CSS does not
    return _ESCAPE.sub(_escaped, text) if _BACKSLASH in text else text


def _without_braces(match: re.Match[bytes]) -> bytes:
    if not match[0].startswith(b"/*"):
        return match[0].translate(None, b"{}")
    # In `p/**/.x` a comment parts nothing.
    return b"" if match.string[match.end() : match.end() + 1] in _BEGINNINGS else b" "


def _escaped(match: re.Match[bytes]) -> bytes:
    """Return an escaped character, which is part of a name, or a sign that is in no name."""
    written = match[2] or b""
    if match[1]:
        number = int(match[1], 16)
        written = chr(number).lower().encode("utf-8", "replace") if number < 0x110000 else b"?"
    is_part = written.isalnum() or written in b"-_" or written >= b"\x80"
    return written if is_part else b"?"


_VARIABLE = re.compile(rb"var\(\s*(--[\w-]+)\s*(?:,([^()]*(?:\([^()]*\)[^()]*)*))?\)")
_CUSTOM = re.compile(rb"(?<![\w-])(--[\w-]++)\s*+:([^;{}]*+)")
# The number of variables, bytes of one, bytes of a text of declarations, and values in values.
_MAX_VARIABLES, _MAX_VALUE, _MAX_TEXT, _MAX_STEPS = 1000, 200, 10_000, 3


def custom_properties(text: bytes, inherited: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """Return the values of custom properties under styles, the last that is stated for each.

    inherited: those around.  A loop has no value.
    """
    stated = dict(_CUSTOM.findall(text)[:_MAX_VARIABLES])
    found = _short({name: value.strip() for name, value in stated.items()})
    if not found or len(inherited) + len(found) > _MAX_VARIABLES:
        return inherited
    around = {**inherited, **found}
    for _ in range(_MAX_STEPS):
        found = _short({name: with_values(value, around, b"") for name, value in found.items()})
    known = {name: value for name, value in found.items() if b"var(" not in value}
    return {**inherited, **known}


def _short(values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    return {name: value for name, value in values.items() if len(value) <= _MAX_VALUE}


def with_values(
    text: bytes, properties: Mapping[bytes, bytes], missing: bytes = b"unset"
) -> bytes:
    """Return declarations with the values of their variables, or the stated fallback.

    missing: stands for a variable that has neither.
    """
    for _ in range(_MAX_STEPS):  # a fallback may be a variable
        if b"var(" not in text or len(text) > _MAX_TEXT:
            break
        text = _VARIABLE.sub(lambda name: properties.get(name[1]) or name[2] or missing, text)
    return text


class Block(NamedTuple):
    """Declarations by property: those without and with !important."""

    normal: Declared
    important: Declared


@remember(_MAX_BLOCKS, MAX_BLOCK)
def read_block(text: bytes) -> Block:
    """Return the declarations of a style attribute or of a rule, in lower case."""
    normal: Declared = {}
    important: Declared = {}
    text = lengths.with_results(without_comments(text))
    # Others are hostile: they would fill memory.
    read_declaration = _declaration if len(text) <= MAX_BLOCK else _declaration.__wrapped__
    is_plain = not (_BRACKET in text or _APOSTROPHE in text or _QUOTE in text)
    for item in text.split(b";") if is_plain else _ITEMS.findall(text):
        is_important, declared = read_declaration(item)
        if declared:
            (important if is_important else normal).update(declared)
    return Block(normal, important)


@lru_cache(_MAX_KNOWN)
def _declaration(text: bytes) -> tuple[bool, Declared]:
    """Return whether a declaration is important, and its properties."""
    name, _, value = text.partition(b":")
    read = _PROPERTIES.get(name.strip())
    if read is None:
        return False, {}
    value, mark, word = value.partition(b"!")
    is_important = word.strip() == b"important"
    return is_important, read(value.strip()) if is_important or not mark else {}


_Hints = dict[bytes, tuple[str, Callable[[bytes], Any]]]
# Presentational attributes of elements, the property that each states, and how it is read.
_OF_BOXES: _Hints = {b"bgcolor": ("ground", read_legacy_colour), b"background": ("image", bool)}
_OF_BODY = {b"text": ("color", read_legacy_colour), b"link": ("link", read_legacy_colour)}
_HINTS: dict[bytes, _Hints] = {
    b"font": {b"color": ("color", read_legacy_colour)},
    b"body": {**_OF_BOXES, **_OF_BODY},
    **dict.fromkeys(b"table thead tbody tfoot tr td th marquee".split(), _OF_BOXES),
}


def read_hints(name: bytes, attributes: Mapping[bytes, bytes]) -> Declared:
    """Return the declarations of an element's presentational attributes, by lower-case name."""
    found: Declared = {}
    if attributes.get(b"hidden") == b"until-found":
        found["skips"] = True
    elif b"hidden" in attributes or b"popover" in attributes:
        found["display"] = b"none"
    for hint, (key, read) in _HINTS.get(name, {}).items():
        if stated := read(attributes.get(hint, b"")):
            found[key] = stated
    return found


def _sides(*keys: str) -> Callable[[bytes], Declared]:
    """Return a reader of a shorthand for sides; an empty key stands for one that hides nothing."""

    def declare(value: bytes) -> Declared:
        sides = [b"" if word == b"auto" else lengths.far(word) for word in value.split()]
        if value in _RESET:
            sides = [None] * 4
        elif None in sides:
            return {}
        stated = zip(keys, lengths.four_sides(sides), strict=False)
        return {key: side for key, side in stated if key}

    return declare


def _masks(value: bytes) -> bool | None:
    """Return whether a mask lets nothing through, as transparent gradients; None: no image."""
    if b"gradient(" not in value:
        return False if _has_image(value) else None
    colours = [found for each in _COLOURS.findall(value) if (found := read_colour(each))]
    return bool(colours) and all(colour.alpha == 0 for colour in colours)


def _one(
    key: str, read: Callable[[bytes], object], initial: bytes = b"initial"
) -> Callable[[bytes], Declared]:
    """Return a reader of a property with one value, which `read` turns into None if invalid.

    initial: the value that it has where nothing is stated.
    """

    def declare(value: bytes) -> Declared:
        if value == initial or value in _RESET:
            return {key: _INITIAL.get(key) if value == b"initial" else None}
        found = read(value)
        return {} if found is None else {key: found}

    return declare


def _display(value: bytes) -> bytes | None:
    word, *others = value.split() or [value]
    is_alone = word in (b"none", b"contents")
    return word if _DISPLAYS.issuperset((word, *others)) and not (others and is_alone) else None


def _size(value: bytes) -> tuple[float, bool] | None:
    found = _SIZES.get(value) or lengths.read_length(value)
    return found if found and found[0] >= 0 else None


def _size_of_font(value: bytes) -> tuple[float, bool] | None:
    """Return the first word that can be a size, if a name of a font follows.

    A weight is a number without a unit.
    """
    if value in _SYSTEM_FONTS:
        return lengths.MEDIUM, False
    for word, behind in pairwise(_WORDS.findall(value)):
        size, slash, _ = word.partition(b"/")
        found = _size(size)
        if found and (slash or size[-1:].isalpha() or size[-1:] == b"%" or found[0] == 0):
            return None if behind[:1].isdigit() else found
    return None


def _background(value: bytes) -> Declared:
    """Return colour and image; a shorthand without a colour makes the ground transparent."""
    words = _BACKGROUND_WORDS.findall(value)
    found: Declared = {"ground": None, "image": _has_image(value), "fills": b"text" in words}
    for word in words:
        if colour := _ground(word):
            found["ground"] = colour
        elif word not in _BACKGROUND and b"(" not in word and word[0] not in b"+-.0123456789":
            return {}
    return found if words else {}


def _ground(value: bytes) -> Colour | None:
    """Return the colour behind text, or of its letters."""
    return CURRENT if value == b"currentcolor" else read_colour(value)


def _has_image(value: bytes) -> bool:
    return any(image in value for image in _IMAGES)


def _overflow(value: bytes) -> Declared:
    sides = [_CLIPS.get(word) for word in value.split()]
    return {} if None in sides else dict.fromkeys(("overflow-x", "overflow-y"), any(sides))


def _filter(value: bytes) -> float | None:
    """Return the opacity of filter: opacity(0); no program of today reads alpha()."""
    stated = [lengths.read_share(each) for each in _OPACITY.findall(value)]
    known = [share for share in stated if share is not None]
    return prod(known) if known or value == b"none" else None


def _zoom(value: bytes) -> float | None:
    share = lengths.read_length(value)
    return share[0] if share and share[0] > 0 else None


_PROPERTIES: dict[bytes, Callable[[bytes], Declared]] = {
    b"display": _one("display", _display),
    b"visibility": _one("shown", {b"visible": True, b"hidden": False, b"collapse": False}.get),
    b"content-visibility": _one("skips", {b"hidden": True, b"auto": False}.get, b"visible"),
    b"color": _one("color", read_colour, b"currentcolor"),
    b"-webkit-text-fill-color": _one("text-fill", _ground),
    b"fill": _one(
        "fill", lambda value: read_colour(b"transparent" if value == b"none" else value)
    ),
    b"background": _background,
    b"background-color": _one("ground", _ground),
    b"background-image": _one("image", _has_image),
    b"background-clip": _one("fills", lambda value: value == b"text"),
    b"font-size": _one("size", _size),
    b"font": _one("size", _size_of_font),
    b"zoom": _one("zoom", _zoom),
    b"opacity": _one("opacity", lengths.read_share),
    b"filter": _one("filter", _filter),
    b"translate": _one("translate", lengths.is_moved_away, b"none"),
    **dict.fromkeys((b"mask", b"mask-image"), _one("mask", _masks, b"none")),
    b"inset": _sides("top", "right", "bottom", "left"),
    b"inset-inline": _sides("left", "right"),
    b"inset-block": _sides("top", "bottom"),
    b"clip": _one("clip", lengths.is_clipped, b"auto"),
    b"clip-path": _one("clip-path", lengths.is_clipped_to_shape, b"none"),
    b"overflow": _overflow,
    b"overflow-x": _one("overflow-x", _CLIPS.get),
    b"overflow-y": _one("overflow-y", _CLIPS.get),
    b"position": _one("position", _POSITIONS.get),
    b"float": _one("float", _FLOATS.get),
    b"transform": _one("transform", lengths.is_transformed_away, b"none"),
    b"scale": _one("scale", lengths.is_scaled_away, b"none"),
    b"letter-spacing": _one("letter-spacing", lengths.letters_overlap),
    b"margin": _sides("margin-top", "", "", "margin-left"),
    b"margin-inline": _sides("margin-left"),
    b"margin-block": _sides("margin-top"),
    b"padding": _sides("", "padding-right", "padding-bottom", "padding-left"),
    b"padding-inline": _sides("padding-left", "padding-right"),
    b"padding-block": _sides("", "padding-bottom"),
    b"text-indent": _one("text-indent", lengths.far),
    **{
        (bound + name).encode(): _one(bound + side, lengths.tiny, initial)
        for bound, initial in (("", b"auto"), ("min-", b"auto"), ("max-", b"none"))
        for name, side in _SIDES.items()
    },
    **{name: _one(side, lengths.far, b"auto") for name, side in _PLACES.items()},
}
_PROPERTIES |= {
    b"-webkit-" + name: _PROPERTIES[name]
    for name in b"background-clip clip-path filter mask mask-image transform".split()
}


# What a keyword says of each property.
_OF_ALL = {
    value: {key: found for read in _PROPERTIES.values() for key, found in read(value).items()}
    for value in _RESET
}
_PROPERTIES[b"all"] = lambda value: _OF_ALL.get(value, {})
