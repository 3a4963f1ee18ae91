"""A host that shares lessons, in both directions, and how a new one starts.

Its lessons go into its outbox, from there into the log, and from the log into the models of all
hosts.  A new host starts from a snapshot: the models of another one as the log has them.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from nbspam import __version__
from nbspam.counts.ledger import LabelChange, LogProgress, respelt
from nbspam.decision import HAM_AND_SPAM
from nbspam.disk import locked, make_folder, replacing, resolved, stamp_of
from nbspam.errors import InputError, ModelFileError, SharedLogError, UsageError
from nbspam.printing import amount_text
from nbspam.sharing.logs import (
    MAX_CLASS,
    ForeignRecordError,
    LogEnd,
    SharedLesson,
    SharedLog,
    decode_lesson,
    encode_lesson,
    fingerprint,
)
from nbspam.sharing.order import OrderedLessons, checksum, filed_before, in_order, lost_lessons
from nbspam.sharing.outbox import LogPosition, Outbox, PendingLesson
from nbspam.store.assembly import MessageFiling, memory_of
from nbspam.store.journal import encode_record, locked_model, synchronize
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import plain_pieces
from nbspam.store.open import save_classifier
from nbspam.tokens.sparse import empty_vocabulary

_AT_ONCE = 500  # records that are read or sent together
_KNOWN_SECONDS = 30 * 86_400  # the log is not kept for a host that was silent for longer
_TRIES = 20  # attempts at a snapshot: lessons may come in between
_MODEL, _USERS = "model", "users"  # in a snapshot
LOG_SECONDS = 10.0  # in which the log must have a lesson, with --share-sync
# The fields of a model file that are sums of lessons; others are fitted to them, or the host's.
_LEARNED = (
    *("classes", "class_count", "keys", "text", "text_offsets", "group", "feature_count"),
    *("document_frequency", "lacks", "others_had", "memory"),
)
Opener = Callable[[str], StoredModel]


class SharedOutlet:
    """Keeps the lessons of this host for the log; it needs no network.

    woken: called when there are lessons to send.
    """

    def __init__(self, path: str, woken: Callable[[], object] = lambda: None) -> None:
        """Prepare; path: of the site's model."""
        self._path, self.woken = path, woken
        self._opening = Lock()
        self._outbox: Outbox | None = None

    @property
    def outbox(self) -> Outbox:
        """The outbox, opened by the first lesson: a damaged one does not stop a server."""
        with self._opening:  # one for all threads: `wait_for_log` asks for what each has put here
            self._outbox = self._outbox or Outbox(self._path)
            return self._outbox

    def attach(self, model: StoredModel, user: str = "") -> StoredModel:
        """Let a model's lessons go into the outbox, and return it."""
        model.outlet = _UserOutlet(self, user)
        return model

    def wait_for_log(self, seconds: float) -> None:
        """Return when the log has this process's lessons; raises SharedLogError after a time."""
        last, end = self.outbox.last, time.monotonic() + seconds
        while not self.outbox.is_in_log(last):
            if time.monotonic() > end:
                raise SharedLogError(
                    f"--share-sync: learned here, but not in the log within {seconds:g} s; it"
                    " follows when the log is back"
                )
            time.sleep(0.002)


class _UserOutlet(NamedTuple):
    """The outlet of one model; user: whose, "" for the site's."""

    outlet: SharedOutlet
    user: str

    def lost(self, filing: MessageFiling) -> tuple[list[LabelChange], LogProgress]:
        return lost_lessons(filing, self.outlet.outbox, self.user)

    def keep(self, filing: MessageFiling, changes: Sequence[LabelChange]) -> LogProgress:
        outbox = self.outlet.outbox
        number = outbox.put(_pending(filing, changes, self.user))
        self.outlet.woken()
        origin = checksum(outbox.origin)
        return filing.progress._replace(origin=origin, own=number, bits=filing.bits)


@contextmanager
def shared_lessons(
    model: StoredModel, is_new: bool = False, of_users: Mapping[str, StoredModel] | None = None
) -> Iterator[StoredModel]:
    """Let lessons that a model learns in the block go into its outbox, if it shares lessons.

    It does if a command or server has shared it, or if is_new.  A server sends the lessons, or the
    next command with --share.  of_users: users' models on top of it, which share its outbox.
    """
    if not (is_new or os.path.exists(f"{model.path}.share")):
        yield model
        return
    outlet = SharedOutlet(model.path)
    try:
        for user, each in (of_users or {}).items():
            outlet.attach(each, user)
        yield outlet.attach(model)
    finally:
        outlet.outbox.close()


