"""The supervisor: the process that binds addresses, starts workers, and restarts them.

It answers no mail itself.  When workers have learned enough, it forks a process that fits the
model.  Signals: SIGTERM and SIGINT end the workers, which first answer all accepted connections;
SIGHUP reads the choices again and starts new workers before the old ones end.  It tells systemd
when it is ready, reloads and stops.
"""

import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from nbspam.disk import allow_files, resolved
from nbspam.errors import InputError, UsageError
from nbspam.server.choices import (
    SERVER_LIMITS,
    ServerChoices,
    Service,
    Sockets,
    access_beside,
    listened,
)
from nbspam.server.judge import check_folder, check_site, open_served, served_copy
from nbspam.server.metrics import Log, ServerTally
from nbspam.server.worker import FAILING, run_worker
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import remove_copy
from nbspam.workers import available_cores, fork

_TICK = 1.0  # seconds
_SOON = 1.0  # seconds: the least time between two starts of a worker
_MORE = 5.0  # seconds that workers get beyond their own time for ending
_FIT_SHARE = 0.2  # of a core that fits take, at most
_AGAIN = 10.0  # seconds, after which what failed is tried again: a fit, or starting a process
_NICE = 10  # of that process: lessons and verdicts come first
_STUCK = 120.0  # seconds without a sign of life, after which a worker is ended
_NOT_FITTED = "the model is not fitted now, and judges on as it was"
_FAULTS = {signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSYS}
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM)


@dataclass
class SupervisedWorker:
    """A worker process as the supervisor sees it."""

    pid: int
    row: int  # of the tally
    born: float  # monotonic, seconds
    is_hung: bool = False  # it gave no sign of life, and was killed


