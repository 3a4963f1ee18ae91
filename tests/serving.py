"""Servers that run, for tests: started on loopback and asked."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from support import ROOT

# Whether servers may use uvloop: they run on asyncio's own loop, too.
WITH_UVLOOP = not os.environ.get("SERVE_WITHOUT_UVLOOP")
# Seconds to wait for what other processes do before a test fails: a machine can be starved.
PATIENCE = 60
was_late = []  # servers that did not start in that time


@dataclass
class Served:
    """A server that runs: its process, and where it listens."""

    process: subprocess.Popen
    spamd: str | int
    http: int
    milter: int
    errors: Path

    @property
    def pids(self):
        return children(self.process.pid)

    def stop(self, sent=signal.SIGTERM):
        self.process.send_signal(sent)
        return self.process.wait(PATIENCE)

    def reread(self):
        """Let the server read its options again, and wait for its next workers."""
        before = self.pids
        self.process.send_signal(signal.SIGHUP)
        until(lambda: set(self.pids).isdisjoint(before) and self.pids)

    def ask(self, data, timeout=PATIENCE):
        return ask(self.spamd, data, timeout)

    def metrics(self):
        """Return the values of the metrics, by name with labels."""
        text = ask(self.http, b"GET /metrics HTTP/1.0\r\n\r\n").decode()
        found = re.findall(r"^(nbspam\S+) (\S+)\r?$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}


def children(pid):
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def ask(address, data, timeout=PATIENCE):
    """Return the answer of an address, a path or a port, until it closes."""
    with connected(address, timeout) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return rest_of(client)


def connected(address, timeout=PATIENCE):
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address), timeout)
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(timeout)
    try:
        client.connect(address)
    except OSError:
        client.close()
        raise
    return client


def is_refused(address):
    try:
        connected(address).close()
    except ConnectionRefusedError:
        return True
    return False


def rest_of(client):
    return b"".join(iter(lambda: client.recv(1 << 16), b""))


class Proxy:
    """Passes bytes to a server, and holds up, cuts or garbles what one asks for.

    whole: while it is not set, nothing arrives, and nobody is told.  cut_line: lines of the client
    after which the connection ends, before the next one.  cut_byte: bytes of the server after
    which it ends.  Each does so once.  garbled: bytes of the server that are exchanged.
    """

    def __init__(self, port):
        self.target, self.whole = port, threading.Event()
        self.whole.set()
        self.cut_line = self.cut_byte = self.garbled = None
        self.n_lines = self.n_bytes = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                self.whole.wait()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for run in (self._from_client, self._from_server):
                    threading.Thread(target=run, args=(client, server), daemon=True).start()

    def _end(self, *sockets):
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _from_client(self, client, server):
        with suppress(OSError):
            while data := client.recv(1 << 16):
                self.whole.wait()
                self.n_lines += data.count(b"\n")
                if self.cut_line is not None and self.n_lines > self.cut_line:
                    self.cut_line = None
                    break
                server.sendall(data)
        self._end(client, server)

    def _from_server(self, client, server):
        with suppress(OSError):
            while data := server.recv(1 << 16):
                self.whole.wait()
                if self.garbled:
                    data = data.replace(*self.garbled)
                self.n_bytes += len(data)
                if self.cut_byte is not None and self.n_bytes > self.cut_byte:
                    self.n_bytes, kept = 0, len(data) - (self.n_bytes - self.cut_byte)
                    self.cut_byte = None
                    client.sendall(data[:kept])
                    break
                client.sendall(data)
        self._end(client, server)
        client.close()
        server.close()

    def close(self):
        self._end(self._listener)
        self._accepting.join(PATIENCE)  # it would accept on what has the descriptor next
        self._listener.close()


class Browser:
    """Keeps the cookie, follows nothing, and says where it comes from."""

    def __init__(self, port):
        self.port, self.cookie = port, ""

    def ask(self, method, path, form=None):
        """Return (status, where it leads, text)."""
        wire = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Cookie": self.cookie}
        if form is not None:
            headers["Origin"] = f"http://127.0.0.1:{self.port}"
        wire.request(method, path, urlencode(form or {}), headers)
        found = wire.getresponse()
        if cookie := found.getheader("Set-Cookie"):
            self.cookie = cookie.partition(";")[0]
        text = found.read().decode()
        wire.close()
        return found.status, found.getheader("Location"), text

    def log_in(self, server):
        """Follow the address in the first line that a server has written."""
        first = server.errors.read_text().splitlines()[0]
        return self.ask("GET", first.partition(str(self.port))[2])

    def token(self):
        return re.search(r'name="form" value="([^"]+)"', self.ask("GET", "/")[2])[1]

    def tell(self, **form):
        return self.ask("POST", "/tell", {"form": self.token(), **form})[0]

    def lesson(self):
        return re.search(r'name="undo" value="(\d+)"', self.ask("GET", "/")[2])[1]


def until(true, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def free_port():
    """Return a port on which nobody listens, below those that the system gives to clients."""
    while True:
        port = 15_000 + secrets.randbelow(17_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def has_started(process, notices):
    """Return whether a server says that it is ready, before it ends or is too late.

    Once a server was too late, the next ones get little time: hundreds of tests start one.
    """
    end = time.monotonic() + (5 if was_late else PATIENCE)
    while process.poll() is None:
        if time.monotonic() > end:
            was_late.append(process.pid)
            break
        with suppress(TimeoutError):
            return notices.recv(100) == b"READY=1"
    return False


def ended(process):
    """Let a process end, if it still runs; kill it if it does not."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait(PATIENCE)


