"""The members of an archive, as any kind of archive hands them out.

Secret: that a member's data are read from the archive's own stream.
"""

import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple


class Member(NamedTuple):
    """A file or folder in an archive.  Its data can be read until the next member is asked for."""

    name: str
    is_folder: bool
    problem: str | None  # why it cannot be read
    open: Callable[[], BinaryIO]


def closed() -> BinaryIO:
    """Return the data of a member that has none."""
    return io.BytesIO()


class Part(io.RawIOBase):
    """The next `size` bytes of a stream.  Raises ValueError if there are fewer."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        super().__init__()
        self._stream, self._size, self.left = stream, size, size

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, fewer only at the end; without a size, all that is left."""
        wanted = self.left if size < 0 else min(size, self.left)
        data = self._stream.read(wanted)
        if len(data) < wanted:
            raise cut_off()
        self.left -= wanted
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes it got."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._size - self.left

    def skip(self, more: int = 0) -> None:
        """Pass over what is left, and over so many bytes behind it."""
        self._stream.seek(self.left + more, os.SEEK_CUR)
        self.left = 0


def cut_off() -> ValueError:
    """Return the error for an archive of which the end is not there."""
    return ValueError("cut off, its end is missing; copy it again from its source")
