"""Models, journals and answers of earlier code, mostly before the rooms: all still open.

See tests/evidence/models/README.txt.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from nbspam.classifier.blending import Blend
from nbspam.classifier.combining import Combination
from nbspam.errors import NbspamError
from nbspam.sources.items import Item
from nbspam.sources.records import read_records
from nbspam.store.format.journal import journal_path, read_journal
from nbspam.store.model import StoredModel
from nbspam.store.open import load, save
from nbspam.store.text.interchange import dump_lines
from nbspam.verdicts import posterior
from support import ROOT, json_lines, told

pytestmark = pytest.mark.usefixtures("quick_disk")
MODELS = ROOT / "tests" / "evidence" / "models"
EXPECTED = {
    path.parent.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(MODELS.glob("*/expected.json"))
}
LEARNS = [name for name, facts in EXPECTED.items() if facts["can_learn_on"]]
WITH_JOURNAL = [name for name, facts in EXPECTED.items() if "whole" in facts]
EXPLAINED = [name for name, facts in EXPECTED.items() if "explain" in facts]
EXACT, FITTED = 1e-9, 1e-6


@pytest.fixture
def copy(tmp_path):
    """Copy a model, with its journal if wanted; return its path."""

    def make(name, with_journal=False):
        path = tmp_path / "model.nbspam"
        shutil.copy(MODELS / name / "model.nbspam", path)
        if with_journal:
            shutil.copy(MODELS / name / "model.nbspam.journal", journal_path(str(path)))
        return str(path)

    return make


def questions(name, model):
    asked = EXPECTED[name]["inputs"]
    if "rows" in asked:
        own = MODELS / name / asked["table"]
        table = own if own.exists() else ROOT / "corpora" / asked["table"]
        records = list(read_records([str(table)], names=model.schema.names))
        return [records[row - 1] for row in asked["rows"]]
    if "texts" in asked:
        return [Item(f"text {n}", None, t.encode(), True) for n, t in enumerate(asked["texts"])]
    return [Item(str(ROOT / "corpora" / "mail" / path), None) for path in asked["mail"]]


def answers_as(name, model, expected, tolerance):
    """Assert that a model answers, labels and scores as expected."""
    inputs = questions(name, model)
    shares = posterior(np.stack([answer.joint for answer in model.answers(inputs)]))
    wanted = [list(row["posterior"].values()) for row in expected["answers"]]
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=tolerance)
    for verdict, row in zip(model.classify(inputs), expected["answers"], strict=True):
        assert verdict.label == row["label"]
        assert tuple(verdict.posterior) == tuple(row["posterior"])
        if "score" in row:
            assert verdict.score == pytest.approx(row["score"], abs=100 * tolerance)


def counts_of(model):
    return dict(zip(model.classes, model.table.class_count.tolist(), strict=True))


def sha256(lines):
    return hashlib.sha256(b"".join(lines)).hexdigest()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_file_alone_answers_as_it_did(copy, name):
    model, expected = load(copy(name)), EXPECTED[name]["file"]
    answers_as(name, model, expected, FITTED if is_blended(model) else EXACT)
    if "tokens" in expected:
        assert counts_of(model) == expected["class_count"]
        assert len(model.table.vocabulary) == expected["tokens"]
    if "cutoffs" in EXPECTED[name]:
        assert model.cutoffs._asdict() == EXPECTED[name]["cutoffs"]


def is_blended(model):
    return isinstance(getattr(model, "fit", None), Blend)


@pytest.mark.parametrize("name", LEARNS)
def test_the_file_alone_is_exported_as_it_was(copy, name):
    lines = list(dump_lines(load(copy(name))))
    assert exported(lines) == expected_export(EXPECTED[name]["file"]["dump"])


def exported(lines):
    """Return number, settings, and checksums of the lines of tokens, of messages, of all."""
    kinds = [
        [line for line in lines if line.startswith(b'{"%s"' % kind)]
        for kind in (b"token", b"message")
    ]
    header = json.loads(lines[0])
    del header["digest_versions"]  # which exports did not have then
    rest = [json.dumps(header).encode() + b"\n", *lines[1:]]
    return len(lines), header, *map(sha256, kinds), sha256(rest)


def expected_export(dump):
    names = "lines", "settings", "tokens_sha256", "messages_sha256", "sha256"
    return tuple(dump[name] for name in names)


@pytest.mark.parametrize("name", WITH_JOURNAL)
def test_a_journal_is_read_whole(copy, name):
    path, facts = copy(name, with_journal=True), EXPECTED[name]
    journal = read_journal(path)
    assert len(journal.changes) == facts["journal"]["changes"]
    assert journal.size == facts["journal"]["bytes"]
    with told() as texts:
        assert counts_of(load(path)) == facts["with_journal"]["class_count"]
    assert len(texts) == (not facts["journal"]["is_the_models"])


@pytest.mark.parametrize("name", WITH_JOURNAL)
def test_a_model_that_takes_its_journal_in_is_what_it_became_then(copy, tmp_path, name):
    with told():
        whole = StoredModel(copy(name, with_journal=True)).whole()
    facts = EXPECTED[name]["whole"]
    assert counts_of(whole) == facts["class_count"]
    assert exported(list(dump_lines(whole))) == expected_export(facts["dump"])
    # How corrections are learned has changed since (E-019): combined evidence answers otherwise.
    tolerance = 0.15 if isinstance(whole.fit, Combination) else FITTED
    answers_as(name, whole, facts, tolerance)
    save(str(tmp_path / "written"), whole)
    answers_as(name, load(str(tmp_path / "written")), facts, tolerance)


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_model_explains_itself_as_it_did(nbspam, copy, monkeypatch, name):
    path, facts = copy(name), EXPECTED[name]["explain"]
    words = [path if word == "MODEL" else word for word in facts["arguments"]]
    monkeypatch.chdir(ROOT / "corpora" / "mail")
    status, out, err = nbspam(*words, stdin=facts.get("stdin", "").encode())
    assert (status, err) == (0, "")
    (ours,), theirs = json_lines(out), facts["result"]
    for token in ours["tokens"]:
        token["counts"] = list(token["counts"].values())
    assert ours.pop("risk") is None  # no costs are stated
    probability = ours.pop("probability")
    assert probability == ours["posterior"][ours["label"]]
    if "probability" in theirs:  # which was that of the last class
        ours["probability"] = list(ours["posterior"].values())[-1]
    same(ours, theirs)


def same(ours, theirs):
    """Assert that two values of JSON are the same, numbers nearly."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            same(our, their)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=FITTED)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", LEARNS)
