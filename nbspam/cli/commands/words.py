"""nbspam words: the strongest tokens of each class of a model."""

from typing import TYPE_CHECKING, cast

import click

from nbspam.cli.arguments import loaded, schema_of
from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option, number_option
from nbspam.cli.output import echo_json, echo_rows
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.classifier.classifier import Classifier


@click.command("words", cls=Command)
@model_option
@number_option(20, "class")
@json_option
def command(model_path: str, number: int, as_json: bool) -> None:
    """Print the tokens that speak most strongly for each class.

    The columns are the weight of the token (its log-odds against the other classes, in
    nats), its count in each class, and the token.

    \b
    nbspam words -n 10
    """
    from nbspam.classifier.inspection import strongest_tokens

    classifier = loaded(model_path)
    if schema_of(classifier) is not None:
        raise UsageError(f"{model_path}: the model of a table has no tokens; see nbspam info")
    strongest = strongest_tokens(cast("Classifier", classifier), number)
    if as_json:
        for name, rows in strongest.items():
            for row in rows:
                counts = dict(zip(classifier.classes, row.counts, strict=True))
                echo_json({"class": name, **row._asdict(), "counts": counts})
        return
    for name, rows in strongest.items():
        echo_rows([(f"# {name}: weight", *classifier.classes, "token")])
        echo_rows(
            (f"{row.weight:.3f}", *(f"{n:g}" for n in row.counts), row.token) for row in rows
        )
