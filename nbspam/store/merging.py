"""Merging: models, models of tables, or all parts of one training become one model.

Counts can be added, but a message that two models know must count once.  To subtract it from one
of them its tokens are needed, and only the messages in a model's sample have them.  A part has the
counts of everything that one process of a training read, and its messages one by one, as their
copies may be in other parts: the merged model is that of training at once, to the byte.
"""

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import groupby, pairwise
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Days, Indices, Integers, Keys, find
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import check_classes, most_tokens, train_classifier
from nbspam.counts.counting import repeated, table_of_messages
from nbspam.counts.ledger import Messages, Sampling
from nbspam.counts.shards import CountedShard, gather_shards, shard_from_state, shard_to_state
from nbspam.counts.table import (
    CountTable,
    TableSum,
    add_tables,
    compact,
    loss_without,
    most_frequent,
    negative,
    sum_over,
    without_empty,
    worth_keeping,
)
from nbspam.decision import HAM_AND_SPAM, Cutoffs
from nbspam.disk import allow_files, resolved, spooling, stamp_of
from nbspam.errors import ModelFileError, UsageError
from nbspam.models import DAMAGE
from nbspam.printing import tracked
from nbspam.sent_mail import SentMail
from nbspam.settings import Settings, settings_from_state, settings_to_state
from nbspam.store import assembly, modelfile
from nbspam.store.fields import check_part
from nbspam.store.journal import hand_over, locked_model, read_journal, replacing_model
from nbspam.store.model import StoredModel
from nbspam.store.open import PART_KIND, keep_old_model
from nbspam.store.tables import merge_tables
from nbspam.tables.classifier import TableClassifier
from nbspam.tokens.sparse import Documents, Vocabulary, join, united


class Merged(NamedTuple):
    """The sum of models, or of the parts of one training."""

    classifier: Classifier | TableClassifier
    n_added: int  # models or parts
    repeated: int = 0  # messages that several models knew, or that came again; they count once
    disputed: int = 0  # how many of these models knew as different classes
    is_training: bool = False  # whether parts were added


# ---- sums of many tables, with memory for one block of tokens ----
#
# A run is a sorted sequence of tokens with their counts, which is mapped from a file.  The keys of
# all runs are cut at the same places, so that a block has the rows of all of them between two
# cuts.  Sums are written to temporary files (in TMPDIR) and mapped again.

RUNS_AT_ONCE = 32  # runs that are added at once; more are added in a tree
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
    """Return a table as a run; rank: that of its texts; last_seen: of each token, or of all."""
    n = len(table.vocabulary)
    packed = table._replace(vocabulary=table.vocabulary.packed())
    seen = np.broadcast_to(np.asarray(last_seen, np.uint16), n)
    return SortedTokens(packed, np.broadcast_to(np.int64(rank), n), seen)


def merged_runs(
    runs: Sequence[SortedTokens], remembered: Sequence[Messages], weighting: str
) -> tuple[SortedTokens, CountTable]:
    """Return the sum of runs, on disk, without empty rows, and the counts that it owes.

    See `assembly.split_owed`.
    """
    while len(runs) > RUNS_AT_ONCE:
        starts = range(0, len(runs), RUNS_AT_ONCE)
        runs = [spooled(blocks(runs[start : start + RUNS_AT_ONCE])) for start in starts]
    owed = []

    def without_owed() -> Iterator[SortedTokens]:
        for block in blocks(runs):
            table, rest = assembly.split_owed(block.table, remembered, weighting)
            kept = find(block.table.vocabulary.keys, table.vocabulary.keys)
            owed.append(rest)
            yield SortedTokens(table, block.ranks[kept], block.last_seen[kept])

    total = spooled(without_owed())
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

    Only every `step`-th key of a run is looked at.
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
        n_bytes = 0
        files[0].write(bytes(8))  # the first offset
        for part in parts:
            offsets, *others = part.arrays()
            ends = offsets[1:] + n_bytes
            for file, array, kind in zip(files, (ends, *others), _ARRAY_TYPES, strict=True):
                file.write(np.ascontiguousarray(array, kind).data)
            n_bytes += int(offsets[-1])
            table = part.table
        offsets, keys, blob, groups, counts, frequency, ranks, last_seen, lacks = map(
            _mapped, files, _ARRAY_TYPES
        )
    vocabulary = Vocabulary(keys, blob, offsets, groups)
    counts = counts.reshape(len(keys), len(table.classes))
    loss = None if table.loss is None else table.loss._replace(of_each=lacks)
    whole = CountTable(table.classes, table.class_count, vocabulary, counts, frequency, loss)
    return SortedTokens(whole, ranks, last_seen)


