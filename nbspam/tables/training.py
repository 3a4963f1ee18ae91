"""Training on tables: records to a schema, rows to a classifier, and more rows to a trained one.

In cross-validation intervals are cut on training rows only, while the kinds of columns are
detected on all rows.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import compress
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import Booleans, Integers
from nbspam.errors import InputError, NotTrainedError, UsageError, check_number
from nbspam.models import COUNTED, ESTIMATORS, NUMBERS_GIVEN, NUMERIC_MODELS, new_column_model
from nbspam.models.inputs import DataError
from nbspam.printing import amount_text
from nbspam.settings import (
    PARAMETERS,
    SettingsChoices,
    TableChoices,
    check_estimate,
    decisions_made,
    option_name,
)
from nbspam.sources.files import read_json
from nbspam.sources.records import Record
from nbspam.tables.classifier import TableClassifier, value_counts
from nbspam.tables.schema import (
    BINS,
    FEW_WHOLE,
    NOT_CUT,
    CategoryCodes,
    Column,
    Schema,
    Table,
    check_declared,
    coded,
    constant_numbers,
    cut_into_intervals,
    cut_points,
    detect,
    in_intervals,
    known_cells,
    odd_columns,
    sorted_cells,
)
from nbspam.verdicts import NO_LABEL, HeldOut, Skipped

# A prior with a parameter for each value of a column: the column's name, and the parameters.
# Without a name it is for every column with as many values.
Dirichlet = tuple[str | None, tuple[float, ...]]
MOST_VALUES = 900_000  # of all columns; a model file may hold 1,000,000 in all


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings by which a table becomes a model."""

    target: str  # the column that holds the class
    model: str | None = None  # one of ESTIMATORS; None: chosen by the kinds of the columns
    categorical: tuple[str, ...] = ()  # columns that hold categories, whatever their cells
    numeric: tuple[str, ...] = ()  # columns that hold numbers, whatever their cells
    drop: tuple[str, ...] = ()  # columns that are left out
    # Declared values of columns or of the target: all that may occur, whether they do or not.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dirichlet: tuple[Dirichlet, ...] = ()  # parameters of priors that differ by value
    # One of schema.WAYS, or NOT_CUT; None: mdl if the model needs intervals.
    discretise: str | None = None
    bins: int = BINS  # at most this many intervals
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the model
    structure: Any = None  # of a network: the contents of its JSON file; None: searched for
    structure_from: str = ""  # the path of that file


@dataclass(frozen=True, slots=True)
class TableData:
    """A table read for training or judging, and notices for the user."""

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
    skipped: tuple[Skipped, ...] = ()
    if not with_unlabelled:
        declared = settings.values.get(settings.target, ())
        labelled, skipped = rows_with_class(rows, settings.target, declared)
        rows = labelled or rows  # `detect` says what is wrong
    schema, empty = detect(
        rows,
        settings.target,
        settings.categorical,
        settings.numeric,
        settings.values,
        settings.model in COUNTED,
        settings.drop,
        few=0 if settings.model == "gaussian" else FEW_WHOLE,
    )
    notes = [f"column {name!r} is empty: left out" for name in empty]
    said = {*settings.categorical, *settings.numeric, *settings.values}
    notes += odd_columns(rows, schema, said)
    table = coded(rows, schema)
    is_unknown = np.isnan(table.X)
    of_others = is_unknown[table.y >= 0].all(axis=0) & ~is_unknown.all(axis=0)
    names = (schema.columns[j].name for j in np.flatnonzero(of_others).tolist())
    notes += [f"column {name!r} is empty in all rows with a class" for name in names]
    if chosen_model(schema, settings) in NUMERIC_MODELS or settings.discretise == NOT_CUT:
        notes += constant_numbers(table)
    return TableData(table, skipped, tuple(notes))


def rows_with_class(
    records: Sequence[Record], target: str, classes: Sequence[str]
) -> tuple[list[Record], tuple[Skipped, ...]]:
    """Return the rows that have a class, and those without one; classes: these are no gaps."""
    known = {*known_cells(records, target), *classes}
    without = [record.name for record in records if record.cells.get(target, "") not in known]
    rows = [record for record in records if record.cells.get(target, "") in known]
    return rows, tuple(Skipped(name, NO_LABEL) for name in without)


