"""Reading records, the rows of tables, from files and streams."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from nbspam.errors import InputError, UsageError
from nbspam.sources.cells import Cells, read_cells
from nbspam.sources.columns import position
from nbspam.sources.encodings import check_encoding
from nbspam.sources.files import Blaming, is_folder, open_file
from nbspam.sources.items import SourceOptions
from nbspam.sources.mailboxes import PACKED, kind_by_name

FORMATS = ("csv", "tsv", "jsonl")
_NO_OPTIONS = SourceOptions()


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table."""

    name: str  # "path#3" is the third row
    cells: Cells
    source: str = ""  # the table's path


def read_records(
    paths: Iterable[str],
    options: SourceOptions = _NO_OPTIONS,
    names: Sequence[str] = (),
    stdin: BinaryIO | None = None,
) -> Iterator[Record]:
    """Yield the rows of all tables, lazily; raises InputError and UsageError.

    options: its format is one of FORMATS, or None: told by the file's name or content.
    names: of the columns that are expected, see `read_cells`.
    """
    if options.format not in (None, *FORMATS):
        raise UsageError(
            f"--format {options.format}: not a format of tables; choose from {', '.join(FORMATS)}"
        )
    if options.encoding is not None:
        check_encoding(options.encoding)
    for path in paths:
        if path != "-":
            yield from _file_records(path, options, names)
        elif stdin is None and sys.stdin is None:
            raise InputError("-: standard input is closed; give a path")
        else:
            yield from _records("-", stdin or sys.stdin.buffer, options, names)


def _file_records(path: str, options: SourceOptions, names: Sequence[str]) -> Iterator[Record]:
    if is_folder(path):
        raise InputError(f"{path}: a folder; give a table: CSV, TSV or JSON lines")
    kind = options.format or kind_by_name(path)
    if kind in PACKED:
        raise InputError(
            f"{path}: mail or texts, not a table of columns; give CSV, TSV or JSON lines"
        )
    with Blaming(path), open_file(path) as stream:
        options = options._replace(format=kind if kind in FORMATS else None)
        yield from _records(path, stream, options, names)


def _records(
    name: str, stream: BinaryIO, options: SourceOptions, names: Sequence[str]
) -> Iterator[Record]:
    with Blaming(name):
        number = 0
        rows = read_cells(stream, options.format, names, options.encoding, options.heard(name))
        for number, cells in enumerate(rows, 1):
            row_name = _take_name(cells, options.id_column) or f"{name}#{number}"
            yield Record(row_name, cells, name)
        if not number:
            raise InputError(f"{name}: no rows; give a table with a row of names and other rows")


def _take_name(cells: Cells, column: str | None) -> str | None:
    """Remove and return the cell that names a row; raises ValueError if there is none."""
    if column is None:
        return None
    return cells.pop(list(cells)[position(list(cells), column)])
