"""Whether a reader sees the text of an element, and why not.

A style is what one element changes: by its name, its attributes, and the rules of style sheets
that select it.  A look is what its text gets from all elements around it.  Both are compared by
identity, so that what follows from two of them is found quickly again.
`docs/explanation/visibility.md` says what counts.

A selector is a list of compounds, such as `td.x` and `#y`, with what relates them: a blank, >, +
or ~.  Names, classes and ids are compared here, while the elements are walked through, so that
the time is linear in the elements; a compound with attributes or pseudo-classes is found by the
parser's own engine, which marks its elements.  A sheet is asked for a screen of 1,000 pixels.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nbspam.mail.css import (
    BLACK,
    FAR,
    FAR_RIGHT,
    LINK,
    MEDIUM,
    READABLE,
    UNKNOWN,
    VIEW,
    WHITE,
    Block,
    Colour,
    Declared,
    Value,
    is_near,
    laid_over,
    read_block,
    read_hints,
    read_pixels,
    without_comments,
)

_MAX_KNOWN = 8192  # styles and looks that are cached
_LARGEST = 10_000.0  # pixels of text
# Text of less opacity cannot be read, whatever the ground is.
_MIN_OPACITY = 0.1

# What a mail program hides without any style.  Of a list of options at most one is seen.
_ABSENT: Declared = {"display": b"absent"}
_OWN: dict[bytes, Declared] = {
    **dict.fromkeys(b"template datalist option optgroup rp title".split(), _ABSENT),
    b"small": {"size": (1 / 1.2, True)},
    b"big": {"size": (1.2, True)},
    b"dialog": {},  # hidden unless it is open
}
_INLINE = frozenset(
    b"a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label nobr q s samp small"
    b" span strike strong sub sup tt u var".split()
)
_OF_TABLES = frozenset(b"table tbody td tfoot th thead tr".split())
# Attributes that decide about the style of an element; of `href` only whether it is there.
STYLING = frozenset(b"style hidden open href color bgcolor background text link".split())
_TINY = ("height", "max-height", "width", "max-width")
_PLACES = ("left", "right", "top", "bottom")


class Style:
    """The changes that an element makes to the look of its text."""

    def __init__(self, declared: Declared, is_inline: bool, is_of_table: bool) -> None:
        display = declared.get("display")
        self.is_own = display == b"absent"  # hidden without any style, as templates are
        self.is_absent = self.is_own or display == b"none"
        self.is_away = _is_away(declared, is_inline, is_of_table)
        shown = declared.get("shown")
        self.shown = shown if isinstance(shown, bool) else None
        self.color = _colour(declared, "color")
        self.ground = UNKNOWN if declared.get("image") else _colour(declared, "ground")
        self.link = _colour(declared, "link")  # of the links in it
        self.is_link = declared.get("is-link") is True and self.color is None
        self.size: tuple[float, bool] = (1.0, True)
        if isinstance(size := declared.get("size"), tuple) and not isinstance(size, Colour):
            self.size = size
        self.zoom = _number(declared, "zoom", 1.0)
        self.opacity = _number(declared, "opacity", 1.0) * _number(declared, "filter", 1.0)

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

    @property
    def is_plain(self) -> bool:
        """Whether it changes nothing."""
        return (
            self.size == (1.0, True)
            and self.zoom == self.opacity == 1
            and self.color is self.ground is self.link is None
            and self.shown is None
            and not (self.is_absent or self.is_away or self.is_link)
        )


def style_of(
    name: bytes, attributes: Mapping[bytes, bytes], blocks: Sequence[Block] = ()
) -> Style | None:
    """Return the style of an element, None if it changes nothing.

    attributes: in lower case.  blocks: of the rules that apply to it, the weakest first.
    """
    if not attributes and not blocks and name not in _OWN:  # of most tags
        return None
    normal, important = {**_OWN.get(name, {}), **read_hints(name, attributes)}, Declared()
    for block in blocks:
        normal.update(block.normal)
        important.update(block.important)
    if b"style" in attributes:
        own = read_block(attributes[b"style"])
        normal.update(own.normal)
        important.update(own.important)
    declared = {**normal, **important}
    if name == b"dialog" and b"open" not in attributes:
        declared["display"] = b"none"
    if name == b"a" and b"href" in attributes:
        declared["is-link"] = True
    if not declared:
        return None
    return _style(frozenset(declared.items()), name in _INLINE, name in _OF_TABLES)


@lru_cache(_MAX_KNOWN)
def _style(
    declared: frozenset[tuple[str, Value]], is_inline: bool, is_of_table: bool
) -> Style | None:
    style = Style(dict(declared), is_inline, is_of_table)
    return None if style.is_plain else style


def _is_away(declared: Declared, is_inline: bool, is_of_table: bool) -> bool:
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
        if any(_number(declared, side, READABLE) < READABLE for side in _TINY):
            return True
        if _number(declared, "text-indent", 0.0) >= FAR_RIGHT:
            return True
    far = [_number(declared, side, 0.0) for side in ("margin-left", "margin-top")]
    far += [] if is_inline else [_number(declared, "text-indent", 0.0)]
    if is_placed or position == b"relative":
        far += [_number(declared, side, 0.0) for side in _PLACES]
        if max(_number(declared, side, 0.0) for side in ("left", "right")) >= FAR_RIGHT:
            return True
    return min(far) <= FAR or _number(declared, "letter-spacing", 0.0) <= -MEDIUM / 2


def _number(declared: Declared, key: str, default: float) -> float:
    value = declared.get(key)
    return value if isinstance(value, float) else default


def _colour(declared: Declared, key: str) -> Colour | None:
    value = declared.get(key)
    return value if isinstance(value, Colour) else None


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
    look.why = look.reason()
    return look


_MAX_PAIRS = 4096  # of colours that are compared; with more, all elements are followed


def can_hide(styles: Iterable[Style]) -> bool:
    """Return whether elements of some styles could hide text, however they are nested.

    Most documents cannot: no style takes text away, and no colour of text is near any ground.
    """
    texts, grounds = {BLACK}, {WHITE}
    for style in styles:
        if style.hides:
            return True
        texts |= {style.color or BLACK, style.link or BLACK, LINK if style.is_link else BLACK}
        grounds.add(style.ground or WHITE)
    return len(texts) * len(grounds) > _MAX_PAIRS or _clash(frozenset(texts), frozenset(grounds))


@lru_cache(_MAX_KNOWN)
def _clash(texts: frozenset[Colour], grounds: frozenset[Colour]) -> bool:
    """Return whether text of one of the colours could not be read on one of the grounds."""
    return any(is_near(text, ground) for text in texts for ground in grounds)


# Style sheets.

_MAX_SHEETS, _MAX_COMPOUNDS, _MAX_STEPS = 64, 16384, 4096  # cached
# Bounds for hostile sheets: rules that one key has to be compared with, compounds before the
# last one of a selector, and compounds that the parser's engine looks for.
_MAX_RULES, _MAX_BITS, _MAX_MARKS = 100, 500, 32

# The attribute that carries the marks of an element, and all attributes that decide about styles.
MARK = b"nbspam-mark"
_DECIDING = frozenset((b"class", b"id", MARK, *STYLING))

_COMPOUND = re.compile(rb"(\*|[a-z][a-z0-9-]*+)?+((?:[.#][\w\x80-\xff-]++)*+)\Z", re.IGNORECASE)
_KEY = re.compile(rb"[.#][\w\x80-\xff-]++")
_PARTS = re.compile(rb"\s*([>+~])\s*|\s+|((?:[^\s>+~\[(]|\[[^]]*\]?|\([^)]*\)?)+)")
_SELECTORS = re.compile(rb"(?:[^,\[(]|\[[^]]*\]?|\([^)]*\)?)+")
# What the parser's engine is asked: nothing that leads it from one element to others.
_SIMPLE_PSEUDO = re.compile(
    rb"(?:\[[^]\[(]*\]|:(?:first|last|only)-(?:child|of-type)|:root|:empty"
    rb"|:nth-(?:last-)?(?:child|of-type)\([\dn +a-z-]{1,20}\)"
    rb"|:(?:not|is|where)\([\w.#*\x80-\xff-]{1,100}\)|[\w.#*\x80-\xff-])+\Z",
    re.IGNORECASE,
)
_CHUNK = re.compile(rb"([^{}]*+)([{}])")
_GROUPS = (b"@media", b"@supports", b"@layer", b"@container")
_FEATURE = re.compile(rb"\(\s*(min|max)-(?:device-)?width\s*:\s*([^()]*)\)")


# Bits of the compounds that relatives of an element match: of all elements that it stands in, of
# its parent, of all siblings before it, and of the last of them.
_Context = tuple[int, int, int, int]
_NO_RELATIVES: _Context = (0, 0, 0, 0)
# The style of an element, the context behind it, and the one inside it.
_Step = tuple[Style | None, _Context, _Context]
_RELATIONS = {b"": 0, b">": 1, b"~": 2, b"+": 3}


class _StyleRule(NamedTuple):
    """Declarations, and what an element must be for them to apply."""

    keys: frozenset[bytes]  # names, .classes, #ids and :marks
    relation: int  # to the element that the compound before it matches, see `_Context`
    needs: int  # bit of that compound; 0 for nothing
    gives: int  # bit of this compound for the ones behind it; 0 for nothing
    weight: tuple[int, int]  # specificity, and the number of the rule
    block: Block


_NOTHING = Block({}, {})


class Sheet:
    """The rules of a document."""

    def __init__(self, text: bytes = b"") -> None:
        self.marks: dict[bytes, bytes] = {}  # compounds for the parser's engine, and their keys
        self._rules: dict[bytes, list[_StyleRule]] = {}
        self._keys = {b"*"}  # of all rules
        self._steps: dict[tuple[StartTag, _Context], _Step] = {}
        self._count = self._bits = 0
        self.has_siblings = False  # whether rules ask for siblings
        for selectors, declarations in _rules(text):
            block = read_block(declarations.lower())
            if block.normal or block.important:
                for selector in _SELECTORS.findall(selectors):
                    self._add(selector, block)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def styles(self) -> Iterator[Style]:
        """Yield the styles that single rules state."""
        # One block may have a hundred thousand selectors.
        blocks = {id(rule.block): rule.block for rules in self._rules.values() for rule in rules}
        for block in blocks.values():
            yield Style({**block.normal, **block.important}, False, False)

    def _add(self, selector: bytes, block: Block) -> None:
        """Add the declarations for one selector; ignore selectors that are not read."""
        self._count += 1
        relations, keys = [b""], []
        for relation, compound in _PARTS.findall(selector.strip()):
            if compound:
                keys.append(self._keys_of(compound))
                relations.append(b"")
            elif relation:
                relations[-1] = relation
        if not keys or None in keys or self._bits + len(keys) > _MAX_BITS:
            return
        known = [each for each in keys if each is not None]
        needs, specificity = 0, sum(map(_specificity, known))
        for relation, each in zip(relations, known[:-1], strict=False):
            self._bits += 1
            gives = 1 << self._bits
            self._put(_StyleRule(each, _RELATIONS[relation], needs, gives, (0, 0), _NOTHING))
            needs = gives
        weight = specificity, self._count
        relation = relations[len(known) - 1]
        self._put(_StyleRule(known[-1], _RELATIONS[relation], needs, 0, weight, block))

    def _keys_of(self, compound: bytes) -> frozenset[bytes] | None:
        """Return the conditions of a compound on an element, None if they are not known."""
        for harmless in (b":link", b":any-link"):
            compound = compound.removesuffix(harmless)
        keys = _plain_keys(compound)
        if keys is None and _SIMPLE_PSEUDO.match(compound):
            if compound not in self.marks and len(self.marks) < _MAX_MARKS:
                self.marks[compound] = b":%d" % len(self.marks)
            keys = frozenset((self.marks[compound],)) if compound in self.marks else None
        return keys

    def _put(self, rule: _StyleRule) -> None:
        """Put a rule where elements with its rarest key will find it."""
        self._keys |= rule.keys
        self.has_siblings |= rule.relation in (_RELATIONS[b"~"], _RELATIONS[b"+"])
        rules = self._rules.setdefault(max(rule.keys, key=_rareness), [])
        if rules and len(rule.keys) == 1 and not (rule.needs or rule.gives):
            last = rules[-1]
            if last.keys == rule.keys and not (last.needs or last.gives):
                # Together they are one rule, so that any number of them is used.
                rules[-1] = rule._replace(block=_joined(last.block, rule.block))
                return
        if len(rules) < _MAX_RULES:
            rules.append(rule)

    def step(self, tag: "StartTag", context: _Context) -> _Step:
        """Return the style of an element, and the contexts of its next sibling and children."""
        step = self._steps.get((tag, context))
        if step is None:
            blocks, gives = self._matching(tag.name, tag.attributes, context)
            outer, parent, earlier, _ = context
            behind = (outer, parent, earlier | gives, gives) if self.has_siblings else context
            style = style_of(tag.name, tag.attributes, blocks)
            step = style, behind, (outer | gives, gives, 0, 0)
            if len(self._steps) >= _MAX_STEPS:
                self._steps.clear()
            self._steps[tag, context] = step
        return step

    def _matching(
        self, name: bytes, attributes: Mapping[bytes, bytes], context: _Context
    ) -> tuple[list[Block], int]:
        """Return the declarations that apply to an element, the weakest first, and its bits."""
        keys = {b"*", name, *[b"." + each for each in attributes.get(b"class", b"").split()]}
        keys.add(b"#" + attributes.get(b"id", b"").strip())
        keys.update(attributes.get(MARK, b"").split())
        known = keys & self._keys
        rules = [
            rule
            for key in known & self._rules.keys()
            for rule in self._rules[key]
            if rule.needs & context[rule.relation] == rule.needs and rule.keys <= known
        ]
        rules.sort(key=_weight)
        gives = 0
        for rule in rules:
            gives |= rule.gives
        return [rule.block for rule in rules if rule.block is not _NOTHING], gives


class StartTag:
    """Name and attributes that decide about an element's style; equal ones are one object."""

    __slots__ = "attributes", "name", "style"

    def __init__(self, name: bytes, attributes: dict[bytes, bytes]) -> None:
        self.name = name
        self.attributes = attributes  # in lower case
        self.style = style_of(name, attributes)  # under no rules


