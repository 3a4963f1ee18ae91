"""Pictures of a trial (errors, calibration, scores, learning): numbers, SVG, plain characters.

`Views` has the numbers that are drawn.  The functions called `..._figure` draw them as SVG, of few
and short elements with the classes of `style.css`: in a page, and in files (`pictures`).  `sketch`
draws them in a terminal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from nbspam.arrays import Floats, Integers
from nbspam.evaluation import metrics
from nbspam.evaluation.evaluation import Trial
from nbspam.evaluation.report import printable_class, shown
from nbspam.printing import clipped, display_width, right

N_SCORE_BINS = 30  # of the histogram
N_PIECES = 20  # points of a stream's learning curve
_TAIL = 0.005  # share of the scores at either end that the outermost bins collect
_TICKS = (0.01, 0.1, 1, 10, 50)  # percent, on axes of error rates


class DetCurve(NamedTuple):
    """Both error rates, 0 to 1, at every cutoff and of the rule: detection error tradeoff, DET."""

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
    calibration: metrics.ReliabilityBins
    histogram: Histogram
    det_curve: DetCurve | None  # for two classes that both occur
    learning: Learning | None  # for a stream, or if smaller models were judged too

    @property
    def shades(self) -> Integers:
        """How dark each cell of the confusion matrix is: 0 to 4 quarters of its class."""
        of_class = np.maximum(self.confusion.sum(axis=1, keepdims=True), 1)
        return np.asarray(-(-4 * self.confusion // of_class))


def views_of(trial: Trial) -> Views:
    """Return everything that pictures of a trial show."""
    answer, answers = trial.answers()
    return Views(
        trial.classes,
        len(trial.y),
        trial.noun,
        answers,
        metrics.confusion_matrix(trial.y, answer, len(trial.classes), len(answers)),
        metrics.reliability_bins(trial.y, trial.probability, 10),
        _histogram(trial),
        _det_curve(trial),
        _learning(trial),
    )


def _det_curve(trial: Trial) -> DetCurve | None:
    if trial.score is None or len(np.unique(trial.y)) < 2:
        return None
    ham, spam, _ = metrics.roc_counts(trial.y, trial.score)
    answers, _ = trial.answers()
    here = float((answers[trial.y == 0] == 1).mean()), float((answers[trial.y == 1] == 0).mean())
    return DetCurve(ham / ham[-1], 1 - spam / spam[-1], here)


def _histogram(trial: Trial) -> Histogram:
    """Return a histogram of the scores of both classes.

    Of more classes, one of the top probability, for right and for wrong answers.
    """
    if trial.score is not None:
        first, second = trial.classes
        # Under maximum likelihood, what a class has never shown has infinite odds against it.
        finite = trial.score[np.isfinite(trial.score)]
        low, high = np.quantile(finite if len(finite) else [0.0], [_TAIL, 1 - _TAIL])
        what, values, is_second = "log-odds (nats)", trial.score, trial.y == 1
    else:
        first, second = "right", "wrong"
        low, high = 0.0, 1.0
        what, values = "probability of the answer", trial.probability.max(axis=1)
        is_second = trial.probability.argmax(axis=1) != trial.y
    if high <= low:
        high = low + max(1.0, 1e-9 * abs(low))  # to a huge number, 1 adds nothing
    edges = np.linspace(low, high, N_SCORE_BINS + 1)
    inside = np.clip(values, edges[0], edges[-1])
    counts = [np.histogram(inside[of], edges)[0] for of in (~is_second, is_second)]
    return Histogram(what, (first, second), edges, np.stack(counts))


def _learning(trial: Trial) -> Learning | None:
    if trial.learned is not None:
        pieces = np.array_split(np.arange(len(trial.y)), min(N_PIECES, len(trial.y)))
        is_wrong = trial.is_wrong
        wrong = np.array([np.count_nonzero(is_wrong[piece]) for piece in pieces])
        whole = np.array([len(piece) for piece in pieces])
        n_learned = np.cumsum([np.count_nonzero(trial.learned[piece]) for piece in pieces])
    elif trial.smaller:
        stages = [*trial.smaller, (trial.n_learned, trial.joint)]
        wrong = np.array([replace(trial, joint=joint).is_wrong.sum() for _, joint in stages])
        whole = np.full(len(stages), len(trial.y))
        n_learned = np.array([n for n, _ in stages])
    else:
        return None
    return Learning(n_learned, wrong / whole, *metrics.wilson_interval(wrong, whole))


# --- as SVG -----------------------------------------------------------------------------------

WIDTH, HEIGHT = 340, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 18, 10, 40
_MAX_LABELS = 6  # along an axis
_LAST_RUN = 3  # with a style of its own; further ones look like it
SHORT = 8  # columns of a class name in a title that has several
_LINE = 12  # units of a line of text
_MARGIN = 24  # by which the first and last label may reach beyond their ticks


class _Axis:
    """Positions along one side of a picture: linear between two values."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low = low
        self._start, self._scale = start, (end - start) / (high - low if high > low else 1)

    def at(self, value: float) -> float:
        """Return the position of a value, in the picture's units."""
        return round(self._start + (value - self.low) * self._scale, 1)


