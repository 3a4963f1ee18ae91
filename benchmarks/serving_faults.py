"""Do to `nbspam serve` what networks, clients, disks and crashes do; print what becomes of it.

usage: python benchmarks/serving_faults.py MAIL MODEL [--only NAME ...] [--fuzzed 100000]
           [--workers 100] [--replaced 1000] [--kills 500] [--seed 18]

MAIL is a folder with ham/ and spam/, MODEL a model of mail.  A server of this machine's nbspam is
started on sockets in a temporary folder, with a copy of MODEL.  Every answer is compared with the
verdict that the model itself gives in this process.
"""

import argparse
import asyncio
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from nbspam.cli.main import exit_status
from nbspam.mail.verdict_headers import score_of
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel

_STALLS = 1000
_FULL = 60_000  # bytes of a file, after which the disk is full
_SPAMD, _HTTP, _MILTER = "spamd", "http", "milter"


class Server:
    """A server that runs; addresses are paths, but for HTTP, which has a port."""

    def __init__(self, folder: Path, model: Path, *options: str) -> None:
        self.folder = folder
        self.paths = {name: str(folder / name) for name in (_SPAMD, _HTTP, _MILTER)}
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
            return asyncio.run(ask(self.paths[_SPAMD], b"PING SPAMC/1.2\r\n")) != b""
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
        text = asyncio.run(ask(self.paths[_HTTP], b"GET /metrics HTTP/1.0\r\n\r\n")).decode()
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


# ---- the faults ----


def stalled(trial: Trial) -> str:
    """Let 1,000 connections stall at every place of a request; ask others meanwhile."""
    cuts = (b"", b"CHECK SPAM", b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\nabc")

    async def work(server: Server) -> tuple[Counter[str], float]:
        path = server.paths[_SPAMD]
        open_ = [await asyncio.open_unix_connection(path) for _ in range(_STALLS)]
        for place, (_, writer) in enumerate(open_):
            writer.write(cuts[place % len(cuts)])
        await asyncio.sleep(1)
        end, start = time.monotonic() + 5, time.perf_counter()
        done = await trial.load(path, lambda: time.monotonic() > end, [trial.answers])
        seconds = time.perf_counter() - start
        for _, writer in open_:
            writer.close()
        return done, done.total() / seconds

    with trial.server() as server:
        before = server.megabytes()
        done, rate = asyncio.run(work(server))
        grown = server.megabytes() - before
        return f"{_STALLS} stalled: others {dict(done)}, {rate:,.0f}/s; memory +{grown:.1f} MB"


def slow(trial: Trial) -> str:
    """Let 100 clients send a byte at a time; ask others meanwhile."""

    async def client(path: str, n: int) -> str:
        reader, writer = await asyncio.open_unix_connection(path)
        for byte in request(trial.messages[n][:300]):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.03)
        answer = await reader.read()
        writer.close()
        return "answered" if answer.startswith(b"SPAMD/1.1 0 EX_OK") else "WRONG"

    async def work(server: Server) -> tuple[Counter[str], Counter[str]]:
        path = server.paths[_SPAMD]
        clients = [asyncio.create_task(client(path, n)) for n in range(100)]
        left = lambda: all(each.done() for each in clients)  # noqa: E731
        done = await trial.load(path, left, [trial.answers], 4)
        return Counter(await asyncio.gather(*clients)), done

    with trial.server() as server:
        ours, others = asyncio.run(work(server))
        return f"100 clients of 30 bytes a second: {dict(ours)}; others {dict(others)}"


def fuzzed(trial: Trial, number: int) -> str:
    """Send requests of each protocol that are cut, mixed and altered."""
    whole = {
        _SPAMD: [request(trial.messages[n], "PROCESS") for n in range(20)],
        _HTTP: [
            b"POST /checkv2 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(trial.messages[n])
            + trial.messages[n]
            for n in range(20)
        ],
        _MILTER: [mail_packets(trial.messages[n]) for n in range(20)],
    }

    async def work(server: Server) -> Counter[str]:
        found: Counter[str] = Counter()
        numbers = iter(range(number * 3))

        async def client() -> None:
            for place in numbers:
                name = (_SPAMD, _HTTP, _MILTER)[place % 3]
                data = altered(trial.rng, trial.rng.choice(whole[name])[:4000])
                reader, writer = await asyncio.open_unix_connection(server.paths[name])
                try:
                    writer.write(data)
                    writer.write_eof()
                    answer = await asyncio.wait_for(reader.read(), 60)
                    found[f"{name} {'answered' if answer else 'closed'}"] += 1
                except ConnectionError:
                    found[f"{name} closed"] += 1
                except TimeoutError:
                    found[f"{name} HANGS"] += 1
                finally:
                    writer.close()

        await asyncio.gather(*(client() for _ in range(32)))
        return found

    with trial.server() as server:
        asyncio.run(work_some(trial, server))
        pids, before = server.workers, server.megabytes()
        found = asyncio.run(work(server))
        assert server.workers == pids, "a worker ended"
        after = asyncio.run(work_some(trial, server))
        grown = server.megabytes() - before
        told = (server.folder / "errors").read_text()
        shown = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
        return (
            f"{number:,} fuzzed of each protocol: {shown}; afterwards {dict(after)}; memory"
            f" +{grown:.1f} MB; {told.count('Traceback') + told.count('could not be judged')}"
            " failures told"
        )


