"""Declarations: what style attributes, presentational attributes and rules state.

A declaration that CSS calls invalid is dropped, so that it does not override a valid one.  Only
what can hide text is read; every other property is skipped.

Secret: which properties and attributes can hide text, and how their values are written.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from nbspam.mail.styles.boxes import (
    is_clipped,
    is_clipped_to_shape,
    is_scaled_away,
    is_transformed_away,
    read_margin,
)
from nbspam.mail.styles.values import (
    MEDIUM,
    UNKNOWN,
    Colour,
    read_colour,
    read_legacy_colour,
    read_length,
    read_pixels,
    read_share,
)

Value = bytes | bool | float | Colour | tuple[float, bool] | None
Declared = dict[str, Value]  # by property; None takes back what was declared before

_MAX_KNOWN = 8192  # texts of declarations that are cached
_COMMENT = re.compile(rb"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-9a-f]{1,6})\s?|\n|(.))")
_ITEMS = re.compile(rb"(?:[^;(\"']|\([^)]*\)?|\"[^\"]*\"?|'[^']*'?)+")
_WORDS = re.compile(rb"(?:[^\s(]|\([^)]*\)?)+")
_RESET = frozenset((b"inherit", b"initial", b"unset", b"revert", b"revert-layer"))
_DISPLAYS = frozenset(
    b"none inline block inline-block list-item table inline-table table-row table-cell flex grid"
    b" table-row-group table-header-group table-footer-group table-column table-column-group"
    b" table-caption inline-flex inline-grid contents flow-root run-in flow ruby".split()
)
_SIZES = {
    b"xx-small": 9.0,
    b"x-small": 10.0,
    b"small": 13.0,
    b"medium": MEDIUM,
    b"large": 18.0,
    b"x-large": 24.0,
    b"xx-large": 32.0,
    b"xxx-large": 48.0,
}
_RELATIVE_SIZES = {b"smaller": 1 / 1.2, b"larger": 1.2}
_IMAGES = (b"url(", b"gradient(", b"image(", b"image-set(", b"var(")
_OPACITY = re.compile(rb"opacity\s*(?:=|\()\s*([\d.]+%?)")


def without_comments(text: bytes) -> bytes:
    """Return CSS in lower case, without comments, and with escapes resolved."""
    if b"/*" in text:
        text = _COMMENT.sub(b"", text)
    text = text.lower()
    return _ESCAPE.sub(_escaped, text) if b"\\" in text else text


def _escaped(match: re.Match[bytes]) -> bytes:
    """Return the character of an escape."""
    if match[1]:
        number = int(match[1], 16)
        return chr(number).lower().encode("utf-8", "replace") if number < 0x110000 else b"?"
    return match[2] or b""


class Block(NamedTuple):
    """Declarations in order of their text: those without and with !important."""

    normal: Declared
    important: Declared


@lru_cache(_MAX_KNOWN)
def read_block(text: bytes) -> Block:
    """Return the declarations of a style attribute or of a rule, in lower case."""
    block = Block({}, {})
    text = without_comments(text)
    split = _ITEMS.findall(text) if b"(" in text or b"'" in text or b'"' in text else None
    for item in text.split(b";") if split is None else split:
        name, _, value = item.partition(b":")
        read = _PROPERTIES.get(name.strip())
        if read is None:
            continue
        value, bang, word = value.partition(b"!")
        value = value.strip()
        target = block.important if bang and word.strip() == b"important" else block.normal
        for key, found in read(value).items():
            target.pop(key, None)
            target[key] = found
    return block


# Presentational attributes that are read, and the elements that have them.
HINTS: dict[bytes, tuple[bytes, ...]] = {
    b"font": (b"color",),
    b"body": (b"bgcolor", b"background", b"text", b"link"),
    **dict.fromkeys(
        b"table thead tbody tfoot tr td th marquee".split(), (b"bgcolor", b"background")
    ),
}
_COLOURED = {b"color": "color", b"text": "color", b"bgcolor": "ground", b"link": "link"}


def read_hints(name: bytes, attributes: Mapping[bytes, bytes]) -> Declared:
    """Return what the presentational attributes of an element declare, by name in lower case."""
    found: Declared = {}
    if attributes.get(b"hidden", b"until-found") != b"until-found":
        found["display"] = b"none"
    for hint in HINTS.get(name, ()):
        if hint == b"background":
            if attributes.get(hint):
                found["image"] = True
        elif hint in attributes and (colour := read_legacy_colour(attributes[hint])):
            found[_COLOURED[hint]] = colour
    return found


def _one(key: str, read: Callable[[bytes], Value]) -> Callable[[bytes], Declared]:
    """Return a reader of a property with one value, which `read` turns into None if invalid."""

    def declare(value: bytes) -> Declared:
        if value in _RESET:
            return {key: None}
        found = read(value)
        return {} if found is None else {key: found}

    return declare


def _display(value: bytes) -> bytes | None:
    return value if value.split(None, 1)[:1] and value.split()[0] in _DISPLAYS else None


def _visibility(value: bytes) -> bool | None:
    return {b"visible": True, b"hidden": False, b"collapse": False}.get(value)


def _size(value: bytes) -> tuple[float, bool] | None:
    if value in _SIZES:
        return _SIZES[value], False
    if value in _RELATIVE_SIZES:
        return _RELATIVE_SIZES[value], True
    found = read_length(value)
    return found if found and found[0] >= 0 else None


def _font(value: bytes) -> Declared:
    """Return the size, the first word that can be one; a weight is a number without a unit."""
    for word in _WORDS.findall(value):
        size, slash, _ = word.partition(b"/")
        found = _size(size)
        if found and (slash or size[-1:].isalpha() or size[-1:] == b"%" or found[0] == 0):
            return {"size": found}
    return {}


def _background(value: bytes) -> Declared:
    """Return colour and image; a shorthand without a colour makes the ground transparent."""
    found: Declared = {"ground": None, "image": any(image in value for image in _IMAGES)}
    for word in _WORDS.findall(value):
        if colour := read_colour(word):
            found["ground"] = colour
    return found


def _image(value: bytes) -> bool:
    return any(image in value for image in _IMAGES)


def _clips(value: bytes) -> bool:
    return value.startswith((b"hidden", b"clip", b"auto", b"scroll"))


def _is_all(value: bytes) -> bool:
    return value == b"all"


def _is_hidden(value: bytes) -> bool:
    return value == b"hidden"


def _word(value: bytes) -> bytes:
    return value


def _filter(value: bytes) -> float | None:
    """Return the opacity of filter: opacity(0) and filter: alpha(opacity=0)."""
    match = _OPACITY.search(value)
    if match is None:
        return None
    share = read_share(match[1]) if match[1].strip(b".%") else None
    old = b"=" in match[0] and share is not None and not match[1].endswith(b"%")
    return read_share(match[1] + b"%") if old else share


def _zoom(value: bytes) -> float | None:
    share = read_length(value)
    return share[0] if share and share[0] > 0 else None


def _font_shorthand(value: bytes) -> Declared:
    return {"size": None} if value in _RESET else _font(value)


_PROPERTIES: dict[bytes, Callable[[bytes], Declared]] = {
    b"display": _one("display", _display),
    b"visibility": _one("shown", _visibility),
    b"content-visibility": _one("hides", _is_hidden),
    b"mso-hide": _one("hides", _is_all),
    b"color": _one("color", read_colour),
    b"-webkit-text-fill-color": _one("color", read_colour),
    b"background": _background,
    b"background-color": _one("ground", read_colour),
    b"background-image": _one("image", _image),
    b"font-size": _one("size", _size),
    b"font": _font_shorthand,
    b"zoom": _one("zoom", _zoom),
    b"opacity": _one("opacity", read_share),
    b"filter": _one("filter", _filter),
    b"-ms-filter": _one("filter", _filter),
    b"clip": _one("clip", is_clipped),
    b"clip-path": _one("clip-path", is_clipped_to_shape),
    b"-webkit-clip-path": _one("clip-path", is_clipped_to_shape),
    b"overflow": _one("overflow", _clips),
    b"overflow-x": _one("overflow", _clips),
    b"overflow-y": _one("overflow", _clips),
    b"position": _one("position", _word),
    b"float": _one("float", _word),
    b"transform": _one("transform", is_transformed_away),
    b"-webkit-transform": _one("transform", is_transformed_away),
    b"scale": _one("transform", is_scaled_away),
    b"block-size": _one("height", read_pixels),
    b"max-block-size": _one("max-height", read_pixels),
    b"inline-size": _one("width", read_pixels),
    b"max-inline-size": _one("max-width", read_pixels),
    b"margin": lambda value: {**read_margin(value)},
    **{
        name.encode(): _one(name, read_pixels)
        for name in (
            *("height", "max-height", "width", "max-width", "left", "top", "right", "bottom"),
            *("margin-left", "margin-top", "text-indent", "letter-spacing"),
        )
    },
}


def colour_of(declared: Declared, key: str) -> Colour | None:
    """Return a colour that is declared, or None."""
    value = declared.get(key)
    return value if isinstance(value, Colour) else None


def ground_of(declared: Declared) -> Colour | None:
    """Return the ground that is declared, UNKNOWN under an image, or None."""
    return UNKNOWN if declared.get("image") else colour_of(declared, "ground")
