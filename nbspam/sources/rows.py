"""Tables of texts, and how CSV, TSV and JSON lines are split into cells.

Rows are read lazily: a table of any length needs the memory of its longest row.  Damage is a
ValueError with the line's number but without the file's name, which the caller adds.  Columns of
texts, classes and names are those that the user named, else those that a model has learned from,
else those of well-known names.
"""

import codecs
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import BinaryIO, NamedTuple
from unicodedata import normalize

from nbspam.charsets import decoded_lines, first_lines
from nbspam.sources import files

# The text is in the first of these columns that a table has; case does not matter.
TEXT_NAMES = (
    "text", "message", "body", "content", "sms", "email", "mail", "document", "review",
    "comment", "v2", "subject", "title", "文本", "正文", "内容", "评论", "标题",
)  # fmt: skip
LABEL_NAMES = (
    "label", "class", "category", "target", "spam", "is_spam", "type", "v1", "标签", "类别",
    "分类",
)  # fmt: skip
_LEARNED = ", which the model has learned from"
_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR = re.compile(r'"?sep=."?$', re.IGNORECASE)  # a line for Excel, before the table
_MAX_LINE = 64 << 20  # bytes of a line; characters of a quoted cell
_MAX_COLUMNS = 1_000_000  # of a table of texts
_MANY = 20  # binary data have at least one NUL in so many characters of the first line
_SAMPLE_LINES, _SAMPLE_CHARS = 200, 1 << 18  # of the first lines, which are looked at
_FASTTEXT = "__label__"
# Possessive, so that a line of nothing but labels takes linear time.
_LABELS = rf"\A\s*+(?:{_FASTTEXT}\S*+\s*+)*+"
# A class, then a tab.  A class has no colon: "Subject:<TAB>..." is a header.
_LABELLED_LINE = r"([^\s:,;]{1,40})\t"

# --- rows of texts ------------------------------------------------------------------------


class TextRow(NamedTuple):
    """One text of a table, or one message."""

    label: str | None
    data: bytes | None  # None: null, or the row is too short
    name: str | None = None  # if a column holds names
    is_text: bool = True  # not mail


def read_rows(
    stream: BinaryIO,
    kind: str,
    wanted: files.NamedColumns = files.ANY,
    encoding: str | None = None,
    listener: files.Listener = files.SILENT,
) -> Iterator[TextRow]:
    """Yield the texts of a table; raises ValueError.

    kind: csv, tsv, jsonl or fasttext.  Columns that nobody named are recognised.  encoding:
    found by looking if it is None.
    """
    lines = lines_of(stream, encoding, listener)
    if kind == "fasttext":
        return _fasttext_rows(lines)
    if kind == "jsonl":
        return _json_rows(lines, wanted, listener)
    return _pick_cells(*split_rows(lines, kind), wanted, listener)


def _pick_cells(
    rows: Iterator[list[str]],
    sample: list[list[str]],
    wanted: files.NamedColumns,
    listener: files.Listener,
) -> Iterator[TextRow]:
    """Yield the text of each row; the sample's rows help to recognise the columns."""
    first = next(rows, None)
    if first is None:
        return
    if len(first) > _MAX_COLUMNS:
        raise ValueError(f"{len(first):,} columns; give at most {_MAX_COLUMNS:,}")
    places = None
    if wanted.is_named or _has_all(first, wanted.learned.text) or not _is_data(first, sample):
        places = named_places(first, wanted)
    if places is None and wanted.is_named:
        raise no_text_column(first)
    if places is None:
        places = unnamed_places(sample or [first])
        rows = chain([first], rows)
        listener.table(None, files.NO_COLUMNS)
    else:
        listener.table(first, _named(first, places))
    positions, width, least, has_told = places.positions, len(first), min(places.text), False
    for number, row in enumerate(rows, 1):
        listener.row(row)
        if len(row) > width and not has_told and any(row[width:]):
            has_told = True
            listener.notice(
                f"row {number}: more cells ({len(row)}) than columns ({width}); the rest is not"
                " read: quote texts that hold a separator (in TSV, also give --format csv)"
            )
        n_cells = len(row)
        text = _text_of([row[at] if at < n_cells else "" for at in positions])
        yield text if n_cells > least else text._replace(data=None)


