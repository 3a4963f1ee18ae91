"""The tokenizer: finds and counts the tokens of many messages in one pass of numpy.

It finds the tokens that `definition.reference_tokens` defines.  A single message is a batch of
one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets, differences, positions_of
from nbspam.errors import UsageError
from nbspam.mail.headers import HEADS, ORIGINS, origins_of
from nbspam.mail.message import Message
from nbspam.settings import TokenSettings
from nbspam.tokens import definition
from nbspam.tokens.sparse import (
    RIDER_BITS,
    RIDER_MASK,
    Documents,
    Vocabulary,
    gather_slices,
    offsets_of,
    smallest,
)
from nbspam.workers import grouped

# --- the layout of a batch -------------------------------------------------------------------

# All fields of a batch's messages are in one buffer, separated by zero bytes.  Heads (the header
# lines of a message) come first and are cut into names and values here.  The text that is cut into
# runs of characters follows all words.

_ORIGINS = (*ORIGINS, definition.CHARACTERS)
_NOT_COUNTED = len(_ORIGINS)
_NUMBER: dict[str | None, int] = {origin: number for number, origin in enumerate(_ORIGINS)}
_NUMBER[None] = _NOT_COUNTED
_HEAD_KINDS = tuple(HEADS)
# Whether fields of an origin are heads, and their number among heads or among all others.
_PLACES = {origin: (False, number) for number, origin in enumerate(_ORIGINS)}
_PLACES |= {kind: (True, number) for number, kind in enumerate(_HEAD_KINDS)}
_MAX_NAMES = 4096  # header names that one process remembers
_WINDOWS = 4  # of eight bytes each; longer names are not remembered
_WINDOW_STARTS = np.arange(_WINDOWS)[:, np.newaxis] * definition.WORD_BYTES
_MULTIPLIERS = np.array([[pow(3, 41 + n, 1 << 64)] for n in range(_WINDOWS + 1)], np.uint64)
# Properties of origins, by number; the last element is for words that are not counted.
_IS_COUNTED = np.arange(len(_ORIGINS) + 1) != _NOT_COUNTED
_SALTS = np.array([*map(definition.salt_of, _ORIGINS), 0], np.uint64)
# Their kinds as the keys of their words have them.
_KINDS = np.array([*map(definition.kind_of, _ORIGINS), 0], np.uint64) << np.uint64(RIDER_BITS)
_HAS_CHARACTERS = np.array([*map(definition.has_characters, _ORIGINS), False])
_IS_TEXT = np.array([*(origin in definition.IN_TEXT for origin in _ORIGINS), False])
_LINE_FEED, _COLON, _BLANK, _TAB = b"\n: \t"
# The prefixes of token texts, at index 2 * origin for words and 2 * origin + 1 for pairs.
_PREFIXES = [
    b"" if name in definition.IN_TEXT else name.encode() + b":"
    for origin in _ORIGINS
    for name in (origin, definition.pair_origin(origin))
]
# The first byte is the space between the words of a pair.
_TAGS = b"".join((b" ", *_PREFIXES))
_TAG_LENGTHS = np.array([*map(len, _PREFIXES), 0, 0])
_TAG_STARTS = len(b" ") + np.cumsum(_TAG_LENGTHS) - _TAG_LENGTHS


class Layout(NamedTuple):
    """All fields of a batch in one buffer: text of words, zeros, text of runs, _TAGS, zeros.

    Texts to be cut into runs of characters are separate fields, after the fields of words.
    """

    buffer: bytes
    end: int  # end of the words' text, including a zero byte before and after it
    runs: int  # where the text that is cut into runs begins
    tags: int  # where _TAGS begins
    n_docs: int
    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin, an index into the tables above


class _Fields(NamedTuple):
    """Where some fields of a batch begin, and which document and origin they have."""

    start: Integers  # (n_fields + 1,)
    document: Integers  # (n_fields,)
    origin: Integers  # (n_fields,) number of the origin; for heads, number of the kind of head


class _Texts(NamedTuple):
    """Texts of fields before they are joined by zero bytes."""

    texts: list[bytes]
    documents: list[int]
    origins: list[int]

    def fields(self, place: int) -> _Fields:
        """Return the fields that the texts become when joined; place: where the first starts."""
        start = place + offsets_of([len(text) + 1 for text in self.texts])
        return _Fields(start, np.array(self.documents, np.int64), np.array(self.origins, np.int64))


def lay_out(messages: Sequence[Message], settings: TokenSettings) -> Layout:
    """Return the layout of messages: all fields, case folded, in one buffer."""
    heads, others = _texts_of(messages, settings)
    # Zeros at the end, so that hashing the last word does not read past the buffer.
    padding = bytes(settings.max_length + definition.WORD_BYTES)
    joined = b"\0".join((b"", *heads.texts, *others.texts, padding))
    of_heads = _cut_heads(joined, heads.fields(1))
    behind = others.fields(int(of_heads.start[-1]))
    fields = _behind(of_heads, behind)
    folded = joined.translate(definition.word_table(settings.punctuation))
    is_text = _IS_TEXT.take(behind.origin)
    words = folded if settings.raw else definition.remove_disguises(folded, behind.start, is_text)
    runs = b""
    if settings.characters:
        runs, more = _runs(joined, fields, settings.raw)
        fields = _behind(fields, more)
    return Layout(
        b"".join((words, runs, _TAGS, padding)),
        len(joined) - len(padding),
        len(joined),
        len(joined) + len(runs),
        len(messages),
        *fields,
    )


def _texts_of(messages: Sequence[Message], settings: TokenSettings) -> tuple[_Texts, _Texts]:
    """Return the texts of heads, and the texts of all other fields."""
    heads, others = _Texts([], [], []), _Texts([], [], [])
    odd: list[tuple[_Texts, int]] = []
    for document, message in enumerate(messages):
        for origin, text in message.fields:
            is_head, number = _PLACES[origin]
            part = heads if is_head else others
            if not text.isascii():
                odd.append((part, len(part.texts)))
            part.texts.append(text)
            part.documents.append(document)
            part.origins.append(number)
    if odd and not settings.raw:
        _normalize(odd, others)
    return heads, others


def _normalize(odd: list[tuple[_Texts, int]], others: _Texts) -> None:
    """Replace texts by their normal forms, and add fields of the oddities found to the others.

    odd: texts beyond ASCII, by their places in lists.
    """
    # Not every message needs it.
    from nbspam.tokens.forms import normal_forms

    forms, facts = normal_forms([part.texts[place] for part, place in odd])
    for (part, place), form in zip(odd, forms, strict=True):
        part.texts[place] = form
    found: dict[int, set[str]] = {}
    for number, named in facts.items():
        part, place = odd[number]
        found.setdefault(part.documents[place], set()).update(named)
    for document in sorted(found):
        # Behind the document's other fields.
        place = bisect_right(others.documents, document)
        others.texts.insert(place, " ".join(sorted(found[document])).encode())
        others.documents.insert(place, document)
        others.origins.insert(place, _NUMBER["defect"])


def _behind(first: _Fields, second: _Fields) -> _Fields:
    """Return the first fields followed by the second."""
    return _Fields(
        np.concatenate([first.start[:-1], second.start]),
        np.concatenate([first.document, second.document]),
        np.concatenate([first.origin, second.origin]),
    )


def _cut_heads(joined: bytes, heads: _Fields) -> _Fields:
    """Return the names and values of the headers in these heads, as alternating fields."""
    before = heads.start - 1  # the zero byte before each head, and the one after the last
    text = np.frombuffer(joined, np.uint8, before[-1] + 1)
    begins = (text[:-1] == _LINE_FEED) & (text[1:] != _BLANK) & (text[1:] != _TAB)
    # Text before the first header is a line of its own, without a name.
    begins[before[:-1]] = True
    line = positions_of(begins)
    n_lines = differences(line.searchsorted(before))
    kind = heads.origin.repeat(n_lines)
    end = np.concatenate([line[1:], before[-1:]])
    colons = np.concatenate([positions_of(text == _COLON), [len(text)]])
    colon = colons.take(colons.searchsorted(line))
    is_header = (colon < end) & (text.take(line) == _LINE_FEED)
    colon = np.where(is_header, colon, end)
    origin = _NAMES.origins(joined, kind, line + 1, np.where(is_header, colon, 0))
    start = np.empty(2 * len(line) + 1, np.int64)  # of a name, of its value, and so on
    start[:-1:2] = line + 1
    start[1::2] = np.minimum(colon + 1, end)
    start[-1] = before[-1] + 1
    return _Fields(start, heads.document.repeat(2 * n_lines), origin.ravel())


class _Names:
    """A cache of the origins of headers, by name and kind of head.

    Most messages have the same few header names.  They are compared byte by byte: by hashes alone
    anybody could choose a name that decides how the headers of other messages are read.
    """

    def __init__(self) -> None:
        # Ascending keys, spelt names (_WINDOWS + 1, n_names), and origins (n_names, 2).  One
        # tuple, so that threads see all change together.
        self._known = (
            np.zeros(1, np.uint64),
            np.zeros((_WINDOWS + 1, 1), np.uint64),
            np.full((1, 2), _NOT_COUNTED),
        )

    def origins(self, joined: bytes, kind: Integers, start: Integers, end: Integers) -> Integers:
        """Return the origins of headers' names and values, shape (n_lines, 2).

        kind: (n_lines,) kind of head.  start, end: (n_lines,) where the name is; `end` is 0
        for a line that is not a header.
        """
        length = np.maximum(end - start, 0)
        spelt = _spelt(joined, start, length, 2 * kind + (end > 0))
        key = (spelt * _MULTIPLIERS).sum(axis=0, dtype=np.uint64)
        keys, names, origins = self._known
        place = np.minimum(keys.searchsorted(key), len(keys) - 1)
        answer: Integers = origins.take(place, axis=0)
        is_long = length > _WINDOWS * definition.WORD_BYTES
        new = positions_of((names.take(place, axis=1) != spelt).any(axis=0) | is_long)
        if len(new):
            found = np.array(_look_up(joined, kind[new], start[new], end[new]), np.int64)
            answer[new] = found
            _, first = np.unique(np.where(is_long, 0, key).take(new), return_index=True)
            chosen = first[~is_long.take(new.take(first))]
            if len(keys) + len(chosen) <= _MAX_NAMES:
                order = np.argsort(keys := np.append(keys, key.take(new.take(chosen))))
                names = np.append(names, spelt.take(new.take(chosen), axis=1), axis=1)
                origins = np.append(origins, found.take(chosen, axis=0), axis=0)
                self._known = keys[order], names[:, order], origins[order]
        return answer


def _spelt(joined: bytes, start: Integers, length: Integers, kind: Integers) -> Keys:
    """Return names as numbers, each of eight bytes, and the lengths with the kinds.

    Shape (_WINDOWS + 1, n_names).  Names that are longer are cut.
    """
    spelt = np.empty((_WINDOWS + 1, len(start)), np.uint64)
    # Zero bytes follow the last name, but not as many as the windows reach.
    at = np.minimum(start + _WINDOW_STARTS, len(joined) - definition.WORD_BYTES)
    spelt[:-1] = definition.first_bytes(joined, at, length - _WINDOW_STARTS)
    spelt[-1] = 2 * len(_HEAD_KINDS) * length + kind
    return spelt


_NAMES = _Names()


def _look_up(
    joined: bytes, kind: Integers, start: Integers, end: Integers
) -> list[tuple[int, int]]:
    """Return the origins of names and values, looked up one by one (see `_Names.origins`)."""
    found = []
    for number, begin, stop in zip(kind.tolist(), start.tolist(), end.tolist(), strict=True):
        if stop:
            of_name, of_value = origins_of(_HEAD_KINDS[number], joined[begin:stop])
            found.append((_NUMBER[of_name], _NUMBER[of_value]))
        else:
            found.append((_NOT_COUNTED, _NOT_COUNTED))
    return found


def _runs(joined: bytes, fields: _Fields, is_raw: bool) -> tuple[bytes, _Fields]:
    """Return the text that is cut into runs of characters, and its fields."""
    from nbspam.tokens.normalize import without_pairs  # late: few models need it

    chosen = np.flatnonzero(_HAS_CHARACTERS[fields.origin])
    # Sorted by document, because a subject and a body, which are far apart in the buffer, can
    # have the same run with the same key: the entries of one key must be in the order of documents
    # (see `_count`).
    chosen = chosen[np.argsort(fields.document[chosen], kind="stable")]
    bounds = zip(fields.start[chosen].tolist(), fields.start[chosen + 1].tolist(), strict=True)
    parts = [joined[start:end] for start, end in bounds]
    if not is_raw:
        parts = list(map(without_pairs, parts))
    texts = [definition.folded_line(text) + b"\0" for text in parts]
    start = len(joined) + offsets_of([len(text) for text in texts])
    number = np.full(len(texts), _NUMBER[definition.CHARACTERS])
    return b"".join(texts), _Fields(start, fields.document[chosen], number)


# --- the tokens of a batch -------------------------------------------------------------------

HASH_MASK = ~np.uint64((1 << definition.HASH_SHIFT) - 1)
_ALL = slice(None)  # every column
# Larger batches do not fit into the processor's caches; with smaller ones the calls of numpy and
# merging take longer: E-001.
_BATCH_BYTES = 1 << 19
_MAX_WORDS = 1 << RIDER_BITS
_GROUP_OF_KIND = np.array(
    [definition.group_of_kind(kind) for kind in range(definition.N_KINDS)], np.uint8
)
_IS_STRUCTURE_OF_KIND = definition.IS_STRUCTURE[_GROUP_OF_KIND]
_KIND_SHIFT, _KIND_MASK = np.uint64(RIDER_BITS), np.uint64((1 << definition.KIND_BITS) - 1)


class TokenBatch(NamedTuple):
    """The tokens of a batch of messages, and how each is spelt."""

    documents: Documents  # over the keys of the tokens, ascending
    groups: Octets  # (n_keys,) index into GROUPS
    first: Integers  # (n_keys,) the word that each token's first occurrence is or begins with
    layout: Layout
    words: "_Words"

    @property
    def keys(self) -> Keys:
        """The keys of the tokens, shape (n_keys,), ascending and unique."""
        keys: Keys = self.documents.tokens
        return keys


def batches(messages: Iterable[Message], settings: TokenSettings) -> Iterator[list[Message]]:
    """Yield messages in groups that have at most about _BATCH_BYTES bytes of text.

    Groups are smaller if there are runs of characters, because each byte can start MAX_RUN runs.
    """
    size = _BATCH_BYTES // (definition.MAX_RUN + 1 if settings.characters else 1)
    return grouped(messages, lambda each: sum([len(text) + 1 for _, text in each.fields]), size)


def tokenize(messages: Sequence[Message], settings: TokenSettings) -> TokenBatch:
    """Return the tokens of one batch of messages; `batches` makes batches of a suitable size."""
    layout = lay_out(messages, settings)
    words = _find_words(layout, settings)
    key, below = _hash_words(layout, words), _kinds_and_riders(layout, words, 0)
    if settings.pairs:
        first = positions_of(words.field_of[1:] == words.field_of[:-1])
        pair = definition.hash_pairs(key[first], key[first + 1])
        of_pair = below[first] ^ np.uint64(definition.WORD_BIT)
        key, below = np.concatenate([key, pair]), np.concatenate([below, of_pair])
    if settings.characters:
        runs = _Words(*definition.find_runs(layout.buffer, layout.runs, layout.start))
        runs = _bounded(runs, layout, len(words.start))
        key = np.concatenate([key, _hash_words(layout, runs)])
        more = _kinds_and_riders(layout, runs, len(words.start))
        below = np.concatenate([below, more])
        words = _Words(*map(np.concatenate, zip(words, runs, strict=True)))
    key &= HASH_MASK
    key |= below
    key.sort()
    return _count(key, layout, words)


class _Words(NamedTuple):
    """The words of a batch, in the order of the buffer: three arrays of shape (n_words,)."""

    start: Integers
    length: Integers
    field_of: Integers


def _find_words(layout: Layout, settings: TokenSettings) -> _Words:
    """Return the words that are counted and are neither too short nor too long."""
    text = np.frombuffer(layout.buffer, np.uint8, layout.end)
    inside = text != 0
    edges = positions_of(inside[1:] != inside[:-1])
    start = edges[0::2] + 1
    length = edges[1::2] - edges[0::2]
    n_words = differences(start.searchsorted(layout.start))
    field_of = np.arange(len(n_words)).repeat(n_words)
    keep = length <= settings.max_length
    longer = positions_of(~keep)
    is_wide = text.take(start.take(longer)) >= definition.LEAD_OF_THREE[0]
    keep[longer] = is_wide & (length.take(longer) <= 3 * settings.max_length)
    keep &= _IS_COUNTED[layout.origin].repeat(n_words)
    if settings.min_length > 1:
        # Lengths in characters: bytes that continue a UTF-8 sequence are not counted.
        continues = np.concatenate([[0], np.cumsum((text & 0xC0) == 0x80)])
        characters = length - (continues[start + length] - continues[start])
        keep &= characters >= settings.min_length
    kept = positions_of(keep)
    return _bounded(_Words(start.take(kept), length.take(kept), field_of.take(kept)), layout, 0)


def _bounded(words: _Words, layout: Layout, before: int) -> _Words:
    """Return the words for which there are riders; before: how many have one already.

    Normal forms can be longer than their texts and have more words than a batch can number.  Of
    the longest messages the first words then count, as many of each; the others lose none.
    """
    room = _MAX_WORDS - before
    if len(words.start) <= room:
        return words
    document = layout.document.take(words.field_of)
    order = document.argsort(kind="stable")
    number = np.bincount(document, minlength=layout.n_docs)
    ascending = np.sort(number)
    # What each may have if it and all longer ones get alike, and the shorter ones all of theirs.
    share = (room - offsets_of(ascending)[:-1]) // np.arange(layout.n_docs, 0, -1)
    most = share[(share < ascending).argmax()]
    rank = np.arange(len(order)) - (number.cumsum() - number).repeat(number)
    kept = np.sort(order[rank < most])
    return _Words(*(part.take(kept) for part in words))


def _hash_words(layout: Layout, words: _Words) -> Keys:
    """Return the hash of every word, salted by its field's origin, shape (n_words,)."""
    return definition.hash_slices(
        layout.buffer, words.start, words.length, _SALTS[layout.origin].take(words.field_of)
    )


