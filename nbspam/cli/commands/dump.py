"""nbspam dump: a model as text."""

import sys

import click

from nbspam.cli.options import model_option


@click.command("dump")
@click.argument("model", required=False)
@model_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "bogoutil"]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON, or counts for bogoutil -l.",
)
def command(model: str | None, model_path: str, format_: str) -> None:
    """Print all that a model holds, a line a token.

    JSON has settings and classes on the first line, then tokens, then the digests of
    the messages that were learned: `nbspam load` makes the same model of it, to the
    byte.  The form of bogoutil has the counts alone, and is for ham and spam.

    \b
    nbspam dump > model.jsonl
    nbspam dump mail.nbspam --format bogoutil | bogoutil -l wordlist.db
    """
    from nbspam.store import bogofilter as bogoutil
    from nbspam.store import interchange
    from nbspam.store.model import StoredModel

    classifier = StoredModel(model or model_path).whole()
    if format_ == "bogoutil":
        sys.stdout.buffer.writelines(bogoutil.dump_lines(classifier))
    else:
        sys.stdout.buffer.writelines(interchange.dump_lines(classifier))
