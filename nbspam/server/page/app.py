"""The page over HTTP: who may see it, logs in and out, and what each address shows.

    GET  /?token=...     logs in, and leads to /
    GET  /               the mail; without a session, the question for the token; for the site, if
                         users have pages of their own, the list of users
    GET  /message?key=K  one message, and why it has its verdict
    GET  /doubtful       messages that were probably learned in the wrong class
    GET  /course         how well the model does
    GET  /server         the server's counts
    POST /login          logs in by the token of the form
    POST /logout         logs out
    POST /tell           teaches the class of a message, or takes a lesson back

The session alone says whose mail and model a request is about.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from time import time
from typing import NamedTuple
from urllib.parse import parse_qsl

from nbspam.printing import printable
from nbspam.server.addresses import Address
from nbspam.server.desk import Desk
from nbspam.server.page.access import SESSION_SECONDS, stranger
from nbspam.server.page.mailbox import NoMailError, RemovedError
from nbspam.server.page.pages import (
    PAGE_SIZE,
    PageBar,
    View,
    counts_page,
    course_page,
    doubtful_page,
    guards,
    is_row_id,
    list_page,
    login_page,
    message_page,
    no_mail_page,
    people_page,
    row_id,
    view_of,
)
from nbspam.server.page.reviewer import Reviewer
from nbspam.server.rspamd import HttpConnection

_OF_SITE = {"/", "/server"}  # what the site sees, if users have pages of their own
_MAX_DIGITS = 9
_MAX_FORM = 10_000  # bytes
_MAX_FIELDS = 20
_WRONG = "This is not the token of this server, or not its newest."
_REMOVED = "You have neither a mailbox nor a model here any more."


class Session(NamedTuple):
    """A browser that has logged in."""

    text: str
    user: str  # "" for the site


class PageAnswer(NamedTuple):
    """An answer to a browser."""

    text: str
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/html; charset=utf-8"
    headers: tuple[str, ...] = ()  # further ones than those of all answers


class WebConnection(HttpConnection):
    """A browser."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        assert desk.access is not None
        self.access = desk.access

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
        """Keep a piece of a form; anything larger than a form is refused, and not kept."""
        if self.size + len(data) > _MAX_FORM:
            self.size += len(data)
        else:
            super().keep(data)

    @property
    def address(self) -> Address:
        """The address that accepted this connection."""
        host, port, *_ = self.transport.get_extra_info("sockname")
        return Address(host, port)

    @property
    def has_users(self) -> bool:
        """Whether users have pages of their own."""
        reviewer = self.desk.reviewer
        return reviewer is not None and reviewer.mailboxes.has_users

    # ---- sessions ----

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
        """Return whether a user's token or session may be used."""
        return user == "" or self.has_users

    def logged_in(self, token: str) -> PageAnswer:
        """Begin a session, if the token is ours."""
        user = self.access.user_of(token)
        if user is None or not self.admits(user):
            return self.refused(_WRONG)
        return self.led_home(self.access.new_session(time(), user), SESSION_SECONDS)

    def led_home(self, session: str, seconds: int) -> PageAnswer:
        """Lead to `/` with a session that the browser keeps for so many seconds."""
        value = f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        return _led_to("/", f"Set-Cookie: {value}")

    def refused(self, why: str) -> PageAnswer:
        """Refuse a token or a session, and ask for another token."""
        self.desk.tally.add("trouble forbidden")
        return PageAnswer(login_page(why), HTTPStatus.FORBIDDEN)

    def forbidden(self, why: str) -> PageAnswer:
        """Refuse a request."""
        self.desk.tally.add("trouble forbidden")
        return _line(HTTPStatus.FORBIDDEN, why)

    # ---- requests ----

    def handle(self, method: str, path: str) -> None:
        """Answer a request, at once or when its page is ready."""
        if self.crowded:
            self.trouble("busy")
            return
        answer = self.answer_to(method, path)
        if isinstance(answer, PageAnswer):
            self.reply(answer)
        else:  # dropped if the browser goes
            self.wait(asyncio.ensure_future(answer), self.reply)

    def reply(self, answer: PageAnswer) -> None:
        """Send an answer."""
        data = answer.text.encode("utf-8", "backslashreplace")
        self.send(answer.status, data, answer.kind, (*guards(), *answer.headers))

    def fail(self, status: HTTPStatus, why: str) -> None:
        """Answer with one line."""
        self.reply(_line(status, why))

    def answer_to(self, method: str, path: str) -> PageAnswer | Awaitable[PageAnswer]:
        """Answer a request of our own pages, and refuse others."""
        why = stranger(method, self.headers, self.address)
        if why is not None:
            return self.forbidden(why)
        if method == "GET":
            return self.get(path, _fields(self.query))
        if method == "POST":
            return self.post(path)
        self.stays = False  # the answer to HEAD would have no body
        return _line(HTTPStatus.METHOD_NOT_ALLOWED, f"{method[:20]}: GET or POST it")

    def get(self, path: str, query: Mapping[str, str]) -> PageAnswer | Awaitable[PageAnswer]:
        """Answer GET."""
        session, reviewer = self.session, self.desk.reviewer
        if path == "/" and "token" in query:
            return self.logged_in(query["token"])
        if session is None:
            return PageAnswer(login_page(), HTTPStatus.FORBIDDEN)
        if (why := self.barred(session, path)) is not None:
            return self.forbidden(why)
        bar = self.bar(session, path)
        if path == "/server" or (path == "/" and reviewer is None):
            age = time() - self.desk.judge.model_time
            return PageAnswer(counts_page(bar, self.desk.tally, age))
        if reviewer is None:
            return _unknown(path)
        if path == "/" and self.has_users and not bar.user:
            return self.people(reviewer, bar)
        if path == "/":
            return self.or_no_mail(bar, self.mail(reviewer, bar, view_of(query)))
        if path == "/message":
            return self.or_no_mail(bar, self.message_of(reviewer, bar, query))
        if path == "/course":
            return self.or_no_mail(bar, self.course(reviewer, bar))
        if path == "/doubtful":
            return self.or_no_mail(bar, self.doubtful(reviewer, bar))
        return _unknown(path)

    def post(self, path: str) -> PageAnswer | Awaitable[PageAnswer]:
        """Answer POST."""
        if self.size > _MAX_FORM:
            return _line(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a form is smaller")
        form, session, reviewer = _fields(self.message()), self.session, self.desk.reviewer
        if path == "/login":
            return self.logged_in(form.get("token", "").strip())
        if session is None:
            return self.forbidden("not logged in, or no longer; open / and log in")
        if not self.access.is_form_token(form.get("form", ""), session.text):
            return self.forbidden("not a form of this session; open / again")
        if path == "/logout":
            return self.led_home("", 0)
        if path != "/tell" or reviewer is None:
            return _unknown(path)
        if (why := self.barred(session, path)) is not None:
            return self.forbidden(why)
        bar = self.bar(session, path)
        # A lesson goes on when the browser has gone.
        return self.or_no_mail(bar, asyncio.shield(self.tell(reviewer, bar, form)))

    def barred(self, session: Session, path: str) -> str | None:
        """Return why a session may not see a page, None if it may.

        If users have pages of their own, the site sees nobody's mail, and users see nothing else.
        """
        if session.user and path == "/server":
            return "what the server does is for the token in its first line"
        if not session.user and self.has_users and path not in _OF_SITE:
            return "mail is for its user only; log in as one"
        return None

    def bar(self, session: Session, path: str) -> PageBar:
        """Return the bar of a page."""
        form, has_mail = self.access.form_token(session.text), self.desk.reviewer is not None
        return PageBar(form, path, has_mail, self.has_users, session.user)

    # ---- mail ----

    async def or_no_mail(self, bar: PageBar, answer: Awaitable[PageAnswer]) -> PageAnswer:
        """Return an answer, or the page of a user without mail."""
        try:
            return await answer
        except NoMailError:
            status = HTTPStatus.OK if bar.here == "/" else HTTPStatus.NOT_FOUND
            return PageAnswer(no_mail_page(bar), status)
        except RemovedError:
            return self.refused(_REMOVED)

    async def people(self, reviewer: Reviewer, bar: PageBar) -> PageAnswer:
        """Return the list of users."""
        found = await reviewer.run(reviewer.mailboxes.people)
        return PageAnswer(await reviewer.run(people_page, bar, found, self.access.token_of))

    async def mail(self, reviewer: Reviewer, bar: PageBar, view: View) -> PageAnswer:
        """Return a list of messages."""
        listing = await reviewer.listing(bar.user, view.wanted, view.start, PAGE_SIZE)
        return PageAnswer(await reviewer.run(list_page, bar, view, listing))

    async def message_of(
        self, reviewer: Reviewer, bar: PageBar, query: Mapping[str, str]
    ) -> PageAnswer:
        """Return one message with its evidence."""
        reading = await reviewer.reading(bar.user, query.get("key", ""))
        if reading is None:
            return _GONE
        settings, view = self.desk.judge.settings, view_of(query)
        return PageAnswer(await reviewer.run(message_page, bar, view, reading, settings))

    async def course(self, reviewer: Reviewer, bar: PageBar) -> PageAnswer:
        """Return the model's course."""
        found = await reviewer.course(bar.user)
        return PageAnswer(await reviewer.run(course_page, bar, found))

    async def doubtful(self, reviewer: Reviewer, bar: PageBar) -> PageAnswer:
        """Return the doubtful messages."""
        found = await reviewer.doubts(bar.user)
        return PageAnswer(await reviewer.run(doubtful_page, bar, found))

    async def tell(self, reviewer: Reviewer, bar: PageBar, form: Mapping[str, str]) -> PageAnswer:
        """Learn a lesson, or take it back, and lead to the next page."""
        label = next((each for each in ("spam", "ham") if each in form), None)
        if label is not None:
            lesson = await reviewer.tell(bar.user, form[label], label, "doubtful" in form)
        elif form.get("undo", "").isdecimal() and len(form["undo"]) <= _MAX_DIGITS:
            lesson = await reviewer.undo(bar.user, int(form["undo"]))
        else:
            return _line(HTTPStatus.BAD_REQUEST, "neither spam nor ham nor undo")
        if lesson is None:
            return _GONE
        self.note_lesson(bar.user, lesson.label, lesson.outcome)
        if lesson.unmoved is not None:
            why = f"learned as {lesson.label}, but not moved: {lesson.unmoved}"
            return _line(HTTPStatus.SERVICE_UNAVAILABLE, why)
        return _led_to(_next_address(form, lesson.key))


def _line(status: HTTPStatus, why: str) -> PageAnswer:
    """Return an answer of one line."""
    return PageAnswer(f"{printable(why)}\n", status, "text/plain; charset=utf-8")


# A message that has gone, or whose lesson was undone already.
_GONE = _line(HTTPStatus.NOT_FOUND, "not there any more; go back, and open the list again")


def _unknown(path: str) -> PageAnswer:
    return _line(HTTPStatus.NOT_FOUND, f"{path[:100]}: not known here")


def _led_to(address: str, *headers: str) -> PageAnswer:
    """Return an answer that leads to one of our own pages."""
    return PageAnswer("", HTTPStatus.SEE_OTHER, headers=(f"Location: {address}", *headers))


def _next_address(form: Mapping[str, str], key: str) -> str:
    """Return where a form leads next: to the list or the message that it came from.

    key: of the message that was taught.
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
