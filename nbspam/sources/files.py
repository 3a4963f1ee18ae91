"""Files: their kinds by name, opening and decompressing them, and the wanted columns of tables.

Failures to open, decompress or parse a file are InputErrors that begin with its name and say what
to do.
"""

import errno
import io
import os
import posixpath
import re
import stat
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import islice
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, cast
from unicodedata import normalize

from nbspam.disk import READ_FLAGS
from nbspam.errors import InputError, library_error


class Compression(NamedTuple):
    """How data of one kind are recognised and decompressed."""

    beginning: bytes  # of the data
    name: str
    module: str | None  # of Python, which opens them; None: pyarrow does


# By the endings of names.
COMPRESSIONS = {
    ".gz": Compression(b"\x1f\x8b", "gzip", "gzip"),
    ".bz2": Compression(b"BZh", "bzip2", "bz2"),
    ".xz": Compression(b"\xfd7zXZ\0", "xz", "lzma"),
    ".zst": Compression(b"\x28\xb5\x2f\xfd", "zstd", None),
}
COMPRESSED = (*COMPRESSIONS, ".tgz")  # files with these endings are decompressed
PACKED = ("tar", "zip", "parquet")  # formats of files that hold many messages each
# Formats by the endings of names, to which those of compressed files are added.
_ENDINGS = {
    ".eml": "eml",
    ".mbox": "mbox",
    ".mbx": "mbox",
    ".csv": "csv",
    ".tsv": "tsv",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "jsonl"),
    ".tar": "tar",
}
_FORMAT_BY_ENDING = {".tgz": "tar", ".zip": "zip", ".parquet": "parquet"} | {
    ending + compressed: kind
    for ending, kind in _ENDINGS.items()
    for compressed in ("", *COMPRESSIONS)
}
_STREAMS = {stat.S_IFIFO, stat.S_IFCHR}
_NO_FILE = "{}: not a file; give a file, or pipe it in and give -"
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Bounds on an expanded file: this many times its size, or at least so many bytes.
MOST_TIMES, MOST_FREE = 250, 16 << 20
IMPLAUSIBLE = (
    f"expands to more than {MOST_TIMES} times its size, as mail and tables do not; decompress it"
    " yourself if you trust it"
)
_STEP = 1 << 18  # bytes that are decompressed at once
_HINT_NAMES = 1000  # names compared with a missing one to suggest another
_JSON_BYTES = 64 << 20
_TOKEN_BYTES = 1 << 28  # of a list of tokens
# Longer messages are truncated: mail servers refuse them, and memory must stay bounded.
MAX_MESSAGE = 64 << 20
MARKS_OF_UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)  # how files in it begin, as some programs save mail
LONGEST_NAME = 40  # characters of a column's
HEAD_BYTES = 1 << 16  # bytes read to recognise a file
LOOKAHEAD = 1024  # bytes that hold a From_ line and the start of the next line
# A separator has a date ("Thu Aug 22 12:36") or a header right below it; a sentence that
# begins with "From " after a blank line has neither.
FROM_LINE = re.compile(
    rb"From (?:[^\n]*[A-Z][a-z]{2} +[A-Z][a-z]{2} +\d\d? +\d\d?:\d\d|[^\n]*\n[!-9;-~]+:)"
)


# --- names ---------------------------------------------------------------------------------


