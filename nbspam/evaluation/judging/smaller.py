"""Smaller models for a learning curve: each has learned a part of what the whole model has.

Secret: which documents a smaller model learns: those of a random order that every larger part
begins with, and of a model of messages those that it remembers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.arrays import Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import train
from nbspam.counts.corpus import remembered
from nbspam.tables.schema import Table
from nbspam.tables.training import TableSettings, rows_of, train_table

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the training documents


class SmallerModel(NamedTuple):
    """A model that has learned fewer documents than the one that is judged."""

    n_learned: int
    classifier: AnyClassifier


def some_of(rows: Integers, y: Integers, share: float) -> Integers:
    """Return the same share of the rows of each class; it contains every smaller share."""
    shuffled = np.random.default_rng(0).permutation(rows)
    of_class = [shuffled[y[shuffled] == label] for label in np.unique(y)]
    return np.sort(np.concatenate([of[: max(1, int(share * len(of)))] for of in of_class]))


def n_learned_by(classifier: AnyClassifier) -> int:
    """Return how many messages a model has learned; 0 for one of which that is not known."""
    if not isinstance(classifier, Classifier):
        return 0
    # The counts are smaller where old ones have faded; a ledger may have only those of a sample.
    memory = classifier.memory
    return max(classifier.table.n_docs, 0 if memory is None else len(memory.ledger.digests))


def smaller_models(classifier: AnyClassifier) -> tuple[SmallerModel, ...]:
    """Return models of parts of the messages that a model remembers.

    It remembers all, or a sample of many: then the largest part is the sample.  Empty for a model
    that remembers no message of some class.
    """
    if not isinstance(classifier, Classifier) or classifier.memory is None:
        return ()
    table, memory = classifier.table, classifier.memory
    data = remembered(table, memory)
    if len(table.classes) < 2 or len(np.unique(data.y)) < len(table.classes):
        return ()
    is_whole = not memory.sample.bits
    told = memory.sample.digests[memory.sample_told]

    def trained(rows: Integers) -> Classifier:
        training = data.training(rows, classifier.settings.weighting)
        training = training._replace(told=np.isin(training.digests, told))
        return replace(train(training, classifier.settings), shift=classifier.shift)

    shares = [share if is_whole else 2 * share for share in SHARES]
    return tuple(SmallerModel(len(rows), trained(rows)) for rows in _parts(data.y, shares))


def smaller_of_table(table: Table, settings: TableSettings) -> tuple[SmallerModel, ...]:
    """Return models of parts of a table's rows; raises UsageError."""
    return tuple(
        SmallerModel(len(rows), train_table(rows_of(table, rows), settings))
        for rows in _parts(table.y, SHARES)
    )


def _parts(y: Integers, shares: Sequence[float]) -> Iterable[Integers]:
    """Return these shares of documents, as row numbers; parts of the same size only once.

    y: (n_docs,) classes.
    """
    parts = (some_of(np.arange(len(y)), y, share) for share in shares)
    return {len(rows): rows for rows in parts}.values()
