"""Saving a plain state as one joblib file, and loading it, safely and atomically.

The file is a pickle stream that joblib.load can read.  It begins with a byte string that the
stream itself drops: our header (magic, format, length, checksum), at fixed offsets.  Loading
checks the header and reads the rest as the one form in which this module writes it.  Nothing that
a stream names is looked up or called, so a stranger's file cannot run code or use up memory.
"""

import contextlib
import errno
import math
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nbspam import disk
from nbspam.errors import ModelFileError

# Values are None, bool, int (64 bits), float, str, numeric arrays, or lists and dicts of these.
State = dict[str, Any]

MAGIC = b"nbspam model"
FORMAT = 1

# PROTO 4, SHORT_BINBYTES 35 | magic | format | file length in bytes | checksum | POP.
# It has 40 bytes, so that the 64-bit words after it are aligned.
_HEADER = struct.Struct("<4s19sIQIc")
PREFIX = b"\x80\x04C\x23" + MAGIC

_ROWS, _COLUMNS = 256, 512
CHUNK = _ROWS * _COLUMNS * 8  # bytes: fits a second-level cache

# Bytes of a model that is read into memory.  A larger one is mapped: then each process of the
# machine shares it, and dies of SIGBUS when somebody cuts the file off in its place.
MAX_COPIED = 64 << 20
MAX_DEPTH = 16  # of nested lists and dicts; also the number of axes of an array
MAX_VALUES = 1_000_000  # bounds the memory that a hostile file can make us use
ALIGNMENT = 16  # joblib's, in bytes


# ---- the stream: the pickle codes of plain values, which joblib.load reads too ----
#
# joblib's writer is not used, because importing joblib takes longer than writing a model of ten
# thousand messages.  A general reader of pickles would have to bound its memo, its frames, its
# long integers and deeply nested keys; this one knows a single spelling of each value.

_NONE, _TRUE, _FALSE, _INT, _FLOAT, _TEXT = b"N", b"\x88", b"\x89", b"\x8a", b"G", b"X"
_LIST, _LIST_END, _DICT, _DICT_END, _STOP = b"](", b"e", b"}(", b"u", b"."
_TUPLE, _TUPLE_END = b"(", b"t"
_CONSTANTS = {_NONE: None, _TRUE: True, _FALSE: False}


class RefusedError(Exception):
    """The stream contains something that no model contains."""


def _name(module: str, name: str) -> bytes:
    texts = (struct.pack("<cB", b"\x8c", len(text)) + text.encode() for text in (module, name))
    return b"".join(texts) + b"\x93"