def is_url(path: str) -> bool:
    """Return whether a path is the URL of a file or folder, which fsspec can read."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and "/" not in scheme


def is_account(path: str) -> bool:
    """Return whether a path is the URL of a mail account, or of a folder or message in it."""
    return path[:8].lower().startswith(("imap://", "imaps://"))


def lower_name(path: str) -> str:
    """Return a path in small letters; a URL loses its query."""
    return (path.partition("?")[0] if is_url(path) else path).lower()


def kind_by_name(path: str) -> str | None:
    """Return the format, one of FORMATS, that the ending of a file name means, or None."""
    name = lower_name(path)
    at = name.rfind(".")
    if name[at:] not in _FORMAT_BY_ENDING:  # a compressed file has two endings
        at = name.rfind(".", 0, at)
    return _FORMAT_BY_ENDING.get(name[at:])


def beside(index: str, path: str) -> str:
    """Return the path of a file that an index names by a path from its own place."""
    if not is_url(index):
        return os.path.join(os.path.dirname(index), path)
    scheme, separator, place = index.partition("://")
    return scheme + separator + posixpath.normpath(posixpath.join(posixpath.dirname(place), path))


def standard_input() -> BinaryIO:
    """Return the stream of the path "-"; raises InputError."""
    if sys.stdin is None:
        raise InputError("-: standard input is closed; give a path")
    if sys.stdin.isatty():  # each read at the end would wait for another Ctrl-D
        return io.BytesIO(sys.stdin.buffer.read())
    return sys.stdin.buffer


def file_names_in(path: str) -> list[str]:
    """Return the file names in a file, each of which ends in NUL; raises InputError.

    path: "-" is standard input, and it may be a pipe.  A file called "-" is no longer standard
    input.
    """
    if path == "-":
        data = standard_input().read()
    else:  # <(find ...) and /dev/null are streams
        is_stream = not is_url(path) and stat.S_IFMT(status_of(path).st_mode) in _STREAMS
        with Blaming(path), open(path, "rb") if is_stream else open_file(path) as stream:
            data = stream.read()
    if b"\n" in data and b"\0" not in data:
        raise InputError(
            f"--files0-from {path}: no NUL in it, its names end in newlines; write it with"
            " `find -print0`"
        )
    names = data.removesuffix(b"\0").split(b"\0") if data else []
    if b"" in names:
        raise InputError(
            f"--files0-from {path}: name {names.index(b'') + 1} is empty; leave it out"
        )
    return ["./-" if name == b"-" else os.fsdecode(name) for name in names]


# --- what is at a path ---------------------------------------------------------------------


def is_folder(path: str) -> bool:
    """Return whether a folder is at a path or URL, and not a file; raises NbspamError."""
    if is_account(path):
        from nbspam.imap.accounts import imap_url

        return imap_url(path).uid is None
    if is_url(path):
        from nbspam.sources.remote import is_folder_at

        return is_folder_at(path)
    return file_around(path) is None and stat.S_ISDIR(status_of(path).st_mode)


def file_around(path: str) -> str | None:
    """Return the file in which FILE#… names an item, as it is printed; None if there is none."""
    if "#" not in path or is_url(path) or os.path.lexists(path):
        return None
    heads = (path[: found.start()] for found in re.finditer("#", path))
    return next(filter(os.path.isfile, heads), None)


def holds_many(path: str) -> bool:
    """Return whether a path is a folder or an archive, whose items have been filed."""
    return path != "-" and (is_folder(path) or kind_by_name(path) in PACKED)


def leads_nowhere(path: str) -> bool:
    """Return whether a path is a dead link or a link to itself."""
    if is_url(path):
        return False
    try:
        os.stat(path)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ELOOP)
    return False


