"""Clusters without labels: found, named, the same for the same seed."""

import json

import pytest

from nbspam.classifier.clusters import cluster, typical_tokens
from nbspam.classifier.unlabelled import em_settings
from nbspam.settings import PLAIN
from support import ROOT, TOPICS, json_lines, texts


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_two_topics_are_told_apart_and_named_by_their_words(model):
    items = texts(60, 1, length=6)
    settings = em_settings(PLAIN["text"], {"model": model})
    found = cluster(items, settings, 2)

    of = dict(zip(found.names, found.share.argmax(axis=1).tolist(), strict=True))
    sea = [of[item.name] for item in items if item.label == "sea"]
    sky = [of[item.name] for item in items if item.label == "sky"]
    most = max(set(sea), key=sea.count)
    assert sea.count(most) + len(sky) - sky.count(most) > 0.95 * len(items)
    for number, tokens in enumerate(typical_tokens(found, 5).values()):
        topic = TOPICS["sea" if number == most else "sky"]
        assert {each.token for each in tokens} <= set(topic.split())


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
    assert len(json_lines(as_json)) == 30


COINS = ROOT / "corpora"
BARE = ("-k", "2", "--alpha", "1e-9", "--weighting", "counts", "--min-df", "1")


def components(tmp_path, *rows):
    """Write components, as (weight, probability of heads), to a file; return its path."""
    data = [{"weight": w, "tokens": {"heads": p, "tails": 1 - p}} for w, p in rows]
    (tmp_path / "start.json").write_text(json.dumps(data))
    return tmp_path / "start.json"


def heads(out):
    """Return the documents and the probability of heads of each cluster printed."""
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    return [
        (float(row[1]), float(dict(t.split("=") for t in row[2].split())["heads"])) for row in rows
    ]


def test_two_coins_worked_by_hand_in_lecture_notes(nbspam, tmp_path):
    start = components(tmp_path, (0.5, 0.2), (0.5, 0.7))
    how = ("cluster", COINS / "two-coins.csv", *BARE, "--start", start, "--rounds", "1")

    assert heads(nbspam(*how, "--hard")[1]) == [(3, 0.3333), (2, 0.6)]
    (documents, p1), _ = heads(nbspam(*how)[1])
    assert round(p1, 2) == 0.35
    assert documents * 5 == pytest.approx(12.20, abs=0.03)
    assert documents * 5 * p1 == pytest.approx(4.22, abs=0.01)
    assert nbspam(*how, "--assignments")[1].startswith("2\t0.8577\t")


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ([(0.5, 0.5), (0.5, 0.5)], [(5, 0.6), (5, 0.6)]),
        ([(0.4, 0.6), (0.6, 0.7)], [(4.064, 0.5368), (5.936, 0.6432)]),
    ],
)
def test_the_three_coins_of_statistical_learning_methods(nbspam, tmp_path, start, end):
    start = components(tmp_path, *start)

    assert heads(nbspam("cluster", COINS / "three-coins.csv", *BARE, "--start", start)[1]) == end


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("[", 1, "not JSON"),
        ("{}", 2, "not components"),
        ('[{"weight": 0, "tokens": {}}]', 2, "not components"),
        ('[{"weight": 1, "tokens": {"heads": 2}}]', 2, "not components"),
        ('[{"weight": 1, "tokens": {"heads": 1}}]', 2, "1 components; give 2"),
        ('[{"weight": 1, "tokens": {"x": 1}}, {"weight": 1, "tokens": {}}]', 2, "the token 'x'"),
        (None, 1, "No such file"),
    ],
)
def test_impossible_starts_are_refused(nbspam, tmp_path, text, status, words):
    if text is not None:
        (tmp_path / "s.json").write_text(text)
    how = ("cluster", COINS / "two-coins.csv", *BARE, "--start", tmp_path / "s.json")
    code, _, err = nbspam(*how)

    assert (code, err.count("\n")) == (status, 1), err
    assert words in err


def test_more_clusters_than_documents_are_refused(nbspam, table):
    status, _, err = nbspam("cluster", table, "-k", "31", "--text-column", "text")

    assert (status, err.count("\n")) == (2, 1)
    assert "-k 31: there are 30 documents" in err
