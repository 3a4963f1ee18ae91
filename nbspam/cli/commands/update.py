"""nbspam update: more labelled mail for a model."""

import os

import click

from nbspam.cli.arguments import items_of, knowing, rows_of, today
from nbspam.cli.command import Command
from nbspam.cli.learning import new_model, told_one
from nbspam.cli.options import (
    Labels,
    jobs_option,
    json_option,
    label_options,
    model_option,
    new_class_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import report_outcome
from nbspam.errors import UsageError
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
@new_class_option
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    labels: Labels,
    reading: SourceOptions,
    policy: str,
    new_class: bool,
    jobs: int,
    as_json: bool,
) -> int:
    """Learn more labelled mail.

    SOURCE, --spam, --ham and --label are as for `nbspam train`.  A message that the model
    knows is not counted again; if it was learned as another class, it moves to the new one.
    When the command ends, the messages are on disk, in the model file or in a journal beside
    it.

    A single message in a file of its own or on standard input, whose class an option states, is
    told by a person: its class is never doubted from then on. Labels of many messages at once
    are filed. They are doubted where all other evidence contradicts them, because people file
    some messages wrongly.

    Without a model file, the command makes one.  A model that knows only spam, or only ham,
    answers unsure to everything, and says what it needs.  If a message has a class that the
    model does not have, nothing at all is learned, unless --new-class is given.  A model of mail
    learns ham and spam without it.

    How evidence adds up is fitted anew when a class has changed by a twentieth since the
    last fit, or after 2,000 changes.  Between two fits only the counts change.  With
    --policy error or near, the order of the messages decides which of them are learned: it is
    found as by `nbspam eval --online`.

    For a model of a table, SOURCE is a table with the columns and the class that the model was
    trained on.  Every row counts, also one that was learned before.

    \b
    nbspam update --spam ~/Maildir/.Junk
    nbspam update --ham - < message.eml
    nbspam update --policy near mails/
    nbspam update -m iris.nbspam more.csv
    """
    from nbspam.store.tables import StoredTable, living

    model = living(model_path) if os.path.exists(model_path) else None
    if isinstance(model, StoredTable):
        if policy != "everything":
            raise UsageError(f"--policy {policy}: for mail and text; a table's rows all count")
        outcome = model.learn(rows_of(model, sources, reading, labels), new_class)
        return report_outcome(outcome, model_path, as_json)
    if model is None:
        items = told_one(items_of(sources, reading, labels), sources, labels)
        model, items = new_model(model_path, items, reading)
    else:
        items = items_of(sources, knowing(reading, model), labels)
        items = told_one(items, sources, labels)
    stated = None if sources or not labels.paths else {name for name, _ in labels.paths}
    outcome = model.learn(
        items, day=today(), policy=policy, jobs=jobs, classes=stated, new_class=new_class
    )
    return report_outcome(outcome, model_path, as_json)
