"""Measure what it costs to judge a message, by the number of messages that are judged together.

usage: python benchmarks/batches.py MAIL MODEL [--messages 1024] [--rounds 5]

A server judges together what waits.  Printed is the processor time of this process for each
message, the least of all rounds, for batches of 1, 2, 4 and so on up to 128.
"""

import argparse
import random
import time

from nbspam.sources.items import Item, read_items
from nbspam.store.model import StoredModel

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def cost(model: StoredModel, items: list[Item], size: int) -> float:
    """Return the milliseconds a message of judging all items, so many at a time."""
    start = time.process_time()
    for first in range(0, len(items), size):
        for _ in model.classifier().classify(items[first : first + size]):
            pass
    return 1000 * (time.process_time() - start) / len(items)


def main() -> None:
    """Run the benchmark, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mail")
    parser.add_argument("model")
    parser.add_argument("--messages", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    model = StoredModel(options.model)
    items = [Item("-", None, item.read()) for item in read_items([options.mail])]
    random.Random(1).shuffle(items)
    items = items[: options.messages]
    cost(model, items, SIZES[-1])  # so that caches are full
    for size in SIZES:
        least = min(cost(model, items, size) for _ in range(options.rounds))
        print(f"{size:4} together: {least:6.3f} ms a message")


if __name__ == "__main__":
    main()
