"""Models to one model: what several machines or people have learned, added up.

Counts add, but a message that two models know counts once.  Its tokens are needed to
take it out of one of them; they are at hand in the models' samples, and where they are
not, that is said instead of counting it twice.

Secret: which copy of a message stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.counts.changes import Change, added, signed_table
from nbspam.counts.table import add_tables
from nbspam.errors import UsageError
from nbspam.store.assembly import assembled, memory_of, message_at_hand, part_of
from nbspam.store.model import StoredModel

# What must be the same for counts to mean the same.
_MUST_AGREE = ("tokens", "reading", "strip", "weighting")


@dataclass(frozen=True, slots=True)
class Merged:
    """The sum of models, and what they had in common."""

    classifier: Classifier
    in_both: int  # messages that more than one model knew, counted once
    disputed: int  # of these: known as different classes; the later word holds


def merge(paths: Sequence[str]) -> Merged:
    """Return the model of all messages that the models in files know; raises NbspamError.

    A message known as different classes belongs to the one it was learned as later; on
    the same day, to that of the model named later.  Settings that do not concern the
    counts are the first model's.
    """
    if len(paths) < 2:
        raise UsageError("merge: one model; name two or more")
    total = StoredModel(paths[0]).whole()
    in_both = disputed = 0
    for path in paths[1:]:
        other = StoredModel(path).whole()
        _check_settings(paths[0], total, path, other)
        merged = _merge_two(total, other, path)
        total = merged.classifier
        in_both += merged.in_both
        disputed += merged.disputed
    return Merged(total, in_both, disputed)


def _check_settings(first: str, total: Classifier, path: str, other: Classifier) -> None:
    ours, theirs = total.settings.to_dict(), other.settings.to_dict()
    different = [name for name in _MUST_AGREE if ours[name] != theirs[name]]
    if different:
        raise UsageError(
            f"{path}: differs from {first} in its settings ({', '.join(different)}), so counts"
            " mean something else; train both with the same options"
        )


def _merge_two(first: Classifier, second: Classifier, path: str) -> Merged:
    ledgers = memory_of(first).ledger, memory_of(second).ledger
    both, here, there = np.intersect1d(
        ledgers[0].digests, ledgers[1].digests, assume_unique=True, return_indices=True
    )
    names = [
        [model.classes[k] for k in ledger.labels[place].tolist()]
        for model, ledger, place in zip((first, second), ledgers, (here, there), strict=True)
    ]
    later = ledgers[1].days[there] >= ledgers[0].days[here]
    gone: tuple[list[Change], list[Change]] = ([], [])
    for digest, ours, theirs, is_later in zip(both.tolist(), *names, later.tolist(), strict=True):
        loser = 0 if ours != theirs and is_later else 1
        message = message_at_hand((first, second)[loser], digest)
        message = message or message_at_hand((second, first)[loser], digest)
        if message is None:
            raise UsageError(
                f"{path}: {len(both):,} of its messages are in the models before it too, and"
                " too many to have all at hand; first run: nbspam unlearn"
                f" -m {path} SOURCE with the mail that both have learned"
            )
        gone[loser].append(message._replace(before=(ours, theirs)[loser]))
    table = add_tables([first.table, second.table])
    settings = first.settings
    if len(both):
        changes = [*gone[0], *gone[1]]
        table = added(table, signed_table(changes, table.vocabulary, settings.weighting))
    parts = [
        part_of(model, [change.digest for change in changes])
        for model, changes in zip((first, second), gone, strict=True)
    ]
    n_disputed = sum(ours != theirs for ours, theirs in zip(*names, strict=True))
    return Merged(assembled(table, parts, settings), len(both), n_disputed)
