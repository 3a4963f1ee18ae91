"""Shares: what one of several processes counts of a corpus that is trained on together.

Items are dealt to N shards in turn, by their positions in the order of the sources.  Whoever
counts a share neither reads nor parses the messages of the others, and so cannot know which of its
messages come again there.  A share therefore has everything that was read, copies included, and
the tokens of every message, so that copies can be taken out when all shares are put together
(`repeats`).

Secret: which items belong to a share, and how the order of the corpus is kept.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Indices, Integers, Keys
from nbspam.counts.counting import LIMITS, Limits, counted, total_of
from nbspam.counts.repeats import Read
from nbspam.counts.sample import Messages, over_columns
from nbspam.counts.table import CountTable, TableSum
from nbspam.parallel import Workers
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.documents import Documents
from nbspam.verdicts import Skipped

_DOCS_AT_ONCE = 1 << 12


class Shard(NamedTuple):
    """One of the shards of a corpus."""

    number: int  # from 1
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Census(NamedTuple):
    """What all shards of a corpus know of it."""

    n_items: int  # of all shards together
    checksum: int  # CRC-32 of their labels in order


class Share(NamedTuple):
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


class _Deal:
    """The items of one shard; after them, what the corpus consists of is known."""

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


def count_share(
    items: Iterable[Item],
    settings: Settings,
    shard: Shard,
    jobs: Workers = 1,
    limits: Limits = LIMITS,
) -> tuple[Share, tuple[Skipped, ...]]:
    """Return the share of a shard, and those of its items that were skipped.

    items: those of the whole corpus; the others are not read.
    """
    deal = _Deal(items, shard)
    read: list[Read] = []
    skipped: list[Skipped] = []
    places: list[Integers] = []  # of the messages, among the items of this shard
    n_items = 0
    counts = TableSum()
    for part in counted(deal, settings, jobs, limits):
        read.extend(part.messages)
        skipped.extend(part.failures.values())
        there = np.delete(np.arange(part.n_items), list(part.failures))
        places.append(there + n_items)
        n_items += part.n_items
        if part.table is not None:
            counts.add(part.table)
    positions = np.concatenate([np.empty(0, np.int64), *places]) * shard.of + shard.number - 1
    table = total_of(counts)
    table = table._replace(vocabulary=table.vocabulary.packed())
    messages = [part for part, _ in read]
    documents = over_columns(messages, table.vocabulary, settings.weighting != PRESENCE)
    labels = np.concatenate([np.empty(0, np.str_), *(part.labels for part in messages)])
    share = Share(
        shard,
        deal.census,
        table,
        _first(documents, positions),
        positions,
        np.concatenate([np.empty(0, np.uint64), *(part.digests for part in messages)]),
        np.searchsorted(np.array(table.classes, np.str_), labels),
        np.array([told for _, many in read for told in many], np.bool_),
        documents,
    )
    return share, tuple(skipped)


def _first(documents: Documents, positions: Integers) -> Integers:
    """Return the position of the first document with each token, shape (n_tokens,)."""
    first = np.zeros(len(documents.tokens), np.int64)
    for start in reversed(range(0, documents.n_docs, _DOCS_AT_ONCE)):
        part = documents.part(start, min(start + _DOCS_AT_ONCE, documents.n_docs))
        # Where an index comes several times, numpy keeps what is assigned last.
        first[part.columns[::-1]] = positions[start:][part.rows()[::-1]]
    return first


def messages_of(share: Share, rows: Integers) -> Messages:
    """Return some messages of a share, over the keys of their tokens only."""
    documents = share.documents.take(rows)
    used, columns = np.unique(documents.columns, return_inverse=True)
    keys: Any = share.table.vocabulary.keys
    documents = documents._replace(tokens=keys[used], columns=columns)
    names = np.array(share.table.classes, np.str_)
    return Messages(names[share.labels[rows]], share.digests[rows], documents)
