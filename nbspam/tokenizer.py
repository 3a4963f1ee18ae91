"""Messages to tokens: one numpy pass over many messages at once.

A token is a run of word bytes in one field, tagged by the field's origin; if asked for, also two
neighbouring ones, or a run of characters.  Its key is a hash of both.  `reference_tokens` and
`reference_key` say the same thing in plain Python, for people to read; `tokenize` says it
without a Python object per token, and a property test holds the two equal.  A single message
is a batch of one.

Secret: how tokens are found, hashed and counted without ever being Python objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets
from nbspam.message import Field, Message, by_header
from nbspam.normalize import normalize
from nbspam.origins import HEADS
from nbspam.runs import MAX_RUN, find_runs, folded, reference_runs

# A key leaves its low 20 bits zero, so that one sort of plain integers can carry a rider
# along: where in the batch the token stood.  The 44 bits that are left make a collision
# of any two among a million tokens a 3 % event, and a harmless one (they share counts).
RIDER_BITS = 20
RIDER_MASK = np.uint64((1 << RIDER_BITS) - 1)
# At most half the bytes start a token, and each may start a pair too: riders suffice.
MAX_BATCH_BYTES = 1 << RIDER_BITS
# Larger batches leave the processor's caches, smaller ones pay more for numpy's calls and
# for merging: E-001.
BATCH_BYTES = 1 << 19

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
_WORD_BYTES = 8
_MULTIPLY = 0x9E3779B97F4A7C15  # odd, close to 2**64 / golden ratio: Fibonacci hashing
_FINISH = 0xC2B2AE3D27D4EB4F  # odd, from the 64-bit finaliser family
_MODULO = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """What a token is: stored in the model, so that it always means the same."""

    punctuation: str = "$'-_!"  # ASCII characters, beside letters and digits, that words hold
    min_length: int = 1  # characters
    max_length: int = 40  # bytes
    pairs: bool = False  # also every two neighbouring words of a field
    raw: bool = False  # the text is cut as it is, without normalisation
    characters: bool = False  # also runs of characters of what is written

    def table(self) -> bytes:
        """Return the 256-byte table: ASCII case folded, bytes outside words to zero."""
        return _table(self.punctuation)


@lru_cache(maxsize=8)
def _table(punctuation: str) -> bytes:
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
    table = settings.table()
    for origin, text in by_header(normalized_fields(message, settings)):
        words = [word for word in text.translate(table).split(b"\0") if _fits(word, settings)]
        yield from (Token(origin, word) for word in words)
        if settings.pairs:
            yield from (
                Token(pair_origin(origin), first + b" " + second)
                for first, second in pairwise(words)
            )
        if settings.characters and _has_characters(origin):
            yield from (Token(CHARACTERS, run) for run in reference_runs(folded(text)))


def _has_characters(origin: str) -> bool:
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
        first, second = (_reference_hash(_salt(origin), w) for w in token.text.split(b" "))
        value = _mix((first * _FINISH & _MODULO) ^ second, _MULTIPLY)
    else:
        value = _reference_hash(_salt(token.origin), token.text)
    return value >> RIDER_BITS << RIDER_BITS


def _reference_hash(value: int, word: bytes) -> int:
    """Hash a word onto a salt, eight bytes at a time."""
    for start in range(0, len(word), _WORD_BYTES):
        chunk = int.from_bytes(word[start : start + _WORD_BYTES], "little")
        value = _mix(value ^ chunk, _MULTIPLY)
    return _mix(value, _FINISH)


def _mix(value: int, factor: int) -> int:
    value = value * factor & _MODULO
    return value ^ value >> 32


@lru_cache(maxsize=64)
def _salt(origin: str) -> int:
    """Return what an origin adds to its tokens' hashes; the body adds nothing."""
    return 0 if origin == BODY else _reference_hash(1, origin.encode())


# --- the same for many messages at once ---------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The tokens of a batch of messages, as a sparse matrix with keys for columns.

    Column j has key keys[j] and stands in documents[indptr[j]:indptr[j + 1]], ascending,
    so often as counts says.  (Compressed sparse columns: what a sort by key leaves.)
    """

    n_docs: int
    keys: Keys  # (n_keys,) ascending, unique
    indptr: Integers  # (n_keys + 1,)
    documents: Integers  # (nnz,)
    counts: Integers  # (nnz,)
    groups: Octets  # (n_keys,) index into GROUPS
    _first: Integers = field(repr=False)  # (n_keys,) rider of the first time it stands
    _layout: "_Layout" = field(repr=False)
    _words: "_Words" = field(repr=False)

    @property
    def columns(self) -> Integers:
        """The column of every entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.indptr))

    def texts(self) -> tuple[Octets, Integers]:
        """Return the texts of the columns: UTF-8 blob and (n_keys + 1,) offsets."""
        starts, lengths = _text_pieces(self._first, self._layout, self._words)
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths.sum(axis=1), out=offsets[1:])
        buffer = np.frombuffer(self._layout.buffer, np.uint8)
        return gather_slices(buffer, starts.ravel(), lengths.ravel()), offsets


