"""The teacher: one thread that learns what clients report, one message after the other.

It learns as every other process does: decided under the model's lock, in the journal on disk, and
only then acknowledged.  The judge reads it there.

Secret: which thread learns, and that it opens the model when the first lesson comes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import time

from nbspam.counts.outcome import Outcome
from nbspam.server.threads.waiting import Waiting
from nbspam.server.users import Users
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel


class _Lesson(Waiting[Outcome]):
    """A message that waits to be learned; see `Teacher.teach`."""

    def __init__(self, data: bytes, label: str | None, user: str, instead_of: str | None) -> None:
        super().__init__(data, user)
        self.label = label
        self.instead_of = instead_of


class Teacher:
    """Learns messages in a thread of its own; what it returns is on disk.

    users: who are taught instead of the model that `opened` opens; None: all teach that one.
    """

    def __init__(self, opened: Callable[[], StoredModel], users: Users | None = None) -> None:
        self._opened = opened
        self._users = users
        self._model: StoredModel | None = None  # the site's
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="teacher")
        self.n_waiting = 0

    def teach(
        self, data: bytes, label: str | None, user: str = "", instead_of: str | None = None
    ) -> "asyncio.Future[Outcome]":
        """Return what will be the outcome of learning a message; None un-learns it.

        user: from `users.known_as`.  instead_of: the class that it is to leave; a message that is
        no longer in it stays as it is; None: any class.  The future raises UserError for a user
        whose name cannot be kept, other NbspamErrors, and OSError.
        """
        self.n_waiting += 1
        lesson = _Lesson(data, label, user, instead_of)
        self._thread.submit(self._do, lesson)
        return lesson.done

    def _do(self, lesson: _Lesson) -> None:
        """Learn a lesson whose teacher has not gone, and settle it."""
        found: Outcome | Exception = Outcome()
        data = lesson.data  # taken first: it goes when the lesson is cancelled
        if not lesson.done.cancelled():
            try:
                found = self._teach(data, lesson.label, lesson.user, lesson.instead_of)
            except Exception as error:
                found = error
        lesson.done.get_loop().call_soon_threadsafe(self._settle, lesson, found)

    def _settle(self, lesson: _Lesson, found: Outcome | Exception) -> None:
        self.n_waiting -= 1
        lesson.settle(found)

    def _teach(self, data: bytes, label: str | None, user: str, instead_of: str | None) -> Outcome:
        if self._model is None:
            self._model = self._opened()
        model = self._model
        if self._users is not None:
            model = self._users.opened(user, model.settings)
            if label is None and not model.is_there:
                return Outcome(unknown=1)  # without files for a user who has taught nothing
        if instead_of is not None and model.filed_now(data).label != instead_of:
            return Outcome(already_known=1)
        item = Item("-", label, data, told=label is not None)  # a person has told it
        day = int(time() // 86_400)
        if label is None:
            return model.unlearn([item], day=day)
        return model.learn([item], day=day, classes=[label])

    def end(self) -> None:
        """End the thread, after it has learned what waits."""
        self._thread.shutdown()
