"""nbspam export: a model as text."""

import sys

import click

from nbspam.cli.command import Command
from nbspam.cli.options import model_option


@click.command("export", cls=Command)
@model_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "bogoutil"]),
    default="jsonl",
    show_default=True,
    help="Format of the output: JSON lines, or counts for `bogoutil -l`.",
)
def command(model_path: str, form: str) -> None:
    """Print a whole model as text, one line per token.

    JSON lines have the settings and classes first, then the tokens, then the digests of the
    messages that were learned.  `nbspam import` makes the same model file of them, byte by
    byte.  The format of bogoutil has the counts only, and is for models of ham and spam.

    \b
    nbspam export > model.jsonl
    nbspam export -m mail.nbspam --format bogoutil | bogoutil -l wordlist.db
    """
    from nbspam.store.model import StoredModel
    from nbspam.store.text import bogofilter, interchange

    classifier = StoredModel(model_path).whole()
    if form == "bogoutil":
        sys.stdout.buffer.writelines(bogofilter.dump_lines(classifier))
    else:
        sys.stdout.buffer.writelines(interchange.dump_lines(classifier))
