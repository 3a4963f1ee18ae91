"""The journal: after any crash every acknowledged change is there, and no half of one."""

import errno
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.counts.memory import LabelChange
from nbspam.errors import ModelFileError
from nbspam.settings import PRESETS
from nbspam.store import journal
from nbspam.store.doctor import BAD, findings
from nbspam.store.journal import (
    append,
    journal_path,
    read_journal,
    read_more,
    write_journal,
)
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import Identity
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.prune import PruningRule, prune_model
from nbspam.tokens.documents import Documents, Vocabulary
from stored import half_spam, train_on
from stored import numbered as item
from support import ROOT, examples

pytestmark = pytest.mark.usefixtures("quick_disk")
OWNER = Identity(1234, 5678)
# Large enough to learn a few messages more before the journal is merged into the model.
N_DOCS = 400
NAMES = st.one_of(st.none(), st.text(max_size=5))


@st.composite
def changes(draw):
    keys = draw(st.lists(st.integers(0, 1 << 63), max_size=5, unique=True).map(sorted))
    new = sorted(draw(st.sets(st.sampled_from(keys)))) if keys else []
    lengths = draw(st.lists(st.integers(0, 9), min_size=len(new), max_size=len(new)))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(keys), max_size=len(keys)))
    n = len(keys)
    return LabelChange(
        draw(st.integers(0, (1 << 64) - 1)),
        draw(NAMES),
        draw(NAMES),
        draw(st.integers(0, 65535)),
        Documents(np.array(keys, "u8"), np.array([0, n]), np.arange(n), np.array(counts, "u4")),
        Vocabulary(
            np.array(new, "u8"),
            np.arange(sum(lengths), dtype="u1"),
            np.cumsum([0, *lengths]),
            np.zeros(len(new), "u1"),
        ),
    )


def plain(change):
    """Return a change as values that can be compared."""
    document, new = change.document, change.new
    arrays = (
        *(document.tokens, document.columns, document.times()),
        *(new.keys, new.blob, new.offsets, new.groups),
    )
    return [*change[:4], *(array.tolist() for array in arrays)]


def learn(path, *numbers):
    return StoredModel(path).learn([item(n) for n in numbers], day=1)


@pytest.fixture(scope="module")
def trained_model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("trained") / "m.nbspam")
    train_on(half_spam(range(1000, 1000 + N_DOCS)), path, day=1)
    return path


@pytest.fixture
def model(trained_model, tmp_path):
    """Return the path of a copy of the model, to be changed."""
    return shutil.copy(trained_model, str(tmp_path / "m.nbspam"))


@examples(20)
@given(written=st.lists(st.lists(changes(), max_size=3), max_size=3))
def test_appended_changes_are_read(tmp_path_factory, written):
    path = str(tmp_path_factory.mktemp("j") / "m")
    state = write_journal(path, OWNER, [])
    for batch in filter(None, written):
        held = state
        state = append(path, state, batch)
        more = read_more(path, OWNER, held)
        assert [plain(change) for change in more.changes] == [plain(change) for change in batch]
        assert more._replace(changes=[]) == state._replace(changes=[])
    found = read_journal(path)

    assert [plain(c) for c in found.changes] == [plain(c) for batch in written for c in batch]
    assert found._replace(changes=[]) == state._replace(changes=[])
    assert found.is_whole
    assert os.stat(journal_path(path)).st_mode & 0o777 == 0o600


def test_a_reader_reads_again_if_a_writer_overtakes_it(model, monkeypatch):
    """The model is replaced and its journal removed between the two reads of a reader."""
    learn(model, 1)
    looks = []

    def overtaken(path, read=journal.read_journal):
        looks.append(path)
        if len(looks) == 1:
            save_classifier(model, StoredModel(model).whole())
        return read(path)

    monkeypatch.setattr(journal, "read_journal", overtaken)
    assert load(model).table.n_docs == N_DOCS + 1
    assert len(looks) == 4  # two of them by the writer


def test_an_open_model_follows_what_others_learn_and_write(model):
    held = StoredModel(model)
    learn(model, 1)
    assert held.classifier().table.n_docs == N_DOCS + 1
    save_classifier(model, StoredModel(model).whole())
    learn(model, 2)
    assert held.classifier().table.n_docs == N_DOCS + 2
    assert held.learn([item(1), item(2), item(3)], day=1).learned == 1
    os.unlink(journal_path(model))  # someone deleted it: its changes are lost
    assert held.learn([item(2)], day=1).learned == 1
    assert load(model).table.n_docs == N_DOCS + 2


