"""What stands in attached files and wrappings, and what those facts tell."""

import base64
import gzip
import io
import lzma
import os
import resource
import struct
import tarfile
import zlib
from importlib.util import find_spec
from signal import Signals
from struct import pack

import numpy as np
import pytest

from nbspam.errors import UsageError
from nbspam.mail import attachments, documents, wrappings
from nbspam.mail.attachments import limits_with_documents, look_at_file, read_archive
from nbspam.mail.documents import Document, DocumentReader, answer_requests, read_document
from nbspam.mail.headers import LIMITS
from nbspam.mail.html import read_html
from nbspam.mail.message import parse_message
from nbspam.mail.wrappings import card_texts, cms_content, decompressed, rtf_texts, tnef_parts
from nbspam.settings import SettingsChoices, chosen_settings, settings_from_dict
from support import in_child, memory_of, packed, raising

SPAM = "cheap pills without prescription"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\0\4AA\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640)
WEBP, LOSSLESS = b"RIFF....WEBP", struct.pack("<I", 319 | 239 << 14)
ZIP = b"PK\3\4" + bytes(22) + b"\5\0"  # before the length of its further fields, and a name
BINARY = b"application/octet-stream"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def zipped(*names: str, data: bytes = b"x") -> bytes:
    return packed(dict.fromkeys(names, data), "zip")


def facts(data: bytes, name: bytes = b"a", kind: bytes = BINARY) -> set[str]:
    return set(look_at_file(kind, name, data, len(data)).facts)


def fields(data: bytes, kind=BINARY, name=b"x", limits=LIMITS) -> dict[str, bytes]:
    """Return the texts of a mail that has a file, by their origin."""
    head = b'Content-Type: %b; name="%b"\nContent-Transfer-Encoding: base64\n\n'
    found: dict[str, bytes] = {}
    mail = head % (kind, name) + base64.encodebytes(data)
    for origin, text in parse_message(mail, limits).fields:
        found[origin] = found.get(origin, b"") + b" " + text
    return {origin: b" ".join(text.split()) for origin, text in found.items()}


# --- facts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "name", "expected"), [
    (b"%PDF-1.4 /URI (x)", b"a.pdf", {"type-pdf", "size-1k", "pdf-link"}),
    (b"%PDF-1.4 /Encrypt", b"a.doc", {"doc-is-pdf", "encrypted"}),
    (b"MZ" + bytes(5000), b"bill.pdf.exe", {"type-exe", "size-16k", "double-extension"}),
    (b"PK00" + zipped("a.exe"), b"a.zip", {"type-zip", "inside-exe"}),
    (b"MZ", "invoice\u202efdp.exe".encode(), {"reversed-name"}),
    (PNG, b"a.jpg", {"type-png", "jpg-is-png", "image-640x480"}),
    (PNG[:18], b"a.png", {"type-png"}),
    (JPEG, b"a.jpeg", {"type-jpeg", "image-640x480"}),
    (b"GIF89a\1\0\2\0", b"", {"type-gif", "image-1x2"}),
    (b"BM" + bytes(16) + struct.pack("<Ii", 3, 4), b"", {"type-bmp", "image-3x4"}),
    (b"RIFF....WAVE", b"a.wav", {"type-other"}),
    (b"RIFF....WEBP", b"a.jpg", {"type-webp", "jpg-is-webp"}),
    (WEBP + b"VP8X" + bytes(8) + b"\x3f\1\0\xef\0\0", b"", {"image-320x240"}),
    (WEBP + b"VP8L" + bytes(4) + b"/" + LOSSLESS, b"", {"image-320x240"}),
    (WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 320, 240), b"", {"image-320x240"}),
    (b"\xe4R\\{\x8c\xd8\xa7M", b"a.pdf", {"type-one", "pdf-is-one"}),
    (packed({"a.exe": b"x"}), b"a.zip", {"type-tar", "zip-is-tar", "inside-exe", "files-1"}),
    (packed({"a.pdf": b"%PDF-1"}), b"a.tar", {"type-tar", "inside-pdf"}),
    (bytes(0x8001) + b"CD001", b"a.pdf", {"type-iso", "pdf-is-iso"}),
    (b"Rar!\x1a\7\0", b"a.arj", {"type-rar", "arj-is-rar"}),
    (zipped("a/", "a/b.c/", "a/b.c/d"), b"a.zip", {"files-1"}),
    (ZIP + b"\x0e\0a.txtup\x0a\0\1crc!b.exe", b"a.zip", {"inside-exe", "inside-txt"}),
    (ZIP + b"\x0e\0?.exeup\x0a\0\1crc!b.exe", b"a.zip", {"inside-exe", "files-1"}),
    (b"<svg><script>eval(atob('x'))", b"a.svg", {"type-svg", "script-atob"}),
    (b"<?xml version='1.0'?><!DOCTYPE svg><svg>", b"a.svg", {"type-svg"}),
    (OLE + "_VBA_PROJECT".encode("utf-16-le"), b"a.xls", {"type-ole", "macros"}),
    (OLE + "EncryptedPackage".encode("utf-16-le"), b"a.docx", {"encrypted", "docx-is-ole"}),
    (zipped("word/document.xml", "word/vbaProject.bin"), b"a.docm", {"type-docx", "macros"}),
    (zipped("a.pdf.exe", "b.txt"), b"a.zip", {"inside-exe", "files-2", "double-extension"}),
    (b"<script>saveAs(atob('x'), new Blob)", b"a.html", {"type-other", "script-atob"}),
    (zipped("invoice\u202efdp.exe"), b"a.zip", {"reversed-name"}),
    (zipped("xl/macrosheets/sheet1.xml"), b"a.xlsm", {"type-xlsx", "macros"}),
    (zipped("ppt/slides/a.xml", "xl/a.xml"), b"a.pptx", {"type-pptx"}),  # with a sheet inside
    (zipped("word/embeddings/oleObject1.bin"), b"a.docx", {"type-docx", "embedded"}),
    (b"{\\rt{\\object{\\*\\objdata 01}}}", b"a.rtf", {"type-rtf", "embedded"}),
    (b"GIF89a %PDF-1.4 /URI", b"a.pdf", {"type-pdf", "pdf-link"}),  # which viewers open
    (zipped("a") + b"%PDF-1.4 /URI", b"a.pdf", {"type-pdf", "pdf-link"}),
    (b"%PDF<</Type/ObjStm>>stream\n" + zlib.compress(b"/Launch"), b"a.pdf", {"pdf-launch"}),
])  # fmt: skip
def test_facts(data, name, expected):
    assert expected <= facts(data, name)


