"""A model that lives: it learns on, un-learns, and moves what it learned wrongly.

A change is decided under the model's lock, by the ledger; put on disk in the journal; and
only then told of.  When the journal has grown, a new model file takes it in: that is the
model that would have been trained on the same messages at once.

Secret: what a change is, and when the model's file is written anew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from nbspam.classifier.classifier import Classifier, classifier_of, with_changes, write
from nbspam.counts.changes import Change
from nbspam.counts.readings import Reading, read_chunk
from nbspam.decision import is_worth_learning
from nbspam.disk import locked, stamp_of, unwritable
from nbspam.errors import ModelFileError, NbspamError, NotTrainedError
from nbspam.mail.digest import Copies
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.store.assembly import compacted, memory_of, message_at_hand
from nbspam.store.format.journal import (
    NOBODY,
    Journal,
    append,
    read_journal,
    read_model,
    remove_journal,
    set_journal_aside,
)
from nbspam.tokens.reading import chunk_by_chunk
from nbspam.verdicts import Skipped, posterior

# The journal is taken in when it is so large a part of the model: reading a journal then
# stays cheap, and all writing together is some eight times what was learned.
_SHARE = 8
MIN_JOURNAL, MAX_JOURNAL = 64 << 10, 4 << 20  # bytes
_BULK = 16  # while one call learns many messages, the journal may grow so many times larger


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the messages."""

    learned: int = 0
    already_known: int = 0  # learned before, as the same class: nothing changed
    moved: int = 0  # learned before, as another class
    unlearned: int = 0
    unknown: int = 0  # to be un-learned, but never learned
    passed: int = 0  # right already, and so not learned, as the policy says
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()  # what the model's owner should know

    def __add__(self, other: "Outcome") -> "Outcome":
        names = [field.name for field in fields(self)]
        return Outcome(**{name: getattr(self, name) + getattr(other, name) for name in names})


def learn(
    path: str, items: Iterable[Item], *, day: int, policy: str = "everything", jobs: int = 1
) -> Outcome:
    """Learn labelled items; what is returned is on disk.  Raises NbspamError.

    path: of the model's file.  day: today, counted from 1970-01-01.  policy: learn every
    message; or those that the model gets wrong (error); or those and the near misses.
    """
    return Living(path).learn(items, day=day, policy=policy, jobs=jobs)


def unlearn(path: str, items: Iterable[Item], *, day: int, jobs: int = 1) -> Outcome:
    """Take messages out of the model, whatever class they were learned as."""
    return Living(path).unlearn(items, day=day, jobs=jobs)


def relabel(path: str, items: Iterable[Item], to: str, *, day: int, jobs: int = 1) -> Outcome:
    """Move messages to a class; what was never learned is learned as that."""
    return Living(path).learn((item._replace(label=to) for item in items), day=day, jobs=jobs)


