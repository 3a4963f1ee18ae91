"""The schema of a table, and tables as arrays of numbers.

A column holds categories, numbers, or numbers cut into intervals.  Its kind is detected from
its cells: it holds numbers if every known cell is a number, unless they are a few whole ones.
"""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from math import isinf
from shlex import quote
from typing import Any

import numpy as np

from nbspam.arrays import Floats, Integers
from nbspam.errors import InputError, UsageError
from nbspam.models.columns import Levels
from nbspam.printing import amount_text, readable_number
from nbspam.sources.records import Record, is_number_cell
from nbspam.sources.rows import no_column

# Cells without a value, in lower case.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "null"})
# Up to this many different whole numbers are taken for category names: codes and small scales
# are more often categories than measures, and options overrule it.
FEW_WHOLE = 10
_MOST_SPARSE = 20_000_000  # cells of a table in which fewer than one in a hundred has a value
_FEWEST_NUMBERED = 5  # rows that are taken for numbered
_WHOLE = re.compile(r"[0-9]{1,18}")
# A number as people write it: 1.200,50 or $5 or 7 %.
_WRITTEN = re.compile(r"[-+]?[$€£¥]?\s?[0-9]+(?:[.,'’\s][0-9]{3})*(?:[.,][0-9]+)?\s?[%$€£¥]?")
_ID = re.compile(
    r"(?i:(^|[\W_])(id|nr|no|row|index|key)$)|[a-z]I[Dd]$|编号|序号|番号"
    r"|^$|^Unnamed: 0$|^__index_level_0__$"  # an index, as pandas writes it and reads it again
)
_FREQUENCY = re.compile(r"(?i:freq(uency)?|counts?|n)|频数|人数")  # as R, pandas and SQL write it


@dataclass(frozen=True)
class Column:
    """The kind of one column: categories (levels), intervals (cuts), or numbers (neither)."""

    name: str
    levels: tuple[str, ...] | None = None  # categories, in the order of their codes
    cuts: tuple[float, ...] | None = None  # ends of intervals, ascending, each inclusive
    is_count: bool = False  # its numbers count something, and are not below 0
    closed: bool = False  # the categories were stated: none is added or forgotten

    @property
    def n_values(self) -> int:
        """The number of different values; 0 for numbers."""
        if self.cuts is not None:
            return len(self.cuts) + 1
        return 0 if self.levels is None else len(self.levels)

    def value(self, number: float) -> str:
        """Return a value of `Table.X` as text: its category, interval or number."""
        if np.isnan(number):
            return "?"
        if self.levels is not None:
            return self.levels[int(number)]
        if self.cuts is None:
            return readable_number(number)
        if self.is_count:
            return "present" if number else "absent"
        low, high = self._ends[int(number) : int(number) + 2]
        if low and high:
            return f"{low} to {high}"
        return f"above {low}" if low else f"up to {high}" if high else "any"

    @cached_property
    def _ends(self) -> list[str]:
        """The ends of the intervals as texts, with as many digits as tell them apart.

        The first interval has no lower end, and the last one no upper end: these are empty.
        """
        cuts = self.cuts or ()
        ends = ([readable_number(cut, digits) for cut in cuts] for digits in range(6, 18))
        return ["", *next(texts for texts in ends if len(set(texts)) == len(cuts)), ""]

    def __str__(self) -> str:
        if self.is_count:
            return f"{self.name} {'count' if self.cuts is None else 'present or absent'}"
        if self.cuts is not None:
            cut = ", ".join(self._ends[1:-1])
            return f"{self.name} numeric, cut at {cut}" if cut else f"{self.name} numeric, not cut"
        if self.levels is None:
            return f"{self.name} numeric"
        return f"{self.name} categorical, {amount_text(len(self.levels), 'values')}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns that a model looks at, and the target column that it predicts."""

    columns: tuple[Column, ...]
    target: str
    classes: tuple[str, ...]  # sorted
    closed: bool = False  # the classes were stated: none is added or forgotten

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, with the target last."""
        return (*(column.name for column in self.columns), self.target)

    @property
    def n_values(self) -> Integers:
        """The number of values of each column, 0 for numbers, shape (n_columns,)."""
        return np.array([column.n_values for column in self.columns], np.int64)

    def class_of(self, cell: str) -> str | None:
        """Return the class that a cell of the target names, even if new; None if it is missing."""
        if cell in self.classes:
            return cell
        if is_missing(cell):
            return None
        code = CategoryCodes(self.classes)[cell]
        return cell if np.isnan(code) else self.classes[int(code)]

    @property
    def entries(self) -> Levels:
        """The index of all values; a column of numbers has a single entry."""
        return Levels(np.maximum(self.n_values, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a table as numbers."""

    schema: Schema
    names: tuple[str, ...]  # of the rows
    X: Floats  # (n_rows, n_columns) code of category or interval, or number; NaN if missing
    y: Integers  # (n_rows,) index into the classes; -1 if the row has none of them


