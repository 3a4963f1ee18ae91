"""Serve ten thousand users, each with lessons of their own on disk; print what it costs.

usage: python benchmarks/many_users.py MAIL MODEL [--users 10000] [--lessons 6] [--asked 20000]

MAIL is a folder with ham/ and spam/, MODEL a model of mail, which all users share.  Each user
teaches some messages, drawn at random, with their labels.  Then a server with two workers is asked
about messages, each of a user drawn at random.
"""

import argparse
import asyncio
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from serving_trial import SPAMD, Server, ask, request

from nbspam.parallel import fork
from nbspam.server.users import Users
from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel

_PROCESSES = 6  # that teach at the same time
_AT_ONCE = 16  # requests


def teach(folder: Path, site: Path, mail: list[Item], options: argparse.Namespace) -> None:
    """Let every user teach, in several processes."""

    def some(first: int) -> None:
        users = Users(str(folder), 0, print)
        settings = StoredModel(str(site)).settings
        for number in range(first, options.users, _PROCESSES):
            drawn = random.Random(number).sample(mail, options.lessons)
            users.opened(name_of(number), settings).learn(drawn, day=1)

    pids = []
    for first in range(_PROCESSES):
        if (pid := fork()) == 0:
            some(first)
            os._exit(0)
        pids.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)


def name_of(number: int) -> str:
    """Return the name of a user."""
    return f"user{number}@example.org"


def kilobytes(pid: int) -> int:
    """Return the memory that only one process has."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def state(server: Server) -> str:
    """Return what the workers have: memory of their own, files, users."""
    memory = [f"{kilobytes(pid) / 1024:.1f}" for pid in server.workers]
    files = [len(os.listdir(f"/proc/{pid}/fd")) for pid in server.workers]
    names = ("users", "users_bytes", "personal_total")
    held, n_bytes, personal = (server.metric(f"nbspam_{name}") for name in names)
    return (
        f"Uss {' + '.join(memory)} MB, open files {' + '.join(map(str, files))};"
        f" {held:,.0f} users held, {n_bytes / 1e6:.1f} MB; {personal:,.0f} of users"
    )


async def stream(server: Server, mail: list[bytes], users: int, asked: int) -> Counter[str]:
    """Ask about messages of users drawn at random; return how many answers there were."""
    rng = random.Random(19)
    numbers = iter(range(asked))
    found: Counter[str] = Counter()

    async def client() -> None:
        for _ in numbers:
            user = f"User: {name_of(rng.randrange(users))}\r\n"
            answer = await ask(server.paths[SPAMD], request(rng.choice(mail), "CHECK", user))
            found["answered" if b"Spam: " in answer else "failed"] += 1

    await asyncio.gather(*(client() for _ in range(_AT_ONCE)))
    return found


def main() -> None:
    """Print what users cost on disk, in memory and in time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mail")
    parser.add_argument("model", type=Path)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--lessons", type=int, default=6)
    parser.add_argument("--asked", type=int, default=20_000)
    options = parser.parse_args()
    mail = [Item("-", each.label, each.read()) for each in read_items([options.mail])]
    with tempfile.TemporaryDirectory() as place:
        folder, site = Path(place), Path(place) / "m.nbspam"
        shutil.copy(options.model, site)
        teach(folder / "users", site, mail, options)
        times = os.times()
        each = 1000 * (times.children_user + times.children_system) / options.users
        files = [path.stat() for path in (folder / "users").rglob("*") if path.is_file()]
        print(
            f"{options.users:,} users teach {options.lessons} messages: {each:.1f} ms of a"
            " processor a user"
        )
        print(
            f"on disk: {sum(f.st_blocks for f in files) * 512 / 1e6:,.0f} MB in {len(files):,}"
            f" files, {sum(f.st_size for f in files) / options.users:,.0f} bytes a user"
        )
        server = Server(folder, site, "--users", str(folder / "users"))
        messages = [item.read() for item in mail]
        ask_for = partial(stream, server, messages)
        try:
            print(f"before: {state(server)}")
            print(dict(asyncio.run(ask_for(1, 2_000))), f"of one user: {state(server)}")
            for part in range(4):
                used, start = sum(map(seconds, server.workers)), time.perf_counter()
                done = asyncio.run(ask_for(options.users, options.asked // 4))
                took = 1000 * (time.perf_counter() - start) / done.total()
                used = 1000 * (sum(map(seconds, server.workers)) - used) / done.total()
                print(f"part {part + 1}: {dict(done)}, {took:.2f} ms a message,", end=" ")
                print(f"{used:.2f} of processors; {state(server)}", flush=True)
            server.end()
        finally:
            server.process.kill()
        print((folder / "errors").read_text(), end="")


if __name__ == "__main__":
    main()