def gather_slices(blob: Octets, starts: Integers, lengths: Integers) -> Octets:
    """Return the slices blob[start:start + length], one behind the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    shift = starts - (ends - lengths)
    index = np.arange(ends[-1] if len(ends) else 0) + np.repeat(shift, lengths)
    return np.asarray(blob[index])


def tokenize(messages: Sequence[Message], settings: TokenSettings) -> TokenBatch:
    """Return the tokens of a batch of messages, as grouped by `batches`."""
    layout = _lay_out(messages, settings)
    words = _find_words(layout, settings)
    key = _hash_words(layout, words)
    rider = np.arange(0, 2 * len(key), 2, dtype=np.uint64)
    if settings.pairs:
        key, rider = _add_pairs(key, rider, words.field_of)
    if settings.characters:
        runs = _Words(*find_runs(layout.buffer, layout.runs, layout.start))
        runs = _Words(*(part[: _MAX_WORDS - len(words.start)] for part in runs))
        more = np.arange(len(runs.start), dtype=np.uint64) + np.uint64(len(words.start))
        key = np.concatenate([key, _hash_words(layout, runs)])
        rider = np.concatenate([rider, more * np.uint64(2)])
        words = _Words(*map(np.concatenate, zip(words, runs, strict=True)))
    key &= ~RIDER_MASK
    key |= rider
    key.sort()
    return _count(key, layout, words)


class _Layout(NamedTuple):
    """All fields of a batch in one buffer: text, zeros, then what token texts need.

    Characters to be taken in runs are fields of their own, behind those of words.
    """

    buffer: bytes
    end: int  # of the words' text, a zero byte before and behind it included
    runs: int  # where characters to be taken in runs begin
    space: int  # where the buffer has one
    n_docs: int
    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    counts: Booleans  # (n_fields,) whether its words are evidence
    salt: Keys  # (n_fields,)
    group: Octets  # (n_fields,)
    prefix: Integers  # (n_fields, 2): start and length of the origin's prefix in the buffer
    pair_prefix: Integers


class _Words(NamedTuple):
    """The words of a batch in order of their place: three arrays of shape (n_words,)."""

    start: Integers
    length: Integers
    field_of: Integers


def _lay_out(messages: Sequence[Message], settings: TokenSettings) -> _Layout:
    """Join all fields, case folded and cut by zero bytes, into one buffer."""
    known: dict[str, int] = {}
    texts, fields = _texts_of(messages, settings, known)
    # Zeros behind it, so that reading ahead of the last word stays inside the buffer.
    padding = bytes(settings.max_length + _WORD_BYTES)
    joined = b"".join((b"\0", b"\0".join(texts), b"\0", padding))
    fields = _cut_heads(joined, fields, known)
    runs = b""
    if settings.characters:
        runs, fields = _add_runs(joined, fields, known)
    space = len(joined) + len(runs)
    names, prefix, pair_prefix = _prefixes(known, space + 1)
    of = fields.origin
    return _Layout(
        b"".join((joined.translate(settings.table()), runs, b" ", names, padding)),
        len(joined) - len(padding),
        len(joined),
        space,
        len(messages),
        fields.start,
        fields.document,
        of >= 0,
        np.array([*map(_salt, known), 0], np.uint64)[of],
        np.array([*map(group_of, known), 0], np.uint8)[of],
        prefix[of],
        pair_prefix[of],
    )


class _Fields(NamedTuple):
    """Where the fields of a batch begin, and whose they are."""

    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin, -1 where words do not count


def _texts_of(
    messages: Sequence[Message], settings: TokenSettings, known: dict[str, int]
) -> tuple[list[bytes], _Fields]:
    """Return the texts of all fields, and the fields they are when joined by zero bytes."""
    texts: list[bytes] = []
    origins: list[int] = []
    n_fields: list[int] = []
    for message in messages:
        before = len(texts)
        for origin, text in normalized_fields(message, settings):
            texts.append(text)
            origins.append(known.setdefault(origin, len(known)))
        n_fields.append(len(texts) - before)
    start = np.ones(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=start[1:])
    start[1:] += 1
    document = np.repeat(np.arange(len(messages)), n_fields)
    return texts, _Fields(start, document, np.array(origins, np.int64))


def _cut_heads(joined: bytes, fields: _Fields, known: dict[str, int]) -> _Fields:
    """Return the fields with those of heads cut into names and values of headers."""
    heads = {known[kind]: table for kind, table in HEADS.items() if kind in known}
    if not heads:
        return fields
    start, document, origin = fields
    text = np.frombuffer(joined, np.uint8)
    line = np.flatnonzero(text == ord("\n"))
    of = np.searchsorted(start, line, "right") - 1
    is_head = np.isin(origin, list(heads))
    after = text[line + 1]
    begins = is_head[of] & (after != ord(" ")) & (after != ord("\t"))
    line, of = line[begins], of[begins]
    end = np.minimum(np.append(line[1:], len(text)), start[of + 1] - 1)
    colons = np.append(np.flatnonzero(text == ord(":")), len(text))
    colon = np.minimum(colons[np.searchsorted(colons, line)], end)
    # Names that are spelt alike in heads of one kind are looked up once.
    salt = origin[of].astype(np.uint64)
    key = _hash_slices(joined, line + 1, colon - line - 1, salt * np.uint64(2) + (colon < end))
    _, chosen, which = np.unique(key, return_index=True, return_inverse=True)
    number = np.full((len(chosen), 2), -1)
    for row, i in enumerate(chosen.tolist()):
        if colon[i] < end[i]:
            origins = heads[int(origin[of[i]])][joined[line[i] + 1 : colon[i]]]
            number[row] = [-1 if o is None else known.setdefault(o, len(known)) for o in origins]
    starts = np.concatenate([start[:-1], line + 1, np.minimum(colon + 1, end)])
    order = np.argsort(starts, kind="stable")
    return _Fields(
        np.append(starts[order], start[-1]),
        np.concatenate([document, document[of], document[of]])[order],
        np.concatenate([np.where(is_head, -1, origin), number[which].T.ravel()])[order],
    )


def _add_runs(joined: bytes, fields: _Fields, known: dict[str, int]) -> tuple[bytes, _Fields]:
    """Return what runs of characters are taken from, and the fields with it behind them."""
    has = np.array([*map(_has_characters, known), False])
    chosen = np.flatnonzero(has[fields.origin])
    bounds = zip(fields.start[chosen].tolist(), fields.start[chosen + 1].tolist(), strict=True)
    texts = [folded(joined[start:end]) + b"\0" for start, end in bounds]
    start = np.full(len(texts) + 1, len(joined), np.int64)
    start[1:] += np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    number = known.setdefault(CHARACTERS, len(known))
    return b"".join(texts), _Fields(
        np.concatenate([fields.start[:-1], start]),
        np.append(fields.document, fields.document[chosen]),
        np.append(fields.origin, np.full(len(texts), number)),
    )


def _prefixes(known: Iterable[str], place: int) -> tuple[bytes, Integers, Integers]:
    """Return what token texts begin with, and where: start and length by origin.

    place: where in the buffer the names will stand.  Shapes (n_origins + 1, 2); the last
    row is for words that do not count.
    """
    names = bytearray()
    tables: tuple[list[tuple[int, int]], ...] = ([], [])
    for origin in known:
        for name, table in zip((origin, pair_origin(origin)), tables, strict=True):
            tag = b"" if name == BODY else name.encode() + b":"
            table.append((place + len(names), len(tag)))
            names += tag
    single, pair = (np.array([*table, (place, 0)], np.int64) for table in tables)
    return bytes(names), single, pair


def _find_words(layout: _Layout, settings: TokenSettings) -> _Words:
    """Return the words that count and are neither too short nor too long."""
    text = np.frombuffer(layout.buffer, np.uint8, layout.end)
    inside = text != 0
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    start = edges[0::2] + 1
    length = edges[1::2] - edges[0::2]
    n_words = np.diff(np.searchsorted(start, layout.start))
    field_of = np.repeat(np.arange(len(n_words)), n_words)
    keep = (length <= settings.max_length) & layout.counts[field_of]
    if settings.min_length > 1:
        # Characters, not bytes: those that continue a UTF-8 sequence do not count.
        continues = np.concatenate([[0], np.cumsum((text & 0xC0) == 0x80)])
        characters = length - (continues[start + length] - continues[start])
        keep &= characters >= settings.min_length
    # Normalisation can make text longer; what no rider can number is let go.
    kept = np.flatnonzero(keep)[:_MAX_WORDS]
    return _Words(start[kept], length[kept], field_of[kept])


_MAX_WORDS = 1 << RIDER_BITS - 1
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(_WORD_BYTES + 1)], np.uint64)


def _hash_words(layout: _Layout, words: _Words) -> Keys:
    """Hash every word onto its field's salt; shape (n_words,)."""
    return _hash_slices(layout.buffer, words.start, words.length, layout.salt[words.field_of])


