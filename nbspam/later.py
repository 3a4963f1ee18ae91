"""A result that is computed meanwhile, and waited for when it is asked for.

Secret: how a thread's result or error is brought back.
"""

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Later(Generic[Result]):
    """What a function will have returned; it is called at once, in a thread of its own."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> Result:
        """Return the function's result, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        if not self._results:  # in a process that was forked meanwhile, without the thread
            self._run()
            return self.result()
        return self._results[0]
