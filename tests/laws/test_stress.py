"""Samples of the stress tests: hostile input, and writers and readers that are killed.

A model that is replaced is killed at every moment: before each call that changes the disk.
"""

import os
import shutil
import signal
from functools import partial

import pytest

from nbspam.mail.message import parse_message
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_keeping
from nbspam.store.upkeep import BAD, findings
from stress import kills
from support import SPAM, in_child, write_mails

pytest.importorskip("resource", reason="hangs are broken off by what Unix has")

from stress import attachments, fuzz, hostile


@pytest.fixture(scope="module")
def checker():
    """Laws for models of every eighth embedded message, which are trained quickly."""
    return fuzz.checker_of(7, one_of=8)


def test_hundreds_of_hostile_inputs_raise_nothing_and_break_no_law(checker):
    assert fuzz.failures(checker, range(200)) == []
    assert fuzz.failures(checker, range(99, 100)) == []


def test_hundreds_of_damaged_attachments_raise_nothing():
    files = attachments.seeds()
    for start in range(1, 300, attachments.WITH_DOCUMENTS):  # none of these with documents
        attachments.slowest(range(start, start + attachments.WITH_DOCUMENTS - 1), files)


def raises(*_):
    raise ValueError("planted")


def breaks(*_):
    fuzz.require(False, "planted")


def warns(*_):
    fuzz.warnings.warn("planted", stacklevel=1)


def hangs(*_):
    while True:
        pass


@pytest.mark.parametrize(("planted", "told"), [
    (raises, "ValueError: 'planted' ("), (breaks, "law: planted"),
    (warns, "UserWarning: 'planted' ("), (hangs, "hangs"),
])  # fmt: skip
def test_the_one_input_of_a_batch_that_fails_is_found(checker, monkeypatch, planted, told):
    guilty = checker.inputs(5)

    def judge(self, data):
        if guilty in data:
            planted()

    monkeypatch.setattr(fuzz.Checker, "judge", judge)
    monkeypatch.setattr(fuzz.Checker, "unchanged", lambda self: None)
    monkeypatch.setattr(fuzz, "LAWS", {planted: 4})
    monkeypatch.setattr(fuzz, "PATIENCE", 0.02)
    monkeypatch.setattr(fuzz, "PATIENCE_PER_KB", 0)
    found = fuzz.failures(checker, range(1, 7))

    assert [(number, what.partition(f": {told}")[0]) for number, what in found] == [
        (5, "judge"),
        (4, planted.__name__),
    ]
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_the_same_number_makes_the_same_input_and_patterns_have_their_length():
    one, other = (hostile.Inputs(3, fuzz.material(3).mails) for _ in range(2))

    forwards, backwards = range(50), reversed(range(50))
    assert {n: one(n) for n in forwards} == {n: other(n) for n in backwards}
    assert len({one(n) for n in range(50)}) > 45

    for name, pattern in hostile.PATTERNS.items():
        assert 14_000 < len(pattern(20_000)) < 32_000, name
        parse_message(pattern(20_000))


def test_no_kill_loses_what_was_acknowledged_or_shows_a_torn_state(tmp_path):
    lost_changes, torn_states, n_acknowledged = kills.run(30, 60, tmp_path)
    assert lost_changes == []
    assert torn_states == []
    assert n_acknowledged > 30


def work_until(n, work):
    """Do some work in a process that dies before its call number n; return its status."""

    def dying():
        left = iter(range(n))
        for name in ("open", "replace", "unlink", "fchmod", "fsync", "ftruncate"):

            def call(real, *arguments, **options):
                if next(left, None) is None:
                    os._exit(9)
                return real(*arguments, **options)

            setattr(os, name, partial(call, getattr(os, name)))
        work()

    return in_child(dying)


@pytest.mark.slow
def test_no_kill_in_between_loses_the_old_model_or_tears_the_new_one(nbspam, trained, tmp_path):
    other = str(tmp_path / "other")
    nbspam("train", "-m", other, write_mails(tmp_path / "more", 24))
    nbspam("update", "-m", other, "--spam", "-", stdin=SPAM + b"later\n")
    assert os.path.exists(f"{other}.journal")
    old, new = load(other).table.n_docs, load(str(trained)).table.n_docs
    seen = set()
    for n in range(100):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        path = str(folder / "m")
        for end in ("", ".journal"):
            shutil.copy(other + end, path + end)
        status = work_until(n, lambda path=path: save_keeping(path, load(str(trained))))
        found = load(path).table.n_docs
        assert not [each for each in findings(path) if each.state == BAD]
        assert found == old or load(f"{path}~").table.n_docs == old
        seen.add(found)
        if status == 0:
            break

    assert n > 8
    assert seen == {old, new}


def test_no_kill_leaves_half_of_a_first_model(tmp_path):
    seen = []
    for n in range(100):
        path = str(tmp_path / f"{n}" / "m")

        def learn(path=path):
            model = StoredModel(path, new=PRESETS["mail"])
            model.learn([Item("a", "spam", SPAM)], day=1)

        status = work_until(n, learn)
        seen.append(os.path.exists(path))
        if seen[-1]:
            assert load(path).table.class_count.tolist() == [0, 1]
            assert not [each for each in findings(path) if each.state == BAD]
        learn()
        assert load(path).table.class_count.tolist() == [0, 1]
        if status == 0:
            break

    assert seen == sorted(seen)
    assert set(seen) == {False, True}
