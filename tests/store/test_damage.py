"""A damaged journal: what is good in it is used, what is lost is said, and nothing is cut away."""

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from nbspam.errors import ModelFileError
from nbspam.store.doctor import BAD, NOTE, findings, repair
from nbspam.store.journal import (
    _CHANGE,
    END_SIZE,
    HEADER,
    Condition,
    end_mark,
    journal_path,
    name_successor,
    read_journal,
    write_journal,
    write_model,
)
from nbspam.store.model import StoredModel, keep_cutoffs
from nbspam.store.modelfile import Identity, load_state
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.prune import PruningRule, prune_model
from stored import half_spam, train_on
from stored import numbered as item
from support import ROOT, told

pytestmark = pytest.mark.usefixtures("quick_disk")
N_DOCS, N_CHANGES = 400, 4


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("trained") / "m.nbspam")
    train_on(half_spam(range(1000, 1000 + N_DOCS)), path, day=1)
    for n in range(N_CHANGES):
        StoredModel(path).learn([item(n)], day=1)
    return path


@pytest.fixture
def model(once, tmp_path):
    """A copy of a model with a journal of four changes."""
    shutil.copy(journal_path(once), tmp_path / "m.nbspam.journal")
    return shutil.copy(once, tmp_path / "m.nbspam")


@pytest.fixture
def journal(model):
    return Path(journal_path(model))


def known(path):
    """Return which of the messages 0 to 9 a model has learned."""
    vocabulary = load(path).table.vocabulary
    texts = {vocabulary.text(j) for j in range(len(vocabulary))}
    return [n for n in range(10) if f"pills{n}" in texts]


def records(data):
    """Return where each record begins in a journal, and where the end mark does."""
    found = [HEADER.size]
    for _ in range(N_CHANGES):
        length = int.from_bytes(data[found[-1] : found[-1] + 4], "little")
        found.append(found[-1] + 4 + length + 4)
    return found


def flip(journal, at):
    data = bytearray(journal.read_bytes())
    data[at] ^= 0x10
    journal.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "step"),
    [(lambda data, at: data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :], 7),
     (lambda data, at: data[:at], 5)],
    ids=["flipped", "cut"],
)  # fmt: skip
def test_damage_at_any_byte_is_told_and_costs_no_change_before_it(model, journal, damage, step):
    whole = journal.read_bytes()
    starts = records(whole)
    for at in range(0, len(whole), step):
        journal.write_bytes(damage(whole, at))
        with told() as texts:
            found = known(model)
        assert found == [n for n in range(N_CHANGES) if starts[0] <= at and starts[n + 1] <= at]
        assert len(texts) == 1


def test_records_that_were_exchanged_or_are_of_another_journal_are_told(model, journal, tmp_path):
    other = str(tmp_path / "other")
    train_on([item(5), item(6, "ham")], other)
    write_journal(other, StoredModel(other)._identity, read_journal(model).changes)
    foreign, data = Path(journal_path(other)).read_bytes(), journal.read_bytes()
    _, first, second, third, _ = records(data)
    for put, kept in (
        (data[second:third] + data[first:second], [0]),
        (data[first:second] + foreign[second:third], [0, 1]),
    ):
        journal.write_bytes(data[:first] + put + data[third:])
        with told() as texts:
            assert known(model) == kept
        assert f"{len(kept)} changes are used, {4 - len(kept)} are lost" in texts[0]


def writers(model):
    return {
        "prune": lambda: prune_model(model, PruningRule(min_df=1, older_than=0), 1),
        "cutoffs": lambda: keep_cutoffs(model, load(model).rule),
        "save": lambda: save_classifier(model, load(model)),
        "compact": lambda: StoredModel(model).compact(),
        "a fit": lambda: StoredModel(model).learn([item(n) for n in range(20, 40)], day=1),
    }


@pytest.mark.parametrize("way", writers(""))
@pytest.mark.parametrize("what", ["damaged", "foreign", "notes"])
def test_every_writer_of_a_model_keeps_what_it_did_not_take_in(model, journal, way, what):
    journal.with_suffix(".journal.0").write_bytes(b"older notes")  # are not replaced
    if what == "damaged":
        flip(journal, records(journal.read_bytes())[1] + 20)
    elif what == "foreign":
        changes = read_journal(model).changes
        StoredModel(model).compact()
        strange = [change._replace(digest=change.digest ^ 1) for change in changes]
        write_journal(model, Identity(1, 2), strange)
    else:
        journal.write_bytes(b"notes of mine, which are not a journal")
    before = journal.read_bytes()
    states = [finding.state for finding in findings(model) if finding.what == "journal"]
    assert states == [BAD if what == "damaged" else NOTE]
    with told() as texts:
        writers(model)[way]()
    older, *kept = sorted(path for path in journal.parent.iterdir() if ".journal." in path.name)

    assert not journal.exists() or read_journal(model).is_whole
    assert [path.read_bytes() for path in (older, *kept)] == [b"older notes", before]
    assert any(text.startswith(str(kept[0])) for text in texts)
    assert what != "damaged" or known(model)[0] == 0


