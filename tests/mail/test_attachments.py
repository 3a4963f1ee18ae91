"""What attached files tell: facts, names in archives, texts of documents, codes in pictures."""

import base64
import io
import lzma
import struct
import zipfile
import zlib
from importlib.util import find_spec
from random import Random

import pytest

from nbspam.errors import UsageError
from nbspam.mail import attachments
from nbspam.mail.attachments import (
    AttachedDocument,
    limits_with_documents,
    look_at_file,
    read_archive,
)
from nbspam.mail.documents import read_document
from nbspam.mail.headers import LIMITS
from nbspam.mail.message import parse_message
from nbspam.mail.sandbox import DocumentReader
from nbspam.settings import SettingsChoices, chosen_settings, settings_from_dict

SPAM = "cheap pills without prescription"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\0\4AA\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640)
WEBP, LOSSLESS = b"RIFF....WEBP", struct.pack("<I", 319 | 239 << 14)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def zipped(*names: str, data: bytes = b"x") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return file.getvalue()


def facts(data: bytes, name: bytes = b"a", kind: bytes = b"application/octet-stream") -> set[str]:
    return set(look_at_file(kind, name, data, len(data)).facts)


def attached(data: bytes, limits=LIMITS) -> dict[str, bytes]:
    head = b"Content-Type: application/octet-stream; name=a\nContent-Transfer-Encoding: base64\n\n"
    return dict(parse_message(head + base64.encodebytes(data), limits).fields)


# --- facts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"%PDF-1.4 /URI (x)", b"a.pdf", {"type-pdf", "size-1k", "pdf-link"}),
        (b"%PDF-1.4 /Encrypt", b"a.doc", {"doc-is-pdf", "encrypted"}),
        (b"MZ" + bytes(5000), b"bill.pdf.exe", {"type-exe", "size-16k", "double-extension"}),
        (b"MZ", "invoice\u202efdp.exe".encode(), {"reversed-name"}),
        (PNG, b"a.jpg", {"type-png", "jpg-is-png", "image-640x480"}),
        (JPEG, b"a.jpeg", {"type-jpeg", "image-640x480"}),
        (b"GIF89a\1\0\2\0", b"", {"type-gif", "image-1x2"}),
        (b"BM" + bytes(16) + struct.pack("<Ii", 3, 4), b"", {"type-bmp", "image-3x4"}),
        (b"RIFF....WAVE", b"a.wav", {"type-other"}),
        (b"RIFF....WEBP", b"a.jpg", {"type-webp", "jpg-is-webp"}),
        (WEBP + b"VP8X" + bytes(8) + b"\x3f\1\0\xef\0\0", b"", {"image-320x240"}),
        (WEBP + b"VP8L" + bytes(4) + b"/" + LOSSLESS, b"", {"image-320x240"}),
        (WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 320, 240), b"", {"image-320x240"}),
        (b"\xe4R\\{\x8c\xd8\xa7M", b"a.pdf", {"type-one", "pdf-is-one"}),
        (bytes(0x8001) + b"CD001", b"a.pdf", {"type-iso", "pdf-is-iso"}),
        (b"<svg><script>eval(atob('x'))", b"a.svg", {"type-svg", "script-atob"}),
        (OLE + "_VBA_PROJECT".encode("utf-16-le"), b"a.xls", {"type-ole", "macros"}),
        (OLE + "EncryptedPackage".encode("utf-16-le"), b"a.docx", {"encrypted", "docx-is-ole"}),
        (zipped("word/document.xml", "word/vbaProject.bin"), b"a.docm", {"type-docx", "macros"}),
        (zipped("a.pdf.exe", "b.txt"), b"a.zip", {"inside-exe", "files-2", "double-extension"}),
        (b"<script>saveAs(atob('x'), new Blob)", b"a.html", {"type-other", "script-atob"}),
    ],
)
def test_facts(data, name, expected):
    assert expected <= facts(data, name)


def test_a_drawing_is_read_as_its_texts():
    drawing = b"<svg><title>no</title><text>cheap pills</text><a href='http://x.example/'/></svg>"
    for kind in (
        b"image/svg+xml",
        b"application/octet-stream; name=a.svg",
        b"image/x; name=a.SVG",
    ):
        found = dict(parse_message(b"Content-Type: " + kind + b"\n\n" + drawing).fields)
        assert (found["body"].strip(), found["url"]) == (b"cheap pills", b"http://x.example/")


