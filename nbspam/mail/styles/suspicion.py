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
_MAX_PAIRS = 4096  # of colours that are compared; with more, all elements are followed
_AMPERSAND = ord("&")
# Colours in attributes, after the byte before the name: a letter in bgcolor, but not in color.
_VALUE = rb"\s*+=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"'>]*+))"
_COLOUR = re.compile(rb"color(?<=(.)color)" + _VALUE, re.DOTALL)
# Patterns that begin with a literal are found much faster than one of alternatives.
_OF_BODY = {name: re.compile(name + _VALUE) for name in (b"text", b"link")}
_STYLE = re.compile(rb"style" + _VALUE)


def can_hide(attributes: bytes, sheet: Sheet) -> bool:
    """Return whether anything in a document could hide text.

    attributes: of all its tags, in lower case.
    """
    texts, grounds = {BLACK}, {WHITE}
    if b"href" in attributes:
        texts.add(LINK)
    for before, *alternatives in set(_COLOUR.findall(attributes)):
        value = max(alternatives, key=len)
        if _AMPERSAND in value:
            return True
        colour = read_legacy_colour(value)
        if colour is not None:
            (grounds if before == b"g" else texts).add(colour)
    for name, pattern in _OF_BODY.items():
        for alternatives in pattern.findall(attributes) if name in attributes else ():
            value = max(alternatives, key=len)
            if _AMPERSAND in value:
                return True
            texts.add(read_legacy_colour(value) or BLACK)
    styles = list(sheet.styles())
    if b"style" in attributes:
        for alternatives in set(_STYLE.findall(attributes)):
            value = max(alternatives, key=len)
            if _AMPERSAND in value:
                return True
            styles.append(_style(value))
    for style in styles:
        if style.hides:
            return True
        texts.add(style.color or BLACK)
        grounds.add(style.ground or WHITE)
    return len(texts) * len(grounds) > _MAX_PAIRS or _clash(frozenset(texts), frozenset(grounds))


@lru_cache(_MAX_KNOWN)
def _clash(texts: frozenset[Colour], grounds: frozenset[Colour]) -> bool:
    """Return whether text of one of the colours could not be read on one of the grounds."""
    return any(is_near(text, ground) for text in texts for ground in grounds)


@lru_cache(_MAX_KNOWN)
def _style(value: bytes) -> Style:
    """Return what a style attribute changes, in a box of any kind."""
    block = read_block(value)
    return Style({**block.normal, **block.important}, BLOCK, False, 0)
