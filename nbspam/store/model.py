"""A model that learns on: it learns more messages, un-learns them, and moves them.

The ledger knows in which class each message was learned.  That class and the new one make a
change (`LabelChange`), which is counted at once.  When a fit is due (see `ModelGrowth`), the
evidence is fitted again: then the model is the one that training on all messages at once makes.
"""

import marshal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from threading import RLock
from weakref import WeakValueDictionary

import numpy as np

from nbspam.arrays import Integers
from nbspam.classifier.classifier import Classifier, lack_of
from nbspam.classifier.training import ModelGrowth, uncopied_overlay
from nbspam.counts.ledger import (
    NO_BITS,
    NOT_FILED,
    FiledMessage,
    LabelChange,
    LogProgress,
    respelt,
)
from nbspam.counts.lessons import LessonBatch, Outcome, read_lessons
from nbspam.counts.table import CountTable
from nbspam.decision import HAM_AND_SPAM, POLICIES, is_worth_learning
from nbspam.disk import Stamp, is_absent, resolved, spooling, stamp_of, writing
from nbspam.errors import InputError, NbspamError, NotTrainedError, UsageError
from nbspam.mail.digest import Copies, digest_of
from nbspam.sent_mail import SentMail
from nbspam.settings import Settings
from nbspam.sources.arrival import GIVEN, ORDERS, arranged
from nbspam.sources.items import Item
from nbspam.store import assembly
from nbspam.store import journal as journals
from nbspam.store.assembly import NOWHERE, LessonOutlet, MessageFiling
from nbspam.store.modelfile import Identity, Snapshot
from nbspam.store.open import base_of
from nbspam.tokens.items_to_messages import chunks_of
from nbspam.tokens.sparse import Documents
from nbspam.verdicts import Skipped
from nbspam.workers import ordered_map

# Entries of lessons (about 50 MB) that are decided on together, so that an update makes few fits.
_MAX_ENTRIES = 4_000_000
_APART = 1_000  # messages; a larger model is fitted for a server by a process of its own
# The object that read each served file last, by path; see `StoredModel._load`.
_SERVED: "WeakValueDictionary[str, StoredModel]" = WeakValueDictionary()


