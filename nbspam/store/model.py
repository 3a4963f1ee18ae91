"""A model that learns on: it learns more messages, un-learns them, and moves them.

A change is decided under the model's lock, by the ledger; put on disk in the journal; and only
then reported.  When evidence is to be fitted again (see `classifier.learner`), a new model file
takes the journal in: that is the model that training on the same messages at once would have
made.

Secret: what a change is, and in which order model file and journal are written, so that a crash
at any moment loses no change that was reported.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from nbspam.classifier.classifier import Classifier
from nbspam.classifier.learner import Growth, with_steps
from nbspam.counts.changes import Change
from nbspam.counts.counting import Lesson, read_lessons
from nbspam.decision import Cutoffs, is_worth_learning
from nbspam.disk import locked, stamp_of, unwritable
from nbspam.errors import ModelFileError, NbspamError, NotTrainedError
from nbspam.mail.digest import Copies
from nbspam.settings import PRESENCE, Settings
from nbspam.sources.items import Item
from nbspam.store.assembly import compacted, memory_of, message_at_hand, with_changes
from nbspam.store.format.journal import (
    FORMAT,
    NOBODY,
    Journal,
    append,
    read_journal,
    read_model,
    remove_journal,
    set_journal_aside,
)
from nbspam.store.open import classifier_of, of_tokens, write
from nbspam.tokens.documents import Documents
from nbspam.tokens.reading import chunk_by_chunk
from nbspam.verdicts import Skipped, posterior

# One call gathers lessons of this many entries (some 50 MB) before it decides on them: so a
# large update fits evidence a few times and not at every tenth message.
MAX_ENTRIES = 4_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the messages."""

    learned: int = 0
    already_known: int = 0  # learned before, as the same class: nothing changed
    moved: int = 0  # learned before, as another class
    unlearned: int = 0
    unknown: int = 0  # to be un-learned, but never learned
    passed: int = 0  # not learned, because the policy says that the model needs no lesson
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()  # what the model's owner should know

    def __add__(self, other: "Outcome") -> "Outcome":
        names = [field.name for field in fields(self)]
        return Outcome(**{name: getattr(self, name) + getattr(other, name) for name in names})


