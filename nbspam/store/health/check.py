"""Checking a model: whether its files are complete and consistent.

Secret: the invariants of a model.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.counts.changes import signed_table
from nbspam.counts.ledger import Memory
from nbspam.disk import resolved
from nbspam.errors import NbspamError
from nbspam.models.registry import DAMAGE
from nbspam.settings import PRESENCE
from nbspam.store.contents.tokens import check_memory
from nbspam.store.format.journal import (
    Journal,
    journal_path,
    problem_of,
    snapshot_and_journal,
)
from nbspam.store.format.modelfile import Identity
from nbspam.store.format.records import Condition
from nbspam.store.health.rights import EVERYONE, readers, writers
from nbspam.store.merging.parts import is_part, part_of
from nbspam.store.open import classifier_of

GOOD, NOTE, BAD = "good", "note", "bad"


class Finding(NamedTuple):
    """The result of one check."""

    state: str  # good; note (worth knowing, nothing is lost); bad
    what: str  # file, rights, contents, model, counts, ledger, sample, journal or repair
    text: str


def findings(path: str) -> Iterator[Finding]:
    """Yield the results of all checks of a model; damage is a finding, not an exception."""
    path = resolved(path)
    try:
        snapshot, journal = snapshot_and_journal(path)
        part = part_of(path, snapshot) if is_part(snapshot.state) else None
        classifier = None if part else classifier_of(path, snapshot.state)
    except NbspamError as error:
        yield Finding(BAD, "file", str(error))
        return
    yield Finding(GOOD, "file", f"{snapshot.identity.length:,} bytes, checksum correct")
    yield _rights(path)
    if part is not None:
        shard = part.share.shard
        yield Finding(NOTE, "model", f"none, but part {shard} of a training; nbspam merge adds it")
        return
    if not isinstance(classifier, Classifier):
        kind = snapshot.state["kind"]
        yield Finding(GOOD, "model", f"of kind {kind}: its parts fit together; no journal")
        return
    try:
        check_memory(snapshot.state)
    except DAMAGE as error:
        yield Finding(BAD, "contents", f"they do not fit ({error}); train it anew")
        return
    yield _counts(classifier)
    if classifier.memory is None:
        yield Finding(
            NOTE,
            "ledger",
            "none, as after --unlabelled or from an older version; it cannot learn on",
        )
    else:
        yield _ledger(classifier.memory, classifier)
        n_sampled = len(classifier.memory.sample.digests)
        yield Finding(GOOD, "sample", f"{n_sampled:,} messages kept for fitting")
    yield _journal(path, snapshot.identity, journal, classifier)


def _rights(path: str) -> Finding:
    if changed_by := writers(path):
        who, what = next(iter(changed_by.items()))
        state = BAD if who == EVERYONE else NOTE
        text = f"{who} can change {', '.join(what)}; take the right to write away"
        return Finding(state, "rights", text)
    if read_by := readers(path):
        who, what = next(iter(read_by.items()))
        text = f"{who} can read the words of your mail in {', '.join(what)}"
        return Finding(NOTE, "rights", f"{text}; to stop it: chmod 600")
    return Finding(GOOD, "rights", "only its owner can read the words in it")


def _counts(classifier: Classifier) -> Finding:
    table = classifier.table
    text = f"{table.n_docs:,} messages, {len(table.vocabulary):,} tokens"
    if classifier.settings.weighting == PRESENCE and (
        (np.asarray(table.feature_count, np.float64) > table.class_count).any()
    ):
        return Finding(BAD, "counts", f"{text}; a token is in more messages than there are")
    return Finding(GOOD, "counts", text)


def _ledger(memory: Memory, classifier: Classifier) -> Finding:
    if not memory.has_ledger:
        text = "none, by --no-ledger: a message that comes again counts again"
        return Finding(NOTE, "ledger", text)
    n_told = int(memory.ledger.told.sum())
    told = f", {n_told:,} of them told one at a time" if n_told else ""
    text = f"{len(memory.ledger.digests):,} messages{told}"
    counted = np.bincount(memory.ledger.labels, minlength=len(classifier.classes))
    if (counted != classifier.table.class_count).any():
        note = "the counts differ from it, as after fading or importing counts"
        return Finding(NOTE, "ledger", f"{text}; {note}")
    if memory.has_older and memory.ledger.has_mail:
        note = "some may be known by older digests, which two messages could share; train it anew"
        return Finding(NOTE, "ledger", f"{text}; {note}")
    return Finding(GOOD, "ledger", text)


def _journal(path: str, owner: Identity, journal: Journal, classifier: Classifier) -> Finding:
    name = journal_path(path)
    if journal.owner is None:
        return Finding(GOOD, "journal", "none")
    problem = problem_of(path, owner, journal)
    if journal.owner != owner:
        text = problem or f"{name} is one that this model has taken in; the next update removes it"
        if journal.changes:
            text += f"; it holds {len(journal.changes):,} changes"
        return Finding(NOTE, "journal", text)
    if problem:
        return Finding(BAD, "journal", f"{problem}; save them with: nbspam doctor --repair")
    text = f"{len(journal.changes):,} changes, {journal.size:,} bytes"
    if journal.changes:
        change = signed_table(
            journal.changes, classifier.table.vocabulary, classifier.settings.weighting
        )
        text += f", {int(change.class_count.sum()):+,} messages"
    if journal.found.condition == Condition.UNFINISHED:
        text += "; the bytes after them are of an unfinished write, never acknowledged"
        return Finding(NOTE, "journal", text)
    return Finding(GOOD, "journal", text)
