"""A model's messages: how parts and changes add up to it, and what a lesson changes.

The model depends only on its messages, however they were obtained (trained at once, learned on,
un-learned, merged), because everything is first put in the order of keys and digests.

The tokens of a message are remembered if its digest ends in enough zero bits.  How many are
enough depends only on the lessons and their order, not on when the model was fitted last.  A
lesson about a message whose tokens are forgotten moves the tokens that it comes with.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple, Protocol

import numpy as np

from nbspam.arrays import Booleans, Days, Floats, Integers, Keys, Strings, find, together
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import ModelGrowth, derive, overlay
from nbspam.counts.counting import table_of_messages, without_texts
from nbspam.counts.ledger import (
    NO_BITS,
    NOT_FILED,
    NOT_SHARED,
    FiledMessage,
    LabelChange,
    LogProgress,
    Memory,
    Messages,
    Owed,
    Sampling,
    is_remembered,
    kept_sample,
    ledger_of,
    messages_of_changes,
    no_messages,
    overlaid,
    respelt,
    signed_table,
)
from nbspam.counts.lessons import LessonBatch, Outcome, outcome_of
from nbspam.counts.table import CountTable, add_tables, no_counts, possible_counts, without_empty
from nbspam.decision import HAM_AND_SPAM
from nbspam.errors import UsageError
from nbspam.mail.digest import Copies
from nbspam.settings import PRESENCE, Settings
from nbspam.tokens.sparse import Documents, empty_vocabulary, no_documents, take_in_slices, united


class ModelMessages(NamedTuple):
    """Messages that go into a model: everything except their counts."""

    digests: Keys  # (n_docs,)
    names: Strings  # (n_docs,) classes
    days: Days  # (n_docs,) when each message was learned
    told: Booleans  # (n_docs,) whether a person has told its class
    messages: Messages  # the messages whose tokens are known
    bits: int  # number of zero bits at the end of the digests in `messages`
    keys: Keys  # (n_keys,) of tokens; a key may come several times
    last_seen: Days  # (n_keys,) when each token was learned
    decayed: int = 0  # the day on which counts were last faded; 0: never
    has_ledger: bool = True  # whether these are all messages, or only a sample's

    def without(self, digests: Sequence[int]) -> "ModelMessages":
        """Return all messages except those with some digests."""
        gone = np.array(digests, np.uint64)
        stays: Booleans = ~np.isin(self.digests, gone)
        return self._replace(
            digests=self.digests[stays],
            names=self.names[stays],
            days=self.days[stays],
            told=self.told[stays],
            messages=self.messages.take(~np.isin(self.messages.digests, gone)),
        )


def messages_of_model(classifier: Classifier) -> ModelMessages:
    """Return the messages of a model."""
    memory = memory_of(classifier)
    ledger, sample = memory.ledger, memory.sample
    names = np.array(classifier.classes, np.str_)[ledger.labels]
    keys = classifier.table.vocabulary.keys
    documents = sample.documents._replace(tokens=keys)
    return ModelMessages(
        ledger.digests,
        names,
        ledger.days,
        ledger.told,
        Messages(names[ledger.find(sample.digests)], sample.digests, documents),
        sample.bits,
        keys,
        memory.last_seen,
        memory.decayed,
        memory.has_ledger,
    )


def messages_after(base: Classifier, changes: Sequence[LabelChange]) -> list[ModelMessages]:
    """Return the messages that changes do not touch, and the messages learned after them."""
    last = {change.digest: change for change in changes}
    untouched = messages_of_model(base).without([*last])
    learned = [change for change in last.values() if change.after is not None]
    messages = messages_of_changes(learned)
    seen = [change for change in changes if change.after is not None]
    tokens = [change.document.tokens for change in seen]
    changed = ModelMessages(
        messages.digests,
        messages.labels,
        np.array([change.day for change in learned], np.uint16),
        np.array([change.told for change in learned], np.bool_),
        messages,
        0,
        together(tokens, np.uint64),
        np.repeat(
            np.array([change.day for change in seen], np.uint16), [len(keys) for keys in tokens]
        ),
    )
    return [untouched, changed]


def assembled(
    table: CountTable,
    parts: Sequence[ModelMessages],
    settings: Settings,
    sampling: Sampling,
    last_seen: Days,
    owed: CountTable,
    progress: LogProgress = NOT_SHARED,
) -> Classifier:
    """Return the model of a table and the messages counted in it; raises NotTrainedError.

    sampling: of all messages of the parts.  last_seen: (n_features,).  owed: see `split_owed`.
    A model of ham alone or spam alone, or of no messages, is one of ham and spam.
    """
    names = np.concatenate([part.names for part in parts])
    if len(table.classes) < 2 and {*table.classes, *names.tolist()} <= set(HAM_AND_SPAM):
        table = add_tables([table, no_counts(HAM_AND_SPAM)])
    table = _with_classes(table, set(names.tolist()))
    ledger = ledger_of(
        np.concatenate([part.digests for part in parts]),
        names,
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
    counts = np.column_stack([owed.of_class(name)[1] for name in table.classes])
    frequency = owed.document_frequency.astype(np.int64)
    rest = Owed(owed.vocabulary.keys, counts, frequency) if len(frequency) else None
    memory = Memory(ledger, sample, last_seen, decayed, has_ledger, rest, progress)
    return derive(table, memory, settings)


def _with_classes(table: CountTable, names: set[str]) -> CountTable:
    """Return the table with these classes, all of which have messages.

    A class whose counts have faded loses its last count before its last message.
    """
    lost = names.difference(table.classes)
    if not lost:
        return table
    table = add_tables([table, no_counts(tuple(sorted(lost)))])
    return table._replace(class_count=table.class_count + [name in lost for name in table.classes])


def sampled_parts(
    parts: Sequence[ModelMessages], settings: Settings, progress: LogProgress
) -> Sampling:
    """Return the sampling of all parts; a log that hosts share decides its bits for all."""
    is_fixed = progress.bits != NO_BITS
    bits = progress.bits if is_fixed else max(part.bits for part in parts)
    sampling = Sampling(settings.weighting, bits, is_fixed=is_fixed)
    sampling.add(part.messages for part in parts)
    return sampling


def empty_model(settings: Settings) -> Classifier:
    """Return the model of ham and spam that has learned no message."""
    with_counts = settings.weighting != PRESENCE
    memory = no_messages(np.empty(0, np.uint16), with_counts)
    return derive(no_counts(HAM_AND_SPAM), memory, settings)


def compacted(
    base: Classifier, changes: Sequence[LabelChange], progress: LogProgress
) -> Classifier:
    """Return a model with changes added to its counts and messages, and fitted again.

    progress: of the host that shares its lessons, after these changes.
    """
    if not changes and progress == memory_of(base).progress:
        return base
    settings = base.settings
    parts = messages_after(base, changes)
    tables = [base.table]
    if changes:
        tables.append(signed_table(changes, base.table.vocabulary, settings.weighting))
    tables.append(owed_table(base))
    sampling = sampled_parts(parts, settings, progress)
    table, owed = split_owed(add_tables(tables), sampling.messages, settings.weighting)
    return reassembled(base, table, parts, sampling, owed, progress)


def owed_table(classifier: Classifier) -> CountTable:
    """Return the counts that a model owes, as a table without texts."""
    owed, nothing = memory_of(classifier).owed, no_counts(classifier.classes)
    if owed is None:
        return nothing
    return CountTable(nothing.classes, nothing.class_count, without_texts(owed.keys), *owed[1:])


def split_owed(
    total: CountTable, remembered: Sequence[Messages], weighting: str
) -> tuple[CountTable, CountTable]:
    """Return a sum of changes as counts that messages can have, and the rest, which is owed.

    remembered: the messages whose tokens a model keeps; the counts have all of these tokens.
    """
    table = possible_counts(total, weighting)
    shown, frequency = table.feature_count, total.document_frequency.copy()
    differ = np.flatnonzero((shown != total.feature_count).any(axis=1) | (frequency <= 0))
    # Tokens that no document has any more keep only the counts of remembered messages.
    gone = differ[frequency[differ] <= 0]
    keys = total.vocabulary.keys[gone]
    counts, frequency[gone] = _counts_in(remembered, keys, total.classes, weighting)
    # Faded counts of a class may lack some of its messages.
    possible = possible_counts(total.take(gone)._replace(feature_count=counts), weighting)
    shown[gone] = possible.feature_count
    table = table._replace(document_frequency=frequency)
    if set(table.classes) <= set(HAM_AND_SPAM):  # a class without messages may have counts
        table = table.take(np.flatnonzero(frequency > 0))
    else:
        table = without_empty(table)
    counts = total.feature_count[differ] - shown[differ]
    documents = total.document_frequency[differ] - frequency[differ]
    owed = total.take(differ)._replace(
        feature_count=counts, document_frequency=documents, loss=None
    )
    return table, owed.take(np.flatnonzero(counts.any(axis=1) | (documents != 0)))


def _counts_in(
    parts: Sequence[Messages], keys: Keys, classes: Sequence[str], weighting: str
) -> tuple[Floats, Integers]:
    """Return the counts (n_keys, n_classes) and document frequencies (n_keys,) in messages."""
    counts, frequency = np.zeros((len(keys), len(classes))), np.zeros(len(keys), np.int64)
    for part in parts:
        place = find(part.documents.tokens, keys)
        rows, own = np.flatnonzero(place >= 0), place[place >= 0]
        is_asked = np.zeros(len(part.documents.tokens), np.bool_)
        is_asked[own] = True
        if len(own) and take_in_slices(is_asked, part.documents.columns).any():
            table = table_of_messages(part, weighting)
            of_class = np.array([classes.index(name) for name in table.classes])
            counts[np.ix_(rows, of_class)] += table.feature_count[own]
            frequency[rows] += table.document_frequency[own]
    return counts, frequency


def with_changes(base: Classifier, changes: Sequence[LabelChange]) -> Classifier:
    """Return a classifier with changes applied.

    If a fit was due among them but could not be written to the model file, it is made here.
    """
    due = ModelGrowth.of(base).note_all(changes)
    if not due:
        return overlay(base, changes)
    fitted = compacted(base, changes[:due], memory_of(base).progress)
    rest = respelt(changes[due:], base.table.vocabulary, fitted.table.vocabulary)
    return overlay(fitted, rest)


def lessons_of(
    base: Classifier, changes: Sequence[LabelChange]
) -> tuple[CountTable, Documents, Integers]:
    """Return the lessons of a model of presence and its changes, without fitting it again.

    That is: the table, whose tokens are in any order, and some may have no messages any more; the
    messages of which tokens are known, over keys; their classes, (n_docs,) indices.
    """
    parts = [part.messages for part in messages_after(base, changes)]
    table = base.table
    if changes:
        signed = signed_table(changes, table.vocabulary, base.settings.weighting)
        table = overlaid(table, signed)
    labels = np.concatenate([part.labels for part in parts])
    documents = united([part.documents for part in parts])
    return table, documents, np.searchsorted(table.classes, labels)


def reassembled(
    base: Classifier,
    table: CountTable,
    parts: Sequence[ModelMessages],
    sampling: Sampling,
    owed: CountTable,
    progress: LogProgress,
) -> Classifier:
    """Return the assembled model with the base's settings and, for the same classes, cutoffs."""
    last_seen = np.zeros(len(table.vocabulary), np.uint16)
    for part in parts:
        column = table.vocabulary.columns(part.keys)
        np.maximum.at(last_seen, column[column >= 0], part.last_seen[column >= 0])
    model = assembled(table, parts, base.settings, sampling, last_seen, owed, progress)
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


