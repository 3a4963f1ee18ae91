"""Alternatives: which texts of a message a reader is shown, and which ones say something else.

Of alternative parts mail programs show one, and of related parts the root.  Text that they do not
show counts only where it differs from the shown text, and then as hidden.
"""

import re
from collections.abc import Sequence

from nbspam.mail.parts import SHOWN_BY_SOME, Choice, FoundText

# Two patterns that begin with a literal are five times as fast as one that does not.
_LINK = re.compile(rb"://[^\s<>\"'()\[\]{}]{1,2000}")
_BARE_LINK = re.compile(rb"www\.[^\s<>\"'()\[\]{}]{1,2000}")
_FRAMED = re.compile(
    rb"<(?:i?frame|object|embed)\b[^<>]{0,500}?\bcid:([^\s\"'<>]{1,200})", re.IGNORECASE
)
# Words that are compared between alternatives: of scripts that have words, and the characters of
# those that write without blanks.
_WORD = re.compile(rb"(?:[a-z]|[\xc3-\xdf][\x80-\xbf])++|[\xe0-\xef][\x80-\xbf]{2}")
# For bytes.translate: lower case, and a space for everything but letters.
_LETTERS = bytes(range(256)).lower()
_LETTERS = bytes(c if c > 127 or bytes([c]).isalpha() else ord(" ") for c in _LETTERS)
_MIN_LETTERS = 3  # of a word that is compared
# Alternatives may differ by this many words, such as "your mail program cannot show HTML".
_FEW_WORDS = 10


def unseen_texts(
    texts: Sequence[FoundText],
    choices: Sequence[Choice],
    sources: Sequence[bytes],
    visible: Sequence[bytes],
) -> set[int]:
    """Return the numbers of the texts that are not shown and differ from the shown ones.

    sources, visible: each text in UTF-8, and the visible part of it.
    """
    branches: list[dict[int, list[int]]] = [{} for _ in choices]
    for i, text in enumerate(texts):
        for number, branch in text.branches:
            branches[number].setdefault(branch, []).append(i)
    left_out: set[int] = set()
    differing: dict[int, set[bytes]] = {}
    # Inner choices come first: text that they hide is not shown by outer ones either.
    for own, choice in reversed(list(zip(branches, choices, strict=True))):
        if len(own) < 2:  # one text is no choice, and pictures have none
            continue
        if choice.root is None:
            shown = _shown_alternatives(own, texts)
        else:
            shown = _shown_relatives(own, choice, choice.root, sources)
        kept = [i for branch in shown for i in own.get(branch, ())]
        # Below plain text, which refers to nothing, mail programs show the other related parts.
        if choice.root is not None and not any(texts[i].is_html for i in kept):
            continue
        seen = set().union(*(_words(visible[i]) for i in kept if i not in left_out))
        for branch in own.keys() - shown:
            left_out.update(own[branch])
            for i in own[branch]:
                differing[i] = _words(visible[i]) - seen
    # All together, because an attacker can write many alternatives that differ a little.
    words = set().union(*differing.values())
    if sum(len(word) >= _MIN_LETTERS for word in words) <= _FEW_WORDS:
        return set()
    return {i for i, words in differing.items() if words}


def _shown_alternatives(own: dict[int, list[int]], texts: Sequence[FoundText]) -> set[int]:
    """Return the branches that mail programs show: one, and AMP, which some of them show."""
    rank = {branch: max(texts[i].rank for i in numbers) for branch, numbers in own.items()}
    by_some = {branch for branch in rank if rank[branch] == SHOWN_BY_SOME}
    others = rank.keys() - by_some
    return by_some | {max(others, key=lambda branch: (rank[branch], branch), default=0)}


def _shown_relatives(
    own: dict[int, list[int]], choice: Choice, root: int, sources: Sequence[bytes]
) -> set[int]:
    """Return the branches that mail programs show: the root, and documents in its frames."""
    from urllib.parse import unquote_to_bytes  # late: few messages need it

    names = [name for i in own.get(root, ()) for name in _FRAMED.findall(sources[i])]
    framed = {choice.ids.get(unquote_to_bytes(name)) for name in names}
    return {root, *(branch for branch in framed if branch is not None)}


def _words(text: bytes) -> set[bytes]:
    """Return the different words of a text, without its links."""
    text = _BARE_LINK.sub(b" ", _LINK.sub(b" ", text)).translate(_LETTERS)
    words = set(text.split())
    if not text.isascii():
        # Few different words are beyond ASCII, so only they are searched by a pattern.
        beyond = [word for word in words if not word.isascii()]
        words.difference_update(beyond)
        words.update(_WORD.findall(b" ".join(beyond)))
    return words


def links_of(text: bytes) -> list[bytes]:
    """Return the links in a text; those that begin with www. only if there are no others."""
    return _LINK.findall(text) or _BARE_LINK.findall(text)
