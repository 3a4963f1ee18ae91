"""Training: counts and a sample of messages become a classifier.

Whatever makes a `Classifier` of counted messages (training, learning on, merging, pruning,
importing, cross-validation) calls `derive`, or `fitted` where only evidence is fitted again.
There are two exceptions.  EM (`unlabelled`, `clusters`) always sums evidence, and calls
`log_tables`, as `fitted` does for such models.  A model of dependent tokens (`features`) is not
computed from counts but from documents.

Secret: which fit the settings and classes need, and what a model forgets so that it stays small.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers
from nbspam.bounds import UNBOUNDED, Bounds, check_unbounded
from nbspam.classifier import combining
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.counts.counting import Training, count_items
from nbspam.counts.ledger import Memory, ledger_of
from nbspam.counts.loss import most_frequent
from nbspam.counts.sample import keep
from nbspam.counts.table import CountTable, prune
from nbspam.errors import NotTrainedError
from nbspam.parallel import Workers
from nbspam.settings import FEATURES, PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.tokens.documents import Documents
from nbspam.verdicts import Skipped

if TYPE_CHECKING:
    from nbspam.classifier.blending import Blend
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.classifier.summing import LogTables

# Bytes of a model's tokens at most, so that a model of a million messages stays below 200 MB.
MAX_BYTES = 160_000_000
# Bytes of a token: fixed (with its text), for each class, and for each class of a blended model.
_TOKEN_BYTES, _CLASS_BYTES, _BLENDED_BYTES = 35, 12, 8


class Learned(NamedTuple):
    """A trained classifier, and what happened to the items."""

    classifier: "Classifier | FeatureClassifier"
    repeated: int  # messages that came again and were not counted again
    skipped: tuple[Skipped, ...]


def learn(
    items: Iterable[Item],
    settings: Settings,
    jobs: Workers = 1,
    day: int = 0,
    bounds: Bounds = UNBOUNDED,
) -> Learned:
    """Return a classifier trained on items; raises NotTrainedError.

    day: today, in days since 1970-01-01.  bounds: not for models of dependent tokens, which look
    at all messages several times; raises UsageError.
    """
    if settings.model not in FEATURES:
        training = count_items(items, settings, jobs, bounds=bounds)
        return Learned(train(training, settings, day), training.repeated, training.skipped)
    check_unbounded(bounds, f"--model {settings.model}")
    from nbspam.classifier.features import train_features
    from nbspam.counts.corpus import read_corpus

    # Dependence between tokens shows only in documents, not in counts.
    data, skipped = read_corpus(items, settings, jobs)
    return Learned(train_features(data, settings), 0, skipped)


def train(training: Training, settings: Settings, day: int = 0) -> Classifier:
    """Return a classifier trained on counts and a sample; raises NotTrainedError.

    day: today, in days since 1970-01-01.
    """
    check_classes(training.table)
    table = prune(training.table, settings.min_df, settings.max_features)
    days = np.full(len(training.digests), day, np.uint16)
    with_counts = settings.weighting != PRESENCE
    memory = Memory(
        ledger_of(training.digests, training.labels, days, table.classes, training.told),
        keep(training.messages, training.bits, table.vocabulary, with_counts),
        np.full(len(table.vocabulary), day, np.uint16),
        has_ledger=training.has_ledger,
    )
    return derive(table, memory, settings)


def derive(table: CountTable, memory: Memory, settings: Settings) -> Classifier:
    """Return the classifier that follows from counts and memory; raises NotTrainedError.

    If there are more tokens than MAX_BYTES allows, the rarest are dropped; among equally rare
    tokens those that were last seen the longest ago.
    """
    check_classes(table)
    limit = most_tokens(table, settings)
    if len(table.vocabulary) > limit:
        columns = most_frequent(table.document_frequency, limit, memory.last_seen)
        table, memory = table.forgetting(columns), memory.only(columns)
    sample, told = memory.sample.documents, memory.sample_told
    fit = fitted(table, sample, memory.sample_labels, settings, told)
    return Classifier(settings, table, fit, memory)


def most_tokens(table: CountTable, settings: Settings) -> int:
    """Return how many tokens a model has room for, with the classes of this table."""
    is_blended = settings.combine and not is_combined(table, settings)
    of_a_class = _BLENDED_BYTES if is_blended else _CLASS_BYTES
    return MAX_BYTES // (_TOKEN_BYTES + of_a_class * len(table.classes))


def fitted(
    table: CountTable,
    documents: Documents,
    y: Integers,
    settings: Settings,
    told: Booleans | None = None,
) -> "LogTables | Combination | Blend":
    """Return how evidence adds up, fitted to a sample of the counted messages.

    documents: over columns of the table, in the order of their digests.  y: (n_docs,) class of
    each document.  told: (n_docs,) whether a person has told it; None: none of them.  Before a
    message of each class is there, nothing is evidence.
    """
    if not table.class_count.all():
        return combining.without_evidence(len(table.vocabulary))
    if not settings.combine:
        from nbspam.classifier.summing import log_tables

        return log_tables(table, settings)
    if is_combined(table, settings):
        return combining.fit(table, documents, y, told)
    from nbspam.classifier import blending

    return blending.fit(table, documents, y, settings.weighting)


def is_combined(table: CountTable, settings: Settings) -> bool:
    """Return whether evidence is combined: two classes, and presence of tokens; else blended."""
    return len(table.classes) == 2 and settings.weighting == PRESENCE


def check_classes(table: CountTable) -> None:
    """Raise NotTrainedError if there are fewer than two classes."""
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder per class, or --spam PATH --ham PATH (or first the one and then the"
            " other to nbspam update)"
        )
