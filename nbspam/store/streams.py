"""Streams of sorted tokens: the counts of many models are added with memory for one block.

A run is a sorted sequence of tokens with their counts, which is mapped from a file.  The keys of
all runs are cut at the same places, so that a block has the rows of all of them between two cuts.
Sums are written to temporary files (in TMPDIR) and mapped again.
"""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Days, Indices, Integers
from nbspam.classifier.training import most_tokens
from nbspam.counts.table import (
    CountTable,
    compact,
    loss_without,
    most_frequent,
    sum_over,
    without_empty,
)
from nbspam.settings import Settings
from nbspam.tokens.documents import Vocabulary, join

AT_ONCE = 32  # runs that are added at once; more are added in a tree
BLOCK = 1 << 18  # tokens of all runs in a block
_KINDS = ("i8", "u8", "u1", "u1", "f8", "i8", "i8", "u2", "i8")  # of the arrays on disk
NO_TEXT = np.iinfo(np.int64).max  # the rank of a token without a text


class SortedTokens(NamedTuple):
    """Tokens with their counts, in the order of keys."""

    table: CountTable
    ranks: Indices  # (n_features,) of the texts of a token, that of the lowest rank is kept
    last_seen: Days  # (n_features,)

    def part(self, start: int, end: int) -> "SortedTokens":
        """Return the rows start to end - 1, without copying."""
        table, some = self.table, slice(start, end)
        words = table.vocabulary
        bounds = words.offsets[start : end + 1]
        first = int(bounds[0])
        vocabulary = Vocabulary(
            words.keys[some],
            words.blob[first : int(bounds[-1])],
            bounds.astype(np.int64) - first,
            words.groups[some],
        )
        loss = table.loss
        part = table._replace(
            vocabulary=vocabulary,
            feature_count=table.feature_count[some],
            document_frequency=table.document_frequency[some],
            loss=None if loss is None else loss._replace(of_each=loss.of_each[some]),
        )
        return SortedTokens(part, self.ranks[some], self.last_seen[some])

    @property
    def is_mapped(self) -> bool:
        """Whether its tokens are mapped from a file, instead of being in memory."""
        return not len(self.ranks) or _map_of(self.table.vocabulary.keys) is not None

    def release(self) -> None:
        """Let go of the pages of files that were read; they are read again where needed."""
        words, table = self.table.vocabulary, self.table
        columns: list[Any] = [words.keys, words.blob, words.offsets, words.groups]
        columns += [table.feature_count, table.document_frequency, self.ranks, self.last_seen]
        columns += [] if table.loss is None else [table.loss.of_each]
        for memory in {id(found): found for found in map(_map_of, columns)}.values():
            if memory is not None and hasattr(mmap, "MADV_DONTNEED"):
                memory.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the map of a file that an array is a view of, None if it is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    array = array.obj if isinstance(array, memoryview) else array
    return array if isinstance(array, mmap.mmap) else None


def run_of(table: CountTable, rank: int, last_seen: Days | int = 0) -> SortedTokens:
    """Return a table as a run; rank: of all of its texts; last_seen: of each token, or of all."""
    n = len(table.vocabulary)
    packed = table._replace(vocabulary=table.vocabulary.packed())
    seen = np.broadcast_to(np.asarray(last_seen, np.uint16), n)
    return SortedTokens(packed, np.broadcast_to(np.int64(rank), n), seen)


def merged_runs(runs: Sequence[SortedTokens]) -> SortedTokens:
    """Return the sum of runs, on disk; numbers below 0 become 0, and empty rows are left out."""
    while len(runs) > AT_ONCE:
        starts = range(0, len(runs), AT_ONCE)
        runs = [spooled(blocks(runs[start : start + AT_ONCE])) for start in starts]
    return spooled(_settled(block) for block in blocks(runs))


def blocks(runs: Sequence[SortedTokens]) -> Iterator[SortedTokens]:
    """Yield the sum of runs, one block of sorted tokens after the other; there is at least one.

    Every block has the classes of all runs, and the number of their messages.
    """
    cuts, ends = _cuts(runs), []
    for run in runs:
        found = np.searchsorted(run.table.vocabulary.keys, cuts)
        ends.append([0, *found.tolist(), len(run.ranks)])
        run.release()
    for bounds in zip(*map(pairwise, ends), strict=True):
        yield _added([run.part(*own) for run, own in zip(runs, bounds, strict=True)])
        for run in runs:
            run.release()


