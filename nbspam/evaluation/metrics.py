"""Measures of how good a classifier is, computed from arrays.

Classes are numbered 0 to K-1.  Of two classes, class 1 is the positive one (spam), so a false
positive is ham called spam.  Rates are 0 to 1, not percent.  A measure that the data do not
determine (a ham rate without ham) is NaN.  Counts are whole numbers and scores are sorted, so
that ties are exact.

Arguments: y_true, (n_docs,) classes; score, (n_docs,), the higher, the likelier class 1;
confusion, (n_classes, n_answers), from `confusion_matrix`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np

from nbspam.arrays import TIED, ArrayLike, Floats, Integers

NAN = float("nan")
Interval = tuple[float, float]
N_BINS = 15
_TAIL = (1 - 0.95) / 2  # of the resamples that a 95 % interval leaves out at either end
_Z = 1.96  # standard deviations that contain 95 % of a normal distribution
HM = 0.001  # TREC's operating point: one ham in a thousand is lost


class ClassScores(NamedTuple):
    """One row of a classification report."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ClassificationReport:
    """Precision, recall and F1 of every class, and their averages."""

    classes: tuple[str, ...]
    rows: tuple[ClassScores, ...]
    accuracy: float
    macro: ClassScores
    weighted: ClassScores


class ReliabilityBins(NamedTuple):
    """Predicted probability against observed frequency, one entry per non-empty bin."""

    n_docs: Integers
    confidence: Floats  # mean predicted probability
    frequency: Floats  # share of documents for which the prediction was true


def confusion_matrix(
    y_true: Integers, y_pred: Integers, n_classes: int, n_answers: int
) -> Integers:
    """Return counts[truth, answer], shape (n_classes, n_answers).

    y_pred: (n_docs,) answers: the classes, followed by the answers that are no class (such as
    unsure).
    """
    cells = np.bincount(y_true * n_answers + y_pred, minlength=n_classes * n_answers)
    return cells.astype(np.int64, copy=False).reshape(n_classes, n_answers)


def classification_report(confusion: Integers, classes: Sequence[str]) -> ClassificationReport:
    """Return scikit-learn's classification report; like there, 0 / 0 counts as 0."""
    support, n_docs = confusion.sum(axis=1), confusion.sum()
    table = np.nan_to_num(precision_recall_f1(confusion))
    rows = tuple(ClassScores(*row) for row in zip(*table.tolist(), support.tolist(), strict=True))
    return ClassificationReport(
        classes=tuple(classes),
        rows=rows,
        accuracy=float(np.trace(confusion) / max(n_docs, 1)),
        macro=ClassScores._make([*table.mean(axis=1).tolist(), int(n_docs)]),
        weighted=ClassScores._make([*(table @ support / max(n_docs, 1)).tolist(), int(n_docs)]),
    )


def confusions(confusion: Integers) -> list[tuple[int, int, int]]:
    """Return count, class and answer of every kind of error, the most frequent first."""
    found = [
        (count, truth, answer)
        for truth, row in enumerate(confusion.tolist())
        for answer, count in enumerate(row)
        if count and truth != answer
    ]
    return sorted(found, key=lambda each: -each[0])


def mcc(confusion: Integers) -> float:
    """Return Matthews' correlation of truth and prediction, -1 to 1.

    For K classes this is R_K of Gorodkin (2004).  A constant truth or prediction gives 0.  An
    answer that is no class counts as a class that is never the truth.
    """
    truth = confusion.sum(axis=1, dtype=np.float64)
    prediction = confusion.sum(axis=0, dtype=np.float64)
    n_docs = truth.sum()
    covariance = np.trace(confusion) * n_docs - truth @ prediction[: len(truth)]
    variances = (n_docs**2 - truth @ truth) * (n_docs**2 - prediction @ prediction)
    return float(covariance / np.sqrt(variances)) if variances > 0 else 0.0


def error_rates(confusion: Integers) -> tuple[float, float]:
    """Return the shares of ham called spam (TREC's hm) and of spam called ham (sm)."""
    ham, spam = confusion
    return share(ham[1], ham.sum()), share(spam[0], spam.sum())


def lam(confusion: Integers) -> float:
    """Return the logistic average misclassification rate.

    Cormack & Lynam, TREC 2005 spam track overview: the mean of the two rates' logits, turned
    back into a rate.  Rates of 0 and 1 have no finite logit: they are moved by half a message,
    to 1 / 2n and 1 - 1 / 2n.
    """
    return float(1 / (1 + np.exp(-_logits(confusion).mean())))


