"""Text that is not plain ASCII to one normal form, and what was odd about it.

NFKC and case folding; invisible characters dropped; look-alikes from other alphabets
inside Latin words made Latin; runs of Chinese, Japanese and Thai cut into pairs of
characters, since they have no spaces; everything that is no letter, mark or digit a space.

Secret: what two spellings must share to be the same token.
"""

import re
import unicodedata
from functools import cache
from typing import Any

# Cyrillic and Greek letters, case folded, that readers take for Latin ones.
_LOOK_ALIKES = str.maketrans(
    "авгеѕіјӏкмнорстухѡԁһԛԝьαβγεικνορτυχω",
    "abresijlkmhopctyxwdhqwbabyeikvoptuxw",
)


# Most text that is not ASCII is Western European: one quick look spares it the slow ones.
_FULLWIDTH = re.compile("[\uff21-\uff3a\uff41-\uff5a]{2}")
_OTHER_ALPHABET = re.compile("[\u0370-\u03ff\u0400-\u052f\u1f00-\u1fff]")


@cache
def _patterns() -> dict[str, Any]:
    """Compile what needs the regex module, when the first text asks for it."""
    import regex

    invisible = (
        r"[\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]++"
    )
    other = r"[\p{Cyrillic}\p{Greek}]"
    letter = r"[\p{Latin}\p{Cyrillic}\p{Greek}\d]"
    return {
        # Sorting marks takes quadratic time; no script stacks thirty.
        "marks": regex.compile(r"(\p{M}{30})\p{M}++"),
        "invisible": regex.compile(invisible),
        "split": regex.compile(f"[A-Za-z]{invisible}[A-Za-z]"),
        "mixed": regex.compile(
            rf"(?<!{letter})(?=\d*+(?:\p{{Latin}}[\p{{Latin}}\d]*+{other}"
            rf"|{other}[\p{{Cyrillic}}\p{{Greek}}\d]*+\p{{Latin}})){letter}++"
        ),
        "spaceless": regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}ー々]+"),
        "other": regex.compile(r"[^\p{L}\p{M}\p{N}\x00-\x7f]+"),
    }


def normalize(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return UTF-8 text in normal form, and facts: fullwidth, homoglyph, zero-width.

    Lines of ASCII come back as they are: their case is the tokenizer's to fold.
    """
    lines = text.split(b"\n")
    places = [i for i, line in enumerate(lines) if not line.isascii()]
    if not places:
        return text, ()
    # All odd lines at once, so that each pattern runs once.
    odd, facts = _normal_form(b"\n".join(lines[i] for i in places).decode("utf-8", "replace"))
    for i, line in zip(places, odd.encode("utf-8", "replace").split(b"\n"), strict=True):
        lines[i] = line
    return b"\n".join(lines), facts


def _normal_form(original: str) -> tuple[str, tuple[str, ...]]:
    """Return lines in normal form, as many as there were, and facts."""
    patterns = _patterns()
    facts = []
    visible = patterns["invisible"].sub("", original)
    if visible != original and patterns["split"].search(original):
        facts.append("zero-width")
    if _FULLWIDTH.search(original):
        facts.append("fullwidth")
    visible = patterns["marks"].sub(r"\1", visible)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    latin = folded
    if _OTHER_ALPHABET.search(folded):
        latin = patterns["mixed"].sub(_to_latin, folded)
        if latin != folded:
            facts.append("homoglyph")
    words: str = patterns["other"].sub(" ", latin)
    cut: str = patterns["spaceless"].sub(_to_pairs, words)
    return cut, tuple(sorted(facts))


def _to_latin(match: Any) -> str:
    """Return a word of mixed alphabets in Latin letters, if that is what it mostly is."""
    word: str = match.group()
    latin = word.translate(_LOOK_ALIKES)
    n_latin = sum("a" <= c <= "z" for c in word)
    return latin if latin.isascii() or 2 * n_latin >= len(word) else word


def _to_pairs(match: Any) -> str:
    """Return a run of characters as overlapping pairs, spaced."""
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join(run[i : i + 2] for i in range(len(run) - 1)) + " "
