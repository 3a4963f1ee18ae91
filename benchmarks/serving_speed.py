"""Measure `nbspam serve`: messages a second, latency, processor time and memory.

usage: python benchmarks/serving_speed.py MAIL MODEL [--messages N] [--at-once 64] [--workers 2]

MAIL is a folder with ham/ and spam/.  A server of this machine's nbspam is started on loopback;
the client runs beside it on the same cores.  Every CHECK has a connection of its own, as spamc's.
Printed are: messages a second, the server's processor time a message, the median and the 99th
percentile of the answering times, and the memory that each worker has for itself (Uss).
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from nbspam.sources.items import read_items


async def check(path: str, data: bytes) -> float:
    """Ask for a verdict on a message over a new connection; return the seconds it took."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_unix_connection(path)
    head = f"CHECK SPAMC/1.5\r\nUser: bench\r\nContent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"SPAMD/1.1 0 EX_OK\r\nSpam: "), answer
    return time.perf_counter() - start


async def checks(path: str, messages: list[bytes], at_once: int) -> list[float]:
    """Return how long each answer took, with so many requests under way."""
    found: list[float] = []
    waiting = iter(messages)

    async def client() -> None:
        for data in waiting:
            took = await check(path, data)
            found.append(took)

    await asyncio.gather(*(client() for _ in range(at_once)))
    return found


def processes(parent: int) -> list[int]:
    """Return a process and its children."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, listed)]


def processor_seconds(pids: list[int]) -> float:
    """Return the processor time that processes have taken so far."""
    total = 0
    for pid in pids:
        total += sum(
            map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[11:13])
        )
    return total / os.sysconf("SC_CLK_TCK")


def own_megabytes(pid: int) -> float:
    """Return the memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def main() -> None:
    """Run the benchmark, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mail")
    parser.add_argument("model")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    messages = [item.read() for item in read_items([options.mail])][: options.messages]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spamd"
        command = [sys.executable, "-m", "nbspam", "serve", "-m", options.model, "--spamd", path]
        command += ["--log", "none", "--jobs", str(options.workers)]
        server = subprocess.Popen(command)
        try:
            while not os.path.exists(path):
                time.sleep(0.05)
            time.sleep(1)
            pids = processes(server.pid)
            asyncio.run(checks(path, messages[:200], options.at_once))
            for at_once, some in ((options.at_once, messages), (1, messages[:1000])):
                before, start = processor_seconds(pids), time.perf_counter()
                took = asyncio.run(checks(path, some, at_once))
                seconds, used = time.perf_counter() - start, processor_seconds(pids) - before
                median, high = (1000 * np.quantile(took, q) for q in (0.5, 0.99))
                print(
                    f"{at_once:3} at once: {len(some) / seconds:7,.0f} messages/s, server"
                    f" {1000 * used / len(some):.3f} ms a message, answers {median:.2f} ms"
                    f" (median), {high:.2f} ms (99 %)"
                )
            own = [own_megabytes(pid) for pid in pids]
            print(
                f"own memory, MB: {own[0]:.1f}, workers {', '.join(f'{m:.1f}' for m in own[1:])}"
            )
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


if __name__ == "__main__":
    main()
