"""EM on tables: rows without a class, networks with missing cells, clusters."""

import json

import numpy as np
import pytest

from nbspam.models.em import stopping
from nbspam.sources.records import Record
from nbspam.store.open import load_classifier
from nbspam.tables.training import TableSettings, read_table, table_rows, train_table
from nbspam.tables.unlabelled import cluster_rows, train_by_em, without_class
from support import MELONS, complains

TARGET = ("--target", "好瓜")


def rows(n, seed, n_labelled):
    """Return rows of two kinds, of which the first n_labelled say which kind they are."""
    rng = np.random.default_rng(seed)
    records = []
    for i in range(n):
        kind = i % 2
        cells = {f"c{j}": "xy"[int(rng.random() < 0.25 + 0.5 * kind)] for j in range(8)}
        cells["size"] = f"{rng.normal(kind, 1):.3f}"
        cells["y"] = "ab"[kind] if i < n_labelled else ""
        records.append(Record(f"t#{i}", cells))
    return records


def table_of(records, settings):
    return read_table(records, settings, with_unlabelled=True).table


@pytest.mark.parametrize("model", ["categorical", "mixed", "network"])
@pytest.mark.parametrize("hard", [False, True])
def test_rows_without_a_class_help(model, hard):
    # The graph that two rows would justify is empty.
    how = {"start": "naive", "climb": False} if model == "network" else {}
    settings = TableSettings("y", model, parameters=how)
    few, test = rows(2, 2, 2), rows(300, 3, 300)
    table = table_of([*few, *rows(300, 4, 0)], settings)
    report = train_by_em(table, settings, hard=hard)
    plain = train_table(read_table(few, settings).table, settings)

    right, before = (
        np.mean([v.label == r.cells["y"] for v, r in zip(each.classify(test), test, strict=True)])
        for each in (report.classifier, plain)
    )
    assert right > max(0.85, before)
    assert (report.n_labelled, report.n_unlabelled) == (2, 300)
    reached = [step.log_posterior for step in report.fit.steps]
    assert reached == sorted(reached)


def test_a_weight_of_nothing_ignores_rows_without_a_class():
    settings, records = TableSettings("y", "categorical", categorical=("size",)), rows(30, 1, 20)
    table = table_of(records, settings)
    found, expected = (
        [answer.joint for answer in each.answers(records)]
        for each in (
            train_by_em(table, settings, weight=0.0).classifier,
            train_table(table_rows(table, np.arange(20)), settings),
        )
    )
    np.testing.assert_allclose(found, expected)
    # The labels of rows that are told to have none are not read.
    unlabelled = [r.cells for r in rows(30, 1, 0)]
    assert [r.cells for r in without_class(records, "y")] == unlabelled


def test_a_round_divides_rows_by_the_model_of_those_with_a_class():
    cells = {"x": "plum", "y": "ham"}, {"x": "cash", "y": "spam"}, {"x": "plum", "z": "1a"}
    settings, records = TableSettings("y"), [Record("", each) for each in cells]
    data = read_table(records, settings, with_unlabelled=True)
    assert data.notes[-1] == "column 'z' is empty in all rows with a class"
    report = train_by_em(data.table, settings, stopping=stopping(1, None))
    # By Laplace's rule P(plum | ham) is 2/3, and P(plum | spam) 1/3.
    assert report.classifier.model.class_count_.tolist() == pytest.approx([1 + 2 / 3, 1 + 1 / 3])


def test_the_prior_is_estimated_again_and_a_given_one_and_alpha_are_kept():
    records = [*rows(20, 1, 20), *rows(200, 2, 0)[::2]]  # rows without a class are of kind a

    def trained(**parameters):
        settings = TableSettings("y", "categorical", ("size",), parameters=parameters)
        return train_by_em(table_of(records, settings), settings).classifier

    again = trained(alpha=7.0)
    n = again.model.class_count_
    assert n.sum() == pytest.approx(120)
    assert again.prior[0] > 0.7
    assert again.prior[0] == pytest.approx((n[0] + 7) / (120 + 14))
    assert trained(class_prior="uniform").prior[0] == pytest.approx(0.5)
    assert trained(class_prior=(0.3, 0.7)).prior[0] == pytest.approx(0.3)
    n = again.model.level_count_[:, :2]  # the values of the first column
    shares = np.exp(again.model.level_log_prob_[:, :2])
    np.testing.assert_allclose(shares, (n + 7) / (n.sum(axis=1, keepdims=True) + 14))


