"""Doubtful messages: those that a model has learned in one class, and that look like the other.

They are found as `nbspam doubts` finds them, in a process of its own (`python -m` this module).
What it finds is kept until the mailbox or the model changes; a message about which a person has
spoken since is no longer shown.

Secret: which labels are believed, and when it is worth looking anew.
"""

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from threading import Thread
from typing import Any, NamedTuple

from nbspam.disk import stamp_of
from nbspam.errors import NbspamError
from nbspam.evaluation.doubts import Doubt, find_doubts
from nbspam.mail.digest import digest_of
from nbspam.server.review.database import Database
from nbspam.server.review.mailbag import Letter, Mailbag, heading
from nbspam.settings import Choices, chosen
from nbspam.sources.items import Item
from nbspam.store.format.journal import journal_path
from nbspam.store.model import StoredModel

LEAST = 2  # messages of each class, without which nothing contradicts anything
_N_REASONS = 3
_REST = 10.0  # times as long as it took to look, it is not looked again
_LOST = 900.0  # seconds after which a process that looks is taken for dead
_NICE = 10


class Doubtful(NamedTuple):
    """A message that is probably filed wrongly."""

    key: str
    sender: str
    subject: str
    filed: str  # the class in which the model has learned it
    label: str  # the class that the other messages give it
    wrong: float  # how probably it is filed wrongly
    reasons: tuple[tuple[str, float], ...]  # tokens and what they add, nats; for spam: positive


class Found(NamedTuple):
    """What was found in a mailbox."""

    n_messages: int
    n_ham: int  # of which the model has learned
    n_spam: int
    rows: tuple[Doubtful, ...]  # the surest first

    @property
    def is_enough(self) -> bool:
        """Whether enough messages were learned to contradict each other."""
        return min(self.n_ham, self.n_spam) >= LEAST


class State(NamedTuple):
    """What is known of a mailbox's doubtful messages."""

    found: Found | None  # None: it was never looked through
    begun: float  # when that began, seconds since 1970
    problem: str | None  # why the mailbox could not be looked through when it was tried last
    is_running: bool  # whether it is looked through now
    is_due: bool  # whether it is to be looked through


# ---- finding ----


def find(mailbag: Mailbag, model: StoredModel, settled: Mapping[str, str]) -> Found:
    """Return the doubtful messages of a mailbox; raises NbspamError.

    settled: by key, the labels that a person has confirmed although they were doubted.  All other
    labels are doubted, those that a person has told as well: people click beside the button.
    """
    keys = [letter.key for letter in mailbag.newest()]
    filed, believed = {}, {}
    for key, data in mailbag.read(keys):
        label = model.filed(data).label
        if label is not None:
            filed[key] = label
            if settled.get(key) == label:
                believed[digest_of(data)] = label
    numbers = Counter(filed.values())
    found = Found(len(keys), numbers["ham"], numbers["spam"], ())
    if not found.is_enough:
        return found
    items = (Item(key, filed[key], data) for key, data in mailbag.read(filed))
    doubts = {each.name: each for each in find_doubts(items, model.settings, believed).found}
    headings = {key: heading(data) for key, data in mailbag.read(doubts)}
    rows = [_doubtful(each, *headings[key]) for key, each in doubts.items() if key in headings]
    return found._replace(rows=tuple(rows))


def _doubtful(doubt: Doubt, sender: str, subject: str) -> Doubtful:
    sign = 1.0 if doubt.label == "spam" else -1.0
    strongest = doubt.evidence[:_N_REASONS]
    reasons = tuple((each.token, sign * each.contribution) for each in strongest)
    return Doubtful(
        doubt.name, sender, subject, doubt.filed, doubt.label, doubt.probability, reasons
    )


# ---- keeping what was found ----


