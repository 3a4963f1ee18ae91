"""Fonts for the letters of a picture: matplotlib's own, and one that has what it lacks.

Secret: how a font is found that has Chinese, Arabic or other letters.
"""

from functools import cache

_OWN = "DejaVu Sans"  # comes with matplotlib
_NO_LETTERS = "Last Resort"  # its glyphs are frames that name a script


def families_for(text: str) -> tuple[list[str], str]:
    """Return families of fonts that have the letters of a text, and the letters none has.

    Each letter is drawn with the first family that has it.
    """
    from matplotlib.font_manager import findfont, fontManager

    lacking = {ord(letter) for letter in text} - _letters(findfont(_OWN))
    if not lacking:
        return [_OWN], ""
    best, found = _OWN, frozenset[int]()
    for font in fontManager.ttflist:
        if not font.name.startswith(_NO_LETTERS):
            has = _letters(font.fname) & lacking
            if len(has) > len(found):
                best, found = font.name, has
    families = [_OWN] if best == _OWN else [_OWN, best]
    return families, "".join(map(chr, sorted(lacking - found)))


@cache
def _letters(path: str) -> frozenset[int]:
    """Return the code points that a font has; none if its file cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