class Supervisor:
    """Keeps the requested number of workers running.

    reread: returns the service by the current choices, with the same tally; or raises NbspamError.
    """

    def __init__(self, service: Service, reread: Callable[[], Service]) -> None:
        self.service = service
        self.reread = reread
        self.pid = os.getpid()
        self.workers: dict[int, SupervisedWorker] = {}  # by process
        self.leaving: dict[int, SupervisedWorker] = {}  # that are to end
        self.waiting: dict[int, float] = {}  # rows to be started again, and when
        self.fitter: int | None = None  # the process that fits the model
        self.fits_at = 0.0  # the next one may begin
        self.stops_by: float | None = None
        self.renews = False  # the choices are to be read again
        self.is_told = False  # that all workers answer

    def run(self) -> None:
        """Work until a signal ends it."""
        # Ignored, as some daemons hand it on, it would tell of no worker's end.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
        for _ in range(self.service.n_workers):
            self.start()
        while self.stops_by is None or self.workers or self.leaving or self.fitter:
            received = signal.sigwait(_SIGNALS)
            if received in (signal.SIGTERM, signal.SIGINT):
                self.stop()
            elif received == signal.SIGHUP:
                self.renews = True
            self.tick()

    def start(self) -> None:
        """Start a worker, later if the system allows no process now."""
        taken = {each.row for each in (*self.workers.values(), *self.leaving.values())}
        row = min({*range(1, self.service.tally.n_workers + 1)} - taken - self.waiting.keys())
        work = partial(run_worker, self.service, row, self.pid)
        pid, now = _child(self.service.log, "a worker fails", work), time.monotonic()
        if pid is None:
            self.waiting[row] = now + _AGAIN
        else:
            self.workers[pid] = SupervisedWorker(pid, row, now)

    def fit(self, now: float) -> None:
        """Have a process fit the model, if that is due, beside which workers learn on.

        The memory that a fit takes ends with it.
        """
        if self.fitter or now < self.fits_at or not self.service.tally.total("due"):
            return
        self.fitter = _child(self.service.log, _NOT_FITTED, partial(fit_model, self.service))
        if self.fitter is None:
            self.service.tally.add("trouble model")
            self.fits_at = now + _AGAIN

    def note_fit(self, status: int, used: float, now: float) -> None:
        """Note how the process that fits the model has ended, and when the next one may begin."""
        self.fitter = None
        self.fits_at = now + used * (1 / _FIT_SHARE - 1)
        if status == 0 or self.stops_by is not None:
            return
        self.fits_at = max(self.fits_at, now + _AGAIN)
        self.service.tally.add("trouble model")
        if os.WIFSIGNALED(status):  # else it has told why
            self.service.log.noted(f"{_NOT_FITTED}: {_cause(status, False)[1]}")

    def tick(self) -> None:
        """Restart workers that have ended, and tell systemd that the server is alive."""
        now = time.monotonic()
        while (ended := _ended())[0]:
            self.bury(*ended, now)
        if self.stops_by is not None:
            self.waiting.clear()
            if now > self.stops_by:
                for pid in (*self.workers, *self.leaving):
                    os.kill(pid, signal.SIGKILL)
            return
        self.fit(now)
        if self.renews and not self.leaving:
            self.renew()
        for row in [row for row, when in self.waiting.items() if when <= now]:
            del self.waiting[row]
            self.start()
        self.announce()
        stuck = []
        for worker in (*self.workers.values(), *self.leaving.values()):
            beat = self.service.tally.row(worker.row, "beat")
            if now - max(beat, worker.born) > _STUCK:
                worker.is_hung = True
                stuck.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)
        if self.is_told and not stuck:
            notify("WATCHDOG=1")

    def bury(self, pid: int, status: int, used: float, now: float) -> None:
        """Note the end of a process, and schedule its restart unless it was to end.

        used: its processor seconds.
        """
        if pid == self.fitter:
            self.note_fit(status, used, now)
            return
        is_leaving = pid in self.leaving
        worker = self.leaving.pop(pid, None) or self.workers.pop(pid, None)
        if worker is None:
            return
        service = self.service
        if not is_leaving or status != 0:
            cause, how = _cause(status, worker.is_hung)
            in_hand = int(service.tally.row(worker.row, "asked"))
            service.log.ended(pid, cause, how, now - worker.born, in_hand)
        service.tally.clear(worker.row)
        if not is_leaving:
            service.tally.add(f"ended {cause}")
            self.waiting[worker.row] = max(now, worker.born + _SOON)

    def announce(self) -> None:
        """Announce once that all workers answer, but for those that the system has no room for."""
        service, n = self.service, len(self.workers)
        begun = all(service.tally.row(each.row, "beat") for each in self.workers.values())
        if self.is_told or not (n and begun):
            return
        self.is_told = True
        for name, listener in service.listeners:
            address = str(listened(listener))
            service.log.listens(name, address, n, service.model.name)
        notify("READY=1")

    def stop(self) -> None:
        """Ask all workers to stop.

        Once they have closed their sockets, new connections are refused.
        """
        notify("STOPPING=1")
        for _, listener in self.service.listeners:
            listener.close()
        ends_by = time.monotonic() + self.service.limits.drain_seconds + _MORE
        self.stops_by = self.stops_by or ends_by  # a second signal gives no more time
        self.leave()
        if self.fitter is not None:  # the journal has all that it would take in
            os.kill(self.fitter, signal.SIGKILL)

    def leave(self) -> None:
        """Ask the current workers to answer all accepted connections, and to end."""
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        self.leaving |= self.workers
        self.workers = {}

    def renew(self) -> None:
        """Read the choices again, and replace the workers."""
        self.renews, before = False, self.service
        notify("RELOADING=1")
        try:
            self.service = self.reread()
        except Exception as error:  # whatever it is, mail goes on
            self.service.log.failed("the options as they were stay", error)
            notify("READY=1")
        else:
            self.is_told = False
            self.waiting.clear()
            self.leave()
            for _, listener in {*before.listeners} - {*self.service.listeners}:
                listener.close()
            for _ in range(self.service.n_workers):
                self.start()


def _child(log: Log, fails: str, work: Callable[[], int]) -> int | None:
    """Start a process that ends with the status of its work; None, and a line, if that fails."""
    try:
        pid = fork()
    except OSError as error:  # no memory, or too many processes
        log.failed(fails, error)
        return None
    if pid:
        return pid
    status = 1
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_SIGNALS} - {signal.SIGTERM})
        status = work()
    except BaseException as error:
        log.failed(fails, error)
    finally:
        os._exit(status)


def fit_model(service: Service) -> int:
    """Fit the model of a server if that is due; return the status to exit with.

    Raises NbspamError; then what was learned is in the journal as before.
    """
    for _, listener in service.listeners:
        listener.close()
    with contextlib.suppress(OSError):  # a service may be forbidden it
        os.nice(_NICE)
    model = StoredModel(service.choices.model_path)
    if model.is_due:
        model.compact()
    return 0


