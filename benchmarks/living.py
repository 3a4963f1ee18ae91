"""The cost of an update, beside classify and bogofilter -s.

    python benchmarks/living.py [--tokens 10000] [--rounds 9] [--folder DIR]

The model is made up: words with Zipf's frequencies, a ledger, a sample.  Bogofilter, where
installed, gets the same words and counts from bogoutil.  Commands are timed as a procmail
recipe would run them, one process a message, in turn; medians count.  Then a thousand messages
are learned in one call, and one by one in one process, of which the longest pause counts: that
is where evidence is fitted again.
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

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import Combination
from nbspam.counts.ledger import Memory, ledger_of
from nbspam.counts.sample import MAX_SAMPLE, Sample
from nbspam.counts.table import CountTable
from nbspam.mail.message import Message
from nbspam.mail.origins import Field
from nbspam.settings import PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import save
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents
from nbspam.tokens.tokenizer import tokenize
from nbspam.tokens.vocabulary import Vocabulary, batch_vocabulary, join

CLASSES = ("ham", "spam")
WORDS = 300  # of a message
DAY = 20_000


def vocabulary(n_tokens: int) -> Vocabulary:
    """Return the vocabulary of the words w0, w1, and so on."""
    parts = []
    for start in range(0, n_tokens, 50_000):
        words = b" ".join(b"w%d" % n for n in range(start, min(start + 50_000, n_tokens)))
        message = Message((Field("body", words),), ())
        parts.append(batch_vocabulary(tokenize([message], TokenSettings())))
    return join(parts)[0]


def made_up(n_tokens: int) -> Classifier:
    """Return a model of two classes with this many tokens, and ten tokens a message."""
    rng = np.random.default_rng(1)
    words = vocabulary(n_tokens)
    n_docs = n_tokens // 10
    expected = n_docs * 0.5 / (1 + rng.permutation(n_tokens))
    counts = np.minimum(rng.poisson(expected[:, None], (n_tokens, 2)), n_docs // 2)
    counts[counts.sum(axis=1) == 0, 0] = 1
    table = CountTable(
        CLASSES, np.full(2, n_docs / 2), words, counts.astype(np.float64), counts.sum(axis=1)
    )
    digests = np.unique(rng.integers(0, 1 << 63, n_docs, np.uint64))
    names = np.array(CLASSES)[rng.integers(0, 2, len(digests))]
    ledger = ledger_of(digests, names, np.full(len(digests), DAY, np.uint16), CLASSES)
    n_sample = min(len(digests), MAX_SAMPLE)
    sample = Sample(0, ledger.digests[:n_sample], documents(rng, n_sample, n_tokens))
    memory = Memory(ledger, sample, np.full(n_tokens, DAY, np.uint16))
    correction = rng.normal(0, 0.1, n_tokens).astype(np.float32)
    combination = Combination(np.full(len(GROUPS) + 1, 0.5), correction)
    return Classifier(PRESETS["mail"], table, combination, memory)


def documents(rng: np.random.Generator, n_docs: int, n_tokens: int) -> Documents:
    """Return messages of WORDS words each, over all columns."""
    columns = np.sort(rng.integers(0, n_tokens, (n_docs, WORDS), np.uint32), axis=1)
    is_first = np.ones(columns.shape, np.bool_)
    is_first[:, 1:] = columns[:, 1:] != columns[:, :-1]
    offsets = np.append(0, np.cumsum(is_first.sum(axis=1)))
    return Documents(np.arange(n_tokens), offsets, columns[is_first], None)


def message(n: int, n_tokens: int) -> bytes:
    """Return message n: common words, rare ones, and one of its own."""
    rng = np.random.default_rng(n)
    words = (n_tokens ** rng.random(WORDS)).astype(int)
    text = b" ".join([*(b"w%d" % word for word in words), b"new%d" % n])
    return b"Message-ID: <%d@x>\nFrom: a@x\nSubject: w1 w2\n\n%s\n" % (n, text)


def run(command: list[str], data: bytes, **environment: str) -> float:
    """Return the seconds that a command takes."""
    start = time.perf_counter()
    subprocess.run(
        command,
        input=data,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environment},
        check=True,
    )
    return time.perf_counter() - start


def fill_bogofilter(folder: Path, classifier: Classifier) -> list[str]:
    """Give bogofilter the model's counts; return the command that learns a message."""
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
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", help="where to do it  [default: a temporary folder]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        compare(Path(name), options.tokens, options.rounds)


def compare(folder: Path, n_tokens: int, rounds: int) -> None:
    """Time whole processes, one command after the other, and then one process."""
    path = folder / "m.nbspam"
    classifier = made_up(n_tokens)
    save(str(path), classifier)
    print(
        f"model of {n_tokens:,} tokens, {classifier.table.n_docs:,} messages:"
        f" {path.stat().st_size / 1e6:.1f} MB"
    )
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
        print(f"{name:14}{statistics.median(all_of):.3f} s  (least {min(all_of):.3f})")
    ratio = statistics.median(seconds["update"]) / statistics.median(seconds["classify"])
    print(f"update takes {ratio:.2f} times as long as classify (medians)")
    in_one_process(path, n_tokens)


def in_one_process(path: Path, n_tokens: int) -> None:
    """Time a thousand messages in one call, and as many calls of one message."""
    items = [Item(str(n), CLASSES[n % 2], message(n, n_tokens)) for n in range(1000, 3000)]
    model = StoredModel(str(path))
    start, cpu = time.perf_counter(), time.process_time()
    model.learn(items[:1000], day=DAY)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"a thousand updates in one call: {1000 / seconds:,.0f} a second"
        f" ({1000 / cpu:,.0f} a second of processor time)"
    )
    pauses = [seconds_of(model, item) for item in items[1000:]]
    longest = int(np.argmax(pauses))
    print(
        f"a thousand, each on disk before the next: {1000 / sum(pauses):,.0f} a second;"
        f" median {statistics.median(pauses) * 1e3:.1f} ms, longest pause"
        f" {pauses[longest] * 1e3:,.0f} ms (update {longest + 1})"
    )


def seconds_of(model: StoredModel, item: Item) -> float:
    """Return the seconds that one update takes."""
    start = time.perf_counter()
    model.learn([item], day=DAY)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
