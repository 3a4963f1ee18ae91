"""Faults while a server runs; `make stress` does more of each (tests/stress/server.py)."""

import os
import resource
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from protocols import check
from serving import connected, rest_of, serving, until
from stress import server as stress
from support import SPAM

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        (stress.stalls, 1000),
        (stress.slow_clients, 100),
        (stress.vanishing, 600),
        (stress.altered_requests, 2000),
        (stress.killed_workers, 5),
        (stress.replaced_models, 50),
        (stress.full_disk, 20),
        (stress.killed_servers, 5),
    ],
)
def test_faults_cost_no_right_answer_and_no_lesson(mails, served_model, fault, number):
    fault(stress.Trial(mails, served_model), number)


# ---- limits, at a server that runs ----


def test_a_client_that_is_refused_while_it_writes_reads_why(tmp_path, own_model):
    data = bytes(3_000_000)
    with serving(own_model, tmp_path, limits={"bytes_held": 1_000_000}) as served:
        for address, request, answer in (
            (served.spamd, check(data), b"SPAMD/1.0 75 EX_TEMPFAIL"),
            (
                served.http,
                b"POST /checkv2 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data,
                b"HTTP/1.1 503 ",
            ),
        ):
            with connected(address) as client:
                client.sendall(request)  # all of it, though nobody wants it
                client.shutdown(1)
                assert rest_of(client).startswith(answer)


def test_a_client_that_does_not_read_its_answer_is_let_go(tmp_path, own_model):
    limits = {"idle_seconds": 2.0}
    options = ("--jobs", "1")
    with serving(own_model, tmp_path, *options, limits=limits) as served, ExitStack() as open_:
        deaf = open_.enter_context(connected(served.spamd))
        deaf.sendall(check(SPAM + bytes(6_000_000), "PROCESS"))
        until(lambda: served.metrics()["nbspam_held_bytes"] > 6e6)
        until(lambda: served.metrics()["nbspam_held_bytes"] == 0)


def test_who_finds_no_descriptor_left_is_answered_later(tmp_path, own_model):
    with serving(own_model, tmp_path, "--jobs", "1") as served:
        served.ask(check(SPAM))
        [pid] = served.pids
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        with connected(served.spamd) as waits:
            waits.sendall(check(SPAM))
            time.sleep(2)
            used = processor_seconds(pid)
            time.sleep(2)
            assert processor_seconds(pid) - used < 0.5  # it does not try all the time
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            assert b"Spam: True" in rest_of(waits)
        assert 1 <= served.metrics()['nbspam_troubles_total{kind="busy"}'] < 10


def processor_seconds(pid):
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
