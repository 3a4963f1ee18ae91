"""Assembly of a model from parts: counts are added, ledgers and samples are joined.

The model depends only on its messages, however they were obtained (trained at once, learned on,
un-learned, merged), because everything is first put in the order of keys and digests.
"""

import mmap
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Days, Indices, Integers, Keys, Strings, find, together
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import ModelGrowth, derive, most_tokens, overlay
from nbspam.counts.counting import table_of_messages, without_texts
from nbspam.counts.ledger import (
    NO_BITS,
    NOT_SHARED,
    LabelChange,
    LogProgress,
    Memory,
    Messages,
    Owed,
    Sampling,
    kept_sample,
    ledger_of,
    messages_of_changes,
    no_messages,
    overlaid,
    respelt,
    signed_table,
)
from nbspam.counts.table import (
    CountTable,
    add_tables,
    compact,
    loss_without,
    most_frequent,
    no_counts,
    sum_over,
    without_empty,
)
from nbspam.decision import HAM_AND_SPAM
from nbspam.disk import spooling
from nbspam.errors import UsageError
from nbspam.settings import PRESENCE, Settings
from nbspam.tokens.sparse import Documents, Vocabulary, join, take_in_slices, united


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
    touched = [change.digest for change in changes]
    return [messages_of_model(base).without(touched), _part_of_changes(changes)]


def _part_of_changes(changes: Sequence[LabelChange]) -> ModelMessages:
    last = {change.digest: change for change in changes}
    learned = [change for change in last.values() if change.after is not None]
    seen = [change for change in changes if change.after is not None]
    tokens = [change.document.tokens for change in seen]
    return ModelMessages(
        np.array([change.digest for change in learned], np.uint64),
        np.array([change.after for change in learned], np.str_),
        np.array([change.day for change in learned], np.uint16),
        np.array([change.told for change in learned], np.bool_),
        messages_of_changes(learned),
        0,
        together(tokens, np.uint64),
        np.repeat(
            np.array([change.day for change in seen], np.uint16), [len(keys) for keys in tokens]
        ),
    )


def assembled(
    table: CountTable,
    parts: Sequence[ModelMessages],
    settings: Settings,
    sampling: Sampling,
    last_seen: Days,
    owed: CountTable | None = None,
    progress: LogProgress = NOT_SHARED,
) -> Classifier:
    """Return the model of a table and the messages counted in it; raises NotTrainedError.

    sampling: of all messages of the parts.  last_seen: (n_features,).  owed: see `_balanced`.  A
    model of ham alone or spam alone, or of no messages, is one of ham and spam.
    """
    if len(table.classes) < 2 and set(table.classes) <= set(HAM_AND_SPAM):
        table = add_tables([table, no_counts(HAM_AND_SPAM)])
    names = np.concatenate([part.names for part in parts])
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
    owes = None if owed is None else _in_classes(owed, table.classes)
    memory = Memory(ledger, sample, last_seen, decayed, has_ledger, owes, progress)
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
    memory = no_messages(HAM_AND_SPAM, np.empty(0, np.uint16), with_counts)
    return derive(no_counts(HAM_AND_SPAM), memory, settings)


def compacted(
    base: Classifier, changes: Sequence[LabelChange], progress: LogProgress | None = None
) -> Classifier:
    """Return a model with changes added to its counts and messages, and fitted again.

    progress: of the host that shares its lessons, after these changes; None: as before them.
    """
    memory = memory_of(base)
    progress = memory.progress if progress is None else progress
    if not changes and progress == memory.progress:
        return base
    settings = base.settings
    parts = messages_after(base, changes)
    tables = [base.table]
    if changes:
        tables.append(signed_table(changes, base.table.vocabulary, settings.weighting))
    tables.append(owed_table(base))
    sampling = sampled_parts(parts, settings, progress)
    table, rest = _balanced(add_tables(tables), sampling.messages, settings.weighting)
    return reassembled(base, table, parts, sampling, rest, progress)


