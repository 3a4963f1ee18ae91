"""What the supervisor does about workers, without any: stuck ones, and options that change."""

import os
import socket
import time
from types import SimpleNamespace

import pytest

from nbspam.server import supervisor
from nbspam.server.choices import ServerLimits, Service
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.supervisor import SupervisedWorker, Supervisor


@pytest.fixture
def lives(monkeypatch):
    """Return a supervisor whose workers are numbers, and the signals that it sends."""
    sent = []
    pids = iter(range(1000, 2000))
    monkeypatch.setattr(supervisor, "fork", lambda: next(pids))
    monkeypatch.setattr(supervisor, "_ended", lambda: 0)
    monkeypatch.setattr(supervisor.os, "kill", lambda pid, number: sent.append((pid, number.name)))
    blank = dict.fromkeys(Service._fields)
    limits, log, tally = ServerLimits(), Log("none"), ServerTally(9)
    service = Service(**{**blank, "sockets": {}, "limits": limits, "log": log, "tally": tally})
    found = Supervisor(service, None, 2, lambda: (service, None))
    found.start()
    found.start()
    return found, sent


def test_a_worker_without_a_sign_of_life_is_ended(lives):
    found, sent = lives
    first, second = found.workers
    now = time.monotonic()
    found.workers[first] = SupervisedWorker(first, 1, now - 500)
    found.workers[second] = SupervisedWorker(second, 2, now - 500)
    found.service.tally.take_row(2)
    found.service.tally.put("beat", now - 60)
    found.tick()

    assert sent == [(first, "SIGKILL")]


def test_a_worker_that_ends_is_started_again_but_not_at_once(lives, monkeypatch):
    found, _ = lives
    first, _ = found.workers
    ended = iter([first, 0])
    monkeypatch.setattr(supervisor, "_ended", lambda: next(ended, 0))
    found.tick()
    assert list(found.waiting) == [1]
    assert len(found.workers) == 1
    found.waiting[1] = time.monotonic()
    found.tick()
    assert sorted(worker.row for worker in found.workers.values()) == [1, 2]
    assert found.service.tally.total("restarts") == 1


def test_options_that_change_twice_wait_for_those_who_leave(lives, monkeypatch):
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
    ended = iter([*old, 0])
    monkeypatch.setattr(supervisor, "_ended", lambda: next(ended, 0))
    found.tick()
    assert not found.renews
    assert sorted(found.leaving) == new
    assert len(found.workers) == 2


def test_who_does_not_end_in_time_is_killed(lives):
    found, sent = lives
    pids = list(found.workers)
    found.stop()
    found.tick()
    assert sorted(sent) == [(pid, "SIGTERM") for pid in pids]
    found.stops_by = time.monotonic() - 1
    found.tick()
    assert sorted(sent[2:]) == [(pid, "SIGKILL") for pid in pids]


def test_it_is_told_once_and_only_when_all_workers_answer(lives, monkeypatch):
    found, _ = lives
    notices = []
    monkeypatch.setattr(supervisor, "notify", notices.append)
    read, write = os.pipe()
    tally = found.service.tally
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        os.fdopen(read) as lines,
        os.fdopen(write),
    ):
        log = Log("text", write)
        found.service = found.service._replace(sockets={"spamd": listener}, log=log)
        found.model = SimpleNamespace(name="m.nbspam")
        tally.take_row(1)
        tally.put("beat", 5)
        found.tick()
        assert notices == []
        tally.take_row(2)
        tally.put("beat", 5)
        found.tick()
        found.tick()
        assert notices.count("READY=1") == 1
        port = listener.getsockname()[1]
        shown = f"nbspam serve: spamd on 127.0.0.1:{port}, 2 workers, model m.nbspam\n"
        assert lines.readline() == shown

        found.reread = lambda: (found.service, SimpleNamespace(name="other.nbspam"))
        found.renew()
        assert notices[-1] == "RELOADING=1"
        found.tick()
        assert notices.count("READY=1") == 1
        for row in (3, 4):
            tally.take_row(row)
            tally.put("beat", 5)
        found.tick()
        assert notices.count("READY=1") == 2
        assert lines.readline().endswith("model other.nbspam\n")
