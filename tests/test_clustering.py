"""Clusters without labels: found, named, the same for the same seed."""

import json

import pytest

from nbspam.clustering import cluster, typical_tokens
from nbspam.semisupervised import em_settings
from nbspam.settings import PRESETS
from test_semisupervised import TOPICS, texts


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_two_topics_are_told_apart_and_named_by_their_words(model):
    items = texts(60, 1, length=6)
    settings = em_settings(PRESETS["text"], {"model": model})
    found = cluster(items, settings, 2)

    of = dict(zip(found.names, found.share.argmax(axis=1).tolist(), strict=True))
    sea = [of[item.name] for item in items if item.label == "sea"]
    sky = [of[item.name] for item in items if item.label == "sky"]
    most = max(set(sea), key=sea.count)
    assert sea.count(most) + len(sky) - sky.count(most) > 0.95 * len(items)
    for number, tokens in enumerate(typical_tokens(found, 5).values()):
        topic = TOPICS["sea" if number == most else "sky"]
        assert {token for token, _ in tokens} <= set(topic.split())


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": item.data.decode()}) for item in texts(15, 1, length=6)]
    path.write_text("\n".join(lines))
    return path


def test_the_command_prints_clusters_largest_first(nbspam, table):
    status, out, err = nbspam("cluster", table, "-k", "2", "-n", "3", "--text-column", "text")

    assert (status, err) == (0, "")
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["cluster", "documents", "typical tokens"]
    assert [row[0] for row in rows] == ["1", "2"]
    assert float(rows[0][1]) >= float(rows[1][1])
    assert sum(float(row[1]) for row in rows) == pytest.approx(30, abs=0.1)
    assert all(len(row[2].split()) == 3 for row in rows)


def test_the_same_seed_gives_the_same_clusters_as_json_too(nbspam, table):
    arguments = ("cluster", table, "-k", "3", "--seed", "4", "--json", "--text-column", "text")
    first = nbspam(*arguments)[1]

    assert nbspam(*arguments)[1] == first
    assert [row["cluster"] for row in json.loads(first)["clusters"]] == ["1", "2", "3"]


def test_assignments_name_every_item(nbspam, table):
    arguments = ("cluster", table, "-k", "2", "--assignments", "--text-column", "text")
    out = nbspam(*arguments, "--hard", "--weighting", "counts")[1]

    rows = [line.split("\t") for line in out.splitlines()]
    assert len(rows) == 30
    assert {(row[0], row[1]) for row in rows} == {("1", "1.0000"), ("2", "1.0000")}
    as_json = nbspam(*arguments, "--json")[1]
    assert len(json.loads(as_json)) == 30


def test_more_clusters_than_documents_are_refused(nbspam, table):
    status, _, err = nbspam("cluster", table, "-k", "31", "--text-column", "text")

    assert (status, err.count("\n")) == (2, 1)
    assert "-k 31: of 30 documents" in err