def is_missing(cell: str) -> bool:
    """Return whether a cell has no value."""
    return cell.lower() in MISSING


def detect(
    records: Sequence[Record],
    target: str | None,
    categorical: Iterable[str] = (),
    numeric: Iterable[str] = (),
    values: Mapping[str, Sequence[str]] | None = None,
    are_counts: bool = False,
    drop: Sequence[str] = (),
    few: int = FEW_WHOLE,
) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema of a table, and the names of its empty columns.

    target: None for a table whose rows have no classes; then all columns belong to the rows.
    categorical, numeric: columns whose kind is given and not detected.  values: all values of
    columns of categories or of the target, in the order of their codes, whether they occur or
    not.  are_counts: every column counts something.  drop: columns to leave out.  few: up to
    this many different whole numbers are categories.  Raises InputError if one of these columns
    or the target is missing, if a cell has another value, or if nothing can be learned.
    """
    values = values or {}
    where = records[0].source or "rows"
    names = _column_names(where, records)
    forced = dict.fromkeys((*categorical, *values), True) | dict.fromkeys(numeric, False)
    for name in (*([] if target is None else [target]), *forced, *drop):
        if name not in names:
            raise InputError(f"{where}: {no_column(name, names)}")
    for name, declared in values.items():
        check_declared(records, name, declared)
    classes: tuple[str, ...] = ()
    if target is not None:
        seen = _classes(where, target, known_cells(records, target), forced.get(target, False))
        classes = tuple(sorted(values.get(target, seen)))
    columns, empty = [], []
    for name in [name for name in names if name != target and name not in drop]:
        known = known_cells(records, name)
        if name in values:
            columns.append(Column(name, tuple(values[name]), closed=True))
        elif known and are_counts:
            columns.append(Column(name, is_count=True))
        elif known:
            if name not in forced:
                _check_finite(records, name, known)
            are_categories = forced[name] if name in forced else not _are_numbers(known, few)
            columns.append(Column(name, sorted_cells(known) if are_categories else None))
        else:
            empty.append(name)
    if not columns:
        beside = "" if target is None else f" beside {target!r}"
        raise InputError(f"{where}: no column{beside} has a value; give some")
    return Schema(tuple(columns), target or "", classes, target in values), tuple(empty)


def _column_names(where: str, records: Sequence[Record]) -> list[str]:
    """Return the names of all rows' cells; raises InputError if a dense table would be huge."""
    names = list(dict.fromkeys(chain.from_iterable(record.cells for record in records)))
    n_cells = len(records) * len(names)
    if n_cells > max(_MOST_SPARSE, 100 * sum(len(record.cells) for record in records)):
        raise InputError(
            f"{where}: {len(names):,} columns, of which a row has fewer than one in a hundred;"
            " give the rows the same columns"
        )
    return names


def _check_finite(records: Sequence[Record], name: str, known: Mapping[str, None]) -> None:
    """Raise InputError if only infinite numbers keep a column from holding numbers.

    They would turn it into one of categories, which nobody means by a division by zero.
    """
    others = {cell for cell in known if not is_number_cell(cell)}
    with suppress(ValueError):
        if others and len(others) < len(known) and all(isinf(float(cell)) for cell in others):
            record = next(record for record in records if record.cells.get(name, "") in others)
            raise InputError(
                f"{record.name}: {name} is {record.cells[name][:40]!r}, not a finite number;"
                " correct the cell, leave it empty if unknown, or train with"
                f" --categorical {quote(name)}"
            )


