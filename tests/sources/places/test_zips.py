"""ZIP archives: what the library's reader raises becomes one line."""

import io
import random
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources.archives import members as members_of
from support import examples, packed


def written(method=zipfile.ZIP_DEFLATED, n=3):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.mkdir("ham") if hasattr(archive, "mkdir") else archive.writestr("ham/", b"")
        for number in range(n):
            archive.writestr(f"ham/{number}", b"x" * 300 + b"%d" % number)
    return file.getvalue()


def members(data):
    stream = io.BytesIO(data)
    stream.name = "mail.zip"
    return [
        (member.name, member.is_folder, member.open().read())
        for member in members_of(stream, "zip")
    ]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_members_of_every_method_come_back(method):
    folder, *found = members(written(method))

    assert folder == ("ham/", True, b"")
    assert found == [(f"ham/{n}", False, b"x" * 300 + b"%d" % n) for n in range(3)]
    # Separators of Windows are separators.
    assert members(packed({zipfile.ZipInfo("ham\\1"): b"x"}, "zip"))[0][0] == "ham/1"


def test_a_method_that_nobody_knows_is_damage():
    data = bytearray(written(n=1))
    start = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    data[start + 10] = 99
    with pytest.raises(ValueError, match=r"damaged .*compression method"):
        members(bytes(data))


@examples(200)
@given(st.integers(0, 2**32), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_whatever_bytes_are_changed_only_known_errors_are_raised(seed, method):
    rng = random.Random(seed)
    data = bytearray(written(method))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError, InputError, OSError):
        assert len(members(bytes(data))) <= 4
