"""Checking a model, and repairing its journal.

The checks look at the files, at who can read and change them, and at whether counts, ledger,
sample and journal fit together.  A repair saves the good changes of a damaged journal in a new one
and keeps the rest; a damaged model file cannot be repaired, as its counts are sums.
"""

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.counts.memory import Memory, signed_table
from nbspam.disk import locked, parent_folder, resolved, unwritable
from nbspam.errors import ModelFileError, ModelWarning, NbspamError
from nbspam.models import DAMAGE
from nbspam.settings import PRESENCE
from nbspam.store.fields import check_memory
from nbspam.store.journal import (
    Condition,
    Journal,
    journal_path,
    problem_of,
    set_aside,
    snapshot_and_journal,
    write_journal,
)
from nbspam.store.merging import is_part, read_part
from nbspam.store.modelfile import Identity
from nbspam.store.open import classifier_of

# ---- rights: who can read or change a model, which holds words of private mail ----

EVERYONE = "everyone on this machine"


def readers(path: str) -> dict[str, list[str]]:
    """Return the groups that can read words of a model, each with the names of the files."""
    return _allowed(path, stat.S_IRGRP, stat.S_IROTH)


def writers(path: str) -> dict[str, list[str]]:
    """Return the groups that can change a model, each with the names of files or the folder."""
    found = _allowed(path, stat.S_IWGRP, stat.S_IWOTH)
    if sys.platform == "win32":
        return found
    folder = parent_folder(os.path.abspath(path))
    for who in _classes(os.stat(folder), stat.S_IWGRP, stat.S_IWOTH):
        if not os.stat(folder).st_mode & stat.S_ISVTX and _can_enter(folder, who):
            found.setdefault(_name(who), []).append(folder)
    return found


def _allowed(path: str, group_bit: int, others_bit: int) -> dict[str, list[str]]:
    """Return the files of a model that others than the owner have a right to."""
    found: dict[str, list[str]] = {}
    if sys.platform == "win32":
        return found
    for file in _files(path):
        for who in _classes(os.lstat(file), group_bit, others_bit):
            if _can_enter(parent_folder(os.path.abspath(file)), who):
                found.setdefault(_name(who), []).append(file)
    return found


def _files(path: str) -> Iterator[str]:
    """Yield the model, its journal, and what was kept of both under other names."""
    folder, name = os.path.split(path)
    for found in sorted(os.listdir(folder or os.curdir)):
        file = os.path.join(folder, found)
        is_part = found == name or found.startswith((f"{name}~", f"{name}.journal"))
        if is_part and not found.endswith(".lock") and stat.S_ISREG(os.lstat(file).st_mode):
            yield file


def _classes(status: os.stat_result, group_bit: int, others_bit: int) -> list[int | None]:
    """Return the group that has a right: None for everyone, or else its number."""
    if status.st_mode & others_bit:
        return [None]
    return [status.st_gid] if status.st_mode & group_bit else []


def _can_enter(folder: str, group: int | None) -> bool:
    """Return whether a group, or everyone, can get to the files in a folder."""
    return all(_lets_in(each.stat(), group) for each in (Path(folder), *Path(folder).parents))


def _lets_in(status: os.stat_result, group: int | None) -> bool:
    if status.st_mode & stat.S_IXOTH:
        return True
    return group == status.st_gid and bool(status.st_mode & stat.S_IXGRP)


def _name(group: int | None) -> str:
    if group is None:
        return EVERYONE
    import grp

    try:
        return f"group {grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"group {group}"


# ---- checks ----

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
        part = read_part(path, snapshot) if is_part(snapshot.state) else None
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
        yield Finding(BAD, "contents", f"they do not fit ({error}); train it again")
        return
    yield _counts(classifier)
    if classifier.memory is None:
        yield Finding(
            NOTE,
            "ledger",
            "none, as after --unlabelled or --vocabulary; it cannot learn on",
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
    if journal.condition == Condition.UNFINISHED:
        text += "; the bytes after them are of an unfinished write, never acknowledged"
        return Finding(NOTE, "journal", text)
    return Finding(GOOD, "journal", text)


# ---- repair ----


def examine(path: str, repairs: bool = False) -> list[Finding]:
    """Return the results of all checks of a model; raises ModelFileError if it cannot repair.

    repairs: first repair its journal; the first finding says what was done.
    """
    done = [repair(path)] if repairs else []
    return [*done, *findings(path)]


def repair(path: str) -> Finding:
    """Repair a model's journal, and return what was done; raises ModelFileError.

    What was in its place is kept under another name.
    """
    path = resolved(path)
    if not os.path.exists(path):
        raise ModelFileError(f"{path}: no such model; give a model file")
    with locked(path):
        try:
            return _repair(path)
        except OSError as error:
            raise unwritable(path, error) from error


def _repair(path: str) -> Finding:
    try:
        snapshot, journal = snapshot_and_journal(path)
        classifier = classifier_of(path, snapshot.state)
    except ModelFileError as error:
        kept = f"{path}~"
        hint = f"; the model that was there before is {kept}" if os.path.exists(kept) else ""
        return Finding(BAD, "repair", f"{error}{hint}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the finding says it
        aside = set_aside(path, journal, snapshot.identity)
    if aside is None:
        return Finding(GOOD, "repair", "there was nothing to repair")
    if journal.owner != snapshot.identity or not isinstance(classifier, Classifier):
        return Finding(NOTE, "repair", f"what was in the journal's place is now {aside}")
    write_journal(path, snapshot.identity, journal.changes)
    lost = f"{journal.lost:,} are lost" if journal.lost else "none is known to be lost"
    return Finding(
        NOTE,
        "repair",
        f"{len(journal.changes):,} changes saved in a new journal, {lost};"
        f" the damaged one is kept as {aside}",
    )
