"""Clients that go: in the middle of a request, while they wait, before they read the answer.

They are counted and leave nothing behind, on uvloop and on asyncio's own loop.
"""

import fcntl
import os
import socket
import struct
import time
from pathlib import Path

import pytest

from protocols import OFFER, check, milter_mail
from serving import connected, free_port, rest_of, serving, until
from support import HAM, SPAM

N = 8  # clients at once
RESET = struct.pack("ii", 1, 0)  # linger for no time: the other side gets a reset
LARGE = SPAM + b"lunch " * 50_000


def post(data):
    return b"POST /checkv2 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(data) + data


WHOLE = {
    "spamd": check(LARGE, "PROCESS"),
    "http": post(LARGE),
    "milter": OFFER + milter_mail(LARGE[:60_000]),
}


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


def n_files(served):
    [pid] = served.pids
    return len(os.listdir(f"/proc/{pid}/fd"))


def gone(served):
    return served.metrics()['nbspam_troubles_total{kind="gone"}']


def is_at_rest(served):
    """Return whether nothing is left of the clients that went."""
    found = served.metrics()
    names = ("nbspam_open_connections", "nbspam_queue", "nbspam_held_bytes")
    return [found[name] for name in names] == [0, 0, 0]


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
    files, before = n_files(served), gone(served)
    for when in ("uploading", "waiting", "reading"):
        for how in ("closed", "reset"):
            vanish(served, protocol, when, how)
        if when == "uploading":
            until(lambda: is_at_rest(served))
            # An upload to spamd that is shut is answered: it may have been only half closed.
            expected = N if protocol == "spamd" else 2 * N
            assert gone(served) - before == expected
    until(lambda: is_at_rest(served))
    until(lambda: n_files(served) == files)
    assert len(served.errors.read_text().splitlines()) == 3, served.errors.read_text()


def test_who_shuts_the_writing_side_too_early_is_let_go(served):
    for protocol, first in (("spamd", b"SPAMD/1.0 76 "), ("http", b""), ("milter", b"")):
        with connected(getattr(served, protocol)) as client:
            client.sendall(WHOLE[protocol][:40])
            client.shutdown(socket.SHUT_WR)
            assert rest_of(client).startswith(first)
    assert len(served.errors.read_text().splitlines()) == 3


def test_connections_that_are_reset_before_a_word_leave_nothing_behind(served):
    files, before = n_files(served), gone(served)
    for port in (served.spamd, served.http, served.milter):
        for _ in range(N):
            leave(connected(port), "reset")
    until(lambda: is_at_rest(served))
    until(lambda: n_files(served) == files)
    assert gone(served) == before
    assert b"Spam: True" in served.ask(check(SPAM))


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