def odd_columns(records: Sequence[Record], schema: Schema, said: Container[str]) -> Iterator[str]:
    """Yield a warning for each column that tells the rows apart, or seems to hold numbers.

    Nothing can be learned from a column that has another value in every row and no measures,
    or a single value beside empty cells.  Categories that seem to be numbers are written as
    people do, or are many numbers and few other cells.  said: columns that the user said what to
    take for.
    """
    target, classes = schema.target, schema.classes
    if len(classes) == 1:
        only = f"{classes[0]!r} in every row: one class, which every row will get"
        yield f"the target {target!r} is {only}"
    elif len(classes) == len(records) > 2:
        yield f"the target {target!r} only tells the rows apart: choose another column"
    for column in schema.columns:
        if column.name in said:
            continue
        levels, shell = column.levels or (), quote(column.name)
        others = [level for level in levels if not is_number_cell(level)]
        n_numbers = len(levels) - len(others)
        are_written = all(map(_WRITTEN.fullmatch, levels))
        if others and (n_numbers > FEW_WHOLE * len(others) or are_written):
            yield (
                f"column {column.name!r} is taken for categories because of {others[0][:40]!r}:"
                " write numbers as in 1234.5, and leave unknown ones empty"
            )
        elif len(others) == len(records) >= _FEWEST_NUMBERED or _numbers_rows(records, column):
            yield (
                f"column {column.name!r} only tells the rows apart: --drop {shell} leaves it out,"
                f" and --id-column {shell} names the rows by it"
            )
        elif _is_frequency(records, schema, column):
            yield (
                f"column {column.name!r} seems to say how many rows a row stands for, but each"
                f" counts once: repeat the rows, and --drop {shell}"
            )
        elif len(levels) == 1 and any(is_missing(r.cells.get(column.name, "")) for r in records):
            yield (
                f"column {column.name!r} is {levels[0][:40]!r} or empty in all rows: no evidence,"
                " because empty cells are unknown; fill them, as with 0, if they mean no"
            )


def _is_frequency(records: Sequence[Record], schema: Schema, column: Column) -> bool:
    """Return whether a column seems to say how many rows each row stands for.

    All other columns then hold categories, and only together tell the rows apart.
    """
    if not _FREQUENCY.fullmatch(column.name):
        return False
    others = [each for each in schema.columns if each is not column]
    if not others or any(not 0 < len(each.levels or ()) < len(records) for each in others):
        return False
    names = [*(each.name for each in others), schema.target]
    rows = {tuple(record.cells.get(name, "") for name in names) for record in records}
    cells = (record.cells.get(column.name, "") for record in records)
    return len(rows) == len(records) and all(map(_WHOLE.fullmatch, cells))


def _numbers_rows(records: Sequence[Record], column: Column) -> bool:
    """Return whether a column has whole numbers in ascending order, or under a name like id."""
    cells = (record.cells.get(column.name, "") for record in records)
    if len(records) < _FEWEST_NUMBERED or not all(map(_WHOLE.fullmatch, cells)):
        return False
    numbers = [int(record.cells[column.name]) for record in records]
    is_id = len(set(numbers)) == len(numbers) and bool(_ID.search(column.name))
    return is_id or all(a < b for a, b in pairwise(numbers))


def constant_numbers(table: Table) -> Iterator[str]:
    """Yield a warning for each column of numbers that is constant, if only within a class."""
    for j in np.flatnonzero(table.schema.n_values == 0).tolist():
        known = ~np.isnan(table.X[:, j])
        name, column, y = table.schema.columns[j].name, table.X[known, j], table.y[known]
        if len(np.unique(column)) == 1:
            yield f"column {name!r} is {readable_number(column[0])} in all rows: no evidence"
            continue
        for k, label in enumerate(table.schema.classes):
            values = column[y == k]
            if len(values) > 1 and len(np.unique(values)) == 1:
                yield (
                    f"column {name!r} is {readable_number(values[0])} in all rows of class"
                    f" {label!r}: variance zero, replaced by a billionth of that of all rows"
                )


def known_cells(records: Sequence[Record], name: str) -> dict[str, None]:
    """Return the different values of a column, in order of appearance."""
    cells = dict.fromkeys([record.cells.get(name, "") for record in records])  # twice as fast
    return {cell: None for cell in cells if not is_missing(cell)}


def check_declared(records: Sequence[Record], name: str, declared: Sequence[str]) -> None:
    """Raise InputError at the first cell that has none of the declared values."""
    codes = CategoryCodes(declared)
    for record in records:
        cell = record.cells.get(name, "")
        if np.isnan(codes[cell]) and not is_missing(cell):
            raise InputError(
                f"{record.name}: {name} is {cell[:40]!r}, but its values were declared as"
                f" {', '.join(declared[:20])}; correct the cell, or declare it too"
            )


def _are_numbers(values: Collection[str], few: int = FEW_WHOLE) -> bool:
    """Return whether cells are numbers, and not a few whole ones."""
    if not all(map(is_number_cell, values)):
        return False
    return len(values) > few or not all(float(value).is_integer() for value in values)


