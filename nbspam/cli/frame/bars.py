"""Progress bars on standard error, for loops that take longer than a second.

A bar is drawn by the loop itself, between two of its steps: another thread that draws would
be in the way of worker processes, which are forked.

Secret: when a bar appears, and what it looks like.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from nbspam.progress import Extent, watched

if TYPE_CHECKING:
    from nbspam.sources.items import Item
    from nbspam.sources.records import Record

DELAY = 1.0  # seconds after the command began, before which no bar is drawn
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".tgz", ".zip", ".parquet")
_PAUSE = 0.1  # seconds between two changes of a bar


def bars(prints_results_at_once: bool) -> AbstractContextManager[None]:
    """Return a context in which long loops show bars, if anybody is there to see them.

    prints_results_at_once: whether the command prints while it reads.  On a terminal these
    lines are progress enough, and a bar would stand between them.
    """
    if not sys.stderr.isatty() or (prints_results_at_once and sys.stdout.isatty()):
        return nullcontext()
    return watched(Watcher(DELAY))


class Watcher:
    """Draws a bar for a loop; of loops within loops, for the outer one."""

    def __init__(self, delay: float) -> None:
        self._from = time.monotonic() + delay
        self._process = os.getpid()
        self._is_busy = False

    def __call__(self, things: Iterable[Any], what: str, extent: Extent) -> Iterator[Any]:
        """Yield things, and show from time to time how many have passed."""
        if self._is_busy or os.getpid() != self._process:
            yield from things
            return
        self._is_busy = True
        bar = _Bar(what, extent, self._from)
        try:
            bar.show()
            for thing in things:
                yield thing
                bar.step(thing)
        finally:
            bar.end()
            self._is_busy = False


class _Bar:
    """What is shown of one loop: `folds ━━━━━━ 3 of 10, 2.1 s each, 0:15 left`."""

    def __init__(self, what: str, extent: Extent, earliest: float) -> None:
        self._what, self._extent = what, extent
        self._start = time.monotonic()
        self._next = earliest  # when it is drawn next
        self._n_steps = self._done = 0
        self._total: int | None = None
        self._drawn: Any = None  # rich's Progress, once it is imported
        self._task: Any = None

    def step(self, thing: object) -> None:
        """Count a thing, and draw the bar if it is time."""
        self._n_steps += 1
        self._done += 1 if self._extent.weight is None else self._extent.weight(thing)
        self.show()

    def show(self) -> None:
        """Draw the bar if it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        is_first = self._drawn is None
        if is_first:
            self._begin()
        total = self._total if self._total is None or self._done <= self._total else None
        text = progress_text(self._n_steps, self._part(total), now - self._start, self._counts)
        self._drawn.update(self._task, completed=self._done, total=total, text=text)
        if is_first:
            self._drawn.start()
        self._drawn.refresh()
        self._next = now + _PAUSE

    def _part(self, total: int | None) -> float | None:
        return self._done / total if total else None

    @property
    def _counts(self) -> int | None:
        """The number of steps, if every one counts alike."""
        return self._total if self._extent.weight is None else None

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._total = self._extent.total()
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}")
        console = Console(stderr=True)
        self._drawn = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._drawn.add_task(self._what, total=self._total, text="")

    def end(self) -> None:
        """Clear the bar."""
        if self._drawn is not None:
            self._drawn.stop()


def progress_text(n_steps: int, part: float | None, seconds: float, total: int | None) -> str:
    """Return how many steps are done, how fast, and how long the rest will take.

    part: of all work, 0 to 1, that is done, if that is known.  total: the number of steps.
    """
    text = f"{n_steps:,}" if total is None else f"{n_steps:,} of {total:,}"
    if not n_steps or seconds <= 0:
        return text
    rate = n_steps / seconds
    text += f", {rate:,.0f}/s" if rate >= 1 else f", {1 / rate:.1f} s each"
    if part and seconds >= 1:  # before that it is a guess
        left = round(seconds * (1 - part) / part)
        text += f", {left // 60}:{left % 60:02} left"
    return text


# --- how long reading takes ------------------------------------------------------------------


def extent_of(paths: Iterable[str]) -> Extent:
    """Return the extent of reading the items or rows of files and folders, in bytes."""
    return Extent(lambda: _bytes_of(paths), _size_of)


def _size_of(read: "Item | Record") -> int:
    """Return about how many bytes of its source an item or a row takes."""
    cells = getattr(read, "cells", None)
    if cells is not None:
        return sum(map(len, cells.values())) + len(cells)
    data = getattr(read, "data", None)
    if data is not None:
        return len(data)
    return os.path.getsize(read.name) if os.path.exists(read.name) else 0


def _bytes_of(paths: Iterable[str]) -> int | None:
    """Return how many bytes files and folders have; None if that tells nothing."""
    total = 0
    for path in paths:
        files = [path]
        if os.path.isdir(path):
            files = [os.path.join(place, n) for place, _, names in os.walk(path) for n in names]
        for name in files:
            if not os.path.isfile(name) or name.lower().endswith(_PACKED):
                return None  # a stream, or compressed
            total += os.path.getsize(name)
    return total
