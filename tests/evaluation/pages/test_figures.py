"""Pictures show the numbers of their curves, in few elements."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from nbspam.evaluation.pages import figures
from nbspam.evaluation.pictures.curves import Learning, views_of
from support import random_trial, trial_of


@pytest.fixture(scope="module")
def views():
    return views_of(random_trial(0, n_docs=2000))


def numbers(path):
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", path)]


def elements(picture, tag, kind):
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(tag) if kind in e.get("class", "").split()]


def test_dots_of_calibration_stand_at_both_frequencies(views):
    picture = figures.calibration_figure(views)
    dots = elements(picture, "circle", "dot")
    (ideal,) = elements(picture, "path", "ideal")
    left, low, right, high = numbers(ideal.get("d"))
    assert len(dots) == len(views.calibration.n_docs)
    for dot, x, y in zip(dots, *views.calibration[1:], strict=True):
        assert (float(dot.get("cx")) - left) / (right - left) == pytest.approx(x, abs=0.01)
        assert (float(dot.get("cy")) - low) / (high - low) == pytest.approx(y, abs=0.01)


def test_bars_are_as_many_as_bins_with_documents(views):
    picture = figures.histogram_figure(views.histogram)
    for kind, row in zip(("first", "second"), views.histogram.counts, strict=True):
        (path,) = elements(picture, "path", kind)
        assert path.get("d").count("M") == np.count_nonzero(row)


def test_the_curve_of_errors_passes_the_rule(views):
    picture = figures.tradeoff_figure([views.tradeoff], views)
    (here,) = elements(picture, "circle", "here")
    (path,) = elements(picture, "path", "run0")
    x, y = float(here.get("cx")), float(here.get("cy"))
    at, lines = numbers(path.get("d").split("H")[0]), path.get("d").split("H")[1:]
    points = [tuple(at), *(tuple(numbers(line)) for line in lines)]
    assert min(abs(a - x) + abs(b - y) for a, b in points) < 1.5
    assert [a for a, _ in points] == sorted(a for a, _ in points)


def test_several_runs_share_the_axes(views):
    worse = views_of(random_trial(0, n_docs=2000, bias=2.0))
    picture = figures.tradeoff_figure([views.tradeoff, worse.tradeoff], views)
    assert len(elements(picture, "circle", "here")) == 2
    assert elements(picture, "path", "run1")


def test_a_learning_curve_has_a_dot_for_each_point():
    n = np.array([10, 20, 40, 80])
    wrong = np.array([0.4, 0.2, 0.1, 0.05])
    picture = figures.learning_figure(Learning(n, wrong, wrong / 2, wrong * 2), "messages")
    dots = elements(picture, "circle", "dot")
    heights = [float(dot.get("cy")) for dot in dots]
    assert len(dots) == 4
    assert heights == sorted(heights)
    assert "80" in picture
    single = Learning(*(np.array([value]) for value in (1, 0.0, 0.0, 0.0)))
    assert len(elements(figures.learning_figure(single, "texts"), "circle", "dot")) == 1


@pytest.mark.parametrize(
    ("part", "whole", "columns"), [(12, 100, 20), (0, 99, 20), (999, 1000, 50)]
)
def test_squares_are_as_many_as_they_stand_for(part, whole, columns):
    picture = figures.of_many(part, whole, columns)
    side = 300 // columns
    for kind, n in (("good", whole - part), ("bad", part)):
        found = elements(picture, "path", kind)
        lengths = [float(x) for e in found for x in re.findall(r"h([\d.]+)", e.get("d"))]
        assert sum(round((length + 0.2 * side) / side) for length in lengths) == n


def test_names_of_classes_are_escaped():
    hostile = replace(random_trial(0), classes=("<a&", '"b>\u202e'))
    views = views_of(hostile)
    for picture in (
        figures.tradeoff_figure([views.tradeoff], views),
        figures.calibration_figure(views),
        figures.histogram_figure(views.histogram),
    ):
        assert ElementTree.fromstring(str(picture)) is not None
        assert "\u202e" not in picture


def test_a_single_score_is_drawn():
    views = views_of(trial_of([0, 1], [0.0, 0.0]))
    assert elements(figures.histogram_figure(views.histogram), "path", "first")
    assert elements(figures.tradeoff_figure([views.tradeoff], views), "circle", "here")


def test_a_bar_has_a_piece_for_each_kind_of_its_day():
    counts = np.array([[0, 0], [3, 1], [2, 0]])
    picture = figures.days_figure(["1", "2", "3"], counts, ["first", "second"], "Two kinds")
    (low,) = elements(picture, "path", "first")
    (high,) = elements(picture, "path", "second")
    corners = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", low.get("d"))
    ((x, bottom, top), (_, _, lower)) = [[float(each) for each in bar] for bar in corners]
    (above,) = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", high.get("d"))
    unit = (bottom - top) / 3
    assert bottom - lower == pytest.approx(2 * unit, abs=0.2)
    assert [float(each) for each in above] == [x, top, pytest.approx(top - unit, abs=0.2)]


@pytest.mark.parametrize("n_days", [1, 7, 30, 365])
def test_days_have_room_for_their_names_and_the_last_is_named_near_its_bar(n_days):
    names = [f"day {n}" for n in range(n_days)]
    picture = figures.days_figure(names, np.ones((n_days, 1), int), ["first"], "One kind")
    assert 1 <= len(re.findall(">day [0-9]+<", str(picture))) <= 7


def test_days_without_anything_have_no_bars():
    picture = figures.days_figure(["1", "2"], np.zeros((2, 2), int), ["first", "second"], "Two")
    assert elements(picture, "path", "first") == []
