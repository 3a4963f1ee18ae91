"""Numbers that say how good a classifier is, from arrays alone.

Classes are whole numbers 0 to K-1.  With two of them class 1 is the positive one,
spam, so that a false positive is ham called spam.  Rates are 0 to 1, not percent.
What the data cannot tell (a ham rate without ham) is NaN, and None in `Evaluation`.

Secret: every number comes from whole counts or sorted scores, so ties are exact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbspam.errors import UsageError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NAN = float("nan")
N_BINS = 15
# TREC's operating point: one ham in a thousand lost.
HM = 0.001


class Scores(NamedTuple):
    """One row of a classification report."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Report:
    """Precision, recall and F1 of every class, and their averages."""

    classes: tuple[str, ...]
    rows: tuple[Scores, ...]
    accuracy: float
    macro: Scores
    weighted: Scores


class ReliabilityBins(NamedTuple):
    """What was promised and what came true, one entry per bin that is not empty."""

    n_docs: Ints
    confidence: Floats
    frequency: Floats


def confusion_matrix(y_true: ArrayLike, y_pred: ArrayLike, n_classes: int) -> Ints:
    """Return counts[truth, prediction], shape (n_classes, n_classes)."""
    truth, prediction = np.asarray(y_true, np.int64), np.asarray(y_pred, np.int64)
    if truth.shape != prediction.shape or truth.ndim != 1:
        raise UsageError(
            f"confusion matrix: {truth.shape} true and {prediction.shape} predicted labels; "
            "give one of each per document"
        )
    for labels in (truth, prediction):
        if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
            raise UsageError(
                f"confusion matrix: labels {labels.min()} to {labels.max()}; "
                f"number {n_classes} classes from 0"
            )
    cells = np.bincount(truth * n_classes + prediction, minlength=n_classes**2)
    return cells.astype(np.int64, copy=False).reshape(n_classes, n_classes)


def classification_report(confusion: Ints, classes: Sequence[str]) -> Report:
    """Return scikit-learn's classification report; 0 / 0 counts as 0, as it does there."""
    support, n_docs = confusion.sum(axis=1), confusion.sum()
    table = _precision_recall_f1(confusion)
    rows = tuple(Scores(*row) for row in zip(*table.tolist(), support.tolist(), strict=True))
    p, r, f1 = table.mean(axis=1).tolist()
    weighted_p, weighted_r, weighted_f1 = _ratio((table * support).sum(axis=1), n_docs).tolist()
    return Report(
        classes=tuple(classes),
        rows=rows,
        accuracy=float(_ratio(np.trace(confusion), n_docs)),
        macro=Scores(p, r, f1, int(n_docs)),
        weighted=Scores(weighted_p, weighted_r, weighted_f1, int(n_docs)),
    )


def mcc(confusion: Ints) -> float:
    """Return Matthews' correlation of truth and prediction, -1 to 1.

    For K classes Gorodkin (2004), R_K.  A constant truth or prediction gives 0.
    """
    truth = confusion.sum(axis=1, dtype=np.float64)
    prediction = confusion.sum(axis=0, dtype=np.float64)
    n_docs = truth.sum()
    covariance = np.trace(confusion) * n_docs - truth @ prediction
    variances = (n_docs**2 - truth @ truth) * (n_docs**2 - prediction @ prediction)
    return float(covariance / np.sqrt(variances)) if variances > 0 else 0.0


def hm_rate(confusion: Ints) -> float:
    """Return the share of ham called spam, the false positive rate."""
    return _rate(confusion[0, 1], confusion[0].sum())


def sm_rate(confusion: Ints) -> float:
    """Return the share of spam called ham, the false negative rate."""
    return _rate(confusion[1, 0], confusion[1].sum())


def lam(confusion: Ints) -> float:
    """Return the logistic average misclassification rate.

    Cormack & Lynam, TREC 2005 spam track overview: the mean of the two rates in
    logits.  No error, or nothing but errors, has no logit: such a rate is moved by
    half a message, to 1 / 2n or 1 - 1 / 2n.
    """
    logits = []
    for rate, n_docs in zip(
        (hm_rate(confusion), sm_rate(confusion)), confusion.sum(axis=1), strict=True
    ):
        if not n_docs:
            return NAN
        half = 0.5 / n_docs
        rate = min(max(rate, half), 1 - half)
        logits.append(np.log(rate / (1 - rate)))
    return float(1 / (1 + np.exp(-sum(logits) / 2)))


def expected_cost(y_true: ArrayLike, action: ArrayLike, loss: ArrayLike) -> float:
    """Return the mean of loss[truth, action]; actions may outnumber the classes."""
    losses = np.asarray(loss, np.float64)
    return float(losses[np.asarray(y_true), np.asarray(action)].mean())


