"""nbspam merge: several models to one model."""

import click

from nbspam.cli.command import Command, say
from nbspam.cli.options import json_option
from nbspam.cli.output import (
    counts_of,
    counts_text,
    echo_json,
    echo_summary,
    loss_json,
    loss_text,
    save,
    warn,
)


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

    Models of tables are added if their columns are the same; each row counts, however many
    models know it.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    """
    from nbspam.classifier.classifier import Classifier
    from nbspam.store.merge import merge

    for path in models:
        say(f"model {path}")
    merged = merge(models)
    classifier = merged.classifier
    kept = save(classifier, output_path)
    if isinstance(classifier, Classifier):
        if classifier.memory and not classifier.memory.has_ledger:
            warn("a model without a ledger: messages that it shares with others count again")
        n_docs = counts_of(classifier.classes, classifier.table.class_count)
        what, n_tokens = classifier.noun, len(classifier.table.vocabulary)
        loss = classifier.table.loss
        facts = {
            "tokens": n_tokens,
            "forgotten": loss_json(loss),
            "in_both": merged.in_both,
            "disputed": merged.disputed,
        }
        both = f"{merged.in_both:,} known to several, {merged.disputed:,} as different classes"
        forgot = [(f"forgot {loss_text(loss)}",)] if loss else []
        rows = [(both,), *forgot, (f"learned {n_tokens:,} tokens; model in {output_path}",)]
    else:
        n_docs = counts_of(classifier.classes, classifier.model.class_count_)
        what, facts = classifier.noun, {}
        rows = [(f"learned {classifier.schema.target}; model in {output_path}",)]
    if as_json:
        echo_json({"model": output_path, "kept": kept, "read": n_docs, **facts})
        return
    n = sum(n_docs.values())
    echo_summary([(f"added {len(models)} models: {n:,} {what} ({counts_text(n_docs)})",), *rows])