@contextmanager
def serving(
    model, folder, *options, spamd=None, limits=None, env=None, uvloop=WITH_UVLOOP, errors=None
):
    """Run `nbspam serve` until the block ends; yields a Served.

    spamd: a port; None: a path in the folder; False: none.  limits: other bounds than the own, by
    name.  uvloop: whether the server may use it.  errors: a descriptor in the place of the file
    that takes standard error.
    """
    spamd = str(folder / "spamd") if spamd is None else spamd
    http, milter = free_port(), free_port()
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(folder / "notices"))
    notices.settimeout(0.2)
    start = _START.format(limits=limits or {}, uvloop=uvloop)
    command = [sys.executable, "-c", start, "serve", "-m", model]
    command += ["--spamd", str(spamd)] * (spamd is not False)
    command += ["--http", str(http), "--milter", str(milter)]
    path = folder / "errors"
    with open(path, "ab") as file:
        process = subprocess.Popen(
            [*command, *options],
            stderr=file if errors is None else errors,
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "NOTIFY_SOCKET": str(folder / "notices"),
                **(env or {}),
            },
        )
    try:
        assert has_started(process, notices), path.read_text()
        yield Served(process, spamd, http, milter, path)
    finally:
        notices.close()
        (folder / "notices").unlink()
        ended(process)


_START = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as some daemons hand on
if not {uvloop}:
    sys.modules["uvloop"] = None  # as if it were not installed
from nbspam.server import choices, supervisor
supervisor.SERVER_LIMITS = choices.ServerLimits(**{limits})
from nbspam.cli.main import main
main()
"""


def certificate(folder):
    """Make a certificate of 127.0.0.1 and its key in a folder; return their paths."""
    paths = [str(folder / name) for name in ("cert", "key")]
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]]
    subprocess.run(["openssl", *words], capture_output=True, check=True)
    return paths


def swaks(folder, data, *to):
    """Send a message by swaks, which finds it in a folder; return what it printed."""
    (folder / "message").write_bytes(data)
    command = ["swaks", "--to", "ann@example.org", "--from", "x@example.com"]
    command += ["--data", f"@{folder / 'message'}", *to]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    return done.stdout.decode()