_START_TAGS: dict[tuple[bytes, tuple[tuple[bytes, bytes], ...]], StartTag] = {}


def start_tag(name: bytes, attributes: Mapping[bytes, bytes]) -> StartTag:
    """Return the start tag of a name with those attributes that decide about its style."""
    deciding = {
        key: b"" if key == b"href" else attributes[key] for key in attributes if key in _DECIDING
    }
    key = name, tuple(deciding.items())
    tag = _START_TAGS.get(key)
    if tag is None:
        if len(_START_TAGS) >= _MAX_KNOWN:
            _START_TAGS.clear()
        tag = _START_TAGS[key] = StartTag(name, deciding)
    return tag


class StyledPath:
    """The elements from the root of a document to where a walk is, under the rules of a sheet."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._path = [_NO_RELATIVES]  # of the next element in each of them

    def enter(self, tag: StartTag) -> Style | None:
        """Enter an element, and return its style, None if it changes nothing."""
        style, self._path[-1], inside = self._sheet.step(tag, self._path[-1])
        self._path.append(inside)
        return style

    def leave(self) -> None:
        """Leave the innermost element."""
        self._path.pop()


@lru_cache(_MAX_SHEETS)
def read_sheet(text: bytes) -> Sheet:
    """Return the style sheet of a text; all sheets of a document are one."""
    return Sheet(text)


def _weight(rule: _StyleRule) -> tuple[int, int]:
    return rule.weight


def _joined(first: Block, second: Block) -> Block:
    """Return the declarations of two rules of equal weight, the second being stronger."""
    return Block({**first.normal, **second.normal}, {**first.important, **second.important})


def _rareness(key: bytes) -> tuple[bool, bool, bytes]:
    return key.startswith((b"#", b":")), key.startswith(b"."), key


def _specificity(keys: frozenset[bytes]) -> int:
    """Return the weight of a compound: ids before classes before names."""
    return sum(
        1_000_000
        if key.startswith(b"#")
        else 1000
        if key.startswith((b".", b":"))
        else key != b"*"
        for key in keys
    )


@lru_cache(_MAX_COMPOUNDS)
def _plain_keys(compound: bytes) -> frozenset[bytes] | None:
    """Return the name, classes and id of a compound, None if it has other conditions."""
    match = _COMPOUND.match(compound)
    if not compound or match is None:
        return None
    keys = {match[1].lower()} if match[1] else set()
    return frozenset(keys | set(_KEY.findall(match[2].lower())))


def _rules(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the selectors and the declarations of rules that apply on a screen."""
    text = without_comments(text).replace(b"<!--", b" ").replace(b"-->", b" ")
    groups = [True]  # whether the rules of groups that are open apply
    selectors = None
    # Only up to the last bracket: from every byte behind it the end would be searched for one.
    for before, bracket in _CHUNK.findall(text, 0, max(text.rfind(b"{"), text.rfind(b"}")) + 1):
        if bracket == b"}":
            if selectors is not None:
                if groups[-1]:
                    yield selectors, before
                selectors = None
            elif len(groups) > 1:
                groups.pop()
            continue
        prelude = before.rpartition(b";")[2].strip()
        if selectors is not None:  # a rule inside of a rule
            groups += [False, False]
            selectors = None
        elif prelude.startswith(b"@"):
            groups.append(groups[-1] and _applies(prelude.lower()))
        else:
            selectors = prelude


def _applies(prelude: bytes) -> bool:
    """Return whether the rules of a group are for a screen."""
    if prelude.startswith(b"@media"):
        return is_for_screen(prelude[len(b"@media") :])
    return prelude.startswith(_GROUPS)


def is_for_screen(media: bytes) -> bool:
    """Return whether a list of media queries is true for a screen of 1,000 pixels."""
    return any(_is_true(query.split(b" and ")) for query in media.strip().split(b","))


def _is_true(terms: list[bytes]) -> bool:
    first = terms[0].split()
    if first[:1] == [b"not"]:
        return len(terms) == 1 and len(first) == 2 and first[1] not in (b"all", b"screen")
    for term in terms:
        feature = _FEATURE.fullmatch(term.strip())
        if feature is None:
            word = term.split()[-1:] or [b"all"]
            if word[0] not in (b"all", b"screen"):
                return False
        else:
            width = read_pixels(feature[2].strip()) or 0.0
            if width > VIEW if feature[1] == b"min" else width < VIEW:
                return False
    return True
