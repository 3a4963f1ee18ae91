"""Tar archives are read as the library's tarfile reads them; damage is a ValueError."""

import io
import os
import random
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.sources.places.tars import tar_members
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
        for member in tar_members(io.BytesIO(data))
    ]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 10_000])
def test_names_and_data_of_every_format_come_back(name, size, format):
    if format == tarfile.USTAR_FORMAT and name == LONG:
        name = LONG[-90:]
    data = os.urandom(size)
    archive = written([(tarfile.TarInfo(name), data), (tarfile.TarInfo("last"), b"x")], format)

    assert members(archive) == [(name, False, True, data), ("last", False, True, b"x")]


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
        ("x/", True, True),
        ("x", False, False),
        ("x", False, False),
        ("last", False, True),
    ]


def test_data_that_nobody_reads_are_passed_over():
    archive = written([(tarfile.TarInfo(str(n)), os.urandom(700)) for n in range(5)])

    assert [member.name for member in tar_members(io.BytesIO(archive))] == list("01234")


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
    "no tar": (b"Subject: x\n" * 100, "a header has no number"),
    "sparse": (sparse_archive(), "has a file with holes .sparse.; unpack it"),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named(data, reason):
    with pytest.raises(ValueError, match=reason):
        members(data)


def test_a_wrong_checksum_is_damage():
    archive = bytearray(written([(tarfile.TarInfo("a"), b"x")]))
    archive[0] ^= 1
    with pytest.raises(ValueError, match="checksum is wrong"):
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
    with pytest.raises(ValueError, match=r"no number where one must be|cut off"):
        members(archive)


def test_a_header_of_a_gigabyte_is_not_read():
    archive = changed(
        written([(tarfile.TarInfo(LONG), b"x")], tarfile.GNU_FORMAT), 124, b"10000000000\0"
    )  # octal: 1 GB
    with pytest.raises(ValueError, match="a header of 1,073,741,824 bytes"):
        members(archive)


@pytest.mark.parametrize(
    "records", [b"x path=a\n", b"8 path=a\n", b"99 path=a\n", b"-5 path=a\n", b"7 patha\n"]
)
def test_a_pax_record_that_is_none_is_damage(records):
    header = tarfile.TarInfo("h")
    header.type = tarfile.XHDTYPE
    header.size = len(records)
    block = header.tobuf(tarfile.USTAR_FORMAT)
    with pytest.raises(ValueError, match=r"damaged .a header has"):
        members(block + records.ljust(512, b"\0") + bytes(1024))


def test_ten_thousand_headers_for_one_member_need_no_stack():
    info = tarfile.TarInfo("h")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2
    header = info.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")

    assert members(header * 10_000 + written([(tarfile.TarInfo("b"), b"x")]))[0][0] == "a"


@examples(200)
@given(st.integers(0, 2**32))
def test_whatever_bytes_are_changed_only_a_value_error_is_raised(seed):
    rng = random.Random(seed)
    data = bytearray(written([(tarfile.TarInfo(name), b"x" * 300) for name in NAMES[:4]]))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError):
        assert len(members(bytes(data))) <= len(data) // 512