def _pending(
    filing: MessageFiling, changes: Sequence[LabelChange], user: str
) -> Iterator[PendingLesson]:
    settings, known = fingerprint(filing.base.settings), filing.base.table.vocabulary
    filed: dict[int, LabelChange] = {}
    for change, spelt in zip(changes, respelt(changes, known, empty_vocabulary()), strict=True):
        if change.after is not None and len(change.after) > MAX_CLASS:
            raise SharedLogError(
                f"{change.after[:40]}…: no host takes so long a class; give {MAX_CLASS} characters"
            )
        before = filed.get(change.digest) or filing.last_change(change.digest)
        where = filed_before(change, before, known)
        yield PendingLesson(0, user, settings, change.digest, encode_record(spelt), where)
        filed[change.digest] = change


class _CopiedOutboxError(SharedLogError):
    """Another outbox has sent lessons under the origin of this one."""


class Sharer:
    """Sends a host's lessons to a log, and learns all hosts' lessons in the log's order.

    opened: returns a user's model, or the site's for "".  Methods raise NbspamError.
    """

    def __init__(self, path: str, log: SharedLog, host: str, opened: Opener) -> None:
        """Open the outbox; path: of the site's model."""
        self.path, self.log = resolved(path), log
        self.outbox = Outbox(self.path)
        self.model_of = opened
        self._host = host
        self._digest: tuple[object, str] = (None, "")

    # ---- sending ----

    def send(self) -> int:
        """Append the next lessons of the outbox to the log; return how many there were."""
        with self.alone("sending"):
            first, last = self.outbox.awaited()
            is_there = not first or [place for place, _ in self.log.read(last - 1, 1)] == [last]
            # A standby took over that lacks it; a log that is not read on may have trimmed it.
            if not is_there and _is_read_on(self.outbox.place(), self.log.end()):
                self.outbox.send_again("sent to", "0")
            waiting, origin = self.outbox.unsent(_AT_ONCE), self.outbox.origin
            if waiting:
                host = self._name(origin)
                heads = [(origin, each.number, host, each.user, each.settings) for each in waiting]
                bodies = [each.lesson for each in waiting]
                position = self.log.append(list(map(encode_lesson, heads, bodies)))
                self.outbox.note_sent(origin, waiting[0].number, waiting[-1].number, position)
        return len(waiting)

    def _name(self, origin: str) -> str:
        return f"{self._host}-{origin[:6]}"  # one host may serve several models

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Return the lock that lets one process of a host be "sending", or "reading"."""
        return locked(f"{self.outbox.path}.{what}", like=self.path)

    # ---- reading ----

    def receive(self) -> int:
        """Learn the next lessons of the log; return the number of records that were read."""
        with self.alone("reading"):
            place = self.outbox.place()
            records = self.log.read(place.position, _AT_ONCE)
            end = self._checked(place)
            if place.position > end.position:
                # A standby took over that lacks the last records, and its clock may be behind.
                times = place.restarts + 1
                place = place._replace(position=0, n_read=end.n_trimmed, restarts=times)
                self.outbox.note_read(place, {})
                records = self.log.read(0, _AT_ONCE)
            if not records:
                if not place.log:
                    self.outbox.note_read(place._replace(log=end.identity), {})
                return 0
            place, seen, of_users, refusal = self._read(place._replace(log=end.identity), records)
            noted: list[PendingLesson] = []
            for user, lessons in of_users.items():
                noted += self._learn(user, lessons, f"{place.log} {place.restarts}")
            self.outbox.note_read(place, seen, noted)
            if isinstance(refusal, _CopiedOutboxError):
                self.log.report(self._name(self.outbox.origin), {})
                self.outbox.send_again("origin", uuid4().hex)
        if refusal is not None:
            raise refusal
        return len(records)

    def _checked(self, place: LogPosition) -> LogEnd:
        """Return the log's end; raises SharedLogError if it is not the one that was read."""
        end = self.log.end()
        if _is_read_on(place, end):
            return end
        again = "take a snapshot of another host: nbspam share join"
        if place.log in {"", end.identity}:
            n_missed = amount_text(end.n_trimmed - place.n_read, "records")
            why = f"this host has not read {n_missed} that the log has removed"
        else:
            why = f"not the log of which this host has read {amount_text(place.n_read, 'records')}"
            again += ", or move MODEL.share* away on the one that has read most"
        self.outbox.send_again("lost log", end.identity)
        raise SharedLogError(f"{self.log.name}: {why}; {again}")

    def _read(
        self, place: LogPosition, records: Sequence[tuple[int, bytes]]
    ) -> tuple[LogPosition, dict[str, int], dict[str, list[SharedLesson]], SharedLogError | None]:
        """Return the place behind records, what is seen, lessons by user, why no more is read."""
        before, origin = self.outbox.seen(), self.outbox.origin
        seen: dict[str, int] = {}
        lessons: dict[str, list[SharedLesson]] = {}
        refusal: SharedLogError | None = None
        settings = cache(lambda user: fingerprint(self.model_of(user).settings))
        self.model_of("")  # raises for a model that no server has, before any record is skipped
        for position, record in records:
            try:
                lesson = decode_lesson(record)
                if lesson.number > seen.get(lesson.origin, before.get(lesson.origin, 0)):
                    self._check(lesson, settings, origin)
                    # Days never go back, so that all hosts agree on when a token came last.
                    day = max(lesson.change.day, place.day)
                    place = place._replace(day=day)
                    change = lesson.change._replace(day=day)
                    lesson = lesson._replace(change=change, record=place.n_read + 1)
                    lessons.setdefault(lesson.user, []).append(lesson)
                    seen[lesson.origin] = lesson.number
            except ForeignRecordError:
                place = place._replace(skipped=place.skipped + 1)
            except SharedLogError as error:
                refusal = error
                break
            place = place._replace(position=position, n_read=place.n_read + 1)
        return place, seen, lessons, refusal

    def _check(self, lesson: SharedLesson, settings: Callable[[str], str], origin: str) -> None:
        """Raise if the models here cannot learn a lesson; settings: returns a user's."""
        if lesson.origin == origin and all(
            each.number != lesson.number
            for each in self.outbox.pending(lesson.user, [lesson.change.digest])
        ):
            raise _CopiedOutboxError(
                f"{self.outbox.path}: a copy, or an old one; its lessons are sent again"
            )
        try:
            model, expected = self.model_of(lesson.user), settings(lesson.user)
        except UsageError as error:  # a name that no user has here
            raise ForeignRecordError(str(error)) from error
        if lesson.settings != expected:
            raise SharedLogError(
                f"host {lesson.host[:100]!r} has a model with other settings; give all hosts the"
                " same model, and begin a new log"
            )
        names = {lesson.change.before, lesson.change.after} - {None}
        if set(model.base.classes) <= set(HAM_AND_SPAM) and not names <= set(HAM_AND_SPAM):
            raise ForeignRecordError("a class that the model does not have")

    def _learn(self, user: str, lessons: Sequence[SharedLesson], log: str) -> list[PendingLesson]:
        found: OrderedLessons | None = None

        def changes_of(filing: MessageFiling) -> tuple[list[LabelChange], LogProgress]:
            nonlocal found
            lost, progress = lost_lessons(filing, self.outbox, user)
            if progress != filing.progress:
                return lost, progress
            known = filing.base.table.vocabulary
            found = in_order(filing, lessons, self.outbox, user, log)
            return respelt(found.changes, known, known), found.progress

        model = self.model_of(user)
        while found is None:
            model.keep_decided(changes_of)
        synchronize(model.path)  # before they leave the outbox, which alone has them on disk
        return found.pending

    def exchange(self) -> None:
        """Send everything, and read the log to its end."""
        while self.send() or self.receive():
            pass

    # ---- reports ----

    def report(self, is_quiet: bool = True) -> dict[str, Any]:
        """Report on this host to the other hosts, and return the report.

        is_quiet: add the digest of the model, if everything was read and sent.
        """
        # Others trim the log by the position: a crash must not take it back.
        place, end = self.outbox.sync(), self.log.end()
        facts: dict[str, Any] = {
            "version": __version__,
            "position": str(place.position),
            "read": place.n_read,
            "lag": max(end.n_records - place.n_read, 0),
            "outbox": self.outbox.size(),
            "skipped": place.skipped,
            "time": end.seconds,
        }
        if is_quiet and not facts["lag"] and not facts["outbox"]:
            facts["model"] = self.digest()
        self.log.report(self._name(self.outbox.origin), facts)
        return facts

    def digest(self) -> str:
        """Return a digest of all that lessons decide in the site's model."""
        place = self.outbox.place().n_read, stamp_of(self.path)
        if self._digest[0] != place:
            state = self.model_of("").whole().to_state()
            state["memory"].pop("shared")  # it is this host's
            digest = sha256()
            for piece in plain_pieces({name: state.get(name) for name in _LEARNED}):
                digest.update(piece.ravel("K").data if isinstance(piece, np.ndarray) else piece)
            self._digest = place, digest.hexdigest()[:16]
        return self._digest[1]

    def trim(self) -> None:
        """Remove records that all hosts have read from the log."""
        since = self.log.end().seconds - _KNOWN_SECONDS
        positions = [
            int(said)
            for facts in self.log.hosts().values()
            if isinstance(told := facts.get("time"), int) and told > since
            if (said := str(facts.get("position"))).isdecimal() and len(said) < 100
        ]
        if position := min(positions, default=0):
            self.log.trim(position)

    def close(self) -> None:
        """Close log and outbox."""
        self.log.close()
        self.outbox.close()


