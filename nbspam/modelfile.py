"""Plain state ⇄ one joblib file, safely and atomically.

The file is one pickle stream that joblib.load reads as it is.  It opens with a byte
string that the stream drops again: our header (magic, format, length, checksum), at
fixed offsets.  Loading checks it, then reads the rest with a reader of its own that
can call nothing, so a model file from a stranger cannot run code or ask for memory.

Secret: the bytes of the file, and how they get to the disk whole or not at all.
"""

import contextlib
import errno
import math
import mmap
import os
import stat
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from nbspam.errors import ModelFileError

# str -> None, bool, int (64 bits), float, str, a list or dict of these, or a numeric array.
State = dict[str, Any]

MAGIC = b"nbspam model"
FORMAT = 1

# PROTO 4, SHORT_BINBYTES 35 | magic | format | file length in bytes | checksum | POP.
# 40 bytes, so that the 64-bit words after it are aligned.
HEADER = struct.Struct("<4s19sIQIc")
PREFIX = b"\x80\x04C\x23" + MAGIC

MAX_DEPTH = 16  # of lists and dicts within each other, and of the axes of an array
MAX_STEPS = 1_000_000  # pickle codes: bounds the memory that a hostile file can ask for
ALIGNMENT = 16  # joblib's, in bytes

ROWS, COLUMNS = 256, 512
CHUNK = ROWS * COLUMNS * 8  # bytes: fits a second-level cache


class _RefusedError(Exception):
    """The stream holds what no model holds."""


# ---- the header ----


def _header(length: int, checksum: int) -> bytes:
    """Return the first bytes of a file of this format."""
    return HEADER.pack(PREFIX[:4], MAGIC, FORMAT, length, checksum, b"0")


def _checksum(memory: mmap.mmap) -> int:
    """Return the 32-bit checksum of a whole file but for the checksum itself.

    Each chunk of 1 MiB is a table of 64-bit words, and the xor of every row and of
    every column goes into a CRC-32; the rest after the last whole chunk goes in as it
    is.  A flipped bit changes one bit of a row and one of a column, and CRC-32 sees
    every error of two bits; rows see blocks change places, columns see words do so.
    Other damage passes once in 2**32.  About 10 GB/s, where zlib alone reaches 1 to 4.
    """
    crc = zlib.crc32(_header(len(memory), 0))
    body = np.frombuffer(memory, np.uint8, offset=HEADER.size)
    whole = len(body) - len(body) % CHUNK
    for start in range(0, whole, CHUNK):
        table = body[start : start + CHUNK].view(np.uint64).reshape(ROWS, COLUMNS)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=1), crc)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=0), crc)
    return zlib.crc32(body[whole:].data, crc)


def _check_header(path: str, memory: mmap.mmap) -> None:
    """Raise ModelFileError unless the header is ours and true of the file."""
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
    if memory[: HEADER.size] != _header(length, checksum) or checksum != _checksum(memory):
        raise ModelFileError(f"{path}: damaged (its checksum does not match); {again}")


# ---- reading ----


def load_state(path: str) -> State:
    """Return the state in a model file; its arrays are read-only views of one memory map.

    Nothing is parsed but names and settings, so time goes into the checksum alone.  The
    map stays whole when the model is replaced, because writers never write in place.
    """
    memory = _map(path)
    _check_header(path, memory)
    return _read(path, memory)


def _map(path: str) -> mmap.mmap:
    """Return a read-only memory map of a regular file that is not empty."""
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
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
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


