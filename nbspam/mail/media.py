"""Media queries, and whether they are true for the screen that mail is read on."""

import re

from nbspam.mail import css
from nbspam.mail.lengths import VIEW, read_pixels

_MAX_QUERIES, _MAX_QUERY = 128, 100  # that are remembered, and their bytes
_FEATURE = re.compile(rb"\(\s*+([a-z-]++)\s*+(?:([:<>])=?+([^()]*+))?\)")
_BOUND = re.compile(rb"(min|max)-")
# A number before a feature, behind which another one may stand; and the feature before it.
_NUMBER_FIRST = rb"\(\s*+([\d.][^()<>=:]*+)%b=?+\s*+([a-z-]++)(?=\s*+[<>)])"
_TURNED = (
    (re.compile(_NUMBER_FIRST % b"<"), rb"(\2>\1) and (\2"),
    (re.compile(_NUMBER_FIRST % b">"), rb"(\2<\1) and (\2"),
)
# Features of the screen: numbers, and words.
_SCREEN: dict[bytes, float] = {
    b"width": VIEW,
    b"device-width": VIEW,
    b"height": 800.0,
    b"device-height": 800.0,
    b"color": 8.0,
    **dict.fromkeys((b"color-index", b"grid", b"monochrome"), 0.0),
    b"-webkit-device-pixel-ratio": 1.0,
}
_MANNERS = {
    b"orientation": b"landscape",
    b"prefers-color-scheme": b"light",
    b"hover": b"hover",
    b"any-hover": b"hover",
    b"pointer": b"fine",
    b"any-pointer": b"fine",
    b"prefers-reduced-motion": b"no-preference",
    b"prefers-reduced-transparency": b"no-preference",
    b"prefers-contrast": b"no-preference",
    b"forced-colors": b"none",
    b"scripting": b"none",
    b"update": b"fast",
    b"display-mode": b"browser",
    b"color-gamut": b"srgb",
    b"dynamic-range": b"standard",
}


@css.remember(_MAX_QUERIES, _MAX_QUERY)
def is_for_screen(stated: bytes) -> bool:
    """Return whether media queries are true for a light, landscape screen of 1,000 pixels."""
    for number_first, feature_first in _TURNED:
        stated = number_first.sub(feature_first, stated)
    queries = [query.strip().removeprefix(b"only ") for query in stated.split(b",")]
    return any(
        not _holds(query[4:]) if query.startswith(b"not ") else _holds(query) for query in queries
    )


def _holds(query: bytes) -> bool:
    either = [each.split(b" and ") for each in query.split(b" or ")]
    return any(all(_is_true(term.strip()) for term in terms) for terms in either)


def _is_true(term: bytes) -> bool:
    """Return whether the screen is of a medium, or has a feature."""
    feature = _FEATURE.fullmatch(term)
    if feature is None:
        return term in (b"", b"all", b"screen")
    name, sign, value = feature[1], feature[2], (feature[3] or b"").strip()
    bound, plain = _BOUND.search(name), _BOUND.sub(b"", name)
    if plain not in _SCREEN:
        manner = _MANNERS.get(plain)
        return manner == value if sign else manner not in (None, b"none", b"no-preference")
    stated, number = _SCREEN[plain], read_pixels(value) or 0.0
    if sign is None:
        return stated > 0
    if sign == b">" or (bound and bound[1] == b"min"):
        return stated >= number
    return stated <= number if sign == b"<" or bound else stated == number