def test_without_smoothing_what_labelled_rows_lack_can_still_be_found():
    """The only labelled row of class b never shows x, though most rows of that class do."""
    cells = [("x", "x", "a"), ("y", "y", "b"), *[("x", "y", "")] * 6]
    records = [Record(f"#{i}", dict(zip("cdy", row, strict=True))) for i, row in enumerate(cells)]
    settings = TableSettings("y", parameters={"estimate": "mle"})
    classifier = train_by_em(table_of(records, settings), settings).classifier
    assert np.isfinite(classifier.joint_of_row(np.array([0.0, 1.0]))).any()


@pytest.fixture
def gaps(tmp_path):
    """The melons without some cells; every third has no class."""
    header, *lines = MELONS.read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        cells = line.split(",")
        cells[number % 6] = "?"
        if number % 3 == 0:
            cells[-1] = ""
        lines[number] = ",".join(cells)
    (tmp_path / "gaps.csv").write_text("\n".join([header, *lines]), "utf-8")
    return tmp_path / "gaps.csv"


@pytest.mark.parametrize("kind", ["mixed", "network"])
def test_train_with_em_shows_each_round(nbspam, table, gaps, model, kind):
    command = ("train", gaps, *TARGET, "--em", "--model", kind)
    out = table.out(*command)
    lines = out.splitlines()
    assert lines[0] == "round\tlog-likelihood\tlog-posterior\tgain of Q\tlargest change"
    assert "read 11 rows with a class, 6 without" in lines
    assert lines[-1].startswith(f"learned 好瓜 by {kind} and EM; model in {model}")
    facts = table.json(*command)
    reached = [step["log_posterior"] for step in facts["rounds"]]
    assert reached == sorted(reached)
    assert (facts["labelled"], facts["unlabelled"], facts["weight"]) == (11, 6, 1)
    assert table("classify", MELONS)[0] == table("info")[0] == nbspam("doctor")[0] == 0


def test_unlabelled_tables_are_read_beside_labelled_ones(table, gaps, model):
    how = ("--unlabelled", gaps, "--unlabelled-weight", "0.5", "--hard")
    out = table.out("train", MELONS, *TARGET, *how)
    assert "read 17 rows with a class, 17 without" in out
    shares = load_classifier(str(model)).model.class_count_
    assert shares.sum() == pytest.approx(17 + 17 / 2)
    read = table.json("info")["read"]
    assert list(read.values()) == np.rint(shares).tolist()


def test_a_model_of_em_does_not_learn_on(table, gaps, model, tmp_path):
    assert table("train", gaps, *TARGET, "--em")[0] == 0
    for command in ("update", "unlearn"):
        result = table(command, MELONS)
        assert complains(result, 2, f"{model}: trained by EM, so that its counts depend on all")
    assert complains(table("merge", model, model, "-o", tmp_path / "o"), 2, "trained by EM")


def kinds(n, seed):
    """Return rows of two kinds, which differ in a category and in a number, and the kinds."""
    rng = np.random.default_rng(seed)
    kind, records = rng.integers(2, size=n), []
    for i, k in enumerate(kind.tolist()):
        colour = "red" if rng.random() < 0.1 + 0.8 * k else "blue"
        size = f"{rng.normal(5 * k, 1):.3f}" if rng.random() > 0.1 else ""
        records.append(Record(f"t#{i}", {"colour": colour, "size": size, "id": f"r{i}"}))
    return records, kind


