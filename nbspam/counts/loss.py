"""Loss: by how much the counts of a table that has forgotten tokens may be too small.

A token that was forgotten can come again, and is then counted from there on.  The number of
messages that it had before is lost, but is bounded: when tokens are forgotten, the largest number
of messages that any of them can have been in is noted, and every token that comes later may lack
so many.  Tokens that were there all the time lack none.  This is lossy counting (Manku & Motwani
2002) with a limit on memory instead of one on the error, and it adds up as counts do.

Secret: how the bound follows from what is forgotten and from what is added.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Integers


class Loss(NamedTuple):
    """By how many messages the counts of tokens may be too small; they are never too large."""

    of_each: Integers  # (n_features,)
    of_others: int  # messages that a token which the table does not have may have been in

    @property
    def n_exact(self) -> int:
        """The number of tokens that were never forgotten, so that their counts are exact."""
        return int((self.of_each == 0).sum())

    def take(self, columns: Integers) -> "Loss":
        """Return the loss of these columns only."""
        return self._replace(of_each=self.of_each.take(columns))

    def appended(self, n_more: int) -> "Loss":
        """Return the loss of a table with more tokens, which it did not have until now."""
        more = np.full(n_more, self.of_others, self.of_each.dtype)
        return self._replace(of_each=np.append(self.of_each, more))

    def faded(self, factor: float) -> "Loss":
        """Return the loss after all counts were multiplied by a factor."""
        of_each = np.ceil(self.of_each * factor).astype(np.int64)
        return Loss(of_each, int(np.ceil(self.of_others * factor)))


def loss_of_sum(parts: Sequence[tuple[int, Loss | None]], column: Integers, n: int) -> Loss | None:
    """Return the loss of a sum of tables; None if none of them has lost anything.

    parts: the number of tokens of each table, and its loss.  column: the columns that all their
    tokens in turn have in the sum, which has n columns.
    """
    if all(loss is None for _, loss in parts):
        return None
    of_others = sum(loss.of_others for _, loss in parts if loss is not None)
    of_each = np.full(n, of_others, np.int64)
    end = 0
    for n_tokens, loss in parts:
        own, end = column[end : end + n_tokens], end + n_tokens
        if loss is not None:
            of_each[own] += loss.of_each.astype(np.int64) - loss.of_others
    return Loss(of_each, of_others)


def loss_without(loss: Loss | None, frequency: Integers, kept: Integers) -> Loss | None:
    """Return the loss of a table that forgets all but some columns.

    loss: that of the table before.  frequency: (n_features,) messages of each of its tokens.
    kept: the columns that stay, ascending.
    """
    before = Loss(np.zeros(len(frequency), np.int64), 0) if loss is None else loss
    is_gone: Booleans = np.ones(len(frequency), np.bool_)
    is_gone[kept] = False
    most = (frequency[is_gone].astype(np.int64) + before.of_each[is_gone]).max(initial=0)
    if loss is None and not most:
        return None
    return Loss(before.of_each.take(kept), max(before.of_others, int(most)))


def most_frequent(frequency: Integers, n: int, last_seen: Days | None = None) -> Integers:
    """Return the columns of the n tokens in most messages, ascending.

    frequency: (n_features,), more than n, in the order of the tokens' keys.  Of equally frequent
    tokens those stay that were seen last (last_seen: (n_features,) days), and then those with the
    largest keys: everywhere the same, so that what one table keeps another one has kept too.
    """
    edge = np.partition(frequency, len(frequency) - n)[len(frequency) - n]
    stays: Booleans = frequency > edge
    is_tied: Booleans = frequency == edge
    missing = n - int(np.count_nonzero(stays))
    if last_seen is not None:
        # Of each day, how many were seen then or later: a sort would need memory for all ties.
        until_now = np.cumsum(np.bincount(last_seen[is_tied])[::-1])[::-1]
        day = int(np.flatnonzero(until_now >= missing)[-1])
        later = is_tied & (last_seen > day)
        missing -= int(np.count_nonzero(later))
        stays |= later
        is_tied &= last_seen == day
    stays[np.flatnonzero(is_tied)[np.count_nonzero(is_tied) - missing :]] = True
    return np.flatnonzero(stays)
