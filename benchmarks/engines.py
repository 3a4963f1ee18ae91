"""Time training where it is spread over workers, and how much of it one core does alone.

usage: python benchmarks/engines.py CORPUS [CORPUS …] [--messages 25000] [--rounds 5]

Each CORPUS holds labelled mail, such as a folder with ham/ and spam/.  The first `--messages`
messages of all of them are learned by two processes in every round.  Printed are the seconds of
counting and of what follows on one core (the sample, and what combines evidence), and the share
of the latter: as time passed, and by processor time on two cores that have nothing else to do.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from nbspam.classifier.training import train
from nbspam.counts.counting import count_items
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import Item, read_items

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    parser.add_argument("--messages", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    mail = chain.from_iterable(read_items([str(path)]) for path in given.corpora)
    share_alone(islice(mail, given.messages), given.rounds)


if __name__ == "__main__":
    main()
