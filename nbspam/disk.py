"""Locking files, replacing them atomically, and giving them their owner.

Secret: the order of system calls that leaves either the old file or the new one, whole,
whenever the process or the machine stops.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from nbspam.errors import ModelFileError

# Device, inode, size and modification time: tells whether a path still leads to the same file.
Stamp = tuple[int, int, int, int]


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of the file that a path leads to now, or None if it cannot be read."""
    try:
        return stamp_of_status(os.stat(path))
    except OSError:
        return None


def stamp_of_status(status: os.stat_result) -> Stamp:
    """Return the stamp of the file that a status describes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the write lock of a model; raises ModelFileError.  Readers need no lock.

    The lock is on the file PATH.lock, because the model itself is replaced.  It ends with
    the process that holds it, so it never goes stale.  The empty lock file is left behind:
    if it were removed, two writers could lock two different files of the same name.
    """
    target = os.path.realpath(path)
    try:
        make_folder(os.path.dirname(target))
        descriptor = os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        try:
            adopt(descriptor, target)
            _lock(descriptor)
        except OSError as error:
            raise unwritable(path, error) from error
        yield
    finally:
        os.close(descriptor)


def replace_file(target: str, write: Callable[[BinaryIO], None]) -> None:
    """Write a temporary file beside the target, sync it, and rename it to the target.

    The target keeps its owner and mode; a new one is readable by its owner only.  On any
    failure the old file stays as it was.  Raises OSError, and what `write` raises.
    """
    folder = os.path.dirname(target)
    make_folder(folder)
    temporary = os.path.join(folder, f".nbspam-{os.urandom(8).hex()}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w+b") as file:
            adopt(descriptor, target)
            write(file)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:  # also an interrupt, which may come after the rename
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def make_folder(folder: str) -> None:
    """Make a folder and its missing parents, accessible to the owner only."""
    if not os.path.exists(folder):
        make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(folder, 0o700)


def adopt(descriptor: int, target: str) -> None:
    """Give an open file the owner and mode of the target, as far as the system allows it."""
    if sys.platform != "win32":
        with contextlib.suppress(FileNotFoundError, PermissionError):
            old = os.stat(target)
            for owner in (-1, old.st_gid), (old.st_uid, -1):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, old.st_mode & 0o777)


def sync_folder(folder: str) -> None:
    """Force renames within a folder to disk, on systems that can sync folders."""
    # The file itself is complete by now, so a failure here is not reported.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait for an exclusive lock on an open file; closing the descriptor releases it."""
    if sys.platform == "win32":
        import msvcrt

        while True:  # LK_LOCK gives up after ten seconds
            with contextlib.suppress(OSError):
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
                return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def unwritable(path: str, error: OSError) -> ModelFileError:
    """Return the error to raise for a model that the system does not let us write."""
    room = "free some space or " if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return ModelFileError(
        f"{path}: cannot write the model: {error.strerror or error}; "
        f"{room}give another place with -m"
    )
