"""Mail inside S/MIME, winmail.dat, invitations and cards: what is read, and what ends it early."""

import base64
from random import Random
from struct import pack

import pytest

from nbspam.mail.message import parse_message
from nbspam.mail.wrappings import card_texts, cms_content, decompressed, rtf_text, tnef_parts

SPAM = b"cheap pills without prescription"
INNER = b"Content-Type: text/html\r\n\r\n<p>" + SPAM + b"</p>\r\n"
SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
DATA = bytes.fromhex("06092a864886f70d010701")


def fields(data: bytes, kind: bytes, name: bytes = b"x") -> dict[str, bytes]:
    head = b'Content-Type: %b; name="%b"\nContent-Transfer-Encoding: base64\n\n'
    found: dict[str, bytes] = {}
    for origin, text in parse_message(head % (kind, name) + base64.encodebytes(data)).fields:
        found[origin] = found.get(origin, b"") + b" " + text
    return {origin: b" ".join(text.split()) for origin, text in found.items()}


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
    for kind, name in ((b"application/pkcs7-mime", b"x"), (b"application/octet-stream", b"s.P7M")):
        assert fields(data, kind, name)["body"] == SPAM


def test_what_is_signed_again_and_again_ends_somewhere():
    data = INNER
    head = b"Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\n"
    for _ in range(25):
        data = head + base64.encodebytes(signed(data))
    assert "too-deep" in parse_message(data).defects


@pytest.mark.parametrize(
    "data",
    [
        b"",
        signed(INNER)[:20],
        signed(INNER).replace(SIGNED_DATA, DATA),
        b"\x30\x80" * 100_000,
        b"\x30\xff" * 1000,
        ber(0x30, SIGNED_DATA + ber(0xA0, ber(0x30, b"\x24\x80" * 100_000))),
    ],
)
def test_other_structures_have_no_content(data):
    assert cms_content(data) == b""


# --- winmail.dat -----------------------------------------------------------------------------


def attribute(tag: int, value: bytes) -> bytes:
    return b"\1" + pack("<II", tag, len(value)) + value + pack("<H", sum(value) & 0xFFFF)


def properties(*values: tuple[int, int, bytes]) -> bytes:
    """Return MAPI properties, behind one with a name and one that is a number."""
    named = pack("<HH16xII4xII4x", 0x1E, 0x8001, 1, 2, 1, 2)
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


@pytest.mark.parametrize(
    "body",
    [
        attribute(0x2800C, SPAM + b"\0"),
        attribute(0x69003, properties((0x1000, 0x1F, SPAM.decode().encode("utf-16-le")))),
        attribute(0x69003, properties((0x1013, 0x102, b"<p>" + SPAM))),
        attribute(0x69003, properties((0x1009, 0x102, MELA))),
    ],
)
def test_the_text_of_winmail_dat_is_read(body):
    found = fields(tnef(body), b"application/ms-tnef")["body"]
    assert found == SPAM


def test_files_in_winmail_dat_are_attachments():
    name = properties((0x3707, 0x1F, "long näme.html".encode("utf-16-le")))
    file = [attribute(0x69002, b""), attribute(0x18010, b"a.htm\0")]
    data = tnef(*file, attribute(0x6800F, b"<p>" + SPAM), attribute(0x69005, name))
    found = fields(data, b"application/octet-stream", b"winmail.dat")
    assert found["filename"].decode() == "winmail.dat long näme.html"
    assert found["body"] == SPAM
    short = tnef(*file, attribute(0x6800F, b"<p>" + SPAM))
    assert fields(short, b"application/ms-tnef")["filename"] == b"x a.htm"


def test_damaged_winmail_dat_is_read_as_far_as_it_goes():
    random, data = Random(1), tnef(attribute(0x69003, properties((0x1000, 0x1E, SPAM))))
    for _ in range(200):
        place = random.randrange(6, len(data))
        tnef_parts(data[:place] + random.randbytes(4) + data[place + random.randrange(9) :])
    endless = pack("<IHHI", 1, 0x101E, 0x1000, 0xFFFFFFFF) + bytes(100_000)
    assert tnef_parts(tnef(attribute(0x69003, endless))) == []


# --- RTF -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (rb"{\rtf1 gr\'fc\'dfe}", "grüße"),
        (rb"{\rtf1\ansicpg936 \'c4\'e3\'ba\'c3}", "你好"),
        (rb"{\rtf1\uc1 \u20320?\u22909\'3f!}", "你好!"),
        (rb"{\rtf1\u-10179?\u-8704?}", "😀"),
        (rb"{\rtf1 a{\*\generator b}{\pict 00}c\{d\}\par e}", "ac{d}\ne"),
        (rb'{\rtf1{\*\fldinst HYPERLINK "http://a.example"}b}', " http://a.example b"),
        (rb"{\rtf1 a\bin4 {}xxb}", "ab"),
        (rb"{\rtf1 }}}}a{{{{{\fonttbl b", "a"),
        (b"text", ""),
    ],
)
def test_the_text_of_rtf(rtf, text):
    assert rtf_text(rtf).decode() == text


def test_compressed_rtf_is_that_of_the_specification():
    # MS-OXRTFCP, 3.1.1 and 3.1.2: the second crosses its own end.
    simple = (
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320a"
        "f32068656c090020627705b06c647d0a800fa0"
    )
    crossing = "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0"
    assert (
        decompressed(bytes.fromhex(simple)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    )
    assert decompressed(bytes.fromhex(crossing)) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert decompressed(b"") == decompressed(bytes.fromhex(simple)[:17]) == b""


# --- invitations and cards -------------------------------------------------------------------


def test_an_invitation_is_read_as_it_is_shown():
    data = (
        b"BEGIN:VCALENDAR\r\nUID:123\r\nSUMMARY;LANGUAGE=en:cheap pi\r\n lls\r\n"
        b"DESCRIPTION:without\\nprescription\\, now\r\n"
        b'ORGANIZER;CN="Dr. Who":mailto:a@b.example\r\nDTSTART:20260101T000000\r\n'
        b"ATTACH;ENCODING=BASE64;VALUE=BINARY:AAAA\r\n"
        b'X-ALT-DESC;FMTTYPE=text/html:<p>buy\\n <a href="http://a.example/x">here</a>\r\n'
    )
    text, html = card_texts(data)
    lines = [b"cheap pills", b"without", b"prescription, now", b"mailto:a@b.example"]
    assert text.split(b"\n")[:5] == [*lines, b' CN="Dr. Who"']
    assert b"123" not in text
    assert b"AAAA" not in text
    assert html == b'<p>buy\n <a href="http://a.example/x">here</a>'
    assert fields(data, b"text/calendar")["url"] == b"http://a.example/x"
    assert b"cheap pills" in fields(data, b"application/octet-stream", b"a.ics")["body"]


def test_a_card_is_read_as_it_is_shown():
    data = (
        b"BEGIN:VCARD\nFN:cheap pills\nitem1.URL:http://a.example/\nKEY:AAAA\nPHOTO;ENCODING=b:/9j/"
        b"\n AAAA\nNOTE;ENCODING=QUOTED-PRINTABLE:with=\nout pre=73cription\nplain text\n"
    )
    lines = b"cheap pills\nhttp://a.example/\nwithout prescription\nplain text\n"
    assert card_texts(data) == (lines, b"")
    assert fields(data, b"text/x-vcard")["url"] == b"://a.example/"
