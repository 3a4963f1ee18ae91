"""A worker: the event loop of one process, which answers clients.

Workers share the listening sockets: any idle worker accepts.  An ending worker answers accepted
connections, and those waiting to be accepted.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
import warnings
from collections import deque
from functools import cache, partial
from importlib import import_module
from typing import Any

from nbspam.errors import ModelWarning, library_error
from nbspam.server.choices import Service, connected_user
from nbspam.server.connection import Connection, Desk
from nbspam.server.judge import BatchJudge, Judge, UserCounts
from nbspam.server.lessons import Courier, TaughtModels, Teacher
from nbspam.server.page.account_mailbox import review_mailbox
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.page.reviewer import Reviewer
from nbspam.sharing.sharer import SharedOutlet
from nbspam.workers import allocate_in_one_heap

# The supervisor imports the modules of the protocols that are spoken.
PROTOCOLS = {
    "spamd": ("nbspam.server.spamd", "SpamdConnection"),
    "http": ("nbspam.server.rspamd", "RspamdConnection"),
    "milter": ("nbspam.server.milter", "MilterConnection"),
    "web": ("nbspam.server.page.routes", "WebConnection"),
}
_SWEEP = 1.0  # seconds between two searches for overdue requests
FAILING = 3  # the status of a worker that failed again and again, and is to be started again
_ELSEWHERE = 0.1  # seconds that a full worker leaves new connections to the others
_GRACE = 0.5  # seconds in which a connection's first request may still come
# Seconds, after which a trouble that lasts is logged again, and troubles that are remembered.
_HOUR, _MOST_TOLD = 3600.0, 1000


def run_worker(service: Service, row: int, supervisor: int) -> int:
    """Answer clients until SIGTERM, and then the accepted ones; return the status to exit with.

    row: its own in the tally.  supervisor: the parent process, whose death is a signal to end,
    too.  SIGTERM may be blocked.
    """
    allocate_in_one_heap()
    service.tally.take_row(row)
    loop_factory = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        loop_factory = import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(_EventLoopWorker(service, supervisor).run())


@cache  # each connection asks
def protocol(name: str) -> type[Connection]:
    """Return the class of a protocol's connections; raises UsageError without its library."""
    module, kind = PROTOCOLS[name]
    try:
        found: type[Connection] = getattr(import_module(module), kind)
    except ImportError as error:
        extra = "web" if name == "web" else "serve"
        raise library_error(f"--{name}", error.name, extra) from error
    return found


