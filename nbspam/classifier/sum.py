"""Summing: how evidence adds up in plain naive Bayes.

The joint log-probability of a message is a constant per class plus the sum of its tokens'
weights: multinomial, Bernoulli and complement naive Bayes all have this form.
"""

from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32
from nbspam.counts.table import CountTable, entry_weights, inverse_document_frequency
from nbspam.errors import UsageError
from nbspam.models import estimator_class
from nbspam.settings import TF_IDF, Settings
from nbspam.tokens.documents import Documents


class LogTables(NamedTuple):
    """Joint log-probability = intercept + sum of the weights of a message's tokens, nats."""

    intercept: Floats  # (n_classes,)
    weight: Floats | Floats32  # (n_features, n_classes)

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class, document), nats, shape (n_docs, n_classes).

        documents: over columns of the table.
        """
        value = entry_weights(documents, table.vocabulary.groups[documents.tokens], weighting)
        joint = weighted_sums(documents, self.weight[documents.tokens], value) + self.intercept
        # Without smoothing a document may be impossible in every class; then the prior decides.
        joint[np.isneginf(joint).all(axis=1)] = self.intercept
        return np.asarray(joint)

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share (nnz,) of the log-odds of two classes, and the constant, nats.

        documents: one document, over columns of the table.
        """
        value = entry_weights(documents, table.vocabulary.groups[documents.tokens], weighting)
        weight = self.weight[documents.tokens].astype(np.float64)
        # A token that is impossible in both classes does not distinguish them.
        both = np.isneginf(weight[:, towards]) & np.isneginf(weight[:, against])
        weight = np.where(both[:, None], 0.0, weight)
        difference = (weight[:, towards] - weight[:, against]).take(documents.columns)
        return difference * value, float(self.intercept[towards] - self.intercept[against])

    def recounted(self, table: CountTable, settings: Settings) -> "LogTables":
        """Return the log-probability tables of a changed count table."""
        return log_tables(table, settings)


def weighted_sums(documents: Documents, weight: Floats | Floats32, value: Floats) -> Floats:
    """Return the sums of weight * value over each document's entries, (n_docs, n_classes).

    weight: (n_tokens, n_classes); value: (nnz,).
    """
    rows, columns = documents.rows(), documents.columns
    sums = np.empty((documents.n_docs, weight.shape[1]))
    for k in range(weight.shape[1]):
        sums[:, k] = np.bincount(rows, weight[:, k].take(columns) * value, documents.n_docs)
    return sums


def assumed_prior(class_count: Floats, settings: Settings) -> Floats:
    """Return the class prior that a model's probabilities assume, shape (n_classes,)."""
    prior = settings.class_prior
    if settings.combine or prior == "estimated":
        return np.asarray(class_count / max(class_count.sum(), 1.0))
    if prior == "uniform":
        return np.full(len(class_count), 1 / len(class_count))
    return np.array(prior, np.float64)


def log_tables(table: CountTable, settings: Settings) -> LogTables:
    """Return the tables of the model that the settings name; raises UsageError."""
    prior = settings.class_prior
    # tf-idf multiplies counts, and the values of a message to classify, by the same factor; the
    # factor of the message's values is put into the tables.
    rarity = None
    if settings.weighting == TF_IDF:
        n_docs = float(table.class_count.sum())
        rarity = inverse_document_frequency(table.document_frequency, n_docs)
    counts = table.feature_count.T
    model = estimator_class(settings.model).from_counts(
        table.class_count,
        counts if rarity is None else counts * rarity,
        np.array(table.classes),
        alpha=settings.alpha,
        class_prior=prior if isinstance(prior, str) else np.array(prior),
    )
    tables = model.tables()
    if np.isposinf(tables.weight).any():
        raise UsageError(
            "--alpha 0: a token occurs in every message of a class, which makes messages"
            " without it impossible; give a small number, such as 1e-6"
        )
    if rarity is None:
        return LogTables(tables.intercept, tables.weight)
    # Without smoothing, a token that is in every document would get the weight 0 * infinity.
    weight = np.where(rarity[:, None] > 0, tables.weight, 0.0)
    return LogTables(tables.intercept, weight * rarity[:, None])
