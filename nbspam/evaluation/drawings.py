"""The curves of a trial as SVG: in a page, in the colours of its style, and in files.

A picture consists of few and short elements with the classes of `style.css`.  A file has all
pictures of a trial beside each other, in the light colours of that style.  SVG needs nothing
else; for PNG, matplotlib draws the same elements.  It is an extra (`plot`), imported only then.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from nbspam.arrays import Floats, Integers
from nbspam.errors import InputError, UsageError
from nbspam.evaluation.figures import Histogram, Learning, Tradeoff, Views, wilson_interval
from nbspam.evaluation.metrics import ReliabilityBins
from nbspam.evaluation.pages.rendering import shown
from nbspam.evaluation.report import shortened
from nbspam.printing import printable
from nbspam.verdicts import shortened_text

WIDTH, HEIGHT = 340, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 18, 10, 40
_PERCENTS = (0.01, 0.1, 1, 10, 50)
_MAX_LABELS = 6  # along an axis
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

    def add(self, element: str, **values: object) -> None:
        """Add an element; {names} in it are replaced by values, which are escaped."""
        self._elements.append(Markup(element).format(**values))

    def line(self, kind: str, *points: tuple[float, float]) -> None:
        """Add a line through points in the units of the axes; kind: its class in the style."""
        path = "L".join(f"{self.x.at(x):g} {self.y.at(y):g}" for x, y in points)
        self.add('<path class="{kind}" d="M{path}"/>', kind=kind, path=path)

    def dot(self, kind: str, x: float, y: float, r: float) -> None:
        """Add a dot at a point in the units of the axes; r: its radius in the picture's."""
        self.add(
            '<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{r:g}"/>',
            kind=kind, x=self.x.at(x), y=self.y.at(y), r=r,
        )  # fmt: skip

    def label(self, x: float, y: float, text: str) -> None:
        """Add a text above a point in the units of the axes."""
        self._elements.append(text_at(self.x.at(x), self.y.at(y) - 3, text, "middle", "title"))

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


def tradeoff_figure(runs: Sequence[Tradeoff], views: Views) -> Markup:
    """Return both error rates of one run or several, against each other, at every cutoff."""
    least = 0.5 / views.n_docs  # a rate of 0 has no logit: it is drawn as half a document
    first, second = views.classes
    label = f"Shares of {first} called {second} and of {second} called {first}, by cutoff"
    ends = _logit(np.array([least, 0.5]), least).tolist()
    canvas = Canvas((ends[0], ends[1]), (ends[0], ends[1]), label)
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
        canvas.dot(f"here run{number}", x, y, 5)
    return canvas.drawn()


def _logit(rate: Floats, least: float) -> Floats:
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
    """Return the calibration of a trial: of its second class, or of the answer among many."""
    many = len(views.classes) > 2
    return reliability_figure(views.calibration, "the answer" if many else views.classes[1])


def reliability_figure(bins: ReliabilityBins, what: str) -> Markup:
    """Return predicted probability against observed frequency, with 95 % intervals.

    what: the class whose probability it is.
    """
    n_docs, confidence, frequency = bins
    low, high = wilson_interval(np.rint(frequency * n_docs), n_docs)
    canvas = Canvas((0, 1), (0, 1), f"Probability of {what}, predicted and observed")
    canvas.ticks_left([(value / 4, f"{25 * value} %") for value in range(5)])
    canvas.ticks_below(
        [(value / 4, f"{25 * value} %") for value in range(5)], f"probability of {what}"
    )
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
    for kind, row, sign in (("second", counts[1], 1), ("first", counts[0], -1)):
        canvas.add('<path class="{kind}" d="{path}"/>', kind=kind, path=_bars(canvas, row * sign))
    return canvas.drawn()


def _bars(canvas: Canvas, heights: Floats) -> str:
    """Return the path of the bars of a histogram, which has as many as it has heights."""
    zero = canvas.y.at(0)
    width = (WIDTH - _LEFT - _RIGHT) / len(heights)
    path = ""
    for number, height in enumerate(heights.tolist()):
        if height:
            x = round(_LEFT + number * width, 1)
            path += f"M{x:g} {zero:g}V{canvas.y.at(height):g}h{width - 1:.1f}V{zero:g}z"
    return path


