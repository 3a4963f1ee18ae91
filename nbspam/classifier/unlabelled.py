"""Training on a few labelled and many unlabelled documents, by EM.

An unlabelled document counts as `weight` documents, divided among the classes by their
probabilities.  The model holds the sums of such counts and is used like any other.

Pitfall: with Laplace's alpha and a small weight, smoothing adds more than was counted, and one
class gets all documents.  Therefore, unless the user gives alpha, a tenth of the sum of all
counts is added, spread evenly over classes and tokens, but at most 1 to each count.

Secret: how alpha and the weight are chosen, and how two corpora get one vocabulary.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.summing import log_tables
from nbspam.counts.corpus import Corpus, read_corpus, weighted
from nbspam.counts.folds import stratified_folds
from nbspam.counts.table import CountTable, inverse_document_frequency
from nbspam.errors import InputError, NotTrainedError, UsageError
from nbspam.models.em import Fit, Stopping, expectation_maximization
from nbspam.models.registry import EM_MODELS, estimator_class
from nbspam.parallel import Workers
from nbspam.progress import tracked
from nbspam.settings import AUTO, PRESENCE, TF_IDF, Choices, Settings
from nbspam.settings import chosen as chosen_settings
from nbspam.sources.items import Item
from nbspam.tokens.documents import Documents
from nbspam.tokens.vocabulary import Vocabulary, join
from nbspam.verdicts import Skipped

if TYPE_CHECKING:
    from nbspam.models.linear import LinearModel

# Weights tried by cross-validation; 0 ignores the unlabelled documents.
WEIGHTS = (0.0, 0.1, 0.3, 1.0)
_FOLDS = 5
_ROUNDS_TO_CHOOSE = 5  # rounds of EM at most, when the weight is chosen
# Smoothing adds this share of the sum of all counts unless alpha is given: E-070.
_SHARE = 0.1
# The prior that stays that of the labelled documents; "estimated" is estimated in every round.
_LABELLED = "labelled"
_MAX_ROUNDS = 30  # rounds of EM at most, for the final model


@dataclass(frozen=True, slots=True)
class Report:
    """The result of training with unlabelled documents."""

    classifier: Classifier
    fit: Fit
    weight: float  # of an unlabelled document
    accuracy: dict[float, float]  # 0 to 1, by weight; empty if no weights were tried
    n_labelled: int
    n_unlabelled: int
    skipped: tuple[Skipped, ...]


class _Data(NamedTuple):
    """Labelled and unlabelled documents over one vocabulary."""

    classes: tuple[str, ...]
    y: Integers  # (n_labelled,) index into classes
    vocabulary: Vocabulary
    labelled: Any  # CSR matrix (n_labelled, n_features) of weights
    unlabelled: Any  # CSR matrix (n_unlabelled, n_features) of weights


def em_settings(settings: Settings, choices: dict[str, Any]) -> Settings:
    """Return settings for EM: the user's choices, and defaults that are best with few labels.

    choices: the options that the user gave, by name.  Raises UsageError if EM cannot use them.
    """
    model = choices.get("model") or "multinomial"
    if model not in EM_MODELS:
        raise UsageError(f"--model {model}: not possible with EM; give {' or '.join(EM_MODELS)}")
    if choices.get("alpha") == 0:
        raise UsageError(f"--alpha {choices['alpha']}: not for EM; give a number above 0")
    return replace(
        settings,
        combine=False,
        model=model,
        alpha=choices.get("alpha", AUTO),
        class_prior=choices.get("class_prior", _LABELLED),
        weighting=choices.get("weighting") or (PRESENCE if model == "bernoulli" else TF_IDF),
        # A token that occurs in a single document tells nothing about other documents.
        min_df=choices.get("min_df") or 2,
    )


def em_chosen(choices: Choices, is_text: bool) -> Settings:
    """Return the settings for EM by a user's choices; raises UsageError.

    is_text: whether the items are texts, not mail.
    """
    # `chosen_settings` returns the plain settings, whose tokens EM uses, only if a model is named.
    plain = choices._replace(model=choices.model or "multinomial")
    return em_settings(chosen_settings(plain, is_text), choices.given)


def train_with_unlabelled(
    items: Iterable[Item],
    unlabelled: Iterable[Item],
    settings: Settings,
    weight: float | None = None,
    hard: bool = False,
    jobs: Workers = 1,
    seed: int = 0,
) -> Report:
    """Return a classifier trained on labelled and unlabelled documents, with a report.

    settings: from `em_settings`.  weight: weight of an unlabelled document, at least 0; None
    chooses it by cross-validation on the labelled ones.  hard: give each unlabelled document to
    its most probable class.  seed: of the random folds.  Raises NotTrainedError, InputError or
    UsageError.
    """
    one, skipped = read_corpus(items, settings, jobs)
    other, more_skipped = read_corpus(without_labels(unlabelled), settings, jobs)
    if len(one.classes) < 2:
        raise NotTrainedError(
            f"train: labelled documents of {len(one.classes)} class; give two classes or more"
        )
    if not other.names:
        raise InputError("--unlabelled: nothing to read; name a folder or a file with documents")
    data = _together(one, other, settings)
    accuracy: dict[float, float] = {}
    if weight is None:
        accuracy = _weigh_unlabelled(data, settings, hard, seed)
        # Among weights of equal accuracy take the largest: there are many unlabelled documents.
        weight = max(accuracy, key=lambda w: (accuracy[w], w)) if accuracy else 1.0
    fit, settings = _fit(data, settings, weight, hard, _MAX_ROUNDS)
    table = _soft_table(data, fit, weight)
    classifier = Classifier(settings, table, log_tables(table, settings))
    counted = len(one.names), len(other.names)
    return Report(classifier, fit, weight, accuracy, *counted, (*skipped, *more_skipped))


def _weigh_unlabelled(
    data: _Data, settings: Settings, hard: bool = False, seed: int = 0
) -> dict[float, float]:
    """Return the accuracy on held-out labelled documents, 0 to 1, by weight of unlabelled ones.

    Empty if a class has a single document, since then none can be held out.
    """
    k = min(_FOLDS, int(np.bincount(data.y).min()))
    if k < 2:
        return {}
    fold = stratified_folds(data.y, k, np.random.RandomState(seed))
    right = dict.fromkeys(WEIGHTS, 0)
    for number in tracked(range(k), "folds"):
        held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        part = data._replace(y=data.y[rest], labelled=data.labelled[rest])
        for weight in WEIGHTS:
            fit, _ = _fit(part, settings, weight, hard, _ROUNDS_TO_CHOOSE)
            asked = columns_times(data.labelled[held], _rarity(part, settings, weight))
            right[weight] += int((fit.model.predict(asked) == data.y[held]).sum())
    return {weight: n / len(data.y) for weight, n in right.items()}


def _fit(
    data: _Data, settings: Settings, weight: float, hard: bool, rounds: int
) -> tuple[Fit, Settings]:
    """Return the fit, and settings with which its counts give the same model."""
    rarity = _rarity(data, settings, weight)
    labelled = columns_times(data.labelled, rarity)
    unlabelled = columns_times(data.unlabelled, rarity)
    n_classes = len(data.classes)
    counted = float(labelled.sum() + weight * unlabelled.sum())
    alpha = alpha_of(settings, n_classes, labelled.shape[1], counted)
    prior = settings.class_prior
    if prior == _LABELLED:
        # A class that is given many unlabelled documents would get a higher prior, and so be
        # given still more of them.
        prior = tuple((np.bincount(data.y, minlength=n_classes) / len(data.y)).tolist())
    settings = replace(settings, alpha=alpha, class_prior=prior, min_df=1)
    known = model_of(settings).fit(labelled, data.y)
    stopping = Stopping(most=rounds if weight else 0)
    return expectation_maximization(known, unlabelled, known, weight, hard, stopping), settings


def alpha_of(settings: Settings, n_classes: int, n_features: int, counted: float) -> float:
    """Return the alpha that was given, or else a tenth of the mean count, but at most 1.

    counted: the sum of the counts of all classes and tokens.
    """
    if settings.alpha != AUTO:
        return float(settings.alpha)
    return min(1.0, _SHARE * counted / (n_classes * n_features))


def model_of(settings: Settings) -> "LinearModel":
    """Return the untrained estimator that settings name."""
    found: type[LinearModel] = estimator_class(settings.model)
    prior = settings.class_prior
    return found(
        alpha=float(settings.alpha),
        class_prior=prior if isinstance(prior, str) else np.array(prior),
    )


def _soft_table(data: _Data, fit: Fit, weight: float) -> CountTable:
    """Return the counts of all documents, unlabelled ones divided among the classes."""
    n_classes = len(data.classes)
    member = np.eye(n_classes)[data.y]
    share = weight * fit.responsibility
    return CountTable(
        data.classes,
        member.sum(axis=0) + share.sum(axis=0),
        data.vocabulary,
        np.asarray(data.labelled.T @ member + data.unlabelled.T @ share),
        _frequency(data, weight),
    )


# --- documents ---------------------------------------------------------------------------


def without_labels(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items with an empty label in place of their own."""
    for item in items:
        yield item._replace(label="")


