"""Records: the rows of tables of typed columns, from files, streams and memory."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from math import isfinite
from typing import Any, BinaryIO, NamedTuple
from unicodedata import normalize

from nbspam.charsets import check_encoding
from nbspam.errors import InputError, UsageError
from nbspam.printing import amount_text
from nbspam.sources import files
from nbspam.sources.items import NO_OPTIONS, RECORD_FORMATS, SourceOptions
from nbspam.sources.rows import (
    as_cell,
    check_distinct,
    json_objects,
    lines_of,
    position,
    single_value,
    split_rows,
)

_FORMS = "CSV, TSV, JSON lines or parquet"
_UNREAD = (".arff", ".feather", ".npy", ".npz", ".ods", ".pkl", ".xls", ".xlsx")
_PLACE = re.compile(r"[1-9][0-9]*")  # the name of a column that has none

Cells = dict[str, str]  # by column name


class Record(NamedTuple):
    """One row of a table."""

    name: str  # "path#3" is the third row
    cells: Cells
    source: str = ""  # the table's path


def read_records(
    paths: Iterable[str], options: SourceOptions = NO_OPTIONS, names: Sequence[str] = ()
) -> Iterator[Record]:
    """Yield the rows of all tables, lazily; raises InputError and UsageError.

    options: its format is one of RECORD_FORMATS, or None: told by the file's name or content.
    names: of the columns that are expected, see `read_cells`.
    """
    if options.format not in (None, *RECORD_FORMATS):
        raise UsageError(
            f"--format {options.format}: not a format of tables; choose from"
            f" {', '.join(RECORD_FORMATS)}"
        )
    if options.encoding is not None:
        check_encoding(options.encoding)
    for path in paths:
        if path == "-":
            stream, listener = files.standard_input(), options.listener_to("-")
            cells = read_cells(stream, options.format, names, options.encoding, listener)
            yield from _records("-", cells, options.id_column)
        elif (whole := files.file_around(path)) is not None:
            rows = (row for row in _file_records(whole, options, names) if row.name == path)
            if (row := next(rows, None)) is None:
                raise InputError(f"{path}: no such row there; check its name")
            yield row
        else:
            yield from _file_records(path, options, names)


def rows_given(given: Any, names: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the rows of a table; raises InputError, UsageError.

    given: a path, or an iterable of paths, of dicts from columns to cells or of Series; a
    DataFrame, or a table of Arrow; or an array or sparse matrix (n_rows, n_columns), whose
    columns are called 0, 1, ….  A cell that is None, NaN, NaT, NA or masked is missing.  names:
    of the columns of a model, of which a row must have one.
    """
    with files.Blaming(type(given).__name__):
        rows = _rows_of(given)
    for number, each in enumerate(rows):
        if getattr(each, "ndim", 0) == 1 and hasattr(each, "to_dict"):  # a row of pandas
            each = each.to_dict()
        if isinstance(each, os.PathLike):
            yield from read_records([os.fsdecode(each)], names=names)
        elif isinstance(each, Mapping):
            cells = {
                normalize("NFC", str(name)).strip(): files.cell_text(value)
                for name, value in each.items()
            }
            if cells and names and cells.keys().isdisjoint(names):
                raise InputError(
                    f"#{number}: none of its columns ({files.listed(list(cells))}) is the model's;"
                    f" give some of: {files.listed(names)}"
                )
            yield Record(f"#{number}", cells)
        else:
            raise UsageError(
                f"{type(each).__name__}: not a row of a table; give a dict from columns to cells,"
                " or a pathlib.Path of a table"
            )


def _rows_of(given: Any) -> Any:
    """Return the rows, or the paths, of what `rows_given` takes; raises UsageError, ValueError."""
    if getattr(given, "ndim", 2) != 2:
        raise UsageError(f"{type(given).__name__}: one row or column; give a table of both")
    if hasattr(given, "to_dicts"):  # polars
        return given.to_dicts()
    if hasattr(given, "to_pylist"):  # Arrow
        check_distinct(getattr(given, "column_names", ()))
        return given.to_pylist()
    if hasattr(given, "to_dict"):  # pandas
        check_distinct(map(str, given))
        return given.to_dict("records")
    if hasattr(given, "shape"):
        rows = given.toarray() if hasattr(given, "toarray") else given
        return [dict(enumerate(row)) for row in rows.tolist()]
    if isinstance(given, Mapping):
        for name, cell in given.items():
            if hasattr(cell, "__len__") and not isinstance(cell, str | bytes):
                raise ValueError(f"{name!r} has several cells; give a list of dicts, one a row")
    return [given] if isinstance(given, Mapping) or not isinstance(given, Iterable) else given


def _file_records(path: str, options: SourceOptions, names: Sequence[str]) -> Iterator[Record]:
    if files.is_folder(path):
        raise InputError(f"{path}: a folder; give a table: {_FORMS}")
    kind, listener = options.format or files.kind_by_name(path), options.listener_to(path)
    if kind in files.PACKED and kind != "parquet":
        raise InputError(
            f"{path}: {kind} is read for mail and texts only; give a table of columns as {_FORMS}"
        )
    if options.format is None and path.lower().endswith(_UNREAD):
        raise InputError(f"{path}: a table in a format that is not read; save it as {_FORMS}")
    with files.Blaming(path), files.open_file(path) as stream:
        if kind == "parquet":
            from nbspam.sources.parquet import parquet_cells  # late: few tables need it

            cells = parquet_cells(path, stream, listener)
        else:
            kind = kind if kind in RECORD_FORMATS else None
            cells = read_cells(stream, kind, names, options.encoding, listener)
        yield from _records(path, cells, options.id_column)


