"""The keys of older models: 44 bits of a hash, and no kind.

Their first 41 bits are those of today's keys.  The kind follows from how a token is spelt.

Secret: how the origins of a million tokens are found in their texts.
"""

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Octets
from nbspam.tokens.definition import GROUPS, PAIR, WORD_BIT
from nbspam.tokens.hashing import WORD_BYTES, hash_pairs, hash_slices
from nbspam.tokens.layout import KINDS, SALTS
from nbspam.tokens.tokenizer import HASH_MASK
from nbspam.tokens.vocabulary import Vocabulary

_COLON, _BLANK = b": "
_PAIR_TAG = len(PAIR) + 1
_BODY = 0  # the number of its origin


def with_kinds(vocabulary: Vocabulary) -> Keys:
    """Return the keys of tokens with their kinds, shape (n_features,).

    Two tokens can get the same key, and the keys need not ascend any more.  Keys that have a kind
    stay as they are, if they are those of the texts.
    """
    vocabulary = vocabulary.packed()
    is_pair = vocabulary.groups == GROUPS.index("pairs")
    # Zeros, so that hashing the last word does not read past the buffer.
    buffer = vocabulary.blob.tobytes() + bytes(2 * WORD_BYTES + _PAIR_TAG)
    bounds = vocabulary.offsets.astype(np.int64)
    start, end = bounds[:-1] + is_pair * _PAIR_TAG, bounds[1:]
    colon = _next(_COLON, vocabulary.blob, start, end)
    tagged = np.flatnonzero(colon < end)
    start, colon, end = (each[tagged] for each in (start, colon, end))
    pairs = is_pair[tagged]
    named = _origins(buffer, start, colon - start)
    # Where settings allow colons in words, a word can begin with what looks like a tag.
    blank = np.where(pairs, _next(_BLANK, vocabulary.blob, colon, end), end)
    found = _hashes(buffer, colon + 1, blank, end, SALTS.take(named), pairs)
    named[(found ^ vocabulary.keys[tagged]) & HASH_MASK != 0] = _BODY
    origin = np.full(len(is_pair), _BODY)
    origin[tagged] = named
    kind = KINDS.take(origin) ^ is_pair * np.uint64(WORD_BIT)
    return np.asarray(vocabulary.keys & HASH_MASK | kind)


def _next(byte: int, blob: Octets, start: Integers, end: Integers) -> Integers:
    """Return where a byte first occurs in each text, or else the text's end, shape (n_texts,)."""
    places = np.append(np.flatnonzero(blob == byte), len(blob))
    found = places.take(np.searchsorted(places, start), mode="clip")
    return np.asarray(np.minimum(found, end))


def _origins(buffer: bytes, start: Integers, length: Integers) -> Integers:
    """Return the numbers of the origins that these slices name, _BODY for others."""
    # The salt of an origin is the hash of its name.
    salt = hash_slices(buffer, start, length, np.ones(len(start), np.uint64))
    known = np.argsort(SALTS)
    place = known.take(np.searchsorted(SALTS.take(known), salt), mode="clip")
    return np.where(SALTS.take(place) == salt, place, _BODY)


def _hashes(
    buffer: bytes, start: Integers, blank: Integers, end: Integers, salt: Keys, is_pair: Booleans
) -> Keys:
    """Return the hashes of words, start to blank, or of pairs with the words behind the blank."""
    value = hash_slices(buffer, start, blank - start, salt)
    pairs = np.flatnonzero(is_pair)
    start = blank[pairs] + 1
    length = np.maximum(end[pairs] - start, 0)
    second = hash_slices(buffer, start, length, salt[pairs])
    value[pairs] = hash_pairs(value[pairs], second)
    return value