def test_honest_names_are_no_facts():
    for data, name in ((b"%PDF", b"a.pdf"), (JPEG, b"a.b.jpg"), (b"x", b"a.tar.gz")):
        assert not [each for each in facts(data, name) if "-is-" in each or "double" in each]


def test_damaged_streams_count_among_what_is_unpacked_of_a_pdf():
    launch = b"/ObjStm stream\n" + zlib.compress(b"/Launch")
    assert "pdf-launch" in facts(b"%PDF" + b"/ObjStm stream\nno" * 9 + launch, b"a.pdf")
    assert "pdf-launch" not in facts(b"%PDF" + b"/ObjStm stream\nno" * 21 + launch, b"a.pdf")


@pytest.mark.parametrize("data", [
    b"%PDF /URI /JavaScript /Launch /Encrypt /AcroForm /EmbeddedFile",
    b'<a>unescape(atob(createobjecturl fromcharcode type="password"',
])  # fmt: skip
def test_the_facts_of_a_file_have_the_same_order_in_every_process(data):
    _, _, *signs, _ = look_at_file(BINARY, b"a", data, len(data)).facts
    assert len(signs) > 4
    assert signs == sorted(signs)


def test_a_large_file_is_looked_at_in_part():
    found = fields(b"%PDF" + bytes(3 << 20))["file"].split()
    assert {b"too-large", b"size-4096k"} <= set(found)
    plain = parse_message(b"Content-Type: application/pdf\n\n%PDF" + b"x\n" * (5 << 19))
    assert b"size-16384k" in dict(plain.fields)["file"].split()


@pytest.mark.parametrize(("start", "size", "is_asked"), [
    (PNG, 2 << 20, False), (PNG, 1 << 20, True), (b"{\\rtf1 ", 2 << 20, True),
    (zipped("word/document.xml"), 2 << 20, True),
])  # fmt: skip
def test_of_cut_documents_only_those_are_read_that_need_no_end(start, size, is_asked, monkeypatch):
    asked = Document("asked", [], hidden="unseen")
    monkeypatch.setattr(DocumentReader, "ask", lambda *_: (0.0, asked))
    found = fields(start + bytes(size), limits=LIMITS._replace(documents=300))
    assert found.get("attached") == (b"asked" if is_asked else None)
    assert found.get("hidden") == (b"unseen" if is_asked else None)


def test_signatures_and_plain_mail_have_no_facts():
    for kind in (b"application/pgp-signature;name=a", b"text/plain", b"message/rfc822; name=a"):
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


