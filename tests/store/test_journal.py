"""The journal: whatever a crash leaves, every acknowledged change is there, and no half."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.classifier.training import train
from nbspam.counts.changes import Change
from nbspam.counts.counting import count_items
from nbspam.errors import ModelFileError
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store import model as living
from nbspam.store.check import BAD, NOTE, findings
from nbspam.store.format import journal
from nbspam.store.format.journal import append, journal_path, read_journal
from nbspam.store.format.modelfile import Identity
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save
from nbspam.store.prune import Rule, prune
from nbspam.tokens.documents import Documents, offsets_of
from nbspam.tokens.vocabulary import Vocabulary
from support import ROOT, examples

pytestmark = pytest.mark.usefixtures("quick_disk")
OWNER = Identity(1234, 5678)
N = 240
NAMES = st.one_of(st.none(), st.text(max_size=5))


@st.composite
def changes(draw):
    keys = st.sets(st.integers(0, 1 << 63), max_size=5)
    tokens = np.array(sorted(draw(keys)), "u8")
    counts = st.lists(st.integers(1, 3), min_size=len(tokens), max_size=len(tokens))
    document = Documents(
        tokens,
        np.array([0, len(tokens)]),
        np.arange(len(tokens)),
        np.array(draw(counts), "u4"),
    )
    new = tokens[draw(st.integers(0, len(tokens))) :]
    lengths = draw(st.lists(st.integers(0, 9), min_size=len(new), max_size=len(new)))
    texts = np.arange(sum(lengths), dtype="u1")
    return Change(
        draw(st.integers(0, (1 << 64) - 1)),
        draw(NAMES),
        draw(NAMES),
        draw(st.integers(0, 65535)),
        document,
        Vocabulary(new, texts, offsets_of(lengths), np.zeros(len(new), "u1")),
        draw(st.floats(-1.5, 1.0)),
    )


def plain(change):
    """Return a change as values that compare."""
    document, new = change.document, change.new.packed()
    arrays = document.tokens, document.columns, document.times(), new.keys, new.offsets, new.blob
    return [*change[:4], change.step, *(array.tolist() for array in arrays)]


def item(n, label="spam"):
    data = b"Message-ID: <%d@x>\nSubject: s%d\n\npills%d\n" % (n, n, n)
    return Item(f"m{n}", label, data)


def trained_on(n_docs, path):
    """Train a model on messages from number 100 on; half of them are ham."""
    items = [item(n, "ham" if n % 2 else "spam") for n in range(100, 100 + n_docs)]
    save(path, train(count_items(items, PRESETS["mail"]), PRESETS["mail"], 1))
    return path


@pytest.fixture
def model(tmp_path):
    """A model that takes twelve changes of a class into its journal, and then a fit is due."""
    return trained_on(N, str(tmp_path / "m.nbspam"))


@pytest.fixture
def small(tmp_path):
    """A model of four messages: after every change a fit is due."""
    return trained_on(4, str(tmp_path / "m.nbspam"))


@examples(20)
@given(written=st.lists(st.lists(changes(), max_size=3), max_size=3))
def test_what_is_appended_is_read(tmp_path_factory, written):
    path = str(tmp_path_factory.mktemp("j") / "m")
    end = 0
    for batch in written:
        end = append(path, OWNER, batch, end).end
    found = read_journal(path)

    assert [plain(c) for c in found.changes] == [plain(c) for batch in written for c in batch]
    assert found.end == found.size == end
    if written:
        assert found.owner == OWNER
        assert os.stat(journal_path(path)).st_mode & 0o777 == 0o600


def test_cut_at_every_byte_a_journal_holds_what_was_whole_and_takes_more(model):
    ends = [0]
    for n in range(3):
        StoredModel(model).learn([item(n)], day=1)
        ends.append(os.path.getsize(journal_path(model)))
    whole = Path(journal_path(model)).read_bytes()
    for cut in range(len(whole)):
        Path(journal_path(model)).write_bytes(whole[:cut])
        n_whole = sum(end <= cut for end in ends[1:])
        assert len(read_journal(model).changes) == n_whole
        if cut % 29 == 0:  # the next writer cuts the rest off
            assert load(model).table.n_docs == N + n_whole
            assert StoredModel(model).learn([item(9)], day=1).learned == 1
            assert load(model).table.n_docs == N + 1 + n_whole
            assert not [f for f in findings(model) if f.state != "good"]


def test_after_any_flipped_bit_nothing_is_read_that_was_not_written(model):
    StoredModel(model).learn([item(0), item(1)], day=1)
    whole = Path(journal_path(model)).read_bytes()
    written = [plain(change) for change in read_journal(model).changes]
    for at in range(len(whole)):
        flipped = bytes([whole[at] ^ 0x10])
        Path(journal_path(model)).write_bytes(whole[:at] + flipped + whole[at + 1 :])
        found = [plain(change) for change in read_journal(model).changes]
        assert found == written[: len(found)]
        assert len(found) < 2


def test_a_journal_of_another_model_is_not_read_and_not_lost(model, tmp_path):
    other = str(tmp_path / "other.nbspam")
    items = [item(n, "ham" if n % 2 else "spam") for n in range(50)]
    save(other, train(count_items(items, PRESETS["mail"]), PRESETS["mail"], 1))
    StoredModel(other).learn([item(60)], day=1)
    os.rename(journal_path(other), journal_path(model))

    assert load(model).table.n_docs == N
    assert [f.state for f in findings(model) if f.what == "journal"] == [NOTE]
    outcome = StoredModel(model).learn([item(1)], day=1)
    assert outcome.learned == 1
    assert "the journal of another model" in outcome.notes[0]
    aside = outcome.notes[0].split(": the journal")[0]
    assert load(model).table.n_docs == N + 1
    os.rename(aside, journal_path(other))
    assert load(other).table.n_docs == 51


def test_what_lies_in_the_journals_place_is_not_lost_when_the_model_is_written_anew(small):
    Path(journal_path(small)).write_bytes(b"notes of mine, longer than the head of a journal")
    (note,) = StoredModel(small).learn([item(1)], day=1).notes

    assert not os.path.exists(journal_path(small))
    assert Path(note.split(": the journal")[0]).read_bytes().startswith(b"notes of mine")


def test_a_file_that_is_no_journal_is_moved_out_of_the_way(model):
    notes = b"notes of mine, longer than the head of a journal"
    Path(journal_path(model)).write_bytes(notes)

    assert load(model).table.n_docs == N
    assert [f.state for f in findings(model) if f.what == "journal"] == [NOTE]
    (note,) = StoredModel(model).learn([item(1)], day=1).notes
    assert Path(note.split(": the journal")[0]).read_bytes() == notes


def test_a_crash_between_the_new_model_and_the_end_of_its_journal_counts_nothing_twice(
    model, monkeypatch
):
    StoredModel(model).learn([item(1), item(2)], day=1)
    old = Path(journal_path(model)).read_bytes()
    save(model, StoredModel(model).whole())
    Path(journal_path(model)).write_bytes(old)  # as if the process had died before this

    assert load(model).table.n_docs == N + 2
    outcome = StoredModel(model).learn([item(3), item(1)], day=1)
    assert (outcome.learned, outcome.already_known, outcome.notes) == (1, 1, ())
    assert load(model).table.n_docs == N + 3


def test_a_reader_that_is_overtaken_looks_again(model, monkeypatch):
    """The model is replaced, and its journal taken away, between a reader's two looks."""
    StoredModel(model).learn([item(1)], day=1)
    looks = []

    def overtaken(path, start=0, read=journal.read_journal):
        looks.append(path)
        if len(looks) == 1:
            save(model, StoredModel(model).whole())
        return read(path, start)

    monkeypatch.setattr(journal, "read_journal", overtaken)
    assert load(model).table.n_docs == N + 1
    assert len(looks) == 3  # of which one by the writer


