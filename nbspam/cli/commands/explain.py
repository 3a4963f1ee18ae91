"""nbspam explain: the tokens behind a verdict."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, cast

import click

from nbspam.cli.arguments import asked, schema_of
from nbspam.cli.command import Command
from nbspam.cli.frame.pages import check_page, report_option, write_page
from nbspam.cli.options import (
    Decision,
    decision_options,
    json_option,
    model_option,
    number_option,
    prior_option,
    reading_options,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import Successes, json_line, verdict_json
from nbspam.cli.values import Shares
from nbspam.errors import UsageError
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.answering import AnyClassifier
    from nbspam.decision import Rule
    from nbspam.evaluation.pages.explained import Explained
    from nbspam.tables.classifier import TableClassifier
    from nbspam.tables.factors import Factors
    from nbspam.verdicts import Explanation, Verdict

WIDTH = 80  # columns of the terminal
_LONG = 1e9  # nats; larger numbers are shown with an exponent


@click.command("explain", cls=Command)
@sources_argument
@model_option
@number_option(20, "message")
@click.option("--brief", is_flag=True, help="Print one short line per message.")
@click.option(
    "--factors",
    is_flag=True,
    help="For the model of a table: print every factor of a row's probability, and the"
    " product so far.",
)
@report_option("the words of each message in the colour of what they speak for")
@decision_options
@prior_option
@reading_options
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    number: int,
    brief: bool,
    factors: bool,
    report: str | None,
    decision: Decision,
    prior: Shares | None,
    reading: SourceOptions,
    strict: bool,
    as_json: bool,
) -> int:
    """Show how much each token adds to the score of a message, strongest first.

    The columns are the nats it adds (above 0 for the class that the score is for), the
    number of messages of each class that have the token, its kind, and the token.  All of
    them and the constant add up to the score, which is the log-odds of that class.  Where
    costs are stated, the expected cost of every answer follows.

    \b
    nbspam explain message.eml
    nbspam explain --brief < message.eml
    nbspam explain --factors rows.csv
    """
    from nbspam.printing import write_lines

    check_page(report)
    if report is not None and factors:
        raise UsageError("--report and --factors: a report shows no factors; leave out one")
    question = asked(model_path, sources, reading, decision, prior)
    classifier = question.classifier
    page = None if report is None else _page(classifier)
    inputs = question.inputs if page is None else page.watched(question.inputs)
    explain = _explainer(classifier, factors)
    successes = Successes(strict)

    def lines() -> Iterator[str]:
        explained = successes.of(explain(inputs, question.rule))
        for place, each in enumerate(explained if page is None else page.passing(explained)):
            if as_json:
                verdict = verdict_json(each.verdict, question.costs)
                details = _factors_json(each) if factors else _json(each, number)
                yield json_line({**verdict, **details})
                continue
            if brief and not factors:
                yield each.brief(number)
                continue
            yield from [""] * (place > 0)
            yield from _factor_lines(each) if factors else _lines(each, number, classifier)
            if question.costs is not None:
                yield from _risk_lines(each.verdict, question.costs)

    write_lines(lines(), sys.stdout)
    if report is not None and page is not None:
        write_page(report, page.page())
    return successes.status


def _page(classifier: "AnyClassifier") -> "Explained":
    from nbspam.evaluation.pages.explained import Explained

    return Explained(classifier)


def _explainer(classifier: "AnyClassifier", factors: bool) -> Callable[..., Iterable[Any]]:
    """Return the function that explains a classifier's answers; raises UsageError."""
    if not factors:
        return classifier.explanations
    if schema_of(classifier) is None:
        raise UsageError("--factors: for the model of a table; leave it out")
    from nbspam.tables.factors import factors as factors_of

    return partial(factors_of, cast("TableClassifier", classifier))


