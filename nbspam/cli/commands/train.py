"""nbspam train: labelled mail to a model file."""

from typing import TYPE_CHECKING

import click

from nbspam.bounds import UNBOUNDED, Bounds
from nbspam.cli.arguments import (
    items_for_em,
    items_of,
    records_of,
    table_of,
    table_settings_of,
)
from nbspam.cli.command import Command
from nbspam.cli.learning import count_part, learn, learn_rows
from nbspam.cli.options import (
    Labels,
    engine_option,
    jobs_option,
    json_option,
    label_options,
    model_option,
    reading_options,
    sources_argument,
    strict_option,
)
from nbspam.cli.output import (
    check_no_filter,
    columns_json,
    columns_text,
    counts_of,
    counts_text,
    echo_json,
    echo_summary,
    is_named,
    loss_json,
    loss_text,
    report_skipped,
    save,
    save_part,
    skipped_json,
)
from nbspam.cli.tables import columns_read_json, columns_read_rows, refuse_engine
from nbspam.cli.training_options import (
    Unlabelled,
    bounds_options,
    check_bounds,
    shard_option,
    table_options,
    training_options,
    unlabelled_options,
)
from nbspam.errors import UsageError
from nbspam.settings import Choices, TableChoices, is_for_table
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbspam.classifier.training import Learned
    from nbspam.classifier.unlabelled import Report
    from nbspam.cli.learning import Counted
    from nbspam.models.em import Step
    from nbspam.parallel import Workers
    from nbspam.tables.classifier import TableClassifier
    from nbspam.tables.em import EmReport
    from nbspam.verdicts import Skipped


@click.command("train", cls=Command)
@sources_argument
@model_option
@label_options
@reading_options
@training_options
@unlabelled_options
@table_options
@bounds_options
@shard_option
@jobs_option
@engine_option
@strict_option
@json_option
def command(
    sources: tuple[str, ...],
    model_path: str,
    labels: Labels,
    reading: SourceOptions,
    training: Choices,
    unlabelled: Unlabelled,
    columns: TableChoices,
    bounds: Bounds,
    shard: tuple[int, int] | None,
    jobs: "Workers",
    strict: bool,
    as_json: bool,
) -> None:
    """Learn from labelled mail and write a new model.

    SOURCE is a folder with one sub-folder for each class, a Maildir, an mbox, an MH folder,
    a TREC index, or a table of texts in CSV, TSV or JSON lines.  Where SOURCE does not name
    the classes, --spam, --ham and --label do.  With --target, SOURCE is a table of columns;
    nbspam tells from the cells whether a column holds categories or numbers, and prints it.

    If the model file holds a model that knows anything which the new one does not, that model
    is kept as FILE~.  A table replaces the model of a mail filter only where -m says so.

    \b
    nbspam train mails/
    nbspam train --spam ~/Maildir/.Junk --ham ~/Maildir
    nbspam train tickets.csv --label-column queue
    nbspam train few/ --unlabelled ~/Maildir
    nbspam train iris.csv --target species
    nbspam train mails/ --shard 3/8 -m part.3
    """
    is_table = is_for_table(training, columns)
    check_bounds(bounds, is_table, unlabelled)
    if shard is not None:
        _check_shard(is_table, unlabelled, bounds)
        counted = count_part(sources, reading, labels, training, shard, jobs, strict)
        kept = save_part(counted.share, counted.settings, model_path)
        _show_part(counted, model_path, kept, as_json)
    elif is_table:
        refuse_engine(jobs)
        check_no_filter(model_path)
        settings = table_settings_of(training, columns)
        if unlabelled == Unlabelled():
            from nbspam.tables.training import train_table

            data = table_of(sources, reading, labels, settings, strict)
            classifier = train_table(data.table, settings)
            kept = save(classifier, model_path)
            _show_table(classifier, data.skipped, model_path, kept, as_json)
        else:
            of_row = _weight_in_table(unlabelled)
            records = records_of(sources, reading, labels)
            more = records_of(unlabelled.paths, reading) if unlabelled.paths else iter(())
            found = learn_rows(records, more, settings, of_row, unlabelled.hard)
            kept = save(found.classifier, model_path)
            _show_em(found, of_row, model_path, kept, as_json)
    elif unlabelled.em:
        raise UsageError("--em: for a table; say --target COLUMN, or --unlabelled PATH for texts")
    elif unlabelled.paths:
        from nbspam.classifier.unlabelled import train_with_unlabelled

        em_settings, items = items_for_em(sources, reading, training, labels)
        # Their classes do not matter, and so need no column.
        unlabelled_reading = reading._replace(label_column=None, learned=em_settings.columns)
        others = items_of(unlabelled.paths, unlabelled_reading)
        weight = unlabelled.weight if isinstance(unlabelled.weight, float) else None
        report = train_with_unlabelled(items, others, em_settings, weight, unlabelled.hard, jobs)
        report_skipped(report.skipped, strict)
        kept = save(report.classifier, model_path)
        _show_rounds(report, model_path, kept, as_json)
    elif unlabelled != Unlabelled():
        raise UsageError("--unlabelled-weight, --hard: for --unlabelled PATH; give it too")
    else:
        learned = learn(sources, reading, labels, training, jobs, strict, bounds)
        kept = save(learned.classifier, model_path)
        _show(learned, model_path, kept, as_json)


