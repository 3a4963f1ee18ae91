"""Changes: messages that were learned, moved to another class, told, or un-learned.

A change adds a message to one class, subtracts it from another, or both, so a table of changes
can have negative numbers.  If a person confirms the class of a message, it stays in its class.
A reader of a model overlays this table on the model's counts, which needs no sort and keeps all
columns (`overlaid`); a writer of a new model file adds the two (`added`).

Secret: how counts and vocabulary are combined with changes that are not in the model file yet.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers, Keys
from nbspam.counts.ledger import Filed
from nbspam.counts.sample import Messages
from nbspam.counts.table import CountTable, add_tables, counts_of, without_empty
from nbspam.tokens.documents import Documents, no_documents, offsets_of, united
from nbspam.tokens.vocabulary import Vocabulary, join, with_added


class Change(NamedTuple):
    """One message that changed its class, or whose class a person has told now."""

    digest: int
    before: str | None  # its class before; None: it was not learned
    after: str | None  # its class afterwards; None: it is un-learned
    day: int  # since 1970-01-01
    document: Documents  # the message, over the keys of its tokens
    new: Vocabulary  # those of its tokens that the model file does not know, with their texts
    told: bool = False  # whether a person has told its class afterwards


def filed_by(change: Change) -> Filed:
    """Return where a model has a message after a change."""
    return Filed(change.after, change.told)


def respelt(changes: Sequence[Change], before: Vocabulary, known: Vocabulary) -> list[Change]:
    """Return the changes as they must be written beside another model file.

    The journal holds the texts of only those tokens that its model file does not know: the field
    `new` of each change.

    before: the vocabulary of the present model file.  known: that of the other one.
    """
    return [change._replace(new=_spelling(change, before, known).packed()) for change in changes]


def _spelling(change: Change, before: Vocabulary, known: Vocabulary) -> Vocabulary:
    keys = change.document.tokens
    unknown = keys[known.columns(keys) < 0]
    column = before.columns(unknown)
    spelt, _ = join([before.take(column[column >= 0]), change.new])
    return spelt.take(np.flatnonzero(np.isin(spelt.keys, unknown)))


def signed_table(changes: Sequence[Change], known: Vocabulary, weighting: str) -> CountTable:
    """Return the sum of changes; its numbers can be negative.

    known: the vocabulary of the model file.  It must have all tokens of the changes that are not
    in their field `new`, because it gives the groups of these tokens.
    """
    names = {name for change in changes for name in (change.before, change.after)}
    classes = tuple(sorted(name for name in names if name is not None))
    documents = united([change.document for change in changes])
    vocabulary = _vocabulary(changes, documents.tokens, known)
    index: dict[str | None, int] = {None: -1}
    index.update((name, k) for k, name in enumerate(classes))
    total: list[Any] = [0.0, 0.0, 0]
    for sign, y in (
        (-1, np.array([index[change.before] for change in changes])),
        (1, np.array([index[change.after] for change in changes])),
    ):
        part = counts_of(
            documents.take(y >= 0), y[y >= 0], len(classes), vocabulary.groups, weighting
        )
        total = [so_far + sign * more for so_far, more in zip(total, part, strict=True)]
    return CountTable(classes, total[0], vocabulary, total[1], total[2])


def _vocabulary(changes: Sequence[Change], keys: Keys, known: Vocabulary) -> Vocabulary:
    """Return the vocabulary of these keys; only tokens that are new in the changes have texts."""
    column = known.columns(keys)
    groups = np.zeros(len(keys), np.uint8)
    groups[column >= 0] = known.groups[column[column >= 0]]
    new = join([change.new for change in changes])[0].packed()
    place = np.searchsorted(keys, new.keys)
    groups[place] = new.groups
    length = np.zeros(len(keys), np.int64)
    length[place] = np.diff(new.offsets)
    return Vocabulary(keys, new.blob, offsets_of(length), groups)


def added(table: CountTable, change: CountTable) -> CountTable:
    """Return the sum of a table and its changes, without tokens that no message has any more."""
    total = add_tables([table, change])
    return without_empty(
        total._replace(
            class_count=_not_negative(total.class_count),
            feature_count=_not_negative(total.feature_count),
        )
    )


def overlaid(table: CountTable, change: CountTable) -> CountTable:
    """Return the sum of a table and its changes; all columns of the table stay where they are.

    The change has no class that the table does not have.  New tokens follow the others; tokens
    that no message has any more keep their columns.
    """
    index = {name: k for k, name in enumerate(table.classes)}
    class_count = np.array(table.class_count, np.float64)
    for name, n in zip(change.classes, change.class_count.tolist(), strict=True):
        class_count[index[name]] += n
    column = table.vocabulary.columns(change.vocabulary.keys)
    new = np.flatnonzero((column < 0) & (change.document_frequency > 0))
    known = np.flatnonzero(column >= 0)
    by_class = np.zeros((len(column), len(index)))
    by_class[:, [index[name] for name in change.classes]] = change.feature_count
    feature_count = _with_rows(table.feature_count, by_class, column, known, new)
    frequency = _with_rows(table.document_frequency, change.document_frequency, column, known, new)
    vocabulary = with_added(table.vocabulary, change.vocabulary.take(new))
    loss = None if table.loss is None else table.loss.appended(len(new))
    return CountTable(table.classes, class_count, vocabulary, feature_count, frequency, loss)


def _with_rows(
    rows: Any, change: Floats | Integers, column: Integers, known: Integers, new: Integers
) -> Any:
    """Return rows (n_features, ...) with changes added to known rows, and new rows appended."""
    is_whole = rows.dtype.kind in "iu" and np.array_equal(change, np.rint(change))
    kind = rows.dtype if is_whole else np.dtype(np.float64)
    total = np.concatenate([rows.astype(kind, copy=False), change[new].astype(kind)])
    at = column[known]
    total[at] = _not_negative(rows[at].astype(np.float64) + change[known])
    return total


def _not_negative(counts: Floats) -> Floats:
    """Return counts, at least 0: a pruned model has forgotten some of a token's counts."""
    return np.maximum(counts, 0)


def messages_of_changes(changes: Sequence[Change], with_counts: bool) -> Messages:
    """Return the messages of changes; they must be distinct, and none may be un-learned."""
    labels = np.array([change.after for change in changes], np.str_)
    digests = np.array([change.digest for change in changes], np.uint64)
    if not changes:
        return Messages(labels, digests, no_documents(np.empty(0, np.uint64), with_counts))
    return Messages(labels, digests, united([change.document for change in changes]))
