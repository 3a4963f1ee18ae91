"""Texts of a message that declare no charset: how they are read together."""

from base64 import b64encode

import pytest

from nbspam import alphabets
from nbspam.mail.message import parse_message

SUBJECT = "Счёт"
LETTER = "Добрый день! Высылаю Вам счёт за март, оплатить его нужно до пятницы."


def subject_and_bodies(data):
    fields = parse_message(data).fields
    bodies = [field.text.decode().strip() for field in fields if field.origin == "body"]
    return bodies[0], bodies[1:]


@pytest.mark.parametrize("charset", ["koi8-r", "cp1251", "iso-8859-5", "cp866"])
def test_a_subject_in_raw_bytes_is_read_in_the_charset_of_the_body(charset):
    subject, letter = SUBJECT.encode(charset), LETTER.encode(charset)
    head = b"From: a@b.example\nSubject: " + subject + b"\n"
    encoded = b"Content-Transfer-Encoding: base64\n\n" + b64encode(letter)
    two = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n%b\n--b\n\n%b\n--b--"

    assert subject_and_bodies(head + b"\n" + letter) == (SUBJECT, [LETTER])
    assert subject_and_bodies(head + encoded) == (SUBJECT, [LETTER])
    # In parts, too, and the short one by the long one.
    both = head + two % (subject, letter)
    assert subject_and_bodies(both) == (SUBJECT, [SUBJECT, LETTER])


def test_a_head_of_several_parts_is_in_the_charset_that_the_first_text_declares():
    part = b"Content-Type: text/plain; charset=iso-8859-2\n\n" + "Zażółć".encode("iso-8859-2")
    data = (
        b"Subject: " + "żółw".encode("iso-8859-2")
        + b"\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" + part + b"\n--b--"
    )  # fmt: skip
    assert subject_and_bodies(data) == ("żółw", ["Zażółć"])


def test_a_charset_is_guessed_once_for_a_message(monkeypatch):
    asked = []
    monkeypatch.setattr(alphabets, "likely_charset", lambda data: asked.append(data) or "koi8-r")
    letter = LETTER.encode("koi8-r")
    words = b" ".join(b"=?x-none?Q?=%02X?=\n" % byte for byte in range(192, 256))
    parts = b"".join(b"--b\n\n" + letter + b"%d\n" % i for i in range(50))
    head = b"Subject: " + words + b"Content-Type: multipart/mixed; boundary=b\n\n"
    subject, bodies = subject_and_bodies(head + parts)

    assert len(asked) == 1
    assert subject == bytes(range(192, 256)).decode("koi8-r")
    assert bodies == [f"{LETTER}{i}" for i in range(50)]
