"""The numbers behind the pictures, and the pictures in a terminal and in files."""

import re
import struct
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from nbspam.errors import InputError
from nbspam.evaluation.judging.held_out import judge_folds, judge_online
from nbspam.evaluation.judging.smaller import SHARES
from nbspam.evaluation.metrics import hm_rate, sm_rate
from nbspam.evaluation.pictures.curves import views_of, wilson_interval
from nbspam.evaluation.pictures.terminal import sketch
from nbspam.evaluation.trial import evaluation_of, under_prior
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from support import columns, random_trial, trial_of

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
    return _replaced(learned, ("a", "b", WIDE), np.where(third, 2, learned.y), joint)


@pytest.fixture(scope="module")
def wide(learned):
    """The same with classes whose names are wide."""
    return _replaced(learned, ("垃圾邮件" * 9, WIDE), learned.y, learned.joint)


def _replaced(trial, classes, y, joint):
    from dataclasses import replace

    from nbspam.decision import default_rule

    rule = default_rule(classes, calibrated=False)
    prior = np.full(len(classes), 1 / len(classes))
    return replace(trial, classes=classes, y=y, joint=joint, rule=rule, prior=prior, smaller=())


def test_the_tradeoff_goes_through_the_decision():
    trial = random_trial(0)
    tradeoff, confusion = views_of(trial).tradeoff, evaluation_of(trial).confusion
    assert tradeoff.here == (hm_rate(confusion), sm_rate(confusion))
    assert tradeoff.here in set(
        zip(tradeoff.hm_rate.tolist(), tradeoff.sm_rate.tolist(), strict=True)
    )
    assert (np.diff(tradeoff.hm_rate) >= 0).all()
    assert (np.diff(tradeoff.sm_rate) <= 0).all()


def test_the_histogram_counts_every_document_once():
    trial = random_trial(1)
    histogram = views_of(trial).histogram
    assert histogram.counts.sum(axis=1).tolist() == np.bincount(trial.y).tolist()
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    ham, spam = (np.average(middle, weights=row) for row in histogram.counts)
    assert ham < spam


def test_many_classes_show_right_and_wrong_by_probability(many):
    views = views_of(many)
    right = int((many.probability.argmax(axis=1) == many.y).sum())
    assert views.histogram.counts.sum(axis=1).tolist() == [right, len(many.y) - right]
    assert views.tradeoff is None
    assert views.calibration.n_docs.sum() == len(many.y)


def test_the_learning_curve_of_folds_ends_at_the_trial_itself(learned):
    learning = views_of(learned).learning
    assert learning.n_learned.tolist() == [round(147 * share) for share in SHARES] + [147]
    evaluation = evaluation_of(learned)
    assert learning.wrong[-1] == evaluation.errors / evaluation.n_docs
    assert learning.wrong[0] > learning.wrong[-1]


def test_the_learning_curve_follows_the_decision(learned):
    sceptical = views_of(under_prior(learned, np.array([0.999, 0.001]))).learning
    assert (sceptical.wrong != views_of(learned).learning.wrong).any()


def test_the_learning_curve_of_a_stream_has_every_message_once(mails):
    trial = judge_online(read_items([str(mails)]), PRESETS["mail"], "everything")
    learning = views_of(trial).learning
    assert learning.n_learned[-1] == len(trial.y)
    pieces = np.diff(learning.n_learned, prepend=0)
    assert learning.wrong @ pieces == pytest.approx(evaluation_of(trial).errors)


def test_a_trial_without_smaller_models_has_no_learning_curve():
    assert views_of(random_trial(0)).learning is None


def test_wilson_intervals_equal_scipy():
    stats = pytest.importorskip("scipy.stats")
    part, whole = np.array([0, 1, 7, 50]), np.array([9, 10, 70, 50])
    low, high = wilson_interval(part, whole)
    for k, n, a, b in zip(part.tolist(), whole.tolist(), low, high, strict=True):
        expected = stats.binomtest(k, n).proportion_ci(method="wilson")
        assert (a, b) == pytest.approx((expected.low, expected.high), abs=1e-4)


# --- in a terminal ------------------------------------------------------------------------


def test_a_sketch_fits_eighty_columns_and_is_safe(learned, many, wide):
    for trial in (learned, many, wide, trial_of([0, 1], [-1, 1]), trial_of([0, 0], [1, 1])):
        lines = sketch(views_of(trial)).splitlines()
        assert max(map(columns, lines)) <= 80
        assert "\x1b" not in "".join(lines)
        assert not any(line.endswith(" ") for line in lines)


def test_a_histogram_keeps_its_middle_whatever_the_names(learned, wide):
    for trial in (learned, wide):
        block = sketch(views_of(trial)).split("\n\n")[2].splitlines()
        middle = {columns(line[: line.index(" | ")]) for line in block[1:]}
        assert len(middle) == 1


def test_a_sketch_shows_what_there_is(learned, many):
    text = sketch(views_of(learned))
    heads = (
        "Errors at every cutoff",
        "Calibration: share of spam",
        "Scores: log-odds",
        "Learning",
    )
    assert all(head in text for head in heads)
    assert text.count("O") > 5
    text = sketch(views_of(many))
    assert "Errors" not in text
    assert "Learning" not in text
    assert "Calibration: share of right answers" in text


