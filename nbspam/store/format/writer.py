"""Writing plain values as a pickle stream that joblib and `reader` can read.

joblib's writer is not used, because importing joblib takes longer than writing a model of ten
thousand messages.

Secret: the pickle codes of text, numbers, lists, dicts and numeric arrays.
"""

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from nbspam.store.format.reader import ALIGNMENT, DTYPE, NDARRAY, WRAPPER


def write_plain(file: BinaryIO, state: dict[str, Any]) -> None:
    """Write a plain state (see `reader.plain`), with its arrays aligned."""
    file.write(b"\x80\x04")  # PROTO 4
    for piece in _encoded(state):
        if isinstance(piece, np.ndarray):
            padding = ALIGNMENT - (file.tell() + 1) % ALIGNMENT
            file.write(bytes([padding]) + b"\xff" * padding)
            file.write(piece.ravel(order="K").view(np.uint8).data)
        else:
            file.write(piece)
    file.write(b".")


def _encoded(value: Any) -> Iterator[bytes | np.ndarray]:
    """Yield the codes of a value; the numbers of an array as the array itself."""
    if value is None:
        yield b"N"
    elif value is True or value is False:
        yield b"\x88" if value else b"\x89"
    elif isinstance(value, int):
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        yield b"\x8a" + bytes([len(data)]) + data
    elif isinstance(value, float):
        yield struct.pack(">cd", b"G", value)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        yield struct.pack("<cI", b"X", len(data)) + data
    elif isinstance(value, np.ndarray):
        yield from _encoded_array(value)
    elif isinstance(value, dict):
        yield b"}("
        for key, item in value.items():
            yield from _encoded(key)
            yield from _encoded(item)
        yield b"u"
    elif isinstance(value, _Codes):
        yield value.codes
    else:
        yield (b"(" if isinstance(value, tuple) else b"](")
        for item in value:
            yield from _encoded(item)
        yield (b"t" if isinstance(value, tuple) else b"e")


def _encoded_array(array: np.ndarray) -> Iterator[bytes | np.ndarray]:
    """Yield the codes of joblib's wrapper of an array, and then the array."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = np.ascontiguousarray(array)
    wrapper = {
        "subclass": _Codes(_name(NDARRAY)),
        "shape": array.shape,
        "order": "C" if array.flags.c_contiguous else "F",
        "dtype": _Codes(_dtype(array.dtype.str)),
        "allow_mmap": True,
        "numpy_array_alignment_bytes": ALIGNMENT,
    }
    yield _name(WRAPPER) + b")\x81"  # made with an empty tuple of arguments
    yield from _encoded(wrapper)
    yield b"b"
    yield array


class _Codes(NamedTuple):
    """Codes to be written as they are."""

    codes: bytes


def _dtype(code: str) -> bytes:
    """Return the codes of a numeric dtype such as <f8, which make it and set its byte order."""
    made = b"".join(map(bytes, _encoded((code[1:], False, True))))
    state = b"".join(map(bytes, _encoded((3, code[0], None, None, None, -1, -1, 0))))
    return _name(DTYPE) + made + b"R" + state + b"b"


def _name(name: str) -> bytes:
    """Return the codes of a dotted name of a class."""
    texts = [text.encode() for text in name.rpartition(".")[::2]]
    return b"".join(struct.pack("<cB", b"\x8c", len(data)) + data for data in texts) + b"\x93"
