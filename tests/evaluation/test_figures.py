"""Pictures of a trial: their numbers, in few elements of SVG, and in a terminal."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from nbspam.evaluation import figures
from nbspam.evaluation.evaluation import evaluation_of, trial_under_prior
from nbspam.evaluation.figures import Learning, sketch, views_of, wilson_interval
from nbspam.evaluation.judging import SHARES, judge_folds, judge_online
from nbspam.evaluation.metrics import hm_rate, sm_rate
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from support import columns, random_trial, trial_of, trial_of_classes

WIDE = "\x1b[31m好瓜" + "x" * 40


@pytest.fixture(scope="module")
def learned(mails):
    """A cross-validation of the embedded mail, with smaller models."""
    return judge_folds(read_items([str(mails)]), PRESETS["mail"], 4, 0, with_smaller=True)


@pytest.fixture(scope="module")
def many(learned):
    """The same as if it were of three classes."""
    third = np.arange(len(learned.y)) % 3 == 0
    joint = np.column_stack([learned.joint, learned.joint[:, 0] + third - 0.5])
    return trial_of_classes(("a", "b", WIDE), np.where(third, 2, learned.y), joint)


@pytest.fixture(scope="module")
def wide(learned):
    """The same with classes whose names are wide."""
    return trial_of_classes(("垃圾邮件" * 9, WIDE), learned.y, learned.joint)


def test_the_det_curve_goes_through_the_decision():
    trial = random_trial(0)
    det_curve, confusion = views_of(trial).det_curve, evaluation_of(trial).confusion
    assert det_curve.here == (hm_rate(confusion), sm_rate(confusion))
    assert det_curve.here in set(
        zip(det_curve.hm_rate.tolist(), det_curve.sm_rate.tolist(), strict=True)
    )
    assert (np.diff(det_curve.hm_rate) >= 0).all()
    assert (np.diff(det_curve.sm_rate) <= 0).all()


def test_the_histogram_counts_every_document_once(many):
    trial = random_trial(1)
    histogram = views_of(trial).histogram
    assert histogram.counts.sum(axis=1).tolist() == np.bincount(trial.y).tolist()
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    ham, spam = (np.average(middle, weights=row) for row in histogram.counts)
    assert ham < spam

    views = views_of(many)
    right = int((many.probability.argmax(axis=1) == many.y).sum())
    assert views.histogram.counts.sum(axis=1).tolist() == [right, len(many.y) - right]
    assert views.det_curve is None
    assert views.calibration.n_docs.sum() == len(many.y)


def test_the_learning_curve_of_folds_follows_the_decision_and_ends_at_the_trial_itself(learned):
    learning = views_of(learned).learning
    assert learning.n_learned.tolist() == [round(147 * share) for share in SHARES] + [147]
    evaluation = evaluation_of(learned)
    assert learning.wrong[-1] == evaluation.errors / evaluation.n_docs
    assert learning.wrong[0] > learning.wrong[-1]
    sceptical = views_of(trial_under_prior(learned, np.array([0.999, 0.001]))).learning
    assert (sceptical.wrong != views_of(learned).learning.wrong).any()
    assert views_of(random_trial(0)).learning is None


def test_the_learning_curve_of_a_stream_has_every_message_once(mails):
    trial = judge_online([*read_items([str(mails)])][::3], PRESETS["mail"], "everything")
    learning = views_of(trial).learning
    assert learning.n_learned[-1] == len(trial.y)
    pieces = np.diff(learning.n_learned, prepend=0)
    assert learning.wrong @ pieces == pytest.approx(evaluation_of(trial).errors)


def test_wilson_intervals_equal_scipy():
    stats = pytest.importorskip("scipy.stats")
    part, whole = np.array([0, 1, 7, 50]), np.array([9, 10, 70, 50])
    low, high = wilson_interval(part, whole)
    for k, n, a, b in zip(part.tolist(), whole.tolist(), low, high, strict=True):
        expected = stats.binomtest(k, n).proportion_ci(method="wilson")
        assert (a, b) == pytest.approx((expected.low, expected.high), abs=1e-4)


# --- as SVG -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def views():
    return views_of(random_trial(0, n_docs=2000))


def elements(picture, tag, kind):
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(tag) if kind in e.get("class", "").split()]


BAR = r"M([-\d.]+) [-\d.]+V[-\d.]+h([-\d.]+)V[-\d.]+z"


def n_bars(picture, kind):
    """Count the bars of a kind, which stand side by side."""
    paths = [path.get("d") for path in elements(picture, "path", kind)]
    assert all(re.fullmatch(f"(?:{BAR})+", path) for path in paths)
    bars = [list(map(float, bar)) for path in paths for bar in re.findall(BAR, path)]
    assert all(x + width <= after for (x, width), (after, _) in pairwise(bars))
    return len(bars)


def test_each_number_has_its_form(views):
    n_bins = len(views.calibration.n_docs)
    picture = figures.calibration_figure(views)
    dots, lines = elements(picture, "circle", "dot"), elements(picture, "path", "interval")
    assert len(dots) == n_bins
    for dot, line in zip(dots, lines, strict=True):
        start, end = (point.split() for point in line.get("d").strip("M").split("L"))
        assert start[0] == end[0] == dot.get("cx")
        assert float(start[1]) > float(dot.get("cy")) > float(end[1])
        assert float(dot.get("r")) > 2.5
    picture = figures.histogram_figure(views.histogram)
    assert re.findall(">(10*|0)<", str(picture)) == ["0", "10", "10", "100", "100", "0"]
    for kind, row in zip(("first", "second"), views.histogram.counts, strict=True):
        assert n_bars(picture, kind) == np.count_nonzero(row)

    worse = views_of(random_trial(0, n_docs=2000, bias=2.0))
    one = figures.det_figure([views.det_curve], views)
    several = figures.det_figure([views.det_curve, worse.det_curve], views)
    assert len(elements(several, "circle", "here")) == 2
    assert elements(several, "path", "run1")
    curve = elements(several, "path", "run0")[0].get("d")
    assert elements(one, "path", "run0")[0].get("d") == curve  # on the same axes

    wrong = np.array([0.4, 0.2, 0.1, 0.05])
    learning = Learning(np.array([10, 20, 40, 80]), wrong, wrong / 2, wrong * 2)
    for points in (learning, Learning(*(values[3:] for values in learning))):
        picture = figures.learning_figure(points, "messages")
        heights = [float(dot.get("cy")) for dot in elements(picture, "circle", "dot")]
        assert (len(heights), heights) == (len(points.wrong), sorted(heights))


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


@pytest.mark.parametrize("n_days", [1, 30, 365])
def test_each_day_has_a_bar_of_each_kind_and_room_for_its_name(n_days):
    names = [f"day {n}" for n in range(n_days)]
    counts = np.arange(2 * n_days).reshape(n_days, 2) % 3
    picture = figures.days_figure(names, counts, ["first", "second"], "Two kinds")
    assert 1 <= len(re.findall(">day [0-9]+<", str(picture))) <= 7
    for kind, column in zip(("first", "second"), counts.T, strict=True):
        assert n_bars(picture, kind) == np.count_nonzero(column)


def test_names_of_classes_are_escaped_and_a_single_score_is_drawn():
    views = views_of(replace(random_trial(0), classes=("<a&", '"b>\u202e')))
    single = views_of(trial_of([0, 1], [0.0, 0.0]))  # one score
    for picture in (
        figures.det_figure([views.det_curve], views),
        figures.calibration_figure(views),
        figures.histogram_figure(views.histogram),
        figures.histogram_figure(single.histogram),
        figures.det_figure([single.det_curve], single),
    ):
        assert len(list(ElementTree.fromstring(str(picture)).iter())) > 5
        assert "\u202e" not in picture


# --- in a terminal ------------------------------------------------------------------------


def test_a_sketch_fits_eighty_columns_and_is_safe(learned, many, wide):
    for trial in (learned, many, wide, trial_of([0, 1], [-1, 1]), trial_of([0, 0], [1, 1])):
        lines = sketch(views_of(trial)).splitlines()
        assert max(map(columns, lines)) <= 80
        assert "\x1b" not in "".join(lines)
        assert not any(line.endswith(" ") for line in lines)
    for trial in (learned, wide):  # a histogram keeps its middle whatever the names
        block = sketch(views_of(trial)).split("\n\n")[2].splitlines()
        assert len({columns(line[: line.index(" | ")]) for line in block[1:]}) == 1


def test_a_sketch_shows_what_there_is(learned, many):
    text = sketch(views_of(learned))
    for head in (
        "Errors at every cutoff",
        "Calibration: share of spam",
        "Scores: log-odds",
        "Learning",
    ):
        assert head in text
    assert text.count("O") > 5
    text = sketch(views_of(many))
    assert "Errors" not in text
    assert "Learning" not in text
    assert "Calibration: share of right answers" in text


def test_a_sketch_of_a_learning_curve_has_its_numbers_and_intervals():
    wrong = np.array([0.4, 0.2, 0.1, 0.05])
    learning = Learning(np.array([10, 20, 40, 80]), wrong, wrong / 2, wrong * 2)
    views = replace(views_of(random_trial(0)), learning=learning)
    assert sketch(views).splitlines()[-5:] == [
        "   learned   wrong  95 % interval (-)",
        "        10  40.000            ----------O--------------------",
        "        20  20.000       -----O----------",
        "        40  10.000    ---O-----",
        "        80   5.000   -O---",
    ]


def test_a_sketch_of_perfect_calibration_has_bars_that_end_at_the_mark():
    trial = trial_of([0, 0, 0, 1, 0, 1, 1, 1], np.log([1 / 3] * 4 + [3.0] * 4))
    lines = sketch(views_of(trial)).splitlines()
    at = lines.index("predicted observed   documents")
    assert lines[at + 1] == "    0.250    0.250           4  ##########|"
    assert lines[at + 2] == "    0.750    0.750           4  ##############################|"
