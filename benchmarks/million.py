"""Estimate the size of a model of a million messages, made up by statistical laws of mail.

usage: python benchmarks/million.py [--messages 1000000] [--folder DIR]

By Heaps' law the vocabulary grows with messages ** BETA; BETA and TOKENS are those of the 6,046
messages of the SpamAssassin corpus (54,484 tokens in 1,139 of them, 183,188 in all).  By Karlin's
law a share BETA of such a vocabulary occurs in one message, BETA (1 - BETA) / 2 in two, and so
on.  Ledger and sample are full.  Printed are the tokens kept, the size of the model file, and the
seconds it takes to load.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import derive
from nbspam.counts.ledger import Memory, ledger_of
from nbspam.counts.sample import MAX_SAMPLE, Sample
from nbspam.counts.table import CountTable
from nbspam.settings import PRESETS
from nbspam.store.open import load, save
from nbspam.tokens.documents import Documents
from nbspam.tokens.vocabulary import Vocabulary

MESSAGES, TOKENS, BETA = 6_046, 183_188, 0.73
TOKENS_OF_A_MESSAGE = 310
TEXT = 12  # mean bytes of a token's text in the corpus
CLASSES = ("ham", "spam")
DAY = 20_000


def frequencies(rng: np.random.Generator, n_tokens: int, n_docs: int) -> np.ndarray:
    """Return the number of messages with each token, by Karlin's law, shape (n_tokens,)."""
    k = np.arange(1, n_docs)
    survival = np.concatenate([[1.0], np.cumprod((k - BETA) / k)])  # P(in more than k - 1)
    return np.searchsorted(-survival, -rng.random(n_tokens), side="right")


def documents(rng: np.random.Generator, n_docs: int, frequency: np.ndarray) -> Documents:
    """Return messages of TOKENS_OF_A_MESSAGE tokens each, fewer if one is drawn twice."""
    drawn = rng.choice(len(frequency), n_docs * TOKENS_OF_A_MESSAGE, p=frequency / frequency.sum())
    columns = np.sort(drawn.reshape(n_docs, -1).astype(np.uint32), axis=1)
    is_first = np.ones(columns.shape, np.bool_)
    is_first[:, 1:] = columns[:, 1:] != columns[:, :-1]
    offsets = np.append(0, np.cumsum(is_first.sum(axis=1)))
    return Documents(np.arange(len(frequency)), offsets, columns[is_first], None)


def model(n_docs: int) -> tuple[int, Classifier]:
    """Return the number of tokens in messages like these, and the model trained on them."""
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
    ledger = ledger_of(digests, names, days, CLASSES)
    in_sample = ledger.digests[:MAX_SAMPLE]
    sample = Sample(7, in_sample, documents(rng, len(in_sample), frequency))
    memory = Memory(ledger, sample, np.full(n_tokens, DAY, np.uint16))
    return n_tokens, derive(table, memory, PRESETS["mail"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--messages", type=int, default=1_000_000, help="number of messages  [default: 1000000]"
    )
    parser.add_argument("--folder", help="folder for the model file  [default: a temporary one]")
    options = parser.parse_args()
    n_tokens, classifier = model(options.messages)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "m.nbspam"
        save(str(path), classifier)
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
