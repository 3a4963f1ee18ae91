"""The tokenizer: finds and counts the tokens of many messages in one pass of numpy.

It finds the tokens that `definition.reference_tokens` defines.  A single message is a batch of
one.

Secret: how tokens are found and counted without a Python object for each of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets, differences, places_of
from nbspam.mail.message import Message
from nbspam.settings import TokenSettings
from nbspam.tokens.characters import MAX_RUN, find_runs
from nbspam.tokens.definition import (
    HASH_SHIFT,
    KIND_BITS,
    N_KINDS,
    RIDER_BITS,
    WORD_BIT,
    group_of_kind,
)
from nbspam.tokens.documents import Documents, offsets_of, smallest
from nbspam.tokens.hashing import hash_pairs, hash_slices
from nbspam.tokens.layout import COUNTS, KINDS, SALTS, TAG_LENGTHS, TAG_STARTS, Layout, lay_out
from nbspam.tokens.slices import gather_slices
from nbspam.tokens.spelling.pairs import in_pairs

RIDER_MASK = np.uint64((1 << RIDER_BITS) - 1)
HASH_MASK = ~np.uint64((1 << HASH_SHIFT) - 1)
ALL = slice(None)  # every column
# Larger batches do not fit into the processor's caches; with smaller ones the calls of numpy and
# merging take longer: E-001.
BATCH_BYTES = 1 << 19
_MAX_WORDS = 1 << RIDER_BITS
# There is room for more kinds; keys that were made up can have them.
_GROUP_OF_KIND = np.array(
    [group_of_kind(min(kind, N_KINDS - 1)) for kind in range(1 << KIND_BITS)], np.uint8
)


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

    def texts(self, wanted: Booleans | slice = ALL) -> tuple[Octets, Integers]:
        """Return the texts of some tokens: a UTF-8 blob, and offsets (n_wanted + 1,).

        wanted: (n_keys,) a mask of the tokens.
        """
        starts, lengths = _text_pieces(
            self.first[wanted], are_pairs(self.keys[wanted]), self.layout, self.words
        )
        offsets = offsets_of(sum(lengths))
        buffer = np.frombuffer(self.layout.buffer, np.uint8)
        pieces = (np.stack(each, axis=1).ravel() for each in (starts, lengths))
        return gather_slices(buffer, *pieces), offsets


def tokenize(messages: Sequence[Message], settings: TokenSettings) -> TokenBatch:
    """Return the tokens of one batch of messages; `batches` makes batches of a suitable size."""
    layout = lay_out(messages, settings)
    words = _find_words(layout, settings)
    key, below = _hash_words(layout, words), _kinds_and_riders(layout, words, 0)
    if settings.pairs:
        key, below = _add_pairs(key, below, words.field_of)
    if settings.characters:
        runs = _Words(*find_runs(layout.buffer, layout.runs, layout.start))
        runs = _Words(*(part[: _MAX_WORDS - len(words.start)] for part in runs))
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
    edges = places_of(inside[1:] != inside[:-1])
    start = edges[0::2] + 1
    length = edges[1::2] - edges[0::2]
    if not (settings.raw or layout.buffer.isascii()):
        start, length = in_pairs(layout.buffer, start, length)
    n_words = differences(start.searchsorted(layout.start))
    field_of = np.arange(len(n_words)).repeat(n_words)
    keep = (length <= settings.max_length) & COUNTS[layout.origin].repeat(n_words)
    if settings.min_length > 1:
        # Lengths in characters: bytes that continue a UTF-8 sequence are not counted.
        continues = np.concatenate([[0], np.cumsum((text & 0xC0) == 0x80)])
        characters = length - (continues[start + length] - continues[start])
        keep &= characters >= settings.min_length
    # Normalisation can make text longer; words beyond the largest rider are dropped.
    kept = places_of(keep)[:_MAX_WORDS]
    return _Words(start.take(kept), length.take(kept), field_of.take(kept))


def _hash_words(layout: Layout, words: _Words) -> Keys:
    """Return the hash of every word, salted by its field's origin, shape (n_words,)."""
    return hash_slices(
        layout.buffer, words.start, words.length, SALTS[layout.origin].take(words.field_of)
    )