def state(database: Database, letters: Sequence[Letter], model: str, now: float) -> State:
    """Return what is known; raises ModelFileError.

    letters: of the mailbox.  model: the path of its model.  now: seconds since 1970.
    """
    ((of, begun, ended, text, running, problem),) = database.run(
        "SELECT of, begun, ended, found, running, problem FROM doubts"
    )
    is_running = running is not None and abs(now - running) < _LOST
    if text is None:
        return State(None, 0.0, problem, is_running, not is_running)
    n_messages, n_ham, n_spam, rows = json.loads(text)
    here = {letter.key for letter in letters}
    here -= {key for (key,) in database.run(_SPOKEN, begun, begun)}
    kept = tuple(_from_json(row) for row in rows if row[0] in here)
    rests = 0 <= now - ended < _REST * (ended - begun)
    is_due = not (is_running or rests) and of != _fingerprint(letters, model)
    return State(Found(n_messages, n_ham, n_spam, kept), begun, problem, is_running, is_due)


_SPOKEN = (
    "SELECT key FROM told WHERE at >= ? AND undone IS NULL UNION"
    " SELECT key FROM settled WHERE at >= ?"
)


def _from_json(row: Sequence[Any]) -> Doubtful:
    each = Doubtful._make(row)
    return each._replace(reasons=tuple((token, nats) for token, nats in each.reasons))


def _fingerprint(letters: Sequence[Letter], model: str) -> str:
    """Return a text that is another one when the mailbox or the model has changed."""
    keys = sorted(letter.key for letter in letters)
    stamps = stamp_of(model), stamp_of(journal_path(model))
    return blake2b(repr((keys, stamps)).encode(), digest_size=16).hexdigest()


def claim(database: Database, now: float) -> bool:
    """Return whether the caller is the one who is to look now; raises ModelFileError."""
    database.run(
        "UPDATE doubts SET running = ? WHERE running IS NULL OR abs(? - running) >= ?",
        now,
        now,
        _LOST,
    )
    return database.run("SELECT 1 FROM doubts WHERE running = ?", now) != []


def release(database: Database, now: float, problem: str | None) -> None:
    """Let others look: whoever claimed at this time does not any more; raises ModelFileError.

    problem: what kept the mailbox from being looked through; None: nothing did.
    """
    database.run("UPDATE doubts SET running = NULL, problem = ? WHERE running = ?", problem, now)


def settle(database: Database, key: str, label: str, now: float) -> None:
    """Note that a person has confirmed or changed a label that was doubted."""
    database.run("INSERT OR REPLACE INTO settled VALUES (?, ?, ?)", key, label, now)


def look(mailbox: str, model: str, clock: Callable[[], float]) -> None:
    """Look through a mailbox, and note what is found; raises NbspamError.

    clock: tells the seconds since 1970.
    """
    begun, mailbag, database = clock(), Mailbag(mailbox), Database(model)
    of = _fingerprint(mailbag.newest(), model)
    settled = dict(database.run("SELECT key, label FROM settled"))
    # A model that is not there yet has learned nothing.
    stored = StoredModel(model, new=chosen(Choices(), is_text=False))
    text = json.dumps(find(mailbag, stored, settled))
    database.run(
        "UPDATE doubts SET of = ?, begun = ?, ended = ?, found = ?", of, begun, clock(), text
    )


# ---- the process ----


def command(mailbox: str, model: str) -> list[str]:
    """Return the command that looks through a mailbox, until its standard input ends."""
    return [sys.executable, "-P", "-m", __name__, mailbox, model]


def _end_with_parent() -> None:
    """End this process when the one that has started it does."""
    os.read(0, 1)
    os._exit(1)


def main() -> None:
    """Look through the mailbox that the command line names, for its model; errors are a line."""
    from time import time

    Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):  # a service may be forbidden it
        os.nice(_NICE)
    try:
        mailbox, model = sys.argv[1:]
        look(mailbox, model, time)
    except (NbspamError, OSError) as error:
        sys.exit(str(error))
    except Exception as error:  # its words may quote mail, and they are logged
        sys.exit(f"internal error: {type(error).__name__}")


if __name__ == "__main__":
    main()
