"""Clusters of unlabelled documents: mixtures of Bernoulli or multinomial components.

Secret: a mixture becomes a classifier whose classes are named by numbers.  So the same code as for
other classifiers weighs its tokens and classifies new documents.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.inspection import token_weights
from nbspam.classifier.summing import log_tables
from nbspam.classifier.unlabelled import (
    alpha_of,
    chosen,
    columns_times,
    frequent,
    model_of,
    without_labels,
)
from nbspam.counts.corpus import read_corpus
from nbspam.counts.table import CountTable, inverse_document_frequency
from nbspam.errors import UsageError
from nbspam.models.em import Fit, Stopping, expectation_maximization, mixture
from nbspam.models.linear import LinearModel
from nbspam.settings import TF_IDF, Settings
from nbspam.sources.items import Item
from nbspam.tokens.vocabulary import Vocabulary
from nbspam.verdicts import Skipped


@dataclass(frozen=True, slots=True)
class Start:
    """A component to start EM from: its weight, and the probabilities of its tokens."""

    weight: float
    tokens: dict[str, float]


@dataclass(frozen=True, slots=True)
class Clusters:
    """A fitted mixture and its documents.

    Clusters are in descending order of size, or in the order of the given starts.
    """

    classifier: Classifier  # its classes are "1", "2", ...
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
    starts: Sequence[Start] = (),
    rounds: int | None = None,
) -> Clusters:
    """Return k clusters of documents, the most likely of several random starts.

    The items' labels are ignored.  settings: from `em_settings`.  hard: give each document to its
    most probable cluster.  starts: k components to start from, instead of random ones.  rounds:
    of EM, without a test of convergence; None runs until it converges.  Raises UsageError.
    """
    data, skipped = read_corpus(without_labels(items), settings, jobs)
    n_docs = len(data.names)
    if not 2 <= k <= n_docs:
        raise UsageError(f"-k {k}: there are {n_docs} documents; give 2 to that many clusters")
    frequency = np.bincount(data.documents.columns, minlength=len(data.vocabulary))
    keep = frequent(frequency, settings.min_df)
    X = chosen(data.documents, keep, data.vocabulary, settings.weighting)
    frequency = frequency[keep]
    is_tf_idf = settings.weighting == TF_IDF
    seen = columns_times(X, inverse_document_frequency(frequency, n_docs) if is_tf_idf else None)
    alpha = alpha_of(settings, k, X.shape[1], float(seen.sum()))
    settings = replace(settings, alpha=alpha, class_prior="estimated", min_df=1)
    stopping = Stopping() if rounds is None else Stopping(0.0, 0.0, rounds)
    vocabulary, like = data.vocabulary.take(keep), model_of(settings)
    if starts:
        first = _start(like, starts, k, vocabulary)
        fit, order = expectation_maximization(first, seen, None, 1.0, hard, stopping), np.arange(k)
    else:
        fit = mixture(like, seen, k, np.random.default_rng(seed), restarts, hard, stopping)
        order = np.argsort(-fit.model.class_count_, kind="stable")
    share = fit.responsibility[:, order]
    table = _counts(share, X, vocabulary, frequency)
    classifier = Classifier(settings, table, log_tables(table, settings))
    return Clusters(classifier, fit, data.names, share, skipped)


def _counts(share: Floats, X: Any, vocabulary: Vocabulary, frequency: Integers) -> CountTable:
    """Return the counts of documents divided among clusters, which are named by number."""
    k = share.shape[1]
    names = tuple(f"{number:0{len(str(k))}}" for number in range(1, k + 1))
    return CountTable(names, share.sum(axis=0), vocabulary, np.asarray(X.T @ share), frequency)


def _start(
    like: LinearModel, starts: Sequence[Start], k: int, vocabulary: Vocabulary
) -> LinearModel:
    """Return the model of given components; raises UsageError."""
    if len(starts) != k:
        raise UsageError(f"--start: {len(starts)} components; give {k}, as -k says")
    column = {vocabulary.text(j): j for j in range(len(vocabulary))}
    # So many documents that alpha is negligible.
    weight = np.array([start.weight for start in starts]) * 1e6
    share = np.zeros((k, len(column)))
    for row, start in zip(share, starts, strict=True):
        for token, probability in start.tokens.items():
            if token not in column:
                raise UsageError(f"--start: no document has the token {token!r}; leave it out")
            row[column[token]] = probability
    params = like.get_params()
    return type(like).from_counts(weight, weight[:, None] * share, np.arange(k), **params)


def read_starts(data: Any, where: str) -> list[Start]:
    """Return the components that plain values describe; raises UsageError.

    data: [{"weight": 0.5, "tokens": {"heads": 0.2, "tails": 0.8}}, ...].  where: its name.
    """
    try:
        starts = [
            Start(float(row["weight"]), {str(t): float(p) for t, p in row["tokens"].items()})
            for row in data
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        starts = []
    fine = all(s.weight > 0 and all(0 <= p <= 1 for p in s.tokens.values()) for s in starts)
    if not starts or not fine:
        raise UsageError(
            f'{where}: not components; write [{{"weight": 0.5, "tokens": {{token: probability}}}}]'
        )
    return starts


@dataclass(frozen=True, slots=True)
class Typical:
    """A token that distinguishes a cluster from the others."""

    token: str
    worth: float  # nats (see `typical_tokens`)
    probability: float  # in the cluster: of a token, or with Bernoulli of a document with it


def typical_tokens(clusters: Clusters, n: int) -> dict[str, list[Typical]]:
    """Return for each cluster the n most distinctive tokens, strongest first.

    A token's worth is its share of the divergence of the cluster from the mean of the others: its
    probability in the cluster times its log-odds.  So neither rare nor common tokens come first.
    """
    table, weight = clusters.classifier.table, token_weights(clusters.classifier)
    k = len(table.classes)
    odds = weight - (weight.sum(axis=1, keepdims=True) - weight) / (k - 1)
    counts = table.feature_count
    of_model = clusters.classifier.settings.model
    total = table.class_count if of_model == "bernoulli" else counts.sum(axis=0)
    share = counts / np.maximum(total, 1e-300)
    worth = share * odds
    best = np.argsort(-worth, axis=0, kind="stable")[:n]
    return {
        name: [
            Typical(table.vocabulary.text(j), float(worth[j, c]), float(share[j, c]))
            for j in best[:, c].tolist()
        ]
        for c, name in enumerate(table.classes)
    }