def _classes(where: str, target: str, values: Mapping[str, None], forced: bool) -> tuple[str, ...]:
    if not values:
        raise InputError(f"{where}: the target {target!r} has no value in any row; fill it in")
    if not forced and _are_numbers(values):
        raise InputError(
            f"{where}: the target {target!r} holds {len(values)} different numbers, not classes;"
            f" choose another column, or say --categorical {quote(target)}"
        )
    return tuple(sorted(values))


def sorted_cells(values: Collection[str]) -> tuple[str, ...]:
    """Return categories sorted as numbers if all of them are numbers, else as strings."""
    if all(map(is_number_cell, values)):
        return tuple(sorted(values, key=lambda value: (float(value), value)))
    return tuple(sorted(values))


class CategoryCodes(dict[str, float]):
    """The code of a category, NaN for other cells.

    1 is 1.0, which pandas writes beside gaps; True is true and TRUE, which polars and R write.
    """

    def __init__(self, levels: Sequence[str]) -> None:
        super().__init__({"": np.nan} | {level: float(k) for k, level in enumerate(levels)})

    def __missing__(self, cell: str) -> float:
        whole, truth = cell.removesuffix(".0"), cell.lower()
        same: tuple[str, ...] = ()
        if _WHOLE.fullmatch(whole.removeprefix("-")):
            same = (f"{cell}.0" if whole == cell else whole,)
        elif truth in ("true", "false"):
            same = truth, truth.title(), truth.upper()
        return next((self[name] for name in same if name in self), np.nan)

    def without(self, cells: Iterable[str]) -> list[str]:
        """Return the cells that have no code."""
        return [cell for cell in cells if np.isnan(self[cell])]


def coded(records: Sequence[Record], schema: Schema) -> Table:
    """Return records as a table; categories that the schema does not have are missing.

    Raises InputError for a cell that should be a number and is not.
    """
    X = np.empty((len(records), len(schema.columns)))
    for j, column in enumerate(schema.columns):
        cells = [record.cells.get(column.name, "") for record in records]
        if column.levels is None:
            X[:, j] = _numbers(records, column, cells)
            continue
        codes = CategoryCodes(column.levels)
        X[:, j] = [codes[cell] for cell in cells]
    codes = CategoryCodes(schema.classes)
    y = np.array([codes[record.cells.get(schema.target, "")] for record in records])
    names = tuple(record.name for record in records)
    y = np.where(np.isnan(y), -1, y).astype(np.int64)
    return Table(schema, names, in_intervals(X, schema), y)


def _numbers(records: Sequence[Record], column: Column, cells: list[str]) -> Floats:
    """Return a column of numbers, NaN where missing; raises InputError."""
    with suppress(ValueError):
        all_numbers = np.array(list(map(float, cells)))
        lowest = 0.0 if column.is_count else -np.inf
        are_right = np.isfinite(all_numbers) & (all_numbers >= lowest)
        if are_right.all() and not any("_" in cell for cell in cells):
            return all_numbers
    # Some cells are missing or are not numbers: 1_000 is one in Python only.
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        if is_missing(cell):
            numbers[i] = np.nan
        elif is_number_cell(cell) and not (column.is_count and float(cell) < 0):
            numbers[i] = float(cell)
        else:
            right = "a number; correct the cell, or train with --categorical " + quote(column.name)
            if column.is_count:
                right = "a count from 0 up; correct the cell, or choose another --model"
            raise InputError(f"{records[i].name}: {column.name} is {cell[:40]!r}, not {right}")
    return numbers


def in_intervals(X: Floats, schema: Schema) -> Floats:
    """Return rows (n_rows, n_columns) with numbers replaced by intervals in columns with cuts."""
    X = X.copy()
    for j, column in enumerate(schema.columns):
        if column.cuts is not None:
            interval = np.searchsorted(np.array(column.cuts), X[:, j]).astype(np.float64)
            X[:, j] = np.where(np.isnan(X[:, j]), np.nan, interval)
    return X


def cut_into_intervals(table: Table, cuts: Mapping[int, Sequence[float]]) -> Table:
    """Return the table with columns of numbers cut into intervals; cuts: by column number."""
    columns = list(table.schema.columns)
    for j, ends in cuts.items():
        columns[j] = replace(columns[j], cuts=tuple(ends))
    schema = replace(table.schema, columns=tuple(columns))
    return replace(table, schema=schema, X=in_intervals(table.X, schema))


def schema_to_dict(schema: Schema) -> dict[str, Any]:
    """Return the schema as plain values for the model file."""
    return asdict(
        schema, dict_factory=lambda f: {k: list(v) if type(v) is tuple else v for k, v in f}
    )


