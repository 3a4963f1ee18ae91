"""Measure the peak memory of training on a corpus, and on one ten times as large.

usage: python benchmarks/memory.py CORPUS [--times 10]

CORPUS is a folder with ham/ and spam/.  The large corpus repeats its messages under new names;
each copy gets a different last line, because a message that comes twice counts once.  Memory
should grow with the vocabulary and with the sample of messages in the model, not with the number
of messages.
"""

import os
import tempfile
from pathlib import Path

from speed import NBSPAM, corpus_parser, run


def repeat(corpus: Path, times: int, to: Path) -> None:
    for name in ("ham", "spam"):
        (to / name).mkdir(parents=True)
        for path in (corpus / name).iterdir():
            for n in range(times):
                (to / name / f"{n}-{path.name}").write_bytes(
                    path.read_bytes() + b"\ncopy %d\n" % n
                )


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument(
        "--times", type=int, default=10, help="number of copies of each message  [default: 10]"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        large = Path(work) / "large"
        repeat(options.corpus, options.times, large)
        model = str(Path(work) / "m.nbspam")
        for name, corpus in (("once", options.corpus), (f"{options.times} times", large)):
            n = sum(len(os.listdir(corpus / label)) for label in ("ham", "spam"))
            peak = run([*NBSPAM, "train", "-m", model, str(corpus)], b"")[0]
            size = os.path.getsize(model)
            print(f"{name:10}{n:9,} messages{peak / 1e6:8.0f} MB peak{size / 1e6:8.1f} MB model")


if __name__ == "__main__":
    main()
