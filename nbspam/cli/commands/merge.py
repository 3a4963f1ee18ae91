"""nbspam merge: models to one model."""

import click

from nbspam.cli.options import json_option
from nbspam.cli.output import echo_json, echo_rows


@click.command("merge")
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@click.option(
    "-o", "--output", "output_path", required=True, metavar="FILE", help="The model to write."
)
@json_option
def command(models: tuple[str, ...], output_path: str, as_json: bool) -> None:
    """Add models up: the model of all messages that any of them knows.

    A message that several models know counts once; if they disagree about its class,
    the later word holds.  The models must have been trained with the same settings for
    tokens; other settings are those of the first.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    """
    from nbspam.store.merge import merge
    from nbspam.store.open import save

    merged = merge(models)
    save(output_path, merged.classifier)
    table = merged.classifier.table
    n_docs = {c: int(n) for c, n in zip(table.classes, table.class_count, strict=True)}
    if as_json:
        facts = {"model": output_path, "read": n_docs, "tokens": len(table.vocabulary)}
        echo_json({**facts, "in_both": merged.in_both, "disputed": merged.disputed})
        return
    counts = ", ".join(f"{n:,} {name}" for name, n in n_docs.items())
    echo_rows(
        [
            (f"added {len(models)} models: {table.n_docs:,} messages ({counts})",),
            (f"{merged.in_both:,} known to several, {merged.disputed:,} as different classes",),
            (f"learned {len(table.vocabulary):,} tokens; model in {output_path}",),
        ]
    )