class Canvas:
    """A picture with two axes, to which elements are added."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], label: str) -> None:
        self.x = _Axis(*x, _LEFT, WIDTH - _RIGHT)
        self.y = _Axis(*y, HEIGHT - _BOTTOM, _TOP)
        self._label = label
        self._elements: list[Markup] = []
        self._labels: list[tuple[float, float, float]] = []

    def add(self, element: str, **values: object) -> None:
        """Add an element; {names} in it are replaced by values, which are escaped."""
        self._elements.append(Markup(element).format(**values))

    def line(self, kind: str, *points: tuple[float, float]) -> None:
        """Add a line through points in the units of the axes; kind: its class in the style."""
        path = "L".join(f"{self.x.at(x):g} {self.y.at(y):g}" for x, y in points)
        self.add('<path class="{kind}" d="M{path}"/>', kind=kind, path=path)

    def bars(self, kind: str, x: Any, low: Any, high: Any) -> None:
        """Add equally wide bars that begin at x, (n,); those without height are not drawn."""
        width = (WIDTH - _LEFT - _RIGHT) / len(x)
        path = ""
        for start, a, b in zip(x, map(self.y.at, low), map(self.y.at, high), strict=True):
            if a != b:
                path += f"M{self.x.at(start):g} {a:g}V{b:g}h{width - 1:.1f}V{a:g}z"
        self.add('<path class="{kind}" d="{path}"/>', kind=kind, path=path)

    def dot(self, kind: str, x: float, y: float, r: float) -> None:
        """Add a dot at a point in the units of the axes; r: its radius in the picture's."""
        self.add(
            '<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{r:g}"/>',
            kind=kind, x=self.x.at(x), y=self.y.at(y), r=r,
        )  # fmt: skip

    def label(self, x: float, y: float, text: str) -> None:
        """Add a text above a point in the units of the axes, but below texts that are there."""
        x, y, half = self.x.at(x), self.y.at(y) - 3, 3.5 * display_width(text)
        while any(abs(x - a) < half + b and abs(y - c) < _LINE for a, b, c in self._labels):
            y += _LINE
        self._labels.append((x, half, y))
        self._elements.append(text_at(x, y, text, "middle", "title"))

    def ticks_below(self, ticks: Iterable[tuple[float, str]], title: str) -> None:
        """Add the labels of the lower axis, and its title."""
        base = self.y.at(self.y.low)
        for value, text in ticks:
            x = self.x.at(value)
            self.add('<path class="tick" d="M{x:g} {y:g}v4"/>', x=x, y=base)
            self._elements.append(text_at(x, base + 16, text, "middle"))
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        self._elements.append(text_at(middle, HEIGHT - 6, shown(title), "middle", "title"))

    def ticks_left(self, ticks: Iterable[tuple[float, str]]) -> None:
        """Add the labels of the left axis, and lines across at their values."""
        for value, text in ticks:
            y = self.y.at(value)
            self.add('<path class="grid" d="M{x} {y:g}H{end}"/>', x=_LEFT, y=y, end=WIDTH - _RIGHT)
            self._elements.append(text_at(_LEFT - 5, y + 4, text, "end"))

    def drawn(self) -> Markup:
        """Return the picture; a screen reader reads its label."""
        inside = Markup("").join(self._elements)
        return Markup(
            '<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">{inside}</svg>'
        ).format(label=shown(self._label), width=WIDTH, height=HEIGHT, inside=inside)


