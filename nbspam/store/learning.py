"""A model that learns on: it learns more messages, un-learns them, and moves them.

The ledger knows as which class a message was learned.  From that and its new class follows a
change (`counts.changes.Change`), which is counted at once.  When a fit is due (see
`classifier.learner`), the model is fitted anew: it is then the model that training on the same
messages at once would have made.

Secret: which changes a batch of messages makes, and which of them a new fit includes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial

import numpy as np

from nbspam.classifier.classifier import Classifier, lack_of
from nbspam.classifier.learner import Growth
from nbspam.counts.changes import Change, filed_by, respelt
from nbspam.counts.counting import Lesson, read_lessons
from nbspam.counts.ledger import NOT_FILED, Filed
from nbspam.counts.outcome import Outcome, outcome_of
from nbspam.decision import HAM_AND_SPAM, POLICIES, is_worth_learning
from nbspam.errors import ModelFileError, NbspamError, NotTrainedError, UsageError
from nbspam.mail.digest import Copies, is_of_mail
from nbspam.settings import Settings
from nbspam.sources.items import Item
from nbspam.sources.order import GIVEN, ORDERS, arranged
from nbspam.sources.waiting import looked_through
from nbspam.store.assembly import (
    check_ledger,
    compacted,
    filed_in,
    memory_of,
    message_at_hand,
    with_changes,
)
from nbspam.tokens.reading import chunk_by_chunk
from nbspam.verdicts import Skipped, posterior

# One call gathers lessons with this many entries (about 50 MB) before it decides on them, so that
# a large update makes a few fits instead of one for each twentieth by which a class grows.
MAX_ENTRIES = 4_000_000


def check_known(classes: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError for classes that are not known; ham and spam may join each other."""
    of_mail = set(HAM_AND_SPAM)
    allowed = of_mail.union(known) if of_mail.issuperset(known) else set(known)
    wrong = sorted(set(classes) - allowed)
    if wrong:
        near = get_close_matches(wrong[0], sorted(allowed), 1)
        asks = f"did you mean {near[0]}? --new-class" if near else "--new-class"
        raise UsageError(
            f"{', '.join(wrong)}: not among the model's classes ({', '.join(sorted(known))});"
            f" {asks} makes a new class"
        )


