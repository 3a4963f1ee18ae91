"""Looking inside: the tokens of items, and those that speak most for each class.

Secret: what makes a token a strong one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tokens.definition import reference_tokens
from nbspam.tokens.reading import read_message


def token_counts(items: Iterable[Item], settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield every token of every item, spelt out, and how often it stands there."""
    for item in items:
        message = read_message(item, settings)
        counts = Counter(map(str, reference_tokens(message, settings.tokens)))
        yield from counts.items()


class StrongToken(NamedTuple):
    """A token that speaks for a class."""

    token: str
    weight: float  # log-odds against the mean of the other classes, nats
    counts: tuple[float, ...]  # by class


def strongest_tokens(classifier: Classifier, n: int) -> dict[str, list[StrongToken]]:
    """Return for each class the n tokens that speak most for it, strongest first."""
    table = classifier.table
    weight = classifier.alone
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
