"""Model files: what is loaded, what is refused, and what a failed write leaves."""

import errno
import functools
import io
import itertools
import mmap
import os
import pickle
import shutil
import stat
import struct
import time
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nbspam.disk import locked, stamp_of
from nbspam.errors import ModelFileError
from nbspam.store import modelfile
from nbspam.store.modelfile import RefusedError, load_state, read_plain_dict, read_snapshot
from stored import save_state
from support import examples, in_child, raising

STATE = {
    "name": "nbspam",
    "smoothing": 0.5,
    "documents": [3, 2**63, -(2**63), 70_000],
    "settings": {"fold": True, "limit": None, "words": ["é", "\ud800", ""]},
    "keys": np.arange(5, dtype=np.uint64),
    "table": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "seen": np.array([True, False]),
    "total": np.array(7, dtype=np.int32),
    "none": np.zeros((0, 3), dtype=np.float32),
}
# {"n": 1, "a": np.array([1, 2], "u2")} in a file.
GOLDEN = bytes.fromhex(
    "800443236e627370616d206d6f64656c0000000000000001000000260100000000000020f55c94307d285801"
    "0000006e8a01015801000000618c136a6f626c69622e6e756d70795f7069636b6c658c114e756d7079417272"
    "6179577261707065729329817d285808000000737562636c6173738c056e756d70798c076e64617272617993"
    "58050000007368617065288a01027458050000006f72646572580100000043580500000064747970658c056e"
    "756d70798c05647479706593285802000000753289887452288a010358010000003c4e4e4e8a01ff8a01ff8a"
    "01007462580a000000616c6c6f775f6d6d617088581b0000006e756d70795f61727261795f616c69676e6d65"
    "6e745f62797465738a011075620affffffffffffffffffff01000200752e"
)


def same(left, right):
    """Return whether two states are equal in values, types, dtypes and order."""
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray):
        alike = (left.dtype, left.shape) == (right.dtype, right.shape)
        return alike and left.tobytes() == right.tobytes()
    return type(left) is type(right) and repr(left) == repr(right)


def header(length, checksum, version=modelfile.FORMAT, magic=modelfile.MAGIC):
    """Return the first 40 bytes of a model file, written by hand."""
    numbers = struct.pack("<IQI", version, length, checksum)
    return b"\x80\x04C\x23" + magic.ljust(19, b"\0") + numbers + b"0"


def forged(body):
    """Return a file with a right header and checksum around any stream under 1 MiB."""
    length = 40 + len(body)
    checksum = zlib.crc32(body, zlib.crc32(header(length, 0)))
    return header(length, checksum) + body


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "mail.nbspam"
    save_state(str(path), STATE)
    return path


def refusal(path):
    """Return why load_state refuses a file, without the path."""
    with pytest.raises(ModelFileError) as caught:
        load_state(str(path))
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert "; " in text
    return text.removeprefix(f"{path}: ")


# ---- what is loaded ----

