"""nbspam words: the strongest tokens of each class in a model."""

from typing import Any

import click

from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows
from nbspam.errors import UsageError


@click.command("words")
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
@json_option
def command(model_path: str, number: int, as_json: bool) -> None:
    """Print the tokens that speak most for each class, strongest first.

    Columns: weight (log-odds against the other classes, in nats), how often each class
    has the token, the token.

    \b
    nbspam words -n 10
    """
    from nbspam.classifier.explanation import strongest_tokens
    from nbspam.store.open import load

    classifier: Any = load(model_path)
    if not hasattr(classifier, "table"):
        raise UsageError(f"{model_path}: a table's model has no tokens; see nbspam info")
    strongest = strongest_tokens(classifier, number)
    if as_json:
        echo_json({name: [row._asdict() for row in rows] for name, rows in strongest.items()})
        return
    for name, rows in strongest.items():
        echo_rows([(f"# {name}: weight", *classifier.classes, "token")])
        echo_rows(
            (f"{row.weight:.3f}", *(f"{n:g}" for n in row.counts), row.token) for row in rows
        )
