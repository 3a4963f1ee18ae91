"""The order of the log: how a host's model learns records, given its own lessons.

A model is a function of the log: each lesson says where one message is filed, and the last one
counts.  A host learns its own lessons before the log has them.  So records are applied like a
rebase: messages with lessons ahead of the log go back to where the log had them, the lessons of
the log follow in order, and then the host's own lessons that the log lacks.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.counts.ledger import LabelChange
from nbspam.sharing.outbox import PendingLesson
from nbspam.sharing.records import SharedLesson, spelt_out
from nbspam.store.journal import decode_record, encode_record
from nbspam.store.model import StoredModel
from nbspam.tokens.sparse import Vocabulary


class OrderedLessons(NamedTuple):
    """The changes of a model, and the notes of its outbox."""

    changes: list[LabelChange]
    pending: list[PendingLesson]  # with the state of their messages by the log


def in_order(
    model: StoredModel, lessons: Sequence[SharedLesson], pending: Sequence[PendingLesson], own: str
) -> OrderedLessons:
    """Return the changes that bring a model from its own state to that of the log.

    The model's lock is held.  lessons: of the log, with days that never go back.  pending: the
    lessons of the host to this model that it has not read back before, as far as they are about
    the same messages; own: their origin.
    """
    bodies = [decode_record(each.lesson) for each in pending]
    by_log: dict[int, LabelChange] = {}  # where the log has had these messages
    for each, change in zip(pending, bodies, strict=True):
        filed = change._replace(after=None) if each.filed is None else decode_record(each.filed)
        by_log.setdefault(change.digest, filed)
    ahead, after = LessonChain(model, by_log), LessonChain(model, by_log)
    for change in bodies:
        ahead.add(change)
    for lesson in lessons:
        after.add(lesson.change)
    back = {lesson.number for lesson in lessons if lesson.origin == own}
    noted = []
    for each, change in zip(pending, bodies, strict=True):
        if each.number not in back:
            filed_now = filed_before(change, after.at(change.digest), model.base.table.vocabulary)
            noted.append(each._replace(filed=filed_now))
            after.add(change)
    changes: list[LabelChange] = []
    settled = set()
    for digest, state in by_log.items():
        if _is_settled(model, ahead, after, digest):
            settled.add(digest)
        else:
            changes += _back_to(state, model.last_change(digest), ahead.at(digest))
    changes += [change for change in after.changes if change.digest not in settled]
    return OrderedLessons(changes, noted)


def filed_before(change: LabelChange, state: LabelChange, known: Vocabulary) -> bytes | None:
    """Return where a message is before a lesson, as a PendingLesson keeps it.

    state: from `StoredModel.last_change`.  known: the vocabulary of the model file.
    """
    if state.after is None:
        return None
    tokens = state if len(state.document.tokens) else change
    filed = tokens._replace(before=None, after=state.after, told=state.told, day=state.day)
    return encode_record(spelt_out([filed], known)[0])


class LessonChain:
    """Lessons one after another, and where each message is filed after them.

    filed: where messages are before; others are where the model has them.
    """

    def __init__(self, model: StoredModel, filed: dict[int, LabelChange]) -> None:
        self._model = model
        self._filed = dict(filed)
        self.changes: list[LabelChange] = []
        self.n_lessons: Counter[int] = Counter()  # by digest

    def at(self, digest: int) -> LabelChange:
        """Return where a message is filed now."""
        if digest not in self._filed:
            self._filed[digest] = self._model.last_change(digest)
        return self._filed[digest]

    def add(self, lesson: LabelChange) -> None:
        """File a message as a lesson says."""
        filed = self.at(lesson.digest)
        self.n_lessons[lesson.digest] += 1
        # The tokens of a message stay those with which it was learned first.
        is_known = filed.after is not None and len(filed.document.tokens) > 0
        stays = filed if is_known else lesson
        is_copy = lesson.after is not None and not _has_same_tokens(stays, lesson)
        if is_copy:
            # Its tokens were seen on that day, too, but are not counted.
            seen = lesson._replace(before=None)
            self.changes += [seen, seen._replace(before=lesson.after, after=None)]
        is_told = lesson.told or (filed.told and filed.after == lesson.after)
        change = stays._replace(
            before=filed.after,
            after=lesson.after,
            day=lesson.day,
            told=is_told and lesson.after is not None,
        )
        if is_copy or not _is_filed_alike(filed, change):
            self.changes.append(change)
            self._filed[lesson.digest] = change


def _has_same_tokens(one: LabelChange, other: LabelChange) -> bool:
    first, second = one.document, other.document
    return first is second or (
        np.array_equal(first.tokens, second.tokens)
        and np.array_equal(first.times(), second.times())
    )


def _is_filed_alike(one: LabelChange, other: LabelChange) -> bool:
    """Return whether two changes leave a message in the same place."""
    if one.after is None and other.after is None:
        return True
    return (one.after, one.told, one.day) == (other.after, other.told, other.day)


def _is_settled(model: StoredModel, ahead: LessonChain, after: LessonChain, digest: int) -> bool:
    """Return whether a message's only lesson came back as it was learned: the usual case.

    Of several lessons, the first ones may have left no trace in the model: the days on which
    tokens were seen go with the tokens when the last message that has them is un-learned.
    """
    return (
        ahead.n_lessons[digest] == after.n_lessons[digest] == 1
        and _is_filed_alike(ahead.at(digest), after.at(digest))
        # A process that was killed has kept the lesson only for the log.
        and _is_filed_alike(model.last_change(digest), ahead.at(digest))
    )


def _back_to(state: LabelChange, now: LabelChange, ahead: LabelChange) -> list[LabelChange]:
    """Return the changes that take a message back to where the log had it.

    now: where the model has it.  ahead: the same by the pending lessons, with its tokens.
    """
    if not len(now.document.tokens):
        now = ahead._replace(after=now.after, told=now.told, day=now.day)
    changes = []
    if now.after is not None:
        changes.append(now._replace(before=now.after, after=None, told=False))
    if state.after is not None:
        changes.append(state._replace(before=None))
    return changes
