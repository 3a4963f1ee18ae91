"""The page over HTTP: who may see it, logs in and out, and what each address shows.

    GET  /?token=...   logs in, and leads to /
    GET  /             what the server has done; without a session, the question for the token
    POST /login        logs in by the token of the form
    POST /logout       logs out

Secret: which requests are answered with which page.
"""

from collections.abc import Mapping
from http import HTTPStatus
from time import time
from urllib.parse import parse_qsl

from nbspam.server.addresses import Address
from nbspam.server.desk import Desk
from nbspam.server.protocols.http import HttpConnection
from nbspam.server.review.access import SESSION_SECONDS, stranger
from nbspam.server.review.pages import counts_page, guards, login_page

_MAX_FORM = 10_000  # bytes
_MAX_FIELDS = 20
_PAGE = "text/html; charset=utf-8"
_WRONG = "This is not the token of this server, or not its newest."


class WebConnection(HttpConnection):
    """A browser."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        assert desk.policy.access is not None
        self.access = desk.policy.access

    @property
    def address(self) -> Address:
        """Where this connection was accepted."""
        host, port, *_ = self.transport.get_extra_info("sockname")
        return Address(host, port)

    # ---- who asks ----

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers send those of all ports of a host to each of them."""
        return f"nbspam-{self.address.port}"

    @property
    def session(self) -> str | None:
        """The session of the browser, None if it has not logged in."""
        for pair in self.headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.cookie and self.access.session_user(value, time()) == "":
                return value
        return None

    def log_in(self, token: str) -> None:
        """Begin a session, if the token is ours."""
        if self.access.user_of(token) != "":
            self.desk.tally.add("trouble forbidden")
            self.page(login_page(_WRONG), HTTPStatus.FORBIDDEN)
            return
        self.lead_home(self.access.new_session(time(), ""), SESSION_SECONDS)

    def lead_home(self, session: str, seconds: int) -> None:
        """Lead to `/` with a session that the browser keeps for so many seconds."""
        value = f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        more = (*guards(), "Location: /", f"Set-Cookie: {value}")
        self.send(HTTPStatus.SEE_OTHER, b"", _PAGE, more)

    # ---- answering ----

    def handle(self, method: str, path: str) -> None:
        """Answer a request of our own pages, and refuse others."""
        why = stranger(method, self.headers, self.address)
        if self.crowded:
            self.trouble("busy")
        elif why is not None:
            self.forbid(why)
        elif method == "GET":
            self.show(path)
        elif method == "POST":
            self.take(path)
        else:
            self.stays = False  # the answer to HEAD would have no body
            self.fail(HTTPStatus.METHOD_NOT_ALLOWED, f"{method[:20]}: GET or POST it")

    def show(self, path: str) -> None:
        """Answer GET."""
        query = _fields(self.query)
        session = self.session
        if path == "/" and "token" in query:
            self.log_in(query["token"])
        elif session is None:
            self.page(login_page(), HTTPStatus.FORBIDDEN)
        elif path == "/":
            desk = self.desk
            age = time() - desk.judge.model_time
            self.page(counts_page(desk.tally, self.access.form_token(session), age))
        else:
            self.fail(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")

    def take(self, path: str) -> None:
        """Answer POST."""
        if self.size > _MAX_FORM:
            self.fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a form is smaller")
            return
        form, session = _fields(self.message()), self.session
        if path == "/login":
            self.log_in(form.get("token", "").strip())
        elif session is None:
            self.forbid("not logged in, or no longer; open / and log in")
        elif not self.access.is_form_token(form.get("form", ""), session):
            self.forbid("not a form of this session; open / again")
        elif path == "/logout":
            self.lead_home("", 0)
        else:
            self.fail(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")

    def forbid(self, why: str) -> None:
        """Refuse who may not ask."""
        self.desk.tally.add("trouble forbidden")
        self.fail(HTTPStatus.FORBIDDEN, why)

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line."""
        self.send(status, f"{why}\n".encode(), "text/plain; charset=utf-8", guards())

    def page(self, text: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Answer with a page."""
        self.send(status, text.encode("utf-8", "backslashreplace"), _PAGE, guards())


def _fields(data: bytes) -> Mapping[str, str]:
    """Return the fields of a form or a query by name; none if they are too many."""
    try:
        text = data.decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        return {}
