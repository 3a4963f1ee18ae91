"""The same pictures in a terminal: 80 columns of plain characters.

Secret: how few characters a curve needs.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nbspam.arrays import Floats
from nbspam.evaluation.pictures.curves import Histogram, Learning, Tradeoff, Views
from nbspam.evaluation.report import fitted

_HEIGHT, _WIDTH = 15, 64  # of the errors' grid
_BAR = 40
_TICKS = (0.01, 0.1, 1, 10, 50)  # percent


def sketch(views: Views) -> str:
    """Return all there is to see of a trial, in lines of at most 80 columns."""
    blocks = []
    if views.tradeoff is not None:
        blocks.append("\n".join(_tradeoff_lines(views.tradeoff, views)))
    blocks.append("\n".join(_calibration_lines(views)))
    blocks.append("\n".join(_histogram_lines(views.histogram)))
    if views.learning is not None:
        blocks.append("\n".join(_learning_lines(views.learning)))
    return "\n\n".join(blocks)


def _tradeoff_lines(tradeoff: Tradeoff, views: Views) -> Iterator[str]:
    """Yield a grid of both errors on logit axes: * reached by a cutoff, O by the rule."""
    least = 0.5 / views.n_docs
    first, second = (fitted(name) for name in views.classes)
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    columns = _places(tradeoff.hm_rate, least, _WIDTH)
    rows = _places(tradeoff.sm_rate, least, _HEIGHT)
    for (row, column), (next_row, next_column) in pairwise(zip(rows, columns, strict=True)):
        # A step: to the right first, as the next cutoff loses ham, then down.
        grid[row][column : next_column + 1] = "*" * (next_column + 1 - column)
        for between in range(next_row, row):
            grid[between][next_column] = "*"
    (column,), (row,) = (
        _places(np.array([rate]), least, size)
        for rate, size in zip(tradeoff.here, (_WIDTH, _HEIGHT), strict=True)
    )
    grid[row][column] = "O"
    labels = _labels(least, _HEIGHT)
    yield f"Errors at every cutoff: {second} called {first}, % (upwards; O: as decided)"
    for number in reversed(range(_HEIGHT)):
        yield f"{labels.get(number, ''):>7} |" + "".join(grid[number]).rstrip()
    yield " " * 8 + "+" + "-" * _WIDTH
    axis = [" "] * (_WIDTH + 8)
    for place, label in _labels(least, _WIDTH).items():
        axis[place : place + len(label)] = label
    yield " " * 9 + "".join(axis).rstrip()
    yield " " * 9 + f"{first} called {second}, %"


def _places(rate: Floats, least: float, size: int) -> list[int]:
    """Return where rates stand on a logit axis of so many places; half is at its end."""
    inside = np.clip(rate, least, 0.5)
    logit = np.log(inside / (1 - inside))
    start = np.log(least / (1 - least))
    places: list[int] = np.rint((logit - start) / -start * (size - 1)).astype(int).tolist()
    return places


def _labels(least: float, size: int) -> dict[int, str]:
    """Return the percentages that stand on an axis, by place."""
    shown = [tick for tick in _TICKS if tick / 100 >= least]
    return {
        place: f"{tick:g}"
        for place, tick in zip(_places(np.array(shown) / 100, least, size), shown, strict=True)
    }


def _calibration_lines(views: Views) -> Iterator[str]:
    many = len(views.classes) > 2
    what = "right answers" if many else fitted(views.classes[1])
    yield f"Calibration: share of {what}, promised (|) and come true (#)"
    yield "promised  true   documents"
    for n, promised, true in zip(*(column.tolist() for column in views.calibration), strict=True):
        bar = list(("#" * round(true * _BAR)).ljust(_BAR + 1))
        bar[round(promised * _BAR)] = "|"
        yield f"{promised:8.3f} {true:5.3f} {n:>11,}  {''.join(bar)}".rstrip()


def _histogram_lines(histogram: Histogram) -> Iterator[str]:
    """Yield a line for two bins: one bar to the left, one to the right, of the logarithm."""
    first, second = (fitted(name) for name in histogram.names)
    counts = histogram.counts.reshape(2, -1, 2).sum(axis=2)
    scale = 27 / np.log1p(max(counts.max(), 1))
    yield f"Scores: {histogram.what}, documents on a logarithmic scale"
    yield f"{'':9}{first:>34} | {second}"
    for start, ham, spam in zip(histogram.edges[:-1:2], *counts.tolist(), strict=True):
        left, right = ("#" * round(np.log1p(n) * scale) for n in (ham, spam))
        yield f"{start:>8.2f} {left + f'{ham:>7,}':>34} | {f'{spam:<6,}' + right}".rstrip()


def _learning_lines(learning: Learning) -> Iterator[str]:
    top = max(float(learning.high.max()), 1e-9)
    yield f"Learning: % wrong after so many documents; the line ends at {100 * top:.3g} %"
    yield "   learned   wrong  95 % interval (-)"
    for n, wrong, low, high in zip(*(column.tolist() for column in learning), strict=True):
        bar = [" "] * (_BAR + 1)
        start, end, here = (round(share / top * _BAR) for share in (low, high, wrong))
        bar[start : end + 1] = "-" * (end + 1 - start)
        bar[here] = "O"
        yield f"{n:>10,} {100 * wrong:>7.3f}  {''.join(bar)}".rstrip()
