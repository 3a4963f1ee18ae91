"""The routes of the page: the handler of each address.

Every request passes the gate first: it comes from a page of ours or by a link, its browser has
logged in, and its form is one of that session.  The session, a signed cookie, alone decides the
mail and model of a request.  Requests are read by the same connection code as rspamd's clients,
within the same bounds.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic, time
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbspam.errors import NbspamError
from nbspam.printing import printable
from nbspam.server.choices import Address, stranger
from nbspam.server.connection import Desk
from nbspam.server.page import pages
from nbspam.server.page.mailbox import NoMailError, RemovedError
from nbspam.server.page.pages import PAGE_SIZE, PageBar, View, guards, view_of
from nbspam.server.page.reviewer import Reviewer
from nbspam.server.rspamd import HttpConnection

SESSION_SECONDS = 30 * 86_400
MAX_FORM = 10_000  # bytes
_MAX_FIELDS = 20
_MAX_SUBJECT = 80  # characters in a session, which a cookie of 4 KB holds
_OF_SITE = {"/", "/server", "/logout"}  # for the site, if users have pages of their own
_AFTER_LOGIN = re.compile(r"/(message|doubtful|course|server)?(\?.*)?")  # nowhere else
_WRONG = "This is not the token of this server, or not its newest."
_EARLIER = "This form is from an earlier session, so nothing was done."
_ENDED = "You are not logged in any more, so nothing was done."


def page_app(desk: Desk, port: int) -> Starlette:
    """Return the application that answers browsers.

    port: of the page, for the name of its cookie: browsers send cookies to all ports of a host.
    """
    assert desk.access is not None
    sessions = Middleware(
        SessionMiddleware,
        secret_key=desk.access.secret,
        session_cookie=f"nbspam-{port}",
        max_age=SESSION_SECONDS,
        same_site="strict",
    )
    app = Starlette(
        routes=[
            Route("/", show_mail),
            Route("/message", show_message),
            Route("/doubtful", show_doubtful),
            Route("/course", show_course),
            Route("/server", show_counts),
            Route("/login", log_in, methods=["POST"]),
            Route("/logout", log_out, methods=["POST"]),
            Route("/tell", tell, methods=["POST"]),
            Route("/list", list_sender, methods=["POST"]),
        ],
        middleware=[sessions, Middleware(gate)],
        exception_handlers=dict.fromkeys((HTTPException, NbspamError, OSError), trouble),
    )
    app.router.redirect_slashes = False  # such an answer would not be one of ours
    app.state.desk = desk
    return app


# ---- the gate ----


def gate(app: ASGIApp) -> ASGIApp:
    """Return an application that answers requests which may not pass, and passes on the others."""

    async def gated(scope: Scope, receive: Receive, send: Send) -> None:
        answer = await refusal(Request(scope, receive))
        await (answer or app)(scope, receive, send)

    return gated


async def refusal(request: Request) -> Response | None:
    """Return the answer to a request that may not pass, None if it may.

    The fields of a form are in the request's state from now on.
    """
    # Before the URL is taken apart: Starlette 1.0 fails on a Host that is no host.
    why = stranger(request.method, request.headers, Address(*request.scope["server"]))
    if why is not None:
        desk_of(request).tally.add("trouble forbidden")
        return line(HTTPStatus.FORBIDDEN, why)
    path, session, posts = request.url.path, request.session, request.method == "POST"
    if request.method not in ("GET", "POST"):
        return line(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method[:20]}: GET or POST it")
    form = request.state.form = fields_of(await request.body()) if posts else {}
    if form is None:
        return line(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a form is smaller")
    if path == "/login" if posts else path == "/" and "token" in request.query_params:
        return None
    user = session.get("user")
    if user is None or (user and not has_users(request)):
        return asked_to_log_in(request, _ENDED if posts else "")
    given = form.get("form", "").encode()
    if posts and not secrets.compare_digest(given, session["form"].encode()):
        return forbidden(request, _EARLIER)
    if user and path == "/server":
        return forbidden(request, "The server's first line has the token that shows its counts.")
    if not user and has_users(request) and path not in _OF_SITE:
        return forbidden(request, "Mail is for its user only. Log in as one.")
    return None


def fields_of(data: bytes) -> dict[str, str] | None:
    """Return the fields of a form by name, none if they are too many; None if it is too large."""
    if len(data) > MAX_FORM:
        return None
    try:
        text = data.decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        return {}


# ---- of a request, and of the page that its form is on ----


def desk_of(request: Request) -> Desk:
    """Return the state that all connections of this worker share."""
    desk: Desk = request.app.state.desk
    return desk


def reviewer_of(request: Request) -> Reviewer:
    """Return the reviewer of mailboxes; raises HTTPException if no mailbox is on the page."""
    reviewer = desk_of(request).reviewer
    if reviewer is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return reviewer


def has_users(request: Request) -> bool:
    """Return whether users have pages of their own."""
    reviewer = desk_of(request).reviewer
    return reviewer is not None and reviewer.mailboxes.has_users


def bar_of(request: Request) -> PageBar:
    """Return the bar of a page; it states once the effect of the last form."""
    session, has_mail = request.session, desk_of(request).reviewer is not None
    done = session.pop("done", "")
    return PageBar(
        session["form"], request.url.path, has_mail, has_users(request), session["user"], done
    )


def origin_of(form: Mapping[str, str]) -> View:
    """Return the list from which a form comes."""
    return view_of(dict(parse_qsl(form.get("back", ""), keep_blank_values=True)))


def address_after(form: Mapping[str, str], key: str) -> str:
    """Return the address to which a form redirects: the list or message that it came from.

    key: of the message that was taught.
    """
    view = origin_of(form)
    if "page" in form:  # it was told from the page of that message
        return view.of(form["page"])
    place = form.get("next", "")
    return f"{view.address}#{place if pages.ROW_ID.fullmatch(place) else pages.row_id(key)}"


# ---- answers ----


def html_page(text: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return a page."""
    # Names of files need not be UTF-8.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status)


