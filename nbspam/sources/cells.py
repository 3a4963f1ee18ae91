"""Splitting the lines of CSV, TSV and JSON tables into cells, by column name.

Rows are read lazily: a table of any length needs the memory of its longest row.  Damage is
a ValueError with the line's number but without the file's name, which the caller adds.

Secret: how cells are delimited, and whether the first row holds column names.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from math import isfinite
from typing import BinaryIO

from nbspam.sources.columns import NO_COLUMNS, SILENT, Listener, listed
from nbspam.sources.encodings import decoded_lines

Cells = dict[str, str]  # by column name

DELIMITERS = (",", ";", "\t", "|")
_MAX_LINE = 64 << 20  # bytes of a line; characters of a quoted cell
SAMPLE_LINES = 200
_SAMPLE_CHARS = 1 << 18


def read_cells(
    stream: BinaryIO,
    kind: str | None = None,
    names: Sequence[str] = (),
    encoding: str | None = None,
    listener: Listener = SILENT,
) -> Iterator[Cells]:
    """Yield the rows of a table as stripped cells by column name; raises ValueError.

    kind: csv, tsv or jsonl; None: jsonl if the first line begins with "{", else csv.

    names: the columns that are expected.  They are the column names of a table without a
    row of names; the last may then be missing.  If no names are given, and the first row
    holds nothing but numbers, the columns are called 1, 2, 3 ...

    encoding: found by looking if it is None.
    """
    lines = lines_of(stream, encoding, listener)
    if kind is None:
        head = list(islice(lines, 1))
        kind = "jsonl" if head and head[0].startswith("{") else "csv"
        lines = chain(head, lines)
    if kind == "jsonl":
        yield from _json_cells(lines, listener)
        return
    rows = csv_cells(lines)[0] if kind == "csv" else _cut_at_tabs(lines)
    first = next(rows, None)
    if first is None:
        return
    header = [cell.strip() for cell in first]
    has_names = _is_header(header, names)
    if not has_names:
        header, rows = _standing_in(len(first), names), chain([first], rows)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}; rename one")
    listener.table(first if has_names else None, NO_COLUMNS)
    for number, cells in enumerate(rows, 1):
        if len(cells) > len(header):
            raise ValueError(
                f"row {number}: {len(cells)} cells, but {len(header)} columns; correct the row"
            )
        listener.row(cells)
        yield dict(zip(header, map(str.strip, cells), strict=False))


def _json_cells(lines: Iterator[str], listener: Listener) -> Iterator[Cells]:
    """Yield the cells of JSON objects; the names of the first are those of the table."""
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        row = json_object(line, number)
        if not names:
            names = list(row)
            listener.table(names, NO_COLUMNS)
        listener.row([as_cell(row.get(name)) for name in names])
        yield {name.strip(): as_text(value, number).strip() for name, value in row.items()}


def _is_header(first: list[str], names: Sequence[str]) -> bool:
    """Return whether the first row of a table holds column names."""
    if all(map(is_number, first)):
        return first == list(names)
    return not names or not set(names).isdisjoint(first)


def _standing_in(width: int, names: Sequence[str]) -> list[str]:
    """Return the column names of a table without a row of names."""
    if not names:
        return [str(number) for number in range(1, width + 1)]
    if width not in (len(names), len(names) - 1):
        raise ValueError(
            f"a first row of {width} cells, none of them the name of a column of the model:"
            f" {listed(list(names))}"
        )
    return list(names[:width])


def is_number(cell: str) -> bool:
    """Return whether a cell holds a finite number.

    >>> is_number("-1e3"), is_number("inf"), is_number("three")
    (True, False, False)
    """
    try:
        return isfinite(float(cell))
    except ValueError:
        return False


def lines_of(
    stream: BinaryIO,
    encoding: str | None = None,
    listener: Listener = SILENT,
    most: int = _MAX_LINE,
) -> Iterator[str]:
    """Yield the decoded lines, each ending in its only newline; raises ValueError.

    encoding: None: found by looking.  most: bytes of a line.
    """
    for line in decoded_lines(stream, encoding, listener.notice, most):
        yield line.rstrip("\r\n").replace("\r", " ") + "\n"


def _sample(lines: Iterator[str]) -> list[str]:
    """Take and return the first lines, few enough to keep in memory."""
    sample: list[str] = []
    size = 0
    for line in lines:
        sample.append(line)
        size += len(line)
        if len(sample) == SAMPLE_LINES or size > _SAMPLE_CHARS:
            break
    return sample


def csv_cells(
    lines: Iterator[str], most: int = _MAX_LINE
) -> tuple[Iterator[list[str]], list[list[str]]]:
    """Return all rows of a CSV table, lazily, and those of a sample of its first lines.

    most: characters of a quoted cell.  Reading the rows raises ValueError.
    """
    import csv

    # A cell that fills the sample, and its last line, must not stop the search there.
    csv.field_size_limit(max(csv.field_size_limit(), most + _SAMPLE_CHARS))
    sample = _sample(lines)
    delimiter, rows = _find_delimiter(sample)
    return _rows(chain(sample, lines), delimiter), rows


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of CSV lines, without empty ones; raises ValueError."""
    import csv

    is_ended = False

    def until_the_end() -> Iterator[str]:
        nonlocal is_ended
        yield from lines
        is_ended = True

    reader = csv.reader(until_the_end(), delimiter=delimiter)
    start = 1
    try:
        for row in reader:
            # A whole row is returned before the reader asks for another line.
            if is_ended:
                raise _never_closed(start + sum(cell.count("\n") for cell in row[:-1]))
            if row:
                yield row
            start = reader.line_num + 1
    except csv.Error as error:
        raise _never_closed(start) from error


