"""Lessons: the teacher learns from clients, and the courier shares lessons with other servers.

Both write models like every process: decided under the model's lock, put on disk, and only then
acknowledged.  The judges of all workers read the lessons there.  Verdicts and lessons never wait
for the courier, or for the log.
"""

import os
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NamedTuple

from nbspam.arrays import today
from nbspam.counts.lessons import Outcome
from nbspam.disk import locked, stamp_of
from nbspam.errors import ModelFileError, NbspamError, SharedLogError
from nbspam.server import judge
from nbspam.server.choices import Service, ShareChoices
from nbspam.server.metrics import SHARE_GAUGES
from nbspam.sharing.logs import open_log
from nbspam.sharing.outbox import Outbox
from nbspam.sharing.sharer import LOG_SECONDS, SharedOutlet, Sharer
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.tokens.people import learned_sent_mail
from nbspam.workers import return_freed_memory

if TYPE_CHECKING:
    import asyncio

_TEACHERS = 8  # models that learn in parallel; they mostly wait for the disk
_HELD = 16  # users' models that are open
_GATHERED = 0.02  # seconds in which records come together before they are learned
_PAUSE = 1.0  # seconds between attempts, and between reports
_MOST_SAID = 10  # failures that are remembered
_TRIM = 60.0  # seconds between trims of the log
# Seconds without a lesson, after which reports have the digest of the model, and workers that do
# not read the log end their connection to it.
_QUIET = 5.0
_LAST = 5.0  # seconds to send the last lessons when a worker ends


class TaughtModels:
    """The models that lessons change, the site's and users', opened at their first lesson.

    All threads share them.  users: the folder of users' models; None: there are none.
    is_server: see `open_served`.
    """

    def __init__(self, model_path: str, users: str | None, is_server: bool = True) -> None:
        self._model_path, self._users, self._is_server = model_path, users, is_server
        self._lock = Lock()
        self._held: OrderedDict[str, StoredModel] = OrderedDict()

    @cached_property
    def _site(self) -> StoredModel:
        return judge.open_served(self._model_path, self._is_server)

    def is_fit_due(self, in_thread: Callable[[Callable[[], None]], object]) -> bool:
        """Return whether the site's model must be fitted again; called every second.

        in_thread: runs a function in a thread; here it reads a model that was fitted elsewhere.
        """
        site: StoredModel | None = vars(self).get("_site")
        if site is None:
            return False
        is_current = stamp_of(site.path) == site.stamp
        if not is_current:
            with suppress(RuntimeError):  # no thread can begin: a lesson reads it, or a later call
                in_thread(partial(_catch_up, site))
        return is_current and site.is_due

    def __call__(self, user: str) -> StoredModel:
        """Return a user's model, "" for the site's; raises UserError for a wrong name.

        Raises SharedLogError without a folder of users, whose lessons only a log has then.  If
        there is no model, the first lesson makes one.
        """
        with self._lock:
            if not user:
                return self._site
            if self._users is None:
                raise SharedLogError(
                    f"the log has lessons of user {user[:100]!r}; serve with --users DIR, like the"
                    " other hosts"
                )
            if user not in self._held:
                if judge.known_as(user) != user:
                    raise judge.UserError(f"{user}: not the name of a user; give another one")
                settings = replace(self._site.settings, sent_mail=None)
                self._held[user] = StoredModel(judge.model_in(self._users, user), new=settings)
                while len(self._held) > _HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end(user)
            return self._held[user]


def _catch_up(site: StoredModel) -> None:
    with suppress(NbspamError):  # the next lesson tells why
        site.catch_up()
    return_freed_memory()


# ---- the teacher ----


class ToldLesson(NamedTuple):
    """A message, and the class that a client gives it; see `Teacher.teach`."""

    item: Item  # without a class: it is un-learned
    instead_of: str | None  # the class that it is to leave
    is_unconditional: bool  # to be learned whatever the message's class is now


WaitingLesson = judge.WaitingRequest[ToldLesson]


