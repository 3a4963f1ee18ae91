"""What the benchmarks of faults share: a server that runs, its load, and what answers are right.

Not a program; serving_faults.py and serving_crashes.py are.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from nbspam.cli.main import exit_status
from nbspam.mail.verdict_headers import score_of
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel

SPAMD, HTTP, MILTER = "spamd", "http", "milter"


class Server:
    """A server that runs; addresses are paths, but for HTTP, which has a port."""

    def __init__(self, folder: Path, model: Path, *options: str) -> None:
        self.folder = folder
        self.paths = {name: str(folder / name) for name in (SPAMD, HTTP, MILTER)}
        words = [
            "serve",
            "-m",
            str(model),
            "--jobs",
            "2",
            "--log",
            "none",
            "--allow-tell",
            *options,
        ]
        for name, path in self.paths.items():
            words += [f"--{name}", path]
        # Forked, as a new Python would need a second for its imports.
        self.process = get_context("fork").Process(target=self.run, args=(words,))
        self.process.start()
        while not self.is_up():
            assert self.process.exitcode is None, (folder / "errors").read_text()
            time.sleep(0.02)

    def run(self, words: list[str]) -> None:
        """Be the server's process."""
        with open(self.folder / "errors", "ab") as errors:
            os.dup2(errors.fileno(), 2)
        sys.exit(exit_status(words))

    def is_up(self) -> bool:
        """Return whether all sockets are there, and a worker answers."""
        try:
            return asyncio.run(ask(self.paths[SPAMD], b"PING SPAMC/1.2\r\n")) != b""
        except OSError:
            return False

    @property
    def workers(self) -> list[int]:
        """The worker processes."""
        pid = self.process.pid or 0
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    def megabytes(self) -> float:
        """Return the memory of all workers, counting what they share once a worker."""
        lines = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.workers]
        found = [line.split()[1] for text in lines for line in text.splitlines() if "Pss:" in line]
        return sum(map(int, found)) / 1024

    def metric(self, name: str) -> float:
        """Return a metric, by its name with labels."""
        text = asyncio.run(ask(self.paths[HTTP], b"GET /metrics HTTP/1.0\r\n\r\n")).decode()
        lines = (line.rpartition(" ") for line in text.splitlines())
        return next(float(value) for found, _, value in lines if found == name)

    def end(self) -> None:
        """End it as its owner would."""
        self.process.terminate()
        self.process.join(90)
        assert self.process.exitcode == 0


async def ask(path: str, data: bytes, seconds: float = 60) -> bytes:
    """Return the answer to a request, as far as it comes before the connection ends."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(data)
        with_eof = not data.startswith((b"POST", b"GET"))
        if with_eof:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), seconds)
    except (ConnectionError, BrokenPipeError):
        return b""
    finally:
        writer.close()


def request(data: bytes, command: str = "CHECK", more: str = "") -> bytes:
    """Return a request of spamd's protocol."""
    return f"{command} SPAMC/1.5\r\n{more}Content-length: {len(data)}\r\n\r\n".encode() + data


def expected(path: Path, messages: list[bytes]) -> list[bytes]:
    """Return what spamd's CHECK answers for each message, by the model in this process."""
    classifier = StoredModel(str(path)).classifier()
    rule = classifier.rule
    verdicts = classifier.classify([Item("-", None, each) for each in messages], rule=rule)
    return [
        f"SPAMD/1.1 0 EX_OK\r\nSpam: {verdict.label == 'spam'} ;"  # type: ignore[union-attr]
        f" {score_of(verdict, rule):.1f} / 5.0\r\n\r\n".encode()  # type: ignore[arg-type]
        for verdict in verdicts
    ]


class Trial:
    """What all faults need: a place, messages, a model and its answers."""

    def __init__(self, messages: list[bytes], model: Path, seed: int) -> None:
        self.messages = messages
        self.model = model
        self.answers = expected(model, messages)
        self.rng = random.Random(seed)

    @contextmanager
    def server(self, *options: str) -> Iterator[Server]:
        """Run a server with a copy of the model until the block ends."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(self.model, folder / "m.nbspam")
            found = Server(folder, folder / "m.nbspam", *options)
            try:
                yield found
                found.end()
            finally:
                found.process.kill()

    async def load(
        self, path: str, until: Callable[[], bool], answers: list[list[bytes]], at_once: int = 16
    ) -> Counter[str]:
        """Ask about all messages again and again; return how many answers were right, and so on.

        answers: the right ones of every model that there may be.
        """
        found: Counter[str] = Counter()
        numbers = iter(range(1 << 60))

        async def client() -> None:
            for number in numbers:
                if until():
                    return
                n = number % len(self.messages)
                try:
                    answer = await ask(path, request(self.messages[n]))
                except OSError:
                    answer = b""
                found[kind_of(answer, [each[n] for each in answers])] += 1

        await asyncio.gather(*(client() for _ in range(at_once)))
        return found


def kind_of(answer: bytes, right: list[bytes]) -> str:
    """Return what an answer is."""
    if answer in right:
        return "right"
    if answer == b"":
        return "closed"
    return "error" if answer.startswith(b"SPAMD/1.0 ") else "WRONG"


async def work_some(trial: Trial, server: Server) -> Counter[str]:
    """Ask for two seconds."""
    end = time.monotonic() + 2
    return await trial.load(server.paths[SPAMD], lambda: time.monotonic() > end, [trial.answers])


def parser_of(text: str) -> argparse.ArgumentParser:
    """Return a parser of what all faults need; text: the program's own."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("mail")
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--asyncio", action="store_true", help="serve without uvloop")
    return parser


def trial_of(options: argparse.Namespace) -> Trial:
    """Return the trial that options ask for."""
    if options.asyncio:
        sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed
    messages = [item.read() for item in read_items([options.mail])]
    random.Random(1).shuffle(messages)
    return Trial(messages[: options.messages], options.model, options.seed)


def run(faults: Mapping[str, Callable[[], str]], only: list[str] | None) -> None:
    """Print a line for each fault."""
    for fault in only or faults:
        print(faults[fault](), flush=True)
