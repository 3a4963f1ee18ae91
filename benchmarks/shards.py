"""Training in parts beside training at once: the time of both, and whether the models are equal.

    python benchmarks/shards.py CORPUS [--times 5] [--equal 1,3,32]

First, in turn: `nbspam train -j 2`, and two processes of `nbspam train --shard I/2 -j 1` at once
with the merge after them.  Printed are medians of the time and of the processor time; with other
work on the machine only the latter means something.  Then the corpus is trained in other numbers
of parts, and each model is compared with that of training at once: its bytes and its export.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_NBSPAM = [sys.executable, "-m", "nbspam"]


def run(*arguments: object) -> bytes:
    """Run nbspam, and return what it prints."""
    command = [*_NBSPAM, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the time and the processor time of child processes, seconds."""
    started, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - started, sum(after[2:4]) - sum(before[2:4])


def in_parts(corpus: str, n: int, folder: Path, at_once: int) -> None:
    """Write the parts of a corpus, some of them at once, and merge them."""
    paths = [folder / f"part.{number}" for number in range(1, n + 1)]
    for start in range(0, n, at_once):
        some = range(start, min(start + at_once, n))
        shard = [*_NBSPAM, "train", corpus, "-j", "1", "--shard"]
        jobs = [
            subprocess.Popen(
                [*shard, f"{k + 1}/{n}", "-m", str(paths[k])], stdout=subprocess.DEVNULL
            )
            for k in some
        ]
        if any(job.wait() for job in jobs):
            raise SystemExit("a part failed")
    run("merge", *paths, "-o", folder / "merged")


def main() -> None:
    """Time training in parts beside training at once, and compare the models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--equal", default="1,3,32")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        once, parted, at_once = [], [], folder / "once"
        for _ in range(chosen.times):
            once.append(timed(lambda: run("train", chosen.corpus, "-j", 2, "-m", at_once)))
            parted.append(timed(lambda: in_parts(chosen.corpus, 2, folder, 2)))
        medians = [
            [statistics.median(column) for column in zip(*rows, strict=True)]
            for rows in (once, parted)
        ]
        for name, (seconds, processor) in zip(("at once", "in 2 parts"), medians, strict=True):
            print(f"{name:10}  {seconds:6.2f} s  {processor:6.2f} s of processor time")
        ratio = [b / a for a, b in zip(*medians, strict=True)]
        print(f"{'ratio':10}  {ratio[0]:6.2f}    {ratio[1]:6.2f}")
        for n in map(int, chosen.equal.split(",")):
            in_parts(chosen.corpus, n, folder, 2)
            same = (folder / "once").read_bytes() == (folder / "merged").read_bytes()
            exports = [run("export", "-m", folder / name) for name in ("once", "merged")]
            print(f"{n} parts: same export {exports[0] == exports[1]}, same file {same}")


if __name__ == "__main__":
    main()
