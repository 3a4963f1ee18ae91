"""The page over HTTP: who may see it, logs in and out, and what each address shows.

    GET  /?token=...     logs in, and leads to /
    GET  /               the mail; without a session, the question for the token; of the site, if
                         users have pages of their own, the list of them
    GET  /message?key=K  one message, and why it has its verdict
    GET  /doubtful       messages that were probably learned in the wrong class
    GET  /course         how the model is doing
    GET  /server         what the server has done
    POST /login          logs in by the token of the form
    POST /logout         logs out
    POST /tell           teaches what a message is, or takes that back

Whose mail and model it is about, the session says, and nothing else in a request.

Secret: which requests are answered with which page.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from time import time
from typing import NamedTuple
from urllib.parse import parse_qsl

from nbspam.printing import printable
from nbspam.server.addresses import Address
from nbspam.server.desk import Desk
from nbspam.server.protocols.http import HttpConnection
from nbspam.server.review.access import SESSION_SECONDS, stranger
from nbspam.server.review.pages import (
    PAGE_SIZE,
    Bar,
    counts_page,
    course_page,
    doubtful_page,
    guards,
    list_page,
    login_page,
    message_page,
    no_mail_page,
    people_page,
)
from nbspam.server.review.people import NoMailError, People, RemovedError
from nbspam.server.review.views import View, is_row_id, row_id, view_of
from nbspam.server.threads.reviewing import Reviewer

_OF_SITE = {"/", "/server"}  # what the site sees, if users have pages of their own
_MAX_DIGITS = 9
_MAX_FORM = 10_000  # bytes
_MAX_FIELDS = 20
_PAGE = "text/html; charset=utf-8"
_WRONG = "This is not the token of this server, or not its newest."
_REMOVED = "You have neither a mailbox nor a model here any more."


class Session(NamedTuple):
    """A browser that has logged in."""

    text: str
    user: str  # "" for the site


class WebConnection(HttpConnection):
    """A browser."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        assert desk.policy.access is not None
        self.access = desk.policy.access

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in."""
        super().connection_made(transport)
        self.desk.visitors |= {self} & self.desk.connections

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(error)
        self.desk.visitors.discard(self)

    def crowd(self) -> tuple[int, int]:
        """Return how many other browsers are connected, and how many may be."""
        return len(self.desk.visitors), self.desk.limits.visitors

    def keep(self, data: bytes) -> None:
        """Keep a piece of a form; what is larger than forms is refused, and not kept."""
        if self.size + len(data) > _MAX_FORM:
            self.size += len(data)
        else:
            super().keep(data)

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
    def session(self) -> Session | None:
        """The session of the browser, None if it has not logged in."""
        for pair in self.headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            user = self.access.session_user(value, time()) if name == self.cookie else None
            if user is not None and self.admits(user):
                return Session(value, user)
        return None

    def admits(self, user: str) -> bool:
        """Return whether who has a token or a session of ours may use it."""
        return user == "" or self.desk.policy.people is not None

    def log_in(self, token: str) -> None:
        """Begin a session, if the token is ours."""
        user = self.access.user_of(token)
        if user is None or not self.admits(user):
            self.ask_for_token(_WRONG)
            return
        self.lead_home(self.access.new_session(time(), user), SESSION_SECONDS)

    def ask_for_token(self, why: str) -> None:
        """Refuse a token, or a session; why: what is wrong with it."""
        self.desk.tally.add("trouble forbidden")
        self.page(login_page(why), HTTPStatus.FORBIDDEN)

    def lead_home(self, session: str, seconds: int) -> None:
        """Lead to `/` with a session that the browser keeps for so many seconds."""
        value = f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        more = (*guards(), "Location: /", f"Set-Cookie: {value}")
        self.send(HTTPStatus.SEE_OTHER, b"", _PAGE, more)

    # ---- what is asked for ----

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
        elif self.may_see(session, path):
            self.show_page(self.bar(session, path), query)

    def may_see(self, session: Session, path: str) -> bool:
        """Return whether a page is for who has this session; if not, refuse it.

        If users have pages of their own, the site sees nobody's mail, and users see nothing else.
        """
        if session.user and path == "/server":
            self.forbid("what the server does is for the token in its first line")
        elif not session.user and self.desk.policy.people is not None and path not in _OF_SITE:
            self.forbid("mail is for its user only; log in as one")
        else:
            return True
        return False

    def show_page(self, bar: Bar, query: Mapping[str, str]) -> None:
        """Answer GET of who may see the page."""
        reviewer, people = self.desk.reviewer, self.desk.policy.people
        if bar.here == "/server" or (bar.here == "/" and reviewer is None):
            age = time() - self.desk.judge.model_time
            self.page(counts_page(bar, self.desk.tally, age))
        elif reviewer is None:
            self.unknown(bar.here)
        elif bar.here == "/" and people is not None and not bar.user:
            self.wait_for(bar, self.listed_people(reviewer, bar, people))
        elif bar.here == "/":
            self.wait_for(bar, self.listed(reviewer, bar, view_of(query)))
        elif bar.here == "/message":
            self.wait_for(bar, self.read(reviewer, bar, query))
        elif bar.here == "/course":
            self.wait_for(bar, self.course(reviewer, bar))
        elif bar.here == "/doubtful":
            self.wait_for(bar, self.doubtful(reviewer, bar))
        else:
            self.unknown(bar.here)

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
        elif not self.access.is_form_token(form.get("form", ""), session.text):
            self.forbid("not a form of this session; open / again")
        elif path == "/logout":
            self.lead_home("", 0)
        elif path == "/tell" and self.desk.reviewer is not None:
            if self.may_see(session, path):
                bar = self.bar(session, path)
                # A lesson goes on when the browser has gone.
                self.wait_for(bar, asyncio.shield(self.told(self.desk.reviewer, bar, form)))
        else:
            self.unknown(path)

    # ---- mail ----

    def wait_for(self, bar: Bar, answer: Awaitable[Callable[[], None]]) -> None:
        """Answer by what is returned; who waits no longer for a page is not looked up one."""
        task = asyncio.ensure_future(self.or_no_mail(bar, answer))
        self.wait(task, lambda answer: answer())

    async def or_no_mail(
        self, bar: Bar, answer: Awaitable[Callable[[], None]]
    ) -> Callable[[], None]:
        """Return what answers, be it that there is no mail of the user."""
        try:
            return await answer
        except NoMailError:
            status = HTTPStatus.OK if bar.here == "/" else HTTPStatus.NOT_FOUND
            return partial(self.page, no_mail_page(bar), status)
        except RemovedError:
            return partial(self.ask_for_token, _REMOVED)

    async def listed_people(
        self, reviewer: Reviewer, bar: Bar, people: People
    ) -> Callable[[], None]:
        """Return what answers with the list of users."""
        found = await reviewer.run(people.all)
        return partial(
            self.page, await reviewer.run(people_page, bar, found, self.access.token_of)
        )

    async def listed(self, reviewer: Reviewer, bar: Bar, view: View) -> Callable[[], None]:
        """Return what answers with a list of messages."""
        listing = await reviewer.listing(bar.user, view.wanted, view.start, PAGE_SIZE)
        return partial(self.page, await reviewer.run(list_page, bar, view, listing))

    async def read(
        self, reviewer: Reviewer, bar: Bar, query: Mapping[str, str]
    ) -> Callable[[], None]:
        """Return what answers with one message."""
        reading = await reviewer.reading(bar.user, query.get("key", ""))
        if reading is None:
            return self.gone
        settings = self.desk.judge.settings
        text = await reviewer.run(message_page, bar, view_of(query), reading, settings)
        return partial(self.page, text)

    async def course(self, reviewer: Reviewer, bar: Bar) -> Callable[[], None]:
        """Return what answers with how the model is doing."""
        found = await reviewer.course(bar.user)
        return partial(self.page, await reviewer.run(course_page, bar, found))

    async def doubtful(self, reviewer: Reviewer, bar: Bar) -> Callable[[], None]:
        """Return what answers with the doubtful messages."""
        found = await reviewer.doubts(bar.user)
        return partial(self.page, await reviewer.run(doubtful_page, bar, found))

    async def told(
        self, reviewer: Reviewer, bar: Bar, form: Mapping[str, str]
    ) -> Callable[[], None]:
        """Return what answers when a lesson is learned, or taken back."""
        label = next((each for each in ("spam", "ham") if each in form), None)
        if label is not None:
            lesson = await reviewer.tell(bar.user, form[label], label, "doubtful" in form)
        elif form.get("undo", "").isdecimal() and len(form["undo"]) <= _MAX_DIGITS:
            lesson = await reviewer.undo(bar.user, int(form["undo"]))
        else:
            return partial(self.fail, HTTPStatus.BAD_REQUEST, "neither spam nor ham nor undo")
        if lesson is None:
            return self.gone
        self.note_lesson(bar.user, lesson.label, lesson.outcome)
        if lesson.unmoved is not None:
            why = f"learned as {lesson.label}, but not moved: {lesson.unmoved}"
            return partial(self.fail, HTTPStatus.SERVICE_UNAVAILABLE, why)
        return partial(self.lead, _next_address(form, lesson.key))

    def gone(self) -> None:
        """Answer that a message is not there any more, or its lesson was undone already."""
        self.fail(HTTPStatus.NOT_FOUND, "not there any more; go back, and open the list again")

    # ---- answering ----

    def bar(self, session: Session, path: str) -> Bar:
        """Return the bar of a page."""
        has_mail, has_people = self.desk.reviewer is not None, self.desk.policy.people is not None
        return Bar(self.access.form_token(session.text), path, has_mail, has_people, session.user)

    def lead(self, address: str) -> None:
        """Lead to one of our own pages."""
        self.send(HTTPStatus.SEE_OTHER, b"", _PAGE, (*guards(), f"Location: {address}"))

    def forbid(self, why: str) -> None:
        """Refuse who may not ask."""
        self.desk.tally.add("trouble forbidden")
        self.fail(HTTPStatus.FORBIDDEN, why)

    def unknown(self, path: str) -> None:
        """Answer that there is no such page."""
        self.fail(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line."""
        self.send(status, f"{printable(why)}\n".encode(), "text/plain; charset=utf-8", guards())

    def page(self, text: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Answer with a page."""
        self.send(status, text.encode("utf-8", "backslashreplace"), _PAGE, guards())


def _next_address(form: Mapping[str, str], key: str) -> str:
    """Return where a form leads when it is done: to the list or the message it came from.

    key: of the message that was told about.
    """
    if "doubtful" in form:
        return "/doubtful"
    view = view_of(_fields(form.get("back", "").encode("utf-8", "replace")))
    if "page" in form:  # it was told from the page of that message
        return view.of(form["page"])
    place = form.get("next", "")
    return f"{view.address}#{place if is_row_id(place) else row_id(key)}"


def _fields(data: bytes) -> Mapping[str, str]:
    """Return the fields of a form or a query by name; none if they are too many."""
    try:
        text = data.decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        return {}
