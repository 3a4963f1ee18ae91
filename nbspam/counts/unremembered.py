"""Counting without a ledger: only the messages of the sample are remembered.

Secret: how the sample gets no message twice.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from nbspam.arrays import Booleans, Keys, Strings
from nbspam.counts.repeats import Read
from nbspam.counts.sample import Messages, Sampling


class Sampled:
    """Says which of the messages that come the sample may take."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._told: dict[int, bool] = {}  # by digest, of all messages that ever were in the sample

    def new_of(self, parts: Iterable[Read]) -> list[Messages]:
        """Return the messages to add to the sample: those that it wants and did not get before."""
        new = []
        for part, told in parts:
            chosen = self._sampling.wants(part.digests)
            for row in np.flatnonzero(chosen).tolist():
                digest = int(part.digests[row])
                chosen[row] = digest not in self._told
                self._told.setdefault(digest, told[row])
            new.append(part.take(chosen))
        return new

    def known(self, sample: Sequence[Messages]) -> tuple[Keys, Strings, Booleans]:
        """Return the digests and classes of the sample's messages, and whether each was told."""
        digests = np.concatenate([np.empty(0, np.uint64), *(part.digests for part in sample)])
        labels = np.concatenate([np.empty(0, np.str_), *(part.labels for part in sample)])
        return digests, labels, np.array([self._told[d] for d in digests.tolist()], np.bool_)