def line(status: HTTPStatus, why: str) -> Response:
    """Return an answer of one line, for programs and other sites."""
    return PlainTextResponse(f"{printable(why)}\n", status)


def asked_to_log_in(request: Request, why: str) -> Response:
    """Return the page that asks for the token, then redirects to the requested page."""
    if why:
        desk_of(request).tally.add("trouble forbidden")
    wanted = request.state.form.get("next", "")
    if request.method == "GET" and "token" not in request.query_params:
        wanted = str(request.url.replace(scheme="", netloc=""))
    elif request.url.path != "/login":
        wanted = address_after(request.state.form, "").partition("#")[0]
    return html_page(pages.filled("login.html", why=why, wanted=wanted), HTTPStatus.FORBIDDEN)


def page_of_trouble(request: Request, status: HTTPStatus, why: str) -> Response:
    """Return the page of a problem, with a link back to the list where one was."""
    is_get = request.method == "GET"
    view = view_of(request.query_params) if is_get else origin_of(request.state.form)
    values = {"bar": bar_of(request), "why": why, "is_get": is_get, "view": view}
    return html_page(pages.filled("trouble.html", **values), status)


def forbidden(request: Request, why: str) -> Response:
    """Return such a page for a request that is refused, and count it."""
    desk_of(request).tally.add("trouble forbidden")
    return page_of_trouble(request, HTTPStatus.FORBIDDEN, why)


async def page_shown(request: Request, write: Callable[..., str], *values: object) -> Response:
    """Return a page, which a thread writes: a long one takes a while."""
    return html_page(await asyncio.to_thread(write, bar_of(request), *values))


_UNKNOWN = {
    HTTPStatus.NOT_FOUND: "There is no such page.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address only takes forms of the page.",
}
_NO_MESSAGE = "This message is not there any more: it was moved or deleted in the meantime."
_NO_SENDER = f"{_NO_MESSAGE} Or no list can hold its sender."
_LISTED = {
    "allow": "{} is allowed from now on: certain if your mail server says that the"
    " sender is genuine, else a hint.",
    "deny": "{} is denied from now on.",
    "unlist": "{} is on no list any more.",
}
_NO_LESSON = (
    "There is nothing to take back: that was done before, the message was marked again since, or"
    " it is not there any more."
)


