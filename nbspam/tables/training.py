"""Training on tables: records to a schema, rows to a classifier.

Secret: which model a table gets by default.  In cross-validation intervals are cut on training
rows only, while the kinds of columns are detected on all rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nbspam.answering import HeldOut, Weighed
from nbspam.arrays import Integers
from nbspam.errors import InputError, UsageError
from nbspam.models.registry import (
    COUNTED,
    ESTIMATORS,
    NUMERIC_MODELS,
    joint_log_proba,
    new_model,
)
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier, value_counts
from nbspam.tables.dirichlet import Dirichlet, by_column
from nbspam.tables.intervals import BINS, cut_points
from nbspam.tables.schema import Schema, Table, coded, cut, detect, in_intervals, numbering
from nbspam.verdicts import Skipped


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How a table becomes a model."""

    target: str  # the column that holds the class
    model: str | None = None  # one of ESTIMATORS; None: chosen by the kinds of the columns
    categorical: tuple[str, ...] = ()  # columns that hold categories, whatever their cells
    numeric: tuple[str, ...] = ()  # columns that hold numbers, whatever their cells
    drop: tuple[str, ...] = ()  # columns that are left out
    # Declared values of columns or of the target: those that may occur, whether they do or not.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dirichlet: tuple[Dirichlet, ...] = ()  # parameters of priors that differ by value
    discretise: str | None = None  # one of intervals.WAYS; None: mdl if the model needs intervals
    bins: int = BINS  # at most this many intervals
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the model
    structure: Any = None  # of a network: what its JSON file holds; None: searched for
    structure_from: str = ""  # the path of that file


@dataclass(frozen=True, slots=True)
class TableData:
    """A table read for training or judging, and what the user should know about it."""

    table: Table
    skipped: tuple[Skipped, ...]  # rows without a class
    notes: tuple[str, ...]  # warnings about columns


def read_table(
    records: Iterable[Record], settings: TableSettings, with_unlabelled: bool = False
) -> TableData:
    """Return the rows of records, with detected columns; raises InputError.

    with_unlabelled: also those without a class, whose y is -1.
    """
    rows = list(records)
    if not rows:
        raise InputError("train: no rows; give a table with column names and rows")
    schema, empty = detect(
        rows,
        settings.target,
        settings.categorical,
        settings.numeric,
        settings.values,
        settings.model in COUNTED,
        settings.drop,
    )
    notes = [f"column {name!r} is empty: left out" for name in empty]
    if len(schema.classes) == 1:
        notes.append(
            f"the target {schema.target!r} is {schema.classes[0]!r} in every row:"
            " one class, which every row will get"
        )
    notes += [
        f"column {name!r} numbers the rows: --drop {name} leaves it out, and --id-column {name}"
        " names the rows by it"
        for name in numbering(rows, schema, {*settings.numeric, *settings.categorical})
    ]
    table, skipped = (coded(rows, schema), ()) if with_unlabelled else labelled(rows, schema)
    if chosen_model(schema, settings) in NUMERIC_MODELS:
        notes += _constant_in_a_class(table)
    return TableData(table, skipped, tuple(notes))


def labelled(records: Sequence[Record], schema: Schema) -> tuple[Table, tuple[Skipped, ...]]:
    """Return the rows that have a class of the schema, and those that have none."""
    table = coded(records, schema)
    has_class = table.y >= 0
    skipped = tuple(Skipped(table.names[i], "no label") for i in np.flatnonzero(~has_class))
    return rows_of(table, np.flatnonzero(has_class)), skipped


def rows_of(table: Table, rows: Integers) -> Table:
    """Return the table that consists of these rows; rows: row numbers."""
    names = tuple(table.names[i] for i in rows.tolist())
    return Table(table.schema, names, table.X[rows], table.y[rows])


def _constant_in_a_class(table: Table) -> Iterable[str]:
    """Yield a warning for each column of numbers that is constant within a class."""
    for j in np.flatnonzero(table.schema.levels == 0).tolist():
        column, name = table.X[:, j], table.schema.columns[j].name
        for k, label in enumerate(table.schema.classes):
            values = column[(table.y == k) & ~np.isnan(column)]
            if len(values) > 1 and values.min() == values.max():
                yield (
                    f"column {name!r} is {values[0]:g} in all rows of class {label!r}:"
                    " variance zero, replaced by a small share of the variance over all rows"
                )


