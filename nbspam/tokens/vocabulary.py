"""The vocabulary: the sorted keys of tokens, and the text of each token.

Secret: how a token's column is found (by bisection in the sorted keys, which works directly on a
memory-mapped file, or by buckets where many keys are looked up) and how texts are kept (one blob
and offsets).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbspam.arrays import Booleans, Indices, Integers, Keys, Octets, places_of
from nbspam.tokens.definition import WORD_BIT
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.slices import gather_slices
from nbspam.tokens.tokenizer import ALL, RIDER_MASK, TokenBatch

_AT_ONCE = 1 << 16  # keys; the temporary arrays of more do not fit into the processor's caches
_STEPS = 2  # steps back from a bucket's last key; bisection finds the few keys further away


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens in the order of their keys: column j has the key keys[j] and a text in the blob.

    Tokens that were appended by `with_added` follow all others; each batch of them is in the
    order of its own keys.  `take` does not copy texts; `packed` gathers them when they are needed
    in order.
    """

    keys: Keys  # (n_features,) unique; ascending except where an appended batch begins
    blob: Octets  # UTF-8 texts, concatenated
    offsets: Integers  # (n_texts + 1,)
    groups: Octets  # (n_features,) index into `definition.GROUPS`
    appended: tuple[int, ...] = ()  # the number of tokens in each appended batch
    spelt: Integers | None = None  # (n_features,) index of each text; None: text j is column j's

    def __len__(self) -> int:
        return len(self.keys)

    def known(self, documents: Documents) -> Documents:
        """Return documents over keys as documents over columns; drops unknown tokens."""
        return documents.on(self.columns(documents.tokens))

    def columns(self, keys: Keys) -> Integers:
        """Return the column of every key, -1 for unknown keys; same shape as keys."""
        start = len(self.keys) - sum(self.appended)
        column = _find(self.keys[:start], keys)
        for length in self.appended:
            added = _find(self.keys[start : start + length], keys)
            column[added >= 0] = added[added >= 0] + start
            start += length
        return column

    def with_riders(self, rider: int) -> "Vocabulary":
        """Return the same vocabulary with this number in the low bits of all keys.

        `join` keeps the text with the lowest rider.  Everywhere else riders are 0.
        """
        return replace(self, keys=(self.keys & ~RIDER_MASK) | np.uint64(rider))

    def text(self, column: int) -> str:
        """Return the text of one column."""
        text = column if self.spelt is None else int(self.spelt[column])
        start, end = self.offsets[text : text + 2].tolist()
        return bytes(self.blob[start:end]).decode("utf-8", "replace")

    def take(self, columns: Integers) -> "Vocabulary":
        """Return the vocabulary of these columns only, in this order."""
        keys, groups = self.keys.take(columns), self.groups.take(columns)
        spelt = columns if self.spelt is None else self.spelt.take(columns)
        return Vocabulary(keys, self.blob, self.offsets, groups, spelt=spelt)

    def packed(self) -> "Vocabulary":
        """Return the same vocabulary with texts in the order of columns."""
        if self.spelt is None:
            return self
        length = np.diff(self.offsets).take(self.spelt)
        blob = gather_slices(self.blob, self.offsets.take(self.spelt), length)
        offsets = offsets_of(length)
        return replace(self, blob=blob, offsets=offsets, spelt=None)


def _find(ascending: Keys, keys: Keys) -> Integers:
    """Return the position of each key, -1 for missing keys; same shape as keys."""
    if not len(ascending):
        return np.full(len(keys), -1)
    if len(keys) > len(ascending):
        return _find_many(ascending, keys)
    column = ascending.searchsorted(keys)
    column[ascending.take(column, mode="clip") != keys] = -1
    return column


def _find_many(ascending: Keys, keys: Keys) -> Integers:
    """Return the same as `_find`, in a third of the time if there are many keys.

    Keys are evenly spread hashes, so their first bits nearly determine their positions.
    """
    bits = len(ascending).bit_length()
    shift = np.uint64(64 - bits)
    in_bucket = np.bincount((ascending >> shift).view(np.int64), minlength=1 << bits)
    last = np.cumsum(in_bucket) - 1
    column = np.empty(len(keys), np.int64)
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        place = last.take((some >> shift).view(np.int64))
        missed = places_of(ascending.take(place, mode="clip") != some)
        for _ in range(_STEPS):
            before = place.take(missed) - 1
            place[missed] = before
            missed = missed[ascending.take(before, mode="clip") != some.take(missed)]
        rest = some.take(missed)
        found = np.searchsorted(ascending, rest)
        found[ascending.take(found, mode="clip") != rest] = -1
        place[missed] = found
        column[start : start + _AT_ONCE] = place
    return column


def have_kinds(keys: Keys) -> bool:
    """Return whether keys have kinds.  Those of models of formats 1 and 2 had none.

    keys: of all tokens of a message or of a model, which always has a word.
    """
    # Old keys end in 20 zero bits.
    return not len(keys) or bool(np.bitwise_or.reduce(keys) & np.uint64(WORD_BIT))


def with_added(vocabulary: Vocabulary, more: Vocabulary) -> Vocabulary:
    """Return a vocabulary followed by tokens that it does not have.

    Unlike `join`, this needs no sort and does not change the columns of its own tokens.
    """
    appended = (*vocabulary.appended, len(more))
    return replace(concatenated([vocabulary, more]), appended=appended)


def concatenated(parts: Sequence[Vocabulary]) -> Vocabulary:
    """Return the tokens of all vocabularies in turn; the keys of the result need not ascend."""
    parts = [empty_vocabulary(), *(part.packed() for part in parts)]
    shift = np.cumsum([len(part.blob) for part in parts])
    # Each part's offsets after the first, shifted to the part's place in the joint blob.
    ends = [p.offsets[1:] + s for p, s in zip(parts[1:], shift[:-1], strict=True)]
    return Vocabulary(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.blob for part in parts]),
        np.concatenate([parts[0].offsets, *ends]),
        np.concatenate([part.groups for part in parts]),
    )


def batch_vocabulary(batch: TokenBatch, wanted: Booleans | slice = ALL) -> Vocabulary:
    """Return the vocabulary of a batch of messages, or of some of its columns.

    wanted: (n_keys,) a mask of the columns.
    """
    return Vocabulary(batch.keys[wanted], *batch.texts(wanted), batch.groups[wanted])


def empty_vocabulary() -> Vocabulary:
    """Return a vocabulary without tokens."""
    return Vocabulary(
        np.empty(0, np.uint64), np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.uint8)
    )


def join(parts: Sequence[Vocabulary], ranks: Indices | None = None) -> tuple[Vocabulary, Integers]:
    """Return the union of vocabularies, and the new columns of all their tokens in turn.

    A token that several parts have keeps the text (and group) of the part in which its key has
    the lowest rider, or of the first such part.  ranks: of all tokens in turn; they decide in
    the place of riders, which must be 0 then.
    """
    together = concatenated(parts)
    if ranks is None:
        order = np.argsort(together.keys, kind="stable")
    else:
        order = np.lexsort((ranks, together.keys))
    ordered = together.keys.take(order)
    new = np.ones(len(order), bool)
    np.greater(ordered[1:] ^ ordered[:-1], RIDER_MASK, out=new[1:])
    column = np.empty(len(order), np.int64)
    column[order] = np.cumsum(new) - 1
    return together.take(order.take(places_of(new))), column
