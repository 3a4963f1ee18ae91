"""Servers share lessons while their log fails, the network is cut, and they are killed.

Three servers, whose clocks differ by an hour around midnight if there is libfaketime, share a log
through proxies of loopback.  Clients of each teach and ask all the time, by spamd's protocol.
After every fault, all that was acknowledged is there, exports are equal to the byte, and verdicts
are those of the model in this process.
"""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from glob import glob

import pytest

from nbspam.mail.verdict_headers import score_of
from nbspam.settings import PRESETS
from nbspam.sharing.logs import open_log
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.text import model_lines
from protocols import check, tell
from serving import Proxy, serving, until
from shared_logs import SERVERS, message

PARTITION = 60  # seconds
N_CLIENTS = 8  # of each server, at once
# Of each fault, at least.  More than 4,000 make a site with more than 32,000 messages, whose
# models do not remember the tokens of all.
N_LESSONS = int(os.environ.get("STRESS_LESSONS", "3000"))
N_BASE = 4_000  # messages that all models have first, so that few lessons make a fit due
_FAKETIME = max(glob("/usr/lib/*/faketime/libfaketime.so.1"), default="")
_TO_MIDNIGHT = 86_400 - time.time() % 86_400


class SharingHost:
    """A server and its clients; base: the model that all hosts start from."""

    def __init__(self, number, folder, url, line, base):
        folder.mkdir()
        shutil.copy(base, folder / "model")
        self.number, self.folder, self.line = number, folder, line
        self.model = str(folder / "model")
        self.options = ["--share", url, "--allow-tell", "-j", "1", "--log", "none"]
        self.env = {}
        if _FAKETIME:
            offset = _TO_MIDNIGHT + 3600 * (number - 1)
            self.env = {"LD_PRELOAD": _FAKETIME, "FAKETIME": f"+{offset:.0f}"}
            self.env["DONT_FAKE_MONOTONIC"] = "1"
        self.start()

    def start(self):
        self.running = ExitStack()
        started = serving(self.model, self.folder, *self.options, env=self.env)
        self.served = self.running.enter_context(started)

    def kill(self, process="server"):
        """Kill the server, or one of its processes, which it starts again."""
        if process == "server":
            os.kill(self.served.process.pid, signal.SIGKILL)
            self.running.close()
            self.start()
        else:
            with suppress(ProcessLookupError):
                os.kill(random.choice(self.served.pids), signal.SIGKILL)

    def ask(self, request):
        try:
            return self.served.ask(request)
        except OSError:
            return b""

    def metric(self, name):
        with suppress(OSError):
            return self.served.metrics().get(f"nbspam_share_{name}")


