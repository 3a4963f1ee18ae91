"""How fast lessons reach other servers.

usage: PYTHONPATH=tests python tests/stress/sharing.py [redis|postgresql] [N] [FOLDER]

Three servers on this machine share a log on loopback.  Lag: from a client's lesson at the first
one, before it is sent, until the model of the second has it on disk.  Rate: one host's N lessons
in one command, sent, read and learned by another host; the mail of FOLDER, with ham/ and spam/,
instead of small messages.
"""

import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import quantiles

from nbspam.sharing.logs import open_log
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel
from serving import serving, until
from shared_logs import DAY, SERVERS, Host, message

_LESSONS = 100  # one after another, for the lag


def tell(server, data, label):
    """Teach a server by spamd's protocol."""
    head = f"TELL SPAMC/1.5\r\nMessage-class: {label}\r\nSet: local\r\n"
    server.ask(f"{head}Content-length: {len(data)}\r\n\r\n".encode() + data)


def lags(folder, url):
    """Return the seconds after which a lesson is known to another server."""
    folders = [folder / f"server{k}" for k in range(3)]
    for each in folders:
        each.mkdir()
    models = [str(each / "model") for each in folders]
    options = ["--share", url, "--allow-tell", "-j", "1", "--log", "none"]
    found = []
    with (
        serving(models[0], folders[0], *options) as first,
        serving(models[1], folders[1], *options),
        serving(models[2], folders[2], *options) as third,
    ):
        tell(third, message(10**6), "ham")
        until(lambda: Path(models[1]).exists())
        other = StoredModel(models[1])
        for n in range(_LESSONS):
            data, start = message(n), time.perf_counter()
            tell(first, data, "spam")
            while other.filed_now(data).label is None:
                time.sleep(0.001)
            found.append(time.perf_counter() - start)
    return found


def lessons(n, mail):
    """Return n items: those of a folder, or else small ones."""
    if mail:
        return list(islice(read_items([mail]), n))
    return [Item("-", "spam" if k % 2 else "ham", message(k)) for k in range(n)]


def rates(folder, url, items):
    """Return lessons a second: learned and put into the outbox, sent, and learned elsewhere."""
    hosts = [Host(folder / f"host{k}", "model", open_log(url)) for k in range(2)]
    seconds = []

    def timed(work):
        start = time.perf_counter()
        while work():
            pass
        seconds.append(len(items) / (time.perf_counter() - start))

    timed(lambda: hosts[0].model.learn(items, day=DAY, classes=["ham", "spam"]) and False)
    waiting = hosts[0].outlet.outbox.unsent(len(items))
    size = sum(len(each.lesson) for each in waiting) / max(len(waiting), 1)
    timed(hosts[0].sharer.send)
    timed(hosts[1].sharer.receive)
    timed(hosts[0].sharer.receive)
    assert hosts[0].export() == hosts[1].export()
    for host in hosts:
        host.stop()
    return [size, *seconds]


def main():
    """Print lag and rate."""
    kind, n, mail = (*sys.argv[1:], *["redis", "5000", ""][len(sys.argv) - 1 :])[:3]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = SERVERS[kind](folder / "log")
        try:
            found = sorted(lags(folder, server.url))
        finally:
            server.stop()
            server.remove()
        middle, ninety = (1000 * quantiles(found, n=10)[k] for k in (4, 8))
        print(f"{kind}: lag of {len(found)} lessons: median {middle:.0f} ms,", end=" ")
        print(f"90 % within {ninety:.0f} ms, at most {1000 * found[-1]:.0f} ms")
        server = SERVERS[kind](folder / "log2")
        try:
            items = lessons(int(n), mail)
            size, learned, sent, read, back = rates(folder, server.url, items)
        finally:
            server.stop()
            server.remove()
    print(f"{kind}: {len(items)} lessons of {size:,.0f} bytes; exports equal; a second:", end=" ")
    print(f"learned and kept for the log {learned:,.0f}, sent {sent:,.0f},", end=" ")
    print(f"learned by another host {read:,.0f}, read back {back:,.0f}")


if __name__ == "__main__":
    main()
