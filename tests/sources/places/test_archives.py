"""Archives hold the messages that a folder would hold; damage of any kind is one line."""

import gzip
import io
import os
import random
import struct
import tarfile
import weakref
import zipfile
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import InputError
from nbspam.sources import archives, files
from nbspam.sources.archives import MEMBERS
from nbspam.sources.items import SourceOptions, read_items
from support import FROM, HAM, SPAM, complains, examples, packed, write_files

MBOX = FROM + HAM + b"\n" + FROM + SPAM + b"\n"
KINDS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
LAYOUTS = {
    "classes": ("ham/1.eml", "ham/2.eml", "spam/1.eml"),
    "classes beside files": ("readme", "ham/1", "spam/2"),
    "three classes": ("sea/1", "sky/1", "sky/2", "wood/x"),
    "parts": ("train/ham/1", "train/spam/1", "test/ham/2", "test/spam/2"),
    "halves": ("a-train/sea/1", "a-train/sky/1", "a-test/sea/1", "a-test/sky/2"),
    "no classes": ("1.eml", "2.eml", "more/3.eml"),
    "Maildir": ("cur/1:2,S", "new/2", "tmp/3", ".Junk/cur/4"),
    "class of Maildir": ("ham/cur/1", "ham/new/2", "spam/new/3"),
    "MH": (".mh_sequences", "1", "2", "context", "sub/3"),
    "hidden": ("ham/.x", "ham/1~", "ham/#1#", "ham/1", "spam/1", ".git/1"),
    "deep": ("spam/a/b/c/1", "ham/a/1", "ham/a/2"),
    "mailboxes": ("ham/old.mbox", "spam/Inbox", "spam/new.mbox.gz"),
    "names of classes": ("1/legit2", "1/Spam1", "1/ham3", "2/4", "2/spmsg5", "3/spam6", "3/7"),
    "Apple Mail": ("x.mbox/Messages/1.eml", "x.mbox/Attachments/1/2.txt", "y/3"),
    "compressed": ("ham/1.eml.gz", "spam/2.eml.gz"),
    "as Dovecot and Apple Mail keep them": ("ham/1.dovecot", "spam/2.emlx"),
}


def content(name):
    data = MBOX if "box" in name else b"Subject: %s\n\nx\n" % name.encode()
    if name.endswith(".emlx"):
        return b"%d\n%s<?xml" % (len(data), data)
    return gzip.compress(data) if name.endswith((".gz", ".dovecot")) else data


def pack(path, members):
    kind = "tar.gz" if path.suffix == ".tgz" else path.name.partition(".")[2]
    path.write_bytes(packed(members, kind))
    return path


def found(path, **options):
    items = read_items([str(path)], options=SourceOptions(**options))
    return {item.name[len(str(path)) + 1 :]: (item.label, item.read()) for item in items}


@pytest.mark.parametrize("names", LAYOUTS.values(), ids=LAYOUTS)
def test_an_archive_is_read_as_the_folder_that_is_packed_in_it(names, tmp_path):
    members = {name: content(name) for name in names}
    expected = found(write_files(tmp_path / "folder", members))
    assert len(expected) > 1
    for kind in KINDS:
        archive = pack(tmp_path / f"mail{kind}", members)

        assert found(archive) == expected
        assert {item.label for item in read_items([str(archive)], label="x")} == {"x"}
    assert set(os.listdir(tmp_path)) == {"folder", *(f"mail{kind}" for kind in KINDS)}


@pytest.mark.parametrize(("names", "labels"), [
    (("news/sea/1", "news/sky/1"), ["sea", "sky"]),
    (("spam/2001/1", "spam/2002/1"), ["spam", "spam"]),
    (("junk/1", "junk/2"), ["junk", "junk"]),
    (("mails/1", "mails/spam2", "mails/spmsg3"), ["ham", "spam", "spam"]),
    (("Takeout/browser.html", "Takeout/Mail/All.mbox"), [None, None, None]),
    (("Takeout/Mail/All.mbox",), [None, None]),
    (("sea/cur/1", "sea/new/2"), ["sea", "sea"]),
    (("sea/.mh_sequences", "sea/1", "sea/sky/2"), ["sea"]),
    (("ham/", "ham/1", "spam/1"), ["ham", "spam"]),
    (("ham/1", "spam/1", "__MACOSX/ham/._1", "__MACOSX/x/1"), ["ham", "spam"]),
])  # fmt: skip
def test_a_folder_that_wraps_the_others_or_is_of_macos_states_no_class(names, labels, tmp_path):
    archive = pack(tmp_path / "a.zip", {name: content(name) for name in names})
    assert [label for label, _ in found(archive).values()] == labels


