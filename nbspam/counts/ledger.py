"""A model's memory of messages besides its counts, and changes to both.

The ledger says which messages were learned, in which class and on which day, and whether a person
gave it for a single message or filed many at once.  With it a model recognises a message that
comes again, and can move or un-learn a message that it learned in the wrong class.  It stores the
digests of messages, not their text: about 11 bytes per message.

The sample holds the tokens of some messages: fitting the weights of evidence needs held-out
messages, and leaving a message out of the counts needs the message itself.  The digest of a
message decides whether it is kept, so the sample does not depend on the order of messages or the
number of processes, and learning on gives the same model as learning everything at once.

A change adds a message to one class, subtracts it from another, or both.  Counts are the sum of
all changes, in any order.  A message whose tokens are forgotten is moved by the tokens of the copy
at hand, which may subtract tokens that were never added, or not all that were.  Counts stop at 0,
and of presence at the messages of the class; the rest is owed, and later changes settle it.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import (
    Booleans,
    Days,
    Floats,
    Indices,
    Integers,
    Keys,
    Strings,
    distinct,
    find,
    together,
)
from nbspam.counts.table import CountTable, counted
from nbspam.settings import PRESENCE
from nbspam.tokens.sparse import (
    ChangedRows,
    Documents,
    ExtendedVocabulary,
    Vocabulary,
    join,
    no_documents,
    offsets_of,
    stacked,
    united,
)

# Blending many classes fits only a few numbers, for which 8,000 messages suffice.
ENOUGH = 8_000
# With two classes every message can correct tokens, so more messages help: E-014.  Above ENOUGH,
# messages are kept only while their tokens take at most 40 MB of the model.
MAX_SAMPLE, MAX_ENTRIES = 32_000, 10_000_000


# --- the sample -----------------------------------------------------------------------------


class Messages(NamedTuple):
    """Messages with their tokens, classes and digests."""

    labels: Strings  # (n_docs,)
    digests: Keys  # (n_docs,)
    documents: Documents  # over the keys of their tokens

    def take(self, chosen: Booleans) -> "Messages":
        """Return some of the messages; chosen: (n_docs,) a mask."""
        if chosen.all():
            return self
        documents = self.documents.take(chosen).without_unused()
        return Messages(self.labels[chosen], self.digests[chosen], documents)


def is_remembered(digest: int, bits: int) -> bool:
    """Return whether a sample with this number of zero bits keeps the message of a digest."""
    return not digest & ((1 << bits) - 1)


class Sample(NamedTuple):
    """The messages that a model stores, in the order of their digests."""

    bits: int  # number of zero bits at the end of each digest
    digests: Keys  # (n_docs,) ascending
    documents: Documents  # over all columns of the model's vocabulary


class Sampling:
    """Keeps the messages whose digest ends in a certain number of zero bits.

    messages: the messages kept so far.  bits: the number of zero bits; it grows by one whenever
    the sample is too large, which drops about half of the messages.  is_fixed: the bits do not
    grow, however many messages there are.

    A sample is too large if it has more than MAX_SAMPLE messages (ENOUGH, unless the weighting is
    presence), or more than ENOUGH that have more than MAX_ENTRIES tokens together.
    """

    def __init__(self, weighting: str, bits: int = 0, *, is_fixed: bool = False) -> None:
        self._limit = MAX_SAMPLE if weighting == PRESENCE else ENOUGH
        self._is_fixed = is_fixed
        self._begin(bits)

    def _begin(self, bits: int) -> None:
        self.bits = bits
        self.messages: list[Messages] = []
        self._n_docs = self._n_entries = 0

    def add(self, parts: Iterable[Messages]) -> None:
        """Add messages, and keep the ones that belong to the sample."""
        for part in parts:
            self._append(part)
            while self.is_too_large(self._n_docs, self._n_entries):
                self._grow()

    def make_room(self, digests: Keys, n_tokens: Integers) -> Booleans:
        """Grow the bits until messages fit; return a mask of those to keep, shape (n_docs,).

        n_tokens: (n_docs,) the number of tokens of each message.
        """
        chosen = self.wants(digests)
        while self.is_too_large(int(chosen.sum()), int(n_tokens[chosen].sum())):
            self._grow()
            chosen = self.wants(digests)
        return chosen

    def _grow(self) -> None:
        before = self.messages
        self._begin(self.bits + 1)
        for each in before:
            self._append(each)

    def wants(self, digests: Keys) -> Booleans:
        """Return which messages of some digests would be kept now, shape (n_docs,)."""
        return np.asarray((digests & np.uint64((1 << self.bits) - 1)) == 0)

    def is_too_large(self, n_docs: int, n_entries: int) -> bool:
        """Return whether a sample of so many messages, and tokens of them, is too large."""
        # Adding messages to a sample that is too large leaves it too large.  So the final number
        # of bits, and with it the sample, does not depend on the order of messages.
        has_too_many = n_docs > ENOUGH and n_entries > MAX_ENTRIES
        return not self._is_fixed and (n_docs > self._limit or has_too_many)

    def _append(self, part: Messages) -> None:
        kept = part.take(self.wants(part.digests))
        if len(kept.labels):
            self.messages.append(kept)
        self._n_docs += len(kept.labels)
        self._n_entries += len(kept.documents.columns)


def kept_sample(
    parts: Sequence[Messages], bits: int, vocabulary: Vocabulary, with_counts: bool
) -> Sample:
    """Return the sample that a model stores of these messages; drops unknown tokens."""
    digests = together([part.digests for part in parts], np.uint64)
    order: Integers = np.argsort(digests)
    documents = over_columns(parts, vocabulary, with_counts)
    return Sample(bits, digests[order], documents.take(order))


def over_columns(
    parts: Sequence[Messages], vocabulary: Vocabulary, with_counts: bool
) -> Documents:
    """Return the documents of all messages in turn, over all columns; drops unknown tokens."""
    columns = np.arange(len(vocabulary))
    if not parts:
        return no_documents(columns, with_counts)
    # One look-up for all tokens, because a look-up of many keys takes a third of the time.
    found = vocabulary.columns(np.concatenate([part.documents.tokens for part in parts]))
    ends = np.cumsum([len(part.documents.tokens) for part in parts]).tolist()
    documents = [
        part.documents.renumbered(found[start:end]).over_all(columns)
        for part, (start, end) in zip(parts, pairwise([0, *ends]), strict=True)
    ]
    return stacked(
        [part._replace(counts=part.times() if with_counts else None) for part in documents]
    )


# --- the ledger -----------------------------------------------------------------------------


class FiledMessage(NamedTuple):
    """Where a model has a message."""

    label: str | None  # None: nowhere
    told: bool  # whether a person has told the label


NOT_FILED = FiledMessage(None, False)


class Ledger(NamedTuple):
    """The learned messages, in the order of their digests."""

    digests: Keys  # (n_docs,) ascending, unique
    labels: Indices  # (n_docs,) index into the model's classes
    days: Days  # (n_docs,) since 1970-01-01
    told: Booleans  # (n_docs,) whether a person has told the class: it is not doubted

    def find(self, digests: Keys) -> Integers:
        """Return the positions of digests in the ledger, -1 for unknown ones; same shape."""
        return find(self.digests, digests)

    def only(self, digests: Keys) -> "Ledger":
        """Return the ledger of some of its messages."""
        chosen = np.isin(self.digests, digests)
        return Ledger(
            self.digests[chosen], self.labels[chosen], self.days[chosen], self.told[chosen]
        )


def ledger_of(
    digests: Keys, names: Strings, days: Days, classes: Sequence[str], told: Booleans
) -> Ledger:
    """Return the ledger of messages in any order; names: (n_docs,) the classes."""
    order = np.argsort(digests)
    labels = np.searchsorted(np.array(classes, np.str_), names[order])
    small = np.min_scalar_type(max(len(classes) - 1, 0))
    return Ledger(digests[order], labels.astype(small), days[order], told[order])


# --- the memory -----------------------------------------------------------------------------


class Owed(NamedTuple):
    """The part of the sum of all changes that counts cannot hold; see `table.possible_counts`."""

    keys: Keys  # (n_owed,) of tokens, ascending
    feature_count: Floats  # (n_owed, n_classes) in the model's classes
    document_frequency: Integers  # (n_owed,)


NO_BITS = 255  # the size of the sample decides
POSSIBLE_BITS = (NO_BITS, *range(64))


class LogProgress(NamedTuple):
    """How far a model has come in the log of a host that shares its lessons.

    It is written together with changes, so that none is made twice, or left out, after a kill.
    """

    log: int = 0  # checksum of the identifier of the log; 0: none was read
    read: int = 0  # number of the last record that the model has
    origin: int = 0  # checksum of the identifier of the host's outbox; 0: there was none
    own: int = 0  # number of the last lesson in that outbox that the model has
    bits: int = NO_BITS  # of the sample, by the lessons that the log has


NOT_SHARED = LogProgress()


class Memory(NamedTuple):
    """A model's memory besides its counts, to learn more messages later."""

    ledger: Ledger
    sample: Sample
    last_seen: Days  # (n_features,) day each token was last learned, since 1970-01-01
    decayed: int = 0  # the day on which counts were last faded; 0: never
    has_ledger: bool = True  # whether the ledger has all messages, or only the sample's
    owed: Owed | None = None  # None: nothing, as long as all tokens of messages are remembered
    progress: LogProgress = NOT_SHARED

    @property
    def sample_labels(self) -> Integers:
        """The classes of the sample's messages, shape (n_docs,), index into the classes."""
        return self.ledger.labels[self.ledger.find(self.sample.digests)].astype(np.int64)

    @property
    def sample_told(self) -> Booleans:
        """Whether a person has told the classes of the sample's messages, shape (n_docs,)."""
        return self.ledger.told[self.ledger.find(self.sample.digests)]

    def only(self, columns: Integers) -> "Memory":
        """Return the memory of these columns (ascending) only."""
        names = np.full(len(self.last_seen), -1)
        names[columns] = np.arange(len(columns))
        documents = self.sample.documents.renumbered(names).over_all(np.arange(len(columns)))
        sample = self.sample._replace(documents=documents)
        return self._replace(sample=sample, last_seen=self.last_seen[columns])


