"""Merging models: one model of the messages that several of them have learned.

Counts can be added, but a message that two models know must count once.  To subtract it from one
of them, its tokens are needed, and only messages in the models' samples have them.  If a message
is in neither sample, merging stops with an error, since it would be counted twice.

Secret: which copy of a message is kept.
"""

from collections.abc import Sequence

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.counts.changes import Change, added, signed_table
from nbspam.counts.table import add_tables
from nbspam.errors import UsageError
from nbspam.mail.digest import OLDEST
from nbspam.progress import tracked
from nbspam.store.assembly import assembled, memory_of, message_at_hand, part_of
from nbspam.store.merging.outcome import Merged
from nbspam.store.model import StoredModel

# Settings that must be equal, since counts of different tokens or weights cannot be added.
_MUST_AGREE = ("tokens", "reading", "strip", "weighting")


def merge_models(paths: Sequence[str]) -> Merged:
    """Return the model of all messages that several models know; raises NbspamError.

    paths: the model files.  If models know a message in different classes, the one that a person
    has told is kept; else the one that was learned later; if both were on the same day, that of
    the model named later.  Settings that do not affect counts are those of the first model.  Rows
    of tables have no identity, so each of them counts.
    """
    total = StoredModel(paths[0]).whole()
    in_both = disputed = 0
    for path in tracked(paths[1:], "models"):
        other = StoredModel(path).whole()
        _check_settings(paths[0], total, path, other)
        _check_digests(paths[0], total, path, other)
        total, n_both, n_disputed = _merge_two(total, other, path)
        in_both += n_both
        disputed += n_disputed
    return Merged(total, len(paths), in_both, disputed)


def _check_settings(first: str, total: Classifier, path: str, other: Classifier) -> None:
    ours, theirs = total.settings.to_dict(), other.settings.to_dict()
    different = [name for name in _MUST_AGREE if ours[name] != theirs[name]]
    if different:
        raise UsageError(
            f"{path}: differs from {first} in its settings ({', '.join(different)}), so their"
            " counts cannot be added; train both with the same options"
        )


def _check_digests(first: str, total: Classifier, path: str, other: Classifier) -> None:
    """Raise UsageError if mail that both models know would not be recognised."""
    memories = memory_of(total), memory_of(other)
    versions = {version for memory in memories for version in memory.versions}
    if len(versions) > 1 and all(memory.ledger.has_mail for memory in memories):
        older = first if OLDEST in memories[0].versions else path
        raise UsageError(
            f"{path}: mail that it shares with {first} could count twice, because {older} knows"
            f" mail by older digests; train {older} anew, and merge then"
        )


def _merge_two(first: Classifier, second: Classifier, path: str) -> tuple[Classifier, int, int]:
    """Return the model of both, how many messages both knew, and how many as different classes."""
    ledgers = memory_of(first).ledger, memory_of(second).ledger
    both, here, there = np.intersect1d(
        ledgers[0].digests, ledgers[1].digests, assume_unique=True, return_indices=True
    )
    names = [
        [model.classes[k] for k in ledger.labels[place].tolist()]
        for model, ledger, place in zip((first, second), ledgers, (here, there), strict=True)
    ]
    told = ledgers[0].told[here], ledgers[1].told[there]
    is_later = ledgers[1].days[there] >= ledgers[0].days[here]
    is_second = np.where(told[0] == told[1], is_later, told[1])  # whose class is kept
    agreed = both[told[1] & (np.array(names[0]) == np.array(names[1]))]
    gone: tuple[list[Change], list[Change]] = ([], [])
    for digest, ours, theirs, wins in zip(both.tolist(), *names, is_second.tolist(), strict=True):
        loser = 0 if ours != theirs and wins else 1
        message = message_at_hand((first, second)[loser], digest)
        message = message or message_at_hand((second, first)[loser], digest)
        if message is None:
            raise UsageError(
                f"{path}: {len(both):,} of its messages are in the models before it too, and"
                " not all of them are stored in a sample; first run: nbspam unlearn"
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
    parts[0] = parts[0]._replace(told=parts[0].told | np.isin(parts[0].digests, agreed))
    n_disputed = sum(ours != theirs for ours, theirs in zip(*names, strict=True))
    return assembled(table, parts, settings), len(both), n_disputed
