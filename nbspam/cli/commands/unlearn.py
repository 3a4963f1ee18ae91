"""nbspam unlearn: take messages out of a model."""

import click

from nbspam.cli.arguments import items_of, knowing, rows_of, today
from nbspam.cli.command import Command
from nbspam.cli.options import (
    jobs_option,
    json_option,
    model_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import report_outcome
from nbspam.sources.items import SourceOptions


@click.command("unlearn", cls=Command)
@sources_argument
@model_option
@reading_options
@jobs_option
@json_option
def command(
    sources: tuple[str, ...], model_path: str, reading: SourceOptions, jobs: int, as_json: bool
) -> int:
    """Take messages out of the model, as if it had never learned them.

    The model remembers the class that each message was learned as.  Messages that it never
    learned change nothing.  The rows of a table are not remembered one by one: they must be given
    as they were learned, with their class, and all of them or none are taken out.

    \b
    nbspam unlearn message.eml
    nbspam unlearn ~/Maildir/.Trash
    """
    from nbspam.store.tables import StoredTable, living

    model = living(model_path)
    if isinstance(model, StoredTable):
        outcome = model.unlearn(rows_of(model, sources, reading))
    else:
        items = items_of(sources, knowing(reading, model))
        outcome = model.unlearn(items, day=today(), jobs=jobs)
    return report_outcome(outcome, model_path, as_json)
