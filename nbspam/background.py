"""A function run in a thread; `result` waits for it."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Later(threading.Thread, Generic[Result]):
    """A thread that calls a function at once and keeps what it returns or raises."""

    # Not a concurrent.futures.Future: that import takes as long as classifying a message.

    def __init__(self, function: Callable[[], Result]) -> None:
        super().__init__()
        self._function = function
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Call the function; `threading.Thread` calls this method in the new thread."""
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error
        del self._function  # what it holds may be large

    def result(self) -> Result:
        """Wait for the function; return its result, or raise what it raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._result


def _wait() -> None:
    for thread in threading.enumerate():
        if isinstance(thread, Later) and thread is not threading.current_thread():
            thread.join()


# A forked process inherits no threads, so their results must be there before the fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