def owed_table(classifier: Classifier) -> CountTable:
    """Return the counts that a model owes, as a table without texts."""
    owed, nothing = memory_of(classifier).owed, no_counts(classifier.classes)
    if owed is None:
        return nothing
    return CountTable(nothing.classes, nothing.class_count, without_texts(owed.keys), *owed[1:])


def _balanced(
    total: CountTable, remembered: Sequence[Messages], weighting: str
) -> tuple[CountTable, CountTable]:
    """Return a sum of changes as counts that are never below 0, and the rest, which is owed.

    remembered: the messages whose tokens a model keeps; the counts have all of these tokens.
    """
    class_count, shown = np.maximum(total.class_count, 0), np.maximum(total.feature_count, 0)
    frequency = total.document_frequency.copy()
    below = np.flatnonzero((total.feature_count < 0).any(axis=1) | (frequency <= 0))
    gone = below[frequency[below] <= 0]
    shown[gone], frequency[gone] = 0, 0
    for part in remembered:
        place = find(part.documents.tokens, total.vocabulary.keys[gone])
        is_held = np.zeros(len(part.documents.tokens), np.bool_)
        is_held[place[place >= 0]] = True
        if not is_held.any() or not take_in_slices(is_held, part.documents.columns).any():
            continue
        held = table_of_messages(part, weighting)
        rows, own = gone[place >= 0], place[place >= 0]
        of_class = np.array([total.classes.index(name) for name in held.classes])
        shown[np.ix_(rows, of_class)] += held.feature_count[own]
        frequency[rows] += held.document_frequency[own]
    rest = total.take(below)._replace(loss=None)
    rest = rest._replace(
        feature_count=rest.feature_count - shown[below],
        document_frequency=rest.document_frequency - frequency[below],
    )
    is_owed = rest.feature_count.any(axis=1) | (rest.document_frequency != 0)
    table = total._replace(
        class_count=class_count, feature_count=shown, document_frequency=frequency
    )
    if set(table.classes) <= set(HAM_AND_SPAM):  # a class without messages may have counts
        table = table.take(np.flatnonzero(frequency > 0))
    else:
        table = without_empty(table)
    return table, rest.take(np.flatnonzero(is_owed))


def _in_classes(owed: CountTable, classes: tuple[str, ...]) -> Owed | None:
    """Return the owed counts in these classes; None if there are none."""
    counts = np.column_stack([owed.of_class(name)[1] for name in classes])
    frequency = owed.document_frequency.astype(np.int64)
    return Owed(owed.vocabulary.keys, counts, frequency) if len(frequency) else None


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
    owed: CountTable | None = None,
    progress: LogProgress = NOT_SHARED,
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


