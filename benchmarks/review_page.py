"""Look at mailboxes through the page of `nbspam serve --review`; print times and sizes.

usage: python benchmarks/review_page.py MAIL MODEL [--sizes 1000 10000] [--rounds 10]

MAIL is a folder with ham/ and spam/, MODEL a model of mail.  Each mailbox has so many of the
messages, in turn, as a Maildir and as an mbox.  Times are medians, in milliseconds, on the
machine's clock, of a client without a browser; while messages get their verdicts, spamd's clients
ask about others one at a time.
"""

import argparse
import asyncio
import os
import re
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlencode

from serving_trial import SPAMD, Server, Trial, ask, request

from nbspam.sources.items import read_items


class Visitor:
    """Somebody who is logged in to the page."""

    def __init__(self, url: str) -> None:
        _, port, token = re.split(r"http://127\.0\.0\.1:|(?=/\?token)", url)
        self.wire = HTTPConnection("127.0.0.1", int(port), timeout=600)
        self.port, self.cookie, self.form = port, "", ""
        self.get(token.strip())

    def get(self, path: str) -> str:
        """Return a page."""
        return self._ask("GET", path, {})

    def tell(self, **fields: str) -> None:
        """Teach, or take back."""
        self._ask("POST", "/tell", {"form": self.form, **fields})

    def _ask(self, method: str, path: str, fields: Mapping[str, str]) -> str:
        head = {"Cookie": self.cookie, "Origin": f"http://127.0.0.1:{self.port}"}
        self.wire.request(method, path, urlencode(fields), head)
        found = self.wire.getresponse()
        text = found.read().decode()
        assert found.status in (200, 303), (found.status, text[:200])
        if cookie := found.getheader("Set-Cookie"):
            self.cookie = cookie.partition(";")[0]
        if form := re.search(r'name="form" value="([^"]+)"', text):
            self.form = form[1]
        return text


def maildir(path: Path, messages: list[bytes]) -> None:
    """Make a Maildir."""
    for part in ("cur", "new", "tmp"):
        (path / part).mkdir(parents=True)
    for number, data in enumerate(messages):
        file = path / "new" / f"{number}.M1.host"
        file.write_bytes(data)
        os.utime(file, (1.7e9 + number, 1.7e9 + number))


def mbox(path: Path, messages: list[bytes]) -> None:
    """Make an mbox."""
    with open(path, "wb") as file:
        for data in messages:
            body = re.sub(rb"^(>*From )", rb">\1", data, flags=re.MULTILINE)
            file.write(b"From x Thu Jan  1 00:00:00 1970\n" + body + b"\n\n")


def timed(rounds: int, call: Callable[[int], object]) -> float:
    """Return the median of what a call takes, milliseconds."""
    took = []
    for number in range(rounds):
        start = time.perf_counter()
        call(number)
        took.append(time.perf_counter() - start)
    return 1000 * statistics.median(took)


def asking(trial: Trial, server: Server, seconds: float) -> list[float]:
    """Return what spamd's clients wait, one after the other, sorted, milliseconds."""
    took, end = [], time.monotonic() + seconds
    for data in cycle(trial.messages[:500]):
        start = time.perf_counter()
        asyncio.run(ask(server.paths[SPAMD], request(data)))
        took.append(1000 * (time.perf_counter() - start))
        if time.monotonic() > end:
            return sorted(took)
    return took


def waiting(text: str) -> int:
    """Return how many messages have no verdict yet."""
    found = re.search(r'"guess">([\d,]+) messages have no verdict', text)
    return int(found[1].replace(",", "")) if found else 0


def visit(trial: Trial, box: Path, size: int, rounds: int) -> None:
    """Print what a mailbox costs."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with trial.server("--web", str(port), "--review", str(box)) as server:
        errors = (server.folder / "errors").read_text()
        visitor = Visitor(errors.splitlines()[0])
        quiet = asking(trial, server, 2)
        start = time.perf_counter()
        text = visitor.get("/")
        first, left = 1000 * (time.perf_counter() - start), waiting(text)
        busy = asking(trial, server, 2) if left else quiet
        while waiting(visitor.get("/")):
            time.sleep(0.5)
        whole = time.perf_counter() - start
        text = visitor.get("/")
        keys = re.findall(r'name="spam" value="([^"]+)"', text)
        costs = (
            timed(rounds, lambda n: visitor.get("/")),
            len(text) / 1024,
            timed(rounds, lambda n: visitor.get("/?words=zzz")),
            timed(rounds, lambda n: visitor.get("/message?" + urlencode({"key": keys[n]}))),
            timed(rounds, lambda n: visitor.tell(spam=keys[n])),
            timed(rounds, lambda n: visitor.tell(undo=str(rounds - n))),
        )
        waits = (statistics.median(quiet), statistics.median(busy), last(quiet), last(busy))
        notes = (server.folder / "m.nbspam.review").stat().st_size / 1024
        kind = "Maildir" if box.is_dir() else "mbox"
        print(
            f"{size:>6,} {kind:<7}{first:>6.0f}{left:>7,}{whole:>6.1f}"
            + "".join(f"{cost:>7.0f}" for cost in costs)
            + "".join(f"{each:>6.1f}" for each in waits)
            + f"{server.megabytes():>6.0f}{notes:>7,.0f}"
        )


def last(took: list[float]) -> float:
    """Return what 99 of a hundred do not wait longer than."""
    return took[int(0.99 * len(took))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mail")
    parser.add_argument("model", type=Path)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000])
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    messages = [item.read() for item in read_items([arguments.mail])]
    trial = Trial(messages[:500], arguments.model, 0)
    print(f"{'':<14}{'first':>6}{'still':>7}{'all':>6}{'milliseconds':>43}", end="")
    print(f"{'CHECK, ms: median, 99 %':>25}")
    print(
        f"{'messages':<14}{'ms':>6}{'wait':>7}{'s':>6}{'list':>7}{'KB':>7}{'search':>7}{'one':>7}"
        f"{'tell':>7}{'undo':>7}{'quiet':>6}{'busy':>6}{'quiet':>6}{'busy':>6}{'MB':>6}{'KB':>7}"
    )
    for size in arguments.sizes:
        some = list(islice(cycle(messages), size))
        for make in (maildir, mbox):
            with tempfile.TemporaryDirectory() as name:
                box = Path(name) / "box"
                make(box, some)
                visit(trial, box, size, arguments.rounds)


if __name__ == "__main__":
    main()