def days_figure(days: Sequence[str], counts: Integers, kinds: Sequence[str], label: str) -> Markup:
    """Return a bar for each day, in pieces for each kind, the first kind at the bottom.

    days: labels of the bars; about every fifth has room.  counts: (n_days,
    n_kinds).  kinds: their classes in the style.
    """
    ends = counts.cumsum(axis=1)
    top = max(int(ends.max(initial=0)), 1)
    canvas = Canvas((0, len(days)), (0, top), label)
    canvas.ticks_left((v, f"{v:,.0f}") for v in round_values(0, top) if v.is_integer())
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
    """Return the path of a line for each row of places, dashes of which are the squares."""
    path = ""
    while start < end:
        row, column = divmod(start, columns)
        n = min(columns - column, end - start)
        path += f"M{column * size} {row * size + size / 2:g}h{n * size - size * 0.2:.1f}"
        start += n
    return path


def round_values(low: float, high: float) -> Iterator[float]:
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


def number_text(value: float) -> str:
    """Return a number as a label of an axis."""
    return f"{value + 0.0:g}".replace("-", "\N{MINUS SIGN}")


# --- a picture of a trial in a file -----------------------------------------------------------

_ENDINGS = (".png", ".svg")
GAP, HEAD = 20.0, 24.0  # around pictures, and above them for their titles
SHEET = 2 * WIDTH + 3 * GAP  # units wide
_PIXELS = 1200  # of a PNG as wide
_TITLE = 80  # characters of the title
_NAMES = 24  # columns of a class name beside the matrix
_MAX_NUMBERED = 30  # answers, with more of which cells have no numbers
_LETTERS = 13  # units of a line of text
_ROW, _MAX_MATRIX = 22, 2_000  # units of a class in the matrix, and of all of them at most
# How elements look in a file: the light colours of `style.css`.
_BLUE, _RED, _BLACK, _GREY, _LINE = "#0b5cad", "#b3341f", "#1c2126", "#565f69", "#d3d9df"
_LOOKS = {
    "ground": {"fill": "#fff"},
    "grid": {"stroke": _LINE},
    "ideal": {"stroke": _GREY, "stroke-dasharray": "4 4"},
    "tick": {"stroke": _GREY},
    "run": {"fill": "none", "stroke": _BLUE, "stroke-width": "2"},
    "interval": {"stroke": _BLUE, "stroke-width": "2"},
    "band": {"fill": "#e0eefb"},
    "dot": {"fill": _BLUE, "stroke": "#fff"},
    "here": {"fill": _RED, "stroke": "#fff", "stroke-width": "1.5"},
    "first": {"fill": _BLUE},
    "second": {"fill": _RED},
    **{f"m{n}": {"fill": c} for n, c in enumerate(("#dbe9f7", "#a9cdf0", "#5f9fd8", _BLUE), 1)},
    **{f"on{n}": {"fill": c} for n, c in enumerate((_BLACK, _BLACK, _BLACK, "#fff"), 1)},
    "node": {"fill": "#e0eefb", "stroke": _BLUE},
    "tip": {"fill": _GREY},
    **{
        f"curve{n}": {"fill": "none", "stroke": colour, "stroke-width": "2"}
        for n, colour in enumerate((_RED, "#2f7d32", "#8a5a00"), 1)
    },
    "title": {"fill": _BLACK},
    "head": {"fill": _BLACK, "font-size": "15"},
}


def check_picture_path(path: str) -> None:
    """Raise UsageError if pictures cannot be drawn to this path."""
    if not path.lower().endswith(_ENDINGS):
        raise UsageError(f"--plot {path}: neither .png nor .svg; give such a name, or -")
    if path.lower().endswith(".svg"):
        return
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UsageError(
            f"--plot {path}: matplotlib is not installed; install nbspam[plot], or give a name"
            " in .svg, or -"
        ) from None


def draw(views: Views, path: str, what: str) -> str | None:
    """Write the picture of a trial; what: the judged sources, for the title.  See `write`."""
    return write(sheet(views, what), path)


