"""Repairing a model: what is good in a damaged journal is written anew, and the rest is kept.

Secret: what can be repaired.  Of a model file nothing can: its counts are sums, and a part of a
sum is worth nothing.
"""

import os
import warnings

from nbspam.classifier.classifier import Classifier
from nbspam.disk import locked, resolved, unwritable
from nbspam.errors import ModelFileError, ModelWarning
from nbspam.store.assembly import in_step
from nbspam.store.format.journal import set_aside, snapshot_and_journal, write_journal
from nbspam.store.health.check import BAD, GOOD, NOTE, Finding, findings
from nbspam.store.open import classifier_of


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
    changes = in_step(classifier, journal.changes)
    write_journal(path, snapshot.identity, changes)
    lost = f"{journal.found.lost:,} are lost" if journal.found.lost else "none is known to be lost"
    return Finding(
        NOTE,
        "repair",
        f"{len(changes):,} changes saved in a new journal, {lost};"
        f" the damaged one is kept as {aside}",
    )
