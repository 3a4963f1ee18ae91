"""Style sheets: which rules apply to an element.

A selector is a list of compounds, such as `td.x` and `#y`, with what relates them: a blank, >, +
or ~.  Names, classes and ids are compared here, while the elements are walked through, so that
the time is linear in the elements; a compound with attributes or pseudo-classes is found by the
parser's own engine, which marks its elements.  A sheet is asked for a screen of 1,000 pixels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from selectolax.lexbor import SelectolaxError

from nbspam.mail import css, media
from nbspam.mail.visibility import MARK, GeneratedParts, StartTag, Style, generated_parts, style_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# What is cached: numbers, and bytes of the longest.
_MAX_SHEETS, _MAX_SHEET = 128, 20_000
_MAX_SELECTORS, _MAX_SELECTOR = 8192, 100
_MAX_STEPS = 512  # of one sheet, and contexts
_MAX_RESOLVED, _BYTES_OF_ONE = 1 << 20, 20  # bytes of variables, and of one that is inherited
_LONGEST_SELECTOR = _MAX_NESTED = 10_000  # bytes of one that is read, and of those that others add
# Bounds for hostile sheets.
_MAX_RULES = 100  # that elements with one key are compared with
_MAX_COMPARED = 1_000_000  # the same for all keys of all different start tags together
_MAX_BITS = 500  # compounds before the last one of their selector
_MAX_MARKS, _MAX_ASKED = 32, 200  # compounds that the parser looks for, and bytes of one
_END = b"\0"  # of a sheet, if another one follows; the parser lets no NUL pass

_COMPOUND = re.compile(rb"(\*|[a-z][a-z0-9-]*+)?+((?:[.#][\w\x80-\xff-]++)*+)\Z", re.IGNORECASE)
_SINGLE_KEY = re.compile(rb"\s*+(\*|[a-z][a-z0-9-]*+|[.#][\w\x80-\xff-]++)\s*+\Z", re.IGNORECASE)
_KEY = re.compile(rb"[.#][\w\x80-\xff-]++")
_PARTS = re.compile(rb"\s*([>+~])\s*|\s+|((?:[^\s>+~\[(]++|\[[^]]*\]?|\([^)]*\)?)+)")
_STRING = rb"\"[^\"]*\"?|'[^']*'?"
_BRACKETED = rb"\[(?:[^]\"']++|%b)*+\]?|\((?:[^)\"']++|%b)*+\)?" % (_STRING, _STRING)
_SELECTORS = re.compile(rb"(?:[^,\[(]++|%b)+" % _BRACKETED)
# All that selectors are written with outside of brackets, for bytes.translate.
_OF_SELECTORS = bytes(c for c in range(256) if c > 127 or chr(c).isalnum())
_OF_SELECTORS += b" \t\n\r\f\v_.#*>+~:&,|?)]-"
# Chromium knows these names, and drops all of a rule with another one, but for `::-webkit-`.
_PSEUDO_NAMES = frozenset(
    b"-webkit-any -webkit-any-link -webkit-autofill -webkit-drag -webkit-full-page-media"
    b" -webkit-full-screen -webkit-full-screen-ancestor active after any-link autofill backdrop"
    b" before checked cue default defined details-content dir disabled empty enabled"
    b" file-selector-button first first-child first-letter first-line first-of-type focus"
    b" focus-visible focus-within fullscreen future grammar-error has highlight host host-context"
    b" hover in-range indeterminate invalid is lang last-child last-of-type left link marker modal"
    b" not nth-child nth-last-child nth-last-of-type nth-of-type only-child only-of-type open"
    b" optional out-of-range part past paused picture-in-picture placeholder placeholder-shown"
    b" playing popover-open read-only read-write required right root scope selection slotted"
    b" spelling-error state target target-text user-invalid user-valid valid view-transition"
    b" visited where window-inactive".split()
)
# What the parser's engine is asked: nothing that leads it from one element to others.
_CONDITION = (
    rb"\[[^]\[(]*\]|:(?:first|last|only)-(?:child|of-type)|:(?:root|empty|checked|disabled|required"
    rb"|optional|read-only)\b"
)
_SIMPLE_PSEUDO = re.compile(
    rb"(?:" + _CONDITION + rb"|:nth-(?:last-)?(?:child|of-type)\([\dn +a-z-]{1,20}\)"
    rb"|:(?:not|is|where)\((?:(?:[\w.#*\x80-\xff-]{1,100}+|:hover|:focus|:active|"
    + _CONDITION
    + rb")(?:\s*+,\s*+)?|(?!))++\)|[\w.#*\x80-\xff-])+\Z",
    re.IGNORECASE,
)
# An attribute that an element must have, whose name the parser never spells in another way.
_DASHED = re.compile(rb"\[([a-z]+-[a-z-]+)")
_NOT = re.compile(rb"(?<![:\w-])not\b")
_OTHER_BROWSERS = (b"-moz-", b"-ms-", b"-webkit-overflow-scrolling")
# Statements without a block, such as @import.  For `|(?!)` see `headers`.
_STATEMENTS = re.compile(rb"\A(?:@[^;]*+;\s*+|(?!))++")
# Text before or after the content of elements.
_PSEUDO_ELEMENT = re.compile(rb"(.*?)::?(before|after)\Z", re.IGNORECASE | re.DOTALL)


class _Variables:
    """The variables that an element inherits; compared by identity."""

    def __init__(self, values: Mapping[bytes, bytes]) -> None:
        self.values = values


@dataclass(slots=True, eq=False)
class Context:
    """Bits and variables that an element gets from relatives; equal ones are one object."""

    # Bits of the compounds that relatives match, in the order of _RELATIONS: all elements that it
    # stands in, its parent, all siblings before it, and the last of them.
    related: tuple[int, int, int, int]
    inherited: _Variables


_RELATIONS = {b"": 0, b">": 1, b"~": 2, b"+": 3}


class _Selector(NamedTuple):
    """A selector: its compounds, and what relates each to the one before it."""

    keys: tuple[frozenset[bytes], ...]  # names, .classes and #ids of each compound
    asked: tuple[bytes, ...]  # for each compound, the query to the parser's engine, or nothing
    relations: tuple[int, ...]
    specificity: int
    all_keys: frozenset[bytes]  # of all its compounds


class GeneratedText(NamedTuple):
    """Text that a rule puts into elements."""

    is_before: bool  # their content; otherwise behind it
    parts: GeneratedParts


class _StyleRule(NamedTuple):
    """Declarations or a text, and the conditions on an element for them to apply."""

    keys: frozenset[bytes]  # names, .classes, #ids and :marks
    relation: int  # to the element that the compound before it matches, see `Context`
    needs: int  # bit of that compound; 0 for nothing
    gives: int  # bit of this compound for the ones behind it; 0 for nothing
    weight: tuple[int, int]  # specificity, and the number of the rule
    block: css.Block
    text: bytes = b""  # declarations that state or use variables
    generated: GeneratedText | None = None


_BY_WEIGHT = attrgetter("weight")
_NOTHING = css.Block({}, {})
# The number of a rule, its selector, and its declarations or text.
_Stated = tuple[int, _Selector, bytes | GeneratedText]


class AppliedRules(NamedTuple):
    """How rules apply to an element."""

    style: Style | None
    behind: Context  # of its next sibling
    inside: Context  # of its children
    texts: Sequence[GeneratedText]  # that rules put into it


class _SheetText:
    """The rules that sheets state, whatever document they are in."""

    def __init__(self, text: bytes) -> None:
        # Rules with a single key: their numbers and declarations.  And all other rules.
        self.single: dict[bytes, list[tuple[int, bytes]]] = {}
        self.others: list[_Stated] = []
        self.has_variables = b"var(" in text.lower()
        self.sheet: Sheet | None = None  # of the last document, unless it has variables
        number = 0
        for selectors, declarations in _split_rules(text):
            # By `find`, because `in` first tries to take bytes for a number: E-350.
            if selectors.find(b",") >= 0 and not _are_known(selectors):
                continue
            is_plain = selectors.find(b"[") < 0 and selectors.find(b"(") < 0
            each = selectors.split(b",") if is_plain else _SELECTORS.findall(selectors)
            parts = generated_parts(declarations)
            for written in each:
                if single := _SINGLE_KEY.match(written):
                    self.single.setdefault(single[1].lower(), []).append((number, declarations))
                elif selector := _selector(written):
                    self.others.append((number, selector, declarations))
                elif (
                    parts is not None
                    and (pseudo := _PSEUDO_ELEMENT.match(written.strip()))
                    and (selector := _selector(pseudo[1] or b"*"))
                ):
                    generated = GeneratedText(pseudo[2].lower() == b"before", parts)
                    self.others.append((number, selector, generated))
                number += 1


_sheet_text = css.remember(_MAX_SHEETS, _MAX_SHEET)(_SheetText)


def sheet_of(sheets: Sequence[bytes], tags: Sequence[StartTag]) -> "Sheet":
    """Return the rules of a document, given its sheets and its different start tags.

    Documents that differ only in single keys share one, and so what was found in it.
    """
    stated = _sheet_text(_END.join(sheets))
    present = frozenset().union(*[tag.keys for tag in tags]) if stated.others else frozenset()
    others = [rule for rule in stated.others if rule[1].all_keys <= present]
    n_keys = sum([len(tag.keys) for tag in tags])
    most = min(_MAX_RULES, _MAX_COMPARED // max(n_keys, 1)) or 1
    if stated.has_variables or any(tag.has_variables for tag in tags):
        return Sheet(stated, others, most, has_variables=True)
    sheet = stated.sheet
    if sheet is None or (sheet.others, sheet.most) != (others, most):
        sheet = stated.sheet = Sheet(stated, others, most, has_variables=False)
    return sheet


class Sheet:
    """The rules of a document that could apply to its elements."""

    def __init__(
        self, stated: _SheetText, others: list[_Stated], most: int, *, has_variables: bool
    ) -> None:
        """others: rules with several keys, all in the document.  most: rules of one key."""
        self.others, self.most, self.has_variables = others, most, has_variables
        self.has_texts = False  # whether rules put some into elements
        self.marks: dict[bytes, bytes] = {}  # compounds for the parser's engine, and their keys
        self._asked = [0, 0, 0, 0]  # bits that rules ask for, by relation
        self._single = stated.single
        self._others: dict[bytes, list[_StyleRule]] = {}  # by their rarest key
        self._rules: dict[bytes, list[_StyleRule]] = {}  # of keys that were looked up
        self._steps: dict[tuple[StartTag, Context], AppliedRules] = {}
        self._contexts: dict[Any, Context] = {}
        self._blocks: dict[bytes, tuple[css.Block, bytes]] = {}  # of long declarations
        self._bits = 0
        self._left = _MAX_RESOLVED
        for rule in others:
            self._add(*rule)
        self._keys = {*self._single, *self._others}
        self.root = self._context((0, 0, 0, 0), _Variables({}))  # of a document's first element
        # Whether rules depend on other elements, so that all of them have to be entered.
        self.asks_for_relatives = self._bits > 0 or has_variables or self.has_texts

    def enter(self, tag: StartTag, context: Context) -> AppliedRules:
        """Return how rules apply to an element in a context."""
        return self._steps.get((tag, context)) or self._step(tag, context)

    def mark(self, trees: Sequence["LexborHTMLParser"], written: bytes) -> bool:
        """Mark elements that match compounds of the parser's engine; return whether any does.

        written: the trees as markup.
        """
        # Pseudo-classes compare siblings: the time is quadratic in them.
        alone = len(trees) == 1
        marks = {
            compound: key
            for compound, key in self.marks.items()
            if alone or b":" not in compound
            if not (name := _DASHED.search(compound)) or written.find(b" " + name[1]) >= 0
        }
        changed = [_mark(tree, marks) for tree in trees if marks]
        return any(changed)

    def _block(self, declarations: bytes) -> tuple[css.Block, bytes]:
        """Return the declarations of a rule, and their text if they depend on variables."""
        found = self._blocks.get(declarations)
        if found is None:
            text = declarations.lower()
            has_own = self.has_variables and b"--" in text
            found = (_NOTHING, text) if has_own else (css.read_block(text), b"")
            if len(declarations) > css.MAX_BLOCK:
                self._blocks[declarations] = found
        return found

    def _add(self, number: int, selector: _Selector, stated: bytes | GeneratedText) -> None:
        """Add a rule with several keys, a query or a text, unless there are too many."""
        block, variables, text = _NOTHING, b"", None
        if isinstance(stated, GeneratedText):
            text = stated
        else:
            block, variables = self._block(stated)
        keys = list(selector.keys)
        is_empty = not (block.normal or block.important or variables or text)
        if is_empty or self._bits + len(keys) > _MAX_BITS:
            return
        self.has_texts |= text is not None
        for i, compound in enumerate(selector.asked):
            if compound:
                if compound not in self.marks and len(self.marks) >= _MAX_MARKS:
                    return
                mark = self.marks.setdefault(compound, b":%d" % len(self.marks))
                keys[i] = frozenset((mark,))
        rules, needs = [], 0
        for relation, each in zip(selector.relations, keys[:-1], strict=False):
            self._bits += 1
            gives = 1 << self._bits
            rules.append(_StyleRule(each, relation, needs, gives, (0, number), _NOTHING))
            needs = gives
        relation, weight = selector.relations[-1], (selector.specificity, number)
        rules.append(_StyleRule(keys[-1], relation, needs, 0, weight, block, variables, text))
        for rule in rules:
            self._asked[rule.relation] |= rule.needs
            rarest = max(rule.keys, key=lambda key: (_weight_of(key), key))
            self._others.setdefault(rarest, []).append(rule)

    def _rules_of(self, key: bytes) -> list[_StyleRule]:
        """Return the rules that elements with a key are compared with."""
        rules = self._rules.get(key)
        if rules is None:
            rules = [*self._others.get(key, ())]
            keys, specificity = frozenset((key,)), _weight_of(key)
            for number, declarations in self._single.get(key, ()):
                block, text = self._block(declarations)
                if block.normal or block.important or text:
                    weight = specificity, number
                    rules.append(_StyleRule(keys, 0, 0, 0, weight, block, text))
            if len(rules) > self.most:
                rules = _bounded(rules, self.most)
            self._rules[key] = rules
            if not rules:
                self._keys.discard(key)
        return rules

    def style(self, tag: StartTag) -> Style | None:
        """Return the style of an element, if no rule asks for other elements."""
        if self._keys.isdisjoint(tag.keys):
            return tag.style
        return self.enter(tag, self.root).style

    def _step(self, tag: StartTag, context: Context) -> AppliedRules:
        rules, gives = self._matching(tag, context.related)
        outer, parent, earlier, _ = context.related
        inherited, texts = context.inherited, {}
        within, directly, after, next_to = self._asked
        related = outer, parent, (earlier | gives) & after, gives & next_to
        behind = self._context(related, inherited) if after or next_to else context
        if self.has_variables:
            style, inherited = self._resolved(tag, rules, inherited)
        elif rules:
            style = style_of(tag.name, tag.attributes, [rule.block for rule in rules])
        else:
            style = tag.style
        if self.has_texts:  # the strongest on each side
            texts = {each.generated.is_before: each.generated for each in rules if each.generated}
        inside = self._context(((outer | gives) & within, gives & directly, 0, 0), inherited)
        step = AppliedRules(style, behind, inside, [*texts.values()])
        if tag.is_cached:
            if len(self._steps) >= _MAX_STEPS:
                self._steps.clear()
            self._steps[tag, context] = step
        return step

    def _context(self, related: tuple[int, int, int, int], inherited: _Variables) -> Context:
        found = self._contexts.get((related, inherited))
        if found is None:
            if len(self._contexts) >= _MAX_STEPS:
                self._contexts.clear()
            found = self._contexts[related, inherited] = Context(related, inherited)
        return found

    def _resolved(
        self, tag: StartTag, rules: Sequence[_StyleRule], inherited: _Variables
    ) -> tuple[Style | None, _Variables]:
        """Return the style of an element under rules with variables, and its variables."""
        own = tag.attributes.get(b"style", b"")
        texts = [*[rule.text for rule in rules], own] if self._left > 0 else []
        text = b";".join([each for each in texts if b"--" in each])
        if not text:
            return style_of(tag.name, tag.attributes, [rule.block for rule in rules]), inherited
        variables = css.custom_properties(text, inherited.values)
        texts = [css.with_values(each, variables) for each in texts]
        self._left -= sum(map(len, texts)) + _BYTES_OF_ONE * len(inherited.values)
        *stated, own = texts
        blocks = [
            css.read_block(each) if each else rule.block
            for rule, each in zip(rules, stated, strict=True)
        ]
        attributes = {**tag.attributes, b"style": own}
        inside = inherited if variables is inherited.values else _Variables(variables)
        return style_of(tag.name, attributes, blocks), inside

    def _matching(self, tag: StartTag, related: Sequence[int]) -> tuple[list[_StyleRule], int]:
        """Return the rules that apply to an element, the weakest first, and its bits."""
        rules: list[_StyleRule] = []
        for key in self._keys & tag.keys:
            found = self._rules_of(key)
            if key in self._others:
                found = [
                    rule
                    for rule in found
                    if rule.needs & related[rule.relation] == rule.needs and rule.keys <= tag.keys
                ]
            rules += found
        if len(rules) > 1:
            rules.sort(key=_BY_WEIGHT)
        if not self._bits:
            return rules, 0
        gives = 0
        for rule in rules:
            gives |= rule.gives
        own = [rule for rule in rules if rule.block is not _NOTHING or rule.text or rule.generated]
        return own, gives


def _bounded(stated: list[_StyleRule], most: int) -> list[_StyleRule]:
    """Return the first rules of those with one key, with all later ones that are like the last."""
    stated.sort(key=lambda rule: rule.weight[1])
    rules = stated[:most]
    for rule in stated[most:]:
        conditions, last = (*rule[:4], rule.weight[0], rule.text), rules[-1]
        if conditions == (*last[:4], last.weight[0], b""):
            # Alike rules beyond the bound are together one, so any number of them is used.
            blocks = zip(last.block, rule.block, strict=True)
            block = css.Block(*[{**weaker, **stronger} for weaker, stronger in blocks])
            rules[-1] = rule._replace(block=block)
    return rules


def _are_known(selectors: bytes) -> bool:
    """Return whether browsers know all selectors of a rule, which they drop otherwise."""
    if selectors.find(b"(") >= 0 or selectors.find(b"[") >= 0:
        selectors = re.sub(_BRACKETED, b"]", selectors)  # `:is(…)` takes anything
    are_written = all(map(bytes.strip, selectors.split(b",")))
    if not are_written or selectors.translate(None, _OF_SELECTORS):
        return False
    if selectors.find(b":") < 0:
        return True
    names = re.findall(rb":(?!(?<=::)-webkit-)([\w-]++)", selectors.lower())
    return _PSEUDO_NAMES.issuperset(names)


@css.remember(_MAX_SELECTORS, _MAX_SELECTOR)
def _selector(text: bytes) -> _Selector | None:
    """Return the parts of a selector, None if it is not read."""
    if len(text) > _LONGEST_SELECTOR:
        return None
    keys, asked, roots = [], [], 0
    compounds, relations = _compounds(text)
    for compound in compounds:
        for harmless in (b":link", b":any-link", b":defined"):
            compound = compound.removesuffix(harmless)
        if compound in (b":root", b":scope"):
            compound, roots = b"html", roots + 1
        plain, match = None, _COMPOUND.match(compound)
        if match and compound:
            plain = frozenset(_KEY.findall(match[2].lower()))
            plain |= {match[1].lower()} if match[1] else set()
        if plain is None and not (len(compound) <= _MAX_ASKED and _SIMPLE_PSEUDO.match(compound)):
            return None
        keys.append(plain or frozenset())
        asked.append(compound if plain is None else b"")
    if not keys:
        return None
    # A pseudo-class weighs as much as a class does.
    specificity = sum([sum(map(_weight_of, each)) for each in keys])
    specificity += 1000 * sum(map(bool, asked)) + 999 * roots
    numbers = tuple([_RELATIONS[relation] for relation in relations])
    return _Selector(tuple(keys), tuple(asked), numbers, specificity, frozenset().union(*keys))


def _compounds(selector: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the compounds of a selector, none if it is invalid, and what precedes each."""
    compounds: list[bytes] = []
    relations = [b""]
    for relation, compound in _PARTS.findall(selector.strip()):
        if compound:
            compounds.append(compound)
            relations.append(b"")
        elif relation:
            if relations[-1] or not compounds:
                return [], []
            relations[-1] = relation
    return ([], []) if relations[-1] else (compounds, relations[:-1])


