"""Tables: CSV, TSV, JSON lines and fastText lines, as labelled text or as named cells.

Rows stream; a table of any length takes the memory of its longest row.  Damage is
a ValueError with the line's number but not the file's name, which the caller adds.

Secret: which column is the text, which the class, and how the cells are delimited.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import isfinite
from typing import BinaryIO

Row = tuple[str | None, str]  # (label, text)
Cells = dict[str, str]  # by the name of the column

# The first of these names that a table has is taken, whatever its case.
TEXT_NAMES = (
    "text", "message", "body", "content", "sms", "email", "mail", "document", "review",
    "comment", "v2", "subject", "title",
)  # fmt: skip
LABEL_NAMES = ("label", "class", "category", "target", "spam", "is_spam", "type", "v1")

DELIMITERS = (",", ";", "\t", "|")
_MAX_LINE = 64 << 20  # bytes of a line, characters of a quoted cell
_SAMPLE_LINES = 200
_SAMPLE_CHARS = 1 << 18
_FASTTEXT = "__label__"
# A class, then a tab.  No colon: "Subject:<TAB>..." is a header.
_LABELLED_LINE = re.compile(rb"([^\s:,;]{1,40})\t")


def sniff(head: bytes) -> str | None:
    """Return "fasttext" or "tsv" for a file that begins so, else None.

    "tsv" is lines of `class<TAB>text`, at least two, with classes that recur.
    """
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(_FASTTEXT.encode()):
        return "fasttext"
    lines = head.split(b"\n")
    if len(lines) > 2:
        lines.pop()  # it may be cut
    matches = [_LABELLED_LINE.match(line) for line in lines[:_SAMPLE_LINES]]
    labels = {match[1] for match in matches if match}
    if len(matches) < 2 or not all(matches) or len(labels) > max(2, len(matches) // 2):
        return None
    return "tsv"


def read_rows(
    stream: BinaryIO,
    kind: str,
    text_column: str | None = None,
    label_column: str | None = None,
) -> Iterator[Row]:
    """Return the (label, text) rows of a table of this kind: csv, tsv, jsonl or fasttext.

    A line that is not UTF-8 is read as cp1252.
    """
    readers: dict[str, Callable[[Iterator[str], str | None, str | None], Iterator[Row]]] = {
        "csv": _csv_rows,
        "tsv": _tsv_rows,
        "jsonl": _json_rows,
        "fasttext": _fasttext_rows,
    }
    return readers[kind](_lines(stream), text_column, label_column)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Yield decoded lines that end in a newline and have no other line break in them."""
    number = 0
    while line := stream.readline(_MAX_LINE):
        number += 1
        if number == 1:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise ValueError("text in UTF-16; save it as UTF-8")
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) == _MAX_LINE:
            raise ValueError(f"line {number}: over {_MAX_LINE >> 20} MB long; not a table?")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("cp1252", "replace")
        yield text.rstrip("\r\n").replace("\r", " ") + "\n"


def read_cells(
    stream: BinaryIO, kind: str | None = None, names: Sequence[str] = ()
) -> Iterator[Cells]:
    """Yield the rows of a table as cells by column name, spaces around them taken off.

    kind: csv, tsv or jsonl; without it, jsonl if the first line begins as an object does,
    else csv.  names: the columns expected, the last of which may be left out; they stand in for a
    row of names that is not there.  Without them columns that hold numbers from the first
    row on are called 1, 2, 3 ...
    """
    lines = _lines(stream)
    if kind is None:
        head = list(islice(lines, 1))
        kind = "jsonl" if head and head[0].startswith("{") else "csv"
        lines = chain(head, lines)
    if kind == "jsonl":
        for number, line in enumerate(lines, 1):
            if not line.isspace():
                row = _json_object(line, number)
                yield {
                    name.strip(): _as_text(value, number).strip() for name, value in row.items()
                }
        return
    cut = _csv_cells if kind == "csv" else _tsv_cells
    rows = cut(lines)
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
    """Return whether the first row of a table has the names of its columns."""
    if all(map(is_number, first)):
        return first == list(names)
    return not names or not set(names).isdisjoint(first)


def _standing_in(width: int, names: Sequence[str]) -> list[str]:
    """Return the names of the columns of a table that does not say them."""
    if not names:
        return [str(number) for number in range(1, width + 1)]
    if width not in (len(names), len(names) - 1):
        raise ValueError(
            f"a first row of {width} cells, none of them a name of the model's columns:"
            f" {_listed(list(names))}"
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


def _sample(lines: Iterator[str]) -> list[str]:
    """Return the first lines, few enough to hold."""
    sample: list[str] = []
    size = 0
    for line in lines:
        sample.append(line)
        size += len(line)
        if len(sample) == _SAMPLE_LINES or size > _SAMPLE_CHARS:
            break
    return sample


def _csv_cells(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield the rows of a CSV table, cut by the delimiter that fits it."""
    import csv

    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE))
    try:
        sample = _sample(lines)
        reader = csv.reader(chain(sample, lines), delimiter=_find_delimiter(sample)[0])
        yield from (row for row in reader if row)
    except csv.Error as error:
        raise ValueError(f"not CSV ({error}); close the quote that was left open") from error


def _tsv_cells(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the rows of a TSV table; quotes are plain characters."""
    return (line[:-1].split("\t") for line in lines if line != "\n")


def _csv_rows(
    lines: Iterator[str], text_column: str | None, label_column: str | None
) -> Iterator[Row]:
    import csv

    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE))
    try:
        sample = _sample(lines)
        delimiter, rows = _find_delimiter(sample)
        reader = csv.reader(chain(sample, lines), delimiter=delimiter)
        yield from _pick_cells((row for row in reader if row), rows, text_column, label_column)
    except csv.Error as error:
        raise ValueError(f"not CSV ({error}); close the quote that was left open") from error


