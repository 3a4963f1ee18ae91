"""Print what 10^6 to 10^9 messages take, from rates that are measured here.

usage: python benchmarks/scale.py SOURCE PART PART... [--price 0.04] [--per-part 1000000]

SOURCE is mail; reading and counting it gives the processor time and the bytes of a message, and
training in two parts (--shard) the size of an exact part and the time of merging it.
PARTs are models of about a million messages (`benchmarks/growing.py --save`); merging them gives
the processor time of a part.  --fit is the processor time of fitting a part, which growing.py
prints.  The vocabulary is that of a real stream, 1.28 million tokens of 75,419 messages, and
grows as n ** 0.92.  --price is what an hour of one core costs, in any currency.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from math import ceil
from pathlib import Path

from nbspam.classifier.training import MAX_BYTES
from nbspam.sources.items import read_items

SIZES = (10**6, 10**7, 10**8, 10**9)
STREAM, TOKENS, BETA = 75_419, 1_280_000, 0.92
TOKEN_BYTES = 59  # of a model of two classes: see classifier/training.py
IN_FILE, IN_MEMORY = 11, 180  # bytes a message of the ledger


def seconds(*command: str) -> float:
    """Return the processor time of a command of nbspam."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "nbspam", *command], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("parts", nargs="+", metavar="PART")
    parser.add_argument("--price", type=float, default=0.04, help="of a core-hour")
    parser.add_argument("--per-part", type=int, default=10**6, help="messages")
    parser.add_argument("--fit", type=float, default=10.0, help="seconds of fitting a part")
    options = parser.parse_args()
    lengths = [len(item.read()) for item in read_items([options.source])]
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "m")
        counting = seconds("train", options.source, "-m", model, "-j", "1") / len(lengths)
        merging = seconds("merge", *options.parts, "-o", model) / len(options.parts)
        exact = [str(Path(folder) / f"part.{k}") for k in (1, 2)]
        for k, path in enumerate(exact, 1):
            seconds("train", options.source, "--shard", f"{k}/2", "-m", path, "-j", "1")
        kept = sum(map(os.path.getsize, exact)) / len(lengths)
        joining = seconds("merge", *exact, "-o", model) / len(lengths)
    length = sum(lengths) / len(lengths)
    part = sum(map(os.path.getsize, options.parts)) / len(options.parts)
    print(
        f"measured: {counting * 1e3:.2f} ms and {length / 1e3:.1f} KB a message;"
        f" {merging:.1f} s to merge a part of {part / 1e6:.0f} MB (processor time)"
    )
    print(f"exact parts: {kept / 1e3:.1f} KB a message, {joining * 1e3:.2f} ms to merge and fit")
    print(f"price of a core-hour: {options.price:g}")
    rows: list[list[str]] = [[] for _ in _NAMES]
    for n in SIZES:
        parts = ceil(n / options.per_part)
        tokens = TOKENS * (n / STREAM) ** BETA
        hours = [n * counting / 3600, parts * options.fit / 3600, (parts - 1) * merging / 3600]
        values = [
            f"{n * length / 1e9:,.0f} GB",
            f"{hours[0]:,.1f}",
            f"{parts:,}",
            f"{parts * MAX_BYTES / 1e9:,.2f} GB",
            f"{hours[1]:,.2f}",
            f"{hours[2]:,.2f}",
            f"{sum(hours):,.1f}",
            f"{sum(hours) * options.price:,.2f}",
            f"{n * kept / 1e9:,.1f} GB",
            f"{n * joining / 3600:,.1f}",
            f"{tokens / 1e6:,.0f} million",
            f"{tokens * TOKEN_BYTES / 1e9:,.1f} GB",
            f"{min(MAX_BYTES, tokens * TOKEN_BYTES) / 1e6:,.0f} MB",
            f"{n * IN_FILE / 1e9:,.2f} GB",
            f"{n * IN_MEMORY / 1e9:,.1f} GB",
        ]
        for row, value in zip(rows, values, strict=True):
            row.append(value)
    print("| messages | " + " | ".join(f"{n:,}" for n in SIZES) + " |")
    print("| --- |" + " --- |" * len(SIZES))
    for name, row in zip(_NAMES, rows, strict=True):
        print(f"| {name} | " + " | ".join(row) + " |")


_NAMES = (
    "mail to read",
    "reading and counting, core-hours",
    "parts",
    "size of all parts",
    "fitting them, core-hours",
    "merging them, core-hours",
    "together, core-hours",
    "price",
    "exact parts instead, their size",
    "merging these, core-hours",
    "distinct tokens, by the law",
    "all of them in a model",
    "tokens of the model that is kept",
    "ledger in the model file",
    "ledger in memory, while training at once",
)


if __name__ == "__main__":
    main()
