"""One model from what others hold: counts add, ledgers and samples are joined.

Whatever way a model's messages came together (trained at once, learned on, un-learned,
merged), what is assembled here depends on them alone: everything is put in the order of
keys and digests first.

Secret: how the parts of a living model are put together again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Integers, Keys, Strings
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import derive
from nbspam.counts.changes import Change, added, sample_of_changes, signed_table
from nbspam.counts.ledger import ledger_of
from nbspam.counts.memory import Memory
from nbspam.counts.sample import Sample, Sampling, keep, sample_of
from nbspam.counts.table import CountTable
from nbspam.settings import PRESENCE, Settings


class Part(NamedTuple):
    """Messages that go into a model: all but their counts."""

    digests: Keys  # (n_docs,)
    names: Strings  # (n_docs,) of their classes
    days: Days  # (n_docs,) on which they were learned
    sample: Sample  # those of them that are at hand
    bits: int  # zero bits that end the digests of those
    keys: Keys  # (n_keys,) of tokens
    last_seen: Days  # (n_keys,)
    decayed: int = 0  # the day on which counts were made to fade last


def part_of(classifier: Classifier, without: Sequence[int] = ()) -> Part:
    """Return what a model holds, without the messages of some digests."""
    memory = memory_of(classifier)
    ledger, kept = memory.ledger, memory.sample
    names = np.array(classifier.classes, np.str_)[ledger.labels]
    gone = np.array(without, np.uint64)
    stays: Booleans = ~np.isin(ledger.digests, gone)
    sample = sample_of(kept, names[ledger.find(kept.digests)], classifier.table.vocabulary)
    return Part(
        ledger.digests[stays],
        names[stays],
        ledger.days[stays],
        sample.take(~np.isin(kept.digests, gone)),
        kept.bits,
        classifier.table.vocabulary.keys,
        memory.last_seen,
        memory.decayed,
    )


def _part_of_changes(changes: Sequence[Change]) -> Part:
    """Return the messages that changes leave learned."""
    last = {change.digest: change for change in changes}
    learned = [change for change in last.values() if change.after is not None]
    seen = [change for change in changes if change.after is not None]
    return Part(
        np.array([change.digest for change in learned], np.uint64),
        np.array([change.after for change in learned], np.str_),
        np.array([change.day for change in learned], np.uint16),
        sample_of_changes(learned),
        0,
        np.concatenate([np.empty(0, np.uint64), *(change.keys for change in seen)]),
        np.repeat(
            np.array([change.day for change in seen], np.uint16),
            [len(change.keys) for change in seen],
        ),
    )


def assembled(table: CountTable, parts: Sequence[Part], settings: Settings) -> Classifier:
    """Return the model of these counts and messages; raises NotTrainedError."""
    sampling = Sampling(settings.weighting, max(part.bits for part in parts))
    sampling.add(part.sample for part in parts)
    last_seen = np.zeros(len(table.vocabulary), np.uint16)
    for part in parts:
        column = table.vocabulary.columns(part.keys)
        np.maximum.at(last_seen, column[column >= 0], part.last_seen[column >= 0])
    ledger = ledger_of(
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.names for part in parts]),
        np.concatenate([part.days for part in parts]),
        table.classes,
    )
    kept = keep(sampling.samples, sampling.bits, table.vocabulary, settings.weighting != PRESENCE)
    decayed = max(part.decayed for part in parts)
    return derive(table, Memory(ledger, kept, last_seen, decayed), settings)


def compacted(base: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the model of a model's messages after some changes."""
    if not changes:
        return base
    table = added(
        base.table, signed_table(changes, base.table.vocabulary, base.settings.weighting)
    )
    touched = [change.digest for change in changes]
    parts = [part_of(base, touched), _part_of_changes(changes)]
    return reassembled(base, table, parts)


def reassembled(base: Classifier, table: CountTable, parts: Sequence[Part]) -> Classifier:
    """Return a model as `assembled`, with what its owner has chosen for the one before."""
    model = assembled(table, parts, base.settings)
    return replace(model, cutoffs=base.cutoffs) if model.classes == base.classes else model


def memory_of(classifier: Classifier) -> Memory:
    """Return what a model remembers; only of models that `living` has opened."""
    assert classifier.memory is not None
    return classifier.memory


def message_at_hand(classifier: Classifier, digest: int) -> Change | None:
    """Return a message of the model's sample, as a change from None to None; or None."""
    sample = memory_of(classifier).sample
    place = int(np.searchsorted(sample.digests, np.uint64(digest)))
    if place == len(sample.digests) or sample.digests[place] != digest:
        return None
    start, end = sample.offsets[place : place + 2].tolist()
    counts: Integers = np.ones(end - start, np.int64)
    if sample.counts is not None:
        counts = sample.counts[start:end].astype(np.int64)
    keys = classifier.table.vocabulary.keys[sample.columns[start:end]]
    nothing = np.empty(0, np.uint8)
    return Change(digest, None, None, 0, keys, counts, nothing, nothing, nothing)