class _EventLoopWorker:
    desk: Desk  # once it runs

    def __init__(self, service: Service, supervisor: int) -> None:
        self.service = service
        self.supervisor = supervisor
        self.accepting: set[asyncio.Task[object]] = set()
        self.courier: Courier | None = None
        self.ended = asyncio.Event()

    def new_desk(self, models: TaughtModels) -> Desk:
        """Return the desk of this worker, with its judge, teacher and reviewer."""
        service, model = self.service, self.service.model
        choices, limits = service.choices, service.limits
        # The last troubles and their hours: they come again with each batch.
        told: deque[tuple[str, str, float]] = deque(maxlen=_MOST_TOLD)

        def on_trouble(what: str, error: Exception) -> None:
            service.tally.add("trouble model")
            said = what, str(error), time.monotonic() // _HOUR
            if said not in told:
                service.log.failed(what, error)
                told.append(said)

        users = None
        if choices.users is not None:
            on_users = partial(on_trouble, "the site's model judges a user's mail")
            users = UserCounts(choices.users, limits.users_bytes, on_users)

        def on_model(error: Exception) -> None:
            goes_on = "the model as it was goes on judging" if model.is_there else "all are unsure"
            on_trouble(goes_on, error)

        judge = Judge(BatchJudge(model, choices.rule_of, on_model, service.tally, users))
        outlet, share = None, choices.share
        if share is not None:
            self.courier = Courier(service, share, models)
            outlet = SharedOutlet(choices.model_path, self.courier.taught.set)
        elif os.path.exists(f"{model.path}.share"):  # the option was forgotten, and comes back
            outlet = SharedOutlet(choices.model_path)
        teacher, reviewer = None, None
        if service.may_teach:
            opened_box = partial(review_mailbox, book=choices.book)
            mailboxes = Mailboxes(choices.review, model.path, choices.users, opened_box)
            waits, has_users = share is not None and share.is_sync, users is not None
            teacher = Teacher(models, has_users, mailboxes.newly_sent, outlet, waits)
            if service.has_mail:
                reviewer = Reviewer(mailboxes, judge, teacher, limits, service.log, choices.moves)
        return Desk(service, judge, teacher, reviewer, self.ended.set)

    async def run(self) -> int:
        """Answer until the end; return the status to exit with."""
        loop, tally = asyncio.get_running_loop(), self.service.tally
        models = TaughtModels(self.service.choices.model_path, self.service.choices.users)
        desk = self.desk = self.new_desk(models)
        loop.set_exception_handler(self.failed)
        warnings.showwarning = self.warned  # type: ignore[assignment]
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it warns of clients that went
        loop.add_signal_handler(signal.SIGTERM, self.ended.set)
        # Blocked so far: a worker told to end before it listens must still answer waiting clients.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        for name, listener in self.service.listeners:
            listener.setblocking(False)
            self.listen(listener, name)
        tally.set_gauge("beat", time.monotonic())
        self.wake_supervisor()
        while not self.ended.is_set():
            desk.sweep(time.monotonic())
            is_due = models.is_fit_due(partial(loop.run_in_executor, None))
            tally.set_gauge("due", is_due)
            if is_due:
                self.wake_supervisor()
            if desk.judge.seconds_busy < desk.limits.answer_seconds:
                tally.set_gauge("beat", time.monotonic())
            if os.getppid() != self.supervisor:  # it was killed, and nothing else would end us
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), _SWEEP)
        self.ended.set()
        await self.drain()
        for each in (desk.reviewer, desk.judge, desk.teacher, self.courier):
            if each is not None:
                each.end()
        return FAILING if desk.is_failing else 0

    def wake_supervisor(self) -> None:
        """Have the supervisor read the tally now, not at its next turn."""
        if os.getppid() == self.supervisor:
            os.kill(self.supervisor, signal.SIGALRM)

    def listen(self, listener: socket.socket, name: str) -> None:
        """Accept connections of a protocol from now on."""
        if not self.ended.is_set():
            asyncio.get_running_loop().add_reader(listener, self.accept, listener, name)

    def pause(self, seconds: float, listener: socket.socket, name: str) -> None:
        """Accept no connections for some time."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(seconds, self.listen, listener, name)

    def accept(self, listener: socket.socket, name: str) -> bool:
        """Accept one connection; the next goes to any idle worker.

        A full worker leaves it to others that have room.  If all are full, it accepts, to say so.
        """
        is_ours = name == "web" or self.ended.is_set()
        if not is_ours and self.desk.leaves_to_others(len(self.accepting)):
            self.pause(_ELSEWHERE, listener, name)
            return False
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:  # out of descriptors: waiting clients are accepted when others have gone
            self.service.tally.add("trouble busy")
            self.pause(_SWEEP, listener, name)
            return False
        loop = asyncio.get_running_loop()
        connection = protocol(name)(self.desk)
        if self.service.choices.peer_users:
            connection.peer = connected_user(client)
        task = loop.create_task(loop.connect_accepted_socket(lambda: connection, client))
        self.accepting.add(task)
        task.add_done_callback(self.accepted)
        return True

    def accepted(self, task: "asyncio.Task[object]") -> None:
        """Count the client as gone if it disconnected before its connection was ready."""
        self.accepting.discard(task)
        if not task.cancelled() and isinstance(task.exception(), OSError):
            self.service.tally.add("trouble gone")

    def warned(self, message: Warning | str, kind: type[Warning], *_: Any) -> None:
        """Log a fault of a model's journal."""
        self.service.tally.add("trouble model")
        self.service.log.noted(str(message) if issubclass(kind, ModelWarning) else kind.__name__)

    def failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the loop in one line, unless a client has only gone."""
        error = context.get("exception")
        if error is None:
            self.service.log.noted(f"internal error: {context.get('message')}")
        elif not isinstance(error, OSError):
            # The loop's own message shows arguments of functions, which may be mail.
            self.service.log.failed("internal error", error)

    async def drain(self) -> None:
        """Answer accepted and waiting connections; then return.

        A failing worker leaves waiting connections to its successor.
        """
        loop, desk = asyncio.get_running_loop(), self.desk
        for name, listener in self.service.listeners:
            loop.remove_reader(listener)
            while not desk.is_failing and self.accept(listener, name):
                pass
            listener.close()
        if self.accepting:
            await asyncio.wait(self.accepting)
        start = time.monotonic()
        while desk.connections and time.monotonic() < start + self.service.limits.drain_seconds:
            # A client that has just connected has not asked yet, and may.
            if time.monotonic() > start + _GRACE:
                desk.end()
            desk.sweep(time.monotonic())
            await asyncio.sleep(0.05)