def _check_shard(is_table: bool, unlabelled: Unlabelled, bounds: Bounds) -> None:
    """Raise UsageError for what cannot be trained in parts."""
    if is_table:
        raise UsageError(
            "--shard: for mail and text; the columns of a table are known only from all of its"
            " rows, so train it without"
        )
    if unlabelled != Unlabelled():
        raise UsageError(
            "--shard: EM needs all documents in every round; train without --shard, or without"
            " --unlabelled and --em"
        )
    if bounds != UNBOUNDED:
        raise UsageError(
            "--shard: parts have every token and message; to forget some, train a model of each"
            " part of the mail by itself, and merge these"
        )
    if not is_named("model_path"):
        raise UsageError("--shard: writes a part and no model; say where, as in -m part.1")


def _show_part(counted: "Counted", path: str, kept: str | None, as_json: bool) -> None:
    """Print how many messages were read, and what the part is."""
    share, settings = counted.share, counted.settings
    table, n_items = share.table, share.census.n_items
    n_docs = counts_of(table.classes, table.class_count)
    if as_json:
        facts = {"shard": list(share.shard), "items": n_items, "read": n_docs}
        facts |= {"tokens": len(table.vocabulary), **columns_read_json(settings.columns)}
        skipped = skipped_json(counted.skipped)
        echo_json({"model": path, "kept": kept, **facts, "skipped": skipped})
        return
    failed = f", skipped {len(counted.skipped):,}" if counted.skipped else ""
    classes = f" ({counts_text(n_docs)})" if n_docs else ""
    echo_summary(
        [
            (f"read {table.n_docs:,} of {n_items:,} {settings.noun}{classes}{failed}",),
            *columns_read_rows(settings.columns),
            (f"counted {len(table.vocabulary):,} tokens; part {share.shard} in {path}",),
        ]
    )


def _weight_in_table(unlabelled: Unlabelled) -> float:
    """Return the weight of a row without a class; raises UsageError."""
    if not (unlabelled.paths or unlabelled.em):
        raise UsageError(
            "--unlabelled-weight, --hard: for rows without a class; say --em or --unlabelled PATH"
        )
    if isinstance(unlabelled.weight, str):
        raise UsageError("--unlabelled-weight auto: for mail and text; give a number for a table")
    return 1.0 if unlabelled.weight is None else unlabelled.weight


def _show(learned: "Learned", model_path: str, kept: str | None, as_json: bool) -> None:
    """Print how many messages were read and how many tokens were learned."""
    table = learned.classifier.table
    n_docs = counts_of(table.classes, table.class_count)
    if as_json:
        facts = {"read": n_docs, "tokens": len(table.vocabulary)}
        facts["forgotten"] = loss_json(table.loss)
        facts |= columns_read_json(learned.classifier.settings.columns)
        skipped = skipped_json(learned.skipped)
        echo_json(
            {
                "model": model_path,
                "kept": kept,
                **facts,
                "skipped": skipped,
                "repeated": learned.repeated,
            }
        )
        return
    noun = learned.classifier.noun
    again = f", {learned.repeated:,} more than once" if learned.repeated else ""
    failed = f", skipped {len(learned.skipped):,}" if learned.skipped else ""
    echo_summary(
        [
            (f"read {table.n_docs:,} {noun} ({counts_text(n_docs)}){again}{failed}",),
            *columns_read_rows(learned.classifier.settings.columns),
            *([(f"forgot {loss_text(table.loss)}",)] if table.loss else []),
            (f"learned {len(table.vocabulary):,} tokens; model in {model_path}",),
        ]
    )


