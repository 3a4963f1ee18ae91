"""Pages for people: the report on an evaluation, on a comparison, and explanations.

A report is for readers without statistics: it goes from the plainest numbers to the
finest, and shows the worst mistakes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Integers
from nbspam.decision import Cutoffs, zero_one_loss
from nbspam.evaluation import figures
from nbspam.evaluation.cases import ExplainedCase, case_of, unexplained
from nbspam.evaluation.choosing import Compared, TradeOff, trade_offs
from nbspam.evaluation.doubts import leads, noise_of, wrong_probability
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.figures import Views, views_of
from nbspam.evaluation.metrics import confusions, share_interval
from nbspam.evaluation.report import compared_names, is_mail, render, trial_text
from nbspam.evaluation.witness import Witness
from nbspam.settings import Settings
from nbspam.sources.arrival import ORDERS
from nbspam.sources.items import Item
from nbspam.verdicts import AnyClassifier, Explanation, Verdict

PER_WEEK = 1_000  # messages, where nobody says how many come in a week
N_CASES = 20  # wrong answers that are shown with their texts
N_LISTED = 200  # further ones that are listed
N_MATRIX = 30  # classes, with more of which only the most frequent confusions are shown
_N_CONFUSIONS = 20
_OFTEN = 3  # times that a class gets the same wrong answer
_FINE = 1_000  # of hams: so few of them are lost that a hundred would not show it
_FEW = 10  # documents of a class


class Rate(NamedTuple):
    """A share of documents, with its 95 % interval."""

    part: int
    whole: int
    scale: int  # of so many documents ...
    value: float  # ... so many
    low: float
    high: float


class Week(NamedTuple):
    """The messages and errors to expect in a week."""

    n_docs: int
    first: int  # documents of the first class, of two
    second: int
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
    """Return how many of `scale` a share is; None if there are no documents."""
    if not whole:
        return None
    low, high = share_interval(part, whole)
    return Rate(part, whole, scale, scale * part / whole, scale * low, scale * high)


def _of_few(rate: Rate | None) -> Rate | None:
    """Return a rate, of few documents as a number of these: they say little of a hundred."""
    if rate is None or rate.whole >= _FEW:
        return rate
    return rate_of(rate.part, rate.whole, rate.whole)


def quality_page(
    trial: Trial,
    witness: Witness,
    what: str = "",
    per_week: int | None = None,
    seed: int | None = None,
) -> str:
    """Return the page of a trial.

    what: the judged sources, for the head.  per_week: how many messages come in a week; None: a
    thousand, as an example.  seed: of bootstrap intervals of all measures; None leaves them out.
    """
    views = views_of(trial)
    confusion, rule = views.confusion, _rule_as_cutoffs(trial)
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
        right=_of_few(rate_of(int(np.trace(confusion)), views.n_docs, 100)),
        **{name: _of_few(rate) for name, rate in headline(confusion).items()},
        week=week_of(confusion, per_week or PER_WEEK),
        is_stated=per_week is not None,
        cutoffs=_with_other_cutoffs(trial, rule, confusion) if rule else [],
        rule=rule,
        views=views,
        **drawn(views),
        by_class=_by_class(views) if len(trial.classes) != 2 else [],
        matrix=_matrix(views) if 2 < len(trial.classes) <= N_MATRIX else [],
        confused=confusions(confusion)[:_N_CONFUSIONS] if len(trial.classes) > 2 else [],
        words=witness.words,
        n_wrong=len(wrong),
        cases=list(_cases(trial, witness, wrong[:N_CASES], confusion)),
        listed=trial.mistakes()[N_CASES:][:N_LISTED],
        n_unlisted=max(len(wrong) - N_CASES - N_LISTED, 0),
        skipped=trial.skipped,
        measures=trial_text(trial, seed),
    )


def headline(confusion: Integers) -> dict[str, Rate | None]:
    """Return the rates of two classes (caught, missed, lost, unsure), as values of a page."""
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
    """Return the pictures of a page; None where one does not apply."""
    rates, det_curve, learning = headline(views.confusion), views.det_curve, views.learning
    many, fine = _of_few(rates["missed"]), _of_few(rates["lost"])
    return {
        "many_missed": many and figures.of_many(_n_squares(many), many.scale, 20),
        "many_lost": fine and figures.of_many(_n_squares(fine), fine.scale, 50),
        "det_curve": det_curve and figures.det_figure([det_curve], views),
        "calibration": figures.calibration_figure(views),
        "histogram": figures.histogram_figure(views.histogram),
        "learning": learning and figures.learning_figure(learning, views.noun),
    }


def _n_squares(rate: Rate) -> int:
    """Return a rate as a number of squares: at least one unless the rate is 0."""
    return max(round(rate.value), int(rate.part > 0))


def week_of(confusion: Integers, n_docs: int) -> Week:
    """Return the errors to expect among n_docs documents of the same mixture."""
    part = n_docs / confusion.sum()
    n_classes = len(confusion)
    undecided = float(confusion[:, n_classes:].sum() * part)
    wrong = float((confusion[:, :n_classes].sum() - np.trace(confusion)) * part)
    if n_classes != 2:
        return Week(n_docs, 0, 0, 0.0, 0.0, undecided, wrong)
    first = round(confusion[0].sum() * part)
    lost, missed = float(confusion[0, 1] * part), float(confusion[1, 0] * part)
    return Week(n_docs, first, n_docs - first, lost, missed, undecided, wrong)


def _rule_as_cutoffs(trial: Trial) -> Cutoffs | None:
    """Return the trial's rule for two classes as cutoffs; None if it is another rule."""
    rule = trial.rule
    if isinstance(rule, Cutoffs):
        return rule
    is_likeliest = rule.actions == trial.classes and np.array_equal(rule.loss, zero_one_loss(2))
    return Cutoffs(0.5, 0.5, 1.0) if is_likeliest else None


