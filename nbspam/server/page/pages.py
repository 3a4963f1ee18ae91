"""Pages: their addresses, their contents, and the headers that forbid everything else.

Anybody can write an address, so its fields are checked before they choose messages (`View`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from time import localtime, strftime, time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from nbspam.evaluation.cases import case_of
from nbspam.evaluation.report import environment, hash_of, rate
from nbspam.server.metrics import LESSONS, TROUBLES, VERDICTS, ServerTally
from nbspam.server.page.course import LATELY, Course, drawings
from nbspam.server.page.database import LIST_ORDERS, MessageFilter
from nbspam.server.page.doubtful import LEAST, DoubtSearch
from nbspam.server.page.mailbox import Person
from nbspam.settings import Settings
from nbspam.sources.items import Item

if TYPE_CHECKING:
    from nbspam.server.page.reviewer import Listing, MessageReading

PAGE_SIZE = 100  # messages
LABELS = ("unsure", "spam", "ham")
_NEWS_SECONDS = 3600  # in which a list says what was learned last
_MAX_WORDS = 200  # characters
SHORT_NUMBER = re.compile("[0-9]{1,9}")
ROW_ID = re.compile("m[0-9a-f]{12}")


class View(NamedTuple):
    """The messages that a page lists, as its address says it."""

    wanted: MessageFilter = MessageFilter()
    start: int = 0  # of how many messages before them
    is_doubtful: bool = False  # the list is that of doubtful messages

    @property
    def query(self) -> str:
        """The query of the address, "" for the newest messages."""
        wanted = self.wanted
        fields = {
            "words": wanted.words,
            "verdict": wanted.label,
            "order": wanted.order if wanted.order != MessageFilter().order else "",
            "start": self.start,
            "doubtful": int(self.is_doubtful),
        }
        return urlencode({name: value for name, value in fields.items() if value})

    @property
    def address(self) -> str:
        """The address of the list."""
        return "/doubtful" if self.is_doubtful else f"/?{self.query}" if self.query else "/"

    def of(self, key: str) -> str:
        """Return the address of a message of the list; key: any text."""
        return "/message?" + "&".join(filter(None, (urlencode({"key": key}), self.query)))

    def at(self, start: int) -> "View":
        """Return the view from another message on."""
        return self._replace(start=max(start, 0))


def view_of(fields: Mapping[str, str]) -> View:
    """Return the view that the fields of an address ask for; invalid fields are ignored."""
    label, order, start = (fields.get(name, "") for name in ("verdict", "order", "start"))
    wanted = MessageFilter(
        " ".join(fields.get("words", "")[:_MAX_WORDS].split()),
        label if label in LABELS else None,
        order if order in LIST_ORDERS else MessageFilter().order,
    )
    return View(wanted, int(start) if SHORT_NUMBER.fullmatch(start) else 0, "doubtful" in fields)


def row_id(key: str) -> str:
    """Return the identifier of a message's row in a page."""
    return "m" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class PageBar(NamedTuple):
    """The bar at the top of a page."""

    form: str  # the token of the session's forms
    here: str  # the address of the page
    has_mail: bool
    has_people: bool = False  # each user has a page of their own
    user: str = ""  # whose page it is; "" for the site's
    done: str = ""  # the effect of the last form

    @property
    def links(self) -> list[tuple[str, str]]:
        """Addresses and names of all pages."""
        mail = [("/", "Mail"), ("/doubtful", "Doubtful"), ("/course", "Over time")]
        if self.user:
            return mail
        if self.has_people:
            return [("/", "Users"), ("/server", "Server")]
        if not self.has_mail:
            return [("/", "Server")]
        return [*mail, ("/server", "Server")]


@cache
def _templates() -> Any:
    """Return the engine of templates, with the names that all templates use."""
    found: Any = environment(__package__)
    found.globals["script"] = found.loader.get_source(found, "keys.js")[0]
    found.globals |= {"labels": LABELS, "size": PAGE_SIZE}
    found.filters |= {
        "row_id": row_id,
        "moment": moment,
        "percentage": percentage,
        "percent_of": lambda share: rate(100 * share),
    }
    return found