ARRAYS = hnp.arrays(
    st.sampled_from(["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | ARRAYS
    | ARRAYS.map(np.transpose)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
STATES = st.dictionaries(st.text(), VALUES)


@pytest.mark.slow
@examples(25)
@given(STATES)
def test_a_state_comes_back_equal_and_joblib_reads_the_same(tmp_path_factory, state):
    path = str(tmp_path_factory.mktemp("model") / "m")
    save_state(path, state)

    assert same(load_state(path), state)
    assert same(joblib.load(path), state)


def test_the_format_is_what_it_was(tmp_path):
    state = {"n": 1, "a": np.array([1, 2], "u2")}
    save_state(str(tmp_path / "m"), state)

    assert (tmp_path / "m").read_bytes() == GOLDEN
    assert same(load_state(str(tmp_path / "m")), state)
    assert same(joblib.load(tmp_path / "m", mmap_mode="r"), state)


def test_arrays_are_aligned_read_only_views_of_one_map_and_outlive_their_file(model):
    loaded = load_state(str(model))
    arrays = [value for value in loaded.values() if isinstance(value, np.ndarray)]
    owners = set()
    for array in arrays:
        owner = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        owners.add(owner)
        assert array.flags.aligned
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    (owner,) = owners
    assert isinstance(owner, mmap.mmap)
    save_state(str(model), {"keys": np.zeros(5, np.uint64)})
    assert same(loaded, STATE)


def test_copies_of_one_file_are_one_and_nobody_writes_in_it(model):
    first, second = (
        read_snapshot(str(model), modelfile.IN_MEMORY).state["keys"] for _ in range(2)
    )
    assert np.shares_memory(first, second)
    assert not first.flags.writeable
    assert not np.shares_memory(first, load_state(str(model))["keys"])  # that one is mapped

    save_state(str(model), STATE)
    third = read_snapshot(str(model), modelfile.IN_MEMORY).state["keys"]
    assert not np.shares_memory(first, third)
    assert first.tolist() == third.tolist()


def test_processes_that_read_a_model_at_once_make_one_copy(model, monkeypatch):
    copy, copies = f"{model}.served", shutil.copyfileobj
    made = Path(f"{model}.made")

    def slow(*arguments):
        with made.open("a") as file:
            file.write("1")
        time.sleep(0.2)
        copies(*arguments)

    def reads():
        assert read_snapshot(str(model), copy).state

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    threads = ThreadPoolExecutor(2)
    assert list(threads.map(in_child, [reads, reads])) == [0, 0]
    assert made.read_text() == "1"
    modelfile.remove_copy(copy)
    assert sorted(model.parent.iterdir()) == [model, made]


def test_processes_share_a_copy_on_disk_that_only_a_new_model_replaces(model):
    copy = f"{model}.served"

    def read_by_another_process():
        modelfile._COPIES.clear()
        return read_snapshot(str(model), copy), os.stat(copy).st_ino

    first, place = read_by_another_process()
    assert read_by_another_process()[1] == place
    assert os.stat(copy).st_mode == model.stat().st_mode

    whole = model.read_bytes()
    model.write_bytes(bytes(len(whole)))  # changed in its place
    assert first.state["keys"].tolist() == [0, 1, 2, 3, 4]

    model.write_bytes(whole)
    save_state(str(model), {"keys": np.zeros(5, np.uint64)})
    second, other_place = read_by_another_process()
    assert not second.state["keys"].any()
    assert other_place != place
    assert first.state["keys"].tolist() == [0, 1, 2, 3, 4]


def test_a_copy_that_was_made_of_half_a_model_is_not_used_again(model):
    whole, copy = model.read_bytes(), f"{model}.served"
    model.write_bytes(whole[:-1] + b"?")  # as one sees it that `cp` has nearly written
    with pytest.raises(ModelFileError):
        read_snapshot(str(model), copy)
    model.write_bytes(whole)
    assert read_snapshot(str(model), copy).state["keys"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("has_place", "most"), [(True, 9999), (False, 9999), (True, 9)])
def test_a_copy_for_which_there_is_no_room_or_place_is_in_memory_unless_it_is_large(
    model, monkeypatch, has_place, most
):
    def full_at_last(source, file, chunk):
        file.write(source.read())
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    copy = Path(f"{model}.served")
    if not has_place:
        copy.mkdir()
    monkeypatch.setattr(shutil, "copyfileobj", full_at_last)
    monkeypatch.setattr(modelfile, "MAX_COPIED", most)
    found = read_snapshot(str(model), str(copy)).state["keys"]
    model.write_bytes(bytes(model.stat().st_size))  # changed in its place
    assert found.any() == (most > 9)
    assert copy.exists() != has_place


def test_a_copy_is_not_shared_before_it_is_whole(model, monkeypatch):
    read, seen = open, []

    def other_thread(*given, **how):
        seen.append(modelfile._COPIES.get(stamp_of(str(model))))
        return read(*given, **how)

    monkeypatch.setattr(modelfile, "open", other_thread, raising=False)
    read_snapshot(str(model), modelfile.IN_MEMORY)
    assert {*seen} == {None}


def test_equal_states_give_equal_bytes(tmp_path):
    word = "".join(["sub", "class"])  # a name that joblib writes too
    array = np.arange(3)
    other = "".join(["subc", "lass"])
    shared = {"b": [word, word], "c": array, "d": array, word: "<", "half": 0.5, "true": True}
    apart = {
        "b": [other, word],
        "c": np.arange(3).astype(">i8"),
        "d": np.arange(6)[::2] // 2,
        other: np.str_("<"),
        "half": np.float64(0.5),
        "true": np.True_,
    }
    save_state(str(tmp_path / "1"), shared)
    save_state(str(tmp_path / "2"), apart)

    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_values_that_could_not_be_loaded_are_not_saved(model):
    for value in (
        (1, 2),
        {1},
        b"bytes",
        2**64,
        -(2**63) - 1,
        1j,
        {1: "a number as key"},
        {np.str_("text"): "that is not quite str"},
        np.array([None]),
        np.array(["text"]),
        np.array([1j]),
        np.array(0, "M8[s]"),
        np.zeros(2, "i4,f8"),
        np.zeros(1, np.longdouble),
        np.ma.masked_array([1, 2], [True, False]),
        functools.reduce(lambda value, _: [value], range(10_000), 1),
        print,
    ):
        before = model.read_bytes()
        with pytest.raises(TypeError, match="state "):
            save_state(str(model), {"a": [value]})

        assert model.read_bytes() == before


def test_an_interrupt_just_after_the_replacement_is_raised(model, monkeypatch):
    def interrupted(*paths, replace=os.replace):
        replace(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_state(str(model), {"a": 1})

    assert load_state(str(model)) == {"a": 1}
    assert os.listdir(model.parent) == [model.name]


@pytest.mark.slow
def test_a_state_of_too_many_values_is_not_written(model):
    before = model.read_bytes()
    with pytest.raises(TypeError, match="more values than a model"):
        save_state(str(model), {"a": [None] * modelfile.MAX_VALUES})

    assert model.read_bytes() == before
    assert os.listdir(model.parent) == [model.name]


# ---- what is refused before anything is read ----


def test_what_is_no_file_of_a_model_is_refused(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # is not waited for
    (tmp_path / "empty").touch()
    none = tmp_path / "none"
    assert refusal(none) == f"no such model; train one with: nbspam train SOURCE -m {none}"
    assert refusal(tmp_path).startswith("a folder; ")
    assert refusal(tmp_path / "pipe").startswith("not a regular file; ")
    assert refusal(tmp_path / "empty").startswith("empty, not a model; ")
    assert refusal(model / "below").startswith("cannot read the model: Not a directory; ")
    assert refusal(f"{model}\0").startswith("cannot read the model: ")


def test_a_model_without_permission_to_read_it_or_memory_for_it_says_so(model, monkeypatch):
    with monkeypatch.context() as patch:  # undone before pytest removes the folder
        # Root may read everything.
        patch.setattr(os, "open", raising(PermissionError(errno.EACCES, "Permission denied")))
        assert refusal(model).startswith("no permission to read the model; ")
        patch.setattr(os, "open", raising(OSError(errno.EMFILE, "Too many open files")))
        assert refusal(model).endswith("Too many open files; allow more open files (ulimit -n)")
        patch.setattr(os, "open", raising(OSError(errno.ENOMEM, "Cannot allocate memory")))
        with pytest.raises(MemoryError):
            refusal(model)


def test_other_files_are_not_models(tmp_path):
    joblib.dump({"keys": np.arange(3)}, tmp_path / "by joblib")
    model, other = tmp_path / "m", (tmp_path / "by joblib").read_bytes()
    for content in (b"\0", b"From: me\n\nhello", modelfile.MAGIC, pickle.dumps({}), other):
        model.write_bytes(content)
        assert refusal(model).startswith("not a model; ")
    model.write_bytes(header(40, 0, magic=b"another tool"))
    assert refusal(model).startswith("not a model; ")
    model.write_bytes(header(1, 0, version=9) + b"?")
    assert refusal(model).startswith("written by format 9, this program reads 1; upgrade nb")
    model.write_bytes(GOLDEN + b"\0")
    assert refusal(model).startswith("longer than it was written (")


def test_every_truncation_is_noticed(tmp_path):
    model = tmp_path / "m"
    for length in range(1, len(GOLDEN)):
        model.write_bytes(GOLDEN[:length])
        assert refusal(model).startswith("truncated" if length >= 16 else "not a model")


def test_every_flipped_bit_is_noticed(tmp_path):
    model = tmp_path / "m"
    model.write_bytes(GOLDEN)
    with open(model, "r+b", buffering=0) as file:  # byte by byte, as writing it all is slow
        for at, bit in itertools.product(range(len(GOLDEN)), range(8)):
            os.pwrite(file.fileno(), bytes([GOLDEN[at] ^ 1 << bit]), at)
            assert refusal(model).startswith("damaged") or at < 40
            os.pwrite(file.fileno(), GOLDEN[at : at + 1], at)
    assert load_state(str(model))["n"] == 1


def test_swapped_parts_of_a_large_model_are_noticed(tmp_path):
    path, chunk = tmp_path / "m", modelfile.CHUNK
    save_state(str(path), {"numbers": np.random.default_rng(1).integers(0, 2**63, 300_000)})
    large = path.read_bytes()
    assert len(large) - 40 > 2 * chunk
    for size, first, second in (
        (8, 4000, 4008),
        (8, 4000, 4000 + chunk),
        (4096, 4136, 12328),  # two blocks on disk
        (chunk, 40, 40 + chunk),
        (4096, 4136, 40 + 2 * chunk),  # some of what is after the last whole chunk
    ):
        content = bytearray(large)
        content[first : first + size] = large[second : second + size]
        content[second : second + size] = large[first : first + size]
        path.write_bytes(content)
        assert refusal(path).startswith("damaged")


# ---- what is refused despite a right header and checksum ----


class Command:
    """An object whose pickle runs a command when it is loaded."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_a_command_does_not_run_it(tmp_path, protocol):
    trap = tmp_path / "ran"
    body = pickle.dumps({"a": Command(f"touch {trap}")}, protocol)
    (tmp_path / "m").write_bytes(forged(body))
    assert refusal(tmp_path / "m").endswith("so it is not a model; give a file that nbspam wrote")
    assert not trap.exists()

    pickle.loads((tmp_path / "m").read_bytes())  # it does work
    assert trap.exists()


@pytest.mark.slow
@examples(150)
@given(st.data())
def test_a_mutated_stream_is_a_state_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("model") / "m"
    save_state(str(path), STATE)
    body = bytearray(path.read_bytes()[40:])
    codes = [bytes([code]) for code in b"N\x88\x89\x8aGX](}(eut."]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        new = data.draw(st.binary(max_size=3) | st.sampled_from(codes))
        body[at : at + data.draw(st.integers(0, 3))] = new
    path.write_bytes(forged(bytes(body)))
    try:
        loaded = load_state(str(path))
    except ModelFileError:
        return
    save_state(str(path), loaded)
    assert same(load_state(str(path)), loaded)


# ---- writing ----


def test_a_new_model_is_for_its_owner_alone_and_a_replaced_one_keeps_its_mode(tmp_path):
    def mode(path):
        return stat.S_IMODE(path.stat().st_mode)

    model = tmp_path / "a" / "b" / "m"
    save_state(str(model), {"a": 1})
    assert mode(model) == 0o600
    assert mode(model.parent) == mode(tmp_path / "a") == 0o700
    model.chmod(0o640)
    save_state(str(model), {})
    assert mode(model) == 0o640
    assert load_state(str(model)) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_model_and_its_lock_keep_their_owner_when_root_writes(model):
    os.chown(model, 12345, 23456)
    with locked(str(model)):
        save_state(str(model), {})

    for path in model, Path(f"{model}.lock"):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def failure(path):
    """Return why save_state refuses a path, without the path."""
    with pytest.raises(ModelFileError) as caught:
        save_state(str(path), {"a": np.arange(100_000)})
    return str(caught.value).removeprefix(f"{path}: ")


def test_what_cannot_become_a_model_says_why(model, tmp_path):
    mailbox = tmp_path / "inbox"
    mailbox.write_text("From me\n")
    (tmp_path / "link").symlink_to(model.name)  # callers resolve it
    for path, reason in (
        (model / "m", "Not a directory; "),
        (model / "below" / "m", "Not a directory; "),
        (tmp_path.joinpath(*["m"] * 2100), "File name too long; "),
        (tmp_path, "not a regular file; "),
        ("/dev/null", "not a regular file; "),
        (tmp_path / "link", "not a regular file; "),
        (mailbox, "the file there is not a model; "),
    ):
        assert failure(path).startswith(f"cannot be written: {reason}")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert mailbox.read_text() == "From me\n"


@pytest.mark.parametrize(("step", "code", "advice"), [
    ("fsync", errno.ENOSPC, "free some space"),
    ("fsync", errno.EFBIG, "allow larger files (ulimit -f)"),
    ("replace", errno.ENOSPC, "free some space"),
    ("replace", errno.EACCES, "let this user write to it and to its folder"),
    ("replace", errno.EROFS, "mount its file system to be written"),
])  # fmt: skip
def test_a_refusal_or_an_interrupt_leaves_the_old_model(model, monkeypatch, step, code, advice):
    monkeypatch.setattr(os, step, raising(OSError(code, os.strerror(code))))
    reason = f"cannot be written: {os.strerror(code)}; {advice}"
    assert failure(model) == reason
    assert failure(model.parent / "new") == f"{reason}, or give another place"
    monkeypatch.setattr(os, step, raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save_state(str(model), {})
    assert os.listdir(model.parent) == [model.name]
    assert same(load_state(str(model)), STATE)


def test_an_empty_or_damaged_model_is_replaced(model):
    for content in b"", model.read_bytes()[:50], header(1, 0, version=9):
        model.write_bytes(content)
        save_state(str(model), {"a": 1})
        assert load_state(str(model)) == {"a": 1}


# ---- hostile streams take little memory ----

START = 40  # bytes before the stream, as in a model file


def stream(body, start=START):
    """Return memory with a stream in it after other bytes."""
    memory = mmap.mmap(-1, start + len(body))
    memory[start:] = body
    return memory


def stream_refusal(body, most):
    """Return why the reader refuses a stream, for which it may take `most` bytes of memory."""
    memory = stream(body)
    tracemalloc.start()
    try:
        with pytest.raises(RefusedError) as caught:
            read_plain_dict(memory, START)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    return str(caught.value)


def written(state):
    """Return the stream of a state."""
    file = io.BytesIO(bytes(START))
    file.seek(START)
    modelfile.write_plain(file, state)
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
    "more after stop": GOOD + b".",
    "not a dict": b"](e.",
    "number as key": b"}(" + whole(1) + b"Nu.",
    "a name": b"}(" + text("a") + b"\x8c\2os\x8c\6system\x93u.",
    "a huge frame": b"\x95" + struct.pack("<Q", 2**64 - 1),
    "text longer than file": b"}(X\xff\xff\xff\xffabc",
    "text not UTF-8": b"}(X\2\0\0\0\xff\xffNu.",
    "number too large": b"}(" + text("a") + whole(2**64) + b"u.",
    "deep lists": b"}(" + text("a") + b"](" * 20_000 + b"e" * 20_000 + b"u.",
    "deep dicts": (b"}(" + text("a")) * 20_000 + b"u" * 20_000 + b".",
    "another class": GOOD.replace(b"NumpyArrayWrapper", b"NumpyArrayWrappes"),
    "array of objects": GOOD.replace(text("i8"), text("O8")),
    "array of text": GOOD.replace(text("i8"), text("U9")),
    "odd byte order": GOOD.replace(text("<"), text("O")),
    "odd order": GOOD.replace(text("C"), text("K")),
    "shape negative": with_shape(whole(-1)),
    "shape that overflows": with_shape(*[whole(2**62)] * 3),
    "shape beyond all numbers": with_shape(whole(0), whole(2**63)),
    "shape of many sides": with_shape(*[whole(1)] * 100),
    "array beyond the end": with_shape(whole(255)),
    "array of odd booleans": written({"a": np.array([True])})[:-3] + b"\2u.",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_streams_are_refused_in_little_memory(body):
    assert read_plain_dict(stream(GOOD), START) == {"a": np.array([5])}
    assert body != GOOD
    assert stream_refusal(body, 200 * len(body) + 1_000_000)


@pytest.mark.parametrize("flood", [b"](", b"N", b"](e", b"}(u"])
def test_memory_for_a_flood_of_values_is_bounded(flood, monkeypatch):
    monkeypatch.setattr(modelfile, "MAX_VALUES", 1000)
    body = b"}(" + text("a") + b"](" + flood * 500_000
    assert stream_refusal(body, 1_000_000) == "holds more values than a model"


def test_a_whole_array_that_is_not_aligned_is_refused():
    with pytest.raises(RefusedError, match="not aligned or not whole"):
        read_plain_dict(stream(GOOD, START + 1), START + 1)
