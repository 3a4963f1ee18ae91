"""Damaged and hostile attachments by the hundred thousand: nothing raises, and nothing hangs.

Each input is a file or a wrapping (S/MIME, winmail.dat, an invitation) with random damage, in a
mail with headers that may lie.  It is read without documents, and every tenth one with them.
fuzz.py says how the environment chooses among the inputs.
"""

import base64
import time
from random import Random

import pytest

from mail.test_attachments import (
    INNER,
    RTF,
    XML,
    attribute,
    coded,
    pdf,
    properties,
    rar4,
    rar5,
    seven_zip,
    signed,
    tnef,
    zipped,
)
from mail.test_ole import FORMULA, SHARED, WIDE, compound, excel, outlook, powerpoint, word
from nbspam.mail.attachments import limits_with_documents
from nbspam.mail.headers import LIMITS
from nbspam.mail.message import parse_message
from stress.fuzz import FIRST, INPUTS, SEED
from stress.hostile import garbled

CHUNK = 2000  # inputs of one test
WITH_DOCUMENTS = 10  # one input of so many is read with documents
PATIENCE = 2.0  # seconds of processor time of one input
KINDS = (
    b"application/octet-stream application/pdf image/png application/pkcs7-mime text/calendar"
    b" application/ms-tnef text/x-vcard multipart/mixed;boundary=b text/html image/jpeg x"
).split()
NAMES = b"a.pdf a.docx smime.p7m winmail.dat a.ics a.vcf a.rtf a.png a.pdf.exe a".split()
NUMBERS = b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff"
ENCODINGS = b"base64 base64 base64 8bit quoted-printable x-uuencode base-64".split()
CARD = b'BEGIN:VCALENDAR\r\nSUMMARY;X="a":b\r\n c\r\nX-ALT-DESC;FMTTYPE=text/html:<p>x</p>\r\n'


def seeds() -> list[bytes]:
    """Return files of every kind that is read."""
    office = [
        zipped(name, data=XML.encode() * 20)
        for name in ("word/document.xml", "xl/sharedStrings.xml", "content.xml", "a.exe")
    ]
    compressed = b"\x10\1\0\0\0\1\0\0LZFu" + bytes(4) + b"\0{\\rtf1 a\x0f\0\x11\0\x22b" * 20
    mail = tnef(
        attribute(0x2800C, b"text\0"),
        attribute(0x69003, properties((0x1009, 0x102, compressed), (0x1013, 0x102, b"<p>x"))),
        attribute(0x69002, b""),
        attribute(0x6800F, pdf("x", "http://a.example")),
    )
    archives = [rar4(b"a.exe"), rar5(b"a.exe"), seven_zip("a.exe"), seven_zip("b", compress=True)]
    wrapped = [signed(INNER), signed(INNER, is_open=True, pieces=3), mail, CARD * 9]
    ole = word(b"8cheap ", b"8pills") | excel((0xFC, SHARED), (0x3C, WIDE), (6, FORMULA))
    ole |= powerpoint((0, 0xFA8, b"text")) | outlook(1251, p1000001E=b"text", p10130102=b"<p>x")
    return [pdf("text", "http://a.example"), RTF * 9, compound(ole), *office, *archives, *wrapped]


def mail_of(random: Random, data: bytes) -> bytes:
    """Return a mail with a file, whose headers may lie."""
    encoding = random.choice(ENCODINGS)
    body = base64.encodebytes(data) if encoding.startswith(b"base") else data
    head = b"Content-Type: %b; name=%b\n" % (random.choice(KINDS), random.choice(NAMES))
    again = b"Content-Type: %b\n" % random.choice(KINDS) if random.random() < 0.1 else b""
    return head + again + b"Content-Transfer-Encoding: %b\n\n" % encoding + body


def slowest(numbers: range, files: list[bytes]) -> float:
    """Return the most seconds of processor time that an input took."""
    most = 0.0
    for number in numbers:
        random = Random(SEED << 32 | number)
        data = mail_of(random, garbled(random, random.choice(files), NUMBERS, most=50))
        limits = limits_with_documents() if number % WITH_DOCUMENTS == 0 else LIMITS
        start = time.process_time()
        parse_message(data, limits)
        most = max(most, time.process_time() - start)
    return most


@pytest.mark.parametrize("start", range(FIRST, FIRST + INPUTS, CHUNK))
def test_damaged_attachments_neither_raise_nor_hang(start):
    stop = min(start + CHUNK, FIRST + INPUTS)
    pictures = [coded(kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "PDF")]
    assert slowest(range(start, stop), seeds() + pictures) < PATIENCE
