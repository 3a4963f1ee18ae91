"""Pictures show the numbers of their curves, in few elements: in a page, as SVG and as PNG."""

import re
import struct
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from nbspam.errors import InputError
from nbspam.evaluation import figures
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.figures import Learning, views_of
from nbspam.evaluation.pictures import draw, families_for, sheet
from support import complains, random_trial, trial_of, trial_of_classes


@pytest.fixture(scope="module")
def views():
    return views_of(random_trial(0, n_docs=2000))


def elements(picture, tag, kind):
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(tag) if kind in e.get("class", "").split()]


def n_bars(picture, kind):
    return sum(path.get("d").count("M") for path in elements(picture, "path", kind))


def test_each_number_has_its_form(views):
    n_bins = len(views.calibration.n_docs)
    assert len(elements(figures.calibration_figure(views), "circle", "dot")) == n_bins
    picture = figures.histogram_figure(views.histogram)
    for kind, row in zip(("first", "second"), views.histogram.counts, strict=True):
        assert n_bars(picture, kind) == np.count_nonzero(row)

    worse = views_of(random_trial(0, n_docs=2000, bias=2.0))
    one = figures.tradeoff_figure([views.tradeoff], views)
    several = figures.tradeoff_figure([views.tradeoff, worse.tradeoff], views)
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
        figures.tradeoff_figure([views.tradeoff], views),
        figures.calibration_figure(views),
        figures.histogram_figure(views.histogram),
        figures.histogram_figure(single.histogram),
        figures.tradeoff_figure([single.tradeoff], single),
    ):
        assert len(list(ElementTree.fromstring(str(picture)).iter())) > 5
        assert "\u202e" not in picture


# --- in a file ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """A trial of four classes whose names are of every kind."""
    rng = np.random.default_rng(0)
    joint = np.log(rng.dirichlet([1, 1, 1, 1], 300))
    classes = ("a", "<b&", "\x1b[31m好瓜" + "x" * 40, "d")
    y = np.where(rng.random(300) < 0.8, joint.argmax(axis=1), rng.integers(0, 4, 300))
    return trial_of_classes(classes, y, joint)


SHADES = ["#dbe9f7", "#a9cdf0", "#5f9fd8", "#0b5cad"]  # of up to a quarter, a half, ...


def test_a_file_says_what_it_shows_and_has_the_matrix_of_many_classes(many):
    views = views_of(many)
    root = sheet(views, "mails " + "x" * 100)

    texts = [str(element.text) for element in root.iter("text")]
    n_right = int(np.trace(views.confusion))
    said = f"{n_right:,} of 300 messages right ({n_right / 300:.2%})"
    assert {said, "mails " + "x" * 73 + "…", "a 1", "<b& 2"} <= set(texts)
    assert [t for t in texts if t.startswith("\\x1b[31m好瓜xxxx") and t.endswith(".. 3")]
    assert not any(ord(c) == 0x202E or ord(c) < 32 for text in texts for c in text)

    confusion = evaluation_of(many).confusion
    shares = np.ceil(4 * confusion / confusion.sum(axis=1, keepdims=True)).astype(int)
    for number, shade in enumerate(SHADES, 1):
        cells = [path.get("d").count("M") for path in root.findall(f"path[@fill='{shade}']")]
        assert sum(cells) == np.count_nonzero(shares == number)
    assert {f"{n:,}" for n in confusion[confusion > 0].tolist()} <= set(texts)


def test_a_matrix_of_a_thousand_classes_has_an_end():
    names = tuple(f"class {k}" for k in range(1000))
    trial = trial_of_classes(names, np.arange(1000), np.where(np.eye(1000) > 0, 0.0, -9.0))
    root = sheet(views_of(trial), "x")

    assert float(root.get("height")) < 3000
    assert len(list(root.iter("text"))) < 300
    assert len(ElementTree.tostring(root)) < 100_000