def _together(one: Corpus, other: Corpus, settings: Settings) -> _Data:
    """Return both corpora over the tokens that occur in at least min_df documents."""
    vocabulary, column = join([one.vocabulary, other.vocabulary])
    parts = [
        corpus.documents.on(own).over(np.arange(len(vocabulary)))
        for corpus, own in zip((one, other), np.split(column, [len(one.vocabulary)]), strict=True)
    ]
    together = [part.columns for part in parts]
    frequency = np.bincount(np.concatenate(together), minlength=len(vocabulary))
    keep = frequent(frequency, settings.min_df)
    labelled, unlabelled = (chosen(part, keep, vocabulary, settings.weighting) for part in parts)
    return _Data(one.classes, one.y, vocabulary.take(keep), labelled, unlabelled)


def chosen(documents: Documents, keep: Integers, vocabulary: Vocabulary, weighting: str) -> Any:
    """Return documents over some columns as a CSR matrix (n_docs, n_kept) of weights."""
    names = np.full(len(vocabulary), -1)
    names[keep] = np.arange(len(keep))
    return weighted(documents.on(names), vocabulary.groups[keep], weighting)


def frequent(document_frequency: Integers, min_df: int) -> Integers:
    """Return the columns that occur in at least min_df documents; raises UsageError if none do."""
    keep = np.flatnonzero(document_frequency >= min_df)
    if not len(keep):
        raise UsageError(
            f"--min-df {min_df}: no token is in that many documents; give a lower number"
        )
    return keep


def _frequency(data: _Data, weight: float) -> Integers:
    """Return document frequencies, (n_features,); each unlabelled document counts as `weight`."""
    n_features = len(data.vocabulary)
    one = np.bincount(data.labelled.indices, minlength=n_features)
    other = np.bincount(data.unlabelled.indices, minlength=n_features)
    return np.ceil(one + weight * other).astype(np.int64)


def _rarity(data: _Data, settings: Settings, weight: float) -> Floats | None:
    """Return inverse document frequencies, shape (n_features,); None unless weights are tf-idf."""
    if settings.weighting != TF_IDF:
        return None
    n_docs = len(data.y) + weight * data.unlabelled.shape[0]
    return inverse_document_frequency(_frequency(data, weight), n_docs)


def columns_times(X: Any, factor: Floats | None) -> Any:
    """Return a CSR matrix with each column multiplied by its factor; None: unchanged."""
    from scipy import sparse

    if factor is None:
        return X
    return sparse.csr_array((X.data * factor[X.indices], X.indices, X.indptr), X.shape)