def test_a_living_model_takes_in_what_others_learn_and_write(model):
    held = StoredModel(model)
    StoredModel(model).learn([item(1)], day=1)
    assert held.classifier().table.n_docs == N + 1
    save(model, StoredModel(model).whole())
    StoredModel(model).learn([item(2)], day=1)
    assert held.classifier().table.n_docs == N + 2
    assert held.learn([item(1), item(2), item(3)], day=1).learned == 1
    os.unlink(journal_path(model))  # somebody took it away: what it held is gone
    assert held.learn([item(2)], day=1).learned == 1
    assert load(model).table.n_docs == N + 2


def test_what_was_seen_and_then_taken_back_is_seen_to_be_gone(model):
    """A record can be read before its writer learns that the disk did not take it."""
    StoredModel(model).learn([item(1)], day=1)
    before = Path(journal_path(model)).read_bytes()
    StoredModel(model).learn([item(2)], day=1)
    held = StoredModel(model)
    Path(journal_path(model)).write_bytes(before)
    StoredModel(model).learn([item(n) for n in range(3, 9)], day=1)  # longer than what was taken back

    assert held.classifier().table.n_docs == N + 7
    assert held.learn([item(2)], day=1).learned == 1
    assert load(model).table.n_docs == N + 8


def test_a_journal_with_nothing_in_it_goes_with_its_model(model, tmp_path):
    StoredModel(model).learn([item(1)], day=1)
    save(str(tmp_path / "new"), StoredModel(model).whole())
    whole = Path(journal_path(model)).read_bytes()
    Path(journal_path(str(tmp_path / "new"))).write_bytes(whole[:40])

    assert StoredModel(str(tmp_path / "new")).learn([item(2)], day=1).notes == ()