def schema_from_dict(values: dict[str, Any]) -> Schema:
    """Return the schema that `schema_to_dict` described."""
    columns = []
    for column in values["columns"]:
        fields: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in column.items()}
        columns.append(Column(**fields))
    return Schema(tuple(columns), values["target"], tuple(values["classes"]), values["closed"])


# --- cut points of numbers: equal width, equal frequency, or least description length -------

WAYS = ("width", "frequency", "mdl")
NOT_CUT = "none"
BINS = 10  # intervals by default


def cut_points(how: str, numbers: Floats, y: Integers, bins: int = BINS) -> tuple[float, ...]:
    """Return the cut points of a column of numbers, ascending; raises UsageError.

    An interval includes its upper end.  how: one of WAYS.  numbers: (n_rows,), NaN where
    missing.  y: (n_rows,), the classes; only mdl uses them.  bins: the largest number of
    intervals; mdl does not use it.
    """
    known = ~np.isnan(numbers)
    values = numbers[known]
    if how not in WAYS:
        raise UsageError(f"discretise: {how!r} is unknown; choose from {', '.join(WAYS)}")
    if how == "mdl":
        return tuple(mdl_cuts(values, y[known]))
    if not len(values):
        return ()
    share = np.arange(1, bins) / bins
    if how == "width":
        low, high = values.min(), values.max()
        # Halves, because the difference of two huge numbers may be infinite.
        ends = 2 * (low / 2 + (high / 2 - low / 2) * share)
    else:
        ends = np.quantile(values, share, method="inverted_cdf")
    # A cut at the largest value would leave the last interval empty; half of 5e-324 is 0.
    return tuple(np.unique(ends[(values.min() <= ends) & (ends < values.max())]).tolist())


def mdl_cuts(values: Floats, y: Integers) -> list[float]:
    """Return the cut points of Fayyad & Irani (1993), which shorten the description of y.

    values, y: (n,).  Of all cuts, the one that leaves the least class entropy is made if it
    lowers the entropy by more than
    (log2(N - 1) + delta) / N  with  delta = log2(3^k - 2) - (k E - k1 E1 - k2 E2), in bits.
    k, k1, k2 are the numbers of classes present in the whole and in its two parts, E, E1, E2
    the class entropies.  Both parts are then cut in the same way.
    """
    order = np.argsort(values, kind="stable")
    values = values[order]
    member = np.zeros((len(y) + 1, int(y.max(initial=0)) + 1))
    member[np.arange(1, len(y) + 1), y[order]] = 1
    before = member.cumsum(axis=0)  # (n + 1, n_classes): class counts of the first i
    places = np.flatnonzero(values[:-1] < values[1:]) + 1
    # Their theorem: the best cut never lies between two values that occur in one class only.
    ends = np.concatenate([[0], places, [len(values)]])
    around = before[ends[2:]] - before[ends[:-2]]
    places = places[np.count_nonzero(around, axis=1) > 1]
    cuts: list[float] = []
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        middle = _best_cut(places, before, start, end)
        if middle is not None:
            # Between neighbouring floats the mean may be the upper one, which is beyond the cut.
            below = np.nextafter(values[middle], -np.inf)
            cuts.append(float(min(values[middle - 1] / 2 + values[middle] / 2, below)))
            parts += [(start, middle), (middle, end)]
    return sorted(cuts)


def _best_cut(places: Integers, before: Floats, start: int, end: int) -> int | None:
    """Return the row before which to cut rows start to end; None if no cut is worth it."""
    place = places[np.searchsorted(places, start, "right") : np.searchsorted(places, end)]
    if not len(place):
        return None
    n = end - start
    whole = before[end] - before[start]
    left, right = before[place] - before[start], before[end] - before[place]
    n_left = (place - start).astype(np.float64)
    of_left, of_right = _entropy(left), _entropy(right)
    after = (n_left * of_left + (n - n_left) * of_right) / n
    best = int(after.argmin())
    entropy = float(_entropy(whole[None])[0])
    k, k_left, k_right = (np.count_nonzero(part) for part in (whole, left[best], right[best]))
    change = k * entropy - k_left * of_left[best] - k_right * of_right[best]
    delta = k * np.log2(3) + np.log2(1 - 2 * 3.0**-k) - change
    return int(place[best]) if entropy - after[best] > (np.log2(n - 1) + delta) / n else None


def _entropy(counts: Floats) -> Floats:
    """Return the entropy of each row of counts, bits."""
    share = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1))