def _kinds_and_riders(layout: Layout, words: _Words, start: int) -> Keys:
    """Return what goes below the hash of every word: kind and rider, shape (n_words,).

    start: the rider of the first word.
    """
    below: Keys = KINDS[layout.origin].take(words.field_of)
    below |= np.arange(start, start + len(below), dtype=np.uint64)
    return below


def _add_pairs(word: Keys, below: Keys, field_of: Integers) -> tuple[Keys, Keys]:
    """Return the hashes of words and of pairs in a field, and what goes below each."""
    first = places_of(field_of[1:] == field_of[:-1])
    pair = hash_pairs(word[first], word[first + 1])
    of_pair = below[first] ^ np.uint64(WORD_BIT)
    return np.concatenate([word, pair]), np.concatenate([below, of_pair])


def _count(sorted_keys: Keys, layout: Layout, words: _Words) -> TokenBatch:
    """Return the tokens and their counts in each document, from the sorted keys with riders."""
    rider = (sorted_keys & RIDER_MASK).view(np.int64)
    key = sorted_keys & ~RIDER_MASK
    # The entries of one key are in the order of documents.  They are in the order of riders, and
    # so of positions in the buffer.  The buffer holds the headers of all documents, then all their
    # other fields, then their text for runs; within each of these parts documents are in order.
    # One key is in one part only, because no kind (which is in the key) occurs in two.
    document = smallest(layout.document, layout.n_docs).take(words.field_of).take(rider)
    new_key = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new_key[1:])
    new_entry = new_key.copy()
    new_entry[1:] |= document[1:] != document[:-1]
    entry = places_of(new_entry)
    first = places_of(new_key)
    token = key.take(first)
    frequency = _lengths(places_of(new_key.take(entry)), len(entry))
    of_entry = document.take(entry)
    # numpy sorts numbers of at most two bytes in linear time.
    order = of_entry.argsort(kind="stable")
    column = smallest(np.arange(len(first)), len(first)).repeat(frequency)
    times = _lengths(entry, len(key))
    documents = Documents(
        token,
        offsets_of(np.bincount(of_entry, minlength=layout.n_docs)),
        column.take(order),
        smallest(times, times.max(initial=0)).take(order),
    )
    return TokenBatch(documents, groups_of(token), rider.take(first), layout, words)


def _lengths(starts: Integers, end: int) -> Integers:
    """Return the lengths of consecutive pieces, the last of which ends at `end`."""
    lengths: Integers = differences(np.concatenate([starts, [end]]))
    return lengths


def groups_of(keys: Keys) -> Octets:
    """Return the index into GROUPS of the tokens with these keys; same shape as keys."""
    kind = keys >> np.uint64(RIDER_BITS) & np.uint64((1 << KIND_BITS) - 1)
    return np.asarray(_GROUP_OF_KIND.take(kind.view(np.int64)))


def are_pairs(keys: Keys) -> Booleans:
    """Return which keys are those of pairs of words; same shape as keys."""
    return np.asarray(keys & np.uint64(WORD_BIT) == 0)


def _text_pieces(
    word: Integers, is_pair: Booleans, layout: Layout, words: _Words
) -> tuple[list[Integers], list[Integers]]:
    """Return the starts and lengths of the pieces that spell tokens, each (n_tokens,).

    The pieces are tags and words and, if there are pairs, spaces and second words.
    """
    tag = 2 * layout.origin.take(words.field_of.take(word)) + is_pair
    starts = [TAG_STARTS.take(tag) + layout.tags, words.start.take(word)]
    lengths = [TAG_LENGTHS.take(tag), words.length.take(word)]
    if is_pair.any():
        second = np.minimum(word + 1, len(words.start) - 1)
        starts += [np.full(len(word), layout.tags), words.start[second]]
        lengths += [is_pair, np.where(is_pair, words.length[second], 0)]
    return starts, lengths


def batches(
    messages: Iterable[Message], settings: TokenSettings, size: int = BATCH_BYTES
) -> Iterator[list[Message]]:
    """Yield messages in groups that have at most about `size` bytes of text.

    Groups are smaller if there are runs of characters, because each byte can start MAX_RUN runs.
    """
    if settings.characters:
        size //= MAX_RUN + 1
    group: list[Message] = []
    total = 0
    for message in messages:
        extent = sum([len(text) + 1 for _, text in message.fields])
        if group and total + extent > size:
            yield group
            group, total = [], 0
        group.append(message)
        total += extent
    if group:
        yield group
