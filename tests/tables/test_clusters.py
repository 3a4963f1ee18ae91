"""Clusters of the rows of a table."""

import json

import numpy as np
import pytest

from nbspam.sources.records import Record
from nbspam.tables.clusters import cluster_rows
from support import ROOT, complains

MELONS = ROOT / "corpora" / "watermelon-3.0.csv"


def rows(n, seed):
    """Return rows of two kinds, which differ in a category and in a number, and the kinds."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    records = []
    for i, k in enumerate(kind.tolist()):
        colour = "red" if rng.random() < 0.1 + 0.8 * k else "blue"
        size = f"{rng.normal(5 * k, 1):.3f}" if rng.random() > 0.1 else ""
        records.append(Record(f"t#{i}", {"colour": colour, "size": size, "id": f"r{i}"}))
    return records, kind


@pytest.mark.parametrize("hard", [False, True])
def test_clusters_find_the_two_kinds_of_rows(hard):
    records, kind = rows(200, 1)
    found = cluster_rows(records, 2, drop=("id",), hard=hard)
    cluster = found.share.argmax(axis=1)

    assert max((cluster == kind).mean(), (cluster != kind).mean()) > 0.95
    assert found.share.sum(axis=0)[0] >= found.share.sum(axis=0)[1]
    assert found.names == tuple(f"t#{i}" for i in range(200))
    assert (found.share.max(axis=1) == 1).all() or not hard
    reached = [step.log_likelihood for step in found.fit.steps]
    assert reached == sorted(reached)


def test_what_is_typical_comes_first():
    found = cluster_rows(rows(200, 1)[0], 2, drop=("id",))
    for features in found.features:
        first, second, last = features
        assert (first.column, second.column, last.column) == ("size", "colour", "colour")
        typical = "red" if first.mean > 2 else "blue"
        assert (second.value, second.probability > 0.8) == (typical, True)
        assert abs(first.mean - 5 * (typical == "red")) < 0.3
        assert abs(first.standard_deviation - 1) < 0.3
        assert str(first) == f"size {first.mean:.4g} ± {first.standard_deviation:.4g}"
        assert str(second) == f"colour={typical} {second.probability:.4g}"


def test_alpha_is_added_to_every_count():
    records, _ = rows(40, 1)
    model = cluster_rows(records, 2, alpha=3.0, drop=("id", "size")).fit.model
    n = model.level_count_
    shares = (n + 3) / (n.sum(axis=1, keepdims=True) + 6)
    np.testing.assert_allclose(np.exp(model.tables()[0]), shares)


def test_without_smoothing_what_a_cluster_lacks_comes_last():
    cells = [("x", "u"), ("y", "v")] * 3
    records = [Record(f"#{i}", dict(zip("ab", row, strict=True))) for i, row in enumerate(cells)]
    for features in cluster_rows(records, 2, alpha=0.0).features:
        assert [feature.probability for feature in features] == [1, 1, 0, 0]


def test_the_command_prints_clusters_and_the_cluster_of_each_row(nbspam):
    how = ("cluster", MELONS, "-k", "2", "--table", "--drop", "好瓜")
    status, out, err = nbspam(*how, "-n", "3")
    assert (status, err) == (0, "")
    head, one, two = out.splitlines()
    assert head == "cluster\trows\ttypical values"
    sizes = [float(line.split("\t")[1]) for line in (one, two)]
    assert sum(sizes) == pytest.approx(17, abs=0.01)
    assert all(len(line.split("\t")[2].split("  ")) == 3 for line in (one, two))

    facts = json.loads(nbspam(*how, "-n", "3", "--json")[1])
    assert [c["cluster"] for c in facts["clusters"]] == ["1", "2"]
    assert all(len(c["values"]) == 3 for c in facts["clusters"])
    lines = nbspam(*how, "--assignments")[1].splitlines()
    assert len(lines) == 17
    assert lines[0].endswith(f"\t{MELONS}#1")
    assert nbspam(*how, "--rounds", "1", "--seed", "3", "--restarts", "1", "--hard")[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--drop", "好瓜"), 2, "--drop: for the columns of a table; say --table too"),
        (("--table", "--drop", "x"), 1, "no column 'x'"),
        (("--table", "--min-df", "3"), 2, "--min-df: for mail and text; leave it out with"),
        (("--table", "--start", "x.json"), 2, "--start: for mail and text"),
        (("--table", "--alpha", "auto"), 2, "--alpha auto: not a number from 0 up"),
        (("--table", "-k", "18"), 2, "-k 18: not from 2 to the number of rows, 17; give"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(nbspam, options, status, words):
    assert complains(nbspam("cluster", MELONS, "-k", "2", *options), status, words)


def test_a_table_of_empty_columns_is_refused(nbspam, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n?,\n,?\n")
    result = nbspam("cluster", tmp_path / "t.csv", "-k", "2", "--table")
    assert complains(result, 1, "no column has a value; give some")
