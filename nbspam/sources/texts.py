"""Reading labelled texts from CSV, TSV, JSON lines and fastText lines.

Rows are read lazily.  Damage is a ValueError with the line's number but without the file's
name, which the caller adds.

Secret: how the cells of a row become one text and one class.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

from nbspam.sources.cells import (
    DELIMITERS,
    SAMPLE_LINES,
    as_cell,
    as_text,
    csv_cells,
    json_object,
    lines_of,
    tsv_cells,
)
from nbspam.sources.columns import (
    ANY,
    NO_COLUMNS,
    SILENT,
    Columns,
    Listener,
    Places,
    Wanted,
    is_header_of_texts,
    named_places,
    no_text_column,
    places_of,
    unnamed_places,
)

_FASTTEXT = "__label__"
# A class, then a tab.  A class has no colon: "Subject:<TAB>..." is a header.
_LABELLED_LINE = re.compile(r"([^\s:,;]{1,40})\t", re.ASCII)


class Row(NamedTuple):
    """One text of a table."""

    label: str | None
    text: str
    name: str | None = None  # if a column holds names


def sniff(head: bytes) -> str | None:
    """Return "fasttext" or "tsv" if the beginning of a file looks like it, else None.

    "tsv" means at least two lines of `class<TAB>text`, with classes that recur.
    """
    text = _beginning(head)
    if text.startswith(_FASTTEXT):
        return "fasttext"
    lines = text.split("\n")
    if len(lines) > 2:
        lines.pop()  # the last line may be incomplete
    matches = [_LABELLED_LINE.match(line) for line in lines[:SAMPLE_LINES]]
    labels = {match[1] for match in matches if match}
    if len(matches) < 2 or not all(matches) or len(labels) > max(2, len(matches) // 2):
        return None
    return "tsv"


def sniff_table(head: bytes, learned: Columns = NO_COLUMNS) -> str | None:
    """Return the format if the beginning of a message looks like a table of texts, else None.

    Besides what `sniff` finds these are lines of JSON objects, and cells below a row with a
    known column of texts and one of classes, or with the columns that a model has learned from.
    """
    kind = sniff(head)
    if kind is not None:
        return kind
    first, newline, rest = _beginning(head).partition("\n")
    if not (newline and rest):
        return None
    if first.startswith("{"):
        try:
            names = list(json_object(first, 1))
            return "jsonl" if named_places(names, Wanted(learned=learned)) else None
        except ValueError:
            return None
    for delimiter in DELIMITERS:
        cells = [cell.strip(' "\r') for cell in first.split(delimiter)]
        if is_header_of_texts(cells, learned):
            return "tsv" if delimiter == "\t" else "csv"
    return None


def _beginning(head: bytes) -> str:
    """Return the beginning of a file as text, in which only ASCII need be right."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace")
    return head.removeprefix(codecs.BOM_UTF8).decode("latin-1")


def read_rows(
    stream: BinaryIO,
    kind: str,
    wanted: Wanted = ANY,
    encoding: str | None = None,
    listener: Listener = SILENT,
) -> Iterator[Row]:
    """Yield the texts of a table; raises ValueError.

    kind: csv, tsv, jsonl or fasttext.  Columns that nobody named are recognised.  encoding:
    found by looking if it is None.
    """
    lines = lines_of(stream, encoding, listener)
    if kind == "fasttext":
        return _fasttext_rows(lines)
    if kind == "jsonl":
        return _json_rows(lines, wanted, listener)
    rows, sample = tsv_cells(lines) if kind == "tsv" else csv_cells(lines)
    return _pick_cells(rows, sample, wanted, listener)


def _pick_cells(
    rows: Iterator[list[str]], sample: list[list[str]], wanted: Wanted, listener: Listener
) -> Iterator[Row]:
    """Yield the text of each row; the sample's rows help to recognise the columns."""
    first = next(rows, None)
    if first is None:
        return
    places = places_of(first, sample, wanted)
    if places is None and wanted.is_named:
        raise no_text_column(first)
    if places is None:
        places = unnamed_places(sample or [first])
        rows = chain([first], rows)
        listener.table(None, NO_COLUMNS)
    else:
        listener.table(first, _named(first, places))
    positions = places.positions
    for row in rows:
        listener.row(row)
        yield _text_of(row, positions)


def _named(names: Sequence[str], places: Places) -> Columns:
    label = None if places.label is None else names[places.label].strip()
    return Columns(tuple(names[place].strip() for place in places.text), label)


def _text_of(row: Sequence[str], positions: Sequence[int]) -> Row:
    """Return the text of a row; cells that the row lacks are empty.

    positions: those of the texts, then of label and name.
    """
    width = len(row)
    *texts, label, name = [row[at] if at < width else "" for at in positions]
    return Row(label.strip() or None, "\n".join(texts), name.strip() or None)


def _json_rows(lines: Iterator[str], wanted: Wanted, listener: Listener) -> Iterator[Row]:
    names: list[str] = []
    places: Places | None = None
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        values = json_object(line, number)
        if places is None:
            names = list(values)
            places = named_places(names, wanted)
            if places is None:
                raise no_text_column(names)
            listener.table(names, _named(names, places))
        listener.row([as_cell(values.get(name)) for name in names])
        positions = places.positions
        row = [
            as_text(values.get(name), number) if at in positions else ""
            for at, name in enumerate(names)
        ]
        yield _text_of(row, positions)


def _fasttext_rows(lines: Iterator[str]) -> Iterator[Row]:
    """Yield the rows of lines `__label__class text`; the first of several labels counts."""
    for line in lines:
        label, text = None, line.strip()
        while text.startswith(_FASTTEXT):
            word, _, text = text.partition(" ")
            label = label or word.removeprefix(_FASTTEXT) or None
        if label or text:
            yield Row(label, text)