def test_an_unfinished_write_is_no_damage_and_is_cut_off_with_a_word(model, journal):
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"half")
    assert known(model) == [0, 1, 2, 3]  # silently: the end mark says that nothing is missing
    (found,) = (each for each in findings(model) if each.what == "journal")
    assert found.state == NOTE
    assert "the bytes after them are of an unfinished write" in found.text
    with told() as texts:
        StoredModel(model).learn([item(9)], day=1)

    assert len(texts) == 1
    assert "an unfinished write at its end, never acknowledged, was cut off" in texts[0]
    assert known(model) == [0, 1, 2, 3, 9]
    assert not list(journal.parent.glob("*.journal.*"))


@pytest.mark.parametrize("step", [1, 2])
def test_a_writer_killed_between_its_writes_leaves_what_was_acknowledged(model, journal, step):
    script = (
        "import os, sys\n"
        "sys.path[:0] = ['tests', 'tests/store']\n"
        "from test_damage import item, StoredModel\n"
        "write, left = os.write, int(sys.argv[2])\n"
        "def killed(*arguments):\n"
        "    global left\n"
        "    left -= 1\n"
        "    return write(*arguments) if left else os._exit(9)\n"
        "model = StoredModel(sys.argv[1])\n"
        "os.write = killed\n"
        "model.learn([item(9)], day=1)\n"
    )
    command = [sys.executable, "-c", script, model, str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert done.returncode == 9, done.stderr
    assert known(model) == [0, 1, 2, 3]
    assert read_journal(model).condition == (
        Condition.WHOLE if step == 1 else Condition.UNFINISHED
    )


def test_a_kill_between_file_and_journal_leaves_one_that_is_removed_in_silence(model, journal):
    """The new file has the changes of the journal, and one that contradicts them."""
    held = StoredModel(model)
    old = journal.read_bytes()
    held.unlearn([item(0)], day=1)
    held.compact()
    new = StoredModel(model)._identity
    journal.write_bytes(old)
    assert read_journal(model).successor != new
    with told() as texts:  # as if its machine had stopped: nothing tells what it is
        assert known(model) == [1, 2, 3]
    assert "the journal of another model, or of this one at another time" in texts[0]

    name_successor(model, read_journal(model), new)
    assert known(model) == [1, 2, 3]
    assert [f.state for f in findings(model) if f.what == "journal"] == [NOTE]
    assert StoredModel(model).learn([item(9)], day=1).notes == ()
    assert known(model) == [1, 2, 3, 9]
    assert not list(journal.parent.glob("*.journal.*"))


def test_the_successor_is_named_before_the_file_has_its_name(model, journal, monkeypatch):
    seen = []
    real = os.replace

    def replace(*paths):
        seen.append(read_journal(model).successor)
        real(*paths)

    monkeypatch.setattr(os, "replace", replace)
    StoredModel(model).compact()
    assert seen == [StoredModel(model)._identity]


@pytest.mark.parametrize("groups", [b"\x09", b""])
def test_a_record_of_right_checksum_and_wrong_contents_is_damage(model, journal, groups):
    identity = StoredModel(model)._identity
    body = _CHANGE.pack(1, 1, -1, 4, 1, 0, 1, 0) + b"spam" + bytes(8) + bytes(4) + groups
    record = len(body).to_bytes(4, "little") + body
    crc = zlib.crc32(record, read_journal(model).crc).to_bytes(4, "little")
    data = journal.read_bytes()[:-END_SIZE] + record + crc + end_mark(identity, 5)
    journal.write_bytes(data)
    with told() as texts:
        assert known(model) == [0, 1, 2, 3]
    assert "4 changes are used, 1 are lost" in texts[0]


# ---- repair ----


def test_doctor_repairs_and_says_what_was_saved(nbspam, model, journal):
    flip(journal, records(journal.read_bytes())[1] + 20)
    damaged = journal.read_bytes()
    status, out, _ = nbspam("doctor", "-m", model)
    assert status == 1
    assert "bad\tjournal\t" in out
    assert "save them with: nbspam doctor --repair" in out
    status, out, err = nbspam("doctor", "-m", model, "--repair")

    assert (status, err) == (0, "")
    saved = out.splitlines()[0]
    assert saved.startswith("note\trepair\t1 changes saved in a new journal, 3 are lost;")
    assert Path(saved.partition("kept as ")[2]).read_bytes() == damaged
    assert known(model) == [0]
    assert nbspam("doctor", "-m", model, "--repair")[1].startswith("good\trepair\tthere was not")


def test_repair_moves_what_is_not_the_models_away(nbspam, model, journal):
    journal.write_bytes(b"notes")
    out = nbspam("doctor", "-m", model, "--repair", "--json")[1]

    assert "what was in the journal's place is now" in str(json.loads(out))
    assert not journal.exists()
    assert [path.read_bytes() for path in journal.parent.glob("*.journal.*")] == [b"notes"]


def test_a_damaged_model_file_cannot_be_repaired_but_the_one_before_is_named(model):
    shutil.copy(model, f"{model}~")
    flip(Path(model), 5000)
    finding = repair(model)

    assert finding.state == BAD
    assert finding.text.endswith(f"the model that was there before is {model}~")


def test_there_is_nothing_to_repair_where_there_is_no_model(tmp_path):
    with pytest.raises(ModelFileError, match="no such model"):
        repair(str(tmp_path / "none"))
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_written_still_has_its_journal(model, journal, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = journal.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(ModelFileError, match="No space left"):
            write_model(model, dict(load_state(model)))
    assert read_journal(model).changes
    assert len(journal.read_bytes()) == len(before)
    assert known(model) == [0, 1, 2, 3]
