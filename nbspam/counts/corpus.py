"""A corpus held in memory: labelled documents over one vocabulary.

Training streams and needs none of this; cross-validation and models of dependent tokens look at
the same documents again and again.

Secret: what a model that learned only some of the documents would have counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers, Keys
from nbspam.counts.counting import Lesson, Training, read_lessons
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, counts_of, entry_weights
from nbspam.mail.digest import Copies
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.documents import Documents, no_documents, smallest, stacked
from nbspam.tokens.reading import chunk_by_chunk
from nbspam.tokens.vocabulary import Vocabulary, join
from nbspam.verdicts import Skipped


@dataclass(frozen=True, slots=True)
class Corpus:
    """Labelled documents over one vocabulary."""

    names: tuple[str, ...]
    classes: tuple[str, ...]  # sorted
    y: Integers  # (n_docs,) index into classes
    digests: Keys  # (n_docs,)
    vocabulary: Vocabulary
    documents: Documents  # over all columns of the vocabulary

    @property
    def X(self) -> Any:  # noqa: N802  the name of the data matrix, as in all estimators
        """The counts as a SciPy CSR matrix (n_docs, n_features)."""
        return csr(self.documents)

    def take(self, rows: Integers) -> "Corpus":
        """Return the corpus of some documents, in this order, over the same vocabulary."""
        return Corpus(
            tuple(self.names[row] for row in rows.tolist()),
            self.classes,
            self.y[rows],
            self.digests[rows],
            self.vocabulary,
            self.documents.take(rows),
        )

    def over_keys(self, rows: Integers) -> Documents:
        """Return some documents over the keys of their tokens."""
        return self.documents.take(rows)._replace(tokens=self.vocabulary.keys)

    def table(self, rows: Integers, weighting: str) -> CountTable:
        """Return the count table of some documents, whatever they repeat."""
        return self._table(self.documents.take(rows), self.y[rows], weighting)

    def _table(self, documents: Documents, y: Integers, weighting: str) -> CountTable:
        groups = self.vocabulary.groups
        counts = counts_of(documents, y, len(self.classes), groups, weighting)
        return CountTable(self.classes, counts[0], self.vocabulary, counts[1], counts[2])

    def training(self, rows: Integers, weighting: str) -> Training:
        """Return what `counting.count_items` would return, had it read these documents."""
        once, y, digests = self.unique(rows)
        documents = self.documents.take(once)
        table = self._table(documents, y, weighting)
        met = np.flatnonzero(table.document_frequency)
        labels = np.array(self.classes, np.str_)[y]
        documents = documents._replace(tokens=self.vocabulary.keys)
        if weighting == PRESENCE:
            documents = documents._replace(counts=None)
        sampling = Sampling(weighting)
        sampling.add([Messages(labels, digests, documents)])
        return Training(
            table.take(met),
            tuple(sampling.messages),
            sampling.bits,
            digests,
            labels,
            len(rows) - len(once),
        )

    def unique(self, rows: Integers) -> tuple[Integers, Integers, Keys]:
        """Return those of some documents that count, their classes, and their digests.

        In the order of digests: the first copy of every message, in the class of the last.
        """
        copies = Copies()
        numbered = [copies.numbered(digest) for digest in self.digests[rows].tolist()]
        digests = np.array(numbered, np.uint64)
        _, first = np.unique(digests, return_index=True)
        _, last = np.unique(digests[::-1], return_index=True)
        return rows[first], self.y[rows[::-1][last]], digests[first]


def csr(documents: Documents, values: Any = None) -> Any:
    """Return documents as a SciPy CSR matrix (n_docs, n_tokens); values: (nnz,), or counts."""
    from scipy import sparse

    values = documents.times() if values is None else values
    shape = documents.n_docs, len(documents.tokens)
    return sparse.csr_array((values, documents.columns.astype(np.int64), documents.offsets), shape)


def weighted(documents: Documents, groups: Any, weighting: str) -> Any:
    """Return documents as a CSR matrix of weights; groups: (n_tokens,) kind of each token."""
    weights: Floats = entry_weights(documents, groups, weighting)
    return csr(documents, weights)


def read_corpus(
    items: Iterable[Item], settings: Settings, jobs: int = 1
) -> tuple[Corpus, tuple[Skipped, ...]]:
    """Return all labelled items as one corpus, and those that were skipped."""
    parts: list[Lesson] = []
    skipped: list[Skipped] = []
    for part, failures in chunk_by_chunk(partial(_read_chunk, settings), items, jobs):
        parts.append(part)
        skipped.extend(failures)
    whole = _joined(parts)
    classes, y = np.unique(whole.messages.labels, return_inverse=True)
    return Corpus(
        tuple(whole.names),
        tuple(classes.tolist()),
        y,
        whole.messages.digests,
        whole.vocabulary,
        whole.messages.documents,
    ), tuple(skipped)


def _read_chunk(settings: Settings, items: list[Item]) -> tuple[Lesson, list[Skipped]]:
    """Return the documents in one chunk of items: what a worker process does."""
    lessons, skipped = read_lessons(settings, items)
    return _joined(lessons), skipped


def _joined(parts: Sequence[Lesson]) -> Lesson:
    """Return all documents over the union of the vocabularies."""
    vocabulary, column = join([part.vocabulary for part in parts])
    tokens = np.arange(len(vocabulary))
    documents = [no_documents(tokens, with_counts=True)]
    start = 0
    for part in parts:
        own = smallest(column[start : start + len(part.vocabulary)], len(vocabulary))
        start += len(own)
        columns = own.take(part.messages.documents.columns)
        documents.append(part.messages.documents._replace(tokens=tokens, columns=columns))
    return Lesson(
        [name for part in parts for name in part.names],
        Messages(
            np.concatenate([np.empty(0, np.str_), *(part.messages.labels for part in parts)]),
            np.concatenate([np.empty(0, np.uint64), *(part.messages.digests for part in parts)]),
            stacked(documents),
        ),
        vocabulary,
    )
