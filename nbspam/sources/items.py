"""Reading items, messages and texts, from files, folders and streams.

The first rule that fits says what a path is (an explicit format decides instead):

    -                                    standard input: one message, or an mbox if a
                                         second message follows in it
    no such path; FIFO, socket, device   InputError
    file *.eml                           one message
    file *.mbox *.mbx                    mbox
    file *.csv *.tsv *.jsonl *.ndjson    table
    file that begins with a From_ line   mbox, if a second message follows
    file that begins with __label__      fastText lines
    file of `class path` lines           TREC index, if the first path, relative to
                                         the index, is a file
    file of `class<TAB>text` lines       table without a header
    any other file                       one message
    folder with cur/ and new/            Maildir: cur, then new; sub-folders only if named
    folder with .mh_sequences, numbers   MH: the numbered files
    folder with sub-folders, no files    each sub-folder is a class (unless the class is
      (or with sub-folders ham, spam)    given already); below it, the rules of a folder
    folder of folders with ham/, spam/   parts of one corpus: ham and spam are the classes;
                                         so it is with train/ and test/ of the same classes
    any other folder                     tree: its files, then its sub-folders

A file whose name has a further ending .gz, .bz2 or .xz is decompressed.  In a tree the name
alone decides (*.mbox, *.mbx: mbox; else a message), so that thousands of files need not be
opened; only a file whose name has no digit and no dot ("Inbox") is opened to see what it
is, like a file named on its own.  Names are in natural order; hidden files are skipped; a
folder is read once, even if several links lead to it.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from nbspam.errors import InputError, UsageError
from nbspam.sources.columns import SILENT, Columns, Listener, Wanted
from nbspam.sources.files import COMPRESSED, Blaming, open_file, read_plain, status_of
from nbspam.sources.mailboxes import (
    MAX_MESSAGE,
    begins_with_from_line,
    index_entries,
    mbox_messages,
    parse_index_line,
    read_chunks,
    unwrap,
    walk,
)

FOLDER_FORMATS = ("maildir", "mh", "classes")
TABLE_FORMATS = ("csv", "tsv", "jsonl", "fasttext")
FORMATS = ("eml", "mbox", *FOLDER_FORMATS, "trec", *TABLE_FORMATS)

_ENDINGS = {
    ".eml": "eml",
    ".mbox": "mbox",
    ".mbx": "mbox",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_HEAD = 1 << 16  # bytes read to tell what a file is
_CHUNK_ITEMS, _CHUNK_BYTES = 256, 8 << 20  # of one chunk, at most


class Item(NamedTuple):
    """One message or text.  A message in a file of its own is read when it is needed."""

    name: str  # the path; "path#3": third message of an mbox, or row; "-": standard input
    label: str | None  # the class, if known
    data: bytes | None = None  # None: in the file `name`
    is_text: bool = False  # text, not mail
    problem: str | None = None  # why it cannot be read, if that is known already
    series: str | None = None  # the index, table or mailbox whose order it came in; None: none
    told: bool = False  # a person has told the class of this very message, and is not doubted

    def read(self) -> bytes:
        """Return the item's bytes, truncated to MAX_MESSAGE; raises InputError."""
        if self.problem is not None:
            raise InputError(self.problem)
        if self.data is not None:
            return self.data
        with Blaming(self.name):
            if self.name.lower().endswith(COMPRESSED):
                with open_file(self.name) as stream:
                    return _read_message(stream)
            return read_plain(self.name, MAX_MESSAGE)


Chunk = list[Item]  # that one process works on at a time


class SourceOptions(NamedTuple):
    """How to read sources, where they do not tell it themselves."""

    format: str | None = None  # one of FORMATS
    text_columns: tuple[str, ...] = ()  # of a table of texts
    label_column: str | None = None
    id_column: str | None = None  # of a table: holds the names of the rows
    encoding: str | None = None  # of a table; None: found by looking
    learned: Columns = Columns()  # those that the model has learned from
    listener: Listener = SILENT
    keeps_missing: bool = False  # a path that is not there is an item that cannot be read

    @property
    def wanted(self) -> Wanted:
        """The columns to look for."""
        return Wanted(self.text_columns, self.label_column, self.id_column, self.learned)

    def heard(self, name: str) -> Listener:
        """Return a listener to the table of this name, which passes on what it hears."""
        return _Naming(name, self.listener)


