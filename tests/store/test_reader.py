"""Streams of pickle codes: hostile ones are refused, in little memory."""

import mmap
import struct
import tracemalloc

import numpy as np
import pytest

from nbspam.store.format.reader import RefusedError, read_plain

START = 40  # bytes before the stream, as in a model file


def stream(body):
    """Return memory with a stream in it after other bytes."""
    memory = mmap.mmap(-1, START + len(body))
    memory[START:] = body
    return memory


def refusal(body, **options):
    """Return why the reader refuses a stream."""
    with pytest.raises(RefusedError) as caught:
        read_plain(stream(body), START, **options)
    return str(caught.value)


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def named(module, name):
    return text(module) + text(name) + b"\x93"


def long(value):
    return b"\x8a\xff" + value.to_bytes(255, "little", signed=True)


WRAPPER = named("joblib.numpy_pickle", "NumpyArrayWrapper")
NDARRAY = named("numpy", "ndarray")
DTYPE = named("numpy", "dtype")


def dtype(code="i8", order="<"):
    return DTYPE + text(code) + b"\x89\x88\x87R(K\x03" + text(order) + b"tb"


INT64 = dtype()


def array(shape=b"K\x01\x85", order=b"X\1\0\0\0C", dtype=INT64, data=bytes(8), shift=0):
    """Return the stream of a dict of one array, aligned as joblib would align it."""
    state = text("shape") + shape + text("order") + order + text("dtype") + dtype
    start = b"}" + text("a") + WRAPPER + b")\x81}(" + state + b"ub"
    padding = 16 - (START + len(start) + 1) % 16 + shift
    return start + bytes([padding]) + b"\xff" * padding + data + b"s."


