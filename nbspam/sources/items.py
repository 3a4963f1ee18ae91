"""Reading items, messages and texts, from files, folders and streams.

The first rule that fits decides the format of a path (unless a format is given):

    -  (standard input)                  one message; an mbox if a second one follows in it
    FILE#3, without such a path          the item that is printed so
    no such path; FIFO, socket, device   InputError
    file *.eml                           one message
    file *.tar *.tgz *.zip               the folder that is packed in it, see `archives`
    file *.parquet                       table of messages or texts
    file *.mbox *.mbx                    mbox
    file *.{csv,tsv,json,jsonl,ndjson}   table
    file that begins with a From_ line   mbox, if a second message follows
    file that begins with __label__      fastText lines
    file of `class path` lines           TREC index, if the first path, relative to
                                         the index, is a file
    file of `class<TAB>text` lines       table without a header
    file with named columns (options)    table, if its first line has these
    any other file                       one message
    folder with cur/ and new/            Maildir: cur, then new; sub-folders only if named
    folder with .mh_sequences, numbers   MH: the numbered files
    folder with sub-folders, no files    each sub-folder is a class (unless the class is
      (or with sub-folders ham, spam)    given already); below it, the rules of a folder
    folder of folders with ham/, spam/   parts of one corpus: ham and spam are the classes; so it
                                         is with train/, test/ of the same classes, part1, fold2
    folder of NAME-train, NAME-test      halves of the class NAME
    folder of files spam…, ham…          the file names tell the class, as in Ling-Spam
    any other folder                     tree: its files, then its sub-folders

A path is one of this machine, or a URL, also of a folder or message in an account (`imaps://`). A
file whose name has a further ending .gz, .bz2, .xz or .zst is decompressed, and so is a message
that a mail server keeps compressed; mail in UTF-16 with a byte order mark is decoded.  In a tree,
to open few files, the name alone decides (mbox, archive or parquet; else a message), except that a
file whose name has no digit and no dot ("Inbox") is opened to recognise it, and that in a folder
of at most 300 files, each may be an mbox ("2024").  Names are in natural order.  Hidden files,
indexes of mail programs, and messages that are marked as deleted (Maildir, mbox) are skipped; a
folder is read once, whatever links lead to it.
"""

import os
import re
from codecs import BOM_UTF8, iterdecode
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from io import BytesIO
from itertools import chain, groupby, islice, takewhile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from nbspam.errors import EmptyError, InputError, NbspamError, UsageError
from nbspam.sources import files
from nbspam.workers import grouped

if TYPE_CHECKING:
    from nbspam.imap.accounts import AccessBook, ImapUrl
    from nbspam.sources.rows import TextRow

FOLDER_FORMATS = ("maildir", "mh", "classes")
RECORD_FORMATS = ("csv", "tsv", "jsonl")  # of typed columns, too
TABLE_FORMATS = (*RECORD_FORMATS, "fasttext")
ARCHIVES = ("tar", "zip")
_LOOKED_AT = (None, "unsure", "mail")  # kinds of files whose contents tell the format
FORMATS = ("eml", "mbox", *FOLDER_FORMATS, "trec", *files.PACKED, *TABLE_FORMATS)

_COMPRESSED = tuple(each.beginning for each in files.COMPRESSIONS.values())
_LONGEST_NAME = 80  # bytes in which the name of a message's first header ends
_CHUNK_ITEMS, _CHUNK_BYTES = 256, 8 << 20  # of one chunk, at most
_MBOX_CHUNK = 1 << 18  # bytes read at once: few calls, and they stay in the processor's cache