def write(picture: ElementTree.Element, path: str) -> str | None:
    """Write a picture, PNG or SVG by the ending of its path; raises InputError.

    Returns a note if no font has all of its letters.
    """
    try:
        if path.lower().endswith(".svg"):
            ElementTree.ElementTree(picture).write(path, "utf-8")
            return None
        lacking = _write_png(picture, path)
    except OSError as error:
        reason = error.strerror or "cannot be written"
        raise InputError(f"--plot {path}: {reason}; give another name") from error
    if not lacking:
        return None
    return (
        f"--plot {path}: no font on this machine has {lacking[:5]}; install one, such as"
        " Noto Sans CJK for Chinese, Japanese and Korean"
    )


def sheet(views: Views, what: str) -> ElementTree.Element:
    """Return the picture of a trial: titles, two panels a row, the matrix of many classes."""
    n_right = int(np.trace(views.confusion))
    first, second = (shortened(printable(name), _NAMES) for name in views.histogram.names)
    panels = [
        ("Calibration (lines: 95 % interval)", calibration_figure(views)),
        (f"Scores: {second} upwards, {first} downwards", histogram_figure(views.histogram)),
    ]
    if views.tradeoff is not None:
        errors = tradeoff_figure([views.tradeoff], views)
        panels.insert(0, ("Errors at every cutoff (dot: the rule)", errors))
    if views.learning is not None:
        learning = learning_figure(views.learning, views.noun)
        panels.append(("Learning (band: 95 % interval)", learning))
    lines = [
        printable(shortened_text(what, _TITLE)),
        f"{n_right:,} of {views.n_docs:,} {views.noun} right ({n_right / views.n_docs:.2%})",
    ]
    elements = [text_at(GAP, GAP * (n + 1.5), line, kind="head") for n, line in enumerate(lines)]
    top = 3 * GAP
    for number, (title, picture) in enumerate(panels):
        x, y = GAP + number % 2 * (WIDTH + GAP), top + number // 2 * (HEAD + HEIGHT + GAP)
        elements += [text_at(x, y + 16, title, kind="title"), placed(picture, x, y + HEAD)]
    height = top + -(-len(panels) // 2) * (HEAD + HEIGHT + GAP)
    if len(views.classes) > 2:
        title = "Confusion matrix: class down, answer across"
        elements += [
            text_at(GAP, height + 16, title, kind="title"),
            *_matrix(views, height + 2 * HEAD),
        ]
        height += 2 * HEAD + len(views.answers) * _row(views) + GAP
    return in_file(elements, height)


def in_file(elements: Iterable[Markup], height: float) -> ElementTree.Element:
    """Return elements as a picture SHEET wide, in the colours of a file."""
    inside = Markup("").join(elements)
    root = ElementTree.fromstring(
        f'<svg viewBox="0 0 {SHEET} {height:g}" width="{SHEET}"'
        f' height="{height:g}" font-family="system-ui, sans-serif" font-size="11.5">'
        f'<path class="ground" d="M0 0H{SHEET}V{height:g}H0z"/>{inside}</svg>'
    )
    root.set("xmlns", "http://www.w3.org/2000/svg")
    for element in root.iter():
        if element.tag == "text":
            element.set("fill", _GREY)
        for kind in element.attrib.pop("class", "").split():
            element.attrib.update(_LOOKS.get(kind, {}))
    return root


def placed(picture: Markup, x: float, y: float) -> Markup:
    """Return a picture as an element of a larger one."""
    place = f'<svg x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}"'
    return Markup(picture.replace("<svg", Markup(place), 1))


def _row(views: Views) -> float:
    """Return the height of a class in the matrix."""
    return min(_ROW, _MAX_MATRIX / len(views.answers))


def _matrix(views: Views, top: float) -> Iterator[Markup]:
    """Yield the confusion matrix: numbered answers, darker cells for larger shares of a class."""
    counts, row, left = views.confusion, _row(views), 220
    shade = -(-4 * counts // np.maximum(counts.sum(axis=1, keepdims=True), 1))
    column = (SHEET - GAP - left) / len(views.answers)
    for n in range(1, 5):
        cells = (
            f"M{left + x * column:.1f} {top + y * row:.1f}h{column - 1:.1f}v{row - 1:.1f}"
            f"h{1 - column:.1f}z"
            for y, x in np.argwhere(shade == n).tolist()
        )
        yield Markup('<path class="m{n}" d="{d}"/>').format(n=n, d="".join(cells))
    for n in range(0, len(views.answers), int(np.ceil(_LETTERS / row))):
        name = f"{shortened(printable(views.answers[n]), _NAMES)} {n + 1}"
        yield text_at(left - 6, top + (n + 0.5) * row + 4, name, "end")
    for n in range(0, len(views.answers), int(np.ceil(2 * _LETTERS / column))):
        yield text_at(left + (n + 0.5) * column, top - 6, str(n + 1), "middle")
    if len(views.answers) <= _MAX_NUMBERED:
        for y, x in np.argwhere(counts).tolist():
            middle = left + (x + 0.5) * column, top + (y + 0.5) * row + 4
            yield text_at(*middle, f"{counts[y, x]:,}", "middle", f"on{shade[y, x]}")


# --- the same picture in dots ---------------------------------------------------------------


def _write_png(root: ElementTree.Element, path: str) -> str:
    """Write a picture as PNG, and return the letters that no font has; raises OSError."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    size = float(root.attrib["width"]), float(root.attrib["height"])
    families, lacking = families_for("".join(root.itertext()))
    figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72 * _PIXELS / SHEET)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, size[0]), ylim=(size[1], 0))
    axes.set_axis_off()
    with rc_context({"font.family": families}), warnings.catch_warnings():
        if lacking:  # the note replaces a warning for every letter
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        _paint(axes, root)
        figure.savefig(path)
    return lacking


def _paint(axes: Any, root: ElementTree.Element, x: float = 0, y: float = 0) -> None:
    """Paint the elements of a picture whose corner is at x and y; a unit is a point."""
    from matplotlib.patches import Circle, PathPatch

    for element in root:
        of = element.attrib
        if element.tag == "svg":
            _paint(axes, element, float(of["x"]), float(of["y"]))
            continue
        if element.tag == "text":
            at = x + float(of["x"]), y + float(of["y"])
            align = {"start": "left", "middle": "center", "end": "right"}[of["text-anchor"]]
            size = float(of.get("font-size", 11.5))
            axes.text(*at, element.text, ha=align, size=size, color=of["fill"], parse_math=False)
            continue
        if of.get("d") == "":
            continue
        if element.tag == "circle":
            shape: Any = Circle((x + float(of["cx"]), y + float(of["cy"])), float(of["r"]))
        else:
            shape = PathPatch(_outline(of["d"], x, y))
        dashes = tuple(map(float, of.get("stroke-dasharray", "").split())) or None
        width = float(of.get("stroke-width", 1))
        shape.set(fc=of.get("fill", "none"), ec=of.get("stroke", "none"), lw=width, ls=(0, dashes))
        axes.add_patch(shape)


def _outline(steps: str, x: float, y: float) -> Any:
    """Return a path of `d` as matplotlib has it; x, y: the corner of its picture."""
    from matplotlib.path import Path as Outline

    points, codes, here = [], [], [0.0, 0.0]
    for step, written in re.findall(r"([MLHVhvz])([^MLHVhvz]*)", steps):
        numbers = [*map(float, written.split())]
        axis = 0 if step in "Hh" else 1
        if step in "ML":
            here = numbers
        elif step in "HV":
            here[axis] = numbers[0]
        elif step in "hv":
            here[axis] += numbers[0]
        points.append((x + here[0], y + here[1]))
        codes.append({"M": Outline.MOVETO, "z": Outline.CLOSEPOLY}.get(step, Outline.LINETO))
    return Outline(points, codes)


_OWN = "DejaVu Sans"  # comes with matplotlib
_NO_LETTERS = "Last Resort"  # its glyphs are frames that name a script


def families_for(text: str) -> tuple[list[str], str]:
    """Return families of fonts that have the letters of a text, and the letters none has.

    Each letter is drawn with the first family that has it.
    """
    from matplotlib.font_manager import findfont, fontManager

    lacking = {ord(letter) for letter in text} - _letters(findfont(_OWN))
    if not lacking:
        return [_OWN], ""
    best, found = _OWN, frozenset[int]()
    for font in fontManager.ttflist:
        if not font.name.startswith(_NO_LETTERS):
            has = _letters(font.fname) & lacking
            if len(has) > len(found):
                best, found = font.name, has
    families = [_OWN] if best == _OWN else [_OWN, best]
    return families, "".join(map(chr, sorted(lacking - found)))


@cache
def _letters(path: str) -> frozenset[int]:
    """Return the code points that a font has; none if its file cannot be read."""
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
