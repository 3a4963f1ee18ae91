"""The courier: a process of a server that sends its lessons to a shared log, and reads others'.

It writes journals as every process does, so that workers judge by them from the next message on.
Verdicts and lessons never wait for it, or for the log.
"""

import os
import signal
import socket
import threading
import time
from collections import OrderedDict
from dataclasses import replace

from nbspam.errors import NbspamError, SharedLogError, UsageError
from nbspam.server.choices import Service, ShareChoices
from nbspam.server.judge import UserError, known_as, model_in
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.worker import open_served
from nbspam.sharing.logs import open_log
from nbspam.sharing.sharer import Sharer
from nbspam.store.model import StoredModel
from nbspam.workers import fork

_PAUSE = 1.0  # seconds between two tries, and between two reports
_TRIM = 60.0  # seconds between two looks at what all hosts have read
_QUIET = 5.0  # seconds without a record, before the model's digest is told
_HELD = 64  # users' models that are open
_GRACE = 5.0  # seconds for the last lessons when the server ends


class ShareOpener:
    """Opens the models that lessons of a log are for: the site's, and users'.

    users: the folder of users' models; None: there are none.
    """

    def __init__(self, model_path: str, users: str | None) -> None:
        self._site = open_served(model_path)
        self._users = users
        self._held: OrderedDict[str, StoredModel] = OrderedDict()

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
        end = time.monotonic() + _GRACE + _PAUSE
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
        sending.join(_GRACE)
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
        while self._goes_on:
            try:
                if sharer.receive():
                    last = time.monotonic()
                    continue
                now = time.monotonic()
                if now >= due:
                    facts = sharer.report(now - last > _QUIET)
                    self._put(facts)
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
