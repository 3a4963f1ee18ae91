"""Pictures of what a model of a table has estimated: its graph, and its normal distributions.

A graph is drawn in layers, each variable below its parents.  The curve of a class or cluster is
the density of a number times the share of the class, so all curves of a picture add up to the
density of a mixture.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from nbspam.errors import UsageError
from nbspam.evaluation.drawings import (
    GAP,
    HEAD,
    HEIGHT,
    SHEET,
    WIDTH,
    Canvas,
    in_file,
    number_text,
    placed,
    round_values,
    text_at,
)
from nbspam.evaluation.report import shortened
from nbspam.printing import display_width, printable
from nbspam.tables.classifier import TableClassifier
from nbspam.tables.em import TableClusters
from nbspam.tables.estimates import description, estimated

_LAYER, _NODE = 74.0, 26.0  # units from layer to layer, and of a node's height
_LETTER, _ROUND = 7.2, 18.0  # units of a letter, and beside the letters of a node
_WIDTHS = 3.5  # standard deviations of a curve that are drawn
_POINTS = 81  # of a curve
_KINDS = ("run", "curve1", "curve2", "curve3")


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
    order = [column.name for column in found.columns if column.name in curves]
    curves = {name: curves[name] for name in order}
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
    elements = [text_at(GAP, 1.5 * GAP, printable(title), kind="head")]
    top = 2.5 * GAP
    if edges:
        layers = layers_of(names, edges)
        elements += graph_elements(layers, edges, top)
        top += _LAYER * len(layers) - (_LAYER - _NODE) + GAP
    for number, (name, of_classes) in enumerate(curves.items()):
        x, y = GAP + number % 2 * (WIDTH + GAP), top + number // 2 * (HEAD + HEIGHT + GAP)
        elements += [
            text_at(x, y + 16, "Density times share", kind="title"),
            placed(curves_figure(name, of_classes), x, y + HEAD),
        ]
    return in_file(elements, top + -(-len(curves) // 2) * (HEAD + HEIGHT + GAP))


# --- curves ----------------------------------------------------------------------------------


def curves_figure(column: str, curves: Sequence[Curve]) -> Markup:
    """Return the densities of a number by class, each times the share of the class."""
    low = min(curve.mean - _WIDTHS * curve.deviation for curve in curves)
    high = max(curve.mean + _WIDTHS * curve.deviation for curve in curves)
    heights = [curve.share / (curve.deviation * np.sqrt(2 * np.pi)) for curve in curves]
    canvas = Canvas((low, high), (0, max(heights)), f"Densities of {column} by class")
    canvas.ticks_left((v, number_text(v)) for v in round_values(0, max(heights)))
    canvas.ticks_below(
        ((v, number_text(v)) for v in round_values(low, high)), shortened(column, 40)
    )
    for number, (curve, height) in enumerate(zip(curves, heights, strict=True)):
        z = np.linspace(-_WIDTHS, _WIDTHS, _POINTS)
        x, y = curve.mean + z * curve.deviation, height * np.exp(-(z**2) / 2)
        canvas.line(_KINDS[number % len(_KINDS)], *zip(x.tolist(), y.tolist(), strict=True))
        canvas.label(curve.mean, height, shortened(printable(curve.name), 24))
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


def graph_elements(
    layers: Sequence[Sequence[str]], edges: Iterable[tuple[str, str, str]], top: float
) -> Iterator[Markup]:
    """Yield the arrows of a graph and, over them, its variables."""
    at = {
        name: ((k + 0.5) * SHEET / len(layer), top + number * _LAYER)
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
        room = SHEET / len(layer) - GAP / 2
        for name in layer:
            x, y = at[name]
            text = shortened(printable(name), max(int((room - _ROUND) / _LETTER), 3))
            width = display_width(text) * _LETTER + _ROUND
            yield Markup('<path class="node" d="M{:.1f} {:.1f}h{:.1f}v{}h{:.1f}z"/>').format(
                x - width / 2, top + number * _LAYER, width, int(_NODE), -width
            )
            yield text_at(round(x, 1), y + 17, text, "middle", "title")