class LivingModel:
    """A model in memory that learns on.  Not for two threads at once."""

    _current: Classifier | None

    def __init__(self, classifier: Classifier) -> None:
        self._begin(classifier)

    def _begin(self, base: Classifier) -> None:
        """Start from a classifier that holds all messages, and was fitted with them."""
        self._base = base
        self._changes: list[Change] = []
        self._known: dict[int, Change] = {}
        counts = base.table.class_count.tolist()
        self._growth = Growth(dict(zip(base.classes, counts, strict=True)))
        self._current = None

    @property
    def settings(self) -> Settings:
        """How the model reads its messages."""
        return self._base.settings

    def classifier(self) -> Classifier:
        """Return the classifier that knows everything learned until now."""
        self._refresh()
        if self._current is None:
            self._current = with_changes(self._base, self._changes)
        return self._current

    def whole(self) -> Classifier:
        """Return the classifier that a model file written now would hold: fitted anew."""
        self._refresh()
        return compacted(self._base, self._changes)

    def learn(
        self, items: Iterable[Item], *, day: int, policy: str = "everything", jobs: int = 1
    ) -> Outcome:
        """Learn labelled items; raises NbspamError.

        day: today, counted from 1970-01-01.  policy: one of decision.POLICIES.
        """
        if policy == "everything":
            return self._change(items, day, jobs, Copies())
        outcome, copies = Outcome(), Copies()
        for item in items:
            needed = item.label is None or self._needs(item, policy)
            outcome += self._change([item], day, 1, copies) if needed else Outcome(passed=1)
        return outcome

    def relabel(self, items: Iterable[Item], to: str, *, day: int, jobs: int = 1) -> Outcome:
        """Move messages to a class; what was never learned is learned as that."""
        return self.learn((item._replace(label=to) for item in items), day=day, jobs=jobs)

    def unlearn(self, items: Iterable[Item], *, day: int, jobs: int = 1) -> Outcome:
        """Take messages out of the model, whatever class they were learned as."""
        items = (item._replace(label="") for item in items)
        return self._change(items, day, jobs, Copies(), to_none=True)

    # ---- deciding ----

    def _needs(self, item: Item, policy: str) -> bool:
        """Return whether the policy wants a message learned, by the model's present answer."""
        classifier = self.classifier()
        (answer,) = classifier.answers([item])
        if isinstance(answer, Skipped):
            return True  # learning reports why it cannot be read
        if item.label not in classifier.classes:
            return True
        truth = classifier.classes.index(item.label)
        return is_worth_learning(policy, posterior(answer.joint[None])[0], truth)

    def _change(
        self, items: Iterable[Item], day: int, jobs: int, copies: Copies, to_none: bool = False
    ) -> Outcome:
        outcome, settings = Outcome(), self.settings
        gathered: list[Lesson] = []
        n_entries = 0
        for lessons, skipped in chunk_by_chunk(partial(read_lessons, settings), items, jobs):
            outcome += Outcome(skipped=tuple(skipped))
            gathered += lessons
            n_entries += sum(len(lesson.messages.documents.columns) for lesson in lessons)
            if n_entries > MAX_ENTRIES:
                outcome += self._commit(gathered, settings, copies, day, to_none)
                gathered, n_entries = [], 0
        return outcome + self._commit(gathered, settings, copies, day, to_none)

    def _commit(
        self,
        lessons: Sequence[Lesson],
        settings: Settings,
        copies: Copies,
        day: int,
        to_none: bool,
    ) -> Outcome:
        """Decide on lessons and keep the changes that they make.

        settings: with which the messages were read.
        """
        if not lessons:
            return Outcome()
        with self._alone():
            if self.settings != settings:
                raise ModelFileError(
                    f"{self.name}: trained anew with other settings just now; run this again"
                )
            changes, outcome = self._decide(lessons, copies, day, to_none)
            if changes:
                outcome += self._check_classes(changes) + self._keep(changes)
        return outcome

    def _decide(
        self, lessons: Sequence[Lesson], copies: Copies, day: int, to_none: bool
    ) -> tuple[list[Change], Outcome]:
        """Return the changes that lessons make, and what becomes of each message."""
        changes: list[Change] = []
        outcome = Outcome()
        now: dict[int, Change] = {}
        for lesson in lessons:
            labels, documents = lesson.messages.labels.tolist(), lesson.messages.documents
            for row, digest in enumerate(map(copies.numbered, lesson.messages.digests.tolist())):
                before = now[digest].after if digest in now else self._label(digest)
                after = None if to_none else labels[row]
                if before == after:
                    outcome += Outcome(unknown=1) if to_none else Outcome(already_known=1)
                    continue
                change = None
                if before is not None:
                    change = now.get(digest) or self._learned(digest)
                if change is None:
                    change = self._first_change(digest, documents.one(row), lesson)
                now[digest] = change._replace(before=before, after=after, day=day, step=0.0)
                changes.append(now[digest])
                if to_none:
                    outcome += Outcome(unlearned=1)
                else:
                    outcome += Outcome(learned=1) if before is None else Outcome(moved=1)
        return changes, outcome

    def _first_change(self, digest: int, document: Documents, lesson: Lesson) -> Change:
        """Return a message to learn; only tokens that the base does not know are spelt out."""
        if self.settings.weighting == PRESENCE:
            document = document._replace(counts=None)
        is_new = self._base.table.vocabulary.columns(document.tokens) < 0
        column = np.searchsorted(lesson.vocabulary.keys, document.tokens[is_new])
        return Change(digest, None, None, 0, document, lesson.vocabulary.take(column).packed())

    def _learned(self, digest: int) -> Change | None:
        """Return a message as it was learned, where that is at hand.

        Its tokens may differ from those of the copy that is to be moved or un-learned, since
        every delivery leaves its own traces.
        """
        return self._known.get(digest) or message_at_hand(self._base, digest)

    def _label(self, digest: int) -> str | None:
        """Return the class a message was learned as, or None."""
        if digest in self._known:
            return self._known[digest].after
        ledger = memory_of(self._base).ledger
        (place,) = ledger.find(np.array([digest], np.uint64)).tolist()
        return None if place < 0 else self._base.classes[int(ledger.labels[place])]

    def _check_classes(self, changes: Sequence[Change]) -> Outcome:
        """Note classes that are new; raise NotTrainedError if fewer than two would be left."""
        before = self._growth.classes
        growth = Growth(self._growth.class_count)
        growth.last_due(changes)
        left = growth.classes
        if len(left) < 2:
            raise NotTrainedError(
                f"{self.name}: only the class {', '.join(left) or 'none'} would be left, and a"
                " classifier needs two; train a new model instead"
            )
        new = [name for name in left if name not in before]
        had = f"a new class; the model had {', '.join(before)}"
        return Outcome(notes=tuple(f"{name}: {had}" for name in new))

    # ---- keeping ----

    def _keep(self, changes: list[Change]) -> Outcome:
        """Keep changes: those up to the last due fit in a new base, those behind it as changes."""
        due = self._growth.copy().last_due(changes)
        outcome = Outcome()
        if due:
            outcome = self._take_base(compacted(self._base, [*self._changes, *changes[:due]]))
            if outcome.notes:
                due = 0  # the old base stays, and changes are kept behind it
        if changes[due:]:
            outcome += self._append(with_steps(self.classifier(), changes[due:]))
        return outcome

    def _note(self, changes: Sequence[Change]) -> None:
        """Note changes that are kept."""
        if changes:
            self._growth.last_due(changes)
            self._changes += changes
            self._known.update((change.digest, change) for change in changes)
            self._current = None

    # ---- where it is kept: here in memory ----

    name = "model"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        yield

    def _refresh(self) -> None:
        """Take in what others have learned since: nobody."""

    def _take_base(self, whole: Classifier) -> Outcome:
        self._begin(whole)
        return Outcome()

    def _append(self, changes: list[Change]) -> Outcome:
        self._note(changes)
        return Outcome()


