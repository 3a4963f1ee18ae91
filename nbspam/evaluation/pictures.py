"""Pictures in files, as SVG or PNG: of a trial, of a model of a table, and of clusters.

A file has all pictures beside each other, in the light colours of `style.css`.  SVG needs nothing
else; for PNG, matplotlib draws the same elements.  It is an extra (`plot`), imported only then.
A graph is drawn in layers, each variable below its parents.  The curve of a class or cluster is
the density of a number times the share of the class, so all curves of a picture add up to the
density of a mixture.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO, NamedTuple
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from nbspam.disk import result_file
from nbspam.errors import UsageError, library_error
from nbspam.evaluation import figures
from nbspam.evaluation.figures import HEIGHT, WIDTH, Views, text_at
from nbspam.printing import clipped, display_width, printable
from nbspam.tables.classifier import TableClassifier, description, estimated
from nbspam.tables.unlabelled import TableClusters

_ENDINGS = (".png", ".svg")
_GAP, _HEAD = 20.0, 24.0  # around pictures, and above them for their titles
SHEET = 2 * WIDTH + 3 * _GAP  # units wide
_PIXELS = 1200  # of a PNG as wide
_TITLE = 80  # columns of the title
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
        raise UsageError(f"--plot {path}: neither .png nor .svg; end the name in one")
    if path.lower().endswith(".svg"):
        return
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        other = ", or give a name in .svg, or -"
        raise library_error(f"--plot {path}", "matplotlib", "plot", other) from None


def write(picture: ElementTree.Element, path: str) -> str | None:
    """Write a picture, PNG or SVG by the ending of its path; raises InputError.

    Returns a note if no font has all of its letters.
    """
    with result_file(path, "--plot") as file:
        if path.lower().endswith(".svg"):
            ElementTree.ElementTree(picture).write(file, "utf-8")
            return None
        lacking = _write_png(picture, file)
    if not lacking:
        return None
    return (
        f"--plot {path}: no font on this machine has {lacking[:5]}; install one, such as"
        " Noto Sans CJK for Chinese, Japanese and Korean"
    )


def sheet(views: Views, what: str) -> ElementTree.Element:
    """Return the picture of a trial: titles, two panels a row, the matrix of many classes.

    what: the judged sources, for the title.
    """
    n_right, n_docs = int(np.trace(views.confusion)), views.n_docs
    first, second = (clipped(printable(name), figures.SHORT) for name in views.histogram.names)
    panels = [
        ("Calibration (lines: 95 % interval)", figures.calibration_figure(views)),
        (
            f"Scores: {second} upwards, {first} downwards",
            figures.histogram_figure(views.histogram),
        ),
    ]
    if views.det_curve is not None:
        errors = figures.det_figure([views.det_curve], views)
        panels.insert(0, ("Errors at every cutoff (dot: the rule)", errors))
    if views.learning is not None:
        learning = figures.learning_figure(views.learning, views.noun)
        panels.append(("Learning (band: 95 % interval)", learning))
    lines = [
        clipped(printable(what), _TITLE),
        f"{n_right:,} of {n_docs:,} {views.noun} right ({100 * n_right / n_docs:.2f} %)",
    ]
    elements = [text_at(_GAP, _GAP * (n + 1.5), line, kind="head") for n, line in enumerate(lines)]
    drawn, height = _panels(panels, 3 * _GAP)
    elements += drawn
    if len(views.classes) > 2:
        title = "Confusion matrix: class down, answer across"
        elements += [
            text_at(_GAP, height + 16, title, kind="title"),
            *_matrix(views, height + 2 * _HEAD),
        ]
        height += 2 * _HEAD + len(views.answers) * _row_height(views) + _GAP
    return in_file(elements, height)


def in_file(
    elements: Iterable[Markup], height: float, width: float = SHEET
) -> ElementTree.Element:
    """Return elements as a picture in the colours of a file."""
    inside = Markup("").join(elements)
    root = ElementTree.fromstring(
        f'<svg viewBox="0 0 {width} {height:g}" width="{width}"'
        f' height="{height:g}" font-family="system-ui, sans-serif" font-size="11.5">'
        f'<path class="ground" d="M0 0H{width}V{height:g}H0z"/>{inside}</svg>'
    )
    root.set("xmlns", "http://www.w3.org/2000/svg")
    for element in root.iter():
        if element.tag == "text":
            element.set("fill", _GREY)
        for kind in element.attrib.pop("class", "").split():
            element.attrib.update(_LOOKS.get(kind, {}))
    return root


def _panels(panels: Sequence[tuple[str, Markup]], top: float) -> tuple[list[Markup], float]:
    """Return titles and pictures, two in a row from `top` on, and where they end."""
    elements = []
    for number, (title, picture) in enumerate(panels):
        x, y = _GAP + number % 2 * (WIDTH + _GAP), top + number // 2 * (_HEAD + HEIGHT + _GAP)
        place = (
            f'<svg x="{x:g}" y="{y + _HEAD:g}" width="{WIDTH}" height="{HEIGHT}"'
            ' overflow="visible"'  # the name of the highest curve reaches above its panel
        )
        elements += [
            text_at(x, y + 16, title, kind="title"),
            Markup(picture.replace("<svg", Markup(place), 1)),
        ]
    return elements, top + -(-len(panels) // 2) * (_HEAD + HEIGHT + _GAP)


def _row_height(views: Views) -> float:
    return min(_ROW, _MAX_MATRIX / len(views.answers))


def _matrix(views: Views, top: float) -> Iterator[Markup]:
    """Yield the confusion matrix: numbered answers, darker cells for larger shares of a class."""
    counts, shades, row, left = views.confusion, views.shades, _row_height(views), 220
    column = (SHEET - _GAP - left) / len(views.answers)
    for n in range(1, 5):
        cells = (
            f"M{left + x * column:.1f} {top + y * row:.1f}h{column - 1:.1f}v{row - 1:.1f}"
            f"h{1 - column:.1f}z"
            for y, x in np.argwhere(shades == n).tolist()
        )
        yield Markup('<path class="m{n}" d="{d}"/>').format(n=n, d="".join(cells))
    for n in range(0, len(views.answers), int(np.ceil(_LETTERS / row))):
        below, name = top + (n + 0.5) * row + 4, clipped(printable(views.answers[n]), _NAMES)
        # Apart from its number, because the name may run from right to left.
        yield text_at(left - 30, below, name, "end")
        yield text_at(left - 6, below, str(n + 1), "end")
    for n in range(0, len(views.answers), int(np.ceil(2 * _LETTERS / column))):
        yield text_at(left + (n + 0.5) * column, top - 6, str(n + 1), "middle")
    if len(views.answers) <= _MAX_NUMBERED:
        for y, x in np.argwhere(counts).tolist():
            middle = left + (x + 0.5) * column, top + (y + 0.5) * row + 4
            yield text_at(*middle, f"{counts[y, x]:,}", "middle", f"on{shades[y, x]}")


# --- the same picture in dots ---------------------------------------------------------------


def _write_png(root: ElementTree.Element, file: BinaryIO) -> str:
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
        figure.savefig(file, format="png")
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
    from matplotlib.font_manager import findfont, findSystemFonts, fontManager

    lacking = {ord(letter) for letter in text} - _letters(findfont(_OWN))
    if not lacking:
        return [_OWN], ""
    # matplotlib keeps its list of fonts, and looks for new ones only if one of them has gone.
    for path in sorted({*findSystemFonts()} - {font.fname for font in fontManager.ttflist}):
        with suppress(OSError, RuntimeError):
            fontManager.addfont(path)
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


# --- what a model of a table has estimated: its graph, and its normal distributions ---------

_LAYER, _NODE = 74.0, 26.0  # units from layer to layer, and of a node's height
_LETTER, _ROUND = 7.2, 18.0  # units of a letter, and beside the letters of a node
_NAME = 20  # letters of a name, for which a picture becomes wider ...
_WIDEST = 8_000.0  # ... up to so many units
_WIDTHS = 3.5  # standard deviations of a curve that are drawn
_POINTS = 81  # of a curve
_STYLES = ("run", "curve1", "curve2", "curve3")  # of curves, one after another


class Curve(NamedTuple):
    """A normal distribution of a class or cluster, and the share of its rows."""

    name: str
    share: float
    mean: float
    deviation: float


def model_picture(classifier: TableClassifier) -> ElementTree.Element:
    """Return the picture of a model's graph and of its numbers by class; raises UsageError."""
    target, columns = classifier.schema.target, classifier.schema.names[:-1]
    found = description(classifier)["structure"]
    edges = [
        (edge["parent"], edge["column"], f"{edge['information']:.3f}" if "root" in found else "")
        for edge in found.get("edges", ())
    ]
    if "parent" in found:
        edges = [(found["parent"], name, "") for name in columns if name != found["parent"]]
    is_network = "criterion" in found
    in_tree = {name for edge in edges for name in edge[:2]}
    names = [name for name in (*columns, target) if is_network or name in in_tree]
    curves = {
        each.of[0]: [
            Curve(name, share, mean, variance**0.5)
            for name, share, mean, variance in zip(
                classifier.classes,
                classifier.prior.tolist(),
                each.mean.tolist(),
                each.variance.tolist(),
                strict=True,
            )
        ]
        for each in estimated(classifier, whole=False)
        if each.mean is not None and each.variance is not None and each.given == (target,)
    }
    title = f"{target} by {classifier.name}"
    if edges and not is_network:
        title += f": each column depends on {target} too"
    return _picture(title, names, edges, curves, "this model has")


