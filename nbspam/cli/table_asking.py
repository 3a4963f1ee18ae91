"""nbspam table classify, predict, explain, lazy, eval, info, query and export.

The answers of a model of a table, and its estimates.  Estimates are laid out for 80
columns of a terminal; where there are many, some are left out and counted.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from math import exp, inf, isnan, log
from typing import TYPE_CHECKING, Any, cast

import click

from nbspam import printing
from nbspam.cli import inputs, judging, looking, measuring, options, output
from nbspam.cli.frame import subcommand
from nbspam.cli.table_training import labelled_table
from nbspam.cli.training_options import columns_options, table_training_options
from nbspam.errors import UsageError
from nbspam.settings import SettingsChoices, TableChoices, decisions_made

if TYPE_CHECKING:
    from nbspam.evaluation.evaluation import Trial
    from nbspam.sources.records import Record
    from nbspam.tables.classifier import Estimated, Factors, TableClassifier
    from nbspam.tables.schema import Schema
    from nbspam.tables.training import TableSettings
    from nbspam.workers import Workers


@subcommand("table classify", "--model-file", "--json", "--csv", "--loss")
@inputs.question_options(inputs.row_options, options.prior_or_estimated_option)
@options.jobs_option
@judging.verdict_options
def table_classify_command(question: inputs.Question, jobs: int, form: judging.VerdictForm) -> int:
    """Print one line per row: label, probability, name.

    SOURCE is a table with a row of column names, or with the columns in the order of training;
    the class is not needed.  Without SOURCE, or with -, rows come from standard input.

    The label is the most probable class or, where --loss states costs, the answer with the least
    expected cost.  JSON also has the posterior probability of every class.

    \b
    nbspam table classify new.csv
    nbspam table classify --csv new.csv > answered.csv
    """
    return judging.print_verdicts(question, jobs, form)


@subcommand("table predict", "--model-file", "--json", "--loss", "--prior")
@inputs.question_options(inputs.row_options, options.prior_option)
@options.jobs_option
@options.json_option
def table_predict_command(question: inputs.Question, jobs: int, as_json: bool) -> int:
    """Print the label of every row, one per line, and nothing else.

    The labels are those of `nbspam table classify`.  Line N is always the label of row N.

    \b
    nbspam table predict new.csv | sort | uniq -c
    """
    return judging.print_labels(question, jobs, as_json)


@subcommand("table lazy", "--target", "--model", "--json")
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
    return judging.print_answers(inputs.asked_of(classifier, *rows, decision), jobs, as_json)


# --- explanations ----------------------------------------------------------------------------


@subcommand("table explain", "--factors", "--number", "--model-file", "--json")
@inputs.question_options(inputs.row_options, options.prior_option)
@judging.explanation_options
@click.option(
    "--factors",
    is_flag=True,
    help="Print every factor of a row's probability, and the product so far.",
)
def table_explain_command(
    question: inputs.Question, form: judging.ExplanationForm, factors: bool
) -> int:
    """Show how much each value adds to the score of a row, strongest first.

    The columns are the nats it adds (above 0 for the class that the score is for), the number
    of rows of each class that have the value, its kind, and the value with its column.  All of
    them and the constant add up to the score, which is the log-odds of that class.

    \b
    nbspam table explain rows.csv
    nbspam table explain --factors rows.csv
    """
    output.refuse_two({"--report": form.report is not None, "--factors": factors})
    output.refuse_two({"--brief": form.brief, "--factors": factors})
    output.refuse_two({"--number": output.is_named("number"), "--factors": factors})
    return (_print_factors if factors else judging.print_explanations)(question, form)


def _print_factors(question: inputs.Question, form: judging.ExplanationForm) -> int:
    from nbspam.tables.classifier import factors

    asked = inputs.asked_model(question)
    successes = output.Successes(form.strict)
    classifier = cast("TableClassifier", asked.classifier)
    records = cast("Iterator[Record]", asked.inputs)
    rows = successes.of(factors(classifier, records, asked.rule))
    if form.as_json:
        output.echo_lines(judging.explained_as_json(rows, asked, _factors_json))
    else:
        output.echo_lines(judging.explained_as_text(rows, asked, _factor_lines))
    return successes.status


def _factor_lines(row: "Factors") -> Iterator[str]:
    """Yield the factors of one row, and the product after each of them, class by class."""
    verdict = row.verdict
    yield printing.printable(
        f"{verdict.label}  probability {verdict.probability:.4f}  {verdict.name}"
    )
    classes = list(verdict.posterior)
    heads = [f"{what} {name}" for what in ("factor", "product") for name in classes]
    lines = [(*map(printing.printable, heads), "value")]
    for (name, factor, product), nats in zip(_steps(row), row.log_product.tolist(), strict=True):
        # Factors after a zero are undefined.
        numbers = ("-" if isnan(value) else f"{value:.6g}" for value in factor)
        lines.append((*numbers, *map(_product, product, nats), printing.printable(name)))
    width = [max(map(printing.display_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = map(printing.right, line[:-1], width)
        yield "  ".join([*cells, line[-1]])


def _product(product: float, nats: float) -> str:
    """Return a product in six digits, by its logarithm (nats) if no float can hold it."""
    if 1e-300 < product < inf or abs(nats) > 1e12:
        return f"{product:.6g}"
    power, rest = divmod(nats, log(10))
    return f"{exp(rest):.6g}e{power:.0f}"


def _factors_json(row: "Factors") -> dict[str, object]:
    """Return the factors of one row for JSON; null replaces the undefined ones."""

    def by_class(numbers: list[float]) -> dict[str, float | None]:
        return dict(zip(row.verdict.posterior, map(printing.finite, numbers), strict=True))

    steps = ((name, by_class(factor), by_class(product)) for name, factor, product in _steps(row))
    return {"factors": [{"value": v, "factor": f, "product": p} for v, f, p in steps]}


def _steps(row: "Factors") -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield the prior and then each value: its name, its factors, and the products so far."""
    names = [f"({row.target})", *row.values]
    yield from zip(names, row.factor.tolist(), row.product.tolist(), strict=True)


