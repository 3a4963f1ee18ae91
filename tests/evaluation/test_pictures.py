"""Pictures in files: those of the guide are drawn again; a PNG is its SVG."""

import struct
import sys
from dataclasses import replace
from math import exp, pi, sqrt
from xml.etree import ElementTree

import numpy as np
import pytest

import nbspam
from nbspam.errors import InputError, UsageError
from nbspam.evaluation import pictures
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.figures import Learning, views_of
from nbspam.store import library
from nbspam.tables.unlabelled import cluster_rows
from support import MELONS, ROOT, complains, random_trial, trial_of_classes


@pytest.fixture(scope="module")
def views():
    return views_of(random_trial(0, n_docs=2000))


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
    root = pictures.sheet(views, "mails " + "x" * 100)

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
    root = pictures.sheet(views_of(trial), "x")
    assert float(root.get("height")) < 3000
    assert len(list(root.iter("text"))) < 300
    assert len(ElementTree.tostring(root)) < 100_000


def test_a_file_shows_all_pictures_without_a_style(views):
    """Programs that draw SVG do not all know style sheets."""
    points = np.array([10, 20]), *np.array([[0.4, 0.2], [0.3, 0.1], [0.5, 0.3]])
    root = pictures.sheet(replace(views, learning=Learning(*points)), "mails")

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
            pictures.draw(each, str(tmp_path / name), "mails")
        data = (tmp_path / "one.png").read_bytes()
        assert data == (tmp_path / "two.png").read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert (data[:4], width) == (b"\x89PNG", 1200)
        root = pictures.sheet(each, "mails")
        assert height == pytest.approx(1200 * float(root.get("height")) / 740, abs=1)
    for name in ("a.svg", "a.png"):
        with pytest.raises(InputError, match=rf"none/{name}: No such file.*; give another name"):
            pictures.draw(views, str(tmp_path / "none" / name), "mails")


def test_a_png_has_the_colours_of_its_svg(views, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    pictures.draw(views, str(tmp_path / "a.png"), "mails")
    pixels = np.round(255 * imread(tmp_path / "a.png")[..., :3]).astype(int)
    painted = {"#{:02x}{:02x}{:02x}".format(*p) for p in np.unique(pixels.reshape(-1, 3), axis=0)}
    forms = [
        *pictures.sheet(views, "mails").iter("path"),
        *pictures.sheet(views, "mails").iter("circle"),
    ]
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

    families, lacking = pictures.families_for("ham" + both)
    assert families[0] == "DejaVu Sans"
    assert len(families) == 2
    assert lacking == ""
    assert pictures.families_for("ham, spam") == (["DejaVu Sans"], "")


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


# --- models of tables -------------------------------------------------------------------------

PICTURES = ROOT / "docs" / "pictures"
NAMES = ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感", "好瓜")


def melons(**how):
    return pictures.model_picture(nbspam.train(MELONS, target="好瓜", **how).classifier)


DRAWN = {
    "tan.svg": lambda: melons(model="tan"),
    "network.svg": lambda: melons(model="network"),
    "mixed.svg": melons,
    "mixture.svg": lambda: pictures.clusters_picture(
        cluster_rows(library.rows_given(MELONS), 2, drop=NAMES)
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_guide_shows_what_the_program_draws(name, tmp_path, request):
    path = PICTURES / name if request.config.getoption("--rewrite-golden") else tmp_path / name
    pictures.write(DRAWN[name](), str(path))
    assert path.read_text("utf-8") == (PICTURES / name).read_text("utf-8")
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


def test_a_curve_is_a_density_times_the_share_of_its_class():
    rows = [{"x": x, "y": y} for x, y in zip((1.25, 3.5, 2.0, 8.0), "aaab", strict=True)]
    rows += [{"x": 10.0, "y": "b"}] * 2
    model = nbspam.train(rows, target="y", model="gaussian", estimate="mle").classifier
    panel = pictures.model_picture(model).find("svg")
    curves = [e.get("d") for e in panel.iter("path") if e.get("stroke-width") == "2"]
    tops = [min(float(p.split()[1]) for p in d[1:].split("L")) for d in curves]
    # The highest curve fills the panel, whose base is at 192 and whose top at 10.
    mean, deviation = 2.25, sqrt(sum((x - 2.25) ** 2 for x in (1.25, 3.5, 2.0)) / 3)
    height_a = 0.5 * exp(-((2.25 - mean) ** 2)) / (deviation * sqrt(2 * pi))
    height_b = 0.5 / (sqrt(8 / 9) * sqrt(2 * pi))
    heights = [height_a, height_b]
    assert tops == pytest.approx([192 - 182 * h / max(heights) for h in heights], abs=0.06)


def test_pictures_are_refused_where_there_is_nothing_to_draw(nbspam, tmp_path):
    for make in (lambda: melons(model="aode"), lambda: melons(discretise="mdl")):
        with pytest.raises(UsageError, match="neither arrows nor normal distributions"):
            make()
    how = "--target", "好瓜", "--model", "tan", "-m", tmp_path / "m"
    assert nbspam("table", "train", MELONS, *how)[0] == 0
    info = "table", "info", "-m", tmp_path / "m", "--plot"
    assert nbspam(*info, tmp_path / "t.svg")[0] == 0
    assert (tmp_path / "t.svg").read_bytes() == (PICTURES / "tan.svg").read_bytes()
    assert complains(nbspam(*info, tmp_path / "t.gif"), 2, "neither .png nor .svg")
    assert complains(nbspam(*info, tmp_path / "no" / "t.svg"), 2, "no folder")
    drop = [word for name in NAMES for word in ("--drop", name)]
    cluster = "table", "cluster", MELONS, "-k", "2", *drop, "--plot", tmp_path / "c.svg"
    assert nbspam(*cluster)[0] == 0
    assert (tmp_path / "c.svg").read_bytes() == (PICTURES / "mixture.svg").read_bytes()
