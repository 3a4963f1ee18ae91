"""The numbers behind the pictures of a trial: errors, calibration, scores, learning.

`Views` has the numbers that are drawn, and `sketch` draws them in a terminal with plain
characters; `drawings` draws them for pages and files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Integers
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.metrics import (
    ReliabilityBins,
    confusion_matrix,
    reliability_bins,
    roc_curve,
)
from nbspam.evaluation.report import printable_class
from nbspam.printing import right

N_SCORE_BINS = 30  # of the histogram
N_PIECES = 20  # points of a stream's learning curve
_TAIL = 0.005  # share of the scores at either end that the outermost bins collect
_Z = 1.96  # standard deviations that contain 95 % of a normal distribution


class Tradeoff(NamedTuple):
    """Both error rates, 0 to 1, at every cutoff and of the decision rule."""

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
    noun: str  # the documents' name, in the plural
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


# --- in a terminal: 80 columns of plain characters ----------------------------------------

_HEIGHT, _WIDTH = 15, 64  # lines and columns of the grid of errors
_BAR = 40  # columns of the longest bar
_HALF = 34  # columns of the left half of the histogram
_TICKS = (0.01, 0.1, 1, 10, 50)  # percent


def sketch(views: Views) -> str:
    """Return the pictures of a trial, in lines of at most 80 columns."""
    blocks = []
    if views.tradeoff is not None:
        blocks.append("\n".join(_tradeoff_lines(views.tradeoff, views)))
    blocks.append("\n".join(_calibration_lines(views)))
    blocks.append("\n".join(_histogram_lines(views.histogram)))
    if views.learning is not None:
        blocks.append("\n".join(_learning_lines(views.learning)))
    return "\n\n".join(blocks)


def _tradeoff_lines(tradeoff: Tradeoff, views: Views) -> Iterator[str]:
    """Yield a grid of both error rates on logit axes: * for cutoffs, O for the rule."""
    least = 0.5 / views.n_docs
    first, second = (printable_class(name) for name in views.classes)
    grid = _error_grid(tradeoff, least)
    labels = _labels(least, _HEIGHT)
    yield "Errors at every cutoff (*) and by the decision rule (O)"
    yield f"{second} called {first}, %"
    for number in reversed(range(_HEIGHT)):
        yield f"{labels.get(number, ''):>7} |" + "".join(grid[number]).rstrip()
    yield " " * 8 + "+" + "-" * _WIDTH
    axis = [" "] * (_WIDTH + 8)
    for at, label in _labels(least, _WIDTH).items():
        axis[at : at + len(label)] = label
    yield " " * 9 + "".join(axis).rstrip()
    yield " " * 9 + f"{first} called {second}, %"


def _error_grid(tradeoff: Tradeoff, least: float) -> list[list[str]]:
    """Return the characters of the grid, the lowest row first."""
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    columns = _positions(tradeoff.hm_rate, least, _WIDTH)
    rows = _positions(tradeoff.sm_rate, least, _HEIGHT)
    for (row, column), (next_row, next_column) in pairwise(zip(rows, columns, strict=True)):
        # A step goes right first, because the next cutoff loses more ham, and then down.
        grid[row][column : next_column + 1] = "*" * (next_column + 1 - column)
        for between in range(next_row, row):
            grid[between][next_column] = "*"
    (column,), (row,) = (
        _positions(np.array([rate]), least, size)
        for rate, size in zip(tradeoff.here, (_WIDTH, _HEIGHT), strict=True)
    )
    grid[row][column] = "O"
    return grid


def _positions(rate: Floats, least: float, size: int) -> list[int]:
    """Return the positions of rates on a logit axis from `least` to 0.5, 0 to size - 1."""
    inside = np.clip(rate, least, 0.5)
    logit = np.log(inside / (1 - inside))
    start = np.log(least / (1 - least))
    positions: list[int] = np.rint((logit - start) / -start * (size - 1)).astype(int).tolist()
    return positions


def _labels(least: float, size: int) -> dict[int, str]:
    """Return the percentages shown along an axis, by position."""
    shown = [tick for tick in _TICKS if tick / 100 >= least]
    positions = _positions(np.array(shown) / 100, least, size)
    return {at: f"{tick:g}" for at, tick in zip(positions, shown, strict=True)}


def _calibration_lines(views: Views) -> Iterator[str]:
    """Yield a line per bin: a bar of observed frequency, and a mark at predicted probability."""
    many = len(views.classes) > 2
    what = "right answers" if many else printable_class(views.classes[1])
    yield f"Calibration: share of {what}, predicted (|) and observed (#)"
    yield "predicted observed   documents"
    columns = (column.tolist() for column in views.calibration)
    for n, confidence, frequency in zip(*columns, strict=True):
        bar = list(("#" * round(frequency * _BAR)).ljust(_BAR + 1))
        bar[round(confidence * _BAR)] = "|"
        yield f"{confidence:9.3f} {frequency:8.3f} {n:>11,}  {''.join(bar)}".rstrip()


def _histogram_lines(histogram: Histogram) -> Iterator[str]:
    """Yield a line per two bins: bars to the left and the right, on a logarithmic scale."""
    first, second = (printable_class(name) for name in histogram.names)
    counts = histogram.counts.reshape(2, -1, 2).sum(axis=2)
    scale = 27 / np.log1p(max(counts.max(), 1))
    yield f"Scores: {histogram.what}, documents on a logarithmic scale"
    yield f"{'':9}{right(first, _HALF)} | {second}"
    for start, ham, spam in zip(histogram.edges[:-1:2], *counts.tolist(), strict=True):
        bar, other = ("#" * round(np.log1p(n) * scale) for n in (ham, spam))
        yield f"{start:>8.2f} {bar + f'{ham:>7,}':>{_HALF}} | {f'{spam:<6,}' + other}".rstrip()


def _learning_lines(learning: Learning) -> Iterator[str]:
    """Yield a line per point: O for the share of wrong answers, - for its interval."""
    top = max(float(learning.high.max()), 1e-9)
    yield f"Learning: % wrong by documents learned; the axis ends at {100 * top:.3g} %"
    yield "   learned   wrong  95 % interval (-)"
    for n, wrong, low, high in zip(*(column.tolist() for column in learning), strict=True):
        bar = [" "] * (_BAR + 1)
        start, end, here = (round(share / top * _BAR) for share in (low, high, wrong))
        bar[start : end + 1] = "-" * (end + 1 - start)
        bar[here] = "O"
        yield f"{n:>10,} {100 * wrong:>7.3f}  {''.join(bar)}".rstrip()
