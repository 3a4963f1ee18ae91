"""Messages that wait: each is handed to a thread, and waits for what becomes of it.

Secret: what is left of a message whose client has gone: a place in the queue, without its bytes.
"""

import asyncio
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Waiting(Generic[Result]):
    """A message that waits; made and settled in the event loop's thread.

    user: whose message it is, from `users.known_as`; "" for nobody's.
    """

    def __init__(self, data: bytes, user: str) -> None:
        self.data = data
        self.user = user
        self.done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(self._let_go)

    def _let_go(self, _: "asyncio.Future[Result]") -> None:
        self.data = b""

    def settle(self, result: Result | Exception) -> None:
        """Give it its result, unless its client has gone or has waited too long."""
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)
