"""What a token is, in plain Python, for people to read.

A token is a run of word bytes in one field, tagged by the field's origin; if asked for, also two
neighbouring ones, or a run of characters.  Its key is a hash of both.  The tokenizer says the
same without a Python object per token, and a property test holds the two equal.

Secret: which tokens a message has, how they are spelt, and which kind of evidence they are.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nbspam.mail.message import Field, Message, by_header
from nbspam.settings import TokenSettings
from nbspam.tokens.characters import folded, reference_runs
from nbspam.tokens.hashing import reference_hash, reference_pair
from nbspam.tokens.normalize import normalize

# A key leaves its low 20 bits zero, so that one sort of plain integers can carry a rider
# along: where in the batch the token stood.  The 44 bits that are left make a collision
# of any two among a million tokens a 3 % event, and a harmless one (they share counts).
RIDER_BITS = 20

BODY = "body"
PAIR = "2g"
CHARACTERS = "char"
# Evidence of one kind is one group: what the writer says, how the message travelled, what
# its markup and links are; pairs of words and runs of characters, which repeat what words
# say; and what the writer chose to say first.
GROUPS = ("text", "route", "web", "pairs", "characters", "subject")
_TEXT, _ROUTE, _WEB, _PAIRS, _CHARACTERS, _SUBJECT = range(len(GROUPS))
_GROUP_OF = {BODY: _TEXT, "subject": _SUBJECT, "nested": _TEXT, "hidden": _WEB, "alt": _WEB}
_GROUP_OF[CHARACTERS] = _CHARACTERS
_GROUP_OF |= dict.fromkeys(("url", "html", "filename", "defect"), _WEB)


@lru_cache(maxsize=8)
def word_table(punctuation: str) -> bytes:
    """Return the 256-byte table: ASCII case folded, bytes outside words to zero."""
    inside = {ord(c) for c in punctuation}
    inside |= {c for c in range(128) if chr(c).isalnum()} | set(range(128, 256))
    return bytes(ord(chr(c).lower()) if c < 128 else c for c in range(256)).translate(
        bytes(c if c in inside else 0 for c in range(256))
    )


class Token(NamedTuple):
    """One token as people see it: `subject:free`, `2g:free money`, `hello`."""

    origin: str
    text: bytes

    def __str__(self) -> str:
        text = self.text.decode("utf-8", "replace")
        return text if self.origin == BODY else f"{self.origin}:{text}"


# --- the definition, for people -------------------------------------------------------


def reference_tokens(message: Message, settings: TokenSettings) -> Iterator[Token]:
    """Yield the tokens of a message, one by one: the definition of a token."""
    table = word_table(settings.punctuation)
    for origin, text in by_header(normalized_fields(message, settings)):
        words = [word for word in text.translate(table).split(b"\0") if _fits(word, settings)]
        yield from (Token(origin, word) for word in words)
        if settings.pairs:
            yield from (
                Token(pair_origin(origin), first + b" " + second)
                for first, second in pairwise(words)
            )
        if settings.characters and has_characters(origin):
            yield from (Token(CHARACTERS, run) for run in reference_runs(folded(text)))


def normalized_fields(message: Message, settings: TokenSettings) -> Iterator[Field]:
    """Yield a message's fields ready to be cut: normal form, one per origin met."""
    facts: set[str] = set()
    for item in message.fields:
        if settings.raw or item.text.isascii():
            yield item
        else:
            text, found = normalize(item.text)
            facts.update(found)
            yield Field(item.origin, text)
    if facts:
        yield Field("defect", " ".join(sorted(facts)).encode())


def has_characters(origin: str) -> bool:
    """Return whether runs of characters are taken from fields of this origin."""
    return _GROUP_OF.get(origin, _ROUTE) in (_TEXT, _SUBJECT)


def _fits(word: bytes, settings: TokenSettings) -> bool:
    characters = len(word.decode("utf-8", "ignore"))
    return settings.min_length <= characters and 0 < len(word) <= settings.max_length


def token_of(spelling: bytes) -> Token:
    """Return the token that is spelt so; the inverse of `Token.__str__`, in bytes.

    A colon ends the origin: words hold none, unless settings give them one, but runs may.
    """
    if spelling.startswith(f"{CHARACTERS}:".encode()):
        return Token(CHARACTERS, spelling[len(CHARACTERS) + 1 :])
    origin, colon, text = spelling.rpartition(b":")
    return Token(origin.decode("utf-8", "replace") if colon else BODY, text)


def group_of(origin: str) -> int:
    """Return which of GROUPS the tokens of an origin belong to."""
    is_pair = origin == PAIR or origin.startswith(f"{PAIR}:")
    return _PAIRS if is_pair else _GROUP_OF.get(origin, _ROUTE)


def pair_origin(origin: str) -> str:
    """Return the origin of pairs of words of a field: `2g`, or `2g:subject`."""
    return PAIR if origin == BODY else f"{PAIR}:{origin}"


def reference_key(token: Token) -> int:
    """Return the key of a token: 44 bits of hash above 20 zero bits."""
    if token.origin.startswith(PAIR):
        origin = token.origin.removeprefix(PAIR).removeprefix(":") or BODY
        first, second = (reference_hash(salt_of(origin), w) for w in token.text.split(b" "))
        value = reference_pair(first, second)
    else:
        value = reference_hash(salt_of(token.origin), token.text)
    return value >> RIDER_BITS << RIDER_BITS


@lru_cache(maxsize=64)
def salt_of(origin: str) -> int:
    """Return what an origin adds to its tokens' hashes; the body adds nothing."""
    return 0 if origin == BODY else reference_hash(1, origin.encode())
