"""The option --report: a page is checked before any work is done, and written when it is.

Secret: which options of a report go together.
"""

from typing import NamedTuple

import click

from nbspam.cli.command import Decorator
from nbspam.cli.options import JUDGING, filling
from nbspam.cli.output import check_place
from nbspam.errors import UsageError


class Page(NamedTuple):
    """A report that is asked for; without a path there is none."""

    report: str | None = None  # the path
    per_week: int | None = None  # messages that come in a week


def report_option(what: str) -> Decorator:
    """Return the option that writes a page for people; what: it shows."""
    return click.option(
        "--report",
        metavar="FILE.html",
        help=f"Write a page for people into FILE.html: {what}.  It is one file that needs neither"
        " network nor script.",
    )


def page_options(what: str) -> Decorator:
    """Return the options of a report on an evaluation; what: it shows."""
    per_week = click.option(
        "--per-week",
        type=click.IntRange(min=1),
        metavar="N",
        help="In --report, say what the errors mean for N messages a week; otherwise for a"
        " thousand.",
    )
    return filling(Page, "page", JUDGING, report_option(what), per_week)


def check_page(path: str | None, per_week: int | None = None) -> None:
    """Raise UsageError, before any work is done, if no report can be written there."""
    if path is None:
        if per_week is not None:
            raise UsageError("--per-week: for the report; add --report FILE.html")
        return
    from nbspam.evaluation.pages.rendering import check

    check(path)
    check_place("--report", path)


def write_page(path: str, page: str) -> None:
    """Write a report into a file; raises InputError."""
    from nbspam.evaluation.pages.rendering import write

    write(path, page)
