"""Documents: which tokens occur in which documents, the program's only sparse type.

A batch of messages, a model's sample, the changes in a journal and a corpus for cross-validation
are all held in this form, document by document (compressed sparse rows, CSR).

Secret: columns take as few bytes as possible, and large arrays are copied in parts.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Indices, Integers, Integers32, differences, places_of

_AT_ONCE = 1 << 16  # positions that are looked up together


class Documents(NamedTuple):
    """Documents over some tokens; entry i says that a token occurs in a document.

    The document is d if offsets[d] <= i < offsets[d + 1]; the token is tokens[columns[i]].
    The columns of a document ascend and are unique.

    There are two kinds, and only what `tokens` holds tells them apart.  Documents *over keys*
    name each token by its 64-bit key: messages as the tokenizer returns them, or as they are
    kept.  Documents *over columns* name each token by its column in one vocabulary; they have no
    unknown tokens.  `Vocabulary.known` turns the first kind into the second.
    """

    tokens: Any  # (n_tokens,) keys of tokens, or columns of one vocabulary
    offsets: Integers  # (n_docs + 1,)
    columns: Indices  # (nnz,) index into tokens
    counts: Indices | None  # (nnz,) occurrences; None if only presence is counted

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    def rows(self) -> Integers32:
        """Return the document of every entry, shape (nnz,)."""
        if self.n_docs == 1:  # as always where messages are judged one by one
            return np.zeros(len(self.columns), np.int32)
        return np.arange(self.n_docs, dtype=np.int32).repeat(differences(self.offsets))

    def times(self) -> Indices:
        """Return how often each entry's token occurs in its document, shape (nnz,)."""
        if self.counts is None:
            return np.broadcast_to(np.uint8(1), len(self.columns))
        return self.counts

    def part(self, start: int, end: int) -> "Documents":
        """Return the documents start to end - 1, without copying."""
        offsets = self.offsets[start : end + 1]
        some = slice(int(offsets[0]), int(offsets[-1]))
        counts = None if self.counts is None else self.counts[some]
        return Documents(self.tokens, offsets - offsets[0], self.columns[some], counts)

    def one(self, row: int) -> "Documents":
        """Return one document over its own tokens only."""
        some = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        own = self.columns[some]
        counts = None if self.counts is None else self.counts[some]
        bounds = np.array([0, len(own)])
        return Documents(self.tokens.take(own), bounds, np.arange(len(own)), counts)

    def take(self, chosen: Integers | Booleans) -> "Documents":
        """Return some documents; chosen: row numbers, in this order, or a mask (n_docs,)."""
        if chosen.dtype == np.bool_:
            if chosen.all():
                return self
            chosen = places_of(chosen)
        offsets = self.offsets.tolist()
        places = [slice(offsets[row], offsets[row + 1]) for row in chosen.tolist()]
        return Documents(
            self.tokens,
            offsets_of(differences(self.offsets)[chosen]),
            _joined([self.columns[place] for place in places], self.columns.dtype),
            None
            if self.counts is None
            else _joined([self.counts[place] for place in places], self.counts.dtype),
        )

    def only(self, wanted: Booleans) -> "Documents":
        """Return the same documents with the entries of some tokens; wanted: mask (n_tokens,)."""
        if wanted.all():
            return self
        kept = places_of(gather(wanted, self.columns))
        return self._replace(
            offsets=kept.searchsorted(self.offsets),
            columns=self.columns.take(kept),
            counts=None if self.counts is None else self.counts.take(kept),
        )

    def on(self, numbers: Integers) -> "Documents":
        """Return the documents with other numbers for their tokens, such as columns for keys.

        numbers: (n_tokens,) the new number of each token; a token with -1 is dropped.
        """
        is_known = numbers >= 0
        if is_known.all():
            return self._replace(tokens=numbers)
        known = self.only(is_known)
        rank = smallest(is_known.cumsum() - is_known, len(numbers))
        return known._replace(tokens=numbers[is_known], columns=rank.take(known.columns))

    def over(self, columns: Integers) -> "Documents":
        """Return documents over some columns of a vocabulary as documents over all of them.

        columns: all columns of the vocabulary in order, 0 to n_features - 1.  The caller makes
        this large array once, and all the documents that it converts share it.
        """
        numbers = self.tokens.astype(np.min_scalar_type(len(columns)))
        return self._replace(tokens=columns, columns=numbers.take(self.columns))

    def without_unused(self) -> "Documents":
        """Return the documents over only those tokens that occur in them."""
        used = np.bincount(self.columns, minlength=len(self.tokens)) > 0
        return self.on(np.where(used, np.arange(len(used)), -1))._replace(tokens=self.tokens[used])


def offsets_of(lengths: Any) -> Integers:
    """Return the offsets of consecutive pieces of these lengths, shape (n_pieces + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
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
    counts = None
    if first.counts is not None:
        counts = np.concatenate([part.times() for part in parts])
    return Documents(first.tokens, offsets_of(lengths), columns, counts)


def united(parts: Sequence[Documents]) -> Documents:
    """Return the documents of all parts in turn, over the ascending union of their tokens."""
    tokens, place = np.unique(np.concatenate([part.tokens for part in parts]), return_inverse=True)
    ends = np.cumsum([len(part.tokens) for part in parts]).tolist()
    moved = []
    for part, (start, end) in zip(parts, pairwise([0, *ends]), strict=True):
        column = smallest(place[start:end], len(tokens))
        moved.append(part._replace(tokens=tokens, columns=column.take(part.columns)))
    return stacked(moved)


def gather(values: Any, places: Indices) -> Any:
    """Return values[places], shape (n_places,).

    In parts, because numpy first converts all positions to 64 bits, and the page faults of that
    large array take longer than the look-up.
    """
    gathered = np.empty(len(places), values.dtype)
    for start in range(0, len(places), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        gathered[some] = values.take(places[some])
    return gathered


def _joined(parts: list[Any], kind: Any) -> Any:
    return np.concatenate([np.empty(0, kind), *parts])