def check_known(classes: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for classes that are not known; ham and spam may join each other."""
    of_mail = set(HAM_AND_SPAM)
    allowed = of_mail.union(known) if of_mail.issuperset(known) else set(known)
    wrong = sorted(set(classes) - allowed)
    if wrong:
        near = get_close_matches(wrong[0], sorted(allowed), 1)
        asks = f"did you mean {near[0]}? --new-class" if near else "--new-class"
        raise UsageError(
            f"{', '.join(wrong)}: not among the model's classes ({', '.join(sorted(known))});"
            f" {asks} makes a new class"
        )


# ---- streams of sorted tokens: many models are added with memory for one block ----
#
# A run is a sorted sequence of tokens with their counts, which is mapped from a file.  The keys of
# all runs are cut at the same places, so that a block has the rows of all of them between two
# cuts.  Sums are written to temporary files (in TMPDIR) and mapped again.


AT_ONCE = 32  # runs that are added at once; more are added in a tree
BLOCK = 1 << 18  # tokens of all runs in a block
_ARRAY_TYPES = ("i8", "u8", "u1", "u1", "f8", "i8", "i8", "u2", "i8")  # of the arrays on disk
NO_TEXT = np.iinfo(np.int64).max  # the rank of a token without a text


class SortedTokens(NamedTuple):
    """Tokens with their counts, in the order of keys."""

    table: CountTable
    ranks: Indices  # (n_features,) of the texts of a token, that of the lowest rank is kept
    last_seen: Days  # (n_features,)

    def part(self, start: int, end: int) -> "SortedTokens":
        """Return the rows start to end - 1, without copying."""
        table, some = self.table, slice(start, end)
        loss = table.loss
        part = table._replace(
            vocabulary=table.vocabulary.part(start, end),
            feature_count=table.feature_count[some],
            document_frequency=table.document_frequency[some],
            loss=None if loss is None else loss._replace(of_each=loss.of_each[some]),
        )
        return SortedTokens(part, self.ranks[some], self.last_seen[some])

    def arrays(self) -> tuple[Any, ...]:
        """Return everything that it has of its tokens, in the order of `_ARRAY_TYPES`."""
        words, table = self.table.vocabulary.packed(), self.table
        return (
            words.offsets,
            words.keys,
            words.blob,
            words.groups,
            table.feature_count,
            table.document_frequency,
            self.ranks,
            self.last_seen,
            np.empty(0, np.int64) if table.loss is None else table.loss.of_each,
        )

    @property
    def is_mapped(self) -> bool:
        """Whether its tokens are mapped from a file, instead of being in memory."""
        return not len(self.ranks) or _map_of(self.table.vocabulary.keys) is not None

    def release(self) -> None:
        """Let go of the pages of files that were read; they are read again where needed."""
        for memory in {id(found): found for found in map(_map_of, self.arrays())}.values():
            if memory is not None and hasattr(mmap, "MADV_DONTNEED"):
                memory.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the map of a file that an array is a view of, None if it is in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    array = array.obj if isinstance(array, memoryview) else array
    return array if isinstance(array, mmap.mmap) else None


def run_of(table: CountTable, rank: int, last_seen: Days | int = 0) -> SortedTokens:
    """Return a table as a run; rank: of all of its texts; last_seen: of each token, or of all."""
    n = len(table.vocabulary)
    packed = table._replace(vocabulary=table.vocabulary.packed())
    seen = np.broadcast_to(np.asarray(last_seen, np.uint16), n)
    return SortedTokens(packed, np.broadcast_to(np.int64(rank), n), seen)


def merged_runs(
    runs: Sequence[SortedTokens], remembered: Sequence[Messages] = (), weighting: str = PRESENCE
) -> tuple[SortedTokens, CountTable]:
    """Return the sum of runs, on disk, without empty rows, and what it owes: see `_balanced`."""
    while len(runs) > AT_ONCE:
        starts = range(0, len(runs), AT_ONCE)
        runs = [spooled(blocks(runs[start : start + AT_ONCE])) for start in starts]
    owed = []

    def settled() -> Iterator[SortedTokens]:
        for block in blocks(runs):
            table, rest = _balanced(block.table, remembered, weighting)
            kept = find(block.table.vocabulary.keys, table.vocabulary.keys)
            owed.append(rest)
            yield SortedTokens(table, block.ranks[kept], block.last_seen[kept])

    total = spooled(settled())
    return total, add_tables(owed)


def blocks(runs: Sequence[SortedTokens]) -> Iterator[SortedTokens]:
    """Yield the sum of runs, one block of sorted tokens after the other; there is at least one.

    Every block has the classes of all runs, and the number of their messages.
    """
    cuts, ends = _cuts(runs), []
    for run in runs:
        found = np.searchsorted(run.table.vocabulary.keys, cuts)
        ends.append([0, *found.tolist(), len(run.ranks)])
        run.release()
    for bounds in zip(*map(pairwise, ends), strict=True):
        yield _added([run.part(*own) for run, own in zip(runs, bounds, strict=True)])
        for run in runs:
            run.release()


def _cuts(runs: Sequence[SortedTokens]) -> Any:
    """Return keys, ascending, between two of which there are at most BLOCK rows.

    Of each run, every `step`-th key is looked at.
    """
    step = max(1, BLOCK // (2 * len(runs)))
    marks = []
    for run in runs:
        marks.append(run.table.vocabulary.keys[step::step].copy())
        run.release()
    return np.sort(np.concatenate(marks))[len(runs) - 1 :: len(runs)]


def _added(parts: Sequence[SortedTokens]) -> SortedTokens:
    """Return the sum of one block."""
    tables = [part.table for part in parts]
    ranks = np.concatenate([part.ranks for part in parts])
    vocabulary, column = join([table.vocabulary for table in tables], ranks)
    lowest = np.full(len(vocabulary), NO_TEXT)
    np.minimum.at(lowest, column, ranks)
    last_seen = np.zeros(len(vocabulary), np.uint16)
    np.maximum.at(last_seen, column, np.concatenate([part.last_seen for part in parts]))
    return SortedTokens(sum_over(tables, vocabulary, column), lowest, last_seen)


@spooling()
def spooled(parts: Iterable[SortedTokens]) -> SortedTokens:
    """Return consecutive blocks of sorted tokens as one run, on disk; raises InputError.

    parts: one block at least.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in _ARRAY_TYPES]
        n_bytes = n_tokens = 0
        files[0].write(bytes(8))  # the first offset
        for part in parts:
            offsets, *others = part.arrays()
            ends = offsets[1:] + n_bytes
            for file, array, kind in zip(files, (ends, *others), _ARRAY_TYPES, strict=True):
                file.write(np.ascontiguousarray(array, kind).data)
            n_bytes, n_tokens = n_bytes + int(offsets[-1]), n_tokens + len(ends)
            table = part.table
        cells, n_lacking = (n_tokens, len(table.classes)), 0 if table.loss is None else n_tokens
        each = n_tokens
        shapes = (n_tokens + 1, each, n_bytes, each, cells, each, each, each, n_lacking)
        offsets, keys, blob, groups, feature_count, frequency, ranks, last_seen, lacks = map(
            _mapped, files, _ARRAY_TYPES, shapes
        )
    vocabulary = Vocabulary(keys, blob, offsets, groups)
    loss = None if table.loss is None else table.loss._replace(of_each=lacks)
    whole = CountTable(
        table.classes, table.class_count, vocabulary, feature_count, frequency, loss
    )
    return SortedTokens(whole, ranks, last_seen)


