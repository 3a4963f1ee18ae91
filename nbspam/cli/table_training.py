"""nbspam table train, update, unlearn, merge and cluster: models of rows of typed columns."""

from itertools import chain
from typing import TYPE_CHECKING, cast

import click

from nbspam.cli import inputs, options, output, training_options
from nbspam.cli.frame import subcommand
from nbspam.cli.looking import ClusterForm, cluster_options, show_clusters
from nbspam.cli.training import rounds_json, show_rounds
from nbspam.errors import UsageError
from nbspam.printing import amount_text
from nbspam.settings import SettingsChoices, TableChoices

if TYPE_CHECKING:
    from nbspam.models.em import EMReport, Step
    from nbspam.store.tables import StoredTable
    from nbspam.tables.classifier import TableClassifier
    from nbspam.tables.training import TableData, TableSettings
    from nbspam.verdicts import Skipped


@subcommand("table train", "--target", "--model", "--drop", "--model-file")
@inputs.rows_options
@options.model_option
@training_options.columns_options(is_required=True)
@training_options.table_training_options
@training_options.table_unlabelled_options
@options.strict_option
@options.json_option
def table_train_command(
    rows: inputs.Rows,
    model_path: str,
    columns: TableChoices,
    training: SettingsChoices,
    unlabelled: training_options.UnlabelledSources,
    strict: bool,
    as_json: bool,
) -> None:
    """Learn from rows whose class is in a column, and write a new model.

    SOURCE is a table in CSV, TSV, JSON lines or parquet.  A former model is kept as FILE~; that
    of a mail filter is replaced only where -m says so.

    \b
    nbspam table train iris.csv --target species
    nbspam table train iris.csv --target species --model tan
    """
    from nbspam.store.open import check_no_filter
    from nbspam.tables.schema import schema_to_dict
    from nbspam.tables.training import table_settings, train_table

    if not output.is_named("model_path"):
        check_no_filter(model_path)
    settings = table_settings(training, columns)
    steps: tuple[Step, ...] = ()
    if unlabelled == training_options.UnlabelledSources():
        data = labelled_table(rows, settings, strict)
        classifier, by = train_table(data.table, settings), ""
        facts, read = _rows_read(classifier, data.skipped)
    else:
        found = _learn_unlabelled(rows, settings, unlabelled)
        classifier, by, steps = found.classifier, " and EM", found.fit.steps
        of_each = {"labelled": found.n_labelled, "unlabelled": found.n_unlabelled}
        facts = {**of_each, "weight": found.weight, **rounds_json(steps)}
        read = f"{amount_text(found.n_labelled, 'rows')} with a class"
        read += f", {found.n_unlabelled:,} without"
    kept = output.save_model(classifier, model_path)
    if steps and not as_json:
        show_rounds(steps)
    facts = {"model": model_path, "kept": kept, "kind": classifier.name, **facts}
    kinds = (f"  {line}" for line in output.columns_text(classifier.schema))
    learned = f"learned {settings.target} by {classifier.name}{by}; model in {model_path}"
    facts["columns"] = schema_to_dict(classifier.schema)["columns"]
    output.echo_result(as_json, facts, f"read {read}", *kinds, learned)


def _rows_read(
    classifier: "TableClassifier", skipped: "tuple[Skipped, ...]"
) -> tuple[dict[str, object], str]:
    """Return how many rows of each class a model has learned, for JSON and in words."""
    n_rows = output.class_counts_of(classifier.classes, classifier.model.class_count_)
    failed = f", skipped {len(skipped):,}" if skipped else ""
    facts: dict[str, object] = {"read": n_rows, "skipped": output.skipped_json(skipped)}
    return facts, f"{output.total_text(n_rows, 'rows')}{failed}"


def labelled_table(
    rows: inputs.Rows, settings: "TableSettings", strict: bool = False
) -> "TableData":
    """Return the labelled rows of tables; report their faults on standard error."""
    from nbspam.tables.training import read_table

    data = read_table(inputs.records_of(*rows), settings)
    output.warn_of(data.notes)
    output.report_skipped(data.skipped, strict)
    return data


