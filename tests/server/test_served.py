"""A server that runs: limits, faults, and clients that go at every moment.

Clients that go are counted and leave nothing behind, on uvloop and on asyncio's own loop.  `make
stress` does more of each fault (tests/stress/server.py).
"""

import fcntl
import os
import resource
import socket
import struct
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocols import OFFER, check, milter_mail, post
from serving import connected, free_port, rest_of, serving, until
from stress import server as stress
from support import HAM, SPAM

pytestmark = pytest.mark.slow
N = 8  # clients at once
RESET = struct.pack("ii", 1, 0)  # linger for no time: the other side gets a reset
LARGE = SPAM + b"lunch " * 50_000
WHOLE = {
    "spamd": check(LARGE, "PROCESS"),
    "http": post("/checkv2", LARGE),
    "milter": OFFER + milter_mail(LARGE[:60_000]),
}


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        (stress.stalls, 1000),
        (stress.slow_clients, 100),
        (stress.vanishing, 600),
        (stress.mixed_requests, 700),
        (stress.large_messages, 4),
        (stress.idle_clients, 1200),
        (stress.short_memory, 10),
        (stress.killed_workers, 5),
        (stress.replaced_models, 50),
        (stress.copied_models, 300),
        (stress.full_disk, 20),
        (stress.killed_servers, 5),
    ],
)
def test_faults_cost_no_right_answer_and_no_lesson(mails, served_model, fault, number):
    fault(stress.Trial(mails, served_model), number)


# ---- limits ----


def test_a_client_that_is_refused_while_it_writes_reads_why(tmp_path, own_model):
    data = bytes(3_000_000)
    with serving(own_model, tmp_path, limits={"bytes_held": 1_000_000}) as served:
        for address, request, answer in (
            (served.spamd, check(data), b"SPAMD/1.0 65 EX_DATAERR"),
            (served.http, post("/checkv2", data), b"HTTP/1.1 413 "),
        ):
            with connected(address) as client:
                client.sendall(request)  # all of it, though nobody wants it
                client.shutdown(socket.SHUT_WR)
                assert rest_of(client).startswith(answer)


def test_a_client_that_does_not_read_its_answer_is_let_go(tmp_path, own_model):
    limits = {"idle_seconds": 2.0}
    with (
        serving(own_model, tmp_path, "--jobs", "1", limits=limits) as served,
        connected(served.spamd) as deaf,
    ):
        deaf.sendall(check(SPAM + bytes(6_000_000), "PROCESS"))
        until(lambda: served.metrics()["nbspam_held_bytes"] > 5e6)
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


# ---- clients that go ----


@pytest.fixture(scope="module", params=[True, False], ids=["uvloop", "asyncio"])
def served(request, tmp_path_factory, served_model):
    """A server with one worker that listens on ports, where connections can be reset."""
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    options = ("--jobs", "1", "--log", "none")
    with serving(served_model, folder, *options, spamd=port, uvloop=request.param) as found:
        [pid] = found.pids
        assert ("uvloop" in Path(f"/proc/{pid}/maps").read_text()) == request.param
        assert b"Spam: True" in found.ask(check(SPAM))
        yield found


def gone(served):
    return served.metrics()['nbspam_troubles_total{kind="gone"}']


def is_at_rest(served):
    """Return whether nothing is left of the clients that went."""
    found = served.metrics()
    names = ("nbspam_open_connections", "nbspam_queue", "nbspam_held_bytes")
    return [found[name] for name in names] == [1, 0, 0]  # the connection that asks is open


@contextmanager
def nothing_left(served):
    """Wait at the end until nothing is left of the clients that went, and nothing was logged."""
    [pid] = served.pids

    def n_files():
        return len(os.listdir(f"/proc/{pid}/fd"))

    files = n_files()
    yield
    until(lambda: is_at_rest(served))
    until(lambda: n_files() <= files)
    assert b"Spam: True" in served.ask(check(SPAM))
    assert len(served.errors.read_text().splitlines()) == 3, served.errors.read_text()


def leave(client, how):
    if how == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


def vanish(served, protocol, when, how):
    """Let clients connect, send what they send by then, and go."""
    data = WHOLE[protocol]
    clients = [connected(getattr(served, protocol)) for _ in range(N)]
    if when == "uploading":
        for client in clients:
            client.sendall(data[: len(data) // 2])
        time.sleep(0.2)
    for number, client in enumerate(clients):
        if when != "uploading":
            client.sendall(data)
        if when == "reading":
            client.recv(1)
        leave(client, how)
        if number % 4 == 0:  # others do not notice
            assert b"Spam: True" in served.ask(check(SPAM))
            assert b"Spam: False" in served.ask(check(HAM))


@pytest.mark.parametrize("protocol", WHOLE)
def test_clients_that_go_leave_nothing_behind(served, protocol):
    before = gone(served)
    with nothing_left(served):
        for how in ("closed", "reset"):
            vanish(served, protocol, "uploading", how)
        until(lambda: is_at_rest(served))
        # An upload to spamd that is shut is answered: it may have been only half closed.
        assert gone(served) - before == (N if protocol == "spamd" else 2 * N)
        for when in ("waiting", "reading"):
            for how in ("closed", "reset"):
                vanish(served, protocol, when, how)


def test_who_shuts_the_writing_side_too_early_or_is_reset_before_a_word_is_let_go(served):
    with nothing_left(served):
        for protocol, first in (("spamd", b"SPAMD/1.0 76 "), ("http", b""), ("milter", b"")):
            with connected(getattr(served, protocol)) as client:
                client.sendall(WHOLE[protocol][:40])
                client.shutdown(socket.SHUT_WR)
                assert rest_of(client).startswith(first)
    before = gone(served)
    with nothing_left(served):
        for protocol in WHOLE:
            for _ in range(N):
                leave(connected(getattr(served, protocol)), "reset")
    assert gone(served) == before