class Site:
    """Three hosts and their log; what clients were told."""

    def __init__(self, kind, folder):
        self.log = SERVERS[kind](folder / "log", disk=400)
        base = folder / "base"
        known = [
            Item("-", ("ham", "spam")[n % 2], message(n)) for n in range(10**6, 10**6 + N_BASE)
        ]
        StoredModel(str(base), new=PRESETS["mail"]).learn(known, day=0, classes=["ham", "spam"])
        self.hosts = []
        for number in range(3):
            line = Proxy(self.log.port)
            url = self.log.url.replace(str(self.log.port), str(line.port))
            self.hosts.append(SharingHost(number, folder / f"host{number}", url, line, base))
        self.numbers = iter(range(1 << 40))
        self.taught, self.known, self.again = {}, [], set()  # acknowledged

    def client(self, host, number, end):
        """Teach and ask one server."""
        rng = random.Random(f"{host.number} {number}")
        while not end.is_set():
            n, label = next(self.numbers), rng.choice(["ham", "spam"])
            if self.known and rng.random() < 0.1:  # another client has taught it otherwise
                n = rng.choice(self.known)
            data = message(n, rng.randrange(2))
            if host.ask(tell(label, data)).startswith(b"SPAMD/1.1 0 EX_OK"):
                if n in self.taught:
                    self.again.add(n)
                else:
                    self.known.append(n)
                self.taught[n] = label
            else:
                self.again.add(n)  # it may have been learned, too
            if number == 0:
                answer = host.ask(check(message(rng.randrange(1000))))
                is_given = answer.startswith(b"SPAMD/1.1 0 EX_OK")
                self.verdicts["given" if is_given else "none"] += 1
                time.sleep(0 if is_given else 0.2)

    def suffer(self, fault):
        """Teach while a fault happens; return the number of lessons and of verdicts."""
        before, self.verdicts, end = len(self.taught), Counter(), threading.Event()
        clients = [
            threading.Thread(target=self.client, args=(host, number, end), daemon=True)
            for host in self.hosts
            for number in range(N_CLIENTS)
        ]
        for each in clients:
            each.start()
        try:
            time.sleep(1)
            fault(self)
            until(lambda: len(self.taught) - before > N_LESSONS, seconds=3600)
        finally:
            end.set()
            for each in clients:
                each.join()
        return len(self.taught) - before

    def is_quiet(self):
        with closing(open_log(self.log.url)) as log:
            n_records = log.end().n_records
        return all(
            (host.metric("read"), host.metric("outbox")) == (n_records, 0) for host in self.hosts
        )

    def check(self):
        """Assert that nothing was lost, that models are equal, and that verdicts are right."""
        until(self.is_quiet, seconds=3600)
        # A server makes a fit that is due once lessons come no longer fast.
        until(lambda: not any(StoredModel(host.model).is_due for host in self.hosts), seconds=3600)
        models = [StoredModel(host.model) for host in self.hosts]
        assert len({b"".join(model_lines(model.whole())) for model in models}) == 1
        lost = [
            n
            for n, label in self.taught.items()
            if (found := models[0].filed(message(n)).label) is None
            or (found != label and n not in self.again)
        ]
        assert not lost
        asked = [message(n) for n in range(100)]
        for host, model in zip(self.hosts, models, strict=True):  # each fits when it is due there
            rule = model.classifier().rule
            items = [Item("-", None, data) for data in asked]
            for data, right in zip(
                asked, model.classifier().classify(items, rule=rule), strict=True
            ):
                line = f"Spam: {right.label == 'spam'} ; {score_of(right, rule):.1f} / 5.0"
                assert line.encode() in host.ask(check(data))

    def close(self):
        for host in self.hosts:
            host.running.close()
            host.line.close()
        self.log.stop()
        self.log.remove()


# ---- faults ----


def nothing(site):
    time.sleep(3)


def killed_log(site):
    site.log.stop()
    time.sleep(5)
    site.log.start()


def full_disk(site):
    with site.log.full_disk():
        time.sleep(10)
    with suppress(subprocess.TimeoutExpired):
        site.log.process.wait(1)
        site.log.start()  # PostgreSQL may have given up


def partition(site):
    line = site.hosts[1].line
    line.whole.clear()
    time.sleep(PARTITION)
    line.whole.set()


def killed_hosts(site):
    for n in range(6):
        site.hosts[n % 3].kill()
        time.sleep(1)


def killed_processes(site):
    for n in range(12):
        site.hosts[n % 3].kill("one")
        time.sleep(0.5)


FAULTS = [nothing, killed_log, full_disk, partition, killed_hosts, killed_processes]


@pytest.mark.parametrize("kind", SERVERS)
def test_servers_lose_no_lesson_and_have_one_model(kind, tmp_path):
    if not (SERVERS[kind].is_there and SERVERS[kind].can_mount):
        pytest.skip(f"no {kind}, or not root, whose disk can be full")
    with closing(Site(kind, tmp_path)) as site:
        for fault in FAULTS:
            n_lessons, start = site.suffer(fault), time.monotonic()
            site.check()
            seconds = time.monotonic() - start
            print(
                f"{kind}\t{fault.__name__}\t{n_lessons:,} lessons\t{site.verdicts['given']:,}"
                f" verdicts, {site.verdicts['none']} missing\tequal after {seconds:.1f} s"
            )
