"""The definition of a token, in plain Python, for people to read.

A token is a word (a run of word bytes) in one field, tagged with the field's origin; disguised
words of bodies are replaced by the words they stand for.  Settings can add pairs of neighbouring
words, and runs of characters.  The key of a token is a hash of its origin and text.  `tokenizer`
finds the same tokens without a Python object for each; a property test compares the two.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nbspam.arrays import Booleans, Integers, Keys, positions_of
from nbspam.mail.headers import Field
from nbspam.mail.message import Message, by_header
from nbspam.settings import TokenSettings
from nbspam.tokens.sparse import RIDER_BITS

# --- runs of characters ----------------------------------------------------------------------

# Runs (character n-grams) are all slices of 1 to 5 characters of a text.  They catch what words
# miss: endings, misspellings, prices, scripts without spaces.  Because there are so many of them,
# only the beginning of a field is cut into runs.  Scripts without spaces are cut as they are
# written, not as the pairs of characters that are their words.

MAX_RUN = 5  # characters
MAX_RUN_BYTES = 1000  # at the beginning of a field


def folded_line(text: bytes) -> bytes:
    """Return the part of a field that is cut into runs: its beginning, as one lower-case line."""
    # Half a character at the end would be a run that looks like those of other characters.
    whole = text[:MAX_RUN_BYTES].decode("utf-8", "ignore").encode()
    # Zero bytes become white space, because a hash ignores them at the end of a run.
    return b" ".join(whole.lower().replace(b"\0", b" ").split())


def reference_runs(text: bytes) -> Iterator[bytes]:
    """Yield all runs of 1 to MAX_RUN characters in a folded text; this function defines them."""
    starts = [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]
    for n in range(1, MAX_RUN + 1):
        for start, end in zip(starts, starts[n:], strict=False):
            yield text[start:end]


def find_runs(buffer: bytes, begin: int, fields: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the start, length and field of every run in a UTF-8 buffer, from `begin` on.

    Runs are in the order of where they start.

    fields: (n_fields + 1,) where fields start; a zero byte follows each field.
    """
    text = np.frombuffer(buffer, np.uint8)[begin : fields[-1]]
    # Where each character begins; the zero byte after a field counts as one.
    place = np.flatnonzero((text & 0xC0) != 0x80) + begin
    field_of = np.searchsorted(fields, place, "right") - 1
    # Row i has the places, and the fields, of the MAX_RUN characters after character i.
    ends = _following(place, 0)
    inside = _following(field_of, -1) == field_of[:, None]
    n_runs = inside.sum(axis=1)
    start = np.repeat(place, n_runs)
    return start, ends[inside] - start, np.repeat(field_of, n_runs)


def _following(values: Integers, beyond: int) -> Integers:
    """Return the MAX_RUN elements after each one, shape (n_values, MAX_RUN).

    beyond: what follows the last element.
    """
    padded = np.append(values, np.full(MAX_RUN + 1, beyond))
    return sliding_window_view(padded, MAX_RUN + 1)[:-1, 1:]


# --- hashes ----------------------------------------------------------------------------------

# The hash function reads eight bytes at a time.  It is written for one word in plain Python and
# for all words of a buffer; both return the same number.

WORD_BYTES = 8
LEAD_OF_THREE = b"\xe0"  # the least first byte of letters that take three bytes or more
_MULTIPLY = 0x9E3779B97F4A7C15  # odd, close to 2**64 / golden ratio: Fibonacci hashing
_FINISH = 0xC2B2AE3D27D4EB4F  # odd, from the 64-bit finaliser family
_MODULO = (1 << 64) - 1
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(WORD_BYTES + 1)], np.uint64)


def reference_hash(value: int, word: bytes) -> int:
    """Return the hash of a word, eight bytes at a time; value: the salt to start from."""
    for start in range(0, len(word), WORD_BYTES):
        chunk = int.from_bytes(word[start : start + WORD_BYTES], "little")
        value = _mix(value ^ chunk, _MULTIPLY)
    return _mix(value, _FINISH)


def _mix(value: int, factor: int) -> int:
    value = value * factor & _MODULO
    return value ^ value >> 32


