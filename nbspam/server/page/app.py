"""The page's connections: requests of browsers, answered by the application of `routes`.

They are read by the connection that rspamd's clients have, within the same bounds.
"""

import asyncio
from http import HTTPStatus
from urllib.parse import unquote

from starlette.types import Message

from nbspam.printing import printable
from nbspam.server.page.pages import guards
from nbspam.server.page.routes import MAX_FORM, page_app
from nbspam.server.rspamd import HttpConnection

_PLAIN = "text/plain; charset=utf-8"


class WebConnection(HttpConnection):
    """A browser."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in."""
        super().connection_made(transport)
        self.desk.visitors |= {self} & self.desk.connections
        self.server = transport.get_extra_info("sockname")[:2]
        if self.desk.page is None:
            self.desk.page = page_app(self.desk, self.server[1])

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(error)
        self.desk.visitors.discard(self)

    def crowd(self) -> tuple[int, int]:
        """Return how many other browsers are connected, and how many may be."""
        return len(self.desk.visitors), self.desk.limits.visitors

    def keep(self, data: bytes) -> None:
        """Keep a piece of a form, as far as it tells that the form is too large."""
        super().keep(data[: MAX_FORM + 1 - self.size])

    def handle(self, method: str, path: str) -> None:
        """Have a request answered; that is broken off if the browser goes."""
        self.stays = self.stays and method in ("GET", "POST")  # HEAD is answered with a body
        if self.crowded:
            self.trouble("busy")
        else:
            self.wait(asyncio.ensure_future(self.answered(method, path)), self.reply)

    async def answered(self, method: str, path: str) -> list[Message]:
        """Return the answer of the application (ASGI 3.0) to a request."""
        assert self.desk.page is not None
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "root_path": "",
            "query_string": self.query,
            "headers": [(k.encode("latin-1"), v.encode()) for k, v in self.headers.items()],
            "server": self.server,
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": self.message()}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.desk.page(scope, receive, send)
        return sent

    def reply(self, sent: list[Message]) -> None:
        """Send an answer."""
        start, *parts = sent
        headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
        kind = dict(headers).get("content-type", _PLAIN)
        more = [f"{n}: {v}" for n, v in headers if n not in ("content-type", "content-length")]
        body = b"".join(part["body"] for part in parts)
        self.send(HTTPStatus(start["status"]), body, kind, more)

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line."""
        more = [f"{name}: {value}" for name, value in guards().items()]
        self.send(status, f"{printable(why)}\n".encode("utf-8", "backslashreplace"), _PLAIN, more)