def _kinds_and_riders(layout: Layout, words: _Words, start: int) -> Keys:
    """Return the bits below the hash of every word: kind and rider, shape (n_words,).

    start: the rider of the first word.
    """
    below: Keys = _KINDS[layout.origin].take(words.field_of)
    below |= np.arange(start, start + len(below), dtype=np.uint64)
    return below


def _count(sorted_keys: Keys, layout: Layout, words: _Words) -> TokenBatch:
    """Return the tokens and their counts in each document, from the sorted keys with riders."""
    rider = (sorted_keys & RIDER_MASK).view(np.int64)
    key = sorted_keys & ~RIDER_MASK
    # The entries of one key are in the order of documents.  They are in the order of riders, and
    # so of positions in the buffer.  The buffer holds the headers of all documents, then all their
    # other fields, then their text for runs; within each of these parts documents are in order.
    # A key holds its kind, and `definition` lets each kind occur in one of these parts only.
    document = smallest(layout.document, layout.n_docs).take(words.field_of).take(rider)
    new_key = np.empty(len(key), bool)
    new_key[:1] = True
    np.not_equal(key[1:], key[:-1], out=new_key[1:])
    new_entry = new_key.copy()
    new_entry[1:] |= document[1:] != document[:-1]
    entry = positions_of(new_entry)
    first = positions_of(new_key)
    token = key.take(first)
    frequency = _lengths(positions_of(new_key.take(entry)), len(entry))
    of_entry = document.take(entry)
    # numpy sorts numbers of at most two bytes in linear time.
    order = of_entry.argsort(kind="stable")
    column = smallest(np.arange(len(first)), len(first)).repeat(frequency)
    times = _lengths(entry, len(key))
    is_rest = layout.origin == _NUMBER[definition.REST]
    in_rest = None
    if is_rest.any():
        # The first occurrence decides, because a document's rest follows its other text.
        in_rest = is_rest.take(words.field_of.take(rider.take(entry).take(order)))
    documents = Documents(
        token,
        offsets_of(np.bincount(of_entry, minlength=layout.n_docs)),
        column.take(order),
        smallest(times, times.max(initial=0)).take(order),
        in_rest=in_rest,
    )
    return TokenBatch(documents, groups_of(token), rider.take(first), layout, words)