def reference_pair(first: int, second: int) -> int:
    """Return the hash of a pair of words, given the hashes of the words."""
    return _mix((first * _FINISH & _MODULO) ^ second, _MULTIPLY)


def hash_slices(buffer: bytes, start: Integers, length: Integers, salt: Keys) -> Keys:
    """Return the hashes of slices of a buffer, shape (n_slices,).

    start, length, salt: (n_slices,).  At least eight more bytes must follow the last slice.
    """
    value = _mix_all(first_bytes(buffer, start, length) ^ salt, _MULTIPLY)
    longer = positions_of(length > WORD_BYTES)
    start, length = start.take(longer), length.take(longer)
    while len(longer):
        start += WORD_BYTES
        length -= WORD_BYTES
        more = first_bytes(buffer, start, length)
        value[longer] = _mix_all(value.take(longer) ^ more, _MULTIPLY)
        rest = positions_of(length > WORD_BYTES)
        longer, start, length = longer.take(rest), start.take(rest), length.take(rest)
    return _mix_all(value, _FINISH)


def first_bytes(buffer: bytes, start: Integers, length: Integers) -> Keys:
    """Return the first eight bytes of each slice, or fewer, as a little-endian number.

    start, length: (n_slices,).  A length below 1 gives 0.
    """
    # A view: element i is the number in bytes i to i + 7.
    windows = np.ndarray(len(buffer) - WORD_BYTES + 1, "<u8", buffer, 0, (1,))
    return np.asarray(windows[start] & _MASKS.take(length, mode="clip"))


def _mix_all(value: Keys, factor: int) -> Keys:
    value *= np.uint64(factor)
    value ^= value >> np.uint64(32)
    return value


def hash_pairs(first: Keys, second: Keys) -> Keys:
    """Return the hashes of pairs of words, given the hashes of the words; all (n_pairs,)."""
    return _mix_all((first * np.uint64(_FINISH)) ^ second, _MULTIPLY)


# A key has 40 bits of the token's hash, then 5 bits of its kind, then zeros.  Tokens that collide
# share counts.  Collisions can be made on purpose, but only between tokens of one kind, so a word
# of the text never passes for one of the route.  Of a million tokens of one kind any two collide
# with a probability of 37 %: D-155.
#
# The tokenizer stores a rider in the zeros, RIDER_BITS of them: the position of a word in its
# batch, so that one sort of plain integers sorts both.
KIND_BITS = 5
WORD_BIT = 1 << RIDER_BITS  # the lowest bit of the kind: 0 for pairs
HASH_SHIFT = RIDER_BITS + KIND_BITS

BODY = "body"
REST = "rest"  # of the text, apart from its writer's own beginning (`mail/message.py`)
IN_TEXT = (BODY, REST)  # the origins of one kind of tokens
PAIR = "2g"
CHARACTERS = "char"
# Groups of tokens, which are added up apart: the text that the writer wrote, the route of the
# message, its markup and links, pairs of words and runs of characters (both repeat the evidence
# of words), the subject, words that a mail program does not show, with their pairs, facts about
# the sender that the text cannot forge (see `tokens/people.py`), attached files, and how often the
# text has signs such as ! and %.
GROUPS = (
    *("text", "route", "web", "pairs", "characters", "subject", "hidden"),
    *("people", "attached", "signs"),
)
# The groups about how a message was made and sent, not about its text, (n_groups,).
IS_STRUCTURE = np.array([name in ("route", "web") for name in GROUPS])
# Facts that say that a message poses as an answer: all else that it has of ham can come from the
# thread that it answers.
UNVOUCHED = ("reply-from-a-stranger", "reply-to-nothing", "reply-to-nothing-from-a-known-address")
# The kinds of words, each called like its group, in the order of their numbers, which may never
# change.  All origins of a kind are in the same part of the tokenizer's buffer: see
# `tokenizer._count`.
_KINDS = ("text", "attached", "subject", "route", "web", "hidden", "characters", "people", "signs")
N_KINDS = 2 * len(_KINDS)  # of words and of pairs
_KIND_OF = {BODY: "text", REST: "text", CHARACTERS: "characters", "signs": "signs"}
_KIND_OF |= {"nested": "subject", "subject": "subject", "hidden": "hidden"}
_KIND_OF |= dict.fromkeys(("people", "auth"), "people")
_KIND_OF |= dict.fromkeys(("file", "attached"), "attached")
_KIND_OF |= dict.fromkeys(("alt", "url", "html", "filename", "defect"), "web")