def _logits(confusion: Integers) -> Floats:
    """Return the logits that `lam` averages, (2,); NaN without documents of a class."""
    half = 0.5 / np.maximum(confusion.sum(axis=1), 1)
    rates = np.clip(error_rates(confusion), half, 1 - half)
    return np.asarray(np.log(rates / (1 - rates)))


def auc(y_true: ArrayLike, score: ArrayLike) -> float:
    """Return P(a spam scores above a ham), ties counted as half; NaN with a single class.

    TREC's (1-ROCA)% is 100 * (1 - auc).
    """
    ham, spam, _ = roc_counts(y_true, score)
    return area_under(ham, spam)


def roc_counts(y_true: ArrayLike, score: ArrayLike) -> tuple[Integers, Integers, Floats]:
    """Return (ham, spam, cutoff): how many of each score at least the cutoff, highest first.

    Shapes (n_scores + 1,): a row for each distinct score, after that of no document, whose cutoff
    is infinite.  Divided by their last numbers, ham and spam are the ROC curve.  score: nats.
    """
    values = np.asarray(score, np.float64)
    # A stable sort takes one pass if the scores are sorted already, as in the bootstrap.
    order = np.argsort(-values, kind="stable")
    values, is_spam = values[order], np.asarray(y_true)[order] == 1
    last_of_ties = np.append(values[:-1] > values[1:] + TIED, True)[: len(values)]
    at = np.flatnonzero(last_of_ties)
    spam = np.append(0, np.cumsum(is_spam)[at])
    return np.append(0, at + 1) - spam, spam, np.append(np.inf, values[at])


def area_under(ham: Integers, spam: Integers) -> float:
    """Return the area under the ROC curve of `roc_counts`, 0 to 1; NaN with a single class."""
    # Twice the trapezoids, which are integers, so that their sum is exact.
    return share(np.diff(ham) @ (spam[1:] + spam[:-1]), 2 * ham[-1] * spam[-1])


def least_missed(ham: Integers, spam: Integers, hm: float) -> float:
    """Return the least share of spam missed by a cutoff that loses at most hm of the ham.

    It belongs to an actual cutoff and is not interpolated between two.
    """
    if not ham[-1] or not spam[-1]:
        return NAN
    cutoff = np.searchsorted(ham / ham[-1], hm, side="right") - 1
    return float((spam[-1] - spam[cutoff]) / spam[-1])


def reliability_bins(
    y_true: ArrayLike, probability: ArrayLike, n_bins: int = N_BINS
) -> ReliabilityBins:
    """Return predicted probability and observed frequency in bins of equal width, low first.

    Two classes: P(class 1) against the frequency of class 1, because cutoffs apply to that.
    More classes: the probability of the top class against how often it is right (Guo et al.
    2017).  Bins have equal width, as in published figures, and include their upper edge.
    """
    p, truth = columns(probability), np.asarray(y_true)
    binary = p.shape[1] == 2
    confidence = p[:, 1] if binary else p.max(axis=1)
    is_true = truth == (1 if binary else p.argmax(axis=1))
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], confidence)
    count = np.bincount(bins, minlength=n_bins)
    used = count > 0
    mean_confidence, frequency = (
        np.bincount(bins, weights=w, minlength=n_bins)[used] / count[used]
        for w in (confidence, is_true)
    )
    return ReliabilityBins(count[used].astype(np.int64), mean_confidence, frequency)


def expected_calibration_error(y_true: ArrayLike, probability: ArrayLike) -> float:
    """Return the mean of |confidence - frequency|, 0 to 1: Guo et al. (2017), eq. 3.

    Each of `reliability_bins` counts by its number of documents.  NaN if there are none.
    """
    bins = reliability_bins(y_true, probability)
    if not bins.n_docs.any():
        return NAN
    return float(np.average(np.abs(bins.confidence - bins.frequency), weights=bins.n_docs))


def columns(probability: ArrayLike) -> Floats:
    """Return probabilities (n_docs, n_classes); P(class 1) alone, (n_docs,), is completed."""
    p = np.asarray(probability, np.float64)
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def log_losses(y_true: Integers, p: Floats) -> Floats:
    """Return -log P(true class) of each document, nats, (n_docs,); their mean is the log loss.

    p: (n_docs, n_classes), clipped to 2.2e-16 from 0 and 1, as in scikit-learn, so that a single
    certain error does not make the mean infinite.
    """
    eps = np.finfo(np.float64).eps
    return -np.log(np.clip(p[np.arange(len(p)), y_true], eps, 1 - eps))


