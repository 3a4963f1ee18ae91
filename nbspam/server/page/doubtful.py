"""Doubtful messages: learned in one class, and probably of the other.

A separate process (`python -m` this module) finds them like `nbspam doubts`, so that neither mail
nor people wait.  Its result is kept until the mailbox or the model changes; a message that a
person has marked since is no longer shown.
"""

import contextlib
import errno
import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Lock, Thread
from time import time
from typing import NamedTuple

import nbspam
from nbspam.disk import stamp_of
from nbspam.errors import NbspamError
from nbspam.evaluation.doubts import find_doubts
from nbspam.imap.accounts import AccessBook
from nbspam.mail.addresses import heading
from nbspam.mail.digest import digest_of
from nbspam.server.metrics import Log
from nbspam.server.page.account_mailbox import review_mailbox
from nbspam.server.page.database import Database, reasons_of
from nbspam.server.page.mailbox import ReviewMailbox
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.files import is_account
from nbspam.sources.items import Item
from nbspam.store.journal import journal_path
from nbspam.store.model import StoredModel

LEAST = 2  # messages of each class; fewer contradict nothing
_REST = 10.0  # the next search waits this many times as long as the last one took
_LOST = 900.0  # seconds after which a search counts as dead
_NICE = 10
_MAX_PROBLEM = 500  # bytes


class Doubtful(NamedTuple):
    """A message that was probably learned in the wrong class."""

    key: str
    sender: str
    subject: str
    filed: str  # the class in which the model has learned it
    label: str  # the class that the other messages give it
    wrong: float  # the probability that `filed` is wrong
    reasons: tuple[tuple[str, float], ...]  # from `reasons_of`


class DoubtfulMessages(NamedTuple):
    """The doubtful messages of a mailbox."""

    n_messages: int
    n_ham: int  # messages that the model has learned
    n_spam: int
    rows: tuple[Doubtful, ...]  # the surest first

    @property
    def is_enough(self) -> bool:
        """Whether enough messages were learned to contradict each other."""
        return min(self.n_ham, self.n_spam) >= LEAST


class DoubtSearch(NamedTuple):
    """The last search for a mailbox's doubtful messages, and its result."""

    found: DoubtfulMessages | None  # None: there was no search yet
    begun: float  # when the search began, seconds since 1970
    problem: str | None  # why the last search failed
    is_running: bool  # whether a search runs now
    is_due: bool  # whether another search is worth it


def doubtful_messages(
    box: ReviewMailbox, model: StoredModel, settled: Mapping[str, str]
) -> DoubtfulMessages:
    """Return the doubtful messages of a mailbox; raises NbspamError.

    settled: by key, the labels that a person has confirmed although they were doubted.  All other
    labels are doubted, people's too: they click beside the button.
    """
    keys = [letter.key for letter in box.newest()]
    filed, believed = {}, {}
    for key, data in box.read(keys):
        label = model.filed(data).label
        if label is not None:
            filed[key] = label
            if settled.get(key) == label:
                believed[digest_of(data)] = label
    numbers = Counter(filed.values())
    found = DoubtfulMessages(len(keys), numbers["ham"], numbers["spam"], ())
    if not found.is_enough:
        return found
    items = (Item(key, filed[key], data) for key, data in box.read(filed))
    doubts = {each.name: each for each in find_doubts(items, model.settings, believed).found}
    headings = {key: heading(data) for key, data in box.read(doubts)}
    rows = tuple(
        Doubtful(
            key, *headings[key], d.filed, d.label, d.probability, reasons_of(d.evidence, d.label)
        )
        for key, d in doubts.items()
        if key in headings
    )
    return found._replace(rows=rows)


# ---- keeping the result ----


def last_search(box: ReviewMailbox, now: float) -> DoubtSearch:
    """Return the last search of a mailbox and its result; raises NbspamError.

    now: seconds since 1970.
    """
    database = box.database
    ((of, begun, ended, text, running, problem),) = database.run(
        "SELECT of, begun, ended, found, running, problem FROM doubts"
    )
    is_running = running is not None and abs(now - running) < _LOST
    if text is None:
        return DoubtSearch(None, 0.0, problem, is_running, not is_running)
    *numbers, rows = json.loads(text)
    keys = {letter.key for letter in box.newest()}
    here = keys - {key for (key,) in database.run(_SPOKEN, begun, begun)}
    kept = tuple(
        Doubtful._make([*row, tuple(map(tuple, why))]) for *row, why in rows if row[0] in here
    )
    rests = 0 <= now - ended < _REST * (ended - begun)
    is_due = not (is_running or rests) and of != _fingerprint(keys, box.model)
    found = DoubtfulMessages._make([*numbers, kept])
    return DoubtSearch(found, begun, problem, is_running, is_due)


_SPOKEN = (
    "SELECT key FROM told WHERE at >= ? AND undone IS NULL UNION"
    " SELECT key FROM settled WHERE at >= ?"
)


