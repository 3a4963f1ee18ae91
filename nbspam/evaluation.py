"""One run judged whole: every number that applies to it, and how sure each one is.

Classes, rates and costs are those of `metrics`; what the data cannot tell is None.

Secret: which numbers apply to a run, and that one set of resamples serves them all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from nbspam.errors import UsageError
from nbspam.metrics import (
    HM,
    Floats,
    Ints,
    Report,
    area_under,
    brier_losses,
    classification_report,
    columns,
    confusion_matrix,
    expected_calibration_error,
    hm_rate,
    lam,
    least_missed,
    log_losses,
    mcc,
    precision_recall_f1,
    roc_counts,
    share,
    sm_rate,
)
from nbspam.resampling import bootstrap_interval


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
        losses = {"log_loss": log_losses(truth, p), "brier": brier_losses(truth, p)}
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
            "accuracy": share(np.trace(confusion), confusion.sum()),
            "macro_f1": float(precision_recall_f1(confusion)[2].mean()),
            "mcc": mcc(confusion),
        }
        if self.n_classes == 2:
            numbers["hm_rate"] = hm_rate(confusion)
            numbers["sm_rate"] = sm_rate(confusion)
            numbers["lam"] = lam(confusion)
        if self.score is not None:
            ham, spam, _ = roc_counts(truth, self.score[rows])
            numbers["auc"] = area_under(ham, spam)
            numbers["sm_at_hm"] = least_missed(ham, spam, HM)
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
    p = columns(probability)
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
