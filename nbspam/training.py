"""Training: labelled items to counts, counts to a classifier.

Secret: what a worker process returns of the messages it has read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module

import numpy as np

from nbspam import blending, combining
from nbspam.arrays import Floats, Integers
from nbspam.classifier import Classifier
from nbspam.combining import Entries, merged_groups
from nbspam.counts import CountTable, add_tables, count_batch, prune, sum_tables
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
    for group in batches(messages, settings.tokens):
        batch = tokenize(group, settings.tokens)
        labels = [next(names) for _ in group]
        tables.append(count_batch(batch, labels, settings.weighting))
        if settings.combine:
            samples.append(sample_batch(batch, labels))
    return Training(add_tables(tables), tuple(samples), tuple(skipped))


def train(training: Training, settings: Settings) -> Classifier:
    """Return the classifier that counts and settings make; raises NotTrainedError."""
    table = chosen_tokens(training.table, settings)
    if not settings.combine:
        return sum_of_evidence(table, settings)
    entries, y = entries_of(training.samples, table.vocabulary, table.classes)
    return combined(table, settings, entries, y)


def chosen_tokens(table: CountTable, settings: Settings) -> CountTable:
    """Return the counts a classifier is made of; raises NotTrainedError."""
    if len(table.classes) < 2:
        found = f"only one class ({table.classes[0]})" if table.classes else "no labelled mail"
        raise NotTrainedError(
            f"train: {found}; a classifier needs two or more: give a folder with one"
            " sub-folder a class, or --spam PATH --ham PATH"
        )
    if settings.combine and len(table.classes) == 2:
        groups = merged_groups(table.vocabulary.groups)
        table = replace(table, vocabulary=replace(table.vocabulary, groups=groups))
    return prune(table, settings.min_df, settings.max_features)


def sum_of_evidence(table: CountTable, settings: Settings) -> Classifier:
    """Return the classifier that sums its tokens' evidence, as the plain models do."""
    intercept, weight = _log_tables(table, settings)
    return Classifier(settings, table, intercept, weight)


def _log_tables(table: CountTable, settings: Settings) -> tuple[Floats, Floats]:
    """Return intercept (n_classes,) and weight (n_features, n_classes) of the model."""
    module = import_module(f"nbspam.models.{settings.model}")
    model_class = getattr(module, f"{settings.model.capitalize()}NB")
    prior = settings.class_prior
    model = model_class.from_counts(
        table.class_count,
        table.feature_count.T,
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
    return tables.intercept, tables.weight


def combined(table: CountTable, settings: Settings, entries: Entries, y: Integers) -> Classifier:
    """Return the classifier that has learned from these messages how evidence adds up."""
    if len(table.classes) == 2:
        combination = combining.fit(table, entries, y)
        return replace(sum_of_evidence(table, settings), combination=combination)
    blend = blending.fit(table, entries, y, settings.weighting)
    intercept, weight = blending.linear_tables(table, blend)
    return Classifier(settings, table, intercept, weight, blend=blend)
