"""The processes of a server: workers answer clients, and the courier shares lessons.

A worker has one event loop.  Workers share the listening sockets: whichever is idle accepts.  One
that is to end answers what it has accepted, and what waits to be.

The courier sends lessons to a shared log, and reads others'.  It writes journals as every process
does, so that workers judge by them from the next message on.  Verdicts and lessons never wait for
it, or for the log.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any

from nbspam.decision import HAM_AND_SPAM
from nbspam.errors import ModelWarning, NbspamError, SharedLogError, UsageError
from nbspam.mail.attachments import limits_with_documents
from nbspam.server.choices import Service, ShareChoices, connected_user
from nbspam.server.connection import Connection, Desk
from nbspam.server.judge import Judge, Teacher, UserError, Users, known_as, model_in
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.page.account_mailbox import review_mailbox
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.page.reviewer import Reviewer
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sharing.logs import open_log
from nbspam.sharing.sharer import SharedOutlet, Sharer
from nbspam.store.model import StoredModel
from nbspam.workers import fork, return_freed_memory

# The supervisor imports the modules of the protocols that are spoken.
PROTOCOLS = {
    "spamd": ("nbspam.server.spamd", "SpamdConnection"),
    "http": ("nbspam.server.rspamd", "RspamdConnection"),
    "milter": ("nbspam.server.milter", "MilterConnection"),
    "web": ("nbspam.server.page.routes", "WebConnection"),
}
_SWEEP = 1.0  # seconds between two looks at what is overdue
FAILING = 3  # the status of a worker that failed again and again, and is to be started again
_ELSEWHERE = 0.1  # seconds in which other workers accept, before a full one looks again
_GRACE = 0.5  # seconds in which a connection's first request may still come


def open_served(path: str) -> StoredModel:
    """Return a model of mail that can be served; raises NbspamError.

    If there is none, the first lesson makes one.
    """
    new = chosen_settings(SettingsChoices(), is_text=False)
    model = StoredModel(path, new=new, is_copied=True)
    classifier = model.classifier()
    if classifier.classes != HAM_AND_SPAM or model.settings.reading != "mail":
        raise UsageError(
            f"{path}: a model of {classifier.noun}, of the classes"
            f" {', '.join(classifier.classes)}; serve a model of mail, of ham and spam"
        )
    if model.settings.attachments:
        limits_with_documents()
    return model


def run_worker(service: Service, model: StoredModel, row: int, supervisor: int) -> int:
    """Answer clients until SIGTERM, and then the accepted ones; return the status to exit with.

    model: opened before this process was forked.  row: its own in the tally.  supervisor: the
    parent process, whose death is a signal to end, too.  SIGTERM may be blocked.
    """
    service.tally.take_row(row)
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        return runner.run(_EventLoopWorker(service, supervisor).run(model))


def protocol(name: str) -> type[Connection]:
    """Return the class of a protocol's connections; raises UsageError without its library."""
    module, kind = PROTOCOLS[name]
    try:
        found: type[Connection] = getattr(import_module(module), kind)
    except ImportError as error:
        extra = "web" if name == "web" else "serve"
        raise UsageError(
            f"--{name}: needs {error.name}; install it with: pip install 'nbspam[{extra}]'"
        ) from error
    return found


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the maker of event loops: uvloop's, if it is installed, or else asyncio's."""
    try:
        return import_module("uvloop").new_event_loop  # type: ignore[no-any-return]
    except ImportError:
        return asyncio.new_event_loop


class _EventLoopWorker:
    def __init__(self, service: Service, supervisor: int) -> None:
        self.service = service
        self.supervisor = supervisor
        self.accepting: set[asyncio.Task[object]] = set()
        self.ended = asyncio.Event()

    def furnish(self, model: StoredModel) -> Desk:
        """Return the desk of this worker, with its judge, teacher and reviewer."""
        service, choices, limits = self.service, self.service.choices, self.service.limits

        told: dict[str, str] = {}  # the last trouble of each kind; it comes again with each batch

        def on_trouble(what: str, error: Exception) -> None:
            service.tally.add("trouble model")
            if told.get(what) != str(error):
                service.log.failed(what, error)
            told[what] = str(error)

        users = None
        if choices.users is not None:
            on_users = partial(on_trouble, "the site's model judges a user's mail")
            users = Users(choices.users, limits.users_bytes, on_users)
        on_model = partial(on_trouble, "the model as it was goes on judging")
        judge = Judge(model, choices.rule_of, on_model, service.tally, users)
        teacher, reviewer = None, None
        if service.may_teach:
            opened_box = partial(review_mailbox, book=choices.book)
            mailboxes = Mailboxes(choices.review, model.path, choices.users, opened_box)
            opened = partial(open_served, choices.model_path)
            teacher = Teacher(opened, users, mailboxes.newly_sent, *self.outlet())
            if service.has_mail:
                reviewer = Reviewer(mailboxes, judge, teacher, limits, service.log, choices.moves)
        return Desk(service, judge, teacher, reviewer, self.ended.set)

    def outlet(self) -> tuple[SharedOutlet | None, bool]:
        """Return the sharer of lessons, and whether the shared log must have them at once."""
        choices, waker = self.service.choices, self.service.waker
        if waker is None or choices.share is None:
            return None, False
        return SharedOutlet(choices.model_path, waker.wake), choices.share.is_sync

    async def run(self, model: StoredModel) -> int:
        """Answer until the end; return the status to exit with."""
        loop, tally = asyncio.get_running_loop(), self.service.tally
        desk = self.furnish(model)
        loop.set_exception_handler(self.failed)
        warnings.showwarning = self.warned  # type: ignore[assignment]
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it warns of clients that went
        loop.add_signal_handler(signal.SIGTERM, self.ended.set)
        # Blocked so far: a worker told to end before it listens must still answer waiting clients.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        for name, listener in self.service.listeners:
            listener.setblocking(False)
            self.listen(listener, name, desk)
        tally.put("beat", time.monotonic())
        self.wake_supervisor()
        while not self.ended.is_set():
            desk.sweep(loop.time())
            if desk.judge.seconds_busy < desk.limits.answer_seconds:
                tally.put("beat", time.monotonic())
            if not desk.judge.is_alive:  # nobody would be answered any more
                return FAILING
            if os.getppid() != self.supervisor:  # it was killed, and nobody else would end us
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), _SWEEP)
        self.ended.set()
        await self.drain(desk)
        if desk.reviewer is not None:
            desk.reviewer.end()
        desk.judge.end()
        if desk.teacher is not None:
            desk.teacher.end()
        return FAILING if desk.is_failing else 0

    def wake_supervisor(self) -> None:
        """Let the supervisor see at once that this worker answers."""
        if os.getppid() == self.supervisor:
            os.kill(self.supervisor, signal.SIGALRM)

    def listen(self, listener: socket.socket, name: str, desk: Desk) -> None:
        """Accept connections of a protocol from now on."""
        if not self.ended.is_set():
            asyncio.get_running_loop().add_reader(listener, self.accept, listener, name, desk)

    def rest(self, seconds: float, listener: socket.socket, name: str, desk: Desk) -> None:
        """Accept no connections for some time."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(seconds, self.listen, listener, name, desk)

    def accept(self, listener: socket.socket, name: str, desk: Desk) -> bool:
        """Accept one connection; the next goes to any idle worker.

        A full worker leaves it to others that have room.  If all are full, it is told so.
        """
        is_ours = name == "web" or self.ended.is_set()
        if not is_ours and desk.leaves_to_others(len(self.accepting)):
            self.rest(_ELSEWHERE, listener, name, desk)
            return False
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:  # out of descriptors: waiting clients are accepted when others have gone
            self.service.tally.add("trouble busy")
            self.rest(_SWEEP, listener, name, desk)
            return False
        loop = asyncio.get_running_loop()
        connection = protocol(name)(desk)
        if self.service.choices.peer_users:
            connection.peer = connected_user(client)
        task = loop.create_task(loop.connect_accepted_socket(lambda: connection, client))
        self.accepting.add(task)
        task.add_done_callback(self.accepted)
        return True

    def accepted(self, task: "asyncio.Task[object]") -> None:
        """Count a client that went before it was accepted."""
        self.accepting.discard(task)
        if not task.cancelled() and isinstance(task.exception(), OSError):
            self.service.tally.add("trouble gone")

    def warned(self, message: Warning | str, kind: type[Warning], *_: Any) -> None:
        """Log what is wrong with a model's journal."""
        self.service.tally.add("trouble model")
        self.service.log.told(str(message) if issubclass(kind, ModelWarning) else kind.__name__)

    def failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the loop in one line, unless a client has only gone."""
        error = context.get("exception")
        if error is None:
            self.service.log.told(f"internal error: {context.get('message')}")
        elif not isinstance(error, OSError):
            # The loop's own message shows arguments of functions, which may be mail.
            self.service.log.failed("internal error", error)

    async def drain(self, desk: Desk) -> None:
        """Answer accepted and waiting connections; then return.

        A failing worker leaves those that wait to its successor.
        """
        loop = asyncio.get_running_loop()
        for name, listener in self.service.listeners:
            loop.remove_reader(listener)
            while not desk.is_failing and self.accept(listener, name, desk):
                pass
            listener.close()
        if self.accepting:
            await asyncio.wait(self.accepting)
        start = loop.time()
        while desk.connections and loop.time() < start + self.service.limits.drain_seconds:
            # A client that has just connected has not asked yet, and may.
            if loop.time() > start + _GRACE:
                desk.end()
            desk.sweep(loop.time())
            await asyncio.sleep(0.05)


# ---- the courier ----


_PAUSE = 1.0  # seconds between two tries, and between two reports
_TRIM = 60.0  # seconds between two looks at what all hosts have read
_QUIET = 5.0  # seconds without a record, before the model's digest is told
_HELD = 64  # users' models that are open
_LAST = 5.0  # seconds for the last lessons when the server ends


class ShareOpener:
    """Opens the models that lessons of a log are for: the site's, and users'.

    users: the folder of users' models; None: there are none.
    """

    def __init__(self, model_path: str, users: str | None) -> None:
        self._model_path, self._users = model_path, users
        self._held: OrderedDict[str, StoredModel] = OrderedDict()

    @cached_property
    def _site(self) -> StoredModel:  # the thread that sends needs none
        return open_served(self._model_path)

    def __call__(self, user: str) -> StoredModel:
        """Return a user's model, "" for the site's; raises UsageError for no user's name."""
        if not user:
            return self._site
        if self._users is None:
            raise UsageError(f"{user}: no users' models here; serve with --users DIR")
        if user not in self._held:
            if known_as(user) != user:
                raise UsageError(f"{user}: not the name of a user; give another one")
            try:
                path = model_in(self._users, user)
            except UserError as error:
                raise UsageError(str(error)) from error
            settings = replace(self._site.settings, sent_mail=None)
            self._held[user] = StoredModel(path, new=settings)
            while len(self._held) > _HELD:
                self._held.popitem(last=False)
        self._held.move_to_end(user)
        return self._held[user]