def _fingerprint(keys: Iterable[str], model: str) -> str:
    """Return a text that changes with the messages of a mailbox and with its model."""
    stamps = stamp_of(model), stamp_of(journal_path(model))
    return blake2b(repr((sorted(keys), stamps)).encode(), digest_size=16).hexdigest()


def claim(database: Database, now: float) -> bool:
    """Claim the search, and return whether it is the caller's now; raises ModelFileError."""
    database.run(
        "UPDATE doubts SET running = ? WHERE running IS NULL OR abs(? - running) >= ?",
        now,
        now,
        _LOST,
    )
    return database.run("SELECT 1 FROM doubts WHERE running = ?", now) != []


def release(database: Database, now: float, problem: str | None) -> None:
    """Release the claim of a time, so that another worker may search; raises ModelFileError.

    problem: why the search failed; None: it did not.
    """
    database.run("UPDATE doubts SET running = NULL, problem = ? WHERE running = ?", problem, now)


def note_settled(database: Database, key: str, label: str, now: float) -> None:
    """Note that a person has confirmed or changed a label that was doubted."""
    database.run("INSERT OR REPLACE INTO settled VALUES (?, ?, ?)", key, label, now)


def look_for_doubtful(
    mailbox: str, model: str, clock: Callable[[], float], book: AccessBook | None
) -> None:
    """Look through a mailbox, and note the doubtful messages; raises NbspamError.

    clock: tells the seconds since 1970.  book: the access to a mail account.
    """
    begun = clock()
    with contextlib.closing(review_mailbox(mailbox, model, book)) as box:
        database = box.database
        of = _fingerprint([letter.key for letter in box.newest()], model)
        settled = dict(database.run("SELECT key, label FROM settled"))
        # A model that is not there yet has learned nothing.
        stored = StoredModel(model, new=chosen_settings(SettingsChoices(), is_text=False))
        text = json.dumps(doubtful_messages(box, stored, settled))
    database.run(
        "UPDATE doubts SET of = ?, begun = ?, ended = ?, found = ?", of, begun, clock(), text
    )


# ---- the process ----


def command(mailbox: str, model: str) -> list[str]:
    """Return the command that searches a mailbox, until its standard input ends."""
    return [sys.executable, "-P", "-m", __name__, mailbox, model]


class Doubting:
    """The searching process of one worker; there is one at a time, also for each mailbox."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiter: Thread | None = None  # for the end of the process
        self._ends = False

    def begin(self, box: ReviewMailbox) -> None:
        """Search a mailbox, unless a worker does already; raises NbspamError and OSError.

        While this worker searches another mailbox, nothing happens.
        """
        now = time()
        with self._lock:
            if self._ends or self._process is not None or not claim(box.database, now):
                return
            try:
                self._start(box, now)
            except OSError as error:
                release(box.database, now, f"no process could be started: {error.strerror}")
                raise

    def end(self) -> None:
        """End the process; another worker searches again."""
        with self._lock:
            self._ends = True
            process, waiter = self._process, self._waiter
        if process is not None and waiter is not None:
            process.kill()
            waiter.join()

    def _start(self, box: ReviewMailbox, now: float) -> None:
        # The process finds the modules where this one has found them.
        places = [str(Path(nbspam.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(
            command(box.path, box.model),
            stdin=subprocess.PIPE,  # it ends when this end is closed, however that comes about
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
        )
        if box.book is not None:  # which no list of processes may show
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # of its end, the waiter tells
                process.stdin.write(pickle.dumps(box.book))
                process.stdin.flush()
        waiter = Thread(target=self._wait, args=(process, box.database, now), daemon=True)
        try:
            waiter.start()
        except RuntimeError as error:  # too many threads
            with process:
                process.kill()
            raise OSError(errno.EAGAIN, str(error)) from error
        self._process, self._waiter = process, waiter

    def _wait(self, process: "subprocess.Popen[bytes]", database: Database, now: float) -> None:
        """Wait for the end of the process, and release the claim."""
        with process:
            assert process.stderr is not None
            said = process.stderr.read()[-_MAX_PROBLEM:].decode("utf-8", "replace").splitlines()
        with self._lock:
            self._process = None
        problem = None
        if process.returncode and not self._ends:
            problem = said[-1] if said else f"its process was ended by {process.returncode}"
            self._log.noted(f"doubtful messages were not looked for: {problem}")
        try:
            release(database, now, problem)
        except NbspamError as error:
            self._log.failed("doubtful messages were not looked for", error)


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    """Search the mailbox that the command line names, for its model; errors are a line."""
    mailbox, model = sys.argv[1:]
    book = pickle.load(sys.stdin.buffer) if is_account(mailbox) else None
    Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):  # a service may be forbidden it
        os.nice(_NICE)
    try:
        look_for_doubtful(mailbox, model, time, book)
    except (NbspamError, OSError) as error:
        sys.exit(str(error))
    except Exception as error:  # its words may quote mail, and they are logged
        sys.exit(f"internal error: {type(error).__name__}")


if __name__ == "__main__":
    main()
