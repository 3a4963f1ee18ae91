"""nbspam train --structure: the tables of a given graph are learned."""

import json

import numpy as np
import pytest

import nbspam
from nbspam.errors import UsageError
from nbspam.models.graphs import FamilyScores
from support import MELONS, all_graphs, complains

TARGET = ("--target", "好瓜")
ARROWS = [["好瓜", "纹理"], ["好瓜", "脐部"], ["纹理", "脐部"]]
PARENTS = {"脐部": ["好瓜", "纹理"], "纹理": ["好瓜"], "色泽": []}


@pytest.fixture
def trained_by(table, model, tmp_path):
    """Train a network of a structure: (structure, *options) -> its parents, by its own file."""

    def call(structure, *options):
        path = tmp_path / "structure.json"
        path.write_text(structure if isinstance(structure, str) else json.dumps(structure))
        status, out, _ = table("train", MELONS, *TARGET, "--structure", path, *options)
        assert (status, "learned 好瓜 by network" in out) == (0, True)
        return table("query")[1]

    return call


def test_parents_arrows_and_a_printed_network_give_the_same_graph(table, trained_by, tmp_path):
    lines = trained_by(PARENTS).splitlines()
    assert [line for line in lines if "<-" in line] == ["纹理\t<-\t好瓜", "脐部\t<-\t纹理, 好瓜"]
    assert len(lines) == 9
    printed = table("query", "--json")[1]
    assert trained_by(ARROWS).splitlines() == lines
    assert trained_by(printed).splitlines() == lines
    assert table("query", "--json")[1] == printed
    assert table("update", MELONS)[:2] == (0, "learned 17\n")
    assert table("query")[1].splitlines() == lines  # the graph stays when rows are learned
    how = ("--structure", tmp_path / "structure.json", "--cv", "4", "--json")
    assert table("eval", MELONS, *TARGET, *how)[0] == 0
    against = ("--against", f"--structure '{how[1]}'", "--cv", "4")
    assert table("compare", MELONS, *TARGET, *against)[0] == 0


def test_the_class_of_a_given_graph_may_have_parents(table, trained_by):
    trained_by({"好瓜": ["纹理"]}, "--estimate", "mle")
    # P(good | clear) is 7 of 9; P(good) follows from all textures, and is 8 of 17.
    status, out, _ = table("classify", "--json", "-", stdin="纹理\n清晰\n?\n".encode())
    clear, unknown = (json.loads(line)["posterior"]["是"] for line in out.splitlines())
    assert (status, clear, unknown) == (0, pytest.approx(7 / 9), pytest.approx(8 / 17))
    assert table("explain", MELONS)[0] == 0


@pytest.mark.slow
def test_with_class_parents_the_class_is_a_node_like_any_other(table, model, tmp_path):
    rng, names = np.random.default_rng(5), ["a", "b", "c", "y"]
    drawn = rng.integers(0, 3, (60, 4)).tolist()
    # The class y follows from a and b, which a search for its children alone cannot say.
    codes = np.array([[a % 2, b % 2, c, (a + b + (d == 0)) % 2] for a, b, c, d in drawn])
    rows = [{n: f"{n}{k}" for n, k in zip(names, row, strict=True)} for row in codes.tolist()]
    lines = [",".join(names), *(",".join(row.values()) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    scores = FamilyScores(codes, [2, 2, 3, 2])
    best = pytest.approx(min(map(scores.total, all_graphs(4))))
    train = ("train", tmp_path / "t.csv", "--model", "network", "--class-parents", "--target")
    for target in names:
        assert table(*train, target)[0] == 0
        structure = json.loads(table("export")[1])["structure"]
        (tmp_path / "s.json").write_text(table("query", "--json")[1])
        parents = [[] for _ in names]
        for edge in structure["edges"]:
            parents[names.index(edge["column"])].append(names.index(edge["parent"]))
        assert scores.total([tuple(sorted(each)) for each in parents]) == best
        assert structure["score"] == best
        trained = nbspam.train(rows, target=target, model="network", class_parents=True)
        assert trained.classifier.model.parents_ == nbspam.load(model).classifier.model.parents_
        # A search from the best graph stays there, and one from no arrows gets there.
        for start in (tmp_path / "s.json", {}):
            again = {"target": target, "structure": start, "climb": True, "class_parents": True}
            climbed = nbspam.train(rows, **again).classifier.model
            assert climbed.scores().total(climbed.parents_) == best
    assert table("update", tmp_path / "t.csv")[0] == 0
    assert nbspam.load(model).classes == ("y0", "y1")
    with pytest.raises(UsageError, match="max_parents: for a search; say climb too"):
        nbspam.train(rows, target="y", structure={}, max_parents=2)
    words = "class_prior: uniform, but class_parents is true, so that it has no prior"
    assert complains(table(*train, "y", "--class-prior", "uniform"), 2, words)


def test_a_search_starts_from_a_graph_of_ones_own(table, trained_by):
    start = {"根蒂": ["色泽"], "好瓜": ["纹理"]}
    (given, cost), (climbed, less) = (
        (trained_by(start, how), json.loads(table("export")[1])["structure"]["score"])
        for how in ("--no-climb", "--climb")
    )
    assert given.splitlines().count("根蒂\t<-\t色泽") == 1
    assert less < cost - 1
    assert climbed != given
    assert trained_by(start) == given
