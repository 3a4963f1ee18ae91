"""Servers of mail filters, started for benchmarks: nbspam, SpamAssassin's spamd, rspamd.

Each has a folder of its own for configuration and state, listens on this machine only, looks
nothing up in the network, has as many workers as the others, and was taught the same mail.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import serving_client as client
from common import CLASSES

from serving import children, ended, free_port  # type: ignore[import-not-found]

_PATIENCE = 600  # seconds until a server answers: rspamd compiles its expressions first
# Modules of rspamd that ask the network, or want to remember mail.
_OFF = (
    "arc asn bimi dkim dkim_signing dmarc fuzzy_check greylist history_redis multimap mx_check"
    " neural phishing ratelimit rbl replies reputation rspamd_update spf url_redirector whitelist"
)
_RSPAMD = """
.include "$CONFDIR/common.conf"
options {{
    .include "$CONFDIR/options.inc"
    pidfile = "$DBDIR/pid";
    dns {{ nameserver = ["127.0.0.1:{none}"]; }}
}}
logging {{ type = "file"; filename = "$DBDIR/log"; level = "error"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{normal}"; count = {workers}; }}
worker "controller" {{ bind_socket = "127.0.0.1:{control}"; secure_ip = "127.0.0.1"; }}
"""
_SPAMASSASSIN = """
bayes_path {folder}/state/bayes
bayes_file_mode 0777
bayes_auto_learn 0
bayes_auto_expire 0
"""


class Server:
    """A server that runs; others: processes that it needs beside its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", *others: int) -> None:
        self.process = process
        self.others = others

    @property
    def workers(self) -> list[int]:
        """The processes that it has started."""
        found: list[int] = children(self.process.pid)
        return found

    def processor_seconds(self) -> float:
        """Return the processor time that all its processes have taken so far."""
        return sum(map(processor_seconds, (self.process.pid, *self.workers, *self.others)))

    def megabytes(self) -> float:
        """Return the memory of all its processes; what they share is divided among them."""
        return sum(map(megabytes, (self.process.pid, *self.workers, *self.others)))


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, with that of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[11:15]
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int, kind: str = "Pss") -> float:
    """Return the memory of a process; kind: Rss, or Pss, with its share of what it shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


@contextmanager
def running(
    command: list[str], folder: Path, *addresses: client.Address, env: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server until the block ends; its addresses answer when the block begins."""
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, env=env)
    try:
        until = time.monotonic() + _PATIENCE
        while not all(map(client.answers, addresses)):
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{command[0]} does not answer: {(folder / 'said').read_text()[-500:]}")
            time.sleep(0.1)
        yield process
    finally:
        ended(process)


@contextmanager
def nbspam(
    folder: Path, model: Path, workers: int, *options: str, env: dict[str, str] | None = None
) -> Iterator[Server]:
    """Run nbspam; its addresses are from `options`, each after its option."""
    folder.mkdir()
    command = [sys.executable, "-m", "nbspam", "serve", "-m", str(model), *options]
    addresses = [
        int(place) if place.isdecimal() else place
        for option, place in pairwise(options)
        if option in ("--spamd", "--http")
    ]
    command += ["--log", "none", "--jobs", str(workers)]
    with running(command, folder, *addresses, env=env) as process:
        server = Server(process)
        while len(server.workers) < workers:  # its sockets were there before
            time.sleep(0.1)
        yield server


@contextmanager
def spamassassin(folder: Path, mail: Path, workers: int, path: str) -> Iterator[Server]:
    """Run spamd, listening at a path: local tests and Bayes, which sa-learn has taught."""
    configuration, state = folder / "etc", folder / "state"
    for each in (configuration, state):
        each.mkdir(parents=True)
    for source in Path("/etc/spamassassin").glob("*.pre"):
        shutil.copy(source, configuration)
    (configuration / "local.cf").write_text(_SPAMASSASSIN.format(folder=folder))
    os.chmod(folder, 0o777)
    os.chmod(state, 0o777)
    learn = ["sa-learn", "--local", f"--siteconfigpath={configuration}"]
    for label in CLASSES:
        done = [*learn, f"--{label}", str(mail / label)]
        subprocess.run(done, check=True, stdout=subprocess.DEVNULL)
    number = str(workers)
    command = ["spamd", "-L", "-x", f"--siteconfigpath={configuration}", f"--socketpath={path}"]
    command += ["-m", number, f"--min-children={number}", f"--max-spare={number}"]
    command += ["--max-conn-per-child=1000000", "-s", "null", "-H", str(state)]
    if os.getuid() == 0:  # which spamd refuses to work as
        for each in state.iterdir():
            os.chmod(each, 0o666)
        command += ["-u", "nobody"]
    with running(command, folder, path) as process:
        yield Server(process)


@contextmanager
def rspamd(folder: Path, mail: Path, workers: int, port: int) -> Iterator[Server]:
    """Run rspamd: rules that need no network, and Bayes, which a Redis keeps."""
    control, none, path = free_port(), free_port(), f"{folder}/redis.sock"
    (folder / "override.d").mkdir(parents=True)
    (folder / "override.d" / "redis.conf").write_text(f'servers = "{path}";\n')
    for module in _OFF.split():
        (folder / "override.d" / f"{module}.conf").write_text("enabled = false;\n")
    configuration = folder / "rspamd.conf"
    configuration.write_text(
        _RSPAMD.format(none=none, normal=port, control=control, workers=workers)
    )
    command = ["rspamd", "--no-fork", "--config", str(configuration)]
    for name in ("DBDIR", "RUNDIR", "LOGDIR", "LOCAL_CONFDIR"):
        command += ["--var", f"{name}={folder}"]
    if os.getuid() == 0:
        command += ["--insecure", "--user", "root", "--group", "root"]
    redis = ["redis-server", "--port", "0", "--unixsocket", path, "--save", ""]
    with (
        running([*redis, "--dir", str(folder)], folder, path) as store,
        running(command, folder, port, control) as process,
    ):
        client.load(lessons(mail, control), 4)
        yield Server(process, store.pid)


def lessons(mail: Path, port: int) -> Iterator[client.Call]:
    """Yield requests that teach rspamd all mail of a folder."""
    for label in CLASSES:
        for path in sorted((mail / label).iterdir()):
            request = client.http_request(path.read_bytes(), f"/learn{label}")
            yield client.Call(port, client.http, request)
