import json
from dataclasses import replace

import pytest

from nbspam.store.doctor import BAD, GOOD, NOTE, findings
from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from support import SPAM, write_mails

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


def test_a_token_in_more_messages_than_there_are_is_bad(trained):
    classifier = StoredModel(str(trained)).whole()
    table = classifier.table._replace(feature_count=classifier.table.feature_count + 5)
    save_classifier(str(trained), replace(classifier, table=table))

    assert states(trained)["counts"] == BAD


def test_counts_that_the_ledger_does_not_tell_of_are_a_note(nbspam, trained):
    classifier = StoredModel(str(trained)).whole()
    table = classifier.table._replace(class_count=classifier.table.class_count * 10)
    save_classifier(str(trained), replace(classifier, table=table))

    assert states(trained)["ledger"] == NOTE
    assert nbspam("doctor")[0] == 0


def test_a_model_that_knows_no_messages_is_whole_but_has_no_ledger(trained):
    save_classifier(str(trained), replace(load_classifier(str(trained)), memory=None))

    found = states(trained)
    assert found == {"file": GOOD, "rights": GOOD, "counts": GOOD, "ledger": NOTE, "journal": GOOD}