def _learn_unlabelled(
    rows: inputs.Rows, settings: "TableSettings", unlabelled: training_options.UnlabelledSources
) -> "EMReport":
    """Return the model that EM makes of rows with and without a class; raises UsageError."""
    if not (unlabelled.paths or unlabelled.em):
        raise UsageError(
            "--unlabelled-weight, --hard, --rounds, --epsilon, --restarts, --seed: for rows"
            " without a class; say --em or --unlabelled PATH"
        )
    from nbspam.models.em import stopping
    from nbspam.tables.training import read_table
    from nbspam.tables.unlabelled import train_by_em, without_class

    others = inputs.records_of(unlabelled.paths, rows.reading) if unlabelled.paths else iter(())
    records = chain(inputs.records_of(*rows), without_class(others, settings.target))
    data = read_table(records, settings, with_unlabelled=True)
    output.warn_of(data.notes)
    weight = 1.0 if unlabelled.weight is None else float(unlabelled.weight)
    when = stopping(unlabelled.rounds, unlabelled.epsilon)
    return train_by_em(
        data.table, settings, weight, unlabelled.hard, when, unlabelled.restarts, unlabelled.seed
    )


@subcommand("table update", "--model-file", "--new-class", "--json")
@inputs.rows_options
@options.model_option
@options.new_class_option
@options.json_option
def table_update_command(
    rows: inputs.Rows, model_path: str, new_class: bool, as_json: bool
) -> int:
    """Learn more labelled rows.

    SOURCE is a table with the columns and the class of the model.  Every row counts, also one
    that was learned before.  If a row has a class that the model does not have, nothing is
    learned, unless --new-class is given.

    \b
    nbspam table update -m iris.nbspam more.csv
    """
    model: StoredTable = inputs.stored_model(model_path)
    outcome = model.learn(inputs.records_of(*rows, model.classifier().schema.names), new_class)
    return output.report_outcome(outcome, model_path, as_json)


@subcommand("table unlearn", "--model-file", "--json")
@inputs.rows_options
@options.model_option
@options.json_option
def table_unlearn_command(rows: inputs.Rows, model_path: str, as_json: bool) -> int:
    """Take rows out of the model, as if it had never learned them.

    Rows are not remembered one by one: they must be given as they were learned, with their
    class, and all of them or none are taken out.

    \b
    nbspam table unlearn -m iris.nbspam wrong.csv
    """
    model: StoredTable = inputs.stored_model(model_path)
    outcome = model.unlearn(inputs.records_of(*rows, model.classifier().schema.names))
    return output.report_outcome(outcome, model_path, as_json)


@subcommand("table merge", "--output", "--json")
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...")
@options.output_option("The model file to write.")
@options.json_option
def table_merge_command(models: tuple[str, ...], output_path: str, as_json: bool) -> None:
    """Add models of tables that have the same columns.

    Each row counts, however many models know it.

    \b
    nbspam table merge one.nbspam two.nbspam -o both.nbspam
    """
    merged = inputs.merged_models(models, day=0)
    classifier = cast("TableClassifier", merged.classifier)
    kept = output.save_model(classifier, output_path)
    n_rows = output.class_counts_of(classifier.classes, classifier.model.class_count_)
    read = output.total_text(n_rows, classifier.noun)
    facts = {"model": output_path, "kept": kept, "read": n_rows}
    learned = f"learned {classifier.schema.target}; model in {output_path}"
    output.echo_result(as_json, facts, f"added {merged.n_added} models: {read}", learned)


@subcommand("table cluster", "-k", "--drop", "--assignments", "--json")
@inputs.rows_options
@cluster_options
@click.option(
    "--alpha",
    type=options.FROM_ZERO,
    metavar="NUMBER",
    default=1.0,
    show_default=True,
    help="Smoothing: a number added to every count.",
)
@training_options.cluster_columns_options
@options.picture_option("Draw the normal distribution of each number in each cluster.")
def table_cluster_command(
    rows: inputs.Rows, form: ClusterForm, alpha: float, columns: TableChoices, plot: str | None
) -> None:
    """Sort rows without a class into K clusters, and print what is typical of each.

    Typical are values and their probabilities, or numbers and their means and standard
    deviations.

    \b
    nbspam table cluster iris.csv -k 3 --drop species
    """
    from nbspam.models.em import stopping
    from nbspam.tables.unlabelled import cluster_rows

    form.check()
    if plot is not None:
        output.check_picture(plot)
    kinds = columns.categorical, columns.numeric, columns.drop
    when = stopping(form.rounds, form.epsilon)
    found = cluster_rows(
        inputs.records_of(*rows), form.k, alpha, *kinds, form.restarts, form.hard, form.seed, when
    )
    output.warn_of(found.notes)
    if plot is not None:
        from nbspam.evaluation.pictures import clusters_picture

        output.write_picture(clusters_picture(found), plot)
    features = (features[: form.number] for features in found.features)
    typical = dict(zip(found.clusters, features, strict=True))
    named = found.names, found.clusters, found.share
    show_clusters(form, found.fit.steps, *named, typical, ("rows", "values"), "  ")
