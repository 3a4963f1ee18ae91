"""Labelled items to a classifier, whatever its model learns from.

Secret: that some models learn from counts, which need no second look, and some from the
documents themselves.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nbspam.classifier.training import count_items, train
from nbspam.settings import FEATURES, Settings
from nbspam.sources.items import Item
from nbspam.tokens.reading import chunk_by_chunk, read_labelled
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.verdicts import Skipped

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier
    from nbspam.classifier.features import FeatureClassifier
    from nbspam.counts.corpus import Corpus, CorpusPart


class Learned(NamedTuple):
    """A classifier, and what is to be said of the items that made it."""

    classifier: "Classifier | FeatureClassifier"
    repeated: int  # messages that had been read before, and were not counted again
    skipped: tuple[Skipped, ...]


def learn(
    items: Iterable[Item],
    settings: Settings,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    day: int = 0,
) -> Learned:
    """Return the classifier that items and settings make; raises NotTrainedError.

    progress, day: see `training`.
    """
    if settings.model not in FEATURES:
        training = count_items(items, settings, jobs, progress)
        return Learned(train(training, settings, day), training.repeated, training.skipped)
    from nbspam.classifier.features import train_features

    # Which tokens go together is to be seen in the documents alone, not in counts.
    data, skipped = read_corpus(items, settings, jobs)
    return Learned(train_features(data, settings), 0, skipped)


def read_corpus(
    items: Iterable[Item], settings: Settings, jobs: int = 1
) -> "tuple[Corpus, tuple[Skipped, ...]]":
    """Return all labelled items as rows of one sparse matrix, and what was skipped."""
    from nbspam.counts.corpus import corpus

    parts: list[CorpusPart] = []
    skipped: list[Skipped] = []
    work = partial(_vectorize_chunk, settings)
    for part, failures in chunk_by_chunk(work, items, jobs):
        parts.append(part)
        skipped.extend(failures)
    return corpus(parts), tuple(skipped)


def _vectorize_chunk(settings: Settings, items: list[Item]) -> "tuple[CorpusPart, list[Skipped]]":
    from nbspam.counts.corpus import corpus_part

    read, messages, skipped = read_labelled(items, settings)
    groups = batches(messages, settings.tokens)
    token_batches = [tokenize(group, settings.tokens) for group in groups]
    names, labels = [item.name for item in read], [str(item.label) for item in read]
    return corpus_part(token_batches, names, labels), skipped
