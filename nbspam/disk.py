"""Files that nbspam writes: locked, replaced atomically, and never reached through a link.

Anybody who may write in a folder can replace a file of ours: by a link to another user's file, a
FIFO that nobody writes to, a file of their own.  So a path is resolved once (`resolved`); from
then on no link is followed, only regular files of the right owner are opened, and only a file
that was just created is given an owner.  The order of system calls leaves either the old file or
the new one, whole, whenever the process or the machine stops.
"""

import contextlib
import errno
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from typing import BinaryIO

from nbspam.errors import InputError, ModelFileError, ModelWarning
from nbspam.printing import is_watched

# Device, inode, size and modification time: tells whether a path still leads to the same file.
Stamp = tuple[int, int, int, int]

# O_NONBLOCK: opening a FIFO must not wait, so that it can be refused.
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK
_NO_LINK = READ_FLAGS | os.O_NOFOLLOW
_SILENCE = 2.0  # seconds of waiting before a person is told
_STEP = 0.005  # seconds between two looks at a lock that another holds
_PREFIX, _RANDOM_BYTES = ".nbspam-", 8  # of the names of temporary files
_ELSEWHERE = "give another place"
REMEDIES = {
    errno.EEXIST: "move it away",
    errno.EXDEV: "keep both folders on one file system",
    errno.EROFS: "mount its file system to be written",
    errno.EACCES: "let this user write to it and to its folder",
    errno.EPERM: "let this user write to it and to its folder",
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
}


def resolved(path: str) -> str:
    """Return where a path leads, with all symbolic links followed; without links, the path."""
    # NUL in the path, or a current folder that was removed: opening it will say so.
    with contextlib.suppress(ValueError, FileNotFoundError):
        target = os.path.realpath(path)
        if target != os.path.abspath(path):
            # /dev/stdout leads to a pipe, whose name is in no folder.
            is_pipe = os.path.exists(path) and not os.path.exists(target)
            return path if is_pipe else target
    return path


def parent_folder(path: str) -> str:
    """Return the folder that a file is in."""
    return os.path.dirname(path) or os.curdir


def stamp_of(path: str) -> Stamp | None:
    """Return the stamp of the file that a path leads to now, or None if it cannot be read."""
    try:
        return stamp_of_status(os.stat(path))
    except OSError:
        return None


def is_absent(path: str) -> bool:
    """Return whether there is no file for sure: a folder that cannot be entered may have it."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:  # reading the file says why
        return isinstance(error, FileNotFoundError)
    return False


def stamp_of_status(status: os.stat_result) -> Stamp:
    """Return the stamp of the file that a status describes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def allow_files(number: int) -> None:
    """Let this process have so many open files, as far as the system allows it."""
    import resource  # a verdict opens few

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        with contextlib.suppress(ValueError):  # macOS states no limit, but has one
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


# ---- files of our own beside others ----


def open_own(name: str, beside: str, flags: int = os.O_RDONLY) -> int:
    """Open a file that nbspam keeps beside another, and return its descriptor.

    beside: the file that it belongs to, or a folder.  Raises ModelFileError unless it is a
    regular file that only users with write permission for `beside` can have written;
    FileNotFoundError, and other OSErrors.
    """
    check_own(name, beside)  # before it is opened: opening a device can do harm
    try:
        descriptor = os.open(name, flags | _NO_LINK)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:  # replaced by a link or a FIFO
            raise _refusal(name, "not a regular file") from error
        raise
    try:
        check_own(name, beside, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_own(name: str, beside: str) -> bytes:
    """Return the contents of a file that nbspam keeps beside another; raises as `open_own`."""
    with open(open_own(name, beside), "rb") as file:
        return file.read()


def check_own(name: str, beside: str, status: os.stat_result | None = None) -> None:
    """Raise as `open_own` does, without opening the file; status: of the file, if it is open.

    SQLite's files are not opened: to close one would end all locks that the process has on it.
    """
    status = status or os.lstat(name)
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(name, "a symbolic link, and none is followed here")
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise _refusal(name, kind)
    if not _is_trusted(status, beside):
        raise _refusal(
            name, f"belongs to user {status.st_uid}, who does not own {os.path.basename(beside)}"
        )


def _is_trusted(status: os.stat_result, beside: str) -> bool:
    """Return whether a file is ours, root's, or of a user who may write `beside`."""
    if status.st_uid in {0, os.geteuid()}:
        return True
    if not os.path.lexists(beside):  # `adopt` gives what root begins the owner of the folder
        beside = parent_folder(beside)
    try:
        whole = os.stat(beside, follow_symlinks=False)
    except FileNotFoundError:
        return False
    # The members of a group that shares a model each write a journal of their own.
    shared = whole.st_gid == status.st_gid and whole.st_mode & status.st_mode & stat.S_IWGRP
    return status.st_uid == whole.st_uid or bool(shared)


def _refusal(name: str, what: str) -> ModelFileError:
    return ModelFileError(f"{name}: {what}; remove it, or move it away")


# ---- locks ----


@contextlib.contextmanager
def locked(target: str, like: str | None = None, patience: float | None = None) -> Iterator[None]:
    """Hold the write lock of a model; raises ModelFileError.  Readers need no lock.

    target: a path from `resolved`.  like: the owner of this file gets a new lock file; the target
    unless given.  patience: seconds to wait for another holder; None: as long as it takes.

    The lock is on the file TARGET.lock, because the model itself is replaced.  It ends with the
    process that holds it, so it never goes stale.  The empty lock file is left behind: if it were
    removed, two writers could lock two different files of the same name.
    """
    if os.path.islink(target):  # it would have another lock than the file it leads to
        raise _refusal(target, "a symbolic link, and none is followed here")
    if like is not None and os.path.exists(target) and not os.path.isfile(target):
        raise _refusal(target, "not a regular file")
    name = f"{target}.lock"
    with writing(target):
        make_folder(parent_folder(target))
        # A user who may not write the target could still make files beside it, if its folder
        # allows that.  As its owner trusts none of them, nobody else could read or write the
        # model any more.
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(target).st_mode):
                raise OSError("not a regular file")
            os.close(os.open(target, os.O_WRONLY | _NO_LINK))
    with writing(name if os.path.exists(name) else target):
        descriptor = _open_lock(name, like or target)
    try:
        with writing(target):
            _lock_in_sight(descriptor, target, patience)
        yield
    finally:
        os.close(descriptor)


