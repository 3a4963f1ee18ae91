"""Lengths as CSS writes them: units, formulas, and boxes too small or too far away to read in.

Numbers are cut to a range in which all arithmetic is finite.
"""

import re
from math import cos, radians
from typing import TypeVar

Side = TypeVar("Side")

_LARGEST = 1e6
VIEW = 1000.0  # assumed width of the window in pixels
MEDIUM = 16.0  # pixels of text of no stated size

NUMBER = re.compile(rb"([+-]?(?:\d*\.)?\d+(?:e[+-]?\d+)?)(%|[a-z]*)")
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
    **dict.fromkeys(b"vw vi vmax svw lvw dvw".split(), VIEW / 100),
    **dict.fromkeys(b"vh vb vmin svh lvh dvh".split(), 7.0),
}
_DEGREES = {b"deg": 1.0, b"turn": 360.0, b"grad": 0.9, b"rad": 57.29578}
# Parts of the size of text.
_EMS = {b"em": 1.0, b"%": 0.01, b"ex": 0.5, b"ch": 0.5, b"cap": 0.7, b"ic": 1.0, b"lh": 1.2}


def within(number: float, most: float) -> float:
    """Return the number, not below 0 and not above `most`."""
    return min(max(number, 0.0), most)


def cut_number(number: float) -> float:
    """Return the number, cut to the range of all lengths."""
    return min(max(number, -_LARGEST), _LARGEST)


def share_of(number: bytes, unit: bytes) -> float:
    """Return a number from 0 to 1 that may be a percentage."""
    return within(float(number) / (100 if unit == b"%" else 1), 1)


def degrees_of(number: bytes, unit: bytes) -> float:
    """Return an angle in degrees."""
    return cut_number(float(number)) * _DEGREES.get(unit, 1.0)


def read_share(value: bytes) -> float | None:
    """Return an opacity, from 0 to 1, or None."""
    match = NUMBER.fullmatch(value)
    return share_of(match[1], match[2]) if match else None


def read_length(value: bytes) -> tuple[float, bool] | None:
    """Return a length and whether it counts sizes of text; otherwise it is in pixels."""
    match = NUMBER.fullmatch(value)
    if match is None:
        return None
    number, unit = cut_number(float(match[1])), match[2]
    if unit in _EMS:
        return number * _EMS[unit], True
    return (number * _PIXELS[unit], False) if unit in _PIXELS else None


def read_pixels(value: bytes) -> float | None:
    """Return a length in pixels; percentages are of the width of the window."""
    match = NUMBER.fullmatch(value)
    if match is None:
        return None
    scale = VIEW / 100 if match[2] == b"%" else _PIXELS.get(match[2], MEDIUM)
    return cut_number(float(match[1])) * scale


# Arithmetic.

_MAX_NESTED, _MAX_FORMULA = 16, 1000  # calls in a formula, and its bytes
_BRACKET = ord("(")
_ARITHMETIC = re.compile(rb"(?:calc|min|max|clamp)\(")
_FORMULA = re.compile(rb"(calc|min|max|clamp)?\(([^()]*)\)")
_TERM = re.compile(rb" ?([-+*/]?) ?((?:[+-]?\d*\.?\d+)(?:e[+-]?\d+)?)(%|[a-z]*)")


def with_results(text: bytes) -> bytes:
    """Return declarations with their calc(), min(), max() and clamp() computed.

    A formula that is not read, or too deep, stays as it is.
    """
    if _BRACKET not in text or not _ARITHMETIC.search(text):
        return text
    for _ in range(_MAX_NESTED):
        computed = _FORMULA.sub(_computed, text)
        if computed == text:
            break
        text = computed
    return text


def _computed(match: re.Match[bytes]) -> bytes:
    """Return the result of a call without calls in it, or the call."""
    before = match.string[max(match.start() - 1, 0) : match.start()]
    if len(match[2]) > _MAX_FORMULA or (match[1] is None and before.isalnum()):
        return match[0]  # of another function
    results = [_sum(each) for each in match[2].split(b",")]
    known = [each for each in results if each is not None]
    if len(known) < len(results):
        return match[0]
    units = {unit for _, unit in known if unit}
    numbers = [number for number, _ in known]
    if len(units) > 1:
        numbers = [read_pixels(b"%f%b" % each) or 0.0 for each in known]
    if match[1] == b"clamp" and len(numbers) == 3:
        numbers = [max(numbers[0], min(numbers[1:]))]
    result = max(numbers) if match[1] == b"max" else min(numbers)
    return b"%.4f%b" % (cut_number(result), units.pop() if len(units) == 1 else b"")


def _sum(text: bytes) -> tuple[float, bytes] | None:
    """Return the value of terms with + - * /, and its unit, None if they are not read.

    Terms of different units are added in pixels.
    """
    text = b" ".join(text.split())  # long blanks would take time by their square
    terms = _TERM.findall(text)
    if not terms or _TERM.sub(b"", text).strip():
        return None
    units = {unit for _, _, unit in terms if unit}
    total, last, unit = 0.0, 0.0, next(iter(units), b"")
    for sign, number, own in terms:
        value = cut_number(float(number))
        if own and len(units) > 1:
            value, unit = read_pixels(number + own) or 0.0, b"px"
        if sign == b"*":
            last *= value
        elif sign == b"/":
            last = last / value if value else _LARGEST
        else:
            total, last = total + last, -value if sign == b"-" else value
        last = cut_number(last)
    return cut_number(total + last), unit