def table_rows(table: Table, rows: Integers | Booleans) -> Table:
    """Return the table of these rows, without names; rows: numbers, or a mask."""
    # A process that copied the names would also copy all memory among which they lie.
    return replace(table, names=(), X=table.X[rows], y=table.y[rows])


def chosen_model(schema: Schema, settings: TableSettings) -> str:
    """Return the model's name, as given or by the kinds of columns; raises UsageError."""
    numbers = schema.n_values == 0
    name = settings.model
    if name is None:
        if settings.discretise not in (None, NOT_CUT) or not numbers.any():
            return "categorical"
        return "gaussian" if numbers.all() else "mixed"
    if name not in ESTIMATORS:
        raise UsageError(f"--model {name}: unknown; choose from {', '.join(ESTIMATORS)}")
    if name == "gaussian" and not numbers.all():
        column = schema.columns[int((~numbers).argmax())].name
        raise UsageError(
            f"--model gaussian: column {column!r} holds categories; use --model mixed,"
            f" or --drop {quote(column)}"
        )
    if name in (*NUMERIC_MODELS, *COUNTED) and settings.discretise:
        raise UsageError(f"--discretise: --model {name} takes numbers as they are; leave out one")
    if settings.discretise == NOT_CUT and name not in NUMBERS_GIVEN:
        raise UsageError(
            f"--discretise {NOT_CUT}: --model {name} takes categories only; choose from"
            f" {', '.join(NUMBERS_GIVEN)}, or mixed"
        )
    if settings.discretise == NOT_CUT and numbers.all():
        raise UsageError(
            f"--discretise {NOT_CUT}: no column holds categories, on which numbers could depend;"
            " use --model gaussian"
        )
    return name


def train_table(table: Table, settings: TableSettings) -> TableClassifier:
    """Return the classifier trained on a table; raises UsageError."""
    name = chosen_model(table.schema, settings)
    table = _without_numbers(table, name, settings)
    if (n_values := table.schema.n_values).sum() > MOST_VALUES:
        most = table.schema.columns[n_values.argmax()].name
        raise UsageError(
            f"the columns have {n_values.sum():,} values, of which {most!r} has"
            f" {n_values.max():,}, and a model may have {MOST_VALUES:,}; --drop some, or give"
            " fewer --bins"
        )
    parameters = _model_parameters(table.schema, name, settings)
    table = replace(table, schema=_closed(table.schema, parameters))
    model = new_column_model(name, parameters)
    # All classes are named, because the rows of a fold may lack one.  They are objects: an array
    # of texts gives each the room of the longest, and drops a NUL at its end.
    labels = np.array(table.schema.classes, object)
    model.partial_fit(table.X, labels[table.y], classes=labels)
    return TableClassifier(table.schema, name, model, value_counts(table))


def _without_numbers(table: Table, name: str, settings: TableSettings) -> Table:
    """Return the table with columns of numbers cut into intervals, unless the model takes them."""
    if name == "bernoulli":  # absent or present
        return cut_into_intervals(table, dict.fromkeys(range(len(table.schema.columns)), (0.0,)))
    if name in (*NUMERIC_MODELS, *COUNTED) or settings.discretise == NOT_CUT:
        return table
    how = settings.discretise or "mdl"
    numbers = np.flatnonzero(table.schema.n_values == 0).tolist()
    cuts = {j: cut_points(how, table.X[:, j], table.y, settings.bins) for j in numbers}
    return cut_into_intervals(table, cuts)


def _model_parameters(schema: Schema, name: str, settings: TableSettings) -> dict[str, Any]:
    """Return the parameters of a table's model; raises UsageError."""
    parameters = dict(settings.parameters)
    columns_are_counts = name in ("multinomial", "complement")  # which have no values
    if name == "bernoulli" and all(column != settings.target for column, _ in settings.dirichlet):
        parameters.setdefault("class_prior", "estimated")
    for option in {"parent", "root"} & parameters.keys():
        parameters[option] = _position(schema, option, parameters[option])
    if settings.dirichlet:
        priors = by_column(settings.dirichlet, schema)
        if columns_are_counts:
            parameters["class_dirichlet"] = priors[-1]
            parameters.setdefault("class_prior", "smoothed")
        else:
            parameters["dirichlet"] = priors
    if settings.structure is not None or settings.structure_from:
        from nbspam.models.network import structure_from_json

        where = f"--structure {settings.structure_from}".rstrip()
        parameters["structure"] = structure_from_json(settings.structure, schema.names, where)
    if name != "gaussian" and not columns_are_counts:
        parameters["levels"] = schema.n_values
    return parameters


