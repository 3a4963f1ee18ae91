"""Reading records, the rows of tables, from files and streams."""

import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from nbspam.errors import InputError, UsageError
from nbspam.sources.cells import Cells, read_cells
from nbspam.sources.files import Blaming, open_file, status_of
from nbspam.sources.items import kind_by_name

FORMATS = ("csv", "tsv", "jsonl")


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table."""

    name: str  # "path#3" is the third row
    cells: Cells


def read_records(
    paths: Iterable[str],
    form: str | None = None,
    names: Sequence[str] = (),
    stdin: BinaryIO | None = None,
) -> Iterator[Record]:
    """Yield the rows of all tables, lazily; raises InputError and UsageError.

    form: one of FORMATS; None: told by the file's name or content.  names: of the columns
    that are expected, see `read_cells`.
    """
    if form not in (None, *FORMATS):
        raise UsageError(
            f"--format {form}: not a format of tables; choose from {', '.join(FORMATS)}"
        )
    for path in paths:
        if path != "-":
            yield from _file_records(path, form, names)
        elif stdin is None and sys.stdin is None:
            raise InputError("-: standard input is closed; give a path")
        else:
            yield from _records("-", stdin or sys.stdin.buffer, form, names)


def _file_records(path: str, form: str | None, names: Sequence[str]) -> Iterator[Record]:
    if stat.S_ISDIR(status_of(path).st_mode):
        raise InputError(f"{path}: a folder; give a table: CSV, TSV or JSON lines")
    kind = form or kind_by_name(path)
    with Blaming(path), open_file(path) as stream:
        yield from _records(path, stream, kind if kind in FORMATS else None, names)


def _records(
    name: str, stream: BinaryIO, kind: str | None, names: Sequence[str]
) -> Iterator[Record]:
    with Blaming(name):
        number = 0
        for number, cells in enumerate(read_cells(stream, kind, names), 1):
            yield Record(f"{name}#{number}", cells)
        if not number:
            raise InputError(f"{name}: no rows; give a table with a row of names and other rows")
