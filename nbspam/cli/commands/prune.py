"""nbspam prune: a model forgets what is rare and old."""

import click

from nbspam.cli.arguments import today
from nbspam.cli.options import json_option, model_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("prune")
@model_option
@click.option(
    "--min-df", type=click.IntRange(min=1), metavar="N", help="Tokens in fewer than N messages ..."
)
@click.option(
    "--older-than",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="... that were learned last more than DAYS days ago.",
)
@click.option(
    "--half-life",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DAYS",
    help="Make counts fade: by half every DAYS days.",
)
@json_option
def command(
    model_path: str,
    min_df: int | None,
    older_than: int | None,
    half_life: float | None,
    as_json: bool,
) -> None:
    """Drop tokens that are rare and old; make counts fade.

    With both --min-df and --older-than, tokens go that are rare and old; with one of
    them, all that are.  Without any option, tokens of a single message a year ago.
    Counts fade from the day they did so last, or else from the model's first day.

    Messages learned before can be un-learned afterwards only as far as the model still
    knows their tokens.

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
    echo_rows(
        [
            (f"tokens {before.tokens:,} before, {after.tokens:,} after",),
            (f"bytes {before.bytes:,} before, {after.bytes:,} after; model in {model_path}",),
        ]
    )
