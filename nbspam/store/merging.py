"""Merging: models, models of tables, or all parts of one training become one model.

Counts can be added, but a message that two models know must count once.  To subtract it from one
of them its tokens are needed, and only the messages in a model's sample have them.  A part has the
counts of everything that one process of a training read, and its messages one by one, as their
copies may be in other parts: the merged model is that of training at once, to the byte.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Indices, find
from nbspam.classifier.classifier import Classifier
from nbspam.classifier.training import check_classes, train_classifier
from nbspam.counts.counting import repeated, table_of_messages
from nbspam.counts.ledger import Messages, Sampling
from nbspam.counts.shards import Census, CountedShard, Shard, gather_shards
from nbspam.counts.table import (
    CountTable,
    TableSum,
    negative,
    table_from_state,
    table_to_state,
    without_empty,
    worth_keeping,
)
from nbspam.disk import resolved
from nbspam.errors import ModelFileError, UsageError
from nbspam.models import DAMAGE
from nbspam.printing import tracked
from nbspam.sent_mail import SentMail
from nbspam.settings import Settings, settings_from_state, settings_to_state
from nbspam.store import assembly, modelfile
from nbspam.store.fields import check_part
from nbspam.store.journal import locked_model, write_model
from nbspam.store.model import StoredModel
from nbspam.store.open import PART_KIND, keep_old_model
from nbspam.store.tables import StoredTable, merge_tables, open_stored
from nbspam.tables.classifier import TableClassifier
from nbspam.tokens.sparse import Documents, smallest, united


class Merged(NamedTuple):
    """The sum of models, or of the parts of one training."""

    classifier: Classifier | TableClassifier
    n_added: int  # models or parts
    repeated: int = 0  # messages that several models knew, or that came again; they count once
    disputed: int = 0  # how many of these models knew as different classes
    is_training: bool = False  # whether parts were added


# ---- models ----

# Settings that must be equal, since counts of different tokens or weights cannot be added.
_MUST_AGREE = ("tokens", "reading", "strip", "weighting")
_AT_ONCE = 1 << 12  # messages that are subtracted together


class _MergedModel(NamedTuple):
    """A model on disk, of which little is in memory."""

    path: str
    settings: Settings
    part: assembly.ModelMessages  # its ledger and sample, without keys
    run: assembly.SortedTokens
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

    paths: the model files.  If models know a message in different classes, the one that a person
    has told is kept; else the one that was learned later; if both were on the same day, that of
    the model named later.  Settings that do not affect counts are those of the first model.  Rows
    of tables have no identity, so each of them counts.
    """
    models = [_opened(path, place) for place, path in enumerate(tracked(paths, "models"))]
    _check_agreement(models)
    all_lost, all_told, n_repeated, n_disputed = _common(models)
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
    for model, lost, told in zip(models, all_lost, all_told, strict=True):
        is_told = model.part.told | np.isin(model.part.digests, np.array(told, np.uint64))
        part = model.part._replace(told=is_told).without([copy.digest for copy in lost])
        sampling.add([part.messages])
        parts.append(part)
        for each in models:  # a sample that grows looks at the messages of all again
            each.run.release()
    runs = [
        *(model.run for model in models),
        *(assembly.run_of(t, assembly.NO_TEXT) for t in sums),
    ]
    total, owed = assembly.merged_runs(runs, sampling.messages, settings.weighting)
    table, last_seen = assembly.loaded_table(total, settings)
    classifier = assembly.assembled(table, parts, settings, sampling, last_seen, owed)
    return Merged(classifier, len(paths), n_repeated, n_disputed)


def _opened(path: str, place: int) -> _MergedModel:
    """Return a model with its journal; place: among the models, whose first text of a token stays.

    A model with its journal's changes is written to disk again, so that models do not fill the
    memory.
    """
    whole = StoredModel(path).whole()
    run = assembly.run_of(whole.table, place, assembly.memory_of(whole).last_seen)
    if not run.is_mapped:
        run = assembly.spooled([run])
    nothing = np.empty(0, np.uint64)
    part = assembly.messages_of_model(replace(whole, table=run.table))
    part = part._replace(keys=nothing, last_seen=nothing.astype(np.uint16))
    run.release()
    return _MergedModel(path, whole.settings, part, run, assembly.owed_table(whole))


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


def _common(
    models: Sequence[_MergedModel],
) -> tuple[list[list[_ModelCopy]], list[list[int]], int, int]:
    """Return the fate of the messages that several models know.

    That is: of each model, the copies that it does not keep, and the digests of its messages whose
    class another model was told; the numbers of repeated and of disputed messages.
    """
    lost: list[list[_ModelCopy]] = [[] for _ in models]
    told: list[list[int]] = [[] for _ in models]
    n_repeated = n_disputed = 0
    for kept, *others in _copies(models):
        for other in others:
            n_repeated += 1
            gone = other
            if other.label == kept.label:
                kept = kept._replace(told=kept.told or other.told)
            else:
                n_disputed += 1
                is_later = other.day >= kept.day
                if is_later if kept.told == other.told else other.told:
                    gone, kept = kept, other
            lost[gone.model].append(gone)
        if kept.told:
            told[kept.model].append(kept.digest)
    return lost, told, n_repeated, n_disputed


