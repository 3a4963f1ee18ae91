"""Assembly of a model from parts: counts are added, ledgers and samples are joined.

The model depends only on its messages, however they were obtained (trained at once, learned on,
un-learned, merged), because everything is first put in the order of keys and digests.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Integers, Keys, Strings, find
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import ModelGrowth, derive, overlay
from nbspam.counts.memory import (
    NOT_FILED,
    FiledMessage,
    LabelChange,
    Memory,
    Messages,
    Sample,
    Sampling,
    added,
    kept_sample,
    ledger_of,
    messages_of_changes,
    messages_of_sample,
    overlaid,
    respelt,
    signed_table,
)
from nbspam.counts.table import CountTable, add_tables, no_counts
from nbspam.decision import HAM_AND_SPAM
from nbspam.errors import UsageError
from nbspam.settings import PRESENCE, Settings
from nbspam.tokens.documents import Documents, empty_vocabulary, no_documents, united


class ModelMessages(NamedTuple):
    """Messages that go into a model: everything except their counts."""

    digests: Keys  # (n_docs,)
    names: Strings  # (n_docs,) classes
    days: Days  # (n_docs,) when each message was learned
    told: Booleans  # (n_docs,) whether a person has told its class
    messages: Messages  # those of the messages whose tokens are known
    bits: int  # number of zero bits at the end of the digests in `messages`
    keys: Keys  # (n_keys,) of tokens; a key may come several times
    last_seen: Days  # (n_keys,) when each token was learned
    decayed: int = 0  # the day on which counts were last faded; 0: never
    has_ledger: bool = True  # whether these are all messages, or only those of a sample


def messages_of_model(classifier: Classifier, without: Sequence[int] = ()) -> ModelMessages:
    """Return the messages of a model, except those with some digests."""
    memory = memory_of(classifier)
    ledger, sample = memory.ledger, memory.sample
    names = np.array(classifier.classes, np.str_)[ledger.labels]
    gone = np.array(without, np.uint64)
    stays: Booleans = ~np.isin(ledger.digests, gone)
    labels = names[ledger.find(sample.digests)]
    messages = messages_of_sample(sample, labels, classifier.table.vocabulary)
    return ModelMessages(
        ledger.digests[stays],
        names[stays],
        ledger.days[stays],
        ledger.told[stays],
        messages.take(~np.isin(sample.digests, gone)),
        sample.bits,
        classifier.table.vocabulary.keys,
        memory.last_seen,
        memory.decayed,
        memory.has_ledger,
    )


def _part_of_changes(changes: Sequence[LabelChange], with_counts: bool) -> ModelMessages:
    """Return the messages that are learned after all changes."""
    last = {change.digest: change for change in changes}
    learned = [change for change in last.values() if change.after is not None]
    seen = [change for change in changes if change.after is not None]
    tokens = [change.document.tokens for change in seen]
    return ModelMessages(
        np.array([change.digest for change in learned], np.uint64),
        np.array([change.after for change in learned], np.str_),
        np.array([change.day for change in learned], np.uint16),
        np.array([change.told for change in learned], np.bool_),
        messages_of_changes(learned, with_counts),
        0,
        np.concatenate([np.empty(0, np.uint64), *tokens]),
        np.repeat(
            np.array([change.day for change in seen], np.uint16), [len(keys) for keys in tokens]
        ),
    )


class StreamedModel(NamedTuple):
    """The facts about all parts together, if they went by as a stream."""

    sampling: Sampling  # of their messages
    last_seen: Days  # (n_features,) when each token of their sum was learned


def assembled(
    table: CountTable,
    parts: Sequence[ModelMessages],
    settings: Settings,
    streamed: StreamedModel | None = None,
) -> Classifier:
    """Return the model of a table and the messages counted in it; raises NotTrainedError.

    streamed: unless it is given, messages and keys of the parts are looked at.  A model of ham
    alone or spam alone, or of no messages, is one of ham and spam.
    """
    if len(table.classes) < 2 and set(table.classes) <= set(HAM_AND_SPAM):
        table = add_tables([table, no_counts(HAM_AND_SPAM)])
    sampling, last_seen = streamed or _looked_at(table, parts, settings)
    ledger = ledger_of(
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.names for part in parts]),
        np.concatenate([part.days for part in parts]),
        table.classes,
        np.concatenate([part.told for part in parts]),
    )
    with_counts = settings.weighting != PRESENCE
    sample = kept_sample(sampling.messages, sampling.bits, table.vocabulary, with_counts)
    has_ledger = all(part.has_ledger for part in parts)
    if not has_ledger:
        ledger = ledger.only(sample.digests)
    decayed = max(part.decayed for part in parts)
    memory = Memory(ledger, sample, last_seen, decayed, has_ledger)
    return derive(table, memory, settings)


def _looked_at(
    table: CountTable, parts: Sequence[ModelMessages], settings: Settings
) -> StreamedModel:
    sampling = Sampling(settings.weighting, max(part.bits for part in parts))
    sampling.add(part.messages for part in parts)
    last_seen = np.zeros(len(table.vocabulary), np.uint16)
    for part in parts:
        column = table.vocabulary.columns(part.keys)
        np.maximum.at(last_seen, column[column >= 0], part.last_seen[column >= 0])
    return StreamedModel(sampling, last_seen)


def begun(settings: Settings) -> Classifier:
    """Return the model of ham and spam that has not learned any message."""
    nothing = np.empty(0, np.uint64)
    documents = no_documents(np.empty(0, np.int64), settings.weighting != PRESENCE)
    days = np.empty(0, np.uint16)
    ledger = ledger_of(nothing, nothing.astype(np.str_), days, HAM_AND_SPAM)
    memory = Memory(ledger, Sample(0, nothing, documents), days)
    return derive(no_counts(HAM_AND_SPAM), memory, settings)


def compacted(base: Classifier, changes: Sequence[LabelChange]) -> Classifier:
    """Return a model with changes added to its counts and messages, and fitted again."""
    if not changes:
        return base
    settings = base.settings
    change = signed_table(changes, base.table.vocabulary, settings.weighting)
    touched = [change.digest for change in changes]
    own = _part_of_changes(changes, settings.weighting != PRESENCE)
    return reassembled(base, added(base.table, change), [messages_of_model(base, touched), own])


def with_changes(base: Classifier, changes: Sequence[LabelChange]) -> Classifier:
    """Return a classifier with changes applied.

    If a fit was due among them but could not be written to the model file, it is made here.
    """
    due = ModelGrowth.of(base).note_all(changes)
    if not due:
        return overlay(base, changes)
    fitted = compacted(base, changes[:due])
    rest = respelt(changes[due:], base.table.vocabulary, fitted.table.vocabulary)
    return overlay(fitted, rest)


def filed_in(base: Classifier, digests: Sequence[int]) -> list[FiledMessage]:
    """Return where a model that can learn on has the messages of some digests."""
    ledger, names = memory_of(base).ledger, base.classes
    return [
        NOT_FILED if k < 0 else FiledMessage(names[int(ledger.labels[k])], bool(ledger.told[k]))
        for k in ledger.find(np.array(digests, np.uint64)).tolist()
    ]


class Lessons(NamedTuple):
    """The lessons of a model, without the way in which evidence adds up."""

    table: CountTable  # its tokens in any order; some may have no messages any more
    documents: Documents  # the messages of which tokens are known, over keys
    y: Integers  # (n_docs,) index into the table's classes


def lessons_of(base: Classifier, changes: Sequence[LabelChange]) -> Lessons:
    """Return the lessons of a model of presence and its changes, without fitting it again."""
    touched = [change.digest for change in changes]
    parts = [messages_of_model(base, touched).messages]
    table = base.table
    if changes:
        signed = signed_table(changes, table.vocabulary, base.settings.weighting)
        table = overlaid(table, signed)
        parts.append(_part_of_changes(changes, with_counts=False).messages)
    labels = np.concatenate([part.labels for part in parts])
    documents = united([part.documents for part in parts])
    return Lessons(table, documents, np.searchsorted(table.classes, labels))


def reassembled(base: Classifier, table: CountTable, parts: Sequence[ModelMessages]) -> Classifier:
    """Return the assembled model with the base's settings and, for the same classes, cutoffs."""
    model = assembled(table, parts, base.settings)
    return replace(model, cutoffs=base.cutoffs) if model.classes == base.classes else model


def memory_of(classifier: Classifier) -> Memory:
    """Return the memory of a model that can learn on."""
    assert classifier.memory is not None
    return classifier.memory


def check_ledger(classifier: Classifier, name: str) -> None:
    """Raise UsageError if a model does not know which messages it has learned."""
    if not memory_of(classifier).has_ledger:
        raise UsageError(
            f"{name}: has no ledger, so it does not know which messages it has learned, and in"
            " which class; train it again without --no-ledger"
        )


def message_at_hand(classifier: Classifier, digest: int) -> LabelChange | None:
    """Return a message from the model's sample, as a change without classes; None if not there."""
    sample = memory_of(classifier).sample
    (place,) = find(sample.digests, np.array([digest], np.uint64)).tolist()
    if place < 0:
        return None
    document = sample.documents.one(place)
    keys = classifier.table.vocabulary.keys[document.tokens]
    document = Documents(keys, *document[1:])
    return LabelChange(digest, None, None, 0, document, empty_vocabulary())
