"""How the text of an element looks, and why it cannot be read.

Looks are inherited: an element changes those of the element that it stands in.  Objects are
compared by identity, so that what follows from two of them is found quickly again.

Secret: how declarations add up from the root of a document to its text.
"""

from functools import lru_cache

from nbspam.mail.styles.boxes import READABLE, hides_by_place
from nbspam.mail.styles.declarations import (
    Declared,
    Value,
    colour_of,
    ground_of,
)
from nbspam.mail.styles.values import (
    BLACK,
    LINK,
    MEDIUM,
    UNKNOWN,
    WHITE,
    Colour,
    is_near,
    laid_over,
)

_MAX_KNOWN = 8192  # looks that are cached
_LARGEST = 10_000.0  # pixels of text
# Text of less opacity cannot be read, whatever the ground is.
_MIN_OPACITY = 0.1


# Kinds of boxes.
BLOCK, INLINE, TABLE = range(3)


class Style:
    """What an element changes in the looks of its text."""

    def __init__(self, declared: Declared, box: int, is_link: bool, marks: int) -> None:
        display = declared.get("display")
        self.is_own = display == b"absent"  # of its own accord, as templates are
        self.is_absent = self.is_own or display == b"none"
        self.is_away = hides_by_place(declared, box == INLINE, box == TABLE)
        self.shown: bool | None = None
        if isinstance(shown := declared.get("shown"), bool):
            self.shown = shown
        self.color = colour_of(declared, "color")
        self.ground = ground_of(declared)
        self.link = colour_of(declared, "link")
        self.is_link = is_link and self.color is None
        self.size: tuple[float, bool] = (1.0, True)
        if isinstance(size := declared.get("size"), tuple) and not isinstance(size, Colour):
            self.size = size
        self.zoom = _factor(declared, "zoom")
        self.opacity = _factor(declared, "opacity") * _factor(declared, "filter")
        self.marks = marks  # bits of the selectors' beginnings that the element matches

    @property
    def hides(self) -> bool:
        """Whether it may hide text by other means than colours."""
        size, is_relative = self.size
        return (
            self.is_absent
            or self.is_away
            or self.shown is False
            or self.opacity < 1
            or size * self.zoom < (1 if is_relative else READABLE)
            or (self.color is not None and self.color.alpha < 1)
        )


@lru_cache(_MAX_KNOWN)
def style_of(
    declared: frozenset[tuple[str, Value]], box: int, is_link: bool, marks: int
) -> Style | None:
    """Return the style of an element, None if it changes nothing."""
    style = Style(dict(declared), box, is_link, marks)
    is_plain = style.size == (1.0, True) and style.zoom == style.opacity == 1
    colours = (style.color, style.ground, style.link)
    is_plain = is_plain and colours == (None, None, None) and style.shown is None
    is_plain = is_plain and not (style.is_absent or style.is_away or is_link or marks)
    return None if is_plain else style


def _factor(declared: Declared, key: str) -> float:
    """Return a declared factor, 1 if there is none."""
    value = declared.get(key)
    return value if isinstance(value, float) else 1.0


OWN = "element"  # reason of text that no style hides


class Look:
    """How text looks; `why` says why it cannot be read, and is empty if it can."""

    def __init__(self) -> None:
        self.is_absent = False  # it takes no room
        self.is_own = False  # nor would it without any style
        self.is_away = False
        self.shown = True
        self.color = BLACK
        self.ground = WHITE  # opaque, or UNKNOWN
        self.link = LINK
        self.size = MEDIUM
        self.opacity = 1.0
        self.marks = 0
        self.why = ""

    def reason(self) -> str:
        """Return why the text cannot be read."""
        if self.is_own:
            return OWN
        if self.is_absent or not self.shown:
            return "style"
        if self.is_away:
            return "place"
        if self.size < READABLE:
            return "size"
        if self.opacity * self.color.alpha < _MIN_OPACITY:
            return "colour"
        seen = self.color
        if self.opacity < 1 or seen.alpha < 1:
            seen = laid_over(seen, self.ground, self.opacity)
        return "colour" if is_near(seen, self.ground) else ""


ROOT = Look()


@lru_cache(_MAX_KNOWN)
def look_of(parent: Look, style: Style) -> Look:
    """Return the look of text in an element of a style, which stands in text of a look."""
    look = Look()
    look.is_absent = parent.is_absent or style.is_absent
    look.is_own = parent.is_own or style.is_own
    look.is_away = parent.is_away or style.is_away
    look.shown = parent.shown if style.shown is None else style.shown
    look.link = style.link or parent.link
    look.color = look.link if style.is_link else style.color or parent.color
    look.ground = parent.ground
    if style.ground == UNKNOWN:
        look.ground = UNKNOWN
    elif style.ground is not None:
        is_opaque = style.ground.alpha == 1
        look.ground = style.ground if is_opaque else laid_over(style.ground, parent.ground)
    size, is_relative = style.size
    size *= parent.size if is_relative else 1
    look.size = min(size * style.zoom, _LARGEST)
    look.opacity = parent.opacity * style.opacity
    look.marks = parent.marks | style.marks
    look.why = look.reason()
    return look
