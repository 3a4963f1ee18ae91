"""Learning on: a classifier of table rows takes more rows in, gives rows back, or adds another.

Counts add, and so does everything that follows from them: the answers are those of a model
trained at once on all rows.  What was chosen when the model was trained stays chosen: which
columns there are and what they hold, where numbers are cut, and the parent of a SPODE.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import InputError, NotTrainedError, UsageError
from nbspam.models.base import DataError
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier, value_counts
from nbspam.tables.schema import Column, Schema, check_declared, known_cells, sorted_cells
from nbspam.tables.training import rows_with_class
from nbspam.verdicts import Skipped


class RowsLearned(NamedTuple):
    """A classifier that has learned or un-learned rows, and notes for the user."""

    classifier: TableClassifier
    n_rows: int
    skipped: tuple[Skipped, ...]  # rows without a class
    notes: tuple[str, ...]


def learn_rows(classifier: TableClassifier, records: Sequence[Record]) -> RowsLearned:
    """Return the classifier that has learned more rows; raises InputError, UsageError.

    New categories and classes are taken in.  Every row counts, also one that was learned before.
    """
    _check_columns(classifier.schema, records)
    schema, notes = _widened(classifier.schema, records)
    wide = _over(classifier, schema)
    table, skipped = rows_with_class(records, schema)
    if not len(table.y):
        return RowsLearned(classifier, 0, skipped, ())
    labels = np.array(schema.classes)
    model = copy(wide.model).partial_fit(table.X, labels[table.y], classes=labels)
    learned = replace(wide, model=model, counts=wide.counts + value_counts(table))
    return RowsLearned(learned, len(table.y), skipped, notes)


def unlearn_rows(classifier: TableClassifier, records: Sequence[Record]) -> RowsLearned:
    """Return the classifier without some rows that it has learned; raises InputError.

    The rows must be given as they were learned, with their class.  Categories and classes of
    which no row is left are forgotten, as if they had never been learned.
    """
    schema = classifier.schema
    _check_columns(schema, records)
    wide, _ = _widened(schema, records)
    table, skipped = rows_with_class(records, schema)
    model, counts = copy(classifier.model), classifier.counts - value_counts(table)
    try:
        if wide != schema or counts.min() < 0:
            raise DataError("values or classes that no learned row has")
        model.unlearn(table.X, np.array(schema.classes)[table.y])
    except DataError:
        raise InputError(
            f"{_where(records)}: not all of these rows were learned like this; unlearn only rows"
            " that were learned, as they were"
        ) from None
    left = replace(classifier, model=model, counts=counts)
    return RowsLearned(_without_unseen(left, table.X), len(table.y), skipped, ())


def merged_tables(one: TableClassifier, other: TableClassifier, where: str) -> TableClassifier:
    """Return the classifier of the rows of both, with the settings of the first.

    where: what errors call the second.  Raises UsageError if their columns differ.
    """
    if one.name != other.name:
        raise UsageError(
            f"{where}: a model {other.name}, which cannot be added to a model {one.name};"
            " train both with the same --model"
        )
    schema = _joined(one.schema, other.schema, where)
    ours, theirs = _over(one, schema), _over(other, schema)
    model = copy(ours.model).merge(theirs.model)
    return replace(ours, model=model, counts=ours.counts + theirs.counts)


# --- columns ---------------------------------------------------------------------------------


def _where(records: Sequence[Record]) -> str:
    """Return the name of the table of some rows, for errors; rows in memory have no path."""
    return records[0].source or "rows"


def _check_columns(schema: Schema, records: Sequence[Record]) -> None:
    """Raise InputError if a column of the model is in none of the rows."""
    if not records:
        raise InputError("rows: there are none; give a table with rows")
    names = dict.fromkeys(name for record in records for name in record.cells)
    for name in schema.names:
        if name not in names:
            raise InputError(
                f"{_where(records)}: no column {name!r}, which the model has learned from; it"
                f" needs: {', '.join(schema.names)}"
            )


def _widened(schema: Schema, records: Sequence[Record]) -> tuple[Schema, tuple[str, ...]]:
    """Return a schema that also has the new categories and classes of rows, and what is new."""
    notes, columns = [], []
    for column in schema.columns:
        if column.closed and column.levels is not None:
            check_declared(records, column.name, column.levels)
        elif column.levels is not None:
            known = known_cells(records, column.name)
            new = [cell for cell in known if cell not in column.levels]
            if new:
                column = replace(column, levels=sorted_cells([*column.levels, *new]))
                notes.append(f"{column.name}: new values {', '.join(new)}")
        columns.append(column)
    if schema.closed:
        check_declared(records, schema.target, schema.classes)
    classes = [c for c in known_cells(records, schema.target) if c not in schema.classes]
    had = ", ".join(schema.classes)
    notes += [f"{name}: a new class; the model had {had}" for name in classes]
    more = tuple(sorted([*schema.classes, *classes]))
    return replace(schema, columns=tuple(columns), classes=more), tuple(notes)


def _joined(one: Schema, other: Schema, where: str) -> Schema:
    """Return the schema with the categories and classes of both; raises UsageError."""
    if one.names != other.names:
        raise UsageError(
            f"{where}: its columns are {', '.join(other.names)}, and not"
            f" {', '.join(one.names)}; merge models of the same columns and target"
        )
    columns = []
    for ours, theirs in zip(one.columns, other.columns, strict=True):
        if (ours.levels is None, ours.cuts) != (theirs.levels is None, theirs.cuts):
            raise UsageError(
                f"{where}: {theirs}, but in the first model {ours}; train both with the same"
                " --categorical, --numeric and --discretise, or one model on both tables"
            )
        columns.append(replace(ours, levels=_united(ours, theirs, where)))
    classes = tuple(sorted({*one.classes, *other.classes}))
    if classes != one.classes and one.closed:
        raise UsageError(
            f"{where}: it has the classes {', '.join(other.classes)}, but those of the first"
            f" model were stated as {', '.join(one.classes)}; train both alike"
        )
    return replace(one, columns=tuple(columns), classes=classes)


def _united(ours: Column, theirs: Column, where: str) -> tuple[str, ...] | None:
    """Return the categories of both columns; raises UsageError if ours are closed."""
    if ours.levels is None or theirs.levels is None or {*theirs.levels} <= {*ours.levels}:
        return ours.levels
    if ours.closed:
        raise UsageError(
            f"{where}: {theirs.name} has the values {', '.join(theirs.levels)}, but those of the"
            f" first model were stated as {', '.join(ours.levels)}; train both alike"
        )
    return sorted_cells({*ours.levels, *theirs.levels})


# --- counts ----------------------------------------------------------------------------------


def _over(classifier: TableClassifier, schema: Schema) -> TableClassifier:
    """Return the classifier over a schema with other categories and classes.

    Those left out must have no counts.  The model gets new classes when it learns of them.
    """
    old = classifier.schema
    codes = [_codes(a, b) for a, b in zip(old.columns, schema.columns, strict=True)]
    model = classifier.model
    if (schema.levels != old.levels).any():
        model = model.with_levels(schema.levels, codes)
    kept = [name for name in old.classes if name in schema.classes]
    here = np.searchsorted(old.classes, kept)
    there = np.searchsorted(schema.classes, kept)
    # A column of numbers has a single entry, which counts its known cells.
    place = schema.entries.places([code if len(code) else np.zeros(1, np.intp) for code in codes])
    counts = np.zeros((len(schema.classes), schema.entries.total))
    counts[np.ix_(there, place[place >= 0])] = classifier.counts[np.ix_(here, place >= 0)]
    return replace(classifier, schema=schema, model=model, counts=counts)


def _codes(old: Column, new: Column) -> Integers:
    """Return the new code of each value of a column, -1 if it is left out."""
    if old.levels is None or new.levels is None:
        return np.arange(old.n_values)
    code = {level: k for k, level in enumerate(new.levels)}
    return np.array([code.get(level, -1) for level in old.levels], np.intp)


def _without_unseen(classifier: TableClassifier, X: Floats) -> TableClassifier:
    """Return the classifier without categories and classes that un-learning left without rows.

    X: the rows that were un-learned.  Raises NotTrainedError if no row is left.
    """
    model, schema = classifier.model, classifier.schema
    if not model.class_count_.any():
        raise NotTrainedError("model: no row would be left; train a new model instead")
    classes = schema.classes
    if not schema.closed:
        counted = zip(classes, model.class_count_.tolist(), strict=True)
        classes = tuple(name for name, n in counted if n > 0)
    columns = []
    starts = schema.entries.start.tolist()
    for column, start, cells in zip(schema.columns, starts, X.T, strict=True):
        if column.levels is not None and not column.closed:
            unseen = {
                column.levels[code]
                for code in np.unique(cells[~np.isnan(cells)]).astype(int).tolist()
                if not classifier.counts[:, start + code].any()
            }
            column = replace(column, levels=tuple(v for v in column.levels if v not in unseen))
        columns.append(column)
    if classes != schema.classes:
        model = model.forget_empty_classes()
    left = replace(classifier, model=model)
    return _over(left, replace(schema, columns=tuple(columns), classes=classes))
