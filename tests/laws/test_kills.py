"""Writers and readers that are killed at random moments: see benchmarks/kills.py.

A model that is replaced is killed at every moment: before each call that changes the disk.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import partial

import pytest

from nbspam.store.open import load_tokens as load
from support import ROOT, SPAM, write_mails


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("kills", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_no_kill_loses_what_was_acknowledged_or_shows_a_torn_state(kills):
    done = subprocess.run(
        [sys.executable, "benchmarks/kills.py", "--kills", str(kills), "--seed", str(kills)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin"},
    )
    (acknowledged,) = re.findall(r"([\d,]+) changes acknowledged, 0 lost", done.stdout)

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(acknowledged.replace(",", "")) > kills


def keep_and_save_until(path, classifier, n):
    """Replace a model in a process that dies before its call number n; return its status."""
    from nbspam.store.keeping import save_keeping

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
        save_keeping(path, classifier)
    finally:
        os._exit(0)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_no_kill_in_between_loses_the_old_model_or_tears_the_new_one(nbspam, trained, tmp_path):
    from nbspam.store.check import BAD, findings

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
        status = keep_and_save_until(path, load(str(trained)), n)
        found = load(path).table.n_docs
        assert not [each for each in findings(path) if each.state == BAD]
        assert found == old or load(f"{path}~").table.n_docs == old
        seen.add(found)
        if status == 0:
            break

    assert n > 8
    assert seen == {old, new}