def roc_curve(y_true: ArrayLike, score: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return (hm_rate, share of spam caught, cutoff) at every distinct score.

    Spam is what scores at least the cutoff; the first, infinite, catches nothing.
    """
    ham, spam, cutoffs = _roc_counts(y_true, score)
    with np.errstate(invalid="ignore"):
        return ham / ham[-1], spam / spam[-1], cutoffs


def auc(y_true: ArrayLike, score: ArrayLike) -> float:
    """Return P(a spam scores above a ham), ties counting half; NaN for one class only.

    TREC's (1-ROCA)% is 100 * (1 - auc).
    """
    ham, spam, _ = _roc_counts(y_true, score)
    return _area(ham, spam)


def sm_at_hm(y_true: ArrayLike, score: ArrayLike, hm: float = HM) -> float:
    """Return the least share of spam missed by a cutoff that loses at most hm of the ham.

    A real cutoff, not a point interpolated between two of them.
    """
    ham, spam, _ = _roc_counts(y_true, score)
    return _least_missed(ham, spam, hm)


def _roc_counts(y_true: ArrayLike, score: ArrayLike) -> tuple[Ints, Ints, Floats]:
    """Return (ham, spam, cutoff): how many score at least each cutoff, highest first."""
    values = np.asarray(score, np.float64)
    # Stable, because that is one pass over scores which are sorted already (bootstrap).
    order = np.argsort(-values, kind="stable")
    values, is_spam = values[order], np.asarray(y_true)[order] == 1
    last_of_ties = np.append(values[1:] != values[:-1], True)[: len(values)]
    at = np.flatnonzero(last_of_ties)
    spam = np.append(0, np.cumsum(is_spam)[at])
    return np.append(0, at + 1) - spam, spam, np.append(np.inf, values[at])


def _area(ham: Ints, spam: Ints) -> float:
    # Trapezoids, doubled so that they are whole numbers and their sum is exact.
    return _rate(np.diff(ham) @ (spam[1:] + spam[:-1]), 2 * ham[-1] * spam[-1])


def _least_missed(ham: Ints, spam: Ints, hm: float) -> float:
    if not ham[-1] or not spam[-1]:
        return NAN
    cutoff = np.searchsorted(ham / ham[-1], hm, side="right") - 1
    return float((spam[-1] - spam[cutoff]) / spam[-1])


def log_loss(y_true: ArrayLike, probability: ArrayLike) -> float:
    """Return minus the mean log-probability of the truth, in nats.

    probability: (n_docs, n_classes), or (n_docs,) for class 1 of two; clipped to
    2.2e-16 from 0 and 1, as scikit-learn does, so that one certain error is not infinite.
    """
    return float(_log_losses(np.asarray(y_true), _columns(probability)).mean())


def brier(y_true: ArrayLike, probability: ArrayLike) -> float:
    """Return the mean squared distance of probability and truth.

    Two classes: (p - y)**2 of class 1, 0 to 1.  More: summed over the classes, 0 to
    2 (Brier's own).  scikit-learn's scale_by_half="auto" is the same convention.
    """
    return float(_brier_losses(np.asarray(y_true), _columns(probability)).mean())


def reliability_bins(
    y_true: ArrayLike, probability: ArrayLike, n_bins: int = N_BINS
) -> ReliabilityBins:
    """Return mean promise and frequency of truth in bins of equal width, low first.

    Two classes: P(class 1) against class 1, which is what a cutoff sees.  More: the
    top class's probability against whether it was right (Guo et al. 2017).  Equal
    width, because that is what published figures use; a bin holds its upper edge.
    """
    p, truth = _columns(probability), np.asarray(y_true)
    binary = p.shape[1] == 2
    confidence = p[:, 1] if binary else p.max(axis=1)
    hit = truth == (1 if binary else p.argmax(axis=1))
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], confidence)
    count = np.bincount(bins, minlength=n_bins)
    used = count > 0
    promised, came_true = (
        np.bincount(bins, weights=w, minlength=n_bins)[used] / count[used]
        for w in (confidence, hit)
    )
    return ReliabilityBins(count[used].astype(np.int64), promised, came_true)


def expected_calibration_error(
    y_true: ArrayLike, probability: ArrayLike, n_bins: int = N_BINS
) -> float:
    """Return the mean distance of promise and truth over `reliability_bins`, 0 to 1."""
    bins = reliability_bins(y_true, probability, n_bins)
    return float(np.average(np.abs(bins.confidence - bins.frequency), weights=bins.n_docs))


def bootstrap_interval(
    statistic: Callable[..., ArrayLike],
    arrays: Sequence[NDArray[np.generic]],
    rng: np.random.Generator,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> Floats:
    """Return [low, high], the percentile interval of statistic(*arrays) over documents.

    A statistic that returns an array gets [lows, highs].  Resamples in which it is
    NaN (one class only) are left out.  A resample keeps the documents' order, so
    arrays sorted by score stay sorted, and ranking one costs a pass, not a sort.
    """
    n_docs = len(arrays[0])
    values = []
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(n_docs, size=n_docs), minlength=n_docs)
        rows = np.repeat(np.arange(n_docs), times)
        values.append(np.asarray(statistic(*(array[rows] for array in arrays)), np.float64))
    tail = (1 - level) / 2
    return np.apply_along_axis(_quantiles, 0, np.stack(values), [tail, 1 - tail])


def stratified_folds(
    y: ArrayLike, k: int, rng: np.random.Generator | np.random.RandomState
) -> Ints:
    """Return the fold, 0 to k-1, of each document: equal within one, class by class too.

    Documents in class order are dealt round the folds, then shuffled within the class.
    RandomState(seed) gives the folds of scikit-learn's StratifiedKFold(k, shuffle=True,
    random_state=seed); there a class smaller than k is an error or warning, here not.
    """
    labels = np.asarray(y)
    if not 2 <= k <= len(labels):
        raise UsageError(f"folds: {k} folds of {len(labels)} documents; give 2 to {len(labels)}")
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    folds = np.empty(len(labels), np.int64)
    dealt = 0
    for c in np.argsort(first):
        members = np.flatnonzero(label == c)
        hands = np.sort(np.arange(dealt, dealt + len(members)) % k)
        rng.shuffle(hands)
        folds[members] = hands
        dealt += len(members)
    return folds


def compare_folds(cost_a: ArrayLike, cost_b: ArrayLike) -> tuple[int, int, int]:
    """Return in how many folds A won (cost less), tied within rounding, and lost."""
    a, b = np.asarray(cost_a, np.float64), np.asarray(cost_b, np.float64)
    tied = np.isclose(a, b, rtol=1e-12, atol=0)
    won = (a < b) & ~tied
    return int(won.sum()), int(tied.sum()), int(len(a) - won.sum() - tied.sum())


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every number of one run; None where it does not apply.

    `hm_rate` to `sm_at_hm` need two classes, `auc` and `sm_at_hm` scores, the next
    three probabilities, `cost` a loss matrix; `intervals` holds (low, high) at 95 %.
    """

    confusion: Ints
    report: Report
    accuracy: float | None = None
    macro_f1: float | None = None
    mcc: float | None = None
    hm_rate: float | None = None
    sm_rate: float | None = None
    lam: float | None = None
    auc: float | None = None
    sm_at_hm: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    calibration_error: float | None = None
    cost: float | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def n_docs(self) -> int:
        """Return how many documents were judged."""
        return int(self.confusion.sum())

    @property
    def errors(self) -> int:
        """Return how many of them were judged wrongly."""
        return int(self.confusion.sum() - np.trace(self.confusion))


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    classes: Sequence[str],
    *,
    score: ArrayLike | None = None,
    probability: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Evaluation:
    """Return all the numbers of a run; with rng, bootstrap intervals too.

    score: (n_docs,), higher is likelier class 1; P(class 1) unless given.
    probability: (n_docs, n_classes), or (n_docs,) of class 1.  loss[truth, prediction].
    """
    confusion = confusion_matrix(y_true, y_pred, len(classes))
    truth, prediction = np.asarray(y_true, np.int64), np.asarray(y_pred, np.int64)
    if not len(truth):
        raise UsageError("evaluation: no documents; give some that carry a label")
    losses: dict[str, Floats] = {}
    if probability is not None:
        p = _checked_probability(probability, confusion)
        losses = {"log_loss": _log_losses(truth, p), "brier": _brier_losses(truth, p)}
        score = p[:, 1] if score is None and len(classes) == 2 else score
    if loss is not None:
        losses["cost"] = _checked_loss(loss, len(classes))[truth, prediction]
    ranks = None if score is None else _checked_score(score, confusion)

    run = _Run(len(classes), truth, prediction, ranks, losses)
    numbers = run.numbers(np.arange(len(truth)))
    if probability is not None:
        # It gets no interval: resampling biases it upwards, past the number itself.
        numbers["calibration_error"] = expected_calibration_error(truth, p)
    return Evaluation(
        confusion=confusion,
        report=classification_report(confusion, classes),
        intervals={} if rng is None else run.intervals(rng),
        **{name: value for name, value in numbers.items() if not np.isnan(value)},
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """What the numbers of any rows of a run are computed from."""

    n_classes: int
    y_true: Ints
    y_pred: Ints
    score: Floats | None
    losses: Mapping[str, Floats]

    def numbers(self, rows: Ints) -> dict[str, float]:
        """Return the numbers that apply to these rows, by their names in `Evaluation`."""
        truth = self.y_true[rows]
        confusion = confusion_matrix(truth, self.y_pred[rows], self.n_classes)
        numbers = {
            "accuracy": _rate(np.trace(confusion), confusion.sum()),
            "macro_f1": float(_precision_recall_f1(confusion)[2].mean()),
            "mcc": mcc(confusion),
        }
        if self.n_classes == 2:
            numbers["hm_rate"] = hm_rate(confusion)
            numbers["sm_rate"] = sm_rate(confusion)
            numbers["lam"] = lam(confusion)
        if self.score is not None:
            ham, spam, _ = _roc_counts(truth, self.score[rows])
            numbers["auc"] = _area(ham, spam)
            numbers["sm_at_hm"] = _least_missed(ham, spam, HM)
        return numbers | {name: float(each[rows].mean()) for name, each in self.losses.items()}

    def intervals(self, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
        """Return the 95 % interval of each number, all from the same resamples."""
        rows = np.arange(len(self.y_true))
        if self.score is not None:
            rows = np.argsort(-self.score, kind="stable")
        low, high = bootstrap_interval(lambda rows: [*self.numbers(rows).values()], (rows,), rng)
        bounds = zip(self.numbers(rows), low.tolist(), high.tolist(), strict=True)
        return {name: (a, b) for name, a, b in bounds if not np.isnan(a)}


def _checked_score(score: ArrayLike, confusion: Ints) -> Floats:
    values = np.asarray(score, np.float64)
    if len(confusion) != 2:
        raise UsageError(
            f"evaluation: a score ranks two classes, not {len(confusion)}; leave it out"
        )
    if values.shape != (confusion.sum(),) or np.isnan(values).any():
        raise UsageError(f"evaluation: scores {values.shape}; give one a document, none NaN")
    return values


def _checked_probability(probability: ArrayLike, confusion: Ints) -> Floats:
    p = _columns(probability)
    if p.shape != (confusion.sum(), len(confusion)):
        raise UsageError(
            f"evaluation: probabilities {p.shape}; give a row a document, a column a class"
        )
    # Not `p.min() < 0 or ...`: NaN must fail too.
    if not (p.min() >= 0 and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-6)):
        raise UsageError("evaluation: probabilities not 0 to 1, or not of sum 1; normalise them")
    return p


def _checked_loss(loss: ArrayLike, n_classes: int) -> Floats:
    losses = np.asarray(loss, np.float64)
    if losses.shape != (n_classes, n_classes) or not np.isfinite(losses).all():
        raise UsageError(
            f"evaluation: losses {losses.shape}; give a finite loss[truth, prediction]"
        )
    return losses


def _columns(probability: ArrayLike) -> Floats:
    """Return probabilities with a column per class; one of class 1 gets its complement."""
    p = np.asarray(probability, np.float64)
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def _log_losses(y_true: Ints, p: Floats) -> Floats:
    eps = np.finfo(np.float64).eps
    return -np.log(np.clip(p[np.arange(len(p)), y_true], eps, 1 - eps))


def _brier_losses(y_true: Ints, p: Floats) -> Floats:
    distance = p.copy()
    distance[np.arange(len(p)), y_true] -= 1
    squares: Floats = (distance * distance).sum(axis=1) / (2 if p.shape[1] == 2 else 1)
    return squares


def _precision_recall_f1(confusion: Ints) -> Floats:
    """Return precision, recall and F1, shape (3, n_classes)."""
    right, support, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    return np.stack(
        [_ratio(right, called), _ratio(right, support), _ratio(2 * right, support + called)]
    )


def _ratio(part: Ints | Floats | np.int64, whole: Ints | np.int64) -> Floats:
    """Return part / whole, with 0 / 0 as 0."""
    return np.asarray(part, np.float64) / np.maximum(whole, 1)


def _rate(part: np.int64, whole: np.int64) -> float:
    """Return part / whole, with 0 / 0 as NaN: a rate among none is unknown."""
    return float(part / whole) if whole else NAN


def _quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Return the quantiles of the values that are not NaN; NaN if none is left."""
    known = values[~np.isnan(values)]
    return np.quantile(known, levels) if len(known) else np.full(len(levels), NAN)
