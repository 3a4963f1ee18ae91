"""Looking inside: the tokens of items, and the strongest tokens of a model.

Secret: which tokens are strong evidence for a class.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tokens.definition import reference_tokens
from nbspam.tokens.reading import read_message

if TYPE_CHECKING:
    from nbspam.classifier.features import FeatureClassifier


def token_counts(items: Iterable[Item], settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield each token of each item as a string, and how often it occurs there."""
    for item in items:
        message = read_message(item, settings)
        counts = Counter(map(str, reference_tokens(message, settings.tokens)))
        yield from counts.items()


class StrongToken(NamedTuple):
    """A token that is strong evidence for a class."""

    token: str
    weight: float  # log-odds against the mean of the other classes, nats
    counts: tuple[float, ...]  # by class


def token_weights(classifier: "Classifier | FeatureClassifier") -> Floats | Floats32:
    """Return each token's evidence for each class, nats, shape (n_features, n_classes)."""
    if not isinstance(classifier, Classifier):
        return classifier.alone
    from nbspam.classifier.blending import Blend
    from nbspam.classifier.summing import log_tables

    fit, table = classifier.fit, classifier.table
    if isinstance(fit, Blend):
        return fit.token_weights(table)
    if isinstance(fit, Combination):
        return log_tables(table, classifier.settings).weight
    return fit.weight


def strongest_tokens(
    classifier: "Classifier | FeatureClassifier", n: int
) -> dict[str, list[StrongToken]]:
    """Return for each class the n tokens that are the strongest evidence for it, best first."""
    table = classifier.table
    weight = token_weights(classifier)
    # Without smoothing weights can be -inf, which nothing can be compared with.
    weight = np.where(np.isneginf(weight).any(axis=1, keepdims=True), 0.0, weight)
    others = (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    strongest = {}
    for k, name in enumerate(classifier.classes):
        odds = weight[:, k] - others[:, k]
        columns = np.argsort(-odds, kind="stable")[:n]
        strongest[name] = [
            StrongToken(
                table.vocabulary.text(j),
                float(odds[j]),
                tuple(float(count) for count in table.feature_count[j]),
            )
            for j in columns.tolist()
        ]
    return strongest
