"""The members of a ZIP archive, in its order, read one after the other.

Secret: the standard library's reader of ZIP, and what it raises.
"""

import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from nbspam.sources.files import check_expansion
from nbspam.sources.places.members import Member, closed

_ENCRYPTED = 1  # flag of a member
_KIND, _FILE, _LINK = 0o170000, 0o100000, 0o120000  # bits of a Unix file's mode
_DAMAGES = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    OverflowError,
)


def zip_members(stream: BinaryIO) -> Iterator[Member]:
    """Yield the files, folders and links of an archive.

    Raises ValueError if it is damaged or encrypted, InputError if it expands out of proportion.
    """
    size = stream.seek(0, os.SEEK_END)
    try:
        archive = zipfile.ZipFile(stream)
    except (*_DAMAGES, ValueError, IndexError) as error:
        raise _damage(error) from error
    n_read = 0
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise ValueError("encrypted; unpack it with its password")
        name = info.filename.replace("\\", "/")
        mode = info.external_attr >> 16 & _KIND
        if name.endswith("/"):
            yield Member(name, True, None, closed)
        elif mode == _LINK:
            yield Member(name, False, "a link; unpack it to read what it leads to", closed)
        elif mode in (0, _FILE):
            n_read += info.file_size
            check_expansion(str(stream.name), n_read, size)
            yield Member(name, False, None, partial(_data, archive, info))


def _data(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO:
    return cast("BinaryIO", _Data(archive, info))


class _Data(io.RawIOBase):
    """The data of a member.  Whatever is wrong with them is a ValueError."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        super().__init__()
        try:
            self._stream = archive.open(info)
        except _DAMAGES as error:
            raise _damage(error) from error

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._stream.read(size)
        except _DAMAGES as error:
            raise _damage(error) from error

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def tell(self) -> int:
        return self._stream.tell()


def _damage(error: Exception) -> ValueError:
    return ValueError(f"damaged ({error}); copy it again from its source")