def _records(name: str, rows: Iterable[Cells], id_column: str | None) -> Iterator[Record]:
    with files.Blaming(name):
        number, key = 0, None
        for number, cells in enumerate(rows, 1):
            if number == 1 and id_column is not None:
                key = list(cells)[position(list(cells), id_column)]
            own = None if key is None else cells.pop(key, None)  # a short row has none
            yield Record(own or f"{name}#{number}", cells, name)
        if not number:
            raise InputError(f"{name}: no rows; give a table with a row of names and other rows")


def read_cells(
    stream: BinaryIO,
    kind: str | None = None,
    names: Sequence[str] = (),
    encoding: str | None = None,
    listener: files.Listener = files.SILENT,
) -> Iterator[Cells]:
    """Yield the rows of a table as stripped cells by column name; raises ValueError.

    kind: csv, tsv or jsonl; None: jsonl if the first line begins with "{", else csv.

    names: the columns that are expected, in letters of any case.  They are the column names of a
    table without a row of names; the last may then be missing.  If no names are given, and the
    first row holds nothing but numbers, the columns are called 1, 2, 3 ...; where names like
    these are expected, the first row holds cells.

    encoding: found by looking if it is None.
    """
    # In windows-1258 letters and their marks are apart.
    lines: Iterator[str] = map(partial(normalize, "NFC"), lines_of(stream, encoding, listener))
    if kind is None:
        head = list(islice(lines, 1))
        # An array of objects is taken for JSON lines, so that its error says what to write.
        kind = "jsonl" if re.match(r"\{|\[(\{|\s*$)", "".join(head)) else "csv"
        lines = chain(head, lines)
    if kind == "jsonl":
        yield from _json_cells(lines, listener)
        return
    rows, _ = split_rows(lines, kind)
    if (first := next(rows, None)) is None:
        return
    # A name in other letters is the column's, unless it is another column's own.
    expected = {name.lower(): name for name in names} | {name: name for name in names}
    header = [cell.strip() for cell in first]
    header = [expected.get(cell) or expected.get(cell.lower(), cell) for cell in header]
    has_names = _is_header(header, names)
    if not has_names:
        header, rows = _standing_in(len(first), names), chain([first], rows)
    while has_names and any(header) and not header[-1]:
        header.pop()  # an empty column, as spreadsheets write them
    check_distinct(header, "rename one, or begin the table with a row of names")
    listener.table(first if has_names else None, files.NO_COLUMNS)
    hint = "; --format csv reads quotes" if kind == "tsv" else ""
    yield from _cells_by_name(header, rows, hint, listener)


def _cells_by_name(
    header: list[str], rows: Iterator[list[str]], hint: str, listener: files.Listener
) -> Iterator[Cells]:
    """Yield the cells of rows by column name; hint: for a row that is too short."""
    width, has_told = len(header), False
    for number, cells in enumerate(rows, 1):
        if len(cells) < width and not has_told:
            has_told = True
            listener.notice(
                f"row {number}: fewer cells ({len(cells)}) than columns ({width}), so that the"
                f" last ones are missing{hint}"
            )
        if len(cells) > width and any(map(str.strip, cells[width:])):
            raise ValueError(
                f"row {number}: more cells ({len(cells)}) than columns"
                f" ({width}: {files.listed(header)}); correct it, or the row of names"
            )
        listener.row(cells)
        yield dict(zip(header, map(str.strip, cells), strict=False))


def _json_cells(lines: Iterator[str], listener: files.Listener) -> Iterator[Cells]:
    """Yield the cells of JSON objects; the first object names the columns."""
    names: list[str] = []
    for number, row in json_objects(lines):
        if not names:
            names = list(row)
            check_distinct(names)
            listener.table(names, files.NO_COLUMNS)
        listener.row(as_cell(row.get(name)) for name in names)
        cells = {name: single_value(value, number, name) for name, value in row.items()}
        # Written as cells of rows in memory are: true is True, and 1.0 is 1.
        yield {normalize("NFC", n).strip(): files.cell_text(v) for n, v in cells.items()}


def _is_header(first: list[str], names: Sequence[str]) -> bool:
    if names and all(map(_PLACE.fullmatch, names)):
        return False
    if all(map(is_number_cell, first)):
        return first in (list(names), list(names[:-1]))
    return not names or not set(names).isdisjoint(first)


def _standing_in(width: int, names: Sequence[str]) -> list[str]:
    """Return the column names of a table without a row of names."""
    places = [str(number) for number in range(1, width + 1)]
    if {*names[:-1]} <= {*places} and {*names[-1:]} <= {*places, str(width + 1)}:
        return places
    if width not in (len(names), len(names) - 1):
        raise ValueError(
            f"the first row has {amount_text(width, 'cells')}, and none names a column of the"
            f" model ({files.listed(list(names))}); add a row of names, or give a cell for each"
        )
    return list(names[:width])


def is_number_cell(cell: str) -> bool:
    """Return whether a cell holds a finite number.

    >>> is_number_cell("-1e3"), is_number_cell("inf"), is_number_cell("three")
    (True, False, False)
    """
    try:
        return isfinite(float(cell)) and "_" not in cell  # 1_000 is a number in Python only
    except ValueError:
        return False