async def work_some(trial: Trial, server: Server) -> Counter[str]:
    """Ask for two seconds."""
    end = time.monotonic() + 2
    return await trial.load(server.paths[_SPAMD], lambda: time.monotonic() > end, [trial.answers])


def mail_packets(message: bytes) -> bytes:
    """Return a message as a mail system sends it to a milter."""

    def packet(command: bytes, data: bytes) -> bytes:
        return (1 + len(data)).to_bytes(4, "big") + command + data

    offer = b"".join(number.to_bytes(4, "big") for number in (6, 0x1FF, 0x1FFFFF))
    subject = packet(b"L", b"Subject\0 cheap pills\0")
    pieces = [packet(b"O", offer), packet(b"M", b"<a@b.example>\0"), subject, packet(b"N", b"")]
    return b"".join([*pieces, packet(b"B", message[:60_000]), packet(b"E", b"")])


def altered(rng: random.Random, data: bytes) -> bytes:
    """Return data with some bytes changed, cut out, doubled, or all after some place gone."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(min(len(found), 300) or 1)
        end = start + rng.randrange(12)
        kind = rng.randrange(5)
        if kind == 0:
            found[start:end] = rng.randbytes(rng.randrange(6))
        elif kind == 1:
            del found[start:end]
        elif kind == 2:
            found[start:start] = found[start:end]
        elif kind == 3:
            found[start:end] = rng.choice((b"\r\n", b"\n\n", b"\0", b"99999999999", b": ", b"-1"))
        else:
            del found[start:]
    return bytes(found)


def killed_workers(trial: Trial, number: int) -> str:
    """Kill workers at random under load: clients get an answer, or a clean close."""
    end: list[float] = []
    kills = 0

    async def killer(server: Server) -> None:
        nonlocal kills
        while kills < number:
            await asyncio.sleep(trial.rng.uniform(0.1, 0.6))
            if workers := server.workers:
                os.kill(trial.rng.choice(workers), signal.SIGKILL)
                kills += 1
        end.append(1)

    async def work(server: Server) -> Counter[str]:
        path = server.paths[_SPAMD]
        load = trial.load(path, lambda: bool(end), [trial.answers])
        return (await asyncio.gather(load, killer(server)))[0]

    with trial.server() as server:
        found = asyncio.run(work(server))
        time.sleep(3)
        after = asyncio.run(work_some(trial, server))
        restarts = server.metric("nbspam_restarts_total")
        return (
            f"{kills} workers killed: {dict(found)}; {restarts:.0f} restarts; then {dict(after)}"
        )


def replaced(trial: Trial, other: Path, number: int) -> str:
    """Replace the model again and again under load: each answer is of one of the two."""
    answers = [trial.answers, expected(other, trial.messages)]
    differ = sum(a != b for a, b in zip(*answers, strict=True))
    swaps = 0

    async def swapper(server: Server) -> None:
        nonlocal swaps
        while swaps < number:
            source = (other, trial.model)[swaps % 2]
            shutil.copy(source, server.folder / "new")
            os.replace(server.folder / "new", server.folder / "m.nbspam")
            swaps += 1
            await asyncio.sleep(0.05)

    async def work(server: Server) -> Counter[str]:
        load = trial.load(server.paths[_SPAMD], lambda: swaps >= number, answers)
        return (await asyncio.gather(load, swapper(server)))[0]

    with trial.server() as server:
        found = asyncio.run(work(server))
        troubles = server.metric('nbspam_troubles_total{kind="model"}')
        return (
            f"model replaced {swaps:,} times ({differ} of {len(trial.messages)} answers differ):"
            f" {dict(found)}; {troubles:.0f} times unreadable"
        )


def full_disk(trial: Trial) -> str:
    """Let the disk be full while the server learns: lessons fail and say so."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(trial.model, folder / "m.nbspam")
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FULL, resource.RLIM_INFINITY))
        # Python ignores SIGXFSZ, so that a write fails as on a full disk.
        server = Server(folder, folder / "m.nbspam")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        try:
            told: Counter[str] = Counter()
            learned = []
            for n in range(3000):
                data = b"Message-Id: <full-%d>\n" % n + lesson_text(trial.rng)
                answer = asyncio.run(ask(server.paths[_SPAMD], lesson(data, "spam")))
                done = b"DidSet: local" in answer
                told["learned" if done else answer.split(b"\r\n")[0].decode()[:24]] += 1
                if done:
                    learned.append(data)
                if told.total() - told["learned"] >= 20:
                    break
            check = asyncio.run(ask(server.paths[_SPAMD], request(trial.messages[0])))
            server.end()
        finally:
            server.process.kill()
        known = count_known(folder / "m.nbspam", learned)
        return (
            f"disk full: {dict(told)}; then CHECK answers"
            f" {check.split(b' ')[1].decode()}; {len(learned) - known} acknowledged lessons lost"
        )


