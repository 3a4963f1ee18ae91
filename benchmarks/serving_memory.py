"""Measure how the memory of a worker of `nbspam serve` grows with the messages that it has judged.

usage: python benchmarks/serving_memory.py [CORPUS] [--messages 350000] [--plot FILE.svg]
           [--lessons 0]

CORPUS is a folder with ham/ and spam/, one message per file.  One worker has a model of all of it,
and is asked about its messages in random order, again and again, by 64 clients at once.  In a
second trial, every second message gets 200 words that no other message has.  Printed are, in MB,
the resident memory (Rss) and the worker's share of it (Pss: what processes share is divided among
them), as the messages go on; the picture shows Rss, the first trial in blue.

--lessons: instead, two workers judge 10,000 messages and then learn so many lessons of 60 words
that no other message has, with as many verdicts; printed are the own memory (Uss) of the one that
has more, and Rss.
"""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from math import log10
from pathlib import Path

import serving_client as client
import serving_servers as servers
from common import CLASSES, corpus_parser, messages_of, train

from nbspam.evaluation import figures, pictures

_AT_ONCE = 64
_NEW_WORDS = 200
_BEFORE, _LESSON_WORDS, _REST = 10_000, 60, 15  # messages, words, seconds
_STEPS = [number * 10**power for power in range(3, 8) for number in (1, 2, 3.5, 5)]
Curve = list[tuple[int, float]]  # messages, and MB


def new_words(rng: random.Random, n: int) -> str:
    return " ".join(f"{rng.getrandbits(40):x}" for _ in range(n))


def calls(path: str, messages: Sequence[bytes], with_words: bool) -> Iterator[client.Call]:
    """Yield requests without end."""
    rng = random.Random(0)
    while True:
        data = rng.choice(messages)
        if with_words and rng.random() < 0.5:
            data = data + new_words(rng, _NEW_WORDS).encode() + b"\n"
        yield client.Call(path, client.spamd, client.spamd_request(data))


def curve_of(server: servers.Server, asked: Iterator[client.Call], most: int) -> Curve:
    """Ask, and return the memory after each step; print it, too."""
    (pid,) = server.workers
    found: Curve = []
    for step in (0, *(int(each) for each in _STEPS if each <= most)):
        n = step - (found[-1][0] if found else 0)
        client.load((next(asked) for _ in range(n)), _AT_ONCE)
        rss, pss = servers.megabytes(pid, "Rss"), servers.megabytes(pid)
        print(f"{step:9,}{rss:7.0f}{pss:7.0f}", flush=True)
        found.append((step, rss))
    return found


def lesson(number: int, rng: random.Random) -> bytes:
    """Return a request to learn a message of words that no other has."""
    words = new_words(rng, _LESSON_WORDS)
    data = f"From: {number}@example.org\nSubject: {number}\n\n{words}\n".encode()
    return client.lesson(data, CLASSES[number % 2])


def teach(server: servers.Server, asked: Iterator[client.Call], most: int) -> None:
    """Ask and teach, and print the memory."""
    rng, before = random.Random(1), 0
    workers = server.workers  # beside them a process may fit the model
    for step in (-1, 0, *(most * part // 30 for part in (1, 6, 12, 18, 24, 30)), most):
        client.load((next(asked) for _ in range(0 if step else _BEFORE)), _AT_ONCE)
        for number in range(before, step):
            call = next(asked)
            client.load([call._replace(request=lesson(number, rng)), call], 2)
        time.sleep(_REST if step == before == most else 0)
        before = max(step, 0)
        sizes = [
            [sum(servers.megabytes(pid, kind) for kind in kinds) for pid in workers]
            for kinds in (("Private_Clean", "Private_Dirty"), ("Rss",))
        ]
        print(f"{before:9,}{max(sizes[0]):7.0f}{max(sizes[1]):7.0f}", flush=True)


def draw(curves: Sequence[Curve], path: str) -> None:
    """Write a picture of curves, the number of messages on a scale of logarithms."""
    last, top = curves[0][-1][0], max(size for curve in curves for _, size in curve)
    canvas = figures.Canvas((3, log10(last)), (0, top), "MB of a worker by messages judged")
    canvas.ticks_left([(value, f"{value:g} MB") for value in figures.round_values(0, top)])
    ticks = [(log10(n), f"{n:,}") for n in (10**3, 10**4, 10**5, 10**6) if n <= last]
    canvas.ticks_below(ticks, "messages judged")
    for number, curve in enumerate(curves):
        points = [(log10(n), size) for n, size in curve if n]
        canvas.line(("run", "curve1")[number], *points)
    drawn = pictures.in_file([canvas.drawn()], figures.HEIGHT, figures.WIDTH)
    pictures.write(drawn, path)


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--messages", type=int, default=350_000)
    parser.add_argument("--plot", metavar="FILE.svg")
    parser.add_argument("--lessons", type=int, default=0)
    options = parser.parse_args()
    messages = messages_of(options.corpus)
    curves: list[Curve] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        train(options.corpus, work / "m.nbspam")
        size = (work / "m.nbspam").stat().st_size / 1e6
        print(f"{options.corpus}: {len(messages):,} messages, a model of {size:.1f} MB")
        path = str(work / "spamd")
        if options.lessons:
            opened = ("--spamd", path, "--allow-tell")
            with servers.nbspam(work / "taught", work / "m.nbspam", 2, *opened) as server:
                teach(server, calls(path, messages, False), options.lessons)
            return
        for trial in ("its mail", "every second message with words of its own"):
            print(f"{trial}\n messages    Rss    Pss")
            folder = work / trial.replace(" ", "-")
            with servers.nbspam(folder, work / "m.nbspam", 1, "--spamd", path) as server:
                asked = calls(path, messages, bool(curves))
                curves.append(curve_of(server, asked, options.messages))
    if options.plot is not None:
        draw(curves, options.plot)


if __name__ == "__main__":
    main()