def _hash_slices(buffer: bytes, start: Integers, length: Integers, salt: Keys) -> Keys:
    """Hash slices of the buffer onto salts, eight bytes at a time; all (n_slices,)."""
    # Every eight bytes of the buffer as one little-endian number, wherever they begin.
    chunks = np.ndarray(len(buffer) - _WORD_BYTES + 1, "<u8", buffer, 0, (1,))
    masks = _MASKS[np.minimum(length, _WORD_BYTES)]
    value = _mix_all((chunks[start] & masks) ^ salt, _MULTIPLY)
    longer = np.flatnonzero(length > _WORD_BYTES)
    done = _WORD_BYTES
    while len(longer):
        masks = _MASKS[np.minimum(length[longer] - done, _WORD_BYTES)]
        value[longer] = _mix_all(value[longer] ^ (chunks[start[longer] + done] & masks), _MULTIPLY)
        done += _WORD_BYTES
        longer = longer[length[longer] > done]
    return _mix_all(value, _FINISH)


def _mix_all(value: Keys, factor: int) -> Keys:
    value *= np.uint64(factor)
    value ^= value >> np.uint64(32)
    return value


def _add_pairs(word: Keys, rider: Keys, field_of: Integers) -> tuple[Keys, Keys]:
    """Return keys and riders of the words (even) and of pairs within a field (odd)."""
    first = np.flatnonzero(field_of[1:] == field_of[:-1])
    pair = _mix_all((word[first] * np.uint64(_FINISH)) ^ word[first + 1], _MULTIPLY)
    return np.concatenate([word, pair]), np.concatenate([rider, rider[first] + np.uint64(1)])