def _never_closed(number: int) -> ValueError:
    return ValueError(
        f"line {number}: not CSV, a quote that opens here is never closed; close it, or give"
        " --format tsv if quotes are plain characters"
    )


def _find_delimiter(sample: list[str]) -> tuple[str, list[list[str]]]:
    """Return the best delimiter, and the sample's rows split by it.

    Best is a delimiter that splits all rows into the same number of cells, then the one
    that splits the first row into most cells, then the first of `DELIMITERS`.
    """
    import csv

    def cut(delimiter: str) -> list[list[str]]:
        rows = [row for row in csv.reader(sample, delimiter=delimiter) if row]
        return rows[:-1] if is_cut else rows

    def fitness(delimiter: str) -> tuple[bool, int]:
        widths = [len(row) for row in cuts[delimiter]] or [0]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0]

    # If the table goes on after the sample, the sample may end within a quoted cell.
    is_cut = len(sample) == SAMPLE_LINES or sum(map(len, sample)) > _SAMPLE_CHARS
    cuts = {delimiter: cut(delimiter) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=fitness)
    return best, cuts[best]


def tsv_cells(lines: Iterator[str]) -> tuple[Iterator[list[str]], list[list[str]]]:
    """Return all rows of a TSV table, lazily, and those of a sample of its first lines."""
    sample = _sample(lines)
    return _cut_at_tabs(chain(sample, lines)), list(_cut_at_tabs(sample))


def _cut_at_tabs(lines: Iterable[str]) -> Iterator[list[str]]:
    # Quotes are plain characters here: a message that begins with one must not swallow
    # the lines up to the next quote.
    return (line[:-1].split("\t") for line in lines if line != "\n")


def json_object(line: str, number: int) -> dict[str, object]:
    """Return the JSON object on a line; raises ValueError."""
    import json

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: not JSON ({error}); correct the line") from error
    if not isinstance(row, dict):
        raise ValueError(
            f"line {number}: not a JSON object; write one object, such as {{...}}, on each line"
        )
    return row


def as_text(value: object, number: int) -> str:
    """Return a JSON string, number or truth value as text, null as empty; raises ValueError."""
    if isinstance(value, list | dict):
        raise ValueError(f"line {number}: a list or object instead of text; correct the line")
    return as_cell(value)


def as_cell(value: object) -> str:
    """Return any JSON value as text, null as empty."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool | list | dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    return str(value)
