"""Forgetting: what is rare and old leaves the model, and old counts fade.

Secret: what a model can do without.
"""

import os
from dataclasses import dataclass

import numpy as np

from nbspam.arrays import Booleans
from nbspam.classifier.classifier import Classifier
from nbspam.counts.table import CountTable, rounded, without_empty
from nbspam.disk import locked
from nbspam.errors import UsageError
from nbspam.store.assembly import Part, memory_of, part_of, reassembled
from nbspam.store.model import StoredModel
from nbspam.store.open import write


@dataclass(frozen=True, slots=True)
class Size:
    """How large a model is."""

    tokens: int
    bytes: int  # of the file and its journal


@dataclass(frozen=True, slots=True)
class Rule:
    """What to forget: tokens that are rare and old; counts, by half every so many days."""

    min_df: int | None = None  # rare: in fewer messages; None: however many
    older_than: int | None = None  # old: last learned more days ago; None: however many
    half_life: float | None = None  # days; None: counts stay

    def __post_init__(self) -> None:
        for name, least in (("min_df", 1), ("older_than", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name}: {value} is not a number from {least} up")
        if self.half_life is not None and not 0 < self.half_life < float("inf"):
            raise UsageError(f"half_life: {self.half_life} is not a number of days above 0")


# Seen in one message alone, and not for a year.
DEFAULT = Rule(min_df=2, older_than=365)


def prune(path: str, rule: Rule, day: int) -> tuple[Size, Size]:
    """Write a model without what the rule forgets; return sizes before and after.

    day: today, counted from 1970-01-01.  Raises NbspamError; then nothing has changed.
    """
    StoredModel(path)  # a lock would make a folder for a model that is not there
    with locked(path):
        living = StoredModel(path)
        whole = living.whole()
        before = Size(len(whole.table.vocabulary), living.size())
        write(path, forgetful(whole, rule, day))
        return before, Size(len(StoredModel(path).whole().table.vocabulary), os.path.getsize(path))


def forgetful(classifier: Classifier, rule: Rule, day: int) -> Classifier:
    """Return the classifier without what the rule forgets."""
    memory = memory_of(classifier)
    table, part = classifier.table, part_of(classifier)
    if rule.half_life is not None:
        since = memory.decayed or int(memory.ledger.days.min(initial=day))
        factor = 0.5 ** (max(day - since, 0) / rule.half_life)
        table = faded(table, factor, classifier.settings.weighting)
        part = part._replace(decayed=day)
    if rule.min_df is not None or rule.older_than is not None:
        table = table.take(np.flatnonzero(~_rare_and_old(table, part, rule, day)))
    return reassembled(classifier, table, [part])


def _rare_and_old(table: CountTable, part: Part, rule: Rule, day: int) -> Booleans:
    """Return which tokens of the table the rule forgets, shape (n_features,)."""
    gone: Booleans = np.ones(len(table.vocabulary), np.bool_)
    if rule.min_df is not None:
        gone &= table.document_frequency < rule.min_df
    if rule.older_than is not None:
        column = np.searchsorted(part.keys, table.vocabulary.keys)
        gone &= day - part.last_seen[column].astype(np.int64) > rule.older_than
    return gone


def faded(table: CountTable, factor: float, weighting: str) -> CountTable:
    """Return the table with all counts multiplied, of the weighting's grain; what is 0 is gone.

    A class never fades away: one message of it stays.
    """
    return without_empty(
        table._replace(
            class_count=np.maximum(np.rint(table.class_count * factor), 1),
            feature_count=rounded(table.feature_count * factor, weighting),
            document_frequency=np.rint(table.document_frequency * factor).astype(np.int64),
        )
    )
