"""One model from what others hold: counts add, ledgers and samples are joined.

However a model's messages came together (trained at once, learned on, un-learned, merged), the
model assembled here depends on them alone: everything is first put in the order of keys and
digests.

Secret: how the parts of a model are put together again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Keys, Strings
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.learner import Growth, overlay
from nbspam.classifier.training import derive
from nbspam.counts.changes import Change, added, messages_of_changes, respelt, signed_table
from nbspam.counts.ledger import Memory, ledger_of
from nbspam.counts.sample import Messages, Sampling, keep, messages_of
from nbspam.counts.table import CountTable
from nbspam.settings import PRESENCE, Settings
from nbspam.tokens.documents import Documents
from nbspam.tokens.vocabulary import empty_vocabulary


class Part(NamedTuple):
    """Messages that go into a model: everything but their counts."""

    digests: Keys  # (n_docs,)
    names: Strings  # (n_docs,) of their classes
    days: Days  # (n_docs,) on which they were learned
    messages: Messages  # those of them that are at hand
    bits: int  # number of zero bits at the end of the digests of those
    keys: Keys  # (n_keys,) of tokens
    last_seen: Days  # (n_keys,)
    decayed: int = 0  # the day on which counts were last faded


def part_of(classifier: Classifier, without: Sequence[int] = ()) -> Part:
    """Return what a model holds, without the messages of some digests."""
    memory = memory_of(classifier)
    ledger, sample = memory.ledger, memory.sample
    names = np.array(classifier.classes, np.str_)[ledger.labels]
    gone = np.array(without, np.uint64)
    stays: Booleans = ~np.isin(ledger.digests, gone)
    labels = names[ledger.find(sample.digests)]
    messages = messages_of(sample, labels, classifier.table.vocabulary)
    return Part(
        ledger.digests[stays],
        names[stays],
        ledger.days[stays],
        messages.take(~np.isin(sample.digests, gone)),
        sample.bits,
        classifier.table.vocabulary.keys,
        memory.last_seen,
        memory.decayed,
    )


def _part_of_changes(changes: Sequence[Change], with_counts: bool) -> Part:
    """Return the messages that changes leave learned."""
    last = {change.digest: change for change in changes}
    learned = [change for change in last.values() if change.after is not None]
    seen = [change for change in changes if change.after is not None]
    tokens = [change.document.tokens for change in seen]
    return Part(
        np.array([change.digest for change in learned], np.uint64),
        np.array([change.after for change in learned], np.str_),
        np.array([change.day for change in learned], np.uint16),
        messages_of_changes(learned, with_counts),
        0,
        np.concatenate([np.empty(0, np.uint64), *tokens]),
        np.repeat(
            np.array([change.day for change in seen], np.uint16), [len(keys) for keys in tokens]
        ),
    )


def assembled(table: CountTable, parts: Sequence[Part], settings: Settings) -> Classifier:
    """Return the model of these counts and messages; raises NotTrainedError."""
    sampling = Sampling(settings.weighting, max(part.bits for part in parts))
    sampling.add(part.messages for part in parts)
    last_seen = np.zeros(len(table.vocabulary), np.uint16)
    for part in parts:
        column = table.vocabulary.columns(part.keys)
        np.maximum.at(last_seen, column[column >= 0], part.last_seen[column >= 0])
    ledger = ledger_of(
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.names for part in parts]),
        np.concatenate([part.days for part in parts]),
        table.classes,
    )
    with_counts = settings.weighting != PRESENCE
    sample = keep(sampling.messages, sampling.bits, table.vocabulary, with_counts)
    decayed = max(part.decayed for part in parts)
    return derive(table, Memory(ledger, sample, last_seen, decayed), settings)


def compacted(base: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the model of a model's messages after some changes, fitted anew."""
    if not changes:
        return base
    settings = base.settings
    change = signed_table(changes, base.table.vocabulary, settings.weighting)
    touched = [change.digest for change in changes]
    own = _part_of_changes(changes, settings.weighting != PRESENCE)
    return reassembled(base, added(base.table, change), [part_of(base, touched), own])


def with_changes(base: Classifier, changes: Sequence[Change]) -> Classifier:
    """Return the classifier that knows these messages too.

    Where a fit was due among them, and could not be written, it is made here.
    """
    counts = base.table.class_count.tolist()
    due = Growth(dict(zip(base.classes, counts, strict=True))).last_due(changes)
    if not due:
        return overlay(base, changes)
    fitted = compacted(base, changes[:due])
    rest = respelt(changes[due:], base.table.vocabulary, fitted.table.vocabulary)
    return overlay(fitted, rest)


def reassembled(base: Classifier, table: CountTable, parts: Sequence[Part]) -> Classifier:
    """Return a model as `assembled`, with the cutoffs its owner has chosen before."""
    model = assembled(table, parts, base.settings)
    return replace(model, cutoffs=base.cutoffs) if model.classes == base.classes else model


def memory_of(classifier: Classifier) -> Memory:
    """Return what a model remembers; only of models that can learn on."""
    assert classifier.memory is not None
    return classifier.memory


def message_at_hand(classifier: Classifier, digest: int) -> Change | None:
    """Return a message of the model's sample, as a change from None to None; or None."""
    sample = memory_of(classifier).sample
    place = int(np.searchsorted(sample.digests, np.uint64(digest)))
    if place == len(sample.digests) or sample.digests[place] != digest:
        return None
    document = sample.documents.one(place)
    keys = classifier.table.vocabulary.keys[document.tokens]
    document = Documents(keys, *document[1:])
    return Change(digest, None, None, 0, document, empty_vocabulary())