def _mapped(file: Any, kind: str) -> Any:
    if not file.tell():  # no map can be empty
        return np.empty(0, kind)
    file.flush()
    mapped = np.memmap(file, kind, "r")
    return np.ndarray(len(mapped), mapped.dtype, mapped.base)


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
    of_blocks = np.split(columns, np.searchsorted(columns, starts[1:]))
    for start, own in zip(starts.tolist(), of_blocks, strict=True):
        part = run.part(start, min(start + BLOCK, len(run.ranks)))
        chosen = own - start
        yield SortedTokens(part.table.take(chosen), part.ranks[chosen], part.last_seen[chosen])
        run.release()


# ---- models ----

# Settings that must be equal, since counts of different tokens or weights cannot be added.
_MUST_AGREE = ("tokens", "reading", "strip", "weighting")
_AT_ONCE = 1 << 12  # messages that are subtracted together


class _MergedModel(NamedTuple):
    """A model on disk, of which little is in memory."""

    path: str
    settings: Settings
    cutoffs: Cutoffs | None
    part: assembly.ModelMessages  # its ledger and sample, without keys
    run: SortedTokens
    owed: CountTable


class _ModelCopy(NamedTuple):
    """A message as one of several models knows it."""

    digest: int
    model: int
    label: str
    day: int
    told: bool


def merge_models(paths: Sequence[str]) -> Merged:
    """Return the model of all messages that several models know; raises NbspamError.

    paths: the model files.  Of a message that several models know, the copy whose class a person
    has told is kept; else the one that was learned later; if both were on the same day, that of
    the model named later.  Settings that do not affect counts are those of the first model.  Rows
    of tables have no identity, so each of them counts.
    """
    models = [_opened(path, place) for place, path in enumerate(tracked(paths, "models"))]
    _check_agreement(models)
    all_lost, told, n_repeated, n_disputed = _common(models)
    settings = models[0].settings
    known = [m.settings.sent_mail for m in models if m.settings.sent_mail is not None]
    if known:
        settings = replace(settings, sent_mail=reduce(SentMail.united, known))
    corrections = _corrections(models, all_lost, settings.weighting)
    sums = [model.owed for model in models if len(model.owed.vocabulary)]
    if corrections.classes:
        sums.append(corrections)
    sampling = Sampling(settings.weighting, max(model.part.bits for model in models))
    parts = []
    for model, lost in zip(models, all_lost, strict=True):
        is_told = model.part.told | np.isin(model.part.digests, told)
        part = model.part._replace(told=is_told).without([copy.digest for copy in lost])
        bits = sampling.bits
        sampling.add([part.messages])
        parts.append(part)
        # Where more bits are required, the messages of all models were looked at again.
        for each in models if sampling.bits > bits else [model]:
            each.run.release()
    runs = [model.run for model in models]
    runs += [run_of(table, NO_TEXT) for table in sums]
    total, owed = merged_runs(runs, sampling.messages, settings.weighting)
    table, last_seen = loaded_table(total, settings)
    classifier = assembly.assembled(table, parts, settings, sampling, last_seen, owed)
    cutoffs = models[0].cutoffs if classifier.classes == HAM_AND_SPAM else None
    return Merged(replace(classifier, cutoffs=cutoffs), len(paths), n_repeated, n_disputed)


def _opened(path: str, place: int) -> _MergedModel:
    """Return a model with its journal; place: its number, the rank of its texts.

    If a journal has changes, their sum with the model is written to a temporary file, so that
    models do not fill the memory.
    """
    whole = StoredModel(path).whole()
    run = run_of(whole.table, place, assembly.memory_of(whole).last_seen)
    if _map_of(run.table.vocabulary.keys) is None:
        run = spooled([run])
    part = assembly.messages_of_model(replace(whole, table=run.table))
    part = part._replace(keys=part.keys[:0], last_seen=part.last_seen[:0])
    run.release()
    return _MergedModel(path, whole.settings, whole.cutoffs, part, run, assembly.owed_table(whole))


def _check_agreement(models: Sequence[_MergedModel]) -> None:
    first = models[0]
    ours = first.settings.to_dict()
    for other in models[1:]:
        theirs = other.settings.to_dict()
        different = [name for name in _MUST_AGREE if ours[name] != theirs[name]]
        if different:
            raise UsageError(
                f"{other.path}: differs from {first.path} in its settings"
                f" ({', '.join(different)}), so their counts cannot be added; train both with the"
                " same options"
            )


