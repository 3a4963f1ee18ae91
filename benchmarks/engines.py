"""Time training where it is spread over workers, and how much of it one core does alone.

usage: python benchmarks/engines.py CORPUS [CORPUS …] [--messages 25000] [--rounds 5] [--size 0]

Each CORPUS holds labelled mail, such as a folder with ham/ and spam/.  The first `--messages`
messages of all of them are learned by two processes in every round.  Printed are the seconds of
counting and of what follows on one core (the sample, and what combines evidence), and the share
of the latter: as time passed, and by processor time on two cores that have nothing else to do.

--size 200: instead, the mail is repeated with other words until it has 200 MB, one message per
file, and learned in turn by two forked processes and by two workers of Dask that are running.
Printed are the medians, and the median of the ratios within each round.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from operator import truediv
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

import nbspam
from nbspam.classifier.training import train
from nbspam.counts.counting import count_items
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.store.text.interchange import dump_lines

CORES = 2
Result = TypeVar("Result")


class Seconds(NamedTuple):
    """What a piece of work took."""

    passed: float
    of_processor: float  # of this process and of its children


def timed(work: Callable[..., Result], *of: object) -> tuple[Result, Seconds]:
    """Return what work returns of some things, and what it took."""
    start, before = time.perf_counter(), os.times()
    result = work(*of)
    after = os.times()
    used = sum(after[:4]) - sum(before[:4])
    return result, Seconds(time.perf_counter() - start, used)


def share_alone(mail: Iterable[Item], rounds: int) -> None:
    """Print the share of training that one core does after counting."""
    settings, items = settings_for(iter(mail), Choices())
    messages = list(items)
    found = []
    for _ in range(rounds):
        counted, counting = timed(count_items, messages, settings, CORES)
        _, fitting = timed(train, counted, settings)
        found.append((counting, fitting))
    print(f"{len(messages):,} messages, {CORES} processes; medians of {rounds} rounds")
    print(f"{'':10}  {'counting':>8}  {'alone':>8}  {'share':>6}")
    for name, place, cores in (("passed", 0, 1), ("processor", 1, CORES)):
        counting_s, alone_s = (median(each[k][place] for each in found) for k in (0, 1))
        share = alone_s / (alone_s + counting_s / cores)
        print(f"{name:10}  {counting_s:6.2f} s  {alone_s:6.2f} s  {share:6.1%}")


def compare_engines(mail: Iterable[Item], megabytes: int, rounds: int) -> None:
    """Print how long forked processes and Dask take; both make the same model."""
    from distributed import Client, LocalCluster

    with (
        TemporaryDirectory() as folder,
        LocalCluster(CORES, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,  # type: ignore[no-untyped-call]
        Client(cluster, set_as_default=False) as client,  # type: ignore[no-untyped-call]
    ):
        n_messages, n_bytes = write_varied(list(mail), Path(folder), megabytes * 1_000_000)
        ways = {"fork": {"jobs": CORES}, "dask": {"engine": client}}
        found: dict[str, list[Seconds]] = {name: [] for name in ways}
        exports = set()
        for number in range(rounds + 1):
            for name, how in ways.items():
                before = sum(client.run(time.process_time).values())
                model, seconds = timed(partial(nbspam.train, Path(folder), day=0, **how))
                of_dask = sum(client.run(time.process_time).values()) - before
                if number:  # the first round warms up
                    of_all = seconds.of_processor + of_dask
                    found[name].append(seconds._replace(of_processor=of_all))
                digest = sha256(b"".join(dump_lines(model.classifier)))  # type: ignore[arg-type]
                exports.add(digest.hexdigest())
    print(f"{n_messages:,} messages, {n_bytes / 1e6:.0f} MB, {CORES} workers; {rounds} rounds")
    print(f"{len(exports)} different model(s)")
    for place, what in enumerate(Seconds._fields):
        fork, dask = ([each[place] for each in found[name]] for name in ways)
        ratio = median(map(truediv, dask, fork))
        print(f"{what:12}  fork {median(fork):6.1f} s  dask {median(dask):6.1f} s  {ratio:.2f}")


def write_varied(mail: list[Item], folder: Path, n_bytes: int) -> tuple[int, int]:
    """Write mail again and again, each time with other words; return messages and bytes."""
    messages = [(str(item.label), item.read()) for item in mail]
    random.Random(0).shuffle(messages)
    number = size = 0
    while size < n_bytes:
        label, data = messages[number % len(messages)]
        again = number // len(messages)
        data = data.replace(b" the ", b" the%d " % again) + b"\nword%d of%d\n" % (number, again)
        path = folder / label / f"{number:06}.eml"
        path.parent.mkdir(exist_ok=True)
        size += path.write_bytes(data)
        number += 1
    return number, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    parser.add_argument("--messages", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=0, metavar="MB")
    given = parser.parse_args()
    mail = chain.from_iterable(read_items([str(path)]) for path in given.corpora)
    if given.size:
        compare_engines(mail, given.size, given.rounds)
    else:
        share_alone(islice(mail, given.messages), given.rounds)


if __name__ == "__main__":
    main()
