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
from support import complains, write_files


def test_values_of_json_come_back_or_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1, 2.5, null]")
    assert read_json(str(path), most=14) == [1, 2.5, None]
    with pytest.raises(InputError, match="more than 13 bytes"):
        read_json(str(path), most=13)
    with pytest.raises(InputError, match=r"none.json: No such file"):
        read_json(str(tmp_path / "none.json"))
    for text in ("{", "[" * 100_000, "\x00"):
        path.write_text(text)
        with pytest.raises(InputError, match="not JSON"):
            read_json(str(path))


# ---- compressed files ----

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
FREE = 1 << 19  # less than outside of tests, so that packing takes no time


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch):
    monkeypatch.setattr(files, "MOST_FREE", FREE)


@pytest.mark.parametrize("ending", PACKERS)
def test_what_expands_without_end_is_refused_soon(nbspam, trained, tmp_path, ending):
    bomb, message = tmp_path / f"bomb.mbox{ending}", tmp_path / f"bomb.eml{ending}"
    bomb.write_bytes(PACKERS[ending](bytes(8 * FREE)))
    with open_file(str(bomb)) as stream:
        assert len(stream.read(FREE)) == FREE
        with pytest.raises(InputError, match="more than 250 times its size"):
            stream.read()

    assert complains(nbspam("classify", bomb), 1, str(bomb), "decompress it yourself")
    message.write_bytes(PACKERS[ending](b"Subject: x\n\n" + bytes(8 * FREE)))
    assert complains(nbspam("classify", message), 1, "skipped", str(message), "250 times")


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
    write_files(tmp_path, dict.fromkeys(("box/1.eml", "box/b/2.eml", "3.eml"), b"A: x\n\n"))
    for name, target in (("4.eml", "../3.eml"), ("c", "b"), ("5.eml", "nothing")):
        (tmp_path / "box" / name).symlink_to(target)

    options = SourceOptions(follows_links=False)
    names = [item.name for item in read_items([str(tmp_path / "box")], options=options)]
    assert names == [str(tmp_path / "box/1.eml"), str(tmp_path / "box/b/2.eml")]