async def trouble(request: Request, error: Exception) -> Response:
    """Return the page that names the error, with a link back."""
    if isinstance(error, RemovedError):
        return asked_to_log_in(request, "You have neither a mailbox nor a model here any more.")
    if isinstance(error, NoMailError):
        status = HTTPStatus.OK if request.url.path == "/" else HTTPStatus.NOT_FOUND
        return html_page(pages.filled("nomail.html", bar=bar_of(request)), status)
    if isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        why = error.detail if error.detail != status.phrase else _UNKNOWN[status]
        return page_of_trouble(request, status, why)
    desk = desk_of(request)
    desk.tally.add("trouble failed")
    desk.log.failed("a request of the page failed", error)
    return page_of_trouble(request, HTTPStatus.INTERNAL_SERVER_ERROR, f"This failed: {error}")


# ---- logging in and out ----


async def log_in(request: Request) -> Response:
    """Begin a session if the token is ours, and lead to the wanted page."""
    access, form = desk_of(request).access, request.state.form
    assert access is not None
    token, wanted = form.get("token", "").strip(), form.get("next", "")
    user = access.user_of(request.query_params.get("token", token))
    if user is None or (user and not has_users(request)):
        return asked_to_log_in(request, _WRONG)
    request.session.clear()
    request.session.update(user=user, form=secrets.token_urlsafe(16))
    place = wanted if _AFTER_LOGIN.fullmatch(wanted) else "/"
    return RedirectResponse(place, HTTPStatus.SEE_OTHER)


async def log_out(request: Request) -> Response:
    """End the session."""
    request.session.clear()
    return RedirectResponse("/", HTTPStatus.SEE_OTHER)


# ---- what is shown ----


async def show_mail(request: Request) -> Response:
    """Show the mail or, in the site's session, the users who have pages of their own."""
    query, reviewer = request.query_params, desk_of(request).reviewer
    if "token" in query:
        return await log_in(request)
    if reviewer is None:
        return await show_counts(request)
    user = request.session["user"]
    if reviewer.mailboxes.has_users and not user:
        access, people = desk_of(request).access, await reviewer.run(reviewer.mailboxes.people)
        assert access is not None
        return await page_shown(request, pages.people_page, people, access.token_of)
    view = view_of(query)
    listing = await reviewer.listing(user, view.wanted, view.start, PAGE_SIZE)
    if view.start and not listing.rows:  # an old link, or the last message of a page was marked
        return RedirectResponse(view.at(0).address, HTTPStatus.SEE_OTHER)
    return await page_shown(request, pages.list_page, view, listing)


async def show_message(request: Request) -> Response:
    """Show one message, and why it has its verdict."""
    user, query = request.session["user"], request.query_params
    reading = await reviewer_of(request).reading(user, query.get("key", ""))
    if reading is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, _NO_MESSAGE)
    settings = desk_of(request).judge.settings
    return await page_shown(request, pages.message_page, view_of(query), reading, settings)


async def show_doubtful(request: Request) -> Response:
    """Show the messages that were probably learned in the wrong class."""
    found = await reviewer_of(request).doubts(request.session["user"])
    return await page_shown(request, pages.doubtful_page, found)


async def show_course(request: Request) -> Response:
    """Show how well the model does."""
    found = await reviewer_of(request).course(request.session["user"])
    return await page_shown(request, pages.course_page, found)


async def show_counts(request: Request) -> Response:
    """Show the server's counts."""
    desk = desk_of(request)
    age = time() - desk.judge.model_time
    return html_page(pages.counts_page(bar_of(request), desk.tally, age))


# ---- lessons, and lists of senders ----


async def tell(request: Request) -> Response:
    """Teach the class of a message, or take a lesson back, and lead to the next page."""
    # A lesson goes on when the browser has gone.
    return await asyncio.shield(taught(request, monotonic()))


