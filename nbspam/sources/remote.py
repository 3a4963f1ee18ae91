"""Files at URLs: s3://, gs://, https://, hdfs:// and all others that fsspec knows.

A lost connection is reopened, and reading resumes where it stopped.  After some attempts a
LostError ends the command, because it concerns more than one message.
"""

import io
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from nbspam.errors import InputError, LostError, NbspamError, UsageError, library_error

T = TypeVar("T")

REQUESTED_BYTES = 4 << 20  # bytes that one request asks for
RETRY_PAUSES = (1.0, 3.0)  # seconds between attempts
_HOW = "see docs/howto/remote.md"


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it; raises InputError, UsageError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise library_error(url, "fsspec", "remote") from None
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
        system.invalidate_cache()  # the cached listing may be old
        return url.endswith("/") or bool(system.info(path)["type"] == "directory")

    return asked_again(url, ask)


def open_url(url: str) -> BinaryIO:
    """Open the file at a URL for reading; raises NbspamError."""
    return cast("BinaryIO", io.BufferedReader(_Stream(url), 1 << 18))


class _Stream(io.RawIOBase):
    """The file at a URL.  Where a connection breaks, another one goes on."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.name = self._url = url
        self._at = 0
        self._file: Any = None
        self._is_whole = False  # the server sends the file only from its beginning
        self._from_end = False  # but its reader begins at its end
        asked_again(url, self._connected)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _connected(self) -> Any:
        """Return the open file, at the place that is to be read next."""
        if self._file is None:
            system, path = file_system(self._url)
            self._file = system.open(
                path, "rb", block_size=0 if self._is_whole else REQUESTED_BYTES
            )
            self._size: int | None = getattr(self._file, "size", None)
        if self._is_whole:
            while (before := self._at - self._file.tell()) > 0:
                if not self._file.read(min(REQUESTED_BYTES, before)):
                    raise OSError(f"ended before byte {self._at:,}")
        elif self._file.tell() != self._at:
            self._file.seek(self._at)
        return self._file

    def readinto(self, buffer: Any) -> int:
        data = asked_again(self._url, partial(self._some, len(buffer)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _some(self, size: int) -> bytes:
        try:
            data: bytes = self._connected().read(size)
            if not data and size and self._size is not None and self._at < self._size:
                raise OSError(f"ended at byte {self._at:,} of {self._size:,}")
        except ValueError:  # of a web server that sends only whole files
            self.disconnect()
            if self._is_whole:
                raise
            if self._from_end:
                raise self._no_parts() from None
            self._is_whole = True
            return self._some(size)
        except Exception:
            self.disconnect()
            raise
        return data

    def _no_parts(self) -> InputError:
        return InputError(
            f"{self._url}: the server sends it only from its beginning; download it, and give"
            " the file"
        )

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            self._from_end = True
            if self._size is None:
                raise self._no_parts()
            offset += self._size
        at = offset + (self._at if whence == os.SEEK_CUR else 0)
        if self._is_whole and at < self._at:
            self.disconnect()
        self._at = at
        return at

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


def asked_again(url: str, question: Callable[[], T]) -> T:
    """Return the answer to a question, which is asked again if the connection is lost."""
    first: Exception | None = None
    for pause in (*RETRY_PAUSES, None):
        try:
            return question()
        except Exception as error:  # each file system has exceptions of its own
            meant = _meant(error)
            _raise_if_final(url, meant)
            first = first or meant
        if pause is not None:
            time.sleep(pause)
    assert first is not None
    raise LostError(
        f"{url}: failed ({_reason(first)}), and again in {len(RETRY_PAUSES)} more"
        " attempts; nothing was changed; check the URL, or try again later"
    ) from first


def _meant(error: Exception) -> Exception:
    """Return the error, or what made it: over HTTP, whatever fails is called a missing file."""
    cause = error.__cause__
    is_http = type(cause).__module__.startswith("aiohttp")
    if isinstance(error, FileNotFoundError) and is_http and isinstance(cause, Exception):
        return cause
    return error


def _raise_if_final(url: str, error: Exception) -> None:
    """Raise an error that another attempt would meet again, in our words."""
    status = getattr(error, "status", None)  # of HTTP
    if isinstance(error, NbspamError):
        raise error
    is_missing = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    if is_missing or status == 404:
        raise InputError(f"{url}: no such file or folder; check the URL") from error
    if _is_of_rights(error, status):
        raise UsageError(
            f"{url}: refused, or no credentials ({_reason(error)}); give them as its library"
            f" asks for them: {_HOW}"
        ) from error
    is_refused = isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
    is_builtin = type(error).__module__ == "builtins"
    if is_refused or (is_builtin and not isinstance(error, OSError | EOFError)):
        raise InputError(f"{url}: cannot be read ({_reason(error)}); check the URL") from error


def _is_of_rights(error: Exception, status: object) -> bool:
    """Return whether an error says that credentials are missing or not accepted."""
    kind = type(error)
    names = f"{kind.__module__}.{kind.__name__}".lower()
    return (
        isinstance(error, PermissionError)
        or status in (401, 403)
        or "credential" in names
        or ".auth." in names
    )


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