class _Naming(Listener):
    """Puts the name of a table before what is said of it."""

    def __init__(self, name: str, listener: Listener) -> None:
        self._name, self._listener = name, listener

    def notice(self, line: str) -> None:
        self._listener.notice(f"{self._name}: {line}")

    def table(self, names: Sequence[str] | None, columns: Columns) -> None:
        self._listener.table(names, columns)

    def row(self, cells: Sequence[str]) -> None:
        self._listener.row(cells)


_NO_OPTIONS = SourceOptions()


def read_items(
    paths: Iterable[str],
    *,
    label: str | None = None,
    options: SourceOptions = _NO_OPTIONS,
    stdin: BinaryIO | None = None,
) -> Iterator[Item]:
    """Return an iterator over the items of all paths; raises InputError and UsageError.

    label: the class of all items.  stdin: read for the path "-"; sys.stdin by default.
    A missing path is reported at once, before anything is read, unless the options keep it.
    """
    if options.format not in (None, *FORMATS):
        raise UsageError(f"--format {options.format}: unknown; choose from {', '.join(FORMATS)}")
    if options.encoding is not None:
        from nbspam.sources.encodings import check_encoding

        check_encoding(options.encoding)
    checked = list(paths)
    for path in checked:
        if path != "-" and not options.keeps_missing:
            status_of(path)
    return chain.from_iterable(_items_of(path, label, options, stdin) for path in checked)


