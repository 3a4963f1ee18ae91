"""Writers and readers that are killed at random moments; `make stress` kills more of them.

A model that is replaced is killed at every moment: before each call that changes the disk.
"""

import os
import shutil
import sys
from functools import partial

import pytest

from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_keeping
from nbspam.store.upkeep import BAD, findings
from stress import kills
from support import SPAM, write_mails


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_no_kill_loses_what_was_acknowledged_or_shows_a_torn_state(tmp_path):
    result = kills.run(60, 60, tmp_path)
    assert result.lost == []
    assert result.torn == []
    assert result.acknowledged > 60


def work_until(n, work):
    """Do some work in a process that dies before its call number n; return its status."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    left = iter(range(n))
    for name in ("open", "replace", "unlink", "fchmod", "fsync", "ftruncate"):

        def call(real, *arguments, **options):
            if next(left, None) is None:
                os._exit(9)
            return real(*arguments, **options)

        setattr(os, name, partial(call, getattr(os, name)))
    try:
        work()
    finally:
        os._exit(0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
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


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
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
