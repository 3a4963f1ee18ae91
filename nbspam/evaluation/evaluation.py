"""Held-out answers to documents whose classes are known, and all measures of them.

A `Trial` has the answers, however they were obtained: by folds, from a stream or by a split.  Its
rule's decisions become answers that can be compared with the truth.  `evaluate` computes every
measure that applies to a run, from arrays alone; classes and rates are numbered and scaled as in
`metrics`.  One set of resamples serves all intervals but those of shares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import ArrayLike, Booleans, Floats, Integers, Keys
from nbspam.decision import Rule, conditional_risk, prior_shift
from nbspam.evaluation import metrics
from nbspam.evaluation.metrics import ClassificationReport, Interval, confusion_matrix
from nbspam.verdicts import Skipped, posterior

# --- all measures of a run ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All measures of one run; None where a measure does not apply.

    `hm_rate` to `sm_at_hm` need two classes; `auc` and `sm_at_hm` need scores; `log_loss`,
    `brier` and `calibration_error` need probabilities; `cost` needs the cost of each answer,
    `bayes_risk` the least expected cost of each.  `metrics` defines all of them: rates and scores
    are 0 to 1, `log_loss` nats, and `sm_at_hm` the spam missed where 0.1 % of the ham is lost.
    `intervals`: 95 % intervals (low, high) by the name of the measure.  `class_intervals`: of
    each class's precision, recall and F1.
    """

    confusion: Integers  # (n_classes, n_answers), see `answers`
    answers: tuple[str, ...]  # the classes, then the answers that are no class
    scores: ClassificationReport  # precision, recall and F1 of each class
    accuracy: float
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
    """Return all measures of a run, with 95 % intervals if rng is given.

    y_true, y_pred: (n_docs,) numbers of classes and answers.  other_answers: names of the
    answers numbered after the classes; they are neither right nor errors.  score: (n_docs,)
    log-odds of class 1, nats; by default P(class 1).  probability: (n_docs, n_classes),
    or (n_docs,) of class 1.  cost, risk: (n_docs,).
    """
    answers = (*classes, *other_answers)
    truth, prediction = np.asarray(y_true, np.int64), np.asarray(y_pred, np.int64)
    p = None if probability is None else metrics.columns(probability)
    losses: dict[str, Floats] = {}
    if p is not None:
        losses["log_loss"] = metrics.log_losses(truth, p)
        losses["brier"] = metrics.brier_losses(truth, p)
        score = p[:, 1] if score is None and len(classes) == 2 else score
    for name, each in (("cost", cost), ("bayes_risk", risk)):
        if each is not None:
            losses[name] = np.asarray(each, np.float64)
    ranks = None if score is None else np.asarray(score, np.float64)
    confusion = confusion_matrix(truth, prediction, len(classes), len(answers))
    is_there = confusion.sum(axis=1) > 0
    run = _Run(len(classes), len(answers), truth, prediction, ranks, losses, is_there)
    measures = run.measures(np.arange(len(truth)), confusion)
    intervals = {} if rng is None else run.intervals(rng, [*measures], confusion)
    if p is not None:
        measures["calibration_error"] = metrics.expected_calibration_error(truth, p)
    return Evaluation(
        confusion=confusion,
        answers=answers,
        scores=metrics.classification_report(confusion, classes),
        intervals=intervals,
        class_intervals={} if rng is None else metrics.class_intervals(confusion, classes),
        **{name: value for name, value in measures.items() if not np.isnan(value)},
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """A run's arrays, from which the measures of any of its rows are computed."""

    n_classes: int
    n_answers: int
    y_true: Integers
    y_pred: Integers
    score: Floats | None
    losses: Mapping[str, Floats]
    has_documents: Booleans  # (n_classes,); without any, F1 is 0 / 0 or 0, and counts as 0

    def measures(self, rows: Integers, confusion: Integers) -> dict[str, float]:
        """Return the measures of these rows that get intervals, by their names in `Evaluation`."""
        f1 = np.where(self.has_documents, metrics.precision_recall_f1(confusion)[2], 0.0)
        measures = {
            "accuracy": metrics.share(np.trace(confusion), confusion.sum()),
            "macro_f1": float(np.nanmean(f1)),
            "mcc": metrics.mcc(confusion),
        }
        if self.n_classes == 2:
            measures["hm_rate"], measures["sm_rate"] = metrics.error_rates(confusion)
            measures["lam"] = metrics.lam(confusion)
        if self.score is not None:
            ham, spam, _ = metrics.roc_counts(self.y_true[rows], self.score[rows])
            measures["auc"] = metrics.area_under(ham, spam)
            measures["sm_at_hm"] = metrics.least_missed(ham, spam, metrics.HM)
        return measures | {name: float(each[rows].mean()) for name, each in self.losses.items()}

    def intervals(
        self, rng: np.random.Generator, names: Sequence[str], confusion: Integers
    ) -> dict[str, Interval]:
        """Return the 95 % intervals of the measures that have these names.

        Shares of documents have Wilson's: to the bootstrap, what has not happened is impossible
        (E-366), so a measure that is the same in all resamples has none.  Nor has the calibration
        error: chance raises it, in a resample once more, which misses a true error near 0 (E-348).
        """
        order = np.arange(len(self.y_true)) if self.score is None else -self.score
        rows = np.argsort(order, kind="stable")

        def statistic(rows: Integers) -> Floats:
            truth, answers = self.y_true[rows], self.y_pred[rows]
            found = confusion_matrix(truth, answers, self.n_classes, self.n_answers)
            return np.array([*self.measures(rows, found).values()])

        bounds = zip(*metrics.bootstrap_interval(statistic, rows, rng).tolist(), strict=True)
        shares = {"accuracy": (np.trace(confusion), confusion.sum())}
        if self.n_classes == 2:
            ham, spam = confusion
            shares |= {"hm_rate": (ham[1], ham.sum()), "sm_rate": (spam[0], spam.sum())}
        own = {name: metrics.share_interval(*each) for name, each in shares.items() if each[1]}
        if self.n_classes == 2:
            own["lam"] = metrics.lam_interval(confusion)
        found = dict(zip(names, bounds, strict=True)) | own
        # NaN is not below NaN, nor an end below the other where no resample differs.
        return {name: ends for name, ends in found.items() if ends[0] < ends[1]}


# --- a trial ------------------------------------------------------------------------------


class SmallerModelResult(NamedTuple):
    """Answers to the same documents by models that had learned from fewer documents."""

    n_learned: int  # documents that each model had learned from
    joint: Floats  # (n_docs, n_classes) log P(class, document), nats


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The true classes of documents, and a model's answers, in the order of the documents."""

    classes: tuple[str, ...]
    y: Integers  # (n_docs,) index into classes
    joint: Floats  # (n_docs, n_classes) log P(class, document), nats
    rule: Rule  # turns probabilities into decisions
    fold: Integers  # (n_docs,) the fold, or the stretch of a stream, that a document belongs to
    prior: Floats  # (n_classes,) the shares of the classes that the answers assume
    names: tuple[str, ...] = ()  # (n_docs,)
    noun: str = "messages"  # the documents' name, in the plural
    # (n_docs,) of a stream, in its order: whether the document was learned once it was answered
    learned: Booleans | None = None
    order: str | None = None  # of a stream, one of `sources.arrival.ORDERS`
    has_costs: bool = False  # the rule's costs were stated
    n_learned: int = 0  # documents that each model had learned from; 0: not known
    smaller: tuple[SmallerModelResult, ...] = ()  # for a learning curve
    skipped: tuple[Skipped, ...] = ()  # inputs left out: unreadable, or without a known label
    is_known: Booleans | None = None  # (n_docs,) whether the model had learned each document
    digests: Keys | None = None  # (n_docs,) copies of a message have the same; None: no copies

    @property
    def n_known(self) -> int:
        """The number of documents that the model had learned."""
        return 0 if self.is_known is None else int(self.is_known.sum())

    @property
    def accuracy_of_unknown(self) -> float | None:
        """The share of right answers to documents that the model had not learned, 0 to 1.

        None if it had learned all, or nobody knows which.
        """
        if self.is_known is None or self.is_known.all():
            return None
        return float((self.answers()[0] == self.y)[~self.is_known].mean())

    @property
    def probability(self) -> Floats:
        """P(class given document), shape (n_docs, n_classes)."""
        return posterior(self.joint)

    @property
    def score(self) -> Floats | None:
        """The log-odds of class 1, nats, (n_docs,); None unless there are two classes.

        Unlike probabilities, which round to 0 and 1, they rank all documents.
        """
        return self.joint[:, 1] - self.joint[:, 0] if len(self.classes) == 2 else None

    @property
    def actions(self) -> Integers:
        """The rule's decision on each document: index into the rule's actions, (n_docs,)."""
        index = {name: k for k, name in enumerate(self.rule.actions)}
        return np.array([index[name] for name in self.rule.labels(self.probability)], np.int64)

    @property
    def cost(self) -> Floats:
        """The cost of each decision, by the rule's loss, shape (n_docs,)."""
        return np.asarray(self.rule.loss[self.y, self.actions])

    @property
    def risk(self) -> Floats:
        """The least expected cost of any action, by the probabilities, shape (n_docs,)."""
        return np.asarray(conditional_risk(self.probability, self.rule.loss).min(axis=1))

    def answers(self) -> tuple[Integers, tuple[str, ...]]:
        """Return each document's answer (n_docs,), and the names of all answers.

        Answers are numbered like the classes, followed by actions that are no class.  If the
        rule has no action for some class, its actions do not name classes: then a document's
        answer is its most probable class.
        """
        actions = self.rule.actions
        if not set(self.classes) <= set(actions):
            return self.probability.argmax(axis=1), self.classes
        names = (*self.classes, *(name for name in actions if name not in self.classes))
        return np.array([names.index(name) for name in actions])[self.actions], names

    @property
    def is_wrong(self) -> Booleans:
        """Whether each answer is a wrong class, (n_docs,); unsure, for example, is no class."""
        answers, _ = self.answers()
        return np.asarray((answers != self.y) & (answers < len(self.classes)))

    def wrong_rows(self) -> Integers:
        """Return the rows of the wrong answers, the most probable first.

        Answers that are equally probable to the last bit are ordered by how unlikely the true
        class is.
        """
        answers, _ = self.answers()
        rows = np.flatnonzero(self.is_wrong)
        wrong, right = answers[rows], self.y[rows]
        probability = self.probability[rows, wrong]
        joint = np.maximum(self.joint, np.finfo(np.float64).min)  # both may be impossible, -inf
        lead = joint[rows, wrong] - joint[rows, right]
        return rows[np.lexsort((-lead, -probability))]

    def mistakes(self) -> list[tuple[str, ...]]:
        """Return answer, true class, the answer's probability, and name of each wrong answer.

        They are printed so, in the order of `wrong_rows`.
        """
        answers, names = self.answers()
        probability = self.probability
        return [
            (
                names[answers[row]],
                self.classes[self.y[row]],
                f"{probability[row, answers[row]]:.6f}",
                self.names[row],
            )
            for row in self.wrong_rows().tolist()
        ]


def trial_under_prior(trial: Trial, new: Floats) -> Trial:
    """Return the trial as if the classes were known to have these shares, (n_classes,)."""
    shift = prior_shift(trial.prior, new)
    smaller = tuple(SmallerModelResult(n, joint + shift) for n, joint in trial.smaller)
    return replace(trial, joint=trial.joint + shift, prior=new, smaller=smaller)


def evaluation_of(trial: Trial, seed: int | None = None) -> Evaluation:
    """Return all measures of a trial; seed: of bootstrap intervals, None leaves them out."""
    answers, names = trial.answers()
    return evaluate(
        trial.y,
        answers,
        trial.classes,
        other_answers=names[len(trial.classes) :],
        score=trial.score,
        probability=trial.probability,
        cost=trial.cost,
        risk=trial.risk if trial.has_costs else None,
        rng=None if seed is None else np.random.default_rng(seed),
    )
