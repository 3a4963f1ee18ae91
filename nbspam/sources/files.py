"""Files to bytes: regular files alone, decompressed if their names say so.

What goes wrong is an InputError that begins with the file's name and says what to do.

Secret: what opening and reading a file may raise, and what was meant by a path not there.
"""

import os
import stat
from collections.abc import Callable
from itertools import islice
from types import TracebackType
from typing import Any, BinaryIO

from nbspam.errors import InputError

COMPRESSED = (".gz", ".bz2", ".xz")  # endings of files that are decompressed
_NO_FILE = "{}: not a file; give a file, or pipe it in and give -"
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_HINT_NAMES = 1000  # names looked at to guess which path was meant


def read_plain(path: str, most: int) -> bytes:
    """Return the bytes of a regular file as they are, the first `most` of them.

    By the system's own calls: Python's file objects take three times as long, which
    thousands of small messages feel.  Not to block: a FIFO is opened, and then refused.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        status_of(path)  # says so, with a hint
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(_NO_FILE.format(path))
        # One byte more than there should be: fewer than asked for are all there are.
        asked = min(status.st_size + 1, most)
        data = os.read(descriptor, asked)
        if len(data) == asked:  # it has grown, or does not tell its size
            with open(descriptor, "rb", closefd=False) as stream:
                data += stream.read(most - asked)
        return data
    finally:
        os.close(descriptor)


def open_file(path: str) -> BinaryIO:
    """Open a regular file and nothing else, decompressed if its name says so."""
    if not stat.S_ISREG(status_of(path).st_mode):
        raise InputError(_NO_FILE.format(path))
    stream: BinaryIO = _opener(path)(path, "rb")
    return stream


def _opener(path: str) -> Callable[..., Any]:
    """Return what opens a file so that its content can be read."""
    path = path.lower()
    if path.endswith(".gz"):
        import gzip

        return gzip.open
    if path.endswith(".bz2"):
        import bz2

        return bz2.open
    if path.endswith(".xz"):
        import lzma

        return lzma.open
    return open


def _damages(path: str) -> tuple[type[Exception], ...]:
    """Return what reading the file raises, besides OSError, if its data are damaged."""
    path = path.lower()
    if path.endswith(".gz"):
        import zlib

        return EOFError, zlib.error
    if path.endswith(".xz"):
        import lzma

        return EOFError, lzma.LZMAError
    return (EOFError,)


class Blaming:
    """Turns what reading raises into an InputError that begins with the name.

    A class, because every message is read in one: a generator takes five times as long.
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
    """Return what an error says of the file that is read, if it says anything of it."""
    if isinstance(error, OSError):
        where = error.filename if isinstance(error.filename, str) else name
        reason = error.strerror or str(error)
        return f"{where}: cannot be read ({reason}); check it and its rights"
    if isinstance(error, ValueError):
        return f"{name}: {error}"
    if isinstance(error, _damages(name)):
        return f"{name}: damaged ({error}); restore it from its source"
    return None


def status_of(path: str) -> os.stat_result:
    """Return what the system says of a path; raises InputError."""
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file or folder; {_hint(path)}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error


def _hint(path: str) -> str:
    """Return what may have been meant by a path that is not there."""
    import difflib

    folder, name = os.path.split(path.rstrip(os.sep))
    while folder and not os.path.exists(folder):
        folder, name = os.path.split(folder)
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _HINT_NAMES)]
    except OSError:
        names = []
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {os.path.join(folder, close[0])}?" if close else "check the spelling"