def test_changes_that_a_writer_takes_back_disappear(model):
    """A record can be read before its writer learns that writing it failed."""
    learn(model, 1)
    before = Path(journal_path(model)).read_bytes()
    learn(model, 2)
    held = StoredModel(model)
    Path(journal_path(model)).write_bytes(before)
    learn(model, *range(3, 9))  # more bytes than before

    assert held.classifier().table.n_docs == N_DOCS + 7
    assert held.learn([item(2)], day=1).learned == 1
    assert load(model).table.n_docs == N_DOCS + 8


def test_an_empty_journal_belongs_to_its_model(model, tmp_path):
    learn(model, 1)
    save_classifier(str(tmp_path / "new"), StoredModel(model).whole())
    write_journal(str(tmp_path / "new"), StoredModel(str(tmp_path / "new"))._identity, [])

    assert learn(str(tmp_path / "new"), 2).notes == ()
    assert len(read_journal(str(tmp_path / "new")).changes) == 1


def test_messages_read_for_another_model_are_not_learned(model):
    """The model is retrained with other settings while messages for it are read."""
    held = StoredModel(model)

    def items():
        train_on(half_spam(range(4)), model, PRESETS["text"])
        yield item(9)

    with pytest.raises(ModelFileError, match="replaced by another model just now"):
        held.learn(items(), day=1)
    assert load(model).table.n_docs == 4
    assert held.learn([item(9)], day=1).learned == 1


def test_a_journal_is_merged_when_a_class_has_grown(model):
    has_journal = []
    for n in range(21):
        learn(model, n)
        has_journal.append(os.path.exists(journal_path(model)))

    # A twentieth of two hundred is ten, and of 210 it is eleven.
    assert has_journal == [*([True] * 9), False, *([True] * 10), False]
    assert load(model).table.n_docs == N_DOCS + 21


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_failing_disk_is_an_error_and_changes_nothing(model, monkeypatch, code, call):
    learn(model, 1)
    before = Path(journal_path(model)).read_bytes()
    held = StoredModel(model)
    real = getattr(os, call)

    def refuse(what, *arguments):
        writes = str(what).endswith(".journal") and arguments[0] & os.O_RDWR
        if call == "open" and not writes:
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
    assert load(model).table.n_docs == N_DOCS + 2


def test_a_full_disk_leaves_a_model_that_loads(model):
    script = (
        "import resource, sys\n"
        "sys.path[:0] = ['tests', 'tests/store']\n"
        "from stored import numbered as item\n"
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
    command = [sys.executable, "-c", script, model]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=True, text=True)
    n, _, text = done.stdout.partition(" ")

    assert int(n) > 0
    assert "cannot write the model: File too large" in text
    assert load(model).table.n_docs == N_DOCS + int(n)
    assert all(f.state == "good" for f in findings(model))


def test_a_folder_in_place_of_the_journal(model):
    os.mkdir(journal_path(model))
    with pytest.raises(ModelFileError, match=r"journal: a folder; remove it"):
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

    tasks = (
        lambda n: learn(model, n),
        lambda n: learn(model, n + 50),
        lambda n: prune_model(model, PruningRule(min_df=2), 2),
    )
    threads = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(StoredModel(model).whole().memory.ledger.digests) == N_DOCS + 30
    assert load(model).table.n_docs == N_DOCS + 30


def test_a_model_that_knows_no_messages_cannot_be_updated(model):
    save_classifier(model, replace(load(model), memory=None))
    with pytest.raises(ModelFileError, match="comes from --unlabelled; train it again"):
        StoredModel(model).unlearn([item(1)], day=1)


def test_the_bytes_of_a_journal_are_those_of_the_reference_page(tmp_path):
    document = Documents(
        np.array([5, 6], "u8"), np.array([0, 2]), np.arange(2), np.array([1, 3], "u4")
    )
    text, groups = np.frombuffer(b"ab", "u1"), np.zeros(1, "u1")
    new = Vocabulary(np.array([5], "u8"), text, np.array([0, 2]), groups)
    change = LabelChange(7, None, "spam", 20_000, document, new, told=True)
    write_journal(str(tmp_path / "m"), OWNER, [change])
    pieces = (
        b"nbspam journal\0\0".hex(),
        "01000000 d204000000000000 2e160000 9bc17057",  # format, model file, checksum
        "42000000 0700000000000000 204e",  # length, digest, day
        "ffffffff 04000000 02000000 02000000 01000000 01",  # lengths, numbers, told
        b"spam".hex(),
        "0600000000000000 0500000000000000 03000000 01000000",  # tokens, counts
        "02000000 00 6162 85637660",  # the new token, checksum
        "ffffffff 01000000 000000000000000000000000 1b450ddc",  # end mark
    )

    assert (tmp_path / "m.journal").read_bytes() == bytes.fromhex("".join(pieces))