class Teacher:
    """Learns clients' messages in threads; lessons are on disk before they are acknowledged.

    Lessons that arrive during a write to disk are learned together, with one write for all.
    Lessons of one model are learned in order, lessons of several models in parallel.

    models: returns a user's model, or the site's for "".  has_users: each user teaches a model
    of their own; else all teach the site's.  newly_sent: returns the mail that a user has sent
    since a time, seconds since 1970; it is learned before the user's next lesson.  outlet: keeps
    lessons for other servers; None: none are shared.  waits_for_log: a lesson is acknowledged only
    once the shared log has it.
    """

    def __init__(
        self,
        models: Callable[[str], StoredModel],
        has_users: bool = False,
        newly_sent: Callable[[str, float], Iterable[Item]] = lambda user, since: (),
        outlet: SharedOutlet | None = None,
        waits_for_log: bool = False,
    ) -> None:
        self._models, self._has_users = models, has_users
        self._outlet = outlet
        self._waits_for_log = waits_for_log
        self._newly_sent = newly_sent
        self._sent_until: dict[str, float] = {}  # of which mail is learned, by user
        self._threads = ThreadPoolExecutor(_TEACHERS, thread_name_prefix="teacher")
        self._threads.submit(int)  # begins one now, which learns even if no other can begin
        self._lock = Lock()  # of the queues
        self._queues: dict[str, list[WaitingLesson]] = {}  # of the models that have a thread
        self.n_waiting = 0

    def teach(
        self,
        data: bytes,
        label: str | None,
        user: str = "",
        instead_of: str | None = None,
        told: bool = True,
    ) -> "asyncio.Future[Outcome]":
        """Return the future outcome of learning a message; None un-learns it.

        user: from `known_as`.  instead_of: the class that the message is to leave; a
        message of another class stays as it is; None: any class.  told: whether a person gave the
        class; else the message is learned only if it is new, and a user's model must be there
        already.  The future raises UserError for a name that cannot be kept, other NbspamErrors,
        and OSError.
        """
        item = Item("-", label, data, told=told and label is not None)
        lesson = ToldLesson(item, instead_of, told and instead_of is None)
        waiting = WaitingLesson(lesson)
        model = user if self._has_users else ""
        self.n_waiting += 1  # until it is settled: a client that goes leaves its place
        with self._lock:
            has_thread = model in self._queues
            self._queues.setdefault(model, []).append(waiting)
        if not has_thread:
            with suppress(RuntimeError):  # no other thread can begin: one that runs takes it
                self._threads.submit(self._work, model)
        return waiting.done

    def end(self) -> None:
        """End the threads once they have learned all waiting messages."""
        self._threads.shutdown()

    # ---- in a thread ----

    def _work(self, user: str) -> None:
        while cases := self._next(user):
            # A case loses its lesson, at any time, when its client goes.
            lessons = [(case, lesson) for case in cases if (lesson := case.request) is not None]
            results = self._results([lesson for _, lesson in lessons], user) if lessons else []
            here = [case for case, _ in lessons]
            loop = cases[0].done.get_loop()
            loop.call_soon_threadsafe(self._settle, len(cases), here, results)

    def _next(self, user: str) -> list[WaitingLesson]:
        """Return the next messages for a model; without any, its thread ends."""
        with self._lock:
            queue = self._queues.pop(user)
            lessons = (case.request for case in queue[: judge.BATCH])
            sizes = accumulate(len(each.item.read()) if each else 0 for each in lessons)
            n = sum(size <= judge.BATCH_BYTES for size in sizes) or 1
            if queue:
                self._queues[user] = queue[n:]
        return queue[:n]

    def _settle(
        self, n: int, cases: Sequence[WaitingLesson], results: "list[Outcome | Exception]"
    ) -> None:
        self.n_waiting -= n
        judge.settle_all(cases, results)

    def _results(self, lessons: Sequence[ToldLesson], user: str) -> "list[Outcome | Exception]":
        """Return the outcome of each lesson, or the error that prevented it."""
        try:
            return list(self._learned(lessons, user))
        except (ModelFileError, SharedLogError, judge.UserError, OSError) as error:
            return [error] * len(lessons)  # it concerns all of them
        except Exception as error:  # one message must not keep the others from being learned
            if len(lessons) == 1:
                return [error]
            return [self._results([lesson], user)[0] for lesson in lessons]

    def _learned(self, lessons: Sequence[ToldLesson], user: str) -> list[Outcome]:
        """Learn lessons of one model, and put them on disk; raises NbspamError and OSError."""
        model = self._models(user)
        early: list[Outcome] = []
        if self._has_users:
            while not (os.path.exists(model.path) or lessons[0].item.told):
                early.append(Outcome(unknown=1))  # a user without lessons gets no files
                if not (lessons := lessons[1:]):
                    return early
            now, since = time.time(), self._sent_until.get(user, 0.0)
            sent = learned_sent_mail(self._newly_sent(user, since))
            if sent is not None:
                model.learn_sent_mail(sent)
            self._sent_until[user] = now
        if self._outlet is not None:
            self._outlet.attach(model, user)
        before = model.stamp
        found = model.learn_each(
            [lesson.item for lesson in lessons],
            day=today(),
            is_wanted=lambda number, filed: (
                lessons[number].is_unconditional or filed.label == lessons[number].instead_of
            ),
        )
        if model.stamp != before:
            return_freed_memory()
        if self._outlet is not None and self._waits_for_log:
            self._outlet.wait_for_log(LOG_SECONDS)
        return early + found


# ---- the courier ----


