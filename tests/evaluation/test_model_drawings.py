"""Pictures of models: those of the guide are drawn again, and their curves are densities."""

from math import exp, pi, sqrt

import pytest

import nbspam
from nbspam.errors import UsageError
from nbspam.evaluation.pictures import clusters_picture, model_picture, write
from nbspam.store import library
from nbspam.tables.unlabelled import cluster_rows
from support import MELONS, ROOT, complains

PICTURES = ROOT / "docs" / "pictures"
NAMES = ("色泽", "根蒂", "敲声", "纹理", "脐部", "触感", "好瓜")


def melons(**how):
    return model_picture(nbspam.train(MELONS, target="好瓜", **how).classifier)


def clusters():
    return cluster_rows(library.rows_given(MELONS), 2, drop=NAMES)


DRAWN = {
    "tan.svg": lambda: melons(model="tan"),
    "network.svg": lambda: melons(model="network"),
    "mixed.svg": melons,
    "mixture.svg": lambda: clusters_picture(
        cluster_rows(library.rows_given(MELONS), 2, drop=NAMES)
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_guide_shows_what_the_program_draws(name, tmp_path, request):
    path = PICTURES / name if request.config.getoption("--rewrite-golden") else tmp_path / name
    write(DRAWN[name](), str(path))
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
    panel = model_picture(model).find("svg")
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