def _named(names: Sequence[str], places: "ColumnPlaces") -> files.TextColumns:
    label = None if places.label is None else names[places.label].strip()
    return files.TextColumns(tuple(names[place].strip() for place in places.text), label)


def _text_of(cells: list[str]) -> TextRow:
    """Return the text of a row; cells: the texts, then label and name, empty if it has none."""
    *texts, label, name = cells
    # JSON can contain lone surrogates, which cannot be encoded as UTF-8.
    data = "\n".join(texts).encode("utf-8", "replace")
    # In windows-1258 letters and their marks are apart, and one class has one name.
    return TextRow(normalize("NFC", label).strip() or None, data, name.strip() or None)


def _json_rows(
    lines: Iterator[str], wanted: files.NamedColumns, listener: files.Listener
) -> Iterator[TextRow]:
    names: list[str] = []
    places: ColumnPlaces | None = None
    for number, values in json_objects(lines):
        if places is None:
            names = list(values)
            places = named_places(names, wanted)
            if places is None:
                raise no_text_column(names)
            listener.table(names, _named(names, places))
        listener.row(as_cell(values.get(name)) for name in names)
        read = (names[at] if at < len(names) else None for at in places.positions)
        text = _text_of(
            ["" if n is None else as_cell(single_value(values.get(n), number, n)) for n in read]
        )
        is_null = all(values.get(names[at]) is None for at in places.text)
        yield text._replace(data=None) if is_null else text


def _fasttext_rows(lines: Iterator[str]) -> Iterator[TextRow]:
    """Yield the rows of lines `__label__class text`; the first of several labels counts."""
    for line in lines:
        text = re.sub(_LABELS, "", line)
        words = normalize("NFC", line.removesuffix(text)).split()
        label = next((word.removeprefix(_FASTTEXT) for word in words if word != _FASTTEXT), None)
        if label or text:
            yield TextRow(label, text.rstrip().encode("utf-8", "replace"))


# --- which columns ------------------------------------------------------------------------


class ColumnPlaces(NamedTuple):
    """The positions of columns in a row."""

    text: tuple[int, ...]
    label: int | None
    id: int | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """Column numbers of texts, label and name; a missing one is beyond every row."""
        others = (sys.maxsize if at is None else at for at in (self.label, self.id))
        return (*self.text, *others)


def named_places(names: list[str], wanted: files.NamedColumns) -> ColumnPlaces | None:
    """Return the positions of columns in a row of names; None if it has no names.

    Raises ValueError if a column that the user named, or one of several that the model
    reads together, is not there.
    """
    folded = [_fold(name) for name in names]
    learned = wanted.learned
    text = [position(names, name) for name in wanted.text]
    if not text and not set(map(_fold, learned.text)).isdisjoint(folded):
        text = [position(names, name, _LEARNED) for name in learned.text]
    label = _label_of(names, folded, wanted)
    if not text:
        known = (folded.index(name) for name in TEXT_NAMES if name in folded)
        text = [at for at in known if at != label][:1]
    if not text and label is not None and len(names) == 2:
        text = [1 - label]
    if not text:
        return None
    if wanted.label is not None and label in text:
        raise ValueError(f"column {wanted.label!r} is named for classes; name one of texts, too")
    row_id = None if wanted.id is None else position(names, wanted.id)
    return ColumnPlaces(tuple(text), None if label in text else label, row_id)


def _label_of(names: list[str], folded: list[str], wanted: files.NamedColumns) -> int | None:
    """Return the position of the column of classes, None if no column is known for it."""
    if wanted.label is not None:
        return position(names, wanted.label)
    known = [_fold(wanted.learned.label or ""), *LABEL_NAMES]
    return next((folded.index(name) for name in known if name and name in folded), None)


def unnamed_places(rows: list[list[str]]) -> ColumnPlaces:
    """Return the positions of text and label in a table of at most two columns without names.

    The label is the column with fewer different values; on a tie, the one without spaces,
    then the shorter one, then the first.  Raises ValueError.
    """
    width = len(rows[0])
    if width == 1:
        return ColumnPlaces((0,), None)
    if width > 2:
        raise no_text_column(rows[0])

    def size(place: int) -> tuple[int, bool, int]:
        cells = [row[place] for row in rows if len(row) == 2]
        return len(set(cells)), any(" " in cell for cell in cells), sum(map(len, cells))

    label = min((0, 1), key=size)
    return ColumnPlaces((1 - label,), label)