@pytest.mark.parametrize(
    ("names", "charset"),
    [
        (("好评", "差评"), "utf-8"), (("正常邮件", "垃圾邮件"), "gbk"),
        (("收件匣", "垃圾郵件"), "big5"),
        (("受信トレイ", "ソフト"), "cp932"),  # ソ ends in the byte of a backslash
        (("Почта", "Спам"), "cp866"), (("Grüße", "Übung"), "cp437"),
    ],
)  # fmt: skip
def test_the_charset_of_names_in_a_zip_archive_is_guessed(names, charset, tmp_path):
    stored = [name.encode(charset) for name in names]
    ascii_names = [sign * len(name) for sign, name in zip("ab", stored, strict=True)]
    data = packed({f"{name}/1.eml": HAM for name in ascii_names}, "zip")
    for ascii_name, name in zip(ascii_names, stored, strict=True):
        data = data.replace(ascii_name.encode(), name)
    (tmp_path / "a.zip").write_bytes(data)

    assert [label for label, _ in found(tmp_path / "a.zip").values()] == list(names)


def test_names_that_a_zip_archive_has_in_two_charsets_are_read_on_any_python(tmp_path):
    names, data = ("Почта/1.eml", "Спам/1.eml"), io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            stored = name.encode("cp866")
            field = struct.pack("<BL", 1, zlib.crc32(stored)) + name.encode()
            info = zipfile.ZipInfo("x" * len(stored))
            info.extra = struct.pack("<HH", 0x7075, len(field)) + field  # as WinRAR writes it
            archive.writestr(info, SPAM)
    whole = data.getvalue()
    for name in names:
        whole = whole.replace(b"x" * len(name), name.encode("cp866"))
    (tmp_path / "a.zip").write_bytes(whole)

    assert list(found(tmp_path / "a.zip")) == list(names)


# ---- hostile archives ----


@pytest.mark.parametrize("kind", [".tar", ".zip"])
def test_names_that_lead_out_of_the_archive_lead_nowhere(kind, tmp_path):
    outside = ("../../spam/1", "/spam/2", "./spam/./3", "spam/../ham/4", "ham//5")
    archive = pack(tmp_path / f"mail{kind}", {name: content(name) for name in outside})
    assert found(archive).keys() == {"spam/1", "spam/2", "spam/3", "spam/ham/4", "ham/5"}
    assert not (tmp_path.parent / "spam").exists()


def test_links_are_skipped_and_said_devices_are_none_of_our_business(nbspam, trained, tmp_path):
    with tarfile.open(tmp_path / "mail.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind.decode()}.eml")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("z.eml")
        info.size = len(SPAM)
        archive.addfile(info, io.BytesIO(SPAM))
    link = zipfile.ZipInfo("1.eml")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "mail.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")

    _, output, errors = nbspam("classify", tmp_path / "mail.tar", tmp_path / "mail.zip")
    assert output.count("\n") == 1
    assert errors.count("a link; unpack it to read its target") == 3
    assert f"{tmp_path}/mail.zip#1.eml: a link" in errors
    assert errors.count("\n") == 3


