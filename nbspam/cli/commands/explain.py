"""nbspam explain: which tokens made a verdict."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.arguments import decision_rule, load_classifier
from nbspam.cli.options import (
    decision_options,
    format_options,
    json_option,
    model_option,
    prior_option,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import json_line, report_skipped, verdict_json
from nbspam.errors import UsageError

WIDTH = 80


@click.command("explain")
@sources_argument
@model_option
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="How many.",
)
@click.option("--brief", is_flag=True, help="One short line a message.")
@click.option(
    "--factors",
    is_flag=True,
    help="Of a table's row: all factors of its probability, and their product.",
)
@decision_options
@prior_option
@format_options
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    number: int,
    brief: bool,
    stated: tuple[str, ...],
    factors: bool,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Show what each token adds to the score of a message, strongest first.

    Columns: nats added (above 0 for the class that the score is for), how many messages
    of either class have the token, its kind, the token.  The sum of all, with the
    constant, is the score: the log-odds of that class.

    \b
    nbspam explain message.eml
    nbspam explain --brief < message.eml
    nbspam explain --factors rows.csv
    """
    import sys

    from nbspam.printing import write_lines
    from nbspam.verdicts import Skipped

    classifier = load_classifier(model_path, stated)
    rule = decision_rule(classifier, options)
    explain = _explainer(classifier, factors)
    n_skipped = 0

    def shown() -> Iterator[Any]:
        nonlocal n_skipped
        questions = tables.read_questions(classifier, sources, options)
        for explanation in explain(questions, rule):
            if isinstance(explanation, Skipped):
                n_skipped += 1
                report_skipped([explanation], strict)
            else:
                yield explanation

    def lines() -> Iterator[str]:
        for place, explanation in enumerate(shown()):
            if factors:
                yield from [""] * (place > 0 and not as_json)
                yield from tables.factor_lines(classifier, explanation, as_json)
            elif as_json:
                yield json_line(_values(explanation, number))
            elif brief:
                yield explanation.brief(number)
            else:
                yield from [""] * (place > 0)
                yield from table(explanation, number, classifier.classes)

    write_lines(lines(), sys.stdout)
    return 1 if n_skipped else 0


def _explainer(classifier: Any, factors: bool) -> Any:
    """Return what explains the answers of a classifier of this kind; raises UsageError."""
    from functools import partial

    if factors:
        if not hasattr(classifier, "schema"):
            raise UsageError("--factors: for the model of a table; leave it out")
        from nbspam.tables import factors as tablefactors

        return partial(tablefactors.factors, classifier)
    return classifier.explanations


def table(explanation: Any, number: int, classes: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of an explanation, laid out for 80 columns."""
    from nbspam.printing import printable
    from nbspam.verdicts import cut

    verdict = explanation.verdict
    yield printable(
        f"{verdict.label}  probability {verdict.probability:.4f}"
        f"  score {explanation.score:+.2f} for {explanation.towards}  {verdict.name}"
    )
    pair = sorted(map(classes.index, (explanation.towards, explanation.against)))
    heads = [printable(classes[k])[:12] for k in pair]
    rows = [("nats", *heads, "kind", "token")]
    strongest = explanation.strongest(number)
    for token, nats, group, counts in strongest:
        rows.append((f"{nats:+.3f}", *(f"{counts[k]:g}" for k in pair), group, printable(token)))
    # The rest has a line too, so that the rows add up to the score.
    rest = sum(row.contribution for row in explanation.evidence[len(strongest) :])
    n_rest = len(explanation.evidence) - len(strongest)
    if n_rest:
        rows.append((f"{rest:+.3f}", "", "", "", f"({n_rest} more)"))
    rows.append((f"{explanation.constant:+.3f}", "", "", "", "(constant)"))
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for nats, first, second, kind, token in rows:
        start = (
            f"{nats:>{width[0]}}  {first:>{width[1]}}  {second:>{width[2]}}  {kind:<{width[3]}}  "
        )
        yield start + cut(token, WIDTH - len(start))


def _values(explanation: Any, number: int) -> dict[str, Any]:
    """Return an explanation for JSON, which has no infinity: null there."""
    tokens = [
        {**row._asdict(), "contribution": _finite(row.contribution)}
        for row in explanation.strongest(number)
    ]
    return {
        **verdict_json(explanation.verdict),
        "towards": explanation.towards,
        "against": explanation.against,
        "score": _finite(explanation.score),
        "constant": explanation.constant,
        "tokens": tokens,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
