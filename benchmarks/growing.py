"""Train on an endless stream: synthetic messages whose vocabulary grows as n ** 0.92.

usage: python benchmarks/growing.py [--messages N] [--max-tokens K] [--no-ledger] [--rule RULE]

A real stream of 75,419 messages had 1.28 million tokens, three quarters of them in one message,
and grew as n ** 0.92.  Here a message has L draws.  A share FRESH of them comes from Zipf's law
over all whole numbers with the exponent 1 / 0.92, which by Karlin's theorem makes the vocabulary
grow as n ** 0.92; the others from a Zipf-Mandelbrot law over COMMON words.  A share COPIES of the
messages repeats the fresh draws of another message, as mail of one campaign does.  A third of the
words belongs to one class.

Messages are made as documents over keys, and are counted, summed, sampled and fitted by the
library: only reading and tokenising are left out.  One token of SHARE is counted exactly beside,
to find what the limit lost.  --rule tries other rules of what to forget: `threshold` drops the
tokens of equally many messages together, `lossy` does so by count plus what it may lack (Manku &
Motwani 2002).
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from nbspam.classifier.training import train
from nbspam.counts.counting import Training
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, TableSum, without_empty
from nbspam.counts.tally import Tally
from nbspam.settings import PRESENCE, PRESETS
from nbspam.store.open import load, save
from nbspam.tokens.definition import HASH_SHIFT, RIDER_BITS
from nbspam.tokens.documents import Documents, offsets_of

BETA = 0.92
COMMON, SHIFT = 30_000, 3.0
FRESH, COPIES = 0.49, 0.15
CLASSES = np.array(["ham", "spam"])
AT_ONCE = 2_000  # messages
TEXT = 12  # bytes of a token
SHARE = 1024
DAY = 20_000
_WORD = np.uint64(1 << RIDER_BITS)  # the kind of a word of the text
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Batch(NamedTuple):
    """What `Tally` wants of a batch of messages."""

    documents: Documents
    groups: np.ndarray

    @property
    def keys(self) -> np.ndarray:
        """The keys of the tokens, ascending."""
        return np.asarray(self.documents.tokens)

    def texts(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return texts of TEXT letters, made of the bits of the keys."""
        keys = self.keys[wanted]
        bits = keys[:, None] >> np.arange(20, 20 + 3 * TEXT, 3).astype(np.uint64)
        blob = 97 + (bits & np.uint64(7)).astype(np.uint8)
        return blob.ravel(), offsets_of(np.full(len(keys), TEXT))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Return hashes of numbers."""
    for _ in range(2):
        numbers = (numbers ^ (numbers >> np.uint64(29))) * _ODD
    return np.asarray(numbers ^ (numbers >> np.uint64(32)))


class Stream:
    """The stream: the same messages for the same number of them in a batch."""

    def __init__(self, length: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.length, self.n_fresh = length, round(length * FRESH)
        weight = np.cumsum(1 / (np.arange(COMMON) + SHIFT))
        self.common = weight / weight[-1]

    def batch(self, n: int) -> tuple[Batch, np.ndarray, np.ndarray]:
        """Return n messages, their classes and their digests."""
        rng = self.rng
        y = rng.integers(0, 2, n)
        # Ranks beyond 2**53 are not whole numbers any more, but still as many.
        ranks = (1 - rng.random((n, self.n_fresh))) ** (-BETA / (1 - BETA))
        fresh = np.floor(ranks).view(np.uint64) | np.uint64(1 << 63)
        n_copies = round(n * COPIES)
        source = rng.integers(0, n - n_copies, n_copies)
        fresh[n - n_copies :], y[n - n_copies :] = fresh[source], y[source]
        u = rng.random((n, self.length - self.n_fresh))
        words = np.concatenate([fresh, np.searchsorted(self.common, u).astype(np.uint64)], axis=1)
        shared = mixed(words)
        own = mixed(shared ^ (y[:, None].astype(np.uint64) + np.uint64(1)))
        key = np.where(shared % np.uint64(3) == 0, own, shared)
        key = np.sort(key >> np.uint64(HASH_SHIFT) << np.uint64(HASH_SHIFT) | _WORD, axis=1)
        is_first = np.ones(key.shape, np.bool_)
        is_first[:, 1:] = key[:, 1:] != key[:, :-1]
        keys, columns = np.unique(key[is_first], return_inverse=True)
        documents = Documents(
            keys, offsets_of(is_first.sum(axis=1)), columns.astype(np.uint32), None
        )
        digests = rng.integers(0, 1 << 63, n, np.uint64)
        return Batch(documents, np.zeros(len(keys), np.uint8)), CLASSES[y], digests


class Exact:
    """The exact counts of one token of SHARE."""

    def __init__(self) -> None:
        self.keys, self.n = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._parts: list[np.ndarray] = []

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        middle = batch.keys >> np.uint64(40)  # not the high bits, by which ties are broken
        chosen = np.flatnonzero(middle % np.uint64(SHARE) == 0)
        n = np.bincount(batch.documents.columns, minlength=len(batch.keys))[chosen]
        self._parts.append(np.repeat(batch.keys[chosen], n))
        if len(self._parts) == 500:
            self.settle()

    def settle(self) -> None:
        """Add up what was counted so far."""
        parts = np.concatenate([np.empty(0, np.uint64), *self._parts])
        keys, n = np.unique(parts, return_counts=True)
        both, place = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        self.n = np.bincount(place, np.concatenate([self.n, n])).astype(np.int64)
        self.keys, self._parts = both, []


def count(options: argparse.Namespace) -> tuple[Training, Exact]:
    """Return what training is given of the stream, and the exact counts beside it."""
    stream, exact = Stream(options.tokens, options.seed), Exact()
    total, sampling = TableSum(options.max_tokens), Sampling(PRESENCE)
    tally = Tally(PRESENCE)
    label: dict[int, str] = {}  # as `counting` keeps it, whatever the mail
    start = time.perf_counter()
    for done in range(0, options.messages, AT_ONCE):
        n = min(AT_ONCE, options.messages - done)
        batch, names, own = stream.batch(n)
        exact.add(batch)
        tally.add(cast(Any, batch), names.tolist(), min(done // AT_ONCE, (1 << RIDER_BITS) - 1))
        sampling.add([Messages(names, own, batch.documents)])
        if not options.no_ledger:
            label.update(zip(own.tolist(), names.tolist(), strict=True))
        if tally.is_full:
            total.add(tally.table())
            tally = Tally(PRESENCE)
        if done // AT_ONCE % 500 == 0:
            print(f"{done:,}: {time.perf_counter() - start:.0f} s, {peak():.0f} MB", flush=True)
    total.add(tally.table())
    table = total.total()
    table = without_empty(table._replace(vocabulary=table.vocabulary.with_riders(0)))
    exact.settle()
    kept = sampling.messages
    digests = np.concatenate([part.digests for part in kept])
    labels = np.concatenate([part.labels for part in kept])
    if not options.no_ledger:
        digests = np.fromiter(label, np.uint64, len(label))
        labels = np.array(list(label.values()), np.str_)
    return Training(
        table,
        tuple(kept),
        sampling.bits,
        digests,
        labels,
        has_ledger=not options.no_ledger,
    ), exact


def other_rule(is_lossy: bool) -> Callable[[CountTable, int], CountTable]:
    """Return what drops the rarest tokens of a table by another rule than `limited`."""

    def limited(table: CountTable, max_tokens: int) -> CountTable:
        rank = table.document_frequency.astype(np.int64)
        if len(rank) <= max_tokens:
            return table
        if is_lossy and table.loss is not None:
            rank = rank + table.loss.of_each
        edge = np.partition(rank, len(rank) - max_tokens - 1)[len(rank) - max_tokens - 1]
        return table.forgetting(np.flatnonzero(rank > edge))

    return limited


def peak() -> float:
    """Return the largest memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(table: CountTable, exact: Exact) -> None:
    """Print what the table says of its loss, and what was lost of one token of SHARE."""
    if table.loss is None:
        once = int((table.document_frequency == 1).sum())
        print(f"nothing forgotten; {once / len(table.vocabulary):.1%} of tokens in one message")
        return
    print(
        f"{table.loss.n_exact:,} tokens exact, the others lack {table.loss.of_each.max()}"
        f" messages at most; a token that is not there had {table.loss.of_others} at most"
    )
    column = table.vocabulary.columns(exact.keys)
    known = column >= 0
    had, column = exact.n[known], column[known]
    found, lacks = table.document_frequency[column], table.loss.of_each[column]
    assert (found <= had).all()
    assert (had <= found + lacks).all()
    assert (exact.n[~known] <= table.loss.of_others).all()
    lost = had - found
    print(
        f"found of one token of {SHARE:,}: {len(exact.n):,} seen, {len(had):,} kept;"
        f" {(lost == 0).mean():.2%} of these exact, the others lack {lost.max()} at most;"
        f" the most frequent that is not there had {exact.n[~known].max()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=100, help="draws of each message")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--no-ledger", action="store_true")
    parser.add_argument("--rule", choices=["library", "threshold", "lossy"], default="library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", metavar="FILE", help="keep the model")
    options = parser.parse_args()
    if options.rule != "library":
        setattr(CountTable, "limited", other_rule(options.rule == "lossy"))  # noqa: B010
    start = time.perf_counter()
    training, exact = count(options)
    table, counted = training.table, time.perf_counter()
    print(f"{options.messages:,} messages of {options.tokens} draws, limit {options.max_tokens}")
    print(f"counted in {counted - start:.0f} s, {peak():.0f} MB at most")
    print(f"{len(table.vocabulary):,} tokens")
    compare(table, exact)
    del exact
    classifier = train(training, PRESETS["mail"], DAY)
    print(f"fitted in {time.perf_counter() - counted:.0f} s, {peak():.0f} MB at most")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.save or Path(folder) / "m.nbspam")
        save(str(path), classifier)
        size, start = os.path.getsize(path), time.perf_counter()
        load(str(path))
        print(
            f"model: {len(classifier.table.vocabulary):,} tokens,"
            f" {size / 1e6:.1f} MB, loads in {time.perf_counter() - start:.2f} s"
        )
    if classifier.table.loss is not None:
        print(
            f"{classifier.table.loss.n_exact:,} of them exact, the others lack"
            f" {classifier.table.loss.of_each.max()} messages at most; a token that is not there"
            f" had {classifier.table.loss.of_others} at most"
        )
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    print(f"processor time {cpu.ru_utime + cpu.ru_stime:.0f} s, {peak():.0f} MB at most")


if __name__ == "__main__":
    main()
