"""A server's log and metrics: a log line for each answer, and counts of all workers.

A line on standard error, as text or as JSON, has the queue's identifier, user, verdict, its
probability and milliseconds; never words of mail.  A slow reader misses lines; mail does not wait
for it.  Each worker counts in a row of its own in memory that all processes share, so that its
counts outlive it; a metric is the sum over the rows.
"""

import json
import mmap
import os
import select
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.counts.lessons import Outcome
from nbspam.errors import NbspamError
from nbspam.printing import amount_text, printable

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_MAX_VALUE = 200  # characters; a line of less than 4,096 bytes is written to a pipe in one piece
_MAX_NOTE = 500  # characters; an error ends with what to do about it
_OUR_WORDS = {"why", "lists"}  # facts with blanks
METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Log:
    """Writes lines to a file descriptor, if there is room for them.

    on_drop: called for each line that is not written.
    """

    def __init__(
        self, kind: str, descriptor: int = 2, on_drop: Callable[[], None] = lambda: None
    ) -> None:
        self._kind = kind
        self._descriptor = descriptor
        self._on_drop = on_drop

    @property
    def has_answers(self) -> bool:
        """Whether there is a line about each answer."""
        return self._kind != "none"

    def answered(self, **facts: Any) -> None:
        """Write a line about an answer."""
        if self.has_answers:
            self._write(facts)

    def noted(self, text: str, **facts: Any) -> None:
        """Write a note to the server's owner, with facts, even if answers are not logged."""
        known = _on_a_line(facts)
        line = f"nbspam: {_short(text, _MAX_NOTE)}{known and f' ({known})'}"
        self._write({"note": text, **facts}, line)

    def failed(self, what: str, error: BaseException, **facts: Any) -> None:
        """Write a failure, its reason, and facts about the message.

        An unforeseen error may quote mail, so only its kind and place are written.
        """
        if isinstance(error, MemoryError | BlockingIOError) or "start new thread" in str(error):
            why = "out of memory or processes; allow more (ulimit -v, -u, MemoryMax=, TasksMax=)"
        else:
            foreseen = isinstance(error, NbspamError | OSError)
            why = str(error) if foreseen else _kind_and_place(error)
        self.noted(f"{what}: {why}", **facts)

    def ended(self, pid: int, cause: str, how: str, seconds: float, messages: int) -> None:
        """Write how a worker ended, after how long, with how many messages in hand.

        cause: one of ENDS.  how: the signal, or the status.
        """
        self._write(
            {"worker": pid, "ended": cause, "how": how, "s": round(seconds, 1), "had": messages},
            f"nbspam: worker {pid} {ENDS[cause]} ({how}) after {seconds:.1f} s, with"
            f" {amount_text(messages, 'messages')} in hand",
        )

    def listens(self, protocol: str, address: str, workers: int, model: str) -> None:
        """Write that the server now listens for a protocol."""
        self._write(
            {"listening": protocol, "address": address, "workers": workers, "model": model},
            f"nbspam serve: {protocol} on {_short(address)}, {amount_text(workers, 'workers')},"
            f" model {_short(model)}",
        )

    def _write(self, facts: dict[str, Any], text: str = "") -> None:
        if self._kind == "json":
            line = json.dumps(_shown(facts), ensure_ascii=False)
        else:
            line = text or _on_a_line(facts)
        try:
            # A pipe with room has a free page; what several workers write at once fits into it.
            if select.select([], [self._descriptor], [], 0)[1]:
                os.write(self._descriptor, line.encode("utf-8", "replace") + b"\n")
                return
        except OSError:
            pass  # nobody reads it any more, or the disk is full: mail goes on
        self._on_drop()


def milliseconds(seconds: float) -> float:
    """Return how long an answer took, as the log has it."""
    return round(1000 * seconds, 2)


def _kind_and_place(error: BaseException) -> str:
    """Return the class of an error and the lines of code that led to it, the last one first."""
    from traceback import walk_tb

    lines = [
        f"{os.path.basename(frame.f_code.co_filename)}:{number}"
        for frame, number in walk_tb(error.__traceback__)
    ]
    return " ".join([type(error).__name__, *reversed(lines)])


def _shown(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _short(value, _MAX_NOTE if name == "note" else _MAX_VALUE)
        for name, value in facts.items()
        if value not in (None, "")
    }


def _on_a_line(facts: dict[str, Any]) -> str:
    """Return facts as text, in which no value that a stranger wrote can begin another fact."""
    words = {name: str(value) for name, value in _shown(facts).items()}
    for name in words.keys() - _OUR_WORDS:
        words[name] = words[name].replace(" ", r"\x20")
    return " ".join([f"{name}={word}" for name, word in words.items()])


def _short(value: Any, limit: int = _MAX_VALUE) -> Any:
    return printable(value)[:limit] if isinstance(value, str) else value


# ---- counts ----