def _corrections(
    models: Sequence[_MergedModel], lost: Sequence[Sequence[_ModelCopy]], weighting: str
) -> CountTable:
    """Return the corrections of the sum of all models' counts; raises UsageError."""
    total = TableSum()
    for model, copies in zip(models, lost, strict=True):
        others = [model, *models]
        for start in range(0, len(copies), _AT_ONCE):
            some = copies[start : start + _AT_ONCE]
            part = Messages(
                np.array([copy.label for copy in some], np.str_),
                np.array([copy.digest for copy in some], np.uint64),
                united([_document(copy.digest, others, models) for copy in some]),
            )
            total.add(negative(table_of_messages(part, weighting)))
    return total.total()


def _document(
    digest: int, where: Sequence[_MergedModel], models: Sequence[_MergedModel]
) -> Documents:
    """Return the tokens of a message; raises UsageError if none of the models has them."""
    for model in where:
        sampled = model.part.messages
        (place,) = find(sampled.digests, np.array([digest], np.uint64)).tolist()
        if place >= 0:
            return sampled.documents.one(place)
    knowing = [model for model in models if np.uint64(digest) in model.part.digests]
    known = [model.part.digests for model in models[: models.index(knowing[1])]]
    n_shared = int(np.isin(knowing[1].part.digests, np.concatenate(known)).sum())
    raise UsageError(
        f"{knowing[1].path}: {n_shared:,} of its messages are in the models before it too, and"
        " not all of them are stored in a sample; first run: nbspam unlearn"
        f" -m {knowing[1].path} SOURCE with the mail that both have learned"
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
    """Write a part, and return where the model that it replaces is kept, if it replaces one.

    Raises ModelFileError.
    """
    path = resolved(path)
    with locked_model(path):
        kept = (
            keep_old_model(path)
            if modelfile.is_model_file(path) and not _holds_part(path)
            else None
        )
        write_model(path, _state_of(counted, settings))
    return kept


def _holds_part(path: str) -> bool:
    try:
        return is_part(modelfile.load_state(path))
    except ModelFileError:
        return False


def is_part(state: modelfile.State) -> bool:
    """Return whether the state of a model file is a part of a training."""
    return state.get("kind") == PART_KIND


def _state_of(counted: CountedShard, settings: Settings) -> modelfile.State:
    documents, times = counted.documents, counted.documents.counts
    return {
        "kind": PART_KIND,
        **settings_to_state(settings),
        "number": counted.shard.number,
        "of": counted.shard.of,
        "items": counted.census.n_items,
        "checksum": counted.census.checksum,
        **table_to_state(counted.table),
        "first": _small(counted.first),
        "digest": counted.digests,
        "position": _small(counted.positions),
        "label": _small(counted.labels),
        "told": counted.told.astype(np.uint8),
        "document_offsets": _small(documents.offsets),
        "column": _small(documents.columns),
        "times": None if times is None else _small(times),
    }


def _small(numbers: Indices) -> Any:
    return smallest(numbers, int(numbers.max(initial=0)))


def read_part(path: str, snapshot: modelfile.Snapshot) -> TrainingPart:
    """Return the part in a file; raises ModelFileError."""
    state = snapshot.state
    try:
        check_part(state)
        return TrainingPart(path, snapshot.identity, settings_from_state(state), _shard_of(state))
    except DAMAGE as error:
        raise ModelFileError(
            f"{path}: its contents do not fit ({error}); make this part again"
        ) from error


def _shard_of(state: Mapping[str, Any]) -> CountedShard:
    table = table_from_state(state)
    return CountedShard(
        Shard(state["number"], state["of"]),
        Census(state["items"], state["checksum"]),
        table,
        state["first"],
        state["position"],
        state["digest"],
        state["label"],
        state["told"].astype(np.bool_),
        Documents(
            np.arange(len(table.vocabulary)),
            state["document_offsets"].astype(np.int64),
            state["column"],
            state["times"],
        ),
    )


def merge_parts(parts: Sequence[TrainingPart], day: int) -> Merged:
    """Return the model of training on all parts at once; raises UsageError, NotTrainedError.

    day: on which it learns the messages, counted from 1970-01-01.
    """
    parts = _complete(parts)
    settings = parts[0].settings
    shards = [part.counted for part in parts]
    gathered = gather_shards(shards, settings.weighting)
    runs = [
        assembly.SortedTokens(s.table, s.first, np.broadcast_to(np.uint16(day), len(s.first)))
        for s in shards
    ]
    if gathered.table.classes:  # corrections
        runs.append(assembly.run_of(gathered.table, assembly.NO_TEXT))
    total, _ = assembly.merged_runs(runs)
    whole = without_empty(total.table)
    check_classes(whole)
    columns = worth_keeping(whole, settings.min_df, settings.max_features)
    table, _ = assembly.loaded_table(total, settings, columns)
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
    missing = [str(n) for n in range(1, first.counted.shard.of + 1) if n not in found]
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise UsageError(
            f"merge: part {', '.join(missing[:_NAMED])}{more} of {first.counted.shard.of} is"
            f" missing; make it with: nbspam shard {missing[0]}/{first.counted.shard.of}, and name"
            " it too"
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
    named = set(paths)
    paths = [path for path in paths if _BESIDE.sub("", path) not in named - {path}]
    if is_part(modelfile.load_state(resolved(paths[0]))):
        return merge_parts([_part_at(path) for path in paths], day)
    if len(paths) < 2:
        raise UsageError("merge: only one model; name two or more")
    if isinstance(open_stored(paths[0]), StoredTable):
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
