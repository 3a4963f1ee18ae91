"""A client of mail filters' servers that costs little, as it shares their cores.

One thread with plain sockets, and requests that are whole before the clock starts.  Every message
has a connection of its own, as spamc, rspamc and the sessions of a mail system have.
"""

import select
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
Talk = Generator[int, None, bytes]  # yields what it waits for; returns the answer
Protocol = Callable[[socket.socket, bytes], Talk]  # of a connection and a request
Address = str | int  # the path of a socket, or a port of this machine
_CHUNK = 65_535  # bytes that are received at once


class Call(NamedTuple):
    """A request: where it is sent, what is sent, and in which protocol."""

    address: Address
    talk: Protocol
    request: bytes


def load(calls: Iterable[Call], at_once: int) -> list[float]:
    """Do calls, so many at once; return the seconds that each took, in the order of answers."""
    waiting, took = iter(calls), []
    epoll = select.epoll()
    running: dict[int, tuple[Talk, socket.socket, float]] = {}

    def begin() -> None:
        call = next(waiting, None)
        if call is None:
            return
        start = time.perf_counter()
        sock = connected(call.address)
        talk = call.talk(sock, call.request)
        epoll.register(sock, next(talk))
        running[sock.fileno()] = talk, sock, start

    for _ in range(at_once):
        begin()
    while running:
        for fd, _ in epoll.poll():
            talk, sock, start = running[fd]
            try:
                epoll.modify(fd, next(talk))
            except StopIteration:
                took.append(time.perf_counter() - start)
                del running[fd]
                sock.close()
                begin()
    epoll.close()
    return took


def connected(address: Address) -> socket.socket:
    """Return a new connection."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address)
    else:
        sock = socket.create_connection(("127.0.0.1", address))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock


def answers(address: Address) -> bool:
    """Return whether somebody listens."""
    try:
        connected(address).close()
    except OSError:
        return False
    return True


# ---- protocols ----


def spamd(sock: socket.socket, request: bytes) -> Talk:
    """Talk as spamc: it shuts its writing side."""
    return _talk(sock, request, b"SPAMD/1.1 0 EX_OK\r\n", is_shut=True)


def http(sock: socket.socket, request: bytes) -> Talk:
    """Talk as rspamc."""
    return _talk(sock, request, b"HTTP/1.1 20")  # 204, 208: a lesson it refuses


def _talk(sock: socket.socket, request: bytes, expected: bytes, is_shut: bool = False) -> Talk:
    """Send a request, and return the whole answer, which begins as expected."""
    rest, answer, piece = memoryview(request), b"", b"?"
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except BlockingIOError:
            yield WRITE
    if is_shut:
        sock.shutdown(socket.SHUT_WR)
    while piece:
        yield READ
        piece = sock.recv(_CHUNK)
        answer += piece
    assert answer.startswith(expected), answer[:200]
    return answer


# ---- requests ----


def spamd_request(data: bytes, command: str = "CHECK", more: str = "User: bench\r\n") -> bytes:
    """Return a request of spamd's protocol."""
    return f"{command} SPAMC/1.5\r\n{more}Content-length: {len(data)}\r\n\r\n".encode() + data


def lesson(data: bytes, label: str) -> bytes:
    """Return a request of spamd's protocol to learn a message."""
    return spamd_request(data, "TELL", f"Message-class: {label}\r\nSet: local\r\n")


def http_request(data: bytes, path: str = "/checkv2", more: str = "") -> bytes:
    """Return a request of rspamd's protocol."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def verdicts(messages: Iterable[bytes], address: Address, talk: Protocol) -> list[Call]:
    """Return a call for each message that asks for its verdict."""
    request = http_request if talk is http else spamd_request
    return [Call(address, talk, request(data)) for data in messages]
