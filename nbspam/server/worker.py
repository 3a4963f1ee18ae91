"""A worker: one process with one event loop, which answers what comes in until it is to end.

Secret: how connections are shared between workers, and how a worker ends without losing any.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.decision import Rule
from nbspam.server.connection import Connection
from nbspam.server.desk import Desk, Policy
from nbspam.server.limits import Limits
from nbspam.server.logs import Log
from nbspam.server.review.boxes import Box, box_of, own_box_of
from nbspam.server.tally import Tally
from nbspam.server.threads.judging import Judge
from nbspam.server.threads.reviewing import Reviewer
from nbspam.server.threads.teaching import Teacher
from nbspam.server.users import Users
from nbspam.store.model import StoredModel

# Imported by the supervisor, and only those that are spoken.
PROTOCOLS = {
    "spamd": ("nbspam.server.protocols.spamd", "SpamdConnection"),
    "http": ("nbspam.server.protocols.rspamd", "RspamdConnection"),
    "milter": ("nbspam.server.protocols.milter", "MilterConnection"),
    "web": ("nbspam.server.protocols.web", "WebConnection"),
}
_SWEEP = 1.0  # seconds between two looks at what is overdue
_GRACE = 0.5  # seconds in which a connection's first request may still come


class Service(NamedTuple):
    """What workers are started with."""

    opened: Callable[[], StoredModel]
    rule_of: Callable[[Classifier], Rule]
    sockets: Mapping[str, socket.socket]  # listening, by protocol
    policy: Policy
    limits: Limits
    log: Log
    tally: Tally
    users: str | None = None  # the folder of their models; None: all share one


def work(service: Service, model: StoredModel, row: int, supervisor: int) -> None:
    """Answer clients until SIGTERM, and then those that have been accepted.

    model: opened before this process was forked.  row: its own in the tally.  supervisor: the
    process that forked it, whose death is a signal to end, too.  SIGTERM may be blocked.
    """
    service.tally.take_row(row)
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(_Worker(service, supervisor).run(model))


def protocol(name: str) -> type[Connection]:
    """Return the class of a protocol's connections; raises ImportError without its library."""
    module, kind = PROTOCOLS[name]
    found: type[Connection] = getattr(import_module(module), kind)
    return found


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the maker of event loops: uvloop's, if it is installed, or else asyncio's."""
    try:
        return import_module("uvloop").new_event_loop  # type: ignore[no-any-return]
    except ImportError:
        return asyncio.new_event_loop


class _Worker:
    def __init__(self, service: Service, supervisor: int) -> None:
        self.service = service
        self.supervisor = supervisor
        self.accepting: set[asyncio.Task[object]] = set()
        self.ended = asyncio.Event()

    async def run(self, model: StoredModel) -> None:
        loop, service = asyncio.get_running_loop(), self.service
        tally, limits = service.tally, service.limits

        def on_trouble(error: Exception) -> None:
            tally.add("trouble model")
            service.log.failed("the model as it was goes on judging", error)

        def on_users_trouble(error: Exception) -> None:
            tally.add("trouble model")
            service.log.failed("the site's model judges a user's mail", error)

        users = None
        if service.users is not None:
            users = Users(service.users, limits.users_bytes, on_users_trouble)
        judge = Judge(model, service.rule_of, on_trouble, tally, users)
        teacher = Teacher(service.opened, users) if service.policy.may_teach else None
        review, people = service.policy.review, service.policy.people
        boxes: Callable[[str], Box] | None = None
        if people is not None:
            boxes = partial(own_box_of, people)
        elif review is not None:
            boxes = partial(box_of, review, model.path)
        reviewer = None
        if boxes is not None and teacher is not None:
            reviewer = Reviewer(boxes, judge, teacher, limits, service.log, service.policy.moves)
        desk = Desk(judge, teacher, limits, tally, service.log, service.policy, reviewer)
        loop.set_exception_handler(self.failed)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it warns of clients that went
        loop.add_signal_handler(signal.SIGTERM, self.ended.set)
        # Blocked so far: who is to end before it listens must still answer those who wait.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        for name, listener in service.sockets.items():
            listener.setblocking(False)
            self.listen(listener, partial(protocol(name), desk))
        tally.put("beat", time.monotonic())
        self.wake_supervisor()
        while not self.ended.is_set():
            desk.sweep(loop.time())
            if judge.seconds_busy < limits.answer_seconds:
                tally.put("beat", time.monotonic())
            if os.getppid() != self.supervisor:  # it was killed, and nobody else would end us
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), _SWEEP)
        self.ended.set()
        await self.drain(desk)
        if reviewer is not None:
            reviewer.end()
        judge.end()
        if teacher is not None:
            teacher.end()

    def wake_supervisor(self) -> None:
        """Let the supervisor see at once that we answer, and not only at its next look."""
        if os.getppid() == self.supervisor:
            os.kill(self.supervisor, signal.SIGALRM)

    def listen(self, listener: socket.socket, make: Callable[[], Connection]) -> None:
        """Accept connections from now on."""
        if not self.ended.is_set():
            asyncio.get_running_loop().add_reader(listener, self.accept, listener, make)

    def accept(self, listener: socket.socket, make: Callable[[], Connection]) -> bool:
        """Accept one connection; the next one goes to whichever worker is idle."""
        loop = asyncio.get_running_loop()
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:  # out of descriptors: those that wait are taken when others have gone
            self.service.tally.add("trouble busy")
            loop.remove_reader(listener)
            loop.call_later(_SWEEP, self.listen, listener, make)
            return False
        task = loop.create_task(loop.connect_accepted_socket(make, client))
        self.accepting.add(task)
        task.add_done_callback(self.accepted)
        return True

    def accepted(self, task: "asyncio.Task[object]") -> None:
        """Count a client that went before its connection was there."""
        self.accepting.discard(task)
        if not task.cancelled() and isinstance(task.exception(), OSError):
            self.service.tally.add("trouble gone")

    def failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Tell in one line what went wrong in the loop, unless a client has only gone."""
        error = context.get("exception")
        if error is None:
            self.service.log.told(f"internal error: {context.get('message')}")
        elif not isinstance(error, OSError):
            # The loop's own message shows what a function was called with: mail, it may be.
            self.service.log.failed("internal error", error)

    async def drain(self, desk: Desk) -> None:
        """Answer what has been accepted, and what waits to be; then return."""
        loop = asyncio.get_running_loop()
        for name, listener in self.service.sockets.items():
            loop.remove_reader(listener)
            make = partial(protocol(name), desk)
            while self.accept(listener, make):
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