class LivingModel:
    """A model in memory that learns on.  Not safe for several threads at once.

    The methods at the end say where changes are kept; `StoredModel` overrides them.
    """

    _current: Classifier | None

    def __init__(self, classifier: Classifier) -> None:
        self._begin(classifier)

    def _begin(self, base: Classifier) -> None:
        """Start from a classifier fitted with all of its messages: no change is pending."""
        self._base = base
        self._changes: list[Change] = []
        self._known: dict[int, Change] = {}
        self._growth = Growth.of(base)
        self._current = None

    @property
    def settings(self) -> Settings:
        """The settings that the model was trained with."""
        return self._base.settings

    def classifier(self) -> Classifier:
        """Return the classifier with everything that was learned so far."""
        self._refresh()
        if self._current is None:
            self._current = with_changes(self._base, self._changes)
        return self._current

    def whole(self) -> Classifier:
        """Return the classifier that a model file written now would hold, fitted again."""
        self._refresh()
        return compacted(self._base, self._changes)

    def told(self) -> dict[int, str]:
        """Return the classes that a person has told of single messages, by digest."""
        ledger, names = memory_of(self._base).ledger, self._base.classes
        told = np.flatnonzero(ledger.told)
        labels = [names[k] for k in ledger.labels[told].tolist()]
        found = dict(zip(ledger.digests[told].tolist(), labels, strict=True))
        for digest, change in self._known.items():
            found.pop(digest, None)
            if change.told and change.after is not None:
                found[digest] = change.after
        return found

    def _needs_more(self) -> Outcome:
        """Return a note if the model knows only ham, only spam or nothing."""
        lack = lack_of(self._growth.classes, self._base.classes)
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
        and `sources.order.arranged` finds it.  classes: those of the items, where they are known;
        otherwise all items are looked at before any is learned.  new_class: the model may get new
        classes; otherwise they raise UsageError, and nothing is learned.
        """
        if policy not in POLICIES:
            raise UsageError(f"policy {policy!r}: unknown; choose from {', '.join(POLICIES)}")
        if new_class:
            return self._learn(items, day, policy, jobs) + self._needs_more()
        if classes is None:
            with looked_through(items) as (found, again):
                return self.learn(again, day=day, policy=policy, jobs=jobs, classes=found)
        check_known(classes, {*self._base.classes, *self._growth.classes})
        return self._learn(items, day, policy, jobs) + self._needs_more()

    def _learn(self, items: Iterable[Item], day: int, policy: str, jobs: int) -> Outcome:
        if policy == "everything":
            return self._change(items, day, jobs, Copies())
        stream = arranged(items)
        outcome, copies = Outcome(), Copies()
        if stream.order != GIVEN:
            outcome = Outcome(notes=(f"policy {policy}: judged {ORDERS[stream.order]}",))
        for item in stream.items:
            needed = item.label is None or self._needs(item, policy)
            outcome += self._change([item], day, 1, copies) if needed else Outcome(passed=1)
        return outcome

    def relabel(
        self,
        items: Iterable[Item],
        to: str,
        *,
        day: int,
        jobs: int = 1,
        new_class: bool = False,
    ) -> Outcome:
        """Move messages to a class; messages that were never learned are learned in it.

        From now on, their class counts as told by a person.
        """
        check_ledger(self._base, self.name)
        items = (item._replace(label=to, told=True) for item in items)
        return self.learn(items, day=day, jobs=jobs, classes=[to], new_class=new_class)

    def unlearn(self, items: Iterable[Item], *, day: int, jobs: int = 1) -> Outcome:
        """Un-learn messages, whichever class they were learned in."""
        check_ledger(self._base, self.name)
        items = (item._replace(label="") for item in items)
        return self._change(items, day, jobs, Copies(), to_none=True) + self._needs_more()

    # ---- deciding ----

    def _needs(self, item: Item, policy: str) -> bool:
        """Return whether the policy requires a message to be learned, by the model's answer."""
        classifier = self.classifier()
        (answer,) = classifier.answers([item])
        if isinstance(answer, Skipped):
            return True  # learning will report why it is unreadable
        if item.label not in classifier.classes:
            return True
        truth = classifier.classes.index(item.label)
        return is_worth_learning(policy, posterior(answer.joint[None])[0], truth)

    def _change(
        self, items: Iterable[Item], day: int, jobs: int, copies: Copies, to_none: bool = False
    ) -> Outcome:
        outcome, settings = Outcome(), self.settings
        read = partial(read_lessons, settings, with_older=memory_of(self._base).has_older)
        gathered: list[Lesson] = []
        n_entries = 0
        for lessons, skipped in chunk_by_chunk(read, items, jobs):
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
        """Keep the changes that lessons make; settings: those that messages were read with."""
        if not lessons:
            return Outcome()
        with self._alone():
            is_older = lessons[0].older is None and memory_of(self._base).has_older
            if is_older or self.settings != settings:
                raise ModelFileError(
                    f"{self.name}: replaced by another model just now; run this again"
                )
            changes, outcome = self._decide(lessons, copies, day, to_none)
            if changes:
                outcome += self._check_classes(changes) + self._keep(changes)
        return outcome

    def _decide(
        self, lessons: Sequence[Lesson], copies: Copies, day: int, to_none: bool
    ) -> tuple[list[Change], Outcome]:
        """Return the changes that lessons make, and the outcome for each message."""
        changes: list[Change] = []
        outcome = Outcome()
        now: dict[int, Change] = {}
        for lesson in lessons:
            labels = lesson.messages.labels.tolist()
            for row, digest in enumerate(self._digests(lesson, copies, now)):
                before = self._before(digest, now)
                after = NOT_FILED if to_none else Filed(labels[row], lesson.told[row])
                outcome += outcome_of(before, after)
                if after == before or after == before._replace(told=False):
                    continue
                change = None
                if before != NOT_FILED:
                    change = now.get(digest) or self._learned(digest)
                if change is None:
                    known = self._base.table.vocabulary
                    change = lesson.change(row, digest, known, self.settings.weighting)
                now[digest] = change._replace(
                    before=before.label, after=after.label, day=day, told=after.told
                )
                changes.append(now[digest])
        return changes, outcome

    def _digests(self, lesson: Lesson, copies: Copies, now: Mapping[int, Change]) -> Iterator[int]:
        """Yield the digests by which the model knows messages, or will; now: grows meanwhile."""
        newest = lesson.messages.digests.tolist()
        older = newest if lesson.older is None else lesson.older.tolist()
        for digest, old in zip(map(copies.numbered, newest), older, strict=True):
            is_old = old != digest and is_of_mail(digest) and self._before(old, now) != NOT_FILED
            yield old if is_old and self._before(digest, now) == NOT_FILED else digest

    def _before(self, digest: int, now: Mapping[int, Change]) -> Filed:
        return filed_by(now[digest]) if digest in now else self._filed(digest)

    def _learned(self, digest: int) -> Change | None:
        """Return a message as it was learned, or None if its tokens are not stored.

        They may differ from those of the copy that is to be moved or un-learned, because each
        delivery adds its own headers.
        """
        return self._known.get(digest) or message_at_hand(self._base, digest)

    def _filed(self, digest: int) -> Filed:
        """Return where the model has a message."""
        if digest in self._known:
            return filed_by(self._known[digest])
        return filed_in(self._base, [digest])[0]

    def _check_classes(self, changes: Sequence[Change]) -> Outcome:
        """Report new classes; raise NotTrainedError if fewer than two classes would be left.

        A model of ham and spam may lose all messages of a class: it has a lack then.
        """
        before = self._growth.classes
        growth = Growth(self._growth.class_count)
        growth.note_all(changes)
        left = growth.classes
        if {*left, *self._base.classes} <= set(HAM_AND_SPAM):
            return Outcome()
        if len(left) < 2:
            raise NotTrainedError(
                f"{self.name}: only the class {', '.join(left) or 'none'} would be left, and a"
                " classifier needs two; train a new model instead"
            )
        new = [name for name in left if name not in before]
        had = f"a new class; the model had {', '.join(before) or 'none'}"
        return Outcome(notes=tuple(f"{name}: {had}" for name in new))

    # ---- keeping ----

    def _keep(self, changes: list[Change]) -> Outcome:
        """Keep changes: up to the last due fit in a new base, the others as changes."""
        due = self._growth.copy().note_all(changes)
        outcome = self._make_way()
        if not due:
            self._append(changes)
            return outcome
        before = self._base.table.vocabulary
        fitted = compacted(self._base, [*self._changes, *changes[:due]])
        try:
            self._take_base(fitted)
        except NbspamError as error:
            self._append(changes)
            return outcome + Outcome(notes=(f"the journal is kept as it is: {error}",))
        self._refresh()
        if changes[due:]:
            # The new base knows other tokens, and those that it does not know must be spelt out.
            self._append(respelt(changes[due:], before, fitted.table.vocabulary))
        return outcome

    def _note(self, changes: Sequence[Change]) -> None:
        """Add changes that were kept to what this object knows."""
        if changes:
            self._growth.note_all(changes)
            self._changes += changes
            self._known.update((change.digest, change) for change in changes)
            self._current = None

    # ---- where changes are kept: here in memory, in StoredModel on disk ----

    name = "model"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        yield

    def _refresh(self) -> None:
        """Take in what other processes have learned meanwhile; in memory there are none."""

    def _make_way(self) -> Outcome:
        """Clear the place where changes are kept; in memory there is nothing to clear."""
        return Outcome()

    def _take_base(self, whole: Classifier) -> None:
        self._begin(whole)

    def _append(self, changes: list[Change]) -> None:
        self._note(changes)
