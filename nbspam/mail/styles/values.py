"""Colours and lengths, as CSS and HTML write them.

All text is in lower case.  Numbers are cut to a range in which all arithmetic is finite.

Secret: the spellings of colours and lengths, and which colours can be told apart.
"""

import re
from collections.abc import Sequence
from colorsys import hls_to_rgb
from functools import lru_cache
from typing import NamedTuple

_MAX_KNOWN = 4096  # values that are cached
_LARGEST = 1e6
VIEW = 1000.0  # assumed width of the window in pixels
MEDIUM = 16.0  # pixels of text of no stated size


class Colour(NamedTuple):
    """Red, green and blue from 0 to 255, and opacity from 0 to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0


BLACK, WHITE, LINK = Colour(0, 0, 0), Colour(255, 255, 255), Colour(0, 0, 238)
# A colour that is not known: that of an image, or written in a way that is not read.
UNKNOWN = Colour(-1, -1, -1)

# CSS Color Module Level 4, section 6.1, and the two system colours that mail programs write.
_NAMED = dict(
    zip(
        *[
            iter(
                b"""
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
window ffffff windowtext 000000
""".split()
            )
        ]
        * 2,
        strict=True,
    )
)
_HEX = re.compile(rb"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$")
_FUNCTION = re.compile(rb"(rgb|hsl)a?\(([^()]{1,100})\)$")
# Functions whose colour is not computed.
_OTHER_FUNCTION = re.compile(rb"(?:var|hwb|lab|lch|oklab|oklch|color|color-mix|light-dark)\(")
_NUMBER = re.compile(rb"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(%|[a-z]*)")
_PIXELS = {
    b"": 1.0,
    b"px": 1.0,
    b"pt": 4 / 3,
    b"pc": 16.0,
    b"in": 96.0,
    b"cm": 37.8,
    b"mm": 3.78,
    b"q": 0.945,
    b"rem": MEDIUM,
    b"vw": VIEW / 100,
    b"vh": 7.0,
    b"vmin": 7.0,
    b"vmax": 10.0,
}
_EMS = {b"em": 1.0, b"%": 0.01, b"ex": 0.5, b"ch": 0.5}  # parts of the size of text
_DEGREES = {b"": 1.0, b"deg": 1.0, b"turn": 360.0, b"grad": 0.9, b"rad": 57.29578}
# WCAG 2.2, "relative luminance".
_LINEAR = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in range(256)]
# Text is hidden by its colour if its contrast with the ground is lower and no channel differs by
# more.  Yellow on white has a contrast of 1.07, and yet it can be read.
_MIN_CONTRAST, _MAX_DIFFERENCE = 1.4, 110.0


@lru_cache(_MAX_KNOWN)
def read_colour(value: bytes) -> Colour | None:
    """Return a colour of CSS, UNKNOWN for one that cannot be computed, None for no colour."""
    if value in _NAMED:
        return _of_hex(_NAMED[value])
    if match := _HEX.match(value):
        return _of_hex(match[1])
    if value == b"transparent":
        return Colour(0, 0, 0, 0)
    if match := _FUNCTION.match(value):
        return _of_function(match[1], _NUMBER.findall(match[2]))
    return UNKNOWN if _OTHER_FUNCTION.match(value) else None


@lru_cache(_MAX_KNOWN)
def read_legacy_colour(value: bytes) -> Colour | None:
    """Return the colour of an attribute such as bgcolor.

    HTML Standard, "rules for parsing a legacy color value": anything is a colour.
    """
    value = value.strip()
    if not value or value == b"transparent":
        return None
    if value in _NAMED:
        return _of_hex(_NAMED[value])
    value = value[:128].removeprefix(b"#")
    if len(value) == 3 and _HEX.match(b"#" + value):
        return _of_hex(value)
    digits = re.sub(rb"[^0-9a-f]", b"0", value)
    digits += b"0" * (-len(digits) % 3 or (3 if not digits else 0))
    size = len(digits) // 3
    parts = [digits[i * size : (i + 1) * size][-8:] for i in range(3)]
    while len(parts[0]) > 2 and all(part.startswith(b"0") for part in parts):
        parts = [part[1:] for part in parts]
    return Colour(*[int(part[:2], 16) for part in parts])


def _of_hex(digits: bytes) -> Colour:
    """Return the colour of 3, 4, 6 or 8 hexadecimal digits."""
    if len(digits) < 6:
        digits = b"".join([digits[i : i + 1] * 2 for i in range(len(digits))])
    red, green, blue, *alpha = bytes.fromhex(digits.decode())
    return Colour(red, green, blue, alpha[0] / 255 if alpha else 1.0)


def _of_function(name: bytes, numbers: Sequence[tuple[bytes, bytes]]) -> Colour | None:
    """Return the colour of rgb(), rgba(), hsl() or hsla(), given their numbers and units."""
    if len(numbers) not in (3, 4):
        return None
    alpha = 1.0 if len(numbers) == 3 else _share(*numbers[3])
    if name == b"rgb":
        whole = [_within(float(n), 100 if u == b"%" else 255) for n, u in numbers[:3]]
        scaled = [
            2.55 * n if u == b"%" else n for n, (_, u) in zip(whole, numbers[:3], strict=True)
        ]
        return Colour(scaled[0], scaled[1], scaled[2], alpha)
    hue = _cut(float(numbers[0][0])) * _DEGREES.get(numbers[0][1], 1.0) / 360
    saturation, lightness = (_within(float(n), 100) / 100 for n, _ in numbers[1:3])
    red, green, blue = hls_to_rgb(hue % 1, lightness, saturation)
    return Colour(255 * red, 255 * green, 255 * blue, alpha)


def _within(number: float, most: float) -> float:
    """Return the number, not below 0 and not above `most`."""
    return min(max(number, 0.0), most)


def _cut(number: float) -> float:
    """Return the number, cut to the range of all lengths."""
    return min(max(number, -_LARGEST), _LARGEST)


def _share(number: bytes, unit: bytes) -> float:
    """Return a number from 0 to 1 that may be a percentage."""
    return _within(float(number) / (100 if unit == b"%" else 1), 1)


def read_share(value: bytes) -> float | None:
    """Return an opacity, from 0 to 1, or None."""
    match = _NUMBER.match(value)
    return _share(match[1], match[2]) if match else None


def read_length(value: bytes) -> tuple[float, bool] | None:
    """Return a length and whether it counts sizes of text; otherwise it is in pixels."""
    match = _NUMBER.match(value)
    if match is None:
        return None
    number, unit = _cut(float(match[1])), match[2]
    if unit in _EMS:
        return number * _EMS[unit], True
    return (number * _PIXELS[unit], False) if unit in _PIXELS else None


def read_pixels(value: bytes) -> float | None:
    """Return a length in pixels; percentages are of the width of the window."""
    match = _NUMBER.match(value)
    if match is None:
        return None
    scale = VIEW / 100 if match[2] == b"%" else _PIXELS.get(match[2], MEDIUM)
    return _cut(float(match[1])) * scale


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


def _luminance(colour: Colour) -> float:
    """Return the relative luminance of a colour, from 0 to 1."""
    red, green, blue = (_LINEAR[round(c)] for c in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