def _lines(explanation: "Explanation", number: int, classifier: "AnyClassifier") -> Iterator[str]:
    """Yield the lines of an explanation, laid out for 80 columns."""
    from nbspam.printing import clipped, display_width, left, printable, right

    verdict, classes = explanation.verdict, classifier.classes
    yield printable(
        f"{verdict.label}  probability {verdict.probability:.4f}"
        f"  score {_nats(explanation.score, 2)} for {explanation.towards}  {verdict.name}"
    )
    pair = sorted(map(classes.index, (explanation.towards, explanation.against)))
    rows = [("nats", *(clipped(printable(classes[k]), 12) for k in pair), "kind", "token")]
    strongest = explanation.strongest(number)
    for token, nats, group, counts in strongest:
        rows.append((_nats(nats), *(f"{counts[k]:g}" for k in pair), group, printable(token)))
    # The other tokens share a line, so that the rows add up to the score.
    others = explanation.evidence[len(strongest) :]
    if others:
        rest = sum(row.contribution for row in others)
        rows.append((_nats(rest), "", "", "", f"({len(others)} more)"))
    rows.append((_nats(explanation.constant), "", "", "", "(constant)"))
    width = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for *numbers, kind, token in rows:
        cells = [*map(right, numbers, width), left(kind, width[3]), ""]
        start = "  ".join(cells)
        yield start + clipped(token, WIDTH - display_width(start))


def _risk_lines(verdict: "Verdict", costs: "Rule") -> Iterator[str]:
    """Yield what each answer is expected to cost, the cheapest first."""
    from nbspam.decision import risks
    from nbspam.printing import printable

    for action, risk in sorted(risks(verdict.posterior, costs).items(), key=lambda each: each[1]):
        yield f"{risk:.6g}  expected cost of the answer {printable(action)}"


def _nats(value: float, digits: int = 3) -> str:
    """Return a sum of evidence; densities far from every mean have hundreds of digits."""
    return f"{value:+.{digits}f}" if abs(value) < _LONG else f"{value:+.{digits}e}"


def _json(explanation: "Explanation", number: int) -> dict[str, object]:
    """Return an explanation for JSON, which has no infinity: null replaces it."""
    classes = list(explanation.verdict.posterior)
    tokens = [
        {
            **row._asdict(),
            "contribution": _finite(row.contribution),
            "counts": dict(zip(classes, row.counts, strict=True)),
        }
        for row in explanation.strongest(number)
    ]
    return {
        "towards": explanation.towards,
        "against": explanation.against,
        "score": _finite(explanation.score),
        "constant": explanation.constant,
        "tokens": tokens,
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _factor_lines(row: "Factors") -> Iterator[str]:
    """Yield the factors of one row, and the product after each of them, class by class."""
    from nbspam.printing import display_width, printable, right

    verdict = row.verdict
    yield printable(f"{verdict.label}  probability {verdict.probability:.4f}  {verdict.name}")
    classes = list(verdict.posterior)
    heads = [f"{what} {name}" for what in ("factor", "product") for name in classes]
    lines = [(*map(printable, heads), "value")]
    for name, factor, product in _steps(row):
        lines.append((*map(_shown, (*factor, *product)), printable(name)))
    width = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = map(right, line[:-1], width)
        yield "  ".join([*cells, line[-1]])


def _factors_json(row: "Factors") -> dict[str, object]:
    """Return the factors of one row for JSON; null replaces the undefined ones."""
    classes = list(row.verdict.posterior)
    factors = [
        {
            "value": name,
            "factor": dict(zip(classes, map(_finite, factor), strict=True)),
            "product": dict(zip(classes, map(_finite, product), strict=True)),
        }
        for name, factor, product in _steps(row)
    ]
    return {"factors": factors}


def _steps(row: "Factors") -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield the prior and then each value: its name, its factors, and the products so far."""
    names = [f"({row.target})", *row.values]
    yield from zip(names, row.factor.tolist(), row.product.tolist(), strict=True)


def _shown(value: float) -> str:
    """Return a probability or density; factors after a zero are undefined."""
    return "-" if isnan(value) else f"{value:.6g}"
