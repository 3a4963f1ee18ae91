"""The curves of a trial as SVG inside a page, in the colours of its style.

Secret: how curves become few and short elements.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.evaluation.metrics import ReliabilityBins
from nbspam.evaluation.pages.rendering import shown
from nbspam.evaluation.pictures.curves import (
    Histogram,
    Learning,
    Tradeoff,
    Views,
    wilson_interval,
)

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 340, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 18, 10, 40
_PERCENTS = (0.01, 0.1, 1, 10, 50)
_MAX_LABELS = 6  # along an axis
_MARGIN = 24  # by which the first and last label may reach beyond their ticks


class _Axis:
    """Positions along one side of a picture: linear between two values."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1
        self._start, self._scale = start, (end - start) / (self.high - self.low)

    def at(self, value: float) -> float:
        """Return the position of a value, in the picture's units."""
        return round(self._start + (value - self.low) * self._scale, 1)


class _Canvas:
    """A picture with two axes, to which elements are added."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], label: str) -> None:
        self.x = _Axis(*x, _LEFT, WIDTH - _RIGHT)
        self.y = _Axis(*y, HEIGHT - _BOTTOM, _TOP)
        self._label = label
        self._elements: list[Markup] = []

    def add(self, element: str, **values: object) -> None:
        """Add an element; {names} in it are replaced by values, which are escaped."""
        from markupsafe import Markup

        self._elements.append(Markup(element).format(**values))

    def line(self, kind: str, *points: tuple[float, float]) -> None:
        """Add a line through points in the units of the axes; kind: its class in the style."""
        path = "L".join(f"{self.x.at(x):g} {self.y.at(y):g}" for x, y in points)
        self.add('<path class="{kind}" d="M{path}"/>', kind=kind, path=path)

    def ticks_below(self, ticks: Iterable[tuple[float, str]], title: str) -> None:
        """Add the labels of the lower axis, and its title."""
        base = self.y.at(self.y.low)
        for value, text in ticks:
            self.add(
                '<path class="tick" d="M{x:g} {y:g}v4"/><text x="{x:g}" y="{below:g}"'
                ' text-anchor="middle">{text}</text>',
                x=self.x.at(value), y=base, below=base + 16, text=text,
            )  # fmt: skip
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        self.add(
            '<text class="title" x="{x:g}" y="{y:g}" text-anchor="middle">{text}</text>',
            x=middle, y=HEIGHT - 6, text=shown(title),
        )  # fmt: skip

    def ticks_left(self, ticks: Iterable[tuple[float, str]]) -> None:
        """Add the labels of the left axis, and lines across at their values."""
        for value, text in ticks:
            self.add(
                '<path class="grid" d="M{x:g} {y:g}H{end:g}"/><text x="{left:g}" y="{low:g}"'
                ' text-anchor="end">{text}</text>',
                x=_LEFT, y=self.y.at(value), end=WIDTH - _RIGHT, left=_LEFT - 5,
                low=self.y.at(value) + 4, text=text,
            )  # fmt: skip

    def drawn(self) -> "Markup":
        """Return the picture; its label is what a screen reader says of it."""
        from markupsafe import Markup

        inside = Markup("").join(self._elements)
        return Markup(
            '<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">{inside}</svg>'
        ).format(label=shown(self._label), width=WIDTH, height=HEIGHT, inside=inside)


def tradeoff_figure(runs: Sequence[Tradeoff], views: Views) -> "Markup":
    """Return both rates of errors against each other at every cutoff, of one run or several."""
    least = 0.5 / views.n_docs  # a rate of 0 has no logit: it is drawn as half a document
    first, second = views.classes
    label = f"Shares of {first} called {second} and of {second} called {first}, by cutoff"
    ends = _logit(np.array([least, 0.5]), least).tolist()
    canvas = _Canvas((ends[0], ends[1]), (ends[0], ends[1]), label)
    percents = [p for p in _PERCENTS if p / 100 >= least]
    places = [(float(_logit(np.array([p / 100]), least)[0]), f"{p:g} %") for p in percents]
    canvas.ticks_left(places)
    canvas.ticks_below(places, f"{first} called {second} (up: {second} called {first})")
    for number, run in enumerate(runs):
        x, y = _logit(run.hm_rate, least), _logit(run.sm_rate, least)
        path = _steps(canvas, x, y)
        canvas.add('<path class="run run{n}" d="{path}"/>', n=number, path=path)
    for number, run in enumerate(runs):
        (x,), (y,) = (_logit(np.array([rate]), least).tolist() for rate in run.here)
        canvas.add(
            '<circle class="here run{n}" cx="{x:g}" cy="{y:g}" r="5"/>',
            n=number, x=canvas.x.at(x), y=canvas.y.at(y),
        )  # fmt: skip
    return canvas.drawn()


def _logit(rate: Floats, least: float) -> Floats:
    inside = np.clip(rate, least, 0.5)
    return np.asarray(np.log(inside / (1 - inside)))


def _steps(canvas: _Canvas, x: Floats, y: Floats) -> str:
    """Return the path of a curve of steps, without those too small to be seen."""
    points = [(canvas.x.at(a), canvas.y.at(b)) for a, b in zip(x, y, strict=True)]
    path, (last_x, last_y) = f"M{points[0][0]:g} {points[0][1]:g}", points[0]
    for here, after in pairwise([*points[1:], points[-1]]):
        if abs(here[0] - last_x) + abs(here[1] - last_y) < 0.5 and here != after:
            continue
        path += f"H{here[0]:g}V{here[1]:g}"
        last_x, last_y = here
    return path


def calibration_figure(views: Views) -> "Markup":
    """Return predicted probability against observed frequency, with 95 % intervals."""
    many = len(views.classes) > 2
    return reliability_figure(views.calibration, "the answer" if many else views.classes[1])


def reliability_figure(bins: ReliabilityBins, what: str) -> "Markup":
    """Return the same of bins; what: the class whose probability it is."""
    n_docs, confidence, frequency = bins
    low, high = wilson_interval(np.rint(frequency * n_docs), n_docs)
    canvas = _Canvas((0, 1), (0, 1), f"Probability of {what}, predicted and observed")
    canvas.ticks_left([(value / 4, f"{25 * value} %") for value in range(5)])
    canvas.ticks_below(
        [(value / 4, f"{25 * value} %") for value in range(5)], f"probability of {what}"
    )
    canvas.line("ideal", (0, 0), (1, 1))
    for n, x, y, a, b in zip(n_docs, confidence, frequency, low, high, strict=True):
        canvas.line("interval", (x, a), (x, b))
        radius = round(2.5 + 6 * float(np.sqrt(n / n_docs.sum())), 1)
        canvas.add(
            '<circle class="dot" cx="{x:g}" cy="{y:g}" r="{r:g}"/>',
            x=canvas.x.at(x), y=canvas.y.at(y), r=radius,
        )  # fmt: skip
    return canvas.drawn()


def histogram_figure(histogram: Histogram) -> "Markup":
    """Return how many documents of both kinds have which score: one kind up, the other down."""
    counts, edges = np.log1p(histogram.counts), histogram.edges
    top = max(float(counts.max()), 1e-9)
    first, second = histogram.names
    canvas = _Canvas((edges[0], edges[-1]), (-top, top), f"Scores of {first} and {second}")
    most = int(histogram.counts.max())
    marks = [n for n in (1, 10, 100, 1_000, 10_000, 100_000) if n <= most][-2:]
    ticks = [(sign * float(np.log1p(n)), f"{n:,}") for n in marks for sign in (1, -1)]
    canvas.ticks_left([(0.0, "0"), *ticks])
    canvas.ticks_below(
        [(value, _number(value)) for value in _round(edges[0], edges[-1])], histogram.what
    )
    for kind, row, sign in (("second", counts[1], 1), ("first", counts[0], -1)):
        canvas.add('<path class="{kind}" d="{path}"/>', kind=kind, path=_bars(canvas, row * sign))
    return canvas.drawn()


def _bars(canvas: _Canvas, heights: Floats) -> str:
    """Return the path of the bars of a histogram, which has as many as it has heights."""
    zero = canvas.y.at(0)
    width = (WIDTH - _LEFT - _RIGHT) / len(heights)
    path = ""
    for number, height in enumerate(heights.tolist()):
        if height:
            x = round(_LEFT + number * width, 1)
            path += f"M{x:g} {zero:g}V{canvas.y.at(height):g}h{width - 1:.1f}V{zero:g}z"
    return path


def days_figure(
    days: Sequence[str], counts: Integers, kinds: Sequence[str], label: str
) -> "Markup":
    """Return a bar for each day, in pieces for each kind, the first kind at the bottom.

    days: what is written below the bars, of which every fifth or so has room.  counts: (n_days,
    n_kinds).  kinds: their classes in the style.
    """
    ends = counts.cumsum(axis=1)
    top = max(int(ends.max(initial=0)), 1)
    canvas = _Canvas((0, len(days)), (0, top), label)
    canvas.ticks_left((v, f"{v:,.0f}") for v in _round(0, top) if v.is_integer())
    step = -(-len(days) // _MAX_LABELS)
    chosen = range(len(days) - 1 - step // 2, -1, -step)
    canvas.ticks_below(((k + 0.5, days[k]) for k in chosen), "day")
    width = (WIDTH - _LEFT - _RIGHT) / max(len(days), 1)
    for kind, column, end in zip(kinds, counts.T, ends.T, strict=True):
        path = ""
        for day in np.flatnonzero(column).tolist():
            low, high = canvas.y.at(end[day] - column[day]), canvas.y.at(end[day])
            path += f"M{canvas.x.at(day):g} {low:g}V{high:g}h{width - 1:.1f}V{low:g}z"
        if path:
            canvas.add('<path class="{kind}" d="{path}"/>', kind=kind, path=path)
    return canvas.drawn()


def learning_figure(learning: Learning, noun: str) -> "Markup":
    """Return the share of wrong answers by the number of documents learned."""
    n_learned, wrong, low, high = learning
    x = np.log10(np.maximum(n_learned, 1))
    top = max(100 * float(high.max()), 1e-6)
    canvas = _Canvas((x[0], x[-1]), (0, top), f"Share of wrong answers by {noun} learned")
    canvas.ticks_left([(value, f"{_number(value)} %") for value in _round(0, top)])
    shown_at = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MAX_LABELS)).round().astype(int))
    labels: list[tuple[float, str]] = []
    for k in shown_at.tolist():
        if not labels or canvas.x.at(x[k]) - canvas.x.at(labels[-1][0]) > 2 * _MARGIN:
            labels.append((float(x[k]), f"{n_learned[k]:,}"))
    canvas.ticks_below(labels, f"{noun} learned")
    band = [*zip(x, 100 * high, strict=True), *reversed([*zip(x, 100 * low, strict=True)])]
    canvas.line("band", *band)
    canvas.line("run run0", *zip(x, 100 * wrong, strict=True))
    for a, b in zip(x, 100 * wrong, strict=True):
        canvas.add(
            '<circle class="dot" cx="{x:g}" cy="{y:g}" r="3"/>', x=canvas.x.at(a), y=canvas.y.at(b)
        )
    return canvas.drawn()


def of_many(part: int, whole: int, columns: int) -> "Markup":
    """Return `whole` squares in rows, the last `part` of them in the colour of errors."""
    from markupsafe import Markup

    rows, size = -(-whole // columns), 300 // columns
    side = round(size * 0.8, 1)
    paths = (
        Markup(
            '<path class="{kind}" stroke-width="{side}" stroke-dasharray="{side} {gap:g}"'
            ' d="{path}"/>'
        ).format(kind=kind, side=side, gap=size - side, path=_lines(start, end, columns, size))
        for kind, start, end in (("good", 0, whole - part), ("bad", whole - part, whole))
        if end > start
    )
    return Markup(
        '<svg class="many" aria-hidden="true" viewBox="0 0 {width} {height}">{inside}</svg>'
    ).format(width=columns * size, height=rows * size, inside=Markup("").join(paths))


def _lines(start: int, end: int, columns: int, size: int) -> str:
    """Return the path of a line for each row of places, dashes of which are the squares."""
    path = ""
    while start < end:
        row, column = divmod(start, columns)
        n = min(columns - column, end - start)
        path += f"M{column * size} {row * size + size / 2:g}h{n * size - size * 0.2:.1f}"
        start += n
    return path


def _round(low: float, high: float) -> Iterator[float]:
    """Yield about four round values between two."""
    step = 10.0 ** np.floor(np.log10((high - low) / 3))
    for factor in (5, 2, 1):
        if (high - low) / (step * factor) >= 3:
            step *= factor
            break
    value = np.ceil(low / step) * step
    while value <= high + step * 1e-9:
        yield round(float(value), 10)
        value += step


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")
