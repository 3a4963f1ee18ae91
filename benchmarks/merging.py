"""How long merging many large models takes, and how much memory.

    python benchmarks/merging.py [--models 32] [--tokens 500000] [--shared 100000] [FOLDER]

Each model has learned 2,000 synthetic messages, ham and spam.  Of its tokens `--shared` are in all
models and the others in no other one, as the rare words of a stream are; with --shared equal
to --tokens all models have the same tokens.  The models are made in FOLDER (a temporary one
unless it is given, and then they are used again if they are there); the merge is a process of its
own, whose time and peak memory are printed.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from nbspam.classifier.training import train
from nbspam.counts.counting import Training
from nbspam.counts.sample import Messages
from nbspam.counts.table import CountTable, counts_of
from nbspam.settings import PRESENCE, PRESETS
from nbspam.store.open import save
from nbspam.tokens.documents import Documents
from nbspam.tokens.tokenizer import groups_of
from nbspam.tokens.vocabulary import Vocabulary

_N_DOCS, _LENGTH = 2000, 300
_WORD = 1 << 19 | 1 << 20  # kind 3: a word of the text; below a hash of 41 bits


def model_of(number: int, n_tokens: int, n_shared: int, path: Path) -> None:
    """Write the model of one machine; its messages have all of its tokens."""
    common, own = (np.random.default_rng(seed) for seed in (0, number + 1))
    keys = np.concatenate(
        [
            common.integers(0, 1 << 41, n_shared, np.uint64),
            own.integers(0, 1 << 41, n_tokens - n_shared, np.uint64),
        ]
    )
    keys = np.unique(keys << np.uint64(23) | np.uint64(_WORD))
    digests = np.unique(own.integers(0, 1 << 63, _N_DOCS, np.uint64))
    # Every token is in one message, and common ones are in as many as the length allows.
    rows = [np.arange(len(keys)) % len(digests)]
    rows.append(own.integers(0, len(digests), _N_DOCS * _LENGTH))
    columns = [np.arange(len(keys)), own.zipf(1.3, _N_DOCS * _LENGTH) % len(keys)]
    entries = np.unique(np.concatenate(rows) * len(keys) + np.concatenate(columns))
    offsets = np.searchsorted(entries, np.arange(len(digests) + 1) * len(keys))
    documents = Documents(keys, offsets, (entries % len(keys)).astype(np.uint32), None)
    y = np.arange(len(digests)) % 2
    groups = groups_of(keys)
    counts = counts_of(documents, y, 2, groups, PRESENCE)
    text = np.char.mod("%012x", keys >> np.uint64(23)).astype("S12")
    vocabulary = Vocabulary(
        keys, text.view(np.uint8), np.arange(0, 12 * len(keys) + 1, 12), groups
    )
    table = CountTable(("ham", "spam"), counts[0], vocabulary, counts[1], counts[2])
    labels = np.array(["ham", "spam"])[y]
    training = Training(table, (Messages(labels, digests, documents),), 0, digests, labels)
    save(str(path), train(training, PRESETS["mail"], 20_000))


def main() -> None:
    """Make the models, merge them in another process, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=500_000)
    parser.add_argument("--shared", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(chosen.folder or temporary)
        folder.mkdir(exist_ok=True)
        paths = [
            folder / f"{chosen.tokens}-{chosen.shared}.{number}" for number in range(chosen.models)
        ]
        for number, path in enumerate(paths):
            if not path.exists():
                model_of(number, chosen.tokens, chosen.shared, path)
        size = sum(path.stat().st_size for path in paths)
        print(f"{len(paths)} models of {chosen.tokens:,} tokens, {size / 1e6:,.0f} MB", flush=True)
        started, before = time.perf_counter(), os.times()
        command = [sys.executable, "-m", "nbspam", "merge", *map(str, paths)]
        subprocess.run([*command, "-o", str(folder / "merged")], check=True)
        after, peak = os.times(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        processor = sum(after[2:4]) - sum(before[2:4])
        seconds = time.perf_counter() - started
        print(f"{seconds:.1f} s, {processor:.1f} s of processor time, peak {peak / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