@cache
def guards() -> dict[str, str]:
    """Return the headers of every answer.

    A page may load its own style and its script for keys, by their hashes, and post its forms to
    us; nothing else.  The referrer stays with us instead of being left out: without it browsers
    post with `Origin: null`.
    """
    values = _templates().globals
    policy = (
        f"default-src 'none'; style-src '{values['style_hash']}';"
        f" script-src '{hash_of(str(values['script']))}'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def counts_page(bar: PageBar, tally: ServerTally, model_age: float) -> str:
    """Return the page of the server's counts.

    model_age: seconds since the model was written.
    """
    return filled(
        "counts.html",
        bar=bar,
        verdicts=[(name, tally.count(name)) for name in VERDICTS],
        lessons=[(words, tally.count(f"lesson {name}")) for name, words in LESSONS.items()],
        troubles=[(words, tally.count(f"trouble {name}")) for name, words in TROUBLES.items()],
        seconds=tally.total("seconds"),
        waiting=tally.count("queue"),
        age=_ago(model_age),
    )


def people_page(bar: PageBar, people: Sequence[Person], token_of: Callable[[str], str]) -> str:
    """Return the page of users, with a link for each that logs in."""
    rows = [(each, token_of(each.name)) for each in people]
    return filled("people.html", bar=bar, rows=rows)


def list_page(bar: PageBar, view: View, listing: "Listing") -> str:
    """Return the page of messages with their verdicts."""
    last, news, age = listing.last, "", ""
    if last is not None and time() - last.at < _NEWS_SECONDS:
        news = f"Learned as {last.label}: {listing.last_subject or '(no subject)'}"
        age = _ago(time() - last.at)
    return filled("list.html", bar=bar, view=view, listing=listing, news=news, last_age=age)


def message_page(bar: PageBar, view: View, reading: "MessageReading", settings: Settings) -> str:
    """Return the page of one message; settings: of the model that explained it."""
    case, spam = None, reading.seen.probability
    if reading.explanation is not None:
        case = case_of(reading.explanation, Item("-", None, reading.data), settings)
        spam = reading.explanation.verdict.posterior["spam"]
    return filled("message.html", bar=bar, view=view, reading=reading, case=case, spam=spam)


def course_page(bar: PageBar, course: Course) -> str:
    """Return the page of the model's course."""
    return filled("course.html", bar=bar, course=course, drawn=drawings(course), lately=LATELY)


def doubtful_page(bar: PageBar, state: DoubtSearch) -> str:
    """Return the page of messages that were probably learned in the wrong class."""
    age = _ago(time() - state.begun)
    return filled(
        "doubtful.html", bar=bar, view=View(is_doubtful=True), state=state, age=age, least=LEAST
    )


def percentage(probability: float) -> str:
    """Return a probability in percent, never 0 or 100.

    >>> [percentage(each) for each in (0.5, 0.9876, 0.99999, 0.0)]
    ['50 %', '98.8 %', '99.99 %', '0.01 %']
    """
    return f"{rate(min(max(100 * probability, 0.01), 99.99))} %"


def moment(seconds: float) -> str:
    """Return a time as local time; seconds since 1970."""
    try:
        return strftime("%Y-%m-%d %H:%M", localtime(seconds))
    except (OverflowError, ValueError, OSError):  # a file system with strange times
        return ""


def _ago(seconds: float) -> str:
    """Return an age in the largest unit that fits twice.

    >>> [_ago(seconds) for seconds in (-5, 119, 120, 7199, 7200, 172_800)]
    ['just now', 'just now', '2 minutes ago', '119 minutes ago', '2 hours ago', '2 days ago']
    """
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def filled(template: str, **values: Any) -> str:
    """Return a page; template: the name of a file, values: its variables."""
    return str(_templates().get_template(template).render(values))
