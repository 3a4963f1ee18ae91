"""nbspam tokens: what the tokenizer made of a message."""

from typing import Any

import click

from nbspam.cli.arguments import peek, read_sources, settings_for
from nbspam.cli.options import format_options, json_option, sources_argument
from nbspam.cli.output import echo_rows, json_line


@click.command("tokens")
@sources_argument
@format_options
@click.option("--preset", type=click.Choice(["mail", "text", "tutorial"]), help="Whose tokens.")
@click.option("--pairs/--no-pairs", default=None, help="Pairs of neighbouring words too.")
@json_option
def command(sources: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Print the tokens of messages and how often each stands there.

    A token is tagged by where it comes from: subject:free, url:example.org; words of
    the body are not.

    \b
    nbspam tokens message.eml
    nbspam tokens --pairs - < message.eml
    """
    from nbspam.classifier.explanation import token_counts

    is_text, items = peek(read_sources(sources, options))
    settings = settings_for(is_text, options)
    pairs = token_counts(items, settings)
    if as_json:
        echo_rows((json_line({"token": token, "count": count}),) for token, count in pairs)
    else:
        echo_rows((str(count), token) for token, count in pairs)
