"""Whether anything in a document could hide text, so that its elements have to be followed.

Most documents cannot, and this is found out from their different attributes alone: nothing that
takes text away is stated, and no colour of text is near any colour of a ground.

Secret: which values rule hidden text out.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from nbspam.mail.styles.declarations import read_block
from nbspam.mail.styles.looks import BLOCK, Style
from nbspam.mail.styles.sheets import Sheet
from nbspam.mail.styles.values import BLACK, LINK, WHITE, Colour, is_near, read_legacy_colour

_MAX_KNOWN = 4096  # values that are cached
# Bounds for hostile colours: pairs that are compared, and values that every tag is searched for.
# Beyond them all elements are followed, which takes linear time.
_MAX_PAIRS, _MAX_VALUES = 4096, 64
_AMPERSAND = ord("&")
# Colours in attributes, after the byte before the name: a letter in bgcolor, but not in color.
_VALUE = rb"\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"'>]*+))"
_COLOUR = re.compile(rb"color(?<=(.)color)" + _VALUE, re.DOTALL)
_OF_BODY = re.compile(rb"(?:text|link)" + _VALUE)
_STYLE = re.compile(rb"style" + _VALUE)


class Doubt(NamedTuple):
    """What could hide text in a document."""

    values: tuple[bytes, ...]  # of attributes, as written but in lower case; none for anything
    has_links: bool  # whether links could, by their colour


_RULE = b">"  # stands for a rule, whose elements no value tells
ANYTHING = Doubt((), True)


def can_hide(attributes: bytes, sheet: Sheet) -> Doubt | None:
    """Return what in a document could hide text, None for nothing.

    attributes: of all its tags, in lower case.
    """
    # Colours and declarations by the values that state them; an empty value for those of no tag.
    texts, grounds, links = {(b"", BLACK)}, {(b"", WHITE)}, {(b"", LINK)}
    values = []
    for before, *alternatives in set(_COLOUR.findall(attributes)):
        value = max(alternatives, key=len)
        colour = read_legacy_colour(value)
        if colour is not None:
            (grounds if before == b"g" else texts).add((value, colour))
        values.append(value)
    if b"text" in attributes or b"link" in attributes:
        for alternatives in set(_OF_BODY.findall(attributes)):
            value = max(alternatives, key=len)
            values.append(value)
            links.add((value, read_legacy_colour(value) or BLACK))
    hiding = []
    if b"style" in attributes:
        for alternatives in set(_STYLE.findall(attributes)):
            value = max(alternatives, key=len)
            values.append(value)
            style = _style(value)
            if style.hides:
                hiding.append(value)
            texts.add((value, style.color or BLACK))
            grounds.add((value, style.ground or WHITE))
    for style in sheet.styles():
        if style.hides:
            return ANYTHING
        if style.color:
            texts.add((_RULE, style.color))
        if style.ground:
            grounds.add((_RULE, style.ground))
    if any(_AMPERSAND in value for value in values):
        return ANYTHING
    return _doubt(hiding, texts, grounds, links)


def _doubt(
    hiding: list[bytes],
    texts: set[tuple[bytes, Colour]],
    grounds: set[tuple[bytes, Colour]],
    links: set[tuple[bytes, Colour]],
) -> Doubt | None:
    """Return which colours of texts are near which grounds, together with what hides itself."""
    if len(texts | links) * len(grounds) > _MAX_PAIRS:
        return ANYTHING
    near = [
        (text, ground)
        for text, colour in texts | links
        for ground, behind in grounds
        if is_near(colour, behind)
    ]
    if not near and not hiding:
        return None
    if any(_RULE in pair for pair in near):
        return ANYTHING
    has_links = any(is_near(colour, behind) for _, colour in links for _, behind in grounds)
    found = {*hiding, *(value for pair in near for value in pair)} - {b""}
    return ANYTHING if len(found) > _MAX_VALUES else Doubt(tuple(found), has_links)


@lru_cache(_MAX_KNOWN)
def _style(value: bytes) -> Style:
    """Return what a style attribute changes, in a box of any kind."""
    block = read_block(value)
    return Style({**block.normal, **block.important}, BLOCK, False, 0)
