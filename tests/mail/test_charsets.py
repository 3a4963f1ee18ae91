"""Conversion to UTF-8: which declared charsets are used, and which are guessed."""

import codecs
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.charsets import CharsetGuess, to_utf8
from support import examples

WORDS = {
    "utf-8": "Grüße 你好 привет",
    "iso-8859-1": "Grüße café",
    "windows-1252": "Grüße – 5 € “sofort”",
    "windows-1251": "привет, мир",
    "gb18030": "免费发票 𠀀",
    "gbk": "免费发票，优惠",
    "big5": "免費發票",
    "iso-2022-jp": "こんにちは 世界",
    "shift_jis": "こんにちは 世界",
    "euc-jp": "こんにちは 世界",
    "euc-kr": "안녕하세요",
    "koi8-r": "привет, мир",
    "tis-620": "สวัสดี",
    "utf-16": "hello 你好",
    "utf-32": "hello 你好",
}
DANGEROUS = ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13"]
BYTES_TO_BYTES = ["hex", "zip", "bz2", "uu", "quopri", "base64", "undefined", "mbcs"]


@pytest.mark.parametrize("charset", WORDS)
def test_a_rightly_declared_charset_is_used_however_it_is_spelt(charset):
    data = WORDS[charset].encode(charset)
    for name in (charset, f' "{charset.upper()}"'):
        assert to_utf8(data, name) == (WORDS[charset].encode(), None)


@pytest.mark.parametrize("subset", ["iso-8859-1", "latin1"])
def test_declared_subsets_of_windows_1252_are_read_as_windows_1252(subset):
    assert to_utf8("5 € “now”".encode("cp1252"), subset) == ("5 € “now”".encode(), None)


def test_declared_gb2312_is_read_as_gb18030():
    assert to_utf8("朱镕基𠀀".encode("gb18030"), "gb2312") == ("朱镕基𠀀".encode(), None)


@pytest.mark.parametrize(
    ("name", "charset", "text"),
    [
        ("windows-874", "cp874", "สวัสดี"),
        ("windows-949", "cp949", "안녕하세요 뷁"),
        ("windows-936", "gbk", "免费发票"),
        ("windows-31j", "cp932", "①こんにちは"),
        ("x-gbk", "gbk", "免费发票"),
        ("x-euc-jp", "euc-jp", "こんにちは"),
        ("csISO2022JP", "iso-2022-jp", "こんにちは"),
        ("iso-8859-8-i", "iso-8859-8", "שלום"),
        ("ISO-8859-6-e", "iso-8859-6", "مرحبا"),
        ("iso-2022-kr", "iso-2022-kr", "안녕하세요"),
    ],
)
def test_names_that_python_does_not_know_are_known(name, charset, text):
    assert to_utf8(text.encode(charset), name) == (text.encode(), None)


@pytest.mark.parametrize("name", [*DANGEROUS, *BYTES_TO_BYTES, "", "x-none", "ÿ"])
def test_codecs_that_are_not_charsets_are_never_used(name):
    text, defect = to_utf8(b"+AGE- \\u0041 xn--maana-pta a-", name)

    assert text == b"+AGE- \\u0041 xn--maana-pta a-"
    assert defect == ("charset-unknown" if name else None)


def test_only_plain_charsets_are_looked_up(monkeypatch):
    asked = []
    monkeypatch.setattr(codecs, "lookup", asked.append)
    for name in DANGEROUS + BYTES_TO_BYTES:
        to_utf8(b"\xff\xfe caf\xe9", name)
    assert not asked


