"""Means: what the tokens of each group say of a message that is ham or spam.

Whoever writes spam may add as many words of ham as they like.  Of ham and spam, therefore, only
the strongest tokens of each group count, fewer of those for ham.  Words that the reader does not
see can only speak for spam.

Secret: which tokens count, and how much.
"""

from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats, Floats32, Integers, Octets
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM
from nbspam.tokens.definition import GROUPS
from nbspam.tokens.documents import Documents

# E-002 chose these constants, the same for all corpora, and E-119 the last one.
ALPHA = 0.03  # Lidstone's addend to the presence of a token in a class
BAND = 2.0  # nats; tokens with weaker log-odds are ignored
DAMPING = 5.0  # added to the number of tokens by which a group's sum is divided
STRONGEST = 15, 30  # the number of a group's tokens for ham, and for spam, that count at most
_ABOVE_ALL = 64.0  # nats; no log-odds of counts are as strong
# The group with which each group's tokens are averaged: subjects are short, and count as text.
_WITH = np.arange(len(GROUPS))
_WITH[GROUPS.index("subject")] = GROUPS.index("text")
HIDDEN = GROUPS.index("hidden")
_LIMITS = np.tile(STRONGEST, (len(GROUPS), 1))
_LIMITS[HIDDEN, 0] = 0  # no hidden token speaks for ham


class Counting(NamedTuple):
    """The entries of documents that count, in any order."""

    entry: Integers  # (n,) their numbers
    cell: Integers  # (n,) document * n_groups + group with which the token is averaged
    odds: Floats | Floats32  # (n,) log-odds, nats


def log_odds(feature_count: Floats, class_count: Floats, left_out: int | None = None) -> Floats:
    """Return log P(token | class 1) / P(token | class 0), nats, shape (n_features,).

    feature_count: (n_features, 2) documents.  left_out: 0 or 1, to leave a counted document of
    this class out: each token gets the log-odds that it has without one document of the class
    that has the token.  Log-odds weaker than BAND are 0.
    """
    n = np.array(class_count, np.float64)
    count = np.array(feature_count.T, np.float64, order="C")  # contiguous for each class
    if left_out is not None:
        n[left_out] -= 1
        count[left_out] -= 1
        np.maximum(count[left_out], 0, out=count[left_out])
    known = count.any(axis=0)
    likelihood = np.log(count + ALPHA) - np.log(n + 2 * ALPHA)[:, None]
    odds = likelihood[1] - likelihood[0]
    odds[(np.abs(odds) < BAND) | ~known] = 0.0
    return np.asarray(odds)


def limits_of(table: CountTable) -> Integers | None:
    """Return how many tokens of each group count for ham and for spam, shape (n_groups, 2).

    None: all count, because the classes are others, which nobody wants to be taken for.
    """
    return _LIMITS if table.classes == HAM_AND_SPAM else None


def strongest(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> Counting:
    """Return the entries that count.

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token; zeros do not count.  Of each
    group's tokens for a class those with the strongest log-odds count, and of equally strong ones
    those that come first in the document.  limits: their number, from `limits_of`.
    """
    entry = np.flatnonzero(odds)
    cell = documents.rows().take(entry).astype(np.int64)
    cell *= len(GROUPS)
    cell += _WITH[groups].take(documents.columns.take(entry))
    odds = odds.take(entry)
    if limits is None:
        return Counting(entry, cell, odds)
    place = 2 * cell + (odds > 0)
    order = np.argsort(_ABOVE_ALL * place - np.abs(odds), kind="stable")
    number = np.bincount(place)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
    counts = order[rank < limits.ravel().take(place.take(order) % limits.size)]
    return Counting(entry[counts], cell[counts], odds[counts])


def group_means(
    documents: Documents, groups: Octets, odds: Floats | Floats32, limits: Integers | None
) -> Floats:
    """Return damped means of log-odds by document and group, nats, shape (n_docs, n_groups).

    groups: (n_tokens,); odds: (nnz,) log-odds of each entry's token.  limits: see `strongest`.
    """
    _, cell, odds = strongest(documents, groups, odds, limits)
    n_cells = documents.n_docs * len(GROUPS)
    total = np.bincount(cell, odds, n_cells).reshape(-1, len(GROUPS))
    number = np.bincount(cell, minlength=n_cells).reshape(-1, len(GROUPS))
    return np.asarray(total / divisors(number, limits))


def divisors(number: Integers, limits: Integers | None) -> Floats:
    """Return what sums of log-odds are divided by; number: (..., n_groups) of their tokens.

    The number of hidden tokens does not matter, so that no further one lowers the score.
    """
    by = number + DAMPING
    if limits is not None:
        by[..., HIDDEN] = STRONGEST[1] + DAMPING
    return np.asarray(by)
