"""Processes that look for doubtful messages, so that mail and people need not wait for them.

Secret: how a process is started, and that it ends with this one.
"""

import os
import subprocess
from pathlib import Path
from threading import Lock, Thread
from time import time

import nbspam
from nbspam.errors import NbspamError
from nbspam.server.logs import Log
from nbspam.server.review.database import Database
from nbspam.server.review.doubtful import claim, command, release

_MAX_PROBLEM = 500  # bytes


class Doubting:
    """The processes of one worker: one at a time, and one at a time for a mailbox."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = Lock()
        self._processes: dict[subprocess.Popen[bytes], Thread] = {}  # and who waits for them
        self._ends = False

    def begin(self, mailbox: str, database: Database) -> None:
        """Look through a mailbox, unless somebody does already; raises NbspamError and OSError.

        While this worker looks through another mailbox, nothing happens.
        """
        now = time()
        with self._lock:
            if self._ends or self._processes or not claim(database, now):
                return
            try:
                self._start(mailbox, database, now)
            except OSError as error:
                release(database, now, f"no process could be started: {error.strerror}")
                raise

    def end(self) -> None:
        """End the processes; others look again."""
        with self._lock:
            self._ends = True
            ending = dict(self._processes)
        for process, waiter in ending.items():
            process.kill()
            waiter.join()

    def _start(self, mailbox: str, database: Database, now: float) -> None:
        # What this process has imported is found where this one has found it.
        places = [str(Path(nbspam.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            command(mailbox, database.model),
            stdin=subprocess.PIPE,  # it ends when this end is closed, however that comes about
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
        )
        waiter = Thread(target=self._wait, args=(process, database, now), daemon=True)
        self._processes[process] = waiter
        waiter.start()

    def _wait(self, process: "subprocess.Popen[bytes]", database: Database, now: float) -> None:
        """Wait for the end of a process, and let others look again."""
        with process:
            assert process.stderr is not None
            said = process.stderr.read()[-_MAX_PROBLEM:].decode("utf-8", "replace").splitlines()
        with self._lock:
            del self._processes[process]
        problem = None
        if process.returncode and not self._ends:
            problem = said[-1] if said else f"its process was ended by {process.returncode}"
            self._log.told(f"doubtful messages were not looked for: {problem}")
        try:
            release(database, now, problem)
        except NbspamError as error:
            self._log.failed("doubtful messages were not looked for", error)
