"""nbspam train --structure: the tables of a given graph are learned."""

import json

import pytest

from support import MELONS, complains

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


def test_parents_arrows_and_a_printed_network_give_the_same_graph(table, trained_by):
    lines = trained_by(PARENTS).splitlines()
    assert [line for line in lines if "<-" in line] == ["纹理\t<-\t好瓜", "脐部\t<-\t纹理, 好瓜"]
    assert len(lines) == 9
    printed = table("query", "--json")[1]
    assert trained_by(ARROWS).splitlines() == lines
    assert trained_by(printed).splitlines() == lines
    assert table("query", "--json")[1] == printed
    assert table("update", MELONS)[:2] == (0, "learned 17\n")
    assert table("query")[1].splitlines() == lines  # the graph stays when rows are learned


def test_the_tables_of_a_given_graph_are_smoothed_counts(table, trained_by):
    trained_by(ARROWS)
    question = ("query", "--target", "脐部=凹陷", "--evidence", "好瓜=是", "纹理=清晰", "--json")
    # Seven of the good melons have a clear texture; five of these are sunken.
    (row,) = json.loads(table(*question)[1])["rows"]
    assert row["probability"] == pytest.approx((5 + 1) / (7 + 3))
    trained_by(ARROWS, "--estimate", "mle")
    (row,) = json.loads(table(*question)[1])["rows"]
    assert row["probability"] == pytest.approx(5 / 7)


def test_the_class_of_a_given_graph_may_have_parents(table, trained_by):
    trained_by({"好瓜": ["纹理"]}, "--estimate", "mle")
    # P(good | clear) is 7 of 9; P(good) follows from all textures, and is 8 of 17.
    status, out, _ = table("classify", "--json", "-", stdin="纹理\n清晰\n?\n".encode())
    clear, unknown = (json.loads(line)["posterior"]["是"] for line in out.splitlines())
    assert (status, clear, unknown) == (0, pytest.approx(7 / 9), pytest.approx(8 / 17))
    assert table("explain", MELONS)[0] == 0


def test_given_graphs_are_compared_and_cross_validated(table, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(ARROWS), "utf-8")
    how = ("--structure", tmp_path / "s.json", "--cv", "4", "--json")
    assert table("eval", MELONS, *TARGET, *how)[0] == 0
    against = ("--against", f"--structure '{tmp_path / 's.json'}'", "--cv", "4")
    assert table("compare", MELONS, *TARGET, *against)[0] == 0


def test_what_is_no_structure_and_what_does_not_go_with_one_is_refused(table, tmp_path):
    for structure, words in [
        ([["大小", "好瓜"]], "'大小' is no column; choose from: 色泽, 根蒂"),
        ({"色泽": "好瓜"}, 'not a structure; write {"child": ["parent", …], …}'),
        ([["纹理", "脐部"], ["脐部", "纹理"]], "its arrows lead round in a circle; remove one"),
        ([["纹理", "纹理"]], "its arrows lead round in a circle; remove one"),
        ({"variables": [{"name": "色泽"}]}, "not a structure"),
        (3, "not a structure"),
        (None, "not a structure"),
        ([["a"]], "not a structure"),
    ]:
        path = tmp_path / "s.json"
        path.write_text(json.dumps(structure))
        result = table("train", MELONS, *TARGET, "--structure", path)
        assert complains(result, 2, f"nbspam: --structure {path}: {words}")

    path = tmp_path / "s.json"
    path.write_text(json.dumps({"好瓜": ["纹理"]}))
    train = ("train", MELONS, *TARGET, "--structure", path)
    assert complains(table(*train, "--start", "tree"), 2, "--start: for a search, and --structure")
    assert complains(table(*train, "--no-climb"), 2, "--climb: for a search, and --structure")
    assert complains(table(*train, "--model", "tan"), 2, "--structure: for --model network, not")
    words = "class_prior: uniform, but the structure gives the class parents"
    assert complains(table(*train, "--class-prior", "uniform"), 2, words)
    missing = table("train", MELONS, *TARGET, "--structure", tmp_path / "none.json")
    assert complains(missing, 1, "none.json: No such file")
