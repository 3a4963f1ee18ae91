"""Boxes: whether an element's box is clipped, shrunk to nothing, or out of sight.

Secret: the numbers from which on a box hides its text.
"""

import re
from collections.abc import Mapping

from nbspam.mail.styles.values import MEDIUM, VIEW, read_pixels

READABLE = 6.0  # pixels: lower text is not read, nor text in a lower or narrower box
_FAR, _FAR_RIGHT = -500.0, 1000.0  # pixels: a box beyond them is out of sight
_MIN_SCALE = 0.1  # of a box that can still be read
_NUMBERS = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[a-z%]*")
_CALL = re.compile(rb"(?<![a-z0-9])([a-z0-9]++)\(([^()]*)\)")


def is_clipped(value: bytes) -> bool:
    """Return whether rect(top, right, bottom, left) is too small to read in."""
    if not value.startswith(b"rect("):
        return False
    edges = [read_pixels(each) or 0.0 for each in _NUMBERS.findall(value)]
    if len(edges) != 4:
        return False
    top, right, bottom, left = edges
    return bottom - top < READABLE or right - left < READABLE


def is_clipped_to_shape(value: bytes) -> bool:
    """Return whether a shape leaves nothing to read."""
    call = _CALL.match(value)
    if call is None:
        return False
    numbers = [read_pixels(each) or 0.0 for each in _NUMBERS.findall(call[2])]
    if call[1] == b"inset" and b"%" in call[2] and 1 <= len(numbers) <= 4:
        top, right, bottom, left = (
            (numbers * 4)[:4] if len(numbers) < 3 else [*numbers, numbers[1]][:4]
        )
        return max(top + bottom, left + right) >= VIEW
    if call[1] in (b"circle", b"ellipse"):
        return bool(numbers) and min(numbers[: 1 + (call[1] == b"ellipse")]) < READABLE / 2
    return call[1] == b"polygon" and bool(numbers) and max(numbers) < READABLE


def is_transformed_away(value: bytes) -> bool:
    """Return whether a transform shrinks text to nothing or moves it out of sight."""
    for name, arguments in _CALL.findall(value):
        numbers = [read_pixels(each) or 0.0 for each in _NUMBERS.findall(arguments)]
        if name.startswith(b"scale"):
            sizes = numbers[: 2 if name in (b"scale", b"scale3d") else 1]
            hides = any(abs(size) < _MIN_SCALE for size in sizes)
        elif name == b"matrix" and len(numbers) == 6:
            hides = abs(numbers[0] * numbers[3] - numbers[1] * numbers[2]) < _MIN_SCALE**2
        else:
            hides = name.startswith(b"translate") and any(n <= _FAR for n in numbers)
        if hides:
            return True
    return False


def is_scaled_away(value: bytes) -> bool:
    """Return whether a scale shrinks text to nothing."""
    return any(abs(read_pixels(each) or 0.0) < _MIN_SCALE for each in _NUMBERS.findall(value))


def read_margin(value: bytes) -> dict[str, float | None]:
    """Return the margins above and to the left that the shorthand states."""
    sides = value.split()
    if not 1 <= len(sides) <= 4:
        return {}
    return {
        "margin-top": read_pixels(sides[0]),
        "margin-left": read_pixels(sides[-1] if len(sides) in (1, 2, 4) else sides[1]),
    }


_TINY = ("height", "max-height", "width", "max-width")
_PLACES = ("left", "right", "top", "bottom")


def hides_by_place(declared: Mapping[str, object], is_inline: bool, is_of_table: bool) -> bool:
    """Return whether an element's box is out of sight, clipped or shrunk to nothing.

    The box of inline text has neither a height nor an indent, and cells grow with their text.
    """
    position = declared.get("position")
    is_placed = position in (b"absolute", b"fixed")
    is_inline = is_inline and not (
        is_placed
        or declared.get("float") in (b"left", b"right")
        or declared.get("display") not in (None, b"inline", b"contents")
    )
    if declared.get("hides") or declared.get("clip-path") or (is_placed and declared.get("clip")):
        return True
    if not is_inline and declared.get("transform"):
        return True
    if not (is_inline or is_of_table) and declared.get("overflow"):
        if any(_number(declared, side) < READABLE for side in _TINY):
            return True
        if _number(declared, "text-indent", 0.0) >= _FAR_RIGHT:
            return True
    far = [_number(declared, side, 0.0) for side in ("margin-left", "margin-top")]
    far += [] if is_inline else [_number(declared, "text-indent", 0.0)]
    if is_placed or position == b"relative":
        far += [_number(declared, side, 0.0) for side in _PLACES]
        if max(_number(declared, side, 0.0) for side in ("left", "right")) >= _FAR_RIGHT:
            return True
    return min(far) <= _FAR or _number(declared, "letter-spacing", 0.0) <= -MEDIUM / 2


def _number(declared: Mapping[str, object], key: str, default: float = READABLE) -> float:
    """Return a length, or the default if it is not declared."""
    value = declared.get(key)
    return value if isinstance(value, float) else default