def by_column(given: Iterable[Dirichlet], schema: Schema) -> list[list[float] | None]:
    """Return the parameters for each column and, last, for the classes; raises UsageError.

    None: no parameters of its own.  Parameters follow the order of a column's values; the
    classes are sorted.  A prior with a name takes precedence over one without.
    """
    n_values = {column.name: column.n_values for column in schema.columns}
    n_values[schema.target] = len(schema.classes)
    found: dict[str, list[float]] = {}
    for name, parameters in sorted(given, key=lambda each: each[0] is not None):
        n = len(parameters)
        if name is None:
            fitting = [column.name for column in schema.columns if column.n_values == n]
            if not fitting:
                raise UsageError(f"--dirichlet: no column has {n} values; name one as COLUMN=A,A")
            found |= {each: list(parameters) for each in fitting}
        elif name not in n_values:
            raise UsageError(
                f"--dirichlet {name}: no such column; choose from {', '.join(n_values)}"
            )
        elif not n_values[name]:
            raise UsageError(
                f"--dirichlet {name}: holds numbers; say --categorical {quote(name)} too"
            )
        elif n_values[name] != n:
            raise UsageError(
                f"--dirichlet {name}: it has {amount_text(n_values[name], 'values')}, and not {n};"
                " give a number for each, in the order that `nbspam table info` prints"
            )
        else:
            found[name] = list(parameters)
    return [found.get(name) for name in n_values]


def _closed(schema: Schema, parameters: Mapping[str, Any]) -> Schema:
    """Return the schema with columns of stated priors closed: a new value would have no prior.

    parameters: of the model.
    """
    *of_columns, of_classes = parameters.get("dirichlet", [None] * len(schema.names))
    is_stated = of_classes is not None or "class_dirichlet" in parameters
    is_stated |= isinstance(parameters.get("class_prior"), tuple)
    pairs = zip(schema.columns, of_columns, strict=True)
    columns = tuple(replace(c, closed=c.closed or own is not None) for c, own in pairs)
    return replace(schema, columns=columns, closed=schema.closed or is_stated)


def _position(schema: Schema, option: str, column: str) -> int | str:
    """Return the number of a column, or that all are roots; raises UsageError."""
    names = [each.name for each in schema.columns if each.n_values]
    if column in names:
        return schema.names.index(column)
    if not names or (option == "root" and column == "all"):
        return column  # a model without categories refuses the option itself
    wrong = "holds numbers" if column in schema.names[:-1] else "no such column"
    raise UsageError(f"--{option} {column}: {wrong}; choose from {', '.join(names)}")


def rows_held_out(table: Table, settings: TableSettings, rest: Integers, of: Integers) -> HeldOut:
    """Return the answers to some rows of a model trained on the rest; both are row numbers."""
    classifier = train_table(table_rows(table, rest), settings)
    X = in_intervals(table.X[of], classifier.schema)
    return HeldOut(classifier, classifier.model.joint_log_proba_or_prior(X), X.__getitem__)


# --- from a user's choices to the settings of a table's model ------------------------------

# Choices beside those about columns that are parameters of a model.
_OF_MODELS = ("alpha", "class_prior", *PARAMETERS)


def table_settings(choices: SettingsChoices, columns: TableChoices) -> TableSettings:
    """Return the settings of the model of a table; raises UsageError.

    columns: with a target.  Of `choices`, those about tokens are refused.
    """
    assert columns.target is not None
    check_estimate(choices)
    decisions = decisions_made(choices)
    unused = [name for name in decisions if name not in ("model", "dirichlet", *_OF_MODELS)]
    if unused:
        raise UsageError(
            f"{option_name(unused[0])}: for mail and text; leave it out with --target"
        )
    if choices.alpha == "auto":
        raise UsageError("--alpha auto: not a number from 0 up; give one for a table")
    if columns.bins is not None and columns.discretise not in ("width", "frequency"):
        raise UsageError("--bins: mdl finds how many; leave it out, or say --discretise width")
    if columns.bins is not None:
        check_number("--bins", columns.bins, 2, MOST_VALUES, whole=True)
    of_models = (*_OF_MODELS, "parent", "root", "class_parents", "order")
    decisions |= decisions_made(columns)
    parameters = {name: value for name, value in decisions.items() if name in of_models}
    _check_columns(choices, columns)
    return TableSettings(
        columns.target,
        choices.model if columns.structure is None else "network",
        columns.categorical,
        columns.numeric,
        drop=columns.drop,
        values=dict(columns.values),
        dirichlet=choices.dirichlet,
        discretise=columns.discretise,
        bins=BINS if columns.bins is None else columns.bins,
        parameters=parameters,
        structure=None if columns.structure is None else read_json(columns.structure),
        structure_from=columns.structure or "",
    )