def _ended() -> tuple[int, int, float]:
    """Return a process that has ended, its wait status and processor seconds; 0 if none has."""
    try:
        pid, status, used = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0, 0.0
    return pid, status, used.ru_utime + used.ru_stime


def _cause(status: int, is_hung: bool) -> tuple[str, str]:
    """Return why a process ended, one of metrics.ENDS, and its signal or status; see waitpid."""
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return "killed", "SIGTERM"
        return "failing" if code == FAILING else "failed", f"status {code}"
    number = signal.Signals(os.WTERMSIG(status))
    if is_hung:
        return "hung", f"{_STUCK:.0f} s without a sign of life"
    if number == signal.SIGKILL:
        return "killed", "SIGKILL; by the system, if memory ran out"
    if number == signal.SIGBUS:
        return "crashed", "SIGBUS; a file was changed in place: replace a model by mv"
    return "crashed" if number in _FAULTS else "killed", number.name


def notify(state: str) -> None:
    """Tell systemd about our state, if it has started us (sd_notify)."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    with (
        contextlib.suppress(OSError),  # systemd will see that nothing comes
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        sender.setblocking(False)  # nobody waits for a reader that is stuck
        sender.sendto(state.encode(), "\0" + path[1:] if path.startswith("@") else path)


# ---- from choices to a service ----

Reread = tuple[ServerChoices, Callable[[], Sockets], int]  # which listens, and number of workers
_MOST_WORKERS = 64  # unless there are more cores; more only take memory and wait for a core
_FILES = 100  # besides connections: models, sockets, pipes
_MAX_PASSWORD = 1000  # bytes
# Judged before workers are forked, so that they share what a first message loads: the parser
# and style sheets of HTML and, for a text of undeclared charset, the tables of all charsets.
_FIRST = Item(
    "-",
    None,
    b"Subject: a first message\nContent-Type: text/html\n\n<style>p { color: red }</style>"
    b"<p>\xc4\xee\xe1\xf0\xfb\xe9 \xe4\xe5\xed\xfc, p\xe0ypal",
)


def password_in(path: str) -> bytes:
    """Return the password in the first line of a file; raises InputError."""
    try:
        with open(path, "rb") as file:
            password = file.readline(_MAX_PASSWORD).strip()
    except OSError as error:
        raise InputError(f"--password-file {path}: {error.strerror}; give a file") from error
    if not password:
        raise InputError(f"--password-file {path}: its first line is empty; write a password")
    return password


def serve(
    choices: ServerChoices, sockets: Sockets, n_workers: int, reread: Callable[[], Reread]
) -> None:
    """Answer clients until SIGTERM or SIGINT; raises NbspamError.

    reread: reads all of this again, upon SIGHUP.
    """
    most = max(available_cores(), _MOST_WORKERS)
    tally = ServerTally(2 * most + 1)  # new workers begin before old ones end
    copies: set[str] = set()
    allow_files(2 * (SERVER_LIMITS.connections + SERVER_LIMITS.visitors) + _FILES)

    def service(
        choices: ServerChoices, listening: Callable[[], Sockets], n_workers: int
    ) -> Service:
        if n_workers > most:
            raise UsageError(
                f"--jobs {n_workers}: more than {most} workers; give about one for each core"
            )
        # Followed once, so that the model of the verdicts is also the one of lessons and fits.
        choices = choices._replace(model_path=resolved(choices.model_path))
        copies.add(copy := served_copy(choices.model_path))
        remove_copy(copy)  # a crash may have left it unfinished
        model = open_served(choices.model_path)
        if choices.users is not None:
            check_folder(choices.users)
            check_site(model)
        rule = choices.rule_of(model.classifier())
        list(model.classifier().classify([_FIRST], rule=rule))
        sockets = listening()  # the last that can fail: no socket is left without workers
        access = access_beside(choices.model_path) if "web" in dict(sockets) else None
        log = Log(choices.log, on_drop=partial(tally.add, "log_lines_dropped"))
        # A collection writes into every object that it looks at, and so copies shared memory.
        # With these frozen it is cheap, and what connections leave behind need not pile up.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000)
        return Service(choices, model, n_workers, sockets, SERVER_LIMITS, log, tally, access)

    try:
        first = service(choices, lambda: sockets, n_workers)
        Supervisor(first, lambda: service(*reread())).run()
    finally:
        for copy in copies:
            remove_copy(copy)
