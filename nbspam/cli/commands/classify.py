"""nbspam classify: a verdict a message."""

from collections.abc import Iterator
from typing import Any

import click

from nbspam.cli.arguments import ESTIMATED, cores, decision_rule, load_classifier
from nbspam.cli.options import (
    decision_options,
    format_options,
    jobs_option,
    json_option,
    model_option,
    prior_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import echo_rows, json_line, report_skipped, verdict_json
from nbspam.cli.tables import read_questions
from nbspam.errors import UsageError

# bogofilter's contract; 3, for every failure, is the command line's to give.
EXIT_CODES = {"spam": 0, "ham": 1, "unsure": 2}


@click.command("classify")
@sources_argument
@model_option
@decision_options
@prior_option
@format_options
@jobs_option
@strict_option
@json_option
@click.option("--exit-code", is_flag=True, help="One message: 0 spam, 1 ham, 2 unsure, 3 failure.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing, but with --exit-code exit.")
def command(
    sources: tuple[str, ...],
    model_path: str,
    stated: tuple[str, ...],
    jobs: int | None,
    strict: bool,
    as_json: bool,
    exit_code: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Print label, its probability and name, message by message.

    SOURCE is anything `nbspam train` reads, labels not needed; without one, or as -,
    a message on standard input; rows of a table for the model of one, with a row of
    names or in the order of training.

    The label is the answer that costs least on average.  Mail is spam from a
    probability of 2/3 (--fp-cost 2); other models name the most probable class.  With
    --unsure-cost the label may be unsure, shown with the probability of spam.

    JSON has the posterior of every class; of models that combine evidence, as those of
    mail do, also the probability of the last class (spam) and its score, the log-odds
    in nats.

    \b
    nbspam classify message.eml
    nbspam classify ~/Maildir/new
    nbspam classify --fp-cost 20 --unsure-cost 0.2 ~/Maildir/new
    nbspam classify --exit-code -q < message.eml && echo spam
    """
    from nbspam.verdicts import Skipped, Verdict

    classifier = load_classifier(model_path, () if stated == ESTIMATED else stated)
    rule = decision_rule(classifier, options)
    if exit_code:
        _check_labels("the model's classes", classifier.classes)
        _check_labels("the labels of --loss", rule.actions)
    items = read_questions(classifier, sources, options)
    if stated == ESTIMATED:
        from nbspam.decision import with_estimated_prior

        items = list(items)  # read twice
        classifier = with_estimated_prior(classifier, items, cores(jobs))
    verdicts: list[Verdict] = []
    n_skipped = 0

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal n_skipped
        for verdict in classifier.classify(items, cores(jobs), rule):
            if isinstance(verdict, Skipped):
                n_skipped += 1
                report_skipped([verdict], strict)
                continue
            if exit_code:
                verdicts.append(verdict)
            if not quiet:
                yield (json_line(verdict_json(verdict)),) if as_json else _row(verdict)

    echo_rows(rows())
    if exit_code:
        return _exit_code(verdicts)
    return 1 if n_skipped else 0


def _row(verdict: Any) -> tuple[str, ...]:
    return verdict.label, f"{verdict.probability:.6f}", verdict.name


def _check_labels(what: str, labels: tuple[str, ...]) -> None:
    if not set(labels) <= set(EXIT_CODES):
        raise UsageError(
            f"--exit-code: {what} are {', '.join(labels)}; it is for ham, spam and unsure"
        )


def _exit_code(verdicts: list[Any]) -> int:
    if len(verdicts) != 1:
        raise UsageError(f"--exit-code: {len(verdicts)} messages; it is for one message")
    return EXIT_CODES[verdicts[0].label]
