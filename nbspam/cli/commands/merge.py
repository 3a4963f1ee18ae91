"""nbspam merge: several models to one model."""

import click

from nbspam.cli.command import Command, say
from nbspam.cli.options import json_option
from nbspam.cli.output import counts_of, counts_text, echo_json, echo_summary, save


@click.command("merge", cls=Command)
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@click.option(
    "-o",
    "--output",
    "output_path",
    required=True,
    metavar="FILE",
    help="The model file to write.",
)
@json_option
def command(models: tuple[str, ...], output_path: str, as_json: bool) -> None:
    """Add models: the result is the model of all their messages.

    A message that several models know counts once.  If they know it as different classes,
    the last model decides.  All models must have the same settings for tokens; other
    settings are those of the first model.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    """
    from nbspam.store.merge import merge

    for path in models:
        say(f"model {path}")
    merged = merge(models)
    kept = save(merged.classifier, output_path)
    table = merged.classifier.table
    n_docs = counts_of(table.classes, table.class_count)
    if as_json:
        facts = {"read": n_docs, "tokens": len(table.vocabulary)}
        echo_json(
            {
                "model": output_path,
                "kept": kept,
                **facts,
                "in_both": merged.in_both,
                "disputed": merged.disputed,
            }
        )
        return
    echo_summary(
        [
            (f"added {len(models)} models: {table.n_docs:,} messages ({counts_text(n_docs)})",),
            (f"{merged.in_both:,} known to several, {merged.disputed:,} as different classes",),
            (f"learned {len(table.vocabulary):,} tokens; model in {output_path}",),
        ]
    )