# --- evaluation ------------------------------------------------------------------------------


@subcommand("table eval", "--target", "--cv", "--test", "--model-file")
@inputs.rows_options
@options.model_option
@options.filling(
    measuring.TrainingWay, "way", options.JUDGING, measuring.cv_option, measuring.test_option
)
@options.decision_options
@options.prior_or_estimated_option
@columns_options(is_required=False)
@table_training_options
@options.workers_options
@options.strict_option
@measuring.trial_form_options("folds and intervals")
def table_eval_command(
    rows: inputs.Rows,
    model_path: str,
    way: measuring.TrainingWay,
    form: measuring.TrialForm,
    decision: options.Decision,
    prior: options.PriorShares | str | None,
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

    def judged(how: measuring.JudgingOptions) -> "Trial":
        from nbspam.tables.training import table_settings

        if not measuring.is_new(way):
            given = [*decisions_made(training), *decisions_made(columns)]
            measuring.refuse_training(given, "--cv K or --test SOURCE")
            return measuring.trial_of_model(
                model_path, inputs.LabelledSources(*rows, inputs.NO_LABELS), how, jobs
            )
        if columns.target is None:
            raise UsageError("--cv, --test: train a new model; say --target COLUMN, too")
        return _trial_of_table(rows, table_settings(training, columns), how, strict, jobs)

    measuring.print_trial(judged, rows.sources, way, form, prior, decision, strict)


def _trial_of_table(
    rows: inputs.Rows,
    settings: "TableSettings",
    how: measuring.JudgingOptions,
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
        records = inputs.records_of([str(way.test)], rows.reading, schema.names)
        return inputs.warned_of_unseen(records, schema)

    return judging.judge_table_split(data.table, settings, test_records, with_curve, witness)


# --- what is in a model of a table -----------------------------------------------------------

_WIDTH = 80
_LABEL = 28  # columns for the values, which are cut
_HEAD = 12  # columns for what stands before a fact
_MAX_LINES, _MAX_ROWS = 60, 12  # of all distributions, and rows of each


@subcommand("table info", "--model-file", "--plot", "--json")
@options.model_option
@options.picture_option("Draw the graph of the columns, and the normal distributions.")
@options.json_option
def table_info_command(model_path: str, plot: str | None, as_json: bool) -> None:
    """Verify the model of a table, and show its training data and its estimates.

    The estimates are class priors, tables of categories with their counts, means and standard
    deviations, and which columns depend on which.

    \b
    nbspam table info
    nbspam table info -m iris.nbspam --plot iris.svg
    """
    classifier = cast("TableClassifier", inputs.loaded_model(model_path))
    if plot is not None:
        from nbspam.evaluation.pictures import model_picture

        output.check_picture(plot)
        output.write_picture(model_picture(classifier), plot)
    n_bytes = os.path.getsize(model_path)
    if as_json:
        first = {"model": model_path, "bytes": n_bytes}
        sys.stdout.writelines(_json_pieces(classifier, whole=False, first=first))
    else:
        file = f"{model_path} ({n_bytes:,} bytes, verified)"
        output.echo_lines(_info_lines(classifier, file))


@subcommand(
    "table query", "--target", "--evidence", "--model-file", "--json", kind=looking.QueryCommand
)
@options.model_option
@looking.network_options
def table_query_command(model_path: str, question: looking.NetworkQuestion) -> None:
    """Ask a Bayesian network of columns, or print its structure.

    The model is one of `nbspam table train --model network`, or a JSON file as this command
    prints it.

    \b
    nbspam table query -m m.nbspam
    nbspam table query -m m.nbspam --target ripe --evidence colour=green
    nbspam table query -m m.nbspam --target ripe sweet --evidence sound=dull
    nbspam table query -m m.nbspam --target ripe=yes --gibbs 10000
    nbspam table query -m m.nbspam --independent colour sound --evidence ripe
    """
    looking.ask_network(model_path, question)


@subcommand("table export", "--format", "--model-file")
@options.model_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv"]),
    default="json",
    show_default=True,
    help="JSON, or a table in CSV.",
)
def table_export_command(model_path: str, form: str) -> None:
    """Print all numbers that the model of a table has estimated.

    These are each probability with the count that it comes from, means and variances, and which
    columns depend on which.

    \b
    nbspam table export -m iris.nbspam --format csv > estimates.csv
    """
    classifier = cast("TableClassifier", inputs.loaded_model(model_path))
    if form == "csv":
        output.echo_lines(_csv_lines(classifier))
    else:
        sys.stdout.writelines(_json_pieces(classifier, whole=True, first={}))


# --- as text ---------------------------------------------------------------------------------


def _info_lines(classifier: "TableClassifier", file: str) -> Iterator[str]:
    """Yield the training data of a table's model, and its estimates."""
    from nbspam.tables.classifier import description, estimated

    facts = description(classifier)
    settings = facts["settings"]
    priors = zip(classifier.schema.names, settings.pop("dirichlet", ()), strict=False)
    settings.pop("structure", None)  # is shown with names
    yield from _fact("model", file)
    yield from _fact("trained", output.total_text(facts["read"], "rows"))
    yield from _fact("target", facts["target"])
    for line in output.columns_text(classifier.schema):
        yield printing.clipped(printing.left("column", _HEAD) + printing.printable(line), _WIDTH)
    if settings.get("estimate") == "mle":
        settings.pop("alpha", None)  # is not added
    said = (f"{name} {value}" for name, value in settings.items())
    yield from _fact("settings", ", ".join([facts["kind"], *said]))
    for name, own in priors:
        if own is not None:
            yield from _fact("prior", f"{name} {', '.join(f'{alpha:g}' for alpha in own)}")
    yield from _structure_lines(facts["structure"])
    n_lines = left_out = 0
    for each in estimated(classifier, whole=False):
        if each.probability is not None and len(each.values[-1]) == 1:
            continue  # a column with a single value has nothing to show
        lines = ["", *_table(_rows(each, facts["target"]))]
        n_lines += len(lines)
        left_out += n_lines > _MAX_LINES
        if not left_out:
            yield from lines
    yield ""
    if left_out:
        yield f"… and {left_out:,} more of these tables"
    yield "In brackets: counts.  All numbers: nbspam table export --format csv, or json."


def _fact(name: str, text: str) -> Iterator[str]:
    """Yield a named fact, in lines that end before column 80 where it has spaces."""
    first, *words = printing.printable(text).split(" ")
    line = printing.left(name, _HEAD) + first
    for word in words:
        if printing.display_width(f"{line} {word}") > _WIDTH:
            yield line
            line = " " * (_HEAD - 1)
        line = f"{line} {word}"
    yield line


def _structure_lines(structure: dict[str, Any]) -> Iterator[str]:
    """Yield which columns depend on which, and the figures that decided."""
    if "root" in structure:
        yield from _fact("root", structure["root"] or "all columns; the mean over them")
    if "parents" in structure:
        yield from _fact("parents", ", ".join(structure["parents"]) or "none")
    if "parent" in structure:
        chosen = structure["candidates"]
        how = ", chosen by leave-one-out cross-validation" if chosen else ""
        yield from _fact("parent", structure["parent"] + how)
        if chosen:
            yield ""
            head = ["parent", "errors", "log loss (nats)"]
            rows = ([c["column"], str(c["errors"]), f"{c['log_loss']:.4f}"] for c in chosen)
            yield from _table([head, *rows])
    if "criterion" in structure:
        cost = f"{structure['score']:.4f} nats (less is better)"
        yield from _fact(structure["criterion"], cost)
        fit = f"{structure['log_likelihood']:.4f} nats, by maximum likelihood"
        yield from _fact("log P(rows)", fit)
        yield from _fact("parameters", f"{structure['parameters']:,}")
    if structure.get("edges"):
        yield ""
        yield from _table(_edge_rows(structure["edges"]))
    elif "edges" in structure:
        yield from _fact("arrows", "none")
    in_tree = {frozenset((edge["column"], edge["parent"])) for edge in structure.get("edges", ())}
    others = [pair for pair in structure.get("pairs", ()) if {*pair["columns"]} not in in_tree]
    if others:
        yield ""
        head = ["not in the tree", "information given the class (nats)"]
        named = ([", ".join(pair["columns"]), f"{pair['information']:.6f}"] for pair in others)
        yield from _table([head, *named])


def _edge_rows(edges: list[dict[str, Any]]) -> list[list[str]]:
    """Return the arrows of a graph, and in a tree the information of each."""
    arrows = [[f"{edge['column']} <- {edge['parent']}"] for edge in edges]
    if "information" not in edges[0]:
        return [["depends on"], *arrows]
    figures = ([f"{edge['information']:.6f}"] for edge in edges)
    head = ["depends on", "information given the class (nats)"]
    return [head, *(arrow + figure for arrow, figure in zip(arrows, figures, strict=True))]


# --- distributions ---------------------------------------------------------------------------


def _rows(each: "Estimated", target: str) -> list[list[str]]:
    """Return a distribution as rows of cells: a column for each class, or a single one."""
    from nbspam.tables.classifier import matrix_of

    matrix = matrix_of(each, target)
    head = [each.title, *(printing.clipped(name, _LABEL) for name in matrix.classes)]
    numbers = matrix.numbers
    if "probability" in numbers:
        lines = zip(matrix.labels, numbers["probability"], numbers["count"], strict=True)
        return [head, *([label, *map(_share, p, n)] for label, p, n in lines)]
    rows = [head]
    of_density = numbers["count"], numbers["mean"], numbers["standard_deviation"]
    for label, n, mean, deviation in zip(matrix.labels, *of_density, strict=True):
        given = f" | {label}" if label else ""
        rows.append([f"rows{given}", *map(printing.readable_number, n)])
        rows.append([f"mean{given}", *map(_number, mean)])
        rows.append([f"standard deviation{given}", *map(_number, deviation)])
    return rows


def _share(probability: float, count: float) -> str:
    shown = printing.readable_probability(probability, 4)
    return f"{shown} ({printing.readable_number(count)})"


def _number(value: float) -> str:
    return f"{value:.3f}" if 0.01 <= abs(value) < 10_000 else printing.readable_number(value, 4)


def _table(rows: list[list[str]]) -> Iterator[str]:
    """Yield aligned rows; those and the columns that are too many are counted."""
    rows = [[printing.printable(cell) for cell in row] for row in rows]
    shown = rows[: _MAX_ROWS + 1]
    first = max(min(_LABEL, printing.display_width(row[0])) for row in shown)
    columns = zip(*(row[1:] for row in shown), strict=True)
    widths = [2 + max(map(printing.display_width, cells)) for cells in columns]
    n_fitting = 0
    while n_fitting < len(widths) and first + sum(widths[: n_fitting + 1]) <= _WIDTH:
        n_fitting += 1
    for row in shown:
        cells = (
            printing.right(cell, w) for cell, w in zip(row[1:], widths[:n_fitting], strict=False)
        )
        yield (printing.left(printing.clipped(row[0], first), first) + "".join(cells)).rstrip()
    hidden = {"more rows": len(rows) - len(shown), "more classes": len(widths) - n_fitting}
    missing = [printing.amount_text(n, noun) for noun, n in hidden.items() if n]
    if missing:
        yield f"… {' and '.join(missing)}"


# --- everything ------------------------------------------------------------------------------


def _json_pieces(
    classifier: "TableClassifier", whole: bool, first: Mapping[str, object]
) -> Iterator[str]:
    """Yield a line of JSON in pieces: a model's training data and all of its estimates.

    A2DE of 57 columns has millions of estimates, which are never in memory together.
    whole: with the tables of pairs and triples of columns.  first: facts to begin with.
    """
    from nbspam.tables.classifier import description, estimate_rows, estimated

    yield (
        output.json_line({**first, **description(classifier)}).removesuffix("}")
        + ', "estimates": ['
    )
    separator = ""
    for each in estimated(classifier, whole):
        for row in estimate_rows(each):
            yield separator + printing.readable_json(row, sys.stdout.encoding)
            separator = ", "
    yield "]}\n"


def _csv_lines(classifier: "TableClassifier") -> Iterator[str]:
    """Yield the lines of a table of all estimates, its column names first."""
    from nbspam.tables.classifier import FIELDS, estimate_rows, estimate_to_cells, estimated

    yield judging.csv_line(FIELDS)
    for each in estimated(classifier):
        for row in estimate_rows(each):
            cells = estimate_to_cells(row, classifier.schema.target)
            yield judging.csv_line(map(printing.printable, map(str, cells)))
