"""nbspam table classify, predict, explain, lazy and eval: the answers of models of tables."""

import sys
from collections.abc import Iterator
from math import isnan
from typing import TYPE_CHECKING, cast

import click

from nbspam.cli import inputs, options
from nbspam.cli.frame import Command
from nbspam.cli.judging import (
    ExplanationForm,
    VerdictForm,
    explained_as_json,
    explained_as_text,
    explanation_options,
    finite,
    print_explanations,
    print_labels,
    print_verdicts,
    verdict_options,
)
from nbspam.cli.measuring import (
    JudgingOptions,
    TrainingWay,
    TrialForm,
    cv_option,
    is_new,
    print_trial,
    refuse_training,
    test_option,
    trial_form_options,
    trial_of_model,
)
from nbspam.cli.output import Successes, check_page, echo_verdicts
from nbspam.cli.table_training import labelled_table
from nbspam.cli.training_options import columns_options, table_training_options
from nbspam.errors import UsageError
from nbspam.settings import SettingsChoices, TableChoices

if TYPE_CHECKING:
    from nbspam.evaluation.evaluation import Trial
    from nbspam.sources.records import Record
    from nbspam.tables.classifier import Factors, TableClassifier
    from nbspam.tables.schema import Schema
    from nbspam.tables.training import TableSettings
    from nbspam.workers import Workers


@click.command(
    "classify", cls=Command, group="table", first=("--model-file", "--json", "--csv", "--loss")
)
@inputs.question_options(inputs.row_options, options.prior_or_estimated_option)
@options.jobs_option
@options.strict_option
@verdict_options
def table_classify_command(
    question: inputs.Question, jobs: int, strict: bool, form: VerdictForm
) -> int:
    """Print one line per row: label, probability, name.

    SOURCE is a table with a row of column names, or with the columns in the order of training;
    the class is not needed.  Without SOURCE, or with -, rows come from standard input.

    The label is the most probable class or, where --loss states costs, the answer with the least
    expected cost.  JSON also has the posterior probability of every class.

    \b
    nbspam table classify new.csv
    nbspam table classify --csv new.csv > answered.csv
    """
    return print_verdicts(question, jobs, strict, form)


@click.command(
    "predict", cls=Command, group="table", first=("--model-file", "--json", "--loss", "--prior")
)
@inputs.question_options(inputs.row_options, options.prior_option)
@options.jobs_option
@options.json_option
def table_predict_command(question: inputs.Question, jobs: int, as_json: bool) -> int:
    """Print the label of every row, one per line, and nothing else.

    The labels are those of `nbspam table classify`.  Line N is always the label of row N.

    \b
    nbspam table predict new.csv | sort | uniq -c
    """
    return print_labels(question, jobs, as_json)


@click.command("lazy", cls=Command, group="table", first=("--target", "--model", "--json"))
@click.argument("corpus")
@inputs.rows_options
@options.decision_options
@columns_options(is_required=True)
@table_training_options
@options.jobs_option
@options.json_option
def table_lazy_command(
    corpus: str,
    rows: inputs.Rows,
    decision: options.Decision,
    columns: TableChoices,
    training: SettingsChoices,
    jobs: int,
    as_json: bool,
) -> int:
    """Classify rows by a labelled table CORPUS, without a model file.

    The answers are, bit by bit, those of `nbspam table train CORPUS` and `nbspam table
    classify`.

    \b
    nbspam table lazy iris.csv new.csv --target species
    """
    from nbspam.tables.training import table_settings, train_table

    settings = table_settings(training, columns)
    data = labelled_table(inputs.Rows((corpus,), rows.reading), settings)
    classifier = train_table(data.table, settings)
    question = inputs.asked_of(classifier, *rows, decision)
    successes = Successes()
    verdicts = classifier.classify(question.inputs, jobs, question.rule)
    echo_verdicts(successes.of(verdicts), as_json, question.costs)
    return successes.status


# --- explanations ----------------------------------------------------------------------------


@click.command(
    "explain",
    cls=Command,
    group="table",
    first=("--factors", "--number", "--model-file", "--json"),
)
@inputs.question_options(inputs.row_options, options.prior_option)
@explanation_options
@click.option(
    "--factors",
    is_flag=True,
    help="Print every factor of a row's probability, and the product so far.",
)
def table_explain_command(question: inputs.Question, form: ExplanationForm, factors: bool) -> int:
    """Show how much each value adds to the score of a row, strongest first.

    The columns are the nats it adds (above 0 for the class that the score is for), the number
    of rows of each class that have the value, its column, and the value.  All of them and the
    constant add up to the score, which is the log-odds of that class.

    \b
    nbspam table explain rows.csv
    nbspam table explain --factors rows.csv
    """
    check_page(form.report)
    if form.report is not None and factors:
        raise UsageError("--report and --factors: a report shows no factors; leave out one")
    asked = inputs.asked_model(question)
    return _print_factors(asked, form) if factors else print_explanations(asked, form)