def chosen_model(schema: Schema, settings: TableSettings) -> str:
    """Return the model's name, as given or by the kinds of columns; raises UsageError."""
    numbers = schema.levels == 0
    name = settings.model
    if name is None:
        if settings.discretise or not numbers.any():
            return "categorical"
        return "gaussian" if numbers.all() else "mixed"
    if name not in ESTIMATORS:
        raise UsageError(f"--model {name}: unknown; choose from {', '.join(ESTIMATORS)}")
    if name == "gaussian" and not numbers.all():
        column = schema.columns[int((~numbers).argmax())].name
        raise UsageError(
            f"--model gaussian: column {column!r} holds categories; use --model mixed,"
            f" or say --numeric {column}"
        )
    if name in (*NUMERIC_MODELS, *COUNTED) and settings.discretise:
        raise UsageError(f"--discretise: --model {name} takes numbers as they are; leave out one")
    return name


def train_table(table: Table, settings: TableSettings) -> TableClassifier:
    """Return the classifier trained on a table; raises UsageError."""
    name = chosen_model(table.schema, settings)
    parameters = dict(settings.parameters)
    if name == "bernoulli":
        table = cut(table, dict.fromkeys(range(len(table.schema.columns)), (0.0,)))
        parameters.setdefault("class_prior", "estimated")
    elif name not in (*NUMERIC_MODELS, *COUNTED):
        table = _in_intervals(table, settings)
    if "parent" in parameters:
        parameters["parent"] = _position(table.schema, parameters["parent"])
    if settings.dirichlet:
        parameters["dirichlet"] = by_column(settings.dirichlet, table.schema)
    table = replace(table, schema=_closed(table.schema, parameters))
    if settings.structure is not None or settings.structure_from:
        from nbspam.models.network.network import structure_from_json

        names, where = table.schema.names, f"--structure {settings.structure_from}"
        parameters["structure"] = structure_from_json(settings.structure, names, where)
    if name not in ("gaussian", "multinomial", "complement"):
        parameters["levels"] = table.schema.levels
    model = new_model(name, parameters)
    # All classes are named, because the rows of a fold may lack one.
    labels = np.array(table.schema.classes)
    model.partial_fit(table.X, labels[table.y], classes=labels)
    return TableClassifier(table.schema, name, model, value_counts(table))


def _closed(schema: Schema, parameters: Mapping[str, Any]) -> Schema:
    """Return the schema with what has stated priors closed: a new value would have none.

    parameters: of the model.
    """
    if isinstance(parameters.get("class_prior"), tuple):
        schema = replace(schema, closed=True)
    if "dirichlet" not in parameters:
        return schema
    *columns, classes = parameters["dirichlet"]
    pairs = zip(schema.columns, columns, strict=True)
    stated = tuple(replace(c, closed=c.closed or own is not None) for c, own in pairs)
    return replace(schema, columns=stated, closed=schema.closed or classes is not None)


def _in_intervals(table: Table, settings: TableSettings) -> Table:
    """Return the table with every column of numbers cut into intervals."""
    how = settings.discretise or "mdl"
    numbers = np.flatnonzero(table.schema.levels == 0).tolist()
    return cut(table, {j: cut_points(how, table.X[:, j], table.y, settings.bins) for j in numbers})


def _position(schema: Schema, column: str) -> int:
    """Return the number of a column; raises UsageError."""
    names = schema.names[:-1]
    if column not in names:
        raise UsageError(f"--parent {column}: no such column; choose from {', '.join(names)}")
    return names.index(column)


def held_out(table: Table, settings: TableSettings, rest: Integers, of: Integers) -> HeldOut:
    """Return the answers to some rows of a model trained on the rest; both are row numbers."""
    classifier = train_table(rows_of(table, rest), settings)
    X = in_intervals(table.X[of], classifier.schema)

    def reasons(place: int, towards: int, against: int) -> Weighed:
        return classifier.reasons(X[place], towards, against)

    return HeldOut(classifier, joint_log_proba(classifier.model, X), reasons)
