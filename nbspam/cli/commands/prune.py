"""nbspam prune: drop tokens that are rare and old, and let counts fade."""

import click

from nbspam.cli.arguments import today
from nbspam.cli.command import Command
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_summary


@click.command("prune", cls=Command)
@model_option
@click.option(
    "--min-df",
    type=click.IntRange(min=1),
    metavar="N",
    help="Drop tokens that occur in fewer than N messages.",
)
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Drop tokens that were last learned more than DAYS days ago.",
)
@click.option(
    "--half-life",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DAYS",
    help="Let counts fade: halve them every DAYS days.",
)
@json_option
def command(
    model_path: str,
    min_df: int | None,
    older_than: int | None,
    half_life: float | None,
    as_json: bool,
) -> None:
    """Drop tokens that are rare and old, and let counts fade.

    With both --min-df and --older-than, a token must be rare and old to be dropped.  Without
    any option, tokens of a single message are dropped that were last learned over a year
    ago.  Counts fade from the day they last faded, or else from the first day of the model.

    Afterwards, un-learning an earlier message takes out only those of its tokens that the
    model still knows.

    \b
    nbspam prune
    nbspam prune --min-df 3 --older-than 90
    nbspam prune --half-life 180
    """
    from nbspam.store.prune import DEFAULT, Rule, prune

    given = (min_df, older_than, half_life)
    rule = DEFAULT if given == (None, None, None) else Rule(*given)
    before, after = prune(model_path, rule, today())
    if as_json:
        sizes = {"before": before, "after": after}
        facts = {name: {"tokens": s.tokens, "bytes": s.bytes} for name, s in sizes.items()}
        echo_json({"model": model_path, **facts})
        return
    echo_summary(
        [
            (f"tokens {before.tokens:,} before, {after.tokens:,} after",),
            (f"bytes {before.bytes:,} before, {after.bytes:,} after; model in {model_path}",),
        ]
    )