class Item(NamedTuple):
    """One message or text.  A message in a file of its own is read when it is needed."""

    # The path; "path#3": third message of an mbox, or row; "path#ham/1": in an archive; "-"
    name: str
    label: str | None  # the class, if known
    data: bytes | None = None  # None: in the file `name`
    is_text: bool = False  # text, not mail
    problem: str | None = None  # why it cannot be read, if that is known already
    series: str | None = None  # the index, table or mailbox whose order it came in; None: none
    told: bool = False  # a person gave the class of this very message: it is not doubted
    copy: int | None = None  # of a text that is given by its printed name: equal ones above it

    def read(self) -> bytes:
        """Return the item's bytes, truncated to MAX_MESSAGE; raises InputError."""
        if self.problem is not None:
            raise InputError(self.problem)
        if self.data is not None:
            return self.data
        with files.Blaming(self.name):
            if files.is_url(self.name) or self.name.lower().endswith(files.COMPRESSED):
                with files.open_file(self.name) as stream:
                    data = files.read_raw_message(stream)
            else:
                data = files.read_uncompressed(self.name, files.MAX_MESSAGE)
            return _message_in(self.name, data)


def _message_in(name: str, data: bytes) -> bytes:
    """Return the message in a file, as a mail server or Apple Mail keeps it, or in UTF-16."""
    data = unpacked_message(data)
    if data.startswith(files.MARKS_OF_UTF_16):
        from nbspam.charsets import to_utf8  # late: few files need it

        return to_utf8(data, None)[0]
    if not name.endswith(".emlx"):
        return data
    # Behind its size, before a property list.
    size, _, rest = data.partition(b"\n")
    return rest[: int(size)] if len(size) < 20 and size.strip().isdigit() else data


def unpacked_message(data: bytes) -> bytes:
    """Return a message that a mail server may keep compressed; damaged data as they are."""
    if not data.startswith(_COMPRESSED):
        return data
    name = next(e for e, how in files.COMPRESSIONS.items() if data.startswith(how.beginning))
    with suppress(NbspamError), files.Blaming(name), files.expanded(name, BytesIO(data)) as stream:
        return files.read_raw_message(stream)
    return data


def begins_like_mail(data: bytes) -> bool:
    """Return whether data begin with the name of a header, or with a From_ line."""
    # Without a regular expression, which takes longer to compile than a verdict may take.
    name, colon, _ = data[:_LONGEST_NAME].partition(b":")
    is_name = bool(colon) and name.replace(b"-", b"").isalnum() and name[:1].isalpha()
    return is_name or data.startswith(b"From ")


Chunk = list[Item]  # that one process works on at a time


class SourceOptions(NamedTuple):
    """How to read sources, where they do not tell it themselves."""

    format: str | None = None  # one of FORMATS
    text_columns: tuple[str, ...] = ()  # of a table of texts
    label_column: str | None = None
    id_column: str | None = None  # of a table: holds the names of the rows
    encoding: str | None = None  # of a table; None: found by looking
    learned: files.TextColumns = files.TextColumns()  # the ones that the model has learned from
    listener: files.Listener = files.SILENT
    is_mail: bool = False  # a column of strings holds mail, not texts
    keeps_missing: bool = False  # a path without a readable file is an item that cannot be read
    follows_links: bool = True  # those in folders
    accounts: "Callable[[], AccessBook] | None" = None  # access to mail accounts; None: the usual

    @property
    def wanted(self) -> files.NamedColumns:
        """The columns to look for."""
        return files.NamedColumns(
            self.text_columns, self.label_column, self.id_column, self.learned
        )

    def listener_to(self, name: str) -> files.Listener:
        """Return the listener, which hears the name of this source before each remark."""
        return files.Naming(name, self.listener)


NO_OPTIONS = SourceOptions()


def read_items(
    paths: Iterable[str], *, label: str | None = None, options: SourceOptions = NO_OPTIONS
) -> Iterator[Item]:
    """Return an iterator over the items of all paths; raises InputError and UsageError.

    label: the class of all items.  Raises EmptyError if no path has items; of single empty paths
    the listener is told.  A missing path is reported at once, before anything is read, unless the
    options keep it.
    """
    if options.format not in (None, *FORMATS):
        raise UsageError(f"--format {options.format}: unknown; choose from {', '.join(FORMATS)}")
    if options.encoding is not None:
        from nbspam.charsets import check_encoding

        check_encoding(options.encoding)
    checked = list(paths)
    for path in checked:
        if path != "-" and not options.keeps_missing:
            files.is_folder(path)
    parts = (
        _items_of(path, label, options)
        if account is None
        else _account_items([path, *group], label, options)
        for account, group in groupby(checked, _account_of)
        for path in group
    )
    return items_together(parts, options.listener)