def _with_other_cutoffs(trial: Trial, rule: Cutoffs, confusion: Integers) -> list[TradeOff]:
    """Return the errors and costs of the rule and of other cutoffs; empty without a class."""
    if not confusion.sum(axis=1).all():
        return []
    (_, lost), (missed, _) = confusion[:, :2].tolist()
    now = TradeOff(rule, lost, missed, int(confusion[:, 2:].sum()), float(trial.cost.sum()))
    others = [each for each in trade_offs(trial, rule, rule.ham) if each.cutoffs.spam != rule.spam]
    return sorted([now, *others], key=lambda each: each.cutoffs.spam)


def _by_class(views: Views) -> list[ClassScore]:
    """Return the scores of each class, the least recognised first."""
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
    rows = zip(views.classes, views.confusion.tolist(), views.shades.tolist(), strict=True)
    return [(name, list(zip(counts, shades, strict=True))) for name, counts, shades in rows]


def _cases(
    trial: Trial, witness: Witness, rows: Integers, confusion: Integers
) -> Iterator[ExplainedCase]:
    """Yield wrong answers with their evidence; rows: of the trial."""
    if not len(rows):
        return
    answers, names = trial.answers()
    probability = trial.probability
    misfiled = np.zeros(len(trial.y))
    # Log-odds of columns that depend on each other, as most do, are far too large for this.
    if trial.noun != "rows" and len(np.unique(trial.y)) > 1:
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


# --- the report on a comparison: several ways of training, side by side -------------------

COMPARED_N_LISTED = 100  # documents that the runs answer differently


class Split(NamedTuple):
    """A document that the runs answer differently."""

    name: str
    truth: str
    answers: tuple[tuple[str, float, bool], ...]  # of each run: answer, probability, is right


def compared_page(
    compared: Compared, options: Sequence[str], what: str = "", per_week: int | None = None
) -> str:
    """Return the page of a comparison; options: of training, of each run.  See `quality_page`."""
    runs = [
        _run(f"{chr(ord('A') + n % 26)}{n // 26 or ''}", spelt, trial, per_week or PER_WEEK)
        for n, (spelt, trial) in enumerate(zip(options, compared.trials, strict=True))
    ]
    first, splits = compared.trials[0], _splits(compared.trials)
    views = [run["views"] for run in runs]
    det_curves = [each.det_curve for each in views if each.det_curve is not None]
    return render(
        "compared.html",
        what=what,
        noun=first.noun,
        classes=first.classes,
        is_mail=is_mail(first.classes, first.noun),
        order=ORDERS[first.order] if first.order else None,
        runs=runs,
        pairs=list(zip(runs[1:], compared.comparisons, strict=True)),
        names=compared_names(first.classes, first.noun),
        det_curve=figures.det_figure(det_curves, views[0]) if det_curves else None,
        is_stated=per_week is not None,
        n_splits=len(splits),
        splits=splits[:COMPARED_N_LISTED],
    )


def _run(letter: str, options: str, trial: Trial, per_week: int) -> dict[str, Any]:
    """Return one of the runs, as values of the page; options: of its training."""
    views = views_of(trial)
    return {
        "letter": letter,
        "options": options,
        "views": views,
        "right": rate_of(int(np.trace(views.confusion)), views.n_docs, 100),
        **headline(views.confusion),
        "week": week_of(views.confusion, per_week),
        "calibration": figures.calibration_figure(views),
        "histogram": figures.histogram_figure(views.histogram),
    }


def _splits(trials: Sequence[Trial]) -> list[Split]:
    """Return the documents that some runs answer rightly and others do not, in their order."""
    answered = [trial.answers() for trial in trials]
    y, classes = trials[0].y, trials[0].classes
    probability = [trial.probability for trial in trials]
    is_right = np.stack([answers == y for answers, _ in answered])
    rows = np.flatnonzero(is_right.any(axis=0) & ~is_right.all(axis=0))
    splits = []
    for row in rows.tolist():
        answers = []
        for (numbers, names), p, right in zip(answered, probability, is_right, strict=True):
            number = int(numbers[row])
            of = number if number < len(classes) else int(p[row].argmax())
            answers.append((names[number], float(p[row, of]), bool(right[row])))
        splits.append(Split(trials[0].names[row], classes[y[row]], tuple(answers)))
    return splits


N_SHOWN = 100  # messages; each takes about 10 KB


class Explained:
    """Looks on while a classifier explains its inputs one by one, and makes a page of it."""

    def __init__(self, classifier: AnyClassifier) -> None:
        self._settings: Settings | None = getattr(classifier, "settings", None)  # none of tables
        self._noun = classifier.noun
        self._cases: list[ExplainedCase] = []
        self._n_explained = 0
        self._given: Any = None

    def watched(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Let inputs pass; the next explanation is that of the last one."""
        for self._given in inputs:
            yield self._given

    def passing(self, explanations: Iterable[Explanation]) -> Iterator[Explanation]:
        """Let explanations pass, and note the first N_SHOWN."""
        for each in explanations:
            self._n_explained += 1
            if self._n_explained <= N_SHOWN:
                item = self._given if isinstance(self._given, Item) else None
                self._cases.append(case_of(each, item, self._settings))
            yield each

    def page(self) -> str:
        """Return the page of the explanations so far."""
        return render(
            "explained.html", cases=self._cases, n_explained=self._n_explained, noun=self._noun
        )
