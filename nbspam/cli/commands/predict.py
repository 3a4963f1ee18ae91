"""nbspam predict: labels only, for pipes."""

from collections.abc import Iterator
from typing import Any

import click

from nbspam.cli.arguments import cores, decision_rule, load_classifier
from nbspam.cli.options import (
    decision_options,
    format_options,
    jobs_option,
    json_option,
    model_option,
    prior_option,
    sources_argument,
)
from nbspam.cli.output import echo_rows, json_line
from nbspam.cli.tables import read_questions
from nbspam.errors import InputError


@click.command("predict")
@sources_argument
@model_option
@decision_options
@prior_option
@format_options
@jobs_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    stated: tuple[str, ...],
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the label of every message, one a line, nothing else.

    Labels are those of `nbspam classify`.  A message that cannot be read ends the
    command, so that line N is message N.

    \b
    nbspam predict message.eml
    nbspam predict tickets.csv | sort | uniq -c
    """
    from nbspam.verdicts import Skipped

    classifier = load_classifier(model_path, stated)
    rule = decision_rule(classifier, options)

    def rows() -> Iterator[tuple[str]]:
        questions = read_questions(classifier, sources, options)
        for verdict in classifier.classify(questions, cores(jobs), rule):
            if isinstance(verdict, Skipped):
                raise InputError(verdict.reason)
            yield (json_line(verdict.label) if as_json else verdict.label,)

    echo_rows(rows())
