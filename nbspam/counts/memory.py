"""What a model remembers besides its counts, so that it can learn on.

Secret: under which names that stands in the model's file.
"""

from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Days, Integers
from nbspam.counts.ledger import Ledger
from nbspam.counts.sample import Kept


class Memory(NamedTuple):
    """What a model must remember besides its counts, to learn on."""

    ledger: Ledger
    sample: Kept
    last_seen: Days  # (n_features,) on which each token was learned last, since 1970-01-01
    decayed: int = 0  # the day on which counts were made to fade last; 0: never


def only_columns(memory: Memory, columns: Integers) -> Memory:
    """Return what is remembered of these columns (ascending) alone."""
    sample = memory.sample
    place = np.full(len(memory.last_seen), -1)
    place[columns] = np.arange(len(columns))
    column = place[sample.columns]
    known = column >= 0
    offsets = np.append(0, np.cumsum(known))[sample.offsets]
    kept = Kept(
        sample.bits,
        sample.digests,
        offsets.astype(np.uint32),
        column[known].astype(np.uint32),
        None if sample.counts is None else sample.counts[known],
    )
    return memory._replace(sample=kept, last_seen=memory.last_seen[columns])


def memory_to_dict(memory: Memory) -> dict[str, Any]:
    """Return plain values for the model file."""
    ledger, sample = memory.ledger, memory.sample
    counts = sample.counts
    if counts is not None:
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))  # most are small
    return {
        "digest": ledger.digests,
        "label": ledger.labels,
        "day": ledger.days,
        "last_seen": memory.last_seen,
        "decayed": memory.decayed,
        "sample_bits": sample.bits,
        "sample_digest": sample.digests,
        "sample_offsets": sample.offsets,
        "sample_column": sample.columns,
        "sample_count": counts,
    }


def memory_from_dict(state: dict[str, Any], n_features: int) -> Memory:
    """Return what a model file holds; the inverse; raises ValueError, KeyError."""
    ledger = Ledger(state["digest"], state["label"], state["day"])
    sample = Kept(
        state["sample_bits"],
        state["sample_digest"],
        state["sample_offsets"],
        state["sample_column"],
        state["sample_count"],
    )
    if not (
        len(ledger.digests) == len(ledger.labels) == len(ledger.days)
        and state["last_seen"].shape == (n_features,)
        and len(sample.offsets) == len(sample.digests) + 1
        and sample.offsets[-1] == len(sample.columns)
    ):
        raise ValueError("its ledger and sample do not fit")
    return Memory(ledger, sample, state["last_seen"], state["decayed"])
