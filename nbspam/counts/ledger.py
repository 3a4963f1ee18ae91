"""The ledger, and everything else that a model remembers besides its counts.

The ledger says which messages were learned, in which class and on which day, and whether a person
has told it one message at a time or has filed many at once.  With it a model recognises a message
that comes again, and can move or un-learn a message that it learned in the wrong class.  It stores
the digests of messages, not their text: about 11 bytes per message.

Secret: how a message is found (by bisection in sorted digests), and the names of these arrays in
model files.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Indices, Integers, Keys, Strings
from nbspam.counts.sample import Sample
from nbspam.mail.digest import NEWEST, OLDEST, is_of_mail
from nbspam.tokens.documents import Documents


class Filed(NamedTuple):
    """Where a model has a message."""

    label: str | None  # None: nowhere
    told: bool  # whether a person has told the label


NOT_FILED = Filed(None, False)


class Ledger(NamedTuple):
    """The learned messages, in the order of their digests."""

    digests: Keys  # (n_docs,) ascending, unique
    labels: Indices  # (n_docs,) index into the model's classes
    days: Days  # (n_docs,) since 1970-01-01
    told: Booleans  # (n_docs,) whether a person has told the class: it is not doubted

    @property
    def has_mail(self) -> bool:
        """Whether any of the messages are mail, and not texts."""
        return len(self.digests) > 0 and is_of_mail(int(self.digests[0]))

    def find(self, digests: Keys) -> Integers:
        """Return the positions of digests in the ledger, -1 for unknown ones; same shape."""
        if not len(self.digests):
            return np.full(len(digests), -1)
        place = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        place[self.digests[place] != digests] = -1
        return place

    def only(self, digests: Keys) -> "Ledger":
        """Return the ledger of some of its messages."""
        chosen = np.isin(self.digests, digests)
        return Ledger(
            self.digests[chosen], self.labels[chosen], self.days[chosen], self.told[chosen]
        )


def ledger_of(
    digests: Keys, names: Strings, days: Days, classes: Sequence[str], told: Booleans | None = None
) -> Ledger:
    """Return the ledger of messages in any order.

    names: (n_docs,) the classes.  told: (n_docs,), None if no person has told any class.
    """
    order = np.argsort(digests)
    labels = np.searchsorted(np.array(classes, np.str_), names[order])
    small = np.min_scalar_type(max(len(classes) - 1, 0))
    told = np.zeros(len(order), np.bool_) if told is None else told[order]
    return Ledger(digests[order], labels.astype(small), days[order], told)


class Memory(NamedTuple):
    """What a model remembers besides its counts, to learn more messages later."""

    ledger: Ledger
    sample: Sample
    last_seen: Days  # (n_features,) day each token was last learned, since 1970-01-01
    decayed: int = 0  # the day on which counts were last faded; 0: never
    versions: tuple[int, ...] = (NEWEST,)  # of the digests, ascending (see mail/digest.py)
    has_ledger: bool = True  # whether the ledger has all messages, or only those of the sample

    @property
    def sample_labels(self) -> Integers:
        """The classes of the sample's messages, shape (n_docs,), index into the classes."""
        return self.ledger.labels[self.ledger.find(self.sample.digests)].astype(np.int64)

    @property
    def sample_told(self) -> Booleans:
        """Whether a person has told the classes of the sample's messages, shape (n_docs,)."""
        return self.ledger.told[self.ledger.find(self.sample.digests)]

    @property
    def has_older(self) -> bool:
        """Whether mail may be known by digests of an older version."""
        return self.versions != (NEWEST,)

    def only(self, columns: Integers) -> "Memory":
        """Return the memory of these columns (ascending) only."""
        names = np.full(len(self.last_seen), -1)
        names[columns] = np.arange(len(columns))
        documents = self.sample.documents.on(names).over(np.arange(len(columns)))
        sample = self.sample._replace(documents=documents)
        return self._replace(sample=sample, last_seen=self.last_seen[columns])


def memory_to_dict(memory: Memory) -> dict[str, Any]:
    """Return the memory as plain values for the model file."""
    ledger, sample = memory.ledger, memory.sample
    counts = sample.documents.counts
    if counts is not None:
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))  # most are small
    only_sample = {} if memory.has_ledger else {"ledger": False}  # older files do not say
    return only_sample | {
        "digest": ledger.digests,
        "digest_versions": list(memory.versions),
        "label": ledger.labels,
        "day": ledger.days,
        "told": np.flatnonzero(ledger.told).astype(np.uint32),
        "last_seen": memory.last_seen,
        "decayed": memory.decayed,
        "sample_bits": sample.bits,
        "sample_digest": sample.digests,
        "sample_offsets": sample.documents.offsets.astype(np.uint32),
        "sample_column": sample.documents.columns.astype(np.uint32, copy=False),
        "sample_count": counts,
    }


def memory_from_dict(state: dict[str, Any], n_features: int) -> Memory:
    """Return the memory in a model file, the inverse of `memory_to_dict`.

    Raises ValueError or KeyError.
    """
    told = np.zeros(len(state["digest"]), np.bool_)
    told[state.get("told", [])] = True  # older files do not say
    ledger = Ledger(state["digest"], state["label"], state["day"], told)
    documents = Documents(
        np.arange(n_features),
        state["sample_offsets"].astype(np.int64),
        state["sample_column"],
        state["sample_count"],
    )
    sample = Sample(state["sample_bits"], state["sample_digest"], documents)
    if not (
        len(ledger.digests) == len(ledger.labels) == len(ledger.days)
        and state["last_seen"].shape == (n_features,)
        and documents.n_docs == len(sample.digests)
        and documents.offsets[-1] == len(documents.columns)
    ):
        raise ValueError("its ledger and sample do not fit")
    versions = tuple(state.get("digest_versions", [OLDEST]))  # older files do not say
    has_ledger = state.get("ledger", True)
    return Memory(ledger, sample, state["last_seen"], state["decayed"], versions, has_ledger)
