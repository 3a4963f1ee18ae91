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
from nbspam.cli.output import echo_rows, json_line
from nbspam.cli.values import Shares
from nbspam.errors import InputError
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
) -> None:
    """Print the label of every message, one per line, and nothing else.

    The labels are those of `nbspam classify`.  If a message cannot be read the command
    fails there, so that line N is always the label of message N.

    \b
    nbspam predict message.eml
    nbspam predict tickets.csv | sort | uniq -c
    """
    from nbspam.verdicts import Skipped

    question = asked(model_path, sources, reading, decision, prior)

    def rows() -> Iterator[tuple[str]]:
        for verdict in question.classifier.classify(question.inputs, jobs, question.rule):
            if isinstance(verdict, Skipped):
                raise InputError(verdict.reason)
            yield (
                json_line({"name": verdict.name, "label": verdict.label})
                if as_json
                else verdict.label,
            )

    echo_rows(rows())
