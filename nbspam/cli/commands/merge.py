"""nbspam merge: several models, or the parts of one training, to one model."""

from typing import TYPE_CHECKING

import click

from nbspam.cli.arguments import today
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
from nbspam.cli.values import DAY
from nbspam.errors import UsageError

if TYPE_CHECKING:
    from nbspam.store.merging.outcome import Merged


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
@click.option(
    "--day",
    type=DAY,
    metavar="YYYY-MM-DD",
    help="The day on which the messages of parts are learned.  [default: today]",
)
@json_option
def command(models: tuple[str, ...], output_path: str, day: int | None, as_json: bool) -> None:
    """Add models: the result is the model of all their messages.

    A message that several models know counts once.  If they know it as different classes,
    the last model decides.  All models must have the same settings for tokens; other
    settings are those of the first model.

    Models of tables are added if their columns are the same; each row counts, however many
    models know it.

    The parts of one training, from nbspam train --shard, are added to the model that
    training on everything at once would make.  All of them must be named.

    Of what a shell makes of a name with a star, files that belong to others (locks,
    journals, FILE~) are left out.

    \b
    nbspam merge home.nbspam office.nbspam -o both.nbspam
    nbspam merge part.* -o model.nbspam
    """
    from nbspam.store.merging.merge import merge

    for path in models:
        say(f"model {path}")
    merged = merge(models, today() if day is None else day)
    if day is not None and not merged.is_training:
        raise UsageError("--day: for parts of a training; models know the days of their messages")
    kept = save(merged.classifier, output_path)
    _show(merged, output_path, kept, as_json)


def _show(merged: "Merged", path: str, kept: str | None, as_json: bool) -> None:
    """Print what was added, and what of it several models knew."""
    from nbspam.classifier.classifier import Classifier

    classifier = merged.classifier
    facts: dict[str, object]
    if isinstance(classifier, Classifier):
        if classifier.memory and not classifier.memory.has_ledger:
            warn("a model without a ledger: messages that it shares with others count again")
        n_docs = counts_of(classifier.classes, classifier.table.class_count)
        loss, n_tokens = classifier.table.loss, len(classifier.table.vocabulary)
        facts = {"tokens": n_tokens, "forgotten": loss_json(loss)}
        rows = [(f"forgot {loss_text(loss)}",)] if loss else []
        rows.append((f"learned {n_tokens:,} tokens; model in {path}",))
        if merged.is_training:
            facts |= {"parts": merged.n_added, "repeated": merged.repeated}
        else:
            facts |= {"in_both": merged.repeated, "disputed": merged.disputed}
            both = f"{merged.repeated:,} known to several"
            rows.insert(0, (f"{both}, {merged.disputed:,} as different classes",))
    else:
        n_docs = counts_of(classifier.classes, classifier.model.class_count_)
        facts, rows = {}, [(f"learned {classifier.schema.target}; model in {path}",)]
    if as_json:
        echo_json({"model": path, "kept": kept, "read": n_docs, **facts})
        return
    n, what = sum(n_docs.values()), "parts" if merged.is_training else "models"
    again = (
        f", {merged.repeated:,} more than once" if merged.is_training and merged.repeated else ""
    )
    read = f"{n:,} {classifier.noun} ({counts_text(n_docs)}){again}"
    echo_summary([(f"added {merged.n_added} {what}: {read}",), *rows])
