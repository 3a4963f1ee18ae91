"""nbspam table info, query and export: what the model of a table has estimated.

Estimates are laid out for 80 columns of a terminal; where there are many, some are left out and
counted.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from nbspam.cli.frame import Command
from nbspam.cli.inputs import loaded_model
from nbspam.cli.looking import NetworkQuestion, ask_network, question_options
from nbspam.cli.options import json_option, model_option, picture_option
from nbspam.cli.output import columns_text, counts_text, json_line, write_picture
from nbspam.printing import (
    clipped,
    display_width,
    left,
    printable,
    readable_json,
    right,
    write_lines,
)

if TYPE_CHECKING:
    from nbspam.tables.classifier import TableClassifier
    from nbspam.tables.estimates import Estimated

_WIDTH = 80
_LABEL = 28  # columns for the values, which are cut
_HEAD = 12  # columns for what stands before a fact
_MAX_LINES, _MAX_ROWS = 60, 12  # of all distributions, and rows of each


@click.command("info", cls=Command, group="table", first=("--model-file", "--plot", "--json"))
@model_option
@picture_option("Draw the graph of the columns, and the normal distributions.")
@json_option
def table_info_command(model_path: str, plot: str | None, as_json: bool) -> None:
    """Verify the model of a table, and show its training data and its estimates.

    The estimates are class priors, tables of categories with their counts, means and standard
    deviations, and which columns depend on which.

    \b
    nbspam table info
    nbspam table info -m iris.nbspam --plot iris.svg
    """
    classifier = cast("TableClassifier", loaded_model(model_path))
    if plot is not None:
        from nbspam.evaluation.model_drawings import model_picture

        write_picture(plot, lambda: model_picture(classifier))
    n_bytes = os.path.getsize(model_path)
    if as_json:
        first = {"model": model_path, "bytes": n_bytes}
        sys.stdout.writelines(_json_pieces(classifier, whole=False, first=first))
    else:
        file = f"{model_path} ({n_bytes:,} bytes, verified)"
        write_lines(_info_lines(classifier, file), sys.stdout)


@click.command(
    "query", cls=Command, group="table", first=("--target", "--evidence", "--model-file", "--json")
)
@model_option
@question_options
def table_query_command(model_path: str, question: NetworkQuestion) -> None:
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
    ask_network(model_path, question)


@click.command("export", cls=Command, group="table", first=("--format", "--model-file"))
@model_option
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
    classifier = cast("TableClassifier", loaded_model(model_path))
    if form == "csv":
        write_lines(_csv_lines(classifier), sys.stdout)
    else:
        sys.stdout.writelines(_json_pieces(classifier, whole=True, first={}))


# --- as text ---------------------------------------------------------------------------------


def _info_lines(classifier: "TableClassifier", file: str) -> Iterator[str]:
    """Yield the training data of a table's model, and its estimates."""
    from nbspam.tables.estimates import description, estimated

    facts = description(classifier)
    settings = facts["settings"]
    priors = zip(classifier.schema.names, settings.pop("dirichlet", ()), strict=False)
    settings.pop("structure", None)  # is shown with names
    n_rows = facts["read"]
    yield from _fact("model", file)
    yield from _fact("trained", f"{sum(n_rows.values()):,} rows ({counts_text(n_rows)})")
    yield from _fact("target", facts["target"])
    for line in columns_text(classifier.schema):
        yield clipped(left("column", _HEAD) + printable(line), _WIDTH)
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
    first, *words = printable(text).split(" ")
    line = left(name, _HEAD) + first
    for word in words:
        if display_width(f"{line} {word}") > _WIDTH:
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
            yield from _table(
                [
                    ["parent", "errors", "log loss"],
                    *([c["column"], str(c["errors"]), f"{c['log_loss']:.4f}"] for c in chosen),
                ]
            )
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
    from nbspam.tables.estimates import matrix_of

    matrix = matrix_of(each, target)
    head = [each.title, *matrix.classes]
    if matrix.probability is not None:
        lines = zip(matrix.labels, matrix.probability, matrix.counts, strict=True)
        return [head, *([label, *map(_share, p, n)] for label, p, n in lines)]
    rows = [head]
    for label, n, mean, deviation in zip(
        matrix.labels, matrix.counts, matrix.mean, matrix.deviation, strict=True
    ):
        given = f" | {label}" if label else ""
        rows.append([f"rows{given}", *(f"{each:g}" for each in n)])
        rows.append([f"mean{given}", *map(_number, mean)])
        rows.append([f"standard deviation{given}", *map(_number, deviation)])
    return rows


def _share(probability: float, count: float) -> str:
    return f"{probability:.4f} ({count:g})"


def _number(value: float) -> str:
    return f"{value:.3f}" if 0.01 <= abs(value) < 10_000 else f"{value:.4g}"


def _table(rows: list[list[str]]) -> Iterator[str]:
    """Yield aligned rows; those and the columns that are too many are counted."""
    rows = [[printable(cell) for cell in row] for row in rows]
    shown = rows[: _MAX_ROWS + 1]
    first = max(min(_LABEL, display_width(row[0])) for row in shown[1:] or shown)
    first = max(first, min(_LABEL, display_width(rows[0][0])))
    columns = zip(*(row[1:] for row in shown), strict=True)
    widths = [2 + max(map(display_width, cells)) for cells in columns]
    n_fitting = 0
    while n_fitting < len(widths) and first + sum(widths[: n_fitting + 1]) <= _WIDTH:
        n_fitting += 1
    for row in shown:
        cells = (right(cell, w) for cell, w in zip(row[1:], widths[:n_fitting], strict=False))
        yield (left(clipped(row[0], first), first) + "".join(cells)).rstrip()
    missing = [
        f"{n:,} more {one if n == 1 else several}"
        for n, one, several in (
            (len(rows) - len(shown), "row", "rows"),
            (len(widths) - n_fitting, "class", "classes"),
        )
        if n
    ]
    if missing:
        yield f"… {' and '.join(missing)}"


# --- everything ------------------------------------------------------------------------------


def _json_pieces(
    classifier: "TableClassifier", whole: bool, first: Mapping[str, object]
) -> Iterator[str]:
    """Yield a line of JSON in pieces: what a model was made of, and all that it has estimated.

    A2DE of 57 columns has millions of estimates, which are never in memory together.
    whole: with the tables of pairs and triples of columns.  first: facts to begin with.
    """
    from nbspam.tables.estimates import description, estimate_rows, estimated

    yield json_line({**first, **description(classifier)}).removesuffix("}") + ', "estimates": ['
    separator = ""
    for each in estimated(classifier, whole):
        for row in estimate_rows(each):
            yield separator + readable_json(row, getattr(sys.stdout, "encoding", None))
            separator = ", "
    yield "]}\n"


def _csv_lines(classifier: "TableClassifier") -> Iterator[str]:
    """Yield the lines of a table of all estimates, its column names first."""
    import csv

    from nbspam.tables.estimates import FIELDS, estimate_rows, estimate_to_cells, estimated

    writer = csv.writer(_LineSink(), lineterminator="")
    yield str(writer.writerow(FIELDS))
    for each in estimated(classifier):
        for row in estimate_rows(each):
            cells = estimate_to_cells(row, classifier.schema.target)
            yield str(writer.writerow(map(printable, map(str, cells))))


class _LineSink:
    """A file for csv.writer, whose writerow returns what `write` does."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line
