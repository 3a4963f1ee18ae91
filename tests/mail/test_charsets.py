"""Conversion to UTF-8: which declared charsets are used, and which are guessed."""

import codecs
import warnings
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam import alphabets
from nbspam.charsets import CharsetGuess, to_utf8
from nbspam.mail.message import parse_message
from support import examples

WORDS = {
    "utf-8": "Grüße 你好 привет", "iso-8859-1": "Grüße café",
    "windows-1252": "Grüße – 5 € “sofort”", "windows-1251": "привет, мир",
    "gb18030": "免费发票 𠀀", "gbk": "免费发票，优惠", "big5": "免費發票",
    "iso-2022-jp": "こんにちは 世界", "shift_jis": "こんにちは 世界", "euc-jp": "こんにちは 世界",
    "euc-kr": "안녕하세요", "koi8-r": "привет, мир", "tis-620": "สวัสดี", "utf-7": "免费 + pills",
    "utf-16": "hello 你好", "utf-32": "hello 你好",
}  # fmt: skip
DANGEROUS = ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "rot13"]
BYTES_TO_BYTES = ["hex", "zip", "bz2", "uu", "quopri", "base64", "undefined", "mbcs"]


@pytest.mark.parametrize("charset", WORDS)
def test_a_rightly_declared_charset_is_used_however_it_is_spelt(charset):
    data = WORDS[charset].encode(charset)
    for name in (charset, f' "{charset.upper()}"'):
        assert to_utf8(data, name) == (WORDS[charset].encode(), None)


@pytest.mark.parametrize(("name", "charset", "text"), [
    ("iso-8859-1", "cp1252", "5 € “now”"), ("latin1", "cp1252", "5 € “now”"),
    ("gb2312", "gb18030", "朱镕基𠀀"), ("windows-874", "cp874", "สวัสดี"),
    ("windows-949", "cp949", "안녕하세요 뷁"), ("windows-936", "gbk", "免费发票"),
    ("windows-31j", "cp932", "①こんにちは"), ("x-gbk", "gbk", "免费发票"),
    ("x-x-big5", "big5", "免費發票"), ("KSC5601", "cp949", "똠방각하"),
    ("iso88592", "iso8859-2", "źdźbło"), ("ISO_8859-7:1987", "iso8859-7", "λάθος"),
    ("iso-8859-9", "cp1254", "Œuvre Şeker"), ("koi8", "koi8-r", "привет"),
    ("chinese", "gbk", "免费发票"),
    ("x-euc-jp", "euc-jp", "こんにちは"), ("csISO2022JP", "iso-2022-jp", "こんにちは"),
    ("iso-8859-8-i", "iso-8859-8", "שלום"), ("ISO-8859-6-e", "iso-8859-6", "مرحبا"),
    ("iso-2022-kr", "iso-2022-kr", "안녕하세요"), ("cp50220", "iso-2022-jp", "こんにちは"),
    ("IBM850", "cp850", "Grüße"), ("iso-2022-jp", "iso2022_jp_ext", "ｶﾀｶﾅ"),
    ("big5", "big5hkscs", "恒生銀行，唔該嘅"), ("unicode", "utf-16", "你好"),
    ("unicode", "utf-16-le", "你好"), ("utf-16", "utf-16-be", "好 hello"),
    ("unicode-1-1-UTF-7", "utf-7", "你好"), (None, "utf-16", "你好"), ("utf-8", "utf-16", "你好"),
    ("us-ascii", "utf-16", "buy 你好"),
    ("utf-8", "utf-8-sig", "你好"), (None, "utf-8", "café"),
])  # fmt: skip
def test_subsets_and_other_names_of_a_charset_and_byte_order_marks_are_known(name, charset, text):
    assert to_utf8(text.encode(charset), name) == (text.encode(), None)


@pytest.mark.parametrize("name", [*DANGEROUS, *BYTES_TO_BYTES, "", "x-none", "ÿ"])
def test_codecs_that_are_not_charsets_are_never_used(name):
    text, defect = to_utf8(b"+AGE- \\u0041 xn--maana-pta a-", name)
    assert text == b"+AGE- \\u0041 xn--maana-pta a-"
    assert defect == ("charset-unknown" if name else None)


FAPIAO, RUSSIAN = "免费发票优惠多多", "Добрый день! Высылаю Вам счёт за март, оплатить его нужно."


@pytest.mark.parametrize(("text", "charset", "declared", "fault"), [
    ("café", "cp1252", None, "missing"),
    ("café", "cp1252", "utf-8", "wrong"),
    ("café", "cp1252", "klingon", "unknown"),
    ("café", "cp1252", "cp037", "unknown"),
    ("café", "cp1252", "iso-" + "9" * 99, "unknown"),
    (FAPIAO, "gb18030", None, "missing"),
    (FAPIAO, "utf-8", "iso-2022-jp", "wrong"),
    (FAPIAO, "utf-8", "us-ascii", "wrong"),
    ("您好,我公司现有发票对外代开,欢迎来电咨询 Tel 13800138000", "gb2312", None, "missing"),
    ("こんにちは", "iso2022_jp", None, "missing"),
    ("こんにちは", "iso2022_jp", "us-ascii", "wrong"),
    (RUSSIAN, "utf-8-sig", "koi8-r", "wrong"),
    ("안녕하세요", "iso-2022-kr", None, "missing"),
    (RUSSIAN, "koi8-r", None, "missing"),
    (f"Re: invoice No 12 {RUSSIAN} OK", "koi8-r", None, "missing"),
])  # fmt: skip
def test_a_wrong_or_missing_declaration_leads_to_a_guess(text, charset, declared, fault):
    assert to_utf8(text.encode(charset), declared) == (text.encode(), f"charset-{fault}")