def _check_columns(choices: SettingsChoices, columns: TableChoices) -> None:
    """Raise UsageError for choices that contradict each other about columns."""
    for option, stated in (("--values", columns.values), ("--dirichlet", choices.dirichlet)):
        names = [name for name, _ in stated if name is not None]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"{option} {twice[0]}: stated twice; leave out one")
    values = dict(columns.values)
    categories = {columns.target, *columns.categorical, *values}
    for name in columns.drop:
        if name in {*categories, *columns.numeric}:
            raise UsageError(f"--drop {name}: another option names it too; leave out one")
    for name in columns.numeric:
        if name in categories:
            raise UsageError(
                f"--numeric {name}: another option says that it holds categories; leave out one"
            )
    said = {*columns.categorical, *columns.numeric, *values} - {columns.target}
    if said and choices.model in COUNTED:
        raise UsageError(
            f"--model {choices.model}: all columns hold counts; leave out what says that"
            f" {min(said)} holds something else"
        )
    if columns.structure is not None:
        check_goes_with_structure(choices)


def check_goes_with_structure(choices: SettingsChoices) -> None:
    """Raise UsageError for choices that do not go with the graph of a network that is given."""
    if choices.model not in (None, "network"):
        raise UsageError(f"--structure: not for --model {choices.model}; give --model network")
    if choices.start is not None:
        raise UsageError("--start: the search starts from --structure; leave out one")
    if choices.max_parents is not None and not choices.climb:
        raise UsageError("--max-parents: for a search; say --climb too, to start from --structure")


# --- learning on: more rows, rows taken back, or another model ------------------------------
#
# Counts add, and so does everything that follows from them: the answers are those of a model
# trained at once on all rows.  What was chosen when the model was trained stays chosen: which
# columns there are and what they hold, where numbers are cut, and the parent of a SPODE.  TAN's
# tree follows from the counts, and so may change.


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
    _check_rows(classifier.schema, records)
    old = classifier.schema
    rows, skipped = rows_with_class(records, old.target, old.classes)
    if not rows:
        return RowsLearned(classifier, 0, skipped, ())
    schema, notes = _widened(old, rows)
    wide, table = _over(classifier, schema), coded(rows, schema)
    labels = np.array(schema.classes, object)
    model = copy(wide.model).partial_fit(table.X, labels[table.y], classes=labels)
    learned = replace(wide, model=model, counts=wide.counts + value_counts(table))
    return RowsLearned(learned, len(table.y), skipped, notes)


def unlearn_rows(classifier: TableClassifier, records: Sequence[Record]) -> RowsLearned:
    """Return the classifier without some rows that it has learned; raises InputError.

    The rows must be given as they were learned, with their class.  Categories and classes of
    which no row is left are forgotten, as if they had never been learned; a column that has no
    value left keeps its last ones.
    """
    _check_rows(classifier.schema, records)
    found = _without(classifier, records)
    if found is None:
        beginnings = range(1, len(records) + 1)
        n = bisect_left(beginnings, True, key=lambda n: _without(classifier, records[:n]) is None)
        raise InputError(
            f"{records[n].name}: not learned like this, or not so often; unlearn only rows that"
            " were learned, as they were"
        )
    return found._replace(classifier=_without_unseen(found.classifier))


def _without(classifier: TableClassifier, records: Sequence[Record]) -> RowsLearned | None:
    """Return the classifier without some rows; None if not all were learned like this."""
    schema = classifier.schema
    rows, skipped = rows_with_class(records, schema.target, schema.classes)
    if _widened(schema, rows)[0] != schema:
        return None  # a row has a value or a class that no learned row has
    table = coded(rows, schema)
    counts = classifier.counts - value_counts(table)
    try:
        model = copy(classifier.model).unlearn(table.X, classifier.model.classes_[table.y])
    except DataError:
        return None
    left = replace(classifier, model=model, counts=counts)
    return RowsLearned(left, len(table.y), skipped, ()) if counts.min() >= 0 else None


