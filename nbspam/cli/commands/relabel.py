"""nbspam relabel: move messages that were learned as the wrong class."""

import click

from nbspam.cli.arguments import items_of, knowing, today
from nbspam.cli.command import Command
from nbspam.cli.options import (
    jobs_option,
    json_option,
    model_option,
    new_class_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import report_outcome
from nbspam.errors import UsageError
from nbspam.sources.items import SourceOptions


@click.command("relabel", cls=Command)
@sources_argument
@model_option
@click.option("--to", required=True, metavar="CLASS", help="The class they belong to.")
@reading_options
@new_class_option
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    to: str,
    reading: SourceOptions,
    new_class: bool,
    jobs: int,
    as_json: bool,
) -> int:
    """Move messages to the class they belong to.

    SOURCE is a message or a whole folder.  Messages that the model never learned are learned
    as that class.  A class that the model does not have is refused, unless --new-class is given.
    From then on the model never doubts the class of these messages, because a person has told
    it.  So the command also confirms a class that messages have already.

    \b
    nbspam relabel --to ham message.eml
    nbspam relabel --to spam ~/Maildir/.Junk
    """
    from nbspam.store.tables import StoredTable, living

    model = living(model_path)
    if isinstance(model, StoredTable):
        raise UsageError(
            f"{model_path}: a model of kind table, which does not remember its rows; unlearn them"
            " with their old class, then update with the new one"
        )
    items = items_of(sources, knowing(reading, model))
    outcome = model.relabel(items, to, day=today(), jobs=jobs, new_class=new_class)
    return report_outcome(outcome, model_path, as_json)