def lesson(data: bytes, label: str) -> bytes:
    """Return a TELL."""
    return request(data, "TELL", f"Message-class: {label}\r\nSet: local\r\n")


def lesson_text(rng: random.Random) -> bytes:
    """Return a message that no other is."""
    return b"Subject: %d\n\nlesson %d\n" % (rng.getrandbits(40), rng.getrandbits(40))


def count_known(path: Path, messages: list[bytes]) -> int:
    """Return how many messages a model knows: how many it can un-learn."""
    items = [Item("-", None, data) for data in messages]
    return StoredModel(str(path)).unlearn(items, day=0).unlearned


def killed_server(trial: Trial, number: int) -> str:
    """Kill the whole server while it learns; count acknowledged lessons that are lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(trial.model, folder / "m.nbspam")
        learned: list[bytes] = []
        found: Counter[str] = Counter()

        async def teach(path: str, until: float) -> None:
            while time.monotonic() < until:
                data = b"Message-Id: <kill-%d>\n" % trial.rng.getrandbits(60)
                data += lesson_text(trial.rng)
                try:
                    answer = await ask(path, lesson(data, "spam"))
                except OSError:
                    return
                found["lessons" if b"DidSet: local" in answer else "unanswered"] += 1
                if b"DidSet: local" in answer:
                    learned.append(data)

        async def work(server: Server) -> None:
            until = time.monotonic() + trial.rng.uniform(0.05, 1.0)

            async def kill() -> None:
                await asyncio.sleep(until - time.monotonic())
                pids = [server.process.pid or 0, *server.workers]
                for pid in trial.rng.sample(pids, len(pids)):
                    os.kill(pid, signal.SIGKILL)

            teachers = (teach(server.paths[_SPAMD], until + 1) for _ in range(4))
            await asyncio.gather(kill(), *teachers)

        for _ in range(number):
            server = Server(folder, folder / "m.nbspam")
            asyncio.run(work(server))
            server.process.join()
        known = count_known(folder / "m.nbspam", learned)
        return (
            f"{number} kills of the whole server: {dict(found)};"
            f" {len(learned) - known} of {len(learned):,} acknowledged lessons lost"
        )


def main() -> None:
    """Run the faults, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mail")
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--fuzzed", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--replaced", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=18)
    options = parser.parse_args()
    messages = [item.read() for item in read_items([options.mail])]
    random.Random(1).shuffle(messages)
    trial = Trial(messages[: options.messages], options.model, options.seed)
    with tempfile.TemporaryDirectory() as name:
        other = Path(name) / "other.nbspam"
        half = StoredModel(str(shutil.copy(options.model, other)))
        half.unlearn([Item("-", None, data) for data in messages[::3]], day=0)
        half.compact()
        faults: dict[str, Callable[[], str]] = {
            "stalled": partial(stalled, trial),
            "slow": partial(slow, trial),
            "fuzzed": partial(fuzzed, trial, options.fuzzed),
            "workers": partial(killed_workers, trial, options.workers),
            "replaced": partial(replaced, trial, other, options.replaced),
            "disk": partial(full_disk, trial),
            "kills": partial(killed_server, trial, options.kills),
        }
        for fault in options.only or faults:
            print(faults[fault](), flush=True)


if __name__ == "__main__":
    main()
