"""Counts to log-probability tables, by the model that the settings name.

Secret: which estimator that is, and what it is asked with.
"""

import numpy as np

from nbspam.arrays import Floats
from nbspam.counts.table import CountTable, inverse_document_frequency
from nbspam.errors import UsageError
from nbspam.models.registry import estimator_class
from nbspam.settings import TF_IDF, Settings


def assumed_prior(class_count: Floats, settings: Settings) -> Floats:
    """Return the shares of the classes that a model's probabilities assume."""
    prior = settings.class_prior
    if settings.combine or prior == "estimated":
        return np.asarray(class_count / max(class_count.sum(), 1.0))
    if prior == "uniform":
        return np.full(len(class_count), 1 / len(class_count))
    return np.array(prior, np.float64)


def log_tables(table: CountTable, settings: Settings) -> tuple[Floats, Floats]:
    """Return intercept (n_classes,) and weight (n_features, n_classes) of the model."""
    model_class = estimator_class(settings.model)
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
