"""Pictures of a trial and of models: their numbers in SVG, in a terminal and in files."""

import os
import re
import struct
import sys
from dataclasses import replace
from itertools import pairwise
from math import exp, pi, sqrt
from xml.etree import ElementTree

import numpy as np
import pytest

import nbspam
from nbspam.errors import InputError, UsageError
from nbspam.evaluation import figures, pictures
from nbspam.evaluation.evaluation import evaluation_of, trial_under_prior
from nbspam.evaluation.figures import Learning, sketch, views_of
from nbspam.evaluation.judging import judge_folds
from nbspam.evaluation.metrics import error_rates
from nbspam.evaluation.online import judge_online
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from nbspam.sources.records import rows_given
from nbspam.tables.unlabelled import cluster_rows
from support import (
    MELONS,
    ROOT,
    columns,
    complains,
    random_trial,
    run_nbspam,
    trial_of,
    trial_of_classes,
)

WIDE = "\x1b[31m好瓜" + "x" * 40
WRONG = np.array([0.4, 0.2, 0.1, 0.05])
LEARNING = Learning(np.array([10, 20, 40, 80]), WRONG, WRONG / 2, WRONG * 2)


@pytest.fixture(scope="module")
def learned(mails):
    """A cross-validation of the embedded mail, with smaller models."""
    return judge_folds(read_items([str(mails)]), PRESETS["mail"], 4, 0, with_smaller=True)


@pytest.fixture(scope="module")
def many(learned):
    """The same as if it were of three classes."""
    third = np.arange(len(learned.y)) % 3 == 0
    joint = np.column_stack([learned.joint, learned.joint[:, 0] + third - 0.5])
    return trial_of_classes(("a", "<b&", WIDE), np.where(third, 2, learned.y), joint)


@pytest.fixture(scope="module")
def wide(learned):
    """The same with classes whose names are wide."""
    return trial_of_classes(("垃圾邮件" * 9, WIDE), learned.y, learned.joint)


def test_the_det_curve_goes_through_the_decision():
    trial = random_trial(0)
    det_curve, confusion = views_of(trial).det_curve, evaluation_of(trial).confusion
    assert det_curve.here == error_rates(confusion)
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


@pytest.mark.parametrize("score", [2.0, -5e15, 5e15, 1e300])  # steps of 5e15 are of 1
def test_the_histogram_of_one_score_has_bars_of_a_width(score):
    histogram = views_of(trial_of([0, 1, 1], [score] * 3)).histogram
    assert figures.histogram_figure(histogram)
    assert (np.diff(histogram.edges) > 0).all()
    assert histogram.counts[:, 0].tolist() == [1, 2]


@pytest.mark.parametrize("score", [(2.0, -np.inf, np.inf), (np.inf, -np.inf, np.inf)])
def test_infinite_scores_are_in_the_outermost_bars(score):
    histogram = views_of(trial_of([1, 0, 1], score)).histogram
    assert figures.histogram_figure(histogram)
    assert histogram.counts[:, [0, -1]].sum(axis=1).tolist() == [1, 2]


def test_the_learning_curve_of_folds_follows_the_decision_and_ends_at_the_trial_itself(learned):
    learning = views_of(learned).learning
    assert learning.n_learned.tolist() == [4, 8, 18, 36, 73, 147]
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
    of_errors = views_of(replace(trial, learned=np.arange(len(trial.y)) < 4)).learning
    assert set(of_errors.n_learned.tolist()) == {4}


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
    many = figures.det_figure([views.det_curve] * 6, views)
    assert [len(elements(many, "path", f"run{n}")) for n in range(5)] == [1, 1, 1, 3, 0]
    curve = elements(several, "path", "run0")[0].get("d")
    assert elements(one, "path", "run0")[0].get("d") == curve  # on the same axes

    for points in (LEARNING, Learning(*(values[3:] for values in LEARNING))):
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


def test_long_names_of_classes_have_room():
    names = "complaint about delivery", "question about invoice" * 9
    views = views_of(replace(random_trial(0), classes=names))
    titles = [text.text for text in pictures.sheet(views, "x").iter("text")]
    assert max(map(columns, titles)) <= 44  # as many capitals are as wide as a panel
    assert "comp…ery called ques…ice" in " ".join(titles)


# --- in a terminal ------------------------------------------------------------------------


