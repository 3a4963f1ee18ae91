"""Files of ours on disk: locked, replaced whole, owned as the model is.

Secret: what it takes for a file to be there whole or not at all, whatever happens meanwhile.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from nbspam.errors import ModelFileError

# Device, number, bytes and time of a file: another file under the same name has another.
Stamp = tuple[int, int, int, int]


def stamp_of(path: str) -> Stamp | None:
    """Return which file a path leads to now, or None."""
    try:
        return stamp_of_status(os.stat(path))
    except OSError:
        return None


def stamp_of_status(status: os.stat_result) -> Stamp:
    """Return which file a status is of."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Make other writers of this model wait; readers never have to.

    The lock is on a file beside the model, as the model itself is replaced.  It ends
    with its process, so none is ever stale, and its empty file stays: removing it would
    let two writers hold two files of one name.
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
    """Write a file beside the target, force it to disk, and put it in the target's place.

    The target keeps its owner and mode.  On any failure the old file stays as it was.
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
    except BaseException:  # an interrupt too, which may come after the renaming
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def make_folder(folder: str) -> None:
    """Make a folder and those above it, for the owner alone."""
    if not os.path.exists(folder):
        make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(folder, 0o700)


def adopt(descriptor: int, target: str) -> None:
    """Give a new file the owner and mode of the model, if there is one and we may."""
    if sys.platform != "win32":
        with contextlib.suppress(FileNotFoundError, PermissionError):
            old = os.stat(target)
            for owner in (-1, old.st_gid), (old.st_uid, -1):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, old.st_mode & 0o777)


def sync_folder(folder: str) -> None:
    """Force a rename to disk, where folders can be opened and synchronised."""
    # The model is whole by now, so a system that cannot do this is no reason to fail.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait until this process alone holds the lock; closing the descriptor ends it."""
    if sys.platform == "win32":
        import msvcrt

        while True:  # its own patience ends after ten seconds
            with contextlib.suppress(OSError):
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
                return
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def unwritable(path: str, error: OSError) -> ModelFileError:
    """Return the error for a model that the system does not let us write."""
    room = "free some space or " if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return ModelFileError(
        f"{path}: cannot write the model: {error.strerror or error}; "
        f"{room}give another place with -m"
    )