def _copies(models: Sequence[_MergedModel]) -> Iterator[list[_ModelCopy]]:
    """Yield each message that several models know, as each of them knows it, in their order."""
    several = repeated(np.concatenate([model.part.digests for model in models]))
    copies: list[_ModelCopy] = []
    for place, part in enumerate(model.part for model in models):
        chosen = np.isin(part.digests, several)
        fields = (of[chosen].tolist() for of in (part.digests, part.names, part.days, part.told))
        copies += [
            _ModelCopy(digest, place, name, day, told)
            for digest, name, day, told in zip(*fields, strict=True)
        ]
    copies.sort()
    for _, same in groupby(copies, lambda copy: copy.digest):
        yield list(same)


def _common(models: Sequence[_MergedModel]) -> tuple[list[list[_ModelCopy]], Keys, int, int]:
    """Return the fate of the messages that several models know.

    That is: of each model, the copies that it does not keep; the digests of messages whose class a
    person told one of the models; the numbers of repeated and of disputed messages.
    """
    lost: list[list[_ModelCopy]] = [[] for _ in models]
    told: list[int] = []
    n_repeated = n_disputed = 0
    for copies in _copies(models):
        kept = max(copies, key=lambda copy: (copy.told, copy.day, copy.model))
        if kept.told:
            told.append(kept.digest)
        for copy in copies:
            if copy is not kept:
                n_repeated += 1
                n_disputed += copy.label != kept.label
                lost[copy.model].append(copy)
    return lost, np.array(told, np.uint64), n_repeated, n_disputed


def _corrections(
    models: Sequence[_MergedModel], lost: Sequence[Sequence[_ModelCopy]], weighting: str
) -> CountTable:
    """Return the corrections of the sum of all models' counts; raises UsageError."""
    total = TableSum()
    for copies in lost:
        for start in range(0, len(copies), _AT_ONCE):
            some = copies[start : start + _AT_ONCE]
            part = Messages(
                np.array([copy.label for copy in some], np.str_),
                np.array([copy.digest for copy in some], np.uint64),
                united([_document(copy, models) for copy in some]),
            )
            total.add(negative(table_of_messages(part, weighting)))
    return total.total()


def _document(copy: _ModelCopy, models: Sequence[_MergedModel]) -> Documents:
    """Return the tokens of a message, its model's own if it has them; raises UsageError."""
    digest = np.uint64(copy.digest)
    for model in (models[copy.model], *models):
        sampled = model.part.messages
        (place,) = find(sampled.digests, np.array([digest])).tolist()
        if place >= 0:
            return sampled.documents.one(place)
    _, second, *_ = (k for k, model in enumerate(models) if digest in model.part.digests)
    path, digests = models[second].path, models[second].part.digests
    known = [model.part.digests for model in models[:second]]
    n_shared = int(np.isin(digests, np.concatenate(known)).sum())
    raise UsageError(
        f"{path}: {n_shared:,} of its messages are in the models before it too, and"
        " not all of them are stored in a sample; first run: nbspam unlearn"
        f" -m {path} SOURCE with the mail that both have learned"
    )


# ---- parts of one training ----

_NAMED = 5  # missing parts that an error names


class TrainingPart(NamedTuple):
    """A part of a training, as it is in a file."""

    path: str
    identity: modelfile.Identity
    settings: Settings
    counted: CountedShard


def save_part(path: str, counted: CountedShard, settings: Settings) -> str | None:
    """Write a part, and return where the model or other part that it replaces is kept, if any.

    Raises ModelFileError.
    """
    path = resolved(path)
    modelfile.check_target(path)
    state = {"kind": PART_KIND, **settings_to_state(settings), **shard_to_state(counted)}
    with locked_model(path), replacing_model(path, state) as new:
        stamp = stamp_of(path)
        is_other = modelfile.is_model_file(path) and not _holds_part(path, counted.shard)
        kept = keep_old_model(path) if is_other else None
        hand_over(path, new, stamp, read_journal(path))
    return kept


def _holds_part(path: str, shard: tuple[int, int]) -> bool:
    try:
        state = modelfile.load_state(path)
    except ModelFileError:
        return False
    return is_part(state) and (state.get("number"), state.get("of")) == shard


def is_part(state: modelfile.State) -> bool:
    """Return whether the state of a model file is a part of a training."""
    return state.get("kind") == PART_KIND


def read_part(path: str, snapshot: modelfile.Snapshot) -> TrainingPart:
    """Return the part in a file; raises ModelFileError."""
    state = snapshot.state
    try:
        check_part(state)
        settings, counted = settings_from_state(state), shard_from_state(state)
    except DAMAGE as error:
        raise ModelFileError(
            f"{path}: its contents do not fit ({error}); make this part again"
        ) from error
    return TrainingPart(path, snapshot.identity, settings, counted)