def items_together(parts: Iterable[Iterator[Item]], listener: files.Listener) -> Iterator[Item]:
    """Yield the items of all parts; EmptyErrors go to the listener, unless all parts are empty.

    An emptied junk folder must not keep a nightly command from the other folders.
    """
    empty: list[EmptyError] = []
    has_items = False
    for part in parts:
        try:
            yield from part
            has_items = True
        except EmptyError as error:
            empty.append(error)
    if empty and not has_items:
        raise empty[0]
    for reason in empty:
        listener.notice(str(reason))


def _account_of(path: str) -> "ImapUrl | None":
    """Return the account that a path is in, so that many of its messages take one connection."""
    if not files.is_account(path):
        return None
    from nbspam.imap.accounts import imap_url

    return imap_url(path).of_folder("")


def _account_items(paths: list[str], label: str | None, options: SourceOptions) -> Iterator[Item]:
    """Yield the messages at URLs of one account; raises EmptyError if there are none."""
    from nbspam.imap.accounts import AccessBook
    from nbspam.imap.session import messages_at

    if options.format not in (None, "eml"):
        raise UsageError(f"{paths[0]}: mail, and no {options.format}; leave --format out")
    is_empty = True
    book = (options.accounts or AccessBook)()
    for each in messages_at(paths, book, files.MAX_MESSAGE):
        is_empty = False
        name = str(each.url)
        if each.is_cut:
            options.listener.notice(
                f"{name}: only its first {files.MAX_MESSAGE:,} bytes are read, so it is not known"
                " as the same message elsewhere"
            )
        yield Item(name, label, each.data, problem=each.problem, series=each.series)
    if is_empty:
        raise EmptyError(f"{paths[0]}: no messages found; name another folder")


def chunks(
    items: Iterable[Item], max_items: int = _CHUNK_ITEMS, max_bytes: int = _CHUNK_BYTES
) -> Iterator[Chunk]:
    """Yield the items in chunks of at most `max_items`, with at most `max_bytes` of data."""
    return grouped(items, lambda item: len(item.data or b""), max_bytes, max_items)


