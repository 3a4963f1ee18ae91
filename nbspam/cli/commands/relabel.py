"""nbspam relabel: move messages that were learned as the wrong class."""

from typing import Any

import click

from nbspam.cli.arguments import cores, read_sources, today
from nbspam.cli.options import (
    format_options,
    jobs_option,
    json_option,
    model_option,
    sources_argument,
)
from nbspam.cli.output import report_outcome


@click.command("relabel")
@sources_argument
@model_option
@click.option("--to", required=True, metavar="CLASS", help="What they are.")
@format_options
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    to: str,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Move messages to the class they belong to.

    Works for a message and for whole folders; what was never learned is learned as that
    class.

    \b
    nbspam relabel --to ham message.eml
    nbspam relabel --to spam ~/Maildir/.Junk
    """
    from nbspam.store.model import StoredModel

    items = read_sources(sources, options)
    outcome = StoredModel(model_path).relabel(items, to, day=today(), jobs=cores(jobs))
    return report_outcome(outcome, model_path, as_json)
