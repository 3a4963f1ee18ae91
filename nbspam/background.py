"""A result that is computed meanwhile, and waited for when it is asked for.

Secret: how a thread's result or error is brought back.
"""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Later(threading.Thread, Generic[Result]):
    """What a function will have returned; it is called at once, in a thread of its own.

    Where the system allows no more threads, the caller waits for it instead.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        super().__init__()
        self._function: Callable[[], Result] | None = function
        self._results: list[Result] = []
        self._error: BaseException | None = None
        try:
            self.start()
        except RuntimeError:
            self.run()

    def run(self) -> None:
        """Call the function, once."""
        assert self._function is not None
        try:
            self._results.append(self._function())
        except BaseException as error:
            self._error = error
        self._function = None  # what it holds may be large

    def result(self) -> Result:
        """Return the function's result, or raise what it raised."""
        if self.is_alive():
            self.join()
        if self._error is not None:
            raise self._error
        return self._results[0]


def _wait() -> None:
    for thread in threading.enumerate():
        if isinstance(thread, Later) and thread is not threading.current_thread():
            thread.join()


# A forked process has none of the other threads: it must find what they were to compute.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
