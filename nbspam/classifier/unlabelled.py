"""Texts without labels, by EM: training on few labelled and many unlabelled ones, and clusters.

An unlabelled document counts as `weight` documents, divided among the classes by their
probabilities.  The model holds the sums of such counts and is used like any other.  Clusters are
the same without any label: a mixture becomes a classifier whose classes are named by numbers.

Pitfall: with Laplace's alpha and a small weight, smoothing adds more than was counted, and one
class gets all documents.  Therefore, unless the user gives alpha, a tenth of the sum of all
counts is added, spread evenly over classes and tokens, but at most 1 to each count.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, checked_seed
from nbspam.classifier.classifier import Classifier, token_weights
from nbspam.classifier.sum import log_tables, token_probabilities
from nbspam.counts.corpus import Corpus, csr, read_corpus, stratified_folds
from nbspam.counts.table import CountTable, entry_weights, inverse_document_frequency
from nbspam.errors import InputError, NotTrainedError, UsageError
from nbspam.models import EM_MODELS, em, estimator_class
from nbspam.printing import tracked
from nbspam.settings import AUTO, PRESENCE, TF_IDF, Settings, SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.tokens.sparse import Vocabulary, join
from nbspam.verdicts import Skipped
from nbspam.workers import Workers

# Weights tried by cross-validation; 0 ignores the unlabelled documents.
WEIGHTS = (0.0, 0.1, 0.3, 1.0)
_FOLDS = 5
_TO_CHOOSE = em.Stopping(most=5)  # when the weight is chosen
# Smoothing adds this share of the sum of all counts unless alpha is given: E-070.
_SHARE = 0.1
# The prior that stays that of the labelled documents; "estimated" is estimated in every round.
_LABELLED = "labelled"
BEFORE_OVERFITTING = em.Stopping(most=30)  # for the final model


class _PartlyLabelled(NamedTuple):
    """Labelled and unlabelled documents over one vocabulary."""

    classes: tuple[str, ...]
    y: Integers  # (n_labelled,) index into classes
    vocabulary: Vocabulary
    labelled: Any  # CSR matrix (n_labelled, n_features) of weights
    unlabelled: Any  # CSR matrix (n_unlabelled, n_features) of weights

    def frequency(self, weight: float) -> Integers:
        """Return document frequencies, (n_features,); an unlabelled document counts `weight`."""
        n_features = len(self.vocabulary)
        one = np.bincount(self.labelled.indices, minlength=n_features)
        other = np.bincount(self.unlabelled.indices, minlength=n_features)
        return np.ceil(one + weight * other).astype(np.int64)

    def rarity(self, settings: Settings, weight: float) -> Floats | None:
        """Return inverse document frequencies, (n_features,); None unless weights are tf-idf."""
        if settings.weighting != TF_IDF:
            return None
        n_docs = len(self.y) + weight * self.unlabelled.shape[0]
        return inverse_document_frequency(self.frequency(weight), n_docs)

    def prepared(self, settings: Settings, weight: float) -> tuple[Settings, Any, Any]:
        """Return settings with a number as alpha, and what EM sees of the documents."""
        rarity = self.rarity(settings, weight)
        labelled = _columns_times(self.labelled, rarity)
        unlabelled = _columns_times(self.unlabelled, rarity)
        alpha = settings.alpha
        if alpha == AUTO:
            counted = float(labelled.sum() + weight * unlabelled.sum())
            # Where nothing is counted, any alpha but 0 says that all is equally likely.
            alpha = min(1.0, _SHARE * counted / (len(self.classes) * len(self.vocabulary))) or 1.0
        return replace(settings, alpha=alpha, min_df=1), labelled, unlabelled

    def classifier(self, settings: Settings, share: Floats, weight: float) -> Classifier:
        """Return the classifier of all documents; share: of the unlabelled ones in classes."""
        member, share = np.eye(len(self.classes))[self.y], weight * share
        table = CountTable(
            self.classes,
            member.sum(axis=0) + share.sum(axis=0),
            self.vocabulary,
            np.asarray(self.labelled.T @ member + self.unlabelled.T @ share),
            self.frequency(weight),
        )
        return Classifier(settings, table, log_tables(table, settings))


def em_chosen(choices: SettingsChoices, is_text: bool) -> Settings:
    """Return settings for EM: a user's choices, and defaults that are best with few labels.

    is_text: whether the items are texts, not mail.  Raises UsageError if EM cannot use a choice.
    """
    model = choices.model or "multinomial"
    # `chosen_settings` returns the plain settings, whose tokens EM uses, only if a model is named.
    settings = chosen_settings(choices._replace(model=model), is_text)
    if model not in EM_MODELS:
        raise UsageError(f"--model {model}: not possible with EM; give {' or '.join(EM_MODELS)}")
    if choices.alpha == 0:
        raise UsageError(f"--alpha {choices.alpha}: not for EM; give a number above 0")
    if choices.max_features is not None:
        raise UsageError("--max-features: not for EM; leave it out, or give --min-df")
    has_prior = choices.class_prior is not None or choices.dirichlet
    return replace(
        settings,
        combine=False,
        model=model,
        alpha=AUTO if choices.alpha is None else choices.alpha,
        class_prior=settings.class_prior if has_prior else _LABELLED,
        weighting=choices.weighting or (PRESENCE if model == "bernoulli" else TF_IDF),
        # A token that occurs in a single document tells nothing about other documents.
        min_df=choices.min_df or 2,
    )


def train_with_unlabelled(
    items: Iterable[Item],
    unlabelled: Iterable[Item],
    settings: Settings,
    weight: float | None = None,
    hard: bool = False,
    jobs: Workers = 1,
    seed: int = 0,
    stopping: em.Stopping = BEFORE_OVERFITTING,
) -> em.EMReport:
    """Return a classifier trained on labelled and unlabelled documents, with a report.

    settings: from `em_chosen`.  weight: weight of an unlabelled document, at least 0; None chooses
    it by cross-validation on the labelled ones.  hard: give each unlabelled document to its most
    probable class.  seed: of the random folds.  Raises NotTrainedError, InputError or UsageError.
    """
    one, skipped = read_corpus(items, settings, jobs)
    other, more_skipped = read_corpus(_without_labels(unlabelled), settings, jobs)
    if len(one.classes) < 2:
        raise NotTrainedError(
            f"train: labelled documents of {len(one.classes)} class; give two classes or more"
        )
    if not other.names:
        raise InputError("--unlabelled: nothing to read; name a folder or a file with documents")
    vocabulary, (labelled, unlabelled) = _matrices((one, other), settings)
    data = _PartlyLabelled(one.classes, one.y, vocabulary, labelled, unlabelled)
    accuracy: dict[float, float] = {}
    if weight is None:
        accuracy = _weigh_unlabelled(data, settings, hard, seed)
        # Among weights of equal accuracy take the largest: there are many unlabelled documents.
        weight = max(accuracy, key=lambda w: (accuracy[w], w)) if accuracy else 1.0
    fit, settings = _fit(data, settings, weight, hard, stopping)
    classifier = data.classifier(settings, fit.responsibility, weight)
    counted = len(one.names), len(other.names)
    return em.EMReport(classifier, fit, weight, *counted, accuracy, (*skipped, *more_skipped))


def _weigh_unlabelled(
    data: _PartlyLabelled, settings: Settings, hard: bool, seed: int
) -> dict[float, float]:
    """Return the accuracy on held-out labelled documents, 0 to 1, by weight of unlabelled ones.

    Empty if a class has a single document, since then none can be held out.
    """
    k = min(_FOLDS, int(np.bincount(data.y).min()))
    if k < 2:
        return {}
    fold = stratified_folds(data.y, k, np.random.RandomState(checked_seed(seed)))
    right = dict.fromkeys(WEIGHTS, 0)
    for number in tracked(range(k), "folds"):
        held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        part = data._replace(y=data.y[rest], labelled=data.labelled[rest])
        for weight in WEIGHTS:
            fit, _ = _fit(part, settings, weight, hard, _TO_CHOOSE)
            asked = _columns_times(data.labelled[held], part.rarity(settings, weight))
            right[weight] += int((fit.model.predict(asked) == data.y[held]).sum())
    return {weight: n / len(data.y) for weight, n in right.items()}


def _fit(
    data: _PartlyLabelled, settings: Settings, weight: float, hard: bool, stopping: em.Stopping
) -> tuple[em.Fit, Settings]:
    """Return the fit, and settings with which its counts give the same model."""
    settings, labelled, unlabelled = data.prepared(settings, weight)
    if settings.class_prior == _LABELLED:
        # A class that is given many unlabelled documents would get a higher prior, and so be
        # given still more of them.
        shares = np.bincount(data.y, minlength=len(data.classes)) / len(data.y)
        settings = replace(settings, class_prior=tuple(shares.tolist()))
    known = _untrained(settings).fit(labelled, data.y)
    missing = em.UnlabelledDocuments(known, known.classes_, unlabelled, known, weight, hard)
    # Of weight 0 the unlabelled documents change nothing.
    return em.climb(known, missing, stopping if weight else em.Stopping(most=0)), settings


def _untrained(settings: Settings) -> Any:
    prior = {"alpha": settings.alpha, "class_prior": settings.class_prior}
    return estimator_class(settings.model)(**prior, **settings.parameters)


def _without_labels(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item._replace(label="")


def _matrices(corpora: Sequence[Corpus], settings: Settings) -> tuple[Vocabulary, list[Any]]:
    """Return the tokens in at least min_df documents, and each corpus as weights of these.

    The weights are CSR matrices (n_docs, n_features).  Raises UsageError if no token is left.
    """
    vocabulary, column = join([corpus.vocabulary for corpus in corpora])
    ends = np.cumsum([len(corpus.vocabulary) for corpus in corpora])
    parts = [
        corpus.documents.renumbered(own)
        for corpus, own in zip(corpora, np.split(column, ends[:-1]), strict=True)
    ]
    found = np.concatenate([part.tokens[part.columns] for part in parts])
    keep = np.flatnonzero(np.bincount(found, minlength=len(vocabulary)) >= settings.min_df)
    if not len(keep):
        raise UsageError(
            f"--min-df {settings.min_df}: no token is in that many documents; give a lower number"
        )
    number = np.full(len(vocabulary), -1)
    number[keep] = np.arange(len(keep))
    vocabulary, all_columns = vocabulary.take(keep), np.arange(len(keep))
    kept = [part.renumbered(number[part.tokens]).over_all(all_columns) for part in parts]
    groups, weighting = vocabulary.groups, settings.weighting
    return vocabulary, [csr(part, entry_weights(part, groups, weighting)) for part in kept]


def _columns_times(X: Any, factor: Floats | None) -> Any:
    """Return a CSR matrix with each column multiplied by its factor; None: unchanged."""
    return X if factor is None else X.multiply(factor).tocsr()


# --- clusters --------------------------------------------------------------------------------


# A component to start EM from: its weight, and the probabilities of its tokens.
ComponentStart = tuple[float, dict[str, float]]


class Clusters(NamedTuple):
    """A fitted mixture and its documents.

    Clusters are in descending order of size, or in the order of the given starts.
    """

    classifier: Classifier  # its classes are "1", "2", ...
    fit: em.Fit
    names: tuple[str, ...]  # (n_docs,)
    share: Floats  # (n_docs, k) P(cluster given document)
    skipped: tuple[Skipped, ...]


def cluster_documents(
    items: Iterable[Item],
    settings: Settings,
    k: int,
    restarts: int = 5,
    hard: bool = False,
    jobs: int = 1,
    seed: int = 0,
    starts: Sequence[ComponentStart] = (),
    stopping: em.Stopping = em.AT_CONVERGENCE,
) -> Clusters:
    """Return k clusters of documents, the most likely of several random starts.

    The items' labels are ignored.  settings: from `em_chosen`.  hard: give each document to its
    most probable cluster.  starts: k components to start from, instead of random ones.  Raises
    UsageError.
    """
    corpus, skipped = read_corpus(_without_labels(items), settings, jobs)
    what = "documents (a table of texts has one in each row)"
    names = em.cluster_names(k, len(corpus.names), what)
    vocabulary, (X,) = _matrices((corpus,), settings)
    data = _PartlyLabelled(names, np.empty(0, np.int64), vocabulary, X[:0], X)
    settings, _, seen = data.prepared(replace(settings, class_prior="estimated"), 1.0)
    like = _untrained(settings)
    missing = em.UnlabelledDocuments(like, np.arange(k), seen, hard=hard)
    if starts:
        first = _start(like, starts, k, vocabulary)
        fit, order = em.climb(first, missing, stopping), np.arange(k)
    else:
        fit = em.mixture(missing, k, np.random.default_rng(checked_seed(seed)), restarts, stopping)
        order = np.argsort(-fit.model.class_count_, kind="stable")
    share = fit.responsibility[:, order]
    return Clusters(data.classifier(settings, share, 1.0), fit, corpus.names, share, skipped)


def _start(like: Any, starts: Sequence[ComponentStart], k: int, vocabulary: Vocabulary) -> Any:
    """Return the model of given components; raises UsageError."""
    if len(starts) != k:
        raise UsageError(f"--start: {len(starts)} components for {k} clusters; give {k}")
    column = {vocabulary.text(j): j for j in range(len(vocabulary))}
    # So many documents that alpha is negligible.
    weight = np.array([weight for weight, _ in starts]) * 1e6
    share = np.zeros((k, len(column)))
    for row, (_, tokens) in zip(share, starts, strict=True):
        for token, probability in tokens.items():
            if token not in column:
                raise UsageError(f"--start: no document has the token {token!r}; leave it out")
            row[column[token]] = probability
    params = like.get_params()
    return type(like).from_counts(weight, weight[:, None] * share, np.arange(k), **params)


def read_starts(data: Any, where: str) -> list[ComponentStart]:
    """Return the components that plain values describe; raises UsageError.

    data: [{"weight": 0.5, "tokens": {"heads": 0.2, "tails": 0.8}}, ...].  where: its name.
    """
    try:
        starts = [
            (float(row["weight"]), {str(t): float(p) for t, p in row["tokens"].items()})
            for row in data
        ]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        starts = []
    fine = all(0 < w < np.inf and all(0 <= p <= 1 for p in t.values()) for w, t in starts)
    if not starts or not fine:
        raise UsageError(
            f'{where}: not components; write [{{"weight": 0.5, "tokens": {{token: probability}}}}]'
        )
    return starts


class Typical(NamedTuple):
    """A token that distinguishes a cluster from the others."""

    token: str
    worth: float  # nats (see `typical_tokens`)
    probability: float  # in the cluster: of a token, or with Bernoulli of a document with it

    def __str__(self) -> str:
        return f"{self.token}={self.probability:.4g}"


def typical_tokens(clusters: Clusters, n: int) -> dict[str, list[Typical]]:
    """Return for each cluster the n most distinctive tokens, strongest first.

    A token's worth is its share of the divergence of the cluster from the mean of the others: its
    probability in the cluster times its log-odds.  So neither rare nor common tokens come first.
    """
    table, weight = clusters.classifier.table, token_weights(clusters.classifier)
    odds = weight - (weight.sum(axis=1, keepdims=True) - weight) / (weight.shape[1] - 1)
    share = token_probabilities(table, clusters.classifier.settings)
    assert share is not None  # EM trains no other models
    worth = share * odds
    best = np.argsort(-worth, axis=0, kind="stable")[:n]
    return {
        name: [
            Typical(table.vocabulary.text(j), float(worth[j, c]), float(share[j, c]))
            for j in best[:, c].tolist()
        ]
        for c, name in enumerate(table.classes)
    }
