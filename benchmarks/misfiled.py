"""Find messages that a model has learned in the wrong class: by its verdict, or by doubts.

usage: python benchmarks/misfiled.py CORPORA [--percent 1 3 10] [--draws 3]

CORPORA is a folder with spamassassin/ and enron/enron1/ (which have ham/ and spam/).  In each draw
a share of 1,000 messages of each corpus gets the wrong label, and a model learns all of them.
Printed are means over the draws: how many messages are listed, the share of them that is wrong
(precision), the share of the wrong ones that is listed (recall), and seconds of processor time.

    verdict      the model, which has learned the message, gives it the other class
    told         so too, where every label counts as told by a person (see `nbspam relabel`)
    doubts       `nbspam doubts`, which believes no label

At last come 10,000 messages of both corpora together, and the memory.
"""

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from doubts import flipped

from nbspam.classifier.training import train
from nbspam.counts.counting import count_items
from nbspam.evaluation.doubts import find_doubts
from nbspam.settings import Choices, Settings, settings_for
from nbspam.sources.items import Item, read_items
from nbspam.verdicts import Verdict

FEW, MANY = 1_000, 10_000  # messages

Finder = Callable[[Settings, list[Item]], set[int]]


def drawn(paths: list[Path], number: int) -> tuple[Settings, list[Item]]:
    """Return so many messages with their data, drawn once."""
    settings, items = settings_for(read_items([str(path) for path in paths]), Choices())
    kept = list(items)
    chosen = np.random.default_rng(99).permutation(len(kept))[:number]
    return settings, [kept[row]._replace(data=kept[row].read()) for row in np.sort(chosen)]


def by_verdict(settings: Settings, items: list[Item]) -> set[int]:
    """Return the numbers of messages to which a model of all of them gives the other class."""
    verdicts = train(count_items(items, settings), settings).classify(items)
    return {
        number
        for number, (verdict, item) in enumerate(zip(verdicts, items, strict=True))
        if isinstance(verdict, Verdict) and verdict.posterior[str(item.label)] < 0.5
    }


def by_verdict_of_told(settings: Settings, items: list[Item]) -> set[int]:
    """Return the same for a model that a person has told every label."""
    return by_verdict(settings, [item._replace(told=True) for item in items])


def by_doubts(settings: Settings, items: list[Item]) -> set[int]:
    """Return the numbers of messages that are doubted, though they are told."""
    return {int(each.name) for each in find_doubts(items, settings, {}).found}


FINDERS: dict[str, Finder] = {
    "verdict": by_verdict,
    "told": by_verdict_of_told,
    "doubts": by_doubts,
}


def show(settings: Settings, items: list[Item], percent: float, draws: int) -> None:
    """Print a table for one share of wrong labels."""
    print(f"{len(items):,} messages, {percent:g} % of labels wrong")
    for name, find in FINDERS.items():
        rows, start = [], time.process_time()
        for seed in range(draws):
            filed, is_wrong = flipped(items, percent / 100, seed)
            found = find(settings, filed)
            right = sum(bool(is_wrong[number]) for number in found)
            rows.append((len(found), right / max(len(found), 1), right / is_wrong.sum()))
        listed, precision, recall = np.mean(rows, axis=0)
        seconds = (time.process_time() - start) / draws
        print(
            f"  {name:12}{listed:>8.1f}{precision:>11.3f}{recall:>9.3f}{seconds:>9.1f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder with the corpora")
    parser.add_argument(
        "--percent", type=float, nargs="+", default=[1, 3, 10], help="wrong  [default: 1 3 10]"
    )
    parser.add_argument("--draws", type=int, default=3, help="draws  [default: 3]")
    options = parser.parse_args()
    paths = [options.corpora / "spamassassin", options.corpora / "enron" / "enron1"]
    print(f"{'':14}{'listed':>8}{'precision':>11}{'recall':>9}{'s':>9}")
    for path in paths:
        settings, items = drawn([path], FEW)
        for percent in options.percent:
            print(path.name, end=": ")
            show(settings, items, percent, options.draws)
    settings, items = drawn(paths, MANY)
    show(settings, items, 3, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory at most, of all: {memory:,.0f} MB")


if __name__ == "__main__":
    main()