@pytest.mark.parametrize("hard", [False, True])
def test_clusters_find_the_two_kinds_of_rows_and_what_is_typical_comes_first(hard):
    records, kind = kinds(200, 1)
    found = cluster_rows(records, 2, drop=("id",), hard=hard)
    cluster, size = found.share.argmax(axis=1), found.share.sum(axis=0)

    assert max((cluster == kind).mean(), (cluster != kind).mean()) > 0.95
    assert size[0] >= size[1]
    assert found.names == tuple(f"t#{i}" for i in range(200))
    assert (found.share.max(axis=1) == 1).all() or not hard
    reached = [step.log_posterior for step in found.fit.steps]
    assert reached == sorted(reached)
    for first, second, last in found.features:
        assert (first.column, second.column, last.column) == ("size", "colour", "colour")
        typical = "red" if first.mean > 2 else "blue"
        assert (second.value, second.probability > 0.8) == (typical, True)
        assert abs(first.mean - 5 * (typical == "red")) < 0.3
        assert abs(first.standard_deviation - 1) < 0.3
        assert str(first) == f"size {first.mean:.4g} ± {first.standard_deviation:.4g}"
        assert str(second) == f"colour={typical} {second.probability:.4g}"


def test_alpha_is_added_to_every_count_of_a_cluster():
    model = cluster_rows(kinds(40, 1)[0], 2, alpha=3.0, drop=("id", "size")).fit.model
    n = model.level_count_
    shares = (n + 3) / (n.sum(axis=1, keepdims=True) + 6)
    np.testing.assert_allclose(np.exp(model.tables()[0]), shares)
    # Without smoothing, values that a cluster lacks come last.
    records = [Record("#", {"a": "xy"[i % 2], "b": "uv"[i % 2]}) for i in range(6)]
    for features in cluster_rows(records, 2, alpha=0.0).features:
        assert [feature.probability for feature in features] == [1, 1, 0, 0]


def test_the_command_prints_the_cluster_of_each_row(table):
    how = ("cluster", MELONS, "-k", "2", "--drop", "好瓜")
    facts = table.json(*how, "-n", "3")
    assert [c["cluster"] for c in facts["clusters"]] == ["1", "2"]
    assert all(len(c["values"]) == 3 for c in facts["clusters"])
    lines = table(*how, "--assignments")[1].splitlines()
    assert len(lines) == 17
    assert lines[0].endswith(f"\t{MELONS}#1")
    assert table(*how, "--rounds", "1", "--seed", "3", "--restarts", "1", "--hard")[0] == 0


def test_columns_that_number_the_rows_or_are_no_numbers_are_named_before_clusters(table):
    rows = "".join(f'{n},"{n},5",{n % 2}\n' for n in range(1, 13)).encode()
    status, out, err = table("cluster", "-k", "2", stdin=b"id,x,y\n" + rows)
    assert (status, out.count("\n")) == (0, 3)
    numbered, written = err.splitlines()
    assert "column 'id' only tells the rows apart: --drop id leaves" in numbered
    assert "column 'x' is taken for categories because of '1,5'" in written


def test_a_column_that_is_never_known_starts_at_random(table, tmp_path):
    # x and z are noisy copies of h, which no row shows: from equal shares EM cannot move.
    rng = np.random.default_rng(0)
    h = rng.integers(0, 2, 200)
    x, z, y = ((h ^ (rng.random(200) < 0.1)).tolist() for _ in range(3))
    rows = "".join(f"{a},,{b},{c}\n" for a, b, c in zip(x, z, y, strict=True))
    (tmp_path / "hidden.csv").write_text("x,h,z,y\n" + rows)
    graph = {"h": [], "x": ["h"], "z": ["h"], "y": ["h"]}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    how = "--structure", tmp_path / "graph.json", "--values", "h=u,v", "--target", "y", "--em"

    def reached(*more):
        named = "-m", tmp_path / "model", "--json"
        out = table("train", tmp_path / "hidden.csv", *how, *more, *named)[1]
        return json.loads(out)["rounds"][-1]["log_likelihood"]

    def entropy(n):
        return -sum(k * np.log(k / sum(n)) for k in n if k)

    # At the saddle the columns do not depend on each other; their copies of h say much more.
    apart = sum(entropy(np.bincount(each, minlength=2) + 1) for each in (x, z, y))
    assert reached("--restarts", 0) == pytest.approx(-apart, rel=0.02)
    assert reached() > -apart + 50
    assert reached("--rounds", 1) < reached("--epsilon", "1e-7")
    assert reached("--seed", 1, "--epsilon", "1e-7") == pytest.approx(reached("--epsilon", "1e-7"))