class Living:
    """A model file and its journal, held by one process beside others that use them.

    Not for two threads at once.
    """

    _current: Classifier | None

    def __init__(self, path: str) -> None:
        self.path = path
        self._load()

    @property
    def settings(self) -> Settings:
        """How the model reads its messages."""
        return self._base.settings

    def classifier(self) -> Classifier:
        """Return the classifier that knows all that was learned until now, by anybody."""
        self._refresh()
        if self._current is None:
            self._current = with_changes(self._base, self._changes)
        return self._current

    def whole(self) -> Classifier:
        """Return the classifier that a model file written now would hold."""
        self._refresh()
        return compacted(self._base, self._changes)

    def size(self) -> int:
        """Return how many bytes the model has on disk, its journal included."""
        return self._identity.length + self._end

    def learn(
        self, items: Iterable[Item], *, day: int, policy: str = "everything", jobs: int = 1
    ) -> Outcome:
        """Learn labelled items; see `learn`."""
        if policy == "everything":
            return self._change(items, day, jobs, Copies())
        outcome, copies = Outcome(), Copies()
        for item in items:
            needed = item.label is None or self._needs(item, policy)
            outcome += self._change([item], day, 1, copies) if needed else Outcome(passed=1)
        return outcome

    def unlearn(self, items: Iterable[Item], *, day: int, jobs: int = 1) -> Outcome:
        """Take messages out of the model; see `unlearn`."""
        items = (item._replace(label="") for item in items)
        return self._change(items, day, jobs, Copies(), to_none=True)

    # ---- what to change ----

    def _needs(self, item: Item, policy: str) -> bool:
        """Return whether a message is to be learned, by what the model makes of it now."""
        classifier = self.classifier()
        (answer,) = classifier.answers([item])
        if isinstance(answer, Skipped):
            return True  # who learns it says why it cannot be read
        classes = classifier.classes
        if item.label not in classes:
            return True
        probability = posterior(answer.joint[None])[0]
        return is_worth_learning(policy, probability, classes.index(item.label))

    def _change(
        self, items: Iterable[Item], day: int, jobs: int, copies: Copies, to_none: bool = False
    ) -> Outcome:
        outcome, settings = Outcome(), self.settings
        work = partial(read_chunk, settings)
        for readings, skipped in chunk_by_chunk(work, items, jobs):
            readings = [r._replace(digest=copies.numbered(r.digest)) for r in readings]
            outcome += self._commit(readings, settings, day, to_none)
            outcome += Outcome(skipped=tuple(skipped))
            if self._pays(_BULK):
                outcome += self._compact()
        if self._pays():
            outcome += self._compact()
        return outcome

    def _commit(
        self, readings: Sequence[Reading], settings: Settings, day: int, to_none: bool
    ) -> Outcome:
        """Decide and write the changes that messages make; on return they are on disk.

        settings: with which the messages were read.
        """
        if not readings:
            return Outcome()
        with locked(self.path):
            self._refresh()
            if self.settings != settings:
                raise ModelFileError(
                    f"{self.path}: trained anew with other settings just now; run this again"
                )
            changes, outcome = self._decide(readings, day, to_none)
            if changes:
                outcome += self._check_classes(changes) + self._append(changes)
        return outcome

    def _decide(
        self, readings: Sequence[Reading], day: int, to_none: bool
    ) -> tuple[list[Change], Outcome]:
        """Return the changes that messages make, and what becomes of each."""
        changes: list[Change] = []
        outcome = Outcome()
        now: dict[int, Change] = {}
        for reading in readings:
            digest = reading.digest
            before = now[digest].after if digest in now else self._label(digest)
            after = None if to_none else reading.label
            if before == after:
                outcome += Outcome(unknown=1) if to_none else Outcome(already_known=1)
                continue
            learned = now.get(digest) or self._learned(digest)
            if before is None or learned is None:
                learned = self._change_of(reading)
            now[digest] = learned._replace(before=before, after=after, day=day)
            changes.append(now[digest])
            if to_none:
                outcome += Outcome(unlearned=1)
            else:
                outcome += Outcome(learned=1) if before is None else Outcome(moved=1)
        return changes, outcome

    def _change_of(self, reading: Reading) -> Change:
        """Return a message to learn; only what the model's file does not know is spelt out."""
        is_new = self._base.table.vocabulary.columns(reading.keys) < 0
        return Change(
            reading.digest,
            None,
            None,
            0,
            np.concatenate([reading.keys[~is_new], reading.keys[is_new]]),
            np.concatenate([reading.counts[~is_new], reading.counts[is_new]]),
            reading.groups[is_new],
            reading.lengths[is_new],
            reading.blob[np.repeat(is_new, reading.lengths)],
        )

    def _learned(self, digest: int) -> Change | None:
        """Return a message as it was learned, where that is at hand.

        Its tokens may differ from those of the copy that is to be moved or un-learned,
        as every delivery leaves its own traces.
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
        before = _classes_of(self._class_count)
        left = _classes_of(self._class_count + _class_counts(changes))
        if len(left) < 2:
            raise NotTrainedError(
                f"{self.path}: only the class {', '.join(left) or 'none'} would be left, and a"
                " classifier needs two; train a new model instead"
            )
        new = [name for name in left if name not in before]
        had = f"a new class; the model had {', '.join(before)}"
        return Outcome(notes=tuple(f"{name}: {had}" for name in new))

    # ---- the files ----

    def _load(self) -> None:
        snapshot, journal = read_model(self.path)
        self._base = classifier_of(self.path, snapshot.state)
        if self._base.memory is None:
            raise ModelFileError(
                f"{self.path}: knows none of its messages, being of --unlabelled or an older"
                " version; train it anew"
            )
        self._identity, self._stamp = snapshot.identity, snapshot.stamp
        self._changes: list[Change] = []
        self._known: dict[int, Change] = {}
        classes, counts = self._base.classes, self._base.table.class_count.tolist()
        self._class_count = Counter(dict(zip(classes, counts, strict=True)))
        self._current = None
        self._take_in(journal)

    def _take_in(self, journal: Journal) -> None:
        """Note what a journal holds beyond what was known."""
        self._end, self._mark = journal.end, journal.mark
        if journal.changes:
            self._class_count.update(_class_counts(journal.changes))
            self._changes += journal.changes
            self._known.update((change.digest, change) for change in journal.changes)
            self._current = None

    def _refresh(self) -> None:
        """Take in what others have learned since."""
        if stamp_of(self.path) == self._stamp:
            journal = read_journal(self.path, self._end, self._mark)
            if journal.owner == self._identity and journal.size >= self._end:
                self._take_in(journal)
                return
            if not self._end and stamp_of(self.path) == self._stamp:
                return  # no journal, or another model's
        self._load()

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

    def _pays(self, times: int = 1) -> bool:
        """Return whether to write the model's file anew."""
        limit = min(max(self._identity.length // _SHARE, MIN_JOURNAL), MAX_JOURNAL)
        return self._end > times * limit or _classes_of(self._class_count) != self._base.classes

    def _compact(self) -> Outcome:
        """Write a model file that holds the journal's changes, and take the journal away.

        A failure costs nothing: the journal has everything still.
        """
        try:
            with locked(self.path):
                self._refresh()
                if self._changes:  # or else another was faster
                    write(self.path, compacted(self._base, self._changes))
                    self._load()
        except NbspamError as error:
            return Outcome(notes=(f"the journal is kept as it is: {error}",))
        return Outcome()


def _class_counts(changes: Iterable[Change]) -> Counter[str]:
    """Return how many messages more each class has by some changes."""
    counts: Counter[str] = Counter()
    for change in changes:
        for name, n in ((change.before, -1), (change.after, 1)):
            if name is not None:
                counts[name] += n
    return counts


def _classes_of(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name, n in counts.items() if n > 0))
