"""Measure servers that share their lessons: how fast and how large.

usage: python benchmarks/sharing.py [CORPUS] [--log redis] [--lessons 3000]
           [--small] [--only clients|hosts]

Printed are

- of three servers on loopback: after how long a lesson that the first was told by a client is on
  the second's disk; how many lessons a second 1, 8 and 64 clients at once teach a server that
  shares, by spamd's protocol and by rspamd's, and one that does not; and what a lesson costs in
  processor time;
- of three hosts that each learn a third of the lessons: lessons a second of processor time, the
  bytes of a lesson, and whether exports are equal.  --small: messages of twenty tokens.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from statistics import median, quantiles

import serving_client as client
import serving_servers as servers
from common import corpus_parser, train

from nbspam.sharing.logs import open_log
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from serving import Served, serving, until  # type: ignore[import-not-found]
from shared_logs import DAY, SERVERS, Host, message  # type: ignore[import-not-found]

_LAGS = 100  # lessons, one after another
_TOLD = {1: 50, 8: 200, 64: 800}  # lessons, by clients at once
_PASSWORD = "teach"  # of clients of rspamd's protocol
_BATCH = 1000  # lessons that a host learns between two looks at the log


def of_clients(folder: Path, url: str, corpus: Path) -> None:
    """Print the lag of lessons, and lessons a second with and without a log."""
    folders = [folder / f"server{k}" for k in range(4)]
    train(corpus, folder / "base")  # so large that not every lesson fits it
    for each in folders:
        each.mkdir()
        shutil.copy(folder / "base", each / "model")
    models = [str(each / "model") for each in folders]
    (folder / "password").write_text(_PASSWORD)
    options = ["--allow-tell", "-j", "1", "--log", "none"]
    options += ["--password-file", str(folder / "password")]
    shares = [*options, "--share", url]
    with (
        serving(models[0], folders[0], *shares) as first,
        serving(models[1], folders[1], *shares),
        serving(models[2], folders[2], *shares),
        serving(models[3], folders[3], *options) as alone,
    ):
        other, found = StoredModel(models[1]), []
        until(lambda: first.metrics().get("nbspam_share_connected"))
        for n in range(_LAGS):
            data, start = message(n), time.perf_counter()
            first.ask(client.lesson(data, "spam"))
            while other.filed(data).label is None:
                time.sleep(0.001)
                other.catch_up()
            found.append(1000 * (time.perf_counter() - start))
        middle, ninety = (quantiles(found, n=10)[k] for k in (4, 8))
        print(f"lag of {_LAGS} lessons: median {middle:.0f} ms,", end=" ")
        print(f"90 % within {ninety:.0f} ms, at most {max(found):.0f} ms")
        numbers = count(10**6)
        # That of a process which has fitted the model is in the supervisor's time.
        pids = {each: [each.process.pid, *each.pids] for each in (first, alone)}
        for at_once, n in _TOLD.items():
            rates: dict[str, list[tuple[float, float]]] = {}
            for _ in range(3):
                for name, server, is_http in (
                    ("spamd", first, False),
                    ("http", first, True),
                    ("without a log", alone, False),
                ):
                    calls = lessons(server, numbers, n, is_http)
                    rates.setdefault(name, []).append(taught(pids[server], calls, at_once))
            for name, found_rates in rates.items():
                rate, cost = map(median, zip(*found_rates, strict=True))
                print(f"{at_once} clients at once, {name}: {rate:,.0f} lessons a second,", end="")
                print(f" {cost:.2f} ms of processor time each")


def lessons(server: Served, numbers: Iterator[int], n: int, is_http: bool) -> list[client.Call]:
    """Return lessons as rspamc learn_spam and learn_ham send them, or as spamc -L does."""
    calls = []
    for k in islice(numbers, n):
        label, data = ("ham", "spam")[k % 2], message(k)
        if is_http:
            request = client.http_request(data, f"/learn{label}", f"Password: {_PASSWORD}\r\n")
            calls.append(client.Call(server.http, client.http, request))
        else:
            calls.append(client.Call(server.spamd, client.spamd, client.lesson(data, label)))
    return calls


def taught(pids: list[int], calls: list[client.Call], at_once: int) -> tuple[float, float]:
    """Return lessons a second, and milliseconds of a server's processor time a lesson."""
    before, start = sum(map(servers.processor_seconds, pids)), time.perf_counter()
    client.load(calls, at_once)
    seconds = time.perf_counter() - start
    cost = sum(map(servers.processor_seconds, pids)) - before
    return len(calls) / seconds, 1000 * cost / len(calls)


@contextmanager
def timed(seconds: list[float], place: int) -> Iterator[None]:
    """Add the processor time of a block."""
    start = time.process_time()
    yield
    seconds[place] += time.process_time() - start


def of_hosts(folder: Path, url: str, items: list[Item]) -> None:
    """Print lessons a second of processor time of three hosts."""
    hosts = [Host(folder / f"host{k}", "model", open_log(url)) for k in range(3)]
    seconds, size, n_read, third = [0.0, 0.0, 0.0], 0, 0, -(-len(items) // 3)
    for start in range(0, third, _BATCH):
        for k, host in enumerate(hosts):
            some = items[k * third : (k + 1) * third][start : start + _BATCH]
            with timed(seconds, 0):
                host.model.learn(some, day=DAY, classes=["ham", "spam"])
            size += sum(len(each.lesson) for each in host.outlet.outbox.unsent(_BATCH))
            with timed(seconds, 1):
                while host.sharer.send():
                    pass
            with timed(seconds, 2):
                while found := host.sharer.receive():
                    n_read += found
    for host in hosts:
        host.sharer.exchange()
    exports = {host.export() for host in hosts}
    for host in hosts:
        host.stop()
        host.log.close()
    n, (learned, sent, read) = len(items), seconds
    equal = "exports equal" if len(exports) == 1 else "EXPORTS DIFFER"
    print(f"{n:,} lessons of {size / n:,.0f} bytes, a third by each of three hosts: {equal};")
    print(f"a second of processor time: learned and kept for the log {n / learned:,.0f},", end=" ")
    print(f"sent {n / sent:,.0f}, read and learned {n_read / read:,.0f}")


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--log", choices=SERVERS, default="redis")
    parser.add_argument("--lessons", type=int, default=3000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", choices=["clients", "hosts"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = SERVERS[options.log](folder / "log")
        try:
            if options.only != "hosts":
                of_clients(folder, log.url, options.corpus)
            if options.only != "clients":
                small = (Item("-", ("ham", "spam")[k % 2], message(k)) for k in count())
                items = small if options.small else read_items([str(options.corpus)])
                some = list(islice(items, options.lessons))
                of_hosts(folder, log.url.replace("lessons", "more"), some)
        finally:
            log.stop()
            log.remove()


if __name__ == "__main__":
    main()