def _find_delimiter(sample: list[str]) -> tuple[str, list[list[str]]]:
    """Return the delimiter and the sample's rows cut by it.

    Best is the one that cuts all rows into the same number of cells, then the one
    that cuts the first row into most; among equals the first of `DELIMITERS`.
    """
    import csv

    def cut(delimiter: str) -> list[list[str]]:
        rows = [row for row in csv.reader(sample, delimiter=delimiter) if row]
        return rows[:-1] if is_cut else rows

    def fitness(delimiter: str) -> tuple[bool, int]:
        widths = [len(row) for row in cuts[delimiter]] or [0]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0]

    # Where the table goes on, the sample may end within a quoted cell.
    is_cut = len(sample) == _SAMPLE_LINES or sum(map(len, sample)) > _SAMPLE_CHARS
    cuts = {delimiter: cut(delimiter) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=fitness)
    return best, cuts[best]


def _tsv_rows(
    lines: Iterator[str], text_column: str | None, label_column: str | None
) -> Iterator[Row]:
    # Quotes are plain characters: a message that begins with one must not swallow
    # the lines up to the next.
    sample = _sample(lines)
    rows = _tsv_cells(chain(sample, lines))
    return _pick_cells(rows, list(_tsv_cells(sample)), text_column, label_column)


def _pick_cells(
    rows: Iterator[list[str]],
    sample: list[list[str]],
    text_column: str | None,
    label_column: str | None,
) -> Iterator[Row]:
    """Yield the two cells that matter of each row; `sample` helps to tell which they are."""
    first = next(rows, None)
    if first is None:
        return
    columns = None
    if text_column or label_column or not _is_data(first, sample):
        columns = _named_columns(first, text_column, label_column)
    if columns is None:
        columns = _unnamed_columns(sample or [first])
        rows = chain([first], rows)
    text, label = columns
    for row in rows:
        found = row[label].strip() if label is not None and label < len(row) else ""
        yield found or None, row[text] if text < len(row) else ""


def _is_data(first: list[str], sample: list[list[str]]) -> bool:
    """Return whether the one known name in two cells is not a column's but a class: "spam"."""
    known = [at for at, cell in enumerate(first) if _fold(cell) in (*TEXT_NAMES, *LABEL_NAMES)]
    if len(first) != 2 or len(known) != 1:
        return False
    # A class stands in its column again and again; a column's name does not.
    at = known[0]
    recurs = any(len(row) == 2 and row[at] == first[at] for row in sample[1:])
    return recurs or _fold(first[at]) == "spam"


def _named_columns(
    names: list[str], text_column: str | None, label_column: str | None
) -> tuple[int, int | None] | None:
    """Return the positions of text and label in a row of names, None if it is no such row."""
    text = _find_column(names, text_column, TEXT_NAMES)
    label = _find_column(names, label_column, LABEL_NAMES)
    if text is None and label is not None and len(names) == 2:
        text = 1 - label
    if text is None:
        return None
    return text, None if label == text else label


def _fold(name: str) -> str:
    return name.strip().lower()


def _find_column(names: list[str], wanted: str | None, known: tuple[str, ...]) -> int | None:
    """Return the position of the wanted column, or without one of the first known name."""
    folded = [_fold(name) for name in names]
    if wanted is None:
        return next((folded.index(name) for name in known if name in folded), None)
    if _fold(wanted) not in folded:
        raise ValueError(f"no column {wanted!r}; there are: {_listed(names)}")
    return folded.index(_fold(wanted))


def _listed(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names[:20])


def _no_text_column(names: list[str]) -> ValueError:
    return ValueError(f"no known text column; name one of: {_listed(names)}")


def _unnamed_columns(rows: list[list[str]]) -> tuple[int, int | None]:
    """Return the positions of text and label in a table of at most two columns.

    The label is the column with fewer values; of equals the one without spaces, then
    the shorter one, then the first.
    """
    width = len(rows[0])
    if width == 1:
        return 0, None
    if width > 2:
        raise _no_text_column(rows[0])

    def size(position: int) -> tuple[int, bool, int]:
        cells = [row[position] for row in rows if len(row) == 2]
        return len(set(cells)), any(" " in cell for cell in cells), sum(map(len, cells))

    label = min((0, 1), key=size)
    return 1 - label, label


def _json_rows(
    lines: Iterator[str], text_column: str | None, label_column: str | None
) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        row = _json_object(line, number)
        if not names:
            names = list(row)
            columns = _named_columns(names, text_column, label_column)
            if columns is None:
                raise _no_text_column(names)
            text, label = columns
        found = "" if label is None else _as_text(row.get(names[label]), number).strip()
        yield found or None, _as_text(row.get(names[text]), number)


def _json_object(line: str, number: int) -> dict[str, object]:
    import json

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: not JSON ({error}); correct the line") from error
    if not isinstance(row, dict):
        raise ValueError(f"line {number}: not a JSON object; write one such as {{...}} a line")
    return row


def _as_text(value: object, number: int) -> str:
    """Return a JSON string, number or truth value as text, null as none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ValueError(f"line {number}: a list or object in place of text; correct the line")
    return str(value)


def _fasttext_rows(
    lines: Iterator[str], text_column: str | None, label_column: str | None
) -> Iterator[Row]:
    """Yield rows of `__label__class text`; of several labels the first counts."""
    for line in lines:
        label, text = None, line.strip()
        while text.startswith(_FASTTEXT):
            word, _, text = text.partition(" ")
            label = label or word.removeprefix(_FASTTEXT) or None
        if label or text:
            yield label, text