def chunks(
    items: Iterable[Item], max_items: int = _CHUNK_ITEMS, max_bytes: int = _CHUNK_BYTES
) -> Iterator[Chunk]:
    """Yield the items in chunks of at most `max_items`, with at most `max_bytes` of data.

    A larger item is a chunk of its own.
    """
    chunk: Chunk = []
    size = 0
    for item in items:
        weight = len(item.data) if item.data is not None else 0
        if chunk and (len(chunk) >= max_items or size + weight > max_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += weight
    if chunk:
        yield chunk


def _items_of(
    path: str, label: str | None, options: SourceOptions, stdin: BinaryIO | None
) -> Iterator[Item]:
    """Yield the items of one path; raises InputError if there are none."""
    if path == "-":
        if stdin is None and sys.stdin is None:
            raise InputError("-: standard input is closed; give a path")
        items = _stdin_items(stdin or sys.stdin.buffer, label, options)
    elif options.keeps_missing and not os.path.exists(path):
        items = iter([Item(path, label)])
    elif stat.S_ISDIR(status_of(path).st_mode):
        items = _folder_items(path, label, options)
    else:
        items = _file_items(path, label, options)
    first = next(items, None)
    if first is None:
        raise InputError(f"{path}: no messages found; give mail, an mbox, a table or a folder")
    yield first
    yield from items


def _stdin_items(stream: BinaryIO, label: str | None, options: SourceOptions) -> Iterator[Item]:
    with Blaming("-"):
        if options.format is not None and options.format != "eml":
            yield from _stored_items("-", options.format, stream, label, options)
            return
        head = stream.read(_HEAD)
        if options.format is None and begins_with_from_line(head):
            messages = mbox_messages(chain((head,), read_chunks(stream)))
            yield from _mbox_items("-", messages, label, lambda raw: Item("-", label, raw))
        else:
            yield Item("-", label, _read_message(stream, head))


def _file_items(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    kind = options.format or kind_by_name(path)
    if kind == "eml":
        yield Item(path, label)
        return
    from nbspam.sources.texts import sniff

    with Blaming(path), open_file(path) as stream:
        if kind is not None:
            yield from _stored_items(path, kind, stream, label, options)
            return
        head = stream.read(_HEAD)
        stream.seek(0)
        if begins_with_from_line(head):
            # Mail servers leave a From_ line in single messages, too.
            messages = mbox_messages(read_chunks(stream))
            yield from _mbox_items(path, messages, label, lambda raw: Item(path, label))
            return
        kind = "trec" if _is_index(path, head) else sniff(head)
        if kind is None:
            yield Item(path, label)
        else:
            yield from _stored_items(path, kind, stream, label, options)


def kind_by_name(path: str) -> str | None:
    """Return the format, one of FORMATS, that the ending of a file name means, or None."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def _is_index(path: str, head: bytes) -> bool:
    """Return whether all lines are a class and a path, and the first path is a file."""
    lines = head.splitlines()
    entries = [parse_index_line(line) for line in lines[:-1] or lines if line.strip()]
    if not entries or not entries[0] or not all(entries):
        return False
    label, name = entries[0]
    # A word with a colon is a header, as in "Subject: .", and not a class.
    return ":" not in label and os.path.isfile(os.path.join(os.path.dirname(path), name))


def _stored_items(
    name: str, kind: str, stream: BinaryIO, label: str | None, options: SourceOptions
) -> Iterator[Item]:
    """Yield the items of a stream whose format holds many."""
    if kind in FOLDER_FORMATS:
        raise InputError(f"{name}: a file, but --format {kind} is a folder; give the folder")
    if kind == "mbox":
        yield from _mbox_items(name, mbox_messages(read_chunks(stream)), label)
    elif kind == "trec":
        base = os.path.dirname(name)
        for found, path in index_entries(stream):
            yield Item(os.path.join(base, path), label or found, series=name)
    else:
        from nbspam.sources.texts import read_rows

        rows = read_rows(stream, kind, options.wanted, options.encoding, options.heard(name))
        for number, row in enumerate(rows, 1):
            # JSON can contain lone surrogates, which cannot be encoded as UTF-8.
            data = row.text.encode("utf-8", "replace")
            row_name = row.name or f"{name}#{number}"
            yield Item(row_name, label or row.label, data, is_text=True, series=name)


def _mbox_items(
    name: str,
    messages: Iterator[bytes],
    label: str | None,
    alone: Callable[[bytes], Item] | None = None,
) -> Iterator[Item]:
    """Yield the messages of an mbox.

    alone: makes the item of a message that is the only one, From_ line included.
    """
    first = list(islice(messages, 2))
    if alone is not None and len(first) == 1:
        yield alone(first[0])
        return
    for number, raw in enumerate(chain(first, messages), 1):
        yield Item(f"{name}#{number}", label, unwrap(raw), series=name)


def _folder_items(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    if options.format in ("trec", *TABLE_FORMATS):
        raise InputError(
            f"{path}: a folder, but --format {options.format} is a file; give the file"
        )
    with Blaming(path):
        for name, found, kind in walk(path, label, options.format):
            if options.keeps_missing and _leads_nowhere(name):
                continue  # it is no message, so `predict` has no line for it
            if kind == "eml":
                yield Item(name, found)
            else:
                how = SourceOptions("mbox") if kind == "mbox" else _NO_OPTIONS
                yield from _whatever_readable(name, found, how)


def _leads_nowhere(path: str) -> bool:
    """Return whether a path is a dead link or a link to itself."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ELOOP)
    return False


def _whatever_readable(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    """Yield the items of a file in a folder; what cannot be read is an item with a problem."""
    try:
        yield from _file_items(path, label, options)
    except InputError as error:
        yield Item(path, label, problem=str(error))


def _read_message(stream: BinaryIO, head: bytes = b"") -> bytes:
    """Return the head and the rest of the stream, truncated to MAX_MESSAGE."""
    # Most messages fit in the first read; reading MAX_MESSAGE at once would allocate 64 MB.
    head = head or stream.read(_HEAD)
    return head + stream.read(MAX_MESSAGE - len(head)) if len(head) == _HEAD else head
