"""How large a model of a million messages is, made up by the laws that real mail follows.

    python benchmarks/million.py [--messages 1000000] [--folder DIR]

Heaps: the vocabulary grows as messages ** BETA; both numbers are those of the 6,046
messages of the SpamAssassin corpus (54,484 tokens in 1,139 of them, 183,188 in all).
Karlin: of such a vocabulary, a share BETA stands in one message, BETA (1 - BETA) / 2 in
two, and so on.  Ledger and sample are full.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from nbspam.counts.memory import Memory

from nbspam.classifier.training import derive
from nbspam.counts.ledger import ledger_of
from nbspam.counts.sample import MAX_SAMPLE, Kept
from nbspam.counts.table import CountTable
from nbspam.settings import PRESETS
from nbspam.store.open import load_tokens as load
from nbspam.tokens.vocabulary import Vocabulary

MESSAGES, TOKENS, BETA = 6_046, 183_188, 0.73
TOKENS_OF_A_MESSAGE = 310
TEXT = 12  # bytes of a token's text, mean of the corpus
CLASSES = ("ham", "spam")
DAY = 20_000


def frequencies(rng: np.random.Generator, n_tokens: int, n_docs: int) -> np.ndarray:
    """Return in how many messages each token stands, by Karlin's law."""
    k = np.arange(1, n_docs)
    survival = np.concatenate([[1.0], np.cumprod((k - BETA) / k)])  # P(in more than k - 1)
    return np.searchsorted(-survival, -rng.random(n_tokens), side="right")


def model(n_docs: int):
    rng = np.random.default_rng(1)
    n_tokens = int(TOKENS * (n_docs / MESSAGES) ** BETA)
    frequency = frequencies(rng, n_tokens, n_docs)
    spam = rng.binomial(frequency, rng.beta(0.3, 0.3, n_tokens))
    counts = np.stack([frequency - spam, spam], axis=1).astype(np.float64)
    keys = np.unique(rng.integers(0, 1 << 44, n_tokens + n_tokens // 1000, np.uint64))
    keys = (keys << np.uint64(20))[:n_tokens]
    offsets = np.arange(0, TEXT * n_tokens + 1, TEXT)
    blob = rng.integers(97, 123, TEXT * n_tokens, np.uint8)
    words = Vocabulary(keys, blob, offsets, np.zeros(n_tokens, np.uint8))
    class_count = np.maximum(counts.max(axis=0), n_docs / 2)
    table = CountTable(CLASSES, class_count, words, counts, frequency)
    digests = np.unique(rng.integers(0, 1 << 63, n_docs, np.uint64))
    names = np.array(CLASSES)[rng.integers(0, 2, len(digests))]
    days = np.full(len(digests), DAY, np.uint16)
    n_entries = MAX_SAMPLE * TOKENS_OF_A_MESSAGE
    columns = rng.choice(n_tokens, n_entries, p=frequency / frequency.sum())
    columns = np.sort(columns.reshape(MAX_SAMPLE, -1).astype(np.uint32), axis=1)
    bounds = np.arange(0, n_entries + 1, TOKENS_OF_A_MESSAGE, dtype=np.uint32)
    ledger = ledger_of(digests, names, days, CLASSES)
    sample = Kept(7, ledger.digests[:MAX_SAMPLE], bounds, columns.ravel(), None)
    memory = Memory(ledger, sample, np.full(n_tokens, DAY, np.uint16))
    return n_tokens, derive(table, memory, PRESETS["mail"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where to do it  [default: a temporary folder]")
    options = parser.parse_args()
    n_tokens, classifier = model(options.messages)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "m.nbspam"
        classifier.save(str(path))
        size = path.stat().st_size
        start = time.perf_counter()
        load(str(path))
        seconds = time.perf_counter() - start
    kept = classifier.table
    rarest = int(kept.document_frequency.min())
    print(f"{options.messages:,} messages, {n_tokens:,} tokens seen")
    print(f"{len(kept.vocabulary):,} kept, the rarest in {rarest} messages")
    print(f"model file {size / 1e6:.1f} MB, loads in {seconds:.3f} s")


if __name__ == "__main__":
    main()
