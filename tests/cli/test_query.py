"""nbspam query: questions to Bayesian networks, and models of networks under other commands."""

import json

import pytest

from support import MELONS, ROOT, complains

FIGURE = ROOT / "corpora" / "melon-network.json"


@pytest.fixture
def melons(table, model):
    status, out, _ = table("train", MELONS, "--target", "好瓜", "--model", "network")
    assert status == 0
    assert "learned 好瓜 by network" in out
    return model


def test_a_network_of_a_table_classifies_explains_and_is_evaluated(table, melons):
    out = table("classify", MELONS)[1]

    assert [line.split("\t")[0] for line in out.splitlines()].count("是") > 4
    assert table("explain", MELONS)[0] == 0
    assert table("info")[0] == 0
    how = ("--model", "network", "--criterion", "aic", "--start", "naive", "--max-parents", "2")
    status, out, _ = table("eval", MELONS, "--target", "好瓜", "--cv", "4", *how)
    assert status == 0
    assert "accuracy" in out


def test_a_network_of_tokens_classifies_mail(nbspam, mails, model):
    how = ("--model", "network", "--features", "12", "--no-climb")
    assert nbspam("train", mails, *how)[0] == 0
    verdicts = nbspam("predict", mails / "spam")[1].split()

    assert verdicts.count("spam") > 70
    structure = nbspam("query", "-m", model)[1].splitlines()
    assert structure[-1] == "class"
    assert len(structure) == 13
    token = structure[0].split("\t")[0]
    status, out, _ = nbspam(
        "query", "-m", model, "--evidence", f"{token}=present", "--target", "class"
    )
    assert status == 0
    assert out.splitlines()[1].startswith("ham\t")


def test_json_shows_names_as_they_are_written(table, melons):
    assert '"name": "好瓜", "values": ["是", "否"]' in table("query", "-m", FIGURE, "--json")[1]
    for words in (["info", "--json"], ["export", "--format", "json"]):
        out = table(*words)[1]
        assert "好瓜" in out
        assert "\\u" not in out


def test_the_structure_is_printed_as_lines_dot_and_json_that_can_be_queried(
    table, melons, tmp_path
):
    lines = table("query", "-m", FIGURE)[1].splitlines()
    assert lines[3] == "色泽\t<-\t好瓜, 甜度"
    assert '"甜度" -> "根蒂";' in table("query", "-m", FIGURE, "--dot")[1]
    assert '"好瓜" -- "甜度";' in table("query", "-m", FIGURE, "--dot", "--moral")[1]
    assert "好瓜\t-\t甜度\n" in table("query", "-m", FIGURE, "--moral")[1]

    (tmp_path / "again.json").write_text(table("query", "-m", melons, "--json")[1])
    question = ("--evidence", "敲声=沉闷", "--target", "好瓜")
    again = table("query", "-m", tmp_path / "again.json", *question)
    assert again == table("query", "-m", melons, *question)


def test_a_number_as_evidence_means_its_interval(table, model, tmp_path):
    rows = "\n".join(f"{x / 40},{'yes' if x > 20 else 'no'}" for x in range(40))
    (tmp_path / "t.csv").write_text(f"size,ripe\n{rows}\n")
    assert table("train", tmp_path / "t.csv", "--target", "ripe", "--model", "network")[0] == 0
    out = table("query", "-m", model, "--evidence", "size=0.9", "--target", "ripe", "--json")[1]

    assert json.loads(out)["rows"][1]["probability"] > 0.9


@pytest.fixture
def copies(tmp_path):
    """A network in which b is always what a is, and c says which of them are 1."""
    a = {"name": "a", "values": ["0", "1"], "parents": [], "table": [[0.7, 0.3]]}
    b = {"name": "b", "values": ["0", "1"], "parents": ["a"], "table": [[1, 0], [0, 1]]}
    table = [[1, 0], [0, 1], [0, 1], [1, 0]]  # c is the exclusive or of a and b: always 0
    c = {"name": "c", "values": ["0", "1"], "parents": ["a", "b"], "table": table}
    (tmp_path / "copies.json").write_text(json.dumps({"variables": [a, b, c]}))
    return tmp_path / "copies.json"


def test_sampling_that_cannot_reach_every_state_says_so(table, copies, monkeypatch):
    question = ("query", "-m", copies, "--target", "a", "b")
    said = "so this estimate is worthless; ask without --gibbs"
    assert complains(table(*question, "--gibbs", "1000"), 0, "the tables hold 0 or 1", said)
    # Zeros alone do no harm: from a known a, every state left is reached.
    assert table("query", "-m", copies, "--target", "b", "--evidence", "a=1", "--gibbs", "1000")[
        ::2
    ] == (0, "")
    exact = json.loads(table(*question, "--json")[1])["rows"]
    assert [row["probability"] for row in exact] == [0.7, 0, 0, 0.3]
    # Among too many states to try they are suspected.
    monkeypatch.setattr("nbspam.models.network.questions.MAX_STATES", 3)
    err = table(*question, "--gibbs", "1000")[2]
    assert "some values may never be reached; ask without --gibbs" in err


def test_a_value_after_a_target_may_be_target_or_evidence_and_is_refused(table, copies):
    question = ("query", "-m", copies, "--target", "a=1", "b=1")
    said = "b=1: target or evidence? Write --target b=1 for a joint probability, or --evidence b=1"
    assert complains(table(*question), 2, said)
    joint = table("query", "-m", copies, "--target=a=1", "--target", "b=1", "--evidence", "c=0")
    assert joint[:2] == (0, "a\tb\tprobability\n1\t1\t0.300000\n")


def test_impossible_evidence_is_refused_exactly_and_when_sampled(table, copies):
    question = ("query", "-m", copies, "--target", "a", "--evidence", "c=1")
    assert complains(table(*question), 2, "evidence: impossible in this network; change")
    said = "kept it from any state that agrees with the evidence"
    assert complains(table(*question, "--gibbs", "1000"), 2, said)


def test_tables_beyond_memory_are_refused(nbspam, mails, model):
    how = ("--model", "network", "--features", "40", "--max-parents", "39")
    said = "a table of 39 parents would need 8 TiB, more than 512 MiB"
    assert complains(nbspam("train", mails, *how), 2, said)
    assert not model.exists()


def test_a_token_called_class_gets_another_name_than_the_class(nbspam, model, tmp_path):
    rows = ['{"label": "a", "text": "class"}', '{"label": "b", "text": "other"}'] * 5
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    assert nbspam("train", tmp_path / "t.jsonl", "--model", "network")[0] == 0
    names = [line.split("\t")[0] for line in nbspam("query", "-m", model)[1].splitlines()]

    assert sorted(names) == ["class", "class#2", "other"]
