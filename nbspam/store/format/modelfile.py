"""Saving a plain state as one joblib file, and loading it, safely and atomically.

The file is a pickle stream that joblib.load can read.  It begins with a byte string that the
stream itself drops: our header (magic, format, length, checksum), at fixed offsets.  Loading
checks the header and reads the rest with `reader`, which calls nothing that the stream names,
so that a model file from a stranger cannot run code or use up memory.

Secret: the header and the checksum.
"""

import contextlib
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from nbspam.disk import Stamp, replace_file, stamp_of_status, unwritable
from nbspam.errors import ModelFileError
from nbspam.store.format.reader import RefusedError, plain, read_plain

# Values are None, bool, int (64 bits), float, str, numeric arrays, or lists and dicts of these.
State = dict[str, Any]

MAGIC = b"nbspam model"
FORMAT = 3  # format 1 had no ledger, no sample and no days; format 2 had keys without kinds

# PROTO 4, SHORT_BINBYTES 35 | magic | format | file length in bytes | checksum | POP.
# It has 40 bytes, so that the 64-bit words after it are aligned.
HEADER = struct.Struct("<4s19sIQIc")
PREFIX = b"\x80\x04C\x23" + MAGIC

# O_NONBLOCK: opening a FIFO must not wait, so that it can be refused.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

ROWS, COLUMNS = 256, 512
CHUNK = ROWS * COLUMNS * 8  # bytes: fits a second-level cache


# ---- the header ----


class Identity(NamedTuple):
    """Identifies one state of one model: it changes whenever the model file is rewritten."""

    length: int  # bytes
    checksum: int


def _header(length: int, checksum: int, version: int = FORMAT) -> bytes:
    """Return the first bytes of a file of this format."""
    return HEADER.pack(PREFIX[:4], MAGIC, version, length, checksum, b"0")


def _checksum(memory: mmap.mmap, version: int = FORMAT) -> int:
    """Return the 32-bit checksum of a file, computed with 0 in the place of the checksum.

    Each chunk of 1 MiB is a table of 64-bit words.  The xor of every row and of every column
    goes into a CRC-32, and then the rest after the last whole chunk.  A flipped bit changes
    one bit of a row and one of a column, and CRC-32 detects all errors of two bits; rows
    detect swapped blocks, columns swapped words.  Other damage is missed once in 2**32.

    It is not zlib.crc32 of the whole file, because files of formats 1 to 3 have this checksum,
    and these lines would have to stay beside a new one.  They take 4 ms for a model of 16 MB,
    zlib.crc32 takes 8.
    """
    crc = zlib.crc32(_header(len(memory), 0, version))
    body = np.frombuffer(memory, np.uint8, offset=HEADER.size)
    whole = len(body) - len(body) % CHUNK
    for start in range(0, whole, CHUNK):
        table = body[start : start + CHUNK].view(np.uint64).reshape(ROWS, COLUMNS)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=1), crc)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=0), crc)
    return zlib.crc32(body[whole:].data, crc)


def _check_header(path: str, memory: mmap.mmap) -> Identity:
    """Return the identity of a model; raise ModelFileError unless its header fits the file."""
    again = f"train it again with: nbspam train SOURCE -m {path}, or restore a copy"
    if memory[: len(PREFIX)] != PREFIX:
        raise ModelFileError(f"{path}: not a model; give a file that nbspam train wrote with -m")
    if len(memory) < HEADER.size:
        raise ModelFileError(f"{path}: truncated within its first {HEADER.size} bytes; {again}")
    _, _, version, length, checksum, _ = HEADER.unpack_from(memory)
    if version > FORMAT:
        raise ModelFileError(
            f"{path}: written by format {version}, this program reads up to {FORMAT}; "
            f"upgrade nbspam"
        )
    if length != len(memory):
        change = "truncated" if length > len(memory) else "longer than it was written"
        raise ModelFileError(
            f"{path}: {change} ({len(memory)} bytes, its header says {length}); {again}"
        )
    # Comparing the whole header also detects damage in bytes that are not part of a number.
    header = _header(length, checksum, version)
    if memory[: HEADER.size] != header or checksum != _checksum(memory, version):
        raise ModelFileError(f"{path}: damaged (its checksum does not match); {again}")
    return Identity(length, checksum)


# ---- reading ----


