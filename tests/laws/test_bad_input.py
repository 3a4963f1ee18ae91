"""Everything that goes wrong: one clear line, the right status, nothing lost."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from functools import partial

import numpy as np
import pytest

from support import SPAM, complains


@pytest.mark.parametrize("command", ["train", "classify", "predict", "eval"])
def test_no_such_file_and_an_empty_folder(nbspam, trained, tmp_path, command):
    assert complains(nbspam(command, "no/such/mail.eml"), 1, "no/such/mail.eml", "no such")
    (tmp_path / "empty").mkdir()
    assert complains(nbspam(command, tmp_path / "empty"), 1, "empty", "no messages")


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_an_empty_message_is_judged_without_evidence_and_not_learned(nbspam, trained, data):
    said = "-: empty, neither mail nor text\n"
    status, out, err = nbspam("classify", stdin=data)
    assert (status, err) == (0, f"nbspam: {said}")
    assert float(out.split("\t")[1]) < 0.9
    assert complains(nbspam("update", "--spam", "-", stdin=data), 1, f"skipped {said}")


def test_binary_junk_gets_a_verdict(nbspam, trained):
    junk = np.random.default_rng(1).bytes(100_000)
    status, out, err = nbspam("classify", stdin=junk)
    assert (status, err) == (0, "nbspam: -: looks like binary data, not like mail or text\n")
    assert out.split("\t")[0] in ("ham", "spam")


def run(*arguments, **how):
    return subprocess.Popen([sys.executable, "-m", "nbspam", *map(str, arguments)], **how)


def test_a_closed_pipe_ends_quietly(trained, folder):
    for n in range(300):
        (folder / "spam" / f"more{n}.eml").write_bytes(SPAM)
    process = run("classify", folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait() == 0
    assert err == b""


def unread(pipe):
    """Return how many bytes wait in a pipe for its reader."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_ctrl_c_leaves_the_old_model_whole(trained, tmp_path):
    before = trained.read_bytes()
    read, write = os.pipe()
    # What a shell does to the jobs that it starts in the background is undone.
    heed_interrupts = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    how = {"stdin": read, "stderr": subprocess.PIPE, "preexec_fn": heed_interrupts}
    process = run("train", "--spam", "-", **how)
    os.close(read)
    os.write(write, b"From: a waiting writer\n")
    while unread(write) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:  # it came just before a system call began to wait
        process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1].decode()
    os.close(write)

    assert process.returncode == 130
    assert err == "nbspam: interrupted\n"
    assert trained.read_bytes() == before
