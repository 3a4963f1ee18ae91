"""A result that is computed meanwhile, and waited for when it is asked for.

Secret: how a thread's result or error is brought back.
"""

import os
from collections.abc import Callable
from threading import Thread, current_thread
from typing import Generic, TypeVar

Result = TypeVar("Result")

_running: set[Thread] = set()


class Later(Generic[Result]):
    """What a function will have returned; it is called at once, in a thread of its own."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(function,))
        _running.add(self._thread)
        self._thread.start()

    def _run(self, function: Callable[[], Result]) -> None:
        try:
            self._results.append(function())
        except BaseException as error:
            self._error = error
        finally:
            _running.discard(self._thread)

    def result(self) -> Result:
        """Return the function's result, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]


def _wait() -> None:
    for thread in _running - {current_thread()}:
        thread.join()


# A forked process has none of the other threads: it must find what they were to compute.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
