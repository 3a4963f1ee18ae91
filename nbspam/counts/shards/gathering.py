"""Gathering: the messages of all shares of a corpus, as one process would have counted them.

Only messages that come several times need a look at one by one; all others stay where they are,
in arrays that may be mapped from files.  The counts are added elsewhere, as they may be larger
than memory.

Secret: how copies are found across shares.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers, Keys, Strings
from nbspam.counts.repeats import Read, Unique
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.shards.shares import Share, messages_of
from nbspam.counts.table import CountTable
from nbspam.tokens.documents import united

_AT_ONCE = 1 << 14  # messages that come several times


class Gathered(NamedTuple):
    """The messages of all shares, each of them once."""

    corrections: CountTable  # to be added to the sum of the shares' counts; without texts
    messages: tuple[Messages, ...]  # the sample
    bits: int  # number of zero bits at the end of the digests in the sample
    digests: Keys  # (n_docs,)
    labels: Strings  # (n_docs,)
    told: Booleans  # (n_docs,)
    repeated: int  # messages that came again


def gather(shares: Sequence[Share], weighting: str) -> Gathered:
    """Return the messages of all shares of a corpus."""
    digests = _together([share.digests for share in shares], np.uint64)
    again = _come_again(digests)
    sampling, unique = Sampling(weighting), Unique(weighting)
    for part in _in_order(shares, np.flatnonzero(again)):
        sampling.add(unique.new_of([part]))
    alone = np.flatnonzero(~again)
    n_tokens = _together([np.diff(share.documents.offsets) for share in shares], np.int64)
    chosen = sampling.wanted(digests[alone], n_tokens[alone])
    for share, rows in _of_each(shares, alone[chosen]):
        sampling.add([messages_of(share, rows)])
    names = [np.array(share.table.classes, np.str_)[share.labels] for share in shares]
    told = _together([share.told for share in shares], np.bool_)
    return Gathered(
        unique.corrections(sampling.messages),
        tuple(unique.relabelled(sampling.messages)),
        sampling.bits,
        np.append(digests[alone], unique.digests),
        np.append(
            _together(names, np.str_)[alone], np.array(list(unique.label.values()), np.str_)
        ),
        np.append(told[alone], np.array([d in unique.told for d in unique.label], np.bool_)),
        unique.n_repeated,
    )


def _together(parts: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate([np.empty(0, kind), *parts])


def _come_again(digests: Keys) -> Booleans:
    """Return which digests come several times, shape (n_docs,)."""
    ascending = np.sort(digests)
    several = np.unique(ascending[1:][ascending[1:] == ascending[:-1]])
    return np.isin(digests, several) if len(several) else np.zeros(len(digests), np.bool_)


def _of_each(shares: Sequence[Share], rows: Integers) -> Iterator[tuple[Share, Integers]]:
    """Yield each share with those of the rows that are its own.

    rows: ascending, counted through all shares.
    """
    start = 0
    for share in shares:
        end = start + len(share.digests)
        low, high = np.searchsorted(rows, (start, end))
        yield share, rows[low:high] - start
        start = end


def _in_order(shares: Sequence[Share], rows: Integers) -> Iterator[Read]:
    """Yield messages in the order of the corpus, some at a time; rows: see `_of_each`."""
    positions = _together([share.positions for share in shares], np.int64)[rows]
    told = _together([share.told for share in shares], np.bool_)[rows]
    order = np.argsort(positions)
    for start in range(0, len(rows), _AT_ONCE):
        some = np.sort(order[start : start + _AT_ONCE])
        parts = [messages_of(share, own) for share, own in _of_each(shares, rows[some])]
        turn = np.argsort(positions[some])
        yield (
            Messages(
                np.concatenate([part.labels for part in parts])[turn],
                np.concatenate([part.digests for part in parts])[turn],
                united([part.documents for part in parts]).take(turn),
            ),
            told[some][turn].tolist(),
        )