def status_of(path: str) -> os.stat_result:
    """Return the status of the file at a path; raises InputError."""
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        if os.path.islink(path):
            reason = "leads to a file that is not there; mend the link or remove it"
            raise InputError(f"{path}: {reason}") from error
        where = path or "''"
        raise InputError(f"{where}: no such file or folder; {_hint(path)}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error


def _hint(path: str) -> str:
    """Return a suggestion for a path that does not exist."""
    import difflib

    folder, name = os.path.split(path.rstrip(os.sep))
    while folder and not os.path.exists(folder):
        folder, name = os.path.split(folder)
    names: list[str] = []
    with suppress(OSError), os.scandir(folder or os.curdir) as entries:
        names = [entry.name for entry in islice(entries, _HINT_NAMES)]
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {os.path.join(folder, close[0])}?" if close else "check the spelling"


# --- opening -------------------------------------------------------------------------------


def read_uncompressed(path: str, most: int) -> bytes:
    """Return at most the first `most` bytes of a regular file, not decompressed.

    It uses system calls, because Python's file objects take three times as long, which
    matters for thousands of small messages.  O_NONBLOCK: opening a FIFO must not wait, so
    that it can be refused.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except FileNotFoundError:
        now = _renamed_in_maildir(path)
        if now is not None:
            return read_uncompressed(now, most)
        status_of(path)  # raises an InputError with a hint
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(_NO_FILE.format(path))
        # Ask for one byte too many: if just the size comes, the file has been read to its end.
        data = os.read(descriptor, min(status.st_size + 1, most))
        if len(data) != status.st_size:  # it has grown, tells no size, or FUSE gave a part
            with open(descriptor, "rb", closefd=False) as stream:
                data += stream.read(most - len(data))
        return data
    finally:
        os.close(descriptor)


def _renamed_in_maildir(path: str) -> str | None:
    """Return where a message of a Maildir is now that somebody has read it; None: nowhere."""
    folder, name = os.path.split(path)
    maildir, part = os.path.split(folder)
    cur = os.path.join(maildir, "cur")
    if part not in ("cur", "new") or not os.path.isdir(cur):
        return None
    unique = maildir_name(name)[0]
    known = (other for other in os.listdir(cur) if maildir_name(other)[0] == unique)
    return next(filter(os.path.isfile, (os.path.join(cur, other) for other in known)), None)


def maildir_name(name: str) -> tuple[str, str]:
    """Return the unique name of a file in a Maildir, and its flags, after a colon, ; or !."""
    unique, _, flags = name.rpartition("2,")
    return (unique[:-1], flags) if unique.endswith((":", ";", "!")) else (name, "")


def open_file(path: str) -> BinaryIO:
    """Open a regular file for reading, decompressed if its name ends so; raises InputError.

    path: may be a URL.
    """
    if is_url(path):
        from nbspam.sources.remote import open_url

        return expanded(path, open_url(path))
    if not stat.S_ISREG(status_of(path).st_mode):
        raise InputError(_NO_FILE.format(path))
    return expanded(path, open(os.open(path, READ_FLAGS), "rb"))


def open_inside(folder: str, path: str) -> BinaryIO:
    """Open a regular file in a folder for reading, decompressed if its name ends so.

    path: relative to the folder, without "..".  No link in it is followed, not even one that is
    put there since.  Raises InputError if it is no regular file, and OSError.
    """
    *folders, name = path.split(os.sep)
    inside = os.open(folder, _FOLDER_FLAGS)
    try:
        for each in folders:
            outside, inside = inside, os.open(each, _FOLDER_FLAGS | _NO_LINK, dir_fd=inside)
            os.close(outside)
        descriptor = os.open(name, READ_FLAGS | _NO_LINK, dir_fd=inside)
    finally:
        os.close(inside)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(_NO_FILE.format(os.path.join(folder, path)))
    return expanded(path, open(descriptor, "rb"))


def read_json(path: str) -> Any:
    """Return the values in a JSON file of at most _JSON_BYTES; raises InputError."""
    import json

    try:
        return json.loads(_whole(path, "JSON", _JSON_BYTES))
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not JSON; correct it") from None


def read_tokens(path: str) -> list[str]:
    """Return the lines of a file of tokens that are not empty; raises InputError."""
    lines = _whole(path, "tokens", _TOKEN_BYTES).decode("utf-8-sig", "surrogateescape").split("\n")
    tokens = [line for line in (line.removesuffix("\r") for line in lines) if line]
    if not tokens:
        raise InputError(f"{path}: no token in it; give a file with one on each line")
    return tokens


def _whole(path: str, what: str, most: int) -> bytes:
    """Return the bytes of a file of at most `most` bytes; raises InputError."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file of {what}") from error
    if len(data) > most:
        raise InputError(f"{path}: more than {most:,} bytes of {what}; give a smaller file")
    return data