@pytest.mark.parametrize(
    ("data", "declared", "text", "defect"),
    [
        ("café".encode(), None, "café", None),
        (b"caf\xe9", None, "café", "charset-missing"),
        (b"caf\xe9", "utf-8", "café", "charset-wrong"),
        (b"caf\xe9", "klingon", "café", "charset-unknown"),
        ("免费发票优惠".encode("gb18030"), None, "免费发票优惠", "charset-missing"),
        ("免费发票优惠".encode("gb18030"), "utf-8", "免费发票优惠", "charset-wrong"),
        ("こんにちは".encode("iso2022_jp"), None, "こんにちは", "charset-missing"),
        ("免费发票".encode(), "iso-2022-jp", "免费发票", "charset-wrong"),
        ("免费发票".encode(), "us-ascii", "免费发票", "charset-wrong"),
        (b"caf\xe9", "us-ascii", "café", "charset-wrong"),
        (b"caf\xe9", "iso-" + "9" * 99, "café", "charset-unknown"),
        ("你好".encode("utf-8-sig"), "utf-8", "你好", None),
        ("你好".encode("utf-16"), None, "你好", None),
        ("你好".encode("utf-16"), "utf-8", "你好", None),
    ],
)
def test_a_wrong_or_missing_declaration_leads_to_a_guess(data, declared, text, defect):
    assert to_utf8(data, declared) == (text.encode(), defect)


def test_one_bad_byte_does_not_spoil_chinese_text():
    data = "免费发票优惠多多".encode("gb18030") * 20 + b"\xff"
    text, defect = to_utf8(data, "gb2312")

    assert text.decode().startswith("免费发票")
    assert defect == "charset-wrong"


def test_a_byte_order_mark_does_not_override_a_charset_of_single_bytes():
    assert to_utf8(b"\xff\xfebuy now", "windows-1252") == ("ÿþbuy now".encode(), None)


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


RUSSIAN = "Добрый день! Высылаю Вам счёт за март, оплатить его нужно до пятницы."


@pytest.mark.parametrize("charset", ["koi8-r", "windows-1251"])
@pytest.mark.parametrize("around", ["{}", "Re: invoice No 12 {} OK"])
def test_both_charsets_of_russian_are_guessed(charset, around):
    text = around.format(RUSSIAN)
    assert to_utf8(text.encode(charset), None) == (text.encode(), "charset-missing")


@pytest.mark.parametrize(
    "text", ["Grüße aus Köln, schönes Wochenende", "Élève, où es-tu? À bientôt"]
)
def test_single_letters_beyond_ascii_are_western(text):
    assert to_utf8(text.encode("cp1252"), None) == (text.encode(), "charset-missing")


def test_undeclared_chinese_is_not_taken_for_russian():
    text = "您好,我公司现有发票对外代开,欢迎来电咨询 Tel 13800138000"
    assert to_utf8(text.encode("gb2312"), None) == (text.encode(), "charset-missing")


def test_korean_that_says_so_itself_is_read_without_a_charset():
    text = "안녕하세요"
    assert to_utf8(text.encode("iso-2022-kr"), None) == (text.encode(), "charset-missing")


def test_the_texts_of_a_message_are_judged_together_once():
    asked = []

    def undeclared():
        asked.append(1)
        return [RUSSIAN.encode("koi8-r"), b"ascii", "schön".encode()]

    guess = CharsetGuess(undeclared)
    # Alone, one letter is no evidence: in Western charsets it is another one.
    for letter in "яЯжЩ":
        assert to_utf8(letter.encode("koi8-r"), None, guess)[0] == letter.encode()
    assert len(asked) == 1


def test_a_wrong_declaration_is_evidence_like_a_missing_one():
    guess = CharsetGuess()
    assert to_utf8(RUSSIAN.encode("koi8-r"), "utf-8", guess) == (RUSSIAN.encode(), "charset-wrong")
    assert to_utf8("я".encode("koi8-r"), None, guess)[0] == "я".encode()


STORMS = {
    "escapes": b"\x1b$B\x1b(B",
    "halves": b"\x1b$B\xff",
    "Korean": b"\x1b$)C\x0e\x0f",
    "hz": b"~{~}",
    "undefined": b"\xff",
    "leads": b"\x81",
    "UTF-7": b"+AGE-",
}


@pytest.mark.parametrize("storm", STORMS)
def test_garbage_does_not_grow(storm):
    n_bytes = 1 << 12
    for charset in (*WORDS, *DANGEROUS, "hz", "iso-2022-kr", "iso-2022-jp-3", None):
        text, _ = to_utf8(STORMS[storm] * (n_bytes // len(STORMS[storm])), charset)

        assert len(text) <= 3 * n_bytes, charset
