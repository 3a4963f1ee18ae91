"""Style sheets: their rules, which of them apply to an element, and its style.

Selectors are lists of compounds of an element's name, classes and an id, with ancestors before
them.  Rules with other selectors (attributes, siblings, most pseudo-classes) are not used, nor
those of other media than a screen of a window of 1,000 pixels.

Secret: which rules apply to an element, and which of their declarations win.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from nbspam.mail.references import unescape_references
from nbspam.mail.styles.declarations import (
    HINTS,
    Block,
    Declared,
    read_block,
    read_hints,
    without_comments,
)
from nbspam.mail.styles.looks import BLOCK, INLINE, TABLE, Style, style_of
from nbspam.mail.styles.values import VIEW, read_pixels

_MAX_SHEETS, _MAX_STYLES, _MAX_MATCHES = 256, 16384, 1024  # cached
# Bounds for hostile sheets: rules that one key has to be compared with, and compounds before
# the last one of a selector.
_MAX_RULES, _MAX_MARKS = 100, 500

_ATTRIBUTE = re.compile(
    rb"([^\s=/>\"']++)(?:\s*+=\s*+(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^\s>]*+)))?+"
)
# Attributes that are read: of any element, of some, and to select elements by rules.
_ALWAYS, _SELECTING = (b"style", b"hidden"), (b"class", b"id")
_ALONE = {name: _ALWAYS + hints for name, hints in HINTS.items()}
_ALONE |= {b"dialog": (*_ALWAYS, b"open")}
_HREF = re.compile(rb"href(?<=[\s/\"']href)\s*+=")
_COMPOUND = re.compile(rb"(\*|[a-z][a-z0-9-]*+)?+((?:[.#][\w\x80-\xff-]++)*+)\Z")
_KEY = re.compile(rb"[.#][\w\x80-\xff-]++")
_CHUNK = re.compile(rb"([^{}]*+)([{}])")
_GROUPS = (b"@media", b"@supports", b"@layer", b"@container")
_FEATURE = re.compile(rb"\(\s*(min|max)-(?:device-)?width\s*:\s*([^()]*)\)")

# What a mail program hides of its own accord.  Of a list of options at most one is seen.
_ABSENT: Declared = {"display": b"absent"}
_OWN: dict[bytes, Declared] = {
    **dict.fromkeys(
        b"template noframes iframe datalist option optgroup rp title".split(), _ABSENT
    ),
    b"small": {"size": (1 / 1.2, True)},
    b"big": {"size": (1.2, True)},
}
STYLED_NAMES = _OWN.keys() | {b"dialog"}  # even without attributes and rules
# Names of elements that can hide their text without any attribute.
HIDING_NAMES = frozenset(b"template noframes iframe datalist rp small dialog".split())
_INLINE = frozenset(
    b"a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd label nobr q s samp small"
    b" span strike strong sub sup tt u var".split()
)
_OF_TABLES = frozenset(b"table tbody td tfoot th thead tr".split())


class _Rule(NamedTuple):
    """Declarations, and what an element must be for them to apply."""

    keys: frozenset[bytes]  # names, .classes and #ids
    needs: int  # bit of what must be matched by ancestors; 0 for nothing
    gives: int  # bit of what is matched for elements inside; 0 for nothing
    weight: tuple[int, int]  # specificity, and the number of the rule
    block: Block


_NOTHING = Block({}, {})
Attributes = tuple[tuple[bytes, bytes], ...]  # names and values


class Sheet:
    """The rules of a document, and the styles of elements by their tags."""

    def __init__(self, text: bytes = b"") -> None:
        self._rules: dict[bytes, list[_Rule]] = {}
        self._keys = {b"*"}  # of all rules
        self._matched: dict[tuple[frozenset[bytes], int], list[_Rule]] = {}
        self._count = self._marks = 0
        for selectors, declarations in _rules(text):
            block = read_block(declarations)
            if block.normal or block.important:
                for selector in selectors.split(b","):
                    self._add(selector, block)

    def styles(self) -> Iterator[Style]:
        """Yield the styles that single rules state."""
        # One block may have a hundred thousand selectors.
        blocks = {id(rule.block): rule.block for rules in self._rules.values() for rule in rules}
        for block in blocks.values():
            yield Style({**block.normal, **block.important}, BLOCK, False, 0)

    def mentions(self, name: bytes) -> bool:
        """Return whether rules apply to elements without attributes of a name."""
        return name in self._rules or b"*" in self._rules

    def _add(self, selector: bytes, block: Block) -> None:
        """Add the declarations for one selector; ignore selectors that are not read."""
        self._count += 1
        compounds = selector.replace(b">", b" ").split()
        keys = [_keys_of(each) for each in compounds]
        if not keys or None in keys or self._marks + len(keys) > _MAX_MARKS:
            return
        known = [each for each in keys if each is not None]
        needs, specificity = 0, sum(map(_specificity, known))
        for each in known[:-1]:
            self._marks += 1
            gives = 1 << self._marks
            self._put(_Rule(each, needs, gives, (0, 0), _NOTHING))
            needs = gives
        self._put(_Rule(known[-1], needs, 0, (specificity, self._count), block))

    def _put(self, rule: _Rule) -> None:
        """Put a rule where elements with its rarest key will find it."""
        self._keys |= rule.keys
        rules = self._rules.setdefault(max(rule.keys, key=_rareness), [])
        if rules and len(rule.keys) == 1 and not (rule.needs or rule.gives):
            last = rules[-1]
            if last.keys == rule.keys and not (last.needs or last.gives):
                # Together they are one rule, so that any number of them is used.
                rules[-1] = rule._replace(block=_joined(last.block, rule.block))
                return
        if len(rules) < _MAX_RULES:
            rules.append(rule)

    def attributes(self, name: bytes, written: bytes) -> Attributes:
        """Return those attributes of a start tag that count, given all of them as written."""
        wanted = _ALONE.get(name, _ALWAYS)
        written = written.lower()
        found = read_attributes(written, wanted + _SELECTING if self._rules else wanted)
        if name == b"a" and _HREF.search(b" " + written):
            found[b"href"] = b""  # which link it is makes no difference
        return tuple(found.items())

    def style(self, name: bytes, attributes: Attributes, marks: int) -> Style | None:
        """Return the style of an element, None if it changes nothing.

        marks: of the elements that it stands in.
        """
        if not self._rules:
            return _style_alone(name, attributes)
        known = dict(attributes)
        keys = {b"*", name, *[b"." + each for each in known.get(b"class", b"").split()]}
        keys.add(b"#" + known.get(b"id", b"").strip())
        return _style(name, known, self._matches(frozenset(keys & self._keys), marks))

    def _matches(self, keys: frozenset[bytes], marks: int) -> list[_Rule]:
        """Return the rules that apply to elements with some keys, the weakest first."""
        if (keys, marks) in self._matched:
            return self._matched[keys, marks]
        found = [
            rule
            for key in keys & self._rules.keys()
            for rule in self._rules[key]
            if rule.needs & marks == rule.needs and rule.keys <= keys
        ]
        found.sort(key=_weight)
        if len(self._matched) >= _MAX_MATCHES:
            self._matched.clear()
        self._matched[keys, marks] = found
        return found


def read_attributes(written: bytes, wanted: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return some attributes of a tag by name; of equal names the first counts.

    written: in lower case.
    """
    found: dict[bytes, bytes] = {}
    for name in wanted:  # most tags have none of them
        if name in written:
            break
    else:
        return found
    for name, *values in _ATTRIBUTE.findall(written):
        if name in wanted and name not in found:
            found[name] = unescape_references(values[0] or values[1] or values[2])
    return found


