"""Messages, texts and rows of typed columns in parquet files, a few rows at a time.

Columns are found as in other tables; see `rows`.  A column of bytes holds mail, a
column of strings holds texts.  Classes that are numbers have the names that the `datasets` library
of Hugging Face leaves in the file.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple
from unicodedata import normalize

from nbspam.errors import library_error
from nbspam.sources import files
from nbspam.sources.rows import TextRow, as_cell, check_distinct, named_places, no_text_column

_ROWS = 64  # that are in memory at a time
_BATCH = 1 << 28  # bytes that their texts in a column may have; else there are fewer
_BUFFER = 1 << 20  # bytes read ahead of each column
_NAME = "name"  # the column of names, if nobody names one


def parquet_rows(
    path: str, stream: BinaryIO, wanted: files.NamedColumns, listener: files.Listener
) -> Iterator[TextRow]:
    """Yield the rows of a parquet file; raises UsageError, ValueError.

    path: for error messages.
    """
    with _opened(path, stream) as file:
        picked = _pick(file.schema_arrow, wanted)
        names = file.schema_arrow.names
        named = (*picked.columns.text, picked.columns.label, picked.id)
        read = list(dict.fromkeys(name for name in named if name is not None))
        check_distinct(name for name in names if name in read)
        listener.table(names, picked.columns)
        for batch in _batches(file, stream, read):
            texts = [batch.column(name).to_pylist() for name in picked.columns.text]
            labels = _words(batch, picked.columns.label, picked.class_names)
            row_names = _words(batch, picked.id)
            yield from map(TextRow, labels, _data(texts), row_names, repeat(picked.is_text))


def parquet_cells(
    path: str, stream: BinaryIO, listener: files.Listener
) -> Iterator[dict[str, str]]:
    """Yield the rows of a table of typed columns as cells by name; raises like `parquet_rows`."""
    with _opened(path, stream) as file:
        from pyarrow.types import is_nested

        schema = file.schema_arrow
        nested = {field.name for field in schema if is_nested(field.type)}
        names = [name for name in schema.names if name not in nested]
        keys = [normalize("NFC", name).strip() for name in names]
        check_distinct(keys)
        if nested:
            listener.notice(f"lists and objects are not read: {files.listed(sorted(nested))}")
        listener.table(names, files.NO_COLUMNS)
        class_names = [_class_names(schema.metadata, name) for name in names]
        for batch in _batches(file, stream, names):
            columns = map(_values, repeat(batch), names, class_names)
            for values in zip(*columns, strict=True):
                cells = list(map(files.cell_text, values))
                listener.row(cells)
                yield dict(zip(keys, cells, strict=True))


@contextmanager
def _opened(path: str, stream: BinaryIO) -> Iterator[Any]:
    """Open pyarrow's ParquetFile, and say in one line what is wrong with it while it is read."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise library_error(path, error.name, "remote") from None
    try:
        yield ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
    except (ArrowException, OSError, OverflowError) as error:  # OverflowError: of dates
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).splitlines()[0]
        raise ValueError(f"damaged, or no parquet ({reason}); copy it again") from error


def _batches(file: Any, stream: BinaryIO, names: Sequence[str]) -> Iterator[Any]:
    """Yield some rows of columns at a time; raises ValueError if the file expands too much.

    A few bytes can state millions of rows without a value, or repeat a long one in all rows.
    """
    size, metadata = stream.seek(0, os.SEEK_END), file.metadata
    longest = n_stated = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for place, chunk in enumerate(map(group.column, range(metadata.num_columns))):
            width, n_bytes = metadata.schema.column(place).length, chunk.total_uncompressed_size
            n_stated += max(n_bytes, chunk.num_values * max(1, width))
            if chunk.physical_type == "BYTE_ARRAY":
                longest = max(longest, n_bytes)
    n_rows, n_read = max(1, min(_ROWS, _BATCH // longest)), 0
    if files.is_implausible(n_stated, size):
        raise ValueError(files.IMPLAUSIBLE)
    for batch in file.iter_batches(n_rows, columns=names, use_threads=False):
        n_read += batch.nbytes
        if files.is_implausible(n_read, size):
            raise ValueError(files.IMPLAUSIBLE)
        yield batch


class _Picked(NamedTuple):
    """The columns that are read."""

    columns: files.TextColumns
    id: str | None
    is_text: bool
    class_names: Sequence[str] = ()  # of the numbers 0, 1, ... in the column of classes


def _pick(schema: Any, wanted: files.NamedColumns) -> _Picked:
    """Return the columns of messages, classes and names; raises ValueError."""
    from pyarrow.types import is_nested

    names = schema.names
    places = named_places(names, wanted)
    if places is None:
        raise no_text_column(names)
    texts = [_value_type(schema.field(at).type) for at in places.text]
    n_mails = sum(map(_is_bytes, texts))
    for at, kind in zip(places.text, texts, strict=True):
        if not (_is_bytes(kind) or _is_string(kind)):
            raise ValueError(f"column {names[at]!r} holds {kind}; give one of strings or bytes")
    if n_mails and len(texts) > 1:
        raise ValueError("mail in bytes cannot be joined with other columns; name one column")
    label = None if places.label is None else names[places.label]
    for other in (places.label, places.id):
        if other is not None and is_nested(kind := schema.field(other).type):
            reason = f"holds {kind}, not one value a row; give another column"
            raise ValueError(f"column {names[other]!r} {reason}")
    has_names = names.count(_NAME) == 1 and _is_string(_value_type(schema.field(_NAME).type))
    own = None if places.id is None else names[places.id]
    columns = files.TextColumns(tuple(names[at] for at in places.text), label)
    id_column = own or (_NAME if has_names else None)
    return _Picked(columns, id_column, not n_mails, _class_names(schema.metadata, label))


def _class_names(metadata: dict[bytes, bytes] | None, label: str | None) -> Sequence[str]:
    """Return the names of a column's classes, a feature `ClassLabel`; none if it has none."""
    import json

    try:
        names = json.loads((metadata or {})[b"huggingface"])["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return names if is_named else ()


def _value_type(kind: Any) -> Any:
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _is_bytes(kind: Any) -> bool:
    return str(kind).startswith(("binary", "large_binary", "fixed_size_binary"))


def _is_string(kind: Any) -> bool:
    return str(kind).startswith(("string", "large_string"))


def _values(batch: Any, name: str, class_names: Sequence[str]) -> list[Any]:
    """Return the values in a column; numbers of classes become their names."""
    values: list[Any] = batch.column(name).to_pylist()
    if class_names:  # -1 is no class
        named: dict[Any, str | None] = {-1: None, **dict(enumerate(class_names))}
        values = [named.get(v, v) if isinstance(v, int) else v for v in values]
    return values


def _words(batch: Any, name: str | None, class_names: Sequence[str] = ()) -> Iterable[str | None]:
    """Return the classes or names in a column; None where there are none."""
    if name is None:
        return repeat(None, batch.num_rows)
    cells = map(as_cell, _values(batch, name, class_names))
    return [normalize("NFC", cell).strip() or None for cell in cells]


def _data(columns: list[list[Any]]) -> list[bytes | None]:
    """Return the bytes of messages, or the texts of rows, joined as in other tables."""
    (first, *others) = columns
    if any(isinstance(value, bytes) for value in first):
        return [value and value[: files.MAX_MESSAGE] for value in first]
    return [
        None
        if all(part is None for part in row)
        else "\n".join(part or "" for part in row).encode("utf-8", "replace")[: files.MAX_MESSAGE]
        for row in zip(first, *others, strict=True)
    ]
