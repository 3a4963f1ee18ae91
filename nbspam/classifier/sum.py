"""Summing: how evidence adds up in plain naive Bayes.

The joint log-probability of a message is a constant per class plus the sum of its tokens'
weights: multinomial, Bernoulli and complement naive Bayes all have this form.
"""

from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32
from nbspam.counts.table import CountTable, entry_weights, inverse_document_frequency
from nbspam.models import estimator_class
from nbspam.settings import FEATURES, TF_IDF, Settings
from nbspam.tokens.sparse import Documents


class LogTables(NamedTuple):
    """Joint log-probability = intercept + sum of the weights of a message's tokens, nats.

    Weights are infinite only with alpha 0, as in `models.tokens.Tables`: a message with a
    token of -inf, or without one of +inf, is impossible in that class.
    """

    log_prior: Floats  # (n_classes,)
    intercept: Floats  # (n_classes,)
    weight: Floats | Floats32  # (n_features, n_classes)
    n_required: Floats  # (n_classes,) the tokens of weight +inf

    def joint(self, table: CountTable, documents: Documents, weighting: str) -> Floats:
        """Return log P(class, document), nats, shape (n_docs, n_classes).

        documents: over columns of the table.
        """
        value = entry_weights(documents, table.vocabulary.groups[documents.tokens], weighting)
        weight = self.weight[documents.tokens]
        if self.n_required.any():
            required = np.isposinf(weight)
            found = weighted_sums(documents, required.astype(np.float64), np.ones(len(value)))
            joint = weighted_sums(documents, np.where(required, 0.0, weight), value)
            joint[found < self.n_required] = -np.inf
        else:
            joint = weighted_sums(documents, weight, value)
        joint += self.intercept
        # Without smoothing a document may be impossible in every class; then the prior decides.
        joint[np.isneginf(joint).all(axis=1)] = self.log_prior
        return joint

    def shares(
        self, table: CountTable, documents: Documents, weighting: str, towards: int, against: int
    ) -> tuple[Floats, float]:
        """Return each token's share (nnz,) of the log-odds of two classes, and the constant, nats.

        documents: one document, over columns of the table.
        """
        value = entry_weights(documents, table.vocabulary.groups[documents.tokens], weighting)
        classes = [towards, against]
        weight = self.weight[documents.tokens[documents.columns]][:, classes].astype(np.float64)
        required = np.isposinf(weight)
        weight[required] = 0.0
        lacking = required.sum(axis=0) < self.n_required[classes]
        start = np.where(lacking, -np.inf, self.intercept[classes])
        with np.errstate(invalid="ignore"):
            differences = np.append((weight[:, 0] - weight[:, 1]) * value, start[0] - start[1])
        # A part that is impossible in both classes does not distinguish them.
        differences[np.isnan(differences)] = 0.0
        return differences[:-1], float(differences[-1])

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
    if prior == "smoothed":
        parameters = {"alpha": settings.alpha, **settings.parameters}
        if settings.model in FEATURES and "class_dirichlet" in parameters:
            parameters["dirichlet"] = [parameters.pop("class_dirichlet")]
        model = estimator_class(settings.model)(class_prior=prior, **parameters)
        count = class_count + model.class_added(len(class_count))
        return np.asarray(count / count.sum())
    return np.array(prior, np.float64)


def estimator_of(table: CountTable, settings: Settings) -> Any:
    """Return the estimator that the settings name, with the counts of a table."""
    counts, rarity = table.feature_count.T, _rarity(table, settings)
    return estimator_class(settings.model).from_counts(
        table.class_count,
        counts if rarity is None else counts * rarity,
        np.array(table.classes),
        alpha=settings.alpha,
        class_prior=settings.class_prior,
        **settings.parameters,
    )


def token_probabilities(table: CountTable, settings: Settings) -> Floats | None:
    """Return P(token given class), (n_features, n_classes); None if the model has none.

    By multinomial naive Bayes it is the probability that a word is this token, by Bernoulli's
    that a document has it.
    """
    if settings.combine or settings.model not in ("bernoulli", "multinomial"):
        return None
    return np.asarray(np.exp(estimator_of(table, settings).feature_log_prob_.T))


def _rarity(table: CountTable, settings: Settings) -> Floats | None:
    """Return the factor of each token's counts, (n_features,); None without tf-idf."""
    if settings.weighting != TF_IDF:
        return None
    return inverse_document_frequency(table.document_frequency, float(table.class_count.sum()))


def log_tables(table: CountTable, settings: Settings) -> LogTables:
    """Return the tables of the model that the settings name."""
    model = estimator_of(table, settings)
    tables = model.tables()
    weight, intercept = tables.weight, tables.intercept
    n_required = np.isposinf(weight).sum(axis=0, dtype=np.float64)
    # tf-idf multiplies counts, and the values of a message to classify, by the same factor; the
    # factor of the message's values is put into the tables.
    rarity = _rarity(table, settings)
    if rarity is not None:
        # Without smoothing, a token that is in every document would get the weight 0 * infinity.
        weight = np.where(rarity[:, None] > 0, weight, 0.0) * rarity[:, None]
    return LogTables(model.class_log_prior_, intercept, weight, n_required)
