"""From values to a page: templates in which all text is escaped, and a page that may load nothing.

The policy in each page allows one style element, by its hash, and neither scripts nor pictures
nor requests, so that a mistake in escaping would run nothing either.
"""

import base64
import hashlib
from functools import cache
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbspam.evaluation.report import short
from nbspam.printing import amount_text, printable

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).with_name("templates")
_MINUS = "\N{MINUS SIGN}"
_LONG = 1e9  # nats; larger numbers are shown with an exponent


def render(template: str, **values: Any) -> str:
    """Return a page; template: the name of a file, values: its variables."""
    return environment(_FOLDER).get_template(template).render(values)


@cache
def environment(folder: Path) -> "Environment":
    """Return the engine of the templates in a folder, and of reports' templates.

    The folder's style is added to that of reports.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, _FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    styles = dict.fromkeys((_FOLDER / "style.css", folder / "style.css"))
    style = "".join(path.read_text("utf-8") for path in styles)
    environment.globals["style"] = style
    environment.globals["style_hash"] = hash_of(style)
    environment.filters |= {
        "shown": shown,
        "count": lambda n: f"{n:,}",
        "amount": amount_text,
        "nats": nats,
        "rate": rate,
        "cutoff": cutoff,
        "short": short,
        "percent": lambda share: f"{100 * share:.1f}",
    }
    return environment


def hash_of(style: str) -> str:
    """Return the hash by which a content security policy allows a style element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def shown(text: str) -> str:
    r"""Return text of strangers in which all but line ends is visible: \u202e for an override."""
    return "\n".join(map(printable, text.replace("\t", "    ").split("\n")))


def nats(value: float, digits: int = 2) -> str:
    """Return a sum of evidence with its sign."""
    if not isfinite(value):
        return "?" if isnan(value) else f"{'+' if value > 0 else _MINUS}∞"
    text = f"{value:+.{digits}f}" if abs(value) < _LONG else f"{value:+.{digits}e}"
    return text.replace("-", _MINUS)


def rate(value: float) -> str:
    """Return how many of a hundred or a thousand, with the digits that tell it.

    >>> [rate(each) for each in (99.974, 100.0, 33.33, 2.54, 0.041, 0.0)]
    ['99.97', '100', '33.3', '2.5', '0.04', '0']
    """
    digits = 2 if 0 < value < 1 or 99 < value < 100 else 1
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def cutoff(value: float) -> str:
    """Return a probability that decides, such as 0.667 or 0.9999."""
    return f"{value:.3f}".rstrip("0") if 0.001 <= value <= 0.999 else f"{value:.6g}"
