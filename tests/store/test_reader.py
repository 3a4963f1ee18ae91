"""Streams of values: only what the writer writes is read, and hostile ones take little memory."""

import io
import mmap
import struct
import tracemalloc

import numpy as np
import pytest

from nbspam.store.modelfile import RefusedError, read_plain_dict, write_plain

START = 40  # bytes before the stream, as in a model file


def stream(body):
    """Return memory with a stream in it after other bytes."""
    memory = mmap.mmap(-1, START + len(body))
    memory[START:] = body
    return memory


def refusal(body, **options):
    """Return why the reader refuses a stream."""
    with pytest.raises(RefusedError) as caught:
        read_plain_dict(stream(body), START, **options)
    return str(caught.value)


def written(state):
    """Return the stream of a state."""
    file = io.BytesIO(bytes(START))
    file.seek(START)
    write_plain(file, state)
    return file.getvalue()[START:]


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def whole(value):
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


GOOD = written({"a": np.array([5])})


def with_shape(*shape):
    """Return the stream of an array that claims another shape."""
    return GOOD.replace(text("shape") + b"(" + whole(1), text("shape") + b"(" + b"".join(shape))


HOSTILE = {
    "nothing": b"",
    "only stop": b".",
    "no stop": GOOD[:-1],
    "more after stop": GOOD + b".",
    "two values": b"}(u}(u.",
    "not a dict": b"](e.",
    "unfinished dict": b"}(" + text("a"),
    "number as key": b"}(" + whole(1) + b"Nu.",
    "a code of other pickles": b"}(" + text("a") + b"K\x01u.",
    "a name": b"}(" + text("a") + b"\x8c\2os\x8c\6system\x93u.",
    "a protocol": b"\x80\4" + GOOD,
    "a memo": b"}r\xff\xff\xff\xff.",
    "a persistent id": b"Pabc\n.",
    "a huge frame": b"\x95" + struct.pack("<Q", 2**64 - 1),
    "text longer than file": b"}(X\xff\xff\xff\xffabc",
    "text not UTF-8": b"}(X\2\0\0\0\xff\xffNu.",
    "number too large": b"}(" + text("a") + whole(2**64) + b"u.",
    "number longer than file": b"}(" + text("a") + b"\x8a\xff\1",
    "half a float": b"}(" + text("a") + b"G\0",
    "deep lists": b"}(" + text("a") + b"](" * 20_000 + b"e" * 20_000 + b"u.",
    "deep dicts": (b"}(" + text("a")) * 20_000 + b"u" * 20_000 + b".",
    "another class": GOOD.replace(b"NumpyArrayWrapper", b"NumpyArrayWrappes"),
    "array of objects": GOOD.replace(text("i8"), text("O8")),
    "array of text": GOOD.replace(text("i8"), text("U9")),
    "odd byte order": GOOD.replace(text("<"), text("O")),
    "odd order": GOOD.replace(text("C"), text("K")),
    "shape negative": with_shape(whole(-1)),
    "shape of truth": with_shape(b"\x88"),
    "shape that overflows": with_shape(*[whole(2**62)] * 3),
    "shape of nothing times too much": with_shape(whole(0), *[whole(2**62)] * 3),
    "shape beyond all numbers": with_shape(whole(0), whole(2**63)),
    "shape of many sides": with_shape(*[whole(1)] * 100),
    "array beyond the end": with_shape(whole(255)),
    "array not aligned": GOOD.replace(b"\xff" * 2, b"\xff", 1),
    "array of odd booleans": written({"a": np.array([True])})[:-3] + b"\2u.",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_streams_are_refused_in_little_memory(body):
    assert read_plain_dict(stream(GOOD), START) == {"a": np.array([5])}
    assert body != GOOD
    tracemalloc.start()
    try:
        assert refusal(body)
        assert tracemalloc.get_traced_memory()[1] < 200 * len(body) + 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("flood", [b"](", b"N", b"](e", b"}(u"])
def test_memory_for_a_flood_of_values_is_bounded(flood):
    body = b"}(" + text("a") + b"](" + flood * 500_000
    tracemalloc.start()
    try:
        assert refusal(body, max_values=1000) == "holds more values than a model"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
