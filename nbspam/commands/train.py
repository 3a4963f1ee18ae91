"""nbspam train: labelled mail to a model file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from nbspam.commands.shared import (
    cores,
    echo_json,
    echo_rows,
    format_options,
    jobs_option,
    json_option,
    label_options,
    model_option,
    peek,
    read_sources,
    report_skipped,
    settings_for,
    sources_argument,
    strict_option,
    table_options,
    training_options,
    without_table_options,
)
from nbspam.commands.unlabelled import show_report, train_unlabelled, unlabelled_options


@click.command("train")
@sources_argument
@model_option
@label_options
@format_options
@training_options
@unlabelled_options
@table_options
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
    from nbspam.commands import tables

    if tables.is_table(options):
        tables.train(sources, model_path, options, strict, as_json)
        return
    without_table_options(options)
    from nbspam.featureclassifier import train_features
    from nbspam.settings import FEATURES
    from nbspam.training import count_items, train
    from nbspam.validation import read_corpus

    report = train_unlabelled(sources, options, cores(jobs))
    if report is not None:
        report_skipped(report.skipped, strict)
        report.classifier.save(model_path)
        show_report(report, model_path, as_json)
        return
    is_text, items = peek(read_sources(sources, options))
    settings = settings_for(is_text, options)
    classifier: Any
    if settings.model in FEATURES:
        # Which tokens go together is to be seen in the documents alone, not in counts.
        data, skipped = read_corpus(items, settings, cores(jobs))
        report_skipped(skipped, strict)
        classifier = train_features(data, settings)
    else:
        with _progress() as progress:
            training = count_items(items, settings, cores(jobs), progress)
        skipped = training.skipped
        report_skipped(skipped, strict)
        classifier = train(training, settings)
    classifier.save(model_path)
    table = classifier.table
    n_docs = {c: int(n) for c, n in zip(table.classes, table.class_count, strict=True)}
    if as_json:
        failures = [{"name": s.name, "reason": s.reason} for s in skipped]
        tokens = len(table.vocabulary)
        echo_json({"model": model_path, "read": n_docs, "tokens": tokens, "skipped": failures})
        return
    counts = ", ".join(f"{n:,} {name}" for name, n in n_docs.items())
    failed = f", skipped {len(skipped):,}" if skipped else ""
    echo_rows(
        [
            (f"read {table.n_docs:,} messages ({counts}){failed}",),
            (f"learned {len(table.vocabulary):,} tokens; model in {model_path}",),
        ]
    )


@contextmanager
def _progress() -> Iterator[Callable[[int], None] | None]:
    """Yield a function that shows a running count, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("reading") as status:
        yield lambda n: status.update(f"{n:,} messages read")
