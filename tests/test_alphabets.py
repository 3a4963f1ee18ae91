"""A charset is guessed from the languages that are written in it."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.alphabets import from_beyond_ascii, likely_charset
from support import examples, reviews

WRITTEN = {
    "chinese": "gbk", "taiwanese": "big5", "japanese": "cp932 euc_jp", "korean": "euc_kr",
    "russian": "cp1251 koi8_r cp866 iso8859_5", "ukrainian": "cp1251 koi8_u",
    "greek": "cp1253 iso8859_7", "hebrew": "cp1255 iso8859_8", "arabic": "cp1256 iso8859_6",
    "thai": "cp874", "polish": "cp1250 iso8859_2", "czech": "cp1250 iso8859_2",
    "turkish": "cp1254", "german": "cp1252", "french": "cp1252", "spanish": "cp1252",
}  # fmt: skip
PAIRS = [(name, charset) for name, each in WRITTEN.items() for charset in each.split()]


@pytest.mark.parametrize(("language", "charset"), PAIRS)
def test_three_sentences_tell_their_charset(language, charset):
    rows = reviews(language)
    for start in range(len(rows) - 2):
        data = " ".join(rows[start : start + 3]).encode(charset, "ignore")
        guessed = likely_charset(from_beyond_ascii(data, 500))
        assert data.decode(guessed, "replace") == data.decode(charset)


@pytest.mark.parametrize("charset", ["koi8-r", "cp1251"])
def test_russian_in_capital_letters_is_russian(charset):
    data = "ВНИМАНИЕ, РАСПРОДАЖА! ТОЛЬКО СЕГОДНЯ".encode(charset)
    assert likely_charset(data) == charset  # though these are other small letters in the other


@pytest.mark.parametrize("text", [
    "win £500", "it’s fine", "caf\xe9", "a\xa0b\xa0\xa0c", "5 € “now” – only…", "\xb8ber",
    "Faturën do ta gjeni këtu", "Adreça de correu electrònic", "Tühjenda kõik filtrid",
])  # fmt: skip
def test_signs_and_single_letters_between_ascii_are_western(text):
    assert likely_charset(text.encode("cp1252")) == "cp1252"


@pytest.mark.parametrize(
    "text", ["文件", "标题", "升级", "easy to use. \u3000Easy Email Searcher \u3000is"]
)
def test_few_chinese_characters_are_chinese(text):
    assert likely_charset(text.encode("gbk")) == "gb18030"


@examples(300)
@given(st.binary(max_size=200) | st.lists(st.sampled_from([b"\xff", b"\x81\x30", b"?"])))
def test_any_bytes_have_a_charset_that_python_knows(data):
    data = data if isinstance(data, bytes) else b"".join(data)
    data.decode(codecs.lookup(likely_charset(data)).name, "replace")


def test_what_is_judged_begins_beside_the_first_byte_beyond_ascii():
    assert from_beyond_ascii(b"hello w\xf6rld", 3) == b"w\xf6rl"
    assert from_beyond_ascii(b"\xf6l", 3) == b"\xf6l"
    assert from_beyond_ascii(b"hello", 3) == b""
