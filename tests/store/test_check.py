import json
from dataclasses import replace

import numpy as np
import pytest

from nbspam.store.health.check import BAD, GOOD, NOTE, findings
from nbspam.store.model import StoredModel
from nbspam.store.open import save
from support import ROOT, SPAM, write_mails

pytestmark = pytest.mark.usefixtures("quick_disk")


def states(path):
    return {finding.what: finding.state for finding in findings(str(path))}


@pytest.fixture
def trained_on_more(nbspam, model, tmp_path):
    """Return the path of a model of so many messages that one more goes into its journal."""
    nbspam("train", write_mails(tmp_path / "more", 24))
    return model


def test_of_a_whole_model_everything_is_good(nbspam, trained_on_more):
    nbspam("update", "--spam", "-", stdin=SPAM)
    status, out, err = nbspam("doctor", "-m", trained_on_more)

    assert (status, err) == (0, "")
    assert {line.split("\t")[0] for line in out.splitlines()} == {GOOD}
    assert "1 changes" in out
    assert [f["state"] for f in json.loads(nbspam("doctor", "--json")[1])["findings"]] == [
        GOOD
    ] * 6


def test_a_damaged_file_is_bad(nbspam, trained):
    data = bytearray(trained.read_bytes())
    data[len(data) // 2] ^= 1
    trained.write_bytes(data)
    status, out, _ = nbspam("doctor")

    assert status == 1
    assert out.startswith("bad\tfile\t")
    assert "damaged" in out


@pytest.mark.parametrize("what", ["none", "folder"])
def test_what_is_no_model_is_bad(nbspam, tmp_path, what):
    if what == "folder":
        (tmp_path / what).mkdir()
    status, out, err = nbspam("doctor", "-m", tmp_path / what)

    assert (status, err) == (1, "")
    assert out.startswith("bad\tfile\t")


def damaged(classifier, what):
    memory, table = classifier.memory, classifier.table
    if what == "counts":
        return replace(classifier, table=table._replace(feature_count=table.feature_count + 5))
    if what == "texts":
        offsets = table.vocabulary.offsets.copy()
        offsets[3] = 0
        vocabulary = replace(table.vocabulary, offsets=offsets)
        return replace(classifier, table=table._replace(vocabulary=vocabulary))
    if what == "ledger":
        ledger = memory.ledger._replace(digests=memory.ledger.digests[::-1].copy())
        return replace(classifier, memory=memory._replace(ledger=ledger))
    if what == "classes":
        labels = np.full(len(memory.ledger.digests), 7, np.uint16)
        ledger = memory.ledger._replace(labels=labels)
        return replace(classifier, memory=memory._replace(ledger=ledger))
    documents = memory.sample.documents
    columns = documents.columns + np.uint32(1_000_000)
    sample = memory.sample._replace(documents=documents._replace(columns=columns))
    return replace(classifier, memory=memory._replace(sample=sample))


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("counts", "counts"),
        ("texts", "contents"),
        ("ledger", "contents"),
        ("classes", "file"),
        ("sample", "contents"),
    ],
)
def test_tables_that_do_not_fit_together_are_bad(trained, what, where):
    save(str(trained), damaged(StoredModel(str(trained)).whole(), what))

    assert states(trained)[where] == BAD


def test_counts_that_the_ledger_does_not_tell_of_are_a_note(nbspam, trained):
    classifier = StoredModel(str(trained)).whole()
    table = classifier.table._replace(class_count=classifier.table.class_count * 10)
    save(str(trained), replace(classifier, table=table))

    assert states(trained)["ledger"] == NOTE
    assert nbspam("doctor")[0] == 0


def test_a_torn_record_is_a_note(nbspam, trained_on_more):
    trained = trained_on_more
    nbspam("update", "--spam", "-", stdin=SPAM)
    with open(f"{trained}.journal", "ab") as file:
        file.write(b"half")

    assert states(trained)["journal"] == NOTE
    assert "the bytes after them are of an unfinished write" in nbspam("doctor")[1]


def test_a_model_of_the_first_format_is_whole_but_has_no_ledger():
    path = ROOT / "tests" / "evidence" / "format-1-mail.nbspam"

    found = states(path)
    assert found.pop("rights") in {GOOD, NOTE}  # those of a working copy
    assert found == {"file": GOOD, "counts": GOOD, "ledger": NOTE, "journal": GOOD}
