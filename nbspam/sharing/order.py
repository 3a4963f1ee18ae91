"""The order of the log: how a host's model learns records, given its own lessons.

A model is a function of the log: each lesson says where one message is filed, and the last one
counts.  A host learns its own lessons before the log has them.  So records are applied like a
rebase: messages with lessons ahead of the log go back to where the log had them, the lessons of
the log follow in order, and then the host's own lessons that the log lacks.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from nbspam.counts.ledger import LabelChange, LogProgress, Sampling, is_remembered, respelt
from nbspam.sharing.logs import SharedLesson
from nbspam.sharing.outbox import Outbox, PendingLesson
from nbspam.store.assembly import MessageFiling
from nbspam.store.journal import decode_record, encode_record
from nbspam.tokens.sparse import Documents, Vocabulary, empty_vocabulary

_NO_TOKENS = Documents(
    np.empty(0, np.uint64), np.zeros(2, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
)


class OrderedLessons(NamedTuple):
    """The changes of a model, and the notes of its outbox."""

    changes: list[LabelChange]
    progress: LogProgress  # with these changes
    pending: list[PendingLesson]  # with the state of their messages by the log


def in_order(
    filing: MessageFiling, lessons: Sequence[SharedLesson], outbox: Outbox, user: str, log: str
) -> OrderedLessons:
    """Return the changes that bring a model from its own state to that of the log.

    The model's lock is held, and it has all of the outbox's lessons.  lessons: of the log, with
    days that never go back.  user: whose model it is.  log: its identifier.
    """
    progress = filing.progress
    read = progress.read if progress.log == checksum(log) else 0
    waiting = _decoded(outbox.pending(user, {lesson.change.digest for lesson in lessons}))
    # These lessons were learned by a process that was killed before it noted them as read.
    n_known = sum(lesson.record <= read for lesson in lessons)
    by_log, waiting = _as_read(filing, lessons[:n_known], waiting, outbox.origin)
    read_back = {lesson.number for lesson in lessons if lesson.origin == outbox.origin}
    ahead = LessonChain(filing, by_log)
    for each in waiting:
        ahead.add(each.change)
    after = LessonChain(filing, by_log)
    after.sample = _log_sample(filing, lessons, by_log, outbox, user)
    for lesson in lessons[n_known:]:
        after.add(lesson.change)
    after.sample = None
    if after.bits > filing.bits:
        waiting += _forgotten(_decoded(outbox.pending_filed(user)), by_log, ahead, after)
    noted = []
    for pending, change in waiting:
        if pending.number not in read_back:
            filed_now = filed_before(change, after.at(change.digest), filing.base.table.vocabulary)
            noted.append(pending._replace(filed=filed_now))
            after.add(change)
    changes: list[LabelChange] = []
    settled = set()
    for digest, state in by_log.items():
        if _is_settled(ahead, after, digest):
            settled.add(digest)
        else:
            changes += _back_to(state, ahead.moves[digest], is_remembered(digest, ahead.bits))
    changes += [change for change in after.changes if change.digest not in settled]
    read = max(read, lessons[-1].record)
    progress = progress._replace(log=checksum(log), read=read, bits=after.bits)
    return OrderedLessons(changes, progress, noted)


class _Decoded(NamedTuple):
    """A pending lesson, and its change."""

    pending: PendingLesson
    change: LabelChange

    @property
    def filed(self) -> LabelChange:
        """Where the log has had the message before."""
        if self.pending.filed is None:
            return self.change._replace(after=None)
        return decode_record(self.pending.filed)


def _decoded(pending: Sequence[PendingLesson]) -> list[_Decoded]:
    return [_Decoded(each, decode_record(each.lesson)) for each in pending]


def _as_read(
    filing: MessageFiling, known: Sequence[SharedLesson], waiting: Sequence[_Decoded], origin: str
) -> tuple[dict[int, LabelChange], list[_Decoded]]:
    """Return where the log has the messages of waiting lessons, and the lessons that still wait.

    known: lessons of the log that the model has learned, but the host has not noted as read.
    """
    by_log: dict[int, LabelChange] = {}
    for each in waiting:
        by_log.setdefault(each.change.digest, each.filed)
    chain = LessonChain(filing, by_log)
    for lesson in known:
        if lesson.change.digest in by_log:
            chain.add(lesson.change)
    read_back = {lesson.number for lesson in known if lesson.origin == origin}
    stay = [each for each in waiting if each.pending.number not in read_back]
    return {digest: chain.at(digest) for digest in by_log}, stay


def _forgotten(
    waiting: Sequence[_Decoded],
    by_log: dict[int, LabelChange],
    ahead: "LessonChain",
    after: "LessonChain",
) -> list[_Decoded]:
    """Return lessons about messages that are forgotten now, as they move other tokens than before.

    `by_log`, `ahead` and `after` get these messages, and `ahead` the lessons.
    """
    found = [
        each
        for each in waiting
        if each.change.digest not in by_log and not is_remembered(each.change.digest, after.bits)
    ]
    for each in found:
        digest = each.change.digest
        if digest not in by_log:
            by_log[digest] = ahead.filed[digest] = after.filed[digest] = each.filed
        ahead.add(each.change)
    return found


def lost_lessons(
    filing: MessageFiling, outbox: Outbox, user: str
) -> tuple[list[LabelChange], LogProgress]:
    """Return the changes of lessons that a killed process has only put into the outbox.

    Their progress is the model's if there are none.  The model's lock is held.
    """
    progress, origin = filing.progress, checksum(outbox.origin)
    lost = outbox.after(user, progress.own if progress.origin == origin else 0)
    if not lost:
        return [], progress
    chain = LessonChain(filing, {})
    for each in lost:
        chain.add(decode_record(each.lesson))
    known = filing.base.table.vocabulary
    progress = progress._replace(origin=origin, own=lost[-1].number, bits=filing.bits)
    return respelt(chain.changes, known, known), progress


def checksum(identifier: str) -> int:
    """Return the checksum by which a model knows a log or an outbox; never 0."""
    return zlib.crc32(identifier.encode()) or 1


def filed_before(change: LabelChange, state: LabelChange, known: Vocabulary) -> bytes | None:
    """Return where a message is before a lesson, as a PendingLesson keeps it.

    state: from `MessageFiling.last_change`.  known: the vocabulary of the model file.
    """
    if state.after is None:
        return None
    tokens = state if len(state.document.tokens) else change
    filed = tokens._replace(before=None, after=state.after, told=state.told, day=state.day)
    return encode_record(respelt([filed], known, empty_vocabulary())[0])


class LogSample:
    """The messages whose tokens are remembered by the log alone, to find when they are too many.

    sizes: the number of tokens of each, by digest.
    """

    def __init__(self, sampling: Sampling, sizes: dict[int, int]) -> None:
        self._sampling, self.bits = sampling, sampling.bits
        self._sizes, self._n_tokens = sizes, sum(sizes.values())

    def note(self, filed: LabelChange) -> None:
        """Note where a message is filed now; `bits` grow while there are too many."""
        self._n_tokens -= self._sizes.pop(filed.digest, 0)
        if filed.after is not None and is_remembered(filed.digest, self.bits):
            self._sizes[filed.digest] = len(filed.document.tokens)
            self._n_tokens += len(filed.document.tokens)
        while self._sampling.is_too_large(len(self._sizes), self._n_tokens):
            self.bits += 1
            kept = {d: n for d, n in self._sizes.items() if is_remembered(d, self.bits)}
            self._sizes, self._n_tokens = kept, sum(kept.values())


def _log_sample(
    filing: MessageFiling,
    lessons: Sequence[SharedLesson],
    by_log: dict[int, LabelChange],
    outbox: Outbox,
    user: str,
) -> LogSample | None:
    """Return the sample by the log, before these lessons; None if they cannot make it too large.

    by_log: where the log has messages about which lessons wait in the outbox.
    """
    sampling = Sampling(filing.base.settings.weighting, filing.bits)
    more, n_more = len(lessons), sum(len(lesson.change.document.tokens) for lesson in lessons)
    sizes = filing.sizes(lambda n, n_tokens: sampling.is_too_large(n + more, n_tokens + n_more))
    if sizes is None:
        return None
    filed: dict[int, LabelChange | None] = dict(by_log)
    for digest, body in outbox.filed(user):
        if digest not in filed:
            filed[digest] = None if body is None else decode_record(body)
    for digest, change in filed.items():
        sizes.pop(digest, None)
        if change is not None and change.after is not None and is_remembered(digest, filing.bits):
            sizes[digest] = len(change.document.tokens)
    return LogSample(sampling, sizes)


class LessonChain:
    """Lessons one after another, and where each message is filed after them.

    filed: where messages are before, and then now; others are where the model has them.
    """

    def __init__(self, filing: MessageFiling, filed: dict[int, LabelChange]) -> None:
        self._filing = filing
        self.filed = dict(filed)
        self.bits = filing.bits  # zero bits at the end of remembered messages' digests
        self.sample: LogSample | None = None  # while the bits grow with lessons
        self.changes: list[LabelChange] = []
        self.moves: defaultdict[int, list[LabelChange]] = defaultdict(list)  # those that count
        self.n_lessons: Counter[int] = Counter()  # by digest

    def at(self, digest: int) -> LabelChange:
        """Return where a message is filed now."""
        if digest not in self.filed:
            self.filed[digest] = self._filing.last_change(digest)
        return self.filed[digest]

    def add(self, lesson: LabelChange) -> None:
        """File a message as a lesson says."""
        filed = self.at(lesson.digest)
        self.n_lessons[lesson.digest] += 1
        # The tokens of a message stay those with which it was learned first, while they are
        # remembered; then every lesson moves the tokens that it comes with.
        is_filed, has_tokens = filed.after is not None, len(filed.document.tokens) > 0
        is_known = is_filed and is_remembered(lesson.digest, self.bits)
        stays = filed if is_known and has_tokens else lesson
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
        # A copy of a forgotten message may have other words, too.
        is_seen = is_copy or (lesson.after is not None and is_filed and not is_known)
        if is_seen or not _is_filed_alike(filed, change):
            self.changes.append(change)
            self.moves[lesson.digest].append(change)
            self.filed[lesson.digest] = change
            if self.sample is not None:
                self.sample.note(change)
                self.bits = self.sample.bits


def _has_same_tokens(one: LabelChange, other: LabelChange) -> bool:
    first, second = one.document, other.document
    return first is second or (
        np.array_equal(first.tokens, second.tokens)
        and np.array_equal(first.times(), second.times())
    )


def _is_filed_alike(one: LabelChange, other: LabelChange) -> bool:
    if one.after is None and other.after is None:
        return True
    return (one.after, one.told, one.day) == (other.after, other.told, other.day)


def _is_settled(ahead: LessonChain, after: LessonChain, digest: int) -> bool:
    """Return whether a message's only lesson came back as it was learned: the usual case.

    Of several lessons, the first ones may have left no trace in the model, and neither may one
    that moves a forgotten message: the days on which tokens were seen go with the tokens when the
    last message that has them is un-learned.
    """
    if not (ahead.n_lessons[digest] == after.n_lessons[digest] == 1):
        return False
    if not _is_filed_alike(ahead.at(digest), after.at(digest)):
        return False
    return all(
        one.before == other.before
        and _has_same_tokens(one, other)
        and (one.before is None or is_remembered(digest, after.bits))
        for one, other in zip_longest(
            ahead.moves[digest], after.moves[digest], fillvalue=after.at(digest)
        )
    )


def _back_to(
    state: LabelChange, moves: Sequence[LabelChange], is_known: bool
) -> list[LabelChange]:
    """Return the changes that take these moves of a message back, without seeing its tokens.

    state: where it is then.  is_known: whether its tokens are remembered.
    """
    taken_back = [
        move._replace(before=move.after, after=move.before, told=False, day=0)
        for move in reversed(moves)
    ]
    if taken_back and state.after is not None:
        if is_known:
            taken_back[-1] = taken_back[-1]._replace(told=state.told, day=state.day)
        else:
            names = state.digest, state.after, state.after, state.day
            taken_back.append(LabelChange(*names, _NO_TOKENS, empty_vocabulary(), state.told))
    return taken_back