def sharer_for(share: ShareChoices, model_path: str, models: TaughtModels | None = None) -> Sharer:
    """Return the sharer of a model; raises NbspamError.

    models: of a server; a command has the users' models that the last server has named.
    """
    log = open_log(share.url, share.password)
    if models is None:
        with closing(Outbox(model_path)) as outbox:
            models = TaughtModels(model_path, outbox.users_folder(), is_server=False)
    return Sharer(model_path, log, socket.gethostname(), models)


class Courier:
    """Shares lessons with other servers, in threads of a worker.

    Each worker sends the lessons that it was taught.  One of them reads the log for all, sends
    other processes' lessons from the outbox, and reports the state; if it ends, another takes
    over.
    """

    def __init__(self, service: Service, share: ShareChoices, models: TaughtModels) -> None:
        self._service = service
        self._sharer = partial(sharer_for, share, service.choices.model_path, models)
        self._tally = service.tally
        self._ended = Event()
        self.taught = Event()  # there are lessons to send
        self._reads = False  # this worker is the one that reads the log
        self._said: tuple[str, ...] = ()  # the last failures that were logged
        self._sends = True  # the last lessons reached the log
        self._known: tuple[object, object] = None, None  # digest and stamp of the site's model
        self._sender = Thread(target=self._send, name="sender", daemon=True)
        self._sender.start()
        Thread(target=self._read, name="courier", daemon=True).start()

    def end(self) -> None:
        """Send this worker's lessons, if that does not take long, and end."""
        self._ended.set()
        self.taught.set()
        self._sender.join(_LAST)

    # ---- in the threads ----

    def _log_once(self, error: Exception) -> None:
        """Log a failure once until lessons are shared."""
        if str(error) not in self._said:
            self._said = (*self._said, str(error))[-_MOST_SAID:]
            self._service.log.failed("lessons wait, and are not shared now", error)

    def _send(self) -> None:
        sharer: Sharer | None = None
        while True:
            is_last, seconds = self._ended.is_set(), _PAUSE if self._reads else None
            try:
                sharer = sharer or self._sharer()
                while sharer.send():
                    pass
                self._sends = True
                if self._reads:
                    self._tally.set_gauge("share_outbox", sharer.outbox.size())
                elif not (is_last or self.taught.wait(_QUIET)):
                    sharer.log.close()  # PostgreSQL has a process for each, and by default 100
            except Exception as error:
                self._sends = False
                if self._reads:
                    self._log_once(error)
                self._ended.wait(_PAUSE)
                seconds = _PAUSE
            if is_last:
                if sharer is not None:
                    sharer.close()
                return
            self.taught.wait(seconds)
            self.taught.clear()

    def _read(self) -> None:
        path = self._service.choices.model_path
        while not self._ended.is_set():
            try:
                with locked(f"{path}.share.courier", like=path):
                    self._reads = True
                    self._tally.set_gauge("shares", 1)
                    self.taught.set()
                    with closing(self._sharer()) as sharer:
                        self._receive(sharer)
            except Exception as error:
                self._log_once(error)
            self._reads = False
            for name in SHARE_GAUGES:
                self._tally.set_gauge(name, 0)
            self._ended.wait(_PAUSE)

    def _receive(self, sharer: Sharer) -> None:
        """Learn the lessons of the log until the server ends."""
        if (users := self._service.choices.users) is not None:
            sharer.outbox.keep_users(users)
        due, trims, last = 0.0, time.monotonic() + _TRIM, 0.0
        while not self._ended.is_set():
            try:
                if sharer.receive():
                    last = time.monotonic()
                    self._ended.wait(_GATHERED)
                    continue
                now = time.monotonic()
                if now >= due:
                    self._report(sharer, now - last > _QUIET)
                    due = now + _PAUSE
                if now >= trims:
                    sharer.trim()
                    trims = now + _TRIM
                sharer.log.wait(sharer.outbox.place().position, _PAUSE)
            except NbspamError as error:
                self._tally.set_gauge("share_connected", 0)
                if isinstance(error, SharedLogError):
                    self._tally.set_gauge("share_outbox", sharer.outbox.size())
                self._log_once(error)
                self._ended.wait(_PAUSE)

    def _report(self, sharer: Sharer, is_quiet: bool) -> None:
        """Report to the other hosts, and in the metrics; is_quiet: see `Sharer.report`."""
        site = sharer.model_of("")  # an unreadable one is reported to nobody
        facts = sharer.report(is_quiet)
        if self._said and self._sends:
            self._said = ()
            self._service.log.noted("lessons are shared again")
        self._tally.set_gauge("share_connected", 1)
        for name in ("lag", "outbox", "read", "skipped"):
            self._tally.set_gauge(f"share_{name}", float(facts[name]))
        before, self._known = self._known, (facts.get("model"), site.stamp)
        if self._known != before:
            return_freed_memory()  # which fits and the digest took
