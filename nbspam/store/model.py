"""A model on disk that learns on, while other processes use it.

A change is decided under the model's lock; put on disk in the journal; and only then reported.
When evidence is fitted anew, a new model file takes the journal in.

Secret: in which order model file and journal are written, so that a crash at any moment loses no
change that was reported.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from nbspam.classifier.classifier import Classifier
from nbspam.counts.changes import Change
from nbspam.decision import Cutoffs
from nbspam.disk import Stamp, locked, stamp_of, unwritable
from nbspam.errors import ModelFileError
from nbspam.settings import Settings
from nbspam.store.assembly import begun, compacted
from nbspam.store.format.journal import (
    NOBODY,
    Journal,
    append,
    read_journal,
    read_model,
    remove_journal,
    set_journal_aside,
)
from nbspam.store.format.modelfile import Identity, Snapshot
from nbspam.store.learning import LivingModel, Outcome
from nbspam.store.open import classifier_of, of_tokens, write


class StoredModel(LivingModel):
    """A model on disk: a model file and its journal, which several processes may use at once.

    When a method returns, its changes are on disk.
    """

    _identity: Identity | None  # of the model file; None: there is none yet
    _stamp: Stamp | None

    def __init__(
        self,
        path: str,
        just_read: tuple[Snapshot, Journal] | None = None,
        new: Settings | None = None,
    ) -> None:
        """Open a model; raises ModelFileError.

        just_read: what `read_model` returned, to save reading it again.  new: the settings of
        the model that the first message makes, if there is none.
        """
        self.path = self.name = path
        self._new = new
        self._load(just_read)

    @property
    def is_there(self) -> bool:
        """Whether there is a model file."""
        return self._identity is not None

    def size(self) -> int:
        """Return the bytes that the model takes on disk, including its journal."""
        return (self._identity.length if self._identity else 0) + self._end

    def compact(self) -> None:
        """Write a model file that includes everything any process has learned so far.

        Raises ModelFileError; then the old file and its journal are unchanged.
        """
        with self._alone():
            write(self.path, compacted(self._base, self._changes))
            self._load()

    def _load(self, just_read: tuple[Snapshot, Journal] | None = None) -> None:
        if self._new is not None and not os.path.exists(self.path):
            self._identity, self._stamp, self._end, self._mark = None, None, 0, b""
            self._begin(begun(self._new))
            return
        snapshot, journal = just_read or read_model(self.path)
        base = of_tokens(self.path, classifier_of(self.path, snapshot.state))
        if base.memory is None:
            raise ModelFileError(
                f"{self.path}: knows none of its messages, as it comes from --unlabelled or"
                " an older version; train it anew"
            )
        self._identity, self._stamp = snapshot.identity, snapshot.stamp
        self._begin(base)
        self._take_in(journal)

    def _take_in(self, journal: Journal) -> None:
        """Take in the changes that a journal holds and this object does not know yet."""
        self._end, self._mark = journal.end, journal.mark
        self._note(journal.changes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with locked(self.path):
            self._refresh()
            yield

    def _refresh(self) -> None:
        if stamp_of(self.path) == self._stamp:
            journal = read_journal(self.path, self._end, self._mark)
            if journal.owner == self._identity and journal.size >= self._end:
                self._take_in(journal)
                return
            if not self._end and stamp_of(self.path) == self._stamp:
                return  # there is no journal, or one of another model
        self._load()

    def _make_way(self) -> Outcome:
        made = () if self.is_there else (f"{self.path}: a new model",)
        return Outcome(notes=made) + (Outcome() if self._end else self._clear_away())

    def _take_base(self, whole: Classifier) -> None:
        """Write a model file, and remove the journal, whose changes it includes.

        If the file cannot be written, the caller writes the changes of this call to the
        journal; none of them was reported yet.
        """
        write(self.path, whole)

    def _append(self, changes: list[Change]) -> None:
        """Write changes to the journal."""
        if self._identity is None:  # there was no place for the first model file
            write(self.path, self._base)
            self._load()
        assert self._identity is not None
        try:
            self._take_in(append(self.path, self._identity, changes, self._end))
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _clear_away(self) -> Outcome:
        """Remove or rename a journal that is not this model's, without losing anything."""
        journal = read_journal(self.path)
        if journal.owner is None:
            return Outcome()
        last = {change.digest: change.after for change in journal.changes}
        is_known = all(self._label(digest) == after for digest, after in last.items())
        if is_known and journal.owner != NOBODY:
            remove_journal(self.path)  # left by a crash; the model has all of its changes
            return Outcome()
        try:
            aside = set_journal_aside(self.path, journal.owner)
        except OSError as error:
            raise unwritable(self.path, error) from error
        note = f"{aside}: the journal of another model, moved out of the way; not learned from"
        return Outcome(notes=(note,))


def keep_cutoffs(path: str, cutoffs: Cutoffs) -> None:
    """Write cutoffs into a model of tokens; raises NbspamError.

    The new file includes the journal's changes, read under the same lock, so that nothing is lost.
    """
    with locked(path):
        snapshot, journal = read_model(path)
        base = of_tokens(path, classifier_of(path, snapshot.state))
        classifier = compacted(base, journal.changes)
        write(path, replace(classifier, cutoffs=cutoffs))