@lru_cache(_MAX_STYLES)
def _style_alone(name: bytes, attributes: Attributes) -> Style | None:
    """Return the style of an element to which no rules apply."""
    return _style(name, dict(attributes), ())


def _style(name: bytes, attributes: dict[bytes, bytes], rules: Iterable[_Rule]) -> Style | None:
    """Return the style of an element to which rules apply, the weakest first."""
    own = _OWN.get(name, {})
    normal, important = {**own, **read_hints(name, attributes)}, Declared()
    gives = 0
    for rule in rules:
        gives |= rule.gives
        normal.update(rule.block.normal)
        important.update(rule.block.important)
    if b"style" in attributes:
        block = read_block(attributes[b"style"])
        normal.update(block.normal)
        important.update(block.important)
    declared = {**normal, **important}
    if name == b"dialog" and b"open" not in attributes:
        declared["display"] = b"none"
    box = INLINE if name in _INLINE else TABLE if name in _OF_TABLES else BLOCK
    is_link = name == b"a" and b"href" in attributes
    return style_of(frozenset(declared.items()), box, is_link, gives)


@lru_cache(_MAX_SHEETS)
def read_sheet(text: bytes) -> Sheet:
    """Return the style sheet of a text; all sheets of a document are one."""
    return Sheet(text)


def _weight(rule: _Rule) -> tuple[int, int]:
    return rule.weight


def _joined(first: Block, second: Block) -> Block:
    """Return the declarations of two rules of equal weight, the second being stronger."""
    return Block({**first.normal, **second.normal}, {**first.important, **second.important})


def _rareness(key: bytes) -> tuple[bool, bool, bytes]:
    return key.startswith(b"#"), key.startswith(b"."), key


def _specificity(keys: frozenset[bytes]) -> int:
    """Return the weight of a compound: ids before classes before names."""
    return sum(
        1_000_000 if key.startswith(b"#") else 1000 if key.startswith(b".") else key != b"*"
        for key in keys
    )


@lru_cache(_MAX_STYLES)
def _keys_of(compound: bytes) -> frozenset[bytes] | None:
    """Return what an element must have to match a compound, None if that is not known."""
    for harmless in (b":link", b":any-link"):
        compound = compound.removesuffix(harmless)
    match = _COMPOUND.match(compound)
    if not compound or match is None:
        return None
    keys = {match[1]} if match[1] else set()
    return frozenset(keys | set(_KEY.findall(match[2])))


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
        elif prelude.startswith(_GROUPS):
            groups.append(groups[-1] and _applies(prelude))
        elif prelude.startswith(b"@"):
            groups.append(False)
        else:
            selectors = prelude


def _applies(prelude: bytes) -> bool:
    """Return whether the rules of a group are for a screen."""
    return not prelude.startswith(b"@media") or is_for_screen(prelude[len(b"@media") :])


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


NO_SHEET = Sheet()
