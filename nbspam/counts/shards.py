"""Shards: several processes, on any machines, each count a part of one corpus.

Items are dealt to N shards in turn, by their positions in the order of the sources.  A
process reads and parses the messages of its own shard only, and so cannot know which of them
come again in another.  A counted shard therefore has everything that was read, copies included,
and the tokens of every message, so that copies can be taken out when all shards are put together
(`counting.Unique`).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Indices, Integers, Keys, together
from nbspam.counts import counting
from nbspam.counts.ledger import Messages, Sampling, over_columns
from nbspam.counts.table import CountTable, TableSum, table_from_state, table_to_state
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.sparse import Documents, smallest, united
from nbspam.verdicts import Skipped
from nbspam.workers import Workers

_DOCS_AT_ONCE = 1 << 12


class Shard(NamedTuple):
    """One of the shards of a corpus."""

    number: int  # from 1
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Census(NamedTuple):
    """The facts about a corpus that each of its shards knows."""

    n_items: int  # of all shards together
    checksum: int  # CRC-32 of their labels in order


class CountedShard(NamedTuple):
    """The counts of a shard, copies included, and its messages in the order of the corpus."""

    shard: Shard
    census: Census
    table: CountTable
    first: Indices  # (n_features,) the position of the message in which each token came first
    positions: Indices  # (n_docs,) ascending
    digests: Keys  # (n_docs,) copies of a text have the same digest
    labels: Indices  # (n_docs,) index into the table's classes
    told: Booleans  # (n_docs,) see Item
    documents: Documents  # over all columns of the table


class _ShardDeal:
    """The items of one shard; once they are read, the composition of the corpus is known."""

    def __init__(self, items: Iterable[Item], shard: Shard) -> None:
        self._items, self._shard = items, shard
        self.census = Census(0, 0)

    def __iter__(self) -> Iterator[Item]:
        number, of = self._shard
        n, checksum = 0, 0
        for n, item in enumerate(self._items, 1):
            checksum = zlib.crc32(f"{item.label}\n".encode("utf-8", "replace"), checksum)
            if (n - number) % of == 0:
                yield item
        self.census = Census(n, checksum)


def count_shard(
    items: Iterable[Item], settings: Settings, shard: Shard, jobs: Workers = 1
) -> tuple[CountedShard, tuple[Skipped, ...]]:
    """Return a counted shard, and its skipped items.

    items: of the whole corpus; items of other shards are not read.
    """
    deal = _ShardDeal(items, shard)
    read: list[counting.ReadMessages] = []
    skipped: list[Skipped] = []
    places: list[Integers] = []  # of the messages, among the items of this shard
    n_items = 0
    counts = TableSum()
    for part in counting.counted_chunks(deal, settings, jobs):
        read.extend(part.messages)
        skipped.extend(part.failures.values())
        places.append(n_items + np.delete(np.arange(part.n_items), list(part.failures)))
        n_items += part.n_items
        if part.table is not None:
            counts.add(part.table)
    positions = together(places, np.int64) * shard.of + shard.number - 1
    table = counting.total_of(counts)
    table = table._replace(vocabulary=table.vocabulary.packed())
    messages = [part for part, _ in read]
    documents = over_columns(messages, table.vocabulary, settings.weighting != PRESENCE)
    labels = together([part.labels for part in messages], np.str_)
    counted = CountedShard(
        shard,
        deal.census,
        table,
        _first(documents, positions),
        positions,
        together([part.digests for part in messages], np.uint64),
        np.searchsorted(np.array(table.classes, np.str_), labels),
        np.array([told for _, many in read for told in many], np.bool_),
        documents,
    )
    return counted, tuple(skipped)


def _first(documents: Documents, positions: Integers) -> Integers:
    """Return the position of the first document with each token, shape (n_tokens,)."""
    first = np.zeros(len(documents.tokens), np.int64)
    for start in reversed(range(0, documents.n_docs, _DOCS_AT_ONCE)):
        part = documents.part(start, min(start + _DOCS_AT_ONCE, documents.n_docs))
        # If an index occurs several times, numpy keeps the last assignment.
        first[part.columns[::-1]] = positions[start:][part.rows()[::-1]]
    return first


def shard_to_state(counted: CountedShard) -> dict[str, Any]:
    """Return a counted shard as plain values for a file."""
    documents, times = counted.documents, counted.documents.counts
    return {
        "number": counted.shard.number,
        "of": counted.shard.of,
        "items": counted.census.n_items,
        "checksum": counted.census.checksum,
        **table_to_state(counted.table),
        "first": _small(counted.first),
        "digest": counted.digests,
        "position": _small(counted.positions),
        "label": _small(counted.labels),
        "told": counted.told.astype(np.uint8),
        "document_offsets": _small(documents.offsets),
        "column": _small(documents.columns),
        "times": None if times is None else _small(times),
    }


def _small(numbers: Indices) -> Any:
    return smallest(numbers, int(numbers.max(initial=0)))


def shard_from_state(state: Mapping[str, Any]) -> CountedShard:
    """Return the shard that `shard_to_state` described; raises KeyError or TypeError."""
    table = table_from_state(state)
    return CountedShard(
        Shard(state["number"], state["of"]),
        Census(state["items"], state["checksum"]),
        table,
        state["first"],
        state["position"],
        state["digest"],
        state["label"],
        state["told"].astype(np.bool_),
        Documents(
            np.arange(len(table.vocabulary)),
            state["document_offsets"].astype(np.int64),
            state["column"],
            state["times"],
        ),
    )


def messages_of_shard(counted: CountedShard, rows: Integers) -> Messages:
    """Return some messages of a shard, over the keys of their tokens only."""
    documents = counted.documents.take(rows).without_unused()
    documents = documents._replace(tokens=counted.table.vocabulary.keys[documents.tokens])
    names = np.array(counted.table.classes, np.str_)
    return Messages(names[counted.labels[rows]], counted.digests[rows], documents)


# ---- gathering the messages of all shards, as one process would have counted them ----
#
# Only messages that come several times need a look at one by one; all others stay where they
# are, in arrays that may be mapped from files. The counts are added elsewhere, as they may be
# larger than memory.

_AT_ONCE = 1 << 14  # messages that come several times


def gather_shards(shards: Sequence[CountedShard], weighting: str) -> counting.Training:
    """Return the messages of all shards of a corpus, each of them once.

    The table has only the corrections of the sum of the shards' counts, without texts.
    """
    digests = together([counted.digests for counted in shards], np.uint64)
    again = np.isin(digests, counting.repeated(digests))
    sampling, unique = Sampling(weighting), counting.Unique(weighting)
    for part in _in_order(shards, np.flatnonzero(again)):
        sampling.add(unique.new_of([part]))
    alone = np.flatnonzero(~again)
    n_tokens = together([np.diff(counted.documents.offsets) for counted in shards], np.int64)
    chosen = sampling.make_room(digests[alone], n_tokens[alone])
    for counted, rows in _of_each(shards, alone[chosen]):
        sampling.add([messages_of_shard(counted, rows)])
    names = [np.array(counted.table.classes, np.str_)[counted.labels] for counted in shards]
    labels = together(names, np.str_)
    told = together([counted.told for counted in shards], np.bool_)
    own_digests, own_labels, own_told = unique.known()
    return counting.Training(
        unique.corrections(sampling.messages),
        tuple(unique.relabelled(sampling.messages)),
        sampling.bits,
        np.append(digests[alone], own_digests),
        np.append(labels[alone], own_labels),
        np.append(told[alone], own_told),
        unique.n_repeated,
    )


def _of_each(
    shards: Sequence[CountedShard], rows: Integers
) -> Iterator[tuple[CountedShard, Integers]]:
    """Yield each shard with its own rows among some.

    rows: ascending, counted through all shards.
    """
    start = 0
    for counted in shards:
        end = start + len(counted.digests)
        low, high = np.searchsorted(rows, (start, end))
        yield counted, rows[low:high] - start
        start = end


def _in_order(shards: Sequence[CountedShard], rows: Integers) -> Iterator[counting.ReadMessages]:
    """Yield messages in the order of the corpus, some at a time; rows: see `_of_each`."""
    positions = together([counted.positions for counted in shards], np.int64)[rows]
    told = together([counted.told for counted in shards], np.bool_)[rows]
    order = np.argsort(positions)
    for start in range(0, len(rows), _AT_ONCE):
        some = np.sort(order[start : start + _AT_ONCE])
        parts = [messages_of_shard(counted, own) for counted, own in _of_each(shards, rows[some])]
        turn = np.argsort(positions[some])
        yield (
            Messages(
                np.concatenate([part.labels for part in parts])[turn],
                np.concatenate([part.digests for part in parts])[turn],
                united([part.documents for part in parts]).take(turn),
            ),
            told[some][turn].tolist(),
        )