def _items_of(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    """Yield the items of one path; raises EmptyError if there are none."""
    if path == "-":
        items = _stdin_items(files.standard_input(), label, options)
    elif (whole := files.file_around(path)) is not None:
        found = (each for each in _file_items(whole, label, options) if each.name == path)
        missing = Item(path, label, problem=f"{path}: no such message there; check its name")
        item = next(found, missing)._replace(series=None)
        if item.is_text:
            # Read again, because to count equal texts at once would keep all of them in memory.
            again = _file_items(whole, label, options._replace(listener=files.SILENT))
            rows = takewhile(lambda each: each.name != path, again)
            # Rows without a class were not learned beside those that have one.
            same = (r for r in rows if r.data == item.data and bool(r.label) == bool(item.label))
            item = item._replace(copy=sum(1 for _ in same))
        items = iter([item])
    else:
        of_file = _whatever_readable if options.keeps_missing else _file_items
        try:
            items = (_folder_items if files.is_folder(path) else of_file)(path, label, options)
        except InputError as error:
            if not options.keeps_missing:
                raise
            items = iter([Item(path, label, problem=str(error))])
    first = next(items, None)
    if first is None:
        raise EmptyError(f"{path}: no messages found; give mail, an mbox, a table or a folder")
    yield first
    yield from items


def _stdin_items(stream: BinaryIO, label: str | None, options: SourceOptions) -> Iterator[Item]:
    with files.Blaming("-"):
        if options.format in files.PACKED:
            raise InputError(f"-: --format {options.format} is read twice; give a file")
        if options.format is not None and options.format != "eml":
            yield from _stored_items("-", options.format, stream, label, options)
        else:
            yield from _stream_items("-", options.format or "unsure", stream, label)


def _stream_items(name: str, kind: str, stream: BinaryIO, label: str | None) -> Iterator[Item]:
    """Yield the items of a stream of mail, which cannot be read later.

    kind: eml, mbox, or "unsure": an mbox if a second message follows in it.
    """
    head = stream.read(files.HEAD_BYTES) if kind == "unsure" else b""
    if kind == "mbox" or files.begins_with_from_line(head):
        alone = partial(Item, name, label) if kind == "unsure" else None
        yield from _mbox_items(name, head, stream, label, alone)
    else:
        raw = files.read_raw_message(stream, head)
        data, problem = _message_in(name, raw), None
        if kind == "unsure" and data is not raw and files.begins_with_from_line(data):
            problem = f"{name}: a compressed mailbox; decompress it"
        yield Item(name, label, data, problem=problem)


def _file_items(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    kind = options.format or files.kind_by_name(path)
    if kind == "eml":
        yield Item(path, label)
        return
    if kind in ARCHIVES:
        yield from _archive_items(path, kind, label)
        return
    with files.Blaming(path), ExitStack() as stack:
        try:
            stream = stack.enter_context(files.open_file(path))
        except PermissionError:
            if kind not in _LOOKED_AT:
                raise
            yield Item(path, label)  # skipped, like a *.eml, when it is read
            return
        if kind not in _LOOKED_AT:
            yield from _stored_items(path, kind, stream, label, options)
            return
        head = stream.read(files.HEAD_BYTES)
        stream.seek(0)
        if files.begins_with_from_line(head):
            # Mail servers leave a From_ line in single messages, too.
            yield from _mbox_items(path, b"", stream, label, lambda raw: Item(path, label))
            return
        found = None
        if kind != "mail":
            # Imported late, here and below: most commands read one format.
            from nbspam.sources.mailboxes import is_index
            from nbspam.sources.rows import sniff, sniff_table

            named = files.TextColumns(options.text_columns, options.label_column)
            sniffed = sniff_table(head, named) if options.wanted.is_named else sniff(head)
            found = "trec" if is_index(path, head) else sniffed
        if found is not None:
            yield from _stored_items(path, found, stream, label, options)
        elif head or kind is None:  # in a folder, an empty file is an empty mailbox
            yield Item(path, label)


def _archive_items(path: str, kind: str, label: str | None) -> Iterator[Item]:
    """Yield the messages in an archive, under names like "mail.tar#spam/1.eml"."""
    from nbspam.sources.archives import files_in

    with files.Blaming(path):
        for member, found, content in files_in(partial(files.open_file, path), kind, label):
            name = f"{path}#{member.name}"
            if member.problem is not None:
                yield Item(name, found, problem=f"{name}: {member.problem}")
                continue
            with files.Blaming(name):
                stream = files.expanded(name, member.open())
                yield from _stream_items(name, content, stream, found)


def _stored_items(
    name: str, kind: str, stream: BinaryIO, label: str | None, options: SourceOptions
) -> Iterator[Item]:
    """Yield the items of a stream whose format holds many."""
    if kind in FOLDER_FORMATS:
        raise InputError(f"{name}: a file, but --format {kind} is a folder; give the folder")
    if kind == "mbox":
        yield from _stream_items(name, kind, stream, label)
    elif kind == "trec":
        from nbspam.sources.mailboxes import index_entries

        for found, path in index_entries(stream):
            yield Item(files.beside(name, path), label or found, series=name)
    else:
        for number, row in enumerate(_rows(name, kind, stream, options), 1):
            row_name = row.name or f"{name}#{number}"
            null = f"{row_name}: a row without a text" if row.data is None else None
            is_text = row.is_text and not options.is_mail
            yield Item(row_name, label or row.label, row.data, is_text, null, series=name)


def _rows(name: str, kind: str, stream: BinaryIO, options: SourceOptions) -> "Iterator[TextRow]":
    wanted, listener = options.wanted, options.listener_to(name)
    if kind == "parquet":
        from nbspam.sources.parquet import parquet_rows

        return parquet_rows(name, stream, wanted, listener)
    from nbspam.sources.rows import read_rows

    return read_rows(stream, kind, wanted, options.encoding, listener)


def _mbox_items(
    name: str,
    head: bytes,
    stream: BinaryIO,
    label: str | None,
    alone: Callable[[bytes], Item] | None,
) -> Iterator[Item]:
    """Yield the messages of an mbox: of its head, and of the rest of it in the stream.

    alone: makes the item of a message that is the only one, From_ line included.
    """
    from nbspam.sources.mailboxes import gmail_class, is_gone, mbox_messages, unwrap

    pieces: Iterator[bytes] = iter(partial(stream.read, _MBOX_CHUNK), b"")
    start = (head or next(pieces, b"")).removeprefix(BOM_UTF8)
    pieces = chain(filter(None, (start,)), pieces)
    if start.startswith(files.MARKS_OF_UTF_16):
        pieces = map(str.encode, iterdecode(pieces, "utf-16", "replace"))
    if b"\n" not in start:  # of a Mac before 2001
        pieces = (piece.replace(b"\r", b"\n") for piece in pieces)
    messages = mbox_messages(pieces)
    first = list(islice(messages, 2))
    if alone is not None and len(first) == 1:
        if name == "-" or not is_gone(first[0], 0):
            yield alone(first[0])
        return
    for number, raw in enumerate(chain(first, messages), 1):
        if not is_gone(raw, number):
            yield Item(f"{name}#{number}", label or gmail_class(raw), unwrap(raw), series=name)


def _folder_items(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    if options.format in ("trec", *files.PACKED, *TABLE_FORMATS):
        raise InputError(
            f"{path}: a folder, but --format {options.format} is a file; give the file"
        )
    from nbspam.sources.mailboxes import FolderTree, UrlTree, places

    tree = FolderTree(options.follows_links)
    if files.is_url(path):
        tree = UrlTree(options.listener_to(path))
    with files.Blaming(path):
        for place in places(path, label, options.format, tree):
            for name, own, kind in place.files():
                if options.keeps_missing and files.leads_nowhere(name):
                    continue  # it is no message, so `predict` has no line for it
                if kind == "eml":
                    yield Item(name, own)
                elif kind in files.PACKED:
                    yield from _file_items(name, own, options._replace(format=kind))
                else:
                    yield from _whatever_readable(name, own, SourceOptions(kind))


def _whatever_readable(path: str, label: str | None, options: SourceOptions) -> Iterator[Item]:
    """Yield the items of a file; an unreadable one is an item with a problem.

    A file that breaks off after some of its messages ends the reading: nothing is half read.
    """
    items = _file_items(path, label, options)
    try:
        first = next(items, None)
    except InputError as error:
        first = Item(path, label, problem=str(error))
    if first is not None:
        yield first
    yield from items


# --- paths in each other ---------------------------------------------------------------------

Starts = dict[str, tuple[str | None, str]]  # by its real path, the stated class and a path


def starts_of(sources: Iterable[str], stated: Iterable[tuple[str, str]] = ()) -> Starts:
    """Return each path once, in the order in which they are read.

    First come sources, then paths whose class is stated, a folder before those in it: the last
    copy of a message counts.  Raises UsageError if a path is stated to be of two classes.
    """
    starts: Starts = {}
    for label, path in [*stated, *((None, path) for path in sources)]:
        known, _ = starts.setdefault(os.path.realpath(path), (label, path))
        if label not in (None, known):
            raise UsageError(
                f"{path}: given as {known} and as {label}; give each class its own path"
            )

    def turn(place: str) -> tuple[bool, int]:
        return starts[place][0] is not None, len(_around(place, starts))

    return {place: starts[place] for place in sorted(starts, key=turn)}


def read_once(parts: Sequence[tuple[str, Iterator[Item]]], starts: Starts) -> list[Iterator[Item]]:
    """Return the items of each part, without those that are read in another part.

    If several paths reach an item, the innermost path with a stated class reads it; without one,
    the first that knows its class does.  A single class is stated for files among the sources,
    too.  parts: paths and their items; one has the items of all paths if no class is stated.
    """
    # A link has two names: its own place, and that of what it leads to.
    names = {
        each: start for place, start in starts.items() for each in (place, _by_name(start[1]))
    }
    if all({names[each] for each in _around(name, names)} == {names[name]} for name in names):
        return [items for _, items in parts]  # no path is in another
    labels = {label for label, _ in starts.values() if label is not None}
    stated = {
        name
        for name, (label, path) in names.items()
        if label is not None or (len(labels) == 1 and not files.holds_many(path))
    }
    seen: set[str] = set()

    def without_others(path: str, items: Iterator[Item]) -> Iterator[Item]:
        home = os.path.realpath(path)
        for item in items:
            # The name of a row may be its identifier, which rows of other tables can have.
            if not item.name.startswith(item.series or ""):
                yield item
                continue
            # What a link in a folder leads to is in this folder.
            by_name = os.path.normpath(home + item.name.removeprefix(path.rstrip(os.sep)))
            is_stated = any(len(each) > len(home) for each in _around(by_name, stated))
            place = os.path.realpath(item.name)
            if place not in seen and not is_stated:
                yield item
                if item.label is not None:
                    seen.add(place)

    return [without_others(path, items) for path, items in parts]


def _by_name(path: str) -> str:
    """Return where a path itself is, which may be a link to another place."""
    folder, name = os.path.split(path.rstrip(os.sep))
    return os.path.join(os.path.realpath(folder), name)


def _around(place: str, places: Container[str]) -> list[str]:
    """Return which of some places hold a place or are it, the outermost first."""
    ends = (end.start() for end in re.finditer(rf"[{re.escape(os.sep)}#]|\Z", place))
    return [place[:end] for end in ends if place[:end] in places]


# --- the inputs of the library ---------------------------------------------------------------

# pathlib makes "s3:/bucket/mail" of a URL.  A drive of Windows has one letter.
_JOINED = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+):/(?!/)")


def path_of(given: "os.PathLike[Any]") -> str:
    """Return a path as a string; the URL that pathlib was given, if there is no such file."""
    path = os.fsdecode(given)
    return path if os.path.exists(path) else _JOINED.sub(r"\1://", path, count=1)


def items_given(given: Any, options: SourceOptions = NO_OPTIONS) -> Iterator[Item]:
    """Yield the items that are given; raises InputError, UsageError.

    given: a path, or an iterable of paths, `Item`s, data, or (data, label) pairs.  Data is a
    string of text, which is never a path, the bytes of a message, or a path.
    """
    if isinstance(given, os.PathLike):
        yield from read_items([path_of(given)], options=options)
        return
    if isinstance(given, str | bytes):
        raise UsageError(
            f"{given[:40]!r}: one text is no collection; give a list of texts, or a path as"
            " pathlib.Path(...)"
        )
    is_mapping = isinstance(given, Mapping)
    if is_mapping or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        raise UsageError(
            f"{type(given).__name__}: no collection of texts; give a list or one column of them,"
            " or for a table its target (to cluster, rows=True)"
        )
    for number, each in enumerate(given):
        if isinstance(each, Item):
            yield each if each.label is None else each._replace(label=str(each.label) or None)
            continue
        data, label = each if isinstance(each, tuple) and len(each) == 2 else (each, None)
        label = (str(label) if isinstance(label, str) else files.cell_text(label)) or None
        # One of many paths without a readable file is an item that cannot be read.
        if isinstance(data, os.PathLike) and (os.path.exists(data) or files.is_url(path_of(data))):
            lenient = options._replace(keeps_missing=True)
            yield from read_items([path_of(data)], label=label, options=lenient)
        else:
            yield item_of(data, f"#{number}", label)._replace(series="given")


def item_of(data: Any, name: str = "-", label: str | None = None) -> Item:
    """Return one item: a string of text, the bytes of a message, a path, or an Item itself."""
    if isinstance(data, Item):
        return data
    if isinstance(data, str):
        return Item(name, label, data.encode("utf-8", "replace"), is_text=True)
    if isinstance(data, bytes | bytearray | memoryview):
        return Item(name, label, bytes(data))
    if isinstance(data, os.PathLike):
        return Item(path_of(data), label)
    also = ", or for rows of a table their target" if isinstance(data, Mapping) else ""
    raise UsageError(
        f"{type(data).__name__}: neither text nor mail; give a str, bytes or pathlib.Path{also}"
    )
