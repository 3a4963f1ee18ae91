"""Reading plain values from a pickle stream that may be hostile.

It reads the few codes that joblib writes for text, numbers, lists, dicts and numeric arrays,
calls nothing that the stream names, and takes memory in proportion to the stream's length.

Secret: the pickle codes, and the attacks that are possible with them.
"""

import math
import mmap
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

MAX_DEPTH = 16  # of nested lists and dicts; also the number of axes of an array
MAX_STEPS = 1_000_000  # pickle codes; bounds the memory that a hostile file can make us use
ALIGNMENT = 16  # joblib's, in bytes


class RefusedError(Exception):
    """The stream contains something that no model contains."""


def read_plain(memory: mmap.mmap, start: int, max_steps: int = MAX_STEPS) -> dict[str, Any]:
    """Return the plain dict in the stream from `start` to the end of the memory.

    Its arrays are read-only views of the memory.  Raises RefusedError for any other content,
    and nothing else.  max_steps: pickle codes that are read at most.
    """
    try:
        value = plain(_Reader(memory, start).value(max_steps))
    except (
        ArithmeticError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise RefusedError("its contents make no sense") from error
    if type(value) is not dict:
        raise RefusedError("is not a dict of names and values")
    return value


class _Name(str):
    """A name of a class in the stream; only the text is put on the stack, never the class."""


class _Made(str):
    """The name of a wrapper or dtype that the stream has made and not yet built."""


WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
NDARRAY = "numpy.ndarray"
DTYPE = "numpy.dtype"
NAMES = {WRAPPER, NDARRAY, DTYPE}
DTYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


class _Reader:
    """A reader of the few pickle codes that joblib writes for a plain state.

    It is not a pickle.Unpickler with a strict find_class: that would still call the classes it
    allows with the stream's arguments, and its memo, frames and long integers would let a
    small file allocate gigabytes.  Here names are text, and only our code makes objects.
    """

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self.memory = memory
        self.at = start
        self.stack: list[Any] = []
        self.marks: list[int] = []

    def value(self, max_steps: int) -> object:
        """Return the only value of the stream, which must end where the file ends."""
        for _ in range(max_steps):
            code = self.take(1)
            if code == b".":
                if len(self.stack) != 1 or self.marks or self.at != len(self.memory):
                    raise RefusedError("has something left at its end")
                return self.stack[0]
            action = ACTIONS.get(code)
            if action is None:
                raise RefusedError(f"holds pickle code {code!r} at byte {self.at - 1}")
            action(self)
        raise RefusedError(f"holds more than {max_steps} pickle codes")

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.memory):
            raise RefusedError("ends too early")
        return self.memory[start : self.at]

    def number(self, layout: str) -> Any:
        """Return the next number, of this `struct` layout."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def text(self, layout: str) -> str:
        """Return the next text, preceded by its length in bytes."""
        return self.take(self.number(layout)).decode("utf-8", "surrogatepass")

    def pop(self, count: int) -> list[Any]:
        """Remove and return the top `count` values of the stack."""
        if count > len(self.stack):
            raise RefusedError("takes more values than it has put on its stack")
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def pop_mark(self) -> list[Any]:
        """Remove and return the values above the last mark."""
        return self.pop(len(self.stack) - self.marks.pop())

    def extend(self, values: list[Any]) -> None:
        """Append values to the list on the stack."""
        if type(self.stack[-1]) is not list:
            raise RefusedError("appends to something that is not a list")
        self.stack[-1].extend(values)

    def update(self, pairs: list[Any]) -> None:
        """Set alternating keys and values in the dict on the stack."""
        # Keys are checked before they are hashed: hashing a tuple nested a million deep would
        # overflow the interpreter's stack.
        if type(self.stack[-1]) is not dict or any(type(key) is not str for key in pairs[::2]):
            raise RefusedError("sets a key that is not text")
        self.stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))

    def name(self) -> None:
        """STACK_GLOBAL: push a name, without importing or looking up anything."""
        module, attribute = self.pop(2)
        name = f"{_text(module)}.{_text(attribute)}"
        if name not in NAMES:
            raise RefusedError(f"refers to {name[:100]}")
        self.stack.append(_Name(name))

    def new(self) -> None:
        """NEWOBJ: push an empty array wrapper; nothing else can be made."""
        maker, arguments = self.pop(2)
        if type(maker) is not _Name or maker != WRAPPER or type(arguments) is not tuple:
            raise RefusedError("makes an object that is not an array")
        self.stack.append(_Made(WRAPPER))

    def reduce(self) -> None:
        """REDUCE: push a dtype without byte order; nothing else can be called."""
        maker, arguments = self.pop(2)
        if type(maker) is not _Name or maker != DTYPE or type(arguments) is not tuple:
            raise RefusedError("calls something that is not a dtype")
        if len(arguments) != 3 or _text(arguments[0]) not in DTYPES:
            raise RefusedError("has an array of something other than plain numbers")
        self.stack.append(_Made(arguments[0]))

    def build(self) -> None:
        """BUILD: replace what was made by the finished array or dtype."""
        made, state = self.pop(2)
        if type(made) is not _Made:
            raise RefusedError("gives a state to something that takes none")
        self.stack.append(self.array(state) if made == WRAPPER else _dtype(made, state))

    def array(self, state: dict[str, Any]) -> np.ndarray:
        """Return the array whose bytes follow in the stream, as a view."""
        shape, order, dtype = state["shape"], state["order"], state["dtype"]
        if type(shape) is not tuple or len(shape) > MAX_DEPTH or not all(map(_is_size, shape)):
            raise RefusedError("has an array without a shape")
        if not isinstance(dtype, np.dtype) or _text(order) not in {"C", "F"}:
            raise RefusedError("has an array without a dtype or order")
        self.take(self.number("B"))
        start, self.at = self.at, self.at + math.prod(shape) * dtype.itemsize
        if start % ALIGNMENT or self.at > len(self.memory):
            raise RefusedError("has an array that is not aligned or not whole")
        array: np.ndarray = np.ndarray(shape, dtype, self.memory, start, order=order)
        # numpy relies on 0 and 1: a mask of other bytes makes it write out of bounds.
        if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise RefusedError("has a truth value that is neither true nor false")
        return array


def _text(value: object) -> str:
    """Return the value if it is text; else raise RefusedError."""
    if type(value) is not str:
        raise RefusedError("has a name that is not text")
    return value


def _is_size(value: object) -> bool:
    """Return whether the value can be the length of an axis."""
    return type(value) is int and 0 <= value < 2**63


def _dtype(code: str, state: tuple[Any, ...]) -> np.dtype:
    """Return the dtype of this kind and size, with the byte order in the state."""
    order = _text(state[1])
    if order not in {"<", ">", "|"}:
        raise RefusedError("has an array without a byte order")
    return np.dtype(order + code)


# The codes of protocol 4; pickletools documents them.
ACTIONS: dict[bytes, Callable[[_Reader], object]] = {
    b"\x80": lambda r: r.number("B"),  # PROTO
    b"\x95": lambda r: r.number("<Q"),  # FRAME: a hint for reading ahead, ignored
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


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value as plain types only; raises RefusedError.

    Used before writing and after reading.
    """
    if depth > MAX_DEPTH:
        raise RefusedError(f"nests deeper than {MAX_DEPTH}")
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if value is None or kind in {bool, float, str}:
        return value
    if kind is int and -(2**63) <= value < 2**64:
        return value
    if kind in {np.ndarray, np.memmap} and value.dtype.str[1:] in DTYPES:
        # The byte order is the same on all machines, so that equal states give equal bytes.
        dtype = np.dtype("<" + value.dtype.str[1:])
        return value.astype(dtype, copy=False).view(dtype, np.ndarray)
    if kind is list:
        return [plain(item, depth + 1) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    raise RefusedError(f"holds a {kind.__name__}, which does not belong in a model")
