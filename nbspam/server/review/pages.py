"""Pages: what they show, and the headers that forbid them everything else.

Secret: which templates there are, and what a browser is told about them.
"""

from functools import cache
from pathlib import Path
from typing import Any

from nbspam.evaluation.pages.rendering import environment
from nbspam.server.tally import LESSONS, TROUBLES, VERDICTS, Tally

_FOLDER = Path(__file__).with_name("templates")
_LABELS = {
    "lesson learned": "learned",
    "lesson moved": "moved to the other class",
    "lesson confirmed": "confirmed",
    "lesson unlearned": "un-learned",
    "lesson known": "known already",
    "trouble busy": "too many at the same time",
    "trouble late": "not judged in time",
    "trouble idle": "not sent in time",
    "trouble malformed": "not in the words of its protocol",
    "trouble failed": "failed",
    "trouble gone": "the client has gone",
    "trouble forbidden": "forbidden",
    "trouble large": "too large to be learned",
    "trouble user": "no name of a user",
    "trouble model": "the model could not be read again",
}


@cache
def guards() -> tuple[str, ...]:
    """Return the headers of every answer.

    A page may load its own style, by its hash, and post its forms to us; nothing else.  The
    referrer stays with us instead of being left out: without it browsers post with `Origin: null`.
    """
    style = environment(_FOLDER).globals["style_hash"]
    policy = (
        f"default-src 'none'; style-src '{style}'; form-action 'self'; frame-ancestors 'none';"
        " base-uri 'none'"
    )
    return (
        f"Content-Security-Policy: {policy}",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: same-origin",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cache-Control: no-store",
    )


def login_page(why: str = "") -> str:
    """Return the page that asks for the token; why: what was wrong with the last one."""
    return _render("login.html", why=why)


def counts_page(tally: Tally, form: str, model_age: float) -> str:
    """Return the page of what the server has done.

    form: the token of the session's forms.  model_age: seconds since the model was written.
    """
    return _render(
        "counts.html",
        form=form,
        verdicts=_counts(tally, VERDICTS),
        lessons=_counts(tally, [f"lesson {name}" for name in LESSONS]),
        troubles=_counts(tally, [f"trouble {name}" for name in TROUBLES]),
        seconds=tally.total("seconds"),
        waiting=int(tally.total("waiting")),
        age=_ago(model_age),
    )


def _ago(seconds: float) -> str:
    """Return how long ago something was, in the largest unit of which there are two.

    >>> [_ago(seconds) for seconds in (-5, 119, 120, 7199, 7200, 172_800)]
    ['just now', 'just now', '2 minutes ago', '119 minutes ago', '2 hours ago', '2 days ago']
    """
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def _counts(tally: Tally, names: "tuple[str, ...] | list[str]") -> list[tuple[str, int]]:
    return [(_LABELS.get(name, name), int(tally.total(name))) for name in names]


def _render(template: str, **values: Any) -> str:
    return environment(_FOLDER).get_template(template).render(values)
