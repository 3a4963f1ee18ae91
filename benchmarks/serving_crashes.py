"""Do to `nbspam serve` what crashes, full disks and other programs do; print what becomes of it.

usage: python benchmarks/serving_crashes.py MAIL MODEL [--only NAME ...] [--workers 100]
           [--replaced 1000] [--kills 500] [--seed 18] [--asyncio]

MAIL is a folder with ham/ and spam/, MODEL a model of mail.  A server of this machine's nbspam is
started on sockets in a temporary folder, with a copy of MODEL.  Every answer is compared with the
verdict that the model itself gives in this process.
"""

import asyncio
import os
import random
import resource
import shutil
import signal
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from serving_trial import (
    SPAMD,
    Server,
    Trial,
    ask,
    expected,
    parser_of,
    request,
    run,
    trial_of,
    work_some,
)

from nbspam.sources.items import Item
from nbspam.store.model import StoredModel

_FULL = 60_000  # bytes of a file, after which the disk is full


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
        path = server.paths[SPAMD]
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
        load = trial.load(server.paths[SPAMD], lambda: swaps >= number, answers)
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
                answer = asyncio.run(ask(server.paths[SPAMD], lesson(data, "spam")))
                done = b"DidSet: local" in answer
                told["learned" if done else answer.split(b"\r\n")[0].decode()[:24]] += 1
                if done:
                    learned.append(data)
                if told.total() - told["learned"] >= 20:
                    break
            check = asyncio.run(ask(server.paths[SPAMD], request(trial.messages[0])))
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

            teachers = (teach(server.paths[SPAMD], until + 1) for _ in range(4))
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
    parser = parser_of(__doc__)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--replaced", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=500)
    options = parser.parse_args()
    trial = trial_of(options)
    with tempfile.TemporaryDirectory() as name:
        other = Path(name) / "other.nbspam"
        half = StoredModel(str(shutil.copy(options.model, other)))
        half.unlearn([Item("-", None, data) for data in trial.messages[::2]], day=0)
        half.compact()
        faults = {
            "workers": partial(killed_workers, trial, options.workers),
            "replaced": partial(replaced, trial, other, options.replaced),
            "disk": partial(full_disk, trial),
            "kills": partial(killed_server, trial, options.kills),
        }
        run(faults, options.only)


if __name__ == "__main__":
    main()
