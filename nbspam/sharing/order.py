"""The order of the log: what a host's model learns from records, given its own lessons.

A model is a function of the log: each lesson changes where one message is filed, and the last one
wins.  A host learns its own lessons before the log has them.  When records of others come in
between, they are taken out, and follow again behind those records.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.counts.ledger import LabelChange
from nbspam.sharing.outbox import PendingLesson
from nbspam.sharing.records import SharedLesson, spelt_out
from nbspam.store.journal import decode_record, encode_record
from nbspam.store.model import StoredModel


class OrderedLessons(NamedTuple):
    """The changes of a model, and the notes of its outbox."""

    changes: list[LabelChange]
    pending: list[PendingLesson]  # with the state of their messages by the log


def in_order(
    model: StoredModel, lessons: Sequence[SharedLesson], pending: Sequence[PendingLesson], own: str
) -> OrderedLessons:
    """Return the changes that bring a model from its own state to that of the log.

    The model's lock is held.  lessons: of the log, each with a day that is not before the day of
    those before it.  pending: the lessons of the host to this model, before these are read; own:
    their origin.
    """
    bodies = {each.number: decode_record(each.lesson) for each in pending}
    first: dict[int, PendingLesson] = {}
    for each in pending:
        first.setdefault(bodies[each.number].digest, each)
    back = {lesson.number for lesson in lessons if lesson.origin == own}
    rest = [each for each in pending if each.number not in back]
    now = {digest: _before(each, bodies[each.number]) for digest, each in first.items()}
    by_log = LessonChain(model, now)
    for lesson in lessons:
        by_log.add(lesson.change)
    noted = []
    for each in rest:
        change = bodies[each.number]
        filed = by_log.at(change.digest)
        body = None
        if filed.after is not None and not _has_same_tokens(filed, change):
            body = encode_record(spelt_out(filed, model.base.table.vocabulary))
        noted.append(each._replace(before=filed.after, told=filed.told, day=filed.day, filed=body))
        by_log.add(change)
    mine = {change.digest: change for change in bodies.values()}
    return OrderedLessons(_yet_to_make(model, by_log, now, mine), noted)


def _before(pending: PendingLesson, change: LabelChange) -> LabelChange:
    if pending.filed is not None:
        change = decode_record(pending.filed)
    return change._replace(after=pending.before, told=bool(pending.told), day=pending.day)


class LessonChain:
    """Lessons one after another, and where each message is filed after them."""

    def __init__(self, model: StoredModel, now: dict[int, LabelChange]) -> None:
        self._model = model
        self._now = dict(now)
        self.changes: dict[int, list[LabelChange]] = {}  # by digest
        self.seen: dict[int, list[LabelChange]] = {}  # copies whose tokens are not counted

    def at(self, digest: int) -> LabelChange:
        """Return where a message is filed now."""
        if digest not in self._now:
            self._now[digest] = self._model.last_change(digest)
        return self._now[digest]

    def add(self, lesson: LabelChange) -> None:
        """File a message as a lesson says."""
        filed = self.at(lesson.digest)
        done = self.changes.setdefault(lesson.digest, [])
        if lesson.after is None:
            if filed.after is not None:
                stays = filed if len(filed.document.tokens) else lesson
                done.append(stays._replace(before=filed.after, after=None, day=lesson.day))
                self._now[lesson.digest] = done[-1]._replace(told=False)
            return
        # The tokens of a message stay those with which it was learned first.
        is_known = filed.after is not None and len(filed.document.tokens) > 0
        stays = filed if is_known else lesson
        told = lesson.told or (filed.told and filed.after == lesson.after)
        change = stays._replace(before=filed.after, after=lesson.after, day=lesson.day, told=told)
        if not _has_same_tokens(stays, lesson):
            # The tokens of this copy were seen on that day, too, but are not counted.
            seen = lesson._replace(before=None, after=lesson.after)
            copies = self.seen.setdefault(lesson.digest, [])
            copies += [seen, seen._replace(before=lesson.after, after=None)]
        elif _is_filed_alike(filed, change):
            return
        done.append(change)
        self._now[lesson.digest] = change


def _has_same_tokens(one: LabelChange, other: LabelChange) -> bool:
    return np.array_equal(one.document.tokens, other.document.tokens) and np.array_equal(
        one.document.times(), other.document.times()
    )


def _is_filed_alike(one: LabelChange, other: LabelChange) -> bool:
    """Return whether two changes leave a message in the same place, with the same tokens."""
    if one.after is None and other.after is None:
        return True
    return (one.after, one.told, one.day) == (other.after, other.told, other.day) and (
        _has_same_tokens(one, other)
    )


def _yet_to_make(
    model: StoredModel,
    chain: LessonChain,
    first: dict[int, LabelChange],
    own: dict[int, LabelChange],
) -> list[LabelChange]:
    """Return the changes of a chain that a model has not made.

    first: where the log had the messages of the host's own lessons.  own: the last one of each
    message, which the model has made already, unless it was killed in between.
    """
    changes: list[LabelChange] = []
    for digest, done in chain.changes.items():
        changes += chain.seen.get(digest, [])
        if digest not in first:
            changes += done
            continue
        at, by_log, to = model.last_change(digest), first[digest], chain.at(digest)
        if not len(at.document.tokens):
            at = own[digest]._replace(after=at.after, told=at.told, day=at.day)
        if _is_filed_alike(at, to):  # the usual case: own lessons come back as they were learned
            if digest in chain.seen and to.after is not None:
                changes.append(to._replace(before=to.after))
            continue
        if not _is_filed_alike(at, by_log):
            if at.after is not None:
                changes.append(at._replace(before=at.after, after=None))
            if by_log.after is not None:
                changes.append(by_log._replace(before=None))
        changes += done
    return changes
