"""nbspam export: a model as text."""

import sys
from typing import TYPE_CHECKING, cast

import click

from nbspam.cli.arguments import loaded, schema_of
from nbspam.cli.command import Command
from nbspam.cli.options import model_option
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.tables.classifier import TableClassifier

OF_TOKENS, OF_TABLES = ("jsonl", "bogoutil"), ("json", "csv")


@click.command("export", cls=Command)
@model_option
@click.option(
    "--format",
    "form",
    type=click.Choice([*OF_TOKENS, *OF_TABLES]),
    help="Of mail and text: JSON lines, or counts for `bogoutil -l`.  Of a table: JSON or CSV."
    "  [default: jsonl, json]",
)
def command(model_path: str, form: str | None) -> None:
    """Print a whole model as text.

    Of mail and text there is one line per token.  JSON lines have the settings and classes
    first, then the tokens, then the digests of the messages that were learned.  `nbspam import`
    makes the same model file of them, byte by byte.  The format of bogoutil has the counts
    only, and is for models of ham and spam.

    Of a table, all numbers are printed that its model has estimated: each probability with the
    count that it comes from, means and variances, and which columns depend on which.

    \b
    nbspam export > model.jsonl
    nbspam export -m mail.nbspam --format bogoutil | bogoutil -l wordlist.db
    nbspam export -m iris.nbspam --format csv > estimates.csv
    """
    classifier = loaded(model_path)
    is_table = schema_of(classifier) is not None
    if form is not None and form not in (OF_TABLES if is_table else OF_TOKENS):
        kind = "of a table" if is_table else "of mail or text"
        choices = " or ".join(OF_TABLES if is_table else OF_TOKENS)
        raise UsageError(f"--format {form}: not for a model {kind}; choose {choices}")
    if is_table:
        _export_table(cast("TableClassifier", classifier), form)
        return
    from nbspam.store.model import StoredModel
    from nbspam.store.text import bogofilter, interchange

    whole = StoredModel(model_path).whole()
    if form == "bogoutil":
        sys.stdout.buffer.writelines(bogofilter.dump_lines(whole))
    else:
        sys.stdout.buffer.writelines(interchange.dump_lines(whole))


def _export_table(classifier: "TableClassifier", form: str | None) -> None:
    """Print all estimates of a table's model."""
    from nbspam.cli.estimates import csv_lines, json_pieces
    from nbspam.printing import write_lines

    if form == "csv":
        write_lines(csv_lines(classifier), sys.stdout)
    else:
        sys.stdout.writelines(json_pieces(classifier, whole=True, first={}))