def _weight_of(key: bytes) -> int:
    """Return the specificity of a key: ids before classes before names."""
    if key.startswith(b"#"):
        return 1_000_000
    if key.startswith(b"."):
        return 1000
    return 0 if key == b"*" else 1


def _split_rules(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the selectors and the declarations of rules that apply on a screen.

    As in browsers, blocks left open apply, rules may stand in rules, and a bracket that closes
    nothing spoils the rule behind it.
    """
    left = _MAX_NESTED + len(text)  # bytes of selectors that rules in rules add
    for sheet in map(css.without_comments, text.split(_END)):
        # The selectors of each open block; none in groups, and None where no rule applies.
        blocks: list[bytes | None] = [b""]
        spoiling = b""
        for chunk in sheet.replace(b"<!--", b" ").replace(b"-->", b" ").split(b"}"):
            *opened, declarations = chunk.split(b"{")
            for prelude in opened:
                around = blocks[-1]
                if around:
                    stated, _, prelude = prelude.rpartition(b";")
                    if left >= 0:
                        left -= (around.count(b",") + 1) * len(prelude)
                        left -= (prelude.count(b",") + prelude.count(b"&") + 1) * len(around)
                    if left < 0:  # then a rule applies whatever is around it
                        around, prelude = b"", prelude.replace(b"&", b"")
                    elif stated:
                        yield around, stated
                blocks.append(_selected(around, spoiling + prelude))
                spoiling = b""
            if len(blocks) == 1:
                spoiling = b"}"
            elif selectors := blocks.pop():
                yield selectors, declarations


def _selected(around: bytes | None, prelude: bytes) -> bytes | None:
    """Return the selectors of a block, given those of the block around it."""
    prelude = prelude.strip()
    if prelude.startswith(b"@"):
        prelude = _STATEMENTS.sub(b"", prelude, 1)
    if around is None or not prelude or prelude.find(b";") >= 0 or prelude.find(b"}") >= 0:
        return None
    if prelude.startswith(b"@"):
        group = prelude.lower()
        if group.startswith(b"@media"):
            applies = media.is_for_screen(group[6:])
        elif group.startswith(b"@supports"):  # all that mail asks for, but for other browsers
            is_other = any(feature in group for feature in _OTHER_BROWSERS)
            applies = is_other == bool(_NOT.search(group))
        else:
            applies = group.startswith(b"@layer")  # mail has no @container
        return around if applies else None
    if not around:
        return prelude
    pairs = product(_SELECTORS.findall(around), _SELECTORS.findall(prelude))
    return b",".join([b.replace(b"&", a) if b"&" in b else a + b" " + b for a, b in pairs])


def _mark(tree: "LexborHTMLParser", marks: Mapping[bytes, bytes]) -> bool:
    """Mark the elements that match compounds; return whether there are any.

    marks: compounds, and the keys of elements that match.
    """
    found: dict[int, tuple[LexborNode, list[bytes]]] = {}
    for compound, key in marks.items():
        with suppress(SelectolaxError):  # no selector that the parser's engine reads
            for node in tree.css(compound.decode("utf-8", "replace")):
                found.setdefault(node.mem_id, (node, []))[1].append(key)
    for node, keys in found.values():
        node.attrs[MARK.decode()] = b" ".join(keys).decode()
    return bool(found)