class StoredModel:
    """A model that learns on: a model file and its journal, or, without a path, in memory.

    A change is decided under the model's lock, put on disk, and only then reported.  It goes into
    the journal or, when evidence is fitted again, into a new model file that includes the journal.
    So several processes may use one model, and several threads one object.
    """

    base: Classifier  # as it was when evidence was fitted last, without later changes
    stamp: Stamp | None = None  # of the model file that was read last; None if there was none
    _identity: Identity | None = None  # of that file
    # What a served model has read, without the state, and the classifier that was made of it.
    _loaded: tuple[Snapshot | None, Classifier | None] = (None, None)
    _journal: journals.Journal = journals.NO_JOURNAL
    _current: Classifier | None
    is_on_disk = True
    # Keeps the changes of a host that shares its lessons; asked under the model's lock.
    outlet: LessonOutlet | None = None
    patience: float | None = None  # seconds to wait for the lock; None: as long as it takes

    def __init__(
        self,
        path: str,
        just_read: tuple[Snapshot, journals.Journal] | None = None,
        new: Settings | None = None,
        served: str | None = None,
    ) -> None:
        """Open a model; raises ModelFileError, or UsageError for one that is not of tokens.

        just_read: what `read_model` returned, to save reading it again.  new: the settings of
        the model that the first message makes, if there is none.  served: the copy that a server
        reads (`modelfile.read_snapshot`); then another process makes the fits of a large model.
        """
        self.name, self.path = path, resolved(path)
        self._new, self._served, self._mutex = new, served, RLock()
        self._load(just_read)

    @classmethod
    def in_memory(cls, classifier: Classifier) -> "StoredModel":
        """Return a model without a file: its lessons end with the process."""
        model = cls.__new__(cls)
        model.name, model.path, model.is_on_disk = "model", "", False
        model._served, model._mutex = None, RLock()
        model._begin(classifier)
        return model

    def _begin(self, base: Classifier) -> None:
        """Start from a classifier fitted with all of its messages: no change is pending."""
        self.base = base
        self._changes: list[LabelChange] = []
        self._last_changes: dict[int, LabelChange] = {}
        self.progress = assembly.memory_of(base).progress
        self._growth = ModelGrowth.of(base)
        # Whether a fit is due that was not made: writing failed, or another process makes it.
        self.is_due = False
        self._current = None

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to rebuild the model: from its path, or from the classifier in memory."""
        if self.is_on_disk:
            return StoredModel, (self.name, None, self._new, self._served)
        return StoredModel.in_memory, (self.whole(),)

    @property
    def is_there(self) -> bool:
        """Whether there is a model file."""
        return self._identity is not None

    @property
    def settings(self) -> Settings:
        """The settings that the model was trained with."""
        return self.base.settings

    @property
    def classes(self) -> tuple[str, ...]:
        """The sorted names of the classes, also of those that only the journal knows."""
        return tuple(sorted({*self.base.classes, *self._growth.classes}))

    def classifier(self) -> Classifier:
        """Return the classifier with everything that was learned so far."""
        with self._mutex:
            self._refresh()
            if self._current is None:
                taken_in = assembly.with_changes if self._served is None else uncopied_overlay
                self._current = taken_in(self.base, self._changes)
            return self._current

    def whole(self) -> Classifier:
        """Return the classifier that a model file written now would hold, fitted again."""
        with self._mutex:
            self._refresh()
            base, changes, progress = self.base, list(self._changes), self.progress
        return assembly.compacted(base, changes, progress)

    @property
    def filing(self) -> MessageFiling:
        """Where the model had each message when it was opened or learned last."""
        return MessageFiling(self.base, self._last_changes, self.progress)

    def told(self) -> dict[int, str]:
        """Return the classes that a person gave to single messages, by digest."""
        ledger, names = assembly.memory_of(self.base).ledger, self.base.classes
        told = np.flatnonzero(ledger.told)
        labels = [names[k] for k in ledger.labels[told].tolist()]
        found = dict(zip(ledger.digests[told].tolist(), labels, strict=True))
        for digest, change in self._last_changes.items():
            found.pop(digest, None)
            if change.told and change.after is not None:
                found[digest] = change.after
        return found

    def lessons(self) -> tuple[CountTable, Documents, Integers]:
        """Return table, messages and their classes: see `assembly.lessons_of`."""
        self._refresh()
        return assembly.lessons_of(self.base, self._changes)

    def size(self) -> int:
        """Return the bytes that the model takes on disk, including its journal."""
        return (self._identity.length if self._identity else 0) + self._journal.size

    def filed(self, data: bytes) -> FiledMessage:
        """Return where the model had a mail message when it was opened or learned last."""
        return self.filing.at(digest_of(data))

    def has(self, digest: int) -> bool:
        """Return whether the model has learned a message or text of this digest."""
        return self.filing.at(digest) != NOT_FILED

    def catch_up(self) -> None:
        """Take in what other processes have learned or fitted; raises ModelFileError."""
        with self._mutex:
            self._refresh()

    def compact(self) -> None:
        """Write a model file that includes everything any process has learned so far.

        Others learn on beside it; their lessons stay in the journal.  Raises ModelFileError.
        """
        with self._mutex:
            self._refresh()
            base, changes, taken_in = self.base, self._changes, list(self._changes)
            progress = self.progress
        whole = assembly.compacted(base, taken_in, progress)
        with ExitStack() as stack:
            try:
                with journals.replacing_model(self.path, whole.to_state()) as new:
                    stack.enter_context(self._locked())
                    if self._changes is not changes:  # a new file was loaded, with a new list
                        raise journals.ReplacedError(self.path)
                    self._clear_away()
                    rest = journals.NO_JOURNAL
                    if changes[len(taken_in) :] or progress != self.progress:
                        known = whole.table.vocabulary
                        later = respelt(changes[len(taken_in) :], base.table.vocabulary, known)
                        rest = journals.Journal(later, None, progress=self.progress)
                    journal = self._journal if self.is_there else journals.read_journal(self.path)
                    journals.hand_over(self.path, new, self.stamp, journal, rest)
            except journals.ReplacedError:
                self._fit((), self.progress)
            self._load()

    def _note_of_lack(self) -> Outcome:
        """Return a note if the model knows only ham, only spam or nothing."""
        lack = lack_of(self._growth.classes, self.base.classes)
        return Outcome(notes=() if lack is None else (lack,))

    def learn(
        self,
        items: Iterable[Item],
        *,
        day: int,
        policy: str = "everything",
        jobs: int = 1,
        classes: Iterable[str] | None = None,
        new_class: bool = False,
    ) -> Outcome:
        """Learn labelled items; raises NbspamError.

        day: today, in days since 1970-01-01.  policy: which messages to learn, one of
        decision.POLICIES.  With another policy than everything, the order of the messages matters,
        and `sources.arrival.arranged` finds it.  classes: of the items, if they are
        known; otherwise all items are looked at before any is learned.  new_class: the model may
        get new classes; otherwise they raise UsageError, and nothing is learned.
        """
        if policy not in POLICIES:
            raise UsageError(f"policy {policy!r}: unknown; choose from {', '.join(POLICIES)}")
        if not new_class:
            if classes is None:
                with looked_through(items) as (found, again):
                    return self.learn(again, day=day, policy=policy, jobs=jobs, classes=found)
            assembly.check_known(classes, self.classes)
        return self._learn(items, day, policy, jobs) + self._note_of_lack()

    def _learn(self, items: Iterable[Item], day: int, policy: str, jobs: int) -> Outcome:
        if policy == "everything":
            return self._change(items, day, jobs, Copies())
        stream, order = arranged(items)
        outcome, copies = Outcome(), Copies()
        if order != GIVEN:
            outcome = Outcome(notes=(f"policy {policy}: judged {ORDERS[order]}",))
        for item in stream:
            needed = self._needs(item, policy)
            outcome += self._change([item], day, 1, copies) if needed else Outcome(passed=1)
        return outcome

    def relabel(
        self, items: Iterable[Item], to: str, *, day: int, jobs: int = 1, new_class: bool = False
    ) -> Outcome:
        """Move messages to a class; messages that were never learned are learned in it.

        From now on, their class counts as a person's word.
        """
        if to == NOWHERE:
            raise UsageError("relabel: an empty class; name one, or use unlearn")
        assembly.check_ledger(self.base, self.name)
        items = (item._replace(label=to, told=True) for item in items)
        return self.learn(items, day=day, jobs=jobs, classes=[to], new_class=new_class)

    def unlearn(self, items: Iterable[Item], *, day: int, jobs: int = 1) -> Outcome:
        """Un-learn messages, whichever class they were learned in."""
        assembly.check_ledger(self.base, self.name)
        items = (item._replace(label=NOWHERE) for item in items)
        return self._change(items, day, jobs, Copies()) + self._note_of_lack()

    def learn_each(
        self, items: Sequence[Item], *, day: int, is_wanted: Callable[[int, FiledMessage], bool]
    ) -> list[Outcome]:
        """Learn messages one after another, but put them on disk together; raises NbspamError.

        items: messages of mail in memory, of known classes; those without a class are un-learned.
        Data that are no mail are an InputError for all.
        is_wanted: whether to learn an item, given its number and where its message is filed now.
        Returns the outcome of each.
        """
        if any(item.label is None for item in items):
            assembly.check_ledger(self.base, self.name)
        settings = self.settings
        labelled = [item._replace(label=item.label or NOWHERE) for item in items]
        lessons, skipped = read_lessons(settings, labelled)
        if skipped:
            raise InputError(f"the message {skipped[0].reason}; teach a whole one")
        return self._commit(lessons, settings, Copies(), day, is_wanted)[0]

    def learn_sent_mail(self, found: SentMail) -> bool:
        """Learn known senders from the user's sent mail; return whether it was new.

        It bears on messages from now on.  The model file is written; raises ModelFileError.
        """
        return self._change_sent_mail(lambda known: known.united(found) if known else found)

    def unlearn_sent_mail(self, items: Iterable[Item]) -> bool:
        """Forget messages that the user sent; return whether the model knew any of them."""
        digests = [digest_of(item.read()) for item in items]
        return self._change_sent_mail(lambda known: known and known.without(digests))

    def _change_sent_mail(self, change: Callable[[SentMail | None], SentMail | None]) -> bool:
        with self._locked():
            known = self.settings.sent_mail
            sent = change(known)
            if sent == known:
                return False
            whole = assembly.compacted(self.base, self._changes, self.progress)
            settings = replace(whole.settings, sent_mail=sent or None)
            self._write_base(replace(whole, settings=settings))
            self._refresh()
        return True

    # ---- deciding ----

    def _needs(self, item: Item, policy: str) -> bool:
        """Return whether the policy requires a message to be learned, by the model's verdict."""
        (verdict,) = self.classifier().classify([item])
        if isinstance(verdict, Skipped) or item.label is None:
            return True  # learning will report what is wrong with it
        is_right = verdict.label == item.label
        return is_worth_learning(policy, is_right, verdict.posterior.get(item.label, 0.0))

    def _change(self, items: Iterable[Item], day: int, jobs: int, copies: Copies) -> Outcome:
        outcome, settings = Outcome(), self.settings
        read = partial(read_lessons, settings)
        gathered: list[LessonBatch] = []
        n_entries = 0
        for lessons, skipped in ordered_map(read, chunks_of(items, jobs), jobs):
            outcome += Outcome(skipped=tuple(skipped))
            gathered += lessons
            n_entries += sum(len(batch.messages.documents.columns) for batch in lessons)
            if n_entries > _MAX_ENTRIES:
                outcomes, notes = self._commit(gathered, settings, copies, day)
                outcome = sum(outcomes, outcome) + notes
                gathered, n_entries = [], 0
        outcomes, notes = self._commit(gathered, settings, copies, day)
        return sum(outcomes, outcome) + notes

    def _commit(
        self,
        lessons: Sequence[LessonBatch],
        settings: Settings,
        copies: Copies,
        day: int,
        is_wanted: Callable[[int, FiledMessage], bool] = lambda number, filed: True,
    ) -> tuple[list[Outcome], Outcome]:
        """Keep the changes that lessons make; return the outcome of each message, and notes.

        settings: the ones that the lessons were read with.  is_wanted: see `learn_each`.
        """
        notes = Outcome()
        if not lessons:
            return [], notes
        with self._locked():
            if self.settings != settings:
                raise journals.ReplacedError(self.name)
            if self.outlet is not None:
                self._keep_shared(*self.outlet.lost(self.filing))
            changes, outcomes = self.filing.decided(lessons, copies, day, is_wanted)
            if changes:
                notes += self._check_classes(changes)
                if self.outlet is None:  # not shared, or no longer: the size of the sample decides
                    self.progress = self.progress._replace(bits=NO_BITS)
                    notes += self._keep(changes)
                else:
                    notes += self._keep_shared(changes, self.outlet.keep(self.filing, changes))
        return outcomes, notes

    def keep_decided(
        self, changes_of: Callable[[MessageFiling], tuple[list[LabelChange], LogProgress]]
    ) -> None:
        """Keep changes that the caller decides; raises NbspamError.

        changes_of: called under the model's lock; returns the changes, with the texts of tokens
        that the model file does not know, and the progress with them.
        """
        with self._locked():
            self._keep_shared(*changes_of(self.filing))

    def _check_classes(self, changes: Sequence[LabelChange]) -> Outcome:
        """Report new classes; raise NbspamError if the model cannot have the classes left.

        A model of ham and spam may lose all messages of a class, and then has a `lack`.
        """
        before = self._growth.classes
        growth = self._growth.copy()
        growth.note_all(changes)
        left = growth.classes
        if {*left, *self.base.classes} <= set(HAM_AND_SPAM):
            return Outcome()
        if len(left) < 2:  # by counts, which may have faded
            parts = assembly.messages_after(self.base, [*self._changes, *changes])
            left = tuple(sorted({name for part in parts for name in part.names.tolist()}))
        if len(left) < 2:
            raise NotTrainedError(
                f"{self.name}: all messages would be of class {', '.join(left) or 'none'}, and a"
                " classifier needs two classes; train a new model instead"
            )
        assembly.check_prior(self.base, self.name, left)
        had = f"a new class; the model had {', '.join(before) or 'none'}"
        return Outcome(notes=tuple(f"{name}: {had}" for name in left if name not in before))

    # ---- keeping ----

    def _keep_shared(self, changes: list[LabelChange], progress: LogProgress) -> Outcome:
        """Keep changes together with the progress of a host that shares its lessons."""
        is_same = progress._replace(log=self.progress.log, read=self.progress.read)
        if not changes and is_same == self.progress:
            return Outcome()  # doing nothing twice does no harm
        return self._keep(changes, progress)

    def _keep(self, changes: list[LabelChange], progress: LogProgress | None = None) -> Outcome:
        """Keep changes up to a due fit in a new model file, and later ones in the journal.

        progress: see `_keep_shared`; all changes are in one file then.
        """
        n_fitted = self._n_fitted(changes, progress is not None)
        progress = progress or self.progress
        is_new = self.is_on_disk and not self.is_there
        outcome = Outcome(notes=(f"{self.path}: a new model",) if is_new else ())
        before = self.base.table.vocabulary
        if n_fitted:
            try:
                self._fit(changes[:n_fitted], progress)
            except NbspamError as error:
                n_fitted = 0
                outcome += Outcome(notes=(f"the journal is kept as it is: {error}",))
            else:
                self._refresh()
                # The new base knows other tokens; changes must spell out those that it lacks.
                changes = respelt(changes[n_fitted:], before, self.base.table.vocabulary)
                progress = self.progress
        if changes or not n_fitted:
            self._append(changes, progress)
        return outcome

    def _n_fitted(self, changes: Sequence[LabelChange], are_shared: bool) -> int:
        """Return how many changes a new model file takes in: the first ones, all or none."""
        n_due = self._growth.copy().note_all(changes)
        if self._served is not None:  # another process fits a large model
            is_ours = (n_due or self.is_due) and self.base.table.n_docs < _APART
            return len(changes) if is_ours else 0
        return len(changes) if n_due and are_shared else n_due

    def _fit(self, more: Sequence[LabelChange], progress: LogProgress) -> None:
        """Write a model file with all changes and more, fitted again; raises NbspamError."""
        self._write_base(assembly.compacted(self.base, [*self._changes, *more], progress))

    def _note(self, changes: Sequence[LabelChange]) -> None:
        """Add changes that were kept to what this object knows."""
        if changes:
            self.is_due |= self._growth.note_all(changes) > 0
            self._changes += changes
            self._last_changes.update((change.digest, change) for change in changes)
            self._current = None

    # ---- on disk ----

    def _load(self, just_read: tuple[Snapshot, journals.Journal] | None = None) -> None:
        """Read the model file and its journal.

        Objects of one served file, of a judge and a teacher, share the arrays that one has read.
        """
        if self._new is not None and is_absent(self.path):
            self._identity, self.stamp, self._journal = None, None, journals.NO_JOURNAL
            self._begin(assembly.empty_model(self._new))
            return
        last_reader = self if self._served is None else _SERVED.get(self.path, self)
        known, base = last_reader._loaded
        snapshot, journal = just_read or journals.read_model(self.path, self._served, known)
        if base is None or snapshot is not known:  # the file has changed since
            base = base_of(self.path, snapshot.state)
        if self._served is not None:
            self._loaded = snapshot._replace(state={}), base
            _SERVED[self.path] = self
        if self.stamp == snapshot.stamp:
            journals.warn_of_loss(self.path, self._identity, self._journal, journal)
        self._identity, self.stamp = snapshot.identity, snapshot.stamp
        self._begin(base)
        self._take_in(journal)

    def _take_in(self, journal: journals.Journal) -> None:
        """Take in the changes that a journal holds and this object does not know yet."""
        self._journal = journal._replace(changes=[])
        if journal.owner == self._identity:
            self.progress = journal.progress
        self._note(journal.changes)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = partial(journals.locked_model, self.path, self.patience)
        with self._mutex, lock() if self.is_on_disk else nullcontext():
            self._refresh()
            yield

    def _refresh(self) -> None:
        """Take in what other processes have learned."""
        if not self.is_on_disk:
            return
        if self._identity is not None and stamp_of(self.path) == self.stamp:
            more = journals.read_more(self.path, self._identity, self._journal)
            if more is not None and stamp_of(self.path) == self.stamp:
                self._take_in(more)
                return
        self._load()

    def _write_base(self, whole: Classifier) -> None:
        """Write a model file and remove the journal, which it takes in; `_refresh` loads it."""
        if not self.is_on_disk:
            self._begin(whole)
            return
        self._clear_away()
        journals.write_model(self.path, whole.to_state(), self.stamp)

    def _append(self, changes: list[LabelChange], progress: LogProgress) -> None:
        """Write changes to the journal."""
        if not self.is_on_disk:
            self.progress = progress
            self._note(changes)
            return
        if self._identity is None:  # there was no place for the first model file
            journals.write_model(self.path, self.base.to_state(), None)
            self._load()
        assert self._identity is not None
        if stamp_of(self.path) != self.stamp:
            raise journals.ReplacedError(self.path)
        journal = None
        with writing(self.path):
            if self._journal.is_whole and self._journal.owner == self._identity:
                is_kept = self.outlet is not None
                journal = journals.append(self.path, self._journal, changes, progress, is_kept)
            if journal is None:
                self._clear_away()
                journals.set_aside(self.path, self._journal, self._identity)
                everything = [*self._changes, *changes]
                journal = journals.write_journal(self.path, self._identity, everything, progress)
            self._take_in(journal._replace(changes=changes))

    def _clear_away(self) -> None:
        """Remove another model's journal, left by a crash, if this model has all its changes."""
        if self._journal.owner in {None, self._identity, journals.NOBODY}:
            return
        changes = journals.read_journal(self.path).changes
        last = {change.digest: change.filed for change in changes}
        if all(self.filing.at(digest) == filed for digest, filed in last.items()):
            journals.remove_journal(self.path)
            self._journal = journals.NO_JOURNAL


# --- items that wait until their classes are known -------------------------------------------

_WAITING_BYTES = 64 << 20  # of items that wait in memory; more of them wait on disk


@contextmanager
def looked_through(items: Iterable[Item]) -> Iterator[tuple[set[str], Iterable[Item]]]:
    """Yield the classes of all items, and the items, to be read once; raises InputError.

    Items of a stream wait in memory, or in a temporary file if they have much data.
    """
    if isinstance(items, list | tuple):
        yield {item.label for item in items if item.label is not None}, items
        return

    # Imported late: it takes 2 ms.
    from tempfile import SpooledTemporaryFile

    def again() -> Iterator[Item]:
        waiting.seek(0)
        with suppress(EOFError):
            while True:
                yield Item(*marshal.load(waiting))

    with SpooledTemporaryFile(_WAITING_BYTES) as waiting:
        classes = set()
        for item in items:
            if item.label is not None:
                classes.add(item.label)
            with spooling():
                marshal.dump(tuple(item), waiting)
        yield classes, again()
