"""What tests of shared lessons share: logs in memory and of real servers, and hosts."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import pytest
from hypothesis import strategies as st

from nbspam.errors import SharedLogError
from nbspam.settings import PRESETS
from nbspam.sharing.logs import LogEnd, SharedLog, open_log
from nbspam.sharing.outbox import Outbox
from nbspam.sharing.sharer import SharedOutlet, Sharer
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.text import model_lines
from serving import PATIENCE, free_port

DAY = 20_000
WORDS = b"lunch friday meeting pills cheap offer".split()


class MemoryLog(SharedLog):
    """A log that hosts in one process share; `away` says why it cannot be reached."""

    name = "memory://log"
    seconds = 1_800_000_000  # by its own clock

    def __init__(self):
        self.records, self.identity, self.reports = [], "one", {}
        self.first, self.away = 0, None

    def check(self):
        if self.away:
            raise SharedLogError(f"{self.name}: {self.away}; lessons wait until it is back")

    def append(self, records):
        self.check()
        self.records += records
        return len(self.records)

    def read(self, after, limit):
        self.check()
        start = max(after, self.first)
        return list(enumerate(self.records[start : start + limit], start + 1))

    def wait(self, after, timeout):
        self.check()

    def trim(self, position):
        self.first = max(self.first, position)

    def end(self):
        self.check()
        n_records = len(self.records)
        return LogEnd(self.identity, n_records, self.first, n_records, self.seconds)

    def report(self, host, facts):
        self.check()
        self.reports[host] = facts

    def hosts(self):
        return {name: facts for name, facts in self.reports.items() if facts}

    def close(self):
        pass


class Host:
    """A host with a model, which shares its lessons in a log.

    all: the hosts of a test, which are stopped behind it.
    """

    all: ClassVar[list["Host"]] = []

    def __init__(self, folder, name, log, user=""):
        Host.all.append(self)
        folder.mkdir(exist_ok=True)
        self.path = str(folder / name)
        self.name, self.log = name, log
        self.start()

    def start(self):
        """Begin as after a kill: nothing is known but what is on disk."""
        if hasattr(self, "sharer"):
            self.stop()
        self.outlet = SharedOutlet(self.path)
        self.model = self.outlet.attach(self.opened(""))
        self.sharer = Sharer(self.path, self.log, self.name, cache(self.opened))

    def opened(self, user):
        path = f"{self.path}-{user}" if user else self.path
        return StoredModel(path, new=PRESETS["mail"])

    def teach(self, data, label, day=DAY, told=True):
        """Let the host learn a message, or un-learn it: None."""
        item = Item("-", label, data, told=told and label is not None)
        if label is None:
            return self.model.unlearn([item], day=day)
        return self.model.learn([item], day=day, classes=[label])

    def export(self):
        return b"".join(model_lines(self.opened("").whole()))

    def stop(self):
        self.outlet.outbox.close()
        self.sharer.close()


def message(n, copy=0):
    """Return message n; its copies have other words, and are the same message."""
    words = b" ".join([WORDS[n % 6], WORDS[n * 7 % 5], b"own%d" % n, b"few%d" % (n % 4)])
    head = b"Received: by host%d\nMessage-ID: <%d@x>\nSubject: copy%d %s" % (copy, n, copy, words)
    return head + b"\n\n" + words + b"\n"


class KilledError(BaseException):
    """The process ends here."""


def killed(*_):
    raise KilledError


_TEACH = (st.integers(0, 7), st.integers(0, 1), st.sampled_from(["ham", "spam", None]))
_ACTS = st.one_of(
    st.tuples(st.sampled_from(["teach", "lost"]), *_TEACH, st.integers(-1, 2), st.booleans()),
    st.tuples(st.sampled_from(["send", "receive", "restart", "compact", "killed"])),
)
# Where a process ends: between journal and position, or before it learns what it has put away.
_KILLED_IN = {"killed": (Outbox, "note_read"), "lost": (StoredModel, "_keep")}
STEPS = st.lists(st.tuples(st.integers(0, 2), _ACTS), max_size=40)  # each of one of three hosts


def act(host, what, *values):
    """Let a host do one of the acts above."""
    if what == "teach":
        n, copy, label, day, told = values
        host.teach(message(n, copy), label, DAY + day, told)
    elif what == "restart":
        host.start()
    elif what == "compact":
        if host.model.is_there:
            host.model.compact()
    elif what in _KILLED_IN:
        with patch.object(*_KILLED_IN[what], killed), suppress(KilledError):
            if values:
                act(host, "teach", *values)
            host.sharer.receive()
        host.start()
    else:
        getattr(host.sharer, what)()


def quiet(hosts):
    for host in hosts:
        while host.sharer.send():
            pass
    for host in hosts:
        while host.sharer.receive():
            pass


def exports_are_equal(tmp_path, acts):
    """Assert that hosts which did this, and one that knows only the log, have one model."""
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    log = MemoryLog()
    with ExitStack() as closed:

        def host(name):
            made = Host(tmp_path / name, "model", log)
            closed.callback(made.stop)
            return made

        hosts = [host(f"host{k}") for k in range(3)]
        for k, what in acts:
            act(hosts[k], *what)
        quiet(hosts)
        hosts.append(host("late"))
        quiet(hosts)
        exports = {each.export() for each in hosts}
        waiting = [each.sharer.outbox.size() for each in hosts]

    assert not any(waiting)
    assert len(exports) == 1


class RealLog:
    """A server of a log on loopback, which can be killed and started again.

    disk: MB of a disk of its own, which can be full.  password: which clients must know.  tls:
    files of a certificate and its key; nothing else is spoken then.
    """

    user: ClassVar = {}  # as whom it runs
    can_mount = sys.platform == "linux" and os.geteuid() == 0

    def __init__(self, folder, disk=0, password=None, tls=()):
        self.folder, self.port, self.disk = folder, free_port(), disk
        self.password, self.tls = password, tls
        folder.mkdir()
        self.prepare()
        self.start()

    def prepare(self):
        if self.disk:
            options = ["-o", f"size={self.disk}m,mode=777", "none", str(self.folder)]
            subprocess.run(["mount", "-t", "tmpfs", *options], check=True)

    @contextmanager
    def full_disk(self):
        """Leave no room on the disk in the block."""
        filler = self.folder / "filler"
        with suppress(OSError), open(filler, "wb", buffering=0) as file:
            while file.write(bytes(1 << 12)):
                pass
        try:
            yield
        finally:
            filler.unlink()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.folder, **self.user
            )
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(SharedLogError):
                shared = open_log(self.url, self.password)
                shared.end()
                shared.close()
                return
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.05)

    def remove(self):
        """Remove what lies outside of the folder."""
        if self.disk:
            subprocess.run(["umount", str(self.folder)], check=True)

    def stop(self, sent=signal.SIGKILL):
        self.process.send_signal(sent)
        self.process.wait(PATIENCE)


class RedisServer(RealLog):
    library = "redis"
    is_there = shutil.which("redis-server") is not None

    @property
    def url(self):
        return f"{'rediss' if self.tls else 'redis'}://127.0.0.1:{self.port}/lessons"

    def direct(self):
        import redis

        return redis.Redis(port=self.port)

    def command(self):
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder}
        options |= {"appendonly": "yes", "save": ""}
        if self.password:
            options["requirepass"] = self.password
        if self.tls:
            options |= {"port": 0, "tls-port": self.port, "tls-auth-clients": "no"}
            options |= dict(zip(("tls-cert-file", "tls-key-file"), self.tls, strict=True))
        return ["redis-server", *(str(x) for k, v in options.items() for x in (f"--{k}", v))]


_POSTGRES = shutil.which("postgres") or max(glob("/usr/lib/postgresql/*/bin/postgres"), default="")


class PostgresServer(RealLog):
    """It refuses to run as root, so that it becomes nobody then."""

    library = "psycopg"
    is_there = bool(_POSTGRES)
    user: ClassVar = {"user": "nobody"} if sys.platform != "win32" and os.geteuid() == 0 else {}

    def prepare(self):
        if self.user:  # who has to come here
            self.folder = Path(tempfile.mkdtemp(prefix="nbspam-postgres-"))
            shutil.chown(self.folder, "nobody")
        super().prepare()
        made = _empty_databases(self.password)
        subprocess.run(["cp", "-a", made, self.folder / "data"], check=True)
        for source, name in zip(self.tls, ("cert", "key"), strict=False):
            shutil.copy(source, self.folder / name)
            shutil.chown(self.folder / name, self.user.get("user"))
            (self.folder / name).chmod(0o600)

    @property
    def url(self):
        verified = f"?sslmode=verify-full&sslrootcert={self.tls[0]}" if self.tls else ""
        return f"postgresql://log@127.0.0.1:{self.port}/postgres/lessons{verified}"

    def direct(self):
        import psycopg

        return psycopg.connect(self.url.rpartition("/")[0], autocommit=True)

    def command(self):
        where = ["-D", "data", "-k", "", "-p", str(self.port)]
        tls = ["--ssl=on", "--ssl_cert_file=../cert", "--ssl_key_file=../key"] if self.tls else []
        return [os.path.realpath(_POSTGRES), *where, "-h", "127.0.0.1", *tls]

    def stop(self, sent=signal.SIGQUIT):  # at once, without a checkpoint; all its processes end
        super().stop(sent)

    def remove(self):
        super().remove()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def _empty_databases(password):
    """Return a folder of PostgreSQL's databases; making one takes longer than all else."""
    folder = Path(tempfile.mkdtemp(prefix="nbspam-postgres-"))
    atexit.register(shutil.rmtree, folder)
    initdb = os.path.join(os.path.dirname(os.path.realpath(_POSTGRES)), "initdb")
    command = [initdb, "-D", "data", "-A", "trust", "-U", "log", "-N"]
    if password:
        (folder / "password").write_text(password)
        command += ["-A", "scram-sha-256", "--pwfile", "password"]
    if PostgresServer.user:
        shutil.chown(folder, **PostgresServer.user)
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **PostgresServer.user)
    return folder / "data"


SERVERS = {"redis": RedisServer, "postgresql": PostgresServer}


@contextmanager
def real_log(kind, folder, **options):
    """Run a log's server in the block; the test is skipped if that, or its library, is missing."""
    if not SERVERS[kind].is_there:
        pytest.skip(f"no {kind}")
    pytest.importorskip(SERVERS[kind].library)
    server = SERVERS[kind](folder, **options)
    try:
        yield server
    finally:
        server.stop()
        server.remove()