def _cuts(runs: Sequence[SortedTokens]) -> Any:
    """Return keys, ascending, between two of which there are at most BLOCK rows.

    Of each run, every `step`-th key is looked at.
    """
    step = max(1, BLOCK // (2 * len(runs)))
    marks = []
    for run in runs:
        marks.append(run.table.vocabulary.keys[step::step].copy())
        run.release()
    return np.sort(np.concatenate(marks))[len(runs) - 1 :: len(runs)]


def _added(parts: Sequence[SortedTokens]) -> SortedTokens:
    """Return the sum of one block."""
    tables = [part.table for part in parts]
    ranks = np.concatenate([part.ranks for part in parts])
    vocabulary, column = join([table.vocabulary for table in tables], ranks)
    lowest = np.full(len(vocabulary), NO_TEXT)
    np.minimum.at(lowest, column, ranks)
    last_seen = np.zeros(len(vocabulary), np.uint16)
    np.maximum.at(last_seen, column, np.concatenate([part.last_seen for part in parts]))
    return SortedTokens(sum_over(tables, vocabulary, column), lowest, last_seen)


def _settled(block: SortedTokens) -> SortedTokens:
    """Return a block of the final sum."""
    table = block.table
    kept = np.flatnonzero(table.document_frequency > 0)
    table = table._replace(
        class_count=np.maximum(table.class_count, 0),
        feature_count=np.maximum(table.feature_count, 0),
    )
    return SortedTokens(table.take(kept), block.ranks[kept], block.last_seen[kept])


def spooled(parts: Iterable[SortedTokens]) -> SortedTokens:
    """Return consecutive blocks of sorted tokens as one run, on disk; one block at least."""
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in _KINDS]
        n_bytes = n_tokens = 0
        nothing = np.empty(0, np.int64)
        files[0].write(bytes(8))  # the first offset
        for part in parts:
            table, words = part.table, part.table.vocabulary.packed()
            arrays = (
                words.offsets[1:] + n_bytes,
                words.keys,
                words.blob,
                words.groups,
                table.feature_count,
                table.document_frequency,
                part.ranks,
                part.last_seen,
                nothing if table.loss is None else table.loss.of_each,
            )
            for file, array, kind in zip(files, arrays, _KINDS, strict=True):
                file.write(np.ascontiguousarray(array, kind).data)
            n_bytes, n_tokens = n_bytes + len(words.blob), n_tokens + len(words)
        shapes: list[Any] = [n_tokens] * len(files)
        shapes[0], shapes[2], shapes[4] = n_tokens + 1, n_bytes, (n_tokens, len(table.classes))
        shapes[8] = 0 if table.loss is None else n_tokens
        offsets, keys, blob, groups, feature_count, frequency, ranks, last_seen, lacks = map(
            _mapped, files, _KINDS, shapes
        )
    vocabulary = Vocabulary(keys, blob, offsets, groups)
    loss = None if table.loss is None else table.loss._replace(of_each=lacks)
    whole = CountTable(
        table.classes, table.class_count, vocabulary, feature_count, frequency, loss
    )
    return SortedTokens(whole, ranks, last_seen)


def _mapped(file: Any, kind: str, shape: Any) -> Any:
    file.flush()
    if not np.prod(shape):  # no map can be empty
        return np.empty(shape, kind)
    mapped = np.memmap(file, kind, "r", shape=shape)
    return np.ndarray(shape, mapped.dtype, mapped.base)


def loaded_table(
    total: SortedTokens, settings: Settings, columns: Integers | None = None
) -> tuple[CountTable, Days]:
    """Return the table that a model keeps of a sum, and the day each token was last seen.

    columns: ascending, of the tokens that may stay (None: all).  If there are more than a model
    has room for, the rarest are left out, as `training.derive` does.  The table is on disk.
    """
    whole = without_empty(total.table)
    frequency, last_seen, loss = compact(whole.document_frequency), total.last_seen, whole.loss
    if columns is not None and len(columns) < len(frequency):
        loss = loss_without(loss, frequency, columns)
        frequency, last_seen = frequency[columns], last_seen[columns]
    limit = most_tokens(whole, settings)
    if len(frequency) > limit:
        best = most_frequent(frequency, limit, last_seen)
        loss = loss_without(loss, frequency, best)
        columns = best if columns is None else columns[best]
    kept = total if columns is None else spooled(_parts_of(total, columns))
    return without_empty(kept.table)._replace(loss=loss), kept.last_seen


def _parts_of(run: SortedTokens, columns: Integers) -> Iterator[SortedTokens]:
    """Yield some columns (ascending) of a run, block by block; one block at least."""
    starts = np.arange(0, max(len(run.ranks), 1), BLOCK)
    for start, own in zip(
        starts.tolist(), np.split(columns, np.searchsorted(columns, starts[1:])), strict=True
    ):
        part = run.part(start, min(start + BLOCK, len(run.ranks)))
        chosen = own - start
        yield SortedTokens(part.table.take(chosen), part.ranks[chosen], part.last_seen[chosen])
        run.release()