def _lengths(starts: Integers, end: int) -> Integers:
    """Return the lengths of consecutive pieces, the last of which ends at `end`."""
    lengths: Integers = differences(np.concatenate([starts, [end]]))
    return lengths


def groups_of(keys: Keys) -> Octets:
    """Return the index into GROUPS of the tokens with these keys; same shape as keys."""
    return np.asarray(_GROUP_OF_KIND.take((keys >> _KIND_SHIFT & _KIND_MASK).view(np.int64)))


def are_structure(keys: Keys) -> Booleans:
    """Return a mask of the keys of tokens of IS_STRUCTURE's groups; same shape as keys."""
    return _IS_STRUCTURE_OF_KIND.take((keys >> _KIND_SHIFT & _KIND_MASK).view(np.int64))


# --- vocabularies ------------------------------------------------------------------------------


def batch_vocabulary(batch: TokenBatch, wanted: Booleans | slice = _ALL) -> Vocabulary:
    """Return the vocabulary of a batch of messages, or of some of its columns.

    wanted: (n_keys,) a mask of the columns.
    """
    keys, word = batch.keys[wanted], batch.first[wanted]
    layout, words = batch.layout, batch.words
    is_pair = np.asarray(keys & np.uint64(definition.WORD_BIT) == 0)
    # Tags and words, and if there are pairs, spaces and second words; arrays of shape (n_tokens,).
    tag = 2 * layout.origin.take(words.field_of.take(word)) + is_pair
    starts = [_TAG_STARTS.take(tag) + layout.tags, words.start.take(word)]
    lengths = [_TAG_LENGTHS.take(tag), words.length.take(word)]
    if is_pair.any():
        second = np.minimum(word + 1, len(words.start) - 1)
        starts += [np.full(len(word), layout.tags), words.start[second]]
        lengths += [is_pair, np.where(is_pair, words.length[second], 0)]
    buffer = np.frombuffer(layout.buffer, np.uint8)
    pieces = (np.stack(each, axis=1).ravel() for each in (starts, lengths))
    blob, offsets = gather_slices(buffer, *pieces), offsets_of(sum(lengths))
    return Vocabulary(keys, blob, offsets, batch.groups[wanted])


def vocabulary_of(keys: Keys, texts: Sequence[bytes]) -> Vocabulary:
    """Return the vocabulary of tokens in the order of keys; raises ValueError if two are equal."""
    if len(again := np.flatnonzero(keys[1:] == keys[:-1])):
        one, other = (text[:40].decode("utf-8", "replace") for text in texts[again[0] :][:2])
        raise ValueError(f"a token is there twice, as {one!r} and {other!r}")
    blob = np.frombuffer(b"".join(texts), np.uint8)
    return Vocabulary(keys, blob, offsets_of([len(text) for text in texts]), groups_of(keys))


def named_vocabulary(names: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of tokens as `nbspam tokens` prints them; raises UsageError."""
    try:
        texts = [name.encode("utf-8", "surrogateescape") for name in names]
        keys = np.array(
            [definition.reference_key(definition.token_of(text)) for text in texts], np.uint64
        )
        order = np.argsort(keys)
        return vocabulary_of(keys[order], [texts[place] for place in order.tolist()])
    except ValueError as error:
        raise UsageError(f"vocabulary: {error}; give each token once, as nbspam tokens") from None
