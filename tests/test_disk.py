"""Locks: one holder at a time, whoever else tries and however a holder ends."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nbspam.disk import locked, replace_file, resolved
from nbspam.errors import ModelFileError
from support import ROOT


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"")
    return path


# Holds the lock again and again, and fails if there is another holder.
HOLDER = """
import os, sys, time
from nbspam.disk import locked
path, inside = sys.argv[1:]
for _ in range(30):
    with locked(path):
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another is inside
        time.sleep(0.001)
        os.unlink(inside)
"""


def test_two_processes_never_hold_the_lock_at_once(model, tmp_path):
    (tmp_path / "link").symlink_to(model.name)
    link = resolved(str(tmp_path / "link"))
    arguments = [sys.executable, "-c", HOLDER]
    holders = [
        subprocess.Popen([*arguments, tmp_path / name, tmp_path / "inside"], cwd=ROOT)
        for name in ("m", "m", link)
    ]

    assert [holder.wait(60) for holder in holders] == [0, 0, 0]


def test_two_threads_never_hold_the_lock_at_once(model):
    inside, alone = [], []

    def hold():
        for _ in range(20):
            with locked(str(model)):
                inside.append(1)
                time.sleep(0.001)
                alone.append(len(inside) == 1)
                inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert alone == [True] * 80


def test_a_lock_file_stays_so_that_all_writers_lock_the_same_one(model):
    with locked(str(model)):
        first = os.stat(f"{model}.lock").st_ino
    with locked(str(model)):
        assert os.stat(f"{model}.lock").st_ino == first


def test_a_lock_dies_with_its_process(tmp_path):
    path = str(tmp_path / "new" / "m")
    script = (
        "import sys, time; from nbspam.disk import locked\n"
        "with locked(sys.argv[1]): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdout=subprocess.PIPE, cwd=ROOT
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGKILL)
        with locked(path):
            pass


def test_whoever_waits_for_a_lock_may_give_up(model):
    with locked(str(model)):
        begun = time.monotonic()
        with pytest.raises(ModelFileError, match=r"m: locked by another process for 0.1 seconds"):
            locked(str(model), patience=0.1).__enter__()
        assert time.monotonic() - begun >= 0.1
    with locked(str(model), patience=0.1):
        pass


def test_a_lock_that_cannot_be_made_is_an_error_of_ours_and_others_stay_what_they_are(model):
    with pytest.raises(ModelFileError, match="cannot write the model: Not a directory; "):
        locked(str(model / "m")).__enter__()
    with pytest.raises(FileNotFoundError), locked(str(model)):
        raise FileNotFoundError
    with locked(str(model)):
        pass


def test_a_new_file_is_on_disk_before_it_has_its_name_and_its_folder_after(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        work = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, w=work: (done.append(n), w(*a))[1])
    replace_file(str(tmp_path / "m"), lambda file: file.write(b"new"))

    assert (tmp_path / "m").read_bytes() == b"new"
    assert done == ["fsync", "replace", "fsync"]
