"""Whether anything in a document could hide text, so that its elements have to be followed.

Most documents cannot, and this is found out from their different attributes alone: nothing that
takes text away is stated, and no colour of text is near any colour of a ground.

Secret: which values rule hidden text out.
"""

import re
from functools import lru_cache

from nbspam.mail.styles.declarations import read_block
from nbspam.mail.styles.looks import BLOCK, Style
from nbspam.mail.styles.sheets import Sheet
from nbspam.mail.styles.values import BLACK, LINK, WHITE, Colour, is_near, read_legacy_colour

_MAX_KNOWN = 4096  # values and pairs of sets that are cached
_AMPERSAND = ord("&")
# Colours in attributes, after the byte before the name: a letter in bgcolor, but not in color.
_COLOUR = re.compile(rb"color(?<=(.)color)\s*+=\s*+[\"']?+\s*+([^\s\"'>]*+)", re.DOTALL)
_STYLE = re.compile(rb"style\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"']++))")
_OF_BODY = re.compile(rb"(?:text|link)\s*+=\s*+[\"']?+\s*+([^\s\"'>]*+)")
ANYTHING: tuple[bytes, ...] = ()


def can_hide(attributes: bytes, sheet: Sheet) -> tuple[bytes, ...] | None:
    """Return what could hide text: None for nothing, ANYTHING, or else only some text colours.

    attributes: of all tags of a document, in lower case.  The colours are those of <font>, as
    they are written in lower case.
    """
    found = set(_COLOUR.findall(attributes))
    grounds = {_ground(value) for before, value in found if before == b"g"} | {WHITE}
    others = {BLACK, LINK}  # colours of text that is not in <font>
    if b"text" in attributes or b"link" in attributes:
        others.update(map(_text, _OF_BODY.findall(attributes)))
    styles = list(sheet.styles())
    if b"style" in attributes:
        for double, single, bare in set(_STYLE.findall(attributes)):
            value = double or single or bare
            if _AMPERSAND in value:
                return ANYTHING
            styles.append(_style(value))
    for style in styles:
        if style.hides:
            return ANYTHING
        others.add(style.color or BLACK)
        grounds.add(style.ground or WHITE)
    if any(is_near(text, ground) for text in others for ground in grounds):
        return ANYTHING
    texts = {value for before, value in found if before != b"g"}
    return tuple([t for t in texts if any(is_near(_text(t), each) for each in grounds)]) or None


def _text(value: bytes) -> Colour:
    return read_legacy_colour(value) or BLACK


def _ground(value: bytes) -> Colour:
    return read_legacy_colour(value) or WHITE


@lru_cache(_MAX_KNOWN)
def _style(value: bytes) -> Style:
    """Return what a style attribute changes, in a box of any kind."""
    block = read_block(value)
    return Style({**block.normal, **block.important}, BLOCK, False, 0)