HOSTILE = {
    "nothing": b"",
    "only stop": b".",
    "no stop": b"}",
    "more after stop": b"}.}",
    "two values": b"}}.",
    "open mark": b"}(.",
    "not a dict": b"].",
    "a name": NDARRAY + b".",
    "a name inside": b"}" + text("a") + NDARRAY + b"s.",
    "a dtype inside": b"}" + text("a") + dtype() + b"s.",
    "a tuple inside": b"}" + text("a") + b")s.",
    "unfinished array": b"}" + text("a") + WRAPPER + b")\x81s.",
    "number as key": b"}K\x01K\x01s.",
    "dict as key": b"}}K\x01s.",
    "odd items": b"}(" + text("a") + b"u.",
    "append to dict": b"}K\x01a.",
    "set in list": b"]" + text("a") + b"K\x01s.",
    "append to nothing": b"K\x01a.",
    "pop below mark": b"}((\x85\x85\x85t.",
    "no mark": b"}t.",
    "mark above the stack": b"}K\x01(Ra.",
    "text longer than file": b"X\xff\xff\xff\xffabc",
    "text of 2**63 bytes": b"\x8d" + struct.pack("<Q", 2**63) + b"a",
    "bytes of 2**63": b"\x8e" + struct.pack("<Q", 2**63) + b"a",
    "long of 2 GB": b"\x8b" + struct.pack("<i", 2**31 - 1) + b"1",
    "long too large": b"}" + text("a") + long(2**2000) + b"s.",
    "text not UTF-8": b"X\2\0\0\0\xff\xff.",
    "memo at the end of memory": b"}r\xff\xff\xff\xff.",
    "memo never put": b"h\x05.",
    "itself": b"}\x94h\x00.",
    "extension": b"\x82\x01.",
    "persistent id": b"Pabc\n.",
    "persistent object": b"K\x01Q.",
    "huge frame": b"\x95" + struct.pack("<Q", 2**64 - 1),
    "deep lists": b"]" * 20_000 + b"a" * 19_999 + b".",
    "deep dicts": (b"}" + text("a")) * 20_000 + b"}" + b"s" * 20_000 + b".",
    "deep tuples": b")" + b"\x85" * 20_000 + b".",
    "deep tuple as key": b"})" + b"\x85" * 200_000 + b"K\x01s.",
    "deep tuple as dtype": DTYPE + b")" + b"\x85" * 20_000 + b"R.",
    "deep tuple as shape": array(shape=b")" + b"\x85" * 20_000),
    "terabyte by numpy": NDARRAY + b"(" + long(10**12) + b"t\x85R.",
    "numpy object": NDARRAY + b")\x81.",
    "numpy state": NDARRAY + b")b.",
    "wrapper called": WRAPPER + b")R.",
    "wrapper text": text("joblib.numpy_pickle.NumpyArrayWrapper") + b")\x81.",
    "state for a dict": b"}}b.",
    "dtype of objects": array(dtype=dtype("O", "|")),
    "dtype of text": array(dtype=dtype("U9")),
    "dtype of a million bytes": array(dtype=dtype("V1000000", "|")),
    "dtype as struct": array(dtype=dtype("i4,O")),
    "dtype by number": array(dtype=DTYPE + b"K\x01\x89\x88\x87R(K\x03" + text("<") + b"tb"),
    "dtype of one argument": array(dtype=DTYPE + text("i8") + b"\x85R"),
    "dtype without order": array(dtype=DTYPE + text("i8") + b"\x89\x88\x87R"),
    "dtype with odd order": array(dtype=dtype("i8", "O")),
    "dtype with short state": array(dtype=DTYPE + text("i8") + b"\x89\x88\x87R)b"),
    "dtype with no state": array(dtype=DTYPE + text("i8") + b"\x89\x88\x87RNb"),
    "no dtype": array(dtype=b"N"),
    "no order": array(order=b"N"),
    "odd order": array(order=text("K")),
    "shape a list": array(shape=b"]"),
    "shape a number": array(shape=b"K\x01"),
    "shape negative": array(shape=b"J\xff\xff\xff\xff\x85"),
    "shape of truth": array(shape=b"\x88\x85"),
    "shape of floats": array(shape=b"G" + struct.pack(">d", 1) + b"\x85"),
    "shape that overflows": array(shape=b"(" + long(2**62) * 3 + b"t"),
    "shape of nothing times too much": array(shape=b"(K\0" + long(2**62) * 3 + b"t", data=b""),
    "shape beyond all numbers": array(shape=b"(K\0" + long(2**1000) + b"t", data=b""),
    "shape of many sides": array(shape=b"(" + b"K\x01" * 100 + b"t"),
    "shape a million long": array(shape=b"(" + long(2**2000) * 4000 + b"t"),
    "array beyond the end": array(shape=b"K\xff\x85"),
    "array not aligned": array(shift=1),
    "padding beyond the end": b"}" + text("a") + WRAPPER + b")\x81}b\xff",
    "array without state": b"}" + text("a") + WRAPPER + b")\x81Nb\1\0s.",
    "array of odd booleans": array(dtype=dtype("b1", "|"), data=b"\2"),
}


def test_a_command_after_allowed_codes_is_named_and_refused(tmp_path):
    trap = tmp_path / "ran"
    body = b"}" + text("a") + named("posix", "system") + text(f"touch {trap}") + b"\x85Rs."

    assert refusal(body) == "refers to posix.system"
    assert not trap.exists()


SLOW = {"deep dicts", "deep tuple as key"}
STREAMS = [
    pytest.param(body, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name, body in HOSTILE.items()
]


@pytest.mark.parametrize("body", STREAMS)
def test_hostile_streams_are_refused_in_little_memory(body):
    tracemalloc.start()
    try:
        assert refusal(body)
        assert tracemalloc.get_traced_memory()[1] < 200 * len(body) + 1_000_000
    finally:
        tracemalloc.stop()


def test_the_stream_that_hostile_ones_vary_is_a_model():
    state = read_plain(stream(array(data=struct.pack("<q", 5))), START)
    assert list(state) == ["a"]
    assert state["a"].dtype == np.int64
    assert state["a"].tolist() == [5]


def test_memory_for_a_flood_of_codes_is_bounded():
    flood = b"(" * 500_000
    tracemalloc.start()
    try:
        assert refusal(flood, max_steps=1000) == "holds more than 1000 pickle codes"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
