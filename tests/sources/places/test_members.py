"""Members of tar and ZIP archives of every format; damage of any kind is a ValueError."""

import io
import os
import random
import tarfile
import weakref
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources import archives
from nbspam.sources.archives import members as members_of
from support import examples, packed

LONG = "folder/" * 30 + "x" * 120
NAMES = ["1.eml", "ham/2.eml", "p" * 90 + "/" + "q" * 90, LONG, "söndag/ünï.eml", "d" * 100]
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def written(members, format=tarfile.PAX_FORMAT, **options):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format, **options) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def header(**fields):
    info = tarfile.TarInfo("a")
    for name, value in fields.items():
        setattr(info, name, value)
    return info


def changed(archive, at, field):
    """Return an archive whose first header has another field, with a checksum that fits."""
    data = bytearray(archive)
    data[at : at + len(field)] = field
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def members(data, kind="tar"):
    stream = io.BytesIO(data)
    stream.name = f"mail.{kind}"
    return [
        (member.name, member.is_folder, member.problem is None, member.open().read())
        for member in members_of(stream, kind)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_names_and_data_of_every_format_come_back(format):
    names = [LONG[-90:] if each == LONG else each for each in NAMES]
    names = (NAMES, names)[format == FORMATS[0]]
    for size in (0, 1, 511, 512, 513, 10_000):
        said = [(name, os.urandom(size)) for name in (*names, os.fsdecode(b"caf\xe9"))]
        assert members(written(said, format)) == [(name, False, True, data) for name, data in said]


ABC = written([("a", b"abc")], tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    "archive",
    [
        changed(ABC, 124, b"\x80" + bytes(10) + b"\x03"),  # a size in base 256
        written([(header(pax_headers={"size": "3", "comment": "x"}), b"abc")]),
        written([("a", b"abc")], pax_headers={"comment": "of the whole archive"}),
    ],
)
def test_headers_of_many_programs_are_read(archive):
    assert members(archive) == [("a", False, True, b"abc")]


def test_folders_and_links_have_no_data_whatever_size_they_state():
    kinds = [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]

    found = members(written([*((header(type=kind), b"") for kind in kinds), ("last", b"x")]))
    assert [each[:3] for each in found] == [
        ("a", True, True),
        ("a", False, False),
        ("a", False, False),
        ("last", False, True),
    ]


def test_data_that_nobody_reads_are_passed_over():
    archive = written([(str(n), os.urandom(700)) for n in range(5)])
    assert [member.name for member in members_of(io.BytesIO(archive), "tar")] == list("01234")


def test_members_that_were_read_are_forgotten(monkeypatch):
    archive = written([(str(n), b"x") for n in range(100)])
    headers = weakref.WeakSet()

    class Header(archives._TarHeader):
        def __init__(self, *named):
            super().__init__(*named)
            headers.add(self)

    monkeypatch.setattr(archives, "_TarHeader", Header)
    assert max(len(headers) for _ in members_of(io.BytesIO(archive), "tar")) <= 3


# ---- damage ----


SPARSE = header(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)})
NO_SIZE = "invalid header|negative size|cut off"
LONGNAME = header(type=tarfile.GNUTYPE_LONGNAME, size=2).tobuf() + b"a".ljust(512, b"\0")
GIGABYTE = changed(written([(LONG, b"x")], tarfile.GNU_FORMAT), 124, b"10000000000\0")  # octal
DAMAGES = {
    "empty": (b"", "cut off"),
    "a part of a header": (bytes(100), "cut off"),
    "no end mark": (written([("a", b"x")])[:1024], "cut off"),
    "cut in the data": (written([("a", bytes(9000))])[:2000], "cut off"),
    "no tar": (b"Subject: x\n" * 100, "damaged .invalid header"),
    "sparse": (written([(SPARSE, b"x")]), "has a file with holes .sparse.; unpack it"),
    "wrong checksum": (b"b" + ABC[1:], "bad checksum"),
    "negative size": (changed(ABC, 124, b"-0000000001\0"), NO_SIZE),
    "size in digits that are not octal": (changed(ABC, 124, b"99999999999\0"), NO_SIZE),
    "size in ones": (changed(ABC, 124, b"\xff" * 12), NO_SIZE),
    "header of a gigabyte": (GIGABYTE, "a header of 1,073,741,824 bytes"),
    "ten thousand headers for one": (LONGNAME * 10_000 + ABC, "damaged .maximum recursion"),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named(data, reason):
    with pytest.raises(ValueError, match=reason):
        members(data)


@examples(200)
@given(st.integers(0, 2**32))
def test_whatever_bytes_are_changed_only_a_value_error_is_raised(seed):
    rng = random.Random(seed)
    data = bytearray(written([(name, b"x" * 300) for name in NAMES[:4]]))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError):
        assert len(members(bytes(data))) <= len(data) // 512


# ---- ZIP ----


def zipped(method=zipfile.ZIP_DEFLATED, n=3):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.mkdir("ham") if hasattr(archive, "mkdir") else archive.writestr("ham/", b"")
        for number in range(n):
            archive.writestr(f"ham/{number}", b"x" * 300 + b"%d" % number)
    return file.getvalue()


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_members_of_every_method_come_back(method):
    folder, *found = members(zipped(method), "zip")
    assert folder == ("ham/", True, True, b"")
    assert found == [(f"ham/{n}", False, True, b"x" * 300 + b"%d" % n) for n in range(3)]
    # Separators of Windows are separators.
    assert members(packed({zipfile.ZipInfo("ham\\1"): b"x"}, "zip"), "zip")[0][0] == "ham/1"


def test_a_method_that_nobody_knows_is_damage():
    data = bytearray(zipped(n=1))
    start = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    data[start + 10] = 99
    with pytest.raises(ValueError, match=r"damaged .*compression method"):
        members(bytes(data), "zip")


@examples(200)
@given(st.integers(0, 2**32), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_whatever_bytes_of_a_zip_are_changed_only_known_errors_are_raised(seed, method):
    rng = random.Random(seed)
    data = bytearray(zipped(method))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError, InputError, OSError):
        assert len(members(bytes(data), "zip")) <= 4