def test_a_model_learns_one_more_message_and_is_of_today(copy, name):
    facts = EXPECTED[name]
    path = copy(name, with_journal=name in WITH_JOURNAL)
    with told():
        before = counts_of(load(path))
    is_text = "texts" in facts["inputs"]
    first = sorted(before)[0]
    message = Item("new", first, b"Subject: zebra\n\nzebra crossing\n", is_text)
    with told():
        assert StoredModel(path).learn([message], day=20_100).learned == 1

    after = {**before, first: before[first] + 1}
    assert counts_of(load(path)) == counts_of(StoredModel(path).whole()) == after
    assert StoredModel(path).learn([message], day=20_100).already_known == 1
    answers_as(name, load(path), {"answers": answers_of(name, path)}, EXACT)


def answers_of(name, path):
    """Return what the model held in memory answers, as expected.json has it."""
    model = StoredModel(path).classifier()
    return [
        {"posterior": verdict.posterior, "label": verdict.label}
        for verdict in model.classify(questions(name, model))
    ]


@pytest.mark.parametrize("name", [n for n in EXPECTED if "after_learning_one" in EXPECTED[n]])
def test_journals_that_are_torn_left_or_foreign_are_treated_as_they_were(copy, tmp_path, name):
    path, facts = copy(name, with_journal=True), EXPECTED[name]["after_learning_one"]
    mail = str(ROOT / "corpora" / "mail" / facts["what"])
    with told() as texts:
        outcome = StoredModel(path).learn([Item(mail, facts["class"])], day=facts["day"])

    assert outcome.learned == facts["learned"]
    assert sum("of another model, moved" in text for text in texts) == len(facts["notes"])
    assert counts_of(load(path)) == facts["class_count"]
    aside = [file for file in facts["files"] if ".journal." in file]
    assert len(aside) == sum(".journal." in file.name for file in tmp_path.iterdir())


@pytest.mark.parametrize("name", [n for n in EXPECTED if n not in LEARNS])
def test_a_model_that_cannot_learn_on_says_so_in_one_line(copy, name):
    path = copy(name)
    before = Path(path).read_bytes()
    with pytest.raises(NbspamError) as error:
        StoredModel(path).learn([Item("x", "ham", b"x")], day=1)

    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert Path(path).read_bytes() == before