def _open_lock(name: str, beside: str) -> int:
    while True:
        with contextlib.suppress(FileNotFoundError):
            return open_own(name, beside, os.O_RDWR)
        with contextlib.suppress(FileExistsError):  # another process was faster
            make_file(name, like=beside)


def _lock(descriptor: int) -> None:
    """Wait for an exclusive lock on an open file; closing the descriptor releases it."""
    import fcntl  # a verdict takes no lock

    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _lock_in_sight(descriptor: int, target: str, patience: float | None) -> None:
    """Wait for a lock; somebody who watches is told why that takes long.

    patience: seconds, before it raises ModelFileError; None: as long as it takes.
    """
    if is_watched():
        if _is_locked_within(descriptor, _SILENCE):
            return
        text = f"{target}: locked by another process; waiting for its end"
        warnings.warn(text, ModelWarning, stacklevel=2)
    if patience is None:
        _lock(descriptor)
    elif not _is_locked_within(descriptor, patience):
        raise ModelFileError(
            f"{target}: locked by another process for {patience:g} seconds; wait for its end, then"
            " try again"
        )


def _is_locked_within(descriptor: int, patience: float) -> bool:
    """Wait for a lock as `_lock` does, for so many seconds; return whether it is locked now."""
    end = time.monotonic() + patience
    while not (is_locked := _is_locked(descriptor)) and time.monotonic() <= end:
        time.sleep(_STEP)
    return is_locked