def merge_parts(parts: Sequence[TrainingPart], day: int) -> Merged:
    """Return the model of training on all parts at once; raises UsageError, NotTrainedError.

    day: on which it learns the messages, counted from 1970-01-01.
    """
    parts = _complete(parts)
    settings = parts[0].settings
    shards = [part.counted for part in parts]
    gathered = gather_shards(shards, settings.weighting)
    runs = [
        SortedTokens(s.table, s.first, np.broadcast_to(np.uint16(day), len(s.first)))
        for s in shards
    ]
    if gathered.table.classes:  # corrections
        runs.append(run_of(gathered.table, NO_TEXT))
    total, _ = merged_runs(runs, (), settings.weighting)
    whole = without_empty(total.table)
    check_classes(whole)
    columns = worth_keeping(whole, settings.min_df, settings.max_features)
    table, _ = loaded_table(total, settings, columns)
    classifier = train_classifier(gathered._replace(table=table), settings, day)
    return Merged(classifier, len(parts), gathered.repeated, is_training=True)


def _complete(parts: Sequence[TrainingPart]) -> list[TrainingPart]:
    """Return all parts of one training in order, each once; raises UsageError for others."""
    first = parts[0]
    found: dict[int, TrainingPart] = {}
    for part in parts:
        shard, own = part.counted.shard, first.counted.shard
        if shard.of != own.of:
            raise UsageError(
                f"{part.path}: part {shard}, but {first.path} is part {own}; name the parts of"
                " one training"
            )
        if part.counted.census != first.counted.census:
            raise UsageError(
                f"{part.path}: counted in other mail than {first.path}"
                f" ({part.counted.census.n_items:,} items, not {first.counted.census.n_items:,},"
                " or other labels); make both parts again from the same sources"
            )
        if part.settings != first.settings:
            raise UsageError(
                f"{part.path}: made with other options than {first.path}; make one of them again"
            )
        same = found.setdefault(shard.number, part)
        if same.identity != part.identity:
            raise UsageError(
                f"{part.path}: differs from {same.path}, and both are part {shard}; name only"
                " the right one"
            )
    n_parts = first.counted.shard.of
    looked_at = range(1, min(n_parts, len(found) + _NAMED) + 1)
    missing = [str(n) for n in looked_at if n not in found][:_NAMED]
    if missing:
        n_more = n_parts - len(found) - len(missing)
        more = f" and {n_more:,} more" if n_more else ""
        raise UsageError(
            f"merge: part {', '.join(missing)}{more} of {n_parts} is missing;"
            f" make it with: nbspam shard {missing[0]}/{n_parts}, and name it too"
        )
    return [found[number] for number in sorted(found)]


# ---- all kinds of files ----

# The endings of what nbspam keeps beside a model: the model that it replaced, locks, journals, and
# what `nbspam serve` and `nbspam sort` keep.
_BESIDE = re.compile(
    r"(?:~|\.lock|\.journal(?:\.[0-9a-f]{8}|\.next)?|\.secret|\.lists|\.served"
    r"|\.(?:review|share|accounts)(?:-wal|-shm|\.[0-9a-z]+)?)+$"
)


def merge(paths: Sequence[str], day: int) -> Merged:
    """Return the model of all messages that several models, or parts, know; raises NbspamError.

    paths: the files; what nbspam keeps beside one of them is left out, so that `part.*` names
    the parts.  The first file decides whether they are parts of one training, models of mail
    or text, or models of tables.  day: on which parts are learned, counted from 1970-01-01;
    models know the days of their messages.
    """
    allow_files((1 + len(_ARRAY_TYPES)) * len(paths) + 200)  # each file and sum stays mapped
    named = set(paths)
    paths = [path for path in paths if _BESIDE.sub("", path) not in named - {path}]
    first = modelfile.load_state(resolved(paths[0]))
    if is_part(first):
        return merge_parts([_part_at(path) for path in paths], day)
    if len(paths) < 2:
        raise UsageError("merge: only one model; name two or more")
    if first.get("kind") == "table":
        return Merged(merge_tables(paths), len(paths))
    return merge_models(paths)


def _part_at(path: str) -> TrainingPart:
    snapshot = modelfile.read_snapshot(resolved(path))
    if not is_part(snapshot.state):
        raise UsageError(
            f"{path}: a model, named with parts of a training; merge the parts first,"
            " then their model with this one"
        )
    return read_part(path, snapshot)
