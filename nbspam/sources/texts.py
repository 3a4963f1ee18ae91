"""Reading labelled texts from CSV, TSV, JSON lines and fastText lines.

Rows are read lazily.  Damage is a ValueError with the line's number but without the file's
name, which the caller adds.

Secret: which column is the text, and which is the class.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from nbspam.sources.cells import (
    SAMPLE_LINES,
    as_text,
    csv_cells,
    json_object,
    lines_of,
    listed,
    tsv_cells,
)

Row = tuple[str | None, str]  # (label, text)

# The text is in the first of these columns that a table has; case does not matter.
TEXT_NAMES = (
    "text", "message", "body", "content", "sms", "email", "mail", "document", "review",
    "comment", "v2", "subject", "title",
)  # fmt: skip
LABEL_NAMES = ("label", "class", "category", "target", "spam", "is_spam", "type", "v1")

_FASTTEXT = "__label__"
# A class, then a tab.  A class has no colon: "Subject:<TAB>..." is a header.
_LABELLED_LINE = re.compile(rb"([^\s:,;]{1,40})\t")


def sniff(head: bytes) -> str | None:
    """Return "fasttext" or "tsv" if the beginning of a file looks like it, else None.

    "tsv" means at least two lines of `class<TAB>text`, with classes that recur.
    """
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(_FASTTEXT.encode()):
        return "fasttext"
    lines = head.split(b"\n")
    if len(lines) > 2:
        lines.pop()  # the last line may be incomplete
    matches = [_LABELLED_LINE.match(line) for line in lines[:SAMPLE_LINES]]
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
    """Yield the (label, text) rows of a table; raises ValueError.

    kind: csv, tsv, jsonl or fasttext.  text_column, label_column: names; without them the
    columns are recognised.  A line that is not UTF-8 is read as cp1252.
    """
    lines = lines_of(stream)
    if kind == "fasttext":
        return _fasttext_rows(lines)
    if kind == "jsonl":
        return _json_rows(lines, text_column, label_column)
    rows, sample = tsv_cells(lines) if kind == "tsv" else csv_cells(lines)
    return _pick_cells(rows, sample, text_column, label_column)


def _pick_cells(
    rows: Iterator[list[str]],
    sample: list[list[str]],
    text_column: str | None,
    label_column: str | None,
) -> Iterator[Row]:
    """Yield label and text of each row; the sample's rows help to recognise the columns."""
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
    """Return whether a first row of two cells is data, though one cell is a known column name.

    "spam", for example, can be the name of a column or a class.
    """
    known = [at for at, cell in enumerate(first) if _fold(cell) in (*TEXT_NAMES, *LABEL_NAMES)]
    if len(first) != 2 or len(known) != 1:
        return False
    # A class recurs in its column; the column's name does not.
    at = known[0]
    recurs = any(len(row) == 2 and row[at] == first[at] for row in sample[1:])
    return recurs or _fold(first[at]) == "spam"


def _named_columns(
    names: list[str], text_column: str | None, label_column: str | None
) -> tuple[int, int | None] | None:
    """Return the positions of text and label in a row of names; None if it has no names."""
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
    """Return the position of the wanted column; if none is wanted, of the first known name."""
    folded = [_fold(name) for name in names]
    if wanted is None:
        return next((folded.index(name) for name in known if name in folded), None)
    if _fold(wanted) not in folded:
        raise ValueError(f"no column {wanted!r}; there are: {listed(names)}")
    return folded.index(_fold(wanted))


def _no_text_column(names: list[str]) -> ValueError:
    return ValueError(f"no known text column; name one of: {listed(names)}")


def _unnamed_columns(rows: list[list[str]]) -> tuple[int, int | None]:
    """Return the positions of text and label in a table of at most two columns without names.

    The label is the column with fewer different values; on a tie, the one without spaces,
    then the shorter one, then the first.
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
        row = json_object(line, number)
        if not names:
            names = list(row)
            columns = _named_columns(names, text_column, label_column)
            if columns is None:
                raise _no_text_column(names)
            text, label = columns
        found = "" if label is None else as_text(row.get(names[label]), number).strip()
        yield found or None, as_text(row.get(names[text]), number)


def _fasttext_rows(lines: Iterator[str]) -> Iterator[Row]:
    """Yield the rows of lines `__label__class text`; the first of several labels counts."""
    for line in lines:
        label, text = None, line.strip()
        while text.startswith(_FASTTEXT):
            word, _, text = text.partition(" ")
            label = label or word.removeprefix(_FASTTEXT) or None
        if label or text:
            yield label, text