@lru_cache(maxsize=8)
def word_table(punctuation: str) -> bytes:
    """Return a table for `bytes.translate`: ASCII to lower case, bytes outside words to zero."""
    inside = {ord(c) for c in punctuation}
    inside |= {c for c in range(128) if chr(c).isalnum()} | set(range(128, 256))
    return bytes(ord(chr(c).lower()) if c < 128 else c for c in range(256)).translate(
        bytes(c if c in inside else 0 for c in range(256))
    )


class Token(NamedTuple):
    """One token; as a string `hello`, `subject:free` or `2g:free money`."""

    origin: str
    text: bytes

    def __str__(self) -> str:
        text = self.text.decode("utf-8", "replace")
        return text if self.origin == BODY else f"{self.origin}:{text}"


# --- words in disguise -----------------------------------------------------------------------

# A digit between two letters stands for the letter that it looks like: v1agra.  Letters that stand
# apart, four or more with the same sign between all of them, are one word: c-h-e-a-p.

# For bytes.translate; all other bytes stay as they are.
_LIKE_LETTERS = bytes.maketrans(b"013457", b"oieast")
_DIGIT = re.compile(rb"(?<=[a-z])[013457](?=[a-z])")
_APART = re.compile(rb"[a-z]([-_])[a-z](?:\1[a-z]){2,}+")
_ZERO, _SEVEN, _A, _Z = b"07az"
_HYPHEN, _UNDERLINE = b"-_"
_ALIKE = np.frombuffer(_LIKE_LETTERS, np.uint8)


def without_disguise(word: bytes) -> bytes:
    """Return a word of text, in lower case, as it is meant; this function defines it."""
    if _APART.fullmatch(word):
        return word[::2]
    return _DIGIT.sub(lambda match: match[0].translate(_LIKE_LETTERS), word)


def remove_disguises(words: bytes, start: Integers, is_text: Booleans) -> bytes | bytearray:
    """Return a buffer of the same length whose words of text are as they are meant.

    words: lower case, with zero bytes around all words.  start: (n_fields + 1,) where fields
    start; is_text: (n_fields,) the fields that may change.
    """
    first = int(start[0]) - 1  # the zero byte before the first field
    text = np.frombuffer(words, np.uint8)[first:]
    # Whole arrays of bytes, because indices of all digits would take far longer.
    letter = text - np.uint8(_A) <= _Z - _A
    digit = text[1:-1] - np.uint8(_ZERO) <= _SEVEN - _ZERO
    digit &= letter[:-2]
    digit &= letter[2:]
    sign = text == _HYPHEN
    sign |= text == _UNDERLINE
    apart = sign[1:-3] & sign[3:-1]
    apart &= letter[2:-2]
    digit[:-2] |= apart
    places = positions_of(digit) + (first + 1)
    places = places[is_text[start.searchsorted(places, "right") - 1]]
    if not len(places):
        return words
    copy = bytearray(words)
    changed = np.frombuffer(copy, np.uint8)
    changed[places] = _ALIKE[changed[places]]  # signs are like themselves
    _join_letters(changed, words, places[sign[places - first]])
    return copy


def _join_letters(changed: np.ndarray, words: bytes, signs: Integers) -> None:
    """Write joined letters, and zeros behind them, over words that have signs at these places."""
    end = 0
    for place in signs.tolist():
        if place >= end:  # in another word than the sign before
            begin, end = words.rfind(b"\0", 0, place) + 1, words.index(b"\0", place)
            if _APART.fullmatch(words, begin, end):
                joined = np.frombuffer(words, np.uint8)[begin:end:2]
                changed[begin:end] = 0
                changed[begin : begin + len(joined)] = joined


# --- the tokens of a message -----------------------------------------------------------