def _show_table(
    classifier: "TableClassifier",
    skipped: "tuple[Skipped, ...]",
    model_path: str,
    kept: str | None,
    as_json: bool,
) -> None:
    """Print how many rows were read and what the columns hold."""
    schema = classifier.schema
    n_rows = counts_of(schema.classes, classifier.model.class_count_)
    if as_json:
        facts = {"model": model_path, "kept": kept, "kind": classifier.name, "read": n_rows}
        columns = columns_json(schema)
        echo_json({**facts, "columns": columns, "skipped": skipped_json(skipped)})
        return
    failed = f", skipped {len(skipped):,}" if skipped else ""
    echo_summary(
        [
            (f"read {sum(n_rows.values()):,} rows ({counts_text(n_rows)}){failed}",),
            *((f"  {line}",) for line in columns_text(schema)),
            (f"learned {schema.target} by {classifier.name}; model in {model_path}",),
        ]
    )


def _show_em(
    found: "EmReport", weight: float, model_path: str, kept: str | None, as_json: bool
) -> None:
    """Print how many rows were read, and each round of EM."""
    classifier, schema = found.classifier, found.classifier.schema
    if as_json:
        facts = {"model": model_path, "kept": kept, "kind": classifier.name}
        read = {"labelled": found.n_labelled, "unlabelled": found.n_unlabelled, "weight": weight}
        echo_json({**facts, **read, **_rounds_json(found.steps), "columns": columns_json(schema)})
        return
    echo_summary(_rounds_rows(found.steps))
    echo_summary(
        [
            (f"read {found.n_labelled:,} rows with a class, {found.n_unlabelled:,} without",),
            *((f"  {line}",) for line in columns_text(schema)),
            (f"learned {schema.target} by {classifier.name} and EM; model in {model_path}",),
        ]
    )


def _rounds_json(steps: "Iterable[Step]") -> dict[str, object]:
    """Return the rounds of EM, for JSON."""
    rounds = [
        {"log_likelihood": s.log_likelihood, "gain": s.gain, "change": s.change} for s in steps
    ]
    return {"rounds": rounds}


def _rounds_rows(steps: "Iterable[Step]") -> list[tuple[str, ...]]:
    """Return the rounds of EM as rows, under a row of headings."""
    return [
        ("round", "log-likelihood", "gain of Q", "largest change"),
        *(
            (str(n), f"{s.log_likelihood:.1f}", f"{s.gain:.1f}", f"{s.change:.6f}")
            for n, s in enumerate(steps)
        ),
    ]


def _show_rounds(report: "Report", model_path: str, kept: str | None, as_json: bool) -> None:
    """Print what was read, how the weight was chosen, and each round of EM."""
    n_tokens, steps = len(report.classifier.table.vocabulary), report.fit.steps
    if as_json:
        echo_json(
            {
                "model": model_path,
                "kept": kept,
                "labelled": report.n_labelled,
                "unlabelled": report.n_unlabelled,
                "weight": report.weight,
                "held_out_accuracy": {f"{w:g}": a for w, a in report.accuracy.items()},
                **_rounds_json(steps),
                "tokens": n_tokens,
                **columns_read_json(report.classifier.settings.columns),
                "skipped": skipped_json(report.skipped),
            }
        )
        return
    tried = ", ".join(f"{w:g}: {a:.1%}" for w, a in report.accuracy.items())
    chosen = f" (held-out accuracy by weight {tried})" if tried else ""
    echo_summary(_rounds_rows(steps))
    echo_summary(
        [
            (f"read {report.n_labelled:,} labelled, {report.n_unlabelled:,} unlabelled",),
            *columns_read_rows(report.classifier.settings.columns),
            (f"an unlabelled document counts {report.weight:g}{chosen}",),
            (f"learned {n_tokens:,} tokens; model in {model_path}",),
        ]
    )
