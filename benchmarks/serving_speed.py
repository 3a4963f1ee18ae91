"""Measure `nbspam serve` beside SpamAssassin's spamd and rspamd: speed, latency and memory.

usage: python benchmarks/serving_speed.py [CORPUS] [--rounds 3] [--messages N] [--few 300]
           [--workers 2] [--alone]

CORPUS is a folder with ham/ and spam/, one message per file; all servers were taught all of it,
and are asked about it in one random order, each message over a connection of its own.  They run
on this machine beside the client, with two workers each.  nbspam speaks the protocols of both
others, and milter, where a message is the whole conversation of a mail system.  In every round
each server is asked by 64 clients at once, and then by one; the slow ones about fewer messages.

Printed are medians of the rounds: messages a second and the server's processor time a message
(of all its processes), with their ratios to nbspam in the same protocol, the median of the ratios
within each round; the client's own processor time; of all answers to one client the median and
the 99th percentile; memory in MB at the end, that each process has for itself (Uss), and that of
all with what they share (Pss).  Programs that are not installed are left out.
"""

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
import serving_client as client
import serving_servers as servers
from speed import NBSPAM, corpus_parser

_AT_ONCE = 64
_ALONE = 1000  # messages that one client asks about


class Subject:
    """A server in one protocol; records what is measured of it.

    beside: the one that it is compared with.
    """

    def __init__(
        self,
        name: str,
        server: servers.Server,
        calls: list[client.Call],
        beside: "Subject | None" = None,
    ) -> None:
        self.name, self.server, self.calls = name, server, calls
        self.beside = beside or self
        self.rates: list[float] = []  # messages a second
        self.costs: list[float] = []  # processor milliseconds a message, of the server
        self.own: list[float] = []  # of the client
        self.took: list[float] = []  # milliseconds, one at a time

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
        rates = ratio(self.rates, self.beside.rates)
        costs = ratio(self.costs, self.beside.costs)
        middle, high = (np.quantile(self.took, q) for q in (0.5, 0.99))
        memory = self.server.memory()
        workers = " ".join(f"{each:.0f}" for each in memory.workers)
        return (
            f"{self.name:30}{len(self.calls):6,}{median(self.rates):8,.0f}{rates:7.3f}"
            f"{median(self.costs):8.3f}{costs:8.2f}{median(self.own):8.3f}{middle:8.2f}{high:8.2f}"
            f"{memory.parent:7.0f}  {workers:14}{memory.total:5.0f}"
        )


HEADER = (
    f"{'':30}{'mails':>6}{'a s':>8}{'ratio':>7}{'cpu ms':>8}{'ratio':>8}{'client':>8}"
    f"{'median':>8}{'99 %':>8}{'parent':>7}  {'workers':14}{'all':>5}"
)


def ratio(ours: list[float], others: list[float]) -> float:
    """Return the median of the ratios within each round."""
    return median(a / b for a, b in zip(ours, others, strict=True))


def calls_of(
    messages: list[bytes],
    request: Callable[[bytes], bytes],
    address: client.Address,
    talk: client.Protocol,
) -> list[client.Call]:
    """Return a call for each message."""
    return [client.Call(address, talk, request(data)) for data in messages]


@contextmanager
def subjects(
    corpus: Path, messages: list[bytes], few: int, workers: int, alone: bool
) -> Iterator[list[Subject]]:
    """Run all servers until the block ends."""
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.chmod(work, 0o755)  # for a spamd that must not be root
        model, path = work / "m.nbspam", str(work / "spamd.sock")
        subprocess.run(
            [*NBSPAM, "train", "-m", str(model), str(corpus)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        ports = servers.free_ports(3)
        options = ["--spamd", path, "--http", str(ports[0]), "--milter", str(ports[1])]
        ours = stack.enter_context(servers.nbspam(work / "nbspam", model, workers, *options))
        by_spamd = Subject(
            "nbspam, spamd", ours, calls_of(messages, client.spamd_request, path, client.spamd)
        )
        by_http = Subject(
            "nbspam, HTTP", ours, calls_of(messages, client.http_request, ports[0], client.http)
        )
        packets = calls_of(messages, client.milter_request, ports[1], client.milter)
        found = [by_spamd, by_http, Subject("nbspam, milter", ours, packets)]
        if not alone and is_there("spamd", "sa-learn"):
            path = str(work / "spamassassin.sock")
            theirs = servers.spamassassin(work / "sa", corpus, workers, path)
            server = stack.enter_context(theirs)
            calls = calls_of(messages[:few], client.spamd_request, path, client.spamd)
            found.append(Subject("spamd -L, Bayes", server, calls, by_spamd))
        if not alone and is_there("rspamd"):
            theirs = servers.rspamd(work / "rspamd", corpus, workers, ports[2])
            server = stack.enter_context(theirs)
            calls = calls_of(messages[:few], client.http_request, ports[2], client.http)
            found.append(Subject(f"rspamd, {server.taught}", server, calls, by_http))
        yield found


def is_there(*programs: str) -> bool:
    """Return whether programs are installed; tell if one is not."""
    missing = [each for each in programs if not shutil.which(each)]
    if missing:
        print(f"{missing[0]} is not installed: left out")
    return not missing


def load_average() -> str:
    """Return what else the machine does."""
    return " ".join(f"{each:.2f}" for each in os.getloadavg())


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds  [default: 3]")
    parser.add_argument("--messages", type=int, help="ask about so many only")
    parser.add_argument("--few", type=int, default=300, help="so many for slow servers  [300]")
    parser.add_argument("--workers", type=int, default=2, help="of each server  [default: 2]")
    parser.add_argument("--alone", action="store_true", help="nbspam without the others")
    options = parser.parse_args()
    load_before = load_average()
    files = [
        path for name in ("ham", "spam") for path in sorted((options.corpus / name).iterdir())
    ]
    random.Random(0).shuffle(files)
    messages = [path.read_bytes() for path in islice(files, options.messages)]
    with subjects(
        options.corpus, messages, options.few, options.workers, options.alone
    ) as measured:
        for each in measured:
            client.load(each.calls[:200], _AT_ONCE)  # what is read once, and filled once
        for _ in range(options.rounds):
            for each in measured:
                each.measure()
        print(
            f"{options.corpus}: {len(messages):,} messages, {_AT_ONCE} at once; {os.cpu_count()}"
            f" cores, {options.workers} workers, {options.rounds} rounds; load average"
            f" {load_before} before, {load_average()} at the end\n\n{HEADER}"
        )
        for each in measured:
            print(each.line())


if __name__ == "__main__":
    main()