def _count(sorted_keys: Keys, layout: _Layout, words: _Words) -> TokenBatch:
    """Count equal keys within documents; the sort has brought them side by side."""
    rider = (sorted_keys & RIDER_MASK).astype(np.int64)
    key = sorted_keys & ~RIDER_MASK
    # Riders grow with the place, so the documents of one key ascend.
    document = layout.document[words.field_of][rider >> 1]
    new_key = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new_key[1:])
    new_entry = new_key.copy()
    new_entry[1:] |= document[1:] != document[:-1]
    entry = np.flatnonzero(new_entry)
    first = np.flatnonzero(new_key)
    place = rider[first]
    group = layout.group[words.field_of[place >> 1]]
    group[(place & 1).astype(bool)] = _PAIRS
    return TokenBatch(
        layout.n_docs,
        key[first],
        np.append(np.searchsorted(entry, first), len(entry)),
        document[entry],
        np.diff(entry, append=len(key)),
        group,
        place,
        layout,
        words,
    )


def _text_pieces(rider: Integers, layout: _Layout, words: _Words) -> tuple[Integers, Integers]:
    """Return (n_keys, 4) starts and lengths of what spells each token's text."""
    word, is_pair = rider >> 1, (rider & 1).astype(bool)
    of = words.field_of[word]
    second = np.minimum(word + 1, len(words.start) - 1)
    prefix = np.where(is_pair[:, None], layout.pair_prefix[of], layout.prefix[of])
    space = np.full(len(word), layout.space)
    starts = [prefix[:, 0], words.start[word], space, words.start[second]]
    length = words.length
    lengths = [prefix[:, 1], length[word], is_pair, np.where(is_pair, length[second], 0)]
    return np.stack(starts, axis=1), np.stack(lengths, axis=1)


def batches(
    messages: Iterable[Message], settings: TokenSettings, size: int = BATCH_BYTES
) -> Iterator[list[Message]]:
    """Group messages so that each group has at most about `size` bytes of text.

    Fewer where runs of characters are taken too, of which every byte may start MAX_RUN.
    """
    if settings.characters:
        size //= MAX_RUN + 1
    group: list[Message] = []
    total = 0
    for message in messages:
        extent = sum(len(text) + 1 for _, text in message.fields)
        if group and total + extent > size:
            yield group
            group, total = [], 0
        group.append(message)
        total += extent
    if group:
        yield group