def test_honest_names_are_no_facts():
    for data, name in ((b"%PDF", b"a.pdf"), (JPEG, b"a.b.jpg"), (b"x", b"a.tar.gz")):
        assert not [each for each in facts(data, name) if "-is-" in each or "double" in each]


def test_a_file_that_comes_again_has_the_same_token():
    one, again, other = attached(PNG), attached(PNG), attached(PNG + b"x")
    same = [
        {word for word in each["file"].split() if word[:5] == b"same-"}
        for each in (one, again, other)
    ]
    assert same[0] == same[1] != same[2]
    assert len(same[0] | same[2]) == 2


def test_a_large_file_is_looked_at_in_part():
    assert {"too-large", "size-4096k"} <= {
        word.decode() for word in attached(b"%PDF" + bytes(3 << 20))["file"].split()
    }


def test_signatures_and_plain_mail_have_no_facts():
    for kind in (
        b"application/pgp-signature; name=a.asc",
        b"text/plain",
        b"message/rfc822; name=a",
    ):
        found = parse_message(b"Content-Type: " + kind + b"\n\nhello")
        assert "file" not in dict(found.fields)


# --- archives --------------------------------------------------------------------------------


def rar5(name: bytes, extra: bytes = b"") -> bytes:
    """Return an archive of one file; all numbers are below 128."""
    flags = bytes([1 | 2 * 0, len(extra)]) if extra else b"\0"
    body = b"\2" + flags + b"\0\x7f\0\0\0" + bytes([len(name)]) + name + extra
    main = b"CRC!\3\1\0\0"
    return b"Rar!\x1a\7\1\0" + main + b"CRC!" + bytes([len(body)]) + body


def rar4(name: bytes, flags: int = 0x8000) -> bytes:
    head = struct.pack("<2xBHH7xI11x", 0x74, flags, 32 + len(name), 99)
    file = struct.pack("<IIBIIBBHI", 4, 99, 2, 0, 0, 29, 48, len(name), 0) + name
    return b"Rar!\x1a\7\0" + head[:7] + file + b"data"


def seven_zip(name: str, compress: bool = False, coder: bytes = b"") -> bytes:
    names = name.encode("utf-16-le") + b"\0\0"
    header = b"\1\5\1\x11" + bytes([1 + len(names)]) + b"\0" + names + coder + b"\0\0"
    packed = b""
    if compress:
        filters = [{"id": lzma.FILTER_LZMA1, "lc": 3, "lp": 0, "pb": 2, "dict_size": 1 << 16}]
        packed = lzma.compress(header, lzma.FORMAT_RAW, filters=filters)
        sizes = bytes([0, 1, 9, len(packed), 0])
        header = b"\x17\6" + sizes + b"\7\x0b\1\0\1\x23\3\1\1\5\x5d\0\0\1\0\x0c\x20\0\0"
    start = struct.pack("<QQI", len(packed), len(header), 0)
    return b"7z\xbc\xaf\x27\x1c\0\4crc!" + start + packed + header


@pytest.mark.parametrize(
    ("data", "is_encrypted"),
    [
        (zipped("näme.exe"), False),
        (zipped("näme.exe").replace(b"\x14\0\0\x08", b"\x14\0\1\x08"), True),
        (rar5("näme.exe".encode()), False),
        (rar5("näme.exe".encode(), b"\x02\x01\0"), True),
        (rar4("näme.exe".encode()), False),
        (rar4("näme.exe".encode(), 0x8004), True),
        (seven_zip("näme.exe"), False),
        (seven_zip("näme.exe", compress=True), False),
        (seven_zip("näme.exe", coder=b"\x06\xf1\x07\x01"), True),
    ],
)
def test_the_names_in_an_archive(data, is_encrypted):
    archive = read_archive(data)
    assert archive.names == ["näme.exe".encode()]
    assert archive.is_encrypted == is_encrypted


def test_damaged_archives_never_raise():
    random = Random(1)
    seeds = [zipped("a.exe"), rar5(b"a.exe"), rar4(b"a.exe"), seven_zip("a", compress=True)]
    for _ in range(500):
        data = bytearray(random.choice(seeds))
        for _ in range(random.randrange(1, 6)):
            data[random.randrange(6, len(data))] = random.randrange(256)
        read_archive(bytes(data[: random.randrange(6, len(data) + 1)]))