def test_neither_one_bad_byte_nor_a_mark_of_byte_order_spoils_what_is_declared():
    text, defect = to_utf8(FAPIAO.encode("gb18030") * 20 + b"\xff", "gb2312")
    assert text.decode().startswith(FAPIAO)
    assert defect == "charset-wrong"
    signed = b"\x1b$B8+@Q=q-!$N7o\x1b(B"  # a circled 1, which the standard lacks
    assert to_utf8(signed, "iso-2022-jp") == ("見積書�の件".encode(), "charset-wrong")
    assert to_utf8(b"\xad\xa1" + "見積書".encode("euc-jp"), "euc-jp")[0] == "①見積書".encode()
    assert to_utf8(b"1 + 1 is a part of this +AGE-", "utf-7")[0].endswith(b"a part of this a")
    assert to_utf8(b"\xff\xfebuy now", "windows-1252") == ("ÿþbuy now".encode(), None)
    marked = codecs.BOM_UTF8 + "café à la crème".encode("cp1252")
    assert to_utf8(marked, "utf-8") == ("café à la crème".encode(), "charset-wrong")


@pytest.mark.parametrize("declared", ["utf-8", None, "us-ascii", "iso-2022-jp"])
@pytest.mark.parametrize("text", [FAPIAO, RUSSIAN, "it’s a great offer – now", "Grüße aus Köln"])
def test_a_wrong_byte_does_not_spoil_utf8(text, declared):
    for data in (b"\xff" + text.encode(), text.encode() + FAPIAO.encode()[:2]):
        shown, defect = to_utf8(data, declared)
        assert shown.decode().strip("�") == text
        assert defect == ("charset-wrong" if declared else "charset-missing")


@examples(150)
@given(
    data=st.binary(max_size=60) | st.sampled_from([b"\x1b$B", b"~{!", b"\xff\xfe\0", b"\xd8\0"]),
    declared=st.none() | st.sampled_from([*WORDS, *DANGEROUS, "hz", "iso-2022-kr", "utf-16-le"]),
)
def test_any_bytes_become_utf8_without_a_warning(data, declared):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text, defect = to_utf8(data, declared)
    text.decode()  # does not raise
    assert defect in (None, "charset-missing", "charset-wrong", "charset-unknown")


def test_the_texts_of_a_message_are_judged_together_once_and_wrong_declarations_alike():
    asked = []

    def undeclared():
        asked.append(1)
        return [RUSSIAN.encode("koi8-r"), b"ascii", "schön".encode()]

    guess = CharsetGuess(undeclared)
    # Alone, one letter is no evidence: in Western charsets it is another one.
    for letter in "яЯжЩ":
        assert to_utf8(letter.encode("koi8-r"), None, guess)[0] == letter.encode()
    assert len(asked) == 1
    guess = CharsetGuess()
    assert to_utf8(RUSSIAN.encode("koi8-r"), "utf-8", guess) == (RUSSIAN.encode(), "charset-wrong")
    assert to_utf8("я".encode("koi8-r"), None, guess)[0] == "я".encode()


STORMS = {
    "escapes": b"\x1b$B\x1b(B", "halves": b"\x1b$B\xff", "Korean": b"\x1b$)C\x0e\x0f",
    "hz": b"~{~}", "undefined": b"\xff", "leads": b"\x81", "UTF-7": b"+AGE-",
}  # fmt: skip


@pytest.mark.parametrize("storm", STORMS)
def test_garbage_does_not_grow(storm):
    n_bytes = 1 << 12
    for charset in (*WORDS, *DANGEROUS, "hz", "iso-2022-kr", "iso-2022-jp-3", None):
        text, _ = to_utf8(STORMS[storm] * (n_bytes // len(STORMS[storm])), charset)
        assert len(text) <= 3 * n_bytes, charset


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


def test_a_head_does_not_decide_how_the_texts_are_read():
    """A digest has the texts, and hardly anything of the head."""
    heads = LETTER.encode("koi8-r"), LETTER.encode("cp1251"), b"ann@example.org"
    read = [
        subject_and_bodies(b"To: %s\nSubject: tea\n\n" % head + "Öl für".encode("latin-1"))
        for head in heads
    ]
    assert [bodies for _, bodies in read] == [["Öl für"]] * 3


def test_a_charset_is_guessed_once_for_all_texts_and_once_for_heads(monkeypatch):
    asked = []
    monkeypatch.setattr(alphabets, "likely_charset", lambda data: asked.append(data) or "koi8-r")
    letter = LETTER.encode("koi8-r")
    words = b" ".join(b"=?x-none?Q?=%02X?=\n" % byte for byte in range(192, 256))
    parts = b"".join(b"--b\n\n" + letter + b"%d\n" % i for i in range(50))
    head = b"Subject: " + words + b"Content-Type: multipart/mixed; boundary=b\n\n"
    subject, bodies = subject_and_bodies(head + parts)

    assert len(asked) == 2
    assert subject == bytes(range(192, 256)).decode("koi8-r")
    assert bodies == [f"{LETTER}{i}" for i in range(50)]
