"""Splitting the lines of CSV, TSV and JSON tables into cells, by column name.

Rows are read lazily: a table of any length needs the memory of its longest row.  Damage is
a ValueError with the line's number but without the file's name, which the caller adds.

Secret: how cells are delimited, and whether the first row holds column names.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from math import isfinite
from typing import BinaryIO

Cells = dict[str, str]  # by column name

DELIMITERS = (",", ";", "\t", "|")
_MAX_LINE = 64 << 20  # bytes of a line; characters of a quoted cell
SAMPLE_LINES = 200
_SAMPLE_CHARS = 1 << 18


def read_cells(
    stream: BinaryIO, kind: str | None = None, names: Sequence[str] = ()
) -> Iterator[Cells]:
    """Yield the rows of a table as stripped cells by column name; raises ValueError.

    kind: csv, tsv or jsonl; None: jsonl if the first line begins with "{", else csv.

    names: the columns that are expected.  They are the column names of a table without a
    row of names; the last may then be missing.  If no names are given, and the first row
    holds nothing but numbers, the columns are called 1, 2, 3 ...
    """
    lines = lines_of(stream)
    if kind is None:
        head = list(islice(lines, 1))
        kind = "jsonl" if head and head[0].startswith("{") else "csv"
        lines = chain(head, lines)
    if kind == "jsonl":
        for number, line in enumerate(lines, 1):
            if not line.isspace():
                row = json_object(line, number)
                yield {name.strip(): as_text(value, number).strip() for name, value in row.items()}
        return
    rows = csv_cells(lines)[0] if kind == "csv" else _cut_at_tabs(lines)
    first = next(rows, None)
    if first is None:
        return
    header = [cell.strip() for cell in first]
    if not _is_header(header, names):
        header, rows = _standing_in(len(first), names), chain([first], rows)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}; rename one")
    for number, cells in enumerate(rows, 1):
        if len(cells) > len(header):
            raise ValueError(
                f"row {number}: {len(cells)} cells, but {len(header)} columns; correct the row"
            )
        yield dict(zip(header, map(str.strip, cells), strict=False))


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


def lines_of(stream: BinaryIO, most: int = _MAX_LINE) -> Iterator[str]:
    """Yield the decoded lines, each ending in its only newline; raises ValueError.

    most: bytes of a line.
    """
    number = 0
    while line := stream.readline(most):
        number += 1
        if number == 1:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ValueError("text in UTF-16; save it as UTF-8")
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) == most:
            raise ValueError(f"line {number}: over {most:,} bytes, so not a table; give a table")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("cp1252", "replace")
        yield text.rstrip("\r\n").replace("\r", " ") + "\n"


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

    csv.field_size_limit(max(csv.field_size_limit(), most))
    with _explained():
        sample = _sample(lines)
        delimiter, rows = _find_delimiter(sample)
    return _rows(csv.reader(chain(sample, lines), delimiter=delimiter)), rows


def _rows(reader: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the rows of a CSV reader, without empty ones."""
    with _explained():
        yield from (row for row in reader if row)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn csv.Error into a ValueError that says what to do."""
    import csv

    try:
        yield
    except csv.Error as error:
        raise ValueError(f"not CSV ({error}); close the quote that was left open") from error


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
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ValueError(f"line {number}: a list or object instead of text; correct the line")
    return str(value)


def listed(names: list[str]) -> str:
    """Return column names for an error message, shortened and at most 20."""
    return ", ".join(name[:40] for name in names[:20])
