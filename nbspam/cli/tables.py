"""What the command line hears of tables while they are read.

Secret: what of it is said on standard error.
"""

from nbspam.cli.output import warn
from nbspam.sources.columns import Columns, Rememberer
from nbspam.sources.items import SourceOptions


class Heard(Rememberer):
    """Says what the user should know of each table, once."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def notice(self, line: str) -> None:
        """Print a line on standard error, unless it was printed already."""
        if line not in self._said:
            self._said.add(line)
            warn(line)


def reading_of(
    format: str | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    id_column: str | None,
    encoding: str | None,
) -> SourceOptions:
    """Return how sources are read, with a listener that speaks to the user."""
    return SourceOptions(format, text_columns, label_column, id_column, encoding, listener=Heard())


def columns_read_rows(columns: Columns) -> list[tuple[str]]:
    """Return the line, if any, that says which columns a model of text has learned from."""
    if not columns.text:
        return []
    text = f"  text in {', '.join(map(repr, columns.text))}"
    return [(text if columns.label is None else f"{text}; class in {columns.label!r}",)]


def columns_read_json(columns: Columns) -> dict[str, object]:
    """Return which columns a model of text has learned from, for JSON."""
    return {"text_columns": columns.text, "label_column": columns.label}
