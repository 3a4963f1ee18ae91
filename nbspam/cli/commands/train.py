"""nbspam train: labelled mail to a model file."""

from typing import Any

import click

from nbspam.cli import tables
from nbspam.cli.arguments import cores
from nbspam.cli.learning import learn
from nbspam.cli.options import (
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    sources_argument,
    strict_option,
    training_options,
)
from nbspam.cli.output import echo_json, echo_rows, report_skipped
from nbspam.cli.unlabelled import show_report, train_unlabelled, unlabelled_options


@click.command("train")
@sources_argument
@model_option
@label_options
@format_options
@training_options
@unlabelled_options
@tables.table_options
@jobs_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    jobs: int | None,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from labelled mail and write a new model.

    SOURCE is a folder with one sub-folder a class, a Maildir, mbox, MH folder, TREC
    index, CSV, TSV or JSONL table; --spam, --ham and --label say the class where it
    does not.  With --target it is a table of columns, whose kinds are told from their
    cells and shown.

    \b
    nbspam train mails/
    nbspam train --spam ~/Maildir/.Junk --ham ~/Maildir
    nbspam train tickets.csv --label-column queue
    nbspam train few/ --unlabelled ~/Maildir
    nbspam train iris.csv --target species
    """
    from nbspam.store.open import save

    if tables.is_table(options):
        tables.train(sources, model_path, options, strict, as_json)
        return
    tables.without_table_options(options)
    report = train_unlabelled(sources, options, cores(jobs))
    if report is not None:
        report_skipped(report.skipped, strict)
        save(model_path, report.classifier)
        show_report(report, model_path, as_json)
        return
    from nbspam.store.open import save

    learned = learn(sources, options, cores(jobs), strict)
    save(model_path, learned.classifier)
    table = learned.classifier.table
    n_docs = {c: int(n) for c, n in zip(table.classes, table.class_count, strict=True)}
    if as_json:
        skipped = [{"name": s.name, "reason": s.reason} for s in learned.skipped]
        tokens = len(table.vocabulary)
        facts = {"model": model_path, "read": n_docs, "tokens": tokens, "skipped": skipped}
        echo_json({**facts, "repeated": learned.repeated})
        return
    counts = ", ".join(f"{n:,} {name}" for name, n in n_docs.items())
    again = f", {learned.repeated:,} more than once" if learned.repeated else ""
    failed = f", skipped {len(learned.skipped):,}" if learned.skipped else ""
    echo_rows(
        [
            (f"read {table.n_docs:,} messages ({counts}){again}{failed}",),
            (f"learned {len(table.vocabulary):,} tokens; model in {model_path}",),
        ]
    )