def reference_tokens(message: Message, settings: TokenSettings) -> Iterator[Token]:
    """Yield the tokens of a message one by one; this function defines them."""
    # Imported late, here and below: text in ASCII is in normal form.
    from nbspam.tokens.normalize import in_pairs

    table = word_table(settings.punctuation)
    for origin, text in by_header(normalized_fields(message, settings)):
        words = text.translate(table).split(b"\0")
        if not settings.raw:
            words = [part for word in words for part in in_pairs(word)]
        if origin in IN_TEXT:
            origin = BODY
            if not settings.raw:
                words = [without_disguise(word) for word in words]
        words = [word for word in words if _fits(word, settings)]
        yield from (Token(origin, word) for word in words)
        if settings.pairs:
            yield from (
                Token(pair_origin(origin), first + b" " + second)
                for first, second in pairwise(words)
            )
        if settings.characters and has_characters(origin):
            yield from (Token(CHARACTERS, run) for run in reference_runs(folded_line(text)))


def normalized_fields(message: Message, settings: TokenSettings) -> Iterator[Field]:
    """Yield a message's fields in normal form, and a field of the oddities found in them."""
    facts: set[str] = set()
    for item in message.fields:
        if settings.raw or item.text.isascii():
            yield item
        else:
            from nbspam.tokens.normalize import normalize

            text, found = normalize(item.text)
            facts.update(found)
            yield Field(item.origin, text)
    if facts:
        yield Field("defect", " ".join(sorted(facts)).encode())


def has_characters(origin: str) -> bool:
    """Return whether fields of this origin are cut into runs of characters."""
    return GROUPS[group_of(origin)] in ("text", "subject")


def _fits(word: bytes, settings: TokenSettings) -> bool:
    characters = len(word.decode("utf-8", "ignore"))
    longest = settings.max_length * (3 if word[:1] >= LEAD_OF_THREE else 1)
    return settings.min_length <= characters and 0 < len(word) <= longest


def token_of(spelling: bytes) -> Token:
    """Return the token with this spelling: the inverse of `Token.__str__`, in bytes.

    The last colon ends the origin, because words contain none (unless settings allow it).
    Runs of characters may contain colons.
    """
    if spelling.startswith(f"{CHARACTERS}:".encode()):
        return Token(CHARACTERS, spelling[len(CHARACTERS) + 1 :])
    origin, colon, text = spelling.rpartition(b":")
    return Token(origin.decode("utf-8", "replace") if colon else BODY, text)


def group_of(origin: str) -> int:
    """Return the index into GROUPS of the tokens of an origin."""
    return group_of_kind(kind_of(origin))


def kind_of(origin: str) -> int:
    """Return the kind of an origin's tokens, below N_KINDS: odd for words, and even for pairs.

    It is a part of their keys.
    """
    of_words = origin_of_words(origin)
    number = _KINDS.index(_KIND_OF.get(of_words, "route"))
    return 2 * number + (of_words == origin)


def group_of_kind(kind: int) -> int:
    """Return the index into GROUPS of the tokens of a kind."""
    name = _KINDS[kind // 2]
    return GROUPS.index(name if kind % 2 or name == "hidden" else "pairs")


def origin_of_words(origin: str) -> str:
    """Return the origin of the words of an origin's tokens: the inverse of `pair_origin`."""
    is_pair = origin == PAIR or origin.startswith(f"{PAIR}:")
    return (origin.removeprefix(PAIR).removeprefix(":") or BODY) if is_pair else origin


def pair_origin(origin: str) -> str:
    """Return the origin of a field's pairs of words, for example `2g` or `2g:subject`."""
    return PAIR if origin in IN_TEXT else f"{PAIR}:{origin}"


def reference_key(token: Token) -> int:
    """Return the key of a token: 40 bits of its hash, its kind, 19 zeros; raises ValueError."""
    kind, salt = kind_of(token.origin), salt_of(origin_of_words(token.origin))
    if kind % 2:
        value = reference_hash(salt, token.text)
    else:
        words = token.text.split(b" ")
        if len(words) != 2:
            raise ValueError(f"{token}: a pair has two words")
        value = reference_pair(*(reference_hash(salt, word) for word in words))
    return value >> HASH_SHIFT << HASH_SHIFT | kind << RIDER_BITS


@lru_cache(maxsize=64)
def salt_of(origin: str) -> int:
    """Return the number that the hashes of an origin's words start from; 0 for the text."""
    return 0 if origin in IN_TEXT else reference_hash(1, origin.encode())
