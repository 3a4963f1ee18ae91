"""Doctor: a whole model is good, a damaged one is bad, and who else can read or change it."""

import json
import os
from dataclasses import replace

import pytest

from nbspam.store.model import StoredModel
from nbspam.store.open import load_classifier, save_classifier
from nbspam.store.upkeep import BAD, EVERYONE, GOOD, NOTE, findings, readers, writers
from support import SPAM, write_mails


def states(path):
    return {finding.what: finding.state for finding in findings(str(path))}


def test_of_a_whole_model_everything_is_good(nbspam, model, tmp_path):
    nbspam("train", write_mails(tmp_path / "more", 24))  # so that the journal takes one more
    nbspam("update", "--spam", "-", stdin=SPAM)
    status, out, err = nbspam("doctor", "-m", model)

    assert (status, err) == (0, "")
    assert {line.split("\t")[0] for line in out.splitlines()} == {GOOD}
    assert "1 changes" in out
    found = json.loads(nbspam("doctor", "--json")[1])["findings"]
    assert [each["state"] for each in found] == [GOOD] * 6


def test_a_damaged_file_and_what_is_no_model_are_bad(nbspam, trained, tmp_path):
    data = bytearray(trained.read_bytes())
    data[len(data) // 2] ^= 1
    trained.write_bytes(data)
    for path, why in ((trained, "damaged"), (tmp_path / "none", "no such"), (tmp_path, "folder")):
        status, out, err = nbspam("doctor", "-m", path)
        assert (status, err) == (1, "")
        assert out.startswith("bad\tfile\t")
        assert why in out


def test_counts_that_contradict_each_other_are_told(nbspam, trained):
    whole = StoredModel(str(trained)).whole()

    def stored(**changes):
        save_classifier(str(trained), replace(whole, table=whole.table._replace(**changes)))
        return states(trained)

    # A token in more messages than there are is bad; more messages than the ledger is a note.
    assert stored(feature_count=whole.table.feature_count + 5)["counts"] == BAD
    assert stored(class_count=whole.table.class_count * 10)["ledger"] == NOTE
    assert nbspam("doctor")[0] == 0
    save_classifier(str(trained), replace(load_classifier(str(trained)), memory=None))
    found = {"file": GOOD, "rights": GOOD, "counts": GOOD, "ledger": NOTE, "journal": GOOD}
    assert states(trained) == found


# ---- rights ----


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that everyone can enter, as far as the test can tell."""
    real = os.stat

    def stat(path, **options):
        status = real(path, **options)
        if str(tmp_path).startswith(f"{path}/"):
            return os.stat_result((0o040755, *status[1:]))
        return status

    monkeypatch.setattr(os, "stat", stat)
    tmp_path.chmod(0o755)
    return tmp_path


def made(place, name="m", mode=0o600):
    path = place / name
    path.write_bytes(b"x")
    path.chmod(mode)
    return str(path)


def test_whoever_may_read_a_file_of_the_model_is_named(place):
    path = made(place)
    journal = made(place, "m.journal", 0o644)
    older = made(place, "m~", 0o640)
    made(place, "m.lock", 0o644)
    made(place, "mail", 0o644)

    found = readers(path)
    assert found.pop(EVERYONE) == [journal]
    assert list(found.values()) == [[older]]
    assert next(iter(found)).startswith("group ")


def test_whoever_may_replace_a_model_can_change_it(place):
    path = made(place)
    place.chmod(0o777)
    assert writers(path) == {EVERYONE: [str(place)]}
    place.chmod(0o1777)  # as /tmp: nobody can replace another's file
    assert writers(path) == {}
    os.chmod(path, 0o602)
    assert writers(path) == {EVERYONE: [path]}


def test_only_those_who_can_enter_the_folder_can_read_a_model(place):
    path = made(place)
    assert readers(path) == writers(path) == {}
    for mode, entered in ((0o644, 0o755), (0o640, 0o710)):  # by everyone, and by a group
        os.chmod(path, mode)
        place.chmod(entered)
        assert list(readers(path).values()) == [[path]]
        place.chmod(0o700)
        assert readers(path) == {}


def test_doctor_says_who_can_read_or_change_a_model(trained, place):
    trained.parent.chmod(0o755)
    for mode, state, words in (
        (0o600, GOOD, ""),
        (0o644, NOTE, f"everyone on this machine can read the words of your mail in {trained}"),
        (0o666, BAD, "can change"),
    ):
        trained.chmod(mode)
        (said,) = (finding for finding in findings(str(trained)) if finding.what == "rights")
        assert said.state == state
        assert words in said.text
