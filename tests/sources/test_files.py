"""JSON and compressed files are read, or refused with one line."""

import bz2
import gzip
import lzma
import os
import random

import pytest

from nbspam.errors import InputError
from nbspam.sources import files
from nbspam.sources.files import open_file, open_inside, read_json
from nbspam.sources.items import SourceOptions, read_items
from support import complains


def test_values_come_back(tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, 2.5, null]}')

    assert read_json(str(tmp_path / "a.json")) == {"a": [1, 2.5, None]}


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_what_is_not_json_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match="not JSON"):
        read_json(str(tmp_path / "a.json"))


def test_too_large_a_file_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("12345")
    assert read_json(str(tmp_path / "a.json"), most=5) == 12345
    with pytest.raises(InputError, match="more than 3 bytes"):
        read_json(str(tmp_path / "a.json"), most=3)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.json: No such file"):
        read_json(str(tmp_path / "none.json"))


# ---- compressed files ----

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FREE = 1 << 19  # less than outside of tests, so that packing takes no time


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch):
    monkeypatch.setattr(files, "MOST_FREE", FREE)


@pytest.mark.parametrize("ending", PACKERS)
def test_what_expands_without_end_is_refused_soon(nbspam, trained, tmp_path, ending):
    bomb = tmp_path / f"bomb.mbox{ending}"
    bomb.write_bytes(PACKERS[ending](bytes(8 * FREE)))
    with open_file(str(bomb)) as stream:
        assert len(stream.read(FREE)) == FREE
        with pytest.raises(InputError, match="more than 250 times its size"):
            stream.read()

    assert complains(nbspam("classify", bomb), 1, str(bomb), "decompress it yourself")


@pytest.mark.parametrize("ending", PACKERS)
def test_one_message_that_expands_without_end_is_skipped(nbspam, trained, tmp_path, ending):
    bomb = tmp_path / f"bomb.eml{ending}"
    bomb.write_bytes(PACKERS[ending](b"Subject: x\n\n" + bytes(8 * FREE)))

    assert complains(nbspam("classify", bomb), 1, "skipped", str(bomb), "250 times")


@pytest.mark.parametrize("ending", PACKERS)
def test_a_mailbox_of_words_is_read_to_its_end(tmp_path, ending):
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefghijklmnop", k=6)) for _ in range(500)]
    path = tmp_path / f"box.mbox{ending}"
    head = b"From a@b.example Thu Aug 22 12:36:23 2002\nSubject: x\n\n"
    data = b"".join(head + b" ".join(rng.choices(words, k=5000)) + b"\n\n" for _ in range(24))
    path.write_bytes(PACKERS[ending](data))

    assert path.stat().st_size < len(data) / 2
    assert len(data) > FREE
    assert sum(1 for _ in read_items([str(path)])) == 24


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_can_be_read_again_from_its_start(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_bytes(PACKERS[ending](b"one\ntwo\n"))
    with open_file(str(path)) as stream:
        assert stream.readline() == b"one\n"
        assert stream.tell() == 4
        stream.seek(0)
        assert stream.read() == b"one\ntwo\n"


# ---- inside a folder ----


def test_no_link_inside_a_folder_is_followed(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "1.eml.gz").write_bytes(gzip.compress(b"one"))
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "2.eml").symlink_to("b/1.eml.gz")
    os.mkfifo(tmp_path / "a" / "3.eml")

    for folder in ("a", "link"):  # the folder itself may be one
        with open_inside(str(tmp_path / folder), "b/1.eml.gz") as stream:
            assert stream.read() == b"one"
    for path in ("link/b/1.eml.gz", "a/2.eml", "a/none"):
        with pytest.raises(OSError, match=r"directory|symbolic"):
            open_inside(str(tmp_path), path)
    for path in ("a/3.eml", "a/b"):
        with pytest.raises(InputError, match="not a file; give a file"):
            open_inside(str(tmp_path), path)


def test_links_in_a_folder_may_count_as_nothing(tmp_path):
    (tmp_path / "box" / "b").mkdir(parents=True)
    for path in ("box/1.eml", "box/b/2.eml", "3.eml"):
        (tmp_path / path).write_bytes(b"Subject: x\n\n")
    (tmp_path / "box" / "4.eml").symlink_to("../3.eml")
    (tmp_path / "box" / "c").symlink_to("b")
    (tmp_path / "box" / "5.eml").symlink_to("nothing")

    options = SourceOptions(follows_links=False)
    names = [item.name for item in read_items([str(tmp_path / "box")], options=options)]
    assert names == [str(tmp_path / "box/1.eml"), str(tmp_path / "box/b/2.eml")]