def _is_read_on(place: LogPosition, end: LogEnd) -> bool:
    """Return whether a host can read on in a log: it is the same, and has what was not read."""
    return place.log in {"", end.identity} and place.n_read >= end.n_trimmed


# --- snapshots ----------------------------------------------------------------------------


def snapshot(sharer: Sharer, folder: str, users: list[str]) -> LogPosition:
    """Write a host's models, and the position in the log that they have; raises NbspamError.

    folder: a new one.  users: all that have a model.
    """
    if os.path.exists(folder):
        raise UsageError(f"{folder}: exists already; give a new folder")
    for _ in range(_TRIES):
        sharer.exchange()
        with sharer.alone("reading"), ExitStack() as unfinished:
            unfinished.callback(shutil.rmtree, folder, ignore_errors=True)
            place = _copy_models(sharer, folder, users)
            if place is not None:
                unfinished.pop_all()
                return place
    raise SharedLogError(f"{sharer.path}: new lessons keep arriving; try again when fewer do")


def join_log(folder: str, path: str, users: str | None) -> LogPosition:
    """Start a host from a snapshot; raises NbspamError.

    path: of the site's model, which must not be there.  users: the folder of users' models.
    """
    path = resolved(path)
    site, of_users = os.path.join(folder, _MODEL), os.path.join(folder, _USERS)
    for name in (f"{path}.share", path, users):
        if name is not None and os.path.exists(name):
            raise UsageError(f"{name}: exists already; move it away first, or give another name")
    if not os.path.exists(f"{site}.share"):
        raise InputError(f"{folder}: not a snapshot; make one with nbspam share snapshot")
    if users is None and os.path.exists(of_users):
        raise UsageError(f"{folder}: has models of users; say with --users where they go")
    try:
        copies = {site: path}
        if users is not None and os.path.exists(of_users):
            make_folder(users)
            for name in os.listdir(of_users):
                copies[os.path.join(of_users, name, _MODEL)] = os.path.join(users, name, _MODEL)
        for old, new in copies.items():
            if os.path.exists(old):
                with open(old, "rb") as source, replacing(new) as file:
                    shutil.copyfileobj(source, file)
    except OSError as error:
        raise ModelFileError(
            f"{path}: {error.strerror or error}; make room, and join again"
        ) from error
    with closing(Outbox(site)) as begun, closing(Outbox(path)) as outbox:
        outbox.note_read(begun.place(), begun.seen())
        if users is not None:
            outbox.keep_users(users)
        return outbox.place()


def _copy_models(sharer: Sharer, folder: str, users: list[str]) -> LogPosition | None:
    """Copy models as the log has them; None if lessons came in between."""
    place = sharer.outbox.place()
    for user in ["", *users]:
        model = sharer.model_of(user)
        with locked_model(model.path):
            if user in sharer.outbox.users():
                return None
            if not os.path.exists(model.path):
                continue
            memory = memory_of(whole := model.whole())
            # The new host has an outbox of its own.
            memory = memory._replace(progress=memory.progress._replace(origin=0, own=0))
            whole = replace(whole, memory=memory)
        inside = [_USERS, os.path.basename(os.path.dirname(model.path))] if user else []
        save_classifier(os.path.join(folder, *inside, _MODEL), whole)
    with closing(Outbox(os.path.join(folder, _MODEL))) as outbox:
        outbox.note_read(place, sharer.outbox.seen())
    return place