def test_a_sketch_fits_eighty_columns_and_is_safe(learned, many, wide):
    for trial in (learned, many, wide, trial_of([0, 1], [-1, 1]), trial_of([0, 0], [1, 1])):
        lines = sketch(views_of(trial)).splitlines()
        assert max(map(columns, lines)) <= 80
        assert "\x1b" not in "".join(lines)
        assert not any(line.endswith(" ") for line in lines)
    heads = "Errors at every cutoff", "Calibration: share of spam", "Scores: log-odds", "Learning"
    assert [head in sketch(views_of(learned)) for head in heads] == [True] * 4
    for trial in (learned, wide):  # a histogram keeps its middle whatever the names
        block = sketch(views_of(trial)).split("\n\n")[2].splitlines()
        assert len({columns(line[: line.index(" | ")]) for line in block[1:]}) == 1


def test_a_sketch_of_a_learning_curve_has_its_numbers_and_intervals():
    views = replace(views_of(random_trial(0)), learning=LEARNING)
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


def test_a_file_says_what_it_shows_and_has_the_matrix_of_many_classes(many):
    views = views_of(many)
    root = pictures.sheet(views, "mails " + "x" * 100)

    texts = [str(element.text) for element in root.iter("text")]
    n_right, n_docs = int(np.trace(views.confusion)), len(many.y)
    said = f"{n_right:,} of {n_docs} messages right ({100 * n_right / n_docs:.2f} %)"
    assert {said, "mails " + "x" * 34 + "…" + "x" * 39, "a", "1", "<b&", "2"} <= set(texts)
    assert [t for t in texts if t.startswith("\\x1b[31m好瓜…xxx")]
    assert not any(ord(c) == 0x202E or ord(c) < 32 for text in texts for c in text)

    confusion = views.confusion
    shares = np.ceil(4 * confusion / confusion.sum(axis=1, keepdims=True)).astype(int)
    shades = ["#dbe9f7", "#a9cdf0", "#5f9fd8", "#0b5cad"]  # of up to a quarter, a half, ...
    for number, shade in enumerate(shades, 1):
        cells = [path.get("d").count("M") for path in root.findall(f"path[@fill='{shade}']")]
        assert sum(cells) == np.count_nonzero(shares == number)
    assert {f"{n:,}" for n in confusion[confusion > 0].tolist()} <= set(texts)


@pytest.mark.parametrize(("n", "n_shown"), [(15, 15), (1000, 0)])
def test_a_matrix_of_fifteen_classes_is_shown_whole_and_one_of_a_thousand_in_bounds(n, n_shown):
    names = tuple(f"class {k}" for k in range(n))
    trial = trial_of_classes(names, np.arange(n), np.where(np.eye(n) > 0, 0.0, -9.0))
    root = pictures.sheet(views_of(trial), "x")
    assert {str(k + 1) for k in range(n_shown)} <= {text.text for text in root.findall("text")}
    assert float(root.get("height")) < 3000
    assert len(list(root.iter("text"))) < 400
    assert len(ElementTree.tostring(root)) < 100_000


def test_a_file_shows_all_pictures_without_a_style(views):
    """Programs that draw SVG do not all know style sheets."""
    root = pictures.sheet(replace(views, learning=LEARNING), "mails")

    assert len(root.findall("svg")) == 4
    assert not list(root.iter("style"))
    assert not [element for element in root.iter() if "class" in element.attrib]
    assert all(e.get("fill") for e in root.iter("text"))
    forms = [*root.iter("path"), *root.iter("circle")]
    assert all(e.get("fill") or e.get("stroke") for e in forms)
    assert {e.get("stroke") for e in root.iter("path")} > {"#0b5cad", "#d3d9df"}


def test_a_png_has_the_form_and_the_colours_of_its_svg_and_is_the_same_every_time(
    views, many, tmp_path
):
    pytest.importorskip("matplotlib")
    for each in (views, views_of(many)):
        for name in ("one.png", "two.png"):
            pictures.write(pictures.sheet(each, "mails"), str(tmp_path / name))
        data = (tmp_path / "one.png").read_bytes()
        assert data == (tmp_path / "two.png").read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert (data[:4], width) == (b"\x89PNG", 1200)
        root = pictures.sheet(each, "mails")
        assert height == pytest.approx(1200 * float(root.get("height")) / 740, abs=1)
    for name in ("a.svg", "a.png"):
        with pytest.raises(InputError, match=rf"none/{name}: No such file.*; give another name"):
            pictures.write(root, str(tmp_path / "none" / name))
    from matplotlib.image import imread

    pictures.write(pictures.sheet(views, "mails"), str(tmp_path / "a.png"))
    pixels = np.round(255 * imread(tmp_path / "a.png")[..., :3]).astype(int)
    painted = {"#{:02x}{:02x}{:02x}".format(*p) for p in np.unique(pixels.reshape(-1, 3), axis=0)}
    root = pictures.sheet(views, "mails")
    forms = [*root.iter("path"), *root.iter("circle")]
    assert {form.get("fill") for form in forms} - {None, "none", "#fff"} <= painted


