"""The report on a comparison: several ways of training, side by side.

Secret: what of two runs is worth showing beside each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.evaluation.comparison import Compared
from nbspam.evaluation.pages import figures
from nbspam.evaluation.pages.quality import PER_WEEK, Rate, Week, headline, rate_of, week_of
from nbspam.evaluation.pages.rendering import render
from nbspam.evaluation.pictures.curves import Views, views_of
from nbspam.evaluation.report import error_names, is_mail
from nbspam.evaluation.trial import Trial
from nbspam.sources.order import ORDERS

N_LISTED = 100  # documents that the runs answer differently


class Run(NamedTuple):
    """One of the runs, as a page shows it."""

    letter: str
    options: str  # of training
    views: Views
    right: Rate | None
    caught: Rate | None
    missed: Rate | None
    lost: Rate | None
    unsure: Rate | None
    week: Week
    calibration: object
    histogram: object


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
        _run(chr(ord("A") + number), spelt, trial, per_week or PER_WEEK)
        for number, (spelt, trial) in enumerate(zip(options, compared.trials, strict=True))
    ]
    splits = _splits(compared.trials)
    tradeoffs = [run.views.tradeoff for run in runs if run.views.tradeoff is not None]
    return render(
        "compared.html",
        what=what,
        compared=compared,
        is_mail=is_mail(compared.classes, compared.noun),
        order=ORDERS[compared.order] if compared.order else None,
        runs=runs,
        pairs=list(zip(runs[1:], compared.comparisons, strict=True)),
        names=error_names(compared.classes, compared.noun),
        tradeoff=figures.tradeoff_figure(tradeoffs, runs[0].views) if tradeoffs else None,
        is_stated=per_week is not None,
        n_splits=len(splits),
        splits=splits[:N_LISTED],
    )


def _run(letter: str, options: str, trial: Trial, per_week: int) -> Run:
    views = views_of(trial)
    rates = headline(views.confusion)
    return Run(
        letter,
        options,
        views,
        rate_of(int(np.trace(views.confusion)), views.n_docs, 100),
        rates["caught"],
        rates["missed"],
        rates["lost"],
        rates["unsure"],
        week_of(views.confusion, per_week),
        figures.calibration_figure(views),
        figures.histogram_figure(views.histogram),
    )


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
