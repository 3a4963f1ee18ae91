"""All measures of one run of a classifier, with confidence intervals.

Classes and rates are numbered and scaled as in `metrics`.  A measure that does not apply, or
that the data do not determine, is None.

Secret: which measures apply to a run, and that one set of resamples serves all intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nbspam.arrays import ArrayLike, Floats, Integers
from nbspam.counts.folds import bootstrap_interval
from nbspam.errors import UsageError
from nbspam.evaluation.metrics import (
    HM,
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

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All measures of one run; None where a measure does not apply.

    `hm_rate` to `sm_at_hm` need two classes; `auc` and `sm_at_hm` need scores; `log_loss`,
    `brier` and `calibration_error` need probabilities; `cost` needs the cost of each answer,
    `bayes_risk` the least expected cost of each.
    `intervals`: 95 % intervals (low, high) by the name of the measure.  `class_intervals`: of
    each class's precision, recall and F1.
    """

    confusion: Integers  # (n_classes, n_answers), see `answers`
    answers: tuple[str, ...]  # the classes, then the answers that are no class
    scores: Report  # precision, recall and F1 of each class
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
    bayes_risk: float | None = None  # the mean of the least risks
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    class_intervals: Mapping[str, Sequence[Interval]] = field(default_factory=dict)

    @property
    def n_docs(self) -> int:
        """The number of documents judged."""
        return int(self.confusion.sum())

    @property
    def errors(self) -> int:
        """The number of documents that were given a wrong class."""
        return int(self.confusion[:, : len(self.confusion)].sum() - np.trace(self.confusion))

    @property
    def undecided(self) -> int:
        """The number of documents that were given no class (unsure)."""
        return int(self.confusion[:, len(self.confusion) :].sum())


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    classes: Sequence[str],
    *,
    other_answers: Sequence[str] = (),
    score: ArrayLike | None = None,
    probability: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    risk: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Evaluation:
    """Return all measures of a run, with bootstrap intervals if rng is given.

    y_true, y_pred: (n_docs,) numbers of classes and answers.  other_answers: names of the
    answers numbered after the classes; they are neither right nor errors.  score: (n_docs,),
    the higher, the likelier class 1; by default P(class 1).  probability: (n_docs, n_classes),
    or (n_docs,) of class 1.  cost, risk: (n_docs,).  Raises UsageError if shapes or values do
    not fit.
    """
    answers = (*classes, *other_answers)
    confusion = confusion_matrix(y_true, y_pred, len(classes), len(answers))
    if not confusion.sum():
        raise UsageError("evaluation: no documents; give some that carry a label")
    run = _checked_run(y_true, y_pred, confusion, score, probability, cost, risk)
    measures = run.measures(np.arange(len(run.y_true)))
    intervals, class_intervals = ({}, {}) if rng is None else run.intervals(rng, classes)
    return Evaluation(
        confusion=confusion,
        answers=answers,
        scores=classification_report(confusion, classes),
        intervals=intervals,
        class_intervals=class_intervals,
        **{name: value for name, value in measures.items() if not np.isnan(value)},
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """A run's checked arrays, from which the measures of any of its rows are computed."""

    n_classes: int
    n_answers: int
    y_true: Integers
    y_pred: Integers
    score: Floats | None
    probability: Floats | None
    losses: Mapping[str, Floats]

    def confusion(self, rows: Integers) -> Integers:
        """Return the confusion matrix of these rows."""
        return confusion_matrix(
            self.y_true[rows], self.y_pred[rows], self.n_classes, self.n_answers
        )

    def measures(self, rows: Integers) -> dict[str, float]:
        """Return the measures that apply to these rows, by their names in `Evaluation`."""
        truth, confusion = self.y_true[rows], self.confusion(rows)
        measures = {
            "accuracy": share(np.trace(confusion), confusion.sum()),
            "macro_f1": float(precision_recall_f1(confusion)[2].mean()),
            "mcc": mcc(confusion),
        }
        if self.n_classes == 2:
            measures["hm_rate"] = hm_rate(confusion)
            measures["sm_rate"] = sm_rate(confusion)
            measures["lam"] = lam(confusion)
        if self.score is not None:
            ham, spam, _ = roc_counts(truth, self.score[rows])
            measures["auc"] = area_under(ham, spam)
            measures["sm_at_hm"] = least_missed(ham, spam, HM)
        if self.probability is not None:
            error = expected_calibration_error(truth, self.probability[rows])
            measures["calibration_error"] = error
        return measures | {name: float(each[rows].mean()) for name, each in self.losses.items()}

    def intervals(
        self, rng: np.random.Generator, classes: Sequence[str]
    ) -> tuple[dict[str, Interval], dict[str, list[Interval]]]:
        """Return the 95 % intervals of the measures, and of each class's precision to F1.

        All come from the same resamples.
        """
        rows = np.arange(len(self.y_true))
        if self.score is not None:
            rows = np.argsort(-self.score, kind="stable")

        def statistic(rows: Integers) -> Floats:
            by_class = precision_recall_f1(self.confusion(rows)).T.ravel()
            return np.append([*self.measures(rows).values()], by_class)

        low, high = bootstrap_interval(statistic, (rows,), rng)
        here = self.measures(rows)
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        found = {
            name: bound
            for name, bound in zip(here, bounds, strict=False)
            if not np.isnan(bound[0])
        }
        if "calibration_error" in found:
            found["calibration_error"] = _turned(
                here["calibration_error"], found["calibration_error"]
            )
        rest = bounds[len(here) :]
        return found, {name: rest[3 * k : 3 * k + 3] for k, name in enumerate(classes)}


def _checked_run(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confusion: Integers,
    score: ArrayLike | None,
    probability: ArrayLike | None,
    cost: ArrayLike | None,
    risk: ArrayLike | None,
) -> _Run:
    """Return the run of these arrays, see `evaluate`; raises UsageError."""
    truth, prediction = np.asarray(y_true, np.int64), np.asarray(y_pred, np.int64)
    n_classes, n_answers = confusion.shape
    losses: dict[str, Floats] = {}
    p = None if probability is None else _checked_probability(probability, confusion)
    if p is not None:
        losses = {"log_loss": log_losses(truth, p), "brier": brier_losses(truth, p)}
        score = p[:, 1] if score is None and n_classes == 2 else score
    if cost is not None:
        losses["cost"] = _checked_cost(cost, len(truth))
    if risk is not None:
        losses["bayes_risk"] = _checked_cost(risk, len(truth))
    checked_score = None if score is None else _checked_score(score, confusion)
    return _Run(n_classes, n_answers, truth, prediction, checked_score, p, losses)


def _turned(value: float, bound: Interval) -> Interval:
    """Return the basic bootstrap interval that belongs to a percentile interval, at least 0.

    A resample's calibration error is biased upwards from the sample's, just as the sample's is
    from the true one.  So the interval is reflected about the value, and may not contain it.
    """
    low, high = bound
    return max(2 * value - high, 0.0), max(2 * value - low, 0.0)


def _checked_score(score: ArrayLike, confusion: Integers) -> Floats:
    values = np.asarray(score, np.float64)
    if len(confusion) != 2:
        raise UsageError(
            f"evaluation: a score ranks two classes, not {len(confusion)}; leave it out"
        )
    if values.shape != (confusion.sum(),) or np.isnan(values).any():
        raise UsageError(
            f"evaluation: scores {values.shape}; give one per document, none of them NaN"
        )
    return values


def _checked_probability(probability: ArrayLike, confusion: Integers) -> Floats:
    p = columns(probability)
    if p.shape != (confusion.sum(), len(confusion)):
        raise UsageError(
            f"evaluation: probabilities {p.shape}; give a row per document, a column per class"
        )
    # Written so that NaN fails too: `p.min() < 0 or ...` would let it pass.
    if not (p.min() >= 0 and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-6)):
        raise UsageError(
            "evaluation: probabilities not 0 to 1, or not adding up to 1; normalise them"
        )
    return p


def _checked_cost(cost: ArrayLike, n_docs: int) -> Floats:
    costs = np.asarray(cost, np.float64)
    if costs.shape != (n_docs,) or not np.isfinite(costs).all():
        raise UsageError(f"evaluation: costs {costs.shape}; give a finite one per document")
    return costs
