"""The parts of one training: a process of its own writes each, and together they make a model.

A part is a file in the format of models.  It has the counts of everything that was read, and the
messages one by one, as their copies may be in other parts.  The model is that of training at
once, to the byte.

Secret: what a part stores, and how to tell that parts belong together.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam import __version__
from nbspam.arrays import Indices
from nbspam.classifier.training import check_classes, train
from nbspam.counts.counting import Training
from nbspam.counts.shards.gathering import gather
from nbspam.counts.shards.shares import Census, Shard, Share
from nbspam.counts.table import CountTable, compact, without_empty, worth_keeping
from nbspam.disk import locked, resolved
from nbspam.errors import ModelFileError, UsageError
from nbspam.models.registry import DAMAGE
from nbspam.settings import Settings, settings_from_dict
from nbspam.store.contents.parts import check_part
from nbspam.store.format.journal import write_model
from nbspam.store.format.modelfile import Identity, Snapshot, State, is_model_file, read_snapshot
from nbspam.store.keeping import keep
from nbspam.store.merging.outcome import Merged
from nbspam.store.merging.streams import NO_TEXT, Run, loaded, merged, run_of
from nbspam.store.open import PART
from nbspam.tokens.documents import Documents, smallest
from nbspam.tokens.vocabulary import Vocabulary

_NAMED = 5  # missing parts that an error names


class Part(NamedTuple):
    """A part of a training, as it is in a file."""

    path: str
    identity: Identity
    settings: Settings
    share: Share


def save_part(path: str, share: Share, settings: Settings) -> str | None:
    """Write a part, and return where the model that it replaces is kept, if it replaces one.

    Raises ModelFileError.
    """
    path = resolved(path)
    with locked(path):
        kept = keep(path) if is_model_file(path) and not _holds_part(path) else None
        write_model(path, _state_of(share, settings))
    return kept


def _holds_part(path: str) -> bool:
    try:
        return is_part(read_snapshot(path).state)
    except ModelFileError:
        return False


def is_part(state: State) -> bool:
    """Return whether the state of a model file is a part of a training."""
    return state.get("kind") == PART


def _state_of(share: Share, settings: Settings) -> State:
    table, documents = share.table, share.documents
    words = table.vocabulary.packed()
    times = documents.counts
    return {
        "program": f"nbspam {__version__}",
        "kind": PART,
        "settings": settings.to_dict(),
        "number": share.shard.number,
        "of": share.shard.of,
        "items": share.census.n_items,
        "checksum": share.census.checksum,
        "classes": list(table.classes),
        "class_count": table.class_count,
        "keys": words.keys,
        "text": words.blob,
        "text_offsets": compact(words.offsets),
        "group": words.groups,
        "feature_count": compact(table.feature_count),
        "document_frequency": compact(table.document_frequency),
        "first": _small(share.first),
        "digest": share.digests,
        "position": _small(share.positions),
        "label": _small(share.labels),
        "told": share.told.astype(np.uint8),
        "document_offsets": _small(documents.offsets),
        "column": _small(documents.columns),
        "times": None if times is None else _small(times),
    }


def _small(numbers: Indices) -> Any:
    return smallest(numbers, int(numbers.max(initial=0)))


def part_of(path: str, snapshot: Snapshot) -> Part:
    """Return the part in a file; raises ModelFileError."""
    state = snapshot.state
    try:
        check_part(state)
        return Part(path, snapshot.identity, settings_from_dict(state["settings"]), _share(state))
    except DAMAGE as error:
        raise ModelFileError(
            f"{path}: its contents do not fit ({error}); make this part again"
        ) from error


def _share(state: Mapping[str, Any]) -> Share:
    vocabulary = Vocabulary(state["keys"], state["text"], state["text_offsets"], state["group"])
    return Share(
        Shard(state["number"], state["of"]),
        Census(state["items"], state["checksum"]),
        CountTable(
            tuple(state["classes"]),
            state["class_count"],
            vocabulary,
            state["feature_count"],
            state["document_frequency"],
        ),
        state["first"],
        state["position"],
        state["digest"],
        state["label"],
        state["told"].astype(np.bool_),
        Documents(
            np.arange(len(vocabulary)),
            state["document_offsets"].astype(np.int64),
            state["column"],
            state["times"],
        ),
    )


def merge_parts(parts: Sequence[Part], day: int) -> Merged:
    """Return the model of training on all parts at once; raises UsageError, NotTrainedError.

    day: on which it learns the messages, counted from 1970-01-01.
    """
    parts = _complete(parts)
    settings = parts[0].settings
    shares = [part.share for part in parts]
    gathered = gather(shares, settings.weighting)
    runs = [Run(s.table, s.first, np.broadcast_to(np.uint16(day), len(s.first))) for s in shares]
    if gathered.corrections.classes:
        runs.append(run_of(gathered.corrections, NO_TEXT))
    total = merged(runs)
    whole = without_empty(total.table)
    check_classes(whole)
    columns = worth_keeping(whole, settings.min_df, settings.max_features)
    table, _ = loaded(total, settings, columns)
    training = Training(
        table,
        gathered.messages,
        gathered.bits,
        gathered.digests,
        gathered.labels,
        gathered.told,
        gathered.repeated,
    )
    classifier = train(training, settings, day)
    return Merged(classifier, len(parts), gathered.repeated, is_training=True)


def _complete(parts: Sequence[Part]) -> list[Part]:
    """Return all parts of one training in order, each once; raises UsageError for others."""
    first = parts[0]
    found: dict[int, Part] = {}
    for part in parts:
        shard, own = part.share.shard, first.share.shard
        if shard.of != own.of:
            raise UsageError(
                f"{part.path}: part {shard}, but {first.path} is part {own}; name the parts of"
                " one training"
            )
        if part.share.census != first.share.census:
            raise UsageError(
                f"{part.path}: counted in other mail than {first.path}"
                f" ({part.share.census.n_items:,} items, not {first.share.census.n_items:,}, or"
                " other labels); make both parts again from the same sources"
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
    missing = [str(n) for n in range(1, first.share.shard.of + 1) if n not in found]
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise UsageError(
            f"merge: part {', '.join(missing[:_NAMED])}{more} of {first.share.shard.of} is"
            f" missing; make it with --shard {missing[0]}/{first.share.shard.of}, and name it too"
        )
    return [found[number] for number in sorted(found)]
