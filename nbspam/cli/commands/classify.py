"""nbspam classify: a verdict for each message."""

import sys
from collections.abc import Sequence

import click

from nbspam.cli.arguments import Asked, asked, under_prior
from nbspam.cli.command import Command
from nbspam.cli.options import (
    Decision,
    decision_options,
    jobs_option,
    json_option,
    model_option,
    null_option,
    prior_or_estimated_option,
    reading_options,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import Successes, echo_verdicts, refuse_two
from nbspam.cli.tables import Rows
from nbspam.cli.values import Shares
from nbspam.errors import UsageError
from nbspam.sources.items import SourceOptions

# bogofilter's exit statuses; `main` gives 3, for every failure.
EXIT_CODES = {"spam": 0, "ham": 1, "unsure": 2}


@click.command("classify", cls=Command)
@sources_argument
@model_option
@decision_options
@prior_or_estimated_option
@reading_options
@jobs_option
@strict_option
@json_option
@null_option
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Print the tables among SOURCE as CSV, with the columns label and probability added.",
)
@click.option(
    "--exit-code",
    is_flag=True,
    help="Report one message by the exit status, and print nothing: 0 spam, 1 ham, 2 unsure,"
    " 3 failure.",
)
def command(
    sources: tuple[str, ...],
    model_path: str,
    decision: Decision,
    prior: Shares | str | None,
    reading: SourceOptions,
    jobs: int,
    strict: bool,
    as_json: bool,
    null: bool,
    as_csv: bool,
    exit_code: bool,
) -> int:
    """Print label, its probability and name of each message.

    SOURCE is anything that `nbspam train` reads; labels are not needed.  Without SOURCE, or
    with -, the message comes from standard input.  The model of a table reads rows: with a
    row of column names, or with the columns in the order of training.

    The label is the answer with the least expected cost.  A model of mail says spam from a
    probability of 2/3 (--fp-cost 2); other models say the most probable class.  With
    --unsure-cost the label may be unsure, and the probability is then that of spam.

    JSON also has the posterior probability of every class and, for models that combine
    evidence, as those of mail do, the score: the log-odds of the last class (spam) in nats.
    With --loss, --fp-cost or --unsure-cost it has the risk of every answer: its expected
    cost, of which the label has the least.

    \b
    nbspam classify message.eml
    nbspam classify ~/Maildir/new
    nbspam classify --fp-cost 20 --unsure-cost 0.2 ~/Maildir/new
    nbspam classify --exit-code < message.eml && echo spam
    nbspam classify --csv tickets.csv > answered.csv
    """
    refuse_two({"--json": as_json, "-0": null, "--csv": as_csv, "--exit-code": exit_code})
    if as_csv:
        rows = Rows()
        question = asked(model_path, sources, reading._replace(listener=rows), decision, None)
        return _write_back(rows, question, prior, jobs, strict)
    question = asked(model_path, sources, reading, decision, prior, jobs)
    classifier, rule = question.classifier, question.rule
    if exit_code:
        _check_labels("the model's classes", classifier.classes)
        _check_labels("the labels of --loss", rule.actions)
    successes = Successes(strict)
    verdicts = successes.of(classifier.classify(question.inputs, jobs, rule))
    if exit_code:
        return _exit_code([verdict.label for verdict in verdicts])
    echo_verdicts(verdicts, as_json, question.costs, null)
    return successes.status


def _write_back(
    rows: Rows, question: Asked, prior: Shares | str | None, jobs: int, strict: bool
) -> int:
    """Print tables with the label and the probability of each row; return the exit status.

    rows: what listened while the question's inputs were opened.
    """
    from nbspam.printing import write_lines

    inputs = rows.only(question.inputs)
    question = under_prior(question._replace(inputs=inputs), prior, jobs)
    results = question.classifier.classify(question.inputs, jobs, question.rule)
    successes = Successes(strict)
    write_lines(rows.lines(successes.all_of(results)), sys.stdout)
    return successes.status


def _check_labels(what: str, labels: Sequence[str]) -> None:
    if not set(labels) <= set(EXIT_CODES):
        raise UsageError(
            f"--exit-code: {what} are {', '.join(labels)}; it is for ham, spam and unsure"
        )


def _exit_code(labels: Sequence[str]) -> int:
    if len(labels) != 1:
        raise UsageError(f"--exit-code: {len(labels)} messages; give one message")
    return EXIT_CODES[labels[0]]