@pytest.mark.parametrize("inner", ["a.tar", "a.zip", "a.tar.gz", "a.parquet"])
def test_an_archive_in_an_archive_is_skipped_and_said(inner, tmp_path):
    archive = pack(tmp_path / "mail.tar", {inner: b"x", "1.eml": HAM})
    items = list(read_items([str(archive)]))
    assert len(items) == 2
    with pytest.raises(InputError, match=f"{inner}: an archive in an archive; unpack the outer"):
        items[0].read()


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_expands_without_end_is_refused(
    kind, nbspam, trained, monkeypatch, tmp_path
):
    monkeypatch.setattr(files, "MOST_FREE", 1 << 19)
    members = {f"{n}.eml": bytes(1 << 19) for n in range(4)}
    archive = pack(tmp_path / f"bomb{kind}", members)
    if kind == ".tar":
        assert nbspam("classify", archive)[0] == 0  # it is as large as it looks
    else:
        assert complains(
            nbspam("classify", archive), 1, f"{archive}: expands to more than 250 times"
        )


@pytest.mark.parametrize(
    ("kind", "part"),
    [*((kind, 0.6) for kind in KINDS), (".tar", 0.0), (".zip", 0.3), (".tgz", 0.8)],
)
def test_of_a_cut_off_archive_nothing_is_learned(part, kind, nbspam, untouched, tmp_path):
    members = {f"spam/{n}.eml": SPAM + os.urandom(2000) for n in range(20)}
    archive = pack(tmp_path / f"mail{kind}", members)
    archive.write_bytes(archive.read_bytes()[: int(part * archive.stat().st_size)])

    for command in ("update", "train"):
        status, output, errors = nbspam(command, archive)
        assert (status, output, errors.count("\n")) == (1, "", 1)
        assert str(archive) in errors


def changed(data, at, mask):
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


