"""Explanations: each token's share of a verdict, and the strongest tokens of a model.

All models here are linear in their tokens, so the shares of a message's tokens (in nats) and one
constant add up to its score exactly.

Secret: which two classes a score compares.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.decision import Rule
from nbspam.mail.message import Message
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.tokens.definition import GROUPS, reference_tokens
from nbspam.tokens.documents import Documents
from nbspam.tokens.reading import read_message
from nbspam.verdicts import Evidence, Explanation

if TYPE_CHECKING:
    from nbspam.classifier.features import FeatureClassifier


def explain(
    classifier: Classifier, message: Message, name: str, rule: Rule | None = None
) -> Explanation:
    """Return the explanation of one message's score.

    If evidence is combined, the score is the log-odds of the last of two classes; otherwise of
    the most probable class against the next.
    """
    (document,) = classifier.documents([message])
    joint = classifier.joint_of(document)[0]
    towards, against = 1, 0
    if not isinstance(classifier.fit, Combination):
        towards, against = np.argsort(-joint, kind="stable")[:2].tolist()
    weighting = classifier.settings.weighting
    shares, constant = classifier.fit.shares(
        classifier.table, document, weighting, towards, against
    )
    shift = np.broadcast_to(classifier.shift, joint.shape)
    constant += float(shift[towards] - shift[against])
    return Explanation(
        classifier.verdict(name, joint, rule),
        classifier.classes[towards],
        classifier.classes[against],
        float(joint[towards] - joint[against]),
        constant,
        _evidence(classifier, document, shares),
    )


def _evidence(classifier: Classifier, document: Documents, shares: Floats) -> tuple[Evidence, ...]:
    """Return the evidence of one document's tokens, largest shares first."""
    vocabulary, count = classifier.table.vocabulary, classifier.table.feature_count
    order = np.argsort(-np.abs(shares), kind="stable")
    columns = document.tokens[document.columns[order]]
    return tuple(
        Evidence(
            vocabulary.text(column),
            share,
            GROUPS[vocabulary.groups[column]],
            tuple(count[column].tolist()),
        )
        for column, share in zip(columns.tolist(), shares[order].tolist(), strict=True)
    )


# --- the tokens of items and models ----------------------------------------------------


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