async def taught(request: Request, began: float) -> Response:
    """Learn a lesson, or take it back; began: on the monotonic clock, seconds."""
    form, user, reviewer = request.state.form, request.session["user"], reviewer_of(request)
    label = next((each for each in ("spam", "ham") if each in form), None)
    is_doubtful = origin_of(form).is_doubtful
    if label is not None:
        lesson = await reviewer.tell(user, form[label], label, is_doubtful)
    elif pages.SHORT_NUMBER.fullmatch(form.get("undo", "")):
        lesson = await reviewer.undo(user, int(form["undo"]))
    else:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "This form says neither spam, ham nor undo.")
    if lesson is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, _NO_MESSAGE if label else _NO_LESSON)
    desk_of(request).note_lesson(user, lesson.label, lesson.outcome, monotonic() - began)
    if lesson.unmoved is not None:
        why = f"The message was learned as {label}, but not moved: {lesson.unmoved}"
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, why)
    if label is None or is_doubtful:  # the list of mail says what was learned last
        about = lesson.subject[:_MAX_SUBJECT] or "(no subject)"
        what = "Taken back" if label is None else f"Learned as {label}"
        request.session["done"] = f"{what}: {about}"
    return RedirectResponse(address_after(form, lesson.key), HTTPStatus.SEE_OTHER)


async def list_sender(request: Request) -> Response:
    """Allow or deny the sender of a message, or take that back, and lead to the message."""
    form, user = request.state.form, request.session["user"]
    verb = next((each for each in _LISTED if each in form), None)
    if verb is None:
        raise HTTPException(
            HTTPStatus.BAD_REQUEST, "This form says neither allow nor deny nor unlist."
        )
    listed = None if verb == "unlist" else verb
    sender = await asyncio.shield(reviewer_of(request).list_sender(user, form[verb], listed))
    if sender is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, _NO_SENDER)
    desk_of(request).log.answered(user=user, lists=f"{verb} {sender}")
    back = "" if listed is None else " “Take off the list” takes it back."
    request.session["done"] = _LISTED[verb].format(sender[:_MAX_SUBJECT]) + back
    return RedirectResponse(address_after(form, form[verb]), HTTPStatus.SEE_OTHER)


_PLAIN = "text/plain; charset=utf-8"


class WebConnection(HttpConnection):
    """A browser."""

    is_visitor = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in."""
        super().connection_made(transport)
        self.server = transport.get_extra_info("sockname")[:2]
        if self.desk.page is None:
            self.desk.page = page_app(self.desk, self.server[1])

    def keep(self, data: bytes) -> None:
        """Keep a piece of a form, as far as it tells that the form is too large."""
        super().keep(data[: MAX_FORM + 1 - self.size])

    def handle(self, method: str, path: str) -> None:
        """Have a request answered; stop if the browser disconnects."""
        if self.crowded:
            self.trouble("busy")
        else:
            self.wait(asyncio.ensure_future(self.answered(method, path)), self.reply)

    async def answered(self, method: str, path: str) -> list[Message]:
        """Return the answer of the application (ASGI 3.0) to a request."""
        assert self.desk.page is not None
        # Our cookie has no backslash; Python 3.11.7 takes 15 s for 60,000 of them (CVE-2024-7592).
        cookies = self.headers.get("cookie", "").replace("\\", "")
        headers = {**self.headers, "cookie": cookies}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "root_path": "",
            "query_string": self.query,
            "headers": [(k.encode("latin-1"), v.encode()) for k, v in headers.items()],
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
        self.send(HTTPStatus(start["status"]), body, kind, *more)

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line."""
        self.send(status, f"{printable(why)}\n".encode("utf-8", "backslashreplace"), _PLAIN)

    def send(self, status: HTTPStatus, body: bytes, kind: str, *more: str, why: str = "") -> None:
        """Answer, with the headers that forbid a page everything else."""
        lines = (f"{name}: {value}" for name, value in guards().items())
        super().send(status, body, kind, *lines, *more, why=why)