def clusters_picture(found: TableClusters) -> ElementTree.Element:
    """Return the picture of the numbers of clusters; raises UsageError if there are none."""
    sizes = found.share.sum(axis=0) / len(found.share)
    curves: dict[str, list[Curve]] = {}
    for name, share, features in zip(found.clusters, sizes.tolist(), found.features, strict=True):
        for feature in features:
            if feature.mean is not None and feature.standard_deviation is not None:
                own = Curve(name, share, feature.mean, feature.standard_deviation)
                curves.setdefault(feature.column, []).append(own)
    curves = {each.name: curves[each.name] for each in found.columns if each.name in curves}
    return _picture(f"A mixture of {len(found.clusters)}", (), (), curves, "these clusters have")


def _picture(
    title: str,
    names: Sequence[str],
    edges: Sequence[tuple[str, str, str]],
    curves: dict[str, list[Curve]],
    what: str,
) -> ElementTree.Element:
    """Return a graph, with curves below it; edges: parent, child and a label of each arrow."""
    if not edges and not curves:
        raise UsageError(f"--plot: {what} neither arrows nor normal distributions; leave it out")
    elements = [text_at(_GAP, 1.5 * _GAP, printable(title), kind="head")]
    top, width = 2.5 * _GAP, float(SHEET)
    if edges:
        layers = layers_of(names, edges)
        width = max(width, min(max(map(_layer_width, layers)), _WIDEST))
        elements += graph_elements(layers, edges, top, width)
        top += _LAYER * len(layers) - (_LAYER - _NODE) + _GAP
    drawn = (curves_figure(name, of_classes) for name, of_classes in curves.items())
    panels, height = _panels([("Density times share", picture) for picture in drawn], top)
    return in_file([*elements, *panels], height, width)