def test_a_sketch_of_perfect_calibration_has_bars_that_end_at_the_mark():
    trial = trial_of([0, 0, 0, 1, 0, 1, 1, 1], np.log([1 / 3] * 4 + [3.0] * 4))
    lines = sketch(views_of(trial)).splitlines()
    at = lines.index("predicted observed   documents")
    assert lines[at + 1] == "    0.250    0.250           4  ##########|"
    assert lines[at + 2] == "    0.750    0.750           4  ##############################|"


# --- in a file ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("trial", "n_panels"), [("learned", 4), ("many", 2)])
def test_a_picture_is_png_and_has_room_for_its_panels(request, tmp_path, trial, n_panels):
    pytest.importorskip("matplotlib")
    from nbspam.evaluation.pictures.files import draw

    views = views_of(request.getfixturevalue(trial))
    draw(views, str(tmp_path / "a.png"), "mails")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    matrix = 3 + 0.35 * 3 if trial == "many" else 0  # inches
    height = 4.4 * n_panels / 2 + 0.4 + matrix
    assert struct.unpack(">II", data[16:24]) == (1200, round(120 * height))


@pytest.mark.slow
def test_a_picture_is_svg_by_its_name(learned, tmp_path):
    pytest.importorskip("matplotlib")
    from nbspam.evaluation.pictures.files import draw

    draw(views_of(learned), str(tmp_path / "a.SVG"), "mails")
    assert ElementTree.parse(tmp_path / "a.SVG").getroot().tag.endswith("svg")


@pytest.mark.slow
def test_a_picture_is_the_same_every_time(learned, tmp_path):
    pytest.importorskip("matplotlib")
    from nbspam.evaluation.pictures.files import draw

    for name in ("one.png", "two.png"):
        draw(views_of(learned), str(tmp_path / name), "mails")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path):
    pytest.importorskip("matplotlib")
    from nbspam.evaluation.pictures.files import draw

    with pytest.raises(InputError, match=r"none/a\.png: No such file.*; give another name"):
        draw(views_of(random_trial(0)), str(tmp_path / "none" / "a.png"), "mails")


def _texts(path):
    """Return the texts of an SVG, which matplotlib keeps as comments beside their outlines."""
    return re.findall("<!-- (.*?) -->", path.read_text())


@pytest.mark.slow
def test_a_picture_says_what_it_shows_and_has_the_matrix_of_many_classes(many, tmp_path):
    pytest.importorskip("matplotlib")
    from nbspam.evaluation.pictures.files import draw

    views = views_of(many)
    assert views.confusion.tolist() == evaluation_of(many).confusion.tolist()
    draw(views, str(tmp_path / "a.svg"), "mails " + "x" * 100)

    texts = _texts(tmp_path / "a.svg")
    n_right = int(np.trace(views.confusion))
    assert (
        f"{n_right:,} of {views.n_docs:,} messages right ({n_right / views.n_docs:.2%})" in texts
    )
    assert "mails " + "x" * 73 + "…" in texts
    assert "Confusion matrix" in texts
    assert {f"{n:,}" for n in views.confusion.ravel().tolist() if n} <= set(texts)


def test_a_font_is_found_that_has_what_matplotlibs_own_lacks():
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    from nbspam.evaluation.pictures.fonts import families_for

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


WAYS = [(), ("--cv", "2"), ("--online",), ("--test", "mails")]


@pytest.mark.parametrize(
    "how", [pytest.param(way, marks=[pytest.mark.slow] * (way != ())) for way in WAYS]
)
def test_eval_draws_a_picture_in_every_way_of_judging(
    nbspam, trained, folder, tmp_path, monkeypatch, how
):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    name = "a.png" if how else "a.SVG"
    assert nbspam("eval", folder, "--plot", name, *how)[0] == 0
    assert (tmp_path / name).stat().st_size > 10_000


@pytest.mark.parametrize("how", WAYS)
def test_eval_sketches_in_every_way_of_judging(
    nbspam, trained, folder, tmp_path, monkeypatch, how
):
    monkeypatch.chdir(tmp_path)
    status, out, _ = nbspam("eval", folder, "--plot", "-", *how)
    assert status == 0
    assert "Calibration" in out


@pytest.mark.parametrize("name", ["a.pdf", "a", "png"])
def test_another_kind_of_picture_is_refused_before_any_work(nbspam, name):
    status, out, err = nbspam("eval", "no-such-folder", "--cv", 2, "--plot", name)

    assert (status, out) == (2, "")
    assert err == f"nbspam: --plot {name}: neither .png nor .svg; give such a name, or -\n"


def test_without_matplotlib_a_picture_is_refused_and_a_sketch_is_not(
    nbspam, trained, folder, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, out, err = nbspam("eval", folder, "--plot", "a.png")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "matplotlib is not installed; install nbspam[plot], or give -" in err
    assert nbspam("eval", folder, "--plot", "-")[0] == 0


def test_a_sketch_and_json_do_not_mix(nbspam, trained, folder):
    status, out, err = nbspam("eval", folder, "--plot", "-", "--json")
    assert (status, out) == (2, "")
    assert err == "nbspam: --plot -: not beside --json; give a file's name\n"
