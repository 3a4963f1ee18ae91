"""The report on an evaluation: what a page says of a trial, from the plainest to the finest.

Secret: the order in which a reader who has never met a ROC curve is told how good a filter is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Integers
from nbspam.decision import Cutoffs, zero_one_loss
from nbspam.evaluation.doubts import leads, noise_of, wrong_probability
from nbspam.evaluation.pages import figures
from nbspam.evaluation.pages.cases import Case, case_of, unexplained
from nbspam.evaluation.pages.rendering import render
from nbspam.evaluation.pictures.curves import Views, views_of, wilson_interval
from nbspam.evaluation.report import is_mail, trial_text
from nbspam.evaluation.trial import Trial
from nbspam.evaluation.tuning import TradeOff, trade_offs
from nbspam.evaluation.witness import Witness
from nbspam.sources.order import ORDERS
from nbspam.verdicts import Verdict

PER_WEEK = 1_000  # messages, where nobody says how many come in a week
N_CASES = 20  # wrong answers that are shown with their texts
N_LISTED = 200  # further ones that are listed
N_MATRIX = 30  # classes, with more of which only the most frequent confusions are shown
N_CONFUSIONS = 20
_OFTEN = 3  # times that a class gets the same wrong answer
_FINE = 1_000  # of hams: so few of them are lost that a hundred would not show it


class Rate(NamedTuple):
    """A share of documents, with its 95 % interval."""

    part: int
    whole: int
    scale: int  # of so many documents ...
    value: float  # ... so many
    low: float
    high: float


class Cutoff(NamedTuple):
    """What a cutoff would cost on the documents of the trial."""

    spam: float
    lost: Rate  # documents of the first class called the second
    missed: Rate
    unsure: int
    cost: float
    is_now: bool


class Week(NamedTuple):
    """What comes and goes wrong among so many messages."""

    n_docs: int
    first: float  # documents of the first class, of two
    second: float
    lost: float
    missed: float
    unsure: float
    wrong: float


class ClassScore(NamedTuple):
    """How one class of many fares."""

    name: str
    found: Rate  # of a hundred documents of the class
    right: Rate | None  # of a hundred answers of this name; None if there is none


def rate_of(part: int, whole: int, scale: int) -> Rate | None:
    """Return how many of `scale` a share is; None of no documents, of which nothing is known."""
    if not whole:
        return None
    low, high = wilson_interval(np.array([part]), np.array([whole]))
    return Rate(
        part, whole, scale, scale * part / whole, scale * float(low[0]), scale * float(high[0])
    )


def quality_page(
    trial: Trial,
    witness: Witness,
    what: str = "",
    per_week: int | None = None,
    seed: int | None = None,
) -> str:
    """Return the page of a trial.

    what: was judged, for the head.  per_week: how many messages come in a week; None: a thousand
    are taken as an example.  seed: of bootstrap intervals of all measures; None leaves them out.
    """
    views = views_of(trial)
    confusion = views.confusion
    wrong = trial.wrong_rows()
    return render(
        "quality.html",
        trial=trial,
        what=what,
        is_mail=is_mail(trial.classes, trial.noun),
        order=ORDERS[trial.order] if trial.order else None,
        n_docs=views.n_docs,
        n_folds=len(np.unique(trial.fold)),
        n_of_class=confusion.sum(axis=1).tolist(),
        right=rate_of(int(np.trace(confusion)), views.n_docs, 100),
        **headline(confusion),
        week=week_of(confusion, per_week or PER_WEEK),
        is_stated=per_week is not None,
        cutoffs=_cutoffs(trial, views) if len(trial.classes) == 2 else [],
        rule=trial.rule,
        views=views,
        **drawn(views),
        by_class=_by_class(views) if len(trial.classes) != 2 else [],
        matrix=_matrix(views) if 2 < len(trial.classes) <= N_MATRIX else [],
        confused=_confused(views) if len(trial.classes) > 2 else [],
        words=witness.words,
        n_wrong=len(wrong),
        cases=list(_cases(trial, witness, wrong[:N_CASES], confusion)),
        listed=[each.row() for each in trial.mistakes()[N_CASES:][:N_LISTED]],
        n_unlisted=max(len(wrong) - N_CASES - N_LISTED, 0),
        skipped=trial.skipped,
        measures=trial_text(trial, seed),
    )


def headline(confusion: Integers) -> dict[str, Rate | None]:
    """Return what is caught, missed and lost of two classes, as values of a page."""
    if len(confusion) != 2:
        return dict.fromkeys(("caught", "missed", "lost", "unsure"))
    first, second = confusion.sum(axis=1).tolist()
    (_, lost), (missed, caught) = confusion[:, :2].tolist()
    return {
        "caught": rate_of(caught, second, 100),
        "missed": rate_of(missed, second, 100),
        "lost": rate_of(lost, first, _FINE),
        "unsure": rate_of(int(confusion[:, 2:].sum()), first + second, 100),
    }


def drawn(views: Views) -> dict[str, object]:
    """Return the pictures of a page; None for those that do not apply."""
    caught, tradeoff, learning = headline(views.confusion), views.tradeoff, views.learning
    many, fine = caught["missed"], caught["lost"]
    return {
        "many_missed": many and figures.of_many(_of(many), many.scale, 20),
        "many_lost": fine and figures.of_many(_of(fine), fine.scale, 50),
        "tradeoff": tradeoff and figures.tradeoff_figure([tradeoff], views),
        "calibration": figures.calibration_figure(views),
        "histogram": figures.histogram_figure(views.histogram),
        "learning": learning and figures.learning_figure(learning, views.noun),
    }


def _of(rate: Rate) -> int:
    """Return a rate as a number of squares; what is above 0 gets at least one."""
    return max(round(rate.value), int(rate.part > 0))


def week_of(confusion: Integers, n_docs: int) -> Week:
    """Return what is expected among n_docs documents of the same mixture."""
    part = n_docs / confusion.sum()
    n_classes = len(confusion)
    by_class = confusion.sum(axis=1) * part
    undecided = float(confusion[:, n_classes:].sum() * part)
    wrong = float((confusion[:, :n_classes].sum() - np.trace(confusion)) * part)
    if n_classes != 2:
        return Week(n_docs, 0.0, 0.0, 0.0, 0.0, undecided, wrong)
    first, second = by_class.tolist()
    lost, missed = float(confusion[0, 1] * part), float(confusion[1, 0] * part)
    return Week(n_docs, first, second, lost, missed, undecided, wrong)


def _cutoffs(trial: Trial, views: Views) -> list[Cutoff]:
    """Return what cutoffs would cost, and the rule of the trial; empty for a rule of others."""
    rule = trial.rule
    if not isinstance(rule, Cutoffs):
        if rule.actions != trial.classes or not np.array_equal(rule.loss, zero_one_loss(2)):
            return []
        rule = Cutoffs(0.5, 0.5, 1.0)
    n_first, n_second = views.confusion.sum(axis=1).tolist()

    def cutoff(each: TradeOff, is_now: bool) -> Cutoff | None:
        lost = rate_of(each.false_positives, n_first, _FINE)
        missed = rate_of(each.false_negatives, n_second, 100)
        if lost is None or missed is None:
            return None
        return Cutoff(each.cutoffs.spam, lost, missed, each.unsure, each.cost, is_now)

    now = TradeOff(
        rule,
        int(views.confusion[0, 1]),
        int(views.confusion[1, 0]),
        int(views.confusion[:, 2:].sum()),
        float(trial.cost.sum()),
    )
    others = [each for each in trade_offs(trial, rule, rule.ham) if each.cutoffs.spam != rule.spam]
    rows = [cutoff(now, True), *(cutoff(each, False) for each in others)]
    return sorted((row for row in rows if row is not None), key=lambda row: row.spam)


def _by_class(views: Views) -> list[ClassScore]:
    """Return how each class fares, those first of which the fewest are found."""
    scores = []
    called = views.confusion.sum(axis=0).tolist()
    for k, name in enumerate(views.classes):
        right = int(views.confusion[k, k])
        found = rate_of(right, int(views.confusion[k].sum()), 100)
        if found is not None:
            scores.append(ClassScore(name, found, rate_of(right, called[k], 100)))
    return sorted(scores, key=lambda score: score.found.value)


def _matrix(views: Views) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return the rows of the confusion matrix: counts, and how dark each cell is, 0 to 4."""
    rows = []
    for name, row in zip(views.classes, views.confusion.tolist(), strict=True):
        whole = max(sum(row), 1)
        rows.append((name, [(n, min(-(-4 * n // whole), 4)) for n in row]))
    return rows


def _confused(views: Views) -> list[tuple[int, str, str]]:
    """Return the most frequent confusions: how often, the class and the answer."""
    counts = views.confusion.copy()
    np.fill_diagonal(counts, 0)
    found = [
        (int(counts[truth, answer]), views.classes[truth], views.answers[answer])
        for truth, answer in zip(*np.nonzero(counts), strict=True)
    ]
    return sorted(found, key=lambda each: -each[0])[:N_CONFUSIONS]


def _cases(trial: Trial, witness: Witness, rows: Integers, confusion: Integers) -> Iterator[Case]:
    """Yield wrong answers with their evidence; rows: of the trial."""
    if not len(rows):
        return
    answers, names = trial.answers()
    probability = trial.probability
    noise = noise_of(trial.joint, trial.y)
    misfiled = wrong_probability(
        leads(noise.scale * trial.joint, trial.y), noise.share, len(trial.classes) - 1
    )
    for row in rows.tolist():
        name, answer, truth = trial.names[row], names[answers[row]], trial.classes[trial.y[row]]
        shares = dict(zip(trial.classes, probability[row].tolist(), strict=True))
        item = witness.item(name)
        explanation = witness.explanation(trial, row, Verdict(name, answer, shares))
        if explanation is None:
            yield unexplained(name, answer, shares[answer], truth, item, witness.settings)
        else:
            pair = int(trial.y[row]), int(answers[row])
            often = often_confused(confusion, *pair)
            yield case_of(explanation, item, witness.settings, truth, float(misfiled[row]), often)


def often_confused(confusion: Integers, truth: int, answer: int) -> tuple[int, int] | None:
    """Return how many of a class of several got an answer, and of how many, if that is often.

    It is if there are three or more, and twice as many as if its errors spread over all others.
    """
    counts = confusion[truth]
    n_classes = len(confusion)
    part, n_wrong = int(counts[answer]), int(counts[:n_classes].sum() - counts[truth])
    if n_classes == 2 or part < _OFTEN or part * (n_classes - 1) <= 2 * n_wrong:
        return None
    return part, int(counts.sum())
