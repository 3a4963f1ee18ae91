"""What one update costs on a large model, beside classify and bogofilter -s, in one run.

    python benchmarks/living.py [--tokens 1000000] [--rounds 9] [--folder DIR]

The model is made up: words with Zipf's frequencies, a ledger, a full sample.  Bogofilter,
where installed, gets the same words and counts from bogoutil.  Commands are timed as a
procmail recipe would run them, one process a message, in turn; the least of all rounds
counts, and the median stands beside it.  Last, a thousand updates in one process.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from nbspam.counts.memory import Memory

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.counts.ledger import ledger_of
from nbspam.counts.sample import MAX_SAMPLE, Kept
from nbspam.counts.table import CountTable
from nbspam.mail.message import Field, Message
from nbspam.settings import PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.tokenizer import tokenize
from nbspam.tokens.vocabulary import batch_vocabulary, join

CLASSES = ("ham", "spam")
WORDS = 300  # of a message
DAY = 20_000


def vocabulary(n_tokens: int):
    """Return the vocabulary of the words w0, w1, and so on."""
    parts = []
    for start in range(0, n_tokens, 50_000):
        words = b" ".join(b"w%d" % n for n in range(start, min(start + 50_000, n_tokens)))
        message = Message((Field("body", words),), ())
        parts.append(batch_vocabulary(tokenize([message], TokenSettings())))
    return join(parts)[0]


def made_up(n_tokens: int) -> Classifier:
    """Return a model of two classes with so many tokens."""
    rng = np.random.default_rng(1)
    words = vocabulary(n_tokens)
    n_docs = max(n_tokens // 10, 10 * MAX_SAMPLE)
    expected = n_docs * 0.5 / (1 + rng.permutation(n_tokens))
    counts = np.minimum(rng.poisson(expected[:, None], (n_tokens, 2)), n_docs // 2)
    counts[counts.sum(axis=1) == 0, 0] = 1
    table = CountTable(
        CLASSES, np.full(2, n_docs / 2), words, counts.astype(np.float64), counts.sum(axis=1)
    )
    digests = np.unique(rng.integers(0, 1 << 63, n_docs, np.uint64))
    names = np.array(CLASSES)[rng.integers(0, 2, len(digests))]
    ledger = ledger_of(digests, names, np.full(len(digests), DAY, np.uint16), CLASSES)
    columns = np.sort(rng.integers(0, n_tokens, (MAX_SAMPLE, WORDS), np.uint32), axis=1)
    offsets = np.arange(0, columns.size + 1, WORDS, dtype=np.uint32)
    sample = Kept(0, ledger.digests[:MAX_SAMPLE], offsets, columns.ravel(), None)
    memory = Memory(ledger, sample, np.full(n_tokens, DAY, np.uint16))
    correction = rng.normal(0, 0.1, n_tokens).astype(np.float32)
    combination = Combination(np.full(len(GROUPS) + 1, 0.5), correction)
    return Classifier(PRESETS["mail"], table, np.zeros(2), np.zeros((0, 2)), combination, memory)


def message(n: int, n_tokens: int) -> bytes:
    rng = np.random.default_rng(n)
    words = (n_tokens ** rng.random(WORDS)).astype(int)
    text = b" ".join([*(b"w%d" % word for word in words), b"new%d" % n])
    return b"Message-ID: <%d@x>\nFrom: a@x\nSubject: w1 w2\n\n%s\n" % (n, text)


def run(command: list[str], data: bytes, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, input=data, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    return time.perf_counter() - start


def fill_bogofilter(folder: Path, classifier: Classifier) -> list[str]:
    table = classifier.table
    rows = table.feature_count.astype(int).tolist()
    lines = (
        f"{table.vocabulary.text(j)} {row[1]} {row[0]} 20260101\n" for j, row in enumerate(rows)
    )
    n_ham, n_spam = table.class_count.astype(int).tolist()
    dump = "".join([f".MSG_COUNT {n_spam} {n_ham} 20260101\n", *lines]).encode()
    subprocess.run(["bogoutil", "-l", str(folder / "wordlist.db")], input=dump, check=True)
    return ["bogofilter", "-s", "-d", str(folder)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", help="where to do it  [default: a temporary folder]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        compare(Path(name), options.tokens, options.rounds)


def compare(folder: Path, n_tokens: int, rounds: int) -> None:
    path = folder / "m.nbspam"
    classifier = made_up(n_tokens)
    classifier.save(str(path))
    print(f"model of {n_tokens:,} tokens: {path.stat().st_size / 1e6:.1f} MB")
    nbspam = [sys.executable, "-m", "nbspam"]
    commands = {
        "classify": [*nbspam, "classify"],
        "update": [*nbspam, "update", "--spam", "-"],
    }
    if shutil.which("bogofilter") and shutil.which("bogoutil"):
        commands["bogofilter -s"] = fill_bogofilter(folder, classifier)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for n in range(rounds):
        for name, command in commands.items():
            data = message(n, n_tokens)
            seconds[name].append(run(command, data, NBSPAM_MODEL=str(path)))
    for name, all_of in seconds.items():
        print(f"{name:14}{min(all_of):.3f} s  (median {statistics.median(all_of):.3f})")
    ratio = min(seconds["update"]) / min(seconds["classify"])
    print(f"update takes {ratio:.2f} times as long as classify")
    in_one_process(path, n_tokens)


def in_one_process(path: Path, n_tokens: int) -> None:
    items = [Item(str(n), CLASSES[n % 2], message(n, n_tokens)) for n in range(1000, 3000)]
    living = StoredModel(str(path))
    start, cpu = time.perf_counter(), time.process_time()
    living.learn(items[:1000], day=DAY)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"a thousand updates in one call: {1000 / seconds:,.0f} a second"
        f" ({1000 / cpu:,.0f} a second of processor time)"
    )
    waiting: list[float] = []
    real = os.fsync

    def timed(descriptor: int) -> None:
        before = time.perf_counter()
        real(descriptor)
        waiting.append(time.perf_counter() - before)

    os.fsync = timed
    start = time.perf_counter()
    for item in items[1000:]:
        living.learn([item], day=DAY)
    seconds = time.perf_counter() - start
    os.fsync = real
    print(
        f"a thousand, each on disk before the next: {1000 / seconds:,.0f} a second;"
        f" {sum(waiting) / seconds:.0%} of the time the disk was waited for"
    )


if __name__ == "__main__":
    main()