def no_messages(last_seen: Days, with_counts: bool) -> Memory:
    """Return the memory of a model of ham and spam without messages; last_seen: (n_features,)."""
    nothing = np.empty(0, np.uint64)
    told = nothing.astype(np.bool_)
    ledger = Ledger(nothing, nothing.astype(np.uint8), nothing.astype(np.uint16), told)
    documents = no_documents(np.arange(len(last_seen)), with_counts)
    return Memory(ledger, Sample(0, nothing, documents), last_seen)


def memory_to_dict(memory: Memory) -> dict[str, Any]:
    """Return the memory as plain values for the model file."""
    ledger, sample = memory.ledger, memory.sample
    counts = sample.documents.counts
    if counts is not None:
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))  # most are small
    return {
        "ledger": memory.has_ledger,
        "digest": ledger.digests,
        "label": ledger.labels,
        "day": ledger.days,
        "told": np.flatnonzero(ledger.told).astype(np.uint32),
        "last_seen": memory.last_seen,
        "decayed": memory.decayed,
        "sample_bits": sample.bits,
        "sample_digest": sample.digests,
        "sample_offsets": sample.documents.offsets.astype(np.uint32),
        "sample_column": sample.documents.columns.astype(np.uint32, copy=False),
        "sample_count": counts,
        "owed": None if memory.owed is None else memory.owed._asdict(),
        "shared": np.array(memory.progress, np.uint64),
    }