def test_a_png_is_drawn_from_a_notebook_whatever_backend_it_sets(folder, tmp_path):
    pytest.importorskip("matplotlib")
    command = ["eval", str(folder), "--cv", "2", "--plot", str(tmp_path / "a.png")]
    assert run_nbspam(*command, env={**os.environ, "MPLBACKEND": "module://none"})[::2] == (0, "")


@pytest.mark.parametrize("is_new", [False, True])
def test_a_font_is_found_that_has_what_matplotlibs_own_lacks(is_new, tmp_path, monkeypatch):
    font_manager = pytest.importorskip("matplotlib.font_manager")
    from matplotlib.ft2font import FT2Font

    paths = [font_manager.findfont(name) for name in ("DejaVu Sans", "STIXGeneral")]
    own, other = (set(FT2Font(path).get_charmap()) for path in paths)
    if is_new:  # installed after matplotlib made its list
        listed = [font for font in font_manager.fontManager.ttflist if font.fname == paths[0]]
        monkeypatch.setattr(font_manager.fontManager, "ttflist", listed)
        broken = tmp_path / "broken.ttf"
        broken.write_bytes(b"no font")
        monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [paths[1], str(broken)])
    both = "".join(map(chr, sorted(other - own)))
    assert both

    families, lacking = pictures.families_for("ham" + both)
    assert families[0] == "DejaVu Sans"
    assert len(families) == 2
    assert lacking == ""
    assert pictures.families_for("ham, spam") == (["DejaVu Sans"], "")


def test_where_no_font_has_a_letter_a_note_says_so(nbspam, tmp_path, monkeypatch):
    font_manager = pytest.importorskip("matplotlib.font_manager")
    own = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    table = tmp_path / "t.csv"
    table.write_text("label,text\n好,lunch\n差,pills\n好,friday\n差,cheap\n")

    picture = tmp_path / "a.png"
    status, _, err = nbspam("eval", table, "--cv", 2, "--plot", picture)

    assert status == 0
    said = "no font on this machine has 好差; install one, such as Noto Sans CJK for Chinese,"
    assert err == f"nbspam: --plot {picture}: {said} Japanese and Korean\n"
    assert picture.stat().st_size > 10_000