VERDICTS = ("ham", "spam", "unsure")
# Outcomes of lessons, and reasons for no verdict or lesson, in the words of the page.
LESSONS = {
    "learned": "learned",
    "moved": "moved to the other class",
    "confirmed": "confirmed",
    "unlearned": "un-learned",
    "known": "known already",
}
TROUBLES = {
    "busy": "too many at the same time",
    "late": "not judged in time",
    "idle": "not sent in time",
    "malformed": "not in the words of its protocol, or no mail",
    "failed": "failed",
    "gone": "the client has gone",
    "forbidden": "forbidden",
    "large": "too large",
    "user": "no name of a user",
    "model": "the model could not be read again",
}
# Upper bounds of the classes of answering times, seconds.
BOUNDS = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0),
)
# Why a worker ended: by a signal from outside, by a fault of the program, without a sign of life,
# because it failed again and again, or with an error.
ENDS = {
    "killed": "was killed",
    "crashed": "crashed",
    "hung": "hung, and was killed",
    "failing": "ended itself, as message after message failed",
    "failed": "ended with an error",
}
_COUNTS = ("connections", "oversized", "batches", "batched", "personal", "log_lines_dropped")
# Of the process that shares lessons: whether the log answers, records of the log that were not
# read yet, lessons that wait for it, records that were read, and records that were not lessons.
SHARE_GAUGES = ("share_connected", "share_lag", "share_outbox", "share_read", "share_skipped")
_GAUGES = (
    *("open_connections", "visitors", "asked", "queue", "held_bytes", "beat", "due"),
    *("users", "users_bytes", "shares"),
)
_WITHIN = [f"within {bound:g}" for bound in (*BOUNDS, float("inf"))]
_SLOTS = (
    *VERDICTS,
    *(f"lesson {name}" for name in LESSONS),
    *(f"trouble {name}" for name in TROUBLES),
    *(f"ended {name}" for name in ENDS),
    *_COUNTS,
    *_GAUGES,
    *SHARE_GAUGES,
    "seconds",
    *_WITHIN,
)
_PLACE = {name: number for number, name in enumerate(_SLOTS)}


def outcome_word(outcome: Outcome) -> str:
    """Return the outcome of one lesson, a word of LESSONS."""
    return next((name for name in LESSONS if getattr(outcome, name, 0)), "known")


class ServerTally:
    """The counts of all workers; each adds to its own row.

    n_rows: of workers, and one for the process that started them.
    """

    def __init__(self, n_rows: int) -> None:
        memory = mmap.mmap(-1, 8 * n_rows * len(_SLOTS))  # shared by all that are forked
        self._counts = np.frombuffer(memory, np.float64).reshape(n_rows, len(_SLOTS))
        # Of Python's own numbers a view reads and writes one in a quarter of numpy's time.
        self._own: Any = memoryview(self._counts[0])
        self.n_workers = n_rows - 1

    def take_row(self, number: int) -> None:
        """Make a row this process's own; earlier counts in it stay."""
        self._own = memoryview(self._counts[number])

    def has_room(self, connections: int) -> bool:
        """Return whether any worker has fewer connections than so many."""
        lives = self._counts[:, _PLACE["beat"]] > 0
        number = self._counts[:, _PLACE["open_connections"]] - self._counts[:, _PLACE["visitors"]]
        return bool((lives & (number < connections)).any())

    def clear(self, number: int) -> None:
        """Forget the gauges of a process that has ended."""
        for name in (*_GAUGES, *SHARE_GAUGES):
            self._counts[number, _PLACE[name]] = 0

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a count of this process."""
        self._own[_PLACE[name]] += amount

    def set_gauge(self, name: str, value: float) -> None:
        """Set a gauge of this process."""
        self._own[_PLACE[name]] = value

    def note(self, verdict: str, seconds: float) -> None:
        """Count a message that was answered after some seconds."""
        self.add(verdict)
        self.add("seconds", seconds)
        self.add(_WITHIN[bisect_left(BOUNDS, seconds)])

    def total(self, name: str) -> float:
        """Return the sum of a count over all processes."""
        return float(self._counts[:, _PLACE[name]].sum())

    def count(self, name: str) -> int:
        """Return the sum of a count of whole things over all processes."""
        return int(self.total(name))

    def row(self, number: int, name: str) -> float:
        """Return the count of one process."""
        return float(self._counts[number, _PLACE[name]])


def open_metrics(tally: ServerTally, facts: dict[str, float]) -> bytes:
    """Return the totals in OpenMetrics' text format.

    facts: further values, by the end of their metric's name.  Imports prometheus_client.
    """
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = SimpleNamespace(collect=partial(_families, tally, facts))  # all that is asked of it
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


def _families(tally: ServerTally, facts: dict[str, float]) -> "Iterator[Metric]":
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    def counter(name: str, help_text: str, label: str, slots: str, values: Iterable[str]) -> Any:
        family = CounterMetricFamily(f"nbspam_{name}", help_text, labels=[label])
        for value in values:
            family.add_metric([value], tally.total(slots + value))
        return family

    yield counter("messages", "Messages judged.", "verdict", "", VERDICTS)
    yield counter("lessons", "Messages that clients taught.", "outcome", "lesson ", LESSONS)
    without = "Requests without a verdict or lesson."
    yield counter("troubles", without, "kind", "trouble ", TROUBLES)
    for name, text in (
        ("connections", "Connections accepted."),
        ("oversized", "Messages of which only the beginning was read."),
        ("batches", "Batches judged."),
        ("batched", "Messages in all batches."),
        ("personal", "Messages judged with lessons of their user."),
        ("log_lines_dropped", "Log lines that nobody read."),
    ):
        yield CounterMetricFamily(f"nbspam_{name}", text, tally.total(name))
    yield counter(
        "restarts", "Workers that ended and were started again.", "cause", "ended ", ENDS
    )
    shown = ["open_connections", "queue", "held_bytes", "users", "users_bytes"]
    shown += SHARE_GAUGES if tally.total("shares") else ()
    gauges = {name: tally.total(name) for name in shown}
    for name, value in {**gauges, **facts}.items():
        yield GaugeMetricFamily(f"nbspam_{name}", name.replace("_", " ").capitalize() + ".", value)
    up_to = np.cumsum([*map(tally.total, _WITHIN)])
    names = [*map(str, BOUNDS), "+Inf"]
    yield HistogramMetricFamily(
        "nbspam_answer_seconds",
        "From a whole request to its answer.",
        buckets=list(zip(names, up_to.tolist(), strict=True)),
        sum_value=tally.total("seconds"),
    )
