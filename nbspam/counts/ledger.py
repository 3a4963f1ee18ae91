"""The ledger: which messages a model has learned, as what, and on which day.

It knows messages by their digests alone, 11 bytes each, and so says no to one that comes
again, and as what to un-learn one that was learned wrongly.

Secret: how a message is found again (bisection in sorted digests).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Days, Indices, Integers, Keys, Strings


class Ledger(NamedTuple):
    """Learned messages in the order of their digests; classes by index."""

    digests: Keys  # (n_docs,) ascending, unique
    labels: Indices  # (n_docs,) index into the model's classes
    days: Days  # (n_docs,) since 1970-01-01

    def find(self, digests: Keys) -> Integers:
        """Return where these digests stand, -1 for those unknown; same shape."""
        if not len(self.digests):
            return np.full(len(digests), -1)
        place = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        place[self.digests[place] != digests] = -1
        return place


def ledger_of(digests: Keys, names: Strings, days: Days, classes: Sequence[str]) -> Ledger:
    """Return the ledger of messages in any order; names: (n_docs,) of their classes."""
    order = np.argsort(digests)
    labels = np.searchsorted(np.array(classes, np.str_), names[order])
    small = np.min_scalar_type(max(len(classes) - 1, 0))
    return Ledger(digests[order], labels.astype(small), days[order])
