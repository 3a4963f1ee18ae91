"""Training on tables: records to a schema, rows to a model, and how good it is.

Secret: which model a table gets if nobody chose, and what is learnt from a fold's rows only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import InputError, UsageError
from nbspam.models.registry import COLUMN_MODELS, NUMERIC_MODELS, new_model
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier, value_counts
from nbspam.tables.intervals import BINS, cut_points
from nbspam.tables.schema import Schema, Table, coded, cut, detect, in_intervals
from nbspam.verdicts import Skipped


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How a table becomes a model; what is None is chosen by the table."""

    target: str
    model: str | None = None  # one of COLUMN_MODELS
    categorical: tuple[str, ...] = ()  # columns whose numbers are names
    numeric: tuple[str, ...] = ()
    discretise: str | None = None  # one of discretise.WAYS
    bins: int = BINS
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the model


@dataclass(frozen=True, slots=True)
class TableData:
    """A table read for training or judging, and what is to be said about it."""

    table: Table
    skipped: tuple[Skipped, ...]  # rows without a class
    notes: tuple[str, ...]


def read_table(records: Iterable[Record], settings: TableSettings) -> TableData:
    """Return the labelled rows of records, their columns told from their cells."""
    rows = list(records)
    if not rows:
        raise InputError("train: no rows; give a table with a row of names and others")
    schema, empty = detect(rows, settings.target, settings.categorical, settings.numeric)
    notes = [f"column {name!r} is empty: left out" for name in empty]
    table, skipped = _labelled(rows, schema)
    if chosen_model(schema, settings) in NUMERIC_MODELS:
        notes += _constant_in_a_class(table)
    return TableData(table, skipped, tuple(notes))


def _labelled(records: Sequence[Record], schema: Schema) -> tuple[Table, tuple[Skipped, ...]]:
    """Return the rows that have a class of the schema, and those that have not."""
    table = coded(records, schema)
    has_class = table.y >= 0
    skipped = tuple(Skipped(table.names[i], "no label") for i in np.flatnonzero(~has_class))
    return rows_of(table, np.flatnonzero(has_class)), skipped


def rows_of(table: Table, rows: Integers) -> Table:
    """Return the table of these rows."""
    names = tuple(table.names[i] for i in rows.tolist())
    return Table(table.schema, names, table.X[rows], table.y[rows])


def _constant_in_a_class(table: Table) -> Iterable[str]:
    """Yield a line for each column of numbers that has variance zero."""
    for j in np.flatnonzero(table.schema.levels == 0).tolist():
        column, name = table.X[:, j], table.schema.columns[j].name
        for k, label in enumerate(table.schema.classes):
            values = column[(table.y == k) & ~np.isnan(column)]
            if len(values) > 1 and values.min() == values.max():
                yield (
                    f"column {name!r} is {values[0]:g} in all rows of class {label!r}:"
                    " variance zero, taken for a small share of that over all rows"
                )


def chosen_model(schema: Schema, settings: TableSettings) -> str:
    """Return the model that was asked for, or that the kinds of columns ask for."""
    numbers = schema.levels == 0
    name = settings.model
    if name is None:
        if settings.discretise or not numbers.any():
            return "categorical"
        return "gaussian" if numbers.all() else "mixed"
    if name not in COLUMN_MODELS:
        raise UsageError(f"--model {name}: not for tables; choose from {', '.join(COLUMN_MODELS)}")
    if name == "gaussian" and not numbers.all():
        column = schema.columns[int((~numbers).argmax())].name
        raise UsageError(
            f"--model gaussian: column {column!r} holds categories; take --model mixed,"
            f" or say --numeric {column}"
        )
    if name in NUMERIC_MODELS and settings.discretise:
        raise UsageError(f"--discretise: --model {name} takes numbers as they are; leave out one")
    return name


def train_table(table: Table, settings: TableSettings) -> TableClassifier:
    """Return the classifier that rows and settings make."""
    name = chosen_model(table.schema, settings)
    if name not in NUMERIC_MODELS:
        how = settings.discretise or "mdl"
        table = cut(
            table,
            {
                j: cut_points(how, table.X[:, j], table.y, settings.bins)
                for j in np.flatnonzero(table.schema.levels == 0).tolist()
            },
        )
    parameters = dict(settings.parameters)
    if "parent" in parameters:
        parameters["parent"] = _place(table.schema, parameters["parent"])
    if name != "gaussian":
        parameters["levels"] = table.schema.levels
    model = new_model(name, parameters)
    # All classes are named, in case some rows, as a fold's, have not one of each.
    labels = np.array(table.schema.classes)
    model.partial_fit(table.X, labels[table.y], classes=labels)
    return TableClassifier(table.schema, name, model, value_counts(table))


def _place(schema: Schema, column: str) -> int:
    """Return where a column stands; raises UsageError."""
    names = schema.names[:-1]
    if column not in names:
        raise UsageError(f"--parent {column}: no such column; choose from {', '.join(names)}")
    return names.index(column)


def held_out(table: Table, settings: TableSettings, rest: Integers, of: Integers) -> Floats:
    """Return joint log-probabilities of some rows by a model of the others, nats."""
    classifier = train_table(rows_of(table, rest), settings)
    return classifier.joint_log_proba(in_intervals(table.X[of], classifier.schema))
