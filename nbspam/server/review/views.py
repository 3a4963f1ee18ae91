"""Views: which messages a page lists, as its address says it.

Secret: how addresses are written and read.  What they say is checked, because anybody writes them.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import urlencode

from nbspam.server.review.database import ORDERS, Wanted

LABELS = ("unsure", "spam", "ham")
_MAX_WORDS = 200  # characters
_MAX_DIGITS = 9


class View(NamedTuple):
    """Which messages are listed."""

    wanted: Wanted = Wanted()
    start: int = 0  # of how many messages before them

    @property
    def query(self) -> str:
        """The part of an address that says so, "" for the newest messages."""
        wanted = self.wanted
        fields = {"words": wanted.words, "verdict": wanted.label, "order": wanted.order}
        if wanted.order == Wanted().order:
            del fields["order"]
        if self.start:
            fields["start"] = str(self.start)
        return urlencode({name: value for name, value in fields.items() if value})

    @property
    def address(self) -> str:
        """The address of the list."""
        return f"/?{self.query}" if self.query else "/"

    def of(self, key: str) -> str:
        """Return the address of a message of the list; key: any text."""
        return "/message?" + "&".join(filter(None, (urlencode({"key": key}), self.query)))

    def at(self, start: int) -> "View":
        """Return the same view from another message on."""
        return self._replace(start=max(start, 0))


def view_of(fields: Mapping[str, str]) -> View:
    """Return what the fields of an address ask for; what they cannot mean is left out."""
    label, order, start = (fields.get(name, "") for name in ("verdict", "order", "start"))
    wanted = Wanted(
        " ".join(fields.get("words", "")[:_MAX_WORDS].split()),
        label if label in LABELS else None,
        order if order in ORDERS else Wanted().order,
    )
    is_number = start.isascii() and start.isdigit() and len(start) <= _MAX_DIGITS
    return View(wanted, int(start) if is_number else 0)


def row_id(key: str) -> str:
    """Return the name of a message's place in a page."""
    return "m" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def is_row_id(text: str) -> bool:
    """Return whether a text is from `row_id`."""
    return len(text) == 13 and text[0] == "m" and set(text[1:]) <= set("0123456789abcdef")