def _mapped(file: Any, kind: str, shape: Any) -> Any:
    file.flush()
    if not np.prod(shape):  # no map can be empty
        return np.empty(shape, kind)
    mapped = np.memmap(file, kind, "r", shape=shape)
    return np.ndarray(shape, mapped.dtype, mapped.base)


def loaded_table(
    total: SortedTokens, settings: Settings, columns: Integers | None = None
) -> tuple[CountTable, Days]:
    """Return the table that a model keeps of a sum, and the day each token was last seen.

    columns: ascending, of the tokens that may stay (None: all).  If there are more than a model
    has room for, the rarest are left out, as `training.derive` does.  The table is on disk.
    """
    whole = total.table
    frequency, last_seen, loss = compact(whole.document_frequency), total.last_seen, whole.loss
    if columns is not None and len(columns) < len(frequency):
        loss = loss_without(loss, frequency, columns)
        frequency, last_seen = frequency[columns], last_seen[columns]
    limit = most_tokens(whole, settings)
    if len(frequency) > limit:
        best = most_frequent(frequency, limit, last_seen)
        loss = loss_without(loss, frequency, best)
        columns = best if columns is None else columns[best]
    kept = total if columns is None else spooled(_parts_of(total, columns))
    return kept.table._replace(loss=loss), kept.last_seen


def _parts_of(run: SortedTokens, columns: Integers) -> Iterator[SortedTokens]:
    """Yield some columns (ascending) of a run, block by block; one block at least."""
    starts = np.arange(0, max(len(run.ranks), 1), BLOCK)
    for start, own in zip(
        starts.tolist(), np.split(columns, np.searchsorted(columns, starts[1:])), strict=True
    ):
        part = run.part(start, min(start + BLOCK, len(run.ranks)))
        chosen = own - start
        yield SortedTokens(part.table.take(chosen), part.ranks[chosen], part.last_seen[chosen])
        run.release()
