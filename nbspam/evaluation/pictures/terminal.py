"""Pictures of a trial in a terminal: 80 columns of plain characters.

Secret: how curves are drawn with few characters.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nbspam.arrays import Floats
from nbspam.evaluation.pictures.curves import Histogram, Learning, Tradeoff, Views
from nbspam.evaluation.report import fitted
from nbspam.printing import right

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
    first, second = (fitted(name) for name in views.classes)
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
    what = "right answers" if many else fitted(views.classes[1])
    yield f"Calibration: share of {what}, predicted (|) and observed (#)"
    yield "predicted observed   documents"
    columns = (column.tolist() for column in views.calibration)
    for n, confidence, frequency in zip(*columns, strict=True):
        bar = list(("#" * round(frequency * _BAR)).ljust(_BAR + 1))
        bar[round(confidence * _BAR)] = "|"
        yield f"{confidence:9.3f} {frequency:8.3f} {n:>11,}  {''.join(bar)}".rstrip()


def _histogram_lines(histogram: Histogram) -> Iterator[str]:
    """Yield a line per two bins: bars to the left and the right, on a logarithmic scale."""
    first, second = (fitted(name) for name in histogram.names)
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