class Snapshot(NamedTuple):
    """A model file as it was at one moment."""

    state: State
    identity: Identity
    stamp: Stamp


def load_state(path: str) -> State:
    """Return the state in a model file; its arrays are read-only views of one memory map.

    Only names and settings are parsed, so nearly all of the time goes into the checksum.  The
    map stays valid when the model is replaced, because writers never write in place.
    Raises ModelFileError.
    """
    return read_snapshot(path).state


def read_snapshot(path: str) -> Snapshot:
    """Return the state in a model file with its identity; raises ModelFileError."""
    memory, stamp = _map(path)
    identity = _check_header(path, memory)
    try:
        return Snapshot(read_plain(memory, HEADER.size), identity, stamp)
    except RefusedError as error:
        raise ModelFileError(
            f"{path}: {error}, so it is not a model; give a file that nbspam train wrote"
        ) from error


def identity_at(path: str) -> Identity | None:
    """Return the identity that the header of a model file states, None if it states none."""
    try:
        with open(os.open(path, _OPEN_FLAGS), "rb") as file:
            head = file.read(HEADER.size)
    except OSError:
        return None
    if len(head) < HEADER.size or not head.startswith(PREFIX):
        return None
    _, _, _, length, checksum, _ = HEADER.unpack(head)
    return Identity(length, checksum)


def _map(path: str) -> tuple[mmap.mmap, Stamp]:
    """Return a read-only memory map of a model file, and its stamp; raises ModelFileError."""
    try:
        _check_kind(path, os.stat(path))  # before it is opened: opening a device can do harm
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            status = os.fstat(descriptor)
            _check_kind(path, status)
            if not status.st_size:
                raise ModelFileError(
                    f"{path}: empty, not a model; train one with: nbspam train SOURCE -m {path}"
                )
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), stamp_of_status(status)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise ModelFileError(
            f"{path}: no such model; train one with: nbspam train SOURCE -m {path}"
        ) from None
    except PermissionError:
        raise ModelFileError(
            f"{path}: no permission to read the model; ask its owner, or give another with -m"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the path, or the file is now empty
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(
            f"{path}: cannot read the model: {reason}; give another with -m"
        ) from error


def _check_kind(path: str, status: os.stat_result) -> None:
    """Raise ModelFileError unless a file is a regular one."""
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ModelFileError(f"{path}: {kind}; give a model file with -m")


# ---- writing ----


def save_state(
    path: str, state: State, before: Callable[[Identity], None] = lambda identity: None
) -> None:
    """Write a model file atomically; on ModelFileError the old file stays as it was.

    path: from `disk.resolved`.  before: called with the new file's identity before it gets its
    name.  The same state, in the same order, gives the same bytes.  A state that `load_state`
    could not return is a bug in this program: a TypeError, and nothing is written.
    """
    try:
        state = plain(state)
        _check_target(path)
        replace_file(path, lambda file: before(_write(file, state)))
    except RefusedError as error:
        raise TypeError(f"state {error}") from None
    except OSError as error:
        raise unwritable(path, error) from error


def _write(file: BinaryIO, state: State) -> Identity:
    """Write header and state to an empty file, read them back, and return its identity."""
    from nbspam.store.format.writer import write_plain  # here, because most commands only read

    file.write(bytes(HEADER.size))
    write_plain(file, state)
    file.flush()
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    read_plain(memory, HEADER.size)  # raises if the file could not be read later
    identity = Identity(len(memory), _checksum(memory))
    file.seek(0)
    file.write(_header(*identity))
    return identity


def is_model_file(path: str) -> bool:
    """Return whether a path leads to a file that begins as model files do."""
    if not os.path.isfile(path):
        return False
    with open(os.open(path, _OPEN_FLAGS), "rb") as file:
        return file.read(len(PREFIX)) == PREFIX


def _check_target(path: str) -> None:
    """Raise ModelFileError if a file that is not a model would be overwritten."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ModelFileError(
                f"{path}: cannot write the model: not a regular file; give another place with -m"
            )
        with open(os.open(path, _OPEN_FLAGS), "rb") as file:
            start = file.read(len(PREFIX))
        if start not in {b"", PREFIX}:
            raise ModelFileError(
                f"{path}: cannot write the model: the file there is not a model; "
                f"give another place with -m"
            )