def memory_from_dict(state: dict[str, Any], n_features: int) -> Memory:
    """Return the memory in a model file, the inverse of `memory_to_dict`."""
    told = np.zeros(len(state["digest"]), np.bool_)
    told[state["told"]] = True
    ledger = Ledger(state["digest"], state["label"], state["day"], told)
    documents = Documents(
        np.arange(n_features),
        state["sample_offsets"].astype(np.int64),
        state["sample_column"],
        state["sample_count"],
    )
    sample = Sample(state["sample_bits"], state["sample_digest"], documents)
    return Memory(
        ledger,
        sample,
        state["last_seen"],
        state["decayed"],
        state["ledger"],
        None if state["owed"] is None else Owed(**state["owed"]),
        LogProgress(*state["shared"].tolist()),
    )


# --- changes --------------------------------------------------------------------------------

# A table of changes can have negative numbers.  If a person confirms the class of a message, it
# stays in its class.  A reader of a model overlays this table on the model's counts, which needs
# no sort and keeps all columns (`overlaid`), except for plain sums.  A writer of a new file also
# keeps what the counts cannot hold (`store.assembly.compacted`).


class LabelChange(NamedTuple):
    """One message that changed its class, or whose class a person has told now."""

    digest: int
    before: str | None  # its class before; None: it was not learned
    after: str | None  # its class afterwards; None: it is un-learned
    day: int  # since 1970-01-01
    document: Documents  # the message, over the keys of its tokens
    new: Vocabulary  # its tokens that the model file does not know, with their texts
    told: bool = False  # whether a person has told its class afterwards

    @property
    def filed(self) -> FiledMessage:
        """Where a model has the message afterwards."""
        return FiledMessage(self.after, self.told)


