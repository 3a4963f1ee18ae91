"""Plain state ⇄ one joblib file, safely and atomically.

The file is one pickle stream that joblib.load reads as it is.  It opens with a byte
string that the stream drops again: our header (magic, format, length, checksum), at
fixed offsets.  Loading checks it, then reads the rest with `modelreader`, which can
call nothing, so a model file from a stranger cannot run code or ask for memory.

Secret: the bytes of the file, and how they get to the disk whole or not at all.
"""

import contextlib
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from nbspam.disk import Stamp, replace_file, stamp_of_status, unwritable
from nbspam.errors import ModelFileError
from nbspam.store.format.reader import RefusedError, plain, read_plain

# str -> None, bool, int (64 bits), float, str, a list or dict of these, or a numeric array.
State = dict[str, Any]

MAGIC = b"nbspam model"
FORMAT = 2  # 1 had no ledger, sample and days

# PROTO 4, SHORT_BINBYTES 35 | magic | format | file length in bytes | checksum | POP.
# 40 bytes, so that the 64-bit words after it are aligned.
HEADER = struct.Struct("<4s19sIQIc")
PREFIX = b"\x80\x04C\x23" + MAGIC

ROWS, COLUMNS = 256, 512
CHUNK = ROWS * COLUMNS * 8  # bytes: fits a second-level cache


# ---- the header ----


class Identity(NamedTuple):
    """What tells a model from every other, and from itself before it learned more."""

    length: int  # bytes
    checksum: int


def _header(length: int, checksum: int, version: int = FORMAT) -> bytes:
    """Return the first bytes of a file of this format."""
    return HEADER.pack(PREFIX[:4], MAGIC, version, length, checksum, b"0")


def _checksum(memory: mmap.mmap, version: int = FORMAT) -> int:
    """Return the 32-bit checksum of a whole file but for the checksum itself.

    Each chunk of 1 MiB is a table of 64-bit words, and the xor of every row and of
    every column goes into a CRC-32; the rest after the last whole chunk goes in as it
    is.  A flipped bit changes one bit of a row and one of a column, and CRC-32 sees
    every error of two bits; rows see blocks change places, columns see words do so.
    Other damage passes once in 2**32.  About 10 GB/s, where zlib alone reaches 1 to 4.
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
    """Return who the model is; raise ModelFileError unless its header is true of the file."""
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
    # Comparing all the header's bytes also notices damage to those that hold no number.
    header = _header(length, checksum, version)
    if memory[: HEADER.size] != header or checksum != _checksum(memory, version):
        raise ModelFileError(f"{path}: damaged (its checksum does not match); {again}")
    return Identity(length, checksum)


# ---- reading ----


class Snapshot(NamedTuple):
    """A model as it was at one moment."""

    state: State
    identity: Identity
    stamp: Stamp


def load_state(path: str) -> State:
    """Return the state in a model file; its arrays are read-only views of one memory map.

    Nothing is parsed but names and settings, so time goes into the checksum alone.  The
    map stays whole when the model is replaced, because writers never write in place.
    """
    return read_snapshot(path).state


def read_snapshot(path: str) -> Snapshot:
    """Return the state in a model file, and which file that was."""
    memory, stamp = _map(path)
    identity = _check_header(path, memory)
    try:
        return Snapshot(read_plain(memory, HEADER.size), identity, stamp)
    except RefusedError as error:
        raise ModelFileError(f"{path}: {error}; not a model, and refused") from error


def _map(path: str) -> tuple[mmap.mmap, Stamp]:
    """Return a read-only memory map of a regular file that is not empty, and its stamp."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise ModelFileError(f"{path}: {kind}; give a model file with -m")
        if not status.st_size:
            raise ModelFileError(
                f"{path}: empty, not a model; train one with: nbspam train SOURCE -m {path}"
            )
        with open(path, "rb") as file:
            stamp = stamp_of_status(os.fstat(file.fileno()))
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), stamp
    except FileNotFoundError:
        raise ModelFileError(
            f"{path}: no such model; train one with: nbspam train SOURCE -m {path}"
        ) from None
    except PermissionError:
        raise ModelFileError(
            f"{path}: no permission to read the model; ask its owner, or give another with -m"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path, or emptied just now
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(
            f"{path}: cannot read the model: {reason}; give another with -m"
        ) from error


# ---- writing ----


def save_state(path: str, state: State, rest: Callable[[], State] | None = None) -> None:
    """Write a model file, or leave the old one whole and raise ModelFileError.

    rest: what is asked for more, when the state is on its way to the disk.  The same state,
    in the same order, gives the same bytes.  A state that load_state would not give back
    is our bug, a TypeError, and touches nothing.
    """
    try:
        target = os.path.realpath(path)  # a symbolic link stays one
        state = plain(state)
        _check_target(path, target)
        replace_file(target, lambda file: _write(file, _items(file, state, rest)))
    except RefusedError as error:
        raise TypeError(f"state {error}") from None
    except OSError as error:
        raise unwritable(path, error) from error


def _items(
    file: BinaryIO, state: State, rest: Callable[[], State] | None
) -> Iterator[tuple[str, Any]]:
    """Yield a state's items; those written are forced to disk before the rest is asked for."""
    yield from state.items()
    if rest is not None:
        file.flush()
        os.fsync(file.fileno())
        yield from plain(rest()).items()


def _write(file: BinaryIO, items: Iterator[tuple[str, Any]]) -> None:
    """Write header and state to an empty file, and read them back."""
    from nbspam.store.format.writer import write_plain  # only writers pay for it

    file.write(bytes(HEADER.size))
    write_plain(file, items)
    file.flush()
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    read_plain(memory, HEADER.size)  # what cannot be read never replaces what can
    file.seek(0)
    file.write(_header(len(memory), _checksum(memory)))


def _check_target(path: str, target: str) -> None:
    """Raise ModelFileError if something else than a model would be overwritten."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(target).st_mode):
            raise ModelFileError(
                f"{path}: cannot write the model: not a regular file; give another place with -m"
            )
        with open(target, "rb") as file:
            start = file.read(len(PREFIX))
        if start not in {b"", PREFIX}:
            raise ModelFileError(
                f"{path}: holds something else, not a model, and is left as it is; "
                f"give another place with -m"
            )