def _read(path: str, memory: mmap.mmap) -> State:
    """Return the state after the header, or raise ModelFileError whatever is there."""
    try:
        state = _plain(_Reader(memory).value())
        if type(state) is not dict:
            raise _RefusedError("holds no table of names and values")
        return state
    except _RefusedError as error:
        raise ModelFileError(f"{path}: {error}; not a model, and refused") from None
    except (
        ArithmeticError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise ModelFileError(
            f"{path}: its contents make no sense; not a model, and refused"
        ) from error


class _Name(str):
    """A name the stream refers to: text that stands on the stack, never the thing itself."""


class _Made(str):
    """What the stream asked to be made of a name, waiting for its BUILD."""


WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
NDARRAY = "numpy.ndarray"
DTYPE = "numpy.dtype"
NAMES = {WRAPPER, NDARRAY, DTYPE}
DTYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


class _Reader:
    """Reads the few pickle codes that save_state writes, and nothing else.

    Not a pickle.Unpickler with a strict find_class: that one still calls what it
    allows, with the stream's arguments, and its memo, frames and long integers let a
    small file ask for gigabytes.  Here names are text, and objects come from our code.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory
        self.at = HEADER.size
        self.stack: list[Any] = []
        self.marks: list[int] = []

    def value(self) -> object:
        """Return the one value of the stream, which must end where the file ends."""
        for _ in range(MAX_STEPS):
            code = self.take(1)
            if code == b".":
                if len(self.stack) != 1 or self.marks or self.at != len(self.memory):
                    raise _RefusedError("has something left over at its end")
                return self.stack[0]
            action = ACTIONS.get(code)
            if action is None:
                raise _RefusedError(f"holds pickle code {code!r} at byte {self.at - 1}")
            action(self)
        raise _RefusedError(f"holds more than {MAX_STEPS} pickle codes")

    def take(self, count: int) -> bytes:
        """Return the next bytes of the stream."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.memory):
            raise _RefusedError("ends too early")
        return self.memory[start : self.at]

    def number(self, layout: str) -> Any:
        """Return the next number, as struct lays it out."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def text(self, layout: str) -> str:
        """Return the next text, whose length in bytes stands before it."""
        return self.take(self.number(layout)).decode("utf-8", "surrogatepass")

    def pop(self, count: int) -> list[Any]:
        """Return and drop the top of the stack."""
        if count > len(self.stack):
            raise _RefusedError("takes more than it put down")
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def pop_mark(self) -> list[Any]:
        """Return and drop what stands above the last mark."""
        return self.pop(len(self.stack) - self.marks.pop())

    def extend(self, values: list[Any]) -> None:
        """Append values to the list on the stack."""
        if type(self.stack[-1]) is not list:
            raise _RefusedError("appends to what is not a list")
        self.stack[-1].extend(values)

    def update(self, pairs: list[Any]) -> None:
        """Set keys and values, by turns, in the dict on the stack."""
        # Keys are checked before they are hashed: a tuple nested a million deep would
        # overflow the interpreter's own stack.
        if type(self.stack[-1]) is not dict or any(type(key) is not str for key in pairs[::2]):
            raise _RefusedError("sets a key that is not text")
        self.stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))

    def name(self) -> None:
        """Put down a name: STACK_GLOBAL, without importing or looking up anything."""
        module, attribute = self.pop(2)
        name = f"{_text(module)}.{_text(attribute)}"
        if name not in NAMES:
            raise _RefusedError(f"refers to {name[:100]}")
        self.stack.append(_Name(name))

    def new(self) -> None:
        """Put down an empty array wrapper: NEWOBJ, of nothing else."""
        maker, arguments = self.pop(2)
        if type(maker) is not _Name or maker != WRAPPER or type(arguments) is not tuple:
            raise _RefusedError("makes an object that is not an array")
        self.stack.append(_Made(WRAPPER))

    def reduce(self) -> None:
        """Put down a dtype without byte order: REDUCE, of nothing else."""
        maker, arguments = self.pop(2)
        if type(maker) is not _Name or maker != DTYPE or type(arguments) is not tuple:
            raise _RefusedError("calls what is not a dtype")
        if len(arguments) != 3 or _text(arguments[0]) not in DTYPES:
            raise _RefusedError("has an array that is not of plain numbers")
        self.stack.append(_Made(arguments[0]))

    def build(self) -> None:
        """Put a dtype or an array in the place of what was made for it: BUILD."""
        made, state = self.pop(2)
        if type(made) is not _Made:
            raise _RefusedError("gives a state to what takes none")
        self.stack.append(self.array(state) if made == WRAPPER else _dtype(made, state))

    def array(self, state: dict[str, Any]) -> np.ndarray:
        """Return the array whose bytes stand next in the stream, without copying it."""
        shape, order, dtype = state["shape"], state["order"], state["dtype"]
        if type(shape) is not tuple or len(shape) > MAX_DEPTH or not all(map(_is_size, shape)):
            raise _RefusedError("has an array without a shape")
        if not isinstance(dtype, np.dtype) or _text(order) not in {"C", "F"}:
            raise _RefusedError("has an array without a dtype or order")
        self.take(self.number("B"))
        start, self.at = self.at, self.at + math.prod(shape) * dtype.itemsize
        if start % ALIGNMENT or self.at > len(self.memory):
            raise _RefusedError("has an array that is not aligned or not whole")
        array: np.ndarray = np.ndarray(shape, dtype, self.memory, start, order=order)
        # numpy counts on 0 and 1: masks of other bytes make it write out of bounds.
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise _RefusedError("has a truth value that is neither true nor false")
        return array


def _text(value: object) -> str:
    """Return the value, which must be text."""
    if type(value) is not str:
        raise _RefusedError("has a name that is not text")
    return value


def _is_size(value: object) -> bool:
    """Say whether the value can be one side of an array."""
    return type(value) is int and 0 <= value < 2**63


def _dtype(code: str, state: tuple[Any, ...]) -> np.dtype:
    """Return the dtype of this kind and size, its byte order taken from the state."""
    order = _text(state[1])
    if order not in {"<", ">", "|"}:
        raise _RefusedError("has an array without a byte order")
    return np.dtype(order + code)


# The codes by their numbers in pickle's own documentation (pickletools), protocol 4.
ACTIONS: dict[bytes, Callable[[_Reader], object]] = {
    b"\x80": lambda r: r.number("B"),  # PROTO
    b"\x95": lambda r: r.number("<Q"),  # FRAME: only a hint for reading ahead
    b"N": lambda r: r.stack.append(None),
    b"\x88": lambda r: r.stack.append(True),
    b"\x89": lambda r: r.stack.append(False),
    b"K": lambda r: r.stack.append(r.number("B")),
    b"M": lambda r: r.stack.append(r.number("<H")),
    b"J": lambda r: r.stack.append(r.number("<i")),
    b"\x8a": lambda r: r.stack.append(
        int.from_bytes(r.take(r.number("B")), "little", signed=True)
    ),
    b"G": lambda r: r.stack.append(r.number(">d")),
    b"\x8c": lambda r: r.stack.append(r.text("B")),
    b"X": lambda r: r.stack.append(r.text("<I")),
    b"(": lambda r: r.marks.append(len(r.stack)),
    b")": lambda r: r.stack.append(()),
    b"]": lambda r: r.stack.append([]),
    b"}": lambda r: r.stack.append({}),
    b"\x85": lambda r: r.stack.append(tuple(r.pop(1))),
    b"\x86": lambda r: r.stack.append(tuple(r.pop(2))),
    b"\x87": lambda r: r.stack.append(tuple(r.pop(3))),
    b"t": lambda r: r.stack.append(tuple(r.pop_mark())),
    b"a": lambda r: r.extend(r.pop(1)),
    b"e": lambda r: r.extend(r.pop_mark()),
    b"s": lambda r: r.update(r.pop(2)),
    b"u": lambda r: r.update(r.pop_mark()),
    b"\x93": _Reader.name,
    b"\x81": _Reader.new,
    b"R": _Reader.reduce,
    b"b": _Reader.build,
}


def _plain(value: Any, depth: int = 0) -> Any:
    """Return the value made of plain types only, or raise _RefusedError; both ways."""
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nests deeper than {MAX_DEPTH}")
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if value is None or kind in {bool, float, str}:
        return value
    if kind is int and -(2**63) <= value < 2**64:
        return value
    if kind in {np.ndarray, np.memmap} and value.dtype.str[1:] in DTYPES:
        # One byte order for all machines, so that the same state is the same bytes.
        dtype = np.dtype("<" + value.dtype.str[1:])
        return value.astype(dtype, copy=False).view(dtype, np.ndarray)
    if kind is list:
        return [_plain(item, depth + 1) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    raise _RefusedError(f"holds a {kind.__name__} that does not belong in a model")


# ---- writing ----


def save_state(path: str, state: State) -> None:
    """Write a model file, or leave the old one whole and raise ModelFileError.

    The same state, in the same order, gives the same bytes.  A state that load_state
    would not give back is our bug, a TypeError, and touches nothing.
    """
    try:
        _replace(path, os.path.realpath(path), _plain(state))  # a symbolic link stays one
    except _RefusedError as error:
        raise TypeError(f"state {error}") from None
    except OSError as error:
        raise _unwritable(path, error) from error


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Make other writers of this model wait; readers never have to.

    The lock is on a file beside the model, as the model itself is replaced.  It ends
    with its process, so none is ever stale, and its empty file stays: removing it would
    let two writers hold two files of one name.
    """
    target = os.path.realpath(path)
    try:
        _make_folder(os.path.dirname(target))
        descriptor = os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        try:
            _adopt(descriptor, target)
            _lock(descriptor)
        except OSError as error:
            raise _unwritable(path, error) from error
        yield
    finally:
        os.close(descriptor)


def _replace(path: str, target: str, state: State) -> None:
    """Write the state beside the target, then put it in the target's place."""
    _check_target(path, target)
    folder = os.path.dirname(target)
    _make_folder(folder)
    import tempfile  # only writers pay for it, as for joblib

    descriptor, temporary = tempfile.mkstemp(prefix=".nbspam-", dir=folder)
    try:
        with open(descriptor, "w+b") as file:
            _adopt(descriptor, target)
            _write(file, state)
        os.replace(temporary, target)
    except BaseException:  # an interrupt too
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _write(file: BinaryIO, state: State) -> None:
    """Write header and state to an empty file, read them back, and force them to disk."""
    # joblib 1.6 or later: earlier ones, asked to load a file, read arrays of objects
    # with an unpickler of their own, behind the back of one that refuses to.
    from joblib.numpy_pickle import NumpyPickler

    file.write(bytes(HEADER.size))
    pickler = NumpyPickler(file, protocol=4)
    # No memo: with one, bytes depend on which equal strings happen to be one object.
    pickler.fast = True
    pickler.dump(state)
    file.flush()
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _Reader(memory).value()  # what cannot be read never replaces what can
    file.seek(0)
    file.write(_header(len(memory), _checksum(memory)))
    file.flush()
    os.fsync(file.fileno())


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


def _make_folder(folder: str) -> None:
    """Make a folder and those above it, for the owner alone."""
    if not os.path.exists(folder):
        _make_folder(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.mkdir(folder, 0o700)


def _adopt(descriptor: int, target: str) -> None:
    """Give a new file the owner and mode of the model, if there is one and we may."""
    if sys.platform != "win32":
        with contextlib.suppress(FileNotFoundError, PermissionError):
            old = os.stat(target)
            for owner in (-1, old.st_gid), (old.st_uid, -1):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, old.st_mode & 0o777)


def _sync_folder(folder: str) -> None:
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


def _unwritable(path: str, error: OSError) -> ModelFileError:
    """Return the error for a model that the system does not let us write."""
    room = "free some space or " if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return ModelFileError(
        f"{path}: cannot write the model: {error.strerror or error}; "
        f"{room}give another place with -m"
    )