def check_prior(classifier: Classifier, name: str, classes: tuple[str, ...]) -> None:
    """Raise UsageError if a model whose prior was given would have other classes."""
    settings = classifier.settings
    own = settings.parameters.get("class_dirichlet")
    if classes != classifier.classes and (own or not isinstance(settings.class_prior, str)):
        raise UsageError(
            f"{name}: a prior was given for {', '.join(classifier.classes)}, not for"
            f" {', '.join(classes)}; train a new model instead"
        )


def check_known(classes: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for classes that are not known; ham and spam may join each other."""
    of_mail = set(HAM_AND_SPAM)
    allowed = of_mail.union(known) if of_mail.issuperset(known) else set(known)
    wrong = sorted(set(classes) - allowed)
    if wrong:
        near = get_close_matches(wrong[0], sorted(allowed), 1)
        asks = f"did you mean {near[0]}? --new-class" if near else "--new-class"
        raise UsageError(
            f"{', '.join(wrong):.300}: not among the model's classes ({', '.join(sorted(known))});"
            f" {asks} makes a new class"
        )


# ---- what a lesson changes ----

_ANY = 1 << 62  # more tokens than there are
NOWHERE = ""  # the class of messages that are to be un-learned; no class has this name


class MessageFiling(NamedTuple):
    """The messages of a model file, and the later changes of them."""

    base: Classifier
    last_changes: Mapping[int, LabelChange]  # of each changed message, by digest
    progress: LogProgress

    @property
    def bits(self) -> int:
        """How many zero bits end the digest of each message whose tokens are remembered."""
        own = memory_of(self.base).sample.bits
        return own if self.progress.bits == NO_BITS else max(own, self.progress.bits)

    def at(self, digest: int) -> FiledMessage:
        """Return where the model has a message."""
        if digest in self.last_changes:
            return self.last_changes[digest].filed
        ledger = memory_of(self.base).ledger
        (k,) = ledger.find(np.array([digest], np.uint64)).tolist()
        if k < 0:
            return NOT_FILED
        return FiledMessage(self.base.classes[int(ledger.labels[k])], bool(ledger.told[k]))

    def last_change(self, digest: int) -> LabelChange:
        """Return a change whose `after`, `told` and `day` say where the model has a message.

        Its document has no tokens if they are forgotten.
        """
        if digest in self.last_changes:
            return self.last_changes[digest]
        tokens = no_documents(np.empty(0, np.uint64), False)
        change = LabelChange(digest, None, None, 0, tokens, empty_vocabulary())
        filed, ledger = self.at(digest), memory_of(self.base).ledger
        if filed == NOT_FILED:
            return change
        (place,) = ledger.find(np.array([digest], np.uint64))
        change = self._sampled(digest) or change
        return change._replace(after=filed.label, told=filed.told, day=int(ledger.days[place]))

    def _sampled(self, digest: int) -> LabelChange | None:
        """Return a message of the sample, as a change without classes; None if not there."""
        sample = memory_of(self.base).sample
        (place,) = find(sample.digests, np.array([digest], np.uint64)).tolist()
        if place < 0:
            return None
        document = sample.documents.one(place)
        keys = self.base.table.vocabulary.keys[document.tokens]
        document = Documents(keys, *document[1:])
        return LabelChange(digest, None, None, 0, document, empty_vocabulary())

    def sizes(self, is_enough: Callable[[int, int], bool]) -> dict[int, int] | None:
        """Return the number of tokens of each message that it remembers, by digest.

        Returns None if is_enough is false of upper bounds of the numbers of messages and tokens.
        """
        sample, changed = memory_of(self.base).sample, self.last_changes.values()
        if not is_enough(len(sample.digests) + len(changed), _ANY):
            return None  # before all changes are looked at
        n_tokens = len(sample.documents.columns)
        n_tokens += sum(len(change.document.tokens) for change in changed)
        if not is_enough(len(sample.digests) + len(changed), n_tokens):
            return None
        lengths = np.diff(sample.documents.offsets).tolist()
        found = dict(zip(sample.digests.tolist(), lengths, strict=True))
        for change in changed:
            found.pop(change.digest, None)
            if change.after is not None:
                found[change.digest] = len(change.document.tokens)
        return {digest: n for digest, n in found.items() if is_remembered(digest, self.bits)}

    def decided(
        self,
        lessons: Sequence[LessonBatch],
        copies: Copies,
        day: int,
        is_wanted: Callable[[int, FiledMessage], bool],
    ) -> tuple[list[LabelChange], list[Outcome]]:
        """Return the changes that lessons make, and the outcome for each message."""
        changes: list[LabelChange] = []
        outcomes: list[Outcome] = []
        now: dict[int, LabelChange] = {}
        bits = self.bits
        for batch in lessons:
            labels = batch.messages.labels.tolist()
            digests = map(copies.numbered, batch.messages.digests.tolist(), batch.copies)
            for row, digest in enumerate(digests):
                before = now[digest].filed if digest in now else self.at(digest)
                if not is_wanted(len(outcomes), before):
                    outcomes.append(Outcome(already_known=1))
                    continue
                after = FiledMessage(labels[row], batch.told[row])
                after = NOT_FILED if labels[row] == NOWHERE else after
                outcomes.append(outcome_of(before, after))
                if after == before or after == before._replace(told=False):
                    continue
                change = None
                if before != NOT_FILED and is_remembered(digest, bits):
                    # As it was learned: each delivery adds its own headers, so that the tokens
                    # may differ from those of the copy that is to be moved or un-learned.
                    change = now.get(digest) or self.last_changes.get(digest)
                    change = change or self._sampled(digest)
                if change is None:
                    known = self.base.table.vocabulary
                    change = batch.change(row, digest, known, self.base.settings.weighting)
                now[digest] = change._replace(
                    before=before.label, after=after.label, day=day, told=after.told
                )
                changes.append(now[digest])
        return changes, outcomes


class LessonOutlet(Protocol):
    """Keeps the changes of a model for other hosts, on disk."""

    def lost(self, filing: MessageFiling) -> tuple[list[LabelChange], LogProgress]:
        """Return changes that were kept, but not made before a kill, and the new progress."""

    def keep(self, filing: MessageFiling, changes: Sequence[LabelChange]) -> LogProgress:
        """Keep changes before they are made; return the model's progress with them."""
