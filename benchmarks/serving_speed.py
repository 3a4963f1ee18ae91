"""Measure `nbspam serve` beside SpamAssassin's spamd and rspamd: speed, latency and memory.

usage: python benchmarks/serving_speed.py [CORPUS] [--rounds 3] [--alone]

CORPUS is a folder with ham/ and spam/, one message per file; all servers were taught all of it,
and are asked about it in one random order, each message over a connection of its own.  They run
on this machine beside the client, with two workers each.  nbspam speaks the protocols of both
others.  In every round each server is asked by 64 clients at once, and then by one; the others
about 300 messages, because they are slow.  --alone: nbspam without the others.

Printed are medians of the rounds: messages a second and the server's processor time a message
(of all its processes), with their ratios to nbspam in the same protocol, the median of the ratios
within each round; the client's own processor time; of all answers to one client the median and
the 99th percentile; and the memory of all processes at the end.  Programs that are not installed
are left out.
"""

import os
import random
import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import serving_client as client
import serving_servers as servers
from common import corpus_parser, messages_of, ratio, train

from serving import free_port  # type: ignore[import-not-found]

_AT_ONCE = 64
_ALONE = 1000  # messages that one client asks about
_FEW = 300  # messages for slow servers
_WORKERS = 2  # of each server


@dataclass
class Subject:
    """A server in one protocol, and what is measured of it."""

    name: str
    server: servers.Server
    calls: list[client.Call]
    beside: "Subject | None" = None  # the one that it is compared with; None: itself
    rates: list[float] = field(default_factory=list)  # messages a second
    costs: list[float] = field(default_factory=list)  # processor ms a message, of the server
    own: list[float] = field(default_factory=list)  # of the client
    took: list[float] = field(default_factory=list)  # milliseconds, one at a time

    def measure(self) -> None:
        """Ask about all messages, many at once, and then about some, one at a time."""
        before, own = self.server.processor_seconds(), time.process_time()
        start = time.perf_counter()
        n = len(client.load(self.calls, _AT_ONCE))
        self.rates.append(n / (time.perf_counter() - start))
        self.own.append(1000 * (time.process_time() - own) / n)
        self.costs.append(1000 * (self.server.processor_seconds() - before) / n)
        self.took += [1000 * seconds for seconds in client.load(self.calls[:_ALONE], 1)]

    def line(self) -> str:
        """Return the line of the table."""
        beside = self.beside or self
        rates, costs = ratio(self.rates, beside.rates), ratio(self.costs, beside.costs)
        middle, high = (np.quantile(self.took, q) for q in (0.5, 0.99))
        return (
            f"{self.name:30}{len(self.calls):6,}{median(self.rates):8,.0f}{rates:7.3f}"
            f"{median(self.costs):8.3f}{costs:8.2f}{median(self.own):8.3f}{middle:8.2f}{high:8.2f}"
            f"{self.server.megabytes():5.0f}"
        )


HEADER = (
    f"{'':30}{'mails':>6}{'a s':>8}{'ratio':>7}{'cpu ms':>8}{'ratio':>8}{'client':>8}"
    f"{'median':>8}{'99 %':>8}{'MB':>5}"
)


def subjects(
    corpus: Path, is_alone: bool, messages: list[bytes], work: Path, stack: ExitStack
) -> list[Subject]:
    """Start all servers, which have learned the corpus; return nbspam in two protocols first.

    work: a folder for all that they write.
    """
    model, path, http = work / "m.nbspam", str(work / "nbspam.sock"), free_port()
    train(corpus, model)
    addresses = ["--spamd", path, "--http", str(http)]
    nbspam = stack.enter_context(servers.nbspam(work / "nbspam", model, _WORKERS, *addresses))
    calls = client.verdicts(messages, path, client.spamd)
    by_http = client.verdicts(messages, http, client.http)
    found = [Subject("nbspam, spamd", nbspam, calls), Subject("nbspam, HTTP", nbspam, by_http)]

    def add(server: servers.Server, name: str, address: client.Address, beside: Subject) -> None:
        calls = client.verdicts(messages[:_FEW], address, beside.calls[0].talk)
        found.append(Subject(name, server, calls, beside))

    if not is_alone and shutil.which("spamd"):
        path = str(work / "spamassassin.sock")
        started = servers.spamassassin(work / "spamassassin", corpus, _WORKERS, path)
        add(stack.enter_context(started), "spamd -L, Bayes", path, found[0])
    if not is_alone and shutil.which("rspamd") and shutil.which("redis-server"):
        port = free_port()
        started = servers.rspamd(work / "rspamd", corpus, _WORKERS, port)
        add(stack.enter_context(started), "rspamd, Bayes in Redis", port, found[1])
    return found


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    before = os.getloadavg()
    messages = messages_of(options.corpus)
    random.Random(0).shuffle(messages)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.chmod(work, 0o755)  # for a spamd that must not be root
        measured = subjects(options.corpus, options.alone, messages, work, stack)
        for each in measured:
            client.load(each.calls[:200], _AT_ONCE)  # what is read once, and filled once
        for _ in range(options.rounds):
            for each in measured:
                each.measure()
        print(
            f"{options.corpus}: {len(messages):,} messages, {_AT_ONCE} at once; {os.cpu_count()}"
            f" cores, {_WORKERS} workers, {options.rounds} rounds; load average"
            f" {before[0]:.2f} before, {os.getloadavg()[0]:.2f} at the end\n\n{HEADER}"
        )
        for each in measured:
            print(each.line())


if __name__ == "__main__":
    main()
