"""Decompressing zstd, which the standard library can only from Python 3.14 on.

Secret: which library does it.
"""

import io
from typing import Any, BinaryIO

from nbspam.errors import UsageError


def open_zstd(source: BinaryIO, _: str) -> Any:
    """Return the contents of a stream of zstd, as `gzip.open` does; raises UsageError."""
    try:
        from pyarrow import CompressedInputStream, PythonFile
    except ImportError as error:
        raise UsageError(
            f"zstd: needs {error.name}; install it with: pip install 'nbspam[remote]',"
            " or compress by gzip or xz"
        ) from None
    return _Zstd(CompressedInputStream(PythonFile(source, "r"), "zstd"))


class _Zstd(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except OSError as error:
            if error.errno is not None:
                raise
            raise EOFError(str(error)) from error  # as other decompressors say it
        return data