def respelt(
    changes: Sequence[LabelChange], before: Vocabulary, known: Vocabulary
) -> list[LabelChange]:
    """Return the changes as they must be written beside another model file.

    A journal holds the texts of only those tokens that its model file does not know: the field
    `new` of each change.  before, known: the vocabularies of the present and the other file.
    """
    keys = together([change.document.tokens for change in changes], np.uint64)
    is_spelt = known.columns(keys) < 0
    column = distinct(before.columns(keys[is_spelt]))
    spelt, _ = join([before.take(column[column >= 0]), *(change.new for change in changes)])
    place = spelt.columns(keys[is_spelt])
    is_spelt[is_spelt] = place >= 0
    # One look-up and one copy of texts for all changes: one for each took most of a lesson's time.
    texts = spelt.take(place[place >= 0]).packed()
    ends = offsets_of([len(change.document.tokens) for change in changes])
    bounds = pairwise(offsets_of(is_spelt)[ends].tolist())
    return [
        change._replace(new=texts.part(*bound))
        for change, bound in zip(changes, bounds, strict=True)
    ]


def signed_table(changes: Sequence[LabelChange], known: Vocabulary, weighting: str) -> CountTable:
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
    before = np.array([index[change.before] for change in changes])
    after = np.array([index[change.after] for change in changes])
    minus, plus = (
        counted(classes, vocabulary, documents.take(y >= 0), y[y >= 0], weighting)
        for y in (before, after)
    )
    return CountTable(
        classes,
        plus.class_count - minus.class_count,
        vocabulary,
        plus.feature_count - minus.feature_count,
        plus.document_frequency - minus.document_frequency,
    )


def _vocabulary(changes: Sequence[LabelChange], keys: Keys, known: Vocabulary) -> Vocabulary:
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


def overlaid(table: CountTable, change: CountTable) -> CountTable:
    """Return the sum of a table and its changes; all columns of the table stay where they are.

    The change has no class that the table does not have.  New tokens follow the others; tokens
    that no message has any more keep their columns.
    """
    total = uncopied_sum(table, change)
    uncopied: Any = total  # of other types than arrays
    return total._replace(
        vocabulary=uncopied.vocabulary.whole(),
        feature_count=uncopied.feature_count.whole(),
        document_frequency=uncopied.document_frequency.whole(),
    )


def uncopied_sum(table: CountTable, change: CountTable) -> CountTable:
    """Return the same as `overlaid`, for judging only: in `ChangedRows` instead of arrays."""
    own = [table.classes.index(name) for name in change.classes]
    class_count = np.array(table.class_count, np.float64)
    class_count[own] += change.class_count
    class_count = np.maximum(class_count, 0)  # faded counts may lack some of the messages
    column = table.vocabulary.columns(change.vocabulary.keys)
    new = np.flatnonzero((column < 0) & (change.document_frequency > 0))
    known = np.flatnonzero(column >= 0)
    known = known[np.argsort(column[known])]
    by_class = np.zeros((len(column), len(class_count)))
    by_class[:, own] = change.feature_count
    at = column[known]
    feature_count = _with_rows(table.feature_count, by_class, at, known, new)
    frequency = _with_rows(table.document_frequency, change.document_frequency, at, known, new)
    vocabulary: Any = ExtendedVocabulary(table.vocabulary, change.vocabulary.take(new).packed())
    loss = None if table.loss is None else table.loss.appended(len(new))
    return CountTable(table.classes, class_count, vocabulary, feature_count, frequency, loss)


def _with_rows(
    rows: Any, change: Floats | Integers, at: Integers, known: Integers, new: Integers
) -> Any:
    """Return rows (n_features, ...) with changes added to rows `at`, and new rows appended.

    known, new: where the change has both, (n_at,) and (n_new,).
    """
    # A pruned model has forgotten some of a token's counts, and a message that is moved by a copy
    # may leave a class with words that were never counted there.
    values = np.maximum(rows[at].astype(np.float64) + change[known], 0)
    added = np.maximum(change[new], 0)
    is_whole = rows.dtype.kind in "iu" and np.array_equal(change, np.rint(change))
    kind = rows.dtype if is_whole and values.max(initial=0) < 1 << 32 else np.dtype(np.float64)
    return ChangedRows(rows, added.astype(kind), at, values.astype(kind))


def messages_of_changes(changes: Sequence[LabelChange]) -> Messages:
    """Return the messages of changes; they must be distinct, and none may be un-learned."""
    labels = np.array([change.after for change in changes], np.str_)
    digests = np.array([change.digest for change in changes], np.uint64)
    if not changes:
        return Messages(labels, digests, no_documents(np.empty(0, np.uint64), False))
    return Messages(labels, digests, united([change.document for change in changes]))