@pytest.mark.parametrize(("data", "is_encrypted"), [
    (zipped("näme.exe"), False),
    (zipped("näme.exe").replace(b"\x14\0\0\x08", b"\x14\0\1\x08"), True),
    (rar5("näme.exe".encode()), False),
    (rar5("näme.exe".encode(), b"\x02\x01\0"), True),
    (rar5("näme.exe".encode()) + b"CRC!\2\4\0", True),  # of headers
    (rar4("näme.exe".encode()), False),
    (rar4("näme.exe".encode(), 0x8004), True),
    (rar4("näme.exe".encode()) + struct.pack("<2xBHH", 0x73, 0x80, 13), True),
    (packed({"näme.exe": b"x"}), False),
    (packed({"näme.exe": b"x"}, "tar.gz"), False),
    (zipped("näme.exe").replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"), True),
    (b"\x1f\x8b\x08\x0c" + bytes(6) + b"\1\0x" + "näme.exe\0".encode(), False),
    (b"\x1f\x8b\x08\x08" + bytes(6) + "näme.exe\0".encode() + gzip.compress(b"x")[10:], False),
    (seven_zip("näme.exe"), False),
    (seven_zip("näme.exe", compress=True), False),
    (seven_zip("näme.exe", coder=b"\x06\xf1\x07\x01"), True),
])  # fmt: skip
def test_the_names_in_an_archive(data, is_encrypted):
    assert read_archive(data) == (["näme.exe".encode()], is_encrypted)


@pytest.mark.parametrize("data", [
    zipped(*map(str, range(600))), b"Rar!\x1a\7\0" + rar4(b"a")[7:] * 600,
    b"Rar!\x1a\7\1\0" + rar5(b"a")[8:] * 600, packed(dict.fromkeys(map(str, range(600)), b"x")),
])  # fmt: skip
def test_of_very_many_names_the_first_are_read(data):
    names, _ = read_archive(data)
    assert len(names) == attachments.MAX_MEMBERS == 500
    assert memory_of(read_archive, seven_zip("a", coder=b"\x11" * (1 << 18)))[1] < 1 << 20


def test_a_long_or_forged_name_in_an_archive_keeps_its_extension():
    for name in ("invoice.pdf" + " " * 250 + ".exe", "請求書" * 84 + ".exe"):
        for data in (zipped(name), packed({name: b"x"}), rar4(name.encode())):
            assert "inside-exe" in facts(data), name
    assert [*map(len, read_archive(zipped("a" * 9999))[0])] == [1024]
    for data in (zipped("a.exe").replace(b"a.exe", b"a.txt", 1), b"MZ\0" + rar5(b"a.exe")):
        assert "inside-exe" in facts(data)


def test_a_tar_archive_has_long_names_and_damage_ends_it():
    name, files = "a" * 120 + ".exe", {"b": b"x"}
    dated, folder = tarfile.TarInfo("c"), tarfile.TarInfo("d")
    dated.mtime, dated.type, folder.type = 0.5, tarfile.CONTTYPE, tarfile.DIRTYPE
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        heads = [info.tobuf(form) for info in (tarfile.TarInfo(name), dated, folder)]
        assert read_archive(b"".join(heads) + packed(files))[0] == [name.encode(), b"c", b"b"]
    for size, n_files in ((b"\x80" + bytes(10) + b"\1", 2), (b"-7777777777\0", 1)):
        data = packed(files).replace(b"00000000001\0", size)[:-9216] + packed(files)
        assert read_archive(data) == ([b"b"] * n_files, False)
    assert read_archive(gzip.compress(b"x")) == ([], False)
    assert read_archive(packed(files, "tar.gz")[:30]) == ([], False)


def test_names_in_an_archive_may_be_in_a_charset_of_windows():
    archive = rar4("发票清单与付款通知.exe".encode("gbk"))
    found = fields(archive, limits=LIMITS._replace(documents=1))
    assert found["attached"].decode() == "发票清单与付款通知.exe"


# --- documents -------------------------------------------------------------------------------


# Letters that stand for others; there is none to be drawn for the last code.
TO_UNICODE = b"5 beginbfchar <57><0635> <58><062d> <59><064a> <5a><06440627> <80><4f60> endbfchar"


def pdf(text: str, link: str, more: str = "") -> bytes:
    """Return a PDF of one page, without a table of its objects."""
    stream = zlib.compress(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET {more}".encode())
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Resources<</Font<</F1 4"
        b" 0 R>>>>/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(%b)>>>>]>>"
        % link.encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Length %d>>stream\n%b\nendstream" % (len(TO_UNICODE), TO_UNICODE),
    )
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % each for each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Size 7/Root 1 0 R>>\n%%EOF"


XML = "<w:p><w:r><w:t>cheap pi</w:t></w:r><w:r><w:t>lls &amp; more</w:t></w:r></w:p><w:p>end</w:p>"
NOTE = "<text:note><text:note-citation>1</text:note-citation><text:p>foot</text:p></text:note>"
FORMULA = 'HYPERLINK("http://a.example/","x")'


@pytest.mark.parametrize(("name", "xml", "lines"), [
    ("word/document", XML, ["cheap pills & more", "end"]),
    ("word/document", "a<wp:posOffset>12</wp:posOffset>b<w:ptab/>c<w:sym/>d", ["ab", "c", "d"]),
    ("word/document", "a<w:noBreakHyphen/>b<w:rt>c</w:rt><w:instrText>EQ d", ["a-b", "c", "EQ d"]),
    ("word/document2", "<w:t>a", ["a"]),  # as Word writes it in a browser
    ("xl/worksheets/Sheet", "<v>text", ["text"]),
    ("ppt/slides/slide1", "<a:p>a<a:tableStyleId>{5}</a:tableStyleId></a:p>b", ["a", "b"]),
    ("content", f"a<text:tab/>b<text:line-break/>c{NOTE}", ["a", "b", "c", "1", "foot"]),
    ("content", "a<text:span>b<office:annotation><dc:creator>Ann", ["ab", "Ann"]),
    ("xl/sharedStrings", "<si><t>a</t></si><si><t>b</t><rPh sb='0'><t>c</t></rPh>", ["a", "b"]),
    ("xl/worksheets/sheet1", "<c><f>SUM(A1)</f><v>-1.5E-3</v><v>text</v>", ["text"]),
    ("xl/worksheets/sheet1", f'<f aca="false">{FORMULA}</f><v></v>', [FORMULA]),
    ("xl/worksheets/a", "<formula>LEN(A)</formula><oddHeader>&amp;Ca</oddHeader>b", ["a", "b"]),
    ("xl/comments/comment1", "<t>a", ["a"]),
    ("xl/drawings/drawing1", "<xdr:col>1</xdr:col><row>2</row><a:t>a", ["a"]),
    ("ppt/charts/chart1", "<c:f>A!$B$1</c:f><c:v>a</c:v><c:v>4.3</c:v><c:v>b</c:v>", ["a", "b"]),
    ("word/diagrams/data1", "<c:formatCode>General</c:formatCode><a:t>a", ["a"]),
    ("word/story", "<w:t>a", ["a"]),  # its name is free
])  # fmt: skip
def test_the_text_of_office_documents(name, xml, lines):
    found = read_document("odf", zipped(f"{name}.xml", data=xml.encode()))
    assert ([*filter(None, found.text.split("\n"))], found.facts) == (lines, ())


WORD = "http://purl.oclc.org/ooxml/wordprocessingml/main"
ODF = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
HIDDEN = "<w:r><w:rPr><w:color w:val='FFFFFF'/></w:rPr>white</w:r>"


@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
@pytest.mark.parametrize(("xml", "shown", "hidden"), [
    ("<w:t><![CDATA[a < b]]></w:t>c", "a < bc", ""),
    ("a<!-- <w:t>no text</w:t> -->b<!-- <w:t>c", "ab", ""),
    (HIDDEN + "it's", "it's", "white"),
    (f"<?x xmlns:n='{ODF}'?><n:p xmlns:n='{WORD}'>" + HIDDEN.replace("w:", "n:"), "", "white"),
    (f"<p xmlns='{WORD}'>" + HIDDEN.replace("<w:", "<").replace("/w:", "/"), "", "white"),
    (f"<n:section xmlns:n='{ODF}' n:display='none'>a</n:section>b", "b", "a"),
])  # fmt: skip
def test_a_document_may_write_its_xml_in_other_ways(xml, shown, hidden, charset):
    found = read_document("docx", zipped("word/document.xml", data=xml.encode(charset)))
    assert (found.text.strip("\n"), found.hidden.strip()) == (shown, hidden)


@pytest.mark.parametrize(("name", "xml"), [
    ("word/_rels/a.xml.rels", '<Relationship Target="http://a.example/?a=1&amp;b" Mode="x"/>'),
    ("word/a.xml", '<w:instrText xml:space="x"> HYPERLINK "http://a.example/?a=1&amp;b" '),
    ("xl/worksheets/a.xml", '<formula1>"http://a.example/?a=1&amp;b"</formula1>'),
    ("xl/worksheets/a.xml", '<f>HYPERLINK("http://a.example/?a=1&amp;b","secret")</f><v>1</v>'),
])  # fmt: skip
def test_links_behind_the_text_of_office_documents(name, xml):
    found = read_document("docx", zipped(name, data=xml.encode()))
    assert (found.links, found.facts) == (["http://a.example/?a=1&b"], ())
    assert not found.text.strip()


@pytest.mark.parametrize("head", [b"", b"Content-Type: text/html; charset=utf-8\n\n"])
def test_word_takes_pages_into_its_text(head):
    page = head + b"<p>buy <a href=http://a.example/>now"
    found = read_document("docx", zipped("word/a.mht", data=page))
    assert (found.text.split(), found.links) == (["buy", "now"], ["http://a.example/"])


def test_a_damaged_or_encrypted_document_is_read_as_far_as_it_goes():
    data = packed(dict.fromkeys(("word/document.xml", "word/header1.xml"), XML.encode()), "zip")
    directory = data.index(b"PK\1\2")
    broken = data[: directory + 16] + b"sum?" + data[directory + 20 :]
    torn = data[:50] + b"\xff" * 20 + data[70:directory]
    for file, facts in ((torn, ()), (data[:directory], ()), (broken, ("attached-unreadable",))):
        found = read_document("docx", file)
        assert ("cheap pills & more" in found.text, found.facts) == (True, facts)
        assert found.text.isascii()  # and has no compressed data
    locked = zipped("content.xml", "META-INF/manifest.xml", data=b"<manifest:encryption-data/>")
    assert read_document("odf", locked) == Document("", [], ("encrypted",))


def test_entities_of_a_document_are_not_expanded():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><w:p>&b;&b;</w:p>'
    assert "aaaaaaaaaa;" not in read_document("docx", zipped("word/document.xml", data=bomb)).text
    large = zipped("word/document.xml", data=bytes(9 << 20))
    assert read_document("docx", large).facts == ("attached-long",)


@pytest.mark.parametrize(("n_slides", "facts"), [(100, ()), (101, ("attached-long",))])
def test_of_many_slides_the_first_hundred_are_read(n_slides, facts):
    names = [f"ppt/slides/slide{number}.xml" for number in range(n_slides)]
    found = read_document("pptx", zipped(*names, data=b"<a:p>pills</a:p>"))
    assert (len(found.text.split()), found.facts) == (100, facts)


@pytest.mark.parametrize(("padding", "is_read"), [
    (b"<w:p/>", True),
    (b'<w:p w:rsidR="1"><w:pPr><w:b/></w:pPr><w:r><w:t> </w:t></w:r></w:p>\n', True),
    (b"<w:p><w:r><w:t>a</w:t></w:r></w:p>", False),
    (b"<w:p><w:r><w:drawing><wp:anchor behindDoc='1'/></w:drawing></w:r></w:p>", False),
])  # fmt: skip
def test_empty_paragraphs_take_no_room_in_a_document(padding, is_read, monkeypatch):
    for name, size in (("_MAX_XML", 4000), ("_MAX_UNPACKED", 16_000), ("_PIECE", 1000)):
        monkeypatch.setattr(documents, name, size)
    for size, can_be_read in ((5000, is_read), (17_000, False)):
        xml = padding * (size // len(padding)) + XML.encode()
        found = read_document("docx", zipped("word/document.xml", data=xml))
        assert ("cheap pills" in found.text) == can_be_read
        assert found.facts == (() if can_be_read else ("attached-long",))


needs_libraries = pytest.mark.skipif(
    not all(map(find_spec, ("olefile", "pypdfium2", "zxingcpp"))), reason="no nbspam[attachments]"
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
        (found,) = reader.read([(kind, data)], seconds)
        return found

    found = read("pdf", pdf(SPAM, "http://a.example/pdf"))
    assert found.text.strip() == SPAM
    assert found.links == ["http://a.example/pdf"]
    assert read("pdf", b"%PDF junk").facts == ("attached-unreadable",)
    process = reader.process
    slow = read("docx", zipped("word/document.xml", data=b"<w:p>a" * 600_000), 0.001)
    assert slow.facts == ("attached-slow",)
    assert read("rtf", b"{\\rtf1 hello}").text == "hello"
    assert reader.process is not process


@needs_libraries
@pytest.mark.parametrize(("operators", "hidden"), [
    ("BT 50 650 Td {} Tj", ""),
    ("BT 1 g 50 650 Td {} Tj", "secret"),
    ("BT .9 g 50 650 Td {} Tj", ""),
    ("BT 3 Tr 50 650 Td {} Tj", "secret"),
    ("50 640 3 20 re 60 640 3 20 re f BT 3 Tr 50 650 Td {} Tj", ""),  # as in a scanned page
    ("20 600 300 80 re f BT 1 g 50 650 Td {} Tj", ""),
    ("BT 50 650 Td {} Tj ET 1 g 20 600 300 80 re f", "secret"),
    ("BT /F1 4 Tf 50 650 Td {} Tj", "secret"),
    ("BT 700 650 Td {} Tj", "secret"),
    ("BT 1 g 50 650 Td (...) Tj", ""),
    ("BT 1 g 50 650 Td (\\200\\200) Tj", "你你"),
    ("BT 3 Tr 50 650 Td (\\200\\200) Tj", "你你"),
    ("BT 50 650 Td (\\200\\200) Tj", ""),  # other machines may have a font for it
])  # fmt: skip
def test_text_that_a_page_does_not_show_is_hidden(operators, hidden):
    more = "/F1 12 Tf " + operators.format("(secret)")
    found = read_document("pdf", pdf(SPAM, "", more))
    assert found.text.split()[:4] == SPAM.split()
    assert ("secret" in found.text, found.hidden) == ("secret" in more and not hidden, hidden)
    assert ("attached-hidden" in found.facts) == bool(hidden)


@needs_libraries
@pytest.mark.parametrize(("operators", "word"), [
    ("(pre-) Tj 0 -20 Td (scription) Tj", "prescription"), ("(A-) Tj 0 -20 Td (Bar) Tj", "A-Bar"),
    ("[(m) -556 (m) -833 (o)] TJ 0 0 Td [-833 (a) -833 (m) -556 (n)] TJ", "mammon"),
    ("(XYXW) Tj", "صحيح"), ("(WZW) Tj", "صلاص"),
    ("/Span<</ActualText<feff062d>>>BDC (X) Tj EMC (YXW) Tj", "صحيح"),  # as Chromium writes it
])  # fmt: skip
def test_the_words_of_a_page_are_whole_and_run_in_the_right_direction(operators, word):
    data = pdf("", "", f"BT /F1 12 Tf 50 650 Td {operators} ET")
    found = read_document("pdf", data.replace(b"[3 0 R]/Count 1", b"[3 0 R 3 0 R 3 0 R]/Count 3"))
    assert found.text.split() == [word] * 3


@needs_libraries
def test_notes_on_a_page_are_text_of_it():
    note = b"<</Type/Annot/Subtype/FreeText/Rect[50 800 300 820]/DA(/F1 12 Tf)/Contents(noted)>>"
    data = pdf("once", "http://a.example/").replace(b"/Annots[", b"/Annots[" + note)
    data = data.replace(b"Catalog", b"Catalog/AcroForm<</Fields[]/DR<</Font<</F1 4 0 R>>>>>>")
    data = data.replace(b"/MediaBox[0 0 612 792]", b"")  # the page has that of the document
    found = read_document("pdf", data.replace(b"/Count 1", b"/Count 1/MediaBox[0 0 612 842]"))
    assert (found.text.split(), found.links) == (["once", "noted"], ["http://a.example/"])


@needs_libraries
def test_the_text_of_twenty_pages_is_read_also_beside_a_damaged_one():
    data = pdf("once", "").replace(b"[3 0 R]/Count 1", b"[%b]/Count 30" % (b"3 0 R " * 30))
    found = read_document("pdf", data)
    assert (found.text.split(), found.facts) == (["once"] * 20, ("pages-20",))
    data = pdf("once", "").replace(b"[3 0 R]/Count 1", b"[3 0 R 1 0 R 3 0 R]/Count 3")
    assert read_document("pdf", data).text.split() == ["once", "once"]


@needs_libraries
def test_a_page_is_not_drawn_if_that_could_lose_the_text_of_all(monkeypatch):
    monkeypatch.setattr("signal.getitimer", lambda _: (1e-9, 0.0))
    found = read_document("pdf", pdf(SPAM, "", "BT /F1 12 Tf 1 g 50 650 Td (secret) Tj"))
    assert (found.text.split(), found.hidden) == ([*SPAM.split(), "secret"], "")


def test_without_room_for_a_process_documents_are_not_read(reader, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", raising(BlockingIOError))  # as at a limit of processes
    (found,) = reader.read([("rtf", b"{")] * 2, 2.0)  # the second one is not tried
    assert found.facts == ("attached-slow",)


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP"])
@pytest.mark.parametrize("size", [10, 1 << 20])  # which the pipe takes at once, and not
def test_a_process_that_ended_or_hangs_costs_one_message_its_documents(
    size, signal, reader, monkeypatch
):
    document = ("rtf", b"{\\rtf1 hello}" + b"\n" * size)
    texts = []
    for patience in (10.0, 0.1, 10.0):
        monkeypatch.setattr(documents, "_PATIENCE", patience)
        (found,) = reader.read([document], 2.0)
        texts.append(found.text)
        if len(texts) == 1:  # as the system ends it where memory is short
            reader.process.send_signal(getattr(Signals, signal))
    assert texts == ["hello", "", "hello"]


def test_documents_are_read_while_a_thousand_files_are_open(reader):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1200, limits[1]))
    try:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        (found,) = reader.read([("rtf", b"{\\rtf1 hello}")], 2.0)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.text == "hello"


def test_where_memory_has_no_limit_a_document_still_cannot_write_files(monkeypatch):
    def refused(which, limits, limit=resource.setrlimit):
        if which == resource.RLIMIT_AS:
            raise ValueError("current limit exceeds maximum limit")
        limit(which, limits)

    def read():
        answer_requests()
        assert resource.getrlimit(resource.RLIMIT_FSIZE) == (0, 0)

    monkeypatch.setattr(resource, "setrlimit", refused)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert in_child(read) == 0


def coded(kind: str) -> bytes:
    """Return a QR code, as a picture or a PDF."""
    import zxingcpp
    from PIL import Image

    made = zxingcpp.create_barcode("http://a.example/code", zxingcpp.BarcodeFormat.QRCode)
    file = io.BytesIO()
    Image.fromarray(made.to_image(scale=5)).convert("L").save(file, kind)
    return file.getvalue()


@needs_libraries
@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
def test_a_code_is_found_through_whose_ground_one_sees(mode):
    from PIL import Image, ImageOps

    code = Image.open(io.BytesIO(coded("PNG")))
    picture = Image.new("LA", code.size)  # black everywhere
    picture.putalpha(ImageOps.invert(code))
    file = io.BytesIO()
    picture.convert("RGBA").convert(mode).save(file, "PNG")
    assert read_document("png", file.getvalue()).text == "http://a.example/code"


ROW, END = "<table><tr>", "</tr></table>"
CELLS = ROW, "<td bgcolor=black></td>", "<td bgcolor=white>&nbsp;</td>", END
SPAN = '<span style="display:inline-block;width:4px;height:4px;background:%s"></span>'


def drawn(start: str, dark: str, light: str, end: str, text: str = "") -> str:
    """Return a QR code drawn by these texts; without dark ones by characters of half a row."""
    import zxingcpp

    made = zxingcpp.create_barcode("http://a.example/code" + text, zxingcpp.BarcodeFormat.QRCode)
    rows = (np.array(made.to_image()) == 0).astype(int)
    if not dark:
        pairs = zip(rows[::2], [*rows[1::2], 0 * rows[0]], strict=False)
        rows = [upper + 2 * lower for upper, lower in pairs]
    signs = [light, dark] if dark else " \u2580\u2584\u2588"
    return "".join([start + "".join([signs[each] for each in row]) + end for row in rows])


@needs_libraries
@pytest.mark.parametrize("how", [
    CELLS,
    (*CELLS, "?" * 300),  # its tags are parsed in parts
    (ROW, "<td class=d><img src=x></td>", "<td><!----></td>", END + "\n"),
    (ROW, "<td><div style='background:#123'></div></td>", "<td></td>", END),
    ("<div>", SPAN % "#00f", SPAN % "#ffe", "</div>"),
    ("<div>", SPAN % "#ff0", SPAN % "navy", "</div>"),
    ("", "&#9608;&#9608;", "&nbsp; ", "<br>"),
    ("<p>", "", "", "</p>"),
    ("", "<i>\u2588\u2588</i>", "<font color=white>\u2588\u2588</font>", "\n"),
])  # fmt: skip
def test_codes_are_read_that_elements_or_characters_draw(how):
    page = f"<style>.d{{background:#000}}</style>1<pre>{drawn(*how)}".encode()
    assert read_html([page])[0].drawn == b""  # it costs time
    rows = read_html([page], reads_codes=True)[0].drawn
    assert read_document("drawn", rows).text.startswith("http://a.example/code")


@needs_libraries
def test_a_picture_for_which_pillow_would_run_a_program_is_not_opened():
    with pytest.raises(OSError, match="cannot identify"):
        read_document("png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")


@needs_libraries
def test_large_pictures_keep_no_code_of_a_document_from_being_read():
    large = dict.fromkeys([f"word/media/image{n}.jpg" for n in range(9)], bytes(300_000))
    document = large | {"word/media/image9.png": coded("PNG")}
    assert read_document("docx", packed(document, "zip")).facts == ("code",)


@pytest.mark.slow
@needs_libraries
def test_links_in_codes_and_documents_are_links_like_others():
    limits = limits_with_documents()
    for kind in ("PNG", "JPEG", "PDF"):
        found = fields(coded(kind)[:-2], limits=limits)  # mail programs need no end either
        assert (found["url"], b"code" in found["file"]) == (b"://a.example/code", True), kind
        document = {"word/media/image1.png": coded(kind), "word/document.xml": XML.encode()}
        found = fields(packed(document, "zip"), limits=limits)
        assert b"cheap pills" in found["attached"]
        assert found.get("url") == (None if kind == "PDF" else b"://a.example/code"), kind
    page = b'<img src="data:;a=b;BASE64, %b">' % base64.encodebytes(coded("PNG"))
    assert 0 < fields(page * 60, b"text/html", limits=limits)["attached"].count(b"/code") <= 50
    for kind, how in ((b"text/html", CELLS), (b"text/plain; charset=utf-8", ("", "", "", "\n"))):
        found = fields(drawn(*how).encode(), kind, limits=limits)
        assert (found["url"], b"code" in found["file"]) == (b"://a.example/code", True), kind
    found = fields("\u25ac".encode() * 200, b"text/plain", limits=limits)  # a rule
    assert b"unreadable" not in found["file"]
    found = fields(zipped("word/document.xml", data=b"http://a.example/text"), limits=limits)
    assert found["url"] == b"://a.example/text"
    assert "attached" not in fields(packed(document, "zip"))


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


PILLS = SPAM.encode()
INNER = b"Content-Type: text/html\r\n\r\n<p>" + PILLS + b"</p>\r\n"
SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
DATA = bytes.fromhex("06092a864886f70d010701")


# --- S/MIME ----------------------------------------------------------------------------------


def ber(tag: int, content: bytes, is_open: bool = False) -> bytes:
    if is_open:  # of indefinite length
        return bytes([tag, 0x80]) + content + b"\0\0"
    size = len(content).to_bytes(3, "big")
    return bytes([tag, 0x83]) + size + content


def signed(content: bytes, is_open: bool = False, pieces: int = 1) -> bytes:
    octets = ber(0x04, content)
    if pieces > 1:
        cut = range(0, len(content), len(content) // pieces)
        octets = b"".join(ber(0x04, content[i : i + len(content) // pieces]) for i in cut)
        octets = ber(0x24, octets, is_open)
    inner = ber(0x30, DATA + ber(0xA0, octets, is_open), is_open)
    body = ber(0x02, b"\1") + ber(0x31, ber(0x30, b"", is_open), is_open) + inner + ber(0x31, b"")
    return ber(0x30, SIGNED_DATA + ber(0xA0, ber(0x30, body, is_open), is_open), is_open)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("pieces", [1, 3])
def test_signed_mail_is_read(is_open, pieces):
    data = signed(INNER, is_open, pieces)
    assert cms_content(data) == INNER
    assert memory_of(cms_content, signed(bytes(9999), pieces=9999))[1] < 1 << 19
    for kind, name in ((b"application/pkcs7-mime", b"x"), (b"application/octet-stream", b"s.P7M")):
        assert fields(data, kind, name)["body"] == PILLS


def test_what_is_signed_again_and_again_ends_somewhere():
    data = INNER
    head = b"Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\n"
    for _ in range(25):
        data = head + base64.encodebytes(signed(data))
    assert b"too-deep" in dict(parse_message(data).fields)["defect"]


@pytest.mark.parametrize("data", [
    b"", signed(INNER)[:20], signed(INNER).replace(SIGNED_DATA, DATA), b"\x30\x80" * 100_000,
    b"\x30\xff" * 1000, ber(0x30, SIGNED_DATA + ber(0xA0, ber(0x30, b"\x24\x80" * 100_000))),
])  # fmt: skip
def test_other_structures_have_no_content(data):
    assert cms_content(data) == b""


# --- winmail.dat -----------------------------------------------------------------------------


def attribute(tag: int, value: bytes) -> bytes:
    return b"\1" + pack("<II", tag, len(value)) + value + pack("<H", sum(value) & 0xFFFF)


def properties(*values: tuple[int, int, bytes]) -> bytes:
    """Return MAPI properties, behind one with a name and one that is a number."""
    named = pack("<HH16xII4xII4x", 0x1E, 0x8000, 1, 2, 1, 2)
    number = pack("<HHq", 0x40, 0x39, 7)
    found = [
        pack("<HHII", kind, tag, 1, len(value)) + value + bytes(-len(value) % 4)
        for tag, kind, value in values
    ]
    return pack("<I", 2 + len(values)) + named + number + b"".join(found)


def tnef(*attributes: bytes) -> bytes:
    return pack("<IH", 0x223E9F78, 1) + b"".join(attributes)


RTF = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}cheap \b pills\b0  without prescription}"
MELA = pack("<II4sI", len(RTF) + 12, len(RTF), b"MELA", 0) + RTF


@pytest.mark.parametrize("body", [
    attribute(0x2800C, PILLS + b"\0"),
    attribute(0x69003, properties((0x1000, 0x1F, PILLS.decode().encode("utf-16-le")))),
    attribute(0x69003, properties((0x1013, 0x102, b"<p>" + PILLS))),
    attribute(0x69003, properties((0x1009, 0x102, MELA))),
])  # fmt: skip
def test_the_text_of_winmail_dat_is_read(body):
    found = fields(tnef(body), b"application/ms-tnef")["body"]
    assert found == PILLS


@pytest.mark.parametrize("charset", ["utf-8", "windows-1252", "koi8-r"])
def test_html_in_winmail_dat_is_in_the_charset_that_it_declares(charset):
    word = "таблетки" if charset == "koi8-r" else "grüße"
    html = f"<meta charset={charset}><p>{word}".encode(charset)
    page = attribute(0x69007, pack("<II", 1252, 0))  # of the sender's system
    data = tnef(page, attribute(0x69003, properties((0x1013, 0x102, html))))
    assert fields(data, b"application/ms-tnef")["body"] == word.encode()


def test_files_in_winmail_dat_are_attachments():
    name = (0x3707, 0x1F, "long näme.html".encode("utf-16-le"))
    file = [attribute(0x69002, b""), attribute(0x18010, b"a.htm\0")]
    content = (0x3701, 0xD, bytes(16) + b"<p>" + PILLS)  # behind the identifier of an interface
    data = tnef(*file, attribute(0x6800F, b"icon"), attribute(0x69005, properties(name, content)))
    found = fields(data, BINARY, b"winmail.dat")
    assert found["filename"].decode() == "winmail.dat long näme.html"
    assert found["body"] == PILLS
    short = tnef(*file, attribute(0x6800F, b"<p>" + PILLS))
    assert fields(short, b"application/ms-tnef")["filename"] == b"x a.htm"


def test_damaged_winmail_dat_is_read_as_far_as_it_goes_and_one_text_is_decoded(monkeypatch):
    endless = pack("<IHHI", 1, 0x101E, 0x1000, 0xFFFFFFFF) + bytes(100_000)
    decoded = []
    monkeypatch.setattr(wrappings, "in_utf8", lambda *found: decoded.append(found) or b"")
    assert tnef_parts(tnef(attribute(0x2800C, b"\xe9") * 9, attribute(0x69003, endless))) == []
    assert len(decoded) == 1


# --- RTF -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rtf", "text"), [
    (rb"{\rtf1 gr\'fc\'dfe}", "grüße"),
    (rb"{\rtf1\ansicpg936 \'c4\'e3\'ba\'c3}", "你好"),
    (rb"{\rtf1\uc1 \u20320?\u22909\'3f!}", "你好!"),
    (rb"{\rtf1\u-10179?\u-8704?}", "😀"),
    (rb"{\rtf1{\uc2\u20013\'d6\'d0}\u22909?abc{\uc9\u8364}def\uc-1\u8364 ghi}", "中好abc€def€ghi"),
    (rb"{\rtf1 a{\*\generator b}{\pict 00}c\{d\}\par e}", "ac{d}\ne"),
    (b"{\\rtf1 a\\\nb\\\r\nc}", "a\nb\nc"),  # as TextEdit ends paragraphs
    (
        rb"{\rtf1 fi\-nance\~a\_b\emspace c\nestcell d\ldblquote e\rdblquote}",
        'finance a-b c\nd"e"',
    ),
    (rb'{\rtf1{\*\fldinst HYPERLINK "Http://a.example"}b}', " Http://a.example b"),
    (rb"{\rt a\bin4 {}xxb}", "ab"),  # a shorter beginning that Word takes, too
    (rb"{\rtf1 a{\shp{\*\shpinst\shpleft1{\shptxt\pard b}{\sp{\sn x}{\sv 1}}}}c}", "a\nb\nc"),
    (rb"{\rtf1 a{\*\footnote{\i b}c}d{\*\annotation{\*\atnref 0}e}}", "a\nbc\nd\ne\n"),
    (rb"{\rtf1 a{\*\x{\footnote b}}c}", "ac"),
    (rb"{\rtf1{\fonttbl{\f1\fnil\fcharset134 SimSun;}}{\f1 \'c4\'e3} \'e9t\'e9}", "你 été"),
    (rb"{\rtf1\ansicpg1251{\fonttbl{\f7\fcharset128 A;}}\f7\'82\'a0\plain\'e0}", "あа"),
    (r"{\rtf1\ansicpg9 дешёвые таблетки {\ansicpg8 да}}".encode("cp1251"), "дешёвые таблетки да"),
    (rb"{\rtf1 }}}}a{{{{{\fonttbl b", "a"),
    (b"{\\rtf1" + b"\\colortbl" * 29_000, ""),
    (b"text", ""),
])  # fmt: skip
def test_the_text_of_rtf(rtf, text):
    assert rtf_texts(rtf) == (text.encode(), b"")


COLOURS = rb"{\colortbl;\red255\green255\blue255;\red250\green250\blue100;\red0\green0\blue90;}"


@pytest.mark.parametrize(("rtf", "is_hidden"), [
    (rb"{\v secret}", True), (rb"\v\v0 secret", False), (rb"{\deleted secret}", True),
    (rb"\fs8 secret\fs20", True), (rb"{\fs9 secret}", False), (rb"{\fs2\fs secret}", False),
    (rb"{\cf1 secret}", True), (rb"{\cf2 secret}", False),
    (rb"{\*\shpinst{\shptxt\pard\cf1 secret}}", False), (rb"\v\cf1\fs2\plain secret", False),
    (rb"{\cf1\chcbpat3 secret}", False), (rb"{\cf1\chcbpat1 secret}", True),
    (rb"\pard\cbpat3{\cf1 secret}", False), (rb"\pard\cbpat3\pard{\cf1 secret}", True),
    (rb"\trowd\clcbpat3\clcbpat1\pard\plain\intbl{\cf1 secret}\cell\row", False),
    (rb"\trowd\clcbpat3\trowd\intbl{\cf1 secret}", True),
    (rb"\trowd\clcbpat3\intbl\cell\row\pard{\cf1 secret}", True),
])  # fmt: skip
def test_hidden_text_of_rtf(rtf, is_hidden):
    data = rb"{\rtf1" + COLOURS + rb"{\v one}a " + rtf + rb"\cf0  b}"
    shown, hidden = (b"a b", b"one secret") if is_hidden else (b"a secret b", b"one")
    found = rtf_texts(data)
    assert [b" ".join(text.split()) for text in found] == [shown, hidden]
    assert fields(data, b"text/rtf")["hidden"] == hidden
    assert fields(data, b"text/rtf")["body"] == shown


def test_compressed_rtf_is_that_of_the_specification():
    # MS-OXRTFCP, 3.1.1 and 3.1.2: the second crosses its own end.
    simple = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320a"
        "f32068656c090020627705b06c647d0a800fa0"
    )
    crossing = "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0"
    assert decompressed(simple) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert decompressed(bytes.fromhex(crossing)) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert not any(decompressed(simple[:size]) for size in (0, 16, 17))
    assert decompressed(simple.replace(b"LZFu", b"LZF\0")) == b""


# --- invitations and cards -------------------------------------------------------------------


def test_an_invitation_is_read_as_it_is_shown():
    data = (
        b"BEGIN:VCALENDAR\r\nUID:123\r\nSUMMARY;LANGUAGE=en:cheap pi\r\n lls\r\n"
        b"DESCRIPTION:without\\nprescription\\, now\r\nX-NOTE;FMTTYPE=text/html:unseen\r\n"
        b'ORGANIZER;ROLE=CHAIR;CN="Dr. Who":mailto:a@b.example\r\nX-CALL:https://b.example/\r\n'
        b"ATTACH;ENCODING=BASE64;VALUE=BINARY:AAAA\r\nATTACH:data:text/plain,AAAA\r\n"
        b"COMMENT;X=ENCODING=B:are words\r\nCOMMENT;ENCODING=BASE64:YXJlIHdvcmRz\r\n"
        b'X-ALT-DESC;FMTTYPE=text/html:<p>buy\\n <a href="http://a.example/x">here</a>\r\n'
    )
    text, html = card_texts(data)
    people = b'prescription, now\nmailto:a@b.example\n"Dr. Who"\nhttps://b.example/'
    assert text == b"cheap pills\nwithout\n%b\nare words\nare words\n" % people
    assert html == b'<p>buy\n <a href="http://a.example/x">here</a>'
    url = b"://b.example/ http://a.example/x"
    for kind, name in ((b"text/calendar", b"x"), (b"text/x-vcalendar", b"x"), (BINARY, b"a.ics")):
        assert fields(data, kind, name)["url"] == url


def test_a_card_is_read_as_it_is_shown():
    data = (
        b"BEGIN:VCARD\nFN:cheap pills\nitem1.URL:http://a.example/\nKEY:AAAA\nPHOTO;ENCODING=b:/9j/"
        b"\n AAA=\nORG:x\nNOTE;ENCODING=QUOTED-PRINTABLE:with=\nout pre=73cription\nplain text\n"
    )
    lines = b"cheap pills\nhttp://a.example/\nx\nwithout prescription\nplain text\n"
    assert card_texts(data) == (lines, b"")
    assert fields(data, b"text/x-vcard")["url"] == b"://a.example/"
