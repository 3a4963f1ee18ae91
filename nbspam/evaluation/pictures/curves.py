"""The numbers behind the pictures of a trial: errors, calibration, scores, learning.

Secret: which numbers a picture shows, not how it is drawn.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.evaluation.metrics import (
    ReliabilityBins,
    confusion_matrix,
    reliability_bins,
    roc_curve,
)
from nbspam.evaluation.trial import Trial

N_SCORE_BINS = 30  # of the histogram
N_PIECES = 20  # points of a stream's learning curve
_TAIL = 0.005  # share of the scores at either end that the outermost bins collect
_Z = 1.96  # standard deviations that contain 95 % of a normal distribution


class Tradeoff(NamedTuple):
    """The rates of both errors, 0 to 1, at every cutoff, and those of the decision rule."""

    hm_rate: Floats  # ham called spam, (n_cutoffs,)
    sm_rate: Floats  # spam called ham, (n_cutoffs,)
    here: tuple[float, float]  # both rates of the trial's rule


class Histogram(NamedTuple):
    """A histogram of two kinds of documents."""

    what: str  # the quantity on the axis
    names: tuple[str, str]  # of the two kinds
    edges: Floats  # (n_bins + 1,)
    counts: Integers  # (2, n_bins)


class Learning(NamedTuple):
    """A learning curve: the share of wrong answers by the number of documents learned."""

    n_learned: Integers  # (n_points,)
    wrong: Floats  # (n_points,) share of documents, 0 to 1
    low: Floats  # (n_points,) lower end of the 95 % interval
    high: Floats  # (n_points,) upper end


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """Everything that pictures of a trial show; None where it does not apply."""

    classes: tuple[str, ...]
    n_docs: int
    noun: str  # what the documents are called, in the plural
    answers: tuple[str, ...]  # the classes, then the answers that are no class
    confusion: Integers  # (n_classes, n_answers)
    calibration: ReliabilityBins
    histogram: Histogram
    tradeoff: Tradeoff | None  # for two classes that both occur
    learning: Learning | None  # for a stream, or if smaller models were judged too


def views_of(trial: Trial) -> Views:
    """Return everything that pictures of a trial show."""
    answer, answers = trial.answers()
    return Views(
        trial.classes,
        len(trial.y),
        trial.noun,
        answers,
        confusion_matrix(trial.y, answer, len(trial.classes), len(answers)),
        reliability_bins(trial.y, trial.probability, 10),
        _histogram(trial),
        _tradeoff(trial),
        _learning(trial),
    )


def wilson_interval(part: Integers | Floats, whole: Integers) -> tuple[Floats, Floats]:
    """Return the ends of the 95 % intervals of the shares part / whole, within 0 and 1.

    Wilson (1927): the shares of which the observed one is 1.96 standard deviations away.
    """
    share, square = part / whole, _Z**2
    centre = (share + square / (2 * whole)) / (1 + square / whole)
    half = _Z / (1 + square / whole) * np.sqrt(share * (1 - share) / whole + (_Z / 2 / whole) ** 2)
    return np.asarray(np.maximum(centre - half, 0)), np.asarray(np.minimum(centre + half, 1))


def _tradeoff(trial: Trial) -> Tradeoff | None:
    if trial.score is None or len(np.unique(trial.y)) < 2:
        return None
    hm_rate, caught, _ = roc_curve(trial.y, trial.score)
    answers, _ = trial.answers()
    here = float((answers[trial.y == 0] == 1).mean()), float((answers[trial.y == 1] == 0).mean())
    return Tradeoff(hm_rate, 1 - caught, here)


def _histogram(trial: Trial) -> Histogram:
    """Return a histogram of the scores of both classes.

    Of more classes, one of the top probability, for right and for wrong answers.
    """
    if trial.score is not None:
        first, second = trial.classes
        low, high = np.quantile(trial.score, [_TAIL, 1 - _TAIL])
        what, values, is_second = "log-odds (nats)", trial.score, trial.y == 1
    else:
        first, second = "right", "wrong"
        low, high = 0.0, 1.0
        what, values = "probability of the answer", trial.probability.max(axis=1)
        is_second = trial.probability.argmax(axis=1) != trial.y
    edges = np.linspace(low, high if high > low else low + 1, N_SCORE_BINS + 1)
    inside = np.clip(values, edges[0], edges[-1])
    counts = [np.histogram(inside[of], edges)[0] for of in (~is_second, is_second)]
    return Histogram(what, (first, second), edges, np.stack(counts))


def _learning(trial: Trial) -> Learning | None:
    if trial.is_stream:
        return _learning_of_stream(trial)
    if not trial.smaller:
        return None
    stages = [*trial.smaller, (trial.n_learned, trial.joint)]
    wrong = [int(_wrong(trial, joint).sum()) for _, joint in stages]
    whole = np.full(len(stages), len(trial.y))
    return _points(np.array([n for n, _ in stages]), np.array(wrong), whole)


def _learning_of_stream(trial: Trial) -> Learning:
    n_docs = len(trial.y)
    pieces = np.array_split(_wrong(trial, trial.joint), min(N_PIECES, n_docs))
    whole = np.array([len(piece) for piece in pieces])
    wrong = np.array([int(piece.sum()) for piece in pieces])
    return _points(np.cumsum(whole), wrong, whole)


def _points(n_learned: Integers, wrong: Integers, whole: Integers) -> Learning:
    return Learning(n_learned, wrong / whole, *wilson_interval(wrong, whole))


def _wrong(trial: Trial, joint: Floats) -> Booleans:
    """Return which documents get a wrong class by the trial's rule, (n_docs,)."""
    answers, _ = replace(trial, joint=joint).answers()
    return np.asarray((answers != trial.y) & (answers < len(trial.classes)))
