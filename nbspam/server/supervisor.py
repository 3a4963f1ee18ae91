"""The supervisor: the process that binds addresses, starts workers, and starts them again.

It answers no mail itself.  Signals: SIGTERM and SIGINT end the workers, which first answer what
they have accepted; SIGHUP reads the options again and starts new workers before the old ones end.

Secret: the lives of the worker processes, and what systemd is told about them.
"""

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from nbspam.errors import NbspamError
from nbspam.parallel import fork
from nbspam.server.addresses import listened
from nbspam.server.worker import Service, work
from nbspam.store.model import StoredModel

_TICK = 1.0  # seconds
_SOON = 1.0  # seconds: a worker that ends earlier is started again only after them
_MORE = 5.0  # seconds that workers get beyond their own time for ending
_STUCK = 120.0  # seconds without a sign of life, after which a worker is ended
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM)


class Worker:
    """A worker process as the supervisor sees it."""

    def __init__(self, pid: int, row: int, born: float) -> None:
        self.pid = pid
        self.row = row
        self.born = born


class Supervisor:
    """Keeps as many workers at work as were asked for.

    reread: gives the service and the model that the options say now, or raises NbspamError;
    sockets and tally stay the same.
    """

    def __init__(
        self,
        service: Service,
        model: StoredModel,
        n_workers: int,
        reread: Callable[[], tuple[Service, StoredModel]],
    ) -> None:
        self.service = service
        self.model = model
        self.n_workers = n_workers
        self.reread = reread
        self.pid = os.getpid()
        self.workers: dict[int, Worker] = {}  # by process
        self.leaving: dict[int, Worker] = {}  # that are to end
        self.waiting: dict[int, float] = {}  # rows to be started again, and when
        self.rows = 2 * n_workers  # new workers begin before old ones end
        self.stops_by: float | None = None
        self.renews = False  # the options are to be read again
        self.is_told = False  # that all workers answer

    def run(self) -> None:
        """Work until a signal says to end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
        for _ in range(self.n_workers):
            self.start()
        while self.stops_by is None or self.workers or self.leaving:
            received = signal.sigwait(_SIGNALS)
            if received in (signal.SIGTERM, signal.SIGINT):
                self.stop()
            elif received == signal.SIGHUP:
                self.renews = True
            self.tick()
        notify("STOPPING=1")

    def start(self, row: int | None = None) -> None:
        """Start a worker."""
        taken = {each.row for each in (*self.workers.values(), *self.leaving.values())}
        taken |= self.waiting.keys()
        if row is None:
            row = next(r for r in range(1, self.rows + 1) if r not in taken)
        pid = fork()
        if pid == 0:
            self.be_worker(row)
        self.workers[pid] = Worker(pid, row, time.monotonic())

    def be_worker(self, row: int) -> NoReturn:
        """Work as a worker; never returns."""
        status = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the supervisor says when
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_SIGNALS} - {signal.SIGTERM})
            work(self.service, self.model, row, self.pid)
            status = 0
        except BaseException as error:
            self.service.log.failed("a worker ends", error)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def tick(self) -> None:
        """See which workers have ended, start them again, and tell systemd that we live."""
        now = time.monotonic()
        while pid := _ended():
            if worker := self.leaving.pop(pid, None) or self.workers.get(pid):
                self.service.tally.clear(worker.row)
            if worker := self.workers.pop(pid, None):
                self.service.tally.add("restarts")
                self.waiting[worker.row] = max(now, worker.born + _SOON)
        if self.stops_by is not None:
            self.waiting.clear()
            if now > self.stops_by:
                self.kill([*self.workers, *self.leaving])
            return
        if self.renews and not self.leaving:
            self.renew()
        for row in [row for row, when in self.waiting.items() if when <= now]:
            del self.waiting[row]
            self.start(row)
        self.tell()
        stuck = [w.pid for w in self.workers.values() if self.is_stuck(w, now)]
        self.kill(stuck)
        if self.is_told and not stuck:
            notify("WATCHDOG=1")

    def tell(self) -> None:
        """Tell once that all workers answer."""
        rows = [worker.row for worker in self.workers.values()]
        began = [row for row in rows if self.service.tally.row(row, "beat")]
        if self.is_told or len(began) < self.n_workers:
            return
        self.is_told = True
        for protocol, listener in self.service.sockets.items():
            address = str(listened(listener))
            self.service.log.listens(protocol, address, self.n_workers, self.model.name)
        notify("READY=1")

    def is_stuck(self, worker: Worker, now: float) -> bool:
        """Return whether a worker has given no sign of life for long."""
        beat = self.service.tally.row(worker.row, "beat")
        return now - max(beat, worker.born) > _STUCK

    def stop(self) -> None:
        """Tell all workers to end; who connects when all have closed the sockets is refused."""
        for listener in self.service.sockets.values():
            listener.close()
        self.stops_by = time.monotonic() + self.service.limits.drain_seconds + _MORE
        self.leave()

    def leave(self) -> None:
        """Tell the workers of now to answer what they have accepted, and to end."""
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        self.leaving |= self.workers
        self.workers = {}

    def renew(self) -> None:
        """Read the options again, and start workers by them in the place of the old ones."""
        self.renews = False
        notify("RELOADING=1")
        try:
            self.service, self.model = self.reread()
        except NbspamError as error:
            self.service.log.failed("the options as they were stay", error)
            notify("READY=1")
        else:
            self.is_told = False
            self.waiting.clear()
            self.leave()
            for _ in range(self.n_workers):
                self.start()

    def kill(self, pids: list[int]) -> None:
        """End processes at once."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def _ended() -> int:
    """Return a process that has ended, 0 if none has."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def notify(state: str) -> None:
    """Tell systemd about our state, if it has started us (sd_notify)."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    with (
        contextlib.suppress(OSError),  # systemd will see that nothing comes
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        sender.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)