def is_header_of_texts(cells: list[str], learned: files.TextColumns) -> bool:
    """Return whether cells are the names of a table of texts, as a model or anybody calls them."""
    folded = set(map(_fold, cells))
    if len(cells) < 2 or len(folded) < len(cells) or max(map(len, cells)) > files.LONGEST_NAME:
        return False
    return _has_all(cells, learned.text) or bool(
        folded.intersection(TEXT_NAMES) and folded.intersection(LABEL_NAMES)
    )


def check_distinct(names: Iterable[str], cure: str = "rename one") -> None:
    """Raise ValueError, which says what to do, if two columns have one name."""
    for name, times in Counter(map(str.strip, names)).items():
        if times > 1:
            raise ValueError(f"two columns are called {name!r}; {cure}")


def position(names: Sequence[str], wanted: str, why: str = "") -> int:
    """Return the position of a column, whatever its case; raises ValueError.

    Among names that differ only in case, the one with the same spelling is meant.  why: what an
    error says of the column.
    """
    places = [at for at, name in enumerate(names) if _fold(name) == _fold(wanted)]
    if not places:
        raise no_column(wanted, names, why)
    alike = [at for at in places if names[at].strip() == wanted.strip()]
    if len(alike or places) > 1:
        raise ValueError(f"two columns are called {wanted!r}; rename one")
    return (alike or places)[0]


def no_column(wanted: str, names: Sequence[str], why: str = "") -> ValueError:
    """Return the error for a column that a table does not have."""
    from difflib import get_close_matches

    near = get_close_matches(_fold(wanted), map(_fold, names), 1)
    meant = f"did you mean {next(n for n in names if _fold(n) == near[0])!r}? " if near else ""
    only = " (cells are separated by , ; | or tabs)" if len(names) == 1 else ""
    return ValueError(f"no column {wanted!r}{why}; {meant}there are: {files.listed(names)}{only}")


def no_text_column(names: Sequence[str]) -> ValueError:
    """Return the error for a table of whose columns none is known to hold texts."""
    return ValueError(
        f"no known text column; name one by --text-column, of: {files.listed(names)};"
        " rows of values are for nbspam table"
    )


def _has_all(names: list[str], some: tuple[str, ...]) -> bool:
    return bool(some) and set(map(_fold, some)) <= set(map(_fold, names))


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


def _fold(name: str) -> str:
    return normalize("NFC", name).strip().lower()


