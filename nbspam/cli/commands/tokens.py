"""nbspam tokens: the tokens that messages are cut into."""

import click

from nbspam.cli.arguments import items_for_tokens
from nbspam.cli.command import Command
from nbspam.cli.options import json_option, reading_options, sources_argument
from nbspam.cli.output import echo_rows, json_line
from nbspam.cli.training_options import pairs_option, preset_option
from nbspam.settings import Choices
from nbspam.sources.items import SourceOptions


@click.command("tokens", cls=Command)
@sources_argument
@reading_options
@preset_option
@pairs_option
@json_option
def command(
    sources: tuple[str, ...],
    reading: SourceOptions,
    preset: str | None,
    pairs: bool | None,
    as_json: bool,
) -> None:
    """Print the tokens of messages, and how often each occurs in its message.

    A token has its origin before it, as in subject:free or url:example.org, unless it is a
    word of the body.

    \b
    nbspam tokens message.eml
    nbspam tokens --pairs - < message.eml
    """
    from nbspam.classifier.inspection import token_counts

    choices = Choices(preset=preset, pairs=pairs)
    settings, items = items_for_tokens(sources, reading, choices)
    counts = token_counts(items, settings)
    if as_json:
        echo_rows((json_line({"token": token, "count": count}),) for token, count in counts)
    else:
        echo_rows((str(count), token) for token, count in counts)