# --- curves ----------------------------------------------------------------------------------


def curves_figure(column: str, curves: Sequence[Curve]) -> Markup:
    """Return the densities of a number by class, each times the share of the class."""
    low = min(curve.mean - _WIDTHS * curve.deviation for curve in curves)
    high = max(curve.mean + _WIDTHS * curve.deviation for curve in curves)
    heights = [curve.share / (curve.deviation * np.sqrt(2 * np.pi)) for curve in curves]
    canvas = figures.Canvas((low, high), (0, max(heights)), f"Densities of {column} by class")
    canvas.ticks_left((v, figures.number_text(v)) for v in figures.round_values(0, max(heights)))
    canvas.ticks_below(
        ((v, figures.number_text(v)) for v in figures.round_values(low, high)), clipped(column, 40)
    )
    for number in np.argsort(heights)[::-1].tolist():
        curve, height = curves[number], heights[number]
        z = np.linspace(-_WIDTHS, _WIDTHS, _POINTS)
        x, y = curve.mean + z * curve.deviation, height * np.exp(-(z**2) / 2)
        canvas.line(_STYLES[number % len(_STYLES)], *zip(x.tolist(), y.tolist(), strict=True))
        canvas.label(curve.mean, height, clipped(printable(curve.name), 24))
    return canvas.drawn()


