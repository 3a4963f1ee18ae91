"""Progress bars of long loops, on standard error.

A bar is drawn by the loop itself, between two of its steps: another thread that draws would be in
the way of worker processes, which are forked.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Any

from nbspam.printing import Extent

DELAY = 1.0  # seconds after the command began, before which no bar is drawn
_PAUSE = 0.1  # seconds between two changes of a bar


class Watcher:
    """Draws a bar for a loop; of loops within loops, for the outer one."""

    def __init__(self, delay: float) -> None:
        self._from = time.monotonic() + delay
        self._process = os.getpid()
        self._bar: _ProgressBar | None = None

    def __call__(self, things: Iterable[Any], what: str, extent: Extent) -> Iterator[Any]:
        """Yield things, and show from time to time how many have passed."""
        if self._bar is not None or os.getpid() != self._process:
            yield from things
            return
        self._bar = bar = _ProgressBar(what, extent, self._from)
        try:
            bar.show()
            for thing in things:
                yield thing
                bar.step(thing)
        finally:
            self.end()

    def end(self) -> None:
        """Clear the bar, if there is one."""
        if self._bar is not None:
            self._bar.end()
            self._bar = None


class _ProgressBar:
    """The progress of one loop: `folds ━━━━━━ 3 of 10, 2.1 s each, 0:15 left`."""

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
        if self._drawn is None:
            self._begin()
        total = self._total if self._total is None or self._done <= self._total else None
        part = self._done / total if total else None
        n_all = self._total if self._extent.weight is None else None  # steps that count alike
        text = progress_text(self._n_steps, part, now - self._start, n_all)
        self._drawn.update(self._task, completed=self._done, total=total, text=text)
        self._next = now + _PAUSE
        try:
            self._drawn.start()
            self._drawn.refresh()
        except OSError:  # the terminal has gone; the work goes on
            self._next = inf

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
            with suppress(OSError):
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