class StoredModel(LivingModel):
    """A model file and its journal, held by one process beside others that use them.

    What its methods return is on disk.
    """

    def __init__(self, path: str) -> None:
        self.path = self.name = path
        self._load()

    def size(self) -> int:
        """Return how many bytes the model has on disk, its journal included."""
        return self._identity.length + self._end

    def compact(self) -> None:
        """Write the model file anew with everything learned until now, by anybody.

        Raises ModelFileError; then the old file and its journal stay as they are.
        """
        with self._alone():
            write(self.path, compacted(self._base, self._changes))
            self._load()

    def _load(self) -> None:
        snapshot, journal = read_model(self.path)
        base = of_tokens(self.path, classifier_of(self.path, snapshot.state))
        if base.memory is None:
            raise ModelFileError(
                f"{self.path}: knows none of its messages, being of --unlabelled or an older"
                " version; train it anew"
            )
        self._identity, self._stamp = snapshot.identity, snapshot.stamp
        self._begin(base)
        self._take_in(journal)

    def _take_in(self, journal: Journal) -> None:
        """Note what a journal holds beyond what was known."""
        self._end, self._mark, self._version = journal.end, journal.mark, journal.version
        self._note(journal.changes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with locked(self.path):
            self._refresh()
            if self._end and self._version < FORMAT:
                # An older journal cannot hold our records: the model takes it in first.
                self._take_base(compacted(self._base, self._changes))
            yield

    def _refresh(self) -> None:
        if stamp_of(self.path) == self._stamp:
            journal = read_journal(self.path, self._end, self._mark)
            if journal.owner == self._identity and journal.size >= self._end:
                self._take_in(journal)
                return
            if not self._end and stamp_of(self.path) == self._stamp:
                return  # no journal, or another model's
        self._load()

    def _take_base(self, whole: Classifier) -> Outcome:
        """Write a model file, and take away the journal that it holds.

        Changes of this call that it holds were not yet reported: if it cannot be written, the
        journal gets them.
        """
        try:
            write(self.path, whole)
        except NbspamError as error:
            return Outcome(notes=(f"the journal is kept as it is: {error}",))
        self._load()
        return Outcome()

    def _append(self, changes: list[Change]) -> Outcome:
        """Put changes on disk; if there is another model's journal, out of its way first."""
        outcome = Outcome() if self._end else self._clear_away()
        try:
            self._take_in(append(self.path, self._identity, changes, self._end))
        except OSError as error:
            raise unwritable(self.path, error) from error
        return outcome

    def _clear_away(self) -> Outcome:
        """Take away a journal that is not this model's, without losing anything."""
        journal = read_journal(self.path)
        if journal.owner is None:
            return Outcome()
        last = {change.digest: change.after for change in journal.changes}
        is_known = all(self._label(digest) == after for digest, after in last.items())
        if is_known and journal.owner != NOBODY:
            remove_journal(self.path)  # all of it is in the model: a crash left it behind
            return Outcome()
        try:
            aside = set_journal_aside(self.path, journal.owner)
        except OSError as error:
            raise unwritable(self.path, error) from error
        note = f"{aside}: the journal of another model, moved out of the way; not learned from"
        return Outcome(notes=(note,))


def keep_cutoffs(path: str, cutoffs: Cutoffs) -> None:
    """Write cutoffs into a model of tokens; raises NbspamError.

    The journal is taken in under the same lock, so that nothing learned meanwhile is lost.
    """
    with locked(path):
        snapshot, journal = read_model(path)
        base = of_tokens(path, classifier_of(path, snapshot.state))
        classifier = compacted(base, journal.changes)
        write(path, replace(classifier, cutoffs=cutoffs))
