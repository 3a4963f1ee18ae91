"""Merging models: one model of the messages that several of them have learned.

Counts can be added, but a message that two models know must count once.  To subtract it from one
of them, its tokens are needed, and only messages in the models' samples have them.  If a message
is in no sample, merging stops with an error, since it would be counted twice.

Secret: which copy of a message is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Keys
from nbspam.counts.repeats import table_of
from nbspam.counts.sample import Messages, Sampling
from nbspam.counts.table import CountTable, TableSum, negative
from nbspam.errors import UsageError
from nbspam.mail.digest import OLDEST
from nbspam.progress import tracked
from nbspam.settings import Settings
from nbspam.store.assembly import Part, Streamed, assembled, memory_of, part_of
from nbspam.store.merging.outcome import Merged
from nbspam.store.merging.streams import NO_TEXT, Run, loaded, merged, run_of, spooled
from nbspam.store.model import StoredModel
from nbspam.tokens.documents import Documents, united

# Settings that must be equal, since counts of different tokens or weights cannot be added.
_MUST_AGREE = ("tokens", "reading", "strip", "weighting")
_AT_ONCE = 1 << 12  # messages that are subtracted together


class _Model(NamedTuple):
    """A model on disk, of which little is in memory."""

    path: str
    settings: Settings
    part: Part  # its ledger and sample, without keys
    run: Run


class _Copy(NamedTuple):
    """A message as one of several models knows it."""

    digest: int
    model: int
    label: str
    day: int
    told: bool


class _Shared(NamedTuple):
    """What is to become of the messages that several models know."""

    lost: list[list[_Copy]]  # of each model, those that it does not keep
    told: list[Keys]  # of each model, those that it keeps and whose class another was told
    repeated: int = 0
    disputed: int = 0


def merge_models(paths: Sequence[str]) -> Merged:
    """Return the model of all messages that several models know; raises NbspamError.

    paths: the model files.  If models know a message in different classes, the one that a person
    has told is kept; else the one that was learned later; if both were on the same day, that of
    the model named later.  Settings that do not affect counts are those of the first model.  Rows
    of tables have no identity, so each of them counts.
    """
    models = [_opened(path, place) for place, path in enumerate(tracked(paths, "models"))]
    _check_agreement(models)
    shared = _shared(models)
    settings = models[0].settings
    runs = [model.run for model in models]
    corrections = _corrections(models, shared.lost, settings.weighting)
    if corrections.classes:
        runs.append(run_of(corrections, NO_TEXT))
    table, last_seen = loaded(merged(runs), settings)
    sampling = Sampling(settings.weighting, max(model.part.bits for model in models))
    parts = []
    for model, lost, told in zip(models, shared.lost, shared.told, strict=True):
        part = _kept(model.part, lost, told)
        sampling.add([part.messages])
        parts.append(part)
        for each in models:  # a sample that grows looks at the messages of all again
            each.run.release()
    classifier = assembled(table, parts, settings, Streamed(sampling, last_seen))
    return Merged(classifier, len(paths), shared.repeated, shared.disputed)


def _opened(path: str, place: int) -> _Model:
    """Return a model with its journal; place: among the models, whose first text of a token stays.

    What a journal adds to a model is written to disk again, so that models do not fill the memory.
    """
    whole = StoredModel(path).whole()
    run = run_of(whole.table, place, memory_of(whole).last_seen)
    if not run.is_mapped:
        run = spooled([run])
    nothing = np.empty(0, np.uint64)
    part = part_of(replace(whole, table=run.table))
    part = part._replace(keys=nothing, last_seen=nothing.astype(np.uint16))
    run.release()
    return _Model(path, whole.settings, part, run)


def _check_agreement(models: Sequence[_Model]) -> None:
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
    of_mail = [model for model in models if model.part.versions]
    for other in of_mail[1:]:
        first = of_mail[0]
        if len({*first.part.versions, *other.part.versions}) > 1:
            older = first if OLDEST in first.part.versions else other
            raise UsageError(
                f"{other.path}: mail that it shares with {first.path} could count twice, because"
                f" {older.path} knows mail by older digests; train {older.path} anew, and merge"
                " then"
            )


def _copies(models: Sequence[_Model]) -> Iterator[list[_Copy]]:
    """Yield each message that several models know, as each of them knows it, in their order."""
    ascending = np.sort(np.concatenate([model.part.digests for model in models]))
    several = np.unique(ascending[1:][ascending[1:] == ascending[:-1]])
    copies: list[_Copy] = []
    for place, part in enumerate(model.part for model in models):
        chosen = np.isin(part.digests, several)
        fields = (of[chosen].tolist() for of in (part.digests, part.names, part.days, part.told))
        copies += [
            _Copy(digest, place, name, day, told)
            for digest, name, day, told in zip(*fields, strict=True)
        ]
    copies.sort()
    for _, same in groupby(copies, lambda copy: copy.digest):
        yield list(same)


def _shared(models: Sequence[_Model]) -> _Shared:
    """Return which model keeps each message that several of them know."""
    lost: list[list[_Copy]] = [[] for _ in models]
    told: list[list[int]] = [[] for _ in models]
    repeated = disputed = 0
    for kept, *others in _copies(models):
        for other in others:
            repeated += 1
            gone = other
            if other.label == kept.label:
                kept = kept._replace(told=kept.told or other.told)
            else:
                disputed += 1
                is_later = other.day >= kept.day
                if is_later if kept.told == other.told else other.told:
                    gone, kept = kept, other
            lost[gone.model].append(gone)
        if kept.told:
            told[kept.model].append(kept.digest)
    return _Shared(lost, [np.array(own, np.uint64) for own in told], repeated, disputed)


def _corrections(
    models: Sequence[_Model], lost: Sequence[Sequence[_Copy]], weighting: str
) -> CountTable:
    """Return what is to be added to the sum of all models' counts; raises UsageError."""
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
            total.add(negative(table_of(part, weighting)))
    return total.total()


def _document(digest: int, where: Sequence[_Model], models: Sequence[_Model]) -> Documents:
    """Return the tokens of a message; raises UsageError if none of the models has them."""
    for model in where:
        sampled = model.part.messages
        place = int(np.searchsorted(sampled.digests, np.uint64(digest)))
        if place < len(sampled.digests) and sampled.digests[place] == digest:
            return sampled.documents.one(place)
    knowing = [model for model in models if np.uint64(digest) in model.part.digests]
    known = [model.part.digests for model in models[: models.index(knowing[1])]]
    n_shared = int(np.isin(knowing[1].part.digests, np.concatenate(known)).sum())
    raise UsageError(
        f"{knowing[1].path}: {n_shared:,} of its messages are in the models before it too, and"
        " not all of them are stored in a sample; first run: nbspam unlearn"
        f" -m {knowing[1].path} SOURCE with the mail that both have learned"
    )


def _kept(part: Part, lost: Sequence[_Copy], told: Keys) -> Part:
    """Return what a model adds to the sum besides its counts."""
    gone = np.array([copy.digest for copy in lost], np.uint64)
    stays = ~np.isin(part.digests, gone)
    is_told = part.told | np.isin(part.digests, told)
    return part._replace(
        digests=part.digests[stays],
        names=part.names[stays],
        days=part.days[stays],
        told=is_told[stays],
        messages=part.messages.take(~np.isin(part.messages.digests, gone)),
    )