def _int(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return _INT + bytes([len(data)]) + data


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return _TEXT + struct.pack("<I", len(data)) + data


def _dtype(dtype: np.dtype) -> bytes:
    """Return the codes of a numeric dtype such as <f8, which make it and set its byte order."""
    order, kind = dtype.str[0], dtype.str[1:]
    made = _TUPLE + _text(kind) + _FALSE + _TRUE + _TUPLE_END
    numbers = _int(-1) + _int(-1) + _int(0)
    state = _TUPLE + _int(3) + _text(order) + 3 * _NONE + numbers + _TUPLE_END
    return _name("numpy", "dtype") + made + b"R" + state + b"b"


# The byte order is the same on all machines, so that equal states give equal bytes.
DTYPES = [np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
DTYPES += [np.dtype(kind) for kind in ("<f2", "<f4", "<f8", "?")]
_DTYPE_CODES = {_dtype(dtype): dtype for dtype in DTYPES}
(_DTYPE_LENGTH,) = {len(codes) for codes in _DTYPE_CODES}
# joblib's wrapper of an array is made with no arguments; its state follows.
_ARRAY = (
    _name("joblib.numpy_pickle", "NumpyArrayWrapper")
    + b")\x81"
    + _DICT
    + _text("subclass")
    + _name("numpy", "ndarray")
    + _text("shape")
    + _TUPLE
)
_ORDERS: dict[bytes, Literal["C", "F"]] = {
    _TUPLE_END + _text("order") + _text(order): order for order in ("C", "F")
}
(_ORDER_LENGTH,) = {len(codes) for codes in _ORDERS}
_ARRAY_END = (
    _text("allow_mmap")
    + _TRUE
    + _text("numpy_array_alignment_bytes")
    + _int(ALIGNMENT)
    + _DICT_END
    + b"b"
)


def write_plain(file: BinaryIO, state: State) -> None:
    """Write a plain state, with its arrays aligned; raises RefusedError for any other."""
    for piece in plain_pieces(state):
        if isinstance(piece, np.ndarray):
            padding = ALIGNMENT - (file.tell() + 1) % ALIGNMENT
            file.write(bytes([padding]) + b"\xff" * padding)
            file.write(piece.ravel(order="K").view(np.uint8).data)
        else:
            file.write(piece)
    file.write(_STOP)


def plain_pieces(value: Any, depth: int = 0) -> Iterator[bytes | np.ndarray]:
    """Yield the codes of a value of plain types; the numbers of an array as the array itself.

    Raises RefusedError for values of other types.
    """
    if depth > MAX_DEPTH:
        raise RefusedError(f"nests deeper than {MAX_DEPTH}")
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if value is None:
        yield _NONE
    elif kind is bool:
        yield _TRUE if value else _FALSE
    elif kind is int and -(2**63) <= value < 2**64:
        yield _int(value)
    elif kind is float:
        yield _FLOAT + struct.pack(">d", value)
    elif kind is str:
        yield _text(value)
    elif kind is list:
        yield _LIST
        for item in value:
            yield from plain_pieces(item, depth + 1)
        yield _LIST_END
    elif kind is dict and all(type(key) is str for key in value):
        yield _DICT
        for key, item in value.items():
            yield _text(key)
            yield from plain_pieces(item, depth + 1)
        yield _DICT_END
    elif kind in {np.ndarray, np.memmap} and (dtype := value.dtype.newbyteorder("<")) in DTYPES:
        array = value.astype(dtype, copy=False).view(dtype, np.ndarray)
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        order = "C" if array.flags.c_contiguous else "F"
        yield _ARRAY + b"".join(map(_int, array.shape)) + _TUPLE_END
        yield _text("order") + _text(order) + _text("dtype") + _dtype(dtype) + _ARRAY_END
        yield array
    else:
        raise RefusedError(f"holds a {kind.__name__}, which does not belong in a model")


def read_plain_dict(memory: mmap.mmap, start: int) -> State:
    """Return the plain dict in the stream from `start` to the end of the memory.

    Its arrays are read-only views of the memory.  Raises RefusedError for any other content,
    and nothing else.
    """
    reader = _Reader(memory, start)
    try:
        value = reader.value()
        reader.expect(_STOP)
    except (OverflowError, ValueError, struct.error) as error:
        raise RefusedError("its contents make no sense") from error
    if type(value) is not dict or reader.at != len(memory):
        raise RefusedError("is not a dict of names and values")
    return value


class _Reader:
    """Reads what `write_plain` writes; every length is bounded by the memory's."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self.memory, self.at, self.left = memory, start, MAX_VALUES

    def take(self, count: int) -> bytes:
        start, self.at = self.at, self.at + count
        if self.at > len(self.memory):
            raise RefusedError("ends too early")
        return self.memory[start : self.at]

    def is_next(self, codes: bytes) -> bool:
        """Return whether these codes follow; if so, skip them."""
        found = self.memory[self.at : self.at + len(codes)] == codes
        self.at += found * len(codes)
        return found

    def expect(self, codes: bytes) -> None:
        if not self.is_next(codes):
            raise RefusedError(f"holds at byte {self.at} what no model holds")

    def value(self, depth: int = 0) -> Any:
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            raise RefusedError("holds more values than a model")
        code = self.memory[self.at : self.at + 1]
        if code == _TEXT:
            return self.text()
        if code == _INT:
            return self.whole()
        if code in _CONSTANTS:
            self.at += 1
            return _CONSTANTS[code]
        if code == _FLOAT:
            self.at += 1
            return struct.unpack(">d", self.take(8))[0]
        if code == _DICT[:1]:
            return self.named_values(depth)
        if code == _LIST[:1]:
            return self.values(depth)
        return self.array()

    def text(self) -> str:
        self.expect(_TEXT)
        (length,) = struct.unpack("<I", self.take(4))
        return self.take(length).decode("utf-8", "surrogatepass")

    def whole(self) -> int:
        self.expect(_INT)
        value = int.from_bytes(self.take(self.take(1)[0]), "little", signed=True)
        if not -(2**63) <= value < 2**64:
            raise RefusedError("holds a number of more than 64 bits")
        return value

    def values(self, depth: int) -> list[Any]:
        self.expect(_LIST)
        values = []
        while not self.is_next(_LIST_END):
            values.append(self.value(depth + 1))
        return values

    def named_values(self, depth: int) -> State:
        self.expect(_DICT)
        values = {}
        while not self.is_next(_DICT_END):
            key = self.text()
            values[key] = self.value(depth + 1)
        return values

    def array(self) -> np.ndarray:
        """Return the next array, as a view of its bytes in the stream."""
        self.expect(_ARRAY)
        shape: list[int] = []
        while self.memory[self.at : self.at + 1] == _INT and len(shape) < MAX_DEPTH:
            shape.append(self.whole())
        order = _ORDERS.get(self.take(_ORDER_LENGTH))
        self.expect(_text("dtype"))
        dtype = _DTYPE_CODES.get(self.take(_DTYPE_LENGTH))
        self.expect(_ARRAY_END)
        if order is None or dtype is None or min(shape, default=0) < 0:
            raise RefusedError("has an array of something other than plain numbers")
        self.take(self.take(1)[0])
        start, self.at = self.at, self.at + math.prod(shape) * dtype.itemsize
        if start % ALIGNMENT or self.at > len(self.memory):
            raise RefusedError("has an array that is not aligned or not whole")
        array: np.ndarray = np.ndarray(shape, dtype, self.memory, start, order=order)
        array.flags.writeable = False  # others may read the same memory
        # numpy relies on 0 and 1: a mask of other bytes makes it write out of bounds.
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise RefusedError("has a truth value that is neither true nor false")
        return array


# ---- the header ----


class Identity(NamedTuple):
    """Identifies one state of one model: it changes whenever the model file is rewritten."""

    length: int  # bytes
    checksum: int


def _header(length: int, checksum: int) -> bytes:
    return _HEADER.pack(PREFIX[:4], MAGIC, FORMAT, length, checksum, b"0")


def _checksum(memory: mmap.mmap) -> int:
    """Return the 32-bit checksum of a file, computed with 0 in place of the checksum.

    Each chunk of 1 MiB is a table of 64-bit words.  The xor of every row and of every column
    goes into a CRC-32, and then the rest after the last whole chunk.  A flipped bit changes
    one bit of a row and one of a column, and CRC-32 detects all errors of two bits; rows
    detect swapped blocks, columns swapped words.  Other damage is missed once in 2**32.

    Every start of `classify` computes it: for a model of 16 MB it takes 1.0 ms of processor
    time, zlib.crc32 of the whole file 3.9.
    """
    crc = zlib.crc32(_header(len(memory), 0))
    body = np.frombuffer(memory, np.uint8, offset=_HEADER.size)
    whole = len(body) - len(body) % CHUNK
    for start in range(0, whole, CHUNK):
        table = body[start : start + CHUNK].view(np.uint64).reshape(_ROWS, _COLUMNS)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=1), crc)
        crc = zlib.crc32(np.bitwise_xor.reduce(table, axis=0), crc)
    return zlib.crc32(body[whole:].data, crc)


def _check_header(path: str, memory: mmap.mmap) -> Identity:
    """Return the identity of a model; raise ModelFileError unless its header fits the file."""
    again = "write it again as it was made, or restore a copy"
    if memory[: len(PREFIX)] != PREFIX:
        raise ModelFileError(f"{path}: not a model; give a file that nbspam train or import wrote")
    if len(memory) < _HEADER.size:
        raise ModelFileError(f"{path}: truncated within its first {_HEADER.size} bytes; {again}")
    _, _, version, length, checksum, _ = _HEADER.unpack_from(memory)
    if version != FORMAT:
        raise ModelFileError(
            f"{path}: written by format {version}, this program reads {FORMAT}; upgrade nbspam"
        )
    if length != len(memory):
        change = "truncated" if length > len(memory) else "longer than it was written"
        raise ModelFileError(
            f"{path}: {change} ({len(memory)} bytes, its header says {length}); {again}"
        )
    # Comparing the whole header also detects damage in bytes that are not part of a number.
    if memory[: _HEADER.size] != _header(length, checksum) or checksum != _checksum(memory):
        raise ModelFileError(f"{path}: damaged (its checksum does not match); {again}")
    return Identity(length, checksum)


# ---- reading ----


class Snapshot(NamedTuple):
    """A model file as it was at one moment."""

    state: State
    identity: Identity
    stamp: disk.Stamp


def load_state(path: str) -> State:
    """Return the state in a model file; its arrays are read-only views of one memory map.

    Only names and settings are parsed, so nearly all of the time goes into the checksum.  The
    map stays valid when the model is replaced, because writers never write in place.
    Raises ModelFileError.
    """
    return read_snapshot(path).state


def read_snapshot(path: str, copy: str | None = None) -> Snapshot:
    """Return the state in a model file with its identity; raises ModelFileError.

    copy: where a copy is that is read in its place, so that the state stays whole even if the
    file is changed in its place: IN_MEMORY, or the path of a file that processes share.
    """
    memory, stamp = _map(path, copy)
    try:
        identity = _check_header(path, memory)
        return Snapshot(read_plain_dict(memory, _HEADER.size), identity, stamp)
    except RefusedError as error:
        raise ModelFileError(
            f"{path}: {error}, so it is not a model; give a file that nbspam wrote"
        ) from error
    except ModelFileError:
        if copy:  # made while the file was changed in its place
            remove_copy(copy)
        raise


def identity_at(path: str) -> Identity | None:
    """Return the identity that the header of a model file states, None if it states none."""
    with contextlib.suppress(OSError, struct.error):  # it may be shorter than a header
        head = _first_bytes(path, _HEADER.size)
        _, _, _, length, checksum, _ = _HEADER.unpack(head)
        return Identity(length, checksum) if head.startswith(PREFIX) else None
    return None


def is_model_file(path: str) -> bool:
    """Return whether a path leads to a file that begins as model files do."""
    return os.path.isfile(path) and _first_bytes(path, len(PREFIX)) == PREFIX


def _first_bytes(path: str, count: int) -> bytes:
    with open(os.open(path, disk.READ_FLAGS), "rb") as file:
        return file.read(count)


# The judge and the teacher of a process read one copy.
_COPIES: WeakValueDictionary[disk.Stamp, mmap.mmap] = WeakValueDictionary()
IN_MEMORY = ""  # as the path of a copy


def _memory(descriptor: int, stamp: disk.Stamp, copy: str | None, path: str) -> mmap.mmap:
    """Return a map of a file, or of its copy; zeros where it has become shorter."""
    size = stamp[2]
    memory = None if copy is None else _COPIES.get(stamp)
    if memory is None and copy:
        # One process at a time: two that make a copy at once would not share it.
        with contextlib.suppress(OSError, ModelFileError), disk.locked(copy, like=path):
            # If there is room, and permission.
            memory = _copy_on_disk(descriptor, size, copy, path)
    if memory is None and (copy is None or size > MAX_COPIED):
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    if memory is None:
        memory = mmap.mmap(-1, size)
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(0)  # the disk may have taken a part
            file.readinto(memory)
    _COPIES[stamp] = memory  # not before it is whole: other threads take it from there
    return memory


def _copy_on_disk(descriptor: int, size: int, copy: str, path: str) -> mmap.mmap:
    """Return a map of the copy of a file; makes the copy unless another process has made it.

    It is not forced to disk: `remove_copy` comes before a server starts.
    """
    import shutil  # here, because it brings decompressors, and only servers make copies

    head = os.pread(descriptor, _HEADER.size, 0)
    with contextlib.suppress(FileNotFoundError), open(disk.open_own(copy, path), "rb") as known:
        if known.read(_HEADER.size) == head and os.fstat(known.fileno()).st_size == size:
            return mmap.mmap(known.fileno(), 0, access=mmap.ACCESS_READ)
    with (
        disk.replacing(copy, like=path, is_synced=False) as file,
        open(descriptor, "rb", closefd=False) as source,
    ):
        shutil.copyfileobj(source, file, CHUNK)
        file.truncate(size)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def remove_copy(copy: str) -> None:
    """Remove a copy; processes that have mapped it keep it."""
    for name in (copy, f"{copy}.lock"):
        with contextlib.suppress(OSError):
            os.unlink(name)


def _map(path: str, copy: str | None) -> tuple[mmap.mmap, disk.Stamp]:
    """Return a map or a copy of a model file, and its stamp; raises ModelFileError."""
    try:
        _check_kind(path, os.stat(path))  # before it is opened: opening a device can do harm
        with open(os.open(path, disk.READ_FLAGS), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            _check_kind(path, status)
            if not status.st_size:
                raise ModelFileError(f"{path}: empty, not a model; write it again, or remove it")
            stamp = disk.stamp_of_status(status)
            return _memory(file.fileno(), stamp, copy, path), stamp
    except FileNotFoundError:
        raise ModelFileError(
            f"{path}: no such model; train one with: nbspam train SOURCE -m {path}"
        ) from None
    except PermissionError:
        raise ModelFileError(
            f"{path}: no permission to read the model; ask its owner, or give another with -m"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the path, or the file is now empty
        code = getattr(error, "errno", None) or 0
        if code == errno.ENOMEM:
            raise MemoryError from error
        reason = getattr(error, "strerror", None) or error
        advice = disk.REMEDIES.get(code, "give another with -m")
        raise ModelFileError(f"{path}: cannot read the model: {reason}; {advice}") from error


def _check_kind(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ModelFileError(f"{path}: {kind}; give a model file")


# ---- writing ----


@contextlib.contextmanager
def replacing_state(path: str, state: State) -> Iterator[Identity]:
    """Write a model file, and yield its identity; after the block it has its name.

    path: from `disk.resolved`.  If the block fails, or on ModelFileError, the old file stays as it
    was.  The same state, in the same order, gives the same bytes.  A state that `load_state`
    could not return is a bug in this program: a TypeError, and nothing is written.
    """
    try:
        check_target(path)
        with disk.replacing(path) as file:
            yield _write(file, state)
    except RefusedError as error:
        raise TypeError(f"state {error}") from None
    except OSError as error:
        raise disk.unwritable(path, error) from error


def _write(file: BinaryIO, state: State) -> Identity:
    """Write header and state to an empty file, read them back, and return its identity."""
    file.write(bytes(_HEADER.size))
    write_plain(file, state)
    file.flush()
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    read_plain_dict(memory, _HEADER.size)  # raises if the file could not be read later
    identity = Identity(len(memory), _checksum(memory))
    file.seek(0)
    file.write(_header(*identity))
    file.flush()
    disk.sync_file(file.fileno())  # before the lock is taken, if it is not yet
    return identity


def check_target(path: str) -> None:
    """Raise ModelFileError if a file that is not a model would be overwritten."""
    with disk.writing(path), contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ModelFileError(
                f"{path}: cannot be written: not a regular file; give another place"
            )
        if _first_bytes(path, len(PREFIX)) not in {b"", PREFIX}:
            raise ModelFileError(
                f"{path}: cannot be written: the file there is not a model; give another place"
            )
