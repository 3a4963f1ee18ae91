"""Training: labelled items to counts, counts to a classifier.

Secret: what a worker process returns of the messages it has read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier import Classifier
from nbspam.combining import Combination, Entries, fit
from nbspam.counts import (
    TF_IDF,
    CountTable,
    add_tables,
    count_batch,
    inverse_document_frequency,
    prune,
    sum_tables,
)
from nbspam.errors import NotTrainedError, UsageError
from nbspam.parallel import ordered_map
from nbspam.reading import CHUNK_BYTES, CHUNK_ITEMS, read_labelled
from nbspam.sample import Sample, entries_of, sample_batch, thin
from nbspam.settings import Settings
from nbspam.sources import Item, Skipped, chunks
from nbspam.tokenizer import batches, tokenize


@dataclass(frozen=True, slots=True)
class Training:
    """What one training run read, and what it could not read."""

    table: CountTable
    samples: tuple[Sample, ...]
    skipped: tuple[Skipped, ...]


def count_items(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Training:
    """Return the counts of labelled items; progress is told how many were read so far."""
    n_items = 0
    samples: list[Sample] = []
    skipped: list[Skipped] = []

    def tables() -> Iterator[CountTable]:
        nonlocal n_items, samples
        work = partial(_count_chunk, settings)
        for part in ordered_map(work, chunks(items, CHUNK_ITEMS, CHUNK_BYTES), jobs):
            n_items += part.table.n_docs
            samples = thin([*samples, *part.samples])
            skipped.extend(part.skipped)
            if progress is not None:
                progress(n_items)
            yield part.table

    table = sum_tables(tables())
    return Training(table, tuple(samples), tuple(skipped))


def _count_chunk(settings: Settings, items: list[Item]) -> Training:
    """Return the counts of one chunk of items: what a worker process does."""
    read, messages, skipped = read_labelled(items, settings)
    names = iter([str(item.label) for item in read])
    tables, samples = [], []
    for group in batches(messages):
        batch = tokenize(group, settings.tokens)
        labels = [next(names) for _ in group]
        tables.append(count_batch(batch, labels, settings.weighting))
        if settings.combine:
            samples.append(sample_batch(batch, labels))
    return Training(add_tables(tables), tuple(samples), tuple(skipped))


def train(training: Training, settings: Settings) -> Classifier:
    """Return the classifier that counts and settings make; raises NotTrainedError."""
    classifier = sum_of_evidence(training.table, settings)
    if not (settings.combine and len(classifier.classes) == 2):
        return classifier
    table = classifier.table
    return combined(classifier, *entries_of(training.samples, table.vocabulary, table.classes))


def sum_of_evidence(table: CountTable, settings: Settings) -> Classifier:
    """Return the classifier that sums its tokens' evidence, as the plain models do."""
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder a class, or --spam PATH --ham PATH"
        )
    table = prune(table, settings.min_df, settings.max_features)
    intercept, weight = _log_tables(table, settings)
    return Classifier(settings, table, intercept, weight)


def _log_tables(table: CountTable, settings: Settings) -> tuple[Floats, Floats]:
    """Return intercept (n_classes,) and weight (n_features, n_classes) of the model."""
    module = import_module(f"nbspam.models.{settings.model}")
    model_class = getattr(module, f"{settings.model.capitalize()}NB")
    prior = settings.class_prior
    # The same factor for counts and for what is asked, so it goes into the look-up table.
    rarity = None
    if settings.weighting == TF_IDF:
        n_docs = float(table.class_count.sum())
        rarity = inverse_document_frequency(table.document_frequency, n_docs)
    counts = table.feature_count.T
    model = model_class.from_counts(
        table.class_count,
        counts if rarity is None else counts * rarity,
        np.array(table.classes),
        alpha=settings.alpha,
        class_prior=prior if isinstance(prior, str) else np.array(prior),
    )
    tables = model.tables()
    if np.isposinf(tables.weight).any():
        raise UsageError(
            "--alpha 0: a token stands in every message of a class, which makes a message"
            " without it impossible; give a small number, such as 1e-6"
        )
    if rarity is None:
        return tables.intercept, tables.weight
    # Without smoothing, a token of every document would be 0 times infinity.
    worth = np.where(rarity[:, None] > 0, tables.weight, 0.0)
    return tables.intercept, worth * rarity[:, None]


def combined(classifier: Classifier, entries: Entries, y: Integers) -> Classifier:
    """Return the classifier with a combination learned from these messages."""
    combination: Combination = fit(classifier.table, entries, y)
    return Classifier(
        classifier.settings,
        classifier.table,
        classifier.intercept,
        classifier.weight,
        combination,
    )