# --- graphs ----------------------------------------------------------------------------------


def layers_of(names: Sequence[str], edges: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """Return the variables in layers, each variable below all of its parents.

    In a layer, variables stand in the order of the mean place of their parents.
    """
    parents = {name: [a for a, b, _ in edges if b == name] for name in names}
    depth: dict[str, int] = {}
    while len(depth) < len(names):
        depth |= {
            name: max((depth[parent] + 1 for parent in parents[name]), default=0)
            for name in names
            if name not in depth and all(parent in depth for parent in parents[name])
        }
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    place: dict[str, float] = {}
    for number, layer in enumerate(layers):
        layer += [name for name in names if depth[name] == number]
        mean = {n: sum(place[p] for p in parents[n]) / max(len(parents[n]), 1) for n in layer}
        layer.sort(key=lambda name: mean[name])
        place |= {name: (k + 0.5) / len(layer) for k, name in enumerate(layer)}
    return layers


def _layer_width(layer: Sequence[str]) -> float:
    """Return the units that a layer takes if its names are shown."""
    longest = max(min(display_width(printable(name)), _NAME) for name in layer)
    return len(layer) * (longest * _LETTER + _ROUND + _GAP / 2)


def graph_elements(
    layers: Sequence[Sequence[str]],
    edges: Iterable[tuple[str, str, str]],
    top: float,
    width: float,
) -> Iterator[Markup]:
    """Yield the arrows of a graph and, over them, its variables."""
    at = {
        name: ((k + 0.5) * width / len(layer), top + number * _LAYER)
        for number, layer in enumerate(layers)
        for k, name in enumerate(layer)
    }
    for parent, child, label in edges:
        (x, y), (end, below) = at[parent], at[child]
        y, below = y + _NODE, below - 1
        yield Markup('<path class="tick" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(
            x, y, end, below
        )
        length = float(np.hypot(end - x, below - y))
        along, across = (end - x) / length, (below - y) / length
        left, right = (
            (end - 9 * along + side * across, below - 9 * across - side * along)
            for side in (4, -4)
        )
        yield Markup('<path class="tip" d="M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z"/>').format(
            end, below, *left, *right
        )
        if label:
            yield text_at(round((x + end) / 2 + 5, 1), round((y + below) / 2 + 4, 1), label)
    for number, layer in enumerate(layers):
        room = width / len(layer) - _GAP / 2
        for name in layer:
            x, y = at[name]
            text = clipped(printable(name), max(int((room - _ROUND) / _LETTER), 3))
            wide = display_width(text) * _LETTER + _ROUND
            yield Markup('<path class="node" d="M{:.1f} {:.1f}h{:.1f}v{}h{:.1f}z"/>').format(
                x - wide / 2, top + number * _LAYER, wide, int(_NODE), -wide
            )
            yield text_at(round(x, 1), y + 17, text, "middle", "title")