def _print_factors(question: inputs.AskedModel, form: ExplanationForm) -> int:
    from nbspam.printing import write_lines
    from nbspam.tables.classifier import factors

    successes = Successes(form.strict)
    classifier = cast("TableClassifier", question.classifier)
    asked = cast("Iterator[Record]", question.inputs)
    rows = successes.of(factors(classifier, asked, question.rule))
    if form.as_json:
        write_lines(explained_as_json(rows, question, _factors_json), sys.stdout)
    else:
        write_lines(explained_as_text(rows, question, _factor_lines), sys.stdout)
    return successes.status


def _factor_lines(row: "Factors") -> Iterator[str]:
    """Yield the factors of one row, and the product after each of them, class by class."""
    from nbspam.printing import display_width, printable, right

    verdict = row.verdict
    yield printable(f"{verdict.label}  probability {verdict.probability:.4f}  {verdict.name}")
    classes = list(verdict.posterior)
    heads = [f"{what} {name}" for what in ("factor", "product") for name in classes]
    lines = [(*map(printable, heads), "value")]
    for name, factor, product in _steps(row):
        # Factors after a zero are undefined.
        numbers = ("-" if isnan(value) else f"{value:.6g}" for value in (*factor, *product))
        lines.append((*numbers, printable(name)))
    width = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = map(right, line[:-1], width)
        yield "  ".join([*cells, line[-1]])


def _factors_json(row: "Factors") -> dict[str, object]:
    """Return the factors of one row for JSON; null replaces the undefined ones."""
    classes = list(row.verdict.posterior)
    factors = [
        {
            "value": name,
            "factor": dict(zip(classes, map(finite, factor), strict=True)),
            "product": dict(zip(classes, map(finite, product), strict=True)),
        }
        for name, factor, product in _steps(row)
    ]
    return {"factors": factors}


def _steps(row: "Factors") -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield the prior and then each value: its name, its factors, and the products so far."""
    names = [f"({row.target})", *row.values]
    yield from zip(names, row.factor.tolist(), row.product.tolist(), strict=True)


# --- evaluation ------------------------------------------------------------------------------


def _way(cv: int | str | None, test: str | None) -> TrainingWay:
    return TrainingWay(cv, test)


@click.command(
    "eval", cls=Command, group="table", first=("--target", "--cv", "--test", "--model-file")
)
@inputs.rows_options
@options.model_option
@options.filling(_way, "way", options.JUDGING, cv_option, test_option)
@trial_form_options("folds and intervals")
@options.decision_options
@options.prior_or_estimated_option
@columns_options(is_required=False)
@table_training_options
@options.workers_options
@options.strict_option
def table_eval_command(
    rows: inputs.Rows,
    model_path: str,
    way: TrainingWay,
    form: TrialForm,
    decision: options.Decision,
    prior: options.Shares | str | None,
    columns: TableChoices,
    training: SettingsChoices,
    jobs: "Workers",
    strict: bool,
) -> None:
    """Measure the accuracy of a model on labelled rows, and print a classification report.

    Without --cv or --test, the model file is judged.  With one of them a new model is trained
    by the options of `nbspam table train`, and no model file is read or written.

    \b
    nbspam table eval iris.csv
    nbspam table eval iris.csv --target species --cv 10
    nbspam table eval train.csv --target species --test test.csv
    """

    def judged(how: JudgingOptions) -> "Trial":
        from nbspam.tables.training import table_settings

        if not is_new(way):
            refuse_training([*training.given, *columns.given])
            return trial_of_model(
                model_path, inputs.LabelledSources(*rows, inputs.NO_LABELS), how, jobs
            )
        if columns.target is None:
            raise UsageError("--cv, --test: train a new model; say --target COLUMN, too")
        settings = table_settings(training, columns)
        return _trial_of_table(rows, settings, how, strict, jobs)

    print_trial(judged, rows.sources, way, form, prior, decision, strict)


def _trial_of_table(
    rows: inputs.Rows,
    settings: "TableSettings",
    how: JudgingOptions,
    strict: bool,
    jobs: "Workers",
) -> "Trial":
    from nbspam.evaluation import judging

    way, seed, with_curve, witness = how
    data = labelled_table(rows, settings, strict)
    if way.cv is not None:
        return judging.table_trial(data.table, settings, way.cv, seed, with_curve, jobs, witness)
    if not isinstance(jobs, int):
        raise UsageError("--engine: for --cv; --test trains a single model here, leave it out")

    def test_records(schema: "Schema") -> "Iterator[Record]":
        return inputs.records_of([str(way.test)], rows.reading, schema)

    return judging.judge_table_split(data.table, settings, test_records, with_curve, witness)
