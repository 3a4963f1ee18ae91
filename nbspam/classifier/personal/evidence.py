"""Evidence for one user's mail: the shared model's counts, and the user's own on top.

A user's messages are added to the counts of the shared model, with a weight: together, all
messages of the shared model count as SHARED of the user's.  A dozen messages thus tell much about
tokens that few know, and little about those that everybody uses.  What tells a user's kind of
mail apart may still be drowned by the rest of a message, so the user's tokens are corrected, too
(see `lessons`), and the more the rarer a token is in the shared model.

Secret: how much a user's messages count, and how the mail of several users is judged in one pass.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Floats, Floats32, Integers, Integers32, Keys
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.combining import (
    IN_LAYER,
    Combination,
    Weighed,
    limits_of,
    log_odds,
    prior_worth,
)
from nbspam.classifier.layer import bounded
from nbspam.tokens.documents import Documents
from nbspam.tokens.tokenizer import groups_of
from nbspam.verdicts import joint_of_log_odds

SHARED = 100.0  # messages of a user, as which all of the shared model's count: E-158
_LEAST = 1e-9  # length of values by which they are divided


class Own(NamedTuple):
    """What a user has taught, as judging needs it: no texts, and 20 bytes a token."""

    keys: Keys  # (n_tokens,) ascending
    values: Floats32  # (n_tokens, 3) messages of ham, and of spam, that have it; correction, nats
    class_count: Floats  # (2,)

    def columns(self, keys: Keys) -> Integers:
        """Return the place of each key, -1 for unknown keys; same shape as keys."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        place = np.searchsorted(self.keys, keys)
        place[self.keys.take(place, mode="clip") != keys] = -1
        return place

    @property
    def n_bytes(self) -> int:
        """The memory of its arrays."""
        return int(self.keys.nbytes + self.values.nbytes)


def n_learned(shared: Classifier, own: Own) -> float:
    """Return how many messages stand behind a user's verdicts, as they are weighed."""
    return min(float(shared.table.n_docs), SHARED) + float(own.class_count.sum())


class Entries(NamedTuple):
    """What the users of documents have taught about each entry's token."""

    is_own: Booleans  # (n_docs,) whether the document's user has taught anything
    class_count: Floats  # (n_docs, 2) messages
    is_met: Booleans  # (nnz,) whether the user has taught the token
    values: Floats  # (nnz, 3) as in `Own`


class Known(NamedTuple):
    """What the shared model knows of the tokens of documents over keys."""

    combination: Combination
    class_count: Floats  # (2,)
    is_met: Booleans  # (n_tokens,)
    counts: Floats  # (n_tokens, 2)
    correction: Floats32  # (n_tokens,)
    rarity: Floats  # (n_tokens,) 0 if all of its messages have the token, 1 if none has
    limits: Integers | None


class Corrected(NamedTuple):
    """The entries of documents that users' corrections are about."""

    entry: Integers  # (n,)
    row: Integers32  # (n,) its document
    value: Floats  # (n,) those of a document have the sum of squares 1


def known_of(classifier: Classifier, keys: Keys) -> Known:
    """Return what a classifier with a `Combination` knows of tokens."""
    table, fit = classifier.table, classifier.fit
    assert isinstance(fit, Combination)
    if not table.class_count.all():  # it is fitted to nothing yet
        fit = fit._replace(worth=prior_worth())
    column = table.vocabulary.columns(keys)
    known = np.flatnonzero(column >= 0)
    known = known[table.document_frequency[column[known]] > 0]
    is_met = np.zeros(len(keys), np.bool_)
    count, correction = np.zeros((len(keys), 2)), np.zeros(len(keys), np.float32)
    is_met[known] = True
    count[known] = table.feature_count[column[known]]
    correction[known] = fit.correction[column[known]]
    most = np.log(max(float(table.class_count.sum()), 1) + 1)
    rarity = np.maximum(1 - np.log(count.sum(axis=1) + 1) / most, 0.0)
    return Known(fit, table.class_count, is_met, count, correction, rarity, limits_of(table))


def entries_of(documents: Documents, owners: Sequence[Own | None]) -> Entries:
    """Return what each document's user has taught; None: nothing."""
    n_entries, n_docs = len(documents.columns), documents.n_docs
    found = Entries(
        np.array([own is not None for own in owners]),
        np.zeros((n_docs, 2)),
        np.zeros(n_entries, np.bool_),
        np.zeros((n_entries, 3)),
    )
    offsets, keys = documents.offsets.tolist(), documents.tokens.take(documents.columns)
    for row, own in enumerate(owners):
        if own is not None:
            found.class_count[row] = own.class_count
            entries = slice(offsets[row], offsets[row + 1])
            column = own.columns(keys[entries])
            found.is_met[entries] = is_met = column >= 0
            found.values[entries][is_met] = own.values[column[is_met]]
    return found


def weighed(shared: Known, documents: Documents, own: Entries) -> Weighed:
    """Return documents over keys with what the counts of all, and of their users, say."""
    groups = groups_of(documents.tokens)
    columns, rows = documents.columns, documents.rows()
    odds = log_odds(shared.counts, shared.class_count).take(columns)
    mine = np.flatnonzero(own.is_own.take(rows))
    if len(mine):
        weight = max(1.0, float(shared.class_count.sum()) / SHARED)
        count = shared.counts.take(columns.take(mine), axis=0)
        count += weight * own.values.take(mine, axis=0)[:, :2]
        total = shared.class_count + weight * own.class_count
        odds[mine] = log_odds(count, total.take(rows.take(mine), axis=0))
    in_layer = IN_LAYER[groups] & shared.is_met
    return Weighed(documents, groups, odds, in_layer, shared.correction, shared.limits)


def corrected(shared: Known, documents: Documents, own: Entries) -> Corrected:
    """Return which entries users' corrections are about, and how much of them each gets."""
    columns, rows = documents.columns, documents.rows()
    wanted = own.is_met | shared.is_met.take(columns)
    wanted &= own.is_own.take(rows)
    wanted &= IN_LAYER[groups_of(documents.tokens)].take(columns)
    entry = np.flatnonzero(wanted)
    row, value = rows.take(entry), shared.rarity.take(columns.take(entry))
    length = np.sqrt(np.bincount(row, value**2, documents.n_docs))
    return Corrected(entry, row, value / np.maximum(length, _LEAST).take(row))


def joint_of(shared: Classifier, documents: Documents, owners: Sequence[Own | None]) -> Floats:
    """Return log P(class given document), nats, shape (n_docs, 2).

    documents: over keys.  owners: (n_docs,) what each document's user has taught; None: nothing.
    """
    known, own = known_of(shared, documents.tokens), entries_of(documents, owners)
    score = known.combination.scores(weighed(known, documents, own))
    if own.is_own.any():
        entry, row, value = corrected(known, documents, own)
        score += bounded(np.bincount(row, own.values[entry, 2] * value, len(score)))
    return joint_of_log_odds(score) + shared.shift