def test_what_was_read_for_another_model_is_not_learned(model):
    """The model is trained anew, with other settings, while messages for it are read."""
    held = StoredModel(model)

    def items():
        items = [item(n, "ham" if n % 2 else "spam") for n in range(4)]
        save(model, train(count_items(items, PRESETS["text"]), PRESETS["text"], 1))
        yield item(9)

    with pytest.raises(ModelFileError, match="trained anew with other settings just now"):
        held.learn(items(), day=1)
    assert load(model).table.n_docs == 4
    assert held.learn([item(9)], day=1).learned == 1


def test_the_journal_is_taken_in_when_a_fit_is_due(model):
    has_journal = []
    for n in range(24):
        StoredModel(model).learn([item(n)], day=1)
        has_journal.append(os.path.exists(journal_path(model)))

    assert has_journal == [*([True] * 11), False, *([True] * 12)]  # then of 132, 14 are a tenth
    assert load(model).table.n_docs == N + 24


def test_if_the_model_cannot_be_written_anew_nothing_learned_is_lost(small, monkeypatch):
    def full(path, classifier):
        raise ModelFileError(f"{path}: cannot write the model: No space left on device")

    monkeypatch.setattr(living, "write", full)
    outcome = StoredModel(small).learn([item(1)], day=1)

    assert outcome.learned == 1
    assert "the journal is kept as it is" in outcome.notes[0]
    assert load(small).table.n_docs == 5


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_disk_that_takes_nothing_is_an_error_and_changes_nothing(model, monkeypatch, code, call):
    StoredModel(model).learn([item(1)], day=1)
    before = Path(journal_path(model)).read_bytes()
    held = StoredModel(model)
    real = getattr(os, call)

    def refuse(what, *arguments):
        if call == "open" and not str(what).endswith(".journal"):
            return real(what, *arguments)
        if call == "write":
            real(what, bytes(arguments[0])[:10])
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as broken:
        broken.setattr(journal.os, call, refuse)
        with pytest.raises(ModelFileError, match=r"m\.nbspam: cannot write the model: "):
            held.learn([item(2)], day=1)
    assert Path(journal_path(model)).read_bytes() == before
    assert held.learn([item(2)], day=1).learned == 1
    assert load(model).table.n_docs == N + 2


def test_a_full_disk_leaves_a_model_that_loads(model):
    script = (
        "import resource, sys\n"
        "sys.path[:0] = ['tests', 'tests/store']\n"
        "from test_journal import item\n"
        "from nbspam.store.model import StoredModel\n"
        "from nbspam.errors import ModelFileError\n"
        "living = StoredModel(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))\n"
        "n = 0\n"
        "try:\n"
        "    while True:\n"
        "        n += living.learn([item(n)], day=1).learned\n"
        "except ModelFileError as error:\n"
        "    print(n, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, model], capture_output=True, cwd=ROOT, check=True, text=True
    )
    n, _, text = done.stdout.partition(" ")

    assert int(n) > 0
    assert "cannot write the model: File too large" in text
    assert load(model).table.n_docs == N + int(n)
    assert all(f.state == "good" for f in findings(model))


def test_a_folder_in_place_of_the_journal(model):
    os.mkdir(journal_path(model))
    with pytest.raises(ModelFileError, match=r"journal: cannot read .*: Is a directory; "):
        load(model)

    assert [f.state for f in findings(model)] == [BAD]


def test_pruning_and_learning_at_once_loses_nothing(model):
    failures = []

    def work(what):
        try:
            for n in range(15):
                what(n)
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(lambda n: StoredModel(model).learn([item(n)], day=1),)),
        threading.Thread(target=work, args=(lambda n: StoredModel(model).learn([item(n + 50)], day=1),)),
        threading.Thread(target=work, args=(lambda n: prune(model, Rule(min_df=2), 2),)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(StoredModel(model).whole().memory.ledger.digests) == N + 30
    assert load(model).table.n_docs == N + 30


def test_a_model_that_cannot_learn_on_says_so(tmp_path):
    path = str(ROOT / "tests" / "evidence" / "format-1-mail.nbspam")
    with pytest.raises(ModelFileError, match="or an older version; train it anew"):
        StoredModel(path).unlearn([item(1)], day=1)


@pytest.mark.parametrize("preset", ["mail", "text"])
def test_a_model_of_the_first_format_still_classifies(preset):
    """The file was written before there was a journal, from four messages of conftest."""
    classifier = load(str(ROOT / "tests" / "evidence" / f"format-1-{preset}.nbspam"))
    table = classifier.table
    texts = [table.vocabulary.text(j) for j in range(len(table.vocabulary))]

    assert classifier.classes == ("ham", "spam")
    assert table.class_count.tolist() == [2, 2]
    assert table.feature_count[texts.index("pills")].tolist()[0] == 0
    for words, label in ((b"cheap pills now", "spam"), (b"lunch on friday", "ham")):
        (verdict,) = classifier.classify([Item("x", None, b"Subject: x\n\n" + words)])
        assert max(verdict.posterior, key=verdict.posterior.get) == label
