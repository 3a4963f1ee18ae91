"""Print what 10^6 to 10^9 messages take, from rates that are measured here.

usage: python benchmarks/scale.py SOURCE PART PART... [--price 0.04] [--per-part 1000000]

SOURCE is mail; reading and counting it gives the processor time and the bytes of a message, and
training in two parts (nbspam shard) the size of an exact part and the time of merging it.
PARTs are models of about a million messages; merging them gives the processor time of a part.
--fit is the processor time of fitting one.  The vocabulary is that of a real stream, 1.28 million
tokens of 75,419 messages, and grows as n ** 0.92.  --price is what an hour of one core costs.
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
            seconds("shard", f"{k}/2", options.source, "-o", path, "-j", "1")
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
    rows: dict[str, list[str]] = {}
    for n in SIZES:
        parts = ceil(n / options.per_part)
        tokens = TOKENS * (n / STREAM) ** BETA
        hours = [n * counting / 3600, parts * options.fit / 3600, (parts - 1) * merging / 3600]
        all_bytes = tokens * TOKEN_BYTES
        values = {
            "mail to read": f"{n * length / 1e9:,.0f} GB",
            "reading and counting, core-hours": f"{hours[0]:,.1f}",
            "parts": f"{parts:,}",
            "size of all parts": f"{parts * MAX_BYTES / 1e9:,.2f} GB",
            "fitting them, core-hours": f"{hours[1]:,.2f}",
            "merging them, core-hours": f"{hours[2]:,.2f}",
            "together, core-hours": f"{sum(hours):,.1f}",
            "price": f"{sum(hours) * options.price:,.2f}",
            "exact parts instead, their size": f"{n * kept / 1e9:,.1f} GB",
            "merging these, core-hours": f"{n * joining / 3600:,.1f}",
            "distinct tokens, by the law": f"{tokens / 1e6:,.0f} million",
            "all of them in a model": f"{all_bytes / 1e9:,.1f} GB",
            "tokens of the model that is kept": f"{min(MAX_BYTES, all_bytes) / 1e6:,.0f} MB",
            "ledger in the model file": f"{n * IN_FILE / 1e9:,.2f} GB",
            "ledger in memory, while training at once": f"{n * IN_MEMORY / 1e9:,.1f} GB",
        }
        for name, value in values.items():
            rows.setdefault(name, []).append(value)
    print("| messages | " + " | ".join(f"{n:,}" for n in SIZES) + " |")
    print("| --- |" + " --- |" * len(SIZES))
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
