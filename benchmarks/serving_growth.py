"""Ask `nbspam serve` about a million messages; tell whether its processes grow.

usage: python benchmarks/serving_growth.py CORPUS [--messages 1000000] [--bound 20] [--seed 18]

CORPUS is a folder with ham/ and spam/, whose model is served with --users.  Half of the messages
are those of the corpus again and again, half are made of words that no other message has, from
100 bytes to 1 MB.  A quarter are of 2,000 users, a fifth of whom teach their own models: one
message in 500 is a lesson.  They come in all three protocols, 64 at once, each over a connection
of its own.  A hundred times in all another process teaches the model.

After every tenth of the messages a line tells the memory of each worker in MB, its own (Uss) and
with what it shares (Rss), its open files and its threads.  Caches fill at first: the exit status
is 1 if after the first fifth a worker's own memory grows by more than the bound, or its open files
or threads by more than 8.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import serving_client as client
import serving_servers as servers
from speed import NBSPAM

_AT_ONCE = 64
_LESSONS = 1 / 500
_USERS = 2000
_TEACHERS = 400  # of the users
_MORE = 8  # open files or threads, by which a worker may grow
# Letters for random bytes: one in eight is a space, one in 64 ends a line.
_LETTERS = bytes(10 if n % 64 == 63 else 32 if n % 8 == 7 else 97 + n % 26 for n in range(256))


class State(NamedTuple):
    """What a worker holds; memory in MB."""

    own: float
    resident: float
    files: int
    threads: int

    def __str__(self) -> str:
        return f"{self.own:7.1f} {self.resident:7.1f} {self.files:4} {self.threads:3}"


class Mail:
    """An endless stream of calls."""

    def __init__(self, messages: list[bytes], seed: int, path: str, ports: list[int]) -> None:
        self.messages, self.rng = messages, random.Random(seed)
        self.path, self.ports = path, ports

    def __iter__(self) -> Iterator[client.Call]:
        while True:
            yield self.lesson() if self.rng.random() < _LESSONS else self.question()

    def message(self) -> bytes:
        """Return a message of the corpus, or a new one."""
        rng = self.rng
        if rng.random() < 0.5:
            return rng.choice(self.messages)
        size = min(int(100 + rng.lognormvariate(7.5, 1.2)), 1_000_000)
        words = rng.randbytes(size).translate(_LETTERS)
        return b"Message-Id: <%x>\nSubject: %s\n\n%s" % (rng.getrandbits(64), words[:40], words)

    def question(self) -> client.Call:
        """Return a call that asks for a verdict."""
        rng, data = self.rng, self.message()
        user = f"user{rng.randrange(_USERS)}@example.org" if rng.random() < 0.25 else ""
        kind = rng.random()
        if kind < 0.5:
            command = rng.choice(("CHECK", "SYMBOLS", "REPORT", "PROCESS"))
            head = f"User: {user}\r\n" if user else ""
            return client.Call(self.path, client.spamd, client.spamd_request(data, command, head))
        if kind < 0.75:
            head = f"Deliver-To: {user}\r\n" if user else ""
            return client.Call(
                self.ports[0], client.http, client.http_request(data, "/checkv2", head)
            )
        return client.Call(
            self.ports[1], client.milter, client.milter_request(data, user or "all@example.org")
        )

    def lesson(self) -> client.Call:
        """Return a call by which a user teaches."""
        rng = self.rng
        user = f"User: user{rng.randrange(_TEACHERS)}@example.org\r\n"
        label = rng.choice(("ham", "spam"))
        more = f"{user}Message-class: {label}\r\nSet: local\r\n"
        return client.Call(
            self.path, client.spamd, client.spamd_request(self.message(), "TELL", more)
        )


def teach(model: Path, message: bytes) -> None:
    """Let another process teach the model."""
    command = [*NBSPAM, "update", "-q", "-m", str(model), "--spam", "-"]
    subprocess.run(command, input=message, check=True)


def state(pid: int) -> State:
    """Return what a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    threads = int(status.partition("Threads:")[2].split()[0])
    files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    own, resident = (servers.megabytes(pid, kind) for kind in ("Private_", "Rss:"))
    return State(own, resident, files, threads)


def growth(states: list[State]) -> State:
    """Return by how much a worker has grown since the first fifth."""
    settled, last = states[len(states) // 5], states[-1]
    return State._make(b - a for a, b in zip(settled, last, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--messages", type=int, default=1_000_000, help="[default: 1000000]")
    parser.add_argument("--bound", type=float, default=20, help="MB  [default: 20]")
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args()
    files = [path for label in ("ham", "spam") for path in (options.corpus / label).iterdir()]
    messages = [path.read_bytes() for path in sorted(files)]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        model, path, ports = work / "m.nbspam", f"{work}/spamd", servers.free_ports(2)
        subprocess.run(
            [*NBSPAM, "train", "-m", str(model), str(options.corpus)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        words = ["--spamd", path, "--http", str(ports[0]), "--milter", str(ports[1])]
        words += ["--users", str(work / "users"), "--allow-tell"]
        with servers.nbspam(work / "nbspam", model, 2, *words) as server:
            stream = Mail(messages, options.seed, path, ports)
            mail = iter(stream)
            pids = server.workers
            states: list[list[State]] = [[state(pid)] for pid in pids]
            print(f"{'messages':>9} {'a s':>6}" + 2 * "     Uss     Rss  fds thr", flush=True)
            for tenth in range(1, 11):
                start, n = time.perf_counter(), 0
                for _ in range(10):
                    n += len(client.load(islice(mail, options.messages // 100), _AT_ONCE))
                    teach(model, stream.message())
                rate = n / (time.perf_counter() - start)
                for pid, found in zip(pids, states, strict=True):
                    found.append(state(pid))
                shown = " ".join(str(found[-1]) for found in states)
                print(f"{tenth * n:9,} {rate:6,.0f} {shown}", flush=True)
            lines = (work / "nbspam" / "said").read_text().splitlines(keepends=True)
    said = "".join(line for line in lines if not line.startswith("nbspam serve: "))
    grown = [growth(found) for found in states]
    print("grown:", "; ".join(map(str, grown)), "; said:", said or "nothing")
    holds = all(
        each.own <= options.bound and max(each.files, each.threads) <= _MORE for each in grown
    )
    sys.exit(0 if holds and not said else 1)


if __name__ == "__main__":
    main()