# --- decompressing -------------------------------------------------------------------------


def expanded(path: str, source: BinaryIO) -> BinaryIO:
    """Return a stream decompressed, if the name of its file says that it is compressed."""
    opener = _opener(path)
    if opener is None:
        return source
    try:
        # Opened first: if it fails, nothing half made is left to be closed.
        stream = _Expanded(path, source, opener, opener(source, "rb"))
        return cast("BinaryIO", io.BufferedReader(stream, _STEP))
    except BaseException:
        source.close()
        raise


class _Expanded(io.RawIOBase):
    """The contents of a compressed file, as far as they are in proportion to the file.

    A decompression bomb, a thousand or a million times its size, is detected after MOST_FREE
    bytes.  Mail and tables of text shrink to a third, or seldom to a fiftieth.
    """

    def __init__(
        self, path: str, source: BinaryIO, opener: Callable[..., Any], stream: Any
    ) -> None:
        super().__init__()
        self._path, self._source = path, source
        self._opener, self._stream = opener, stream
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read1(min(len(buffer), _STEP))
        except OSError as error:
            # Of gzip, which does not ignore what stands behind its end, as others do.
            if not (self._n_read and str(error).startswith("Not a gzipped file")):
                raise
            data = b""
        buffer[: len(data)] = data
        self._n_read += len(data)
        if is_implausible(self._n_read, self._source.tell()):
            raise InputError(f"{self._path}: {IMPLAUSIBLE}")
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        target = offset + (self._n_read if whence == os.SEEK_CUR else 0)
        if whence == os.SEEK_END:
            raise ValueError("compressed, but it is read from its end; decompress it")
        if target < self._n_read:
            self._source.seek(0)
            self._stream, self._n_read = self._opener(self._source, "rb"), 0
        while self._n_read < target and self.read(min(target - self._n_read, _STEP)):
            pass
        return self._n_read

    def tell(self) -> int:
        return self._n_read

    def close(self) -> None:
        self._stream.close()
        self._source.close()
        super().close()


def is_implausible(n_expanded: int, n_packed: int) -> bool:
    """Return whether a file expands so much that it cannot be mail or a table."""
    return n_expanded > max(MOST_FREE, MOST_TIMES * n_packed)


def _opener(path: str) -> Callable[..., Any] | None:
    """Return the function that decompresses a file with this ending; None: there is no need."""
    name = lower_name(path)
    ending = name[name.rfind(".") :]
    if ending not in COMPRESSED:
        return None
    module = COMPRESSIONS[".gz" if ending == ".tgz" else ending].module
    return import_module(module).open if module else partial(_open_zstd, path)


def _open_zstd(path: str, source: BinaryIO, _: str) -> Any:
    """Return the contents of a stream of zstd, as `gzip.open` does; raises UsageError."""
    try:
        from pyarrow import CompressedInputStream, PythonFile
    except ImportError as error:
        raise library_error(path, error.name, "remote", ", or compress by gzip or xz") from None
    return CompressedInputStream(PythonFile(source, "r"), "zstd")


# --- what reading raises -------------------------------------------------------------------


