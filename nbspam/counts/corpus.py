"""Token batches to one sparse matrix: a corpus held in memory, for those who need it.

Training streams and needs none of this; cross-validation and models of pairs of tokens
look at the same documents again and again.

Secret: how batches with columns of their own become rows over one vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbspam.arrays import Integers, Octets
from nbspam.counts.table import CountTable, entry_weights
from nbspam.tokens.tokenizer import TokenBatch
from nbspam.tokens.vocabulary import Vocabulary, batch_vocabulary, join


@dataclass(frozen=True, slots=True)
class Corpus:
    """Labelled documents as rows of counts."""

    names: tuple[str, ...]
    classes: tuple[str, ...]  # sorted
    y: Integers  # (n_docs,) index into classes
    vocabulary: Vocabulary
    X: Any  # scipy CSR (n_docs, n_features)

    def table(self, rows: Integers, weighting: str) -> CountTable:
        """Return the count table of these rows."""
        from scipy import sparse

        y, n_classes = self.y[rows], len(self.classes)
        X = weigh(self.X[rows], self.vocabulary.groups, weighting)
        member = sparse.csr_array(
            (np.ones(len(rows)), (y, np.arange(len(rows)))), (n_classes, len(rows))
        )
        return CountTable(
            self.classes,
            np.bincount(y, minlength=n_classes).astype(np.float64),
            self.vocabulary,
            (member @ X).toarray().T,
            np.bincount(X.indices, minlength=X.shape[1]),
        )


def weigh(X: Any, groups: Octets, weighting: str) -> Any:
    """Return a CSR matrix of counts (n_docs, n_features) as one of weights.

    groups: (n_features,) index into `tokens.GROUPS`.
    """
    from scipy import sparse

    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    weights = entry_weights(X.data, documents, groups[X.indices], weighting)
    return sparse.csr_array((weights, X.indices, X.indptr), X.shape)


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """Some documents over a vocabulary of their own: what a worker process returns."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    vocabulary: Vocabulary
    documents: Integers  # (nnz,)
    columns: Integers  # (nnz,)
    counts: Integers  # (nnz,)


def corpus_part(
    batches: Sequence[TokenBatch], names: Sequence[str], labels: Sequence[str]
) -> CorpusPart:
    """Return the documents of these batches, one behind the other."""
    parts, start = [], 0
    for batch in batches:
        end = start + batch.n_docs
        parts.append(
            CorpusPart(
                tuple(names[start:end]),
                tuple(labels[start:end]),
                batch_vocabulary(batch),
                batch.documents,
                batch.columns,
                batch.counts,
            )
        )
        start = end
    return join_parts(parts)


def join_parts(parts: Sequence[CorpusPart]) -> CorpusPart:
    """Return all documents over the union of the vocabularies."""
    vocabulary, column = join([part.vocabulary for part in parts])
    documents, columns = [], []
    first_doc, first_column = 0, 0
    for part in parts:
        documents.append(part.documents + first_doc)
        columns.append(column[first_column : first_column + len(part.vocabulary)][part.columns])
        first_doc += len(part.names)
        first_column += len(part.vocabulary)
    return CorpusPart(
        sum((part.names for part in parts), ()),
        sum((part.labels for part in parts), ()),
        vocabulary,
        np.concatenate([np.empty(0, np.int64), *documents]),
        np.concatenate([np.empty(0, np.int64), *columns]),
        np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)]),
    )


def corpus(parts: Sequence[CorpusPart]) -> Corpus:
    """Return the corpus these parts make."""
    from scipy import sparse

    whole = join_parts(parts)
    classes = tuple(sorted(set(whole.labels)))
    index = {name: k for k, name in enumerate(classes)}
    y = np.array([index[label] for label in whole.labels], np.int64)
    shape = len(whole.names), len(whole.vocabulary)
    X = sparse.csr_array((whole.counts, (whole.documents, whole.columns)), shape)
    X.sort_indices()
    return Corpus(whole.names, classes, y, whole.vocabulary, X)
