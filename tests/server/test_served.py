"""A server that runs: limits, faults, and clients that go at every moment.

`make stress` does more of each fault (tests/stress/server.py).
"""

import fcntl
import os
import resource
import socket
import time
from pathlib import Path

import pytest

from protocols import check, post
from serving import connected, rest_of, serving
from stress import server as stress
from support import SPAM

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fault", stress.FAULTS)
def test_faults_cost_no_right_answer_and_no_lesson(mails, served_model, fault):
    fault(stress.Trial(mails, served_model), stress.FAULTS[fault][1])


def test_clients_that_go_leave_nothing_behind_on_the_other_loop(mails, served_model):
    trial = stress.Trial(mails, served_model, uvloop=not stress.WITH_UVLOOP)
    stress.vanishing(trial, stress.FAULTS[stress.vanishing][1])


# ---- limits ----


def test_who_is_refused_while_it_writes_reads_why_and_who_finds_no_descriptor_waits(
    tmp_path, own_model
):
    data = bytes(3_000_000)
    with serving(own_model, tmp_path, "--jobs", "1", limits={"bytes_held": 1_000_000}) as served:
        for address, request, answer in (
            (served.spamd, check(data), b"SPAMD/1.0 65 EX_DATAERR"),
            (served.http, post("/checkv2", data), b"HTTP/1.1 413 "),
        ):
            with connected(address) as client:
                client.sendall(request)  # all of it, though nobody wants it
                client.shutdown(socket.SHUT_WR)
                assert rest_of(client).startswith(answer)

        busy = served.metrics()['nbspam_troubles_total{kind="busy"}']
        [pid] = served.pids
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        with connected(served.spamd) as waits:
            waits.sendall(check(SPAM))
            time.sleep(0.5)
            used = processor_seconds(pid)
            time.sleep(1)
            assert processor_seconds(pid) - used < 0.25  # it does not try all the time
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            assert b"Spam: True" in rest_of(waits)
        assert 1 <= served.metrics()['nbspam_troubles_total{kind="busy"}'] - busy < 10


def processor_seconds(pid):
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_reader_of_standard_error_that_stalls_holds_up_no_mail(tmp_path, served_model):
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    request = check(SPAM, "CHECK", "1.5", "User: " + "x" * 200)
    try:
        with serving(served_model, tmp_path, "--jobs", "2", errors=write) as found:
            for _ in range(40):
                assert b"Spam: True" in found.ask(request)
            assert found.metrics()["nbspam_log_lines_dropped_total"] >= 20
            assert b"workers, model" in os.read(read, 1 << 16)  # somebody reads again
            found.ask(request)
            assert os.read(read, 1 << 16).count(b"verdict=spam") == 1
    finally:
        os.close(read)
        os.close(write)