class Blaming:
    """A context that turns errors of reading into InputErrors that begin with a name.

    It is a class because every message is read in one: a context manager made of a
    generator takes five times as long.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and (problem := _problem(self._name, error)):
            raise InputError(problem) from error


def _problem(name: str, error: BaseException) -> str | None:
    """Return the message for an error of reading; None for any other error."""
    # Errors of damage that have no number; others by the names of modules, which few files need.
    is_damage = isinstance(error, EOFError) or (isinstance(error, OSError) and error.errno is None)
    if is_damage or type(error).__module__ in ("zlib", "_lzma"):
        return f"{name}: damaged ({error}); restore it from its source"
    if isinstance(error, OSError):
        where = error.filename if isinstance(error.filename, str) else name
        reason = error.strerror or str(error)
        return f"{where}: cannot be read ({reason}); check it and its rights"
    if isinstance(error, ValueError):
        return f"{name}: {error}"
    return None


# --- one message ---------------------------------------------------------------------------


def begins_with_from_line(head: bytes) -> bool:
    """Return whether bytes begin with the From_ line of an mbox."""
    # Some programs of Windows put a byte order mark before it, and others empty lines.
    if head.startswith(MARKS_OF_UTF_16):
        head = head[2:].replace(b"\0", b"")
    return FROM_LINE.match(head.lstrip(BOM_UTF8 + b"\r\n"), 0, LOOKAHEAD) is not None


def read_raw_message(stream: BinaryIO, head: bytes = b"") -> bytes:
    """Return the head and the rest of the stream, truncated to MAX_MESSAGE."""
    # Most messages fit in the first read; reading MAX_MESSAGE at once would allocate 64 MB.
    head = head or stream.read(HEAD_BYTES)
    return head + stream.read(MAX_MESSAGE - len(head)) if len(head) == HEAD_BYTES else head


# --- tables: what is looked for, and who is told of it ---------------------------------------


class TextColumns(NamedTuple):
    """The columns in which a table has its texts and its classes, by name."""

    text: tuple[str, ...] = ()  # joined in this order; empty: the table has no row of names
    label: str | None = None


class NamedColumns(NamedTuple):
    """The columns that a user named, and the ones that a model has learned from."""

    text: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None  # holds the names of the rows
    learned: TextColumns = TextColumns()  # taken where a table has them and the user named none

    @property
    def is_named(self) -> bool:
        """Whether the user named a column, so that the table has a row of names."""
        return bool(self.text or self.label or self.id)


class Listener:
    """The listener of a reader of tables.  Subclasses keep the facts that they need."""

    columns = TextColumns()  # of the first table
    has_heard = False  # of a table

    def notice(self, line: str) -> None:
        """Hear a remark that the user should see once, and that may be made again."""

    def table(self, names: Sequence[str] | None, columns: TextColumns) -> None:
        """Hear the names in a table's first row, None without one, and the columns read."""

    def row(self, cells: Iterable[str]) -> None:
        """Hear the cells of a row as they are, before the row is handed out."""


class Naming(Listener):
    """Passes everything on, with the name of a table before each notice."""

    def __init__(self, name: str, listener: Listener) -> None:
        self._name, self._listener = name, listener

    def notice(self, line: str) -> None:
        """Pass on a line with the name."""
        self._listener.notice(f"{self._name}: {line}")

    def table(self, names: Sequence[str] | None, columns: TextColumns) -> None:
        """Pass on the columns."""
        self._listener.table(names, columns)

    def row(self, cells: Iterable[str]) -> None:
        """Pass on the cells."""
        self._listener.row(cells)


class Rememberer(Listener):
    """Remembers the columns of the first table, for the model that learns from it."""

    def table(self, names: Sequence[str] | None, columns: TextColumns) -> None:
        """Remember the columns of the first table."""
        if not self.has_heard:
            self.columns, self.has_heard = columns, True


SILENT = Listener()
NO_COLUMNS = TextColumns()
ANY = NamedColumns()


def listed(names: Sequence[str]) -> str:
    """Return column names for an error message, shortened and at most 20."""
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(name[:LONGEST_NAME] for name in names[:20]) + more


def cell_text(value: Any) -> str:
    """Return a cell as a file would have it, stripped; empty if it is missing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # whole numbers are floats in a column of which some are missing
    elif isinstance(value, bytes):  # text, in parquet and in what scipy reads of ARFF
        value = value.decode("utf-8", "replace")
    text = "" if value is None else normalize("NFC", str(value)).strip()
    return "" if text in ("nan", "NaT", "<NA>") else text
