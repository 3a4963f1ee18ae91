"""The processes of a server that runs: started again, renewed, ended without losing anybody."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from serving import PATIENCE, ask, check, connected, is_refused, rest_of, serving, until
from support import HAM, ROOT, SPAM

TELL = check(SPAM, "TELL", "1.5", "Message-class: spam", "Set: local")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The user's configuration file, for `nbspam serve` in another process."""
    path = tmp_path / "config" / "nbspam" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


@pytest.mark.slow
def test_sighup_reads_the_configuration_again_and_nobody_waits(tmp_path, own_model, config):
    with serving(own_model, tmp_path, "--jobs", "1") as served, ExitStack() as open_:
        assert served.ask(TELL).startswith(b"SPAMD/1.0 69 ")
        before = served.pids
        waits = open_.enter_context(connected(served.spamd))
        waits.sendall(check(HAM)[:-4])
        time.sleep(0.2)

        config.write_text("[serve]\nallow-tell = true\n")
        served.process.send_signal(signal.SIGHUP)
        until(lambda: served.ask(TELL).startswith(b"SPAMD/1.1 0 "))
        # Who was accepted before gets an answer of the worker of before.
        waits.sendall(check(HAM)[-4:])
        assert b"Spam: False" in rest_of(waits)
        until(lambda: len(served.pids) == 1)
        assert served.pids != before
        assert served.metrics()["nbspam_restarts_total"] == 0

        config.write_text("[serve]\nreject-above = 7\n")
        now = served.pids
        served.process.send_signal(signal.SIGHUP)
        until(lambda: "the options as they were stay: " in served.errors.read_text())
        assert "reject-above" in served.errors.read_text()
        assert served.pids == now
        assert served.ask(TELL).startswith(b"SPAMD/1.1 0 ")


def test_sigterm_answers_who_was_accepted_and_ends_with_success(tmp_path, own_model):
    with serving(own_model, tmp_path, "--jobs", "2") as served:
        with ExitStack() as open_:
            begun = [open_.enter_context(connected(served.spamd)) for _ in range(4)]
            for client in begun:
                client.sendall(check(SPAM)[:-4])
            rests = open_.enter_context(connected(served.http))
            served.process.terminate()
            until(lambda: is_refused(served.spamd))
            for client in begun:
                client.sendall(check(SPAM)[-4:])
                assert b"SPAMD/1.1 0 EX_OK" in rest_of(client)
            assert rest_of(rests) == b""
        assert served.process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_workers_whose_supervisor_was_killed_end(tmp_path, own_model):
    with serving(own_model, tmp_path, "--jobs", "2") as served:
        pids = until(lambda: len(served.pids) == 2 and served.pids)
        served.process.kill()
        served.process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


PASSES = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
serve = ["-m", "nbspam", "serve", "-m", sys.argv[2], "--jobs", "2"]
os.execv(sys.executable, [sys.executable, *serve])
"""


@pytest.mark.slow
def test_systemd_hands_over_a_socket_and_is_told_how_we_are(tmp_path, own_model):
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(tmp_path / "notify"))
    notices.settimeout(PATIENCE)
    passed = socket.create_server(("127.0.0.1", 0))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PASSES, str(passed.fileno()), str(own_model)],
        pass_fds=[passed.fileno()],
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "LISTEN_FDS": "1",
            "LISTEN_FDNAMES": "spamd",
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "PYTHONPATH": str(ROOT),
        },
    )
    with process.stderr, passed, notices:
        assert notices.recv(99) == b"READY=1"
        port = passed.getsockname()[1]
        assert b"Spam: True" in ask(port, check(SPAM))
        assert notices.recv(99) == b"WATCHDOG=1"
        process.send_signal(signal.SIGHUP)
        while (told := notices.recv(99)) == b"WATCHDOG=1":
            pass
        assert [told, notices.recv(99)] == [b"RELOADING=1", b"READY=1"]
        process.terminate()
        while (last := notices.recv(99)) == b"WATCHDOG=1":
            pass
        assert last == b"STOPPING=1"
        assert process.wait(PATIENCE) == 0
        lines = process.stderr.read().decode().splitlines()
    assert [line for line in lines if "workers, model" in line] == 2 * [
        f"nbspam serve: spamd on 127.0.0.1:{port}, 2 workers, model {own_model}"
    ]


@pytest.mark.slow
def four_lines(served):
    lines = served.errors.read_text().splitlines()
    return lines[3:] and lines


def test_a_model_that_knows_nothing_is_unsure_and_learns_from_the_start(tmp_path):
    options = ("--allow-tell", "--jobs", "2", "--log", "json")
    with serving(tmp_path / "new.nbspam", tmp_path, *options) as served:
        assert b"Spam: False ; 4.9 / 5.0" in served.ask(check(SPAM, "CHECK", "1.5", "User: ann"))
        *listening, answer = map(json.loads, until(lambda: four_lines(served)))
        assert [line["listening"] for line in listening] == ["spamd", "http", "milter"]
        assert (answer["user"], answer["asked"], answer["verdict"]) == ("ann", "CHECK", "unsure")
        assert b"no mail yet" in served.ask(check(SPAM, "REPORT"))
        assert b"DidSet: local" in served.ask(TELL)
        ham = check(HAM, "TELL", "1.5", "Message-class: ham", "Set: local")
        assert b"DidSet: local" in served.ask(ham)
        for _ in range(4):  # whichever worker answers
            assert b"Spam: True" in served.ask(check(SPAM))
