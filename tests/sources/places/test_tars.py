"""Tar archives of every format are read; damage of any kind is a ValueError."""

import io
import os
import random
import tarfile
import weakref
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources import archives
from nbspam.sources.archives import members as members_of
from support import examples

LONG = "folder/" * 30 + "x" * 120
NAMES = ["1.eml", "ham/2.eml", "p" * 90 + "/" + "q" * 90, LONG, "söndag/ünï.eml", "d" * 100]
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def written(members, format=tarfile.PAX_FORMAT):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def members(data):
    return [
        (member.name, member.is_folder, member.problem is None, member.open().read())
        for member in members_of(io.BytesIO(data), "tar")
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_names_and_data_of_every_format_come_back(format):
    names = [LONG[-90:] if each == LONG else each for each in NAMES]
    for size in (0, 1, 511, 512, 513, 10_000):
        said = [(name, os.urandom(size)) for name in (NAMES, names)[format == FORMATS[0]]]
        archive = written([(tarfile.TarInfo(name), data) for name, data in said], format)

        assert members(archive) == [(name, False, True, data) for name, data in said]


def test_other_bytes_than_utf_8_in_names_come_back():
    archive = written([(tarfile.TarInfo(os.fsdecode(b"caf\xe9")), b"x")], tarfile.GNU_FORMAT)

    assert members(archive)[0][0] == os.fsdecode(b"caf\xe9")


def test_a_size_may_be_in_base_256_or_in_a_pax_header():
    archive = bytearray(written([(tarfile.TarInfo("a"), b"abc")], tarfile.USTAR_FORMAT))
    archive[124:136] = b"\x80" + bytes(10) + b"\x03"
    archive[148:156] = b" " * 8
    archive[148:156] = b"%06o\0 " % sum(archive[:512])
    assert members(bytes(archive)) == [("a", False, True, b"abc")]

    info = tarfile.TarInfo("a")
    info.pax_headers = {"size": "3", "comment": "x"}
    assert members(written([(info, b"abc")])) == [("a", False, True, b"abc")]


def test_headers_of_the_whole_archive_change_no_member():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", pax_headers={"comment": "git"}) as archive:
        archive.addfile(tarfile.TarInfo("a"))

    assert members(file.getvalue()) == [("a", False, True, b"")]


def test_folders_and_links_have_no_data_whatever_size_they_state():
    kinds = [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
    infos = []
    for kind in kinds:
        info = tarfile.TarInfo("x")
        info.type = kind
        infos.append((info, b""))
    infos.append((tarfile.TarInfo("last"), b"x"))

    found = members(written(infos))
    assert [each[:3] for each in found] == [
        ("x", True, True),
        ("x", False, False),
        ("x", False, False),
        ("last", False, True),
    ]


def test_data_that_nobody_reads_are_passed_over():
    archive = written([(tarfile.TarInfo(str(n)), os.urandom(700)) for n in range(5)])

    assert [member.name for member in members_of(io.BytesIO(archive), "tar")] == list("01234")


def test_members_that_were_read_are_forgotten(monkeypatch):
    archive = written([(tarfile.TarInfo(str(n)), b"x") for n in range(100)])
    headers = weakref.WeakSet()

    class Header(archives._TarHeader):
        def __init__(self, *named):
            super().__init__(*named)
            headers.add(self)

    monkeypatch.setattr(archives, "_TarHeader", Header)
    kept = [len(headers) for _ in members_of(io.BytesIO(archive), "tar")]

    assert max(kept) <= 3


# ---- damage ----


def sparse_archive():
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    return written([(info, b"x")])


DAMAGES = {
    "empty": (b"", "cut off"),
    "a part of a header": (bytes(100), "cut off"),
    "no end mark": (written([(tarfile.TarInfo("a"), b"x")])[:1024], "cut off"),
    "cut in the data": (written([(tarfile.TarInfo("a"), bytes(9000))])[:2000], "cut off"),
    "no tar": (b"Subject: x\n" * 100, "damaged .invalid header"),
    "sparse": (sparse_archive(), "has a file with holes .sparse.; unpack it"),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named(data, reason):
    with pytest.raises(ValueError, match=reason):
        members(data)


def test_a_wrong_checksum_is_damage():
    archive = bytearray(written([(tarfile.TarInfo("a"), b"x")]))
    archive[0] ^= 1
    with pytest.raises(ValueError, match="bad checksum"):
        members(bytes(archive))


def changed(archive, at, field):
    """Return an archive whose first header has another field, with a checksum that fits."""
    data = bytearray(archive)
    data[at : at + len(field)] = field
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


@pytest.mark.parametrize("size", [b"-0000000001\0", b"99999999999\0", b"\xff" * 12])
def test_a_size_that_is_none_is_damage(size):
    archive = changed(written([(tarfile.TarInfo("a"), b"x")]), 124, size)
    with pytest.raises(ValueError, match=r"invalid header|negative size|cut off"):
        members(archive)


def test_a_header_of_a_gigabyte_is_not_read():
    archive = changed(
        written([(tarfile.TarInfo(LONG), b"x")], tarfile.GNU_FORMAT), 124, b"10000000000\0"
    )  # octal: 1 GB
    with pytest.raises(ValueError, match="a header of 1,073,741,824 bytes"):
        members(archive)


def test_ten_thousand_headers_for_one_member_are_damage():
    info = tarfile.TarInfo("h")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2
    header = info.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")

    with pytest.raises(ValueError, match=r"damaged .maximum recursion"):
        members(header * 10_000 + written([(tarfile.TarInfo("b"), b"x")]))


@examples(200)
@given(st.integers(0, 2**32))
def test_whatever_bytes_are_changed_only_a_value_error_is_raised(seed):
    rng = random.Random(seed)
    data = bytearray(written([(tarfile.TarInfo(name), b"x" * 300) for name in NAMES[:4]]))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError):
        assert len(members(bytes(data))) <= len(data) // 512
