"""nbspam predict: the labels alone, for pipes."""

from collections.abc import Iterator

import click

from nbspam.cli.arguments import asked
from nbspam.cli.command import Command
from nbspam.cli.options import (
    Decision,
    decision_options,
    jobs_option,
    json_option,
    model_option,
    prior_option,
    reading_options,
    sources_argument,
)
from nbspam.cli.output import Successes, echo_rows, json_line
from nbspam.cli.values import Shares
from nbspam.sources.items import SourceOptions


@click.command("predict", cls=Command)
@sources_argument
@model_option
@decision_options
@prior_option
@reading_options
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    decision: Decision,
    prior: Shares | None,
    reading: SourceOptions,
    jobs: int,
    as_json: bool,
) -> int:
    """Print the label of every message, one per line, and nothing else.

    The labels are those of `nbspam classify`.  Line N is always the label of message N: for a
    message that cannot be read it is empty (in JSON, null), and the exit status is 1.

    \b
    nbspam predict message.eml
    nbspam predict tickets.csv | sort | uniq -c
    """
    from nbspam.verdicts import Skipped

    reading = reading._replace(keeps_missing=True)
    question = asked(model_path, sources, reading, decision, prior)
    results = question.classifier.classify(question.inputs, jobs, question.rule)
    successes = Successes()

    def rows() -> Iterator[tuple[str]]:
        for each in successes.all_of(results):
            label = None if isinstance(each, Skipped) else each.label
            yield (json_line({"name": each.name, "label": label}) if as_json else label or "",)

    echo_rows(rows())
    return successes.status