def test_a_file_shows_all_pictures_without_a_style(views):
    """Programs that draw SVG do not all know style sheets."""
    points = np.array([10, 20]), *np.array([[0.4, 0.2], [0.3, 0.1], [0.5, 0.3]])
    root = sheet(replace(views, learning=Learning(*points)), "mails")

    assert len(root.findall("svg")) == 4
    assert not list(root.iter("style"))
    assert not [element for element in root.iter() if "class" in element.attrib]
    assert all(e.get("fill") for e in root.iter("text"))
    forms = [*root.iter("path"), *root.iter("circle")]
    assert all(e.get("fill") or e.get("stroke") for e in forms)
    assert {e.get("stroke") for e in root.iter("path")} > {"#0b5cad", "#d3d9df"}


def test_a_png_has_the_form_of_its_svg_and_is_the_same_every_time(views, many, tmp_path):
    pytest.importorskip("matplotlib")
    for each in (views, views_of(many)):
        for name in ("one.png", "two.png"):
            draw(each, str(tmp_path / name), "mails")
        data = (tmp_path / "one.png").read_bytes()
        assert data == (tmp_path / "two.png").read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert (data[:4], width) == (b"\x89PNG", 1200)
        root = sheet(each, "mails")
        assert height == pytest.approx(1200 * float(root.get("height")) / 740, abs=1)
    for name in ("a.svg", "a.png"):
        with pytest.raises(InputError, match=rf"none/{name}: No such file.*; give another name"):
            draw(views, str(tmp_path / "none" / name), "mails")


def test_a_png_has_the_colours_of_its_svg(views, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    draw(views, str(tmp_path / "a.png"), "mails")
    pixels = np.round(255 * imread(tmp_path / "a.png")[..., :3]).astype(int)
    painted = {"#{:02x}{:02x}{:02x}".format(*p) for p in np.unique(pixels.reshape(-1, 3), axis=0)}
    forms = [*sheet(views, "mails").iter("path"), *sheet(views, "mails").iter("circle")]
    assert {form.get("fill") for form in forms} - {None, "none", "#fff"} <= painted


def test_a_font_is_found_that_has_what_matplotlibs_own_lacks():
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    own, other = (
        set(FT2Font(findfont(name)).get_charmap()) for name in ("DejaVu Sans", "STIXGeneral")
    )
    both = "".join(map(chr, sorted(other - own)))
    assert both

    families, lacking = families_for("ham" + both)
    assert families[0] == "DejaVu Sans"
    assert len(families) == 2
    assert lacking == ""
    assert families_for("ham, spam") == (["DejaVu Sans"], "")


def test_where_no_font_has_a_letter_a_note_says_so(nbspam, tmp_path, monkeypatch):
    font_manager = pytest.importorskip("matplotlib.font_manager")
    own = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    table = tmp_path / "t.csv"
    table.write_text("label,text\n" + "好,lunch on friday\n差,cheap pills\n" * 4)

    picture = tmp_path / "a.png"
    status, _, err = nbspam("eval", table, "--cv", 2, "--plot", picture)

    assert status == 0
    said = "no font on this machine has 好差; install one, such as Noto Sans CJK for Chinese,"
    assert err == f"nbspam: --plot {picture}: {said} Japanese and Korean\n"
    assert picture.stat().st_size > 10_000


def test_eval_draws_and_sketches_in_every_way_of_judging(
    nbspam, trained, folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for how in ((), ("--cv", "2"), ("--online",), ("--test", "mails")):
        assert "Calibration" in nbspam("eval", folder, "--plot", "-", *how)[1]
        assert nbspam("eval", folder, "--plot", "a.SVG", *how)[0] == 0
        assert len(ElementTree.parse(tmp_path / "a.SVG").getroot()) > 5
        (tmp_path / "a.SVG").unlink()


def test_without_matplotlib_png_is_refused_and_svg_is_not(
    nbspam, trained, folder, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = "matplotlib is not installed; install nbspam[plot], or give a name in .svg, or -"
    assert complains(nbspam("eval", folder, "--plot", "a.png"), 2, said)
    assert nbspam("eval", folder, "--plot", "-")[0] == 0
    assert nbspam("eval", folder, "--plot", "a.svg") == nbspam("eval", folder)
    assert ElementTree.parse("a.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