# Boxes: what clips them, shrinks them to nothing or moves them out of sight.

READABLE = 6.0  # pixels: lower text is not read, nor text in a lower or narrower box
FAR, FAR_RIGHT = -500.0, 1000.0  # pixels: a box beyond them is out of sight
_MIN_SCALE = 0.1  # of a box that can still be read
_NUMBERS = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[a-z%]*")
_BEHIND_SIZE = re.compile(rb"\b(?:at|round)\b")
_CALL = re.compile(rb"(?<![a-z0-9])([a-z0-9]++)\(([^()]*)\)")


def _pixels_of(text: bytes) -> list[float]:
    return [read_pixels(each) or 0.0 for each in _NUMBERS.findall(text)]


def is_clipped(value: bytes) -> bool | None:
    """Return whether rect(top, right, bottom, left) is too small to read in, None if invalid."""
    stated = value.removeprefix(b"rect(").strip(b" )").replace(b",", b" ").split()
    if len(stated) != 4:
        return None
    edges = [read_pixels(each) for each in stated]  # None for auto, the edge of the box
    top, left = edges[0] or 0.0, edges[3] or 0.0
    right, bottom = (VIEW if edge is None else edge for edge in edges[1:3])
    return bottom - top < READABLE or right - left < READABLE


def is_clipped_to_shape(value: bytes) -> bool | None:
    """Return whether a shape leaves nothing to read, None if it is invalid."""
    call = _CALL.match(value)
    if call is None:
        return None
    size, *place = _BEHIND_SIZE.split(call[2], maxsplit=1)
    if place and not (_NUMBERS.search(size) or b"farthest" in size):
        size = place[0]  # a circle as far as the nearest side
    numbers = _pixels_of(size)
    if call[1] == b"inset" and b"%" in size and (sides := four_sides(numbers)):
        return max(sides[0] + sides[2], sides[1] + sides[3]) >= VIEW
    if call[1] in (b"circle", b"ellipse"):
        return bool(numbers) and min(numbers) < READABLE / 2
    axes = numbers[::2], numbers[1::2]
    return call[1] == b"polygon" and all(axes) and any(max(a) - min(a) < READABLE for a in axes)


def four_sides(stated: list[Side]) -> list[Side]:
    """Return the values for top, right, bottom and left of one to four; else nothing."""
    sides = stated[:] if len(stated) <= 4 else []
    for i in range(len(sides), 4 if sides else 0):  # as the side opposite
        sides.append(sides[max(i - 2, 0)])
    return sides


def is_transformed_away(value: bytes) -> bool | None:
    """Return whether a transform shrinks text or moves it out of sight, None if it is invalid."""
    calls = _CALL.findall(value)
    hides: bool | None
    for name, arguments in calls:
        numbers = _pixels_of(arguments)
        if name.startswith(b"scale"):
            sizes = numbers[: 2 if name in (b"scale", b"scale3d") else 1]
            hides = any(abs(size) < _MIN_SCALE for size in sizes)
        elif name in (b"rotatex", b"rotatey"):  # seen from its edge
            angles = [degrees_of(n, u) for n, u in NUMBER.findall(arguments) if u in _DEGREES]
            hides = any(abs(cos(radians(angle))) < _MIN_SCALE for angle in angles)
        elif name == b"matrix" and len(numbers) == 6:
            area = abs(numbers[0] * numbers[3] - numbers[1] * numbers[2])
            hides = area < _MIN_SCALE**2 or min(numbers[4:]) <= FAR
        else:
            hides = name.startswith(b"translate") and is_moved_away(arguments)
        if hides:
            return True
    return False if calls else None


def is_moved_away(value: bytes) -> bool | None:
    """Return whether a translation moves text out of sight, None if it is invalid."""
    ways = [far(each) for each in _NUMBERS.findall(value)[:2]]
    return LEFT in ways or ways[0] == RIGHT if ways else None


def is_scaled_away(value: bytes) -> bool | None:
    """Return whether a scale shrinks text to nothing, None if it is invalid."""
    sizes = _pixels_of(value)
    return min(map(abs, sizes)) < _MIN_SCALE if sizes else None


# Heights and widths that follow from the text.
_AS_CONTENT = frozenset(b"fit-content max-content min-content stretch".split())
# Where a length leads.
LEFT, RIGHT, IN_SIGHT = b"left", b"right", b"near"


def far(value: bytes) -> bytes | None:
    """Return whether a length leads out of sight: to the left or above, or to the right.

    IN_SIGHT is in sight and has room for text, b"" has none.  Percentages are of a box, which may
    be narrower than the window.
    """
    pixels = read_pixels(value)
    if pixels is None:
        return None
    leftmost = -VIEW if value.endswith(b"%") else FAR
    if pixels >= READABLE:
        return RIGHT if pixels >= FAR_RIGHT else IN_SIGHT
    return LEFT if pixels <= leftmost else b""


def tiny(value: bytes) -> bool | None:
    """Return whether a box of this height or width is too small to read in, None if invalid."""
    if value in _AS_CONTENT:
        return False
    pixels = read_pixels(value)
    return None if pixels is None else pixels < READABLE


def letters_overlap(value: bytes) -> bool | None:
    """Return whether a spacing lays letters on top of each other."""
    pixels = read_pixels(value)
    return None if pixels is None else pixels <= -MEDIUM / 2
