"""What the command line hears of tables while they are read, and tables written back.

Secret: what of it is said on standard error, and how a row waits for its verdict.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from nbspam.cli.output import warn
from nbspam.errors import InputError, UsageError
from nbspam.sources.columns import Columns, Rememberer, listed
from nbspam.sources.items import SourceOptions

if TYPE_CHECKING:
    from nbspam.parallel import Workers
    from nbspam.verdicts import Skipped, Verdict


class Heard(Rememberer):
    """Says what the user should know of each table, once, and remembers its first row."""

    names: tuple[str, ...] = ()  # of the columns of the last table; without names, none

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def notice(self, line: str) -> None:
        """Print a line on standard error, unless it was printed already."""
        if line not in self._said:
            self._said.add(line)
            warn(line)

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        """Remember the names of the columns."""
        super().table(names, columns)
        self.names = tuple(names or ())


def reading_of(
    format: str | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    id_column: str | None,
    encoding: str | None,
) -> SourceOptions:
    """Return how sources are read, with a listener that speaks to the user."""
    return SourceOptions(format, text_columns, label_column, id_column, encoding, listener=Heard())


def check_label_column(reading: SourceOptions) -> None:
    """Raise InputError if a table of texts was read that has no known column of classes."""
    heard = reading.listener
    if isinstance(heard, Heard) and heard.columns.text and heard.columns.label is None:
        raise InputError(
            "train: no column that is known to hold classes; name one by --label-column, of:"
            f" {listed(heard.names)}"
        )


def columns_read_rows(columns: Columns) -> list[tuple[str]]:
    """Return the line, if any, that says which columns a model of text has learned from."""
    if not columns.text:
        return []
    text = f"  text in {', '.join(map(repr, columns.text))}"
    return [(text if columns.label is None else f"{text}; class in {columns.label!r}",)]


def columns_read_json(columns: Columns) -> dict[str, object]:
    """Return which columns a model of text has learned from, for JSON."""
    return {"text_columns": columns.text, "label_column": columns.label}


# --- tables written back ---------------------------------------------------------------------


class Rows(Heard):
    """Keeps the rows of tables until their verdicts are there."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: deque[Sequence[str]] = deque()
        self._n_heard = 0
        self._first: tuple[str, ...] | None = None

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        """Check that all tables have the same columns; raises ValueError."""
        super().table(names, columns)
        if self._first is None:
            self._first = self.names
        elif self._first != self.names:
            raise ValueError(
                f"its columns are not those of the table before it ({listed(self._first)});"
                " classify it by itself"
            )

    def row(self, cells: Sequence[str]) -> None:
        """Keep a row."""
        self._rows.append(cells)
        self._n_heard += 1

    def only(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Let rows of tables pass; raise UsageError for anything else."""
        for number, given in enumerate(inputs, 1):
            if self._n_heard != number:
                raise UsageError(
                    f"--csv: {given.name} is no row of a table; give CSV, TSV or JSON"
                )
            yield given

    def lines(self, results: "Iterable[Verdict | Skipped]") -> Iterator[str]:
        """Yield the lines of a CSV table: all rows, each with its label and probability.

        A row that could not be read has neither.  One with more cells than the first keeps them
        in its last, so that all rows have equally many.
        """
        from nbspam.verdicts import Skipped

        width = 0
        for result in results:
            cells = [*self._rows.popleft()]
            if not width:
                width = len(self._first or cells)
                if self._first:
                    yield _csv_line([*self._first, *_new_names(self._first)])
            if len(cells) > width:
                cells[width - 1 :] = [",".join(cells[width - 1 :])]
            cells += [""] * (width - len(cells))
            if isinstance(result, Skipped):
                yield _csv_line([*cells, "", ""])
            else:
                yield _csv_line([*cells, result.label, f"{result.probability:.6f}"])


def _new_names(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the columns that are added, other than those that are there."""
    for name in ("label", "probability"):
        while name in names:
            name = f"predicted_{name}"
        yield name


def _csv_line(cells: Sequence[str]) -> str:
    """Return a row as CSV; on a terminal without control characters."""
    import csv

    from nbspam.printing import printable

    out = StringIO()
    # Cells with a character of the line's end are quoted.
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    line = out.getvalue()[:-2]
    return printable(line) if sys.stdout.isatty() else line


def refuse_engine(jobs: "Workers") -> None:
    """Raise UsageError if there is an engine, where a table is counted."""
    if not isinstance(jobs, int):
        raise UsageError("--engine: for mail and texts; a table is counted here, leave it out")