def brier_losses(y_true: Integers, p: Floats) -> Floats:
    """Return the squared distance between probability and truth of each document, (n_docs,).

    Their mean is the Brier score.  Two classes: (p - y)**2 of class 1, 0 to 1.  More classes: the
    sum over them, 0 to 2, which is Brier's definition.  scikit-learn's scale_by_half="auto"
    follows the same convention.
    """
    distance = p.copy()
    distance[np.arange(len(p)), y_true] -= 1
    squares: Floats = (distance * distance).sum(axis=1) / (2 if p.shape[1] == 2 else 1)
    return squares


def precision_recall_f1(confusion: Integers) -> Floats:
    """Return precision, recall and F1, shape (3, n_classes); 0 / 0 is NaN."""
    right, support = np.diag(confusion), confusion.sum(axis=1)
    called = confusion.sum(axis=0)[: len(confusion)]
    with np.errstate(invalid="ignore"):
        return np.stack([right / called, right / support, 2 * right / (support + called)])


def share(part: np.int64, whole: np.int64) -> float:
    """Return part / whole; 0 / 0 is NaN, because a rate among no documents is unknown."""
    return float(part / whole) if whole else NAN


# --- intervals and folds --------------------------------------------------------------------


def wilson_interval(part: ArrayLike, whole: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % intervals of the shares part / whole, within 0 and 1.

    part, whole: numbers, or arrays of one shape, which both ends have.  Wilson (1927): the shares
    of which the observed one is 1.96 standard deviations away.  Of no documents any is possible.
    """
    some, n, square = np.asarray(part), np.maximum(whole, 1), _Z**2
    centre = (some / n + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * np.sqrt(some / n * (1 - some / n) / n + (_Z / 2 / n) ** 2)
    return np.where(some > 0, centre - half, 0.0), np.where(some < whole, centre + half, 1.0)


def share_interval(part: int, whole: int) -> Interval:
    """Return the ends of the 95 % interval of one share; see `wilson_interval`."""
    low, high = wilson_interval(part, whole)
    return float(low), float(high)


def lam_interval(confusion: Integers) -> Interval:
    """Return the ends of the 95 % interval of `lam`; NaN without documents of a class.

    Zou & Donner (2008): the distances of both logits from Wilson's ends add up like variances.
    """
    logits, errors = _logits(confusion), confusion[[0, 1], [1, 0]]
    with np.errstate(divide="ignore"):  # of a rate that may be 0 or 1
        ends = [np.log(p / (1 - p)) for p in wilson_interval(errors, confusion.sum(axis=1))]
    below, above = (np.hypot(*(logits - end)) / 2 for end in ends)
    middle = logits.mean()
    return tuple((1 / (1 + np.exp([below - middle, -above - middle]))).tolist())


def class_intervals(confusion: Integers, classes: Sequence[str]) -> dict[str, list[Interval]]:
    """Return the 95 % intervals of the precision, recall and F1 of each class.

    F1 is 2 s / (1 + s) of another share: of the documents of the class or called it, s are both.
    """
    right, support = np.diag(confusion), confusion.sum(axis=1)
    called = confusion.sum(axis=0)[: len(confusion)]
    ends = np.stack(wilson_interval(right, np.stack([called, support, called + support - right])))
    ends[:, 2] = 2 * ends[:, 2] / (1 + ends[:, 2])
    return {name: [*map(tuple, ends[:, :, k].T.tolist())] for k, name in enumerate(classes)}


def bootstrap_interval(
    statistic: Callable[[Any], ArrayLike],
    documents: Any,
    rng: np.random.Generator,
    n_resamples: int = 1000,
) -> Floats:
    """Return [low, high], the 95 % percentile interval of statistic(documents).

    documents: (n_docs,), or their numbers.  If the statistic returns an array, so do low and
    high.  Resamples for which it is NaN (for example because only one class was drawn) are left
    out.  A resample keeps the order of the documents, so documents sorted by score stay sorted,
    and ranking them needs no sort.
    """
    n_docs = len(documents)
    values = []
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(n_docs, size=n_docs), minlength=n_docs)
        values.append(np.asarray(statistic(np.repeat(documents, times)), np.float64))
    with catch_warnings(action="ignore", category=RuntimeWarning):  # if all values are NaN
        return np.nanquantile(values, [_TAIL, 1 - _TAIL], axis=0)


def compare_folds(cost_a: ArrayLike, cost_b: ArrayLike) -> tuple[int, int, int]:
    """Return in how many folds A won (cost less), tied (up to rounding) and lost.

    A cost is NaN in a fold that cannot show it; if both are, the fold is tied.
    """
    a, b = np.asarray(cost_a, np.float64), np.asarray(cost_b, np.float64)
    tied = np.isclose(a, b, rtol=1e-12, atol=0, equal_nan=True)
    won = (a < b) & ~tied
    return int(won.sum()), int(tied.sum()), int(len(a) - won.sum() - tied.sum())