def sharer_for(choices: ShareChoices, model_path: str, users: str | None) -> Sharer:
    """Return the sharer of a model; raises NbspamError."""
    log = open_log(choices.url, choices.password)
    sharer = Sharer(model_path, log, socket.gethostname(), ShareOpener(model_path, users))
    if users is not None:
        sharer.outbox.keep_users(os.path.abspath(users))
    return sharer


class Courier:
    """Keeps the courier's process running, for the supervisor."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pid: int | None = None
        self._again = 0.0  # when it may be started

    def tend(self, now: float) -> None:
        """Start the process unless it runs."""
        if self.pid is not None or now < self._again:
            return
        self._again = now + _PAUSE
        self.pid = fork()
        if self.pid:
            return
        status = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            status = _Courier(self.service).run()
        except BaseException as error:
            self.service.log.failed("the courier of lessons ends", error)
        finally:
            os._exit(status)

    def note_end(self, pid: int) -> bool:
        """Return whether a process that has ended was the courier."""
        if pid != self.pid:
            return False
        self.pid = None
        return True

    def stop(self) -> None:
        """Let it send what it can, and end it."""
        if self.pid is None:
            return
        os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + _LAST + _PAUSE
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            time.sleep(0.01)
        self.pid = None


class _Courier:
    """The process: its main thread reads the log, another one sends."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.log: Log = service.log
        self.tally: ServerTally = service.tally
        self.parent = os.getppid()
        self.ended = threading.Event()
        self._said = ""

    def run(self) -> int:
        """Send and read until SIGTERM, or the end of the supervisor."""
        signal.signal(signal.SIGTERM, lambda *_: self.ended.set())
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        self.tally.put("shares", 1)
        sending = threading.Thread(target=self._send, daemon=True)
        sending.start()
        self._receive()
        sending.join(_LAST)
        return 0

    def _sharer(self) -> Sharer:
        choices, share = self.service.choices, self.service.choices.share
        assert share is not None
        return sharer_for(share, choices.model_path, choices.users)

    @property
    def _goes_on(self) -> bool:
        return not self.ended.is_set() and os.getppid() == self.parent

    def _tell(self, error: NbspamError) -> None:
        """Log a failure once, until there is another one."""
        if str(error) != self._said:
            self._said = str(error)
            self.log.failed("lessons are not shared now", error)

    def _send(self) -> None:
        waker = self.service.waker
        assert waker is not None
        sharer, last_try = self._sharer(), False
        while True:
            try:
                n_sent = sharer.send()
                if not n_sent:
                    if last_try:
                        return
                    last_try = not self._goes_on
                    waker.wait(0 if last_try else _PAUSE)
            except NbspamError as error:
                self._tell(error)
                if not self._goes_on:
                    return
                self.ended.wait(_PAUSE)
            self.tally.put("share_outbox", sharer.outbox.size())

    def _receive(self) -> None:
        sharer, due, trims, last = self._sharer(), 0.0, time.monotonic() + _TRIM, 0.0
        digest: object = None
        while self._goes_on:
            try:
                if sharer.receive():
                    last = time.monotonic()
                    continue
                now = time.monotonic()
                if now >= due:
                    facts = sharer.report(now - last > _QUIET)
                    self._put(facts)
                    if facts.get("model", digest) != digest:
                        digest = facts["model"]
                        return_freed_memory()  # which fits and the export took
                    due = now + _PAUSE
                if now >= trims:
                    sharer.trim()
                    trims = now + _TRIM
                sharer.log.wait(sharer.outbox.place().position, _PAUSE)
            except NbspamError as error:
                self.tally.put("share_connected", 0)
                if isinstance(error, SharedLogError):
                    self.tally.put("share_outbox", sharer.outbox.size())
                self._tell(error)
                self.ended.wait(_PAUSE)

    def _put(self, facts: dict[str, object]) -> None:
        if self._said:
            self._said = ""
            self.log.told("lessons are shared again")
        self.tally.put("share_connected", 1)
        for name in ("lag", "outbox", "read", "skipped"):
            self.tally.put(f"share_{name}", float(str(facts[name])))
