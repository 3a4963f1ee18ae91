"""Pruning: drops tokens that are both rare and old, and fades old counts."""

import os
from dataclasses import dataclass

import numpy as np

from nbspam.arrays import Booleans, Floats, Keys
from nbspam.classifier.classifier import Classifier
from nbspam.counts.table import CountTable, rounded, without_empty
from nbspam.disk import locked, resolved
from nbspam.errors import UsageError
from nbspam.settings import PRESENCE
from nbspam.store.assembly import ModelMessages, memory_of, messages_of_model, reassembled
from nbspam.store.model import StoredModel
from nbspam.store.open import write_model_file


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a model."""

    tokens: int
    bytes: int  # of the file and its journal


@dataclass(frozen=True, slots=True)
class PruningRule:
    """The tokens to forget, which are both rare and old, and the half-life of counts."""

    min_df: int | None = None  # rare: in fewer messages than this; None: any number
    older_than: int | None = None  # old: last learned more days ago than this; None: any day
    half_life: float | None = None  # days; None: counts do not fade

    def __post_init__(self) -> None:
        for name, least in (("min_df", 1), ("older_than", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name}: {value} is not a number from {least} up")
        if self.half_life is not None and not 0 < self.half_life < float("inf"):
            raise UsageError(f"half_life: {self.half_life} is not a number of days above 0")


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio

# Tokens seen in a single message, more than a year ago.
DEFAULT = PruningRule(min_df=2, older_than=365)


def prune_model(path: str, rule: PruningRule, day: int) -> tuple[Size, Size]:
    """Prune a model file; return its sizes before and after.

    day: today, in days since 1970-01-01.  Raises NbspamError; then the file is unchanged.
    """
    path = resolved(path)
    StoredModel(path)  # fails if there is no model; locking first would create its folder
    with locked(path):
        living = StoredModel(path)
        whole = living.whole()
        before = Size(len(whole.table.vocabulary), living.size())
        write_model_file(path, forgetful(whole, rule, day))
        return before, Size(len(StoredModel(path).whole().table.vocabulary), os.path.getsize(path))


def forgetful(classifier: Classifier, rule: PruningRule, day: int) -> Classifier:
    """Return the classifier after forgetting by the rule; day: today, since 1970-01-01."""
    memory = memory_of(classifier)
    table, part = classifier.table, messages_of_model(classifier)
    if rule.half_life is not None:
        since = memory.decayed or int(memory.ledger.days.min(initial=day))
        factor = 0.5 ** (max(day - since, 0) / rule.half_life)
        table = faded(table, factor, classifier.settings.weighting, day)
        part = part._replace(decayed=day)
    if rule.min_df is not None or rule.older_than is not None:
        table = table.forgetting(np.flatnonzero(~_rare_and_old(table, part, rule, day)))
    return reassembled(classifier, table, [part])


def _rare_and_old(table: CountTable, part: ModelMessages, rule: PruningRule, day: int) -> Booleans:
    """Return which tokens of the table the rule drops, shape (n_features,)."""
    gone: Booleans = np.ones(len(table.vocabulary), np.bool_)
    if rule.min_df is not None:
        gone &= table.document_frequency < rule.min_df
    if rule.older_than is not None:
        column = np.searchsorted(part.keys, table.vocabulary.keys)
        gone &= day - part.last_seen[column].astype(np.int64) > rule.older_than
    return gone


def faded(table: CountTable, factor: float, weighting: str, day: int) -> CountTable:
    """Return the table with all counts multiplied by a factor, in the weighting's grain.

    Counts of tokens are rounded up or down by chance, so that they fade as fast in many small
    steps as in a large one; rounded to the nearest number, a count of 1 would never fade in steps
    that each take less than half of it.  The chance is a hash of the token and the day.  Tokens
    whose document frequency becomes 0 are dropped.  A class with messages keeps one.
    """
    chance = _chances(table.vocabulary.keys, day)
    old = table.document_frequency
    frequency = np.floor(old * factor + chance).astype(np.int64)
    class_count = np.rint(table.class_count * factor)
    class_count = np.maximum(class_count, np.minimum(table.class_count, 1))
    if weighting == PRESENCE:
        feature_count = np.floor(table.feature_count * factor + chance[:, None])
        # No token is in more messages than there are.
        np.minimum(feature_count, class_count, out=feature_count)
    else:
        share = (frequency / np.maximum(old, 1))[:, None]
        feature_count = rounded(table.feature_count * share, weighting)
    faint = table._replace(
        class_count=class_count,
        feature_count=feature_count,
        document_frequency=frequency,
        loss=None if table.loss is None else table.loss.faded(factor),
    )
    return without_empty(faint)


def _chances(keys: Keys, day: int) -> Floats:
    """Return a number from 0 to below 1 for each key, (n_keys,), that looks random.

    Keys are hashes already; multiplying by a large odd number and shifting mixes them with the
    day.
    """
    mixed = (keys ^ np.uint64(day)) * _ODD
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)
