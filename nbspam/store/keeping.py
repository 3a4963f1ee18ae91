"""Replacing a model by another one: what it knew is kept as MODEL~, a whole model.

Nothing is kept where nothing would be lost: the new model has learned every message of the old
one in the same class, with the same settings.

Secret: the order of writes that leaves the old model or the new one, whole, under its name, and
never the new one before the old one is kept.
"""

import shutil

import numpy as np

from nbspam.answering import AnyClassifier
from nbspam.arrays import Booleans
from nbspam.classifier.classifier import Classifier
from nbspam.decision import HAM_AND_SPAM
from nbspam.disk import locked, open_own, replace_file, resolved, unwritable
from nbspam.errors import ModelFileError, NbspamError
from nbspam.store.format.journal import (
    NO_JOURNAL,
    Journal,
    journal_path,
    remove_journal,
    snapshot_and_journal,
)
from nbspam.store.format.modelfile import is_model_file, read_snapshot
from nbspam.store.open import classifier_of, write


def save_keeping(path: str, classifier: AnyClassifier) -> str | None:
    """Write a model file, and return where the model that it replaces is kept, if it is.

    Raises ModelFileError; then the old model is there as before.
    """
    path = resolved(path)
    with locked(path):
        kept = keep(path) if _would_lose(path, classifier) else None
        write(path, classifier)
    return kept


def check_no_filter(path: str) -> None:
    """Raise ModelFileError if the model in a file is a mail filter's: one of ham and spam."""
    try:
        state = read_snapshot(resolved(path)).state
        classes = classifier_of(path, state).classes
    except NbspamError:
        return  # there is none, or none that a filter can use
    if state.get("kind") != "table" and set(classes) <= set(HAM_AND_SPAM):
        raise ModelFileError(
            f"{path}: holds the model of a mail filter, and this one is of a table; give it a"
            " file of its own with -m FILE, or name this file with -m to replace it"
        )


def _would_lose(path: str, new: AnyClassifier) -> bool:
    """Return whether a model file holds something that a new classifier does not know."""
    try:
        if not is_model_file(path):
            return False
        snapshot, journal = snapshot_and_journal(path)
        old = classifier_of(path, snapshot.state)
        if journal.owner != snapshot.identity:  # it is kept aside, whatever becomes of the model
            journal = NO_JOURNAL
    except (NbspamError, OSError):
        return True  # somebody else may be able to read it
    if isinstance(old, Classifier) and isinstance(new, Classifier):
        return not _knows_all(new, old, journal)
    return True


def _knows_all(new: Classifier, old: Classifier, journal: Journal) -> bool:
    """Return whether a classifier has every choice and every message of an old one."""
    if old.memory is None or new.memory is None:
        return False
    ledger, mine = old.memory.ledger, new.memory.ledger
    # Counts of messages that the ledger does not have come from an import or from fading.
    if old.table.n_docs != len(ledger.digests):
        return False
    if (old.settings, old.cutoffs) != (new.settings, new.cutoffs):
        return False
    if journal.is_damaged:
        return False
    last = {change.digest: change.after for change in journal.changes}
    stays: Booleans = ~np.isin(ledger.digests, np.array(list(last), np.uint64))
    learned = {digest: name for digest, name in last.items() if name is not None}
    digests = np.append(ledger.digests[stays], np.array(list(learned), np.uint64))
    names = [*np.array(old.classes)[ledger.labels[stays]].tolist(), *learned.values()]
    place = mine.find(digests)
    return bool((place >= 0).all()) and names == np.array(new.classes)[mine.labels[place]].tolist()


def keep(path: str) -> str:
    """Copy a model and its journal to MODEL~, and return that path; raises ModelFileError.

    The caller holds the model's lock.  The model comes first: a journal of another model is
    ignored, so that what a crash leaves in between is a whole model too.
    """
    kept = f"{path}~"
    with locked(kept):
        try:
            _copy(path, kept)
            try:
                _copy(journal_path(path), journal_path(kept))
            except FileNotFoundError:
                remove_journal(kept)
        except OSError as error:
            raise unwritable(path, error) from error
    return kept


def _copy(source: str, target: str) -> None:
    with open(open_own(source, source), "rb") as stream:
        replace_file(target, lambda file: shutil.copyfileobj(stream, file), like=source)
