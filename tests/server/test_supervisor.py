"""The supervisor: what it does about workers, without any, and processes that run."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from nbspam import workers
from nbspam.server import supervisor
from nbspam.server.choices import ServerLimits, Service
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.supervisor import SupervisedWorker, Supervisor
from nbspam.server.worker import FAILING
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from protocols import check, tell
from serving import PATIENCE, ask, connected, is_refused, rest_of, serving, until
from shared_logs import message
from stored import train_on
from support import HAM, ROOT, SPAM, raising

NO_ROOM = OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.fixture
def ended():
    """Processes that have ended, and their statuses; the supervisor takes them."""
    return []


@pytest.fixture
def lives(monkeypatch, ended):
    """Return a supervisor whose workers are numbers, and the signals that it sends."""
    sent = []
    pids = iter(range(1000, 2000))
    monkeypatch.setattr(supervisor, "fork", lambda: next(pids))
    monkeypatch.setattr(supervisor, "_ended", lambda: (*(ended.pop(0) if ended else (0, 0)), 0.0))
    monkeypatch.setattr(supervisor.os, "kill", lambda pid, number: sent.append((pid, number.name)))
    service = Service(None, None, 2, (), ServerLimits(), Log("text"), ServerTally(9))
    found = Supervisor(service, lambda: service)
    found.start()
    found.start()
    return found, sent


def test_a_worker_without_a_sign_of_life_is_ended(lives):
    found, sent = lives
    first, second = found.workers
    now = time.monotonic()
    found.workers[first] = SupervisedWorker(first, 1, now - 500)
    found.workers[second] = SupervisedWorker(second, 2, now - 500)
    found.leaving[7] = SupervisedWorker(7, 3, now - 500)
    found.service.tally.take_row(2)
    found.service.tally.set_gauge("beat", now - 60)
    found.tick()

    assert sent == [(first, "SIGKILL"), (7, "SIGKILL")]


def test_a_worker_that_ends_is_started_again_but_not_at_once(lives, ended, monkeypatch):
    found, _ = lives
    first, _ = found.workers
    orphan = 7  # of another program, which process 1 of a container inherits
    ended += [(orphan, 0), (first, signal.SIGKILL)]
    found.tick()
    assert list(found.waiting) == [1]
    assert len(found.workers) == 1
    for started in (raising(NO_ROOM), lambda: 3000):
        assert 1 not in {worker.row for worker in found.workers.values()}
        monkeypatch.setattr(supervisor, "fork", started)
        found.waiting[1] = time.monotonic()
        found.tick()
    assert sorted(worker.row for worker in found.workers.values()) == [1, 2]
    assert found.service.tally.total("ended killed") == 1


@pytest.mark.parametrize(
    ("status", "is_hung", "cause", "how"),
    [
        (signal.SIGKILL, False, "killed", "was killed (SIGKILL; by the system, if memory ran out"),
        (signal.SIGTERM, False, "killed", "was killed (SIGTERM)"),
        (signal.SIGSEGV, False, "crashed", "crashed (SIGSEGV)"),
        (signal.SIGBUS, False, "crashed", "crashed (SIGBUS; a file was changed in place: "),
        (signal.SIGKILL, True, "hung", "hung, and was killed (120 s without a sign of life)"),
        (FAILING << 8, False, "failing", "ended itself, as message after message failed ("),
        (1 << 8, False, "failed", "ended with an error (status 1)"),
        (0, False, "killed", "was killed (SIGTERM)"),
    ],
)
def test_the_end_of_a_worker_is_logged_with_its_cause_and_its_messages(
    lives, ended, capfd, status, is_hung, cause, how
):
    found, _ = lives
    first, _ = found.workers
    found.workers[first].is_hung = is_hung
    found.service.tally.take_row(found.workers[first].row)
    found.service.tally.add("asked", 3)
    ended.append((first, int(status)))
    found.tick()

    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"nbspam: worker {first} {how}")
    assert line.endswith(" s, with 3 messages in hand")
    assert found.service.tally.total(f"ended {cause}") == 1
    assert found.service.tally.total("asked") == 0  # nobody has them in hand any more


def test_one_process_at_a_time_fits_a_model_and_no_longer_than_a_fifth(lives):
    found, sent = lives
    now, tally = time.monotonic(), found.service.tally
    found.fit(now)
    assert found.fitter is None
    tally.set_gauge("due", 1)
    found.fit(now)
    pid = found.fitter
    found.fit(now + 1)
    assert found.fitter == pid
    found.bury(pid, 0, 2.0, now + 3)
    assert found.fitter is None
    found.fit(now + 10)  # it took two seconds of a core
    assert found.fitter is None
    found.fit(now + 11)
    assert found.fitter
    assert tally.total("trouble model") == 0
    found.stop()
    assert (found.fitter, "SIGKILL") in sent
    found.bury(found.fitter, signal.SIGKILL, 0.0, now + 12)  # it was to end
    assert tally.total("trouble model") == 0


@pytest.mark.parametrize(
    ("fails", "text"),
    [
        (raising(MemoryError), "out of memory"),
        (lambda _: signal.raise_signal(signal.SIGKILL), "SIGKILL; by the system"),
    ],
)
def test_a_fit_that_fails_is_told_counted_and_tried_again(lives, monkeypatch, capfd, fails, text):
    found, _ = lives
    now, tally = time.monotonic(), found.service.tally
    tally.set_gauge("due", 1)
    monkeypatch.setattr(supervisor, "fork", workers.fork)
    monkeypatch.setattr(supervisor, "fit_model", fails)
    found.fit(now)
    found.bury(*os.waitpid(found.fitter, 0), 0.0, now)
    monkeypatch.setattr(supervisor, "fork", raising(NO_ROOM))
    found.fit(now + 9)
    assert tally.total("trouble model") == 1
    found.fit(now + 10)
    assert tally.total("trouble model") == 2
    monkeypatch.setattr(supervisor, "fork", lambda: 7)
    found.fit(now + 20)

    assert found.fitter == 7
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("nbspam: the model is not fitted now, and judges on as it was: ")
    assert text in first
    assert "out of memory or processes; allow more" in second


def test_options_that_change_twice_wait_for_those_who_leave(lives, ended):
    found, sent = lives
    old = list(found.workers)
    found.renews = True
    found.tick()
    assert sorted(sent) == [(pid, "SIGTERM") for pid in old]
    assert sorted(found.leaving) == old
    new = list(found.workers)
    assert len(new) == 2

    found.renews = True  # while the old ones still answer
    found.tick()
    assert list(found.workers) == new
    ended += [(pid, 0) for pid in old]
    found.tick()
    assert not found.renews
    assert sorted(found.leaving) == new
    assert len(found.workers) == 2

    found.leaving, found.renews, found.reread = {}, True, raising(ValueError)
    last = list(found.workers)
    found.tick()
    assert (list(found.workers), found.leaving) == (last, {})


def test_who_does_not_end_in_time_is_killed_and_systemd_knows_from_the_start(
    lives, ended, monkeypatch, capfd
):
    found, sent = lives
    pids, notices = list(found.workers), []
    monkeypatch.setattr(supervisor, "notify", notices.append)
    found.service = found.service._replace(log=Log("json"))
    found.stop()
    found.tick()
    assert notices == ["STOPPING=1"]
    assert sorted(sent) == [(pid, "SIGTERM") for pid in pids]
    found.stops_by = time.monotonic() - 1
    found.stop()  # a second signal gives no more time
    found.tick()
    assert sorted(sent[2:]) == [(pid, "SIGKILL") for pid in pids]

    # An end is logged only if it is not a good one.
    ended += [(pids[0], 0), (pids[1], int(signal.SIGSEGV))]
    found.tick()
    (line,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert (line["worker"], line["ended"], line["how"]) == (pids[1], "crashed", "SIGSEGV")


def test_it_is_told_once_and_only_when_all_workers_answer(lives, monkeypatch, capfd):
    found, _ = lives
    notices = []
    monkeypatch.setattr(supervisor, "notify", notices.append)
    tally = found.service.tally
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model, listeners = SimpleNamespace(name="m.nbspam"), [("spamd", listener)]
        found.service = found.service._replace(model=model, listeners=listeners)
        tally.take_row(1)
        tally.set_gauge("beat", 5)
        found.tick()
        assert notices == []
        tally.take_row(2)
        tally.set_gauge("beat", 5)
        found.tick()
        found.tick()
        assert notices.count("READY=1") == 1
        port = listener.getsockname()[1]
        shown = f"nbspam serve: spamd on 127.0.0.1:{port}, 2 workers, model m.nbspam\n"
        assert capfd.readouterr().err == shown

        other = SimpleNamespace(name="other.nbspam")
        found.reread = lambda: found.service._replace(model=other)
        forks = iter((1500,))  # there is no room for a second one
        monkeypatch.setattr(supervisor, "fork", lambda: next(forks, None) or raising(NO_ROOM)())
        found.renew()
        assert notices[-1] == "RELOADING=1"
        found.tick()
        assert notices.count("READY=1") == 1
        tally.take_row(3)
        tally.set_gauge("beat", 5)
        found.tick()
        assert notices.count("READY=1") == 2
        assert capfd.readouterr().err.endswith("1 worker, model other.nbspam\n")


# ---- processes that run ----

TELL = tell("spam")


@pytest.mark.slow
def test_sighup_reads_the_configuration_again_and_nobody_waits(tmp_path, own_model, config):
    with serving(own_model, tmp_path) as served, ExitStack() as open_:
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
        until(lambda: not set(served.pids) & set(before))
        assert len(served.pids) == len(before)
        assert sum(value for name, value in served.metrics().items() if "restarts" in name) == 0

        config.write_text("[serve]\nreject-above = 7\n")
        now = served.pids
        served.process.send_signal(signal.SIGHUP)
        until(lambda: "the options as they were stay: " in served.errors.read_text())
        assert "reject-above" in served.errors.read_text()
        assert served.pids == now
        assert served.ask(TELL).startswith(b"SPAMD/1.1 0 ")


def test_sigterm_answers_who_was_accepted_and_ends_with_success(tmp_path, own_model):
    with serving(own_model, tmp_path, "--jobs", "2") as served:
        assert os.path.exists(f"{own_model}.served")  # the copy that its workers share
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
    assert not os.path.exists(f"{own_model}.served")


@pytest.mark.slow
def test_sighup_takes_other_addresses_and_another_number_of_workers(tmp_path, own_model, config):
    second, third = str(tmp_path / "second"), str(tmp_path / "third")
    more = f'jobs = 1\nspamd = ["{second}"]\nsocket-mode = 660\n'
    config.write_text(f"[serve]\n{more}")
    with serving(own_model, tmp_path, spamd=False) as served:
        assert b"Spam: True" in ask(second, check(SPAM))
        assert os.stat(second).st_mode & 0o777 == 0o660
        config.write_text(f'[serve]\njobs = 2\nspamd = ["{second}", "{third}"]\n')
        served.process.send_signal(signal.SIGHUP)
        until(lambda: len(served.pids) == 2 and os.path.exists(third))
        for address in (second, third):
            until(lambda address=address: b"Spam: True" in ask(address, check(SPAM)))
        config.write_text(f'[serve]\njobs = 65\nspamd = ["{third}"]\n')
        served.process.send_signal(signal.SIGHUP)
        until(lambda: "--jobs 65: more than 64 workers; give" in served.errors.read_text())
        assert b"Spam: True" in ask(second, check(SPAM))  # all is as it was
        config.write_text(f'[serve]\njobs = 2\nspamd = ["{third}"]\n')
        served.process.send_signal(signal.SIGHUP)
        until(lambda: is_refused(second))
        assert b"Spam: True" in ask(third, check(SPAM))

        # Workers whose supervisor was killed end.
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
def test_a_model_that_knows_nothing_is_unsure_and_learns_from_the_start(tmp_path):
    options = ("--allow-tell", "--jobs", "2", "--log", "json")
    link = tmp_path / "new.nbspam"
    link.symlink_to("first")
    with serving(link, tmp_path, *options) as served:
        link.unlink()  # it was followed when the server started
        assert b"Spam: False ; 4.9 / 5.0" in served.ask(check(SPAM, "CHECK", "1.5", "User: ann"))
        until(lambda: served.errors.read_text().count("\n") == 5)
        note, *listening, answer = map(json.loads, served.errors.read_text().splitlines())
        assert "there is no model yet" in note["note"]
        assert [line["listening"] for line in listening] == ["spamd", "http", "milter"]
        assert (answer["user"], answer["asked"], answer["verdict"]) == ("ann", "CHECK", "unsure")
        assert b"no mail yet" in served.ask(check(SPAM, "REPORT"))
        assert b"DidSet: local" in served.ask(TELL)
        assert b"DidSet: local" in served.ask(tell("ham", HAM))
        for _ in range(4):  # whichever worker answers
            assert b"Spam: True" in served.ask(check(SPAM))
    assert not link.exists()


@pytest.mark.slow
def test_a_large_model_is_fitted_beside_lessons_and_no_worker_does_it(tmp_path):
    path = tmp_path / "m.nbspam"
    train_on([Item("-", ("ham", "spam")[n % 2], message(n)) for n in range(1100)], path)
    before = path.read_bytes()
    with serving(path, tmp_path, "--allow-tell", "--jobs", "2") as served:
        for n in range(1100, 1180):
            assert b"DidSet: local" in served.ask(tell("spam", message(n)))
            assert b"Spam: " in served.ask(check(SPAM))
        until(lambda: path.read_bytes() != before and not StoredModel(str(path)).is_due)
        until(lambda: len(served.pids) == 2)
        metrics = served.metrics()
        assert metrics['nbspam_troubles_total{kind="model"}'] == 0
        assert sum(metrics[each] for each in metrics if each.startswith("nbspam_restarts")) == 0
    assert StoredModel(str(path)).classifier().table.n_docs == 1180
    assert not list(tmp_path.glob("*.next"))