def _is_locked(descriptor: int) -> bool:
    """Lock an open file if nobody else has locked it; return whether it is locked now."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


# ---- replacing ----


@contextlib.contextmanager
def replacing(target: str, like: str | None = None, is_synced: bool = True) -> Iterator[BinaryIO]:
    """Yield a temporary file beside the target; then sync it and rename it to the target.

    The new file has the owner and mode of `like`, the target unless given; if that does not
    exist, it is readable by its owner only.  A link in the target's place is replaced, not
    followed.  If the block fails, or anything else, the old file stays as it was.  Raises OSError.
    """
    folder = parent_folder(target)
    make_folder(folder)
    remove_leftovers(folder, like or target)
    with _temporary(folder) as (path, file):
        adopt(file.fileno(), like or target)
        yield file
        file.flush()
        if is_synced:
            sync_file(file.fileno())
        os.replace(path, target)
    if is_synced:
        sync_folder(folder)


@contextlib.contextmanager
def _temporary(folder: str) -> Iterator[tuple[str, BinaryIO]]:
    """Make a file with a random name; it is removed if the block raises.

    It is locked until it is closed, so that nobody takes it for a leftover (`remove_leftovers`).
    """
    while True:
        path = os.path.join(folder, _PREFIX + os.urandom(_RANDOM_BYTES).hex())
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
        try:
            _lock(descriptor)
        except OSError:  # on a file system without locks
            os.close(descriptor)
            os.unlink(path)
            raise
        if os.path.lexists(path):  # some file systems count no links
            break
        os.close(descriptor)  # somebody removed it just before it was locked
    try:
        with open(descriptor, "w+b") as file:
            yield path, file
    except BaseException:  # also an interrupt, which may come after the rename
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise


@contextlib.contextmanager
def result_file(path: str, option: str) -> Iterator[BinaryIO]:
    """Yield a file that takes an option's path when it is complete; raises InputError.

    Only its owner can read a new one, as it may hold words of mail.  A path that cannot be
    replaced, such as a pipe, is written in place.
    """
    target = resolved(path)
    is_file = os.path.isfile(target) and os.access(target, os.W_OK)
    can_replace = os.access(parent_folder(target), os.W_OK) and (is_file or is_absent(target))
    try:
        with replacing(target) if can_replace else open(target, "wb") as file:
            yield file
    except OSError as error:
        advice = REMEDIES.get(error.errno or 0, "give another name")
        raise InputError(f"{option} {path}: {error.strerror or error}; {advice}") from error


def remove_leftovers(folder: str, beside: str) -> None:
    """Remove the temporary files of processes that were killed; raises nothing.

    A file that its process still writes is locked.  beside: says whose files are ours.
    """
    pattern = re.compile(rf"{re.escape(_PREFIX)}[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
    names = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
    for name in names:
        with (
            contextlib.suppress(OSError, ModelFileError),
            open(open_own(name, beside), "rb") as file,
        ):
            # If its process has just renamed it, another file may have the name, or none.
            if _is_locked(file.fileno()) and os.path.samestat(
                os.fstat(file.fileno()), os.lstat(name)
            ):
                os.unlink(name)


@contextlib.contextmanager
def spooling() -> Iterator[None]:
    """Raise InputError if a temporary file cannot be made or written within the block."""
    try:
        yield
    except OSError as error:
        import tempfile  # it takes 2 ms

        where = tempfile.tempdir or "temporary files"
        advice = REMEDIES.get(error.errno or 0, "free some space")
        raise InputError(f"{where}: {error.strerror or error}; {advice}, or set TMPDIR") from error


def make_folder(folder: str) -> None:
    """Make a folder and its missing parents, only for the existing parent's owner."""
    if not os.path.exists(folder):
        parent = parent_folder(folder)
        if is_absent(parent):  # a name that is too long is not
            make_folder(parent)
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(folder, 0o700)
            adopt_folder(folder, parent)


def adopt_folder(folder: str, like: str) -> None:
    """Give a new, empty folder the owner of another, as far as the system allows it."""
    descriptor = os.open(folder, os.O_DIRECTORY | _NO_LINK)
    try:
        if not os.listdir(descriptor):  # else somebody has moved another to its place
            adopt(descriptor, like)
    finally:
        os.close(descriptor)


def make_file(name: str, like: str) -> None:
    """Make an empty file, only for the owner of another; raises FileExistsError.

    like: as in `adopt`.
    """
    with open(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        adopt(file.fileno(), like)


def adopt(descriptor: int, like: str) -> None:
    """Give a new file or folder the owner of another, as far as the system allows it.

    like: a file, whose mode it gets too, or a folder.  If there is none, what root writes gets
    the owner of its folder.
    """
    with contextlib.suppress(OSError):  # a file system may not know owners, or modes
        if os.geteuid() == 0 and not os.path.lexists(like):  # what root begins for others
            like = parent_folder(like)
        old = os.stat(like, follow_symlinks=False)
        if stat.S_ISLNK(old.st_mode):
            return
        for owner in (-1, old.st_gid), (old.st_uid, -1):
            with contextlib.suppress(OSError):  # a container may not know the owner
                os.fchown(descriptor, *owner)
        if stat.S_ISREG(old.st_mode):
            os.fchmod(descriptor, old.st_mode & 0o777)


def sync_file(descriptor: int) -> None:
    """Force an open file or folder to disk, also past the drive's cache."""
    if sys.platform == "darwin":  # where fsync stops at the cache
        import fcntl

        with contextlib.suppress(OSError):  # some network file systems cannot
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: str) -> None:
    """Force renames within a folder to disk, on systems that can sync folders."""
    # The file itself is complete by now, so a failure here is not reported.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def keeping_notes(path: str, who: str) -> Iterator[None]:
    """Raise ModelFileError if the block cannot use the file of SQLite with the notes of `who`."""
    import sqlite3  # a verdict needs none

    try:
        yield
    except (sqlite3.Error, ValueError, OSError) as error:  # ValueError: of a damaged text
        why, advice = str(error), "free it, or remove it"
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        is_full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
        if is_full or code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            why, advice = "the disk is full, or it fails", "free some space"
        raise ModelFileError(f"{path}: {why}; {who} keeps its notes there; {advice}") from error


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Raise `unwritable` instead of the system's errors within the block."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: str, error: OSError) -> ModelFileError:
    """Return the error to raise for a model, or a file beside one, that the system refuses."""
    advice = REMEDIES.get(error.errno or 0)
    # A model that is there is to learn on; another place would have another model.
    if advice is None or not os.path.exists(path):
        advice = f"{advice}, or {_ELSEWHERE}" if advice else _ELSEWHERE
    return ModelFileError(f"{path}: cannot be written: {error.strerror or error}; {advice}")
