"""Faults while a server runs; `make stress` does more of each (tests/stress/server.py)."""

import os
import resource
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from serving import OFFER, ask, check, connected, packet, rest_of, serving, until
from stress import server as stress
from support import HAM, SPAM

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


def test_connections_beyond_the_limit_are_told_and_those_within_are_answered(tmp_path, own_model):
    limits = {"connections": 5}
    with (
        serving(own_model, tmp_path, "--jobs", "1", limits=limits) as served,
        ExitStack() as open_,
    ):
        for _ in range(5):
            open_.enter_context(connected(served.spamd)).sendall(b"CHECK SPAMC/1.5\r\n")
        assert served.ask(check(SPAM)).startswith(b"SPAMD/1.0 75 EX_TEMPFAIL")
        assert b" 503 " in ask(served.http, b"POST /checkv2 HTTP/1.0\r\n\r\n")
        assert served.metrics()['nbspam_troubles_total{kind="busy"}'] == 2
        open_.close()
        until(lambda: b"Spam: True" in served.ask(check(SPAM)))


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


def test_clients_that_are_too_slow_are_told_and_let_go(tmp_path, own_model):
    limits = {"head_seconds": 1.0, "body_seconds": 2.0, "idle_seconds": 2.0}
    with serving(own_model, tmp_path, limits=limits) as served:
        with connected(served.spamd) as silent, connected(served.spamd) as slow:
            slow.sendall(check(SPAM)[:-9])
            assert rest_of(silent) == b""
            assert rest_of(slow).startswith(b"SPAMD/1.0 79 EX_TIMEOUT")
        assert b"Spam: False" in served.ask(check(HAM))


def test_a_client_that_does_not_read_its_answer_is_let_go(tmp_path, own_model):
    limits = {"idle_seconds": 2.0}
    options = ("--jobs", "1")
    with serving(own_model, tmp_path, *options, limits=limits) as served, ExitStack() as open_:
        deaf = open_.enter_context(connected(served.spamd))
        deaf.sendall(check(SPAM + bytes(6_000_000), "PROCESS"))
        until(lambda: served.metrics()["nbspam_held_bytes"] > 6e6)
        until(lambda: served.metrics()["nbspam_held_bytes"] == 0)


def test_a_message_that_is_too_large_is_never_to_be_tried_again(tmp_path, own_model):
    data = SPAM + b"x" * 10_000_000
    with serving(own_model, tmp_path) as served:
        assert b"Spam: " in served.ask(check(data))
        assert served.ask(check(data, "PROCESS")).startswith(b"SPAMD/1.0 65 EX_DATAERR")
        post = b"POST /checkv2 HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(data)
        assert ask(served.http, post + data).startswith(b"HTTP/1.1 200 ")
        bodies = [data[start : start + 60_000] for start in range(0, len(data), 60_000)]
        mail = [packet(b"M"), packet(b"L", b"Subject\0 cheap pills\0"), packet(b"N")]
        mail += [packet(b"B", body) for body in bodies]
        found = ask(served.milter, OFFER + b"".join([*mail, packet(b"E")]))
        assert b"X-Nbspam\0 spam, " in found
        assert found.endswith(packet(b"c"))  # go on, and never "try again"
        assert served.metrics()["nbspam_oversized_total"] == 4


def test_what_a_killed_server_acknowledged_the_next_one_knows(tmp_path, own_model):
    tell = check(SPAM, "TELL", "1.5", "Message-class: spam", "Set: local")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with serving(own_model, tmp_path / "first", "--allow-tell") as served:
        assert b"DidSet" in served.ask(tell)
        served.stop(signal.SIGKILL)
    with serving(own_model, tmp_path / "second", "--allow-tell") as served:
        assert served.ask(tell).startswith(b"SPAMD/1.1 0 EX_OK\r\nContent-length")


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
