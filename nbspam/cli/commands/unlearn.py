"""nbspam unlearn: take messages out of a model."""

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


@click.command("unlearn")
@sources_argument
@model_option
@format_options
@jobs_option
@json_option
def command(
    sources: tuple[str, ...], model_path: str, jobs: int | None, as_json: bool, **options: Any
) -> int:
    """Take messages out of the model, as if they had never been learned.

    The model knows as what they were learned.  A message that it never learned changes
    nothing.

    \b
    nbspam unlearn message.eml
    nbspam unlearn ~/Maildir/.Trash
    """
    from nbspam.store.model import StoredModel

    items = read_sources(sources, options)
    outcome = StoredModel(model_path).unlearn(items, day=today(), jobs=cores(jobs))
    return report_outcome(outcome, model_path, as_json)
