"""nbspam update: more labelled mail for a model."""

import click

from nbspam.cli.arguments import items_of, today
from nbspam.cli.command import Command
from nbspam.cli.options import (
    Labels,
    jobs_option,
    json_option,
    label_options,
    model_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import report_outcome
from nbspam.sources.items import SourceOptions


@click.command("update", cls=Command)
@sources_argument
@model_option
@label_options
@reading_options
@click.option(
    "--policy",
    type=click.Choice(["everything", "error", "near"]),
    default="everything",
    show_default=True,
    help="Learn every message, those the model gets wrong, or those and the near misses.",
)
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    labels: Labels,
    reading: SourceOptions,
    policy: str,
    jobs: int,
    as_json: bool,
) -> int:
    """Learn more labelled mail.

    SOURCE, --spam, --ham and --label are as for `nbspam train`; a new label makes a new
    class.  A message that the model knows is not counted again; if it was learned as
    another class, it moves to the new one.  When the command ends, the messages are on
    disk, in the model file or in a journal beside it.

    How evidence adds up is fitted anew when a class has changed by a twentieth since the
    last fit, or after 2,000 changes.  Between two fits only the counts change.  With
    --policy error or near, the order of the messages decides which of them are learned: it is
    found as by `nbspam eval --online`.

    \b
    nbspam update --spam ~/Maildir/.Junk
    nbspam update --ham - < message.eml
    nbspam update --policy near mails/
    """
    from nbspam.store.model import StoredModel

    items = items_of(sources, reading, labels)
    outcome = StoredModel(model_path).learn(items, day=today(), policy=policy, jobs=jobs)
    return report_outcome(outcome, model_path, as_json)
