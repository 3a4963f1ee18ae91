"""nbspam update: more labelled mail for a model that is there."""

from typing import Any

import click

from nbspam.cli.arguments import cores, read_sources, today
from nbspam.cli.options import (
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    sources_argument,
)
from nbspam.cli.output import report_outcome


@click.command("update")
@sources_argument
@model_option
@label_options
@format_options
@click.option(
    "--policy",
    type=click.Choice(["everything", "error", "near"]),
    default="everything",
    show_default=True,
    help="What to learn: all, what the model gets wrong, or that and near misses.",
)
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    policy: str,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Learn more labelled mail.

    SOURCE, --spam, --ham and --label are as for `nbspam train`; a label that is new
    makes a new class.  A message that is known already is not counted again; known as
    another class, it moves.  What is reported is on disk, in a journal beside the model
    that is taken into its file now and then.

    Once it is taken in, the model is the one that training on all of its messages
    together would have made, to the last bit (but for the days on which tokens were
    seen, and while at most 8,000 messages are known, or 32,000 of two classes and of
    usual length: of more, a sample teaches how evidence combines, and counts alone are
    the same).
    With --policy error or near, which messages are learned depends on their order; what
    is learned of them does not.

    \b
    nbspam update --spam ~/Maildir/.Junk
    nbspam update --ham - < message.eml
    nbspam update --policy near mails/
    """
    from nbspam.store.model import StoredModel

    items = read_sources(sources, options)
    outcome = StoredModel(model_path).learn(items, day=today(), policy=policy, jobs=cores(jobs))
    return report_outcome(outcome, model_path, as_json)