ZIP = packed({"1.eml": SPAM}, "zip")
CUT = gzip.compress(os.urandom(3000))[:-900]
FLAGS = ZIP.index(b"PK\1\2") + 8  # in the central directory
DAMAGES = {  # the file in the folder box/spam, and what is said of it
    "cut off": ("a.tar", packed({"1": SPAM})[:1500], ": cut off, its end is missing; copy it"),
    "member of a zip": ("a.zip", changed(ZIP, 45, 0xFF), "damaged ("),
    "compressed member": ("a.tar", packed({"1.eml.gz": CUT}), "#1.eml.gz: damaged ("),
    "encrypted": ("a.zip", changed(ZIP, FLAGS, 1), ": encrypted; unpack it with its password"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_of_a_damaged_archive_in_a_folder_nothing_is_learned(name, nbspam, untouched, tmp_path):
    file, data, said = DAMAGES[name]
    write_files(tmp_path / "box" / "spam", {file: data})

    for source in ("box", f"box/spam/{file}"):
        found = nbspam("update", "--spam", tmp_path / source)
        assert complains(found, 1, f"{tmp_path}/box/spam/{file}", said)


def test_too_many_or_too_deep_folders_are_refused(monkeypatch, tmp_path):
    found(pack(tmp_path / "allowed.tar", {"a/" * 101 + "1": HAM}))
    deep = pack(tmp_path / "deep.tar", {"a/" * 102 + "1": HAM})
    with pytest.raises(InputError, match="nested more than 100 deep, as mail is not; unpack it"):
        found(deep)
    monkeypatch.setattr(archives, "_MOST_FOLDERS", 50)
    wide = pack(tmp_path / "wide.tar", {f"{n}/1": HAM for n in range(60)})
    with pytest.raises(InputError, match="more than 50 folders, as mail has not; unpack it"):
        found(wide)


@pytest.mark.parametrize("kind", ["tar", "zip", "parquet"])
def test_a_packed_file_is_no_standard_input_and_an_archive_no_table(
    kind, nbspam, trained, tmp_path
):
    found = nbspam("classify", "--format", kind, "-", stdin=b"x")
    assert complains(found, 1, f"-: --format {kind} is read twice; give a file")
    if kind != "parquet":
        (tmp_path / f"a.{kind}").write_bytes(b"x")
        table = "table", "train", "--target", "x", "-m", tmp_path / "m"
        found = nbspam(*table, tmp_path / f"a.{kind}")
        said = f"a.{kind}: {kind} is read for mail and texts only; give a table of columns as CSV"
        assert complains(found, 1, said)


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


def with_field(archive, at, field):
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
        for member in MEMBERS[kind](stream)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_names_and_data_of_every_format_come_back(format):
    names = [LONG[-90:] if each == LONG else each for each in NAMES]
    names = (NAMES, names)[format == FORMATS[0]]
    for size in (0, 1, 511, 512, 513, 10_000):
        said = [(name, os.urandom(size)) for name in (*names, os.fsdecode(b"caf\xe9"))]
        assert members(written(said, format)) == [(name, False, True, data) for name, data in said]


ABC = written([("a", b"abc")], tarfile.USTAR_FORMAT)


@pytest.mark.parametrize("archive", [
    with_field(ABC, 124, b"\x80" + bytes(10) + b"\x03"),  # a size in base 256
    written([(header(pax_headers={"size": "3", "comment": "x"}), b"abc")]),
    written([("a", b"abc")], pax_headers={"comment": "of the whole archive"}),
])  # fmt: skip
def test_headers_of_many_programs_are_read(archive):
    assert members(archive) == [("a", False, True, b"abc")]


def test_members_are_passed_over_unread_and_forgotten(monkeypatch):
    archive = written([(str(n), b"x") for n in range(100)])
    headers = weakref.WeakSet()

    class Header(archives._TarHeader):
        def __init__(self, *named):
            super().__init__(*named)
            headers.add(self)

    monkeypatch.setattr(archives, "_TarHeader", Header)
    assert max(len(headers) for _ in MEMBERS["tar"](io.BytesIO(archive))) <= 3


SPARSE = header(pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)})
NO_SIZE = "invalid header|invalid offset|negative size|cut off"
LONGNAME = header(type=tarfile.GNUTYPE_LONGNAME, size=2).tobuf() + b"a".ljust(512, b"\0")
FIELDS = tarfile.TarInfo.create_pax_global_header({f"{n}": "x" for n in range(1001)})
GIGABYTE = with_field(written([(LONG, b"x")], tarfile.GNU_FORMAT), 124, b"10000000000\0")  # octal
DAMAGES_OF_TAR = {
    "empty": (b"", "cut off"),
    "a part of a header": (bytes(100), "cut off"),
    "no end mark": (written([("a", b"x")])[:1024], "cut off"),
    "cut in the data": (written([("a", bytes(9000))])[:2000], "cut off"),
    "no tar": (b"Subject: x\n" * 100, "damaged .invalid header"),
    "sparse": (written([(SPARSE, b"x")]), "has a file with holes .sparse.; unpack it"),
    "wrong checksum": (b"b" + ABC[1:], "bad checksum"),
    "negative size": (with_field(ABC, 124, b"-0000000001\0"), NO_SIZE),
    "size in digits that are not octal": (with_field(ABC, 124, b"99999999999\0"), NO_SIZE),
    "size in ones": (with_field(ABC, 124, b"\xff" * 12), NO_SIZE),
    "header of a gigabyte": (GIGABYTE, "a header of 1,073,741,824 bytes"),
    "fields for every member": (FIELDS + ABC, "damaged .1,001 fields for every member"),
    "ten thousand headers for one": (LONGNAME * 10_000 + ABC, "damaged .maximum recursion"),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGES_OF_TAR.values(), ids=DAMAGES_OF_TAR)
def test_damage_is_named(data, reason):
    with pytest.raises(ValueError, match=reason):
        members(data)


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


def test_a_method_that_nobody_knows_is_no_damage():
    data = bytearray(zipped(n=1))
    start = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    data[start + 10] = 99
    with pytest.raises(ValueError, match=r"^That .* is not supported; unpack it"):
        members(bytes(data), "zip")


WHOLE = {
    "tar": [written([(name, b"x" * 300) for name in NAMES[:4]])],
    "zip": [zipped(zipfile.ZIP_STORED), zipped(zipfile.ZIP_DEFLATED)],
}


@pytest.mark.parametrize("kind", WHOLE)
@examples(200)
@given(st.integers(0, 2**32))
def test_whatever_bytes_are_changed_only_known_errors_are_raised(kind, seed):
    rng = random.Random(seed)
    data = bytearray(rng.choice(WHOLE[kind]))
    for _ in range(rng.choice((1, 3, 30))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(ValueError) if kind == "tar" else suppress(ValueError, InputError, OSError):
        assert len(members(bytes(data), kind)) <= len(data) // 512 + 4