def text_at(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    """Return a text at a place of a picture; kind: its class in the style."""
    return Markup('<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>').format(
        kind=kind and Markup(' class="{}"').format(kind), x=x, y=y, anchor=anchor, text=text
    )


def det_figure(runs: Sequence[DetCurve], views: Views) -> Markup:
    """Return both error rates of one run or several, against each other, at every cutoff."""
    least = 0.5 / views.n_docs  # a rate of 0 has no logit: it is drawn as half a document
    first, second = views.classes
    label = f"Shares of {first} called {second} and of {second} called {first}, by cutoff"
    ends = float(_logit(least, least)), float(_logit(0.5, least))
    canvas = Canvas(ends, ends, label)
    percents = [p for p in _TICKS if p / 100 >= least]
    places = [(float(_logit(p / 100, least)), f"{p:g} %") for p in percents]
    canvas.ticks_left(places)
    first, second = (clipped(shown(name), SHORT) for name in views.classes)
    canvas.ticks_below(places, f"{first} called {second} (up: the reverse)")
    kinds = [f"run{min(number, _LAST_RUN)}" for number in range(len(runs))]
    for kind, run in zip(kinds, runs, strict=True):
        path = _steps(canvas, _logit(run.hm_rate, least), _logit(run.sm_rate, least))
        canvas.add('<path class="run {kind}" d="{path}"/>', kind=kind, path=path)
    for kind, run in zip(kinds, runs, strict=True):
        x, y = (float(_logit(rate, least)) for rate in run.here)
        canvas.dot(f"here {kind}", x, y, 5)
    return canvas.drawn()


def _logit(rate: Floats | float, least: float) -> Floats:
    """Return log-odds of rates, shape of rate; rates are moved between `least` and 0.5."""
    inside = np.clip(rate, least, 0.5)
    return np.asarray(np.log(inside / (1 - inside)))


def _steps(canvas: Canvas, x: Floats, y: Floats) -> str:
    """Return the path of a curve of steps, without those too small to be seen."""
    points = [(canvas.x.at(a), canvas.y.at(b)) for a, b in zip(x, y, strict=True)]
    path, (last_x, last_y) = f"M{points[0][0]:g} {points[0][1]:g}", points[0]
    for here, after in pairwise([*points[1:], points[-1]]):
        if abs(here[0] - last_x) + abs(here[1] - last_y) < 0.5 and here != after:
            continue
        path += f"H{here[0]:g}V{here[1]:g}"
        last_x, last_y = here
    return path


def calibration_figure(views: Views) -> Markup:
    """Return the calibration of a trial: of the second class of two, else of the answer."""
    what = printable_class(views.classes[1]) if len(views.classes) == 2 else "the answer"
    return reliability_figure(views.calibration, what)


def reliability_figure(bins: metrics.ReliabilityBins, what: str) -> Markup:
    """Return predicted probability against observed frequency, with 95 % intervals.

    what: the class whose probability it is.
    """
    n_docs, confidence, frequency = bins
    low, high = metrics.wilson_interval(np.rint(frequency * n_docs), n_docs)
    canvas = Canvas((0, 1), (0, 1), f"Probability of {what}, predicted and observed")
    ticks = [(value / 4, f"{25 * value} %") for value in range(5)]
    canvas.ticks_left(ticks)
    canvas.ticks_below(ticks, f"probability of {what}")
    canvas.line("ideal", (0, 0), (1, 1))
    for n, x, y, a, b in zip(n_docs, confidence, frequency, low, high, strict=True):
        canvas.line("interval", (x, a), (x, b))
        canvas.dot("dot", x, y, round(2.5 + 6 * float(np.sqrt(n / n_docs.sum())), 1))
    return canvas.drawn()


def histogram_figure(histogram: Histogram) -> Markup:
    """Return the histogram of scores: one kind of documents upwards, the other downwards."""
    counts, edges = np.log1p(histogram.counts), histogram.edges
    top = max(float(counts.max()), 1e-9)
    first, second = histogram.names
    canvas = Canvas((edges[0], edges[-1]), (-top, top), f"Scores of {first} and {second}")
    most = int(histogram.counts.max())
    marks = [n for n in (1, 10, 100, 1_000, 10_000, 100_000) if n <= most][-2:]
    ticks = [(sign * float(np.log1p(n)), f"{n:,}") for n in marks for sign in (1, -1)]
    canvas.ticks_left([(0.0, "0"), *ticks])
    canvas.ticks_below(
        [(value, number_text(value)) for value in round_values(edges[0], edges[-1])],
        histogram.what,
    )
    for kind, ends in (("second", counts[1]), ("first", -counts[0])):
        canvas.bars(kind, edges[:-1], 0 * ends, ends)
    return canvas.drawn()


def days_figure(days: Sequence[str], counts: Integers, kinds: Sequence[str], label: str) -> Markup:
    """Return a bar for each day, in pieces for each kind, the first kind at the bottom.

    days: labels of the bars, of which about six have room.  counts: (n_days, n_kinds).  kinds:
    their classes in the style.
    """
    ends = counts.cumsum(axis=1)
    top = max(int(ends.max(initial=0)), 1)
    canvas = Canvas((0, len(days)), (0, top), label)
    canvas.ticks_left((v, f"{v:,.0f}") for v in round_values(0, top) if v.is_integer())
    step = -(-len(days) // _MAX_LABELS)
    chosen = range(len(days) - 1 - step // 2, -1, -step)
    canvas.ticks_below(((k + 0.5, days[k]) for k in chosen), "day")
    for kind, column, end in zip(kinds, counts.T, ends.T, strict=True):
        if column.any():
            canvas.bars(kind, np.arange(len(days)), end - column, end)
    return canvas.drawn()


def learning_figure(learning: Learning, noun: str) -> Markup:
    """Return the share of wrong answers by the number of documents learned."""
    n_learned, wrong, low, high = learning
    x = np.log10(np.maximum(n_learned, 1))
    top = max(100 * float(high.max()), 1e-6)
    canvas = Canvas((x[0], x[-1]), (0, top), f"Share of wrong answers by {noun} learned")
    canvas.ticks_left([(value, f"{number_text(value)} %") for value in round_values(0, top)])
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
        canvas.dot("dot", a, b, 3)
    return canvas.drawn()


def of_many(part: int, whole: int, columns: int) -> Markup:
    """Return `whole` squares in rows, the last `part` of them in the colour of errors."""
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
    """Return the path of the squares from `start` on: a line for each row, dashed into squares."""
    path = ""
    while start < end:
        row, column = divmod(start, columns)
        n = min(columns - column, end - start)
        path += f"M{column * size} {row * size + size / 2:g}h{n * size - size * 0.2:.1f}"
        start += n
    return path


def round_values(low: float, high: float) -> Iterator[float]:
    """Yield about four round values between two; the value itself if they are equal."""
    if low == high:
        yield low
        return
    step = 10.0 ** np.floor(np.log10((high - low) / 3))
    for factor in (5, 2, 1):
        if (high - low) / (step * factor) >= 3:
            step *= factor
            break
    first, last = np.ceil(low / step), np.floor(high / step + 1e-9)
    for number in range(int(first), int(last) + 1):  # adding steps could be lost in rounding
        yield float(number * step)


def number_text(value: float) -> str:
    """Return a number as a label of an axis."""
    return f"{value + 0.0:g}".replace("-", "\N{MINUS SIGN}")


# --- in a terminal: 80 columns of plain characters ----------------------------------------

_LINES, _COLUMNS = 15, 64  # lines and columns of the grid of errors
_BAR = 40  # columns of the longest bar
_HALF = 34  # columns of the left half of the histogram


def sketch(views: Views) -> str:
    """Return the pictures of a trial, in lines of at most 80 columns."""
    blocks = [_calibration_lines(views), _histogram_lines(views.histogram)]
    if views.det_curve is not None:
        blocks.insert(0, _det_lines(views.det_curve, views))
    if views.learning is not None:
        blocks.append(_learning_lines(views.learning))
    return "\n\n".join("\n".join(lines) for lines in blocks)


def _det_lines(det_curve: DetCurve, views: Views) -> Iterator[str]:
    """Yield a grid of both error rates on logit axes: * for cutoffs, O for the rule."""
    least = 0.5 / views.n_docs
    first, second = (printable_class(name) for name in views.classes)
    grid = _error_grid(det_curve, least)
    labels = _labels(least, _LINES)
    yield "Errors at every cutoff (*) and by the decision rule (O)"
    yield f"{second} called {first}, %"
    for number in reversed(range(_LINES)):
        yield f"{labels.get(number, ''):>7} |" + "".join(grid[number]).rstrip()
    yield " " * 8 + "+" + "-" * _COLUMNS
    axis = [" "] * (_COLUMNS + 8)
    for at, label in _labels(least, _COLUMNS).items():
        axis[at : at + len(label)] = label
    yield " " * 9 + "".join(axis).rstrip()
    yield " " * 9 + f"{first} called {second}, %"


def _error_grid(det_curve: DetCurve, least: float) -> list[list[str]]:
    """Return the characters of the grid, the lowest row first."""
    grid = [[" "] * _COLUMNS for _ in range(_LINES)]
    columns = _positions(det_curve.hm_rate, least, _COLUMNS)
    rows = _positions(det_curve.sm_rate, least, _LINES)
    for (row, column), (next_row, next_column) in pairwise(zip(rows, columns, strict=True)):
        # A step goes right first, because the next cutoff loses more ham, and then down.
        grid[row][column : next_column + 1] = "*" * (next_column + 1 - column)
        for between in range(next_row, row):
            grid[between][next_column] = "*"
    (column,), (row,) = (
        _positions(np.array([rate]), least, size)
        for rate, size in zip(det_curve.here, (_COLUMNS, _LINES), strict=True)
    )
    grid[row][column] = "O"
    return grid


def _positions(rate: Floats, least: float, size: int) -> list[int]:
    """Return the positions of rates on a logit axis from `least` to 0.5, 0 to size - 1."""
    start = np.log(least / (1 - least))
    share = (_logit(rate, least) - start) / -start
    positions: list[int] = np.rint(share * (size - 1)).astype(int).tolist()
    return positions


def _labels(least: float, size: int) -> dict[int, str]:
    """Return the percentages shown along an axis, by position."""
    ticks = [tick for tick in _TICKS if tick / 100 >= least]
    positions = _positions(np.array(ticks) / 100, least, size)
    return {at: f"{tick:g}" for at, tick in zip(positions, ticks, strict=True)}


def _calibration_lines(views: Views) -> Iterator[str]:
    """Yield a line per bin: a bar of observed frequency, and a mark at predicted probability."""
    many = len(views.classes) != 2
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
