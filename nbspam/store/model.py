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

from nbspam.classifier.classifier import TOKENS, Classifier
from nbspam.counts.changes import Change, filed_by
from nbspam.counts.ledger import NOT_FILED, Filed
from nbspam.counts.outcome import Outcome
from nbspam.decision import Cutoffs
from nbspam.disk import Stamp, locked, resolved, stamp_of, unwritable
from nbspam.mail.digest import OLDEST, digest_of
from nbspam.settings import Settings
from nbspam.store.assembly import Lessons, begun, compacted, in_step, lessons_of, memory_of
from nbspam.store.format.journal import (
    NO_JOURNAL,
    Journal,
    append,
    read_journal,
    read_model,
    read_more,
    remove_journal,
    set_aside,
    write_journal,
)
from nbspam.store.format.modelfile import Identity, Snapshot
from nbspam.store.format.records import NOBODY
from nbspam.store.learning import LivingModel
from nbspam.store.open import base_of, classifier_of, of_tokens, write


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
        self.name = path
        self.path = resolved(path)
        self._new = new
        self._load(just_read)

    @property
    def is_there(self) -> bool:
        """Whether there is a model file."""
        return self._identity is not None

    @property
    def stamp(self) -> Stamp | None:
        """Which model file was read last; None if there was none."""
        return self._stamp

    @property
    def base(self) -> Classifier:
        """The classifier as it was when evidence was fitted last, without later changes."""
        return self._base

    def lessons(self) -> Lessons:
        """Return what a model of presence has learned, without fitting it again."""
        self._refresh()
        return lessons_of(self._base, self._changes)

    def size(self) -> int:
        """Return the bytes that the model takes on disk, including its journal."""
        return (self._identity.length if self._identity else 0) + self._journal.size

    def filed(self, data: bytes) -> Filed:
        """Return where the model had a mail message when it was opened or learned last."""
        found = self._filed(digest_of(data))
        if found == NOT_FILED and memory_of(self._base).has_older:
            return self._filed(digest_of(data, version=OLDEST))
        return found

    def filed_now(self, data: bytes) -> Filed:
        """Return where the model has a mail message by now, whichever process has filed it."""
        self._refresh()
        return self.filed(data)

    def compact(self) -> None:
        """Write a model file that includes everything any process has learned so far.

        Raises ModelFileError; then the old file and its journal are unchanged.
        """
        with self._alone():
            self._take_base(compacted(self._base, self._changes))
            self._load()

    def _load(self, just_read: tuple[Snapshot, Journal] | None = None) -> None:
        if self._new is not None and not os.path.exists(self.path):
            self._identity, self._stamp, self._journal = None, None, NO_JOURNAL
            self._begin(begun(self._new))
            return
        snapshot, journal = just_read or read_model(self.path)
        base = base_of(self.path, snapshot.state)
        self._identity, self._stamp = snapshot.identity, snapshot.stamp
        self._begin(base)
        self._take_in(journal._replace(changes=in_step(base, journal.changes)))

    def _take_in(self, journal: Journal) -> None:
        """Take in the changes that a journal holds and this object does not know yet."""
        self._journal = journal._replace(changes=[])
        self._note(journal.changes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with locked(self.path):
            self._refresh()
            yield

    def _refresh(self) -> None:
        if self._identity is not None and stamp_of(self.path) == self._stamp:
            more = read_more(self.path, self._identity, self._journal)
            if more is not None and stamp_of(self.path) == self._stamp:
                self._take_in(more)
                return
        self._load()

    def _take_base(self, whole: Classifier) -> None:
        """Write a model file, and remove the journal, whose changes it includes.

        If the file cannot be written, the caller writes the changes of this call to the
        journal; none of them was reported yet.
        """
        self._clear_away()
        write(self.path, whole, self._journal if self.is_there else None)

    def _append(self, changes: list[Change]) -> None:
        """Write changes to the journal."""
        if self._identity is None:  # there was no place for the first model file
            write(self.path, self._base)
            self._load()
        assert self._identity is not None
        try:
            journal = None
            if self._journal.is_whole and self._journal.owner == self._identity:
                journal = append(self.path, self._journal, changes)
            if journal is None:
                self._clear_away()
                everything = [*self._changes, *changes]
                journal = write_journal(self.path, self._identity, everything)
            self._take_in(journal._replace(changes=changes))
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _make_way(self) -> Outcome:
        return Outcome(notes=() if self.is_there else (f"{self.path}: a new model",))

    def _clear_away(self) -> None:
        """Remove or keep aside a journal that a write would lose; see `set_aside`."""
        journal = self._journal
        if journal.owner is None or (journal.is_whole and journal.owner == self._identity):
            return
        self._journal = NO_JOURNAL
        if journal.owner not in {NOBODY, self._identity}:
            changes = read_journal(self.path).changes
            last = {change.digest: filed_by(change) for change in changes}
            if all(self._filed(digest) == filed for digest, filed in last.items()):
                remove_journal(self.path)  # left by a crash; the model has all of its changes
                return
        try:
            set_aside(self.path, journal, self._identity)
        except OSError as error:
            raise unwritable(self.path, error) from error


def told_at(path: str) -> dict[int, str]:
    """Return the classes that a person has told the model in a file, by digest; NbspamError.

    A model that cannot learn on was told none.
    """
    path = resolved(path)
    just_read = read_model(path)
    state = just_read[0].state
    if state.get("kind", TOKENS) != TOKENS or not state.get("memory"):
        return {}
    return StoredModel(path, just_read).told()


def keep_cutoffs(path: str, cutoffs: Cutoffs) -> None:
    """Write cutoffs into a model of tokens; raises NbspamError.

    The new file includes the journal's changes, read under the same lock, so that nothing is lost.
    """
    path = resolved(path)
    with locked(path):
        snapshot, journal = read_model(path)
        base = of_tokens(path, classifier_of(path, snapshot.state))
        classifier = compacted(base, in_step(base, journal.changes))
        write(path, replace(classifier, cutoffs=cutoffs))