# --- documents -------------------------------------------------------------------------------


def pdf(text: str, link: str) -> bytes:
    """Return a PDF of one page, without a table of its objects."""
    stream = zlib.compress(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode())
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Resources<</Font<</F1 4"
        b" 0 R>>>>/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(%b)>>>>]>>"
        % link.encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(stream), stream),
    )
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % each for each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Size 6/Root 1 0 R>>\n%%EOF"


XML = "<w:p><w:r><w:t>cheap pi</w:t></w:r><w:r><w:t>lls &amp; more</w:t></w:r></w:p><w:p>end</w:p>"


def test_the_text_of_office_documents():
    data = zipped("word/document.xml", data=XML.encode())
    found = read_document("docx", data)
    assert (found.text.split("\n"), found.facts) == (["cheap pills & more", "end", ""], ())
    for name in ("xl/sharedStrings.xml", "ppt/slides/slide1.xml", "content.xml"):
        assert "pills" in read_document("odf", zipped(name, data=XML.encode())).text
    link = b'<Relationship Target="http://a.example/?a=1&amp;b" TargetMode="External"/>'
    found = read_document("docx", zipped("word/_rels/document.xml.rels", data=link))
    assert found.links == ["http://a.example/?a=1&b"]


def test_entities_of_a_document_are_not_expanded():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><w:p>&b;&b;</w:p>'
    assert "aaaaaaaaaa;" not in read_document("docx", zipped("word/document.xml", data=bomb)).text
    large = zipped("word/document.xml", data=bytes(9 << 20))
    assert read_document("docx", large).facts == ("attached-long",)


needs_libraries = pytest.mark.skipif(
    find_spec("pypdfium2") is None or find_spec("zxingcpp") is None,
    reason="no nbspam[attachments]",
)


@pytest.fixture
def reader():
    reader = DocumentReader()
    yield reader
    reader.stop()


@pytest.mark.slow
@needs_libraries
def test_documents_are_read_in_a_process_that_may_be_lost(reader):
    def read(kind, data, seconds=2.0):
        return reader.read([AttachedDocument(kind, data)], seconds)

    found = read("pdf", pdf(SPAM, "http://a.example/pdf"))
    assert found.texts[0].strip().decode() == SPAM
    assert found.links == [b"http://a.example/pdf"]
    assert read("pdf", b"%PDF junk").facts == {"attached-unreadable"}
    process = reader.process
    slow = read("docx", zipped("word/document.xml", data=b"<w:p>a" * 600_000), 0.001)
    assert slow.facts == {"attached-slow"}
    assert read("rtf", b"{\\rtf1 hello}").texts == [b"hello"]
    assert reader.process is not process


@pytest.mark.slow
@needs_libraries
def test_links_in_codes_and_documents_are_links_like_others():
    import zxingcpp
    from PIL import Image

    code = zxingcpp.create_barcode("http://a.example/code", zxingcpp.BarcodeFormat.QRCode)
    image = Image.fromarray(code.to_image(scale=5))
    for kind in ("PNG", "JPEG", "PDF"):
        file = io.BytesIO()
        image.convert("L").save(file, kind)
        found = attached(file.getvalue(), limits_with_documents())
        assert b"http://a.example/code" in found["url"], kind
    found = attached(zipped("word/document.xml", data=XML.encode()), limits_with_documents())
    assert b"cheap pills" in found["attached"]
    assert "attached" not in attached(zipped("word/document.xml", data=XML.encode()))


def test_attachments_are_a_setting_of_mail_that_needs_libraries(monkeypatch):
    settings = chosen_settings(SettingsChoices(attachments=True), is_text=False)
    assert settings_from_dict(settings.to_dict()).attachments
    assert "attachments" not in chosen_settings(SettingsChoices(), is_text=False).to_dict()
    with pytest.raises(UsageError, match=r"^--attachments: for mail"):
        chosen_settings(SettingsChoices(attachments=True), is_text=True)
    limits_with_documents.cache_clear()
    monkeypatch.setattr(attachments, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'nbspam\[attachments\]'$"):
        limits_with_documents()
    limits_with_documents.cache_clear()