# --- what a stream holds ------------------------------------------------------------------


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
    matches = [re.match(_LABELLED_LINE, line, re.ASCII) for line in lines[:_SAMPLE_LINES]]
    labels = {match[1] for match in matches if match}
    if len(matches) < 2 or not all(matches) or len(labels) > max(2, len(matches) // 2):
        return None
    return "tsv"


def sniff_table(head: bytes, learned: files.TextColumns = files.NO_COLUMNS) -> str | None:
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
            names = list(_json_object(first, 1))
            return "jsonl" if named_places(names, files.NamedColumns(learned=learned)) else None
        except ValueError:
            return None
    for delimiter in _DELIMITERS:
        cells = [cell.strip(' "\r') for cell in first.split(delimiter)]
        if is_header_of_texts(cells, learned):
            return "tsv" if delimiter == "\t" else "csv"
    return None


def _beginning(head: bytes) -> str:
    """Return the beginning of a file as text, in which only ASCII need be right."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace")
    return head.removeprefix(codecs.BOM_UTF8).decode("latin-1")


# --- lines and cells ----------------------------------------------------------------------


def lines_of(
    stream: BinaryIO, encoding: str | None = None, listener: files.Listener = files.SILENT
) -> Iterator[str]:
    """Yield the decoded lines, each ending in its only newline; raises ValueError.

    encoding: None: found by looking.  In a table without a line feed, carriage returns end the
    lines, and _MAX_LINE bounds all of them together.
    """
    lines = decoded_lines(stream, encoding, listener.notice, _MAX_LINE)
    first = next(lines, "")
    if first.count("\0") * _MANY > len(first):
        raise ValueError("binary data, such as a workbook or a model; give a table as plain text")
    if first and not first.endswith("\n"):
        lines = iter(first.rstrip("\r").split("\r"))
    elif first:
        lines = chain([first], lines)
    for line in lines:
        yield line.rstrip("\r\n").replace("\r", " ") + "\n"


def split_rows(lines: Iterator[str], kind: str) -> tuple[Iterator[list[str]], list[list[str]]]:
    """Return all rows of a CSV or TSV table, lazily, and the rows in a sample of its first lines.

    kind: csv or tsv.  Reading the rows raises ValueError.
    """
    first = list(islice(lines, 1))
    if not _SEPARATOR.match("".join(first)):
        lines = chain(first, lines)
    sample = [*first_lines(islice(lines, _SAMPLE_LINES), _SAMPLE_CHARS)]
    lines = chain(sample, lines)
    import csv

    # A cell that fills the sample, and its last line, must not stop the search there.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE + _SAMPLE_CHARS))
    if kind == "tsv" and not _is_quoted(sample):
        plain = (line[:-1].split("\t") for line in lines if line != "\n")
        return plain, [line[:-1].split("\t") for line in sample if line != "\n"]
    delimiter, rows = _find_delimiter(sample, "\t" if kind == "tsv" else _DELIMITERS)
    return _csv_rows(lines, delimiter), rows


def _csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
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


def _find_delimiter(sample: list[str], delimiters: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Return the best delimiter, and the sample's rows split by it.

    Best is a delimiter that splits all rows into the same number of cells, then the one
    that splits the first row into most cells, then the first of them.
    """
    import csv

    # If the table goes on after the sample, the sample may end within a quoted cell.
    is_cut = len(sample) == _SAMPLE_LINES or sum(map(len, sample)) > _SAMPLE_CHARS
    whole = slice(-1 if is_cut else None)
    begun = [line[:_SAMPLE_CHARS] for line in sample]  # the last one may have millions of cells
    cuts = {each: [*filter(None, csv.reader(begun, delimiter=each))] for each in delimiters}

    def fitness(delimiter: str) -> tuple[bool, int]:
        rows = cuts[delimiter]
        widths = [len(row) for row in rows[whole] or rows] or [0]
        # A quote within the first cell begins a cell of another delimiter.
        is_split = widths[0] > 1 and '"' not in rows[0][0]
        return is_split and len(set(widths)) == 1, widths[0]

    best = max(delimiters, key=fitness)
    return best, cuts[best][whole]


def _is_quoted(sample: list[str]) -> bool:
    """Return whether cells between tabs are quoted, as spreadsheets write them.

    Otherwise quotes are plain characters: a message that begins with one must not swallow the
    lines up to the next quote.
    """
    if re.match(r'("[^"\t]*"\t)+"[^"\t]*"\n', "".join(sample[:1])):
        return True
    _, rows = _find_delimiter(sample, "\t")
    # A cell that swallowed other rows has their tabs.
    has_lines = any("\n" in cell and "\t" not in cell for row in rows for cell in row)
    return has_lines and len(set(map(len, rows))) == 1


def json_objects(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield line number and content of the lines that are not blank; raises ValueError."""
    for number, line in enumerate(lines, 1):
        if not line.isspace():
            yield number, _json_object(line, number)


def _json_object(line: str, number: int) -> dict[str, object]:
    """Return the JSON object on a line; raises ValueError."""
    import json

    try:
        row = None if line.startswith("[") else json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: not JSON ({error}); correct the line") from error
    if not isinstance(row, dict):
        raise ValueError(
            f"line {number}: not a JSON object; write one object, such as {{...}}, on each line"
        )
    return row


def single_value(value: object, number: int, name: str) -> object:
    """Return a JSON value that is no list or object; raises ValueError."""
    if isinstance(value, list | dict):
        raise ValueError(
            f"line {number}: {name} is a list or object instead of text; correct the line"
        )
    return value


def as_cell(value: object) -> str:
    """Return any JSON value as text, null as empty; numbers are written as in rows in memory."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    return files.cell_text(value)
