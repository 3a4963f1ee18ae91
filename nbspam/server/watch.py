"""Watching accounts: for each, a thread and a connection that waits until something changes.

A lost connection is reopened after a pause, which grows from a second to five minutes while
nothing is learned or judged.
IDLE tells of changes in the inbox at once.  The other folders are looked at with it, or after ten
minutes.
"""

import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from socketserver import BaseRequestHandler, ThreadingTCPServer

from nbspam.arrays import today
from nbspam.delivery.account import AccountToSort
from nbspam.delivery.maildir import SortingReport
from nbspam.errors import LostError, NbspamError, library_error
from nbspam.imap.session import AccountSession
from nbspam.server.metrics import METRICS_TYPE, Log, ServerTally, milliseconds, open_metrics
from nbspam.server.supervisor import notify

_IDLE_SECONDS = 600.0
_POLL_SECONDS = 60.0  # where a server has no IDLE
_ASKED_SECONDS = 10.0  # in which a client of the metrics asks
_PAUSES = (1.0, 300.0)  # seconds before a connection is made again: at first, and at most


class AccountTally(ServerTally):
    """The counts of all accounts, to which several threads add."""

    def __init__(self) -> None:
        super().__init__(1)
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a count."""
        with self._lock:
            super().add(name, amount)


class AccountWatcher(threading.Thread):
    """Sorts one account again and again.

    on_end: called when it ends.  is_alone: an error at the first attempt ends it, for its owner
    to fix.  error: why it has ended, if it was not asked to.
    """

    def __init__(
        self,
        account: AccountToSort,
        log: Log,
        tally: AccountTally,
        on_end: Callable[[], None],
        is_alone: bool = True,
    ) -> None:
        super().__init__(name=account.url.account, daemon=True)
        self._account, self._log, self._tally, self._on_end = account, log, tally, on_end
        self._wake, self._woken = socket.socketpair()
        self._goes_on, self._is_asked_to_end = not is_alone, False
        self._pause = _PAUSES[0]
        self._skipped: set[str] = set()  # names of messages that a look could not sort
        self.error: BaseException | None = None

    def end(self) -> None:
        """Ask it to end after its current work."""
        self._is_asked_to_end = True
        with suppress(OSError):  # it has ended
            self._wake.send(b"x")

    def run(self) -> None:
        """Connect, and sort until it is asked to end or cannot go on."""
        try:
            while not self._is_asked_to_end:
                try:
                    with AccountSession(self._account.url, self._account.book) as session:
                        self._stay(session)
                except NbspamError as error:
                    # Without a network, as after a boot, no host name can be found.
                    is_away = isinstance(error.__context__, socket.gaierror)
                    if not (is_away or isinstance(error, LostError)):
                        if not self._goes_on:
                            raise
                        self._pause = _PAUSES[1]  # or the server bans this address
                    if not self._is_asked_to_end:
                        self._log.noted(str(error), account=self.name)
                        self._tally.add("trouble failed")
                    # Longer each time, and not all clients at once.
                    self._woken.settimeout(self._pause * random.uniform(0.7, 1.3))
                    with suppress(TimeoutError):
                        self._woken.recv(1)
                    self._pause = min(2 * self._pause, _PAUSES[1])
        except BaseException as error:  # its owner's to fix, or a bug: `watch` raises it
            self.error = error
        finally:
            self._wake.close()
            self._woken.close()
            self._on_end()

    def _stay(self, session: AccountSession) -> None:
        """Sort whenever something has changed, over one connection."""
        while not self._is_asked_to_end:
            start, report = time.perf_counter(), SortingReport()
            try:
                self._account.sort_once(session, today(), report)
            finally:
                self._log_report(report, time.perf_counter() - start)
                if report.learned or (report.judged and report.lack is None):
                    self._pause = _PAUSES[0]  # a connection of use, even if it was lost
            self._skipped = {failed.name for failed in report.skipped}  # of a whole look
            self._goes_on, self._pause = True, _PAUSES[0]
            has_idle = "IDLE" in session.abilities
            session.wait(_IDLE_SECONDS if has_idle else _POLL_SECONDS, self._woken)

    def _log_report(self, report: SortingReport, seconds: float) -> None:
        """Write a line for each message that was judged or learned, and count it."""
        name, ms = self.name, milliseconds(seconds)
        if report.lack is not None:
            report = replace(report, judged=[], notes=[*report.notes, report.lack])
        for one in report.judged:
            p = None if one.probability is None else round(one.probability, 6)
            facts = {"verdict": one.label, "probability": p, "moved": one.moved_to}
            self._log.answered(account=name, **facts, ms=ms, id=one.message_id)
            self._tally.add(one.label)
        for one in report.learned:
            self._log.answered(account=name, taught=one.label, ms=ms, id=one.message_id)
            self._tally.add("lesson learned")
        for failed in report.skipped:
            if failed.name not in self._skipped:
                self._skipped.add(failed.name)
                self._log.noted(f"skipped {failed.name}: {failed.reason}")
                self._tally.add("trouble failed")
        for note in report.notes:
            self._log.noted(note, account=name)


def watch(accounts: Sequence[AccountToSort], log: Log, metrics: socket.socket | None) -> None:
    """Watch accounts until SIGTERM or SIGINT; raises the error that ended one for good.

    metrics: a listening socket that serves counts in OpenMetrics.
    """
    tally, asked = AccountTally(), threading.Event()
    watchers: list[AccountWatcher] = []
    before = {s: signal.signal(s, lambda *_: asked.set()) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        with nullcontext() if metrics is None else _metrics_served(metrics, tally):
            for one in accounts:
                watcher = AccountWatcher(one, log, tally, asked.set, len(accounts) == 1)
                watcher.start()
                watchers.append(watcher)
            notify("READY=1")
            asked.wait()  # for a signal, or for a thread that ends by itself: its owner must know
    finally:
        for watcher in watchers:
            watcher.end()
        for each, handler in before.items():  # a second signal waits for no silent server
            signal.signal(each, handler)
        for watcher in watchers:
            watcher.join()
    for watcher in watchers:
        if watcher.error is not None:
            raise watcher.error


@contextmanager
def _metrics_served(listener: socket.socket, tally: AccountTally) -> Iterator[None]:
    """Answer every connection to a listener with the counts, until the block ends."""
    try:
        open_metrics(tally, {})
    except ImportError as error:
        raise library_error("--metrics", error.name, "serve") from None

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client has gone, or asks for nothing
                self.request.settimeout(_ASKED_SECONDS)
                self.request.recv(1 << 16)  # not to its end, which a slow client could put off
                text = open_metrics(tally, {})
                head = f"Content-Type: {METRICS_TYPE}\r\nContent-Length: {len(text)}\r\n\r\n"
                self.request.sendall(b"HTTP/1.0 200 OK\r\n" + head.encode() + text)

    server = ThreadingTCPServer(listener.getsockname()[:2], Handler, bind_and_activate=False)
    server.daemon_threads = True
    server.socket.close()
    server.socket = listener
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
