"""Documents, the program's only sparse type, and the vocabulary that names their columns.

A batch of messages, a model's sample, the changes in a journal and a corpus for cross-validation
are all held document by document (compressed sparse rows, CSR).  Columns take as few bytes as
possible, and large arrays are copied in parts.  A token's column is found by bisection in the
sorted keys, which works directly on a memory-mapped file, or by buckets where many keys are looked
up.  Texts of tokens are kept as one blob and offsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import (
    Booleans,
    Indices,
    Integers,
    Integers32,
    Keys,
    Octets,
    differences,
    find,
    positions_of,
    together,
)

# Positions and keys that are looked up together, and slices that are gathered together: the
# temporary arrays of more do not fit into the processor's caches.
_AT_ONCE, _SLICES_AT_ONCE = 1 << 16, 1 << 13
_STEPS = 2  # steps back from a bucket's last key; bisection finds the few keys further away
# The low bits of a key are 0, except while texts of one token compete, see `join`.
RIDER_BITS = 19
RIDER_MASK = np.uint64((1 << RIDER_BITS) - 1)


class Documents(NamedTuple):
    """Documents over some tokens; entry i says that a token occurs in a document.

    The document is d if offsets[d] <= i < offsets[d + 1]; the token is tokens[columns[i]].
    The columns of a document ascend and are unique.

    There are two kinds, and only what `tokens` holds tells them apart.  Documents *over keys*
    name each token by its 64-bit key: messages as the tokenizer returns them, or as they are
    kept.  Documents *over columns* name each token by its column in one vocabulary; they have no
    unknown tokens.  `Vocabulary.in_columns` turns the first kind into the second.
    """

    tokens: Any  # (n_tokens,) keys of tokens, or columns of one vocabulary
    offsets: Integers  # (n_docs + 1,)
    columns: Indices  # (nnz,) index into tokens
    counts: Indices | None  # (nnz,) occurrences; None if only presence is counted
    # (n_docs,) tokens of structure (`definition.IS_STRUCTURE`) before unknown ones were dropped;
    # None: nobody asked
    structure: Integers | None = None
    # (nnz,) whether the token occurs only in the rest of the text (`definition.REST`); None: no
    # document has one, or nobody asked
    in_rest: Booleans | None = None

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    def rows(self) -> Integers32:
        """Return the document of every entry, shape (nnz,)."""
        if self.n_docs == 1:  # as always where messages are judged one by one
            return np.zeros(len(self.columns), np.int32)
        return np.arange(self.n_docs, dtype=np.int32).repeat(differences(self.offsets))

    def lengths(self, wanted: Booleans) -> Integers:
        """Return how many of some tokens each document has, (n_docs,); wanted: (n_tokens,)."""
        return self.number_of(wanted.take(self.columns))

    def number_of(self, entries: Booleans) -> Integers:
        """Return how many of some entries each document has, (n_docs,); entries: mask (nnz,)."""
        if self.n_docs == 1:
            return np.array([np.count_nonzero(entries)])
        number = np.zeros(self.n_docs, np.int64)
        # To an empty document reduceat would give the first entry of the next.
        filled = positions_of(differences(self.offsets) > 0)
        number[filled] = np.add.reduceat(entries, self.offsets.take(filled), dtype=np.int64)
        return number

    def times(self) -> Indices:
        """Return how often each entry's token occurs in its document, shape (nnz,)."""
        if self.counts is None:
            return np.broadcast_to(np.uint8(1), len(self.columns))
        return self.counts

    def are_in_rest(self) -> Booleans:
        """Return whether each entry's token occurs only in the rest of the text, shape (nnz,)."""
        return np.zeros(len(self.columns), np.bool_) if self.in_rest is None else self.in_rest

    def part(self, start: int, end: int) -> "Documents":
        """Return the documents start to end - 1, without copying."""
        offsets = self.offsets[start : end + 1]
        some = slice(int(offsets[0]), int(offsets[-1]))
        counts, in_rest = _some(self.counts, some), _some(self.in_rest, some)
        structure, offsets = _some(self.structure, slice(start, end)), offsets - offsets[0]
        return Documents(self.tokens, offsets, self.columns[some], counts, structure, in_rest)

    def one(self, row: int) -> "Documents":
        """Return one document over its own tokens only."""
        own = self.part(row, row + 1)
        tokens = own.tokens.take(own.columns)
        return own._replace(tokens=tokens, columns=np.arange(len(tokens)))

    def take(self, chosen: Integers | Booleans) -> "Documents":
        """Return some documents; chosen: row numbers, in this order, or a mask (n_docs,)."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = positions_of(chosen)
        offsets = self.offsets.tolist()
        places = [slice(offsets[row], offsets[row + 1]) for row in chosen.tolist()]

        def gathered(values: Any) -> Any:
            if values is None:
                return None
            return together([values[place] for place in places], values.dtype)

        bounds, structure = offsets_of(differences(self.offsets)[chosen]), self.structure
        columns, counts, in_rest = map(gathered, (self.columns, self.counts, self.in_rest))
        return Documents(self.tokens, bounds, columns, counts, _some(structure, chosen), in_rest)

    def only(self, wanted: Booleans) -> "Documents":
        """Return the same documents with the entries of some tokens; wanted: mask (n_tokens,)."""
        if wanted.all():
            return self
        offsets = np.empty_like(self.offsets)
        arrays = [self.columns, self.counts, self.in_rest]
        fewer = [None if values is None else np.empty_like(values) for values in arrays]
        # In parts, because the places of all entries would take more memory than the documents.
        end, bounds = 0, [*range(0, self.offsets[-1] or 1, _AT_ONCE), self.offsets[-1] + 1]
        rows = self.offsets.searchsorted(bounds).tolist()
        for (start, stop), (row, next_row) in zip(pairwise(bounds), pairwise(rows), strict=True):
            some = slice(start, stop)
            kept = positions_of(wanted.take(self.columns[some]))
            offsets[row:next_row] = end + kept.searchsorted(self.offsets[row:next_row] - start)
            own, end = slice(end, end + len(kept)), end + len(kept)
            for values, left in zip(arrays, fewer, strict=True):
                if values is not None and left is not None:
                    left[own] = values[some].take(kept)
        columns, counts, in_rest = (_some(left, slice(end)) for left in fewer)
        return self._replace(offsets=offsets, columns=columns, counts=counts, in_rest=in_rest)

    def renumbered(self, numbers: Integers) -> "Documents":
        """Return the documents with a number for each token, such as its column for its key.

        numbers: (n_tokens,) the new number of each token; a token with -1 is dropped.
        """
        is_known = numbers >= 0
        if is_known.all():
            return self._replace(tokens=numbers)
        known = self.only(is_known)
        rank = smallest(is_known.cumsum() - is_known, len(numbers))
        return known._replace(tokens=numbers[is_known], columns=rank.take(known.columns))

    def over_all(self, columns: Integers) -> "Documents":
        """Return documents over some columns of a vocabulary as documents over all of them.

        columns: all columns of the vocabulary in order, 0 to n_features - 1.  The caller makes
        this large array once, and all the documents that it converts share it.
        """
        numbers = self.tokens.astype(np.min_scalar_type(len(columns)))
        return self._replace(tokens=columns, columns=numbers.take(self.columns))

    def without_unused(self) -> "Documents":
        """Return the documents over only those tokens that occur in them."""
        used = np.bincount(self.columns, minlength=len(self.tokens)) > 0
        fewer = self.renumbered(np.where(used, np.arange(len(used)), -1))
        return fewer._replace(tokens=self.tokens[used])


def _some(values: Any, chosen: Any) -> Any:
    """Return some elements of an array, None if there is none."""
    return None if values is None else values[chosen]


def offsets_of(lengths: Any) -> Integers:
    """Return the offsets of consecutive pieces of these lengths, shape (n_pieces + 1,)."""
    offsets = np.empty(len(lengths) + 1, np.int64)
    offsets[0] = 0
    np.add.accumulate(lengths, out=offsets[1:])
    return offsets


def smallest(numbers: Any, highest: int) -> Any:
    """Return numbers from 0 to `highest` in the smallest unsigned type that holds them."""
    return numbers.astype(np.min_scalar_type(highest))


def no_documents(tokens: Any, with_counts: bool) -> Documents:
    """Return an empty list of documents over some tokens."""
    nothing = np.empty(0, np.uint8)
    return Documents(tokens, np.zeros(1, np.int64), nothing, nothing if with_counts else None)


def stacked(parts: Sequence[Documents]) -> Documents:
    """Return the documents of all parts in turn; the parts must be over the same tokens."""
    first = parts[0]
    lengths = np.concatenate([differences(part.offsets) for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    counts = in_rest = None
    if first.counts is not None:
        counts = np.concatenate([part.times() for part in parts])
    if any(part.in_rest is not None for part in parts):
        in_rest = np.concatenate([part.are_in_rest() for part in parts])
    return Documents(first.tokens, offsets_of(lengths), columns, counts, in_rest=in_rest)


def united(parts: Sequence[Documents]) -> Documents:
    """Return the documents of all parts in turn, over the ascending union of their tokens."""
    tokens, place = np.unique(np.concatenate([part.tokens for part in parts]), return_inverse=True)
    ends = np.cumsum([len(part.tokens) for part in parts]).tolist()
    moved = []
    for part, (start, end) in zip(parts, pairwise([0, *ends]), strict=True):
        column = smallest(place[start:end], len(tokens))
        moved.append(part._replace(tokens=tokens, columns=column.take(part.columns)))
    return stacked(moved)


def take_in_slices(values: Any, places: Indices) -> Any:
    """Return values[places], shape (n_places,).

    In parts, because numpy first converts all positions to 64 bits, and the page faults of that
    large array take longer than the look-up.
    """
    gathered = np.empty(len(places), values.dtype)
    for start in range(0, len(places), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        gathered[some] = values.take(places[some])
    return gathered


# --- slices of an array: many are copied without a Python object for each --------------------


def gather_slices(blob: Octets, starts: Integers, lengths: Integers) -> Octets:
    """Return the slices blob[start : start + length], concatenated."""
    gathered = [np.empty(0, np.uint8)]
    # In parts, because the positions of bytes take eight times as much memory as the bytes.
    for first in range(0, len(starts), _SLICES_AT_ONCE):
        some = slice(first, first + _SLICES_AT_ONCE)
        gathered.append(blob.take(places_in(starts[some], lengths[some])))
    return np.concatenate(gathered)


def places_in(starts: Integers, lengths: Integers) -> Integers:
    """Return the positions of all elements of slices, shape (sum of lengths,)."""
    some = positions_of(lengths != 0)
    if not len(some):
        return np.empty(0, np.int64)
    start, length = starts.take(some), lengths.take(some)
    # A cumulative sum of steps: 1 within a slice, a jump at the start of each slice.
    last = np.cumsum(length)
    step = np.ones(int(last[-1]), np.int64)
    step[0] = start[0]
    step[last[:-1]] = start[1:] - (start + length)[:-1] + 1
    return np.cumsum(step, out=step)


# --- the vocabulary -------------------------------------------------------------------------


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

    def in_columns(self, documents: Documents) -> Documents:
        """Return documents over keys as documents over columns; drops unknown tokens."""
        return documents.renumbered(self.columns(documents.tokens))

    def columns(self, keys: Keys) -> Integers:
        """Return the column of every key, -1 for unknown keys; same shape as keys."""
        start = len(self.keys) - sum(self.appended)
        column = _find_many(self.keys[:start], keys)
        for length in self.appended:
            added = _find_many(self.keys[start : start + length], keys)
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

    def part(self, start: int, end: int) -> "Vocabulary":
        """Return columns start to end - 1 of a packed vocabulary, without copying."""
        offsets = self.offsets[start : end + 1]
        blob = self.blob[offsets[0] : offsets[-1]]
        return Vocabulary(self.keys[start:end], blob, offsets - offsets[0], self.groups[start:end])

    def packed(self) -> "Vocabulary":
        """Return the same vocabulary with texts in the order of columns."""
        if self.spelt is None:
            return self
        length = differences(self.offsets).take(self.spelt)
        blob = gather_slices(self.blob, self.offsets.take(self.spelt), length)
        offsets = offsets_of(length)
        return replace(self, blob=blob, offsets=offsets, spelt=None)


def _find_many(ascending: Keys, keys: Keys) -> Integers:
    """Return the same as `find`, in a third of the time if there are many keys.

    Keys are evenly spread hashes, so their first bits nearly determine their positions.
    """
    if len(keys) <= len(ascending) or not len(ascending):
        return find(ascending, keys)
    bits = len(ascending).bit_length()
    shift = np.uint64(64 - bits)
    in_bucket = np.bincount((ascending >> shift).view(np.int64), minlength=1 << bits)
    last = np.cumsum(in_bucket) - 1
    column = np.empty(len(keys), np.int64)
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        place = last.take((some >> shift).view(np.int64))
        missed = positions_of(ascending.take(place, mode="clip") != some)
        for _ in range(_STEPS):
            before = place.take(missed) - 1
            place[missed] = before
            missed = missed[ascending.take(before, mode="clip") != some.take(missed)]
        place[missed] = find(ascending, some.take(missed))
        column[start : start + _AT_ONCE] = place
    return column


class ChangedRows:
    """An array of which some rows are others, and which more rows follow; it is not copied.

    So a server judges by a model and its lessons since the last fit: a copy of all counts at each
    lesson took as much memory as the model, and longer than the lesson.  It has what judging
    needs of an array.
    """

    def __init__(
        self, rows: Any, more: Any, changed: Integers | None = None, values: Any = None
    ) -> None:
        """Take rows; changed: numbers of some of them, ascending; values: their new values."""
        self._rows, self._more = rows, more
        self._changed, self._values = changed, values

    def __len__(self) -> int:
        return len(self._rows) + len(self._more)

    def __getitem__(self, wanted: Any) -> Any:
        return self.take(wanted) if np.ndim(wanted) else self.take(np.array([wanted]))[0]

    def take(self, wanted: Integers, axis: int = 0) -> Any:
        """Return rows by their numbers."""
        n = len(self._rows)
        if not n:
            return self._more.take(wanted, axis=axis)
        found = self._rows.take(wanted, axis=axis, mode="clip").astype(self._more.dtype)
        new = positions_of(wanted >= n)
        found[new] = self._more[wanted[new] - n]
        if self._changed is not None:
            place = find(self._changed, wanted)
            at = positions_of(place >= 0)
            found[at] = self._values[place[at]]
        return found

    def whole(self) -> Any:
        """Return the array, a copy."""
        total = np.concatenate([self._rows.astype(self._more.dtype, copy=False), self._more])
        if self._changed is not None:
            total[self._changed] = self._values
        return total


class ExtendedVocabulary:
    """A vocabulary that more tokens follow, which it does not have; neither is copied.

    It has what judging needs of a vocabulary; see `with_added` for all of it.
    """

    def __init__(self, known: Vocabulary, more: Vocabulary) -> None:
        """Take both; more: in the order of its keys."""
        self._known, self._more = known, more
        self.keys: Any = ChangedRows(known.keys, more.keys)
        self.groups: Any = ChangedRows(known.groups, more.groups)

    def __len__(self) -> int:
        return len(self.keys)

    def in_columns(self, documents: Documents) -> Documents:
        """See `Vocabulary.in_columns`."""
        return documents.renumbered(self.columns(documents.tokens))

    def columns(self, keys: Keys) -> Integers:
        """See `Vocabulary.columns`."""
        column, added = self._known.columns(keys), self._more.columns(keys)
        at = positions_of(added >= 0)
        column[at] = added[at] + len(self._known)
        return column

    def text(self, column: int) -> str:
        """Return the text of one column."""
        n = len(self._known)
        return self._known.text(column) if column < n else self._more.text(column - n)

    def whole(self) -> Vocabulary:
        """Return all of it as one vocabulary."""
        return with_added(self._known, self._more)


def with_added(vocabulary: Vocabulary, more: Vocabulary) -> Vocabulary:
    """Return a vocabulary followed by tokens that it does not have.

    Unlike `join`, this needs no sort and does not change the columns of its own tokens.
    """
    if not len(more):
        return vocabulary
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


def empty_vocabulary() -> Vocabulary:
    """Return a vocabulary without tokens."""
    return Vocabulary(
        np.empty(0, np.uint64), np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.uint8)
    )


def join(parts: Sequence[Vocabulary], ranks: Indices | None = None) -> tuple[Vocabulary, Integers]:
    """Return the union of vocabularies, and the new columns of all their tokens in turn.

    A token that several parts have keeps the text (and group) of the part in which its key has
    the lowest rider, or of the first such part.  ranks: of all tokens in turn; they decide
    instead of riders, which must be 0 then.
    """
    whole = concatenated(parts)
    if ranks is None:
        order = np.argsort(whole.keys, kind="stable")
    else:
        order = np.lexsort((ranks, whole.keys))
    ordered = whole.keys.take(order)
    new = np.ones(len(order), bool)
    np.greater(ordered[1:] ^ ordered[:-1], RIDER_MASK, out=new[1:])
    column = np.empty(len(order), np.int64)
    column[order] = np.cumsum(new) - 1
    return whole.take(order.take(positions_of(new))), column
