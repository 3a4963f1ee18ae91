"""Counting batch by batch: what one process learns, in one table that grows.

Secret: how tokens are held while it is not yet known which others there will be.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.counts.numbering import Numbering, with_room
from nbspam.counts.table import CountTable, compact, entry_weights
from nbspam.settings import PRESENCE
from nbspam.tokens.tokenizer import RIDER_MASK, TokenBatch
from nbspam.tokens.vocabulary import Vocabulary, batch_vocabulary, concatenated

# A process gives its counts away when it has so many tokens: what all of them take together
# grows with their number, not with the mail.
_MAX_TOKENS = 1 << 18


class Tally:
    """The counts of batches; it looks at every token's text once."""

    def __init__(self, weighting: str) -> None:
        self._weighting = weighting
        self._numbering = Numbering()
        self._new: list[Vocabulary] = []  # what was new in each batch
        self._class_count: dict[str, float] = {}
        # By the number of the token, with room for more of them.
        self._feature_count: dict[str, Floats] = {}
        self._frequency: Integers = np.zeros(0, np.int64)

    @property
    def is_full(self) -> bool:
        """Return whether it should be added to others, and another one be begun."""
        return len(self._numbering) > _MAX_TOKENS

    def add(self, batch: TokenBatch, labels: Sequence[str], turn: int) -> None:
        """Count a batch; labels: the class of every document.  turn: see `table`."""
        n_known = len(self._numbering)
        number = self._numbering.numbers(batch.keys)
        new = batch_vocabulary(batch, number >= n_known)
        self._new.append(new.with_riders(min(turn, int(RIDER_MASK))))
        classes, class_count, feature_count = _class_counts(batch, labels, self._weighting)
        n = len(self._numbering)
        for name, n_docs, counts in zip(classes, class_count, feature_count.T, strict=True):
            self._class_count[name] = self._class_count.get(name, 0.0) + n_docs
            total = with_room(self._feature_count.get(name, np.zeros(0)), n)
            total[number] += counts
            self._feature_count[name] = total
        self._frequency = with_room(self._frequency, n)
        self._frequency[number] += np.diff(batch.indptr)

    def table(self) -> CountTable:
        """Return the counts, of tokens in the order in which they were met, for a TableSum.

        Each key's rider is the turn in which it was met first: so of tables of many
        processes, added up, the text that was met first stands.
        """
        n = len(self._numbering)
        classes = tuple(sorted(self._class_count))
        feature_count = np.zeros((n, len(classes)))
        for k, name in enumerate(classes):
            counts = self._feature_count[name][:n]
            feature_count[: len(counts), k] = counts
        class_count = np.array([self._class_count[name] for name in classes])
        vocabulary = concatenated(self._new)
        # It goes through a pipe.
        return CountTable(
            classes,
            class_count,
            replace(vocabulary, offsets=compact(vocabulary.offsets)),
            compact(feature_count),
            compact(self._frequency[:n]),
        )


def _class_counts(
    batch: TokenBatch, labels: Sequence[str], weighting: str
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return classes, and documents and sums of weights in each, of one batch.

    labels: the class of every document.  shapes: (n_classes,) and (n_keys, n_classes).
    """
    classes = tuple(sorted(set(labels)))
    index = {name: k for k, name in enumerate(classes)}
    class_of = np.array([index[label] for label in labels], np.int64)
    if weighting == PRESENCE and len(classes) == 1:  # as most batches are, of a folder's mail
        total = np.diff(batch.indptr)[:, None].astype(np.float64)
    else:
        columns = batch.columns
        groups = batch.groups.take(columns)
        weights = entry_weights(batch.counts, batch.documents, groups, weighting)
        cell = columns * len(classes) + class_of.take(batch.documents)
        shape = len(batch.keys), len(classes)
        total = np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape).astype(np.float64)
    return classes, np.bincount(class_of, minlength=len(classes)).astype(np.float64), total
