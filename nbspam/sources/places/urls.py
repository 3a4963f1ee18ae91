"""Files and folders at URLs: s3://, gs://, https://, hdfs:// and all others that fsspec knows.

A connection that is lost is made again, and reading goes on where it was.  After some attempts
a LostError ends the command: it is no matter of a single message.

Secret: fsspec, and what its file systems raise.
"""

import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from nbspam.errors import InputError, LostError, NbspamError, UsageError

T = TypeVar("T")

BLOCK = 4 << 20  # bytes that one request asks for
_PAUSES = (0.5, 1.0, 2.0)  # seconds between attempts
_HOW = "see docs/howto/remote.md"


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it; raises InputError, UsageError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(
            f"{url}: needs {error.name}; install it with: pip install 'nbspam[remote]'"
        ) from None
    try:
        found: tuple[Any, str] = url_to_fs(url)
    except ImportError as error:  # "Install s3fs to access S3"
        reason = str(error).splitlines()[0]
        raise UsageError(f"{url}: needs another package ({reason}); install it by pip") from None
    except ValueError as error:
        raise InputError(f"{url}: cannot be read ({error}); check the URL") from error
    return found


def is_folder_at(url: str) -> bool:
    """Return whether a folder is at a URL, and not a file; raises NbspamError.

    Web servers do not tell; there, the URL of a folder ends in "/".
    """

    def ask() -> bool:
        system, path = file_system(url)
        system.invalidate_cache()  # what is there may be new
        if url.endswith("/"):
            return True
        return bool(system.info(path)["type"] == "directory")

    return asked(url, ask)


def open_url(url: str) -> BinaryIO:
    """Open the file at a URL for reading; raises NbspamError."""
    stream = _Stream(url)
    return cast("BinaryIO", io.BufferedReader(stream, 1 << 18))


class _Stream(io.RawIOBase):
    """The file at a URL.  Where a connection breaks, another one goes on."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.name = self._url = url
        self._at = 0
        self._file: Any = None
        asked(url, self._connected)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _connected(self) -> Any:
        """Return the open file, at the place that is to be read next."""
        if self._file is None:
            system, path = file_system(self._url)
            file = system.open(path, "rb", block_size=BLOCK)
            self._size: int | None = getattr(file, "size", None)
            self._file = file
        if self._file.tell() != self._at:
            self._go_to(self._at)
        return self._file

    def _go_to(self, place: int) -> None:
        try:
            self._file.seek(place)
        except (ValueError, OSError):  # a web server that sends only whole files
            self._file.close()
            system, path = file_system(self._url)
            self._file = system.open(path, "rb", block_size=BLOCK)
            while place > self._file.tell() and self._file.read(
                min(BLOCK, place - self._file.tell())
            ):
                pass

    def readinto(self, buffer: Any) -> int:
        data = asked(self._url, partial(self._some, len(buffer)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _some(self, size: int) -> bytes:
        try:
            data: bytes = self._connected().read(size)
            if not data and size and self._size is not None and self._at < self._size:
                raise OSError(f"ended at byte {self._at:,} of {self._size:,}")
        except Exception:
            self.disconnect()
            raise
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            if self._size is None:
                raise ValueError(
                    "the server sends it only from its beginning; download it, and give the file"
                )
            offset += self._size
        self._at = offset + (self._at if whence == os.SEEK_CUR else 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def disconnect(self) -> None:
        """Close the connection; the next read makes another one."""
        if self._file is not None:
            with suppress(Exception):
                self._file.close()
        self._file = None

    def close(self) -> None:
        self.disconnect()
        super().close()


# --- what file systems raise -----------------------------------------------------------------


def asked(url: str, question: Callable[[], T]) -> T:
    """Return the answer to a question, which is asked again if the connection is lost."""
    for pause in (*_PAUSES, None):
        try:
            return question()
        except Exception as error:  # each file system has exceptions of its own
            _raise_if_final(url, error)
            if pause is None:
                raise LostError(
                    f"{url}: connection lost ({_reason(error)}), also in {len(_PAUSES)} more"
                    " attempts; nothing was changed; try again later"
                ) from error
            time.sleep(pause)
    raise AssertionError


def _raise_if_final(url: str, error: Exception) -> None:
    """Raise an error that another attempt would meet again, in our words."""
    kind = type(error)
    status = getattr(error, "status", None)  # of HTTP
    if isinstance(error, NbspamError):
        raise error
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        raise InputError(f"{url}: no such file or folder; check the URL") from error
    if _is_of_rights(error, kind, status):
        raise UsageError(
            f"{url}: refused, or no credentials ({_reason(error)}); give them as its library"
            f" asks for them: {_HOW}"
        ) from error
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 429):
        raise InputError(f"{url}: cannot be read ({_reason(error)}); check the URL") from error
    is_own = kind.__module__ != "builtins"
    if not is_own and not isinstance(error, OSError | EOFError):
        raise InputError(f"{url}: cannot be read ({_reason(error)}); check the URL") from error


def _is_of_rights(error: Exception, kind: type[Exception], status: object) -> bool:
    """Return whether an error says that credentials are missing or not accepted."""
    names = f"{kind.__module__}.{kind.__name__}".lower()
    return (
        isinstance(error, PermissionError)
        or status in (401, 403)
        or "credential" in names
        or ".auth." in names
    )


def _reason(error: Exception) -> str:
    """Return the first line of what an error says, or its name if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
