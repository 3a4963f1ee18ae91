"""Clusters of documents without labels: mixtures of Bernoulli or multinomial components.

Secret: that a mixture is a classifier whose classes were never named, so that its
strongest tokens are found, and new documents are placed, as with any other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from nbspam.arrays import Floats
from nbspam.classifier import Classifier
from nbspam.counts import TF_IDF, CountTable, inverse_document_frequency
from nbspam.errors import UsageError
from nbspam.models.em import Fit, mixture
from nbspam.semisupervised import (
    columns_times,
    frequent,
    model_of,
    shared_alpha,
    without_labels,
)
from nbspam.settings import Settings
from nbspam.sources import Item, Skipped
from nbspam.training import sum_of_evidence
from nbspam.validation import read_corpus
from nbspam.vectorizer import weigh


@dataclass(frozen=True, slots=True)
class Clusters:
    """A mixture's components, largest first, and the documents they came from."""

    classifier: Classifier  # its classes are "1", "2", …
    fit: Fit
    names: tuple[str, ...]  # (n_docs,)
    share: Floats  # (n_docs, k) P(cluster given document)
    skipped: tuple[Skipped, ...]


def cluster(
    items: Iterable[Item],
    settings: Settings,
    k: int,
    restarts: int = 5,
    hard: bool = False,
    jobs: int = 1,
    seed: int = 0,
) -> Clusters:
    """Return k clusters of documents, the most likely of several random starts.

    settings: as em_settings makes them; labels of the items play no part.
    """
    data, skipped = read_corpus(without_labels(items), settings, jobs)
    n_docs = len(data.names)
    if not 2 <= k <= n_docs:
        raise UsageError(f"-k {k}: of {n_docs} documents; give 2 to that many clusters")
    frequency = np.bincount(data.X.indices, minlength=len(data.vocabulary))
    keep = frequent(frequency, settings.min_df)
    X, frequency = weigh(data.X[:, keep], settings.weighting), frequency[keep]
    rarity = (
        inverse_document_frequency(frequency, n_docs) if settings.weighting == TF_IDF else None
    )
    seen = columns_times(X, rarity)
    alpha = shared_alpha(float(settings.alpha), k, X.shape[1], float(seen.sum()))
    settings = replace(settings, alpha=alpha, min_df=1)
    fit = mixture(model_of(settings), seen, k, np.random.default_rng(seed), restarts, hard)
    order = np.argsort(-fit.model.class_count_, kind="stable")
    share = fit.responsibility[:, order]
    table = CountTable(
        tuple(f"{number:0{len(str(k))}}" for number in range(1, k + 1)),
        share.sum(axis=0),
        data.vocabulary.take(keep),
        np.asarray(X.T @ share),
        frequency,
    )
    return Clusters(sum_of_evidence(table, settings), fit, data.names, share, skipped)


def typical_tokens(clusters: Clusters, n: int) -> dict[str, list[tuple[str, float]]]:
    """Return for each cluster the n tokens that set it most apart, and how much, in nats.

    A token's worth is what it adds to the divergence of the cluster from the mean of
    the others: how often it stands there times its log-odds, so that neither rare nor
    common tokens lead.
    """
    table, weight = clusters.classifier.table, clusters.classifier.weight
    k = len(table.classes)
    odds = weight - (weight.sum(axis=1, keepdims=True) - weight) / (k - 1)
    total = np.maximum(table.feature_count.sum(axis=0), 1e-300)
    worth = table.feature_count / total * odds
    best = np.argsort(-worth, axis=0, kind="stable")[:n]
    return {
        name: [(table.vocabulary.text(j), float(worth[j, c])) for j in best[:, c].tolist()]
        for c, name in enumerate(table.classes)
    }