def merged_tables(one: TableClassifier, other: TableClassifier, where: str) -> TableClassifier:
    """Return the classifier of the rows of both, with the settings of the first.

    where: what errors call the second.  Raises UsageError if their columns differ.
    """
    if one.name != other.name:
        raise UsageError(
            f"{where}: its model is {other.name}, which cannot be added to {one.name};"
            " train both with the same --model"
        )
    schema = _joined(one.schema, other.schema, where)
    ours, theirs = _over(one, schema), _over(other, schema)
    model = copy(ours.model).merge(theirs.model)
    return replace(ours, model=model, counts=ours.counts + theirs.counts)


# --- their columns --------------------------------------------------------------------------


def _check_rows(schema: Schema, records: Sequence[Record]) -> None:
    """Raise InputError if a column of the model is in none of the rows."""
    if not records:
        raise InputError("rows: there are none; give a table with rows")
    known = {name for record in records for name in record.cells}
    missing = [name for name in schema.names if name not in known]
    if missing:
        where = records[0].source or "rows"  # those in memory have no path
        raise InputError(
            f"{where}: no column {missing[0]!r}, which the model has learned from; it needs:"
            f" {', '.join(schema.names)}"
        )


def _widened(schema: Schema, records: Sequence[Record]) -> tuple[Schema, tuple[str, ...]]:
    """Return a schema extended by the new categories and classes of rows, and these additions."""
    notes, columns = [], []
    for column in schema.columns:
        if column.closed and column.levels is not None:
            check_declared(records, column.name, column.levels)
        elif column.levels is not None:
            new = CategoryCodes(column.levels).without(known_cells(records, column.name))
            if new:
                column = replace(column, levels=sorted_cells([*column.levels, *new]))
                notes.append(f"{column.name}: new values {', '.join(new)}")
        columns.append(column)
    if schema.closed:
        check_declared(records, schema.target, schema.classes)
    classes = CategoryCodes(schema.classes).without(known_cells(records, schema.target))
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
    codes = [
        _codes(a.levels, b.levels) if a.levels and b.levels else np.arange(a.n_values)
        for a, b in zip(old.columns, schema.columns, strict=True)
    ]
    model = classifier.model
    if [column.levels for column in schema.columns] != [column.levels for column in old.columns]:
        model = model.with_levels(schema.n_values, codes)  # also if only their order differs
    row = _codes(old.classes, schema.classes)
    # A column of numbers has a single entry, which counts its known cells.
    place = schema.entries.places([code if len(code) else np.zeros(1, np.intp) for code in codes])
    counts = np.zeros((len(schema.classes), schema.entries.total))
    kept = np.ix_(row >= 0, place >= 0)
    counts[np.ix_(row[row >= 0], place[place >= 0])] = classifier.counts[kept]
    return replace(classifier, schema=schema, model=model, counts=counts)


def _codes(old: Sequence[str], new: Sequence[str]) -> Integers:
    """Return the new code of each value or class, -1 if it is left out."""
    code = {name: k for k, name in enumerate(new)}
    return np.array([code.get(name, -1) for name in old], np.intp)


def _without_unseen(classifier: TableClassifier) -> TableClassifier:
    """Return the classifier without categories and classes of which no row is left.

    Raises NotTrainedError if no row is left at all.
    """
    model, schema = classifier.model, classifier.schema
    if not model.class_count_.any():
        raise NotTrainedError("model: no row would be left; train a new model instead")
    if not schema.closed:
        model = model.forget_empty_classes()
    columns = []
    is_seen = np.asarray(classifier.counts.any(axis=0))
    for column, own in zip(schema.columns, schema.entries.slices, strict=True):
        if column.levels is not None and not column.closed:
            seen = sorted_cells([*compress(column.levels, is_seen[own])])
            # A column without categories would be one of numbers, so the last ones stay.
            column = replace(column, levels=seen or column.levels)
        columns.append(column)
    left = replace(classifier, model=model)
    return _over(left, replace(schema, columns=tuple(columns), classes=tuple(model.classes_)))