def test_without_matplotlib_only_png_is_refused(nbspam, trained, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = "matplotlib; install it with: pip install 'nbspam[plot]', or give a name in .svg, or -"
    assert complains(nbspam("eval", folder, "--plot", "a.png"), 2, said)
    assert nbspam("eval", folder, "--plot", "-")[0] == 0
    assert nbspam("eval", folder, "--plot", "a.svg") == nbspam("eval", folder)
    assert ElementTree.parse("a.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


# --- models of tables -------------------------------------------------------------------------

PICTURES = ROOT / "docs" / "pictures"
NAMES = ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感", "好瓜")


def melons(**how):
    return pictures.model_picture(nbspam.train(MELONS, target="好瓜", **how).classifier)


DRAWN = {
    "tan.svg": lambda: melons(model="tan"),
    "network.svg": lambda: melons(model="network"),
    "mixed.svg": lambda: melons(model="mixed", alpha=0),
    "mixture.svg": lambda: pictures.clusters_picture(
        cluster_rows(rows_given(MELONS), 2, drop=NAMES)
    ),
}


def check_drawn(path, name):
    """A coordinate may be rounded the other way where sums are added in another order."""
    number = r"\d+\.\d"
    made, shown = path.read_text("utf-8"), (PICTURES / name).read_text("utf-8")
    assert re.sub(number, "", made) == re.sub(number, "", shown)
    found, expected = (np.array(re.findall(number, text), float) for text in (made, shown))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.11)


@pytest.mark.parametrize("name", DRAWN)
def test_the_guide_shows_what_the_program_draws(name, tmp_path, request):
    path = PICTURES / name if request.config.getoption("--rewrite-golden") else tmp_path / name
    pictures.write(DRAWN[name](), str(path))
    check_drawn(path, name)
    for guide in ("family.md", "family.zh.md"):
        assert f"(pictures/{name})" in (ROOT / "docs" / guide).read_text("utf-8")


def test_every_parent_stands_above_its_children():
    picture = melons(model="tan")
    at = {e.text: (float(e.get("x")), float(e.get("y"))) for e in picture.iter("text")}
    tree = {"色泽": "纹理", "根蒂": "脐部", "敲声": "根蒂", "脐部": "纹理", "触感": "纹理"}
    assert all(at[parent][1] < at[child][1] for child, parent in tree.items())
    assert "0.598" in at  # the information of 根蒂 and 脐部
    star = melons(model="spode", parent="纹理")
    assert sum(e.get("fill") == "#565f69" and e.tag == "path" for e in star.iter()) == 7
    # A network shows columns without arrows too; the class is one of its variables.
    assert {"好瓜", "含糖率"} <= {e.text for e in melons(model="network").iter("text")}


def test_a_graph_of_many_columns_is_as_wide_as_their_names():
    names = [f"measurement {k}" for k in range(30)]
    rows = [{**dict.fromkeys(names, n % 3), "y": "ab"[n % 2]} for n in range(12)]
    model = nbspam.train(rows, target="y", model="spode", parent=names[0]).classifier
    picture = pictures.model_picture(model)
    assert {e.text for e in picture.iter("text")} >= set(names)
    ends = [float(e.get("x")) for e in picture.iter("text") if e.text in names[1:]]
    assert max(ends) < float(picture.get("width")) == 29 * (14 * 7.2 + 28)
    assert min(b - a for a, b in pairwise(sorted(ends))) > 14 * 7.2 + 18


def test_a_curve_is_a_density_times_the_share_of_its_class():
    rows = [{"x": x, "y": y} for x, y in zip((1.25, 3.5, 2.0, 8.0), "aaab", strict=True)]
    rows += [{"x": 10.0, "y": "b"}] * 2
    model = nbspam.train(rows, target="y", model="gaussian", estimate="mle").classifier
    panel = pictures.model_picture(model).find("svg")
    assert panel.get("overflow") == "visible"  # else the name of the highest curve is cut off
    curves = [e.get("d") for e in panel.iter("path") if e.get("stroke-width") == "2"]
    tops = [min(float(p.split()[1]) for p in d[1:].split("L")) for d in curves]
    # The highest curve fills the panel, whose base is at 192 and whose top at 10.
    mean, deviation = 2.25, sqrt(sum((x - 2.25) ** 2 for x in (1.25, 3.5, 2.0)) / 3)
    height_a = 0.5 * exp(-((2.25 - mean) ** 2)) / (deviation * sqrt(2 * pi))
    height_b = 0.5 / (sqrt(8 / 9) * sqrt(2 * pi))
    heights = [height_a, height_b]
    assert tops == pytest.approx([192 - 182 * h / max(heights) for h in heights], abs=0.06)


def test_ticks_differ_where_numbers_are_huge_and_names_do_not_cover_each_other():
    curves = [pictures.Curve(name, 0.5, mean, 1e12) for name, mean in (("a", 0), ("b", 4e12))]
    panel = ElementTree.fromstring(pictures.curves_figure("bytes", curves))
    ticks = [text.text for text in panel.iter("text") if text.get("text-anchor") == "end"]
    assert ticks == ["0", "5e−14", "1e−13", "1.5e−13"]
    alike = ElementTree.fromstring(pictures.curves_figure("bytes", [curves[0]] * 9))
    names = [float(text.get("y")) for text in alike.iter("text") if text.text == "a"]
    assert names == [7 + 12 * k for k in range(9)]  # none covers another
    # To a number as huge as the time in nanoseconds, a deviation of 1 adds nothing.
    assert "1.7e+18" in pictures.curves_figure("ns", [pictures.Curve("a", 1.0, 1.7e18, 1.0)])


def test_pictures_are_refused_where_there_is_nothing_to_draw(nbspam, tmp_path):
    for make in (lambda: melons(model="aode"), lambda: melons(discretise="mdl")):
        with pytest.raises(UsageError, match="neither arrows nor normal distributions"):
            make()
    how = "--target", "好瓜", "--model", "tan", "-m", tmp_path / "m"
    assert nbspam("table", "train", MELONS, *how)[0] == 0
    info = "table", "info", "-m", tmp_path / "m", "--plot"
    assert nbspam(*info, tmp_path / "t.svg")[0] == 0
    check_drawn(tmp_path / "t.svg", "tan.svg")
    drop = [word for name in NAMES for word in ("--drop", name)]
    cluster = "table", "cluster", MELONS, "-k", "2", *drop, "--plot", tmp_path / "c.svg"
    assert nbspam(*cluster)[0] == 0
    check_drawn(tmp_path / "c.svg", "mixture.svg")
