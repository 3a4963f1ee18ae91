"""The teacher: one thread that learns what clients report, one message after the other.

It learns as every other process does: decided under the model's lock, in the journal on disk, and
only then acknowledged.  The judge reads it there.

Secret: which thread learns, and that it opens the model when the first lesson comes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import time

from nbspam.sources.items import Item
from nbspam.store.learning import Outcome
from nbspam.store.model import StoredModel


class Teacher:
    """Learns messages in a thread of its own; what it returns is on disk."""

    def __init__(self, opened: Callable[[], StoredModel]) -> None:
        self._opened = opened
        self._model: StoredModel | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")
        self.n_waiting = 0

    def teach(self, data: bytes, label: str | None) -> "asyncio.Future[Outcome]":
        """Return what will be the outcome of learning a message; None un-learns it.

        The future raises NbspamError, or OSError.
        """
        self.n_waiting += 1
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._teach, data, label)
        done.add_done_callback(self._is_done)
        return done

    def _is_done(self, _: "asyncio.Future[Outcome]") -> None:
        self.n_waiting -= 1

    def _teach(self, data: bytes, label: str | None) -> Outcome:
        if self._model is None:
            self._model = self._opened()
        item, day = Item("-", label, data), int(time() // 86_400)
        if label is None:
            return self._model.unlearn([item], day=day)
        return self._model.learn([item], day=day, classes=[label])

    def end(self) -> None:
        """End the thread, after it has learned what waits."""
        self._thread.shutdown()
